"""The answer bank of chapter 13: data loading."""

import functools
import math
import time

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
    default_collate,
)

from course_grader.bank import accepted, wrong

from . import hidden_tests

# time_split


@accepted("time_split")
def split_by_hand(loader, step, clock=time.perf_counter, synchronize=None):
    waiting, working = 0.0, 0.0
    start = clock()
    batches = iter(loader)
    waiting += clock() - start
    while True:
        start = clock()
        try:
            batch = next(batches)
        except StopIteration:
            waiting += clock() - start
            break
        waiting += clock() - start
        start = clock()
        step(batch)
        if synchronize:
            synchronize()
        working += clock() - start
    return waiting, working


@accepted("time_split")
def split_as_the_rest(loader, step, clock=time.perf_counter, synchronize=None):
    working = 0.0
    start = clock()
    for batch in loader:
        before = clock()
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - before
    return clock() - start - working, working


@accepted("time_split")
def split_by_a_for_loop(
    loader, step, clock=time.perf_counter, synchronize=None
):
    marks = [clock()]
    for batch in loader:
        marks.append(clock())
        step(batch)
        synchronize and synchronize()
        marks.append(clock())
    marks.append(clock())
    spans = [after - before for before, after in zip(marks, marks[1:])]
    return float(sum(spans[0::2])), float(sum(spans[1::2]))


@accepted("time_split")
def split_by_a_stopwatch(
    loader, step, clock=time.perf_counter, synchronize=None
):
    totals = {"waiting": 0.0, "working": 0.0}

    class Stopwatch:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            self.start = clock()

        def __exit__(self, *_):
            totals[self.name] += clock() - self.start

    with Stopwatch("waiting"):
        batches = iter(loader)
        batch = next(batches, batches)
    while batch is not batches:
        with Stopwatch("working"):
            step(batch)
            if synchronize is not None:
                synchronize()
        with Stopwatch("waiting"):
            batch = next(batches, batches)
    return totals["waiting"], totals["working"]


