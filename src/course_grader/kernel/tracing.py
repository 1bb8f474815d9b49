"""Records which calls a probe makes of the learner's code.

A failed check is shown by the calls that lead to it, as a learner would write
them. So one probe call is made once more, and each call of what the exercise
defines is noted from outside: arguments as they were before it, and what came
back. It runs in the learner's process: a claim, for the learner's own page.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

MOST_CALLS = 40
"""Calls that are noted; later ones only count."""
MOST_NUMBERS = 100_000
"""Numbers of all tensors that are copied; later ones are described."""
MOST_ITEMS = 200
"""Entries of one list, tuple or dict that are copied."""
LONGEST_WORDS = 240
"""Characters of what describes an object."""
DESCRIBED = "\0described"
"""The key of the dict that stands for an object that does not travel."""

_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes),
    *(torch.dtype, torch.device, torch.Size),
)


class Entered(BaseException):
    """Ends a probe at its first call of the learner's code."""


class Trace:
    """Notes the calls of one probe call.

    Args:
        enter_only: the first call is noted and not made, for code that would
            hang or end the process.
    """

    def __init__(self, enter_only: bool = False) -> None:
        self.enter_only = enter_only
        self.calls: list[dict[str, Any]] = []
        self.count = 0
        self.inside = False
        self.numbers_left = MOST_NUMBERS
        self.names: dict[int, str] = {}
        self.keep: list[Any] = []
        self.patched: list[tuple[type, str, Any]] = []

    def traced(self, name: str, value: Any) -> Any:
        """What takes the place of one of the exercise's names."""
        if isinstance(value, type):
            self._watch_class(name, value)
        elif isinstance(value, types.FunctionType):
            return self._noted(value, lambda given: (name, given))
        return value

    def end(self) -> None:
        """Leaves classes as they were."""
        for made, name, was in reversed(self.patched):
            if was is None:
                delattr(made, name)
            else:
                setattr(made, name, was)
        self.patched.clear()

    def record(self) -> dict[str, Any]:
        """What was noted, as plain data."""
        return {"calls": self.calls, "count": self.count}

    def _watch_class(self, name: str, made: type) -> None:
        def instance(method: str) -> Callable[[tuple[Any, ...]], Any]:
            suffix = "" if method in ("forward", "__call__") else f".{method}"
            return lambda given: (
                f"{self.names.get(id(given[0]), _variable(name))}{suffix}",
                given[1:],
            )

        def begun(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
            number = len(self.names) + 1
            variable = _variable(name) + (f"_{number}" if number > 1 else "")
            self.names[id(given[0])] = variable
            self.keep.append(given[0])  # so that no id comes twice
            return f"{variable} = {name}", given[1:]

        own = vars(made)
        methods = [
            one
            for one, value in own.items()
            if isinstance(value, types.FunctionType)
            and (not one.startswith("_") or one == "__call__")
        ]
        if made.__init__ is not object.__init__:  # type: ignore[misc]
            self._patch(made, "__init__", begun)
        for method in methods:
            self._patch(made, method, instance(method))

    def _patch(
        self, made: type, name: str, called: Callable[[tuple[Any, ...]], Any]
    ) -> None:
        was = vars(made).get(name)
        setattr(made, name, self._noted(getattr(made, name), called, True))
        self.patched.append((made, name, was))

    def _noted(
        self,
        function: Callable[..., Any],
        called: Callable[[tuple[Any, ...]], Any],
        method: bool = False,
    ) -> Callable[..., Any]:
        names = _parameters(function)[method:]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.inside:
                return function(*args, **kwargs)
            self.inside = True
            note: dict[str, Any] = {}
            try:
                name, given = called(args)
                self.count += 1
                if len(self.calls) < MOST_CALLS:
                    note |= {
                        "call": str(name)[:LONGEST_WORDS],
                        "names": names[: len(given)],
                        "args": [self._copy(one) for one in given],
                        "kwargs": {
                            str(key): self._copy(one)
                            for key, one in kwargs.items()
                        },
                        "state": self._state(args[0]) if method else {},
                        "around": _around(),
                    }
                    self.calls.append(note)
                if self.enter_only:
                    raise Entered
                returned = function(*args, **kwargs)
            except BaseException as error:
                note["raised"] = type(error).__name__[:80]
                raise
            else:
                if note:
                    note["returned"] = self._copy(returned)
            finally:
                self.inside = False
            return returned

        return call

    def _state(self, owner: Any) -> dict[str, Any]:
        """The mode, parameters and buffers of a module that is called."""
        if not isinstance(owner, torch.nn.Module) or not hasattr(
            owner, "_parameters"
        ):
            return {}
        tensors = [*owner.named_parameters(), *owner.named_buffers()]
        return {"training": owner.training} | {
            name[:80]: self._copy(value.detach()) for name, value in tensors[:8]
        }

    def _copy(self, value: Any, depth: int = 0) -> Any:
        """A value that later writing does not reach; what does not travel is
        described."""
        kind = type(value)
        if kind in _PLAIN:
            return value if kind is not str else value[:2_000]
        if isinstance(value, torch.Tensor):
            self.numbers_left -= value.numel()
            if self.numbers_left < 0 or value.layout is not torch.strided:
                return _described(_tensor_words(value))
            return _copied(value)
        if kind is np.ndarray or isinstance(value, np.generic):
            self.numbers_left -= value.size
            if self.numbers_left < 0:
                return _described(f"an array of shape {value.shape}")
            return value.copy()
        if kind in (list, tuple, dict) and depth < 6:
            if len(value) > MOST_ITEMS:
                return _described(
                    f"{with_article(kind.__name__)} of {len(value)}"
                )
            if kind is dict:
                return {
                    str(key)[:200]: self._copy(one, depth + 1)
                    for key, one in value.items()
                }
            return kind(self._copy(one, depth + 1) for one in value)
        return _described(_words(value))


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters that may be given by place."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    by_place = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    return [one.name[:60] for one in found if one.kind in by_place]


def _variable(name: str) -> str:
    """`RunningStats` as a learner would call one: `running_stats`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _copied(value: torch.Tensor) -> torch.Tensor:
    """A copy with the strides of the original: a view shows as one."""
    tensor = value.detach()
    if tensor.device.type == "meta":
        return tensor
    copied = tensor.clone(memory_format=torch.contiguous_format)
    if not tensor.is_contiguous() and tensor.numel():
        # numbers alone are copied; that they were strided is kept beside them
        size = 1 + sum(
            (n - 1) * s
            for n, s in zip(tensor.shape, tensor.stride(), strict=True)
        )
        if size <= 4 * tensor.numel() + 64:
            strided = tensor.new_zeros(size).as_strided(
                tensor.shape, tensor.stride()
            )
            strided.copy_(tensor)
            copied = strided
    return copied.requires_grad_(value.requires_grad)


def _around() -> list[str]:
    """Settings of PyTorch that are not as usual while a call is made."""
    found = []
    if torch.is_inference_mode_enabled():
        found.append("torch.inference_mode()")
    elif not torch.is_grad_enabled():
        found.append("torch.no_grad()")
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
        found.append(f'torch.autocast("cpu", dtype={dtype})')
    if torch.get_default_dtype() != torch.float32:
        found.append(f"default dtype {torch.get_default_dtype()}")
    if torch.get_default_device().type != "cpu":
        found.append(f"default device {torch.get_default_device()}")
    return found


def with_article(name: str) -> str:
    """A class's name behind "a" or "an"."""
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"


def _described(words: str) -> Mapping[str, str]:
    text = " ".join(words.split())
    if len(text) > LONGEST_WORDS:
        text = f"{text[:LONGEST_WORDS]}…"
    return {DESCRIBED: text}


def _tensor_words(value: torch.Tensor) -> str:
    return f"{value.dtype} tensor of shape {tuple(value.shape)}"


def _words(value: Any) -> str:
    """An object in one line, as a learner knows it."""
    if isinstance(value, torch.nn.Module):
        mode = "" if value.training else "in eval mode: "
        return f"{mode}{_module_words(value)}"
    if isinstance(value, torch.optim.Optimizer):
        settings = [
            f"{name}={_short(value.defaults[name])}"
            for name in ("lr", "momentum", "weight_decay", "betas")
            if value.defaults.get(name)
        ]
        return f"{type(value).__name__}({', '.join(settings)})"
    if isinstance(value, types.GeneratorType):
        return "a generator"
    if isinstance(value, torch.utils.data.DataLoader):
        size = f"batch_size={value.batch_size}"
        return f"a DataLoader with {size}, num_workers={value.num_workers}"
    if isinstance(value, torch.amp.GradScaler):
        state = f"scale={_short(value.get_scale())}"
        return f"GradScaler({state if value.is_enabled() else 'enabled=False'})"
    if isinstance(value, (types.FunctionType, types.MethodType, type)):
        return value.__name__
    plain_repr: Any = object.__repr__
    if type(value).__repr__ is plain_repr:
        name = with_article(_known_name(type(value)))
        if _is_group(value):
            return f"{name}: rank {value.rank()} of {value.size()}"
        try:
            return f"{name} of {len(value)}"
        except TypeError:
            return name
    return repr(value)


def _known_name(kind: type) -> str:
    """The name of a class; of one that a probe has derived, that of the class that
    learners know."""
    *known, _ = (one for one in kind.__mro__ if one.__module__ != "probes")
    return (known or [kind])[0].__name__


def _is_group(value: Any) -> bool:
    return torch.distributed.is_available() and isinstance(
        value, torch.distributed.ProcessGroup
    )


def _module_words(module: torch.nn.Module) -> str:
    """`Sequential(Linear(3, 4), Tanh())`."""
    inner = [_module_words(one) for one in module.children()]
    if inner:
        return f"{type(module).__name__}({', '.join(inner)})"
    words = re.sub(r"\b(in|out|num)_\w+=", "", repr(module))
    return words.replace(", bias=True", "")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
