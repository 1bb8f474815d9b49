"""How far a learner is: from hidden checks in the notebook, from `course grade` and
from fetched feedback."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

from course_grader.classroom.private import private_folder, write_private
from course_grader.course import Course
from course_grader.judge.report import ExerciseReport
from course_grader.lab.work import OWN

REPORTS = "reports"
"""In work/.course: where `course grade` puts the reports of one's notebooks."""
_PROGRESS = "progress.json"
_MARKS = re.compile(
    r'<section class="exercise"[^>]* data-exercise="([^"]*)" '
    r'data-points="([^"]*)"'
)
"""Of a feedback page: each exercise, and what it got."""


@dataclass(frozen=True)
class Tried:
    """What one exercise got.

    Attributes:
        best: the most points that one try got.
        latest: what the latest got.
        at: when that was, in UTC.
    """

    best: float
    latest: float
    at: datetime


def keep_progress(course: Course, chapter: str, report: ExerciseReport) -> None:
    """Notes what an exercise got just now."""
    known = _read(course)
    entry = known.setdefault(chapter, {}).setdefault(report.exercise, {})
    entry["latest"] = report.points
    entry["best"] = max(report.points, entry.get("best", 0.0))
    entry["at"] = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps(known, indent=1, sort_keys=True)
    write_private(private_folder(course.work / OWN) / _PROGRESS, text + "\n")


def progress(course: Course, chapter: str) -> dict[str, Tried]:
    """What each exercise of a chapter got that was ever tried, by its id."""
    found = {}
    for exercise, entry in _read(course).get(chapter, {}).items():
        with contextlib.suppress(KeyError, TypeError, ValueError):
            found[exercise] = Tried(
                float(entry["best"]),
                float(entry["latest"]),
                datetime.fromisoformat(entry["at"]),
            )
    page = fetched_feedback(course, chapter)
    if page is not None:
        at = _written(page)
        for exercise, points in _marks_of(page).items():
            known = found.get(exercise)
            best = max(points, known.best if known else 0.0)
            if known is None or known.at < at:
                found[exercise] = Tried(best, points, at)
            else:
                found[exercise] = Tried(best, known.latest, known.at)
    return found


def newest_report(course: Course, chapter: str) -> Path | None:
    """The newest page about a chapter: of `course grade` or of an instructor."""
    own = course.work / OWN / REPORTS / f"{chapter}.html"
    pages = [own] if own.is_file() else []
    fetched = fetched_feedback(course, chapter)
    if fetched is not None:
        pages.append(fetched)
    return max(pages, key=_written, default=None)


def fetched_feedback(course: Course, chapter: str) -> Path | None:
    """The newest feedback that nbgrader fetched, beside the notebook."""
    pages = (course.work / chapter / "feedback").glob(f"*/{chapter}.html")
    return max(
        (one for one in pages if one.is_file()), key=_written, default=None
    )


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _marks_of(page: Path) -> Mapping[str, float]:
    marks = {}
    with contextlib.suppress(OSError, ValueError):
        for exercise, points in _MARKS.findall(page.read_text("utf-8")):
            marks[unescape(exercise)] = float(points)
    return marks


def _read(course: Course) -> dict[str, dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        text = (course.work / OWN / _PROGRESS).read_text("utf-8")
        tree = json.loads(text)
        if isinstance(tree, dict) and all(
            isinstance(one, dict) for one in tree.values()
        ):
            return tree
    return {}
