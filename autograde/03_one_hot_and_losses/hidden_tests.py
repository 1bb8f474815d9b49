"""What is checked in chapter 03: one-hot labels and losses."""

import math
from collections.abc import Callable

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
    same_form,
)
from course_grader.judge.compare import Tolerance, difference

from . import probes

IGNORED = -100


def same_within(rtol: float | None = None) -> Rule:
    """The default comparison, with the words of the case's `form`, if it has
    any, behind the complaint."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        found = difference(seen.data, expected.data, Tolerance(rtol))
        if found and "form" in case:
            return f"{found.rstrip('.')}, with {case['form']}."
        return found

    return rule


def leaves_grad_mode(found: Rule) -> Rule:
    """The rule, after a look at the grad mode that the probe met afterwards."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        if seen.data["grad_mode"] != expected.data["grad_mode"]:
            return "Your code left a setting changed: grad mode."
        return found(case, seen, expected)

    return rule


OF_A_MULTIPLE = {
    "none": "has no gradient",
    "the gradient itself": (
        "has the gradient of the loss alone: what comes back from behind it is "
        "left out"
    ),
    "the opposite": (
        "has a gradient of the wrong sign: that of what comes back from behind "
        "it is lost"
    ),
    "another": (
        "has another gradient than that many times the loss's own: it is "
        "changed on its way back"
    ),
}


def gradient_reaches(scores: str) -> Rule:
    """The default comparison, with words for a result that has no gradient, and
    for one that has the same whatever comes after it."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        if seen.data["gradient"] is None:
            form = f", with {case['form']}" if "form" in case else ""
            return f"No gradient reaches the {scores}{form}."
        multiple = seen.data["multiple"]
        if multiple != "the same multiple":
            times = f"Your loss times {case['factor']}"
            return f"{times} {OF_A_MULTIPLE[multiple]}."
        return same_within()(case, seen, expected)

    return rule


def scaled(draw: Draw, cases: list[Case]) -> list[Case]:
    """The cases, each with a factor that its loss is multiplied by: large, as in
    mixed precision, and negative, as where a loss is to rise."""
    return [{**case, "factor": -draw.integer(10**5, 10**6)} for case in cases]


# one_hot


def labelled(
    labels: Tensor,
    num_classes: int,
    dtype: torch.dtype | None = torch.float32,
) -> Case:
    """Labels to encode; without a dtype, the call names none."""
    case: Case = {"labels": labels, "num_classes": num_classes}
    return case if dtype is None else {**case, "dtype": dtype}


@check(
    "one_hot",
    probe=probes.encode,
    weight=2,
    on=("out",),
    says="each row has a 1 at its label and 0 elsewhere",
)
def ones_at_labels(draw: Draw) -> list[Case]:
    only_last = torch.full((draw.integer(2, 6),), 6)
    # the good label of a refused call is no label of the next one
    again = labelled(draw.integers(1, 5, 2), 5)
    return [
        {**again, "refused": torch.tensor([0, 5])},
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
    corners=["also of a shape such as (3, 0), and with a single class"],
)
def labels_of_any_shape(draw: Draw) -> list[Case]:
    columns = draw.integers(0, 6, 4, 3)
    return [
        labelled(draw.permutation(12)[::2], 12),
        labelled(columns[:, draw.integer(0, 3)], 6),
        labelled(draw.integers(0, 4, 2, 5), 4),
        labelled(columns.T, 6),
        labelled(draw.integers(0, 5, 2, 3, 4), 5),
        labelled(draw.integers(0, 3, 2, 1, 3, 1, 2), 3),
        labelled(draw.integers(0, 4, 0), draw.integer(4, 90)),
        labelled(
            draw.integers(0, 4, draw.integer(2, 9), 0), draw.integer(4, 9)
        ),
        labelled(draw.integers(0, 6, 1)[0], 6),
        labelled(draw.integers(0, 1, draw.integer(2, 6)), 1),
    ]


@check(
    "one_hot",
    probe=probes.encode,
    on=("out",),
    says="labels of every integer dtype: uint8, int8, int16, int32, int64",
    corners=[
        "`num_classes` may be larger than that dtype can count, but in no case "
        "above 1000"
    ],
)
def labels_of_any_integer_dtype(draw: Draw) -> list[Case]:
    dtypes = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    cases = [labelled(draw.integers(0, 7, 5).to(one), 7) for one in dtypes]
    # Read as a mask, these uint8 labels would pick as many rows as they have ones.
    ones = torch.tensor([1, 0, 1, 1], dtype=torch.uint8)
    # Past 127 they are no int8, and past 255 no class is a uint8.
    large = torch.tensor([5, draw.integer(130, 250)], dtype=torch.uint8)
    return [
        *cases,
        labelled(ones[draw.permutation(4)], 4),
        labelled(large, 300),
    ]


@check(
    "one_hot",
    probe=probes.encode,
    on=("out",),
    says="the result has the dtype that was asked for",
    corners=[
        "int8 to int64, uint8, bool, float16 and bfloat16 among them; float32 "
        "if none was asked for, whatever PyTorch's default is",
        "there may be more labels and classes than it can count",
    ],
)
def dtype_as_asked(draw: Draw) -> list[Case]:
    dtypes = (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
        torch.bool,
    )
    alone = draw.integers(0, 6, 1)[0]
    # 257 is no bfloat16 and no int8, and no bfloat16 counts to 301.
    far = torch.tensor([257, draw.integer(0, 256)])
    many = draw.integers(0, 2, 301)
    return [
        labelled(far, 300, torch.bfloat16),
        labelled(far, 300, torch.int8),
        labelled(many, 2, torch.bfloat16),
        labelled(alone, 6, torch.float64),
        # a single class
        labelled(draw.integers(0, 1, 3), 1, torch.float64),
        # no labels at all
        labelled(draw.integers(0, 6, 0), draw.integer(2, 90), torch.int64),
        labelled(draw.integers(0, 6, 5), 6, None),
        {**labelled(draw.integers(0, 6, 5), 6, None), "default": torch.float64},
        *(labelled(draw.integers(0, 6, 5), 6, dtype) for dtype in dtypes),
    ]


@check(
    "one_hot",
    probe=probes.encode_elsewhere,
    says="the result is on the device of the labels",
)
def stays_on_the_device(draw: Draw) -> list[Case]:
    return [
        labelled(draw.integers(0, 5, 6), 5),
        labelled(draw.integers(0, 4, 3, 2).to(torch.int32), 4, torch.float64),
        labelled(torch.empty(0, dtype=torch.int64), draw.integer(2, 90)),
        # one label alone, and a single class
        labelled(torch.tensor(draw.integer(0, 5)), 5),
        labelled(draw.integers(0, 1, 3), 1),
    ]


@check(
    "one_hot",
    probe=probes.encode,
    rule=same_form("out"),
    raises=("ValueError", "IndexError", "RuntimeError"),
    says="a label below 0 or past the last class raises an error",
    corners=["settings stay as they were then, too"],
)
def bad_labels_raise(draw: Draw) -> list[Case]:
    cases = [labelled(draw.integers(0, 5, 6), 5)]
    for bad in (-1, 5, -5, IGNORED, 2**32 + 1):
        labels = draw.integers(0, 5, 6)
        labels[draw.integer(0, 6)] = bad
        cases.append(labelled(labels, 5))
        if bad in (-1, 5):
            cases.append(labelled(labels.reshape(2, 3), 5))
            least = torch.int8 if bad < 0 else torch.uint8
            dtypes = (least, torch.int16, torch.int32)
            cases += [labelled(labels.to(one), 5) for one in dtypes]
            # one label alone, and a single class
            cases.append(labelled(torch.tensor(bad), 5))
            cases.append(labelled((labels == bad) * (1 if bad > 0 else -1), 1))
    for bad in (-1, 2):  # two classes, which 1 - label makes a row of
        labels = draw.integers(0, 2, 6)
        labels[draw.integer(0, 6)] = bad
        cases.append(labelled(labels, 2))
    # So many that bfloat16 does not tell their number from one less.
    many = draw.integers(0, 5, 257)
    many[draw.integer(0, 257)] = 5
    return [*cases, labelled(many, 5, torch.bfloat16)]


@check(
    "one_hot",
    probe=probes.encode,
    rule=leaves_grad_mode(same_form("out", exact=["labels_after"])),
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="the caller's labels keep their shape and their values",
    corners=[
        "a strided view, too; settings and random states stay as well, also under "
        "`torch.no_grad()`"
    ],
)
def leaves_labels_alone(draw: Draw) -> list[Case]:
    # Labels of 0 would hide that they were overwritten with 0.
    table = draw.integers(1, 6, 4, 3)
    return [
        labelled(draw.integers(1, 5, 4), 5),
        {**labelled(draw.integers(1, 5, 3, 2), 5), "grad": False},
        labelled(draw.integers(1, 9, 8)[::2], 9),
        labelled(table[:, draw.integer(0, 3)], 6),
        labelled(table[:, 1:], 6),
        labelled(table.T, 6),
        labelled(draw.integers(1, 5, 4).to(torch.int8), 5),
        labelled(draw.integers(1, 5, 4).to(torch.uint8), 5),
        labelled(table[:, 1].to(torch.int32), 6),
        labelled(table.to(torch.int16)[:, 1], 6),
    ]


def keeps_nothing(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison, with words for memory that is handed out twice:
    the probe adds 5 to what it gets."""
    found = difference(seen.data, expected.data, Tolerance())
    results = [seen.data[key] for key in ("first", "second", "again")]
    if found and any(
        torch.is_tensor(one) and bool((one.double() >= 5).any())
        for one in results
    ):
        return (
            "Somebody wrote over a result, and a later one has these numbers: you "
            "hand out a tensor, or a view of one, that you keep."
        )
    return found


