# %% [markdown] reading_minutes=25 builds_on="chapter 00, *how to work and submit*"
r"""
# 01 · Reproducibility

A run that cannot be repeated cannot be debugged, and a difference between two runs says
nothing. Seeds are one line. Most of what goes wrong lies beside that line.

**After this chapter you can**

- seed every global source of random numbers, and say what a seed does not reach;
- draw numbers in the middle of a run without making it another run;
- keep the order of the samples, and the noise of loader workers, under one seed;
- set the flags that make kernels repeatable, or fast, and put them back.
"""

# %% setup="imports"
import contextlib
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need, with a small dataset that comes with exercise 3.
The cells that you only read use a few things more. Those with loader workers ask for `fork`, so that
a dataset defined in a notebook reaches them; section 2 says why. (Windows has no `fork`: there these cells raise; go on with the next one.)
"""

# %%
import hashlib
import pickle
import subprocess
import sys
import warnings
from time import perf_counter
from unittest import mock

import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector

from course_utils import (
    annotated_matrix,
    beside_reference,
    digit_mlp,
    digits,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
)

device = pick_device()
cudnn = torch.backends.cudnn
two_workers = {"num_workers": 2, "multiprocessing_context": "fork"}
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

Three runs that were seeded, and are not under control.

### A preview that changes the training

We train on handwritten digits. The seed is set once, at the start. After the third epoch
somebody looks at a noisy image. Nothing of it is used for training.
"""

# %%
data = digits()
images, labels = data.X_train[:512], data.y_train[:512]


def weights_by_epoch(preview=None):
    """The weights after each of 8 epochs; `preview()` runs after the third."""
    torch.manual_seed(0)
    net = digit_mlp()
    sgd = torch.optim.SGD(net.parameters(), lr=0.2)
    weights = []
    for epoch in range(8):
        for rows in torch.randperm(512).split(64):
            sgd.zero_grad()
            F.cross_entropy(net(images[rows]), labels[rows]).backward()
            sgd.step()
        if epoch == 2 and preview:
            preview()
        weights.append(parameters_to_vector(net.parameters()).detach())
    return torch.stack(weights)


# %% cell="preview_changes_training"
def noisy_image():
    return images[0] + 0.1 * torch.randn(1, 8, 8)


def noisy_image_aside():
    guard = torch.random.fork_rng()
    with guard:
        return noisy_image()


undisturbed = weights_by_epoch()
distance = {
    name: (weights_by_epoch(preview) - undisturbed).norm(dim=1).tolist()
    for name, preview in (
        ("drawn in the run", noisy_image),
        ("drawn in fork_rng", noisy_image_aside),
    )
}
assert max(distance["drawn in fork_rng"]) == 0 < distance["drawn in the run"][3]

# %%
line_chart(
    distance,
    x=range(1, 9),
    title="One preview after epoch 3, and it is another run",
    xlabel="epoch",
    ylabel="distance of the weights (norm)",
)

# %% [markdown]
r"""
The preview took 64 numbers from the global generator, so the next `randperm` gave another
order. With the same seed. Under `torch.random.fork_rng()` the numbers are given back, and
the run is the same to the last bit.

### A flag that does nothing

A popular recipe for fast convolutions:
"""

# %% cell="flag_that_does_nothing"
before = cudnn.enabled, cudnn.benchmark, cudnn.deterministic
cudnn.enable = True
after = cudnn.enabled, cudnn.benchmark, cudnn.deterministic
print("enabled, benchmark, deterministic:", after)
print("did a flag change?", after != before)
del cudnn.enable

# %% [markdown]
r"""
There is no flag `enable`. Python adds the attribute, and nobody reads it. A slip of the pen, as in
`cudnn.benchmrk`, says just as little.

### Noise that repeats

A dataset keeps a generator of its own, which is good style. Two workers load it, two epochs
long.
"""


# %%
class NoisyNumbers(Dataset):
    """0, 1, 2, ... with noise from a generator that the dataset holds."""

    def __init__(self, size=8):
        self.size = size
        self.noise = np.random.default_rng(0)

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index, self.noise.integers(100)


def noise_by_worker(worker_init_fn=None):
    """What two workers drew in two epochs: 4 rows of 4 draws."""
    loader = DataLoader(
        NoisyNumbers(),
        batch_size=4,
        worker_init_fn=worker_init_fn,
        **two_workers,
    )
    return [noise.tolist() for _ in range(2) for _, noise in loader]


# %% cell="noise_repeats"
drawn = noise_by_worker()
assert drawn[0] == drawn[1] == drawn[2] == drawn[3]

rows = [f"epoch {e}, worker {w}" for e in (1, 2) for w in (0, 1)]
annotated_matrix(
    drawn,
    title="Every worker draws the same noise",
    row_labels=rows,
    column_labels=["1st", "2nd", "3rd", "4th"],
    xlabel="draw of the worker",
)

