"""What an instructor types: from releasing to the term's total."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from course_grader.course import Course, CourseError

if TYPE_CHECKING:
    from course_grader.classroom.nbgrader_api import Classroom


from course_grader.commands.grade import grade_class
from course_grader.commands.terminal import (
    CHAPTER,
    CHAPTERS,
    LOOK,
    chapters,
    console,
    errors,
    progress_bar,
)


def release(course: Course, args: argparse.Namespace) -> int:
    """Releases chapters to the exchange."""
    from course_grader.classroom import nbgrader_api
    from course_grader.classroom.due_dates import announce

    classroom = nbgrader_api.open_classroom(course)
    for name in chapters(course, args.chapters):
        nbgrader_api.release(classroom, name)
        console.print(f"{name}: released")
    announce(classroom)
    return 0


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
    grade_class(copy, args, name, 1)
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


def _known_chapters(classroom: Classroom, names: list[str]) -> list[str]:
    """The chapters that are named; else those that the gradebook knows."""
    from course_grader.classroom import gradebook

    known = gradebook.chapters(classroom)
    return chapters(classroom.course, names) if names else known


def _said(moment: datetime | None, classroom: Classroom) -> str:
    if moment is None:
        return ""
    return f"{moment.astimezone(classroom.zone):%Y-%m-%d %H:%M %Z}"


def _print_json(tree: Any) -> None:
    text = json.dumps(
        tree, ensure_ascii=False, indent=1, default=_plain, sort_keys=False
    )
    sys.stdout.write(text + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return dataclasses.asdict(value)


def collect(course: Course, args: argparse.Namespace) -> int:
    """Collects submissions from the exchange, or from an LMS's zip."""
    from course_grader.classroom import nbgrader_api

    classroom = nbgrader_api.open_classroom(course)
    if args.zip:
        return _collect_zip(course, classroom, args)
    for option in ("handed_in", "assign", "add_students"):
        if getattr(args, option):
            raise CourseError(
                f"--{option.replace('_', '-')} goes with --zip: the exchange "
                "says by itself who handed in, and when."
            )
    if args.chapter is None:
        raise CourseError("Say which chapter to collect from the exchange.")
    name = course.chapter(args.chapter)
    for line in nbgrader_api.collect(classroom, name).splitlines():
        console.print(line, markup=False)
    return 0


def _collect_zip(
    course: Course, classroom: Classroom, args: argparse.Namespace
) -> int:
    from course_grader.classroom import term
    from course_grader.classroom.collect_names import roster
    from course_grader.classroom.collect_times import parse_handed_in
    from course_grader.classroom.collect_zip import collect_zip

    if args.chapter is not None:
        raise CourseError(
            "An archive is collected whole, whatever chapters are in it: leave "
            f"{args.chapter} out."
        )
    students = roster(classroom.coursedir)
    assigned = dict(args.assign or ())
    strangers = set(assigned.values()) - {one.id for one in students}
    if strangers and not args.add_students:
        raise CourseError(
            f"On no roster: {', '.join(sorted(strangers))}; --add-students "
            "takes them in."
        )
    outcomes = collect_zip(
        args.zip,
        classroom.coursedir,
        course.chapters(),
        students,
        times=parse_handed_in(args.handed_in, students, classroom.zone),
        assigned=assigned,
        add_students=args.add_students,
    )
    for one in outcomes:
        said = f"{one.student}: {one.message}" if one.student else one.message
        console.print(said, markup=False)
    touched = {one.chapter for one in outcomes if one.path is not None}
    term.take_over_times(classroom, sorted(touched))
    if any("at an unknown time" in one.message for one in outcomes):
        console.print(
            "Of these the archive does not say when they were handed in; an "
            "unknown time costs nothing. `--handed-in` says where times stand."
        )
    if any(one.failed for one in outcomes):
        return 1
    return LOOK if any(one.needs_human for one in outcomes) else 0


