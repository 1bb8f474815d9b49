"""What is checked in chapter 10: mixed precision."""

import math
from dataclasses import replace

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

from . import probes

NUM_WEIGHTS = 1000  # more than the model here has

# Rules. In float64 right answers agree to 1e-6: PyTorch's scaler keeps 1 / scale in
# float32, and clipping adds 1e-6 to a norm. In 16 bit they agree to about 1e-3.

EXACT = 1e-5
ROUGH = 2e-2


def slack(case: Case) -> float:
    if case["autocast"] != "off":
        return ROUGH
    return EXACT if case["weights_dtype"] == "float64" else 1e-4


def near(seen: object, expected: object, tolerance: float) -> bool:
    """Numbers of the same type that agree; all that are not finite are alike."""
    if type(seen) is not type(expected) or not isinstance(seen, float | int):
        return False
    assert isinstance(expected, float | int)
    if not math.isfinite(expected):
        return not math.isfinite(seen)
    return math.isclose(seen, expected, rel_tol=tolerance, abs_tol=1e-12)


def off_by(seen: object, expected: Tensor, start: Tensor) -> float:
    """Distance of two weights, as a share of how far training moved them."""
    if not isinstance(seen, Tensor) or seen.shape != expected.shape:
        return math.inf
    moved = (expected - start).norm().item()
    distance = (seen - expected).norm().item()
    if not math.isfinite(distance):
        return math.inf
    return distance / moved if moved > 0 else (math.inf if distance else 0.0)


def same(seen: object, expected: Tensor, tolerance: float = 1e-9) -> bool:
    """Whether two vectors agree, as a share of their length; NaN is NaN."""
    if not isinstance(seen, Tensor) or seen.shape != expected.shape:
        return False
    if not torch.equal(seen.isnan(), expected.isnan()):
        return False
    seen, expected = (one[~one.isnan()] for one in (seen, expected))
    distance = (seen - expected).norm().item()
    return distance <= 1e-12 + tolerance * expected.norm().item()


