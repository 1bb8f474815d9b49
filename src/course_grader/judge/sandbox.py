"""The sandbox: how the process that runs learner code is started.

bubblewrap gives it a file system with the Python environment in it, read-only,
and copies of `course_utils` and the `kernel` room: no course, no home, no
network, no other process. Inside, every submission gets a room of its own
(`kernel/isolation.py`).

An instructor who grades as root is an ordinary user to bubblewrap: what the
machine's root owns, `/proc/sys` for one, stays root's inside of namespaces.
Run as a program, this module makes that step.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import course_grader
from course_grader.course import CourseError
from course_grader.judge.delegated import NOBODY
from course_grader.kernel import isolation, seccomp
from course_grader.needs import need_program

RUNTIME = "/course"
"""Where the copied packages are, inside."""
_SOURCE = str(Path(course_grader.__file__).parents[1])
TRY_OUT_TIMEOUT_S = 60.0

_SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libexec")
_OF_USR = (*_SYSTEM_FOLDERS, "include", "share")
_FROM_ETC = ("alternatives", "fonts", "ld.so.cache", "localtime")
_STORES = ("/nix/store", "/gnu/store")
_ETC = {
    "passwd": f"learner:x:{isolation.LEARNER_ID}:{isolation.LEARNER_ID}"
    f":learner:{isolation.HOME}:/bin/sh\n",
    "group": f"learner:x:{isolation.LEARNER_ID}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_MS_REC, _MS_PRIVATE, _MS_BIND, _CLONE_NEWNS = 16384, 1 << 18, 4096, 0x20000


@dataclass(frozen=True)
class Bind:
    """A file or folder that the sandbox sees.

    Attributes:
        source: on this machine.
        inside: its path in the sandbox.
    """

    source: str
    inside: str


class Runtime:
    """Copies of what learner code may import of this project, in a folder of
    their own; removed by `remove`."""

    def __init__(self) -> None:
        self.temporary = tempfile.TemporaryDirectory(prefix="course-sandbox-")
        self.folder = Path(self.temporary.name)
        self.packages = self.folder / "packages"
        here = Path(course_grader.__file__).parent
        grader = self.packages / "course_grader"
        # another account's, which this one may not read
        compiled = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here / "kernel", grader / "kernel", ignore=compiled)
        shutil.copy2(here / "__init__.py", grader)
        shutil.copytree(
            here.parent / "course_utils",
            self.packages / "course_utils",
            ignore=compiled,
        )
        self.etc = self.folder / "etc"
        self.etc.mkdir()
        for name, text in _ETC.items():
            (self.etc / name).write_text(text)
        for folder, _, files in os.walk(self.folder):
            os.chmod(folder, 0o755)
            for name in files:
                os.chmod(Path(folder, name), 0o644)

    def remove(self) -> None:
        """Removes the copies."""
        self.temporary.cleanup()


def clean_environment() -> dict[str, str]:
    """The environment of learner processes: nothing of the instructor's."""
    return {
        "PATH": os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "HOME": tempfile.gettempdir(),
        # who is asked for by torch and others is not looked up: the warm process is a
        # number without a name there
        "USER": "learner",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NBGRADER_EXECUTION": "autograde",
        "CUDA_VISIBLE_DEVICES": "",
    }


def command(runtime: Runtime, call: str, *arguments: str) -> list[str]:
    """The command that calls a function of the `kernel` room in the sandbox.

    Args:
        runtime: the copies to bind.
        call: the function, as module and name: `warm.main`.
        arguments: the program's, from argv[1] on.
    """
    inside = [*_call(RUNTIME, f"kernel.{call}"), *arguments]
    binds = _binds(runtime)
    program = shutil.which("bwrap") or "bwrap"
    if os.geteuid() != 0:
        return [*_bubblewrap(program, binds), *inside]
    return [
        *_call(_SOURCE, "judge.sandbox.main"),
        json.dumps([[one.source, one.inside] for one in binds]),
        program,
        *inside,
    ]


def plain_command(call: str) -> list[str]:
    """The command that calls a function of the `kernel` room unsandboxed."""
    return _call(_SOURCE, f"kernel.{call}")


def _call(path: str, call: str) -> list[str]:
    """The command that calls a function of this package as found in `path`,
    with nothing of the environment or current folder on Python's path."""
    module, _, name = call.rpartition(".")
    start = (
        f"import sys; sys.path.insert(0, {path!r}); "
        f"from course_grader.{module} import {name}; {name}()"
    )
    return [sys.executable, "-I", "-c", start]


