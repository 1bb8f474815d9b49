"""`course demo`: an instructor's day on a synthetic class.

Works on a copy of the course, so that nothing of a real class is touched.
"""

from __future__ import annotations

import copy
import random
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeSubmit

from course_grader.chapter.build import build_chapter
from course_grader.chapter.grading import Grading
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.course import Course

NAMES = (
    "ada",
    "alan",
    "barbara",
    "claude",
    "dorothy",
    "edsger",
    "emmy",
    "frances",
    "grace",
    "hedy",
    "john",
    "karen",
    "katherine",
    "kurt",
    "leslie",
    "margaret",
    "niklaus",
    "radia",
    "sophie",
    "tim",
)


def copy_course(course: Course, folder: Path) -> Course:
    """A fresh copy of the course without its class."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in course.chapters():
        for room in ("solutions", "autograde"):
            shutil.copytree(
                course.root / room / name,
                folder / room / name,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
    shutil.copyfile(
        course.autograde / "nbgrader_config.py",
        folder / "autograde" / "nbgrader_config.py",
    )
    shutil.copyfile(course.root / "pyproject.toml", folder / "pyproject.toml")
    # not the instructor's settings, which may name a real exchange
    made = Course(folder)
    made.settings_file.write_text(
        course.settings_of_grading(), encoding="utf-8"
    )
    return made


def answered(
    grading: Grading, released: NotebookNode, chosen: dict[str, str]
) -> NotebookNode:
    """A released notebook with answers written into its exercise cells.

    Args:
        grading: the chapter's grading.
        released: the learner notebook.
        chosen: the new source of the exercise cell by exercise id.
    """
    notebook = nbformat.from_dict(released)
    ids = {one.id for one in grading.chapter.exercises}
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in ids and grade_id in chosen:
            cell.source = chosen[grade_id]
    return notebook


def synthetic_class(
    course: Course, chapter: str, seed: int = 0
) -> dict[str, NotebookNode]:
    """A notebook by each of twenty learners made from the answer bank: some
    perfect, most partly wrong, some unfinished."""
    grading, _, released = build_chapter(course, chapter)
    rng = random.Random(seed)
    handed_in = {}
    for number, name in enumerate(NAMES):
        chosen = {}
        for exercise in grading.chapter.exercises:
            answers = [
                one
                for one in grading.answers_of(exercise.id)
                if not one.ends_process or number == 13
            ]
            right = [one for one in answers if one.right]
            wrong = [one for one in answers if not one.right]
            luck = rng.random()
            if number < 5 or luck < 0.45:
                chosen[exercise.id] = grading.answer_cell(rng.choice(right))
            elif luck < 0.9:
                chosen[exercise.id] = grading.answer_cell(rng.choice(wrong))
        handed_in[name] = answered(grading, released, chosen)
    return handed_in


def submit(
    classroom: Classroom, chapter: str, student: str, notebook: NotebookNode
) -> None:
    """Hands a notebook in through the exchange, as the student's own nbgrader
    would."""
    home = classroom.course.work / student
    folder = home / chapter
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{chapter}.ipynb")
    config = copy.deepcopy(classroom.config)
    config.Exchange.assignment_dir = str(home)
    config.Exchange.cache = str(home / ".cache")
    config.CourseDirectory.assignment_id = chapter
    config.CourseDirectory.student_id = student
    ExchangeSubmit(
        coursedir=CourseDirectory(config=config),
        authenticator=Authenticator(config=config),
        config=config,
    ).start()