# %% [markdown]
r"""
Each epoch starts new workers. Each worker gets a copy of the dataset as it is in the main
process, generator included (tensors are shared after `share_memory_()`, and where workers are not forked; on Linux a `torch.Generator` by default reaches forked workers only). There it never moves on.
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

**Seed** three generators with one number, before the model is made. PyTorch's own covers the
CPU and every GPU. (NumPy's and the CPU's are of one kind. With one number they draw the same whole numbers of 32 or 64 bits where the range is a power of two, up to 2²⁴: `np.random.randint(2)` and
`torch.randint(2, ())` flip one coin. Where two draws must not depend on each other, make both with one library.)
"""

# %% cell="shortest_seed"
fix_seed = 2021
random.seed(fix_seed)
np.random.seed(fix_seed)
torch.manual_seed(fix_seed)
print(random.random(), np.random.rand(), torch.rand(()).item())

# %% [markdown]
r"""
| a seed reaches | a seed does not reach |
|---|---|
| `random.random()`, `np.random.rand()`, `torch.rand(3)` | `np.random.default_rng()`, `random.Random()`, `torch.Generator()` made elsewhere |
| `torch.rand(3, device="cuda")` on every GPU | the order in which threads add up, above all a GPU's; the number of the CPU's threads |
| dropout, initial weights, a loader's shuffle | the order of a `set` of strings (`PYTHONHASHSEED`, read when Python starts) |
| base seeds of loader workers | a generator that a dataset holds |

**Keep apart** what must not be disturbed, and what must not disturb. The loader gets a generator
of its own. It does not reach a `sampler=` that you pass: give that one of its own, too (a `DistributedSampler` takes a `seed`, and `set_epoch` before each epoch). What draws on the side does so under `fork_rng`, which puts PyTorch's global generators
back, and only those.
"""

# %% cell="shortest_loader"
own = torch.Generator().manual_seed(7)
loader = DataLoader(range(10), batch_size=10, shuffle=True, generator=own)
for _ in range(2):
    print(next(iter(loader)).tolist())

# %% [markdown]
r"""
**Workers.** PyTorch seeds `torch`, `random` and `np.random` in each worker when it starts. A
generator held by the dataset it does not know. `worker_init_fn` runs in the worker and can seed it
from `get_worker_info()`. (Its `dataset` may be a `Subset`, as of `random_split`: a generator set there nobody reads; it
belongs to `info.dataset.dataset`.)

Every pass through a loader, even without workers, draws a base seed, with `shuffle=True` before the order: from the loader's
generator, else from the global one. With `persistent_workers=True` it is drawn once, so from the second
epoch on the order is another one than with workers that end with the epoch. Chapter 13 gives the generator
to the sampler, and the loader another.

How a worker starts decides what may reach it. `fork` copies the process, classes and functions of a notebook
included: Linux does that up to Python 3.13. Since Python 3.14 Linux starts workers by `forkserver`; Windows and macOS use `spawn`.
With these two the dataset and `worker_init_fn` are pickled: they have to stand at the top level of a module that can be imported, not in another function.
A script also starts its loop under `if __name__ == "__main__":`, as workers import it.
On Linux `multiprocessing_context="fork"` asks for the old way.
"""


# %% cell="shortest_worker"
def seed_the_noise(worker_id):
    info = torch.utils.data.get_worker_info()
    info.dataset.noise = np.random.default_rng(info.seed)


torch.manual_seed(1)
for row, draws in zip(rows, noise_by_worker(seed_the_noise), strict=True):
    print(row, draws)


# %% cell="start_methods"
def started_by(method):
    """What comes of a worker whose function stands in another function."""

    def nothing_to_seed(worker_id):
        pass

    numbers = DataLoader(
        range(4),
        num_workers=1,
        worker_init_fn=nothing_to_seed,
        multiprocessing_context=method,
    )
    with warnings.catch_warnings(action="ignore"):
        try:
            return f"{len(list(numbers))} samples"
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            return f"{type(error).__name__}: {str(error)[:45]} ..."


outcomes = {method: started_by(method) for method in ("fork", "spawn")}
for method, outcome in outcomes.items():
    print(f"{method:6}", outcome)
assert outcomes["fork"] == "4 samples" != outcomes["spawn"]

# %% [markdown]
r"""
**Kernels.** Two flags for cuDNN, and one switch for PyTorch's own operations:

| setting | for repeatable runs | for speed at fixed shapes |
|---|---|---|
| `torch.backends.cudnn.benchmark` | `False` | `True` |
| `torch.backends.cudnn.deterministic` | `True` | `False` |
| `torch.use_deterministic_algorithms(...)` | `True` | `False` |

With the switch on, an operation of PyTorch's list without a deterministic way raises an error and says so,
outside of compiled code. The list does
not hold kernels that others wrote (CUDA, Triton), nor the order in which several GPUs add up. On a GPU, older versions of PyTorch ask for `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment; set it before the first CUDA call.
"""

# %% cell="shortest_switch"
torch.use_deterministic_algorithms(True)
try:
    torch.zeros(3).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))
except RuntimeError as error:
    print(str(error).partition(", but")[0])
torch.use_deterministic_algorithms(False)

# %% [markdown]
r"""
(`put_` writes two numbers to one place. Which of them stays is a matter of who comes last.)

## 3 · See it

### A draw moves the whole stream

The order of 16 samples, epoch for epoch. Somebody draws a few numbers before the first epoch.
Choose how many, and whether the loader has a generator of its own.
"""


