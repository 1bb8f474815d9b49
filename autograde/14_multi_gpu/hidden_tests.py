"""What is checked in chapter 14: several GPUs, several processes."""

import itertools
import math
from itertools import chain, pairwise

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    Result,
    check,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
    same_form,
)
from course_grader.judge.compare import Tolerance
from course_grader.judge.patterns import pattern

from . import probes

DOUBLE = torch.float64
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
ALONE = (leaves_inputs_alone, leaves_state_alone, leaves_rng_alone)
NUM_WEIGHTS = 1500  # more than any model here has
LIMIT_S = 60.0
"""The first use of DistributedDataParallel imports much; ranks that wait for each
other in vain give up sooner, by themselves."""


def same(seen: object, expected: Tensor) -> bool:
    return (
        isinstance(seen, Tensor)
        and seen.dtype == expected.dtype
        and seen.shape == expected.shape
        and torch.allclose(
            seen, expected, rtol=1e-10, atol=1e-12, equal_nan=True
        )
    )


# chunk_sizes


def batches(draw: Draw, *fixed: tuple[int, int]) -> Case:
    """Batch sizes with numbers of devices: these, and drawn ones."""
    drawn = [(draw.integer(1, 60), draw.integer(1, 9)) for _ in range(12)]
    return {"asked": [*fixed, *drawn]}


@check(
    "data_parallel",
    probe=probes.sizes_of_chunks,
    weight=2,
    says="`chunk_sizes`: the sizes of the chunks, for any batch and any "
    "number of devices from 1",
)
def chunks_of_a_batch(draw: Draw) -> list[Case]:
    return [
        batches(draw, (16, 4), (10, 4)),
        batches(draw, (6, 4), (5, 4), (9, 8)),
    ]


@check(
    "data_parallel",
    probe=probes.sizes_of_chunks,
    says="`chunk_sizes`: no empty chunk where there are fewer samples than "
    "devices",
)
def fewer_samples_than_devices(draw: Draw) -> list[Case]:
    few = [
        (draw.integer(1, devices), devices)
        for devices in (2, 3, 5, 8, 9, 13, 16, 64)
    ]
    many = draw.integer(2000, 5000)
    return [
        {"asked": [*few, (1, 4), (draw.integer(70, 90), 8)]},
        {"asked": [(many + draw.integer(1, 3), many), (many - 1, many)]},
    ]


# data_parallel


def passes(
    draw: Draw,
    kind: str,
    batch_size: int,
    num_devices: int,
    *,
    images: bool = False,
    train: bool = True,
    num_passes: int = 1,
    graph: bool = True,
    inputs_too: bool = False,
    kept: bool = True,
    mixed: bool = False,
) -> Case:
    """A batch, and what the network that it goes through is like."""
    features, width = draw.integer(3, 7), draw.integer(5, 8)
    outputs = draw.integer(2, 5)
    shape = (features, 3, 2) if images else (features,)
    return {
        "kind": kind,
        "width": width,
        "num_outputs": outputs,
        "X": draw.normal(batch_size, *shape, std=1.5, dtype=DOUBLE),
        "pull": draw.normal(batch_size * 8 * 6, dtype=DOUBLE),
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "num_devices": num_devices,
        "train": train,
        "num_passes": num_passes,
        "graph": graph,
        "inputs_too": inputs_too,
        "kept": kept,
        "mixed": mixed,
    }


def own_rows(case: Case, seen: Result, expected: Result) -> str | None:
    rows, right = seen.data["rows"], expected.data["rows"]
    if len(rows) != len(right):
        which = "more" if len(rows) > len(right) else "fewer"
        return f"There were {which} forward passes than chunks."
    for one, other in zip(rows, right, strict=True):
        if not same(one, other):
            return "A forward pass did not get the rows of one chunk."
    if not same(seen.data["out"][-1], expected.data["out"][-1]):
        return "The output is wrong."
    return None


