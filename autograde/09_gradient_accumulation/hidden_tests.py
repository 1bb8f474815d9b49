"""What is checked in chapter 09: gradient accumulation."""

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

DOUBLE = torch.float64
CLOSE = {"rtol": 1e-9, "atol": 1e-12}
NUM_WEIGHTS = 1100  # more than any model here has

# Rules about how the model was used. They hold only together with the samples
# that went through, which depend on the case.


def same(seen: object, expected: Tensor) -> bool:
    return (
        isinstance(seen, Tensor)
        and seen.dtype == expected.dtype
        and seen.shape == expected.shape
        and torch.allclose(seen, expected, 1e-9, 1e-12, equal_nan=True)
    )


def every_sample_came_back(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if not same(seen.data["forward"], expected.data["forward"]):
        return "Not every sample went through the model exactly once."
    if not same(seen.data["backward"], expected.data["backward"]):
        return "Not every sample took part in exactly one backward pass."
    return None


def something_came_back(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if not len(seen.data["backward"]):
        return "No sample took part in a backward pass."
    return None


def small_forwards(case: Case, seen: Result, expected: Result) -> str | None:
    rows, right = seen.data["rows"], expected.data["rows"]
    if rows and max(rows) > max(right):
        return (
            "A forward pass got more rows than a micro-batch has: that is the "
            "memory that accumulation is there to save."
        )
    if sum(rows) > sum(right):
        return "Samples went through the model more than once."
    if rows != right:
        return "The forward passes are not those of the micro-batches."
    return every_sample_came_back(case, seen, expected)


def freed_graphs(case: Case, seen: Result, expected: Result) -> str | None:
    graphs = seen.data["graphs"]
    right = expected.data["graphs"]
    if any(one > other for one, other in zip(graphs, right, strict=True)):
        return (
            "More than one micro-batch's graph was kept at once. Go backward "
            "on each micro-batch before the next one goes forward, and keep "
            "nothing of it."
        )
    if seen.data["earlier graphs still there"] > 1:
        return (
            "When a micro-batch went forward, graphs of several earlier ones "
            "were still there: their logits or losses were kept. Keep numbers "
            "(`.item()`) or detached tensors."
        )
    return every_sample_came_back(case, seen, expected)


def one_step_each(case: Case, seen: Result, expected: Result) -> str | None:
    steps, right = seen.data["steps"], expected.data["steps"]
    if steps != right:
        which = "more" if steps > right else "fewer"
        return f"The optimizer made {which} steps than it should."
    # Not by the forward passes: whoever makes one more steps rightly still.
    if not same(seen.data["backward"], expected.data["backward"]):
        return "Not every sample took part in exactly one backward pass."
    return None


def as_many_steps(case: Case, seen: Result, expected: Result) -> str | None:
    """What else is wrong follows from steps that are missing, or too many."""
    found, right = seen.data["gradients"], expected.data["gradients"]
    if len(found) == len(right):
        return None
    which = "more" if len(found) > len(right) else "fewer"
    return f"The optimizer made {which} steps than it should."


def after_the_steps(*keys: str) -> Rule:
    """What came of the steps; if that is wrong, first how many there were."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        found = difference(
            {key: seen.data[key] for key in keys},
            {key: expected.data[key] for key in keys},
            Tolerance(1e-9, 1e-12),
        )
        return found and (as_many_steps(case, seen, expected) or found)

    return rule


by_steps = after_the_steps("weights", "gradients")


def shows_a_nan(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison, with words for a NaN that was left out."""
    got, right = seen.data["gradients"], expected.data["gradients"]
    if right.isnan().any() and not got.isnan().any():
        return "A sample that counts holds a NaN, and your gradients show none."
    return difference(
        {key: seen.data[key] for key in ("gradients", "loss")},
        {key: expected.data[key] for key in ("gradients", "loss")},
        Tolerance(1e-9, 1e-12),
    )


def used_as_given(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["called"]:
        return (
            "`model.forward` was called, and not `model(...)`. Hooks of the "
            "model do not run then."
        )
    if not seen.data["modes_kept"]:
        return (
            "In a forward pass a layer was in another mode (train or eval) than "
            "when the model was given to you. Call neither `train()` nor "
            "`eval()`."
        )
    if not seen.data["unseeded"]:
        return "PyTorch's global generator was seeded: what follows repeats."
    if not seen.data["settings_kept"]:
        return (
            "A setting of PyTorch was changed, for a while or for good: anomaly "
            "detection, autocast, the default dtype, deterministic algorithms "
            "or the number of threads."
        )
    if not seen.data["parameters_kept"]:
        return (
            "A parameter's `requires_grad` is another afterwards, or a hook "
            "was left on it."
        )
    if not seen.data["nothing_added"]:
        return (
            "The model, or a layer of it, has an attribute more or less than "
            "before."
        )
    if not seen.data["tensors_plain"]:
        return "A tensor that was given to you requires a gradient now."
    if not seen.data.get("list_kept", True):
        return "The list that was given to you is not as it was."
    return something_came_back(case, seen, expected)


ALONE = (leaves_inputs_alone, leaves_rng_alone, leaves_state_alone)

# accumulated_step


def batches(
    draw: Draw,
    num_micro: int,
    *,
    size: int = 32,
    num_batches: int = 2,
    traps: bool = False,
    old_gradients: bool = False,
    images: bool = False,
    mode: str = "train",
    loudness: float = 1.0,
    **sgd: float,
) -> Case:
    """Batches of one size, for a new model and plain SGD. Images are samples of
    two dimensions."""
    num_features, num_classes = draw.integer(4, 8), draw.integer(3, 6)
    shape = (num_features, 3) if images else (num_features,)
    return {
        "batches": [
            (
                draw.normal(size, *shape, dtype=DOUBLE),
                draw.integers(0, num_classes, size),
            )
            for _ in range(num_batches)
        ],
        "num_micro": num_micro,
        "num_classes": num_classes,
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "traps": traps,
        "old_gradients": old_gradients,
        "mode": mode,
        "loudness": loudness,
        "sgd": {"lr": 0.5, **sgd},
    }


def as_ids(case: Case) -> Case:
    """The case with whole numbers in its batches, for a model that takes no
    others."""
    (name,) = {"batches", "micro_batches"} & case.keys()
    pairs = [((4 * x).round().long(), y) for x, y in case[name]]
    return {**case, name: pairs, "ids": True}


def of_one_class(case: Case) -> Case:
    """The case with a single class, of which every loss is 0."""
    (name,) = {"batches", "micro_batches"} & case.keys()
    pairs = [(x, torch.zeros_like(y)) for x, y in case[name]]
    return {**case, name: pairs, "num_classes": 1}


def of_single_numbers(case: Case) -> Case:
    """The case with inputs of shape (N,)."""
    (name,) = {"batches", "micro_batches"} & case.keys()
    return {**case, name: [(x[:, 0], y) for x, y in case[name]]}


def of_images(case: Case) -> Case:
    """The case with samples of two dimensions, of which the model takes the mean over
    the second."""
    ramp = torch.tensor([-1.0, 0.5, 2.0], dtype=DOUBLE)
    pairs = [(x[:, :, None] * ramp, y) for x, y in case["micro_batches"]]
    return {**case, "micro_batches": pairs}


def broken_batch(draw: Draw) -> Case:
    """A batch that holds a NaN."""
    case = batches(draw, 2, size=8, num_batches=1)
    case["batches"][0][0][0, 0] = torch.nan
    return case


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    weight=3,
    rule=by_steps,
    **CLOSE,
    says="the update is that of the full batch: 2 x 16, 4 x 8, 16 x 1, of "
    "rows and of images, with small gradients and large ones",
    corners=[
        "micro-batches are consecutive rows or others",
        "the model may share weights, add two parameters up, and read whole "
        "numbers or `X` of shape (N,), the optimizer have several groups; a NaN in "
        "the batch is trained on, and shows",
        "the optimizer holds the parameters of the model, and no others",
    ],
)
def update_of_the_full_batch(draw: Draw) -> list[Case]:
    return [
        draw.once(broken_batch),
        {**batches(draw, 2, size=8, num_batches=1), "two_groups": True},
        {**as_ids(batches(draw, 2, size=8, num_batches=1)), "own": "sum"},
        of_single_numbers(batches(draw, 2, size=8, num_batches=1)),
        batches(draw, 2, num_batches=1),
        draw.once(batches, 4),
        draw.once(batches, 16, size=16, num_batches=1),
        batches(draw, 4, size=12, num_batches=1, images=True),
        # So large that no bound of a clipping nobody asked for is above it.
        batches(draw, 2, size=8, num_batches=1, loudness=1e8, lr=1e-8),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    on=("weights", "gradients", "losses"),
    **CLOSE,
    says="with one micro-batch it is a plain training step",
)
def one_micro_batch(draw: Draw) -> list[Case]:
    return [batches(draw, 1, size=n) for n in (8, draw.integer(5, 12))]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    rule=after_the_steps("weights", "settings"),
    **CLOSE,
    says="with momentum and weight decay, and without touching either",
    corners=["also where the loss is 0, as with one class alone"],
)
def momentum_and_decay(draw: Draw) -> list[Case]:
    return [
        batches(draw, 3, size=12, weight_decay=0.1),
        batches(draw, 2, num_batches=1, weight_decay=0.1, loudness=0.0),
        batches(draw, 2, num_batches=3, momentum=0.9, weight_decay=0.05),
        of_one_class(batches(draw, 2, num_batches=2, weight_decay=0.1)),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    weight=2,
    rule=one_step_each,
    says="the optimizer steps once per batch",
)
def one_step_per_batch(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 4),
        draw.once(batches, 16, size=16, num_batches=1),
        draw.once(broken_batch),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    weight=2,
    rule=small_forwards,
    says="the model sees one micro-batch at a time, each sample once, as you "
    "got it",
    corners=[
        "another forward pass, for the loss say, is not allowed, nor is "
        "putting micro-batches together"
    ],
)
def small_micro_batches(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 4),
        draw.once(batches, 8, size=48, num_batches=1),
        draw.once(batches, 16, size=16, num_batches=1),
        draw.once(broken_batch),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    weight=2,
    rule=freed_graphs,
    says="what one micro-batch's graph holds is freed before the next one comes",
    corners=[
        "there is a backward pass for each, and it keeps nothing",
        "nor do you keep logits or losses of several, but as numbers or detached",
    ],
)
def graphs_are_freed(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 4),
        draw.once(batches, 8, size=48, num_batches=1),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    rule=by_steps,
    **CLOSE,
    says="gradients that were there before do not count",
    corners=[
        "nor do those of a parameter that stands beside the model's layers"
    ],
)
def old_gradients_do_not_count(draw: Draw) -> list[Case]:
    return [
        batches(draw, 4, num_batches=1, old_gradients=True),
        batches(draw, 2, num_batches=2, old_gradients=True),
        {**batches(draw, 2, size=8, old_gradients=True), "own": True},
        {
            **batches(draw, 2, size=8, num_batches=1, old_gradients=True),
            "two_groups": True,
        },
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    rule=by_steps,
    **CLOSE,
    says="frozen and unused parameters: no error, and no step moves them",
    corners=[
        "also with weight decay: at the step their `.grad` is `None`, where zeros "
        "would move them",
        "nor does a gradient that one had when it was frozen",
        "what `.grad` holds after the step is left open",
    ],
)
def parameters_without_gradient(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 4, traps=True),
        batches(draw, 2, size=8, traps=True, weight_decay=0.1),
        batches(
            draw,
            2,
            num_batches=1,
            traps=True,
            old_gradients=True,
            weight_decay=0.1,
        ),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    on=("losses",),
    **CLOSE,
    says="the loss returned is the batch's mean, before the step, a Python "
    "float",
)
def returned_loss(draw: Draw) -> list[Case]:
    return [
        draw.once(broken_batch),
        draw.once(batches, 4),
        draw.once(batches, 16, size=16, num_batches=1),
    ]


