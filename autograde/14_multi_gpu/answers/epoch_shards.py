"""Answers to `epoch_shards` of chapter 14."""

import math

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from course_grader.bank import accepted, wrong

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
