"""Marks as files: our own CSV, and what Canvas and Moodle import."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from course_grader.classroom.collect_names import Student
from course_grader.classroom.gradebook import Mark

Roster = Mapping[str, Student]
Row = Sequence[object]


def as_csv(found: Sequence[Mark], roster: Roster) -> str:
    """One row per student and chapter, one column per exercise."""
    exercises = list(
        dict.fromkeys(name for mark in found for name in mark.by_exercise)
    )
    header = ["chapter", "student", "name", "points", "max_points", *exercises]
    return _written(
        header,
        [
            [
                mark.chapter,
                mark.student,
                mark.name,
                f"{mark.points:g}",
                f"{mark.max_points:g}",
                *(
                    f"{mark.by_exercise[name]:g}"
                    if name in mark.by_exercise
                    else ""
                    for name in exercises
                ),
            ]
            for mark in found
        ],
    )


def as_canvas(found: Sequence[Mark], roster: Roster) -> str:
    """One row per student, one column per chapter, as Canvas' gradebook imports
    them: its `ID` is the roster's LMS id, `SIS Login ID` the student's id here.
    The row below the header says what each chapter gives."""
    chapters = list(dict.fromkeys(mark.chapter for mark in found))
    most = {mark.chapter: f"{mark.max_points:g}" for mark in found}
    return _written(
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *chapters],
        [
            ["    Points Possible", "", "", "", "", *map(most.get, chapters)],
            *(
                [
                    f"{who.last_name}, {who.first_name}".strip(", ") or who.id,
                    who.lms_user_id,
                    "",
                    who.id,
                    "",
                    *(marks.get(chapter, "") for chapter in chapters),
                ]
                for who, marks in _by_student(found, roster)
            ),
        ],
    )


def as_moodle(found: Sequence[Mark], roster: Roster) -> str:
    """One row per student, one column per chapter, for Moodle's grade import:
    students are found by `ID number` (the roster's LMS id) or `Email address`."""
    chapters = list(dict.fromkeys(mark.chapter for mark in found))
    return _written(
        ["First name", "Last name", "ID number", "Email address", *chapters],
        [
            [
                who.first_name or who.id,
                who.last_name,
                who.lms_user_id,
                who.email,
                *(marks.get(chapter, "") for chapter in chapters),
            ]
            for who, marks in _by_student(found, roster)
        ],
    )


FORMATS: dict[str, Callable[[Sequence[Mark], Roster], str]] = {
    "csv": as_csv,
    "canvas": as_canvas,
    "moodle": as_moodle,
}


def _by_student(
    found: Sequence[Mark], roster: Roster
) -> list[tuple[Student, dict[str, str]]]:
    marks: dict[str, dict[str, str]] = {}
    for mark in found:
        marks.setdefault(mark.student, {})[mark.chapter] = f"{mark.points:g}"
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
