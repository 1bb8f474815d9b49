"""Types what a person types: the real command lines, in a clean environment.

`course` and `nbgrader` import for seconds before they do anything. So a command is
forked from a process that has imported them and done nothing else; its arguments,
folder, environment, output and exit code are those of one that was started. A test
that wants anything else of the process has it started.
"""

from __future__ import annotations

import csv
import functools
import importlib
import io
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import quick_gradebooks  # noqa: F401
import quick_processes
from mini_course import LIMITS
from nbformat import NotebookNode
from traitlets.config import Config

from course_grader.course import Course

_HERE = Path(__file__).parent
SCRIPTS = Path(sys.executable).parent
_SERVER = forkserver.ForkServer()
"""Our own: a test may have started Python's for something else, with nothing
imported."""
NBGRADER = "nbgrader.apps.nbgraderapp"
"""As `forked.py` imports it."""
_NOT_OURS = ("JUPYTER", "IPYTHON", "XDG", "NBGRADER", "COURSE_", "COLUMNS")


@functools.cache
def _home() -> tempfile.TemporaryDirectory[str]:
    """Made when it is asked for: a forked command imports this module, too, and
    would leave its own behind."""
    return tempfile.TemporaryDirectory(prefix="home-")


def environment(
    home: Path | None = None, *, activated: bool = True
) -> dict[str, str]:
    """An environment without anybody's settings.

    Args:
        home: the home folder; one for all tests of this process if None.
        activated: the virtual environment's programs are found by name.
    """
    home = Path(_home().name) if home is None else home
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


def _become(
    module: str,
    arguments: list[str],
    folder: Path,
    settings: dict[str, str],
    output: tuple[str, str],
    umask: int | None,
    warm: tuple[socket.socket, int] | None,
) -> None:
    """In the forked process: what the shell and Python's start would do."""
    if umask is not None:
        os.umask(umask)
    for stream, (file, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            *((file, os.O_WRONLY | os.O_APPEND) for file in output),
        ]
    ):
        os.dup2(os.open(file, flags), stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(settings)
    time.tzset()
    sys.argv = [module, *arguments]
    quick_processes.lay_ready(warm)
    importlib.import_module(module).main()


class _GradingFork:
    """A grading process that a test itself asks for, forked like a command; stands
    for what starts one."""

    def __init__(self, command: list[str], descriptor: int) -> None:
        course = Course(Path(command[-3]))
        warm = None
        if course.limits == LIMITS and command[-2] == "sandboxed":
            warm = quick_processes.connection()
        with socket.socket(fileno=os.dup(descriptor)) as sock:
            self.process = _forked(
                _become_grading,
                sock,
                [command[-3:], os.getcwd(), dict(os.environ)],
                warm,
            )
        self.pid = self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired("a grading process", timeout or 0)
        return self.process.exitcode


def _start_grading(command: list[str], **options: Any) -> Any:
    """What `GradingProcess` starts, in the process of a test."""
    if quick_processes.starts_grading(command):
        return _GradingFork(command, *options["pass_fds"])
    return subprocess.Popen(command, **options)


def fork_grading() -> None:
    """From here on `GradingProcess` forks what it would start."""
    quick_processes.start_grading_by(_start_grading)


def _become_grading(
    sock: socket.socket,
    settings: list[Any],
    warm: tuple[socket.socket, int] | None,
) -> None:
    if warm is not None:
        quick_processes.offer(*warm)
    quick_processes.grade(sock.detach(), *settings)


def _forked(target: Callable[..., None], *arguments: Any) -> Any:
    """A process that has imported what `forked.py` imports, and runs this."""
    context = multiprocessing.get_context("forkserver")
    _SERVER.set_forkserver_preload(["forked"])
    # in a terminal, too, what is printed has no colours
    quiet = environment() | {"TERM": "dumb", "PYTHONPATH": str(_HERE)}
    with mock.patch.dict(os.environ, quiet, clear=True):
        _SERVER.ensure_running()
    with mock.patch.object(
        forkserver,
        "connect_to_new_process",
        _SERVER.connect_to_new_process,
    ):
        one = context.Process(target=target, args=arguments)
        one.start()
    return one


def _type(
    module: str,
    arguments: list[str],
    folder: Path,
    settings: dict[str, str],
    apart: bool,
    umask: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `main` of a module in a forked process, errors apart or among the rest."""
    warm = quick_processes.connection()
    with (
        tempfile.NamedTemporaryFile("r") as out,
        tempfile.NamedTemporaryFile("r") as err,
    ):
        files = (out.name, err.name if apart else out.name)
        one = _forked(
            _become, module, arguments, folder, settings, files, umask, warm
        )
        one.join()
        return subprocess.CompletedProcess(
            arguments, one.exitcode, out.read(), err.read()
        )


def run_course(
    root: Path,
    *arguments: object,
    env: dict[str, str] | None = None,
    umask: int | None = None,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """Runs `course` in the course's folder, nothing activated.

    Args:
        env: the environment.
        umask: of the shell; this process' own if None.
        more: what `subprocess.run` takes; with any of it the program is started by
            its path.
    """
    typed = [str(one) for one in arguments]
    settings = environment(activated=False) if env is None else env
    if not more:
        return _type(
            "course_grader.cli", typed, root, settings, apart=True, umask=umask
        )
    return subprocess.run(
        [SCRIPTS / "course", *typed],
        **{
            "cwd": root,
            "env": settings,
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
    sockets = tempfile.mkdtemp(prefix="sockets-", dir=_home().name)
    manager = {"transport": "ipc", "ip": f"{sockets}/kernel"}
    return Config({"KernelManager": manager})


def run_nbgrader(
    root: Path, *arguments: str, home: Path | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Runs nbgrader's own command line on the course's settings.

    Args:
        home: a learner's folder, in which the learner's work lies; the
            instructor types if None.
        more: as in `run_course`.
    """
    settings = environment(home)
    settings["JUPYTER_CONFIG_PATH"] = str(root / "autograde")
    if home is not None:
        settings["COURSE_WORK"] = str(home / "work")
        arguments = (*arguments, f"--student={home.name}")
    folder = root if home is None else home
    if not more:
        return _type(NBGRADER, [*arguments], folder, settings, apart=False)
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        **{
            "cwd": folder,
            "env": settings,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
            **more,
        },
    )


def nbgrader_says(
    folder: Path, settings: dict[str, str], *arguments: str
) -> str:
    """What nbgrader's own command line prints in a folder, with settings of the
    folder's own; it must succeed."""
    done = _type(NBGRADER, list(arguments), folder, settings, apart=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


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
