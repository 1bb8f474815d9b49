"""How chapters point to one another: previous, next, and what one builds on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from course_grader.chapter.source import read_title
from course_grader.course import Course, CourseError

Titles = Mapping[str, str]
"""The title of every chapter by its name, in order."""


def titles_of(course: Course) -> Titles:
    """The titles of a course's chapters."""
    return {
        name: read_title(course.source_of(name)) for name in course.chapters()
    }


def neighbours(name: str, titles: Titles) -> str:
    """The line that leads from a chapter to the previous and the next; empty in
    a course of one chapter."""
    names = list(titles)
    place = names.index(name)
    found = []
    if place > 0:
        before = names[place - 1]
        found.append(f"[← {titles[before]}]({_path(before)})")
    if place + 1 < len(names):
        after = names[place + 1]
        found.append(f"[{titles[after]} →]({_path(after)})")
    return " · ".join(found)


def linked(words: str, titles: Titles) -> str:
    """The words with every "chapter 02" as a link to it.

    Raises:
        CourseError: there is no such chapter.
    """

    def link(found: re.Match[str]) -> str:
        for name in titles:
            if name.startswith(f"{found[1]}_"):
                return f"[{found[0]}]({_path(name)})"
        raise CourseError(f"{words!r}: there is no chapter {found[1]}.")

    return re.sub(r"chapter (\d\d)\b", link, words)


def _path(name: str) -> str:
    """Where a chapter lies, as seen from another's notebook."""
    return f"../{name}/{name}.ipynb"
