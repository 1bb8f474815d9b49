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
