"""An instructor's day, by the commands that an instructor and learners type."""

from __future__ import annotations

import ctypes
import hashlib
import os
import select
import shutil
import signal
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest
from commands import (
    SCRIPTS,
    course_says,
    environment,
    exported,
    points,
    run_course,
    run_nbgrader,
)
from nbgrader.api import Gradebook

from course_grader.chapter.build import build_chapter
from course_grader.chapter.grading import Grading
from course_grader.classroom.demo import answered
from course_grader.course import Course

CHAPTER = "03_mini"
COURSE_ID = "pytorch_training_tricks"
NOISY = """\
import logging
import os
import sys
import warnings

logging.basicConfig()
print("starting", file=sys.stderr)


def double(x, times=1):
    print("doubling")
    print("careful", file=sys.stderr)
    warnings.warn("beware")
    logging.warning("a handler keeps the stream it was made with")
    os.write(2, b"past Python's streams")
    if times < 0:
        raise ValueError("negative")
    return x * 2**times
"""
BY_METHOD = "def mean(x):\n    return x.mean().item()\n"
STOCK = (
    "--Autograde.exporter_class=nbconvert.exporters.NotebookExporter",
    *(
        f"--Autograde.autograde_preprocessors=nbgrader.preprocessors.{one}"
        for one in ("Execute", "LimitOutput", "SaveAutoGrades")
    ),
)


def notebook(course: Course, **chosen: str) -> bytes:
    """The chapter's notebook with answers in it: code, or names of the bank's
    answers."""
    grading, _, released = build_chapter(course, CHAPTER)
    cells = {
        exercise: bank_cell(grading, code) if code.isidentifier() else code
        for exercise, code in chosen.items()
    }
    return nbformat.writes(answered(grading, released, cells)).encode()


def bank_cell(grading: Grading, name: str) -> str:
    (answer,) = (one for one in grading.answers if one.name == name)
    return grading.answer_cell(answer)


def submitted(course: Course, student: str) -> Path:
    folder = course.people / "submitted" / student / CHAPTER
    return folder / f"{CHAPTER}.ipynb"


def put(course: Course, student: str, content: bytes) -> None:
    """Collected work, as it lies in the course's folder."""
    path = submitted(course, student)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def nbgrader_says(
    course: Course, *arguments: str, home: Path | None = None, code: int = 0
) -> str:
    done = run_nbgrader(course.root, *arguments, home=home)
    assert done.returncode == code, done.stdout
    return done.stdout


def hand_in(course: Course, home: Path, content: bytes) -> None:
    """A learner saves the notebook and submits it."""
    (home / "work" / CHAPTER / f"{CHAPTER}.ipynb").write_bytes(content)
    nbgrader_says(course, "submit", CHAPTER, home=home)


