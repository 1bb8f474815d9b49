"""What chapter 14 states about several processes, run on the CPU."""

import contextlib
import copy
import datetime
import functools
import inspect
import math
import operator
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed import constants
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from course_grader.chapter.source import read_chapter

BY_CELL = {
    "same_weights": [
        "At the start rank 0's weights are sent to all. From then on only gradients cross (and buffers, section 7): during `backward()` DDP averages them, and each rank's optimizer makes the same step on the same gradient.",
        "The first and the last line are rounding. Sum of the losses, times the number of ranks, over the number of *all* samples: the factor undoes the division that DDP will make.",
        "After five steps with momentum they are still the same, bit for bit, and nobody has copied anything:",
    ],
    "hung_rank": [
        "with gloo a rank that waits in vain raises an error;",
        "The rank to look at is the one *without a word*: the other one only noticed.",
        "A timeout of a few times the longest step, saving included, ends a hang; with gloo look at the rank without a word.",
    ],
    "count_exchanges": [
        "All three have the right gradient: nothing but a count, or the time, shows the difference.",
        "`no_sync` around forward *and* backward of all micro-batches but the last (with `static_graph=True`, from the second step on): one exchange per step.",
    ],
    "unused_asserted": [
        "DDP averages gradients. Buffers it does not average: before a forward pass, rank 0's are sent to all, in eval mode and under `no_grad` too.",
        "**Statistics** differ between ranks right after a forward pass.",
        "**Names** begin with `module.`.",
        "**A layer that no rank uses** is an error in the *second* step: DDP still waits for its gradient.",
        "**Freezing a part of a wrapped model** is the same accident",
    ],
    "fsdp_tour": [
        "FSDP2 (`fully_shard`) keeps of each parameter only a slice per rank, of the rank's own start: nothing is sent, so load or seed all ranks alike.",
        "FSDP2 holds a slice of weights, gradients and optimizer state per rank, with the same gradient, of a start that you make alike.",
        "Same gradient; each rank holds its slice of weights, gradients and momentum.",
    ],
    "claim_001_38": [
        "*Correct*: the batch is chunked. It need not come out even,",
    ],
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
        "What a replica writes into a buffer is lost with it, save on the first GPU, whose replica shares the model's own. With batch normalization that means: the running statistics are those of the *first chunk* alone.",
        "The price is elsewhere: one Python process for all GPUs, a copy of the model per forward pass, and a first GPU that holds outputs and loss besides.",
        "PyTorch's documentation recommends DDP also for a single machine.",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.html": [
        "`init_process_group(..., device_id=device)` ties the process to its GPU: NCCL connects at once, and a `barrier()` does not have to guess the device.",
    ],
    "https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html": [
        "The *flight recorder* keeps the last collectives of each rank: set `TORCH_NCCL_DUMP_ON_TIMEOUT=1` and `TORCH_FR_BUFFER_SIZE=2000`",
        "After a timeout each rank writes a file, and `torchfrtrace` compares the files: it names the call that one rank did not make.",
    ],
    "https://docs.pytorch.org/docs/stable/elastic/run.html": [
        "`torchrun` **ends the others** as soon as one rank fails;",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html": [
        "Gradients are averaged *and* cut (reduce-scatter).",
        "What does not get smaller are activations (chapter 11) and the largest part that `fully_shard` was called on, which has to be whole while it runs.",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.checkpoint.html": [
        "Saving many gigabytes is the business of `torch.distributed.checkpoint`, where each rank writes its slices (chapter 12).",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html": [
        "`SyncBatchNorm` takes mean and variance over all ranks",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html": [
        "`find_unused_parameters=True` looks for such layers in each step, which costs time.",
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

    Unequal shards: sum of the losses × world size / number of all that they are summed over (samples, or labels that count).
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
    """a group has a **timeout** (by default 10 minutes where the backend is named "nccl", else 30)

    NCCL ends its process, and no `except` sees it;
    """
    document = " ".join(dist.init_process_group.__doc__.split())
    assert "aborted asynchronously and the process will crash" in document
    assert constants.default_pg_timeout == datetime.timedelta(minutes=30)
    nccl = constants.default_pg_nccl_timeout
    assert nccl is None or nccl == datetime.timedelta(minutes=10)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("n", "world_size"), [(12, 3), (14, 4), (5, 2)])
