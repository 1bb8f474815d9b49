"""What judging a submission gives: verdicts, points and words for the learner.

Everything here is shown to learners, so nothing here holds a hidden input, an
expected value or a line of test code.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

_SURROGATES = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """The text with every lone surrogate, which no file can hold, replaced."""
    return _SURROGATES.sub("\ufffd", text)


class Verdict(StrEnum):
    """How one hidden check ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    EXITED = "exited"
    NOT_ATTEMPTED = "not attempted"


@dataclass(frozen=True)
class CheckReport:
    """One hidden check of one submission.

    Attributes:
        name: the check's name.
        says: what is checked, in the learner's words.
        verdict: how it ended.
        points: what it gave.
        max_points: its share of the exercise's points.
        message: what went wrong, in the learner's terms; empty if it passed.
    """

    name: str
    says: str
    verdict: Verdict
    points: float
    max_points: float
    message: str = ""


@dataclass(frozen=True)
class ExerciseReport:
    """One exercise of one submission.

    Attributes:
        exercise: its id.
        title: its title in the chapter.
        points: sum over its checks.
        max_points: what the chapter gives for it.
        checks: its checks, in the order of `hidden_tests.py`.
        misconception: what the one wrong answer of the bank that behaves alike
            tells; empty if none or several do.
    """

    exercise: str
    title: str
    points: float
    max_points: float
    checks: tuple[CheckReport, ...]
    misconception: str = ""

    def to_json(self) -> dict[str, Any]:
        """A JSON tree from which `from_json` makes an equal report."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> ExerciseReport:
        checks = (
            CheckReport(**{**one, "verdict": Verdict(one["verdict"])})
            for one in tree["checks"]
        )
        return cls(**{**tree, "checks": tuple(checks)})


@dataclass(frozen=True)
class SubmissionReport:
    """One graded submission.

    Attributes:
        chapter: its chapter.
        title: the chapter's title, as its notebook has it.
        seed: the seed the cases were drawn from.
        exercises: one report each, in the chapter's order.
        notes: sentences about the notebook itself (repairs made, cells that
            stopped); shown above the exercises.
        refused: why the file could not be graded at all; empty if it was.
        needs_human: why somebody should look at it; empty if nobody needs to.
    """

    chapter: str
    seed: int
    exercises: tuple[ExerciseReport, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""
    needs_human: tuple[str, ...] = ()
    title: str = ""

    @property
    def points(self) -> float:
        return sum(one.points for one in self.exercises)

    @property
    def max_points(self) -> float:
        return sum(one.max_points for one in self.exercises)

    def to_json(self) -> dict[str, Any]:
        """A JSON tree from which `from_json` makes an equal report."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> SubmissionReport:
        return cls(
            chapter=tree["chapter"],
            seed=tree["seed"],
            exercises=tuple(map(ExerciseReport.from_json, tree["exercises"])),
            notes=tuple(tree["notes"]),
            refused=tree["refused"],
            needs_human=tuple(tree["needs_human"]),
            title=tree["title"],
        )
