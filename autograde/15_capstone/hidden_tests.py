"""What is checked in chapter 15: one run with all of it."""

import itertools
import json
import math
from typing import Any

from torch import Tensor, float64

from course_grader.checks import (
    Case,
    Draw,
    Result,
    Rule,
    check,
    leaves_rng_alone,
    leaves_state_alone,
)

from . import probes

# Rules


def data_of(seen: Result) -> dict[str, Any]:
    return seen.data if isinstance(seen.data, dict) else {}


def same(one: Any, other: Any) -> bool:
    """Equality of every bit."""
    return near(one, other, 0.0)


def near(one: Any, other: Any, tolerance: float) -> bool:
    """Numbers and tensors agree to a share of `other`, all else is equal."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        if tolerance == 0:
            return bool(one.equal(other))
        distance = (one.double() - other.double()).norm().item()
        # written so that NaN is not near
        return distance <= 1e-12 + tolerance * other.double().norm().item()
    if type(one) is not type(other):
        return False
    if isinstance(other, float):
        if not math.isfinite(other):
            return not math.isfinite(one)
        return abs(one - other) <= (1e-12 if tolerance else 0) + (
            tolerance * abs(other)
        )
    if isinstance(other, dict):
        return one.keys() == other.keys() and all(
            near(one[key], other[key], tolerance) for key in other
        )
    if isinstance(other, list):
        return len(one) == len(other) and all(
            near(a, b, tolerance) for a, b in zip(one, other, strict=True)
        )
    return bool(one == other)


def agrees(tolerance: float = 0.0, **sentences: str) -> Rule:
    """Rule: what is recorded under these names is the reference's."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        data = data_of(seen)
        for name, sentence in sentences.items():
            if not near(data.get(name), expected.data[name], tolerance):
                return sentence
        return None

    return rule


# set_up, train_mode


def settings(draw: Draw, *frozen: str, **options: Any) -> Case:
    """A model of blocks, and which of them are frozen."""
    width = draw.integer(3, 6)
    plan = {
        "frozen": list(frozen),
        "lr": 0.001 * draw.integer(2, 40),
        "weight_decay": 0.01 * draw.integer(1, 30),
        "warmup_steps": draw.integer(2, 5),
        "num_steps": draw.integer(9, 14),
    }
    plan.update(options.pop("plan", {}))
    return {
        "config": plan,
        "width": width,
        "x": draw.normal(6, 3, dtype=float64),
        "start": draw.normal(600, dtype=float64),
        "tied": False,
        "frozen_before": [],
        "unseen": False,
        **options,
    }


KEPT = {
    "weights": "`set_up` changed the model's weights or buffers.",
    "modes_kept": "`set_up` changed the modes of the model's modules.",
    "rng_kept": "`set_up` changed a global random state.",
    "settings_kept": "`set_up` changed a setting of a layer, as a momentum.",
    "config_kept": "`set_up` changed the caller's `config`.",
    "gradients_kept": "`set_up` cleared the gradients of what is trained.",
}


@check(
    "set_up",
    probe=probes.arranged,
    weight=2,
    rule=agrees(
        flags="Not exactly the parameters of the frozen parts have become "
        "`requires_grad=False`.",
        **KEPT,
    ),
    also=[leaves_state_alone],
    says="`set_up`: the parameters of the frozen parts, and no others, get no "
    "gradient; the rest of the model stays as it is",
    corners=[
        "also those that they share with other layers; `stem` is not `stem2`",
        "the list may be empty, and a part may be a single layer",
        "weights, buffers, modes, gradients of what is trained, settings of the "
        "layers, `config` and random numbers stay as they are",
        "no setting of PyTorch is changed",
    ],
)
def frozen_parts(draw: Draw) -> list[Case]:
    return [
        settings(draw, "stem"),
        settings(draw, frozen_before=["head.bias"]),
        settings(draw, "stem2.linear", "body"),
        settings(draw, "body.norm", "stem.norm", tied=True),
        settings(draw, "stem", frozen_before=["head.bias"]),
        # it shares its weight with the head, which is not frozen
        settings(draw, "shadow", tied=True),
    ]


@check(
    "set_up",
    probe=probes.arranged,
    weight=2,
    rule=agrees(
        1e-9,
        kind="The optimizer is not a `torch.optim.AdamW`.",
        options="The optimizer has options that nobody asked for: what is not "
        "said is as by default.",
        strangers="The optimizer holds tensors that are no parameters of the model.",
        counts="Not every trainable parameter is in the optimizer once, and "
        "nothing else.",
        decays="A parameter has the wrong weight decay: two dimensions or more "
        "have it, fewer have none.",
        rates="In the first step a parameter has the wrong rate.",
    ),
    says="`set_up`: AdamW holds each trainable parameter once, and nothing "
    "else; biases and norms have no weight decay",
    corners=[
        "the number of dimensions alone decides, in any layer; all that is "
        "trained may have fewer than two",
        "parameters that layers share are one; what is not said is as by "
        "default; how many groups there are is up to you",
    ],
)
def decay_groups(draw: Draw) -> list[Case]:
    return [
        settings(draw, "stem"),
        settings(draw, tied=True),
        settings(draw, "stem.linear", frozen_before=["head.bias"]),
        settings(draw, "stem2", "body", tied=True),
        settings(draw, plan={"weight_decay": 0.0}),
        # a single parameter is trained, and it has no dimension
        settings(
            draw,
            *("stem", "stem2", "body", "head", "odd"),
            frozen_before=["bias_table"],
        ),
    ]


PLAN = {
    "together": "Not all groups have the same rate.",
    "rates": "The rate is not that of the plan in every step.",
}


@check(
    "set_up",
    probe=probes.planned,
    weight=2,
    rule=agrees(1e-5, **PLAN),
    says="`set_up`: the rate of every step, in all groups: up in a line, down "
    "along a cosine",
)
def rates_of_the_plan(draw: Draw) -> list[Case]:
    return [
        settings(draw, "stem", num_steps=9),
        settings(
            draw,
            num_steps=20,
            plan={"warmup_steps": 5, "num_steps": draw.integer(20, 25)},
        ),
        settings(draw, num_steps=7, plan={"warmup_steps": 1}),
    ]


@check(
    "set_up",
    probe=probes.planned,
    rule=agrees(1e-5, **PLAN),
    says="`set_up`: a plan without warm-up, and a run longer than its plan: a "
    "rate of 0",
)
def corners_of_the_plan(draw: Draw) -> list[Case]:
    return [
        settings(draw, num_steps=9, plan={"warmup_steps": 0}),
        settings(
            draw,
            num_steps=24,
            plan={"warmup_steps": 3, "num_steps": draw.integer(8, 12)},
        ),
        settings(draw, num_steps=5, plan={"warmup_steps": 1, "num_steps": 2}),
    ]


