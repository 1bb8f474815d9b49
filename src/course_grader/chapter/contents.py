"""What the learner's home shows of a chapter, from its source."""

from __future__ import annotations

import re
from functools import lru_cache

from course_grader.chapter.source import Chapter, Level, Role, read_chapter
from course_grader.course import Course
from course_home.contents import ChapterEntry, ExerciseEntry

_TEACHES = re.compile(
    r"\*\*After this chapter you can\*\*\n\n(- .*?)(?:\n\n|\Z)", re.DOTALL
)


def contents(course: Course) -> list[ChapterEntry]:
    """All chapters as they are now."""
    return [
        _entry_of(course, name, course.source_of(name).stat().st_mtime)
        for name in course.chapters()
    ]


@lru_cache(maxsize=64)
def _entry_of(course: Course, name: str, _changed: float) -> ChapterEntry:
    return entry(read_chapter(course.source_of(name)))


def entry(chapter: Chapter) -> ChapterEntry:
    """What the home shows of a chapter."""
    found = _TEACHES.search(chapter.cells[0].source)
    teaches = re.split(r"\n(?=- )", found[1]) if found else []
    cell_ids = {
        one.name: one.id for one in chapter.cells if one.role is Role.TASK
    }
    return ChapterEntry(
        name=chapter.name,
        title=chapter.title,
        minutes=chapter.reading_minutes + chapter.minutes(),
        core_minutes=chapter.reading_minutes + chapter.minutes(Level.CORE),
        builds_on=chapter.builds_on.replace("*", ""),
        teaches=tuple(" ".join(one[2:].split()) for one in teaches),
        exercises=tuple(
            ExerciseEntry(
                one.id, one.title, str(one.level), one.points, cell_ids[one.id]
            )
            for one in chapter.exercises
        ),
    )
