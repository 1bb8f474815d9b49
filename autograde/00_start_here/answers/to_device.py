"""Answers to `to_device` of chapter 00."""

import torch
from torch import Tensor

from course_grader.bank import accepted, wrong

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
