"""Answers to `make_loaders` of chapter 13."""

import math

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

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def mended_loaders_that_merge_once(
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
        DataLoader(validation_set, batch_size),
    )


@accepted()
def mended_loaders_that_leave_the_same_out(
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
        DataLoader(train_set, batch_sampler=Batches()),
        DataLoader(validation_set, batch_size),
    )


@wrong(
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
