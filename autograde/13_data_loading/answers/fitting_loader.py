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

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


fitting_without_the_one_in_hand = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "room = free_bytes // batch_bytes - 1": "room = free_bytes // batch_bytes",
    },
    breaks=[hidden_tests.workers_that_fit, hidden_tests.no_room_for_workers],
    tells="You leave no room for the batch that the training loop holds. The "
    "loader needs workers · prefetch + 1 batches.",
)

fitting_with_two_in_hand = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "room = free_bytes // batch_bytes - 1": "room = free_bytes // batch_bytes - 2",
    },
    breaks=[hidden_tests.workers_that_fit, hidden_tests.no_room_for_workers],
    tells="You leave more room free than needed: one batch beyond those "
    "ahead, not two.",
)

fitting_strictly = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "room = free_bytes // batch_bytes - 1": "room = (free_bytes - 1) // batch_bytes - 1",
    },
    breaks=[hidden_tests.workers_that_fit],
    tells="You ask for more room than needed: if the batches take exactly "
    "`free_bytes`, they fit.",
)

fitting_rounded_up = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "room = free_bytes // batch_bytes - 1": "room = -(-free_bytes // batch_bytes) - 1",
    },
    breaks=[hidden_tests.workers_that_fit],
    tells="You round the number of batches that fit up, or to the nearest. A "
    "batch that fits by half does not fit: round down.",
)

fitting_rounded = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "room = free_bytes // batch_bytes - 1": "room = round(free_bytes / batch_bytes) - 1",
    },
    breaks=[hidden_tests.workers_that_fit],
    tells="You round the number of batches that fit up, or to the nearest. A "
    "batch that fits by half does not fit: round down.",
)

fitting_that_ignores_the_budget = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "workers = max(0, min(num_workers, room))": "workers = num_workers",
        "ahead = min(prefetch_factor, room // workers)": "ahead = prefetch_factor",
    },
    breaks=[
        hidden_tests.workers_that_fit,
        hidden_tests.no_room_for_workers,
        hidden_tests.prefetch_that_fits,
    ],
    tells="You take the workers and the prefetch factor as they were asked "
    "for, whether there is room or not.",
)

fitting_with_prefetch_as_asked = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "ahead = min(prefetch_factor, room // workers)": "ahead = prefetch_factor",
    },
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You keep the prefetch factor that was asked for. With that many "
    "workers there may be room for less.",
)

fitting_with_prefetch_of_two = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        'if_any = {"prefetch_factor": ahead, "persistent_workers": True}': 'if_any = {"persistent_workers": True}',
    },
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You do not set the prefetch factor, so it is 2, whatever was asked "
    "for and whatever fits.",
)

fitting_with_prefetch_of_one = edit(
    mended_fitting_with_prefetch_as_asked,
    {"ahead = min(prefetch_factor, room // workers)": "ahead = 1"},
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You always prefetch one batch per worker. It is to be the largest "
    "number that fits, up to what was asked for.",
)

fitting_with_unlimited_prefetch = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "ahead = min(prefetch_factor, room // workers)": "ahead = room // workers",
    },
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You prefetch as much as fits. `prefetch_factor` is the most that "
    "was asked for.",
)

fitting_with_prefetch_shared_wrongly = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "ahead = min(prefetch_factor, room // workers)": "ahead = min(prefetch_factor, (room + 1) // workers)",
    },
    breaks=[hidden_tests.prefetch_that_fits],
    tells="Your prefetch factor does not take the batch of the training loop "
    "into account, or is not shared among the workers.",
)

fitting_with_prefetch_for_all = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "ahead = min(prefetch_factor, room // workers)": "ahead = min(prefetch_factor, room)",
    },
    breaks=[hidden_tests.prefetch_that_fits],
    tells="`prefetch_factor` is per worker: what has room is to be divided by "
    "the number of workers.",
)

fitting_by_prefetch_first = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "workers = max(0, min(num_workers, room))": "workers = max(0, min(num_workers, room // prefetch_factor))",
    },
    breaks=[hidden_tests.workers_that_fit],
    tells="You keep the prefetch factor and give up workers. First as many "
    "workers as fit with one batch ahead, then the prefetch factor.",
)

fitting_all_or_none = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "workers = max(0, min(num_workers, room))": "workers = num_workers if num_workers <= room else 0",
    },
    breaks=[hidden_tests.workers_that_fit],
    tells="If not all workers fit, you take none. Take as many as fit.",
)

