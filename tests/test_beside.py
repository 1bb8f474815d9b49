"""Two processes share the cases of an exercise: the report is that of one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from course_grader.chapter.grading import load_grading
from course_grader.checks import Case, Result
from course_grader.course import Course
from course_grader.judge.beside import Beside
from course_grader.judge.judging import (
    Expectations,
    draw_cases,
    judge_exercise,
)
from course_grader.judge.kernels import Died, ProbeRun, Traced
from course_grader.judge.report import ExerciseReport, Verdict

ENDED = Died(Verdict.EXITED, "Your code ended the whole process.")
LATE = Died(Verdict.TIMED_OUT, "Your code did not answer within 20 seconds.")


@dataclass
class Process:
    """Answers as the reference does, unless it ends at once, and counts the cases
    that it is asked for."""

    ends: Died | None = None
    asked: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        self.begun.set()
        assert self.may_go_on.wait(60)
        for case in cases:
            self.asked += 1
            if self.ends is not None:
                yield ProbeRun(None, died=self.ends)
                return
            yield ProbeRun(Result(data=id(case)))

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        return None


def judged(
    mini: Course, first: Process, second: Process | None, times: int = 1
) -> tuple[ExerciseReport, int]:
    """A report on `double`, and how many cases that has. The second process does
    what it can while the first one is at its first cases. The judge may have to begin
    anew, where it broke on what came back."""
    grading = load_grading(mini, "03_mini")
    cases = draw_cases(grading, 1, ["double"])
    right = {
        (name, number): Result(data=id(case))
        for name in cases
        for number, case in enumerate(cases[name])
    }

    @contextlib.contextmanager
    def process() -> Iterator[Process | None]:
        assert first.begun.wait(60)
        if second is not None:
            second.may_go_on.set()
        yield second
        first.may_go_on.set()

    beside = Beside(process(), grading.checks_of("double"), cases)
    try:
        for _ in range(times):
            report = judge_exercise(
                grading,
                "double",
                Expectations(1, cases, right),
                lambda: first,
                None,
                answered=beside.answered,
            )
    finally:
        beside.close()
    return report, len(right)


def test_each_case_is_asked_for_once_and_the_answers_are_in_order(
    mini: Course,
) -> None:
    first, second = Process(), Process()

    report, num_cases = judged(mini, first, second)

    assert report.points == report.max_points
    assert first.asked + second.asked == num_cases
    assert first.asked
    assert second.asked


def test_a_check_is_shared_too(mini: Course) -> None:
    """All but the first case of the first check are the other's."""
    first, second = Process(), Process()

    _, num_cases = judged(mini, first, second)

    assert second.asked == num_cases - first.asked
    assert first.asked < len(
        draw_cases(load_grading(mini, "03_mini"), 1, ["double"])[
            load_grading(mini, "03_mini").checks_of("double")[0].name
        ]
    )


@pytest.mark.parametrize("ends", [False, True])
def test_where_the_other_ends_the_judge_asks_again(
    mini: Course, ends: bool
) -> None:
    first = Process()

    report, num_cases = judged(mini, first, Process(ENDED) if ends else None)

    assert first.asked >= num_cases
    assert report.points == report.max_points


def test_what_took_too_long_there_is_not_waited_for_twice(
    mini: Course,
) -> None:
    first, second = Process(), Process(LATE)

    report, num_cases = judged(mini, first, second)

    assert [one.verdict for one in report.checks] == [
        Verdict.PASSED,
        Verdict.PASSED,
        Verdict.TIMED_OUT,
    ]
    assert first.asked < num_cases
    assert second.asked == 1


def test_a_process_of_the_judge_that_ends_is_replaced(mini: Course) -> None:
    """And the other's answers to the check's other cases do not hide that."""
    first, second = Process(ENDED), Process()

    report, _ = judged(mini, first, second)

    assert report.checks[0].verdict is Verdict.EXITED
    assert report.checks[-1].verdict is Verdict.PASSED


@pytest.mark.parametrize("ends", [None, ENDED, LATE])
def test_a_judge_who_begins_anew_waits_for_nobody(
    mini: Course, ends: Died | None
) -> None:
    once, _ = judged(mini, Process(ends), Process())

    again, _ = judged(mini, Process(ends), Process(), times=2)

    assert again == once
