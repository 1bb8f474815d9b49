"""The `course` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import argcomplete

from course_grader.commands import (
    author,
    demo,
    exchange,
    grade,
    lab,
    marks,
    term,
)
from course_grader.commands.terminal import errors
from course_grader.course import Course, CourseError, find_course
from course_grader.needs import NO_SPACE, disk_is_full
from course_grader.startup import import_fast

PACKAGE = "pytorch-training-tricks"
GROUPS = {
    "a learner": (
        ("lab", "grade"),
        "course grade 03 --from work/03_one_hot_and_losses/"
        "03_one_hot_and_losses.ipynb",
    ),
    "an instructor, in a term": (
        (
            *(
                "teach",
                "demo",
                "roster",
                "release",
                "collect",
                "grade",
                "feedback",
            ),
            *("report", "similar", "status", "due", "extend", "export"),
            *(
                "solutions",
                "total",
                "lms",
                "backup",
                "restore",
                "new-term",
                "forget",
            ),
        ),
        'course due 03 "2026-12-01 18:00"',
    ),
    "an author": (
        ("new", "try", "mutate", "build", "publish"),
        "course try 03 one_hot --show ANSWER",
    ),
}

ABOUT_PEOPLE = {
    *("grade", "collect", "feedback", "lms", "report", "similar", "export"),
    *("roster", "total", "extend", "backup", "restore", "new-term", "forget"),
}
"""What these write nobody else may read."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="course",
        usage="course [--course FOLDER] COMMAND ...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--course", type=Path, help="the course's folder, if not this one"
    )
    parser.add_argument("--version", action="version", version=version(PACKAGE))
    commands = parser.add_subparsers(
        metavar="COMMAND", help=argparse.SUPPRESS, prog="course"
    )

    def command(
        name: str, run: Callable[[Course, argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=run.__doc__, description=run.__doc__
        )
        sub.set_defaults(run=run, command=name)
        said[name] = " ".join((run.__doc__ or "").split())
        return sub

    said: dict[str, str] = {}

    for room in (lab, grade, demo, exchange, marks, term, author):
        room.register(command)
    parser.epilog = _grouped(said)
    argcomplete.autocomplete(parser)
    return parser


def _grouped(said: dict[str, str]) -> str:
    """All commands by who types them, with an example each."""
    lines = []
    for who, (names, example) in GROUPS.items():
        lines.append(f"{who}:")
        lines += [f"  {name:<10} {said[name]}" for name in names]
        lines += [f"  for example: {example}", ""]
    return "\n".join([*lines, "course COMMAND --help says more."])


def main() -> None:
    """Entry point of `course`."""
    import_fast()
    parser = _parser()
    args = parser.parse_args()
    if "run" not in args:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if args.command in ABOUT_PEOPLE:
        os.umask(0o077)
    try:
        course = find_course(args.course)
        _ = course.settings  # a wrong one is said before anything is done
        sys.exit(args.run(course, args))
    except CourseError as error:
        errors.print(f"course: {error}", style="bold red", markup=False)
        sys.exit(2)
    except Exception as error:
        if not disk_is_full(error):
            raise
        errors.print(f"course: {NO_SPACE}", style="bold red", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("course: stopped.")
        sys.exit(130)


if __name__ == "__main__":
    main()