def test_a_term_day(mini: Course, tmp_path: Path) -> None:
    root = mini.root
    assert "03_mini: released" in course_says(root, "release")

    # two learners fetch, work and submit; two hand in by an LMS
    homes = {name: tmp_path / name for name in ("ada", "bob")}
    for home in homes.values():
        home.mkdir()
        nbgrader_says(mini, "fetch_assignment", CHAPTER, home=home)
    hand_in(mini, homes["ada"], notebook(mini, double=NOISY, mean=BY_METHOD))
    hand_in(mini, homes["bob"], notebook(mini, double="once", mean="by_method"))
    downloaded = tmp_path / "downloaded.zip"
    with zipfile.ZipFile(downloaded, "w") as archive:
        archive.writestr(
            "carol/Copy of 03 mini (1).ipynb", notebook(mini, mean="the_sum")
        )
        archive.writestr("dan/03_mini.ipynb", b"\x00\x01\x02 no notebook")
        archive.writestr("erin/holiday.ipynb", notebook(mini))

    said = course_says(root, "collect", "03")
    assert "ada: Collected." in said
    assert "bob: Collected." in said
    said = course_says(
        root, "collect", "--zip", downloaded, "--add-students", code=3
    )
    lines = {line.partition(":")[0]: line for line in said.splitlines()}
    assert {"carol", "dan", "erin"} <= set(lines)
    assert "holiday" in lines["erin"]
    before = digests(mini.people / "submitted")
    assert {path.split("/")[0] for path in before} == {
        "ada",
        "bob",
        "carol",
        "dan",
    }

    # grading: partial credit by weight, one sentence for the file that is none
    said = course_says(root, "grade", "03", "--seed", "1", code=3)
    assert "4 submissions, 0 of them graded already" in said
    assert "ada: 5 of 5 points" in said
    assert "bob: 3.5 of 5 points" in said
    assert "carol: 0 of 5 points" in said
    (about_dan,) = [one for one in said.splitlines() if one[:4] == "dan:"]
    assert about_dan.endswith(".")
    assert "points" not in about_dan
    # what could not be graded has no mark, and says why
    expected = {"ada": 5.0, "bob": 3.5, "carol": 0.0}
    assert points(root, "03") == expected
    assert about_dan.endswith(exported(root, "03")["dan"]["look_at"])
    bob = exported(root, "03")["bob"]
    assert (bob["double"], bob["mean"], bob["max_points"]) == ("1.5", "2", "5")

    # a second grading finds nothing to do
    autograded = digests(mini.people / "autograded")
    said = course_says(root, "grade", "03")
    assert "4 submissions, 4 of them graded already" in said
    assert " points" not in said
    assert digests(mini.people / "autograded") == autograded

    # a page for each, and to the learners who came by the exchange
    course_says(root, "feedback", "03")
    pages = {
        student: mini.people
        / "feedback"
        / student
        / CHAPTER
        / f"{CHAPTER}.html"
        for student in (*expected, "dan")
    }
    assert "You ignored times." in pages["bob"].read_text(encoding="utf-8")
    assert about_dan.partition(": ")[2] in pages["dan"].read_text(
        encoding="utf-8"
    ).replace("&#39;", "'")
    for student, home in homes.items():
        nbgrader_says(mini, "fetch_feedback", CHAPTER, home=home)
        (fetched,) = (home / "work" / CHAPTER / "feedback").rglob("*.html")
        assert fetched.read_bytes() == pages[student].read_bytes()

    # bob hands in again: the newer one counts, the older one is kept
    first = submitted(mini, "bob").read_bytes()
    hand_in(mini, homes["bob"], notebook(mini, double=NOISY, mean=BY_METHOD))
    assert "bob: Updated" in course_says(root, "collect", "03")
    (kept,) = (mini.people / "versions" / "bob").rglob("*.ipynb")
    assert kept.read_bytes() == first
    said = course_says(root, "grade", "03")
    assert "4 submissions, 3 of them graded already" in said
    assert "bob: 5 of 5 points" in said
    assert points(root, "03") == {**expected, "bob": 5.0}

    # and the same once more: it gets feedback of its own
    hand_in(mini, homes["bob"], notebook(mini, double=NOISY, mean=BY_METHOD))
    assert "bob: Updated" in course_says(root, "collect", "03")
    said = course_says(root, "grade", "03")
    assert "4 submissions, 3 of them graded already" in said
    course_says(root, "feedback", "03")
    nbgrader_says(mini, "fetch_feedback", CHAPTER, home=homes["bob"])
    fetched = (homes["bob"] / "work" / CHAPTER / "feedback").rglob("*.html")
    assert len(list(fetched)) == 2  # of the first, and of this one

    after = digests(mini.people / "submitted")
    assert {k: v for k, v in after.items() if not k.startswith("bob")} == {
        k: v for k, v in before.items() if not k.startswith("bob")
    }
    row = next(
        line
        for line in course_says(root, "status").splitlines()
        if CHAPTER in line
    )
    # never due, so neither a date nor anybody missing
    assert row.split() == [CHAPTER, "yes", "4", "0", "4", "1", "4"]


def graded_by_hand(course: Course, student: str) -> tuple[float, float, str]:
    """(total, the manual mark of `double`, the comment on it) in the
    gradebook."""
    with Gradebook(f"sqlite:///{course.people}/gradebook.db") as gradebook:
        place = (CHAPTER, CHAPTER, student)
        return (
            gradebook.find_submission(CHAPTER, student).score,
            gradebook.find_grade("double_hidden", *place).manual_score,
            gradebook.find_comment("double", *place).manual_comment,
        )


