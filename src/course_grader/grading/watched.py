"""Grading under bounds that are kept from outside of whoever grades.

Reading what a submission sends back, comparing, repairing, highlighting and writing
pages is work on hostile data. All of it happens in a fork of the prepared grading
process, which has so much wall time, processor time and memory for each submission.
Whoever waits for it ends it when it takes more, and forks another one in
milliseconds. What it had judged by then counts; the rest has a verdict with a
sentence, and the next submission finds nothing of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode

from course_grader.course import CourseError
from course_grader.feedback import (
    below_a_cell,
    below_a_cell_so_far,
    page,
    sanitise,
)
from course_grader.grading.repair import repair
from course_grader.grading.submission import (
    Prepared,
    grade_submission,
    unjudged,
    write_scores,
)
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    SubmissionReport,
    Verdict,
)
from course_grader.judge.warming import GraderBroken
from course_grader.kernel.channel import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
)

if TYPE_CHECKING:
    from course_grader.judge.warming import WarmProcess

TRIES = 2
"""How often a submission is begun on which the grader itself breaks."""
SHOW_S = 30
"""Processor time for showing what was not graded to its end, in seconds."""
MOST_SERVED = 100
"""Submissions that one fork grades: what each leaves in memory must not count
against a later one."""
_PR_SET_PDEATHSIG = 1

Ready = Mapping[tuple[str, int], Prepared]
"""What has been made ready, by chapter and seed."""


@dataclass
class _Ended:
    """What a fork gave for one submission.

    Attributes:
        judged: the exercises that it had judged.
        report: the whole report, if it came that far.
        shown: the notebook or the page, as the text of a file.
        verdict: of what was not judged; None if the grader itself broke.
        why: the same as a sentence for the learner.
    """

    judged: list[ExerciseReport] = field(default_factory=list)
    report: SubmissionReport | None = None
    shown: str | None = None
    verdict: Verdict | None = None
    why: str = (
        "The grader itself broke on this submission. Somebody looks at it."
    )


class Watch:
    """Has submissions graded, one at a time, and keeps the bounds."""

    def __init__(
        self, client: socket.socket, warm: WarmProcess, ready: Ready
    ) -> None:
        """Starts nothing yet.

        Args:
            client: who asks; if it hangs up, the work is given up.
            warm: where learner processes are forked from.
            ready: the chapters that are ready; may grow.
        """
        self.client, self.warm, self.ready = client, warm, ready
        self.pid = 0
        self.channel: Channel | None = None
        self.served = 0

    def grade(
        self,
        key: tuple[str, int],
        submitted: bytes,
        all_cells: bool,
        page_for: str | None,
        only: str | None = None,
        tell: Callable[[bytes], None] = lambda _: None,
    ) -> tuple[SubmissionReport, str]:
        """Grades one submission.

        Args:
            key: the chapter, as it is ready.
            submitted: the notebook file as it was handed in.
            all_cells: run untouched reading cells and visible checks too.
            page_for: whose page is wanted; None for the graded notebook.
            only: the one exercise that is judged; what is shown is then a part
                of a notebook's output.
            tell: is told, where one exercise is judged, what can be shown of it so
                far.

        Returns:
            (report, text): the text is a page, or a notebook that is safe to open.

        Raises:
            CourseError: the reference does not run or breaks its own checks.
            GraderBroken: the process that starts learners' processes is gone.
            ChannelClosed: the client is.
        """
        request = {
            "key": key,
            "all_cells": all_cells,
            "page_for": page_for,
            "only": only,
        }
        cpu_s = self.warm.limits.grader_cpu_s
        for _ in range(TRIES):
            ended = self._ask(request, submitted, cpu_s, tell)
            if ended.report is not None or ended.verdict is not None:
                break
        prepared = self.ready[key]
        report = ended.report or _partial(prepared, ended, only)
        if ended.shown is None:
            # the code at least, without its outputs
            tree = {**request, "report": report.to_json()}
            ended = self._ask(tree, submitted, SHOW_S)
        if ended.shown is None:
            notebook = nbformat.from_dict(prepared.released)
            write_scores(notebook, report)
            nothing = None if page_for is not None else notebook
            ended.shown = _shown(report, nothing, page_for, only).decode()
        return report, ended.shown

    def _ask(
        self,
        request: dict[str, Any],
        submitted: bytes,
        cpu_s: int,
        tell: Callable[[bytes], None] = lambda _: None,
    ) -> _Ended:
        """Has something done by a fork, and ends that if it takes too much."""
        wall_s = self.warm.limits.submission_s + 2 * cpu_s
        deadline = time.monotonic() + wall_s
        ended = _Ended()
        whole = False
        try:
            channel = self._fork()
            channel.send({**request, "cpu_s": cpu_s}, submitted, wall_s)
            whole = self._listen(channel, deadline, ended, tell)
        except DeadlinePassed:
            ended.verdict = Verdict.TIMED_OUT
            ended.why = f"Grading it took more than {wall_s:g} seconds."
        except ChannelClosed:
            if self._hung_up():
                raise
        finally:
            status = 0 if whole else self.close()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            ended.verdict = Verdict.TIMED_OUT
            ended.why = (
                "Reading and judging what your code gave took more than "
                f"{cpu_s:g} seconds of processor time."
            )
        return ended

    def _hung_up(self) -> bool:
        return bool(select.select([self.client], [], [], 0)[0])

    def _listen(
        self,
        channel: Channel,
        deadline: float,
        ended: _Ended,
        tell: Callable[[bytes], None],
    ) -> bool:
        """Takes what a fork tells of a submission; whether it told everything.

        Raises:
            DeadlinePassed: it did not in time.
            CourseError, GraderBroken: it says so.
            ChannelClosed: it has ended, or the client is gone.
        """
        poll = select.poll()
        poll.register(self.client, select.POLLIN)
        poll.register(channel.socket, select.POLLIN)
        while True:
            left = max(deadline - time.monotonic(), 0)
            ready = {number for number, _ in poll.poll(left * 1000)}
            if self.client.fileno() in ready:
                raise ChannelClosed("the client hung up")
            told, blob = channel.receive(left)
            match told["what"]:
                case "exercise":
                    judged = ExerciseReport.from_json(told["exercise"])
                    ended.judged.append(judged)
                case "running":
                    tell(blob)
                case "report":
                    ended.report = SubmissionReport.from_json(told["report"])
                case "shown":
                    ended.shown = blob.decode()
                    return True
                case "memory":
                    ended.verdict = Verdict.OUT_OF_MEMORY
                    ended.why = (
                        "Reading and judging what your code gave took too much "
                        "memory."
                    )
                    return False
                case "course":
                    raise CourseError(told["why"])
                case "broken":
                    raise GraderBroken(told["why"])
                case _:
                    return False

    def _fork(self) -> Channel:
        """A connection to a fork that grades."""
        if self.channel is not None and self.served >= MOST_SERVED:
            self.close()
        if self.channel is None:
            mine, theirs = socket.socketpair()
            connection = self.warm.share()
            pid = os.fork()
            if pid == 0:
                with contextlib.suppress(BaseException):
                    mine.close()
                    self.client.close()
                    self.warm.channel.close()
                    self.warm.channel = connection
                    _serve(Channel(theirs), self.warm, self.ready)
                os._exit(0)
            theirs.close()
            connection.close()
            self.pid, self.channel, self.served = pid, Channel(mine), 0
        self.served += 1
        return self.channel

    def close(self) -> int:
        """Ends the fork, if there is one; its exit status."""
        if self.channel is None:
            return 0
        self.channel.close()
        self.channel = None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return os.waitpid(self.pid, 0)[1]


def rehearse(prepared: Prepared) -> None:
    """Makes what every submission shows, once before the first fork: what that
    imports and works out is there for all of them."""
    report = _partial(prepared, _Ended(verdict=Verdict.NOT_ATTEMPTED))
    for page_for in ("nobody", None):
        _shown(report, prepared.released, page_for)


def _partial(
    prepared: Prepared, ended: _Ended, only: str | None = None
) -> SubmissionReport:
    chapter = prepared.grading.chapter
    judged = {one.exercise: one for one in ended.judged}
    verdict = ended.verdict or Verdict.ERROR
    return SubmissionReport(
        chapter=chapter.name,
        title=chapter.title,
        seed=prepared.expected.seed,
        exercises=tuple(
            judged.get(one.id)
            or unjudged(prepared.grading, one.id, verdict, ended.why)
            for one in chapter.exercises
            if only in (None, one.id)
        ),
        needs_human=(f"It was not graded to its end. {ended.why}",),
    )


def _serve(channel: Channel, warm: WarmProcess, ready: Ready) -> None:
    """Is a fork: grades what it is asked to, until nobody asks any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + warm.limits.grader_bytes
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    while True:
        request, submitted = channel.receive()
        used = resource.getrusage(resource.RUSAGE_SELF)
        at_most = math.ceil(used.ru_utime + used.ru_stime) + request["cpu_s"]
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (at_most, hard))
        try:
            shown = _work(channel, warm, ready, request, submitted)
            channel.send({"what": "shown"}, shown)
        except CourseError as error:
            channel.send({"what": "course", "why": str(error)})
        except GraderBroken as error:
            channel.send({"what": "broken", "why": str(error)})
        except MemoryError:
            channel.send({"what": "memory"})
        except Exception:
            channel.send({"what": "raised"})


