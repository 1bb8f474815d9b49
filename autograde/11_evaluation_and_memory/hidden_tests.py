"""What is checked in chapter 11: evaluation and memory."""

import math

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    Result,
    Rule,
    check,
    gives_no_warning,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
)

from . import probes

DOUBLE = torch.float64
NUM_WEIGHTS = 400  # more than any model here has
NUM_MODES = 9  # modules of the model that is evaluated
ALONE = (leaves_inputs_alone, leaves_rng_alone, leaves_state_alone)


def same(
    seen: object, expected: Tensor, rtol: float = 1e-9, atol: float = 1e-12
) -> bool:
    if expected.dtype == torch.float32:
        rtol, atol = 1e-5, 1e-6
    return (
        isinstance(seen, Tensor)
        and seen.dtype == expected.dtype
        and seen.shape == expected.shape
        and torch.allclose(seen, expected, rtol=rtol, atol=atol, equal_nan=True)
    )


# predict


SPECIAL = {
    "interrupted": False,  # what fails is stopped by hand
    "shared": "",  # one layer, "in training" or "in eval", stands in two places
    "flat": False,  # outputs (n,)
    "bare": False,  # a model without parameters
    "inputs_with_gradient": False,
    "twice": False,  # evaluated, trained a little, evaluated again
    "ids": False,  # a model that takes whole numbers alone
}


def evaluation(
    draw: Draw,
    *sizes: int,
    modes: str = "train",
    shape: tuple[int, ...] = (),
    dtype: str = "float64",
    as_list: bool = True,
    under_no_grad: bool = False,
    old_gradients: bool = False,
    frozen: bool = False,
    fails_at: int | None = None,
    loader_fails_at: int | None = None,
    not_finite: bool = False,
    **special: bool | str,
) -> Case:
    """Batches of these sizes and a model. `modes` is "train", "eval", "mixed",
    where about half of its layers are in each, or tells the model itself from
    all of its layers. With `not_finite` one row is NaN. `special` is one or more of SPECIAL."""
    num_features = draw.integer(3, 7)
    if modes == "mixed":
        flags = [bool(one) for one in draw.integers(0, 2, NUM_MODES)]
        flags[4] = not flags[1]  # a layer deep inside and one at the top differ
        flags[5] = not flags[0]  # a layer deep inside and the model itself
        flags[7] = not flags[2]
    elif modes == "root in eval":
        flags = [False] + [True] * (NUM_MODES - 1)
    elif modes == "root in training":
        flags = [True] + [False] * (NUM_MODES - 1)
    else:
        flags = [modes == "train"] * NUM_MODES
    if special.get("shared"):  # the layer, and who holds it as well, differ
        flags[2] = special["shared"] == "in training"
        flags[3] = not flags[2]
    numbers = getattr(torch, dtype)
    batches = [
        draw.normal(n, *shape, num_features, std=2.0, dtype=numbers)
        for n in sizes
    ]
    if special.get("ids"):
        batches = [(4 * x).round().long() for x in batches]
    if not_finite:  # of one row
        batches[0][-1] = torch.nan
    return {
        "batches": batches,
        "num_outputs": draw.integer(2, 6),
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "modes": flags,
        "dtype": dtype,
        "as_list": as_list,
        "under_no_grad": under_no_grad,
        "old_gradients": old_gradients,
        "frozen": frozen,
        "fails_at": fails_at,
        "loader_fails_at": loader_fails_at,
        **SPECIAL,
        **special,
    }


