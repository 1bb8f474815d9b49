"""The reference and the answer bank, run in processes of their own.

They never share a process with a learner, nor a room of the sandbox.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.chapter.source import Role
from course_grader.checks import Case, Check, Result
from course_grader.course import CourseError
from course_grader.judge.failing import Shows
from course_grader.judge.judging import (
    Behaviour,
    Expectations,
    Prober,
    Recognise,
    draw_cases,
    judge_exercise,
    loses,
    reference_results,
    run_cells,
    steps,
)
from course_grader.judge.kernels import Exchanged, Kernel, Probing
from course_grader.judge.misconceptions import RunAnswer, Steps
from course_grader.judge.report import ExerciseReport
from course_grader.judge.warming import WarmProcess

MAX_LENT = 60
"""How often one process is lent: what its forks leave in its folder, and the time
they take together, stay far from the limits of a submission."""
MAX_AGE_S = 600.0
"""Likewise: the sandbox ends what is older than its `lifetime_s`."""

_STRICTLY = 'import os\n\nos.environ["NBGRADER_EXECUTION"] = "1"\n'
"""A visible check that fails raises where this has run."""


class Reference(Mapping[tuple[str, int], Result]):
    """What the reference gives on the cases of a seed, by check name and number
    of the case. It is worked out exercise by exercise in threads, beside the
    learner's cells; who asks for a result waits for it.

    Args:
        warm: where its process is forked from.
        grading: the chapter's grading.
        cases: by check name.
        exchanged: what was asked on them, and answered.
    """

    def __init__(
        self,
        warm: WarmProcess,
        grading: Grading,
        cases: Mapping[str, Sequence[Case]],
        exchanged: Exchanged,
    ) -> None:
        self.warm, self.grading = warm, grading
        self.cases, self.exchanged = cases, exchanged
        self.exercise_of = {one.name: one.exercise for one in grading.checks}
        self.found: dict[str, Future[Behaviour]] = {}
        self.threads: ThreadPoolExecutor | None = None
        self.kernels: list[Kernel] = []
        self.idle: queue.SimpleQueue[Kernel] = queue.SimpleQueue()

    def begin(self, exercises: Iterable[str]) -> None:
        """Starts to work out what is not known of these exercises, in as many
        threads as processes have been started, or in one."""
        for one in exercises:
            if one not in self.found:
                self.threads = self.threads or ThreadPoolExecutor(
                    max(1, len(self.kernels))
                )
                self.found[one] = self.threads.submit(self._work_out, one)

    def start(self, processes: int = 1) -> None:
        """Starts the processes that the reference runs in."""
        while len(self.kernels) < processes:
            self.kernels.append(prepared_kernel(self.warm, self.grading))
            self.idle.put(self.kernels[-1])

    def rest(self) -> None:
        """Ends threads and processes; what was begun and is not needed any more
        may be begun again."""
        if self.threads is not None:
            self.threads.shutdown(cancel_futures=True)
            self.threads = None
        for kernel in self.kernels:
            kernel.close()
        self.kernels, self.idle = [], queue.SimpleQueue()
        self.found = {
            name: one for name, one in self.found.items() if not one.cancelled()
        }

    def of(self, exercise_id: str) -> Behaviour:
        """The results on the cases of an exercise.

        Raises:
            CourseError: the reference does not run or breaks its own checks.
        """
        self.begin([exercise_id])
        return self.found[exercise_id].result()

    def _work_out(self, exercise_id: str) -> Behaviour:
        self.start()
        kernel = self.idle.get()
        try:
            solution = self.grading.chapter.exercise(exercise_id)
            run_cells(
                kernel,
                [(solution.id, solution.source)],
                self.grading.chapter.name,
            )
            with kernel.probing(
                self.grading.probes_source, self.exchanged
            ) as probing:
                return reference_results(
                    probing, self.grading.checks_of(exercise_id), self.cases
                )
        finally:
            self.idle.put(kernel)

    def __getitem__(self, key: tuple[str, int]) -> Result:
        return self.of(self.exercise_of[key[0]])[key]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for one in self.grading.chapter.exercises:
            yield from self.of(one.id)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def reference_expectations(
    warm: WarmProcess,
    grading: Grading,
    seed: int,
    exercises: Sequence[str] | None = None,
) -> Expectations:
    """Cases for a seed and what the reference gives on them.

    Raises:
        CourseError: the reference does not run or breaks its own checks.
    """
    cases, exchanged = draw_cases(grading, seed, exercises), Exchanged()
    reference = Reference(warm, grading, cases, exchanged)
    given: Behaviour = {}
    try:
        for one in grading.chapter.exercises:
            if exercises is None or one.id in exercises:
                given |= reference.of(one.id)
    finally:
        reference.rest()
    return Expectations(seed, cases, given, exchanged)


def bank_process(
    kernels: PreparedKernels, grading: Grading, expected: Expectations
) -> AbstractContextManager[RunAnswer]:
    """Lends what runs answers of the bank on some of their checks, each in a fork
    of its own of a process that has run the chapter's set-up cells."""

    @contextlib.contextmanager
    def lend() -> Iterator[RunAnswer]:
        with kernels.lend() as kernel:

            def run(answer: Answer, checks: Sequence[Check]) -> Steps:
                with kernel.probing(
                    grading.probes_source, expected.exchanged
                ) as probing:
                    probing.run_cell(
                        grading.answer_cell(answer), answer.exercise
                    )
                    yield from steps(probing, checks, expected.cases)

            yield run

    return lend()


