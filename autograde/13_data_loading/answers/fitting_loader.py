"""Answers to `fitting_loader` of chapter 13."""

import math

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
)

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def fitting_by_counting_down(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    def fits(workers, ahead):
        return (workers * ahead + 1) * batch_bytes <= free_bytes

    workers = num_workers
    while workers > 0 and not fits(workers, 1):
        workers -= 1
    g = torch.Generator()
    g.manual_seed(seed)
    common = dict(
        batch_size=batch_size,
        sampler=RandomSampler(dataset, generator=g),
        pin_memory=device.type == "cuda",
    )
    if workers == 0:
        return DataLoader(dataset, num_workers=0, **common)
    ahead = prefetch_factor
    while not fits(workers, ahead):
        ahead -= 1
    return DataLoader(
        dataset,
        num_workers=workers,
        prefetch_factor=ahead,
        persistent_workers=True,
        **common,
    )


@accepted()
def fitting_with_nones(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = max(free_bytes // batch_bytes - 1, 0)
    workers = min(num_workers, room)
    some = workers > 0

    class Order(Sampler):
        def __init__(self):
            self.epoch = 0

        def __iter__(self):
            rng = np.random.default_rng([seed, self.epoch])
            self.epoch += 1
            yield from rng.permutation(len(dataset)).tolist()

        def __len__(self):
            return len(dataset)

    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=Order(),
        num_workers=workers,
        prefetch_factor=min(prefetch_factor, room // workers) if some else None,
        persistent_workers=some,
        pin_memory=torch.device(device).type == "cuda",
        drop_last=False,
    )


@accepted()
def fitting_with_two_generators(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 1
    workers = min(num_workers, room) if room > 0 else 0
    extra = {}
    if workers:
        extra["persistent_workers"] = True
        extra["prefetch_factor"] = min(room // workers, prefetch_factor)
    order = RandomSampler(
        range(len(dataset)), generator=torch.Generator().manual_seed(seed)
    )
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=order,
        generator=torch.Generator().manual_seed(seed + 1),
        num_workers=workers,
        pin_memory=str(device).startswith("cuda"),
        **extra,
    )


@accepted()
def fitting_by_a_batch_sampler(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    choices = [
        (workers, ahead)
        for workers in range(1, num_workers + 1)
        for ahead in range(1, prefetch_factor + 1)
        if (workers * ahead + 1) * batch_bytes <= free_bytes
    ]
    order = RandomSampler(
        dataset, generator=torch.Generator().manual_seed(seed)
    )
    options = {"batch_sampler": BatchSampler(order, batch_size, False)}
    if device.type == "cuda":
        options["pin_memory"] = True
    if choices:
        workers, ahead = max(choices)
        options["num_workers"] = workers
        options["prefetch_factor"] = ahead
        options["persistent_workers"] = True
    return DataLoader(dataset, **options)


@accepted()
def fitting_with_reseeded_epochs(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    own = torch.Generator()

    class Epochs(Sampler):
        epoch = 0

        def __iter__(self):
            own.manual_seed(seed * 1009 + self.epoch)
            self.epoch += 1
            return iter(torch.randperm(len(dataset), generator=own).tolist())

        def __len__(self):
            return len(dataset)

    room = free_bytes // batch_bytes - 1
    workers = max(0, min(num_workers, room))
    return DataLoader(
        dataset,
        batch_size,
        False,
        Epochs(),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        persistent_workers=workers > 0,
        prefetch_factor=min(prefetch_factor, room // workers)
        if workers
        else None,
    )


@accepted()
def fitting_by_a_list_of_batches(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 1
    if_any, workers = {}, max(0, min(num_workers, room))
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}

    class Batches:
        def __len__(self):
            return math.ceil(len(dataset) / batch_size)

        def __iter__(self):
            rest = list(order)
            while rest:
                batch, rest = rest[:batch_size], rest[batch_size:]
                yield batch

    order = RandomSampler(
        dataset, generator=torch.Generator().manual_seed(seed)
    )
    return DataLoader(
        dataset,
        batch_sampler=Batches(),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@accepted()
def fitting_by_searching(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 1
    pairs = [
        (w, p)
        for w in range(1, num_workers + 1)
        for p in range(1, prefetch_factor + 1)
        if w * p <= room
    ]
    if_any, workers = {}, 0
    if pairs:
        workers, ahead = max(pairs)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
    order = RandomSampler(
        dataset, generator=torch.Generator().manual_seed(seed)
    )
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@accepted()
def mended_fitting_with_prefetch_as_asked(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 1
    workers = max(0, min(num_workers, room))
    if_any = {}
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(dataset, generator=own)
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@accepted()
def mended_fitting_by_fork(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 1
    if_any, workers = {}, max(0, min(num_workers, room))
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}

    class Batches:
        def __len__(self):
            return math.ceil(len(dataset) / batch_size)

        def __iter__(self):
            rest = list(order)
            while rest:
                batch, rest = rest[:batch_size], rest[batch_size:]
                yield batch

    order = RandomSampler(
        dataset, generator=torch.Generator().manual_seed(seed)
    )
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    breaks=hidden_tests.each_sample_once,
    tells="You draw a few orders beforehand and go round them. Sooner or later an "
    "epoch has an order that came before: draw a new one for each.",
)
def fitting_with_five_orders(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 1
    workers = max(0, min(num_workers, room))
    if_any = {}
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
    own = torch.Generator().manual_seed(seed)
    n = len(dataset)
    five = [torch.randperm(n, generator=own).tolist() for _ in range(5)]

    class Order(Sampler):
        epoch = 0

        def __iter__(self):
            self.epoch += 1
            return iter(five[self.epoch % 5])

        def __len__(self):
            return n

    return DataLoader(
        dataset,
        batch_size,
        sampler=Order(),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    breaks=hidden_tests.workers_that_fit,
    tells="You look up how much shared memory there is here. `free_bytes` "
    "says it: the loader may be meant for another machine.",
)
def fitting_with_what_is_free_here(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    import os

    if os.path.exists("/dev/shm"):
        space = os.statvfs("/dev/shm")
    else:
        space = os.statvfs(".")
    free_bytes = min(free_bytes, space.f_bavail * space.f_frsize)
    room = free_bytes // batch_bytes - 1
    if_any, workers = {}, max(0, min(num_workers, room))
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
    order = RandomSampler(
        dataset, generator=torch.Generator().manual_seed(seed)
    )
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )
