"""The judge's side of learner processes: starting them, running cells, probing.

Nothing received from them is trusted: frames have sizes and deadlines, data is
plain, and whatever goes wrong ends in a verdict for the work at hand.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import marshal
import math
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from course_grader.checks import Case, Effects, Result, SharedCase
from course_grader.judge.patience import Patience
from course_grader.judge.report import Verdict, whole
from course_grader.judge.warming import (
    ANSWER_TIMEOUT_S,
    WarmProcess,
    send_with_fd,
)
from course_grader.kernel import plain
from course_grader.kernel.channel import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
    frame,
    header_of,
)
from course_grader.kernel.limits import CUT_HERE, Limits

MAX_FRAMES = 1000
"""Of one traceback."""
AHEAD_BYTES = 2**15
"""Requests that are sent before they can be answered."""
KEPT_BYTES = 2**15
"""What one question or one answer may take that is kept for the next submission."""
KEPT_HEADER_BYTES = 2**13
"""Of these, an answer's header: read, it takes some ten times as much."""
KEPT_ANSWERS = 3
"""How many different answers to one question are."""


@dataclass(frozen=True)
class Died:
    """A learner's process that ended or had to be ended.

    Attributes:
        verdict: timed out, exited or out of memory.
        why: one sentence for the learner.
    """

    verdict: Verdict
    why: str


@dataclass(frozen=True)
class CellRun:
    """What running one cell gave.

    Attributes:
        outputs: in nbformat's terms; frozen before the first case is sent.
        ok: it ran to its end.
        died: set if the whole process ended in it.
    """

    outputs: list[dict[str, Any]]
    ok: bool
    died: Died | None = None


@dataclass(frozen=True)
class ProbeRun:
    """What one probe call gave.

    Attributes:
        result: for the rules; None if the process died.
        out_of_memory: it ran into the memory limit.
        where: (cell id, line) of the learner's last line before an exception.
        died: set if the process ended in it.
        text: the exception's own; a learner's.
    """

    result: Result | None
    out_of_memory: bool = False
    where: tuple[str, int] | None = None
    died: Died | None = None
    text: str = ""


@dataclass(frozen=True)
class Traced:
    """A probe call that was made once more to note its calls.

    Attributes:
        run: what it gave this time.
        calls: as `kernel.tracing` notes them; a learner's word, of any form.
    """

    run: ProbeRun
    calls: Any


_OVER = {
    "memory_bytes": Died(
        Verdict.OUT_OF_MEMORY,
        "Your code and what it started took too much memory.",
    ),
    "processes": Died(
        Verdict.EXITED, "Your code started too many processes or threads."
    ),
    "sockets": Died(Verdict.EXITED, "Your code opened too many connections."),
    "lifetime_s": Died(
        Verdict.TIMED_OUT, "Your notebook kept the grader waiting too long."
    ),
}
"""What passing a limit of the sandbox means, by the limit's name."""


