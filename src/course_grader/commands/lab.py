"""`course lab` and `course teach`: JupyterLab on this machine."""

from __future__ import annotations

import argparse
import os
import secrets
from typing import TYPE_CHECKING

from course_grader.commands.terminal import (
    AddCommand,
    add_server_options,
    become,
    console,
    port_of,
)
from course_grader.course import Course

if TYPE_CHECKING:
    from course_grader.lab.work import Filled


def lab(course: Course, args: argparse.Namespace) -> int:
    """Opens JupyterLab on work/, filled with the chapters."""
    from course_grader.lab.server import lab_command, lab_environment
    from course_grader.lab.work import fill_work
    from course_grader.needs import need_program

    port = port_of(args)
    filled = fill_work(course)
    sentence = need_program("dot")
    if sentence:
        console.print(sentence)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_urlsafe(16)
    # the rest is said by the server, when it answers
    console.print(
        f"Installed; {_of(filled, len(course.chapters()))} in work/.",
        markup=False,
    )
    for chapter, name in filled.beside.items():
        console.print(
            f"{chapter} has a newer edition: {name} stands beside your notebook.",
            markup=False,
            soft_wrap=True,
        )
    return become(
        lab_command(course, port, args.browser),
        lab_environment(course, token),
        course.work,
    )


def _of(filled: Filled, chapters: int) -> str:
    """What was done, in words: "3 of 16 chapters are new"."""
    said = [
        f"{len(names)} of {chapters} chapters are {what}"
        for names, what in (
            (filled.new, "new"),
            (filled.renewed, "renewed, as you had not begun them,"),
        )
        if names
    ]
    return " and ".join(said) or f"{chapters} chapters are"


def teach(course: Course, args: argparse.Namespace) -> int:
    """Opens the instructor's JupyterLab, with formgrader, on the whole course."""
    from course_grader.classroom import nbgrader_api
    from course_grader.classroom.teach import write_settings
    from course_grader.lab.server import (
        jupyter_command,
        jupyter_environment,
    )

    port = port_of(args)
    if write_settings(course):
        console.print(f"{course.settings_file} is new: your settings go there.")
    nbgrader_api.open_classroom(course)
    console.print(
        "Formgrader is in JupyterLab's menu: Nbgrader, Formgrader. Learners see "
        "a chapter once you release it: `course release 03`."
    )
    return become(
        # formgrader insists that the class's folder lies below
        jupyter_command(course.root, port, args.browser),
        jupyter_environment(course),
        course.root,
    )


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    add_server_options(command("lab", lab))
    add_server_options(command("teach", teach))
