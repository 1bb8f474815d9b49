"""The learner's home: the chapters, how far one is, and what comes next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from course_grader.chapter.source import Chapter, Exercise, Level, Role
from course_grader.feedback import frame
from course_grader.feedback.learner import Standing

_TEACHES = re.compile(
    r"\*\*After this chapter you can\*\*\n\n(- .*?)(?:\n\n|\Z)", re.DOTALL
)


@dataclass(frozen=True)
class TaskView:
    """One exercise as the home shows it."""

    chapter: str
    title: str
    level: str
    link: str
    standing: Standing
    points: float
    max_points: float


@dataclass(frozen=True)
class ChapterView:
    """One chapter as the home shows it.

    Attributes:
        title: as `03 · One-hot labels and losses`.
        link: where JupyterLab opens it.
        minutes: reading and exercises.
        core_minutes: those of them that everybody should spend.
        builds_on: words of the chapter.
        teaches: what one can do after it.
        exercises: in order.
        tried: when an exercise was tried last; empty if never.
        report: where its newest report is; empty if there is none.
        newer: where a newer edition stands; empty if there is none.
        due: when it is due; empty if that is not known.
        current: the next exercise is one of its own.
    """

    title: str
    link: str
    minutes: int
    core_minutes: int
    builds_on: str
    teaches: tuple[str, ...]
    exercises: tuple[TaskView, ...]
    tried: str
    report: str
    newer: str
    due: str
    current: bool = False

    @property
    def points(self) -> float:
        return sum(one.points for one in self.exercises)

    @property
    def max_points(self) -> float:
        return sum(one.max_points for one in self.exercises)


def chapter_view(
    chapter: Chapter,
    points: dict[str, float],
    *,
    base_url: str,
    tried: datetime | None,
    report: str,
    newer: str,
    due: datetime | None,
) -> ChapterView:
    """What the home shows of a chapter.

    Args:
        chapter: the chapter.
        points: the most that each exercise ever got, by its id; none if it was
            never tried.
        base_url: of the Jupyter server, with a slash at its end.
        tried: when an exercise was tried last.
        report: where its newest report is.
        newer: the name of the file that holds a newer edition.
        due: when the chapter is due for all.
    """
    folder = f"{base_url}lab/tree/{quote(chapter.name)}/"
    link = f"{folder}{quote(chapter.name)}.ipynb"

    cell_ids = {
        one.name: one.id for one in chapter.cells if one.role is Role.TASK
    }

    def task(one: Exercise) -> TaskView:
        return TaskView(
            chapter.title,
            one.title,
            str(one.level),
            f"{link}#cell-id={cell_ids[one.id]}",
            _standing(points.get(one.id), one.points),
            points.get(one.id, 0.0),
            one.points,
        )

    found = _TEACHES.search(chapter.cells[0].source)
    teaches = re.split(r"\n(?=- )", found[1]) if found else []
    core = chapter.reading_minutes + chapter.minutes(Level.CORE)
    return ChapterView(
        title=chapter.title,
        link=link,
        minutes=chapter.reading_minutes + chapter.minutes(),
        core_minutes=core,
        builds_on=chapter.builds_on.replace("*", ""),
        teaches=tuple(" ".join(one[2:].split()) for one in teaches),
        exercises=tuple(task(one) for one in chapter.exercises),
        tried=_said(tried),
        report=report,
        newer=f"{folder}{quote(newer)}" if newer else "",
        due=_said(due),
    )


def page(chapters: Sequence[ChapterView]) -> str:
    """The home as one HTML file that runs no script."""
    tasks = [task for one in chapters for task in one.exercises]
    unsolved = [one for one in tasks if one.standing is not Standing.SOLVED]
    first = next(iter(unsolved), None)
    return frame.render(
        "home.html.jinja",
        chapters=[
            ChapterView(**vars(one) | {"current": first in one.exercises})
            for one in chapters
        ],
        next=first,
        begun=any(one.standing is not Standing.NOT_ATTEMPTED for one in tasks),
        solved=len(tasks) - len(unsolved),
        exercises=len(tasks),
        points=sum(one.points for one in tasks),
        max_points=sum(one.max_points for one in tasks),
    )


def _said(moment: datetime | None) -> str:
    """In this machine's time zone, which is the learner's."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M %Z}" if moment else ""


def _standing(points: float | None, max_points: float) -> Standing:
    if points is None:
        return Standing.NOT_ATTEMPTED
    if points >= max_points:
        return Standing.SOLVED
    return Standing.PARTLY if points > 0 else Standing.NOT_SOLVED
