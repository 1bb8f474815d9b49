"""A term: due dates, extensions, what being late costs, marks for an LMS, solutions
after the deadline."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import nbformat
import pytest
from commands import course_says, points, run_nbgrader, without_ports
from nbclient import NotebookClient

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course

CHAPTER = "03_mini"
ROSTER = (
    "id,first_name,last_name,email,lms_user_id\n"
    "ada,Ada,Lovelace,ada@example.org,1815\n"
    'bob,=Bob,"O\'Hara, Jr",bob@example.org,1900\n'
)


@pytest.fixture
def term(mini: Course, tmp_path: Path) -> Course:
    """A released chapter, a roster, and three who hand in: on the 1st of December at
    noon, 20 hours later, and three days later."""
    with (mini.autograde / "nbgrader_config.py").open("a") as settings:
        settings.write(
            "c.AssignLatePenalties.plugin_class = "
            '"course_grader.classroom.term.PenaltyPerDay"\n'
            "c.PenaltyPerDay.percent = 10\n"
        )
    course_says(mini.root, "release")
    roster = tmp_path / "roster.csv"
    roster.write_text(ROSTER)
    done = run_nbgrader(mini.root, "db", "student", "import", str(roster))
    assert done.returncode == 0, done.stdout
    grading, _, released = build_chapter(mini, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    for student, when in (
        ("ada", "2026-12-01 12:00:00"),
        ("bob", "2026-12-02 08:00:00"),
        ("cleo", "2026-12-04 13:00:00"),
    ):
        folder = mini.autograde / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        nbformat.write(
            answered(grading, released, right), folder / f"{CHAPTER}.ipynb"
        )
        (folder / "timestamp.txt").write_text(f"{when}.000000 UTC")
    return mini


def test_late_work_loses_a_share_for_every_day(term: Course) -> None:
    root = term.root
    assert "03_mini: no due date" in course_says(root, "due", "03")
    course_says(root, "grade", "03")
    assert points(root, "03") == {"ada": 5, "bob": 5, "cleo": 5}

    # set after grading: nobody need be graded again
    said = course_says(root, "due", "03", "2026-12-01T13:00+01:00")
    assert "03_mini: due" in said
    assert points(root, "03") == {"ada": 5, "bob": 4.5, "cleo": 3.0}
    course_says(root, "due", "03", "--extend", "cleo", "2.5")
    assert points(root, "03") == {"ada": 5, "bob": 4.5, "cleo": 4.5}
    course_says(root, "grade", "03", "--again", "--yes")
    assert points(root, "03") == {"ada": 5, "bob": 4.5, "cleo": 4.5}

    assert "is no date" in course_says(root, "due", "03", "soon", code=2)
    said = course_says(root, "due", "03", "--extend", "dan", "1", code=2)
    assert "holds nothing of dan" in said


def test_an_lms_gets_marks_with_its_own_ids(term: Course) -> None:
    root = term.root
    course_says(root, "grade", "03")
    canvas = list(
        csv.reader(
            io.StringIO(course_says(root, "export", "--format", "canvas"))
        )
    )
    assert canvas == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", CHAPTER],
        ["    Points Possible", "", "", "", "", "5"],
        ["Lovelace, Ada", "1815", "", "ada", "", "5"],
        ["O'Hara, Jr, =Bob", "1900", "", "bob", "", "5"],
        ["cleo", "", "", "cleo", "", "5"],
    ]
    moodle = list(
        csv.DictReader(
            io.StringIO(course_says(root, "export", "--format", "moodle"))
        )
    )
    assert moodle[0] == {
        "First name": "Ada",
        "Last name": "Lovelace",
        "ID number": "1815",
        "Email address": "ada@example.org",
        CHAPTER: "5",
    }
    assert moodle[1]["First name"] == "'=Bob"  # no formula for a spreadsheet


def test_solutions_come_after_the_deadline(
    term: Course, tmp_path: Path
) -> None:
    root, to = term.root, tmp_path / "solved"
    refused = course_says(root, "solutions", "03", "--to", to, code=2)
    assert "no due date that has passed" in refused
    assert not to.exists()
    course_says(root, "due", "03", "2999-01-01")
    course_says(root, "solutions", "03", "--to", to, code=2)
    course_says(root, "due", "03", "2020-01-01")
    course_says(root, "solutions", "03", "--to", to)

    solved = nbformat.read(to / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    nbformat.validate(solved)
    text = nbformat.writes(solved)
    for word in ("SOLUTION", "HIDDEN", "nbgrader", "course_grader"):
        assert word not in text
    assert "return x * 2**times" in text
    NotebookClient(solved, timeout=120, config=without_ports()).execute()
    printed = "".join(
        one.get("text", "")
        for cell in solved.cells
        for one in cell.get("outputs", [])
    )
    assert printed.count("looks right") == 2
