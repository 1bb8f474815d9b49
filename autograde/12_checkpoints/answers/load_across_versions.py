"""Answers to `load_across_versions` of chapter 12."""

import copy

import torch

from course_grader.bank import accepted, wrong

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
