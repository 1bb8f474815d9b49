"""Words for how two values differ: transposed, a constant ratio, the last entry
missing, another dtype. They say what is seen, never why it is so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_grader.judge.compare import Tolerance, differing, type_words
from course_grader.judge.written import literal, one_line

MOST_NAMES = 6
"""Names of a set difference that are listed."""
MOST_DIMENSIONS = 4
"""Dimensions of a tensor whose permutations are tried."""
ALIKE = 1e-4
"""How far ratios or differences of entries may be apart to count as one."""


def pattern(seen: Any, expected: Any, tolerance: Tolerance) -> str:
    """What is seen first, as one or two sentences; empty if nothing tells more
    than the values."""
    if isinstance(seen, np.ndarray) and isinstance(expected, np.ndarray):
        try:
            seen, expected = torch.from_numpy(seen), torch.from_numpy(expected)
        except TypeError:
            return ""
    if isinstance(seen, Tensor) and isinstance(expected, Tensor):
        return _tensors(seen.detach(), expected.detach(), tolerance)
    if _is_number(seen) and _is_number(expected):
        return _ratio_of_numbers(float(seen), float(expected))
    if type(seen) is not type(expected):
        return f"Yours is {type_words(seen)}, right is {type_words(expected)}."
    if isinstance(seen, dict):
        return _names(map(str, seen), map(str, expected))
    if isinstance(seen, set):
        return _names(map(str, seen), map(str, expected))
    if isinstance(seen, list | tuple):
        return _lists(seen, expected)
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def places(seen: Any, expected: Any, tolerance: Tolerance) -> list[list[int]]:
    """The first indices at which two tensors of one form differ."""
    if not (
        isinstance(seen, Tensor)
        and isinstance(expected, Tensor)
        and seen.shape == expected.shape
        and seen.dtype == expected.dtype
        and "meta" not in (seen.device.type, expected.device.type)
    ):
        return []
    found = differing(seen.detach(), expected.detach(), tolerance).nonzero()
    return [list(map(int, one)) for one in found[:4]]


def _tensors(seen: Tensor, expected: Tensor, tolerance: Tolerance) -> str:
    if seen.device.type != expected.device.type:
        return f"Yours is on {seen.device}, right is {expected.device}."
    if seen.dtype != expected.dtype:
        names = [
            str(one.dtype).removeprefix("torch.") for one in (seen, expected)
        ]
        return f"The dtype is {names[0]}; it should be {names[1]}."
    if "meta" in (seen.device.type, expected.device.type):
        return ""
    if seen.shape != expected.shape:
        return _shapes(seen, expected, tolerance)
    differ = differing(seen, expected, tolerance)
    wrong = int(differ.sum())
    if not wrong or not seen.dim():
        return (
            _ratio_of_numbers(float(seen), float(expected))
            if wrong and not seen.dtype.is_complex
            else ""
        )
    said = _moved(seen, expected, tolerance) or _by_numbers(
        seen, expected, differ
    )
    total = seen.numel()
    if wrong == total:
        where = "Every entry differs."
    else:
        first = ", ".join(map(str, differ.nonzero()[0].tolist()))
        where = (
            _rows(differ)
            or f"{wrong} of {total} entries differ, the first at [{first}]."
        )
    return f"{where} {said}".strip()


def _shapes(seen: Tensor, expected: Tensor, tolerance: Tolerance) -> str:
    shapes = f"{tuple(seen.shape)}", f"{tuple(expected.shape)}"
    said = f"The shape is {shapes[0]}; it should be {shapes[1]}."
    if seen.numel() == expected.numel():
        if _equal(seen.reshape(expected.shape), expected, tolerance):
            return f"{said} The numbers are right, in their order."
        moved = _permuted(seen, expected, tolerance)
        if moved:
            return f"{said} {moved}"
    elif seen.dim() == expected.dim() and seen.dim():
        same = seen.shape[1:] == expected.shape[1:]
        count = min(len(seen), len(expected))
        if same and count and _equal(seen[:count], expected[:count], tolerance):
            more = len(seen) - len(expected)
            what = "too many at the end" if more > 0 else "missing at the end"
            return f"{said} What there is is right: {_count(abs(more), 'entry', 'entries')} {what}."
    return said


def _equal(one: Tensor, other: Tensor, tolerance: Tolerance) -> bool:
    return (
        one.shape == other.shape
        and one.dtype == other.dtype
        and not bool(differing(one, other, tolerance).any())
    )


def _permuted(seen: Tensor, expected: Tensor, tolerance: Tolerance) -> str:
    if not 2 <= seen.dim() <= MOST_DIMENSIONS or seen.dim() != expected.dim():
        return ""
    for order in itertools.permutations(range(seen.dim())):
        if order != tuple(range(seen.dim())) and _equal(
            seen.permute(order), expected, tolerance
        ):
            return (
                "Yours is the transpose of what is right."
                if seen.dim() == 2
                else f"`permute{order}` of yours would be right."
            )
    return ""


def _moved(seen: Tensor, expected: Tensor, tolerance: Tolerance) -> str:
    """The same numbers in another order."""
    permuted = _permuted(seen, expected, tolerance)
    if permuted:
        return permuted
    if len(seen) > 1 and _equal(seen.flip(0), expected, tolerance):
        return "Yours is in the reverse order."
    if (
        seen.numel() > 2
        and not seen.dtype.is_complex
        and (
            seen.unique().numel() > 2
            and _equal(
                seen.flatten().sort().values,
                expected.flatten().sort().values,
                tolerance,
            )
        )
    ):
        return "The numbers are right, their places are not."
    return ""


def _rows(differ: Tensor) -> str:
    """Which rows differ, if these are the last ones or the first."""
    if differ.dim() == 0 or len(differ) < 2:
        return ""
    rows = differ.flatten(1).any(1) if differ.dim() > 1 else differ
    wrong, count = int(rows.sum()), len(rows)
    what = "row" if differ.dim() > 1 else "entry"
    if wrong == 1 and bool(rows[-1]):
        return f"Only the last {what} differs."
    if wrong == 1 and bool(rows[0]):
        return f"Only the first {what} differs."
    if 1 < wrong < count and bool(rows[-wrong:].all()):
        plural = "rows" if what == "row" else "entries"
        return f"The last {wrong} of {count} {plural} differ."
    return ""


def _by_numbers(seen: Tensor, expected: Tensor, differ: Tensor) -> str:
    """A constant ratio, a constant difference, zeros, NaN."""
    if seen.dtype.is_complex or seen.dtype == torch.bool:
        return ""
    one, other = seen[differ].double(), expected[differ].double()
    if bool(one.isnan().all()):
        return "" if bool(other.isnan().any()) else "Yours is NaN there."
    if bool((one == 0).all()):
        return "Yours is 0 there."
    if bool((other == 0).all()):
        return "Right is 0 there."
    if not bool(one.isfinite().all() and other.isfinite().all()):
        return ""
    usable = other.abs() > 1e-12
    if int(usable.sum()) >= 2 and bool((one[~usable].abs() < 1e-9).all()):
        ratio = one[usable] / other[usable]
        if _constant(ratio):
            return _ratio(float(ratio.mean()), everywhere=True)
    if one.numel() >= 2:
        apart = one - other
        if _constant(apart):
            return (
                "Yours is larger by the same number wherever it differs: "
                if apart[0] > 0
                else "Yours is smaller by the same number wherever it differs: "
            ) + f"{abs(float(apart.mean())):.4g}."
    return ""


def _constant(values: Tensor) -> bool:
    middle = float(values.mean())
    return middle != 0 and bool(
        ((values - middle).abs() <= ALIKE * abs(middle)).all()
    )


def _ratio_of_numbers(seen: float, expected: float) -> str:
    if math.isnan(seen) and not math.isnan(expected):
        return "Yours is NaN."
    if not (math.isfinite(seen) and math.isfinite(expected)) or not expected:
        return ""
    return _ratio(seen / expected, everywhere=False)


def _ratio(ratio: float, everywhere: bool) -> str:
    """A ratio in words; one alone is said only where it is a simple one."""
    if abs(ratio - 1) < 10 * ALIKE:
        return ""
    fraction = Fraction(ratio).limit_denominator(64) if abs(ratio) < 1e6 else 0
    simple = fraction != 0 and abs(float(fraction) - ratio) <= ALIKE * abs(
        ratio
    )
    if abs(ratio + 1) <= ALIKE:
        return "Yours has the other sign."
    if not everywhere and not (
        simple
        and isinstance(fraction, Fraction)
        and min(abs(fraction.numerator), fraction.denominator) == 1
        and max(abs(fraction.numerator), fraction.denominator) <= 64
    ):
        return ""
    text = f"{ratio:.4g}"
    if (
        simple
        and isinstance(fraction, Fraction)
        and fraction.denominator > 1
        and (abs(fraction.numerator) == 1 or fraction.denominator <= 16)
    ):
        text = f"{fraction.numerator}/{fraction.denominator}"
    elif (
        simple and isinstance(fraction, Fraction) and fraction.denominator == 1
    ):
        text = str(fraction.numerator)
    where = " wherever it differs" if everywhere else ""
    return f"Yours is {text} times what is right{where}."


def _lists(seen: Sequence[Any], expected: Sequence[Any]) -> str:
    one, other = list(map(_text, seen)), list(map(_text, expected))
    if len(one) == len(other):
        if sorted(one) == sorted(other):
            return "The entries are right, their order is not."
        return ""
    said = f"Yours has {_count(len(one), 'entry', 'entries')}, right is {len(other)}."
    if other[: len(one)] == one:
        missing = len(other) - len(one)
        if not one:
            return "Yours is empty."
        what = "The last one is" if missing == 1 else f"The last {missing} are"
        return f"{said} {what} missing."
    if other[-len(one) :] == one and one:
        missing = len(other) - len(one)
        what = "The first is" if missing == 1 else f"The first {missing} are"
        return f"{said} {what} missing."
    if all(isinstance(value, str) for value in (*seen, *expected)):
        return f"{said} {_names(seen, expected)}".strip()
    return said


def _text(value: Any) -> str:
    if isinstance(value, Tensor) and value.numel() > 1_000:
        return f"{value.dtype} {tuple(value.shape)}"
    return literal(value)


def _names(seen: Iterable[str], expected: Iterable[str]) -> str:
    """The difference of two sets of names."""
    yours, right = list(dict.fromkeys(seen)), list(dict.fromkeys(expected))
    missing = [one for one in right if one not in set(yours)]
    extra = [one for one in yours if one not in set(right)]
    parts = []
    for what, names in (("Missing", missing), ("Too many", extra)):
        if names:
            listed = ", ".join(
                f"`{one_line(one, 60)}`" for one in names[:MOST_NAMES]
            )
            more = len(names) - MOST_NAMES
            parts.append(
                f"{what}: {listed}{f' and {more} more' if more > 0 else ''}."
            )
    return " ".join(parts)


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
