"""What is checked in chapter 05: normalization."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    Result,
    Rule,
    check,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
    same_form,
)
from course_grader.judge.compare import Tolerance, difference

from . import probes

F64 = torch.float64
EXACT = 1e-9
"""Rounding in float64 stays below 1e-12 here; wrong formulas are off by 1e-4 or more."""
AVERAGED = 1e-6
"""A share such as 1 / 3 may be a float32, off by 3e-8; wrong averages by 1e-3 or more."""
ROUNDED = 0.1
"""For what is judged by its form: in bfloat16, formulas that are equal on paper are off
by 0.03, and a wrong answer is still to be known again."""


def told(
    tolerance: float = 0.0,
    *on: str,
    any_number: Sequence[str] = (),
    of_training: bool = False,
) -> Rule:
    """The default comparison, after words for a layer that lacks something, for
    gradients that reach nothing and for settings left changed. Of the keys with
    `any_number` only the form counts: see `same_form`. With `of_training` what
    calls in eval mode do to the buffers is the matter of another check."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        keys = on or tuple(
            one for one in expected.data if one not in any_number
        )
        if "unfit" in seen.data:
            return f"Your layer {seen.data['unfit']}."
        if "unreached" in keys and seen.data["unreached"]:
            return f"No gradient reaches {seen.data['unreached'][0]}."
        if "graph_kept" in keys and any(seen.data["graph_kept"]):
            return "A buffer of yours carries a graph after the call."
        if "grad_mode" in keys and (
            seen.data["grad_mode"] != expected.data["grad_mode"]
        ):
            return "Your code left a setting changed: grad mode."
        if "draws" in keys and seen.data["draws"]:
            return "Your code changed the global random state of torch."
        if "asks_for_a_gradient" in keys and (
            seen.data["asks_for_a_gradient"]
            != expected.data["asks_for_a_gradient"]
        ):
            return "Your code changed `requires_grad` of an argument."
        given = {key: seen.data.get(key) for key in keys}
        right = {key: expected.data[key] for key in keys}
        if of_training:
            given["after"] = [
                one if mode else other
                for mode, one, other in zip(
                    case["training"],
                    given["after"],
                    right["after"],
                    strict=True,
                )
            ]
        close = Tolerance(tolerance, tolerance)
        complaint = difference(given, right, close)
        if complaint and "after" in keys:
            moved = moved_in_eval(case, given["after"], right["after"], close)
            if moved:
                return f"A call in eval mode changed `{moved}`."
        return complaint or same_form(*any_number)(case, seen, expected)

    return rule


def moved_in_eval(
    case: Case,
    seen: Sequence[dict[str, Tensor | None]],
    right: Sequence[dict[str, Tensor | None]],
    close: Tolerance,
) -> str:
    """The buffer that is wrong first if it became so at a call in eval mode, else
    nothing. What is wrong at the first call may have been so before it."""
    before: dict[str, Tensor | None] = {}
    for mode, one, other in zip(case["training"], seen, right, strict=True):
        for name in other:
            if difference(one.get(name), other[name], close):
                kept = not before or (
                    difference(one.get(name), before.get(name), close) is None
                )
                return "" if mode or kept else name
        before = one
    return ""


def affine(
    draw: Draw, *shape: int, dtype: torch.dtype = F64
) -> dict[str, Tensor]:
    """A weight away from 1 and 0, of both signs, and a bias."""
    weight = draw.uniform(*shape, low=0.5, high=2.0, dtype=dtype)
    weight.view(-1)[::2] *= -1
    return {"weight": weight, "bias": draw.normal(*shape, dtype=dtype)}


def channelled(
    draw: Draw,
    *shape: int,
    mean: float = 1.0,
    std: float = 1.0,
    dtype: torch.dtype = F64,
) -> Tensor:
    """Values whose mean and spread differ by sample and by channel, so that
    statistics over the wrong dimensions are other numbers."""
    by_place = (*shape[:2], *[1] * (len(shape) - 2))
    x = draw.normal(*shape) * draw.uniform(*by_place, low=0.5, high=1.5)
    x = x + draw.normal(*by_place)
    return (mean + std * x.to(F64)).to(dtype)


# batch_norm


def plain(draw: Draw, *shape: int, **options: object) -> Case:
    """A batch with weights of 1 and biases of 0."""
    x = channelled(draw, *shape, **options)
    ones = torch.ones(shape[1], dtype=x.dtype)
    return {"x": x, "weight": ones, "bias": torch.zeros_like(ones)}


def weighted(draw: Draw, *shape: int, **options: object) -> Case:
    x = channelled(draw, *shape, **options)
    return {"x": x, **affine(draw, shape[1], dtype=x.dtype)}


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=3,
    rtol=EXACT,
    atol=EXACT,
    says="images (N, C, H, W): each channel by its mean and biased variance",
    corners=["float64 keeps its digits"],
)
def normalizes_images(draw: Draw) -> list[Case]:
    return [
        plain(draw, 3, 4, 2, 2, std=1e-2),
        plain(draw, 5, 3, 4, 6, mean=-2.0, std=2.0),
        plain(draw, 1, 3, 4, 4),
        plain(draw, 4, 4, 4, 4),
        plain(draw, 4, 1, 2, 2),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="rows (N, C) and sequences (N, C, L) as well",
)
def normalizes_rows_and_sequences(draw: Draw) -> list[Case]:
    return [
        plain(draw, 8, 4),
        plain(draw, 2, 3, std=3.0),
        plain(draw, 4, 1),
        plain(draw, 5, 3, 6),
        plain(draw, 4, 4, 4),
        plain(draw, 3, 2, 1),
        plain(draw, 1, 3, 5),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=6,
    rtol=EXACT,
    atol=EXACT,
    says="weight and bias belong to channels, whatever the width",
)
def weighs_by_channel(draw: Draw) -> list[Case]:
    return [
        weighted(draw, 3, 4, 2, 4),
        {**weighted(draw, 5, 3), "weight": torch.zeros(3, dtype=F64)},
        weighted(draw, 5, 3, 4, 2),
        weighted(draw, 4, 3, 3),
        weighted(draw, 6, 1),
        weighted(draw, 4, 4),
        weighted(draw, 3, 3, 3, 3),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="`eps` stands inside the root, and is the one that was given",
    corners=["it is above 0, as PyTorch asks"],
)
def adds_eps_inside_the_root(draw: Draw) -> list[Case]:
    return [
        {**plain(draw, 4, 3, 3, 3, std=3e-3), "eps": 1e-5},
        {**plain(draw, 4, 3, 3, 3, std=0.1), "eps": 1e-3, "by_name": True},
        {**plain(draw, 6, 3, std=0.5), "eps": 0.3},
        # smaller than what one might take for the smallest
        {**plain(draw, 6, 3, 2, 2, std=1e-3), "eps": 1e-7},
        {**plain(draw, 6, 3, mean=0.0, std=1e-5), "eps": 1e-12},
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    atol=1e-4,
    says="a channel without spread gives its bias, but for rounding",
)
def constant_channel(draw: Draw) -> list[Case]:
    cases = []
    for _ in range(2):
        case = weighted(draw, 4, 3, 2, 2, dtype=torch.float32)
        constant = draw.uniform(1, low=-1.0)
        case["x"][:, draw.integer(0, 3)] = constant
        cases.append(case)
    return cases


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=2,
    rtol=0.0,
    atol=1e-3,
    says="float32 with a mean of 1000 and a spread of 1 keeps its digits: "
    "right to 0.001",
)
def large_mean_in_float32(draw: Draw) -> list[Case]:
    cases = []
    for shape in ((16, 4, 4, 4), (64, 4)):
        ones, zeros = torch.ones(4), torch.zeros(4)
        x = draw.normal(*shape, mean=1000.0)
        cases.append({"x": x, "weight": ones, "bias": zeros})
    return cases


