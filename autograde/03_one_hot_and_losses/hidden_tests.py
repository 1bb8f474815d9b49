"""What is checked in chapter 03: one-hot labels and losses."""

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    check,
    gives_no_warning,
    leaves_inputs_alone,
)

from . import probes

IGNORED = -100

# one_hot


def labelled(
    labels: Tensor, num_classes: int, dtype: torch.dtype = torch.float32
) -> Case:
    return {"labels": labels, "num_classes": num_classes, "dtype": dtype}


@check(
    "one_hot",
    probe=probes.encode,
    weight=2,
    on=("out",),
    says="each row has a 1 at its label and 0 elsewhere",
)
def ones_at_labels(draw: Draw) -> list[Case]:
    only_last = torch.full((draw.integer(2, 6),), 6)
    return [
        labelled(draw.integers(0, 5, 7), 5),
        labelled(draw.integers(0, 11, 4), 11),
        labelled(draw.integers(0, 9, 1), 9),
        labelled(only_last, 7),
        labelled(only_last - draw.integer(2, 5), 7),
    ]


@check(
    "one_hot",
    probe=probes.encode,
    weight=2,
    on=("out",),
    says="labels of any shape: strided, two-dimensional, none at all, one alone",
)
def labels_of_any_shape(draw: Draw) -> list[Case]:
    columns = draw.integers(0, 6, 4, 3)
    return [
        labelled(draw.permutation(12)[::2], 12),
        labelled(columns[:, draw.integer(0, 3)], 6),
        labelled(draw.integers(0, 4, 2, 5), 4),
        labelled(columns.T, 6),
        labelled(draw.integers(0, 5, 2, 3, 4), 5),
        labelled(draw.integers(0, 4, 0), 4),
        labelled(draw.integers(0, 6, 1)[0], 6),
    ]


@check(
    "one_hot",
    probe=probes.encode,
    on=("out",),
    says="labels of every integer dtype: uint8, int8, int16, int32, int64",
)
def labels_of_any_integer_dtype(draw: Draw) -> list[Case]:
    dtypes = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    cases = [labelled(draw.integers(0, 7, 5).to(one), 7) for one in dtypes]
    # Read as a mask, these uint8 labels would pick as many rows as they have ones.
    ones = torch.tensor([1, 0, 1, 1], dtype=torch.uint8)
    return [*cases, labelled(ones[draw.permutation(4)], 4)]


@check(
    "one_hot",
    probe=probes.encode,
    on=("out",),
    says="the result has the dtype that was asked for",
)
def dtype_as_asked(draw: Draw) -> list[Case]:
    dtypes = (torch.float32, torch.float64, torch.float16, torch.int64)
    return [labelled(draw.integers(0, 6, 5), 6, dtype) for dtype in dtypes]


@check(
    "one_hot",
    probe=probes.encode_elsewhere,
    says="the result is on the device of the labels",
)
def stays_on_the_device(draw: Draw) -> list[Case]:
    return [
        labelled(draw.integers(0, 5, 6), 5),
        labelled(draw.integers(0, 4, 3, 2).to(torch.int32), 4, torch.float64),
    ]


@check(
    "one_hot",
    probe=probes.encode,
    weight=2,
    on=("out",),
    raises=("ValueError", "IndexError", "RuntimeError"),
    says="a label below 0 or past the last class raises an error",
)
def bad_labels_raise(draw: Draw) -> list[Case]:
    cases = [labelled(draw.integers(0, 5, 6), 5)]
    for bad in (-1, 5, -5, IGNORED):
        labels = draw.integers(0, 5, 6)
        labels[draw.integer(0, 6)] = bad
        cases.append(labelled(labels, 5))
    return cases


@check(
    "one_hot",
    probe=probes.encode,
    on=("out", "labels_after"),
    also=[leaves_inputs_alone],
    says="the caller's labels keep their shape and their values",
)
def leaves_labels_alone(draw: Draw) -> list[Case]:
    return [
        labelled(draw.integers(0, 5, 4), 5),
        labelled(draw.integers(0, 5, 6), 5),
        labelled(draw.integers(0, 5, 3, 2), 5),
    ]


# cross_entropy


