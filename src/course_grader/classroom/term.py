"""A term: due dates, extensions and what being late costs, in nbgrader's own terms.

Due dates stand in nbgrader's gradebook, where formgrader shows them. Extensions
stand in a file beside it, since they are given before anything is handed in, and
nbgrader knows them of submissions alone. What a day costs is a plugin of nbgrader's
late-penalty step.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.orm import undefer
from traitlets import Float

from course_grader.classroom.collect_versions import (
    read_receipt,
    read_timestamp,
    submitted_folder,
)
from course_grader.classroom.named_files import read_csv
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.private import write_private
from course_grader.course import CourseError

DAY_S = 24 * 3600
EXTENSIONS = "extensions.csv"


def days_late(seconds: float) -> int:
    """Days that have begun since the due date."""
    return math.ceil(max(seconds, 0) / DAY_S)


class PenaltyPerDay(LateSubmissionPlugin):  # type: ignore[misc]
    """Takes a share of the points for every day that has begun since the due date.
    `[late]` in `course.toml` sets it."""

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
        percent = min(
            self.percent * days_late(total_seconds_late), self.at_most_percent
        )
        return round(score * percent / 100, 6) or None


class LatePenalties(AssignLatePenalties):  # type: ignore[misc]
    """nbgrader's step, which also knows extensions that were given beforehand,
    and work that a learning management system marks as late without saying by
    how much: that costs what the first moment of lateness costs, unless its
    learner had an extension that the system knew nothing of."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Sets the penalty of one submission in the gradebook."""
        known = resources["nbgrader"]
        chapter, student = known["assignment"], known["student"]
        above = self.parent
        while not hasattr(above, "coursedir"):  # nbconvert's exporter has none
            above = above.parent
        coursedir: CourseDirectory = above.coursedir
        with Gradebook(known["db_url"], coursedir.course_id) as gradebook:
            submission = gradebook.find_submission(chapter, student)
            days = read_extensions(coursedir).get((student, chapter))
            given = None if not days else timedelta(days=days)
            if given != submission.extension:
                submission.extension = given
                gradebook.db.commit()
            unknown = submission.timestamp is None
        nb, resources = super().preprocess(nb, resources)
        receipt = read_receipt(submitted_folder(coursedir, student, chapter))
        if unknown and given is None and receipt is not None and receipt.late:
            with Gradebook(known["db_url"], coursedir.course_id) as gradebook:
                notebook = gradebook.find_submission_notebook(
                    known["notebook"], chapter, student
                )
                penalty = self.plugin_inst.late_submission_penalty(
                    student, notebook.score, 1
                )
                if penalty is not None:
                    notebook.late_submission_penalty = self._check_late_penalty(
                        notebook, penalty
                    )
                gradebook.db.commit()
        return nb, resources


def parse_due(text: str, zone: tzinfo | None = None) -> datetime:
    """A moment such as "2026-12-01 18:00", in the course's time zone, or with a
    zone of its own ("2026-12-01T18:00+01:00"). A date alone is the end of that day.

    Raises:
        CourseError: it is no such thing.
    """
    with contextlib.suppress(ValueError):
        text = f"{date.fromisoformat(text)} 23:59:59"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CourseError(
            f'{text} is no date: write "2026-12-01 18:00", with +01:00 behind '
            "it for a time zone that is not the course's."
        ) from None
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(UTC)


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
    assess(classroom, chapter)


def read_extensions(
    coursedir: CourseDirectory,
) -> dict[tuple[str, str], float]:
    """Days of more time, by student and chapter.

    Raises:
        CourseError: the file was edited and is not as it should be.
    """
    path = Path(coursedir.root) / EXTENSIONS
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        return {
            (row["student"], row["chapter"]): float(row["days"])
            for row in csv.DictReader(io.StringIO(text))
        }
    except (KeyError, ValueError, TypeError) as error:
        raise CourseError(
            f"{path} must have the columns student, chapter and days, and a "
            f"number in the last: {error}."
        ) from error


def extend(
    classroom: Classroom,
    given: Mapping[tuple[str, str], float],
) -> None:
    """Gives more time, before or after work is handed in; another extension of
    the same chapter replaces the first, and 0 days take it back.

    Args:
        classroom: the class.
        given: days, by student and chapter.

    Raises:
        CourseError: somebody is on no roster and has handed nothing in.
    """
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        known = {one.id for one in gradebook.students}
    strangers = sorted({student for student, _ in given} - known)
    if strangers:
        raise CourseError(
            f"On no roster: {', '.join(strangers)}. `course roster FILE.csv` "
            "takes them onto it."
        )
    _write_extensions(coursedir, {**read_extensions(coursedir), **given})
    for chapter in sorted({chapter for _, chapter in given}):
        assess(classroom, chapter, [one for one, of in given if of == chapter])


def forget_extensions(coursedir: CourseDirectory, student: str) -> None:
    """Deletes a learner's extensions."""
    known = read_extensions(coursedir)
    kept = {key: days for key, days in known.items() if key[0] != student}
    if kept != known:
        _write_extensions(coursedir, kept)


def _write_extensions(
    coursedir: CourseDirectory, extensions: Mapping[tuple[str, str], float]
) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["student", "chapter", "days"])
    writer.writerows(
        [student, chapter, f"{days:.10g}"]
        for (student, chapter), days in sorted(extensions.items())
        if days
    )
    write_private(Path(coursedir.root) / EXTENSIONS, text.getvalue())


