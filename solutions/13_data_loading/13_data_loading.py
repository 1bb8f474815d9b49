# %% [markdown] reading_minutes=25 builds_on="chapter 01 (*loaders and their generators*), chapter 05 (*a batch of one*)"
r"""
# 13 · Data loading

A loader has one job: the next batch is there when the model wants it. It fails in three ways. Its
last batch breaks batch normalization, its workers run out of shared memory, or it is just too slow
and nobody notices.

**After this chapter you can**

- keep single samples out of training, and every sample in validation;
- read the message about shared memory, compute how much is needed, and choose between the cures;
- set workers, prefetching and pinned memory, with the same samples in each batch however many workers there are;
- tell how long the model waits for data, and whether a faster loader would help.
"""

# %% setup="imports"
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    Subset,
    default_collate,
)

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few things more.
They start workers by `fork`, as Linux did by itself until Python 3.13. So a dataset that is defined in a notebook reaches them; with the newer
ways of starting it would have to stand in a module (section 2).
"""

# %%
import mmap
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

from matplotlib.colors import ListedColormap
from torch.utils.data import DistributedSampler, IterableDataset

from course_utils import (
    PALETTE,
    beside_reference,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
)

# Workers that mostly pause need no core of their own.
warnings.filterwarnings("ignore", "This DataLoader will create")
device = pick_device()
forked = "fork"  # how the cells below start workers
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

### The last batch ends the run

17 samples in batches of 4, and a batch norm.
"""

# %% cell="lone_sample"
torch.manual_seed(0)
features, norm = torch.randn(17, 3), nn.BatchNorm1d(3)
for number, rows in enumerate(DataLoader(features, batch_size=4), 1):
    try:
        norm(rows)
        print(f"batch {number}, {tuple(rows.shape)}: fine")
    except ValueError as error:
        print(f"batch {number}, {tuple(rows.shape)}: {error}")

# %% [markdown]
r"""
A variance over one value says nothing, so batch norm refuses (chapter 05). With 50,001 samples in batches of 50 you hear of
it at the end of the first epoch, and with a filtered dataset on the day on which one sample more passes
the filter.

### The workers run out of shared memory

A worker is a process. It hands the tensors of a batch over in *shared memory*: files in `/dev/shm`, which are held in RAM. A
container often gets 64 MB of it. We make that happen in a corner of its own: a child process with a `/dev/shm`
of 8 MB, which nobody else sees and which is gone when the child ends. A batch has 16 MB.
"""

# %%
program = """
import subprocess, torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.zeros(1_000_000)  # 4 MB

def load(what, num_workers, strategy="file_descriptor"):
    torch.multiprocessing.set_sharing_strategy(strategy)
    try:
        for batch in DataLoader(Images(), 4, num_workers=num_workers):
            pass
        print(what, "all batches loaded", sep=": ")
    except RuntimeError as error:
        print(what, str(error).strip().splitlines()[-1], sep=": ")

load("2 workers", 2)
load("no workers", 0)
load("2 workers, file_system", 2, "file_system")
larger = ["mount", "-o", "remount,size=96m", "/dev/shm"]
subprocess.run(larger, check=True)
load("2 workers, 96 MB", 2)
"""

# %% [markdown]
r"""
Linux has the corner: `unshare` gives the child a table of mounts of its own. Where that is not allowed (in
many containers) or not there (macOS, Windows), you read what we recorded.
"""

# %%
recorded_lines = """\
2 workers: RuntimeError: unable to allocate shared memory(shm) for file \
</torch_19462_2281821321_0>: No space left on device (28)
no workers: all batches loaded
2 workers, file_system: RuntimeError: unable to allocate shared memory(shm) \
for file </torch_19686_4203911705_0>: No space left on device (28)
2 workers, 96 MB: all batches loaded
"""


