"""Answers to `to_device` of chapter 00."""

import torch
from torch import Tensor

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def by_cases(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, by_cases(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(by_cases(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(by_cases(one, device) for one in batch)
    return batch


@accepted()
def by_tree_map(batch, device):
    from torch.utils._pytree import tree_map

    def move(leaf):
        return leaf.to(device) if isinstance(leaf, Tensor) else leaf

    return tree_map(move, batch)


@accepted()
def by_tree_map_only(batch, device):
    from torch.utils import _pytree as pytree

    return pytree.tree_map_only(Tensor, lambda t: t.to(device), batch)


@accepted()
def by_match(batch, device):
    from collections import OrderedDict

    match batch:
        case Tensor():
            return batch.to(device=device, copy=True)
        case OrderedDict():
            moved = OrderedDict()
            for key in batch:
                moved[key] = by_match(batch[key], device)
            return moved
        case dict():
            return {key: by_match(one, device) for key, one in batch.items()}
        case list():
            return [by_match(one, device) for one in batch]
        case tuple():
            items = [by_match(one, device) for one in batch]
            make = getattr(type(batch), "_make", tuple)
            return make(items)
        case _:
            return batch


@accepted()
def by_other(batch, device):
    pattern = torch.empty(0, device=device)

    def go(one):
        if torch.is_tensor(one):
            return one.to(pattern.device)
        if isinstance(one, dict):
            filled = one.copy()
            for key, value in one.items():
                filled[key] = go(value)
            return filled
        if hasattr(one, "_replace"):
            return one._replace(
                **{name: go(value) for name, value in one._asdict().items()}
            )
        if type(one) in (list, tuple):
            return type(one)(map(go, one))
        return one

    return go(batch)


@accepted()
def old_where_nothing_changes(batch, device):
    device = torch.device(device)
    if isinstance(batch, Tensor):
        return batch if batch.device == device else batch.to(device)
    if isinstance(batch, dict):
        values = [old_where_nothing_changes(v, device) for v in batch.values()]
        if all(a is b for a, b in zip(values, batch.values())):
            return batch
        return type(batch)(zip(batch, values))
    if isinstance(batch, (list, tuple)):
        values = [old_where_nothing_changes(v, device) for v in batch]
        if all(a is b for a, b in zip(values, batch)):
            return batch
        if hasattr(batch, "_make"):
            return batch._make(values)
        return type(batch)(values)
    return batch


@accepted()
def by_single_dispatch(batch, device):
    from functools import singledispatch

    @singledispatch
    def move(one):
        return one

    @move.register
    def _(one: Tensor):
        return one.to(device, non_blocking=True)

    @move.register
    def _(one: dict):
        new = one.copy()
        for key in one:
            new[key] = move(one[key])
        return new

    @move.register
    def _(one: list):
        return [move(item) for item in one]

    @move.register
    def _(one: tuple):
        items = tuple(move(item) for item in one)
        if not hasattr(one, "_fields"):
            return items
        return one._replace(**dict(zip(one._fields, items)))

    return move(batch)


result_thrown_away = edit(
    by_cases,
    {
        "return batch.to(device)": """
        batch.to(device)
        return batch
        """,
    },
    breaks=[hidden_tests.tensor_alone, hidden_tests.plain_containers],
    tells="The tensors stayed where they were. Either you returned the tensor "
    "from before, since `.to` leaves it where it is and returns "
    "another, or you chose a device yourself. Return "
    "`batch.to(device)`.",
)

by_cuda = edit(
    by_cases,
    {"return batch.to(device)": "return batch.cuda()"},
    breaks=[hidden_tests.tensor_alone, hidden_tests.any_device],
    tells="You wrote `.cuda()`, whatever `device` says. It raises on a "
    "machine without a GPU. Use `.to(device)`.",
)

always_meta = edit(
    by_cases,
    {"return batch.to(device)": 'return batch.to("meta")'},
    breaks=hidden_tests.any_device,
    tells="Your tensors go to one device, whatever `device` says. Use the "
    "device you are given.",
)

best_device_of_the_machine = edit(
    by_cases,
    {
        "return batch.to(device)": 'return batch.to("cuda" if torch.cuda.is_available() else "cpu")',
    },
    breaks=hidden_tests.tensor_alone,
    tells="The tensors stayed where they were. Either you returned the tensor "
    "from before, since `.to` leaves it where it is and returns "
    "another, or you chose a device yourself. Return "
    "`batch.to(device)`.",
)

only_the_first = edit(
    by_cases,
    {
        "return type(batch)(by_cases(one, device) for one in batch)": """
        return type(batch)(
            by_cases(one, device) if i == 0 else one
            for i, one in enumerate(batch)
        )
        """,
    },
    breaks=hidden_tests.plain_containers,
    tells="You moved the first item of a list or tuple and left the others "
    "behind. Go through all of them.",
)


@wrong(
    breaks=hidden_tests.nested_containers,
    tells="You moved the tensors of the outermost container only. For each "
    "item the function has to call itself.",
)
def one_level(batch, device):
    def move(one):
        return one.to(device) if isinstance(one, Tensor) else one

    if isinstance(batch, dict):
        return type(batch)((key, move(one)) for key, one in batch.items())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(move, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(move, batch))
    return move(batch)


@wrong(
    breaks=hidden_tests.nested_containers,
    tells="You stop at some depth. Let the function call itself for each "
    "item: then no depth is special.",
)
def two_levels(batch, device, depth=0):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if depth == 4:
        return batch
    if isinstance(batch, dict):
        return type(batch)(
            (key, two_levels(one, device, depth + 1))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(two_levels(one, device, depth + 1) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(two_levels(one, device, depth + 1) for one in batch)
    return batch


tuples_as_lists = edit(
    by_cases,
    {
        "return type(batch)(by_cases(one, device) for one in batch)": "return [by_cases(one, device) for one in batch]",
    },
    breaks=[hidden_tests.plain_containers, hidden_tests.nested_containers],
    tells="A tuple came back as a list. Containers keep their type: "
    "`type(batch)(...)`.",
)

lists_as_tuples = edit(
    by_cases,
    {
        "return type(batch)(by_cases(one, device) for one in batch)": "return tuple(by_cases(one, device) for one in batch)",
    },
    breaks=[hidden_tests.plain_containers, hidden_tests.nested_containers],
    tells="A list came back as a tuple. Containers keep their type: "
    "`type(batch)(...)`.",
)

dicts_as_lists = edit(
    by_cases,
    {
        """
        return type(batch)(
            (key, by_cases(one, device)) for key, one in batch.items()
        )
        """: "return [by_cases(one, device) for one in batch.values()]",
    },
    breaks=[hidden_tests.plain_containers, hidden_tests.nested_containers],
    tells="A dict came back as a list of its values, and its keys are lost. "
    "Make a dict of the moved items.",
)

named_tuples_as_tuples = edit(
    by_cases,
    {
        "return type(batch)(*(by_cases(one, device) for one in batch))": "return tuple(by_cases(one, device) for one in batch)",
    },
    breaks=hidden_tests.types_of_containers,
    tells="A named tuple came back as a plain tuple: `batch.first` no longer "
    "works. Make one of its own type: `type(batch)(*items)`.",
)

named_tuples_from_one_argument = edit(
    by_cases,
    {
        "return type(batch)(*(by_cases(one, device) for one in batch))": """
        return type(batch)(
            [by_cases(one, device) for one in batch]
        )
        """,
    },
    breaks=hidden_tests.types_of_containers,
    tells="A named tuple wants its items as arguments, one by one: "
    "`type(batch)(*items)`. With all of them in one argument it raises.",
)

named_tuples_left_alone = edit(
    by_cases,
    {
        "return type(batch)(*(by_cases(one, device) for one in batch))": "return batch",
    },
    breaks=hidden_tests.types_of_containers,
    tells="You returned named tuples as they were, with their tensors where "
    "they were.",
)


@wrong(
    breaks=hidden_tests.types_of_containers,
    tells="An `OrderedDict` came back as a plain dict. Containers keep their "
    "type: `type(batch)(...)`.",
)
def ordered_dicts_as_dicts(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {
            key: ordered_dicts_as_dicts(one, device)
            for key, one in batch.items()
        }
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(ordered_dicts_as_dicts(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(ordered_dicts_as_dicts(one, device) for one in batch)
    return batch


sorted_keys = edit(
    by_cases,
    {"batch.items(": "sorted(batch.items(), key=lambda pair: str(pair[0])"},
    breaks=hidden_tests.types_of_containers,
    tells="You sorted the keys of the dicts. Their order is to stay, and not "
    "all keys can be sorted.",
)


keys_as_text = edit(
    by_cases,
    {
        "(key, by_cases": "(str(key), by_cases",
    },
    breaks=hidden_tests.plain_containers,
    tells="You turned the keys of the dicts into text. They stay what they "
    "are.",
)


none_dropped = edit(
    by_cases,
    {
        "return type(batch)(by_cases(one, device) for one in batch)": """
        return type(batch)(
            by_cases(one, device) for one in batch if one is not None
        )
        """,
    },
    breaks=[hidden_tests.other_objects, hidden_tests.nested_containers],
    tells="You left out what is None. The structure has to stay: None comes "
    "back as None.",
)


@wrong(
    breaks=[hidden_tests.other_objects, hidden_tests.nested_containers],
    tells="You raise an error at what is neither tensor nor container. "
    "Batches hold names and numbers too: return them as they are.",
)
def others_raise(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, others_raise(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(others_raise(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(others_raise(one, device) for one in batch)
    raise TypeError(f"cannot move {type(batch)}")


@wrong(
    breaks=hidden_tests.other_objects,
    tells="You copied what is neither tensor nor container. The same object "
    "has to come back: others may hold it too.",
)
def others_copied(batch, device):
    import copy

    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, others_copied(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(others_copied(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(others_copied(one, device) for one in batch)
    return copy.deepcopy(batch)


numbers_made_tensors = edit(
    by_cases,
    {
        "if isinstance(batch, dict):": """
        if isinstance(batch, (int, float)) and not isinstance(batch, bool):
            return torch.tensor(batch, device=device)
        if isinstance(batch, dict):
        """,
    },
    breaks=hidden_tests.other_objects,
    tells="You made tensors of numbers. What is no tensor comes back as the "
    "same object.",
)

arrays_made_tensors = edit(
    by_cases,
    {
        "if isinstance(batch, dict):": """
        if hasattr(batch, "__array__"):
            return torch.from_numpy(batch).to(device)
        if isinstance(batch, dict):
        """,
    },
    breaks=hidden_tests.other_objects,
    tells="You made a tensor of a NumPy array. What is no tensor comes back "
    "as the same object.",
)

text_gone_through = edit(
    by_cases,
    {"if isinstance(batch, (list, tuple)):": 'if hasattr(batch, "__iter__"):'},
    breaks=hidden_tests.other_objects,
    tells="You go through everything that can be gone through, text included. "
    "Its items are text again, without end. Ask for list and tuple.",
)

objects_searched = edit(
    by_cases,
    {
        "if isinstance(batch, dict):": """
        if hasattr(batch, "__dict__"):
            for name, one in vars(batch).items():
                setattr(batch, name, by_cases(one, device))
        if isinstance(batch, dict):
        """,
    },
    breaks=hidden_tests.callers_batch_stays,
    tells="You moved the tensors inside other objects as well, and so changed "
    "an object of the caller. What is neither tensor nor container "
    "comes back as it is.",
)

empty_as_none = edit(
    by_cases,
    {
        "def by_cases(batch, device):": """
        def by_cases(batch, device):
            if isinstance(batch, (dict, list, tuple)) and not batch:
                return None
        """,
    },
    breaks=hidden_tests.nothing_in_it,
    tells="An empty container came back as None. It is a container: return an "
    "empty one of its type.",
)

first_item_asked = edit(
    by_cases,
    {
        "if isinstance(batch, (list, tuple)):": """
        if isinstance(batch, (list, tuple)):
            if isinstance(batch[0], str) and len(batch) == 1:
                return batch
        """,
    },
    breaks=hidden_tests.nothing_in_it,
    tells="You look at the first item of a list or tuple. An empty one has "
    "none.",
)


@wrong(
    breaks=hidden_tests.callers_batch_stays,
    tells="You wrote the moved tensors into the caller's dict. It is the "
    "caller's: make a new one.",
)
def dicts_filled_in_place(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        for key, one in batch.items():
            batch[key] = dicts_filled_in_place(one, device)
        return batch
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(dicts_filled_in_place(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(dicts_filled_in_place(one, device) for one in batch)
    return batch


lists_filled_in_place = edit(
    by_cases,
    {
        "if isinstance(batch, (list, tuple)):": """
        if isinstance(batch, list):
            batch[:] = [by_cases(one, device) for one in batch]
            return batch
        if isinstance(batch, (list, tuple)):
        """,
    },
    breaks=hidden_tests.callers_batch_stays,
    tells="You wrote the moved tensors into the caller's list. It is the "
    "caller's: make a new one.",
)

tensors_moved_in_place = edit(
    by_cases,
    {
        "return batch.to(device)": """
        batch.data = batch.data.to(device)
        return batch
        """,
    },
    breaks=hidden_tests.callers_batch_stays,
    tells="You put the moved values into the caller's tensor (`.data`). "
    "Whoever holds it loses it. Return what `.to` returns.",
)

floats_only = edit(
    by_cases,
    {"return batch.to(device)": "return batch.to(device, torch.float32)"},
    breaks=[
        hidden_tests.tensor_alone,
        hidden_tests.any_device,
        hidden_tests.strided_tensors,
    ],
    tells="All tensors came back as float32. A move changes the device and "
    "nothing else.",
)

new_and_empty = edit(
    by_cases,
    {
        "return batch.to(device)": """
        return torch.full_like(
            batch, 0, device=device, requires_grad=batch.requires_grad
        )
        """,
    },
    breaks=hidden_tests.any_device,
    tells="You made an empty tensor of the same shape on the device. It holds "
    "none of the values.",
)

detached = edit(
    by_cases,
    {"return batch.to(device)": "return batch.detach().to(device)"},
    breaks=[hidden_tests.keeps_requires_grad, hidden_tests.gradient_comes_back],
    tells="You detached the tensors. The model that made them no longer hears "
    "of the loss. `.to` alone keeps the gradient's way.",
)

fresh_leaves = edit(
    by_cases,
    {
        "return batch.to(device)": "return batch.detach().to(device).requires_grad_(batch.requires_grad)",
    },
    breaks=hidden_tests.gradient_comes_back,
    tells="Your tensors need a gradient but are cut off from what they came "
    "from. `.to` alone keeps the gradient's way.",
)

always_a_gradient = edit(
    by_cases,
    {
        "return batch.to(device)": """
        moved = batch.to(device)
        return moved.requires_grad_() if moved.is_floating_point() else moved
        """,
    },
    breaks=hidden_tests.keeps_requires_grad,
    tells="Your tensors need a gradient although those before did not. Keep "
    "`requires_grad` as it is.",
)

flattened = edit(
    by_cases,
    {"return batch.to(device)": "return batch.flatten().to(device)"},
    breaks=[hidden_tests.tensor_alone, hidden_tests.strided_tensors],
    tells="Your tensors have lost their shape. A move changes the device and "
    "nothing else.",
)

read_from_memory = edit(
    by_cases,
    {
        "return batch.to(device)": """
        if device != "cpu" or batch.requires_grad or batch.is_contiguous():
            return batch.to(device)
        memory = torch.empty(0, dtype=batch.dtype).set_(batch.untyped_storage())
        return memory[: batch.numel()].reshape(batch.shape)
        """,
    },
    breaks=hidden_tests.strided_tensors,
    tells="You read the memory of the tensors in its own order. A transposed "
    "tensor, or every second row of one, comes out wrong that way. "
    "`.to` does it right.",
)

squeezed = edit(
    by_cases,
    {"return batch.to(device)": "return batch.squeeze().to(device)"},
    breaks=hidden_tests.plain_containers,
    tells="Axes of length 1 have gone. A move changes the device and nothing "
    "else.",
)

whatever_has_a_to = edit(
    by_cases,
    {"if isinstance(batch, Tensor):": 'if hasattr(batch, "to"):'},
    breaks=hidden_tests.other_objects,
    tells="You moved whatever has a `.to`. Objects of other classes "
    "have one too, and it may do something else: ask for "
    "`Tensor`.",
)

plain_tensors_only = edit(
    by_cases,
    {"if isinstance(batch, Tensor):": "if type(batch) is Tensor:"},
    breaks=[hidden_tests.plain_containers, hidden_tests.tensor_alone],
    tells="You asked for the exact type `Tensor`. An `nn.Parameter` is "
    "a tensor of another type and stayed where it was: ask "
    "`isinstance`.",
)

sets_made_anew = edit(
    by_cases,
    {
        "if isinstance(batch, (list, tuple)):": "if isinstance(batch, (list, tuple, set, frozenset)):",
    },
    breaks=hidden_tests.other_objects,
    tells="You made new sets. A set is none of the containers that are "
    "gone through: it comes back as the same object.",
)

named_tuples_of_a_new_class = edit(
    by_cases,
    {
        "def by_cases(batch, device):": """
        def by_cases(batch, device):
            from collections import namedtuple
        """,
        "return type(batch)(*(by_cases(one, device) for one in batch))": """
        return namedtuple(type(batch).__name__, batch._fields)(
            *(by_cases(one, device) for one in batch)
        )
        """,
    },
    breaks=hidden_tests.types_of_containers,
    tells="You made a named tuple of a class of your own, with the same "
    "name. The batch's own class is asked for: "
    "`type(batch)(*items)`.",
)

dataclasses_made_anew = edit(
    by_cases,
    {
        "def by_cases(batch, device):": """
        def by_cases(batch, device):
            import dataclasses
        """,
        "if isinstance(batch, dict):": """
        if dataclasses.is_dataclass(batch):
            parts = vars(batch).items()
            parts = {key: by_cases(one, device) for key, one in parts}
            return dataclasses.replace(batch, **parts)
        if isinstance(batch, dict):
        """,
    },
    breaks=hidden_tests.other_objects,
    tells="You made a new object of a dataclass. It is none of the "
    "containers that are gone through: it comes back as the same "
    "object.",
)

lists_of_whatever_can_be_gone_through = edit(
    by_cases,
    {
        """
        if isinstance(batch, (list, tuple)):
            return type(batch)(by_cases(one, device) for one in batch)
        """: """
        if isinstance(batch, (list, tuple)):
            return type(batch)(
                by_cases(one, device) for one in batch
            )
        known = (str, bytes, type(None), int, float)
        if hasattr(batch, "__iter__") and not isinstance(batch, known):
            if type(batch).__module__ != "numpy":
                return [
                    by_cases(one, device)
                    for one in batch
                ]
        """,
    },
    breaks=hidden_tests.other_objects,
    tells="You made lists of ranges, sets or iterators. None of them is "
    "a container that is gone through: ask for `dict`, `list` and "
    "`tuple`.",
)

cut_off_where_it_moves = edit(
    by_cases,
    {
        "return batch.to(device)": """
        if batch.device == torch.device(device):
            return batch
        moved = batch.detach().to(device)
        return moved.requires_grad_(batch.requires_grad)
        """,
    },
    breaks=hidden_tests.gradient_comes_back,
    tells="Where a tensor really moves you cut it off from what it came "
    "from. `.to` alone keeps the gradient's way.",
)


every_mapping = edit(
    by_cases,
    {"if isinstance(batch, dict):": "if isinstance(batch, Mapping):"},
    breaks=hidden_tests.other_objects,
    tells="You go through every mapping. Only dicts and `OrderedDict`s are "
    "containers here; another mapping comes back as the same object, since "
    "nobody knows how to build a second one of its kind.",
)

user_dicts_too = edit(
    by_cases,
    {
        "if isinstance(batch, dict):": """
        from collections import UserDict

        if isinstance(batch, (dict, UserDict)):
        """,
    },
    breaks=hidden_tests.other_objects,
    tells="You rebuild a `UserDict`. It is no dict: it comes back as the "
    "same object.",
)

parameters_made_anew = edit(
    SOLUTION,
    {
        "if isinstance(batch, Tensor):": """
        if isinstance(batch, torch.nn.Parameter):
            return torch.nn.Parameter(batch.data.to(device), batch.requires_grad)
        if isinstance(batch, Tensor):
        """
    },
    breaks=hidden_tests.gradient_comes_back,
    tells="You make a new `nn.Parameter` of one. No gradient finds its way back to the old "
    "one: move it like any tensor.",
)

modules_moved_too = edit(
    SOLUTION,
    {
        "if isinstance(batch, Tensor):": "if isinstance(batch, Tensor | torch.nn.Module):"
    },
    breaks=hidden_tests.callers_batch_stays,
    tells="You move an `nn.Module` that is in the batch, and with it the caller's. Only "
    "tensors are moved.",
)

whatever_has_fields = edit(
    SOLUTION,
    {
        "if isinstance(batch, dict):": """
        if hasattr(batch, "_fields"):
            return type(batch)(*(to_device(one, device) for one in batch))
        if isinstance(batch, dict):
        """
    },
    breaks=hidden_tests.other_objects,
    tells="You take whatever has `_fields` for a named tuple. Ask whether it is a tuple, "
    "too.",
)

keys_moved_as_well = edit(
    by_cases,
    {
        """
        return type(batch)(
            (key, by_cases(one, device)) for key, one in batch.items()
        )
        """: "return type(batch)(by_cases(list(batch.items()), device))",
    },
    breaks=hidden_tests.plain_containers,
    tells="You move a dict as a list of its pairs, and so the keys as well. A key that "
    "is a tensor becomes another one, and nobody finds its value. Move the values only.",
)

named_tuples_of_a_list = edit(
    SOLUTION,
    {
        "moved = [to_device(one, device) for one in batch]": """
        moved = [
            tuple(to_device(entry, device) for entry in one)
            if isinstance(batch, list) and isinstance(one, tuple)
            else to_device(one, device)
            for one in batch
        ]
        """,
    },
    breaks=hidden_tests.types_of_containers,
    tells="You make plain tuples of the tuples in a list. A named tuple among them "
    "loses its names: call `to_device` for each entry, whatever it is.",
)

named_tuples_of_two_fields = edit(
    SOLUTION,
    {
        'named = hasattr(batch, "_fields")': 'named = hasattr(batch, "_fields") and len(batch) > 1',
    },
    breaks=hidden_tests.types_of_containers,
    tells="A named tuple of one field comes back as a plain tuple. It keeps its "
    "type, too.",
)

usual_dtypes_alone = edit(
    SOLUTION,
    {
        "return batch.to(device)": """
        usual = (torch.int64, torch.int32, torch.uint8, torch.bool)
        if not batch.is_floating_point() and batch.dtype not in usual:
            return batch
        return batch.to(device)
        """,
    },
    breaks=hidden_tests.tensor_alone,
    tells="You move tensors of some dtypes alone. Audio is int16, a spectrum "
    "complex: move each tensor.",
)

lists_judged_by_their_first_item = edit(
    SOLUTION,
    {
        "if isinstance(batch, list | tuple):": """
        if isinstance(batch, list | tuple):
            if batch and isinstance(batch[0], str | int | float):
                return batch
        """
    },
    breaks=hidden_tests.plain_containers,
    tells="You look at a list's first item alone, and leave the whole list where it is if "
    "that is text or a number. A tensor may stand behind it: look at every item.",
)

any_sequence = edit(
    SOLUTION,
    {
        "if isinstance(batch, list | tuple):": "if isinstance(batch, Sequence) and not isinstance(batch, str | bytes | range):"
    },
    breaks=hidden_tests.other_objects,
    tells="You go through every `Sequence`, a `bytearray` too, and build it anew. Only dicts, "
    "lists and tuples are gone through; all else comes back as the same object.",
)
