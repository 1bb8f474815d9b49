"""What is checked in chapter 04: inspecting models."""

import re
from collections import Counter
from typing import Any

import torch

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

WORDS = ("stem", "body", "gate", "mix", "proj", "core", "tail", "wing")


def names(draw: Draw, number: int = 3) -> list[str]:
    """Names for layers, all different."""
    order = draw.permutation(len(WORDS))[:number].tolist()
    return [f"{WORDS[i]}{draw.integer(0, 100)}" for i in order]


def sizes(draw: Draw) -> list[int]:
    """Two sizes, never the same."""
    a = draw.integer(3, 9)
    return [a, a + draw.integer(1, 6)]


def data_of(result: Result) -> dict[str, Any]:
    return result.data if isinstance(result.data, dict) else {}


def same(key: str, sentence: str) -> Rule:
    """The fact `key` is the reference's; else the sentence."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        if expected.raised or seen.raised:
            return None
        return (
            None
            if data_of(seen).get(key) == expected.data.get(key)
            else sentence
        )

    return rule


CHANGES = {
    "modes": "a module is in another mode (training or evaluation)",
    "hooks": "there are more hooks, or fewer",
    "flags": "a `requires_grad` has changed",
    "gradients": "a gradient has changed, has come or is gone",
    "values": "a parameter or a buffer has other values",
    "dtypes": "a parameter or a buffer has another name, dtype or device",
    "attributes": "a module has another attribute, or has lost one",
    "tensors": "a parameter, a gradient or a buffer is another tensor",
}


def as_it_was(case: Case, seen: Result, expected: Result) -> str | None:
    if expected.raised or seen.raised:
        return None
    changes = data_of(seen).get("changes", list(CHANGES))
    for one in changes:
        return f"After your look the model is another: {CHANGES[one]}."
    return None


keeps_the_grad_mode = same(
    "grad_mode_kept",
    "Gradients are not switched as they were before your call.",
)

# count_parameters


def counted(draw: Draw, kind: str, **options: Any) -> Case:
    return {"kind": kind, "sizes": sizes(draw), **options}


KINDS = {
    "linear": "two linear layers",
    "conv": "convolutions, one of them in a submodule",
    "own": "parameters of its own, lists and dicts of them",
    "recurrent": "an LSTM, in a submodule named `module`",
    "attention": "an `nn.MultiheadAttention`",
    "tied": "two layers that share a weight",
    "twice": "a layer that is there twice",
    "buffers": "buffers, plain tensors and layers in a Python list",
    "dtypes": "parameters of several dtypes, complex and integer too",
    "odd memory": "parameters that share memory, are strided or empty",
    "without": "no parameters",
    "frozen bias": "a frozen bias",
    "frozen layer": "a frozen layer",
    "frozen tied": "a frozen weight that two layers share",
    "all frozen": "frozen parameters alone",
    "alike": "parameters of equal values",
    "warmed": "a lazy layer that has seen a batch",
    "lazy buffers": "lazy buffers, and parameters that all have a size",
}


def counts_agree(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.raised or expected.raised:
        return None
    if "refused" in data_of(seen):
        return (
            f"Your code raised a ValueError for a model with "
            f"{KINDS[case['kind']]}: buffers do not count."
        )
    got, wanted = data_of(seen).get("counts"), expected.data["counts"]
    found = difference(got, wanted, Tolerance(), "counts")
    if not found:
        return None
    here = " on meta" if case.get("device") == "meta" else ""
    return f"{found.rstrip('.')}, in a model{here} with {KINDS[case['kind']]}."


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    weight=2,
    says="weights, biases and all else that is registered as a parameter, in "
    "every layer",
)
def counts_all(draw: Draw) -> list[Case]:
    kinds = ["linear", "conv", "own", "recurrent", "attention", "warmed"]
    return [counted(draw, kind) for kind in kinds]


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    weight=2,
    says="a parameter with several names counts once",
    corners=["two that share no more than memory or values are two"],
)
def counts_shared_once(draw: Draw) -> list[Case]:
    kinds = ["tied", "twice", "frozen tied", "alike", "odd memory"]
    return [counted(draw, kind) for kind in kinds]


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    says="frozen parameters are in the total and not in the trainable ones",
)
def tells_frozen_ones(draw: Draw) -> list[Case]:
    kinds = ["frozen bias", "frozen layer", "all frozen"]
    return [counted(draw, kind) for kind in kinds]


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    says="buffers and what is not registered do not count",
)
def leaves_buffers_out(draw: Draw) -> list[Case]:
    return [counted(draw, "buffers") for _ in range(3)]


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    weight=2,
    says="bytes: numbers times bytes per number, by the dtype of each parameter",
)
def counts_bytes(draw: Draw) -> list[Case]:
    return [
        counted(draw, "dtypes"),
        counted(draw, "odd memory"),
        counted(draw, "dtypes", device="meta"),
    ]


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    says="models on the meta device; a model without parameters gives zeros",
)
def counts_without_values(draw: Draw) -> list[Case]:
    return [
        counted(draw, "linear", device="meta"),
        counted(draw, "tied", device="meta"),
        counted(draw, "without"),
        counted(draw, "odd memory", device="meta"),
    ]


@check(
    "count_parameters",
    probe=probes.count,
    rule=counts_agree,
    raises=["ValueError"],
    says="a parameter without a size, as in a lazy layer, raises a `ValueError`",
    corners=["a buffer without a size is no reason"],
)
def refuses_lazy_ones(draw: Draw) -> list[Case]:
    kinds = ["linear", "lazy", "lazy frozen", "lazy own", "lazy norm", "warmed"]
    kinds.append("lazy buffers")
    return [counted(draw, kind) for kind in kinds]


@check(
    "count_parameters",
    probe=probes.count,
    rule=same_form("counts"),
    also=[leaves_rng_alone, leaves_state_alone, as_it_was, keeps_the_grad_mode],
    says="the model and the grad mode are left as they were",
    corners=["no seed is set, and no setting of PyTorch is changed"],
)
def leaves_the_counted_model(draw: Draw) -> list[Case]:
    return [
        counted(draw, "frozen layer", training=False),
        counted(draw, "linear", gradients=True, grad=False),
        counted(draw, "own"),
    ]


@check(
    "count_parameters",
    probe=probes.count_again,
    says="a model that has changed is counted anew",
)
def counts_anew(draw: Draw) -> list[Case]:
    return [counted(draw, "linear"), counted(draw, "frozen bias")]


# layer_shapes


def shaped(draw: Draw, kind: str, **options: Any) -> Case:
    case = {
        "kind": kind,
        "names": names(draw),
        "sizes": sizes(draw),
        "batch": draw.integer(2, 5),
    }
    return {**case, **options}


def gives_a_list(case: Case, seen: Result, expected: Result) -> str | None:
    if not isinstance(data_of(seen).get("listed"), list):
        return "Your function does not return a list."
    return None


def lists_the_calls(case: Case, seen: Result, expected: Result) -> str | None:
    found = gives_a_list(case, seen, expected)
    if found:
        return found
    listed, wanted = seen.data["listed"], expected.data["listed"]
    if any(not isinstance(one, tuple) or len(one) != 3 for one in listed):
        return "Each entry is a tuple of three: name, type and shape."
    last = listed[-len(wanted) :]
    if (
        len(listed) > len(wanted)
        and difference(last, wanted, Tolerance()) is None
    ):
        return "In front of this call's entries there are others, of earlier calls."
    if sorted(str(one[0]) for one in listed) == sorted(
        str(one[0]) for one in wanted
    ):
        if [one[0] for one in listed] != [one[0] for one in wanted]:
            return "The layers are there, but not in the order of the calls."
    elif {one[0] for one in wanted} == {str(one[0]) for one in listed}:
        return "All layers are there, but not once for each call."
    elif len(listed) == len(wanted):
        return "Some names are not those of `named_modules()`."
    elif len(listed) < len(wanted):
        return "Calls of some leaves are missing."
    else:
        return "There are entries for what is no leaf, or was not called."
    if [one[1] for one in listed] != [one[1] for one in wanted]:
        return "Some types are not the name of the layer's class."
    differs = difference(
        [one[2] for one in listed],
        [one[2] for one in wanted],
        Tolerance(),
        "shapes",
    )
    return f"A shape is not what was asked for: {differs}" if differs else None


stops_listening = same(
    "grew", "Your list grows when the model is called later: a hook is left."
)
leaves_no_global_hook = same(
    "global_hooks", "A hook for all modules of the program is left."
)


def runs_once_in_eval(case: Case, seen: Result, expected: Result) -> str | None:
    runs, wanted = data_of(seen).get("runs"), expected.data["runs"]
    if runs == wanted:
        return None
    if not isinstance(runs, list) or len(runs) != len(wanted):
        return "The model is not called exactly once."
    if any(training for training, _ in runs):
        return (
            "Some module runs in training mode during your call of the model."
        )
    return "The model runs with gradients switched on."


@check(
    "layer_shapes",
    probe=probes.look,
    rule=lists_the_calls,
    weight=2,
    says="name, type and shape of each leaf, with the batch axis as it was",
)
def lists_leaves(draw: Draw) -> list[Case]:
    return [
        shaped(draw, "conv", batch=1),
        shaped(draw, "conv"),
        shaped(draw, "two inputs"),
    ]


@check(
    "layer_shapes",
    probe=probes.look,
    rule=lists_the_calls,
    weight=2,
    says="in the order of the calls: reused leaves twice, unused ones not at all",
    corners=["a leaf that stands in two submodules has one name for both"],
)
def lists_calls(draw: Draw) -> list[Case]:
    return [
        shaped(draw, "reused"),
        shaped(draw, "order"),
        shaped(draw, "shared"),
    ]


@check(
    "layer_shapes",
    probe=probes.look,
    rule=lists_the_calls,
    says="a model that is a leaf itself",
    corners=["a submodule that is registered as None does not count as one"],
)
def lists_a_lone_leaf(draw: Draw) -> list[Case]:
    return [shaped(draw, "leaf"), shaped(draw, "own leaf")]


@check(
    "layer_shapes",
    probe=probes.look,
    rule=lists_the_calls,
    weight=2,
    says="inputs may be tokens; outputs may be tuples, lists, None or "
    "anything else",
    corners=[
        "subclasses, such as named tuples, count as what they derive from",
        "a dict or an array gives None",
    ],
)
def lists_nested_outputs(draw: Draw) -> list[Case]:
    kinds = ["tokens", "nested", "odd", "wrapped"]
    return [shaped(draw, kind) for kind in kinds]


@check(
    "layer_shapes",
    probe=probes.look,
    rule=lists_the_calls,
    also=[
        leaves_state_alone,
        runs_once_in_eval,
        leaves_rng_alone,
        keeps_the_grad_mode,
    ],
    weight=2,
    says="one call of the model, in eval mode and without gradients; the "
    "random state and the grad mode stay",
    corners=[
        "you may work on a copy: the models here can be copied, not all can",
        "a model that draws random numbers in eval mode is not tried",
        "no setting of PyTorch is changed",
    ],
)
def looks_quietly(draw: Draw) -> list[Case]:
    return [
        shaped(draw, "modes"),
        shaped(draw, "order", modes=[1, 0, 1]),
        shaped(draw, "conv", grad=False),
        shaped(draw, "own leaf", modes=[1]),
        shaped(draw, "double"),
    ]


@check(
    "layer_shapes",
    probe=probes.look,
    rule=gives_a_list,
    also=[as_it_was, same("inputs_kept", "Your look changed its inputs.")],
    weight=2,
    says="afterwards each module is in its own mode; inputs, parameters and "
    "buffers are the same tensors, with the same values, gradients and "
    "`requires_grad`",
    corners=[
        "what a model changes by itself, even in eval mode, you need not undo; the "
        "`train()` of no module does more than set modes"
    ],
)
def puts_the_model_back(draw: Draw) -> list[Case]:
    mixed = [1, *draw.integers(0, 2, 5).tolist(), 0]
    return [
        shaped(draw, "modes", modes=mixed),
        shaped(draw, "modes", modes=[0, 1]),
        shaped(draw, "shared", modes=[1, 1, 0]),
        shaped(draw, "conv", modes=[1, 1, 0]),
        shaped(draw, "conv", modes=[0]),
        shaped(draw, "conv", modes=[1]),
        shaped(draw, "modes", modes=[1], gradients=True),
    ]


def leaves_hooks_of_others(
    case: Case, seen: Result, expected: Result
) -> str | None:
    calls = data_of(seen).get("calls_seen_by_others")
    if calls == expected.data["calls_seen_by_others"]:
        return None
    return "Hooks that were there before do not run, or not once for each call."


@check(
    "layer_shapes",
    probe=probes.look,
    rule=lists_the_calls,
    also=[
        stops_listening,
        leaves_no_global_hook,
        as_it_was,
        leaves_hooks_of_others,
    ],
    weight=2,
    says="your hooks are gone, with all else that you set on a module; those "
    "of others are there and run",
)
def removes_its_hooks(draw: Draw) -> list[Case]:
    return [
        shaped(draw, "order"),
        shaped(draw, "reused", **{"hooks of others": True}),
        shaped(draw, "leaf", **{"hooks of others": True}),
    ]


def lists_anew(case: Case, seen: Result, expected: Result) -> str | None:
    if not data_of(seen).get("first_kept"):
        return "A second call changes the list of the first."
    return lists_the_calls(case, seen, expected)


@check(
    "layer_shapes",
    probe=probes.look_twice,
    rule=lists_anew,
    says="each call gives a list of its own, with the shapes at the call, "
    "which nothing changes later",
)
def gives_new_lists(draw: Draw) -> list[Case]:
    return [
        shaped(draw, "reused"),
        shaped(draw, "leaf"),
        shaped(draw, "turned"),
    ]


@check(
    "layer_shapes",
    probe=probes.look_and_fail,
    rule=gives_a_list,
    also=[
        same("reaches", "The model's exception does not reach the caller."),
        as_it_was,
        leaves_no_global_hook,
        keeps_the_grad_mode,
    ],
    weight=2,
    says="all is put back when the model raises, and its exception reaches the "
    "caller",
    corners=["a `KeyboardInterrupt`, too"],
)
def puts_back_after_an_error(draw: Draw) -> list[Case]:
    return [
        shaped(draw, "fails", modes=[1, 0, 1], raises="an error"),
        shaped(draw, "fails", modes=[1], raises="an error", grad=False),
        shaped(draw, "fails", modes=[0, 1], raises="an interrupt"),
    ]


# trainable_report

STAGES = ("drawn", "drawn", "zero", "none", "drawn")


def reported(draw: Draw, kind: str, **options: Any) -> Case:
    case = {
        "kind": kind,
        "names": names(draw),
        "sizes": sizes(draw),
        "dtype": draw.choice(["float32", "float64"]),
        "seed": draw.integer(0, 10_000),
        "gradients": ["none"] * 8,
    }
    return {**case, **options}


def lists_entries(case: Case, seen: Result, expected: Result) -> str | None:
    entries, wanted = data_of(seen).get("entries"), expected.data["entries"]
    if not isinstance(entries, list):
        return "`trainable_report` does not return a dict."
    found = [one[0] for one in entries]
    right = [one[0] for one in wanted]
    if found != right:
        if sorted(map(str, found)) == sorted(right):
            return "The names are right, their order is not."
        if set(right) < set(found):
            if set(found) - set(expected.data.get("all_names", found)):
                return "There are entries of earlier calls, for other models."
            return (
                "There are entries for what is not trained or listed already."
            )
        if set(found) < set(right):
            return "Parameters that require a gradient are missing."
        return "The names are not those of `named_parameters()`."
    for (_, one), (_, other) in zip(entries, wanted, strict=True):
        if not isinstance(one, tuple) or len(one) != 2:
            return "An entry is not a tuple `(shape, grad_norm)`."
        differs = difference(one[0], other[0], Tolerance(), "shape")
        if differs:
            return differs
        if (one[1] is None) != (other[1] is None):
            if one[1] is None:
                return (
                    "A gradient that is there, maybe of zeros, counts as None."
                )
            return "A gradient that is not there has a norm."
        differs = difference(one[1], other[1], Tolerance(1e-5, 0), "grad_norm")
        if differs:
            size = f" of {case['form']}" if "form" in case else ""
            kind = f"{case['dtype']} gradients{size}"
            return f"{differs.rstrip('.')}, for {kind}."
    return None


@check(
    "trainable_report",
    probe=probes.report,
    rule=lists_entries,
    weight=2,
    says="`trainable_report`: names and shapes in the order of "
    "`named_parameters()`, inherited and bare parameters too",
)
def lists_trainable_ones(draw: Draw) -> list[Case]:
    return [
        reported(draw, "inherited"),
        reported(draw, "nested"),
        reported(draw, "leaf"),
    ]


@check(
    "trainable_report",
    probe=probes.report,
    rule=lists_entries,
    weight=2,
    says="`trainable_report`: no frozen parameters, no buffers; one with "
    "several names stands there once",
)
def leaves_others_out(draw: Draw) -> list[Case]:
    some = [1, 0, *draw.integers(0, 2, 3).tolist(), 0]
    return [
        reported(draw, "buffers"),
        reported(draw, "buffers", frozen=some),
        reported(draw, "inherited", frozen=[0, 1, 0, 1]),
        reported(draw, "tied"),
        reported(draw, "leaf", frozen=[1, 1]),
        reported(draw, "buffers", frozen=[0, 1, 1], gradients=["drawn"] * 8),
    ]


@check(
    "trainable_report",
    probe=probes.report,
    rule=lists_entries,
    weight=2,
    says="`trainable_report`: the norm of each gradient, worked out in "
    "float64; None where none has arrived, 0.0 for zeros",
    corners=[
        "a gradient with NaN has the norm NaN, one with an infinity an infinite "
        "one, one without entries 0.0",
        "three times 60000 in float16 have the norm 103923.05, which is no "
        "float16",
        "gradients are real and dense, of any floating-point dtype and memory "
        "format",
    ],
)
def tells_gradients(draw: Draw) -> list[Case]:
    stages = [STAGES[i] for i in draw.permutation(len(STAGES)).tolist()]
    return [
        reported(draw, "inherited", gradients=["drawn"] * 8, dtype="float32"),
        reported(draw, "inherited", gradients=stages, dtype="float64"),
        reported(draw, "buffers", gradients=stages, frozen=[0, 1]),
        reported(draw, "leaf", gradients=["none", "drawn"], scale=1e-6),
        reported(draw, "leaf", gradients=["zero", "none"]),
        reported(draw, "leaf", gradients=["nan", "drawn"]),
        reported(draw, "leaf", gradients=["inf", "drawn"]),
        reported(
            draw, "leaf", gradients=["drawn"] * 2, dtype="float64", scale=1e-60
        ),
        *(
            reported(
                draw,
                "leaf",
                gradients=["drawn"] * 2,
                dtype=dtype,
                scale=scale,
                form=form,
            )
            for dtype, scale, form in (
                ("float16", 500.0, "some hundred"),
                ("float16", 14_000.0, "some ten thousand"),
                ("float32", 1e25, "about 1e25"),
                ("bfloat16", 1e25, "about 1e25"),
                ("float32", 1e-30, "about 1e-30"),
            )
        ),
    ]


@check(
    "trainable_report",
    probe=probes.report,
    rule=lists_entries,
    also=[leaves_state_alone, as_it_was],
    says="`trainable_report` only reads: gradients, flags and values stay, "
    "those of frozen parameters too",
    corners=["no setting of PyTorch is changed"],
)
def only_reads(draw: Draw) -> list[Case]:
    return [
        reported(draw, "inherited", gradients=list(STAGES)),
        reported(draw, "buffers", gradients=["drawn"] * 8, frozen=[1, 1]),
    ]


def reports_the_change(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if data_of(seen).get("as_before"):
        return "The second report is that of the model as it was before."
    return lists_entries(case, seen, expected)


@check(
    "trainable_report",
    probe=probes.report_again,
    rule=reports_the_change,
    says="`trainable_report`: a model that has changed is reported anew",
)
def reports_anew(draw: Draw) -> list[Case]:
    return [reported(draw, "inherited")]


def stacked(
    draw: Draw, depth: int, n: int = 5, width: int = 4, **options: Any
) -> Case:
    f64 = torch.float64
    return {
        "width": width,
        "depth": depth,
        "x": 9 * draw.normal(n, width, dtype=f64),
        "weights": [draw.normal(width, width, dtype=f64) for _ in range(depth)],
        "biases": [draw.normal(width, dtype=f64) for _ in range(depth)],
        "step": False,
        "training": True,
        **options,
    }


def knows_its_own(case: Case, seen: Result, expected: Result) -> str | None:
    theirs, ours = data_of(seen), expected.data
    if len(theirs["shapes"]) != len(ours["shapes"]):
        return "A Stack has not 2 × `depth` parameters."
    if theirs["shapes"] != ours["shapes"]:
        return "The parameters of a Stack have other shapes."
    for fact, sentence in (
        ("apart", "What is written into one parameter changes another."),
        ("trainable", "A parameter of a Stack is frozen."),
        ("saved", "A parameter of a Stack is not in its `state_dict()`."),
        ("after_to", "After `.to(torch.float64)` a Stack gives another dtype."),
    ):
        if theirs[fact] != ours[fact]:
            return sentence
    return None


def computes(case: Case, seen: Result, expected: Result) -> str | None:
    theirs, ours = data_of(seen), expected.data
    mode = "training" if case["training"] else "eval"
    kind = f"depth {case['depth']}, in {mode} mode"
    if case["step"] and theirs.get("reaches_x") is None:
        return f"No gradient reaches `x`, with {kind}."
    names = {
        "out": "the output of a Stack",
        "reaches_x": "the gradient at `x`",
        "after": "the output after a step of SGD",
    }
    for key, name in names.items():
        if key in ours and (key == "out" or case["step"]):
            exact = Tolerance(1e-9, 1e-9)
            found = difference(theirs[key], ours[key], exact, name)
            if found:
                return f"{found.rstrip('.')}, with {kind}."
    return None


@check(
    "trainable_report",
    probe=probes.registered,
    rule=knows_its_own,
    weight=2,
    says="a `Stack` knows all its weights and biases: 2 × `depth` parameters, "
    "in the order of the layers",
    corners=[
        "`.to(...)` and `state_dict()` reach them, and none is frozen; their "
        "names are up to you",
        "all weights may come before all biases",
        "what is written into one of them changes no other, nor one of another "
        "`Stack`",
    ],
)
def registers_all(draw: Draw) -> list[Case]:
    return [
        {"width": draw.integer(3, 9), "depth": depth}
        for depth in (1, 2, draw.integer(3, 6))
    ]


@check(
    "trainable_report",
    probe=probes.trained,
    rule=computes,
    also=[leaves_state_alone, leaves_inputs_alone],
    says="a `Stack` computes: ReLU between the layers, none after the last; "
    "`x` stays as it is",
    corners=[
        "both modes compute the same",
        "NaN goes through a ReLU as NaN, and through the whole `Stack`",
        "no setting of PyTorch is changed",
    ],
)
def computes_a_stack(draw: Draw) -> list[Case]:
    spoiled, resting = stacked(draw, 2), stacked(draw, 2, training=False)
    for one in (spoiled, resting):
        one["x"][0, 0] = float("nan")
    resting["x"] *= 1e6
    large = stacked(draw, 3, n=1, width=draw.integer(5, 8))
    large["x"] *= 1e6
    return [
        *(stacked(draw, depth) for depth in (1, 4, 11)),
        spoiled,
        large,
        stacked(draw, 2, width=1),
        resting,
    ]


@check(
    "trainable_report",
    probe=probes.trained,
    rule=computes,
    says="gradients reach every layer of a `Stack`, and its input where that "
    "wants one",
    corners=["in both modes"],
)
def trains_a_stack(draw: Draw) -> list[Case]:
    cases = [stacked(draw, depth, step=True) for depth in (1, 3)]
    return [*cases, stacked(draw, 2, step=True, training=False)]


# graph_of


ACTIVATIONS = ("Tanh", "Sigmoid", "Softplus", "ELU", "SiLU", "GELU", "Mish")
"""Modules that each record one operation, and each another."""


def graphed(draw: Draw, kind: str, **options: Any) -> Case:
    order = draw.permutation(len(ACTIVATIONS))[:3].tolist()
    case = {
        "kind": kind,
        "names": names(draw, 3),
        "acts": [ACTIVATIONS[i] for i in order],
        "depth": draw.integer(2, 4),
        "width": draw.integer(2, 5),
    }
    return {**case, **options}


def has_a_source(case: Case, seen: Result, expected: Result) -> str | None:
    if data_of(seen).get("source") != "there":
        return "What `graph_of` returns has no text `.source`."
    return None


def has_operations(case: Case, seen: Result, expected: Result) -> str | None:
    missing = has_a_source(case, seen, expected)
    if missing:
        return missing
    found = seen.data["operations"]
    wanted = expected.data["operations"]
    if found == wanted:
        return None
    if not found:
        return "No operation is in the graph."
    if set(found) == set(wanted):
        return "All kinds of operations are there, but not one box for each."
    if not Counter(wanted) - Counter(found):
        return "There are operations that lead to no parameter."
    return "The operations are not those of `model(x).mean()` in its mode."


def has_names(case: Case, seen: Result, expected: Result) -> str | None:
    missing = has_a_source(case, seen, expected)
    if missing:
        return missing
    found = seen.data["parameters"]
    wanted = expected.data["parameters"]
    if found == wanted:
        return None
    if set(found) > set(wanted):
        return "Parameters that get no gradient have a box."
    if set(found) == set(wanted):
        return "A parameter has more than one box."
    return "Parameters that get a gradient have no box with their name."


def has_flows(case: Case, seen: Result, expected: Result) -> str | None:
    missing = has_a_source(case, seen, expected)
    if missing:
        return missing
    theirs, ours = seen.data["flows"], expected.data["flows"]
    named = seen.data["parameters"]
    if named != expected.data["parameters"] and seen.data["flows"]:
        # names that are missing are the matter of another check
        operation = re.compile(r"\w+Backward\d*")
        theirs = [one for one in theirs if operation.fullmatch(one[0])]
        ours = [one for one in ours if operation.fullmatch(one[0])]
    if theirs == ours:
        once = expected.data["edges"]
        for ends, number in seen.data["edges"].items():
            if number > once.get(ends, 0):
                return (
                    f"An edge from {ends} is drawn more than once. Visit each "
                    "operation once."
                )
        return None
    if theirs:  # other operations have other edges
        found = has_operations(case, seen, expected)
        if found:
            return found
    turned = sorted((end, start) for start, end in theirs)
    if not theirs or turned == ours:
        return "The edges are missing or go backwards."
    if set(ours) < set(theirs):
        return "There are edges on which no gradient goes to a parameter."
    return "The edges do not lead from what goes in to what comes out."


@check(
    "graph_of",
    probe=probes.draw_graph,
    rule=has_operations,
    weight=2,
    says="one box for each operation of `model(x).mean()`, with its name in "
    "the first line",
    corners=[
        "two operations of the same kind are two boxes",
        "also where the model gives one number",
        "each gradient that flows in a case comes to a parameter of the model",
        "further boxes, such as shapes, saved tensors or the result, are "
        "allowed",
        "anything with the same `.source` will do in the place of a `Digraph`",
        "many hundred operations in a row are not tried: torchviz ends there in a "
        "`RecursionError`",
    ],
)
def boxes_for_operations(draw: Draw) -> list[Case]:
    return [
        graphed(draw, "chain"),
        graphed(draw, "residual"),
        graphed(draw, "tied"),
        graphed(draw, "number"),
    ]


@check(
    "graph_of",
    probe=probes.draw_graph,
    rule=has_names,
    weight=2,
    says="one box for each parameter that gets a gradient, with its name in "
    "the first line",
    corners=[
        "a shared one has its first name, as in `named_parameters()`",
        "`x` may be tokens",
    ],
)
def boxes_for_parameters(draw: Draw) -> list[Case]:
    return [
        graphed(draw, "chain"),
        graphed(draw, "residual"),
        graphed(draw, "tied"),
        graphed(draw, "frozen"),
        graphed(draw, "branches"),
        graphed(draw, "tokens"),
    ]


@check(
    "graph_of",
    probe=probes.draw_graph,
    rule=has_flows,
    says="edges lead from what goes in to what comes out",
    corners=[
        "`AccumulateGrad` boxes between a parameter and its operation may be "
        "there or not",
        "no edge is drawn again because there are several ways to its box: "
        "each operation is visited once",
    ],
)
def edges_forward(draw: Draw) -> list[Case]:
    kinds = ["chain", "residual", "frozen", "tied", "diamond"]
    return [graphed(draw, kind) for kind in kinds]


@check(
    "graph_of",
    probe=probes.draw_graph,
    rule=has_names,
    also=[has_operations, keeps_the_grad_mode],
    says="the graph is there also where gradients are switched off around it",
)
def under_no_grad(draw: Draw) -> list[Case]:
    return [
        graphed(draw, "chain", grad=False),
        graphed(draw, "residual", grad=False),
        graphed(draw, "chain"),
    ]


@check(
    "graph_of",
    probe=probes.draw_graph,
    rule=has_operations,
    also=[
        leaves_state_alone,
        as_it_was,
        same("x_kept", "Afterwards `x` requires a gradient."),
        same("runs", "The model is not called exactly once."),
    ],
    says="the model runs once, in the mode it is in; model and `x` are left as "
    "they were",
    corners=[
        "no gradient more or less, no other flag, no hook",
        "no setting of PyTorch is changed",
    ],
)
def in_its_own_mode(draw: Draw) -> list[Case]:
    return [
        graphed(draw, "dropout", training=True),
        graphed(draw, "dropout", training=False),
        graphed(draw, "frozen"),
        graphed(draw, "chain", gradients=True),
    ]


def puts_gradients_back(
    case: Case, seen: Result, expected: Result
) -> str | None:
    kept, wanted = data_of(seen).get("kept"), expected.data["kept"]
    if not isinstance(kept, list) or len(kept) != len(wanted):
        return "The model's exception does not reach the caller."
    if kept != wanted:
        return (
            "After an exception of the model gradients are not switched as they "
            "were before your call."
        )
    for key in ("x", "weight"):
        held = data_of(seen).get(key)
        found = difference(held, expected.data[key], Tolerance(), key)
        if found:
            return found
    return None


@check(
    "graph_of",
    probe=probes.fail_to_draw,
    rule=puts_gradients_back,
    also=[as_it_was],
    says="model and grad mode are as they were also when the model raises",
)
def as_before_after_an_error(draw: Draw) -> list[Case]:
    width = draw.integer(2, 6)
    return [{"x": draw.normal(2, width), "weight": draw.normal(3, width)}]


@check(
    "graph_of",
    probe=probes.draw_graph,
    rule=has_names,
    also=[
        same("files", "A file was written, or one that was there is gone."),
        same("programs", "A program was called."),
    ],
    says="nothing is rendered: no file is written, no program is called",
)
def writes_no_file(draw: Draw) -> list[Case]:
    return [graphed(draw, "chain"), graphed(draw, "residual")]


# progress


def loaded(draw: Draw, kind: str, number: int, **options: Any) -> Case:
    batches = [draw.integers(0, 1000, 2) for _ in range(number)]
    return {"kind": kind, "batches": batches, "drop_last": False, **options}


def gives_the_batches(case: Case, seen: Result, expected: Result) -> str | None:
    data = data_of(seen)
    if data.get("numbers") != expected.data["numbers"]:
        return "The numbers of the batches are not 0, 1, 2, ... to the end."
    differs = difference(
        data.get("batches"), expected.data["batches"], Tolerance(), "batches"
    )
    return differs and "The batches are not those of the loader, in its order."


says_complete = same(
    "complete_at_the_end",
    "After the loop the last line on `file` does not say `n/n`.",
)
not_too_early = same(
    "complete_too_early",
    "`n/n` is shown while batches are still to come.",
)
shows_on_the_way = same(
    "shown_on_the_way", "Nothing of the bar is there before the end."
)
writes_to_the_file = same(
    "written", "Nothing was written to the text stream `file`."
)
writes_nowhere_else = same(
    "written_elsewhere", "Something was written elsewhere than to `file`."
)
makes_no_total = same(
    "counts_of_a_total", "The bar shows a total where there is no length."
)
takes_one_at_a_time = same(
    "taken_too_early", "Batches are taken before they are asked for."
)
goes_through_once = same("gone_through", "The loader is gone through twice.")


@check(
    "progress",
    probe=probes.walk,
    rule=gives_the_batches,
    weight=2,
    says="`progress`: the number of each batch and the batch, in order",
    corners=[
        "a batch may be anything: None, an empty list, False",
        "a loader may have more or fewer batches than its `len` says: all that it "
        "has is given out, and the bar may say anything",
    ],
)
def gives_pairs(draw: Draw) -> list[Case]:
    odd = loaded(draw, "list", draw.integer(3, 6))
    odd["batches"][1:1] = [None, [], False]
    return [
        odd,
        loaded(draw, "loader", draw.integer(3, 6)),
        loaded(draw, "list", 1),
        loaded(draw, "list", 0),
        loaded(draw, "sized", draw.integer(3, 6)),
        loaded(draw, "short", draw.integer(3, 6)),
    ]


@check(
    "progress",
    probe=probes.same_objects,
    says="`progress`: the very batches of the loader, not copies",
)
def gives_the_same_objects(draw: Draw) -> list[Case]:
    return [loaded(draw, "list", draw.integer(2, 5))]


@check(
    "progress",
    probe=probes.walk,
    rule=gives_the_batches,
    also=[says_complete, not_too_early, shows_on_the_way],
    weight=2,
    says="`progress`: the bar knows the number of batches; after the loop the "
    "last line has `n/n` in it, and no line has it while batches are still to "
    "come",
    corners=[
        "the bar may move just before a batch is given out or just after: as long "
        "as the caller holds the last batch, `n/n` may be there or not",
        "lines end at a line feed or a carriage return; one of blanks alone does "
        "not count",
        "where n is 0 the bar may say anything",
        "from the second batch on something of the bar is there; how it looks "
        "is up to you",
    ],
)
def knows_the_total(draw: Draw) -> list[Case]:
    n = draw.integer(3, 9)
    odd = loaded(draw, "loader", n, drop_last=True)
    odd["batches"][-1] = odd["batches"][-1][:1]
    return [
        loaded(draw, "sized", n),
        loaded(draw, "loader", n + 1),
        odd,
        loaded(draw, "list", draw.integer(10, 30)),
        loaded(draw, "sized", n + 2, most=n),
        loaded(draw, "sized", 1),
    ]


@check(
    "progress",
    probe=probes.walk,
    rule=gives_the_batches,
    also=[makes_no_total, writes_to_the_file],
    says="`progress`: loaders whose `len` raises a `TypeError`; the bar shows "
    "no total",
    corners=[
        "an iterator, a `DataLoader` of an `IterableDataset`, a loader that "
        "never ends"
    ],
)
def without_a_length(draw: Draw) -> list[Case]:
    return [
        loaded(draw, "generator", draw.integer(3, 6)),
        loaded(draw, "unsized", draw.integer(3, 6)),
        loaded(draw, "endless", draw.integer(3, 6)),
        loaded(draw, "iterator", draw.integer(3, 6)),
    ]


@check(
    "progress",
    probe=probes.walk,
    rule=gives_the_batches,
    also=[
        same("closed", "You closed the stream; it is the caller's."),
        writes_to_the_file,
        writes_nowhere_else,
    ],
    says="`progress`: the bar goes to the stream that was given and nowhere "
    "else; the stream stays open",
)
def writes_to_its_stream(draw: Draw) -> list[Case]:
    n = draw.integer(2, 6)
    return [loaded(draw, "sized", n), loaded(draw, "sized", n, fails_at=1)]


@check(
    "progress",
    probe=probes.walk,
    rule=gives_the_batches,
    also=[
        leaves_rng_alone,
        leaves_state_alone,
        takes_one_at_a_time,
        goes_through_once,
        same("reaches", "The loader's exception does not reach the caller."),
    ],
    weight=2,
    says="`progress`: one batch at a time, each once, and exceptions of any "
    "type reach the caller",
    corners=[
        "the loader is gone through once, by `for`: what `loader[i]` would "
        "give is another matter",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def takes_as_asked(draw: Draw) -> list[Case]:
    n = draw.integer(4, 8)
    return [
        loaded(draw, "sized", n),
        loaded(draw, "sized", n, most=2),
        loaded(draw, "unsized", n, most=1),
        loaded(draw, "sized", n, fails_at=n - 2),
        loaded(draw, "sized", n, fails_at=n - 1, error="TypeError"),
        loaded(draw, "sized", n, fails_at=n - 1, error="ValueError"),
        loaded(draw, "sized", n, fails_at=n - 1, error="RuntimeError"),
        loaded(draw, "sized", n, fails_at=n - 1, error="OSError"),
    ]


@check(
    "progress",
    probe=probes.walk,
    rule=same(
        "reaches", "What `len(loader)` raises does not reach the caller."
    ),
    also=[gives_the_batches],
    says="`progress`: what `len(loader)` raises reaches the caller, unless it is a "
    "`TypeError`",
    corners=["also an `AttributeError`"],
)
def hears_of_len(draw: Draw) -> list[Case]:
    n = draw.integer(2, 6)
    return [
        loaded(draw, "unopened", n),
        loaded(draw, "unopened", n + 1, error="AttributeError"),
        loaded(draw, "unopened", n, error="ValueError"),
        loaded(draw, "sized", n),
    ]


def tells_seconds(case: Case, seen: Result, expected: Result) -> str | None:
    kind = re.sub(r"\d[\d.]*", "a number and ", case["rate"].strip())
    kind = f"a rate of the form {kind}"
    kind += ", blanks around it" if case["rate"] != case["rate"].strip() else ""
    kind += ", no batches" if case["num_batches"] == 0 else ""
    if "raised" in data_of(seen):
        return f"Your code raised {seen.data['raised']}, with {kind}."
    found = difference(seen.data, expected.data, Tolerance(1e-9, 1e-7))
    return f"{found.rstrip('.')}, with {kind}." if found else None


@check(
    "progress",
    probe=probes.seconds,
    rule=tells_seconds,
    weight=2,
    says="`seconds_for`: batches per second: divide",
    corners=[
        "numbers are plain, as in `12`, `0.50` or `1241.25`, with blanks around "
        "the text or without",
        "no batches take 0.0 seconds",
    ],
)
def reads_batches_per_second(draw: Draw) -> list[Case]:
    rate = draw.integer(101, 999) / 100
    return [
        {"num_batches": 691, "rate": "1.54it/s"},
        {"num_batches": draw.integer(10, 900), "rate": f"{rate:.2f}it/s"},
        {"num_batches": draw.integer(10, 900), "rate": "  12it/s "},
        {"num_batches": draw.integer(10, 900), "rate": f"{rate / 20:.2f}it/s"},
        {
            "num_batches": draw.integer(10, 900),
            "rate": f"{rate + 1240:.2f}it/s",
        },
        {"num_batches": 0, "rate": f"{rate:.2f}it/s"},
    ]


@check(
    "progress",
    probe=probes.seconds,
    rule=tells_seconds,
    says="`seconds_for`: seconds per batch: multiply",
)
def reads_seconds_per_batch(draw: Draw) -> list[Case]:
    rate = draw.integer(101, 999) / 100
    return [
        {"num_batches": draw.integer(10, 900), "rate": f"{rate:.2f}s/it"},
        {"num_batches": draw.integer(10, 90), "rate": f"{rate + 1240:.2f}s/it"},
        {"num_batches": draw.integer(10, 900), "rate": " 0.50s/it"},
        {"num_batches": draw.integer(10, 900), "rate": "3s/it"},
        {"num_batches": 0, "rate": f"{rate:.2f}s/it"},
    ]


@check(
    "progress",
    probe=probes.seconds,
    rule=tells_seconds,
    says="`seconds_for`: other units, such as `batch`, `Frames` or `PX`, and None "
    "for a rate that is not known yet",
)
def reads_other_units(draw: Draw) -> list[Case]:
    rate = draw.integer(101, 999) / 100
    n = draw.integer(10, 900)
    return [
        {"num_batches": n, "rate": f"{rate:.2f}epoch/s"},
        {"num_batches": n, "rate": f"{rate:.2f}s/batch"},
        {"num_batches": n, "rate": f"{rate:.2f}samples/s"},
        {"num_batches": n, "rate": f" {rate:.2f}s/samples"},
        {"num_batches": n, "rate": f"{rate:.2f}Frames/s"},
        {"num_batches": n, "rate": f"{rate:.2f}s/Frames"},
        {"num_batches": n, "rate": f"{rate:.2f}PX/s"},
        {"num_batches": n, "rate": "?it/s"},
        {"num_batches": n, "rate": " ?batch/s"},
    ]
