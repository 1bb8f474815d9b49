"""What the home shows of each chapter. On a class server it is a file, for no
learner's server has the chapters' sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class ExerciseEntry:
    """One exercise.

    Attributes:
        id: as the chapter's source has it.
        title: what it is called.
        level: core, more or hard.
        points: what it gives.
        cell_id: of its text in the notebook.
    """

    id: str
    title: str
    level: str
    points: float
    cell_id: str


@dataclass(frozen=True)
class ChapterEntry:
    """One chapter.

    Attributes:
        name: as `03_one_hot_and_losses`.
        title: as `03 · One-hot labels and losses`.
        minutes: reading and exercises.
        core_minutes: those of them that everybody should spend.
        builds_on: words of the chapter.
        teaches: what one can do after it; `code` in backticks.
        exercises: in order.
    """

    name: str
    title: str
    minutes: int
    core_minutes: int
    builds_on: str
    teaches: tuple[str, ...]
    exercises: tuple[ExerciseEntry, ...]


def write_contents(path: Path, chapters: Sequence[ChapterEntry]) -> None:
    """Writes the file of a class server."""
    text = json.dumps([asdict(one) for one in chapters], indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def read_contents(path: Path) -> list[ChapterEntry]:
    """The chapters of such a file."""
    return [
        ChapterEntry(
            **one
            | {
                "teaches": tuple(one["teaches"]),
                "exercises": tuple(
                    ExerciseEntry(**two) for two in one["exercises"]
                ),
            }
        )
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]
