"""What is checked in chapter 06: learning rates."""

import math
from typing import Any

import torch

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

HANDS_OFF = [leaves_inputs_alone, leaves_rng_alone, leaves_state_alone]


def data_of(seen: Result) -> dict[str, Any]:
    return seen.data if isinstance(seen.data, dict) else {}


# train_in_steps


def schedule(
    draw: Draw,
    sizes: tuple[int, ...] = (3, 2),
    spread: float = 1.0,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> Case:
    """A run over batches of these sizes, with targets of this spread."""
    width = draw.integer(2, 4)
    return {
        "batches": [
            (
                draw.normal(size, width, dtype=dtype),
                draw.normal(size, 2, std=spread, dtype=dtype),
            )
            for size in sizes
        ],
        "start": draw.normal(40, std=0.5, dtype=torch.float64),
        "optimizer": "SGD",
        "lrs": [number(draw, 0.01, 0.1)],
        "gamma": number(draw, 0.1, 0.8),
        "step_size": 2,
        "num_epochs": 5,
        "train": True,
        "train_between": options.get("train", True),
        "frozen_bias": False,
        "as_list": True,
        "old_gradients": False,
        "own": False,  # a parameter of the model beside its layers
        **options,
    }


def with_an_infinite_target(case: Case) -> Case:
    """The case whose last pair has an infinite loss."""
    *others, (x, y) = case["batches"]
    y = y.clone()
    y[0, 0] = torch.inf
    return {**case, "batches": [*others, (x, y)]}


def in_pairs(case: Case) -> Case:
    """The case whose samples, and their targets, are two rows each."""
    return {
        **case,
        "batches": [
            (torch.stack([x, -x], 1), torch.stack([y, 2 * y], 1))
            for x, y in case["batches"]
        ],
    }


def number(draw: Draw, low: float, high: float) -> float:
    return draw.uniform(1, low=low, high=high, dtype=torch.float64).item()


def close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * abs(other)


def rates_in_use(case: Case, seen: Result, expected: Result) -> str | None:
    used, wanted = data_of(seen).get("used"), expected.data["used"]
    if not isinstance(used, list) or len(used) != len(wanted):
        return "Your optimizer does not step once for each batch of each epoch."
    for step, (rates, right) in enumerate(zip(used, wanted, strict=True)):
        for group, (rate, other) in enumerate(zip(rates, right, strict=True)):
            if close(rate, other):
                continue
            epoch = step // len(case["batches"])
            later = [one[group] for one in used[step:] if len(one) > group]
            why = planned_elsewhere(case, later, group, epoch, wanted)
            return (
                f"In epoch {epoch + 1} group {group} steps with the rate "
                f"{rate:.4g}. Planned is {other:.4g}.{why}"
            )
    return None


def planned_elsewhere(
    case: Case,
    rates: list[float],
    group: int,
    epoch: int,
    wanted: list[list[float]],
) -> str:
    """Says that the first rate is that of the epoch before or after, if it is;
    the others came later."""
    rate = rates[0]
    here = wanted[epoch * len(case["batches"])][group]
    comes = any(close(one, here) for one in rates)
    for neighbour, words in ((epoch + 1, "too early"), (epoch - 1, "too late")):
        step = neighbour * len(case["batches"])
        if 0 <= step < len(wanted) and close(rate, wanted[step][group]):
            what = f"the schedule steps {words}"
            if neighbour < epoch and not comes:
                what = "the change between the two is missing"
            return f" That is the rate of epoch {neighbour + 1}: {what}."
    return ""


@check(
    "train_in_steps",
    probe=probes.trained,
    weight=3,
    rule=rates_in_use,
    says="25 epochs, a drop after every 10: each epoch has its rate",
)
def ten_ten_five(draw: Draw) -> list[Case]:
    plan = {"num_epochs": 25, "step_size": 10, "gamma": 0.1}
    return [
        schedule(draw, lrs=[1e-3], optimizer="Adam", **plan),
        schedule(draw, sizes=(2, 2, 3), **plan),
    ]


@check(
    "train_in_steps",
    probe=probes.trained,
    weight=2,
    rule=rates_in_use,
    says="no epoch, one epoch, a drop after each epoch, no drop at all",
    corners=[
        "`num_epochs` may be 0: then nothing is trained, and the list is empty"
    ],
)
def short_plans(draw: Draw) -> list[Case]:
    return [
        schedule(draw, num_epochs=0),
        schedule(draw, num_epochs=1, step_size=1),
        schedule(draw, num_epochs=draw.integer(3, 6), step_size=1),
        schedule(draw, num_epochs=3, step_size=3),
        schedule(draw, num_epochs=4, step_size=draw.integer(6, 20)),
        schedule(draw, sizes=(4,), num_epochs=5, step_size=3, gamma=0.0),
        schedule(draw, num_epochs=12, step_size=1, gamma=0.01),
    ]


def settings_kept(case: Case, seen: Result, expected: Result) -> str | None:
    if data_of(seen).get("same_settings") is not True:
        return "You changed a setting of the optimizer that is not the rate."
    return None


@check(
    "train_in_steps",
    probe=probes.trained,
    weight=2,
    rule=rates_in_use,
    also=[settings_kept],
    says="groups with rates of their own keep their ratio, and all their other "
    "settings",
    corners=[
        "a rate is a float and no tensor; it may be 0, all of them too, and "
        "`gamma` more than 1"
    ],
)
def groups_keep_their_ratio(draw: Draw) -> list[Case]:
    lrs = [number(draw, 0.01, 0.05), 0.1, number(draw, 0.001, 0.009)]
    return [
        schedule(draw, lrs=lrs, optimizer="nesterov"),
        schedule(draw, lrs=lrs, step_size=1, optimizer="Adam"),
        schedule(draw, lrs=[0.0, *lrs[1:]], gamma=1.5, optimizer="dampened"),
        schedule(draw, lrs=[0.0, 0.0, 0.0]),
    ]


def one_step_for_each(case: Case, seen: Result, expected: Result) -> str | None:
    data = data_of(seen)
    used = data.get("used")
    if not isinstance(used, list) or len(used) != len(expected.data["used"]):
        return "The optimizer you were given does not step once for each batch."
    if data.get("num_groups") != expected.data["num_groups"]:
        return "You changed the groups of the optimizer."
    if data.get("calls") != expected.data["calls"]:
        return "The model is not called exactly once for each pair."
    passes, right = data.get("passes"), expected.data["passes"]
    if passes != right:
        if isinstance(passes, int) and passes < right:
            return (
                "Your code does not go through the loader anew in each epoch: one "
                "that shuffles has other batches each time."
            )
        return (
            "Your code begins to go through the loader more often than once for "
            "each epoch."
        )
    if data.get("modes_kept") is not True:
        return "You changed the mode (train or eval) of the model or a part."
    if data.get("frozen_kept") is not True:
        return "You changed `requires_grad` of a parameter."
    if data.get("plain_batches") is not True:
        return "You changed `requires_grad` of a batch."
    for name, wanted in expected.data["weights"].items():
        weight = data["weights"].get(name)
        if weight is not None and weight.dtype != wanted.dtype:
            return f"`{name}` has another dtype than before."
        single = wanted.dtype == torch.float32
        digits = (1e-4, 1e-5) if single else (1e-8, 1e-10)
        if weight is None or not torch.allclose(
            weight, wanted, *digits, equal_nan=True
        ):
            return (
                f"`{name}` is not what steps make of it that use the gradient "
                "of each batch's mean squared error alone, as it is. Gradients "
                "add up in `.grad` until they are cleared, a clipped one is "
                "another, and a frozen parameter whose old gradient is set to "
                "zeros still decays."
            )
    return None


# The rate never changes here: a wrong schedule loses other checks.
@check(
    "train_in_steps",
    probe=probes.trained,
    weight=2,
    rule=one_step_for_each,
    also=HANDS_OFF,
    says="for each pair one call of the model and one step of this optimizer, "
    "on the gradient of that pair's loss alone",
    corners=[
        "the optimizer holds parameters of the model, also such that stand beside "
        "its layers, and the loss reaches all that are not frozen",
        "the loader is gone through once for each epoch; it need not have a "
        "length, and may yield other pairs each time",
        "a frozen parameter keeps every bit, also if an old gradient is left "
        "in it",
        "the batches, the mode of the model and of its parts, what is frozen "
        "and the global random state are left alone",
    ],
)
def one_step_per_batch(draw: Draw) -> list[Case]:
    lrs = [0.05, 0.02, 0.01]
    return [
        in_pairs(schedule(draw, gamma=1.0, sizes=(3, 3, 1))),
        schedule(draw, gamma=1.0, old_gradients=True, dtype=torch.float32),
        schedule(draw, gamma=1.0, train_between=False, as_list=False),
        schedule(draw, gamma=1.0, frozen_bias=True),
        schedule(draw, gamma=1.0, own=True, old_gradients=True),
        schedule(
            draw,
            gamma=1.0,
            frozen_bias=True,
            old_gradients=True,
            optimizer="decay",
        ),
        schedule(draw, gamma=1.0, lrs=[0.0]),
        schedule(draw, gamma=1.0, spread=1e4, lrs=[1e-3]),
        schedule(draw, gamma=1.0, lrs=lrs, optimizer="momentum", as_list=False),
        schedule(draw, gamma=1.0, lrs=lrs, optimizer="Adam", train=False),
        schedule(draw, gamma=1.0, num_epochs=0),
        # every pair is fitted exactly, and its loss is 0
        schedule(draw, gamma=1.0, spread=0.0, start=torch.zeros(40)),
        with_an_infinite_target(schedule(draw, gamma=1.0)),
    ]


def begins_with_the_loader(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """Rule: the model has seen the case's own first batch first. No schedule, loss
    or step changes that, so it loses no points that the rates should lose."""
    first, wanted = (
        data_of(seen).get("first_input"),
        expected.data["first_input"],
    )
    if wanted is None and first is None:
        return None
    if first is None or wanted is None or not torch.equal(first, wanted):
        return "The model is not first called with the loader's first `X`."
    return None


def tells_what_was_used(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = data_of(seen)
    returned, used = data.get("returned"), data.get("used")
    if not isinstance(returned, list):
        return "What you return is not a list."
    if len(returned) != case["num_epochs"]:
        return "What you return does not have one entry for each epoch."
    if not all(isinstance(one, list) for one in returned):
        kinds = [type(one).__name__ for one in returned]
        kind = next(one for one in kinds if one != "list")
        return f"Your entry of an epoch is a {kind}; asked for is a list."
    if not all(isinstance(rate, float) for one in returned for rate in one):
        return "What you return holds something else than floats."
    steps = len(case["batches"])
    if not isinstance(used, list) or len(used) != steps * case["num_epochs"]:
        return "Your optimizer does not step once for each batch of each epoch."
    for epoch, rates in enumerate(returned):
        # Of the learner's own run: a wrong schedule, told truly, is told truly.
        for real in used[epoch * steps : (epoch + 1) * steps]:
            if len(rates) != len(real):
                return "An entry does not have one number for each group."
            if not all(map(close, rates, real)):
                return (
                    f"The rates you return for epoch {epoch + 1} are not those "
                    "that its steps were made with."
                )
    return None


@check(
    "train_in_steps",
    probe=probes.trained,
    weight=2,
    rule=tells_what_was_used,
    also=[begins_with_the_loader],
    says="what is returned are the rates that were used: for each epoch a list "
    "with one float for each group",
)
def returned_rates(draw: Draw) -> list[Case]:
    return [
        schedule(draw, step_size=1),
        schedule(draw, lrs=[0.1, 0.02, 0.03], step_size=draw.integer(2, 4)),
        schedule(draw, lrs=[0.1, 0.02, 0.03], step_size=9, num_epochs=2),
        schedule(draw, num_epochs=0),
    ]


def steps_taken(case: Case, seen: Result, expected: Result) -> str | None:
    used = data_of(seen).get("used")
    if not isinstance(used, list) or len(used) != len(expected.data["used"]):
        return "Your optimizer does not step once for each batch of each epoch."
    told = data_of(seen).get("number_of_warnings")
    hidden = told > expected.data["number_of_warnings"]
    if hidden and not seen.effects.warnings:
        return "You hide a warning: a call is deprecated, or not in its place."
    return None


@check(
    "train_in_steps",
    probe=probes.trained,
    rule=steps_taken,
    also=[begins_with_the_loader, gives_no_warning],
    says="nothing warns: each call comes in its place, and none is deprecated",
    corners=[
        "the optimizer is new: no schedule has run on it; its rates "
        "afterwards do not matter",
        "an epoch without a batch is not tried",
        "to hide a warning is no answer",
    ],
)
def without_warnings(draw: Draw) -> list[Case]:
    return [
        schedule(draw),
        schedule(draw, num_epochs=draw.integer(2, 5), step_size=1),
        schedule(draw, num_epochs=0),
        schedule(draw, num_epochs=1, step_size=5),
    ]


# make_optimizer

MODELS: dict[str, dict[str, tuple[int, ...]]] = {
    "layers": {
        f"{i}.{kind}": shape
        for i in range(12)
        for kind, shape in (("weight", (2, 1)), ("bias", (2,)))
    },
    "scaled": {
        "temperature": (),
        "empty": (0, 3),
        "embedding.weight": (3, 2),
        "norm.weight": (2,),
        "norm.bias": (2,),
        "act.weight": (2,),
        "head.weight": (3, 2),
        "head.bias": (3,),
        "conv.weight": (2, 1, 1, 1),
        "conv.bias": (2,),
        "gate.weight": (1, 1),
        "gate.bias": (1,),
    },
    "nested": {
        "backbone.0.weight": (2, 2),
        "backbone.0.bias": (2,),
        "backbone.1.weight": (2,),
        "backbone.1.bias": (2,),
        "backbone.2.weight": (2, 2),
        "backbone.2.bias": (2,),
        "backbone2.weight": (2, 2),
        "backbone2.bias": (2,),
        "my_backbone.weight": (2, 2),
        "my_backbone.bias": (2,),
        "backbone_0.weight": (2, 2),
        "backbone_0.bias": (2,),
        "head.backbone.weight": (2, 2),
        "head.backbone.bias": (2,),
        "deep.0.0.0.weight": (1, 2),
        "deep.0.0.0.bias": (1,),
    },
    "tied": {
        "encoder.weight": (3, 2),
        "between.weight": (2, 2),
        "between.bias": (2,),
        "decoder.bias": (3,),
    },
    "tied alone": {
        "encoder.weight": (3, 2),
        "between.weight": (2, 2),
        "between.bias": (2,),
    },
}


def groups(draw: Draw, model: str, *paths: str, **options: Any) -> Case:
    """A model whose layers at these paths have rates of their own."""
    numbers = draw.permutation(90).tolist()
    return {
        "model": model,
        "rates": {
            path: (numbers[i] + 10) / 983 for i, path in enumerate(paths)
        },
        "lr": (numbers[50] + 10) / 983,
        "weight_decay": (numbers[51] + 10) / 983,
        "frozen": [],
        "train": True,
        "start": draw.normal(60, dtype=torch.float64),
        "gradients": {
            name: draw.normal(*shape, dtype=torch.float64)
            for name, shape in MODELS[model].items()
        },
        **options,
    }


def fits(path: str, name: str) -> bool:
    return f"{name}.".startswith(f"{path}.")


def words_for(case: Case, name: str) -> str:
    """Which parameter this is, and what the paths say of it."""
    fitting = [path for path in case["rates"] if fits(path, name)]
    alike = [path for path in case["rates"] if path in name]
    paths = ", ".join(f"`{path}`" for path in fitting or alike)
    if len(fitting) > 1:
        return f"`{name}` (the longest of {paths} decides)"
    if fitting:
        return f"`{name}` ({paths} fits it)"
    if alike:
        return f"`{name}` ({paths} only looks as if it fitted)"
    shared = case["model"] == "tied" and name == "encoder.weight"
    also = "; the layer `decoder` shares it" if shared else ""
    return f"`{name}` (no path fits it{also})"


def setting_of(key: str, words: str) -> Rule:
    """Rule: each parameter's group has the right value of this setting."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        found, wanted = data_of(seen).get(key), expected.data[key]
        if not isinstance(found, dict):
            return "What you return is not an optimizer."
        for name, value in wanted.items():
            if name not in found:
                return f"{words_for(case, name)} is in no group."
            if not close(found[name], value):
                return (
                    f"The {words} of {words_for(case, name)} is "
                    f"{found[name]:.4g} and should be {value:.4g}."
                )
        return None

    return rule


@check(
    "make_optimizer",
    probe=probes.grouped,
    weight=3,
    rule=setting_of("lr", "learning rate"),
    says="each parameter has the rate of its path, the others have `lr`",
)
def rates_by_path(draw: Draw) -> list[Case]:
    return [
        groups(draw, "layers", "1", "3"),
        groups(draw, "nested", "backbone"),
        groups(draw, "nested", "backbone.0"),
        groups(draw, "nested", "head", "backbone2"),
        groups(draw, "scaled", "head.bias", "temperature", "embedding"),
        groups(draw, "scaled"),
        groups(draw, "nested", rates={"backbone": 0.0, "head": 0.25}),
        groups(draw, "nested", "deep.0.0", "deep.0"),
    ]


@check(
    "make_optimizer",
    probe=probes.grouped,
    weight=2,
    rule=setting_of("lr", "learning rate"),
    says="of several paths the longest decides, in any order",
)
def longest_path(draw: Draw) -> list[Case]:
    return [
        groups(draw, "nested", "backbone", "backbone.0", "backbone.0.bias"),
        groups(draw, "nested", "backbone.0.bias", "backbone", "backbone.0"),
        groups(draw, "nested", "backbone.2", "backbone"),
        groups(draw, "layers", "11.bias", "11", "1"),
    ]


def each_once(case: Case, seen: Result, expected: Result) -> str | None:
    data = data_of(seen)
    times = data.get("times")
    if not isinstance(times, dict):
        return "What you return is not an optimizer."
    if data["strangers"]:
        return (
            "Your optimizer holds tensors that are not the model's own "
            "parameters: copies, or buffers."
        )
    for name, number in expected.data["times"].items():
        seen_number = times.get(name, 0)
        if number and not seen_number:
            return "A trainable parameter is in no group."
        if seen_number and not number:
            return "A frozen parameter is in a group."
        if seen_number > 1:
            return "A parameter is in a group more than once."
    # What is in the groups counts only together with what depends on the case.
    return setting_of("lr", "learning rate")(case, seen, expected)


@check(
    "make_optimizer",
    probe=probes.grouped,
    weight=2,
    rule=each_once,
    also=[gives_no_warning],
    says="every trainable parameter stands there once, shared ones too, frozen "
    "ones never, and nothing warns",
    corners=[
        "a shared one goes by the one name that `named_parameters()` gives it",
        "parameters with equal values are not shared",
        "at least one parameter is trainable",
    ],
)
def each_parameter_once(draw: Draw) -> list[Case]:
    return [
        groups(draw, "nested"),
        groups(draw, "tied"),
        groups(draw, "tied", "encoder"),
        groups(draw, "tied", "decoder"),
        groups(draw, "scaled", frozen=["embedding", "norm.bias"]),
        groups(draw, "layers", frozen=["1", "10"]),
        groups(draw, "scaled", frozen=["norm", "head"], weight_decay=0.0),
        groups(draw, "layers", frozen=["2"], decay_all=True),
        # parameters of equal values are still different parameters
        groups(draw, "layers", "3", start=torch.full((60,), 0.5).double()),
        groups(draw, "nested", start=torch.zeros(60).double()),
    ]


def decay_and_rest(case: Case, seen: Result, expected: Result) -> str | None:
    found = data_of(seen).get("weight_decay")
    if not isinstance(found, dict):
        return "What you return is not an optimizer."
    sizes = MODELS[case["model"]]
    for name, value in expected.data["weight_decay"].items():
        if name not in found:
            return "A trainable parameter is in no group."
        if found[name] != value:
            kind = {0: "a scalar", 1: "one dimension"}.get(
                len(sizes[name]), "two dimensions or more"
            )
            return f"The weight decay of a parameter ({kind}) is wrong."
    return None


@check(
    "make_optimizer",
    probe=probes.grouped,
    weight=2,
    rule=decay_and_rest,
    says="weight decay: not below two dimensions, unless `decay_all`",
)
def decay_by_dimensions(draw: Draw) -> list[Case]:
    return [
        groups(draw, "scaled"),
        groups(draw, "nested", decay_all=False),
        groups(draw, "scaled", decay_all=True),
        groups(draw, "scaled", "head", "norm.weight"),
        groups(draw, "nested", "backbone", decay_all=True),
    ]


def steps_of_sgd(case: Case, seen: Result, expected: Result) -> str | None:
    data = data_of(seen)
    if "others" not in data:
        return "What you return is not an optimizer."
    if data["is_sgd"] is not True:
        return "What you return is not a `torch.optim.SGD`."
    if data["others"] != expected.data["others"]:
        usual = [tuple(one) for one in expected.data["others"]]
        key, value = next(
            tuple(one) for one in data["others"] if tuple(one) not in usual
        )
        return (
            f"The setting `{key}` is {value}. Nobody asked you to change it from "
            "SGD's default."
        )
    complaint = setting_of("momentum", "momentum")(case, seen, expected)
    if complaint:
        return complaint
    for name, wanted in expected.data["after_steps"].items():
        value = data["after_steps"].get(name)
        if value is None or not torch.allclose(value, wanted, 1e-8, 1e-10):
            return (
                "Two steps do not move each of the model's parameters by its own "
                "rate, decay and momentum."
            )
    return None


@check(
    "make_optimizer",
    probe=probes.grouped,
    weight=2,
    rule=steps_of_sgd,
    says="two steps of SGD move the model's own parameters as they should; "
    "`momentum` is for all, other settings are the defaults",
)
def it_trains(draw: Draw) -> list[Case]:
    # No decay and no path: the other checks are about these.
    return [
        groups(draw, "nested", weight_decay=0.0),
        groups(draw, "scaled", weight_decay=0.0, momentum=0.9),
        groups(draw, "tied", weight_decay=0.0, momentum=0.5, train=False),
    ]


def refuses(case: Case, seen: Result, expected: Result) -> str | None:
    right = expected.data
    if seen.data["refused"] != right["refused"]:
        if not right["refused"]:
            paths = ", ".join(f"`{path}`" for path in case["rates"])
            frozen = ", ".join(case["frozen"]) or "nothing"
            return (
                f"Your code refuses the paths {paths} (frozen: {frozen}). Each "
                "fits a parameter."
            )
        names = MODELS[case["model"]]
        path = next(
            path
            for path in case["rates"]
            if not any(fits(path, name) for name in names)
        )
        if "tied" in case["model"]:
            return (
                f'Your code accepts the path "{path}", under which there is only '
                "the second name of a shared weight. `named_parameters()` gives "
                "the first alone, so the path fits no parameter."
            )
        return f'Your code accepts the path "{path}", which fits no parameter.'
    if seen.data["times"] != right["times"]:
        return "What is accepted does not stand in the groups as it should."
    return None


@check(
    "make_optimizer",
    probe=probes.refused,
    weight=2,
    rule=refuses,
    says="a path that fits no parameter raises a `ValueError` or a "
    "`KeyError`; one of frozen parameters is right, and has no effect",
    corners=[
        'that of a buffer or of a module without parameters, `""` and '
        '`"head."` with its dot fit none; `*`, `?`, `/`, `[0]`, a blank, '
        "`model.` and `module.` stand for themselves",
        "one all of whose parameters go to longer paths is right, too, and so "
        "are all paths that there are",
    ],
)
def unknown_paths(draw: Draw) -> list[Case]:
    number = draw.integer(3, 90)
    unknown = [
        groups(draw, "nested", draw.choice(["neck", "arm", "tail"])),
        groups(draw, "nested", f"backbone{number}"),
        groups(draw, "layers", str(11 + number), "3"),
        groups(draw, "nested", "back"),
        groups(draw, "nested", "backbone.0.weigh"),
        groups(draw, "nested", "backbone", "backbone.3"),
        groups(draw, "nested", "drop"),
        groups(draw, "nested", "my.backbone"),
        groups(draw, "nested", "head", ""),
        groups(draw, "nested", "head."),
        groups(draw, "nested", "*"),
        groups(draw, "nested", "he?d"),
        groups(draw, "nested", "HEAD"),
        groups(draw, "nested", "head.*"),
        groups(draw, "nested", "backbone[0]"),
        groups(draw, "nested", "backbone/0"),
        groups(draw, "nested", " head"),
        groups(draw, "nested", ".head"),
        groups(draw, "nested", "model.head"),
        groups(draw, "nested", "module.head"),
        groups(draw, "tied", "decoder.weight"),
        groups(draw, "tied alone", "decoder"),
        groups(draw, "scaled", "bias"),
        groups(draw, "scaled", "head.bias.0"),
        groups(draw, "nested", "backbone.1.running_mean"),
    ]
    right = [
        groups(draw, "scaled", "head", frozen=["head"]),
        groups(draw, "nested", "backbone.1", "head", frozen=["backbone.1"]),
        groups(draw, "scaled", "head", "head.bias", "head.weight", "norm"),
        # every path that there is
        groups(draw, "tied", *MODELS["tied"], "encoder", "between", "decoder"),
    ]
    cases = unknown + right
    return [cases[i] for i in draw.permutation(len(cases)).tolist()]


def leaves_the_rest(case: Case, seen: Result, expected: Result) -> str | None:
    data = data_of(seen)
    if data.get("model_kept") is not True:
        return (
            "You changed the model: values, gradients, `requires_grad` or its "
            "mode."
        )
    if data.get("rates_kept") is not True:
        return "You changed the dict of rates that you were given."
    if not isinstance(data_of(seen).get("lr"), dict):
        return "What you return is not an optimizer."
    return None


@check(
    "make_optimizer",
    probe=probes.grouped,
    rule=leaves_the_rest,
    also=[leaves_rng_alone, leaves_state_alone],
    says="the model with its gradients, `rates` and its order, and the global "
    "random state stay as they are",
)
def hands_off(draw: Draw) -> list[Case]:
    return [
        groups(draw, "scaled", "head", train=False),
        groups(draw, "nested", "backbone2", frozen=["head"]),
        groups(draw, "tied", "between"),
        groups(draw, "layers", "7", "3", "11", "0"),
        groups(draw, "nested", rates={"backbone": 0.0}),
    ]


# decayed_step


def decay(draw: Draw, num_steps: int = 4, **options: Any) -> Case:
    """Some steps of a network with weight decay."""
    width = draw.integer(2, 4)
    return {
        "batches": [
            (
                draw.normal(5, width, dtype=torch.float64),
                draw.normal(5, 2, dtype=torch.float64),
            )
            for _ in range(num_steps)
        ],
        "start": draw.normal(80, dtype=torch.float64),
        "parts": [],
        "optimizer": "SGD",
        "lrs": [0.05, 0.05],
        "weight_decay": 0.1 * draw.integer(2, 6),
        "side_used": [True] * num_steps,
        "old_gradients": False,
        "train": True,
        "train_norm": options.get("train", True),
        **options,
    }


def without_error(case: Case) -> Case:
    """The same case, but the first loss is exactly zero."""
    (X, y), *later = case["batches"]
    body = 3 * X.shape[1] + 3
    case["start"][body:] = 0
    return {**case, "batches": [(X, torch.zeros_like(y)), *later]}


def with_a_bad_target(case: Case, value: float) -> Case:
    """The same case with this value in a target: the loss is not finite."""
    for _, y in case["batches"]:
        y[0, 0] = value
    return case


def weights_unless(sentence: str, *parts: str) -> Rule:
    """Rule: the weights of these parts (of all, if none is named) are right."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        weights = data_of(seen).get("weights", {})
        for name, wanted in expected.data["weights"].items():
            if parts and name.partition(".")[0] not in parts:
                continue
            value = weights.get(name)
            if value is None or not torch.allclose(
                value, wanted, 1e-8, 1e-10, equal_nan=True
            ):
                return sentence
        return None

    return rule


@check(
    "decayed_step",
    probe=probes.decayed,
    weight=3,
    rule=weights_unless(
        "With `decoupled=False` the weights are not those that the option "
        "`weight_decay` of the optimizer gives."
    ),
    says="`decoupled=False` is the option `weight_decay` of SGD and Adam",
)
def as_in_the_gradient(draw: Draw) -> list[Case]:
    return [
        decay(draw),
        in_pairs(decay(draw, optimizer="momentum", decoupled=False)),
        decay(draw, optimizer="Adam", decoupled=False),
        decay(draw, optimizer="RMSprop", lrs=[0.01, 0.01]),
        without_error(decay(draw)),
        with_an_infinite_target(decay(draw)),
    ]


@check(
    "decayed_step",
    probe=probes.decayed,
    weight=3,
    rule=weights_unless(
        "With `decoupled=True` the weights are not those that AdamW's kind of "
        "decay gives."
    ),
    says="`decoupled=True` is the decay of AdamW",
    corners=["the gradient is that of the weights before they shrink"],
)
def as_in_adamw(draw: Draw) -> list[Case]:
    return [
        decay(draw, optimizer="Adam", decoupled=True),
        decay(draw, optimizer="momentum", decoupled=True),
        decay(draw, optimizer="AdamW", decoupled=True),
        decay(draw, lrs=[0.4, 0.6], weight_decay=3.0, decoupled=True),
        without_error(decay(draw, decoupled=True)),
        with_a_bad_target(decay(draw, 1, decoupled=True), math.inf),
    ]


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=weights_unless(
        "Under another kind of optimizer (AdamW without its decay, Rprop) the "
        "weights are not those of the decay that was asked for."
    ),
    says="any kind of `torch.optim`: you bring the decay, not its options",
    corners=[
        "`decoupled=False` under AdamW, made with `weight_decay=0`, whose own option "
        "does something else",
        "one that steps without a closure, without `maximize`, on dense "
        "gradients, in any groups, and whose step does not depend on the "
        "weights (unlike Adafactor, ASGD, and any that was made with a decay)",
    ],
)
def each_kind_of_optimizer(draw: Draw) -> list[Case]:
    slow = {"lrs": [0.01, 0.02]}
    return [
        decay(draw, optimizer="AdamW", **slow),
        decay(draw, optimizer="Rprop", **slow),
        decay(draw, optimizer="Rprop", **slow, decoupled=True),
    ]


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=weights_unless(
        "A parameter is wrong that is a scalar, or shared, or added to another "
        "one, or not registered in the model, or that the loss reaches in some "
        "steps only."
    ),
    says="whatever is in the optimizer and reached by the loss is decayed, "
    "and once",
    corners=[
        "biases, scalars, shared ones, two that the model adds up, and one that "
        "is not registered in the model"
    ],
)
def each_kind_of_parameter(draw: Draw) -> list[Case]:
    now_and_then = {
        "parts": ["side"],
        "side_used": [False, True, False, True],
        "optimizer": "momentum",
    }
    return [
        decay(draw, parts=["tied", "scalar", "twins"]),
        decay(draw, parts=["tied", "scalar"], decoupled=True),
        decay(draw, parts=["unregistered"], optimizer="Adam"),
        decay(draw, parts=["unregistered"], decoupled=True),
        # parameters of equal values are still different parameters
        decay(
            draw,
            parts=["side", "zeroed"],
            start=torch.full((80,), 0.3).double(),
        ),
        decay(draw, **now_and_then),
        decay(draw, **now_and_then, decoupled=True),
    ]


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=weights_unless(
        "Where groups have different rates, the weights are wrong."
    ),
    says="each group has its own rate",
    corners=[
        "it may change between two steps; at a rate of 0 momentum still takes "
        "in the weights"
    ],
)
def rate_of_the_group(draw: Draw) -> list[Case]:
    lrs = [0.01 * draw.integer(1, 4), 0.08]
    warm = {"lrs": [0.0, 0.0], "later_lrs": lrs}
    return [
        decay(draw, lrs=lrs, optimizer="Adam", decoupled=True),
        decay(draw, lrs=lrs, decoupled=True),
        decay(draw, lrs=lrs, optimizer="momentum", decoupled=False),
        decay(draw, **warm, optimizer="momentum"),
        decay(draw, **warm, decoupled=True),
    ]


