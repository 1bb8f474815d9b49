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

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


loaders_that_drop_in_validation = edit(
    mended_loaders_that_merge_once,
    {", batch_size),": ", batch_size, drop_last=True),"},
    breaks=[hidden_tests.validation_is_whole],
    tells="You drop the last batch of the validation, too. In `eval()` a lone "
    "sample is no trouble, and without it the score is that of other "
    "samples. `drop_last` is for training.",
)

loaders_that_follow_tail_in_validation = edit(
    mended_loaders_that_merge_once,
    {", batch_size),": ', batch_size, drop_last=tail == "drop"),'},
    breaks=[hidden_tests.validation_is_whole],
    tells='With `tail="drop"` you drop in validation as well. Whatever `tail` '
    "says, validation gives every sample once.",
)

loaders_with_a_shuffled_validation = edit(
    mended_loaders_that_merge_once,
    {
        "DataLoader(validation_set, batch_size),": """
        DataLoader(
            validation_set,
            batch_size,
            shuffle=True,
            generator=torch.Generator().manual_seed(seed),
        ),
        """,
    },
    breaks=[hidden_tests.validation_is_whole],
    tells="You shuffle the validation samples. They come in the order of the "
    "dataset.",
)

loaders_with_validation_in_one_batch = edit(
    mended_loaders_that_merge_once,
    {", batch_size)": ", len(validation_set))"},
    breaks=[hidden_tests.validation_is_whole],
    tells="Your validation loader has batches of another size than "
    "`batch_size`.",
)

loaders_without_a_batch = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': "if batch_size < 2 or n < 2:",
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="With fewer samples than a batch, `drop_last=True` gives no batch "
    "at all, and training does nothing, without an error. Raise a "
    "ValueError.",
)

loaders_that_want_whole_batches = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': "if batch_size < 2 or n % batch_size != 0:",
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="You refuse every number of samples that is not a multiple of the "
    "batch size. Only a rest of one is a trouble, and `tail` is there "
    "to deal with it.",
)

