"""Grading processes and their clients.

One is started by exec, so it inherits nothing of a Jupyter server or a gradebook
connection; it holds the hidden tests and talks frames over one socket. One
request, one answer; before that one, where a single exercise is judged, what a
notebook shows meanwhile. When it has made a chapter ready, forks of it grade side by
side: imports and reference are paid for once.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_grader.course import Course, CourseError
from course_grader.judge import delegated
from course_grader.judge.report import SubmissionReport
from course_grader.kernel.channel import Channel, ChannelClosed
from course_grader.startup import import_fast

if TYPE_CHECKING:
    # imported late, so that the warm process starts beside these imports
    from course_grader.grading.submission import Prepared
    from course_grader.grading.watched import Watch
    from course_grader.judge.warming import WarmProcess

MANY = 3
"""Submissions from which all that any of them may import is imported beforehand: the
set-up cells of chapter 11 import scikit-learn, a second for each that has to."""
PREPARED_KEPT = 4
"""Chapters kept ready: preparing one costs seconds, keeping one megabytes."""


class GradingFailed(RuntimeError):
    """The machinery failed on one submission; nobody's work is to blame."""


class GradingClient:
    """Talks to one grading process, over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.channel = Channel(sock)

    def grade(
        self,
        chapter: str,
        seed: int,
        submitted: bytes,
        all_cells: bool = False,
        page_for: str | None = None,
    ) -> tuple[SubmissionReport, str]:
        """Grades one submission.

        Args:
            chapter: the chapter's name.
            seed: the cases are drawn from it.
            submitted: the notebook file as it was handed in.
            all_cells: run untouched reading cells too.
            page_for: whose page is wanted; None for the graded notebook.

        Returns:
            (report, text): the text of the page's file, or of the notebook's,
            which is safe to open.

        Raises:
            CourseError: the chapter cannot be graded.
            GradingFailed: the process died or broke on this submission.
        """
        answer, blob = self._ask(
            {
                "op": "grade",
                "chapter": chapter,
                "seed": seed,
                "all_cells": all_cells,
                "page_for": page_for,
            },
            submitted,
        )
        return SubmissionReport.from_json(answer["report"]), blob.decode()

    def check(
        self,
        chapter: str,
        seed: int,
        submitted: bytes,
        exercise: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> tuple[SubmissionReport, str]:
        """Judges one exercise of a notebook, and nothing else of it.

        Args:
            chapter: the chapter's name.
            seed: the cases are drawn from it.
            submitted: the notebook.
            exercise: its id.
            tell: is told, after each check, what a notebook shows meanwhile.

        Returns:
            (report, html): of that exercise; the html is what a notebook shows.

        Raises:
            CourseError: the chapter cannot be graded.
            GradingFailed: the process died or broke on this notebook.
        """
        answer, blob = self._ask(
            {
                "op": "grade",
                "chapter": chapter,
                "seed": seed,
                "all_cells": False,
                "page_for": None,
                "only": exercise,
            },
            submitted,
            tell,
        )
        return SubmissionReport.from_json(answer["report"]), blob.decode()

    def _ask(
        self,
        request: dict[str, Any],
        blob: bytes,
        tell: Callable[[str], None] = lambda _: None,
    ) -> tuple[dict[str, Any], bytes]:
        try:
            self.channel.send(request, blob)
            while True:
                answer, text = self._answer()
                if "running" not in answer:
                    return answer, text
                tell(text.decode())
        except ChannelClosed as error:
            raise self._ended() from error

    def _answer(self) -> tuple[dict[str, Any], bytes]:
        answer, blob = self.channel.receive()
        if "course_error" in answer:
            raise CourseError(answer["course_error"])
        if "failed" in answer:
            raise GradingFailed(answer["failed"])
        return answer, blob

    def _ended(self, status: str = "") -> GradingFailed:
        return GradingFailed(f"The grading process ended unexpectedly{status}.")

    def close(self) -> None:
        """Hangs up; the process ends when it has done what it is doing."""
        self.channel.close()


class GradingProcess(GradingClient):
    """A client of one grading process, started on construction.

    Args:
        course: the course.
        sandboxed: learner code runs in the sandbox; outside it only for code
            that is trusted.
        chapter: it grades this chapter alone, so that what others need is not
            imported; any if None.
    """

    def __init__(
        self,
        course: Course,
        sandboxed: bool = True,
        chapter: str | None = None,
    ) -> None:
        mine, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [
                *(delegated.scope() if sandboxed else ()),
                sys.executable,
                # not what lies in the current folder: it may be people's work
                "-P",
                "-m",
                "course_grader.grading.process",
                str(theirs.fileno()),
                str(course.root),
                "sandboxed" if sandboxed else "unsandboxed",
                chapter or "",
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the coordinator's to handle
        )
        theirs.close()
        self.closed = False
        super().__init__(mine)

    def prepare(self, chapter: str, seed: int, many: bool = True) -> None:
        """Makes a chapter ready, what its reference gives included, so that no
        submission waits for that.

        Args:
            chapter: the chapter's name.
            seed: the cases are drawn from it.
            many: so many submissions come that all that one of them may import is
                imported beforehand.

        Raises:
            CourseError: the chapter cannot be graded.
            GradingFailed: the process died.
        """
        asked = {"chapter": chapter, "seed": seed, "many": many}
        self._ask({"op": "prepare", **asked}, b"")

    def fork(self, chapter: str, seed: int) -> GradingClient:
        """A fork of the process, which has what this one has made ready, and has
        read the chapter: a process that has just started does that while its warm
        process imports torch.

        Raises:
            CourseError: the chapter cannot be graded.
            GradingFailed: the process died.
        """
        mine, theirs = socket.socketpair()
        client = GradingClient(mine)
        try:
            with theirs:
                self.channel.send(
                    {"op": "fork", "chapter": chapter, "seed": seed}
                )
                socket.send_fds(self.channel.socket, [b"!"], [theirs.fileno()])
            self._answer()
        except (CourseError, GradingFailed):
            client.close()
            raise
        except (OSError, ChannelClosed) as error:
            client.close()
            raise self._ended() from error
        return client

    def _ended(self, status: str = "") -> GradingFailed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = f" (exit status {self.process.wait(timeout=5)})"
        return super()._ended(status)

    def close(self) -> None:
        """Ends it, and its forks; once."""
        if self.closed:
            return
        self.closed = True
        super().close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> GradingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    """Serves one client on the inherited socket whose number is argv[1], for
    the course in the folder argv[2]; argv[3] says whether sandboxed, argv[4] is the
    one chapter that will be asked for, or empty."""
    from course_grader.judge.warming import WarmProcess

    import_fast()
    sock = socket.socket(fileno=int(sys.argv[1]))
    course = Course(Path(sys.argv[2]))
    sandboxed = sys.argv[3] == "sandboxed"
    group = delegated.own_group() if sandboxed else None
    compiling = _compiles(course, sys.argv[4])
    with WarmProcess(course.limits, sandboxed, group, compiling) as warm:
        import torch

        # forks have it: no submission waits for imports
        import course_grader.grading.watched  # noqa: F401

        # a fork has none of the threads that its parent's torch has started
        torch.set_num_threads(1)
        _serve(sock, course, warm, OrderedDict())
    os._exit(0)  # unloading torch takes a second, and there is nothing to save


def _compiles(course: Course, chapter: str) -> bool:
    """Whether what is run of a chapter asks for what compiles, as far as its text
    tells: the first optimizer does, a change of the deterministic switch, and many an
    operation on the meta device.
    True where the chapter is not known. Parsing it would take longer than starting
    the warm process."""
    try:
        source = course.source_of(chapter).read_text(encoding="utf-8")
        probes = course.autograde / chapter / "probes.py"
        cells = [probes.read_text(encoding="utf-8")]
    except (OSError, UnicodeDecodeError):
        return True
    cells += [
        cell
        for cell in source.split("\n# %%")
        if re.match(r" (?:exercise|setup)=", cell)
    ]
    return any(re.search("optim|use_determin|meta", cell) for cell in cells)


def _serve(
    sock: socket.socket,
    course: Course,
    warm: WarmProcess,
    ready: OrderedDict[tuple[str, int], Prepared],
) -> None:
    """Answers one client until it hangs up.

    Args:
        sock: the connection to it.
        course: the course.
        warm: where learner processes are forked from.
        ready: what has been made ready, by chapter and seed; grows.
    """
    from course_grader.grading.watched import Watch

    channel = Channel(sock)
    watch = Watch(sock, warm, ready)
    forks: list[int] = []
    served = 0
    answer: dict[str, Any]
    while True:
        try:
            request, blob = channel.receive()
        except ChannelClosed:
            return
        try:
            if request["op"] == "fork":
                forks = [one for one in forks if not _gone(one)]
                forks.append(_fork(request, sock, course, warm, ready))
                answer, text = {}, b""
            else:
                answer, text = _answer(
                    request, blob, channel, course, warm, ready, watch, served
                )
                served += 1
        except ChannelClosed:
            return
        except CourseError as error:
            answer, text = {"course_error": str(error)}, b""
        except Exception as error:
            answer, text = {"failed": f"{type(error).__name__}: {error}"}, b""
        try:
            channel.send(answer, text)
        except ChannelClosed:
            return


def _fork(
    request: dict[str, Any],
    sock: socket.socket,
    course: Course,
    warm: WarmProcess,
    ready: OrderedDict[tuple[str, int], Prepared],
) -> int:
    """Forks this process, to serve the client whose socket comes next."""
    _, (descriptor, *_), _, _ = socket.recv_fds(sock, 1, 1)
    try:
        _read(request, course, warm, ready)
        connection = warm.share()
    except Exception:
        os.close(descriptor)
        raise
    pid = os.fork()
    if pid == 0:
        sock.close()
        warm.channel.close()
        warm.channel = connection
        with contextlib.suppress(BaseException):
            _serve(socket.socket(fileno=descriptor), course, warm, ready)
        os._exit(0)  # what is left to clean up is the first process' own
    os.close(descriptor)
    connection.close()
    return pid


def _gone(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def _read(
    request: dict[str, Any],
    course: Course,
    warm: WarmProcess,
    ready: OrderedDict[tuple[str, int], Prepared],
) -> bool:
    """Reads the chapter that is asked for; whether that was new. It asks nothing
    of the warm process, which may still be importing."""
    from course_grader.grading.submission import prepare

    key = request["chapter"], request["seed"]
    if key in ready:
        return False
    ready[key] = prepare(course, warm, *key)
    while len(ready) > PREPARED_KEPT:
        ready.popitem(last=False)[1].close()
    return True


def _answer(
    request: dict[str, Any],
    blob: bytes,
    channel: Channel,
    course: Course,
    warm: WarmProcess,
    ready: OrderedDict[tuple[str, int], Prepared],
    watch: Watch,
    served: int,
) -> tuple[dict[str, Any], bytes]:
    from course_grader.chapter.grading import LARGE
    from course_grader.grading.watched import rehearse

    key = request["chapter"], request["seed"]
    if _read(request, course, warm, ready):
        watch.close()  # it does not know this chapter
    if request["op"] == "prepare":
        ready[key].work_out(request["many"])
        rehearse(ready[key])
        # collecting in a fork would copy every page that these objects stand on
        gc.freeze()
        watch.close()  # what it lacks is known here now
        return {}, b""
    if served >= MANY:
        # reading cells run too: they read digits
        every = request["all_cells"]
        warm.import_rest(LARGE if every else ready[key].grading.large)
    report, text = watch.grade(
        key,
        blob,
        request["all_cells"],
        request["page_for"],
        request.get("only"),
        lambda html: channel.send({"running": True}, html),
    )
    return {"report": report.to_json()}, text.encode()


if __name__ == "__main__":
    main()