def stays_the_same_model(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if not seen.data["modes_kept"]:
        return "A layer is in another mode (train or eval) than before."
    if not seen.data["buffers_kept"]:
        return (
            "Afterwards the model has other buffers. The first replica writes "
            "into those that it had."
        )
    if not same(seen.data["buffers"], expected.data["buffers"]):
        return "The model's buffers have wrong values."
    if not seen.data["kept"]:
        return (
            "Afterwards the model has other parameters, other names, or the "
            "grad mode is another."
        )
    if not same(seen.data["weights"], expected.data["weights"]):
        return "The model's weights changed in a forward pass."
    if seen.data["tied"] != expected.data["tied"]:
        return (
            "The output hangs on a graph under `torch.no_grad()`, or on none "
            "without it."
        )
    if seen.data["grad_modes"] != expected.data["grad_modes"]:
        return (
            "In a forward pass gradients are on under `torch.no_grad()`, or off "
            "without it."
        )
    return same_form("out")(case, seen, expected)


@check(
    "data_parallel",
    probe=probes.through_devices,
    weight=2,
    on=("out",),
    **CLOSE,
    says="`data_parallel`: the outputs of all chunks, in the order of the batch",
)
def outputs_are_gathered(draw: Draw) -> list[Case]:
    return [
        passes(draw, "plain", 12, 4),
        passes(draw, "plain", 11, 3),
        passes(draw, "plain", 6, 4, images=True),
        passes(draw, "traps", 5, 8),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    weight=2,
    rule=own_rows,
    says="`data_parallel`: one forward pass per chunk, each with its own rows "
    "and no others",
    corners=[
        "replicas are in the mode that the model is in",
        "`nn.DataParallel` itself is no way out: without GPUs it hands the "
        "whole batch to the model",
    ],
)
def one_forward_per_chunk(draw: Draw) -> list[Case]:
    return [
        passes(draw, "plain", 16, 4),
        passes(draw, "plain", 10, 4),
        passes(draw, "plain", 6, 4, images=True),
        passes(draw, "plain", 3, 5),
        passes(draw, "plain", 7, 1),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    weight=3,
    on=("tied", "gradients"),
    **CLOSE,
    says="`data_parallel`: a loss on the output sends every chunk's gradient "
    "into the model's own parameters",
    corners=[
        "some parameters may be frozen, unused or used twice: one weight may "
        "have two names"
    ],
)
def gradients_reach_the_model(draw: Draw) -> list[Case]:
    return [
        passes(draw, "plain", 12, 4),
        passes(draw, "plain", 10, 4, images=True),
        passes(draw, "traps", 9, 2),
        passes(draw, "plain", 7, 3, num_passes=2),
        passes(draw, "scale", 8, 3),
        passes(draw, "plain", 5, 1),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    on=("input_gradient", "gradients"),
    **CLOSE,
    says="`data_parallel`: a gradient reaches the batch, too, where it asks "
    "for one",
)
def gradient_of_the_inputs(draw: Draw) -> list[Case]:
    return [
        passes(draw, "plain", 9, 4, inputs_too=True),
        passes(draw, "norm", 8, 2, inputs_too=True, images=True),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    weight=2,
    on=("out", "gradients"),
    **CLOSE,
    says="`data_parallel`: batch norm sees its chunk and nothing else",
)
def batch_norm_per_chunk(draw: Draw) -> list[Case]:
    return [
        passes(draw, "norm", 12, 4),
        passes(draw, "norm", 12, 5, images=True),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    weight=3,
    on=("buffers",),
    **CLOSE,
    says="`data_parallel`: of what replicas write into buffers, the first "
    "one's is kept and the others' is lost",
)
def buffers_of_the_first(draw: Draw) -> list[Case]:
    return [
        passes(draw, "norm", 12, 4),
        passes(draw, "norm", 10, 4, images=True, num_passes=3),
        passes(draw, "norm", 6, 1),
        passes(draw, "norm", 9, 2, graph=False),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    weight=2,
    on=("out", "buffers"),
    **CLOSE,
    says="`data_parallel`: all replicas start from the model as it is before "
    "any of them runs, at every call anew",
    corners=[
        "some buffers may not be in the state dict; no layer with buffers "
        "stands in two places (`functional_call` leaves a copy in such a model)"
    ],
)
def replicas_of_the_same_moment(draw: Draw) -> list[Case]:
    return [
        passes(draw, "counter", 8, 4),
        passes(draw, "counter", 7, 3, num_passes=3),
        passes(draw, "counter", 9, 2, train=False, num_passes=2),
        passes(draw, "counter", 8, 3, kept=False, num_passes=2),
    ]


@check(
    "data_parallel",
    probe=probes.through_devices,
    rule=stays_the_same_model,
    also=ALONE,
    says="`data_parallel`: the model keeps its parameters and buffers (the "
    "same objects), names, weights and modes, and PyTorch its settings",
    corners=[
        "under `torch.no_grad()` the layers run under it, too, and the result "
        "needs no gradient",
        "`X` stays as it is, and no random numbers are drawn",
    ],
)
def same_model_afterwards(draw: Draw) -> list[Case]:
    return [
        passes(draw, "norm", 12, 4),
        passes(draw, "norm", 12, 4, train=False),
        passes(draw, "counter", 9, 4, graph=False),
        passes(draw, "traps", 10, 3, num_passes=2),
        passes(draw, "norm", 9, 3, mixed=True),
    ]


# plain_state_dict


def wrapped(draw: Draw, *hows: str, other: str = "norm") -> Case:
    """A model with a layer called `module` and, if there is one, another."""
    return {
        "width": draw.integer(2, 6),
        "start": draw.normal(200, dtype=DOUBLE),
        "other": other,
        "wrapped": list(hows),
    }


@check(
    "data_parallel",
    probe=probes.unwrapped_state,
    timeout_s=LIMIT_S,
    weight=2,
    says="`plain_state_dict`: the names of the plain model, whether it is "
    "wrapped by `nn.DataParallel`, by `DistributedDataParallel` or not at all",
    corners=[
        "a layer of the model's own may be called `module`, and keeps its name",
        "the model stays as it is",
    ],
)
def names_without_prefix(draw: Draw) -> list[Case]:
    return [
        wrapped(draw, "plain", "DataParallel", "DDP"),
        wrapped(draw, "DataParallel", "plain", "DDP", other="linear"),
        wrapped(draw, "DDP", "plain", "DataParallel", other=""),
        wrapped(draw, "DataParallel", "plain", other="scratch"),
        wrapped(draw, "plain", "DataParallel", other="tied"),
    ]


# ddp_step


def sharded(
    draw: Draw,
    sizes: list[list[int]],
    *,
    num_steps: int = 1,
    frozen: bool = False,
    old_gradients: bool = False,
    train: bool = True,
    mixed: bool = False,
    texts: bool = False,
    repeated: bool = False,
    num_classes: int | None = None,
    loudness: float = 1.0,
    **sgd: float,
) -> Case:
    """Micro-batches of these sizes, one list per rank; each rank's inputs have a
    scale of their own. `loudness` multiplies the logits. With `texts` a sample has a
    vector for each of its places, and micro-batches differ in their number. With
    `repeated` each list holds its first pair as many times as it is long."""
    num_features, drawn = draw.integer(3, 7), draw.integer(3, 6)
    num_classes = drawn if num_classes is None else num_classes
    shards = [
        [
            [
                (
                    draw.normal(
                        size + step,
                        *([draw.integer(2, 6)] if texts else []),
                        num_features,
                        std=1.0 + rank,
                        dtype=DOUBLE,
                    ),
                    draw.integers(0, num_classes, size + step),
                )
                for size in of_rank
            ]
            for step in range(num_steps)
        ]
        for rank, of_rank in enumerate(sizes)
    ]
    return {
        "shards": shards,
        "num_classes": num_classes,
        "start": draw.normal(200, dtype=DOUBLE),
        "frozen": frozen,
        "old_gradients": old_gradients,
        "train": train,
        "mixed": mixed,
        "repeated": repeated,
        "loudness": loudness,
        "sgd": {"lr": 0.5, **sgd},
    }


def with_a_nan(case: Case) -> Case:
    """The case with a NaN in a batch of the last rank."""
    x, y = case["shards"][-1][-1][0]
    x = x.clone()
    x[0, ..., 0] = torch.nan
    case["shards"][-1][-1][0] = (x, y)
    return case


# Steps that several checks ask about: each is a group of processes.


def equal_steps(draw: Draw) -> Case:
    return sharded(draw, [[4], [4]])


def unequal_steps(draw: Draw) -> Case:
    return sharded(draw, [[1], [5], [draw.integer(2, 8)]])


def steps_with_a_nan(draw: Draw) -> Case:
    return with_a_nan(sharded(draw, [[3], [2]]))


def some_windows(draw: Draw) -> Case:
    return sharded(draw, [[5, 1, 3], [2, draw.integer(3, 7), 1]])


def small_windows(draw: Draw) -> Case:
    return sharded(draw, [[3, 2], [1, 4]])


def two_windows(draw: Draw) -> Case:
    return sharded(draw, [[1, 2, 1, 3], [2, 2, 1, 1]], num_steps=2)


def same_update(case: Case, seen: Result, expected: Result) -> str | None:
    for one, right in zip(
        seen.data["ranks"], expected.data["ranks"], strict=True
    ):
        if len(one["gradients"]) != len(right["gradients"]):
            which = (
                "more"
                if len(one["gradients"]) > len(right["gradients"])
                else "fewer"
            )
            return f"A rank's optimizer made {which} steps than it should."
        if not same(one["weights"], right["weights"]):
            if seen.data["apart"] > 1e-9:
                return "After the step the ranks have different weights."
            return (
                "After the step all ranks have the same wrong weights. "
                + of_the_gradients(one["gradients"], right["gradients"])
            )
    return None


def of_the_gradients(seen: list[Tensor], expected: list[Tensor]) -> str:
    """How the gradient of the first step that had a wrong one is wrong."""
    for step, (one, right) in enumerate(zip(seen, expected, strict=True), 1):
        if not same(one, right):
            how = pattern(one, right, Tolerance(**CLOSE))
            which = f"in step {step} " * (len(expected) > 1)
            return f"The gradient {which}was wrong: {how[:1].lower()}{how[1:]}"
    return "The gradients were right: something else changed the weights."


def all_have_the_same(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["apart"] != 0.0:
        return "After the steps the ranks have different weights."
    return same_update(case, seen, expected)


def own_samples(case: Case, seen: Result, expected: Result) -> str | None:
    for one, right in zip(
        seen.data["ranks"], expected.data["ranks"], strict=True
    ):
        if len(one["samples"]) != len(right["samples"]) or not same(
            torch.sort(one["samples"]).values,
            torch.sort(right["samples"]).values,
        ):
            return (
                "On a rank not every sample of its own went through the model "
                "exactly once."
            )
    return None


def one_at_a_time(case: Case, seen: Result, expected: Result) -> str | None:
    for one, shard in zip(seen.data["ranks"], case["shards"], strict=True):
        rows = [
            int(event.split()[1])
            for event in one["events"]
            if event.startswith("forward")
        ]
        right = [len(x) for step in shard for x, _ in step]
        if sorted(rows) != sorted(right):
            return "The forward passes are not those of the micro-batches."
        for first, second in zip(
            one["events"][::2], one["events"][1::2], strict=False
        ):
            if not (
                first.startswith("forward") and second.startswith("backward")
            ):
                return (
                    "A micro-batch went forward before the one before it had "
                    "gone backward, so two graphs were kept at once."
                )
    return own_samples(case, seen, expected)


def crosses_once(case: Case, seen: Result, expected: Result) -> str | None:
    for one in seen.data["ranks"]:
        for bytes_sent in one["sent"]:
            beside = bytes_sent - expected.data["gradient_bytes"]
            if beside >= expected.data["gradient_bytes"]:
                return (
                    "More than one gradient per step crossed between the ranks."
                )
            if beside > 0:
                return (
                    f"Beside the gradient {beside} bytes crossed in a step; "
                    f"a few numbers need no more than {probes.FEW}."
                )
    return same_update(case, seen, expected)


def losses_of_all(case: Case, seen: Result, expected: Result) -> str | None:
    for rank, (one, right) in enumerate(
        zip(seen.data["ranks"], expected.data["ranks"], strict=True)
    ):
        where = "the first rank" if rank == 0 else "a rank"
        found = zip(one["gradients"], right["gradients"], strict=False)
        # once a gradient was wrong, the losses are those of other weights
        good = itertools.takewhile(lambda pair: same(*pair), found)
        judged = 1 + sum(1 for _ in good)
        for loss, other in [*zip(one["losses"], right["losses"], strict=True)][
            :judged
        ]:
            if type(loss) is not float:
                return f"What {where} returned is not a Python float."
            if math.isnan(loss) and math.isnan(other):
                continue
            if not abs(loss - other) <= 1e-5 * (1 + abs(other)):
                return f"The loss that {where} returned is wrong."
    return None


def used_as_given(case: Case, seen: Result, expected: Result) -> str | None:
    for one in seen.data["ranks"]:
        if not one["modes_kept"]:
            return (
                "A layer was or is in another mode (train or eval) than before."
            )
        if not one["list_kept"]:
            return "The list of micro-batches is another than before."
        if not one["switch_on"]:
            return "The model's switch for synchronising is off afterwards."
        if not one["tensors_kept"]:
            return (
                "A tensor of the micro-batches requires a gradient afterwards."
            )
        if not one["settings_kept"]:
            return "The optimizer's settings were changed."
    if not any(len(one["samples"]) for one in seen.data["ranks"]):
        return "No sample went through the model."
    return None


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    weight=2,
    rule=same_update,
    says="equal shards, one micro-batch per rank: the step of the whole batch",
    corners=["gradients may be large, and are not clipped"],
)
def equal_shards(draw: Draw) -> list[Case]:
    return [
        draw.once(equal_steps),
        # so large that no bound of a clipping nobody asked for is above it
        sharded(draw, [[3], [3], [3]], loudness=1e8, lr=1e-8),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    weight=3,
    rule=same_update,
    says="unequal shards: every sample counts the same, wherever it is",
    corners=["a NaN shows on all ranks"],
)
def unequal_shards(draw: Draw) -> list[Case]:
    return [
        sharded(draw, [[6], [2]]),
        draw.once(unequal_steps),
        draw.once(steps_with_a_nan),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    weight=2,
    rule=same_update,
    says="several micro-batches of unequal sizes: one step of the whole window",
    corners=[
        "the other dimensions of `x` may differ, too, as with texts of "
        "different lengths"
    ],
)
def windows_of_ranks(draw: Draw) -> list[Case]:
    return [
        sharded(draw, [[2, 2, 2], [2, 2, 2]]),
        draw.once(some_windows),
        sharded(draw, [[2, 1, 3], [2, draw.integer(3, 7), 1]], texts=True),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    weight=2,
    rule=crosses_once,
    says="the gradient crosses between the ranks once per step, and few "
    "numbers beside it",
    corners=[
        "how they cross is up to you: by DDP, or by your own `all_reduce`; a "
        "`reduce` and a `broadcast` after it are two crossings",
        "at most 250 bytes from each rank beside the gradient",
        "the same pair may stand in the list several times",
    ],
)
def exchanged_once(draw: Draw) -> list[Case]:
    return [
        draw.once(small_windows),
        draw.once(two_windows),
        # so many that two numbers for each of them are too many
        sharded(draw, [[1] * 17, [2] * 17], repeated=True),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    weight=2,
    rule=one_at_a_time,
    says="each micro-batch goes forward and backward, once, before the next one",
)
def one_graph_at_a_time(draw: Draw) -> list[Case]:
    return [
        draw.once(some_windows),
        sharded(draw, [[3], [draw.integer(2, 6)]], num_steps=2),
        draw.once(steps_with_a_nan),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    weight=2,
    rule=losses_of_all,
    says="every rank returns the mean loss over all samples of all ranks "
    "before the step, as a Python float",
    corners=["five digits are enough: it may be added up in float32"],
)
def loss_of_all_ranks(draw: Draw) -> list[Case]:
    return [
        draw.once(equal_steps),
        draw.once(two_windows),
        draw.once(unequal_steps),
        draw.once(steps_with_a_nan),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    rule=all_have_the_same,
    says="over several steps, with momentum and weight decay, all ranks keep the "
    "same weights to the last bit",
)
def ranks_stay_together(draw: Draw) -> list[Case]:
    return [
        sharded(
            draw, [[3, 2], [1, 4]], num_steps=3, momentum=0.9, weight_decay=0.05
        ),
        sharded(draw, [[3], [2], [4]], num_steps=2, momentum=0.9),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    rule=same_update,
    says="gradients that were there before do not count, and frozen "
    "parameters stay",
    corners=[
        "one that was frozen with a gradient still in it, under weight decay, "
        "too",
        "a step is made whatever the loss is, also for one of 0",
        "the model was wrapped after the freeze, as it must be",
    ],
)
def old_and_frozen(draw: Draw) -> list[Case]:
    return [
        sharded(draw, [[3, 2], [1, 4]], old_gradients=True),
        # with one class the loss is 0, and the weights decay all the same
        sharded(draw, [[2], [4]], frozen=True, weight_decay=0.1, num_classes=1),
        sharded(draw, [[2], [4]], frozen=True, old_gradients=True),
        sharded(
            draw,
            [[1, 2], [3, 2]],
            frozen=True,
            old_gradients=True,
            weight_decay=0.1,
        ),
    ]


@check(
    "ddp_step",
    probe=probes.steps_of_ranks,
    timeout_s=LIMIT_S,
    rule=used_as_given,
    also=ALONE,
    says="modes, tensors, list and optimizer settings stay, and no random "
    "numbers are drawn",
    corners=[
        "DDP's switch for synchronising, `require_backward_grad_sync`, is on "
        "again afterwards"
    ],
)
def step_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        draw.once(small_windows),
        sharded(draw, [[2, 2], [3, 3]], train=False),
        sharded(draw, [[2], [4]], mixed=True),
    ]