def read_extensions_file(
    path: Path, chapters: Sequence[str], chapter_of: Callable[[str], str]
) -> dict[tuple[str, str], float]:
    """Extensions from a CSV file with the columns student, days and, where they
    are not for all chapters, chapter.

    Args:
        path: the file.
        chapters: all chapters.
        chapter_of: a chapter's full name by its name or number.

    Raises:
        CourseError: the file cannot be used.
    """
    given: dict[tuple[str, str], float] = {}
    for line, row in enumerate(
        csv.DictReader(io.StringIO(read_csv(path))), start=2
    ):
        try:
            student, days = row["student"].strip(), float(row["days"])
        except (KeyError, AttributeError, TypeError, ValueError):
            raise CourseError(
                f"{path}, line {line}: a student and a number of days must "
                "stand in the columns student and days."
            ) from None
        said = (row.get("chapter") or "").strip()
        for chapter in [chapter_of(said)] if said else chapters:
            given[student, chapter] = days
    return given


@dataclass(frozen=True)
class Lateness:
    """How late one submission is.

    Attributes:
        handed_in: when, in UTC; None if that is not known.
        days: that have begun since the due date, extension included.
        said_late: its system marks it as late; by how much is not known.
        seconds: that count, extension included.
    """

    handed_in: datetime | None
    days: int
    said_late: bool
    seconds: float


def lateness(
    folder: Path, extension_days: float, due_at: datetime | None
) -> Lateness:
    """How late work is.

    Args:
        folder: where it lies, with what is known of its time.
        extension_days: that its learner has for the chapter.
        due_at: when the chapter is due; None if never.
    """
    moment, receipt = read_timestamp(folder), read_receipt(folder)
    if moment is None:
        late = receipt is not None and receipt.late and not extension_days
        # the first moment, for nobody knows by how much
        return Lateness(None, 0, late, 1.0 if late else 0.0)
    moment = moment.replace(tzinfo=UTC)
    late_s = 0.0
    if due_at is not None:
        end = due_at + timedelta(days=extension_days)
        late_s = max((moment - end).total_seconds(), 0.0)
    return Lateness(moment, days_late(late_s), False, late_s)


def penalty(
    classroom: Classroom, student: str, points: float, seconds: float
) -> float:
    """What being late costs, as `course.toml` has it now.

    Args:
        classroom: the class.
        student: whose work it is.
        points: that it reached.
        seconds: that it came late, extension included.
    """
    if not seconds:
        return 0.0
    step = LatePenalties(parent=classroom.api)
    step.init_plugin()
    cost = step.plugin_inst.late_submission_penalty(student, points, seconds)
    return min(max(cost or 0.0, 0.0), points)


def settle(classroom: Classroom, chapters: Collection[str]) -> None:
    """Brings what being late costs up to date where the gradebook has something
    else: `[late]` may have changed since, or points by hand."""
    coursedir = classroom.coursedir
    extensions = read_extensions(coursedir)
    stale: dict[str, list[str]] = {}
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        # all of a chapter's in one query: this is asked whenever marks are read
        found = gradebook.db.query(SubmittedAssignment).options(
            undefer(SubmittedAssignment.score),
            undefer(SubmittedAssignment.late_submission_penalty),
        )
        for assignment in gradebook.assignments:
            if assignment.name not in chapters:
                continue
            for one in found.filter_by(assignment_id=assignment.id):
                student = one.student_id
                days = extensions.get((student, assignment.name), 0.0)
                seconds = 0.0
                if one.timestamp is None:
                    folder = submitted_folder(
                        coursedir, student, assignment.name
                    )
                    seconds = lateness(folder, days, None).seconds
                elif assignment.duedate is not None:
                    end = assignment.duedate + timedelta(days=days)
                    seconds = max((one.timestamp - end).total_seconds(), 0.0)
                cost = penalty(classroom, student, one.score, seconds)
                # some databases keep penalties to seven digits
                if abs(cost - one.late_submission_penalty) > 1e-4:
                    stale.setdefault(assignment.name, []).append(student)
    for chapter, students in stale.items():
        assess(classroom, chapter, students)


def take_over_times(classroom: Classroom, chapters: Iterable[str]) -> None:
    """Tells the gradebook the times of graded submissions that have become known
    since, and works out anew what they cost."""
    coursedir = classroom.coursedir
    for chapter in chapters:
        changed = []
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            try:
                graded = gradebook.assignment_submissions(chapter)
            except MissingEntry:
                continue
            for one in graded:
                folder = submitted_folder(coursedir, one.student.id, chapter)
                moment = read_timestamp(folder)
                if folder.is_dir() and moment != one.timestamp:
                    one.timestamp = moment
                    changed.append(one.student.id)
            gradebook.db.commit()
        assess(classroom, chapter, changed)


def assess(
    classroom: Classroom, chapter: str, only: Sequence[str] | None = None
) -> None:
    """Works out anew what being late costs.

    Args:
        classroom: the class.
        chapter: the chapter.
        only: of these students; None for all with a graded submission.
    """
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        try:
            graded = gradebook.assignment_submissions(chapter)
        except MissingEntry:
            return
        students = [one.student.id for one in graded]
    for student in students:
        if only is not None and student not in only:
            continue
        LatePenalties(parent=classroom.api).preprocess(
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