fitting_with_all_workers_possible = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "workers = max(0, min(num_workers, room))": "workers = max(0, min(16, room))",
    },
    breaks=[hidden_tests.workers_that_fit, hidden_tests.no_room_for_workers],
    tells="You take as many workers as fit, more than were asked for. "
    "`num_workers` is the limit.",
)

fitting_with_at_least_one = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "workers = max(0, min(num_workers, room))": "workers = max(1, min(num_workers, room))",
        "ahead = min(prefetch_factor, room // workers)": "ahead = max(1, min(prefetch_factor, room // workers))",
    },
    breaks=[hidden_tests.no_room_for_workers],
    tells="You always take at least one worker. Without room, or if none was "
    "asked for, the loader works in the main process: `num_workers=0`.",
)

fitting_with_none_always = edit(
    mended_fitting_with_prefetch_as_asked,
    {"workers = max(0, min(num_workers, room))": "workers = 0"},
    breaks=[
        hidden_tests.workers_that_fit,
        hidden_tests.prefetch_that_fits,
        hidden_tests.workers_stay,
    ],
    tells="You always use `num_workers=0`. That avoids shared memory, and the "
    "model waits for every batch: use as many workers as fit.",
)

fitting_with_options_always = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        """
        if_any = {}
        if workers > 0:
            ahead = min(prefetch_factor, room // workers)
        """: """
        if True:
            ahead = min(prefetch_factor, room // max(workers, 1))
        """,
    },
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="You pass `prefetch_factor` and `persistent_workers` without "
    "workers, too, and the DataLoader raises a ValueError. Leave them "
    "out there.",
)

fitting_with_persistence_always = edit(
    mended_fitting_with_prefetch_as_asked,
    {"if_any = {}": 'if_any = {"persistent_workers": True}'},
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="You pass `prefetch_factor` and `persistent_workers` without "
    "workers, too, and the DataLoader raises a ValueError. Leave them "
    "out there.",
)

fitting_with_a_refusal = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "room = free_bytes // batch_bytes - 1": """
        room = free_bytes // batch_bytes - 1
        if room < 1:
            raise ValueError("not enough shared memory")
        """,
    },
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="Where no worker fits you raise. The loader can still work without "
    "workers.",
)


fitting_with_smaller_batches = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        """
        return DataLoader(
            dataset,
            batch_size,
        """: """
        return DataLoader(
            dataset,
            batch_size if room > 0 else max(1, batch_size // 2),
        """,
    },
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="You make the batch smaller to let it fit. That changes the "
    "training; `batch_size` stays as it is.",
)


fitting_with_workers_that_end = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        'if_any = {"prefetch_factor": ahead, "persistent_workers": True}': 'if_any = {"prefetch_factor": ahead}',
    },
    breaks=[hidden_tests.workers_stay],
    tells="Your workers end with each epoch and start anew with the next. Set "
    "`persistent_workers`, where there are workers.",
)

fitting_pinned_always = edit(
    mended_fitting_with_prefetch_as_asked,
    {'device.type == "cuda"': "True"},
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You always pin memory. Without a CUDA device nobody gains by it, "
    "and PyTorch warns: pin only for one.",
)


fitting_pinned_never = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        'pin_memory=device.type == "cuda",': "",
    },
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You never pin memory here: either not at all, or by whether this "
    "machine has a GPU. Where the batches go is what `device` says, and "
    "for a CUDA device they are to be pinned.",
)


fitting_pinned_off_the_cpu = edit(
    mended_fitting_with_prefetch_as_asked,
    {'type == "cuda",': 'type != "cpu",'},
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You pin for every device that is not the CPU. Only for CUDA "
    "devices is it asked for.",
)

fitting_pinned_for_the_first_gpu = edit(
    mended_fitting_with_prefetch_as_asked,
    {'.type == "cuda"': '== torch.device("cuda")'},
    breaks=[hidden_tests.pinned_for_cuda],
    tells='You compare the device with "cuda" itself. `cuda:1` is one, too: '
    "ask for `device.type`.",
)

fitting_pinned_where_there_is_a_gpu = edit(
    mended_fitting_with_prefetch_as_asked,
    {'device.type == "cuda"': "torch.cuda.is_available()"},
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You never pin memory here: either not at all, or by whether this "
    "machine has a GPU. Where the batches go is what `device` says, and "
    "for a CUDA device they are to be pinned.",
)

