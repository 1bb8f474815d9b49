"""The `course` command: what authors and instructors type."""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import argcomplete
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from course_grader.classroom import commands as classroom_commands
from course_grader.course import Course, CourseError, find_course
from course_grader.startup import skip_slow_imports

if TYPE_CHECKING:
    from course_grader.grading.pool import Outcome
    from course_grader.judge.report import ExerciseReport

console = Console(highlight=False)
errors = Console(highlight=False, stderr=True)

LEAST_TOLD = 0.95
"""Of a chapter's wrong answers: the share whose learner hears the mistake's own
words or sees a case that shows it."""


def progress_bar() -> Progress:
    """A progress bar with time left; quiet lines where there is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _chapters(course: Course, names: list[str]) -> list[str]:
    return [course.chapter(one) for one in names] or course.chapters()


def build(course: Course, args: argparse.Namespace) -> int:
    """Writes notebooks/, docs/claims.md, docs/statements.md and README's table of
    chapters, or with --check says what is stale."""
    from course_grader.chapter.build import built_files, stale_diff

    stale = 0
    files = built_files(course, _chapters(course, args.chapters))
    for path, built in files.items():
        diff = stale_diff(course, path, built)
        name = path.relative_to(course.root)
        if not diff:
            console.print(f"{name}: up to date")
        elif args.check:
            stale += 1
            sys.stdout.write(diff)
            console.print(f"{name}: stale")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(built, encoding="utf-8")
            console.print(f"{name}: written")
    if stale:
        console.print(
            "Run `course build` and commit what it writes.", style="bold red"
        )
    _tell_frozen(course)
    return 1 if stale else 0


def new(course: Course, args: argparse.Namespace) -> int:
    """Writes the smallest whole chapter, to write over."""
    from course_grader.chapter.new import new_chapter

    for path in new_chapter(course, args.name):
        console.print(f"{path.relative_to(course.root)}: written")
    number = args.name[:2]
    console.print(
        f"Now: `course try {number}`, `course build`, and docs/authors.md."
    )
    return 0


def _tell_frozen(course: Course) -> None:
    """Names the chapters whose graded cells can no longer change."""
    from course_grader.classroom import gradebook, nbgrader_api

    if not (course.autograde / "nbgrader_config.py").exists():
        return
    classroom = nbgrader_api.open_classroom(course)
    for chapter, number in gradebook.handed_in(classroom).items():
        console.print(
            f"{chapter} is frozen: the gradebook holds {number} "
            f"submission{'' if number == 1 else 's'}. Text, checks and answers "
            "may still change; an exercise that comes, goes or changes its "
            "points is refused by nbgrader."
        )


def try_exercise(course: Course, args: argparse.Namespace) -> int:
    """Runs the answer bank of a chapter's exercises through the judge."""
    from course_grader.judge import sandbox
    from course_grader.judge.warming import WarmProcess

    if args.profile:
        return _profile(course, args)
    if args.answer is not None:
        return _show(course, args)
    if args.told:
        return _told(course, args)
    started = time.perf_counter()
    # the author's own code: under a learner's conditions where that can be
    with WarmProcess(course.limits, sandbox.missing() is None) as warm:
        # while it warms up; modules stay, there is nothing to collect in them
        gc.disable()
        from course_grader.chapter.grading import load_grading
        from course_grader.judge.judging import losses
        from course_grader.judge.signatures import (
            keep_signatures,
            signatures_file,
        )
        from course_grader.judge.trial import Trial, try_bank

        gc.freeze()
        gc.enable()
        grading = load_grading(course, course.chapter(args.chapter))
        ids = [one.id for one in grading.chapter.exercises]
        wanted = [one for one in ids if one.startswith(args.exercise or "")]
        if not wanted:
            grading.chapter.exercise(args.exercise)
        bad = n = 0
        wrong: dict[str, list[Trial]] = {}
        for trial in try_bank(
            warm,
            grading,
            range(1, args.seeds + 1),
            wanted,
            in_process=lambda answer: args.both,
        ):
            n += 1
            bad += bool(trial.complaints)
            if trial.behaviour is not None:
                wrong.setdefault(trial.answer.exercise, []).append(trial)
            if trial.complaints or (args.verbose and trial.seed == 1):
                kind = "right" if trial.answer.right else "wrong"
                report = trial.report
                console.print(
                    f"[bold]{trial.answer.exercise}[/] {trial.answer.name} "
                    f"({kind}, seed {trial.seed}): {report.points:g} of "
                    f"{report.max_points:g} points"
                )
                for complaint in trial.complaints:
                    console.print(f"    [red]✗ {complaint}[/]")
                for one in report.checks if args.verbose else ():
                    console.print(
                        f"    {one.name}: {one.verdict} {one.message}",
                        markup=False,
                    )
        for exercise, trials in wrong.items():
            keep_signatures(
                signatures_file(course, grading.chapter.name),
                grading,
                exercise,
                [(one.answer, losses(one.report.checks)) for one in trials],
            )
    console.print(
        f"{n} trials of {', '.join(wanted)}: {n - bad} as they must be, {bad} "
        f"not ({time.perf_counter() - started:.1f} s)"
    )
    return 1 if bad else 0


