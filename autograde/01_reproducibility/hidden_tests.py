"""What is checked in the exercises of chapter 01."""

import functools
from typing import Any

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

LARGEST = 2**32 - 1
WORKERS_S = 60.0  # starting processes takes its time on a busy machine
NAMES = {
    "random": "`random`",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "gpus": "the GPUs",
}


def readable(rule: Rule) -> Rule:
    """The rule, for which data of another form than a probe gives are wrong."""

    @functools.wraps(rule)
    def judged(case: Case, seen: Result, expected: Result) -> str | None:
        try:
            return rule(case, seen, expected)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return "What came back does not have the form it should have."

    return judged


def a_seed(draw: Draw) -> int:
    """Within the range of any sign: larger ones have a check of their own."""
    return draw.integer(1, 2**31)


# set_seed


def draws(draw: Draw, library: str, *seeds: int) -> Case:
    return {
        "library": library,
        "seeds": list(seeds),
        "draws_before": [draw.integer(0, 3) * 2 + 1 for _ in seeds],
    }


@readable
def about_draws(case: Case, seen: Result, expected: Result) -> str | None:
    right = [
        now == wanted
        for now, wanted in zip(seen.data, expected.data, strict=True)
    ]
    if all(right):
        return None
    name = NAMES[case["library"]]
    if None in seen.data:
        bad = case["seeds"][seen.data.index(None)]
        size = "small" if bad < 2**31 else "large"
        return f"A {size} seed within the range was refused with a ValueError."
    again = case["seeds"].index(case["seeds"][right.index(False)])
    if again < right.index(False) and right[again]:
        return f"Seeded a second time with the same seed, {name} draws others."
    return f"{name} does not draw what it draws when seeded with `seed` itself."


def again_and_another(draw: Draw, library: str) -> list[Case]:
    one, two = a_seed(draw), a_seed(draw)
    return [
        draws(draw, library, one, two, one),
        draws(draw, library, two, two),
    ]


@check(
    "set_seed",
    probe=probes.seeded_draws,
    rule=about_draws,
    says="`set_seed`: `random` draws what it draws after being seeded with "
    "`seed`, whatever was drawn before",
)
def seeds_random(draw: Draw) -> list[Case]:
    return again_and_another(draw, "random")


@check(
    "set_seed",
    probe=probes.seeded_draws,
    rule=about_draws,
    says="`set_seed`: NumPy's global generator draws what it draws after being "
    "seeded with `seed`",
)
def seeds_numpy(draw: Draw) -> list[Case]:
    return again_and_another(draw, "numpy")


@check(
    "set_seed",
    probe=probes.seeded_draws,
    rule=about_draws,
    says="`set_seed`: PyTorch draws what it draws after being seeded with "
    "`seed`: numbers, permutations, dropout, initial weights",
)
def seeds_torch(draw: Draw) -> list[Case]:
    return again_and_another(draw, "torch")


@check(
    "set_seed",
    probe=probes.seeded_draws,
    rule=about_draws,
    says="`set_seed`: the smallest and the largest seed are seeds like others",
)
def first_and_last_seed(draw: Draw) -> list[Case]:
    between = a_seed(draw)
    return [
        draws(draw, library, *seeds)
        for library in ("random", "numpy", "torch")
        for seeds in ((0, between), (LARGEST, between, 2**31))
    ]


def differing(one: dict[str, float], other: dict[str, float]) -> list[str]:
    return [name for name in one if one[name] != other[name]]


@readable
def about_the_gpus(case: Case, seen: Result, expected: Result) -> str | None:
    theirs, ours = seen.data, expected.data
    for states, wanted in zip(theirs["states"], ours["states"], strict=True):
        if states == wanted:
            continue
        if states == case["states"]:
            return "No GPU's generator has been seeded."
        if states[0] == wanted[0]:
            return "Only the first GPU's generator has been seeded with `seed`."
        return (
            "The generators of the GPUs end up with another seed than `seed`."
        )
    for drawn, wanted in zip(theirs["drawn"], ours["drawn"], strict=True):
        for one in differing(drawn, wanted):
            return f"Where there are GPUs, {NAMES[one]} is not seeded."
    return None


@check(
    "set_seed",
    probe=probes.seeds_of_the_gpus,
    rule=about_the_gpus,
    says="`set_seed`: where there are GPUs, the generator of each ends up "
    "seeded with `seed`, and the three others too (a stand-in takes the place "
    "of the GPUs)",
)
def seeds_every_gpu(draw: Draw) -> list[Case]:
    def gpus(*seeds: int, count: int) -> Case:
        before = [draw.integer(1, 10**9) for _ in range(count)]
        return {"states": before, "seeds": list(seeds)}

    return [
        gpus(a_seed(draw), count=1),
        gpus(a_seed(draw), a_seed(draw), count=2),
        gpus(LARGEST - a_seed(draw), count=2),
        gpus(a_seed(draw), a_seed(draw), count=3),
    ]