def feedback(course: Course, args: argparse.Namespace) -> int:
    """Writes every graded learner's page and puts it into the exchange."""
    from course_grader.classroom import gradebook, nbgrader_api

    classroom = nbgrader_api.open_classroom(course)
    name = course.chapter(args.chapter)
    if not gradebook.reports(classroom, name):
        raise CourseError(
            f"Nothing of {name} is graded yet: run `course grade {name}`."
        )
    folder = nbgrader_api.feedback(classroom, name)
    console.print(f"The pages are in {folder}/STUDENT/{name}/.")
    if args.zip is not None:
        from course_grader.classroom.feedback_zip import pack_feedback

        packed = pack_feedback(classroom, name, args.zip)
        console.print(
            f"{args.zip} holds {len(packed.inside)} pages under the names that "
            "the work came with: upload it where you downloaded the work."
        )
        if packed.left_out:
            console.print(
                "Not in it, for their work did not come in an archive: "
                f"{', '.join(packed.left_out)}.",
                markup=False,
            )
    return 0


def report(course: Course, args: argparse.Namespace) -> int:
    """Writes the class at a glance: one page for a chapter, or for the term."""
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.collect_names import roster
    from course_grader.classroom.private import private_folder, write_private
    from course_grader.feedback import class_report
    from course_grader.feedback.termpage import term_report

    classroom = nbgrader_api.open_classroom(course)
    folder = Path(classroom.coursedir.root) / "feedback"
    if args.chapter is None:
        reports = {
            name: found
            for name in gradebook.chapters(classroom)
            if (found := gradebook.reports(classroom, name))
        }
        if not reports:
            raise CourseError(
                "Nothing is graded yet: `course grade CHAPTER` does it."
            )
        names = {
            one.id: f"{one.first_name} {one.last_name}".strip()
            for one in roster(classroom.coursedir)
        }
        marks = gradebook.marks(classroom, list(reports))
        page = term_report(reports, marks, names)
        path = args.to or folder / "term.html"
    else:
        name = course.chapter(args.chapter)
        found = gradebook.reports(classroom, name)
        if not found:
            raise CourseError(
                f"Nothing of {name} is graded yet: run `course grade {name}`."
            )
        page = class_report(name, found)
        path = args.to or folder / f"{name}.html"
    private_folder(path.parent)
    write_private(path, page)
    console.print(f"The class at a glance is in {path}.")
    return 0


def export(course: Course, args: argparse.Namespace) -> int:
    """Writes the marks as CSV, or as Canvas or Moodle imports them."""
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.collect_names import roster
    from course_grader.classroom.marks_files import FORMATS
    from course_grader.classroom.private import write_private

    classroom = nbgrader_api.open_classroom(course)
    chapters = _known_chapters(classroom, args.chapters)
    found = gradebook.marks(classroom, chapters)
    if not any(mark.points is not None or mark.look for mark in found):
        raise CourseError("Nothing is graded yet: `course grade CHAPTER` does.")
    students = {one.id: one for one in roster(classroom.coursedir)}
    text = FORMATS[args.format](found, students, classroom.zone)
    if args.to is None:
        sys.stdout.write(text)
    else:
        write_private(args.to, text)
        console.print(f"{len(found)} marks are in {args.to}.")
    for mark in found:
        if mark.look:
            errors.print(
                f"Look at {mark.student}, {mark.chapter}: {mark.look}",
                markup=False,
                soft_wrap=True,
            )
    return LOOK if any(mark.look for mark in found) else 0


def similar(course: Course, args: argparse.Namespace) -> int:
    """Shows answers that agree in what hardly anybody else writes."""
    from course_grader.chapter.grading import load_grading
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom import similar as comparing
    from course_grader.classroom.marks_files import handed_in_text
    from course_grader.classroom.private import private_folder, write_private
    from course_grader.feedback.similarpage import Row, similar_page

    classroom = nbgrader_api.open_classroom(course)
    name = course.chapter(args.chapter)
    notebooks = gradebook.graded_notebooks(classroom, name)
    if len(notebooks) < 2:
        raise CourseError(
            f"Two graded notebooks of {name} are the least: run `course grade "
            f"{name}`."
        )
    grading = load_grading(course, name)
    marks = {one.student: one for one in gradebook.marks(classroom, [name])}
    rows = []
    for exercise in grading.chapter.exercises:
        common = [exercise.source]
        common += [
            grading.answer_cell(one)
            for one in grading.answers_of(exercise.id)
            if one.right
        ]
        answers = comparing.answers_of(notebooks, exercise.id)
        rows += [
            (pair.rank, exercise.title, pair)
            for pair in comparing.similar(exercise.id, answers, common)
        ]
    rows.sort(key=lambda row: -row[0])
    shown = [
        Row(
            title,
            pair.first,
            pair.second,
            pair.likeness,
            handed_in_text(marks[pair.first], classroom.zone),
            handed_in_text(marks[pair.second], classroom.zone),
            pair.cells,
        )
        for _, title, pair in rows[: args.rows]
    ]
    path = (
        args.to
        or Path(classroom.coursedir.root) / "feedback" / f"{name}_similar.html"
    )
    private_folder(path.parent)
    write_private(path, similar_page(name, shown, len(notebooks)))
    console.print(f"{len(shown)} pairs of answers to look at are in {path}.")
    return 0