def in_a_small_shm():
    """What the program prints with 8 MB of /dev/shm; None if that is not
    possible here."""
    if shutil.which("unshare") is None:
        return None
    shell = 'mount -t tmpfs -o size=8m tmpfs /dev/shm && exec "$0" -c "$1"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    done = subprocess.run(
        [*command, shell, sys.executable, program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout if done.returncode == 0 else None


# %% cell="small_shm"
lines = in_a_small_shm()
here = "here" if lines else "recorded in November 2026 with torch 2.13"
outcome = {}
for line in (lines or recorded_lines).splitlines():
    what, _, came = line.partition(": ")
    outcome[what] = came
    print(f"{what} ({here}):\n    {came}")

# %% [markdown]
r"""
The message speaks of a *device* on which no space is left. It is not the disk and not the GPU, it is `/dev/shm`. PyTorch
reserves the space beforehand since the autumn of 2025. Until then the kernel killed the worker that wrote into it, and one
read *Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)*. The other three lines are the cures
that you read about, and one of them is none (section 5).
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

**Training drops the rest, validation does not.** In `eval()` a single sample does no harm, and what you leave out is
missing from the score.
"""

# %% cell="shortest_tail"
train = DataLoader(features, batch_size=4, shuffle=True, drop_last=True)
validation = DataLoader(features, batch_size=4)
print("training:  ", [len(rows) for rows in train])
print("validation:", [len(rows) for rows in validation])

# %% [markdown]
r"""
With `shuffle=True` other samples are left out in each epoch. If none may be lost, let the lone one join the batch before it
(exercise 1), or normalize without the batch: group norm with more than one value for each group (chapter 05).

**Workers, if loading takes time.** `prefetch_factor` and `persistent_workers`
exist only with workers; without, they raise a `ValueError`. (`multiprocessing_context` does, too; a `timeout` raises when the loader is gone through.)
"""

# %% cell="shortest_workers"
num_workers = 2
if_any = {"prefetch_factor": 2, "persistent_workers": True}
loader = DataLoader(
    features,
    batch_size=4,
    num_workers=num_workers,
    pin_memory=torch.cuda.is_available(),
    **(if_any if num_workers else {}),
)
try:
    DataLoader(features, num_workers=0, persistent_workers=True)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
r"""
| option | what it does | when |
|---|---|---|
| `num_workers` | so many processes load and collate | loading a batch takes a good part of a step; more than one if it takes longer than a step |
| `prefetch_factor` | batches that each worker keeps ready (2) | loading times vary: more; memory is short: 1 |
| `persistent_workers` | workers outlive the epoch | starting them takes long: short epochs, `spawn` |
| `pin_memory` | a thread (without workers, your own) copies batches (a dataclass only by its method `pin_memory`) into page-locked memory, for the accelerator that is there | the model is on a CUDA device, or another one that can pin (XPU; not MPS) |

**Shared memory.** All workers' batches wait in the same place, and your loop holds one more:

$$\text{needed} \ge (\text{workers} \cdot \text{prefetch} + 1) \cdot \text{bytes of a batch}$$

Count one batch more if anything still holds the old one when the next is fetched: its name, `enumerate`, `zip`, tqdm. A batch that you hold when workers are forked stays until they end (the last one of an epoch, when the next epoch
or the validation begins): count it, too. Workers that are not forked add the dataset's own tensors (not arrays), once, as long as it lives. Several loaders, or ranks, add up. A `/dev/shm` that is larger than needed takes no RAM: give it twice as much.

Only tensors count, each with a page at least (mostly 4 kB): arrays, numbers and strings that a collate function of your own returns go through a pipe. A batch that is a view brings all the memory behind it: slices of one tensor, with `batch_size=None`, bring it whole, once per forked worker. Batches that you keep, in a list or by a view of one, stay in shared memory, too.
With `pin_memory` a thread copies each batch out of it early.

If `/dev/shm` has less (`df -h /dev/shm`), make it larger: `docker run --shm-size=2g`, or `--ipc=host` for that of the host;
in Kubernetes an `emptyDir` with `medium: Memory`, mounted there. Where you may not, make the need smaller: prefetch less, fewer workers, smaller
samples (send uint8 images and convert them on the GPU: a quarter of float32).

**How workers are started.** In Linux by `fork`: a copy of your process, lambdas and all. On macOS and Windows by `spawn`,
and in Linux from Python 3.14 on by a server: a fresh Python, to which dataset, `collate_fn` and `worker_init_fn` are sent
*pickled*. A lambda cannot be pickled, and neither can a function defined in a function. But on a machine with a GPU a fork has limits: once your process has used the GPU, a
forked worker cannot, and once autograd has run in your process, a forked worker cannot take gradients.
"""

# %% cell="pickled"
for what, function in (
    ("a lambda", lambda rows: rows),
    ("a function of a module", default_collate),
    ("a partial of one", functools.partial(default_collate)),
):
    try:
        print(f"{what}: {len(pickle.dumps(function))} bytes")
    except (pickle.PicklingError, AttributeError) as error:
        print(f"{what}: {type(error).__name__}")

# %% [markdown]
r"""
So what workers need belongs in a module, as a function or a class. What varies can be bound with `functools.partial`.

**Pinned memory.** The GPU can fetch from page-locked memory by itself. From any other memory the driver copies twice, and your
program waits. With `pin_memory=True` *and* `batch.to(device, non_blocking=True)` your program goes on while
the copy runs, and orders the kernels that come after it. (Copy and kernels wait for one another all the same, unless the copy has a
stream of its own.) The other way, from the GPU to the CPU, `non_blocking=True` is a trap: you can read the numbers before they have arrived.
Call `torch.cuda.synchronize()` first, or leave it out.

## 3 · See it

### Loader and model, side by side

Each row is a process, each bar a batch. A worker loads while the model computes, and may be `prefetch` batches
ahead. Move the sliders: with enough workers the model waits for its first batch only, and beyond that more do not help.
"""


# %%
def simulated(workers, load_ms, step_ms, prefetch, num_batches=10):
    """(process, start, length, batch) of all work; the model is process 0."""
    bars, free, taken = [], [0.0] * max(workers, 1), []
    now = 0.0
    for batch in range(num_batches):
        worker = batch % max(workers, 1)
        before = batch - workers * prefetch
        asked = taken[before] if workers and before >= 0 else 0.0
        start = max(free[worker], asked) if workers else now
        free[worker] = start + load_ms
        bars.append((worker + 1 if workers else 0, start, load_ms, batch))
        now = max(now, free[worker])
        taken.append(now)
        bars.append((0, now, step_ms, batch))
        now += step_ms
    return bars, now


# %% cell="timeline_figure"
middle = {"ha": "center", "va": "center", "fontsize": 7, "color": "w"}


def timeline_figure(workers=2, load_ms=60, step_ms=40, prefetch=2):
    bars, total = simulated(workers, load_ms, step_ms, prefetch)
    figure, axes = new_figure(figsize=(7, 1.2 + 0.45 * (workers + 1)))
    for index, (process, start, length, batch) in enumerate(bars):
        step = index % 2 == 1
        color = PALETTE[0] if step else PALETTE[1]
        axes.barh(process, length, 0.8, start, color=color, edgecolor="w")
        axes.text(start + length / 2, process, batch + 1, **middle)
    axes.set_yticks(
        range(workers + 1),
        ["main process", *(f"worker {i + 1}" for i in range(workers))],
    )
    axes.invert_yaxis()
    busy = 10 * step_ms / total
    axes.set(xlabel="time (ms)", xlim=(0, max(total, 400)))
    axes.set_title(f"{workers} workers: the model works {busy:.0%} of the time")
    return figure


explore(
    timeline_figure,
    workers=range(5),
    load_ms=range(10, 121, 10),
    step_ms=range(10, 121, 10),
    prefetch=[1, 2, 4],
)

# %% [markdown]
r"""
(A simulation: loading always takes the same time, and each worker has a free core.) Under these two conditions load time / step time workers,
rounded up, are enough. With loading times that vary, or fewer cores, measure (section 4).

### How much waits in shared memory

Here nothing is simulated. We look at `/dev/shm` after each batch. A batch is 1 MB, the loop is slow, and the workers
run ahead as far as they may.
"""


# %%
class Blocks(Dataset):
    """40 samples of 250 kB."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.full((250, 250), float(index))


def shm_in_use():
    space = os.statvfs("/dev/shm")
    return (space.f_blocks - space.f_bfree) * space.f_frsize


def batches_in_shm(workers, prefetch):
    before, seen = shm_in_use(), []
    for _batch in DataLoader(
        Blocks(),
        batch_size=4,
        num_workers=workers,
        prefetch_factor=prefetch,
        multiprocessing_context=forked,
    ):
        time.sleep(0.03)
        seen.append((shm_in_use() - before) / 1e6)
    return seen


# %% cell="shm_figure"
if Path("/dev/shm").exists():
    waiting_megabytes = {
        f"{w} · {p} + 1 = {w * p + 1}": batches_in_shm(w, p)
        for w, p in ((1, 1), (2, 2), (2, 4))
    }
    figure = line_chart(
        waiting_megabytes,
        x=range(1, 11),
        title="workers · prefetch + 1 batches lie in shared memory",
        xlabel="batch that the loop holds",
        ylabel="in use in /dev/shm (MB)",
    )
    figure.axes[0].set(ylim=(0, None))
    figure.axes[0].legend(title="workers · prefetch + 1")
else:
    figure = "No /dev/shm here: this figure needs Linux."
figure

# %% [markdown]
r"""
At the end of the epoch there is nothing left to load, and the lines fall. (Whoever else uses `/dev/shm` at
this moment shows, too.) A loop that keeps its batches makes the formula wrong:
"""

# %% cell="kept_batches"
if Path("/dev/shm").exists():
    shm_before = shm_in_use()
    kept_batches = list(
        DataLoader(
            Blocks(),
            batch_size=4,
            num_workers=1,
            prefetch_factor=1,
            multiprocessing_context=forked,
        )
    )
    megabytes = (shm_in_use() - shm_before) / 1e6
    print(
        f"1 · 1 + 1 = 2, but {len(kept_batches)} are kept: {megabytes:.0f} MB"
    )
    del kept_batches

# %% [markdown]
r"""
### How much the workers take themselves

After a fork parent and workers share all memory, until somebody writes to a page. Then that process gets a copy of its own. *Reading* a Python object
writes to it: it counts its references. (None and small integers do not, since Python 3.12.) So each worker slowly copies a large list of names, and the machine runs out of memory hours after the
start. An array or a tensor is one object, whatever it holds (unless its `dtype` is `object`).
"""


# %%
class Names(Dataset):
    """The lengths of names, and now and then how many MB are the worker's own."""

    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        asked = index in (len(self) // 4, len(self) - 1)
        return len(self.names[index]), own_megabytes() if asked else 0.0


def own_megabytes():
    words = Path("/proc/self/smaps_rollup").read_text().split()
    return int(words[words.index("Private_Dirty:") + 1]) / 1e3


# %% cell="copy_on_write"
if Path("/proc/self/smaps_rollup").exists():
    names = [f"images/{number:040d}.jpeg" for number in range(200_000)]
    for what, held in (("list", names), ("array", np.array(names, "S"))):
        loader = DataLoader(
            Names(held), 2000, num_workers=1, multiprocessing_context=forked
        )
        seen = torch.cat([megabytes for _, megabytes in loader])
        quarter, end = seen[seen > 0].tolist()
        print(f"{what:5}: the last 150,000 names cost {end - quarter:.0f} MB")

# %% [markdown]
r"""
So put names and labels into arrays or tensors, or into a file that is mapped (`np.memmap`, Arrow). But a worker that is not forked gets a copy of an array, a mapped one too: let it open an `np.memmap` itself. Each worker has to open any other file for itself, HDF5 too: a plain file that was open before a fork has one place for all. In each worker PyTorch computes with one thread
(`torch.get_num_threads()` is 1 there). NumPy and OpenCV have threads of their own, with which workers may fight for cores: limit them yourself
(`OPENBLAS_NUM_THREADS=1` before NumPy is imported, `cv2.setNumThreads(0)` in the worker).

### Which sizes are dangerous

N samples in batches of B. Orange: the last batch holds a single sample. Tick the box: with `drop_last` it is gone, except for B = 1, and
where N < B (blue) there is no batch left at all.
"""


# %% cell="tail_figure"
three_colors = ListedColormap(["0.9", PALETTE[1], PALETTE[0]])


def tail_figure(drop_last=False):
    N, B = np.meshgrid(np.arange(1, 41), np.arange(1, 17))
    lone = (N % B == 1) | (B == 1)
    if drop_last:
        lone = B == 1
    empty = (N < B) & drop_last
    kinds = np.where(lone, 1, np.where(empty, 2, 0))
    figure, axes = new_figure(figsize=(7, 3))
    axes.pcolormesh(N, B, kinds, cmap=three_colors, vmin=0, vmax=2, ec="w")
    axes.set(xlabel="samples N", ylabel="batch size B")
    axes.set_yticks([1, 4, 8, 12, 16])
    title = f"{lone.mean():.0%} of these sizes end in a lone sample"
    nothing = f"drop_last: only B = 1 is left, but {empty.mean():.0%} train on"
    axes.set_title(f"{nothing} nothing" if drop_last else title)
    return figure


explore(tail_figure, drop_last=False)

# %% [markdown]
r"""
### The same batches, with workers and without

Chapter 01 gave the loader a generator of its own: the first epoch is the same for any number of workers. With
workers that stay, the second is not. The loader draws a seed for its workers from that generator, once per start
of workers, and without workers in every epoch. Give the generator to the *sampler*. Then each batch has the same samples, if each epoch is read to its end, as `for` reads it
(not `zip`, which may stop before the loader says that it ends). (What a dataset draws itself, such as crops, still differs with the number of workers: seed it with epoch and index. Workers that
stay see an epoch that you write into the dataset later only in memory that they share. The loader itself then draws its seeds from the global
generator, so with workers that stay dropout draws other numbers: give the loader another generator, too.)
"""


# %% cell="order_by_workers"
def three_epochs(workers, to_the_sampler):
    numbers, rng = range(6), torch.Generator().manual_seed(3)
    order = RandomSampler(numbers, generator=rng)
    how = {"sampler": order} if to_the_sampler else {"shuffle": True}
    loader = DataLoader(
        numbers,
        batch_size=6,
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context=forked if workers else None,
        generator=None if to_the_sampler else rng,
        **how,
    )
    return [rows.tolist() for _ in range(3) for rows in loader]


for to_the_sampler in (False, True):
    print("to the", "sampler:" if to_the_sampler else "loader:")
    for workers in (0, 2):
        print(f"   {workers} workers", three_epochs(workers, to_the_sampler))

# %% [markdown]
r"""
## 4 · Measure it on this machine

A dataset on a slow disk: each sample takes 4 ms to arrive (here a pause, which takes a core from nobody). The model takes
25 ms for a batch of 16. Where does the epoch go?
"""


# %%
class SlowDisk(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.zeros(64)


def seconds_of_an_epoch(workers):
    """(waiting, working), timed around a `for` loop."""
    loader = DataLoader(
        SlowDisk(),
        batch_size=16,
        num_workers=workers,
        multiprocessing_context=forked if workers else None,
    )
    begin, stepped = time.perf_counter(), 0.0
    for _rows in loader:
        at = time.perf_counter()
        time.sleep(0.025)
        stepped += time.perf_counter() - at
    return time.perf_counter() - begin - stepped, stepped


# %% cell="measure"
spent = {workers: seconds_of_an_epoch(workers) for workers in (0, 1, 2, 4)}
figure, axes = new_figure(figsize=(6, 2.4))
rows = [f"{workers} workers" for workers in spent]
waits, steps = zip(*spent.values(), strict=True)
axes.barh(rows, steps, color=PALETTE[0], label="the model works")
axes.barh(rows, waits, left=steps, color=PALETTE[1], label="it waits for data")
axes.invert_yaxis()
axes.set(xlabel="one epoch (s)")
axes.set_title(f"Waiting: from {waits[0]:.2f} s to {min(waits):.2f} s")
axes.legend(loc="lower right")
figure

# %% cell="measure_beside_reference"
for workers, (waits, steps) in spent.items():
    name = f"13_data_loading/{workers}_workers_epoch_s"
    beside_reference(name, waits + steps, unit="s", device="cpu")

# %% [markdown]
r"""
Starting workers takes time as well, some hundredths of a second by `fork` and seconds by `spawn`. It is part of the waiting, at
the first batch of each epoch, unless the workers stay. And a loader that is fast enough already is not made better by workers:
handing a batch over costs something, too.

The way to the GPU: 64 MB, from ordinary and from pinned memory. Without a CUDA device there is nothing to pin
for, and the cell times a plain copy.
"""

# %% cell="measure_pinned"
pageable = torch.zeros(2**24)
sources = {"pageable": pageable}
if device.type == "cuda":
    sources["pinned"] = pageable.pin_memory()
for kind, source in sources.items():
    timing = measure_time(
        lambda source=source: source.to(device, copy=True), repeats=5
    )
    print(f"{kind:8} to {device}: {timing}")
    gigabytes = source.nbytes / 1e9 / timing.median_s
    beside_reference(f"13_data_loading/{kind}_gb_per_s", gigabytes, unit="GB/s")

# %% [markdown]
r"""
With a GPU it gave:
"""

# %% cell="recorded_on_a_gpu"
from course_utils import show_recorded

show_recorded(
    {
        f"{kind} to cuda": f"13_data_loading/{kind}_gb_per_s"
        for kind in ("pageable", "pinned")
    },
    unit="GB/s",
    device="cuda",
)

# %% [markdown]
r"""
## 5 · Folklore check

What popular posts say about loaders, run against the PyTorch that is installed here. The cell of each claim ends in an assertion.

> **"*Unexpected bus error in worker … insufficient shared memory*: the container's shared memory is too small for the
> batch."** *Correct.* It is the batches, in the plural: all that wait.
>
> **"The solution: `num_workers=0`."** *Half the story.* It works, and the model waits for every batch. More shared memory
> keeps the workers; smaller batches and less prefetching need less of it.

And a third cure makes the rounds: `set_sharing_strategy("file_system")`. It cures another disease, *too many open files*. Here it
fails like the first: both strategies put the batch into `/dev/shm`. The lines are those of section 1. The sentence about the bus
error still stands in PyTorch's library.
"""

# %% cell="claim_004_13_14"
library = Path(torch.__file__).parent / "lib" / "libtorch_python.so"
if library.exists():
    with library.open("rb") as file:
        text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        known = text.find(b"caused by insufficient shared memory (shm)")
        print("the message is", "there" if known > 0 else "gone")
        assert known > 0
for what, came in outcome.items():
    print(f"{what:24}", came.rpartition(": ")[2])

assert "shared memory" in outcome["2 workers"]
assert "shared memory" in outcome["2 workers, file_system"]
assert outcome["no workers"] == "all batches loaded"
assert outcome["2 workers, 96 MB"] == "all batches loaded"

# %% [markdown]
r"""
> **"If a batch holds a single sample, batch norm raises an error."** *Half the story.*

Only in training, and only with one value per channel. A single *image* has many. In `eval()` nothing is computed from the batch,
unless the layer keeps no running statistics. (Instance norm, which looks at each sample alone, keeps none
by default, and so needs more than one position in both modes.)
"""


# %% cell="claim_004_33"
def works(layer, *shape):
    try:
        layer(torch.zeros(shape))
    except ValueError:
        return False
    return True


verdicts = {
    "training, (1, 3)": works(nn.BatchNorm1d(3), 1, 3),
    "training, (1, 3, 1, 1)": works(nn.BatchNorm2d(3), 1, 3, 1, 1),
    "training, (1, 3, 4, 4)": works(nn.BatchNorm2d(3), 1, 3, 4, 4),
    "training, (2, 3, 1)": works(nn.BatchNorm1d(3), 2, 3, 1),
    "eval, (1, 3)": works(nn.BatchNorm1d(3).eval(), 1, 3),
    "eval, no statistics": works(
        nn.BatchNorm1d(3, track_running_stats=False).eval(), 1, 3
    ),
    "instance norm, eval": works(nn.InstanceNorm2d(3).eval(), 1, 3, 1, 1),
}
for what, fine in verdicts.items():
    print(f"{what:24}", "works" if fine else "ValueError")

raising = [what for what, fine in verdicts.items() if not fine]
assert raising == [
    "training, (1, 3)",
    "training, (1, 3, 1, 1)",
    "eval, no statistics",
    "instance norm, eval",
]

# %% [markdown]
r"""
> **"There is no real remedy. Check beforehand that `samples % batch_size` is fine."** *Wrong.* There is `drop_last=True`.

And a check is easily wrong. A rest of 2 raises nothing (though the two values of a feature become about +1 and −1, or come nearer to 0 where they hardly differ), so it has to ask for a rest of *one*. It overlooks `batch_size=1`, where
the rest is 0 and every batch is a lone sample. And the number of samples is that of the sampler: a filter or a split
over two processes makes it another one. `drop_last` has a hole of its own: with fewer samples than a batch it leaves nothing, and
nothing raises.
"""


# %% cell="claim_004_34"
def lone_batches(num_samples, only=None, **options):
    numbers = Subset(range(num_samples), only or range(num_samples))
    loader = DataLoader(numbers, **options)
    return sum(len(rows) == 1 for rows in loader)


kept = list(DataLoader(features, batch_size=4, drop_last=True))
print("17 samples, batches of 4, drop_last:", len(kept), "batches")
assert len(kept) == math.floor(17 / 4)
print("lone batches, batch size 1:", lone_batches(17, batch_size=1))
odd = range(1, 18, 2)  # what a filter leaves of 18
print("18, filtered, batches of 4:", lone_batches(18, odd, batch_size=4))
share = DistributedSampler(range(10), num_replicas=2, rank=0)
each = lone_batches(10, batch_size=4, sampler=share)
print("10 samples, batches of 4:  ", lone_batches(10, batch_size=4), "lone")
print("the same on 2 processes:   ", each, "lone on each")
nothing = DataLoader(range(30), batch_size=32, drop_last=True)
print("30 samples, batches of 32, drop_last:", len(nothing), "batches")

assert [len(rows) for rows in kept] == [4, 4, 4, 4]
assert lone_batches(18, batch_size=4) == 0  # and 18 % 4 is 2
assert lone_batches(17, batch_size=1) == 17  # and 17 % 1 is 0
assert lone_batches(18, odd, batch_size=4) == 1
assert [lone_batches(10, batch_size=4), each] == [0, 1]
assert len(list(nothing)) == 0

# %% [markdown]
r"""
### Also worth knowing

**A dataset can read a batch at once.** If it has `__getitems__`, the loader calls that with all indices of a batch, in the worker, and collates the list
that comes back. (`Subset` passes it on, `ConcatDataset` does not.) One query of a database or one read of a file then takes the place of 256.
"""


# %% cell="getitems"
class Table(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        raise RuntimeError("Nobody asks for single samples.")

    def __getitems__(self, indices):
        print("read at once:", indices)
        return [10 * index for index in indices]


print([rows.tolist() for rows in DataLoader(Table(), batch_size=4)])

# %% [markdown]
r"""
**`in_order=False`** hands out whatever batch is ready. One slow sample then holds up only what waits in its own worker; but the order hangs on the clock, and a run cannot be
repeated.

**What does not fit on the disk** is streamed: shards of some hundred megabytes, read from start to end and shuffled in a buffer (WebDataset, Hugging Face
`datasets`, MosaicML `streaming`). Images can be decoded on the GPU (`torchvision.io.decode_jpeg(device="cuda")`, DALI). Seeds of workers
are in chapter 01.

**An iterable dataset is copied to every worker.** Each goes through all of it, so with two workers every sample comes
twice. It has to ask `get_worker_info()` which part is its own. Each batches its own part, so each has a rest of its own.
"""


# %% cell="iterable_twice"
class Stream(IterableDataset):
    def __init__(self, shared):
        self.shared = shared

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        if worker and self.shared:
            return iter(range(worker.id, 4, worker.num_workers))
        return iter(range(4))


for shared in (False, True):
    stream = DataLoader(
        Stream(shared), 2, num_workers=2, multiprocessing_context=forked
    )
    numbers = sorted(torch.cat(list(stream)).tolist())
    print("shared out:" if shared else "as it is:  ", numbers)

# %% [markdown]
r"""
**Going on in the middle of an epoch.** A `DataLoader` does not know how far it is. With a sampler that draws its order from a
generator, three things are enough: the generator's state at the start of the epoch, the number of batches done, and a batch sampler
that skips these *before* anything is loaded. It skips in every epoch: make a new loader for the next one. (`torchdata` has a `StatefulDataLoader` with a `state_dict` that does it for you. What else a
resumed run needs is in chapter 12.)
"""


# %% cell="resume_mid_epoch"
class WithoutTheFirst(Sampler):
    """The batches of another sampler, but for the first few."""

    def __init__(self, batches, num_done):
        self.batches, self.num_done = batches, num_done

    def __iter__(self):
        return itertools.islice(iter(self.batches), self.num_done, None)


def epoch_after(num_done, state):
    rng.set_state(state)
    threes = BatchSampler(RandomSampler(range(12), generator=rng), 3, False)
    left = WithoutTheFirst(threes, num_done)
    loader = DataLoader(range(12), batch_sampler=left)
    return [rows.tolist() for rows in loader]


rng = torch.Generator().manual_seed(5)
at_the_start = rng.get_state()
whole, resumed = epoch_after(0, at_the_start), epoch_after(2, at_the_start)
print("whole epoch:", whole)
print("after 2:    ", resumed)
assert resumed == whole[2:]

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Each exercise is judged separately. The datasets are map-style: they have `len(dataset)` and `dataset[i]`.
"""

# %% [markdown] task="make_loaders" title="No lone samples" level="core" minutes=20 builds_on="section 2, chapters 01 and 05"
r"""
Write `make_loaders(train_set, validation_set, batch_size, seed, tail)`, which returns two `DataLoader`s without workers, one to train
a network with batch normalization and one to validate it, so that no training batch holds a single sample.

```python
>>> numbers = torch.arange(9.0)
>>> train, validation = make_loaders(numbers, numbers, batch_size=4, seed=0, tail="merge")
>>> [len(batch) for batch in train], [len(batch) for batch in validation]
([4, 5], [4, 4, 1])
```

- `tail="drop"`: an incomplete last batch of an epoch is left out of training. All samples are shuffled first, so that epochs leave
  out different ones.
- `tail="merge"`: nothing is lost. If the last training batch would hold one sample, that joins the batch before it. Other incomplete
  last batches stay as they are.
- The training order is shuffled, anew in each epoch. It depends on `seed` and on how many epochs came before (each read to its end), on nothing else.
- Where training cannot work, `make_loaders` itself raises a `ValueError`, right away: if `batch_size` is less than 2, if there is one
  sample or none, if `tail="drop"` leaves no batch at all, and if `tail` is another word.
- The validation loader, whatever `tail` is, hands out every sample exactly once, in the order of the dataset, in batches of
  `batch_size`. The last may be smaller, down to one sample.

<details><summary>Hint 1: dropping</summary>

`drop_last=True` does it, for training only. What it does with fewer samples than a batch you have to catch yourself.
</details>
<details><summary>Hint 2: merging</summary>

`batch_sampler=` takes any object that yields lists of indices, anew each time it is gone through, and has a `len`. A class that
inherits from `BatchSampler` gets such lists from `super().__iter__()`.
</details>
<details><summary>Hint 3: an order of its own</summary>

`RandomSampler(train_set, generator=...)` with a generator that nobody else uses.
</details>
<details><summary>Help: the second epoch depends on the validation</summary>

A loader without workers draws a number from its `generator` whenever it is gone through, and from the global one if it has none. Two loaders with one generator disturb each other.
</details>
"""


# %% exercise="make_loaders"
def make_loaders(
    train_set: Dataset,
    validation_set: Dataset,
    batch_size: int,
    seed: int,
    tail: str = "drop",
) -> tuple[DataLoader, DataLoader]:
    """Loaders for training with batch normalization and for validation.

    Args:
        tail: "drop" leaves an incomplete last batch out, "merge" lets a lone
            last sample join the batch before it.
    Raises:
        ValueError: training is not possible.
    """
    ### BEGIN SOLUTION
    if tail not in ("drop", "merge"):
        raise ValueError(f'tail is "drop" or "merge", not {tail!r}.')
    num_samples = len(train_set)
    fewest = batch_size if tail == "drop" else 2
    if batch_size < 2 or num_samples < fewest:
        raise ValueError(
            f"{num_samples} samples in batches of {batch_size} give no batch "
            "that batch normalization can train on."
        )

    class LoneSampleJoins(BatchSampler):
        def __iter__(self):
            batches = list(super().__iter__())
            if len(batches[-1]) == 1:
                batches[-2:] = [batches[-2] + batches[-1]]
            return iter(batches)

        def __len__(self):
            return (len(self.sampler) + self.batch_size - 2) // self.batch_size

    own = torch.Generator().manual_seed(seed)
    order = RandomSampler(train_set, generator=own)
    kind = BatchSampler if tail == "drop" else LoneSampleJoins
    batches = kind(order, batch_size, drop_last=tail == "drop")
    return (
        DataLoader(train_set, batch_sampler=batches),
        DataLoader(validation_set, batch_size),
    )
    ### END SOLUTION


# %% check="make_loaders"
with visible_check("make_loaders"):
    numbers = torch.arange(9.0)
    for tail, sizes in (("drop", [4, 4]), ("merge", [4, 5])):
        train, validation = make_loaders(numbers, numbers, 4, 0, tail)
        expect(f"{tail}, training", [len(batch) for batch in train], sizes)
        expect("validation", [len(b) for b in validation], [4, 4, 1])

# %% grade="make_loaders" points=10

# %% [markdown] task="bytes_ahead" title="How much shared memory" level="more" minutes=16 builds_on="sections 2 and 3"
r"""
Write `bytes_ahead(sample, batch_size, num_workers, prefetch_factor)`, which says how much shared memory the finished batches take that the
workers keep ahead of the model, `prefetch_factor` of them per worker.

```python
>>> image, label = torch.zeros(3, 8, 8, dtype=torch.uint8), 7
>>> bytes_ahead((image, label), batch_size=10, num_workers=2)
8000
```

- `sample` is what `dataset[i]` returns: a tensor, a NumPy array, a number or a string, or dicts, lists and tuples of them, nested as deep
  as you like. All samples are of the same form, and all batches are full.
- Count what PyTorch's own collating makes of `batch_size` such samples: tensors, arrays and NumPy scalars keep their dtype (it refuses some, as scalars of uint64), Python ints
  become int64, floats float64, bools bool. Strings stay strings and count 0.
- A batch is copied together, so a view counts with the elements that it shows, not with the memory behind it.
- With `num_workers=0` no shared memory is taken. `prefetch_factor=None` is 2, as in `DataLoader`.
- It returns the exact number of bytes (not of whole pages), a Python int, and builds no batch of that size for it: a `batch_size` of a hundred million is answered at once.

<details><summary>Hint 1: one tensor</summary>

`tensor.numel() * tensor.element_size()`; for an array `array.nbytes`.
</details>
<details><summary>Hint 2: nested samples</summary>

A function that calls itself for the values of a dict and for the items of a list. Or let `default_collate([sample])` make a batch of one: it has
tensors only, and strings.
</details>
<details><summary>Help: bools count 8</summary>

`isinstance(True, int)` is true in Python. Ask for `bool` first.
</details>
"""


# %% exercise="bytes_ahead"
def bytes_ahead(
    sample: Any,
    batch_size: int,
    num_workers: int,
    prefetch_factor: int | None = None,
) -> int:
    """Bytes of shared memory that the batches ahead of the loop take."""

    ### BEGIN SOLUTION
    def size_of(collated: Any) -> int:
        if isinstance(collated, Tensor):
            return collated.numel() * collated.element_size()
        if isinstance(collated, dict):
            return sum(map(size_of, collated.values()))
        if isinstance(collated, list | tuple):
            return sum(map(size_of, collated))
        return 0

    ahead = 2 if prefetch_factor is None else prefetch_factor
    batch_of_one = default_collate([sample])
    return num_workers * ahead * batch_size * size_of(batch_of_one)
    ### END SOLUTION


# %% check="bytes_ahead"
with visible_check("bytes_ahead"):
    image = torch.zeros(3, 8, 8, dtype=torch.uint8)
    expect("an image", bytes_ahead(image, 10, 1, 1), 1920)
    expect("with 2 workers, 2 ahead", bytes_ahead(image, 10, 2), 7680)
    expect("with its label", bytes_ahead((image, 7), 10, 2), 8000)

# %% grade="bytes_ahead" points=8

# %% [markdown] task="fitting_loader" title="A loader that fits" level="hard" minutes=22 builds_on="sections 2 and 3, exercise 2, chapter 01"
r"""
Write `fitting_loader(dataset, batch_size, batch_bytes, free_bytes, device, seed, num_workers, prefetch_factor)`, which returns a `DataLoader`
whose batches fit into the shared memory that is free.

```python
>>> cpu = torch.device("cpu")
>>> loader = fitting_loader(torch.arange(10), 4, 100, 500, cpu, seed=0, prefetch_factor=8)
>>> loader.num_workers, loader.prefetch_factor
(2, 2)
```

- It needs room for the batches ahead **and for one more**, the one that the training loop holds:
  `(workers * prefetch + 1) * batch_bytes <= free_bytes`. (Nothing else holds a batch.)
- First the workers: as many as fit with one batch ahead each, `num_workers` at most, or none. Then the prefetch factor: as large as fits with
  that many workers, `prefetch_factor` at most.
- Workers, where there are some, stay alive from epoch to epoch; name no start method. Memory is pinned if `device`, a `torch.device`, is a
  CUDA device, otherwise not.
- Every epoch has each sample once, in batches of `batch_size`; the last may be smaller. The order is shuffled, anew in each epoch.
- The order depends on `seed` and on how many epochs came before (each read to its end), on nothing else: **with any number of workers, in every
  epoch, the batches are the same**. (Section 3 shows what breaks this.)

<details><summary>Hint 1: without workers</summary>

`prefetch_factor` and `persistent_workers` raise a `ValueError` there. Collect them in a dict that is empty without workers, and pass it with `**`.
</details>
<details><summary>Hint 2: how many fit</summary>

`free_bytes // batch_bytes` batches have room, one of them is the loop's. What is left is shared out with `//` as well.
</details>
<details><summary>Hint 3: the second epoch</summary>

Give the generator to a sampler, `RandomSampler(dataset, generator=...)`, and not the same to the loader.
</details>
"""


# %% exercise="fitting_loader"
def fitting_loader(
    dataset: Dataset,
    batch_size: int,
    batch_bytes: int,
    free_bytes: int,
    device: torch.device,
    seed: int,
    num_workers: int = 2,
    prefetch_factor: int = 2,
) -> DataLoader:
    """A loader whose batches fit into `free_bytes` of shared memory.

    Args:
        num_workers: at most so many, 0 or more.
        prefetch_factor: at most so many batches ahead per worker, 1 or more.
    """
    ### BEGIN SOLUTION
    room = free_bytes // batch_bytes - 1
    workers = max(0, min(num_workers, room))
    if_any = {}
    if workers > 0:
        if_any["prefetch_factor"] = min(prefetch_factor, room // workers)
        if_any["persistent_workers"] = True
    own = torch.Generator().manual_seed(seed)
    return DataLoader(
        dataset,
        batch_size,
        sampler=RandomSampler(dataset, generator=own),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        **if_any,
    )
    ### END SOLUTION


# %% check="fitting_loader"
with visible_check("fitting_loader"):
    numbers, cpu = torch.arange(10), torch.device("cpu")
    made = fitting_loader(numbers, 4, 100, 500, cpu, 0, prefetch_factor=8)
    chosen = made.num_workers, made.prefetch_factor
    expect("room for 4 batches ahead: workers, prefetch", chosen, (2, 2))
    made = fitting_loader(numbers, 4, 100, 150, cpu, 0)
    expect("room for none: workers", made.num_workers, 0)
    seen = torch.cat(list(made)).sort().values
    expect("the samples of an epoch", seen, numbers)

# %% grade="fitting_loader" points=10

# %% [markdown] task="time_split" title="Where the time goes" level="more" minutes=12 builds_on="section 4"
r"""
Write `time_split(loader, step, clock, synchronize)`, which goes through one epoch, calls `step(batch)` for every batch, and returns two floats: the
seconds in which the model waited for data, and those in which it worked.

```python
>>> now = [0.0]
>>> def slow_loader():
...     for batch in range(3):
...         now[0] += 10.0
...         yield batch
>>> def step(batch):
...     now[0] += 1.0
>>> time_split(slow_loader(), step, clock=lambda: now[0])
(30.0, 3.0)
```

- Waiting is the time within `iter(loader)` and within every `next(...)`, the last one included, which only finds out that there is nothing
  more.
- Working is the time within `step(batch)`. A GPU does its work later: if `synchronize` is given, call it after each step, once. Its time is
  work, too.
- `clock()` gives the time in seconds. Read it as often as you like, and no other clock.
- `loader` is anything that a `for` loop can go through. Take a batch when the one before is done, not earlier, and give each to `step` once.
- An exception of `loader`, `step` or `synchronize` reaches the caller as it is.

<details><summary>Hint 1: by hand</summary>

A `for` loop hides its `next`. Write `batches = iter(loader)` and call `next(batches)` yourself.
</details>
<details><summary>Hint 2: the end</summary>

`next(batches, done)` with an object of your own, `done = object()`, gives that object at the end instead of an exception.
</details>
"""


# %% exercise="time_split"
def time_split(
    loader: Iterable[Any],
    step: Callable[[Any], Any],
    clock: Callable[[], float] = time.perf_counter,
    synchronize: Callable[[], Any] | None = None,
) -> tuple[float, float]:
    """Seconds of waiting for data and of working, in one epoch."""
    ### BEGIN SOLUTION
    waiting = working = 0.0
    nothing_more = object()
    now = clock()
    batches = iter(loader)
    while True:
        batch = next(batches, nothing_more)
        before, now = now, clock()
        waiting += now - before
        if batch is nothing_more:
            return waiting, working
        step(batch)
        if synchronize is not None:
            synchronize()
        before, now = now, clock()
        working += now - before
    ### END SOLUTION


# %% check="time_split"
with visible_check("time_split"):
    hours = itertools.count()  # each look at this clock takes an hour

    def slow_batches():
        for batch in range(3):
            for _ in range(10):
                next(hours)
            yield batch

    waited, worked = time_split(
        slow_batches(), lambda _: None, lambda: float(next(hours))
    )
    assert 30 < waited < 50, "all of the loader's 30 hours are waiting"
    assert worked < 10, "the step took no time, but for looks at the clock"

# %% grade="time_split" points=6

# %% [markdown] task="quiz" title="Reading the signs" level="more" minutes=6 builds_on="sections 1 to 5"
r"""
Write `quiz()`, which answers the six questions below with a dict of one letter each, so that you can read the signs of a loader in trouble.

```python
>>> sorted(quiz())
['cure', 'dropped', 'lone', 'message', 'pinned', 'started']
```

- Each question counts by itself. Capital letters are fine.

**`message`** In a container a worker ends with `unable to allocate shared memory(shm) … No space left on device (28)`. What is full?
(a) The GPU's memory. (b) The disk that holds the dataset. (c) The container's `/dev/shm`. (d) The table of open files.

**`cure`** Which cure keeps the workers, their prefetching and the batch size?
(a) `set_sharing_strategy("file_system")`. (b) `num_workers=0`. (c) `persistent_workers=True`. (d) Starting the container with `--shm-size=2g` or `--ipc=host`.

**`lone`** A network with `BatchNorm1d` on inputs of shape (N, C) is to be trained on N ≥ 1 samples in batches of B, without `drop_last`. When does it fail?
(a) If N % B == 1 or B == 1. (b) If N % B != 0. (c) If N % B == 1, and only then. (d) If N < B.

**`dropped`** 30 samples, batches of 32, `drop_last=True`. What happens in an epoch?
(a) One batch of 30. (b) No batch, and no error. (c) A `ValueError`. (d) A batch of 32 with two samples twice.

**`pinned`** What is pinned memory good for?
(a) The dataset is read faster. (b) Batches take less room on the GPU. (c) With `non_blocking=True` the copy to the GPU can run while the CPU goes on. (d) Batches stay on
the GPU from epoch to epoch.

**`started`** On macOS and Windows a loader with two workers and `collate_fn=lambda rows: rows` fails as soon as it is gone through; in Linux it used to work. Why?
(a) A lambda is too slow for a worker. (b) Workers are started afresh there, and a lambda cannot be pickled. (c) They have no shared memory. (d) They allow one process only.

<details><summary>Hint 1: dropped</summary>

Section 5 runs it.
</details>
<details><summary>Hint 2: lone</summary>

How large is the last batch if B is 1? And what is N % 1?
</details>
"""


# %% exercise="quiz"
def quiz() -> dict[str, str]:
    """One letter for each of message, cure, lone, dropped, pinned and started."""
    ### BEGIN SOLUTION
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }
    ### END SOLUTION


# %% check="quiz"
with visible_check("quiz"):
    given = quiz()
    expect("the number of answers", len(given), 6)
    letters = [str(letter).strip().lower() for letter in given.values()]
    expect("letters from a to d", set(letters) <= set("abcd"), True)

# %% grade="quiz" points=3

# %% [markdown]
r"""
## 7 · Recap

- A training batch of one sample and one value per channel breaks batch norm. Drop the rest or merge the lone sample, in training only; with `batch_size=1`, normalize otherwise. Fewer
  samples than a batch and `drop_last`: nothing is trained, and nothing raises.
- *unable to allocate shared memory* and *bus error* in a worker mean `/dev/shm`. It has to hold workers · prefetch + 1 batches, all others that something still holds, and the dataset's tensors where workers are not forked. Make it larger
  (`--shm-size`, `--ipc=host`) or the need smaller; another sharing strategy changes nothing.
- `prefetch_factor` and `persistent_workers` only with workers. Pinned memory for an accelerator that can pin, and with `non_blocking=True`.
- A generator given to the loader also seeds its workers. Give it to the sampler, and the order is the same with any number of workers, if
  each epoch is read to its end.
- What workers need must be picklable wherever they are not forked. Where they are, large lists are copied bit by bit: use arrays (not of objects).
- Measure before you add workers: the time in `next` is waiting. Load time / step time workers, rounded up, hide it if loading times hardly vary and each has a core.

**Primary sources**

- PyTorch:
  [torch.utils.data](https://docs.pytorch.org/docs/stable/data.html) (workers, pinned memory, platform differences),
  [sharing strategies](https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies),
  [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html),
  [BatchNorm1d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html),
  [reserving shared memory](https://github.com/pytorch/pytorch/pull/161910),
  and the section on Docker in its [README](https://github.com/pytorch/pytorch#docker-image).
- [StatefulDataLoader](https://github.com/pytorch/data/tree/main/torchdata/stateful_dataloader) of torchdata.
- [`docker run --shm-size`](https://docs.docker.com/reference/cli/docker/container/run/), and Python's
  [start methods](https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods).
"""
