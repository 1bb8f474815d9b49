"""Tries the answer bank of an exercise: graders are themselves tested."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import joblib
import torch

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.checks import Result
from course_grader.course import CourseError
from course_grader.judge.inprocess import answer_namespace, judge_namespace
from course_grader.judge.judging import (
    Behaviour,
    Expectations,
    Recorded,
    alike,
    judge_exercise,
    left_to_run,
    losses,
    signature,
    that_tell,
)
from course_grader.judge.reference import (
    PreparedKernels,
    answer_behaviour,
    answer_loses,
    bank_process,
    judge_answer,
    passes_visible_check,
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
        behaviour: what it gave on every case; None of a right answer and of
            one that ends its process.
        signature: as `judging.signature` writes it; of those its losses.
    """

    answer: Answer
    seed: int
    report: ExerciseReport
    complaints: tuple[str, ...]
    behaviour: Behaviour | None
    signature: str


def try_bank(
    warm: WarmProcess,
    grading: Grading,
    seeds: Sequence[int],
    exercises: Sequence[str] | None = None,
    among: Callable[[Answer], bool] = lambda answer: True,
    in_process: Callable[[Answer], bool] = lambda answer: False,
    known: Sequence[Expectations] = (),
    signed: bool = False,
) -> Iterator[Trial]:
    """Runs the bank through the judge.

    Args:
        warm: where processes are forked from.
        grading: the chapter's grading.
        seeds: each answer runs on each.
        exercises: ids; all if None.
        among: which answers run; what a wrong one tells must be its own text
            among these.
        in_process: which are judged in this process as well; both judges must
            agree on them.
        known: what the reference gives on some of the seeds.
        signed: signatures are wanted that recognition can rely on: each wrong answer
            runs once more, on the checks that its signature leaves to run.
    """
    wanted = [
        one.id
        for one in grading.chapter.exercises
        if exercises is None or one.id in exercises
    ]
    answers = [
        answer
        for one in wanted
        for answer in grading.answers_of(one)
        if among(answer)
    ]
    if any(in_process(one) for one in answers):
        # as in learners' processes: sums of more threads end in other digits
        torch.set_num_threads(1)
        use_huge_pages()  # probes that kill and resume fork this process
    warm.import_rest(grading.large)
    held = {one.seed: one for one in known}
    first: Expectations | None = None
    for seed in seeds:
        expected = held.get(seed) or reference_expectations(
            warm, grading, seed, wanted
        )
        first = first or expected
        _refuse_chance(first, expected)
        behaviours = bank_behaviours(warm, grading, expected, answers)
        reports = bank_reports(warm, grading, expected, answers, behaviours)
        refused = refused_by_visible_checks(warm, grading, answers)
        signatures = _signatures(
            grading, expected, answers, behaviours, reports
        )
        if signed:
            for name in changed_by_cases(
                warm, grading, expected, answers, behaviours, signatures
            ):
                for passed in ".=":
                    signatures[name] = signatures[name].replace(passed, "?")
        # in-process judging changes this process' settings: no threads by now
        for answer in answers:
            given = reports[answer.name]
            if not answer.right:
                given = replace(
                    given,
                    misconception=_told(
                        grading,
                        answer,
                        answers,
                        behaviours,
                        reports,
                        expected.reference,
                    ),
                )
            complaints = _complaints(answer, given)
            if answer.name in refused:
                complaints.append("is right but the visible check refuses it")
            if in_process(answer) and not answer.ends_process:
                complaints += _disagreement(grading, answer, expected, given)
            yield Trial(
                answer,
                seed,
                given,
                tuple(complaints),
                behaviours.get(answer.name),
                signatures[answer.name],
            )


def _refuse_chance(one: Expectations, other: Expectations) -> None:
    """What has to be refused is the author's to say, and not the seed's.

    Raises:
        CourseError: the solution raises on a case of one of the two seeds alone.
    """
    for (check, number), result in one.reference.items():
        if (check, number) not in other.reference:
            continue
        if bool(result.raised) != bool(other.reference[check, number].raised):
            raise CourseError(
                f"The solution raises an error on case {number} of `{check}` with "
                f"one of the seeds {one.seed} and {other.seed}, and not with the "
                "other. Draw the case so that it always does, or never."
            )


def _signatures(
    grading: Grading,
    expected: Expectations,
    answers: Iterable[Answer],
    behaviours: Mapping[str, Behaviour],
    reports: Mapping[str, ExerciseReport],
) -> dict[str, str]:
    """By name; of an answer whose behaviour is not known, its losses."""
    found = {}
    for answer in answers:
        found[answer.name] = losses(reports[answer.name].checks)
        if answer.name in behaviours:
            found[answer.name] = signature(
                grading.checks_of(answer.exercise),
                found[answer.name],
                behaviours[answer.name],
                expected.reference,
            )
    return found


def unbroken(
    warm: WarmProcess,
    grading: Grading,
    expected: Expectations,
    exercise_id: str,
    among: Callable[[Answer], bool] = lambda answer: True,
) -> Iterator[tuple[Answer, str]]:
    """The checks that wrong answers to an exercise should lose and pass. They run
    on these checks alone, each to the first case that shows it. `among` says which
    answers run."""
    checks = {one.name: one for one in grading.checks_of(exercise_id)}

    def passed(answer: Answer) -> list[str]:
        return [
            name
            for name in answer.breaks
            if not answer_loses(
                kernels, grading, answer, checks[name], expected
            )
        ]

    wrong = [
        one
        for one in grading.answers_of(exercise_id)
        if not one.right and among(one)
    ]
    with (
        PreparedKernels(warm, grading) as kernels,
        ThreadPoolExecutor(joblib.cpu_count()) as threads,
    ):
        for answer, names in zip(
            wrong, threads.map(passed, wrong), strict=True
        ):
            for name in names:
                yield answer, name


