"""What chapter 14 states about several processes, run on the CPU."""

import datetime
import functools
import inspect
import math
import operator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed import constants
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from course_grader.chapter.source import read_chapter

BY_CELL = {
    "same_weights": [
        "At the start rank 0's weights are sent to all. From then on only gradients cross: during `backward()` DDP averages them, and each rank's optimizer makes the same step on the same gradient. No weights are ever copied again.",
        "The first and the last line are rounding. Sum of the losses, times the number of ranks, over the number of *all* samples: the factor undoes the division that DDP will make.",
        "After five steps with momentum they are still the same, bit for bit, and nobody has copied anything:",
    ],
    "hung_rank": [
        "The rank to look at is the one *without a word*: the other one only noticed.",
    ],
    "count_exchanges": [
        "DDP decides in the *forward* pass whether the next `backward()` will exchange, so `no_sync` has to stand around both.",
        "All three have the right gradient: nothing but a count, or the time, shows the difference.",
        "`no_sync` around forward *and* backward of all micro-batches but the last: one exchange per step.",
    ],
    "unused_asserted": [
        "DDP averages gradients. Buffers it does not average: before a forward pass, rank 0's are sent to all, in eval mode and under `no_grad` too.",
        "**Statistics** differ between ranks right after a forward pass.",
        "**Names** begin with `module.`.",
        "**An unused layer** is an error in the *second* step: DDP still waits for its gradient.",
        "**Freezing a wrapped model** is the same accident",
    ],
    "fsdp_tour": [
        "FSDP2 (`fully_shard`) keeps of each parameter only a slice per rank.",
        "FSDP2 holds a slice of weights, gradients and optimizer state per rank, with the same gradient.",
    ],
    "claim_001_38": ["*Correct*: the batch is chunked."],
    "claim_001_39": [
        "Without a GPU it does nothing but put `module.` before the names. The documentation recommends DDP.",
    ],
    "claim_004_19_20": [
        "There is no such step. `DataParallel` copies at the next forward pass, DDP never.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html": [
        "`nn.DataParallel` needs one line, and does four things at *every* forward pass:",
        "What a replica writes into a buffer is lost with it, save on the first GPU, whose replica shares the model's own.",
        "PyTorch's documentation recommends DDP also for a single machine.",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.html": [
        "`init_process_group(..., device_id=device)` ties the process to its GPU: NCCL connects at once, and a `barrier()` does not have to guess the device.",
    ],
    "https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html": [
        "The *flight recorder* keeps the last collectives of each rank: set `TORCH_NCCL_DUMP_ON_TIMEOUT=1` and `TORCH_FR_BUFFER_SIZE=2000`",
    ],
    "https://docs.pytorch.org/docs/stable/elastic/run.html": [
        "`torchrun` **ends the others** as soon as one rank fails;",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html": [
        "`SyncBatchNorm` takes mean and variance over all ranks",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html": [
        "`find_unused_parameters=True` looks for such layers in each step, which costs time. `static_graph=True` looks once, for models that use the same layers always.",
    ],
}

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def on_ranks() -> Any:
    """The chapter's own: ranks as threads, each with a gloo group."""
    chapter = read_chapter(ROOT / "solutions/14_multi_gpu/14_multi_gpu.py")
    names: dict[str, Any] = {}
    for _, source in chapter.setup_source:
        exec(source, names)
    return names["on_ranks"]


def small_model():
    torch.manual_seed(1)
    return nn.Linear(4, 3).double()


def rows_and_classes():
    torch.manual_seed(0)
    return torch.randn(8, 4).double(), torch.randint(3, (8,))


def error_of_mean(sizes, weigh=None):
    X, y = rows_and_classes()
    whole = small_model()
    F.cross_entropy(whole(X), y).backward()
    found = []
    for rows, wanted in zip(X.split(sizes), y.split(sizes), strict=True):
        model = small_model()
        if weigh:
            loss = (
                weigh
                * F.cross_entropy(model(rows), wanted, reduction="sum")
                / 8
            )
        else:
            loss = F.cross_entropy(model(rows), wanted)
        loss.backward()
        found.append(model.weight.grad)
    mean = torch.stack(found).mean(0)
    return ((mean - whole.weight.grad).norm() / whole.weight.grad.norm()).item()


@pytest.mark.parametrize(
    "sizes", [[4, 4], [6, 2], [7, 1], [2, 2, 2, 2], [5, 1, 1, 1]]
)
def test_a_mean_over_ranks(sizes):
    """If the shards are equal, the mean of means is the mean. If not, it is not:

    Unequal shards: sum of the losses × world size / number of all samples.
    """
    equal = len(set(sizes)) == 1
    assert (error_of_mean(sizes) < 1e-12) == equal
    assert error_of_mean(sizes, weigh=len(sizes)) < 1e-12


def test_the_gradients_of_replicas_are_added():
    """The backward pass goes through all replicas, and what arrives is *added* into the model on the first GPU.

    the loss was taken on the whole output, so its mean is in it already.
    """
    X, y = rows_and_classes()
    whole = small_model()
    F.cross_entropy(whole(X), y).backward()
    for count in (2, 3, 4):
        replicas = [small_model() for _ in X.chunk(count)]
        pairs = zip(replicas, X.chunk(count), strict=True)
        out = torch.cat([replica(one) for replica, one in pairs])
        F.cross_entropy(out, y).backward()
        added = sum(replica.weight.grad for replica in replicas)
        torch.testing.assert_close(added, whole.weight.grad)


@pytest.mark.parametrize("batch_size", range(1, 20))
def test_chunks_are_filled_up(batch_size):
    """Chunks are filled up: all but the last have ⌈batch / GPUs⌉ samples. Move the sliders: some GPUs may get little, or nothing.

    The first chunks all have ⌈batch / devices⌉ samples, and the last one has what is left.
    """
    for count in range(1, 9):
        sizes = [len(one) for one in torch.arange(batch_size).chunk(count)]
        full = math.ceil(batch_size / count)
        assert set(sizes[:-1]) <= {full}
        assert 0 < sizes[-1] <= full
        assert sum(sizes) == batch_size
    assert len(torch.arange(6).chunk(4)) == 3


def test_default_timeouts():
    """a rank that waits in vain raises an error (by default only after 10 minutes with NCCL, 30 with gloo)"""
    assert constants.default_pg_timeout == datetime.timedelta(minutes=30)
    nccl = constants.default_pg_nccl_timeout
    assert nccl is None or nccl == datetime.timedelta(minutes=10)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("n", "world_size"), [(12, 3), (14, 4), (5, 2)])
