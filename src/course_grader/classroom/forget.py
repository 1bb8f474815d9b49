"""Deletes one learner's data, as the law of many countries lets a learner ask."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from course_grader.classroom.attempts import FOLDER
from course_grader.classroom.audit import forget_trail
from course_grader.classroom.backup import STEPS, inbound
from course_grader.classroom.collect_versions import bad_student_id
from course_grader.classroom.folder import (
    RESULTS,
    forget_results,
    results_of,
)
from course_grader.classroom.lms_exchange import forget_sent
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.term import forget_extensions
from course_grader.course import CourseError


def places(classroom: Classroom, student: str) -> list[Path]:
    """The folders that hold a learner's work, marks or feedback, and the pages of
    the whole class, which can be written anew.

    Archived terms and backups are not among them: they are files of their own.

    Raises:
        CourseError: the text can be nobody's id.
    """
    why = bad_student_id(student)
    if why:
        raise CourseError(f"{student!r} is nobody: {why}.")
    coursedir = classroom.coursedir
    root = Path(coursedir.root)
    found = [
        root / getattr(coursedir, f"{step}_directory") / student
        for step in STEPS
        if step not in ("source", "release")
    ]
    found += [root / "versions" / student, root / FOLDER / student]
    found += results_of(root / RESULTS, student)
    pages = root / coursedir.feedback_directory
    found += sorted(pages.glob("*.html"))
    waiting = inbound(classroom)
    if waiting.is_dir():
        found += [
            folder
            for folder in waiting.iterdir()
            if folder.name.startswith(f"{student}+")
        ]
    return [one for one in found if one.exists()]


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
