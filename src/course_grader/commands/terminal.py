"""What commands share: the terminal, and words of their options."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from course_grader.course import Course, CourseError
from course_grader.needs import free_port, need_port

AddCommand = Callable[
    [str, Callable[[Course, argparse.Namespace], int]], argparse.ArgumentParser
]
"""Adds a command by its name and what it runs."""
LOOK = 3
"""Exit code: done, and somebody should look at something."""
CHAPTER = "a chapter's name or number"
CHAPTERS = "names or numbers; all chapters if none is given"

console = Console(highlight=False)
errors = Console(highlight=False, stderr=True)


def progress_bar() -> Progress:
    """A progress bar with time left; quiet lines where there is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


@contextlib.contextmanager
def saying(what: str) -> Iterator[None]:
    """Says what is being done, and in a terminal for how long already."""
    if not console.is_terminal:
        console.print(f"{what} …")
        yield
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as shown:
        shown.add_task(f"{what} …", total=None)
        yield


def chapters(course: Course, names: list[str]) -> list[str]:
    """The chapters that are named; all if none is."""
    return [course.chapter(one) for one in names] or course.chapters()


def said(moment: datetime | None, zone: tzinfo | None) -> str:
    """A moment as people read it, in the course's time zone; empty if there is
    none."""
    if moment is None:
        return ""
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M %Z}"


def print_json(tree: Any) -> None:
    """Prints what a program asked for: dataclasses as objects, moments in ISO
    8601."""
    text = json.dumps(tree, ensure_ascii=False, indent=1, default=_plain)
    sys.stdout.write(text + "\n")


def add_json(parser: argparse.ArgumentParser) -> None:
    """That of a command that lists something."""
    parser.add_argument("--json", action="store_true", help="for programs")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    return dataclasses.asdict(value)


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Those of a command that starts a server."""
    parser.add_argument("--port", type=int, help="the first free one from 8888")
    parser.add_argument(
        "--no-browser",
        dest="browser",
        action="store_false",
        help="print the address only",
    )


def port_of(args: argparse.Namespace) -> int:
    """The port that was asked for, else the first free one.

    Raises:
        CourseError: something else listens there.
    """
    taken = need_port(args.port) if args.port else None
    if taken:
        raise CourseError(taken)
    return int(args.port or free_port(8888))


def become(
    command: list[str], environment: dict[str, str], folder: Path
) -> int:
    """Runs a command in this process's place, so that Ctrl-C is the command's; its
    exit status where that cannot be."""
    os.chdir(folder)
    if os.name == "posix":
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)
