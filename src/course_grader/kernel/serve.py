"""The learner's process: runs cells, then forks one process per exercise.

Everything in it belongs to the learner's code once the first cell has run, so
nothing here is trusted by the judge: it only ever reads plain data, within
deadlines.
"""

from __future__ import annotations

import array
import contextlib
import json
import marshal
import os
import resource
import signal
import socket
from typing import Any

from course_grader.kernel import plain
from course_grader.kernel.channel import Channel, ChannelClosed
from course_grader.kernel.probing import load_probes, run_probe
from course_grader.kernel.replaced import replaced
from course_grader.kernel.shell import CellShell
from course_grader.kernel.tracing import Trace

CELL_FILE_MARK = "<ipython-input-"
"""How IPython names the code of cells in tracebacks."""


def serve(sock: socket.socket, shell: CellShell) -> None:
    """Answers the judge until it hangs up. Never returns a value, never raises
    for what the judge's side does."""
    channel = Channel(sock)
    cells: dict[str, str] = {}
    ending: list[int] = []
    while True:
        try:
            request, fd = receive_with_fd(sock)
        except (ChannelClosed, OSError):
            return
        match request["op"]:
            case "cell":
                number = shell.execution_count
                outputs, ok = shell.run(request["source"])
                cells[f"{CELL_FILE_MARK}{number}-"] = request["id"]
                channel.send({"outputs": outputs, "ok": ok})
            case "fork":
                assert fd is not None
                pid = os.fork()
                if pid == 0:
                    sock.close()
                    _answer_probes(socket.socket(fileno=fd), shell, cells)
                    os._exit(0)
                os.close(fd)
                channel.send({"pid": pid})
                ending = [one for one in ending if not _ended(one)]
            case "reap":
                # its memory takes longer to free than the judge should wait
                with contextlib.suppress(OSError):
                    os.kill(request["pid"], signal.SIGKILL)
                ending.append(request["pid"])


def receive_with_fd(sock: socket.socket) -> tuple[dict[str, Any], int | None]:
    """One small JSON request; a file descriptor may travel with its first byte."""
    rights = socket.CMSG_SPACE(array.array("i").itemsize)
    first, ancillary, _, _ = sock.recvmsg(16, rights)
    if not first:
        raise ChannelClosed("the judge hung up")
    fd = None
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fd = array.array("i", data)[0]
    while len(first) < 16:
        first += sock.recv(16 - len(first))
    size = int.from_bytes(first[:8], "big")
    body = bytearray()
    while len(body) < size:
        piece = sock.recv(size - len(body))
        if not piece:
            raise ChannelClosed("the judge hung up")
        body += piece
    return json.loads(bytes(body)), fd


def _ended(pid: int) -> bool:
    """Whether a child of this process is gone; it is no zombie then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:
        return True


def _cpu_seconds() -> list[float]:
    """Processor time of this process, and of its children that have ended."""
    return [
        used.ru_utime + used.ru_stime
        for used in map(
            resource.getrusage,
            (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN),
        )
    ]


def _answer_probes(
    sock: socket.socket, shell: CellShell, cells: dict[str, str]
) -> None:
    """Runs probes of one exercise for the judge, in a process of their own."""
    channel = Channel(sock)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    probes: dict[str, Any] = {}
    while True:
        try:
            request, blob = channel.receive()
        except ChannelClosed:
            return
        match request["op"]:
            case "cell":
                number = shell.execution_count
                _, ok = shell.run(request["source"])
                cells[f"{CELL_FILE_MARK}{number}-"] = request["id"]
                channel.send({"ok": ok})
            case "usage":
                channel.send({"cpu_s": _cpu_seconds()})
            case "replaced":
                channel.send({"names": replaced()})
            case "probes":
                probes = load_probes(marshal.loads(blob))
            case "probe":
                traced = request.get("trace")
                trace = None if traced is None else Trace(traced == "enter")
                record = run_probe(
                    probes[request["probe"]],
                    shell.user_ns,
                    plain.decode(request["case"], blob),
                    lambda name: name.startswith(CELL_FILE_MARK),
                    trace,
                )
                if record["where"] is not None:
                    file, line = record["where"]
                    record["where"] = [
                        next(
                            (
                                cell
                                for mark, cell in cells.items()
                                if file.startswith(mark)
                            ),
                            "",
                        ),
                        line,
                    ]
                data = record.pop("data")
                if trace is not None:
                    data = {"data": data, "trace": trace.record()}
                layout, answer = plain.encode(data)
                channel.send({**record, "data": layout}, answer)