def unreached_stays(case: Case, seen: Result, expected: Result) -> str | None:
    if data_of(seen).get("stayed") is not True:
        return "A parameter that the loss does not reach has moved."
    change = data_of(seen).get("change_of_reached")
    wanted = expected.data["change_of_reached"]
    # The decay is weak here, and wide enough is this for any kind of it.
    if change is None or (change - wanted).norm() > 0.3 * wanted.norm():
        return (
            "The parameters that the loss reaches do not move as they should."
        )
    return None


@check(
    "decayed_step",
    probe=probes.decayed,
    weight=3,
    rule=unreached_stays,
    says="a parameter that this loss does not reach keeps every bit",
    corners=[
        "whatever happened to it in earlier steps, and whatever gradient is "
        "left in it"
    ],
)
def unreached_keeps_every_bit(draw: Draw) -> list[Case]:
    small = {"lrs": [0.01, 0.01], "weight_decay": 0.02}
    unused = {"parts": ["never", "frozen"], **small}
    once = {
        "parts": ["side", "frozen"],
        "side_used": [True, False, False, False],
        **small,
    }
    return [
        decay(draw, **unused, old_gradients=True),
        decay(draw, parts=["stray"], **small),
        decay(draw, parts=["stray"], **small, decoupled=True),
        decay(draw, **unused, optimizer="Adam", decoupled=True),
        decay(draw, **once),
        decay(draw, **once, optimizer="momentum", decoupled=True),
        decay(draw, **once, optimizer="Adam"),
        decay(draw, **once, optimizer="Adam", decoupled=True),
    ]


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=weights_unless(
        "A layer whose gradient is zero, but not None, is not decayed as it "
        "should be.",
        "zeroed",
    ),
    says="a gradient of zeros is a gradient: its layer decays",
)
def zeros_are_a_gradient(draw: Draw) -> list[Case]:
    reached = {"parts": ["zeroed"], "num_steps": 8}
    return [
        decay(draw, **reached, lrs=[0.1, 0.1], weight_decay=0.1),
        decay(draw, **reached, optimizer="Adam", lrs=[0.02, 0.02]),
        decay(draw, **reached, optimizer="Adam", decoupled=True),
    ]


