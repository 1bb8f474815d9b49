"""What a term needs: dates, solutions, a class put away, somebody forgotten."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.table import Table

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
    said,
)
from course_grader.course import Course, CourseError


def roster(course: Course, args: argparse.Namespace) -> int:
    """Says who is on the roster, or takes learners from a CSV file onto it."""
    from course_grader.classroom import collect_names, nbgrader_api
    from course_grader.classroom.roster_file import (
        alike,
        enter,
        read_roster,
    )

    classroom = nbgrader_api.open_classroom(course)
    if args.file is not None:
        enter(classroom, read_roster(args.file))
    found = sorted(
        collect_names.roster(classroom.coursedir), key=lambda one: one.id
    )
    if args.json:
        print_json(found)
        return 0
    if args.file is not None:
        console.print(f"{len(found)} learners are on the roster.")
        twice = alike(found)
        for sentence in twice:
            errors.print(sentence, markup=False, soft_wrap=True)
        return LOOK if twice else 0
    table = Table("id", "first name", "last name", "e-mail", "LMS id")
    for one in found:
        table.add_row(
            *(one.id, one.first_name, one.last_name),
            *(one.email, one.lms_user_id),
        )
    console.print(table)
    return 0


def due(course: Course, args: argparse.Namespace) -> int:
    """Says when chapters are due, and who has more time, or sets when one is."""
    from course_grader.classroom import nbgrader_api, term
    from course_grader.classroom.due_dates import announce

    classroom = nbgrader_api.open_classroom(course)
    if args.when is not None:
        name = course.chapter(args.chapter)
        term.set_due(classroom, name, term.parse_due(args.when, classroom.zone))
        announce(classroom)
    names = [] if args.chapter is None else [args.chapter]
    extensions = sorted(term.read_extensions(classroom.coursedir).items())
    found = [
        (
            name,
            term.due(classroom, name),
            {who: days for (who, of), days in extensions if of == name},
        )
        for name in chapters(course, names)
    ]
    if args.json:
        fields = ("chapter", "due", "days_more")
        print_json([dict(zip(fields, one, strict=True)) for one in found])
        return 0
    for name, moment, more in found:
        when = said(moment, classroom.zone)
        console.print(f"{name}: {f'due {when}' if when else 'no due date'}")
        for student, days in more.items():
            console.print(f"{student}: {_days(days)} more", markup=False)
    return 0


def _days(number: float) -> str:
    return f"{number:g} day" if number == 1 else f"{number:g} days"


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
            f"{student} has {_days(days)} more for {chapter}.", markup=False
        )
    return 0


def solutions(course: Course, args: argparse.Namespace) -> int:
    """Writes solved notebooks, of chapters whose due date has passed for all."""
    from course_grader.chapter.build import build_chapter
    from course_grader.chapter.notebook import solved_notebook, write
    from course_grader.classroom import nbgrader_api, term
    from course_grader.classroom.named_files import writing

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
        with writing(path):
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
    console.print(
        "What the file does not have: course.toml, and released chapters, which "
        "`course release CHAPTER` puts into the exchange again."
    )
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
    if args.json and not args.yes:
        print_json(deleting.places(classroom, args.student))
        return 0
    if not args.yes:
        for path in deleting.places(classroom, args.student):
            console.print(f"{path}", markup=False, soft_wrap=True)
        console.print(
            "Nothing was deleted. `--yes` deletes these, and all that the "
            f"gradebook, the roster and the files beside it have of "
            f"{args.student}. Archived terms and backups keep what they hold.",
            markup=False,
        )
        return 0
    number = deleting.forget(classroom, args.student)
    console.print(f"{args.student} is forgotten: {number} folders, all marks.")
    return 0


def register(command: AddCommand) -> None:
    """Adds these commands to the parser."""
    one = command("roster", roster)
    one.add_argument(
        "file",
        nargs="?",
        type=Path,
        help="with the columns id, first_name, last_name, email, lms_user_id",
    )
    add_json(one)
    one = command("due", due)
    one.add_argument("chapter", nargs="?", help=f"{CHAPTER}; none: all")
    add_json(one)
    one.add_argument(
        "when",
        nargs="?",
        help='such as "2026-12-01 18:00", in the course\'s time zone; a date '
        "alone is the end of that day",
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
    one = command("backup", backup)
    one.add_argument("file", type=Path, help="a .tar.gz that does not exist")
    one = command("restore", restore)
    one.add_argument("file", type=Path, help="what `course backup` wrote")
    one = command("new-term", new_term)
    one.add_argument("name", help="of the term that ends, as 2026-autumn")
    one = command("forget", forget)
    one.add_argument("student", help="the student's id")
    add_json(one)
    one.add_argument("--yes", action="store_true", help="really")