def test_the_sampler(n, world_size, shuffle):
    """`DistributedSampler` permutes all indices with the same seed on every rank. Of n ranks, rank r takes every n-th, from place r on.

    Its order depends on `seed + epoch`, and it learns the epoch only if told: `set_epoch(epoch)` at the start of each.

    where samples do not divide evenly, some come **twice**; the figure marks them with a ring. With `drop_last=True` some are left out instead.

    All ranks draw the *same* permutation of all samples, from a `torch.Generator` of their own, seeded by `seed` and `epoch`, and then each takes its part.
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
        left = [
            i
            for rank in range(world_size)
            for i in DistributedSampler(
                range(n), world_size, rank, shuffle=shuffle, drop_last=True
            )
        ]
        assert len(left) == len(set(left)) == n // world_size * world_size
    assert seen(0, 3) == seen(0, 1, seed=2)
    assert seen(0, None) == seen(0, None) == seen(0, 0)
    if shuffle:
        assert seen(0, 0) != seen(0, 1)


def test_shuffle_is_refused():
    """`DataLoader(sampler=..., shuffle=True)` is refused with a ValueError: the sampler shuffles."""
    sampler = DistributedSampler(range(12), 3, 0)
    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader(range(12), shuffle=True, sampler=sampler)


@pytest.mark.parametrize("quiet", ["", "forward", "backward", "both"])
def test_where_no_sync_stands(on_ranks, quiet):
    """DDP decides in the *forward* pass whether the next `backward()` will exchange: around `backward()` alone, `no_sync` does nothing."""
    never = contextlib.nullcontext

    def exchanges(rank, group):
        ddp = DistributedDataParallel(nn.Linear(3, 2), process_group=group)
        crossed = []

        def count(group, bucket):
            crossed.append(bucket.index())
            return default_hooks.allreduce_hook(group, bucket)

        ddp.register_comm_hook(group, count)
        for micro_batch in range(4):
            silent = ddp.no_sync if micro_batch < 3 else never
            with silent() if quiet in ("forward", "both") else never():
                out = ddp(torch.randn(5, 3)).sum()
            with silent() if quiet in ("backward", "both") else never():
                out.backward()
        return len(crossed)

    wanted = 1 if quiet in ("forward", "both") else 4
    assert list(on_ranks(exchanges, 2)) == [wanted] * 2


@pytest.mark.slow
def test_what_torchrun_tells(tmp_path):
    """`torchrun` starts the processes and tells each its `RANK`, the `WORLD_SIZE` and its `LOCAL_RANK`. On several machines `LOCAL_RANK` is the number of its GPU, not `RANK`."""
    (tmp_path / "told.py").write_text(
        "import os\n"
        "told = [os.environ[n] for n in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')]\n"
        "open('rank' + told[0], 'w').write(' '.join(told))\n"
    )
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
    command += ["--nproc-per-node=2", "--master-addr=127.0.0.1"]
    machines = [  # two, as torchrun sees it
        subprocess.Popen(
            [
                *command,
                f"--node-rank={node}",
                f"--master-port={port}",
                "told.py",
            ],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        for node in range(2)
    ]
    assert [one.wait(timeout=120) for one in machines] == [0, 0]
    told = [(tmp_path / f"rank{rank}").read_text() for rank in range(4)]
    assert told == ["0 0 4", "1 1 4", "2 0 4", "3 1 4"]


@pytest.mark.parametrize(("batch", "even"), [(8, True), (10, False)])
def test_the_loss_on_the_whole_output(batch, even):
    """A sum, and right: the loss was taken on the whole output, so its mean is in it already. No sample can count more than another. (A model that returns its loss returns one for each chunk: their mean is a mean of means again.)"""
    model = nn.Linear(4, 3).double()
    X, y = torch.randn(batch, 4).double(), torch.randint(3, (batch,))

    def gradient(loss_of):
        replicas = [copy.deepcopy(model) for _ in X.chunk(4)]
        loss_of(replicas).backward()
        return sum(replica.weight.grad for replica in replicas)

    def on_the_outputs(replicas):
        pairs = zip(replicas, X.chunk(4), strict=True)
        return F.cross_entropy(torch.cat([one(x) for one, x in pairs]), y)

    def in_the_model(replicas):
        parts = zip(replicas, X.chunk(4), y.chunk(4), strict=True)
        return torch.stack(
            [F.cross_entropy(one(x), t) for one, x, t in parts]
        ).mean()

    F.cross_entropy(model(X), y).backward()
    torch.testing.assert_close(gradient(on_the_outputs), model.weight.grad)
    close = torch.allclose(gradient(in_the_model), model.weight.grad)
    assert close == even


@pytest.mark.parametrize("agreed", [True, False])
def test_a_rate_for_each_rank(on_ranks, agreed):
    """No weights are ever copied again: if each rank gives a `ReduceLROnPlateau` its own metric, rates differ and the weights part, without a word."""
    start, inputs = nn.Linear(2, 1), torch.randn(2, 4, 3, 2)

    def weights(rank, group):
        ddp = DistributedDataParallel(copy.deepcopy(start), process_group=group)
        sgd = torch.optim.SGD(ddp.parameters(), lr=0.1)
        plan = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, patience=0)
        for step, rows in enumerate(inputs[rank]):
            sgd.zero_grad()
            ddp(rows).square().mean().backward()
            sgd.step()
            metric = torch.tensor([1.0 - 0.1 * step, 1.0 + 0.1 * step][rank])
            if agreed:
                dist.all_reduce(metric, group=group)
            plan.step(metric.item())
        return ddp.module.weight.detach().clone(), plan.get_last_lr()

    (weights0, rates0), (weights1, rates1) = on_ranks(weights, 2)
    assert (rates0 == rates1) == agreed
    assert torch.equal(weights0, weights1) == agreed


@pytest.mark.parametrize("order", ["fbfb", "ffb", "ffbb", "fbb"])
def test_two_backward_passes(on_ranks, order):
    """(Only the next `backward()` exchanges: if two follow, after one forward pass or after two, the gradient of the second stays on its rank, often without an error. Add the losses and go backward once.)"""
    start = nn.Linear(2, 1).double()
    inputs = torch.randn(2, 6, 2).double()  # a row of them for each rank

    def gradient(rank, group):
        ddp = DistributedDataParallel(copy.deepcopy(start), process_group=group)

        def loss(rows):
            return ddp(rows).square().mean()

        first, second = inputs[rank].split(3)
        if order == "fbfb":
            loss(first).backward()
            loss(second).backward()
        elif order == "ffb":
            (loss(first) + loss(second)).backward()
        elif order == "ffbb":
            losses = loss(first), loss(second)
            for one in losses:
                one.backward()
        else:
            for one in ddp(inputs[rank]).square().split(3):
                one.mean().backward(retain_graph=True)
        return ddp.module.weight.grad.clone()

    alone = copy.deepcopy(start)
    alone(inputs.flatten(0, 1)).square().mean().mul(2).backward()
    ranks = list(on_ranks(gradient, 2))
    averaged = order in ("fbfb", "ffb")
    assert torch.equal(*ranks) == averaged
    for found in ranks:
        assert torch.allclose(found, alone.weight.grad) == averaged


@pytest.mark.parametrize("unused", [False, True])
def test_two_losses_of_two_heads(on_ranks, unused):
    """often without an error. Add the losses and go backward once.)"""

    class TwoHeads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(2, 2)
            self.heads = nn.ModuleList(nn.Linear(2, 1) for _ in range(2))

        def forward(self, x):
            x = self.body(x)
            return [head(x).mean() for head in self.heads]

    start = TwoHeads()

    def outcome(rank, group, together):
        ddp = DistributedDataParallel(
            copy.deepcopy(start),
            process_group=group,
            find_unused_parameters=unused,
        )
        losses = ddp(torch.full((1, 2), rank + 1.0))
        try:
            for loss in [sum(losses)] if together else losses:
                loss.backward(retain_graph=True)
        except RuntimeError as error:
            return str(error)
        return ddp.module.body.weight.grad.tolist()

    for together in (True, False):
        one, other = on_ranks(functools.partial(outcome, together=together), 2)
        if together or unused:
            assert (one == other) == together
        else:
            assert "ready only once" in one
            assert "ready only once" in other


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

    def average(rank, group):
        averaged = torch.tensor([rank + 1.0])
        dist.all_reduce(averaged, op=dist.ReduceOp.AVG, group=group)
        return averaged.item()

    if torch.__version__ >= (2, 13):  # gloo may refuse it in older ones
        assert on_ranks(average, 3) == [2.0] * 3


def test_unused_and_frozen(on_ranks):
    """Better: leave it out, or freeze it *before* the model is wrapped.

    `static_graph=True` looks once, for models that use the same layers always
    """

    def step(rank, group, freeze=False, **options):
        torch.manual_seed(0)
        net = nn.ModuleDict(
            {"used": nn.Linear(2, 1), "unused": nn.Linear(2, 2)}
        )
        net["unused"].requires_grad_(not freeze)
        net.forward = lambda x: net["used"](x)
        ddp = DistributedDataParallel(net, process_group=group, **options)
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
    for name in ("static_graph", "find_unused_parameters"):
        options = {name: True}
        both = on_ranks(lambda r, g, set_=options: step(r, g, **set_), 2)
        assert both == [[[[1.5, 1.5]]] * 2] * 2


def test_a_layer_that_some_ranks_use(on_ranks):
    """Where only *some* ranks use a layer, these wait in their first step already, until the others end in the error or the timeout is over."""

    def step(rank, group, ended, wait_s, **options):
        torch.manual_seed(0)
        net = nn.ModuleDict({"all": nn.Linear(2, 2), "one": nn.Linear(2, 2)})
        net.forward = lambda x: (
            net["one"](net["all"](x)) if rank == 0 else net["all"](x)
        )
        ddp = DistributedDataParallel(net, process_group=group, **options)
        try:
            ddp(torch.full((1, 2), rank + 1.0)).sum().backward()
        except RuntimeError:  # the other rank has left
            return False
        ended[rank].set()
        # the rank that is through stays, and sees whether the other gets there
        both = ended[1 - rank].wait(wait_s)
        if not both:
            with pytest.raises(RuntimeError, match="finished reduction"):
                ddp(torch.ones(1, 2))
        return both

    for options, both_end, wait_s in (
        ({}, False, 1),
        ({"find_unused_parameters": True}, True, 60),
    ):
        ended = threading.Event(), threading.Event()
        told = on_ranks(
            lambda r, g, e=ended, s=wait_s, o=options: step(r, g, e, s, **o), 2
        )
        assert told == [both_end, both_end]
        assert ended[1].is_set()


def test_a_static_graph_and_no_sync(on_ranks):
    """its first backward pass must not stand in `no_sync()`."""

    def windows(rank, group, with_exchange, **options):
        net = nn.Linear(2, 1)
        nn.init.ones_(net.weight)
        nn.init.ones_(net.bias)
        ddp = DistributedDataParallel(net, process_group=group, **options)
        if with_exchange:
            ddp(torch.ones(1, 2)).sum().backward()
        found = []
        for _ in range(3):
            net.zero_grad()
            for i in range(3):
                last = i == 2
                with contextlib.nullcontext() if last else ddp.no_sync():
                    x = torch.full((1, 2), rank + i + 1.0)
                    ddp(x).square().sum().backward()
            found.append(net.weight.grad.tolist())
        return found

    def static(rank, group, with_exchange):
        return windows(rank, group, with_exchange, static_graph=True)

    plain, other = on_ranks(lambda r, g: windows(r, g, False), 2)
    assert plain == other
    with pytest.raises(RuntimeError, match="expect_autograd_hooks_"):
        on_ranks(lambda r, g: static(r, g, False), 2)
    assert on_ranks(lambda r, g: static(r, g, True), 2) == [plain, plain]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("unused_first", [True, False])
def test_the_first_step_of_an_unused_layer(on_ranks, unused_first, dtype):
    """The *first* step is wrong and says nothing: by default no gradient is averaged, not even those of the other layers, and the ranks part."""

    def gradients(rank, group, whole):
        torch.manual_seed(0)
        unused = {} if whole else {"unused": nn.Linear(2, 2).to(dtype)}
        used = {f"used {i}": nn.Linear(50, 50) for i in range(4)}
        parts = unused | used if unused_first else used | unused
        net = nn.ModuleDict(parts)
        layers = [net[name] for name in used]
        net.forward = lambda x: nn.Sequential(*layers)(x)
        # each layer has more than fits into one bucket
        ddp = DistributedDataParallel(
            net, process_group=group, bucket_cap_mb=0.001
        )
        ddp(torch.full((2, 50), rank + 1.0)).square().sum().backward()
        return {
            name: p.grad
            for name, p in net.named_parameters()
            if name.startswith("used")
        }

    for whole in (True, False):
        first, second = on_ranks(
            lambda r, g, whole=whole: gradients(r, g, whole), 2
        )
        assert len(first) == 8
        for name, gradient in first.items():
            assert torch.equal(gradient, second[name]) == whole


def test_the_norm_of_several_ranks(one_process):
    """after `init_process_group` PyTorch refuses to train it on a CPU,

    `convert_sync_batchnorm` replaces every batch norm of a model, before it is wrapped (where one stands twice in a module, only the first).
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
    with pytest.raises(ValueError, match="GPU"):
        DistributedDataParallel(net)
    assert net[0].eval()(torch.randn(3, 2)).shape == (3, 2)
    norm = nn.BatchNorm1d(2)
    twice = nn.Sequential(norm, nn.ReLU(), norm)
    twice = nn.SyncBatchNorm.convert_sync_batchnorm(twice)
    assert isinstance(twice[0], nn.SyncBatchNorm)
    assert twice[2] is norm


