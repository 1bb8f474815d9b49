"""Grades a folder of submissions without any gradebook."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import nbformat

from course_grader.course import CourseError
from course_grader.feedback import page
from course_grader.grading.pool import Job, Outcome
from course_grader.judge.report import SubmissionReport


def jobs_in(folder: Path) -> tuple[list[Job], dict[str, str]]:
    """The submissions in a folder of `STUDENT/*.ipynb`.

    Returns:
        (jobs, refused): refused maps a student to one sentence.

    Raises:
        CourseError: the folder is missing or holds nothing.
    """
    if not folder.is_dir():
        raise CourseError(f"There is no folder {folder}.")
    jobs, refused = [], {}
    for student in sorted(folder.iterdir()):
        if student.is_symlink() or not student.is_dir():
            continue
        found = sorted(student.glob("*.ipynb"))
        regular = [one for one in found if stat.S_ISREG(one.lstat().st_mode)]
        if len(regular) == 1:
            jobs.append(Job(student.name, regular[0].read_bytes()))
        elif found and not regular:
            refused[student.name] = (
                f"{found[0].name} is a link or no regular file; hand in the "
                "notebook file itself."
            )
        elif regular:
            refused[student.name] = (
                "There are several notebooks: "
                + ", ".join(one.name for one in regular)
                + ". Hand in one."
            )
        else:
            refused[student.name] = "There is no notebook."
    if not jobs and not refused:
        raise CourseError(
            f"{folder} holds no STUDENT/*.ipynb: give the folder that holds "
            "one folder per student."
        )
    return jobs, refused


def write_results(
    to: Path, outcomes: Iterator[Outcome], refused: dict[str, str]
) -> Iterator[Outcome]:
    """Writes `scores.json`, `details.json` and `feedback/STUDENT/*.html`.

    Yields each outcome after its page is written; the two files are complete
    when the last one has come.
    """
    to.mkdir(parents=True, exist_ok=True)
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