def test_the_sampler(n, world_size, shuffle):
    """`DistributedSampler` permutes all indices with the same seed on every rank. Of n ranks, rank r takes every n-th, from place r on.

    Its order depends on `seed + epoch`, and it learns the epoch only if told: `set_epoch(epoch)` at the start of each.

    where samples do not divide evenly, some come **twice**
    """

    def seen(rank, epoch, seed=0):
        one = DistributedSampler(
            range(n), world_size, rank, shuffle=shuffle, seed=seed
        )
        if epoch is not None:
            one.set_epoch(epoch)
        return list(one)

    for epoch in range(3):
        ranks = [seen(rank, epoch) for rank in range(world_size)]
        order = list(range(n))
        if shuffle:
            generator = torch.Generator().manual_seed(epoch)
            order = torch.randperm(n, generator=generator).tolist()
        per_rank = math.ceil(n / world_size)
        filled = (order + order)[: per_rank * world_size]
        assert ranks == [filled[r::world_size] for r in range(world_size)]
        every = functools.reduce(operator.iadd, ranks, [])
        assert set(every) == set(range(n))
        assert len(every) - n == per_rank * world_size - n
    assert seen(0, 3) == seen(0, 1, seed=2)
    assert seen(0, None) == seen(0, None) == seen(0, 0)
    if shuffle:
        assert seen(0, 0) != seen(0, 1)


def test_shuffle_is_refused():
    """`DataLoader(sampler=..., shuffle=True)` is refused with a ValueError: the sampler shuffles."""
    sampler = DistributedSampler(range(12), 3, 0)
    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader(range(12), shuffle=True, sampler=sampler)


@pytest.mark.parametrize("before", ["nothing", "no_grad", "no_sync", "grad"])
@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.filterwarnings("ignore:.*broadcast_buffers:FutureWarning")
@pytest.mark.parametrize("sends", [True, False])
def test_when_buffers_are_sent(on_ranks, before, mode, sends):
    """(Not if the pass before it was one without gradients or within `no_sync()`, and never with `broadcast_buffers=False`."""

    def one_pass(rank, group):
        norm = nn.BatchNorm1d(2)
        ddp = DistributedDataParallel(
            norm, process_group=group, broadcast_buffers=sends
        )
        x = torch.arange(8.0).view(4, 2)
        if before == "no_grad":
            with torch.no_grad():
                ddp.eval()(x)
        elif before == "no_sync":
            with ddp.no_sync():
                ddp.eval()(x).sum().backward()
        elif before == "grad":
            ddp.eval()(x).sum().backward()
        norm.running_mean.fill_(float(rank))
        norm.momentum = 0.0
        ddp.train(mode == "train")
        with torch.no_grad():
            ddp(x)
        return norm.running_mean.tolist()

    first, second = on_ranks(one_pass, 2)
    assert first == [0.0, 0.0]
    sent = sends and before in ("nothing", "grad")
    assert second == ([0.0, 0.0] if sent else [1.0, 1.0])


