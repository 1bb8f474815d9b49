"""What an author wants to see of one answer: its cell, and on each check the
first case that it loses, with what the probe returned for it and for the
reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.checks import Case, Check, Result
from course_grader.judge.judging import complaint_of
from course_grader.judge.reference import (
    prepared_kernel,
    reference_expectations,
)
from course_grader.judge.warming import WarmProcess


@dataclass(frozen=True)
class Shown:
    """One case of a check, as an answer did on it.

    Attributes:
        check: the check.
        number: of the case, from 0.
        case: what the probe was given.
        seen: what it returned for the answer; None if the process ended.
        expected: what it returned for the reference.
        complaint: what the answer's learner hears; empty if the case passes.
    """

    check: Check
    number: int
    case: Case
    seen: Result | None
    expected: Result
    complaint: str


def show(
    warm: WarmProcess, grading: Grading, answer: Answer, seed: int
) -> Iterator[Shown]:
    """The first case that the answer loses of each check; the first case of a
    check that it passes.

    Raises:
        CourseError: the reference does not run.
    """
    expected = reference_expectations(warm, grading, seed, [answer.exercise])
    with prepared_kernel(warm, grading) as kernel:
        for check in grading.checks_of(answer.exercise):
            cases = expected.cases[check.name]
            with kernel.probing(grading.probes_source) as probing:
                probing.run_cell(grading.answer_cell(answer), answer.exercise)
                shown = []
                for number, run in enumerate(
                    probing.probe_all(check.probe, cases, check.timeout_s)
                ):
                    right = expected.reference[check.name, number]
                    if run.result is None:
                        said = run.died.why if run.died else "It ended."
                    else:
                        said = (
                            complaint_of(
                                check, cases[number], run.result, right
                            )
                            or ""
                        )
                    shown.append(
                        Shown(
                            check,
                            number,
                            cases[number],
                            run.result,
                            right,
                            said,
                        )
                    )
            yield next((one for one in shown if one.complaint), shown[0])
