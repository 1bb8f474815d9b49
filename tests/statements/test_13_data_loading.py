"""What chapter 13 states about loaders, run."""

import functools
import inspect
import itertools
import math
import pickle
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    default_collate,
    get_worker_info,
)

BY_CELL = {
    "resume_mid_epoch": [
        "With a sampler that draws its order from a generator, three things are enough: the generator's state at the start of the epoch, the number of batches done, and a batch sampler that skips these *before* anything is loaded.",
    ],
    "claim_004_13_14": [
        "Here it fails like the first: both strategies put the batch into `/dev/shm`.",
        "The sentence about the bus error still stands in PyTorch's library.",
    ],
    "claim_004_33": [
        "Only in training, and only with one value per channel. A single *image* has many. In `eval()` nothing is computed from the batch, unless the layer keeps no running statistics. (Instance norm, which looks at each sample alone, keeps none by default, and so needs more than one position in both modes.)",
    ],
    "claim_004_34": [
        "A rest of 2 is harmless, so it has to ask for a rest of *one*. It overlooks `batch_size=1`, where the rest is 0 and every batch is a lone sample. And the number of samples is that of the sampler: a filter or a split over two processes makes it another one. `drop_last` has a hole of its own: with fewer samples than a batch it leaves nothing, and nothing raises.",
    ],
}

BY_SOURCE = {
    "https://github.com/pytorch/pytorch/pull/161910": [
        "PyTorch reserves the space beforehand since the autumn of 2025.",
    ],
    "https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods": [
        "In Linux by `fork`: a copy of your process, lambdas and all. On macOS and Windows by `spawn`, and in Linux from Python 3.14 on by a server: a fresh Python, to which dataset, `collate_fn` and `worker_init_fn` are sent *pickled*.",
    ],
    "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html": [
        "The GPU can fetch from page-locked memory by itself. From any other memory the driver copies twice, and your program waits.",
        "The other way, from the GPU to the CPU, `non_blocking=True` is a trap: you can read the numbers before they have arrived.",
    ],
    "https://docs.docker.com/reference/cli/docker/container/run/": [
        "make it larger: `docker run --shm-size=2g`, or `--ipc=host` for that of the host;",
    ],
    "https://docs.pytorch.org/docs/stable/data.html": [
        "**`in_order=False`** hands out whatever batch is ready.",
    ],
}


def test_the_last_batch_ends_the_run():
    """A variance over one value says nothing, so batch norm refuses (chapter 05).

    In `eval()` a single sample does no harm, and what you leave out is missing from the score.

    A training batch of one sample and one value per channel breaks batch norm.
    """
    x, norm = torch.randn(17, 3), nn.BatchNorm1d(3)
    *full, last = DataLoader(x, batch_size=4)
    for rows in full:
        norm(rows)
    assert last.shape == (1, 3)
    with pytest.raises(ValueError, match="more than 1 value"):
        norm(last)
    norm.eval()(last)


def test_shuffled_and_dropped():
    """With `shuffle=True` other samples are left out in each epoch."""
    loader = DataLoader(range(17), 4, shuffle=True, drop_last=True)
    missing = []
    for _ in range(6):
        seen = torch.cat(list(loader)).tolist()
        assert len(seen) == 16
        missing += set(range(17)) - set(seen)
    assert len(set(missing)) > 1


def test_options_that_want_workers():
    """Two options exist only with workers; without, they raise a `ValueError`.

    `prefetch_factor` and `persistent_workers` raise a `ValueError` there.

    | `prefetch_factor` | batches that each worker keeps ready (2) | loading times vary: more; memory is short: 1 |
    """
    for option in ({"prefetch_factor": 2}, {"persistent_workers": True}):
        with pytest.raises(ValueError, match=next(iter(option))):
            DataLoader(range(4), num_workers=0, **option)
        DataLoader(range(4), num_workers=1, **option)
    assert DataLoader(range(4), num_workers=1).prefetch_factor == 2
    assert DataLoader(range(4)).prefetch_factor is None


