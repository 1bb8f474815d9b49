"""From a chapter's source to the instructor's notebook, and what else is made of a
notebook but the release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_grader.chapter.edition import Edition
from course_grader.chapter.folds import with_solution
from course_grader.chapter.links import Titles, linked, neighbours
from course_grader.chapter.source import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    Cell,
    Chapter,
    Level,
    Role,
)
from course_grader.chapter.task import (
    heading,
    points_text,
    with_contract,
)

if TYPE_CHECKING:  # it imports torch, which the learner's server has no use for
    from course_grader.chapter.grading import Grading

INSTALL_CELL_ID = "setup-course-utils"
SUMMARY_CELL_ID = "summary"
END_CELL_ID = "other-chapters"

_INSTALL = """\
# Brings the course's package where it is missing, as on Colab. Silent where
# there is nothing to do; running it again does no harm.
import importlib.util
import subprocess
import sys
from pathlib import Path


class CourseUtilsMissing(Exception):
    def _render_traceback_(self):  # the sentence is all there is to see
        return [str(self)]


if importlib.util.find_spec("course_utils") is None:
    here, kaggle = Path.cwd(), Path("/kaggle/input")
    folders = [here, *here.parents[:2], *kaggle.glob("*")]
    wheels = [str(w) for f in folders for w in f.glob("course_utils-*.whl")]
{published}\
    if not wheels:
        raise CourseUtilsMissing(
            "The course's package is missing: put the file course_utils-….whl "
            "of the course beside this notebook (on Colab, upload it in the "
            "file pane on the left) and run this cell again."
        )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", wheels[0]]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        raise CourseUtilsMissing(
            f"pip could not install {{wheels[0]}}; its last words were: "
            + (done.stderr.strip() or "none").splitlines()[-1]
        )
    importlib.invalidate_caches()\
"""

_PUBLISHED = """\
    wheels.append({wheel!r})
"""

_SUMMARY = """\
# What you answered, and what is open.
from course_utils import summary

summary({names})\
"""

_GRADE = """\
# Graded by hidden checks after you submit: {points}.
### BEGIN HIDDEN TESTS
from course_grader.judge.inprocess import grade

grade({chapter!r}, {exercise!r}, globals())
### END HIDDEN TESTS\
"""


def visible_check_id(exercise_id: str) -> str:
    """The grade_id of an exercise's visible check."""
    return f"{exercise_id}_visible"


def grade_cell_id(exercise_id: str) -> str:
    """The grade_id of an exercise's grade cell, which carries its points."""
    return f"{exercise_id}_hidden"


def source_notebook(
    grading: Grading, titles: Titles, edition: Edition | None
) -> NotebookNode:
    """The instructor's notebook: solutions and hidden-test regions included, and
    the version of nbgrader's metadata left out.

    Args:
        grading: the chapter and its checks.
        titles: of all chapters.
        edition: that it is part of, if it is published.
    """
    published = (
        "" if edition is None else _PUBLISHED.format(wheel=edition.wheel_url)
    )
    first, *others = grading.chapter.cells
    cells: list[NotebookNode] = [
        new_markdown_cell(
            _title_text(grading.chapter, first, titles, edition), id=first.id
        ),
        new_code_cell(
            _INSTALL.format(published=published),
            id=INSTALL_CELL_ID,
        ),
        *(_cell(grading, cell, titles) for cell in others),
    ]
    names = ", ".join(f'"{one.id}"' for one in grading.chapter.exercises)
    cells.append(
        new_code_cell(_SUMMARY.format(names=names), id=SUMMARY_CELL_ID)
    )
    end = neighbours(grading.chapter.name, titles)
    if end:
        cells.append(new_markdown_cell(end, id=END_CELL_ID))
    return new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
    )


def solved_notebook(source: NotebookNode) -> NotebookNode:
    """What learners get after the deadline: solutions, and nothing to grade."""
    notebook = nbformat.from_dict(source)
    kept = []
    for cell in notebook.cells:
        metadata = cell.metadata.pop("nbgrader", {})
        if metadata.get("grade") and metadata.get("points"):
            continue
        cell.source = "\n".join(
            line
            for line in cell.source.splitlines()
            if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION)
        )
        kept.append(cell)
    notebook.cells = kept
    return notebook


