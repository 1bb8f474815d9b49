"""Answers to `epoch_shards` of chapter 14."""

import math

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from course_grader.bank import accepted, edit, wrong

from .. import hidden_tests


@accepted(body=True)
def shards_in_blocks():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@accepted(body=True)
def shards_by_the_sampler():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        sampler = DistributedSampler(
            range(num_samples), num_replicas=world_size, rank=rank, seed=seed
        )
        sampler.set_epoch(epoch)
        return list(sampler)

    def eval_shard(num_samples, rank, world_size):
        import numpy as np

        order = np.array_split(np.arange(num_samples), world_size)
        return order[rank].tolist()

    def global_accuracy(indices, correct, num_samples, group):
        gathered = [None] * dist.get_world_size(group)
        pairs = dict(zip(indices.tolist(), correct.tolist()))
        dist.all_gather_object(gathered, pairs, group=group)
        known = {}
        for one in gathered:
            known.update(one)
        return sum(known.values()) / len(known)


@accepted(body=True)
def shards_by_python_random():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import random

        order = list(range(num_samples))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        size = math.ceil(num_samples / world_size)
        while len(order) < size * world_size:
            order += order[: size * world_size - len(order)]
        return order[rank::world_size]

    def eval_shard(num_samples, rank, world_size):
        size, more = divmod(num_samples, world_size)
        start = rank * size + min(rank, more)
        return list(range(start, start + size + (rank < more)))

    def global_accuracy(indices, correct, num_samples, group):
        counts = torch.zeros(2, num_samples, dtype=torch.float64)
        ones = torch.ones(len(indices), dtype=torch.float64)
        counts[0].index_add_(0, indices, correct.double())
        counts[1].index_add_(0, indices, ones)
        dist.all_reduce(counts, group=group)
        return (counts[0] / counts[1]).mean().item()


@accepted(body=True)
def shards_by_numpy():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import numpy as np

        order = np.random.default_rng([seed, epoch]).permutation(num_samples)
        size = (num_samples + world_size - 1) // world_size
        return np.resize(order, size * world_size)[rank::world_size].tolist()

    def eval_shard(num_samples, rank, world_size):
        everything = torch.arange(num_samples).tensor_split(world_size)
        return everything[rank].tolist()

    def global_accuracy(indices, correct, num_samples, group):
        wrong = torch.zeros(num_samples, dtype=torch.int64)
        wrong[indices[~correct]] = 1
        dist.all_reduce(wrong, dist.ReduceOp.BOR, group)
        return 1 - wrong.count_nonzero().item() / num_samples


@accepted(body=True)
def shards_by_sorting():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator()
        generator.manual_seed(seed)
        for _ in range(epoch + 1):  # an epoch's numbers after the other
            keys = torch.rand(num_samples, generator=generator)
        order = keys.argsort()
        size = -(-num_samples // world_size)
        places = torch.arange(size * world_size) % num_samples
        return order[places].view(size, world_size)[:, rank].tolist()

    def eval_shard(num_samples, rank, world_size):
        return [i for i in range(num_samples) if i % world_size == rank]

    def global_accuracy(indices, correct, num_samples, group):
        size = group.size()
        longest = torch.tensor(len(indices))
        dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=group)
        padded = torch.full((int(longest), 2), -1)
        padded[: len(indices), 0] = indices
        padded[: len(indices), 1] = correct.long()
        everything = [torch.empty_like(padded) for _ in range(size)]
        dist.all_gather(everything, padded, group=group)
        rows = torch.cat(everything)
        rows = rows[rows[:, 0] >= 0].unique(dim=0)
        return rows[:, 1].sum().item() / len(rows)