def _told(course: Course, args: argparse.Namespace) -> int:
    """What wrong answers' learners are told, as a table; 1 if fewer than
    `LEAST_TOLD` of them hear their own words or see their case."""
    from course_grader.judge import sandbox
    from course_grader.judge.warming import WarmProcess

    table = Table("exercise", "wrong answers", "own words", "a case", "either")
    total = [0, 0, 0, 0]
    with WarmProcess(course.limits, sandbox.missing() is None) as warm:
        from course_grader.chapter.grading import load_grading
        from course_grader.judge.signatures import (
            read_signatures,
            signatures_file,
        )
        from course_grader.judge.told import told

        grading = load_grading(course, course.chapter(args.chapter))
        file = signatures_file(course, grading.chapter.name)
        for one in grading.chapter.exercises:
            if not one.id.startswith(args.exercise or ""):
                continue
            known = {one.id: read_signatures(file, grading, one.id)}
            counts = [0, 0, 0, 0]
            for answer in told(warm, grading, known, 1, [one.id]):
                shown = answer.case or answer.raised
                either = answer.own_words or shown
                found = (True, answer.own_words, shown, either)
                counts = [a + b for a, b in zip(counts, found, strict=True)]
                if args.verbose or not either:
                    _say(answer.answer.name, answer.report)
            table.add_row(one.id, *map(str, counts))
            total = [a + b for a, b in zip(total, counts, strict=True)]
    table.add_row("all", *map(str, total))
    console.print(table)
    return int(total[3] < LEAST_TOLD * total[0])


def _say(name: str, report: ExerciseReport) -> None:
    """What a learner reads on the page, as text."""
    from course_grader.feedback.text import as_text

    console.print(f"[bold]{report.exercise}[/] {name}")
    console.print(as_text(report), markup=False, highlight=False)


def _show(course: Course, args: argparse.Namespace) -> int:
    from rich.syntax import Syntax

    from course_grader.judge import sandbox
    from course_grader.judge.warming import WarmProcess

    with WarmProcess(course.limits, sandbox.missing() is None) as warm:
        from course_grader.chapter.grading import load_grading
        from course_grader.judge.showing import show

        grading = load_grading(course, course.chapter(args.chapter))
        exercise = grading.chapter.exercise(args.exercise)
        answers = {one.name: one for one in grading.answers_of(exercise.id)}
        if args.answer not in answers:
            raise CourseError(
                f"{exercise.id} has no answer {args.answer!r}. It has: "
                + ", ".join(answers)
                + "."
            )
        answer = answers[args.answer]
        console.print(Syntax(grading.answer_cell(answer), "python"))
        lost = set()
        for one in show(warm, grading, answer, 1):
            said = one.complaint or "passes"
            if one.complaint:
                lost.add(one.check.name)
            console.print(
                f"[bold]{one.check.name}[/], case {one.number}: {said}"
            )
            if not one.complaint:
                continue
            for label, value in (
                ("case", one.case),
                ("answer", one.seen and (one.seen.raised or one.seen.data)),
                ("reference", one.expected.raised or one.expected.data),
            ):
                console.print(f"    {label}: {value!r}", markup=False)
    passed = set(answer.breaks) - lost
    if answer.right and lost:
        console.print(f"It is right and loses {', '.join(sorted(lost))}.")
    elif passed:
        console.print(f"It is wrong and passes {', '.join(sorted(passed))}.")
    elif not answer.right:
        console.print(f"Its learner hears: {answer.tells}", markup=False)
    return int(bool(passed or (answer.right and lost)))


