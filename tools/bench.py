"""Measures grading: stock `nbgrader autograde` against `course grade`.

`make bench` grades the same submissions both ways, one after the other on the
same machine, and prints ratios; absolute seconds are this machine's and this
hour's alone. Stock means nbgrader's own defaults: its preprocessors, its
timeouts, one kernel per submission, the hidden tests in the grade cells.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import nbformat
import psutil

from course_grader.chapter.build import build_chapter
from course_grader.chapter.grading import Grading
from course_grader.classroom import nbgrader_api
from course_grader.classroom.demo import answered, copy_course
from course_grader.course import Course, find_course
from course_grader.grading.process import GradingProcess
from course_grader.judge import sandbox

BIN = Path(sys.executable).parent
SEED = 2026
LOOK_S = 0.2
"""How often memory is looked at, in a run of its own."""
FOR_MEMORY = 6
"""Submissions that memory is measured on."""

STOCK_SETTINGS = """c = get_config()
c.CourseDirectory.course_id = "pytorch_training_tricks"
c.CourseDirectory.root = {root!r}
"""

# What a submission costs where nothing is judged, compared or walled in: the
# cells run in a fork of a Python that has everything imported.
FLOOR = """
import json, os, sys, time
from course_grader.kernel.warm import FOR_EXERCISES, FOR_READING, import_all
import_all((*FOR_EXERCISES, *FOR_READING))
took = []
for cells in json.load(open(sys.argv[1])):
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")
        names = {"__name__": "__main__"}
        for cell in cells:
            try:
                exec(cell, names)
            except Exception:
                pass
        os._exit(0)
    os.waitpid(pid, 0)
    took.append(time.perf_counter() - started)
print(json.dumps(took))
"""


@dataclass
class Measured:
    """One way of grading.

    Attributes:
        seconds: of the whole run, start and end included.
        each: seconds of each submission.
        memory_bytes: the most that all its processes held together.
        per_second: submissions in the second half of the run, when everything
            has been started and all wrong answers are known.
    """

    seconds: float
    each: Sequence[float] = ()
    memory_bytes: int = 0
    per_second: float = 0.0


def submissions(
    grading: Grading, released: nbformat.NotebookNode, count: int
) -> dict[str, bytes]:
    """A class made of the answer bank: a third right, the others wrong in one
    exercise or two. Answers that hang or exit are left out: stock waits its
    timeout for them or gives no mark at all, which would flatter ours."""
    made = {}
    for number in range(count):
        chosen = {}
        for place, exercise in enumerate(grading.chapter.exercises):
            answers = [
                one
                for one in grading.answers_of(exercise.id)
                if not one.ends_process
            ]
            right = [one for one in answers if one.right]
            wrong = [one for one in answers if not one.right]
            among = wrong if (number + place) % 3 == 0 and number % 3 else right
            chosen[exercise.id] = grading.answer_cell(
                among[number % len(among)]
            )
        notebook = answered(grading, released, chosen)
        made[f"student{number:03}"] = nbformat.writes(notebook).encode()
    return made


def classroom(course: Course, chapter: str, work: dict[str, bytes]) -> None:
    """Releases the chapter and lays the submissions where `collect` would."""
    nbgrader_api.release(nbgrader_api.open_classroom(course), chapter)
    for student, content in work.items():
        folder = course.autograde / "submitted" / student / chapter
        folder.mkdir(parents=True)
        (folder / f"{chapter}.ipynb").write_bytes(content)


def environment(course: Course) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_CONFIG_PATH": str(course.autograde),
        "OMP_NUM_THREADS": "1",
    }


def timed(course: Course, command: list[str]) -> float:
    """Seconds that a command took.

    Raises:
        SystemExit: it failed; with what it said.
    """
    started = time.perf_counter()
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=course.root,
        env=environment(course),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    took = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed:\n{done.stdout[-3000:]}")
    return took


@contextmanager
def on_one_core() -> Iterator[None]:
    """What is started in the block shares one processor."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def graded_at(course: Course, chapter: str) -> list[float]:
    """When each graded notebook was written, in order."""
    graded = (course.autograde / "autograded").glob(f"*/{chapter}/*.ipynb")
    return sorted(path.stat().st_mtime for path in graded)


