"""Answers to `load_matching` of chapter 07."""

import torch

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


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


strict_false_alone = edit(
    mended_popped_from_the_file,
    {
        "and value.shape == own[name].shape": "",
    },
    breaks=hidden_tests.skips_other_shapes,
    tells="You leave the shapes to `strict=False`, which forgives missing and unexpected keys and no shapes: it raises. Compare the shapes yourself.",
)


by_number_of_elements = edit(
    mended_popped_from_the_file,
    {
        "shape == own[name].shape": "numel() == own[name].numel()",
        "fits[name] = value": "fits[name] = value.reshape(own[name].shape)",
    },
    breaks=hidden_tests.skips_other_shapes,
    tells="You compare the number of elements and reshape. Twelve numbers in another shape are not the same weights: compare `shape`.",
)

by_broadcasting = edit(
    mended_popped_from_the_file,
    {
        'def mended_popped_from_the_file(model, state_dict, head, prefix=""):': """
        def mended_popped_from_the_file(model, state_dict, head, prefix=""):
            def broadcasts(value, like):
                try:
                    value.expand_as(like)
                except RuntimeError:
                    return False
                return True
        """,
        "value.shape == own[name].shape": "broadcasts(value, own[name])",
        "fits[name] = value": "fits[name] = value.expand_as(own[name]).clone()",
    },
    breaks=hidden_tests.skips_other_shapes,
    tells="You let a tensor that broadcasts fill the model's. `copy_` and `expand_as` do that without a word; compare the shapes first.",
)


by_number_of_dimensions = edit(
    mended_popped_from_the_file,
    {
        "and value.shape == own[name].shape": """
        and value.dim() == own[name].dim()
        and value.shape[:1] == own[name].shape[:1]
        """,
        "model.load_state_dict(fits, strict=False)": """
        for name, value in fits.items():
            own[name].copy_(value)
        """,
    },
    breaks=hidden_tests.skips_other_shapes,
    tells="You compare the number of dimensions, or the first of them. The whole shape has to agree.",
)


head_loaded_too = edit(
    mended_popped_from_the_file,
    {
        'and not name.startswith(head + ".")': "",
    },
    breaks=hidden_tests.leaves_the_head,
    tells="You load the head as well. Where the old one has the shape of the new one, the shape does not keep it out: leave it out by its name.",
)


head_without_the_dot = edit(
    mended_popped_from_the_file,
    {'(head + ".")': "(head)"},
    breaks=hidden_tests.leaves_the_head,
    tells='Without a dot `head` also keeps out `head2`, another part. Compare with `head + "."`.',
)

head_anywhere = edit(
    mended_popped_from_the_file,
    {'not name.startswith(head + ".")': "head not in name"},
    breaks=hidden_tests.leaves_the_head,
    tells="You look for the head's name anywhere in the name. What lies under `head` begins with `head.`",
)

head_in_the_files_names = edit(
    mended_popped_from_the_file,
    {"and not name.startswith": "and not key.startswith"},
    breaks=hidden_tests.prefix_and_head,
    tells="You look for the head in the *file's* key, with its prefix. `head` is the model's name for it: take the prefix off first.",
)


prefix_ignored = edit(
    mended_popped_from_the_file,
    {
        ".removeprefix(prefix)": "",
        """
        key.startswith(prefix)
        and name in own
        """: "name in own",
    },
    breaks=hidden_tests.takes_the_prefix_off,
    tells="You do not take the prefix off, so nothing of a wrapped file fits.",
)


prefix_taken_off_everywhere = edit(
    mended_popped_from_the_file,
    {"name = key.removeprefix(prefix)": 'name = key.replace(prefix, "")'},
    breaks=hidden_tests.takes_the_prefix_off,
    tells="`replace` takes the prefix off wherever it stands, twice or in the middle. `removeprefix` takes it off once, at the beginning.",
)


prefix_not_required = edit(
    mended_popped_from_the_file,
    {
        """
        key.startswith(prefix)
        and name in own
        """: "name in own",
    },
    breaks=hidden_tests.takes_the_prefix_off,
    tells="You also load keys that do not begin with the prefix. They belong to something else in the file: skip them.",
)


prefix_as_characters = edit(
    mended_popped_from_the_file,
    {"name = key.removeprefix(prefix)": 'name = key.lstrip(prefix or " ")'},
    breaks=hidden_tests.takes_the_prefix_off,
    tells="`lstrip` takes off *characters*, as many as it finds of them, and so eats into the names. Use `removeprefix`.",
)

nothing_returned = edit(
    mended_popped_from_the_file,
    {"return list(fits), skipped": ""},
    breaks=hidden_tests.reports_both,
    tells="You return nothing. A load that may skip things has to say which: return the two lists.",
)