@check(
    "set_up",
    probe=probes.goes_on,
    rule=agrees(
        1e-5,  # the cosine of a plan may be float32
        read="`torch.load` with its defaults refuses a state dict.",
        rates="After loading the states the rates are not those of the plan.",
        weights="Steps that are made with the states loaded give other weights than "
        "they should.",
    ),
    says="`set_up`: optimizer and schedule go on from their state dicts, with "
    "a new model",
    corners=["`torch.load` reads both with its defaults"],
)
def from_state_dicts(draw: Draw) -> list[Case]:
    return [
        settings(draw, "stem", num_steps=9, stop=draw.integer(4, 7)),
        settings(draw, "body", num_steps=6, stop=1),
    ]


@check(
    "set_up",
    probe=probes.modes_after,
    weight=2,
    rule=agrees(
        1e-9,
        history="After `train_mode` a module is in the wrong mode: eval in the "
        "frozen parts and all within them, training everywhere else.",
        buffers="After `train_mode` a batch moves the wrong statistics.",
        flags_kept="`train_mode` changed `requires_grad` of a parameter.",
    ),
    says="`train_mode`: frozen parts, and all within them, are in eval mode; "
    "everything else is in training mode",
    corners=[
        "whatever the modes were before, and whatever is frozen by hand",
        "a frozen part may stand at a second place, too",
        "`requires_grad` stays as `set_up` left it",
    ],
)
def modes_of_the_parts(draw: Draw) -> list[Case]:
    return [
        settings(draw, "stem", before=["", "eval", "train", "parts"]),
        settings(draw, "body", "stem2.norm", before=["eval", "mixed"]),
        settings(draw, "stem.dropout", before=["train", ""]),
        settings(
            draw,
            before=["eval", "mixed"],
            frozen_before=["head.weight", "head.bias"],
        ),
        settings(draw, "again", before=["train"], tied=True),
        settings(draw, "again.0", before=["train"], tied=True),
        settings(draw, "stem", "body.norm", before=["others", "others"]),
        settings(draw, "stem2", "body", before=["eval", "others"], unseen=True),
    ]


@check(
    "set_up",
    probe=probes.trained,
    weight=2,
    rule=agrees(
        1e-6,
        moved="In training something moved that is frozen, or something stood "
        "still that is not.",
        weights="After some steps of training the weights and buffers are not "
        "the right ones.",
    ),
    says="both: in some steps of training frozen weights and statistics stay, "
    "bit for bit",
)
def some_training(draw: Draw) -> list[Case]:
    return [
        settings(draw, "stem", num_steps=draw.integer(3, 6)),
        settings(draw, "stem2", "body.norm", num_steps=4, tied=True),
    ]


# train_step

EXACT = 1e-5
ROUGH = 3e-2


def slack(case: Case) -> float:
    return EXACT if case["autocast"] == "off" else ROUGH


def steps_of(
    draw: Draw,
    *sizes: list[int],
    overflows: tuple[tuple[int, int], ...] = (),
    nans: tuple[tuple[int, int], ...] = (),
    **options: Any,
) -> Case:
    """Steps with micro-batches of these sizes. `overflows` are those (step, place)
    whose gradient overflows, `nans` those whose loss is NaN."""
    num_features = draw.integer(3, 6)
    num_classes = options.get("num_classes") or draw.integer(3, 6)
    dtype = options.get("weights_dtype", "float64")
    steps = []
    for number, of_step in enumerate(sizes):
        batches = []
        for place, size in enumerate(of_step):
            x = draw.normal(size, num_features)
            x = x.double() if dtype == "float64" else x
            if (number, place) in overflows:
                x[-1, 0] = probes.POISON
            if (number, place) in nans:
                x[-1, 0] = math.nan
            batches.append([x, draw.integers(0, num_classes, size)])
        steps.append(batches)
    return {
        "steps": steps,
        "num_features": num_features,
        "num_classes": num_classes,
        "width": draw.integer(4, 7),
        "start": draw.normal(200),
        "lr": 0.05 * draw.integer(1, 9),
        "momentum": 0.0,
        "weight_decay": 0.0,
        "loudness": 1.0,
        "as_they_are": False,  # the logits, in the dtype of the last layer
        "spied": False,
        "own": False,  # a parameter beside the layers
        "sum_of_two": False,  # a weight
        "weights_dtype": "float64",
        "autocast": "off",
        "scaler": {"init_scale": 1024.0},
        "max_norm": 1e6,
        "frozen": False,
        "norm_minds": False,  # its mode
        "old_gradients": False,
        **options,
    }


def pairs(seen: Result, expected: Result) -> list[tuple[dict, dict]]:
    found = data_of(seen).get("history", [])
    return list(zip(found, expected.data["history"], strict=False))


def all_samples(case: Case, seen: Result, expected: Result) -> str | None:
    if not near(data_of(seen).get("samples"), expected.data["samples"], 1e-6):
        return "Not every sample took part in exactly one backward pass."
    return None


def right_weights(case: Case, seen: Result, expected: Result) -> str | None:
    if len(data_of(seen).get("history", [])) != len(expected.data["history"]):
        return "Not every step was made."
    start = expected.data["start"]
    for one, other in pairs(seen, expected):
        mine, wanted = one["weights"], other["weights"]
        if one["num_steps"] < other["num_steps"]:
            return "A step was left out that was to be made."
        if not bool(wanted.isfinite().all()):
            return None  # nothing is right after it
        if mine.shape != wanted.shape or not bool(mine.isfinite().all()):
            return "The weights hold infinity or NaN."
        moved = (wanted - start).norm().item()
        if (mine - wanted).norm().item() > 1e-12 + slack(case) * moved:
            return "The weights are not those of the right step."
    return all_samples(case, seen, expected)


@check(
    "train_step",
    probe=probes.stepped,
    weight=3,
    rule=right_weights,
    says="the step uses the mean over all samples of its micro-batches, of "
    "unequal size, whatever the scale",
    corners=[
        "the scaler may be a disabled one",
        "a weight may be the sum of two parameters, which have one gradient",
        "a loss of exactly 0 makes a step like others",
    ],
)
def mean_over_all_samples(draw: Draw) -> list[Case]:
    big, small = draw.integer(5, 9), draw.integer(1, 3)
    return [
        steps_of(draw, [4, 4], [4, 4]),
        steps_of(draw, [big, small, 3], [small, big]),
        steps_of(
            draw,
            [6, 1],
            [2, 7, 1],
            [5],
            scaler={"init_scale": 2.0**16},
            sum_of_two=True,
        ),
        steps_of(draw, [5, 2, 1], [7, 3], scaler={"enabled": False}),
        steps_of(draw, [4, 1], [3, 2], momentum=0.9, frozen=True),
        # with one class the loss is 0, and the weights decay all the same
        steps_of(draw, [4, 1], [3], weight_decay=0.1, num_classes=1),
    ]


