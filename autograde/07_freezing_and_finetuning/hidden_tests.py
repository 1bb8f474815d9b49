"""What is checked in chapter 07: freezing and fine-tuning."""

import math
from typing import Any

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

F64 = torch.float64
EXACT = 1e-9
"""Rounding in float64 stays below 1e-13 here; wrong updates are off by 1e-4 or more."""


def explained(*sentences: Rule, on: tuple[str, ...], tolerance: float) -> Rule:
    """A rule: these keys are those of the reference. Sentences are tried first."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        for sentence in sentences:
            words = sentence(case, seen, expected)
            if words:
                return words
        return difference(
            {key: seen.data.get(key) for key in on},
            {key: expected.data[key] for key in on},
            Tolerance(tolerance, tolerance),
        )

    return rule


# freeze, unfreeze, trainable_sgd


def prefixes_of(case: Case) -> str:
    prefixes = case.get("prefixes") or [case["prefix"]]
    return ", ".join(f"`{prefix}`" for prefix in prefixes)


def frozen_names(case: Case, seen: Result, expected: Result) -> str | None:
    """Which flag is wrong, and why."""
    found = seen.data.get("flags", {})
    for name, flag in expected.data["flags"].items():
        if found.get(name) is flag:
            continue
        under_it = f"The prefix is {prefixes_of(case)}."
        if flag:
            return (
                f"`{name}` is frozen and should not be. {under_it} A name that "
                "lies under it goes on with a dot; and what somebody else froze "
                "is not yours to thaw."
            )
        return (
            f"`{name}` has `requires_grad=True` and should be frozen. {under_it} "
            "The flag belongs to each parameter: one that is set on the module "
            "is read by nobody. And what was frozen elsewhere stays so."
        )
    return None


def modes_stay(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data.get("the_modes_stayed") is not True:
        return (
            "The model, or a layer, is in another mode than before. Neither "
            "`freeze` nor `unfreeze` calls `eval()` or `train()`."
        )
    return None


def gradients_dropped(case: Case, seen: Result, expected: Result) -> str | None:
    found = seen.data.get("gradients", {})
    for name, gradient in expected.data["gradients"].items():
        if gradient is None and found.get(name) is not None:
            return (
                f"`{name}` still has a gradient. `freeze` makes it None, so that "
                "no optimizer moves the parameter by it."
            )
        if gradient is not None and found.get(name) is None:
            return (
                f"The gradient of `{name}` is gone. It was not to be touched."
            )
    return None


def held_as_made(case: Case, seen: Result, expected: Result) -> str | None:
    """Which parameter is held wrongly."""
    if seen.data.get("empty groups"):
        return "The optimizer has got a group without parameters."
    if seen.data.get("how often parameters are held"):
        return "The optimizer holds a parameter twice."
    key = "settings of what the optimizer holds"
    found, right = seen.data.get(key, {}), expected.data[key]
    for name in right:
        if name not in found:
            return f"The optimizer does not hold `{name}`, and should."
    for name in found:
        if name not in right:
            if "prefix" not in case:
                return f"The optimizer holds `{name}`, which is frozen."
            return (
                f"The optimizer holds `{name}`, which was not to be added: it "
                "does not lie under the prefix, or is frozen."
            )
    for name, settings in right.items():
        words = ("lr", "momentum", "weight_decay")
        for word, one, other in zip(words, found[name], settings, strict=True):
            if abs(one - other) > EXACT:
                return (
                    f"`{name}` is held with {word} {one:.4g}. It should be "
                    f"{other:.4g}."
                )
    return None


FLAT = [
    f"{layer}.{kind}"
    for layer in ("layer1", "layer10", "layer2", "head")
    for kind in ("weight", "bias")
]
NO_SUCH_PART = ("ValueError", "KeyError", "AttributeError")


def weights(draw: Draw, model: str = "flat", **options: Any) -> Case:
    return {
        "model": model,
        "values": draw.normal(41, dtype=F64),
        "x": draw.normal(6, 3, dtype=F64),
        **options,
    }


@check(
    "freeze",
    probe=probes.flags_after,
    weight=3,
    rule=explained(frozen_names, on=("flags", "values"), tolerance=0),
    says="`freeze`: what lies under the prefix is frozen, weights and biases, "
    "and no more",
    corners=["what somebody else froze stays frozen", "no prefix is empty"],
)
def freezes_what_lies_under(draw: Draw) -> list[Case]:
    return [
        weights(draw, prefixes=["layer2"]),
        weights(draw, prefixes=["layer1"]),
        weights(draw, prefixes=["head"]),
        weights(draw, "nested", prefixes=["encoder"]),
        weights(draw, "nested", prefixes=["encoder.layer1"]),
        weights(draw, "nested", prefixes=["layer1"]),
        weights(draw, "nested", prefixes=["head.1"]),
        weights(draw, "nested", prefixes=["encoder.gain"]),
        weights(draw, "tied", prefixes=["body"]),
        weights(draw, "wrapped", prefixes=["layer1", "hollow"]),
    ]


@check(
    "freeze",
    probe=probes.flags_after,
    on=("names", "values"),
    rtol=0,
    atol=0,
    says="`freeze` returns the list of the names under the prefix, in the "
    "model's order, of frozen ones too",
)
def returns_the_names(draw: Draw) -> list[Case]:
    return [
        weights(draw, prefixes=["layer2"]),
        weights(draw, prefixes=["layer2", "layer2"]),
        weights(draw, prefixes=["head"], frozen=["head.bias"]),
        weights(draw, "nested", prefixes=["encoder", "encoder.layer11"]),
    ]


@check(
    "freeze",
    probe=probes.flags_after,
    rule=explained(
        frozen_names,
        gradients_dropped,
        modes_stay,
        on=(
            "flags",
            "gradients",
            "values",
            "the_modes_stayed",
            "the_layers'_settings_stayed",
            "the_parameters_are_the_same_objects",
        ),
        tolerance=0,
    ),
    also=[leaves_state_alone, leaves_rng_alone],
    says="`freeze` changes nothing else: flags, gradients, modes of the rest",
    corners=["nor what a layer was made with, as a BatchNorm's momentum"],
)
def leaves_the_rest_alone(draw: Draw) -> list[Case]:
    return [
        weights(draw, prefixes=["layer2"], frozen=["head.weight"]),
        weights(draw, prefixes=["head", "layer2"]),
        weights(draw, prefixes=["head"], frozen=["head.bias"]),
        weights(draw, prefixes=["layer2"], training=False),
        weights(draw, "normed", prefixes=["body", "head"]),
    ]


@check(
    "freeze",
    probe=probes.trained_after_freezing,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="a part that is frozen from the beginning stays bit for bit, and the "
    "rest is trained",
)
def stays_in_training(draw: Draw) -> list[Case]:
    return [
        weights(draw, prefix=prefix, steps_before=0, set_to_none=True)
        for prefix in ("layer2", "head")
    ]


@check(
    "freeze",
    probe=probes.trained_after_freezing,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="a part that is frozen after some steps stays too, with momentum, "
    "weight decay and `zero_grad(set_to_none=False)`",
)
def stays_if_frozen_later(draw: Draw) -> list[Case]:
    return [
        weights(draw, prefix=prefix, steps_before=2, set_to_none=False)
        for prefix in ("layer2", "head")
    ]


def after_unfreezing(
    draw: Draw, prefix: str, held: list[str], **options: Any
) -> Case:
    return weights(
        draw, prefix=prefix, held=held, lr=0.05 + 0.01 * draw.integer(1, 5)
    ) | dict(options)


def without(*layers: str) -> list[str]:
    return [name for name in FLAT if name.split(".")[0] not in layers]


def under(*layers: str) -> list[str]:
    return [name for name in FLAT if name.split(".")[0] in layers]


@check(
    "freeze",
    probe=probes.trained_after_unfreezing,
    weight=2,
    rule=explained(
        frozen_names,
        modes_stay,
        on=(
            "flags",
            "gradients",
            "how often parameters are held",
            "values",
            "unfreezing_left_the_values_as_they_were",
            "the_modes_stayed",
            "the_layers'_settings_stayed",
        ),
        tolerance=EXACT,
    ),
    also=[leaves_state_alone],
    says="`unfreeze`: what is unfrozen moves again, whether the optimizer held "
    "all, some or none of it",
    corners=[
        "values, gradients, other flags, the modes and what a layer was made "
        "with stay; a `grad` of None stays None",
        "the optimizer may be another than SGD, and have settings of every kind",
    ],
)
def moves_again(draw: Draw) -> list[Case]:
    frozen = under("layer2")
    return [
        after_unfreezing(draw, "layer2", without("layer2"), frozen=frozen),
        after_unfreezing(draw, "layer2", FLAT, frozen=frozen),
        after_unfreezing(
            draw,
            "layer2",
            without("layer2") + frozen[:1],
            frozen=frozen,
            earlier=False,
        ),
        after_unfreezing(
            draw,
            "layer2",
            without("layer2", "head"),
            frozen=[*frozen, *under("head")],
            training=False,
        ),
        # the optimizer holds another frozen part
        after_unfreezing(
            draw, "layer2", FLAT, frozen=[*frozen, *under("head")]
        ),
        # trained, frozen by hand and unfrozen: the momentum is still there
        after_unfreezing(draw, "layer2", FLAT, frozen_later=frozen),
        # numbers do not tell parameters apart
        after_unfreezing(
            draw,
            "layer2",
            without("layer2"),
            frozen=frozen,
            alike=["layer2.bias", "layer10.bias"],
        ),
        after_unfreezing(
            draw,
            "body",
            ["head.weight", "head.bias"],
            model="tied",
            frozen=["body.one.weight", "body.two.weight"],
        ),
        after_unfreezing(
            draw,
            "body",
            ["head.weight", "head.bias"],
            model="normed",
            frozen=["body.norm.weight", "body.norm.bias"],
        ),
        # its parameter is neither weight nor bias
        after_unfreezing(
            draw,
            "encoder.gain",
            ["layer1.weight", "layer1.bias", "head.1.weight"],
            model="nested",
            frozen=["encoder.gain.scale"],
        ),
        after_unfreezing(
            draw,
            "hollow",
            ["head.weight", "head.bias"],
            model="wrapped",
            frozen=["hollow.one", "hollow.two"],
        ),
        after_unfreezing(
            draw, "layer2", without("layer2"), frozen=frozen, adam=True
        ),
    ]


@check(
    "freeze",
    probe=probes.trained_after_unfreezing,
    weight=2,
    rule=explained(
        held_as_made,
        on=("settings of what the optimizer holds", "names", "empty groups"),
        tolerance=EXACT,
    ),
    says="`unfreeze` returns the names; what lies under the prefix, and "
    "nothing else, joins with the settings that the optimizer was made with",
    corners=[
        "one that it holds is not added again, and no empty group is added",
        "a parameter may hold no numbers",
        "it was made of parameters, not of `named_parameters()`, and no "
        "scheduler is in play",
    ],
)
def joins_with_the_settings(draw: Draw) -> list[Case]:
    frozen = under("layer2")
    return [
        after_unfreezing(draw, "layer2", without("layer2"), frozen=frozen),
        after_unfreezing(draw, "layer2", FLAT, frozen=frozen),
        after_unfreezing(draw, "layer2", without("layer2"), frozen=frozen[:1]),
        after_unfreezing(
            draw,
            "hollow",
            ["head.weight", "head.bias", "hollow.one"],
            model="wrapped",
            frozen=["hollow.one", "hollow.two"],
        ),
        after_unfreezing(
            draw,
            "hollow",
            ["head.weight", "head.bias"],
            model="wrapped",
            frozen=["hollow.one", "hollow.two"],
        ),
        # what else the optimizer does not hold belongs to somebody else
        after_unfreezing(
            draw, "layer2", without("layer2", "head"), frozen=frozen
        ),
        after_unfreezing(
            draw,
            "encoder.gain",
            ["layer1.weight", "layer1.bias", "head.1.weight"],
            model="nested",
            frozen=["encoder.gain.scale"],
        ),
    ]


def refuses_prefix(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data.get("refused") == expected.data["refused"]:
        return None
    call, prefix = case["call"], case["prefix"]
    if expected.data["refused"]:
        return (
            f"`{call}` accepts the prefix `{prefix}`, under which no parameter "
            "lies."
        )
    return (
        f"`{call}` refuses the prefix `{prefix}`, under which parameters lie."
    )


def same_flags(case: Case, seen: Result, expected: Result) -> str | None:
    if expected.data["refused"]:
        return None
    return frozen_names(case, seen, expected)


@check(
    "freeze",
    probe=probes.prefix_given,
    rule=explained(
        refuses_prefix, same_flags, on=("refused", "values"), tolerance=0
    ),
    says="`freeze` and `unfreeze` refuse a prefix with no parameter under it: "
    "a `ValueError`, a `KeyError` or an `AttributeError`",
    corners=[
        "there is no such part, or one without parameters, or it is the name "
        "of a parameter"
    ],
)
def refuses_unknown_prefixes(draw: Draw) -> list[Case]:
    part = draw.choice(["layer1", "layer2", "layer10", "head"])
    missing = f"layer{draw.integer(3, 10)}"
    kind = draw.choice(["weight", "bias"])
    prefixes = (part, "layer", "act", missing, f"{part}.{kind}")
    return [
        weights(draw, call=call, prefix=prefix)
        for call in ("freeze", "unfreeze")
        for prefix in prefixes
    ] + [
        # there is an `encoder_head`
        weights(draw, "nested", call=call, prefix="encoder.head")
        for call in ("freeze", "unfreeze")
    ]


HELD = (
    "settings of what the optimizer holds",
    "how often parameters are held",
    "empty groups",
)


def sgd(draw: Draw, model: str = "flat", **options: Any) -> Case:
    return weights(
        draw,
        model,
        lr=0.01 * draw.integer(1, 9),
        momentum=0.1 * draw.integer(1, 9),
        weight_decay=0.02 * draw.integer(1, 9),
    ) | dict(options)


@check(
    "freeze",
    probe=probes.optimizer_made,
    weight=2,
    rule=explained(
        held_as_made,
        on=(*HELD, "is_sgd", "values"),
        tolerance=EXACT,
    ),
    also=[gives_no_warning, leaves_state_alone],
    says="`trainable_sgd` holds each trainable parameter once, with these "
    "settings, and no other",
    corners=[
        "it is made of parameters, so that `unfreeze` can add to it",
        "a setting may be 0",
        "one that holds no numbers is held, too",
    ],
)
def optimizer_of_the_trainable(draw: Draw) -> list[Case]:
    return [
        sgd(draw, frozen=under("layer1", "layer2")),
        sgd(draw, frozen=["head.bias", "layer10.weight"], by_place=True),
        sgd(draw, momentum=0.0, weight_decay=0.0),
        sgd(draw, frozen=FLAT[:-1]),
        sgd(draw, "wrapped", lr=0.0),
    ]


@check(
    "freeze",
    probe=probes.optimizer_made,
    rule=same_form("values", exact=["is_sgd"]),
    raises=("ValueError",),
    says="`trainable_sgd` raises a `ValueError` if everything is frozen",
)
def refuses_nothing_to_train(draw: Draw) -> list[Case]:
    return [sgd(draw, frozen=FLAT), sgd(draw, frozen=FLAT[:-1])]


@check(
    "freeze",
    probe=probes.flags_after,
    on=("flags", "names", "gradients"),
    rtol=0,
    atol=0,
    says="`freeze`: a shared parameter is frozen under each of its names",
    corners=[
        "if both names lie under the prefix, you may return one of them or both"
    ],
)
def freezes_shared_parameters(draw: Draw) -> list[Case]:
    return [
        weights(draw, "shared", prefixes=[prefix])
        for prefix in ("first", "last")
    ]


@check(
    "freeze",
    probe=probes.trained_after_unfreezing,
    on=("flags", "names", "how often parameters are held", "values"),
    rtol=EXACT,
    atol=EXACT,
    says="`unfreeze`: a shared parameter is unfrozen under each of its names, "
    "and held once",
)
def unfreezes_shared_parameters(draw: Draw) -> list[Case]:
    frozen = ["first.weight", "last.weight", "last.bias", "first.bias"]
    known = ["middle.weight", "middle.bias"]
    return [
        after_unfreezing(draw, prefix, held, model="shared", frozen=frozen)
        for prefix in ("first", "last")
        for held in (known, [*known, "first.weight"])
    ]


@check(
    "freeze",
    probe=probes.optimizer_made,
    rule=explained(held_as_made, on=(*HELD[:2], "values"), tolerance=EXACT),
    also=[gives_no_warning],
    says="`trainable_sgd` holds a shared parameter once",
)
def holds_shared_parameters_once(draw: Draw) -> list[Case]:
    return [sgd(draw, "shared"), sgd(draw, "shared", frozen=["middle.bias"])]


# PartlyFrozen


def frozen_stay(case: Case, seen: Result, expected: Result) -> str | None:
    """Which frozen number has moved."""
    for kind, words in (
        (
            "frozen_buffers",
            "a buffer of a frozen part. The part, or a layer within it, was in "
            "training mode in a forward pass: `eval()` of the whole part has to "
            "come after the `train()` of all.",
        ),
        ("frozen_weights", "a parameter of a frozen part. It was trained."),
    ):
        found = seen.data.get(kind, {})
        for name, value in expected.data[kind].items():
            one = found.get(name)
            if one is None or not one.equal(value):
                return f"`{name}` is not as it was: {words}"
    return None


def rest_in_its_mode(case: Case, seen: Result, expected: Result) -> str | None:
    """Which layer of the rest is in the wrong mode, and after which call."""
    key = probes.MODES_OF_THE_REST
    for call, found, right in zip(
        case["modes"], seen.data.get(key, []), expected.data[key], strict=False
    ):
        called = f"net.model.{call}()" if call == "head.eval" else f"net.{call}"
        called = called if called.endswith(")") else f"{called}()"
        for name, flag in right.items():
            if found.get(name) is not flag:
                return (
                    f"After `{called}`, `{name}.training` is "
                    f"{found.get(name)}. It should be {flag}: the rest follows "
                    "`net.train()` and `net.eval()` as it does without a wrapper."
                )
    return None


def passes_through(case: Case, seen: Result, expected: Result) -> str | None:
    """The gradients are right, in whatever mode the rest is said to be."""
    wrong = explained(on=("gradients", "of_the_input"), tolerance=EXACT)(
        case, seen, expected
    )
    return wrong and (rest_in_its_mode(case, seen, expected) or wrong)


follows_its_mode = explained(
    rest_in_its_mode,
    on=(
        "outs",
        "the_net_was_returned",
        probes.MODES_OF_THE_REST,
        "the_layers'_settings_stayed",
        "state",
    ),
    tolerance=EXACT,
)


def partly(
    draw: Draw, net: str, *prefixes: str, shape: Any = (6, 3), **options: Any
) -> Case:
    return {
        "net": net,
        "prefixes": list(prefixes),
        "values": draw.normal(67, dtype=F64),
        "x": draw.normal(*shape, mean=1.0, std=2.0, dtype=F64),
        "modes": ["train"],
        **options,
    }


def with_odd_rows(case: Case) -> Case:
    """The same case with one row of large numbers and one that holds a NaN."""
    case["x"][1] = 1e12
    case["x"][2, 0] = math.nan
    return case


IMAGES = (5, 2, 6, 6)


@check(
    "partly_frozen",
    probe=probes.trained_partly,
    weight=3,
    rule=explained(
        frozen_stay,
        on=("frozen_buffers", "the_rest_was_trained"),
        tolerance=0,
    ),
    says="after `net.train()` and three steps the frozen statistics are as before",
    corners=["also in a `copy.deepcopy` of the net"],
)
def statistics_stay(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block1"),
        partly(draw, "rows", "block1", "block2"),
        partly(draw, "rows alone", "block1", modes=["eval", "train(True)"]),
        partly(draw, "rows", "block1", copied=True),
    ]


@check(
    "partly_frozen",
    probe=probes.trained_partly,
    on=("frozen_buffers", "the_rest_was_trained", "outs"),
    rtol=EXACT,
    atol=EXACT,
    says="the frozen statistics stay also if nobody has called `train` or "
    "`eval` yet",
)
def frozen_from_the_beginning(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows alone", "block1", modes=[]),
        partly(draw, "rows", "block1", "block10", modes=[]),
    ]


@check(
    "partly_frozen",
    probe=probes.trained_partly,
    weight=2,
    on=(
        "frozen_weights",
        "a_frozen_parameter_has_a_gradient_or_asks_for_one",
        "the_rest_was_trained",
    ),
    rtol=0,
    atol=0,
    also=[leaves_state_alone],
    says="the frozen parameters stay and get no gradient",
    corners=[
        "in both modes, and before either is asked for",
        "a gradient that stood in `grad` before may stay",
        "parameters may have any name, or two",
        "no setting of PyTorch is changed",
    ],
)
def weights_stay(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block1"),
        partly(draw, "rows", "block2", "head", modes=["train", "eval"]),
        partly(draw, "single norms", "norm", modes=["eval"]),
        partly(draw, "own parameters", "block1"),
        partly(draw, "own parameters", "block2", modes=[]),
        partly(draw, "in two places", "last"),
    ]


@check(
    "partly_frozen",
    probe=probes.trained_partly,
    weight=2,
    on=("rest_weights", "rest_buffers", "outs"),
    rtol=EXACT,
    atol=EXACT,
    says="the rest is trained, other normalizations move their statistics",
    corners=["what was frozen before stays frozen"],
)
def the_rest_is_trained(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block1"),
        partly(draw, "rows", "block1", "block2"),
        partly(draw, "rows", "block10"),
        partly(draw, "namesakes", "norm"),
        partly(draw, "namesakes", "body.norm"),
        partly(
            draw,
            "rows",
            "block1",
            frozen_before=["head.bias"],
            modes=["eval", "train"],
        ),
    ]


@check(
    "partly_frozen",
    probe=probes.output_of_part,
    weight=2,
    rtol=EXACT,
    atol=EXACT,
    says="in a frozen part no sample depends on the others of its batch",
)
def independent_of_the_batch(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows alone", "block1"),
        partly(draw, "rows alone", "block1", modes=[]),
        partly(draw, "rows alone", "block1", modes=["eval"]),
    ]


@check(
    "partly_frozen",
    probe=probes.gradients_before_part,
    rule=passes_through,
    says="a gradient passes through a frozen part",
    corners=["in both modes, also where every part is frozen"],
)
def gradients_pass_through(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block10"),
        partly(draw, "rows", "block2", "head"),
        partly(draw, "rows", "block10", modes=["eval"]),
        partly(draw, "rows alone", "block1", "head"),
    ]


@check(
    "partly_frozen",
    probe=probes.outputs_in_modes,
    weight=2,
    rule=follows_its_mode,
    says="`train` and `eval` set the rest, return the net and can be called "
    "in turn",
    corners=[
        "`net.training` follows, too, and the model's hooks run",
        "a layer of the rest that somebody put into eval follows `net.train()` "
        "again; what a layer was made with stays",
        "`net(x)` is what the model gives, also where that is large or NaN",
        "who calls `net.model.train()` goes around the wrapper",
        "no case changes the list of names once the net is made",
    ],
)
def follows_the_modes(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block1", modes=["train", "eval", "train(True)"]),
        partly(draw, "rows", "block2", modes=["train(False)", "train"]),
        partly(draw, "rows", "head", modes=["eval", "train", "train(False)"]),
        partly(draw, "rows", "block1", hooked=True),
        partly(draw, "rows", "block1", modes=["train", "head.eval", "train"]),
        with_odd_rows(partly(draw, "own modes", "block1", modes=["train"])),
    ]


@check(
    "partly_frozen",
    probe=probes.outputs_in_modes,
    rule=follows_its_mode,
    says="dropout is off in the frozen part, and on in the rest; so is whatever "
    "looks at its mode",
)
def dropout_of_the_part_is_off(draw: Draw) -> list[Case]:
    return [
        partly(draw, "dropout", "block1", modes=["train", "train"]),
        partly(draw, "dropout", "block1.1", modes=["train", "train"]),
        partly(draw, "dropout", "block2", modes=["train", "eval", "train"]),
        partly(draw, "own layers", "block1", modes=["train", "eval", "train"]),
    ]


@check(
    "partly_frozen",
    probe=probes.trained_partly,
    weight=2,
    on=(
        "frozen_buffers",
        "frozen_weights",
        "the_rest_was_trained",
        "outs",
    ),
    rtol=EXACT,
    atol=EXACT,
    says="single layers, parts within parts, images, instance norm",
    corners=[
        "`BatchNorm1d`, `BatchNorm2d`, `InstanceNorm2d` with running "
        "statistics, dropout, layers of one's own, whose `train()` sets modes and no "
        "more",
        "the model arrives in training mode",
        "a part may stand at two places of the model, and so have two names",
    ],
)
def parts_of_any_kind(draw: Draw) -> list[Case]:
    return [
        partly(draw, "single norms", "norm"),
        partly(draw, "single norms", "norm2", "first"),
        partly(draw, "in two places", "two.0"),
        partly(draw, "images", "stem", shape=IMAGES),
        partly(draw, "images", "stem.inner", shape=IMAGES),
        partly(draw, "images", "stem.inner.0", "body.1", shape=IMAGES),
        partly(draw, "instances", "stem", shape=IMAGES),
    ]


def once_in_the_state_dict(
    case: Case, seen: Result, expected: Result
) -> str | None:
    for name in seen.data["missing"]:
        return f"`model.{name}` is missing in the net's state dict."
    if seen.data["too_many"] > 0:
        return (
            "The net's state dict has more entries than the model's: a module "
            "that is assigned to the net, or put into an `nn.ModuleList` of it, is "
            "registered."
        )
    return None


@check(
    "partly_frozen",
    probe=probes.made_of,
    rule=explained(
        once_in_the_state_dict,
        on=("`net.model is model`", "missing", "too_many", "weights", "values"),
        tolerance=0,
    ),
    rtol=0,
    atol=0,
    says="`net.model` is the model, and the state dict has its names, each once",
    corners=["its names have `model.` before them"],
)
def made_of_the_model(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block1"),
        partly(draw, "single norms", "norm", "head"),
    ]


@check(
    "partly_frozen",
    probe=probes.made_of,
    rule=same_form("weights"),
    raises=NO_SUCH_PART,
    says="a name of no part of the model raises an `AttributeError`, a "
    "`KeyError` or a `ValueError`",
    corners=["that of a parameter, too; no name is empty"],
)
def refuses_unknown_names(draw: Draw) -> list[Case]:
    return [
        partly(draw, "rows", "block1"),
        partly(draw, "rows", "block"),
        partly(draw, "rows", "block1", "block3"),
        partly(draw, "rows", "block1.7"),
        partly(draw, "rows", "block1.0.weight"),
    ]


# backward_into_b, backward_into_a


def pair(
    draw: Draw, a: str = "plain", b: str = "plain", **options: Any
) -> Case:
    return {
        "a": a,
        "b": b,
        "values": draw.normal(53, dtype=F64),
        "x": draw.normal(6, 3, dtype=F64),
        "y": draw.normal(6, 2, dtype=F64),
        "training": {"a": True, "b": True},
        "inner_eval": [],
        "earlier": False,
        **options,
    }


GRADIENTS = ("gradients_of_a", "gradients_of_b")


@check(
    "one_of_two",
    probe=probes.into_b,
    weight=2,
    on=GRADIENTS,
    rtol=EXACT,
    atol=EXACT,
    also=[leaves_inputs_alone],
    says="`backward_into_b`: gradients for `b`, none for `a`",
)
def gradients_for_b(draw: Draw) -> list[Case]:
    return [pair(draw), pair(draw, "sigmoid")]


@check(
    "one_of_two",
    probe=probes.into_a,
    weight=3,
    on=GRADIENTS,
    rtol=EXACT,
    atol=EXACT,
    also=[leaves_inputs_alone],
    says="`backward_into_a`: gradients for `a`, none for `b`",
)
def gradients_for_a(draw: Draw) -> list[Case]:
    return [pair(draw), pair(draw, "sigmoid"), pair(draw, "plain", "own names")]


@check(
    "one_of_two",
    probe=probes.into_b,
    on=GRADIENTS,
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_b`: earlier gradients of `a` stay, those of `b` are "
    "added to",
)
def adds_for_b(draw: Draw) -> list[Case]:
    return [pair(draw, earlier=True), pair(draw, "sigmoid", earlier=True)]


@check(
    "one_of_two",
    probe=probes.into_a,
    on=GRADIENTS,
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_a`: earlier gradients of `b` stay, those of `a` are "
    "added to",
)
def adds_for_a(draw: Draw) -> list[Case]:
    return [pair(draw, earlier=True), pair(draw, "sigmoid", earlier=True)]


@check(
    "one_of_two",
    probe=probes.into_b,
    on=(
        "loss",
        "features",
        "the_features_ask_for_a_gradient",
        "no_model_can_be_trained_on_the_features",
    ),
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_b`: a float and the features come back, off the graph",
    corners=[
        "the features ask for no gradient",
        "a model can be trained on them: no `inference_mode`",
        "in no case does `x` ask for a gradient",
        "a loss and features that are NaN come back as they are",
    ],
)
def returns_loss_and_features(draw: Draw) -> list[Case]:
    sequences = {
        "x": draw.normal(2, 5, 3, dtype=F64),
        "y": draw.normal(2, 5, 2, dtype=F64),
    }
    return [
        pair(draw),
        pair(draw) | sequences,
        with_a_bad_number(pair(draw, "sigmoid"), "x", math.nan),
    ]


@check(
    "one_of_two",
    probe=probes.into_b,
    weight=2,
    on=("loss", "features", *GRADIENTS),
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_b`: the features are what `a` computed, also if `b` "
    "works in place",
)
def features_survive_in_place(draw: Draw) -> list[Case]:
    return [
        pair(draw, "plain", "in place"),
        pair(draw, "plain", "leaky in place"),
        pair(draw, "norm", "leaky in place"),
    ]


@check(
    "one_of_two",
    probe=probes.into_a,
    on=("loss", "gradients_of_a"),
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_a`: the loss comes back as a float, and `b` may work "
    "in place",
    corners=[
        "in no case does `b` write over what `a` needs for its backward pass, "
        "such as the output of a last `Tanh`",
        "a loss that is infinite comes back as it is",
    ],
)
def into_a_in_place(draw: Draw) -> list[Case]:
    return [
        pair(draw, "norm", "in place"),
        with_a_bad_number(pair(draw), "y", math.inf),
    ]


def with_a_bad_number(case: Case, key: str, value: float) -> Case:
    """The same pair with this value in `x` or `y`: the loss is not finite."""
    case[key][0, 0] = value
    return case


MODES = [
    {"a": True, "b": False},
    {"a": False, "b": True},
    {"a": True, "b": True},
]
ONCE = (
    "number_of_calls",
    "flags_of_training_in_a",
    "flags_of_training_in_b",
    "state_of_a",
    "state_of_b",
)


@check(
    "one_of_two",
    probe=probes.into_b,
    on=(*ONCE, "gradients_of_b"),
    rtol=EXACT,
    atol=EXACT,
    also=[leaves_rng_alone, leaves_state_alone],
    says="`backward_into_b`: each model runs once, in the mode that it has and "
    "keeps",
    corners=[
        "buffers move as in one forward pass of each; a layer inside may be in "
        "another mode than its model",
        "no seed is set",
    ],
)
def once_in_their_modes_b(draw: Draw) -> list[Case]:
    return [
        *(pair(draw, "norm", "norm", training=modes) for modes in MODES),
        pair(draw, "norm", "norm", inner_eval=["a"]),
        pair(draw, "norm", "norm", inner_eval=["a", "b"]),
        with_a_bad_number(pair(draw, "norm", "norm"), "y", math.inf),
        with_a_bad_number(pair(draw, "norm", "norm"), "x", math.nan),
    ]


@check(
    "one_of_two",
    probe=probes.into_a,
    on=(*ONCE, "gradients_of_a"),
    rtol=EXACT,
    atol=EXACT,
    also=[leaves_rng_alone, leaves_state_alone],
    says="`backward_into_a`: each model runs once, in the mode that it has and "
    "keeps",
    corners=[
        "buffers move as in one forward pass of each; a layer inside may be in "
        "another mode than its model",
        "no seed is set",
    ],
)
def once_in_their_modes_a(draw: Draw) -> list[Case]:
    return [
        *(pair(draw, "norm", "norm", training=modes) for modes in MODES),
        pair(draw, "norm", "norm", inner_eval=["a"]),
        pair(draw, "norm", "norm", inner_eval=["a", "b"]),
        with_a_bad_number(pair(draw, "norm", "norm"), "y", math.inf),
        with_a_bad_number(pair(draw, "norm", "norm"), "x", math.nan),
    ]


@check(
    "one_of_two",
    probe=probes.both_ways,
    weight=2,
    on=(
        "flags_of_requires_grad_in_a",
        "flags_of_requires_grad_in_b",
        "`x.requires_grad`",
        "check",
        "number_of_calls",
    ),
    rtol=EXACT,
    atol=EXACT,
    says="every `requires_grad` is as it was, in turn and with frozen "
    "parameters, that of `x` too",
    corners=["each call runs each model once, in eval mode, too"],
)
def flags_as_they_were(draw: Draw) -> list[Case]:
    return [
        pair(draw),
        pair(draw, "spare", "plain"),
        pair(draw, "plain", "spare"),
        pair(draw, training={"a": False, "b": False}),
    ]


@check(
    "one_of_two",
    probe=probes.into_b,
    on=GRADIENTS,
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_b`: frozen and unused parameters keep their "
    "gradient, or None",
)
def frozen_and_unused_b(draw: Draw) -> list[Case]:
    return [
        pair(draw, "spare", "spare"),
        pair(draw, "spare", "spare", earlier=True),
    ]


@check(
    "one_of_two",
    probe=probes.into_a,
    on=GRADIENTS,
    rtol=EXACT,
    atol=EXACT,
    says="`backward_into_a`: frozen and unused parameters keep their "
    "gradient, or None",
    corners=[
        "of the model that is trained at least one parameter is trainable and "
        "takes part"
    ],
)
def frozen_and_unused_a(draw: Draw) -> list[Case]:
    return [
        pair(draw, "frozen"),
        pair(draw, "spare", "spare"),
        pair(draw, "spare", "spare", earlier=True),
    ]


# load_matching

SHAPES: dict[str, tuple[int, ...]] = {
    "encoder.0.weight": (4, 3),
    "encoder.0.bias": (4,),
    "encoder.1.weight": (4,),
    "encoder.1.bias": (4,),
    "encoder.1.running_mean": (4,),
    "encoder.1.running_var": (4,),
    "encoder.1.num_batches_tracked": (),
    "encoder2.weight": (4, 4),
    "encoder2.bias": (4,),
    "head.0.weight": (2, 4),
    "head.0.bias": (2,),
    "head.1.weight": (2,),
    "head.1.bias": (2,),
    "head.1.running_mean": (2,),
    "head.1.running_var": (2,),
    "head.1.num_batches_tracked": (),
    "head2.weight": (2, 2),
    "head2.bias": (2,),
    "subhead.weight": (2, 2),
    "subhead.bias": (2,),
    "trunk.head.weight": (2, 2),
    "trunk.head.bias": (2,),
    "trunk.gain.scale": (2,),
    "trunk.none.scale": (0,),
}
BODY = [name for name in SHAPES if name.startswith("encoder")]
LOADED = ("loaded", "skipped", "state")


def is_parameter(name: str) -> bool:
    return not name.endswith(
        ("running_mean", "running_var", "num_batches_tracked")
    )


def file_stays(case: Case, seen: Result, expected: Result) -> str | None:
    found, right = seen.data["file_after"], expected.data["file_after"]
    if found.keys() != right.keys():
        return "The state dict that you were given has other keys than before."
    for key, tensor in right.items():
        if difference(found[key], tensor, Tolerance(0, 0)):
            return (
                f"The tensor of `{key}` in the state dict that you were given is "
                "another than before. Where the model shares its memory, "
                "training changes both."
            )
    return None


def file_alone(case: Case, seen: Result, expected: Result) -> str | None:
    exact = ["the_file's_keys_stayed", "file_after"]
    return file_stays(case, seen, expected) or same_form("state", exact=exact)(
        case, seen, expected
    )


# Who forgets buffers loses the checks that are about them, and no others.
WEIGHTS = [name for name in BODY if is_parameter(name)]
ALL_WEIGHTS = [name for name in SHAPES if is_parameter(name)]


def lists_differ(case: Case, seen: Result, expected: Result) -> str | None:
    """Which names and keys are missing in the two lists, or too many."""
    for key, words in (
        ("loaded", "the names that were loaded"),
        ("skipped", "the keys that were skipped"),
    ):
        found, right = seen.data.get(key), expected.data[key]
        for one in right:
            if one not in found:
                return f"`{one}` is missing among {words}."
        for one in found:
            if one not in right:
                return f"`{one}` is among {words}, and does not belong there."
    return None


fits_and_said = explained(lists_differ, on=LOADED, tolerance=0)


def a_tensor(draw: Draw, key: str, shape: tuple[int, ...]) -> Tensor:
    if key.endswith("num_batches_tracked"):
        return torch.full(shape, draw.integer(10, 90))
    return draw.normal(*shape)


def filed(
    draw: Draw,
    names: list[str],
    *,
    file_prefix: str = "",
    shapes: dict[str, tuple[int, ...]] | None = None,
    **options: Any,
) -> Case:
    """A file with these names of the model, in a random order."""
    changed = shapes or {}
    order = [names[int(index)] for index in draw.permutation(len(names))]
    return {
        "file": {
            file_prefix + name: a_tensor(
                draw, name, changed.get(name, SHAPES.get(name, (2,)))
            )
            for name in order
        },
        "values": draw.normal(71),
        "head": "head",
        "prefix": None,
        "training": True,
        "model_dtype": "float32",
        **options,
    }


@check(
    "load_matching",
    probe=probes.loaded,
    weight=3,
    rule=explained(lists_differ, on=("state", "loaded"), tolerance=0),
    says="what fits is loaded, parameters and buffers, and named",
    corners=[
        "also where a value is NaN, and a tensor without elements or one that is "
        "not contiguous"
    ],
)
def loads_what_fits(draw: Draw) -> list[Case]:
    diverged = filed(draw, BODY)
    diverged["file"]["encoder.0.weight"][1, 2] = torch.nan
    turned = diverged["file"]["encoder2.weight"]
    diverged["file"]["encoder2.weight"] = turned.T
    return [
        diverged,
        filed(draw, BODY),
        filed(draw, ["encoder.0.weight", "encoder.1.running_mean"]),
        filed(draw, [*BODY[:5], "decoder.weight", "encoder.0"]),
        # the second name of a shared parameter
        filed(draw, ["encoder.0.weight", "subhead.weight"], tied=True),
        filed(draw, list(SHAPES)),
        filed(draw, ["trunk.gain.scale"]),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    rule=explained(
        lists_differ, on=("loaded", "skipped", "types"), tolerance=0
    ),
    says="two lists come back: names that were loaded, keys that were skipped",
)
def reports_both(draw: Draw) -> list[Case]:
    unknown = [f"old{draw.integer(0, 100)}.weight", "encoder"]
    unchanged = filed(draw, BODY)
    unchanged["file"]["encoder.1.num_batches_tracked"] = torch.tensor(3)
    return [
        unchanged,
        # a buffer of the model, and not of its state dict
        filed(
            draw,
            [*BODY, "encoder2.scale"],
            shapes={"encoder2.scale": (4,)},
        ),
        filed(draw, BODY),
        filed(draw, [*BODY[:4], *unknown]),
        filed(draw, ["encoder2.bias", *unknown]),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    weight=2,
    rule=fits_and_said,
    says="another shape is skipped: also if it would broadcast or reshape",
)
def skips_other_shapes(draw: Draw) -> list[Case]:
    return [
        filed(draw, WEIGHTS, shapes={"encoder2.weight": (5, 4)}),
        filed(draw, WEIGHTS, shapes={"encoder.0.weight": (3, 4)}),
        filed(draw, WEIGHTS, shapes={"encoder.0.weight": (12,)}),
        filed(draw, WEIGHTS, shapes={"encoder.0.bias": (1,)}),
        filed(draw, WEIGHTS, shapes={"encoder2.weight": (1, 4)}),
        filed(draw, WEIGHTS, shapes={"encoder.0.weight": (4, 1)}),
        filed(draw, WEIGHTS, shapes={"encoder.1.bias": ()}),
        filed(
            draw,
            [*WEIGHTS, "encoder.1.num_batches_tracked"],
            shapes={"encoder.1.num_batches_tracked": (1,)},
        ),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    weight=2,
    rule=fits_and_said,
    says="the head is never loaded, and what only begins like it is",
    corners=["`head2.weight` does not lie under `head`"],
)
def leaves_the_head(draw: Draw) -> list[Case]:
    return [
        filed(draw, ALL_WEIGHTS),
        filed(draw, ALL_WEIGHTS, head="encoder"),
        filed(draw, ALL_WEIGHTS, head="head.1"),
        filed(draw, ALL_WEIGHTS, head="encoder2"),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    weight=2,
    rule=fits_and_said,
    says="the prefix is taken off, once; keys without it are skipped",
)
def takes_the_prefix_off(draw: Draw) -> list[Case]:
    wrapped = filed(draw, WEIGHTS, file_prefix="net.", prefix="net.")
    mixed = filed(draw, WEIGHTS[:4], file_prefix="net.", prefix="net.")
    mixed["file"]["encoder2.bias"] = draw.normal(4)
    mixed["file"]["net.net.encoder2.weight"] = draw.normal(4, 4)
    mixed["file"]["teacher.net.encoder2.bias"] = draw.normal(4)
    # a prefix of the same length, before a name that is loaded
    mixed["file"]["ema." + WEIGHTS[0]] = draw.normal(*SHAPES[WEIGHTS[0]])
    # a name of the model that begins with the prefix itself
    doubled = filed(draw, WEIGHTS, file_prefix="encoder.", prefix="encoder.")
    doubled["file"]["encoder2.bias"] = draw.normal(4)
    none = filed(draw, WEIGHTS, prefix="")
    no_dot = filed(draw, WEIGHTS, file_prefix="ema_", prefix="ema_")
    return [wrapped, mixed, doubled, none, no_dot]


@check(
    "load_matching",
    probe=probes.loaded,
    rule=fits_and_said,
    says="with a prefix, the head is what the model calls `head`",
)
def prefix_and_head(draw: Draw) -> list[Case]:
    return [
        filed(draw, ALL_WEIGHTS, file_prefix="head.", prefix="head."),
        filed(draw, ALL_WEIGHTS, file_prefix="net.", prefix="net."),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    rule=same_form("state"),
    raises=("ValueError",),
    says="if nothing would be loaded, a `ValueError` says so",
)
def refuses_what_does_not_fit(draw: Draw) -> list[Case]:
    only_head = [name for name in SHAPES if name.startswith("head.")]
    return [
        filed(draw, WEIGHTS),
        filed(draw, ["decoder.weight", "decoder.bias"]),
        filed(draw, WEIGHTS, file_prefix="module."),
        filed(draw, WEIGHTS, prefix="module."),
        filed(draw, only_head),
        filed(draw, ["encoder.0.bias"], shapes={"encoder.0.bias": (5,)}),
        filed(draw, []),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    weight=2,
    rule=file_alone,
    also=[leaves_inputs_alone],
    says="the state dict stays as it was, also when the model is trained on",
)
def leaves_the_file_alone(draw: Draw) -> list[Case]:
    return [
        filed(draw, WEIGHTS),
        filed(draw, [*WEIGHTS, "head.0.bias", "decoder.weight"]),
        filed(draw, WEIGHTS, file_prefix="net.", prefix="net."),
    ]


@check(
    "load_matching",
    probe=probes.loaded,
    on=(
        "state",
        "gradients",
        "the_parameters_are_the_same_objects",
        "the_flags_stayed",
        "the_modes_stayed",
    ),
    rtol=0,
    atol=0,
    also=[leaves_state_alone, leaves_rng_alone],
    says="parameters stay the same objects, with their flags; modes stay",
)
def same_parameters(draw: Draw) -> list[Case]:
    return [
        filed(draw, WEIGHTS),
        filed(draw, WEIGHTS, training=False),
        filed(draw, WEIGHTS[:3]),
    ]


def of_dtype(
    case: Case, dtype: torch.dtype, counts: torch.dtype = torch.int32
) -> Case:
    # a third, so that float64 holds what float32 does not
    file = {
        key: value.to(dtype) / 3
        if value.is_floating_point()
        else value.to(counts)
        for key, value in case["file"].items()
    }
    return {**case, "file": file}


@check(
    "load_matching",
    probe=probes.loaded,
    rule=explained(file_stays, on=(*LOADED, "file_after"), tolerance=0),
    rtol=0,
    atol=0,
    says="the model keeps its dtypes, whatever the file has, and the file its "
    "own",
    corners=[
        "a float64 tensor in the file is rounded to the model's float32; a count "
        "may be a float there"
    ],
)
def keeps_the_dtypes(draw: Draw) -> list[Case]:
    return [
        of_dtype(filed(draw, BODY), F64),
        of_dtype(filed(draw, BODY, model_dtype="float64"), F64),
        of_dtype(filed(draw, BODY), torch.float16, torch.float32),
        of_dtype(filed(draw, BODY[:4]), torch.bfloat16),
    ]
