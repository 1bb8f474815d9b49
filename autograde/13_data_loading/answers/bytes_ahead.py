"""Answers to `bytes_ahead` of chapter 13."""

import functools
import math

import numpy as np
import torch
from torch.utils.data import (
    default_collate,
)

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def bytes_by_cases(sample, batch_size, num_workers, prefetch_factor=None):
    def each(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, (np.ndarray, np.generic)):
            return one.nbytes
        if isinstance(one, bool):
            return 1
        if isinstance(one, (int, float)):
            return 8
        if isinstance(one, dict):
            return sum(each(value) for value in one.values())
        if isinstance(one, (list, tuple)):
            return sum(each(value) for value in one)
        return 0

    if prefetch_factor is None:
        prefetch_factor = 2
    return each(sample) * batch_size * num_workers * prefetch_factor


@accepted()
def bytes_with_a_stack(sample, batch_size, num_workers, prefetch_factor=None):
    waiting, total = [sample], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
        elif not isinstance(one, str):
            tensor = torch.as_tensor(one)
            width = tensor.element_size()
            if isinstance(one, float) and not isinstance(one, np.generic):
                width = 8
            total += tensor.numel() * width
    return total * batch_size * num_workers * (prefetch_factor or 2)


@accepted()
def bytes_by_collating(sample, batch_size, num_workers, prefetch_factor=None):
    import torch.utils._pytree as pytree

    leaves = pytree.tree_leaves(default_collate([sample, sample]))
    twice = sum(x.nbytes for x in leaves if isinstance(x, torch.Tensor))
    ahead = num_workers * (2 if prefetch_factor is None else prefetch_factor)
    return twice // 2 * batch_size * ahead


@accepted()
def bytes_by_dispatch(sample, batch_size, num_workers, prefetch_factor=None):
    @functools.singledispatch
    def size(one):
        return np.asarray(one).nbytes

    @size.register
    def _(one: torch.Tensor):
        return one.nbytes

    @size.register
    def _(one: str):
        return 0

    @size.register
    def _(one: dict):
        return sum(map(size, one.values()))

    @size.register(list)
    @size.register(tuple)
    def _(one):
        return sum(map(size, one))

    if num_workers == 0:
        return 0
    return num_workers * (prefetch_factor or 2) * batch_size * size(sample)


@accepted()
def bytes_on_meta(sample, batch_size, num_workers, prefetch_factor=None):
    def shapes(one):
        if isinstance(one, str):
            return []
        if isinstance(one, dict):
            one = list(one.values())
        if isinstance(one, (list, tuple)):
            return [pair for part in one for pair in shapes(part)]
        if isinstance(one, torch.Tensor):
            return [(one.shape, one.dtype)]
        array = np.asarray(one)
        return [(array.shape, torch.from_numpy(np.zeros_like(array)).dtype)]

    total = 0
    for shape, dtype in shapes(sample):
        total += math.prod(shape) * dtype.itemsize
    ahead = 2 if prefetch_factor is None else prefetch_factor
    return total * ahead * batch_size * num_workers


@accepted()
def bytes_by_pytree(sample, batch_size, num_workers, prefetch_factor=None):
    from torch.utils._pytree import tree_leaves

    leaves = tree_leaves(default_collate([sample]))
    sizes = [leaf.nbytes for leaf in leaves if isinstance(leaf, torch.Tensor)]
    ahead = 2 if prefetch_factor is None else prefetch_factor
    return sum(sizes) * batch_size * num_workers * ahead


@accepted()
def bytes_as_a_difference(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.nbytes
        if isinstance(one, str):
            return 0
        return sum(map(size_of, one.values() if isinstance(one, dict) else one))

    two = size_of(default_collate([sample, sample]))
    more = two - size_of(default_collate([sample]))
    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * more


@accepted()
def mended_bytes_without_prefetch(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.generic):
            return one.nbytes
        if isinstance(one, bool):
            return 1
        if isinstance(one, int | float):
            return 8
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@accepted()
def mended_bytes_that_make_it_contiguous(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.number | np.bool_):
            return int(one.nbytes)
        if isinstance(one, str):
            return 0
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 1 if isinstance(one, bool) else 8

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    breaks=[hidden_tests.huge_batches],
    tells="You build the batch to see how large it is. With a large batch "
    "size that takes the memory you wanted to save: one sample tells "
    "all.",
)
def bytes_of_a_real_batch(
    sample, batch_size, num_workers, prefetch_factor=None
):
    if batch_size > 10_000:
        raise MemoryError("the batch does not fit")

    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.nbytes
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    batch = default_collate([sample] * batch_size)
    return num_workers * (prefetch_factor or 2) * size_of(batch)


@wrong(
    breaks=[hidden_tests.huge_batches],
    tells="You change the sample on the way. It belongs to the caller: work "
    "on what it shows, or on a copy.",
)
def bytes_that_spoil_the_sample(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.nbytes
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    if isinstance(sample, torch.Tensor) and sample.is_floating_point():
        sample.zero_()
    ahead = 2 if prefetch_factor is None else prefetch_factor
    batch_of_one = default_collate([sample])
    return num_workers * ahead * batch_size * size_of(batch_of_one)


@wrong(
    breaks=hidden_tests.counts_nested_samples,
    tells="You count a tensor that stands at two places once. Collating copies it "
    "to both.",
)
def bytes_by_identity(sample, batch_size, num_workers, prefetch_factor=None):
    known = {}

    def size_of(one):
        if isinstance(one, torch.Tensor):
            if id(one) in known:
                return 0
            known[id(one)] = one
            return one.numel() * one.element_size()
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        if isinstance(one, str):
            return 0
        return default_collate([one]).nbytes

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    breaks=hidden_tests.counts_nested_samples,
    tells="You go two levels deep. Samples may be nested deeper: let the function "
    "call itself.",
)
def bytes_of_two_levels(sample, batch_size, num_workers, prefetch_factor=None):
    def opened(parts):
        found = []
        for one in parts:
            if isinstance(one, dict):
                found.extend(one.values())
            elif isinstance(one, list | tuple):
                found.extend(one)
            else:
                found.append(one)
        return found

    def leaf(one):
        if isinstance(one, str | dict | list | tuple):
            return 0
        return default_collate([one]).nbytes

    ahead = 2 if prefetch_factor is None else prefetch_factor
    each = sum(map(leaf, opened(opened([sample]))))
    return num_workers * ahead * batch_size * each


@wrong(
    breaks=hidden_tests.counts_numbers,
    tells="You make one tensor of a list of numbers, in float32. Collating makes a "
    "tensor of each number, in float64.",
)
def bytes_of_lists_as_tensors(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, str):
            return 0
        if isinstance(one, list) and all(type(x) is float for x in one):
            return torch.tensor(one).nbytes
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return default_collate([one]).nbytes

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)
