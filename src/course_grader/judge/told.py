"""What learners are told who give the bank's wrong answers: the table of
`course try --told`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.judge.misconceptions import Misconceptions
from course_grader.judge.reference import (
    PreparedKernels,
    bank_process,
    judge_answer,
    reference_expectations,
)
from course_grader.judge.report import ExerciseReport, Verdict
from course_grader.judge.warming import WarmProcess


@dataclass(frozen=True)
class Told:
    """What one wrong answer's learner is told.

    Attributes:
        answer: the answer.
        report: as the learner gets it.
    """

    answer: Answer
    report: ExerciseReport

    @property
    def own_words(self) -> bool:
        """The bank's words for this mistake."""
        return self.report.misconception == self.answer.tells

    @property
    def case(self) -> bool:
        """A failed check shows its calls, with what came of them."""
        return any(
            one.case is not None and bool(one.case.yours)
            for one in self.report.checks
        )

    @property
    def raised(self) -> bool:
        """What the code raised or ended in is said, and where."""
        return any(
            one.verdict
            not in (Verdict.PASSED, Verdict.FAILED, Verdict.NOT_ATTEMPTED)
            and one.case is not None
            for one in self.report.checks
        )


def told(
    warm: WarmProcess,
    grading: Grading,
    signatures: Mapping[str, Mapping[str, str]],
    seed: int,
    exercises: Sequence[str],
) -> Iterator[Told]:
    """Judges each wrong answer of exercises as a learner's.

    Args:
        warm: where processes are forked from.
        grading: the chapter's grading.
        signatures: what wrong answers lose, by exercise and name.
        seed: of the cases.
        exercises: ids.

    Raises:
        CourseError: the reference does not run.
    """
    warm.import_rest(grading.large)
    expected = reference_expectations(warm, grading, seed, exercises)
    with PreparedKernels(warm, grading) as kernels:
        recognise = Misconceptions(
            grading,
            lambda exercise: signatures.get(exercise, {}),
            functools.partial(bank_process, kernels, grading, expected),
            expected.reference,
        ).recognise
        for exercise in exercises:
            for answer in grading.answers_of(exercise):
                if answer.right:
                    continue
                with kernels.lend() as kernel:
                    report = judge_answer(
                        kernel, grading, answer, expected, recognise
                    )
                yield Told(answer, report)
