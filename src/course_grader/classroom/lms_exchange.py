"""What goes to and fro between a class and a learning management system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from course_grader.classroom import gradebook, term
from course_grader.classroom.collect_names import roster
from course_grader.classroom.collect_versions import (
    Receipt,
    known_by,
    mark_from_lms,
    read_receipt,
    submitted_folder,
)
from course_grader.classroom.due_dates import announce
from course_grader.classroom.lms import System
from course_grader.classroom.nbgrader_api import Classroom


@dataclass(frozen=True)
class Given:
    """One mark on its way out.

    Attributes:
        student: the id here.
        user: the number there.
        points: late penalty taken off.
        page: the page of feedback; None if none is written.
    """

    student: str
    user: str
    points: float
    page: Path | None


def take(
    classroom: Classroom, system: System, numbers: Mapping[str, int]
) -> Iterator[str]:
    """Takes the roster, due dates, and the times of collected work.

    Args:
        classroom: the class; people who are in it already stay.
        system: the learning management system.
        numbers: of its assignments, by chapter.

    Yields:
        A sentence on each thing that was taken.
    """
    coursedir = classroom.coursedir
    known = {one.lms_user_id: one.id for one in roster(coursedir)}
    students = system.students()
    with Gradebook(coursedir.db_url, coursedir.course_id) as book:
        for one in students:
            book.update_or_create_student(
                known.get(one.lms_user_id, one.id),
                first_name=one.first_name,
                last_name=one.last_name,
                email=one.email,
                lms_user_id=one.lms_user_id,
            )
    yield f"{len(students)} learners are on the roster."
    by_user = {one.lms_user_id: one.id for one in roster(coursedir)}
    for chapter, number in sorted(numbers.items()):
        due = system.due(number)
        if due is not None:
            with Gradebook(coursedir.db_url, coursedir.course_id) as book:
                try:
                    book.find_assignment(chapter)
                except MissingEntry:
                    yield f"{chapter} is not released: its due date waits."
                else:
                    term.set_due(classroom, chapter, due)
                    announce(classroom)
                    local = due.astimezone(classroom.zone)
                    yield f"{chapter} is due {local:%Y-%m-%d %H:%M %Z}."
        taken = 0
        for user, handed in system.handed_in(number).items():
            student = by_user.get(user)
            if student is None or handed.at is None:
                continue
            folder = submitted_folder(coursedir, student, chapter)
            receipt = read_receipt(folder)
            if receipt is None:  # not collected, or by the exchange
                continue
            at = handed.at.replace(tzinfo=None)
            if at > known_by(folder) and at > receipt.as_of:
                yield (
                    f"{student} handed {chapter} in anew since it was collected."
                )
                continue
            mark_from_lms(
                folder, at, Receipt(receipt.path, receipt.as_of, handed.late)
            )
            taken += 1
        if taken:
            term.take_over_times(classroom, [chapter])
            yield f"{chapter}: {taken} hand-in times are known."


def to_give(classroom: Classroom, chapter: str) -> list[Given]:
    """The marks of a chapter of those whom the system knows. What was refused,
    and what nobody graded, has none."""
    users = {one.id: one.lms_user_id for one in roster(classroom.coursedir)}
    given = []
    for mark in gradebook.marks(classroom, [chapter]):
        user = users.get(mark.student, "")
        if mark.points is None or not user:
            continue
        folder = classroom.folder("feedback", mark.student, chapter)
        page = folder / f"{chapter}.html"
        given.append(
            Given(
                mark.student,
                user,
                mark.points,
                page if page.is_file() else None,
            )
        )
    return given
