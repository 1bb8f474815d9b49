"""Writes graded submissions into nbgrader's gradebook and folders, and reads
marks out of it. One coordinator writes; nobody else needs the database.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import rejoin_lines
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import SaveAutoGrades
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from course_grader.classroom import attempts
from course_grader.classroom.collect_versions import (
    SECRET_FILE,
    TIMESTAMP_FILE,
    read_timestamp,
    submitted_folder,
)
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.private import private_folder, write_private
from course_grader.classroom.submission_rows import SubmissionRows
from course_grader.classroom.term import (
    LatePenalties,
    lateness,
    penalty,
    read_extensions,
    settle,
)
from course_grader.judge.report import SubmissionReport

DIGEST = "course.sha256"
"""File beside a graded notebook: the digest of the submission it came from."""

UNREADABLE = "Its graded notebook cannot be read: remove it, and grade the chapter again."


@dataclass(frozen=True)
class Submission:
    """One collected submission.

    Attributes:
        student: whose it is.
        path: the notebook file in nbgrader's submitted folder.
        graded: whether exactly this file has been graded already, as it was handed
            in then: the same once more wants feedback of its own.
    """

    student: str
    path: Path
    graded: bool


def submissions(classroom: Classroom, chapter: str) -> Iterator[Submission]:
    """The collected submissions of a chapter, by student."""
    pattern = classroom.folder("submitted", "*", chapter)
    for folder in sorted(pattern.parent.parent.glob(f"*/{chapter}")):
        path = folder / f"{chapter}.ipynb"
        if path.is_symlink() or not path.is_file():
            continue
        student = folder.parent.name
        yield Submission(
            student, path, _graded(classroom, chapter, student, path)
        )


def _graded(
    classroom: Classroom, chapter: str, student: str, path: Path
) -> bool:
    """Whether exactly this attempt has been graded, by us or by nbgrader."""
    folder = classroom.folder("autograded", student, chapter)
    if not (folder / f"{chapter}.ipynb").exists():
        return False
    if read_timestamp(folder) != read_timestamp(path.parent):
        return False
    digest = folder / DIGEST
    if digest.exists():
        try:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            return digest.read_text().strip() == content
        except (OSError, UnicodeError):
            return False  # grading it says what is wrong
    return True


def _graded_cells(text: str) -> NotebookNode:
    """A notebook of those cells alone that nbgrader knows: a tenth of a graded one,
    most of which is what its cells printed and drew."""
    tree = json.loads(text)
    cells = [one for one in tree["cells"] if "nbgrader" in one["metadata"]]
    return rejoin_lines(nbformat.from_dict({"cells": cells}))


@contextlib.contextmanager
def open_gradebook(classroom: Classroom) -> Iterator[OpenGradebook]:
    """The gradebook, open for a whole run: opening it reads its schema and forgets
    every query that was worked out before."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        gradebook.db.remove()  # each submission gets a session of its own
        yield OpenGradebook(classroom, gradebook)


@dataclass(frozen=True)
class Graded:
    """One graded submission.

    Attributes:
        submission: whose it is.
        submitted: the file's bytes, as they were graded.
        notebook: the text of the graded notebook, safe to open.
    """

    submission: Submission
    submitted: bytes
    notebook: str


