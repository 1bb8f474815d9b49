"""The text of an exercise: what to write first, the rest of the contract folded.

An author writes the goal, an example and at most five rules, then the questions
of a quiz, then the hints. The build adds the line of facts, and *All that is
checked* from the hidden checks themselves, so that nothing is graded that the
text does not say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_grader.chapter.folds import fold
from course_grader.chapter.source import Chapter, Exercise
from course_grader.course import CourseError

if TYPE_CHECKING:  # it imports torch, which the learner's server has no use for
    from course_grader.checks import Check

MOST_RULES = 5
MINUTES_PER_POINT = (1.5, 2.5)
"""One point is about two minutes of work."""

_HEAD = re.compile(
    r"(?P<goal>[^\n]+(?:\n[^\n]+)*)\n\n"
    r"```python\n(?P<example>>>> .*?)\n```"
    r"(?:\n\n(?P<rules>- .*?))?"
    r"(?:\n\n(?P<questions>\*\*`.*))?",
    re.DOTALL,
)
_CODE = re.compile(r"(`[^`]*`)")
_MARKUP = re.compile(r"([\\*_<>\[\]$#|])")


def refuse_task(chapter: Chapter, exercise: Exercise, text: str) -> None:
    """Refuses the text of an exercise that is not written goal first.

    Raises:
        CourseError: saying what does not stand where it should.
    """

    def refuse(why: str) -> None:
        raise CourseError(
            f"{chapter.name}: the text of {exercise.id} {why} docs/authors.md "
            "says how a text is built."
        )

    head, _ = _parted(text)
    found = _HEAD.fullmatch(head)
    if found is None:
        refuse(
            "must be a goal, then an example in a python block that begins "
            "with '>>> ', then a list of rules, a quiz's questions, then "
            "what folds."
        )
        return
    goal = _CODE.sub("", found["goal"])
    if re.search(r"[.!?]\s", goal):
        refuse("has a goal of more than one sentence.")
    rules = re.split(r"\n(?=- )", found["rules"]) if found["rules"] else []
    if len(rules) > MOST_RULES:
        refuse(
            f"has {len(rules)} rules, more than {MOST_RULES}; the rest of the "
            "contract belongs to the checks, as says= and corners=."
        )
    if any(re.search(r"\n\n|\n(?! )", rule) for rule in rules):
        refuse("has something between its rules or behind them.")
    questions = found["questions"] or "**`"
    if not all(one.startswith("**`") for one in questions.split("\n\n")):
        refuse("has something between its questions or behind them.")
    low, high = MINUTES_PER_POINT
    if not low <= exercise.minutes / exercise.points <= high:
        raise CourseError(
            f"{chapter.name}: {exercise.id} gives {exercise.points:g} points "
            f"for {exercise.minutes} minutes; one point is about two minutes."
        )


def example_of(text: str) -> str:
    """The example in the text of an exercise, as doctest reads it."""
    head, _ = _parted(text)
    found = _HEAD.fullmatch(head)
    return "" if found is None else found["example"] + "\n"


def points_text(points: float) -> str:
    """Points as a reader says them: "1 point", "2.5 points"."""
    return f"{points:g} point" + ("" if points == 1 else "s")


def heading(chapter: Chapter, exercise: Exercise, builds_on: str) -> str:
    """The title of an exercise and the line of facts below it.

    Args:
        chapter: its chapter.
        exercise: the exercise.
        builds_on: what it builds on, with its links.
    """
    number = 1 + [one.id for one in chapter.exercises].index(exercise.id)
    facts = [
        str(exercise.level),
        points_text(exercise.points),
        f"about {exercise.minutes} minutes",
        f"builds on {builds_on}",
    ]
    return f"### Exercise {number} · {exercise.title}\n\n*{' · '.join(facts)}*"


def with_contract(text: str, checks: Sequence[Check]) -> str:
    """The author's text with *All that is checked* before the hints."""
    head, folds = _parted(text)
    lines = []
    for check in checks:
        lines.append(f"- {_plain(check.says)}")
        lines += [f"  - {_plain(corner)}" for corner in check.corners]
    contract = fold("All that is checked", "\n".join(lines))
    return "\n".join(filter(None, [f"{head}\n", contract, folds]))


def _parted(text: str) -> tuple[str, str]:
    """What stands open in a text, and what folds."""
    head, mark, folds = text.strip().partition("<details>")
    return head.strip(), (mark + folds).strip()


def _plain(words: str) -> str:
    """Words of a check as markdown: only `code` is more than plain text."""
    parts = _CODE.split(words)
    parts[::2] = [_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