def scored(
    draw: Draw,
    *shape: int,
    dtype: torch.dtype = torch.float32,
    **options: object,
) -> Case:
    """Logits of this shape, classes in dimension 1, and a target for them."""
    num_classes = shape[1]
    return {
        "logits": draw.normal(*shape, std=2.0, dtype=dtype),
        "target": draw.integers(0, num_classes, shape[0], *shape[2:]),
        **options,
    }


def ignoring(draw: Draw, case: Case, value: int = IGNORED) -> Case:
    """The case with some, and not all, of its labels to be ignored."""
    target = case["target"].clone()
    flat = target.view(-1)
    some = draw.permutation(flat.numel())[: flat.numel() // 3 + 1]
    flat[some] = value
    return {**case, "target": target}


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says="the mean of -log softmax at the target, for logits (N, C)",
)
def plain_cross_entropy(draw: Draw) -> list[Case]:
    return [
        scored(draw, 8, 5),
        scored(draw, 5, 5, dtype=torch.float64),
        scored(draw, 1, 4),
        scored(draw, 17, 10, dtype=torch.float64),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says="logits in the thousands give the right, finite loss",
)
def large_logits(draw: Draw) -> list[Case]:
    cases = []
    for scale in (1e3, 1e4):
        case = scored(draw, 6, 5, dtype=torch.float64, reduction="none")
        # Rows whose largest logits lie far apart: one maximum for the whole
        # batch does not save the lower rows.
        offsets = scale * draw.permutation(6).to(torch.float64)
        case["logits"] = scale * case["logits"] + offsets[:, None]
        cases += [case, {**case, "reduction": "mean"}]
    return cases


@check(
    "cross_entropy",
    probe=probes.loss_and_gradient,
    says="the gradient with respect to the logits",
)
def gradient_of_the_loss(draw: Draw) -> list[Case]:
    weight = draw.uniform(5, low=0.2, high=3.0, dtype=torch.float64)
    full = scored(draw, 7, 5, dtype=torch.float64, weight=weight)
    return [
        scored(draw, 6, 4),
        scored(draw, 5, 3, dtype=torch.float64, reduction="sum"),
        {**ignoring(draw, full), "label_smoothing": 0.1},
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says='reduction "none" keeps the target\'s shape, "sum" adds, "mean" averages',
)
def three_reductions(draw: Draw) -> list[Case]:
    return [
        scored(draw, 6, 4, reduction="none"),
        scored(draw, 1, 4, reduction="none"),
        scored(draw, 6, 4, reduction="sum"),
        scored(draw, 6, 4, reduction="mean"),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    raises=("ValueError",),
    says="an unknown reduction raises a ValueError",
)
def unknown_reduction_raises(draw: Draw) -> list[Case]:
    return [
        scored(draw, 4, 3, reduction="mean"),
        scored(draw, 4, 3, reduction="average"),
        scored(draw, 4, 3, reduction=""),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says="class weights: the mean divides by the weights of the targets",
)
def class_weights(draw: Draw) -> list[Case]:
    cases = []
    for reduction in ("none", "sum", "mean"):
        weight = draw.uniform(5, low=0.1, high=4.0)
        # Twice the mean weight would still hide in a mean divided by N.
        weight[draw.integer(0, 5)] = 9.0
        case = scored(draw, 9, 5, weight=weight, reduction=reduction)
        cases.append(case)
    return cases


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says="targets equal to ignore_index count neither above nor below the line",
)
def ignored_targets(draw: Draw) -> list[Case]:
    weight = draw.uniform(6, low=0.3, high=3.0)
    as_class = draw.integer(0, 6)
    # One sample so sure and right that its loss is 0, which counts nevertheless.
    sure = ignoring(draw, scored(draw, 8, 6))
    kept = int((sure["target"] != IGNORED).nonzero()[0])
    sure["logits"][kept, sure["target"][kept]] = 500.0
    return [
        sure,
        ignoring(draw, scored(draw, 9, 6)),
        ignoring(draw, scored(draw, 9, 6, reduction="none")),
        ignoring(draw, scored(draw, 9, 6, reduction="sum")),
        ignoring(draw, scored(draw, 9, 6, ignore_index=-1), -1),
        ignoring(draw, scored(draw, 9, 6, ignore_index=as_class), as_class),
        ignoring(draw, scored(draw, 9, 6, weight=weight)),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says="label smoothing spreads its share over all C classes",
)
def smoothed_labels(draw: Draw) -> list[Case]:
    def case(**options: object) -> Case:
        smoothing = 0.05 + 0.05 * draw.integer(1, 5)
        return scored(draw, 8, 4, label_smoothing=smoothing, **options)

    return [case(), case(reduction="none"), ignoring(draw, case())]