@dataclass(frozen=True)
class OpenGradebook:
    """Where graded submissions are stored."""

    classroom: Classroom
    gradebook: Gradebook

    def save(self, chapter: str, graded: Sequence[Graded]) -> None:
        """Stores graded submissions as `nbgrader autograde` would: the notebooks
        in the autograded folder, automatic marks in the gradebook, those of all of
        them or of none. Manual marks and comments stay.

        Args:
            chapter: the chapter.
            graded: the submissions.

        Raises:
            CourseError: the chapter was never released.
        """
        try:
            late = self._store_marks(chapter, graded)
        except IntegrityError:
            # somebody else has just entered the same student or submission
            late = self._store_marks(chapter, graded)
        for one, is_late in zip(graded, late, strict=True):
            self._store_files(chapter, one, is_late)

    def _store_files(self, chapter: str, graded: Graded, late: bool) -> None:
        """Writes one graded notebook, with its late penalty where there is one to
        set, or one to take back."""
        text, submission = graded.notebook, graded.submission
        student = submission.student
        if late:
            # our own file, of a shape that need not be looked at again
            notebook = nbformat.v4.reads(text)
            resources = _resources(self.classroom, chapter, student)
            step = LatePenalties(parent=self.classroom.api)
            step.preprocess(notebook, resources)
            text = nbformat.writes(notebook, version=4)
        folder = self.classroom.folder("autograded", student, chapter)
        private_folder(folder)
        # replaced, not written over: `nbgrader autograde` leaves it read-only
        write_private(folder / f"{chapter}.ipynb", text)
        # nbgrader needs both to release feedback to the learner alone
        for name in (TIMESTAMP_FILE, SECRET_FILE):
            file = submission.path.parent / name
            (folder / name).unlink(missing_ok=True)
            if file.is_file() and not file.is_symlink():
                shutil.copyfile(file, folder / name)
        # last of all: a run that stopped half-way grades this one again
        digest = hashlib.sha256(graded.submitted).hexdigest()
        (folder / DIGEST).write_text(digest + "\n")

    def put_aside(self, chapter: str, submission: Submission) -> None:
        """Keeps what the gradebook holds of an older attempt than this submission,
        which will take its place there."""
        student = submission.student
        folder = self.classroom.folder("autograded", student, chapter)
        try:
            older = (folder / DIGEST).read_text().strip()
        except (OSError, UnicodeError):
            return  # nothing is graded, or not by us
        if submission.graded or not re.fullmatch("[0-9a-f]{64}", older):
            return
        notebooks = graded_notebooks(self.classroom, chapter, student)
        metadata = notebooks.get(student, {}).get("metadata", {})
        try:
            entered = self.gradebook.find_submission(chapter, student)
            attempts.put_aside(
                self.classroom.coursedir,
                chapter,
                student,
                older,
                [one for nb in entered.notebooks for one in nb.grades],
                metadata.get("course", {}).get("report"),
            )
        except MissingEntry:
            return
        finally:
            self.gradebook.db.remove()

    def _store_marks(
        self, chapter: str, graded: Sequence[Graded]
    ) -> list[bool]:
        """Writes marks in one transaction.

        Returns:
            Of each submission, whether there is a late penalty to set, or one to
            take back.
        """
        if not graded:
            return []
        extensions = read_extensions(self.classroom.coursedir)
        with self.gradebook.engine.begin() as connection:
            return [
                self._enter(connection, chapter, one, extensions)
                for one in graded
            ]

    def _enter(
        self,
        connection: Connection,
        chapter: str,
        graded: Graded,
        extensions: dict[tuple[str, str], float],
    ) -> bool:
        """Writes the marks of one; whether it has to do with being late."""
        submission = graded.submission
        student, folder = submission.student, submission.path.parent
        days = extensions.get((student, chapter), 0.0)
        rows = SubmissionRows(connection, chapter, student)
        due = rows.due.replace(tzinfo=UTC) if rows.due is not None else None
        late = lateness(folder, days, due)
        step = _SaveInto(parent=self.classroom.api)
        step.gradebook = rows
        step.preprocess(
            _graded_cells(graded.notebook),
            _resources(self.classroom, chapter, student),
        )
        rows.write(late.handed_in, timedelta(days=days) if days else None)
        return bool(late.seconds) or rows.has_penalty


class _SaveInto(SaveAutoGrades):  # type: ignore[misc]
    """nbgrader's step, into a gradebook that is open already."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        known = resources["nbgrader"]
        self.notebook_id = known["notebook"]
        self.assignment_id = known["assignment"]
        self.student_id = known["student"]
        for index, cell in enumerate(nb.cells):
            self.preprocess_cell(cell, resources, index)
        return nb, resources


def _resources(
    classroom: Classroom, chapter: str, student: str
) -> dict[str, Any]:
    return {
        "nbgrader": {
            "notebook": chapter,
            "assignment": chapter,
            "student": student,
            "db_url": classroom.coursedir.db_url,
        }
    }


def unlike_graded(
    classroom: Classroom, built: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Where chapters of which something is graded no longer have the exercises and
    the points that the gradebook has; a sentence each. nbgrader takes no new and no
    removed ones, and changed points without a word: marks would be of what was, and
    their maximum of what is.

    Args:
        classroom: the class.
        built: the chapters' notebooks as JSON trees, by chapter.
    """
    coursedir = classroom.coursedir
    found = []
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        for assignment in gradebook.assignments:
            if assignment.name not in built or not assignment.num_submissions:
                continue
            known = {
                cell.name: cell.max_score
                for notebook in assignment.notebooks
                for cell in notebook.grade_cells
            }
            now = {
                one["grade_id"]: float(one["points"])
                for cell in built[assignment.name]["cells"]
                if (one := cell["metadata"].get("nbgrader", {})).get("grade")
            }
            differs = [
                _difference(name.removesuffix("_hidden"), known, now, name)
                for name in sorted({*known, *now})
                if known.get(name) != now.get(name)
            ]
            if differs:
                found.append(
                    f"{assignment.name} is frozen, for work of it is graded, and "
                    f"differs from the gradebook: {'; '.join(differs)}. Put "
                    "that back; text, hints, checks and answers may change."
                )
    return found


