"""What a teacher writes into `[hub]` of `course.toml`, and what is said about it."""

from __future__ import annotations

import json
import os
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is somebody else")
def test_a_python_that_others_cannot_reach_is_refused(
    mini: Course, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "python").symlink_to(sys.executable)
    said = ask(
        mini,
        "import pwd, sys; from start import need_open_python\n"
        f"sys.executable = {str(closed / 'python')!r}\n"
        "need_open_python(pwd.getpwnam('nobody'))",
    )
    assert "The account nobody cannot run" in said
    assert "make hub PYTHON=" in said


@pytest.mark.parametrize(
    "root", ["/srv/course", "/opt/course", "/home/grace/course", "/root/x"]
)
def test_a_room_shows_the_python_wherever_the_course_lies(
    mini: Course, root: str
) -> None:
    """Nothing is laid over the folder of something that a room needs."""
    said = ask(
        mini,
        "import json, pwd, sys, course_grader; from pathlib import Path\n"
        "from rooms import room\n"
        f"sys.prefix = {root + '/.venv'!r}\n"
        f"course_grader.__file__ = {root + '/src/course_grader/x'!r}\n"
        "print(json.dumps(room(pwd.getpwnam('nobody'), Path('home'), "
        f"Path({str(mini.root)!r}), Path('exchange'), Path('desk'))))",
    )
    words = json.loads(said)
    places = [
        Path(words[at + 2])
        for at, word in enumerate(words)
        if word in ("--bind", "--ro-bind", "--ro-bind-try")
    ]
    assert Path(root, ".venv") in places
    for at, place in enumerate(places):
        hidden = [one for one in places[:at] if one.is_relative_to(place)]
        assert not hidden, place
