"""What is checked in chapter 05: normalization."""

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    Result,
    check,
    leaves_inputs_alone,
    leaves_state_alone,
)

from . import probes

F64 = torch.float64
EXACT = 1e-9
"""Rounding in float64 stays below 1e-12 here; wrong formulas are off by 1e-4 or more."""
AVERAGED = 1e-6
"""A share such as 1 / 3 may be a float32, off by 3e-8; wrong averages by 1e-3 or more."""


def affine(
    draw: Draw, *shape: int, dtype: torch.dtype = F64
) -> dict[str, Tensor]:
    """A weight away from 1 and 0, and a bias."""
    return {
        "weight": draw.uniform(*shape, low=0.5, high=2.0, dtype=dtype),
        "bias": draw.normal(*shape, dtype=dtype),
    }


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
)
def normalizes_images(draw: Draw) -> list[Case]:
    return [
        plain(draw, 3, 4, 2, 2, std=1e-2),
        plain(draw, 5, 3, 4, 6, mean=-2.0, std=2.0),
        plain(draw, 1, 3, 4, 4),
        plain(draw, 4, 4, 4, 4),
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
        plain(draw, 5, 3, 6),
        plain(draw, 4, 4, 4),
        plain(draw, 3, 2, 1),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="weight and bias belong to channels, whatever the width",
)
def weighs_by_channel(draw: Draw) -> list[Case]:
    return [
        weighted(draw, 3, 4, 2, 4),
        weighted(draw, 5, 3, 4, 2),
        weighted(draw, 4, 3, 3),
        weighted(draw, 6, 3),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="eps stands inside the root, and is the one that was given",
)
def adds_eps_inside_the_root(draw: Draw) -> list[Case]:
    return [
        {**plain(draw, 4, 3, 3, 3, std=3e-3), "eps": 1e-5},
        {**plain(draw, 4, 3, 3, 3, std=0.1), "eps": 1e-3},
        {**plain(draw, 6, 3, std=0.5), "eps": 0.3},
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    atol=1e-4,
    says="a channel without spread gives its bias",
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
    says="float32 with a mean of 1000 and a spread of 1 keeps its digits",
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
    rtol=3e-2,
    atol=3e-2,
    says="the result has the dtype of x",
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
    says="x need not be contiguous",
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
    probe=probes.normalize_and_gradients,
    weight=2,
    rtol=1e-7,
    atol=1e-7,
    says="the gradients of x, weight and bias",
)
def gradients_of_batch_norm(draw: Draw) -> list[Case]:
    return [
        {
            **weighted(draw, *shape),
            "upstream": draw.normal(*shape, dtype=F64),
        }
        for shape in ((3, 2, 2, 2), (5, 3))
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    raises=("ValueError",),
    says="one value per channel raises a ValueError, one sample does not",
)
def one_value_raises(draw: Draw) -> list[Case]:
    return [
        plain(draw, 1, 3, 2, 2),
        plain(draw, 1, 4),
        plain(draw, 1, 3, 1, 1),
        plain(draw, 1, 3, 1),
        plain(draw, 2, 3),
        plain(draw, 2, 3, 1, 1),
        plain(draw, 3, 1),
    ]


@check(
    "batch_norm",
    probe=probes.normalize,
    also=[leaves_inputs_alone, leaves_state_alone],
    says="x, weight and bias are left as they were",
)
def leaves_arguments_alone(draw: Draw) -> list[Case]:
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
)
def moves_the_mean(draw: Draw) -> list[Case]:
    return [
        {"x": batches(draw, 8, 8, 4), "momentum": momentum}
        for momentum in (0.1, 0.9, 0.3)
    ]


@check(
    "running_stats",
    probe=probes.observe,
    weight=3,
    on=("running_var",),
    rtol=AVERAGED,
    atol=AVERAGED,
    says="the running variance is the unbiased one",
)
def moves_the_unbiased_variance(draw: Draw) -> list[Case]:
    return [
        {"x": batches(draw, 8, 8, 4), "momentum": 0.1},
        {"x": batches(draw, 3, 2, 2), "momentum": 0.9},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="rows (N, C) and sequences (N, C, L) as well",
)
def observes_rows_and_sequences(draw: Draw) -> list[Case]:
    return [
        {"x": batches(draw, 8, 5, rest=(3,)), "momentum": 0.2},
        {"x": batches(draw, 4, 2, rest=(4, 4)), "momentum": 0.2},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    weight=2,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="momentum None: the plain average over the batches",
)
def averages_with_none(draw: Draw) -> list[Case]:
    return [
        {"x": batches(draw, 8, 8, 4), "momentum": None},
        {"x": batches(draw, 2, 6), "momentum": None},
        {"x": batches(draw, 5), "momentum": None},
    ]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="momentum 0.0: mean and variance stay, the count goes on",
)
def stays_with_zero(draw: Draw) -> list[Case]:
    # A mean that stays at 0 counts only beside one that moves.
    moving = 0.05 + 0.1 * draw.integer(1, 9)
    return [
        {"x": batches(draw, 8, 8, 4), "momentum": 0.0},
        {"x": batches(draw, 6, 3), "momentum": moving},
    ]