missing_names_reported = edit(
    mended_popped_from_the_file,
    {
        "return list(fits), skipped": "return list(fits), [name for name in own if name not in fits]",
    },
    breaks=hidden_tests.reports_both,
    tells="Your second list holds names of the model that the file did not have. The *file's keys* that were skipped were asked for.",
)

sets_returned = edit(
    mended_popped_from_the_file,
    {"return list(fits), skipped": "return set(fits), set(skipped)"},
    breaks=hidden_tests.reports_both,
    tells="You return sets. Two lists were asked for.",
)

stripped_keys_reported = edit(
    mended_popped_from_the_file,
    {"skipped.append(key)": "skipped.append(name)"},
    breaks=hidden_tests.takes_the_prefix_off,
    tells="Your second list has the keys without their prefix. They were asked for as the state dict has them.",
)

parameters_alone = edit(
    mended_popped_from_the_file,
    {"own = model.state_dict()": "own = dict(model.named_parameters())"},
    breaks=hidden_tests.loads_what_fits,
    tells="You load parameters and forget the buffers. BatchNorm's running statistics belong to what was learned: `state_dict` has both.",
)

nothing_fits_in_silence = edit(
    mended_popped_from_the_file,
    {
        """
        if not fits:
            raise ValueError
        """: "",
    },
    breaks=hidden_tests.refuses_what_does_not_fit,
    tells="If nothing fits you return as if all were well. A wrong prefix then trains from scratch and nobody hears of it: raise a `ValueError`.",
)

another_error = edit(
    mended_popped_from_the_file,
    {"raise ValueError": "raise RuntimeError"},
    breaks=hidden_tests.refuses_what_does_not_fit,
    tells="You raise another error than the `ValueError` that was asked for.",
)

empty_file_accepted = edit(
    mended_popped_from_the_file,
    {"if not fits:": "if not fits and state_dict:"},
    breaks=hidden_tests.refuses_what_does_not_fit,
    tells="An empty state dict passes in silence. Nothing is loaded from it, so it is refused like the others.",
)

