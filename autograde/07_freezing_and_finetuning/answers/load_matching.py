"""Answers to `load_matching` of chapter 07."""

import torch

from course_grader.bank import accepted


@accepted()
def by_copying_in_place(model, state_dict, head, prefix=""):
    own = model.state_dict()
    loaded, skipped = [], []
    with torch.no_grad():
        for key, value in state_dict.items():
            name = key[len(prefix) :]
            if (
                not key.startswith(prefix)
                or name.startswith(f"{head}.")
                or name not in own
                or own[name].shape != value.shape
            ):
                skipped.append(key)
                continue
            own[name].copy_(value)
            loaded.append(name)
    if not loaded:
        raise ValueError("nothing fits")
    return loaded, skipped


@accepted()
def by_a_whole_state_dict(model, state_dict, head, prefix=""):
    whole = dict(model.state_dict())
    taken = {}
    for name, value in whole.items():
        in_file = state_dict.get(prefix + name)
        in_head = name.split(".")[: head.count(".") + 1] == head.split(".")
        if in_file is not None and in_file.shape == value.shape and not in_head:
            taken[prefix + name] = name
            whole[name] = in_file
    if not taken:
        raise ValueError("nothing fits")
    model.load_state_dict(whole, strict=True)
    return list(taken.values()), [k for k in state_dict if k not in taken]


@accepted()
def by_named_tensors(model, state_dict, head, prefix=""):
    in_head = set(model.get_submodule(head).state_dict(prefix=head + "."))
    tensors = model.state_dict(keep_vars=True)
    wanted = {
        prefix + name: name
        for name, tensor in tensors.items()
        if name not in in_head
        and prefix + name in state_dict
        and state_dict[prefix + name].size() == tensor.size()
    }
    if len(wanted) == 0:
        raise ValueError
    for key, name in wanted.items():
        tensors[name].data.copy_(state_dict[key])
    return sorted(wanted.values()), sorted(state_dict.keys() - wanted.keys())


@accepted()
def by_loading_copies(model, state_dict, head, prefix=""):
    own = model.state_dict()
    stripped = {
        key[len(prefix) :]: value.clone()
        for key, value in state_dict.items()
        if key.startswith(prefix)
    }
    chosen = {
        name: value.to(own[name].dtype)
        for name, value in stripped.items()
        if name in own
        and list(value.shape) == list(own[name].shape)
        and not name.startswith(head + ".")
    }
    if not chosen:
        raise ValueError("no key of the file fits")
    report = model.load_state_dict(chosen, strict=False)
    assert not report.unexpected_keys
    loaded = [name for name in own if name in chosen]
    done = {prefix + name for name in loaded}
    return loaded, [key for key in state_dict if key not in done]


@accepted()
def by_set_operations(model, state_dict, head, prefix=""):
    own = model.state_dict()
    candidates = {prefix + name for name in own} & set(state_dict)
    loaded = set()
    for key in candidates:
        name = key[len(prefix) :]
        if name.startswith(head + "."):
            continue
        if own[name].shape == state_dict[key].shape:
            own[name].data[...] = state_dict[key]
            loaded.add(key)
    if not loaded:
        raise ValueError
    return [k[len(prefix) :] for k in loaded], list(set(state_dict) - loaded)


@accepted()
def mended_popped_from_the_file(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@accepted()
def mended_gradients_cleared(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and tensor.shape == own[name].shape
        ):
            fits[name] = tensor
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped
