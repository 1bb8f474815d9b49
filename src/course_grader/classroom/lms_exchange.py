"""What goes to and fro between a class and a learning management system."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from course_grader.classroom import gradebook, term
from course_grader.classroom.collect_names import roster
from course_grader.classroom.collect_versions import (
    Receipt,
    digest,
    known_by,
    mark_from_lms,
    read_receipt,
    submitted_folder,
)
from course_grader.classroom.due_dates import announce
from course_grader.classroom.lms import System
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.private import write_private
from course_grader.course import CourseError

SENT = "sent.json"
"""What the system has: by chapter and student, points and the digest of the page."""


@dataclass(frozen=True)
class Given:
    """One mark on its way out.

    Attributes:
        student: the id here.
        user: the number there.
        points: late penalty taken off.
        page: the page of feedback; None if none is written, or if the system has
            it.
        there: the system has these points and this page already.
    """

    student: str
    user: str
    points: float
    page: Path | None
    there: bool = False


def take(
    classroom: Classroom, system: System, numbers: Mapping[str, int]
) -> Iterator[str]:
    """Takes the roster, due dates, extensions, and the times of collected work.

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
        everybody = system.handed_in(number)
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
                    theirs = {
                        by_user[user]: one.due
                        for user, one in everybody.items()
                        if user in by_user and one.due not in (None, due)
                    }
                    yield from _take_extensions(classroom, chapter, due, theirs)
        taken = 0
        for user, handed in everybody.items():
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


def _take_extensions(
    classroom: Classroom,
    chapter: str,
    due: datetime,
    theirs: Mapping[str, datetime],
) -> Iterator[str]:
    """Gives more time to those who have it there. Who has none there keeps what was
    given here."""
    known = term.read_extensions(classroom.coursedir)
    more = {}
    for student, moment in sorted(theirs.items()):
        local = moment.astimezone(classroom.zone)
        until = f"{local:%Y-%m-%d %H:%M %Z}"
        days = (moment - due) / timedelta(days=1)
        if days < 0:
            yield (
                f"{student} should hand {chapter} in earlier there, by {until}: "
                "here it is due as for everybody."
            )
        elif abs(days - known.get((student, chapter), 0)) > 1e-6:
            more[student, chapter] = days
            yield f"{student} has until {until} for {chapter}."
    if more:
        term.extend(classroom, more)


def to_give(classroom: Classroom, chapter: str) -> list[Given]:
    """The marks of a chapter of those whom the system knows. What was refused,
    and what nobody graded, has none. What was sent before is said to be there."""
    sent = _read_sent(classroom).get(chapter, {})
    users = {one.id: one.lms_user_id for one in roster(classroom.coursedir)}
    given = []
    for mark in gradebook.marks(classroom, [chapter]):
        user = users.get(mark.student, "")
        if mark.points is None or not user:
            continue
        folder = classroom.folder("feedback", mark.student, chapter)
        page = folder / f"{chapter}.html"
        one = Given(
            mark.student, user, mark.points, page if page.is_file() else None
        )
        before, now = sent.get(mark.student), _as_sent(one)
        if before is not None and before["page"] == now["page"]:
            one = replace(one, page=None, there=before == now)
        given.append(one)
    return given


def note_sent(classroom: Classroom, chapter: str, one: Given) -> None:
    """Notes that the system has taken a mark, so that a run which is stopped and
    begun again sends nobody's page twice."""
    tree = _read_sent(classroom)
    known = tree.setdefault(chapter, {})
    now = _as_sent(one)
    if one.page is None and one.student in known:
        now["page"] = known[one.student]["page"]
    known[one.student] = now
    _write_sent(classroom, tree)


def forget_sent(classroom: Classroom, student: str) -> None:
    """Deletes what is noted of one learner."""
    tree = _read_sent(classroom)
    if any(known.pop(student, None) for known in tree.values()):
        _write_sent(classroom, tree)


def _as_sent(one: Given) -> dict[str, Any]:
    return {
        "points": one.points,
        "page": "" if one.page is None else digest(one.page),
    }


def _read_sent(classroom: Classroom) -> dict[str, dict[str, dict[str, Any]]]:
    path = Path(classroom.coursedir.root) / SENT
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CourseError(
            f"{path} cannot be read: move it away, and every mark is sent anew."
        ) from error
    return dict(tree)


def _write_sent(classroom: Classroom, tree: Mapping[str, Any]) -> None:
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    write_private(Path(classroom.coursedir.root) / SENT, text + "\n")