def rows_went_through(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["rows"]:
        return (
            "No batch went through the model you were given, called as "
            "`model(x)`."
        )
    if not same(seen.data["samples"], expected.data["samples"]):
        return (
            "Not every batch went through the model exactly once, in order "
            "and as it came."
        )
    return None


def right_outputs(case: Case, seen: Result, expected: Result) -> str | None:
    out, right = seen.data["out"], expected.data["out"]
    if not isinstance(out, Tensor):
        return f"You returned {seen.data['kind']}, and not one tensor."
    if out.dtype != right.dtype:
        return "The outputs are not in the dtype of the model."
    if out.shape != right.shape:
        return "The outputs of all batches, one below the other, have another shape."
    if not same(out, right):
        return (
            "The outputs are not those of the model in eval mode, each row by "
            "itself."
        )
    return None


def every_layer_in_eval(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if any(any(modes) for modes in seen.data["modes"]):
        return "In a forward pass a layer was still in training mode."
    return rows_went_through(case, seen, expected)


def without_gradients(case: Case, seen: Result, expected: Result) -> str | None:
    if any(seen.data["grad_modes"]):
        return "In a forward pass gradients were switched on."
    if seen.data["kept_bytes"]:
        return "Tensors were kept for a backward pass that never comes."
    if seen.data["requires_grad"]:
        return "The result requires a gradient."
    return rows_went_through(case, seen, expected)


def modes_as_before(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["root_kept"]:
        return "The model is not in the mode in which it was."
    if not seen.data["modes_kept"]:
        return (
            "The model itself is in the mode in which it was, but a layer "
            "inside it is not."
        )
    return rows_went_through(case, seen, expected)


def grad_mode_as_before(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if not seen.data["grad_mode_kept"]:
        was = "off" if case["under_no_grad"] else "on"
        return (
            f"Gradients were {was} before your function ran, and are not now."
        )
    return rows_went_through(case, seen, expected)


def error_goes_on(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["raised"] == "the error of a copy":
        return rows_went_through(case, seen, expected)
    if not seen.data["arose"] and case["loader_fails_at"] is None:
        # All went through in fewer passes: that is the matter of another check,
        # and so is what came out. The first pass fails in a case of its own.
        return (
            None
            if seen.data["rows"]
            else rows_went_through(case, seen, expected)
        )
    if seen.data["raised"] != expected.data["raised"]:
        return "The error did not reach the caller."
    what = "the cell was stopped" if case["interrupted"] else "an error"
    if not seen.data["modes_kept"]:
        return f"After {what} a layer is in another mode than before."
    if not seen.data["grad_mode_kept"]:
        return f"After {what} gradient mode is another than before."
    if complaint := change_left(seen):
        return f"After {what}: {complaint}"
    if case["fails_at"] == 0 or case["loader_fails_at"] in (-1, 0):
        # no batch went through
        return None
    if case["loader_fails_at"] is not None:
        # who reads one batch ahead meets the loader's error one batch earlier
        rows, right = seen.data["rows"], expected.data["rows"]
        if rows and rows == right[:-1]:
            samples = expected.data["samples"][: len(seen.data["samples"])]
            if same(seen.data["samples"], samples):
                return None
        if len(rows) < len(right):
            return (
                "The loader failed before the batches that had come went through "
                "the model, called as `model(x)`: read each when its turn comes."
            )
    return rows_went_through(case, seen, expected)


def passes_once(case: Case, seen: Result, expected: Result) -> str | None:
    calls, forwards = seen.data["calls"]
    if calls < forwards:
        return (
            "`model.forward` was called, and not `model(...)`. Hooks of the "
            "model do not run then."
        )
    if seen.data["rows"] != expected.data["rows"]:
        return (
            rows_went_through(case, seen, expected)
            or "The batches did not go through the model one by one, each once. An "
            "empty one does, too."
        )
    if seen.data["read_ahead"] > 1:
        return (
            "Batches are read long before they are needed: all of them are in "
            "memory at once."
        )
    return rows_went_through(case, seen, expected)


def left_changed(seen: Result) -> str:
    setting = seen.data["settings_changed"][0]
    return f"Your code left a setting changed: {setting}."


def change_left(seen: Result) -> str | None:
    """What the evaluation left changed, but for modes."""
    changed = [one for one in seen.data["changed"] if not one.endswith(".grad")]
    if any("running" in one or "num_batches" in one for one in changed):
        return "Running statistics of the model moved."
    if changed:
        return "Weights of the model changed."
    if seen.data["changed"]:
        return "Gradients of the model changed."
    if not seen.data["inputs_kept"]:
        return "An input required a gradient, and does not any more."
    if seen.data["settings_changed"]:
        return left_changed(seen)
    if seen.data["flags_changed"]:
        return {
            "requires_grad": "What requires a gradient is not what it was.",
            "hooks": "A hook was left on the model.",
            "attributes": "Attributes of the model, or of a layer inside it, "
            "are not what they were.",
            "values": "A setting of the model, or of a layer inside it, is not "
            "what it was.",
        }[seen.data["flags_changed"][0]]
    return None


def nothing_else_changed(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if complaint := change_left(seen):
        return complaint
    if seen.data["state"].keys() != expected.data["state"].keys() or any(
        not torch.equal(value, seen.data["state"][name])
        for name, value in expected.data["state"].items()
    ):
        return "The model's state is not what it was."
    return rows_went_through(case, seen, expected)


@check(
    "predict",
    probe=probes.predicted,
    weight=3,
    rule=right_outputs,
    says="the outputs are those of eval mode, in the order of the batches, "
    "however they are cut",
)
def outputs_of_eval(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 6, 6, 3),
        evaluation(draw, 17),
        evaluation(draw, 1, 7, 3, 1),
        evaluation(draw, 4, 2, modes="mixed"),
        evaluation(draw, 5, modes="eval"),
        evaluation(draw, 4, 3, twice=True),
    ]


@check(
    "predict",
    probe=probes.predicted,
    rule=right_outputs,
    says="inputs of more dimensions, outputs (n,), float32, bfloat16, NaN, "
    "frozen models: one tensor in the dtype of the outputs",
    corners=[
        "what is NaN or infinite stays so; a batch may be empty, not all of them",
        "a model may have no parameters, or take whole numbers alone, as ids of tokens",
    ],
)
def other_shapes_and_dtypes(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 4, 1, shape=(3,)),
        evaluation(draw, 2, 3, shape=(2, 4)),
        evaluation(draw, 6, 2, dtype="float32"),
        evaluation(draw, 3, 2, dtype="bfloat16"),
        evaluation(draw, 3, 0, 2),
        evaluation(draw, 3, 2, frozen=True, ids=True),
        evaluation(draw, 4, 4, flat=True),
        evaluation(draw, 5, 2, flat=True),
        evaluation(draw, 1),
        evaluation(draw, 1, flat=True),
        evaluation(draw, 4, 3, not_finite=True),
        evaluation(draw, 3, 2, bare=True),
    ]


@check(
    "predict",
    probe=probes.predicted,
    weight=2,
    rule=every_layer_in_eval,
    says="in each forward pass every layer is in eval mode",
)
def layers_in_eval(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 5, 4, 2),
        evaluation(draw, 5, 4, modes="mixed"),
        evaluation(draw, 5, 4, modes="root in eval"),
        evaluation(draw, 4, 3, modes="root in training"),
    ]


@check(
    "predict",
    probe=probes.predicted,
    weight=2,
    rule=without_gradients,
    says="gradients are off in each forward pass, and nothing is kept",
)
def gradients_off(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 5, 4, 2),
        evaluation(draw, 6, modes="eval"),
        evaluation(draw, 3, 3, as_list=False),
    ]


@check(
    "predict",
    probe=probes.predicted,
    weight=3,
    rule=modes_as_before,
    says="afterwards each layer is in the mode in which it was",
    corners=["one layer may stand in two places of the model"],
)
def modes_are_restored(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 5, 2),
        evaluation(draw, 5, 2, modes="eval"),
        evaluation(draw, 2, 5, modes="root in eval"),
        *(evaluation(draw, 4, 3, modes="mixed") for _ in range(4)),
        evaluation(draw, 2, 3, modes="mixed", shared="in training"),
        evaluation(draw, 5, 1, modes="mixed", shared="in eval"),
    ]


@check(
    "predict",
    probe=probes.predicted,
    rule=grad_mode_as_before,
    says="afterwards gradient mode is as it was",
    corners=["it may have been off"],
)
def grad_mode_is_restored(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 5, 2),
        evaluation(draw, 5, 2, under_no_grad=True),
        evaluation(draw, 3, 4, under_no_grad=True, as_list=False),
    ]


