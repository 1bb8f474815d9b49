"""What a command needs and the machine lacks, said in one sentence each.

A sentence names what is missing, what does not work without it and the
command that installs it. A Python that is too old is caught earlier, by
`tools/setup.sh`, before any of this can be imported.
"""

import errno
import os
import shutil
import socket
import sys
import webbrowser
from dataclasses import dataclass

_LOOPBACK = "127.0.0.1"
NO_SPACE = (
    "There is no space left on the disk. What was stored before stays as it is: "
    "free some space, then type the command again."
)


@dataclass(frozen=True)
class Need:
    """Something a command needs; `missing` is None where it is there."""

    name: str
    missing: str | None


@dataclass(frozen=True)
class _Program:
    package: str
    winget_id: str | None
    without: str
    linux_only: bool = False


_PROGRAMS = {
    "dot": _Program(
        package="graphviz",
        winget_id="Graphviz.Graphviz",
        without="graphs are drawn in a plainer way",
    ),
    "bwrap": _Program(
        package="bubblewrap",
        winget_id=None,
        without="other people's notebooks cannot be graded in the sandbox",
        linux_only=True,
    ),
}


def _install_command(program: _Program) -> str | None:
    """The command of the first package manager found on this machine."""
    if os.environ.get("CONDA_PREFIX") == sys.prefix and shutil.which("conda"):
        return f"conda install --channel conda-forge {program.package}"
    if program.winget_id is not None and shutil.which("winget"):
        return f"winget install {program.winget_id}"
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    for manager, install in (
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("pacman", "pacman -S"),
        ("zypper", "zypper install"),
        ("apk", "apk add"),
    ):
        if shutil.which(manager):
            sudo = "" if is_root else "sudo "
            return f"{sudo}{install} {program.package}"
    if shutil.which("brew"):
        return f"brew install {program.package}"
    return None


def need_program(name: str) -> str | None:
    """Says what to do when a program is not installed.

    Args:
        name: `dot` (Graphviz) or `bwrap` (bubblewrap).
    Returns:
        One sentence with the command that installs it, or None where the
        program is found.
    Raises:
        KeyError: the course knows no such program.
    """
    program = _PROGRAMS[name]
    if shutil.which(name):
        return None
    lacking = f"`{name}` ({program.package}) is not installed, so"
    if program.linux_only and sys.platform != "linux":
        return (
            f"{lacking} {program.without}: it exists on Linux only, so grade "
            "on a Linux machine, in a container or under WSL."
        )
    command = _install_command(program)
    if command is None:
        return (
            f"{lacking} {program.without}: install the package "
            f"{program.package} with this machine's package manager."
        )
    return f"{lacking} {program.without}: install it with `{command}`."


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        if os.name == "posix":
            # A port that a closed server has just left is free again. On
            # Windows the option would call a port in use free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(preferred: int) -> int:
    """A port that a server on this machine can listen on.

    Returns:
        `preferred` where it is free, else the first free one of the 50 after
        it, else any free one that the system names.
    """
    for port in range(preferred, min(preferred + 51, 65536)):
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def need_port(port: int) -> str | None:
    """Says which port to take instead when `port` is taken.

    Returns:
        One sentence with a command that works, or None where the port is
        free.
    """
    if _is_free(port):
        return None
    return (
        f"Port {port} is taken by another program: open JupyterLab on another "
        f"one with `course lab --port {free_port(port)}`."
    )


def open_in_browser(address: str) -> bool:
    """Opens an address where there is a browser with windows, or where the
    variable BROWSER names one; whether it did."""
    windows = os.name == "nt" or sys.platform == "darwin"
    if not windows and not any(
        os.environ.get(name)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False
    return webbrowser.open(address)


def report() -> list[Need]:
    """What the commands of the course need outside Python, and what is lacking.

    Returns:
        One need each for `dot`, `bwrap` and JupyterLab's port 8888.
    """
    return [
        Need("Graphviz", need_program("dot")),
        Need("bubblewrap", need_program("bwrap")),
        Need("port 8888", need_port(8888)),
    ]


def disk_is_full(error: BaseException) -> bool:
    """Whether this error, or one that led to it, is that a disk is full or that
    somebody has used up their part of it."""
    seen: BaseException | None = error
    while seen is not None:
        full = isinstance(seen, OSError) and seen.errno in (
            errno.ENOSPC,
            errno.EDQUOT,
        )
        # SQLite's words, whichever library hands them on
        if full or "database or disk is full" in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
