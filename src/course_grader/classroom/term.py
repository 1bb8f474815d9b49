"""A term: due dates, extensions and what being late costs, in nbgrader's own terms.

Due dates and extensions stand in nbgrader's gradebook, where formgrader shows them;
what a day costs is a plugin of nbgrader's late-penalty step.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Float

from course_grader.classroom.nbgrader_api import Classroom
from course_grader.course import CourseError

DAY_S = 24 * 3600


class PenaltyPerDay(LateSubmissionPlugin):  # type: ignore[misc]
    """Takes a share of the points for every day that has begun since the due date.
    `c.AssignLatePenalties.plugin_class` names it."""

    percent = Float(
        10.0, help="Of the points reached, for each day that has begun."
    ).tag(config=True)
    at_most_percent = Float(
        100.0, help="What being late costs at most, in percent."
    ).tag(config=True)

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        """Points to take off; None for nothing."""
        days = math.ceil(total_seconds_late / DAY_S)
        percent = min(self.percent * days, self.at_most_percent)
        return round(score * percent / 100, 6) or None


def parse_due(text: str) -> datetime:
    """A moment such as "2026-12-01 18:00", in this machine's time zone, or with
    a zone of its own ("2026-12-01T18:00+01:00").

    Raises:
        CourseError: it is no such thing.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise CourseError(
            f'{text} is no date: write "2026-12-01 18:00", with +01:00 behind '
            "it for a time zone that is not this machine's."
        ) from None


def due(classroom: Classroom, chapter: str) -> datetime | None:
    """When a chapter is due, in UTC; None if it is not, or was never released."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        try:
            moment = gradebook.find_assignment(chapter).duedate
        except MissingEntry:
            return None
    # nbgrader keeps UTC without saying so
    return None if moment is None else moment.replace(tzinfo=UTC)


def set_due(classroom: Classroom, chapter: str, moment: datetime) -> None:
    """Sets when a chapter is due, and what those who are late now lose.

    Raises:
        CourseError: the chapter was never released.
    """
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        try:
            gradebook.find_assignment(chapter).duedate = moment.replace(
                tzinfo=None
            )
        except MissingEntry:
            raise CourseError(
                f"The gradebook does not know {chapter}: run `course release "
                f"{chapter}` first."
            ) from None
        gradebook.db.commit()
    _assess(classroom, chapter)


def extend(
    classroom: Classroom, chapter: str, student: str, days: float
) -> None:
    """Gives one student more time; another extension replaces the first.

    Raises:
        CourseError: nothing of the student's has been collected.
    """
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        try:
            gradebook.grant_extension(chapter, student, minutes=days * 24 * 60)
        except MissingEntry:
            raise CourseError(
                f"The gradebook holds nothing of {student} for {chapter}: "
                "grade what was handed in, then extend; the penalty goes."
            ) from None
    _assess(classroom, chapter)


def _assess(classroom: Classroom, chapter: str) -> None:
    """What being late costs, worked out anew for all graded submissions."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        students = [
            one.student.id for one in gradebook.assignment_submissions(chapter)
        ]
    for student in students:
        AssignLatePenalties(parent=classroom.api).preprocess(
            new_notebook(),
            {
                "nbgrader": {
                    "notebook": chapter,
                    "assignment": chapter,
                    "student": student,
                    "db_url": coursedir.db_url,
                }
            },
        )