def answer_behaviour(
    kernels: PreparedKernels,
    grading: Grading,
    answer: Answer,
    expected: Expectations,
) -> Behaviour | None:
    """What an answer of the bank gives on every case; None if it ends its
    process."""
    with bank_process(kernels, grading, expected) as run:
        seen: Behaviour = {}
        for key, result in run(answer, grading.checks_of(answer.exercise)):
            if result is None:
                return None
            seen[key] = result
        return seen


def prepared_kernel(warm: WarmProcess, grading: Grading) -> Kernel:
    """A fresh process that has run the chapter's set-up cells."""
    kernel = Kernel(warm)
    run_cells(kernel, grading.chapter.setup_source, grading.chapter.name)
    return kernel


def answer_loses(
    kernels: PreparedKernels,
    grading: Grading,
    answer: Answer,
    check: Check,
    expected: Expectations,
) -> bool:
    """Whether an answer of the bank loses a check."""
    with (
        kernels.lend() as kernel,
        kernel.probing(grading.probes_source, expected.exchanged) as probing,
    ):
        probing.run_cell(grading.answer_cell(answer), answer.exercise)
        return loses(probing, check, expected)


def passes_visible_check(
    kernels: PreparedKernels, grading: Grading, answer: Answer
) -> bool:
    """Whether an answer of the bank passes the visible check of its exercise."""
    (check,) = (
        cell
        for cell in grading.chapter.cells
        if cell.role is Role.CHECK and cell.name == answer.exercise
    )
    with (
        kernels.lend() as kernel,
        kernel.probing(grading.probes_source) as probing,
    ):
        probing.run_cell(grading.answer_cell(answer), answer.exercise)
        return probing.run_cell(_STRICTLY + check.source, check.id).ok


class PreparedKernels:
    """Processes that have run a chapter's set-up cells, lent to several answers
    in turn: each is judged in forks of its own. Several threads may borrow."""

    def __init__(self, warm: WarmProcess, grading: Grading) -> None:
        self.warm, self.grading = warm, grading
        self.idle: list[tuple[Kernel, int, float]] = []

    @contextlib.contextmanager
    def lend(self) -> Iterator[Kernel]:
        """A living process that nobody else has; the same many times in turn."""
        kernel = None
        with contextlib.suppress(IndexError):
            kernel, lent, started = self.idle.pop()
            if time.monotonic() - started > MAX_AGE_S:
                kernel.close()
                kernel = None
        if kernel is None:
            kernel, lent = prepared_kernel(self.warm, self.grading), 0
            started = time.monotonic()
        try:
            yield kernel
        finally:
            if kernel.died or lent + 1 >= MAX_LENT:
                kernel.close()
            else:
                self.idle.append((kernel, lent + 1, started))

    def close(self) -> None:
        while self.idle:
            self.idle.pop()[0].close()

    def __enter__(self) -> PreparedKernels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def judge_answer(
    kernel: Kernel,
    grading: Grading,
    answer: Answer,
    expected: Expectations,
    recognise: Recognise | None = None,
) -> ExerciseReport:
    """Judges one answer of the bank as if a learner had handed it in.

    Args:
        kernel: a process that has run the chapter's set-up cells.
        grading: the chapter's grading.
        answer: the answer.
        expected: cases and reference results.
        recognise: tells wrong ideas, on the same cases.

    Raises:
        CourseError: it replaces what facts are measured with: a learner who handed
            it in would be named.
    """
    source = grading.answer_cell(answer)
    asked: Probing | None = None
    with contextlib.ExitStack() as stack:

        def prober() -> Prober:
            nonlocal asked
            probing = asked = stack.enter_context(
                kernel.probing(grading.probes_source, expected.exchanged)
            )
            probing.run_cell(source, answer.exercise)
            return probing

        report = judge_exercise(
            grading,
            answer.exercise,
            expected,
            prober,
            recognise,
            lambda cell, line: _line(source, line),
            shows=Shows(grading, expected.seed),
        )
        names = asked.replaced() if asked is not None else None
    if names:
        raise CourseError(
            f"The answer {answer.name} to {answer.exercise} leaves replaced: "
            f"{', '.join(names)}. Who hands that in is shown to a human."
        )
    return report


def _line(source: str, line: int) -> str:
    lines = source.splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""