@check(
    "accumulated_step",
    probe=probes.step_in_micro_batches,
    rule=used_as_given,
    also=ALONE,
    says="all else stays: the layers' modes, the tensors, PyTorch's settings",
    corners=[
        "call `model(...)`, not `model.forward(...)`",
        "no layer's mode, no setting of PyTorch such as anomaly detection and "
        "no seed is yours to change, not even for a while",
        "to draw numbers, as a `DataLoader` does, is no fault",
        "no seed is set, and nothing is left on the model: neither hook nor "
        "attribute",
    ],
)
def step_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 4),
        batches(draw, 4, num_batches=1, mode="eval"),
        batches(draw, 4, num_batches=1, mode="mixed"),
        draw.once(batches, 4, traps=True),
    ]


# accumulate_gradients


def window(
    draw: Draw,
    *sizes: int,
    num_classes: int = 5,
    num_features: int | None = None,
    traps: bool = False,
    mode: str = "train",
    first_again: bool = False,
    **options: object,
) -> Case:
    """Micro-batches of these sizes; each has inputs of a scale of its own."""
    num_features = num_features or draw.integer(4, 8)
    micro_batches = []
    for i, size in enumerate(sizes):
        x = draw.normal(size, num_features, std=0.5 + i, dtype=DOUBLE)
        micro_batches.append((x, draw.integers(0, num_classes, size)))
    return {
        "micro_batches": micro_batches,
        "num_classes": num_classes,
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "traps": traps,
        "mode": mode,
        "loudness": 1.0,
        "first_again": first_again,
        **options,
    }


def relabelled(case: Case, label: int, *counts: int) -> Case:
    """The case with the first counts[i] labels of micro-batch i set to `label`."""
    pairs = []
    for (x, y), count in zip(case["micro_batches"], counts, strict=True):
        y = y.clone()
        y[:count] = label
        pairs.append((x, y))
    return {**case, "micro_batches": pairs}


def class_weights(draw: Draw, num_classes: int = 5) -> Tensor:
    weight = draw.uniform(num_classes, low=0.2, high=3.0, dtype=DOUBLE)
    weight[draw.integer(0, num_classes)] = 9.0
    return weight


def weighted(draw: Draw, *sizes: int, over: float = 1.0) -> Case:
    """A window with class weights, divided by `over`."""
    return window(draw, *sizes, weight=class_weights(draw) / over)


def weighted_and_ignored(draw: Draw) -> Case:
    as_class = draw.integer(0, 5)
    case = window(
        draw, 12, 9, 3, weight=class_weights(draw), ignore_index=as_class
    )
    return relabelled(case, as_class, 4, 1, 1)


