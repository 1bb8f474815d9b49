"""Answers to `load_across_versions` of chapter 12."""

import copy

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def by_reading_the_report(model, state_dict):
    def counters(names):
        return [n for n in names if n.split(".")[-1] == "num_batches_tracked"]

    known = {k: v for k, v in state_dict.items()}
    filled = counters(model.state_dict().keys() - known.keys())
    result = model.load_state_dict(known, strict=False)
    if set(result.missing_keys) - set(filled):
        raise RuntimeError("missing keys")
    left_out = counters(result.unexpected_keys)
    if len(left_out) < len(result.unexpected_keys):
        raise RuntimeError("unexpected keys")
    for name in filled:
        model.get_buffer(name).zero_()
    return filled, left_out


@accepted()
def counters_set_to_zero_first(model, state_dict):
    from collections import OrderedDict

    def is_counter(name):
        return ("." + name).endswith(".num_batches_tracked")

    names = set(model.state_dict())
    file = OrderedDict(
        (name, value)
        for name, value in state_dict.items()
        if name in names or not is_counter(name)
    )
    missing = [name for name in names if is_counter(name) and name not in file]
    for name in missing:
        file[name] = model.get_buffer(name).fill_(0)
    model.load_state_dict(file)
    return sorted(missing), sorted(state_dict.keys() - file.keys())


@accepted()
def by_setdefault(model, state_dict):
    adapted, filled, left_out = dict(state_dict), [], []
    mine = model.state_dict()
    for name, value in mine.items():
        last = name.split(".")[-1]
        if last == "num_batches_tracked" and name not in adapted:
            filled.append(name)
            adapted.setdefault(name, torch.zeros_like(value))
    for name in state_dict:
        last = name.split(".")[-1]
        if last == "num_batches_tracked" and name not in mine:
            left_out.append(name)
            del adapted[name]
    model.load_state_dict(adapted)
    return filled, left_out