# train_shard


def epochs(
    draw: Draw,
    num_samples: int,
    world_size: int,
    *,
    num_epochs: int = 2,
    others_draw: bool = True,
    resumed: bool = False,
    seed: int | None = None,
    other_seeds: tuple[int, ...] = (),
    far_epoch: int = 0,
) -> Case:
    """Epochs and ranks, each twice, in an order of their own; then other seeds,
    the differences of which are given."""
    pairs = [
        (epoch, rank)
        for epoch in range(num_epochs)
        for rank in range(world_size)
    ]
    order = [
        pairs[i]
        for _ in range(2)
        for i in draw.permutation(len(pairs)).tolist()
    ]
    return {
        "num_samples": num_samples,
        "world_size": world_size,
        "seed": draw.integer(1, 10_000) if seed is None else seed,
        "other_seeds": list(other_seeds),
        "far_epoch": far_epoch,
        "order": order,
        "num_epochs": num_epochs,
        "others_draw": others_draw,
        "resumed": resumed,
    }


# Shards travel as tensors. Any distance between two entries is allowed, so that a
# learner's mistake is recognised whatever order their seed gives.
ANY_ORDER = {"rtol": 0.0, "atol": 1e12}


def as_given(shard: object) -> list[int]:
    """The list that an answer returned; what is no list of ints as it is."""
    if isinstance(shard, Tensor):
        return [int(i) for i in shard]
    assert isinstance(shard, dict)
    given: list[int] = shard["given"]
    return given


