# %% [markdown] reading_minutes=30 builds_on="chapter 01, *random states*; chapter 05, *BatchNorm's buffers*; chapter 06, *schedulers*"
r"""
# 12 · Checkpoints

A checkpoint is only as good as what comes back. Most of the ways to get it wrong say
nothing: the run goes on, with a learning rate, an optimizer or a model that is not the one
you saved.

**After this chapter you can**

- write a checkpoint that no kill and no full disk can spoil, and read files without
  unpickling objects of unknown classes;
- stop a run after any step and go on, with the same result to the last bit, and say what
  has to be saved for that;
- load weights that were saved from a wrapper, by another version or for another device, and
  notice when they do not fit;
- keep the best weights of a run, not the last ones by mistake.
"""

# %% setup="imports"
import contextlib
import copy
import io
import math
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from course_utils import expect, seed_everything, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need, together with a second one that comes with
exercise 2. The cells that you only read use a few things more. They write into a folder
of their own, which disappears with this session. The cells that cut off or kill a process
need Linux or macOS, as on Colab.
"""

# %%
import functools
import subprocess
import sys
import warnings
import zipfile
from collections import OrderedDict, defaultdict

import torch.nn.functional as F
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.optim import lr_scheduler

from course_utils import (
    beside_reference,
    digits,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
)

device = pick_device()
workshop = tempfile.TemporaryDirectory()
folder = Path(workshop.name)
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

Four things get lost. Only the first is noticed at once.

### Half a file

A process saves over its own checkpoint and is stopped in the middle: the disk is full, the
time on the cluster is up. We force it, with a limit on how large the files of a child
process may grow.
"""


# %%
def save_with_limit(save, limit):
    """Saves in a child process whose files may not exceed `limit` bytes."""
    import resource  # Windows has none

    with warnings.catch_warnings(action="ignore"):  # threads of the kernel
        child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            save()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


# %% cell="half_a_file"
layer = nn.Linear(64, 64)
last = folder / "last.pt"
torch.save(layer.state_dict(), last)
full_size = last.stat().st_size

save_with_limit(lambda: torch.save(layer.state_dict(), last), full_size // 2)
print(f"{last.stat().st_size} of {full_size} bytes")
try:
    torch.load(last)
except (OSError, RuntimeError) as error:
    print(type(error).__name__ + ":", str(error)[:60])

# %% [markdown]
r"""
The new checkpoint was not finished, and the old one was gone before the first byte of the
new one was written. Days of work lay in that file. The message names no cause: `torch.load` looks
for the index of the file at its end, and the end is missing. Where 100 kB or more of the file are
left, the same fault reads "PytorchStreamReader failed reading zip archive: failed finding central
directory", and then it goes on to say that the file is probably broken.
"""

# %% [markdown]
r"""
### An epoch run twice

The usual recipe keeps three things: weights, optimizer, epoch. We train ten epochs on
handwritten digits, stop after the sixth, and resume as many posts show it.
"""

# %%
data = digits()
images, labels = data.X_train[:512].flatten(1), data.y_train[:512]


def make_run():
    torch.manual_seed(0)
    layers = nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10)
    net = nn.Sequential(*layers)
    adam = torch.optim.AdamW(net.parameters(), lr=0.02)
    schedule = lr_scheduler.CosineAnnealingLR(adam, T_max=20)
    return net, adam, schedule


def one_epoch(net, adam, schedule):
    losses = []
    for indices in torch.randperm(512).split(64):
        loss = F.cross_entropy(net(images[indices]), labels[indices])
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    schedule.step()
    return sum(losses) / len(losses)


# %% cell="popular_recipe"
net, adam, schedule = make_run()
epochs_run = []
for epoch in range(6):
    one_epoch(net, adam, schedule)
    epochs_run.append(epoch)
    popular = {"net": net.state_dict(), "adam": adam.state_dict()}
    torch.save({**popular, "epoch": epoch}, folder / "popular.pt")

net, adam, schedule = make_run()  # a new process
saved = torch.load(folder / "popular.pt")
net.load_state_dict(saved["net"])
adam.load_state_dict(saved["adam"])
rate_first = adam.param_groups[0]["lr"]
for epoch in range(saved["epoch"], 10):
    one_epoch(net, adam, schedule)
    epochs_run.append(epoch)
print("epochs run:", epochs_run)
print(f"the rate fell to {rate_first:.4f}, and then is", end=" ")
print(f"{adam.param_groups[0]['lr']:.4f} at the end; 0.0100 was planned")

# %% [markdown]
r"""
Epoch 5 was run twice: `epoch` is the index of a *finished* epoch. The scheduler began
anew, so the rate at the end is not the planned one. Dropout drew other masks. Nothing
complained.
"""

# %% [markdown]
r"""
### A best model that is the last

`best = net.state_dict()` looks like a copy. It is a dict of the live tensors, and training
changes tensors in place. We keep a "best" after epoch 3 and measure how far it has moved
since.
"""

# %% cell="best_follows"
net, *rest = make_run()
moved = {"state_dict()": [], "deepcopy of it": []}
for epoch in range(10):
    one_epoch(net, *rest)
    if epoch == 2:
        kept = net.state_dict(), copy.deepcopy(net.state_dict())
        at_epoch_3 = net[0].weight.detach().clone()
    if epoch >= 2:
        for name, snapshot in zip(moved, kept, strict=True):
            distance = (snapshot["0.weight"] - at_epoch_3).norm().item()
            moved[name].append(distance)

# %%
line_chart(
    moved,
    title="A state dict follows the live model",
    xlabel="epochs since the snapshot",
    ylabel="distance moved (norm)",
)

# %% [markdown]
r"""
### A load that loads nothing

The weights come from a wrapped model, so every key begins with `module.`. Loading them
raises an error, and `strict=False` makes it go away.
"""

# %% cell="strict_false"
trained, fresh = make_run()[0], make_run()[0]
with torch.no_grad():
    trained[0].weight.add_(1)
wrapped = {
    "module." + key: value for key, value in trained.state_dict().items()
}

report = fresh.load_state_dict(wrapped, strict=False)
changed = not torch.equal(fresh[0].weight, make_run()[0][0].weight)
print("did any weight change?", changed)
print(len(report.missing_keys), "keys missing,", end=" ")
print(len(report.unexpected_keys), "unexpected")

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

**Save** state dicts and plain values, under another name in the same folder. Then rename.
A rename inside one file system is done as a whole or not at all.
"""


# %% cell="shortest_save"
def save_atomically(content, path):
    beside = path.with_name(path.name + ".new")
    torch.save(content, beside)
    os.replace(beside, path)


save_atomically(layer.state_dict(), last)
for share in (0.0, 0.3, 0.6, 0.9):
    limit = int(share * full_size)
    save_with_limit(lambda: save_atomically(layer.state_dict(), last), limit)
    whole = torch.load(last)["weight"].equal(layer.weight)
    print(f"cut off at {share:.0%}: checkpoint whole? {whole}")

# %% [markdown]
r"""
(A power cut is worse than a kill. To survive one, the bytes must have reached the disk
before the rename: write to an open file, then `flush()` and `os.fsync(file.fileno())`. The
rename itself is safe when the folder has been synced too. On a network file system other machines
may see it later.)

