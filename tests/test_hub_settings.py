"""What a teacher writes into `[hub]` of `course.toml`, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import environment

from course_grader.course import Course

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
PEOPLE = 'instructors = ["grace"]\nroster = "class/roster.csv"\n'


def ask(course: Course, code: str) -> str:
    """What code prints that runs beside `deploy/`, or its error's last line."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=DEPLOY,
        env=environment() | {"COURSE_ROOT": str(course.root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    said = done.stdout if done.returncode == 0 else done.stderr
    return said.strip().splitlines()[-1]


def read(course: Course, hub: str, roster: str = "id\nada\n") -> str:
    """What the settings are taken for."""
    (course.root / "course.toml").write_text(f"[hub]\n{hub}")
    course.people.mkdir(exist_ok=True)
    (course.people / "roster.csv").write_text(roster)
    return ask(
        course,
        "from course_grader.course import find_course\n"
        "from settings import learners, read_settings\n"
        "course = find_course(); made = read_settings(course)\n"
        "print(made.instructors, learners(course, made), made.memory_gib)",
    )


def test_people_and_limits_are_read(mini: Course) -> None:
    said = read(mini, PEOPLE + "memory_gib = 3.5\n")
    assert said == "('grace',) ['ada'] 3.5"


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        ("memory = 3\n" + PEOPLE, "knows address, class_password"),
        ('roster = "class/roster.csv"\n', "names no instructor"),
        ('instructors = ["grace"]\n', "needs one of roster"),
        (PEOPLE + 'class_password = "12345678"\n', "needs one of roster"),
        (
            'instructors = ["grace"]\nclass_password = "short"\n',
            "has at least eight characters",
        ),
        (PEOPLE + 'grade = "often"\n', '"on submit" or a number of minutes'),
        ('instructors = ["Grace"]\nroster = "class/roster.csv"\n', "'Grace'"),
        ('instructors = ["a"]\nroster = "none.csv"\n', "does not exist"),
        ("[hub.lti]\nissuer = 'x'\n", "[hub.lti] needs authorize_url"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    mini: Course, hub: str, said: str
) -> None:
    assert said in read(mini, hub)


def test_a_name_that_is_no_account_is_refused(mini: Course) -> None:
    assert "'../etc'" in read(mini, PEOPLE, "id\n../etc\n")
    assert "no column called id" in read(mini, PEOPLE, "name\nada\n")


def test_the_accounts_of_the_machine_are_nobodys(
    mini: Course, tmp_path: Path
) -> None:
    said = ask(
        mini,
        f"import pathlib, rooms\n"
        f"rooms.make_account('daemon', pathlib.Path({str(tmp_path)!r}))",
    )
    assert "daemon is an account of this machine" in said
    assert list(tmp_path.glob("daemon")) == []