def mutate(course: Course, args: argparse.Namespace) -> int:
    """Grades mutants of right answers; writes docs/mutation.md."""
    from course_grader.judge import sandbox
    from course_grader.judge.warming import WarmProcess

    survived = 0
    with WarmProcess(course.limits, sandbox.missing() is None) as warm:
        from course_grader.chapter.grading import load_grading
        from course_grader.mutation.score import (
            as_toml,
            digest_of,
            score_exercise,
        )
        from course_grader.mutation.table import keep_score, read_scores

        warm.import_rest()
        for name in _chapters(course, [args.chapter] if args.chapter else []):
            grading = load_grading(course, name)
            for exercise in grading.chapter.exercises:
                if not exercise.id.startswith(args.exercise or ""):
                    continue
                known = read_scores(course).get(name, {}).get(exercise.id)
                if (
                    known is None
                    or args.again
                    or known.digest != digest_of(course, grading, exercise.id)
                ):
                    started = time.perf_counter()
                    known = score_exercise(warm, grading, course, exercise.id)
                    keep_score(course, name, known)
                    took = f", {time.perf_counter() - started:.0f} s"
                else:
                    took = ", unchanged"
                survived += len(known.survivors)
                console.print(
                    f"{name[:2]} {exercise.id}: {known.mutants} mutants, "
                    f"{known.killed} killed, {known.timed_out} never ended, "
                    f"{known.equivalent} equivalent, {len(known.survivors)} "
                    f"survived{took}"
                )
                for one in known.survivors:
                    console.print(
                        f"\n# {one.operator}\n{as_toml(exercise.id, one)}",
                        markup=False,
                        highlight=False,
                        soft_wrap=True,
                    )
    return 1 if survived else 0


def _profile(course: Course, args: argparse.Namespace) -> int:
    from course_grader.judge import sandbox
    from course_grader.judge.warming import WarmProcess

    with WarmProcess(course.limits, sandbox.missing() is None) as warm:
        from course_grader.chapter.grading import load_grading
        from course_grader.judge.profile import profile

        grading = load_grading(course, course.chapter(args.chapter))
        table = Table(
            *("", "calls", "ms", "processor ms", "in children"),
            caption="The solutions as one submission, warm. What is no processor "
            "time is waiting; children are processes that the probe started.",
        )
        list(profile(warm, grading, 1))
        wall = cpu = 0.0
        exercise = ""
        for one in profile(warm, grading, 2):
            if one.exercise != exercise:
                exercise = one.exercise
                table.add_section()
                table.add_row(f"[bold]{exercise}[/]")
            used = one.cpu_s + one.children_cpu_s
            wall, cpu = wall + one.wall_s, cpu + used
            table.add_row(
                one.part,
                str(one.calls or ""),
                f"{1000 * one.wall_s:.0f}",
                f"{1000 * used:.0f}" if one.calls else "",
                f"{1000 * one.children_cpu_s:.0f}" if one.calls else "",
            )
        table.add_section()
        table.add_row(
            "[bold]all[/]", "", f"{1000 * wall:.0f}", f"{1000 * cpu:.0f}", ""
        )
    console.print(table)
    return 0


