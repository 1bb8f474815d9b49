"""Where rooms get their control groups from: systemd, or whoever has given the
grader's own group to it.

Only cgroup v2 is spoken, and only a group that is the grader's own is divided:
nobody else's processes are moved.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path

CONTROLLERS = frozenset(("cpu", "memory", "pids"))
NOBODY = 65534
_TRY_OUT_TIMEOUT_S = 10.0
_TRY_OUT = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    "from course_grader.judge.delegated import own_group; "
    "sys.exit(own_group() is None)"
)
_ROUNDS = 100
"""Of moving processes out of a group while they fork."""


@functools.cache
def scope() -> tuple[str, ...]:
    """The words in front of a command that have systemd start it in a group of its
    own, which it may divide; none where there is no systemd that does so."""
    if not Path("/run/systemd/system").is_dir():
        return ()
    words = [
        "systemd-run",
        *([] if os.geteuid() == 0 else ["--user"]),
        *("--scope", "--quiet", "--collect"),
        *("-p", f"Delegate={' '.join(sorted(CONTROLLERS))}"),
    ]
    try:
        tried = subprocess.run(
            [*words, sys.executable, "-IS", "-c", _TRY_OUT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRY_OUT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return () if tried.returncode else tuple(words)


def own_group(proc: Path = Path("/proc")) -> Path | None:
    """The folder of this process's group, if that can be divided: it may be written
    to, has the controllers, and nobody is in it but this process and those that
    have started it.

    Args:
        proc: where the kernel tells of processes.
    """
    try:
        mounts = (proc / "self/mountinfo").read_text().splitlines()
        lines = (proc / "self/cgroup").read_text().splitlines()
        where = next(
            Path(fields[4])
            for fields in map(str.split, mounts)
            if fields[fields.index("-") + 1] == "cgroup2"
        )
        path = next(one[3:] for one in lines if one.startswith("0::"))
        folder = where / path.lstrip("/")
        controllers = (folder / "cgroup.controllers").read_text().split()
        inside = set((folder / "cgroup.procs").read_text().split())
    except (OSError, StopIteration, ValueError):
        return None
    files = ("", "cgroup.procs", "cgroup.subtree_control")
    may_write = all(os.access(folder / one, os.W_OK) for one in files)
    if may_write and set(controllers) >= CONTROLLERS and inside <= _line(proc):
        return folder
    return None


def bounded() -> bool:
    """Whether rooms will have control groups on this machine."""
    return bool(scope()) or own_group() is not None


def _line(proc: Path) -> set[str]:
    """This process, the one that started it, and so on."""
    pid = str(os.getpid())
    line: set[str] = set()
    while pid not in (*line, "0"):
        line.add(pid)
        with contextlib.suppress(OSError):
            stat = (proc / pid / "stat").read_text()
            pid = stat.rpartition(")")[2].split()[1]
    return line


def divide(folder: Path) -> None:
    """Makes a group one that rooms get theirs in: all of its processes move into one
    of the grader's, for a group with controllers has none itself.

    Raises:
        OSError: the machine does not allow it.
    """
    grader = folder / "grader"
    grader.mkdir(exist_ok=True)
    for _ in range(_ROUNDS):
        inside = (folder / "cgroup.procs").read_text().split()
        for pid in inside:
            with contextlib.suppress(ProcessLookupError):
                (grader / "cgroup.procs").write_text(pid)
        if not inside:
            break
    wanted = " ".join(f"+{one}" for one in sorted(CONTROLLERS))
    (folder / "cgroup.subtree_control").write_text(wanted)
    if os.geteuid() == 0:
        # the sandbox is started by nobody
        for path in (folder, folder / "cgroup.procs"):
            os.chown(path, NOBODY, NOBODY)