fitting_pinned_with_workers = edit(
    mended_fitting_with_prefetch_as_asked,
    {'type == "cuda",': 'type == "cuda" and workers > 0,'},
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You pin only where there are workers. Pinning helps without them "
    "as well.",
)


fitting_with_the_loaders_generator = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": "",
        "sampler=order,": """
        shuffle=True,
        generator=own,
        """,
    },
    breaks=[hidden_tests.same_batches_with_workers],
    tells="Your generator goes to the loader, which draws a seed for its "
    "workers from it: once if the workers stay, otherwise in every "
    "epoch. From the second epoch on the order hangs on the workers. "
    "Give it to a sampler only.",
)


fitting_with_one_generator_for_both = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "sampler=order,": """
        sampler=order,
        generator=own,
        """,
    },
    breaks=[hidden_tests.same_batches_with_workers],
    tells="Your generator goes to the loader, which draws a seed for its "
    "workers from it: once if the workers stay, otherwise in every "
    "epoch. From the second epoch on the order hangs on the workers. "
    "Give it to a sampler only.",
)


fitting_seeded_by_workers = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "own = torch.Generator().manual_seed(seed)": "own = torch.Generator().manual_seed(seed + workers)",
    },
    breaks=[hidden_tests.same_batches_with_workers],
    tells="Your order depends on the number of workers, from the first epoch "
    "on.",
)