@check(
    "batch_norm",
    probe=probes.normalize,
    rule=same_form("out"),
    rtol=ROUNDED,
    atol=ROUNDED,
    says="the result has the dtype of `x`",
    corners=["`weight` and `bias` have it, too; no case is float16"],
)
def keeps_the_dtype(draw: Draw) -> list[Case]:
    return [
        weighted(draw, 6, 3, 4, 4, mean=0.0, dtype=dtype)
        for dtype in (torch.float32, F64, torch.bfloat16)
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    rtol=EXACT,
    atol=EXACT,
    says="`x` need not be contiguous",
)
def normalizes_permuted_images(draw: Draw) -> list[Case]:
    last = channelled(draw, 3, 5, 3, 4)
    first = channelled(draw, 4, 6)
    return [
        {"x": last.permute(0, 3, 2, 1), **affine(draw, 4)},
        {"x": first.T, **affine(draw, 4)},
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    rtol=EXACT,
    atol=EXACT,
    says="an outlier keeps its size, a NaN or an infinity stays in its channel "
    "and shows",
)
def shows_outliers_and_nans(draw: Draw) -> list[Case]:
    far, poisoned = weighted(draw, 12, 3, 5, 5), weighted(draw, 4, 3, 2, 2)
    far["x"][draw.integer(0, 12), draw.integer(0, 3), 1, 2] = 1e8
    channel = draw.integer(0, 3)
    poisoned["x"][draw.integer(0, 4), channel, 0, 1] = torch.nan
    poisoned["x"][draw.integer(0, 4), channel - 1, 1, 0] = -torch.inf
    return [far, poisoned]


def learning(draw: Draw, *shape: int, learn: tuple[str, ...]) -> Case:
    upstream = draw.normal(*shape, dtype=F64)
    return {
        **weighted(draw, *shape),
        "upstream": upstream,
        "learn": list(learn),
    }


ALL = ("x", "weight", "bias")


@check(
    "batch_norm",
    probe=probes.normalize_and_gradients,
    weight=5,
    rule=told(1e-7),
    rtol=1e-7,
    atol=1e-7,
    says="the gradients of `x`, `weight` and `bias`, of those that ask for one",
    corners=[
        "that of `x` also through mean and variance, and where a channel has "
        "no spread"
    ],
)
def gradients_of_batch_norm(draw: Draw) -> list[Case]:
    flat = learning(draw, 4, 3, 2, 2, learn=ALL)
    flat["x"][:, draw.integer(0, 3)] = draw.integer(1, 9) / 8
    return [
        flat,
        # a weight of 0 learns, too
        learning(draw, 5, 3, learn=("weight",))
        | {"weight": torch.zeros(3, dtype=F64)},
        learning(draw, 5, 3, learn=("bias",)),
        learning(draw, 3, 2, 2, 2, learn=ALL),
        learning(draw, 5, 3, learn=ALL),
        learning(draw, 3, 4, 2, learn=("x",)),
        learning(draw, 4, 3, 2, 2, learn=("weight", "bias")),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    rule=same_form("out"),
    raises=("ValueError",),
    says="one value per channel raises a `ValueError`, one sample does not",
    corners=[
        "also under `torch.no_grad()`",
        "settings and arguments stay as they were then, too",
    ],
)
def one_value_raises(draw: Draw) -> list[Case]:
    return [
        plain(draw, 1, 3, 2, 2),
        weighted(draw, 1, 4),
        {**plain(draw, 1, 4), "grad": False},
        plain(draw, 1, 3, 1, 1),
        plain(draw, 1, 3, 1),
        plain(draw, 1, 1),
        plain(draw, 1, 3, 2),
        plain(draw, 1, 3, 1, 4),
        plain(draw, 1, 3, 4, 1),
        plain(draw, 1, 1, 4),
        plain(draw, 2, 3),
        plain(draw, 2, 3, 1, 1),
        plain(draw, 3, 1),
    ]


@check(
    "batch_norm",
    probe=probes.normalize_and_look_back,
    rule=told(any_number=["out"]),
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="`x`, `weight` and `bias`, the grad mode and the random state are "
    "left as they were",
    corners=["those that ask for a gradient get no hook"],
)
def leaves_arguments_alone(draw: Draw) -> list[Case]:
    permuted = weighted(draw, 3, 5, 4, 2)
    permuted["x"] = permuted["x"].permute(3, 1, 0, 2)
    learning = weighted(draw, 3, 4, 2)
    for one in learning.values():
        one.requires_grad_()
    return [
        {**learning, "grad": True},
        {**weighted(draw, 3, 4, 2, 2), "grad": True},
        {**weighted(draw, 5, 3, dtype=torch.float32), "grad": True},
        {**weighted(draw, 4, 3, 2), "grad": False},
        {**permuted, "grad": True},
    ]


@check(
    "batch_norm",
    probe=probes.normalize_under_no_grad,
    rtol=1e-4,
    atol=1e-4,
    says="under `no_grad` the result carries no graph",
)
def carries_no_graph_under_no_grad(draw: Draw) -> list[Case]:
    return [weighted(draw, 3, 4, 2, 2), weighted(draw, 5, 3)]


# RunningStats


def batches(
    draw: Draw, *sizes: int, rest: tuple[int, ...] = (3, 2, 2)
) -> list[Tensor]:
    return [
        channelled(draw, size, *rest, mean=2.0 + i, std=1.0 + i)
        for i, size in enumerate(sizes)
    ]


@check(
    "running_stats",
    probe=probes.observe,
    weight=3,
    on=("running_mean",),
    rtol=AVERAGED,
    atol=AVERAGED,
    says="the running mean moves by momentum towards the new batch",
    corners=["float64 keeps its digits, even where large values nearly cancel"],
)
def moves_the_mean(draw: Draw) -> list[Case]:
    found = [
        {"x": batches(draw, 8, 8, 4), "momentum": momentum}
        for momentum in (0.02, 0.9, 0.3, 1)
    ]
    # one channel, in rows: the example of the text
    found[2]["x"] = batches(draw, 8, 8, 4, rest=(1,))
    found[2]["by_place"] = True
    # half of them are large, as many are their opposite: float32 sees these alone
    large = 2**26 * torch.tensor([1.0, -1.0], dtype=F64)
    found[1]["x"] = [x / 8 + large for x in found[1]["x"]]
    return found


