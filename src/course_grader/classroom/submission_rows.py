"""The rows of one submission in nbgrader's tables, read and written at once."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from sqlalchemy import (
    Connection,
    CursorResult,
    Select,
    bindparam,
    insert,
    select,
    update,
)

from course_grader.course import CourseError

# What nbgrader keeps of a cell of each kind.
_TABLES: dict[str, tuple[type, ...]] = {
    "GradeCell": (Grade,),
    "SolutionCell": (Comment,),
    "TaskCell": (Comment, Grade),
}


@functools.cache
def _query(table: Any, *names: str) -> Select[Any]:
    """Rows whose columns of these names have the values that come with it."""
    columns = table.__table__.c
    return select(table.__table__).where(
        *(columns[one] == bindparam(one) for one in names)
    )


@dataclass
class _Marks:
    """What nbgrader's step sets of one cell, under its names.

    Attributes:
        table: Grade or Comment.
        cell: the id of the cell in the gradebook.
        notebook: the id of the notebook it is in.
        row: the id of the row that holds it; None if there is none yet.
        asked_for: the step has asked for it; else an older row stays as it is.
    """

    table: type[Grade | Comment]
    cell: str
    notebook: str
    row: str | None = None
    asked_for: bool = False
    manual_score: float | None = None
    auto_score: float | None = None
    needs_manual_grade: bool = True
    auto_comment: str | None = None

    def values(self) -> dict[str, Any]:
        """The columns that are written."""
        if self.table is Comment:
            return {"auto_comment": self.auto_comment}
        return {
            "auto_score": self.auto_score,
            "needs_manual_grade": self.needs_manual_grade,
        }


class SubmissionRows:
    """The gradebook as nbgrader's step asks it, for one submission: read at once
    and written at once, a statement for each table. nbgrader's own asks and commits
    for every cell, through objects that SQLAlchemy has to keep track of.

    Args:
        connection: with a transaction that has begun.
        chapter: the chapter.
        student: whose submission it is.

    Attributes:
        due: when the chapter is due, in UTC without a zone, as nbgrader keeps it.
        has_penalty: whether being late has cost this submission points.

    Raises:
        CourseError: the chapter was never released.
    """

    def __init__(
        self, connection: Connection, chapter: str, student: str
    ) -> None:
        self.db = self
        self._connection, self._student = connection, student
        assignment = self._read(Assignment, name=chapter).one_or_none()
        if assignment is None:
            raise CourseError(
                f"The gradebook does not know {chapter}: run `course release "
                f"{chapter}` first."
            )
        self._assignment: str = assignment.id
        self.due: datetime | None = assignment.duedate
        entered = self._read(
            SubmittedAssignment,
            assignment_id=self._assignment,
            student_id=student,
        ).one_or_none()
        self._entered: str | None = entered and entered.id
        self._notebooks: dict[str, str] = {}
        self.has_penalty = False
        if self._entered is not None:
            for one in self._read(
                SubmittedNotebook, assignment_id=self._entered
            ):
                self._notebooks[one.notebook_id] = one.id
                self.has_penalty |= bool(one.late_submission_penalty)
        self._marks = dict(self._cells())

    def _read(self, table: Any, **columns: str) -> CursorResult[Any]:
        return self._connection.execute(_query(table, *columns), columns)

    def _cells(self) -> Iterator[tuple[tuple[type, str, str], _Marks]]:
        """Each cell's marks, by table, notebook and name."""
        known: dict[tuple[type, str], Any] = {}
        for submitted in self._notebooks.values():
            for table in (Grade, Comment):
                for row in self._read(table, notebook_id=submitted):
                    known[table, row.cell_id] = row
        for notebook in self._read(Notebook, assignment_id=self._assignment):
            for cell in self._read(BaseCell, notebook_id=notebook.id):
                for table in _TABLES.get(cell.type, ()):
                    marks = _Marks(table, cell.id, notebook.id)
                    if (older := known.get((table, cell.id))) is not None:
                        marks.row = older.id
                        if table is Grade:
                            marks.manual_score = older.manual_score
                    yield (table, notebook.name, cell.name), marks

    def write(
        self, handed_in: datetime | None, more_time: timedelta | None
    ) -> None:
        """Writes what the step has set.

        Args:
            handed_in: when, in UTC; None if nobody knows.
            more_time: the learner's extension.
        """
        # nbgrader's columns hold UTC without saying so
        naive = None if handed_in is None else handed_in.replace(tzinfo=None)
        when = {"timestamp": naive, "extension": more_time}
        if self._entered is None:
            if self._read(Student, id=self._student).one_or_none() is None:
                self._insert(Student, [{"id": self._student}])
            self._entered = new_uuid()
            self._insert(
                SubmittedAssignment,
                [
                    {
                        "id": self._entered,
                        "assignment_id": self._assignment,
                        "student_id": self._student,
                        **when,
                    }
                ],
            )
        else:
            self._update(SubmittedAssignment, [{"row": self._entered, **when}])
        ids = dict.fromkeys(one.notebook for one in self._marks.values())
        missing = {one: new_uuid() for one in ids if one not in self._notebooks}
        self._insert(
            SubmittedNotebook,
            [
                {"id": row, "notebook_id": one, "assignment_id": self._entered}
                for one, row in missing.items()
            ],
        )
        self._notebooks |= missing
        for table in (Grade, Comment):
            marks = [one for one in self._marks.values() if one.table is table]
            self._update(
                table,
                [
                    {"row": one.row, **one.values()}
                    for one in marks
                    if one.row and one.asked_for
                ],
            )
            self._insert(
                table,
                [
                    {
                        "cell_id": one.cell,
                        "notebook_id": self._notebooks[one.notebook],
                        **one.values(),
                    }
                    for one in marks
                    if not one.row
                ],
            )

    def _insert(self, table: Any, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._connection.execute(insert(table.__table__), rows)

    def _update(self, table: Any, rows: list[dict[str, Any]]) -> None:
        """Changes the rows whose ids are `row`."""
        if rows:
            columns = table.__table__
            self._connection.execute(
                update(columns).where(columns.c.id == bindparam("row")), rows
            )

    def commit(self) -> None:
        """Nothing: whoever began the transaction commits all of it."""

    def find_grade(self, cell: str, notebook: str, *_: str) -> _Marks:
        return self._one(Grade, notebook, cell)

    def find_comment(self, cell: str, notebook: str, *_: str) -> _Marks:
        return self._one(Comment, notebook, cell)

    def _one(self, *key: Any) -> _Marks:
        try:
            found = self._marks[key]
        except KeyError:
            raise MissingEntry(f"No such cell: {key[1]}/{key[2]}") from None
        found.asked_for = True
        return found