popped_from_the_file = edit(
    mended_popped_from_the_file,
    {
        "model.load_state_dict(fits, strict=False)": """
        for name in fits:
            del state_dict[prefix + name]
        model.load_state_dict(fits, strict=False)
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You take what is loaded out of the caller's state dict. Make a new dict instead.",
)

assigned_storage = edit(
    mended_popped_from_the_file,
    {
        "model.load_state_dict(fits, strict=False)": """
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        for name, value in fits.items():
            tensors[name].data = value
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You put the file's tensors themselves into the model. They share memory from now on: training changes the file, and the dtype is the file's. Copy the values.",
)

by_assign = edit(
    mended_popped_from_the_file,
    {
        "model.load_state_dict(fits, strict=False)": "model.load_state_dict(fits, strict=False, assign=True)",
    },
    breaks=hidden_tests.same_parameters,
    tells="`assign=True` puts new tensors into the model: an optimizer that was made before no longer knows its parameters, and the memory is shared with the file.",
)

dtype_of_the_file = edit(
    mended_popped_from_the_file,
    {
        "model.load_state_dict(fits, strict=False)": """
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        for name, value in fits.items():
            tensors[name].data = value.clone()
        """,
    },
    breaks=hidden_tests.keeps_the_dtypes,
    tells="You give the model copies with the dtype of the file. The model keeps its own: `copy_` and `load_state_dict` round to it.",
)


other_dtypes_skipped = edit(
    mended_popped_from_the_file,
    {
        "and value.shape == own[name].shape": """
        and value.shape == own[name].shape
        and value.dtype == own[name].dtype
        """,
    },
    breaks=hidden_tests.keeps_the_dtypes,
    tells="You skip tensors of another dtype. They fit by name and shape, and are rounded to the model's dtype.",
)


all_thawed = edit(
    mended_popped_from_the_file,
    {
        "model.load_state_dict(fits, strict=False)": """
        model.load_state_dict(fits, strict=False)
        model.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.same_parameters,
    tells="After loading you changed flags or modes of the model. Loading copies numbers; frozen parameters stay frozen.",
)

left_in_eval_mode = edit(
    mended_popped_from_the_file,
    {
        "model.load_state_dict(fits, strict=False)": """
        model.load_state_dict(fits, strict=False)
        model.eval()
        """,
    },
    breaks=hidden_tests.same_parameters,
    tells="After loading you changed flags or modes of the model. Loading copies numbers; the mode is the caller's.",
)

head_between_dots = edit(
    mended_gradients_cleared,
    {'not name.startswith(head + ".")': 'f".{head}." not in f".{name}"'},
    breaks=hidden_tests.leaves_the_head,
    tells="You look for the head's name anywhere in the name. What lies under `head` "
    "begins with `head.`",
)

all_named_buffers = edit(
    mended_gradients_cleared,
    {
        "own = model.state_dict()": """
        own = dict(model.named_parameters(remove_duplicate=False))
        own |= dict(model.named_buffers())
        """,
        "model.load_state_dict(fits, strict=False)": """
        for name, tensor in fits.items():
            own[name].data.copy_(tensor)
        """,
    },
    breaks=hidden_tests.reports_both,
    tells="You also load buffers that the model's state dict does not have "
    "(`persistent=False`). Its names are those of `model.state_dict()`.",
)

second_names_missed = edit(
    mended_gradients_cleared,
    {
        "own = model.state_dict()": """
        own = dict(model.named_parameters())
        in_state = model.state_dict()
        own |= {n: b for n, b in model.named_buffers() if n in in_state}
        """,
    },
    breaks=hidden_tests.loads_what_fits,
    tells="You miss the second name of a shared parameter: `named_parameters` gives it "
    "once. The names of the model are those of its `state_dict()`.",
)


equal_tensors_skipped = edit(
    mended_gradients_cleared,
    {
        "and tensor.shape == own[name].shape": """
        and tensor.shape == own[name].shape
        and not torch.equal(tensor, own[name])
        """,
    },
    breaks=hidden_tests.reports_both,
    tells="You skip what the model has already. It fits, so it counts as loaded.",
)


gradients_cleared = edit(
    mended_gradients_cleared,
    {
        "model.load_state_dict(fits, strict=False)": """
        model.load_state_dict(fits, strict=False)
        model.zero_grad()
        """,
    },
    breaks=hidden_tests.same_parameters,
    tells="You clear the gradients. Loading was to leave the rest of the model as it "
    "is.",
)

file_rounded = edit(
    mended_gradients_cleared,
    {
        "for key, tensor in state_dict.items():": "for key, tensor in list(state_dict.items()):",
        "fits[name] = tensor": "state_dict[key] = fits[name] = tensor.to(own[name].dtype)",
    },
    breaks=hidden_tests.keeps_the_dtypes,
    tells="You round the tensors in the caller's state dict. It was to stay as it was, "
    "also its dtypes.",
)

known_names_alone = edit(
    mended_popped_from_the_file,
    {
        "own = model.state_dict()": """
        kinds = ("weight", "bias", "running_mean", "running_var")
        kinds += ("num_batches_tracked",)
        own = model.state_dict()
        own = {k: v for k, v in own.items() if k.split(".")[-1] in kinds}
        """,
    },
    breaks=hidden_tests.loads_what_fits,
    tells="You load what is called `weight`, `bias` or as in BatchNorm. An LSTM has `weight_ih_l0`, attention has `in_proj_weight`, and a layer of one's own any name. Take every name of the state dict.",
)

counters_forgotten = edit(
    mended_popped_from_the_file,
    {
        "own = model.state_dict()": """
        own = model.state_dict()
        own = {k: v for k, v in own.items() if v.is_floating_point()}
        """,
    },
    breaks=hidden_tests.loads_what_fits,
    tells="You leave `num_batches_tracked` out. It is a buffer of BatchNorm like the others, of integers.",
)

loads_by_way_of_float32 = edit(
    SOLUTION,
    {
        "matching[name] = tensor": "matching[name] = tensor.float() if tensor.is_floating_point() else tensor"
    },
    breaks=hidden_tests.keeps_the_dtypes,
    tells="Every tensor goes through float32. A float64 model loses the digits that its "
    "float64 file has: `load_state_dict` converts where it must.",
)

storage_of_the_file_where_it_has_the_dtype = edit(
    SOLUTION,
    {
        "model.load_state_dict(matching, strict=False)": """
        parameters = dict(model.named_parameters())
        for name, tensor in matching.items():
            if name in parameters:
                parameters[name].data = tensor.to(parameters[name].dtype)
            else:
                own[name].copy_(tensor)
        """,
    },
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You put the file's tensors into the model. `to` copies nothing where the dtype "
    "is right already: they share memory, and training changes the file. Copy the values.",
)

names_of_parameters_and_buffers = edit(
    SOLUTION,
    {
        "own = model.state_dict()": """
        own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        """,
    },
    breaks=[hidden_tests.loads_what_fits, hidden_tests.reports_both],
    tells="You take the names from `named_parameters()` and `named_buffers()`. The first "
    "gives a shared parameter one name alone; the second also gives buffers that are not in "
    "the state dict (`persistent=False`), and these are never loaded. The names are those "
    "of `model.state_dict()`.",
)