@pytest.mark.filterwarnings("ignore:.*broadcast_buffers:FutureWarning")
def test_a_newer_argument(on_ranks):
    """Newer versions want `forward_sync_buffers=False`, which sends them once, at the start.)"""
    known = inspect.signature(DistributedDataParallel).parameters
    if "forward_sync_buffers" not in known:
        pytest.skip("this torch is older")

    def after(rank, group, **options):
        norm = nn.BatchNorm1d(1, momentum=0.0)
        norm.running_mean.fill_(float(rank))
        ddp = DistributedDataParallel(norm, process_group=group, **options)
        at_start = norm.running_mean.item()
        norm.running_mean.fill_(float(rank))
        ddp(torch.randn(3, 1))
        return at_start, norm.running_mean.item()

    old = on_ranks(lambda r, g: after(r, g, broadcast_buffers=False), 2)
    new = on_ranks(lambda r, g: after(r, g, forward_sync_buffers=False), 2)
    assert old == [(0.0, 0.0), (1.0, 1.0)]
    assert new == [(0.0, 0.0), (0.0, 1.0)]


def test_all_reduce(on_ranks):
    """`all_reduce` adds up (or averages, or takes the largest of) a tensor of each rank, and leaves the result on all of them.

    `all_reduce` works in place

    Each puts its own number in a tensor, and `dist.all_reduce(tensor, group=group)` adds them up on every rank.
    """

    def reduce(rank, group):
        added, largest = torch.tensor([rank + 1.0]), torch.tensor([rank + 1.0])
        dist.all_reduce(added, group=group)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
        return added.item(), largest.item()

    assert on_ranks(reduce, 3) == [(6.0, 3.0)] * 3


def test_unused_and_frozen(on_ranks):
    """The *first* step is wrong and says nothing: gradients that share a bucket with the missing one are not exchanged, and the ranks part.

    Better: leave it out, or freeze it *before* the model is wrapped.
    """

    def step(rank, group, freeze=False):
        torch.manual_seed(0)
        net = nn.ModuleDict(
            {"used": nn.Linear(2, 1), "unused": nn.Linear(2, 2)}
        )
        net["unused"].requires_grad_(not freeze)
        net.forward = lambda x: net["used"](x)
        ddp = DistributedDataParallel(net, process_group=group)
        said = []
        for _ in range(2):
            try:
                ddp(torch.full((1, 2), rank + 1.0)).sum().backward()
                said.append(net["used"].weight.grad.tolist())
                net.zero_grad()
            except RuntimeError:
                said.append("error")
        return said

    first, second = on_ranks(step, 2)
    assert first[0] != second[0]
    assert first[1] == second[1] == "error"
    first, second = on_ranks(lambda r, g: step(r, g, freeze=True), 2)
    assert first == second == [[[1.5, 1.5]]] * 2


def test_the_norm_of_several_ranks(one_process):
    """in a process group PyTorch refuses it on a CPU.

    `convert_sync_batchnorm` replaces every batch norm of a model, before it is wrapped.
    """
    net = nn.Sequential(
        nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(2)), nn.ReLU()
    )
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    found = [type(one).__name__ for one in net.modules()]
    assert found.count("SyncBatchNorm") == 2
    assert not any(name.startswith("BatchNorm") for name in found)
    with pytest.raises(ValueError, match="GPU"):
        net[0](torch.randn(3, 2))


@pytest.fixture
def one_process(tmp_path: Path):
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def test_fully_shard(one_process):
    """Parameters become `DTensor`s: `to_local()` is the rank's slice, `full_tensor()` the whole. There is no wrapper, and so no prefix."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    names = list(net.state_dict())
    same = fully_shard(net, mesh=init_device_mesh("cpu", (1,)))
    assert same is net
    assert list(net.state_dict()) == names
    weight = net[0].weight
    assert isinstance(weight, DTensor)
    assert torch.equal(weight.to_local(), weight.full_tensor())
    net.set_requires_gradient_sync(False)


def test_low_bits_of_a_seed():
    """A generator on the CPU takes the low 32 bits of its seed alone: as `seed << 31`, the seeds 0 and 2 are one."""

    def order(seed: int) -> list[int]:
        own = torch.Generator().manual_seed(seed)
        return torch.randperm(99, generator=own).tolist()

    assert order(0 << 31) == order(2 << 31)
    assert order(5) == order(5 + 2**32)
    assert order(0) != order(1 << 31)