def some_ignored(draw: Draw) -> Case:
    return relabelled(window(draw, 9, 14, 4), -100, 2, 9, 3)


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    weight=3,
    on=("gradients",),
    **CLOSE,
    says="micro-batches of unequal size: 20 + 12, 16 + 15 + 1",
    corners=[
        "a pair may come twice",
        "the model may share weights, add two parameters up and read whole "
        "numbers, images, or `x` of shape (n,); logits are small or large",
    ],
)
def ragged_micro_batches(draw: Draw) -> list[Case]:
    return [
        draw.once(window, 20, 12),
        as_ids(window(draw, 3, 5, own="sum")),
        window(draw, 3, 5, loudness=1e8),
        draw.once(window, 16, 15, 1),
        window(draw, 1, 7, 3, 9),
        of_images(window(draw, 8, 8)),
        of_single_numbers(window(draw, 5, 8, first_again=True)),
        # class 0 alone in the last one
        relabelled(window(draw, 5, 3), 0, 0, 3),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    weight=2,
    on=("gradients",),
    **CLOSE,
    says="class weights: each label counts with the weight of its class",
    corners=["they may be tiny, or zero"],
)
def weighted_classes(draw: Draw) -> list[Case]:
    return [
        draw.once(weighted, 16, 16),
        weighted(draw, 9, 4, 12),
        weighted(draw, 3, 9, over=1e6),
        draw.once(weighted, 5, 4, over=1e30),
        # class 0 alone in the last one
        relabelled(weighted(draw, 5, 3), 0, 0, 3),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    weight=2,
    on=("gradients",),
    **CLOSE,
    says="ignored labels do not count, whatever `ignore_index` is",
)
def ignored_labels(draw: Draw) -> list[Case]:
    as_class = draw.integer(0, 5)
    fixed = window(draw, 12, 12, ignore_index=as_class)
    return [
        relabelled(window(draw, 16, 16), -100, 10, 0),
        draw.once(some_ignored),
        relabelled(window(draw, 10, 6, ignore_index=-1), -1, 3, 4),
        relabelled(window(draw, 10, 6, ignore_index=255), 255, 5, 1),
        relabelled(window(draw, 8, 11, ignore_index=0), 0, 1, 6),
        relabelled(fixed, as_class, 7, 1),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    weight=2,
    rule=shows_a_nan,
    **CLOSE,
    says="a micro-batch in which nothing counts adds nothing, and no NaN",
    corners=[
        "a NaN of a sample that counts shows in gradients and loss; in no case "
        "is there one in a micro-batch in which nothing counts"
    ],
)
def nothing_counts_in_one(draw: Draw) -> list[Case]:
    weight = class_weights(draw)
    dead = draw.integer(0, 5)
    weight[dead] = 0.0
    return [
        relabelled(window(draw, 8, 6, 8), -100, 1, 6, 0),
        with_a_nan(relabelled(window(draw, 5, 8, 3), -100, 5, 2, 1)),
        relabelled(window(draw, 5, 8, 3), -100, 5, 0, 3),
        relabelled(window(draw, 8, 6, weight=weight), dead, 0, 6),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    on=("gradients",),
    **CLOSE,
    says="class weights together with ignored labels",
    corners=["`ignore_index` may be a class, or beyond the last one"],
)
def weights_and_ignored_labels(draw: Draw) -> list[Case]:
    # The last class counts, and -1 as an index would be the last.
    last = window(draw, 5, 4, weight=class_weights(draw), ignore_index=-1)
    # Class 0 alone counts in the second.
    zeros = window(draw, 5, 4, weight=class_weights(draw))
    return [
        relabelled(relabelled(last, 4, 3, 3), -1, 1, 2),
        relabelled(relabelled(zeros, 0, 0, 4), -100, 1, 2),
        draw.once(weighted_and_ignored),
        relabelled(weighted(draw, 10, 10), -100, 6, 1),
        relabelled(
            window(draw, 4, 7, num_classes=1, weight=class_weights(draw, 1)),
            -100,
            2,
            1,
        ),
        relabelled(
            window(draw, 4, 7, num_features=1),
            -100,
            2,
            1,
        ),
        relabelled(
            window(draw, 5, 8, weight=class_weights(draw), ignore_index=255),
            255,
            2,
            3,
        ),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    on=("gradients", "loss"),
    **CLOSE,
    says="nothing counts at all: the loss is NaN, and no gradient is: `None` "
    "or zeros",
)
def nothing_counts_at_all(draw: Draw) -> list[Case]:
    dead = torch.zeros(5, dtype=DOUBLE)
    return [
        relabelled(window(draw, 6, 3), -100, 6, 3),
        window(draw, 6, 3, weight=dead),
        relabelled(window(draw, 6, 3), -100, 6, 1),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    on=("loss",),
    **CLOSE,
    says="the loss returned is that of the one large batch, a Python float",
    corners=[
        "however small the class weights are; a loss of 0, as of one class alone, "
        "is 0"
    ],
)
def loss_of_the_window(draw: Draw) -> list[Case]:
    return [
        draw.once(window, 20, 12),
        draw.once(some_ignored),
        draw.once(weighted, 5, 4, over=1e30),
        draw.once(weighted_and_ignored),
        of_one_class(window(draw, 3, 5)),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    rule=small_forwards,
    says="the model sees one micro-batch at a time, each sample once, as you "
    "got it",
    corners=[
        "another forward pass, for the loss say, is not allowed, nor is "
        "putting micro-batches together",
        "rows with ignored labels go with the others; a micro-batch in which "
        "no label counts may be left out",
    ],
)
def small_windows(draw: Draw) -> list[Case]:
    return [
        draw.once(window, 12, 12, 12, 12),
        draw.once(window, 16, 15, 1),
        draw.once(some_ignored),
        with_a_nan(window(draw, 9, 12, 7)),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    rule=freed_graphs,
    says="what one micro-batch's graph holds is freed before the next one comes",
    corners=[
        "there is a backward pass for each, and it keeps nothing",
        "nor do you keep logits or losses of several, but as numbers or detached",
    ],
)
def graphs_of_a_window(draw: Draw) -> list[Case]:
    return [draw.once(window, 12, 12, 12, 12), window(draw, 9, 16, 14)]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    on=("gradients", "moved"),
    **CLOSE,
    says="frozen and unused parameters: no error, and no gradient: `None` or "
    "zeros",
)
def no_gradient_for_some(draw: Draw) -> list[Case]:
    return [
        draw.once(window, 9, 4, traps=True),
        window(draw, 3, 3, 5, traps=True),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    rule=something_came_back,
    also=[leaves_inputs_alone],
    says="inputs, labels and weights are left as they were",
)
def leaves_labels_alone(draw: Draw) -> list[Case]:
    as_class = draw.integer(0, 5)
    both = window(draw, 6, 6, weight=class_weights(draw), ignore_index=as_class)
    return [
        draw.once(some_ignored),
        draw.once(weighted, 16, 16),
        relabelled(both, as_class, 2, 2),
    ]


@check(
    "accumulate_gradients",
    probe=probes.gradients_of_a_window,
    rule=used_as_given,
    also=ALONE,
    says="all else stays: the layers' modes, the list, PyTorch's settings",
    corners=[
        "call `model(...)`, not `model.forward(...)`",
        "no layer's mode, no setting of PyTorch such as anomaly detection and "
        "no seed is yours to change, not even for a while",
        "to draw numbers, as a `DataLoader` does, is no fault",
        "no seed is set, and nothing is left on the model: neither hook nor "
        "attribute",
    ],
)
def window_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        draw.once(window, 16, 15, 1),
        *(window(draw, 6, 3, 7, mode=mode) for mode in ("eval", "mixed")),
        draw.once(window, 9, 4, traps=True),
    ]


# train_epoch


