"""Collects, grades and gives feedback, as the grading account, whenever somebody
has handed in or every so many minutes.

A hub's service runs this; it needs nothing of the hub. Whatever fails is tried
again when the next submission comes. What the commands say is in
`class/grading.log`.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TextIO

from roles import COURSE_ID
from settings import Settings, read_settings, roster_file

from course_exchange.share import ShareError
from course_grader.classroom import over_http
from course_grader.classroom.nbgrader_api import open_classroom
from course_grader.course import Course, find_course

LOOK_S = {"folder": 2.0, "ngshare": 10.0}
"""How often the exchange is looked at. A look is one listing of a folder, or one
question over HTTP for each chapter that is released."""


def waiting(course: Course, settings: Settings) -> dict[str, frozenset[str]]:
    """What lies in the exchange now, by chapter."""
    if settings.exchange == "ngshare":
        return over_http.handed_in(open_classroom(course))
    inbound = course.people / "exchange" / COURSE_ID / "inbound"
    found: dict[str, set[str]] = {}
    chapters = set(course.chapters())
    try:
        names = os.listdir(inbound)
    except FileNotFoundError:
        names = []
    for name in names:
        # LEARNER+CHAPTER+TIME+RANDOM; collecting looks at the rest of it
        parts = name.split("+")
        if len(parts) > 2 and parts[1] in chapters:
            found.setdefault(parts[1], set()).add(name)
    return {one: frozenset(names) for one, names in found.items()}


def run(course: Course, log: Path, *arguments: str) -> bool:
    """Runs a `course` command; whether it did its work."""
    command = [sys.executable, "-P", "-m", "course_grader.cli", *arguments]
    with append(log) as out:
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        out.write(f"{now} course {' '.join(arguments)}\n")
        out.flush()
        code = subprocess.run(
            command,
            cwd=course.root,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        ).returncode
    return code in (0, 3)


def enrol(course: Course, settings: Settings, known: bytes) -> bytes:
    """Takes the roster into the gradebook if it is not what it was.

    Returns:
        What the roster is now.
    """
    path = roster_file(course, settings)
    now = path.read_bytes() if path.exists() else b""
    if now and now != known:
        command = [
            *(sys.executable, "-P", "-m", "nbgrader"),
            *("db", "student", "import"),
        ]
        log = course.people / "grading.log"
        with append(log) as out:
            subprocess.run(
                [*command, str(path)],
                cwd=course.people,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
    return now


def append(log: Path) -> TextIO:
    """The log, for the grading account alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return open(os.open(log, flags, 0o600), "a")


def grade(course: Course, chapter: str, settings: Settings) -> None:
    """From the exchange to the learner's page."""
    log = course.people / "grading.log"
    # one at a time, whoever else has it in a crontab
    with open(course.people / ".grading", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run(course, log, "collect", chapter)
        # one submission that failed keeps nobody else from feedback
        where = ["--scheduler", settings.scheduler]
        run(
            course,
            log,
            "grade",
            chapter,
            *(where if settings.scheduler else []),
        )
        if done and settings.feedback:
            run(course, log, "feedback", chapter)


def main() -> None:
    """Goes on until it is stopped."""
    course = find_course()
    settings = read_settings(course)
    at_once = settings.grade == "on submit"
    pause_s = (
        LOOK_S[settings.exchange] if at_once else 60 * float(settings.grade)
    )
    os.umask(0o077)
    seen: dict[str, frozenset[str]] = {}
    enrolled = b""
    while True:
        try:
            found = waiting(course, settings)
        except ShareError:  # it is starting, or starting again
            found = seen
        enrolled = enrol(course, settings, enrolled)
        for chapter, names in found.items():
            if names != seen.get(chapter):
                grade(course, chapter, settings)
        seen = found
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
