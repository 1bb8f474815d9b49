"""The table of chapters of README.md, which `course build` writes."""

from __future__ import annotations

import re
import tomllib

from course_grader.chapter.source import Level, read_chapter
from course_grader.course import Course

_TABLE = re.compile(
    r"(?<=<!-- table of chapters: `course build` writes it -->\n)"
    r".*?(?=<!-- end of the table -->)",
    re.DOTALL,
)


def with_table(course: Course, text: str) -> str:
    """README's text with the table of chapters as it must be; as it is, where
    it has no place for one."""
    table = table_of_chapters(course, site_of(course))
    return _TABLE.sub(lambda _: table, text)


def site_of(course: Course) -> str | None:
    """Where the course's site is published: `site` below `[tool.course]` in
    pyproject.toml; None if nobody has set it."""
    text = (course.root / "pyproject.toml").read_text(encoding="utf-8")
    tools = tomllib.loads(text).get("tool", {})
    site = tools.get("course", {}).get("site")
    return site.rstrip("/") if site else None


def table_of_chapters(course: Course, site: str | None = None) -> str:
    """The chapters with their exercises, minutes and points, as markdown.

    Args:
        course: the course.
        site: where a chapter's link leads; to its notebook if None.
    """
    chapters = [read_chapter(course.source_of(n)) for n in course.chapters()]
    lines = [
        "| chapter | exercises | minutes | of them core | points |",
        "|---|---|--:|--:|--:|",
    ]
    total, core_total, points = 0, 0, 0.0
    for one in chapters:
        minutes = one.reading_minutes + one.minutes()
        core = one.reading_minutes + one.minutes(Level.CORE)
        total, points = total + minutes, points + one.points
        core_total += core
        notebook = f"notebooks/{one.name}/{one.name}.ipynb"
        page = f"{site}/{one.name}.html" if site else notebook
        titles = " · ".join(exercise.title for exercise in one.exercises)
        lines.append(
            f"| [{one.title}]({page}) "
            f"| {titles} | {minutes} | {core} | {one.points:g} |"
        )
    hours = f"{_hours(total)} | {_hours(core_total)}"
    lines.append(f"| **all** | | {hours} | {points:g} |")
    return "\n".join(lines) + "\n"


def _hours(minutes: int) -> str:
    return f"{minutes / 60:.0f} h"
