"""The class at a glance: one page for the instructor of one chapter."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_grader.feedback.learner import standing
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    SubmissionReport,
    Verdict,
)
from course_home import frame
from course_home.progress import Standing

if TYPE_CHECKING:
    from course_grader.classroom.gradebook import Mark

MOST_CHECKS = 12
"""Checks that are listed among those that fail most."""
MOST_BINS = 12
"""Bars of the histogram of points."""


@dataclass(frozen=True)
class Bar:
    """One bar of the histogram: submissions with `low` to `high` points."""

    low: float
    high: float
    count: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Histogram:
    """How the points are spread, with everything in the units of the drawing.

    Attributes:
        bars: from the lowest points to the highest.
        ticks: (x, points) along the bottom.
        lines: (y, submissions) up the side.
        median_x: where the median is.
    """

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, float], ...]
    lines: tuple[tuple[float, int], ...]
    median_x: float

    WIDTH = 760.0
    HEIGHT = 250.0
    LEFT, RIGHT, TOP, BOTTOM = 46.0, 750.0, 34.0, 200.0


@dataclass(frozen=True)
class ExerciseRow:
    """One exercise over the class."""

    title: str
    max_points: float
    mean: float
    standings: tuple[tuple[Standing, int], ...]


@dataclass(frozen=True)
class CheckRow:
    """One check over the class. Who did not attempt it is not counted."""

    title: str
    says: str
    failed: int
    tried: int
    verdicts: tuple[tuple[Verdict, int], ...]


@dataclass(frozen=True)
class Idea:
    """A misconception, and who has it."""

    title: str
    tells: str
    students: tuple[str, ...]


def class_report(
    chapter: str,
    reports: Mapping[str, SubmissionReport],
    marks: Sequence[Mark] = (),
) -> str:
    """The page: how the points are spread, which checks fail most, which
    misconceptions are common, which submissions somebody should look at, and a
    table of all students. Points are those of the checks, before marks set by
    hand and late penalties.

    Args:
        chapter: its id.
        reports: student → report.
        marks: of the same chapter, of the whole roster: names, who is late, who
            handed nothing in.
    """
    graded = {s: r for s, r in sorted(reports.items()) if not r.refused}
    points = [report.points for report in graded.values()]
    max_points = max((r.max_points for r in graded.values()), default=0.0)
    titles = _titles(graded.values())
    checks = _check_rows(graded.values(), titles)
    return frame.render(
        Path(__file__).with_name("class.html.jinja"),
        title=_title(chapter, reports.values()),
        names={one.student: one.name for one in marks if one.name},
        late={one.student: _late(one) for one in marks if _late(one)},
        missing=[one.student for one in marks if not one.submitted],
        submissions=len(reports),
        graded=graded,
        refused={s: r for s, r in sorted(reports.items()) if r.refused},
        people={s: r for s, r in graded.items() if r.needs_human},
        max_points=max_points,
        mean=statistics.fmean(points) if points else 0.0,
        median=statistics.median(points) if points else 0.0,
        full=sum(one >= max_points - 1e-9 for one in points),
        histogram=_histogram(points, max_points) if points else None,
        titles=titles,
        rows=[_exercise_row(name, titles[name], graded) for name in titles],
        checks=checks[:MOST_CHECKS],
        more_checks=max(len(checks) - MOST_CHECKS, 0),
        ideas=_ideas(graded, titles),
        by_exercise={
            student: {one.exercise: one for one in report.exercises}
            for student, report in graded.items()
        },
        standing=standing,
    )


def _title(chapter: str, reports: Collection[SubmissionReport]) -> str:
    """The chapter's title, as its notebook has it."""
    titles = (report.title for report in reports if report.title)
    return next(titles, frame.chapter_name(chapter))


def _late(mark: Mark) -> str:
    """How late the work came, as people say it; empty if it did not."""
    if mark.days_late:
        return f"{frame.counted(mark.days_late, 'day')} late"
    return "late" if mark.said_late else ""


def _titles(reports: Collection[SubmissionReport]) -> dict[str, str]:
    """Exercise → title, in the order in which they first appear."""
    return {
        one.exercise: one.title
        for report in reports
        for one in report.exercises
    }