@check(
    "running_stats",
    probe=probes.observe_with_default_momentum,
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
    says="num_batches_tracked counts batches: int64, without dimensions",
)
def counts_batches(draw: Draw) -> list[Case]:
    return [
        {"x": batches(draw, *[3] * n), "momentum": 0.1}
        for n in (draw.integer(2, 5), 6)
    ]


@check(
    "running_stats",
    probe=probes.observe_in_modes,
    weight=2,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="nothing changes in eval mode, everything in training mode, and "
    "no_grad has no say",
)
def updates_in_training_alone(draw: Draw) -> list[Case]:
    return [
        {
            "x": batches(draw, 6, 5, 4, 6),
            "momentum": momentum,
            "training": [True, False, True, False],
            "grad": [True, True, False, False],
        }
        for momentum in (0.2, None)
    ]


@check(
    "running_stats",
    probe=probes.observe_with_gradient,
    weight=2,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="the input passes through with its gradient, the buffers keep no graph",
)
def keeps_no_graph(draw: Draw) -> list[Case]:
    return [
        {
            "x": channelled(draw, 4, 3, 2, 2),
            "upstream": draw.normal(4, 3, 2, 2, dtype=F64),
            "momentum": momentum,
        }
        for momentum in (0.1, None)
    ]


@check(
    "running_stats",
    probe=probes.observe_the_state,
    says="the state is three buffers, with their names, shapes and first values",
)
def holds_three_buffers(draw: Draw) -> list[Case]:
    return [{"channels": draw.integer(2, 40)}, {"channels": 1}]


@check(
    "running_stats",
    probe=probes.observe_from_a_state,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="a loaded state is carried on from",
)
def carries_on_from_a_state(draw: Draw) -> list[Case]:
    return [
        {
            "x": channelled(draw, 5, 3, 2, 2),
            "momentum": momentum,
            "state": {
                "running_mean": draw.normal(3, dtype=F64),
                "running_var": draw.uniform(3, low=0.5, high=2.0, dtype=F64),
                "num_batches_tracked": torch.tensor(draw.integer(3, 9)),
            },
        }
        for momentum in (0.25, None)
    ]


@check(
    "running_stats",
    probe=probes.observe,
    rtol=AVERAGED,
    atol=AVERAGED,
    says="a NaN shows in the channel in which it came, and in no other",
)
def shows_a_nan(draw: Draw) -> list[Case]:
    poisoned = batches(draw, 4, 4, 4)
    poisoned[1][draw.integer(0, 4), draw.integer(0, 3), 0, 1] = torch.nan
    return [{"x": poisoned, "momentum": 0.1}]


# BatchNorm


def layer_case(draw: Draw, *, tracked: bool = True, **options: object) -> Case:
    """A layer of three channels with buffers far from what batches hold."""
    case: Case = {**affine(draw, 3), "momentum": 0.3, **options}
    if tracked:
        case["running_mean"] = draw.normal(3, mean=100.0, std=5.0, dtype=F64)
        case["running_var"] = draw.uniform(3, low=30.0, high=60.0, dtype=F64)
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
    weight=3,
    on=("outs",),
    rtol=EXACT,
    atol=EXACT,
    says="in training the batch itself normalizes, whatever is in the buffers",
)
def training_uses_the_batch(draw: Draw) -> list[Case]:
    return [
        {**layer_case(draw), **in_modes(draw, [True, True])},
        {**layer_case(draw, eps=0.2), **in_modes(draw, [True])},
        {**layer_case(draw), **in_modes(draw, [True], rest=(3, 3, 3))},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=3,
    on=("outs",),
    rtol=EXACT,
    atol=EXACT,
    says="in eval the buffers normalize",
)
def eval_uses_the_buffers(draw: Draw) -> list[Case]:
    return [
        {**layer_case(draw), **in_modes(draw, [False])},
        {**layer_case(draw, eps=2.0), **in_modes(draw, [False])},
        {**layer_case(draw), **in_modes(draw, [True, False, True, False])},
    ]