@check(
    "predict",
    probe=probes.predicted,
    weight=2,
    rule=error_goes_on,
    says="an error of the model or the loader goes on, and all is restored",
    corners=[
        "a `KeyboardInterrupt`, too",
        "the loader may fail when it is started, or at its first batch",
        "weights, statistics, gradients, hooks and attributes, too",
    ],
)
def after_an_error(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 4, 3, 2, fails_at=1),
        evaluation(draw, 4, 3, fails_at=0, modes="mixed"),
        evaluation(draw, 4, 3, 2, fails_at=2, modes="mixed"),
        evaluation(draw, 4, 3, 2, loader_fails_at=2, as_list=False),
        evaluation(draw, 4, 2, fails_at=1, under_no_grad=True),
        evaluation(
            draw,
            *(4, 3, 5),
            loader_fails_at=2,
            as_list=False,
            modes="mixed",
        ),
        evaluation(draw, 4, 3, fails_at=1, interrupted=True),
        evaluation(draw, 3, 2, 2, fails_at=2, old_gradients=True, frozen=True),
        evaluation(
            draw,
            *(5, 2, 3),
            loader_fails_at=2,
            as_list=False,
            modes="mixed",
            interrupted=True,
        ),
        evaluation(draw, 3, 2, loader_fails_at=0, as_list=False),
        evaluation(draw, 3, 2, loader_fails_at=-1, as_list=False),
    ]


@check(
    "predict",
    probe=probes.predicted,
    rule=passes_once,
    says="each batch goes through the model once, as it comes, and is read "
    "when its turn comes",
    corners=[
        "by `model(x)`, not `model.forward(x)`, and by the model you got, not "
        "a copy",
        "an empty one, too",
        "while one goes through, at most one more has been read",
    ],
)
def batches_as_they_come(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 4, 4, 4, 1),
        evaluation(draw, 3, 0, 2),
        evaluation(draw, *[3] * 6, as_list=False),
        evaluation(draw, 2, 5, 3, 4, 1, as_list=False),
        # once, whatever comes of it
        evaluation(draw, 4, 3, not_finite=True),
    ]


@check(
    "predict",
    probe=probes.predicted,
    weight=2,
    rule=nothing_else_changed,
    also=ALONE,
    says="all else stays: statistics, weights, gradients, what is frozen, "
    "inputs, hooks, attributes, random numbers",
    corners=[
        "gradient mode and other settings of PyTorch, NumPy and Python's "
        "warnings, too"
    ],
)
def evaluation_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        evaluation(draw, 5, 4),
        evaluation(draw, 5, 4, modes="mixed", old_gradients=True),
        evaluation(draw, 3, 3, frozen=True, old_gradients=True),
        evaluation(draw, 4, 2, inputs_with_gradient=True),
    ]


# mean_metrics


def labelled(
    draw: Draw,
    *sizes: int,
    num_classes: int = 0,
    positions: int = 0,
    dtype: torch.dtype = torch.float32,
    as_list: bool = True,
    with_graph: bool = False,
    strided: bool = False,
    scale: float = 1.0,
    close: float = 0.0,
    base: float = 0.0,
    **options: object,
) -> Case:
    """Logits and labels in batches of these sizes, a third of them right. Each
    batch has logits of a scale of its own, so that the batches' means differ.
    With `close` another class comes that near to the highest. They begin at
    `base`."""
    num_classes = num_classes or draw.integer(4, 8)
    pairs = []
    for i, n in enumerate(sizes):
        inner = (positions,) if positions else ()
        y = draw.integers(0, num_classes, n, *inner)
        logits = draw.uniform(n, num_classes, *inner, high=1.0 + 2 * (i % 4))
        # one logit stands out, by different amounts: no ties in 16 bits
        shift = draw.integers(0, 3, n, *inner)
        best = ((y + shift) % num_classes).unsqueeze(1)
        highest = 9.0 + 2 * draw.uniform(*best.shape)
        logits.scatter_(1, best, highest)
        if close:
            logits.scatter_(1, (best - 1) % num_classes, highest - close)
        pairs.append(((base + scale * logits).to(dtype), y))
    return {
        "pairs": pairs,
        "length": len(pairs),
        "ticket": draw.integer(0, 10**9),
        "as_list": as_list,
        "with_graph": with_graph,
        "strided": strided,
        **options,
    }


def unlabelled(case: Case, label: int, *counts: int) -> Case:
    """The case with the first counts[i] rows of labels of batch i set to `label`."""
    pairs = []
    for (x, y), count in zip(case["pairs"], counts, strict=True):
        y = y.clone()
        y[:count] = label
        pairs.append((x, y))
    return {**case, "pairs": pairs}


def padded(draw: Draw, case: Case, label: int = -100) -> Case:
    """The case with each sequence of labels cut at a length of its own."""
    pairs = []
    for x, y in case["pairs"]:
        lengths = draw.integers(1, y.shape[1] + 1, len(y))
        beyond = torch.arange(y.shape[1]) >= lengths[:, None]
        pairs.append((x, y.masked_fill(beyond, label)))
    return {**case, "pairs": pairs}


def nan_where_ignored(case: Case) -> Case:
    """The case with NaN for logits of all labels that are -100."""
    pairs = []
    for x, y in case["pairs"]:
        pairs.append((x.masked_fill((y == -100)[:, None], torch.nan), y))
    return {**case, "pairs": pairs}


def of_two_lengths(draw: Draw) -> Case:
    """Sequences that are longer in the second batch than in the first."""
    short = labelled(draw, 3, num_classes=5, positions=4)
    long = labelled(draw, 3, num_classes=5, positions=7)
    pairs = short["pairs"] + long["pairs"]
    return {**long, "pairs": pairs, "length": len(pairs)}


def all_right(case: Case) -> Case:
    """The case with the labels that the logits say."""
    return {**case, "pairs": [(x, x.argmax(1)) for x, _ in case["pairs"]]}


def not_a_number(draw: Draw, case: Case) -> Case:
    """The case with a NaN among the logits of a batch, not of the first one."""
    x, _ = case["pairs"][draw.integer(1, len(case["pairs"]))]
    x[-1, 0] = torch.nan
    return case


METRICS = ("loss", "accuracy", "count", "ticket")


