"""The disk that holds the class is full: each command says one sentence, and what was
there before is there afterwards. The disk is a small one in a mount namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from commands import SCRIPTS, course_says, environment
from mini_course import write_mini

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course
from course_grader.needs import NO_SPACE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not hasattr(os, "geteuid")
        or os.geteuid() != 0
        or shutil.which("nsenter") is None,
        reason="only root can mount a disk",
    ),
]

CHAPTER = "03_mini"


@dataclass(frozen=True)
class Disk:
    """A course whose class lies on a small disk, in the namespace of a process."""

    course: Course
    pid: int

    def run(self, *command: object) -> subprocess.CompletedProcess[str]:
        """What somebody types who sees that disk."""
        return subprocess.run(
            [
                *("nsenter", "--mount", f"--target={self.pid}"),
                *map(str, command),
            ],
            env=environment() | {"COURSE_ROOT": str(self.course.root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def says(self, *arguments: object, code: int = 0) -> str:
        """What a `course` command prints; it ends with this code, and with no
        traceback."""
        done = self.run(SCRIPTS / "course", *arguments)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        assert "Traceback" not in said, said
        return " ".join(said.split())

    @property
    def filler(self) -> Path:
        return self.course.people / "filler"

    def fill(self) -> None:
        """Until nothing goes onto it any more."""
        done = self.run("dd", "if=/dev/zero", f"of={self.filler}", "bs=4k")
        assert "No space left" in done.stderr

    def free(self) -> None:
        self.run("rm", self.filler)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    course = write_mini(tmp_path / "mini")
    course_says(course.root, "release")
    was = tmp_path / "was"
    course.people.rename(was)
    course.people.mkdir()
    mount = (
        f"mount -t tmpfs -o size=8m tmpfs {course.people} && "
        f"cp -a {was}/. {course.people} && echo ready && exec sleep infinity"
    )
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", mount],
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yield Disk(course, holder.pid)
        holder.kill()


def test_a_full_disk_costs_nobody_anything(disk: Disk, tmp_path: Path) -> None:
    grading, _, released = build_chapter(disk.course, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    work = nbformat.writes(answered(grading, released, right))
    notebook = tmp_path / "work.ipynb"
    notebook.write_text(work)
    download = tmp_path / "download.zip"
    with zipfile.ZipFile(download, "w") as archive:
        archive.writestr(f"ada/{CHAPTER}.ipynb", work)
    place = (
        disk.course.people
        / "exchange/pytorch_training_tricks/inbound"
        / f"bob+{CHAPTER}+2026-11-20 10:00:00 UTC"
    )
    disk.run("mkdir", place)
    disk.run("cp", notebook, place / f"{CHAPTER}.ipynb")
    disk.run(
        "sh", "-c", f"echo 2026-11-20 10:00:00 UTC >'{place}/timestamp.txt'"
    )

    no_space = "No space left on device"
    by_zip = ("collect", "--zip", download, "--add-students")
    disk.fill()
    assert no_space in disk.says(*by_zip, code=3)
    assert no_space in disk.says("collect", "03", code=3)
    disk.free()
    assert "ada: Collected" in disk.says(*by_zip)
    assert "bob: Collected" in disk.says("collect", "03")

    disk.fill()
    said = disk.says("grade", "03", code=1)
    for student in ("ada", "bob"):
        assert (
            f"{student}: could not be graded: its marks cannot be stored (there "
            "is no space left on the disk); grade it again"
        ) in said
    disk.free()
    assert "ada: 5 of 5 points" in disk.says("grade", "03")

    disk.fill()
    assert NO_SPACE in disk.says("feedback", "03", code=2)
    for command in (
        ("due", "03", "2026-12-01"),
        ("export", "--to", disk.course.people / "marks.csv"),
        ("backup", disk.course.people / "class.tar.gz"),
        ("report",),
        ("release",),
    ):
        assert NO_SPACE in disk.says(*command, code=1)
    disk.free()
    disk.says("feedback", "03")
    for student in ("ada", "bob"):
        page = disk.course.people / "feedback" / student / CHAPTER
        assert "5" in disk.run("cat", page / f"{CHAPTER}.html").stdout
        kept = disk.course.people / "submitted" / student / CHAPTER
        assert disk.run("cat", kept / f"{CHAPTER}.ipynb").stdout == work
    exported = disk.says("export", "03")
    assert exported.count(",5,5,") == 2