@check(
    "running_stats",
    probe=probes.observe,
    weight=3,
    on=("running_var",),
    rtol=EXACT,
    atol=EXACT,
    says="the running variance is the unbiased one",
    corners=[
        "`x` has the dtype of the buffers; float64 keeps its digits, also of "
        "values about a million with a spread of 1"
    ],
)
def moves_the_unbiased_variance(draw: Draw) -> list[Case]:
    large = [1000 * x for x in batches(draw, 3, 2)]
    alike = torch.full((3, 3, 2, 2), draw.integer(1, 9) / 8).to(F64)
    far = channelled(draw, 4, 3, 2, 2, mean=1e6, std=1.0)
    return [
        {"x": [far], "momentum": 0.9},
        {"x": batches(draw, 8, 8, 4), "momentum": 0.1},
        {"x": batches(draw, 3, 2, 2), "momentum": 0.9},
        {"x": large, "momentum": 0.9},
        {"x": [alike], "momentum": 1.0},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="rows (N, C) and sequences (N, C, L) as well",
    corners=[
        "every channel has at least two values per batch; one sample alone "
        "may bring them",
        "one module may get all of these shapes in turn",
    ],
)
def observes_rows_and_sequences(draw: Draw) -> list[Case]:
    in_turn = [
        channelled(draw, *shape) for shape in ((6, 3), (4, 3, 2, 2), (4, 3, 5))
    ]
    return [
        {"x": batches(draw, 8, 5, 2, rest=(3,)), "momentum": 0.2},
        {"x": batches(draw, 4, 2, rest=(4, 4)), "momentum": 0.2},
        {"x": batches(draw, 3, 1, rest=(4, 5)), "momentum": 0.2},
        {"x": batches(draw, 3, 1, rest=(4, 2)), "momentum": 0.2},
        {"x": batches(draw, 3, 2, rest=(1,)), "momentum": 0.5},
        {"x": batches(draw, 5, 4, rest=(3, 1)), "momentum": 0.2},
        {"x": in_turn, "momentum": 0.2},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    weight=6,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="`momentum=None`: the plain average over the batches, each counting "
    "the same",
    corners=["a share such as 1/3 may be a float32"],
)
def averages_with_none(draw: Draw) -> list[Case]:
    return [
        {"x": batches(draw, 8, 8, 4), "momentum": None},
        {"x": batches(draw, 2, 6, rest=(1, 2, 2)), "momentum": None},
        {"x": batches(draw, *[2] * draw.integer(30, 40)), "momentum": None},
        {"x": batches(draw, 5), "momentum": None},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="`momentum=0.0`: mean and variance stay, the count goes on",
    corners=[
        "for batches of finite numbers: no case gives it others",
        "a momentum of 0 or 1 may be a whole number",
    ],
)
def stays_with_zero(draw: Draw) -> list[Case]:
    # A mean that stays at 0 counts only beside one that moves.
    moving = 0.05 + 0.1 * draw.integer(1, 9)
    return [
        {"x": batches(draw, 8, 8, 4), "momentum": 0.0},
        {"x": batches(draw, 4), "momentum": 0},
        {"x": batches(draw, 6, 3), "momentum": moving},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="the momentum is 0.1 if none is given",
)
def default_momentum(draw: Draw) -> list[Case]:
    return [{"x": batches(draw, 6, 3)}]


@check(
    "running_stats",
    probe=probes.observe,
    on=("running_mean", "num_batches_tracked"),
    rtol=AVERAGED,
    atol=AVERAGED,
    says="`num_batches_tracked` counts batches: int64, without dimensions",
    corners=["a batch of zeros, too"],
)
def counts_batches(draw: Draw) -> list[Case]:
    zeros = torch.zeros(3, 3, 2, 2, dtype=F64)
    return [
        {"x": [*batches(draw, 3, 3), zeros], "momentum": 0.1},
        *(
            {"x": batches(draw, *[3] * n), "momentum": 0.1}
            for n in (6, draw.integer(30, 40))
        ),
    ]


@check(
    "running_stats",
    probe=probes.observe_in_modes,
    weight=15,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="nothing changes in eval mode, everything in training mode, and "
    "`no_grad` has no say",
    corners=["no case is under `torch.inference_mode()`"],
)
def updates_in_training_alone(draw: Draw) -> list[Case]:
    first = {
        "x": batches(draw, 6, 5, 4, 6),
        "momentum": 0.2,
        "training": [True, False, True, False],
        "grad": [True, True, False, False],
    }
    eval_first = {
        "x": batches(draw, 6, 5, 1),
        "momentum": 0.3,
        "training": [False, True, True],
        "grad": [True, True, True],
    }
    by_attribute = {**first, "x": batches(draw, 3, 3, 3, 3)}
    # a variance of 0, which nothing may lift
    alike = torch.full((3, 3, 2, 2), draw.integer(1, 9) / 8).to(F64)
    without_spread = {
        "x": [alike, alike],
        "momentum": 1.0,
        "training": [True, False],
        "grad": [True, True],
    }
    return [
        without_spread,
        first,
        {**first, "momentum": None},
        eval_first,
        {**by_attribute, "by_attribute": True},
    ]


@check(
    "running_stats",
    probe=probes.observe_with_gradient,
    weight=6,
    rule=told(AVERAGED),
    rtol=AVERAGED,
    atol=AVERAGED,
    says="the input passes through with its gradient, the buffers keep no graph",
    corners=["in both modes"],
)
def keeps_no_graph(draw: Draw) -> list[Case]:
    return [
        {
            "x": channelled(draw, 4, 3, 2, 2),
            "upstream": draw.normal(4, 3, 2, 2, dtype=F64),
            "momentum": momentum,
            "training": [True, True, False],
        }
        for momentum in (0.1, None, 1.0)
    ]


@check(
    "running_stats",
    probe=probes.observe_and_let_through,
    rule=told(1e-5),
    rtol=1e-5,
    atol=1e-5,
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="`x` comes out as it went in, in its dtype, and is left alone; so are "
    "grad mode and random state",
    corners=["an `x` that asks for a gradient gets no hook"],
)
def lets_x_through(draw: Draw) -> list[Case]:
    learning = channelled(draw, 4, 3, 2, 2).requires_grad_()
    far = channelled(draw, 4, 3, 2, 2)
    far[draw.integer(0, 4), draw.integer(0, 3), 0, 1] = -1e8
    single = channelled(draw, 4, 3, 2, 2, dtype=torch.float32)
    return [{"x": x, "momentum": 0.2} for x in (far, single, learning)]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="inputs that are not contiguous",
)
def observes_permuted_images(draw: Draw) -> list[Case]:
    last = [x.permute(0, 3, 2, 1) for x in batches(draw, 4, 3, rest=(5, 3, 4))]
    turned = [draw.normal(4, 6, dtype=F64).T for _ in range(2)]
    return [{"x": x, "momentum": 0.2} for x in (last, turned)]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=1e-5,
    atol=1e-3,
    says="float32 with a mean of 1000 and a spread of 1 keeps its digits",
)
def observes_a_large_mean(draw: Draw) -> list[Case]:
    x = [draw.normal(16, 4, 4, 4, mean=1000.0) for _ in range(2)]
    return [{"x": x[:1], "momentum": 0.9}, {"x": x, "momentum": 0.5}]


@check(
    "running_stats",
    probe=probes.observe_in_turn,
    rtol=1e-4,
    atol=1e-4,
    says="two modules have statistics of their own",
    corners=[
        "also where one is a `copy.deepcopy` of the other, or loads a state"
    ],
)
def keeps_modules_apart(draw: Draw) -> list[Case]:
    # In float32, the dtype in which modules are made: nothing is copied.
    x = [x.float() for x in batches(draw, 6, 4, 5, 3)]
    loaded = {
        "running_mean": draw.normal(3),
        "running_var": draw.uniform(3, low=0.5, high=2.0),
        "num_batches_tracked": torch.tensor(draw.integer(3, 9)),
    }
    return [
        {"x": x, "momentum": 0.3},
        {"x": x[:2], "momentum": None, "loaded": loaded},
        {"x": x[:2], "momentum": 0.3, "copied": True},
        {"x": x[:2], "momentum": None, "copied": True, "loaded": loaded},
    ]


@check(
    "running_stats",
    probe=probes.observe_the_state,
    says="the state is three buffers, with their names, shapes and first values",
    corners=["buffers that are not in the `state_dict` are yours to add"],
)
def holds_three_buffers(draw: Draw) -> list[Case]:
    return [{"channels": draw.integer(2, 40)}, {"channels": 1}]


@check(
    "running_stats",
    probe=probes.observe_from_a_state,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="a loaded state is carried on from",
    corners=[
        "by a module that has seen batches in another dtype before, too",
        "also with `assign=True`, which puts other tensors in the buffers' place",
    ],
)
def carries_on_from_a_state(draw: Draw) -> list[Case]:
    return [
        {
            "x": channelled(draw, 5, 3, 2, 2),
            "momentum": momentum,
            "assign": count > 99,
            "state": {
                "running_mean": draw.normal(3, dtype=F64),
                "running_var": draw.uniform(3, low=0.5, high=2.0, dtype=F64),
                "num_batches_tracked": torch.tensor(count),
            },
        }
        for momentum, count in (
            (0.25, draw.integer(3, 9)),
            (0.25, 0),
            (None, 1),  # it has seen two
            (None, draw.integer(20_000, 90_000)),
        )
    ]