def right_metrics(*names: str, but: str = "") -> Rule:
    """A rule: these metrics are those of the reference. Types are another check's."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        if seen.data["keys"] != expected.data["keys"]:
            if isinstance(seen.data["keys"], str):
                return f"You returned {seen.data['keys']}."
            return "The dict has other keys than those asked for."
        for name in (*names, "ticket"):
            one, right = seen.data[name], expected.data[name]
            both_nan = one != one and right != right
            if both_nan or abs(one - right) <= 1e-5 * max(1, abs(right)):
                continue
            if one != one:
                return f"`{name}` is NaN{but}."
            if right != right:
                if expected.data["count"]:
                    return (
                        f"`{name}` is a number although there is a NaN among the "
                        "logits that count; it is NaN."
                    )
                return f"`{name}` is a number where nothing counts; it is NaN."
            if one == float("inf"):
                return f"`{name}` is no finite number{but}."
            side = "large" if one > right else "small"
            return f"`{name}` is too {side}{but}."
        return None

    return rule


@check(
    "mean_metrics",
    probe=probes.averaged,
    weight=2,
    rule=right_metrics("loss"),
    says="the mean loss is that of all labels: 17 in batches of 1, 4 and 17",
    corners=["a NaN among the logits shows in it"],
)
def mean_loss_of_all(draw: Draw) -> list[Case]:
    return [
        labelled(draw, *[1] * 17),
        labelled(draw, 4, 4, 4, 4, 1),
        labelled(draw, 17),
        labelled(draw, 6, 1, 9, num_classes=2),
        labelled(draw, 7, 4, base=-40.0),
        labelled(draw, 1),
        not_a_number(draw, unlabelled(labelled(draw, 4, 3, 5), -100, 1, 1, 2)),
        all_right(labelled(draw, 3, 2, scale=2000.0)),  # a loss of 0
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    weight=2,
    rule=right_metrics("accuracy", "count"),
    says="the accuracy is that of all labels, and so is the count",
    corners=["two classes, too"],
)
def accuracy_of_all(draw: Draw) -> list[Case]:
    return [
        labelled(draw, *[1] * 17),
        labelled(draw, 4, 4, 4, 4, 1),
        labelled(draw, 17),
        labelled(draw, 12, 2, 5, 3, num_classes=2),
        labelled(draw, 6, 6, num_classes=6),
        labelled(draw, 20, 20, close=2e-3),
        labelled(draw, 9, 6, base=-40.0),
        labelled(draw, 12, 6, scale=1e-20),
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    weight=2,
    rule=right_metrics(*METRICS[:3], but=" where labels are ignored"),
    says="ignored labels count in neither mean, whatever `ignore_index` is",
    corners=[
        "one that is a class, too; whatever the model says there, also NaN"
    ],
)
def ignored_labels(draw: Draw) -> list[Case]:
    as_class = draw.integer(1, 4)
    return [
        unlabelled(labelled(draw, 7, 5), -100, 3, 0),
        unlabelled(labelled(draw, 3, 2), -100, 3, 1),  # one is left
        unlabelled(labelled(draw, 4, 9, 2), -100, 1, 6, 1),
        unlabelled(labelled(draw, 6, 6, ignore_index=-1), -1, 2, 4),
        unlabelled(labelled(draw, 6, 5, ignore_index=255), 255, 4, 1),
        unlabelled(labelled(draw, 8, 5, ignore_index=0), 0, 1, 3),
        unlabelled(labelled(draw, 9, 7, ignore_index=as_class), as_class, 1, 4),
        nan_where_ignored(unlabelled(labelled(draw, 5, 4), -100, 2, 1)),
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    rule=right_metrics(*METRICS[:3], but=" where a batch has no label"),
    says="a batch in which nothing counts adds nothing",
    corners=["nor does one without rows"],
)
def nothing_counts_in_a_batch(draw: Draw) -> list[Case]:
    return [
        unlabelled(labelled(draw, 4, 3, 5), -100, 1, 3, 0),
        unlabelled(labelled(draw, 2, 6), -100, 2, 1),
        unlabelled(labelled(draw, 5, 3, ignore_index=2), 2, 1, 3),
        labelled(draw, 0, 4, 3),
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    rule=right_metrics(*METRICS[:3]),
    also=(gives_no_warning,),
    says="if nothing counts at all: NaN, NaN and 0, without error or warning",
)
def nothing_counts_at_all(draw: Draw) -> list[Case]:
    return [
        labelled(draw),
        labelled(draw, as_list=False),
        unlabelled(labelled(draw, 4, 2), -100, 4, 2),
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    weight=2,
    rule=right_metrics(*METRICS[:3], but=" for logits (n, C, d)"),
    says="logits (n, C, d) with labels (n, d), also where C, d and n are equal",
    corners=[
        "the classes are in dimension 1; logits of any strides",
        "d may differ from pair to pair",
    ],
)
def labels_at_positions(draw: Draw) -> list[Case]:
    return [
        labelled(draw, 3, 2, positions=draw.integer(8, 12)),
        labelled(draw, 5, 5, num_classes=5, positions=5),
        unlabelled(labelled(draw, 4, 3, 2, positions=3), -100, 2, 1, 1),
        labelled(draw, 4, 2, num_classes=4, positions=1),
        labelled(draw, 1, 3, 1, num_classes=5, positions=4),
        labelled(draw, 4, 2, positions=3, strided=True),
        padded(draw, labelled(draw, 6, 5, positions=7)),
        padded(draw, labelled(draw, 4, 3, positions=5, ignore_index=1), 1),
        of_two_lengths(draw),
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    rule=right_metrics(*METRICS[:3], but=" for logits of this dtype or size"),
    says="logits in float16, bfloat16 and float64, and large ones",
    corners=[
        "finite, as large as 20000, or all negative",
        "the loss is right to about 1e-5; float32 is enough for that in all "
        "cases, and tells any two logits apart that differ",
    ],
)
def other_dtypes(draw: Draw) -> list[Case]:
    return [
        labelled(draw, 9, 9, 4, dtype=torch.bfloat16),
        labelled(draw, 9, 5, dtype=torch.float16),
        labelled(draw, 6, 4, dtype=torch.float64),
        labelled(draw, *[400] * 9, num_classes=6, dtype=torch.float16),
        labelled(draw, 6, 9, scale=2000.0),
        labelled(draw, 7, 5, scale=2000.0, dtype=torch.float16),
    ]


def plain_numbers(case: Case, seen: Result, expected: Result) -> str | None:
    if not isinstance(seen.data.get("types"), dict):
        return f"You returned {seen.data['keys']}."
    for name, right in expected.data["types"].items():
        found = seen.data["types"].get(name)
        if found != right:
            return f"`{name}` is of the type {found}, not a Python {right}."
    if seen.data["ticket"] != expected.data["ticket"]:
        return "These are the numbers of another call."
    return None


@check(
    "mean_metrics",
    probe=probes.averaged,
    rule=plain_numbers,
    says="the means are Python floats and the count a Python int, off the graph",
)
def floats_and_an_int(draw: Draw) -> list[Case]:
    return [
        labelled(draw, 4, 3),
        labelled(draw, 4, 3, with_graph=True),
        labelled(draw, 1),
    ]


def left_alone(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["list_kept"]:
        return "The list that was given to you is not as it was."
    if not seen.data.get("tensors_kept", True):
        return "A tensor that was given to you, a view, was changed in place."
    if seen.data["settings_changed"]:
        return left_changed(seen)
    if seen.data["ticket"] != expected.data["ticket"]:
        return "These are the numbers of another call."
    return None


@check(
    "mean_metrics",
    probe=probes.averaged,
    rule=right_metrics(*METRICS[:3]),
    says="a generator, gone through once, and logits that carry a graph",
)
def metrics_of_a_generator(draw: Draw) -> list[Case]:
    return [
        labelled(draw, 5, 4, 2, as_list=False),
        labelled(draw, 3, 6, as_list=False, with_graph=True),
        labelled(draw, 4, 6, strided=True),
    ]


@check(
    "mean_metrics",
    probe=probes.averaged,
    rule=left_alone,
    also=ALONE,
    says="all else stays: logits, labels, the list, settings, random numbers",
    corners=[
        "gradient mode and other settings of PyTorch, NumPy and Python's "
        "warnings, too"
    ],
)
def metrics_leave_the_rest(draw: Draw) -> list[Case]:
    return [
        unlabelled(labelled(draw, 5, 4), -100, 2, 1),
        unlabelled(labelled(draw, 5, 4, strided=True), -100, 0, 2),
        unlabelled(labelled(draw, 3, 2, positions=4), -100, 1, 0),
        labelled(draw, 4, 3, dtype=torch.float64),
        unlabelled(labelled(draw, 4, 3, dtype=torch.float16), -100, 1, 1),
        labelled(draw, 4, 3, no_grad=True),
    ]


# train_and_log


def epoch(
    draw: Draw,
    *sizes: int,
    shape: tuple[int, ...] = (),
    dtype: str = "float64",
    as_list: bool = False,
    train: bool = True,
    old_gradients: bool = False,
    loose: bool = False,
    old_momentum: bool = False,
    frozen: bool = False,
    num_classes: int = 0,
    loudness: float = 1.0,
    ids: bool = False,
) -> Case:
    """Batches of these sizes, for a new model and SGD with momentum. `loose`: the
    optimizer also holds a parameter that is not the model's, and has two groups.
    `loudness` multiplies the logits; with `ids` inputs are whole numbers."""
    num_features = draw.integer(3, 7)
    num_classes = num_classes or draw.integer(3, 6)
    width = num_features
    for size in shape:
        width *= size
    numbers = getattr(torch, dtype)
    pairs = [
        (
            draw.normal(n, *shape, num_features, dtype=numbers),
            draw.integers(0, num_classes, n),
        )
        for n in sizes
    ]
    if ids:
        pairs = [((4 * x).round().long(), y) for x, y in pairs]
    return {
        "pairs": pairs,
        "num_features": width,
        "num_classes": num_classes,
        "start": draw.normal(NUM_WEIGHTS, dtype=DOUBLE),
        "ticket": draw.integer(0, 10**9),
        "dtype": dtype,
        "as_list": as_list,
        "train": train,
        "old_gradients": old_gradients,
        "old_momentum": old_momentum,
        "loose": loose,
        "frozen": frozen,
        "loudness": loudness,
    }


def with_a_nan(case: Case) -> Case:
    """The case with a NaN in its first batch."""
    (x, y), *others = case["pairs"]
    x = x.clone()
    x[0, ..., 0] = math.nan
    return {**case, "pairs": [(x, y), *others]}


def nearly_equal_logits(case: Case) -> Case:
    """The case with logits that are no farther than 1e-20 apart, that of class 0 the
    lowest: in float64, too, the softmax of each row is one number."""
    start, num_classes = case["start"].clone(), case["num_classes"]
    last = start[probes.WIDTH * (case["num_features"] + 1) :]
    last[: (probes.WIDTH + 1) * num_classes] *= 1e-22
    last[probes.WIDTH * num_classes] = -1e-20  # the bias of class 0
    return {**case, "start": start}


def right_keys(case: Case, seen: Result, expected: Result) -> str | None:
    if isinstance(seen.data["keys"], str):
        return f"You returned {seen.data['keys']}."
    if seen.data["keys"] != expected.data["keys"]:
        return "The dict has other keys than those asked for."
    return None


def right_losses(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = right_keys(case, seen, expected)
    if complaint:
        return complaint
    losses, right = seen.data["losses"], expected.data["losses"]
    if not isinstance(losses, Tensor):
        return (
            '`"losses"` is neither a list of floats or 0-dim tensors nor a 1-D '
            "tensor of floating point."
        )
    if losses.shape != right.shape:
        return '`"losses"` has not one entry for each batch.'
    if not same(losses, right, 1e-6, 1e-6):
        return (
            '`"losses"` are not the mean losses of the batches, before their '
            "steps."
        )
    return None


def right_mean_loss(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = right_keys(case, seen, expected)
    if complaint:
        return complaint
    mean, right = seen.data["mean_loss"], expected.data["mean_loss"]
    if mean is None:
        return '`"mean_loss"` is neither a float nor a 0-dim tensor of one.'
    if right != right and mean == mean:
        return "A sample's loss is NaN, and the mean hides it."
    if right == right and not abs(mean - right) <= 1e-6 * abs(right):
        return '`"mean_loss"` is not the mean over all samples.'
    return None


def right_predictions(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = right_keys(case, seen, expected)
    if complaint:
        return complaint
    found, right = seen.data["predictions"], expected.data["predictions"]
    if not isinstance(found, Tensor):
        return '`"predictions"` is no tensor.'
    if found.dtype != right.dtype or found.shape != right.shape:
        return '`"predictions"` is not int64 with one entry for each sample.'
    if not torch.equal(found, right):
        return (
            '`"predictions"` are not the classes with the highest logit in the '
            "forward passes that trained."
        )
    return None


def one_graph(case: Case, seen: Result, expected: Result) -> str | None:
    if max(seen.data["left_over"]["graphs"], default=0) > 1:
        return (
            "Graphs of several earlier batches still exist when a batch goes "
            "forward: their number grows with the epoch."
        )
    if seen.data["left"]["graphs"]:
        return "After your function has returned, a graph still exists."
    return samples_once(case, seen, expected)


def nothing_kept(case: Case, seen: Result, expected: Result) -> str | None:
    for name, words in (("inputs", "inputs"), ("logits", "logits")):
        if max(seen.data["left_over"][name], default=0) > 1:
            return (
                f"The {words} of several earlier batches still exist when a "
                "batch goes forward."
            )
        if seen.data["left"][name]:
            return f"After your function has returned, {words} still exist."
    return samples_once(case, seen, expected)


def samples_once(case: Case, seen: Result, expected: Result) -> str | None:
    if not same(seen.data["samples"], expected.data["samples"]):
        return "Not every batch went forward exactly once, in order."
    return None


def one_step_each(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["calls"] < len(seen.data["left_over"]["graphs"]):
        return (
            "`model.forward` was called, and not `model(...)`. Hooks of the "
            "model do not run then."
        )
    complaint = samples_once(case, seen, expected)
    if complaint:
        return complaint
    if seen.data["steps"] != expected.data["steps"]:
        return "The optimizer does not step once for each batch."
    return None


def no_graph_returned(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["graph"]:
        return "Something that you returned requires a gradient or has a graph."
    return right_keys(case, seen, expected) or samples_once(
        case, seen, expected
    )


def trained_as_given(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["modes_kept"]:
        return (
            "A layer was in another mode than when the model was given to you. "
            "Call neither `train()` nor `eval()`."
        )
    if not seen.data["grad_mode_kept"]:
        return "Gradient mode is another than before."
    if not seen.data["attributes_kept"]:
        return (
            "The attributes of the model, or of a layer inside it, are not what "
            "they were."
        )
    if not seen.data["frozen_kept"]:
        return "What requires a gradient is not what it was."
    if seen.data["settings_changed"]:
        return left_changed(seen)
    if seen.data["optimizer_settings_changed"]:
        name = seen.data["optimizer_settings_changed"][0]
        return f"The optimizer's setting `{name}` is not what it was."
    if not seen.data["hooks_kept"]:
        return "A hook was left on the optimizer or on a parameter."
    for one, right in zip(
        seen.data["momenta"], expected.data["momenta"], strict=True
    ):
        if not same(one, right, 1e-6, 1e-8):
            return (
                "The optimizer's momentum is not what the steps make of it. The "
                "next epoch would go on from another state."
            )
    return samples_once(case, seen, expected)


@check(
    "train_and_log",
    probe=probes.trained,
    weight=2,
    on=("weights", "parameter_outside_the_model"),
    rtol=1e-6,
    atol=1e-8,
    says="the model is trained: one step on each batch's mean loss",
    corners=[
        "the optimizer may hold parameters that are not in the model, and "
        "layers may be frozen: these have no gradient; it may have several groups",
        "`x` goes into the model as it came, images and whole numbers, too",
        "gradients may be large, and are not clipped",
    ],
)
def weights_after_the_epoch(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 6, 6, 3),
        epoch(draw, 1, 4, 2, 5),
        epoch(draw, 4, 4, old_gradients=True),
        epoch(draw, 3, 5, old_gradients=True, loose=True),
        epoch(draw, 4, 3, frozen=True),
        epoch(draw, 4, 3, shape=(2,), as_list=True),
        epoch(draw, 5, 2, old_momentum=True, ids=True),
        # so large that no bound of a clipping nobody asked for is above it
        epoch(draw, 6, loudness=1e8),
    ]


@check(
    "train_and_log",
    probe=probes.trained,
    rule=right_losses,
    says="`losses`: the loss of each batch, before its step, in order",
    corners=[
        "a list of floats or of 0-dim tensors, or a 1-D tensor; float32 is "
        "precise enough, and so are six digits after the point"
    ],
)
def losses_of_the_batches(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 6, 6, 3),
        epoch(draw, 2, 5, 1, 7, 4, dtype="float32"),
        epoch(draw, 8),
    ]


@check(
    "train_and_log",
    probe=probes.trained,
    rule=right_mean_loss,
    says="`mean_loss`: the mean over all samples",
    corners=["a float or a 0-dim tensor; float32 is precise enough"],
)
def mean_over_samples(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 12, 12, 1),
        epoch(draw, 2, 9, 1, 7),
        epoch(draw, 5, 5, dtype="float32"),
        epoch(draw, 1),
        with_a_nan(epoch(draw, 4, 3)),
    ]


@check(
    "train_and_log",
    probe=probes.trained,
    weight=2,
    rule=right_predictions,
    says="`predictions`: those of the training passes, an int64 tensor (N,)",
    corners=["logits of any size"],
)
def predictions_in_passing(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 6, 6, 3),
        epoch(draw, 5, 5, num_classes=5),
        epoch(draw, 9, 1, 4, shape=(2,)),
        nearly_equal_logits(epoch(draw, 7, dtype="float32")),
    ]


@check(
    "train_and_log",
    probe=probes.trained,
    weight=3,
    rule=one_graph,
    says="one graph at a time, after 10 batches and after 30",
    corners=["none exists after the end"],
)
def graphs_do_not_pile_up(draw: Draw) -> list[Case]:
    return [epoch(draw, *[3] * 10), epoch(draw, *[2] * 30)]


@check(
    "train_and_log",
    probe=probes.trained,
    weight=2,
    rule=nothing_kept,
    says="inputs and logits of earlier batches are let go",
    corners=[
        "at most one batch of each still exists when the next goes forward, "
        "and none after the end, `detach`ed or not"
    ],
)
def inputs_are_let_go(draw: Draw) -> list[Case]:
    return [epoch(draw, *[3] * 10), epoch(draw, *[2] * 30)]


@check(
    "train_and_log",
    probe=probes.trained,
    rule=no_graph_returned,
    says="nothing that is returned has a graph or requires a gradient",
)
def numbers_without_graph(draw: Draw) -> list[Case]:
    return [epoch(draw, 5, 2), epoch(draw, 1), epoch(draw, 4, 4, as_list=True)]


@check(
    "train_and_log",
    probe=probes.trained,
    rule=one_step_each,
    says="each batch goes forward once, and is stepped on once",
    corners=["by `model(x)`, in the mode in which the model is"],
)
def once_forward_once_stepped(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 5, 4, 2),
        epoch(draw, 3, 3, 3, 1, as_list=True),
        # a loss of exactly 0 and one that is NaN are stepped on, too
        epoch(draw, 3, 2, num_classes=1),
        with_a_nan(epoch(draw, 4, 3)),
    ]


@check(
    "train_and_log",
    probe=probes.trained,
    on=("losses", "mean_loss", "predictions", "steps", "weights", "ticket"),
    says="if nothing is yielded: no step, no losses, a NaN and no predictions",
    corners=[
        "`predictions` is an empty int64 tensor then, and `losses` is empty"
    ],
)
def nothing_yielded(draw: Draw) -> list[Case]:
    return [epoch(draw), epoch(draw, as_list=True)]


@check(
    "train_and_log",
    probe=probes.trained,
    rule=trained_as_given,
    also=ALONE,
    says="all else stays: modes, attributes, hooks, momentum, the tensors, "
    "settings, random numbers",
    corners=[
        "only its steps change the optimizer: its settings, its momentum and "
        "its hooks are not yours",
        "gradient mode and other settings of PyTorch, NumPy and Python's "
        "warnings, too",
    ],
)
def training_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 4, 3, as_list=True),
        epoch(draw, 4, 3, as_list=True, train=False),
        epoch(draw, 5, 1),
        epoch(draw, 4, 2, frozen=True),
    ]


# class_report


def classified(
    draw: Draw,
    *sizes: int,
    num_classes: int = 4,
    truths: tuple[int, ...] = (),
    guesses: tuple[int, ...] = (),
    as_list: bool = True,
    with_graph: bool = False,
    base: float = 0.0,
    close: float = 0.0,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
    strided: bool = False,
    no_grad: bool = False,
) -> Case:
    """Logits and labels in batches: labels are of the classes in `truths`,
    predictions of those in `guesses`, half of them right where they can be.
    Logits are around `base`; with `close` another class comes that near to the
    highest."""
    truths = truths or tuple(range(num_classes))
    guesses = guesses or tuple(range(num_classes))
    pairs = []
    for n in sizes:
        y = torch.tensor(truths)[draw.integers(0, len(truths), n)]
        guess = torch.tensor(guesses)[draw.integers(0, len(guesses), n)]
        may = torch.isin(y, torch.tensor(guesses))
        guess = torch.where(may & (draw.uniform(n) < 0.5), y, guess)
        logits = logits_of(draw, guess, num_classes) + base
        if close:
            guess = guess[:, None]
            second = logits.gather(1, guess) - close
            logits.scatter_(1, (guess - 1) % num_classes, second)
        pairs.append(((scale * logits).to(dtype), y))
    return {
        "pairs": pairs,
        "length": len(pairs),
        "num_classes": num_classes,
        "ticket": draw.integer(0, 10**9),
        "as_list": as_list,
        "with_graph": with_graph,
        "strided": strided,
        "no_grad": no_grad,
    }


def logits_of(draw: Draw, guess: Tensor, num_classes: int) -> Tensor:
    """Logits whose highest is at the guess."""
    logits = draw.uniform(len(guess), num_classes)
    return logits.scatter_(1, guess[:, None], 1.5 + draw.uniform(len(guess), 1))


def once_and_rightly(draw: Draw) -> Case:
    """A class that is one label and one prediction, of the same row."""
    classes = draw.permutation(4)
    truth = classes[torch.tensor([0, 0, 0, 1, 2, 2])]
    guess = classes[torch.tensor([0, 0, 2, 1, 2, 0])]
    pairs = [(logits_of(draw, guess, 4), truth)]
    return {**classified(draw, len(truth)), "pairs": pairs}


def recut(case: Case, *sizes: int) -> Case:
    """The same logits and labels, in batches of other sizes."""
    logits = torch.cat([x for x, _ in case["pairs"]])
    labels = torch.cat([y for _, y in case["pairs"]])
    pairs = list(zip(logits.split(sizes), labels.split(sizes), strict=True))
    pairs = [(x.clone(), y.clone()) for x, y in pairs]
    return {**case, "pairs": pairs, "length": len(pairs)}


def right_report(*names: str) -> Rule:
    """A rule: these entries are those of the reference."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        if isinstance(seen.data["keys"], str):
            return f"You returned {seen.data['keys']}."
        for name in names:
            one, right = seen.data[name], expected.data[name]
            if name not in seen.data["keys"]:
                return f"The dict has no `{name}`."
            if isinstance(right, list):
                if not isinstance(one, list):
                    return f"`{name}` is no list."
                if len(one) != len(right):
                    return f"`{name}` has not one entry for each class."
            else:
                one, right = [one], [right]
            for a, b in zip(one, right, strict=True):
                if a != a:
                    return f"`{name}` is NaN somewhere."
                if abs(a - b) > 1e-9:
                    side = "large" if a > b else "small"
                    near = " by a little" if abs(a - b) < 1e-3 else ""
                    where = " for a class" if len(right) > 1 else ""
                    return f"`{name}` is too {side}{where}{near}."
        if seen.data["ticket"] != expected.data["ticket"]:
            return "These are the numbers of another call."
        return None

    return rule


