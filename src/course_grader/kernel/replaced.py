"""What a learner's code has replaced of that which facts are measured with.

Side effects, counts and modes are measured in the learner's process, so whoever
replaces `warnings.warn` there decides which warnings there were. No honest answer
needs that. What functions and classes are is noted in the process that learners'
processes are forked from, before any cell has run; the judge asks after each exercise
that got points, and what is found is shown to a human. The answer is the process' own
word again: code that changes it must reach for this module, and is named for that.
"""

from __future__ import annotations

import builtins
import gc
import io
import random
import sys
import time
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import _device, _python_dispatch

from course_grader.kernel import channel, plain, probing, shell, tracing

MOST_NAMED = 8
"""Names that are told of one exercise."""

_MODULES = (
    *(builtins, gc, random, time, warnings, np.random, torch, torch.autograd),
    *(torch.autograd.graph, _python_dispatch),
    *(channel, plain, probing, shell, tracing),
)
_CLASSES = (
    *(torch.Tensor, torch._C.TensorBase, torch.Generator),
    *(nn.Module, torch.optim.Optimizer, torch.optim.SGD, torch.optim.AdamW),
    *(warnings.catch_warnings, io.StringIO),
    *(channel.Channel, probing._Before, probing._ModuleWatch, tracing.Trace),
)
"""What is not here (the layers, say) is left out for its price: to look at an object
in a fork copies the page that it lies on."""
_KINDS = (
    *(type, property, staticmethod, classmethod),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType),
)
"""What is noted; all else that a module or a class holds is its state."""
_OF_IPYTHON = frozenset(("exit", "quit", "open", "input", "display", "print"))
"""Names that a shell puts in the place of Python's own."""

_OF_DYNAMO = frozenset(("__init__", "__setstate__", "_init_group"))
"""Methods that torch itself wraps once something is compiled; nothing is measured with
them."""

Noted = list[tuple[str, Mapping[str, Any], str, Any, Any]]


def _code(value: Any) -> Any:
    """What a function does, which can be changed without replacing it."""
    if isinstance(value, types.FunctionType):
        return value.__code__, value.__defaults__, value.__kwdefaults__
    return None


def _owners() -> Iterator[tuple[str, Any]]:
    for module in _MODULES:
        yield module.__name__, module
    for one in _CLASSES:
        yield f"{one.__module__}.{one.__qualname__}", one


def _hook_optimizers() -> None:
    """The first optimizer of a class wraps the class' `step`: that is torch's own
    doing, so it is done before anything is noted. To make one would import what
    compiles."""
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        kind._patch_step_function(object.__new__(kind))


def _note() -> Noted:
    _hook_optimizers()
    return [
        (owner, vars(of), name, value, _code(value))
        for owner, of in _owners()
        for name, value in vars(of).items()
        if isinstance(value, _KINDS)
        and not (of is builtins and name in _OF_IPYTHON)
        and not (isinstance(of, type) and name in _OF_DYNAMO)
        # most of its classes and private functions have to do with compiling
        and not (of is torch and (name[0] == "_" or isinstance(value, type)))
    ]


_noted = _note()
_WRAPS = torch._disable_dynamo(_note).__code__  # type: ignore[attr-defined, no-untyped-call]


def _is_torchs_own(now: Any, value: Any) -> bool:
    """Whether it is what torch puts in the place of a function when something is
    compiled, or when the first optimizer is made: `torch.manual_seed`."""
    return (
        isinstance(now, types.FunctionType)
        and now.__code__ is _WRAPS
        and any(one.cell_contents is value for one in now.__closure__ or ())
    )


_MODES = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_function_mode = torch._C._get_function_stack_at
_DEVICE = _device.DeviceContext


def replaced() -> list[str]:
    """Names of what is not what it was, and of modes of torch that are on; at most
    `MOST_NAMED`."""
    found = [
        f"{owner}.{name}"
        for owner, names, name, value, code in _noted
        if not (
            names.get(name) is value or _is_torchs_own(names.get(name), value)
        )
        or (code is not None and _code(value) != code)
    ]
    dispatching, overriding = (one() for one in _MODES)
    if dispatching:
        found.append("a TorchDispatchMode that is on")
    # a default device is a mode, too
    if any(
        not isinstance(_function_mode(place), _DEVICE)
        for place in range(overriding)
    ):
        found.append("a TorchFunctionMode that is on")
    if sys.gettrace() or sys.getprofile():
        found.append("a trace function that is on")
    return found[:MOST_NAMED]