@check(
    "running_stats",
    probe=probes.observe_what_is_spoiled,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="a NaN or an infinity shows in the channel in which it came, and in "
    "no other",
    corners=[
        "this batch and those after it come out as they went in, in both modes"
    ],
)
def shows_a_nan(draw: Draw) -> list[Case]:
    cases = []
    for spoiled in (torch.nan, torch.inf):
        x = batches(draw, 4, 4, 4)
        x[1][draw.integer(0, 4), draw.integer(0, 3), 0, 1] = spoiled
        cases.append({"x": x, "momentum": 0.1})
    return cases


# BatchNorm


def with_an_outlier(draw: Draw, x: Tensor) -> Tensor:
    """The tensor, one of its numbers far from all others."""
    x[tuple(draw.integer(0, size) for size in x.shape)] = 1e4
    return x


def layer_case(
    draw: Draw, *, channels: int = 3, tracked: bool = True, **options: object
) -> Case:
    """A layer with buffers far from what batches hold."""
    c = channels
    case: Case = {**affine(draw, c), "momentum": 0.3, **options}
    if tracked:
        case["running_mean"] = draw.normal(c, mean=100.0, std=5.0, dtype=F64)
        case["running_var"] = draw.uniform(c, low=30.0, high=60.0, dtype=F64)
    else:
        case["track_running_stats"] = False
    return case


def in_modes(
    draw: Draw,
    training: list[bool],
    *,
    grad: list[bool] | None = None,
    rest: tuple[int, ...] = (3, 3, 2),
) -> Case:
    return {
        "x": [
            channelled(draw, 6 - i, *rest, mean=2.0 + i)
            for i in range(len(training))
        ],
        "training": training,
        "grad": grad or [True] * len(training),
    }


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=6,
    rule=told(EXACT, "outs"),
    rtol=EXACT,
    atol=EXACT,
    says="in training the batch itself normalizes, whatever is in the buffers",
    corners=[
        "with a momentum of 0.0, too, and where weight and bias are frozen",
        "an outlier keeps its size, an infinity shows",
    ],
)
def training_uses_the_batch(draw: Draw) -> list[Case]:
    far, endless = in_modes(draw, [True]), in_modes(draw, [True, True])
    with_an_outlier(draw, far["x"][0])
    endless["x"][0][1, draw.integer(0, 3), 0, 1] = -torch.inf
    return [
        {**layer_case(draw), **far},
        {**layer_case(draw), **endless},
        {**layer_case(draw), **in_modes(draw, [True, True])},
        {
            **layer_case(draw, channels=1, eps=0.2),
            **in_modes(draw, [True], rest=(1, 1, 1)),
        },
        {**layer_case(draw), **in_modes(draw, [True], rest=(3, 3, 3))},
        {**layer_case(draw, frozen=True), **in_modes(draw, [True])},
        {**layer_case(draw, momentum=0.0), **in_modes(draw, [True, True])},
        {**layer_case(draw), **in_modes(draw, [True], grad=[False])},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    rule=told(EXACT, "outs", "after", of_training=True),
    rtol=EXACT,
    atol=EXACT,
    says="one image alone can be trained on, and a NaN shows",
    corners=[
        "also after larger batches",
        "a channel has at least two values per batch",
    ],
)
def trains_on_one_image(draw: Draw) -> list[Case]:
    alone = {"training": [True, False], "grad": [True, True]}
    last = {"training": [True] * 4, "grad": [True] * 4}
    batches_before = [channelled(draw, 4, 3, 2, 2) for _ in range(3)]
    poisoned = channelled(draw, 4, 3, 2, 2)
    poisoned[draw.integer(0, 4), draw.integer(0, 3), 0, 1] = torch.nan
    images = channelled(draw, 1, 3, 3, 2), channelled(draw, 1, 3, 2, 2)
    return [
        {**layer_case(draw), **alone, "x": list(images)},
        {**layer_case(draw), **last, "x": [*batches_before, images[0]]},
        {**layer_case(draw), **alone, "x": [poisoned, images[0]]},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    rule=told(1e-3, "outs", "after"),
    rtol=1e-5,
    atol=1e-3,
    says="float32 with a mean of 1000 and a spread of 1 keeps its digits: "
    "right to 0.001",
)
def trains_on_a_large_mean(draw: Draw) -> list[Case]:
    x = [draw.normal(16, 3, 4, 4, mean=1000.0) for _ in range(2)]
    case = {"weight": torch.ones(3), "bias": torch.zeros(3), "momentum": 1.0}
    return [{**case, "x": x, "training": [True, True], "grad": [True, True]}]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    rule=told(1e-4, "outs", "after", of_training=True),
    rtol=1e-4,
    atol=1e-4,
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="images that are not contiguous, in float32 too; `x` is left alone in "
    "both modes",
    corners=["an `x` that asks for a gradient gets no hook"],
)
def takes_images_as_they_come(draw: Draw) -> list[Case]:
    both = {"training": [True, False], "grad": [True, True]}
    last = channelled(draw, 4, 5, 4, 3).permute(0, 3, 2, 1)
    single = channelled(draw, 4, 3, 2, 2, dtype=torch.float32)
    single.requires_grad_()
    wide = channelled(draw, 4, 3, 2, 2)
    weights = affine(draw, 3, dtype=torch.float32)
    return [
        {**layer_case(draw), **both, "x": [last, last]},
        {**weights, **both, "x": [single, single], "momentum": 0.3},
        {**layer_case(draw), **both, "x": [wide, wide], "grad": [False, False]},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    rule=told(EXACT, "outs", "after", of_training=True),
    rtol=EXACT,
    atol=EXACT,
    says="the defaults of `nn.BatchNorm2d`, and the arguments in the order of the cell above",
)
def begins_as_the_signature_says(draw: Draw) -> list[Case]:
    modes = {"training": [True, False], "grad": [True, True]}
    x = [channelled(draw, 4, 3, 2, 2, std=1e-2) for _ in range(2)]
    by_place = {"eps": 0.02, "momentum": 0.4, "track_running_stats": True}
    cases = [
        {**affine(draw, 3), **modes, "x": x},
        {**affine(draw, 3), **modes, "x": x, **by_place, "by_place": True},
    ]
    return cases


@check(
    "train_and_eval",
    probe=probes.run_in_turn,
    rule=told(1e-4),
    rtol=1e-4,
    atol=1e-4,
    says="two layers have statistics of their own",
    corners=["also where one is a `copy.deepcopy` of the other"],
)
def keeps_layers_apart(draw: Draw) -> list[Case]:
    # In float32, the dtype in which layers are made: nothing is copied.
    x = [channelled(draw, 4, 3, 2, 2, dtype=torch.float32) for _ in range(2)]
    case = layer_case(draw)
    single = {
        name: value.float() if torch.is_tensor(value) else value
        for name, value in case.items()
    }
    return [{**single, "x": x}, {**single, "x": x, "copied": True}]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=5,
    rule=told(EXACT, "outs"),
    rtol=EXACT,
    atol=EXACT,
    says="in eval the buffers normalize",
)
def eval_uses_the_buffers(draw: Draw) -> list[Case]:
    small = layer_case(draw)
    small["running_var"][draw.integer(0, 3)] = 0.0
    return [
        {**small, **in_modes(draw, [False])},
        {**layer_case(draw), **in_modes(draw, [False])},
        {
            **layer_case(draw, channels=1, eps=2.0),
            **in_modes(draw, [False], rest=(1, 1, 1)),
        },
        {**layer_case(draw), **in_modes(draw, [True, False, True, False])},
    ]