def _histogram(points: Sequence[float], max_points: float) -> Histogram:
    top = max(max_points, *points, 1e-9)
    width = _bin_width(top)
    bins = max(math.ceil(top / width - 1e-9), 1)
    counts = Counter(
        min(int(max(one, 0.0) / width + 1e-9), bins - 1) for one in points
    )
    most = max(counts.values())
    step = next(
        s for s in (1, 2, 5, 10, 20, 50, 100, 500, 10**9) if most <= 5 * s
    )
    ceiling = step * math.ceil(most / step)
    left, span = Histogram.LEFT, Histogram.RIGHT - Histogram.LEFT
    bottom, rise = Histogram.BOTTOM, Histogram.BOTTOM - Histogram.TOP

    def x(value: float) -> float:
        return left + span * value / (bins * width)

    def y(count: int) -> float:
        return bottom - rise * count / ceiling

    bars = []
    for index in range(bins):
        low, high = index * width, (index + 1) * width
        bars.append(
            Bar(
                low=low,
                high=min(high, top),
                count=counts[index],
                x=x(low) + 2,
                y=y(counts[index]),
                width=x(high) - x(low) - 4,
                height=bottom - y(counts[index]),
            )
        )
    return Histogram(
        bars=tuple(bars),
        ticks=tuple((x(i * width), i * width) for i in range(bins + 1)),
        lines=tuple((y(n), n) for n in range(0, ceiling + 1, step)),
        median_x=x(statistics.median(points)),
    )


def _bin_width(top: float) -> float:
    """The narrowest round width with which at most `MOST_BINS` bars are needed."""
    power = 10.0 ** math.floor(math.log10(top / MOST_BINS))
    return next(
        power * one
        for one in (1, 2, 2.5, 5, 10, 20)
        if top <= power * one * MOST_BINS
    )


def _exercise_row(
    name: str, title: str, reports: Mapping[str, SubmissionReport]
) -> ExerciseRow:
    ones = _of_exercise(name, reports)
    counts = Counter(standing(one, one.points) for one in ones)
    return ExerciseRow(
        title=title,
        max_points=max(one.max_points for one in ones),
        mean=statistics.fmean(one.points for one in ones),
        standings=tuple((one, counts[one]) for one in Standing),
    )


def _of_exercise(
    name: str, reports: Mapping[str, SubmissionReport]
) -> list[ExerciseReport]:
    return [
        one
        for report in reports.values()
        for one in report.exercises
        if one.exercise == name
    ]


def _check_rows(
    reports: Collection[SubmissionReport], titles: Mapping[str, str]
) -> list[CheckRow]:
    """The checks that somebody failed, the most failed ones first."""
    seen: dict[tuple[str, str], list[CheckReport]] = defaultdict(list)
    for report in reports:
        for one in report.exercises:
            for check in one.checks:
                if check.verdict is not Verdict.NOT_ATTEMPTED:
                    seen[one.exercise, check.name].append(check)
    rows = []
    for (exercise, _), checks in seen.items():
        bad = Counter(c.verdict for c in checks)
        del bad[Verdict.PASSED]
        if bad:
            rows.append(
                CheckRow(
                    title=titles[exercise],
                    says=checks[0].says,
                    failed=bad.total(),
                    tried=len(checks),
                    verdicts=tuple(bad.most_common()),
                )
            )
    return sorted(rows, key=lambda row: (-row.failed, -row.failed / row.tried))


def _ideas(
    reports: Mapping[str, SubmissionReport], titles: Mapping[str, str]
) -> list[Idea]:
    """The misconceptions that were recognised, the most common ones first."""
    students: dict[tuple[str, str], list[str]] = defaultdict(list)
    for student, report in reports.items():
        for one in report.exercises:
            if one.misconception:
                students[one.exercise, one.misconception].append(student)
    ideas = [
        Idea(titles[exercise], tells, tuple(names))
        for (exercise, tells), names in students.items()
    ]
    return sorted(ideas, key=lambda idea: -len(idea.students))
