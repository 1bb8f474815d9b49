"""Several attempts: with `attempts = "best"` each is graded, and the best counts."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import nbformat
import pytest
from commands import course_says, exported
from nbgrader.api import Gradebook

from course_grader.chapter.build import build_chapter
from course_grader.classroom import attempts, nbgrader_api
from course_grader.classroom.collect_versions import MOST_ATTEMPTS
from course_grader.classroom.demo import answered
from course_grader.course import Course, CourseError

CHAPTER = "03_mini"
DUE = "2026-12-01T12:00:00+00:00"


@pytest.fixture
def best(released: Course, tmp_path: Path) -> Course:
    """A released chapter that is due, ada and bob on the roster."""
    mini = released
    said = mini.settings_file.read_text()
    mini.settings_file.write_text(
        'attempts = "best"\ntimezone = "UTC"\n[late]\npercent_per_day = 10\n'
        + said
    )
    roster = tmp_path / "roster.csv"
    roster.write_text(
        "id,first_name,last_name,email,lms_user_id\n"
        "ada,Ada,Lovelace,ada@example.org,1815\n"
        "bob,Bob,Hope,bob@example.org,1900\n"
    )
    course_says(mini.root, "roster", roster)
    course_says(mini.root, "due", "03", DUE)
    return Course(mini.root)


def notebooks(course: Course) -> dict[int, bytes]:
    """Notebooks that get so many points, of 5."""
    grading, _, released = build_chapter(course, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    wrong = "def {}(*inputs, **more):\n    return None\n"
    return {
        points: nbformat.writes(
            answered(
                grading,
                released,
                {
                    "double": right["double"]
                    if points in (3, 5)
                    else wrong.format("double"),
                    "mean": right["mean"]
                    if points in (2, 5)
                    else wrong.format("mean"),
                },
            )
        ).encode()
        for points in (0, 2, 3, 5)
    }


def submit(course: Course, student: str, when: str, notebook: bytes) -> None:
    """Lays a submission into the exchange, as nbgrader does."""
    inbound = course.people / "exchange" / "pytorch_training_tricks" / "inbound"
    folder = inbound / f"{student}+{CHAPTER}+{when} UTC"
    folder.mkdir()
    (folder / f"{CHAPTER}.ipynb").write_bytes(notebook)
    (folder / "timestamp.txt").write_text(f"{when} UTC")


def trail(course: Course, what: str) -> list[tuple[str, object, object]]:
    lines = (course.people / "marks.jsonl").read_text().splitlines()
    return [
        (one["student"], one["before"], one["after"])
        for one in map(json.loads, lines)
        if one["what"].startswith(what)
    ]


@pytest.mark.slow
def test_the_best_of_what_came_through_the_exchange_counts(
    best: Course, tmp_path: Path
) -> None:
    root, by_points = best.root, notebooks(best)
    # both of ada's before anybody collects; bob's is collected, then improved
    submit(best, "ada", "2026-12-01 10:00:00.000001", by_points[3])
    submit(best, "ada", "2026-12-01 11:00:00.000001", by_points[2])
    submit(best, "bob", "2026-12-01 10:00:00.000001", by_points[2])
    course_says(root, "collect", "03")
    course_says(root, "grade", "03")
    with Gradebook(f"sqlite:///{best.people}/gradebook.db") as gradebook:
        grade = gradebook.find_grade("mean_hidden", CHAPTER, CHAPTER, "bob")
        grade.extra_credit = 0.5
        gradebook.db.commit()
    submit(best, "bob", "2026-12-03 10:00:00.000001", by_points[0])
    course_says(root, "collect", "03")
    status = json.loads(course_says(root, "status", "--json"))[0]
    assert (status["handed_in"], status["graded"]) == (2, 1)
    course_says(root, "grade", "03")

    found = exported(root, "03")
    ada, bob = found["ada"], found["bob"]
    assert (ada["points"], ada["attempt"], ada["attempts"]) == ("3", "1", "2")
    assert ada["handed_in"].startswith("2026-12-01 10:00:00")
    # what a person gave stays with the attempt that it was given to
    assert (bob["points"], bob["attempt"], bob["attempts"]) == ("2.5", "1", "2")
    assert (bob["days_late"], bob["penalty"]) == ("", "")
    assert (ada["double"], ada["mean"]) == ("3", "0")
    totals = json.loads(course_says(root, "total", "--json"))
    assert [one["percent"] for one in totals] == [60, 50]
    canvas = course_says(root, "export", "--format", "canvas")
    assert [row[5] for row in csv.reader(io.StringIO(canvas))][2:] == [
        "3",
        "2.5",
    ]
    status = json.loads(course_says(root, "status", "--json"))[0]
    assert (status["handed_in"], status["graded"]) == (2, 2)
    assert (status["late"], status["missing"]) == (0, None)
    course_says(root, "feedback", "03")
    page = best.people / "feedback" / "bob" / CHAPTER / f"{CHAPTER}.html"
    assert (
        "What counts is attempt 1 of 2 of 2026-12-01 10:00 UTC, with 2.5 points"
        in page.read_text()
    )
    assert trail(best, "attempt") == [("ada", None, 3.0), ("bob", None, 2.5)]

    # grading all of it again loses nothing, and neither does a backup
    said = course_says(root, "grade", "03", "--again", "--yes")
    assert "4 submissions, 4 of them graded already" in said
    assert exported(root, "03")["bob"]["points"] == "2.5"
    assert len(trail(best, "attempt")) == 2
    course_says(root, "extend", "1", "ada", "--chapter", "03")
    course_says(root, "backup", tmp_path / "class.tar.gz")
    course_says(root, "new-term", "before")
    course_says(root, "restore", tmp_path / "class.tar.gz")
    found = exported(root, "03")
    assert (found["ada"]["points"], found["bob"]["points"]) == ("3", "2.5")
    assert "ada: 1 day more" in course_says(root, "due", "03")
    assert len(trail(best, "attempt")) == 2

    # the newest counts again, once the instructor says so
    said = best.settings_file.read_text()
    best.settings_file.write_text(said.replace('"best"', '"last"'))
    found = exported(root, "03")
    assert (found["ada"]["points"], found["bob"]["attempt"]) == ("2", "2")
    course_says(root, "forget", "bob", "--yes")
    assert not list(best.people.rglob("*bob*"))


@pytest.mark.slow
def test_the_best_of_what_came_in_archives_counts(
    best: Course, tmp_path: Path
) -> None:
    """Late work counts where it is better all the same; a file that cannot be
    graded takes nothing away, and is named."""
    root, by_points = best.root, notebooks(best)
    for number, (when, ada, bob) in enumerate(
        (
            ("2026-12-01 10:00", by_points[2], by_points[5]),
            ("2026-12-02 10:00", by_points[3], b"no notebook"),
            ("2026-12-03 10:00", by_points[2], by_points[5]),
        )
    ):
        download = tmp_path / f"submissions{number}.zip"
        with zipfile.ZipFile(download, "w") as archive:
            for name, user, notebook in (
                ("lovelaceada", 1815, ada),
                ("hopebob", 1900, bob),
            ):
                archive.writestr(
                    f"{name}_{user}_9000{number}_{CHAPTER}-{number}.ipynb",
                    notebook,
                )
        said = ("collect", "--zip", download, "--handed-in", when)
        course_says(root, *said)
        if number == 1:
            course_says(root, "grade", "03", code=3)
            found = exported(root, "03")
            assert found["bob"]["points"] == "5"
            assert found["bob"]["look_at"]
    course_says(root, "grade", "03")
    found = exported(root, "03")
    ada, bob = found["ada"], found["bob"]
    assert (ada["points"], ada["attempt"], ada["penalty"]) == (
        "2.7",
        "2",
        "0.3",
    )
    assert (bob["points"], bob["attempt"], bob["days_late"]) == ("5", "1", "")
    # more time makes the late one dearer by nothing
    course_says(root, "extend", "1", "ada", "--chapter", "03")
    assert exported(root, "03")["ada"]["points"] == "3"


def test_of_many_attempts_the_last_ones_are_graded(best: Course) -> None:
    """Thousands of notebooks of one learner keep nobody waiting; nothing is lost."""
    root, by_points = best.root, notebooks(best)
    for number in range(MOST_ATTEMPTS + 4):
        submit(
            best,
            "ada",
            f"2026-12-01 10:{number:02}:00.000001",
            by_points[0] + b" " * number,
        )
    submit(best, "bob", "2026-12-01 10:00:00.000001", by_points[5])

    said = course_says(root, "collect", "03", code=3)
    assert "The oldest 3 attempts stay in the exchange" in " ".join(
        said.split()
    )
    classroom = nbgrader_api.open_classroom(best)
    jobs = list(attempts.to_grade(classroom.coursedir, CHAPTER, ["ada", "bob"]))
    assert len(jobs) == MOST_ATTEMPTS

    # collected on other days
    submitted = best.people / "submitted" / "ada" / CHAPTER
    versions = best.people / "versions" / "ada" / CHAPTER
    for number in range(2):
        there = versions / f"2026-11-0{number + 1}T00-00-00.000000Z"
        shutil.copytree(submitted, there)
        (there / f"{CHAPTER}.ipynb").write_bytes(b"{}" + b" " * number)
        (there / "timestamp.txt").write_text(
            f"2026-11-0{number + 1} 00:00:00 UTC"
        )
    jobs = list(attempts.to_grade(classroom.coursedir, CHAPTER, ["ada"]))
    assert len(jobs) == MOST_ATTEMPTS
    assert all("2026-12-01" in one.path.parent.name for one in jobs)
    passed = attempts.num_passed_over(classroom.coursedir, CHAPTER, "ada")
    assert passed == 2


def test_what_attempts_may_be_is_said(mini: Course) -> None:
    said = mini.settings_file.read_text()
    mini.settings_file.write_text('attempts = "first"\n' + said)
    with pytest.raises(CourseError, match='"best" or "last"'):
        _ = Course(mini.root).best_attempt_counts
