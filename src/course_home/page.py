"""The page: the chapters, how far one is, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from course_home import frame
from course_home.contents import ChapterEntry, ExerciseEntry
from course_home.progress import Standing

VISIBLE = "visible checks pass"
"""How an exercise stands that nobody has graded yet."""


@dataclass(frozen=True)
class TaskView:
    """One exercise as the home shows it."""

    chapter: str
    title: str
    level: str
    link: str
    standing: str
    points: float
    max_points: float


@dataclass(frozen=True)
class ChapterView:
    """One chapter as the home shows it.

    Attributes:
        entry: what it is.
        link: where JupyterLab opens it; empty if it is not in work/.
        released: it can be fetched.
        exercises: in order.
        tried: when an exercise was tried last; empty if never.
        handed_in: when it was handed in last; empty if never.
        saved_since: the notebook was saved after that.
        report: where its newest report is; empty if there is none.
        newer: where a newer edition stands; empty if there is none.
        due: when it is due; empty if that is not known.
        current: the next exercise is one of its own.
    """

    entry: ChapterEntry
    link: str
    released: bool
    exercises: tuple[TaskView, ...]
    tried: str
    handed_in: str
    saved_since: bool
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
    entry: ChapterEntry,
    points: Mapping[str, float],
    *,
    base_url: str,
    here: bool,
    released: bool,
    visible: Mapping[str, bool],
    tried: datetime | None,
    handed_in: datetime | None,
    saved: datetime | None,
    report: str,
    newer: str,
    due: datetime | None,
) -> ChapterView:
    """What the home shows of a chapter.

    Args:
        entry: the chapter.
        points: the most that each exercise ever got, by its id; none if it was
            never tried.
        base_url: of the Jupyter server, with a slash at its end.
        here: whether it is in work/.
        released: whether it can be fetched.
        visible: whether the visible checks of an exercise pass that was
            attempted.
        tried: when an exercise was tried last.
        handed_in: when the chapter was handed in last.
        saved: when its notebook was saved last.
        report: where its newest report is.
        newer: the name of the file that holds a newer edition.
        due: when the chapter is due for all.
    """
    folder = f"{base_url}lab/tree/{quote(entry.name)}/"
    link = f"{folder}{quote(entry.name)}.ipynb" if here else ""

    def task(one: ExerciseEntry) -> TaskView:
        return TaskView(
            entry.title,
            one.title,
            one.level,
            f"{link}#cell-id={one.cell_id}" if here else "",
            _standing(points.get(one.id), one.points, visible.get(one.id)),
            points.get(one.id, 0.0),
            one.points,
        )

    return ChapterView(
        entry=entry,
        link=link,
        released=released,
        exercises=tuple(task(one) for one in entry.exercises),
        tried=_said(tried),
        handed_in=_said(handed_in),
        saved_since=bool(handed_in and saved and saved > handed_in),
        report=report,
        newer=f"{folder}{quote(newer)}" if newer else "",
        due=_said(due),
    )


def page(
    chapters: Sequence[ChapterView], *, class_server: bool, full: bool = False
) -> str:
    """The home as one HTML file that runs no script.

    Args:
        chapters: in order.
        class_server: chapters are released, handed in and given back here.
        full: nothing more can be saved.
    """
    tasks = [task for one in chapters for task in one.exercises]
    unsolved = [one for one in tasks if one.standing != Standing.SOLVED]
    answered = [one for one in unsolved if one.standing == VISIBLE]
    open_here = [one for one in unsolved if one.link and one not in answered]
    first = next(iter(open_here), None)
    waiting = {
        one.entry.title
        for one in chapters
        if one.handed_in and not one.saved_since
    }
    return frame.render(
        Path(__file__).with_name("home.html.jinja"),
        chapters=[
            replace(one, current=first in one.exercises) for one in chapters
        ],
        next=first,
        begun=any(one.standing != Standing.NOT_ATTEMPTED for one in tasks),
        solved=len(tasks) - len(unsolved),
        answered=len(answered),
        all_handed_in=all(one.chapter in waiting for one in answered),
        exercises=len(tasks),
        points=sum(one.points for one in tasks),
        max_points=sum(one.max_points for one in tasks),
        class_server=class_server,
        full=full,
    )


def _said(moment: datetime | None) -> str:
    """In this machine's time zone, which is the learner's."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M %Z}" if moment else ""


def _standing(
    points: float | None, max_points: float, visible: bool | None
) -> str:
    if points is None:
        if visible is None:
            return Standing.NOT_ATTEMPTED
        return VISIBLE if visible else Standing.NOT_SOLVED
    if points >= max_points:
        return Standing.SOLVED
    return Standing.PARTLY if points > 0 else Standing.NOT_SOLVED