@check(
    "train_and_eval",
    probe=probes.run_rows_in_eval,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="in eval no row depends on the others, and a batch of one works",
)
def eval_rows_stand_alone(draw: Draw) -> list[Case]:
    return [
        {**layer_case(draw), "x": [channelled(draw, 4, 3, 2, 2)]},
        {**layer_case(draw), "x": [channelled(draw, 3, 3, 1, 1)]},
        {**layer_case(draw), "x": [channelled(draw, 130, 3, 1, 2)]},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=6,
    rule=told(EXACT, "after"),
    rtol=EXACT,
    atol=EXACT,
    says="training moves the buffers and eval leaves them, to the last bit",
    corners=[
        "also under `torch.no_grad()`",
        "also where a channel has two values",
        "`momentum` is a number, 0.0 or more",
    ],
)
def moves_the_buffers_in_training(draw: Draw) -> list[Case]:
    n = draw.integer(30, 40)
    many = {
        "x": [channelled(draw, 2, 3, 1, 2) for _ in range(n)],
        "training": [True] * n,
        "grad": [True] * n,
    }
    few = {
        "x": [channelled(draw, 2, 3, 1, 1), channelled(draw, 1, 3, 1, 2)],
        "training": [True, True],
        "grad": [True, True],
    }
    return [
        {**layer_case(draw), **few},
        {**layer_case(draw), **in_modes(draw, [True, False, True, False])},
        {
            **layer_case(draw, channels=1, momentum=0.9),
            **in_modes(draw, [True, True], rest=(1, 1, 1)),
        },
        {**layer_case(draw, frozen=True), **in_modes(draw, [True])},
        {**layer_case(draw, momentum=0.0), **in_modes(draw, [True, True])},
        {**layer_case(draw), **in_modes(draw, [False, False])},
        {**layer_case(draw), **in_modes(draw, [True], grad=[False])},
        {**layer_case(draw), **many},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=8,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="`no_grad` is not eval: the mode alone decides, and under `no_grad` "
    "the result carries no graph",
)
def mode_is_not_grad_mode(draw: Draw) -> list[Case]:
    return [
        {
            **layer_case(draw),
            **in_modes(
                draw,
                [True, False, True, False],
                grad=[False, False, True, True],
            ),
        },
        {
            **layer_case(draw),
            **in_modes(draw, [True, False, True, False]),
            "by_attribute": True,
        },
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=2,
    rule=told(EXACT, "outs", "after"),
    rtol=EXACT,
    atol=EXACT,
    says="with `track_running_stats=False` both modes use the batch",
    corners=["of one image alone, too"],
)
def untracked_uses_the_batch(draw: Draw) -> list[Case]:
    return [
        {
            **layer_case(draw, channels=1, tracked=False),
            **in_modes(draw, [True, False], rest=(1, 3, 2)),
        },
        {
            **layer_case(draw, tracked=False),
            **in_modes(draw, [True, False], grad=[True, False]),
        },
        {
            **layer_case(draw, tracked=False),
            "x": [channelled(draw, 1, 3, 3, 2) for _ in range(2)],
            "training": [False, True],
            "grad": [True, True],
        },
    ]


@check(
    "train_and_eval",
    probe=probes.run_backward,
    weight=4,
    rule=told(1e-7),
    rtol=1e-7,
    atol=1e-7,
    says="gradients in both modes, batch after batch",
    corners=[
        "also where a channel has no spread, and where weight or bias is frozen",
        "the buffers carry no graph, with a momentum of 1.0 neither",
    ],
)
def gradients_in_both_modes(draw: Draw) -> list[Case]:
    def frozen_or_flat(**frozen: str) -> Case:
        x = [channelled(draw, 4, 3, 2, 2) for _ in range(2)]
        x[0][:, draw.integer(0, 3)] = draw.integer(1, 9) / 8
        upstream = draw.normal(4, 3, 2, 2, dtype=F64)
        case = {"x": x, "training": [True, False], "upstream": upstream}
        return {**layer_case(draw), **case, **frozen}

    return (
        [
            frozen_or_flat(),
            frozen_or_flat(frozen_one="weight"),
            frozen_or_flat(frozen_one="bias"),
        ]
        + [
            {
                **layer_case(draw, momentum=0.3 if training[-1] else 1.0),
                "x": [channelled(draw, 4, 3, 2, 2) for _ in training],
                "training": training,
                # as of a loss that is scaled: no gradient has a bound
                "upstream": 1e4 * draw.normal(4, 3, 2, 2, dtype=F64),
            }
            for training in ([True, True], [False, False], [True, False, False])
        ]
        + [
            {
                **layer_case(draw, tracked=False),
                "x": [channelled(draw, 4, 3, 2, 2) for _ in range(2)],
                "training": [True, False],
                "upstream": draw.normal(4, 3, 2, 2, dtype=F64),
            }
        ]
    )


@check(
    "train_and_eval",
    probe=probes.run_from_a_state,
    weight=2,
    rtol=1e-7,
    atol=1e-7,
    says="the state of `nn.BatchNorm2d`: names, shapes, first values, loading",
    corners=["also into a layer that has seen a batch"],
)
def state_of_the_library(draw: Draw) -> list[Case]:
    buffers = {
        "running_mean": draw.normal(3, dtype=F64),
        "running_var": draw.uniform(3, low=0.5, high=2.0, dtype=F64),
        "num_batches_tracked": torch.tensor(draw.integer(3, 9)),
    }
    buffers["running_var"][draw.integer(0, 3)] = 0.0
    x = channelled(draw, 4, 3, 2, 2)
    return [
        {
            "x": x,
            "track_running_stats": True,
            "state": {**affine(draw, 3), **buffers},
        },
        {"x": x, "track_running_stats": False, "state": affine(draw, 3)},
    ]


@check(
    "train_and_eval",
    probe=probes.run_with_a_state_loaded_in_eval,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="a state that is loaded in eval mode is used at once",
    corners=[
        "also with `assign=True`; so is a buffer or a weight that somebody changes",
        "training goes on from it",
    ],
)
def uses_a_loaded_state_at_once(draw: Draw) -> list[Case]:
    loaded = layer_case(draw)
    names = ("weight", "bias", "running_mean", "running_var")
    state = {name: loaded[name] for name in names}
    state["num_batches_tracked"] = torch.tensor(draw.integer(3, 9))
    x = channelled(draw, 4, 3, 2, 2)
    case = {**layer_case(draw), "x": x, "state": state}
    return [{**case, "grad": grad} for grad in (True, False)]


# one_reshape


def grouped(
    draw: Draw, groups: int, *shape: int, with_affine: bool = False
) -> Case:
    case: Case = {
        "x": channelled(draw, *shape),
        "num_groups": groups,
        "num_channels": shape[1],
    }
    return {**case, **affine(draw, shape[1])} if with_affine else case


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    weight=3,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="group norm: neighbouring channels of one sample",
    corners=[
        "also with `affine=False`",
        "an outlier keeps its size; float64 keeps its digits, in all three",
    ],
)
def groups_of_neighbours(draw: Draw) -> list[Case]:
    far = grouped(draw, 1, 2, 4, 4, 4)
    with_an_outlier(draw, far["x"])
    return [
        far,
        grouped(draw, 3, 4, 6, 3, 2),
        grouped(draw, 2, 2, 6, 3, 3),
        grouped(draw, 1, 4, 6, 2, 2),
        grouped(draw, 4, 3, 4, 3, 3),
        {**grouped(draw, 2, 3, 4, 2, 2), "options": {"affine": False}},
        grouped(draw, 2, 1, 4, 1, 1),
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="group norm of rows (N, C) and sequences (N, C, L)",
)
def groups_of_any_dimensions(draw: Draw) -> list[Case]:
    return [
        grouped(draw, 3, 5, 6, with_affine=True),
        grouped(draw, 3, 4, 6, 5, with_affine=True),
        grouped(draw, 2, 4, 4, 4, with_affine=True),
        grouped(draw, 1, 3, 4, 5, with_affine=True),
        grouped(draw, 1, 3, 4, with_affine=True),
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    weight=2,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="group norm: one weight and one bias per channel",
    corners=[
        "with `affine=False` there is none",
        "they count when frozen, too",
    ],
)
def group_affine_by_channel(draw: Draw) -> list[Case]:
    return [
        grouped(draw, 2, 3, 4, 3, 4, with_affine=True),
        grouped(draw, 3, 2, 6, 2, 2, with_affine=True),
        {**grouped(draw, 2, 2, 4, 2, with_affine=True), "frozen": True},
    ]