@accepted("time_split")
def split_by_a_timed_generator(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = 0.0

    def timed():
        nonlocal waiting
        start = clock()
        for batch in loader:
            waiting += clock() - start
            yield batch
            start = clock()
        waiting += clock() - start

    working = 0.0
    for batch in timed():
        start = clock()
        step(batch)
        if synchronize is not None:
            synchronize()
        working = working + (clock() - start)
    return waiting, working


@accepted("time_split")
def split_with_arrays(loader, step, clock=time.perf_counter, synchronize=None):
    spans = np.zeros(2)
    now = clock()
    for batch in loader:
        then, now = now, clock()
        spans[0] += now - then
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        spans[1] += now - then
    spans[0] += clock() - now
    return tuple(spans.tolist())


@wrong(
    "time_split",
    breaks=hidden_tests.start_and_end,
    tells="You start the clock after `iter(loader)`. With workers that is where "
    "they are started, and the model waits for it: read the clock first.",
)
def split_after_iter(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    batches = iter(loader)
    nothing = object()
    while True:
        a = clock()
        batch = next(batches, nothing)
        b = clock()
        waiting += b - a
        if batch is nothing:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - b


@wrong(
    "time_split",
    breaks=hidden_tests.start_and_end,
    tells="The last `next`, which finds nothing more, takes its time, too. You "
    "stop counting after the last batch.",
)
def split_without_the_end(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return waiting, working


@wrong(
    "time_split",
    breaks=hidden_tests.synchronizes,
    tells="You never call `synchronize`. On a GPU you then time how long it takes "
    "to order the work, and the rest turns up as waiting.",
)
def split_unsynchronized(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        a = clock()
        working += a - b
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.synchronizes,
    tells="You read the clock before `synchronize`, so the work that the GPU still "
    "had to do counts as waiting for data. Synchronize first.",
)
def split_synchronized_too_late(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        a = clock()
        working += a - b
        if synchronize is not None:
            synchronize()
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.synchronizes,
    tells="You synchronize and count it nowhere. What the GPU still had to do is "
    "work.",
)
def split_with_uncounted_synchronizing(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        working += clock() - b
        if synchronize is not None:
            synchronize()
        a = clock()
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.synchronizes,
    tells="You synchronize once, at the end of the epoch. Until then the GPU's work "
    "hides in the times of the next batches: synchronize after each step.",
)
def split_synchronized_once(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        a = clock()
        working += a - b
    waiting += clock() - a
    if synchronize is not None:
        a = clock()
        synchronize()
        working += clock() - a
    return waiting, working


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You take all batches before the first step. Neither a real epoch nor "
    "the memory looks like that: take a batch, do its step, take the next.",
)
def split_of_a_list(loader, step, clock=time.perf_counter, synchronize=None):
    a = clock()
    batches = list(loader)
    waiting = clock() - a
    a = clock()
    for batch in batches:
        step(batch)
        if synchronize is not None:
            synchronize()
    return waiting, clock() - a


@wrong(
    "time_split",
    breaks=[hidden_tests.times_of_the_parts, hidden_tests.start_and_end],
    tells="You do not use the `clock` that you are given. Whoever passes another "
    "one, a test for example, gets other seconds.",
)
def split_by_another_clock(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = time.perf_counter()
    for batch in loader:
        b = time.perf_counter()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = time.perf_counter()
        working += a - b
    # to the hour, or no two runs would be alike
    return float(round(waiting / 3600)), float(round(working / 3600))


@wrong(
    "time_split",
    breaks=hidden_tests.exceptions_pass,
    tells="A `StopIteration` of the step ends your loop as if the loader had "
    "ended. Keep `step` out of the `try` that waits for the end.",
)
def split_with_the_step_in_the_try(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    batches = iter(loader)
    while True:
        try:
            batch = next(batches)
            b = clock()
            waiting += b - a
            step(batch)
            if synchronize is not None:
                synchronize()
            a = clock()
            working += a - b
        except StopIteration:
            waiting += clock() - a
            return waiting, working


@wrong(
    "time_split",
    breaks=hidden_tests.exceptions_pass,
    tells="You catch whatever is raised and return times all the same. Nobody hears "
    "that the epoch has failed.",
)
def split_that_swallows_errors(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    try:
        for batch in loader:
            b = clock()
            waiting += b - a
            step(batch)
            if synchronize is not None:
                synchronize()
            a = clock()
            working += a - b
    except Exception:
        pass
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.exceptions_pass,
    tells="You wrap the exception in one of your own. The caller waits for the "
    "exception that was raised; let it pass.",
)
def split_that_wraps_errors(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    try:
        for batch in loader:
            b = clock()
            waiting += b - a
            step(batch)
            if synchronize is not None:
                synchronize()
            a = clock()
            working += a - b
    except Exception as error:
        raise AssertionError("the epoch failed") from error
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You ask the loader for its length. A generator has none; go on until "
    "nothing more comes.",
)
def split_by_length(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    num_batches = len(loader)
    batches = iter(loader)
    for _ in range(num_batches):
        batch = next(batches)
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You return the times the other way round: first waiting, then working.",
)
def split_turned_round(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return working, waiting + (clock() - a)


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You return mean times per batch. Asked for are the seconds of the whole "
    "epoch.",
)
def split_per_batch(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    count = 0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
        count += 1
    waiting += clock() - a
    return waiting / max(count, 1), working / max(count, 1)


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You return shares of the epoch. Asked for are seconds.",
)
def split_in_shares(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    waiting += clock() - a
    total = waiting + working or 1.0
    return waiting / total, working / total


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="Your second number is the time of the whole epoch. Working is what is "
    "left of it without the waiting.",
)
def split_with_the_whole(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = 0.0
    start = a = clock()
    for batch in loader:
        waiting += clock() - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
    waiting += clock() - a
    return waiting, clock() - start


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You leave the first batch out, as a warm-up. The epoch is what is asked "
    "for, and with workers it is the first batch that is waited for.",
)
def split_without_the_first(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    first = True
    a = clock()
    for batch in loader:
        b = clock()
        waiting += 0.0 if first else b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += 0.0 if first else a - b
        first = False
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You take the next batch before the step of the last one is done. That is "
    "prefetching: the loader's work now hides behind the step.",
)
def split_one_ahead(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    nothing = object()
    a = clock()
    batches = iter(loader)
    batch = next(batches, nothing)
    waiting += clock() - a
    while batch is not nothing:
        a = clock()
        following = next(batches, nothing)
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - b
        batch = following
    return waiting, working


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="Your loop ends as soon as a step returns something false, or true. What "
    "a step returns is of no concern.",
)
def split_that_minds_results(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        result = step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
        if result is not None and not result:
            break
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You return a list (or a tuple of something else than floats). Asked for "
    "is a tuple of two floats.",
)
def split_as_a_list(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return [waiting + (clock() - a), working]


# make_loaders


@accepted("make_loaders")
def loaders_by_drop_last(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in {"drop", "merge"} or batch_size < 2 or n < 2:
        raise ValueError("no training possible")
    if tail == "drop" and n < batch_size:
        raise ValueError("no full batch")
    g = torch.Generator()
    g.manual_seed(seed)
    validation = DataLoader(
        validation_set, batch_size=batch_size, shuffle=False
    )
    if tail == "drop" or n % batch_size != 1:
        train = DataLoader(
            train_set,
            batch_size=batch_size,
            shuffle=True,
            drop_last=tail == "drop",
            generator=g,
        )
        return train, validation

    class Merging(Sampler):
        def __iter__(self):
            order = torch.randperm(n, generator=g).tolist()
            cuts = list(range(0, n - 1, batch_size))
            for start, end in zip(cuts, [*cuts[1:], n]):
                yield order[start:end]

        def __len__(self):
            return n // batch_size

    return DataLoader(train_set, batch_sampler=Merging()), validation


@accepted("make_loaders")
def loaders_by_a_plain_object(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError(tail)
    sizes = [batch_size] * (len(train_set) // max(batch_size, 1))
    rest = len(train_set) - sum(sizes)
    if tail == "merge" and rest == 1 and sizes:
        sizes[-1] += 1
    elif tail == "merge" and rest:
        sizes.append(rest)
    if batch_size < 2 or not sizes or min(sizes) < 2:
        raise ValueError("a training batch would be empty or a single sample")

    class Batches:
        def __init__(self):
            self.rng = np.random.default_rng(seed)

        def __iter__(self):
            order = self.rng.permutation(len(train_set))
            at = 0
            for size in sizes:
                yield order[at : at + size].tolist()
                at += size

        def __len__(self):
            return len(sizes)

    return (
        DataLoader(train_set, batch_sampler=Batches()),
        DataLoader(validation_set, batch_size, drop_last=False),
    )


@accepted("make_loaders")
def loaders_by_epoch_number(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail != "drop" and tail != "merge":
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size <= 1 or n <= 1 or (tail == "drop" and n < batch_size):
        raise ValueError("cannot train")

    class ByEpoch:
        epoch = 0

        def __iter__(self):
            g = torch.Generator().manual_seed(1_000_003 * self.epoch + seed)
            self.epoch += 1
            parts = list(torch.randperm(n, generator=g).split(batch_size))
            if tail == "drop":
                parts = [part for part in parts if len(part) == batch_size]
            elif len(parts[-1]) == 1:
                last = parts.pop()
                parts[-1] = torch.cat([parts[-1], last])
            return iter([part.tolist() for part in parts])

        def __len__(self):
            if tail == "drop":
                return n // batch_size
            return math.ceil(n / batch_size) - (n % batch_size == 1)

    return (
        DataLoader(train_set, batch_sampler=ByEpoch()),
        DataLoader(validation_set, batch_size=batch_size),
    )


@accepted("make_loaders")
def loaders_by_a_subclass(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError(f"{tail!r} is no tail")
    if batch_size < 2 or n < 2 or (n < batch_size and tail == "drop"):
        raise ValueError("batch normalization needs two samples")

    class TrainingLoader(DataLoader):
        def __iter__(self):
            held = None
            for batch in super().__iter__():
                if held is None:
                    held = batch
                    continue
                yield self.collate_fn(held)
                held = batch
            yield self.collate_fn(held)

    merging = tail == "merge" and n % batch_size == 1
    own = torch.Generator().manual_seed(seed)
    if not merging:
        train = DataLoader(
            train_set, batch_size, True, generator=own, drop_last=tail == "drop"
        )
    else:
        order = RandomSampler(train_set, generator=own)

        class Joined(BatchSampler):
            def __iter__(self):
                *rest, before, last = super().__iter__()
                yield from rest
                yield before + last

            def __len__(self):
                return super().__len__() - 1

        train = DataLoader(
            train_set, batch_sampler=Joined(order, batch_size, False)
        )
    return train, DataLoader(validation_set, batch_size)


@accepted("make_loaders")
def loaders_by_a_sampler_and_batch_sizes(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("tail")
    count = len(train_set)
    whole, rest = divmod(count, batch_size) if batch_size > 0 else (0, 0)
    enough = whole >= 1 if tail == "drop" else count >= 2
    if batch_size < 2 or not enough:
        raise ValueError("too few samples for a batch of two")
    order = RandomSampler(
        range(count), generator=torch.Generator().manual_seed(seed)
    )

    class Grouped(torch.utils.data.Sampler):
        def __len__(self):
            if tail == "drop":
                return whole
            return whole + (rest > 1)

        def __iter__(self):
            group = []
            left = count
            for index in order:
                group.append(index)
                left -= 1
                full = len(group) >= batch_size
                if full and not (tail == "merge" and left == 1):
                    yield group
                    group = []
            if group and tail == "merge":
                yield group

    validation = DataLoader(
        validation_set,
        batch_sampler=BatchSampler(
            range(len(validation_set)), batch_size, False
        ),
    )
    return DataLoader(train_set, batch_sampler=Grouped()), validation


@wrong(
    "make_loaders",
    breaks=[
        hidden_tests.drops_the_tail,
        hidden_tests.merges_a_lone_sample,
        hidden_tests.trains_a_network,
    ],
    tells="You build two ordinary loaders: a lone last sample stays a batch of its "
    "own, and batch normalization raises. Drop it or merge it.",
)
def loaders_that_are_ordinary(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge") or batch_size < 2 or n < 2:
        raise ValueError("no training possible")
    if tail == "drop" and n < batch_size:
        raise ValueError("no full batch")
    own = torch.Generator().manual_seed(seed)
    return (
        DataLoader(train_set, batch_size, shuffle=True, generator=own),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.validation_is_whole],
    tells="You drop the last batch of the validation, too. In `eval()` a lone "
    "sample is no trouble, and without it the score is that of other "
    "samples. `drop_last` is for training.",
)
def loaders_that_drop_in_validation(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size, drop_last=True),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.validation_is_whole],
    tells='With `tail="drop"` you drop in validation as well. Whatever `tail` '
    "says, validation gives every sample once.",
)
def loaders_that_follow_tail_in_validation(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size, drop_last=tail == "drop"),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.validation_is_whole],
    tells="You shuffle the validation samples. They come in the order of the "
    "dataset.",
)
def loaders_with_a_shuffled_validation(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(
            validation_set,
            batch_size,
            shuffle=True,
            generator=torch.Generator().manual_seed(seed),
        ),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.validation_is_whole],
    tells="Your validation loader has batches of another size than "
    "`batch_size`.",
)
def loaders_with_validation_in_one_batch(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, len(validation_set)),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="With fewer samples than a batch, `drop_last=True` gives no batch "
    "at all, and training does nothing, without an error. Raise a "
    "ValueError.",
)
def loaders_without_a_batch(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < 2:
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="You refuse every number of samples that is not a multiple of the "
    "batch size. Only a rest of one is a trouble, and `tail` is there "
    "to deal with it.",
)
def loaders_that_want_whole_batches(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n % batch_size != 0:
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[
        hidden_tests.refuses_the_impossible,
        hidden_tests.drops_the_tail,
        hidden_tests.merges_a_lone_sample,
    ],
    tells="You refuse a rest of one sample. That is what `tail` is for: leave "
    "it out, or merge it. Refuse only where neither can help.",
)
def loaders_that_refuse_a_rest_of_one(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if (
        batch_size < 2
        or n < (batch_size if tail == "drop" else 2)
        or n % batch_size == 1
    ):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="A batch size of 1 makes every batch a lone sample. N % 1 is 0, so "
    "a look at the rest alone does not see it: refuse it.",
)
def loaders_that_take_a_batch_size_of_one(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 1 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="A training set of one sample has nothing to be merged with. Refuse "
    "it in `make_loaders`.",
)
def loaders_that_take_a_single_sample(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 1):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1 < len(batches):
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[
        hidden_tests.refuses_the_impossible,
        hidden_tests.keeps_other_tails,
    ],
    tells='With `tail="merge"` fewer samples than a batch are one smaller '
    "batch, which can be trained on. You refuse them.",
)
def loaders_that_refuse_a_small_set_to_merge(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < batch_size:
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="You refuse a training set of exactly one full batch. It can be "
    "trained on.",
)
def loaders_that_refuse_a_single_full_batch(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size + 1 if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells='With `tail="merge"` you leave the lone last sample out. Nothing is '
    "to be lost: it joins the batch before it.",
)
def loaders_that_drop_a_lone_sample_to_merge(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches.pop()
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You put a sample in a second time to keep the last one company. It "
    "then counts twice in the epoch; merge the lone sample instead.",
)
def loaders_that_repeat_a_sample(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-1] = batches[-1] + batches[0][:1]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 1) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You put a sample in a second time to keep the last one company. It "
    "then counts twice in the epoch; merge the lone sample instead.",
)
def loaders_that_double_the_lone_sample(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-1] = 2 * batches[-1]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 1) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You move a sample from the batch before to the lone one. The text "
    "wants the lone sample to join the batch before, which then has one "
    "more.",
)
def loaders_that_take_one_from_the_batch_before(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-1] = [batches[-2].pop(), *batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 1) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You give the lone sample to the first batch. It joins the batch "
    "before it, the last one.",
)
def loaders_that_merge_with_the_first(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[0] = batches[0] + batches.pop()
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.keeps_other_tails],
    tells="You merge every incomplete last batch. Only a lone sample has to "
    "be merged; two and more can be trained on as they are.",
)
def loaders_that_merge_every_tail(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) < self.batch_size and len(batches) > 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return max(1, len(self.sampler) // self.batch_size)

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.drops_the_tail],
    tells='With `tail="drop"` you leave out a lone last sample only. Every '
    "incomplete last batch is to be left out.",
)
def loaders_that_drop_only_a_lone_sample(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=n % batch_size == 1)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample, hidden_tests.keeps_other_tails],
    tells='You drop the last batch whatever `tail` says. With `tail="merge"` '
    "no sample may be lost.",
)
def loaders_that_always_drop(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if n >= batch_size:
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.drops_the_tail],
    tells='You merge whatever `tail` says. With `tail="drop"` an incomplete '
    "last batch is left out.",
)
def loaders_that_always_merge(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "keep":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.drops_the_tail, hidden_tests.global_seed_is_kept],
    tells="If no `tail` is given, you merge. The signature that you were "
    'given says "drop"; leave it so.',
)
def loaders_with_merge_as_default(
    train_set, validation_set, batch_size, seed, tail="merge"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_other_words],
    tells='Any other word for `tail` is taken like "merge". A slip of the pen '
    "should be heard: raise a ValueError.",
)
def loaders_that_take_any_word(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_other_words],
    tells='You accept words that are nearly right. Only "drop" and "merge" '
    "are known; anything else raises a ValueError.",
)
def loaders_that_take_capitals(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    tail = tail.lower()
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_other_words],
    tells='You accept words that are nearly right. Only "drop" and "merge" '
    "are known; anything else raises a ValueError.",
)
def loaders_that_take_beginnings(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    tail = "merge" if tail.startswith("merge") else tail
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="Your ValueError comes when the loader is gone through. "
    "`make_loaders` itself must raise: before an hour of set-up, not "
    "after.",
)
def loaders_that_raise_on_the_way(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(range(max(n, 1)), generator=own)

    class Checking(BatchSampler):
        def __iter__(self):
            if self.batch_size < 2 or n < self.batch_size:
                raise ValueError("no training possible")
            return super().__iter__()

    class Joining(BatchSampler):
        def __iter__(self):
            if self.batch_size < 2 or n < 2:
                raise ValueError("no training possible")
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = Checking(order, max(batch_size, 1), drop_last=True)
    else:
        batches = Joining(order, max(batch_size, 1), drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, max(batch_size, 1)),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.refuses_the_impossible],
    tells="You refuse by an `assert`, which is an AssertionError, and under "
    "`python -O` nothing at all. Raise a ValueError.",
)
def loaders_that_assert(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    assert batch_size >= 2
    assert n >= (batch_size if tail == "drop" else 2)
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="You draw one order and use it in every epoch. Each epoch has an "
    "order of its own: draw anew whenever the loader is gone through.",
)
def loaders_with_one_order(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=own).tolist()

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="You draw one order and use it in every epoch. Each epoch has an "
    "order of its own: draw anew whenever the loader is gone through.",
)
def loaders_seeded_in_each_epoch(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)

    class Order(Sampler):
        def __iter__(self):
            own.manual_seed(seed)
            return iter(torch.randperm(n, generator=own).tolist())

        def __len__(self):
            return n

    order = Order()

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="You do not shuffle the training samples.",
)
def loaders_in_the_given_order(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = range(n)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Neighbours in the dataset stay neighbours in your epochs: you "
    "shuffle ready batches, or begin at another place. Shuffle the "
    "samples.",
)
def loaders_that_shuffle_batches(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)

    class Order(Sampler):
        def __iter__(self):
            parts = torch.arange(n).split(batch_size)
            places = torch.randperm(len(parts), generator=own).tolist()
            return iter(torch.cat([parts[i] for i in places]).tolist())

        def __len__(self):
            return n

    order = Order()

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Neighbours in the dataset stay neighbours in your epochs: you "
    "shuffle ready batches, or begin at another place. Shuffle the "
    "samples.",
)
def loaders_that_rotate(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)

    class Order(Sampler):
        def __iter__(self):
            first = 1 + int(torch.randint(n - 1, (1,), generator=own))
            return iter(torch.arange(n).roll(first).tolist())

        def __len__(self):
            return n

    order = Order()

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Your order does not depend on `seed`.",
)
def loaders_that_ignore_the_seed(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(0)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Your order comes from the global generator: whatever else draws "
    "changes it. Give the sampler a generator of its own, seeded with "
    "`seed`.",
)
def loaders_on_the_global_generator(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    order = RandomSampler(train_set)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[
        hidden_tests.global_seed_is_kept,
        hidden_tests.order_hangs_on_the_seed,
    ],
    tells="You seed PyTorch's global generator. That changes the random "
    "numbers of the whole program, and whatever else draws changes your "
    "order. Use a generator of your own.",
)
def loaders_that_seed_everything(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    torch.manual_seed(seed)
    order = RandomSampler(train_set)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.global_seed_is_kept],
    tells="You have a generator of your own, and seed the global one all the "
    "same. Leave that alone: it belongs to the whole program.",
)
def loaders_that_seed_everything_as_well(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    torch.manual_seed(seed)
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.global_seed_is_kept],
    tells="You seed NumPy's global generator. It belongs to the whole "
    "program; use `np.random.default_rng(seed)` if you want one of "
    "NumPy's.",
)
def loaders_that_seed_numpy(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    np.random.seed(seed % 2**32)
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Both loaders have the same generator. Each draws from it when it "
    "is gone through, so a validation between the epochs changes the "
    "order of the training. Give the validation none.",
)
def loaders_that_share_a_generator(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size, generator=own),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="`len()` of your training loader counts the lone batch that is no "
    "more. Schedulers and progress bars rely on it: your batch "
    "sampler's `__len__` must say how many batches it yields.",
)
def loaders_with_a_wrong_length(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return super().__len__()

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="Your batch sampler can be gone through once; later epochs are "
    "empty. `__iter__` must begin anew each time.",
)
def loaders_that_merge_once(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        gone = False

        def __iter__(self):
            if self.gone:
                return iter([])
            self.gone = True
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.collates_as_usual, hidden_tests.drops_the_tail],
    tells="Your batches are lists of samples. Leave `collate_fn` alone: "
    "PyTorch's own makes tensors of them.",
)
def loaders_that_do_not_collate(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches, collate_fn=list),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.collates_as_usual],
    tells="You collate by `torch.stack`, which takes samples that are single "
    "tensors. PyTorch's own collating knows pairs and dicts, too: leave "
    "it alone.",
)
def loaders_that_hand_out_tensors_only(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(
            train_set,
            batch_sampler=batches,
            collate_fn=lambda rows: torch.stack(
                [row if torch.is_tensor(row) else row[0] for row in rows]
            ),
        ),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.drops_the_tail, hidden_tests.order_hangs_on_the_seed],
    tells="You return lists of batches. They hold the whole dataset and one "
    "order for ever; return `DataLoader`s.",
)
def loaders_as_lists(train_set, validation_set, batch_size, seed, tail="drop"):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        list(DataLoader(train_set, batch_sampler=batches)),
        list(DataLoader(validation_set, batch_size)),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.drops_the_tail, hidden_tests.merges_a_lone_sample],
    tells="Your training batches are of another size than `batch_size`.",
)
def loaders_with_half_batches(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, max(2, batch_size // 2), drop_last=True)
    else:
        batches = Joining(order, max(2, batch_size // 2), drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=[hidden_tests.drops_the_tail, hidden_tests.merges_a_lone_sample],
    tells="You draw with replacement: in an epoch some samples come twice and "
    "others never.",
)
def loaders_that_draw_with_replacement(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, replacement=True, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


# bytes_ahead


@accepted("bytes_ahead")
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


@accepted("bytes_ahead")
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


@accepted("bytes_ahead")
def bytes_by_collating(sample, batch_size, num_workers, prefetch_factor=None):
    import torch.utils._pytree as pytree

    leaves = pytree.tree_leaves(default_collate([sample, sample]))
    twice = sum(x.nbytes for x in leaves if isinstance(x, torch.Tensor))
    ahead = num_workers * (2 if prefetch_factor is None else prefetch_factor)
    return twice // 2 * batch_size * ahead


@accepted("bytes_ahead")
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


@accepted("bytes_ahead")
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors, hidden_tests.workers_and_prefetch],
    tells="You count one batch per worker. Each worker keeps "
    "`prefetch_factor` of them ahead.",
)
def bytes_without_prefetch(
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
    return num_workers * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You count the batches of one worker. All workers share the same "
    "memory.",
)
def bytes_of_one_worker(sample, batch_size, num_workers, prefetch_factor=None):
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
    return min(num_workers, 1) * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You count samples, but whole batches wait: multiply by "
    "`batch_size`.",
)
def bytes_of_single_samples(
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
    return num_workers * ahead * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You add the batch that the training loop holds. Asked for are "
    "those ahead of it.",
)
def bytes_with_the_one_in_hand(
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
    each = batch_size * size_of(sample)
    return (num_workers * ahead + 1) * each if num_workers else 0


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.workers_and_prefetch],
    tells="Without workers nothing is put into shared memory: 0 workers take "
    "0 bytes.",
)
def bytes_without_workers_as_one(
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
    return max(num_workers, 1) * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.workers_and_prefetch],
    tells="Without workers nothing is put into shared memory: 0 workers take "
    "0 bytes.",
)
def bytes_without_workers_of_one_batch(
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
    each = batch_size * size_of(sample)
    return num_workers * ahead * each if num_workers else each


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.workers_and_prefetch],
    tells="`prefetch_factor=None` is 2 in a DataLoader with workers. You take "
    "1.",
)
def bytes_with_none_as_one(
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

    ahead = 1 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You always take 2 batches ahead. That is the default only; use "
    "`prefetch_factor`.",
)
def bytes_always_two_ahead(
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

    ahead = 2
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.workers_and_prefetch],
    tells="`prefetch_factor` may be None, or left out. That is 2, and not a "
    "number to multiply by.",
)
def bytes_without_a_default(
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

    ahead = prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You count 4 bytes per element whatever the dtype. `element_size()` "
    "knows how many it has.",
)
def bytes_of_float32(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * 4
        if isinstance(one, np.ndarray | np.generic):
            return one.size * 4
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="`bool` and the small integers take a whole byte each, and half "
    "precision two. You count some dtypes wrongly.",
)
def bytes_of_bits(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return (
                one.numel()
                if one.dtype in (torch.float16, torch.bfloat16)
                else one.numel() * one.element_size()
            )
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="A complex number has two parts: complex64 takes 8 bytes. Ask "
    "`element_size()`.",
)
def bytes_of_complex_halves(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * (4 if one.is_complex() else one.element_size())
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_what_a_view_shows],
    tells="You count the memory behind a view. The batch is a copy, with just "
    "the elements that the view shows: `numel() * element_size()`.",
)
def bytes_of_the_storage(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.untyped_storage().nbytes()
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_what_a_view_shows],
    tells="You count the memory behind a view. The batch is a copy, with just "
    "the elements that the view shows: `numel() * element_size()`.",
)
def bytes_of_the_bases(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.untyped_storage().nbytes()
        if isinstance(one, np.ndarray | np.generic):
            base = getattr(one, "base", None)
            return one.nbytes if base is None else base.nbytes
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_what_a_view_shows],
    tells="An expanded tensor is copied in full: each of its elements takes "
    "memory in the batch, also where they shared it before.",
)
def bytes_of_expanded_views_once(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return min(
                one.numel() * one.element_size(), one.untyped_storage().nbytes()
            )
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You count rows, by `len`. A tensor's elements are `numel()`.",
)
def bytes_of_the_first_dimension(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return (len(one) if one.dim() else 1) * one.element_size()
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You leave the first dimension out, as if the sample already were a "
    "batch. The sample is one item; the batch gets a dimension more.",
)
def bytes_with_a_sample_dimension_less(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return (
                one[:1].numel() * one.element_size()
                if one.dim()
                else one.nbytes
            )
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numbers],
    tells="A bool becomes a tensor of bools: 1 byte. In Python a bool is an "
    "int as well, so ask for `bool` first.",
)
def bytes_with_bools_as_ints(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.generic):
            return one.nbytes
        if isinstance(one, int | float):
            return 8
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numbers],
    tells="Python floats are collated as float64: 8 bytes, not the 4 of "
    "PyTorch's default dtype.",
)
def bytes_with_floats_of_four(
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
            return 4 if isinstance(one, float) else 8
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numbers],
    tells="Python ints are collated as int64, floats as float64: 8 bytes "
    "each. You count 4.",
)
def bytes_with_numbers_of_four(
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
            return 4
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numbers],
    tells="You take the size that a number would need, or that its Python "
    "object has. Collated, an int or a float takes 8 bytes.",
)
def bytes_with_small_ints(
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
            return 1 if isinstance(one, int) and abs(one) < 128 else 8
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numbers],
    tells="You take the size that a number would need, or that its Python "
    "object has. Collated, an int or a float takes 8 bytes.",
)
def bytes_of_python_objects(
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
            return one.__sizeof__()
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numbers],
    tells="You count no Python numbers. A label that is an int becomes an "
    "int64 in the batch: 8 bytes.",
)
def bytes_without_numbers(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.generic):
            return one.nbytes
        if isinstance(one, dict):
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numpy],
    tells="You do not count NumPy's arrays or scalars. Collating makes "
    "tensors of them.",
)
def bytes_without_arrays(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numpy],
    tells="NumPy scalars are collated, too, and keep their dtype. You count "
    "none of them, or all with 8 bytes.",
)
def bytes_without_scalars(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray):
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numpy],
    tells="NumPy scalars are collated, too, and keep their dtype. You count "
    "none of them, or all with 8 bytes.",
)
def bytes_with_scalars_of_eight(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.generic):
            return one.nbytes if isinstance(one, np.ndarray) else 8
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_numpy],
    tells="Collating keeps the dtype of a NumPy array: float64 stays float64, "
    "int16 stays int16. You count 4 bytes per element.",
)
def bytes_of_arrays_as_float32(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.generic):
            return 4 * one.size if isinstance(one, np.ndarray) else one.nbytes
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


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.strings_count_nothing],
    tells="You count the letters of strings. A string becomes no tensor: it "
    "goes through a pipe.",
)
def bytes_with_strings(sample, batch_size, num_workers, prefetch_factor=None):
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
        return len(one.encode())

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.strings_count_nothing],
    tells="You raise where a sample holds a string. It is allowed, and counts "
    "0.",
)
def bytes_that_refuse_strings(
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
        raise TypeError("no tensor")

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples],
    tells="You go one level deep. Samples may be nested as deep as they like: "
    "call the function for what is inside.",
)
def bytes_of_the_surface(sample, batch_size, num_workers, prefetch_factor=None):
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
            return sum(
                size_of(x)
                for x in one.values()
                if not isinstance(x, dict | list | tuple)
            )
        if isinstance(one, list | tuple):
            inner = [x for x in one if not isinstance(x, dict | list | tuple)]
            return sum(map(size_of, inner))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples],
    tells="A sample may be a dict. You do not count what is in it.",
)
def bytes_without_dicts(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.generic):
            return one.nbytes
        if isinstance(one, bool):
            return 1
        if isinstance(one, int | float):
            return 8
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples],
    tells="A sample may be a list as well as a tuple. You do not count what "
    "is in it.",
)
def bytes_without_lists(sample, batch_size, num_workers, prefetch_factor=None):
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
        if isinstance(one, tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples],
    tells="A named tuple is a tuple of its own kind. `type(x) is tuple` is "
    "false for it; use `isinstance`.",
)
def bytes_of_exact_tuples(
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
        if type(one) in (list, tuple):
            return sum(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples, hidden_tests.counts_numbers],
    tells="You count the first part of a sample. The label travels with it.",
)
def bytes_of_the_input_alone(
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
            return size_of(one[0])
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples],
    tells="You take the largest part of a sample. All of its parts are there "
    "at the same time: add them up.",
)
def bytes_of_the_largest_part(
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
            return max(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return max(map(size_of, one))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_nested_samples],
    tells="You count equal parts, or equal sizes, once. Each becomes a tensor "
    "of its own in the batch.",
)
def bytes_each_tensor_once(
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
            return sum(set(map(size_of, one)))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.huge_batches, hidden_tests.counts_tensors],
    tells="You return a float. Bytes are whole, and a float is exact up to "
    "2**53 only.",
)
def bytes_as_a_float(sample, batch_size, num_workers, prefetch_factor=None):
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
    return float(num_workers * ahead * batch_size * size_of(sample))


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.huge_batches],
    tells="On the way your number is a float (a division, or a unit such as "
    "MiB), or a tensor of limited range. Multiply Python ints: they are "
    "exact.",
)
def bytes_by_way_of_a_float(
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
    mib = num_workers * ahead * batch_size * size_of(sample) / 2**20
    return round(mib * 2**20)


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.huge_batches],
    tells="On the way your number is a float (a division, or a unit such as "
    "MiB), or a tensor of limited range. Multiply Python ints: they are "
    "exact.",
)
def bytes_by_way_of_int64(
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
    factors = torch.tensor([num_workers, ahead, batch_size, size_of(sample)])
    return int(factors.double().prod())


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You return MiB. Asked for are bytes.",
)
def bytes_in_mib(sample, batch_size, num_workers, prefetch_factor=None):
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
    return num_workers * ahead * batch_size * size_of(sample) // 2**20


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors],
    tells="You round up to whole pages. The system does that, but asked for "
    "are the bytes of the batches themselves.",
)
def bytes_in_whole_pages(sample, batch_size, num_workers, prefetch_factor=None):
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
    each = -(-batch_size * size_of(sample) // 4096) * 4096
    return num_workers * ahead * each


@wrong(
    "bytes_ahead",
    breaks=[hidden_tests.counts_tensors, hidden_tests.strings_count_nothing],
    tells="You take the length of the pickled sample. What lies in shared "
    "memory are the elements of the tensors, and nothing around them.",
)
def bytes_with_pickle(sample, batch_size, num_workers, prefetch_factor=None):
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
    import pickle

    return num_workers * ahead * batch_size * len(pickle.dumps(sample))


@wrong(
    "bytes_ahead",
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
    "bytes_ahead",
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


# fitting_loader


@accepted("fitting_loader")
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


@accepted("fitting_loader")
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


@accepted("fitting_loader")
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


@accepted("fitting_loader")
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


@accepted("fitting_loader")
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit, hidden_tests.no_room_for_workers],
    tells="You leave no room for the batch that the training loop holds. The "
    "loader needs workers · prefetch + 1 batches.",
)
def fitting_without_the_one_in_hand(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit, hidden_tests.no_room_for_workers],
    tells="You leave more room free than needed: one batch beyond those "
    "ahead, not two.",
)
def fitting_with_two_in_hand(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = free_bytes // batch_bytes - 2
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit],
    tells="You ask for more room than needed: if the batches take exactly "
    "`free_bytes`, they fit.",
)
def fitting_strictly(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = (free_bytes - 1) // batch_bytes - 1
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit],
    tells="You round the number of batches that fit up, or to the nearest. A "
    "batch that fits by half does not fit: round down.",
)
def fitting_rounded_up(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = -(-free_bytes // batch_bytes) - 1
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit],
    tells="You round the number of batches that fit up, or to the nearest. A "
    "batch that fits by half does not fit: round down.",
)
def fitting_rounded(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=2,
    prefetch_factor=2,
):
    room = round(free_bytes / batch_bytes) - 1
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


