"""The warm process: has imported what first use imports, and forks from there.

It is started by exec with a clean environment, never forked from a process
that has seen anything of the course. It runs no torch operator and no learner
code itself. One request, one answer, over its connection to each judge, of which
the first is the socket it was given:

    {"op": "start"} with a socket attached -> {"pid": ...}: a learner's process,
        in a room of its own where there is a sandbox; or {"error": ...}
    {"op": "stop", "pid": ...} -> {"why": ...}: it and all that it started end;
        the limit for which the sandbox had ended it before, if so
    {"op": "share"} with a socket attached -> {}: one more judge's connection
    {"op": "rest", "more": [...]} -> {}: it imports what not every exercise needs, and
        these modules, so that many submissions are quick, where a few would only
        wait for it

What a judge has started ends with its connection, and this with the last one.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from course_grader.kernel.channel import Channel, ChannelClosed
from course_grader.kernel.isolation import (
    Keeper,
    Room,
    close_all_but,
    limit_resources,
)
from course_grader.kernel.limits import Limits

PR_SET_PDEATHSIG = 1
MADV_COLLAPSE = 25
HUGE_PAGE_BYTES = 2**21


FOR_EXERCISES = (
    "numpy.testing",
    "torch",
    "torch.testing",
    "torch.testing._comparison",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.nn.utils.parametrizations",
    "torch.optim.swa_utils",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torchinfo",
    "tqdm.auto",
    "course_utils",
    "course_grader.kernel.serve",
)
"""What exercises and probes import on first use, so that no learner waits for it:
the first `torch.testing.assert_close` alone brings 500 modules."""
FOR_COMPILING = ("torch._dynamo",)
"""What the first optimizer of a process imports, and whoever sets deterministic
algorithms: as much again as torch."""
FOR_READING = (
    "matplotlib.pyplot",
    "ipywidgets",
)
"""What cells import that a learner has changed."""


def import_all(names: Iterable[str]) -> None:
    """Imports what there is of these modules, for all forks to come."""
    # a quarter of the time of importing would go into collecting what all stays
    gc.disable()
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in names:
        with contextlib.suppress(ImportError):
            __import__(name)
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):  # may be set once
        torch.set_num_interop_threads(1)
    # collecting in a fork would copy every page that these objects stand on
    gc.freeze()
    gc.enable()


def _set_up_thread_pool() -> None:
    """What PyTorch does in a forked process at the first use of its thread pool.
    If two threads do it at once, one finds none and raises *Invalid thread pool*."""
    import torch

    torch.set_num_threads(torch.get_num_threads())


def use_huge_pages() -> None:
    """Puts what was imported onto huge pages: forking and ending a process costs
    time for every page, and there are a hundred thousand small ones. Where the
    kernel cannot (Linux before 6.1), pages stay as they are."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            span, flags, _, _, _, *name = line.split()
            if flags != "rw-p" or name not in ([], ["[heap]"]):
                continue
            first, end = (int(one, 16) for one in span.split("-"))
            first = -(-first // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
            for place in range(
                first, end - HUGE_PAGE_BYTES + 1, HUGE_PAGE_BYTES
            ):
                libc.madvise(
                    ctypes.c_void_p(place),
                    ctypes.c_size_t(HUGE_PAGE_BYTES),
                    MADV_COLLAPSE,
                )


def try_out() -> None:
    """Imports what `main` imports, which tells on standard error what fails."""
    import_all(FOR_EXERCISES + FOR_COMPILING)


def main() -> None:
    """Serves judges, the first on the inherited socket whose number is argv[1],
    with the limits in argv[2]; argv[3] tells whether this is in the sandbox, argv[4]
    is the inherited folder in which rooms get control groups, or -1, argv[5] tells
    whether what compiles will be asked for."""
    control = socket.socket(fileno=int(sys.argv[1]))
    limits = Limits(**json.loads(sys.argv[2]))
    parent = int(sys.argv[4]) if int(sys.argv[4]) >= 0 else None
    sandboxed = sys.argv[3] == "sandboxed"
    keeper = Keeper(limits, control, parent) if sandboxed else None
    import_all(FOR_EXERCISES)
    os.register_at_fork(after_in_child=_set_up_thread_pool)
    if sys.argv[5] == "compiling":
        import_all(FOR_COMPILING)
    from course_grader.kernel.serve import receive_with_fd, serve
    from course_grader.kernel.shell import make_shell

    shell = make_shell(limits)
    judges = selectors.DefaultSelector()

    def start(sock: socket.socket, places: dict[int, Room | _Folder]) -> int:
        place = _Folder() if keeper is None else keeper.room()
        body = functools.partial(serve, sock, shell)
        pid = place.fork(limits, sock.fileno(), body)
        places[pid] = place
        return pid

    def answer(
        judge: socket.socket, places: dict[int, Room | _Folder]
    ) -> dict[str, Any]:
        request, fd = receive_with_fd(judge)
        if request["op"] == "stop":
            pid = request["pid"]
            return {"why": places.pop(pid).end(pid) if pid in places else ""}
        if request["op"] == "rest":
            import_all((*FOR_COMPILING, *FOR_READING, *request["more"]))
            use_huge_pages()
            return {}
        assert fd is not None
        sock = socket.socket(fileno=fd)
        if request["op"] == "share":
            judges.register(sock, selectors.EVENT_READ, {})
            return {}
        with sock:
            try:
                return {"pid": start(sock, places)}
            except OSError as error:
                return {"error": error.strerror or str(error)}

    judges.register(control, selectors.EVENT_READ, {})
    Channel(control).send({"ready": os.getpid()})
    while judges.get_map():
        for key, _ in judges.select():
            judge, places = key.fileobj, key.data
            assert isinstance(judge, socket.socket)
            try:
                Channel(judge).send(answer(judge, places))
            except (ChannelClosed, OSError):
                judges.unregister(judge)
                judge.close()
                for pid, place in places.items():
                    place.end(pid)
    os._exit(0)  # unloading torch takes a second, and there is nothing to save


class _Folder:
    """Where a learner's process runs without a sandbox: a folder, no walls."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="submission-")

    def fork(
        self, limits: Limits, channel: int, body: Callable[[], object]
    ) -> int:
        """As `Room.fork`, without its walls."""
        pid = os.fork()
        if pid == 0:
            os.setsid()
            with contextlib.suppress(OSError, AttributeError):
                # dies with the warm process (Linux)
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.chdir(self.path)
            os.environ["HOME"] = self.path
            limit_resources(limits)
            close_all_but(channel)
            with contextlib.suppress(BaseException):
                body()
            os._exit(0)
        return pid

    def end(self, pid: int) -> str:
        """Ends a learner's process group and removes its folder."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                end(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)
        shutil.rmtree(self.path, ignore_errors=True)
        return ""


if __name__ == "__main__":
    main()