@accepted(body=True)
def shards_by_a_subset():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import random

        drawn = random.Random(seed * 1_000_003 + epoch)
        order = drawn.sample(range(num_samples), num_samples)
        shard, place = [], rank
        while len(shard) < math.ceil(num_samples / world_size):
            shard.append(order[place % num_samples])
            place += world_size
        return shard

    def eval_shard(num_samples, rank, world_size):
        start = num_samples * rank // world_size
        return list(range(start, num_samples * (rank + 1) // world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.int32)
        for index, hit in zip(indices.tolist(), correct.tolist()):
            right[index] += hit
        dist.all_reduce(right, group=group)
        return right.clamp(max=1).sum().item() / num_samples


@accepted(body=True)
def shards_by_a_digest():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        import hashlib

        digest = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
        start = int.from_bytes(digest[:7], "big")
        generator = torch.Generator().manual_seed(start)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.uint8)
        right[indices] = correct.to(torch.uint8)
        dist.reduce(right, group_dst=0, op=dist.ReduceOp.MAX, group=group)
        dist.broadcast(right, group_src=0, group=group)
        return right.sum(dtype=torch.int64).item() / num_samples


shards_by_hash_of_numbers = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(hash((seed, epoch)) % 2**32)",
    },
)

shards_without_epoch = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(seed)",
    },
    breaks=hidden_tests.another_order_each_epoch,
    tells="Your order is the same in every epoch: `epoch` decides nothing, as with "
    "a `DistributedSampler` whose `set_epoch` nobody calls. Let seed and "
    "epoch together seed the generator.",
)


@wrong(
    breaks=hidden_tests.another_order_each_epoch,
    tells="Your order is the same in every epoch: `epoch` decides nothing, as with "
    "a `DistributedSampler` whose `set_epoch` nobody calls. Let seed and "
    "epoch together seed the generator.",
    body=True,
)
def sampler_without_set_epoch():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        sampler = DistributedSampler(
            range(num_samples), num_replicas=world_size, rank=rank, seed=seed
        )
        return list(sampler)

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    breaks=hidden_tests.another_order_each_epoch,
    tells="Your shards are not shuffled: rank r takes r, r + world_size and so on, "
    "in every epoch. Draw a permutation of all samples first.",
    body=True,
)
def shards_not_shuffled():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        order = list(range(num_samples)) * world_size
        return order[rank : size * world_size : world_size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    breaks=hidden_tests.another_order_each_epoch,
    tells="You shift the samples by the epoch: neighbours stay neighbours for ever."
    " A random order is asked for: `torch.randperm`.",
    body=True,
)
def shards_rotated():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        places = range(rank, size * world_size, world_size)
        return [(place + seed + 7 * epoch) % num_samples for place in places]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


@wrong(
    breaks=hidden_tests.samples_change_ranks,
    tells="You cut the samples into shards first and shuffle within a shard, so a "
    "rank never sees the samples of another. Shuffle all of them, then cut.",
    body=True,
)
def shuffled_within_the_shard():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        order = (list(range(num_samples)) * world_size)[: size * world_size]
        mine = order[rank::world_size]
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        return [mine[i] for i in torch.randperm(size, generator=generator)]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


order_of_each_rank = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": """
        generator = torch.Generator().manual_seed(
            1000 * seed + 7 * epoch + rank
        )
        """,
    },
    breaks=hidden_tests.all_are_covered,
    tells="Every rank draws a permutation of its own (the rank is in its seed), so "
    "shards overlap, and some samples are on no rank. All ranks must draw the"
    " *same* permutation and take different parts of it.",
)

rest_left_out = edit(
    shards_in_blocks,
    {
        """
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        """: "size = num_samples // world_size",
    },
    breaks=hidden_tests.all_are_covered,
    tells="You leave out what does not divide evenly, as `drop_last=True` does. "
    "Here no sample may be lost: fill up instead.",
)

not_filled_up = edit(
    shards_in_blocks,
    {
        """
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]
        """: "return order[rank::world_size]",
    },
    breaks=hidden_tests.all_are_covered,
    tells="You do not fill up: some ranks have one sample less. A rank with fewer "
    "batches ends early, and the others wait for it for ever. All shards have"
    " ⌈num_samples / world_size⌉ entries.",
)

filled_up_with_one = edit(
    shards_in_blocks,
    {
        """
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]
        """: """
        order += [order[-1]] * (size * world_size - num_samples)
        return order[rank::world_size]
        """,
    },
    breaks=hidden_tests.more_ranks_than_samples,
    tells="You fill up with one and the same sample again and again, so it counts "
    "several times more than the others. Repeat the order from its beginning.",
)

filled_up_once = edit(
    shards_in_blocks,
    {
        """
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]
        """: """
        order += order[: size * world_size - num_samples]
        return order[rank::world_size]
        """,
    },
    breaks=hidden_tests.more_ranks_than_samples,
    tells="You fill up with `order[:missing]`, which is too short where there are "
    "more ranks than samples: some ranks get nothing. Repeat the order as "
    "often as it takes.",
)

shards_by_the_global_generator = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        torch.manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples).tolist()
        """,
    },
    breaks=hidden_tests.no_global_numbers,
    tells="The order is right, but you seed the global generator for it. Dropout "
    "and augmentation then draw the same numbers after every call. Use a "
    "generator of your own: `torch.Generator()`.",
)

