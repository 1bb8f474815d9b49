"""Writes graded submissions into nbgrader's gradebook and folders, and reads
marks out of it. One coordinator writes; nobody else needs the database.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades
from sqlalchemy.exc import SAWarning

from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.private import private_folder, write_private
from course_grader.course import CourseError
from course_grader.judge.report import SubmissionReport

DIGEST = "course.sha256"
"""File beside a graded notebook: the digest of the submission it came from."""


@dataclass(frozen=True)
class Submission:
    """One collected submission.

    Attributes:
        student: whose it is.
        path: the notebook file in nbgrader's submitted folder.
        graded: whether exactly this file has been graded already.
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
    """Whether exactly this file has been graded, by us or by nbgrader."""
    folder = classroom.folder("autograded", student, chapter)
    if not (folder / f"{chapter}.ipynb").exists():
        return False
    digest = folder / DIGEST
    if digest.exists():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        return digest.read_text().strip() == content
    timestamp = classroom.coursedir.get_existing_timestamp
    return bool(timestamp(str(folder)) == timestamp(str(path.parent)))


@contextlib.contextmanager
def open_gradebook(classroom: Classroom) -> Iterator[OpenGradebook]:
    """The gradebook, open for a whole run: opening it reads its schema and forgets
    every query that was worked out before."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        gradebook.db.remove()  # each submission gets a session of its own
        yield OpenGradebook(classroom, gradebook)


@dataclass(frozen=True)
class OpenGradebook:
    """Where graded submissions are stored."""

    classroom: Classroom
    gradebook: Gradebook

    def save(
        self,
        chapter: str,
        submission: Submission,
        submitted: bytes,
        graded_notebook: str,
    ) -> None:
        """Stores one graded submission as `nbgrader autograde` would: the notebook
        in the autograded folder, automatic marks in the gradebook. Manual marks
        and comments stay.

        Args:
            chapter: the chapter.
            submission: whose it is.
            submitted: the file's bytes, as they were graded.
            graded_notebook: the text of the graded notebook, safe to open.

        Raises:
            CourseError: the chapter was never released.
        """
        notebook = nbformat.reads(graded_notebook, as_version=4)
        student = submission.student
        try:
            late = self._store_marks(chapter, submission, notebook)
        except InvalidEntry:
            # somebody else has just entered the same student or submission
            late = self._store_marks(chapter, submission, notebook)
        if late:
            resources = _resources(self.classroom, chapter, student)
            step = AssignLatePenalties(parent=self.classroom.api)
            step.preprocess(notebook, resources)
        folder = self.classroom.folder("autograded", student, chapter)
        private_folder(folder)
        # replaced, not written over: `nbgrader autograde` leaves it read-only
        text = nbformat.writes(notebook, version=4)
        write_private(folder / f"{chapter}.ipynb", text)
        # nbgrader needs both to release feedback to the learner alone
        for name in ("timestamp.txt", "submission_secret.txt"):
            file = submission.path.parent / name
            if file.is_file() and not file.is_symlink():
                (folder / name).unlink(missing_ok=True)
                shutil.copyfile(file, folder / name)
        # last of all: a run that stopped half-way grades this one again
        digest = hashlib.sha256(submitted).hexdigest()
        (folder / DIGEST).write_text(digest + "\n")

    def _store_marks(
        self, chapter: str, submission: Submission, notebook: NotebookNode
    ) -> bool:
        """Writes a submission's marks, all of them or none.

        Returns:
            Whether there is a late penalty to set, or one to take back.
        """
        db, student = self.gradebook.db, submission.student
        with self.gradebook.engine.begin() as connection, _quiet_sqlalchemy():
            # nbgrader commits after every cell; what is one submission becomes
            # one transaction, and one write to the disk
            db.configure(
                bind=connection,
                join_transaction_mode="rollback_only",
                expire_on_commit=False,
            )
            try:
                self._enter(chapter, submission)
                step = _SaveInto(parent=self.classroom.api)
                step.gradebook = self.gradebook
                step.preprocess(
                    notebook, _resources(self.classroom, chapter, student)
                )
                entered = self.gradebook.find_submission(chapter, student)
                return bool(
                    entered.total_seconds_late > 0
                    or entered.late_submission_penalty
                )
            finally:
                db.remove()

    def _enter(self, chapter: str, submission: Submission) -> None:
        gradebook, student = self.gradebook, submission.student
        try:
            gradebook.find_assignment(chapter)
        except MissingEntry:
            raise CourseError(
                f"The gradebook does not know {chapter}: run `course release "
                f"{chapter}` first."
            ) from None
        gradebook.update_or_create_student(student)
        read = self.classroom.coursedir.get_existing_timestamp
        timestamp = read(str(submission.path.parent))
        more = {"timestamp": timestamp} if timestamp else {}
        gradebook.update_or_create_submission(chapter, student, **more)


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


@contextlib.contextmanager
def _quiet_sqlalchemy() -> Iterator[None]:
    """nbgrader 0.9.6 builds its rows in an order SQLAlchemy 2.1 frowns on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        yield