def every_sample_came_back(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if not same(seen.data["forward"], expected.data["forward"]):
        if same(seen.data["forward"], expected.data["forward"], ROUGH):
            return "The samples went into the model rounded, not as they came."
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


def right_weights(case: Case, seen: Result, expected: Result) -> str | None:
    """After the last step; with a history, after every one."""
    if "history" not in expected.data:
        pairs = [(seen.data["weights"], expected.data["weights"])]
    else:
        left, right = seen.data["history"], expected.data["history"]
        if len(left) != len(right):
            return "Not every batch was used."
        pairs = [
            (one["weights"], other["weights"])
            for one, other in zip(left, right, strict=True)
        ]
    start = case["start_weights"].double()
    for one, other in pairs:
        if isinstance(one, Tensor) and not one.isfinite().all():
            return "The weights hold infinity or NaN."
        if off_by(one, other, start) > slack(case):
            return "The weights are not those of the right update."
    return None


def in_low_precision(case: Case, seen: Result, expected: Result) -> str | None:
    """The layers compute in the autocast dtype, from inputs as they came."""
    wanted = [case["autocast"] if case["autocast"] != "off" else ""]
    for one in seen.data["forwards"]:
        if one["weights"] != [case["weights_dtype"]]:
            return (
                "In a forward pass the weights were not of the dtype in which "
                "they came. Autocast makes copies by itself: do not convert the "
                "model."
            )
        if one["x"] not in {other["x"] for other in expected.data["forwards"]}:
            return (
                "The model did not get the inputs in the dtype in which they "
                "came. Autocast converts them where it helps."
            )
        if wanted != [""] and one["layers"] != wanted:
            return "The linear layers did not compute in the dtype asked for."
        if wanted == [""] and (
            one["layers"] != [case["weights_dtype"]] or one["autocast"] != "off"
        ):
            return (
                "Autocast was on in a forward pass where it was not asked for."
            )
    return every_sample_came_back(case, seen, expected)


def backward_outside(case: Case, seen: Result, expected: Result) -> str | None:
    if set(seen.data["in_backward"]) - {"off"}:
        return "Autocast was on in a backward pass. End its block before."
    return every_sample_came_back(case, seen, expected)


def step_outside(case: Case, seen: Result, expected: Result) -> str | None:
    if any(one["autocast"] != "off" for one in seen.data["steps"]):
        return "Autocast was on when the optimizer stepped."
    for one in (seen.data, *seen.data.get("history", [])):
        if set(one.get("reading", [])) - {"off"}:
            return "Autocast was on while a batch was read."
        if one.get("read_ahead", 0) > 1:
            return "More than one batch was read before its turn."
    if len(seen.data["steps"]) != len(expected.data["steps"]):
        return "The optimizer did not step as often as it should."
    return every_sample_came_back(case, seen, expected)


def weights_keep_their_dtype(
    case: Case, seen: Result, expected: Result
) -> str | None:
    wanted = [case["weights_dtype"]]
    if seen.data["weights_after"] != wanted:
        return (
            "Afterwards the weights have another dtype than before. The sum of a "
            "weight and a small update is lost in 16 bit."
        )
    for one in seen.data["steps"]:
        if one["weights"] != wanted:
            return "At a step the weights had another dtype than before."
        if one["gradients"] != wanted:
            return "At a step the gradients had not the dtype of the weights."
    for one, other in zip(
        seen.data["steps"], expected.data["steps"], strict=False
    ):
        if one["rounded"] and not other["rounded"]:
            return "At a step all gradients were numbers of bfloat16."
    for one in seen.data["forwards"]:
        if one["weights"] != wanted:
            return "In a forward pass the weights had another dtype."
    if len(seen.data["steps"]) != len(expected.data["steps"]):
        return "The optimizer did not step as often as it should."
    return every_sample_came_back(case, seen, expected)


def used_as_given(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["called"]:
        return (
            "`model.forward` was called, and not `model(...)`. Hooks of the "
            "model do not run then."
        )
    if not seen.data["modes_kept"]:
        return (
            "A layer was or is in another mode (train or eval) than when the "
            "model was given to you. Call neither `train()` nor `eval()`."
        )
    if not seen.data["rng_kept"]:
        return "PyTorch's global generator was seeded, or drawn from."
    if not seen.data["parameters_kept"]:
        return (
            "A parameter's `requires_grad` is another afterwards, or a hook "
            "was left on it."
        )
    if seen.data["hooks"] != expected.data["hooks"]:
        return "A hook was left on the optimizer. Call its handle's `remove()`."
    if not seen.data["tensors_plain"]:
        return "A tensor that was given to you requires a gradient now."
    return something_came_back(case, seen, expected)


def autocast_is_closed(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if case.get("breaks"):  # what is left after an error is up to the learner
        if seen.data["came_out"]:
            return None
        return "The loader raised an error, and your code did not let it out."
    afters = [one["autocast_after"] for one in seen.data.get("history", [])]
    afters.append(seen.data.get("autocast_after", "off"))
    if set(afters) - {"off"}:
        return "Autocast is still on afterwards. Use it as a `with` block."
    if seen.data["left_on"]:
        return "A setting of autocast was left changed."
    return used_as_given(case, seen, expected)


def no_old_names(case: Case, seen: Result, expected: Result) -> str | None:
    """`float(loss)` warns as well, and is no mistake here."""
    for kind in ("FutureWarning", "DeprecationWarning"):
        if kind in seen.effects.warnings:
            return f"Your code caused a {kind}; read what it says."
    return None


ALONE = (
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
    no_old_names,
)

# What all cases need.


def model_of(
    draw: Draw,
    *,
    weights_dtype: str = "float64",
    autocast: str = "off",
    traps: bool = False,
    turns: bool = False,
    mode: str = "train",
    loudness: float = 1.0,
    three_groups: bool = False,
    old_gradients: bool = False,
    num_classes: int | None = None,
    lr: float = 0.5,
    **sgd: float,
) -> Case:
    """A new model and plain SGD. With one class every loss is 0. The weights at the start travel with the case,
    for the rules alone."""
    case = {
        "num_features": draw.integer(4, 8),
        "num_classes": num_classes or draw.integer(3, 6),
        "start": draw.normal(NUM_WEIGHTS, dtype=torch.float64),
        "weights_dtype": weights_dtype,
        "autocast": autocast,
        "traps": traps,
        "turns": turns,
        "mode": mode,
        "loudness": loudness,
        "three_groups": three_groups,
        "old_gradients": old_gradients,
        "sgd": {"lr": lr, **sgd},
    }
    return {**case, "start_weights": probes.weights_of(probes.made(case))}


def batch(draw: Draw, case: Case, size: int, kind: str = ".") -> tuple:
    """A batch; of kind "x" one whose gradient overflows, of kind "n" one with a
    NaN, whose loss is NaN too, of kind "i" one of whole numbers, of kind "m" one of
    images."""
    dtype = probes.DTYPES[case["weights_dtype"]]
    inner = (3,) if kind == "m" else ()
    x = draw.normal(size, case["num_features"], *inner, dtype=torch.float64)
    if kind == "x":
        x[draw.integer(0, size), 0] = draw.uniform(1, low=60, high=90).item()
    if kind == "n":
        x[draw.integer(0, size), 0] = math.nan
    if kind == "i":
        x, dtype = 3 * x, torch.int64
    return x.to(dtype), draw.integers(0, case["num_classes"], size)


def sure(case: Case) -> Case:
    """The case with a single row, of which the model is so sure that its loss is
    small, and not 0."""
    (name,) = {"batches", "micro_batches"} & case.keys()
    x = case[name][0][0][:1].clone()
    with torch.no_grad():
        logits = probes.made(case)(x)[0]
    first, second = logits.topk(2).values.tolist()
    return {
        **case,
        name: [(x, logits.argmax()[None])],
        "loudness": 12 / (first - second),
    }


# train_in_bf16


def bf16(
    draw: Draw,
    num_batches: int = 3,
    *,
    enabled: bool | None = True,
    as_generator: bool = False,
    kinds: str = "",
    fails_at: int | None = None,
    regression: bool = False,
    **options: object,
) -> Case:
    """Batches of unequal size, the first ones of these kinds; "e" is one of no
    rows. `enabled` None leaves the argument out. `fails_at` is the batch whose
    loss raises. In a `regression` labels are fractions, and the loss is another."""
    low = enabled is None or enabled
    case = model_of(
        draw,
        weights_dtype="float32",
        autocast="bfloat16" if low else "off",
        **options,  # type: ignore[arg-type]
    )
    kinds = kinds.ljust(num_batches, ".")
    sizes = [0 if kind == "e" else draw.integer(5, 12) for kind in kinds]
    batches = [
        batch(draw, case, size, kind)
        for size, kind in zip(sizes, kinds, strict=True)
    ]
    if regression:
        batches = [(x, draw.normal(len(x), std=2.0)) for x, _ in batches]
    return {
        **case,
        "batches": batches,
        "enabled": enabled,
        "fails_at": fails_at,
        "as_generator": as_generator,
    }


def calls_and_batches(calls: int, batches: list) -> str:
    there_were = (
        "There was one batch"
        if len(batches) == 1
        else f"There were {len(batches)} batches"
    )
    empty = any(len(x) == 0 for x, _ in batches)
    called = "once" if calls == 1 else f"{calls} times"
    return (
        f"{there_were}{', one of them empty' if empty else ''}, and `loss_fn` was "
        f"called {called}."
    )


def float32_loss(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["num_losses"] != expected.data["num_losses"]:
        return calls_and_batches(seen.data["num_losses"], case["batches"])
    if seen.data["loss_dtypes"] != expected.data["loss_dtypes"]:
        return (
            "A loss is not float32. Outside autocast, a loss of bfloat16 logits "
            "is bfloat16: two to three digits. Compute it inside the block."
        )
    return every_sample_came_back(case, seen, expected)


def float32_update(case: Case, seen: Result, expected: Result) -> str | None:
    start = case["start_weights"].double()
    one, other = seen.data["weights"], expected.data["weights"]
    if off_by(one, other, start) > slack(case):
        return (
            "With `enabled=False` the weights are not those of plain training."
        )
    return in_low_precision(case, seen, expected)


def floats_returned(case: Case, seen: Result, expected: Result) -> str | None:
    losses, right = seen.data["losses"], expected.data["losses"]
    if not isinstance(losses, list):
        return "What you return is not a list."
    if len(losses) != len(right):
        return "You do not return one loss per batch."
    if not all(type(one) is float for one in losses):
        return "A loss that you return is not a Python float."
    for i, (one, other) in enumerate(zip(losses, right, strict=True)):
        if math.isnan(one) and math.isnan(other):
            continue
        # After a step, sums taken in another order show in bfloat16.
        if not near(one, other, ROUGH if i else EXACT):
            if math.isnan(other) and any(map(math.isnan, right[:i])):
                return (
                    "After a batch whose loss is NaN you return a number. That batch "
                    "makes its step, too, and the losses after it are NaN."
                )
            return "A loss that you return is not that of its batch."
    return None


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=3,
    rule=in_low_precision,
    says="the linear layers compute in bfloat16, from float32 weights and inputs",
    corners=[
        "whole numbers, as ids of tokens, go into the model as they are, and so do "
        "images"
    ],
)
def layers_in_bf16(draw: Draw) -> list[Case]:
    return [
        draw.once(bf16),
        bf16(draw, enabled=None, kinds="m"),
        bf16(draw, 1, mode="eval", kinds="i"),
        bf16(draw, 1, kinds="i", enabled=False),
    ]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=3,
    rule=float32_loss,
    says="the loss is computed in float32, once for each batch",
    corners=["in autocast, or from logits that you have made float32"],
)
def loss_in_float32(draw: Draw) -> list[Case]:
    return [
        draw.once(bf16),
        draw.once(bf16, 1),
        draw.once(bf16, enabled=False),
        draw.once(bf16, 4, kinds=".en"),
        bf16(draw, 2, kinds="n", enabled=False),
    ]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=2,
    rule=weights_keep_their_dtype,
    says="weights and gradients are float32 all the time",
    corners=["your code rounds no gradient to bfloat16"],
)
def float32_weights(draw: Draw) -> list[Case]:
    return [bf16(draw, turns=True), draw.once(bf16, traps=True)]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=4,
    rule=backward_outside,
    says="the backward pass runs outside autocast",
)
def bf16_backward_outside(draw: Draw) -> list[Case]:
    return [draw.once(bf16), draw.once(bf16, 1)]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=2,
    rule=step_outside,
    says="the optimizer steps, and batches are read, outside autocast",
    corners=["at most one batch is read before its turn"],
)
def bf16_step_outside(draw: Draw) -> list[Case]:
    return [draw.once(bf16), bf16(draw, 4, as_generator=True)]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=3,
    rule=right_weights,
    says="each batch makes one step on its own gradient, seen by the next one",
    corners=[
        "however large the gradient is",
        "an empty batch makes one, too, and so does a loss of exactly 0",
        "`loss_fn` may be that of a regression, and `y` hold fractions",
    ],
)
def bf16_updates(draw: Draw) -> list[Case]:
    return [
        draw.once(bf16, 4),
        # so large that 1000 times as much is infinite
        bf16(draw, 1, loudness=4e36, lr=2.5e-37),
        bf16(
            draw,
            5,
            kinds="..e",
            momentum=0.9,
            weight_decay=0.05,
            as_generator=True,
        ),
        draw.once(bf16, 2, loudness=30.0, lr=0.01),
        bf16(draw, 9, lr=1.0),
        bf16(draw, 2, num_classes=1, weight_decay=0.1),
        bf16(draw, 2, regression=True),
        # moves the weights by less than bfloat16 can tell
        bf16(draw, 3, lr=1e-3),
    ]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    rule=right_weights,
    says="gradients that were there before do not count; frozen and unused "
    "parameters stay as they are",
    corners=["the optimizer holds parameters of the model and no others"],
)
def bf16_old_gradients(draw: Draw) -> list[Case]:
    return [
        bf16(draw, 1, old_gradients=True),
        bf16(draw, 2, old_gradients=True, traps=True),
        bf16(draw, 4, traps=True, turns=True, momentum=0.9, weight_decay=0.1),
    ]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=2,
    rule=float32_update,
    says="`enabled=False` is plain float32 training",
)
def bf16_disabled(draw: Draw) -> list[Case]:
    return [
        draw.once(bf16, enabled=False),
        bf16(draw, 4, enabled=False, momentum=0.9),
    ]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    rule=floats_returned,
    says="a list of each batch's loss, as Python floats; empty for no batch",
    corners=[
        "a NaN in a batch shows in its loss and in those after it",
        "the loss of an empty batch is NaN",
    ],
)
def bf16_losses(draw: Draw) -> list[Case]:
    return [
        draw.once(bf16, 4),
        draw.once(bf16, 2, loudness=30.0, lr=0.01),
        bf16(draw, 0, as_generator=True),
        draw.once(bf16, enabled=False),
        draw.once(bf16, 4, kinds=".en"),
    ]


