"""What is checked in chapter 12: checkpoints."""

import itertools
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

from . import probes

NAN = float("nan")
INF = float("inf")


# save_checkpoint, load_checkpoint


def saving(draw: Draw, **options: Any) -> Case:
    """A small model's weights, and where its checkpoint goes."""
    shapes = ((8, 4), (8,), (8,), (8,))
    first = draw.integer(1, 100)
    return {
        "values": [draw.normal(*shape) for shape in shapes],
        "dtype": "float32",
        "lr": 0.01 * draw.integer(1, 9),
        "lr_in_a_tensor": False,
        "steps": [first, first + draw.integer(1, 100)],
        "metric": draw.integer(1, 10**6) / 999_983,
        "metric_type": "float",
        "elsewhere": False,
        "name": f"last{draw.integer(0, 100)}.pt",
        "as_path": True,
        **options,
    }


def reads_by_default(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("default_load_reads_it") is not True:
        return (
            "`torch.load` with its defaults cannot read your file, or does not "
            "find a dict in it."
        )
    return None


def comes_back(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    for name, sentence in (
        ("keys", "The dict that you load has not just the four keys."),
        ("keys_in_file", "The file's dict has not just the four keys."),
        ("types", "`step` is not an int, or `metric` not a float."),
        ("step", "`step` comes back wrong."),
        ("metric", "`metric` comes back as another number."),
        ("model", "The model's state dict comes back changed."),
        ("optimizer", "The optimizer's state dict comes back changed."),
        ("same_folder", "Your save left another current folder behind."),
        (
            "objects_as_before",
            "Your save changed the model or the optimizer: mode, weights, "
            "gradients or moments.",
        ),
        (
            "model_not_moved",
            "Your save moved the caller's model to a device or another dtype.",
        ),
    ):
        if not same(data.get(name), expected.data[name]):
            return sentence
    return None


@check(
    "save_checkpoint",
    probe=probes.round_trip,
    weight=2,
    rule=comes_back,
    also=[reads_by_default, leaves_rng_alone, leaves_state_alone],
    says="another process reads the checkpoint, by `str`, `Path` and relative "
    "path: four keys and no more",
    corners=[
        "saving changes nothing about the model and the optimizer, and draws "
        "no random numbers; no setting of PyTorch is changed",
        "a model in float64 or bfloat16, one with a tied weight or an empty tensor",
        "`step` is an `int` already, also a large one",
    ],
)
def reads_back(draw: Draw) -> list[Case]:
    return [
        saving(draw, elsewhere=True, dtype="float64"),
        # a part of the model has the name by which a wrapper holds all of it
        saving(draw, as_path=False, second="module", tied=True),
        saving(
            draw,
            as_path=False,
            relative=True,
            dtype="bfloat16",
            # no float has it
            steps=[1, 2**53 + 2 * draw.integer(1, 100) + 1],
        ),
    ]


@check(
    "save_checkpoint",
    probe=probes.round_trip,
    rule=comes_back,
    also=[reads_by_default],
    says="a metric from NumPy or a tensor is stored as a plain float, to the "
    "last digit",
    corners=["a whole number, too; NaN and infinity stay what they are"],
)
def metric_becomes_plain(draw: Draw) -> list[Case]:
    return [
        saving(draw, metric_type="float64"),
        saving(draw, metric_type="float32"),
        saving(draw, metric_type="tensor"),
        saving(draw, metric_type="tensor of float64"),
        saving(draw, metric_type="int64", metric=draw.integer(1, 100)),
        saving(draw, metric_type="tensor", metric=draw.integer(1, 100)),
        saving(draw, metric=NAN),
        saving(draw, metric_type="float32", metric=-INF),
    ]


def goes_into_the_file(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("open") is not True:
        return "You closed the file that the caller opened."
    if data.get("header") is not True:
        return "What stood in the open file before its position is gone."
    if data.get("at_the_end") is not True:
        return (
            "After your save the open file is not at the end of what it wrote."
        )
    if not same(data.get("loaded"), expected.data["loaded"]):
        return "What comes back from an open file is wrong."
    return None


@check(
    "save_checkpoint",
    probe=probes.through_a_buffer,
    rule=goes_into_the_file,
    says="an open binary file instead of a path, from its position on; it "
    "stays open",
    corners=[
        "a `BytesIO`, or what `open` and `tempfile` give; it is left at the "
        "end of what was written",
        "a few bytes behind its position may be written over or cut off",
    ],
)
def into_a_buffer(draw: Draw) -> list[Case]:
    return [
        saving(draw, kind="BytesIO", header=0),
        saving(draw, kind="BytesIO", header=draw.integer(3, 40)),
        saving(
            draw,
            kind="BytesIO",
            header=draw.integer(3, 40),
            after=draw.integer(3, 40),
        ),
        saving(draw, kind="file", header=0),
        saving(draw, kind="temporary", header=draw.integer(3, 40)),
        saving(draw, kind="named", header=0),
    ]


def what_is_found(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    found, wanted = data.get("found"), expected.data["found"]
    if data.get("torn") and case.get("first"):
        return "A first save that is interrupted leaves half a checkpoint."
    if found == wanted:
        return None
    if not isinstance(found, list) or len(found) != len(wanted):
        return "Your save wrote into the checkpoint that was there."
    if found[-1] is None:
        return "After a save that nothing interrupted, nothing can be read."
    if None in found and not case.get("first"):
        return (
            "After an interrupted save neither the old checkpoint nor the new "
            "one can be read."
        )
    return "What is read after a save is not what it should be."


def says_that_it_failed(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    told, wanted = data.get("told"), expected.data["told"]
    if told != wanted:
        if isinstance(told, list) and told[:-1] == wanted[:-1]:
            return (
                "Where no file can be renamed to the path, your save raised "
                "nothing: it hid that, or it writes there without renaming."
            )
        return "A save that failed while writing returned as if it had worked."
    found = data.get("found")
    if not isinstance(found, list) or found[-1:] != expected.data["found"][-1:]:
        return "A save that nothing interrupted cannot be read, or wrongly."
    return None


def fails_whole(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("old_stays") is not True:
        return (
            "When the new file cannot be renamed, the checkpoint that was there "
            "does not stay as it was."
        )
    if data.get("files") != expected.data["files"]:
        return (
            "A save that failed left a file behind, which is still there after "
            "the next save."
        )
    return says_that_it_failed(case, seen, expected)


@check(
    "save_checkpoint",
    probe=probes.cut_off,
    weight=3,
    rule=what_is_found,
    says="a write cut off at any size, by a full disk or a kill, loses nothing",
    corners=[
        "if there was no old one, the path holds the new one or does not exist"
    ],
)
def interrupted_write(draw: Draw) -> list[Case]:
    some = draw.integer(30, 70) / 100
    full = [(0.0, False), (some, False), (1, False)]
    killed = [(some, True), (0.97, True)]
    # The last is written to its end: a save that never saves keeps the old too.
    return [
        saving(draw, limits=[*full, *killed, (4.0, False)]),
        saving(draw, limits=[*full[1:], *killed[1:], (4.0, False)], first=True),
    ]


@check(
    "save_checkpoint",
    probe=probes.cut_off,
    rule=says_that_it_failed,
    says="a save that fails tells its caller",
)
def failure_is_told(draw: Draw) -> list[Case]:
    return [draw.once(nearly_whole)]


def nearly_whole(draw: Draw) -> Case:
    """A save that fails when most of the file has been written."""
    limits = [(0.9, False), (4.0, False)]
    return saving(draw, limits=limits, as_path=False)


@check(
    "save_checkpoint",
    probe=probes.cut_off,
    weight=3,
    rule=fails_whole,
    says="a rename that fails: the old checkpoint stays, the caller is told, and "
    "after the next save no other file is there",
)
def rename_fails(draw: Draw) -> list[Case]:
    return [
        saving(draw, limits=[(0.5, False), (4.0, False)]),
        draw.once(nearly_whole),
    ]


def nothing_lost(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("lost") != 0:
        return (
            "Between two of your operations on files there is a moment in which "
            "no whole checkpoint lies at the path."
        )
    if data.get("written_into") is not False:
        return "Your save wrote into the checkpoint that was there."
    if data.get("whole_when_renamed") is not True:
        return (
            "When you rename the new file, not all of it has been written yet."
        )
    if data.get("found") != expected.data["found"]:
        return "What is read after a save is not what it should be."
    return None


@check(
    "save_checkpoint",
    probe=probes.killed_in_between,
    weight=2,
    rule=nothing_lost,
    says="killed between any two operations on files, nothing is lost",
    corners=[
        "the existing file is never written into: other names (hard links) of "
        "it keep the old checkpoint"
    ],
)
def killed_between_operations(draw: Draw) -> list[Case]:
    return [saving(draw, most_operations=12)]


def arrives_whole(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("how") != "returned":
        return (
            "With the temporary folder on another file system your save fails."
        )
    if data.get("written_into") is not False:
        return (
            "With the temporary folder on another file system your save wrote "
            "into the checkpoint that was there."
        )
    if data.get("found") != expected.data["found"]:
        return "What is read after a save is not what it should be."
    return None


@check(
    "save_checkpoint",
    probe=probes.on_its_own_file_system,
    rule=arrives_whole,
    says="the checkpoint's folder is a file system of its own: from the "
    "temporary folder a file can only be copied",
)
def own_file_system(draw: Draw) -> list[Case]:
    return [
        saving(draw),
        saving(draw, as_path=False),
        # of a name alone the folder is "", which stands for another in `tempfile`
        saving(draw, as_path=False, relative=True),
    ]


def written_beside(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("written_into") is not False:
        return (
            "A checkpoint with a name that an unfinished file may have "
            "is written into directly."
        )
    if data.get("found") != expected.data["found"]:
        return "What is read after a save is not what it should be."
    return None


@check(
    "save_checkpoint",
    probe=probes.under_the_other_name,
    rule=written_beside,
    says="a checkpoint may have a name like that of your unfinished file",
)
def under_any_name(draw: Draw) -> list[Case]:
    return [saving(draw), saving(draw, as_path=False)]


def only_the_checkpoint(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("files") != expected.data["files"]:
        return "After saves that worked there are other files of yours."
    if data.get("others") is not True:
        return "Your save changed, moved or removed files that are not its own."
    if data.get("longer") is not False:
        return "What a killed save left stays behind the end of the next one."
    if data.get("found") != expected.data["found"]:
        return "After a killed save, the next does not leave what it should."
    return None


@check(
    "save_checkpoint",
    probe=probes.what_is_left,
    rule=only_the_checkpoint,
    says="no file is left over, and one left by a killed save does no harm",
    corners=[
        "files of others stay, except one that has the very name of your "
        "unfinished file"
    ],
)
def leaves_only_the_checkpoint(draw: Draw) -> list[Case]:
    # what is left behind is shorter than the next checkpoint, or longer
    return [
        saving(draw, left=[700, 12_000]),
        saving(draw, left=[12_000], as_path=False),
    ]


@check(
    "save_checkpoint",
    probe=probes.load_with_a_path_in_it,
    weight=2,
    rule=same_form("model"),
    raises=("UnpicklingError",),
    says="a file that holds more than plain data raises the "
    "`pickle.UnpicklingError` of `torch.load`",
    corners=[
        "one with a `Path`, a `defaultdict`, a NumPy array or a NumPy scalar in it"
    ],
)
def refuses_objects(draw: Draw) -> list[Case]:
    return [
        saving(draw, holds=None),
        saving(draw, holds="path"),
        saving(draw, holds="array"),
        saving(draw, holds="defaultdict"),
        saving(draw, holds="scalar"),
        saving(draw, holds="this system's path"),
    ]


@check(
    "save_checkpoint",
    probe=probes.elsewhere,
    weight=2,
    rtol=0,
    atol=0,
    says="tensors come to the device that was asked for, by default the CPU, "
    "also from a GPU's file",
    corners=[
        '`"meta"` is such a device, too; a learning rate may be a tensor',
        "by a path or from an open file",
    ],
)
def to_the_asked_device(draw: Draw) -> list[Case]:
    return [
        saving(draw, map_location=None, from_gpu=True),
        saving(draw, map_location="cpu", from_gpu=True),
        saving(draw, map_location="meta", from_gpu=False, lr_in_a_tensor=True),
        saving(draw, map_location=None, from_gpu=True, opened=True),
        saving(draw, map_location="meta", from_gpu=False, opened=True),
    ]


# train


def running(
    draw: Draw,
    scheduler: str,
    *stops: int,
    num_epochs: int = 2,
    num_samples: int = 7,
    batch_size: int = 3,
    **options: Any,
) -> Case:
    """A run, by default of 3 steps per epoch; `stops` are the steps after which it
    is killed. It is short, for most answers write a file after each step."""
    return {
        "x": draw.normal(num_samples, 3),
        "y": draw.normal(num_samples, 1),
        "batch_size": batch_size,
        "num_epochs": num_epochs,
        "width": draw.integer(3, 6),
        "lr": 0.02 * draw.integer(2, 6),
        "scale": 2.0 ** draw.integer(5, 13),
        "scheduler": scheduler,
        "seed": draw.integer(0, 10_000),
        "stops": list(stops),
        "forks": False,  # what is kept in Python alone is gone in a new process
        **options,
    }


def in_float64(case: Case) -> Case:
    return {**case, "x": case["x"].double(), "y": case["y"].double()}


def interrupted_once(draw: Draw, name: str) -> Case:
    """A run that an exception of this name ends in the middle of a step, after
    one that ends no epoch."""
    return running(
        draw, "StepLR", draw.choice((1, 3)), batch_size=4, interrupted=name
    )


def killed_once(draw: Draw) -> Case:
    """A run that is killed after a step that ends no epoch."""
    return running(
        draw,
        "StepLR",
        draw.choice((3, 5)),
        num_epochs=3,
        batch_size=4,
        forks=True,
    )


def as_never_stopped(**sentences: str) -> Rule:
    """Rule: what is recorded under these names, from where the last process began,
    equals bit for bit that of the reference, which is as if it was never stopped
    (tests/test_answer_bank.py)."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        data = seen.data if isinstance(seen.data, dict) else {}
        for name, sentence in sentences.items():
            if not same(data.get(name), expected.data[name]):
                return sentence
        return None

    return rule


def same(one: Any, other: Any) -> bool:
    """Equality of every bit; a NaN equals a NaN."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(other, dict):
        return one.keys() == other.keys() and all(
            same(one[key], other[key]) for key in other
        )
    if isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)


RATES = as_never_stopped(
    rates="The learning rates after the restart are not those of the run that was "
    "never stopped."
)
SCALES = as_never_stopped(
    scales="The scaler's scale after the restart is not that of the run that was "
    "never stopped."
)


def in_turn(*rules: Rule) -> Rule:
    """Rule: the first complaint of these."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        complaints = (one(case, seen, expected) for one in rules)
        return next((one for one in complaints if one), None)

    return rule


LOSSES_AND_WEIGHTS = {
    "kinds": "The losses are not returned as a list of floats.",
    "losses": "The losses are not bitwise those of the run that was never stopped, "
    "or not all of them.",
    "weights": "The weights are not bitwise those of the run that was never "
    "stopped.",
}

MODES = "Your `train` returns the model in another mode than `train_in_one_go`."


@check(
    "train",
    probe=probes.resumed,
    rule=as_never_stopped(
        **LOSSES_AND_WEIGHTS,
        draws_after="After your `train` the next random numbers are others than "
        "after `train_in_one_go`.",
        modes=MODES,
    ),
    also=[leaves_state_alone],
    says="a run that nothing interrupts is as without checkpoints, and so is "
    "what is drawn after it",
    corners=[
        "the model comes back in training mode; no setting of PyTorch is yours "
        "to change"
    ],
)
def uninterrupted(draw: Draw) -> list[Case]:
    return [running(draw, "OneCycleLR", batch_size=4)]


@check(
    "train",
    probe=probes.resumed,
    weight=3,
    rule=as_never_stopped(**LOSSES_AND_WEIGHTS),
    says="killed after step k for several k: all losses, as floats, and "
    "weights and buffers, bit for bit",
    corners=[
        "the new process has other seeds",
        "a loss may be NaN or infinite, a part of the model frozen, and a buffer a "
        "new tensor after each step",
    ],
)
def losses_and_weights(draw: Draw) -> list[Case]:
    return [
        running(draw, "OneCycleLR", 1),
        running(draw, "CosineAnnealingLR", 3, batch_size=4, loss=NAN),
        running(
            draw,
            "MultiStepLR",
            2,
            batch_size=4,
            loss=INF,
            stays=True,
            frozen=True,
        ),
        draw.once(killed_once),
    ]


@check(
    "train",
    probe=probes.resumed,
    rule=as_never_stopped(
        batches="With another number of epochs, samples or a batch, the batches "
        "after the restart are not those of `train_in_one_go`.",
        **LOSSES_AND_WEIGHTS,
    ),
    says="any number of epochs and samples, any batch size",
    corners=[
        "those of `job`, as are the parts: a job may bring others, a model in "
        "float64 or a scaler with `enabled=False`; in no case does the model share "
        "weights",
        "the optimizer is one that its `load_state_dict` brings back to the "
        "last bit, so not NAdam in float64 (section 5)",
    ],
)
def other_sizes(draw: Draw) -> list[Case]:
    return [
        # a scaler that scales nothing
        running(
            draw,
            "StepLR",
            3,
            num_epochs=5,
            num_samples=5,
            batch_size=8,
            scale=None,
        ),
        # more samples than one byte has numbers, and a single epoch
        running(
            draw, "StepLR", 1, num_epochs=1, num_samples=300, batch_size=256
        ),
        in_float64(
            running(
                draw,
                "StepLR",
                5,  # the third epoch, also where one is taken to have 3 steps
                num_epochs=3,
                num_samples=2,
                batch_size=1,
            )
        ),
    ]


@check(
    "train",
    probe=probes.resumed,
    rule=as_never_stopped(**LOSSES_AND_WEIGHTS),
    says="interrupted by an exception in the middle of a step, as at Ctrl-C, "
    "and called again: bit for bit",
)
def interrupted_step(draw: Draw) -> list[Case]:
    return [
        draw.once(interrupted_once, name) for name in ("Interrupted", "Failed")
    ]


def lets_it_through(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("survived"):
        return (
            "An exception that is raised in `job.step` does not come out of your "
            "`train` as it is: who called it does not see what happened."
        )
    return as_never_stopped(**LOSSES_AND_WEIGHTS)(case, seen, expected)


@check(
    "train",
    probe=probes.resumed,
    weight=2,
    rule=lets_it_through,
    says="an exception of `job.step` comes out of `train`",
)
def exceptions_come_out(draw: Draw) -> list[Case]:
    return [
        draw.once(interrupted_once, name) for name in ("Failed", "Interrupted")
    ]


@check(
    "train",
    probe=probes.resumed,
    weight=2,
    rule=RATES,
    says="the learning rates go on, for any scheduler of "
    "`torch.optim.lr_scheduler`",
)
def learning_rates(draw: Draw) -> list[Case]:
    return [
        draw.once(killed_once),
        *(
            # two steps are left: the optimizer brings the next one's rate
            running(draw, name, draw.integer(low, 5))
            for name, low in (
                ("SequentialLR", 3),
                ("CosineAnnealingWarmRestarts", 2),
                ("ReduceLROnPlateau", 3),
            )
        ),
    ]


@check(
    "train",
    probe=probes.resumed,
    rule=in_turn(
        SCALES,
        as_never_stopped(
            scaler="The scaler's state at the end is not that of the run that was never "
            "stopped.",
        ),
    ),
    says="the scaler goes on with its scale and its growth counter",
)
def loss_scale(draw: Draw) -> list[Case]:
    return [draw.once(killed_once)]


GENERATORS = ("`np.random`", "`random`", "`torch`")
"""What a step draws from, in the order in which `Job.step` writes it down."""


def draws_go_on(case: Case, seen: Result, expected: Result) -> str | None:
    drawn, right = seen.data["draws"], expected.data["draws"]
    both = zip(seen.data["batches"], expected.data["batches"], strict=False)
    if any(one != other for one, other in both):
        return "After the restart the samples come in another order."
    if same(drawn, right):
        return None
    steps = [
        step for step in zip(drawn, right, strict=False) if step[0] != step[1]
    ]
    if not steps:
        return "After the restart your run draws in another number of steps."
    others = [
        name
        for name, one, other in zip(GENERATORS, *steps[0], strict=True)
        if not same(one, other)
    ]
    return (
        f"After the restart {' and '.join(others)} "
        f"{'give' if len(others) > 1 else 'gives'} other random numbers than in the "
        "run that was never stopped."
    )


@check(
    "train",
    probe=probes.resumed,
    weight=2,
    rule=in_turn(
        draws_go_on,
        as_never_stopped(
            draws_after="After the run the next random numbers are others than in "
            "the run that was never stopped."
        ),
    ),
    says="the order of the samples and all random draws go on, also within an "
    "epoch, and after `train` has returned",
    corners=[
        "from `torch`, `np.random` and `random`, also by functions that draw pairs"
    ],
)
def order_and_draws(draw: Draw) -> list[Case]:
    return [
        # within an epoch, and after an odd number of steps: `gauss` draws pairs
        running(
            draw,
            "StepLR",
            draw.choice((1, 3)),
            batch_size=4,
            pairs=True,
        ),
        running(draw, "StepLR", 3, num_epochs=1, pairs=True),
    ]


def runs_only_the_rest(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("survived"):
        return "Your run ended before its steps were done."
    steps, wanted = data.get("steps"), expected.data["steps"]
    if steps != wanted:
        more = isinstance(steps, int) and steps > wanted
        return (
            "After the restart your run makes "
            f"{'more' if more else 'fewer'} steps than are left."
        )
    if wanted == 0 and len(data["losses"]) != len(expected.data["losses"]):
        return "A finished run, called again, returns not all of its losses."
    if wanted == 0 and not same(data["weights"], expected.data["weights"]):
        return (
            "A finished run, called again, returns other weights than "
            "`train_in_one_go`."
        )
    return as_never_stopped(kinds=LOSSES_AND_WEIGHTS["kinds"])(
        case, seen, expected
    )


def and_returns_to_training(
    case: Case, seen: Result, expected: Result
) -> str | None:
    found = runs_only_the_rest(case, seen, expected)
    return found or as_never_stopped(modes=MODES)(case, seen, expected)


@check(
    "train",
    probe=probes.resumed,
    weight=2,
    rule=and_returns_to_training,
    says="only the steps that are left are run, none if the run is finished",
    corners=[
        "a finished run returns the model, in training mode as it was made, and "
        "the losses"
    ],
)
def only_the_rest(draw: Draw) -> list[Case]:
    return [
        running(draw, "StepLR", 3, batch_size=4, finished_raise=True),
        running(draw, "StepLR", 4, batch_size=4, finished_raise=True),
    ]


def goes_on(case: Case, seen: Result, expected: Result) -> str | None:
    found = runs_only_the_rest(case, seen, expected)
    return found or as_never_stopped(**LOSSES_AND_WEIGHTS)(case, seen, expected)


@check(
    "train",
    probe=probes.resumed,
    rule=goes_on,
    says="a run that is killed twice",
    corners=["also in the first step after it was called again"],
)
def killed_twice(draw: Draw) -> list[Case]:
    first = draw.integer(1, 4)
    return [running(draw, "LambdaLR", first, first, first + 2)]


def follows_the_file(case: Case, seen: Result, expected: Result) -> str | None:
    if reads_by_default(case, seen, expected):
        return (
            "`torch.load` with its defaults cannot read your checkpoint: it is gone, "
            "or holds something that is not plain data."
        )
    if seen.data["steps"] > expected.data["steps"]:
        return (
            "Your run does not go on from the file at `path`, which was moved there: it "
            "makes more steps than are left."
        )
    # what went wrong in another way leads to other weights, too
    earlier = in_turn(draws_go_on, RATES, SCALES)(case, seen, expected)
    if earlier:
        return earlier
    if not same(seen.data["weights"], expected.data["weights"]):
        return (
            "Where weights and moments were changed in the checkpoint, the weights "
            "in the end are not those of a run that goes on from them."
        )
    return None


@check(
    "train",
    probe=probes.resumed,
    weight=2,
    rule=follows_the_file,
    says="everything comes from the file, which `torch.load` reads with its "
    "defaults",
    corners=[
        "it may have been moved in the meantime",
        "weights and moments that somebody changed there show in the result",
    ],
)
def from_the_file(draw: Draw) -> list[Case]:
    factor = 1 + draw.integer(1, 9) / 16
    return [
        running(draw, "StepLR", 3, batch_size=4, perturb=factor, forks=True)
    ]


# strip_prefix


def keyed(
    draw: Draw,
    *keys: str,
    prefix: str | None = "module.",
    plain: bool = False,
    dtype: str = "float32",
    form: str = "",
    odd: bool = False,
    learns: bool = False,
    shuffled: bool = True,
) -> Case:
    """A state dict with these keys; `form` says what is special about them."""
    order = draw.permutation(len(keys)).tolist() if shuffled else range(9)
    in_order = [keys[place] for place in order[: len(keys)]]
    return {
        "state_dict": {key: draw.normal(2, std=100) for key in in_order},
        "prefix": prefix,
        "plain_dict": plain,
        "dtype": dtype,
        "form": form,
        "odd": odd,
        "learns": learns,
    }


def keys_and_values(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("keys") != expected.data["keys"]:
        prefix = "module." if case["prefix"] is None else case["prefix"]
        form = (
            case["form"] or f"the prefix `{prefix}` at the start of some keys"
        )
        return f"The keys are wrong where there is {form}."
    values, wanted = data.get("values"), expected.data["values"]
    if not same(values, wanted):
        return (
            "The keys are right, but not the values under them: hand on the "
            "tensors as they are."
        )
    return None


def hands_on_the_tensors(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    for name, sentence in (
        ("same_keys", "Your caller's dict has other keys than before."),
        ("same_metadata", "The `_metadata` of your caller's dict changed."),
        ("new", "You return the caller's own dict; make a new one."),
        ("learns", "A tensor of your caller's asks no longer for gradients."),
    ):
        if data.get(name) is not True:
            return sentence
    if expected.data["types"] and not data.get("types"):
        return "You return an empty dict where your caller's holds tensors."
    if data.get("types") != expected.data["types"]:
        return "The values are not plain tensors any more."
    if not same(data.get("given_after"), expected.data["given_after"]):
        return "A tensor in your caller's dict changed."
    return None


@check(
    "strip_prefix",
    probe=probes.stripped,
    weight=2,
    rule=keys_and_values,
    says="all keys, some or none have the prefix",
    corners=["tensors of any shape, memory and dtype"],
)
def all_some_or_none(draw: Draw) -> list[Case]:
    return [
        keyed(draw, "module.fc.weight", "module.fc.bias", "module.bn.weight"),
        keyed(draw, "module.fc.weight", "module.fc.bias", prefix=None),
        keyed(draw, "fc.weight", "fc.bias", "bn.running_mean"),
        keyed(draw, "module.fc.weight", "head.bias", "module.bn.bias", "tail"),
        keyed(draw, "module.fc.weight", "head.bias", prefix=None, plain=True),
        keyed(draw),
        keyed(
            draw,
            "n_averaged",
            "module.fc.weight",
            form="a key `n_averaged` beside those with the prefix",
        ),
        keyed(draw, "module.a.b", "c", dtype="float64"),
        keyed(draw, "module.num_batches_tracked", "c", dtype="int64"),
        keyed(draw, "module.mask", "c", dtype="bool"),
        keyed(draw, "module.a", "module.b", "c", dtype="bfloat16", odd=True),
        keyed(draw, "module.a", "b", dtype="float16"),
    ]


@check(
    "strip_prefix",
    probe=probes.stripped,
    weight=2,
    rule=keys_and_values,
    says="what stands further inside, or a second time, stays",
)
def only_the_first(draw: Draw) -> list[Case]:
    return [
        keyed(draw, "module.block.module.weight", "module.fc.bias"),
        keyed(draw, "block.module.weight", "module.fc.bias"),
        keyed(
            draw,
            "module._orig_mod.fc.weight",
            "_orig_mod.bias",
            form="another wrapper's prefix, which nobody asked to take off",
        ),
        keyed(draw, "module.module.fc.weight", "module.module.fc.bias"),
        # whichever is renamed first: its new name is the other's old one
        *(
            keyed(
                draw,
                *order,
                shuffled=False,
                form="a key whose new name is the old one of another key",
            )
            for name in ("fc.weight", "weight")
            for order in itertools.permutations(
                (f"module.module.{name}", f"module.{name}")
            )
        ),
    ]


@check(
    "strip_prefix",
    probe=probes.stripped,
    weight=2,
    rule=keys_and_values,
    says="names that only look like the prefix stay",
    corners=["capitals count"],
)
def false_friends(draw: Draw) -> list[Case]:
    return [
        keyed(
            draw,
            "module_list.0.weight",
            "modules.fc.weight",
            "module",
            form="no prefix, but names that look like `module.`",
        ),
        keyed(draw, "module.model.fc.weight", "module.layer1.weight"),
        keyed(draw, "module.module_list.0.weight", "modular.weight"),
        keyed(draw, "module.mod.weight", "module.odule.weight"),
        keyed(
            draw,
            "Module.fc.weight",
            "MODULE.fc.bias",
            "module.fc.scale",
            form="a key in capitals, which is another name",
        ),
    ]


@check(
    "strip_prefix",
    probe=probes.stripped,
    weight=2,
    rule=keys_and_values,
    says="other prefixes, such as `_orig_mod.`, `ema_` or the empty one",
)
def other_prefixes(draw: Draw) -> list[Case]:
    return [
        keyed(
            draw, "_orig_mod.fc.weight", "_orig_mod.bias", prefix="_orig_mod."
        ),
        keyed(
            draw,
            "_orig_mod.encoder._orig_mod.weight",
            "encoder._orig_mod.bias",
            prefix="_orig_mod.",
        ),
        keyed(
            draw,
            "module._orig_mod.fc.weight",
            "_orig_mod.module.fc.bias",
            prefix="_orig_mod.",
        ),
        keyed(draw, "model.fc.weight", "module.fc.bias", prefix="model."),
        keyed(
            draw,
            "module._orig_mod.fc.weight",
            "module.fc.bias",
            prefix="module._orig_mod.",
        ),
        keyed(
            draw,
            "module.fc.weight",
            ".bias",
            prefix="",
            form="a prefix that is the empty string",
        ),
        keyed(
            draw,
            "ema_fc.weight",
            "ema_.bias",
            "head.ema_weight",
            "ema.bias",
            prefix="ema_",
            form="a prefix that ends without a dot",
        ),
        keyed(
            draw,
            "old_scale",
            "old_",
            prefix="old_",
            form="a key that is the prefix and nothing more",
        ),
        keyed(
            draw,
            "a+b.fc.weight",
            "aab.fc.weight",
            prefix="a+b.",
            form="a prefix with signs that mean something to `re`",
        ),
        keyed(
            draw,
            "..fc.weight",
            ".bias",
            prefix=".",
            form="a prefix that is one dot",
        ),
    ]


@check(
    "strip_prefix",
    probe=probes.callers_dict,
    weight=2,
    rule=hands_on_the_tensors,
    also=[leaves_rng_alone, leaves_state_alone, leaves_inputs_alone],
    says="a new dict of tensors, of the same dtype; the caller's keeps keys "
    "and `_metadata`",
    corners=[
        "the new dict needs no `_metadata`",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def leaves_the_dict_alone(draw: Draw) -> list[Case]:
    return [
        keyed(draw, "module.fc.weight", "module.bn.bias"),
        keyed(draw, "module.fc.weight", "head.bias", learns=True),
        keyed(draw, "fc.weight", "head.bias"),
        keyed(draw, "fc.weight", "head.bias", prefix=""),
    ]


@check(
    "strip_prefix",
    probe=probes.wrapped_model,
    says="the result loads strictly into the model without its wrapper",
)
def loads_strictly(draw: Draw) -> list[Case]:
    return [
        {
            "wrapper": wrapper,
            "weight": draw.normal(4, 3),
            "mean": draw.normal(4),
            "x": draw.normal(5, 3),
        }
        for wrapper in ("DataParallel", "Wrapper", "AveragedInDataParallel")
    ]


# load_across_versions

COUNTER = "num_batches_tracked"


def versions(draw: Draw, **options: Any) -> Case:
    return {
        "source": "net",
        "target": "net",
        "momentum": 0.1,
        "without": [],
        "with_extra": [],
        "prefix": "",
        "cut": "",
        "folded": "",
        "squeezed": "",
        "repeated": "",
        "form": "",
        "count": 0,
        "metadata": True,
        "batches_seen": draw.integer(1, 3),
        "target_seen": draw.integer(3, 5),
        "shift": draw.uniform(1, low=0.1, high=0.9),
        "x": draw.normal(6, 3),
        **options,
    }


# the file's counters are 0: whether they are loaded is the business of other checks
UNCOUNTED = {"batches_seen": 0}
REFUSED = ("RuntimeError", "KeyError", "ValueError")
LOADED = (
    "list of counters set to 0",
    "list of counters left out",
    "state",
    "out",
)


def refuses_what_does_not_fit(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    refused = data.get("refused")
    if "refused" not in expected.data:
        if refused is not None:
            return "You refuse a file in which everything fits."
        if all(same(data.get(one), expected.data[one]) for one in LOADED):
            return None
        return "A file in which everything fits is not loaded as it stands."
    if refused is None:
        return f"You accept a file {case['form']}: it must raise."
    if not set(refused) & set(REFUSED):
        return (
            f"You refuse a file {case['form']}, but by another error than "
            "RuntimeError, KeyError or ValueError."
        )
    return None


def leaves_the_rest_alone(
    case: Case, seen: Result, expected: Result
) -> str | None:
    data = seen.data if isinstance(seen.data, dict) else {}
    if data.get("types") != expected.data["types"]:
        return "What you return is not two lists."
    for name, sentence in (
        ("callers_keys", "The caller's state dict has other keys than before."),
        ("callers_values", "A tensor in the caller's state dict changed."),
        ("callers_metadata", "The caller's `_metadata` changed."),
        ("same_parameters", "The model's parameters are other objects now."),
        (
            "same_settings",
            "Your loading changed more of the model than its weights: its mode, "
            "its gradients or what of it is trainable.",
        ),
    ):
        if data.get(name) is not True:
            return sentence
    return None


@check(
    "load_across_versions",
    probe=probes.loaded_across,
    on=LOADED,
    rtol=0,
    atol=0,
    weight=2,
    says="a file that fits is loaded, counters included",
    corners=[
        "a weight of the model may have two names, and a buffer that is no counter "
        "may have `persistent=False`; no layer stands at two places, none is `None`"
    ],
)
def files_that_fit(draw: Draw) -> list[Case]:
    return [
        versions(draw),
        versions(draw, metadata=False),
        versions(draw, source="frozen", target="frozen"),
        versions(draw, source="shared", target="shared"),
        versions(draw, count=2**40 + draw.integer(1, 1000)),
    ]


@check(
    "load_across_versions",
    probe=probes.loaded_across,
    weight=3,
    on=(*LOADED, "state_after_a_batch"),
    rtol=0,
    atol=0,
    says="a missing counter becomes 0, an int64 tensor without dimensions, "
    "with and without `_metadata`",
)
def missing_counters(draw: Draw) -> list[Case]:
    return [
        versions(draw, without=[COUNTER]),
        versions(draw, without=[COUNTER], metadata=False),
        versions(draw, without=["1." + COUNTER]),
        # the other one is in the file, and is 0
        versions(draw, without=["3." + COUNTER], metadata=False, **UNCOUNTED),
        versions(draw, without=[COUNTER], momentum=None),
        versions(draw, source="frozen", metadata=False),
        versions(
            draw,
            source="other counters",
            target="other counters",
            without=[COUNTER],
        ),
    ]


@check(
    "load_across_versions",
    probe=probes.loaded_across,
    weight=2,
    on=LOADED,
    rtol=0,
    atol=0,
    says="a counter that the model has no place for is left out",
)
def left_over_counters(draw: Draw) -> list[Case]:
    return [
        versions(draw, target="frozen"),
        versions(draw, target="half frozen", **UNCOUNTED),
        versions(
            draw,
            target="half frozen",
            without=["3." + COUNTER],
            metadata=False,
        ),
        versions(
            draw,
            with_extra=["7.0." + COUNTER, "7.1." + COUNTER],
            **UNCOUNTED,
        ),
    ]


@check(
    "load_across_versions",
    probe=probes.loaded_across,
    on=LOADED,
    rtol=0,
    atol=0,
    says="a model that is a BatchNorm layer itself",
    corners=["there the counter is `num_batches_tracked` alone"],
)
def counter_without_a_dot(draw: Draw) -> list[Case]:
    alone = {"source": "norm alone", "target": "norm alone"}
    return [
        versions(draw, **alone, **UNCOUNTED),
        versions(draw, **alone, without=[COUNTER]),
        versions(draw, **alone, without=[COUNTER], metadata=False),
        # the file's has no place in a model without one
        versions(draw, source="norm alone", target="frozen alone", **UNCOUNTED),
    ]


@check(
    "load_across_versions",
    probe=probes.refused_or_loaded,
    weight=3,
    rule=refuses_what_does_not_fit,
    says="anything else missing, left over or of another shape raises a "
    "`RuntimeError`, a `KeyError` or a `ValueError`",
    corners=[
        "a wrong prefix and a missing `running_mean` do",
        "a tensor of shape `(1,)` where `()` is wanted may pass",
    ],
)
def everything_else_raises(draw: Draw) -> list[Case]:
    return [
        versions(draw, **UNCOUNTED),
        versions(draw, without=["1.running_mean"], form="without a mean"),
        versions(
            draw,
            without=["1.running_var", COUNTER],
            metadata=False,
            form="without a variance",
        ),
        versions(draw, without=["2.bias"], form="without a bias"),
        versions(
            draw,
            source="shared",
            target="shared",
            without=["4.weight"],
            form="without the second name of a weight that has two",
        ),
        versions(
            draw,
            without=["2.weight"],
            with_extra=["7." + COUNTER],
            form="without a weight and with a counter too many",
        ),
        versions(draw, with_extra=["4.weight"], form="with one more weight"),
        versions(
            draw, with_extra=["1.running_count"], form="with one more buffer"
        ),
        versions(
            draw,
            with_extra=["1.my_" + COUNTER],
            form="with a key that only ends like a counter",
        ),
        versions(
            draw,
            with_extra=[f"1.{COUNTER}_once"],
            form="with a key that only begins like a counter",
        ),
        versions(
            draw,
            source="other counters",
            target="other counters",
            without=[f"{COUNTER}_once"],
            form="without a buffer whose name only begins like a counter",
        ),
        versions(
            draw,
            with_extra=[COUNTER + ".weight"],
            form="with a counter's name in the middle of a key",
        ),
        versions(draw, source="wider", form="of a wider model"),
        versions(
            draw,
            source="wider",
            without=[COUNTER],
            form="of a wider model without counters",
        ),
        versions(
            draw, cut="2.bias", form="with a shape that would be broadcast"
        ),
        versions(
            draw,
            cut="1.running_mean",
            form="with a buffer whose shape would be broadcast",
        ),
        versions(
            draw, folded="2.bias", form="with as many numbers in another shape"
        ),
        versions(
            draw,
            source="narrow",
            target="narrow",
            squeezed="0.bias",
            form="with one number where an axis is wanted",
        ),
        versions(
            draw,
            repeated="1." + COUNTER,
            form="with several numbers for a counter",
        ),
        versions(
            draw,
            source="frozen",
            target="frozen",
            without=["weight", "bias", "mean", "var"],
            form="that is empty",
        ),
        versions(
            draw,
            with_extra=["7.running_mean", "7." + COUNTER],
            form="with one more buffer, and a counter beside it",
        ),
        versions(draw, prefix="module.", form="with a wrong prefix"),
        versions(
            draw,
            prefix="module.",
            without=[COUNTER],
            form="with a wrong prefix and without counters",
        ),
    ]


@check(
    "load_across_versions",
    probe=probes.loaded_across,
    rule=leaves_the_rest_alone,
    also=[leaves_state_alone],
    says="two lists come back; parameters stay the same objects, the caller's "
    "state dict stays as it was",
    corners=[
        "its `_metadata`, the model's mode, its gradients and what of it is "
        "trainable stay, too",
        "no setting of PyTorch is changed",
    ],
)
def leaves_the_file_alone(draw: Draw) -> list[Case]:
    return [
        versions(draw, without=[COUNTER]),
        versions(draw, target="frozen"),
        versions(draw, without=[COUNTER], metadata=False),
        # of a module whose version is not that of BatchNorm
        versions(
            draw,
            source="other counters",
            target="other counters",
            without=[COUNTER],
        ),
    ]


# best_weights


def epochs(draw: Draw, *metrics: float, **options: Any) -> Case:
    return {
        "metrics": list(metrics),
        "shifts": [draw.normal(4, 3) for _ in range(max(2, len(metrics)))],
        "mode": "max",
        "metric_type": "float",
        "precise": False,
        "coarse": False,
        "tied": False,
        "averaged": False,
        "frozen": False,
        "twice": False,
        **options,
    }


def some_metrics(draw: Draw, n: int) -> list[float]:
    """n different metrics, the largest and the smallest neither first nor last."""
    while True:
        order = draw.permutation(n).tolist()
        if not {0, n - 1} & {order[0], order[-1]}:
            return [(rank + 1) / (n + 2) for rank in order]


def as_it_must_be(**sentences: str) -> Rule:
    """Rule: what is recorded under these names equals the reference's, every bit."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        data = seen.data if isinstance(seen.data, dict) else {}
        for name, sentence in sentences.items():
            if not same(data.get(name), expected.data[name]):
                return sentence
        return None

    return rule


def says_and_keeps(which: str, **sentences: str) -> Rule:
    """Rule: what `update` says, `metric`, and the parameters that come back."""
    return as_it_must_be(
        **sentences,
        answer_types="Your `update` returns something else than True or False.",
        answers=f"Your `update` answers wrongly {which}.",
        metric=f"`metric` is not at all times the best so far, as a float, {which}.",
        restored_parameters=f"`restore` brings back other weights {which}.",
    )


IN_GENERAL = "where metrics rise and fall"


@check(
    "best_weights",
    probe=probes.kept_best,
    weight=3,
    rule=as_it_must_be(
        restored_parameters="`restore` does not bring back the weights of the "
        "best epoch, bit for bit.",
        restored="`restore` does not bring back the buffers of the best epoch, "
        "bit for bit.",
    ),
    says="the weights and buffers of the best epoch come back, bit for bit",
    corners=[
        "in any dtype; a layer may stand at two places, and a buffer be a new tensor "
        "after each batch"
    ],
)
def best_epoch_comes_back(draw: Draw) -> list[Case]:
    return [
        epochs(draw, *some_metrics(draw, 5)),
        epochs(draw, *some_metrics(draw, 4)),
        epochs(draw, *some_metrics(draw, 6), mode=None),
        epochs(draw, *some_metrics(draw, 4), precise=True),
        epochs(draw, *some_metrics(draw, 4), coarse=True),
        epochs(draw, *some_metrics(draw, 4), tied=True),
        epochs(draw, *some_metrics(draw, 4), averaged=True),
    ]


@check(
    "best_weights",
    probe=probes.kept_best,
    weight=2,
    rule=as_it_must_be(
        restored_parameters="The first `restore` does not bring back the best "
        "weights.",
        drifted="After `restore` and another step of training the model is not what "
        "it should be.",
        answers_later="After `restore`, `update` does not go on from the best "
        "metric so far.",
        restored_again="The second `restore`, after training on, does not bring "
        "back the best weights.",
        restored_later="What is better after a `restore` does not come back at "
        "the next one.",
        same_parameters="After `restore` the model's parameters are other "
        "objects; the optimizer still holds the old ones.",
        still_trains="After `restore` other parameters are trained than before.",
        modes_updated="`update` leaves the model in another mode.",
        mode_restored="After `restore` the model is in another mode.",
        same_gradients="`restore` changes the model's gradients.",
    ),
    also=[leaves_state_alone],
    says="restored into the same parameters, and once more after training on",
    corners=[
        "so that the optimizer still knows them; a frozen one stays so",
        "after it `update` goes on: the best so far stays the best",
        "the model's mode and its gradients stay, too",
        "no setting of PyTorch is changed",
    ],
)
def restored_twice(draw: Draw) -> list[Case]:
    return [
        epochs(draw, *some_metrics(draw, 4), twice=True),
        epochs(
            draw, *some_metrics(draw, 5), mode="min", twice=True, frozen=True
        ),
    ]


@check(
    "best_weights",
    probe=probes.several_kept,
    rule=as_it_must_be(
        restored="Where several objects keep weights at once, one gets what "
        "another kept.",
        metrics="Where several objects keep weights at once, `metric` is wrong.",
    ),
    says="several objects at once, for one model and for two",
)
def several_at_once(draw: Draw) -> list[Case]:
    return [
        epochs(draw, *some_metrics(draw, 4)),
        epochs(draw, *some_metrics(draw, 5)),
    ]


@check(
    "best_weights",
    probe=probes.kept_best,
    rule=says_and_keeps(
        IN_GENERAL,
        metric_before="`metric` is something else than `None` before there is a "
        "best one.",
    ),
    says="what is the best, by `update`'s answers: largest or smallest, of "
    "any sign",
    corners=[
        "the first metric is the best so far, whatever its size; however "
        "little one is better, it is the best",
        '`mode` is `"max"` if none is given',
        "`metric` is read before, between and after",
    ],
)
def which_is_best(draw: Draw) -> list[Case]:
    low = [metric - 3 for metric in some_metrics(draw, 5)]
    falling = [-1.0 - step for step in range(4)]
    return [
        epochs(draw, *some_metrics(draw, 5)),
        epochs(draw, *some_metrics(draw, 5), mode="min"),
        epochs(draw, *low),
        epochs(draw, *(7 - metric for metric in low), mode="min"),
        epochs(draw, *falling),
        epochs(draw, *(-metric for metric in falling), mode="min"),
        # near the largest float: a factor would make both infinite
        epochs(draw, 1.0e308, 1.5e308),
        epochs(draw, -1.0e308, -1.5e308, mode="min"),
        # a best of zero, after which worse ones come
        epochs(draw, 0.0, -0.5, -0.25),
        epochs(draw, -0.75, 0.0, -0.5, -0.25),
        epochs(draw, 0.0, 0.5, 0.25, mode="min"),
        epochs(draw, 0.0, -0.5, 0.25, metric_type="tensor"),
        # almost equal, and better by the last bits of a float
        epochs(draw, *(0.5 + step * 2.0**-44 for step in range(3))),
        epochs(draw, 0.5, 0.5 + 2.0**-53),
        epochs(draw, 1e-20, 2e-20),
    ]


@check(
    "best_weights",
    probe=probes.kept_best,
    rule=says_and_keeps("where a metric is infinite"),
    says="infinity is a metric like others, the first or a later one",
)
def infinite_metrics(draw: Draw) -> list[Case]:
    some = some_metrics(draw, 4)
    return [
        epochs(draw, -INF, -INF),
        epochs(draw, INF, *some, mode="min"),
        epochs(draw, *some, INF, INF, some[0]),
        epochs(draw, *some, -INF, -INF, mode="min"),
    ]


@check(
    "best_weights",
    probe=probes.kept_best,
    weight=2,
    rule=says_and_keeps("where a metric is NaN"),
    says="NaN is never the best: not first, not last, not in between",
)
def nan_is_never_best(draw: Draw) -> list[Case]:
    some = some_metrics(draw, 4)
    return [
        epochs(draw, NAN, *some),
        epochs(draw, *some, NAN),
        epochs(draw, *some[:2], NAN, *some[2:]),
        epochs(draw, NAN, NAN, *some, mode="min"),
        epochs(draw, *some, NAN, mode="min"),
    ]


@check(
    "best_weights",
    probe=probes.kept_best,
    rule=says_and_keeps("where two metrics are equal"),
    says="of two equal metrics the earlier stays the best",
)
def earlier_of_equals(draw: Draw) -> list[Case]:
    low, high = 0.25, 0.5 + draw.integer(1, 9) / 32
    return [
        epochs(draw, low, high, low, high, low),
        epochs(draw, high, low, low, high, mode="min"),
        epochs(draw, high, high),
    ]


@check(
    "best_weights",
    probe=probes.kept_best,
    rule=says_and_keeps("where the metric is a tensor that is filled anew"),
    says="a metric that is a tensor, filled anew each epoch",
)
def metric_in_a_tensor(draw: Draw) -> list[Case]:
    # Halves of small powers of two pass through float32 unchanged.
    some = [2.0 ** -(1 + int(rank)) for rank in draw.permutation(5)]
    best_first = sorted(some, reverse=True)
    return [
        epochs(draw, *some, metric_type="tensor"),
        epochs(draw, *best_first, metric_type="tensor"),
    ]


@check(
    "best_weights",
    probe=probes.nothing_kept,
    rule=same_form("restored"),
    raises=("RuntimeError",),
    says="with nothing kept, `restore` raises a `RuntimeError`",
)
def nothing_to_restore(draw: Draw) -> list[Case]:
    return [
        epochs(draw, 0.25),
        epochs(draw),
        epochs(draw, NAN),
        epochs(draw, NAN, NAN, mode="min"),
    ]