def without_override() -> None:
    """Takes from root the right to write read-only files, which nobody else
    has."""
    dac_override, drop = 1, 24
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(drop, dac_override, 0, 0, 0) == 0


@pytest.mark.slow
def test_all_routes_agree_and_what_a_person_gave_stays(
    released: Course,
) -> None:
    mini, root = released, released.root
    put(mini, "ada", notebook(mini, double=NOISY, mean="by_method"))
    put(mini, "bob", notebook(mini, double="once", mean=BY_METHOD))
    put(mini, "cleo", notebook(mini, double="in_place", mean="the_sum"))
    put(mini, "dan", b"\x00\x01\x02 no notebook")
    put(mini, "eve", notebook(mini))
    before = digests(mini.people / "submitted")
    # dan has no mark: somebody is to look at the file
    expected = {"ada": 5.0, "bob": 3.5, "cleo": 2.0, "eve": 0.0}

    # nbgrader's command line with the course's settings
    said = nbgrader_says(mini, "autograde", CHAPTER)
    assert "Traceback" not in said
    assert points(root, "03") == expected
    (about_dan,) = [line for line in said.splitlines() if " dan: " in line]

    # the course's command, over the read-only files that nbgrader leaves
    left = mini.people / "autograded" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    assert left.stat().st_mode & 0o777 == 0o444
    done = run_course(
        root,
        *("grade", "03", "--again", "--yes"),
        preexec_fn=without_override,
    )
    # somebody is to look at dan's file
    assert done.returncode == 3, done.stdout + done.stderr
    assert points(root, "03") == expected
    assert about_dan.partition(" dan: ")[2] in done.stdout

    # a person looks at one of them
    with Gradebook(f"sqlite:///{mini.people}/gradebook.db") as gradebook:
        place = (CHAPTER, CHAPTER, "bob")
        gradebook.find_grade("double_hidden", *place).manual_score = 2.5
        comment = gradebook.find_comment("double", *place)
        comment.manual_comment = "Nearly: see times."
        gradebook.db.commit()
    by_hand = (4.5, 2.5, "Nearly: see times.")
    expected["bob"] = 4.5
    course_says(root, "grade", "03", "--again", "--yes", code=3)
    assert graded_by_hand(mini, "bob") == by_hand
    assert "still hold" in exported(root, "03")["bob"]["look_at"]
    nbgrader_says(mini, "autograde", CHAPTER, "--force")
    assert graded_by_hand(mini, "bob") == by_hand
    assert points(root, "03") == expected

    # nbgrader's own Execute, which cannot read dan's file
    shutil.move(mini.people / "submitted" / "dan", root / "dan.out.of.the.way")
    nbgrader_says(mini, "autograde", CHAPTER, "--force", *STOCK)
    assert points(root, "03") == expected
    assert graded_by_hand(mini, "bob") == by_hand
    shutil.move(root / "dan.out.of.the.way", mini.people / "submitted" / "dan")
    assert digests(mini.people / "submitted") == before


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [
        int(one)
        for task in tasks
        for one in (task / "children").read_text().split()
    ]