def publish(course: Course, args: argparse.Namespace) -> int:
    """Writes the learner kit: notebooks, course_utils, a README."""
    from course_grader.chapter.edition import Host
    from course_grader.chapter.kit import publish as write_kit

    where, edition = write_kit(
        course, args.folder, args.address, args.edition, args.host
    )
    number = len(course.chapters())
    console.print(f"The kit with {number} chapters is in {where}.")
    if edition is None:
        console.print("It has no address: hand the folder out as it is.")
    elif edition.host is Host.WEB:
        console.print(f"Copy {args.folder} to {edition.address}.")
    else:
        console.print(
            f"Publish it with: git -C {args.folder} push {edition.address} "
            f"HEAD:main {edition.name}",
            soft_wrap=True,
        )
    return 0


def lab(course: Course, args: argparse.Namespace) -> int:
    """Opens JupyterLab on work/, filled with the chapters."""
    from course_grader.classroom.lab import (
        fill_work,
        lab_command,
        lab_environment,
    )
    from course_grader.needs import free_port, need_port, need_program

    taken = need_port(args.port) if args.port else None
    if taken:
        raise CourseError(taken)
    new = fill_work(course)
    for program in ("dot",):
        sentence = need_program(program)
        if sentence:
            console.print(sentence)
    os.chdir(course.work)
    port = args.port or free_port(8888)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_urlsafe(16)
    chapters = course.chapters()
    begun = [one for one in chapters if one not in new]
    first = chapters[0]
    start = f"Start with {first}" if not begun else "Go on where you were"
    for line in (
        f"Installed; {len(new)} of {len(chapters)} chapters are new in work/."
        if new
        else f"Installed; {len(chapters)} chapters are in work/.",
        f"Address: http://localhost:{port}/lab/tree/{first}/{first}.ipynb"
        f"?token={token}",
        f"{start}: open its notebook, run it from the top, answer, run the "
        "cell below the answer.",
        "To stop, press Ctrl-C twice. Your work stays in work/.",
    ):
        console.print(line, markup=False, soft_wrap=True)
    command = lab_command(course, port, args.browser)
    environment = lab_environment(course, token)
    if os.name == "posix":  # in place of this process: Ctrl-C is Jupyter's
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)


def release(course: Course, args: argparse.Namespace) -> int:
    """Releases chapters to the exchange."""
    from course_grader.classroom import nbgrader_api

    classroom = nbgrader_api.open_classroom(course)
    for name in _chapters(course, args.chapters):
        nbgrader_api.release(classroom, name)
        console.print(f"{name}: released")
    return 0


def grade(course: Course, args: argparse.Namespace) -> int:
    """Grades collected submissions, or a folder or a file without a gradebook."""
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    name = course.chapter(args.chapter)
    if args.source is None:
        return _grade_class(course, args, name, seed)
    if args.scheduler:
        raise CourseError("--scheduler grades a class, not --from.")
    from course_grader.classroom.folder import results_folder

    if args.to is None:
        if not args.source.is_file():
            raise CourseError("Say with --to where the results go.")
        args.to = course.work / ".course" / "reports"
    results_folder(args.to, args.source)
    if args.source.is_file():
        return _grade_file(course, args, name, seed)
    return _grade_folder(course, args, name, seed)


def _sandboxed(course: Course, args: argparse.Namespace, jobs: int) -> bool:
    """Whether other people's work runs in the sandbox; says what it may take.

    Raises:
        CourseError: there can be no sandbox and nobody said to go without.
    """
    from course_grader.grading.pool import worker_count
    from course_grader.judge.sandbox import require_sandbox
    from course_grader.kernel.limits import worst_case

    if args.unsandboxed:
        return False
    if args.scheduler:
        return True  # the workers' machines must have one, not this
    require_sandbox("`--unsandboxed`")
    if jobs:
        workers = worker_count(args.workers, jobs)
        console.print(worst_case(course.limits, workers))
    return True


