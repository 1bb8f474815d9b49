# %% [markdown] reading_minutes=30 builds_on="chapter 01 (*generators*), chapter 05 (*batch normalization*), chapter 09 (*means of means*), chapter 12 (*the prefix `module.`*)"
r"""
# 14 · Several GPUs

One model, several devices: each computes on its share of the batch, and then they agree on a gradient. Every
trick of the chapters before has a second meaning here: what a mean is a mean of, who draws which random
numbers, whose statistics are saved, what happens when one of them stops.

Nothing in this chapter needs a GPU. Two or four processes on a laptop speak with each other the same way, over
gloo in place of NCCL.

**After this chapter you can**

- say what `DataParallel` and `DistributedDataParallel` (DDP) do at each step, and do it by hand;
- start several processes from a notebook, with a clear error in seconds when one of them dies or hangs;
- weight losses so that unequal shares give the gradient of the whole batch, to the last digits;
- accumulate with one exchange per step, and count the exchanges;
- give each rank its samples: all of them, in a new order each epoch, and none counted twice in a metric.
"""

# %% setup="imports"
import contextlib
import copy
import datetime
import functools
import math
import threading
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from course_utils import expect, visible_check


# %% setup="on_ranks"
def new_group(store, rank: int, world_size: int) -> dist.ProcessGroup:
    """The gloo group of all ranks, as one of them holds it."""
    options = dist.ProcessGroupGloo._Options()
    options._timeout = datetime.timedelta(seconds=15)
    local = dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")
    options._devices = [local]
    gloo = dist.ProcessGroupGloo(store, rank, world_size, options)
    group = dist.ProcessGroup(store, rank, world_size)
    kind = dist.ProcessGroup.BackendType.GLOO
    group._register_backend(torch.device("cpu"), kind, gloo)
    group._set_default_backend(kind)
    # none may leave while another is still connecting
    store.set(f"connected {rank}", "")
    everyone = [f"connected {one}" for one in range(world_size)]
    store.wait(everyone, options._timeout)
    return group


@functools.cache
def use_once() -> None:
    """Lets one thread alone do what PyTorch sets up at first use."""
    group = new_group(dist.HashStore(), 0, 1)
    dist.all_reduce(torch.ones(1), group=group)
    norm = DistributedDataParallel(nn.BatchNorm1d(1), process_group=group)
    norm(torch.ones(2, 1)).sum().backward()
    del norm  # before the group that it uses