def test_what_can_be_pickled():
    """A lambda cannot be pickled, and neither can a function defined in a function.

    What varies can be bound with `functools.partial`.
    """

    def inside(rows):
        return rows

    for function in (lambda rows: rows, inside):
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pickle.dumps(function)
    for function in (default_collate, functools.partial(default_collate)):
        pickle.loads(pickle.dumps(function))


class Watched(Dataset):
    """Says which sample was asked for, and how a worker computes."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        worker = get_worker_info()
        return (
            index,
            torch.get_num_threads(),
            -1 if worker is None else worker.id,
        )


def test_threads_of_a_worker():
    """Each worker computes with one thread (`torch.get_num_threads()` is 1 there), so workers do not fight for cores by themselves."""
    torch.set_num_threads(2)
    loader = DataLoader(
        Watched(), 3, num_workers=1, multiprocessing_context="fork"
    )
    for _, threads, worker in loader:
        assert threads.tolist() == [1, 1, 1]
        assert worker.tolist() == [0, 0, 0]
    torch.set_num_threads(2)
    assert next(iter(DataLoader(Watched(), 3)))[1].tolist() == [2, 2, 2]


def epochs(workers, to_the_sampler, count=3):
    rng = torch.Generator().manual_seed(3)
    how = (
        {"sampler": RandomSampler(range(6), generator=rng)}
        if to_the_sampler
        else {"shuffle": True, "generator": rng}
    )
    loader = DataLoader(
        range(6),
        6,
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context="fork" if workers else None,
        **how,
    )
    return [rows.tolist() for _ in range(count) for rows in loader]


def test_the_same_batches_with_and_without_workers():
    """the first epoch is the same for any number of workers. With workers that stay, the second is not. The loader draws a seed for its workers from that generator, once per start of workers, and without workers in every epoch. Give the generator to the *sampler*.

    A generator given to the loader also seeds its workers. Give it to the sampler, and the order is the same with any number of workers.
    """
    alone, staying = epochs(0, False), epochs(1, False)
    assert alone[0] == staying[0]
    assert alone[1:] != staying[1:]
    assert epochs(0, True) == epochs(1, True)


def test_a_loader_draws_a_number():
    """A loader draws a number from its `generator` whenever it is gone through, and from the global one if it has none. Two loaders with one generator disturb each other."""
    rng = torch.Generator().manual_seed(1)
    for loader, generator in (
        (DataLoader(range(3), generator=rng), rng),
        (DataLoader(range(3)), torch.default_generator),
    ):
        for _ in range(2):
            before = generator.get_state()
            list(loader)
            assert not torch.equal(before, generator.get_state())


def test_reading_counts_references():
    """*Reading* a Python object writes to it: it counts its references.

    An array or a tensor is one object, whatever it holds.
    """
    names = [f"images/{number:040d}.jpeg" for number in range(3)]

    def while_read(container):
        before = sys.getrefcount(container[1])
        read = container[1]
        return sys.getrefcount(container[1]) - before, read

    changed, read = while_read(names)
    assert changed > 0
    held = np.array(names, "S")
    assert held[1] is not held[1]  # made for this reading
    assert held[1].decode() == read


@pytest.mark.parametrize("drop_last", [False, True])
def test_dangerous_sizes(drop_last):
    """Orange: the last batch holds a single sample. Tick the box: with `drop_last` it is gone, except for B = 1, and where N < B (blue) there is no batch left at all."""
    for n, b in itertools.product(range(1, 14), range(1, 8)):
        sizes = [len(r) for r in DataLoader(range(n), b, drop_last=drop_last)]
        if drop_last:
            assert (1 in sizes) == (b == 1)
            assert (not sizes) == (n < b)
        else:
            assert (sizes[-1] == 1) == (n % b == 1 or b == 1)


def test_a_dataset_that_reads_a_batch_at_once():
    """If it has `__getitems__`, the loader calls that with all indices of a batch, in the worker, and collates the list that comes back."""
    asked = []

    class Table(Watched):
        def __getitem__(self, index):
            raise RuntimeError("nobody asks")

        def __getitems__(self, indices):
            asked.append(indices)
            return [10 * index for index in indices]

    assert [rows.tolist() for rows in DataLoader(Table(), 4)] == [
        [0, 10, 20, 30],
        [40, 50],
    ]
    assert asked == [[0, 1, 2, 3], [4, 5]]
    assert "in_order" in inspect.signature(DataLoader).parameters


class Stream(IterableDataset):
    def __init__(self, shared):
        self.shared = shared

    def __iter__(self):
        worker = get_worker_info()
        if worker and self.shared:
            return iter(range(worker.id, 4, worker.num_workers))
        return iter(range(4))


@pytest.mark.parametrize("shared", [False, True])
def test_an_iterable_dataset(shared):
    """Each goes through all of it, so with two workers every sample comes twice. It has to ask `get_worker_info()` which part is its own."""
    loader = DataLoader(
        Stream(shared), 2, num_workers=2, multiprocessing_context="fork"
    )
    numbers = sorted(torch.cat(list(loader)).tolist())
    assert numbers == sorted([*range(4)] * (1 if shared else 2))


def test_what_collating_makes():
    """Count what PyTorch's own collating makes of `batch_size` such samples: tensors, arrays and NumPy scalars keep their dtype, Python ints become int64, floats float64, bools bool. Strings stay strings and count 0.

    `isinstance(True, int)` is true in Python.

    Or let `default_collate([sample])` make a batch of one: it has tensors only, and strings.
    """
    for sample, dtype in (
        (torch.zeros(2, dtype=torch.uint8), torch.uint8),
        (torch.zeros(2, dtype=torch.bfloat16), torch.bfloat16),
        (np.zeros(2, np.float32), torch.float32),
        (np.zeros(2, np.int16), torch.int16),
        (np.float32(1), torch.float32),
        (np.int16(1), torch.int16),
        (np.float16(1), torch.float16),
        (7, torch.int64),
        (0.5, torch.float64),
        (True, torch.bool),
    ):
        for count in (1, 3):
            got = default_collate([sample] * count)
            assert got.dtype == dtype
            assert len(got) == count
    nested = default_collate([{"a": [1, ("x", 2.0)]}])
    assert nested["a"][1][0] in (["x"], ("x",))
    assert isinstance(True, int)
    sample = torch.zeros(2, 3, dtype=torch.int16)
    assert sample.numel() * sample.element_size() == sample.numpy().nbytes == 12


def test_batch_samplers():
    """`batch_sampler=` takes any object that yields lists of indices, anew each time it is gone through, and has a `len`. A class that inherits from `BatchSampler` gets such lists from `super().__iter__()`."""

    class Reversed(BatchSampler):
        def __iter__(self):
            yield from list(super().__iter__())[::-1]

    loader = DataLoader(range(5), batch_sampler=Reversed(range(5), 2, False))
    for _ in range(2):
        assert [rows.tolist() for rows in loader] == [[4], [2, 3], [0, 1]]
    loader = DataLoader(range(5), batch_sampler=[[0, 1], [4]])
    assert [rows.tolist() for rows in loader] == [[0, 1], [4]]


@pytest.mark.parametrize(
    ("load", "step"), [(60, 40), (30, 40), (90, 30), (100, 33)]
)
def test_how_many_workers_are_enough(load, step):
    """with enough workers the model waits for its first batch only, and beyond that more do not help.

    Under these two conditions load time / step time workers, rounded up, are enough.
    """

    def total(workers, prefetch=2, batches=30):
        free, taken, now = [0.0] * workers, [], 0.0
        for batch in range(batches):
            worker, before = batch % workers, batch - workers * prefetch
            start = max(free[worker], taken[before] if before >= 0 else 0.0)
            free[worker] = start + load
            now = max(now, free[worker])
            taken.append(now)
            now += step
        return now

    enough = math.ceil(load / step)
    assert total(enough) == load + 30 * step
    assert total(enough + 3) == total(enough)
    if enough > 1:
        assert total(enough - 1) > total(enough)


def test_the_end_of_an_iterator():
    """`next(batches, done)` with an object of your own, `done = object()`, gives that object at the end instead of an exception."""
    done = object()
    batches = iter(DataLoader(range(1)))
    assert next(batches, done).tolist() == [0]
    assert next(batches, done) is done
