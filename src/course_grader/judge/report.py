"""What judging a submission gives: verdicts, points and words for the learner.

Everything here is shown to learners, so nothing here holds a line of test code, and
a hidden case only where one may be shown (`judge.failing`).
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

_SURROGATES = re.compile("[\ud800-\udfff]")


# Terminal control sequences: CSI, then OSC and its kin (ended by BEL or ST, or
# by the line if never ended), then the short ones.
TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)


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
class FailingCase:
    """One case on which a check failed: plain text, not escaped, of a size that a
    page can show. Parts of it come from the learner's process.

    Attributes:
        call: the calls that lead to it, as code.
        given: what stands for larger arguments, a line each.
        yours: what the learner's code gave; empty if there is nothing to show.
        right: what is right; likewise.
        differs: how the two differ, in words; `code` in backticks.
    """

    call: str
    given: tuple[str, ...] = ()
    yours: str = ""
    right: str = ""
    differs: str = ""


@dataclass(frozen=True)
class CheckReport:
    """One hidden check of one submission.

    Attributes:
        name: the check's name.
        says: what is checked, in the learner's words.
        verdict: how it ended.
        points: what it gave, of its share.
        max_points: its share of the exercise's points, not rounded.
        message: what went wrong, in the learner's terms; empty if it passed.
        case: the smallest case on which it failed; None if none is shown.
        follows: the name of the check where its fault is told: one before it that
            fails in the same way, or the one that leads where one known mistake
            explains all. Empty if the fault is told here.
    """

    name: str
    says: str
    verdict: Verdict
    points: float
    max_points: float
    message: str = ""
    case: FailingCase | None = None
    follows: str = ""


@dataclass(frozen=True)
class ExerciseReport:
    """One exercise of one submission.

    Attributes:
        exercise: its id.
        title: its title in the chapter.
        points: sum over its checks, in whole or half points.
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
        checks = tuple(map(_check_from_json, tree["checks"]))
        return cls(**{**tree, "checks": checks})


def _check_from_json(tree: dict[str, Any]) -> CheckReport:
    case = tree.get("case")
    if case is not None:
        case = FailingCase(**{**case, "given": tuple(case["given"])})
    verdict = Verdict(tree["verdict"])
    return CheckReport(**{**tree, "verdict": verdict, "case": case})


def half_points(points: float, max_points: float, whole: bool) -> float:
    """Points as they count: whole or half ones, the nearest. All of them only
    for a whole answer, whose checks all passed."""
    if whole:
        return max_points
    rounded = round(2 * points) / 2
    return max(0.0, min(rounded, math.ceil(2 * max_points) / 2 - 0.5))


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
