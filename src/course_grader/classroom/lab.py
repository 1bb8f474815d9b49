"""`course lab`: JupyterLab on this machine with the chapters to work on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat

from course_grader import lab
from course_grader.chapter.notebook import with_solution_folds, write
from course_grader.chapter.source import read_chapter
from course_grader.course import Course, CourseError

EXTENSIONS = {
    "course_grader.lab.extension": True,
    # an instructor's, who starts Jupyter without this command
    "nbgrader.server_extensions.formgrader": False,
    "nbgrader.server_extensions.course_list": False,
}
"""Of the Jupyter server."""


def fill_work(course: Course) -> list[str]:
    """Copies chapters into work/ that are not there yet; their names. A file
    that exists is a learner's: it is never touched.

    Whoever works here has the solutions on this machine and learns alone, so
    each exercise's text ends in its solution, folded. A class gets its
    notebooks from the exchange or the kit, without.

    Raises:
        CourseError: a chapter was never built.
    """
    added = []
    for chapter in course.chapters():
        target = course.work / chapter / f"{chapter}.ipynb"
        # a link that leads nowhere is a learner's too
        if os.path.lexists(target):
            continue
        notebook = course.notebook_of(chapter)
        if not notebook.exists():
            raise CourseError(
                f"{notebook.relative_to(course.root)} is missing: run `course "
                "build`."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with_folds = with_solution_folds(
            nbformat.read(notebook, as_version=4),
            read_chapter(course.source_of(chapter)),
        )
        target.write_text(write(with_folds), encoding="utf-8")
        added.append(chapter)
    return added


def lab_command(course: Course, port: int, browser: bool) -> list[str]:
    """The command that starts JupyterLab on work/."""
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={course.work}",
        f"--ServerApp.port={port}",
        f"--ServerApp.jpserver_extensions={EXTENSIONS}",
        "--ServerApp.log_level=ERROR",
        *([] if browser else ["--no-browser"]),
        # in a container there is nobody else to be
        *(["--allow-root"] if _is_root() else []),
    ]


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def jupyter_environment(course: Course) -> dict[str, str]:
    """The environment in which Jupyter finds nbgrader's settings."""
    return {
        **os.environ,
        "JUPYTER_CONFIG_PATH": _before("JUPYTER_CONFIG_PATH", course.autograde),
        "COURSE_ROOT": str(course.root),
    }


def lab_environment(course: Course, token: str) -> dict[str, str]:
    """The learner's: without instructors' panels, with a kernel that asks for
    hidden checks.

    Args:
        course: the course.
        token: opens the server.
    """
    room = Path(lab.__file__).parent
    return {
        **jupyter_environment(course),
        "JUPYTER_CONFIG_PATH": _before(
            "JUPYTER_CONFIG_PATH", room / "config", course.autograde
        ),
        "JUPYTER_PATH": _before("JUPYTER_PATH", room),
        "JUPYTER_TOKEN": token,
    }


def _before(variable: str, *folders: Path) -> str:
    """A list of folders with more before it."""
    known = os.environ.get(variable)
    return os.pathsep.join([*map(str, folders), *([known] if known else [])])
