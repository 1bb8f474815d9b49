"""The term's total: chapters weighted, late days forgiven while some are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_grader.classroom.gradebook import Mark
from course_grader.course import Course, CourseError


@dataclass(frozen=True)
class Total:
    """One student's term.

    Attributes:
        student: the student's id.
        name: the student's name, if the roster has one.
        percent: of what the chapters give, weighted; from 0 to 100.
        by_chapter: points by chapter; a chapter that is not handed in, or not
            graded, counts 0.
        late_days: that have begun, over all chapters.
        forgiven: of these, by the budget.
        look: chapters that somebody should look at.
    """

    student: str
    name: str
    percent: float
    by_chapter: dict[str, float]
    late_days: int
    forgiven: int
    look: tuple[str, ...]


def weights(course: Course, chapters: Sequence[str]) -> dict[str, float]:
    """What each chapter counts: `[weights]` in `course.toml` names chapters; the
    others count 1."""
    given: dict[str, float] = course.settings.get("weights", {})
    said = {course.chapter(name): float(one) for name, one in given.items()}
    return {name: said.get(name, 1.0) for name in chapters}


def totals(
    course: Course, found: Sequence[Mark], order: Sequence[str]
) -> list[Total]:
    """Everybody's total over the chapters of `found`.

    Late days are forgiven in the order in which chapters are due, up to
    `free_days` of `[late]` in `course.toml`; what is left of them costs what
    `percent_per_day` says. A penalty that another rule has set stays as it is.

    Args:
        course: the course.
        found: the marks.
        order: the chapters, those that are due first in front.
    """
    late: Mapping[str, Any] = course.settings.get("late", {})
    each = weights(course, order)
    whole = sum(each.values())
    if not whole:
        raise CourseError("All weights are 0: course.toml, [weights].")
    by_student: dict[str, dict[str, Mark]] = {}
    for mark in found:
        by_student.setdefault(mark.student, {})[mark.chapter] = mark
    made = []
    for student, marks in sorted(by_student.items()):
        left = int(late.get("free_days", 0))
        points, forgiven, share = {}, 0, 0.0
        for chapter in order:
            points[chapter] = 0.0
            if chapter not in marks or marks[chapter].points is None:
                continue
            mark = marks[chapter]
            assert mark.points is not None
            free = min(mark.days_late, left)
            left, forgiven = left - free, forgiven + free
            points[chapter] = mark.points + _given_back(mark, free, late)
            if mark.max_points:
                share += each[chapter] * points[chapter] / mark.max_points
        ones = [marks[chapter] for chapter in order if chapter in marks]
        made.append(
            Total(
                student=student,
                name=next((one.name for one in ones if one.name), ""),
                percent=100 * share / whole,
                by_chapter=points,
                late_days=sum(one.days_late for one in ones),
                forgiven=forgiven,
                look=tuple(one.chapter for one in ones if one.look),
            )
        )
    return made


def _given_back(mark: Mark, free: int, late: Mapping[str, Any]) -> float:
    """Points that forgiven days give back of a penalty per day."""
    if not free or not mark.penalty or "percent_per_day" not in late:
        return 0.0
    assert mark.points is not None
    reached = mark.points + mark.penalty
    percent = min(
        late["percent_per_day"] * (mark.days_late - free),
        late.get("at_most_percent", 100),
    )
    return max(mark.penalty - reached * percent / 100, 0.0)