def _difference(
    exercise: str,
    known: Mapping[str, float],
    now: Mapping[str, float],
    cell: str,
) -> str:
    if cell not in known:
        return f"{exercise} is new"
    if cell not in now:
        return f"{exercise} is gone"
    return f"{exercise} is worth {now[cell]:g} points, there {known[cell]:g}"


AGAIN = (
    "It was graded anew after points were given by hand, which stay: see in "
    "formgrader whether they still hold."
)


@dataclass(frozen=True)
class Mark:
    """A student's mark for a chapter, as the gradebook has it.

    Attributes:
        student: the student's id.
        name: the student's name, if the roster has one.
        chapter: the chapter.
        points: manual marks included, late penalty taken off; None if nothing
            is graded: not handed in, not graded yet, or refused by the grader
            and not marked by hand.
        max_points: what the chapter gives.
        by_exercise: points by grade cell.
        handed_in: when, in UTC; None if nothing is there, or nobody knows.
        submitted: something was handed in.
        days_late: that have begun, extension included.
        said_late: its system marks it as late; by how much is not known.
        penalty: points that were taken off.
        by_hand: points that a person set; None if nobody did.
        look: why somebody should look at it; empty if nobody needs to.
        attempt: the one that counts; the first is 1.
        attempts: how many there are; those that could not be graded, too.
    """

    student: str
    name: str
    chapter: str
    points: float | None
    max_points: float
    by_exercise: dict[str, float] = field(default_factory=dict)
    handed_in: datetime | None = None
    submitted: bool = False
    days_late: int = 0
    said_late: bool = False
    penalty: float = 0.0
    by_hand: float | None = None
    look: str = ""
    attempt: int = 0
    attempts: int = 0


def marks(
    classroom: Classroom, chapters: list[str], only: str = ""
) -> list[Mark]:
    """All marks of the chapters, by chapter and student; of those who handed
    nothing in, too. Late penalties are those that `course.toml` has now.

    Args:
        classroom: the class.
        chapters: the chapters.
        only: the one student who is asked about, while all pages are written;
            empty for all.
    """
    if not only:  # before all pages were, it was done
        settle(classroom, chapters)
    coursedir = classroom.coursedir
    extensions = read_extensions(coursedir)
    found = []
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        names = {
            one.id: " ".join(filter(None, (one.first_name, one.last_name)))
            for one in gradebook.students
        }
        for chapter in chapters:
            graded: dict[str, Any] = {}
            max_points = 0.0
            due_at = None
            with contextlib.suppress(MissingEntry):
                assignment = gradebook.find_assignment(chapter)
                max_points = assignment.max_score
                if assignment.duedate is not None:
                    due_at = assignment.duedate.replace(tzinfo=UTC)
                graded = {
                    one.student.id: one
                    for one in gradebook.assignment_submissions(chapter)
                }
            collected = {one.student for one in submissions(classroom, chapter)}
            notebooks = graded_notebooks(classroom, chapter, only or "*")
            told = _reports_in(notebooks)
            for student in sorted({*names, *graded, *collected}):
                if only and student != only:
                    continue
                more_days = extensions.get((student, chapter), 0.0)
                folder = submitted_folder(coursedir, student, chapter)
                late = lateness(folder, more_days, due_at)
                older = attempts.older(coursedir, chapter, student)
                number = len(older) + (student in collected)
                mark = Mark(
                    student=student,
                    name=names.get(student, ""),
                    chapter=chapter,
                    points=None,
                    max_points=max_points,
                    handed_in=late.handed_in,
                    submitted=student in collected or student in graded,
                    days_late=late.days,
                    said_late=late.said_late,
                    attempt=number,
                    attempts=number,
                )
                if student in graded:
                    mark = _graded_mark(
                        mark, graded[student], told.get(student)
                    )
                if not notebooks.get(student, {"cells": [1]})["cells"]:
                    look = f"{mark.look} {UNREADABLE}".strip()
                    mark = replace(mark, look=look)
                if classroom.course.best_attempt_counts:
                    mark = _best(classroom, mark, older, more_days, due_at)
                found.append(mark)
    return found