@check(
    "cross_entropy",
    probe=probes.loss,
    says="label smoothing together with class weights",
)
def smoothed_and_weighted(draw: Draw) -> list[Case]:
    cases = []
    for reduction in ("none", "sum", "mean"):
        weight = draw.uniform(4, low=0.1, high=3.0)
        weight[draw.integer(0, 4)] = 6.0
        case = scored(draw, 8, 4, weight=weight, reduction=reduction)
        cases.append({**case, "label_smoothing": 0.2})
    return cases


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    says="logits (N, C, d) with a target (N, d): the classes are dimension 1",
)
def extra_dimension(draw: Draw) -> list[Case]:
    weight = draw.uniform(4, low=0.3, high=3.0)
    return [
        scored(draw, 3, 5, 6),
        scored(draw, 4, 4, 4, reduction="none"),
        scored(draw, 3, 5, 1, reduction="none"),
        scored(draw, 2, 4, 4, label_smoothing=0.1, reduction="sum"),
        ignoring(draw, scored(draw, 3, 4, 5, weight=weight)),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    says="nothing to count: the mean is NaN, the sum 0",
)
def nothing_to_count(draw: Draw) -> list[Case]:
    all_ignored = scored(draw, 5, 4)
    all_ignored["target"] = torch.full((5,), IGNORED)
    empty = scored(draw, 0, 4)
    reductions = ("none", "sum", "mean")
    cases = [
        {**case, "reduction": reduction}
        for case in (all_ignored, empty)
        for reduction in reductions
    ]
    # A sum of 0 counts only beside a sum that is none.
    return [*cases, scored(draw, 5, 4, reduction="sum")]


@check(
    "cross_entropy",
    probe=probes.loss,
    also=[leaves_inputs_alone],
    says="logits, target and weight are left as they were",
)
def leaves_arguments_alone(draw: Draw) -> list[Case]:
    weight = draw.uniform(4, low=0.3, high=3.0)
    return [
        scored(draw, 5, 4),
        scored(draw, 5, 4, weight=weight),
        ignoring(draw, scored(draw, 6, 4)),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    raises=("ValueError", "IndexError", "RuntimeError"),
    says="a target that is neither a class nor ignore_index raises an error",
)
def bad_targets_raise(draw: Draw) -> list[Case]:
    cases = [scored(draw, 6, 4)]
    for bad in (-1, 4):
        case = scored(draw, 6, 4)
        case["target"][draw.integer(0, 6)] = bad
        cases.append(case)
    return cases


# class_mse


def one_hot_rows(labels: Tensor, num_classes: int) -> Tensor:
    return torch.eye(num_classes)[labels]


@check(
    "class_mse",
    probe=probes.squared_error,
    weight=2,
    says="class indices (N,) are compared as one-hot rows",
)
def mse_of_indices(draw: Draw) -> list[Case]:
    low = draw.integers(0, 3, 6)
    return [
        {"scores": draw.normal(6, 5), "target": draw.integers(0, 5, 6)},
        {"scores": draw.normal(3, 8), "target": draw.integers(0, 8, 3)},
        {"scores": draw.normal(6, 5), "target": low},
        {
            "scores": draw.normal(5, 7, dtype=torch.float64),
            "target": draw.integers(0, 7, 5),
        },
        {
            "scores": draw.normal(6, 5),
            "target": draw.integers(0, 5, 6, dtype=torch.int32),
        },
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    weight=2,
    also=[gives_no_warning],
    says="as many samples as classes: still one-hot rows, and no warning",
)
def as_many_samples_as_classes(draw: Draw) -> list[Case]:
    return [
        {"scores": draw.normal(n, n), "target": draw.integers(0, n, n)}
        for n in (4, 7)
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    weight=2,
    says="a target of the shape of the scores is used as it is",
)
def mse_of_rows(draw: Draw) -> list[Case]:
    rows = one_hot_rows(draw.integers(0, 5, 6), 5)
    soft = draw.uniform(4, 4)
    return [
        {"scores": draw.normal(6, 5), "target": rows},
        {"scores": draw.normal(6, 5), "target": rows.long()},
        {"scores": draw.normal(4, 4), "target": soft},
        {"scores": draw.normal(6, 1), "target": draw.normal(6, 1)},
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    weight=3,
    raises=("ValueError",),
    says="any other target raises a ValueError",
)
def other_targets_raise(draw: Draw) -> list[Case]:
    labels = draw.integers(0, 5, 5)
    scores = draw.normal(5, 5)
    wrong_targets = [
        labels.float(),  # (C,) against (N, C): as many as there are classes
        labels[:, None],  # a column
        labels[:, None].float(),
        labels[:1],  # one label for five rows
        labels[0],
        labels[:4],
        one_hot_rows(labels, 5)[:1],
    ]
    column = {"scores": draw.normal(6, 1), "target": draw.normal(6)}
    turned = {"scores": draw.normal(4, 3), "target": draw.uniform(3, 4)}
    return [
        {"scores": scores, "target": labels},
        *({"scores": scores, "target": target} for target in wrong_targets),
        column,
        turned,
    ]


