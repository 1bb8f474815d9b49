"""Grades a folder of submissions without any gradebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat

from course_grader.classroom.collect_names import is_notebook
from course_grader.classroom.collect_tree import (
    LeftOut,
    Limits,
    printable,
    safe_files,
)
from course_grader.course import CourseError
from course_grader.feedback import page
from course_grader.grading.notebook_file import MAX_FILE_BYTES
from course_grader.grading.pool import Job, Outcome
from course_grader.judge.report import SubmissionReport

_LIMITS = Limits(
    max_file_bytes=MAX_FILE_BYTES, max_total_bytes=2 * MAX_FILE_BYTES
)


def jobs_in(
    folder: Path, limits: Limits = _LIMITS
) -> tuple[list[Job], dict[str, str]]:
    """The submissions in a folder of `STUDENT/*.ipynb`.

    No link is followed, and nothing but a regular file is opened. Hidden
    entries, and files of the folder itself that are no notebooks, are nobody's.

    Args:
        folder: where the students' folders are.
        limits: how much of one student's folder is read.

    Returns:
        (jobs, refused): refused maps a student to one sentence.

    Raises:
        CourseError: the folder is missing or holds nothing.
    """
    if not folder.is_dir():
        raise CourseError(f"There is no file or folder {folder}.")
    jobs, refused = [], {}
    for path in sorted(folder.iterdir()):
        student = path.name if path.name.isprintable() else printable(path.name)
        if path.name.startswith("."):
            continue
        if path.is_symlink():
            refused[student] = (
                "This is a symbolic link: give the student's folder itself."
            )
        elif path.is_dir():
            read = _notebook_in(path, limits)
            if isinstance(read, bytes):
                jobs.append(Job(student, read))
            else:
                refused[student] = read
        elif is_notebook(path.name):
            refused[student] = (
                "This notebook lies in no student's folder: put it into a "
                "folder that is called like the student."
            )
    if not jobs and not refused:
        raise CourseError(
            f"{folder} holds no STUDENT/*.ipynb: give the folder that holds "
            "one folder per student."
        )
    return jobs, refused


def _notebook_in(folder: Path, limits: Limits) -> bytes | str:
    """The student's notebook, or a sentence on why there is none to grade."""
    found: dict[str, bytes] = {}
    objections: list[str] = []

    def skip(name: str, is_folder: bool) -> bool:
        if is_folder and is_notebook(name):
            objections.append(f"{printable(name)} is a folder")
        return is_folder or not is_notebook(name)

    try:
        for one in safe_files(folder, limits, skip=skip):
            name = printable(one.parts[-1]) if one.parts else "the folder"
            if isinstance(one, LeftOut):
                objections.append(f"{name} is not read ({one.why})")
            else:
                found[name] = one.file.read(one.size_bytes)
    except OSError as error:
        return f"The folder cannot be read: {error.strerror}."
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        names = ", ".join(found)
        return f"There are several notebooks, {names}: hand in one."
    if objections:
        return (
            f"There is no notebook to grade: {', '.join(objections)}. Hand in "
            "the notebook file itself."
        )
    return "There is no notebook: hand in the chapter's .ipynb file."


def results_folder(to: Path, source: Path) -> Path:
    """Makes the folder for the results.

    Raises:
        CourseError: it cannot be made, or lies among the submissions.
    """
    if to.resolve().is_relative_to(source.resolve()):
        raise CourseError(
            f"{to} lies among the submissions: name another folder with --to."
        )
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CourseError(
            f"The folder {to} cannot be made: {error.strerror}."
        ) from error
    return to


def write_results(
    to: Path, outcomes: Iterator[Outcome], refused: dict[str, str]
) -> Iterator[Outcome]:
    """Writes `scores.json`, `details.json` and `feedback/STUDENT/*.html` into
    a folder that exists.

    Yields each outcome after its page is written; the two files are complete
    when the last one has come.
    """
    scores: dict[str, float] = dict.fromkeys(refused, 0.0)
    details: dict[str, object] = {
        student: {"refused": why} for student, why in refused.items()
    }
    for outcome in outcomes:
        student = outcome.job.student
        if outcome.report is None:
            details[student] = {"failed": outcome.failed}
            yield outcome
            continue
        scores[student] = outcome.report.points
        details[student] = details_of(outcome.report)
        write_page(to / "feedback" / student, student, outcome)
        yield outcome
    for name, tree in (("scores", scores), ("details", details)):
        path = to / f"{name}.json"
        path.write_text(
            json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False)
            + "\n",
            encoding="utf-8",
        )


def write_page(folder: Path, student: str, outcome: Outcome) -> Path:
    """Writes one learner's page; its path."""
    assert outcome.report is not None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.report.chapter}.html"
    path.write_text(
        page(
            outcome.report,
            nbformat.reads(outcome.notebook, as_version=4),
            student=student,
        ),
        encoding="utf-8",
    )
    return path


def details_of(report: SubmissionReport) -> dict[str, object]:
    """A report by exercise and check, as `details.json` holds it."""
    if report.refused:
        return {"refused": report.refused}
    return {
        exercise.exercise: {
            check.name: {
                "verdict": str(check.verdict),
                "points": check.points,
                "message": check.message
                and (exercise.misconception or check.message),
            }
            for check in exercise.checks
        }
        for exercise in report.exercises
    }
