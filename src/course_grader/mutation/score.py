"""Runs mutants through the judge: killed, timed out, survived, equivalent."""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import joblib
import torch

from course_grader.bank import Answer, solution_cell
from course_grader.chapter.grading import Grading
from course_grader.checks import Check
from course_grader.course import Course, CourseError
from course_grader.judge.judging import Expectations, loses
from course_grader.judge.reference import (
    PreparedKernels,
    reference_expectations,
)
from course_grader.judge.report import Verdict
from course_grader.judge.signatures import exercise_text
from course_grader.judge.warming import WarmProcess
from course_grader.mutation.operators import Mutant, mutants_of

SEEDS = (1, 2, 3)
ENOUGH = 150
"""Mutants of an exercise after which no further right answer is taken."""
PATIENCE_S = 5.0
"""For one probe call: a mutant that never ends is no right answer."""
SOLUTION_NAME = "solution"


@dataclass(frozen=True)
class Start:
    """A right answer that mutants are made of.

    Attributes:
        name: of the answer in the bank, or `solution`.
        source: its code.
        answer: what it is judged as.
    """

    name: str
    source: str
    answer: Answer


@dataclass(frozen=True)
class Survivor:
    """A mutant that kept all its marks on at least one seed.

    Attributes:
        of: the name of the answer that it was made of.
        operator: what changed it.
        was: what stands once in that answer.
        now: what the mutant has in its place.
    """

    of: str
    operator: str
    was: str
    now: str


@dataclass(frozen=True)
class Score:
    """What became of an exercise's mutants.

    Attributes:
        exercise: its id.
        mutants: how many there are.
        killed: lost a mark on every seed.
        timed_out: never ended, and were killed by that.
        equivalent: keep all marks, and a reason is written down.
        survivors: keep all marks without a reason.
        operators: how many mutants each operator made.
        seeds: how many seeds each ran on.
        torch: the version it was run with.
        date: when, as YYYY-MM-DD.
        digest: of all that decides who survives.
    """

    exercise: str
    mutants: int
    killed: int
    timed_out: int
    equivalent: int
    survivors: tuple[Survivor, ...]
    operators: dict[str, int]
    seeds: int
    torch: str
    date: str
    digest: str

    @property
    def score(self) -> float:
        """The share of the mutants that are not right, too, which lost a mark."""
        wrong = self.mutants - self.equivalent
        return (self.killed + self.timed_out) / max(1, wrong)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Score:
        survivors = tuple(Survivor(**one) for one in given["survivors"])
        return cls(**{**given, "survivors": survivors})


def starts_of(grading: Grading, exercise_id: str) -> list[Start]:
    """The solution and the exercise's right answers."""
    exercise = grading.chapter.exercise(exercise_id)
    cell = solution_cell(exercise)
    return [
        Start(
            SOLUTION_NAME, cell, Answer(SOLUTION_NAME, exercise_id, cell, None)
        ),
        *(
            Start(one.name, one.source, one)
            for one in grading.answers_of(exercise_id)
            if one.right
        ),
    ]


def chosen_mutants(
    grading: Grading, exercise_id: str
) -> list[tuple[Start, Mutant]]:
    """Those of the solution, and of right answers in their order until there
    are enough; those that only differ in the answer's name count once."""
    chosen: list[tuple[Start, Mutant]] = []
    known: set[str] = set()
    for start in starts_of(grading, exercise_id):
        if len(chosen) >= ENOUGH:
            break
        for mutant in mutants_of(start.source):
            form = _form(start, mutant.source)
            if form not in known:
                known.add(form)
                chosen.append((start, mutant))
    return chosen


def _form(start: Start, source: str) -> str:
    """A syntax tree, whatever its author has called the answer."""
    tree = ast.dump(ast.parse(source))
    own = start.answer.binds
    return tree if own is None else tree.replace(f"'{own}'", "'it'")