def due(course: Course, args: argparse.Namespace) -> int:
    """Says when a chapter is due, or sets it."""
    from course_grader.classroom import nbgrader_api, term
    from course_grader.classroom.due_dates import announce

    classroom = nbgrader_api.open_classroom(course)
    name = course.chapter(args.chapter)
    if args.when is not None:
        term.set_due(classroom, name, term.parse_due(args.when, classroom.zone))
        announce(classroom)
    moment = term.due(classroom, name)
    said = (
        "no due date" if moment is None else f"due {_said(moment, classroom)}"
    )
    console.print(f"{name}: {said}")
    for (student, chapter), days in sorted(
        term.read_extensions(classroom.coursedir).items()
    ):
        if chapter == name:
            console.print(f"{student}: {days:g} days more", markup=False)
    return 0


def extend(course: Course, args: argparse.Namespace) -> int:
    """Gives learners more time, before they hand in or after."""
    from course_grader.classroom import nbgrader_api, term

    classroom = nbgrader_api.open_classroom(course)
    every = course.chapters()
    if args.source is not None:
        given = term.read_extensions_file(args.source, every, course.chapter)
    elif args.days is None or not args.students:
        raise CourseError(
            "Say the days and the students, `course extend 2.5 ada bob "
            "--chapter 03`, or a file with --from."
        )
    else:
        chapters = [course.chapter(one) for one in args.chapter or ()] or every
        given = {
            (student, chapter): args.days
            for student in args.students
            for chapter in chapters
        }
    if any(days < 0 for days in given.values()):
        raise CourseError("A number of days is 0 or more.")
    term.extend(classroom, given)
    for (student, chapter), days in sorted(given.items()):
        console.print(
            f"{student} has {days:g} days more for {chapter}.", markup=False
        )
    return 0


def solutions(course: Course, args: argparse.Namespace) -> int:
    """Writes solved notebooks, of chapters whose due date has passed for all."""
    from datetime import timedelta

    from course_grader.chapter.build import build_chapter
    from course_grader.chapter.notebook import solved_notebook, write
    from course_grader.classroom import nbgrader_api, term

    classroom = nbgrader_api.open_classroom(course)
    extensions = term.read_extensions(classroom.coursedir)
    for name in chapters(course, args.chapters):
        moment = term.due(classroom, name)
        more = {who: d for (who, of), d in extensions.items() if of == name}
        if not args.now and (moment is None or moment > datetime.now(UTC)):
            raise CourseError(
                f"{name} has no due date that has passed: `course due {name} "
                '"2026-12-01 18:00"` sets one, `--now` writes its solutions '
                "all the same."
            )
        if not args.now and moment is not None:
            waiting = sorted(
                who
                for who, days in more.items()
                if moment + timedelta(days=days) > datetime.now(UTC)
            )
            if waiting:
                raise CourseError(
                    f"{name} is not due yet for {', '.join(waiting)}; `--now` "
                    "writes its solutions all the same."
                )
        _, source, _ = build_chapter(course, name)
        path = args.to / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(solved_notebook(source)), encoding="utf-8")
        console.print(f"{path}: written")
    return 0


def backup(course: Course, args: argparse.Namespace) -> int:
    """Writes the class, gradebook and people's work, into one file."""
    from course_grader.classroom import backup as whole
    from course_grader.classroom import nbgrader_api

    number = whole.backup(nbgrader_api.open_classroom(course), args.file)
    console.print(f"{args.file} holds {number} submissions.")
    return 0


def restore(course: Course, args: argparse.Namespace) -> int:
    """Puts a backup into a course that has no class yet."""
    from course_grader.classroom import backup as whole
    from course_grader.classroom import nbgrader_api

    number = whole.restore(nbgrader_api.open_classroom(course), args.file)
    console.print(f"{number} submissions of {args.file} are back.")
    return 0