@check(
    "one_hot",
    probe=probes.encode_twice,
    rule=keeps_nothing,
    says="the result is a new tensor: the next call does not change it, and "
    "who writes over it changes no later result",
    corners=[
        "who writes over one row changes no other, with a single class, too"
    ],
)
def results_of_their_own(draw: Draw) -> list[Case]:
    first = draw.integers(0, 5, 6)
    other = (first + draw.integers(1, 5, 6)) % 5
    alone = draw.integers(0, 5, 1)[0]
    return [
        {**labelled(first, 5), "other_labels": other},
        {**labelled(alone, 5), "other_labels": (alone + 1) % 5},
        # all alike
        {**labelled(alone.repeat(4), 5), "other_labels": other},
        # a single class: all rows are alike whatever the labels
        {**labelled(0 * first, 1), "other_labels": 0 * first},
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


DOUBLE = 1e-12
"""Relative and absolute, of what is computed in float64 from beginning to end."""


def with_all_digits(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison, and for float64 logits one to the digits of float64.
    Of 16-bit logits only the form of the loss counts."""
    if case["logits"].dtype in (torch.float16, torch.bfloat16):
        return same_form("loss")(case, seen, expected)
    found = difference(seen.data, expected.data, Tolerance())
    if found or case["logits"].dtype != torch.float64:
        return found
    if difference(seen.data, expected.data, Tolerance(DOUBLE, DOUBLE)):
        return (
            "The loss of float64 logits has fewer right digits than float64 holds: "
            "as from a narrower dtype, or with a small number added inside."
        )
    return None


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    rule=with_all_digits,
    says="the mean of -log softmax at the target, for logits (N, C)",
    corners=[
        "for float64 logits with the digits of float64; so with weights and in "
        "the shape (N, C, d), but no case asks for them with smoothing"
    ],
)
def plain_cross_entropy(draw: Draw) -> list[Case]:
    return [
        scored(draw, 8, 5),
        scored(draw, 5, 5, dtype=torch.float64),
        scored(draw, 1, 4),
        scored(draw, 17, 10, dtype=torch.float64),
        # more than float16 can count
        scored(draw, 2051, 3),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    says="logits in the thousands give the right, finite loss",
    corners=["no case has infinite ones"],
)
def large_logits(draw: Draw) -> list[Case]:
    cases = []
    for scale in (1e3, 1e4):
        case = scored(draw, 6, 5, dtype=torch.float64)
        # Rows whose largest logits lie far apart: one maximum for the whole
        # batch does not save the lower rows.
        offsets = scale * draw.permutation(6).to(torch.float64)
        case["logits"] = scale * case["logits"] + offsets[:, None]
        cases.append(case)
    return cases


@check(
    "cross_entropy",
    probe=probes.gradient,
    rule=gradient_reaches("logits"),
    says="the gradient with respect to the logits (N, C)",
    corners=[
        "a multiple of the loss has the same multiple of the gradient, also where "
        "it is large or negative"
    ],
)
def gradient_of_the_loss(draw: Draw) -> list[Case]:
    cases = [scored(draw, 6, 4), scored(draw, 5, 3, dtype=torch.float64)]
    return scaled(draw, cases)


@check(
    "cross_entropy",
    probe=probes.gradient,
    rule=gradient_reaches("logits"),
    says="the gradient with options, and for logits (N, C, d)",
    corners=[
        'also where all targets are ignored: zeros with `reduction="sum"`'
    ],
)
def gradient_with_options(draw: Draw) -> list[Case]:
    weight = draw.uniform(5, low=0.2, high=3.0, dtype=torch.float64)
    full = scored(draw, 7, 5, dtype=torch.float64, weight=weight)
    full = {**ignoring(draw, full), "label_smoothing": 0.1}
    padding = scored(draw, 5, 3, reduction="sum")
    padding["target"] = torch.full((5,), IGNORED)
    cases = [
        {**padding, "form": "all targets ignored"},
        {**scored(draw, 5, 3, reduction="sum"), "form": 'reduction "sum"'},
        {**scored(draw, 5, 3, reduction="none"), "form": 'reduction "none"'},
        {**scored(draw, 3, 4, 2), "form": "logits (N, C, d)"},
        {**full, "form": "weights, ignored targets and smoothing"},
    ]
    return scaled(draw, cases)


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=with_all_digits,
    says='reduction "none" keeps the target\'s shape, "sum" adds, "mean" averages',
    corners=[
        "the loss has the dtype of the logits, of float16 and bfloat16 ones, too, "
        "whose digits are not looked at"
    ],
)
def three_reductions(draw: Draw) -> list[Case]:
    half = torch.bfloat16
    weight = draw.uniform(3, low=0.5, high=4.0).to(half)
    return [
        scored(draw, 6, 4, reduction="none"),
        scored(draw, 1, 4, reduction="none"),
        scored(draw, 6, 4, reduction="sum"),
        scored(draw, 6, 4, reduction="mean"),
        *(
            scored(draw, 4, 3, dtype=dtype)
            for dtype in (torch.bfloat16, torch.float16)
        ),
        scored(draw, 4, 3, dtype=half, reduction="none", weight=weight),
        scored(draw, 4, 3, dtype=half, reduction="sum", label_smoothing=0.1),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=same_form("loss"),
    raises=("ValueError",),
    says="an unknown reduction raises a ValueError",
    corners=[
        "only the library's old name `elementwise_mean` may do as it likes"
    ],
)
def unknown_reduction_raises(draw: Draw) -> list[Case]:
    # Not the deprecated "elementwise_mean": the text leaves it open, since the
    # library takes it.
    return [
        scored(draw, 4, 3, reduction="mean"),
        *(
            scored(draw, 4, 3, reduction=unknown)
            for unknown in (
                "average",
                "",
                "Mean",
                "mean ",
                "batchmean",
                "means",
                None,
            )
        ),
        scored(draw, 0, 3, reduction="average"),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    weight=2,
    rule=with_all_digits,
    says="class weights: the mean divides by the weights of the targets",
)
def class_weights(draw: Draw) -> list[Case]:
    cases = []
    for dtype in (torch.float32, torch.float64):
        weight = draw.uniform(5, low=0.1, high=4.0, dtype=dtype)
        # Twice the mean weight would still hide in a mean divided by N.
        weight[draw.integer(0, 5)] = 9.0
        cases.append(scored(draw, 9, 5, dtype=dtype, weight=weight))
    # A class that costs nothing.
    weight = draw.uniform(3, low=0.5, high=4.0)
    weight[draw.integer(0, 3)] = 0.0
    tiny = 1e-18 * draw.uniform(5, low=0.1, high=4.0)
    return [
        *cases,
        scored(draw, 9, 3, weight=weight),
        scored(draw, 9, 5, weight=tiny),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    says="targets equal to `ignore_index` are left out of sum and count",
    corners=["`ignore_index` may be any integer, also one that is a class"],
)
def ignored_targets(draw: Draw) -> list[Case]:
    as_class = draw.integer(1, 6)
    # One sample so sure and right that its loss is 0, which counts nevertheless.
    sure = ignoring(draw, scored(draw, 8, 6))
    kept = int((sure["target"] != IGNORED).nonzero()[0])
    sure["logits"][kept, sure["target"][kept]] = 500.0
    return [
        sure,
        ignoring(draw, scored(draw, 9, 6)),
        ignoring(draw, scored(draw, 9, 6, ignore_index=-1), -1),
        ignoring(draw, scored(draw, 9, 6, ignore_index=-255), -255),
        ignoring(draw, scored(draw, 9, 6, ignore_index=255), 255),
        ignoring(draw, scored(draw, 5, 1)),
        ignoring(draw, scored(draw, 9, 6, ignore_index=0), 0),
        ignoring(draw, scored(draw, 9, 6, ignore_index=as_class), as_class),
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    says="a NaN among the logits of an ignored target does not reach the loss "
    "(its gradient may be NaN); of one that counts, it makes the loss NaN",
    corners=[
        "with weights, with smoothing and in the shape (N, C, d), too, and where "
        "all targets are ignored"
    ],
)
def nan_in_ignored_logits(draw: Draw) -> list[Case]:
    counted = scored(draw, 6, 4)
    counted["logits"][draw.integer(0, 6), draw.integer(0, 4)] = math.nan
    beside = ignoring(draw, scored(draw, 6, 4))
    kept = int((beside["target"] != IGNORED).nonzero()[0])
    beside["logits"][kept, draw.integer(0, 4)] = math.nan
    cases = [counted, beside]
    cases += [{**one, "reduction": "none"} for one in cases]
    tried: tuple[dict[str, object], ...] = (
        {"reduction": "mean"},
        {"reduction": "none"},
        {"label_smoothing": 0.1},
        {"weight": draw.uniform(4, low=0.3, high=3.0)},
    )
    for options in tried:
        case = ignoring(draw, scored(draw, 6, 4, **options))
        ignored = int((case["target"] == IGNORED).nonzero()[0])
        case["logits"][ignored, draw.integer(0, 4)] = math.nan
        cases.append(case)
    case = ignoring(draw, scored(draw, 3, 4, 2, label_smoothing=0.2))
    sample, place = (case["target"] == IGNORED).nonzero()[0].tolist()
    case["logits"][sample, draw.integer(0, 4), place] = math.nan
    padding = scored(draw, 5, 4, reduction="sum")
    padding["target"] = torch.full((5,), IGNORED)
    padding["logits"][draw.integer(0, 5), draw.integer(0, 4)] = math.nan
    single = scored(draw, 5, 1)
    single["logits"][draw.integer(0, 5), 0] = math.nan
    return [*cases, case, padding, single]


@check(
    "cross_entropy",
    probe=probes.loss,
    says="label smoothing spreads its share over all C classes",
)
def smoothed_labels(draw: Draw) -> list[Case]:
    def case() -> Case:
        smoothing = 0.05 + 0.05 * draw.integer(1, 5)
        return scored(draw, 8, 4, label_smoothing=smoothing)

    little = scored(draw, 8, 4, label_smoothing=0.01 * draw.integer(1, 5))
    much = scored(draw, 8, 4, label_smoothing=0.55 + 0.05 * draw.integer(0, 8))
    full = scored(draw, 8, 4, label_smoothing=1.0)
    return [case(), much, little, full]


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
    # The mean still divides by the weights of the targets.
    cases.append({**case, "label_smoothing": 1.0})
    # A sample of a class that weighs nothing still has its smoothing term.
    weight = draw.uniform(4, low=0.5, high=3.0)
    weight[draw.integer(0, 4)] = 0.0
    unweighed = scored(draw, 9, 4, weight=weight, reduction="none")
    unweighed["target"] = draw.permutation(9) % 4
    return [*cases, {**unweighed, "label_smoothing": 0.2}]


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=same_within(),
    says="ignored targets and class weights together with other options",
    corners=['with reduction "none", the loss of an ignored target is 0'],
)
def options_together(draw: Draw) -> list[Case]:
    weight = draw.uniform(6, low=0.3, high=3.0)
    weight[draw.integer(0, 6)] = 9.0
    smoothed = {"weight": weight, "label_smoothing": 0.1}
    three = "ignored targets, weights, smoothing"
    tried: tuple[tuple[str, bool, Case], ...] = (
        ("weights", False, {"weight": weight, "reduction": "none"}),
        ("weights", False, {"weight": weight, "reduction": "sum"}),
        ("ignored targets", True, {"reduction": "none"}),
        ("ignored targets", True, {"reduction": "sum"}),
        ("ignored targets and weights", True, {"weight": weight}),
        ("ignored targets and smoothing", True, {"label_smoothing": 0.1}),
        (three, True, {**smoothed, "reduction": "none"}),
        (three, True, {**smoothed, "reduction": "sum"}),
    )
    cases = []
    for form, ignores, options in tried:
        case = scored(draw, 9, 6, **options)
        case = ignoring(draw, case) if ignores else case
        if "reduction" in options:
            form = f'{form} and reduction "{options["reduction"]}"'
        cases.append({**case, "form": form})
    ignored = {"ignore_index": draw.integer(0, 6), "label_smoothing": 0.2}
    form = "an ignored class and smoothing"
    return [*cases, {**scored(draw, 9, 6, **ignored), "form": form}]


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=with_all_digits,
    says="logits (N, C, d) with a target (N, d): the classes are dimension 1",
    corners=["neither need be contiguous"],
)
def extra_dimension(draw: Draw) -> list[Case]:
    return [
        scored(draw, 3, 5, 6, dtype=torch.float64),
        scored(draw, 4, 4, 4),
        scored(draw, 3, 5, 1),
        # as a model of sequences gives them: classes last, then transposed
        {
            "logits": draw.normal(3, 6, 5, std=2.0).transpose(1, 2),
            "target": draw.integers(0, 5, 6, 3).T,
        },
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=same_within(),
    says="logits (N, C, d) with the other options",
)
def extra_dimension_with_options(draw: Draw) -> list[Case]:
    # With as many positions as classes, weights that broadcast along the
    # positions raise nothing.
    weight = draw.uniform(4, low=0.3, high=3.0)
    ignored = ignoring(draw, scored(draw, 3, 4, 5, weight=weight))
    weighted = scored(draw, 3, 4, 4, weight=weight)
    # In one sample alone: a mean of the samples' means differs.
    padded = scored(draw, 3, 4, 5)
    padded["target"][draw.integer(0, 3), 1:4] = IGNORED
    smoothed = scored(draw, 2, 4, 4, label_smoothing=0.1, reduction="sum")
    both = scored(draw, 3, 4, 4, weight=weight, label_smoothing=0.2)
    # Where positions and classes are as many, a mean over the wrong ones of them
    # has the right sum.
    oblong = scored(draw, 3, 4, 6, label_smoothing=0.2, reduction="none")
    return [
        {**scored(draw, 4, 4, 4, reduction="none"), "form": 'reduction "none"'},
        {**scored(draw, 3, 5, 1, reduction="none"), "form": 'reduction "none"'},
        {**padded, "form": "ignored targets"},
        {**smoothed, "form": "smoothing"},
        {**oblong, "form": "smoothing"},
        {**weighted, "form": "weights"},
        {**both, "form": "weights and smoothing"},
        {
            **both,
            "reduction": "sum",
            "form": 'weights, smoothing and reduction "sum"',
        },
        {**ignored, "form": "weights and ignored targets"},
    ]


def nan_if_nothing_counts(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """The default comparison, with words for a NaN that is missing or too
    many."""
    (key,) = (one for one in ("loss", "mean") if one in expected.data)
    got, wanted = seen.data.get(key), expected.data[key]
    kinds = Tensor, float
    if isinstance(got, kinds) and _is_nan(wanted) and not _is_nan(got):
        return "Nothing counts here, so the mean must be NaN, and yours is not."
    if isinstance(got, kinds) and _is_nan(got) and not _is_nan(wanted):
        form = case.get("form", "where some labels count")
        return f"You return NaN {form}, where it must be a number."
    return difference(got, wanted, Tolerance(1e-5), key)


def _is_nan(value: Tensor | float) -> bool:
    return bool(torch.as_tensor(value).isnan().any())


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=nan_if_nothing_counts,
    says="nothing to count: the mean is NaN, the sum 0",
    corners=[
        "N is 0, all targets are ignored, or, without smoothing, all their weights "
        "are 0"
    ],
)
def nothing_to_count(draw: Draw) -> list[Case]:
    all_ignored = scored(draw, 5, 4, dtype=torch.float64)
    all_ignored["target"] = torch.full((5,), IGNORED)
    empty = scored(draw, 0, 4)
    cases = [
        {**case, "reduction": reduction, "form": f'for reduction "{reduction}"'}
        for case in (all_ignored, empty)
        for reduction in ("none", "sum", "mean")
    ]
    unweighed = scored(draw, 5, 4, weight=torch.zeros(4))
    cases.append({**unweighed, "form": "where all weights are 0"})
    weight = draw.uniform(4, low=0.3, high=3.0, dtype=torch.float64)
    weighted = {**all_ignored, "weight": weight, "label_smoothing": 0.1}
    cases.append({**weighted, "form": "with weights and smoothing"})
    # A sum of 0 counts only beside a sum that is none.
    return [*cases, scored(draw, 5, 4, reduction="sum")]


@check(
    "cross_entropy",
    probe=probes.loss_in_grad_mode,
    rule=leaves_grad_mode(same_form("loss")),
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="logits, target and weight are left as they were",
    corners=[
        "settings and random states, too, also under `torch.no_grad()`",
        "logits that ask for a gradient get no hook",
    ],
)
def leaves_arguments_alone(draw: Draw) -> list[Case]:
    weight = draw.uniform(4, low=0.3, high=3.0)
    as_class = draw.integer(0, 4)
    weighted = scored(draw, 6, 4, weight=weight, ignore_index=as_class)
    learning = scored(draw, 5, 4, weight=weight)
    learning["logits"].requires_grad_()
    cases = [
        scored(draw, 5, 4),
        scored(draw, 5, 4, weight=weight),
        ignoring(draw, scored(draw, 6, 4)),
        ignoring(draw, weighted, as_class),
        learning,
    ]
    last = ignoring(draw, scored(draw, 3, 4, 5))
    return [
        *({**case, "grad": True} for case in cases),
        {**last, "grad": False},
    ]


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=same_form("loss"),
    raises=("ValueError", "IndexError", "RuntimeError"),
    says="a target that is neither a class nor -100 raises an error",
    corners=["settings stay as they were then, too"],
)
def bad_targets_raise(draw: Draw) -> list[Case]:
    cases = [scored(draw, 6, 4)]
    for bad in (-1, 4, -101, 2**32 + 1):
        dtype = torch.float64 if bad < -99 else torch.float32
        case = scored(draw, 6, 4, dtype=dtype)
        case["target"][draw.integer(0, 6)] = bad
        cases.append(case)
    # a single class
    case = scored(draw, 6, 1)
    case["target"][draw.integer(0, 6)] = draw.choice((-1, 1))
    return [*cases, case]


@check(
    "cross_entropy",
    probe=probes.loss,
    rule=same_form("loss"),
    raises=("ValueError", "IndexError", "RuntimeError"),
    says="a bad target raises in the shape (N, d) and beside another "
    "`ignore_index`, too",
    corners=[
        "where `ignore_index` is another number, -100 is a bad target",
        "also with weights, with smoothing and for each reduction",
    ],
)
def bad_targets_with_options(draw: Draw) -> list[Case]:
    cases = [scored(draw, 3, 4, 2), scored(draw, 6, 4, ignore_index=1)]
    for bad in (-1, 4):
        case = scored(draw, 3, 4, 2)
        case["target"][draw.integer(0, 3), draw.integer(0, 2)] = bad
        cases.append(case)
    for bad in (IGNORED, -1, 4, -101, 2**32 + 1):
        case = scored(draw, 6, 4, ignore_index=1)
        case["target"][draw.integer(0, 6)] = bad
        cases.append(case)
    weight = draw.uniform(4, low=0.3, high=3.0)
    tried: tuple[dict[str, object], ...] = (
        {"weight": weight, "reduction": "none"},
        {"label_smoothing": 0.2, "reduction": "sum"},
    )
    for options in tried:
        for bad in (-1, 4):
            case = scored(draw, 6, 4, **options)
            case["target"][draw.integer(0, 6)] = bad
            cases.append(case)
        if "weight" in options:
            case = scored(draw, 3, 4, 2, **options, label_smoothing=0.2)
            case["target"][draw.integer(0, 3), draw.integer(0, 2)] = -1
            cases.append(case)
    padded = scored(draw, 6, 4, ignore_index=0)
    padded["target"][draw.integer(0, 6)] = IGNORED
    return [*cases, padded]


# class_mse


ROUNDING = 1e-5
"""Relative; the probe's float64 holds numbers that were computed in float32."""


def compared(scores: Tensor, target: Tensor, form: str) -> Case:
    return {"scores": scores, "target": target, "form": form}


def one_hot_rows(labels: Tensor, num_classes: int) -> Tensor:
    return torch.eye(num_classes)[labels]


def same_refused(case: Case, seen: Result, expected: Result) -> str | None:
    """The same forms refused, whatever the values of the others."""
    refused = "refused" in seen.data
    if refused == ("refused" in expected.data):
        return None
    if refused:
        return f"Your code refused {case['form']}, which it must take."
    return f"Your code accepted {case['form']}, which it must refuse."


def taken_or_refused(case: Case, seen: Result, expected: Result) -> str | None:
    """Values within `ROUNDING`, and of float64 scores within `DOUBLE`, whatever
    their dtype, and the same forms refused."""
    found = same_refused(case, seen, expected)
    if found or "refused" in expected.data:
        return found
    exact = case["scores"].dtype == torch.float64
    found = difference(
        seen.data["loss"],
        expected.data["loss"],
        Tolerance(DOUBLE, DOUBLE) if exact else Tolerance(ROUNDING),
        "loss",
    )
    return f"{found.rstrip('.')}, with {case['form']}." if found else None


@check(
    "class_mse",
    probe=probes.squared_error,
    rule=taken_or_refused,
    says="class indices (N,) are compared as one-hot rows",
    corners=[
        "for float64 scores with the digits of float64",
        "N and C are at least 1",
        "in no case is the error tiny beside the scores, or the sum of the squares "
        "no float16",
    ],
)
def mse_of_indices(draw: Draw) -> list[Case]:
    form = "class indices (N,)"
    wide = draw.normal(5, 7, dtype=torch.float64)
    return [
        compared(draw.normal(6, 5), draw.integers(0, 5, 6), form),
        compared(draw.normal(3, 8), draw.integers(0, 8, 3), form),
        compared(
            draw.normal(6, 5),
            draw.integers(0, 3, 6),
            f"{form} without the last class",
        ),
        compared(wide, draw.integers(0, 7, 5), form),
        compared(draw.normal(4, 1), draw.integers(0, 1, 4), f"{form}, C = 1"),
        compared(draw.normal(1, 5), draw.integers(0, 5, 1), f"{form}, N = 1"),
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    rule=taken_or_refused,
    says="class indices of every integer dtype: uint8, int8, int16, int32, int64",
)
def indices_of_any_integer_dtype(draw: Draw) -> list[Case]:
    cases = []
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        name = str(dtype).removeprefix("torch.")
        labels = draw.integers(0, 5, 6).to(dtype)
        cases.append(
            compared(draw.normal(6, 5), labels, f"class indices of {name}")
        )
    # As a mask, six uint8 labels fit the identity of six classes.
    square = draw.integers(0, 6, 6).to(torch.uint8)
    form = "class indices of uint8, N = C"
    # Past 127 there is no int8, past 255 no uint8: their bounds are no classes.
    large = torch.tensor([5, draw.integer(130, 250)], dtype=torch.uint8)
    return [
        *cases,
        compared(draw.normal(6, 6), square, form),
        compared(draw.normal(2, 300), large, "uint8 indices of 300 classes"),
        compared(
            draw.normal(3, 200),
            draw.integers(0, 128, 3).to(torch.int8),
            "int8 indices of 200 classes",
        ),
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    rule=taken_or_refused,
    also=[gives_no_warning],
    says="as many samples as classes: still one-hot rows, and no warning",
)
def as_many_samples_as_classes(draw: Draw) -> list[Case]:
    return [
        compared(
            draw.normal(n, n), draw.integers(0, n, n), "class indices, N = C"
        )
        for n in (4, 7)
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    rule=taken_or_refused,
    also=[gives_no_warning],
    says="a target of the shape of the scores is used as it is, and no warning",
    corners=[
        "rows need not be one-hot: any numbers, NaN too; above 2²⁴ for float64 "
        "scores alone",
        "for float64 scores with the digits of float64, whatever the dtype of "
        "the rows",
    ],
)
def mse_of_rows(draw: Draw) -> list[Case]:
    rows = one_hot_rows(draw.integers(0, 5, 6), 5)
    numbers = draw.integers(-3, 4, 4, 4)
    # Odd and above 2²⁴: not even float32 holds them.
    large = 2 * draw.integers(2**24, 2**25, 4, 3) + 1
    spoilt = draw.normal(6, 5)
    spoilt[draw.integer(0, 6), draw.integer(0, 5)] = math.nan
    return [
        compared(draw.normal(6, 5), rows, "one-hot rows of floats"),
        compared(draw.normal(6, 5), rows.long(), "one-hot rows of integers"),
        compared(
            draw.normal(4, 4, dtype=torch.float64),
            draw.uniform(4, 4),
            "rows of float32, scores of float64",
        ),
        *(
            compared(
                draw.normal(6, 5),
                rows.to(getattr(torch, dtype)),
                f"one-hot rows of {dtype}",
            )
            for dtype in (
                *("int32", "int16", "int8", "uint8"),
                *("float16", "bfloat16"),
            )
        ),
        compared(draw.normal(4, 4), numbers, "rows of integers, N = C"),
        compared(draw.normal(6, 1), draw.normal(6, 1), "rows (N, 1), C = 1"),
        compared(draw.normal(5, 6).T, rows, "scores that are not contiguous"),
        compared(draw.normal(5, 6), rows.T, "rows that are not contiguous"),
        compared(1e4 * draw.normal(6, 5), rows, "scores in the ten thousands"),
        compared(spoilt, rows, "a score that is NaN"),
        compared(draw.normal(6, 5), spoilt, "a target that is NaN"),
        compared(
            large + draw.normal(4, 3, dtype=torch.float64),
            large,
            "rows of large integers",
        ),
    ]


@check(
    "class_mse",
    probe=probes.squared_error,
    rule=same_refused,
    weight=2,
    says="any other target raises a ValueError",
    corners=[
        "floating-point numbers of shape (N,) or (C,), a column (N, 1), a "
        "single label",
        "labels or rows for another number of samples, rows (C, N), a stack of "
        "rows with a third dimension",
        "for a single sample, too: neither two labels, two rows nor numbers (C,) "
        "of any dtype fit it; no case has bools or complex numbers",
    ],
)
def other_targets_raise(draw: Draw) -> list[Case]:
    labels = draw.integers(0, 5, 5)
    rows = one_hot_rows(labels, 5)
    scores = draw.normal(5, 5)
    wide = draw.normal(4, 6)
    forms = [
        (labels, "class indices (N,)"),
        (labels.float(), "floating-point labels (N,)"),
        (labels[:, None], "a column (N, 1) of integers"),
        (labels[:, None].float(), "a column (N, 1) of floats"),
        (labels[:1], "one label for several rows"),
        (labels[0], "a label without dimensions"),
        (labels[:4], "labels for fewer samples"),
        (rows[:1], "one row for several"),
        (rows.expand(5, 5, 5), "a stack of rows with a third dimension"),
    ]
    column = draw.normal(6, 1), draw.normal(6)
    turned = draw.normal(4, 3), draw.uniform(3, 4)
    return [
        *(compared(scores, target, form) for target, form in forms),
        compared(wide, draw.normal(6), "floating-point numbers (C,)"),
        compared(wide, draw.normal(2, 4, 6), "a stack (2, N, C)"),
        compared(wide, draw.normal(1, 4, 6), "a stack (1, N, C)"),
        compared(wide[:1], draw.normal(6), "numbers (C,) for one sample"),
        compared(wide[:1], labels[0], "a label without dimensions, N = 1"),
        compared(wide[:1], labels[:2], "two labels for one sample"),
        compared(wide[:1], draw.integers(0, 2, 6), "integers (C,), N = 1"),
        compared(wide[:1], draw.normal(2, 6), "two rows for one sample"),
        compared(*column, "floating-point numbers (N,) for scores (N, 1)"),
        compared(*turned, "rows (C, N)"),
    ]


@check(
    "class_mse",
    probe=probes.squared_error_of_classes,
    raises=("ValueError", "IndexError", "RuntimeError"),
    rule=same_form("loss"),
    says="a class index below 0, or of C or above, raises an error",
    corners=["settings stay as they were then, too"],
)
def bad_classes_raise(draw: Draw) -> list[Case]:
    cases = []
    for bad in (None, -1, 5, 7, 1 - 2**32):
        target = draw.integers(0, 5, 6)
        if bad is not None:
            target[draw.integer(0, 6)] = bad
        cases.append({"scores": draw.normal(6, 5), "target": target})
        if bad in (-1, 5):
            dtype = torch.int8 if bad < 0 else torch.uint8
            cases.append({**cases[-1], "target": target.to(dtype)})
            # a single class
            single = (target == bad) * (1 if bad > 0 else -1)
            cases.append({"scores": draw.normal(6, 1), "target": single})
    return cases


def has_the_dtype(case: Case, seen: Result, expected: Result) -> str | None:
    found = same_form("loss")(case, seen, expected)
    if found:
        return found
    got, wanted = (
        one.data["dtype"].removeprefix("torch.") for one in (seen, expected)
    )
    if got == wanted:
        return None
    return f"The loss has the dtype {got}, but the scores are {wanted}."


@check(
    "class_mse",
    probe=probes.squared_error,
    rule=has_the_dtype,
    says="the result has the dtype of the scores",
)
def dtype_of_the_scores(draw: Draw) -> list[Case]:
    half = draw.normal(4, 3, dtype=torch.float16)
    return [
        {"scores": draw.normal(4, 3), "target": draw.uniform(4, 3).double()},
        {"scores": half, "target": draw.integers(0, 3, 4)},
        {"scores": half.bfloat16(), "target": draw.integers(0, 3, 4)},
        {"scores": draw.normal(4, 3).double(), "target": draw.uniform(4, 3)},
        {"scores": draw.normal(4, 3), "target": draw.integers(0, 3, 4)},
    ]


@check(
    "class_mse",
    probe=probes.gradient_of_squared_error,
    rule=gradient_reaches("scores"),
    says="the gradient with respect to the scores",
    corners=[
        "a multiple of the error has the same multiple of the gradient, also where "
        "it is large or negative",
        "zeros where all scores are the numbers of the target",
    ],
)
def gradient_of_the_squared_error(draw: Draw) -> list[Case]:
    labels = draw.integers(0, 3, 5)
    rows = one_hot_rows(labels, 3)
    right = {"scores": rows.float(), "target": labels}
    cases: list[Case] = [
        {"scores": draw.normal(5, 6), "target": draw.integers(0, 6, 5)},
        {"scores": draw.normal(5, 3), "target": rows},
        {**right, "form": "scores that are the rows of the target"},
    ]
    return scaled(draw, cases)


@check(
    "class_mse",
    probe=probes.squared_error_in_grad_mode,
    rule=leaves_grad_mode(same_refused),
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="scores and target are left as they were",
    corners=[
        "settings and random states, too, also under `torch.no_grad()`",
        "scores that ask for a gradient get no hook",
    ],
)
def leaves_scores_and_target_alone(draw: Draw) -> list[Case]:
    integers = draw.integers(-3, 4, 4, 3)
    rows = compared(draw.normal(4, 3), draw.normal(4, 3), "rows of floats")
    labels = draw.integers(0, 3, 4)
    learning = draw.normal(4, 3).requires_grad_()
    return [
        {**compared(draw.normal(4, 3), labels, "class indices"), "grad": True},
        {**rows, "grad": True},
        {**rows, "grad": False},
        {
            **compared(draw.normal(4, 3), integers, "rows of integers"),
            "grad": True,
        },
        {**compared(learning, labels.int(), "class indices"), "grad": True},
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


def changed(case: Case, change: Callable[[Tensor], Tensor]) -> Case:
    """The case with other logits."""
    pairs = [(change(logits), labels) for logits, labels in case["batches"]]
    return {"batches": pairs}


def with_padding(case: Case, *ignored: int) -> Case:
    """The case with `ignored[i]` labels of batch i set to -100: from its beginning
    on, or every other one first, so that it begins with one that counts."""
    batches = []
    for i, (logits, labels) in enumerate(case["batches"]):
        order = list(range(len(labels)))
        if i % 2 == 0:
            order = order[1::2] + order[::2]
        padded = labels.clone()
        padded[order[: ignored[i]]] = IGNORED
        batches.append((logits, padded))
    return {"batches": batches}


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    on=("mean",),
    rtol=1e-5,
    says="batches of one size: the library's mean over all samples",
    corners=["to about 1e-5, for which float32 is enough"],
)
def even_batches(draw: Draw) -> list[Case]:
    refused = batches_of(draw, 4, 4)["batches"]
    refused[1][1][draw.integer(0, 4)] = 6
    return [
        {**batches_of(draw, 4, 4), "refused": refused},
        batches_of(draw, 4, 4, 4),
        batches_of(draw, 7),
        # Scores that are probabilities are scores nevertheless.
        changed(batches_of(draw, 4, 4), lambda logits: logits.softmax(1)),
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    weight=2,
    on=("mean",),
    rtol=1e-5,
    says="batches of unequal size: every sample counts the same",
    corners=[
        "logits may be large, or `-inf`; so may the mean, but no case has an "
        "infinite loss before the last label"
    ],
)
def uneven_batches(draw: Draw) -> list[Case]:
    masked = batches_of(draw, 3, 2)
    for i, (logits, labels) in enumerate(masked["batches"]):
        # A class that is masked: of the last label it is the right one.
        logits[-1, (labels[-1] + 1 - i) % 6] = -math.inf
    return [
        masked,
        changed(batches_of(draw, 3, 2), lambda logits: 1000 * logits),
        batches_of(draw, 4, 4, 4, 4, 1),
        batches_of(draw, 1, 8, 3),
        changed(batches_of(draw, 2, 1, 1, 1), lambda logits: logits.float()),
        # more than uint8 or bfloat16 can count
        batches_of(draw, 101, 101, 101),
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    on=("mean",),
    rtol=1e-5,
    says="labels of -100 are not counted, also where they fill a batch",
    corners=[
        "also where that batch has one label, and where there is one batch alone",
        "a NaN among the logits matters where the label counts",
    ],
)
def padded_batches(draw: Draw) -> list[Case]:
    broken = batches_of(draw, 4, 3, 2)
    broken["batches"][1][0][2, draw.integer(0, 6)] = math.nan
    # One sample so sure and right that its loss is 0, which counts nevertheless.
    sure = batches_of(draw, 4, 3)
    logits, labels = sure["batches"][0]
    logits[3, labels[3]] = 2000.0
    return [
        with_padding(batches_of(draw, 4, 4, 4), 3, 0, 1),
        with_padding(batches_of(draw, 6, 5, 2), 0, 4, 1),
        with_padding(batches_of(draw, 4, 3, 4), 1, 3, 0),
        # a batch of one label, which is padding, and a single batch
        with_padding(batches_of(draw, 4, 1, 3), 1, 1, 0),
        with_padding(batches_of(draw, 5), 2),
        with_padding(sure, 1, 0),
        with_padding(broken, 1, 1, 0),
        with_padding(broken, 0, 3, 0),
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    rule=nan_if_nothing_counts,
    says="no label counts at all: NaN; some do: a number",
)
def all_padded(draw: Draw) -> list[Case]:
    # Every loss is exactly 0, which is a number.
    sure = batches_of(draw, 3, 2)
    for logits, labels in sure["batches"]:
        logits[torch.arange(len(labels)), labels] = 2000.0
    return [
        with_padding(batches_of(draw, 3, 2), 3, 2),
        with_padding(batches_of(draw, 3, 2), 3, 1),
        sure,
    ]


def the_same_from_a_list(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """The default comparison of the mean. With padding the mean of a list is the
    measure, and right or not: that is the business of another check."""
    found = difference(
        seen.data["mean"], expected.data["mean"], Tolerance(1e-5), "mean"
    )
    if found or seen.data["as_from_a_list"]:
        return found
    return "With padding, batches of a generator have another mean than a list."


@check(
    "mean_loss",
    probe=probes.mean_of_generator,
    rule=the_same_from_a_list,
    says="batches that come from a generator, in one pass",
    corners=["each has tensors of its own"],
)
def batches_from_a_generator(draw: Draw) -> list[Case]:
    padded = with_padding(batches_of(draw, 3, 2), 1, 1)
    return [{**batches_of(draw, 3, 5, 2), "padded": padded["batches"]}]


def told_to_warn(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison, with words for a warning that was hidden. Where no label
    counts, the number is the business of another check."""
    mean = expected.data["mean"]
    found = None
    if not math.isnan(mean):
        found = difference(seen.data["mean"], mean, Tolerance(1e-5), "mean")
    more = seen.data["number_of_warnings"] > expected.data["number_of_warnings"]
    if found is None and more and not seen.effects.warnings:
        return "You hide a warning: an argument of yours is still deprecated."
    return found


@check(
    "mean_loss",
    probe=probes.mean_and_warnings,
    rule=told_to_warn,
    also=[gives_no_warning],
    says="no deprecated argument: nothing warns",
    corners=["to hide the warning is no answer"],
)
def no_deprecated_arguments(draw: Draw) -> list[Case]:
    return [batches_of(draw, 3, 3), with_padding(batches_of(draw, 3, 2), 3, 2)]


def is_a_float(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison, after the type. Where no label counts, the number is
    the business of another check."""
    if seen.data["type"] != expected.data["type"]:
        return f"You return {seen.data['type']}, but it should be a float."
    if math.isnan(expected.data["mean"]):
        return None
    return difference(seen.data, expected.data, Tolerance(1e-5))


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    rule=is_a_float,
    says="the result is a Python float",
    corners=["also where it is 0, and where no label counts"],
)
def python_float(draw: Draw) -> list[Case]:
    sure = batches_of(draw, 3)
    logits, labels = sure["batches"][0]
    logits[torch.arange(3), labels] = 2000.0
    padding = with_padding(batches_of(draw, 2), 2)
    return [batches_of(draw, 4, 4), sure, padding]


def leaves_the_list(case: Case, seen: Result, expected: Result) -> str | None:
    """The length of the list, whatever the mean is."""
    if seen.data["number_of_batches"] != expected.data["number_of_batches"]:
        return "Your code changed the caller's list: it has another length."
    return same_form("mean")(case, seen, expected)


@check(
    "mean_loss",
    probe=probes.mean_and_list,
    rule=leaves_grad_mode(leaves_the_list),
    also=[leaves_inputs_alone, leaves_state_alone, leaves_rng_alone],
    says="logits and labels are left as they were, and so is a list of batches",
    corners=[
        "settings and random states, too, also under `torch.no_grad()`",
        "logits that ask for a gradient keep asking, and get no hook",
    ],
)
def leaves_batches_alone(draw: Draw) -> list[Case]:
    learning = changed(
        batches_of(draw, 3, 2), lambda logits: logits.requires_grad_()
    )
    return [
        {**batches_of(draw, 3, 3), "grad": True},
        {**with_padding(batches_of(draw, 4, 4), 2, 2), "grad": False},
        {**learning, "grad": True},
    ]


@check(
    "mean_loss",
    probe=probes.mean_of_list,
    rule=same_form("mean"),
    raises=("ValueError", "IndexError", "RuntimeError"),
    says="a label that is neither a class nor -100 raises an error",
    corners=["settings stay as they were then, too"],
)
def bad_labels_in_a_batch_raise(draw: Draw) -> list[Case]:
    cases = [batches_of(draw, 3, 3)]
    for bad in (-1, 6, -99, -101, 2**32 + 1):
        case = batches_of(draw, 3, 3)
        case["batches"][draw.integer(0, 2)][1][draw.integer(0, 3)] = bad
        cases.append(case)
    all_bad = batches_of(draw, 3, 3)
    all_bad["batches"][draw.integer(0, 2)][1].fill_(-1)
    return [*cases, all_bad]