def outside_and_buffers(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = data_of(seen)
    if data.get("hooks_left") is True:
        return (
            "You leave a hook on the optimizer or on a parameter. It runs at every "
            "later step, whoever makes it: take it off with the `remove()` of its "
            "handle."
        )
    if data.get("same_settings") is not True:
        return "A setting of the optimizer is not what it was before."
    if data.get("calls") != expected.data["calls"]:
        return "The model is not called exactly once for each step."
    if data.get("modes_kept") is not True:
        return "You changed the mode (train or eval) of the model or a part."
    if data.get("plain_batches") is not True:
        return "You changed `requires_grad` of `X` or `y`."
    if data.get("buffers_kept") is not True:
        return "A buffer of the model is not what its forward pass made of it."
    sentence = "A parameter that is not in the optimizer has moved."
    return weights_unless(sentence, "outside")(case, seen, expected)


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=outside_and_buffers,
    also=HANDS_OFF,
    says="buffers, parameters outside the optimizer, its settings and the "
    "inputs are left alone, and no hook is left",
    corners=[
        "the model is called once; its mode and that of its parts, the grad "
        "mode and the global random state stay",
        "it is called with gradients switched on",
    ],
)
def leaves_the_others(draw: Draw) -> list[Case]:
    others = {"parts": ["norm", "outside"]}
    return [
        decay(draw, **others),
        decay(draw, **others, decoupled=True),
        decay(draw, **others, train_norm=False),
        decay(draw, **others, optimizer="Adam", decoupled=True, train=False),
        with_a_bad_target(decay(draw, 1, **others), math.inf),
        with_a_bad_target(decay(draw, 1, **others, decoupled=True), math.nan),
    ]


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=weights_unless(
        "Without any decay the steps are not those on the gradient of this "
        "step's loss alone. What stood in `.grad` before counts if nobody "
        "clears it first."
    ),
    says="gradients from before do not count",
    corners=["what is in `.grad` afterwards does not matter"],
)
def old_gradients(draw: Draw) -> list[Case]:
    return [
        decay(draw, weight_decay=0.0, old_gradients=True),
        decay(draw, weight_decay=0.0, old_gradients=True, decoupled=True),
        decay(draw, weight_decay=0.0, optimizer="Adam"),
    ]


def right_loss(case: Case, seen: Result, expected: Result) -> str | None:
    (given,), (right,) = seen.data["losses"], expected.data["losses"]
    if not isinstance(given, float):
        return f"You return a {type(given).__name__}, not a Python float."
    if abs(given - right) > 1e-10 + 1e-8 * abs(right):
        return (
            f"You return {given:.6g}. The loss before the step, without any "
            f"penalty, is {right:.6g}."
        )
    return None


@check(
    "decayed_step",
    probe=probes.decayed,
    rule=right_loss,
    says="the loss before the step is returned, a Python float without the "
    "penalty",
)
def returned_loss(draw: Draw) -> list[Case]:
    # One step: a wrong decay has not yet moved anything.
    return [
        decay(draw, num_steps=1),
        decay(draw, num_steps=1, optimizer="Adam", decoupled=True),
        decay(draw, num_steps=1, parts=["norm", "side"]),
    ]