def refused_by_visible_checks(
    warm: WarmProcess, grading: Grading, answers: Iterable[Answer]
) -> set[str]:
    """Names of the right ones among these answers that do not pass the visible
    check of their exercise."""
    right = [one for one in answers if one.right]
    with (
        PreparedKernels(warm, grading) as kernels,
        ThreadPoolExecutor(joblib.cpu_count()) as threads,
    ):
        run = functools.partial(passes_visible_check, kernels, grading)
        passed = threads.map(run, right)
        return {
            answer.name
            for answer, ok in zip(right, passed, strict=True)
            if not ok
        }


def changed_by_cases(
    warm: WarmProcess,
    grading: Grading,
    expected: Expectations,
    answers: Sequence[Answer],
    behaviours: Mapping[str, Behaviour],
    signatures: Mapping[str, str],
) -> set[str]:
    """Names of the wrong answers that remember cases: they do something else where
    the checks do not come before that are left out when they are recognised."""
    checks = {one.name: one for one in grading.checks}

    def changes(answer: Answer) -> bool:
        written = signatures[answer.name]
        all_checks = grading.checks_of(answer.exercise)
        left = left_to_run(all_checks, written)
        telling = that_tell(all_checks, written, "." * len(all_checks), ())
        seen = behaviours[answer.name]
        with bank_process(kernels, grading, expected) as run:
            return any(
                result is None
                or not alike(
                    checks[key[0]], result, seen[key], expected.reference[key]
                )
                for some in ([left] if left == telling else [left, telling])
                for key, result in run(answer, some)
            )

    wrong = [one for one in answers if one.name in behaviours]
    with (
        PreparedKernels(warm, grading) as kernels,
        ThreadPoolExecutor(joblib.cpu_count()) as threads,
    ):
        found = threads.map(changes, wrong)
        return {
            answer.name
            for answer, changed in zip(wrong, found, strict=True)
            if changed
        }


def bank_behaviours(
    warm: WarmProcess,
    grading: Grading,
    expected: Expectations,
    answers: Sequence[Answer],
) -> dict[str, Behaviour]:
    """How wrong answers behave, by their names, on all processors; without those
    that end their process."""
    wrong = [one for one in answers if not (one.right or one.ends_process)]
    with (
        PreparedKernels(warm, grading) as kernels,
        ThreadPoolExecutor(joblib.cpu_count()) as threads,
    ):
        run = functools.partial(
            answer_behaviour, kernels, grading, expected=expected
        )
        found = threads.map(lambda answer: run(answer=answer), wrong)
        return {
            answer.name: behaviour
            for answer, behaviour in zip(wrong, found, strict=True)
            if behaviour is not None
        }


def bank_reports(
    warm: WarmProcess,
    grading: Grading,
    expected: Expectations,
    answers: Sequence[Answer],
    behaviours: Mapping[str, Behaviour],
) -> dict[str, ExerciseReport]:
    """What the judge says of answers, by their names: of a wrong one from the
    one run that its behaviour needed anyhow, of others from a run as a
    learner's. Misconceptions are left open."""

    def report(answer: Answer) -> ExerciseReport:
        if answer.name in behaviours:
            recorded = Recorded(behaviours[answer.name].values())
            return judge_exercise(
                grading, answer.exercise, expected, lambda: recorded, None
            )
        with kernels.lend() as kernel:
            return judge_answer(kernel, grading, answer, expected)

    with (
        PreparedKernels(warm, grading) as kernels,
        ThreadPoolExecutor(joblib.cpu_count()) as threads,
    ):
        return {
            answer.name: given
            for answer, given in zip(
                answers, threads.map(report, answers), strict=True
            )
        }


def _told(
    grading: Grading,
    answer: Answer,
    answers: Iterable[Answer],
    behaviours: Mapping[str, Behaviour],
    reports: Mapping[str, ExerciseReport],
    reference: Mapping[tuple[str, int], Result],
) -> str:
    """What a learner hears who gives a wrong answer: the text of those that
    behave alike, if it is one."""
    if answer.name not in behaviours:
        return ""
    lost = losses(reports[answer.name].checks)
    tells = {
        other.tells
        for other in answers
        if other.exercise == answer.exercise
        and other.name in behaviours
        and losses(reports[other.name].checks) == lost
        and behave_alike(
            grading, behaviours[answer.name], behaviours[other.name], reference
        )
    }
    return tells.pop() if len(tells) == 1 else ""


def behave_alike(
    grading: Grading,
    one: Behaviour,
    other: Behaviour,
    reference: Mapping[tuple[str, int], Result],
) -> bool:
    """Whether two answers did the same on every case."""
    checks = {check.name: check for check in grading.checks}
    return one.keys() == other.keys() and all(
        alike(checks[key[0]], one[key], other[key], reference[key])
        for key in one
    )


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
) -> list[str]:
    gc.freeze()  # probes that collect garbage look at their own alone
    try:
        local = judge_namespace(
            grading,
            answer.exercise,
            answer_namespace(grading, answer),
            expected,
        )
    finally:
        gc.unfreeze()
    return [
        f"the judges disagree on {one.name}: {one.verdict} out of process, "
        f"{other.verdict} in process ({other.message})"
        for one, other in zip(report.checks, local.checks, strict=True)
        if one.verdict is not other.verdict
    ]


def replayed_checks(
    grading: Grading, recorded: Expectations, expected: Expectations
) -> list[str]:
    """Names of the checks that pass when the answers recorded on one seed are
    played back on another; there must be none."""
    passed = []
    for check in grading.checks:
        if check.name not in recorded.cases:
            continue
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