@check(
    "train_step",
    probe=probes.stepped,
    weight=3,
    rule=right_weights,
    says="the true gradient is clipped, at any scale; a shorter one stays as it is",
    corners=[
        "`max_norm` is 0 or at least 0.1, so PyTorch's 1e-6 beside the norm is no "
        "matter; float32 holds the squares of all gradients"
    ],
)
def clips_the_true_gradient(draw: Draw) -> list[Case]:
    loud = 1.0 * draw.integer(20, 40)
    limit = 0.1 * draw.integer(2, 9)
    return [
        steps_of(
            draw,
            [5, 2],
            [3, 4],
            loudness=loud,
            max_norm=limit,
            scaler={"init_scale": 2.0**scale},
        )
        for scale in (-6, 4, 16)
    ] + [
        steps_of(
            draw,
            [5, 2],
            [3, 4],
            loudness=loud,
            max_norm=limit,
            scaler={"enabled": False},
        ),
        # shorter than the limit, but not where it is scaled
        steps_of(draw, [5, 2], [3, 1], max_norm=50.0, momentum=0.5),
        # steps on gradients of 0 are steps
        steps_of(draw, [3, 1], [2], max_norm=0.0, weight_decay=0.1),
        *(
            steps_of(
                draw,
                [3, 1],
                [2],
                loudness=0.0,
                weight_decay=0.1,
                max_norm=limit,
            )
            for limit in (1.0, 0.0)
        ),
    ]


