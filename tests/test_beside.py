"""Two processes share the checks of an exercise: the report is that of one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    """Answers as the reference does, unless it ends at once, and counts the checks
    that it is asked for."""

    ends: Died | None = None
    asked: int = 0

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        self.asked += 1
        for _ in cases:
            if self.ends is not None:
                yield ProbeRun(None, died=self.ends)
                return
            yield ProbeRun(Result(data="right"))

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        return None


def judged(
    mini: Course, first: Process, second: Process | None
) -> ExerciseReport:
    """A report on `double`, after the second process has done what it can: all
    but the first check, which the judge has taken by then."""
    grading = load_grading(mini, "03_mini")
    cases = draw_cases(grading, 1, ["double"])
    expected = Expectations(
        1,
        cases,
        {
            (name, number): Result(data="right")
            for name in cases
            for number in range(len(cases[name]))
        },
    )
    checks = grading.checks_of("double")
    begin, done = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def process() -> Iterator[Process | None]:
        begin.wait()
        yield second
        done.set()

    beside = Beside(process(), checks, cases)
    try:
        assert beside.answered(checks[0]) is None
        begin.set()
        assert done.wait(60)
        return judge_exercise(
            grading,
            "double",
            expected,
            lambda: first,
            None,
            answered=beside.answered,
        )
    finally:
        beside.close()


def test_the_judge_asks_for_what_the_other_has_not_answered(
    mini: Course,
) -> None:
    first, second = Process(), Process()

    report = judged(mini, first, second)

    assert (first.asked, second.asked) == (1, 2)
    assert report.points == report.max_points


@pytest.mark.parametrize("second", [None, Process(ENDED)])
def test_where_the_other_ends_the_judge_asks_again(
    mini: Course, second: Process | None
) -> None:
    first = Process()

    report = judged(mini, first, second)

    assert first.asked == 3
    assert report.points == report.max_points


def test_what_took_too_long_there_is_not_waited_for_twice(
    mini: Course,
) -> None:
    first = Process()

    report = judged(mini, first, Process(LATE))

    assert [one.verdict for one in report.checks] == [
        Verdict.PASSED,
        Verdict.PASSED,
        Verdict.TIMED_OUT,
    ]
    assert first.asked == 2