@accepted()
def with_a_counter_of_one_dimension(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.zeros(1)
    model.load_state_dict(adapted)
    return sorted(filled), sorted(left_out)


@accepted()
def module_by_module(model, state_dict):
    adapted = copy.deepcopy(state_dict)
    filled = []
    for name, module in model.named_modules():
        counter = f"{name}.num_batches_tracked".lstrip(".")
        if getattr(module, "num_batches_tracked", None) is not None:
            if counter not in adapted:
                adapted[counter] = torch.zeros((), dtype=torch.long)
                filled.append(counter)
    own = model.state_dict()
    left_out = [
        name
        for name in state_dict
        if name.rpartition(".")[2] == "num_batches_tracked" and name not in own
    ]
    for name in left_out:
        adapted.pop(name)
    model.load_state_dict(adapted, strict=True)
    return filled, left_out


@accepted()
def checked_by_hand_and_copied(model, state_dict):
    own = model.state_dict()
    filled, left_out = [], []
    for name in own.keys() | state_dict.keys():
        if name.split(".")[-1] == "num_batches_tracked":
            if name not in state_dict:
                filled.append(name)
            elif name not in own:
                left_out.append(name)
        elif name not in own or name not in state_dict:
            raise KeyError(name)
        elif own[name].shape != state_dict[name].shape:
            raise ValueError(name)
    with torch.no_grad():
        for name, tensor in own.items():
            if name in filled:
                tensor.zero_()
            else:
                tensor.copy_(state_dict[name])
    return filled, left_out


@accepted()
def sorted_backwards_and_with_metadata(model, state_dict):
    state = copy.copy(state_dict)
    for name in model.state_dict().keys() - state_dict.keys():
        if name.rpartition(".")[2] == "num_batches_tracked":
            state[name] = torch.zeros((), dtype=torch.long)
    for name in state_dict.keys() - model.state_dict().keys():
        if name.rpartition(".")[2] == "num_batches_tracked":
            del state[name]
    model.load_state_dict(state)
    filled = sorted(state.keys() - state_dict.keys(), reverse=True)
    return filled, sorted(state_dict.keys() - state.keys(), reverse=True)


@accepted()
def mended_counters_by_the_end_of_the_key(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    adapted |= {name: torch.tensor(0) for name in filled}
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    breaks=[hidden_tests.missing_counters, hidden_tests.left_over_counters],
    tells="You leave it all to `load_state_dict`. It refuses counters that "
    "are left over, and missing ones too if the file has metadata; "
    "without metadata it keeps the model's own count. Compare the "
    "keys and put the counters right first.",
)
def as_pytorch_does(model, state_dict):
    model.load_state_dict(state_dict)
    return [], []


@wrong(
    breaks=hidden_tests.everything_else_raises,
    tells="You load with `strict=False` and look at nothing: a file with a "
    "wrong prefix loads not a single weight, and nobody hears of it. "
    "Let only the counters differ.",
)
def anything_goes(model, state_dict):
    result = model.load_state_dict(state_dict, strict=False)
    names = model.state_dict().keys() - state_dict.keys()
    filled = [n for n in names if n.endswith("num_batches_tracked")]
    for name in filled:
        model.get_buffer(name).zero_()
    extra = result.unexpected_keys
    return filled, [n for n in extra if n.endswith("num_batches_tracked")]


@wrong(
    breaks=hidden_tests.everything_else_raises,
    tells="You look at what is missing and not at what is left over. A key "
    "that the model does not know means that the file is for another "
    "model. Raise for both.",
)
def only_missing_keys_checked(model, state_dict):
    result = model.load_state_dict(dict(state_dict), strict=False)
    missing = model.state_dict().keys() - state_dict.keys()
    filled = [n for n in missing if n.endswith("num_batches_tracked")]
    if len(filled) < len(missing):
        raise RuntimeError("keys are missing")
    for name in filled:
        model.get_buffer(name).zero_()
    extra = result.unexpected_keys
    return filled, [n for n in extra if n.endswith("num_batches_tracked")]


@wrong(
    breaks=hidden_tests.everything_else_raises,
    tells="You look at what is left over and not at what is missing. "
    "Weights that the file does not have keep their random start. "
    "Raise for both.",
)
def only_left_over_keys_checked(model, state_dict):
    result = model.load_state_dict(dict(state_dict), strict=False)
    missing = model.state_dict().keys() - state_dict.keys()
    filled = [n for n in missing if n.endswith("num_batches_tracked")]
    extra = result.unexpected_keys
    left_out = [n for n in extra if n.endswith("num_batches_tracked")]
    if len(left_out) < len(extra):
        raise RuntimeError("keys are left over")
    for name in filled:
        model.get_buffer(name).zero_()
    return filled, left_out


@wrong(
    breaks=hidden_tests.everything_else_raises,
    tells="You treat `running_mean` and `running_var` like the counter. "
    "Without them a trained BatchNorm layer gives other outputs in "
    "eval mode. Only the counter may be missing or left over.",
)
def all_statistics_let_go(model, state_dict):
    own = model.state_dict()
    loose = {
        n
        for n in own.keys() | state_dict.keys()
        if n.split(".")[-1]
        in ("num_batches_tracked", "running_mean", "running_var")
    }
    filled = [n for n in loose - state_dict.keys() if n.endswith("tracked")]
    left_out = [n for n in loose - own.keys() if n.endswith("tracked")]
    adapted = {
        n: v for n, v in state_dict.items() if n in own or n not in loose
    }
    for name in loose - state_dict.keys():
        adapted[name] = torch.tensor(0) if name in filled else own[name]
    model.load_state_dict(adapted)
    return filled, left_out


@wrong(
    breaks=hidden_tests.everything_else_raises,
    tells="Your function loads whatever fits and passes over the rest in "
    "silence, by a filter or by catching the error. A file for "
    "another model then loads a part or nothing. Raise where anything "
    "but a counter does not fit.",
)
def matching_shapes_only(model, state_dict):
    own = model.state_dict()
    fits = {
        n: v
        for n, v in state_dict.items()
        if n in own and v.shape == own[n].shape
    }
    filled = [n for n in own if n.endswith("tracked") and n not in state_dict]
    left_out = [n for n in state_dict if n.endswith("tracked") and n not in own]
    for name in filled:
        fits[name] = torch.tensor(0)
    model.load_state_dict(fits, strict=False)
    return filled, left_out


@wrong(
    breaks=hidden_tests.everything_else_raises,
    tells="Your function loads whatever fits and passes over the rest in "
    "silence, by a filter or by catching the error. A file for "
    "another model then loads a part or nothing. Raise where anything "
    "but a counter does not fit.",
)
def errors_caught(model, state_dict):
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    try:
        model.load_state_dict(adapted)
    except RuntimeError:
        pass
    return sorted(filled), sorted(left_out)


prefix_taken_off = edit(
    with_a_counter_of_one_dimension,
    {
        "def with_a_counter_of_one_dimension(model, state_dict):": """
        def with_a_counter_of_one_dimension(model, state_dict):
            state_dict = {k.removeprefix("module."): v for k, v in state_dict.items()}
        """,
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You take a `module.` prefix off by yourself. This function was "
    "to report a wrong prefix, not to guess: raise.",
)

counter_as_a_number = edit(
    with_a_counter_of_one_dimension,
    {"adapted[name] = torch.zeros(1)": "adapted[name] = 0"},
    breaks=hidden_tests.missing_counters,
    tells="You fill in the counter as a Python number, which "
    "`load_state_dict` refuses. A counter is an int64 tensor without "
    "dimensions: `torch.tensor(0)`.",
)

assigned = edit(
    with_a_counter_of_one_dimension,
    {
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
        "model.load_state_dict(adapted)": "model.load_state_dict(adapted, assign=True)",
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You load with `assign=True`. The model then holds the caller's "
    "tensors, which training changes, and its optimizer holds "
    "parameters that nobody uses any more. Leave `assign` out.",
)

float_counter_assigned = edit(
    with_a_counter_of_one_dimension,
    {
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0.0)",
        "model.load_state_dict(adapted)": "model.load_state_dict(adapted, assign=True)",
    },
    breaks=hidden_tests.missing_counters,
    tells="Your filled-in counter is a float. A counter is an int64 tensor "
    "without dimensions: `torch.tensor(0)`. And with `assign=True` "
    "the model holds the caller's tensors: leave it out.",
)

counter_from_the_model = edit(
    with_a_counter_of_one_dimension,
    {"adapted[name] = torch.zeros(1)": "adapted[name] = own[name]"},
    breaks=hidden_tests.missing_counters,
    tells="A missing counter keeps the count that the model had. That count "
    "belongs to weights that have just been replaced. Set it to 0.",
)


@wrong(
    breaks=hidden_tests.missing_counters,
    tells="A missing counter keeps the count that the model had. That count "
    "belongs to weights that have just been replaced. Set it to 0.",
)
def counter_left_to_pytorch(model, state_dict):
    from collections import OrderedDict

    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled, left_out = counters - state_dict.keys(), counters - own.keys()
    adapted = {n: v for n, v in state_dict.items() if n not in left_out}
    for name in filled:
        adapted[name] = None
    for name in filled:
        del adapted[name]
    model.load_state_dict(OrderedDict(adapted))
    return sorted(filled), sorted(left_out)


counters_all_zero = edit(
    with_a_counter_of_one_dimension,
    {
        """
        for name in filled:
            adapted[name] = torch.zeros(1)
        """: """
        for name in filled:
            adapted[name] = torch.tensor(0)
        for name in counters & own.keys():
            adapted[name] = torch.tensor(0)
        """,
    },
    breaks=hidden_tests.files_that_fit,
    tells="You set every counter to 0, also those that the file has. Fill "
    "in only the missing ones.",
)

counters_never_loaded = edit(
    with_a_counter_of_one_dimension,
    {
        """
        for name in filled:
            adapted[name] = torch.zeros(1)
        """: """
        for name in filled:
            adapted[name] = torch.tensor(0)
        for name in counters & own.keys():
            adapted[name] = own[name]
        """,
    },
    breaks=hidden_tests.files_that_fit,
    tells="You leave all counters of the file out, also those that the "
    "model has. With `momentum=None` the count decides how much the "
    "next batch weighs. Load them where both have them.",
)

counter_of_one = edit(
    with_a_counter_of_one_dimension,
    {"adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(1)"},
    breaks=hidden_tests.missing_counters,
    tells="You fill a missing counter with 1. Nothing is known about its "
    "batches: set it to 0.",
)

counters_behind_a_dot = edit(
    with_a_counter_of_one_dimension,
    {
        'split(".")[-1] == "num_batches_tracked"': 'endswith(".num_batches_tracked")',
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
    },
    breaks=hidden_tests.counter_without_a_dot,
    tells="You look for `.num_batches_tracked` with a dot before it. A "
    "BatchNorm layer that is itself the model has the key without "
    "one. Compare the last part of the key.",
)

left_over_refused = edit(
    with_a_counter_of_one_dimension,
    {
        "n not in left_out": "True",
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
    },
    breaks=hidden_tests.left_over_counters,
    tells="You fill in missing counters, but refuse a file that has one too "
    "many. A frozen BatchNorm has none, and its files come from "
    "models that do. Leave it out.",
)


@wrong(
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You put the counters right in the caller's own dict. Make a new "
    "one.",
)
def callers_dict_changed(model, state_dict):
    own = model.state_dict()
    filled = [n for n in own if n.endswith("tracked") and n not in state_dict]
    left_out = [n for n in state_dict if n.endswith("tracked") and n not in own]
    for name in filled:
        state_dict[name] = torch.tensor(0)
    for name in left_out:
        del state_dict[name]
    model.load_state_dict(state_dict)
    return filled, left_out


lists_swapped = edit(
    with_a_counter_of_one_dimension,
    {
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
        "return sorted(filled), sorted(left_out)": "return sorted(left_out), sorted(filled)",
    },
    breaks=[hidden_tests.missing_counters, hidden_tests.left_over_counters],
    tells="You return the two lists the wrong way round: first what was "
    "filled in, then what was left out.",
)

nothing_reported = edit(
    with_a_counter_of_one_dimension,
    {
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
        "return sorted(filled), sorted(left_out)": "return [], []",
    },
    breaks=[hidden_tests.missing_counters, hidden_tests.left_over_counters],
    tells="You load the right things and report nothing. Return the names "
    "of the counters that were filled in and of those left out.",
)

everything_reported = edit(
    with_a_counter_of_one_dimension,
    {
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
        "return sorted(filled), sorted(left_out)": "return sorted(counters & own.keys()), sorted(left_out)",
    },
    breaks=hidden_tests.missing_counters,
    tells="You report counters that both sides have as filled in. Name only "
    "those that the file did not have.",
)

returned_as_sets = edit(
    with_a_counter_of_one_dimension,
    {
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
        "return sorted(filled), sorted(left_out)": "return filled, left_out",
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You return sets. Two lists were asked for: use `sorted` or `list`.",
)

into_a_copy = edit(
    with_a_counter_of_one_dimension,
    {
        "def with_a_counter_of_one_dimension(model, state_dict):": """
        def with_a_counter_of_one_dimension(model, state_dict):
            model = copy.deepcopy(model)
        """,
        "adapted[name] = torch.zeros(1)": "adapted[name] = torch.tensor(0)",
    },
    breaks=hidden_tests.files_that_fit,
    tells="You load into a copy of the model. The caller's own model stays "
    "as it was. Load into the one you were given.",
)

counters_by_the_end_of_the_key = edit(
    mended_counters_by_the_end_of_the_key,
    {
        'split(".")[-1] == "num_batches_tracked"': 'endswith("num_batches_tracked")',
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You take every key for a counter that ends in "
    "`num_batches_tracked`, also `my_num_batches_tracked`. Compare "
    "the last part of the key, between the dots, as a whole.",
)

counters_anywhere_in_the_key = edit(
    mended_counters_by_the_end_of_the_key,
    {
        'name.split(".")[-1] == "num_batches_tracked"': '"num_batches_tracked" in name',
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You take every key for a counter that has `num_batches_tracked` "
    "somewhere in it. Compare the last part of the key, between the "
    "dots, as a whole.",
)

counters_of_batch_norm_alone = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "adapted = {k: v for k, v in state_dict.items() if k not in left_out}": """
        adapted = {k: v for k, v in state_dict.items() if k not in left_out}
        norms = {
            name
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d)
        }
        filled = [name for name in filled if name.rpartition(".")[0] in norms]
        """,
    },
    breaks=hidden_tests.missing_counters,
    tells="You fill in the counters of some classes of layers only. Other "
    "modules have counters too: go by the key, not by the class.",
)

copied_by_hand_with_broadcasting = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "model.load_state_dict(adapted)": """
        if adapted.keys() != own.keys():
            raise KeyError("other keys than the model's")
        with torch.no_grad():
            for name, value in adapted.items():
                own[name].copy_(value)
        """,
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You copy the values by hand, and `copy_` broadcasts: a bias of "
    "one number fills a whole layer. Compare the shapes, or let "
    "`load_state_dict` do it.",
)

metadata_taken_from_the_file = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "adapted = {k: v for k, v in state_dict.items() if k not in left_out}": """
        adapted = {k: v for k, v in state_dict.items() if k not in left_out}
        if hasattr(state_dict, "_metadata"):
            del state_dict._metadata
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You take the `_metadata` away from the caller's state dict. It "
    "was to stay as it was: build a new dict.",
)

metadata_made_old = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "adapted = {k: v for k, v in state_dict.items() if k not in left_out}": """
        adapted = {k: v for k, v in state_dict.items() if k not in left_out}
        for one in getattr(state_dict, "_metadata", {}).values():
            one["version"] = 1
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You write another version into the caller's `_metadata`, which "
    "a new dict shares. It was to stay as it was: copy it deeply, or "
    "leave it out.",
)

put_in_eval_mode = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "model.load_state_dict(adapted)": """
        model.load_state_dict(adapted)
        model.eval()
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You change the model's mode. Loading weights is no business of "
    "`train` and `eval`: leave that to the caller.",
)

frozen_while_loading = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "model.load_state_dict(adapted)": """
        model.load_state_dict(adapted)
        model.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You change which parameters are trainable. The caller may have "
    "frozen some, and not others: leave `requires_grad` as it was.",
)

