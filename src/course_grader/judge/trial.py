"""Tries the answer bank of an exercise: graders are themselves tested."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import joblib
import torch

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.judge.inprocess import (
    answer_namespace,
    judge_namespace,
    local_misconceptions,
)
from course_grader.judge.judging import (
    Expectations,
    Misconceptions,
    Recorded,
    judge_exercise,
)
from course_grader.judge.reference import (
    PreparedKernels,
    bank_misconceptions,
    judge_answer,
    learn_all,
    reference_expectations,
)
from course_grader.judge.report import ExerciseReport, Verdict
from course_grader.judge.warming import WarmProcess
from course_grader.kernel.warm import use_huge_pages


@dataclass(frozen=True)
class Trial:
    """One answer of the bank on one seed.

    Attributes:
        answer: the answer.
        seed: the seed.
        report: what the judge said.
        complaints: what is wrong with the grader or the bank; empty if the
            answer got what it must get.
    """

    answer: Answer
    seed: int
    report: ExerciseReport
    complaints: tuple[str, ...]


def try_bank(
    warm: WarmProcess,
    grading: Grading,
    seeds: Sequence[int],
    exercises: Sequence[str] | None = None,
    both_judges: bool = False,
) -> Iterator[Trial]:
    """Runs the bank through the judge.

    Args:
        warm: where processes are forked from.
        grading: the chapter's grading.
        seeds: each answer runs on each.
        exercises: ids; all if None.
        both_judges: also in-process, where both must agree.
    """
    wanted = [
        one.id
        for one in grading.chapter.exercises
        if exercises is None or one.id in exercises
    ]
    if both_judges:
        # as in learners' processes: sums of more threads end in other digits
        torch.set_num_threads(1)
        use_huge_pages()  # probes that kill and resume fork this process
    for seed in seeds:
        expected = reference_expectations(warm, grading, seed, wanted)
        answers = [
            answer for one in wanted for answer in grading.answers_of(one)
        ]
        with (
            PreparedKernels(warm, grading) as kernels,
            ThreadPoolExecutor(joblib.cpu_count()) as threads,
        ):
            misconceptions = bank_misconceptions(
                grading, expected, kernels.lend
            )

            def report(
                answer: Answer,
                expected: Expectations = expected,
                kernels: PreparedKernels = kernels,
                misconceptions: Misconceptions = misconceptions,
            ) -> ExerciseReport:
                return _recorded_report(
                    grading, answer, expected, misconceptions
                ) or _fresh_report(
                    kernels, grading, answer, expected, misconceptions
                )

            # each once, before reports ask for all of them
            learn_all(misconceptions, answers)
            reports = list(threads.map(report, answers))
        # in-process judging changes this process' settings: no threads by now
        local = local_misconceptions(grading, expected)
        for answer, given in zip(answers, reports, strict=True):
            complaints = _complaints(answer, given)
            if both_judges and not answer.ends_process:
                complaints += _disagreement(
                    grading, answer, expected, given, local
                )
            yield Trial(answer, seed, given, tuple(complaints))


def _fresh_report(
    kernels: PreparedKernels,
    grading: Grading,
    answer: Answer,
    expected: Expectations,
    misconceptions: Misconceptions,
) -> ExerciseReport:
    with kernels.lend() as kernel:
        return judge_answer(kernel, grading, answer, expected, misconceptions)


def _complaints(answer: Answer, report: ExerciseReport) -> list[str]:
    failed = [one for one in report.checks if one.verdict is not Verdict.PASSED]
    if answer.right:
        return [
            f"is right but lost {one.name}: {one.verdict}. {one.message}"
            for one in failed
        ]
    names = {one.name for one in failed}
    complaints = [
        f"is wrong but passed {name}"
        for name in answer.breaks
        if name not in names
    ]
    if not answer.ends_process and answer.tells != report.misconception:
        complaints.append(
            "is told the message of another wrong answer"
            if report.misconception
            else "is not told what it did wrong (none or several answers with "
            "different texts behave alike)"
        )
    return complaints


def _disagreement(
    grading: Grading,
    answer: Answer,
    expected: Expectations,
    report: ExerciseReport,
    misconceptions: Misconceptions,
) -> list[str]:
    local = _recorded_report(
        grading, answer, expected, misconceptions
    ) or judge_namespace(
        grading,
        answer.exercise,
        answer_namespace(grading, answer),
        expected,
        misconceptions,
    )
    return [
        f"the judges disagree on {one.name}: {one.verdict} out of process, "
        f"{other.verdict} in process ({other.message})"
        for one, other in zip(report.checks, local.checks, strict=True)
        if one.verdict is not other.verdict
    ]


def _recorded_report(
    grading: Grading,
    answer: Answer,
    expected: Expectations,
    misconceptions: Misconceptions,
) -> ExerciseReport | None:
    """The report on a wrong answer from the one run that recognising it needs
    anyhow; None if there is no such run."""
    behaviour = None if answer.right else misconceptions.of(answer)
    if behaviour is None:
        return None
    recorded = Recorded(behaviour.values())
    return judge_exercise(
        grading, answer.exercise, expected, lambda: recorded, misconceptions
    )


def replayed_checks(
    grading: Grading, recorded: Expectations, expected: Expectations
) -> list[str]:
    """Names of the checks that pass when the answers recorded on one seed are
    played back on another; there must be none."""
    passed = []
    for check in grading.checks:
        numbers = len(recorded.cases[check.name])
        replay = Recorded(
            recorded.reference[check.name, n % numbers]
            for n in range(len(expected.cases[check.name]))
        )
        alone = Grading(grading.chapter, grading.probes_source, (check,), ())
        report = judge_exercise(
            alone,
            check.exercise,
            expected,
            functools.partial(_same, replay),
            None,
        )
        if report.checks[0].verdict is Verdict.PASSED:
            passed.append(check.name)
    return passed


def _same(replay: Recorded) -> Recorded:
    return replay