@check(
    "class_report",
    probe=probes.reported,
    weight=2,
    rule=right_report("precision", "recall"),
    says="precision and recall of each class, over all predictions",
    corners=[
        "logits of any size, some -inf; every batch has rows",
        "no two logits are closer than float32 can tell",
    ],
)
def precision_and_recall(draw: Draw) -> list[Case]:
    ruled_out = classified(draw, 24)
    for logits, _ in ruled_out["pairs"]:
        logits[::2].masked_fill_(logits[::2] < 0.5, -math.inf)
    return [
        ruled_out,
        classified(draw, 24, base=-30000.0),
        classified(draw, 24, scale=1e-20),
        classified(draw, 12, 8, dtype=torch.float16, strided=True),
        classified(draw, 24),
        once_and_rightly(draw),
        classified(draw, 8, 8, 8, 3),
        classified(draw, 30, num_classes=2),
        classified(draw, 40, num_classes=12),
        classified(draw, 1200, 300, num_classes=2),
        classified(draw, 24, base=-6.0),
        classified(draw, 24, base=30.0, close=2e-3),
    ]


@check(
    "class_report",
    probe=probes.reported,
    rule=right_report("f1"),
    says="F1 of each class",
)
def f1_of_classes(draw: Draw) -> list[Case]:
    return [
        classified(draw, 24),
        classified(draw, 9, 9, 2),
        classified(draw, 12, 20, num_classes=3),
    ]


