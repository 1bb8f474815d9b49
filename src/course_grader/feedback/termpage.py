"""The term at a glance: one page over all chapters, for the instructor."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_grader.judge.report import SubmissionReport, Verdict
from course_home import frame

if TYPE_CHECKING:
    from course_grader.classroom.gradebook import Mark

MOST_CHECKS = 15
"""Checks that are listed."""
FEWEST = 5
"""Learners below whom a discrimination is chance."""
BEHIND = 15.0
"""Points of a hundred, below one's own mean before, that count as a fall."""

Reports = Mapping[str, Mapping[str, SubmissionReport]]
"""Chapter → student → report."""


@dataclass(frozen=True)
class Learner:
    """One learner over the term.

    Attributes:
        student: the id.
        name: empty if the roster has none.
        percent: of each chapter's points, in the order of the chapters; None
            where nothing is graded.
        missing: chapters that were not handed in.
        why: what somebody should see; empty if nothing.
    """

    student: str
    name: str
    percent: tuple[float | None, ...]
    missing: int
    why: str


@dataclass(frozen=True)
class CheckRow:
    """One check of one chapter.

    Attributes:
        chapter, title, says: which it is.
        passed, tried: how many learners; who did not attempt it is not counted.
        discrimination: the correlation of passing it with the rest of the
            learner's points in the chapter (point-biserial, the check itself
            left out); None where too few tried it, or all passed or failed.
    """

    chapter: str
    title: str
    says: str
    passed: int
    tried: int
    discrimination: float | None


@dataclass(frozen=True)
class Idea:
    """A misconception that outlives its chapter, or is common in it."""

    tells: str
    chapters: tuple[str, ...]
    students: int


def term_report(
    reports: Reports, marks: Sequence[Mark], names: Mapping[str, str]
) -> str:
    """The page: who is falling behind, which checks are hard and tell learners
    apart, which misconceptions persist.

    Args:
        reports: of the chapters that are graded.
        marks: of the same chapters, of all students.
        names: student → name.
    """
    chapters = sorted(reports)
    checks = sorted(
        _check_rows(reports), key=lambda row: row.passed / row.tried
    )
    learners = _learners(chapters, marks, names)
    return frame.render(
        Path(__file__).with_name("term.html.jinja"),
        chapters=chapters,
        means=_means(chapters, learners),
        learners=sorted(learners, key=lambda one: (not one.why, one.student)),
        checks=checks[:MOST_CHECKS],
        more_checks=max(len(checks) - MOST_CHECKS, 0),
        odd=[
            one
            for one in checks
            if one.discrimination is not None and one.discrimination < 0
        ],
        ideas=_ideas(reports),
        fewest=FEWEST,
    )


def _learners(
    chapters: Sequence[str], marks: Sequence[Mark], names: Mapping[str, str]
) -> list[Learner]:
    by_student: dict[str, dict[str, Mark]] = defaultdict(dict)
    for mark in marks:
        by_student[mark.student][mark.chapter] = mark
    made = []
    for student, of in by_student.items():
        percent = tuple(
            None
            if (one := of.get(chapter)) is None
            or one.points is None
            or not one.max_points
            else 100 * one.points / one.max_points
            for chapter in chapters
        )
        missing = sum(
            chapter not in of or not of[chapter].submitted
            for chapter in chapters
        )
        made.append(
            Learner(
                student,
                names.get(student, ""),
                percent,
                missing,
                _falling_behind(percent, missing),
            )
        )
    return made


def _falling_behind(percent: Sequence[float | None], missing: int) -> str:
    """What is worth a word with the learner; empty if nothing is."""
    told = []
    if missing:
        told.append(
            f"{missing} chapter{'' if missing == 1 else 's'} not handed in"
        )
    known = [one for one in percent if one is not None]
    if len(known) >= 2:
        before = statistics.fmean(known[:-1])
        if before - known[-1] > BEHIND:
            told.append(
                f"last chapter {known[-1]:.0f} %, before {before:.0f} % on "
                "average"
            )
    return "; ".join(told)


def _means(
    chapters: Sequence[str], learners: Sequence[Learner]
) -> list[float | None]:
    means: list[float | None] = []
    for index in range(len(chapters)):
        known = [
            value
            for one in learners
            if (value := one.percent[index]) is not None
        ]
        means.append(statistics.fmean(known) if known else None)
    return means


def _check_rows(reports: Reports) -> list[CheckRow]:
    rows = []
    for chapter, of in reports.items():
        seen: dict[tuple[str, str], list[tuple[bool, float]]]
        seen = defaultdict(list)
        words: dict[tuple[str, str], tuple[str, str]] = {}
        for report in of.values():
            for exercise in report.exercises:
                for check in exercise.checks:
                    if check.verdict is Verdict.NOT_ATTEMPTED:
                        continue
                    key = exercise.exercise, check.name
                    words[key] = exercise.title, check.says
                    seen[key].append(
                        (
                            check.verdict is Verdict.PASSED,
                            report.points - check.points,
                        )
                    )
        for key, tried in seen.items():
            rows.append(
                CheckRow(
                    chapter,
                    *words[key],
                    sum(passed for passed, _ in tried),
                    len(tried),
                    _discrimination(tried),
                )
            )
    return rows


def _discrimination(tried: Sequence[tuple[bool, float]]) -> float | None:
    if len(tried) < FEWEST:
        return None
    try:
        return statistics.correlation(
            [float(passed) for passed, _ in tried], [rest for _, rest in tried]
        )
    except statistics.StatisticsError:  # all alike
        return None


def _ideas(reports: Reports) -> list[Idea]:
    """The misconceptions of more than one learner, or of more than one chapter."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for chapter, of in reports.items():
        for student, report in of.items():
            for one in report.exercises:
                if one.misconception:
                    chapters, students = found.setdefault(
                        one.misconception, (set(), set())
                    )
                    chapters.add(chapter)
                    students.add(student)
    ideas = [
        Idea(tells, tuple(sorted(chapters)), len(students))
        for tells, (chapters, students) in found.items()
        if len(students) > 1 or len(chapters) > 1
    ]
    return sorted(ideas, key=lambda one: (-len(one.chapters), -one.students))