def epochs(
    draw: Draw,
    sizes: list[int],
    accumulation_steps: int,
    *,
    num_epochs: int = 1,
    scheduled: bool = False,
    max_norm: float | None = None,
    as_list: bool = True,
    sized: bool | str = False,
    two_groups: bool = False,
    traps: bool = False,
    mode: str = "train",
    loudness: float = 1.0,
    lr: float = 0.3,
    **sgd: float,
) -> Case:
    """Micro-batches of these sizes, gone through in each epoch."""
    num_features, num_classes = draw.integer(4, 8), draw.integer(3, 6)
    return {
        "micro_batches": [
            (
                draw.normal(size, num_features, std=0.5 + i % 3, dtype=DOUBLE),
                draw.integers(0, num_classes, size),
            )
            for i, size in enumerate(sizes)
        ],
        "accumulation_steps": accumulation_steps,
        "num_features": num_features,
        "num_classes": num_classes,
        "num_epochs": num_epochs,
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "traps": traps,
        "mode": mode,
        "loudness": loudness,
        "two_groups": two_groups,
        "scheduled": scheduled,
        "max_norm": max_norm,
        "as_list": as_list,
        "sized": sized,
        "sgd": {"lr": lr, **sgd},
    }


def with_a_nan(case: Case, at: int = -1) -> Case:
    """The case with a NaN in a micro-batch, the last one if not told."""
    micro_batches = list(case["micro_batches"])
    x, y = micro_batches[at]
    x = x.clone()
    x[-1, 0] = torch.nan
    micro_batches[at] = x, y
    return {**case, "micro_batches": micro_batches}


# Epochs that several checks ask about.


def two_epochs(draw: Draw) -> Case:
    return epochs(draw, [4] * 4, 2, num_epochs=2, momentum=0.9)


def with_a_short_window(draw: Draw) -> Case:
    return epochs(draw, [4] * 5, 2, num_epochs=2)


def of_unequal_sizes(draw: Draw) -> Case:
    return epochs(draw, [6, 2, 5, 3, 6, 1], 3)


def of_one_short_window(draw: Draw) -> Case:
    return epochs(draw, [4], 3)


def without_windows(draw: Draw) -> Case:
    return epochs(draw, [4] * 4, 1)


def with_weight_decay(draw: Draw) -> Case:
    return epochs(draw, [4] * 6, 3, weight_decay=0.1)


def broken_epoch(draw: Draw) -> Case:
    return with_a_nan(epochs(draw, [4] * 4, 2, scheduled=True), at=2)


def of_zero_losses(draw: Draw) -> Case:
    case = epochs(draw, [4] * 2, 2, scheduled=True, weight_decay=0.1)
    return of_one_class(case)


@check(
    "train_epoch",
    probe=probes.some_epochs,
    weight=2,
    rule=by_steps,
    **CLOSE,
    says="full windows: each step uses the mean over the window's samples",
    corners=[
        "the optimizer holds the parameters of the model, and no others",
        "a NaN in a batch is trained on, and shows in weights and loss; a loss of "
        "0 or a gradient of zeros is a step, too",
        "the model may share weights, add two parameters up, have parameters of "
        "its own beside its layers, and read whole numbers, images, or `x` of shape "
        "(n,); a pair may come twice",
        "without `max_norm` no gradient is too large",
    ],
)
def full_windows(draw: Draw) -> list[Case]:
    return [
        draw.once(without_windows),
        draw.once(two_epochs),
        draw.once(with_weight_decay),
        of_images(epochs(draw, [2] * 5, 5)),
        {**as_ids(epochs(draw, [4] * 2, 2)), "own": "sum"},
        epochs(draw, [4] * 2, 2, weight_decay=0.1, loudness=0.0),
        draw.once(of_zero_losses),
        draw.once(broken_epoch),
        epochs(draw, [4] * 2, 2, loudness=1e8, lr=1e-8),
        {**of_single_numbers(epochs(draw, [4] * 3, 4)), "first_again": True},
        {**epochs(draw, [4] * 4, 2), "own": True},
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    weight=3,
    rule=by_steps,
    **CLOSE,
    says="a short last window is stepped on, with its own denominator",
)
def short_last_window(draw: Draw) -> list[Case]:
    return [
        draw.once(with_a_short_window),
        draw.once(of_one_short_window),
        epochs(draw, [4] * 3, 10),
        epochs(draw, [4] * 4, 3, num_epochs=2, momentum=0.9, weight_decay=0.05),
        of_one_class(epochs(draw, [4] * 3, 2, weight_decay=0.1)),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    weight=2,
    rule=by_steps,
    **CLOSE,
    says="micro-batches of unequal size, as often at the end of an epoch",
)
def short_last_micro_batch(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4, 4, 4, 1], 2),
        draw.once(of_unequal_sizes),
        epochs(draw, [8, 8, 1], 10),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    weight=2,
    rule=one_step_each,
    says="one optimizer step per window: n micro-batches give n / k, rounded up",
)
def one_step_per_window(draw: Draw) -> list[Case]:
    return [
        draw.once(two_epochs),
        draw.once(with_a_short_window),
        draw.once(with_weight_decay),
        draw.once(of_one_short_window),
        draw.once(without_windows),
    ]


def nothing_left(case: Case, seen: Result, expected: Result) -> str | None:
    left = seen.data["left"]
    if any(norm != 0.0 for norm in left):
        return "After the epoch there are gradients left."
    return every_sample_came_back(case, seen, expected)


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=nothing_left,
    says="no gradients are left at the end of an epoch: `None`, or zeros where "
    "nothing is frozen or unused",
    corners=["nor is a NaN"],
)
def clean_at_the_end(draw: Draw) -> list[Case]:
    return [
        draw.once(two_epochs),
        draw.once(with_a_short_window),
        draw.once(broken_epoch),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    weight=2,
    rule=by_steps,
    **CLOSE,
    says="the window's gradient is clipped once, right before the step",
    corners=[
        "over all parameters together; `max_norm` may be 0",
        "one gradient of NaN makes the norm NaN, and then all gradients, also "
        "where the loss is a number",
    ],
)
def clipped_once(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [4] * 5, 2, max_norm=0.05),
        epochs(draw, [6, 2, 5, 3], 3, max_norm=0.2, lr=1.0),
        epochs(draw, [4] * 3, 3, max_norm=1e3),
        epochs(draw, [4] * 2, 2, max_norm=5.0, loudness=300.0, lr=0.01),
        epochs(draw, [4] * 2, 2, max_norm=5e3, loudness=1e5, lr=1e-5),
        with_a_nan(epochs(draw, [4] * 2, 2, max_norm=0.1)),
        {**epochs(draw, [4] * 2, 2, max_norm=0.1), "own": "nan"},
        {
            **with_a_nan(epochs(draw, [4] * 2, 2, max_norm=0.1)),
            "own": "apart",
        },
        epochs(draw, [4] * 2, 2, max_norm=0.1, two_groups=True),
        epochs(draw, [4] * 3, 2, max_norm=0.0),
        epochs(draw, [4] * 2, 2, max_norm=0.1, weight_decay=0.1, loudness=0.0),
    ]


