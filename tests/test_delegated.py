"""Control groups: whose group is divided, what a room's one says, what whoever grades
is told. The kernel's files are ordinary ones here; that they work in a kernel is
said in docs/sandbox.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from course_grader.judge import delegated
from course_grader.kernel import groups
from course_grader.kernel.limits import Limits, worst_case

MIB = 2**20
LIMITS = Limits(
    memory_bytes=100 * MIB, disk_bytes=20 * MIB, shm_bytes=3 * MIB, processes=9
)


def machine(root: Path, inside: list[int], controllers: str) -> Path:
    """A /proc that says where this process's group lies, and that group."""
    proc, group = root / "proc", root / "cgroup" / "mine.scope"
    for folder in (proc / "self", group):
        folder.mkdir(parents=True)
    (proc / "self/mountinfo").write_text(
        "22 1 0:20 / /proc rw - proc proc rw\n"
        f"31 22 0:26 / {root / 'cgroup'} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    )
    (proc / "self/cgroup").write_text("3:cpu:/elsewhere\n0::/mine.scope\n")
    for pid, parent in ((os.getpid(), 70), (70, 1), (1, 0)):
        (proc / str(pid)).mkdir()
        stat = f"{pid} (a ) b) S {parent} 1 1"
        (proc / str(pid) / "stat").write_text(stat)
    (group / "cgroup.controllers").write_text(controllers)
    (group / "cgroup.procs").write_text("".join(f"{one}\n" for one in inside))
    (group / "cgroup.subtree_control").write_text("")
    return proc


@pytest.mark.parametrize(
    ("others", "controllers", "is_mine"),
    [
        ([], "cpuset cpu io memory pids", True),
        ([70, 1], "cpu memory pids", True),  # who has started the grader
        ([71], "cpu memory pids", False),  # somebody else's process
        ([], "cpu pids", False),
        ([], "", False),  # as where the controllers are those of version 1
    ],
)
def test_only_a_group_of_ones_own_is_divided(
    tmp_path: Path, others: list[int], controllers: str, is_mine: bool
) -> None:
    proc = machine(tmp_path, [os.getpid(), *others], controllers)

    found = delegated.own_group(proc)

    assert found == (tmp_path / "cgroup/mine.scope" if is_mine else None)


def test_a_machine_without_control_groups_has_none(tmp_path: Path) -> None:
    assert delegated.own_group(tmp_path) is None


def test_a_room_gets_its_bounds_and_says_which_it_has_passed(
    tmp_path: Path,
) -> None:
    room = tmp_path / f"room-{os.getpid()}"
    room.mkdir()
    names = (
        *("memory.max", "memory.swap.max", "memory.oom.group"),
        *("pids.max", "cgroup.procs", "memory.events"),
    )
    for name in names:
        (room / name).touch()
    parent = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        made = groups.RoomGroup(parent, LIMITS)
        groups.enter(parent, made.name)

        # memory, and files that are held in memory
        assert (room / "memory.max").read_text() == str(123 * MIB)
        assert (room / "memory.swap.max").read_text() == "0"
        assert (room / "pids.max").read_text() == "10"
        assert (room / "cgroup.procs").read_text() == "0"
        assert made.passed() == ""
        (room / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        assert made.passed() == "memory_bytes"

        for name in names:  # a kernel takes its own files away
            (room / name).unlink()
        made.remove()
        assert not room.exists()
        made.remove()  # as if it had gone by itself
    finally:
        os.close(parent)


def test_without_controllers_a_room_has_no_group(tmp_path: Path) -> None:
    """A folder in which the kernel makes no files: bounds cannot be written."""
    parent = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(OSError, match=r"memory\.max"):
            groups.RoomGroup(parent, LIMITS)
    finally:
        os.close(parent)


def test_whoever_grades_is_told_what_is_not_bounded() -> None:
    with_groups = worst_case(LIMITS, 2, bounded=True)
    without = worst_case(LIMITS, 2, bounded=False)

    assert "Each submission has a control group" in with_groups
    assert "There is no control group to be had here" in without
    assert "sockets and pipes" in without