@check(
    "train_in_bf16",
    probe=probes.trained_in_bf16,
    weight=2,
    rule=autocast_is_closed,
    also=ALONE,
    says="all else stays: autocast is off afterwards; modes, tensors and "
    "settings are as they were, and nothing deprecated is used",
    corners=[
        "call `model(...)`, not `model.forward(...)`, once for each batch",
        "autocast is off after an exception, too",
        "the mode (train or eval) of each layer, what is frozen, hooks and "
        "the random state are not yours to change",
        "no seed is set",
    ],
)
def bf16_leaves_the_rest(draw: Draw) -> list[Case]:
    return [
        draw.once(bf16),
        *(bf16(draw, mode=mode) for mode in ("eval", "mixed")),
        draw.once(bf16, traps=True),
        draw.once(bf16, enabled=False),
        bf16(draw, 2, fails_at=1),
    ]


# LossScaler

SPOILT = probes.SPOILT


def scaled(
    draw: Draw,
    pattern: str = "...",
    *,
    unscale_first: bool = False,
    max_norm: float | None = None,
    spoilt_by: float | None = None,
    which: int | None = None,
    settings: dict | None = None,
    defaults: bool = False,
    steps_before: int = 0,
    size: int = 6,
    added: float = 0.0,
    frozen_late: bool = False,
    **options: object,
) -> Case:
    """One batch for each letter of `pattern`; at an x its gradient is spoilt.

    A `which` of -1 is the last parameter; without it, drawn anew each time. A
    `spoilt_by` that is finite stands all over that parameter's gradient; without
    it, inf, -inf and NaN stand side by side, so that whoever sees one of them
    sees the overflow: which are seen is the matter of one check alone. As many
    good steps as `steps_before` come first; they move nothing. `added` is added to
    each loss, and changes no gradient.
    """
    case = model_of(draw, **options)  # type: ignore[arg-type]
    spoilt = [
        None
        if letter == "."
        else (
            draw.integer(0, 6) if which is None else which,
            SPOILT if spoilt_by is None else (spoilt_by,),
        )
        for letter in pattern
    ]
    return {
        **case,
        "batches": [batch(draw, case, size) for _ in pattern],
        "spoilt": spoilt,
        "steps_before": steps_before,
        "added": added,
        "frozen_late": frozen_late,
        "unscale_first": unscale_first,
        "max_norm": max_norm,
        "settings": {}
        if defaults
        else {"init_scale": 1024.0, **(settings or {})},
    }


def scales_of(result: Result, key: str = "next_scale") -> list:
    return [one[key] for one in result.data["history"]]


def same_scales(case: Case, seen: Result, expected: Result) -> str | None:
    for key in ("scale", "step_scale", "next_scale"):
        left, right = scales_of(seen, key), scales_of(expected, key)
        if not all(isinstance(one, float) for one in left):
            return "`get_scale()` does not return a Python float."
        if not all(
            near(one, other, EXACT)
            for one, other in zip(left, right, strict=True)
        ):
            if key == "step_scale":
                return (
                    "Between `step` and `update` the scale is another already."
                )
            return "The scale is not what it should be after some of the steps."
    return None


def scale_and_weights(case: Case, seen: Result, expected: Result) -> str | None:
    return same_scales(case, seen, expected) or right_weights(
        case, seen, expected
    )


def loss_times_scale(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in zip(
        seen.data["history"], expected.data["history"], strict=True
    ):
        if one["scaled_dtype"] != other["scaled_dtype"]:
            return "`scale` changed the dtype of the loss."
        if not near(one["scaled"], other["scaled"], slack(case)):
            if not near(one["loss"], other["loss"], slack(case)):
                return (
                    "The loss that `scale` gets is another than it should be: an "
                    "earlier step went wrong."
                )
            return "`scale(loss)` is not the loss times the scale."
        if not one["loss_kept"]:
            return "`scale` changed the loss that it was given."
        if not near(one["scaled_norm"], other["scaled_norm"], slack(case)):
            return "The gradient of `scale(loss)` is not scaled."
    return None


def true_gradients(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in zip(
        seen.data["history"], expected.data["history"], strict=True
    ):
        if not near(one["norm"], other["norm"], slack(case)):
            return "After `unscale_` the gradients are not the true ones."
        if not near(one["finite_norm"], other["finite_norm"], slack(case)):
            return (
                "After an overflow `unscale_` has not divided all that is "
                "finite."
            )
        if not near(one["norm_left"], other["norm_left"], slack(case)):
            return "After `step` the gradients are not what they were before."
    return right_weights(case, seen, expected)


def skipped_steps(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in zip(
        seen.data["history"], expected.data["history"], strict=True
    ):
        if one["num_steps"] > other["num_steps"]:
            return "`optimizer.step` was called although a gradient was not finite."
        if one["num_steps"] < other["num_steps"]:
            return (
                "`optimizer.step` was not called although all gradients were "
                "finite."
            )
        if not same(one["momentum"], other["momentum"], EXACT):
            return "The optimizer's momentum is not what it should be."
    return right_weights(case, seen, expected)


def leaves_settings(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["rng_kept"]:
        return "PyTorch's global generator was seeded, or drawn from."
    if not seen.data["grad_mode"]:
        return "Grad mode was left off."
    # the scaled loss's dtype, and what becomes of the loss, are another check's matter
    seen, expected = (
        replace(
            one,
            data={
                "history": [
                    {**step, "scaled_dtype": "", "loss_kept": True}
                    for step in one.data["history"]
                ]
            },
        )
        for one in (seen, expected)
    )
    return same_form("history")(case, seen, expected)


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=2,
    rule=loss_times_scale,
    says="`scale(loss)` is the loss times the scale, and so is its gradient",
    corners=[
        "a float32 or float64 loss keeps its dtype, and the loss given stays "
        "as it is",
        "the scale is a Python float, `init_scale` at the start, and stays "
        "until `update`",
    ],
)
def loss_is_scaled(draw: Draw) -> list[Case]:
    return [
        draw.once(scaled, unscale_first=True),
        scaled(draw, "..", unscale_first=True, settings={"init_scale": 1000.0}),
        scaled(draw, "..", unscale_first=True, weights_dtype="float32"),
        scaled(draw, "..", unscale_first=True, settings={"init_scale": 0.5}),
    ]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=3,
    rule=right_weights,
    says="the weights are those of training without a scaler",
)
def weights_as_without(draw: Draw) -> list[Case]:
    return [
        scaled(draw, "...."),
        scaled(draw, "....", settings={"init_scale": 3000.0}, momentum=0.9),
        draw.once(
            scaled, "....", settings={"init_scale": 4.0, "growth_interval": 2}
        ),
        scaled(draw, "..", settings={"init_scale": 65536.0}, weight_decay=0.1),
    ]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=2,
    rule=right_weights,
    says="gradients arrive that are too small for float16",
)
def small_gradients_arrive(draw: Draw) -> list[Case]:
    quiet = {
        "weights_dtype": "float32",
        "autocast": "float16",
        "loudness": 1e-8,
        "lr": 1e7,
    }
    return [
        scaled(draw, "...", settings={"init_scale": 2.0**18}, **quiet),
        scaled(draw, "..", settings={"init_scale": 2.0**20}, **quiet),
    ]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=3,
    rule=skipped_steps,
    says="a step with inf, -inf or NaN in any gradient is left out, and the "
    "next one is made",
    corners=[
        "a gradient of finite numbers, however large, is none of these, nor is "
        "one of zeros; no case divides one into infinity",
        "the gradients decide, and not the loss: that may be infinite, or be so when "
        "scaled, where they are finite",
        "in no case is a gradient mended between `unscale_` and `step`",
    ],
)
def overflow_skips_the_step(draw: Draw) -> list[Case]:
    def any_of_them() -> float:
        return draw.choice(SPOILT)

    return [
        *(scaled(draw, ".x..", spoilt_by=value) for value in SPOILT),
        scaled(draw, "x.x.", which=-1, momentum=0.9, spoilt_by=any_of_them()),
        scaled(
            draw,
            "xx..",
            which=0,
            momentum=0.9,
            weight_decay=0.1,
            spoilt_by=any_of_them(),
        ),
        *(
            scaled(
                draw,
                ".x.",
                three_groups=True,
                which=which,
                spoilt_by=any_of_them(),
            )
            for which in (-1, 0)
        ),
        scaled(
            draw,
            "..x.",
            unscale_first=True,
            which=2,
            added=math.inf,
            spoilt_by=any_of_them(),
        ),
        scaled(
            draw,
            ".x.",
            unscale_first=True,
            max_norm=0.1,
            momentum=0.9,
            spoilt_by=any_of_them(),
        ),
        *(large(draw, which) for which in (0, 2, 4)),
        scaled(draw, "..", loudness=0.0, weight_decay=0.1),
        # a loss that is finite, and infinite when scaled
        scaled(
            draw,
            ".",
            settings={"init_scale": 65536.0},
            weights_dtype="float32",
            loudness=1e36,
            lr=1e-36,
        ),
    ]