def scheduler_in_step(*keys: str) -> Rule:
    """What came of the steps, with words for a scheduler that goes another way."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        found = after_the_steps(*keys)(case, seen, expected)
        got, right = (one.data["scheduler_steps"] for one in (seen, expected))
        if found and got != right and not as_many_steps(case, seen, expected):
            which = "more" if got > right else "fewer"
            return f"The scheduler made {which} steps than the optimizer."
        return found

    return rule


@check(
    "train_epoch",
    probe=probes.some_epochs,
    weight=2,
    rule=scheduler_in_step("weights", "scheduler_steps", "rate"),
    **CLOSE,
    says="the scheduler steps once after each optimizer step",
    corners=["whatever its loss: 0 and NaN, too"],
)
def one_scheduler_step(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4] * 4, 2, scheduled=True),
        epochs(draw, [4] * 3, 2, num_epochs=2, scheduled=True),
        epochs(draw, [4] * 3, 2, scheduled=True, max_norm=0.1),
        draw.once(broken_epoch),
        draw.once(of_zero_losses),
    ]


def losses_of_epochs(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison. Where the first epoch's loss is right and steps are
    missing, the others follow from these."""
    got, right = seen.data["losses"], expected.data["losses"]
    close = Tolerance(1e-9, 1e-12)
    found = difference({"losses": got}, {"losses": right}, close)
    if found and difference(got[:1], right[:1], close) is None:
        return as_many_steps(case, seen, expected) or found
    return found


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=losses_of_epochs,
    **CLOSE,
    says="the loss returned is the mean over the epoch's samples, a Python "
    "float",
)
def loss_of_the_epoch(draw: Draw) -> list[Case]:
    return [
        draw.once(two_epochs),
        epochs(draw, [4, 4, 2, 1], 3, num_epochs=2, as_list=False, sized=True),
        epochs(draw, [6, 1, 5], 1, num_epochs=2),
        draw.once(broken_epoch),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=scheduler_in_step("losses", "steps", "scheduler_steps", "weights"),
    **CLOSE,
    says="a loader that yields nothing: no step of optimizer or scheduler, "
    "and the loss is NaN",
)
def nothing_to_train_on(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [], 2, scheduled=True, as_list=False),
        epochs(draw, [], 3, scheduled=True, momentum=0.9),
        draw.once(epochs, [4] * 4, 2, scheduled=True),
    ]


def reads_as_it_goes(case: Case, seen: Result, expected: Result) -> str | None:
    if case.get("breaks"):
        if seen.data["came_out"]:
            if seen.data["steps"] > expected.data["steps"]:
                return (
                    "The loader raised an error in the middle of a window, and your "
                    "code made a step of the micro-batches before it."
                )
            return None
        return "The loader raised an error, and your code did not let it out."
    if seen.data["read_ahead"] > 1:
        return "Your loop reads the loader further ahead than one micro-batch."
    return after_the_steps("weights")(case, seen, expected)


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=reads_as_it_goes,
    says="the loader may be a generator, and is read as training goes, with a "
    "length or without",
    corners=[
        "before a window's step, read at most one micro-batch beyond that "
        "window",
        "its `len` may raise a `TypeError`, as that of a `DataLoader` over an "
        "`IterableDataset`",
        "an error that it raises is not its end, and comes out; what came before it "
        "in its window makes no step",
    ],
)
def loader_without_a_length(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [4] * 5, 2, as_list=False),
        epochs(draw, [4] * 4, 2, as_list=False),
        epochs(draw, [4] * 4, 2, as_list=False, sized=True),
        epochs(draw, [4] * 3, 2, as_list=False, sized="not told"),
        {**epochs(draw, [4] * 3, 2, as_list=False), "breaks": True},
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=small_forwards,
    says="the model sees one micro-batch at a time, each sample once, as you "
    "got it",
    corners=[
        "another forward pass, for the loss say, is not allowed, nor is "
        "putting micro-batches together",
        "those after one whose loss is NaN go through it, too",
    ],
)
def small_in_the_loop(draw: Draw) -> list[Case]:
    return [
        draw.once(with_a_short_window),
        draw.once(of_unequal_sizes),
        draw.once(broken_epoch),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=freed_graphs,
    says="what one micro-batch's graph holds is freed before the next one comes",
    corners=[
        "there is a backward pass for each, and it keeps nothing",
        "nor do you keep logits or losses of several, but as numbers or detached",
    ],
)
def graphs_in_the_loop(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [8] * 4, 2),
        epochs(draw, [9] * 5, 10),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=by_steps,
    **CLOSE,
    says="frozen and unused parameters: no error, and no step moves them",
    corners=[
        "unused is what no window uses; what is frozen or unused has no gradient "
        "(`None`) before the first epoch",
        "a layer may be frozen between two epochs: zeros that the first one left "
        "there would move it, with weight decay",
    ],
)
def epoch_without_some_gradients(draw: Draw) -> list[Case]:
    return [
        {
            **epochs(draw, [4] * 2, 2, num_epochs=2, weight_decay=0.1),
            "freezes": True,
        },
        draw.once(epochs, [4] * 5, 2, traps=True, weight_decay=0.1),
        epochs(draw, [4] * 2, 2, traps=True, max_norm=0.1),
    ]


@check(
    "train_epoch",
    probe=probes.some_epochs,
    rule=used_as_given,
    also=ALONE,
    says="all else stays: the layers' modes, the tensors, PyTorch's settings",
    corners=[
        "call `model(...)`, not `model.forward(...)`",
        "no layer's mode, no setting of PyTorch such as anomaly detection and "
        "no seed is yours to change, not even for a while",
        "to draw numbers, as a `DataLoader` does, is no fault",
        "no seed is set, and nothing is left on the model: neither hook nor "
        "attribute",
    ],
)
def epoch_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4, 4, 4, 1], 2),
        *(epochs(draw, [4, 4, 3], 2, mode=mode) for mode in ("eval", "mixed")),
        draw.once(epochs, [4] * 5, 2, traps=True, weight_decay=0.1),
    ]


# accumulation_gap


def network(
    draw: Draw,
    norm: str,
    num_micro: int,
    *,
    images: bool = False,
    train: bool = True,
    other_mode: bool = False,
    loudness: float = 1.0,
    ids: bool = False,
    traps: bool = False,
    two_names: bool = False,
    old_gradients: bool = False,
    single: bool = False,
    sum_of_two: bool = False,
    raises: bool | str = False,
    num_samples: int = 16,
) -> Case:
    """A batch, and what the network that it goes through is like: with
    `other_mode` its first norm is in the other mode, `loudness` multiplies its
    logits, with `ids` it takes whole numbers alone; with `single` all is float32; with
    `sum_of_two` its last weight is a sum; with `raises` it raises, on the whole batch if
    that is `"too large"`."""
    shape = (3, 4, 4) if images else (5,)
    X = draw.normal(num_samples, *shape, std=2.0, dtype=DOUBLE)
    X = X.float() if single else X
    return {
        "X": (4 * X).round().long() if ids else X,
        "y": draw.integers(0, 4, num_samples),
        "num_micro": num_micro,
        "norm": norm,
        "width": draw.integer(6, 10),
        "num_classes": 4,
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "train": train,
        "other_mode": other_mode,
        "loudness": loudness,
        "ids": ids,
        "traps": traps,
        "two_names": two_names,
        "old_gradients": old_gradients,
        "sum_of_two": sum_of_two,
        "raises": raises,
    }


