"""Pairs of answers that deserve a look, side by side, for the instructor."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from course_grader.feedback import frame

MOST_LINES = 120
"""Lines of a cell that are shown."""


@dataclass(frozen=True)
class Row:
    """One pair.

    Attributes:
        title: of the exercise.
        first, second: the learners.
        likeness: from 0 to 1.
        first_handed_in, second_handed_in: when, as a person reads it.
        cells: both answers.
    """

    title: str
    first: str
    second: str
    likeness: float
    first_handed_in: str
    second_handed_in: str
    cells: tuple[str, str]

    @property
    def lines(self) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
        """The lines of both cells, and which the other has too, but for blanks."""
        left, right = (
            [line.expandtabs(4) for line in cell.splitlines()][:MOST_LINES]
            for cell in self.cells
        )
        matcher = difflib.SequenceMatcher(
            None,
            ["".join(line.split()) for line in left],
            ["".join(line.split()) for line in right],
            autojunk=False,
        )
        same_left, same_right = set(), set()
        for one in matcher.get_matching_blocks():
            same_left |= set(range(one.a, one.a + one.size))
            same_right |= set(range(one.b, one.b + one.size))
        return (
            [(line, i in same_left) for i, line in enumerate(left)],
            [(line, i in same_right) for i, line in enumerate(right)],
        )


def similar_page(chapter: str, rows: Sequence[Row], notebooks: int) -> str:
    """The page. It never says who copied, and nothing depends on it."""
    return frame.render(
        "similar.html.jinja", chapter=chapter, rows=rows, notebooks=notebooks
    )