@check(
    "class_mse",
    probe=probes.squared_error_and_gradient,
    says="the gradient with respect to the scores",
)
def gradient_of_the_squared_error(draw: Draw) -> list[Case]:
    rows = one_hot_rows(draw.integers(0, 3, 5), 3)
    return [
        {"scores": draw.normal(5, 6), "target": draw.integers(0, 6, 5)},
        {"scores": draw.normal(5, 3), "target": rows},
    ]


# mean_loss


def batches_of(draw: Draw, *sizes: int, num_classes: int = 6) -> Case:
    """Batches of these sizes, each with a difficulty of its own."""
    return {
        "batches": [
            (
                draw.normal(
                    size, num_classes, std=1.0 + 2.0 * i, dtype=torch.float64
                ),
                draw.integers(0, num_classes, size),
            )
            for i, size in enumerate(sizes)
        ]
    }


def with_padding(case: Case, *ignored: int) -> Case:
    """The case with the first `ignored[i]` labels of batch i set to -100."""
    batches = []
    for (logits, labels), count in zip(case["batches"], ignored, strict=True):
        padded = labels.clone()
        padded[:count] = IGNORED
        batches.append((logits, padded))
    return {"batches": batches}


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    weight=2,
    rtol=1e-5,
    says="batches of one size: the library's mean over all samples",
)
def even_batches(draw: Draw) -> list[Case]:
    return [batches_of(draw, 4, 4, 4), batches_of(draw, 7)]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    weight=3,
    rtol=1e-5,
    says="batches of unequal size: every sample counts the same",
)
def uneven_batches(draw: Draw) -> list[Case]:
    return [
        batches_of(draw, 4, 4, 4, 4, 1),
        batches_of(draw, 1, 8, 3),
        batches_of(draw, 2, 1, 1, 1),
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    weight=2,
    rtol=1e-5,
    says="labels of -100 are not counted, also where they fill a batch",
)
def padded_batches(draw: Draw) -> list[Case]:
    # One sample so sure and right that its loss is 0, which counts nevertheless.
    sure = batches_of(draw, 4, 3)
    logits, labels = sure["batches"][0]
    logits[3, labels[3]] = 2000.0
    return [
        with_padding(batches_of(draw, 4, 4, 4), 3, 0, 1),
        with_padding(batches_of(draw, 6, 5, 2), 0, 4, 1),
        with_padding(batches_of(draw, 4, 3, 4), 1, 3, 0),
        with_padding(sure, 1, 0),
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    rtol=1e-5,
    says="no label counts at all: NaN",
)
def all_padded(draw: Draw) -> list[Case]:
    return [
        with_padding(batches_of(draw, 3, 2), 3, 2),
        with_padding(batches_of(draw, 3, 2), 3, 1),
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_generator,
    rtol=1e-5,
    says="batches that come from a generator, in one pass",
)
def batches_from_a_generator(draw: Draw) -> list[Case]:
    return [batches_of(draw, 3, 5, 2)]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    rtol=1e-5,
    also=[gives_no_warning],
    says="no deprecated argument: nothing warns",
)
def no_deprecated_arguments(draw: Draw) -> list[Case]:
    return [batches_of(draw, 3, 3)]
