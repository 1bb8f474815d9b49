"""Grading processes and warm processes without the seconds of their start.

Both import torch before they do anything. For a command that is forked
(`commands.py`), one of each lies ready: the grading process is a fork of the command
from before it did anything; the warm process is one for all commands of a test
process, to which each has a connection of its own, as several judges have. A
grading process that a test asks for itself is a fork, too. Whatever
else is asked for is started as ever: a second grading process, other limits, none
of the sandbox. So is all of it for a command that a test starts by its path.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

from mini_course import LIMITS

from course_grader.grading import process as grading_process
from course_grader.judge import sandbox, warming
from course_grader.judge.warming import WarmProcess
from course_grader.kernel.channel import Channel
from course_grader.kernel.limits import Limits

_MODULE = "course_grader.grading.process"


@functools.cache
def warm_process() -> WarmProcess:
    """This process's only one with the small course's limits."""
    process = WarmProcess(LIMITS, sandbox.missing() is None)
    atexit.register(process.close)
    return process


@functools.cache
def complete() -> bool:
    """Whether there is one for commands; it has imported all that it can."""
    if sandbox.missing() is not None:
        return False
    warm_process().import_rest()
    return True


def connection() -> tuple[socket.socket, int] | None:
    """A new one to it, and its number; None where there is no sandbox, or where it
    would have to be started in a thread, with which it would end."""
    begun = complete.cache_info().currsize == 1
    here = threading.current_thread() is threading.main_thread()
    if not (begun or here) or not complete():
        return None
    process = warm_process()
    return process.share().socket, process.process.pid


def lay_ready(given: tuple[socket.socket, int] | None) -> None:
    """In a forked command, before it begins.

    Args:
        given: the connection, and the warm process's number.
    """
    if given is not None:
        offer(*given)
        start_grading_by(_Spare().started)


def start_grading_by(start: Callable[..., Any]) -> None:
    """From here on `GradingProcess` starts its process by this in place of
    `subprocess.Popen`."""
    grading_process.subprocess = types.SimpleNamespace(
        Popen=start,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )


def starts_grading(command: list[str]) -> bool:
    """Whether a command starts a grading process, and nothing around it."""
    return len(command) == 8 and command[1:4] == ["-P", "-m", _MODULE]


def offer(sock: socket.socket, pid: int) -> None:
    """Gives connections of their own to those who would start a warm process here."""
    known = object.__new__(WarmProcess)
    known.channel, known.asking = Channel(sock), threading.Lock()
    known.ready = True
    started = WarmProcess.__init__

    def connect(
        self: WarmProcess,
        limits: Limits | None = None,
        sandboxed: bool = True,
        group: object = None,
        compiling: bool = True,
    ) -> None:
        if not sandboxed or group is not None or limits != LIMITS:
            started(self, limits, sandboxed, group, compiling)
            return
        self.limits, self.group, self.runtime = limits, None, None
        self.process = types.SimpleNamespace(pid=pid, wait=lambda timeout: 0)
        self.channel, self.asking = known.share(), threading.Lock()
        self.ready, self.imported = True, set()

    warming.WarmProcess.__init__ = connect


class _Spare:
    """A fork that becomes a grading process, and stands for what starts one."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self.channel.close()
            with contextlib.suppress(KeyboardInterrupt):
                _become(theirs)
            os._exit(1)
        theirs.close()
        self.used = False
        self.status: int | None = None

    def started(self, command: list[str], **options: Any) -> Any:
        if self.used or not starts_grading(command):
            return subprocess.Popen(command, **options)
        self.used = True
        settings = [command[-3:], os.getcwd(), dict(os.environ)]
        socket.send_fds(
            self.channel, [json.dumps(settings).encode()], options["pass_fds"]
        )
        self.channel.close()
        return self

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            flags = 0 if until is None else os.WNOHANG
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, flags)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
            if self.status is not None:
                return self.status
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(_MODULE, timeout or 0)
            time.sleep(0.005)


def _become(orders: socket.socket) -> None:
    """Waits until it is told to be a grading process, or nobody is there to."""
    message, descriptors, _, _ = socket.recv_fds(orders, 2**20, 1)
    if not message:
        return
    orders.close()
    grade(descriptors[0], *json.loads(message))


def grade(
    descriptor: int,
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
) -> None:
    """In a fork: what the start of a grading process would do.

    Args:
        descriptor: of the client's socket.
        arguments: those that follow it.
        folder: the current one.
        environment: all of it.
    """
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [_MODULE, str(descriptor), *arguments]
    grading_process.main()
