"""The process that learner processes are forked from, as the judge sees it.

Importing this loads no torch: whoever starts a warm process first can import
the rest of the judge while it warms up.
"""

from __future__ import annotations

import array
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from course_grader.judge import delegated, sandbox
from course_grader.kernel.channel import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
)
from course_grader.kernel.limits import Limits

START_TIMEOUT_S = 180.0
"""The first start on a slow disk imports torch cold."""
ANSWER_TIMEOUT_S = 20.0
"""For requests that run no learner code but wait behind it."""
WARM_TIMEOUT_S = 120.0
"""For the warm process, which is slow only where the whole machine is."""

_WARM_PROCESS_ENDED = (
    "The process that starts learner processes ended. If the machine ran out "
    "of memory (`dmesg` tells), grade with fewer --workers."
)


class GraderBroken(RuntimeError):
    """The grading machinery itself failed: nobody's work is to blame."""


def send_with_fd(
    sock: socket.socket,
    request: dict[str, Any],
    fd: int,
    timeout_s: float | None = None,
) -> None:
    """Sends a request with an open file, as `kernel.serve` reads it.

    Raises:
        OSError: the other side is gone, or did not read within `timeout_s`.
    """
    body = json.dumps(request).encode()
    head = len(body).to_bytes(8, "big") + bytes(8)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    sock.settimeout(timeout_s)
    sent = sock.sendmsg([head], rights)
    sock.sendall(head[sent:] + body)
    sock.settimeout(None)


class WarmProcess:
    """A process that has imported everything and forks learner processes."""

    def __init__(
        self,
        limits: Limits | None = None,
        sandboxed: bool = True,
        group: Path | None = None,
        compiling: bool = True,
    ) -> None:
        """Starts it.

        Args:
            limits: of each learner process.
            sandboxed: inside the sandbox; outside it only for code that is
                trusted.
            group: the control group in which this process is, if it may be divided.
            compiling: it imports what compiles, which the first optimizer of a process
                asks for; without, that is left to `import_rest` or to whoever needs it.
        """
        self.limits = limits or Limits()
        mine, theirs = socket.socketpair()
        arguments = [
            str(theirs.fileno()),
            json.dumps(self.limits.to_json()),
            "sandboxed" if sandboxed else "unsandboxed",
        ]
        self.group = group
        passed = [theirs.fileno()]
        if group is not None:
            passed.append(os.open(group, os.O_RDONLY | os.O_DIRECTORY))
        arguments += [
            str(passed[-1] if group is not None else -1),
            "compiling" if compiling else "plain",
        ]
        self.runtime = sandbox.Runtime() if sandboxed else None
        self.process = subprocess.Popen(
            self._command("warm.main", *arguments),
            pass_fds=passed,
            env=sandbox.clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
            start_new_session=True,
        )
        theirs.close()
        for number in passed[1:]:
            os.close(number)
        self.channel = Channel(mine)
        self.asking = threading.Lock()
        self.ready = False
        self.imported: set[str] | None = None
        """What it has imported beyond what every exercise needs; None if nothing (see
        `import_rest`)."""

    def _command(self, call: str, *arguments: str) -> list[str]:
        if self.runtime is None:
            return [*sandbox.plain_command(call), *arguments]
        return sandbox.command(self.runtime, call, *arguments)

    def _last_words(self) -> str:
        """What a process says that fails in the same imports; nothing, if it does
        not fail."""
        try:
            tried = subprocess.run(
                self._command("warm.try_out"),
                env=sandbox.clean_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                cwd=tempfile.gettempdir(),
                timeout=START_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f" ({error})"
        said = tried.stderr.strip().splitlines()
        return f" ({said[-1]})" if tried.returncode and said else ""

    def _wait_until_ready(self) -> None:
        if not self.ready:
            try:
                self.channel.receive(START_TIMEOUT_S)
            except (ChannelClosed, DeadlinePassed) as error:
                raise GraderBroken(
                    "The process that runs learner code did not start"
                    f"{self._last_words()}: "
                    f"`{sys.executable} -c 'import torch, IPython'` must work."
                ) from error
            self.ready = True
            if self.group is not None:
                # not before: the sandbox must see the whole of the group
                self._divide(self.group)

    def _divide(self, group: Path) -> None:
        try:
            delegated.divide(group)
        except OSError as error:
            sys.stderr.write(
                f"The control group {group} cannot be divided ({error.strerror}): "
                "submissions are graded without control groups.\n"
            )

    def start(self) -> tuple[socket.socket, int]:
        """Starts a learner process; the connection to it, and its number."""
        mine, theirs = socket.socketpair()
        try:
            with theirs, self.asking:
                self._wait_until_ready()
                send_with_fd(
                    self.channel.socket, {"op": "start"}, theirs.fileno()
                )
                answer, _ = self.channel.receive(WARM_TIMEOUT_S)
        except (ChannelClosed, DeadlinePassed, OSError) as error:
            raise GraderBroken(_WARM_PROCESS_ENDED) from error
        if "error" in answer:
            raise GraderBroken(
                f"A learner's process could not be started: {answer['error']}."
            )
        return mine, int(answer["pid"])

    def import_rest(self, more: Collection[str] = ()) -> None:
        """Lets it import what not every exercise needs, and the modules `more`, if it
        has not yet: worth its time where many processes are to be started."""
        if self.imported is not None and self.imported.issuperset(more):
            return
        try:
            with self.asking:
                self._wait_until_ready()
                self.channel.send({"op": "rest", "more": list(more)})
                self.channel.receive(START_TIMEOUT_S)
        except (ChannelClosed, DeadlinePassed) as error:
            raise GraderBroken(_WARM_PROCESS_ENDED) from error
        self.imported = {*(self.imported or ()), *more}

    def share(self) -> Channel:
        """Connects one more judge, a fork of this process, to it; there, the
        connection takes the place of `channel`."""
        mine, theirs = socket.socketpair()
        try:
            with theirs, self.asking:
                self._wait_until_ready()
                send_with_fd(
                    self.channel.socket, {"op": "share"}, theirs.fileno()
                )
                self.channel.receive(WARM_TIMEOUT_S)
        except (ChannelClosed, DeadlinePassed, OSError) as error:
            raise GraderBroken(_WARM_PROCESS_ENDED) from error
        return Channel(mine)

    def stop(self, pid: int) -> str:
        """Ends a learner process and all that it has started.

        Returns:
            The name of the limit for which the sandbox had ended it before;
            empty if it had not.
        """
        try:
            with self.asking:
                self.channel.send({"op": "stop", "pid": pid})
                answer, _ = self.channel.receive(WARM_TIMEOUT_S)
        except (ChannelClosed, DeadlinePassed) as error:
            raise GraderBroken(_WARM_PROCESS_ENDED) from error
        return str(answer["why"])

    def close(self) -> None:
        self.channel.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.runtime is not None:
            self.runtime.remove()

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
