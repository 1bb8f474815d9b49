"""People's work and marks are their owner's alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import nbformat
import pytest
from commands import run_course
from test_folder import RIGHT, hand_in, notebook

from course_grader.course import Course

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX modes")


def others(folder: Path) -> dict[str, str]:
    """What others than the owner may do with what they can reach."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        mode = path.lstat().st_mode
        if mode & 0o077 and not path.is_symlink():
            found[str(path.relative_to(folder))] = stat.filemode(mode)
    return found


def run(root: Path, *arguments: object) -> None:
    done = run_course(root, *arguments, umask=0)
    assert done.returncode == 0, done.stdout + done.stderr


def test_results_of_a_folder(mini: Course, tmp_path: Path) -> None:
    hand_in(tmp_path / "in", "ada", nbformat.writes(notebook(mini, **RIGHT)))
    to = tmp_path / "out"

    run(mini.root, "grade", "03", "--from", tmp_path / "in", "--to", to)

    assert (to / "feedback" / "ada" / "03_mini.html").exists()
    assert others(to) == {}


def test_gradebook_graded_work_and_backup(mini: Course, tmp_path: Path) -> None:
    root = mini.root
    run(root, "release")
    place = mini.people / "submitted" / "ada" / "03_mini" / "03_mini.ipynb"
    place.parent.mkdir(parents=True)
    place.write_text(nbformat.writes(notebook(mini, **RIGHT)))
    backup = tmp_path / "class.tar.gz"
    marks = tmp_path / "marks.csv"

    run(root, "grade", "03")
    run(root, "export", "03", "--to", marks)
    run(root, "backup", backup)

    assert others(mini.people / "gradebook.db") == {}
    assert others(mini.people / "autograded") == {}
    assert mini.people.joinpath("submitted").stat().st_mode & 0o077 == 0
    assert others(marks) == {}
    assert others(backup) == {}