def with_solution_folds(
    notebook: NotebookNode, chapter: Chapter
) -> NotebookNode:
    """A learner's notebook in which each exercise's text ends in its solution,
    folded: for somebody who learns alone."""
    notebook = nbformat.from_dict(notebook)
    by_cell = {
        cell.id: chapter.exercise(cell.name)
        for cell in chapter.cells
        if cell.role is Role.TASK
    }
    for cell in notebook.cells:
        if cell.id in by_cell:
            solution = by_cell[cell.id].solution
            cell.source = with_solution(cell.source, solution)
    return notebook


def write(notebook: NotebookNode) -> str:
    """A notebook as the text of its file."""
    return nbformat.writes(notebook, version=4) + "\n"


def _cell(grading: Grading, cell: Cell, titles: Titles) -> NotebookNode:
    chapter = grading.chapter
    text, nbgrader = cell.source, None
    exercise = (
        chapter.exercise(cell.name)
        if cell.role in (Role.TASK, Role.EXERCISE, Role.CHECK, Role.GRADE)
        else None
    )
    match cell.role:
        case Role.READING if cell.folded:
            # Colab shows this line in place of a folded cell
            text = f"#@title {cell.folded}\n{text}"
        case Role.SETUP:
            nbgrader = _metadata(f"setup_{cell.name}", locked=True)
        case Role.TASK:
            assert exercise is not None
            text = with_contract(text, grading.checks_of(exercise.id))
            builds_on = linked(exercise.builds_on, titles)
            text = f"{heading(chapter, exercise, builds_on)}\n\n{text}"
        case Role.EXERCISE:
            nbgrader = _metadata(cell.name, solution=True)
        case Role.CHECK:
            nbgrader = _metadata(
                visible_check_id(cell.name), grade=True, locked=True, points=0
            )
        case Role.GRADE:
            assert exercise is not None
            text = _GRADE.format(
                points=points_text(exercise.points),
                chapter=chapter.name,
                exercise=exercise.id,
            )
            nbgrader = _metadata(
                grade_cell_id(cell.name),
                grade=True,
                locked=True,
                points=exercise.points,
            )
    metadata: dict[str, Any] = (
        {} if nbgrader is None else {"nbgrader": nbgrader}
    )
    if cell.folded:
        # JupyterLab's word for a folded cell, and Colab's
        metadata |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
    new = new_markdown_cell if cell.markdown else new_code_cell
    node: NotebookNode = new(text, id=cell.id, metadata=metadata)
    if nbgrader is not None:
        nbgrader["cell_type"] = node.cell_type
    return node


def _metadata(
    grade_id: str,
    *,
    grade: bool = False,
    solution: bool = False,
    locked: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        metadata["points"] = int(points) if points == int(points) else points
    return metadata


def _title_text(
    chapter: Chapter, cell: Cell, titles: Titles, edition: Edition | None
) -> str:
    """The first cell: title, links, what the author wrote, time and
    prerequisites."""
    title, _, rest = cell.source.partition("\n")
    core = chapter.minutes(Level.CORE)
    return "\n\n".join(
        filter(
            None,
            [
                title,
                _badge(chapter, edition),
                neighbours(chapter.name, titles),
                rest.strip(),
                f"**Time:** {chapter.reading_minutes} minutes to read, "
                f"{chapter.minutes()} minutes of exercises, {core} of them "
                "core.\\\n"
                f"**Builds on:** {linked(chapter.builds_on, titles)}.",
            ],
        )
    )


def _badge(chapter: Chapter, edition: Edition | None) -> str:
    """The link that opens the chapter in Colab; empty where Colab cannot."""
    path = f"notebooks/{chapter.name}/{chapter.name}.ipynb"
    address = None if edition is None else edition.colab(path)
    if address is None:
        return ""
    return (
        "[![Open in Colab](https://colab.research.google.com/assets/"
        f"colab-badge.svg)]({address})"
    )