class Kernel:
    """One learner process, started on construction: runs cells; then its forks
    answer probes."""

    def __init__(self, warm: WarmProcess, deadline: float = math.inf) -> None:
        """Starts it.

        Args:
            warm: where it is forked from.
            deadline: by `time.monotonic`, for all that is asked of it.
        """
        self.warm = warm
        sock, self.pid = warm.start()
        self.channel = Channel(sock)
        self.deadline = deadline
        self.patience = Patience(warm.process.pid, self.pid, deadline)
        self.died: Died | None = None

    def run_cell(
        self, source: str, cell_id: str, timeout_s: float | None = None
    ) -> CellRun:
        """Runs one cell; a process that hangs or exits in it is ended.

        Args:
            source: the cell.
            cell_id: names it in tracebacks.
            timeout_s: at most the limit for a cell, which is the default.
        """
        limit = _left(self.warm.limits.cell_s, self.deadline)
        timeout_s = limit if timeout_s is None else min(timeout_s, limit)
        started = time.monotonic()
        try:
            self.channel.send(
                {"op": "cell", "source": source, "id": cell_id},
                timeout_s=timeout_s,
            )
            answer, _ = self.channel.receive(
                _left(timeout_s, started + timeout_s),
                self.patience.beyond(timeout_s),
            )
            outputs = _outputs(answer.get("outputs"), self.warm.limits)
            return CellRun(outputs, bool(answer["ok"]))
        except DeadlinePassed:
            self._end(
                Died(
                    Verdict.TIMED_OUT,
                    f"The cell did not finish within {timeout_s:g} seconds.",
                )
            )
        except (ChannelClosed, KeyError):
            self._end(Died(Verdict.EXITED, "The cell ended the whole process."))
        return CellRun([], False, self.died)

    @contextlib.contextmanager
    def probing(
        self, probes_source: str, exchanged: Exchanged | None = None
    ) -> Iterator[Probing]:
        """A fork of this process as it stands, for the probes of one exercise.

        Args:
            probes_source: the probes.
            exchanged: what was asked of others with these probes.
        """
        mine, theirs = socket.socketpair()
        channel = Channel(mine)
        pid = None
        timeout_s = _left(ANSWER_TIMEOUT_S, self.deadline)
        try:
            with theirs:
                send_with_fd(
                    self.channel.socket,
                    {"op": "fork"},
                    theirs.fileno(),
                    timeout_s,
                )
            answer, _ = self.channel.receive(
                timeout_s, self.patience.beyond(timeout_s)
            )
            pid = int(answer["pid"])
            channel.send({"op": "probes"}, _compiled(probes_source), timeout_s)
        except (
            ArithmeticError,  # int(Infinity)
            ChannelClosed,
            DeadlinePassed,
            KeyError,
            OSError,
            TypeError,
            ValueError,
        ):
            pid = None
            self._end(
                Died(Verdict.EXITED, "Your cells left the process unusable.")
            )
        try:
            yield Probing(
                channel,
                self.warm.limits,
                self.deadline,
                self.patience,
                exchanged or Exchanged(),
            )
        finally:
            channel.close()
            if pid is not None and self.died is None:
                try:
                    self.channel.send(
                        {"op": "reap", "pid": pid}, timeout_s=timeout_s
                    )
                except (ChannelClosed, DeadlinePassed):
                    self._end(
                        Died(
                            Verdict.EXITED,
                            "Your cells left the process unusable.",
                        )
                    )

    def _end(self, died: Died) -> None:
        if self.died is None:
            self.died = died
            self.died = _OVER.get(self.close(), died)

    def close(self) -> str:
        """Ends it; the limit for which the sandbox had done so before."""
        if not self.pid:
            return ""
        self.channel.close()
        over = self.warm.stop(self.pid)
        self.pid = 0
        return over

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Exchanged:
    """What has been asked on the cases of a seed and what came back, as bytes: a
    question is written once, and an answer that is known is not read again. Right
    answers differ; most of what they give does not. Several threads may use it."""

    def __init__(self) -> None:
        # the case is kept beside what it is about: nobody else has its id
        self.asked: dict[tuple[str, int], tuple[Case, bytes]] = {}
        self.answers: dict[
            tuple[str, int],
            collections.deque[tuple[bytes, bytes, ProbeRun]],
        ] = {}

    def request(self, probe: str, case: Case) -> bytes:
        """The question, as it is sent."""
        known = self.asked.get((probe, id(case)))
        if known is not None:
            return known[1]
        made = _request(probe, case)
        if len(made) <= KEPT_BYTES:
            self.asked[probe, id(case)] = case, made
        return made

    def read(
        self, probe: str, case: Case, head: bytes, blob: bytes
    ) -> ProbeRun:
        """What a process says that the probe gave on the case.

        Raises:
            ChannelClosed, KeyError, plain.NotPlain: it is malformed.
        """
        if (probe, id(case)) not in self.asked:
            return _read(head, blob)
        known = self.answers.setdefault(
            (probe, id(case)), collections.deque(maxlen=KEPT_ANSWERS)
        )
        for one in tuple(known):
            if one[:2] == (head, blob):
                return one[2]
        run = _read(head, blob)
        if (
            len(head) <= KEPT_HEADER_BYTES
            and len(head) + len(blob) <= KEPT_BYTES
        ):
            known.append((head, blob, run))
        return run