@check(
    "class_report",
    probe=probes.reported,
    rule=right_report("support"),
    says="`support` counts the true labels",
)
def support_of_classes(draw: Draw) -> list[Case]:
    return [
        classified(draw, 24, truths=(0, 0, 0, 1, 2, 3)),
        classified(draw, 12, 7, truths=(3, 3, 1, 1, 1, 2)),
    ]


@check(
    "class_report",
    probe=probes.reported,
    rule=right_report("accuracy"),
    says="the accuracy over all predictions",
)
def accuracy_of_the_report(draw: Draw) -> list[Case]:
    return [
        classified(draw, 24),
        classified(draw, 12, 3, 1),
        classified(draw, 16, truths=(0, 2), guesses=(1, 2)),
    ]


@check(
    "class_report",
    probe=probes.reported,
    rule=right_report("macro_f1"),
    says="`macro_f1`: the mean of F1 over all classes, absent ones too",
)
def macro_mean(draw: Draw) -> list[Case]:
    return [
        classified(draw, 24),
        classified(draw, 15, 5, truths=(0, 0, 0, 1, 2, 3)),
        classified(draw, 18, num_classes=5, truths=(0, 2), guesses=(0, 1, 2)),
        classified(draw, 30, num_classes=2, truths=(1, 1, 1, 1, 0)),
        classified(draw, 9, 18, num_classes=2, truths=(0, 0, 0, 1)),
    ]


