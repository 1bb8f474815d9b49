"""The gradebook in SQLite and in PostgreSQL: nothing is lost where many write, and
a backup brings all of it back."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import nbgrader.api
import pytest
from commands import course_says, exported, points, put
from mini_course import write_mini
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import SaveAutoGrades
from sqlalchemy import text

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.classroom.gradebook import (
    Graded,
    open_gradebook,
    submissions,
)
from course_grader.classroom.nbgrader_api import open_classroom
from course_grader.course import Course

CHAPTER = "03_mini"
STUDENTS = [f"student{n:02}" for n in range(12)]
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
needs_postgresql = pytest.mark.skipif(
    not PROGRAMS, reason="no PostgreSQL on this machine"
)

GRADES_BY_HAND = """
import sys
from nbgrader.api import Gradebook
url, student = sys.argv[1:]
for times in range(8):
    with Gradebook(url, "pytorch_training_tricks") as gradebook:
        grade = gradebook.find_submission_notebook(
            "03_mini", "03_mini", student
        ).grades[0]
        grade.extra_credit = (grade.extra_credit or 0) + 1
        gradebook.db.commit()
"""


def test_a_new_gradebook_starts_no_program(
    mini: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Gradebook(f"sqlite:///{tmp_path}/its_own.db") as its_own:
        version = text("SELECT version_num FROM alembic_version")
        wanted = its_own.db.execute(version).all()

    def refuse() -> str:
        raise AssertionError("nbgrader starts Alembic's program")

    monkeypatch.setattr(nbgrader.api, "get_alembic_version", refuse)
    with open_gradebook(open_classroom(mini)) as opened:
        assert opened.gradebook.db.execute(version).all() == wanted
        assert not opened.gradebook.students
    # a second command finds it begun
    open_classroom(mini)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server of its own: the URL of its empty database."""
    folder = tmp_path_factory.mktemp("postgresql")
    as_somebody: list[str] = []
    if os.geteuid() == 0:  # it refuses to run as root
        somebody = pwd.getpwnam("postgres")
        os.chown(folder, somebody.pw_uid, somebody.pw_gid)
        for above in folder.parents:
            if above.owner() == "root" and str(above).startswith("/tmp/"):
                above.chmod(above.stat().st_mode | 0o011)
        as_somebody = ["setpriv", "--reuid=postgres", "--regid=postgres"]
        as_somebody += ["--init-groups"]
    data = folder / "data"

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [*as_somebody, str(PROGRAMS[-1] / program), *arguments],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    run("initdb", "-D", str(data), "-U", "grader", "-A", "trust", "-E", "UTF8")
    # a socket in its own folder, and no port: two servers never meet
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    run(
        "pg_ctl",
        "-D",
        str(data),
        "-w",
        "-o",
        options,
        "-l",
        str(folder / "log"),
        "start",
    )
    yield f"postgresql+psycopg://grader@/postgres?host={folder}"
    run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


@pytest.fixture
def in_postgresql(mini: Course, server: str) -> Course:
    """The small course, its gradebook in PostgreSQL."""
    settings = mini.autograde / "nbgrader_config.py"
    with settings.open("a", encoding="utf-8") as file:
        file.write(f"c.CourseDirectory.db_url = {server!r}\n")
    return mini


