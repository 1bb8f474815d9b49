"""Marks as files: our own CSV, and what Canvas and Moodle import."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

from course_grader.classroom.collect_names import Student
from course_grader.classroom.gradebook import Mark
from course_grader.classroom.total import Total

Roster = Mapping[str, Student]
CANVAS_LOOK = "Look at before the Final Grade"
"""Canvas's import passes over columns with "Final Grade" in their name."""
Row = Sequence[object]
_MOODLE_KEYS = {"ID number": "lms_user_id", "Email address": "email"}


def as_csv(found: Sequence[Mark], roster: Roster, zone: tzinfo | None) -> str:
    """One row per student and chapter, one column per exercise. Times are in the
    course's time zone, and say which."""
    exercises = list(
        dict.fromkeys(name for mark in found for name in mark.by_exercise)
    )
    header = [
        *("chapter", "student", "name", "points", "max_points", "handed_in"),
        *("days_late", "penalty", "by_hand", "attempt", "attempts"),
        *("look_at", *exercises),
    ]
    return _written(
        header,
        [
            [
                mark.chapter,
                mark.student,
                mark.name,
                _number(mark.points),
                _number(mark.max_points),
                handed_in_text(mark, zone),
                "unknown" if mark.said_late else mark.days_late or "",
                _number(mark.penalty or None),
                _number(mark.by_hand),
                mark.attempt or "",
                mark.attempts or "",
                mark.look,
                *(_number(mark.by_exercise.get(name)) for name in exercises),
            ]
            for mark in found
        ],
    )


def handed_in_text(mark: Mark, zone: tzinfo | None) -> str:
    """When it was handed in, as a person reads it."""
    if not mark.submitted:
        return ""
    if mark.handed_in is None:
        return "unknown"
    return f"{mark.handed_in.astimezone(zone):%Y-%m-%d %H:%M:%S%z}"


def as_canvas(
    found: Sequence[Mark], roster: Roster, zone: tzinfo | None
) -> str:
    """One row per student, one column per chapter, as Canvas' gradebook imports
    them: its `ID` is the roster's LMS id, `SIS Login ID` the student's id here.
    The row below the header says what each chapter gives. Where there is no
    mark the cell is empty. The last column is for the instructor."""
    chapters = list(dict.fromkeys(mark.chapter for mark in found))
    most = {mark.chapter: f"{mark.max_points:g}" for mark in found}
    return _written(
        [
            *("Student", "ID", "SIS User ID", "SIS Login ID", "Section"),
            *chapters,
            CANVAS_LOOK,
        ],
        [
            [
                *("    Points Possible", "", "", "", ""),
                *map(most.get, chapters),
                "",
            ],
            *(
                [
                    f"{who.last_name}, {who.first_name}".strip(", ") or who.id,
                    who.lms_user_id,
                    "",
                    who.id,
                    "",
                    *(_number(marks[chapter].points) for chapter in chapters),
                    _looks(marks),
                ]
                for who, marks in _by_student(found, roster)
            ),
        ],
    )


def as_moodle(
    found: Sequence[Mark], roster: Roster, zone: tzinfo | None
) -> str:
    """One row per student, one column per chapter, for Moodle's grade import:
    students are found by `ID number` (the roster's LMS id) or `Email address`, or
    where the roster has neither of anybody, by `Username`. Moodle asks which
    column is which; `Look at` is for the instructor.

    Moodle gives a row whose key is empty to the student of the row above it. So
    the file has the keys that all of its rows have, and no row without one."""
    chapters = list(dict.fromkeys(mark.chapter for mark in found))
    keys, rows = _moodle_rows(found, roster)
    return _written(
        ["First name", "Last name", *keys, *chapters, "Look at"],
        [
            [
                who.first_name or who.id,
                who.last_name,
                *(getattr(who, key) for key in keys.values()),
                *(_number(marks[chapter].points) for chapter in chapters),
                _looks(marks),
            ]
            for who, marks in rows
        ],
    )


def unknown_to_moodle(found: Sequence[Mark], roster: Roster) -> list[str]:
    """The students whom `as_moodle` leaves out: by what Moodle would find the
    others the roster does not say for them."""
    _, rows = _moodle_rows(found, roster)
    there = {who.id for who, _ in rows}
    return sorted({mark.student for mark in found} - there)


def _moodle_rows(
    found: Sequence[Mark], roster: Roster
) -> tuple[dict[str, str], list[tuple[Student, dict[str, Mark]]]]:
    """The columns by which Moodle finds a student, with the roster's names for
    them, and the rows that have them."""
    rows = _by_student(found, roster)

    def known(key: str) -> int:
        return sum(bool(getattr(who, key)) for who, _ in rows)

    keys = {column: key for column, key in _MOODLE_KEYS.items() if known(key)}
    keys = keys or {"Username": "id"}
    best = max(keys.values(), key=known)
    rows = [(who, marks) for who, marks in rows if getattr(who, best)]
    return {c: key for c, key in keys.items() if known(key) == len(rows)}, rows


def _looks(marks: Mapping[str, Mark]) -> str:
    """Why somebody should look at a student's work, over the chapters."""
    return " ".join(
        f"{chapter}: {mark.look}"
        for chapter, mark in marks.items()
        if mark.look
    )


FORMATS: dict[str, Callable[[Sequence[Mark], Roster, tzinfo | None], str]] = {
    "csv": as_csv,
    "canvas": as_canvas,
    "moodle": as_moodle,
}


def totals_as_csv(made: Sequence[Total], order: Sequence[str]) -> str:
    """One row per student: the term's total, and the points of each chapter."""
    return _written(
        [
            *("student", "name", "percent", *order),
            *("late_days", "forgiven_days", "look_at"),
        ],
        [
            [
                one.student,
                one.name,
                f"{one.percent:.2f}",
                *(f"{one.by_chapter[chapter]:g}" for chapter in order),
                one.late_days,
                one.forgiven,
                " ".join(one.look),
            ]
            for one in made
        ],
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _by_student(
    found: Sequence[Mark], roster: Roster
) -> list[tuple[Student, dict[str, Mark]]]:
    marks: dict[str, dict[str, Mark]] = {}
    for mark in found:
        marks.setdefault(mark.student, {})[mark.chapter] = mark
    return [
        (roster.get(student) or Student(id=student), marks[student])
        for student in sorted(marks)
    ]


def _written(header: Row, rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([_harmless(one) for one in row] for row in rows)
    return text.getvalue()


def _harmless(value: object) -> object:
    """A spreadsheet must not take a student's name for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t"):
        return f"'{value}"
    return value
