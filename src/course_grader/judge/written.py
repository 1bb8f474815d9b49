"""Values and calls as a learner would write them, cut to what a page can show.

What comes from a learner's process may be of any form and size: everything here
takes any plain data and gives back short text. The text is not escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_grader.judge.compare import type_words
from course_grader.judge.report import TERMINAL
from course_grader.kernel.plain import Unknown
from course_grader.kernel.tracing import DESCRIBED, with_article

IN_FULL = 32
"""Numbers of a tensor that a call writes out."""
SHOWN_IN_FULL = 48
"""Numbers of a tensor that a result writes out."""
LONGEST_VALUE = 900
"""Characters of one value."""
LONGEST_LINE = 160
"""Characters of one line."""
LONGEST_ROW = 72
"""Characters of a tensor that stand on one line."""
DIGITS = 4
"""Digits of a float; more where two values would read alike."""
MOST_SHARED_DIGITS = 6
"""Digits that a tensor's entries have in common and that are shown beyond these."""
NEARLY = 1e-6
"""A float that is so close to a rounded one, relative to its size, is shown in full."""
MOST_PLACES = 4
"""Entries of a large tensor that are picked out."""

_NAME = re.compile(r"[^\W\d]\w*")
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def clean(text: str, longest: int) -> str:
    """A learner's text without terminal sequences, control characters and
    characters that turn the direction of writing, cut."""
    text = _CONTROLS.sub("", TERMINAL.sub("", text[: 4 * longest]))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def one_line(text: str, longest: int) -> str:
    """The same in one line; backticks, which would end code, are quotes."""
    return clean(" ".join(text.split()).replace("`", "'"), longest)