def _work(
    channel: Channel,
    warm: WarmProcess,
    ready: Ready,
    request: dict[str, Any],
    submitted: bytes,
) -> bytes:
    chapter, seed = request["key"]
    prepared = ready[chapter, seed]
    page_for = request["page_for"]
    if "report" in request:
        report = SubmissionReport.from_json(request["report"])
        notebook = repair(submitted, prepared.released).notebook
        if notebook is None:
            notebook = nbformat.from_dict(prepared.released)
        write_scores(notebook, report)
        return _shown(report, notebook, page_for, request["only"])

    only = request["only"]

    def running(judged: Sequence[CheckReport]) -> None:
        html = below_a_cell_so_far(
            prepared.grading.chapter.exercise(only).title,
            judged,
            [
                one.says
                for one in prepared.grading.checks_of(only)[len(judged) :]
            ],
        )
        text = html.encode("utf-8", "replace")
        channel.send({"what": "running"}, text)

    graded = grade_submission(
        warm,
        prepared,
        submitted,
        request["all_cells"],
        lambda one: channel.send(
            {"what": "exercise", "exercise": one.to_json()}
        ),
        only,
        None if only is None else running,
    )
    channel.send({"what": "report", "report": graded.report.to_json()})
    return _shown(graded.report, graded.notebook, page_for, only)


def _shown(
    report: SubmissionReport,
    notebook: NotebookNode | None,
    page_for: str | None,
    only: str | None = None,
) -> bytes:
    if only is not None:
        text = below_a_cell(report)
    elif page_for is not None:
        text = page(report, notebook, student=page_for)
    else:
        assert notebook is not None
        text = nbformat.writes(sanitise(notebook), version=4)
    return text.encode("utf-8", "replace")
