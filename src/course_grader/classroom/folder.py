"""Grades a folder of submissions without any gradebook."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from course_grader.classroom.collect_names import is_notebook
from course_grader.classroom.collect_tree import (
    LeftOut,
    Limits,
    printable,
    safe_files,
)
from course_grader.classroom.private import private_folder, write_private
from course_grader.course import CourseError
from course_grader.grading.notebook_file import MAX_FILE_BYTES
from course_grader.grading.pool import Job, Outcome
from course_grader.judge.report import SubmissionReport

RESULTS = "results"
"""In class/: a folder for each chapter, unless `--to` names another."""
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
    jobs: list[Job] = []
    refused: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        student = path.name if path.name.isprintable() else printable(path.name)
        while student in refused or any(one.student == student for one in jobs):
            student += "'"  # two names that look alike are two people
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
        private_folder(to)
    except OSError as error:
        raise CourseError(
            f"The folder {to} cannot be made: {error.strerror}."
        ) from error
    return to


class Run:
    """A run that writes its results into a folder as they come, and goes on where
    one before it was stopped.

    What has been graded stands in `unfinished.jsonl` until all of it is. A run that
    finds that file, of the same chapter with the same checks, grades only what
    it lacks, on the same seed.
    """

    def __init__(
        self, to: Path, chapter: str, checks: str, seed: int, jobs: list[Job]
    ) -> None:
        """Opens it.

        Args:
            to: a folder that exists.
            chapter: the chapter's name.
            checks: what tells this state of the chapter from others.
            seed: of the cases, for a new run.
            jobs: all submissions; `todo` holds those that are not graded yet.
        """
        self.to = to
        self.path = to / "unfinished.jsonl"
        self.seed = seed
        self.done: dict[str, dict[str, Any]] = {}
        self.failed: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        head, *lines = _lines(self.path) or [{}]
        if (head.get("chapter"), head.get("checks")) == (chapter, checks):
            self.seed = head["seed"]
            graded = {(one["student"], one["submitted"]): one for one in lines}
            for job in jobs:
                if (job.student, _digest(job)) in graded:
                    self.done[job.student] = graded[job.student, _digest(job)]
        else:
            head = {"chapter": chapter, "checks": checks, "seed": seed}
        # written anew: the last line of a run that was killed may be half of one
        entries = [head, *self.done.values()]
        write_private(self.path, "".join(map(_line, entries)))
        self.todo = [job for job in jobs if job.student not in self.done]

    def write(
        self, outcomes: Iterator[Outcome], refused: dict[str, str]
    ) -> Iterator[Outcome]:
        """Writes `feedback/STUDENT/*.html` and `scores.json` with each outcome, and
        yields it; `details.json` at the end, however the run ends."""
        self.refused = refused
        try:
            with self.path.open("a", encoding="utf-8") as unfinished:
                self._write_scores()
                for outcome in outcomes:
                    kept = self._kept(outcome, unfinished)
                    if kept.report is None:
                        self.failed[kept.job.student] = kept.failed
                    yield kept
            if not self.failed:
                self.path.unlink()
        finally:
            self._write_scores()
            self._write_details()

    def _kept(self, outcome: Outcome, unfinished: TextIO) -> Outcome:
        """Writes what came of one submission; one that failed if it cannot."""
        if outcome.report is None:
            return outcome
        student = outcome.job.student
        try:
            write_page(self.to / "feedback" / student, outcome)
            entry = {
                "student": student,
                "submitted": _digest(outcome.job),
                "points": None
                if outcome.report.refused
                else outcome.report.points,
                "details": details_of(outcome.report),
            }
            unfinished.write(_line(entry))
            unfinished.flush()
            self.done[student] = entry
            self._write_scores()
        except (OSError, ValueError) as error:
            # the others' results are written
            why = getattr(error, "strerror", None) or str(error)
            why = f"its results cannot be written ({why})"
            return Outcome(outcome.job, None, failed=why)
        return outcome

    def _write_scores(self) -> None:
        # what was refused has no mark, which is not 0
        scores: dict[str, float | None] = dict.fromkeys(self.refused)
        scores |= {who: one["points"] for who, one in self.done.items()}
        _write_tree(self.to / "scores.json", scores)

    def _write_details(self) -> None:
        details: dict[str, object] = {
            student: {"refused": why} for student, why in self.refused.items()
        }
        details |= {who: {"failed": why} for who, why in self.failed.items()}
        details |= {who: one["details"] for who, one in self.done.items()}
        _write_tree(self.to / "details.json", details)


def results_of(results: Path, student: str) -> list[Path]:
    """The folders with a learner's pages.

    Args:
        results: holds a folder of results for each chapter.
        student: the learner's id.
    """
    found = (one / "feedback" / student for one in sorted(results.glob("*")))
    return [one for one in found if one.is_dir()]


def has_results(results: Path, student: str) -> bool:
    """Whether such folders' files have lines of a learner's."""
    return any(
        student in json.loads(path.read_text(encoding="utf-8"))
        for path in results.glob("*/details.json")
    )


def forget_results(results: Path, student: str) -> None:
    """Takes a learner's lines out of such folders' files; `results_of` has the
    pages."""
    for name in ("scores.json", "details.json"):
        for path in results.glob(f"*/{name}"):
            tree = json.loads(path.read_text(encoding="utf-8"))
            if student in tree:
                del tree[student]
                _write_tree(path, tree)
    for path in results.glob("*/unfinished.jsonl"):
        kept = [one for one in _lines(path) if one.get("student") != student]
        write_private(path, "".join(map(_line, kept)))


def _lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file; none if there is no such file."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text(encoding="utf-8").splitlines():
            found.append(json.loads(line))
    return found


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry) + "\n"


def _digest(job: Job) -> str:
    return hashlib.sha256(job.submitted).hexdigest()


def _write_tree(path: Path, tree: object) -> None:
    text = json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False)
    write_private(path, text + "\n")


def write_page(folder: Path, outcome: Outcome) -> Path:
    """Writes one learner's page; its path."""
    assert outcome.report is not None
    path = private_folder(folder) / f"{outcome.report.chapter}.html"
    write_private(path, outcome.text)
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