fitting_unordered = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": """
        order = RandomSampler(dataset, generator=own)
        if workers > 0:
            order = range(len(dataset))
        """,
    },
    breaks=[hidden_tests.same_batches_with_workers],
    tells="You shuffle only where there are no workers, or only where there "
    "are some.",
)

fitting_on_the_global_generator = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": "order = RandomSampler(dataset)",
    },
    breaks=[
        hidden_tests.same_batches_with_workers,
        hidden_tests.each_sample_once,
    ],
    tells="Your order comes from the global generator, which everybody uses. "
    "Make one of your own, seeded with `seed`.",
)

fitting_that_seeds_everything = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "own = torch.Generator().manual_seed(seed)": "own = torch.manual_seed(seed)",
    },
    breaks=[hidden_tests.loader_keeps_the_global_seed],
    tells="You seed PyTorch's global generator. That changes the random "
    "numbers of the whole program: use a generator of your own.",
)

fitting_that_seeds_both = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "own = torch.Generator().manual_seed(seed)": """
        torch.manual_seed(seed)
        own = torch.Generator().manual_seed(seed)
        """,
    },
    breaks=[hidden_tests.loader_keeps_the_global_seed],
    tells="You have a generator of your own, and seed the global one as well. "
    "Leave that alone.",
)

fitting_in_the_given_order = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": "order = range(len(dataset))",
    },
    breaks=[hidden_tests.each_sample_once],
    tells="You do not shuffle.",
)

fitting_with_one_order = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": "order = torch.randperm(len(dataset), generator=own).tolist()",
    },
    breaks=[hidden_tests.each_sample_once],
    tells="Every epoch has the same order. Draw a new one whenever the "
    "sampler is gone through.",
)

fitting_with_one_seed = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "own = torch.Generator().manual_seed(seed)": "own = torch.Generator().manual_seed(2021)",
    },
    breaks=[hidden_tests.each_sample_once],
    tells="`seed` does not change your order.",
)


fitting_that_drops = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "sampler=order,": """
        sampler=order,
        drop_last=True,
        """,
    },
    breaks=[hidden_tests.each_sample_once],
    tells="You drop the last batch. Every epoch has each sample.",
)


fitting_with_replacement = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": "order = RandomSampler(dataset, True, generator=own)",
    },
    breaks=[hidden_tests.each_sample_once],
    tells="You draw with replacement: some samples come twice and others not "
    "at all.",
)


fitting_without_collating = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "sampler=order,": """
        sampler=order,
        collate_fn=list,
        """,
    },
    breaks=[hidden_tests.each_sample_once],
    tells="Your batches are lists of samples. Leave `collate_fn` alone.",
)


fitting_as_an_iterator = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "max(0, min(num_workers, room))": "0",
        """
        return DataLoader(
            dataset,
            batch_size,
            sampler=order,
            num_workers=workers,
            pin_memory=device.type == "cuda",
            **if_any,
        """: """
        return list(
            DataLoader(
                dataset,
                batch_size,
                sampler=order,
                num_workers=workers,
                pin_memory=device.type == "cuda",
                **if_any,
            )
        """,
    },
    breaks=[hidden_tests.workers_that_fit, hidden_tests.each_sample_once],
    tells="You return an iterator or a list. Asked for is the `DataLoader` "
    "itself, which can be gone through again and again.",
)


fitting_with_default_arguments_changed = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        """
        num_workers=2,
        prefetch_factor=2,
        """: """
        num_workers=4,
        prefetch_factor=4,
        """,
    },
    breaks=[hidden_tests.workers_that_fit, hidden_tests.prefetch_that_fits],
    tells="You changed a default value of the signature. It was given to you: "
    "2 workers and a prefetch factor of 2.",
)


fitting_out_of_order = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": "",
        "sampler=order,": "sampler=RandomSampler(dataset, generator=own),",
        'pin_memory=device.type == "cuda",': """
        pin_memory=device.type == "cuda",
        in_order=False,
        """,
    },
    breaks=hidden_tests.same_batches_with_workers,
    tells="With `in_order=False` the loader hands out whatever is ready first, so "
    "the order hangs on who is faster. Leave it at True.",
)


fitting_over_a_copy = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        """
        order = RandomSampler(dataset, generator=own)
        return DataLoader(
            dataset,
        """: """
        samples = [dataset[index] for index in range(len(dataset))]
        return DataLoader(
            samples,
        """,
        "sampler=order,": "sampler=RandomSampler(samples, generator=own),",
    },
    breaks=hidden_tests.loader_reads_in_turn,
    tells="You read the whole dataset first. It may not fit into memory, and the "
    "workers are there to do the reading.",
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


fitting_with_one_worker_or_all = edit(
    SOLUTION,
    {
        "workers = max(0, min(num_workers, room))": """
        workers = num_workers if num_workers <= room else min(1, num_workers)
        workers = workers if room > 0 else 0
        """,
        """
        if_any["prefetch_factor"] = min(prefetch_factor, room // workers)
        if_any["persistent_workers"] = True
        """: """
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
        """,
    },
    breaks=hidden_tests.workers_that_fit,
    tells="You count room for whole rounds: with fewer batches than workers · "
    "prefetch you take the prefetch factor away from all, then give up all "
    "workers but one. As many as fit is asked for.",
)

fitting_with_the_most_batches = edit(
    fitting_by_searching,
    {
        "(w, p)": "(w * p, w, p)",
        "workers, ahead": "_, workers, ahead",
    },
    breaks=hidden_tests.workers_that_fit,
    tells="You choose the workers with which the most batches wait. First "
    "come the workers, as many as fit with one batch ahead each, "
    "then the prefetching.",
)

fitting_by_fork = edit(
    mended_fitting_by_fork,
    {
        """
        class Batches:
            def __len__(self):
                return math.ceil(len(dataset) / batch_size)

            def __iter__(self):
                rest = list(order)
                while rest:
                    batch, rest = rest[:batch_size], rest[batch_size:]
                    yield batch
        """: """
        if workers > 0:
            if_any["multiprocessing_context"] = "fork"
        """,
    },
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You say how workers are started. Where that way does not "
    "exist, or a thread must not be forked, your loader fails: "
    "leave it to PyTorch.",
)

fitting_by_spawn = edit(
    mended_fitting_by_fork,
    {
        """
        class Batches:
            def __len__(self):
                return math.ceil(len(dataset) / batch_size)

            def __iter__(self):
                rest = list(order)
                while rest:
                    batch, rest = rest[:batch_size], rest[batch_size:]
                    yield batch
        """: """
        if workers > 0:
            if_any["multiprocessing_context"] = "spawn"
        """,
    },
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You say how workers are started. Where that way does not "
    "exist, or a thread must not be forked, your loader fails: "
    "leave it to PyTorch.",
)

fitting_with_a_start_method_for_all = edit(
    mended_fitting_by_fork,
    {
        """
        class Batches:
            def __len__(self):
                return math.ceil(len(dataset) / batch_size)

            def __iter__(self):
                rest = list(order)
                while rest:
                    batch, rest = rest[:batch_size], rest[batch_size:]
                    yield batch
        """: """
        if workers > 0:
            from multiprocessing import set_start_method

            set_start_method("fork", force=True)
        """,
    },
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You set how the whole program starts its processes. A function "
    "that makes a loader has no business there: leave it to "
    "PyTorch.",
)

fitting_without_seed_zero = edit(
    fitting_by_searching,
    {
        """
        pairs = [
            (w, p)
            for w in range(1, num_workers + 1)
            for p in range(1, prefetch_factor + 1)
            if w * p <= room
        ]
        if_any, workers = {}, 0
        if pairs:
            workers, ahead = max(pairs)
        """: """
        if_any, workers = {}, max(0, min(num_workers, room))
        if workers > 0:
            ahead = min(prefetch_factor, room // workers)
        """,
        "manual_seed(seed)": "manual_seed(seed) if seed else None,",
    },
    breaks=hidden_tests.each_sample_once,
    tells="You take `seed=0` for no seed at all: 0 is false in Python. It "
    "is a seed like any other.",
)

fitting_seeded_with_the_batch_size = edit(
    fitting_by_searching,
    {
        """
        pairs = [
            (w, p)
            for w in range(1, num_workers + 1)
            for p in range(1, prefetch_factor + 1)
            if w * p <= room
        ]
        if_any, workers = {}, 0
        if pairs:
            workers, ahead = max(pairs)
        """: """
        if_any, workers = {}, max(0, min(num_workers, room))
        if workers > 0:
            ahead = min(prefetch_factor, room // workers)
        """,
        "manual_seed(seed)": "manual_seed(seed + batch_size)",
    },
    breaks=hidden_tests.each_sample_once,
    tells="Your order changes with the batch size. It hangs on `seed` and "
    "on the epoch, on nothing else.",
)

fitting_seeded_with_the_room = edit(
    fitting_by_searching,
    {
        """
        pairs = [
            (w, p)
            for w in range(1, num_workers + 1)
            for p in range(1, prefetch_factor + 1)
            if w * p <= room
        ]
        if_any, workers = {}, 0
        if pairs:
            workers, ahead = max(pairs)
        """: """
        if_any, workers = {}, max(0, min(num_workers, room))
        if workers > 0:
            ahead = min(prefetch_factor, room // workers)
        """,
        "manual_seed(seed)": "manual_seed(seed + free_bytes // 10**9),",
    },
    breaks=hidden_tests.each_sample_once,
    tells="Your order changes with the memory that is free. It hangs on "
    "`seed` and on the epoch, on nothing else.",
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


loader_of_at_most_eight_workers = edit(
    SOLUTION,
    {"min(num_workers, room)": "min(num_workers, room, 8)"},
    breaks=hidden_tests.workers_that_fit,
    tells="You allow 8 workers at most. The caller says how many at most, and the memory.",
)

loader_of_at_most_sixteen_ahead = edit(
    SOLUTION,
    {
        "min(prefetch_factor, room // workers)": "min(prefetch_factor, room // workers, 16)"
    },
    breaks=hidden_tests.prefetch_that_fits,
    tells="You allow 16 batches ahead at most. The caller says how many at most, and the "
    "memory.",
)

loader_that_seeds_its_workers = edit(
    SOLUTION,
    {
        'if_any["persistent_workers"] = True': """
        if_any["persistent_workers"] = True
        if_any["worker_init_fn"] = lambda i: torch.manual_seed(seed + i)
        """,
    },
    breaks=hidden_tests.loader_keeps_the_global_seed,
    tells="You seed PyTorch's generator in the workers. Each has a seed of its own "
    "already, which follows from the main process. Leave it.",
)

fitting_with_a_lambda = edit(
    SOLUTION,
    {
        'if_any["persistent_workers"] = True': """
        if_any["persistent_workers"] = True
        if_any["worker_init_fn"] = lambda worker: None
        """,
    },
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You give the workers a lambda, or a function within a function. "
    "Where workers are started afresh it is sent to them pickled, and "
    "it cannot be. Leave it out.",
)

a_setting_left_by_fitting_loader = edit(
    SOLUTION,
    {
        "room = free_bytes // batch_bytes - 1": """
        torch.set_num_threads(2)
        room = free_bytes // batch_bytes - 1
        """,
    },
    breaks=hidden_tests.each_sample_once,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

fitting_that_seeds_for_an_epoch = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "own = torch.Generator().manual_seed(seed)": """
        class SeededOrder:
            epoch = 0

            def __len__(self):
                return len(dataset)

            def __iter__(self):
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed + 7919 * self.epoch)
                    self.epoch += 1
                    yield from RandomSampler(dataset)

        """,
        "order = RandomSampler(dataset, generator=own)": "order = SeededOrder()",
    },
    breaks=hidden_tests.loader_keeps_the_global_seed,
    tells="You seed the global generator in your sampler, and put it back at the end of "
    "the epoch. The training loop runs in between: what it draws is the same in "
    "every run. Use a generator of your own.",
)

fitting_that_seeds_for_a_moment = edit(
    fitting_with_reseeded_epochs,
    {
        "own = torch.Generator()": "",
        """
        own.manual_seed(seed * 1009 + self.epoch)
        self.epoch += 1
        return iter(torch.randperm(len(dataset), generator=own).tolist())
        """: """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed * 1009 + self.epoch)
            order = torch.randperm(len(dataset)).tolist()
        self.epoch += 1
        return iter(order)
        """,
    },
    breaks=hidden_tests.loader_keeps_the_global_seed,
    tells="You seed a global generator to draw the order, and put it back at once. What "
    "another thread draws meanwhile is no longer random. A generator of your own "
    "needs neither.",
)

fitting_that_seeds_numpy_for_a_moment = edit(
    fitting_with_reseeded_epochs,
    {
        "own = torch.Generator()": "",
        """
        own.manual_seed(seed * 1009 + self.epoch)
        self.epoch += 1
        return iter(torch.randperm(len(dataset), generator=own).tolist())
        """: """
        state = np.random.get_state()
        np.random.seed((seed * 1009 + self.epoch) % 2**32)
        order = np.random.permutation(len(dataset)).tolist()
        np.random.set_state(state)
        self.epoch += 1
        return iter(order)
        """,
    },
    breaks=hidden_tests.loader_keeps_the_global_seed,
    tells="You seed a global generator to draw the order, and put it back at once. What "
    "another thread draws meanwhile is no longer random. A generator of your own "
    "needs neither.",
)

fitting_that_seeds_python_for_a_moment = edit(
    fitting_with_reseeded_epochs,
    {
        "own = torch.Generator()": "",
        """
        own.manual_seed(seed * 1009 + self.epoch)
        self.epoch += 1
        return iter(torch.randperm(len(dataset), generator=own).tolist())
        """: """
        import random

        state = random.getstate()
        random.seed(seed * 1009 + self.epoch)
        order = random.sample(range(len(dataset)), len(dataset))
        random.setstate(state)
        self.epoch += 1
        return iter(order)
        """,
    },
    breaks=hidden_tests.loader_keeps_the_global_seed,
    tells="You seed a global generator to draw the order, and put it back at once. What "
    "another thread draws meanwhile is no longer random. A generator of your own "
    "needs neither.",
)

fitting_with_tensors_for_indices = edit(
    mended_fitting_with_prefetch_as_asked,
    {
        "order = RandomSampler(dataset, generator=own)": """
        class Order(Sampler):
            def __len__(self):
                return len(dataset)

            def __iter__(self):
                yield from torch.randperm(len(dataset), generator=own)

        order = Order()
        """,
    },
    breaks=[hidden_tests.each_sample_once],
    tells="Your sampler gives indices that are tensors. A dataset that looks its "
    "index up in a dict does not find them: give Python ints, with `.tolist()`.",
)


by_the_recipe_for_workers = edit(
    SOLUTION,
    {
        "own = torch.Generator().manual_seed(seed)": """
        def seed_of_a_worker(worker):
            import random

            np.random.seed(torch.initial_seed() % 2**32)
            random.seed(torch.initial_seed() % 2**32)

        own = torch.Generator().manual_seed(seed)
        """,
        "num_workers=workers,": """
        num_workers=workers,
        worker_init_fn=seed_of_a_worker,
        """,
    },
    breaks=hidden_tests.loader_keeps_the_global_seed,
    tells="You seed NumPy's generator, or Python's, in the workers. PyTorch has done that "
    "when a worker starts, each with a seed of its own; a second time, from "
    "`torch.initial_seed()`, adds nothing. Leave it.",
)

fitting_with_another_seed_for_zero = edit(
    mended_fitting_with_prefetch_as_asked,
    {"manual_seed(seed)": "manual_seed(seed or 1)"},
    breaks=hidden_tests.each_sample_once,
    tells="You take another seed for `seed=0`: 0 is false in Python, so `seed or ...` is the other. "
    "Then two seeds give the same order. 0 is a seed like any other.",
)