@check(
    "train_and_eval",
    probe=probes.run_rows_in_eval,
    rtol=EXACT,
    atol=EXACT,
    says="in eval no row depends on the others, and a batch of one works",
)
def eval_rows_stand_alone(draw: Draw) -> list[Case]:
    return [
        {**layer_case(draw), "x": [channelled(draw, 4, 3, 2, 2)]},
        {**layer_case(draw), "x": [channelled(draw, 3, 3, 1, 1)]},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=2,
    on=("after",),
    rtol=EXACT,
    atol=EXACT,
    says="training moves the buffers and eval leaves them, to the last bit",
)
def moves_the_buffers_in_training(draw: Draw) -> list[Case]:
    return [
        {**layer_case(draw), **in_modes(draw, [True, False, True, False])},
        {**layer_case(draw, momentum=0.9), **in_modes(draw, [True, True])},
        {**layer_case(draw), **in_modes(draw, [False, False])},
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="no_grad is not eval: the mode alone decides",
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
        }
    ]


@check(
    "train_and_eval",
    probe=probes.run_in_modes,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="without running statistics both modes use the batch",
)
def untracked_uses_the_batch(draw: Draw) -> list[Case]:
    return [
        {
            **layer_case(draw, tracked=False),
            **in_modes(draw, [True, False], grad=[True, False]),
        }
    ]


@check(
    "train_and_eval",
    probe=probes.run_backward,
    weight=2,
    rtol=1e-7,
    atol=1e-7,
    says="gradients in both modes, batch after batch",
)
def gradients_in_both_modes(draw: Draw) -> list[Case]:
    return [
        {
            **layer_case(draw),
            "x": [channelled(draw, 4, 3, 2, 2) for _ in training],
            "training": training,
            "upstream": draw.normal(4, 3, 2, 2, dtype=F64),
        }
        for training in ([True, True], [False, False], [True, False, False])
    ]


@check(
    "train_and_eval",
    probe=probes.run_from_a_state,
    weight=2,
    rtol=1e-7,
    atol=1e-7,
    says="the state of nn.BatchNorm2d: names, shapes, first values, loading",
)
def state_of_the_library(draw: Draw) -> list[Case]:
    buffers = {
        "running_mean": draw.normal(3, dtype=F64),
        "running_var": draw.uniform(3, low=0.5, high=2.0, dtype=F64),
        "num_batches_tracked": torch.tensor(draw.integer(3, 9)),
    }
    x = channelled(draw, 4, 3, 2, 2)
    return [
        {
            "x": x,
            "track_running_stats": True,
            "state": {**affine(draw, 3), **buffers},
        },
        {"x": x, "track_running_stats": False, "state": affine(draw, 3)},
    ]


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
    rtol=EXACT,
    atol=EXACT,
    says="group norm: neighbouring channels of one sample",
)
def groups_of_neighbours(draw: Draw) -> list[Case]:
    return [
        grouped(draw, 3, 4, 6, 3, 2),
        grouped(draw, 2, 2, 6, 3, 3),
        grouped(draw, 1, 4, 6, 2, 2),
        grouped(draw, 4, 3, 4, 3, 3),
        grouped(draw, 2, 1, 4, 2, 2),
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    rtol=EXACT,
    atol=EXACT,
    says="group norm of rows (N, C) and sequences (N, C, L)",
)
def groups_of_any_dimensions(draw: Draw) -> list[Case]:
    return [
        grouped(draw, 2, 5, 6, with_affine=True),
        grouped(draw, 3, 4, 6, 5, with_affine=True),
        grouped(draw, 2, 4, 4, 4, with_affine=True),
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="group norm: one weight and one bias per channel",
)
def group_affine_by_channel(draw: Draw) -> list[Case]:
    return [
        grouped(draw, 2, 3, 4, 3, 4, with_affine=True),
        grouped(draw, 3, 2, 6, 2, 2, with_affine=True),
    ]


@check(
    "one_reshape",
    probe=probes.construct_group_norm,
    raises=("ValueError",),
    says="a ValueError from the constructor where the groups do not divide the "
    "channels",
)
def groups_must_divide(draw: Draw) -> list[Case]:
    groups = draw.integer(2, 6)
    channels = groups * draw.integer(2, 6)
    return [
        {"num_groups": groups, "num_channels": channels},
        {"num_groups": groups, "num_channels": channels + 1},
        {"num_groups": channels, "num_channels": groups},
        {"num_groups": channels - 1, "num_channels": channels},
    ]


