"""How far a learner is: from hidden checks in the notebook, from `course grade`, from
fetched feedback, and from what the visible checks of a saved notebook said."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from html import unescape
from pathlib import Path
from typing import Any

OWN = ".course"
"""The folder below work/ that is the course's, not the learner's."""
PROGRESS = "progress.json"
"""There: what hidden checks on this machine gave."""
REPORTS = "reports"
"""There: where `course grade` puts the reports of one's notebooks."""
_MARKS = re.compile(
    r'<section class="exercise"[^>]* data-exercise="([^"]*)" '
    r'data-points="([^"]*)"'
)
"""Of a feedback page: each exercise, and what it got."""
_SAID = re.compile(r"^(\w+): (not attempted$|try again|.*; hidden ones count$)")
"""The line of `course_utils.visible_check`."""


class Standing(StrEnum):
    """How an exercise ended as a whole."""

    SOLVED = "solved"
    PARTLY = "partly solved"
    NOT_SOLVED = "not solved yet"
    NOT_ATTEMPTED = "not attempted"


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


def progress(work: Path, chapter: str) -> dict[str, Tried]:
    """What each exercise of a chapter got that was ever tried, by its id."""
    found = {}
    for exercise, entry in read_progress(work).get(chapter, {}).items():
        with contextlib.suppress(KeyError, TypeError, ValueError):
            found[exercise] = Tried(
                float(entry["best"]),
                float(entry["latest"]),
                datetime.fromisoformat(entry["at"]),
            )
    page = fetched_feedback(work, chapter)
    if page is not None:
        at = written(page)
        for exercise, points in _marks_of(page).items():
            known = found.get(exercise)
            best = max(points, known.best if known else 0.0)
            if known is None or known.at < at:
                found[exercise] = Tried(best, points, at)
            else:
                found[exercise] = Tried(best, known.latest, known.at)
    return found


def visible_checks(work: Path, chapter: str) -> dict[str, bool]:
    """Which exercises' visible checks pass, of those that were attempted, as the
    learner's saved notebook shows it."""
    found = {}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        text = (work / chapter / f"{chapter}.ipynb").read_text("utf-8")
        for cell in json.loads(text)["cells"]:
            for output in cell.get("outputs", []):
                said = _SAID.match("".join(output.get("text", "")))
                if said and not said[2].startswith("not"):
                    found[said[1]] = said[2] != "try again"
    return found


def newest_report(work: Path, chapter: str) -> Path | None:
    """The newest page about a chapter: of `course grade` or of an instructor."""
    own = work / OWN / REPORTS / f"{chapter}.html"
    pages = [own] if own.is_file() else []
    fetched = fetched_feedback(work, chapter)
    if fetched is not None:
        pages.append(fetched)
    return max(pages, key=written, default=None)


def fetched_feedback(work: Path, chapter: str) -> Path | None:
    """The newest feedback that nbgrader fetched, beside the notebook."""
    pages = (work / chapter / "feedback").glob(f"*/{chapter}.html")
    return max(
        (one for one in pages if one.is_file()), key=written, default=None
    )


def read_progress(work: Path) -> dict[str, dict[str, Any]]:
    """What is noted of each chapter's exercises; nothing of a spoilt file."""
    with contextlib.suppress(OSError, ValueError):
        tree = json.loads((work / OWN / PROGRESS).read_text("utf-8"))
        if isinstance(tree, dict) and all(
            isinstance(one, dict) for one in tree.values()
        ):
            return tree
    return {}


def written(path: Path) -> datetime:
    """When a file was written last, in UTC."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _marks_of(page: Path) -> Mapping[str, float]:
    marks = {}
    with contextlib.suppress(OSError, ValueError):
        for exercise, points in _MARKS.findall(page.read_text("utf-8")):
            marks[unescape(exercise)] = float(points)
    return marks