def test_a_run_that_was_killed_continues(released: Course) -> None:
    mini, root = released, released.root
    students = ["ada", "bob", "cleo", "dora", "emil", "fred"]
    for student in students:
        put(mini, student, notebook(mini, double="once", mean="by_method"))
    with subprocess.Popen(
        [SCRIPTS / "course", "grade", "03", "--workers", "1"],
        cwd=root,
        env=environment(activated=False),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        seen = 0
        for line in running.stdout:
            seen += " of 5 points" in line
            if seen == 2:  # the first of them is stored
                break
        graders = [os.pidfd_open(pid) for pid in children_of(running.pid)]
        running.send_signal(signal.SIGKILL)
    assert graders
    for grader in graders:  # nothing of the killed run is left running
        assert select.select([grader], [], [], 60)[0]
        os.close(grader)

    said = course_says(root, "grade", "03")
    done = int(said.partition(" submissions, ")[2].partition(" of them")[0])
    assert 1 <= done < len(students)
    assert said.count(" of 5 points") == len(students) - done
    assert points(root, "03") == dict.fromkeys(students, 3.5)
    assert "6 of them graded already" in course_says(root, "grade", "03")


def test_the_demo_shows_a_whole_day(mini: Course) -> None:
    done = run_course(mini.root, "demo")

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no library has a word to say
    table = done.stdout.partition(" Marks ")[2]
    rows = [one for one in table.splitlines() if " of 5" in one]
    assert len(rows) == 20
    assert len({row.split("│")[2] for row in rows}) > 3
    folder = mini.root / "build" / "demo"
    assert str(folder / "grades.csv") in table
    assert len((folder / "grades.csv").read_text().splitlines()) == 21
    pages = list(folder.glob(f"class/feedback/*/{CHAPTER}/{CHAPTER}.html"))
    assert len(pages) == 20
    for page in (f"{CHAPTER}.html", f"ada/{CHAPTER}/{CHAPTER}.html"):
        path = folder / "class" / "feedback" / page
        assert str(path) in table
        assert path.is_file()
    assert course_says(
        folder, "status"
    )  # as `course teach`, a course of its own
    assert not (mini.people / "gradebook.db").exists()  # the class's own


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("grade", "99"), "There is no chapter '99'"),
        (("release", "03_minim"), "There is no chapter '03_minim'"),
        (("feedback", "nothing"), "There is no chapter 'nothing'"),
        (("collect",), "which chapter"),
    ],
)
def test_a_chapter_that_is_not_there(
    mini: Course, typed: tuple[str, ...], said: str
) -> None:
    answer = course_says(mini.root, *typed, code=2)

    assert said in answer
    assert answer.count("\n") == 1


def test_work_of_somebody_who_is_not_on_the_roster(
    mini: Course, tmp_path: Path
) -> None:
    archive = tmp_path / "bad.zip"
    archive.write_bytes(b"no archive")
    with zipfile.ZipFile(tmp_path / "good.zip", "w") as good:
        good.writestr("stranger/03_mini.ipynb", notebook(mini))

    said = course_says(
        mini.root, "collect", "--zip", archive, tmp_path / "good.zip", code=1
    )

    about_archive, about_stranger = said.splitlines()[:2]
    assert about_archive.startswith("bad.zip is not collected")
    assert about_stranger.startswith("stranger: ")
    assert not (mini.people / "submitted").exists()
    (kept,) = (mini.people / "versions").rglob("*.ipynb")
    assert "_unknown" in kept.parts

    (tmp_path / "empty").mkdir()
    done = run_course(mini.root, "collect", "--zip", tmp_path / "empty")
    assert done.returncode == 3
    assert "No notebook was found in" in done.stderr
    said = course_says(mini.root, "collect", "03", code=2)
    assert "Nothing was released yet" in said


def test_grading_a_chapter_that_was_never_released(mini: Course) -> None:
    put(mini, "ada", notebook(mini))

    said = course_says(mini.root, "grade", "03", code=2)

    assert said.splitlines()[-1].endswith(
        "The gradebook does not know 03_mini: run `course release 03_mini` "
        "first."
    )


def test_a_late_submission_costs_what_nbgrader_says(mini: Course) -> None:
    """The course's own grading goes through nbgrader's late penalties too."""
    root = mini.root
    config = mini.autograde / "nbgrader_config.py"
    config.write_text(
        config.read_text()
        + "\nc.LateSubmissionPlugin.penalty_method = 'zero'\n"
    )
    course_says(root, "release")
    for student, day in (("ada", 1), ("bob", 3)):
        put(mini, student, notebook(mini, mean="by_method"))
        when = datetime(2026, 3, day, 12, tzinfo=UTC)
        stamp = submitted(mini, student).parent / "timestamp.txt"
        stamp.write_text(when.strftime("%Y-%m-%d %H:%M:%S.%f UTC"))
    with Gradebook(f"sqlite:///{mini.people}/gradebook.db") as gradebook:
        assignment = gradebook.find_assignment(CHAPTER)
        assignment.duedate = datetime(2026, 3, 2, 12)
        gradebook.db.commit()

    course_says(root, "grade", "03")

    assert points(root, "03") == {"ada": 2.0, "bob": 0.0}