shards_by_global_random = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        import random

        random.seed(1000 * seed + epoch)
        order = random.sample(range(num_samples), num_samples)
        """,
    },
    breaks=hidden_tests.no_global_numbers,
    tells="The order is right, but you seed the global generator for it. Dropout "
    "and augmentation then draw the same numbers after every call. Use a "
    "generator of your own: `torch.Generator()`.",
)

shards_unseeded = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: "order = torch.randperm(num_samples).tolist()",
    },
    breaks=[hidden_tests.all_are_covered, hidden_tests.nothing_else_decides],
    tells="Your order comes from the global generator as it happens to be, so every"
    " rank has another one, and no run can be repeated. Seed a generator of "
    "your own with seed and epoch.",
)

shards_without_seed = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(epoch)",
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="`seed` decides nothing: only the epoch seeds your generator. Put both "
    "into it.",
)

shards_of_tensors = edit(
    shards_in_blocks,
    {
        "order = torch.randperm(num_samples, generator=generator).tolist()": "order = torch.randperm(num_samples, generator=generator)",
        "order = (order * world_size)[: size * world_size]": "order = order.repeat(world_size)[: size * world_size]",
    },
    breaks=hidden_tests.all_are_covered,
    tells="You return a tensor. A list of Python ints is asked for: `.tolist()`.",
)

evaluated_with_padding = edit(
    shards_in_blocks,
    {
        "return list(range(rank, num_samples, world_size))": """
        size = -(-num_samples // world_size)
        places = range(rank, size * world_size, world_size)
        return [place % num_samples for place in places]
        """,
    },
    breaks=hidden_tests.evaluated_once,
    tells="Your `eval_shard` fills up as a training shard does, so some samples are"
    " evaluated twice and count twice. To evaluate, every sample is on "
    "exactly one rank.",
)

evaluated_without_the_rest = edit(
    shards_in_blocks,
    {
        "return list(range(rank, num_samples, world_size))": """
        size = num_samples // world_size
        return list(range(rank * size, (rank + 1) * size))
        """,
    },
    breaks=hidden_tests.evaluated_once,
    tells="Your `eval_shard` leaves out what does not divide evenly. An evaluation "
    "looks at every sample.",
)

evaluated_in_full_chunks = edit(
    shards_in_blocks,
    {
        "return list(range(rank, num_samples, world_size))": """
        size = -(-num_samples // world_size)
        end = min(num_samples, (rank + 1) * size)
        return list(range(rank * size, end))
        """,
    },
    breaks=hidden_tests.evaluated_once,
    tells="Your `eval_shard` cuts chunks of ⌈…⌉ samples, so the last ranks get much"
    " less than the others, or nothing: the sizes may differ by one at most. "
    "Deal the samples out: `range(rank, num_samples, world_size)`.",
)

accuracy_of_the_rank = edit(
    shards_in_blocks,
    {
        """
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()
        """: "return correct.sum().item() / max(1, len(correct))",
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="You return the accuracy on the rank's own samples. What the ranks know "
    "has to cross between them.",
)


@wrong(
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="You average the ranks' accuracies. A rank with few samples then counts "
    "as much as one with many, and one without any spoils it. Add up what is "
    "right and divide by the number of all samples.",
    body=True,
)
def accuracy_mean_of_means():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        mean = torch.tensor(correct.sum().item() / max(1, len(correct)))
        mean = mean.double()
        dist.all_reduce(mean, group=group)
        return mean.item() / group.size()


@wrong(
    breaks=hidden_tests.repeated_samples_count_once,
    tells="Samples that came again to fill up count again. Put the results in their"
    " places, one place per sample, before you add up.",
    body=True,
)
def accuracy_with_repeats():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        counts = torch.tensor([correct.sum().item(), len(correct)]).double()
        dist.all_reduce(counts, group=group)
        return (counts[0] / counts[1]).item()


@wrong(
    breaks=hidden_tests.repeated_samples_count_once,
    tells="You divide by `num_samples`, but add up what came again to fill up, so a"
    " result can be too large, even above 1. Put the results in their places,"
    " one place per sample, before you add up.",
    body=True,
)
def accuracy_above_one():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        count = correct.sum().double()
        dist.all_reduce(count, group=group)
        return count.item() / num_samples


@wrong(
    breaks=hidden_tests.repeated_samples_count_once,
    tells="You put the ranks' results one after the other and keep the first "
    "`num_samples`. What came again does not stand at the end: `indices` says"
    " which sample each result belongs to.",
    body=True,
)
def accuracy_of_the_first_entries():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        gathered = [None] * group.size()
        dist.all_gather_object(gathered, correct.tolist(), group=group)
        everything = sum(gathered, [])[:num_samples]
        return sum(everything) / len(everything)


accuracy_as_a_tensor = edit(
    shards_in_blocks,
    {
        "return right.mean(dtype=torch.float64).item()": "return right.mean(dtype=torch.float64)",
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="Your `global_accuracy` returns a tensor. A Python float is asked for: "
    "`.item()`.",
)

accuracy_on_the_first_rank = edit(
    shards_in_blocks,
    {
        "right[indices[correct]] = 1": """
        right[indices[correct]] = 1
        own = right.mean(dtype=torch.float64).item()
        """,
        "dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)": """
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        if group.rank() > 0:
            return own
        """,
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="Only the first rank returns the accuracy of all. Each rank decides by it"
    " (to stop early, to keep a checkpoint), so each needs it.",
)

accuracy_of_what_is_left_over = edit(
    shards_in_blocks,
    {
        "def global_accuracy(indices, correct, num_samples, group):": """
        def global_accuracy(indices, correct, num_samples, group):
            if len(indices) == 0:
                return 0.0
        """,
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="A rank without samples returns at once. The others wait for it in "
    "`all_reduce` and fail. Every rank has to make the same calls, also one "
    "that has nothing to add.",
)

shards_seeded_by_the_product = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(seed * epoch)",
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You seed with `seed * epoch`, which is 0 in epoch 0 whatever the seed "
    "is. Add them, or put both into the seed in another way.",
)

shards_of_two_orders = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(1000 * seed + epoch % 2)",
    },
    breaks=hidden_tests.another_order_each_epoch,
    tells="Only two orders take turns: an epoch has that of two epochs before. "
    "Every epoch needs a permutation of its own.",
)


@wrong(
    breaks=hidden_tests.repeated_samples_count_once,
    tells="You take care of samples that come again on the same rank, but not of "
    "those that come on two ranks. Only together can ranks tell: put the "
    "results in their places, one place per sample.",
    body=True,
)
def accuracy_unique_on_each_rank():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        known = dict(zip(indices.tolist(), correct.tolist()))
        counts = torch.tensor([sum(known.values()), len(known)]).double()
        dist.all_reduce(counts, group=group)
        return (counts[0] / counts[1]).item()


@wrong(
    breaks=hidden_tests.more_ranks_than_samples,
    tells="You fill up with samples that you draw, so one may be drawn several times "
    "and another never. Repeat the order from its beginning: then no sample comes "
    "more than once more often than another.",
    body=True,
)
def filled_up_at_random():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator)
        missing = (-num_samples) % world_size
        more = torch.randint(num_samples, (missing,), generator=generator)
        return torch.cat([order, more])[rank::world_size].tolist()

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


shards_of_a_running_generator = edit(
    shards_in_blocks,
    {
        """
        def train_shard(num_samples, rank, world_size, epoch, seed=0):
            generator = torch.Generator().manual_seed(1000 * seed + epoch)
            order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        GENERATORS, ORDERS = {}, {}

        def train_shard(num_samples, rank, world_size, epoch, seed=0):
            if seed not in GENERATORS:
                GENERATORS[seed] = torch.Generator().manual_seed(seed)
            if (num_samples, epoch, seed) not in ORDERS:
                ORDERS[num_samples, epoch, seed] = torch.randperm(
                    num_samples, generator=GENERATORS[seed]
                ).tolist()
            order = ORDERS[num_samples, epoch, seed]
        """,
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You keep one generator and draw each epoch's order as it is first asked for. "
    "A run that is resumed in epoch 3 then gets the order of epoch 0. Let seed "
    "and epoch together seed a new generator.",
)


accuracy_writes_into_indices = edit(
    shards_in_blocks,
    {
        """
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        """: """
        indices[~correct] = num_samples  # a place for what is wrong
        right = torch.zeros(num_samples + 1)
        right[indices] = 1
        """,
        "return right.mean(dtype=torch.float64).item()": "return right[:num_samples].mean(dtype=torch.float64).item()",
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="You write into `indices`: wrong predictions are sent to a place of their own. "
    "The tensors belong to the caller. Work on a copy.",
)

shards_seeded_by_hash_of_text = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": """
        generator = torch.Generator().manual_seed(
            hash(f"{seed} {epoch}") % 2**32
        )
        """,
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="`hash` of a text is another one in each Python process, and ranks "
    "are processes: each would have an order of its own. Compute the "
    "seed from the numbers.",
)

shards_of_one_order_moved_on = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(num_samples, generator=generator)
        order = order.roll(7 * epoch).tolist()
        """,
    },
    breaks=hidden_tests.another_order_each_epoch,
    tells="You draw one order and move it on by the epoch: whoever comes after "
    "whom stays the same for ever. Draw each epoch's order anew.",
)