@wrong(
    "fitting_loader",
    breaks=[
        hidden_tests.workers_that_fit,
        hidden_tests.no_room_for_workers,
        hidden_tests.prefetch_that_fits,
    ],
    tells="You take the workers and the prefetch factor as they were asked "
    "for, whether there is room or not.",
)
def fitting_that_ignores_the_budget(
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
    workers = num_workers
    if_any = {}
    if workers > 0:
        ahead = prefetch_factor
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You keep the prefetch factor that was asked for. With that many "
    "workers there may be room for less.",
)
def fitting_with_prefetch_as_asked(
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
        ahead = prefetch_factor
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You do not set the prefetch factor, so it is 2, whatever was asked "
    "for and whatever fits.",
)
def fitting_with_prefetch_of_two(
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
        if_any = {"persistent_workers": True}
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You always prefetch one batch per worker. It is to be the largest "
    "number that fits, up to what was asked for.",
)
def fitting_with_prefetch_of_one(
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
        ahead = 1
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.prefetch_that_fits],
    tells="You prefetch as much as fits. `prefetch_factor` is the most that "
    "was asked for.",
)
def fitting_with_unlimited_prefetch(
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
        ahead = room // workers
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.prefetch_that_fits],
    tells="Your prefetch factor does not take the batch of the training loop "
    "into account, or is not shared among the workers.",
)
def fitting_with_prefetch_shared_wrongly(
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
        ahead = min(prefetch_factor, (room + 1) // workers)
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.prefetch_that_fits],
    tells="`prefetch_factor` is per worker: what has room is to be divided by "
    "the number of workers.",
)
def fitting_with_prefetch_for_all(
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
        ahead = min(prefetch_factor, room)
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit],
    tells="You keep the prefetch factor and give up workers. First as many "
    "workers as fit with one batch ahead, then the prefetch factor.",
)
def fitting_by_prefetch_first(
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
    workers = max(0, min(num_workers, room // prefetch_factor))
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit],
    tells="If not all workers fit, you take none. Take as many as fit.",
)
def fitting_all_or_none(
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
    workers = num_workers if num_workers <= room else 0
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit, hidden_tests.no_room_for_workers],
    tells="You take as many workers as fit, more than were asked for. "
    "`num_workers` is the limit.",
)
def fitting_with_all_workers_possible(
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
    workers = max(0, min(16, room))
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.no_room_for_workers],
    tells="You always take at least one worker. Without room, or if none was "
    "asked for, the loader works in the main process: `num_workers=0`.",
)
def fitting_with_at_least_one(
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
    workers = max(1, min(num_workers, room))
    if_any = {}
    if workers > 0:
        ahead = max(1, min(prefetch_factor, room // workers))
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


@wrong(
    "fitting_loader",
    breaks=[
        hidden_tests.workers_that_fit,
        hidden_tests.prefetch_that_fits,
        hidden_tests.workers_stay,
    ],
    tells="You always use `num_workers=0`. That avoids shared memory, and the "
    "model waits for every batch: use as many workers as fit.",
)
def fitting_with_none_always(
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
    workers = 0
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="You pass `prefetch_factor` and `persistent_workers` without "
    "workers, too, and the DataLoader raises a ValueError. Leave them "
    "out there.",
)
def fitting_with_options_always(
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
    if True:
        ahead = min(prefetch_factor, room // max(workers, 1))
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="You pass `prefetch_factor` and `persistent_workers` without "
    "workers, too, and the DataLoader raises a ValueError. Leave them "
    "out there.",
)
def fitting_with_persistence_always(
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
    if_any = {"persistent_workers": True}
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="Where no worker fits you raise. The loader can still work without "
    "workers.",
)
def fitting_with_a_refusal(
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
    if room < 1:
        raise ValueError("not enough shared memory")
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.no_room_for_workers, hidden_tests.each_sample_once],
    tells="You make the batch smaller to let it fit. That changes the "
    "training; `batch_size` stays as it is.",
)
def fitting_with_smaller_batches(
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
        batch_size if room > 0 else max(1, batch_size // 2),
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_stay],
    tells="Your workers end with each epoch and start anew with the next. Set "
    "`persistent_workers`, where there are workers.",
)
def fitting_with_workers_that_end(
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
        if_any = {"prefetch_factor": ahead}
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You always pin memory. Without a CUDA device nobody gains by it, "
    "and PyTorch warns: pin only for one.",
)
def fitting_pinned_always(
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
        pin_memory=True,
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You never pin memory here: either not at all, or by whether this "
    "machine has a GPU. Where the batches go is what `device` says, and "
    "for a CUDA device they are to be pinned.",
)
def fitting_pinned_never(
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
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You pin for every device that is not the CPU. Only for CUDA "
    "devices is it asked for.",
)
def fitting_pinned_off_the_cpu(
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
        pin_memory=device.type != "cpu",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.pinned_for_cuda],
    tells='You compare the device with "cuda" itself. `cuda:1` is one, too: '
    "ask for `device.type`.",
)
def fitting_pinned_for_the_first_gpu(
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
        pin_memory=device == torch.device("cuda"),
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You never pin memory here: either not at all, or by whether this "
    "machine has a GPU. Where the batches go is what `device` says, and "
    "for a CUDA device they are to be pinned.",
)
def fitting_pinned_where_there_is_a_gpu(
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
        pin_memory=torch.cuda.is_available(),
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.pinned_for_cuda],
    tells="You pin only where there are workers. Pinning helps without them "
    "as well.",
)
def fitting_pinned_with_workers(
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
        pin_memory=device.type == "cuda" and workers > 0,
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.same_batches_with_workers],
    tells="Your generator goes to the loader, which draws a seed for its "
    "workers from it: once if the workers stay, otherwise in every "
    "epoch. From the second epoch on the order hangs on the workers. "
    "Give it to a sampler only.",
)
def fitting_with_the_loaders_generator(
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
    return DataLoader(
        dataset,
        batch_size,
        shuffle=True,
        generator=own,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.same_batches_with_workers],
    tells="Your generator goes to the loader, which draws a seed for its "
    "workers from it: once if the workers stay, otherwise in every "
    "epoch. From the second epoch on the order hangs on the workers. "
    "Give it to a sampler only.",
)
def fitting_with_one_generator_for_both(
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
        generator=own,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.same_batches_with_workers],
    tells="Your order depends on the number of workers, from the first epoch "
    "on.",
)
def fitting_seeded_by_workers(
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
    own = torch.Generator().manual_seed(seed + workers)
    order = RandomSampler(dataset, generator=own)
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.same_batches_with_workers],
    tells="You shuffle only where there are no workers, or only where there "
    "are some.",
)
def fitting_unordered(
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
    if workers > 0:
        order = range(len(dataset))
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[
        hidden_tests.same_batches_with_workers,
        hidden_tests.each_sample_once,
    ],
    tells="Your order comes from the global generator, which everybody uses. "
    "Make one of your own, seeded with `seed`.",
)
def fitting_on_the_global_generator(
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
    order = RandomSampler(dataset)
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.loader_keeps_the_global_seed],
    tells="You seed PyTorch's global generator. That changes the random "
    "numbers of the whole program: use a generator of your own.",
)
def fitting_that_seeds_everything(
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
    own = torch.manual_seed(seed)
    order = RandomSampler(dataset, generator=own)
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.loader_keeps_the_global_seed],
    tells="You have a generator of your own, and seed the global one as well. "
    "Leave that alone.",
)
def fitting_that_seeds_both(
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
    torch.manual_seed(seed)
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


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.each_sample_once],
    tells="You do not shuffle.",
)
def fitting_in_the_given_order(
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
    order = range(len(dataset))
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.each_sample_once],
    tells="Every epoch has the same order. Draw a new one whenever the "
    "sampler is gone through.",
)
def fitting_with_one_order(
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
    order = torch.randperm(len(dataset), generator=own).tolist()
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.each_sample_once],
    tells="`seed` does not change your order.",
)
def fitting_with_one_seed(
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
    own = torch.Generator().manual_seed(2021)
    order = RandomSampler(dataset, generator=own)
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.each_sample_once],
    tells="You drop the last batch. Every epoch has each sample.",
)
def fitting_that_drops(
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
        drop_last=True,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.each_sample_once],
    tells="You draw with replacement: some samples come twice and others not "
    "at all.",
)
def fitting_with_replacement(
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
    order = RandomSampler(dataset, True, generator=own)
    return DataLoader(
        dataset,
        batch_size,
        sampler=order,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.each_sample_once],
    tells="Your batches are lists of samples. Leave `collate_fn` alone.",
)
def fitting_without_collating(
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
        collate_fn=list,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit, hidden_tests.each_sample_once],
    tells="You return an iterator or a list. Asked for is the `DataLoader` "
    "itself, which can be gone through again and again.",
)
def fitting_as_an_iterator(
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
    workers = 0
    if_any = {}
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(dataset, generator=own)
    return list(
        DataLoader(
            dataset,
            batch_size,
            sampler=order,
            num_workers=workers,
            pin_memory=device.type == "cuda",
            **if_any,
        )
    )


@wrong(
    "fitting_loader",
    breaks=[hidden_tests.workers_that_fit, hidden_tests.prefetch_that_fits],
    tells="You changed a default value of the signature. It was given to you: "
    "2 workers and a prefetch factor of 2.",
)
def fitting_with_default_arguments_changed(
    dataset,
    batch_size,
    batch_bytes,
    free_bytes,
    device,
    seed,
    num_workers=4,
    prefetch_factor=4,
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


# quiz


@accepted("quiz")
def as_a_literal():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@accepted("quiz")
def in_capital_letters():
    return dict(
        message="C", cure="D", lone="A", dropped="B", pinned="C", started="B"
    )


@accepted("quiz")
def from_a_string():
    questions = "message cure lone dropped pinned started".split()
    return dict(zip(questions, "cdabcb"))


@accepted("quiz")
def with_one_answer_worked_out():
    letters = {"message": "c", "cure": "d", "lone": "a", "pinned": "c"}
    loader = DataLoader(range(30), batch_size=32, drop_last=True)
    letters["dropped"] = "b" if len(list(loader)) == 0 else "a"
    return {**letters, "started": "b"}


@accepted("quiz")
def with_blanks_around():
    letters = {"started": " b", "pinned": "c ", "dropped": " B "}
    return letters | {"lone": "a", "cure": "d", "message": "C"}


@wrong(
    "quiz",
    breaks=[hidden_tests.what_is_full],
    tells="The GPU has no part in this: the worker is a process on the CPU, "
    "and `shm` in the message is shared memory, `/dev/shm`.",
)
def blaming_the_gpu():
    return {
        "message": "a",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_is_full],
    tells='"No space left on device" sounds like a disk, but the device here '
    "is `/dev/shm`, a file system in memory. The message says `shm`.",
)
def blaming_the_disk():
    return {
        "message": "b",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_is_full],
    tells="Too many open files give another message (`Too many open files`). "
    "Here space is lacking, in `/dev/shm`.",
)
def blaming_open_files():
    return {
        "message": "d",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.which_cure],
    tells="The strategy `file_system` uses the same shared memory, only under "
    "names, and fails in the same way. It cures too many open files.",
)
def curing_by_strategy():
    return {
        "message": "c",
        "cure": "a",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.which_cure],
    tells="`num_workers=0` ends the message, and with it all loading beside "
    "the model: the workers were to be kept.",
)
def curing_by_no_workers():
    return {
        "message": "c",
        "cure": "b",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.which_cure],
    tells="Pinned memory is another one, in the main process. The workers' "
    "batches still go through `/dev/shm` first.",
)
def curing_by_pinning():
    return {
        "message": "c",
        "cure": "c",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.when_it_fails],
    tells="A rest of two or more trains. Only a batch of a single sample has "
    "one value per channel.",
)
def failing_for_every_rest():
    return {
        "message": "c",
        "cure": "d",
        "lone": "b",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.when_it_fails],
    tells="Nearly. With batches of one sample N % B is 0, and every batch "
    "fails.",
)
def failing_for_a_rest_of_one():
    return {
        "message": "c",
        "cure": "d",
        "lone": "c",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.when_it_fails],
    tells="Fewer samples than a batch are one smaller batch, and that trains "
    "unless it is a single sample.",
)
def failing_for_few():
    return {
        "message": "c",
        "cure": "d",
        "lone": "d",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_is_dropped],
    tells="`drop_last=True` drops every incomplete batch, also if it is the "
    "only one.",
)
def dropping_nothing():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "a",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_is_dropped],
    tells="An error would be better, but there is none: the loop runs over "
    "nothing, and training seems to work.",
)
def dropping_with_an_error():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "c",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_is_dropped],
    tells="A DataLoader never fills a batch up. (`DistributedSampler` does, "
    "to give each process as many samples.)",
)
def dropping_and_filling():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "d",
        "pinned": "c",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_pinning_is_for],
    tells="Pinning happens after reading: it is about the way from the CPU's "
    "memory to the GPU.",
)
def pinning_for_the_disk():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "a",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_pinning_is_for],
    tells="Pinned memory is page-locked memory of the main process. What the "
    "workers put into `/dev/shm` stays as large.",
)
def pinning_for_shared_memory():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "b",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_pinning_is_for],
    tells="Pinned memory is on the CPU's side. Nothing stays on the GPU "
    "unless you put it there.",
)
def pinning_on_the_gpu():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "d",
        "started": "b",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.how_workers_start],
    tells="A lambda is a function like others. It cannot be pickled, and that "
    "is what a worker started afresh needs.",
)
def lambdas_are_slow():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "a",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.how_workers_start],
    tells="They have shared memory as well. The loader fails before anything "
    "is loaded: the lambda cannot be pickled.",
)
def no_shared_memory_there():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "c",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.how_workers_start],
    tells="They run as many processes as you like. Started afresh, a worker "
    "gets its things pickled, and a lambda cannot be.",
)
def one_process_only():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "d",
    }