def near_a_minimum(case: Case) -> Case:
    """The case with labels that the whole batch makes the network sure of: the full
    gradient is small, and the micro-batches' are not."""
    with torch.no_grad():
        logits = probes.plain_network(case)(case["X"])
    first, second = logits.topk(2).values.unbind(1)
    least = (first - second).min().item()
    return {**case, "y": logits.argmax(1), "loudness": 12 / least}


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    weight=3,
    on=("gap",),
    rtol=1e-6,
    says="batch norm in training: the gap, as large as it is",
    corners=[
        "so for any layer that mixes samples, as one that subtracts their mean, "
        "with micro-batches of a single row, too",
        "`X` may hold whole numbers and is contiguous, and the logits may be "
        "large; a NaN in `X` shows; the full gradient is never 0, and may be small "
        "beside the other",
        "a parameter may be a single number",
        "no case has weights in `torch.channels_last`, or a layer whose output "
        "depends in training on the batches before",
    ],
)
def gap_of_batch_norm(draw: Draw) -> list[Case]:
    broken = network(draw, "batch", 2)
    broken["X"][0, 0] = torch.nan
    return [
        broken,
        network(draw, "centred", 2, ids=True),
        network(draw, "batch", 2, loudness=1e4),
        network(draw, "centred", 8, num_samples=8),
        draw.once(network, "batch", 2),
        draw.once(network, "batch", 4, images=True),
        near_a_minimum(network(draw, "batch", 4, num_samples=8)),
    ]


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    weight=2,
    on=("gap",),
    atol=1e-11,
    rtol=1e-6,
    says="no gap where each sample is treated alone, nor in eval with kept statistics",
    corners=[
        "a weight may be the sum of two parameters, which have one gradient"
    ],
)
def no_gap_without_the_batch(draw: Draw) -> list[Case]:
    return [
        network(draw, "none", 4, sum_of_two=True),
        network(draw, "group", 4, images=True, num_samples=4),
        network(draw, "group", 2),
        network(draw, "batch", 4, train=False),
        draw.once(network, "batch", 4),  # beside it, a gap that there is
    ]


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    on=("gap",),
    rtol=1e-5,
    atol=1e-14,
    says="a gap of a millionth is told, and so is that of a tiny gradient",
)
def small_gaps(draw: Draw) -> list[Case]:
    return [
        network(draw, "faint", 4),
        network(draw, "faint", 2, images=True),
        network(draw, "batch", 4, loudness=1e-80),
    ]


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    on=("gap",),
    rtol=1e-6,
    says="the mode is the model's own, layer by layer, and batch norm that "
    "keeps no statistics has a gap in eval as well",
)
def gap_in_the_models_mode(draw: Draw) -> list[Case]:
    return [
        network(draw, "no statistics", 4, train=False),
        network(draw, "no statistics", 2, images=True),
        draw.once(network, "batch", 4, other_mode=True),
        network(draw, "batch", 4, train=False, other_mode=True),
    ]


def as_it_was(case: Case, seen: Result, expected: Result) -> str | None:
    exact = ["state", "unseeded", "the_parameters_are_the_same_objects"]
    exact.append("your_code_raised")
    found = same_form("gap", exact=exact)(case, seen, expected)
    if found and case["raises"]:
        return f"After an error of the model: {found}"
    return found


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    weight=2,
    rule=as_it_was,
    also=ALONE,
    says="afterwards weights, gradients, statistics, their counter and the "
    "mode are as they were",
    corners=[
        "your tensors, PyTorch's settings and its random seed are left alone, "
        "too; `X` needs no gradient",
        "each buffer is in the `state_dict()`, those of other norms, too",
        "the parameters are the same objects, which an optimizer may hold; "
        "buffers may be others",
        "no attribute is left on it",
        "so also where the model raises, as batch norm in training does on single "
        "rows, or on all of `X`, as when memory is short: the error comes out, and "
        "the model is as it was",
    ],
)
def model_as_it_was(draw: Draw) -> list[Case]:
    return [
        draw.once(network, "batch", 4),
        draw.once(network, "batch", 2, old_gradients=True),
        network(
            draw,
            "batch",
            20,
            old_gradients=True,
            raises=True,
            # larger than the others: it is shown only where these are as they were
            num_samples=20,
        ),
        network(
            draw,
            "batch",
            4,
            old_gradients=True,
            raises="too large",
            num_samples=20,
        ),
        network(draw, "group", 4, train=False),
        draw.once(network, "batch", 4, other_mode=True),
        network(draw, "instance", 2, images=True),
    ]


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    on=("gap",),
    rtol=1e-6,
    says="gradients that were there before do not count",
)
def gap_beside_old_gradients(draw: Draw) -> list[Case]:
    return [
        draw.once(network, "batch", 2, old_gradients=True),
    ]


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    on=("gap",),
    rtol=1e-6,
    says="frozen and unused parameters take no part",
    corners=["they have no gradient", "a weight with two names counts once"],
)
def gap_with_frozen_layers(draw: Draw) -> list[Case]:
    return [
        network(draw, "batch", 4, two_names=True),
        network(draw, "batch", 4, traps=True),
    ]


def told_to_some_digits(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """In float32 to one digit: rounding is a tenth of the gap there."""
    single = case["X"].dtype == torch.float32
    within = Tolerance(0.3) if single else Tolerance(2e-3, 1e-15)
    return difference(seen.data["gap"], expected.data["gap"], within, "gap")


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    rule=told_to_some_digits,
    says="a gap of a hundred-billionth is told as well: nothing is rounded",
    corners=["in float32 a gap of a millionth, to about a digit"],
)
def fainter_gaps(draw: Draw) -> list[Case]:
    return [
        network(draw, "fainter", 4),
        network(draw, "fainter", 4, num_samples=8),
        network(draw, "single", 4, single=True),
    ]


@check(
    "accumulation_gap",
    probe=probes.measured_gap,
    on=("gap", "is_float"),
    rtol=1e-6,
    says="the result is a Python float",
)
def gap_as_a_float(draw: Draw) -> list[Case]:
    return [
        draw.once(network, "batch", 2),
        draw.once(network, "batch", 4, images=True),
    ]


# without_batch_norm

INPUT_SHAPES = {
    "mlp": (),
    "convnet": (4, 4),
    "volumes": (3, 2, 2),
    "nested": (4, 4),
    "alone": (),
}
BATCH_SIZE = 4
# What a case looks at, where it takes long and few checks ask for it.
GRADIENTS, ORIGINAL = ("gradients",), ("original",)
OF_SEVERAL_CHECKS = ("gaps", "gradients", "others")


def of_both_signs(draw: Draw, n: int) -> Tensor:
    scale = draw.uniform(n, low=0.5, high=2.0, dtype=DOUBLE)
    scale[::2] *= -1
    return scale


