"""Answers to `bytes_ahead` of chapter 13."""

import functools
import math

import numpy as np
import torch
from torch.utils.data import (
    default_collate,
)

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


bytes_without_prefetch = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": "return num_workers * batch_size * size_of(sample)",
    },
    breaks=[hidden_tests.counts_tensors, hidden_tests.workers_and_prefetch],
    tells="You count one batch per worker. Each worker keeps "
    "`prefetch_factor` of them ahead.",
)

bytes_of_one_worker = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": "return min(num_workers, 1) * ahead * batch_size * size_of(sample)",
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You count the batches of one worker. All workers share the same "
    "memory.",
)

bytes_of_single_samples = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": "return num_workers * ahead * size_of(sample)",
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You count samples, but whole batches wait: multiply by "
    "`batch_size`.",
)

bytes_with_the_one_in_hand = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": """
        each = batch_size * size_of(sample)
        return (num_workers * ahead + 1) * each if num_workers else 0
        """,
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You add the batch that the training loop holds. Asked for are "
    "those ahead of it.",
)

bytes_without_workers_as_one = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": "return max(num_workers, 1) * ahead * batch_size * size_of(sample)",
    },
    breaks=[hidden_tests.workers_and_prefetch],
    tells="Without workers nothing is put into shared memory: 0 workers take "
    "0 bytes.",
)

bytes_without_workers_of_one_batch = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": """
        each = batch_size * size_of(sample)
        return num_workers * ahead * each if num_workers else each
        """,
    },
    breaks=[hidden_tests.workers_and_prefetch],
    tells="Without workers nothing is put into shared memory: 0 workers take "
    "0 bytes.",
)

bytes_with_none_as_one = edit(
    mended_bytes_without_prefetch,
    {
        "ahead = 2 if prefetch_factor is None else prefetch_factor": "ahead = 1 if prefetch_factor is None else prefetch_factor",
    },
    breaks=[hidden_tests.workers_and_prefetch],
    tells="`prefetch_factor=None` is 2 in a DataLoader with workers. You take "
    "1.",
)

bytes_always_two_ahead = edit(
    mended_bytes_without_prefetch,
    {"ahead = 2 if prefetch_factor is None else prefetch_factor": "ahead = 2"},
    breaks=[hidden_tests.counts_tensors],
    tells="You always take 2 batches ahead. That is the default only; use "
    "`prefetch_factor`.",
)

bytes_without_a_default = edit(
    mended_bytes_without_prefetch,
    {
        "ahead = 2 if prefetch_factor is None else prefetch_factor": "ahead = prefetch_factor",
    },
    breaks=[hidden_tests.workers_and_prefetch],
    tells="`prefetch_factor` may be None, or left out. That is 2, and not a "
    "number to multiply by.",
)

bytes_of_float32 = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": "return one.numel() * 4",
        "return one.nbytes": "return one.size * 4",
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You count 4 bytes per element whatever the dtype. `element_size()` "
    "knows how many it has.",
)

bytes_of_bits = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": """
        return (
            one.numel()
            if one.dtype in (torch.float16, torch.bfloat16)
            else one.numel() * one.element_size()
        )
        """,
    },
    breaks=[hidden_tests.counts_tensors],
    tells="`bool` and the small integers take a whole byte each, and half "
    "precision two. You count some dtypes wrongly.",
)

bytes_of_complex_halves = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": "return one.numel() * (4 if one.is_complex() else one.element_size())",
    },
    breaks=[hidden_tests.counts_tensors],
    tells="A complex number has two parts: complex64 takes 8 bytes. Ask "
    "`element_size()`.",
)

bytes_of_the_storage = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": "return one.untyped_storage().nbytes()",
    },
    breaks=[hidden_tests.counts_what_a_view_shows],
    tells="You count the memory behind a view. The batch is a copy, with just "
    "the elements that the view shows: `numel() * element_size()`.",
)

bytes_of_the_bases = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": "return one.untyped_storage().nbytes()",
        "return one.nbytes": """
        base = getattr(one, "base", None)
        return one.nbytes if base is None else base.nbytes
        """,
    },
    breaks=[hidden_tests.counts_what_a_view_shows],
    tells="You count the memory behind a view. The batch is a copy, with just "
    "the elements that the view shows: `numel() * element_size()`.",
)

bytes_of_expanded_views_once = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": """
        return min(
            one.numel() * one.element_size(), one.untyped_storage().nbytes()
        )
        """,
    },
    breaks=[hidden_tests.counts_what_a_view_shows],
    tells="An expanded tensor is copied in full: each of its elements takes "
    "memory in the batch, also where they shared it before.",
)

bytes_of_the_first_dimension = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": "return (len(one) if one.dim() else 1) * one.element_size()",
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You count rows, by `len`. A tensor's elements are `numel()`.",
)

bytes_with_a_sample_dimension_less = edit(
    mended_bytes_without_prefetch,
    {
        "return one.numel() * one.element_size()": """
        return (
            one[:1].numel() * one.element_size()
            if one.dim()
            else one.nbytes
        )
        """,
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You leave the first dimension out, as if the sample already were a "
    "batch. The sample is one item; the batch gets a dimension more.",
)

bytes_with_bools_as_ints = edit(
    mended_bytes_without_prefetch,
    {
        """
        if isinstance(one, bool):
            return 1
        """: "",
    },
    breaks=[hidden_tests.counts_numbers],
    tells="A bool becomes a tensor of bools: 1 byte. In Python a bool is an "
    "int as well, so ask for `bool` first.",
)

bytes_with_floats_of_four = edit(
    mended_bytes_without_prefetch,
    {"return 8": "return 4 if isinstance(one, float) else 8"},
    breaks=[hidden_tests.counts_numbers],
    tells="Python floats are collated as float64: 8 bytes, not the 4 of "
    "PyTorch's default dtype.",
)

bytes_with_numbers_of_four = edit(
    mended_bytes_without_prefetch,
    {"return 8": "return 4"},
    breaks=[hidden_tests.counts_numbers],
    tells="Python ints are collated as int64, floats as float64: 8 bytes "
    "each. You count 4.",
)

bytes_with_small_ints = edit(
    mended_bytes_without_prefetch,
    {"return 8": "return 1 if isinstance(one, int) and abs(one) < 128 else 8"},
    breaks=[hidden_tests.counts_numbers],
    tells="You take the size that a number would need, or that its Python "
    "object has. Collated, an int or a float takes 8 bytes.",
)

bytes_of_python_objects = edit(
    mended_bytes_without_prefetch,
    {"return 8": "return one.__sizeof__()"},
    breaks=[hidden_tests.counts_numbers],
    tells="You take the size that a number would need, or that its Python "
    "object has. Collated, an int or a float takes 8 bytes.",
)

bytes_without_numbers = edit(
    mended_bytes_without_prefetch,
    {
        """
        if isinstance(one, bool):
            return 1
        if isinstance(one, int | float):
            return 8
        """: "",
    },
    breaks=[hidden_tests.counts_numbers],
    tells="You count no Python numbers. A label that is an int becomes an "
    "int64 in the batch: 8 bytes.",
)

bytes_without_arrays = edit(
    mended_bytes_without_prefetch,
    {
        """
        if isinstance(one, np.ndarray | np.generic):
            return one.nbytes
        """: "",
    },
    breaks=[hidden_tests.counts_numpy],
    tells="You do not count NumPy's arrays or scalars. Collating makes "
    "tensors of them.",
)

bytes_without_scalars = edit(
    mended_bytes_without_prefetch,
    {
        "if isinstance(one, np.ndarray | np.generic):": "if isinstance(one, np.ndarray):",
    },
    breaks=[hidden_tests.counts_numpy],
    tells="NumPy scalars are collated, too, and keep their dtype. You count "
    "none of them, or all with 8 bytes.",
)

bytes_with_scalars_of_eight = edit(
    mended_bytes_without_prefetch,
    {
        "return one.nbytes": "return one.nbytes if isinstance(one, np.ndarray) else 8",
    },
    breaks=[hidden_tests.counts_numpy],
    tells="NumPy scalars are collated, too, and keep their dtype. You count "
    "none of them, or all with 8 bytes.",
)

bytes_of_arrays_as_float32 = edit(
    mended_bytes_without_prefetch,
    {
        "return one.nbytes": "return 4 * one.size if isinstance(one, np.ndarray) else one.nbytes",
    },
    breaks=[hidden_tests.counts_numpy],
    tells="Collating keeps the dtype of a NumPy array: float64 stays float64, "
    "int16 stays int16. You count 4 bytes per element.",
)

bytes_with_strings = edit(
    mended_bytes_without_prefetch,
    {"return 0": "return len(one.encode())"},
    breaks=[hidden_tests.strings_count_nothing],
    tells="You count the letters of strings. A string becomes no tensor: it "
    "goes through a pipe.",
)

bytes_that_refuse_strings = edit(
    mended_bytes_without_prefetch,
    {"return 0": 'raise TypeError("no tensor")'},
    breaks=[hidden_tests.strings_count_nothing],
    tells="You raise where a sample holds a string. It is allowed, and counts "
    "0.",
)

bytes_of_the_surface = edit(
    mended_bytes_without_prefetch,
    {
        "return sum(map(size_of, one.values()))": """
        return sum(
            size_of(x)
            for x in one.values()
            if not isinstance(x, dict | list | tuple)
        )
        """,
        "return sum(map(size_of, one))": """
        inner = [x for x in one if not isinstance(x, dict | list | tuple)]
        return sum(map(size_of, inner))
        """,
    },
    breaks=[hidden_tests.counts_nested_samples],
    tells="You go one level deep. Samples may be nested as deep as they like: "
    "call the function for what is inside.",
)

bytes_without_dicts = edit(
    mended_bytes_without_prefetch,
    {
        """
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        """: "",
    },
    breaks=[hidden_tests.counts_nested_samples],
    tells="A sample may be a dict. You do not count what is in it.",
)

bytes_without_lists = edit(
    mended_bytes_without_prefetch,
    {"if isinstance(one, list | tuple):": "if isinstance(one, tuple):"},
    breaks=[hidden_tests.counts_nested_samples],
    tells="A sample may be a list as well as a tuple. You do not count what "
    "is in it.",
)

bytes_of_exact_tuples = edit(
    mended_bytes_without_prefetch,
    {"if isinstance(one, list | tuple):": "if type(one) in (list, tuple):"},
    breaks=[hidden_tests.counts_nested_samples],
    tells="A named tuple is a tuple of its own kind. `type(x) is tuple` is "
    "false for it; use `isinstance`.",
)

bytes_of_the_input_alone = edit(
    mended_bytes_without_prefetch,
    {"return sum(map(size_of, one))": "return size_of(one[0])"},
    breaks=[hidden_tests.counts_nested_samples, hidden_tests.counts_numbers],
    tells="You count the first part of a sample. The label travels with it.",
)

bytes_of_the_largest_part = edit(
    mended_bytes_without_prefetch,
    {
        "return sum(map(size_of, one.values()))": "return max(map(size_of, one.values()))",
        "return sum(map(size_of, one))": "return max(map(size_of, one))",
    },
    breaks=[hidden_tests.counts_nested_samples],
    tells="You take the largest part of a sample. All of its parts are there "
    "at the same time: add them up.",
)

bytes_each_tensor_once = edit(
    mended_bytes_without_prefetch,
    {"return sum(map(size_of, one))": "return sum(set(map(size_of, one)))"},
    breaks=[hidden_tests.counts_nested_samples],
    tells="You count equal parts, or equal sizes, once. Each becomes a tensor "
    "of its own in the batch.",
)

bytes_as_a_float = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": "return float(num_workers * ahead * batch_size * size_of(sample))",
    },
    breaks=[hidden_tests.huge_batches, hidden_tests.counts_tensors],
    tells="You return a float. Bytes are whole, and a float is exact up to "
    "2**53 only.",
)

bytes_by_way_of_a_float = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": """
        mib = num_workers * ahead * batch_size * size_of(sample) / 2**20
        return round(mib * 2**20)
        """,
    },
    breaks=[hidden_tests.huge_batches],
    tells="On the way your number is a float (a division, or a unit such as "
    "MiB), or a tensor of limited range. Multiply Python ints: they are "
    "exact.",
)

bytes_by_way_of_int64 = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": """
        factors = torch.tensor([num_workers, ahead, batch_size, size_of(sample)])
        return int(factors.double().prod())
        """,
    },
    breaks=[hidden_tests.huge_batches],
    tells="On the way your number is a float (a division, or a unit such as "
    "MiB), or a tensor of limited range. Multiply Python ints: they are "
    "exact.",
)

bytes_in_mib = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": "return num_workers * ahead * batch_size * size_of(sample) // 2**20",
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You return MiB. Asked for are bytes.",
)

bytes_in_whole_pages = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": """
        each = -(-batch_size * size_of(sample) // 4096) * 4096
        return num_workers * ahead * each
        """,
    },
    breaks=[hidden_tests.counts_tensors],
    tells="You round up to whole pages. The system does that, but asked for "
    "are the bytes of the batches themselves.",
)

bytes_with_pickle = edit(
    mended_bytes_without_prefetch,
    {
        "return num_workers * ahead * batch_size * size_of(sample)": """
        import pickle

        return num_workers * ahead * batch_size * len(pickle.dumps(sample))
        """,
    },
    breaks=[hidden_tests.counts_tensors, hidden_tests.strings_count_nothing],
    tells="You take the length of the pickled sample. What lies in shared "
    "memory are the elements of the tensors, and nothing around them.",
)


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


bytes_with_zero_dim_arrays_of_eight = edit(
    mended_bytes_that_make_it_contiguous,
    {
        "return int(one.nbytes)": """
        return (
            8 if one.ndim == 0 and type(one) is np.ndarray else one.nbytes
        )
        """,
    },
    breaks=hidden_tests.counts_numpy,
    tells="You take an array without dimensions for a Python number. It "
    "keeps its dtype, as any array does: `array.nbytes`.",
)

bytes_that_make_it_contiguous = edit(
    mended_bytes_that_make_it_contiguous,
    {
        "if isinstance(one, torch.Tensor):": """
        if isinstance(one, torch.Tensor):
            one.data = one.data.contiguous()
        """,
    },
    breaks=hidden_tests.huge_batches,
    tells="You make a tensor of the sample contiguous, in place: its "
    "strides are others afterwards. The sample belongs to the "
    "caller.",
)

bytes_that_empty_the_dict = edit(
    mended_bytes_that_make_it_contiguous,
    {
        "return sum(map(size_of, one.values()))": "return sum(size_of(one.pop(key)) for key in list(one))",
    },
    breaks=hidden_tests.huge_batches,
    tells="You take the items out of the caller's dict as you count them, "
    "and leave it empty. Go through `values()`.",
)

bytes_that_empty_the_list = edit(
    mended_bytes_that_make_it_contiguous,
    {
        "return sum(map(size_of, one))": """
        items, total = one if isinstance(one, list) else list(one), 0
        while items:
            total += size_of(items.pop())
        return total
        """,
    },
    breaks=hidden_tests.huge_batches,
    tells="You take the items out of the caller's list as you count them, "
    "and leave it empty. Go through it with a loop.",
)


@wrong(
    breaks=hidden_tests.counts_nested_samples,
    tells="You count an array that stands at two places once. Collating "
    "copies it to both.",
)
def bytes_each_array_once(
    sample, batch_size, num_workers, prefetch_factor=None
):
    known = set()

    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.number | np.bool_):
            known_before = id(one) in known
            known.update([id(one)] if isinstance(one, np.ndarray) else [])
            return 0 if known_before else int(one.nbytes)
        if isinstance(one, str):
            return 0
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 1 if isinstance(one, bool) else 8

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


bytes_with_keys = edit(
    mended_bytes_that_make_it_contiguous,
    {
        "return sum(map(size_of, one.values()))": "return sum(size_of(v) + size_of(k) for k, v in one.items())",
    },
    breaks=hidden_tests.counts_nested_samples,
    tells="You count the keys of a dict where they are numbers. Keys are "
    "no data of the batch: only the values are collated.",
)

bytes_of_exact_dicts = edit(
    mended_bytes_that_make_it_contiguous,
    {"if isinstance(one, dict):": "if type(one) is dict:"},
    breaks=hidden_tests.counts_nested_samples,
    tells="An OrderedDict is a dict of its own kind. `type(x) is dict` is "
    "false for it; use `isinstance`.",
)

complex_as_two_floats = edit(
    SOLUTION,
    {
        "return collated.numel() * collated.element_size()": """
        if collated.is_complex():
            return collated.numel() * 8
        return collated.numel() * collated.element_size()
        """,
    },
    breaks=hidden_tests.counts_tensors,
    tells="You count 8 bytes for each complex number. Those of complex128 take 16.",
)

at_most_64_workers = edit(
    SOLUTION,
    {
        "return num_workers * ahead": "return min(num_workers, 64) * ahead",
    },
    breaks=hidden_tests.counts_tensors,
    tells="From 65 workers on you count 64. They all keep batches ahead.",
)

seeding_in_bytes_ahead = edit(
    SOLUTION,
    {
        "if isinstance(collated, Tensor):": """
        torch.manual_seed(0)
        if isinstance(collated, Tensor):
        """,
    },
    breaks=hidden_tests.huge_batches,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

numbers_of_the_very_type = edit(
    SOLUTION,
    {
        """
        return 0

        """: """
        return {bool: 1, int: 8, float: 8}.get(type(collated), 0)

        """,
        "batch_of_one = default_collate([sample])": "batch_of_one = sample",
        "if isinstance(collated, Tensor):": """
        if isinstance(collated, np.ndarray | np.generic) and not isinstance(
            collated, str
        ):
            return collated.nbytes
        if isinstance(collated, Tensor):
        """,
    },
    breaks=hidden_tests.counts_numbers,
    tells="You ask for the very type `int`. A member of an `IntEnum` is an int as well, and is "
    "collated as one: ask with `isinstance`.",
)