def left_out(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in pairs(seen, expected):
        if not near(one["scale_after"], other["scale_after"], EXACT):
            return "After a step the scaler's scale is wrong."
        if not near(one["momentum"], other["momentum"], 1e-4):
            return "After an overflow the optimizer's moments are wrong."
    return right_weights(case, seen, expected)


@check(
    "train_step",
    probe=probes.stepped,
    weight=2,
    rule=left_out,
    says="an overflow in any micro-batch leaves out this step, and no other; "
    "the scale falls once",
    corners=[
        "weights and moments stay, and nothing is raised; a loss that is NaN "
        "is such an overflow"
    ],
)
def overflow_is_left_out(draw: Draw) -> list[Case]:
    momentum = 0.1 * draw.integer(5, 10)
    return [
        steps_of(
            draw,
            *[[3, 2]] * 4,
            overflows=((1, 0), (3, 1)),
            momentum=momentum,
        ),
        steps_of(
            draw,
            *[[2, 3, 1]] * 3,
            overflows=((0, 0), (0, 2)),
            momentum=momentum,
            scaler={"init_scale": 64.0, "growth_interval": 1},
        ),
        steps_of(draw, *[[3, 2]] * 3, nans=((1, 0),), momentum=momentum),
        # scales have no bounds
        *(
            steps_of(
                draw, [2, 1], scaler={"init_scale": scale, "growth_interval": 1}
            )
            for scale in (2.0**18, 2.0**-3)
        ),
    ]


def schedule_follows(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in pairs(seen, expected):
        if one["num_steps"] < other["num_steps"]:
            return "A step was left out that was to be made."
        if one["schedule_steps"] > other["schedule_steps"]:
            return (
                "The schedule moved more often than the optimizer: once per "
                "step, and not where the step was left out."
            )
        if one["schedule_steps"] < other["schedule_steps"]:
            return "The schedule moved less often than the optimizer."
    return right_weights(case, seen, expected)


@check(
    "train_step",
    probe=probes.stepped,
    weight=2,
    rule=schedule_follows,
    says="the schedule moves once, after a step that was made",
    corners=[
        "a disabled scaler leaves out nothing",
        "a step with a rate of 0 is a step",
    ],
)
def schedule_moves_once(draw: Draw) -> list[Case]:
    growing = {"init_scale": 4.0, "growth_interval": 1}
    return [
        steps_of(draw, [3, 2, 4], [2, 2], [5]),
        steps_of(
            draw,
            *[[3, 2]] * 4,
            overflows=((1, 1), (2, 0)),
            scaler={"init_scale": 1024.0, "backoff_factor": 0.25},
        ),
        steps_of(draw, *[[2, 1]] * 4, scaler=growing),
        steps_of(draw, *[[2, 1]] * 3, scaler={"enabled": False}),
        steps_of(draw, [3, 1], [2], lr=0.0),
        steps_of(draw, [2, 1], nans=((0, 1),), scaler={"enabled": False}),
        steps_of(
            draw,
            *[[2, 1]] * 2,
            scaler={"init_scale": 2.0**18, "growth_interval": 1},
        ),
    ]


def in_autocast(case: Case, seen: Result, expected: Result) -> str | None:
    forwards = data_of(seen).get("forwards", [])
    for one, other in zip(forwards, expected.data["forwards"], strict=False):
        if one["weights"] != other["weights"]:
            return "The weights were not of the dtype in which they came."
        if one["x"] != other["x"]:
            return "The model did not get `x` in the dtype in which it came."
        if one["autocast"] != other["autocast"]:
            return "The forward pass was not under the autocast asked for."
        if one["layers"] != other["layers"]:
            return "The layers did not compute in the dtype asked for."
    if data_of(seen).get("in_backward") != expected.data["in_backward"]:
        return "A backward pass was under autocast; it belongs outside."
    if data_of(seen).get("in_step") != expected.data["in_step"]:
        return "The optimizer's step was under autocast; it belongs outside."
    loss = data_of(seen).get("in_loss")
    # a loss that is written out in other functions is not seen
    if loss and loss != expected.data["in_loss"]:
        return "The loss was not under the autocast asked for."
    return right_weights(case, seen, expected)


@check(
    "train_step",
    probe=probes.stepped,
    weight=2,
    rule=in_autocast,
    says='forward pass and loss under autocast to `config["dtype"]`, all else '
    "outside",
    corners=[
        "that is `torch.float16`, `torch.bfloat16` or `None`, on the device "
        "of `x`, which is the CPU in all cases",
        "the weights keep their dtype, and `x` goes into the model as it came",
    ],
)
def autocast_where_asked(draw: Draw) -> list[Case]:
    single = {"weights_dtype": "float32"}
    return [
        steps_of(draw, [4, 2], [3, 3], autocast="float16", **single),
        steps_of(
            draw,
            [4, 2],
            [3, 3],
            autocast="bfloat16",
            scaler={"enabled": False},
            **single,
        ),
        steps_of(draw, [4, 2], [3, 1], **single),
        *(
            steps_of(draw, [4, 2], [3, 1], autocast=dtype, spied=True, **single)
            for dtype in ("float16", "bfloat16")
        ),
        # gradients too small for float16, but for the scale
        steps_of(
            draw,
            [4, 2],
            [3, 1],
            autocast="float16",
            loudness=2.0**-23,
            lr=2.0**23 * 0.1,
            scaler={"init_scale": 2.0**20},
            **single,
        ),
    ]


FACT_SENTENCES = {
    "loss": "`loss` is not the mean over all samples of the step.",
    "grad_norm": "`grad_norm` is not the norm of the true gradient before "
    "clipping.",
    "skipped": "`skipped` is wrong.",
    "lr": "`lr` is not the rate that the step used.",
    "scale": "`scale` is not the scale of this step's losses.",
}


def right_facts(case: Case, seen: Result, expected: Result) -> str | None:
    earlier: tuple[dict, dict] | None = None
    for i, (one, other) in enumerate(pairs(seen, expected)):
        if one["keys"] != other["keys"]:
            return "You do not return a dict with just the five keys."
        for name, mine, wanted in zip(
            probes.FACTS, one["types"], other["types"], strict=True
        ):
            if mine != wanted:
                return f"`{name}` is not a {wanted}."
        for name, sentence in FACT_SENTENCES.items():
            facts, wanted_facts = one["facts"], other["facts"]
            # Before the first step nothing is rounded but the logits.
            exactly = name == "loss" and i == 0
            tolerance = 1e-5 if exactly else slack(case)
            if not near(facts[name], wanted_facts[name], tolerance):
                if earlier and not alike_after(*earlier, slack(case)):
                    return f"`{name}` shows that the step before went wrong."
                return sentence
        earlier = one, other
    return None


def alike_after(one: dict, other: dict, tolerance: float) -> bool:
    """Whether a step has left what it was to leave."""
    return one["schedule_steps"] == other["schedule_steps"] and all(
        near(one[key], other[key], tolerance)
        for key in ("scale_after", "weights")
    )


@check(
    "train_step",
    probe=probes.stepped,
    weight=2,
    rule=right_facts,
    says="the five facts are those of this step, and there are no others",
    corners=[
        "`loss`: the mean over all samples of the list, not scaled, a float, "
        "with all digits of float32",
        "`grad_norm`: the norm of the true gradient, of all parameters "
        "together, before clipping, a float; infinite or NaN where it "
        "overflows",
        "`skipped`: whether the step was left out, a bool; no case has finite "
        "gradients whose norm overflows",
        "`lr`: the rate of the first group that the step used, or would have "
        "used, a float; nobody but the schedule sets the rates",
        "`scale`: the scale that its losses were multiplied by, a float",
    ],
)
def facts_of_the_step(draw: Draw) -> list[Case]:
    growing = {"init_scale": 8.0, "growth_interval": 1}
    return [
        steps_of(draw, [6, 1], [2, 5, 1], loudness=20.0, max_norm=0.5),
        steps_of(
            draw,
            *[[4, 1]] * 3,
            overflows=((1, 0),),
            scaler={"init_scale": 1024.0, "backoff_factor": 0.75},
        ),
        steps_of(draw, *[[3, 1]] * 3, scaler=growing),
        steps_of(draw, [3, 1], [2, 2], scaler={"enabled": False}),
        # it overflows, and nobody leaves the step out
        steps_of(draw, [3, 1], overflows=((0, 1),), scaler={"enabled": False}),
        # the loss is NaN, and so is the norm
        steps_of(draw, [3, 1], [2, 2], nans=((0, 0),)),
        # under autocast the sum of the losses keeps its digits; one sum in a
        # hundred needs no more of them than bfloat16 has
        *(
            steps_of(
                draw,
                [draw.integer(4, 9), last, 2],
                autocast="bfloat16",
                weights_dtype="float32",
                as_they_are=True,
            )
            for last in (1, 3)
        ),
    ]


def one_by_one(case: Case, seen: Result, expected: Result) -> str | None:
    data = data_of(seen)
    if sorted(data.get("rows", [])) != sorted(expected.data["rows"]):
        return "The model does not see one micro-batch at a time, each once."
    if data.get("order") != expected.data["order"]:
        return (
            "Several micro-batches' graphs are kept at once: go backward on each "
            "before the next one goes forward."
        )
    return right_weights(case, seen, expected)


@check(
    "train_step",
    probe=probes.stepped,
    rule=one_by_one,
    says="one micro-batch at a time, forward and backward",
)
def one_micro_batch_at_a_time(draw: Draw) -> list[Case]:
    return [
        steps_of(draw, [4, 3, draw.integer(1, 9)], [2, 2]),
        steps_of(draw, [draw.integer(1, 9)], [1, 1, 1, 1]),
        # each once, whatever comes of it
        steps_of(draw, [3, 2], [2, 2], nans=((0, 0),)),
        steps_of(draw, [3, 2], [2, 2], overflows=((0, 1),)),
    ]


def nothing_left(case: Case, seen: Result, expected: Result) -> str | None:
    if any(one["left"] != 0.0 for one, _ in pairs(seen, expected)):
        return "After a step there are gradients left, in some trainable parameter."
    return right_weights(case, seen, expected)


@check(
    "train_step",
    probe=probes.stepped,
    rule=nothing_left,
    says="gradients from before do not count, and none are left",
    corners=[
        "nor does one that a frozen parameter of the model still has; that one "
        "may stay",
        "None or zeros are left, also after an overflow, and in a parameter that "
        "stands beside the model's layers",
    ],
)
def clean_gradients(draw: Draw) -> list[Case]:
    return [
        steps_of(draw, [4, 2], [3, 3], old_gradients=True),
        steps_of(draw, [4, 2], [3, 3], old_gradients=True, own=True),
        steps_of(draw, [4, 2], [3, 3], overflows=((0, 1),), old_gradients=True),
        # a frozen parameter brings an old one, and it would be clipped with it
        steps_of(
            draw,
            [draw.integer(4, 9), 2],
            [3, 3],
            old_gradients=True,
            frozen=True,
            loudness=20.0,
            max_norm=0.5,
        ),
    ]


@check(
    "train_step",
    probe=probes.stepped,
    rule=agrees(
        1e-9,
        modes_kept="The model's modes changed: the caller has chosen them.",
        buffers="The statistics of a part in eval mode moved.",
        list_kept="You changed the caller's list of micro-batches.",
        rng_kept="A global random state changed.",
        samples="Not every sample took part in exactly one backward pass.",
    ),
    also=[leaves_state_alone],
    says="the modes are the caller's: a normalization in eval mode stays there",
    corners=[
        "the list stays as it is, and no random numbers are drawn, but by the "
        "model",
        "no setting of PyTorch is changed",
    ],
)
def modes_of_the_caller(draw: Draw) -> list[Case]:
    return [
        steps_of(draw, [4, 2], [3, 3], norm_minds=True),
        steps_of(draw, [draw.integer(2, 9), 2], norm_minds=True, frozen=True),
    ]


# fit


def running(draw: Draw, *stops: Case, **options: Any) -> Case:
    """A run of four epochs of 3 or 2 steps, killed at the stops."""
    order = draw.permutation(8).tolist()
    while max(order[1:3]) < 7:  # the best is neither the first nor the last
        order = draw.permutation(8).tolist()
    config = {"num_epochs": 4, "save_every": 4, "keep": 2}
    config.update(options.pop("plan", {}))
    return {
        "config": config,
        "x": draw.normal(8, 3),
        "y": draw.normal(8, 1),
        "batch_size": 3,
        "shorter": 3,
        "width": draw.integer(3, 6),
        "lr": 0.02 * draw.integer(2, 6),
        "scale": 2.0 ** draw.integer(5, 13),
        "schedule": "StepLR",
        "seed": draw.integer(0, 10_000),
        "metrics": [(1 + rank) / 10 - 0.45 for rank in order],
        "folder": f"run{draw.integer(0, 100)}",
        "factor": 1 + draw.integer(1, 9) / 16,
        "junk": False,
        "meter": False,
        "one_dict": False,  # for the facts of all steps
        "evaluation_draws": 0,  # so many random numbers
        # into each checkpoint that is found: that takes long
        "looks_between": False,
        "looks_at_the_end": False,
        "forks": False,  # what is kept in Python alone is gone in a new process
        "stops": list(stops),
        **options,
    }


def looked_into(draw: Draw, *stops: Case, **options: Any) -> Case:
    """A run whose checkpoints are read whenever a process has ended."""
    return running(draw, *stops, looks_between=True, **options)


def stop(place: str, at: int, *then: str, **options: Any) -> Case:
    """Killed inside this step or evaluation, or while files are written after this
    step; `then` is what others do to the folder."""
    return {"in": place, "at": at, "then": list(then), **options}


END = {"in": "end", "at": 0, "then": []}


# Runs that several checks ask about.


def killed(draw: Draw) -> Case:
    return running(
        draw,
        stop("step", draw.integer(5, 8)),
        schedule="LambdaLR",
        forks=True,
    )


def killed_late(draw: Draw) -> Case:
    """Killed after the checkpoint at the end of the best epoch, the third one."""
    return best_in(
        2,
        running(draw, stop("step", 10), meter=True, schedule="OneCycleLR"),
    )


def killed_twice(draw: Draw) -> Case:
    return looked_into(draw, stop("error", 6), stop("step", 9), junk=True)


def killed_after_a_save(draw: Draw) -> Case:
    return running(draw, stop("step", 7), plan={"save_every": 5})


def killed_in_an_evaluation(draw: Draw) -> Case:
    """The checkpoint before the first kill comes at the end of an epoch."""
    return running(
        draw,
        stop("step", 6),
        stop("evaluate", 4),
        plan={"save_every": 5},
        evaluation_draws=3,
        meter=True,
    )


def all_torn(draw: Draw) -> Case:
    """The new checkpoints have lower numbers than the broken ones."""
    return looked_into(
        draw,
        stop("step", 9, "tear all"),
        stop("step", 5),
        plan={"save_every": 2, "keep": 2},
        looks_at_the_end=True,
    )


def finished(draw: Draw) -> Case:
    return running(draw, END, evaluation_draws=3)


RESULTS = {
    "kinds": "You do not return a list, and a dict with a float as metric.",
    "log": "The log is not, bit for bit and all of it, that of a run that was "
    "never stopped.",
    "model": "The model is not, bit for bit, that of a run that was never stopped.",
    "parts": "A part of the run is not in the state of a run that was never "
    "stopped.",
}
BEST = {
    "best": "The best epoch or its metric is wrong.",
    "best_model": "The best model is not the one of the best epoch.",
}
DRAWS = {
    "draws": "After the run other random numbers are drawn than after a run that "
    "was never stopped."
}
WORK = {
    "survived": "Your run ended before its steps were done.",
    "steps_made": "After the restart your run does not make just the steps that "
    "are left.",
    "evaluations": "After the restart your run does not make just the evaluations "
    "that are left.",
}


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=2,
    rule=agrees(
        **RESULTS,
        **WORK,
        **DRAWS,
        modes_kept="You change the modes of the model: they are the run's business.",
        gradients_on="You call `step` or `evaluate` with gradients switched off: that "
        "is the run's business.",
        gradients_kept="You clear or change gradients between the steps: they are "
        "the run's business.",
    ),
    also=[leaves_state_alone],
    says="a run that nothing stops: all steps and evaluations, in order, and "
    "the log",
    corners=[
        "`run.batches(epoch)` is the same whenever you ask for it, and draws "
        "nothing; epochs may have unequal lengths, and none is empty",
        "modes and gradients are the business of `step` and `evaluate`: call "
        "no `train()` or `eval()`",
        "the checkpoints change nothing",
        "no setting of PyTorch is changed",
        "`step` may fill one dict again and again, and a buffer of the model be a new "
        "tensor after each step",
    ],
)
def nothing_stops_it(draw: Draw) -> list[Case]:
    return [
        running(draw, evaluation_draws=3, one_dict=True),
        running(
            draw,
            meter=True,
            evaluation_draws=3,
            plan={"num_epochs": draw.integer(1, 4), "save_every": 100},
        ),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=4,
    rule=agrees(**RESULTS),
    says="killed inside a step: all parts and the log, bit for bit",
    corners=["a step that raises is such a kill: half of it is no checkpoint"],
)
def killed_in_a_step(draw: Draw) -> list[Case]:
    return [
        draw.once(killed),
        draw.once(killed_late),
        draw.once(killed_twice),
        running(draw, stop("step", 3), plan={"num_epochs": 2, "save_every": 1}),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=2,
    rule=agrees(log=RESULTS["log"], **DRAWS),
    says="the random numbers of `torch`, `np.random` and `random` go on, also "
    "after the run",
)
def random_numbers_go_on(draw: Draw) -> list[Case]:
    return [
        draw.once(killed),
        draw.once(killed_in_an_evaluation),
        # both normal generators hold a number in reserve
        running(draw, stop("step", draw.integer(5, 7)), plan={"save_every": 3}),
        draw.once(finished),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=2,
    rule=agrees(**WORK, log=RESULTS["log"]),
    says="only what is left is done again: steps, evaluations, nothing after "
    "the end",
    corners=[
        "a finished run, called once more, makes none",
        "an evaluation may change parts of the run, and what it leaves is saved",
    ],
)
def only_what_is_left(draw: Draw) -> list[Case]:
    return [
        draw.once(killed),
        draw.once(killed_after_a_save),
        draw.once(killed_in_an_evaluation),
        draw.once(finished),
        running(draw, END, plan={"num_epochs": 1}),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=2,
    rule=agrees(**BEST),
    says="the best epoch, its metric and its model, also if it was before the "
    "kill",
    corners=[
        "of equals the earlier epoch; training on does not change its model",
        "at the end of an epoch the evaluation comes before the checkpoint",
        "no metric is NaN or -∞ here; nothing is greater than NaN, so one in the "
        "first epoch would stay the best",
    ],
)
def the_best_is_kept(draw: Draw) -> list[Case]:
    equal = [0.1, 0.1 + draw.integer(1, 9) / 32, 0.2, 0.0]
    equal[2] = equal[1]
    low = [-1.5 * (1 + rank) for rank in draw.permutation(8).tolist()]
    zero = [low[0], 0.0, low[1], low[2]]  # which is a metric like others
    close = [0.5, 0.5 + draw.integer(1, 9) / 2**30, 0.5, 0.25]
    close[2] = close[1]
    return [
        running(draw, metrics=low),
        running(draw, metrics=[*close, *close]),
        # the first of the equals is in the checkpoint, the second is not
        running(
            draw,
            stop("step", 7),
            metrics=[*equal, *equal],
            plan={"save_every": 3},
        ),
        draw.once(killed_late),
        running(draw, stop("evaluate", 3), metrics=[*zero, *zero]),
        draw.once(killed_after_a_save),
        draw.once(finished),
    ]


def always_whole(case: Case, seen: Result, expected: Result) -> str | None:
    for one in data_of(seen).get("between", []):
        if one["torn"]:
            return (
                "A process was killed while it wrote, and a file named "
                "`step_….pt` was not whole."
            )
        if not one["names"]:
            return "A process was killed while it wrote, and no checkpoint was left."
    return agrees(**RESULTS)(case, seen, expected)


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=3,
    rule=always_whole,
    says="killed while it writes: what is there is whole, and the run goes on",
    corners=[
        "an unfinished file has a name that `step_*.pt` does not match: "
        "`step_000004_new.pt` looks like a checkpoint",
        "the folder may lie on another disk than the system's temporary files",
    ],
)
def killed_while_writing(draw: Draw) -> list[Case]:
    share = 0.1 * draw.integer(3, 8)
    often = {"num_epochs": 3, "save_every": 2, "keep": 1}
    return [
        looked_into(
            draw,
            stop("write", 4, share=share),
            stop("write", 8, share=share),
            plan=often,
        ),
        looked_into(
            draw, *(stop("file", 6, nth=nth) for nth in range(3)), plan=often
        ),
        looked_into(draw, stop("copy", 6), plan=often),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=2,
    rule=agrees(
        **WORK,
        **RESULTS,
        names="At the end the folder holds other checkpoints than it should.",
        torn="At the end there is a file named `step_….pt` that is not whole.",
    ),
    says="the newest whole checkpoint is taken, whatever dates and copies say",
    corners=[
        "the newest is the one with the most steps",
        "where `torch.load` raises, take the next older one that is whole",
        "without any whole one the run begins at the beginning, with the "
        "random numbers as they are",
    ],
)
def newest_whole_one(draw: Draw) -> list[Case]:
    often = {"save_every": 2, "keep": 3}
    return [
        running(
            draw, stop("step", 8, "tear"), plan=often, looks_at_the_end=True
        ),
        running(draw, stop("step", 8, "empty"), plan=often),
        running(draw, stop("step", 9, "date"), plan=often),
        draw.once(all_torn),
        running(draw, stop("step", draw.integer(2, 4))),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    weight=2,
    rule=agrees(
        between="A checkpoint is missing or left over, is not whole, or holds "
        "something that `torch.load` refuses.",
        names="At the end the folder holds other checkpoints than it should.",
        others="Files of other names are gone, or unfinished ones are left.",
        log=RESULTS["log"],
    ),
    says="names and number of the checkpoints, at any moment; other files are "
    "left alone",
    corners=[
        "the number of steps has six digits; `folder` may not exist yet, its "
        "parent does",
        "`torch.load` with its defaults reads a checkpoint",
        "`keep` is 1 or more; broken ones with higher numbers that still lie "
        "there do not count",
        "your own unfinished files do not stay, nor does one of a process that "
        "was killed",
        "what is named `step_*.pt` there is yours",
    ],
)
def files_in_the_folder(draw: Draw) -> list[Case]:
    return [
        draw.once(killed_twice),
        looked_into(
            draw,
            stop("write", 3, share=0.5),
            stop("step", 9),
            junk="and weights",
            plan={"save_every": 1, "keep": draw.integer(3, 6)},
        ),
        looked_into(draw, END, plan={"save_every": 3, "keep": 1}),
        draw.once(all_torn),
        looked_into(
            draw,
            stop("step", 9, "older"),
            stop("step", 11),
            plan={"save_every": 2, "keep": draw.integer(1, 2)},
        ),
    ]