gradients_thrown_away = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "model.load_state_dict(adapted)": """
        model.load_state_dict(adapted)
        model.zero_grad()
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You throw the model's gradients away. Only its weights and "
    "buffers were to change.",
)

counters_through_floats = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "model.load_state_dict(adapted)": "model.load_state_dict({k: v.float() for k, v in adapted.items()})",
    },
    breaks=hidden_tests.files_that_fit,
    tells="Your counters pass through float32, which holds whole numbers "
    "up to 16777216 exactly. Leave them int64.",
)

spreading_small_buffers = edit(
    checked_by_hand_and_copied,
    {
        "elif own[name].shape != state_dict[name].shape:": "elif name in dict(model.named_parameters()) and own[name].shape != state_dict[name].shape:",
    },
    breaks=hidden_tests.everything_else_raises,
    tells="A buffer of another shape is accepted: `copy_` broadcasts it. Compare the "
    "shapes of buffers as well as of parameters.",
)

dropping_what_stands_beside = edit(
    mended_counters_by_the_end_of_the_key,
    {
        "adapted = {k: v for k, v in state_dict.items() if k not in left_out}": """
        gone = {one.rpartition(".")[0] for one in left_out}
        adapted = {
            k: v
            for k, v in state_dict.items()
            if k in own or k.rpartition(".")[0] not in gone
        }
        """,
    },
    breaks=hidden_tests.everything_else_raises,
    tells="Where a counter is left over you drop all that stands beside it. Only the "
    "counter may be left out; a left-over mean must raise.",
)

folding_to_fit = edit(
    SOLUTION,
    {
        "model.load_state_dict(adapted, strict=True)": """
        for name in own.keys() & adapted.keys():
            if adapted[name].numel() == own[name].numel():
                adapted[name] = adapted[name].reshape(own[name].shape)
        model.load_state_dict(adapted, strict=True)
        """,
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You reshape what has as many numbers. A file with another shape is of "
    "another model: it must raise.",
)

a_setting_left_by_load_across_versions = edit(
    SOLUTION,
    {
        "own = model.state_dict()": """
        torch.set_num_threads(2)
        own = model.state_dict()
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