def new_term(course: Course, args: argparse.Namespace) -> int:
    """Puts the class away into archive/NAME and begins an empty one."""
    from course_grader.classroom import backup as whole
    from course_grader.classroom import nbgrader_api

    kept = whole.new_term(nbgrader_api.open_classroom(course), args.name)
    console.print(
        f"The class is in {kept}. Begin with `course release` and a roster: "
        "docs/term.md."
    )
    return 0


def forget(course: Course, args: argparse.Namespace) -> int:
    """Deletes everything of one learner's."""
    from course_grader.classroom import forget as deleting
    from course_grader.classroom import nbgrader_api

    classroom = nbgrader_api.open_classroom(course)
    if not args.yes:
        for path in deleting.places(classroom, args.student):
            console.print(f"{path}", markup=False, soft_wrap=True)
        console.print(
            f"Nothing was deleted. `--yes` deletes these, the marks of "
            f"{args.student} and the line on the roster. Archived terms and "
            "backups keep what they hold.",
            markup=False,
        )
        return 0
    number = deleting.forget(classroom, args.student)
    console.print(f"{args.student} is forgotten: {number} folders, all marks.")
    return 0


def status(course: Course, args: argparse.Namespace) -> int:
    """Shows where each chapter stands: dates, late, missing, graded, to look at."""
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.chapter_status import chapters_status

    classroom = nbgrader_api.open_classroom(course)
    found = chapters_status(classroom)
    if args.json:
        _print_json(found)
        return 0
    students = len(gradebook.students(classroom))
    table = Table(
        *("chapter", "due", "released", "handed in", "late", "missing"),
        *("graded", "to look at", "feedback"),
        title=f"{students} on the roster",
    )
    for one in found:
        table.add_row(
            one.chapter,
            _said(one.due, classroom),
            "yes" if one.released else "no",
            str(one.handed_in),
            str(one.late),
            "" if one.missing is None else str(one.missing),
            str(one.graded),
            str(one.look),
            str(one.feedback),
        )
    console.print(table)
    return 0


def total(course: Course, args: argparse.Namespace) -> int:
    """Shows everybody's total of the term."""
    from course_grader.classroom import gradebook, nbgrader_api, term
    from course_grader.classroom.marks_files import totals_as_csv
    from course_grader.classroom.private import write_private
    from course_grader.classroom.total import totals

    classroom = nbgrader_api.open_classroom(course)
    chapters = _known_chapters(classroom, args.chapters)
    found = gradebook.marks(classroom, chapters)
    last = datetime.max.replace(tzinfo=UTC)
    order = sorted(
        chapters, key=lambda name: (term.due(classroom, name) or last, name)
    )
    made = totals(course, found, order)
    if args.to is not None:
        write_private(args.to, totals_as_csv(made, order))
        console.print(f"{len(made)} totals are in {args.to}.")
    elif args.json:
        _print_json(made)
    else:
        table = Table(
            *("learner", "name", "percent", *(name[:2] for name in order)),
            *("late days", "forgiven", "to look at"),
        )
        for one in made:
            table.add_row(
                one.student,
                one.name,
                f"{one.percent:.1f}",
                *(f"{one.by_chapter[name]:g}" for name in order),
                str(one.late_days),
                str(one.forgiven),
                " ".join(name[:2] for name in one.look),
            )
        console.print(table)
    return LOOK if any(one.look for one in made) else 0


def lms(course: Course, args: argparse.Namespace) -> int:
    """Takes roster, due dates and hand-in times from Canvas or Moodle, or gives
    a chapter's marks and feedback."""
    from course_grader.classroom import lms as web
    from course_grader.classroom import lms_exchange, nbgrader_api

    classroom = nbgrader_api.open_classroom(course)
    numbers = web.assignments(course)
    system = web.open_system(course)
    if args.chapter is None:
        if args.send:
            raise CourseError("Say which chapter to send: `course lms 03`.")
        for line in lms_exchange.take(classroom, system, numbers):
            console.print(line, markup=False)
        return 0
    name = course.chapter(args.chapter)
    if name not in numbers:
        raise CourseError(
            f"course.toml: [lms] assignments does not name {name}."
        )
    given = lms_exchange.to_give(classroom, name)
    for one in given:
        said = f"{one.student}: {one.points:g} points"
        console.print(
            f"{said}, with a page" if one.page else said, markup=False
        )
    if not args.send:
        console.print("Nothing was sent. `--send` sends this.")
        return 0
    failed = 0
    for one in given:
        try:
            system.give(numbers[name], one.user, one.points, one.page)
        except (CourseError, OSError) as error:
            failed += 1
            console.print(f"{one.student}: not sent. {error}", markup=False)
    console.print(f"{len(given) - failed} marks are there.")
    return 1 if failed else 0


