"""What chapter 13 states about loaders, run."""

import functools
import inspect
import itertools
import math
import mmap
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections import namedtuple
from dataclasses import make_dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from threadpoolctl import threadpool_info, threadpool_limits
from torch import nn
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    Subset,
    default_collate,
    get_worker_info,
)
from torch.utils.data._utils.pin_memory import pin_memory

BY_CELL = {
    "resume_mid_epoch": [
        "With a sampler that draws its order from a generator, three things are enough: the generator's state at the start of the epoch, the number of batches done, and a batch sampler that skips these *before* anything is loaded.",
    ],
    "claim_004_13_14": [
        "Here it fails like the first: both strategies put the batch into `/dev/shm`.",
        "The sentence about the bus error still stands in PyTorch's library.",
        "It is not the disk and not the GPU, it is `/dev/shm`.",
        "It works, and the model waits for every batch. More shared memory keeps the workers; smaller batches and less prefetching need less of it.",
        "another sharing strategy changes nothing.",
    ],
    "claim_004_33": [
        "Only in training, and only with one value per channel. A single *image* has many. In `eval()` nothing is computed from the batch, unless the layer keeps no running statistics. (Instance norm, which looks at each sample alone, keeps none by default, and so needs more than one position in both modes.)",
    ],
    "claim_004_34": [
        "It overlooks `batch_size=1`, where the rest is 0 and every batch is a lone sample. And the number of samples is that of the sampler: a filter or a split over two processes makes it another one. `drop_last` has a hole of its own: with fewer samples than a batch it leaves nothing, and nothing raises.",
        "Fewer samples than a batch and `drop_last`: nothing is trained, and nothing raises.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/notes/multiprocessing.html": [
        "But on a machine with a GPU a fork has limits: once your process has used the GPU, a forked worker cannot,",
    ],
    "https://github.com/pytorch/pytorch/wiki/Autograd-and-Fork": [
        "and once autograd has run in your process, a forked worker cannot take gradients.",
    ],
    "https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/data/dataloader.py": [
        "| `pin_memory` | a thread (without workers, your own) copies batches (a dataclass only by its method `pin_memory`) into page-locked memory, for the accelerator that is there | the model is on a CUDA device, or another one that can pin (XPU; not MPS) |",
    ],
    "https://github.com/pytorch/pytorch/pull/161910": [
        "PyTorch reserves the space beforehand since the autumn of 2025.",
        "Until then the kernel killed the worker that wrote into it, and one read *Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)*.",
    ],
    "https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods": [
        "They start workers by `fork`, as Linux did by itself until Python 3.13.",
        "In Linux by `fork`: a copy of your process, lambdas and all. On macOS and Windows by `spawn`, and in Linux from Python 3.14 on by a server: a fresh Python, to which dataset, `collate_fn` and `worker_init_fn` are sent *pickled*.",
    ],
    "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html": [
        "The GPU can fetch from page-locked memory by itself. From any other memory the driver copies twice, and your program waits.",
        "With `pin_memory=True` *and* `batch.to(device, non_blocking=True)` your program goes on while the copy runs, and orders the kernels that come after it. (Copy and kernels wait for one another all the same, unless the copy has a stream of its own.)",
        "The other way, from the GPU to the CPU, `non_blocking=True` is a trap: you can read the numbers before they have arrived.",
    ],
    "https://docs.docker.com/reference/cli/docker/container/run/": [
        "make it larger: `docker run --shm-size=2g`, or `--ipc=host` for that of the host;",
        "A container often gets 64 MB of it.",
    ],
    "https://docs.pytorch.org/docs/stable/data.html": [
        "So each worker slowly copies a large list of names, and the machine runs out of memory hours after the start.",
        "With `pin_memory` a thread copies each batch out of it early.",
    ],
    "https://github.com/pytorch/pytorch/blob/main/torch/utils/data/dataloader.py": [
        "the model is on a CUDA device, or another one that can pin (XPU; not MPS) |",
    ],
    "https://man7.org/linux/man-pages/man2/fork.2.html": [
        "After a fork parent and workers share all memory, until somebody writes to a page. Then that process gets a copy of its own.",
    ],
    "https://man7.org/linux/man-pages/man5/tmpfs.5.html": [
        "A `/dev/shm` that is larger than needed takes no RAM: give it twice as much.",
        "Several loaders, or ranks, add up.",
    ],
    "https://man7.org/linux/man-pages/man1/unshare.1.html": [
        "Linux has the corner: `unshare` gives the child a table of mounts of its own.",
    ],
    "https://kubernetes.io/docs/concepts/storage/volumes/#emptydir": [
        "in Kubernetes an `emptyDir` with `medium: Memory`, mounted there.",
    ],
    "https://peps.python.org/pep-0683/": [
        "(None and small integers do not, since Python 3.12.)",
    ],
    "https://github.com/pytorch/data/tree/main/torchdata/stateful_dataloader": [
        "`torchdata` has a `StatefulDataLoader` with a `state_dict` that does it for you.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution": [
        "A GPU does its work later: if `synchronize` is given, call it after each step, once.",
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


@pytest.mark.parametrize("rest", [1, 2, 3])
def test_a_small_rest_under_batch_norm(rest):
    """A rest of 2 raises nothing (though the two values of a feature become about +1 and −1, or come nearer to 0 where they hardly differ), so it has to ask for a rest of *one*."""
    layer, x = nn.BatchNorm1d(3), 5 + 10 * torch.randn(rest, 3)
    if rest == 1:
        with pytest.raises(ValueError, match="more than 1 value"):
            layer(x)
    else:
        ones = torch.allclose(layer(x).abs(), torch.ones(rest, 3), atol=1e-3)
        assert ones == (rest == 2)
        for apart in (0.0, 1e-3):
            x[:, 0] = 1 + apart * torch.arange(rest)
            assert layer(x)[:, 0].abs().max() <= 500 * apart


def test_options_that_want_workers():
    """`prefetch_factor` and `persistent_workers` exist only with workers; without, they raise a `ValueError`. (`multiprocessing_context` does, too; a `timeout` raises when the loader is gone through.)

    `prefetch_factor` and `persistent_workers` raise a `ValueError` there.

    | `prefetch_factor` | batches that each worker keeps ready (2) | loading times vary: more; memory is short: 1 |
    """
    for option in ({"prefetch_factor": 2}, {"persistent_workers": True}):
        with pytest.raises(ValueError, match=next(iter(option))):
            DataLoader(range(4), num_workers=0, **option)
        DataLoader(range(4), num_workers=1, **option)
    with pytest.raises(ValueError, match="multiprocessing_context"):
        DataLoader(range(4), multiprocessing_context="fork")
    impatient = DataLoader(range(4), timeout=1)
    with pytest.raises(AssertionError, match="timeout"):
        iter(impatient)
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
            max(
                one["num_threads"]
                for one in threadpool_info()
                if one["user_api"] == "blas"
            ),
        )


def test_threads_of_a_worker():
    """In each worker PyTorch computes with one thread (`torch.get_num_threads()` is 1 there). NumPy and OpenCV have threads of their own, with which workers may fight for cores: limit them yourself (`OPENBLAS_NUM_THREADS=1` before NumPy is imported, `cv2.setNumThreads(0)` in the worker)."""
    torch.set_num_threads(2)
    loader = DataLoader(
        Watched(), 3, num_workers=1, multiprocessing_context="fork"
    )
    with threadpool_limits(2, "blas"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "1")  # too late
        for _, threads, worker, of_numpy in loader:
            assert threads.tolist() == [1, 1, 1]
            assert worker.tolist() == [0, 0, 0]
            assert of_numpy.tolist() == [2, 2, 2]
    torch.set_num_threads(2)
    assert next(iter(DataLoader(Watched(), 3)))[1].tolist() == [2, 2, 2]


class Drawing(Dataset):
    """Adds noise to each sample."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index + torch.rand(())


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
    """the first epoch is the same for any number of workers. With workers that stay, the second is not. The loader draws a seed for its workers from that generator, once per start of workers, and without workers in every epoch. Give the generator to the *sampler*. Then each batch has the same samples, if each epoch is read to its end, as `for` reads it (not `zip`, which may stop before the loader says that it ends). (What a dataset draws itself, such as crops, still differs with the number of workers: seed it with epoch and index.

    A generator given to the loader also seeds its workers. Give it to the sampler, and the order is the same with any number of workers, if each epoch is read to its end.
    """
    alone, staying = epochs(0, False), epochs(1, False)
    assert alone[0] == staying[0]
    assert alone[1:] != staying[1:]
    assert epochs(0, True) == epochs(1, True)
    drawn = [
        [
            rows.tolist()
            for rows in DataLoader(
                Drawing(),
                2,
                num_workers=workers,
                multiprocessing_context="fork" if workers else None,
                generator=torch.Generator().manual_seed(3),
            )
        ]
        for workers in (0, 1)
    ]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("another", [True, False])
def test_dropout_with_and_without_workers(another):
    """The loader itself then draws its seeds from the global generator, so with workers that stay dropout draws other numbers: give the loader another generator, too."""
    found = []
    for workers in (0, 1):
        torch.manual_seed(0)
        rng = torch.Generator().manual_seed(3)
        loader = DataLoader(
            range(6),
            6,
            sampler=RandomSampler(range(6), generator=rng),
            num_workers=workers,
            persistent_workers=workers > 0,
            multiprocessing_context="fork" if workers else None,
            generator=torch.Generator().manual_seed(4) if another else None,
        )
        found.append(
            [
                (rows.tolist(), F.dropout(torch.ones(40)).tolist())
                for _ in range(3)
                for rows in loader
            ]
        )
    alone, staying = found
    assert [rows for rows, _ in alone] == [rows for rows, _ in staying]
    assert (alone == staying) == another
    assert alone[0] == staying[0]


@pytest.mark.parametrize("to_its_end", [True, False])
def test_epochs_that_are_broken_off(to_its_end):
    """if each epoch is read to its end, as `for` reads it (not `zip`, which may stop before the loader says that it ends)."""

    def shuffled(workers):
        rng = torch.Generator().manual_seed(3)
        return DataLoader(
            range(8),
            4,
            sampler=RandomSampler(range(8), generator=rng),
            num_workers=workers,
            persistent_workers=workers > 0,
            multiprocessing_context="fork" if workers else None,
        )

    def orders(workers):
        loader, found = shuffled(workers), []
        for _ in range(3):
            for rows in loader:
                found.append(rows.tolist())
                if not to_its_end:
                    break
        return found

    def zipped(workers):
        loader = shuffled(workers)
        pair = (loader, [0, 1]) if to_its_end else ([0, 1], loader)
        read = [str(both) for both in zip(*pair, strict=False)]
        return read, [rows.tolist() for rows in loader]

    for way in (orders, zipped):
        assert (way(0) == way(1)) == to_its_end


class Epoch(Dataset):
    """Its samples tell the epoch that was written into it."""

    epoch = 0

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.epoch


@pytest.mark.parametrize("stay", [True, False])
def test_an_epoch_written_into_the_dataset(stay):
    """Workers that stay see an epoch that you write into the dataset later only in memory that they share."""

    def seen(epochs):
        dataset = Epoch()
        dataset.epoch = epochs[0]
        loader = DataLoader(
            dataset,
            num_workers=1,
            persistent_workers=stay,
            multiprocessing_context="fork",
        )
        found = []
        for number, epoch in enumerate(epochs):
            if isinstance(epoch, torch.Tensor):
                epoch.fill_(number)
            dataset.epoch = epoch
            found += [rows.item() for rows in loader]
        return found

    assert seen([0, 1]) == ([0, 0] if stay else [0, 1])
    assert seen([torch.zeros(1).share_memory_()] * 2) == [0, 1]


def test_a_loader_draws_a_number():
    """A loader without workers draws a number from its `generator` whenever it is gone through, and from the global one if it has none. Two loaders with one generator disturb each other."""
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

    An array or a tensor is one object, whatever it holds (unless its `dtype` is `object`).
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
    changed, _ = while_read(np.array(names, object))
    assert changed > 0


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
    """If it has `__getitems__`, the loader calls that with all indices of a batch, in the worker, and collates the list that comes back. (`Subset` passes it on, `ConcatDataset` does not.)"""
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
    (rows,) = DataLoader(Subset(Table(), [5, 2]), 4)
    assert rows.tolist() == [50, 20]
    with pytest.raises(RuntimeError, match="nobody asks"):
        list(DataLoader(ConcatDataset([Table()]), 4))
    assert "in_order" in inspect.signature(DataLoader).parameters


class OneIsSlow(Dataset):
    """Sample 0 comes no earlier than the main process lets it."""

    def __init__(self):
        self.may_come = torch.zeros(1).share_memory_()

    def __len__(self):
        return 8

    def __getitem__(self, index):
        while index == 0 and not self.may_come:
            time.sleep(0.005)
        return index


def test_one_slow_sample():
    """**`in_order=False`** hands out whatever batch is ready. One slow sample then holds up only what waits in its own worker; but the order hangs on the clock, and a run cannot be repeated."""
    dataset, came = OneIsSlow(), []
    for rows in DataLoader(
        dataset,
        num_workers=2,
        in_order=False,
        timeout=60,
        multiprocessing_context="fork",
    ):
        came += rows.tolist()
        if len(came) == 6:
            dataset.may_come.fill_(1)
    assert came == [1, 3, 4, 5, 6, 7, 0, 2]  # 2 waited behind 0


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
    """Each goes through all of it, so with two workers every sample comes twice. It has to ask `get_worker_info()` which part is its own. Each batches its own part, so each has a rest of its own."""
    loader = DataLoader(
        Stream(shared), 2, num_workers=2, multiprocessing_context="fork"
    )
    numbers = sorted(torch.cat(list(loader)).tolist())
    assert numbers == sorted([*range(4)] * (1 if shared else 2))
    threes = DataLoader(
        Stream(shared), 3, num_workers=2, multiprocessing_context="fork"
    )
    sizes = sorted(len(rows) for rows in threes)
    assert sizes == ([2, 2] if shared else [1, 1, 3, 3])


def test_what_collating_makes():
    """Count what PyTorch's own collating makes of `batch_size` such samples: tensors, arrays and NumPy scalars keep their dtype (it refuses some, as scalars of uint64), Python ints become int64, floats float64, bools bool. Strings stay strings and count 0.

    `isinstance(True, int)` is true in Python.

    Or let `default_collate([sample])` make a batch of one: it has tensors only, and strings.

    `tensor.numel() * tensor.element_size()`; for an array `array.nbytes`.

    A batch is copied together, so a view counts with the elements that it shows, not with the memory behind it.
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
    with pytest.raises(TypeError):
        default_collate([np.uint64(1)] * 2)
    nested = default_collate([{"a": [1, ("x", 2.0)]}])
    assert nested["a"][1][0] in (["x"], ("x",))
    assert isinstance(True, int)
    sample = torch.zeros(2, 3, dtype=torch.int16)
    assert sample.numel() * sample.element_size() == sample.numpy().nbytes == 12
    for view in (torch.zeros(100)[:2], torch.zeros(1).expand(2)):
        batch = default_collate([view] * 3)
        assert batch.untyped_storage().nbytes() == 3 * 2 * 4
        assert view.numpy().nbytes == 2 * 4


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


def test_where_loading_times_vary():
    """Load time / step time workers, rounded up, hide it if loading times hardly vary and each has a core.

    With loading times that vary, or fewer cores, measure
    """

    def waited(spread, load=60.0, step=60.0, prefetch=2):
        rng, free, taken, now = random.Random(0), 0.0, [], 0.0
        for batch in range(200):  # one worker is 60 / 60, rounded up
            before = taken[batch - prefetch] if batch >= prefetch else 0.0
            free = max(free, before) + load * rng.uniform(
                1 - spread, 1 + spread
            )
            now = max(now, free)
            taken.append(now)
            now += step
        return now - 200 * step - taken[0]

    assert waited(0.0) == 0
    assert waited(0.01) < 60
    assert waited(0.9) > 600


class Bytes(Dataset):
    """A file of 100 bytes; a sample is read at the place of the file."""

    def __init__(self, path, how):
        self.path, self.how, self.file = path, how, None
        if how == "opened before":
            self.file = path.open("rb", buffering=0)
        elif how == "mapped":
            self.bytes = np.memmap(path, np.uint8, "r")

    def __len__(self):
        return 100

    def __getitem__(self, index):
        if self.how == "mapped":
            return int(self.bytes[index])
        if self.file is None:
            self.file = self.path.open("rb", buffering=0)
        return self.file.read(1)[0]


@pytest.mark.parametrize("how", ["opened before", "opened inside", "mapped"])
def test_files_and_forks(tmp_path, how):
    """Each worker has to open any other file for itself, HDF5 too: a plain file that was open before a fork has one place for all."""
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(100)))
    data = Bytes(path, how)
    epochs = [
        [
            number
            for rows in DataLoader(
                data, 25, num_workers=1, multiprocessing_context="fork"
            )
            for number in rows.tolist()
        ]
        for data in (Subset(data, range(50)), Subset(data, range(50)))
    ]
    moved = how == "opened before"
    assert epochs[0] == list(range(50))
    assert epochs[1] == list(range(50, 100) if moved else range(50))
    if moved:
        assert data.file.tell() == 100  # here nobody has read
        data.file.close()


def test_who_pins():
    """copies batches (a dataclass only by its method `pin_memory`) into page-locked memory,"""
    pinned = []

    class Watched(torch.Tensor):
        def pin_memory(self, *args):
            pinned.append(len(pinned))
            return self

    class Batch:
        def __init__(self, rows):
            self.rows = rows

    class PinningBatch(Batch):
        def pin_memory(self):
            return PinningBatch(self.rows.pin_memory())

    rows = torch.zeros(2).as_subclass(Watched)
    for batch, count in (
        (rows, 1),
        ({"rows": rows, "more": [rows, (rows, "text")]}, 3),
        (Batch(rows), 0),
        ([Batch(rows), rows], 1),
        (PinningBatch(rows), 1),
        (make_dataclass("Plain", ["rows"])(rows), 0),
        (namedtuple("Pair", "rows more")(rows, rows), 2),
    ):
        pinned.clear()
        assert type(pin_memory(batch)) is type(batch)
        assert len(pinned) == count


def test_a_skip_in_every_epoch():
    """It skips in every epoch: make a new loader for the next one."""

    class WithoutTheFirst(Sampler):
        def __init__(self, batches, num_done):
            self.batches, self.num_done = batches, num_done

        def __iter__(self):
            return itertools.islice(iter(self.batches), self.num_done, None)

    def threes():
        order = RandomSampler(range(12), generator=rng)
        return BatchSampler(order, 3, False)

    def epoch(loader):
        return [rows.tolist() for rows in loader]

    rng = torch.Generator().manual_seed(5)
    at_the_start = rng.get_state()
    whole = DataLoader(range(12), batch_sampler=threes())
    wanted = [epoch(whole), epoch(whole)]
    for anew in (False, True):
        rng.set_state(at_the_start)
        left = WithoutTheFirst(threes(), 2)
        loader = DataLoader(range(12), batch_sampler=left)
        assert epoch(loader) == wanted[0][2:]
        if anew:
            loader = DataLoader(range(12), batch_sampler=threes())
        assert epoch(loader) == wanted[1][0 if anew else 2 :]


def test_the_end_of_an_iterator():
    """`next(batches, done)` with an object of your own, `done = object()`, gives that object at the end instead of an exception."""
    done = object()
    batches = iter(DataLoader(range(1)))
    assert next(batches, done).tolist() == [0]
    assert next(batches, done) is done


def own_process(rows):
    """Collates; the last row says which process did it."""
    return torch.tensor([*rows, os.getpid()])


@pytest.mark.parametrize("stay", [False, True])
def test_workers_are_processes(stay):
    """A worker is a process.

    | `num_workers` | so many processes load and collate | loading a batch takes a good part of a step; more than one if it takes longer than a step |

    | `persistent_workers` | workers outlive the epoch | starting them takes long: short epochs, `spawn` |
    """
    loader = DataLoader(
        range(4),
        2,
        num_workers=2,
        collate_fn=own_process,
        persistent_workers=stay,
        multiprocessing_context="fork",
    )
    first, second = ({batch[-1].item() for batch in loader} for _ in range(2))
    assert len(first) == len(second) == 2
    assert os.getpid() not in first | second
    assert (first == second) == stay
    (alone,) = DataLoader(range(2), 2, collate_fn=own_process)
    assert alone[-1] == os.getpid()


@pytest.mark.parametrize("workers", [0, 1])
def test_what_lies_in_shared_memory(workers):
    """Batches that you keep, in a list or by a view of one, stay in shared memory, too.

    With `num_workers=0` no shared memory is taken.

    Only tensors count, each with a page at least (mostly 4 kB): arrays, numbers and strings that a collate function of your own returns go through a pipe.
    """
    loader = DataLoader(
        torch.zeros(8, 3),
        4,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
    kept = list(loader)
    views = [rows[0] for rows in kept]
    del kept, loader
    assert [row.is_shared() for row in views] == [bool(workers)] * 2
    assert not views[0].clone().is_shared()
    assert views[0].untyped_storage().nbytes() == 4 * 3 * 4
    for piped in (
        np.zeros(4000),
        [float(i) for i in range(4000)],
        "a" * 32_000,
    ):
        assert len(ForkingPickler.dumps(piped)) >= 4000 * 8
    for shared in (
        torch.zeros(4, 1000),
        [torch.zeros(4, 1000), torch.zeros(4)],
    ):
        assert len(ForkingPickler.dumps(shared)) < 1000


def shared_pages(batch):
    """The bytes that the files of its shared tensors take."""
    files = {
        (one.st_dev, one.st_ino): one.st_blocks * 512
        for one in (
            os.stat(
                f"/proc/self/fd/{tensor.untyped_storage()._share_fd_cpu_()[0]}"
            )
            for tensor in batch
        )
    }
    return sum(files.values())


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="needs Linux")
def test_small_tensors_in_shared_memory():
    """Only tensors count, each with a page at least (mostly 4 kB):"""
    loader = DataLoader(
        [torch.zeros(3) for _ in range(4)],
        4,
        num_workers=1,
        collate_fn=list,
        multiprocessing_context="fork",
    )
    (batch,) = loader
    assert sum(tensor.nbytes for tensor in batch) == 48
    assert shared_pages(batch) == 4 * mmap.PAGESIZE


@pytest.mark.parametrize("kind", ["tensor", "array", "mapped"])
def test_what_a_worker_is_sent(tmp_path, kind):
    """Workers that are not forked add the dataset's own tensors (not arrays), once, as long as it lives.

    But a worker that is not forked gets a copy of an array, a mapped one too: let it open an `np.memmap` itself.
    """
    numbers = torch.zeros(10_000)
    if kind == "array":
        numbers = numbers.numpy()
    elif kind == "mapped":
        numbers = np.memmap(tmp_path / "file", np.float32, "w+", shape=10_000)
    sent = ForkingPickler.dumps(Subset(numbers, [0]))
    assert (len(sent) < 2000) == (kind == "tensor")
    if kind == "tensor":
        assert numbers.is_shared()  # and stays so
        at = numbers.data_ptr()
        ForkingPickler.dumps(Subset(numbers, [0]))
        assert numbers.data_ptr() == at  # once for all workers
    else:
        assert len(sent) > 40_000
        assert not torch.from_numpy(numbers).is_shared()


class Slices(Dataset):
    """Each of its four samples is a view of the same million numbers."""

    def __init__(self):
        self.numbers = torch.zeros(1_000_000)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.numbers[100 * index : 100 * index + 100]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_size", [None, 1, 2])
def test_what_is_behind_a_view(batch_size, workers):
    """A batch that is a view brings all the memory behind it: slices of one tensor, with `batch_size=None`, bring it whole, once per forked worker."""
    loader = DataLoader(
        Slices(),
        batch_size,
        num_workers=workers,
        multiprocessing_context="fork",
    )
    batches = list(loader)
    for batch in batches:
        assert batch.is_shared()
        assert batch.nbytes == 400 * (batch_size or 1)
        behind = batch.untyped_storage().nbytes()
        assert behind == (batch.nbytes if batch_size else 4_000_000)
    blocks = {batch.untyped_storage().data_ptr() for batch in batches}
    assert len(blocks) == (len(batches) if batch_size else workers)


@pytest.mark.parametrize(
    ("workers", "prefetch"), [(1, 1), (1, 3), (2, 2), (2, 4)]
)
def test_how_many_batches_are_ahead(workers, prefetch):
    """All workers' batches wait in the same place, and your loop holds one more:"""
    asked = []

    def batches():
        for number in range(20):
            asked.append(number)
            yield [number]

    class Counted:
        def __iter__(self):
            return batches()

        def __len__(self):
            return 20

    loader = DataLoader(
        range(20),
        batch_sampler=Counted(),
        num_workers=workers,
        prefetch_factor=prefetch,
        multiprocessing_context="fork",
    )
    for number, _ in enumerate(loader, 1):
        ahead_and_held = len(asked) - (number - 1)
        assert ahead_and_held == min(workers * prefetch + 1, 20 - (number - 1))


BATCHES_IN_SHM = """
import itertools, os, sys, time, torch
import torch.utils.data.dataloader as module
from torch.utils.data import DataLoader
from tqdm import tqdm

class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return torch.full((1_000_000,), index, dtype=torch.uint8)

def in_use():
    space = os.statvfs("/dev/shm")
    return round((space.f_blocks - space.f_bfree) * space.f_frsize / 1e6)

def when_settled():
    seen = [in_use()]
    while len(seen) < 5 or len(set(seen[-5:])) > 1:
        time.sleep(0.02)
        seen.append(in_use())
    return seen[-1]

most = 0

class Slow(module._MultiProcessingDataLoaderIter):
    # a new index is handed out before next() returns: wait here for its batch
    def _try_put_index(self):
        global most
        super()._try_put_index()
        here = sum(len(one) == 2 for one in self._task_info.values())
        for _ in range(400):  # a busy machine's workers take their time
            if self._worker_result_queue.qsize() + here >= self._tasks_outstanding:
                break
            time.sleep(0.005)
        most = max(most, when_settled())

module._MultiProcessingDataLoaderIter = Slow

def loader():
    return DataLoader(
        Blocks(),
        num_workers=2,
        persistent_workers=sys.argv[2] == "True",
        multiprocessing_context="fork",
    )

how, training, validation = sys.argv[1], loader(), loader()
for epoch in range(int(sys.argv[3])):
    most = 0
    if how == "del":
        for batch in training:
            del batch
    elif how == "enumerate":
        for _, batch in enumerate(training):
            del batch
    elif how == "zip":
        for _, batch in zip(itertools.count(), training):
            del batch
    elif how == "tqdm":
        for batch in tqdm(training, disable=False, file=open(os.devnull, "w")):
            del batch
    else:
        for batch in training:
            pass
    print(most)
    most = 0
    if how == "validation":
        for batch in validation:
            pass
        print(most)
    elif how == "another name":
        for other in validation:
            pass
        print(most)
"""


@pytest.mark.parametrize(
    ("how", "persistent", "most"),
    [
        ("del", False, (5, 5)),
        ("name", False, (6, 7)),
        ("name", True, (6, 6)),
        ("enumerate", True, (6,)),
        ("zip", True, (6,)),
        ("tqdm", True, (6,)),
        ("validation", True, (6, 7)),
        ("another name", False, (6, 7, 8, 8)),
    ],
)
def test_what_is_still_held(how, persistent, most):
    """Count one batch more if anything still holds the old one when the next is fetched: its name, `enumerate`, `zip`, tqdm.

    A batch that you hold when workers are forked stays until they end (the last one of an epoch, when the next epoch or the validation begins): count it, too.

    It has to hold workers · prefetch + 1 batches, all others that something still holds, and the dataset's tensors where workers are not forked.
    """
    shell = 'mount -t tmpfs tmpfs /dev/shm && exec "$0" -c "$@"'
    corner = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*corner, "mount -t tmpfs tmpfs /dev/shm"]).returncode:
        pytest.skip("no mounts of one's own here")
    epochs = len(most) // (2 if how in ("validation", "another name") else 1)
    program = [
        sys.executable,
        BATCHES_IN_SHM,
        how,
        str(persistent),
        str(epochs),
    ]
    done = subprocess.run(
        [*corner, shell, *program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert tuple(map(int, done.stdout.split())) == most


def test_smaller_samples():
    """send uint8 images and convert them on the GPU: a quarter of float32"""
    images = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    assert 4 * images.nbytes == images.float().nbytes


def test_a_lambda_and_the_start_of_workers():
    """On macOS and Windows a loader with two workers and `collate_fn=lambda rows: rows` fails as soon as it is gone through; in Linux it used to work.

    Workers are started afresh there, and a lambda cannot be pickled.

    What workers need must be picklable wherever they are not forked.
    """
    for method in ("spawn", "fork"):
        loader = DataLoader(
            range(4),
            2,
            num_workers=2,
            collate_fn=lambda rows: rows,
            multiprocessing_context=method,
        )
        if method == "fork":
            assert list(loader) == [[0, 1], [2, 3]]
        else:
            with pytest.raises((pickle.PicklingError, AttributeError)):
                iter(loader)


def test_a_run_of_50001():
    """With 50,001 samples in batches of 50 you hear of it at the end of the first epoch, and with a filtered dataset on the day on which one sample more passes the filter.

    How large is the last batch if B is 1? And what is N % 1?
    """
    sizes = [len(rows) for rows in BatchSampler(range(50_001), 50, False)]
    assert sizes[-1] == 1
    assert set(sizes[:-1]) == {50}
    assert [*BatchSampler(range(7), 1, False)][-1] == [6]
    assert 7 % 1 == 0


@pytest.mark.parametrize("shape", [(1, 8), (1, 8, 3), (2, 8)])
def test_to_normalize_without_the_batch(shape):
    """If none may be lost, let the lone one join the batch before it (exercise 1), or normalize without the batch: group norm with more than one value for each group (chapter 05)."""
    with pytest.raises(ValueError, match="more than 1 value"):
        nn.GroupNorm(3, 3)(torch.randn(1, 3))
    x, norm = torch.randn(shape), nn.GroupNorm(2, 8)
    together = norm(torch.cat([x, 5 + torch.randn(shape)]))
    torch.testing.assert_close(norm.train()(x), together[: len(x)])


def test_a_loader_does_not_know_how_far_it_is():
    """A `DataLoader` does not know how far it is."""
    loader = DataLoader(range(6), 2)
    next(iter(loader))
    assert next(iter(loader)).tolist() == [0, 1]
    assert not hasattr(loader, "state_dict")


def test_a_generator_that_nobody_else_uses():
    """`RandomSampler(train_set, generator=...)` with a generator that nobody else uses.

    Give the generator to a sampler, `RandomSampler(dataset, generator=...)`, and not the same to the loader.
    """
    found = []
    for disturbed in (False, True):
        order = RandomSampler(
            range(9), generator=torch.Generator().manual_seed(3)
        )
        loader = DataLoader(range(9), 4, sampler=order)
        for _ in range(3):
            found.append([rows.tolist() for rows in loader])
            if disturbed:
                list(DataLoader(range(3), shuffle=True))
                F.dropout(torch.ones(3))
    assert found[:3] == found[3:]
    assert len({str(one) for one in found}) > 1


def test_dropping_for_training_only():
    """`drop_last=True` does it, for training only. What it does with fewer samples than a batch you have to catch yourself."""
    assert [len(r) for r in DataLoader(range(9), 4, drop_last=True)] == [4, 4]
    empty = DataLoader(range(3), 4, drop_last=True)
    assert (len(empty), list(empty)) == (0, [])


@pytest.mark.gpu
@pytest.mark.parametrize("workers", [0, 2])
def test_pinned_batches(workers):
    """| `pin_memory` | a thread (without workers, your own) copies batches (a dataclass only by its method `pin_memory`) into page-locked memory, for the accelerator that is there | the model is on a CUDA device, or another one that can pin (XPU; not MPS) |

    With `pin_memory` a thread copies each batch out of it early.
    """
    before = threading.active_count()
    loader = DataLoader(
        torch.arange(8.0), batch_size=2, num_workers=workers, pin_memory=True
    )
    batches = iter(loader)
    batch = next(batches)
    assert batch.is_pinned()
    assert (threading.active_count() > before) == (workers > 0)
    assert not next(iter(DataLoader(torch.arange(8.0)))).is_pinned()


@pytest.mark.gpu
def test_copies_that_wait(waits):
    """The GPU can fetch from page-locked memory by itself. From any other memory the driver copies twice, and your program waits.

    With `pin_memory=True` *and* `batch.to(device, non_blocking=True)` your program goes on while the copy runs, and orders the kernels that come after it. (Copy and kernels wait for one another all the same, unless the copy has a stream of its own.)

    A GPU does its work later: if `synchronize` is given, call it after each step, once.
    """
    pageable = torch.ones(2**24)
    pinned = pageable.pin_memory()

    def copied(batch, **how):
        return lambda: batch.to("cuda", **how) * 2

    copied(pinned, non_blocking=True)()
    copied(pageable)()
    assert not waits(copied(pinned, non_blocking=True))
    assert waits(copied(pinned))
    assert waits(copied(pageable))
    assert waits(copied(pageable, non_blocking=True))
    there = torch.ones(3, device="cuda")
    assert not waits(lambda: there * 2)
    assert waits(torch.cuda.synchronize)

    side = torch.cuda.Stream()
    for stream, passes in ((torch.cuda.current_stream(), False), (side, True)):
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000_000)
        slept, arrived = torch.cuda.Event(), torch.cuda.Event()
        slept.record()
        with torch.cuda.stream(stream):
            pinned.to("cuda", non_blocking=True)
            arrived.record()
        arrived.synchronize()
        assert slept.query() == (not passes)


@pytest.mark.gpu
def test_the_way_back_is_a_trap():
    """The other way, from the GPU to the CPU, `non_blocking=True` is a trap: you can read the numbers before they have arrived."""
    there = torch.zeros(2**20, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    there.fill_(12345.0)
    here = there.to("cpu", non_blocking=True)
    early = (here == 12345.0).all()
    torch.cuda.synchronize()
    assert not early
    assert (here == 12345.0).all()


@pytest.mark.gpu
def test_gradients_in_a_forked_worker(python):
    """and once autograd has run in your process, a forked worker cannot take gradients."""
    program = (
        "import os, torch\n"
        "weight = torch.ones(1, requires_grad=True)\n"
        "{}\n"
        "if os.fork() == 0:\n"
        "    (weight * 2).sum().backward()\n"
        "    print('a gradient', flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert "a gradient" in python(program.format("pass"))
    said = python(program.format("(weight * 2).sum().backward()"))
    assert "autograd's threading" in said
    assert "a gradient" not in said