class Call:
    """The calls that lead to a failed check, as code, and what stands for its
    larger arguments."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.given: dict[str, str] = {}

    def add(self, call: Mapping[str, Any]) -> None:
        """Writes one call, as `kernel.tracing` noted it."""
        name = one_line(str(call.get("call")), 120)
        names = call.get("names")
        names = names if isinstance(names, list) else []
        parts = []
        args = call.get("args")
        for index, value in enumerate(args if isinstance(args, list) else []):
            called = str(names[index]) if index < len(names) else "x"
            parts.append(self._argument(value, called))
        kwargs = call.get("kwargs")
        for key, value in (kwargs if isinstance(kwargs, dict) else {}).items():
            parts.append(f"{clean(str(key), 60)}={self._argument(value, key)}")
        self._state(name, call.get("state"))
        around = call.get("around")
        mark = ""
        if isinstance(around, list) and around:
            mark = "  # under " + one_line(", ".join(map(str, around)), 90)
        row = LONGEST_ROW if len(parts) > 1 else LONGEST_LINE
        if sum(map(len, parts)) + len(name) <= row and all(
            "\n" not in one for one in parts
        ):
            self.lines.append(f"{name}({', '.join(parts)}){mark}")
            return
        inner = ["    " + one.replace("\n", "\n    ") + "," for one in parts]
        self.lines.append("\n".join([f"{name}({mark}", *inner, ")"]))

    def _state(self, name: str, state: Any) -> None:
        if not isinstance(state, dict) or "training" not in state:
            return
        mode = "training" if state["training"] else "eval"
        # of several calls the last one is that matters
        self.given[name] = f"in {mode} mode; before its last call:"
        for key, value in state.items():
            if isinstance(value, Tensor):
                self.given[f"{name}.{clean(str(key), 60)}"] = summary(value)

    def _argument(self, value: Any, name: str) -> str:
        if type(value) is float and _nearly_round(value):
            return repr(value)
        if _short(value):
            return literal(value, module="torch.")
        name = str(name)
        name = name if _NAME.fullmatch(name) and len(name) <= 60 else "x"
        known = self.given.setdefault(name, summary(value))
        number = 2
        while known != summary(value):
            known = self.given.setdefault(f"{name}_{number}", summary(value))
            number += 1
        return name if number == 2 else f"{name}_{number - 1}"


def _nearly_round(value: float) -> bool:
    """Whether a float would be shown as another, from which it differs by less than
    chance: that difference is what the case is about."""
    shown = float(_number(value, DIGITS))
    return 0 < abs(shown - value) < NEARLY * abs(value)


def _short(value: Any) -> bool:
    """Whether a value is written out in a call."""
    if described(value) is not None:
        return False
    return _size(value) <= IN_FULL and _depth(value) <= 3


def _size(value: Any) -> float:
    """How much room a value takes when it is written out."""
    if isinstance(value, Tensor):
        if value.device.type == "meta" or value.dim() > 2:
            return math.inf
        if value.dim() == 1 and value.numel() > IN_FULL // 2:
            return math.inf  # too long a line
        return max(value.numel(), 1)
    if isinstance(value, np.ndarray):
        return max(value.size, 1) if value.ndim <= 2 else math.inf
    if isinstance(value, str):
        return 1 + len(value) / 8
    if isinstance(value, dict):
        if described(value) is not None:
            return math.inf
        return 1 + sum(map(_size, value.values()))
    if isinstance(value, list | tuple | set):
        return sum(map(_size, value))
    return 1


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0


def described(value: Any) -> str | None:
    """The words for an object that does not travel; None for any other value."""
    if isinstance(value, dict) and len(value) == 1 and DESCRIBED in value:
        return one_line(str(value[DESCRIBED]), LONGEST_LINE)
    if isinstance(value, Unknown):
        return one_line(with_article(value.type_name), 80)
    return None


def summary(value: Any) -> str:
    """A value in one line: a small one in full, a larger one by what it is."""
    words = described(value)
    if words is not None:
        return words
    if isinstance(value, np.ndarray):
        words = summary(_tensor_of(value)).replace("torch.", "")
        return words if "array" in words else f"NumPy array, {words}"
    if isinstance(value, Tensor):
        if (
            value.numel() <= 6
            and value.dim() <= 1
            and value.device.type == "cpu"
        ):
            return literal(value, module="torch.")
        return f"{_form(value)}{_range(value)}"
    if isinstance(value, list | tuple | dict) and not _short(value):
        kind = type(value).__name__
        if isinstance(value, dict):
            parts = [f"{literal(k)}: {summary(v)}" for k, v in value.items()]
        else:
            parts = [summary(one) for one in value]
        text = f"a {kind} of {len(value)}: "
        if len(set(parts)) == 1 and len(parts) > 1:
            return clean(f"{text}each {parts[0]}", LONGEST_LINE)
        return clean(text + "; ".join(parts), LONGEST_LINE)
    return one_line(literal(value, module="torch."), LONGEST_LINE)


def _form(value: Tensor) -> str:
    """dtype, shape and what else is not as usual."""
    parts = [f"{_dtype(value)} of shape {tuple(value.shape)}"]
    if value.device.type != "cpu":
        parts.append(f"on {value.device}")
    if value.requires_grad:
        parts.append("requires_grad")
    if value.numel() > 1 and not value.is_contiguous():
        parts.append(f"strides {tuple(value.stride())}")
    return ", ".join(parts)


def _range(value: Tensor) -> str:
    if value.device.type == "meta" or not value.numel():
        return ""
    if value.dtype.is_complex or value.dtype == torch.bool:
        return ""
    wide = value.detach().double()
    finite = wide[wide.isfinite()]
    odd = [
        name
        for name, found in (
            ("NaN", wide.isnan().any()),
            ("inf", (wide == math.inf).any()),
            ("-inf", (wide == -math.inf).any()),
        )
        if bool(found)
    ]
    text = ""
    if finite.numel():
        least, most = (
            one.to(value.dtype).item() for one in (finite.min(), finite.max())
        )
        digits = DIGITS + _shared_digits(value)
        low, high = _number(least, digits), _number(most, digits)
        text = f", all {low}" if least == most else f", {low} to {high}"
    return text + (f", holds {' and '.join(odd)}" if odd else "")


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _tensor_of(value: Any) -> Tensor:
    try:
        return torch.from_numpy(np.array(value))
    except TypeError:
        return torch.empty(np.shape(value), device="meta")


def literal(value: Any, digits: int = DIGITS, module: str = "") -> str:
    """A value as Python shows it, floats rounded.

    Args:
        value: plain data.
        digits: of a float.
        module: `torch.` for code, empty for a result.
    """
    words = described(value)
    if words is not None:
        return words
    if isinstance(value, Tensor):
        return _tensor(value, digits, module)
    if isinstance(value, np.ndarray):
        tensor = _tensor_of(value)
        prefix = "np." if module else ""
        return _tensor(tensor, digits, "").replace("tensor(", f"{prefix}array(")
    if isinstance(value, np.generic):
        return f"np.{value.dtype}({_number(value.item(), digits)})"
    if isinstance(value, bool | int | float | complex):
        return _number(value, digits)
    if isinstance(value, dict):
        parts = [
            f"{literal(key, digits)}: {literal(one, digits, module)}"
            for key, one in value.items()
        ]
        return _within("{", parts, "}")
    if isinstance(value, list | tuple):
        parts = [literal(one, digits, module) for one in value]
        if isinstance(value, list):
            return _within("[", parts, "]")
        return _within("(", parts, ",)" if len(parts) == 1 else ")")
    if isinstance(value, set):
        parts = sorted(literal(one, digits) for one in value)
        return _within("{", parts, "}") if parts else "set()"
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, str):
        return clean(repr(value), LONGEST_VALUE)
    return clean(repr(value), LONGEST_LINE)


def _within(left: str, parts: Sequence[str], right: str) -> str:
    """A list of parts on one line, or on several where they are long."""
    if sum(map(len, parts)) <= LONGEST_ROW and not any(
        "\n" in one for one in parts
    ):
        return f"{left}{', '.join(parts)}{right}"
    inner = ",\n".join(one.replace("\n", "\n ") for one in parts)
    return f"{left}{inner.replace(chr(10), chr(10) + ' ')}{right}"


def _number(value: Any, digits: int) -> str:
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.{digits}g}"
    text = f"{value:.{digits}g}"
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


_USUAL = (torch.float32, torch.int64, torch.bool)


def _tensor(value: Tensor, digits: int, module: str) -> str:
    if value.device.type == "meta":
        return f"a tensor, {_form(value)}"
    # without numbers there is nothing that tells the dtype
    told = value.dtype in (_USUAL if value.numel() else _USUAL[:1])
    extra = "" if told else f", dtype={module}{_dtype(value)}"
    if value.requires_grad:
        extra += ", requires_grad=True"
    if not value.numel():
        shape = tuple(value.shape)
        if len(shape) > 1:
            return f"{module}empty({shape}{extra})"
    numbers = _nested(
        value.detach().tolist(),
        digits + _shared_digits(value),
        len(f"{module}tensor("),
    )
    return f"{module}tensor({numbers}{extra})"


def _shared_digits(value: Tensor) -> int:
    """How many leading digits all entries have in common: about 1000 and a spread of
    1, that is three, and what tells them apart begins behind these."""
    if not value.is_floating_point():
        return 0
    finite = value.detach().double()
    finite = finite[finite.isfinite()]
    if finite.numel() < 2:
        return 0
    spread = (finite.max() - finite.min()).item()
    largest = finite.abs().max().item()
    if not 0.0 < spread < largest < math.inf:
        return 0
    return min(int(math.log10(largest / spread)), MOST_SHARED_DIGITS)


def _nested(value: Any, digits: int, indent: int) -> str:
    if not isinstance(value, list):
        return _number(value, digits)
    parts = [_nested(one, digits, indent + 1) for one in value]
    if not any(isinstance(one, list) for one in value):
        return f"[{', '.join(parts)}]"
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(parts)}]"


def pair(
    seen: Any, expected: Any, places: Sequence[Any] = ()
) -> tuple[str, str]:
    """Two values side by side, with as many digits as tell them apart, and not by the
    last of them alone.

    Args:
        seen: the learner's.
        expected: the reference's.
        places: indices of a large tensor that matter.

    Returns:
        (yours, right), each cut.
    """

    def both(digits: int) -> tuple[str, str]:
        return _result(seen, digits, places), _result(expected, digits, places)

    enough = (one for one in (DIGITS, 6, 9) if len({*both(one - 1)}) > 1)
    yours, right = both(next(enough, 17))
    # what differs stands behind what is cut off, or is no number
    return (yours, right) if yours != right else both(DIGITS)


def _result(value: Any, digits: int, places: Sequence[Any]) -> str:
    if isinstance(value, np.ndarray) and value.size > SHOWN_IN_FULL:
        return summary(value)
    if isinstance(value, Tensor) and value.device.type == "meta":
        return f"a tensor, {_form(value)}"
    if isinstance(value, Tensor) and value.numel() > SHOWN_IN_FULL:
        lines = [f"{_form(value)}{_range(value)}"]
        for place in places[:MOST_PLACES]:
            entry = value.detach()[tuple(place)].item()
            index = ", ".join(map(str, place))
            lines.append(f"[{index}]  {_number(entry, digits)}")
        return "\n".join(lines)
    if isinstance(value, list | tuple | dict) and _size(value) > 4 * IN_FULL:
        parts = [
            summary(one)
            for one in (value.values() if isinstance(value, dict) else value)
        ]
        alike = len(set(parts)) == 1 and len(parts) > 1
        return f"{type_words(value)} of {len(value)}: " + clean(
            f"each {parts[0]}" if alike else ", ".join(parts), LONGEST_VALUE
        )
    return clean(literal(value, digits), LONGEST_VALUE)