def test_the_norm_without_a_default_group(on_ranks):
    """and without that it is a plain batch norm there."""

    def mean(rank, group):
        norm = nn.SyncBatchNorm(1, process_group=group, momentum=1.0)
        norm(torch.tensor([[1.0], [3.0]]) * (rank + 1))
        return norm.running_mean.item()

    assert on_ranks(mean, 2) == [2.0, 4.0]


def test_other_dtypes_do_not_wait(on_ranks):
    """With gloo, other shapes or dtypes need not wait. They give "Connection closed by peer", wrong numbers, or the end of the process."""

    def summed(rank, group):
        mine = torch.ones(2, dtype=torch.int32 if rank else torch.float32)
        dist.all_reduce(mine, group=group)
        return mine.tolist()

    assert [2, 2] not in on_ranks(summed, 2)


@pytest.fixture
def one_process(tmp_path: Path):
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def test_fully_shard(one_process):
    """Parameters become `DTensor`s: `to_local()` is the rank's slice, `full_tensor()` the whole, for which all ranks must call it. Make the optimizer right after `fully_shard`, before a forward pass: an older one holds the old parameters and trains nothing, without a word. There is no wrapper, and so no prefix.

    Clipping works as before, since the norm of DTensors is taken over all ranks (chapter 08); it is a DTensor, too: log its `.item()`.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    names = list(net.state_dict())
    early = torch.optim.SGD(net.parameters(), lr=0.1)
    same = fully_shard(net, mesh=init_device_mesh("cpu", (1,)))
    assert same is net
    assert list(net.state_dict()) == names
    weight = net[0].weight
    assert isinstance(weight, DTensor)
    assert torch.equal(weight.to_local(), weight.full_tensor())
    late = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(4, 2)).sum().backward()
    for one, trains in ((early, False), (late, True)):
        before = weight.full_tensor().detach().clone()
        one.step()
        assert torch.equal(weight.full_tensor(), before) == (not trains)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    assert isinstance(norm, DTensor)
    assert isinstance(norm.item(), float)
    with pytest.raises(TypeError, match="format"):
        f"{norm:.3f}"
    with torch.no_grad():
        net(torch.ones(4, 2))
    gathered = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(4, 2)).sum().backward()
    before = weight.full_tensor().detach().clone()
    gathered.step()
    assert torch.equal(weight.full_tensor(), before)
    net.set_requires_gradient_sync(False)


def test_what_the_outermost_call_keeps(one_process):
    """Before a layer runs, its slices are gathered; afterwards they are let go (by default those of the outermost call only after the backward pass, or by `reshard()`: call it if you evaluate between `backward()` and `step()`)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    mesh = init_device_mesh("cpu", (1,))
    fully_shard(net[0], mesh=mesh)
    fully_shard(net, mesh=mesh)

    def cut():
        return [isinstance(one.weight, DTensor) for one in net]

    with torch.no_grad():
        net(torch.ones(2, 4))
    assert cut() == [True, False]
    net.reshard()
    assert cut() == [True, True]
    net(torch.ones(2, 4)).sum().backward()
    assert cut() == [True, True]

    net = fully_shard(nn.Linear(4, 3), mesh=mesh)
    sgd = torch.optim.SGD(net.parameters(), lr=1.0)
    for cut_again in (True, False):
        net(torch.ones(2, 4)).sum().backward()
        with torch.no_grad():
            before = net(torch.ones(2, 4))
        if cut_again:
            net.reshard()
        sgd.step()
        with torch.no_grad():
            seen = not torch.equal(net(torch.ones(2, 4)), before)
        assert seen == cut_again
        net.reshard()