loaders_that_refuse_a_rest_of_one = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': """
        if (
            batch_size < 2
            or n < (batch_size if tail == "drop" else 2)
            or n % batch_size == 1
        ):
        """,
    },
    breaks=[
        hidden_tests.refuses_the_impossible,
        hidden_tests.drops_the_tail,
        hidden_tests.merges_a_lone_sample,
    ],
    tells="You refuse a rest of one sample. That is what `tail` is for: leave "
    "it out, or merge it. Refuse only where neither can help.",
)

loaders_that_take_a_batch_size_of_one = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': 'if batch_size < 1 or n < (batch_size if tail == "drop" else 2):',
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="A batch size of 1 makes every batch a lone sample. N % 1 is 0, so "
    "a look at the rest alone does not see it: refuse it.",
)

loaders_that_take_a_single_sample = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': 'if batch_size < 2 or n < (batch_size if tail == "drop" else 1):',
        "if len(batches[-1]) == 1:": "if len(batches[-1]) == 1 < len(batches):",
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="A training set of one sample has nothing to be merged with. Refuse "
    "it in `make_loaders`.",
)

loaders_that_refuse_a_small_set_to_merge = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': "if batch_size < 2 or n < batch_size:",
    },
    breaks=[
        hidden_tests.refuses_the_impossible,
        hidden_tests.keeps_other_tails,
    ],
    tells='With `tail="merge"` fewer samples than a batch are one smaller '
    "batch, which can be trained on. You refuse them.",
)

loaders_that_refuse_a_single_full_batch = edit(
    mended_loaders_that_merge_once,
    {
        'if batch_size < 2 or n < (batch_size if tail == "drop" else 2):': 'if batch_size < 2 or n < (batch_size + 1 if tail == "drop" else 2):',
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="You refuse a training set of exactly one full batch. It can be "
    "trained on.",
)

loaders_that_drop_a_lone_sample_to_merge = edit(
    mended_loaders_that_merge_once,
    {"batches[-2:] = [batches[-2] + batches[-1]]": "batches.pop()"},
    breaks=[hidden_tests.merges_a_lone_sample],
    tells='With `tail="merge"` you leave the lone last sample out. Nothing is '
    "to be lost: it joins the batch before it.",
)

loaders_that_repeat_a_sample = edit(
    mended_loaders_that_merge_once,
    {
        "batches[-2:] = [batches[-2] + batches[-1]]": "batches[-1] = batches[-1] + batches[0][:1]",
        "batch_size - 2) //": "batch_size - 1) //",
    },
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You put a sample in a second time to keep the last one company. It "
    "then counts twice in the epoch; merge the lone sample instead.",
)

loaders_that_double_the_lone_sample = edit(
    mended_loaders_that_merge_once,
    {
        "batches[-2:] = [batches[-2] + batches[-1]]": "batches[-1] = 2 * batches[-1]",
        "batch_size - 2) //": "batch_size - 1) //",
    },
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You put a sample in a second time to keep the last one company. It "
    "then counts twice in the epoch; merge the lone sample instead.",
)

loaders_that_take_one_from_the_batch_before = edit(
    mended_loaders_that_merge_once,
    {
        "batches[-2:] = [batches[-2] + batches[-1]]": "batches[-1] = [batches[-2].pop(), *batches[-1]]",
        "batch_size - 2) //": "batch_size - 1) //",
    },
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You move a sample from the batch before to the lone one. The text "
    "wants the lone sample to join the batch before, which then has one "
    "more.",
)

loaders_that_merge_with_the_first = edit(
    mended_loaders_that_merge_once,
    {
        "batches[-2:] = [batches[-2] + batches[-1]]": "batches[0] = batches[0] + batches.pop()",
    },
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="You give the lone sample to the first batch. It joins the batch "
    "before it, the last one.",
)

loaders_that_merge_every_tail = edit(
    mended_loaders_that_merge_once,
    {
        "if len(batches[-1]) == 1:": "if len(batches[-1]) < self.batch_size and len(batches) > 1:",
        "(len(self.sampler) + self.batch_size - 2) // self.batch_size": "max(1, len(self.sampler) // self.batch_size)",
    },
    breaks=[hidden_tests.keeps_other_tails],
    tells="You merge every incomplete last batch. Only a lone sample has to "
    "be merged; two and more can be trained on as they are.",
)

loaders_that_drop_only_a_lone_sample = edit(
    mended_loaders_that_merge_once,
    {
        "batches = BatchSampler(order, batch_size, drop_last=True)": "batches = BatchSampler(order, batch_size, drop_last=n % batch_size == 1)",
    },
    breaks=[hidden_tests.drops_the_tail],
    tells='With `tail="drop"` you leave out a lone last sample only. Every '
    "incomplete last batch is to be left out.",
)

loaders_that_always_drop = edit(
    mended_loaders_that_merge_once,
    {'if tail == "drop":': "if n >= batch_size:"},
    breaks=[hidden_tests.merges_a_lone_sample, hidden_tests.keeps_other_tails],
    tells='You drop the last batch whatever `tail` says. With `tail="merge"` '
    "no sample may be lost.",
)

loaders_that_always_merge = edit(
    mended_loaders_that_merge_once,
    {'if tail == "drop":': 'if tail == "keep":'},
    breaks=[hidden_tests.drops_the_tail],
    tells='You merge whatever `tail` says. With `tail="drop"` an incomplete '
    "last batch is left out.",
)

loaders_with_merge_as_default = edit(
    mended_loaders_that_merge_once,
    {', tail="drop"': ', tail="merge"'},
    breaks=[hidden_tests.drops_the_tail],
    tells="If no `tail` is given, you merge. The signature that you were "
    'given says "drop"; leave it so.',
)

loaders_that_take_any_word = edit(
    mended_loaders_that_merge_once,
    {
        """
        if tail not in ("drop", "merge"):
            raise ValueError("unknown tail")
        """: "",
    },
    breaks=[hidden_tests.refuses_other_words],
    tells='Any other word for `tail` is taken like "merge". A slip of the pen '
    "should be heard: raise a ValueError.",
)

loaders_that_take_capitals = edit(
    mended_loaders_that_merge_once,
    {
        """
        def mended_loaders_that_merge_once(
            train_set, validation_set, batch_size, seed, tail="drop"
        ):
        """: """
        def mended_loaders_that_merge_once(
            train_set, validation_set, batch_size, seed, tail="drop"
        ):
            tail = tail.lower()
        """,
    },
    breaks=[hidden_tests.refuses_other_words],
    tells='You accept words that are nearly right. Only "drop" and "merge" '
    "are known; anything else raises a ValueError.",
)

loaders_that_take_beginnings = edit(
    mended_loaders_that_merge_once,
    {
        """
        def mended_loaders_that_merge_once(
            train_set, validation_set, batch_size, seed, tail="drop"
        ):
        """: """
        def mended_loaders_that_merge_once(
            train_set, validation_set, batch_size, seed, tail="drop"
        ):
            tail = "merge" if tail.startswith("merge") else tail
        """,
    },
    breaks=[hidden_tests.refuses_other_words],
    tells='You accept words that are nearly right. Only "drop" and "merge" '
    "are known; anything else raises a ValueError.",
)

loaders_that_raise_on_the_way = edit(
    mended_loaders_that_merge_once,
    {
        """
        if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
            raise ValueError("no training possible")
        """: "",
        "order = RandomSampler(train_set, generator=own)": """
        order = RandomSampler(range(max(n, 1)), generator=own)

        class Checking(BatchSampler):
            def __iter__(self):
                if self.batch_size < 2 or n < self.batch_size:
                    raise ValueError("no training possible")
                return super().__iter__()
        """,
        "def __iter__(self):": """
        def __iter__(self):
            if self.batch_size < 2 or n < 2:
                raise ValueError("no training possible")
        """,
        "batches = BatchSampler(order, batch_size, drop_last=True)": "batches = Checking(order, max(batch_size, 1), drop_last=True)",
        "batches = Joining(order, batch_size, drop_last=False)": "batches = Joining(order, max(batch_size, 1), drop_last=False)",
        ", batch_size)": ", max(batch_size, 1))",
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="Your ValueError comes when the loader is gone through. "
    "`make_loaders` itself must raise: before an hour of set-up, not "
    "after.",
)

loaders_that_assert = edit(
    mended_loaders_that_merge_once,
    {
        """
        if batch_size < 2 or n < (batch_size if tail == "drop" else 2):
            raise ValueError("no training possible")
        """: """
        assert batch_size >= 2
        assert n >= (batch_size if tail == "drop" else 2)
        """,
    },
    breaks=[hidden_tests.refuses_the_impossible],
    tells="You refuse by an `assert`, which is an AssertionError, and under "
    "`python -O` nothing at all. Raise a ValueError.",
)

loaders_with_one_order = edit(
    mended_loaders_that_merge_once,
    {
        "order = RandomSampler(train_set, generator=own)": "order = torch.randperm(n, generator=own).tolist()",
    },
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="You draw one order and use it in every epoch. Each epoch has an "
    "order of its own: draw anew whenever the loader is gone through.",
)

loaders_seeded_in_each_epoch = edit(
    mended_loaders_that_merge_once,
    {
        "order = RandomSampler(train_set, generator=own)": """
        class Order(Sampler):
            def __iter__(self):
                own.manual_seed(seed)
                return iter(torch.randperm(n, generator=own).tolist())

            def __len__(self):
                return n

        order = Order()
        """,
    },
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="You draw one order and use it in every epoch. Each epoch has an "
    "order of its own: draw anew whenever the loader is gone through.",
)

loaders_in_the_given_order = edit(
    mended_loaders_that_merge_once,
    {"order = RandomSampler(train_set, generator=own)": "order = range(n)"},
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="You do not shuffle the training samples.",
)

loaders_that_shuffle_batches = edit(
    mended_loaders_that_merge_once,
    {
        "order = RandomSampler(train_set, generator=own)": """
        class Order(Sampler):
            def __iter__(self):
                parts = torch.arange(n).split(batch_size)
                places = torch.randperm(len(parts), generator=own).tolist()
                return iter(torch.cat([parts[i] for i in places]).tolist())

            def __len__(self):
                return n

        order = Order()
        """,
    },
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Neighbours in the dataset stay neighbours in your epochs: you "
    "shuffle ready batches, or begin at another place. Shuffle the "
    "samples.",
)

loaders_that_rotate = edit(
    mended_loaders_that_merge_once,
    {
        "order = RandomSampler(train_set, generator=own)": """
        class Order(Sampler):
            def __iter__(self):
                first = 1 + int(torch.randint(n - 1, (1,), generator=own))
                return iter(torch.arange(n).roll(first).tolist())

            def __len__(self):
                return n

        order = Order()
        """,
    },
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Neighbours in the dataset stay neighbours in your epochs: you "
    "shuffle ready batches, or begin at another place. Shuffle the "
    "samples.",
)

loaders_that_ignore_the_seed = edit(
    mended_loaders_that_merge_once,
    {
        "own = torch.Generator().manual_seed(seed)": "own = torch.Generator().manual_seed(0)",
    },
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Your order does not depend on `seed`.",
)

loaders_on_the_global_generator = edit(
    mended_loaders_that_merge_once,
    {
        """
        own = torch.Generator().manual_seed(seed)
        order = RandomSampler(train_set, generator=own)
        """: "order = RandomSampler(train_set)",
    },
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Your order comes from the global generator: whatever else draws "
    "changes it. Give the sampler a generator of its own, seeded with "
    "`seed`.",
)

loaders_that_seed_everything = edit(
    mended_loaders_that_merge_once,
    {
        """
        own = torch.Generator().manual_seed(seed)
        order = RandomSampler(train_set, generator=own)
        """: """
        torch.manual_seed(seed)
        order = RandomSampler(train_set)
        """,
    },
    breaks=[
        hidden_tests.global_seed_is_kept,
        hidden_tests.order_hangs_on_the_seed,
    ],
    tells="You seed PyTorch's global generator. That changes the random "
    "numbers of the whole program, and whatever else draws changes your "
    "order. Use a generator of your own.",
)

loaders_that_seed_everything_as_well = edit(
    mended_loaders_that_merge_once,
    {
        "own = torch.Generator().manual_seed(seed)": """
        torch.manual_seed(seed)
        own = torch.Generator().manual_seed(seed)
        """,
    },
    breaks=[hidden_tests.global_seed_is_kept],
    tells="You have a generator of your own, and seed the global one all the "
    "same. Leave that alone: it belongs to the whole program.",
)

loaders_that_seed_numpy = edit(
    mended_loaders_that_merge_once,
    {
        "own = torch.Generator().manual_seed(seed)": """
        np.random.seed(seed % 2**32)
        own = torch.Generator().manual_seed(seed)
        """,
    },
    breaks=[hidden_tests.global_seed_is_kept],
    tells="You seed NumPy's global generator. It belongs to the whole "
    "program; use `np.random.default_rng(seed)` if you want one of "
    "NumPy's.",
)

loaders_that_share_a_generator = edit(
    mended_loaders_that_merge_once,
    {", batch_size),": ", batch_size, generator=own),"},
    breaks=[hidden_tests.order_hangs_on_the_seed],
    tells="Both loaders have the same generator. Each draws from it when it "
    "is gone through, so a validation between the epochs changes the "
    "order of the training. Give the validation none.",
)

loaders_with_a_wrong_length = edit(
    mended_loaders_that_merge_once,
    {
        "(len(self.sampler) + self.batch_size - 2) // self.batch_size": "super().__len__()",
    },
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="`len()` of your training loader counts the lone batch that is no "
    "more. Schedulers and progress bars rely on it: your batch "
    "sampler's `__len__` must say how many batches it yields.",
)

loaders_that_merge_once = edit(
    mended_loaders_that_merge_once,
    {
        "class Joining(BatchSampler):": """
        class Joining(BatchSampler):
            gone = False
        """,
        "def __iter__(self):": """
        def __iter__(self):
            if self.gone:
                return iter([])
            self.gone = True
        """,
    },
    breaks=[hidden_tests.merges_a_lone_sample],
    tells="Your batch sampler can be gone through once; later epochs are "
    "empty. `__iter__` must begin anew each time.",
)

loaders_that_do_not_collate = edit(
    mended_loaders_that_merge_once,
    {"batch_sampler=batches),": "batch_sampler=batches, collate_fn=list),"},
    breaks=[hidden_tests.collates_as_usual, hidden_tests.drops_the_tail],
    tells="Your batches are lists of samples. Leave `collate_fn` alone: "
    "PyTorch's own makes tensors of them.",
)

loaders_that_hand_out_tensors_only = edit(
    mended_loaders_that_merge_once,
    {
        "DataLoader(train_set, batch_sampler=batches),": """
        DataLoader(
            train_set,
            batch_sampler=batches,
            collate_fn=lambda rows: torch.stack(
                [row if torch.is_tensor(row) else row[0] for row in rows]
            ),
        ),
        """,
    },
    breaks=[hidden_tests.collates_as_usual],
    tells="You collate by `torch.stack`, which takes samples that are single "
    "tensors. PyTorch's own collating knows pairs and dicts, too: leave "
    "it alone.",
)

loaders_as_lists = edit(
    mended_loaders_that_merge_once,
    {
        """
        return (
            DataLoader(train_set, batch_sampler=batches),
            DataLoader(validation_set, batch_size),
        )
        """: """
        return (
            list(DataLoader(train_set, batch_sampler=batches)),
            list(DataLoader(validation_set, batch_size)),
        )
        """,
    },
    breaks=[hidden_tests.drops_the_tail, hidden_tests.order_hangs_on_the_seed],
    tells="You return lists of batches. They hold the whole dataset and one "
    "order for ever; return `DataLoader`s.",
)

loaders_with_half_batches = edit(
    mended_loaders_that_merge_once,
    {
        "batches = BatchSampler(order, batch_size, drop_last=True)": "batches = BatchSampler(order, max(2, batch_size // 2), drop_last=True)",
        "batches = Joining(order, batch_size, drop_last=False)": "batches = Joining(order, max(2, batch_size // 2), drop_last=False)",
    },
    breaks=[hidden_tests.drops_the_tail, hidden_tests.merges_a_lone_sample],
    tells="Your training batches are of another size than `batch_size`.",
)

loaders_that_draw_with_replacement = edit(
    mended_loaders_that_merge_once,
    {
        "order = RandomSampler(train_set, generator=own)": "order = RandomSampler(train_set, replacement=True, generator=own)",
    },
    breaks=[hidden_tests.drops_the_tail, hidden_tests.merges_a_lone_sample],
    tells="You draw with replacement: in an epoch some samples come twice and "
    "others never.",
)

loaders_with_a_generator_for_all = edit(
    mended_loaders_that_merge_once,
    {
        'train_set, validation_set, batch_size, seed, tail="drop"': """
        train_set,
        validation_set,
        batch_size,
        seed,
        tail="drop",
        _shared={},  # noqa: B006
        """,
        """
        own = torch.Generator().manual_seed(seed)
        order = RandomSampler(train_set, generator=own)
        """: """
        if seed not in _shared:
            _shared[seed] = torch.Generator().manual_seed(seed)
        order = RandomSampler(train_set, generator=_shared[seed])
        """,
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="All loaders that you make share one generator, so the second one goes on "
    "where the first one stopped. Make a new generator in each call.",
)

loaders_that_merge_large_batches_only = edit(
    mended_loaders_that_merge_once,
    {
        "if len(batches[-1]) == 1:": "if len(batches[-1]) == 1 and self.batch_size > 2:",
        "return (len(self.sampler) + self.batch_size - 2) // self.batch_size": """
        return len(list(range(0, n, batch_size))) - (
            n % batch_size == 1 and batch_size > 2
        )
        """,
    },
    breaks=hidden_tests.merges_a_lone_sample,
    tells="Your merging looks for a rest of one in the number of samples divided by "
    "the batch size plus one, or only for batches larger than 2. Small batches "
    "have a lone sample as well.",
)

loaders_over_copies = edit(
    mended_loaders_that_merge_once,
    {
        "own = torch.Generator().manual_seed(seed)": """
        own = torch.Generator().manual_seed(seed)
        train_set = [train_set[i] for i in range(n)]
        """,
    },
    breaks=hidden_tests.reads_in_turn,
    tells="You read the whole dataset into a list first. It may not fit into "
    "memory, and a dataset that augments its samples would do so only once.",
)

loaders_with_ten_orders = edit(
    mended_loaders_that_merge_once,
    {
        "order = RandomSampler(train_set, generator=own)": """
        ten = [torch.randperm(n, generator=own).tolist() for _ in range(10)]

        class Order(Sampler):
            epoch = 0

            def __iter__(self):
                self.epoch += 1
                return iter(ten[self.epoch % 10])

            def __len__(self):
                return n
        """,
        "batches = BatchSampler(order, batch_size, drop_last=True)": "batches = BatchSampler(Order(), batch_size, drop_last=True)",
        "batches = Joining(order, batch_size, drop_last=False)": "batches = Joining(Order(), batch_size, drop_last=False)",
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You draw a few orders beforehand and go round them. Sooner or later an "
    "epoch has an order that came before: draw a new one for each.",
)

loaders_that_refuse_a_lone_validation_sample = edit(
    mended_loaders_that_merge_once,
    {
        "own = torch.Generator().manual_seed(seed)": """
        if len(validation_set) % batch_size == 1:
            raise ValueError("a lone sample in validation")
        own = torch.Generator().manual_seed(seed)
        """,
    },
    breaks=hidden_tests.validation_is_whole,
    tells="You refuse, or merge, a lone last sample in validation, too. In `eval()` "
    "it does no harm, and `tail` is about training.",
)

loaders_that_leave_the_same_out = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "class Batches:": """
        used = ends[-1]

        class Batches:
        """,
        "order = torch.randperm(n, generator=g).tolist()": "order = torch.randperm(used, generator=g).tolist()",
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You drop the rest before you shuffle, so the same samples are "
    "left out in every epoch and never train the network. Shuffle "
    "all, then drop.",
)

loaders_whose_last_sample_stays = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "order = torch.randperm(n, generator=g).tolist()": "order = [*torch.randperm(n - 1, generator=g).tolist(), n - 1]",
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You shuffle all samples but the last of the dataset, which "
    "ends every epoch. Shuffle all of them.",
)

loaders_whose_length_counts = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "def __len__(self):": """
        def __len__(self):
            self.epoch += 1
        """,
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="Your `__len__` counts an epoch. Progress bars and schedulers "
    "ask for the length whenever they like: let only `__iter__` "
    "count.",
)

loaders_without_seed_zero = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "order = torch.randperm(n, generator=g).tolist()": "order = torch.randperm(n, generator=g if seed else None).tolist()",
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You take `seed=0` for no seed at all: 0 is false in Python. It "
    "is a seed like any other.",
)

loaders_with_a_worker = edit(
    mended_loaders_that_leave_the_same_out,
    {"=Batches()),": "=Batches(), num_workers=1),"},
    breaks=hidden_tests.reads_in_turn,
    tells="Your training loader starts a worker that nobody asked for. "
    "Without `num_workers` a loader works in the main process.",
)

loaders_that_read_an_epoch_ahead = edit(
    loaders_that_load_by_themselves,
    {
        "order = torch.randperm(n, generator=own).tolist()": """
        order = torch.randperm(n, generator=own).tolist()[: ends[-1]]
        rows = [train_set[i] for i in order]
        """,
        "yield default_collate([train_set[i] for i in order[start:end]])": "yield default_collate(rows[start:end])",
    },
    breaks=hidden_tests.reads_in_turn,
    tells="You read all samples of an epoch before its first batch. They "
    "may not fit into memory together: read those of a batch when "
    "its turn comes.",
)

loaders_that_read_what_they_drop = edit(
    loaders_that_load_by_themselves,
    {
        """
        order = torch.randperm(n, generator=own).tolist()
        for start, end in zip([0, *ends], ends):
            yield default_collate([train_set[i] for i in order[start:end]])
        """: """
        rows = []
        for place, index in enumerate(torch.randperm(n, generator=own), 1):
            rows.append(train_set[int(index)])
            if place in ends:
                yield default_collate(rows)
                rows = []
        """,
    },
    breaks=hidden_tests.reads_in_turn,
    tells="You read the samples that you then leave out. Reading is what "
    "takes the time: drop indices, not samples.",
)

loaders_with_trimmed_words = edit(
    SOLUTION,
    {
        'if tail not in ("drop", "merge"):': 'if tail.strip() not in ("drop", "merge"):'
    },
    breaks=hidden_tests.refuses_other_words,
    tells='`" drop"` is another word than `"drop"`. Whoever mistypes it learns nothing, and '
    "gets a tail that was not asked for.",
)

loaders_that_roll_one_order = edit(
    SOLUTION,
    {
        "order = RandomSampler(train_set, generator=own)": """
        fixed = torch.randperm(num_samples, generator=own).tolist()

        class Rolled(torch.utils.data.Sampler):
            num_epochs = 0

            def __iter__(self):
                self.num_epochs += 1
                at = 5 * self.num_epochs % len(fixed)
                return iter(fixed[at:] + fixed[:at])

            def __len__(self):
                return len(fixed)

        order = Rolled()
        """
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="Each epoch is the first one, rolled: the same samples meet in a batch again and "
    "again. Draw a new permutation for each epoch.",
)

loaders_that_seed_with_the_batch_size = edit(
    SOLUTION,
    {
        "torch.Generator().manual_seed(seed)": "torch.Generator().manual_seed(seed + batch_size)"
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="Your order depends on `batch_size`. Two runs that differ in it are then "
    "different in two ways: seed with `seed` alone.",
)

order_by_hash_of_text = edit(
    SOLUTION,
    {
        "own = torch.Generator().manual_seed(seed)": 'own = torch.Generator().manual_seed(abs(hash(f"loader {seed}")))'
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="Your seed is the `hash` of a text. Python salts it anew in each process, so the "
    "same `seed` gives another order tomorrow.",
)

a_setting_left_by_make_loaders = edit(
    SOLUTION,
    {
        'if tail not in ("drop", "merge"):': """
        torch.set_num_threads(2)
        if tail not in ("drop", "merge"):
        """,
    },
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

loaders_of_tensor_indices = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "order = torch.randperm(n, generator=g).tolist()": "order = torch.randperm(n, generator=g)",
    },
    breaks=hidden_tests.collates_as_usual,
    tells="Your batch sampler hands out tensors as indices. A dict does not find "
    "them, and a file's name made of one is wrong. Make integers of them: "
    "`torch.randperm(n).tolist()`.",
)

seeding_for_an_epoch = edit(
    SOLUTION,
    {
        "own = torch.Generator().manual_seed(seed)": """
        class SeededOrder:
            epoch = 0

            def __len__(self):
                return num_samples

            def __iter__(self):
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed + 7919 * self.epoch)
                    self.epoch += 1
                    yield from RandomSampler(train_set)

        """,
        "order = RandomSampler(train_set, generator=own)": "order = SeededOrder()",
    },
    breaks=hidden_tests.global_seed_is_kept,
    tells="You seed the global generator in your sampler, and put it back at the end of "
    "the epoch. The training loop runs in between: what it draws is the same in "
    "every run. Use a generator of your own.",
)

seeding_for_a_moment = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "g = torch.Generator().manual_seed(seed + 7919 * self.epoch)": """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + 7919 * self.epoch)
            order = torch.randperm(n).tolist()
        """,
        "order = torch.randperm(n, generator=g).tolist()": "",
    },
    breaks=hidden_tests.global_seed_is_kept,
    tells="You seed a global generator to draw the order, and put it back at once. What "
    "another thread draws meanwhile is no longer random. A generator of your own "
    "needs neither.",
)

seeding_numpy_for_a_moment = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "g = torch.Generator().manual_seed(seed + 7919 * self.epoch)": """
        state = np.random.get_state()
        np.random.seed((seed + 7919 * self.epoch) % 2**32)
        order = np.random.permutation(n).tolist()
        np.random.set_state(state)
        """,
        "order = torch.randperm(n, generator=g).tolist()": "",
    },
    breaks=hidden_tests.global_seed_is_kept,
    tells="You seed a global generator to draw the order, and put it back at once. What "
    "another thread draws meanwhile is no longer random. A generator of your own "
    "needs neither.",
)

seeding_python_for_a_moment = edit(
    mended_loaders_that_leave_the_same_out,
    {
        "g = torch.Generator().manual_seed(seed + 7919 * self.epoch)": """
        import random

        state = random.getstate()
        random.seed(seed + 7919 * self.epoch)
        order = random.sample(range(n), n)
        random.setstate(state)
        """,
        "order = torch.randperm(n, generator=g).tolist()": "",
    },
    breaks=hidden_tests.global_seed_is_kept,
    tells="You seed a global generator to draw the order, and put it back at once. What "
    "another thread draws meanwhile is no longer random. A generator of your own "
    "needs neither.",
)

validating_in_batches_as_small_as_the_training_set = edit(
    SOLUTION,
    {
        "DataLoader(validation_set, batch_size),": "DataLoader(validation_set, min(batch_size, num_samples)),",
    },
    breaks=hidden_tests.validation_is_whole,
    tells="Your validation batches get smaller where the training set is smaller than a "
    "batch. The two have nothing to do with each other: `batch_size` it is.",
)

loaders_with_another_seed_for_zero = edit(
    mended_loaders_that_merge_once,
    {"manual_seed(seed)": "manual_seed(seed or 42)"},
    breaks=hidden_tests.order_hangs_on_the_seed,
    tells="You take another seed for `seed=0`: 0 is false in Python, so `seed or ...` is the other. "
    "Then two seeds give the same order. 0 is a seed like any other.",
)