**Load** with the defaults of `torch.load`, plus `map_location="cpu"`. By default it reads tensors,
numbers, strings, and lists, tuples, dicts and sets of them, and refuses nearly all else. It is meant to run no code, but its
reader has had holes (CVE-2025-32434 before PyTorch 2.6, CVE-2026-24747 before 2.10). Keep PyTorch
patched, and take weights of strangers as *safetensors*: `safetensors.torch.load_file` reads tensors
and has no pickle at all.

**Resume** in this order:

1. make the model, the optimizer, the scheduler, the scaler (and the averaged model, if there is one);
2. load all their state dicts: weights and moments go to the model's device by themselves;
3. set the random states, in mid-epoch only after the batches that are done have been skipped: `iter(loader)` draws a base seed (with persistent workers only a loader's first one), and the first `next` may draw the order. So give sampler and loader a generator each, and save these as they were at the epoch's start (chapter 13); states must lie on the CPU, also those of a GPU;
4. go on with the step after the last one that was saved.

| what is saved | because without it |
|---|---|
| model | you begin again |
| optimizer | moments and step counts are empty: the first steps of Adam are too large, those of SGD with momentum (without dampening) too small |
| scheduler | the schedule starts over |
| gradient scaler | the scale starts over: steps are skipped, or small gradients lost |
| random states of torch, NumPy, Python, **and of each GPU** | dropout, augmentation and orders differ |
| where you are: step, order of this epoch | samples come twice or never |
| best metric, losses so far | "the best so far" is forgotten |
| averaged weights (`AveragedModel`), if any | the average starts over |
| what is frozen, if that changes in mid-run | no state dict holds `requires_grad`: it is as at the start |

`torch.get_rng_state()` is the generator of the *CPU*. Dropout on a GPU draws from another one, so save
`torch.cuda.get_rng_state_all()` too (an empty list without a GPU) and set it with
`torch.cuda.set_rng_state_all`. The same goes for generators of your own: that of a `DataLoader`
(`get_state()`), and each `np.random.default_rng`, which `np.random.get_state()` does not cover. What loader workers draw is in none of these: seed it with epoch and index (chapter 13).
*To the last bit* also needs deterministic kernels on a GPU (chapter 01), the same hardware, versions and number of threads.

Three things more from practice. Keep the last few checkpoints: the newest may be whole and hold a run
that has diverged. Clusters send SIGTERM before they kill: note it in a signal handler, let loader workers ignore it (in `worker_init_fn`; at the end `del` loaders and iterators that have a name, or the process may never end), and save after
the step. A view saves its whole storage: `torch.save(big[:1])` writes all of `big`, so save
`big[:1].clone()`.

Let us do it with real processes. The script below trains eight steps and saves after each.
Its first process does so twice, and kills itself after five steps of the second run: no
clean-up, no goodbye. A second process goes on.
"""

# %%
script = """
import hashlib, os, signal, sys
from pathlib import Path
import torch
from torch import nn

def run(path, seed, dies_after=None):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    adam = torch.optim.AdamW(net.parameters(), lr=0.05)
    plan = torch.optim.lr_scheduler.OneCycleLR(adam, 0.1, total_steps=20)
    objects, first = {"net": net, "adam": adam, "plan": plan}, 0
    if path.exists():
        saved = torch.load(path)
        for name, one in objects.items():
            one.load_state_dict(saved[name])
        first = saved["next_step"]
        torch.set_rng_state(saved["rng"])
    for step in range(first, 8):
        net(torch.randn(16, 4)).square().mean().backward()
        adam.step(); adam.zero_grad(); plan.step()
        saved = {name: one.state_dict() for name, one in objects.items()}
        saved |= {"next_step": step + 1, "rng": torch.get_rng_state()}
        torch.save(saved, path.with_suffix(".new"))
        os.replace(path.with_suffix(".new"), path)
        if step + 1 == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
    weights = b"".join(p.detach().numpy().tobytes() for p in net.parameters())
    digest = hashlib.sha256(weights).hexdigest()[:16]
    print(f"{path.name}: {8 - first} steps here, digest {digest}", flush=True)

if sys.argv[1] == "first":
    run(Path("whole.pt"), seed=1)
    run(Path("killed.pt"), seed=1, dies_after=5)
else:
    run(Path("killed.pt"), seed=2)
"""
(folder / "worker.py").write_text(script)


def process(*arguments):
    command = [sys.executable, "worker.py", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    return done


# %% cell="killed_for_real"
first = process("first")
print("the first process was ended by signal", -first.returncode)
second = process("second")

whole, resumed = (done.stdout.split()[-1] for done in (first, second))
print("the same to the last bit?", whole == resumed)
assert whole == resumed

# %% [markdown]
r"""
The second process had another seed and made three steps. Its result is that of the eight
steps that nobody stopped. Where a loader draws the order of the samples, that order belongs
in the file too; exercise 2 is about it.
"""

# %% [markdown]
r"""
## 3 · See it

### What is left out, and what it costs

The run of section 1, twenty epochs, stopped after some of them and resumed in "a new
process" with another seed. Choose what the checkpoint held beside the model.
"""


# %% cell="resume_figure"
@functools.cache
def uninterrupted():
    run = make_run()
    losses = [one_epoch(*run) for _ in range(20)]
    return run[0], losses


def resume_figure(stop=8, optimizer=True, scheduler=False, random_states=True):
    run = make_run()
    losses = [one_epoch(*run) for _ in range(stop)]
    held = [copy.deepcopy(one.state_dict()) for one in run]
    draws = torch.get_rng_state()

    run = make_run()
    torch.manual_seed(99)
    chosen = True, optimizer, scheduler
    for one, state, kept in zip(run, held, chosen, strict=True):
        if kept:
            one.load_state_dict(state)
    if random_states:
        torch.set_rng_state(draws)
    losses += [one_epoch(*run) for _ in range(20 - stop)]

    net_at_once, losses_at_once = uninterrupted()
    pairs = zip(run[0].parameters(), net_at_once.parameters(), strict=True)
    apart = max((a - b).abs().max().item() for a, b in pairs)
    figure, axes = new_figure(figsize=(6, 3))
    axes.plot(range(1, 21), losses_at_once, label="never stopped")
    axes.plot(range(1, 21), losses, "--", label="stopped and resumed")
    axes.axvline(stop + 0.5, color="0.7", linewidth=1)
    axes.set(xlabel="epoch", ylabel="training loss (nats)")
    axes.set(xticks=range(0, 21, 4), ylim=(0, None))
    axes.set_title("Resumed, the run is the same to the last bit")
    if apart:
        axes.set_title(f"Resumed, the weights end up to {apart:.2g} apart")
    axes.legend()
    return figure


explore(
    resume_figure,
    stop=range(1, 20),
    optimizer=True,
    scheduler=False,
    random_states=True,
)

# %% [markdown]
r"""
Switch the scheduler on: the difference is exactly 0. Switch the optimizer off: at first the
loss is higher, because AdamW begins again with empty moments and with its first learning rate,
0.02, also where the scheduler comes back. Without the random states the loss looks fine, and the
run is another one.

### The learning rate after a restart

Four ways to get a schedule going again after five of twelve steps. The last two are
popular.
"""

# %%
SCHEDULES = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [3, 6], 0.5),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.8**n),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.8),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 12),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=13),
    "WarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o,
        [
            lr_scheduler.LinearLR(o, 0.1, total_iters=3),
            lr_scheduler.CosineAnnealingLR(o, 9),
        ],
        [3],
    ),
}
WAYS = (
    "load both state dicts",
    "load the optimizer before making the scheduler",
    "set last_epoch to the finished index",
    "set last_epoch to the finished count",
)


def go(sgd, schedule, num_steps):
    rates = []
    for _ in range(num_steps):
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        schedule.step()
    return rates


# %% cell="rates_after_restart"
def rates(kind, way=None):
    """Learning rates of 12 steps, with a restart after 5 unless `way` is None."""
    make = SCHEDULES[kind]
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = make(sgd)
    before = go(sgd, schedule, 12 if way is None else 5)
    if way is None:
        return before
    saved_sgd, saved_schedule = sgd.state_dict(), schedule.state_dict()

    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    if way == WAYS[1]:
        sgd.load_state_dict(saved_sgd)
        schedule = make(sgd)
    else:
        schedule = make(sgd)
        sgd.load_state_dict(saved_sgd)
    if way in WAYS[:2]:
        schedule.load_state_dict(saved_schedule)
    else:
        schedule.last_epoch = 4 if way == WAYS[2] else 5
    return before + go(sgd, schedule, 7)


def agree(kind, way):
    pairs = zip(rates(kind), rates(kind, way), strict=True)
    return all(abs(one - other) < 1e-9 for one, other in pairs)


# %% cell="rates_figure"
def rates_figure(schedule="OneCycleLR", way=WAYS[2]):
    figure, axes = new_figure(figsize=(6, 3))
    places = range(1, 13)
    axes.plot(places, rates(schedule), "o-", label="never stopped")
    axes.plot(places, rates(schedule, way), "s--", label="resumed")
    axes.axvline(5.5, color="0.7", linewidth=1)
    axes.set(xlabel="step", ylabel="learning rate", xticks=places)
    same = "goes on as planned" if agree(schedule, way) else "is off the plan"
    axes.set_title(f"{schedule}: the rate {same}\n({way})")
    axes.legend()
    return figure


explore(rates_figure, schedule=list(SCHEDULES), way=list(WAYS))

# %% cell="rates_table"
print(" " * 19, "load both  opt. first  index  count")
for kind in SCHEDULES:
    marks = ["yes" if agree(kind, way) else "NO" for way in WAYS]
    print(f"{kind:19} {marks[0]:>9} {marks[1]:>11}", end=" ")
    print(f"{marks[2]:>6} {marks[3]:>6}")

# %% [markdown]
r"""
Only the first column is *yes* throughout. Making a scheduler can change the optimizer's
learning rates, so make both before you load either.
"""

# %% [markdown]
r"""
## 4 · Measure it on this machine

How long does a checkpoint take, and what is in it? A model of 3 million weights with AdamW,
saved from the device of this session and read back onto it.
"""

# %%
torch.manual_seed(5)
big = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2048))
big = big.to(device)
big_adam = torch.optim.AdamW(big.parameters())
big(torch.ones(8, 1024, device=device)).sum().backward()
big_adam.step()
content = {"net": big.state_dict(), "adam": big_adam.state_dict()}
big_file = folder / "big.pt"


def save_big():
    save_atomically(content, big_file)


def load_big(**options):
    torch.load(big_file, **{"map_location": device, **options})


# %% cell="measure_checkpoint"
save_time = measure_time(save_big, warmup=1, repeats=5)
load_time = measure_time(load_big, warmup=1, repeats=5)
mapped_time = measure_time(
    lambda: load_big(map_location="cpu", mmap=True), warmup=1, repeats=5
)
size, weights = big_file.stat().st_size, sum(p.nbytes for p in big.parameters())
print(f"weights {weights / 2**20:.1f} MiB, checkpoint {size / 2**20:.1f} MiB")
print("save:", save_time)
print("load:", load_time)
print("load with mmap=True:", mapped_time)
assert 2.9 < size / weights < 3.1

# %% cell="measure_beside_reference"
for name, timing in (("save_ms", save_time), ("load_ms", load_time)):
    beside_reference(f"12_checkpoints/{name}", timing.median_s * 1e3, unit="ms")

# %% [markdown]
r"""
The checkpoint is three times as large as the weights: AdamW keeps two numbers for each. With
`mmap=True` the file is not read but mapped: a tensor's bytes come from the disk when they are
first used. That is quick to begin with, and it helps where only a part is needed. It wants a
path and a file in the default format. Replacing the file by `os.replace` does it no harm; writing
into the file would.
"""

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about checkpoints, run against the PyTorch that is installed here. The cell of each claim
ends in an assertion. If a later version changes the answer, the cell fails, and you know.

`refused` says by which error a call is refused, or that it is not. `there` is where these
cells write.
"""


# %%
def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except Exception as error:
        return type(error).__name__
    return "not refused"


there = folder / "claim.pt"

# %% [markdown]
r"""
> **"`torch.save(obj, f)` takes a model, a tensor or parameters, and a path."**
> *Correct*, and `f` may be a `str`, a `Path` or an open binary file.

The file is a zip archive: a pickle that says what there is, and the bytes of each tensor.
"""

# %% cell="claim_001_23"
layer = nn.Linear(2, 2)
buffer = io.BytesIO()
for f in (str(there), there, buffer):
    torch.save(layer.state_dict(), f)
names = zipfile.ZipFile(there).namelist()
print([name.partition("/")[2] for name in names])

assert zipfile.is_zipfile(buffer)
assert any(name.endswith("data.pkl") for name in names)

# %% [markdown]
r"""
> **"`torch.load(f, map_location=None)` is all there is to reading."** *Outdated.*
>
> **"Save the whole network and read it back with `torch.load`."** *Outdated.*

Since PyTorch 2.6 `weights_only=True` is the default. A pickle can run any code; this reader is
meant to run none. So it refuses models, NumPy's arrays and scalars, a `Path`, a `Namespace`, a
`defaultdict`. Make them plain when you save. For a file that you trust there are
`weights_only=False` and, narrower, a list of classes in `safe_globals`. The first needs the class to be importable under its old name; `safe_globals` takes a class that you hold, also in place of one that is gone: `[(New, "old.module.Name")]`.
"""

# %% cell="claim_001_24_26"
for item in (
    nn.Linear(2, 2),
    np.float64(0.5),
    np.random.get_state(),
    Path("runs"),
    defaultdict(list),
    {"epoch": 3, "rng": torch.get_rng_state(), "python": random.getstate()},
):
    torch.save(item, there)
    verdict = refused(torch.load, there)
    print(f"{type(item).__name__:12} {verdict}")
    plain = type(item) is dict
    assert verdict == ("not refused" if plain else "UnpicklingError")

torch.save(nn.Linear(2, 2), there)
with torch.serialization.safe_globals([nn.Linear]):
    assert type(torch.load(there)) is nn.Linear
assert type(torch.load(there, weights_only=False)) is nn.Linear

# %% [markdown]
r"""
> **"Reading a GPU's file on a machine without one needs `map_location='cpu'`."**
> *Correct.*

We need no GPU to see it. The file only *says* where its tensors were, so we change that, to a
GPU that no machine has. (`mmap=True` is not for such an edited file: its numbers
are no longer aligned in memory.)
"""


# %% cell="claim_001_25"
def say_cuda(path):
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in parts.items():
            # "X", the length as four bytes, the text: a string in a pickle
            content = content.replace(b"X\3\0\0\0cpu", b"X\7\0\0\0cuda:63")
            archive.writestr(one, content)


torch.save(layer.state_dict(), there)
say_cuda(there)
print("without map_location:", refused(torch.load, there))
weight = torch.load(there, map_location="cpu")["weight"]
print("with it:", weight.device)

assert refused(torch.load, there) == "RuntimeError"
assert torch.equal(weight, layer.weight)

# %% [markdown]
r"""
> **"`model = model.load_state_dict(torch.load(path))`."** *Wrong.*

It loads in place and returns a report: which keys were missing, which unexpected (not those of a child replaced by `None`).
"""

# %% cell="claim_001_27"
torch.save(layer.state_dict(), there)
returned = layer.load_state_dict(torch.load(there))
print(returned)
print("called like a model:", refused(returned, torch.ones(1, 2)))

assert refused(returned, torch.ones(1, 2)) == "TypeError"
assert returned.missing_keys == returned.unexpected_keys == []

# %% [markdown]
r"""
> **"A checkpoint is the model, the optimizer and the epoch."** *Half the story.*
>
> **"Both come back by `load_state_dict`."** *Correct*, with four catches.

Scheduler, scaler and random states are missing; the table of section 2 has what each costs. The catches:
an optimizer brings its old settings along (rate, weight decay, `fused`), and a scheduler its `T_max`, over new ones you may have set. The optimizer's
state goes **by position**, not by name. If the same parameters come in another order, and the
shapes happen to agree, each gets another's moments, and no error tells. Loaded, all tensors of the state but `step` take the dtype of a floating-point weight: what was float32 beside
bfloat16 comes back rounded, and NAdam with float64 weights does not go on to the last bit. And where dtype and device
fit nothing is copied: as training goes on, the state dict that you loaded changes.
"""


# %% cell="claim_001_28"
everything = ("net", "adam", "schedule", "rng")


def weights_after(stop, keeps):
    """Trains 6 epochs with a restart; `keeps` says what is loaded."""
    run = make_run()
    for _ in range(stop):
        one_epoch(*run)
    held = [copy.deepcopy(one.state_dict()) for one in run]
    draws = torch.get_rng_state()
    run = make_run()
    torch.manual_seed(99)
    for one, state, name in zip(run, held, everything[:3], strict=True):
        if name in keeps:
            one.load_state_dict(state)
    if "rng" in keeps:
        torch.set_rng_state(draws)
    for _ in range(stop, 6):
        one_epoch(*run)
    return torch.cat([p.detach().flatten() for p in run[0].parameters()])


run = make_run()
for _ in range(6):
    one_epoch(*run)
at_once = torch.cat([p.detach().flatten() for p in run[0].parameters()])
apart = {}
for left_out in (None, *everything[1:]):
    keeps = [one for one in everything if one != left_out]
    drift = (weights_after(3, keeps) - at_once).abs().max().item()
    apart[left_out] = drift
    print(f"without {left_out or 'nothing'}: up to {drift:.3g} apart")

assert apart.pop(None) == 0
assert min(apart.values()) > 0.001

# %% cell="claim_001_29"
here, elsewhere = (nn.Parameter(torch.zeros(2)) for _ in range(2))
adam = torch.optim.AdamW([here, elsewhere], lr=0.1)
here.grad, elsewhere.grad = torch.tensor([1.0, 1.0]), torch.tensor([9.0, 9.0])
adam.step()

other = torch.optim.AdamW([elsewhere, here], lr=0.5)  # the other way round
other.load_state_dict(adam.state_dict())
print("learning rate:", other.param_groups[0]["lr"])
print("first moment of `here`:", other.state[here]["exp_avg"].tolist())

assert other.param_groups[0]["lr"] == 0.1
assert torch.equal(
    other.state[here]["exp_avg"], adam.state[elsewhere]["exp_avg"]
)
two_groups = torch.optim.AdamW([{"params": [here]}, {"params": [elsewhere]}])
assert refused(two_groups.load_state_dict, adam.state_dict()) == "ValueError"

# %% [markdown]
r"""
> **"Begin again at `start_epoch = checkpoint['epoch']`."** *Wrong*, for the usual loop.

The usual loop saves the index of the epoch it has just finished. That epoch is then run a second
time: eleven epochs instead of ten. Save `epoch + 1`, and call it `next_epoch`.
"""

# %% cell="claim_001_30"
checkpoint, trained_epochs = {}, []
for epoch in range(10):
    trained_epochs.append(epoch)
    checkpoint = {"epoch": epoch, "next_epoch": epoch + 1}
    if epoch == 5:
        break
usual = trained_epochs + list(range(checkpoint["epoch"], 10))
right = trained_epochs + list(range(checkpoint["next_epoch"], 10))
print("usual:", usual)
print("right:", right)

assert len(usual) == 11
assert right == list(range(10))

# %% [markdown]
r"""
> **"Set `scheduler.last_epoch = start_epoch` to bring the learning rate up to date."**
> *Wrong.*

It sets a counter. The table of section 3 shows what comes of it. With the index of the finished
epoch most schedules are late by one; with the count of finished epochs most are right, but not
those that hold more than a counter. A state dict is right for all of them.
"""

# %% cell="claim_001_31"
with_dicts, _, with_index, with_count = (
    [kind for kind in SCHEDULES if agree(kind, way)] for way in WAYS
)
print("right with the index:", with_index)
print("wrong with the count:", sorted(set(SCHEDULES) - set(with_count)))

assert with_dicts == list(SCHEDULES)
assert "StepLR" not in with_index
assert "ExponentialLR" in with_index
assert not {"WarmRestarts", "SequentialLR"} & set(with_count)

# %% [markdown]
r"""
> **"Checkpoints from several GPUs have a `module.` before every key, which has to go."**
> *Correct.*

`DataParallel` and `DistributedDataParallel` hold your model as their child `module`. Better than
taking the prefix off later: save `wrapped.module.state_dict()`. With DDP rank 0 alone saves, and the
others wait at a `barrier()` before they read the file: processes that write into one file spoil it.
Each process draws from generators of its own, so this file needs the random states of all of them
(`gather_object`), and each takes its own back.

They are not alone. `torch.compile(model)` puts `_orig_mod.` before the keys; `model.compile()`
does not. `AveragedModel` puts `module.` there *and* adds `n_averaged`, which no plain model knows.
"""

# %% cell="claim_001_40"
plain = nn.Linear(2, 2)
wrappers = {
    "DataParallel": nn.DataParallel(plain),
    "torch.compile": torch.compile(plain),
    "AveragedModel": torch.optim.swa_utils.AveragedModel(plain),
}
for name, wrapper in wrappers.items():
    print(f"{name:14}", list(wrapper.state_dict()))

assert "module.weight" in wrappers["DataParallel"].state_dict()
assert "_orig_mod.weight" in wrappers["torch.compile"].state_dict()
assert "n_averaged" in wrappers["AveragedModel"].state_dict()
plain.compile()
assert list(plain.state_dict()) == ["weight", "bias"]

# %% [markdown]
r"""
> **"The OrderedDict of a state dict cannot be edited."** *Wrong.*
>
> **"Make a new dict with `k[7:]` for the keys that begin with `module.`."** *Half the story.*

A state dict can be edited; it only must not change *while* one iterates over it. The new dict is
right for one prefix, and loses `_metadata`, in which modules keep the version of their format.
PyTorch has a function for it, which works in place, renames the metadata too, and returns nothing.
"""

# %% cell="claim_001_41_42"
edited = nn.DataParallel(nn.BatchNorm1d(2)).state_dict()
for key in list(edited):
    edited[key.removeprefix("module.")] = edited.pop(key)
nn.BatchNorm1d(2).load_state_dict(edited)

given = nn.DataParallel(nn.BatchNorm1d(2)).state_dict()
new = OrderedDict((k[7:], v) for k, v in given.items())
print("metadata in the new dict:", hasattr(new, "_metadata"))
consumed = copy.deepcopy(given)
nothing = consume_prefix_in_state_dict_if_present(consumed, "module.")
print("by the library:", list(consumed)[:2], "and it returns", nothing)


def rename_while_iterating(state_dict):
    for key in state_dict:
        state_dict[key + "_"] = state_dict.pop(key)


assert refused(rename_while_iterating, given) == "RuntimeError"
assert not hasattr(new, "_metadata")
assert list(consumed._metadata) == list(
    nn.BatchNorm1d(2).state_dict()._metadata
)
assert list(consumed) == list(new)

# %% [markdown]
r"""
> **"An unexpected `num_batches_tracked` is BatchNorm's count of batches, new in 0.4.1."**
> *Correct.*
>
> **"The cause is another PyTorch version at saving than at loading."** *Half the story.*

The counter is an int64 buffer without dimensions. Other settings on the two sides give the same
error: here `track_running_stats=False`.
"""

# %% cell="claim_004_21_23"
counted = nn.Sequential(nn.BatchNorm1d(2))
counter = counted[0].num_batches_tracked
counted(torch.ones(4, 2))
print("after one batch:", counter, counter.dtype)
untracked = nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False))
try:
    untracked.load_state_dict(counted.state_dict())