@check(
    "fit",
    probe=probes.killed_and_resumed,
    rule=agrees(**RESULTS, **BEST),
    says="the newest checkpoint is all that is needed, and it is followed: "
    "earlier ones may be gone",
)
def one_file_is_enough(draw: Draw) -> list[Case]:
    return [
        best_in(
            1,
            running(
                draw,
                stop("step", 7, "move"),
                plan={"save_every": 2},
                forks=True,
            ),
        ),
        running(
            draw,
            stop("step", 8, "move", "perturb"),
            meter=True,
            plan={"save_every": 2},
        ),
    ]


def best_in(epoch: int, case: Case) -> Case:
    """The case with this epoch as its best one."""
    metrics = [*case["metrics"]]
    metrics[epoch] = max(metrics) + 0.125
    return {**case, "metrics": metrics}


# summarize


def step_line(draw: Draw, step: int, epoch: int, **options: Any) -> Case:
    return {
        "step": step,
        "epoch": epoch,
        "num_samples": draw.integer(1, 33),
        "loss": draw.integer(1, 1000) / 256,
        "grad_norm": draw.integer(1, 1000) / 256,
        "skipped": False,
        "lr": draw.integer(1, 1000) / 4096,
        "seconds": draw.integer(1, 1000) / 1024,
        **options,
    }