class SharedRuns:
    """What an implementation gave on cases of several checks."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, int], tuple[Case, ProbeRun]] = {}

    def known(self, probe: str, case: Case) -> ProbeRun | None:
        """What the probe gave on this very case, if it is a shared one."""
        # the case is kept beside its run: nobody else has its id
        return self.runs.get((probe, id(case)), (case, None))[1]

    def keep(self, probe: str, case: Case, run: ProbeRun) -> None:
        """Keeps it, if it is a shared one and the process is alive."""
        if isinstance(case, SharedCase) and run.died is None:
            self.runs[probe, id(case)] = case, run


class Probing:
    """The judge's end of a process that answers probes."""

    def __init__(
        self,
        channel: Channel,
        limits: Limits,
        deadline: float,
        patience: Patience,
        exchanged: Exchanged,
    ) -> None:
        self.channel = channel
        self.limits = limits
        self.cell_s = limits.cell_s
        self.deadline = deadline
        self.patience = patience
        self.exchanged = exchanged
        self.died: Died | None = None
        self.runs = SharedRuns()

    def run_cell(self, source: str, cell_id: str) -> CellRun:
        """Runs an answer's cell in this process alone (used for the bank)."""
        try:
            self.channel.send({"op": "cell", "source": source, "id": cell_id})
            answer, _ = self.channel.receive(
                self.cell_s, self.patience.beyond(self.cell_s)
            )
            return CellRun([], bool(answer["ok"]))
        except DeadlinePassed:
            self.died = Died(
                Verdict.TIMED_OUT,
                f"The cell did not finish within {self.cell_s:g} seconds.",
            )
        except (ChannelClosed, KeyError):
            self.died = Died(
                Verdict.EXITED, "The cell ended the whole process."
            )
        return CellRun([], False, self.died)

    def cpu_seconds(self) -> tuple[float, float]:
        """Processor time so far, and that of processes it started which have
        ended. Its own word: to be asked of the course's own code.

        Raises:
            ChannelClosed, DeadlinePassed: it has ended or hangs.
        """
        self.channel.send({"op": "usage"})
        answer, _ = self.channel.receive(self.cell_s)
        own, children = answer["cpu_s"]
        return float(own), float(children)

    def replaced(self) -> tuple[str, ...] | None:
        """What is not as it was of that which facts are measured with; None if it
        cannot say so any more. Its own word."""
        if self.died is not None:
            return None
        timeout_s = _left(ANSWER_TIMEOUT_S, self.deadline)
        try:
            self.channel.send({"op": "replaced"}, timeout_s=timeout_s)
            answer, _ = self.channel.receive(
                timeout_s, self.patience.beyond(timeout_s)
            )
            return _strings(answer["names"])
        except (ChannelClosed, DeadlinePassed, KeyError):
            return None

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        """Runs one probe on each case, until the process dies of one."""
        known = [self.runs.known(probe, case) for case in cases]
        waiting = collections.deque(
            self.exchanged.request(probe, case)
            for case, run in zip(cases, known, strict=True)
            if run is None
        )
        ahead: collections.deque[int] = collections.deque()
        for case, before in zip(cases, known, strict=True):
            if before is not None:
                yield before
                continue
            # while one case is worked on, the next ones lie ready: no more of
            # them than a socket takes without either side having to wait
            batch = b""
            while waiting and (
                not ahead or sum(ahead) + len(waiting[0]) <= AHEAD_BYTES
            ):
                ahead.append(len(waiting[0]))
                batch += waiting.popleft()
            run = self._answered(
                batch,
                timeout_s,
                functools.partial(self.exchanged.read, probe, case),
            )
            ahead.popleft()
            self.runs.keep(probe, case, run)
            yield run
            if run.died is not None:
                return

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        """Makes one probe call and notes the calls that it makes; None if
        nothing of use comes back."""
        request = _request(probe, case, "enter" if enter_only else "calls")
        run = self._answered(request, timeout_s, _read)
        if run.result is None or not isinstance(run.result.data, dict):
            return None
        given = run.result.data
        result = replace(run.result, data=given.get("data"))
        return Traced(replace(run, result=result), given.get("trace"))

    def _answered(
        self,
        batch: bytes,
        timeout_s: float,
        read: Callable[[bytes, bytes], ProbeRun],
    ) -> ProbeRun:
        """Sends requests and takes the answer to the oldest open one."""
        if self.died is not None:
            return ProbeRun(None, died=self.died)
        ends = min(time.monotonic() + timeout_s, self.deadline)
        try:
            # whoever has ended since may have answered before
            with contextlib.suppress(ChannelClosed):
                self.channel.send_frames(batch, _left(timeout_s, ends))
            return read(
                *self.channel.receive_bytes(
                    _left(timeout_s, ends), self.patience.beyond(timeout_s)
                )
            )
        except DeadlinePassed:
            self.died = Died(
                Verdict.TIMED_OUT,
                f"Your code did not answer within {timeout_s:g} seconds."
                if time.monotonic() < self.deadline
                else out_of_time(self.limits),
            )
        except (ChannelClosed, KeyError):
            self.died = Died(
                Verdict.EXITED, "Your code ended the whole process."
            )
        except plain.NotPlain:
            self.died = Died(
                Verdict.ERROR, "Your code returned data that cannot be read."
            )
        return ProbeRun(None, died=self.died)