except RuntimeError as error:
    told = str(error)
print(told.splitlines()[-1].strip())

assert counter.dtype == torch.int64
assert counter.shape == ()
assert "Unexpected key(s)" in told
assert "0.num_batches_tracked" in told

# %% [markdown]
r"""
> **"The counter is used when the normalization of a training batch is computed."**
> *Half the story.*

It never enters the output of a training batch. It only weighs the running averages, and only with
`momentum=None`. We tamper with it and look.
"""


# %% cell="claim_004_22"
def after_a_batch(momentum, count):
    torch.manual_seed(22)
    norm = nn.BatchNorm1d(1, momentum=momentum)
    norm.num_batches_tracked.fill_(count)
    out = norm(10 + torch.randn(64, 1))
    return out.detach(), norm.running_mean.item()


for momentum in (0.1, None):
    (out, mean), (tampered, moved) = (
        after_a_batch(momentum, count) for count in (0, 9)
    )
    same = torch.equal(out, tampered)
    print(f"momentum {momentum}: output the same? {same};", end=" ")
    print(f"running mean {mean:.2f} or {moved:.2f}")
    assert same
    assert (mean == moved) == (momentum == 0.1)

# %% [markdown]
r"""
> **"Add the key where it is missing, delete it where there is one too many."** *Outdated.*

Where the file has no metadata, or that of an old version, BatchNorm adds a missing counter itself:
not 0, but the count that the *target* has now (on *meta*, 0). Only a file with today's metadata raises.
"""