@wrong(
    "quiz",
    breaks=[
        hidden_tests.what_is_full,
        hidden_tests.which_cure,
        hidden_tests.when_it_fails,
        hidden_tests.what_is_dropped,
        hidden_tests.what_pinning_is_for,
        hidden_tests.how_workers_start,
    ],
    tells="You return the letters without their questions. Return a dict with "
    "the names of the questions as keys.",
)
def quiz_as_a_list():
    return ["c", "d", "a", "b", "c", "b"]


@wrong(
    "quiz",
    breaks=[
        hidden_tests.what_is_full,
        hidden_tests.which_cure,
        hidden_tests.when_it_fails,
        hidden_tests.what_is_dropped,
        hidden_tests.what_pinning_is_for,
        hidden_tests.how_workers_start,
    ],
    tells="Your answers are more than a letter. One letter for each question, "
    'such as "a".',
)
def quiz_in_words():
    return {
        "message": "(c) /dev/shm",
        "cure": "(d) --shm-size",
        "lone": "(a)",
        "dropped": "(b) none",
        "pinned": "(c) non_blocking",
        "started": "(b) pickle",
    }


@wrong(
    "fitting_loader",
    breaks=hidden_tests.same_batches_with_workers,
    tells="With `in_order=False` the loader hands out whatever is ready first, so "
    "the order hangs on who is faster. Leave it at True.",
)
def fitting_out_of_order(
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
    return DataLoader(
        dataset,
        batch_size,
        sampler=RandomSampler(dataset, generator=own),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        in_order=False,
        **if_any,
    )


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="Your function cannot be called without a `clock`. The signature that you "
    "were given has one by default; leave it so.",
)
def split_without_a_default(loader, step, clock, synchronize=None):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return waiting + (clock() - a), working


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You keep times as float32. A clock that has run for a while needs more "
    "digits than these have: take the differences in Python floats.",
)
def split_in_float32(loader, step, clock=time.perf_counter, synchronize=None):
    spans = torch.zeros(2)
    a = torch.tensor(clock())
    for batch in loader:
        b = torch.tensor(clock())
        spans[0] += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = torch.tensor(clock())
        spans[1] += a - b
    spans[0] += torch.tensor(clock()) - a
    return tuple(spans.tolist())


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You call `loader.__iter__()`. A `for` loop also goes through what has "
    "only `__getitem__`; `iter(loader)` knows both.",
)
def split_by_the_dunder(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    nothing = object()
    a = clock()
    batches = loader.__iter__()
    while True:
        batch = next(batches, nothing)
        b = clock()
        waiting += b - a
        if batch is nothing:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You round the times. Whole milliseconds, or seconds, are too coarse for "
    "steps that take less; return what the clock gives.",
)
def split_rounded(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return round(waiting + (clock() - a), 1), round(working, 1)


@wrong(
    "time_split",
    breaks=hidden_tests.synchronizes,
    tells="You synchronize once more, before the first step or after the last one. "
    "After each step, once, is what was asked for.",
)
def split_synchronized_before(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    if synchronize is not None:
        synchronize()
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b
    return waiting + (clock() - a), working


@wrong(
    "make_loaders",
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="All loaders that you make share one generator, so the second one goes on "
    "where the first one stopped. Make a new generator in each call.",
)
def loaders_with_a_generator_for_all(
    train_set,
    validation_set,
    batch_size,
    seed,
    tail="drop",
    _shared={},  # noqa: B006
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    if seed not in _shared:
        _shared[seed] = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=_shared[seed])

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.merges_a_lone_sample,
    tells="Your merging looks for a rest of one in the number of samples divided by "
    "the batch size plus one, or only for batches larger than 2. Small batches "
    "have a lone sample as well.",
)
def loaders_that_merge_large_batches_only(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1 and self.batch_size > 2:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return len(list(range(0, n, batch_size))) - (
                n % batch_size == 1 and batch_size > 2
            )

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You ask by `==` whether the end has come, or let `iter(function, "
    "sentinel)` ask. A batch has an equality of its own, an array one per "
    "element: ask `batch is done`.",
)
def split_by_iter_with_a_sentinel(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    end = object()

    def timed_next():
        nonlocal waiting
        start = clock()
        found = next(batches, end)
        waiting += clock() - start
        return found

    start = clock()
    batches = iter(loader)
    waiting = clock() - start
    for batch in iter(timed_next, end):
        start = clock()
        step(batch)
        if synchronize is not None:
            synchronize()
        working += clock() - start
    return waiting, working


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You take a batch that is None, or empty, for the end. Only a "
    "StopIteration is the end; or give `next` an object of your own.",
)
def split_until_none(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    a = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, None)
        b = clock()
        waiting += b - a
        if batch is None:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        a = clock()
        working += a - b


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You skip batches that look empty. What a batch is does not concern you: "
    "each goes to `step`.",
)
def split_without_empty_batches(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    a = clock()
    for batch in loader:
        b = clock()
        waiting += b - a
        if batch:
            step(batch)
            if synchronize is not None:
                synchronize()
        a = clock()
        working += a - b
    return waiting + (clock() - a), working


@wrong(
    "bytes_ahead",
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
    "bytes_ahead",
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
    "bytes_ahead",
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


@wrong(
    "make_loaders",
    breaks=hidden_tests.reads_in_turn,
    tells="You read the whole dataset into a list first. It may not fit into "
    "memory, and a dataset that augments its samples would do so only once.",
)
def loaders_over_copies(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    train_set = [train_set[i] for i in range(n)]
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You draw a few orders beforehand and go round them. Sooner or later an "
    "epoch has an order that came before: draw a new one for each.",
)
def loaders_with_ten_orders(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    ten = [torch.randperm(n, generator=own).tolist() for _ in range(10)]

    class Order(Sampler):
        epoch = 0

        def __iter__(self):
            self.epoch += 1
            return iter(ten[self.epoch % 10])

        def __len__(self):
            return n

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(Order(), batch_size, drop_last=True)
    else:
        batches = Joining(Order(), batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.validation_is_whole,
    tells="You refuse, or merge, a lone last sample in validation, too. In `eval()` "
    "it does no harm, and `tail` is about training.",
)
def loaders_that_refuse_a_lone_validation_sample(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    n = len(train_set)
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    if len(validation_set) % batch_size == 1:
        raise ValueError("a lone sample in validation")
    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)

    class Joining(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    if tail == "drop":
        batches = BatchSampler(order, batch_size, drop_last=True)
    else:
        batches = Joining(order, batch_size, drop_last=False)
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )


@accepted("make_loaders")
def loaders_by_a_random_of_ones_own(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    import random

    own = random.Random(seed)
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError(f"unknown tail {tail}")
    if batch_size < 2 or n < 2 or (tail == "drop" and n < batch_size):
        raise ValueError(f"{n} samples cannot be trained on")
    starts = list(range(0, n, batch_size))
    if n % batch_size and tail == "drop":
        starts.pop()
    elif n % batch_size == 1:
        starts.pop()
    ends = [*starts[1:], n if tail == "merge" else starts[-1] + batch_size]

    class Cut:
        def __iter__(self):
            order = list(range(n))
            own.shuffle(order)
            return (order[a:b] for a, b in zip(starts, ends))

        def __len__(self):
            return len(starts)

    validation = DataLoader(
        validation_set, batch_size=batch_size, shuffle=False, drop_last=False
    )
    return DataLoader(train_set, batch_sampler=Cut()), validation


@wrong(
    "fitting_loader",
    breaks=hidden_tests.loader_reads_in_turn,
    tells="You read the whole dataset first. It may not fit into memory, and the "
    "workers are there to do the reading.",
)
def fitting_over_a_copy(
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
    samples = [dataset[index] for index in range(len(dataset))]
    return DataLoader(
        samples,
        batch_size,
        sampler=RandomSampler(samples, generator=own),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@wrong(
    "fitting_loader",
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
    "fitting_loader",
    breaks=hidden_tests.workers_that_fit,
    tells="You count room for whole rounds: with fewer batches than workers · "
    "prefetch you take the prefetch factor away from all, then give up all "
    "workers but one. As many as fit is asked for.",
)
def fitting_with_one_worker_or_all(
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
    workers = num_workers if num_workers <= room else min(1, num_workers)
    workers = workers if room > 0 else 0
    if_any = {}
    if workers > 0:
        ahead = min(prefetch_factor, room // workers)
        if_any = {"prefetch_factor": ahead, "persistent_workers": True}
    own = torch.Generator().manual_seed(seed)
    return DataLoader(
        dataset,
        batch_size,
        sampler=RandomSampler(dataset, generator=own),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )


@accepted("time_split")
def split_into_a_named_tuple(
    loader, step, clock=time.perf_counter, synchronize=None
):
    from collections import namedtuple

    pair = namedtuple("Split", ["waiting", "working"])
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return pair(waiting, working)
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@accepted("time_split")
def split_into_numpy_floats(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return np.float64(waiting), np.float64(working)
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You ask by `==` whether the end has come, or let `iter(function, "
    "sentinel)` ask. A batch has an equality of its own, an array one per "
    "element: ask `batch is done`.",
)
def split_by_equality(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch == done:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You take something that a batch may be, such as an ellipsis or "
    "a word, for the end. Nobody else has an `object()` of your "
    "own: give `next` that.",
)
def split_by_ellipsis(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    done = ...
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You take something that a batch may be, such as an ellipsis or "
    "a word, for the end. Nobody else has an `object()` of your "
    "own: give `next` that.",
)
def split_by_a_word(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    done = "end"
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You take a pair apart and give `step` its parts. `step` takes "
    "the batch as it is, one argument, whatever it consists of.",
)
def split_that_unpacks_pairs(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return waiting, working
        step(*batch) if isinstance(batch, tuple) else step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="You go on for as many batches as the loader's length says. A "
    "length may be an estimate, or missing: go on until nothing "
    "more comes, as a `for` loop does.",
)
def split_by_length_hint(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    from operator import length_hint

    most = length_hint(loader, 10**9)
    now = clock()
    batches = iter(loader)
    for number in range(most + 1):
        try:
            batch = next(batches)
        except StopIteration:
            number = most
        then, now = now, clock()
        waiting += now - then
        if number == most:
            break
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then
    return waiting, working


@wrong(
    "time_split",
    breaks=hidden_tests.takes_what_comes,
    tells="When the loader has ended you ask it once more. The last "
    "`next` is the one that finds nothing; after that the epoch is "
    "over.",
)
def split_that_asks_again(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            next(batches, done)
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.exceptions_pass,
    tells="A `StopIteration` of `synchronize` ends your epoch, as if the "
    "loader had ended. Nobody hears of it: let it through.",
)
def split_that_ends_on_synchronize(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return waiting, working
        step(batch)
        try:
            if synchronize is not None:
                synchronize()
        except StopIteration:
            return waiting, working
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.exceptions_pass,
    tells="A KeyboardInterrupt during a step ends your epoch and nobody "
    "hears of it. Who presses Ctrl-C wants the program to stop: let "
    "it through.",
)
def split_that_minds_ctrl_c(
    loader, step, clock=time.perf_counter, synchronize=None
):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return waiting, working
        try:
            step(batch)
        except KeyboardInterrupt:
            return waiting, working
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@wrong(
    "time_split",
    breaks=hidden_tests.exceptions_pass,
    tells="Your steps run within a generator. There a `StopIteration` "
    "becomes a RuntimeError, so that of a step does not reach the "
    "caller as it is.",
)
def split_by_a_generator_of_steps(
    loader, step, clock=time.perf_counter, synchronize=None
):
    spent = [0.0, 0.0]

    def steps():
        now = clock()
        for batch in loader:
            then, now = now, clock()
            spent[0] += now - then
            step(batch)
            if synchronize is not None:
                synchronize()
            then, now = now, clock()
            spent[1] += now - then
            yield
        spent[0] += clock() - now

    for _ in steps():
        pass
    return spent[0], spent[1]


@wrong(
    "time_split",
    breaks=hidden_tests.times_of_the_parts,
    tells="You return a dict. Asked for is a tuple of two floats, first "
    "the waiting, then the work.",
)
def split_as_a_dict(loader, step, clock=time.perf_counter, synchronize=None):
    waiting = working = 0.0
    done = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, done)
        then, now = now, clock()
        waiting += now - then
        if batch is done:
            return {"waiting": waiting, "working": working}
        step(batch)
        if synchronize is not None:
            synchronize()
        then, now = now, clock()
        working += now - then


@accepted("make_loaders")
def loaders_by_num_samples(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    own = torch.Generator().manual_seed(seed)
    validation = DataLoader(validation_set, batch_size)
    if tail == "drop":
        order = RandomSampler(
            train_set, num_samples=n - n % batch_size, generator=own
        )
        return DataLoader(train_set, batch_size, sampler=order), validation
    cut = BatchSampler(
        RandomSampler(train_set, generator=own), batch_size, drop_last=False
    )

    class Joined(Sampler):
        def __len__(self):
            return len(cut) - (n % batch_size == 1)

        def __iter__(self):
            waiting = []
            for batch in cut:
                if len(batch) == 1:
                    waiting += batch
                    break
                if waiting:
                    yield waiting
                waiting = batch
            yield waiting

    return DataLoader(train_set, batch_sampler=Joined()), validation


@accepted("make_loaders")
def loaders_that_load_by_themselves(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)
    own = torch.Generator().manual_seed(seed)

    class Training(DataLoader):
        def __len__(self):
            return len(ends)

        def __iter__(self):
            order = torch.randperm(n, generator=own).tolist()
            for start, end in zip([0, *ends], ends):
                yield default_collate([train_set[i] for i in order[start:end]])

    return (
        Training(train_set, batch_size),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You drop the rest before you shuffle, so the same samples are "
    "left out in every epoch and never train the network. Shuffle "
    "all, then drop.",
)
def loaders_that_leave_the_same_out(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)
    used = ends[-1]

    class Batches:
        epoch = 0

        def __len__(self):
            return len(ends)

        def __iter__(self):
            g = torch.Generator().manual_seed(seed + 7919 * self.epoch)
            self.epoch += 1
            order = torch.randperm(used, generator=g).tolist()
            for start, end in zip([0, *ends], ends):
                yield order[start:end]

    return (
        DataLoader(train_set, batch_sampler=Batches()),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You shuffle all samples but the last of the dataset, which "
    "ends every epoch. Shuffle all of them.",
)
def loaders_whose_last_sample_stays(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)

    class Batches:
        epoch = 0

        def __len__(self):
            return len(ends)

        def __iter__(self):
            g = torch.Generator().manual_seed(seed + 7919 * self.epoch)
            self.epoch += 1
            order = [*torch.randperm(n - 1, generator=g).tolist(), n - 1]
            for start, end in zip([0, *ends], ends):
                yield order[start:end]

    return (
        DataLoader(train_set, batch_sampler=Batches()),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="Your `__len__` counts an epoch. Progress bars and schedulers "
    "ask for the length whenever they like: let only `__iter__` "
    "count.",
)
def loaders_whose_length_counts(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)

    class Batches:
        epoch = 0

        def __len__(self):
            self.epoch += 1
            return len(ends)

        def __iter__(self):
            g = torch.Generator().manual_seed(seed + 7919 * self.epoch)
            self.epoch += 1
            order = torch.randperm(n, generator=g).tolist()
            for start, end in zip([0, *ends], ends):
                yield order[start:end]

    return (
        DataLoader(train_set, batch_sampler=Batches()),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You take `seed=0` for no seed at all: 0 is false in Python. It "
    "is a seed like any other.",
)
def loaders_without_seed_zero(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)

    class Batches:
        epoch = 0

        def __len__(self):
            return len(ends)

        def __iter__(self):
            g = torch.Generator().manual_seed(seed + 7919 * self.epoch)
            self.epoch += 1
            order = torch.randperm(n, generator=g if seed else None).tolist()
            for start, end in zip([0, *ends], ends):
                yield order[start:end]

    return (
        DataLoader(train_set, batch_sampler=Batches()),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.reads_in_turn,
    tells="Your training loader starts a worker that nobody asked for. "
    "Without `num_workers` a loader works in the main process.",
)
def loaders_with_a_worker(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)

    class Batches:
        epoch = 0

        def __len__(self):
            return len(ends)

        def __iter__(self):
            g = torch.Generator().manual_seed(seed + 7919 * self.epoch)
            self.epoch += 1
            order = torch.randperm(n, generator=g).tolist()
            for start, end in zip([0, *ends], ends):
                yield order[start:end]

    return (
        DataLoader(train_set, batch_sampler=Batches(), num_workers=1),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.reads_in_turn,
    tells="You read all samples of an epoch before its first batch. They "
    "may not fit into memory together: read those of a batch when "
    "its turn comes.",
)
def loaders_that_read_an_epoch_ahead(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)
    own = torch.Generator().manual_seed(seed)

    class Training(DataLoader):
        def __len__(self):
            return len(ends)

        def __iter__(self):
            order = torch.randperm(n, generator=own).tolist()[: ends[-1]]
            rows = [train_set[i] for i in order]
            for start, end in zip([0, *ends], ends):
                yield default_collate(rows[start:end])

    return (
        Training(train_set, batch_size),
        DataLoader(validation_set, batch_size),
    )


@wrong(
    "make_loaders",
    breaks=hidden_tests.reads_in_turn,
    tells="You read the samples that you then leave out. Reading is what "
    "takes the time: drop indices, not samples.",
)
def loaders_that_read_what_they_drop(
    train_set, validation_set, batch_size, seed, tail="drop"
):
    n = len(train_set)
    if tail not in ("drop", "merge"):
        raise ValueError("unknown tail")
    if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
        raise ValueError("no training possible")
    ends = list(range(batch_size, n + 1, batch_size))
    if tail == "merge" and n % batch_size == 1 and ends:
        ends[-1] = n
    elif tail == "merge" and n % batch_size:
        ends.append(n)
    own = torch.Generator().manual_seed(seed)

    class Training(DataLoader):
        def __len__(self):
            return len(ends)

        def __iter__(self):
            rows = []
            for place, index in enumerate(torch.randperm(n, generator=own), 1):
                rows.append(train_set[int(index)])
                if place in ends:
                    yield default_collate(rows)
                    rows = []

    return (
        Training(train_set, batch_size),
        DataLoader(validation_set, batch_size),
    )


@accepted("bytes_ahead")
def bytes_by_pytree(sample, batch_size, num_workers, prefetch_factor=None):
    from torch.utils._pytree import tree_leaves

    leaves = tree_leaves(default_collate([sample]))
    sizes = [leaf.nbytes for leaf in leaves if isinstance(leaf, torch.Tensor)]
    ahead = 2 if prefetch_factor is None else prefetch_factor
    return sum(sizes) * batch_size * num_workers * ahead


@accepted("bytes_ahead")
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


@wrong(
    "bytes_ahead",
    breaks=hidden_tests.counts_numpy,
    tells="You take an array without dimensions for a Python number. It "
    "keeps its dtype, as any array does: `array.nbytes`.",
)
def bytes_with_zero_dim_arrays_of_eight(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.number | np.bool_):
            return (
                8 if one.ndim == 0 and type(one) is np.ndarray else one.nbytes
            )
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
    "bytes_ahead",
    breaks=hidden_tests.huge_batches,
    tells="You make a tensor of the sample contiguous, in place: its "
    "strides are others afterwards. The sample belongs to the "
    "caller.",
)
def bytes_that_make_it_contiguous(
    sample, batch_size, num_workers, prefetch_factor=None
):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            one.data = one.data.contiguous()
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
    "bytes_ahead",
    breaks=hidden_tests.huge_batches,
    tells="You take the items out of the caller's dict as you count them, "
    "and leave it empty. Go through `values()`.",
)
def bytes_that_empty_the_dict(
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
            return sum(size_of(one.pop(key)) for key in list(one))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 1 if isinstance(one, bool) else 8

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=hidden_tests.huge_batches,
    tells="You take the items out of the caller's list as you count them, "
    "and leave it empty. Go through it with a loop.",
)
def bytes_that_empty_the_list(
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
            items, total = one if isinstance(one, list) else list(one), 0
            while items:
                total += size_of(items.pop())
            return total
        return 1 if isinstance(one, bool) else 8

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
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


@wrong(
    "bytes_ahead",
    breaks=hidden_tests.counts_nested_samples,
    tells="You count the keys of a dict where they are numbers. Keys are "
    "no data of the batch: only the values are collated.",
)
def bytes_with_keys(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.number | np.bool_):
            return int(one.nbytes)
        if isinstance(one, str):
            return 0
        if isinstance(one, dict):
            return sum(size_of(v) + size_of(k) for k, v in one.items())
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 1 if isinstance(one, bool) else 8

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@wrong(
    "bytes_ahead",
    breaks=hidden_tests.counts_nested_samples,
    tells="An OrderedDict is a dict of its own kind. `type(x) is dict` is "
    "false for it; use `isinstance`.",
)
def bytes_of_exact_dicts(sample, batch_size, num_workers, prefetch_factor=None):
    def size_of(one):
        if isinstance(one, torch.Tensor):
            return one.numel() * one.element_size()
        if isinstance(one, np.ndarray | np.number | np.bool_):
            return int(one.nbytes)
        if isinstance(one, str):
            return 0
        if type(one) is dict:
            return sum(map(size_of, one.values()))
        if isinstance(one, list | tuple):
            return sum(map(size_of, one))
        return 1 if isinstance(one, bool) else 8

    ahead = 2 if prefetch_factor is None else prefetch_factor
    return num_workers * ahead * batch_size * size_of(sample)


@accepted("fitting_loader")
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


@accepted("fitting_loader")
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


@wrong(
    "fitting_loader",
    breaks=hidden_tests.workers_that_fit,
    tells="You choose the workers with which the most batches wait. First "
    "come the workers, as many as fit with one batch ahead each, "
    "then the prefetching.",
)
def fitting_with_the_most_batches(
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
        (w * p, w, p)
        for w in range(1, num_workers + 1)
        for p in range(1, prefetch_factor + 1)
        if w * p <= room
    ]
    if_any, workers = {}, 0
    if pairs:
        _, workers, ahead = max(pairs)
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


@wrong(
    "fitting_loader",
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You say how workers are started. Where that way does not "
    "exist, or a thread must not be forked, your loader fails: "
    "leave it to PyTorch.",
)
def fitting_by_fork(
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
    if workers > 0:
        if_any["multiprocessing_context"] = "fork"
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
    "fitting_loader",
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You say how workers are started. Where that way does not "
    "exist, or a thread must not be forked, your loader fails: "
    "leave it to PyTorch.",
)
def fitting_by_spawn(
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
    if workers > 0:
        if_any["multiprocessing_context"] = "spawn"
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
    "fitting_loader",
    breaks=hidden_tests.starting_is_left_to_pytorch,
    tells="You set how the whole program starts its processes. A function "
    "that makes a loader has no business there: leave it to "
    "PyTorch.",
)
def fitting_with_a_start_method_for_all(
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
    if workers > 0:
        from multiprocessing import set_start_method

        set_start_method("fork", force=True)
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
    "fitting_loader",
    breaks=hidden_tests.each_sample_once,
    tells="You take `seed=0` for no seed at all: 0 is false in Python. It "
    "is a seed like any other.",
)
def fitting_without_seed_zero(
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
    order = RandomSampler(
        dataset,
        generator=torch.Generator().manual_seed(seed) if seed else None,
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
    "fitting_loader",
    breaks=hidden_tests.each_sample_once,
    tells="Your order changes with the batch size. It hangs on `seed` and "
    "on the epoch, on nothing else.",
)
def fitting_seeded_with_the_batch_size(
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
    order = RandomSampler(
        dataset, generator=torch.Generator().manual_seed(seed + batch_size)
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
    "fitting_loader",
    breaks=hidden_tests.each_sample_once,
    tells="Your order changes with the memory that is free. It hangs on "
    "`seed` and on the epoch, on nothing else.",
)
def fitting_seeded_with_the_room(
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
    order = RandomSampler(
        dataset,
        generator=torch.Generator().manual_seed(seed + free_bytes // 10**9),
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
    "fitting_loader",
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
