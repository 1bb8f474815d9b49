"""A roster from a CSV file, as universities and spreadsheets write it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from nbgrader.api import Gradebook

from course_grader.classroom.collect_names import Student
from course_grader.classroom.collect_versions import bad_student_id
from course_grader.classroom.named_files import read_csv
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.course import CourseError

_COLUMNS = ("first_name", "last_name", "email", "lms_user_id")


def read_roster(path: Path) -> list[Student]:
    """The learners of a CSV file with the column `id` and, as far as known,
    `first_name`, `last_name`, `email` and `lms_user_id`. Commas or semicolons part
    its columns, for a spreadsheet writes what its country is used to.

    Raises:
        CourseError: the file cannot be used.
    """
    text = read_csv(path)
    head = text.partition("\n")[0]
    delimiter = ";" if head.count(";") > head.count(",") else ","
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    if "id" not in (rows.fieldnames or ()):
        raise CourseError(
            f"{path} needs a first line that names its columns: id, and as far "
            f"as you know them {', '.join(_COLUMNS)}."
        )
    found: dict[str, Student] = {}
    for row in rows:
        line = rows.line_num
        known = {
            name: (row.get(name) or "").strip() for name in ("id", *_COLUMNS)
        }
        why = bad_student_id(known["id"])
        if known["id"] in found:
            why = f"{known['id']} stands above already"
        if why:
            raise CourseError(f"{path}, line {line}: {why}.")
        found[known["id"]] = Student(**known)
    return list(found.values())


def enter(classroom: Classroom, students: list[Student]) -> None:
    """Puts learners on the roster. Those who are there already stay, and what the
    file says of them counts."""
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        for one in students:
            known = {
                name: value
                for name in _COLUMNS
                if (value := getattr(one, name)) != ""
            }
            gradebook.update_or_create_student(one.id, **known)


def alike(students: Iterable[Student]) -> list[str]:
    """Who is on the roster under two ids, as far as e-mail addresses and LMS ids
    tell; a sentence on each pair."""
    found: dict[tuple[str, str], str] = {}
    for what, key in (("e-mail address", "email"), ("LMS id", "lms_user_id")):
        first: dict[str, str] = {}
        for one in students:
            value = getattr(one, key).casefold()
            if not value:
                continue
            before = first.setdefault(value, one.id)
            if before != one.id:
                found.setdefault(
                    (before, one.id),
                    f"{before} and {one.id} have the same {what}. Work that "
                    "names it is collected for neither. `course forget ID` "
                    "shows what lies under each id, and deletes one of them "
                    "with --yes.",
                )
    return list(found.values())