@readable
def about_refusals(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    kind = "negative seed" if case["bad"] < 0 else "seed of 2**32 or more"
    if data["raised"] == "nothing":
        return f"A {kind} was accepted; it must raise a ValueError."
    if data["raised"] != "ValueError":
        return f"A {kind} raised another exception than a ValueError."
    if data["touched"]:
        names = " and ".join(NAMES[one] for one in data["touched"])
        return (
            f"A {kind} was refused, but {names} had been seeded by then. Look "
            "at `seed` first."
        )
    if data["next"] != expected.data["next"]:
        return (
            "After the good seed before the bad one, `random` does not draw what "
            "it draws when seeded with it."
        )
    return None


@check(
    "set_seed",
    probe=probes.refused_seed,
    rule=about_refusals,
    says="`set_seed`: any other `int` raises a `ValueError`, and then nothing "
    "has been seeded",
)
def refuses_other_seeds(draw: Draw) -> list[Case]:
    bad = (
        -1,
        2**32,
        -draw.integer(2, 2**31),
        2**32 + a_seed(draw),
        2**64 + draw.integer(0, 9),
        -(2**63) - draw.integer(1, 9),
    )
    return [
        {"good": a_seed(draw), "bad": one, "draws": draw.integer(0, 4)}
        for one in bad
    ]


def some_flags(draw: Draw, switch: int | None = None) -> dict[str, bool]:
    """Settings to enter with; `switch` is 0 (off), 1 (warns) or 2 (raises)."""
    state = draw.integer(0, 3) if switch is None else switch
    return {
        "cudnn.enabled": draw.integer(0, 2) == 1,
        "cudnn.benchmark": draw.integer(0, 2) == 1,
        "cudnn.deterministic": draw.integer(0, 2) == 1,
        "cudnn.allow_tf32": draw.integer(0, 2) == 1,
        "the switch": state > 0,
        "warn_only": state == 1,
    }


def opposite(flags: dict[str, bool]) -> dict[str, bool]:
    other = {name: not value for name, value in flags.items()}
    other["warn_only"] = other["the switch"]
    return other


@readable
def about_changed_flags(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data
    if data["changed"]:
        return f"Seeding changed a setting: {data['changed'][0]}."
    if data["drawn"] != expected.data["drawn"]:
        return "PyTorch was not seeded with `seed`."
    return None


@check(
    "set_seed",
    probe=probes.flags_after_seeding,
    rule=about_changed_flags,
    also=[leaves_state_alone],
    says="`set_seed` changes no flag and no other setting of PyTorch",
    corners=["nor a filter of warnings; `PYTHONHASHSEED` may be written"],
)
def changes_no_flag(draw: Draw) -> list[Case]:
    first = some_flags(draw, 1)
    other = opposite(first)
    return [
        {"flags": flags, "seed": a_seed(draw), "second": flags is other}
        for flags in (first, other, some_flags(draw, 2))
    ]


def runs(
    draw: Draw,
    *libraries: str,
    num_epochs: int,
    seeds: int = 2,
    training: bool = True,
    nothing_from: int = 0,
    tensors: bool = False,
    ends: bool = False,
) -> Case:
    """The model is made in training mode, if `training`; the epoch number
    `nothing_from`, counted from 1, returns None. With `tensors` epochs return
    tensors of one number. With `ends` the seeds are the largest and the smallest."""
    drawn = [LARGEST, 0] if ends else [a_seed(draw) for _ in range(seeds)]
    return {
        "libraries": list(libraries),
        "num_epochs": num_epochs,
        "training": training,
        "nothing_from": nothing_from,
        "tensors": tensors,
        "seeds": [*drawn, drawn[0]],
        "draws_before": [draw.integer(0, 4) for _ in range(seeds + 1)],
    }


@readable
def about_initial_weights(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if seen.data["initial"] != expected.data["initial"]:
        return (
            "The initial weights are not those of a model that is made right "
            "after seeding with `seed`."
        )
    return None


@readable
def about_epochs(case: Case, seen: Result, expected: Result) -> str | None:
    data, wanted = seen.data, expected.data
    if data["calls"] != wanted["calls"]:
        made, wanted_calls = data["calls"][0], wanted["calls"][0]
        if made.count("make_model") != 1 or made[0] != "make_model":
            return "`make_model` is not called once, before the epochs."
        few = made.count("epoch") < wanted_calls.count("epoch")
        if made != wanted_calls:
            return (
                f"`epoch` was called too {'seldom' if few else 'often'} by the "
                f"time `seeded_run` returned, with {case['num_epochs']} epochs."
            )
        return "A second run calls `make_model` or `epoch` another time."
    if data["returns"] != wanted["returns"]:
        return (
            f"`seeded_run` returns a {data['returns'][0]}; the signature says a "
            "tuple of the model and the list."
        )
    if any(type(results) is not list for results in data["results"]):
        return "The results of the epochs do not come in a list."
    if not all(data["trained"]):
        return "`epoch` is called with another model than the one made."
    if not all(data["the model made"]):
        return (
            "The model that you return is another object than the one that "
            "`make_model` made, such as a copy of it."
        )
    for now, should in zip(data["modes"], wanted["modes"], strict=True):
        if [one[0] for one in now] != [one[0] for one in should]:
            return (
                "The model is not in the mode (training or evaluation) in "
                "which `make_model` gave it."
            )
        if [one[1] for one in now] != [one[1] for one in should]:
            return "`epoch` runs without gradients: nothing can learn in it."
        if [one[2] for one in now] != [one[2] for one in should]:
            return "The model has another dtype than `make_model` gave it."
        if now != should:
            return "A parameter that `make_model` has frozen is not frozen."
    if data["gradients"] != wanted["gradients"]:
        return (
            "The gradients are not those that `make_model` or the last epoch "
            "left. When to clear them is the matter of `epoch`."
        )
    numbers = [len(results) for results in data["results"]]
    right = [len(results) for results in wanted["results"]]
    if any(map(int.__gt__, numbers, right)):
        return (
            "The list holds more than one item for each epoch of this run. Make "
            "a new list in each run."
        )
    if numbers != right:
        return (
            "The list holds less than one item for each epoch. What `epoch` "
            "returned may be None, too."
        )
    if data["results"] != wanted["results"]:
        return (
            "The epochs do not return what they return when the run is seeded "
            "once, before the model is made."
        )
    if data["weights"] != wanted["weights"]:
        return "The model that you return is not the one that was trained."
    if not all(data["as given"]):
        return (
            "The list does not hold what `epoch` returned but copies, or tensors "
            "without their graph."
        )
    return None


@check(
    "set_seed",
    probe=probes.run,
    rule=about_initial_weights,
    says="`seeded_run`: the initial weights depend on `seed` alone",
)
def initial_weights_are_seeded(draw: Draw) -> list[Case]:
    return [
        runs(draw, "torch", num_epochs=0, ends=True),
        runs(draw, "torch", num_epochs=2),
    ]


@check(
    "set_seed",
    probe=probes.run,
    rule=about_epochs,
    says="`seeded_run`: one call of `make_model`, then one call of `epoch` "
    "after the other, each with draws of its own; a tuple of the trained "
    "model and a list comes back",
    corners=[
        "`num_epochs` may be 0, and `epoch` may return None, or a tensor, which "
        "stays one and keeps its graph; the list holds what it returned, no copies",
        "the model's mode, its gradients and what is frozen stay as `make_model` "
        "and `epoch` leave them",
    ],
)
def epochs_go_on(draw: Draw) -> list[Case]:
    return [
        runs(draw, "torch", num_epochs=2, training=False, tensors=True),
        runs(draw, "torch", num_epochs=4, nothing_from=draw.integer(1, 5)),
        runs(draw, "torch", num_epochs=0),
    ]


@check(
    "set_seed",
    probe=probes.run,
    rule=about_epochs,
    also=[about_initial_weights],
    says="`seeded_run`, where model and epochs draw from all three generators",
)
def run_with_all_three(draw: Draw) -> list[Case]:
    return [
        runs(draw, "torch", "numpy", "random", num_epochs=3),
        runs(draw, "torch", "numpy", "random", num_epochs=1),
    ]


# reproducible


def block(draw: Draw, manager: str, **options: Any) -> Case:
    return {
        "manager": manager,
        "flags": some_flags(draw, options.pop("switch", None)),
        "off_and_warns": False,
        "second": False,  # further settings, too, are others
        "block_sets": None,
        "ending": None,
        "x": draw.normal(3),
        **options,
    }


def both_ways(draw: Draw, manager: str) -> list[Case]:
    """Entered with some settings, never PyTorch's defaults, and with the opposite
    of each. Further settings are two different ones, too: no value that somebody
    sets is there already in both."""
    one = block(draw, manager)
    one["flags"]["cudnn.deterministic"] = not one["flags"]["cudnn.benchmark"]
    other = {**one, "flags": opposite(one["flags"]), "second": True}
    return [one, {**other, "x": draw.normal(3)}]


@check(
    "reproducible",
    probe=probes.inside_and_after,
    weight=2,
    on=("benchmark", "deterministic", "doubled"),
    says="inside `reproducible()` cuDNN's `benchmark` is False and its "
    "`deterministic` True",
)
def cudnn_is_deterministic(draw: Draw) -> list[Case]:
    return both_ways(draw, "reproducible")


@readable
def about_put(case: Case, seen: Result, expected: Result) -> str | None:
    did, should = seen.data["put"], expected.data["put"]
    if did != should:
        it_should = {
            "raises": "should raise",
            "warns": "should warn and not raise",
            "works": "should work without a word",
        }[should]
        return (
            f"Inside, an operation without a deterministic kernel {did}; it "
            f"{it_should}."
        )
    return about_the_body(seen, expected)


def about_the_body(seen: Result, expected: Result) -> str | None:
    if seen.data["doubled"] != expected.data["doubled"]:
        return "The block was not run as it stands."
    if expected.data.get("set") and not seen.data.get("set"):
        name = expected.data["set"][0]
        return f"On entering, a setting that had to change did not: {name}."
    return None


@check(
    "reproducible",
    probe=probes.inside_and_after,
    rule=about_put,
    says="inside `reproducible()` an operation without a deterministic kernel "
    "raises",
)
def switch_is_on(draw: Draw) -> list[Case]:
    return [
        block(draw, "reproducible", switch=0),
        block(draw, "reproducible", switch=2),
        block(draw, "raising", switch=0),
    ]


@check(
    "reproducible",
    probe=probes.inside_and_after,
    rule=about_put,
    says="with `warn_only=True` it warns; without, it raises, also if it only "
    "warned before",
)
def warns_if_asked(draw: Draw) -> list[Case]:
    return [
        *(block(draw, "warning", switch=switch) for switch in (0, 1, 2)),
        block(draw, "raising", switch=1),
        block(draw, "reproducible", switch=1),
    ]


@check(
    "reproducible",
    probe=probes.inside_and_after,
    weight=2,
    on=("benchmark", "deterministic", "doubled"),
    says="inside `tuned()` cuDNN's `benchmark` is True and its `deterministic` "
    "False",
)
def cudnn_is_tuned(draw: Draw) -> list[Case]:
    return both_ways(draw, "tuned")


@check(
    "reproducible",
    probe=probes.inside_and_after,
    rule=about_put,
    says="inside `tuned()` the switch is off, whatever it was before",
)
def switch_is_off(draw: Draw) -> list[Case]:
    return [block(draw, "tuned", switch=switch) for switch in (0, 1, 2)]


@readable
def about_the_others(case: Case, seen: Result, expected: Result) -> str | None:
    for name, is_now, was in zip(
        ("enabled", "allow_tf32"),
        seen.data["others"],
        expected.data["others"],
        strict=True,
    ):
        if is_now != was:
            return f"Inside, `cudnn.{name}` is not what it was before."
    for name in seen.data["further"]:
        return f"Inside, {name} is not what it was before."
    return about_the_body(seen, expected)


@check(
    "reproducible",
    probe=probes.inside_and_after,
    rule=about_the_others,
    says="inside, cuDNN's `enabled`, `allow_tf32`, `fp32_precision` and further "
    "flags stay as they were, and so do all other settings of PyTorch",
    corners=[
        "but for what the switch sets itself, such as a flag of the compiler: it may be "
        "on or off, inside and after the block",
        "after the block, too; and so do the variables of the environment and "
        "the filters of warnings",
    ],
)
def other_flags_stay(draw: Draw) -> list[Case]:
    return [
        case
        for manager in ("reproducible", "tuned", "warning")
        for case in both_ways(draw, manager)
    ]


@readable
def about_what_is_left(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data
    if data.get("caught") == "nothing":
        return "The block's exception did not reach the caller."
    if data.get("caught") == "another one":
        return "Another exception than the block's reached the caller."
    if data["changed"]:
        name = "tuned" if case["manager"] == "tuned" else "reproducible"
        how = f" that ended in {case['ending']}" if case["ending"] else ""
        return (
            f"After a block of `{name}`{how}, a setting is not what it was: "
            f"{data['changed'][0]}."
        )
    if data.get("invented"):
        return (
            "An attribute was added that PyTorch does not have: assigning to a "
            "misspelt flag makes one, and nobody reads it."
        )
    return about_the_body(seen, expected)


@check(
    "reproducible",
    probe=probes.inside_and_after,
    weight=2,
    rule=about_what_is_left,
    also=[leaves_rng_alone],
    says="after the block the three settings are as on entering; no flag has "
    "been invented, nothing seeded",
    corners=[
        "that includes whether the switch was on and, if it was, whether it "
        "only warned",
        "the switch may be off and `warn_only` set (`use_deterministic_algorithms"
        "(False, warn_only=True)`): a switch that was off stays off",
    ],
)
def all_is_put_back(draw: Draw) -> list[Case]:
    return [
        case
        for manager in ("reproducible", "tuned")
        for case in (
            *(block(draw, manager, switch=switch) for switch in (0, 1, 2)),
            block(draw, manager, switch=0, off_and_warns=True),
            *both_ways(draw, manager),
        )
    ]


@check(
    "reproducible",
    probe=probes.inside_and_after,
    rule=about_what_is_left,
    says="after the block the settings are as on entering also if the block "
    "itself changed them",
)
def put_back_what_the_block_sets(draw: Draw) -> list[Case]:
    cases = []
    for manager in ("reproducible", "tuned"):
        for switch in (0, 1, 2):
            case = block(draw, manager, switch=switch)
            sets = {
                **opposite(case["flags"]),
                "cudnn.enabled": case["flags"]["cudnn.enabled"],
                "cudnn.allow_tf32": case["flags"]["cudnn.allow_tf32"],
            }
            cases.append({**case, "block_sets": sets})
    return cases


@check(
    "reproducible",
    probe=probes.after_an_exception,
    weight=2,
    rule=about_what_is_left,
    says="after a block that ends in an exception the settings are as on "
    "entering, and the exception reaches the caller",
    corners=[
        "an interrupt (Ctrl-C), `sys.exit()` and `StopIteration` are exceptions, "
        "too"
    ],
)
def put_back_after_an_exception(draw: Draw) -> list[Case]:
    return [
        {**case, "ending": ending}
        for manager in ("reproducible", "warning", "tuned")
        for case in both_ways(draw, manager)
        for ending in probes.ENDINGS
    ]


THE_BLOCKS = (
    "cudnn.benchmark",
    "cudnn.deterministic",
    "the switch",
    "warn_only",
)
"""The settings that a block may change."""


@readable
def about_nesting(case: Case, seen: Result, expected: Result) -> str | None:
    depth = len(case["managers"])
    pairs = zip(seen.data["settings"], expected.data["settings"], strict=True)
    for place, (now, wanted) in enumerate(pairs):
        # the other flags are the matter of `other_flags_stay`
        now = {name: now[name] for name in THE_BLOCKS}
        wanted = {name: wanted[name] for name in THE_BLOCKS}
        if now != wanted and place <= depth:
            name = next(one for one in wanted if now[one] != wanted[one])
            where = "in nested blocks" if depth > 1 else "in a single block"
            if case["made_before"]:
                where += ", made first and entered later"
            return (
                f"Inside, a setting is not what the innermost block makes it: "
                f"{name}, {where}."
            )
        if now != wanted:
            return (
                "On leaving, the settings are not those that stood when the "
                "block was entered."
            )
    return about_the_body(seen, expected)


@check(
    "reproducible",
    probe=probes.nested,
    rule=about_nesting,
    says="blocks may be nested; what counts is how the settings stood on "
    "entering",
    corners=["not how they stood when the manager was made"],
)
def nested_blocks(draw: Draw) -> list[Case]:
    def nest(*managers: str, made_before: bool = False) -> Case:
        flags = some_flags(draw)
        return {
            "managers": list(managers),
            "flags": flags,
            "flags_when_made": opposite(flags),
            "made_before": made_before,
            "x": draw.normal(3),
        }

    return [
        nest("reproducible", "tuned"),
        nest("tuned", "warning", "tuned", "tuned"),
        nest("warning", "reproducible", "tuned", "warning"),
        nest("reproducible", made_before=True),
        nest("tuned", made_before=True),
        nest("tuned", "reproducible", made_before=True),
    ]


# make_loader


def loading(draw: Draw, num_samples: int = 13, **options: Any) -> Case:
    values = draw.permutation(10 * num_samples)[:num_samples]
    seed = a_seed(draw)
    return {
        "values": values.double() / 7,
        "batch_size": 4,
        "seed": seed,
        "other_seed": draw.choice((seed - 1, seed + 1)),
        "num_workers": 0,
        "leave_out_workers": False,
        "has_rng": True,
        "rng_seed": draw.integer(0, 10**6),
        "global_seed": draw.integer(0, 10**6),
        "draws": draw.integer(1, 6),
        **options,
    }


@readable
def about_an_epoch(case: Case, seen: Result, expected: Result) -> str | None:
    data, wanted = seen.data, expected.data
    if not data["is a DataLoader"]:
        return "What you return is not a DataLoader."
    if not data["dataset"]:
        return "The loader's `dataset` is another object than the one given."
    if data["samples"] != wanted["samples"]:
        if set(data["samples"]) < set(wanted["samples"]):
            return "Samples are missing from an epoch."
        return "An epoch does not hold every sample once."
    if data["workers"] != wanted["workers"]:
        return "The samples do not come from `num_workers` workers."
    if data["sizes"] != wanted["sizes"]:
        return "The batches do not have `batch_size` samples each."
    if data["number of batches"] != wanted["number of batches"]:
        return "`len` of the loader is not the number of batches."
    return None


@check(
    "make_loader",
    probe=probes.one_epoch,
    timeout_s=WORKERS_S,
    rule=about_an_epoch,
    says="an epoch holds every sample once, in batches of `batch_size`, "
    "loaded by `num_workers` workers",
    corners=[
        "as the `DataLoader` collates them by itself; the last one may be "
        "smaller",
        "the loader's `dataset` is the object that was given",
        "0 workers if `num_workers` is not given",
    ],
)
def whole_epochs(draw: Draw) -> list[Case]:
    return [
        loading(draw, 13, leave_out_workers=True),
        loading(draw, 12, batch_size=5, has_rng=False),
        loading(draw, 7, num_workers=3, batch_size=2),
        loading(draw, 10, batch_size=16),
    ]


def from_the_dataset(data: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether the samples that were seen are the dataset's. That none is left
    out or comes twice is the matter of `whole_epochs` alone."""
    seen, given = data["samples"], wanted["samples"]
    return 2 * len(seen) > len(given) and set(seen) <= set(given)


@readable
def about_the_order(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    if not from_the_dataset(data, expected.data):
        return "The samples are not those of the dataset."
    for fact, sentence in (
        ("shuffled", "The samples come in the order of the dataset."),
        ("epochs_differ", "Two epochs of one loader have the same order."),
        (
            "repeats",
            "Two loaders with the same seed do not give the same orders; one of "
            "them was read after a third had been made.",
        ),
        ("seeds_differ", "Loaders with different seeds give the same order."),
    ):
        if data[fact] != expected.data[fact]:
            return sentence
    return None


@check(
    "make_loader",
    probe=probes.order_of_epochs,
    timeout_s=WORKERS_S,
    weight=2,
    rule=about_the_order,
    says="every epoch has another order; the same seed gives the same ones "
    "again, other seeds give others",
    corners=["with other loaders beside it, too"],
)
def orders_repeat(draw: Draw) -> list[Case]:
    return [
        loading(draw, 16, num_epochs=3),
        loading(draw, 15, num_epochs=4, seed=0, other_seed=1, batch_size=1),
        loading(draw, 20, num_epochs=2, seed=LARGEST, other_seed=LARGEST - 1),
        *(
            loading(draw, 18, num_epochs=2, seed=seed, other_seed=seed + apart)
            for seed, apart in (
                (a_seed(draw), 2**31),
                (a_seed(draw), 10**9),
            )
        ),
    ]


@readable
def about_likeness(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    if not from_the_dataset(data, expected.data):
        return "The samples are not those of the dataset."
    if not data["alike"]:
        if "when" not in case:
            return (
                "With other numbers of workers the order is another one. It "
                "depends on that number, or on a global generator."
            )
        if case["when"] == "by batch size":
            return (
                "With another `batch_size` the order is another one. It depends "
                "on that, or on a global generator."
            )
        return (
            "The order depends on the global generators, used or seeded by "
            f"others {case['when']}."
            if case["when"] != "after another seed"
            else "The order depends on the global generators: seeded anew "
            "after the loader was made, they give another one."
        )
    return None


@check(
    "make_loader",
    probe=probes.order_by_workers,
    timeout_s=WORKERS_S,
    rule=about_likeness,
    says="the order is the same with 0 workers and with 2",
    corners=["epochs that are broken off are not tried"],
)
def order_is_that_of_any_workers(draw: Draw) -> list[Case]:
    return [loading(draw, 8, numbers_of_workers=[0, 2], num_epochs=2)]


@check(
    "make_loader",
    probe=probes.order_when_disturbed,
    timeout_s=WORKERS_S,
    weight=2,
    rule=about_likeness,
    says="what others draw, before or after the loader is made, does not change "
    "the order",
    corners=["nor does `batch_size`"],
)
def order_is_independent(draw: Draw) -> list[Case]:
    return [
        loading(draw, 16, when="before the loader is made"),
        loading(draw, 15, when="between making and the epochs"),
        loading(draw, 14, when="during the epochs"),
        loading(draw, 13, when="after another seed"),
        # both sizes divide it: a last batch that is dropped is not the order
        loading(draw, 20, when="by batch size"),
    ]


@readable
def about_global_states(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data
    for when in ("making", "iterating"):
        if data[when]:
            doing = (
                "Making the loader"
                if when == "making"
                else "Running through the loader"
            )
            name = NAMES[data[when][0]]
            return f"{doing} changed the global state of {name}."
    if not from_the_dataset(data, expected.data):
        return "The samples are not those of the dataset."
    return None


@check(
    "make_loader",
    probe=probes.loader_leaves_alone,
    timeout_s=WORKERS_S,
    rule=about_global_states,
    also=[leaves_state_alone],
    says="making the loader and running through it leaves the global "
    "generators of `random`, NumPy and PyTorch as they are",
    corners=["no setting of PyTorch is changed"],
)
def loader_disturbs_nobody(draw: Draw) -> list[Case]:
    return [
        loading(draw, 13, num_epochs=2),
        loading(draw, 7, num_epochs=1, num_workers=1),
        loading(draw, 13, num_epochs=1, has_rng=False),
    ]


@readable
def about_noise(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    if not from_the_dataset(data, expected.data):
        return "The samples are not those of the dataset."
    if data["workers"] != expected.data["workers"]:
        if data["samples"] != expected.data["samples"]:
            return "Samples are missing, those of a worker among them."
        return "The samples do not come from `num_workers` workers."
    if data["kinds"] != expected.data["kinds"]:
        return "In the workers, `rng` is not a NumPy `Generator` any more."
    for fact, sentence in (
        ("workers_differ", "two workers of an epoch drew the same"),
        ("epochs_differ", "two epochs drew the same"),
        ("repeats", "the same seed did not give the same again"),
        ("seeds_differ", "loaders with different seeds drew the same"),
    ):
        if not data[fact]:
            return f"From `rng`, in the workers, {sentence}."
    return None


@check(
    "make_loader",
    probe=probes.noise_of_workers,
    timeout_s=WORKERS_S,
    weight=2,
    rule=about_noise,
    says="with workers, `rng` gives each worker of each epoch numbers of its "
    "own; the same seed gives the same ones again, other seeds give others",
    corners=[
        "`rng` is a NumPy `Generator` there, too; `np.random.default_rng` has "
        "made it, as in `Jittered`",
        "the checks start workers by `fork`; you need not choose a start "
        "method",
    ],
)
def noise_in_workers(draw: Draw) -> list[Case]:
    return [
        loading(draw, 6, num_workers=1, batch_size=draw.integer(2, 6)),
        loading(draw, 10, num_workers=2, batch_size=draw.integer(3, 6)),
    ]


@readable
def about_the_dataset(case: Case, seen: Result, expected: Result) -> str | None:
    data, wanted = seen.data, expected.data
    if data["attributes"] != wanted["attributes"]:
        return "The dataset has gained or lost an attribute."
    if data["kinds"] != wanted["kinds"] and not case["has_rng"]:
        return "In the workers, a dataset without `rng` has got one."
    if not data["same_object"]:
        return "The dataset in the main process has got another `rng`."
    if not data["same_state"]:
        return (
            "The `rng` of the dataset in the main process was used or seeded."
        )
    if not from_the_dataset(data, wanted):
        return "The samples are not those of the dataset."
    return None


@check(
    "make_loader",
    probe=probes.dataset_kept,
    timeout_s=WORKERS_S,
    rule=about_the_dataset,
    says="the dataset in the main process keeps its `rng`; one without `rng` "
    "stays without",
    corners=["in the workers, too"],
)
def dataset_stays(draw: Draw) -> list[Case]:
    return [
        loading(draw, 13),
        loading(draw, 7, num_workers=1),
        loading(draw, 13, has_rng=False),
        loading(draw, 7, has_rng=False, num_workers=1),
    ]


@check(
    "make_loader",
    probe=probes.inside_isolated,
    rule=about_draws,
    says="inside `isolated(seed)` all three have just been seeded with `seed`",
)
def seeded_inside(draw: Draw) -> list[Case]:
    seeds = a_seed(draw), a_seed(draw)
    return [
        *(
            draws(draw, library, *seeds, seeds[0])
            for library in ("random", "numpy", "torch")
        ),
        *(
            draws(draw, library, 0, LARGEST)
            for library in ("random", "numpy", "torch")
        ),
    ]


def leaving(draw: Draw, *inside: str, **options: Any) -> Case:
    return {
        "seed": a_seed(draw),
        # the next normal draw waits in the generators after an odd number
        "draws_before": 2 * draw.integer(0, 4) + 1,
        "draws_between": 0,
        "draws_inside": list(inside),
        "ending": None,
        "x": draw.normal(3),
        **options,
    }


@readable
def about_isolation(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    if data["caught"] == "nothing" and case["ending"]:
        return "The block's exception did not reach the caller."
    if data["caught"] != expected.data["caught"]:
        return "Another exception than the block's reached the caller."
    how = f" that ended in {case['ending']}" if case["ending"] else ""
    for one in data["changed"]:
        return (
            f"After a block{how}, the global state of {NAMES[one]} is another."
        )
    if data["doubled"] != expected.data["doubled"]:
        return "The block was not run as it stands."
    return None


ALL = ("random", "numpy", "torch")


@check(
    "make_loader",
    probe=probes.after_isolated,
    weight=2,
    rule=about_isolation,
    says="after `isolated` all three global states are as before, and so are "
    "the next draws",
)
def states_come_back(draw: Draw) -> list[Case]:
    return [
        leaving(draw, *ALL),
        leaving(draw, *ALL, draws_before=2 * draw.integer(0, 4)),
        leaving(draw),
        leaving(draw, "torch", "torch"),
    ]


@check(
    "make_loader",
    probe=probes.after_isolated,
    rule=about_isolation,
    says="also if the block of `isolated` ends in an exception, which reaches "
    "the caller",
    corners=[
        "an interrupt (Ctrl-C), `sys.exit()` and `StopIteration` are exceptions, "
        "too"
    ],
)
def states_come_back_after_an_exception(draw: Draw) -> list[Case]:
    return [
        leaving(draw, *ALL, ending="an error"),
        leaving(draw, ending="an error"),
        leaving(draw, "numpy", ending="an interrupt"),
        leaving(draw, "random", ending="an exit"),
        leaving(draw, "torch", ending="a StopIteration"),
    ]


@readable
def about_nested_isolation(
    case: Case, seen: Result, expected: Result
) -> str | None:
    places = ("in the outer block", "in the inner block", "after the inner one")
    for place, now, wanted in zip(
        places, seen.data["drawn"], expected.data["drawn"], strict=True
    ):
        if now != wanted:
            return f"With two blocks nested, the draws {place} are others."
    if seen.data["changed"]:
        return "After two nested blocks a global state is another."
    return None


@check(
    "make_loader",
    probe=probes.nested_isolated,
    rule=about_nested_isolation,
    says="blocks of `isolated` may be nested",
)
def nested_isolation(draw: Draw) -> list[Case]:
    return [
        {"seeds": [a_seed(draw), a_seed(draw)]},
        {"seeds": [0, LARGEST]},
        {"seeds": [a_seed(draw)] * 2},
    ]


@check(
    "make_loader",
    probe=probes.after_isolated,
    rule=about_isolation,
    says="what counts is the state in which the block is entered, not that in "
    "which `isolated(seed)` was called",
)
def entered_later(draw: Draw) -> list[Case]:
    return [
        leaving(draw, *ALL, draws_between=draw.integer(1, 5)),
        leaving(draw, draws_between=2),
    ]


@readable
def about_isolated_gpus(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if seen.data["after"] != expected.data["after"]:
        return "After the block a GPU's generator is in another state."
    if seen.data["inside"] != expected.data["inside"]:
        return "Inside, not every GPU's generator has been seeded with `seed`."
    for one in differing(seen.data["drawn"], expected.data["drawn"]):
        return f"Inside, where there are GPUs, {NAMES[one]} is not seeded."
    for one in seen.data["changed"]:
        return f"Where there are GPUs, the state of {NAMES[one]} is another."
    return None


@check(
    "make_loader",
    probe=probes.isolated_on_gpus,
    rule=about_isolated_gpus,
    says="the generators of GPUs are seeded inside `isolated`, and afterwards as "
    "before (a stand-in takes the place of the GPUs)",
)
def gpus_come_back(draw: Draw) -> list[Case]:
    return [
        {
            "seed": a_seed(draw),
            "other_seed": a_seed(draw),
            "states": [draw.integer(1, 10**9) for _ in range(count)],
            "ending": ending,
        }
        for count, ending in ((1, None), (3, "an error"))
    ]
