"""`course demo`: an instructor's day, on a class that is made up."""

from __future__ import annotations

import argparse

from rich.table import Table

from course_grader.commands.grade import grade_class
from course_grader.commands.terminal import (
    CHAPTER,
    AddCommand,
    console,
    progress_bar,
)
from course_grader.course import Course


def demo(course: Course, args: argparse.Namespace) -> int:
    """An instructor's day on a synthetic class of 20, on a copy of the course."""
    from course_grader.classroom import demo as day
    from course_grader.classroom import gradebook, nbgrader_api
    from course_grader.classroom.marks_files import as_csv
    from course_grader.feedback import class_report
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
    glance = folder / f"{name}.html"
    glance.write_text(
        class_report(name, gradebook.reports(classroom, name), found),
        encoding="utf-8",
    )
    student = next(iter(notebooks))
    for what, where in (
        ("Marks", f"{grades}"),
        ("The class at a glance", f"{glance}"),
        ("A learner's page", f"{folder / student / name / name}.html"),
        ("In formgrader", f"course --course {copy.root} teach"),
    ):
        console.print(f"{what}: {where}", soft_wrap=True, markup=False)
    return 0


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    one = command("demo", demo)
    one.add_argument("chapter", nargs="?", default="03", help=CHAPTER)