@functools.lru_cache(maxsize=4)
def _compiled(probes_source: str) -> bytes:
    """Compiling takes longer than many an exercise's probes."""
    return marshal.dumps(compile(probes_source, "probes.py", "exec"))


def _left(timeout_s: float, deadline: float) -> float:
    """Seconds that something may take: never none, so that what is ready is
    taken still."""
    return min(timeout_s, max(deadline - time.monotonic(), 1e-3))


def out_of_time(limits: Limits) -> str:
    """What a learner is told of what was not reached."""
    return (
        f"The notebook used up its {limits.submission_s:g} seconds before this."
    )


def _request(probe: str, case: Case, trace: str | None = None) -> bytes:
    layout, blob = plain.encode(case)
    asked = {"op": "probe", "probe": probe, "case": layout}
    return frame(asked if trace is None else {**asked, "trace": trace}, blob)


def _read(head: bytes, blob: bytes) -> ProbeRun:
    answer = header_of(head)
    return read_record(answer, plain.decode(answer["data"], blob))


def read_record(answer: dict[str, Any], data: Any) -> ProbeRun:
    """A probe's record as the rules see it; malformed fields become empty."""
    effects = answer.get("effects")
    if not isinstance(effects, dict):
        effects = {}
    where, text = answer.get("where"), answer.get("text")
    return ProbeRun(
        Result(
            data=data,
            raised=_strings(answer.get("raised")),
            effects=Effects(
                **{
                    name: _strings(effects.get(name))
                    for name in Effects.__dataclass_fields__
                }
            ),
            not_attempted=answer.get("not_attempted") is True,
            refused=answer.get("refused") is True,
        ),
        out_of_memory=answer.get("out_of_memory") is True,
        where=(where[0], where[1])
        if isinstance(where, list)
        and len(where) == 2
        and isinstance(where[0], str)
        and type(where[1]) is int
        else None,
        text=text if isinstance(text, str) else "",
    )


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(one[:120] for one in value[:50] if isinstance(one, str))


def _outputs(value: Any, limits: Limits) -> list[dict[str, Any]]:
    """Outputs in nbformat's terms, whatever was sent and however much."""
    kept: list[dict[str, Any]] = []
    chars = limits.output_chars + len(CUT_HERE)
    for one in value[: limits.outputs] if isinstance(value, list) else []:
        match one:
            case {
                "output_type": "stream",
                "name": str(name),
                "text": str(text),
            }:
                name = name if name in ("stdout", "stderr") else "stdout"
                kept.append(
                    {
                        "output_type": "stream",
                        "name": name,
                        "text": whole(text[:chars]),
                    }
                )
            case {
                "output_type": "error",
                "ename": str(ename),
                "evalue": str(evalue),
                "traceback": list(lines),
            }:
                kept.append(
                    {
                        "output_type": "error",
                        "ename": whole(ename[:chars]),
                        "evalue": whole(evalue[:chars]),
                        "traceback": [
                            whole(str(line)[:chars])
                            for line in lines[:MAX_FRAMES]
                        ],
                    }
                )
            case {
                "output_type": "display_data" | "execute_result" as kind,
                "data": dict(data),
            }:
                output = {
                    "output_type": kind,
                    "data": {
                        whole(str(k)): whole(v)
                        for k, v in data.items()
                        if isinstance(v, str) and len(v) <= limits.figure_chars
                    },
                    "metadata": {},
                }
                if kind == "execute_result":
                    output["execution_count"] = None
                kept.append(output)
    return kept