@check(
    "class_report",
    probe=probes.reported,
    rule=right_report("weighted_f1"),
    says="`weighted_f1`: the mean of F1 weighted by support",
)
def weighted_mean(draw: Draw) -> list[Case]:
    return [
        classified(draw, 24, truths=(0, 0, 0, 0, 1, 2, 3)),
        classified(draw, 15, 9, truths=(2, 2, 2, 1, 3), num_classes=4),
        classified(draw, 20, num_classes=2, truths=(1, 1, 1, 0)),
    ]


@check(
    "class_report",
    probe=probes.reported,
    weight=2,
    rule=right_report(
        *("precision", "recall", "f1", "support"),
        *("accuracy", "macro_f1", "weighted_f1"),
    ),
    also=(gives_no_warning,),
    says="classes that never occur are reported, with 0 for 0 / 0, without a "
    "warning",
)
def absent_classes(draw: Draw) -> list[Case]:
    example = classified(draw, 5, num_classes=3)
    guess = torch.tensor([0, 1, 0, 0, 1])
    example["pairs"] = [
        (logits_of(draw, guess, 3), torch.tensor([1, 1, 0, 1, 1]))
    ]
    return [
        example,
        classified(
            draw, 14, num_classes=5, truths=(0, 1, 4), guesses=(0, 2, 4)
        ),
        classified(draw, 9, num_classes=4, truths=(3,), guesses=(3, 1)),
        classified(draw, 6, num_classes=6, truths=(0, 1), guesses=(2, 3)),
        classified(draw, 1),
    ]