# %% cell="claim_004_24"
target = nn.BatchNorm1d(2)
for _ in range(3):
    target(torch.ones(4, 2))
recent = copy.deepcopy(nn.BatchNorm1d(2).state_dict())
del recent["num_batches_tracked"]
old = OrderedDict(recent)  # the metadata is gone

print("with metadata:", refused(target.load_state_dict, recent))
print("without:", target.load_state_dict(old), end=", ")
print("count", target.num_batches_tracked.item())

assert refused(target.load_state_dict, recent) == "RuntimeError"
assert target.num_batches_tracked == 3

# %% [markdown]
r"""
> **"If you are lazy, pass `strict=False`."** *Half the story.*

It hides everything that is missing or left over: section 1 loaded a file of which not one key
fitted. What does not hide is a wrong shape (but for `(1,)` where `()` is wanted, and in lazy layers that have not run, which take any), and even then the
tensors that do fit have been loaded when the error comes. Read the two lists that it returns, and
raise unless they hold just what you expect.
"""

# %% cell="claim_004_25"
source = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 5))
target = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
verdict = refused(target.load_state_dict, source.state_dict(), strict=False)
half_loaded = torch.equal(target[0].weight, source[0].weight)
print("a wrong shape:", verdict, "· first layer loaded?", half_loaded)

