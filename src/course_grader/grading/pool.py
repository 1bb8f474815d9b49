"""Grades many submissions with several grading processes."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_grader.course import Course, CourseError
from course_grader.grading.process import (
    MANY,
    GradingClient,
    GradingFailed,
    GradingProcess,
)
from course_grader.judge.report import SubmissionReport

TRIES = 3
"""How often a submission is tried when the machinery dies under it."""
TOGETHER = 50
"""As many outcomes are given at once at most."""


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
        text: of the file that was wanted, the learner's page or the graded
            notebook, safe to open; empty likewise.
        failed: why it failed; empty if it did not.
    """

    job: Job
    report: SubmissionReport | None
    text: str = ""
    failed: str = ""


def worker_count(workers: int | None, jobs: int) -> int:
    """How many grading processes there will be; by default one per processor
    that this process may use, never more than jobs."""
    return max(1, min(workers or _cpu_count(), jobs))


def _cpu_count() -> int:
    """Processors that this process may use."""
    import joblib  # late: one worker asks for none of it

    return int(joblib.cpu_count())


def grade_many(
    course: Course,
    chapter: str,
    seed: int,
    jobs: Iterable[Job],
    num_jobs: int,
    workers: int | None = None,
    all_cells: bool = False,
    sandboxed: bool = True,
    pages: bool = False,
    started: GradingProcess | None = None,
) -> Iterator[list[Outcome]]:
    """Grades submissions, giving outcomes as they come: one, or as many as came
    while whoever called had others in hand. It has begun when this returns; who
    called has to take all outcomes.

    Args:
        course: the course.
        chapter: the chapter's name.
        seed: the cases of all of them are drawn from it.
        jobs: the submissions; taken one by one, as workers are free.
        num_jobs: how many there will be.
        workers: grading processes at most; one per processor if None.
        all_cells: run untouched reading cells too.
        sandboxed: in the sandbox; outside it only for code that is trusted.
        pages: learners' pages are wanted, not graded notebooks.
        started: a grading process for this chapter, started for this run while who
            called had other things to do; ends with it.

    Raises:
        CourseError: the chapter cannot be graded.
    """
    coming = iter(jobs)
    again: deque[tuple[Job, int]] = deque()
    taking = threading.Lock()
    done: queue.SimpleQueue[Outcome | BaseException | None] = (
        queue.SimpleQueue()
    )
    stop = threading.Event()

    def next_job() -> tuple[Job, int] | None:
        with taking:
            if again:
                return again.popleft()
            job = next(coming, None)
            return None if job is None else (job, 1)

    def work() -> None:
        worker: GradingClient | None = None
        try:
            while not stop.is_set():
                taken = next_job()
                if taken is None:
                    return
                job, tries = taken
                try:
                    worker = worker or nursery.worker()
                    report, text = worker.grade(
                        chapter,
                        seed,
                        job.submitted,
                        all_cells,
                        job.student if pages else None,
                    )
                    done.put(Outcome(job, report, text))
                except CourseError:
                    raise
                except Exception as error:
                    # whatever it is, it is about this submission alone
                    if worker is not None:
                        worker.close()
                        worker = None
                    if tries < TRIES:
                        again.append((job, tries + 1))
                    else:
                        why = str(error) or type(error).__name__
                        done.put(Outcome(job, None, failed=why))
        except BaseException as error:
            done.put(error)
        finally:
            if worker is not None:
                worker.close()
            done.put(None)

    count = worker_count(workers, num_jobs)
    nursery = _Nursery(
        course, chapter, seed, sandboxed, count > 1, num_jobs >= MANY, started
    )
    threads = [
        threading.Thread(target=work, name=f"grading-{n}", daemon=True)
        for n in range(count)
    ]
    for thread in threads:
        thread.start()

    def outcomes() -> Iterator[list[Outcome]]:
        try:
            working = len(threads)
            while working:
                arrived = [done.get()]
                while len(arrived) < TOGETHER and not done.empty():
                    arrived.append(done.get())
                working -= arrived.count(None)
                yield [one for one in arrived if isinstance(one, Outcome)]
                for one in arrived:
                    if isinstance(one, CourseError):
                        raise one
                    if isinstance(one, BaseException):
                        raise GradingFailed("A grading worker failed.") from one
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            nursery.close()

    return outcomes()


class _Nursery:
    """Where workers come from: a grading process that grades nothing itself. It
    has the chapter ready where several share that (`shared`), and imports what any
    submission may need where there are `many`; a worker alone makes it ready
    beside its first submission. A new one is started if it has died."""

    def __init__(
        self,
        course: Course,
        chapter: str,
        seed: int,
        sandboxed: bool,
        shared: bool,
        many: bool,
        started: GradingProcess | None,
    ) -> None:
        self.course, self.sandboxed = course, sandboxed
        self.shared, self.many = shared, many
        self.chapter, self.seed = chapter, seed
        self.asking = threading.Lock()
        self.process, self.begun = started, False

    def worker(self) -> GradingClient:
        """A fresh worker.

        Raises:
            CourseError: the chapter cannot be graded.
            GradingFailed: the machinery failed.
        """
        with self.asking:
            if self.begun and self.process is not None:
                try:
                    return self.process.fork(self.chapter, self.seed)
                except GradingFailed:
                    self.close()
            if self.process is None:
                self.process = GradingProcess(
                    self.course, self.sandboxed, self.chapter
                )
            self.begun = True
            if self.shared:
                self.process.prepare(self.chapter, self.seed, self.many)
            return self.process.fork(self.chapter, self.seed)

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
            self.process = None
