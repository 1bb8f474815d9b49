"""Measures grading: stock `nbgrader autograde` against `course grade`.

`make bench` goes through the chapters and writes their rows in the table of
docs/speed.md, one at a time: a run that is stopped has written what it measured.
Rows of chapters that are not measured stay, with their dates, as long as machine and
versions are the same.
The same submissions are graded both ways, one after the other on the same
machine; ratios count, absolute seconds are this machine's and this hour's alone.
Stock means nbgrader's own defaults: its preprocessors, its timeouts, one kernel
per submission, the hidden tests in the grade cells. It grades a few submissions;
how long it takes for a class follows, for its rate is constant.

`tools/bench.py --ways 03` measures one chapter in every way there is, and
`tools/bench.py --storing 5000` how fast results are stored.
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
from nbclient import NotebookClient

from course_grader.chapter.build import build_chapter
from course_grader.chapter.grading import Grading
from course_grader.classroom import gradebook, nbgrader_api
from course_grader.classroom.demo import answered, copy_course
from course_grader.course import Course, find_course
from course_grader.grading.pool import TOGETHER
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
        folder = course.people / "submitted" / student / chapter
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
    graded = (course.people / "autograded").glob(f"*/{chapter}/*.ipynb")
    return sorted(path.stat().st_mtime for path in graded)


def forget(course: Course) -> None:
    shutil.rmtree(course.people / "autograded", ignore_errors=True)


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
    settings.write_text(STOCK_SETTINGS.format(root=str(course.people)))
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


@dataclass
class Row:
    """What one chapter takes; seconds unless it says otherwise."""

    chapter: str
    import_torch: float
    cold_right: float
    cold_wrong: float
    warm_50: float
    warm_95: float
    stock_each: float
    stock_12: float
    ours_12: float
    stock_40: float
    ours_40: float
    peak_mib: float
    read: float
    first_figure: float
    taken_away: float
    """Share of processor time that the host gave to others meanwhile."""
    load: float
    """Of the machine, when measuring began."""

    def line(self) -> str:
        right = self.cold_right / self.import_torch
        wrong = self.cold_wrong / self.import_torch
        cells = [
            self.chapter[:2],
            f"{self.cold_right:.1f} ({right:.1f})",
            f"{self.cold_wrong:.1f} ({wrong:.1f})",
            f"{self.warm_50:.2f}",
            f"{self.warm_95:.2f}",
            f"{self.stock_each:.1f}",
            f"{self.ours_12:.1f} ({self.stock_12 / self.ours_12:.0f} times)",
            f"{self.ours_40:.1f} ({self.stock_40 / self.ours_40:.0f} times)",
            f"{self.peak_mib:.0f}",
            f"{self.read:.0f} ({self.first_figure:.0f})",
            f"{100 * self.taken_away:.0f} %",
            f"{self.load:.1f}",
            f"{date.today()}",
        ]
        return "| " + " | ".join(cells) + " |"


HEAD = """\
| chapter | cold, right | cold, wrong | warm p50 | warm p95 | stock, each | \
class of 12 | class of 40 | peak MiB | read (first figure) | taken away | \
load | date |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""
CHAPTER_CELL = len("| 00 |")
TABLE_BEGINS, TABLE_ENDS = "<!-- make bench -->\n", "<!-- end -->"
FOR_STOCK = 4
"""Submissions that stock grades of each chapter."""


def processor_times() -> tuple[float, float]:
    """Seconds that all processors spent so far, and those of them that the host
    of a virtual machine gave to others (Linux; else 0)."""
    times = psutil.cpu_times()
    return sum(times), float(getattr(times, "steal", 0.0))


def import_torch() -> float:
    """Seconds to import torch, its files read before."""
    took = []
    for _ in range(4):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        took.append(time.perf_counter() - started)
    return statistics.median(took[1:])


def cold(course: Course, chapter: str, content: bytes) -> float:
    """Seconds of `course grade` on one file, from the start."""
    with tempfile.TemporaryDirectory(prefix="cold-") as folder:
        file = Path(folder) / "you.ipynb"
        file.write_bytes(content)
        command = ["course", "grade", chapter, f"--seed={SEED}"]
        command += [f"--from={file}", f"--to={Path(folder) / 'report'}"]
        return timed(course, command)


def read(released: nbformat.NotebookNode) -> tuple[float, float]:
    """What a learner waits for who runs all cells of a chapter.

    Returns:
        Seconds until all have run and until the first figure is there, from the
        start of the kernel.
    """
    done_at: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="read-") as folder:
        client = NotebookClient(
            nbformat.from_dict(released),
            resources={"metadata": {"path": folder}},
            timeout=None,
            on_cell_executed=lambda cell, cell_index, **_: done_at.update(
                {cell_index: time.perf_counter()}
            ),
        )
        started = time.perf_counter()
        cells = client.execute().cells
        took = time.perf_counter() - started
    figures = (
        done_at[place]
        for place, cell in enumerate(cells)
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    )
    return took, next(figures, started + took) - started