def score_exercise(
    warm: WarmProcess,
    grading: Grading,
    course: Course,
    exercise_id: str,
    seeds: Sequence[int] = SEEDS,
) -> Score:
    """Makes the mutants of an exercise and runs each on every seed.

    Raises:
        CourseError: an equivalent that is written down fits no mutant, or
            loses a check.
    """
    chosen = chosen_mutants(grading, exercise_id)
    excused = read_equivalents(course, grading, exercise_id)
    expected = [
        reference_expectations(warm, grading, seed, [exercise_id])
        for seed in seeds
    ]
    with (
        PreparedKernels(warm, grading) as kernels,
        ThreadPoolExecutor(joblib.cpu_count()) as threads,
    ):
        order = _Order(grading.checks_of(exercise_id))
        fates = list(
            threads.map(
                lambda pair: _fate(
                    kernels, grading, pair[0], pair[1], expected, order
                ),
                chosen,
            )
        )
    counts = {"killed": 0, "timed out": 0}
    operators: dict[str, int] = {}
    survivors, equivalents = [], set()
    for (start, mutant), fate in zip(chosen, fates, strict=True):
        operators[mutant.operator] = operators.get(mutant.operator, 0) + 1
        if fate is not None:
            counts[fate] += 1
            continue
        key = _key(start.name, mutant.source)
        if key in excused:
            equivalents.add(key)
        else:
            was, now = difference_of(start.source, mutant.source)
            survivors.append(Survivor(start.name, mutant.operator, was, now))
    idle = [excused[key] for key in excused if key not in equivalents]
    if idle:
        raise CourseError(
            f"{grading.chapter.name}, {exercise_id}: the equivalent {idle[0]} "
            "is no mutant that survives: take it out of equivalents.toml."
        )
    return Score(
        exercise=exercise_id,
        mutants=len(chosen),
        killed=counts["killed"],
        timed_out=counts["timed out"],
        equivalent=len(equivalents),
        survivors=tuple(survivors),
        operators=dict(sorted(operators.items())),
        seeds=len(seeds),
        torch=torch.__version__.partition("+")[0],
        date=datetime.now(UTC).date().isoformat(),
        digest=digest_of(grading, exercise_id),
    )


def excused_anew(
    course: Course, grading: Grading, known: Score
) -> Score | None:
    """A score with the equivalents that are written down now, without a run.

    Returns:
        None if they are not among those that survived: only a run tells.

    Raises:
        CourseError: as `read_equivalents`.
    """
    excused = read_equivalents(course, grading, known.exercise)
    chosen = {
        _key(start.name, mutant.source)
        for start, mutant in chosen_mutants(grading, known.exercise)
    }
    sources = {
        one.name: one.source for one in starts_of(grading, known.exercise)
    }
    open_ones = {
        _key(one.of, sources[one.of].replace(one.was, one.now)): one
        for one in known.survivors
    }
    survived = open_ones.keys() | excused.keys()
    as_many = len(survived) == len(known.survivors) + known.equivalent
    if not as_many or not survived <= chosen:
        return None
    return replace(
        known,
        equivalent=len(excused),
        survivors=tuple(
            one for key, one in open_ones.items() if key not in excused
        ),
    )


