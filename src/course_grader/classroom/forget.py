"""Deletes one learner's data, as the law of many countries lets a learner ask."""

from __future__ import annotations

import contextlib
import difflib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from course_grader.classroom.attempts import FOLDER
from course_grader.classroom.audit import forget_trail, has_trail
from course_grader.classroom.backup import STEPS, inbound
from course_grader.classroom.collect_names import (
    Student,
    new_student_id,
    roster,
)
from course_grader.classroom.collect_versions import (
    RECEIPT_FILE,
    UNKNOWN,
    bad_student_id,
    digest,
    read_receipt,
)
from course_grader.classroom.folder import (
    RESULTS,
    forget_results,
    has_results,
    results_of,
)
from course_grader.classroom.lms_exchange import forget_sent
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.term import (
    EXTENSIONS,
    forget_extensions,
    read_extensions,
)
from course_grader.course import CourseError


def places(classroom: Classroom, student: str) -> list[Path]:
    """The folders that hold a learner's work, marks or feedback, and the pages and
    tables of the whole class, which can be written anew.

    Archived terms and backups are not among them: they are files of their own.

    Raises:
        CourseError: the text can be nobody's id, or the course holds nothing of
            anybody with it.
    """
    why = bad_student_id(student)
    if why:
        raise CourseError(f"{student!r} is nobody: {why}.")
    found = _own_places(classroom, student)
    root = Path(classroom.coursedir.root)
    tables = _tables_naming(root, _on_roster(classroom, student))
    if not (found or tables or _is_noted(classroom, student)):
        ids = [one.id for one in roster(classroom.coursedir)]
        near = difflib.get_close_matches(
            student.casefold(), {one.casefold(): one for one in ids}
        )
        like = [one for one in ids if one.casefold() in near]
        raise CourseError(
            f"The course holds nothing of anybody called {student!r}. "
            + (
                f"On the roster is {', '.join(like)}."
                if like
                else "`course roster` shows all ids."
            )
        )
    pages = root / classroom.coursedir.feedback_directory
    return [*found, *sorted(pages.glob("*.html")), *tables]


def _is_noted(classroom: Classroom, student: str) -> bool:
    """Whether the roster has a line of a learner's, or a file of all learners."""
    coursedir = classroom.coursedir
    root = Path(coursedir.root)
    return (
        any(one.id == student for one in roster(coursedir))
        or any(one == student for one, _ in read_extensions(coursedir))
        or has_results(root / RESULTS, student)
        or has_trail(root, student)
    )


def _own_places(classroom: Classroom, student: str) -> list[Path]:
    """The folders that are a learner's alone."""
    coursedir = classroom.coursedir
    root = Path(coursedir.root)
    found = [
        root / getattr(coursedir, f"{step}_directory") / student
        for step in STEPS
        if step not in ("source", "release")
    ]
    found += [root / "versions" / student, root / FOLDER / student]
    found += results_of(root / RESULTS, student)
    waiting = inbound(classroom)
    if waiting.is_dir():
        found += [
            folder
            for folder in waiting.iterdir()
            if folder.name.startswith(f"{student}+")
        ]
    found = [one for one in found if one.exists()]
    return found + _unmatched_copies(root, found)


def _on_roster(classroom: Classroom, student: str) -> Student:
    known = {one.id: one for one in roster(classroom.coursedir)}
    return known.get(student) or Student(id=student)


def _unmatched_copies(root: Path, theirs: Sequence[Path]) -> list[Path]:
    """Work that was on no roster when it came, and that somebody said was theirs
    later."""
    digests, names = set(), set()
    for folder in theirs:
        digests |= {digest(path) for path in folder.rglob("*.ipynb")}
        for path in folder.rglob(RECEIPT_FILE):
            receipt = read_receipt(path.parent)
            names |= set(map(new_student_id, receipt.path if receipt else ()))
    return sorted(
        folder
        for folder in (root / "versions" / UNKNOWN).glob("*/*")
        if any(name.startswith(folder.parent.name) for name in names)
        and {digest(path) for path in folder.glob("*.ipynb")} & digests
    )


def _tables_naming(root: Path, student: Student) -> list[Path]:
    """Tables of marks and logs beside the gradebook that name a learner."""
    first, last = student.first_name, student.last_name
    names = [student.id, student.email]
    if first and last:  # as Canvas and Moodle have it
        names += [f"{last}, {first}", f"{first},{last}"]
    named = re.compile(
        "|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in names if one)
    )
    return [
        path
        for path in sorted([*root.glob("*.csv"), *root.glob("*.log")])
        if path.name != EXTENSIONS
        and named.search(path.read_text(encoding="utf-8", errors="replace"))
    ]


def forget(classroom: Classroom, student: str) -> int:
    """Deletes everything of a learner's: work, versions, marks, feedback,
    extensions, what `course grade --from` wrote into `results/`, what waits in the
    exchange, and the line on the roster.

    Returns:
        How many folders were deleted.

    Raises:
        CourseError: as in `places`.
    """
    coursedir = classroom.coursedir
    found = places(classroom, student)
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    forget_extensions(coursedir, student)
    forget_sent(classroom, student)
    forget_trail(Path(coursedir.root), student)
    forget_results(Path(coursedir.root) / RESULTS, student)
    with (
        Gradebook(coursedir.db_url, coursedir.course_id) as gradebook,
        contextlib.suppress(MissingEntry),
    ):
        gradebook.remove_student(student)
    return len(found)