@check(
    "class_report",
    probe=probes.reported,
    weight=2,
    rule=right_report(
        *("precision", "recall", "f1", "support"),
        *("accuracy", "macro_f1", "weighted_f1"),
    ),
    says="the same predictions in other batches give the same report",
)
def however_it_is_cut(draw: Draw) -> list[Case]:
    case = classified(draw, 16)
    return [
        case,
        recut(case, 4, 4, 4, 4),
        recut(case, 9, 6, 1),
        recut(case, *[1] * 16),
        recut({**case, "as_list": False}, 5, 5, 5, 1),
    ]


def plain_report(case: Case, seen: Result, expected: Result) -> str | None:
    types = seen.data.get("types")
    if not isinstance(types, dict):
        return f"You returned {seen.data['keys']}."
    if seen.data["keys"] != expected.data["keys"]:
        return "The dict has other keys than those asked for."
    for name, right in expected.data["types"].items():
        found = types.get(name)
        if found == right:
            continue
        if not isinstance(right, list):
            return f"`{name}` is of the type {found}, not a Python float."
        if not isinstance(found, list) or found[0] != "list":
            return f"`{name}` is no list."
        return f"`{name}` holds {found[-1]}, not Python {right[-1]}s."
    if seen.data["ticket"] != expected.data["ticket"]:
        return "These are the numbers of another call."
    return None


@check(
    "class_report",
    probe=probes.reported,
    rule=plain_report,
    says="the form: the seven names, lists, Python floats and ints",
)
def form_of_the_report(draw: Draw) -> list[Case]:
    return [
        classified(draw, 8, 5),
        classified(draw, 10, num_classes=3, truths=(0, 1), guesses=(0, 1)),
    ]


@check(
    "class_report",
    probe=probes.reported,
    rule=left_alone,
    also=ALONE,
    says="all else stays: logits, labels, the list, settings, random numbers",
    corners=[
        "gradient mode and other settings of PyTorch, NumPy and Python's "
        "warnings, too"
    ],
)
def report_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        classified(draw, 8, 5),
        classified(draw, 8, 5, with_graph=True),
        classified(draw, 6, as_list=False),
        classified(draw, 8, 5, no_grad=True),
    ]


# quiz


def asked(draw: Draw, question: str) -> list[Case]:
    return [{"question": question, "ticket": draw.integer(0, 10**9)}]


READ = {
    "cache": "section 5, where two lines are drawn",
    "live": "section 5, and what section 6 says about tensors that live",
    "gain": "section 5, and what section 6 says about fragments",
    "start": "what section 6 says about the first use of CUDA",
    "first": "section 4, and what section 6 says about names",
    "stuck": "the claim of section 6 about nvidia-smi",
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
    says="`cache`: what reserved memory is beyond the allocated",
)
def what_the_cache_is(draw: Draw) -> list[Case]:
    return asked(draw, "cache")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`live`: what `empty_cache` does about tensors that live",
)
def what_lives_stays(draw: Draw) -> list[Case]:
    return asked(draw, "live")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`gain`: what your own process gains by it",
)
def who_gains(draw: Draw) -> list[Case]:
    return asked(draw, "gain")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`start`: what is taken at the first use of CUDA",
)
def what_is_taken_first(draw: Draw) -> list[Case]:
    return asked(draw, "start")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`first`: what comes first where a tensor is no longer needed",
)
def what_comes_first(draw: Draw) -> list[Case]:
    return asked(draw, "first")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`stuck`: what to do about a dead run",
)
def whose_memory_it_is(draw: Draw) -> list[Case]:
    return asked(draw, "stuck")