def test_a_switch_of_fsdp(one_process):
    """FSDP2 (section 8) has a switch in place of the context manager: `model.set_requires_gradient_sync(False)`."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    net = fully_shard(nn.Linear(2, 3), mesh=init_device_mesh("cpu", (1,)))
    for part in (1, 2, 3):
        net.set_requires_gradient_sync(part == 3)
        net(torch.ones(1, 2)).sum().backward()
        # only what has crossed stands in the slices
        assert (net.weight.grad is None) == (part < 3)
    assert net.weight.grad.full_tensor().eq(3).all()


def test_low_bits_of_a_seed():
    """A generator on the CPU takes the low 32 bits of its seed alone: as `seed << 31`, the seeds 0 and 2 are one."""

    def order(seed: int) -> list[int]:
        own = torch.Generator().manual_seed(seed)
        return torch.randperm(99, generator=own).tolist()

    assert order(0 << 31) == order(2 << 31)
    assert order(5) == order(5 + 2**32)
    assert order(0) != order(1 << 31)


@pytest.mark.parametrize("sizes", [[3, 3], [5, 1], [4, 1, 1]])
@pytest.mark.filterwarnings("error::UserWarning")
def test_ddp_takes_the_mean(on_ranks, sizes):
    """DDP takes the mean over ranks of their gradients. Each rank's loss is a mean over its own samples.

    Nothing warns. The loss falls all the same, only towards somewhere else: samples on a rank with few of them count more.

    It *averages* over ranks: it adds and divides by their number. If each rank's loss is its sum of losses, times the number of ranks, divided by the number of all samples, the average is what is wanted.
    """
    X = torch.diag(torch.arange(1.0, 7)).double()  # one weight per sample

    def gradient(rank, group, summed):
        line = nn.Linear(6, 1, bias=False).double()
        ddp = DistributedDataParallel(line, process_group=group)
        losses = ddp(X.split(sizes)[rank])
        loss = losses.sum() * len(sizes) / 6 if summed else losses.mean()
        loss.backward()
        return line.weight.grad[0] / X.diag()

    repaired = on_ranks(lambda r, g: gradient(r, g, True), len(sizes))
    plain = on_ranks(lambda r, g: gradient(r, g, False), len(sizes))
    fair = torch.full((6,), 1 / 6).double()
    each = torch.cat([fair.new_full((n,), 1 / n) for n in sizes]) / len(sizes)
    for rank in range(len(sizes)):
        torch.testing.assert_close(repaired[rank], fair)
        torch.testing.assert_close(plain[rank], each)
    assert torch.allclose(each, fair) == (len(set(sizes)) == 1)


def test_where_shards_are_unequal():
    """It happens where the last batch is short, where sequences are of unequal length and losses are means over tokens, and where some labels are ignored."""
    logits, classes = torch.randn(8, 3).double(), torch.randint(3, (8,))
    for ignored in ([], [0], [0, 4]):
        wanted = classes.clone()
        wanted[ignored] = -100
        whole = F.cross_entropy(logits, wanted)
        halves = zip(logits.chunk(2), wanted.chunk(2), strict=True)
        means = sum(F.cross_entropy(*half) for half in halves) / 2
        assert torch.allclose(means, whole) == (len(ignored) != 1)


def test_one_start(on_ranks):
    """Each rank had a seed of its own above, so each model started elsewhere. DDP sent rank 0's weights to all.

    DDP builds one per process, and sends rank 0's weights once.
    """

    def weights(rank, group):
        line = nn.Linear(2, 1)
        with torch.no_grad():
            line.weight.fill_(rank + 1)
        ddp = DistributedDataParallel(line, process_group=group)
        at_start = line.weight.tolist()
        with torch.no_grad():
            line.weight.fill_(rank + 1)
        ddp(torch.ones(1, 2)).sum().backward()
        return at_start, line.weight.tolist()

    once = [[1.0, 1.0]]
    assert on_ranks(weights, 2) == [(once, once), (once, [[2.0, 2.0]])]


def test_a_rank_that_leaves(on_ranks):
    """A rank that runs out of memory leaves; the others wait in their next collective.

    The wrapper sends buffers in eval mode too (section 7), and where one rank has no batch others (by gloo not all) wait for it until the timeout.

    so no collective may happen within a batch: call `ddp.module(x)` and not `ddp(x)`.

    With batch norm send rank 0's buffers to all before (`dist.broadcast`): after training each rank has its own.
    """

    def evaluate(rank, group, inside):
        norm = nn.BatchNorm1d(2)
        ddp = DistributedDataParallel(norm, process_group=group).eval()
        if rank == group.size() - 1:
            return "no batch"  # its group ends here, so nobody waits long
        with torch.no_grad():
            try:
                (ddp.module if inside else ddp)(torch.ones(3, 2))
            except RuntimeError:
                return "waited in vain"
        return "evaluated"

    alone = on_ranks(lambda r, g: evaluate(r, g, True), 2)
    together = on_ranks(lambda r, g: evaluate(r, g, False), 2)
    assert alone == ["evaluated", "no batch"]
    assert together == ["waited in vain", "no batch"]

    def statistics(rank, group):
        norm = nn.BatchNorm1d(2)
        ddp = DistributedDataParallel(norm, process_group=group)
        ddp(torch.randn(8, 2) + rank)
        own = norm.running_mean.tolist()
        for buffer in norm.buffers():
            dist.broadcast(buffer, group_src=0, group=group)
        return own, norm.running_mean.tolist()

    (own, sent), (other, also_sent) = on_ranks(statistics, 2)
    assert own != other
    assert sent == also_sent == own


def test_the_signal_of_torchrun():
    """(Signal 15 is how `torchrun` ends the others;"""
    api = pytest.importorskip("torch.distributed.elastic.multiprocessing.api")
    assert api._get_default_signal() == 15


@pytest.mark.parametrize("bad", [(), (1,), (0, 1)])
def test_to_agree_first(on_ranks, bad):
    """All ranks have to take the same way, so let them first agree (`all_reduce` a flag with `ReduceOp.MAX`)."""

    def skips(rank, group):
        loss = torch.tensor(math.nan if rank in bad else 1.0)
        flag = loss.isnan().float()
        dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=group)
        return bool(flag)

    assert on_ranks(skips, 2) == [bool(bad)] * 2


def test_a_step_that_one_rank_leaves_out(on_ranks):
    """The others may wait at the end of the epoch only: until then the mean is over gradients of different steps, and nobody says so."""

    def train(rank, group):
        line = nn.Linear(1, 1, bias=False)
        ddp = DistributedDataParallel(line, process_group=group)
        means = []
        for step in range(4):
            loss = ddp(torch.full((1, 1), 10.0**step)).sum()
            if rank == 1 and step == 1:
                continue
            ddp.zero_grad()
            try:
                loss.backward()
            except RuntimeError:  # rank 1 has ended
                return [*means, "waited in vain"]
            means.append(line.weight.grad.item())
        return means

    first, second = on_ranks(train, 2)
    assert second == [1.0, 55.0, 550.0]
    assert first == [*second, "waited in vain"]


@pytest.mark.parametrize("tidy", [True, False])
def test_how_a_rank_ends(tidy):
    """Ranks read from a pipe that it holds open, and end when it is closed: after the deadline, after the end of `torchrun`, or because the notebook itself was ended;

    a rank whose result is written **leaves at once**, without the tidying up of Python and its libraries, which may wait for threads that wait for others.
    """
    leave = "sys.exit(3)" if tidy else "os._exit(3)"
    code = f"""if True:
        import atexit, os, sys
        atexit.register(print, "tidied up")
        sys.stdin.buffer.read()
        {leave}"""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.poll() is None
    said, _ = process.communicate()  # closes the pipe
    assert process.returncode == 3
    assert (b"tidied up" in said) == tidy


@pytest.mark.parametrize("bias", [True, False])
def test_the_size_of_the_measured_model(bias):
    """a model of 2.1 million weights (8.4 MB of gradients), 64 rows per rank, two ranks:"""
    model = nn.Sequential(
        nn.Linear(512, 2048, bias), nn.Linear(2048, 512, bias)
    )
    weights = sum(p.numel() for p in model.parameters())
    assert round(weights / 1e6, 1) == 2.1
    assert round(4 * weights / 1e6, 1) == 8.4


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_the_batch_size_is_of_one_rank(world_size):
    """Under DDP the loader's `batch_size` is that of *one rank*: the effective batch is that times the world size (times the micro-batches). The sampler gives each rank its share."""
    loaders = [
        DataLoader(
            range(48),
            batch_size=6,
            sampler=DistributedSampler(range(48), world_size, rank),
        )
        for rank in range(world_size)
    ]
    assert all(len(one) == 48 // (6 * world_size) for one in loaders)
    step = torch.cat([next(iter(one)) for one in loaders])
    assert len(set(step.tolist())) == 6 * world_size


def test_metrics_of_several_ranks():
    """In a metric they are wrong, and the mean over ranks of their accuracies is a mean of means again. To evaluate, deal samples out without filling up, add up counts, and divide once.

    Samples that fill up count in no metric; add up counts, then divide.
    """
    right = torch.tensor([True, False, True, True, False])
    filled = [right[[*DistributedSampler(range(5), 2, r)]] for r in (0, 1)]
    dealt = [right[rank::2] for rank in (0, 1)]
    whole = right.double().mean().item()
    added = sum(one.sum().item() for one in filled) / 6
    assert added != pytest.approx(whole)
    means = sum(one.double().mean().item() for one in dealt) / 2
    assert means != pytest.approx(whole)
    assert sum(one.sum().item() for one in dealt) / 5 == whole


def test_augmentation_by_rank():
    """And augmentation seeded alike on all ranks draws the same crops on each: seed it with the rank as well."""

    def crops(seed):
        torch.manual_seed(seed)
        loader = DataLoader(torch.arange(4), batch_size=2)
        return [torch.rand(len(one)).tolist() for one in loader]

    assert crops(7) == crops(7)
    assert crops(7 + 0) != crops(7 + 1)


@pytest.mark.parametrize("anew", [True, False])
def test_frozen_in_mid_run(on_ranks, anew):
    """Freeze first and wrap then; to freeze or unfreeze in mid-run, wrap the model anew.

    DDP waits for gradients that no longer come (not with `find_unused_parameters=True`, nor for a model that is frozen whole, as a GAN's discriminator in the generator's step).
    """

    def gradient(rank, group):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        ddp = DistributedDataParallel(net, process_group=group)
        x = torch.full((1, 2), rank + 1.0)
        ddp(x).sum().backward()
        net.zero_grad()
        net[0].requires_grad_(False)
        if anew:
            ddp = DistributedDataParallel(net, process_group=group)
        ddp(x).sum().backward()
        try:
            ddp(x)
        except RuntimeError:
            return net[1].weight.grad.tolist(), "error"
        return net[1].weight.grad.tolist(), "goes on"

    (first, goes_on), (second, too) = on_ranks(gradient, 2)
    assert (first == second) == anew
    assert goes_on == too == ("goes on" if anew else "error")

    def gan(rank, group):
        torch.manual_seed(0)
        made, judge = (
            DistributedDataParallel(nn.Linear(2, n), process_group=group)
            for n in (2, 1)
        )
        for _ in range(3):
            fake = made(torch.full((1, 2), rank + 1.0))
            judge(fake.detach()).sum().backward()
            judge.requires_grad_(False)
            judge(fake).sum().backward()
            judge.requires_grad_(True)
        return [p.grad.tolist() for m in (made, judge) for p in m.parameters()]

    def looks(rank, group):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        ddp = DistributedDataParallel(
            net, process_group=group, find_unused_parameters=True
        )
        for frozen in (False, True, True):
            net.zero_grad()
            net[0].requires_grad_(not frozen)
            ddp(torch.full((1, 2), rank + 1.0)).sum().backward()
        return net[1].weight.grad.tolist()

    for run in (gan, looks):
        first, second = on_ranks(run, 2)
        assert first == second


@pytest.mark.parametrize(
    ("frozen", "ends"),
    [
        ((0, 1, 1), ["averaged", "apart", "prior iteration"]),
        ((1, 1, 1), ["averaged"] * 3),
        ((1, 1, 0), ["averaged", "averaged", "has changed"]),
        ((2, 0, 0), ["averaged", "apart", "apart"]),
        ((0, 2, 0), ["averaged"] * 3),
        ((3, 0, 0), ["averaged"] * 3),
    ],
)
def test_frozen_under_a_static_graph(on_ranks, frozen, ends):
    """With `static_graph=True` the first step whose backward pass goes through the model decides: to unfreeze later raises, to freeze more is the accident again, and a model that was frozen whole then is never averaged, and nothing says so."""

    def steps(rank, group):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        head = nn.Linear(1, 1)
        ddp = DistributedDataParallel(
            net, process_group=group, static_graph=True
        )
        found = []
        # nothing, a part, all, or all and the backward pass ends in the head
        for how_much in frozen:
            net.zero_grad()
            for i, layer in enumerate(net):
                layer.requires_grad_(i >= how_much)
            x = torch.full((1, 2), rank + 1.0, requires_grad=how_much == 2)
            try:
                head(ddp(x)).sum().backward()
            except RuntimeError as error:
                found.append(str(error))
                continue
            gradient = net[1].weight.grad
            found.append(None if gradient is None else gradient.tolist())
        return found

    for one, other, end in zip(*on_ranks(steps, 2), ends, strict=True):
        if end in ("averaged", "apart"):
            assert (one == other) == (end == "averaged")
            assert not isinstance(one, str)
        else:
            assert end in one
            assert end in other


@pytest.mark.parametrize("options", [{}, {"find_unused_parameters": True}])
@pytest.mark.parametrize("anew", [True, False])
def test_unfrozen_in_mid_run(on_ranks, anew, options):
    """(What was frozen when the model was wrapped is never averaged, and no step raises.)"""

    def gradients(rank, group):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        net[0].requires_grad_(False)
        ddp = DistributedDataParallel(net, process_group=group, **options)
        x = torch.full((1, 2), rank + 1.0)
        ddp(x).sum().backward()
        net[0].requires_grad_(True)
        if anew:
            ddp = DistributedDataParallel(net, process_group=group, **options)
        for _ in range(3):
            net.zero_grad()
            ddp(x).sum().backward()
        return net[0].weight.grad.tolist(), net[1].weight.grad.tolist()

    (early, late), (other_early, other_late) = on_ranks(gradients, 2)
    assert late == other_late
    assert (early == other_early) == anew


def test_what_must_name_the_group(on_ranks):
    """Without it PyTorch looks for the process's one default group, and there is none. For the same reason one rank is named by `group_src=0` or `group_dst=0` (in `broadcast` or `reduce`), not by `src` or `dst`.

    What crosses between them is real: each has a gloo group of its own.

    A rank's own number is `group.rank()`.
    """

    def ask(rank, group):
        with pytest.raises(ValueError, match="has not been initialized"):
            dist.all_reduce(torch.ones(1))
        with pytest.raises(ValueError, match="has not been initialized"):
            dist.get_world_size()
        sent = torch.tensor([rank + 5.0])
        with pytest.raises(ValueError, match="not registered"):
            dist.broadcast(sent, src=0, group=group)
        dist.broadcast(sent, group_src=0, group=group)
        added = torch.tensor([rank + 1.0])
        dist.reduce(added, group_dst=0, group=group)
        kind = group._get_backend_name()
        there = added.item() if rank == 0 else None
        return sent.item(), there, group.rank() == rank, kind

    first, second, third = on_ranks(ask, 3)
    assert first == (5.0, 6.0, True, first[3])
    assert second == third == (5.0, None, True, first[3])
    assert "gloo" in first[3]


@pytest.mark.parametrize("momentum", [0.1, 0.5])
def test_other_tensors_in_their_place(momentum):
    """`functional_call(model, buffers, (chunk,))` is `model(chunk)` with other tensors in the place of those named in the dict `buffers`. Parameters that are not named are the model's own, so gradients reach them. `dict(model.named_buffers())` names the buffers."""
    norm = nn.BatchNorm1d(2, momentum=momentum)
    buffers = {name: one.clone() for name, one in norm.named_buffers()}
    x = torch.randn(5, 2) + 3
    functional_call(norm, buffers, (x,)).square().sum().backward()
    assert not norm.running_mean.any()
    assert torch.allclose(buffers["running_mean"], momentum * x.mean(0))
    assert norm.weight.grad.any()
    own = dict(norm.named_buffers())
    functional_call(norm, own, (x,))
    assert torch.allclose(norm.running_mean, momentum * x.mean(0))


def test_a_layer_called_module(on_ranks):
    """Its name says nothing about a wrapper. `isinstance(model, (nn.DataParallel, DistributedDataParallel))` does.

    Save `ddp.module.state_dict()`, on rank 0 alone

    A checkpoint needs the random states of all ranks: `dist.gather_object` brings them to rank 0.
    """
    plain = nn.Sequential()
    plain.module = nn.Linear(1, 1)
    assert list(plain.state_dict()) == ["module.weight", "module.bias"]
    wrappers = nn.DataParallel, DistributedDataParallel
    assert not isinstance(plain, wrappers)
    assert isinstance(nn.DataParallel(plain), wrappers)

    def names(rank, group):
        ddp = DistributedDataParallel(nn.Linear(1, 1), process_group=group)
        assert isinstance(ddp, wrappers)
        return list(ddp.state_dict()), list(ddp.module.state_dict())

    long, short = ["module.weight", "module.bias"], ["weight", "bias"]
    assert on_ranks(names, 2) == [(long, short)] * 2

    def drawn(rank, group):
        own = torch.Generator().manual_seed(rank)  # a process has its own
        states = [None] * 2 if rank == 0 else None
        dist.gather_object(own.get_state(), states, group=group, group_dst=0)
        next_one = torch.rand(3, generator=own).tolist()
        return states, next_one

    (states, first), (nothing, second) = on_ranks(drawn, 2)
    assert nothing is None
    resumed = []
    for state in states:
        own = torch.Generator()
        own.set_state(state)
        resumed.append(torch.rand(3, generator=own).tolist())
    assert resumed == [first, second]
    assert first != second


def test_what_comes_several_times(on_ranks):
    """`dist.all_reduce(..., op=dist.ReduceOp.MAX)` puts the tensors of all ranks together; what came several times is still 1.

    Every rank has to call `all_reduce` with the same shape, also one that has nothing to add.
    """
    seen = [[0, 2], [2, 3], []]

    def together(rank, group, op):
        right = torch.zeros(4)
        right[seen[rank]] = 1
        dist.all_reduce(right, op=op, group=group)
        return right.tolist()

    largest = on_ranks(lambda r, g: together(r, g, dist.ReduceOp.MAX), 3)
    added = on_ranks(lambda r, g: together(r, g, dist.ReduceOp.SUM), 3)
    assert largest == [[1.0, 0.0, 1.0, 1.0]] * 3
    assert added == [[1.0, 0.0, 2.0, 1.0]] * 3


@pytest.mark.parametrize("ranks", [2, 4])
def test_in_one_forward_pass(on_ranks, ranks):
    """Running statistics: each rank has its own, and a checkpoint those of rank 0. Send them to all before evaluating."""

    def mean(rank, group):
        norm = nn.BatchNorm1d(1, momentum=None)
        ddp = DistributedDataParallel(norm, process_group=group)
        for _ in range(2):
            ddp(torch.tensor([[0.0], [2.0]]) + 10 * rank).sum().backward()
        own = norm.running_mean.item()
        ddp.eval()(torch.zeros(1, 1))
        return own, norm.running_mean.item()

    for rank, (own, sent) in enumerate(on_ranks(mean, ranks)):
        # the second pass began with rank 0's, which had seen one
        assert own == pytest.approx((1 + (1 + 10 * rank)) / 2)
        assert sent == pytest.approx(1.0)


@pytest.mark.gpu
def test_nccl_with_one_gpu(python):
    """`init_process_group(..., device_id=device)` ties the process to its GPU: NCCL connects at once, and a `barrier()` does not have to guess the device.

    The *flight recorder* keeps the last collectives of each rank: set `TORCH_NCCL_DUMP_ON_TIMEOUT=1` and `TORCH_FR_BUFFER_SIZE=2000`
    """
    program = (
        "import pickle, warnings, torch, torch.distributed as dist\n"
        "device = torch.device('cuda', 0)\n"
        "dist.init_process_group('nccl', 'tcp://127.0.0.1:29533', rank=0,\n"
        "    world_size=1, device_id=device)\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    dist.barrier()\n"
        "assert not said, said\n"
        "ones = torch.ones(3, device=device)\n"
        "dist.all_reduce(ones)\n"
        "torch.cuda.synchronize()\n"
        "from torch._C._distributed_c10d import _dump_nccl_trace\n"
        "kept = pickle.loads(_dump_nccl_trace())['entries']\n"
        "print([one['profiling_name'] for one in kept])\n"
        "dist.destroy_process_group()\n"
    )
    kept = python(
        program, TORCH_NCCL_DUMP_ON_TIMEOUT="1", TORCH_FR_BUFFER_SIZE="2000"
    )
    assert "nccl:all_reduce" in kept