def all_as_given(shards: list[object]) -> list[list[int]]:
    return [as_given(one) for one in shards]


def shards_of(case: Case, seen: Result, epoch: int) -> list[list[int]]:
    return [
        as_given(seen.data["shards"][f"{epoch} {rank}"])
        for rank in range(case["world_size"])
    ]


def not_indices(shards: list[object], num_samples: int) -> str | None:
    for shard in shards:
        if type(shard) is not list or any(type(i) is not int for i in shard):
            return "What is returned is not a list of Python ints."
        if any(not 0 <= i < num_samples for i in shard):
            return "An index is not that of a sample."
    return None


def covered(case: Case, seen: Result, expected: Result) -> str | None:
    num_samples, world_size = case["num_samples"], case["world_size"]
    size = -(-num_samples // world_size)
    for epoch in range(case["num_epochs"]):
        shards = shards_of(case, seen, epoch)
        complaint = not_indices(shards, num_samples)
        if complaint:
            return complaint
        if any(len(shard) != size for shard in shards):
            return "A shard has not the size that all of them must have."
        counts = torch.bincount(
            torch.tensor(list(chain.from_iterable(shards))),
            minlength=num_samples,
        )
        if int(counts.min()) == 0:
            return "In an epoch a sample is on no rank."
        if int(counts.max() - counts.min()) > 1:
            return (
                "In an epoch one sample comes at least two times more often "
                "than another: more is repeated than filling up needs."
            )
    return None


def agreement(one: list[int], other: list[int]) -> float:
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def looks_random(shard: list[int]) -> bool:
    """No commonest step from one index to the next, and no trend."""
    order = torch.tensor(shard, dtype=DOUBLE)
    steps = order.diff()
    commonest = int((steps[:, None] == steps[None, :]).sum(1).max())
    place = torch.arange(len(shard), dtype=DOUBLE)
    trend = float(torch.corrcoef(torch.stack([order, place]))[0, 1])
    return commonest <= 0.3 * len(shard) and abs(trend) < 0.65


def neighbours(shards: list[list[int]]) -> set[frozenset[int]]:
    """Which samples come one after the other on some rank."""
    return {frozenset(pair) for shard in shards for pair in pairwise(shard)}


def shuffled(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = covered(case, seen, expected)
    if complaint:
        return complaint
    for rank in range(case["world_size"]):
        orders = [
            as_given(seen.data["shards"][f"{epoch} {rank}"])
            for epoch in range(case["num_epochs"])
        ]
        for i, order in enumerate(orders):
            if not looks_random(order):
                return "The order of an epoch is not a random one."
            if any(agreement(order, one) > 0.3 for one in orders[:i]):
                return "Two epochs have the same order."
    for rank, order in enumerate(all_as_given(seen.data["far"])):
        complaint = not_indices([order], case["num_samples"])
        first = as_given(seen.data["shards"][f"0 {rank}"])
        if complaint or len(order) != len(first):
            return "In a late epoch, the shard is none."
        if agreement(order, first) > 0.3:
            return "A late epoch has the order of the first one."
    pairs = [
        neighbours(shards_of(case, seen, epoch))
        for epoch in range(case["num_epochs"])
    ]
    for i, one in enumerate(pairs):
        if any(len(one & other) > 0.3 * len(one) for other in pairs[:i]):
            return (
                "Samples that come one after the other in an epoch do so in "
                "the next one, too: the order is moved, not drawn anew."
            )
    return None


def reshared(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = covered(case, seen, expected)
    if complaint:
        return complaint
    first, second = shards_of(case, seen, 0), shards_of(case, seen, 1)
    stayed = sum(
        len(set(a) & set(b)) for a, b in zip(first, second, strict=True)
    )
    if first == second:
        return "Every epoch has the same order."
    if stayed > 0.8 * case["num_samples"]:
        return (
            "A rank has the same samples in every epoch: only their order "
            "changes."
        )
    for shard in first:
        if any(len({*shard} & {*one}) > 0.8 * len({*shard}) for one in second):
            return (
                "The samples of a shard stay together: in the next epoch "
                "another rank has the same ones."
            )
    return None


def seed_decides(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = covered(case, seen, expected)
    if complaint:
        return complaint
    if not seen.data["again"]:
        return (
            "Asked again for the same seed, epoch and rank, or in a process "
            "that was asked for other epochs before, your function returned "
            "another shard."
        )
    if not seen.data["other_process"]:
        return (
            "Another process gets another shard for the same seed, epoch and "
            "rank. Ranks are processes of their own."
        )
    if not seen.data["own_list"]:
        return (
            "The caller changed the list that it got, and when it asked again, "
            "it got a changed one."
        )
    own = [
        shard
        for epoch in range(case["num_epochs"])
        for shard in shards_of(case, seen, epoch)
    ]
    if case["seed"] == 0 and own != all_as_given(seen.data["without_seed"]):
        return "Without a seed the shards are not those of seed 0."
    for others in map(all_as_given, seen.data["other_seeds"]):
        for shard, other in zip(own, others, strict=True):
            complaint = not_indices([other], case["num_samples"])
            if complaint or len(other) != len(shard):
                return "With another seed, the shard is none."
            if agreement(shard, other) > 0.3:
                return "Two seeds give the same order."
    for shard, other in map(all_as_given, seen.data["late"]):
        if not_indices([shard, other], case["num_samples"]):
            return "In a late epoch, the shard is none."
        if agreement(shard, other) > 0.3:
            return "In a late epoch two seeds give the same order."
    return None


def without_global_seeds(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if seen.data["global_seeds"]:
        return (
            "Your code seeds global random numbers or puts their state back. "
            "What another thread draws meanwhile is not what it would be."
        )
    return covered(case, seen, expected)


@check(
    "epoch_shards",
    probe=probes.shards_of_epochs,
    **ANY_ORDER,
    weight=2,
    rule=covered,
    says="`train_shard`: all samples, shards of one size, no more repeated "
    "than that needs; a list of Python ints",
    corners=["`num_samples` and `world_size` are at least 1"],
)
def all_are_covered(draw: Draw) -> list[Case]:
    sizes = [4 * draw.integer(6, 80) + one for one in range(4)]
    return [
        *(
            epochs(draw, size, world_size)
            for world_size in (1, 2, 4)
            for size in sizes
        ),
        epochs(draw, 5, 2),
        epochs(draw, 12, 3),
        # of so many that are filled in, some would be drawn twice
        epochs(draw, 17, 16),
        epochs(draw, 9, 8),
    ]


@check(
    "epoch_shards",
    probe=probes.shards_of_epochs,
    **ANY_ORDER,
    rule=covered,
    says="`train_shard`: also with fewer samples than ranks",
)
def more_ranks_than_samples(draw: Draw) -> list[Case]:
    world_sizes = [draw.integer(8, 80) for _ in range(3)]
    return [
        *(
            epochs(draw, draw.integer(2, 2 + world_size // 2), world_size)
            for world_size in world_sizes
        ),
        epochs(draw, 1, 3),
        epochs(draw, 3, 8),
    ]


@check(
    "epoch_shards",
    probe=probes.shards_of_epochs,
    **ANY_ORDER,
    weight=2,
    rule=shuffled,
    says="`train_shard`: a random order, and another one in each epoch, drawn "
    "anew",
)
def another_order_each_epoch(draw: Draw) -> list[Case]:
    return [
        epochs(draw, draw.integer(120, 300), 2, num_epochs=4, far_epoch=840),
        epochs(draw, draw.integer(120, 300), 3, num_epochs=3),
    ]


@check(
    "epoch_shards",
    probe=probes.shards_of_epochs,
    **ANY_ORDER,
    weight=2,
    rule=reshared,
    says="`train_shard`: from epoch to epoch the samples change ranks and "
    "company",
)
def samples_change_ranks(draw: Draw) -> list[Case]:
    return [
        epochs(draw, draw.integer(120, 300), 2),
        epochs(draw, draw.integer(120, 300), 4),
    ]


@check(
    "epoch_shards",
    probe=probes.shards_of_epochs,
    **ANY_ORDER,
    rule=seed_decides,
    says="`train_shard`: the arguments decide alone, whatever was asked "
    "before, in every process",
    corners=[
        "whatever the caller did with the list, and whoever draws random "
        "numbers in between",
        "in every epoch another `seed` gives another order of many samples; `seed` "
        "is 0 if none is given",
        "`epoch` and `seed` are at least 0, `epoch` is below 2³¹, `seed` below 2²⁹",
    ],
)
def nothing_else_decides(draw: Draw) -> list[Case]:
    return [
        epochs(
            draw,
            draw.integer(120, 300),
            2,
            resumed=True,
            other_seeds=(-1, 1, 99, 5 * 10**8, 2**28),
        ),
        epochs(
            draw,
            draw.integer(120, 300),
            3,
            num_epochs=3,
            resumed=True,
            other_seeds=(99,),
        ),
        epochs(draw, draw.integer(120, 300), 2, seed=0, other_seeds=(99,)),
    ]


@check(
    "epoch_shards",
    probe=probes.shards_of_epochs,
    **ANY_ORDER,
    rule=without_global_seeds,
    also=(leaves_rng_alone, leaves_state_alone),
    says="`train_shard`: the global random numbers of torch, NumPy and "
    "`random` stay as they are, at every moment",
    corners=[
        "they are not put back afterwards either: another thread may be drawing",
        "no setting of PyTorch is changed",
    ],
)
def no_global_numbers(draw: Draw) -> list[Case]:
    return [
        epochs(draw, draw.integer(20, 300), world_size, others_draw=False)
        for world_size in (2, 3, 4)
    ]


# eval_shard


def each_once(case: Case, seen: Result, expected: Result) -> str | None:
    for (num_samples, _), shards in zip(case["asked"], seen.data, strict=True):
        complaint = not_indices(shards, num_samples)
        if complaint:
            return complaint
        everything = sorted(chain.from_iterable(shards))
        if len(everything) > num_samples:
            return "To evaluate, a sample is on more than one rank."
        if everything != list(range(num_samples)):
            return "To evaluate, a sample is on no rank."
        sizes = [len(shard) for shard in shards]
        if max(sizes) - min(sizes) > 1:
            return "The shards to evaluate differ by more than one sample."
    return None


@check(
    "epoch_shards",
    probe=probes.shards_to_evaluate,
    weight=2,
    rule=each_once,
    also=(leaves_rng_alone,),
    says="`eval_shard`: each sample once, sizes that differ by at most one; "
    "lists of Python ints, and nothing is drawn",
    corners=["some lists may be empty"],
)
def evaluated_once(draw: Draw) -> list[Case]:
    drawn = [(draw.integer(9, 90), draw.integer(2, 9)) for _ in range(6)]
    return [
        {"asked": [*drawn, (5, 2), (10, 4), (12, 3)]},
        {"asked": [(draw.integer(9, 90), 1), (3, 5), (1, 4), (9, 4)]},
    ]


# global_accuracy


def evaluated(
    draw: Draw,
    num_samples: int,
    world_size: int,
    *,
    padded: bool = False,
    mixed: bool = False,
    easy_often: bool = False,
    one_often: bool = False,
) -> Case:
    """Which samples a prediction is right for, on the ranks that made them. The
    first samples are the easier ones. With `padded` some samples come twice or
    more, as a sampler fills up, so that all ranks have as many; with
    `easy_often` the easier ones come three times; with `one_often` one of those
    that are right comes 256 times. The number of right ones is odd."""
    chance = torch.linspace(0.95, 0.2, num_samples, dtype=DOUBLE)
    correct = draw.uniform(num_samples, dtype=DOUBLE) < chance
    if num_samples > 3 and int(correct.sum()) % 2 == 0:
        correct[0] = ~correct[0]
    order = torch.arange(num_samples)
    if mixed:
        order = draw.permutation(num_samples)
    if padded:
        size = -(-num_samples // world_size)
        times = -(-size * world_size // num_samples)
        order = order.repeat(times)[: size * world_size]
    if easy_often:
        easy = torch.arange(num_samples // 3)
        order = torch.cat([easy, easy, order])
    if one_often:
        often = correct.nonzero()[:1, 0]
        order = torch.cat([order, often.repeat(255)])
    shards = (
        [order[rank::world_size] for rank in range(world_size)]
        if mixed
        else list(order.tensor_split(world_size))
    )
    return {
        "num_samples": num_samples,
        "shards": [(shard, correct[shard]) for shard in shards],
    }


def same_everywhere(case: Case, seen: Result, expected: Result) -> str | None:
    if isinstance(seen.data, dict):
        rank = seen.data["left out"][0]
        empty = not len(case["shards"][rank][0])
        which = "A rank with an empty shard" if empty else "A rank"
        return (
            f"{which} returned without taking part in the exchange, and the "
            "others failed: all ranks have to make the same calls."
        )
    for rank, (one, right) in enumerate(
        zip(seen.data, expected.data, strict=True)
    ):
        where = "the first rank" if rank == 0 else "a rank"
        if not one["kept"]:
            return "A tensor that was given to you was changed."
        value = one["accuracy"]
        if type(value) is not float:
            return f"What {where} returned is not a Python float."
        if not abs(value - right["accuracy"]) <= 1e-12:
            return f"The accuracy that {where} returned is wrong."
    return None


@check(
    "epoch_shards",
    probe=probes.accuracy_of_all,
    timeout_s=LIMIT_S,
    weight=2,
    rule=same_everywhere,
    also=(leaves_inputs_alone, leaves_rng_alone),
    says="`global_accuracy`: shards of different sizes, each sample once, the "
    "same float on every rank",
    corners=[
        "a shard may be empty",
        "each sample was evaluated on some rank",
        "the tensors stay as they are, and no random numbers are drawn",
    ],
)
def accuracy_of_unequal_shards(draw: Draw) -> list[Case]:
    return [
        evaluated(draw, draw.integer(20, 60), 3),
        evaluated(draw, 2 * draw.integer(20, 60) + 1, 2, mixed=True),
        evaluated(draw, 3, 4),
        evaluated(draw, draw.integer(5000, 6000), 2),
    ]


@check(
    "epoch_shards",
    probe=probes.accuracy_of_all,
    timeout_s=LIMIT_S,
    weight=2,
    rule=same_everywhere,
    says="`global_accuracy`: a sample that comes several times counts once, "
    "on one rank or on several",
    corners=["as a padded sampler gives them, always with the same result"],
)
def repeated_samples_count_once(draw: Draw) -> list[Case]:
    return [
        evaluated(
            draw, 4 * draw.integer(4, 16) + 1, 4, padded=True, mixed=True
        ),
        evaluated(draw, 3 * draw.integer(4, 16) + 1, 3, padded=True),
        evaluated(draw, draw.integer(30, 60), 2, easy_often=True),
        evaluated(draw, draw.integer(30, 60), 3, easy_often=True),
        evaluated(draw, 3, 4, padded=True, mixed=True),
        evaluated(draw, draw.integer(30, 60), 2, one_often=True),
    ]
