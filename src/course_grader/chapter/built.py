"""The learners' notebook as it was built: to build it once more, nbgrader has to be
imported, which takes as long as torch."""

from __future__ import annotations

import contextlib
import re

import nbformat
from nbformat import NotebookNode

from course_grader.chapter.grading import Grading
from course_grader.chapter.links import titles_of
from course_grader.chapter.notebook import source_notebook
from course_grader.course import Course

_HIDDEN = re.compile(
    r"\n?[ ]*### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?### END \1", re.DOTALL
)
"""What a release does without: it says something else there, or nothing."""


def built_notebook(course: Course, grading: Grading) -> NotebookNode | None:
    """The chapter's notebook of `notebooks/`, where it is what its source says now:
    the same cells with the same texts around what is hidden, and the same points.
    None where there is none, or another."""
    source = source_notebook(grading, titles_of(course), None)
    with contextlib.suppress(OSError, ValueError, nbformat.ValidationError):
        path = course.notebook_of(grading.chapter.name)
        built: NotebookNode = nbformat.read(path, as_version=4)
        if len(built.cells) == len(source.cells) and all(
            map(_is_release_of, built.cells, source.cells)
        ):
            return built
    return None


def _is_release_of(built: NotebookNode, source: NotebookNode) -> bool:
    known = built.metadata.get("nbgrader", {})
    graded = source.metadata.get("nbgrader", {})
    return (
        (built.get("id"), built.cell_type) == (source.id, source.cell_type)
        and bool(known) == bool(graded)
        and all(
            known.get(name) == value
            for name, value in graded.items()
            if name != "locked"
        )
        and _is_text_of(built.source, source.source)
    )


def _is_text_of(built: str, source: str) -> bool:
    around = _HIDDEN.sub("\0", source).split("\0")
    pattern = ".*".join(map(re.escape, around))
    return re.fullmatch(pattern, built, re.DOTALL) is not None