# %% cell="order_figure"
def epoch_orders(extra_draws, own_generator, num_epochs=4):
    torch.manual_seed(3)
    own = torch.Generator().manual_seed(3) if own_generator else None
    loader = DataLoader(range(16), 16, shuffle=True, generator=own)
    torch.rand(extra_draws)
    return torch.stack([next(iter(loader)) for _ in range(num_epochs)])


def order_figure(extra_draws=1, own_generator=False):
    planned = epoch_orders(0, own_generator)
    orders = epoch_orders(extra_draws, own_generator)
    moved = orders != planned
    figure, axes = new_figure(figsize=(6, 2.6))
    axes.imshow(moved, aspect="auto", vmin=0, vmax=1.6, cmap="Blues")
    for (row, column), sample in np.ndenumerate(orders.numpy()):
        axes.text(column, row, sample, ha="center", va="center")
    axes.set(xlabel="place in the epoch", ylabel="epoch")
    axes.set_xticks(range(16), range(1, 17))
    axes.set_yticks(range(4), range(1, 5))
    axes.set_title(
        f"Extra draws: {extra_draws}; {int(moved.sum())} of 64 places hold "
        "another sample (blue)"
    )
    return figure


explore(order_figure, extra_draws=range(6), own_generator=False)

# %% [markdown]
r"""
Tick the box: no draw reaches the order any more.

### The same numbers, in another order

A sum of floats depends on the order of its terms. On a CPU that order mostly follows from how the work is cut up: from
the number of threads, not from which of them is first. Kernels that add atomically may do so in another order each time, and no seed fixes it: many
on a GPU, and with several threads a few on a CPU, such as the gradient of `x[ids]` in float32. Here we choose the order ourselves: 200 times the same 20,000 numbers.
"""

# %% cell="sums_by_order"
torch.manual_seed(0)
terms = torch.randn(20_000)
exact = terms.double().sum().item()
errors = [
    terms[torch.randperm(20_000)].sum().item() - exact for _ in range(200)
]
kinds = len(set(errors))
print(f"{kinds} different sums")
assert kinds > 1

# %%
figure, axes = new_figure(figsize=(5, 2.6))
places, counts = np.unique(errors, return_counts=True)
axes.bar(1e6 * places, counts, width=2)
axes.axvline(0, color="0.5", linewidth=1)
axes.set(xlabel="error of the float32 sum (millionths)", ylabel="orders")
axes.set_title(f"200 orders of the same numbers have {kinds} sums")
figure

# %% [markdown]
r"""
The bars stand apart: float32 has no number between two of them. What training makes of such differences depends on the run. After some hundred
small steps they may still be near the last bit. Steps that are nearly too large magnify them, until it is another network. So repeatable to the last bit needs seeds *and* kernels with a fixed order.

## 4 · Measure it on this machine

What does determinism cost? One training step of a convolution, with each of the settings. (`benchmark` gets sizes of its own, of the same area: cuDNN keeps what it
chose for a set of sizes, whatever the flag says later.)
"""

# %%
torch.manual_seed(4)
convolution = nn.Conv2d(16, 32, 3, padding=1).to(device)


