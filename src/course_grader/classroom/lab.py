"""`course lab`: JupyterLab on this machine with the chapters to work on."""

from __future__ import annotations

import os
import sys

import nbformat

from course_grader.chapter.notebook import with_solution_folds, write
from course_grader.chapter.source import read_chapter
from course_grader.course import Course, CourseError


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
        *([] if browser else ["--no-browser"]),
        # in a container there is nobody else to be
        *(["--allow-root"] if _is_root() else []),
    ]


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def lab_environment(course: Course) -> dict[str, str]:
    """The environment in which Jupyter finds nbgrader's settings."""
    known = os.environ.get("JUPYTER_CONFIG_PATH")
    return {
        **os.environ,
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            [str(course.autograde), *([known] if known else [])]
        ),
        "COURSE_ROOT": str(course.root),
    }