@check(
    "one_reshape",
    probe=probes.construct_group_norm,
    raises=("ValueError",),
    says="group norm: the constructor raises a `ValueError` where the groups "
    "do not divide the channels",
)
def groups_must_divide(draw: Draw) -> list[Case]:
    groups = draw.integer(2, 6)
    channels = groups * draw.integer(2, 6)
    return [
        {"num_groups": groups, "num_channels": channels},
        # one channel, and more groups than one would think of
        {"num_groups": 1, "num_channels": 1},
        {"num_groups": channels, "num_channels": channels},
        {"num_groups": 32 * groups, "num_channels": 32 * channels},
        {"num_groups": groups, "num_channels": channels + 1},
        {"num_groups": channels, "num_channels": groups},
        {"num_groups": channels - 1, "num_channels": channels},
    ]


@check(
    "one_reshape",
    probe=probes.run_instance_norm,
    weight=2,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="instance norm: each channel of each sample by itself",
    corners=[
        "weight and bias per channel, with `affine=True`, also when frozen",
        "`eps` inside the root",
        "an outlier keeps its size",
    ],
)
def instance_by_instance(draw: Draw) -> list[Case]:
    far = with_an_outlier(draw, channelled(draw, 1, 2, 7, 7))
    x = channelled(draw, 2, 3, 4, 4)
    small = channelled(draw, 1, 3, 2, 3, std=1e-2)
    return [
        {"x": x, "num_channels": 3},
        {"x": far, "num_channels": 2},
        {"x": 2 * x[:, :1] + 3, "num_channels": 1},
        {"x": small, "num_channels": 3},
        {
            "x": small,
            "num_channels": 3,
            "options": {"eps": 1e-3, "affine": True},
            **affine(draw, 3),
        },
        {"x": small, "num_channels": 3, "by_place": [1e-3]},
        # with a variance that is no larger: no other bound is below it
        {"x": small / 100, "num_channels": 3, "options": {"eps": 1e-9}},
        {
            "x": channelled(draw, 3, 4, 2, 4),
            "num_channels": 4,
            "options": {"affine": True},
            **affine(draw, 4),
        },
        {
            "x": channelled(draw, 1, 5, 3, 2),
            "num_channels": 5,
            "options": {"affine": True},
            "frozen": True,
            **affine(draw, 5),
        },
    ]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    weight=3,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="layer norm over the last dimensions, weighed element by element",
    corners=[
        "a last dimension of size 1 gives the bias",
        "`x` may have no dimension before these",
        "weight and bias count when frozen, too",
        "an outlier keeps its size",
    ],
)
def layer_over_the_last(draw: Draw) -> list[Case]:
    far = with_an_outlier(draw, channelled(draw, 2, 5, 10))
    cases = []
    for shape in ([10], [4, 10], [5, 4, 10]):
        x = channelled(draw, 7, 5, 4, 10)
        cases.append(
            {"x": x, "normalized_shape": shape, **affine(draw, *shape)}
        )
    equal = channelled(draw, 2, 4, 4)
    for shape in ([4], [4, 4]):
        cases.append(
            {
                "x": equal,
                "normalized_shape": shape,
                "frozen": shape == [4],
                **affine(draw, *shape),
            }
        )
    cases[3]["x"] = channelled(draw, 4, 4)
    whole = {"x": channelled(draw, 2, 3), "normalized_shape": [2, 3]}
    one = {"x": draw.normal(3, 1, dtype=F64), "normalized_shape": [1]}
    return [
        *cases,
        {**one, **affine(draw, 1)},
        {"x": far, "normalized_shape": [5, 10], **affine(draw, 5, 10)},
        {**whole, **affine(draw, 2, 3)},
    ]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    rule=told(any_number=["out"]),
    raises=("ValueError", "RuntimeError"),
    says="layer norm refuses an input that ends in other sizes: a "
    "`ValueError` or a `RuntimeError`",
    corners=[
        "one with too few dimensions, too, or one of just as many",
        "settings stay as they were then, too",
    ],
)
def layer_refuses_other_shapes(draw: Draw) -> list[Case]:
    x = channelled(draw, 6, 5, 4, 10)
    # Where the last shape fits by size alone, a reshape would not complain.
    swapped = {"x": x, "normalized_shape": [10, 4]}
    return [
        {"x": x, "normalized_shape": [4, 10]},
        {"x": x, "normalized_shape": [5, 4]},
        swapped,
        {"x": channelled(draw, 3, 4, 5), "normalized_shape": [4]},
        {"x": channelled(draw, 3, 4, 5), "normalized_shape": [1]},
        {"x": channelled(draw, 3, 1, 4), "normalized_shape": [5, 4]},
        {"x": channelled(draw, 3, 5, 1), "normalized_shape": [5, 4]},
        {"x": channelled(draw, 1, 4), "normalized_shape": [5, 4]},
        {"x": channelled(draw, 5, 1), "normalized_shape": [5, 4]},
        {"x": draw.normal(4, dtype=F64), "normalized_shape": [5, 4]},
        {"x": draw.normal(4, dtype=F64), "normalized_shape": [1, 4]},
    ]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="`eps` inside the root (layer norm)",
)
def layer_eps(draw: Draw) -> list[Case]:
    x = channelled(draw, 4, 6, std=0.05)
    return [
        # with a variance that is no larger: no other bound is below it
        {"x": size * x, "normalized_shape": [6], "options": {"eps": eps}}
        for eps, size in ((1e-9, 1e-3), (1e-5, 1.0))
    ] + [{"x": x, "normalized_shape": [6], "by_place": [1e-2]}]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="`eps` inside the root (group norm)",
    corners=["in all three it is above 0"],
)
def group_eps(draw: Draw) -> list[Case]:
    cases = []
    # A sequence, then images.
    for eps, std, shape in (
        (1e-9, 5e-5, (3,)),  # no other bound is below the variance
        (1e-5, 0.05, (2, 2)),
        (1e-2, 0.05, (2, 2)),
    ):
        case = grouped(draw, 2, 3, 4, *shape)
        case["x"] = std * case["x"]
        cases.append({**case, "options": {"eps": eps}})
    *others, last = cases
    return [*others, {**last, "options": {}, "by_place": [1e-2, False]}]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="layer norm in eval mode and for inputs that are not contiguous",
)
def layer_in_eval(draw: Draw) -> list[Case]:
    x = channelled(draw, 4, 10, 4, 5).permute(0, 3, 2, 1)
    return [
        {
            "x": x,
            "normalized_shape": shape,
            "training": training,
            **affine(draw, *shape),
        }
        for shape in ([10], [4, 10])
        for training in (False, True)
    ]


@check(
    "one_reshape",
    probe=probes.run_instance_norm,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="instance norm in eval mode and for inputs that are not contiguous",
)
def instance_in_eval(draw: Draw) -> list[Case]:
    x = channelled(draw, 3, 5, 6, 4).permute(0, 3, 2, 1)
    return [
        {"x": x, "num_channels": 4, "training": False},
        {"x": x[:1], "num_channels": 4, "training": True},
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    rule=told(EXACT),
    rtol=EXACT,
    atol=EXACT,
    says="group norm in eval mode and for inputs that are not contiguous",
)
def group_in_eval(draw: Draw) -> list[Case]:
    x = channelled(draw, 3, 4, 5, 6).permute(0, 3, 1, 2)
    case = {"x": x, "num_groups": 3, "num_channels": 6, "training": False}
    return [case, {**case, **affine(draw, 6)}]


