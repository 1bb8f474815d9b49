"""Runs one probe on one case and records what it did.

The same function serves the reference, the learner's process and the stock
route inside nbgrader's kernel, so that all three see the same conditions.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import io
import os
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _device as _device_mode

from course_grader.kernel.tracing import Trace
from course_utils.visible_checks import raises_itself

LONGEST_TEXT = 500
"""Characters of an exception's own text that are passed on."""
PROBE_SEED = 20_26
"""Seeds global random state before every probe call, on every side."""


# As they are before any cell has run. Later, whatever torch's names lead to may be
# the learner's, and would be asked what the learner's code has done.
_base: Any = torch._C.TensorBase
_version, _shape, _dtype, _device, _wants_grad, _hooks = (
    getattr(_base, one).__get__
    for one in (
        *("_version", "shape", "dtype", "device", "requires_grad"),
        "_backward_hooks",
    )
)
_detach, _clone, _reshape, _copy, _view, _numel = (
    *(_base.detach, _base.clone, _base.reshape, _base.copy_, _base.view),
    _base.numel,
)
_equal, _empty, _bytes_of = torch.equal, torch.empty, np.ndarray.tobytes
_rng_state = torch.get_rng_state
_numpy_draw, _python_draw = np.random.random_sample, random.random
_numpy_errors = np.geterr
_without_overrides = torch._C.DisableTorchFunction
_zip, _isinstance = zip, isinstance
_is_grad_enabled, _default_dtype = (
    torch.is_grad_enabled,
    torch.get_default_dtype,
)
_deterministic = torch.are_deterministic_algorithms_enabled
_autocast, _threads = torch.is_autocast_enabled, torch.get_num_threads
_anomaly, _collects = torch.is_anomaly_enabled, gc.isenabled


class MissingName(NameError):
    """The learner's namespace lacks a name that the exercise asks for."""


def load_probes(code: types.CodeType) -> dict[str, Callable[..., Any]]:
    """The probes of a chapter from its compiled `probes.py`."""
    module = types.ModuleType("probes")
    exec(code, module.__dict__)
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType)
    }


def run_probe(
    probe: Callable[..., Any],
    namespace: Mapping[str, Any],
    case: dict[str, Any],
    is_learners_file: Callable[[str], bool],
    trace: Trace | None = None,
) -> dict[str, Any]:
    """Calls a probe with what the namespace defines and records the call.

    Args:
        probe: takes the names of the exercise, then `case`.
        namespace: where the implementation stands.
        case: the inputs; belongs to this call alone.
        is_learners_file: tells whether a code file name is a learner's cell.
        trace: notes the calls that the probe makes.

    Returns:
        A record with `data` (what the probe returned), `raised` (class names
        from the exception up), `text` (the exception's own), `effects`,
        `not_attempted`, `refused`, `out_of_memory` and `where` (code file and line
        of the learner's last frame, or None).
    """
    record: dict[str, Any] = {
        "data": None,
        "raised": [],
        "text": "",
        "not_attempted": False,
        "refused": False,
        "out_of_memory": False,
        "where": None,
        "effects": {},
    }
    modules = _ModuleWatch()
    settings = _settings()
    with _same_conditions(settings):
        before = _Before(case, settings)
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("always")
            filters, imported = [*warnings.filters], len(sys.modules)
            try:
                given = _implementations(probe, namespace, modules, trace)
                record["data"] = probe(*given, case)
            except BaseException as error:
                _describe(error, record, is_learners_file)
                if isinstance(error, KeyboardInterrupt):
                    raise
            finally:
                if trace is not None:
                    trace.end()
                # a module that is imported adds some of its own
                filtered = filters != warnings.filters and imported == len(
                    sys.modules
                )
        changes = before.changes()
        if filtered:
            changes["state_changed"].append("warning filters")
        record["effects"] = {
            **changes,
            "modules_changed": modules.changes(),
            "warnings": sorted(
                {
                    one.category.__name__
                    for one in caught
                    # comes whenever something is collected, whosever it was
                    if not issubclass(one.category, ResourceWarning)
                }
            ),
        }
    return record


def _implementations(
    probe: Callable[..., Any],
    namespace: Mapping[str, Any],
    modules: _ModuleWatch,
    trace: Trace | None,
) -> list[Any]:
    given = []
    for name in _names_of(probe):
        if name not in namespace:
            raise MissingName(name)
        value = namespace[name]
        if isinstance(value, types.FunctionType):
            value = modules.watched(value)
        if trace is not None:
            value = trace.traced(name, value)
        given.append(value)
    return given


@functools.cache
def _names_of(probe: Callable[..., Any]) -> list[str]:
    """What a probe asks of the learner's namespace."""
    return list(inspect.signature(probe).parameters)[:-1]