def measured_row(course: Course, chapter: str, folder: Path) -> Row:
    """Measures one chapter."""
    grading, _, released = build_chapter(course, chapter)
    work = submissions(grading, released, 40)
    few = {name: work[name] for name in sorted(work)[:12]}
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    spent, taken = processor_times()
    seconds = {}
    theirs = copy_course(course, folder / "stock")
    some = {name: work[name] for name in sorted(work)[:FOR_STOCK]}
    by_stock = stock(theirs, chapter, some)
    each = statistics.mean(by_stock.each[1:])
    for count, submitted in ((12, few), (40, work)):
        mine = copy_course(course, folder / f"class-{count}")
        classroom(mine, chapter, submitted)
        seconds[count] = ours(mine, chapter, count, cores).seconds
    latency = one_by_one(course, chapter, few)
    read_all, first_figure = read(released)
    row = Row(
        chapter=chapter,
        import_torch=import_torch(),
        cold_right=cold(course, chapter, work["student000"]),
        cold_wrong=cold(course, chapter, work["student001"]),
        warm_50=percentile(latency.each, 50),
        warm_95=percentile(latency.each, 95),
        stock_each=each,
        stock_12=by_stock.seconds + (12 - FOR_STOCK) * each,
        ours_12=seconds[12],
        stock_40=by_stock.seconds + (40 - FOR_STOCK) * each,
        ours_40=seconds[40],
        peak_mib=latency.memory_bytes / 2**20,
        read=read_all,
        first_figure=first_figure,
        taken_away=0.0,
        load=load,
    )
    spent_now, taken_now = processor_times()
    row.taken_away = (taken_now - taken) / max(spent_now - spent, 1e-9)
    return row


def storing(course: Course, count: int, db_url: str | None) -> str:
    """Stores one result of chapter 03 for so many learners, as a class's coordinator
    does, in SQLite or in the database at `db_url`."""
    chapter = course.chapter("03")
    with tempfile.TemporaryDirectory(prefix="storing-") as folder:
        copied = copy_course(course, Path(folder) / "course")
        if db_url:
            (copied.root / "course.toml").write_text(
                f'[nbgrader.CourseDirectory]\ndb_url = "{db_url}"\n'
            )
        room = nbgrader_api.open_classroom(copied)
        grading, _, released = build_chapter(copied, chapter)
        (submitted,) = submissions(grading, released, 1).values()
        learners = {f"learner{number:05}": submitted for number in range(count)}
        classroom(copied, chapter, learners)
        with GradingProcess(copied, sandbox.missing() is None) as process:
            _, graded = process.grade(chapter, SEED, submitted)
        work = list(gradebook.submissions(room, chapter))
        started, spent = time.perf_counter(), time.process_time()
        with gradebook.open_gradebook(room) as book:
            results = [gradebook.Graded(one, submitted, graded) for one in work]
            # as many at once as come while others are stored
            for start in range(0, count, TOGETHER):
                book.save(chapter, results[start : start + TOGETHER])
        took = time.perf_counter() - started
        spent = time.process_time() - spent
    kind = (db_url or "sqlite").partition(":")[0].partition("+")[0]
    return (
        f"{kind}: {count} results in {took:.0f} s, {count / took:.0f} a second, "
        f"{1000 * spent / count:.1f} ms of processor time each."
    )


def machine(count: int) -> str:
    """What was measured on, and with which versions."""
    walls = "on" if sandbox.missing() is None else "off: no sandbox here"
    return (
        f"{count} cores ({platform.machine()}), nbgrader "
        f"{version('nbgrader')}, torch {version('torch')}, Python "
        f"{platform.python_version()}, sandbox {walls}"
    )


def now() -> str:
    """Day and load."""
    return f"{date.today()}, load {os.getloadavg()[0]:.1f} at the start"


def write_row(page: Path, machine: str, line: str) -> None:
    """Puts a chapter's row into the table on the page. Where the table is another
    machine's, or of other versions, it begins anew."""
    before, begins, rest = page.read_text(encoding="utf-8").partition(
        TABLE_BEGINS
    )
    table, ends, after = rest.partition(TABLE_ENDS)
    if not (begins and ends):
        sys.exit(f"{page} has no lines {TABLE_BEGINS.strip()} and {TABLE_ENDS}")
    head = f"{machine}.\n\n{HEAD}"
    held = table.removeprefix(head).splitlines() if head in table else []
    rows = {one[:CHAPTER_CELL]: one for one in [*held, line] if one}
    text = head + "".join(f"{rows[name]}\n" for name in sorted(rows))
    page.write_text(f"{before}{begins}{text}\n{ends}{after}", encoding="utf-8")


def all_chapters(course: Course, chapters: Sequence[str], page: Path) -> None:
    """Measures chapters and writes each one's row."""
    print(HEAD, end="", flush=True)
    for chapter in chapters:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            line = measured_row(course, chapter, Path(folder)).line()
        print(line, flush=True)
        write_row(page, machine(os.cpu_count() or 1), line)


def every_way(course: Course, chapter: str, count: int) -> None:
    """Measures one chapter in every way and prints the table."""
    grading, _, released = build_chapter(course, chapter)
    work = submissions(grading, released, count)
    cores = os.cpu_count() or 1
    began = f"{machine(cores)}, {now()}"
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
        f"{count} submissions of {chapter}; {began}.",
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
    print("\n" + "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "chapters", nargs="*", help="names or numbers; all if none is given"
    )
    parser.add_argument("--ways", metavar="CHAPTER", help="every way for one")
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--storing", metavar="RESULTS", type=int)
    parser.add_argument("--db", metavar="URL", help="of --storing; else SQLite")
    arguments = parser.parse_args()
    course = find_course()
    if arguments.storing:
        print(f"{machine(os.cpu_count() or 1)}, {now()}.")
        print(storing(course, arguments.storing, arguments.db))
    elif arguments.ways:
        chapter = course.chapter(arguments.ways)
        every_way(course, chapter, arguments.submissions)
    else:
        names = [course.chapter(one) for one in arguments.chapters]
        page = course.root / "docs" / "speed.md"
        all_chapters(course, names or course.chapters(), page)


if __name__ == "__main__":
    main()