def handed_in(classroom: Classroom) -> dict[str, int]:
    """How many submissions the gradebook holds, by chapter; only those that have
    some. nbgrader takes no new, moved or removed graded cells for them."""
    coursedir = classroom.coursedir
    file = coursedir.db_url.removeprefix("sqlite:///")
    if file != coursedir.db_url and not Path(file).exists():
        return {}  # opening it would make it
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return {
            one.name: one.num_submissions
            for one in gradebook.assignments
            if one.num_submissions
        }


@dataclass(frozen=True)
class Mark:
    """A student's mark for a chapter, as the gradebook has it.

    Attributes:
        student: the student's id.
        name: the student's name, if the roster has one.
        chapter: the chapter.
        points: manual marks included, late penalty taken off.
        max_points: what the chapter gives.
        by_exercise: points by grade cell.
        needs_manual: somebody should look at it.
    """

    student: str
    name: str
    chapter: str
    points: float
    max_points: float
    by_exercise: dict[str, float]
    needs_manual: bool


def marks(classroom: Classroom, chapters: list[str]) -> list[Mark]:
    """All marks of the chapters, by chapter and student; only of students who
    handed in."""
    coursedir = classroom.coursedir
    found = []
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        for chapter in chapters:
            try:
                collected = gradebook.assignment_submissions(chapter)
            except MissingEntry:
                continue
            for one in collected:
                student = one.student
                name = " ".join(
                    part
                    for part in (student.first_name, student.last_name)
                    if part
                )
                grades = [g for nb in one.notebooks for g in nb.grades]
                found.append(
                    Mark(
                        student=student.id,
                        name=name,
                        chapter=chapter,
                        points=max(
                            0.0, one.score - (one.late_submission_penalty or 0)
                        ),
                        max_points=one.max_score,
                        by_exercise={
                            grade.name.removesuffix("_hidden"): grade.score
                            for grade in grades
                            if grade.max_score
                        },
                        needs_manual=bool(one.needs_manual_grade),
                    )
                )
    return sorted(found, key=lambda mark: (mark.chapter, mark.student))


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


def reports(classroom: Classroom, chapter: str) -> dict[str, SubmissionReport]:
    """The reports of all graded submissions, by student."""
    found = {}
    pattern = classroom.folder("autograded", "*", chapter)
    for folder in sorted(pattern.parent.parent.glob(f"*/{chapter}")):
        path = folder / f"{chapter}.ipynb"
        if path.is_file():
            notebook = nbformat.read(path, as_version=4)
            tree = notebook.metadata.get("course", {}).get("report")
            if tree is not None:
                found[folder.parent.name] = SubmissionReport.from_json(tree)
    return found