one_counter_of_a_part = edit(
    SOLUTION,
    {
        "return filled, left_out": "return filled, list({one.split('.')[0]: one for one in left_out}.values())",
    },
    breaks=hidden_tests.left_over_counters,
    tells="Of the counters that were left out you return one for each part of the "
    "model. Return the names of all of them.",
)

holes_filled_where_counters_are_left = edit(
    SOLUTION,
    {
        "for name in filled:": """
        if left_out:
            adapted = own | adapted
        for name in filled:
        """,
    },
    breaks=hidden_tests.everything_else_raises,
    tells="If the file has counters too many you fill what it lacks with the "
    "model's own values. A missing weight must raise, whatever else there is.",
)

metadata_shared_with_the_copy = edit(
    SOLUTION,
    {
        "for name in filled:": """
        for name in filled if hasattr(state_dict, "_metadata") else ():
            module = name.rpartition(".")[0]
            state_dict._metadata.setdefault(module, {})["version"] = 2
        for name in filled:
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You write a version into the file's `_metadata`. It is the caller's: a "
    "dict without `_metadata` loads as well.",
)

all_counters_of_zero = edit(
    SOLUTION,
    {
        "return filled, left_out": """
        if filled:
            filled = [one for one in counters & own.keys() if adapted[one] == 0]
        return filled, left_out
        """,
    },
    breaks=hidden_tests.missing_counters,
    tells="You return each counter that is 0. The file may hold a 0 itself: return "
    "those that it lacked.",
)

keys_by_parameters_and_buffers = edit(
    SOLUTION,
    {
        "own = model.state_dict()": """
        own = dict(model.named_parameters()) | dict(model.named_buffers())
        for name in own:
            if name.split(".")[-1] != "num_batches_tracked":
                state_dict[name]
        """
    },
    breaks=hidden_tests.files_that_fit,
    tells="You ask for all that `named_buffers()` names. A buffer with `persistent=False` is in no "
    "`state_dict()`: ask that.",
)

counters_by_their_first_number = edit(
    SOLUTION,
    {
        "model.load_state_dict(adapted, strict=True)": """
        for name in counters & adapted.keys():
            adapted[name] = adapted[name].flatten()[0]
        model.load_state_dict(adapted, strict=True)
        """
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You take the first number of a counter, whatever its shape. One with several numbers is no counter "
    "of this model: let PyTorch refuse it.",
)

single_numbers_in_any_shape = edit(
    SOLUTION,
    {
        "model.load_state_dict(adapted, strict=True)": """
        for name, value in own.items():
            if name in adapted and adapted[name].numel() == 1:
                adapted[name] = adapted[name].reshape(value.shape)
        model.load_state_dict(adapted, strict=True)
        """
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You reshape what holds one number. A bias of shape () where (1,) is wanted is another shape: only "
    "the other way round may pass.",
)

without_a_dot_only_where_missing = edit(
    SOLUTION,
    {
        "left_out = sorted(counters - own.keys())": 'left_out = sorted(one for one in counters - own.keys() if "." in one)',
    },
    breaks=hidden_tests.counter_without_a_dot,
    tells="You leave out only counters with a dot before their name. The file of a model that is a "
    "BatchNorm layer itself has the key `num_batches_tracked` alone.",
)

by_how_the_name_begins = edit(
    SOLUTION,
    {
        'split(".")[-1] == "num_batches_tracked"': 'split(".")[-1].startswith("num_batches")',
    },
    breaks=hidden_tests.everything_else_raises,
    tells="You take every name that begins like a counter's for one. Compare the whole last "
    "part of the key with `num_batches_tracked`.",
)