def timed(height, benchmark=False, deterministic=False, everywhere=False):
    batch = torch.randn(8, 16, height, 1024 // height, device=device)

    def one_step():
        convolution.zero_grad()
        convolution(batch).square().mean().backward()

    now = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
    torch.use_deterministic_algorithms(everywhere, warn_only=True)
    timing = measure_time(one_step, warmup=30, repeats=7)
    torch.use_deterministic_algorithms(False)
    cudnn.benchmark, cudnn.deterministic = now
    return timing


# %% cell="measure_settings"
timings = {
    "default": timed(32),
    "benchmark": timed(16, benchmark=True),
    "deterministic": timed(32, deterministic=True),
    "everywhere": timed(32, deterministic=True, everywhere=True),
}
for setting, timing in timings.items():
    print(f"{setting:14}", timing)

# %%
for setting, timing in timings.items():
    beside_reference(
        f"01_reproducibility/{setting}_ms", timing.median_s * 1e3, unit="ms"
    )

# %% [markdown]
r"""
On a CPU the first three are alike, but for what else the machine is doing: nobody reads cuDNN's flags there. The switch of the fourth does something there, too (section 5), and here costs next to nothing. The next cell adds a
million numbers into eight places, twenty times, and counts the different results. On a CPU, uncompiled, `index_add` has
one. On a GPU without the switch you may see more.
"""

# %% cell="measure_index_add"
generator = torch.Generator().manual_seed(5)
values = torch.randn(1_000_000, generator=generator).to(device)
where = torch.randint(8, (1_000_000,), generator=generator).to(device)


def distinct_results(everywhere):
    torch.use_deterministic_algorithms(everywhere, warn_only=True)
    results = {
        tuple(
            torch.zeros(8, device=device).index_add(0, where, values).tolist()
        )
        for _ in range(20)
    }
    torch.use_deterministic_algorithms(False)
    return len(results)


print("by default:", distinct_results(False), "different results")
print("with the switch:", distinct_results(True))

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about reproducibility, run against the PyTorch that is installed here. Each code cell
ends in an assertion. Where a claim needs a GPU, the text says so.

> **"Equal seeds do not give equal results on different hardware."** *Correct.*

It takes no second machine. PyTorch has code for several kinds of CPU, and an environment variable
chooses the plainest. A process with that choice stands for an older computer. (A GPU has another
generator altogether, and another release of PyTorch may draw otherwise, too.)
"""

# %% cell="claim_002_02"
program = """
import hashlib, torch
torch.manual_seed(0)
drawn = torch.randn(1000)
print(torch.backends.cpu.get_cpu_capability(), end=" ")
print(hashlib.sha256(drawn.numpy().tobytes()).hexdigest()[:12])
"""


def on_cpu_kind(kind):
    environment = os.environ | ({"ATEN_CPU_CAPABILITY": kind} if kind else {})
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, env=environment, text=True).split()


(here, digest), (plain, digest_plain) = (
    on_cpu_kind(None),
    on_cpu_kind("default"),
)
print(f"{here}: {digest}, {plain}: {digest_plain}")
assert here == plain or not here.startswith("AVX") or digest != digest_plain

# %% [markdown]
r"""
> **"On the same device the results should repeat."** *Half the story.*

With the same number of threads and deterministic kernels they do. The number of threads decides how
a sum is cut up. Thirty sums of a million numbers, with one thread and with two:
"""


# %% cell="claim_002_03"
def sum_with(num_threads, numbers):
    usual = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    total = numbers.sum().item()
    torch.set_num_threads(usual)
    return total


changed = again = 0
for seed in range(30):
    numbers = torch.randn(
        1_000_000, generator=torch.Generator().manual_seed(seed)
    )
    one = sum_with(1, numbers)
    changed += one != sum_with(2, numbers)
    again += one == sum_with(1, numbers)
print(f"another sum with two threads: {changed} of 30")
print(f"the same sum with one thread: {again} of 30")

assert changed > 0
assert again == 30

# %% [markdown]
r"""
> **"Seed `random`, NumPy and PyTorch at the start of the program."** *Correct.*

And know what that leaves out. A `default_rng()` takes its seed from the operating system. The hashes
of strings, and with them the order of a set, follow `PYTHONHASHSEED`, which counts only when Python
starts.
"""


# %% cell="claim_002_04"
def first_draws(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    drawn = random.random(), np.random.rand(), torch.rand(()).item()
    return drawn, np.random.default_rng().random()


(drawn, aside), (drawn_again, aside_again) = first_draws(5), first_draws(5)
print("the three generators repeat:", drawn == drawn_again)
print("a default_rng repeats:", aside == aside_again)

show = [sys.executable, "-c", "print(hash('seed'))"]
hashes = [
    subprocess.check_output(show, env={**os.environ, "PYTHONHASHSEED": value})
    for value in ("1", "1", "2")
]
print("a hash follows PYTHONHASHSEED:", hashes[0] != hashes[2])

assert drawn == drawn_again
assert aside != aside_again
assert hashes[0] == hashes[1] != hashes[2]

# %% [markdown]
r"""
> **"Seed the GPUs as well: `torch.cuda.manual_seed_all(0)`, after `fix_seed = 2021` for the rest."**
> *Wrong.*

`torch.manual_seed` has seeded the GPUs already. The second line is not needed, and with its own
number it does harm: change `fix_seed`, and the GPUs draw as before. We need no GPU to see it: a
stand-in takes down what arrives.
"""

# %% cell="claim_002_05"
with mock.patch("torch.cuda.manual_seed_all") as seed_gpus:
    torch.manual_seed(2021)
    torch.cuda.manual_seed_all(0)
arrived = [call.args[0] for call in seed_gpus.call_args_list]
print("seeds that reach the GPUs:", arrived)

assert arrived == [2021, 0]

# %% [markdown]
r"""
> **"For determinism set `cudnn.deterministic = True` and `cudnn.benchmark = False`."**
> *Half the story.*
>
> **"`deterministic = True` takes the wobble away."** *Half the story.*

They are the right flags, and both are needed: the one keeps cuDNN to deterministic kernels, the other
lets every run choose the same of them. But cuDNN is only a part. `put_` passes unseen; the switch
stops it.
"""


# %% cell="claim_002_06_14"
def put_is_refused():
    try:
        torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2))
    except RuntimeError:
        return True
    return False


usual = cudnn.deterministic, cudnn.benchmark
cudnn.deterministic, cudnn.benchmark = True, False
with_flags = put_is_refused()
cudnn.deterministic, cudnn.benchmark = usual
torch.use_deterministic_algorithms(True)
with_switch = put_is_refused()
torch.use_deterministic_algorithms(False)
print("refused with cuDNN's flags:", with_flags)
print("refused with the switch:", with_switch)

assert with_switch
assert not with_flags

# %% [markdown] cell="claim_002_07"
r"""
> **"cuDNN uses nondeterministic algorithms. `cudnn.enabled = False` disables them."**
> *Half the story* (needs a GPU; from the documentation).

It disables cuDNN, all of it. Convolutions then run on slower kernels, whose determinism nobody has
promised. `deterministic = True` keeps cuDNN and leaves out only the algorithms in question.
"""

# %% [markdown]
r"""
> **"`cudnn.enable = True` lets the auto-tuner find the fastest algorithm."** *Wrong.*

No such flag. The tuner is `benchmark = True`.

PyTorch's own `torch.backends.cudnn.flags(...)` is a context manager for the real ones, and has a trap:
what you do not name is set to a default, and that of `enabled` is `False`.
"""

# %% cell="claim_002_08"
real = "enabled", "benchmark", "deterministic"
there_before = hasattr(cudnn, "enable")
values_before = [getattr(cudnn, name) for name in real]
cudnn.enable = not cudnn.enabled
values_after = [getattr(cudnn, name) for name in real]
del cudnn.enable
with cudnn.flags(deterministic=True):
    enabled_inside = cudnn.enabled
print("was there an `enable`?", there_before)
print("did a real flag change?", values_after != values_before)
print("enabled, in flags(deterministic=True):", enabled_inside)

assert not there_before
assert values_after == values_before
assert not enabled_inside

# %% [markdown]
r"""
> **"The tuner costs time at the start, to search for each layer, and then speeds up."** *Correct.*
>
> **"It helps when input shapes stay fixed."** *Correct.*
>
> **"It hurts when shapes keep changing."** *Correct.*
>
> All three need a GPU; without one they rest on the documentation.

The search is made anew for every new set of sizes. `cudnn.benchmark_limit` caps how many algorithms
are tried. On a GPU the cell shows the first call with new sizes beside the second.
"""


# %% cell="claim_002_09_10_11"
def ms_of_one_call(picture):
    torch.cuda.synchronize()
    start = perf_counter()
    convolution(picture)
    torch.cuda.synchronize()
    return 1e3 * (perf_counter() - start)


if device.type == "cuda":
    cudnn.benchmark = True
    for size in (40, 44, 48):
        picture = torch.randn(32, 16, size, size, device=device)
        first, second = ms_of_one_call(picture), ms_of_one_call(picture)
        print(f"size {size}: {first:.2f} ms at first, then {second:.2f} ms")
    cudnn.benchmark = False
else:
    print("no GPU here: nothing to tune")

# %% [markdown] cell="claim_002_12"
r"""
> **"With `benchmark = False` no nondeterministic algorithm is used."** *Wrong* (needs a GPU; from the
> documentation).

It makes the *choice* deterministic: every run picks the same algorithm, unless it has been tuned for these sizes before. That one may itself be
nondeterministic, unless `deterministic = True` forbids it.
"""

# %% [markdown] cell="claim_002_13"
r"""
> **"In benchmark mode each forward pass differs a little, by chance."** *Half the story* (needs a GPU;
> from the documentation and PyTorch's source).

A thread keeps the winner for each set of sizes, and uses it from then on, also when the flag is off again. So set the flag before the first convolution. It is *between* runs
that the clock may prefer another algorithm, which rounds differently.
"""

# %% [markdown] cell="claim_004_16"
r"""
> **A link to PyTorch's page on reproducibility.** *Half the story.* The page is right, and short. On what your
> loader's workers draw it has some code and a link to another page, which the end of this chapter names.
"""

# %% [markdown]
r"""
### Also worth knowing

**Warn first.** `use_deterministic_algorithms(True, warn_only=True)` warns where the switch alone would
stop. A good first step in an old project: it lists what would have to go.

**Memory that nobody wrote.** While the switch is on, `torch.empty`, outside of compiled code, is filled with NaN, with the
largest integer, or with True (a few types, such as those of four bits, raise an error). Reading memory before writing it is then seen, and repeats. It costs a little time:
`torch.utils.deterministic.fill_uninitialized_memory = False` turns it off.
"""

# %% cell="warn_and_fill"
torch.use_deterministic_algorithms(True, warn_only=True)
with warnings.catch_warnings(record=True, action="always") as caught:
    refused = put_is_refused()
    unwritten = torch.empty(2)
torch.use_deterministic_algorithms(False)
print("refused:", refused, "· warnings:", len(caught))
print("torch.empty:", unwritten)
assert not refused
assert len(caught) == 1
assert unwritten.isnan().all()

# %% [markdown]
r"""
**`torch.compile`.** Its tuner may choose kernels by the clock, as cuDNN's does. `use_deterministic_algorithms(True)` also stops that
where the choice would change the numbers: it sets a flag of the compiler, for the calling thread alone. `torch.set_deterministic_debug_mode` does not set it. (The flag is private; so it is in the PyTorch that
is installed here.)

**TF32.** On NVIDIA cards since Ampere, convolutions and cuDNN's recurrent layers round float32 inputs to 10 bits by default, matrix products do not. That is
not random. It repeats, and differs from a CPU. `torch.backends.cudnn.conv.fp32_precision = "ieee"`
(and `rnn` for `conv`) asks for full float32 there, `"tf32"` for speed. Such names came with PyTorch 2.9; `allow_tf32` is the older one. After `"ieee"` there, what reads `allow_tf32` raises an error: `cudnn.flags(...)`, among others, and in 2.13 `torch.export`. Who needs these sets `torch.backends.cudnn.allow_tf32 = False` instead, and passes the same to `flags`, which by default puts TF32 on.

**The size of the batch.** Another number of rows may mean another kernel, which adds in another order. So a sample alone and the same sample
in a batch can differ in the last bits, with all seeds and switches set.
"""

# %% cell="compiler_and_batch"
from torch._inductor import config as compiler

states_of_the_flag = []
for turn in (
    torch.use_deterministic_algorithms,
    lambda on: torch.set_deterministic_debug_mode(2 * on),
):
    turn(True)
    states_of_the_flag.append(compiler.deterministic)
    turn(False)
print("the compiler's flag, by the switch and by the debug mode:")
print(states_of_the_flag)
assert states_of_the_flag == [True, False]

torch.manual_seed(6)
matrix, batch_of_64 = torch.randn(512, 512), torch.randn(64, 512)
in_the_batch = (batch_of_64 @ matrix)[0]
alone = (batch_of_64[:1] @ matrix)[0]
print("the same row to the last bit:", torch.equal(in_the_batch, alone))
assert torch.allclose(in_the_batch, alone, atol=1e-4)

# %% [markdown]
r"""
**A digest of the weights.** To see whether two runs are the same, compare bits, not losses with four
digits.
"""

# %% cell="digest"
for run in range(2):
    final = weights_by_epoch()[-1]
    print(
        f"run {run}:", hashlib.sha256(final.numpy().tobytes()).hexdigest()[:12]
    )

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is graded,
hidden ones look at everything that folds open under *All that is checked*. Each exercise is judged
separately. Keep the names and the order of the arguments.
"""

# %% [markdown] task="set_seed" title="One seed for everything" level="core" minutes=14 builds_on="sections 1 and 2"
r"""
Write `set_seed(seed)` and `seeded_run(seed, make_model, epoch, num_epochs)`, so that a whole run
depends on one number.

```python
>>> make_model, epoch = lambda: nn.Linear(1, 1), lambda model: torch.rand(()).item()
>>> _, once = seeded_run(11, make_model, epoch, num_epochs=2)
>>> _, again = seeded_run(11, make_model, epoch, num_epochs=2)
>>> once == again, once[0] == once[1]
(True, False)
```

- `set_seed` seeds `random`, NumPy's global generator and PyTorch, every GPU included, with `seed`
  itself. It changes no flag: flags are the matter of exercise 2.
- `seed` is an `int` from 0 to 2**32 - 1, both included. Any other `int` raises a `ValueError`, and then
  *none* of the generators has been seeded.
- `seeded_run` seeds everything, makes the model by `make_model()`, then calls `epoch(model)`
  `num_epochs` times. `make_model` and `epoch` may draw from any of the three generators.
- It returns a tuple: the model and the list of what `epoch` returned.

<details><summary>Hint 1: the order of things</summary>

Look first, seed then: a check of `seed` at the beginning has nothing to undo. NumPy refuses a seed
outside its range by itself, PyTorch and `random` take negative ones.
</details>
<details><summary>Hint 2: GPUs</summary>

`torch.manual_seed` seeds all of them.
</details>
<details><summary>Help: all my epochs return the same</summary>

They are seeded one by one. Seed once, at the very beginning.
</details>
"""


# %% exercise="set_seed"
def set_seed(seed: int) -> None:
    """Seeds `random`, NumPy and PyTorch, every device included.

    Raises:
        ValueError: `seed` is outside 0 .. 2**32 - 1; nothing was seeded.
    """
    ### BEGIN SOLUTION
    if not 0 <= seed < 2**32:
        raise ValueError(f"NumPy takes no seed like {seed}.")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    ### END SOLUTION


def seeded_run(
    seed: int,
    make_model: Callable[[], nn.Module],
    epoch: Callable[[nn.Module], Any],
    num_epochs: int,
) -> tuple[nn.Module, list]:
    """A run that depends on `seed` alone.

    Returns:
        The model, and what `epoch(model)` returned, epoch by epoch.
    """
    ### BEGIN SOLUTION
    set_seed(seed)
    model = make_model()
    return model, [epoch(model) for _ in range(num_epochs)]
    ### END SOLUTION


# %% check="set_seed"
def three_draws():
    return random.random(), np.random.rand(), torch.rand(()).item()


with visible_check("set_seed"):
    set_seed(11)
    once = three_draws()
    set_seed(11)
    expect("random's draw, seeded again", three_draws()[0], once[0])
    set_seed(11)
    expect("NumPy's draw, seeded again", three_draws()[1], once[1])
    set_seed(11)
    expect("PyTorch's draw, seeded again", three_draws()[2], once[2])
    _, results = seeded_run(
        11, lambda: nn.Linear(1, 1), lambda model: torch.rand(()).item(), 2
    )
    assert results[0] != results[1], "both epochs drew the same number"

# %% grade="set_seed" points=6

# %% [markdown] task="reproducible" title="Flags that exist" level="more" minutes=14 builds_on="section 2, kernels; section 5"
r"""
Write the context managers `reproducible(warn_only)` and `tuned()`, which set three flags for a `with`
block and put back what they found.

```python
>>> with reproducible():
...     torch.backends.cudnn.benchmark, torch.are_deterministic_algorithms_enabled()
(False, True)
>>> with tuned():
...     torch.backends.cudnn.benchmark, torch.are_deterministic_algorithms_enabled()
(True, False)
```

- Inside `reproducible()`, `torch.backends.cudnn.benchmark` is False, `torch.backends.cudnn.deterministic`
  is True and the switch `torch.use_deterministic_algorithms` is on. Inside `tuned()` each is the opposite.
- With `warn_only=True` operations that are not deterministic warn; by default they raise, whatever the
  setting was before.
- All other settings stay as they were, inside too, but for what the switch sets itself. Nothing is seeded or drawn.
- When the block is left, the three settings are what they were when it was *entered*, also if the block
  changed them, and if it ends in an exception, which reaches the caller.
- The blocks may be nested in any way.

<details><summary>Hint 1: how the switch stands</summary>

`torch.are_deterministic_algorithms_enabled()` and
`torch.is_deterministic_algorithms_warn_only_enabled()`.
</details>
<details><summary>Hint 2: a context manager from a generator</summary>

`@contextlib.contextmanager` runs what stands before `yield` on entering, and what stands after it on
leaving. After an exception that is true only in a `finally`.
</details>
<details><summary>Hint 3: cudnn.flags</summary>

Rather assign. `torch.backends.cudnn.flags(...)` sets more than three flags: what you do not pass may go to a default of its
own (`help(torch.backends.cudnn.flags)` lists all that there is). It knows nothing of the switch.
</details>
"""


# %% exercise="reproducible"
@contextlib.contextmanager
def reproducible(warn_only: bool = False) -> Iterator[None]:
    """Inside: deterministic kernels only; those without one raise, or warn."""
    ### BEGIN SOLUTION
    backend = torch.backends.cudnn
    flags_before = backend.benchmark, backend.deterministic
    switch_before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    backend.benchmark, backend.deterministic = False, True
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        backend.benchmark, backend.deterministic = flags_before
        torch.use_deterministic_algorithms(switch_before, warn_only=only_warned)
    ### END SOLUTION


@contextlib.contextmanager
def tuned() -> Iterator[None]:
    """Inside: cuDNN picks the fastest kernel for each new set of sizes."""
    ### BEGIN SOLUTION
    backend = torch.backends.cudnn
    flags_before = backend.benchmark, backend.deterministic
    switch_before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    backend.benchmark, backend.deterministic = True, False
    torch.use_deterministic_algorithms(mode=False)
    try:
        yield
    finally:
        backend.benchmark, backend.deterministic = flags_before
        torch.use_deterministic_algorithms(switch_before, warn_only=only_warned)
    ### END SOLUTION


# %% check="reproducible"
def settings_now():
    return {
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "the switch": torch.are_deterministic_algorithms_enabled(),
    }


with visible_check("reproducible"):
    outside = settings_now()
    for manager, wanted in ((reproducible, False), (tuned, True)):
        with manager():
            inside = settings_now()
        name = manager.__name__
        expect(f"benchmark in {name}", inside["cudnn.benchmark"], wanted)
        expect(
            f"deterministic in {name}",
            inside["cudnn.deterministic"],
            not wanted,
        )
        expect(f"the switch in {name}", inside["the switch"], not wanted)
        expect(f"the settings after {name}", settings_now(), outside)

# %% grade="reproducible" points=6

# %% [markdown]
r"""
### A dataset with a generator of its own

`Jittered` is a set-up cell for exercise 3: numbers, with noise from the generator that the dataset
holds.
"""


# %% setup="jittered"
class Jittered(Dataset):
    """(value, value + noise); the noise comes from `rng`."""

    def __init__(self, values: Tensor) -> None:
        self.values = values  # float64, shape (n,)
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> tuple[Tensor, float]:
        value = self.values[index]
        return value, value.item() + self.rng.normal()


# %% [markdown] task="make_loader" title="Order and noise under one seed" level="hard" minutes=24 builds_on="sections 1 and 2"
r"""
Write `make_loader(dataset, batch_size, seed, num_workers)`, a shuffling `DataLoader` whose order depends on `seed` alone and whose
workers' noise comes again with it, and `isolated(seed)`, a context manager for whatever draws on the side.

```python
>>> numbers = Jittered(torch.arange(6.0, dtype=torch.float64))
>>> one, two = make_loader(numbers, 6, seed=1), make_loader(numbers, 6, seed=1)
>>> [values.tolist() for values, _ in one] == [values.tolist() for values, _ in two]
True
>>> coming = torch.random.get_rng_state()
>>> with isolated(seed=2):
...     drawn = torch.rand(3)
>>> torch.equal(torch.random.get_rng_state(), coming)
True
```

- Every epoch has another order. The same seed gives the same orders again, with any number of workers (of epochs that are read to
  their end) and whatever others draw from the global generators. The loader leaves these as they are.
- Some datasets have an attribute `rng`, a NumPy `Generator` from which the samples draw, as in `Jittered`.
  Each worker of each epoch draws other numbers from it, and the same seed gives them again (to as many workers, and batches of the same size).
- In the main process the dataset keeps its `rng`: with `num_workers=0` the samples draw from it, and that
  is all that happens to it.
- Inside `isolated(seed)`, `random`, NumPy's global generator and PyTorch, every GPU included, have just been
  seeded with `seed`. `seed` is an `int` from 0 to 2**32 - 1, here as for `make_loader`.
- When the block is left, all of them are in the state in which it was *entered*, also if it ends in an
  exception, which reaches the caller.

<details><summary>Hint 1: order</summary>

The `generator` of a `DataLoader` serves its shuffle and the base seeds of its workers.
</details>
<details><summary>Hint 2: noise</summary>

`worker_init_fn(worker_id)` runs in the worker when it starts: in every epoch, unless
`persistent_workers=True` keeps the workers. There
`torch.utils.data.get_worker_info()` has the worker's copy of the dataset, and a seed that differs
between workers and epochs.
</details>
<details><summary>Hint 3: states</summary>

`random.getstate()`, `np.random.get_state()`; for PyTorch `torch.random.fork_rng()` does both the
keeping and the putting back, GPUs included. (With several it warns, unless `devices=` names those you use.)
</details>
<details><summary>Help: every epoch has the same order</summary>

The generator is made, or seeded, at the start of each epoch. Make it once, with the loader.
</details>
"""


# %% exercise="make_loader"
def make_loader(
    dataset: Dataset, batch_size: int, seed: int, num_workers: int = 0
) -> DataLoader:
    """A loader whose order, and whose workers' noise, come again with `seed`."""

    ### BEGIN SOLUTION
    def start_worker(worker_id: int) -> None:
        worker = torch.utils.data.get_worker_info()
        if hasattr(worker.dataset, "rng"):
            worker.dataset.rng = np.random.default_rng(worker.seed)

    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
        num_workers=num_workers,
        worker_init_fn=start_worker,
        generator=torch.Generator().manual_seed(seed),
    )
    ### END SOLUTION


@contextlib.contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Inside, all global generators are seeded; afterwards they are as before."""
    ### BEGIN SOLUTION
    state_of_random, state_of_numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(state_of_random)
            np.random.set_state(state_of_numpy)
    ### END SOLUTION


# %% check="make_loader"
def two_orders(loader):
    return [
        torch.cat([values for values, _ in loader]).tolist() for _ in range(2)
    ]


with visible_check("make_loader"):
    numbers = Jittered(torch.arange(20.0, dtype=torch.float64))
    one_order = two_orders(make_loader(numbers, 6, seed=1))
    another_loader = make_loader(numbers, 6, seed=1)
    torch.rand(5)
    expect("the orders after a draw", two_orders(another_loader), one_order)
    assert one_order[0] != one_order[1], "both epochs have the same order"
    coming = random.getstate()[1], np.random.get_state()[1].tolist()
    with isolated(2):
        random.random(), np.random.rand(), torch.rand(3)
    left = random.getstate()[1], np.random.get_state()[1].tolist()
    assert left == coming, "the state of random or NumPy changed"

    def jitter_by_worker():
        two = make_loader(numbers, 5, seed=1, num_workers=2)
        two.multiprocessing_context = "fork"
        return [(noisy - plain).tolist() for plain, noisy in two]

    if "fork" in torch.multiprocessing.get_all_start_methods():
        jitter = jitter_by_worker()
        assert jitter[0] != jitter[1], "two workers drew the same noise"
        expect("the noise of a second loader", jitter_by_worker(), jitter)

# %% grade="make_loader" points=10

# %% [markdown]
r"""
## 7 · Recap

- One number seeds `random`, NumPy and PyTorch, once, before the model is made. PyTorch's seed
  reaches the GPUs.
- It does not reach generators of your own, the order in which threads add, hashes of strings.
- A draw on the side moves everything after it. Give loaders (and samplers) a generator of their own, and draw on
  the side under a guard that puts all three states back.
- Workers get copies, but of shared memory; those that are not forked share every tensor, and on Linux by default cannot read a dataset with a `torch.Generator`. A generator that the dataset holds must be seeded in the worker.
- `benchmark` chooses, `deterministic` restricts, `use_deterministic_algorithms` covers the operations that
  PyTorch lists, outside of compiled code, and, in the calling thread, the choices of the compiler's tuner that change the numbers.
- To repeat to the last bit, keep seed, machine, versions and number of threads, and use kernels with a fixed order. Say so
  beside a result.

**Primary sources**

- PyTorch: [Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html),
  [use_deterministic_algorithms](https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html),
  [torch.utils.deterministic](https://docs.pytorch.org/docs/stable/deterministic.html),
  [torch.backends.cudnn](https://docs.pytorch.org/docs/stable/backends.html),
  [torch.random](https://docs.pytorch.org/docs/stable/random.html),
  [randomness in multi-process data
  loading](https://docs.pytorch.org/docs/stable/data.html#randomness-in-multi-process-data-loading).
- NumPy: [random generators](https://numpy.org/doc/stable/reference/random/generator.html) and
  [seeding in parallel](https://numpy.org/doc/stable/reference/random/parallel.html).
- Python: [PYTHONHASHSEED](https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED).
"""