ABOUT_PEOPLE = (
    *(collect, report, export, backup, restore, total, feedback),
    *(extend, new_term, similar, lms, forget),
)
"""What these write nobody else may read."""


_GRADED = "names or numbers; all that the gradebook knows if none is given"


def register(
    command: Callable[
        [str, Callable[[Course, argparse.Namespace], int]],
        argparse.ArgumentParser,
    ],
) -> None:
    """Adds these commands to the parser."""
    one = command("release", release)
    one.add_argument("chapters", nargs="*", help=CHAPTERS)
    one = command("demo", demo)
    one.add_argument("chapter", nargs="?", default="03", help=CHAPTER)
    one = command("collect", collect)
    one.add_argument("chapter", nargs="?", help=CHAPTER)
    one.add_argument(
        "--zip",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="archives or folders downloaded from an LMS",
    )
    one.add_argument(
        "--handed-in",
        metavar="zip|FILE.csv|TIME",
        help="where hand-in times stand; an LMS's archive does not have them",
    )
    one.add_argument(
        "--assign",
        nargs=2,
        action="append",
        metavar=("FILE", "STUDENT"),
        help="whose a file is, by its name or by what collect said of it",
    )
    one.add_argument(
        "--add-students",
        action="store_true",
        help="collect from those who are not on the roster, too",
    )
    one = command("feedback", feedback)
    one.add_argument("chapter", help=CHAPTER)
    one.add_argument(
        "--zip",
        type=Path,
        metavar="FILE",
        help="the pages as Moodle and Canvas take them back",
    )
    one = command("report", report)
    one.add_argument("chapter", nargs="?", help=f"{CHAPTER}; none: the term")
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="the file to write"
    )
    one = command("similar", similar)
    one.add_argument("chapter", help=CHAPTER)
    one.add_argument(
        "--rows", type=int, default=25, help="most pairs; 25 if not given"
    )
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="the page to write"
    )
    one = command("due", due)
    one.add_argument("chapter", help=CHAPTER)
    one.add_argument(
        "when",
        nargs="?",
        help='such as "2026-12-01 18:00", in the course\'s time zone',
    )
    one = command("extend", extend)
    one.add_argument("days", nargs="?", type=float, help="0 takes it back")
    one.add_argument("students", nargs="*", help="ids of the roster")
    one.add_argument(
        "--chapter",
        nargs="+",
        metavar="CHAPTER",
        help="of these; of all if not given",
    )
    one.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="a CSV file with the columns student, days and chapter",
    )
    one = command("solutions", solutions)
    one.add_argument("chapters", nargs="*", help=CHAPTERS)
    one.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="where to"
    )
    one.add_argument(
        "--now", action="store_true", help="before the chapter is due, too"
    )
    one = command("export", export)
    one.add_argument("chapters", nargs="*", help=_GRADED)
    one.add_argument(
        "--format",
        choices=("csv", "canvas", "moodle"),
        default="csv",
        help="csv if not given",
    )
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="the file to write"
    )
    one = command("total", total)
    one.add_argument("chapters", nargs="*", help=_GRADED)
    one.add_argument("--json", action="store_true", help="for programs")
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="a CSV file to write"
    )
    one = command("lms", lms)
    one.add_argument(
        "chapter", nargs="?", help="whose marks to give; none: take"
    )
    one.add_argument("--send", action="store_true", help="really")
    one = command("status", status)
    one.add_argument("--json", action="store_true", help="for programs")
    one = command("backup", backup)
    one.add_argument("file", type=Path, help="a .tar.gz that does not exist")
    one = command("restore", restore)
    one.add_argument("file", type=Path, help="what `course backup` wrote")
    one = command("new-term", new_term)
    one.add_argument("name", help="of the term that ends, as 2026-autumn")
    one = command("forget", forget)
    one.add_argument("student", help="the student's id")
    one.add_argument("--yes", action="store_true", help="really")