def lines_of(
    draw: Draw,
    restarts: tuple[tuple[int, int], ...] = (),
    *,
    skipped: tuple[int, ...] = (),
    torn: bool = False,
    metrics: tuple[float, ...] | None = None,
    num_epochs: int = 3,
    steps_per_epoch: int = 4,
) -> Case:
    """The lines of a run; `restarts` are (killed after this step, goes on after
    that one)."""
    lines: list[str] = []
    ranks = draw.permutation(num_epochs).tolist()
    best = tuple(0.1 * (1 + rank) for rank in ranks)
    best = best if metrics is None else metrics
    last = num_epochs * steps_per_epoch
    bounds = [*restarts, (last, last)]
    step = 0
    for killed_after, goes_on_after in bounds:
        while step < killed_after:
            step += 1
            epoch = (step - 1) // steps_per_epoch
            changes: Case = {}
            if step in skipped:
                changes = {
                    "skipped": True,
                    "grad_norm": draw.choice([math.inf, math.nan]),
                    "lr": 1.0,
                }
            lines.append(json.dumps(step_line(draw, step, epoch, **changes)))
            if step % steps_per_epoch == 0 and epoch < len(best):
                metric = best[epoch] + 0.0005 * draw.integer(0, 2) * (
                    metrics is None
                )
                seconds = draw.integer(1, 1000) / 1024
                entry = {"epoch": epoch, "metric": metric, "seconds": seconds}
                lines.append(json.dumps(entry))
        if torn and killed_after != last:
            whole = json.dumps(step_line(draw, step + 1, epoch))
            lines.append(whole[: draw.integer(2, len(whole) - 1)])
        step = goes_on_after
    return {"lines": lines, "max_norm": draw.integer(200, 800) / 256}