def _grade_class(
    course: Course, args: argparse.Namespace, name: str, seed: int
) -> int:
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.grading.cluster import grade_on_cluster
    from course_grader.grading.pool import Job, grade_many, worker_count

    classroom = nbgrader_api.open_classroom(course)
    found = {one.student: one for one in gradebook.submissions(classroom, name)}
    todo = [one for one in found.values() if args.again or not one.graded]
    already = sum(one.graded for one in found.values())
    console.print(
        f"{name}: {len(found)} submissions, {already} of them graded already"
        f"{', which are graded again' if args.again and already else ''} "
        f"(seed {seed})."
    )
    # read when a worker is free: a large class need not fit into memory
    jobs = (Job(one.student, one.path.read_bytes()) for one in todo)
    sandboxed = _sandboxed(course, args, len(todo))
    before = gradebook.automatic_points(classroom, name)
    held_back: list[Outcome] = []
    failed = 0
    with gradebook.open_gradebook(classroom) as book, progress_bar() as bar:
        task = bar.add_task("grading", total=len(todo))

        def save(outcome: Outcome) -> None:
            job = outcome.job
            book.save(name, found[job.student], job.submitted, outcome.text)

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
                worker_count(args.workers, len(todo)),
                args.all_cells,
                sandboxed,
            )
        )
        for outcome in outcomes:
            failed += _tell(bar.console, outcome)
            if outcome.report is not None:
                if found[outcome.job.student].graded:
                    held_back.append(outcome)
                else:
                    save(outcome)
            bar.advance(task)
        bar.stop()
        if held_back and _wanted(held_back, before, args.yes):
            for outcome in held_back:
                save(outcome)
    return 1 if failed else 0


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
    from course_grader.grading.pool import grade_many, worker_count

    jobs, refused = jobs_in(args.source)
    for student, why in refused.items():
        console.print(f"{student}: {why}", markup=False)
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
    sandboxed = _sandboxed(course, args, len(jobs))
    outcomes = grade_many(
        course,
        name,
        seed,
        jobs,
        worker_count(args.workers, len(jobs)),
        args.all_cells,
        sandboxed,
        pages=True,
    )
    failed = 0
    with progress_bar() as bar:
        task = bar.add_task("grading", total=len(jobs))
        for outcome in run.write(outcomes, refused):
            failed += _tell(bar.console, outcome)
            bar.advance(task)
    console.print(
        f"{args.to}: scores.json, details.json, feedback/STUDENT/{name}.html"
    )
    return 1 if failed else 0


def _grade_file(
    course: Course, args: argparse.Namespace, name: str, seed: int
) -> int:
    """Grades one notebook; 0 if it was graded, 2 if it is none of the chapter, 1
    if the machinery failed."""
    from course_grader.chapter.build import build_chapter
    from course_grader.grading.pool import Job, grade_many
    from course_grader.grading.repair import repair
    from course_grader.judge import sandbox

    submitted = args.source.read_bytes()
    _, _, released = build_chapter(course, name)
    refused = repair(submitted, released).refused
    if refused:
        console.print(f"{args.source} is not graded. {refused}", markup=False)
        return 2
    # one's own notebook just runs; with the sandbox's limits where there is one
    sandboxed = not args.unsandboxed and sandbox.missing() is None
    jobs = [Job("you", submitted)]
    with _saying(f"Starting the grader for {name}, then grading your notebook"):
        outcomes = list(
            grade_many(
                course, name, seed, jobs, 1, args.all_cells, sandboxed, True
            )
        )
    # beside the grading
    from course_grader.classroom.folder import write_page
    from course_grader.feedback.learner import standing
    from course_grader.needs import open_in_browser

    failed = 0
    for outcome in outcomes:
        if outcome.report is None:
            failed = _tell(console, outcome)
            continue
        for one in outcome.report.exercises:
            points = f"{one.points:g} of {one.max_points:g}"
            ended = standing(one, one.points)
            console.print(f"{points:>10}  {one.title}: {ended}", markup=False)
        failed = _tell(console, outcome)
        path = write_page(args.to, outcome).resolve()
        console.print(
            f"Your report is in {path}.", markup=False, soft_wrap=True
        )
        if args.browser:
            open_in_browser(path.as_uri())
    return 1 if failed else 0