misfit = {"module." + k: v for k, v in source.state_dict().items()}
report = target.load_state_dict(misfit, strict=False)
print(len(report.missing_keys), "missing, no error")

assert verdict == "RuntimeError"
assert half_loaded
assert len(report.missing_keys) == len(report.unexpected_keys) == 4

# %% [markdown] cell="claim_004_26"
r"""
> **"Editing PyTorch's own source to get past the error is not advised."** *Correct.*

The edit is gone with the next update, nobody else has it, and every other model of the machine
runs with it. Adapt the state dict, as in exercise 4.
"""

# %% [markdown]
r"""
### Also worth knowing

**Models larger than memory allows twice.** A model made under `torch.device("meta")` has shapes and
no numbers. Loading into it copies nothing, so `load_state_dict` must *put* the file's tensors into
the model: `assign=True`. Make the optimizer afterwards, for the parameters are new objects. A buffer with `persistent=False`
is not in the file and stays on *meta*: make it anew. Weights that were tied are two parameters then: tie them again. And a state dict once loaded with `assign=True` replaces parameters ever after, also with `assign=False`: load `dict(state_dict)`.
"""

# %% cell="assign_to_meta"
torch.save(source.state_dict(), there)
with torch.device("meta"):
    empty = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 5))
weights_on_disk = torch.load(there, mmap=True)
with warnings.catch_warnings(action="ignore"):  # "a no-op", it says
    empty.load_state_dict(weights_on_disk)
print("copied:", empty[0].weight.device)
empty.load_state_dict(weights_on_disk, assign=True)
print("assigned:", empty[0].weight.device)
assert torch.equal(empty[0].weight, source[0].weight)

