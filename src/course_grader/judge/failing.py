"""The case that a failed check shows: the smallest on which it failed, as the
calls that a learner would write, what came back and what is right.

A case is shown only if it depends on the seed: one that is the same in every run
would tell the next submission what to answer. It comes from one more call of the
probe, which notes the calls that it makes.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from course_grader.chapter.grading import Grading
from course_grader.checks import Case, Check, Draw, Result
from course_grader.judge.compare import Difference, Tolerance, difference
from course_grader.judge.kernels import ProbeRun, Traced
from course_grader.judge.patterns import pattern, places
from course_grader.judge.report import FailingCase
from course_grader.judge.written import (
    Call,
    clean,
    described,
    literal,
    one_line,
    pair,
)
from course_grader.kernel import plain

OTHER_SEEDS = (1, 2)
"""Added to a run's seed: cases that come again there do not depend on it."""
MOST_CALLS = 5
"""Calls that are written out; of more, the first and the last."""
LONGEST_CALL = 1_600
LONGEST_RESULT = 1_000
MOST_GIVEN = 10
_NONE = Tolerance(0.0, 0.0)
TICKET = "ticket"
"""The key of a case under which a probe gets a number that changes no answer, so that
what is noted of one call is of no use in another."""
SMALL = 100
"""Whole numbers below it are found in many a result by chance."""
LONGEST_TEXT = 300
"""Characters of an exception's own text."""


class Tracer(Protocol):
    """Whoever can make a probe call once more and note its calls."""

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        """Makes it."""


@dataclass
class Shows:
    """Which cases of a chapter may be shown, and what words it has.

    Args:
        grading: the chapter's grading.
        seed: of the run.
    """

    grading: Grading
    seed: int
    fixed: dict[str, set[bytes]] = field(default_factory=dict)

    def may(self, check: Check, case: Case) -> bool:
        """Whether what is asked depends on the seed; what is right for a question
        that comes again in every run would tell the next submission."""
        if check.name not in self.fixed:
            self.fixed[check.name] = {
                _written(_asked(one))
                for seed in OTHER_SEEDS
                for one in check.cases(Draw(self.seed + seed, check.name))
            }
        return _written(_asked(case)) not in self.fixed[check.name]


def _asked(case: Case) -> Case:
    return {key: one for key, one in case.items() if key != TICKET}


def _written(case: Case) -> bytes:
    """A value as bytes, alike for no two values."""
    layout, blob = plain.encode(case)
    return json.dumps(layout).encode() + blob


def size(case: Any) -> float:
    """How much there is to read in a case."""
    if isinstance(case, Tensor):
        return 1 + case.numel() + 2 * case.dim()
    if isinstance(case, np.ndarray):
        return 1 + case.size + 2 * case.ndim
    if isinstance(case, dict):
        return sum(map(size, case.values()))
    if isinstance(case, list | tuple):
        return 1 + sum(map(size, case))
    return 1 + (len(case) / 20 if isinstance(case, str) else 0)


@dataclass(frozen=True)
class Failure:
    """What is known of a case on which a check failed.

    Attributes:
        check: the check.
        case: what the probe was given.
        run: what it gave; None if the process ended.
        expected: what the reference gave.
        found: where the two differ, if a comparison says so.
        compared: the message is the comparison's own, not an author's.
    """

    check: Check
    case: Case
    run: ProbeRun | None
    expected: Result
    found: Difference | None
    compared: bool