def model(
    draw: Draw,
    kind: str,
    channels: int = 8,
    *,
    affine: bool = True,
    trained: bool = False,
    dtype: str = "float64",
    looks_at: tuple[str, ...] = (),
    frozen: bool = False,
    all_frozen: bool = False,
    frozen_norm: tuple[str, ...] = (),
    faint: bool = False,
    eps: float = 1e-5,
    channels_last: bool = False,
    norm_in_eval: bool = False,
    statistics: bool = True,
    one_position: bool = False,
    far: bool = False,
    two_sizes: bool = False,
    outlier: bool = False,
) -> Case:
    """What a model with batch norms is like, a batch for it, and inputs for its
    norms, each sample with an offset and a scale of its own. With `norm_in_eval` its
    last batch norm is in eval; with `two_sizes` its norms get wider images, too.
    `looks_at` names what is found out beside outputs and values."""
    positions = INPUT_SHAPES[kind]
    if one_position:
        positions = (1,) * len(positions)
    inputs = draw.normal(24, channels, *positions, dtype=DOUBLE)
    ones = (1,) * (inputs.dim() - 1)
    scale = draw.uniform(24, *ones, low=2.0, high=6.0, dtype=DOUBLE)
    scale = scale / 100 if faint else scale
    offset = draw.normal(24, *ones, std=8.0, dtype=DOUBLE)
    offset = offset + 10_000 if far else offset
    if outlier:  # one number of each sample is far from all others
        inputs.flatten(1)[:, draw.integer(0, inputs[0].numel())] = 1e4
    if eps < 1e-5:  # inputs so small that a larger eps would show
        scale, offset = 1e-4 * scale, 1e-4 * offset
    return {
        "kind": kind,
        "channels": channels,
        "affine": affine,
        "trained": trained,
        "dtype": dtype,
        "looks_at": list(looks_at),
        "frozen": frozen,
        "all_frozen": all_frozen,
        "frozen_norm": list(frozen_norm),
        "eps": eps,
        "channels_last": channels_last,
        "norm_in_eval": norm_in_eval,
        "statistics": statistics,
        "two_sizes": two_sizes,
        "outlier": outlier,
        "inputs": scale * inputs + offset,
        "X": draw.normal(BATCH_SIZE, 150, dtype=DOUBLE)[
            :, : FEATURES.get(kind, channels)
        ].contiguous(),
        "y": draw.integers(0, 3, BATCH_SIZE),
        "scale": of_both_signs(draw, channels),
        "shift": draw.normal(channels, dtype=DOUBLE),
        "start": draw.normal(2500, dtype=DOUBLE),
    }


FEATURES = {"mlp": 5, "convnet": 32, "volumes": 24, "nested": 32}


def replaced(case: Case, seen: Result, expected: Result) -> str | None:
    for name in expected.data["outputs"]:
        output = seen.data["outputs"].get(name)
        if (
            not isinstance(output, Tensor)
            or output.shape != case["inputs"].shape
        ):
            return (
                "Where a batch norm stood, no layer of that name gives an "
                "output of the shape of its input."
            )
    return None


def in_its_mode(place: str) -> str:
    """Of which of a replacement's outputs something is said."""
    if place.endswith(" in training"):
        return "In training"
    return "On images of another size" if " on " in place else "In eval"


def input_of(case: Case) -> str:
    """What a replacement's input is like, as a sentence."""
    inputs = case["inputs"]
    centre = float(inputs.mean())
    spread = float(inputs.flatten(1).std(1).median())
    around = f"around {centre:.1g} " * (abs(centre) > 100 * spread)
    single = inputs.dim() > 2 and inputs[0, 0].numel() == 1
    return (
        f"Its input: numbers {around}that spread by {spread:.1g}, of "
        f"{case['dtype']}{', at one position' * single}."
    )


def off_one(square: Tensor, one: float) -> float:
    """How far mean squares are from this number. The median: two numbers in a group
    may be so near that eps shows."""
    return float((square - one).abs().median())


OTHER_NUMBERS = "The numbers in a replacement's weight and bias are not those of its batch norm."


def other_numbers(seen: Result, expected: Result) -> bool:
    values = seen.data["values"]
    return any(
        not same(values.get(name), value)
        for name, value in expected.data["values"].items()
    )


