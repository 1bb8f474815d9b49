"""What goes out to learners and comes back: the exchange, archives, an LMS."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from course_grader.commands.terminal import (
    CHAPTER,
    CHAPTERS,
    LOOK,
    AddCommand,
    add_json,
    chapters,
    console,
    errors,
    print_json,
)
from course_grader.course import Course, CourseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from course_grader.classroom.collect_versions import Outcome
    from course_grader.classroom.nbgrader_api import Classroom


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
    outcomes = nbgrader_api.collect(classroom, name)
    if not outcomes and not args.json:
        console.print(f"The exchange has no submissions of {name}.")
    return _say(outcomes, args.json)


def _say(outcomes: Sequence[Outcome], as_json: bool) -> int:
    """Says what became of what was handed in; the exit code."""
    if as_json:
        print_json(outcomes)
    for one in () if as_json else outcomes:
        who = f"{one.student}: " if one.student else ""
        console.print(f"{who}{one.message}", markup=False)
    if any(one.failed for one in outcomes):
        return 1
    return LOOK if any(one.needs_human for one in outcomes) else 0


def _collect_zip(
    course: Course, classroom: Classroom, args: argparse.Namespace
) -> int:
    from course_grader.classroom import term
    from course_grader.classroom.collect_names import Student, roster
    from course_grader.classroom.collect_times import parse_handed_in
    from course_grader.classroom.collect_zip import collect_zip
    from course_grader.classroom.roster_file import enter

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
    times = parse_handed_in(args.handed_in, students, classroom.zone)
    outcomes = collect_zip(
        args.zip,
        classroom.coursedir,
        course.chapters(),
        students,
        times=times,
        assigned=assigned,
        add_students=args.add_students,
    )
    if args.add_students:
        known = {one.id for one in students}
        collected = {one.student for one in outcomes if one.path is not None}
        enter(classroom, [Student(id=who) for who in sorted(collected - known)])
    touched = {one.chapter for one in outcomes if one.path is not None}
    term.take_over_times(classroom, sorted(touched))
    code = _say(outcomes, args.json)
    said = [
        f"{args.handed_in} names {who}, nobody here." for who in times.strangers
    ]
    if not outcomes:
        given = ", ".join(map(str, args.zip))
        said.append(f"No notebook was found in {given}.")
    for line in said:
        errors.print(line, markup=False, soft_wrap=True)
    code = code or (LOOK if said else 0)
    unknown = any("at an unknown time" in one.message for one in outcomes)
    if unknown and not args.json:
        console.print(
            "Of these the archive does not say when they were handed in; an "
            "unknown time costs nothing. `--handed-in` says where times stand."
        )
    return code


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
        from course_grader.classroom.named_files import writing

        with writing(args.zip):
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
        taken = lms_exchange.take(classroom, system, numbers)
        if args.json:
            print_json(list(taken))
            return 0
        for line in taken:
            console.print(line, markup=False)
        return 0
    name = course.chapter(args.chapter)
    if name not in numbers:
        raise CourseError(
            f"course.toml: [lms] assignments does not name {name}."
        )
    given = lms_exchange.to_give(classroom, name)
    if args.json and not args.send:
        print_json(given)
        return 0
    for one in given:
        said = f"{one.student}: {one.points:g} points"
        if one.there:
            said += ", there already"
        console.print(
            f"{said}, with a page" if one.page else said, markup=False
        )
    if not args.send:
        console.print("Nothing was sent. `--send` sends this.")
        return 0
    failed = 0
    for one in given:
        if one.there:
            continue
        try:
            system.give(numbers[name], one.user, one.points, one.page)
            lms_exchange.note_sent(classroom, name, one)
        except (CourseError, OSError) as error:
            failed += 1
            console.print(f"{one.student}: not sent. {error}", markup=False)
    console.print(f"{len(given) - failed} marks are there.")
    return 1 if failed else 0


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    one = command("release", release)
    one.add_argument("chapters", nargs="*", help=CHAPTERS)
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
    add_json(one)
    one = command("feedback", feedback)
    one.add_argument("chapter", help=CHAPTER)
    one.add_argument(
        "--zip",
        type=Path,
        metavar="FILE",
        help="the pages as Moodle and Canvas take them back",
    )
    one = command("lms", lms)
    one.add_argument(
        "chapter", nargs="?", help="whose marks to give; none: take"
    )
    one.add_argument("--send", action="store_true", help="really")
    add_json(one)