def failing_case(
    failure: Failure, tracer: Tracer, exercise_words: str
) -> tuple[FailingCase | None, str]:
    """The case as it is shown, and words for what differs.

    Args:
        failure: of the check.
        tracer: of the learner's code.
        exercise_words: the exercise's text and what its cell gives.

    Returns:
        (case, subject): `subject` is what differs in the words of the exercise,
        to begin a sentence with; empty where nothing was compared.
    """
    traced = tracer.trace(
        failure.check.probe,
        failure.case,
        failure.check.timeout_s,
        failure.run is None,
    )
    calls = _calls(traced)
    if traced is None or not calls:
        return None, _subject(failure, exercise_words)
    if failure.run is not None and not _same_again(failure, traced):
        return None, _subject(failure, exercise_words)
    if failure.run is None:
        return _case(calls, "", "", ""), ""
    seen, expected = failure.run.result, failure.expected
    assert seen is not None
    if expected.raised:
        right = f"raises {' or '.join(failure.check.raises)}"
        if seen.raised:
            yours = _raised(seen, traced.run.text)
        else:
            yours = _returned(calls[-1])
        return _case(calls, yours, right, ""), ""
    if seen.raised:
        at = next(
            (i for i, one in enumerate(calls) if "raised" in one),
            len(calls) - 1,
        )
        yours = _raised(seen, traced.run.text)
        return _case(calls[: at + 1], yours, _only_value(failure), ""), ""
    if failure.found is None:
        return _case(calls, _returned(calls[-1]), "", ""), ""
    return _differing(failure, failure.found, calls, exercise_words)


def _differing(
    failure: Failure,
    found: Difference,
    calls: list[dict[str, Any]],
    exercise_words: str,
) -> tuple[FailingCase, str]:
    """A case in which a value is another than the reference's."""
    match = _match(found, calls)
    if match is None:
        subject = _subject(failure, exercise_words)
        if not failure.compared and (
            isinstance(found.expected, bool)
            or not (
                subject.startswith("`") or isinstance(found.expected, Tensor)
            )
        ):
            # a fact that the probe noted: the author's words say it better
            return _case(calls, _returned(calls[-1]), "", ""), subject
    else:
        number, path = match
        subject = _returned_by(calls, number, path)
        calls = calls[: number + 1]
    tolerance = Tolerance(failure.check.rtol, failure.check.atol)
    yours, right = pair(
        found.seen,
        found.expected,
        places(found.seen, found.expected, tolerance),
    )
    said = pattern(found.seen, found.expected, tolerance)
    if not failure.compared and match is not None:
        # the message is the author's: what is shown here has to be said
        said = f"Shown is w{subject[1:].rstrip(',')}. {said}".strip()
    return _case(calls, yours, right, said), subject


def _calls(traced: Traced | None) -> list[dict[str, Any]]:
    """The calls that were noted, as far as they are of the right form."""
    noted = traced.calls if traced is not None else None
    calls = noted.get("calls") if isinstance(noted, dict) else None
    if not isinstance(calls, list):
        return []
    return [one for one in calls if isinstance(one, dict) and "call" in one]


def _same_again(failure: Failure, traced: Traced | None) -> bool:
    """Whether a process that has seen no other case gives the same, to the last bit
    and in the same order: what it gives then tells nothing of another case, which
    learner code may have kept. The text of an exception may be another (a process id, a
    temporary name), for that of the process that has seen no other is shown."""
    assert traced is not None
    first, again = failure.run, traced.run
    assert first is not None
    assert first.result is not None
    if again.result is None:
        return False
    if again.result.raised != first.result.raised:
        return False
    one, other = again.result.data, first.result.data
    # the bytes say nothing of what does not travel, the comparison of an order
    return difference(one, other, _NONE) is None and (
        _written({"": one}) == _written({"": other})
    )


def _case(
    calls: Sequence[dict[str, Any]], yours: str, right: str, differs: str
) -> FailingCase:
    written = Call()
    left_out = len(calls) - MOST_CALLS
    shown = [*calls[: MOST_CALLS - 2], *calls[-2:]] if left_out > 0 else calls
    for one in shown:
        written.add(one)
    lines = list(written.lines)
    if left_out > 0:
        lines.insert(MOST_CALLS - 2, f"...  # {left_out} more calls")
    given = [f"{name}: {words}" for name, words in written.given.items()]
    return FailingCase(
        call=clean("\n".join(lines), LONGEST_CALL),
        given=tuple(clean(one, 200) for one in given[:MOST_GIVEN]),
        yours=clean(yours, LONGEST_RESULT),
        right=clean(right, LONGEST_RESULT),
        differs=clean(differs, 400),
    )