def on_ranks(function, world_size: int) -> list:
    """Runs function(rank, group) once per rank, each rank in a thread.

    Returns what each returned. If ranks fail, raises what the first raised.
    """
    use_once()
    store, failures = dist.HashStore(), []
    returned = [None] * world_size

    def run(rank):
        # held here, so that it ends after all that uses it
        group = new_group(store, rank, world_size)
        try:
            returned[rank] = function(rank, group)
        except BaseException as error:
            failures.append((time.monotonic(), rank, error))
            traceback.clear_frames(error.__traceback__)  # lets go of the group

    threads = [
        threading.Thread(target=run, args=(rank,), daemon=True)
        for rank in range(world_size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise min(failures, key=lambda one: one[:2])[2]
    return returned


# %% [markdown]
r"""
The two cells above are all that the exercises need. The cells that you only read use a few things more.

Do not copy `new_group`. It makes groups for threads of one process, so that a notebook can grade you, and calls what PyTorch does not document. A job of your own is
started by `torchrun` and calls `dist.init_process_group` (section 3).
"""

# %%
import inspect
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from course_utils import (
    PALETTE,
    bar_chart,
    beside_reference,
    explore,
    new_figure,
)

print("torch", torch.__version__, "with", torch.cuda.device_count(), "GPUs")
print("gloo:", dist.is_gloo_available(), " nccl:", dist.is_nccl_available())

# %% [markdown]
r"""
**Words.** A *rank* is one of the processes and its number; rank 0 is the first. *World size* is how many there are. A *group* is
those who speak with each other. A *collective* is a call that all ranks of a group make together: `all_reduce` adds up (or
averages, or takes the largest of) a tensor of each rank, and leaves the result on all of them. A *shard* is a rank's share of the batch.

## 1 · The problem, seen going wrong

DDP takes the mean over ranks of their gradients. Each rank's loss is a mean over its own samples. If the shards are equal,
the mean of means is the mean. If not, it is not:
"""

# %%
torch.manual_seed(0)
inputs, labels = torch.randn(8, 4).double(), torch.randint(3, (8,))


def small_model():
    torch.manual_seed(1)
    return nn.Linear(4, 3).double()


# %% cell="mean_of_means"
def mean_over_ranks(sizes):
    gradients = []
    for rows, wanted in zip(
        inputs.split(sizes), labels.split(sizes), strict=True
    ):
        model = small_model()
        F.cross_entropy(model(rows), wanted).backward()
        gradients.append(model.weight.grad)
    return torch.stack(gradients).mean(0)


whole = mean_over_ranks([8])
for sizes in ([4, 4], [6, 2], [7, 1]):
    off = (mean_over_ranks(sizes) - whole).norm() / whole.norm()
    print(f"shards of {sizes}: relative error {off:.2g}")

# %% [markdown]
r"""
Nothing warns. The loss falls all the same, only towards somewhere else: samples on a rank with few of them count more. It
happens where the last batch is short, where sequences are of unequal length and losses are means over tokens, and where some labels are
ignored.
"""

# %% [markdown]
r"""
## 2 · One process, several GPUs: `DataParallel`

`nn.DataParallel` needs one line, and does four things at *every* forward pass:

1. **scatter**: cut the batch into chunks, one per GPU;
2. **replicate**: copy the model from the first GPU to the others;
3. **apply**: each replica computes on its chunk, in a thread of its own;
4. **gather**: bring the outputs to the first GPU.

Loss and `backward()` follow. The backward pass goes through all replicas, and what arrives is *added* into the model on the first GPU.
Here are the four steps on the CPU, with four imagined devices:
"""

# %% cell="four_steps"
main = small_model()
pieces = inputs.chunk(4)
replicas = [copy.deepcopy(main) for _ in pieces]
parts = [replica(one) for replica, one in zip(replicas, pieces, strict=True)]
gathered = torch.cat(parts)
F.cross_entropy(gathered, labels).backward()

summed = sum(replica.weight.grad for replica in replicas)
print("sum over replicas, error:", (summed - whole).abs().max().item())

# %% [markdown]
r"""
A sum, and right: the loss was taken on the whole output, so its mean is in it already. No sample can count more than another. (A model that returns its loss returns one for each chunk: their mean is a mean of means again.) The price
is elsewhere: one Python process for all GPUs, a copy of the model per forward pass, and a first GPU that holds outputs and loss
besides. PyTorch's documentation recommends DDP also for a single machine.

Chunks are filled up: all but the last have ⌈batch / GPUs⌉ samples. Move the sliders: some GPUs may get little, or nothing.
"""


# %% cell="chunk_figure"
def chunk_figure(batch_size=10, num_gpus=4):
    chunks = [len(one) for one in torch.arange(batch_size).chunk(num_gpus)]
    figure, axes = new_figure(figsize=(6, 2.6))
    counts = chunks + [0] * (num_gpus - len(chunks))
    colors = [PALETTE[0]] * len(chunks) + [PALETTE[6]] * num_gpus
    axes.bar(range(num_gpus), counts, color=colors[:num_gpus])
    for gpu, count in enumerate(counts):
        axes.text(gpu, count, count, ha="center", va="bottom")
    fair = batch_size / num_gpus
    axes.axhline(fair, color=PALETTE[1], linestyle="--")
    words = f"{max(counts)} on the fullest GPU, {counts[-1]} on the last"
    samples = f"{batch_size} sample{'' if batch_size == 1 else 's'}"
    axes.set_title(f"{samples} over {num_gpus}: {words}")
    axes.set(xlabel="GPU (dashed: an even share)", ylabel="samples")
    axes.set(xticks=range(num_gpus), ylim=(0, max(counts) * 1.25))
    return figure


explore(chunk_figure, batch_size=range(1, 33), num_gpus=range(1, 9))

# %% [markdown]
r"""
What a replica writes into a buffer is lost with it, save on the first GPU, whose replica shares the model's own. With batch
normalization that means: the running statistics are those of the *first chunk* alone. Exercise 1 builds all of this.
"""

# %% [markdown]
r"""
## 3 · One process per GPU: DDP by `torchrun`

With DDP every rank is a process with a model, an optimizer and a loader of its own. At the start rank 0's weights are sent to all. From then on only
gradients cross (and buffers, section 7): during `backward()` DDP averages them, and each rank's optimizer makes the same step on the same gradient. No weights are
ever copied again: if each rank gives a `ReduceLROnPlateau` its own metric, rates differ and the weights part, without a word.

`torchrun` starts the processes and tells each its `RANK`, the `WORLD_SIZE` and its `LOCAL_RANK`. On several machines `LOCAL_RANK` is the number of its GPU, not `RANK`. A notebook is one process, so the next cells, folded,
write functions of this notebook into a script and hand that to `torchrun`. What each rank returns comes back as a file. Four things keep
it from hanging:

- a group has a **timeout** (by default 10 minutes where the backend is named "nccl", else 30): with gloo a rank that waits in vain raises an error; NCCL ends its process,
  and no `except` sees it;
- `torchrun` **ends the others** as soon as one rank fails;
- the notebook has a **deadline** of its own, three minutes. Ranks read from a pipe that it holds open, and end when it is closed: after the
  deadline, after the end of `torchrun`, or because the notebook itself was ended;
- a rank whose result is written **leaves at once**, without the tidying up of Python and its libraries, which may wait for threads that wait for others.
"""

# %% folded="The script that every rank runs"
SCRIPT = """
import os, sys, threading

def end_with_the_notebook():
    sys.stdin.buffer.read()  # comes back when nobody holds the other end
    os._exit(1)

# before anything that may take long or hang
threading.Thread(target=end_with_the_notebook, daemon=True).start()

import contextlib, datetime, faulthandler, re, time
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

{functions}

# a crash leaves its traceback in torchrun's log, and so does a rank that
# still waits when nine tenths of the time are over: it ends
faulthandler.enable()
faulthandler.dump_traceback_later({limit_s}, exit=True)
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
on_gpus = torch.cuda.device_count() >= world_size
device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
if on_gpus:
    torch.cuda.set_device(device)
torch.set_num_threads(1)
try:
    dist.init_process_group(
        "nccl" if on_gpus else "gloo",
        timeout=datetime.timedelta(seconds=60),
    )
    found = [one(rank, world_size) for one in [{names}]]
    torch.save(found, f"{{rank}}.new")
    os.rename(f"{{rank}}.new", f"{{rank}}.pt")
    dist.barrier()  # nobody leaves while others still speak
    dist.destroy_process_group()
except Exception as error:
    text = re.sub(r"\\[/.*?\\] ", "", str(error)).split(". ")[0]
    text = f"{{type(error).__name__}}: {{text}}"
    with open(f"{{rank}}.error", "w") as file:
        file.write(text)
    os._exit(1)
os._exit(0)
"""


# %% folded="How functions of this notebook are run on ranks"
def torchrun(*functions, num_ranks=2, deadline_s=180):
    """What each rank's call of each function(rank, world_size) returns.

    Returns a list with one entry per rank: the list of what the functions
    returned there. Raises RuntimeError if a rank fails or time runs out.
    """
    sources = [inspect.getsource(one) for one in (*SHARED, *functions)]
    script = SCRIPT.format(
        functions="\n\n".join(sources),
        names=", ".join(one.__name__ for one in functions),
        limit_s=0.9 * deadline_s,
    )
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--nproc-per-node", str(num_ranks), "--max-restarts=0"]
    # port 0: any that is free
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0"]
    command += ["--local-addr=127.0.0.1", "--log-dir=logs", "ranks.py"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "ranks.py").write_text(script)
        files = [Path(folder, f"{rank}.pt") for rank in range(num_ranks)]
        ended = run_to_deadline(command, folder, files, deadline_s)
        if all(file.exists() for file in files):
            return [torch.load(file) for file in files]
        said = Path(folder, "torchrun.log").read_text()
        signs = [sign_of(Path(folder), rank, said) for rank in range(num_ranks)]
        if not re.search(" raised |exit code", " ".join(signs)):
            signs += ["torchrun said", *said.splitlines()[-60:]]
    raise RuntimeError("; ".join([f"torchrun ended {ended}", *signs]))


# %% folded="How ranks are ended in time"
def run_to_deadline(command, folder, files, deadline_s):
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    settings = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback}
    with Path(folder, "torchrun.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,  # torchrun's, and so that of all ranks
            stdout=log,
            stderr=log,
        )
    try:
        in_time = wait_for(process, files, deadline_s)
        wait_for(process, [], 10 if in_time else 0)  # to end by itself
    finally:
        process.kill()
        process.stdin.close()  # the ranks see it and end themselves
        process.wait()
    return "early" if in_time else f"by its deadline of {deadline_s} s"


def wait_for(process, files, seconds):
    """Whether in so many seconds it ends, or all of the files are there."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if files and all(file.exists() for file in files):
            break
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def sign_of(folder, rank, said):
    error = folder / f"{rank}.error"
    if error.exists():
        return f"rank {rank} raised {error.read_text()}"
    if (folder / f"{rank}.pt").exists():
        return f"rank {rank} finished"
    code = re.search(rf"rank +: {rank} .*\n +exitcode +: (-?\d+)", said)
    how = f" (exit code {code[1]})" if code else ""
    how = how.replace("exit code -", "signal ")
    return f"rank {rank} ended without a word{how}"


# %% [markdown]
r"""
Now the functions that run on the ranks. Three are shared: sixteen samples, a model, and how far a gradient is from that of
*one* process with all sixteen.
"""


# %%
# what the script sets on each rank, for this process
DDP, device, on_gpus = DistributedDataParallel, torch.device("cpu"), False


def sixteen():
    generator = torch.Generator().manual_seed(2)
    X = torch.randn(16, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(3, (16,), generator=generator)
    return X.to(device), y.to(device)


def network():
    torch.manual_seed(3)
    layers = nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)
    return nn.Sequential(*layers).double().to(device)


def gradient_error(model):
    X, y = sixteen()
    alone = network()
    F.cross_entropy(alone(X), y).backward()
    pairs = zip(model.parameters(), alone.parameters(), strict=True)
    return max((p.grad - q.grad).abs().max().item() for p, q in pairs)


SHARED = [sixteen, network, gradient_error]


# %% cell="rank_functions"
def equal_shards(rank, world_size):
    X, y = sixteen()
    ddp = DDP(network())
    F.cross_entropy(ddp(X[rank::world_size]), y[rank::world_size]).backward()
    return gradient_error(ddp)


def unequal_shards(rank, world_size):
    sizes = [16 - 2 * (world_size - 1)] + [2] * (world_size - 1)
    X, y = (one.split(sizes)[rank] for one in sixteen())
    ddp = DDP(network())
    F.cross_entropy(ddp(X), y).backward()
    return gradient_error(ddp)


def unequal_repaired(rank, world_size):
    sizes = [16 - 2 * (world_size - 1)] + [2] * (world_size - 1)
    X, y = (one.split(sizes)[rank] for one in sixteen())
    ddp = DDP(network())
    loss_sum = F.cross_entropy(ddp(X), y, reduction="sum")
    (world_size * loss_sum / 16).backward()
    return gradient_error(ddp)


# %% cell="weights_after_steps"
def weights_after_steps(rank, world_size):
    X, y = sixteen()
    torch.manual_seed(rank)
    ddp = DDP(nn.Linear(4, 3).double().to(device))  # each starts elsewhere
    sgd = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        sgd.zero_grad()
        shard = slice(rank, None, world_size)
        F.cross_entropy(ddp(X[shard]), y[shard]).backward()
        sgd.step()
    return [p.detach().cpu() for p in ddp.parameters()]


# %% cell="two_ranks"
experiments = [equal_shards, unequal_shards, unequal_repaired]
two = torchrun(*experiments, weights_after_steps, num_ranks=2)


# %% cell="four_ranks"
four = torchrun(*experiments, num_ranks=4)

for index, one in enumerate(experiments):
    errors = f"2 ranks {two[0][index]:.1e}, 4 ranks {four[0][index]:.1e}"
    print(f"{one.__name__:17} {errors}")

# %% [markdown]
r"""
The first and the last line are rounding. Sum of the losses, times the number of ranks, over the number of *all* samples: the factor undoes
the division that DDP will make. Where a rank does not know how many samples there are in all, one `all_reduce` of a count tells it.

Each rank had a seed of its own above, so each model started elsewhere. DDP sent rank 0's weights to all. After five steps with momentum
they are still the same, bit for bit, and nobody has copied anything:
"""

# %% cell="same_weights"
weights0, weights1 = two[0][-1], two[1][-1]
same = all(torch.equal(a, b) for a, b in zip(weights0, weights1, strict=True))
print("weights of both ranks are equal:", same)

assert same
assert max(two[0][0], four[0][0], two[0][2], four[0][2]) < 1e-12
assert min(two[0][1], four[0][1]) > 1e-3

# %% [markdown]
r"""
## 4 · A rank that dies, a rank that hangs

Most lost evenings with several processes are one of these. A rank that runs out of memory leaves; the others wait in their next collective. A
rank that has one batch more than the others waits for partners that are through. Here are both, on purpose. The group in which the second one
happens has a timeout of five seconds, and is over gloo also where there are GPUs:
"""


# %%
def one_dies(rank, world_size):
    if rank == 1:
        os._exit(9)  # as when the system ends it: no word, no traceback
    dist.all_reduce(torch.ones(1, device=device))


def one_hangs(rank, world_size):
    short = datetime.timedelta(seconds=5)
    group = dist.new_group(backend="gloo", timeout=short)
    if rank == 1:
        time.sleep(600)
    dist.all_reduce(torch.ones(1), group=group)


def accident(function):
    started = time.perf_counter()
    try:
        torchrun(function)
    except RuntimeError as error:
        seconds = time.perf_counter() - started
        print(f"{function.__name__}: an error after {seconds:.0f} s:")
        print(" ", str(error).replace("; ", "\n  "))
        return str(error)


# %% cell="dead_rank"
died = accident(one_dies)

assert "rank 1 ended without a word" in died

# %% cell="hung_rank"
hung = accident(one_hangs)

assert "rank 0 raised" in hung

# %% [markdown]
r"""
The rank to look at is the one *without a word*: the other one only noticed. (Signal 15 is how `torchrun` ends the others; where it is so quick that
nobody can notice, the rank with an exit code is the one.) In a run of hours set the timeout to a few times the longest step that you
expect. While rank 0 alone does something slow, as saving or evaluating, the others wait in their next collective: that must take less than the timeout too.

On GPUs (from PyTorch's documentation; nothing here runs it) two settings help. `init_process_group(..., device_id=device)` ties the process to its GPU: NCCL connects at
once, and a `barrier()` does not have to guess the device. The *flight recorder* keeps the last collectives of each rank: set `TORCH_NCCL_DUMP_ON_TIMEOUT=1` and `TORCH_FR_BUFFER_SIZE=2000` (in older versions
`TORCH_NCCL_TRACE_BUFFER_SIZE`). After a timeout each rank writes a file, and `torchfrtrace` compares the files: it names the call that one rank did not make.

A common cause of the second accident: `if loss.isnan(): continue` on one rank. The others may wait at the end of the epoch only: until then
the mean is over gradients of different steps, and nobody says so. All ranks have to take the same way, so let them first agree (`all_reduce` a flag with `ReduceOp.MAX`).
"""

# %% [markdown]
r"""
## 5 · Accumulating: `no_sync`

With micro-batches (chapter 09) an exchange after each is a waste: only the sum has to cross. `no_sync()` skips it. DDP decides in the
*forward* pass whether the next `backward()` will exchange: around `backward()` alone, `no_sync` does nothing. The usual form stands around both. (Only the next `backward()` exchanges: if two follow, after
one forward pass or after two, the gradient of the second stays on its rank, often without an error. Add the losses and go backward once.) A hook
counts how often gradients cross for four micro-batches:
"""


# %%
def exchanges(rank, world_size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    X, y = (one[rank::world_size].chunk(4) for one in sixteen())
    found = {}
    for skipped in ("nothing", "backward alone", "forward and backward"):
        ddp, crossed = DDP(network()), []

        def count(group, bucket, crossed=crossed):
            crossed.append(bucket.buffer().nbytes)
            return default_hooks.allreduce_hook(group, bucket)

        ddp.register_comm_hook(None, count)
        for i in range(4):
            outer = i < 3 and skipped.startswith("forward")
            inner = i < 3 and skipped.endswith("alone")
            with ddp.no_sync() if outer else contextlib.nullcontext():
                loss = F.cross_entropy(ddp(X[i]), y[i]) / 4
                with ddp.no_sync() if inner else contextlib.nullcontext():
                    loss.backward()
        found[skipped] = (len(crossed), gradient_error(ddp))
    return found


# %%
def step_times(rank, world_size):
    model = nn.Sequential(nn.Linear(512, 2048), nn.Linear(2048, 512))
    ddp, X = DDP(model.to(device)), torch.randn(64, 512, device=device)
    found = {}
    for name in ("no_sync", "exchange"):
        times = []
        for _ in range(8):
            started = time.perf_counter()
            quiet = ddp.no_sync if name == "no_sync" else contextlib.nullcontext
            with quiet():
                ddp(X).square().mean().backward()
            if on_gpus:
                torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - started))
        found[name] = sorted(times)[len(times) // 2]
    return found


# %% cell="count_exchanges"
(counted, times), _ = torchrun(exchanges, step_times)
for skipped, (count, off) in counted.items():
    print(f"no_sync around {skipped:20} {count} exchanges, error {off:.0e}")

assert [count for count, _ in counted.values()] == [4, 4, 1]
assert max(off for _, off in counted.values()) < 1e-12

# %%
figure = bar_chart(
    {f"around {name}": count for name, (count, _) in counted.items()},
    title="Around backward alone, no_sync skips nothing",
    xlabel="exchanges of the gradient per step of 4 micro-batches",
)
figure

# %% [markdown]
r"""
All three have the right gradient: nothing but a count, or the time, shows the difference. **Measured on this machine**, a model of 2.1 million weights
(8.4 MB of gradients), 64 rows per rank, two ranks:
"""

# %% cell="measure"
for name, ms in times.items():
    where = "cuda" if torch.cuda.device_count() >= 2 else "cpu"
    beside_reference(
        f"14_multi_gpu/step_{name}_ms", ms, unit="ms", device=where
    )

# %% [markdown]
r"""
FSDP2 (section 8) has a switch in place of the context manager: `model.set_requires_gradient_sync(False)`.
"""

# %% [markdown]
r"""
## 6 · Who gets which sample

Under DDP the loader's `batch_size` is that of *one rank*: the effective batch is that times the world size (times the micro-batches). The sampler gives each rank
its share. `DistributedSampler` permutes all indices with the same seed on every rank. Of n ranks, rank r takes
every n-th, from place r on.

Its order depends on `seed + epoch`, and it learns the epoch only if told: `set_epoch(epoch)` at the start of each.
"""


# %% cell="set_epoch"
def seen_by(rank, epoch, told=True, num_samples=12, world_size=3):
    sampler = DistributedSampler(range(num_samples), world_size, rank)
    if told:
        sampler.set_epoch(epoch)
    return list(sampler)


for told in (False, True):
    orders = [seen_by(0, epoch, told) for epoch in range(3)]
    print("with set_epoch:   " if told else "without set_epoch:", orders)

# %% [markdown]
r"""
Each square is a sample, its colour the rank that trains on it. With `set_epoch` the samples wander. Change the numbers: where samples do not
divide evenly, some come **twice**; the figure marks them with a ring. With `drop_last=True` some are left out instead.
"""


# %% cell="sampler_figure"
def sampler_figure(num_samples=14, world_size=4, tell_the_epoch=True):
    figure, axes = new_figure(figsize=(7, 2.8))
    repeated = 0
    for epoch in range(4):
        counts = [0] * num_samples
        for rank in range(world_size):
            for i in seen_by(
                rank, epoch, tell_the_epoch, num_samples, world_size
            ):
                counts[i] += 1
                if counts[i] == 1:
                    color = PALETTE[rank]
                    axes.scatter(i, epoch, s=120, marker="s", color=color)
                else:
                    axes.scatter(i, epoch, s=230, c="none", edgecolors="black")
        repeated = sum(counts) - num_samples
    words = "wander" if tell_the_epoch else "stay with their rank"
    twice = f"{repeated} come{'s' if repeated == 1 else ''} twice"
    axes.set_title(f"Samples {words}; {twice} in each epoch")
    axes.set(xlabel="sample", ylabel="epoch", ylim=(3.6, -0.6))
    axes.set(yticks=range(4), xlim=(-0.8, num_samples - 0.2))
    for rank in range(world_size):
        axes.scatter([], [], marker="s", color=PALETTE[rank], label=rank)
    axes.legend(title="rank", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


explore(
    sampler_figure,
    num_samples=range(4, 25),
    world_size=range(1, 6),
    tell_the_epoch=True,
)

# %% [markdown]
r"""
Repeated samples do little harm in training. In a metric they are wrong, and the mean over ranks of their accuracies is a mean of means
again. To evaluate, deal samples out without filling up, add up counts, and divide once. Exercise 3 does it. The ranks may then have unequally many batches, or none, so
no collective may happen within a batch: call `ddp.module(x)` and not `ddp(x)`. The wrapper sends buffers in eval mode too (section 7), and where one rank has no batch others
(by gloo not all) wait for it until the timeout. With batch norm send rank 0's buffers to all before (`dist.broadcast`): after training each rank has its own.

Two more traps. `DataLoader(sampler=..., shuffle=True)` is refused with a ValueError: the sampler shuffles. And augmentation seeded
alike on all ranks draws the same crops on each: seed it with the rank as well.
"""

# %% cell="shuffle_refused"
try:
    torch.utils.data.DataLoader(
        range(12),
        shuffle=True,
        sampler=DistributedSampler(range(12), num_replicas=3, rank=0),
    )
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
r"""
## 7 · What is not averaged: statistics, names, unused layers

DDP averages gradients. Buffers it does not average: before a forward pass, rank 0's are sent to all, in eval mode and under `no_grad` too. (Not if the pass
before it was one without gradients or within `no_sync()`, and never with `broadcast_buffers=False`.
Newer versions want `forward_sync_buffers=False`, which sends them once, at the start.) So a checkpoint of rank 0 has the running statistics of
*rank 0's shards*. `SyncBatchNorm` takes mean and variance over all ranks; after `init_process_group` PyTorch refuses to train it on a CPU, and without that it is a plain batch norm there. The next functions run these, and three ways to treat a layer that is not used:
"""


# %%
def statistics(rank, world_size):
    X, _ = sixteen()
    mine = X[rank::world_size] + rank
    ddp = DDP(nn.BatchNorm1d(4).double().to(device))
    ddp(mine)
    own = ddp.module.running_mean.tolist()
    with torch.no_grad():
        ddp.eval()(mine)
    sent = ddp.module.running_mean.tolist()
    plain = nn.BatchNorm1d(4).double().to(device)
    try:
        synced = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(plain))
        synced(mine)
        how, together = "SyncBatchNorm", synced.module.running_mean
    except ValueError as error:  # without GPUs: what it does, by hand
        how, together = f"by hand ({error})", 0.1 * mine.mean(0)
        dist.all_reduce(together)
        together /= world_size
    return own, together.tolist(), sent, how, list(ddp.state_dict())


# %%
def unused_layer(rank, world_size):
    found = {}
    for name in ("none", "find_unused_parameters", "static_graph"):
        unused = nn.Linear(2, 2).to(device)
        model = nn.ModuleDict({"used": network(), "unused": unused})
        model.forward = lambda x, model=model: model["used"](x)
        ddp = DDP(model, **({name: True} if name != "none" else {}))
        found[name] = "works"
        for step in range(3):
            try:
                ddp(sixteen()[0][rank::world_size]).sum().backward()
            except RuntimeError:
                found[name] = f"RuntimeError in step {step + 1}"
                break
    model = network()
    ddp = DDP(model)
    last = list(model.parameters())[-1]
    for parameter in model.parameters():
        parameter.requires_grad_(parameter is last)  # too late
    ddp(sixteen()[0][rank::world_size]).square().sum().backward()
    return found, last.grad.sum().item()


# %% cell="buffers_and_names"
first, second = torchrun(statistics, unused_layer)
how, names = first[0][3:]
for rank, ((own, together, sent, *_), _) in enumerate([first, second]):
    print(f"rank {rank}: running mean {[f'{one:6.3f}' for one in own]}")
    print(f"        over ranks   {[f'{one:6.3f}' for one in together]}")
    print(f"        after eval   {[f'{one:6.3f}' for one in sent]}")
print("over ranks:", how)
print("names:", names)
unused, _ = first[1]
print("unused layer:", unused)
for rank, (_, (_, gradient)) in enumerate([first, second]):
    print(f"frozen after wrapping, step 1, rank {rank}: {gradient:.3f}")

# %% [markdown]
r"""
- **Statistics** differ between ranks right after a forward pass. Wherever they must agree, use `SyncBatchNorm`, or a norm that looks at
  single samples (chapter 05). `convert_sync_batchnorm` replaces every batch norm of a model, before it is wrapped (where
  one stands twice in a module, only the first).
- **Names** begin with `module.`. Save `ddp.module.state_dict()`, on rank 0 alone, and let the others wait at a `dist.barrier()` before they read the
  file (chapter 12 has what a checkpoint holds). A checkpoint needs the random states of all ranks: `dist.gather_object` brings them to rank 0.
- **A layer that no rank uses** is an error in the *second* step: DDP still waits for its gradient. The *first* step is wrong and says nothing: by default no gradient is averaged, not even those of
  the other layers, and the ranks part. Where only *some* ranks use a layer, these wait in their first step already, until the others end in the error or the timeout is over. `find_unused_parameters=True` looks for such layers in each
  step, which costs time. `static_graph=True` looks once, for models that use the same layers always; its first backward pass must not stand in `no_sync()`. Better: leave it out, or freeze it *before* the model is wrapped.
- **Freezing a part of a wrapped model** is the same accident: DDP waits for gradients that no longer come (not with `find_unused_parameters=True`, nor for a
  model that is frozen whole, as a GAN's discriminator in the generator's step). With `static_graph=True` the first step whose backward pass goes
  through the model decides: to unfreeze later raises, to freeze more is the accident again, and a model that was frozen whole then is never averaged, and nothing says so. The figures above are the same parameter's gradient on the two ranks. Freeze first and wrap then; to freeze
  or unfreeze in mid-run, wrap the model anew. (What was frozen when the model was wrapped is never averaged, and no step raises.)
"""

# %% cell="unused_asserted"
assert first[0][0] != second[0][0]
assert first[0][1] == second[0][1]
assert first[0][2] == second[0][2] == first[0][0]
assert first[1][1] != second[1][1]
assert all(name.startswith("module.") for name in names)
assert unused["none"] == "RuntimeError in step 2"
assert unused["find_unused_parameters"] == "works"

# %% [markdown]
r"""
## 8 · A short tour of FSDP2

DDP keeps everything on every rank: weights, gradients, optimizer state. FSDP2 (`fully_shard`) keeps of each parameter only a slice per rank, of the rank's own start: nothing is sent, so load or seed all ranks alike. Before a layer runs, its slices are
gathered; afterwards they are let go (by default those of the outermost call only after the backward pass, or by `reshard()`: call it if you evaluate between `backward()` and `step()`). Gradients are averaged *and* cut (reduce-scatter). Parameters become `DTensor`s: `to_local()` is the rank's slice,
`full_tensor()` the whole, for which all ranks must call it. Make the optimizer right after `fully_shard`, before a forward pass: an older one holds the old parameters and trains nothing, without a word. There is no wrapper, and so no prefix.
"""


# %%
def sharded_model(rank, world_size):
    from torch.distributed.checkpoint import state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh, model = init_device_mesh(device.type, (world_size,)), network()
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    X, y = (one[rank::world_size] for one in sixteen())
    F.cross_entropy(model(X), y).backward()
    alone = network()
    F.cross_entropy(alone(sixteen()[0]), sixteen()[1]).backward()
    off = max(
        (p.grad.full_tensor() - q.grad).abs().max().item()
        for p, q in zip(model.parameters(), alone.parameters(), strict=True)
    )
    clip = nn.utils.clip_grad_norm_
    norm, norm_alone = (
        clip(one.parameters(), max_norm=1e9).item() for one in (model, alone)
    )
    sgd.step()
    momentum = [state["momentum_buffer"] for state in sgd.state.values()]
    whole = state_dict.StateDictOptions(full_state_dict=True)
    saved = state_dict.get_model_state_dict(model, options=whole)
    return {
        "weights in all": sum(p.numel() for p in alone.parameters()),
        "weights here": sum(p.to_local().numel() for p in model.parameters()),
        "momentum here": sum(one.to_local().numel() for one in momentum),
        "gradient error": off,
        "norm error": abs(norm - norm_alone),
        "names saved": list(saved),
    }


# %% cell="fsdp_tour"
shards = [found[0] for found in torchrun(sharded_model)]
whole_size = shards[0]["weights in all"]
for rank, shard in enumerate(shards):
    here, momentum = shard["weights here"], shard["momentum here"]
    print(f"rank {rank}: {here} of {whole_size} weights,", end=" ")
    print(f"{momentum} numbers of momentum,", end=" ")
    print(f"gradient error {shard['gradient error']:.0e}")
print("names saved:", shards[0]["names saved"])

assert shards[0]["gradient error"] < 1e-12
assert max(shard["norm error"] for shard in shards) < 1e-12
held = [shard["weights here"] for shard in shards]
assert sum(held) == whole_size

# %% [markdown]
r"""
Same gradient; each rank holds its slice of weights, gradients and momentum. What does not get smaller are activations (chapter 11) and the largest part that `fully_shard` was called on, which has
to be whole while it runs. Clipping works as before, since the norm of DTensors is taken over all ranks (chapter 08); it is a DTensor, too: log its `.item()`. Saving many gigabytes is the business of
`torch.distributed.checkpoint`, where each rank writes its slices (chapter 12).
"""

# %% [markdown]
r"""
## 9 · Folklore check

What popular posts say about several GPUs. Each cell ends in an assertion. What happens *on* GPUs was not run here: there the cells read PyTorch's own source.

> **"`DataParallel` with a batch of 16 on 4 GPUs gives each 4."**
> *Correct*: the batch is chunked. It need not come out even, and with DDP the loader's `batch_size` is per rank already.
"""

# %% cell="claim_001_38"
for batch_size in (16, 10, 6):
    sizes = [len(one) for one in torch.arange(batch_size).chunk(4)]
    print(f"{batch_size} over 4:", sizes)

scatter = inspect.getsource(nn.parallel.scatter_gather.scatter)
assert "Scatter.apply" in scatter
assert [len(one) for one in torch.arange(16).chunk(4)] == [4, 4, 4, 4]
assert sizes == [2, 2, 2]

# %% [markdown]
r"""
> **"`DataParallel(module, device_ids=None, output_device=None, dim=0)`: by default all visible GPUs, and the output on the first."**
> *Correct*. Without a GPU it does nothing but put `module.` before the names. The documentation recommends DDP.
"""

# %% cell="claim_001_39"
arguments = inspect.signature(nn.DataParallel).parameters
defaults = {
    name: one.default for name, one in arguments.items() if name != "module"
}
print(defaults)

assert defaults == {"device_ids": None, "output_device": None, "dim": 0}
assert "DistributedDataParallel" in nn.DataParallel.__doc__
if torch.cuda.device_count() == 0:
    idle = nn.DataParallel(small_model())
    assert idle.device_ids == []
    assert torch.equal(idle(inputs), idle.module(inputs))

# %% [markdown]
r"""
> **"Step 1: the model is initialised on each GPU."** *Half the story.* `DataParallel` copies it from the first GPU, anew at every forward
> pass. DDP builds one per process, and sends rank 0's weights once.
>
> **"Step 2: the forward pass splits the batch and sends each GPU its part."** *Correct.*
"""

# %% cell="claim_004_17_18"
lines = inspect.getsource(nn.DataParallel.forward)
order = [
    lines.index(f"self.{step}(")
    for step in ("scatter", "replicate", "parallel_apply", "gather")
]
print("in forward(), in this order: scatter, replicate, apply, gather")

assert order == sorted(order)
assert same  # section 3: ranks that started elsewhere had equal weights

# %% [markdown]
r"""
> **"Step 3: outputs are gathered on the main GPU, which computes loss and gradients and updates the weights."** *Half the story.* Outputs and loss, yes. The backward pass
> runs on every replica, and gradients are *summed* into the main module. With DDP every rank has its own loss, gradients are *averaged*, and every rank steps.
>
> **"Step 4: the new weights are copied to the other GPUs."** *Wrong.* There is no such step. `DataParallel` copies at the next forward pass, DDP never.
"""

# %% cell="claim_004_19_20"
document = " ".join(nn.DataParallel.__doc__.split())
assert "summed into the original module" in document
assert torch.allclose(summed, whole)  # section 2: the sum over replicas

backward_of_replicate = inspect.getsource(
    nn.parallel._functions.Broadcast.backward
)
assert "ReduceAddCoalesced" in backward_of_replicate
assert same  # section 3: five steps, own optimizers, nothing copied
print("summed in DataParallel; averaged in DDP, where nothing is copied")

# %% [markdown]
r"""
## 10 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not attempted*, *try again*
or how many pass. These visible checks are few. When your notebook is graded, hidden ones look at everything that
folds open under *All that is checked*, on a CPU, in float64.

Where ranks are needed, they come from `on_ranks` of the second set-up cell: `on_ranks(function, 3)` runs
`function(rank, group)` three times at once and returns the three results. Each rank is a thread here and not a process,
which is easier to look into. What crosses between them is real: each has a gloo group of its own. Therefore **pass `group`
to everything that crosses**, such as `dist.all_reduce(tensor, group=group)` and `dist.get_world_size(group)`. Without it
PyTorch looks for the process's one default group, and there is none. For the same reason one rank is named by `group_src=0` or
`group_dst=0` (in `broadcast` or `reduce`), not by `src` or `dst`.

`all_reduce` works in place, and every rank has to call it, in the same order, with tensors of the same shape and dtype.
"""

# %% [markdown] task="data_parallel" title="DataParallel by hand" level="more" minutes=22 builds_on="section 2, chapter 05"
r"""
Write `chunk_sizes(batch_size, num_devices)`, `data_parallel(model, X, num_devices)` and `plain_state_dict(model)`, which do on the CPU what
`nn.DataParallel` does on devices that are only imagined here.

```python
>>> chunk_sizes(10, 4), chunk_sizes(6, 4)
([3, 3, 3, 1], [2, 2, 2])
>>> model = nn.BatchNorm1d(1).double()
>>> _ = data_parallel(model, torch.arange(12.0).double().view(12, 1), num_devices=4)
>>> model.running_mean  # of rows 0, 1 and 2: the first replica's alone
tensor([0.1000], dtype=torch.float64)
>>> list(plain_state_dict(nn.DataParallel(nn.Linear(1, 1))))
['weight', 'bias']
```

- `chunk_sizes` returns how many samples each device gets from `nn.DataParallel`. A batch has a sample or more, and no chunk is empty.
- `data_parallel` returns what `nn.DataParallel(model)` returns for `X`: consecutive chunks of these sizes, each through a replica in one
  forward pass, the outputs in the order of the batch. The `backward()` of a loss on them adds to the `.grad` of the *model's own*
  parameters what came from all chunks.
- **Buffers.** The first replica works on the buffers of the model itself: what it writes into them stays. All other replicas have
  copies, made before any replica runs: what they write is lost.
- The model keeps its parameters, buffers and modes, and nothing is kept for the next call.
- `plain_state_dict` returns the state dict of the model inside, whether `model` is wrapped by `nn.DataParallel` (once), by
  `DistributedDataParallel`, or not at all.

<details><summary>Hint 1: the sizes</summary>

The first chunks all have ⌈batch / devices⌉ samples, and the last one has what is left.
</details>
<details><summary>Hint 2: a replica</summary>

`functional_call(model, buffers, (chunk,))` is `model(chunk)` with other tensors in the place of those named in the dict
`buffers`. Parameters that are not named are the model's own, so gradients reach them. `dict(model.named_buffers())` names the
buffers.
</details>
<details><summary>Hint 3: when to copy</summary>

The first replica writes into the model's buffers. Make all other copies before it runs. `clone()` copies a tensor.
</details>
<details><summary>Help: a layer called <code>module</code></summary>

Its name says nothing about a wrapper. `isinstance(model, (nn.DataParallel, DistributedDataParallel))` does.
</details>
"""


# %% exercise="data_parallel"
def chunk_sizes(batch_size: int, num_devices: int) -> list[int]:
    """How many samples each device gets."""
    ### BEGIN SOLUTION
    size = math.ceil(batch_size / num_devices)
    starts = range(0, batch_size, size)
    return [min(size, batch_size - start) for start in starts]
    ### END SOLUTION


def data_parallel(
    model: nn.Module,
    X: Tensor,  # (N, ...)
    num_devices: int,
) -> Tensor:  # (N, ...)
    """What nn.DataParallel(model) gives for X on so many devices."""
    ### BEGIN SOLUTION
    first, *others = X.split(chunk_sizes(len(X), num_devices))
    replicas = [
        {name: buffer.clone() for name, buffer in model.named_buffers()}
        for _ in others
    ]
    outputs = [model(first)]
    for buffers, chunk in zip(replicas, others, strict=True):
        outputs.append(functional_call(model, buffers, (chunk,)))
    return torch.cat(outputs)
    ### END SOLUTION


def plain_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """The state dict of the model, without its wrapper."""
    ### BEGIN SOLUTION
    wrappers = nn.DataParallel, DistributedDataParallel
    inner = model.module if isinstance(model, wrappers) else model
    return inner.state_dict()
    ### END SOLUTION


# %% check="data_parallel"
with visible_check("data_parallel"):
    expect("10 over 4", chunk_sizes(10, 4), [3, 3, 3, 1])
    torch.manual_seed(0)
    X = torch.randn(11, 3).double()
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)).double()
    out = data_parallel(model, X, 4)
    expect("the output's shape", tuple(out.shape), (11, 2))
    mean = model[0].running_mean
    expect("the running mean", mean, 0.1 * X[:3].mean(0))
    out.sum().backward()
    rows = torch.tensor([11.0, 11.0]).double()
    expect("the bias's gradient", model[1].bias.grad, rows)
    kept = list(plain_state_dict(nn.DataParallel(nn.Linear(1, 1))))
    expect("the names", kept, ["weight", "bias"])

# %% grade="data_parallel" points=9

# %% [markdown] task="ddp_step" title="One step of all ranks" level="core" minutes=22 builds_on="sections 3 and 5, chapter 09"
r"""
Write `ddp_step(model, optimizer, micro_batches, group)`, which all ranks call at the same time, each with its own micro-batches, so that together they
make **one** optimizer step on the mean cross-entropy over *all* samples of *all* ranks.

```python
>>> x, y = torch.zeros(3, 2).double(), torch.tensor([0, 1, 0])
>>> def one_step(rank, group):
...     model = DistributedDataParallel(nn.Linear(2, 2).double(), process_group=group)
...     sgd = torch.optim.SGD(model.parameters(), lr=0.5)
...     micro_batches = [(x, y)] if rank == 0 else [(x[:1], y[:1])]
...     return round(ddp_step(model, sgd, micro_batches, group), 2)
>>> first, second = on_ranks(one_step, 2)
>>> first == second
True
```

- `model` is a `DistributedDataParallel`, `optimizer` belongs to it. `micro_batches` is this rank's list of pairs `x` (n, ...), `y` (n,).
  All ranks have equally many, at least one; the n, each at least 1, differ between micro-batches and between ranks.
- Each rank's optimizer steps once, on the gradient of that mean. Gradients that were there before do not count.
- **The gradient crosses between ranks once per step**, however many micro-batches there are. A few numbers beside it, such as counts and
  losses, may cross as well.
- Each micro-batch of the rank goes through the model once, unchanged, and comes backward before the next one goes forward.
- It returns, on every rank, the mean loss over all samples of all ranks before the step, as a Python float.

<details><summary>Hint 1: what DDP does to the gradient</summary>

It *averages* over ranks: it adds and divides by their number. If each rank's loss is its sum of losses, times the number of ranks,
divided by the number of all samples, the average is what is wanted.
</details>
<details><summary>Hint 2: how many samples there are</summary>

No rank knows. Each puts its own number in a tensor, and `dist.all_reduce(tensor, group=group)` adds them up on every rank.
</details>
<details><summary>Hint 3: once per step</summary>

`model.no_sync()` is a context manager. Forward *and* backward of all micro-batches but the last stand in it.
`contextlib.nullcontext()` is one that does nothing.
</details>
<details><summary>Help: "Default process group has not been initialized"</summary>

Somewhere `group=group` is missing, or the argument of `dist.get_world_size(group)`. A rank's own number is `group.rank()`.
</details>
<details><summary>Help: it waits, then "Timed out"</summary>

Then a rank has left out a call: every rank has to make the same calls in the same order. With gloo, other shapes or dtypes need not wait. They give "Connection closed by
peer", wrong numbers, or the end of the process.
</details>
"""


# %% exercise="ddp_step"
def ddp_step(
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    micro_batches: list[tuple[Tensor, Tensor]],  # x (n, ...), y (n,)
    group: dist.ProcessGroup,
) -> float:
    """One step of all ranks on all of their samples; returns the mean loss."""
    ### BEGIN SOLUTION
    num_ranks = dist.get_world_size(group)
    total = torch.tensor(sum(len(y) for _, y in micro_batches))
    dist.all_reduce(total, group=group)
    num_samples = total.item()
    optimizer.zero_grad()
    loss_sum = torch.zeros(1, dtype=torch.float64)
    last = len(micro_batches) - 1
    for i, (x, y) in enumerate(micro_batches):
        crossing = i == last
        with contextlib.nullcontext() if crossing else model.no_sync():
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss * num_ranks / num_samples).backward()
        loss_sum += loss.detach()
    optimizer.step()
    dist.all_reduce(loss_sum, group=group)
    return loss_sum.item() / num_samples
    ### END SOLUTION


# %% check="ddp_step"
with visible_check("ddp_step"):
    torch.manual_seed(1)
    X, y = torch.randn(6, 3).double(), torch.randint(2, (6,))
    direct = nn.Linear(3, 2).double()
    shares = [[(X[:4], y[:4])], [(X[4:], y[4:])]]

    def one_step(rank, group):
        own = copy.deepcopy(direct)
        wrapped = DistributedDataParallel(own, process_group=group)
        sgd = torch.optim.SGD(wrapped.parameters(), lr=0.5)
        returned = ddp_step(wrapped, sgd, shares[rank], group)
        return returned, own.bias.detach()

    (loss0, bias0), (loss1, bias1) = on_ranks(one_step, 2)
    mean = F.cross_entropy(direct(X), y)
    mean.backward()
    moved = (direct.bias - 0.5 * direct.bias.grad).detach()
    expect("the bias of rank 0 after a step", bias0, moved)
    expect("the bias of rank 1 after a step", bias1, moved)
    expect("the loss on rank 1", loss1, mean.item())

# %% grade="ddp_step" points=10

# %% [markdown] task="epoch_shards" title="Who sees which sample" level="more" minutes=20 builds_on="section 6"
r"""
Write `train_shard(num_samples, rank, world_size, epoch, seed)`, `eval_shard(num_samples, rank, world_size)` and
`global_accuracy(indices, correct, num_samples, group)`, which decide who sees which sample, and count each once.

```python
>>> both = [train_shard(5, rank, world_size=2, epoch=0) for rank in (0, 1)]
>>> [len(one) for one in both], sorted({*both[0], *both[1]})
([3, 3], [0, 1, 2, 3, 4])
>>> sorted(eval_shard(5, 0, 2) + eval_shard(5, 1, 2))
[0, 1, 2, 3, 4]
>>> seen = [torch.tensor([0, 2, 1]), torch.tensor([1, 0])]
>>> right = [torch.tensor([True, False, True]), torch.tensor([True, True])]
>>> def share(rank, group):
...     return global_accuracy(seen[rank], right[rank], 3, group)
>>> shares = on_ranks(share, 2)
>>> [round(one, 4) for one in shares]
[0.6667, 0.6667]
```

- `train_shard` returns the indices that `rank` trains on in `epoch`. All ranks get equally many, ⌈`num_samples` / `world_size`⌉, and together they
  have every sample. To fill up, some come again: no sample comes more than once more often than another.
- The order is random, and drawn anew from all samples in each epoch, so that they also change ranks and company. The arguments decide alone.
- `eval_shard` returns the indices that `rank` evaluates on. Together the ranks have every sample *exactly once*; the sizes differ by at most one.
- `global_accuracy`, called by all ranks at the same time, returns the share of all samples that were predicted rightly, as a Python float. `indices` (n,)
  are the samples that this rank evaluated, `correct` (n,) says which it got right. A sample that comes several times counts once.
- None of the three draws or seeds global random numbers.

<details><summary>Hint 1: the same order on every rank</summary>

All ranks draw the *same* permutation of all samples, from a `torch.Generator` of their own, seeded by `seed` and `epoch`, and then each takes its part.
</details>
<details><summary>Hint 2: to fill up</summary>

Repeat the permutation from its beginning until it has `world_size` times ⌈…⌉ entries.
</details>
<details><summary>Help: two seeds give the same orders</summary>

A generator on the CPU takes the low 32 bits of its seed alone: as `seed << 31`, the seeds 0 and 2 are one.
</details>
<details><summary>Hint 3: accuracy without knowing who has what</summary>

Let each rank fill a tensor with one entry per sample: 1 where it got that sample right. `dist.all_reduce(..., op=dist.ReduceOp.MAX)` puts
the tensors of all ranks together; what came several times is still 1.
</details>
<details><summary>Help: it is right on two ranks and hangs on three</summary>

Every rank has to call `all_reduce` with the same shape, also one that has nothing to add.
</details>
"""


# %% exercise="epoch_shards"
def train_shard(
    num_samples: int, rank: int, world_size: int, epoch: int, seed: int = 0
) -> list[int]:
    """The indices that a rank trains on in an epoch."""
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(num_samples, generator=generator).tolist()
    shard_size = math.ceil(num_samples / world_size)
    places = range(rank, shard_size * world_size, world_size)
    return [order[place % num_samples] for place in places]
    ### END SOLUTION


def eval_shard(num_samples: int, rank: int, world_size: int) -> list[int]:
    """The indices that a rank evaluates on: none comes twice."""
    ### BEGIN SOLUTION
    return list(range(rank, num_samples, world_size))
    ### END SOLUTION


def global_accuracy(
    indices: Tensor,  # (n,) int64
    correct: Tensor,  # (n,) bool
    num_samples: int,
    group: dist.ProcessGroup,
) -> float:
    """The share of all samples that were predicted rightly."""
    ### BEGIN SOLUTION
    right = torch.zeros(num_samples)
    right[indices] = correct.float()
    dist.all_reduce(right, op=dist.ReduceOp.MAX, group=group)
    return right.sum().item() / num_samples
    ### END SOLUTION


# %% check="epoch_shards"
with visible_check("epoch_shards"):
    both = [train_shard(5, rank, 2, epoch=0) for rank in (0, 1)]
    expect("the sizes", [len(one) for one in both], [3, 3])
    expect("all samples", sorted({*both[0], *both[1]}), [0, 1, 2, 3, 4])
    both = [*eval_shard(5, 0, 2), *eval_shard(5, 1, 2)]
    expect("to evaluate", sorted(both), [0, 1, 2, 3, 4])
    seen = [torch.tensor([0, 2, 1]), torch.tensor([1, 0])]
    hits = [torch.tensor([True, False, True]), torch.tensor([True, True])]
    shares = on_ranks(
        lambda rank, group: global_accuracy(seen[rank], hits[rank], 3, group),
        2,
    )
    expect("the accuracy on both ranks", shares, [2 / 3, 2 / 3])

# %% grade="epoch_shards" points=9

# %% [markdown]
r"""
## 11 · Recap

- `DataParallel`: one process; scatter, replicate, apply, gather at every forward pass; gradients are *summed* into the model; buffers of the first chunk are
  kept. DDP: one process per rank; gradients are *averaged*; each rank makes its own, equal, step.
- Unequal shards: sum of the losses × world size / number of all that they are summed over (samples, or labels that count).
- `no_sync` around forward *and* backward of all micro-batches but the last (with `static_graph=True`, from the second step on): one exchange per step.
- Every rank makes the same collectives in the same order. A timeout of a few times the longest step, saving included, ends a hang; with gloo look at the rank without a word.
- `set_epoch` in every epoch. Samples that fill up count in no metric; add up counts, then divide.
- Running statistics: each rank has its own, and a checkpoint those of rank 0. Send them to all before evaluating. Save `ddp.module.state_dict()` on rank 0.
- FSDP2 holds a slice of weights, gradients and optimizer state per rank, with the same gradient, of a start that you make alike.

**Primary sources**

- PyTorch:
  [torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html),
  [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html) and
  [its design](https://docs.pytorch.org/docs/stable/notes/ddp.html),
  [DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html),
  [distributed communication](https://docs.pytorch.org/docs/stable/distributed.html),
  [DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler),
  [SyncBatchNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html),
  [fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html).
- DDP: S. Li and others, [PyTorch Distributed](https://arxiv.org/abs/2006.15704), 2020. FSDP: Y. Zhao and others,
  [PyTorch FSDP](https://arxiv.org/abs/2304.11277), 2023.
- Sharded optimizer state: S. Rajbhandari and others, [ZeRO](https://arxiv.org/abs/1910.02054), 2019.
"""