def large(draw: Draw, which: int) -> Case:
    """All numbers are finite, and neither their sum nor their squares are."""
    return scaled(
        draw,
        "x",
        which=which,
        spoilt_by=draw.uniform(1, low=2e38, high=3e38).item(),
        settings={"init_scale": 1.0},
        weights_dtype="float32",
        lr=1e-37,
    )


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=2,
    rule=scale_and_weights,
    says="a step left out lowers the scale by `backoff_factor`",
    corners=["however small it is already, and also if it began as an int"],
)
def scale_backs_off(draw: Draw) -> list[Case]:
    return [
        draw.once(scaled, ".x."),
        scaled(draw, "xx.x.", settings={"backoff_factor": 0.25}),
        scaled(draw, "..x.", defaults=True),
        scaled(draw, "xx.", settings={"init_scale": 3e-6}),
        scaled(draw, "x.", settings={"backoff_factor": 0.1, "init_scale": 10}),
    ]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=2,
    rule=scale_and_weights,
    says="after `growth_interval` good steps in a row the scale grows by "
    "`growth_factor`",
    corners=[
        "no case grows it to infinity, of which PyTorch's own stops short"
    ],
)
def scale_grows(draw: Draw) -> list[Case]:
    two = {"init_scale": 4.0, "growth_interval": 2}
    three = {"init_scale": 8.0, "growth_interval": 3, "growth_factor": 1.5}
    return [
        draw.once(scaled, "....", settings=two),
        scaled(draw, "." * 7, settings=three),
        scaled(draw, "..x..x...", settings=three),
        scaled(draw, "x....", settings=two),
        scaled(draw, ".x.....", settings=three),
        scaled(draw, "...", settings={"growth_interval": 1}),
        scaled(
            draw, "...", settings={"growth_interval": 1, "init_scale": 2.0**31}
        ),
        scaled(draw, "...", defaults=True, steps_before=1998),
    ]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    weight=2,
    rule=true_gradients,
    says="`unscale_` gives the true gradients, once: clipping works, and "
    "`step` does not divide again",
    corners=[
        "what is finite is divided also where another number is not, and that of a "
        "parameter that was frozen after the backward pass",
        "where `.grad` is None it stays None",
        "`step` leaves the gradients where they are",
    ],
)
def unscale_then_clip(draw: Draw) -> list[Case]:
    return [
        draw.once(scaled, unscale_first=True),
        scaled(draw, "...", unscale_first=True, max_norm=0.05, loudness=5.0),
        scaled(
            draw,
            "....",
            unscale_first=True,
            settings={"growth_interval": 1, "init_scale": 300.0},
        ),
        scaled(draw, "x.", unscale_first=True, which=1),
        scaled(
            draw,
            ".x",
            unscale_first=True,
            three_groups=True,
            frozen_late=True,
        ),
    ]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    rule=right_weights,
    says="parameters without a gradient, and several groups of parameters",
    corners=[
        "a parameter may get its first gradient late, or be a single number"
    ],
)
def scaler_without_gradients(draw: Draw) -> list[Case]:
    return [
        scaled(draw, traps=True, weight_decay=0.1),
        scaled(draw, traps=True, unscale_first=True, max_norm=0.1),
        scaled(draw, "....", three_groups=True, turns=True),
    ]


def told_off_rightly(case: Case, seen: Result, expected: Result) -> str | None:
    for name, right in expected.data.items():
        if name in ("weights", "scale"):
            continue
        yours = seen.data[name]
        if yours != right and right == "nothing":
            return f"A disabled scaler raises nothing; `{name}` raises {yours}."
        if yours != right:
            return f"`{name}` must raise a RuntimeError; yours raises {yours}."
    start = case["start_weights"].double()
    for one, other in zip(
        seen.data["weights"], expected.data["weights"], strict=True
    ):
        if off_by(one, other, start) > EXACT:
            return (
                "Before and after a call that has to raise, the weights are not those "
                "of the steps that count. Refuse first, divide then, and divide once."
            )
    if not near(seen.data["scale"], expected.data["scale"], EXACT):
        return (
            "After a second `step` the scale, a float, is not the one that `update` "
            "sets by the first."
        )
    return None


@check(
    "loss_scaler",
    probe=probes.misused,
    rule=told_off_rightly,
    says="before `update`, a second `unscale_`, a second `step` or an "
    "`unscale_` after `step` raises a `RuntimeError`, and changes nothing",
    corners=["a disabled scaler has nothing to refuse"],
)
def misuse_raises(draw: Draw) -> list[Case]:
    return [
        scaled(draw),
        scaled(draw, settings={"init_scale": 100.0}),
        scaled(draw, settings={"enabled": False}),
    ]


def scaler_disabled_rule(
    case: Case, seen: Result, expected: Result
) -> str | None:
    complaint = same_scales(case, seen, expected)
    if complaint:
        return "With `enabled=False` the scale must be 1.0 all the time."
    for one, other in zip(
        seen.data["history"], expected.data["history"], strict=True
    ):
        if not near(one["scaled"], other["scaled"], EXACT):
            return "With `enabled=False` the loss must come back as it is."
        if one["num_steps"] != other["num_steps"]:
            return "With `enabled=False` every step must be made."
        left, right = one["weights"], other["weights"]
        if not torch.equal(left.isfinite(), right.isfinite()):
            return (
                "With `enabled=False` a step is made with the gradients as they "
                "are, also where they are not finite."
            )
    if any(case["spoilt"]):
        return None  # the weights are no numbers any more
    return right_weights(case, seen, expected)


@check(
    "loss_scaler",
    probe=probes.some_steps,
    rule=scaler_disabled_rule,
    says="`enabled=False`: plain training, with a scale of 1.0",
)
def scaler_disabled(draw: Draw) -> list[Case]:
    off = {"enabled": False}
    return [
        scaled(draw, settings=off),
        scaled(draw, "..x", settings=off),
        scaled(
            draw,
            unscale_first=True,
            max_norm=0.1,
            settings={**off, "growth_interval": 1},
        ),
    ]