@check(
    "one_reshape",
    probe=probes.run_instance_norm,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="instance norm: each channel of each sample by itself",
)
def instance_by_instance(draw: Draw) -> list[Case]:
    x = channelled(draw, 2, 3, 4, 4)
    small = channelled(draw, 1, 3, 2, 3, std=1e-2)
    return [
        {"x": x, "num_channels": 3},
        {"x": 2 * x + 3, "num_channels": 3},
        {"x": small, "num_channels": 3},
        {"x": small, "num_channels": 3, "options": {"eps": 1e-3}},
        {
            "x": channelled(draw, 3, 4, 2, 4),
            "num_channels": 4,
            "options": {"affine": True},
            **affine(draw, 4),
        },
    ]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    weight=3,
    rtol=EXACT,
    atol=EXACT,
    says="layer norm over the last dimensions, weighed element by element",
)
def layer_over_the_last(draw: Draw) -> list[Case]:
    cases = []
    for shape in ([10], [4, 10], [5, 4, 10]):
        x = channelled(draw, 7, 5, 4, 10)
        cases.append(
            {"x": x, "normalized_shape": shape, **affine(draw, *shape)}
        )
    equal = channelled(draw, 2, 4, 4)
    for shape in ([4], [4, 4]):
        cases.append(
            {"x": equal, "normalized_shape": shape, **affine(draw, *shape)}
        )
    one = {"x": draw.normal(3, 1, dtype=F64), "normalized_shape": [1]}
    return [*cases, {**one, **affine(draw, 1)}]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    rtol=EXACT,
    atol=EXACT,
    raises=("ValueError", "RuntimeError"),
    says="layer norm refuses an input that ends in other sizes",
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
    ]


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
    rtol=EXACT,
    atol=EXACT,
    says="eps inside the root (layer norm)",
)
def layer_eps(draw: Draw) -> list[Case]:
    x = channelled(draw, 4, 6, std=0.05)
    return [
        {"x": x, "normalized_shape": [6], "options": {"eps": eps}}
        for eps in (1e-5, 1e-2)
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
    rtol=EXACT,
    atol=EXACT,
    says="eps inside the root (group norm)",
)
def group_eps(draw: Draw) -> list[Case]:
    cases = []
    for eps in (1e-5, 1e-2):
        case = grouped(draw, 2, 3, 4, 2, 2)
        case["x"] = 0.05 * case["x"]
        cases.append({**case, "options": {"eps": eps}})
    return cases


@check(
    "one_reshape",
    probe=probes.run_layer_norm,
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
    rtol=EXACT,
    atol=EXACT,
    says="instance norm in eval mode and for inputs that are not contiguous",
)
def instance_in_eval(draw: Draw) -> list[Case]:
    x = channelled(draw, 3, 4, 5, 4).permute(0, 3, 1, 2)
    return [
        {"x": x, "num_channels": 4, "training": False},
        {"x": x[:1], "num_channels": 4, "training": True},
    ]


@check(
    "one_reshape",
    probe=probes.run_group_norm,
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
)
def parameters_of_all(draw: Draw) -> list[Case]:
    channels = 3 * draw.integer(2, 9)
    shape = [draw.integer(2, 6), draw.integer(2, 6)]
    return [
        {"num_groups": 3, "num_channels": channels, "normalized_shape": shape},
        {"num_groups": 2, "num_channels": 4, "normalized_shape": shape[:1]},
    ]


@check(
    "one_reshape",
    probe=probes.gradients_of_all,
    rtol=1e-7,
    atol=1e-7,
    says="the gradients of x, weight and bias",
)
def gradients_of_three(draw: Draw) -> list[Case]:
    return [
        {
            "x": channelled(draw, 3, 4, 2, 3),
            "upstream": draw.normal(3, 4, 2, 3, dtype=F64),
        }
    ]


# predict_one


def trained(
    draw: Draw,
    kind: str,
    *,
    outputs: int = 3,
    training: bool = True,
    frozen: tuple[int, ...] = (),
) -> Case:
    """A sample, and the state of a model whose batch norm has seen data."""
    if kind == "mlp":
        hidden, first, x = 5, (5, 6), draw.normal(6, dtype=F64)
        last = 4
    else:
        hidden, first, x = 4, (4, 2, 3, 3), draw.normal(2, 5, 5, dtype=F64)
        last = 6
    shapes = {"0.weight": first, "0.bias": (hidden,)}
    shapes[f"{last}.weight"] = (outputs, hidden)
    shapes[f"{last}.bias"] = (outputs,)
    state = {name: draw.normal(*s, dtype=F64) for name, s in shapes.items()}
    statistics = {
        "1.running_mean": draw.normal(hidden, dtype=F64),
        "1.running_var": draw.uniform(hidden, low=0.5, high=3.0, dtype=F64),
        "1.num_batches_tracked": torch.tensor(draw.integer(5, 50)),
    }
    scale = {f"1.{name}": v for name, v in affine(draw, hidden).items()}
    # Away from 0, where the ReLU would hide what comes before it.
    scale["1.bias"] = scale["1.bias"].abs() + 1.0
    return {
        "x": x,
        "kind": kind,
        "outputs": outputs,
        "training": training,
        "frozen": list(frozen),
        "state": {**state, **scale, **statistics},
    }


