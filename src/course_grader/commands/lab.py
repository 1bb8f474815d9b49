"""`course lab` and `course teach`: JupyterLab on this machine."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Callable

from course_grader.commands.terminal import (
    add_server_options,
    become,
    console,
    port_of,
)
from course_grader.course import Course


def lab(course: Course, args: argparse.Namespace) -> int:
    """Opens JupyterLab on work/, filled with the chapters."""
    from course_grader.classroom.lab import (
        fill_work,
        lab_command,
        lab_environment,
    )
    from course_grader.needs import need_program

    port = port_of(args)
    new = fill_work(course)
    sentence = need_program("dot")
    if sentence:
        console.print(sentence)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_urlsafe(16)
    chapters = course.chapters()
    begun = [one for one in chapters if one not in new]
    first = chapters[0]
    start = f"Start with {first}" if not begun else "Go on where you were"
    for line in (
        f"Installed; {len(new)} of {len(chapters)} chapters are new in work/."
        if new
        else f"Installed; {len(chapters)} chapters are in work/.",
        f"Address: http://localhost:{port}/lab/tree/{first}/{first}.ipynb"
        f"?token={token}",
        f"{start}: open its notebook, run it from the top, answer, run the "
        "cell below the answer.",
        "To stop, press Ctrl-C twice. Your work stays in work/.",
    ):
        console.print(line, markup=False, soft_wrap=True)
    return become(
        lab_command(course, port, args.browser),
        lab_environment(course, token),
        course.work,
    )


def teach(course: Course, args: argparse.Namespace) -> int:
    """Opens the instructor's JupyterLab, with formgrader, on the whole course."""
    from course_grader.classroom import nbgrader_api
    from course_grader.classroom.lab import jupyter_environment
    from course_grader.classroom.teach import teach_command, write_settings

    port = port_of(args)
    if write_settings(course):
        console.print(f"{course.settings_file} is new: your settings go there.")
    nbgrader_api.open_classroom(course)
    console.print(
        "Formgrader is in JupyterLab's menu: Nbgrader, Formgrader. Learners see "
        "a chapter once you release it: `course release 03`."
    )
    return become(
        teach_command(course, port, args.browser),
        jupyter_environment(course),
        course.root,
    )


def register(
    command: Callable[
        [str, Callable[[Course, argparse.Namespace], int]],
        argparse.ArgumentParser,
    ],
) -> None:
    """Adds these commands to the parser."""
    add_server_options(command("lab", lab))
    add_server_options(command("teach", teach))