def _raised(seen: Result, text: str) -> str:
    said = one_line(text, LONGEST_TEXT)
    name = exception_name(seen)
    return f"raises {name}: {said}" if said else f"raises {name}"


_OF_LIBRARIES = frozenset(
    {"UnpicklingError", "JSONDecodeError", "OutOfMemoryError"}
)
"""Exception types that `torch.load`, `json` and PyTorch raise."""


def exception_name(seen: Result) -> str:
    """The most special exception type of Python's or of a library that learners
    meet: a learner's own class names never go to feedback."""
    import builtins

    for name in seen.raised:
        value = getattr(builtins, name, None)
        builtin = isinstance(value, type) and issubclass(value, BaseException)
        if builtin or name in _OF_LIBRARIES:
            return name
    return "an exception"


def _returned(call: dict[str, Any]) -> str:
    if "returned" not in call:
        return ""
    value = call["returned"]
    if value is None and " = " in str(call["call"]):
        return ""  # what is made is no answer
    text = described(value) or pair(value, None)[0]
    return "returns " + text.replace("\n", "\n        ")


def _only_value(failure: Failure) -> str:
    """What is right, where the probe returns a single value."""
    data, keys = failure.expected.data, failure.check.on
    if not isinstance(data, dict):
        return "" if data is None else pair(data, None)[0]
    chosen = [data[key] for key in keys or data if key in data]
    return pair(chosen[0], None)[0] if len(chosen) == 1 else ""


# What of the calls gave the value that differs.


def _match(
    found: Difference, calls: Sequence[dict[str, Any]]
) -> tuple[int, tuple[Any, ...]] | None:
    """The call that returned the learner's value, and where in what it returned;
    None if none did or a short value may have come from several."""
    hits = [
        (number, path)
        for number, call in enumerate(calls)
        if "returned" in call
        for path, leaf in _leaves(call["returned"])
        if _is_same(leaf, found.seen)
    ]
    if len({number for number, _ in hits}) > 1:
        wanted = [one for one in found.path if type(one) is int]
        # a probe collects what one function returns; an object was made before
        hits = [
            one for one in hits if wanted and _turn(calls, one[0]) == wanted[0]
        ] or hits
    hits = [one for one in hits if not one[1]] or hits
    named = [one for one in hits if _leads_to(one[1], found.path)]
    if named or _by_chance(found.seen):
        hits = named
    elif len({path for number, path in hits if number == hits[0][0]}) > 1:
        return None
    return hits[0] if hits else None


def _turn(calls: Sequence[dict[str, Any]], number: int) -> int:
    """How many calls of the same function came before this one."""
    called = calls[number]["call"]
    return sum(one["call"] == called for one in calls[:number])


def _leads_to(path: tuple[Any, ...], place: Sequence[Any]) -> bool:
    """Whether a place in what a call returned may be that in what a probe made of
    it: both end in the same keys, or it is the whole of what was returned."""
    if path:
        return tuple(place[-len(path) :]) == path
    parts = [one for one in place if isinstance(one, str)]
    return not parts or parts[0] in _RETURNED


def _by_chance(value: Any) -> bool:
    """Whether a value may stand in a result without being what was compared."""
    if value is None or isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return abs(value) < SMALL
    return isinstance(value, float) and (
        value in (0.0, 1.0) or not math.isfinite(value)
    )


def _leaves(
    value: Any, path: tuple[Any, ...] = ()
) -> list[tuple[tuple[Any, ...], Any]]:
    """A value and all that it holds, with the way there."""
    found = [(path, value)]
    if len(path) < 3:
        items: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            items = list(value.items())[:50]
        elif isinstance(value, list | tuple):
            items = list(enumerate(value))[:50]
        for key, one in items:
            found += _leaves(one, (*path, key))
    return found