def _binds(runtime: Runtime) -> list[Bind]:
    """What the sandbox sees, outer folders before those within them."""
    inside: dict[str, Bind] = {}

    def see(source: str, where: str | None = None) -> None:
        where = source if where is None else where
        if os.path.exists(source):
            inside[where] = Bind(os.path.realpath(source), where)

    for folder in ("/usr", "/usr/local"):
        for name in _OF_USR:
            see(f"{folder}/{name}")
    for name in _SYSTEM_FOLDERS:
        if not os.path.islink(f"/{name}"):
            see(f"/{name}")
    for name in _FROM_ETC:
        see(f"/etc/{name}")
    for store in _STORES:
        see(store)
    for prefix in (sys.base_prefix, sys.base_exec_prefix, sys.prefix):
        if prefix not in ("/usr", "/usr/local"):
            for path in (os.path.realpath(prefix), prefix):
                inside[path] = Bind(os.path.realpath(prefix), path)
    for name in _ETC:
        see(str(runtime.etc / name), f"/etc/{name}")
    see(str(runtime.packages), RUNTIME)
    return sorted(inside.values(), key=lambda one: one.inside.count("/"))


def _bubblewrap(program: str, binds: list[Bind]) -> list[str]:
    arguments = [
        program,
        "--unshare-all",
        "--die-with-parent",
        # to itself it is root, so that it may put learners into their rooms:
        # a second user namespace, as for another number, would take that away
        "--uid",
        "0",
        "--gid",
        "0",
        "--cap-add",
        "CAP_SYS_ADMIN",
        "--cap-add",
        "CAP_SETFCAP",  # since Linux 5.12 whoever maps user 0 needs it
        "--hostname",
        "sandbox",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--dir",
        isolation.HOME,
    ]
    for name in _SYSTEM_FOLDERS:
        if os.path.islink(f"/{name}"):
            arguments += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    for one in binds:
        arguments += ["--ro-bind", one.source, one.inside]
    return [
        *arguments,
        "--setenv",
        "PYTHONPATH",
        RUNTIME,
        "--setenv",
        "HOME",
        "/tmp",
        "--chdir",
        "/",
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
    ]


def _holds_course(prefix: Path) -> bool:
    """Whether the project, not merely its installed package, is in there."""
    source = Path(_SOURCE).resolve()
    return source.is_relative_to(prefix) and source.name != "site-packages"


@functools.cache
def missing() -> str | None:
    """Why other people's notebooks cannot be graded here, and how to change
    that, in one sentence; None where they can."""
    lacking = need_program("bwrap")
    if lacking is not None:
        return lacking
    if not seccomp.supported():
        return (
            "The sandbox knows x86_64 and aarch64 processors only, so other "
            "people's notebooks cannot be graded on this machine: grade on "
            "another one."
        )
    for prefix in (sys.prefix, sys.base_prefix):
        if _holds_course(Path(prefix).resolve()):
            return (
                f"The Python environment {prefix} has this project inside, "
                "and submissions see the environment: make one in a folder of "
                "its own, with `make lab`."
            )
    runtime = Runtime()
    try:
        tried = subprocess.run(
            command(runtime, "isolation.try_out"),
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TRY_OUT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    else:
        if tried.returncode == 0:
            return None
        said = (tried.stdout + tried.stderr).strip().splitlines()
        reason = said[-1] if said else f"exit status {tried.returncode}"
    finally:
        runtime.remove()
    return (
        "The sandbox for other people's notebooks cannot be made on this "
        f"machine ({reason}): unprivileged user namespaces must be allowed, "
        "and docs/sandbox.md says how."
    )


def require_sandbox(way_around: str) -> None:
    """Refuses to grade other people's work where there can be no sandbox.

    Args:
        way_around: the setting that says to do so all the same.

    Raises:
        CourseError: there can be none; says how to get it.
    """
    lacking = missing()
    if lacking is not None:
        raise CourseError(
            f"{lacking} {way_around} grades without it, with your account, "
            "files and network within the submissions' reach."
        )


def main() -> None:
    """Becomes bubblewrap as nobody: binds what root alone may reach where
    everybody may, gives up root, and is bubblewrap (argv[2]) with the command
    in argv[3:]."""
    binds = [Bind(*one) for one in json.loads(sys.argv[1])]
    call = isolation.call
    call("a mount namespace", "unshare", _CLONE_NEWNS)
    call("mounting", "mount", None, "/", None, _MS_REC | _MS_PRIVATE, None)
    opened = [os.open(one.source, os.O_PATH) for one in binds]
    call("mounting", "mount", "tmpfs", "/tmp", "tmpfs", 0, "mode=755")
    staged = []
    for number, (one, descriptor) in enumerate(zip(binds, opened, strict=True)):
        source = f"/proc/self/fd/{descriptor}"
        place = Path(f"/tmp/{number}")
        if os.path.isdir(source):
            place.mkdir()
        else:
            place.touch()
        flags = _MS_BIND | _MS_REC
        call("mounting", "mount", source, str(place), None, flags, None)
        os.close(descriptor)
        staged.append(Bind(str(place), one.inside))
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.chdir("/")
    arguments = [*_bubblewrap(sys.argv[2], staged), *sys.argv[3:]]
    os.execvp(arguments[0], arguments)


if __name__ == "__main__":
    main()