@check(
    "predict_one",
    probe=probes.predict,
    weight=3,
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
    ]


@check(
    "predict_one",
    probe=probes.predict,
    on=("out",),
    rtol=EXACT,
    atol=EXACT,
    says="one output has the shape (1,)",
)
def keeps_one_output(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp", outputs=1),
        trained(draw, "convnet", outputs=1),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    on=("out", "carries_a_graph"),
    rtol=EXACT,
    atol=EXACT,
    says="the result carries no graph",
)
def carries_no_graph(draw: Draw) -> list[Case]:
    return [trained(draw, "mlp"), trained(draw, "convnet", training=False)]


@check(
    "predict_one",
    probe=probes.predict,
    weight=2,
    on=("out", "modes"),
    rtol=EXACT,
    atol=EXACT,
    also=[leaves_state_alone],
    says="every module is in the mode it was in",
)
def puts_modes_back(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp"),
        trained(draw, "mlp", training=False),
        trained(draw, "mlp", frozen=(1,)),
        trained(draw, "convnet", frozen=(1, 5)),
    ]


@check(
    "predict_one",
    probe=probes.predict,
    weight=2,
    on=("out", "state", "options", "learns"),
    rtol=0.0,
    atol=1e-12,
    also=[leaves_inputs_alone],
    says="parameters, buffers and options of the layers are as before",
)
def leaves_the_state(draw: Draw) -> list[Case]:
    return [
        trained(draw, "mlp"),
        trained(draw, "convnet"),
        trained(draw, "convnet", frozen=(1,)),
    ]


@check(
    "predict_one",
    probe=probes.predict_twice,
    rtol=EXACT,
    atol=EXACT,
    says="asked twice, it answers the same",
)
def answers_the_same_twice(draw: Draw) -> list[Case]:
    return [trained(draw, "mlp"), trained(draw, "convnet")]


@check(
    "predict_one",
    probe=probes.predict_and_fail,
    rtol=EXACT,
    atol=EXACT,
    says="if the model raises, the caller hears it and the modes are put back",
)
def puts_modes_back_after_an_error(draw: Draw) -> list[Case]:
    return [trained(draw, "mlp"), trained(draw, "convnet", frozen=(1,))]


# quiz


def asked(draw: Draw, question: str) -> list[Case]:
    return [{"question": question, "ticket": draw.integer(0, 10**9)}]


READ = {
    "motive": "the first claims of section 5",
    "shift": "the first claims of section 5",
    "momentum": "section 3, and what section 5 says about momentum",
    "tracking": "what section 5 says about track_running_stats",
    "two_variances": "section 3, where both variances stand",
    "alone": "the end of section 1, and count the values per mean",
}


def right_letter(case: Case, seen: Result, expected: Result) -> str | None:
    """Says where to read, not which letter is right."""
    if seen.data == expected.data:
        return None
    return f"Not that one. Read again: {READ[case['question']]}."


@check("quiz", probe=probes.answer, rule=right_letter, says="motive")
def why_it_helps(draw: Draw) -> list[Case]:
    return asked(draw, "motive")


@check("quiz", probe=probes.answer, rule=right_letter, says="shift")
def what_shifts(draw: Draw) -> list[Case]:
    return asked(draw, "shift")


@check("quiz", probe=probes.answer, rule=right_letter, says="momentum")
def what_momentum_weighs(draw: Draw) -> list[Case]:
    return asked(draw, "momentum")


@check("quiz", probe=probes.answer, rule=right_letter, says="tracking")
def what_tracking_means(draw: Draw) -> list[Case]:
    return asked(draw, "tracking")


@check("quiz", probe=probes.answer, rule=right_letter, says="two_variances")
def which_variance(draw: Draw) -> list[Case]:
    return asked(draw, "two_variances")


@check("quiz", probe=probes.answer, rule=right_letter, says="alone")
def who_raises_alone(draw: Draw) -> list[Case]:
    return asked(draw, "alone")
