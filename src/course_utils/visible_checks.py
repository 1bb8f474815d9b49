"""Visible checks: what a learner hears below an exercise, in one line.

`visible_check` wraps the checks of one exercise, `expect` is one of them. Run by
a learner, the block says *not attempted*, *try again* or what passes, and lets
*Run All* go on. While nbgrader validates or grades a notebook it raises instead,
for nbgrader counts a cell as failed only if it raises.
"""

from __future__ import annotations

import ast
import linecache
import math
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Number
from types import CodeType, TracebackType
from typing import Any

_LONGEST_VALUE = 60
_LONGEST_MESSAGE = 200


_PASSED: list[str] = []
"""What has been as expected since the last block began."""
_ENDED: dict[str, str] = {}
"""What each block of this kernel said last, by the name of its exercise."""
NOT_ATTEMPTED, TRY_AGAIN = "not attempted", "try again"


class _VisibleCheck:
    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        _PASSED.clear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        graded = bool(os.environ.get("NBGRADER_EXECUTION"))
        if raised is None:
            checks = f"{len(_PASSED)} of {len(_PASSED)} visible checks pass"
            if not _PASSED:
                checks = "the visible check passes"
            _ENDED[self.name] = checks
            print(f"{self.name}: {checks}; hidden ones count")
            return False
        # The learner's own Ctrl-C, or a kernel being told to stop.
        if not isinstance(raised, Exception | SystemExit):
            return False
        frames = [] if trace is None else list(_frames(trace))
        if _not_attempted(self.name, raised, frames):
            _ENDED[self.name] = NOT_ATTEMPTED
            sentence = f"{self.name}: {NOT_ATTEMPTED}"
            if graded and isinstance(raised, NotImplementedError):
                return False
            if graded:
                raise NotImplementedError(sentence) from raised
        else:
            reason = _what_went_wrong(self.name, raised, frames)
            _ENDED[self.name] = TRY_AGAIN
            sentence = f"{self.name}: {TRY_AGAIN} · {reason}"
            if graded:
                raise AssertionError(sentence) from raised
        print(sentence)
        return True


def visible_check(name: str) -> _VisibleCheck:
    """A `with` block that holds the visible checks of one exercise.

    It prints exactly one line and swallows what the block raised:

    - `NAME: not attempted` if the learner's code still raises
      NotImplementedError, or if the name of the exercise is not defined;
    - `NAME: try again · ...` if an `expect` or an assert fails, or if the code
      raises anything else, SystemExit included;
    - `NAME: 3 of 3 visible checks pass; hidden ones count`.

    KeyboardInterrupt passes through. A NotImplementedError of PyTorch itself (an
    operator without a kernel, a module without `forward`) is an error like others.

    Args:
        name: the id of the exercise, which usually is the name it defines.

    Raises:
        NotImplementedError: not attempted, where NBGRADER_EXECUTION is set.
        AssertionError: the same *try again* line, where NBGRADER_EXECUTION is set.
    """
    return _VisibleCheck(name)


def summary(*names: str) -> None:
    """Prints what the visible checks of a chapter said last, a line for each
    exercise, and which are open. Silent where NBGRADER_EXECUTION is set.

    Args:
        names: the ids of the chapter's exercises, in order.
    """
    if os.environ.get("NBGRADER_EXECUTION"):
        return
    said = {name: _ENDED.get(name, "not run yet") for name in names}
    width = max(map(len, names), default=0)
    for name, ended in said.items():
        print(f"{name:<{width}}  {ended}")
    answered = [one for one in names if one in _ENDED]
    answered = [one for one in answered if said[one] != NOT_ATTEMPTED]
    open_ones = [one for one in names if one not in answered]
    open_ones += [one for one in answered if said[one] == TRY_AGAIN]
    print(
        f"Answered: {len(answered)} of {len(names)}. "
        + (f"Open: {', '.join(open_ones)}." if open_ones else "None is open.")
    )