def goes_on_alike(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["is_dict"]:
        return "`state_dict()` does not return a dict."
    if not seen.data["loads"]:
        return "`torch.load`, with its defaults, refuses your state dict."
    for name in ("same", "new", "snapshot", "again"):
        for one, other in zip(
            seen.data[name], expected.data[name], strict=True
        ):
            if not near(one, other, EXACT):
                return {
                    "same": "The scale is not what it should be.",
                    "new": "A new scaler that has loaded the state dict goes on "
                    "with other scales.",
                    "snapshot": "A state dict changed after it was made, or its "
                    "scaler when another one loaded it.",
                    "again": "A scaler went on in the very dict that it had "
                    "loaded: the dict is another afterwards.",
                }[name]
    return None


def checkpoint(draw: Draw, pattern: str, saved_after: int, **more: object):
    case = scaled(draw, pattern, **more)  # type: ignore[arg-type]
    new = {"init_scale": float(draw.integer(3, 9))}
    return {**case, "saved_after": saved_after, "new_settings": new}


@check(
    "loss_scaler",
    probe=probes.saved_and_loaded,
    weight=2,
    rule=goes_on_alike,
    says="`state_dict` and `load_state_dict`: a new scaler goes on where the "
    "old one was, whatever its own arguments",
    corners=[
        "scale, factors, interval, and the good steps counted so far",
        "`torch.save` and `torch.load`, with its defaults, carry the dict; it "
        "is asked for between iterations",
        "it does not change afterwards, nor by being loaded",
    ],
)
def scaler_state(draw: Draw) -> list[Case]:
    def settings() -> dict:
        return {
            "init_scale": draw.uniform(1, low=100, high=900).item(),
            "growth_interval": 3,
            "growth_factor": 4.0,
            "backoff_factor": 0.125,
        }

    return [
        checkpoint(draw, "......", 2, settings=settings()),
        checkpoint(draw, "..x......", 5, settings=settings()),
        checkpoint(draw, "...x..", 3, settings=settings()),
        checkpoint(draw, "..x..", 1, settings=settings()),
    ]


def stays_off(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["is_dict"]:
        return "`state_dict()` of a disabled scaler does not return a dict."
    for one, other in in_pairs(seen, expected):
        for key in ("scale", "next_scale", "scaled"):
            if not near(one[key], other[key], EXACT):
                if key == "scaled" and not near(
                    one["loss"], other["loss"], EXACT
                ):
                    continue  # an earlier step went wrong
                return (
                    "A disabled scaler that has loaded a state dict scales. "
                    "Its scale is 1.0 all the time."
                )
    return right_weights(case, seen, expected)


@check(
    "loss_scaler",
    probe=probes.loaded_when_off,
    rule=stays_off,
    says="a disabled scaler has a state dict as well, and stays disabled whatever "
    "it loads",
)
def disabled_scaler_loads(draw: Draw) -> list[Case]:
    settings = {"init_scale": 100.0, "growth_interval": 2}
    return [
        checkpoint(draw, pattern, 0, settings=settings)
        for pattern in ("....", "x...", ".....")
    ]


def both_alone(case: Case, seen: Result, expected: Result) -> str | None:
    """Whether each scaler does what it does alone, right or wrong; the scale after
    a good step, which is drawn, always counts."""
    for i in (0, 1):
        first = seen.data["scales_alone"][i][0]
        if not near(first, expected.data["scales_alone"][i][0], EXACT):
            return "The scale is not what it should be after some of the steps."
        for one, other in zip(
            seen.data["scales"][i], seen.data["scales_alone"][i], strict=True
        ):
            if not near(one, other, EXACT):
                return (
                    "Of two scalers at once, one has another scale than it has "
                    "alone."
                )
        left, right = seen.data["weights"][i], seen.data["weights_alone"][i]
        if not torch.allclose(left, right, rtol=EXACT, equal_nan=True):
            return (
                "With two scalers at once the weights are others than with each "
                "of them alone."
            )
    return None


@check(
    "loss_scaler",
    probe=probes.two_at_once,
    rule=both_alone,
    says="two scalers at once do not disturb each other",
)
def two_scalers(draw: Draw) -> list[Case]:
    def both() -> list[dict]:
        return [
            {"init_scale": float(draw.integer(10, 90)), "growth_interval": 2},
            {"init_scale": float(draw.integer(100, 900))},
        ]

    return [{**scaled(draw, "..x.."), "both_settings": both()}]


@check(
    "loss_scaler",
    probe=probes.some_steps,
    rule=leaves_settings,
    also=ALONE,
    says="the scaler changes no setting of PyTorch and uses nothing deprecated",
    corners=[
        "wrapping `torch.amp.GradScaler` passes, too, though it differs in "
        "corners: with no gradient at all, `step` raises. Write it yourself once",
        "no seed is set",
    ],
)
def scaler_leaves_the_rest(draw: Draw) -> list[Case]:
    return [draw.once(scaled, ".x."), draw.once(scaled, unscale_first=True)]


# clipped_step


def steps(
    draw: Draw,
    pattern: str = "..",
    *,
    max_norm: float = 0.1,
    settings: dict | None = None,
    **options: object,
) -> Case:
    """One batch for each letter of `pattern`: the kinds of `batch`."""
    case = model_of(draw, **options)  # type: ignore[arg-type]
    return {
        **case,
        "batches": [
            batch(draw, case, draw.integer(5, 9), letter) for letter in pattern
        ],
        "max_norm": max_norm,
        "settings": {"init_scale": 1024.0, **(settings or {})},
    }


QUIET = {
    "weights_dtype": "float32",
    "autocast": "float16",
    "loudness": 1e-8,
    "lr": 1e7,
    "settings": {"init_scale": 2.0**18},
}


def in_pairs(seen: Result, expected: Result):
    return zip(seen.data["history"], expected.data["history"], strict=True)


def is_a_pair(result: Result) -> bool:
    return all(one["is_pair"] for one in result.data["history"])


def right_norm(case: Case, seen: Result, expected: Result) -> str | None:
    if not is_a_pair(seen):
        return "What you return is not a tuple of two."
    start, before = case["start_weights"].double(), None
    for one, other in in_pairs(seen, expected):
        if before is not None and off_by(*before, start) > slack(case):
            break  # a wrong step has come before: later gradients are others
        before = one["weights"], other["weights"]
        if type(one["norm"]) is not float:
            return "The norm that you return is not a Python float."
        if not math.isfinite(other["norm"]) and math.isfinite(one["norm"]):
            return "Where the gradient overflows, the norm must not be finite."
        if not near(one["norm"], other["norm"], slack(case)):
            return "The norm is not that of the true gradient before clipping."
    return None


def right_loss(case: Case, seen: Result, expected: Result) -> str | None:
    if not is_a_pair(seen):
        return "What you return is not a tuple of two."
    start, before = case["start_weights"].double(), None
    for i, (one, other) in enumerate(in_pairs(seen, expected)):
        if before is not None and off_by(*before, start) > slack(case):
            break  # a wrong step has come before: these are other weights
        before = one["weights"], other["weights"]
        if type(one["loss"]) is not float:
            return "The loss that you return is not a Python float."
        # After a step, sums taken in another order show in 16 bits.
        if not near(one["loss"], other["loss"], slack(case) if i else 1e-5):
            return "The loss that you return is not the batch's mean."
    return None


def one_of_each(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        if one["num_steps"] != other["num_steps"]:
            which = "more" if one["num_steps"] > other["num_steps"] else "fewer"
            return f"The optimizer made {which} steps than it should."
        if one["num_updates"] != other["num_updates"]:
            return "The scaler that was given was not updated once per call."
    return every_sample_came_back(case, seen, expected)


def overflow_left_out(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        if one["num_steps"] > other["num_steps"]:
            return "The optimizer stepped although the gradient overflowed."
        if not near(one["scale"], other["scale"], EXACT):
            return "The scale is not what it should be after an overflow."
        if not same(one["momentum"], other["momentum"], EXACT):
            return "The optimizer's momentum is not what it should be."
    return right_weights(case, seen, expected)


def history_of_scales(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        if not near(one["scale"], other["scale"], EXACT):
            return "The scale of the scaler that was given is not right."
    return right_weights(case, seen, expected)


def all_of_autocast(case: Case, seen: Result, expected: Result) -> str | None:
    complaint = in_low_precision(case, seen, expected)
    if complaint:
        return complaint
    low = case["autocast"] != "off"
    wanted = ["float32" if low else case["weights_dtype"]]
    if seen.data["scaled"] not in ([], wanted):
        if not low:
            return (
                "Without `dtype` the loss has the dtype of the model's outputs. "
                "What was scaled has another one."
            )
        return (
            "What was scaled is not float32. `F.cross_entropy` inside the block "
            "gives a float32 loss; `log_softmax`, on a CPU, stays 16 bit."
        )
    return weights_keep_their_dtype(case, seen, expected)


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    weight=8,
    rule=right_weights,
    says="the true gradient is clipped: the update has the length lr · "
    "`max_norm`, whatever the scale",
    corners=["`max_norm` may be 0"],
)
def update_is_clipped(draw: Draw) -> list[Case]:
    loud = {"loudness": 8.0}
    return [
        *(
            draw.once(
                steps, max_norm=0.05, settings={"init_scale": scale}, **loud
            )
            for scale in (2.0**4, 2.0**16, 1000.0)
        ),
        steps(draw, "...", max_norm=0.3, momentum=0.9, **loud),
        steps(draw, "..", max_norm=3e4, loudness=3e6, lr=1e-6),
        steps(draw, "..", max_norm=0.0),
        steps(draw, "..", max_norm=0.0, weight_decay=0.1),
        draw.once(steps, max_norm=0.05, three_groups=True, **loud),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    weight=2,
    rule=right_norm,
    says="the norm returned is that of the true gradient, before clipping, a "
    "Python float; inf or NaN after an overflow",
)
def norm_returned(draw: Draw) -> list[Case]:
    return [
        draw.once(
            steps,
            max_norm=0.05,
            settings={"init_scale": 1000.0},
            loudness=8.0,
        ),
        draw.once(steps, max_norm=1e4, settings={"init_scale": 2.0**16}),
        draw.once(steps, ".x.", momentum=0.9),
        steps(draw, ".n.", settings={"init_scale": 300.0}, turns=True),
        draw.once(steps, "..."),
        draw.once(steps, ".", max_norm=1e3, **QUIET),  # type: ignore[arg-type]
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=right_weights,
    says="a gradient shorter than `max_norm` stays as it is, also one of "
    "exactly 0",
    corners=["nor is a step left out where the loss is exactly 0"],
)
def short_gradients_stay(draw: Draw) -> list[Case]:
    return [
        steps(draw, "mm", max_norm=50.0),
        steps(draw, max_norm=30.0, settings={"init_scale": 3.0}, lr=0.1),
        draw.once(steps, max_norm=1e4, settings={"init_scale": 2.0**16}),
        steps(draw, max_norm=0.5, loudness=0.0, weight_decay=0.1),
        steps(draw, max_norm=0.0, loudness=0.0, weight_decay=0.1),
        steps(draw, max_norm=0.5, num_classes=1, weight_decay=0.1),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    weight=2,
    rule=right_weights,
    says="gradients arrive that are too small for float16",
)
def tiny_gradients_arrive(draw: Draw) -> list[Case]:
    return [
        steps(draw, "...", max_norm=10.0, **QUIET),  # type: ignore[arg-type]
        draw.once(steps, ".", max_norm=1e3, **QUIET),  # type: ignore[arg-type]
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    weight=2,
    rule=one_of_each,
    says="one step of the optimizer and one update of the scaler per call",
)
def one_step_one_update(draw: Draw) -> list[Case]:
    return [
        draw.once(steps, "..."),
        steps(draw, ".", max_norm=20.0),
        steps(draw, ".x", weights_dtype="float32", autocast="bfloat16"),
        steps(draw, ".n", settings={"init_scale": 1.0}),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    weight=3,
    rule=overflow_left_out,
    says="after an overflow weights and momentum are as before, the scale falls, "
    "and the next call trains",
)
def overflow_is_left_out(draw: Draw) -> list[Case]:
    natural = {
        "weights_dtype": "float32",
        "autocast": "float16",
        "settings": {"init_scale": 2.0**24, "backoff_factor": 2.0**-14},
    }
    return [
        draw.once(steps, ".x.", momentum=0.9),
        steps(draw, "xx..", max_norm=0.2, weight_decay=0.1),
        steps(draw, "...", max_norm=9.0, **natural),  # type: ignore[arg-type]
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=history_of_scales,
    says="the scaler that was given goes through all calls, and its scale grows",
    corners=["from `2**24` on, too, and an overflow takes it below 1"],
)
def scale_history(draw: Draw) -> list[Case]:
    settings = {"init_scale": 4.0, "growth_interval": 2}
    return [
        steps(draw, "....", settings=settings),
        steps(draw, "..x...", settings=settings),
        # nothing is clipped: 1e-6 beside a norm that is small already would show
        steps(
            draw,
            "x..",
            max_norm=1e4,
            settings={"init_scale": 1.0, "growth_interval": 1},
        ),
        steps(draw, settings={"init_scale": 2.0**24, "growth_interval": 1}),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    weight=2,
    rule=all_of_autocast,
    says="the layers compute in `dtype`, the loss is float32, and so are "
    "weights and gradients; without `dtype` all is as it came",
    corners=[
        "the inputs go into the model as they came, whole numbers and images, too"
    ],
)
def step_in_autocast(draw: Draw) -> list[Case]:
    return [
        *(
            draw.once(steps, weights_dtype="float32", autocast=dtype)
            for dtype in ("float16", "bfloat16")
        ),
        draw.once(steps),
        steps(draw, "i", weights_dtype="float32"),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=backward_outside,
    also=[step_outside],
    says="the backward pass and the step are outside autocast",
)
def clipped_backward_outside(draw: Draw) -> list[Case]:
    return [
        draw.once(steps, weights_dtype="float32", autocast=dtype)
        for dtype in ("float16", "bfloat16")
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=right_loss,
    says="the loss returned is the batch's mean, not scaled, a Python float",
    corners=["with all digits of float32, under autocast too, and a small one"],
)
def clipped_loss(draw: Draw) -> list[Case]:
    return [
        draw.once(steps, "..."),
        draw.once(steps, max_norm=1e4, settings={"init_scale": 2.0**16}),
        draw.once(steps, weights_dtype="float32", autocast="bfloat16"),
        # a loss that is finite, and infinite when scaled
        steps(
            draw,
            settings={"init_scale": 2.0**24},
            weights_dtype="float32",
            loudness=1e34,
        ),
        # in calls in which the scale grows and falls
        steps(draw, "..x.", settings={"init_scale": 4.0, "growth_interval": 1}),
        sure(steps(draw, ".")),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=right_weights,
    says="old gradients do not count; frozen and unused parameters stay; several "
    "groups are clipped together",
    corners=[
        "the optimizer holds all parameters of the model, and no others",
        "the model may have parameters beside its layers, also single numbers, and "
        "add two of them up",
    ],
)
def clipped_old_gradients(draw: Draw) -> list[Case]:
    return [
        steps(draw, old_gradients=True),
        draw.once(steps, traps=True, old_gradients=True),
        steps(
            draw, "...", traps=True, turns=True, momentum=0.9, weight_decay=0.1
        ),
        draw.once(steps, max_norm=0.05, three_groups=True, loudness=8.0),
        steps(draw, turns=True, old_gradients=True, max_norm=50.0),
    ]


def disabled_scaler(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        if one["num_steps"] < other["num_steps"]:
            return "With a scaler that is disabled a step was left out."
        if one.get("skipped") != other.get("skipped"):
            return "With a scaler that is disabled no window is skipped."
        if one.get("scheduler_steps", 0) < other.get("scheduler_steps", 0):
            return (
                "With a scaler that is disabled the scheduler did not step after "
                "a step that was made."
            )
        if not other["weights"].isfinite().all():
            if one["weights"].isfinite().all():
                return (
                    "With a scaler that is disabled a gradient that is not finite "
                    "is stepped on as it is, and the weights show it. Yours are "
                    "finite."
                )
            return None  # nothing is right after it
    # in the words of the other checks: wrong weights are one fault
    complaint = right_weights(case, seen, expected)
    return complaint or in_low_precision(case, seen, expected)


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=disabled_scaler,
    says="a disabled scaler: the same code, without scaling",
    corners=[
        "it leaves no step out, and steps on the gradients as they are: where they "
        "are not finite, the weights are not"
    ],
)
def clipped_disabled(draw: Draw) -> list[Case]:
    off = {"enabled": False}
    return [
        steps(draw, "...", settings=off),
        steps(draw, weights_dtype="float32", autocast="bfloat16", settings=off),
        steps(draw, max_norm=30.0, settings=off, momentum=0.9),
        steps(draw, ".x", settings=off),
        steps(draw, ".n", settings=off),
    ]


@check(
    "clipped_step",
    probe=probes.clipped_steps,
    rule=autocast_is_closed,
    also=ALONE,
    says="all else stays: autocast is off afterwards; modes, tensors and "
    "settings are as they were, and nothing deprecated is used",
    corners=[
        "call `model(...)`, not `model.forward(...)`, once for each batch",
        "the mode (train or eval) of each layer, what is frozen, hooks and "
        "the random state are not yours to change",
        "no seed is set",
    ],
)
def clipped_leaves_the_rest(draw: Draw) -> list[Case]:
    low = {"weights_dtype": "float32", "autocast": "float16"}
    return [
        draw.once(steps),
        *(steps(draw, mode=mode) for mode in ("eval", "mixed")),
        draw.once(steps, **low),  # type: ignore[arg-type]
        draw.once(steps, traps=True, old_gradients=True),
    ]


# train_epoch_amp


def epochs(
    draw: Draw,
    sizes: list[int],
    accumulation_steps: int,
    *,
    overflows: tuple[int, ...] = (),
    nans: tuple[int, ...] = (),
    kind: str = ".",
    num_epochs: int = 1,
    scheduled: bool | str = False,
    as_generator: bool = True,
    breaks: bool = False,
    settings: dict | None = None,
    **options: object,
) -> Case:
    """Micro-batches of these sizes; `overflows` are those whose gradient does,
    `nans` those whose loss is NaN; the others are of one of the kinds of `batch`. If
    it `breaks`, the loader raises where others end.

    A schedule of "warm-up" begins with a rate of 0. A loader that is no generator
    begins anew each time that it is asked for an iterator.
    """
    case = model_of(draw, **options)  # type: ignore[arg-type]
    return {
        **case,
        "micro_batches": [
            batch(
                draw,
                case,
                size,
                "x" if i in overflows else "n" if i in nans else kind,
            )
            for i, size in enumerate(sizes)
        ],
        "accumulation_steps": accumulation_steps,
        "num_epochs": num_epochs,
        "scheduled": scheduled,
        "as_generator": as_generator,
        "breaks": breaks,
        "settings": {"init_scale": 1024.0, **(settings or {})},
    }


def one_per_window(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        for key, words in (
            ("num_updates", "The scaler was updated"),
            ("num_steps", "The optimizer stepped"),
        ):
            if one[key] != other[key]:
                more = one[key] > other[key]
                return f"{words} {'more' if more else 'less'} often than it should."
    return every_sample_came_back(case, seen, expected)


def window_left_out(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        if one["num_steps"] != other["num_steps"]:
            more = one["num_steps"] > other["num_steps"]
            return (
                "A window that overflows was stepped on."
                if more
                else "More than the window that overflows was left out."
            )
        if not near(one["scale"], other["scale"], EXACT):
            return "The scale is not what it should be after an overflow."
        if not same(one["momentum"], other["momentum"], EXACT):
            return "The optimizer's momentum is not what it should be."
    return right_weights(case, seen, expected)


def number_skipped(case: Case, seen: Result, expected: Result) -> str | None:
    if not is_a_pair(seen):
        return "What you return is not a tuple of two."
    for one, other in in_pairs(seen, expected):
        if type(one["skipped"]) is not int:
            return "The number of skipped windows is not an int."
        if one["skipped"] != other["skipped"]:
            return "The number of skipped windows is wrong."
    return every_sample_came_back(case, seen, expected)


def scheduler_follows(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in in_pairs(seen, expected):
        steps, right = one["scheduler_steps"], other["scheduler_steps"]
        if steps != right and steps == one["num_steps"]:
            return (
                "Optimizer and scheduler stepped "
                f"{'more' if steps > right else 'less'} often than they should: "
                "once per window, and not where the whole window is skipped."
            )
        if steps > right:
            return (
                "The scheduler stepped more often than the optimizer did. It steps "
                "once per window, and must not where the step was skipped."
            )
        if steps < right:
            return "The scheduler stepped less often than the optimizer did."
        if not near(one["rate"], other["rate"], EXACT):
            return "The learning rate is not that of the schedule."
    return right_weights(case, seen, expected)


def nothing_left(case: Case, seen: Result, expected: Result) -> str | None:
    if any(one["left"] != 0.0 for one in seen.data["history"]):
        return "After the epoch there are gradients left."
    return every_sample_came_back(case, seen, expected)


def small_and_freed(case: Case, seen: Result, expected: Result) -> str | None:
    rows, right = seen.data["rows"], expected.data["rows"]
    if rows and max(rows) > max(right):
        return "A forward pass got more rows than a micro-batch has."
    if rows != right:
        return "The forward passes are not those of the micro-batches."
    for one, other in in_pairs(seen, expected):
        if one["graphs"] > other["graphs"]:
            return (
                "More than one micro-batch's graph was kept at once. Go "
                "backward on each before the next one goes forward."
            )
    return every_sample_came_back(case, seen, expected)


def mean_of_epoch(case: Case, seen: Result, expected: Result) -> str | None:
    if not is_a_pair(seen):
        return "What you return is not a tuple of two."
    for one, other in in_pairs(seen, expected):
        if type(one["loss"]) is not float:
            return "The loss that you return is not a Python float."
        if math.isnan(other["loss"]):
            if math.isnan(one["loss"]):
                continue
            if case["micro_batches"]:
                return "A sample's loss was NaN, and the mean hides it."
            return "Without a micro-batch the loss is NaN."
        # With one step, nothing is rounded but the logits.
        once = len(case["micro_batches"]) <= case["accumulation_steps"]
        tolerance = 1e-5 if once else slack(case)
        if not near(one["loss"], other["loss"], tolerance):
            return "The loss is not the mean over all samples of the epoch."
    return None


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    weight=3,
    rule=right_weights,
    says="each step uses the mean over its window's samples, also of "
    "micro-batches of unequal size, whatever the scale",
    corners=[
        "a loss of exactly 0 is a step, too; no finite gradient is clipped",
        "the model may have parameters beside its layers, also single numbers",
    ],
)
def windows_use_their_mean(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4] * 4, 2),
        draw.once(
            epochs, [6, 2, 5, 3, 7, 1], 3, settings={"init_scale": 2.0**16}
        ),
        epochs(draw, [4] * 4, 4, settings={"init_scale": 500.0}, momentum=0.9),
        draw.once(epochs, [5, 3], 1, num_epochs=2),
        epochs(draw, [2] * 18, 9, weight_decay=0.1, kind="m"),
        epochs(draw, [4, 5, 3], 2, loudness=1e9, lr=3e-9),
        epochs(draw, [4] * 3, 2, num_classes=1, weight_decay=0.1),
        epochs(draw, [4] * 4, 2, turns=True),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    weight=2,
    rule=right_weights,
    says="a short last window is stepped on, with its own denominator",
)
def last_window(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4] * 5, 2, num_epochs=2),
        draw.once(epochs, [4], 3),
        epochs(draw, [5, 5, 5, 2], 3),
        epochs(draw, [3] * 4, 10, momentum=0.9),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    weight=2,
    rule=one_per_window,
    says="one step and one update of the scaler per window: n micro-batches "
    "give n / k, rounded up",
    corners=["the scale does not change within a window"],
)
def one_update_per_window(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4] * 4, 2),
        draw.once(epochs, [4] * 5, 2, num_epochs=2),
        draw.once(
            epochs, [6, 2, 5, 3, 7, 1], 3, settings={"init_scale": 2.0**16}
        ),
        draw.once(epochs, [4], 3),
        draw.once(epochs, [5, 3], 1, num_epochs=2),
        epochs(draw, [3] * 5, 2, as_generator=False),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    weight=3,
    rule=window_left_out,
    says="an overflow in one micro-batch leaves out its whole window, and no "
    "more",
    corners=["the scale falls once for it, and the momentum stays"],
)
def overflow_skips_the_window(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [4] * 6, 2, overflows=(2,), momentum=0.9),
        epochs(draw, [4] * 6, 3, overflows=(2,)),
        draw.once(epochs, [3] * 5, 2, overflows=(4,), num_epochs=2),
        draw.once(epochs, [3] * 7, 3, overflows=(0, 1, 4), weight_decay=0.1),
        epochs(draw, [3] * 6, 2, nans=(2,), momentum=0.9),
        epochs(draw, [3] * 5, 2, nans=(0, 4), num_epochs=2),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=number_skipped,
    says="the number of skipped windows is returned, as an int",
)
def skipped_windows(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [3] * 7, 3, overflows=(0, 1, 4), weight_decay=0.1),
        draw.once(epochs, [4] * 4, 2),
        epochs(
            draw,
            [3] * 4,
            1,
            overflows=(0, 3),
            num_epochs=2,
            settings={"backoff_factor": 0.25},
        ),
        epochs(
            draw,
            [3] * 4,
            2,
            overflows=(1,),
            settings={"init_scale": 8.0, "growth_interval": 1},
        ),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    weight=2,
    rule=scheduler_follows,
    says="the scheduler steps after each step that was made, and only then",
    corners=[
        "a disabled scaler skips nothing",
        "also after a window whose loss is NaN",
        "the scale grows from `2**24` on, too, and overflows take it below 1",
        "no optimizer is `fused`",
    ],
)
def schedule_of_made_steps(draw: Draw) -> list[Case]:
    growing = {"growth_interval": 1, "init_scale": 4.0}
    return [
        epochs(draw, [3] * 5, 2, scheduled=True),
        epochs(draw, [3] * 6, 2, scheduled=True, nans=(1,)),
        epochs(
            draw, [3] * 6, 2, scheduled=True, overflows=(3,), settings=growing
        ),
        epochs(draw, [3] * 4, 2, scheduled=True, settings={"enabled": False}),
        epochs(
            draw,
            [3] * 3,
            1,
            scheduled=True,
            overflows=(0, 1),
            settings={**growing, "init_scale": 1.0, "backoff_factor": 0.25},
        ),
        epochs(
            draw,
            [3] * 2,
            1,
            scheduled=True,
            settings={**growing, "init_scale": 2.0**24},
        ),
        epochs(draw, [3] * 7, 2, scheduled="warm-up", overflows=(3,)),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    weight=2,
    rule=all_of_autocast,
    also=[backward_outside, step_outside],
    says="forward pass and loss in autocast of `dtype`, all else outside; the "
    "loss is float32, weights and gradients too",
    corners=[
        "the inputs go into the model as they came, whole numbers and images, too",
        "micro-batches are read outside of autocast, too, and before a window's "
        "step at most one beyond that window",
    ],
)
def epoch_in_autocast(draw: Draw) -> list[Case]:
    return [
        *(
            draw.once(
                epochs, [4] * 3, 2, weights_dtype="float32", autocast=dtype
            )
            for dtype in ("float16", "bfloat16")
        ),
        draw.once(epochs, [4] * 4, 2),
        epochs(
            draw,
            [4] * 4,
            2,
            weights_dtype="float32",
            as_generator=False,
            kind="i",
        ),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=right_weights,
    says="gradients arrive that are too small for float16",
)
def epoch_of_tiny_gradients(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [4] * 4, 2, **QUIET),  # type: ignore[arg-type]
        epochs(draw, [4, 2, 5], 2, **QUIET),  # type: ignore[arg-type]
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=nothing_left,
    says="no gradients are left after the epoch, also after an overflow: "
    "`None` or zeros",
    corners=["at the start they are `None` or zeros as well"],
)
def no_gradients_left(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [4] * 5, 2, num_epochs=2),
        draw.once(epochs, [3] * 5, 2, overflows=(4,), num_epochs=2),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=small_and_freed,
    says="the model sees one micro-batch at a time, and its graph is freed before "
    "the next",
    corners=["all of them, also those after one whose loss is NaN"],
)
def epoch_graphs(draw: Draw) -> list[Case]:
    return [
        epochs(draw, [12] * 4, 4),
        epochs(draw, [9, 12, 11, 8], 2),
        epochs(draw, [9, 12, 11, 8], 2, nans=(0,)),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=mean_of_epoch,
    says="the loss returned is the mean over all samples of the epoch; NaN if "
    "there is none",
    corners=[
        "each sample's loss at the moment it went through the model, those of "
        "skipped windows too; a small one, too",
        "if the loader yields nothing, nothing is stepped or updated",
    ],
)
def epoch_loss(draw: Draw) -> list[Case]:
    return [
        draw.once(
            epochs, [6, 2, 5, 3, 7, 1], 3, settings={"init_scale": 2.0**16}
        ),
        epochs(draw, [], 2),
        # losses that are finite, and infinite when scaled
        epochs(
            draw,
            [3, 4],
            1,
            settings={"init_scale": 2.0**24},
            weights_dtype="float32",
            loudness=1e34,
        ),
        epochs(draw, [4, 3, 4, 2], 3, overflows=(1,), num_epochs=2),
        epochs(draw, [4, 3, 2], 2, nans=(1,)),
        epochs(
            draw,
            [3, 4, 2],
            1,
            settings={"init_scale": 4.0, "growth_interval": 1},
        ),
        *(
            epochs(draw, sizes, 2, weights_dtype="float32", autocast="bfloat16")
            for sizes in ([5, 3, 2], [6, 3], [5])
        ),
        sure(epochs(draw, [1], 1)),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=disabled_scaler,
    says="a disabled scaler, as with bfloat16: the same code",
    corners=[
        "a window that overflows is stepped on, with the gradients as they are; "
        "the scheduler follows"
    ],
)
def epoch_disabled(draw: Draw) -> list[Case]:
    off = {"enabled": False}
    return [
        epochs(draw, [4, 3, 4], 2, settings=off),
        epochs(draw, [4, 3, 4], 2, settings=off, overflows=(1,)),
        epochs(draw, [4, 3, 4], 2, settings=off, nans=(2,)),
        epochs(
            draw, [4, 3, 4], 1, settings=off, overflows=(1,), scheduled=True
        ),
        epochs(
            draw,
            [4] * 4,
            2,
            weights_dtype="float32",
            autocast="bfloat16",
            settings=off,
        ),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=autocast_is_closed,
    also=ALONE,
    says="all else stays: autocast is off afterwards; modes, tensors and "
    "settings are as they were, and nothing deprecated is used",
    corners=[
        "an error that the loader raises is not its end, and comes out",
        "call `model(...)`, not `model.forward(...)`, once for each batch",
        "the mode (train or eval) of each layer, what is frozen, hooks and "
        "the random state are not yours to change",
        "no seed is set",
    ],
)
def epoch_leaves_the_rest(draw: Draw) -> list[Case]:
    low = {"weights_dtype": "float32", "autocast": "float16"}
    return [
        draw.once(epochs, [4] * 4, 2),
        *(epochs(draw, [3, 3, 2], 2, mode=mode) for mode in ("eval", "mixed")),
        draw.once(epochs, [3, 3, 2], 2, traps=True, weight_decay=0.1),
        draw.once(epochs, [4] * 3, 2, **low),  # type: ignore[arg-type]
        epochs(draw, [3] * 3, 2, breaks=True),
    ]


@check(
    "train_epoch_amp",
    probe=probes.epochs_in_windows,
    rule=right_weights,
    says="frozen and unused parameters, several groups: no step moves what has no "
    "gradient",
    corners=["unused is what no window uses"],
)
def epoch_without_gradients(draw: Draw) -> list[Case]:
    return [
        draw.once(epochs, [3, 3, 2], 2, traps=True, weight_decay=0.1),
        epochs(draw, [3] * 4, 2, three_groups=True, overflows=(1,)),
    ]