@check(
    "one_reshape",
    probe=probes.states_of_all,
    weight=2,
    says="the parameters: there or not, shapes, first values",
    corners=[
        "ones and zeros; without `affine` the `state_dict()` is empty",
        "the list `normalized_shape` stays as it was",
    ],
)
def parameters_of_all(draw: Draw) -> list[Case]:
    channels = 3 * draw.integer(2, 9)
    shape = [draw.integer(2, 6), draw.integer(2, 6)]
    return [
        {"num_groups": 3, "num_channels": channels, "normalized_shape": shape},
        {"num_groups": 1, "num_channels": 4, "normalized_shape": shape[:1]},
    ]


@check(
    "one_reshape",
    probe=probes.gradients_of_all,
    rule=told(1e-7),
    rtol=1e-7,
    atol=1e-7,
    says="the gradients of `x`, `weight` and `bias`, of `x` also through mean "
    "and variance",
    corners=[
        "in both modes, and where `x` asks for none",
        "also where what is averaged has no spread",
    ],
)
def gradients_of_three(draw: Draw) -> list[Case]:
    flat = channelled(draw, 3, 4, 2, 3)
    flat[draw.integer(0, 3)] = draw.integer(1, 9) / 8
    return [
        {
            "x": x,
            # as of a loss that is scaled: no gradient has a bound
            "upstream": size * draw.normal(3, 4, 2, 3, dtype=F64),
            "training": training,
            "x_learns": learns,
        }
        for x, training, size, learns in (
            (flat, True, 1.0, True),
            (channelled(draw, 3, 4, 2, 3), False, 1e4, True),
            (channelled(draw, 3, 4, 2, 3), True, 1.0, False),
        )
    ]


@check(
    "one_reshape",
    probe=probes.run_all,
    rtol=0.0,
    atol=1e-3,
    says="contiguous float32 with a mean of 1000 and a spread of 1 keeps its "
    "digits: right to 0.001",
)
def keeps_digits_of_all(draw: Draw) -> list[Case]:
    return [{"x": draw.normal(3, 4, 6, 5, mean=1000.0)}]


@check(
    "one_reshape",
    probe=probes.run_all,
    rtol=EXACT,
    atol=EXACT,
    says="a NaN or an infinity shows in all that is averaged with it, and nowhere "
    "else",
    corners=[
        "in both modes",
        "no case has a single value per channel or group",
    ],
)
def shows_nans_of_all(draw: Draw) -> list[Case]:
    x = channelled(draw, 3, 4, 2, 3)
    sample = draw.integer(0, 3)
    x[sample, draw.integer(0, 4), 0, 1] = torch.nan
    x[sample - 1, draw.integer(0, 4), 0, 1] = torch.inf
    return [{"x": x, "training": training} for training in (True, False)]


@check(
    "one_reshape",
    probe=probes.run_all_again,
    rule=same_form("outs", exact=["alike"]),
    rtol=ROUNDED,
    atol=ROUNDED,
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="`x` is left as it was and keeps its dtype, and each call gives the "
    "same",
    corners=["an `x` that asks for a gradient gets no hook"],
)
def leaves_x_alone(draw: Draw) -> list[Case]:
    learning = channelled(draw, 2, 4, 3, 3).requires_grad_()
    return [
        {"x": learning, "calls": 1},
        {"x": channelled(draw, 3, 4, 2, 3), "calls": 5},
        {"x": channelled(draw, 2, 3, 5, 4).permute(0, 3, 2, 1), "calls": 1},
        {"x": channelled(draw, 2, 4, 3, 3, dtype=torch.float32), "calls": 2},
        {"x": channelled(draw, 2, 4, 3, 3, dtype=torch.bfloat16), "calls": 1},
    ]


@check(
    "one_reshape",
    probe=probes.run_all_after_training,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="nothing depends on earlier calls or on the mode: eval and training "
    "give the same, and no graph under `no_grad`",
    corners=["the earlier `x` may have had fewer dimensions, or other sizes"],
)
def forgets_earlier_calls(draw: Draw) -> list[Case]:
    return [
        {
            "x": channelled(draw, 3, 4, 2, 3),
            "earlier": channelled(draw, 5, 4, 4, 3, mean=4.0, std=3.0),
        }
    ]


# predict_one


def trained(
    draw: Draw,
    kind: str,
    *,
    outputs: int = 3,
    training: bool = True,
    frozen: tuple[str, ...] = (),
    image: tuple[int, int, int] = (2, 5, 5),
    **options: object,
) -> Case:
    """A sample, and the state of a model whose batch norm has seen data."""
    hidden = 5 if kind == "mlp" else 4
    shape = (6,) if kind == "mlp" else image
    first = (5, 6) if kind == "mlp" else (4, image[0], 3, 3)
    norms = {"mlp": ["1"], "deep": ["0.1", "0.3.0"]}.get(kind, ["1"])
    start = "0.0" if kind == "deep" else "0"
    last = {"mlp": "4", "dense": "4", "deep": "2"}.get(kind, "6")
    x = draw.normal(*shape, dtype=F64)
    shapes = {f"{start}.weight": first, f"{start}.bias": (hidden,)}
    shapes[f"{last}.weight"] = (outputs, hidden)
    if kind == "dense":
        shapes[f"{last}.weight"] = (outputs, hidden, 3, 3)
    shapes[f"{last}.bias"] = (outputs,)
    state = {name: draw.normal(*s, dtype=F64) for name, s in shapes.items()}
    for norm in norms:
        state |= {
            f"{norm}.running_mean": draw.normal(hidden, dtype=F64),
            f"{norm}.running_var": draw.uniform(
                hidden, low=0.5, high=3.0, dtype=F64
            ),
            f"{norm}.num_batches_tracked": torch.tensor(draw.integer(5, 50)),
        }
    scale = affine(draw, hidden)
    # Positive, for the ReLU would hide what comes before it.
    state[f"{norms[0]}.weight"] = scale["weight"].abs()
    state[f"{norms[0]}.bias"] = scale["bias"].abs() + 1.0
    return {
        "x": x,
        "kind": kind,
        "outputs": outputs,
        "training": training,
        "frozen": list(frozen),
        "state": state,
        **options,
    }


def without_weights(draw: Draw, kind: str, **options: object) -> Case:
    """A model that has no parameters, or reads whole numbers."""
    case = trained(draw, "mlp", **options)
    state: dict[str, Tensor] = {}
    if kind == "rows":
        case["x"] = draw.normal(2, 4, 6, dtype=F64)
        state = {
            "0.weight": draw.normal(3, 6, dtype=F64),
            "0.bias": draw.normal(3, dtype=F64),
        }
    if kind == "tokens":
        case["x"] = draw.integers(0, 9, 6)
        state = {
            "0.weight": draw.normal(9, 2, dtype=F64),
            "3.weight": draw.normal(3, 12, dtype=F64),
            "3.bias": draw.normal(3, dtype=F64),
        }
    if kind == "single":
        scale = affine(draw, 6)
        state = {
            **{name: scale[name] for name in ("weight", "bias")},
            "running_mean": draw.normal(6, dtype=F64),
            "running_var": draw.uniform(6, low=0.5, dtype=F64),
            "num_batches_tracked": torch.tensor(draw.integer(5, 50)),
        }
    if kind == "twice":
        state = {
            f"{place}.{name}": value
            for name, value in (
                ("running_mean", draw.normal(6, dtype=F64)),
                ("running_var", draw.uniform(6, low=0.5, dtype=F64)),
                ("num_batches_tracked", torch.tensor(draw.integer(5, 50))),
            )
            for place in ("0", "1.0")
        }
    return {**case, "kind": kind, "state": state}


