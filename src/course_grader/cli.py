"""The `course` command: what authors and instructors type."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from course_grader.course import Course, CourseError, find_course

console = Console(highlight=False)


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
    """Writes notebooks/, or with --check says which are stale."""
    from course_grader.chapter.build import stale_diff, write_notebook

    stale = 0
    for name in _chapters(course, args.chapters):
        if args.check:
            diff = stale_diff(course, name)
            if diff:
                stale += 1
                sys.stdout.write(diff)
            console.print(f"{name}: {'stale' if diff else 'up to date'}")
        else:
            changed = write_notebook(course, name)
            console.print(f"{name}: {'written' if changed else 'up to date'}")
    if stale:
        console.print(
            "Run `course build` and commit notebooks/.", style="bold red"
        )
    return 1 if stale else 0


def try_exercise(course: Course, args: argparse.Namespace) -> int:
    """Runs the answer bank of a chapter's exercises through the judge."""
    from course_grader.chapter.grading import load_grading
    from course_grader.judge.kernels import WarmProcess
    from course_grader.judge.trial import try_bank

    started = time.perf_counter()
    with WarmProcess() as warm:
        grading = load_grading(course, course.chapter(args.chapter))
        ids = [one.id for one in grading.chapter.exercises]
        wanted = [one for one in ids if one.startswith(args.exercise or "")]
        if not wanted:
            grading.chapter.exercise(args.exercise)
        bad = n = 0
        for trial in try_bank(
            warm, grading, range(1, args.seeds + 1), wanted, args.both
        ):
            n += 1
            bad += bool(trial.complaints)
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
    console.print(
        f"{n} trials of {', '.join(wanted)}: {n - bad} as they must be, {bad} "
        f"not ({time.perf_counter() - started:.1f} s)"
    )
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="course", description=__doc__)
    parser.add_argument(
        "--course", type=Path, help="the course's folder, if not this one"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[Course, argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=run.__doc__)
        sub.set_defaults(run=run)
        return sub

    one = command("build", build)
    one.add_argument("chapters", nargs="*")
    one.add_argument("--check", action="store_true", help="write nothing")
    one = command("try", try_exercise)
    one.add_argument("chapter")
    one.add_argument("exercise", nargs="?", help="id, or how it begins")
    one.add_argument("--seeds", type=int, default=1)
    one.add_argument(
        "--both", action="store_true", help="the in-process judge too"
    )
    one.add_argument("-v", "--verbose", action="store_true")
    return parser


def main() -> None:
    """Entry point of `course`."""
    args = _parser().parse_args()
    try:
        sys.exit(args.run(find_course(args.course), args))
    except CourseError as error:
        console.print(f"course: {error}", style="bold red", markup=False)
        sys.exit(2)


if __name__ == "__main__":
    main()