class _Order:
    """An exercise's checks, those first that have killed most: a mutant needs
    only one of them."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self.kills = {one.name: 0 for one in checks}
        self.checks = {
            one.name: replace(one, timeout_s=min(one.timeout_s, PATIENCE_S))
            for one in checks
        }

    def __iter__(self) -> Iterator[Check]:
        names = sorted(self.kills, key=self.kills.__getitem__, reverse=True)
        return iter([self.checks[name] for name in names])


def _fate(
    kernels: PreparedKernels,
    grading: Grading,
    start: Start,
    mutant: Mutant,
    expected: Sequence[Expectations],
    order: _Order,
) -> str | None:
    """How a mutant ended: `killed` or `timed out`; None if it kept all its
    marks on one of the seeds."""
    answer = replace(start.answer, source=mutant.source)
    for one in expected:
        ended = _ended(kernels, grading, answer, one, order)
        if ended != "killed":
            return ended  # waiting for it again would tell nothing new
    return "killed"


def _ended(
    kernels: PreparedKernels,
    grading: Grading,
    answer: Answer,
    expected: Expectations,
    order: _Order,
) -> str | None:
    """How it ended on one seed, at the first check that it loses."""
    with (
        kernels.lend() as kernel,
        kernel.probing(grading.probes_source, expected.exchanged) as probing,
    ):
        probing.run_cell(grading.answer_cell(answer), answer.exercise)
        for check in order:
            if loses(probing, check, expected):
                order.kills[check.name] += 1
                died = probing.died
                if died is not None and died.verdict is Verdict.TIMED_OUT:
                    return "timed out"
                return "killed"
    return None


def difference_of(start: str, mutant: str) -> tuple[str, str]:
    """What stands once in `start`, and what a mutant has in its place: whole
    lines, as many as it takes to be alone."""
    old, new = start.split("\n"), mutant.split("\n")
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while (
        last < min(len(old), len(new)) - first
        and old[-1 - last] == new[-1 - last]
    ):
        last += 1
    while True:
        was = "\n".join(old[first : len(old) - last])
        now = "\n".join(new[first : len(new) - last])
        whole = len(new) - last > first  # no line goes without a trace
        if whole and was.strip() and start.count(was) == 1:
            return was, now
        if first:
            first -= 1
        elif last:
            last -= 1
        else:
            return was, now


def equivalents_file(course: Course, chapter: str) -> Path:
    return course.autograde / chapter / "equivalents.toml"


def read_equivalents(
    course: Course, grading: Grading, exercise_id: str
) -> dict[tuple[str, str], str]:
    """The survivors of an exercise that are right, too: by answer and syntax
    tree what tells them in a message.

    Raises:
        CourseError: one has no reason, or does not fit its answer.
    """
    file = equivalents_file(course, grading.chapter.name)
    if not file.exists():
        return {}
    given = tomllib.loads(file.read_text(encoding="utf-8"))
    starts = {one.name: one for one in starts_of(grading, exercise_id)}
    found = {}
    for one in given.get(exercise_id, []):
        label = f"`{one['now'].strip()}` of {one['of']}"
        if not one.get("because", "").strip():
            raise CourseError(
                f"{file.parent.name}/{file.name}: the equivalent {label} does "
                "not say `because`."
            )
        if one["of"] not in starts:
            raise CourseError(
                f"{file.parent.name}/{file.name}: {one['of']} is no right "
                f"answer of {exercise_id}."
            )
        start = starts[one["of"]].source
        if start.count(one["was"]) != 1:
            raise CourseError(
                f"{file.parent.name}/{file.name}: what {label} replaces does "
                "not stand once in its answer."
            )
        made = start.replace(one["was"], one["now"])
        found[_key(one["of"], made)] = label
    return found


def _key(answer: str, source: str) -> tuple[str, str]:
    """A mutant: the name of the answer it is made of, and its syntax tree."""
    return answer, ast.dump(ast.parse(source))


def as_toml(exercise_id: str, survivor: Survivor) -> str:
    """A survivor as `equivalents.toml` takes it, its reason left open."""
    return "\n".join(
        [
            f"[[{exercise_id}]]",
            f'of = "{survivor.of}"',
            f"was = {_toml(survivor.was)}",
            f"now = {_toml(survivor.now)}",
            'because = ""',
        ]
    )


def _toml(text: str) -> str:
    if "'''" in text:
        return json.dumps(text)
    return f"'''{text}'''" if "\n" in text or "'" in text else f"'{text}'"


def digest_of(grading: Grading, exercise_id: str) -> str:
    """Of what decides who survives: the mutants, and all that decides what an answer
    to the exercise loses."""
    parts = [
        exercise_text(grading, exercise_id),
        *(
            f"{start.name}\n{mutant.source}"
            for start, mutant in chosen_mutants(grading, exercise_id)
        ),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
