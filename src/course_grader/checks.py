"""What an author writes in `hidden_tests.py`: checks, their cases and their rules.

A check names one property of an exercise. Its function draws the cases from a
seed; a probe (see `probes.py` of the chapter) drives the reference and the
learner's code on each of them; a rule compares what came back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from course_grader.judge.compare import FORM, Tolerance, difference

Case = dict[str, Any]
"""The inputs of one probe call: plain data only (numbers, strings, tensors, ...)."""


class SharedCase(Case):
    """A case of several checks (see `Draw.once`): an implementation is probed on
    it once, and each of these checks judges what that gave."""


SharedCases = dict[tuple[Callable[..., Case], str], SharedCase]
"""By what makes them and the words in which they are asked for."""


@dataclass(frozen=True)
class Effects:
    """What a probe call did besides returning, recorded without being asked."""

    inputs_changed: tuple[str, ...] = ()
    """Paths of the case's tensors (as `labels` or `batches[2]`) changed in place;
    with `.requires_grad` or `.hooks` behind where that alone was."""
    rng_changed: tuple[str, ...] = ()
    """Which of `torch`, `numpy`, `random` drew numbers or were reseeded."""
    state_changed: tuple[str, ...] = ()
    """Of `grad mode`, `default dtype`, `default device`, `deterministic`, `autocast`,
    `cuDNN`, `matmul precision`, `number of threads`, `anomaly detection`, `oneDNN`,
    `garbage collector`, `CUBLAS_WORKSPACE_CONFIG`, `print options`, `NumPy's error
    handling`, `warning filters`, those left changed."""
    modules_changed: tuple[str, ...] = ()
    """Of the modules given to the learner's functions: `training` or `hooks` left changed,
    `attributes` added."""
    warnings: tuple[str, ...] = ()
    """Category names of the warnings issued."""


@dataclass(frozen=True)
class Result:
    """What one probe call on one case gave.

    Attributes:
        data: the plain data that the probe returned; None if it raised.
        raised: class names from the raised exception up to `Exception`
            (most special first); empty if the probe returned.
        effects: what the call changed besides.
        not_attempted: the learner's own line raised NotImplementedError.
        refused: a `raise` or an `assert` of the learner raised, and no operation.
    """

    data: Any = None
    raised: tuple[str, ...] = ()
    effects: Effects = field(default_factory=Effects)
    not_attempted: bool = False
    refused: bool = False


Rule = Callable[[Case, Result, Result], str | None]
"""(case, the learner's result, the reference's result) -> None if the learner's is
right, else one short sentence for the learner. The sentence goes to feedback: it
never holds an input, an expected value or a line of test code."""


class Draw:
    """Draws case inputs from a run's seed, the same on every machine and torch version
    that keeps its CPU generator.

    Every method advances one private generator; global random state is not touched.
    """

    def __init__(
        self, seed: int, name: str, kept: SharedCases | None = None
    ) -> None:
        """
        Args:
            seed: of the run.
            name: of the check that draws: what another one draws stays as it is
                when this one changes.
            kept: the shared cases of this run so far; grows.
        """
        self.seed = seed
        self.kept = {} if kept is None else kept
        # 32 bits: torch's CPU generator takes no more of a seed
        of_its_own = zlib.crc32(f"{seed}:{name}".encode())
        self.generator = torch.Generator().manual_seed(of_its_own)

    def once(
        self, make: Callable[..., Case], *given: Any, **options: Any
    ) -> Case:
        """What `make(draw, *given, **options)` makes, one and the same case for all
        checks that ask for it in the same words: an implementation is probed on it
        once. Only for checks of one exercise with the same probe."""
        words = [*map(repr, given), *(f"{k}={v!r}" for k, v in options.items())]
        name = f"{make.__name__}({', '.join(words)})"
        if (make, name) not in self.kept:
            own = Draw(self.seed, name)
            self.kept[make, name] = SharedCase(make(own, *given, **options))
        return self.kept[make, name]

    def normal(
        self,
        *shape: int,
        mean: float = 0.0,
        std: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Normal numbers, drawn in float64 and rounded to `dtype`."""
        drawn = torch.randn(
            shape, generator=self.generator, dtype=torch.float64
        )
        return (mean + std * drawn).to(dtype)

    def uniform(
        self,
        *shape: int,
        low: float = 0.0,
        high: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Uniform numbers in [low, high), drawn in float64 and rounded to `dtype`."""
        drawn = torch.rand(shape, generator=self.generator, dtype=torch.float64)
        return (low + (high - low) * drawn).to(dtype)

    def integers(
        self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64
    ) -> Tensor:
        """Integers in [low, high)."""
        return torch.randint(low, high, shape, generator=self.generator).to(
            dtype
        )

    def permutation(self, n: int) -> Tensor:
        """A random order of 0 .. n-1, int64 of shape (n,)."""
        return torch.randperm(n, generator=self.generator)

    def integer(self, low: int, high: int) -> int:
        """One Python int in [low, high)."""
        return int(self.integers(low, high, 1).item())

    def choice(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return options[self.integer(0, len(options))]


@dataclass(frozen=True)
class Check:
    """One hidden check. Made by the decorator `check`, not by hand.

    Attributes:
        name: the name of the decorated function; unique in the chapter.
        exercise: id of the exercise whose points it shares.
        probe: name of the function in the chapter's `probes.py`.
        weight: share of the exercise's points, relative to its other checks.
        says: what is checked, in the learner's words; shown in the exercise's
            text and in feedback.
        cases: draws the cases.
        corners: what else its cases ask for, in the learner's words; shown in
            the exercise's text, below `says`.
        rule: replaces the default comparison, if given.
        also: further rules, all of which must hold as well.
        on: the keys of the probe's dict that are compared; None for all.
        rtol: relative tolerance; None for the default of the dtype.
        atol: absolute tolerance; None for the default of the dtype.
        raises: where the reference raises, the exception names that are right.
        timeout_s: seconds allowed for one call of the probe.
    """

    name: str
    exercise: str
    probe: str
    weight: float
    says: str
    cases: Callable[[Draw], list[Case]]
    corners: tuple[str, ...] = ()
    rule: Rule | None = None
    also: tuple[Rule, ...] = ()
    on: tuple[str, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    raises: tuple[str, ...] = (
        "ValueError",
        "IndexError",
        "RuntimeError",
        "TypeError",
    )
    timeout_s: float = 10.0


def check(
    exercise: str,
    *,
    probe: Callable[..., Any],
    says: str,
    corners: Sequence[str] = (),
    weight: float = 1.0,
    rule: Rule | None = None,
    also: Sequence[Rule] = (),
    on: Sequence[str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    raises: Sequence[str] = (
        "ValueError",
        "IndexError",
        "RuntimeError",
        "TypeError",
    ),
    timeout_s: float = 10.0,
) -> Callable[[Callable[[Draw], list[Case]]], Check]:
    """Makes a hidden check of the function that draws its cases.

    By default the learner's data must equal the reference's (same structure,
    dtypes, shapes, device types, values within the tolerance), and where the
    reference raises, the learner's code must raise one of `raises` and leave
    settings, modules and inputs as they were. A check on
    whose cases the reference always raises is refused: code that always raises
    would pass it.

    Raises:
        TypeError: `on` is a string, whose letters would be taken for keys.
    """
    if isinstance(on, str):
        raise TypeError(
            f"`on` is a list of keys of what the probe returns: write "
            f"on=[{on!r}], not on={on!r}"
        )

    def make(cases: Callable[[Draw], list[Case]]) -> Check:
        return Check(
            name=cases.__name__,
            exercise=exercise,
            probe=probe.__name__,
            weight=weight,
            says=says,
            cases=cases,
            corners=tuple(corners),
            rule=rule,
            also=tuple(also),
            on=None if on is None else tuple(on),
            rtol=rtol,
            atol=atol,
            raises=tuple(raises),
            timeout_s=timeout_s,
        )

    return make


def same_form(*keys: str, exact: Sequence[str] = ()) -> Rule:
    """Rule for a check of a property (an argument left alone, a bad input refused,
    a dtype kept): it judges that property on what the learner's code computed, and
    wrong arithmetic is left to the other checks.

    Args:
        keys: those of the probe's dict of which type, length, shape, dtype and
            device must be right, and numbers may be any.
        exact: those that must be equal.
    """

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        for names, tolerance in ((exact, Tolerance()), (keys, FORM)):
            found = difference(
                {key: seen.data.get(key) for key in names},
                {key: expected.data[key] for key in names},
                tolerance,
            )
            if found:
                return found
        return None

    return rule


def leaves_inputs_alone(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """Rule for `also`: no tensor of the case was changed in place, nor its
    `requires_grad` or its hooks, but for those that the reference changes too."""
    changed = _beyond(
        seen.effects.inputs_changed, expected.effects.inputs_changed
    )
    name, _, what = changed.rpartition(".")
    if what == "hooks":
        return f"Your code left a hook on its input {name}."
    if what == "requires_grad":
        return f"Your code changed `requires_grad` of its input {name}."
    return (
        f"Your code changed its input {changed} in place." if changed else None
    )


def leaves_rng_alone(case: Case, seen: Result, expected: Result) -> str | None:
    """Rule for `also`: no global random state was used or reseeded beyond what the
    reference does."""
    changed = _beyond(seen.effects.rng_changed, expected.effects.rng_changed)
    if changed:
        return f"Your code changed the global random state of {changed}."
    return None


def leaves_state_alone(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """Rule for `also`: grad mode, default dtype and the like are as before, and
    modules keep their training flags, hooks and names, unless the reference changes
    them."""
    changed = _beyond(
        seen.effects.state_changed + seen.effects.modules_changed,
        expected.effects.state_changed + expected.effects.modules_changed,
    )
    if changed == "attributes":
        return "Your code left an attribute of its own on a module."
    return f"Your code left a setting changed: {changed}." if changed else None


def gives_no_warning(case: Case, seen: Result, expected: Result) -> str | None:
    """Rule for `also`: no warning beyond those that the reference gives too."""
    extra = _beyond(seen.effects.warnings, expected.effects.warnings)
    return f"Your code caused a {extra}; read what it says." if extra else None


def _beyond(seen: tuple[str, ...], allowed: tuple[str, ...]) -> str:
    """The first of `seen` that is not allowed; empty if there is none."""
    return next((one for one in seen if one not in allowed), "")
