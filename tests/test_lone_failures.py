"""What goes wrong with one learner's files ends nobody else's: not in a class, not
with --from, not in feedback, marks or what goes to an LMS; and what is missing
comes with the next run."""

from __future__ import annotations

import argparse
import json
import stat
from pathlib import Path

import nbformat
import pytest
from commands import put
from nbgrader.api import Gradebook

from course_grader.chapter.build import build_chapter
from course_grader.classroom import lms, nbgrader_api
from course_grader.classroom.demo import answered
from course_grader.classroom.gradebook import marks, reports
from course_grader.classroom.similar import features
from course_grader.commands import exchange
from course_grader.commands import grade as grading_command
from course_grader.course import Course, CourseError

CHAPTER = "03_mini"
RIGHT = {"mean": "def mean(x):\n    return x.mean().item()\n"}


def notebook(course: Course) -> nbformat.NotebookNode:
    grading, _, released = build_chapter(course, CHAPTER)
    return answered(grading, released, RIGHT)


class Lms:
    """Takes marks, but not bob's."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}

    def give(
        self, number: int, user: str, given: float, page: Path | None
    ) -> None:
        if user == "2":
            raise CourseError("Canvas refuses: the user has left the course")
        self.taken[user] = given


def grade(course: Course, **more: object) -> int:
    given = dict.fromkeys(
        ("source", "seed", "scheduler", "again", "all_cells", "yes", "to")
    )
    given |= {"chapter": "03", "workers": 1, "unsandboxed": False, **more}
    return grading_command.grade(course, argparse.Namespace(**given))


def test_a_class(
    mini: Course,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(mini.root)
    classroom = nbgrader_api.open_classroom(mini)
    # formgrader makes it otherwise, with the terminal's umask
    assert stat.S_IMODE((mini.people / "gradebook.db").stat().st_mode) == 0o600
    nbgrader_api.release(classroom, CHAPTER)
    for student in ("ada", "bob", "cleo", "dora"):
        put(mini.root, student, notebook(mini))
    in_the_way = mini.people / "autograded" / "cleo"
    in_the_way.parent.mkdir()
    in_the_way.write_text("no folder")
    read = Path.read_bytes

    def unreadable(path: Path) -> bytes:
        if path.parent.parent.name == "bob":
            raise OSError(5, "Input/output error")
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", unreadable)
        assert grade(mini) == 1
    said = capsys.readouterr().out.replace("\n", " ")
    assert "bob: could not be graded: the file cannot be read (Input" in said
    assert "cleo: could not be graded: its marks cannot be stored" in said
    in_the_way.unlink()
    assert grade(mini) == 0
    assert "2 of them graded already" in capsys.readouterr().out
    assert {one.student: one.points for one in marks(classroom, [CHAPTER])} == {
        **dict.fromkeys(("ada", "bob", "cleo", "dora"), 2)
    }

    # a graded notebook that was damaged later
    graded = mini.people / "autograded" / "bob" / CHAPTER / f"{CHAPTER}.ipynb"
    graded.write_bytes(graded.read_bytes()[:99])
    with pytest.raises(CourseError, match="for bob, but for all others"):
        nbgrader_api.feedback(classroom, CHAPTER)
    pages = mini.people / "feedback"
    for student in ("ada", "cleo", "dora"):
        assert (pages / student / CHAPTER / f"{CHAPTER}.html").is_file()
    looks = {one.student: one.look for one in marks(classroom, [CHAPTER])}
    assert "cannot be read" in looks["bob"]
    assert not looks["ada"]
    assert set(reports(classroom, CHAPTER)) == {"ada", "cleo", "dora"}

    # the LMS does not want one of the marks
    with Gradebook(f"sqlite:///{mini.people}/gradebook.db") as gradebook:
        for number, student in enumerate(("ada", "bob", "cleo"), start=1):
            gradebook.find_student(student).lms_user_id = str(number)
        gradebook.db.commit()
    system = Lms()
    monkeypatch.setattr(lms, "open_system", lambda _: system)
    monkeypatch.setattr(lms, "assignments", lambda _: {CHAPTER: 7})
    parser = argparse.Namespace(chapter="03", send=True, json=False)
    assert exchange.lms(mini, parser) == 1
    assert "bob: not sent. Canvas refuses" in capsys.readouterr().out
    assert system.taken == {"1": 2, "3": 2}


def test_a_folder(
    mini: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, to = tmp_path / "in", tmp_path / "out"
    for student in ("ada", "bob", "eve\u200b", "eve\\u200b"):
        path = folder / student / "answers.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(notebook(mini), path)
    (to / "feedback").mkdir(parents=True)
    (to / "feedback" / "bob").write_text("no folder")

    assert grade(mini, source=folder, to=to) == 1

    said = capsys.readouterr().out
    assert "bob: could not be graded: its results cannot be written" in said
    # two names that look alike are two people
    scores = json.loads((to / "scores.json").read_text())
    assert scores == {"ada": 2, "eve\\u200b": 2, "eve\\u200b'": 2}
    (to / "feedback" / "bob").unlink()
    assert grade(mini, source=folder, to=to) == 0
    said = capsys.readouterr().out
    assert "3 were graded by a run that was stopped" in said
    assert json.loads((to / "scores.json").read_text())["bob"] == 2


def test_similar_answers_are_looked_for_whatever_was_written() -> None:
    """Trees as deep as Python's parser makes them."""
    found = [
        features(cell)
        for number in (500, 990, 1500, 2500)
        for cell in (
            "x = " + "+".join("1" * number),
            "x = a" + ".b" * number,
            "x = f" + "()" * number,
            "x = " + "-" * number + "1",
        )
    ]

    assert len(found) == 16