def reports(*unless_skipped: str, **sentences: str) -> Rule:
    """Rule: these entries are right; those of `unless_skipped` are looked at only
    in logs without a skipped step, since which steps they are of is the business
    of another check."""
    few = {
        name: sentence
        for name, sentence in sentences.items()
        if name not in unless_skipped
    }

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        some_skipped = any('"skipped": true' in line for line in case["lines"])
        asked = few if some_skipped else sentences
        for name in asked:
            if isinstance(expected.data[name], list) and not isinstance(
                data_of(seen).get(name), list
            ):
                return f"`{name}` is no list."
        return agrees(1e-6, **asked)(case, seen, expected)

    return rule


@check(
    "summarize",
    probe=probes.summarized,
    weight=2,
    rule=reports(
        epoch_losses="`epoch_losses` are not the means over the samples of each "
        "epoch."
    ),
    also=[leaves_rng_alone, leaves_state_alone],
    says="`epoch_losses`: the mean loss of each epoch, in rising order, is a "
    "mean over samples",
    corners=[
        "skipped steps count like others; the mean of an epoch with a NaN is NaN",
        "a line may have further keys",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def losses_of_epochs(draw: Draw) -> list[Case]:
    return [
        lines_of(draw),
        lines_of(draw, num_epochs=2, steps_per_epoch=3, skipped=(2,)),
        lines_of(draw, num_epochs=draw.integer(4, 7), steps_per_epoch=2),
        lines_of(draw, ((10, 10),), num_epochs=12, steps_per_epoch=1),
        with_further_keys(draw, lines_of(draw)),
        with_a_nan(lines_of(draw)),
    ]


@check(
    "summarize",
    probe=probes.summarized,
    weight=3,
    rule=reports(
        *("epoch_losses", "clipped", "peak_lr"),
        steps="Steps that were made again are not counted once.",
        repeated="`repeated` is wrong.",
        epoch_losses="Where steps were made again, the losses are not those of "
        "the last time.",
        skipped="Where steps were made again, `skipped` is wrong.",
        clipped="Where steps were made again, `clipped` is wrong.",
        peak_lr="Where steps were made again, `peak_lr` is wrong.",
    ),
    says="what was made again counts once, the last time",
    corners=[
        "this holds for `steps`, `repeated`, `skipped`, `clipped`, `peak_lr` "
        "and `epoch_losses`; a step belongs to the same epoch each time",
        "what was not made again counts as it is",
    ],
)
def counted_once(draw: Draw) -> list[Case]:
    first = draw.integer(5, 8)
    return [
        lines_of(draw, ((first, 4),)),
        lines_of(draw, ((7, 4), (10, 4), (11, 8)), skipped=(6, 9)),
        lines_of(draw, ((3, 0), (9, 8))),
        with_lost_peaks(lines_of(draw, ((first, 4),))),
        # killed again before it was as far as the first time
        without_the_last(lines_of(draw, ((11, 4),)), 6),
    ]


def without_the_last(case: Case, number: int) -> Case:
    return {**case, "lines": case["lines"][:-number]}


def with_lost_peaks(case: Case) -> Case:
    """The last step before the restart had the highest rate, and was made again."""
    entries = [json.loads(one) for one in case["lines"]]
    steps = [one for one in entries if "step" in one]
    lost = next(
        one
        for one, after in itertools.pairwise(steps)
        if after["step"] <= one["step"]
    )
    lost.update(lr=2.0, grad_norm=99.0)
    return {**case, "lines": list(map(json.dumps, entries))}


@check(
    "summarize",
    probe=probes.summarized,
    rule=reports(
        skipped="`skipped` is wrong.",
        clipped="`clipped` is not the share of the steps made.",
        peak_lr="`peak_lr` is not the highest rate of the steps made.",
    ),
    says="`skipped`, `clipped` and `peak_lr`: skipped steps, and of all others the "
    "share that was clipped and the highest rate",
    corners=[
        "`skipped` alone tells whether a step was skipped: a disabled scaler "
        "skips none, and `grad_norm` may then be `Infinity` or `NaN`, which "
        "`json` reads",
        "NaN is above no limit",
    ],
)
def skipped_and_clipped(draw: Draw) -> list[Case]:
    return [
        lines_of(draw, skipped=(1, 5)),
        at_the_limit(lines_of(draw, skipped=(draw.integer(1, 12),))),
        lines_of(draw, skipped=(1, 2), num_epochs=1, steps_per_epoch=2),
        by_the_flag(lines_of(draw, skipped=(2, 6, draw.integer(7, 12)))),
        with_a_nan(lines_of(draw)),
    ]


def with_a_nan(case: Case) -> Case:
    """A step that was made has a loss and a norm of NaN: not above the limit."""
    entry = {**json.loads(case["lines"][0]), "loss": math.nan}
    entry["grad_norm"] = math.nan
    return {**case, "lines": [json.dumps(entry), *case["lines"][1:]]}


@check(
    "summarize",
    probe=probes.summarized,
    rule=reports(
        best_epoch="`best_epoch` is wrong.",
        best_metric="`best_metric` is wrong.",
    ),
    says="`best_epoch`, `best_metric`: the best epoch, the earlier of equals, "
    "each evaluation once",
    corners=[
        "the line of a step may have a `metric`, too, which does not count"
    ],
)
def best_of_epochs(draw: Draw) -> list[Case]:
    high = 0.5 + draw.integer(1, 9) / 32
    # not where a digit is rounded up or down
    close = high + 2e-5
    return [
        lines_of(draw),
        lines_of(draw, metrics=(0.25, high, high)),
        lines_of(draw, metrics=(-0.25 - high, -high, -1 - high)),
        lines_of(draw, metrics=(-2.0, -1.0 - high, -3.0)),
        lines_of(draw, metrics=(-high, 0.0, -1 - high)),
        lines_of(draw, ((9, 4),)),
        lines_of(draw, metrics=(close, close + 1e-6, close - 1e-6)),
        # killed before the best epoch was evaluated again
        without_the_last(
            lines_of(draw, ((9, 4),), metrics=(0.25, high, 0.125)), 7
        ),
        with_an_older_evaluation(lines_of(draw, ((9, 4),)), high + 1),
        with_an_older_evaluation(
            lines_of(draw, metrics=(high, high - 0.125, high - 0.25)), 0.0
        ),
        with_further_keys(draw, lines_of(draw)),
        # killed before the last epoch was evaluated
        with_further_keys(draw, without_the_last(lines_of(draw), 1)),
        with_a_late_evaluation(
            lines_of(draw, ((9, 0),), metrics=(high, high, high - 1))
        ),
    ]


def with_further_keys(draw: Draw, case: Case) -> Case:
    """Steps with a metric of their batch, evaluations with a loss."""
    lines = []
    for one in map(json.loads, case["lines"]):
        more = {"host": "a", "num_samples": 99, "loss": 9.0, "lr": 9.0}
        if "step" in one:
            more = {"host": {"gpus": 1}, "metric": 2.0 + draw.integer(1, 9)}
        lines.append(json.dumps({**more, **one}))
    return {**case, "lines": lines}


def with_a_late_evaluation(case: Case) -> Case:
    """The first evaluation's line was cut off; it is whole after a restart."""
    lines = [*case["lines"]]
    place = next(i for i, one in enumerate(lines) if "metric" in one)
    lines[place] = lines[place][:-9]
    return {**case, "lines": lines}


def by_the_flag(case: Case) -> Case:
    """Two steps that were made have an infinite norm, one that was not a finite
    one."""
    entries = [json.loads(one) for one in case["lines"]]
    steps = sorted(
        (one for one in entries if "step" in one),
        key=lambda one: one["skipped"],
    )
    for place, norm in ((0, math.inf), (1, math.inf), (-1, 0.25)):
        steps[place]["grad_norm"] = norm
    return {**case, "lines": list(map(json.dumps, entries))}


def at_the_limit(case: Case) -> Case:
    """The limit is the norm of a step that was made."""
    entries = map(json.loads, case["lines"])
    norms = [
        one["grad_norm"] for one in entries if not one.get("skipped", True)
    ]
    return {**case, "max_norm": sorted(norms)[len(norms) // 2]}


def with_an_older_evaluation(case: Case, metric: float) -> Case:
    """The first evaluation is written twice, the first time with another metric."""
    place = next(i for i, one in enumerate(case["lines"]) if "metric" in one)
    entry = {**json.loads(case["lines"][place]), "metric": metric}
    lines = [*case["lines"]]
    lines.insert(place, json.dumps(entry))
    return {**case, "lines": lines}


@check(
    "summarize",
    probe=probes.summarized,
    weight=2,
    rule=reports(
        resumed_after="`resumed_after` is not the list of the steps after which "
        "the run went on: one is missing, or it names others, too.",
        seconds="`seconds` is not the sum over all whole lines.",
    ),
    says="`resumed_after` and `seconds`: where the run went back, and what "
    "all of it cost",
    corners=[
        "it went back where a step's number is not above that of the step "
        "line before it; kept is the step before the number that it went back "
        "to"
    ],
)
def went_back(draw: Draw) -> list[Case]:
    first = draw.integer(5, 8)
    return [
        lines_of(draw),
        lines_of(draw, ((first, 4),)),
        lines_of(draw, ((3, 0), (7, 4), (8, 4), (9, 8))),
        lines_of(draw, ((6, 4), (5, 4))),
        lines_of(draw, ((first, 4), (10, draw.integer(1, 4)))),
        without_the_line(lines_of(draw, ((first, 4),)), 4),
        # what it went back to had been made, and its first line is lost
        without_the_line(lines_of(draw, ((draw.integer(6, 8), 4),)), 5),
    ]


def without_the_line(case: Case, step: int) -> Case:
    """The first line of this step is lost."""
    lines = [*case["lines"]]
    del lines[
        next(
            i
            for i, one in enumerate(lines)
            if json.loads(one).get("step") == step
        )
    ]
    return {**case, "lines": lines}


@check(
    "summarize",
    probe=probes.summarized,
    rule=reports(
        keys="You do not return a dict with just the ten keys.",
        lines_kept="The caller's list of lines changed.",
        steps="Where a line is cut off, `steps` is wrong.",
        repeated="Where a line is cut off, `repeated` is wrong.",
        seconds="Where a line is cut off, `seconds` is wrong.",
        resumed_after="Where a line is cut off, `resumed_after` is wrong.",
        epoch_losses="Where a line is cut off, `epoch_losses` is wrong.",
    ),
    says="a line that is no whole JSON object is passed over",
    corners=[
        "cut off, empty, or cut off and written on by the next process, by "
        "which the line of a step may be lost",
        "a line may end with a newline",
        "the report has ten keys and no more; the list of lines stays as it is",
    ],
)
def torn_lines(draw: Draw) -> list[Case]:
    more = lines_of(draw, ((draw.integer(5, 8), 4),), torn=True)
    behind = "] " + more["lines"][0]
    odd = ["", "17", "\n", '"step"', *more["lines"], "nul", "null", "[1]"]
    return [
        lines_of(draw, ((draw.integer(5, 8), 4), (9, 8)), torn=True),
        {**more, "lines": [*odd, behind, ""]},
        {**more, "lines": written_on(more["lines"])},
        {**more, "lines": on_one_line(more["lines"], draw.integer(0, 3))},
        {**more, "lines": [f"{one}\n" for one in more["lines"]]},
        without_a_step(draw, steps_per_epoch=4),
        without_a_step(draw, steps_per_epoch=1),
        without_a_step(draw, (6, 1), steps_per_epoch=1),
    ]


def on_one_line(lines: list[str], place: int) -> list[str]:
    """Of two whole lines, only the end of the first was cut off."""
    return [
        *lines[:place],
        lines[place] + lines[place + 1],
        *lines[place + 2 :],
    ]


def without_a_step(
    draw: Draw, *restarts: tuple[int, int], steps_per_epoch: int
) -> Case:
    """Killed while the line of a step was written, and written on: what stands
    there next is the step after it."""
    kept = draw.integer(2, 5)
    case = lines_of(
        draw,
        ((kept, kept), *restarts),
        torn=True,
        num_epochs=7,
        steps_per_epoch=steps_per_epoch,
    )
    return {**case, "lines": written_on(case["lines"])}


def written_on(lines: list[str]) -> list[str]:
    """The next process wrote its first line behind the one that is cut off."""
    place = next(i for i, one in enumerate(lines) if not one.endswith("}"))
    return [
        *lines[:place],
        lines[place] + lines[place + 1],
        *lines[place + 2 :],
    ]


@check(
    "summarize",
    probe=probes.summarized,
    rule=reports(
        "epoch_losses",
        steps="`steps` is wrong.",
        best_epoch="Without an evaluation `best_epoch` is None.",
        best_metric="Without an evaluation `best_metric` is None.",
        clipped="If no step was made, `clipped` is 0.0.",
        peak_lr="If no step was made, `peak_lr` is 0.0.",
        epoch_losses="`epoch_losses` is wrong.",
        seconds="`seconds` is wrong.",
    ),
    says="a log without evaluations, and one without a step that was made",
    corners=[
        "without an evaluation `best_epoch` and `best_metric` are `None`; if "
        "no step was made, `clipped` and `peak_lr` are 0.0",
        "there may be no line at all",
    ],
)
def nearly_empty(draw: Draw) -> list[Case]:
    return [
        lines_of(draw, num_epochs=1, metrics=(), steps_per_epoch=1),
        lines_of(draw, skipped=(1, 2), num_epochs=1, steps_per_epoch=2),
        without_evaluations(lines_of(draw)),
        {"lines": [], "max_norm": 1.0},
    ]


def without_evaluations(case: Case) -> Case:
    return {
        **case,
        "lines": [one for one in case["lines"] if "metric" not in one],
    }