def expect(
    what: str,
    seen: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Fails in short words unless `seen` equals `expected`.

    Tensors and NumPy arrays must agree in dtype, shape and values; lists, tuples
    and dicts item by item; NaN equals NaN. A number is not a tensor and a list is
    not a tuple, while 2 equals 2.0. Values agree if
    |seen - expected| <= atol + rtol * |expected|.

    Args:
        what: what is compared, as the subject of a sentence: "the shape".
        seen: what the learner's code gave.
        expected: what is right.
        rtol: relative tolerance. By default that of `torch.testing.assert_close`
            for the dtype; 1e-5 for plain floats.
        atol: absolute tolerance. By default that of `torch.testing.assert_close`
            for the dtype; 1e-8 for plain floats.

    Raises:
        AssertionError: "the shape is (4, 1), expected (2, 3)".
    """
    difference = _difference(what, seen, expected, rtol, atol)
    if difference is not None:
        raise AssertionError(difference)
    _PASSED.append(what)


# What was raised, and where.


def _frames(trace: TracebackType) -> Iterator[TracebackType]:
    step: TracebackType | None = trace
    while step is not None:
        yield step
        step = step.tb_next


def _is_library(code: CodeType) -> bool:
    path = code.co_filename
    if path.startswith("<"):
        # IPython before 8 calls its cells <ipython-input-3-0123abcd>.
        return bool(re.match(r"<(frozen|string|__array|eval_with)", path))
    here = os.path.dirname(__file__)
    installed = sysconfig.get_paths()
    folders = (here, *(installed[k] for k in ("stdlib", "purelib", "platlib")))
    return (
        any(path.startswith(folder + os.sep) for folder in folders)
        or f"{os.sep}site-packages{os.sep}" in path
        or f"{os.sep}dist-packages{os.sep}" in path
    )


def _is_cell(path: str) -> bool:
    return path.startswith("<") or bool(
        re.search(r"ipykernel_\d+[/\\]|ipython-input-", path)
    )


def _in_check(step: TracebackType, first: TracebackType) -> bool:
    """Whether a frame is the check's own code and not the learner's."""
    code, check = step.tb_frame.f_code, first.tb_frame.f_code
    # In a plain script the exercise stands in the same file as its check.
    return code is check or (
        _is_cell(code.co_filename) and code.co_filename == check.co_filename
    )


def raises_itself(step: TracebackType) -> bool:
    """Whether the frame stopped at a `raise`, not at a call into C or C++."""
    import opcode

    code = step.tb_frame.f_code.co_code
    return opcode.opname[code[step.tb_lasti]] == "RAISE_VARARGS"


def _not_attempted(
    name: str, raised: BaseException, frames: list[TracebackType]
) -> bool:
    if isinstance(raised, NameError):
        return raised.name == name
    if not isinstance(raised, NotImplementedError) or not frames:
        return False
    last = frames[-1]
    if not _is_library(last.tb_frame.f_code):
        return raises_itself(last)
    # A worker of a DataLoader hands on the traceback as text; its last line has
    # no message where the learner's `raise NotImplementedError()` is untouched.
    lines = str(raised).strip().splitlines() or [""]
    return (
        lines[0].startswith("Caught NotImplementedError in DataLoader worker")
        and lines[-1] == "NotImplementedError"
    )


def _what_went_wrong(
    name: str, raised: BaseException, frames: list[TracebackType]
) -> str:
    own = [f for f in frames if not _is_library(f.tb_frame.f_code)]
    told = _one_line(_text_of(raised))
    error = type(raised).__name__ + (f": {told}" if told else "")
    if not own:
        return f"your code raised {error}"
    if not _in_check(own[-1], frames[0]):
        place = _place(name, own, frames[0])
        return f"your code raised {error} ({place})"
    if isinstance(raised, AssertionError):
        if told:
            return told
        source = _condition(_source_at(own[-1]))
        return f"this does not hold: {source}" if source else "a check fails"
    if isinstance(raised, NameError) and raised.name:
        return f"the name {raised.name} is not defined: run the cells above"
    source = _source_at(own[-1])
    return f"{source} raised {error}" if source else f"your code raised {error}"


def _place(name: str, own: list[TracebackType], first: TracebackType) -> str:
    """Where in the learner's code it happened: in the exercise's own cell if one
    of the frames is there, else in the innermost one."""
    learners = [f for f in own if not _in_check(f, first)]
    home = _file_of(first.tb_frame.f_globals.get(name))
    at_home = [f for f in learners if f.tb_frame.f_code.co_filename == home]
    step = (at_home or learners)[-1]
    code = step.tb_frame.f_code
    if not _is_cell(code.co_filename):
        file = os.path.basename(code.co_filename)
        return f"line {step.tb_lineno} of {file}"
    if at_home or code.co_name.startswith("<"):
        return f"line {step.tb_lineno} of your cell"
    function = code.co_qualname.partition(".<locals>")[0]
    return f"line {step.tb_lineno} of the cell with {function}"


def _file_of(exercise: Any) -> str | None:
    """The file name under which a function or class was compiled."""
    made = vars(exercise).values() if isinstance(exercise, type) else [exercise]
    for one in made:
        while hasattr(one, "__wrapped__"):
            one = one.__wrapped__
        code = getattr(one, "__code__", None)
        if isinstance(code, CodeType) and not _is_library(code):
            return code.co_filename
    return None


def _source_at(step: TracebackType) -> str:
    """The expression at which a frame stopped, in one line."""
    code = step.tb_frame.f_code
    positions = next(islice(code.co_positions(), step.tb_lasti // 2, None))
    line, end_line, column, end_column = positions
    if line is None or end_line is None:
        return ""
    lines = [
        linecache.getline(code.co_filename, n, step.tb_frame.f_globals)
        for n in range(line, end_line + 1)
    ]
    # Columns count bytes of UTF-8.
    encoded = [one.encode() for one in lines]
    encoded[-1] = encoded[-1][:end_column]
    encoded[0] = encoded[0][column:]
    text = b" ".join(one.strip() for one in encoded)
    return _one_line(text.decode(errors="replace"))


def _condition(source: str) -> str:
    """What is asserted: Python 3.12 stops at the whole statement, others at its
    condition."""
    if not source.startswith("assert "):
        return source
    try:
        (statement,) = ast.parse(source).body
    except SyntaxError:  # a long one that was cut
        return source.removeprefix("assert ")
    assert isinstance(statement, ast.Assert)
    return ast.get_source_segment(source, statement.test) or source


# Words for values.


def _one_line(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _text_of(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception:  # a learner's own exception class may be broken
        return ""


def _shown(value: Any, longest: int = _LONGEST_VALUE) -> str:
    if _is_tensor(value):
        return _kind(value)
    try:
        text = repr(value)
    except Exception:  # a learner's own class may be broken
        text = _kind(value)
    return _one_line(text, longest)


def _kind(value: Any) -> str:
    if _is_tensor(value):
        return "a tensor"
    if _is_array(value):
        return "a NumPy array"
    if value is None:
        return "None"
    if _is_number(value):
        return "a number"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _shape(value: Any) -> str:
    return str(tuple(value.shape))


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _pair(seen: Any, expected: Any) -> str:
    """Both values, with as many digits as it takes to tell them apart."""
    if isinstance(seen, float) and isinstance(expected, float):
        for digits in (4, 7, 10):
            short = f"{seen:.{digits}g}", f"{expected:.{digits}g}"
            if short[0] != short[1]:
                return f"{short[0]}, expected {short[1]}"
    left, right = _shown(seen), _shown(expected)
    if left == right:
        left = f"{left} ({type(seen).__name__})"
        right = f"{right} ({type(expected).__name__})"
    return f"{left}, expected {right}"


# Comparing.


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _difference(
    what: str, seen: Any, expected: Any, rtol: float | None, atol: float | None
) -> str | None:
    """What is different, as a sentence without its full stop; None if nothing."""
    compare: Callable[..., str | None]
    for belongs, compare in (
        (_is_tensor, _tensor_difference),
        (_is_array, _array_difference),
        (_is_number, _number_difference),
        (_is_dict, _dict_difference),
        (_is_sequence, _sequence_difference),
    ):
        if belongs(expected):
            if not belongs(seen) or (
                compare is _sequence_difference
                and isinstance(seen, tuple) != isinstance(expected, tuple)
            ):
                found, wanted = _kind(seen), _kind(expected)
                return f"{what} is {found}, expected {wanted}"
            return compare(what, seen, expected, rtol, atol)
    if _equal(seen, expected):
        return None
    return f"{what} is {_pair(seen, expected)}"


def _is_dict(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(
        value, str | bytes | bytearray | range
    )


def _equal(seen: Any, expected: Any) -> bool:
    if seen is expected:
        return True
    if isinstance(expected, bool) or isinstance(seen, bool):
        return type(seen) is type(expected) and bool(seen == expected)
    try:
        return bool(seen == expected)
    except Exception:  # `==` of tensors against others, or a learner's own
        return False


def _number_difference(
    what: str,
    seen: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
) -> str | None:
    if _equal(seen, expected):
        return None
    exact = isinstance(seen, int) and isinstance(expected, int)
    if not exact or rtol is not None or atol is not None:
        rtol = 1e-5 if rtol is None else rtol
        atol = 1e-8 if atol is None else atol
        distance = abs(seen - expected)
        if distance <= atol + rtol * abs(expected) and math.isfinite(distance):
            return None
        if seen != seen and expected != expected:  # both NaN
            return None
    return f"{what} is {_pair(seen, expected)}"


def _dict_difference(
    what: str,
    seen: Mapping[Any, Any],
    expected: Mapping[Any, Any],
    rtol: float | None,
    atol: float | None,
) -> str | None:
    missing = [key for key in expected if key not in seen]
    if missing:
        return f"{what} has no key {_shown(missing[0])}"
    extra = [key for key in seen if key not in expected]
    if extra:
        return f"{what} has the key {_shown(extra[0])}, expected none such"
    for key, value in expected.items():
        found = _difference(
            f"{what} at {_shown(key)}", seen[key], value, rtol, atol
        )
        if found is not None:
            return found
    return None


def _sequence_difference(
    what: str,
    seen: Sequence[Any],
    expected: Sequence[Any],
    rtol: float | None,
    atol: float | None,
) -> str | None:
    texts = [_shown(one, _LONGEST_VALUE + 1) for one in (seen, expected)]
    short = all(
        len(text) <= _LONGEST_VALUE and "tensor(" not in text for text in texts
    )
    if len(seen) != len(expected):
        if short:
            return f"{what} is {_pair(seen, expected)}"
        return f"{what} has {len(seen)} items, expected {len(expected)}"
    for index, (one, other) in enumerate(zip(seen, expected, strict=True)):
        found = _difference(f"{what} at [{index}]", one, other, rtol, atol)
        if found is not None:
            return f"{what} is {_pair(seen, expected)}" if short else found
    return None


def _array_difference(
    what: str,
    seen: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
) -> str | None:
    import numpy as np
    import torch

    if seen.dtype != expected.dtype:
        return f"{what} has dtype {seen.dtype}, expected {expected.dtype}"
    if expected.dtype.kind in "biufc":
        one, other = (
            torch.from_numpy(np.array(array)) for array in (seen, expected)
        )
        return _tensor_difference(what, one, other, rtol, atol)
    if seen.shape == expected.shape and bool((seen == expected).all()):
        return None
    return f"{what} is {_pair(seen, expected)}"


def _tensor_difference(
    what: str,
    seen: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
) -> str | None:
    import torch

    if seen.dtype != expected.dtype:
        return f"{what} has dtype {_dtype(seen)}, expected {_dtype(expected)}"
    if seen.shape != expected.shape:
        return f"{what} has shape {_shape(seen)}, expected {_shape(expected)}"
    if seen.is_meta != expected.is_meta:
        places = seen.device, expected.device
        return f"{what} is on {places[0]}, expected {places[1]}"
    if expected.is_meta:
        return None
    one, other = (_plain_values(tensor) for tensor in (seen, expected))
    usual = _tolerances(expected.dtype)
    close = torch.isclose(
        one,
        other,
        rtol=usual[0] if rtol is None else rtol,
        atol=usual[1] if atol is None else atol,
        equal_nan=True,
    )
    if bool(close.all()):
        return None
    texts = _listed(one), _listed(other)
    if max(map(len, texts)) <= _LONGEST_VALUE and texts[0] != texts[1]:
        return f"{what} is {texts[0]}, expected {texts[1]}"
    index = (~close).nonzero()[0].tolist()
    place = ", ".join(map(str, index))
    pair = _pair(one[tuple(index)].item(), other[tuple(index)].item())
    if not index:
        return f"{what} is {pair}"
    count = f"{int((~close).sum())} of {close.numel()}"
    return f"{what} differs at {count} places; at [{place}] it is {pair}"


def _tolerances(dtype: Any) -> tuple[float, float]:
    """(rtol, atol) of `torch.testing.assert_close`; integers must be equal."""
    import torch

    return {
        torch.float16: (1e-3, 1e-5),
        torch.bfloat16: (1.6e-2, 1e-5),
        torch.float32: (1.3e-6, 1e-5),
        torch.float64: (1e-7, 1e-7),
        torch.complex64: (1.3e-6, 1e-5),
        torch.complex128: (1e-7, 1e-7),
    }.get(dtype, (0.0, 0.0))


def _plain_values(tensor: Any) -> Any:
    """The values on the CPU, in a dtype that holds them exactly and that every
    operation knows."""
    import torch

    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    if dense.is_complex():
        return dense.cpu().to(torch.complex128)
    if dense.is_floating_point():
        return dense.cpu().to(torch.float64)
    if dense.dtype == torch.bool:
        return dense.cpu()
    return dense.cpu().to(torch.int64)


def _listed(tensor: Any) -> str:
    if tensor.numel() > 12 or tensor.is_complex():
        return " " * (_LONGEST_VALUE + 1)

    def text(values: Any) -> str:
        if isinstance(values, list):
            return f"[{', '.join(map(text, values))}]"
        return f"{values:.4g}" if isinstance(values, float) else str(values)

    return text(tensor.tolist())
