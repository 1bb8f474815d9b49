"""JupyterLab on this machine, as a learner and as an instructor start it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import course_home
from course_grader.course import Course
from course_home.server import HOME

EXTENSIONS = {
    "course_grader.lab.extension": True,
    "nbgrader.server_extensions.formgrader": False,
    "nbgrader.server_extensions.course_list": False,
}
"""Of a learner's Jupyter server."""


def jupyter_command(folder: Path, port: int, browser: bool) -> list[str]:
    """The command that starts JupyterLab on a folder."""
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.port={port}",
        "--Application.log_level=ERROR",
        *([] if browser else ["--no-browser"]),
        # in a container there is nobody else to be
        *(["--allow-root"] if _is_root() else []),
    ]


def lab_command(course: Course, port: int, browser: bool) -> list[str]:
    """The command that starts a learner's JupyterLab on work/; it opens on the
    home."""
    return [
        *jupyter_command(course.work, port, browser),
        f"--ServerApp.jpserver_extensions={EXTENSIONS}",
        f"--LabApp.default_url=/{HOME}",
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
    room = Path(__file__).parent
    return {
        **jupyter_environment(course),
        "JUPYTER_CONFIG_PATH": _before(
            "JUPYTER_CONFIG_PATH", room / "config", course.autograde
        ),
        # kernels, and JupyterLab's extension that leads to the home
        "JUPYTER_PATH": _before(
            "JUPYTER_PATH", room, Path(course_home.__file__).parent
        ),
        "JUPYTER_TOKEN": token,
    }


def _before(variable: str, *folders: Path) -> str:
    """A list of folders with more before it."""
    known = os.environ.get(variable)
    return os.pathsep.join([*map(str, folders), *([known] if known else [])])
