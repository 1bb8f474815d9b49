"""`course grade`: a class, a folder or one notebook."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import secrets
import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from course_grader.commands.terminal import (
    CHAPTER,
    LOOK,
    AddCommand,
    console,
    progress_bar,
    saying,
)
from course_grader.course import Course, CourseError
from course_grader.needs import disk_is_full

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from course_grader.grading.pool import Outcome
    from course_grader.grading.process import GradingProcess


def grade(course: Course, args: argparse.Namespace) -> int:
    """Grades collected submissions, or a folder or a file without a gradebook."""
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    name = course.chapter(args.chapter)
    if args.source is None:
        return grade_class(course, args, name, seed)
    if args.scheduler:
        raise CourseError("--scheduler grades a class, not --from.")
    from course_grader.classroom.folder import RESULTS, results_folder

    if args.to is None and args.source.is_file():
        from course_home.progress import OWN, REPORTS

        args.to = course.work / OWN / REPORTS
    elif args.to is None:
        args.to = course.people / RESULTS / name
    results_folder(args.to, args.source)
    if args.source.is_file():
        return _grade_file(course, args, name, seed)
    return _grade_folder(course, args, name, seed)


def _sandboxed(args: argparse.Namespace) -> bool:
    """Whether other people's work runs in the sandbox.

    Raises:
        CourseError: there can be no sandbox and nobody said to go without.
    """
    from course_grader.judge.sandbox import require_sandbox

    if args.unsandboxed:
        return False
    if not args.scheduler:  # the workers' machines must have one, not this
        require_sandbox("`--unsandboxed`")
    return True


def _say_what_it_may_take(
    course: Course, args: argparse.Namespace, jobs: int
) -> None:
    """How much memory and processor time the sandbox lets this machine lose."""
    from course_grader.grading.pool import worker_count
    from course_grader.judge.delegated import bounded
    from course_grader.kernel.limits import worst_case

    if jobs and not (args.unsandboxed or args.scheduler):
        workers = worker_count(args.workers, jobs)
        console.print(worst_case(course.limits, workers, bounded()))


def grade_class(
    course: Course, args: argparse.Namespace, name: str, seed: int
) -> int:
    """Grades what was collected of a class; the exit code."""
    from course_grader.grading.process import GradingProcess

    sandboxed = _sandboxed(args)
    with contextlib.ExitStack() as stack:
        started = None
        if not args.scheduler and (args.again or _anything_new(course, name)):
            # beside nbgrader, which takes as long to import as torch
            started = stack.enter_context(
                GradingProcess(course, sandboxed, name)
            )
        return _grade_class(course, args, name, seed, sandboxed, started)


def _anything_new(course: Course, name: str) -> bool:
    """Whether somebody's submission has no graded notebook, as the folders tell; the
    gradebook, which knows, is asked later."""
    return any(
        not (course.people / "autograded" / one.parent.name / name).exists()
        for one in course.people.glob(f"submitted/*/{name}")
    )


def _grade_class(
    course: Course,
    args: argparse.Namespace,
    name: str,
    seed: int,
    sandboxed: bool,
    started: GradingProcess | None,
) -> int:
    from course_grader.classroom import attempts, gradebook, nbgrader_api, term
    from course_grader.classroom.collect_versions import MOST_ATTEMPTS
    from course_grader.grading.cluster import grade_on_cluster
    from course_grader.grading.pool import (
        TOGETHER,
        Job,
        Outcome,
        grade_many,
    )

    classroom = nbgrader_api.open_classroom(course)
    found = {one.student: one for one in gradebook.submissions(classroom, name)}
    with gradebook.open_gradebook(classroom) as book:
        for newest in found.values():
            book.put_aside(name, newest)
    older = {}
    if course.best_attempt_counts:
        older = {
            f"{one.student}, attempt {one.number}": one
            for one in attempts.to_grade(classroom.coursedir, name, list(found))
        }
        for who in found:
            many = attempts.num_passed_over(classroom.coursedir, name, who)
            if many:
                console.print(
                    f"{who}: {many} of the oldest attempts are kept and not "
                    f"graded: at most {MOST_ATTEMPTS} before the newest are.",
                    markup=False,
                )
    every: dict[str, gradebook.Submission | attempts.Attempt]
    every = {**found, **older}
    todo = {
        who: one for who, one in every.items() if args.again or not one.graded
    }
    already = sum(one.graded for one in every.values())
    console.print(
        f"{name}: {len(every)} submissions, {already} of them graded already"
        f"{', which are graded again' if args.again and already else ''} "
        f"(seed {seed})."
    )
    lost: list[Outcome] = []

    def read() -> Iterator[Job]:
        # when a worker is free: a large class need not fit into memory
        for who, one in todo.items():
            try:
                yield Job(who, one.path.read_bytes())
            except OSError as error:
                why = f"the file cannot be read ({error.strerror})"
                lost.append(Outcome(Job(who, b""), None, failed=why))

    jobs = read()
    _say_what_it_may_take(course, args, len(todo))
    before = gradebook.automatic_points(classroom, name)
    for who, attempt in older.items():
        got = attempts.read(
            classroom.coursedir, name, attempt.student, attempt.digest
        )
        before[who] = sum(got.automatic.values()) if got else 0.0
    held_back: list[Outcome] = []
    codes: set[int] = set()
    with gradebook.open_gradebook(classroom) as book, progress_bar() as bar:
        task = bar.add_task("grading", total=len(todo))

        def save(outcomes: list[Outcome]) -> None:
            graded: list[gradebook.Graded] = []
            try:
                for one in outcomes:
                    who = one.job.student
                    if who in older:
                        assert one.report is not None
                        attempts.write_graded(
                            classroom.coursedir, older[who], one.report
                        )
                    else:
                        graded.append(
                            gradebook.Graded(
                                found[who], one.job.submitted, one.text
                            )
                        )
                book.save(name, graded)
            except CourseError:
                raise
            except Exception as error:
                # whatever it is, the others' marks are stored
                if len(outcomes) > 1:
                    for one in outcomes:
                        save([one])
                    return
                why = "there is no space left on the disk"
                if not disk_is_full(error):
                    why = str(error)
                why = f"its marks cannot be stored ({why}); grade it again"
                lost.append(Outcome(outcomes[0].job, None, failed=why))

        outcomes = (
            grade_on_cluster(
                args.scheduler,
                course,
                name,
                seed,
                jobs,
                args.all_cells,
                sandboxed,
            )
            if args.scheduler
            else grade_many(
                course,
                name,
                seed,
                jobs,
                len(todo),
                args.workers,
                args.all_cells,
                sandboxed,
                started=started,
            )
        )
        for arrived in outcomes:
            new: list[Outcome] = []
            for outcome in arrived:
                codes.add(_tell(bar.console, outcome))
                if outcome.report is not None:
                    graded_before = every[outcome.job.student].graded
                    (held_back if graded_before else new).append(outcome)
            save(new)
            bar.advance(task, len(arrived))
        bar.stop()
        if held_back and _wanted(held_back, before, args.yes):
            for start in range(0, len(held_back), TOGETHER):
                save(held_back[start : start + TOGETHER])
    for outcome in lost:
        codes.add(_tell(console, outcome))
    # what was not graded now has its penalties from an earlier run
    term.settle(classroom, [name])
    return _gravest(codes)


def _wanted(
    outcomes: list[Outcome], before: dict[str, float], yes: bool
) -> bool:
    """Shows what grading again would change, and asks before it is written."""
    table = Table("learner", "before", "now", "change")
    changed = 0
    for one in sorted(outcomes, key=lambda one: one.job.student):
        assert one.report is not None
        old, new = before.get(one.job.student, 0.0), one.report.points
        if abs(new - old) > 1e-6:
            changed += 1
            table.add_row(
                one.job.student, f"{old:g}", f"{new:g}", f"{new - old:+g}"
            )
    if not changed:
        console.print("Nobody gains or loses anything.")
        return True
    console.print(table)
    if yes:
        return True
    if sys.stdin.isatty():
        return console.input("Write these marks? [y/N] ").lower() == "y"
    console.print("Nothing was written. `--yes` writes these marks.")
    return False


def _grade_folder(
    course: Course, args: argparse.Namespace, name: str, seed: int
) -> int:
    from course_grader.classroom.folder import Run, jobs_in
    from course_grader.grading.cluster import packed_course
    from course_grader.grading.pool import grade_many

    jobs, refused = jobs_in(args.source)
    for student, why in refused.items():
        console.print(f"{student}: {why}", markup=False)
    if not jobs:
        raise CourseError(
            f"Nothing was graded: {args.source} must hold a folder for each "
            "student with the notebook in it, or be a notebook."
        )
    checks = hashlib.sha256(packed_course(course, name)).hexdigest()
    if args.seed is not None:
        checks = f"{checks}-{seed}"
    run = Run(args.to, name, checks, seed, jobs)
    jobs, seed = run.todo, run.seed
    if run.done:
        console.print(
            f"{len(run.done)} were graded by a run that was stopped; this one "
            "goes on."
        )
    sandboxed = _sandboxed(args)
    _say_what_it_may_take(course, args, len(jobs))
    outcomes = grade_many(
        course,
        name,
        seed,
        jobs,
        len(jobs),
        args.workers,
        args.all_cells,
        sandboxed,
        pages=True,
    )
    codes = {LOOK} if refused else set()
    with progress_bar() as bar:
        task = bar.add_task("grading", total=len(jobs))
        for outcome in run.write(chain.from_iterable(outcomes), refused):
            codes.add(_tell(bar.console, outcome))
            bar.advance(task)
    console.print(
        f"{args.to}: scores.json, details.json, feedback/STUDENT/{name}.html"
    )
    return _gravest(codes)


def _grade_file(
    course: Course, args: argparse.Namespace, name: str, seed: int
) -> int:
    """Grades one notebook; the exit code, which is 2 if it is none of the
    chapter."""
    from course_grader.grading.pool import Job, grade_many
    from course_grader.grading.repair import repair
    from course_grader.judge import sandbox

    submitted = args.source.read_bytes()
    with ThreadPoolExecutor(1) as beside:
        missing = beside.submit(sandbox.missing)
        refused = repair(submitted, _released(course, name)).refused
    if refused:
        console.print(f"{args.source} is not graded. {refused}", markup=False)
        return 2
    # one's own notebook just runs; with the sandbox's limits where there is one
    sandboxed = not args.unsandboxed and missing.result() is None
    jobs = [Job("you", submitted)]
    with saying(f"Starting the grader for {name}, then grading your notebook"):
        graded = grade_many(
            course, name, seed, jobs, 1, 1, args.all_cells, sandboxed, True
        )
        outcomes = list(chain.from_iterable(graded))
    # beside the grading
    from course_grader.classroom.folder import write_page
    from course_grader.feedback.learner import standing
    from course_grader.lab.progress import keep_progress
    from course_grader.needs import open_in_browser

    codes = set()
    for outcome in outcomes:
        if outcome.report is None:
            codes.add(_tell(console, outcome))
            continue
        for one in outcome.report.exercises:
            points = f"{one.points:g} of {one.max_points:g}"
            ended = standing(one, one.points)
            console.print(f"{points:>10}  {one.title}: {ended}", markup=False)
        codes.add(_tell(console, outcome))
        path = write_page(args.to, outcome).resolve()
        if args.source.resolve().is_relative_to(course.work.resolve()):
            for one in outcome.report.exercises:
                keep_progress(course, name, one)
        console.print(
            f"Your report is in {path}.", markup=False, soft_wrap=True
        )
        if args.browser:
            open_in_browser(path.as_uri())
    return _gravest(codes)


def _released(course: Course, name: str) -> NotebookNode:
    """The chapter's notebook as learners have it. What is built is read: to build
    it once more takes longer than to start the grader, which builds its own."""
    import nbformat

    if course.notebook_of(name).exists():
        return nbformat.read(course.notebook_of(name), as_version=4)
    from course_grader.chapter.build import build_chapter

    _, _, released = build_chapter(course, name)
    return released


def _tell(where: Console, outcome: Outcome) -> int:
    """One line about a graded submission; the exit code that it asks for."""
    report = outcome.report
    if report is None:
        said = f"could not be graded: {outcome.failed}"
    elif report.refused:
        said = report.refused
    else:
        said = f"{report.points:g} of {report.max_points:g} points"
    where.print(f"{outcome.job.student}: {said}", markup=False)
    if report is None:
        return 1
    if report.refused:
        return LOOK
    for why in report.needs_human:
        said = f"{outcome.job.student}: look at this. {why}"
        where.print(said, markup=False)
    return LOOK if report.needs_human else 0


def _gravest(codes: Collection[int]) -> int:
    """The exit code of a command some of whose work asks for these."""
    return next((one for one in (1, LOOK) if one in codes), 0)


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    one = command("grade", grade)
    one.add_argument("chapter", help=CHAPTER)
    one.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="PATH",
        help="a folder of STUDENT/*.ipynb, or one notebook",
    )
    one.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="where --from's results go; if not given, to class/results, and of "
        "one notebook to work/.course/reports",
    )
    one.add_argument(
        "--no-browser",
        dest="browser",
        action="store_false",
        help="do not open the report of one notebook",
    )
    one.add_argument("--seed", type=int, help="of the hidden cases")
    one.add_argument(
        "--workers", type=int, help="processes; one per processor if not given"
    )
    one.add_argument(
        "--scheduler",
        metavar="tls://HOST:PORT",
        help="grade a class on a Dask cluster: docs/cluster.md",
    )
    one.add_argument(
        "--all-cells", action="store_true", help="run reading cells, too"
    )
    one.add_argument(
        "--again", action="store_true", help="what is graded already, too"
    )
    one.add_argument(
        "--unsandboxed",
        action="store_true",
        help="run submissions as you: only of people you trust with your files",
    )
    one.add_argument(
        "--yes", action="store_true", help="write changed marks unasked"
    )
