"""Pairs of answers that deserve a look, side by side, for the instructor."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path

from course_home import frame

_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
MOST_LINES = 120
"""Lines of a cell that are shown."""
LONGEST_LINE = 300
"""Characters of a line that are shown."""


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
        """The lines of both cells, and which the other has too, but for blanks and
        names."""
        left, right = (
            [
                line.expandtabs(4)[:LONGEST_LINE]
                for line in cell.splitlines()[:MOST_LINES]
            ]
            for cell in self.cells
        )
        matcher = difflib.SequenceMatcher(
            None,
            [_bare(line) for line in left],
            [_bare(line) for line in right],
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


def _bare(line: str) -> str:
    """A line without comment, blanks and what things are called."""
    line = _NAME.sub(
        lambda found: found[0] if iskeyword(found[0]) else "_",
        line.partition("#")[0],
    )
    return "".join(line.split())


def similar_page(chapter: str, rows: Sequence[Row], notebooks: int) -> str:
    """The page. It never says who copied, and nothing depends on it."""
    return frame.render(
        Path(__file__).with_name("similar.html.jinja"),
        chapter=chapter,
        rows=rows,
        notebooks=notebooks,
    )
