"""What a teacher says about the class server: `[hub]` in `course.toml`."""

from __future__ import annotations

import csv
import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from course_grader.course import Course, CourseError

SHARE = "ngshare"
"""The hub's service that is the exchange."""
SHARE_KEEPER = "ngshare-grading"
"""Whom the hub calls the grading account when that asks ngshare."""
NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
"""What both a learner and a Unix account may be called."""

LTI = {"issuer", "authorize_url", "jwks_url", "client_id"}
"""What an LMS says when a tool is registered there."""

TEMPLATE = """
# The class server, `make hub`: docs/server.md.
[hub]
instructors = ["grace", "alan"]
roster = "class/roster.csv"        # a CSV file with the column id, or instead:
# class_password = "at least eight characters"
memory_gib = 2                     # of one learner's server
processors = 1
grade = "on submit"                # or every so many minutes, as 5; 0 is never
feedback = true                    # goes back as soon as it is graded
exchange = "folder"                # or "ngshare", for no shared disk
idle_minutes = 60                  # then a server is stopped; files stay
port = 8000
"""
ROSTER = "id,first_name,last_name,email\nada,Ada,Lovelace,\nbob,Bob,Noyce,\n"


@dataclass(frozen=True)
class Settings:
    """`[hub]` of `course.toml`.

    Attributes:
        instructors: their names; they log in as everybody does.
        roster: a CSV file with the column `id`, in the course's folder.
        class_password: lets everybody in who knows it, under any name, in
            place of a roster.
        memory_gib: of one learner's server, kernels included.
        processors: that one learner's server may use.
        processes: processes and threads of one learner's server.
        grade: "on submit", or every so many minutes; 0 is never.
        scheduler: of a Dask cluster that grades; "" is this machine.
        feedback: whether pages go back as soon as work is graded.
        exchange: "folder", which learners' rooms show, or "ngshare": over HTTP,
            and no disk is shared.
        idle_minutes: after which a learner's server is stopped.
        address: where the proxy listens; "" is everywhere.
        port: of the proxy; the hub and its services take the four after it.
        folder: homes and the hub's own files, in the course's folder.
        grading_account: the Unix account that owns `class/` and grades.
        lti: `[hub.lti]`: the LMS that people come from, in place of passwords.
    """

    instructors: tuple[str, ...] = ()
    roster: str = ""
    class_password: str = ""
    memory_gib: float = 2
    processors: float = 1
    processes: int = 512
    grade: str | float = "on submit"
    scheduler: str = ""
    feedback: bool = True
    exchange: str = "folder"
    idle_minutes: float = 60
    address: str = ""
    port: int = 8000
    folder: str = "hub"
    grading_account: str = "course-grader"
    lti: Mapping[str, str] = field(default_factory=dict)


def read_settings(course: Course) -> Settings:
    """The settings of the class server.

    Raises:
        CourseError: a setting is missing, unknown or of the wrong kind.
    """
    given = dict(course.settings.get("hub", {}))
    known = {one.name for one in fields(Settings)}
    strange = sorted(set(given) - known)
    if strange:
        raise CourseError(
            f"course.toml: [hub] knows {', '.join(sorted(known))}, not "
            f"{', '.join(strange)}."
        )
    given["instructors"] = tuple(given.get("instructors", ()))
    made = Settings(**given)
    if not made.instructors and not made.lti:
        raise CourseError(
            'course.toml: [hub] names no instructor: instructors = ["grace"].'
        )
    ways = [made.roster, made.class_password, made.lti]
    if sum(map(bool, ways)) != 1:
        raise CourseError(
            "course.toml: [hub] needs one of roster, a CSV file of those who "
            "may log in, class_password, and [hub.lti]."
        )
    if made.lti and set(made.lti) != LTI:
        raise CourseError(
            f"course.toml: [hub.lti] needs {', '.join(sorted(LTI))}."
        )
    if made.class_password and len(made.class_password) < 8:
        raise CourseError(
            "course.toml: class_password has at least eight characters."
        )
    if isinstance(made.grade, str) and made.grade != "on submit":
        raise CourseError(
            'course.toml: grade in [hub] is "on submit" or a number of minutes.'
        )
    if made.exchange not in ("folder", "ngshare"):
        raise CourseError(
            'course.toml: exchange in [hub] is "folder" or "ngshare".'
        )
    for name in (*made.instructors, *learners(course, made)):
        if not NAME.fullmatch(name) or name in (
            made.grading_account,
            share_account(made),
        ):
            raise CourseError(
                f"Nobody can be called {name!r} here, for it is a Unix account's "
                "name, too: small letters, digits, - and _, a letter first, at "
                "most 31."
            )
    return made


def learners(course: Course, settings: Settings) -> list[str]:
    """The ids of the roster, in its order; none where a class password rules.

    Raises:
        CourseError: there is no such file, or it has no column `id`.
    """
    if not settings.roster:
        return []
    path = roster_file(course, settings)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        return [row["id"].strip() for row in rows if row["id"].strip()]
    except FileNotFoundError:
        raise CourseError(
            f"The roster {path} does not exist: a CSV file with the columns "
            "id,first_name,last_name,email, of which only id is needed."
        ) from None
    except (KeyError, AttributeError):
        raise CourseError(
            f"The roster {path} has no column called id."
        ) from None


def roster_file(course: Course, settings: Settings) -> Path:
    """The roster; launches from an LMS fill it."""
    return course.root / (settings.roster or "class/roster.csv")


def separate_accounts() -> bool:
    """Whether everybody gets an account of their own: root alone can give one."""
    return os.geteuid() == 0


def grading_home(course: Course, settings: Settings) -> Path:
    """Where the grading account's own files lie."""
    return course.root / settings.folder / "grader"


def share_url(settings: Settings) -> str:
    """Where ngshare is for everybody on this machine: behind the proxy, as it would
    be for learners' servers on another."""
    return f"http://127.0.0.1:{settings.port}/services/{SHARE}"


def share_account(settings: Settings) -> str:
    """The Unix account that keeps what ngshare keeps, and nothing else."""
    return f"{settings.grading_account}-share"


def exists(account: str) -> bool:
    """Whether this machine has such a Unix account."""
    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True