def hand_in(course: Course) -> None:
    grading, _, released = build_chapter(course, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    for number, student in enumerate(STUDENTS):
        chosen = right if number % 2 else {"mean": right["mean"]}
        put(course.root, student, answered(grading, released, chosen))


def expected() -> dict[str, float]:
    return {
        student: 5.0 if number % 2 else 2.0
        for number, student in enumerate(STUDENTS)
    }


def graded(
    course: Course, points: dict[str, float], answers: tuple[str, ...]
) -> str:
    """A graded notebook of the small course: the points, and what is answered."""
    _, _, released = build_chapter(course, CHAPTER)
    for cell in released.cells:
        known = cell.metadata.get("nbgrader", {})
        if known.get("grade"):
            given = points.get(known["grade_id"].removesuffix("_hidden"))
            if given is not None:
                data = {"text/plain": str(given)}
                cell.outputs = [new_output("execute_result", data)]
        elif known.get("solution") and known["grade_id"] in answers:
            cell.source += "\n# answered"
    return nbformat.writes(released, version=4)


def stored(gradebook: Gradebook, student: str) -> dict[str, list[tuple]]:
    """All that a gradebook holds of one submission, without its rows' ids."""
    submission = gradebook.find_submission(CHAPTER, student)
    (notebook,) = submission.notebooks
    return {
        "when": [(submission.timestamp, submission.extension)],
        "grades": sorted(
            (
                one.name,
                one.auto_score,
                one.manual_score,
                one.extra_credit,
                one.needs_manual_grade,
            )
            for one in notebook.grades
        ),
        "comments": sorted(
            (one.name, one.auto_comment, one.manual_comment)
            for one in notebook.comments
        ),
    }


# nbgrader 0.9.6 builds its rows in an order that SQLAlchemy 2.1 frowns on
@pytest.mark.filterwarnings("ignore:Object of type")
def test_marks_are_stored_as_nbgraders_own_steps_store_them(
    released: Course,
) -> None:
    """Ours writes its rows at once: ada's; bob's are written by nbgrader."""
    mini = released
    classroom = open_classroom(mini)
    coursedir = classroom.coursedir

    def store(points: dict[str, float], *answers: str) -> None:
        text = graded(mini, points, answers)
        folder = classroom.folder("submitted", "ada", CHAPTER)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{CHAPTER}.ipynb").write_text(text)
        (folder / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
        (ada,) = submissions(classroom, CHAPTER)
        with open_gradebook(classroom) as book:
            book.save(CHAPTER, [Graded(ada, text.encode(), text)])
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            gradebook.update_or_create_student("bob")
            gradebook.update_or_create_submission(
                CHAPTER, "bob", timestamp="2026-03-01 12:00:00 UTC"
            )
        about = {"notebook": CHAPTER, "assignment": CHAPTER, "student": "bob"}
        SaveAutoGrades().preprocess(
            nbformat.reads(text, as_version=4),
            {"nbgrader": {**about, "db_url": coursedir.db_url}},
        )

    def compare() -> dict[str, list[tuple]]:
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            ours, theirs = (stored(gradebook, who) for who in ("ada", "bob"))
        assert ours == theirs
        return ours

    store({"double": 1.5, "mean": 2.0}, "double")
    first = compare()
    assert {one[:2] for one in first["grades"]} >= {
        ("double_hidden", 1.5),
        ("mean_hidden", 2.0),
    }
    assert {one[1] for one in first["comments"]} == {None, "No response."}

    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        for student in ("ada", "bob"):
            notebook = gradebook.find_submission_notebook(
                CHAPTER, CHAPTER, student
            )
            by_name = {one.name: one for one in notebook.grades}
            by_name["double_hidden"].manual_score = 2.5
            by_name["mean_hidden"].extra_credit = 1.0
            for one in notebook.comments:
                one.manual_comment = "Seen."
        gradebook.db.commit()
    store({"double": 0.0, "mean": 0.5}, "double", "mean")
    assert {*compare()["grades"]} >= {
        ("double_hidden", 0.0, 2.5, None, True),
        ("mean_hidden", 0.5, None, 1.0, False),
    }


@pytest.mark.slow
@needs_postgresql
def test_many_graders_and_manual_marks_at_once_lose_nothing(
    in_postgresql: Course, server: str, tmp_path: Path
) -> None:
    root = in_postgresql.root
    course_says(root, "release")
    hand_in(in_postgresql)
    course_says(root, "grade", "03")
    assert points(root, "03") == expected()
    assert not (in_postgresql.people / "gradebook.db").exists()

    # eight people give extra points while everything is graded again, twice
    by_hand = [
        subprocess.Popen(
            [sys.executable, "-c", GRADES_BY_HAND, server, student]
        )
        for student in STUDENTS[:8]
    ]
    graders = [
        subprocess.Popen(
            [
                *(Path(sys.executable).parent / "course", "grade", "03"),
                *("--again", "--yes", "--workers", "1"),
            ],
            cwd=root,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [one.wait() for one in (*by_hand, *graders)] == [0] * 10
    extra = dict.fromkeys(STUDENTS[:8], 8.0)
    assert points(root, "03") == {
        student: mark + extra.get(student, 0)
        for student, mark in expected().items()
    }

    # and a class moves from PostgreSQL to SQLite by its backup
    file = tmp_path / "class.tar.gz"
    assert "holds 12 submissions" in course_says(root, "backup", file)
    other = write_mini(tmp_path / "other").root
    assert "12 submissions" in course_says(other, "restore", file)
    assert (other / "class" / "gradebook.db").exists()
    assert points(other, "03") == points(root, "03")


def test_a_backup_brings_a_class_back(released: Course, tmp_path: Path) -> None:
    mini, root = released, released.root
    hand_in(mini)
    course_says(root, "grade", "03")
    database = f"sqlite:///{mini.people / 'gradebook.db'}"
    with Gradebook(database, "pytorch_training_tricks") as gradebook:
        notebook = gradebook.find_submission_notebook(
            CHAPTER, CHAPTER, STUDENTS[0]
        )
        notebook.grades[0].manual_score = 1.25
        notebook.comments[0].manual_comment = "Look at `times`."
        gradebook.db.commit()
    before = exported(root, "03")
    # handed in, and not collected yet
    inbound = mini.people / "exchange" / "pytorch_training_tricks" / "inbound"
    waiting = inbound / f"zoe+{CHAPTER}+2026-03-01 12:00:00 UTC"
    waiting.mkdir(parents=True)
    (waiting / f"{CHAPTER}.ipynb").write_text("hers")
    file = tmp_path / "class.tar.gz"
    assert "holds 12 submissions" in course_says(root, "backup", file)
    assert "exists already" in course_says(root, "backup", file, code=2)
    assert "holds something already" in course_says(
        root, "restore", file, code=2
    )

    lost = {
        path: path.read_bytes()
        for path in mini.people.rglob("*")
        if path.is_file() and "submitted" in path.parts
    }
    for name in ("submitted", "autograded", "source", "release"):
        shutil.rmtree(mini.people / name)
    shutil.rmtree(inbound)
    (mini.people / "gradebook.db").unlink()
    said = course_says(root, "restore", file)
    assert "12 submissions" in said
    assert "`course release CHAPTER`" in said
    assert exported(root, "03") == before
    assert (waiting / f"{CHAPTER}.ipynb").read_text() == "hers"
    assert inbound.stat().st_mode & 0o777 == 0o733  # as nbgrader has it
    assert {path: path.read_bytes() for path in lost} == lost
    with Gradebook(database, "pytorch_training_tricks") as gradebook:
        comments = gradebook.find_submission_notebook(
            CHAPTER, CHAPTER, STUDENTS[0]
        ).comments
        assert "Look at `times`." in [one.manual_comment for one in comments]
    again = course_says(root, "grade", "03")
    assert "12 submissions, 12 of them graded already" in again


def test_a_damaged_backup_is_refused_and_nothing_is_written(
    mini: Course, tmp_path: Path
) -> None:
    file = tmp_path / "class.tar.gz"
    file.write_bytes(b"no archive")
    said = course_says(mini.root, "restore", file, code=2)
    assert "is no backup of a class, or damaged: give a file" in said
    course_says(mini.root, "roster")
    whole = tmp_path / "whole.tar.gz"
    course_says(mini.root, "backup", whole)
    file.write_bytes(whole.read_bytes()[:-200])
    said = course_says(mini.root, "restore", file, code=2)
    assert "is damaged, perhaps cut short" in said
    assert not (mini.people / "submitted").exists()


def test_a_chapter_that_is_graded_keeps_its_exercises_and_points(
    released: Course,
) -> None:
    root, source = released.root, released.source_of("03_mini")
    hand_in(released)
    written = source.read_text()
    source.write_text(written.replace('"double" points=3', '"double" points=4'))
    course_says(root, "release", "03")  # nothing is graded yet
    source.write_text(written)
    course_says(root, "release", "03")
    course_says(root, "grade", "03")
    assert "frozen" not in course_says(root, "build")
    source.write_text(written.replace('"double" points=3', '"double" points=4'))
    said = " ".join(course_says(root, "build").split())
    assert "03_mini is frozen" in said
    assert "double is worth 4 points, there 3." in said
    said = course_says(root, "release", "03", code=2)
    assert "Nothing is released: 03_mini is frozen" in said
