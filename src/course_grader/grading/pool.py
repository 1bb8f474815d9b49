"""Grades many submissions with several grading processes."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course_grader.course import Course, CourseError
from course_grader.grading.process import GradingFailed, GradingProcess
from course_grader.judge.report import SubmissionReport

TRIES = 3
"""How often a submission is tried when the machinery dies under it."""


@dataclass(frozen=True)
class Job:
    """One submission to grade.

    Attributes:
        student: whose it is.
        submitted: the notebook file's bytes.
    """

    student: str
    submitted: bytes


@dataclass(frozen=True)
class Outcome:
    """One graded submission.

    Attributes:
        job: what was graded.
        report: the report; None if the machinery failed every time.
        notebook: the graded notebook's text; empty likewise.
        failed: why it failed; empty if it did not.
    """

    job: Job
    report: SubmissionReport | None
    notebook: str = ""
    failed: str = ""


def worker_count(workers: int | None, jobs: int) -> int:
    """How many grading processes there will be; by default one per processor,
    never more than jobs."""
    return max(1, min(workers or os.cpu_count() or 1, jobs))


def grade_many(
    course: Course,
    chapter: str,
    seed: int,
    jobs: Sequence[Job],
    workers: int | None = None,
    all_cells: bool = False,
    sandboxed: bool = True,
) -> Iterator[Outcome]:
    """Grades submissions, giving each outcome as it comes.

    Args:
        course: the course.
        chapter: the chapter's name.
        seed: the cases of all of them are drawn from it.
        jobs: the submissions.
        workers: grading processes; one per processor if None.
        all_cells: run untouched reading cells too.
        sandboxed: in the sandbox; outside it only for code that is trusted.

    Raises:
        CourseError: the chapter cannot be graded.
    """
    count = worker_count(workers, len(jobs))
    todo: queue.SimpleQueue[tuple[Job, int]] = queue.SimpleQueue()
    for job in jobs:
        todo.put((job, 1))
    done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        process: GradingProcess | None = None
        try:
            while not stop.is_set():
                try:
                    job, tries = todo.get_nowait()
                except queue.Empty:
                    return
                if process is None:
                    process = GradingProcess(course, sandboxed)
                try:
                    report, notebook = process.grade(
                        chapter, seed, job.submitted, all_cells
                    )
                    done.put(Outcome(job, report, notebook))
                except GradingFailed as error:
                    process.close()
                    process = None
                    if tries < TRIES:
                        todo.put((job, tries + 1))
                    else:
                        done.put(Outcome(job, None, failed=str(error)))
        except BaseException as error:
            done.put(error)
        finally:
            if process is not None:
                process.close()

    threads = [
        threading.Thread(target=work, name=f"grading-{n}", daemon=True)
        for n in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in jobs:
            outcome = done.get()
            if isinstance(outcome, BaseException):
                if isinstance(outcome, CourseError):
                    raise outcome
                raise GradingFailed("A grading worker failed.") from outcome
            yield outcome
    finally:
        stop.set()
        for thread in threads:
            thread.join()
