"""What an author types: make a chapter, try its checks, build, publish."""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from course_grader.commands.terminal import (
    CHAPTER,
    CHAPTERS,
    AddCommand,
    chapters,
    console,
)
from course_grader.course import Course, CourseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from course_grader.judge.report import ExerciseReport


LEAST_TOLD = 0.95
"""Of a chapter's wrong answers: the share whose learner hears the mistake's own
words or sees a case that shows it."""


def build(course: Course, args: argparse.Namespace) -> int:
    """Writes notebooks/, docs/claims.md, docs/statements.md and README's table of
    chapters, or with --check says what is stale."""
    from course_grader.chapter.build import built_files, stale_diff

    stale = 0
    files = built_files(course, chapters(course, args.chapters))
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
    _tell_frozen(course, files)
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


def _tell_frozen(course: Course, files: Mapping[Path, str]) -> None:
    """Names the chapters that are no longer as their work was graded."""
    from course_grader.classroom import gradebook, nbgrader_api

    if not (course.autograde / "nbgrader_config.py").exists():
        return
    classroom = nbgrader_api.open_classroom(course)
    built = {
        path.stem: json.loads(text)
        for path, text in files.items()
        if path.suffix == ".ipynb"
    }
    for sentence in gradebook.unlike_graded(classroom, built):
        console.print(sentence, style="bold red", markup=False)


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
        seen: dict[str, list[Trial]] = {}
        for trial in try_bank(
            warm,
            grading,
            range(1, args.seeds + 1),
            wanted,
            in_process=lambda answer: args.both,
            signed=True,
        ):
            n += 1
            bad += bool(trial.complaints)
            if not trial.answer.ends_process:
                seen.setdefault(trial.answer.exercise, []).append(trial)
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
        for exercise, trials in seen.items():
            keep_signatures(
                signatures_file(course, grading.chapter.name),
                grading,
                exercise,
                [(one.answer, one.signature) for one in trials],
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
            excused_anew,
            score_exercise,
        )
        from course_grader.mutation.table import keep_score, read_scores

        for name in chapters(course, [args.chapter] if args.chapter else []):
            grading = load_grading(course, name)
            warm.import_rest(grading.large)
            for exercise in grading.chapter.exercises:
                if not exercise.id.startswith(args.exercise or ""):
                    continue
                before = read_scores(course).get(name, {}).get(exercise.id)
                known = None
                if (
                    before is not None
                    and not args.again
                    and before.digest == digest_of(grading, exercise.id)
                ):
                    known = excused_anew(course, grading, before)
                took = ", not run again"
                if known is None:
                    started = time.perf_counter()
                    known = score_exercise(warm, grading, course, exercise.id)
                    took = f", {time.perf_counter() - started:.0f} s"
                keep_score(course, name, known)
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
            "Publish it with: "
            + shlex.join(
                [
                    *("git", "-C", str(args.folder), "push", edition.address),
                    *("HEAD:main", edition.name),
                ]
            ),
            markup=False,
            soft_wrap=True,
        )
    if edition is not None:
        console.print(
            "In course.toml, chapters that `course release` gives out point "
            "there, too:\n\n"
            f'[edition]\naddress = "{edition.address}"\n'
            f'name = "{edition.name}"\nhost = "{edition.host}"',
            markup=False,
            soft_wrap=True,
        )
    return 0


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    one = command("build", build)
    one.add_argument("chapters", nargs="*", help=CHAPTERS)
    one.add_argument("--check", action="store_true", help="write nothing")
    one = command("new", new)
    one.add_argument("name", help="two digits and a name, as 16_distillation")
    one = command("try", try_exercise)
    one.add_argument("chapter", help=CHAPTER)
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
    one.add_argument("chapter", nargs="?", help=CHAPTER)
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
