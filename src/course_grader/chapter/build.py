"""`course build`: writes learner notebooks, the tables of claims and statements,
and README's table of chapters."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from course_grader.chapter.claims import (
    claims_page,
    read_claims,
    refuse_unshown_claims,
)
from course_grader.chapter.edition import Edition
from course_grader.chapter.grading import Grading, load_grading
from course_grader.chapter.links import titles_of
from course_grader.chapter.notebook import source_notebook, write
from course_grader.chapter.readme import with_table
from course_grader.chapter.refusals import (
    refuse_leaks,
    refuse_taken_names,
    refuse_unknown_names,
)
from course_grader.chapter.release import for_nbgrader, released_notebook
from course_grader.chapter.source import Role
from course_grader.chapter.statements import statements_page
from course_grader.chapter.task import refuse_task
from course_grader.course import Course


def build_chapter(
    course: Course, name: str, edition: Edition | None = None
) -> tuple[Grading, NotebookNode, NotebookNode]:
    """Builds a chapter in memory.

    Args:
        course: the course.
        name: the chapter's name.
        edition: that it is built for, if it is published.

    Returns:
        (grading, source, released): the instructor's and the learner's
        notebook.

    Raises:
        CourseError: the chapter is refused.
    """
    grading = load_grading(course, name)
    refuse_unknown_names(grading)
    refuse_taken_names(grading.chapter)
    refuse_unshown_claims(read_claims(course), grading.chapter)
    for cell in grading.chapter.cells:
        if cell.role is Role.TASK:
            exercise = grading.chapter.exercise(cell.name)
            refuse_task(grading.chapter, exercise, cell.source)
    source = for_nbgrader(source_notebook(grading, titles_of(course), edition))
    released = released_notebook(source)
    refuse_leaks(course, grading, released)
    return grading, source, released


def built_files(course: Course, chapters: Sequence[str]) -> dict[Path, str]:
    """What `course build` writes, by its file.

    Raises:
        CourseError: a chapter is refused.
    """
    files = {}
    for name in chapters:
        _, _, released = build_chapter(course, name)
        files[course.notebook_of(name)] = write(released)
    claims = read_claims(course)
    if claims:
        files[course.root / "docs" / "claims.md"] = claims_page(claims)
    statements = statements_page(course)
    if statements:
        files[course.root / "docs" / "statements.md"] = statements
    readme = course.root / "README.md"
    if readme.exists():
        files[readme] = with_table(course, readme.read_text(encoding="utf-8"))
    return files


def stale_diff(course: Course, path: Path, built: str) -> str:
    """How a committed file differs from what is built; empty if it does not."""
    committed = path.read_text(encoding="utf-8") if path.exists() else ""
    name = path.relative_to(course.root)
    return "".join(
        difflib.unified_diff(
            committed.splitlines(keepends=True),
            built.splitlines(keepends=True),
            f"{name} (committed)",
            f"{name} (built)",
        )
    )