def _describe(
    error: BaseException,
    record: dict[str, Any],
    is_learners_file: Callable[[str], bool],
) -> None:
    classes = type(error).__mro__
    record["raised"] = [one.__name__ for one in classes[:-1]]
    where = None
    traceback = error.__traceback__
    last = traceback
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_learners_file(file):
            where = [file, traceback.tb_lineno]
        last, traceback = traceback, traceback.tb_next
    record["where"] = where
    text = str(error)
    record["text"] = text[:LONGEST_TEXT]
    record["out_of_memory"] = isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and ("allocate memory" in text or "not enough memory" in text)
    )
    itself = (
        last is not None
        and is_learners_file(last.tb_frame.f_code.co_filename)
        and raises_itself(last)  # PyTorch raises the same, too
    )
    not_attempted = type(error) is NotImplementedError and itself
    record["not_attempted"] = isinstance(error, MissingName) or not_attempted
    record["refused"] = itself and not not_attempted


@contextlib.contextmanager
def _same_conditions(settings: dict[str, Any]) -> Iterator[None]:
    """Seeds everything for the call and puts the settings back after it. Random
    states are left as the call left them: the next one is seeded too."""
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    always = torch.is_warn_always_enabled()
    _seed()
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(always)
        torch.set_grad_enabled(settings["grad mode"])
        torch.set_default_dtype(settings["default dtype"])
        # None where none was set: a default device, even the CPU, sends every
        # later call of torch through Python
        torch.set_default_device(settings["default device"])
        # where it changed alone: setting it imports what compiles
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        if (_deterministic(), warns) != (settings["deterministic"], warn_only):
            torch.use_deterministic_algorithms(
                settings["deterministic"], warn_only=warn_only
            )
        torch.set_autocast_enabled("cpu", settings["autocast"])
        _set_back(settings)


def _seed() -> None:
    # the CPU generator alone: torch.manual_seed also queues a call, with a
    # stack trace, for a CUDA that never comes up
    torch.default_generator.manual_seed(PROBE_SEED)
    np.random.seed(PROBE_SEED)
    random.seed(PROBE_SEED)


@dataclass(frozen=True)
class _Draws:
    """What tells where the global random generators stand: PyTorch's state, and of
    NumPy's and Python's, whose states take longer to read than many a call, the next
    number."""

    torch: torch.Tensor
    numpy: float
    python: float

    @classmethod
    def now(cls) -> _Draws:
        """Takes a number of two generators; the next call seeds them."""
        return cls(_rng_state(), _numpy_draw(), _python_draw())

    def moved(self, to: _Draws) -> list[str]:
        """Of which libraries the generators stand elsewhere."""
        differs = {
            "torch": not _equal(self.torch, to.torch),
            "numpy": self.numpy != to.numpy,
            "random": self.python != to.python,
        }
        return [name for name, one in differs.items() if one]


@functools.cache
def _seeded() -> _Draws:
    """What every call begins with."""
    _seed()
    draws = _Draws.now()
    _seed()
    return draws


def _settings() -> dict[str, Any]:
    return {
        "grad mode": _is_grad_enabled(),
        "default dtype": _default_dtype(),
        "default device": _device_mode.CURRENT_DEVICE,
        "deterministic": _deterministic(),
        "autocast": _autocast("cpu"),
        "cuDNN": [getattr(torch.backends.cudnn, one) for one in _CUDNN],
        "matmul precision": [one.fp32_precision for one in _MATMULS],
        "number of threads": _threads(),
        "anomaly detection": _anomaly(),
        "oneDNN": torch.backends.mkldnn.deterministic,  # type: ignore[attr-defined]
        "garbage collector": _collects(),
        "print options": [getattr(_PRINTING, one) for one in _PRINT_OPTIONS],
        "NumPy's error handling": _numpy_errors(),
        **{name: os.environ.get(name) for name in _VARIABLES},
    }


_VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
)
"""Variables of the environment by which cuBLAS is made deterministic, and GPUs are
numbered and hidden."""
_CUDNN = ("benchmark", "deterministic", "enabled")
_PRINTING = torch._tensor_str.PRINT_OPTS
_PRINT_OPTIONS = (
    "precision",
    "threshold",
    "edgeitems",
    "linewidth",
    "sci_mode",
)
_MATMULS = (
    torch.backends.cuda.matmul,
    torch.backends.mkldnn.matmul,  # type: ignore[attr-defined]
)


def _set_back(settings: dict[str, Any]) -> None:
    """Those settings that cost more to write than to read."""
    now = _settings()
    if now["cuDNN"] != settings["cuDNN"]:
        for name, value in zip(_CUDNN, settings["cuDNN"], strict=True):
            setattr(torch.backends.cudnn, name, value)
    if now["matmul precision"] != settings["matmul precision"]:
        for of, value in zip(
            _MATMULS, settings["matmul precision"], strict=True
        ):
            of.fp32_precision = value
    if now["number of threads"] != settings["number of threads"]:
        torch.set_num_threads(settings["number of threads"])
    if now["anomaly detection"] != settings["anomaly detection"]:
        torch.autograd.set_detect_anomaly(settings["anomaly detection"])
    if now["oneDNN"] != settings["oneDNN"]:
        torch.backends.mkldnn.deterministic = settings["oneDNN"]  # type: ignore[attr-defined]
    if now["garbage collector"] != settings["garbage collector"]:
        (gc.enable if settings["garbage collector"] else gc.disable)()
    for name, value in zip(
        _PRINT_OPTIONS, settings["print options"], strict=True
    ):
        setattr(_PRINTING, name, value)
    np.seterr(**settings["NumPy's error handling"])
    for name in _VARIABLES:
        os.environ.pop(name, None)
        if settings[name] is not None:
            os.environ[name] = settings[name]


