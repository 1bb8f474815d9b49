"""Types what a person types: the real command lines, in a clean environment."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

SCRIPTS = Path(sys.executable).parent
_HOME = tempfile.TemporaryDirectory(prefix="home-")
_NOT_OURS = ("JUPYTER", "IPYTHON", "XDG", "NBGRADER", "COURSE_", "COLUMNS")


def environment(
    home: Path | None = None, *, activated: bool = True
) -> dict[str, str]:
    """An environment without anybody's settings.

    Args:
        home: the home folder; one for all tests of this process if None.
        activated: the virtual environment's programs are found by name.
    """
    home = Path(_HOME.name) if home is None else home
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_OURS)
    }
    path = [
        one
        for one in kept.get("PATH", os.defpath).split(os.pathsep)
        if one != str(SCRIPTS)
    ]
    if activated:
        path.insert(0, str(SCRIPTS))
    return kept | {
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
        "COLUMNS": "300",  # so that no line of a table is folded
    }


def run_course(
    root: Path, *arguments: object, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs `course` by its path in the course's folder, nothing activated."""
    return subprocess.run(
        [SCRIPTS / "course", *map(str, arguments)],
        **{
            "cwd": root,
            "env": environment(activated=False),
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            "text": True,
            **more,
        },
    )


def course_says(root: Path, *arguments: object, code: int = 0) -> str:
    """What a `course` command prints, errors last; it must end with this code and
    without a traceback."""
    done = run_course(root, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + (done.stderr if code == 2 else "")


def put(root: Path, student: str, notebook: NotebookNode) -> None:
    """Lays a submission where `course collect` puts it."""
    folder = root / "class" / "submitted" / student / "03_mini"
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / "03_mini.ipynb")


def without_ports() -> Config:
    """Settings for a kernel, whose sockets are files.

    jupyter_client chooses five free TCP ports and lets go of them until the
    kernel has started; whatever else runs beside it may take one meanwhile.
    """
    sockets = tempfile.mkdtemp(prefix="sockets-", dir=_HOME.name)
    manager = {"transport": "ipc", "ip": f"{sockets}/kernel"}
    return Config({"KernelManager": manager})


def run_nbgrader(
    root: Path, *arguments: str, home: Path | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs nbgrader's own command line on the course's settings.

    Args:
        home: a learner's folder, in which the learner's work lies; the
            instructor types if None.
    """
    settings = environment(home)
    settings["JUPYTER_CONFIG_PATH"] = str(root / "autograde")
    if home is not None:
        settings["COURSE_WORK"] = str(home / "work")
        arguments = (*arguments, f"--student={home.name}")
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        **{
            "cwd": root if home is None else home,
            "env": settings,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
            **more,
        },
    )


def exported(root: Path, chapter: str) -> dict[str, dict[str, str]]:
    """The rows of `course export`, by student."""
    done = run_course(root, "export", chapter)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    rows = csv.DictReader(io.StringIO(done.stdout))
    return {row["student"]: row for row in rows}


def points(root: Path, chapter: str) -> dict[str, float]:
    """The points of `course export`, by student."""
    return {
        student: float(row["points"])
        for student, row in exported(root, chapter).items()
        if row["points"]
    }
