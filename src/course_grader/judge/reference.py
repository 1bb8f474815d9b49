"""The reference and the answer bank, run in processes of their own.

They never share a process with a learner: what they know dies with them before
the first learner process is probed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import joblib

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.judge.judging import (
    Behaviour,
    Expectations,
    Misconceptions,
    Prober,
    behaviour,
    expectations,
    judge_exercise,
    run_cells,
)
from course_grader.judge.kernels import Kernel, Probing
from course_grader.judge.report import ExerciseReport
from course_grader.judge.warming import WarmProcess

MAX_LENT = 12
"""Answers judged from one process: what they leave in its folder, and the time
they take together, stay far from the limits of a submission."""


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
    chapter = grading.chapter
    with warm.kernel() as kernel, contextlib.ExitStack() as stack:
        solutions = [(one.id, one.source) for one in chapter.exercises]
        run_cells(kernel, [*chapter.setup_source, *solutions], chapter.name)
        probers: dict[str, Prober] = {}

        def prober_of(exercise_id: str) -> Prober:
            if exercise_id not in probers:
                probers[exercise_id] = stack.enter_context(
                    kernel.probing(grading.probes_source)
                )
            return probers[exercise_id]

        return expectations(grading, seed, prober_of, exercises)


def bank_misconceptions(
    grading: Grading,
    expected: Expectations,
    prepared: Callable[[], AbstractContextManager[Kernel]],
) -> Misconceptions:
    """The wrong answers of the bank, run on first need, some at a time in a fork
    of a process that has run the chapter's set-up cells.

    Args:
        grading: the chapter's grading.
        expected: cases and reference results.
        prepared: lends such a process.
    """

    def behave(answers: Sequence[Answer]) -> Iterator[Behaviour | None]:
        for some in batches(answers):
            with prepared() as kernel, contextlib.ExitStack() as stack:
                probing: Probing | None = None
                for answer in some:
                    if probing is None or probing.died:
                        probing = stack.enter_context(
                            kernel.probing(grading.probes_source)
                        )
                    probing.take_answer(grading.answer_cell(answer))
                    yield behaviour(probing, grading, answer.exercise, expected)

    return Misconceptions(behave)


def learn_all(
    misconceptions: Misconceptions, answers: Iterable[Answer]
) -> None:
    """Runs the wrong ones among the answers once, on all processors."""
    wrong = [answer for answer in answers if not answer.right]
    with ThreadPoolExecutor(joblib.cpu_count()) as threads:
        list(threads.map(misconceptions.learn, batches(wrong)))


def batches(answers: Sequence[Answer]) -> Iterator[Sequence[Answer]]:
    """As many answers at a time as one process may serve."""
    for first in range(0, len(answers), MAX_LENT):
        yield answers[first : first + MAX_LENT]


def prepared_kernel(warm: WarmProcess, grading: Grading) -> Kernel:
    """A fresh process that has run the chapter's set-up cells."""
    kernel = warm.kernel()
    run_cells(kernel, grading.chapter.setup_source, grading.chapter.name)
    return kernel


class PreparedKernels:
    """Processes that have run a chapter's set-up cells, lent to several answers
    in turn: each is judged in forks of its own. Several threads may borrow."""

    def __init__(self, warm: WarmProcess, grading: Grading) -> None:
        self.warm, self.grading = warm, grading
        self.idle: list[tuple[Kernel, int]] = []

    @contextlib.contextmanager
    def lend(self) -> Iterator[Kernel]:
        """A living process that nobody else has; the same a few times in turn."""
        try:
            kernel, lent = self.idle.pop()
        except IndexError:
            kernel, lent = prepared_kernel(self.warm, self.grading), 0
        try:
            yield kernel
        finally:
            if kernel.died or lent + 1 >= MAX_LENT:
                kernel.close()
            else:
                self.idle.append((kernel, lent + 1))

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
    misconceptions: Misconceptions,
) -> ExerciseReport:
    """Judges one answer of the bank as if a learner had handed it in.

    Args:
        kernel: a process that has run the chapter's set-up cells.
        grading: the chapter's grading.
        answer: the answer.
        expected: cases and reference results.
        misconceptions: of the same cases.
    """
    source = grading.answer_cell(answer)
    with contextlib.ExitStack() as stack:

        def prober() -> Prober:
            probing = stack.enter_context(kernel.probing(grading.probes_source))
            probing.run_cell(source, answer.exercise)
            return probing

        return judge_exercise(
            grading,
            answer.exercise,
            expected,
            prober,
            misconceptions,
            lambda cell, line: _line(source, line),
        )


def _line(source: str, line: int) -> str:
    lines = source.splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""