@check(
    "predict_one",
    probe=probes.predict,
    weight=4,
    on=("out",),
    rtol=EXACT,
    atol=EXACT,
    says="the output of evaluation for the one sample",
)
def predicts_as_in_evaluation(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp"),
        trained(draw, "convnet"),
        trained(draw, "mlp", training=False),
        trained(draw, "convnet", training=False),
        trained(draw, "convnet", image=(1, 4, 4)),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    on=("out", "number_of_passes", "number_of_samples"),
    rtol=EXACT,
    atol=EXACT,
    says="layers of layers, layers that ask for the mode themselves, hooks",
    corners=[
        "a model that is a single layer, and one that asks for its own mode itself",
        "a model without parameters, and one that reads whole numbers",
        "the model runs once, on this sample and no other",
        "an image whose rows go through a linear layer",
        "no layer of the cases keeps a tensor with a graph, which `deepcopy` would "
        "refuse",
        "what it gives is returned as it is, NaN too",
    ],
)
def predicts_with_any_module(draw: Draw) -> list[Case]:
    spoilt = trained(draw, "mlp")
    spoilt["x"][draw.integer(0, 6)] = math.nan
    return [
        spoilt,
        trained(draw, "deep"),
        trained(draw, "deep", frozen=("0",)),
        trained(draw, "mlp", hooked=True),
        without_weights(draw, "bare"),
        without_weights(draw, "tokens"),
        without_weights(draw, "rows"),
        without_weights(draw, "single"),
        without_weights(draw, "asking"),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    on=("out",),
    rtol=EXACT,
    atol=EXACT,
    says="a model in eval mode with a module in training",
)
def predicts_with_a_part_awake(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp", training=False, awake=["1", "3"]),
        trained(draw, "deep", training=False, awake=["0.3"]),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    on=("out",),
    rtol=EXACT,
    atol=EXACT,
    says="only the batch dimension goes, other dimensions of size 1 stay",
    corners=[
        "where the model gives one number for each sample, of shape (N,), the "
        "result has shape ()"
    ],
)
def keeps_one_output(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp", outputs=1),
        trained(draw, "mlp", outputs=1, flat=True),
        trained(draw, "convnet", outputs=1),
        trained(draw, "dense"),
        trained(draw, "dense", outputs=1, image=(2, 5, 6)),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    weight=3,
    on=("out", "carries_a_graph"),
    rtol=EXACT,
    atol=EXACT,
    says="the result carries no graph",
    corners=["even if `x` asks for a gradient"],
)
def carries_no_graph(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp"),
        trained(draw, "convnet", training=False),
        trained(draw, "mlp", x_learns=True),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    weight=10,
    rule=same_form("out", exact=["training"]),
    also=[leaves_state_alone],
    says="every module is in the mode it was in, each by itself",
    corners=["also one that stands in two places"],
)
def puts_modes_back(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp"),
        trained(draw, "mlp", training=False),
        trained(draw, "mlp", frozen=("1",)),
        trained(draw, "convnet", frozen=("1", "5")),
        trained(draw, "deep", frozen=("0.3.0", "1.2")),
        trained(draw, "deep", frozen=("1.2.parts.0",)),
        trained(draw, "deep", training=False, awake=["0.3"]),
        without_weights(draw, "twice", frozen=("0",)),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    rule=same_form("out", exact=["training"]),
    says="a module that the model itself puts into training while it runs is back "
    "in its mode, too",
)
def puts_back_what_the_model_wakes(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp", training=False, wakes=True),
        trained(draw, "convnet", frozen=("1",), wakes=True),
    ]


@check(
    "predict_one",
    probe=probes.predict_without_gradients,
    rule=told(any_number=["out"]),
    says="called under `no_grad`, it leaves `no_grad` on",
)
def leaves_the_grad_mode(draw: Draw) -> list[Case]:
    return [trained(draw, "mlp")]


@check(
    "predict_one",
    probe=probes.predict,
    weight=2,
    rule=told(
        *(1e-12, "state", "options", "requires_grad", "gradients"),
        *("hooks", "draws", "x"),
        any_number=["out"],
    ),
    also=[leaves_rng_alone, leaves_inputs_alone],
    says="parameters, their gradients and `requires_grad`, buffers, options "
    "and hooks of the layers, `x` and the random state are as before",
    corners=[
        "no layer of the cases writes a buffer in eval, or into its input",
        "no seed is set",
    ],
)
def leaves_the_state(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp", hooked_back=True),
        trained(draw, "convnet", frozen=("1",)),
        trained(draw, "deep", fixed=["0.0.weight", "0.0.bias"]),
        trained(draw, "mlp", x_learns=True),
    ]


@check(
    "predict_one",
    probe=probes.predict_twice,
    rtol=EXACT,
    atol=EXACT,
    says="asked twice, it answers the same, and leaves the modes as it found them "
    "each time",
)
def answers_the_same_twice(draw: Draw) -> list[Case]:
    return [trained(draw, "mlp"), trained(draw, "convnet")]


@check(
    "predict_one",
    probe=probes.predict_and_fail,
    weight=3,
    rule=same_form(
        "before",
        exact=[
            "error that the caller hears",
            "grad_mode",
            "training",
            "gradients",
            "state",
        ],
    ),
    says="if the model raises or is interrupted, the caller hears it and the "
    "modes are put back",
    corners=[
        "a `KeyboardInterrupt` or a `SystemExit`, too",
        "the grad mode, parameters, their gradients and buffers are as they were, "
        "too",
    ],
)
def puts_modes_back_after_an_error(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp"),
        trained(draw, "convnet", frozen=("1",)),
        trained(draw, "mlp", frozen=("3",), error="KeyboardInterrupt"),
        trained(draw, "mlp", error="SystemExit"),
    ]


# quiz


def asked(draw: Draw, question: str) -> list[Case]:
    return [{"question": question, "ticket": draw.integer(0, 10**9)}]


READ = {
    "motive": "the first claims of section 5, on why it works",
    "shift": "the first claims of section 5, and what the word *internal* says",
    "momentum": "section 3, and what section 5 says about momentum",
    "tracking": "what section 5 says about track_running_stats",
    "two_variances": "section 3, where both variances stand",
    "alone": "the end of section 1, and count the values per mean",
}


def right_letter(case: Case, seen: Result, expected: Result) -> str | None:
    """Says where to read, not which letter is right."""
    if seen.data == expected.data:
        return None
    if seen.data["form"] == "no dict":
        return (
            "`quiz()` returns a dict with the names of the questions as keys."
        )
    if seen.data["form"] == "no answer":
        return f"Your dict has no key `{case['question']}`."
    if seen.data["form"] == "no letter":
        return "The answer is one of the letters a, b, c and d, and no more."
    return f"Not that one. Read again: {READ[case['question']]}."


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`motive`: why batch norm helps",
)
def why_it_helps(draw: Draw) -> list[Case]:
    return asked(draw, "motive")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`shift`: what internal covariate shift is",
)
def what_shifts(draw: Draw) -> list[Case]:
    return asked(draw, "shift")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`momentum`: what it weighs",
)
def what_momentum_weighs(draw: Draw) -> list[Case]:
    return asked(draw, "momentum")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`tracking`: what a layer without running statistics does in eval",
)
def what_tracking_means(draw: Draw) -> list[Case]:
    return asked(draw, "tracking")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`two_variances`: which variance goes where",
)
def which_variance(draw: Draw) -> list[Case]:
    return asked(draw, "two_variances")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`alone`: which layer raises in training",
)
def who_raises_alone(draw: Draw) -> list[Case]:
    return asked(draw, "alone")
