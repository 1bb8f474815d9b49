"""What an instructor looks up: where a class stands, and its marks."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Column, Table

from course_grader.commands.terminal import (
    CHAPTER,
    LOOK,
    AddCommand,
    add_json,
    chapters,
    console,
    errors,
    print_json,
    said,
)
from course_grader.course import Course, CourseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from course_grader.classroom.gradebook import Mark
    from course_grader.classroom.nbgrader_api import Classroom

_GRADED = "names or numbers; all that the gradebook knows if none is given"


def _known_chapters(classroom: Classroom, names: list[str]) -> list[str]:
    """The chapters that are named; else those that the gradebook knows."""
    from course_grader.classroom import gradebook

    known = gradebook.chapters(classroom)
    return chapters(classroom.course, names) if names else known


def status(course: Course, args: argparse.Namespace) -> int:
    """Shows where each chapter stands: dates, late, missing, graded, to look at."""
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.chapter_status import chapters_status

    classroom = nbgrader_api.open_classroom(course)
    found = chapters_status(classroom)
    if args.json:
        print_json(found)
        return 0
    students = len(gradebook.students(classroom))
    # whole in 80 columns, and nothing is cut where there are fewer
    narrow = ["due", "re-\nleased", "handed\nin", "late", "miss-\ning"]
    narrow += ["graded", "to\nlook\nat", "feed-\nback"]
    table = Table(
        Column("chapter", overflow="fold"),
        *(Column(one, no_wrap=True) for one in narrow),
        title=f"{students} on the roster",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
        pad_edge=False,
    )
    for one in found:
        counts = (
            *(one.handed_in, one.late, one.missing),
            *(one.graded, one.look, one.feedback),
        )
        begun = one.released or any(counts)
        table.add_row(
            one.chapter,
            said(one.due, classroom.zone).replace(" ", "\n", 1),
            "yes" if one.released else "no",
            *(str(n) if begun and n is not None else "" for n in counts),
        )
    console.print(table)
    return 0


def report(course: Course, args: argparse.Namespace) -> int:
    """Writes the class at a glance: one page for a chapter, or for the term."""
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.collect_names import roster
    from course_grader.classroom.named_files import writing
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
        page = class_report(name, found, gradebook.marks(classroom, [name]))
        path = args.to or folder / f"{name}.html"
    with writing(path):
        private_folder(path.parent)
        write_private(path, page)
    console.print(f"The class at a glance is in {path}.")
    return 0


def similar(course: Course, args: argparse.Namespace) -> int:
    """Shows answers that agree in what hardly anybody else writes."""
    from course_grader.chapter.build import build_chapter
    from course_grader.chapter.grading import load_grading
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom import similar as comparing
    from course_grader.classroom.marks_files import handed_in_text
    from course_grader.classroom.named_files import writing
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
    _, _, released = build_chapter(course, name)
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
        handed_out = comparing.answers_of({"": released}, exercise.id)[""]
        rows += [
            (pair.rank, exercise.title, pair)
            for pair in comparing.similar(
                exercise.id, answers, common, handed_out
            )
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
    if args.json:
        print_json(
            [
                {"title": title, "rank": rank, **dataclasses.asdict(pair)}
                for rank, title, pair in rows[: args.rows]
            ]
        )
        return 0
    with writing(path):
        private_folder(path.parent)
        write_private(path, similar_page(name, shown, len(notebooks)))
    console.print(f"{len(shown)} pairs of answers to look at are in {path}.")
    return 0


def export(course: Course, args: argparse.Namespace) -> int:
    """Writes the marks as CSV, or as Canvas or Moodle imports them."""
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.collect_names import roster
    from course_grader.classroom.marks_files import FORMATS, unknown_to_moodle
    from course_grader.classroom.named_files import writing
    from course_grader.classroom.private import write_private

    classroom = nbgrader_api.open_classroom(course)
    chapters = _known_chapters(classroom, args.chapters)
    found = gradebook.marks(classroom, chapters)
    if not any(mark.points is not None or mark.look for mark in found):
        raise CourseError("Nothing is graded yet: `course grade CHAPTER` does.")
    students = {one.id: one for one in roster(classroom.coursedir)}
    if args.json:
        print_json(found)
        return LOOK if any(mark.look for mark in found) else 0
    text = FORMATS[args.format](found, students, classroom.zone)
    if args.to is None:
        sys.stdout.write(text)
    else:
        with writing(args.to):
            write_private(args.to, text)
        console.print(f"{args.to}: written.", soft_wrap=True)
    left_out = (
        unknown_to_moodle(found, students) if args.format == "moodle" else []
    )
    return _say_who_to_look_at(found, left_out)


def _say_who_to_look_at(found: Sequence[Mark], left_out: Sequence[str]) -> int:
    """Names whose work or row somebody should look at; the exit code."""
    said = [
        f"{student} is not in it: by an empty ID number or e-mail address Moodle "
        "would take the row for the one above it. `course roster` takes both in."
        for student in left_out
    ]
    said += [
        f"Look at {mark.student}, {mark.chapter}: {mark.look}"
        for mark in found
        if mark.look
    ]
    for line in said:
        errors.print(line, markup=False, soft_wrap=True)
    return LOOK if said else 0


def total(course: Course, args: argparse.Namespace) -> int:
    """Shows everybody's total of the term."""
    from course_grader.classroom import gradebook, nbgrader_api, term
    from course_grader.classroom.marks_files import totals_as_csv
    from course_grader.classroom.named_files import writing
    from course_grader.classroom.private import write_private
    from course_grader.classroom.total import totals

    classroom = nbgrader_api.open_classroom(course)
    chapters = _known_chapters(classroom, args.chapters)
    found = gradebook.marks(classroom, chapters)
    if not any(mark.points is not None or mark.look for mark in found):
        raise CourseError("Nothing is graded yet: `course grade CHAPTER` does.")
    last = datetime.max.replace(tzinfo=UTC)
    order = sorted(
        chapters, key=lambda name: (term.due(classroom, name) or last, name)
    )
    made = totals(course, found, order)
    if args.to is not None:
        with writing(args.to):
            write_private(args.to, totals_as_csv(made, order))
        console.print(f"{len(made)} totals are in {args.to}.")
    elif args.json:
        print_json(made)
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


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    one = command("status", status)
    add_json(one)
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
    add_json(one)
    one = command("export", export)
    one.add_argument("chapters", nargs="*", help=_GRADED)
    one.add_argument(
        "--format",
        choices=("csv", "canvas", "moodle"),
        default="csv",
        help="csv if not given",
    )
    add_json(one)
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="the file to write"
    )
    one = command("total", total)
    one.add_argument("chapters", nargs="*", help=_GRADED)
    add_json(one)
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="a CSV file to write"
    )