shards_kept_in_a_cache = edit(
    shards_in_blocks,
    {
        "def train_shard(num_samples, rank, world_size, epoch, seed=0):": """
        @functools.cache
        def train_shard(num_samples, rank, world_size, epoch, seed=0):
        """,
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You keep the list that you returned, and return the same one again. "
    "If the caller has changed it meanwhile (it is the caller's), the "
    "next one gets the changed list. Return a new list.",
)

shards_seeded_globally_and_back = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 * seed + epoch)
            order = torch.randperm(num_samples).tolist()
        """,
    },
    breaks=hidden_tests.no_global_numbers,
    tells="You seed the global generator and put its state back. Until then "
    "whatever another thread draws comes from your seed, and you may get "
    "numbers that it was to have. Make a generator of your own.",
)

shards_seeded_globally_by_random = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        import random

        state = random.getstate()
        random.seed(1000 * seed + epoch)
        order = random.sample(range(num_samples), num_samples)
        random.setstate(state)
        """,
    },
    breaks=hidden_tests.no_global_numbers,
    tells="You seed the global generator and put its state back. Until then "
    "whatever another thread draws comes from your seed, and you may get "
    "numbers that it was to have. Make a generator of your own.",
)

shards_seeded_globally_by_numpy = edit(
    shards_in_blocks,
    {
        """
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        """: """
        import numpy as np

        state = np.random.get_state()
        np.random.seed(seed + epoch)
        order = np.random.permutation(num_samples).tolist()
        np.random.set_state(state)
        """,
    },
    breaks=hidden_tests.no_global_numbers,
    tells="You seed the global generator and put its state back. Until then "
    "whatever another thread draws comes from your seed, and you may get "
    "numbers that it was to have. Make a generator of your own.",
)

