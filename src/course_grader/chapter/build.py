"""`course build`: writes the learner notebooks, or says that one is stale."""

from __future__ import annotations

import difflib

from nbformat import NotebookNode

from course_grader.chapter.grading import Grading, load_grading
from course_grader.chapter.notebook import (
    released_notebook,
    source_notebook,
    write,
)
from course_grader.chapter.refusals import (
    refuse_leaks,
    refuse_unknown_names,
)
from course_grader.course import Course


def build_chapter(
    course: Course, name: str, kit: str | None = None
) -> tuple[Grading, NotebookNode, NotebookNode]:
    """Builds a chapter in memory.

    Args:
        course: the course.
        name: the chapter's name.
        kit: address of the kit, if not the course's own.

    Returns:
        (grading, source, released): the instructor's and the learner's
        notebook.

    Raises:
        CourseError: the chapter is refused.
    """
    grading = load_grading(course, name)
    refuse_unknown_names(grading)
    source = source_notebook(grading.chapter, kit or course.kit_address)
    released = released_notebook(source)
    refuse_leaks(course, grading, released)
    return grading, source, released


def stale_diff(course: Course, name: str) -> str:
    """How the committed notebook differs from a fresh build; empty if not."""
    _, _, released = build_chapter(course, name)
    path = course.notebook_of(name)
    committed = path.read_text(encoding="utf-8") if path.exists() else ""
    return "".join(
        difflib.unified_diff(
            committed.splitlines(keepends=True),
            write(released).splitlines(keepends=True),
            f"{path.relative_to(course.root)} (committed)",
            f"{path.relative_to(course.root)} (built)",
        )
    )


def write_notebook(course: Course, name: str) -> bool:
    """Writes a chapter's learner notebook; whether it changed."""
    _, _, released = build_chapter(course, name)
    path = course.notebook_of(name)
    text = write(released)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True
