"""The grading process and its client.

It is started by exec, so it inherits nothing of a Jupyter server or a gradebook
connection; it holds the hidden tests and talks frames over one socket. One
request, one answer.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from course_grader.course import Course, CourseError
from course_grader.judge.report import SubmissionReport
from course_grader.kernel.channel import Channel, ChannelClosed

PREPARED_KEPT = 4
"""Chapters kept ready: preparing one costs seconds, keeping one megabytes."""


class GradingFailed(RuntimeError):
    """The machinery failed on one submission; nobody's work is to blame."""


class GradingProcess:
    """A client of one grading process, started on construction.

    Args:
        course: the course.
        sandboxed: learner code runs in the sandbox; outside it only for code
            that is trusted.
    """

    def __init__(self, course: Course, sandboxed: bool = True) -> None:
        mine, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "course_grader.grading.process",
                str(theirs.fileno()),
                str(course.root),
                "sandboxed" if sandboxed else "unsandboxed",
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the coordinator's to handle
        )
        theirs.close()
        self.channel = Channel(mine)

    def grade(
        self, chapter: str, seed: int, submitted: bytes, all_cells: bool = False
    ) -> tuple[SubmissionReport, str]:
        """Grades one submission.

        Returns:
            (report, notebook): the notebook as the text of its file.

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
            },
            submitted,
        )
        return SubmissionReport.from_json(answer["report"]), blob.decode()

    def prepare(self, chapter: str, seed: int) -> None:
        """Makes a chapter ready, so that the first submission does not wait.

        Raises:
            CourseError: the chapter cannot be graded.
            GradingFailed: the process died.
        """
        self._ask({"op": "prepare", "chapter": chapter, "seed": seed}, b"")

    def _ask(
        self, request: dict[str, Any], blob: bytes
    ) -> tuple[dict[str, Any], bytes]:
        try:
            self.channel.send(request, blob)
            answer, blob = self.channel.receive()
        except ChannelClosed as error:
            raise GradingFailed(
                "The grading process ended unexpectedly "
                f"(exit status {self.process.poll()})."
            ) from error
        if "course_error" in answer:
            raise CourseError(answer["course_error"])
        if "failed" in answer:
            raise GradingFailed(answer["failed"])
        return answer, blob

    def close(self) -> None:
        self.channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=15)
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> GradingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    """Serves one client on the inherited socket whose number is argv[1], for
    the course in the folder argv[2]; argv[3] says whether sandboxed."""
    from course_grader.judge.warming import WarmProcess

    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    course = Course(Path(sys.argv[2]))
    with WarmProcess(course.limits, sys.argv[3] == "sandboxed") as warm:
        _serve(channel, _handler(course, warm))


def _serve(
    channel: Channel,
    handle: Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]],
) -> None:
    while True:
        try:
            request, blob = channel.receive()
        except ChannelClosed:
            return
        try:
            answer, text = handle(request, blob)
        except CourseError as error:
            answer, text = {"course_error": str(error)}, b""
        except Exception as error:
            answer, text = {"failed": f"{type(error).__name__}: {error}"}, b""
        channel.send(answer, text)


def _handler(
    course: Course, warm: Any
) -> Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]:
    from course_grader.grading.submission import (
        Prepared,
        grade_submission,
        prepare,
    )

    ready: OrderedDict[tuple[str, int], Prepared] = OrderedDict()

    def handle(
        request: dict[str, Any], blob: bytes
    ) -> tuple[dict[str, Any], bytes]:
        key = request["chapter"], request["seed"]
        if key not in ready:
            ready[key] = prepare(course, warm, *key)
            while len(ready) > PREPARED_KEPT:
                ready.popitem(last=False)
        if request["op"] == "prepare":
            return {}, b""
        graded = grade_submission(warm, ready[key], blob, request["all_cells"])
        text: str = nbformat.writes(graded.notebook, version=4)
        return {"report": graded.report.to_json()}, text.encode()

    return handle


if __name__ == "__main__":
    main()