# %% [markdown]
r"""
**Averaged models.** To load an `AveragedModel`'s file into the plain model, take the prefix off and
drop `n_averaged`, by hand and by name.

**Many processes.** Where no single process holds the whole model (FSDP, tensor parallelism), each
writes its share with `torch.distributed.checkpoint`: `get_state_dict` gathers the state of model and
optimizer *by name*, so that a run can go on with another number of processes; `save` and `load` write
and read a folder of files; `async_save` first copies to the CPU and writes while training goes on.
Chapter 14 has the processes.

**Data in the middle of an epoch.** A `DataLoader` keeps no position. Keep the order yourself, as in
exercise 2, or use `StatefulDataLoader` of the package torchdata, which has a state dict.
"""

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Each exercise is graded by itself, with the set-up cells and what stands in its own cell:
define there whatever else your answer needs. Keep the names and the order of the arguments.
"""

# %% [markdown] task="save_checkpoint" title="Atomic save, safe load" level="core" minutes=18 builds_on="sections 1 and 2"
r"""
Write `save_checkpoint(file, model, optimizer, step, metric)`, which leaves a whole checkpoint behind whatever stops it, and
`load_checkpoint(file, map_location)`, which refuses what is not plain data.

```python
>>> model = nn.Linear(2, 2)
>>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
>>> with tempfile.TemporaryDirectory() as place:
...     save_checkpoint(Path(place) / "last.pt", model, sgd, step=7, metric=np.float64(0.5))
...     checkpoint = load_checkpoint(Path(place) / "last.pt")
...     print(os.listdir(place), sorted(checkpoint), checkpoint["metric"])
['last.pt'] ['metric', 'model', 'optimizer', 'step'] 0.5
```

- The file holds a dict: `"model"` and `"optimizer"` (their state dicts), `"step"` (an `int`) and `"metric"` (a `float`, which
  arrives as a Python float, a NumPy scalar or a tensor without dimensions). `torch.load` with its defaults reads it.
- Saving to a path, a `str` or a `Path`, is atomic. If a full disk or a kill stops it, the path still holds the old
  checkpoint or the new one, whole. An error reaches the caller.
- After a save that worked, the folder holds the checkpoint and no other file of that save.
- `file` may also be an open binary file, which is written or read from its position on and stays open.
- Loading returns the dict, with all tensors on the device that `map_location` says, by default the CPU. What `torch.load` refuses by
  default raises the same `pickle.UnpicklingError`.

<details><summary>Hint 1: atomic</summary>

Write the whole file under another name *in the same folder*, then `os.replace` it to its real
name. `os.replace` either happens or does not.
</details>
<details><summary>Hint 2: the other name</summary>