@contextlib.contextmanager
def _saying(what: str) -> Iterator[None]:
    """Says what is being done, and in a terminal for how long already."""
    if not console.is_terminal:
        console.print(f"{what} …")
        yield
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as shown:
        shown.add_task(f"{what} …", total=None)
        yield


def _tell(where: Console, outcome: Outcome) -> int:
    """One line about a graded submission; 1 if the machinery failed on it."""
    report = outcome.report
    if report is None:
        said = f"could not be graded: {outcome.failed}"
    elif report.refused:
        said = report.refused
    else:
        said = f"{report.points:g} of {report.max_points:g} points"
    where.print(f"{outcome.job.student}: {said}", markup=False)
    if report is not None and not report.refused:
        for why in report.needs_human:
            said = f"{outcome.job.student}: look at this. {why}"
            where.print(said, markup=False)
    return int(report is None)


def demo(course: Course, args: argparse.Namespace) -> int:
    """An instructor's day on a synthetic class of 20, on a copy of the course."""
    from course_grader.classroom import demo as day
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.marks_files import as_csv
    from course_grader.judge import sandbox

    copy = day.copy_course(course, course.root / "build" / "demo")
    name = copy.chapter(args.chapter)
    classroom = nbgrader_api.open_classroom(copy)
    console.rule(f"Release {name}")
    nbgrader_api.release(classroom, name)
    console.rule("Twenty learners hand in")
    notebooks = day.synthetic_class(copy, name)
    with progress_bar() as bar:
        for student in bar.track(notebooks, description="handing in"):
            day.submit(classroom, name, student, notebooks[student])
    console.rule("Collect")
    nbgrader_api.collect(classroom, name)
    console.rule("Grade")
    args.again = args.all_cells = args.yes = False
    args.workers = args.scheduler = None
    # a class made up here: nobody's work is run that needs walls
    args.unsandboxed = sandbox.missing() is not None
    _grade_class(copy, args, name, 1)
    console.rule("Feedback")
    folder = nbgrader_api.feedback(classroom, name)
    console.rule("Marks")
    found = gradebook.marks(classroom, [name])
    table = Table("learner", "points", *found[0].by_exercise)
    for mark in found:
        table.add_row(
            mark.student,
            f"{mark.points or 0:g} of {mark.max_points:g}",
            *(f"{points:g}" for points in mark.by_exercise.values()),
        )
    console.print(table)
    grades = copy.root / "grades.csv"
    grades.write_text(as_csv(found, {}, classroom.zone), encoding="utf-8")
    console.print(f"Marks: {grades}")
    console.print(f"Feedback: {folder}/STUDENT/{name}/{name}.html")
    return 0