def forget(course: Course) -> None:
    shutil.rmtree(course.autograde / "autograded", ignore_errors=True)


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Gives the most memory, in bytes, that this process' descendants held
    together; a shared page counts once."""
    most = 0
    done = threading.Event()

    def look() -> None:
        nonlocal most
        while not done.wait(LOOK_S):
            held = 0
            for one in psutil.Process().children(recursive=True):
                try:
                    held += one.memory_full_info().pss
                except psutil.Error:
                    continue
            most = max(most, held)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda: most
    finally:
        done.set()
        thread.join()


def stock(course: Course, chapter: str, work: dict[str, bytes]) -> Measured:
    """`nbgrader autograde` with its own defaults."""
    settings = course.autograde / "nbgrader_config.py"
    classroom(course, chapter, work)
    settings.write_text(STOCK_SETTINGS.format(root=str(course.autograde)))
    command = ["nbgrader", "autograde", chapter]
    began = time.time()
    seconds = timed(course, command)
    written = graded_at(course, chapter)
    if len(written) != len(work):
        sys.exit(f"stock graded {len(written)} of {len(work)} submissions")
    # one after another: what lies between two of them is one submission
    each = [b - a for a, b in zip([began, *written[:-1]], written, strict=True)]
    one = sorted(work)[0]
    with peak_memory() as peak:
        timed(course, [*command, "--force", f"--student={one}"])
        most = peak()
    return Measured(seconds, each, most)


def ours(
    course: Course, chapter: str, work: int, workers: int, *options: str
) -> Measured:
    """`course grade`, gradebook and all."""
    forget(course)
    command = ["course", "grade", chapter, f"--seed={SEED}"]
    command += [f"--workers={workers}", *options]
    seconds = timed(course, command)
    written = graded_at(course, chapter)
    if len(written) != work:
        sys.exit(f"{' '.join(command)} graded {len(written)} of {work}")
    half = len(written) // 2
    per_second = (len(written) - half) / (written[-1] - written[half - 1])
    return Measured(seconds, per_second=per_second)


def one_by_one(
    course: Course, chapter: str, work: dict[str, bytes]
) -> Measured:
    """Seconds from a submission's bytes to its report, in one grading process
    that has met the chapter; memory in a run of its own."""
    with GradingProcess(course, sandbox.missing() is None) as process:
        for content in work.values():
            process.grade(chapter, SEED, content)
        each = []
        started = time.perf_counter()
        for content in work.values():
            before = time.perf_counter()
            process.grade(chapter, SEED, content)
            each.append(time.perf_counter() - before)
        seconds = time.perf_counter() - started
        with peak_memory() as peak:
            for content in list(work.values())[:FOR_MEMORY] * 4:
                process.grade(chapter, SEED, content)
            most = peak()
    return Measured(seconds, each, most)


def floor(grading: Grading, work: dict[str, bytes]) -> Measured:
    """The same cells in a forked Python, and nothing else."""
    setup = [source for _, source in grading.chapter.setup_source]
    ids = {one.id for one in grading.chapter.exercises}
    cells = []
    for content in work.values():
        notebook = nbformat.reads(content.decode(), as_version=4)
        answers = [
            cell.source
            for cell in notebook.cells
            if cell.metadata.get("nbgrader", {}).get("grade_id") in ids
        ]
        cells.append([*setup, *answers])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.json"
        path.write_text(json.dumps(cells))
        done = subprocess.run(
            [sys.executable, "-c", FLOOR, str(path)],
            stdout=subprocess.PIPE,
            check=True,
        )
    each = json.loads(done.stdout)
    return Measured(sum(each), each)


def percentile(each: Sequence[float], hundredths: int) -> float:
    return statistics.quantiles(each, n=100)[hundredths - 1]


def row(name: str, measured: Measured, count: int, reference: Measured) -> str:
    """One line of the table."""
    each = measured.each
    cells = [
        name,
        f"{measured.seconds:.1f}",
        f"{60 * count / measured.seconds:.0f}",
        f"{reference.seconds / measured.seconds:.1f}",
        f"{percentile(each, 50):.3f}" if each else "",
        f"{percentile(each, 95):.3f}" if each else "",
        f"{measured.memory_bytes / 2**20:.0f}" if measured.memory_bytes else "",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chapter", default="03")
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--to", type=Path, help="a file for the table")
    arguments = parser.parse_args()
    course = find_course()
    chapter = course.chapter(arguments.chapter)
    grading, _, released = build_chapter(course, chapter)
    count = arguments.submissions
    work = submissions(grading, released, count)
    cores = os.cpu_count() or 1
    walls = "on" if sandbox.missing() is None else "off: no sandbox here"
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        theirs = copy_course(course, Path(folder) / "stock")
        mine = copy_course(course, Path(folder) / "ours")
        print(f"stock: {count} submissions of {chapter}", flush=True)
        by_stock = stock(theirs, chapter, work)
        print("ours", flush=True)
        classroom(mine, chapter, work)
        by_all = ours(mine, chapter, count, cores)
        by_one = ours(mine, chapter, count, 1)
        with on_one_core():
            by_one_core = ours(mine, chapter, count, 1)
        every_cell = ours(mine, chapter, count, cores, "--all-cells")
        latency = one_by_one(mine, chapter, work)
        least = floor(grading, work)
    lines = [
        f"{date.today()}, {count} submissions of {chapter}, {cores} cores "
        f"({platform.machine()}), nbgrader {version('nbgrader')}, torch "
        f"{version('torch')}, Python {platform.python_version()}, sandbox "
        f"{walls}, load {before:.1f} at the start.",
        "",
        "| way | seconds | per minute | times stock | p50 s | p95 s | "
        "peak MiB |",
        "|---|---|---|---|---|---|---|",
        row("stock `nbgrader autograde`", by_stock, count, by_stock),
        row(f"`course grade`, {cores} workers", by_all, count, by_stock),
        row("`course grade`, 1 worker", by_one, count, by_stock),
        row("the same on one core", by_one_core, count, by_stock),
        row("`course grade --all-cells`", every_cell, count, by_stock),
        row("one grading process, warm", latency, count, by_stock),
        row("floor: a fork that runs the cells", least, count, by_stock),
        "",
        f"In the second half of the run, when all is started: {cores} workers "
        f"{by_all.per_second:.1f} submissions per second, 1 worker "
        f"{by_one.per_second:.1f}, 1 worker on one core "
        f"{by_one_core.per_second:.1f}. A worker per core on {cores} cores is "
        f"{by_all.per_second / by_one_core.per_second:.2f} times one on one "
        f"core, and {by_all.per_second / by_one.per_second:.2f} times one "
        "that has all cores to itself.",
    ]
    text = "\n".join(lines)
    print(f"\n{text}")
    if arguments.to is not None:
        arguments.to.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