def follows_each_sample(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """Whether the replacements normalize; where they do not, whether it is for the
    numbers of their weight and bias."""
    complaint = replaced(case, seen, expected)
    if complaint:
        return complaint
    complaint = brings_to_mean_and_variance(case, seen, expected)
    if complaint is None:
        return None
    if seen.data["left"]:
        return "A batch norm is still in the model: it was not replaced."
    if not case["trained"]:
        return complaint
    if other_numbers(seen, expected):
        return OTHER_NUMBERS
    return f"{complaint} Its weights have both signs."


def brings_to_mean_and_variance(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """Whether each replacement, less its weight and bias, brings every sample
    to mean 0 and variance 1, of n or of n - 1, in the order of the case's inputs."""
    inputs = case["inputs"]
    channel = (1, -1) + (1,) * (inputs.dim() - 2)
    for name in expected.data["outputs"]:
        output = seen.data["outputs"][name].to(DOUBLE)
        if case["trained"]:
            output = output - case["shift"].view(channel)
            output = output / case["scale"].view(channel)
        flat, given = output.flatten(1), inputs.flatten(1)
        if not torch.isfinite(flat).all():
            return (
                f"{in_its_mode(name)} a replacement's output is not finite. "
                f"{input_of(case)}"
            )
        square, fewer = (flat**2).mean(1), 1 - 1 / flat.shape[1]
        if (mean := float(flat.mean(1).abs().max())) > 0.02:
            return (
                f"{in_its_mode(name)} a replacement gives samples whose mean is up "
                f"to {mean:.2g} before weight and bias, and not 0. {input_of(case)}"
            )
        if min(off_one(square, 1.0), off_one(square, fewer)) > 0.02:
            return (
                f"{in_its_mode(name)} a replacement gives samples whose variance is "
                f"about {float(square.median()):.3g} before weight and bias, and not "
                f"1. {input_of(case)}"
            )
        given = given - given.mean(1, keepdim=True)
        along = (flat * given).mean(1) / given.pow(2).mean(1).sqrt()
        # Groups of two numbers reach 0.56; what belongs to other inputs, 0. (An
        # outlier in one group hides the others.)
        if float(along.mean()) < 0.35 and not case["outlier"]:
            return (
                f"{in_its_mode(name)}, what a replacement gives does not follow "
                "from its input."
            )
    return None


def normalizes(case: Case, seen: Result, expected: Result) -> str | None:
    """The same, of the biased variance, and the gradient goes through both."""
    complaint = follows_each_sample(case, seen, expected)
    if complaint:
        return complaint
    for name in expected.data["outputs"]:
        square = (seen.data["outputs"][name].to(DOUBLE).flatten(1) ** 2).mean(1)
        if not case["trained"] and off_one(square, 1.0) > 0.02:
            return (
                f"{in_its_mode(name)} a replacement gives the numbers of one that "
                "divides by the variance of n - 1, as `torch.var` gives it. "
                "Normalization takes that of n (`correction=0`)."
            )
    for name, pull in seen.data["pulls"].items():
        if pull is None or max(pull) > 0.02:
            return (
                f"{in_its_mode(name)} a replacement's gradient does not go through "
                "each sample's mean and variance."
            )
    return None


def no_gap(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = follows_each_sample(case, seen, expected)
    if complaint:
        return complaint
    if seen.data["left"]:
        return "There is a batch norm left in the model."
    for gap in seen.data["gaps"]:
        if not (isinstance(gap, float) and gap < 1e-10):
            return "Accumulated and full gradients do not agree in training."
    return None


def keeps_the_rest(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = follows_each_sample(case, seen, expected)
    if complaint:
        return complaint
    others, right = seen.data["others"], expected.data["others"]
    if others.keys() != right.keys():
        return "Other layers were added, removed or renamed."
    for name, (kind, *values) in right.items():
        found = others[name]
        if found[0] != kind or len(found) != len(values) + 1:
            return "A layer that is no batch norm was replaced, or is set anew."
        for one, value in zip(found[1:], values, strict=True):
            if isinstance(value, Tensor) and not same(one, value):
                return "A layer that is no batch norm lost its values."
            if isinstance(value, bool) and one is not value:
                return (
                    "A layer that is no batch norm is in another mode, lost its "
                    "hooks, or what was frozen is not."
                )
    return None


def original_alone(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["spoilt"]:
        return "The model that was given is not as it was."
    if seen.data["shared"]:
        return "The copy shares parameters with the model that was given."
    if seen.data["shared_hooks"]:
        return (
            "The copy shares hooks with the model that was given: one that is "
            "registered on the one runs on the other."
        )
    return replaced(case, seen, expected)


def same_dtype(case: Case, seen: Result, expected: Result) -> str | None:
    # a replacement may have buffers where the reference has nothing of any dtype
    outputs = seen.data["outputs"]
    right = expected.data["outputs"]
    if any(
        set(seen.data["dtypes"].get(name, [])) - {str(right[name].dtype)}
        or (
            isinstance(outputs.get(name), Tensor)
            and outputs[name].dtype != right[name].dtype
        )
        for name in right
    ):
        return "A replacement has not the dtype of its batch norm."
    return replaced(case, seen, expected)


def affine_as_before(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["num_parameters"] != expected.data["num_parameters"]:
        return "A replacement has not as many parameters as its batch norm."
    if other_numbers(seen, expected):
        return OTHER_NUMBERS
    if seen.data["num_trained"] != expected.data["num_trained"]:
        if case["frozen_norm"]:
            return "A replacement is not frozen as its batch norm was."
        return "A replacement's weight or bias cannot be trained."
    return follows_each_sample(case, seen, expected)


@check(
    "without_batch_norm",
    probe=probes.repaired,
    weight=3,
    rule=no_gap,
    says="in training, accumulated and full gradients agree, down to single "
    "rows",
    corners=[
        "inputs are (n, C), (n, C, H, W) or (n, C, D, H, W), none is (n, C, L)",
        "a batch norm may be one without statistics "
        "(`track_running_stats=False`)",
        "`eval()` is no answer: a new batch norm would normalize nothing",
    ],
)
def equality_holds(draw: Draw) -> list[Case]:
    return [
        *(
            draw.once(model, kind, looks_at=OF_SEVERAL_CHECKS)
            for kind in ("mlp", "nested")
        ),
        model(draw, "convnet", looks_at=("gaps",)),
        model(draw, "volumes", statistics=False, looks_at=("gaps",)),
        draw.once(model, "mlp", affine=False, looks_at=("gaps",)),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    weight=3,
    rule=normalizes,
    says="each replacement normalizes: every sample has mean 0 and variance 1",
    corners=[
        "in training and in eval; the mode of a replacement makes no "
        "difference, nor does the mode that the batch norm was in",
        "several groups of channels meet that too, and each position by itself, "
        "over its channels",
        "images may lie in memory as `torch.channels_last` has them; one "
        "replacement may get images of several sizes",
        "the backward pass goes through mean and variance, too, also in eval",
        "float32 may lie around 10000 with a spread of some units, but not in images "
        "of `torch.channels_last`; no sample is constant, and an outlier keeps its "
        "size",
    ],
)
def still_normalizes(draw: Draw) -> list[Case]:
    return [
        *(
            draw.once(model, kind, looks_at=OF_SEVERAL_CHECKS)
            for kind in ("mlp", "nested")
        ),
        *(
            model(draw, kind, draw.integer(6, 10), looks_at=GRADIENTS)
            for kind in ("convnet", "volumes")
        ),
        model(draw, "convnet", faint=True, two_sizes=True, looks_at=GRADIENTS),
        model(
            draw, "volumes", faint=True, norm_in_eval=True, looks_at=GRADIENTS
        ),
        model(
            draw,
            "convnet",
            draw.integer(6, 10),
            channels_last=True,
            looks_at=GRADIENTS,
        ),
        model(draw, "convnet", dtype="float32", far=True, looks_at=GRADIENTS),
        model(draw, "volumes", 100, outlier=True),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=follows_each_sample,
    says="any number of channels, such as 3 or 7",
    corners=["an image or a volume may be a single position, as (n, C, 1, 1)"],
)
def any_number_of_channels(draw: Draw) -> list[Case]:
    return [
        model(draw, "volumes", 7, one_position=True),
        model(draw, "convnet", 3, one_position=True),
        model(draw, "mlp", 11),
        # of which groups of one channel leave nothing, as of the position above
        model(draw, "mlp", 4),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    weight=2,
    rule=affine_as_before,
    says="weight and bias of the batch norm carry over; with `affine=False` "
    "there is none",
    corners=[
        "otherwise each keeps both, every digit; a weight may be negative",
        "so where the batch norm was in eval, too",
        "no case has a batch norm with `bias=False`",
    ],
)
def weight_and_bias(draw: Draw) -> list[Case]:
    return [
        model(draw, "mlp", trained=True, norm_in_eval=True),
        model(draw, "convnet", trained=True, norm_in_eval=True),
        model(draw, "convnet", affine=False),
        draw.once(model, "mlp", affine=False, looks_at=("gaps",)),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=same_dtype,
    says="each layer keeps its dtype: bfloat16, float32, float64, and two in one model",
)
def dtype_is_kept(draw: Draw) -> list[Case]:
    return [
        model(draw, "mlp", dtype="bfloat16"),
        draw.once(model, "mlp", looks_at=OF_SEVERAL_CHECKS),
        draw.once(model, "mlp", affine=False, looks_at=("gaps",)),
        model(draw, "convnet", dtype="mixed"),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=original_alone,
    says="the model that was given is left as it was, and shares nothing",
    corners=["neither parameters and buffers nor the dicts that hold hooks"],
)
def original_left_alone(draw: Draw) -> list[Case]:
    return [
        model(
            draw,
            "convnet",
            trained=True,
            frozen_norm=("weight", "bias"),
            looks_at=ORIGINAL,
        ),
        model(draw, "nested", trained=True, looks_at=ORIGINAL),
        draw.once(model, "alone", 7, trained=True, looks_at=ORIGINAL),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=keeps_the_rest,
    also=[leaves_state_alone],
    says="all other layers stay: their names, values and modes, and what is "
    "frozen",
    corners=[
        "no layer stands at two places, and no two share a weight",
        "hooks, buffers and what a layer was made with stay, too",
        "no case has another kind of batch norm",
        "no setting of PyTorch is changed",
    ],
)
def others_are_kept(draw: Draw) -> list[Case]:
    return [
        model(draw, "nested", all_frozen=True, looks_at=("others",)),
        draw.once(model, "nested", looks_at=OF_SEVERAL_CHECKS),
        draw.once(model, "mlp", looks_at=OF_SEVERAL_CHECKS),
        model(draw, "nested", frozen=True, looks_at=("others",)),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=follows_each_sample,
    says="`eps` is no larger than the batch norm's",
)
def small_eps(draw: Draw) -> list[Case]:
    return [
        model(draw, "mlp", eps=1e-12),
        model(draw, "convnet", draw.integer(6, 10), eps=1e-12),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=affine_as_before,
    says="a frozen batch norm gives a frozen layer, the others are trained",
    corners=[
        "the weight or the bias alone may be frozen",
        "a frozen batch norm in eval is replaced like any other",
    ],
)
def frozen_norms(draw: Draw) -> list[Case]:
    return [
        model(draw, "mlp", frozen_norm=("weight", "bias"), norm_in_eval=True),
        model(draw, "convnet", frozen_norm=("bias",), trained=True),
        model(draw, "mlp", frozen_norm=("weight",)),
    ]


@check(
    "without_batch_norm",
    probe=probes.repaired,
    rule=follows_each_sample,
    says="a model that is itself a batch norm",
)
def model_is_a_batch_norm(draw: Draw) -> list[Case]:
    return [
        model(draw, "alone", 8),
        draw.once(model, "alone", 7, trained=True, looks_at=ORIGINAL),
    ]