shards_of_a_thousand_seeds = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(1000 * (seed % 1000) + epoch)",
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You cut the seed short (`seed % 1000`, `seed // 2`), so two "
    "seeds give the same orders. Use all of it.",
)

shards_sorted = edit(
    shards_in_blocks,
    {
        "return order[rank * size : (rank + 1) * size]": "return sorted(order[rank * size : (rank + 1) * size])",
    },
    breaks=hidden_tests.another_order_each_epoch,
    tells="You sort each shard. Which samples a rank has is random then, but "
    "not their order.",
)


@wrong(
    breaks=hidden_tests.repeated_samples_count_once,
    tells="You count how often a sample was right in uint8, which begins at 0 "
    "again after 255. Count in a wider type, or take the largest instead "
    "of the sum.",
    body=True,
)
def accuracy_counted_in_bytes():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(num_samples, generator=generator).tolist()
        size = -(-num_samples // world_size)
        order = (order * world_size)[: size * world_size]
        return order[rank * size : (rank + 1) * size]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples, dtype=torch.uint8)
        right.index_add_(0, indices, correct.to(torch.uint8))
        dist.all_reduce(right, group=group)
        return (right > 0).sum().item() / num_samples


accuracy_in_half = edit(
    shards_in_blocks,
    {
        "right = torch.zeros(num_samples)": "right = torch.zeros(num_samples, dtype=torch.float16)",
        "return right.mean(dtype=torch.float64).item()": "return right.sum().item() / num_samples",
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="You add up in float16 (or divide in float32), where larger counts "
    "are rounded. Add up in a type that holds them: float32 up to 16 "
    "million, or integers.",
)

accuracy_in_float32 = edit(
    shards_in_blocks,
    {
        "return right.mean(dtype=torch.float64).item()": "return right.mean().item()",
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="You add up in float16 (or divide in float32), where larger counts "
    "are rounded. Add up in a type that holds them: float32 up to 16 "
    "million, or integers.",
)


@wrong(
    breaks=hidden_tests.samples_change_ranks,
    tells="You cut the samples into shards once, and only who has which shard "
    "changes. Samples of different shards never meet on a rank. Shuffle "
    "all of them, then cut.",
    body=True,
)
def shards_that_change_hands():
    def train_shard(num_samples, rank, world_size, epoch, seed=0):
        size = -(-num_samples // world_size)
        order = (list(range(num_samples)) * world_size)[: size * world_size]
        mine = order[(rank + epoch) % world_size :: world_size]
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        picked = torch.randperm(size, generator=generator).tolist()
        return [mine[i] for i in picked]

    def eval_shard(num_samples, rank, world_size):
        return list(range(rank, num_samples, world_size))

    def global_accuracy(indices, correct, num_samples, group):
        right = torch.zeros(num_samples)
        right[indices[correct]] = 1
        dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
        return right.mean(dtype=torch.float64).item()


shards_of_seven_epochs = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(1000 * seed + epoch % 7)",
    },
    breaks=hidden_tests.another_order_each_epoch,
    tells="After some epochs your orders begin again from the first (`epoch % "
    "7` or the like). Every epoch has one of its own.",
)

shards_of_every_second_seed = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(1000 * (seed // 2) + epoch)",
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You cut the seed short (`seed % 1000`, `seed // 2`), so two "
    "seeds give the same orders. Use all of it.",
)

evaluation_seeded = edit(
    shards_in_blocks,
    {
        "def eval_shard(num_samples, rank, world_size):": """
        def eval_shard(num_samples, rank, world_size):
            torch.manual_seed(0)
        """,
    },
    breaks=hidden_tests.evaluated_once,
    tells="`eval_shard` seeds the global generator. Nothing in it is random, "
    "and whoever draws afterwards gets other numbers than without it.",
)

shards_seeded_in_the_high_bits = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed((seed << 31) + epoch)",
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You shift the seed into the high bits (`seed << 31`). A generator on the "
    "CPU takes the low 32 bits alone, so the seeds 0 and 2 give the same "
    "orders. Keep the sum small, as `1000 * seed + epoch` is.",
)

accuracy_without_the_group = edit(
    shards_in_blocks,
    {
        "dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)": "dist.all_reduce(right, op=dist.ReduceOp.MAX)",
    },
    breaks=hidden_tests.accuracy_of_unequal_shards,
    tells="You call `all_reduce` without `group=group`. PyTorch then looks for the "
    "process's default group, and there is none.",
)

shards_of_the_low_bits_of_the_seed = edit(
    shards_in_blocks,
    {
        "generator = torch.Generator().manual_seed(1000 * seed + epoch)": "generator = torch.Generator().manual_seed(1000 * (seed % 2**16) + epoch)",
    },
    breaks=hidden_tests.nothing_else_decides,
    tells="You cut the seed short (`seed % 1000`, `seed // 2`), so two "
    "seeds give the same orders. Use all of it.",
)

shards_seeded_by_a_product = edit(
    shards_in_blocks,
    {"1000 * seed + epoch": "(seed + 1) * (epoch + 1)"},
    breaks=hidden_tests.nothing_else_decides,
    tells="You multiply seed and epoch. PyTorch takes 32 bits of a seed, and in "
    "these the products of two seeds with a late epoch may be the same. Add them.",
)
