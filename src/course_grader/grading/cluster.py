"""Grades many submissions on a Dask cluster, as `pool` does on one machine.

Workers need Python with this package and bubblewrap, and nothing else: the course's
grading files travel with the first task, a submission and its graded notebook with
each. Only TLS is spoken: hidden tests and people's work go over the wire, and whoever
can talk to a scheduler can run code on its workers.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import tarfile
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from course_grader.chapter.links import titles_of
from course_grader.course import Course, CourseError
from course_grader.grading.pool import TRIES, Job, Outcome
from course_grader.grading.process import GradingFailed, GradingProcess
from course_grader.judge.report import SubmissionReport

AHEAD = 4
"""Submissions on their way per worker thread: enough that none waits, few enough
that a class need not fit into memory."""


def grade_on_cluster(
    scheduler: str,
    course: Course,
    chapter: str,
    seed: int,
    jobs: Iterable[Job],
    all_cells: bool = False,
    sandboxed: bool = True,
) -> Iterator[list[Outcome]]:
    """Grades submissions, giving outcomes as they come, those together that came
    together.

    A worker that is lost costs nothing but time: Dask gives its submissions to
    others. Certificates are Dask's own settings (`distributed.comm.tls` in its
    configuration files or the environment).

    Args:
        scheduler: its address, tls://HOST:PORT.
        course: the course.
        chapter: the chapter's name.
        seed: the cases of all submissions are drawn from it.
        jobs: the submissions; taken one by one, as workers are free.
        all_cells: run untouched reading cells too.
        sandboxed: in the sandbox; outside it only for code that is trusted.

    Raises:
        CourseError: the address is not TLS, Dask is not installed, nobody
            answers there, there is no worker, or the chapter cannot be graded.
    """
    if not scheduler.startswith("tls://"):
        raise CourseError(
            f"{scheduler} is not a tls:// address: hidden tests and people's "
            "work go over this connection. docs/cluster.md shows how to start "
            "a scheduler with certificates."
        )
    try:
        from distributed import Client, Security, as_completed
    except ImportError as error:
        raise CourseError(
            "Dask is not installed: `pip install -e '.[instructor,cluster]'` in "
            "the course's folder, here and on the workers."
        ) from error
    try:
        client = Client(scheduler, security=Security(require_encryption=True))
    except (OSError, TimeoutError, TypeError, RuntimeError) as error:
        raise CourseError(
            f"No scheduler answers at {scheduler}: {error}. Its certificates "
            "are set in Dask's configuration (distributed.comm.tls)."
        ) from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise CourseError(f"The scheduler at {scheduler} has no workers.")
        packed = packed_course(course, chapter)
        digest = hashlib.sha256(packed).hexdigest()
        files = client.scatter(packed, hash=False, broadcast=True)
        sent: dict[Any, Job] = {}
        coming = iter(jobs)

        def send() -> bool:
            job = next(coming, None)
            if job is None:
                return False
            future = client.submit(
                grade_on_worker,
                files,
                digest,
                chapter,
                seed,
                job.submitted,
                all_cells,
                sandboxed,
                pure=False,
                key=f"{job.student}-{hashlib.sha256(job.submitted).hexdigest()}",
                retries=TRIES - 1,
            )
            sent[future] = job
            running.add(future)
            return True

        running = as_completed([])
        for _ in range(AHEAD * threads):
            if not send():
                break
        for arrived in running.batches():
            outcomes = []
            for future in arrived:
                job = sent.pop(future)
                try:
                    report, text = future.result()
                    outcomes.append(
                        Outcome(job, SubmissionReport.from_json(report), text)
                    )
                except CourseError:
                    raise
                except Exception as error:
                    # whatever it is, it is about this submission alone
                    why = str(error) or type(error).__name__
                    outcomes.append(Outcome(job, None, failed=why))
                send()
            yield outcomes


def packed_course(course: Course, chapter: str) -> bytes:
    """What grading a chapter reads, as a tar archive that is the same for the same
    files. Of the other chapters it is the titles, which a chapter links to."""
    paths = [course.root / "pyproject.toml"]
    for room in ("solutions", "autograde"):
        for kind in ("*.py", "*.diff"):
            paths += sorted((course.root / room / chapter).rglob(kind))
    paths += (course.autograde / chapter).glob("signatures.json")
    files = {path: path.read_bytes() for path in paths}
    for other, title in titles_of(course).items():
        files.setdefault(course.source_of(other), f"# {title}\n".encode())
    files[course.settings_file] = course.settings_of_grading().encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.relative_to(course.root).as_posix())
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


class _Worker:
    """What one worker process keeps: unpacked courses, idle grading processes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.courses: dict[str, Course] = {}
        self.folders: list[tempfile.TemporaryDirectory[str]] = []
        self.idle: dict[tuple[str, bool], list[GradingProcess]] = {}

    def course(self, digest: str, packed: bytes) -> Course:
        with self.lock:
            if digest not in self.courses:
                folder = tempfile.TemporaryDirectory(prefix="course-")
                self.folders.append(folder)
                with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                    archive.extractall(folder.name, filter="data")
                self.courses[digest] = Course(Path(folder.name))
            return self.courses[digest]

    def borrow(self, digest: str, packed: bytes, walls: bool) -> GradingProcess:
        course = self.course(digest, packed)
        with self.lock:
            idle = self.idle.setdefault((digest, walls), [])
            if idle:
                return idle.pop()
        return GradingProcess(course, walls)

    def give_back(self, digest: str, walls: bool, one: GradingProcess) -> None:
        with self.lock:
            self.idle[digest, walls].append(one)

    def close(self) -> None:
        with self.lock:
            for idle in self.idle.values():
                while idle:
                    idle.pop().close()


_worker = _Worker()
atexit.register(_worker.close)


def grade_on_worker(
    packed: bytes,
    digest: str,
    chapter: str,
    seed: int,
    submitted: bytes,
    all_cells: bool,
    sandboxed: bool,
) -> tuple[dict[str, Any], str]:
    """Grades one submission on a worker; (report, graded notebook's text).

    Raises:
        CourseError: the chapter cannot be graded here, for example for want of a
            sandbox.
        GradingFailed: the machinery failed on this submission.
    """
    from course_grader.judge.sandbox import require_sandbox

    if sandboxed:
        require_sandbox("`--unsandboxed`")
    process = _worker.borrow(digest, packed, sandboxed)
    try:
        report, text = process.grade(chapter, seed, submitted, all_cells)
    except GradingFailed:
        process.close()
        raise
    _worker.give_back(digest, sandboxed, process)
    return report.to_json(), text