def _is_same(leaf: Any, seen: Any) -> bool:
    """Whether a probe may have made `seen` of `leaf` without working on it."""
    if described(leaf) is not None:
        return False
    if isinstance(leaf, Tensor) and isinstance(seen, int | float):
        if leaf.numel() != 1 or leaf.device.type == "meta":
            return False
        leaf, seen = (
            leaf.detach().double().reshape(()),
            torch.tensor(float(seen), dtype=torch.float64),
        )
    if isinstance(leaf, Tensor) and isinstance(seen, Tensor):
        if leaf.shape != seen.shape or leaf.device != seen.device:
            return False
        if leaf.device.type == "meta" or leaf.dtype.is_complex:
            return leaf.dtype == seen.dtype
        return bool(
            torch.equal(
                leaf.detach().double().nan_to_num(7.5),
                seen.detach().double().nan_to_num(7.5),
            )
        )
    if isinstance(leaf, Tensor) or isinstance(seen, Tensor):
        return False
    try:
        return type(leaf) is type(seen) and bool(
            leaf == seen or (leaf != leaf and seen != seen)
        )
    except (RuntimeError, ValueError, TypeError):
        return literal(leaf) == literal(seen)


_PLACES = {0: "1st", 1: "2nd", 2: "3rd"}


def _returned_by(
    calls: Sequence[dict[str, Any]], number: int, path: tuple[Any, ...]
) -> str:
    name = one_line(str(calls[number]["call"]), 80)
    alike = [i for i, one in enumerate(calls) if one["call"] == name]
    # a learner's process may send anything
    begun = [str(one["call"]).partition(" = ") for one in calls]
    made = {variable: kind for variable, _, kind in begun if kind}
    # an object is called after its class, as a function may be
    what = f"your `{one_line(made[name], 80)}`" if name in made else f"`{name}`"
    which = f"What {what} returns"
    if len(alike) > 1 and number in alike:
        place = alike.index(number)
        nth = _PLACES.get(place, f"{place + 1}th")
        which = f"What the {nth} call of {what} returns"
    if path:
        keys = "".join(f"[{one_line(repr(key), 40)}]" for key in path)
        which = f"{which}, at `{keys}`,"
    return which


_RETURNED = {
    *("out", "outs", "output", "outputs", "result", "results", "returned"),
    *("value", "values", "given", "got", "given_back", "answer", "data"),
    *("first", "second", "again", "found", "answers"),
}
"""Keys of probes that stand for what was returned."""


def _subject(failure: Failure, exercise_words: str) -> str:
    """What differs, in words of the exercise; empty if nothing was compared."""
    found = failure.found
    return "" if found is None else subject_of(found.path, exercise_words)


def subject_of(path: Sequence[Any], exercise_words: str) -> str:
    """Words for a place in what a probe returned. A key is code only where the
    exercise's own text has it.

    Args:
        path: keys and indices.
        exercise_words: the exercise's text and what its cell gives.
    """
    parts = [one for one in path if isinstance(one, str)]
    numbers = [one for one in path if type(one) is int]
    nth = "".join(f", number {one + 1}" for one in numbers[:1])
    if not parts or parts[0] in _RETURNED:
        key = f" for `{one_line(parts[1], 60)}`" if len(parts) > 1 else ""
        return f"What your code gives{key}{nth}{',' if nth else ''}"
    name, *rest = parts
    if name == "after" and rest:
        name, *rest = f"{rest[0]}_after", *rest[1:]
    after = name.removesuffix("_after")
    known = _known_words(exercise_words)
    if after in known:
        what = f"`{after}`" + (" after the call" if after != name else "")
    else:
        what = "The " + name.replace("_", " ")
    if rest:
        what += f" of `{one_line(rest[0], 60)}`"
    return f"{what}{nth}{',' if nth else ''}"


@functools.lru_cache(maxsize=64)
def _known_words(exercise_words: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]\w*", exercise_words))