class _Before:
    """The case's tensors and the global settings as they were before the call."""

    def __init__(self, case: dict[str, Any], settings: dict[str, Any]) -> None:
        self.tensors = list(_tensors(case, ""))
        with _without_overrides():
            self.copies = [
                (
                    *(_version(value), _shape(value), _noted(value)),
                    _clone(_detach(value)),
                )
                if _isinstance(value, torch.Tensor)
                else value.copy()
                for _, value in self.tensors
            ]
        self.settings = settings
        self.draws = _seeded()

    def changes(self) -> dict[str, Any]:
        settings = _settings()
        return {
            "inputs_changed": self._inputs_changed(),
            "rng_changed": self.draws.moved(_Draws.now()),
            "state_changed": [
                name
                for name in settings
                if settings[name] != self.settings[name]
            ],
        }

    def _inputs_changed(self) -> list[str]:
        with _without_overrides():
            return [
                path + changed
                for (path, value), copy in _zip(
                    self.tensors, self.copies, strict=True
                )
                if (changed := _changed(value, copy)) is not None
            ]


def _changed(value: Any, copy: Any) -> str | None:
    """What of it is other than in the copy: "" for the values, else an attribute;
    None where nothing is."""
    if not _isinstance(value, torch.Tensor):
        same = value.shape == copy.shape and _bytes_of(value) == _bytes_of(copy)
        return None if same else ""
    version, shape, noted, values = copy
    if _version(value) != version or _shape(value) != shape:
        return ""
    if _device(value).type != "meta":
        try:
            if not _equal(_bytes(value), _bytes(values)):
                return ""
        except RuntimeError:
            return ""  # it is not even a tensor with values any more
    now = _noted(value)
    if now == noted:
        return None
    return next(f".{name}" for name, of in now.items() if of != noted[name])


def _noted(value: torch.Tensor) -> dict[str, object]:
    """What else a caller finds changed: whether it asks for a gradient, and what that
    goes through on its way."""
    wanted = _wants_grad(value)
    return {
        "requires_grad": wanted,
        "hooks": len(_hooks(value) or ()) if wanted else 0,
    }


def _bytes(values: torch.Tensor) -> torch.Tensor:
    # copied: a single element may have any stride, and no view of its bytes then
    flat = _empty(_numel(values), dtype=_dtype(values), device=_device(values))
    copied: torch.Tensor = _copy(flat, _reshape(_detach(values), -1))
    return _view(copied, _UINT8)  # type: ignore[no-any-return]


_UINT8 = torch.uint8


def _tensors(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor | np.ndarray):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _tensors(one, f"{path}[{key!r}]" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from _tensors(one, f"{path}[{index}]")


class _ModuleWatch:
    """Notes whether modules given to learner functions keep flags and hooks, and get
    no attributes."""

    def __init__(self) -> None:
        self.changed: set[str] = set()

    def watched(self, function: types.FunctionType) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            modules: dict[int, torch.nn.Module] = {}
            for value in (*args, *kwargs.values()):
                _collect(value, modules)
            flags = [_is_training(one) for one in modules.values()]
            hooks = [_hook_count(one) for one in modules.values()]
            names = [{*vars(one)} for one in modules.values()]
            try:
                return function(*args, **kwargs)
            finally:
                if flags != [_is_training(one) for one in modules.values()]:
                    self.changed.add("training")
                if hooks != [_hook_count(one) for one in modules.values()]:
                    self.changed.add("hooks")
                if any(
                    vars(one).keys() - before
                    for one, before in _zip(
                        modules.values(), names, strict=True
                    )
                ):
                    self.changed.add("attributes")

        return call

    def changes(self) -> list[str]:
        return sorted(self.changed)


def _collect(value: Any, modules: dict[int, torch.nn.Module]) -> None:
    """Adds a module and those in it, by their ids, once each. Read where torch
    keeps them: its methods may be the learner's."""
    if _isinstance(value, _MODULE) and id(value) not in modules:
        modules[id(value)] = value
        for one in vars(value).get("_modules", {}).values():
            _collect(one, modules)


_MODULE = torch.nn.Module


def _is_training(module: torch.nn.Module) -> Any:
    return vars(module).get("training")


def _hook_count(module: torch.nn.Module) -> int:
    return sum(
        len(hooks)
        for name, hooks in vars(module).items()
        if name.endswith("_hooks") and hooks is not None
    )
