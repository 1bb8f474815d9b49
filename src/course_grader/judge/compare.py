"""Equality of plain data within a tolerance, and words for what differs.

The words never hold a value: they name the kind of difference only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from course_grader.kernel.plain import Unknown


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may differ; None means the default of their dtype.

    The defaults are those of `torch.testing.assert_close`: relative 1.3e-6 and
    absolute 1e-5 for float32, 1e-7 both for float64 and for Python floats,
    1.6e-2 and 1e-5 for bfloat16, 1e-3 and 1e-5 for float16.
    """

    rtol: float | None = None
    atol: float | None = None
    any_number: bool = False
    """Numbers and the entries of tensors may be any; the rest counts."""


FORM = Tolerance(any_number=True)

_DEFAULTS = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


@dataclass(frozen=True)
class Difference:
    """Where two values differ first.

    Attributes:
        path: keys and indices that lead to the place.
        kind: what differs there.
        seen: the learner's value at the place.
        expected: the reference's.
        sentence: the same for the learner; it holds no value.
    """

    path: tuple[Any, ...]
    kind: Kind
    seen: Any
    expected: Any
    sentence: str


Kind = Literal[
    "type", "dtype", "shape", "device", "values", "NaN", "length", "keys"
]


_FOUND: ContextVar[list[Difference] | None] = ContextVar("found", default=None)


@contextmanager
def noted() -> Iterator[list[Difference]]:
    """Collects what `difference` finds within the block, rules' own calls
    included, so that a failed check can show the place."""
    found: list[Difference] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def difference(
    seen: Any, expected: Any, tolerance: Tolerance, what: str = ""
) -> str | None:
    """What differs first, as a sentence for the learner; None if nothing does.

    Args:
        seen: the learner's plain data.
        expected: the reference's.
        tolerance: for numbers.
        what: words for what is compared, such as "out"; empty for the whole.
    """
    found = _find(seen, expected, tolerance, what, ())
    notes = _FOUND.get()
    if found is not None and notes is not None:
        notes.append(found)
    return None if found is None else found.sentence


def _find(
    seen: Any,
    expected: Any,
    tolerance: Tolerance,
    what: str,
    path: tuple[Any, ...],
) -> Difference | None:
    name = what or "what your code returned"

    def differs(kind: Kind, sentence: str) -> Difference:
        return Difference(path, kind, seen, expected, sentence)

    if isinstance(expected, Tensor) or isinstance(seen, Tensor):
        if type(seen) is not type(expected):
            return differs("type", _other_type(name, seen, expected))
        return _tensors(seen, expected, tolerance, name, differs)
    if isinstance(expected, np.ndarray) and isinstance(seen, np.ndarray):
        return _tensors(_t(seen), _t(expected), tolerance, name, differs)
    if type(seen) is not type(expected):
        return differs("type", _other_type(name, seen, expected))
    number = isinstance(expected, int | float | complex)
    if number and tolerance.any_number and not isinstance(expected, bool):
        return None
    if isinstance(expected, float | complex):
        if seen == expected:
            return None
        dtype = (
            torch.float64 if isinstance(expected, float) else torch.complex128
        )
        return _tensors(
            torch.tensor(seen, dtype=dtype),
            torch.tensor(expected, dtype=dtype),
            tolerance,
            name,
            differs,
        )
    if isinstance(expected, list | tuple):
        if len(seen) != len(expected):
            return differs("length", f"{_cap(name)} has the wrong length.")
        for index, (one, other) in enumerate(zip(seen, expected, strict=True)):
            place = f"{what}[{index}]" if what else f"entry {index}"
            found = _find(one, other, tolerance, place, (*path, index))
            if found:
                return found
        return None
    if isinstance(expected, dict):
        if list(seen) != list(expected) and set(seen) != set(expected):
            return differs("keys", f"{_cap(name)} has the wrong keys.")
        for key in expected:
            place = f"{what}[{key!r}]" if what else f"{key}"
            found = _find(
                seen[key], expected[key], tolerance, place, (*path, key)
            )
            if found:
                return found
        return None
    if seen == expected:
        return None
    if isinstance(expected, Unknown):
        return differs("type", _other_type(name, seen, expected))
    return differs("values", f"{_cap(name)} is wrong.")


def _tensors(
    seen: Tensor,
    expected: Tensor,
    tolerance: Tolerance,
    name: str,
    differs: Callable[[Kind, str], Difference],
) -> Difference | None:
    if seen.dtype != expected.dtype:
        return differs(
            "dtype",
            f"{_cap(name)} has the dtype {_dtype(seen)}, but it should be "
            f"{_dtype(expected)}.",
        )
    if seen.dim() != expected.dim():
        return differs(
            "shape",
            f"{_cap(name)} has {seen.dim()} dimension"
            f"{'' if seen.dim() == 1 else 's'}, but it should have "
            f"{expected.dim()}.",
        )
    if seen.shape != expected.shape:
        return differs("shape", f"{_cap(name)} has the wrong shape.")
    if seen.device.type != expected.device.type:
        return differs(
            "device",
            f"{_cap(name)} is on the wrong device ({seen.device.type}).",
        )
    if seen.device.type == "meta" or tolerance.any_number:
        return None
    seen, expected = seen.detach(), expected.detach()
    if torch.equal(seen, expected):  # mostly, and tolerances cost much more
        return None
    differ = differing(seen, expected, tolerance)
    if not bool(differ.any()):
        return None
    if (
        (seen.dtype.is_floating_point or seen.dtype.is_complex)
        and bool(torch.isnan(seen).any())
        and not bool(torch.isnan(expected).any())
    ):
        return differs("NaN", f"{_cap(name)} holds NaN.")
    if expected.numel() == 1:
        return differs("values", f"{_cap(name)} is wrong.")
    return differs("values", f"{_cap(name)} has wrong values.")


def differing(
    seen: Tensor, expected: Tensor, tolerance: Tolerance = Tolerance()
) -> Tensor:
    """Which entries of two tensors of one shape and dtype differ; bool of their
    shape."""
    rtol, atol = _DEFAULTS.get(seen.dtype, (0.0, 0.0))
    rtol = rtol if tolerance.rtol is None else tolerance.rtol
    atol = atol if tolerance.atol is None else tolerance.atol
    if seen.dtype.is_floating_point or seen.dtype.is_complex:
        wide = (
            torch.float64 if seen.dtype.is_floating_point else torch.complex128
        )
        return ~torch.isclose(
            seen.to(wide),
            expected.to(wide),
            rtol=rtol,
            atol=atol,
            equal_nan=True,
        )
    return seen != expected


def _other_type(name: str, seen: Any, expected: Any) -> str:
    return (
        f"{_cap(name)} is {type_words(seen)}, but it should be "
        f"{type_words(expected)}."
    )


def type_words(value: Any) -> str:
    """A value's type with its article."""
    words = {
        type(None): "None",
        Tensor: "a tensor",
        np.ndarray: "a NumPy array",
        float: "a float",
        int: "an int",
        bool: "a bool",
        str: "a string",
        list: "a list",
        tuple: "a tuple",
        dict: "a dict",
    }
    return words.get(type(value), "a value of another type")


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _t(value: Any) -> Tensor:
    return torch.from_numpy(np.asarray(value))


def _cap(name: str) -> str:
    return name[:1].upper() + name[1:] if " " in name else f"`{name}`"