PACKAGE = "pytorch-training-tricks"
GROUPS = {
    "a learner": (
        ("lab", "grade"),
        "course grade 03 --from work/03_one_hot_and_losses/"
        "03_one_hot_and_losses.ipynb --to report",
    ),
    "an instructor, in a term": (
        (
            *("teach", "demo", "release", "collect", "grade", "feedback"),
            *("report", "similar", "status", "due", "extend", "export"),
            *(
                "solutions",
                "total",
                "lms",
                "backup",
                "restore",
                "new-term",
                "forget",
            ),
        ),
        'course due 03 "2026-12-01 18:00"',
    ),
    "an author": (
        ("new", "try", "mutate", "build", "publish"),
        "course try 03 one_hot --show ANSWER",
    ),
}
_CHAPTER = "a chapter's name or number"
_CHAPTERS = "names or numbers; all chapters if none is given"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="course",
        usage="course [--course FOLDER] COMMAND ...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--course", type=Path, help="the course's folder, if not this one"
    )
    parser.add_argument("--version", action="version", version=version(PACKAGE))
    commands = parser.add_subparsers(
        metavar="COMMAND", help=argparse.SUPPRESS, prog="course"
    )

    def command(
        name: str, run: Callable[[Course, argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=run.__doc__, description=run.__doc__
        )
        sub.set_defaults(run=run)
        said[name] = " ".join((run.__doc__ or "").split())
        return sub

    said: dict[str, str] = {}

    one = command("build", build)
    one.add_argument("chapters", nargs="*", help=_CHAPTERS)
    one.add_argument("--check", action="store_true", help="write nothing")
    one = command("new", new)
    one.add_argument("name", help="two digits and a name, as 16_distillation")
    one = command("try", try_exercise)
    one.add_argument("chapter", help=_CHAPTER)
    one.add_argument("exercise", nargs="?", help="id, or how it begins")
    one.add_argument(
        "--show",
        dest="answer",
        metavar="ANSWER",
        help="one answer: its cell, and the first case of each check it loses",
    )
    one.add_argument(
        "--told",
        action="store_true",
        help="what learners with wrong answers are told, as a table",
    )
    one.add_argument(
        "--seeds", type=int, default=1, help="how many seeds; 1 if not given"
    )
    one.add_argument(
        "--both", action="store_true", help="the in-process judge too"
    )
    one.add_argument(
        "-v", "--verbose", action="store_true", help="every answer and check"
    )
    one.add_argument(
        "--profile",
        action="store_true",
        help="where the time of a right submission goes",
    )
    one = command("mutate", mutate)
    one.add_argument("chapter", nargs="?", help=_CHAPTER)
    one.add_argument("exercise", nargs="?", help="id, or how it begins")
    one.add_argument(
        "--again", action="store_true", help="what is scored already, too"
    )
    one = command("publish", publish)
    one.add_argument("folder", type=Path, help="empty, or earlier kits")
    one.add_argument(
        "--address", help="https://…, where learners will find it: an edition"
    )
    one.add_argument(
        "--edition", metavar="NAME", help="its tag; v and the version if none"
    )
    one.add_argument(
        "--host",
        choices=("github", "gitlab", "web"),
        help="what serves the address, if that does not say it",
    )
    one = command("lab", lab)
    one.add_argument("--port", type=int, help="the first free one from 8888")
    one.add_argument(
        "--no-browser",
        dest="browser",
        action="store_false",
        help="print the address only",
    )
    one = command("release", release)
    one.add_argument("chapters", nargs="*", help=_CHAPTERS)
    one = command("grade", grade)
    one.add_argument("chapter", help=_CHAPTER)
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
        help="where --from's results go; of one notebook to work/.course/reports "
        "if not given",
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
    classroom_commands.register(command)
    one = command("demo", demo)
    one.add_argument("chapter", nargs="?", default="03", help=_CHAPTER)
    parser.epilog = _grouped(said)
    argcomplete.autocomplete(parser)
    return parser


def _grouped(said: dict[str, str]) -> str:
    """All commands by who types them, with an example each."""
    lines = []
    for who, (names, example) in GROUPS.items():
        lines.append(f"{who}:")
        lines += [f"  {name:<10} {said[name]}" for name in names]
        lines += [f"  for example: {example}", ""]
    return "\n".join([*lines, "course COMMAND --help says more."])


def main() -> None:
    """Entry point of `course`."""
    skip_slow_imports()
    parser = _parser()
    args = parser.parse_args()
    if "run" not in args:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if args.run is grade or args.run in classroom_commands.ABOUT_PEOPLE:
        os.umask(0o077)  # what these write is about people
    try:
        sys.exit(args.run(find_course(args.course), args))
    except CourseError as error:
        errors.print(f"course: {error}", style="bold red", markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("course: stopped.")
        sys.exit(130)


if __name__ == "__main__":
    main()