def _best(
    classroom: Classroom,
    newest: Mark,
    older: list[attempts.Attempt],
    more_days: float,
    due_at: datetime | None,
) -> Mark:
    """The mark of the attempt that counts: the most points with what being late
    costs taken off; of equal ones the newest that is not later than others. Whoever
    should be looked at stays so."""
    candidates = [newest]
    coursedir, chapter = classroom.coursedir, newest.chapter
    same = attempts.newest_digest(coursedir, chapter, newest.student)
    for one in reversed(older):
        if one.digest == same:  # handed in once more
            mark, refused = newest, newest.points is None
        else:
            got = attempts.read(coursedir, chapter, one.student, one.digest)
            if got is None:
                continue
            by_hand = [*got.by_hand.values()]
            mark, refused = (
                replace(
                    newest,
                    by_exercise=got.by_exercise,
                    by_hand=sum(by_hand) if by_hand else None,
                    look=got.look,
                ),
                got.refused,
            )
        late = lateness(one.path.parent, more_days, due_at)
        reached = sum(mark.by_exercise.values())
        cost = penalty(classroom, one.student, reached, late.seconds)
        candidates.append(
            replace(
                mark,
                points=None if refused else reached - cost,
                handed_in=late.handed_in,
                days_late=late.days,
                said_late=late.said_late,
                penalty=cost,
                attempt=one.number,
            )
        )
    best = max(
        candidates,
        key=lambda one: (
            -1.0 if one.points is None else one.points,
            -one.days_late,
        ),
    )
    looks = dict.fromkeys(filter(None, (newest.look, best.look)))
    return replace(best, look=" ".join(looks))


def _graded_mark(
    mark: Mark, submission: Any, report: SubmissionReport | None
) -> Mark:
    """What the gradebook and the report say about one submission."""
    grades = [g for nb in submission.notebooks for g in nb.grades]
    by_hand = [g.manual_score for g in grades if g.manual_score is not None]
    penalty = submission.late_submission_penalty or 0.0
    refused = report is not None and bool(report.refused)
    look: list[str] = []
    if report is not None:
        look += [report.refused] if report.refused else report.needs_human
    if submission.needs_manual_grade:
        look.append(AGAIN if by_hand else "Points are to be given by hand.")
    return replace(
        mark,
        points=None
        if refused and not by_hand
        else max(0.0, submission.score - penalty),
        by_exercise={
            grade.name.removesuffix("_hidden"): grade.score
            for grade in grades
            if grade.max_score
        },
        penalty=penalty,
        by_hand=sum(by_hand) if by_hand else None,
        look=" ".join(look),
    )


def chapters(classroom: Classroom) -> list[str]:
    """The chapters that were released, in order."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return sorted(one.name for one in gradebook.assignments)


def students(classroom: Classroom) -> list[str]:
    """The ids of the roster."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return sorted(one.id for one in gradebook.students)


def automatic_points(classroom: Classroom, chapter: str) -> dict[str, float]:
    """Points that the grader gave, by student; manual marks left out."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        try:
            collected = gradebook.assignment_submissions(chapter)
        except MissingEntry:
            return {}
        return {
            one.student.id: sum(
                grade.auto_score or 0.0
                for notebook in one.notebooks
                for grade in notebook.grades
            )
            for one in collected
        }


def graded_notebooks(
    classroom: Classroom, chapter: str, student: str = "*"
) -> dict[str, dict[str, Any]]:
    """The graded notebooks as JSON trees, by student; empty ones for those whose
    file cannot be read.

    Args:
        classroom: the class.
        chapter: the chapter.
        student: one; "*" for all.
    """
    found: dict[str, dict[str, Any]] = {}
    pattern = classroom.folder("autograded", "*", chapter)
    for folder in sorted(pattern.parent.parent.glob(f"{student}/{chapter}")):
        path = folder / f"{chapter}.ipynb"
        if not path.is_file():
            continue
        tree: Any = None
        with contextlib.suppress(OSError, ValueError, RecursionError):
            tree = json.loads(path.read_text(encoding="utf-8"))
        whole = isinstance(tree, dict) and {"cells", "metadata"} <= set(tree)
        found[folder.parent.name] = (
            tree if whole else {"cells": [], "metadata": {}}
        )
    return found


def reports(classroom: Classroom, chapter: str) -> dict[str, SubmissionReport]:
    """The reports of all graded submissions that can be read, by student."""
    return _reports_in(graded_notebooks(classroom, chapter))


def _reports_in(
    notebooks: dict[str, dict[str, Any]],
) -> dict[str, SubmissionReport]:
    found = {}
    for student, notebook in notebooks.items():
        with contextlib.suppress(
            AttributeError, KeyError, TypeError, ValueError
        ):
            tree = notebook["metadata"].get("course", {}).get("report")
            if tree is not None:
                found[student] = SubmissionReport.from_json(tree)
    return found