`f"{file}.partial"` works for a `str` and for a `Path`. `Path(file).with_suffix(".partial")` would
give a file of that very suffix its own name. (Where `last.pt` and `last.pt.partial` are both
somebody's checkpoints, or two runs save to one path, take a name of `tempfile`, remove the file if the save fails, and mind that no other user may read such a file. `torch.save` refuses a name like `.partial`, whose only dot is the first character.)
</details>
<details><summary>Hint 3: is it a path or a file?</summary>

`hasattr(file, "write")` is true for open files and false for a `str` and a `Path`.
</details>
<details><summary>Help: UnpicklingError in a file that I wrote myself</summary>

A NumPy scalar is an object of NumPy's, not a number. `float(metric)` makes one of all three.
</details>
"""


# %% exercise="save_checkpoint"
def save_checkpoint(
    file,  # str, Path or open binary file
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    metric,  # float, NumPy scalar or tensor ()
) -> None:
    """Writes a checkpoint; onto a path all of it or nothing.

    Raises:
        OSError or RuntimeError: it could not be written.
    """
    ### BEGIN SOLUTION
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "metric": float(metric),
    }
    if hasattr(file, "write"):
        torch.save(content, file)
        return
    unfinished = f"{file}.partial"
    torch.save(content, unfinished)
    os.replace(unfinished, file)
    ### END SOLUTION


def load_checkpoint(
    file,  # str, Path or open binary file
    map_location="cpu",
) -> dict:
    """Reads what `save_checkpoint` wrote, with its tensors on this device.

    Raises:
        pickle.UnpicklingError: the file holds more than plain data.
    """
    ### BEGIN SOLUTION
    return torch.load(file, map_location=map_location, weights_only=True)
    ### END SOLUTION


# %% check="save_checkpoint"
with visible_check("save_checkpoint"), tempfile.TemporaryDirectory() as place:
    a_model = nn.Linear(2, 2)
    sgd = torch.optim.SGD(a_model.parameters(), lr=0.1)
    where = Path(place) / "last.pt"
    save_checkpoint(where, a_model, sgd, 7, np.float64(0.5))
    got = load_checkpoint(where)
    expect("the step", got["step"], 7)
    expect("the type of the metric", type(got["metric"]).__name__, "float")
    expect("the bias", got["model"]["bias"], a_model.bias.detach())
    expect("the files left", os.listdir(place), ["last.pt"])

# %% grade="save_checkpoint" points=8

# %% [markdown]
r"""
### A run to resume

The next exercise is about a training run. `Job` says how its parts are made and what one step
is; `train_in_one_go` runs it from beginning to end. Both are set-up cells: you may use them
and need not change them.

A step draws random numbers from three generators: PyTorch's (dropout), NumPy's and Python's.
The scheduler moves after every step. The order of the samples is drawn anew at the beginning
of every epoch, and the last batch of an epoch is shorter than the others.
"""


# %% setup="job"
class Job:
    """A small training run: how its parts are made, and what one step is."""

    num_epochs, num_samples, batch_size = 3, 10, 4  # 3 steps per epoch

    def make_model(self) -> nn.Module:
        layers = nn.Linear(3, 8), nn.Dropout(0.3), nn.Linear(8, 1)
        return nn.Sequential(*layers)

    def make_optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=0.05)

    def make_scheduler(self, optimizer):
        return torch.optim.lr_scheduler.StepLR(optimizer, step_size=4)

    def make_scaler(self):
        scale = {"init_scale": 2.0**10, "growth_interval": 4}
        return torch.amp.GradScaler("cpu", **scale)

    def step(self, model, optimizer, scheduler, scaler, indices: Tensor):
        """Trains on the samples `indices`; returns the loss, a float."""
        x = indices.unsqueeze(1) / torch.tensor([5.0, 7.0, 9.0])
        noise = 0.1 * np.random.standard_normal() * random.choice((-1, 1))
        loss = (model.train()(x) - x.sum(1, True) - noise).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        return loss.item()


def train_in_one_go(job):
    """The run without checkpoints: the trained model, the loss of each step."""
    net = job.make_model()
    optim = job.make_optimizer(net)
    parts = net, optim, job.make_scheduler(optim), job.make_scaler()
    losses = []
    for _ in range(job.num_epochs):
        epoch_order = torch.randperm(job.num_samples)
        for indices in epoch_order.split(job.batch_size):
            losses.append(job.step(*parts, indices))
    return net, losses


# %% [markdown] task="train" title="Resume exactly" level="hard" minutes=36 builds_on="sections 1 to 3, mixed precision (chapter 10)"
r"""
Write `train(job, path)`, which does what `train_in_one_go(job)` does and, if it was killed and is called again, ends **bitwise** as if
nothing had happened.

```python
>>> with tempfile.TemporaryDirectory() as place:
...     _, losses = train(Job(), Path(place) / "run.pt")
...     _, again = train(Job(), Path(place) / "run.pt")  # it is finished: no step is run
>>> len(losses), again == losses
(9, True)
```

- After *every* step it writes a checkpoint to `path`, a `Path`. If `path` exists when `train` is called, it goes on from there, in a new
  process that has other seeds.
- In the end these are bitwise as without a stop: weights and buffers (those of the state dict), **all** losses from the first step on, learning rates, the scaler, the order of
  the samples, and everything that is drawn from `torch`, `np.random` and `random`, also after `train` has returned.
- Steps before the last checkpoint are not run again. A finished run, called once more, runs no step.
- The process may be killed at any moment of a step, or interrupted by an exception that is raised in `job.step`, which comes out of `train`. A run
  that ends before its first checkpoint begins anew.
- Everything comes from this one file, which `torch.load` with its defaults reads. It need not be written atomically: here no kill comes in the middle of a save.

<details><summary>Hint 1: what belongs in it</summary>

Four state dicts; three random states (on a GPU also `torch.cuda.get_rng_state_all()`; here nothing draws
there); the losses; and where you are: the epoch, and the batches
of it that are still to come.
</details>
<details><summary>Hint 2: random states as plain data</summary>

`torch.get_rng_state()` is a tensor and `random.getstate()` a tuple of numbers: both are fine.
`np.random.get_state()` is a tuple with an array in it, which `torch.load` refuses: make a list (`tolist()`) or a tensor of the array.
</details>
<details><summary>Hint 3: the order of things at the start</summary>

Make all four parts first, then load all four: making a scheduler can change learning rates of the
optimizer. Set the random states last: making a model draws numbers.
</details>
<details><summary>Help: the result is right when I stop after an epoch, wrong in the middle of one</summary>

`torch.randperm` was called again. The order of the epoch in which the process died belongs in the
checkpoint, or the random state from before it was drawn.
</details>
<details><summary>Help: after a restart the process ends (*Bus error*, a dead kernel)</summary>

You read the file with `mmap=True`, and `torch.save` writes into it while it is mapped. Read it without. (Sometimes nothing ends, and what you read changes.)
</details>
"""


# %% exercise="train"
def train(job, path: Path) -> tuple[nn.Module, list[float]]:
    """Trains to the end, from the checkpoint at `path` if there is one.

    Returns:
        The trained model, and the loss of every step of the run.
    """
    ### BEGIN SOLUTION
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    parts = [model, optimizer, scheduler, scaler]
    epochs_begun, to_come, losses = 0, [], []
    if path.exists():
        checkpoint = torch.load(path)
        for part, state in zip(parts, checkpoint["parts"], strict=True):
            part.load_state_dict(state)
        epochs_begun = checkpoint["epochs_begun"]
        to_come = checkpoint["to_come"]
        losses = checkpoint["losses"]
        name, keys, *rest = checkpoint["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(checkpoint["python"])
        torch.set_rng_state(checkpoint["torch"])

    while to_come or epochs_begun < job.num_epochs:
        if not to_come:
            order = torch.randperm(job.num_samples)
            to_come = list(order.split(job.batch_size))
            epochs_begun += 1
        losses.append(job.step(*parts, to_come.pop(0)))
        name, keys, *rest = np.random.get_state()
        checkpoint = {
            "parts": [part.state_dict() for part in parts],
            "epochs_begun": epochs_begun,
            "to_come": to_come,
            "losses": losses,
            "numpy": [name, keys.tolist(), *rest],
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(checkpoint, path)
    return model, losses
    ### END SOLUTION


# %% check="train"
class Killed(BaseException):
    """Ends a run of the visible check, as a kill would."""


class ShortJob(Job):
    steps_left = 4

    def step(self, *parts):
        if self.steps_left == 0:
            raise Killed
        self.steps_left -= 1
        return super().step(*parts)


with visible_check("train"), tempfile.TemporaryDirectory() as place:
    where = Path(place) / "run.pt"
    seed_everything(0)
    model_at_once, losses_at_once = train_in_one_go(Job())
    seed_everything(0)
    with contextlib.suppress(Killed):
        train(ShortJob(), where)
    seed_everything(99)
    got_model, got_losses = train(Job(), where)
    expect("the losses", got_losses, losses_at_once, rtol=0, atol=0)
    for key, weight in model_at_once.state_dict().items():
        expect(key, got_model.state_dict()[key], weight, rtol=0, atol=0)

# %% grade="train" points=16

# %% [markdown] task="strip_prefix" title="A prefix, and what only looks like it" level="more" minutes=6 builds_on="section 5"
r"""
Write `strip_prefix(state_dict, prefix="module.")`, which returns a new dict whose keys have lost a wrapper's prefix.

```python
>>> sorted(strip_prefix({"module.fc.weight": torch.ones(1), "head.bias": torch.zeros(1)}))
['fc.weight', 'head.bias']
```

- A key that begins with `prefix` loses it, once. Every other key stays as it is.
- `prefix` may be any string: `"module."`, `"_orig_mod."`, `"ema_"` without a dot, the empty one.
- What stands further inside stays: `module.block.module.weight` becomes `block.module.weight`.
- The values are the same: the tensors themselves or copies.
- The caller's dict stays as it was.

<details><summary>Hint 1: strings</summary>

`str.removeprefix` removes a prefix where it is one. `lstrip` removes *characters*, and `replace`
looks everywhere.
</details>
<details><summary>Hint 2: the function of the library</summary>

`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present` does it in place and returns
nothing. It changes `_metadata` too, which `copy.copy` shares with the original; `dict(...)` and `.copy()` leave it behind.
And renaming in place loses a tensor where the new name of one is the old name of another: make a new dict.
</details>
"""


# %% exercise="strip_prefix"
def strip_prefix(
    state_dict: dict[str, Tensor], prefix: str = "module."
) -> dict[str, Tensor]:
    """The state dict with one leading `prefix` taken off the keys that have it."""
    ### BEGIN SOLUTION
    return {
        name.removeprefix(prefix): tensor for name, tensor in state_dict.items()
    }
    ### END SOLUTION


# %% check="strip_prefix"
with visible_check("strip_prefix"):
    one, two = torch.ones(1), torch.zeros(1)
    given = {"module.fc.weight": one, "head.bias": two}
    got = strip_prefix(given)
    expect("the keys", sorted(got), ["fc.weight", "head.bias"])
    expect("the value of fc.weight", got["fc.weight"], one)
    expect("your caller's keys", list(given), ["module.fc.weight", "head.bias"])

# %% grade="strip_prefix" points=3

# %% [markdown] task="load_across_versions" title="Strict, but for the counters" level="more" minutes=14 builds_on="section 5, BatchNorm's buffers (chapter 05)"
r"""
Write `load_across_versions(model, state_dict)`, which loads strictly but lets BatchNorm's counters be missing or left over.

```python
>>> model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
>>> saved = dict(model.state_dict())
>>> del saved["1.num_batches_tracked"]
>>> load_across_versions(model, saved)
(['1.num_batches_tracked'], [])
```

- A counter is a key whose last part, between the dots, is `num_batches_tracked`. It may belong to any module.
- A counter that the model has and the file has not becomes **0**, whatever the model's was before. One that the file has and the model has
  not is left out. Counters that both have are loaded.
- Anything else that is missing, left over or of another shape raises a `RuntimeError`, a `KeyError` or a `ValueError`. (A tensor of shape `(1,)`
  where `()` is wanted may pass, as it does in PyTorch.)
- It returns two lists of names, in any order: the counters that were filled in, and those that were left out.
- The caller's state dict stays as it was, and the model's parameters stay the same objects.

<details><summary>Hint 1: compare keys first</summary>

`model.state_dict().keys() - state_dict.keys()` are the names that are missing; the other way
round, the names left over. Both are sets.
</details>
<details><summary>Hint 2: let PyTorch be strict</summary>

Make a *new* dict in which the counters are right, and load it with `strict=True`. Then whatever
has to raise does so by itself. (Where modules have formats of their own, take over its `_metadata`; here none has.)
</details>
<details><summary>Help: whose files have no counters?</summary>

Frozen normalizations of their own class (torchvision's `FrozenBatchNorm2d`), files converted from other
frameworks and those from before PyTorch 0.4.1 have no `num_batches_tracked`. (An `nn.BatchNorm2d` that
is frozen has it still.)
</details>
<details><summary>Help: the counter is not 0 but what the model had</summary>

Where a file has no `_metadata`, or that of an old version, BatchNorm fills in a missing counter
itself: with its own present value. Put a zero into the dict before loading.
</details>
"""


# %% exercise="load_across_versions"
def load_across_versions(
    model: nn.Module, state_dict: dict[str, Tensor]
) -> tuple[list[str], list[str]]:
    """Loads strictly, but for BatchNorm's counters.

    Returns:
        The counters set to 0, and the counters of the file that were left out.

    Raises:
        RuntimeError, KeyError or ValueError: anything else does not fit.
    """
    ### BEGIN SOLUTION
    own = model.state_dict()
    counters = {
        name
        for name in own.keys() | state_dict.keys()
        if name.split(".")[-1] == "num_batches_tracked"
    }
    filled = sorted(counters - state_dict.keys())
    left_out = sorted(counters - own.keys())
    adapted = {k: v for k, v in state_dict.items() if k not in left_out}
    for name in filled:
        adapted[name] = torch.tensor(0)
    model.load_state_dict(adapted, strict=True)
    return filled, left_out
    ### END SOLUTION


# %% check="load_across_versions"
with visible_check("load_across_versions"):
    trained = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    trained(torch.ones(4, 2))
    old_file = dict(
        nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict()
    )
    del old_file["1.num_batches_tracked"]
    got = load_across_versions(trained, old_file)
    expect("what you return", got, (["1.num_batches_tracked"], []))
    expect("the counter", trained[1].num_batches_tracked, torch.tensor(0))
    expect("the weight", trained[0].weight.detach(), old_file["0.weight"])

# %% grade="load_across_versions" points=6

# %% [markdown] task="best_weights" title="Keep the best weights" level="more" minutes=12 builds_on="section 1"
r"""
Write the class `BestWeights`, which keeps a copy of a model's weights from the epoch with the best metric, while the model trains
on.

```python
>>> model = nn.Linear(1, 1)
>>> best = BestWeights(model, mode="max")
>>> for metric in (-3.0, -1.0, -2.0):
...     _ = nn.init.constant_(model.bias, metric)
...     print(best.update(metric))
True
True
False
>>> best.restore()
>>> best.metric, model.bias.item()
(-1.0, -1.0)
```

- With `mode="max"` the largest metric is best, with `"min"` the smallest.
- `update(metric)` is called after each epoch, with the metric of the model as it is now: a float, or a tensor without dimensions. It
  returns `True` if this is the best so far, else `False`. Of two equal ones the earlier stays the best.
- NaN is never the best.
- `metric` is the best metric so far as a Python float, `None` before there is one.
- `restore()` loads the best weights, with the buffers of the state dict, back into the same model, whose parameters stay the same objects. If nothing has been
  kept, it raises a `RuntimeError`.

<details><summary>Hint 1: a snapshot</summary>

`model.state_dict()` is a dict of the live tensors, and so is its `.copy()`. `copy.deepcopy` copies
the tensors too.
</details>
<details><summary>Hint 2: NaN</summary>

`<`, `>` and `==` with NaN are false. Ask `math.isnan` first, or `metric == metric`.
</details>
<details><summary>Hint 3: the first</summary>

Begin with `None` and not with 0: a metric may be negative.
</details>
"""


# %% exercise="best_weights"
class BestWeights:
    """Keeps a model's weights from the epoch with the best metric.

    Attributes:
        metric: the best so far, a float; None before there is one.
    """

    def __init__(self, model: nn.Module, mode: str = "max"):
        ### BEGIN SOLUTION
        self.model, self.sign = model, {"max": 1, "min": -1}[mode]
        self.metric, self.weights = None, None
        ### END SOLUTION

    def update(self, metric) -> bool:
        """Keeps the weights if the metric is the best so far, and says so."""
        ### BEGIN SOLUTION
        value = float(metric)
        if math.isnan(value):
            return False
        known = self.metric
        if known is not None and self.sign * value <= self.sign * known:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True
        ### END SOLUTION

    def restore(self) -> None:
        """Loads the best weights into the model; RuntimeError if there are none."""
        ### BEGIN SOLUTION
        if self.weights is None:
            raise RuntimeError("no metric has been the best yet")
        self.model.load_state_dict(self.weights)
        ### END SOLUTION


# %% check="best_weights"
with visible_check("best_weights"):
    a_model = nn.Linear(1, 1)
    best = BestWeights(a_model, mode="max")
    for bias, metric in ((1.0, -3.0), (2.0, -1.0), (3.0, -2.0)):
        nn.init.constant_(a_model.bias, bias)
        best.update(metric)
    best.restore()
    expect("the best metric", best.metric, -1.0)
    expect("the bias restored", a_model.bias.item(), 2.0)

# %% grade="best_weights" points=5

# %% [markdown]
r"""
## 7 · Recap

- State dicts and plain values, written under another name in the same folder, then `os.replace`. Against a power cut: `os.fsync` before it.
- `torch.load` with its defaults unpickles no objects of unknown classes; weights of strangers come as safetensors. `float(metric)` and `tolist()` for NumPy's random
  state keep the file readable. `map_location` says where tensors go; random states must stay on the CPU.
- Resume: make all, load all, set the random states (in mid-epoch after the done batches have been skipped), go on with the *next* step. Model, optimizer,
  scheduler, scaler, the random states (on a GPU its own too), the order of the epoch, and what you have logged.
- `scheduler.last_epoch` is a counter. An optimizer's state goes by position.
- `removeprefix` for `module.` and `_orig_mod.` (a new dict has no `_metadata`); better, save the model without its wrapper.
- `strict=False` hides; read the two lists that it returns.
- `state_dict()` is live. `copy.deepcopy` makes a snapshot of it.

**Primary sources**

- PyTorch: [Saving and loading
  models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html),
  [Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html),
  [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html),
  [load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html),
  [Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html),
  [torch.distributed.checkpoint](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html).
- Python: [os.replace](https://docs.python.org/3/library/os.html#os.replace), atomic where POSIX is, and
  [pickle](https://docs.python.org/3/library/pickle.html), whose first warning is the reason for
  `weights_only`.
"""
