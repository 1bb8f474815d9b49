# %% [markdown] reading_minutes=20 builds_on="all chapters; the table below says which trick comes from where"
r"""
# 15 · Capstone: one run with all of it

Fourteen chapters, one trick at a time. A real run needs them together, and together they have
opinions about each other: clipping must know about the scaler, the schedule about steps that were
left out, the checkpoint about everything.

**After this chapter you can**

- say which tricks get into each other's way, and in which order they belong;
- write one training run with seeds, mixed precision, accumulation, clipping, a schedule, frozen
  parts and checkpoints;
- kill it at any moment, go on, and end with the same bits;
- report what it did, and count nothing twice;
- run the same step on two processes.
"""

# %% setup="imports"
import contextlib
import copy
import json
import math
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import expect, seed_everything, visible_check

# %% setup="config"
CONFIG = {
    "frozen": ["stem"],  # parts that stay as they are (chapter 07)
    "lr": 0.01,  # the highest rate (06)
    "warmup_steps": 6,
    "num_steps": 48,  # of the optimizer, as planned
    "weight_decay": 0.05,  # of matrices and kernels
    "max_norm": 1.0,  # of the gradient (08)
    "dtype": torch.float16,  # of autocast, or None (10)
    "num_epochs": 4,
    "save_every": 5,  # steps (12)
    "keep": 2,  # checkpoints
}

# %% [markdown]
r"""
The two cells above and one more, which comes with exercise 3, are all that the exercises need. The cells that you only read use a few things more.
They start processes of their own and write into a folder that disappears with this session. Killing needs Linux or macOS, as on Colab.
"""

# %%
import inspect
import shutil
import signal
import subprocess
import sys
import time
from collections import OrderedDict

from course_utils import (
    PALETTE,
    beside_reference,
    digits,
    explore,
    measure_time,
    new_figure,
)

workshop = tempfile.TemporaryDirectory()
folder = Path(workshop.name)
print("torch", torch.__version__)

# %% [markdown]
r"""
| trick | where it stands in the run | chapter |
|---|---|---|
| seeds, random states | before anything is made; in every checkpoint | 01, 12 |
| labels as class numbers, losses as sums | the step | 03 |
| normalization with the right statistics | frozen parts in eval mode | 05, 07 |
| a schedule per optimizer step, parameter groups | set-up; after each step that was made | 06 |
| freezing by name | set-up; at the beginning of each epoch | 07 |
| clipping the true gradient | between unscale and step | 08 |
| accumulation over ragged micro-batches | the step | 09 |
| autocast and loss scaling | the step | 10 |
| means over samples, the best epoch | evaluation, report | 11 |
| atomic checkpoints, exact resume, best weights | the loop | 12 |
| the order of the samples from seed and epoch | the loop | 01, 13 |
| several processes | around the step | 14 |

## 1 · The problem, seen going wrong

Every trick below is right by itself. We take a small network that has learnt the digits 0 to 4, and prepare
to fine-tune it on 5 to 9, with its first block frozen.
"""


# %%
def block(channels, out):
    conv = nn.Conv2d(channels, out, 3, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2))


def make_net():
    layers = OrderedDict(stem=block(1, 8), body=block(8, 16))
    layers["flatten"] = nn.Flatten()
    layers["dropout"] = nn.Dropout(0.2)
    layers["head"] = nn.Linear(64, 5)
    return nn.Sequential(layers)


def pick(images, labels, first):
    rows = (labels >= first) & (labels < first + 5)
    return images[rows], labels[rows] - first


# %%
data = digits()
X_old, y_old = pick(data.X_train, data.y_train, first=0)
X_new, y_new = pick(data.X_train, data.y_train, first=5)
X_val, y_val = pick(data.X_test, data.y_test, first=5)
print(len(y_old), "old digits,", len(y_new), "new ones")

# %% [markdown]
r"""
One pass over the old digits is enough here. What the network has learnt goes into a file, from which every run below begins.
"""

# %%
torch.manual_seed(0)
pretrained = make_net()
adam = torch.optim.Adam(pretrained.parameters(), lr=0.01)
for rows in torch.randperm(len(y_old)).split(32):
    adam.zero_grad()
    loss = F.cross_entropy(pretrained(X_old[rows]), y_old[rows])
    loss.backward()
    adam.step()
torch.save(pretrained.state_dict(), folder / "pretrained.pt")
print(f"loss on the last {len(rows)} old digits: {loss.item():.2f}")

# %% [markdown]
r"""
**Freezing meets `train()`.** `requires_grad=False` gives weights no gradient from then on. `net.train()` at the beginning of the epoch wakes up the
frozen normalization: its statistics follow the new data.
"""

# %% cell="train_wakes_frozen_parts"
for keeps_still in (False, True):
    net = copy.deepcopy(pretrained)
    net.stem.requires_grad_(False)
    net.train()
    if keeps_still:
        net.stem.eval()
    for rows in torch.arange(len(y_new)).split(64):
        net(0.5 * X_new[rows])  # a little darker
    moved = net.stem[1].running_var - pretrained.stem[1].running_var
    share = moved.norm() / pretrained.stem[1].running_var.norm()
    how = "train(), then stem.eval()" if keeps_still else "train()"
    print(f"{how}: statistics of the frozen stem moved by {share:.0%}")

# %% [markdown]
r"""
**The scaler meets clipping.** One step of SGD with a rate of 1, so the length of the update is the length of the gradient that was used: at most 0.1, if
the limit is 0.1.
"""


# %% cell="scaler_meets_clipping"
def length_of_update(unscale_first):
    net = copy.deepcopy(pretrained).eval()
    before = nn.utils.parameters_to_vector(net.parameters()).detach()
    sgd = torch.optim.SGD(net.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(F.cross_entropy(net(X_new[:64]), y_new[:64])).backward()
    if unscale_first:
        scaler.unscale_(sgd)
    nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    scaler.step(sgd)
    return (nn.utils.parameters_to_vector(net.parameters()) - before).norm()


for unscale_first in (True, False):
    moved = length_of_update(unscale_first).item()
    print(f"unscale before clipping: {unscale_first!s:5}  update: {moved:.2g}")

# %% [markdown]
r"""
A factor of 1024, and nothing is said. AdamW would hide it as long as the gradients are large beside its `eps`, since it divides them by their own
size.

More such pairs, all of which the exercises look at:

| meet | goes wrong | goes right |
|---|---|---|
| scaler, schedule | the plan moves on at a step that was left out | move it only after a step that was made |
| accumulation, last batch | a mean of means: a small micro-batch counts too much | sums, divided by all samples of the step |
| accumulation, schedule | the plan moves per micro-batch | once per optimizer step |
| freezing in mid-run, weight decay | with `set_to_none=False` a frozen weight keeps a gradient of zeros, and decays on | set gradients to None, or leave the weight out of the optimizer |
| freezing, clipping | what was frozen in mid-run and is in no optimizer any more still has its last gradient, and the norm counts it | clear the model's gradients, not the optimizer's |
| checkpoint, evaluation | saved before the evaluation of the same step: it is lost, or made twice | evaluate, then save |
| checkpoint, best model | a dict of live tensors | a deep copy, inside the checkpoint |
| checkpoint, dropout | other random numbers after the restart | the random states in the file: torch, NumPy, Python, and each GPU's |
| log, restart | steps stand there twice | count each once, the last time |
"""

# %% [markdown] cell="rubric"
r"""
## 2 · What you build, and how it counts

Four functions. Each is graded by what it does, on cases that you do not see; these are all the checks there are, and their points.

| exercise | what is checked | points |
|---|---|---|
| `set_up` | the parameters of the frozen parts, and no others, get no gradient; the rest of the model stays as it is | 2 |
|  | AdamW holds each trainable parameter once, and nothing else; biases and norms have no weight decay | 2 |
|  | the rate of every step: up in a line, down along a cosine | 2 |
|  | a plan without warm-up, and a run longer than its plan | 1 |
|  | optimizer and schedule go on from their state dicts | 1 |
|  | frozen parts, and all within them, are in eval mode in training; everything else is in training mode | 2 |
|  | some steps of training: frozen weights and statistics stay, bit for bit | 2 |
| `train_step` | the step uses the mean over all samples of its micro-batches, of unequal size, whatever the scale | 3 |
|  | the true gradient is clipped, at any scale; a shorter one stays as it is | 3 |
|  | an overflow in any micro-batch leaves out this step, and no other; the scale falls once | 2 |
|  | the schedule moves once, after a step that was made | 2 |
|  | forward pass and loss under autocast of the dtype asked for, all else outside | 2 |
|  | the five facts are those of this step | 2 |
|  | one micro-batch at a time, forward and backward | 1 |
|  | gradients from before do not count, and none are left | 1 |
|  | the modes are the caller's: a normalization in eval mode stays there | 1 |
| `fit` | a run that nothing stops: all steps and evaluations, in order; the log | 2 |
|  | killed inside a step: the parts and the log, bit for bit | 4 |
|  | the random numbers go on, from three generators, also after the run | 2 |
|  | only what is left is done again: steps, evaluations, nothing after the end | 2 |
|  | the best epoch, its metric and its model, also if it was before the kill | 2 |
|  | killed while it writes: what is there is whole, and the run goes on | 3 |
|  | the newest whole checkpoint is taken, whatever dates and copies say | 2 |
|  | names and number of the checkpoints; other files are left alone | 2 |
|  | the newest checkpoint is all that is needed, and it is followed | 1 |
| `summarize` | the mean loss of each epoch is a mean over samples | 2 |
|  | what was made again counts once, the last time | 3 |
|  | skipped steps, and the share of the others that was clipped | 1 |
|  | the best epoch, the earlier of equals, each evaluation once | 1 |
|  | where the run went back, and what all of it cost | 2 |
|  | a line that is cut off is passed over | 1 |
|  | a log without evaluations, and one without a step that was made | 1 |

The points of an exercise are shared among its checks; together they are 60. A check counts if it holds on all of its cases.
"""

# %% [markdown]
r"""
## 3 · The run, piece by piece

The short form of everything, for one task: fine-tune on 5 to 9, in float16, in steps of 64 images that go through the
network 24 at a time. The exercises ask for a stricter form of each piece.

First the settings. `SETTINGS` and the functions below become a script in section 4; that is why they use nothing else of this notebook.
"""

# %%
SETTINGS = {
    "seed": 3,
    "peak": 0.01,  # learning rate after the warm-up
    "epochs": 4,
    "rows": 64,  # images per step
    "at_once": 24,  # of which in one forward pass
    "limit": 2.0,  # norm of the gradient
    "scale": 2.0**22,  # of the scaler, at first; it will fall
    "every": 5,  # steps between checkpoints
}

# %% [markdown]
r"""
**Set up.** Weights are loaded, but for the head, whose classes are new. The stem is frozen; the optimizer gets the rest in two groups.
`OneCycleLR` has a warm-up and moves per step: 4 epochs of 12 steps. (A 49th step of the plan would raise; it makes fewer than 48 where the scaler leaves steps out.) Everything with a state goes into one dict.
"""


# %%
def make_parts():
    seed_everything(SETTINGS["seed"])
    net = make_net()
    old = torch.load("pretrained.pt")
    old = {k: v for k, v in old.items() if not k.startswith("head.")}
    net.load_state_dict(old, strict=False)
    net.stem.requires_grad_(False)
    rest = [p for p in net.parameters() if p.requires_grad]
    thin = {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0}
    adam = torch.optim.AdamW([p for p in rest if p.dim() > 1], weight_decay=0.1)
    adam.add_param_group(thin)
    plan = torch.optim.lr_scheduler.OneCycleLR(
        adam, SETTINGS["peak"], total_steps=48, cycle_momentum=False
    )
    scaler = torch.amp.GradScaler("cpu", SETTINGS["scale"], growth_interval=12)
    return {"net": net, "adam": adam, "plan": plan, "scaler": scaler}


# %% [markdown]
r"""
**One step.** The order is the content: sum over micro-batches, unscale, clip, step, update; the plan moves if the scale has not
fallen. `shift` is the augmentation, and draws from two generators; dropout draws from the third.
"""


# %%
def shift(images):
    noise = np.random.normal(0, 0.05, images.shape).astype("float32")
    return images.roll(random.choice((-1, 0, 1)), 3) + torch.from_numpy(noise)


def one_step(net, adam, plan, scaler, images, labels):
    used = {"lr": plan.get_last_lr()[0], "scale": scaler.get_scale()}
    total, at_once = 0.0, SETTINGS["at_once"]
    adam.zero_grad()
    for few, wanted in zip(
        images.split(at_once), labels.split(at_once), strict=True
    ):
        with torch.autocast("cpu", torch.float16):
            summed = F.cross_entropy(net(shift(few)), wanted, reduction="sum")
        scaler.scale(summed / len(labels)).backward()
        total += summed.item()
    scaler.unscale_(adam)
    norm = nn.utils.clip_grad_norm_(net.parameters(), SETTINGS["limit"]).item()
    scaler.step(adam)
    scaler.update()
    fell = scaler.get_scale() < used["scale"]
    if not fell:
        plan.step()
    sizes = {"num_samples": len(labels), "loss": total / len(labels)}
    return {**used, **sizes, "grad_norm": norm, "skipped": fell}


# %% [markdown]
r"""
**The loop.** It saves under another name and renames, after every few steps. The order of an epoch follows from seed
and epoch, so it need not be saved. Each step writes its line of the log at once.

The random states of this run are three, since it runs on a CPU. On a GPU dropout draws from the GPU's own generator, which `torch.get_rng_state()` does
not know: save `torch.cuda.get_rng_state_all()` as well, and give it back with `torch.cuda.set_rng_state_all(...)`.
"""


# %%
def write_line(path, entry, began):
    entry["seconds"] = time.perf_counter() - began
    with path.open("a") as log:
        log.write(json.dumps(entry) + "\n")


def save_all(path, parts, now):
    held = {name: one.state_dict() for name, one in parts.items()}
    draws = [torch.get_rng_state(), random.getstate()]
    kind, keys, *more = np.random.get_state()
    held |= {"now": now, "draws": [*draws, [kind, keys.tolist(), *more]]}
    torch.save(held, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_all(path, parts):
    held = torch.load(path)
    for name, one in parts.items():
        one.load_state_dict(held[name])
    of_torch, of_python, (kind, keys, *more) = held["draws"]
    np.random.set_state((kind, np.array(keys, dtype="uint32"), *more))
    random.setstate(of_python)
    torch.set_rng_state(of_torch)
    return held["now"]


# %%
def train_in(place, dies_in=None):
    parts, now = make_parts(), {"done": 0, "weights": None}
    now["best"] = float("-inf")
    X, y, X_val, y_val = torch.load("data.pt")
    if (place / "last.pt").exists():
        now = load_all(place / "last.pt", parts)
    net, per_epoch = parts["net"], -(-len(y) // SETTINGS["rows"])
    while now["done"] < SETTINGS["epochs"] * per_epoch:
        began = time.perf_counter()
        epoch, position = divmod(now["done"], per_epoch)
        order = torch.Generator().manual_seed(1000 * SETTINGS["seed"] + epoch)
        rows = torch.randperm(len(y), generator=order).split(SETTINGS["rows"])
        net.train()
        net.stem.eval()
        facts = one_step(*parts.values(), X[rows[position]], y[rows[position]])
        now["done"] += 1
        if now["done"] == dies_in:
            os.kill(os.getpid(), signal.SIGKILL)
        entry = {"step": now["done"], "epoch": epoch, **facts}
        write_line(place / "log.jsonl", entry, began)
        if position + 1 == per_epoch:
            look(place, net, X_val, y_val, epoch, now)
        if now["done"] % SETTINGS["every"] == 0 or position + 1 == per_epoch:
            save_all(place / "last.pt", parts, now)
    return parts, now


def look(place, net, X_val, y_val, epoch, now):
    began = time.perf_counter()
    net.eval()
    with torch.inference_mode():
        hits = (net(X_val).argmax(1) == y_val).float().mean().item()
    if hits > now["best"]:
        weights = copy.deepcopy(net.state_dict())
        now.update(best=hits, best_epoch=epoch, weights=weights)
    write_line(place / "log.jsonl", {"epoch": epoch, "metric": hits}, began)


# %% [markdown]
r"""
## 4 · Killed for real

The functions above become a file, and the file is run by processes of its own. First the file: the settings, the source of the functions,
and a few lines that start the run in a folder and print a digest of how it ended.
"""

# %%
PIECES = [block, make_net, seed_everything, make_parts, shift, one_step]
PIECES += [write_line, save_all, load_all, train_in, look]
HEAD = """
import copy, hashlib, json, os, random, signal, sys, time
from collections import OrderedDict
from pathlib import Path
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
torch.set_num_threads(1)
"""

# %%
TAIL = """
def every_bit(state):  # the text of a tensor leaves digits and rows out
    if isinstance(state, torch.Tensor):
        return state.tolist()
    if isinstance(state, dict):
        return {key: every_bit(one) for key, one in state.items()}
    return [every_bit(one) for one in state] if isinstance(state, list) else state

for argument in sys.argv[1:]:
    place, _, dies_in = argument.partition(":")
    Path(place).mkdir(exist_ok=True)
    parts, now = train_in(Path(place), int(dies_in) if dies_in else None)
    states = {name: part.state_dict() for name, part in parts.items()}
    draws = [torch.rand(3), np.random.rand(), random.random()]
    whole = every_bit([states, now["weights"], draws])
    digest = hashlib.sha256(repr(whole).encode()).hexdigest()[:16]
    print(place, digest, "best epoch", now["best_epoch"], flush=True)
"""

# %%
lines = [HEAD, f"SETTINGS = {SETTINGS!r}", *map(inspect.getsource, PIECES)]
(folder / "finetune.py").write_text("\n\n".join([*lines, TAIL]))
torch.save([X_new, y_new, X_val, y_val], folder / "data.pt")


def process(*arguments):
    command = [sys.executable, "finetune.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100
    )
    print(f"finetune.py {' '.join(arguments)}: ended with", done.returncode)
    print(done.stdout + done.stderr, end="")
    return done.stdout.split()


# %% [markdown]
r"""
The first process makes the whole run at once. Then it begins a second one, in another folder, and dies in a step, by `SIGKILL`: no clean-up,
no goodbye. In which step is drawn at random each time you run this cell, a few steps after a checkpoint.
"""

# %%
anywhere = random.Random()  # seeded by the system, on purpose
early, late = anywhere.randrange(17, 21), anywhere.randrange(32, 36)
for place in ("whole", "killed"):
    shutil.rmtree(folder / place, ignore_errors=True)
at_once = process("whole", f"killed:{early}")

# %% [markdown]
r"""
−9 is the signal that cannot be caught. A second process finds the folder, goes on from the last checkpoint in it, and dies as well, in a later step.
"""

# %%
assert not process(f"killed:{late}")  # who is killed says nothing
print("killed in step", early, "and now in step", late)

# %% [markdown]
r"""
The third one finishes the run, and its digest is compared with that of the run that nothing stopped.
"""

# %% cell="killed_for_real"
resumed = process("killed")
print("the same to the last bit?", at_once[1] == resumed[1])
assert at_once[1] == resumed[1]

# %% [markdown]
r"""
The digest is made of every number of the weights, buffers, the best model and the states of optimizer, plan and scaler, and of the next random numbers of torch, NumPy and Python.
(`str(state)` would not do: it prints four digits, and leaves out the middle of tensors with more than 1000 elements.)

## 5 · The report

Three processes wrote into one log. Steps after the last checkpoint stand there twice. A report that simply reads all lines sees a
run that never was; this one keeps, of each step, what came last.
"""

# %% cell="log_counts_twice"
written = [
    json.loads(one)
    for one in (folder / "killed" / "log.jsonl").read_text().splitlines()
]
made = [one for one in written if "step" in one]
once = {one["step"]: one for one in made}
print(len(made), "lines of steps,", len(once), "steps")
paid, kept = (sum(e["seconds"] for e in x) for x in (made, once.values()))
print(f"{paid:.2f} s were paid for {kept:.2f} s of training")
accuracies = [one["metric"] for one in written if "metric" in one]
print("accuracy after each epoch:", [f"{one:.1%}" for one in accuracies])


# %% cell="report_figure"
def report_figure():
    steps = sorted(once)
    rows = {key: [once[n][key] for n in steps] for key in once[1]}
    figure, axes = new_figure(2, 2, figsize=(7.5, 5))
    top, bottom = axes
    top[0].plot(steps, rows["loss"])
    top[0].set(ylabel="training loss (nats)", ylim=(0, None))
    top[1].plot(steps, rows["lr"])
    top[1].set(ylabel="learning rate", ylim=(0, None))
    norms = [n if math.isfinite(n) else math.nan for n in rows["grad_norm"]]
    after = [min(n, SETTINGS["limit"]) for n in norms]
    bottom[0].plot(steps, norms, color=PALETTE[1], label="before clipping")
    bottom[0].plot(steps, after, color=PALETTE[0], label="after")
    bottom[0].set(ylabel="norm of the gradient", ylim=(0, None))
    bottom[0].legend()
    bottom[1].step(steps, rows["scale"], where="post")
    bottom[1].set_yscale("log", base=2)
    bottom[1].set(ylabel="loss scale")
    return figure, top, bottom, [n for n in steps if once[n]["skipped"]]


figure, top, bottom, left_out = report_figure()
for axes in (*top, *bottom):
    axes.set(xlabel="optimizer step", xlim=(0, len(once) + 1))
    for dead in (early, late):
        axes.axvline(dead, color="0.75", linestyle=":", linewidth=1.2)
above = sum(
    one["grad_norm"] > SETTINGS["limit"]
    for one in once.values()
    if not one["skipped"]
)
top[0].set_title("Killed twice (dotted), no trace in the loss")
top[1].set_title("The plan goes on where it was")
bottom[0].set_title(f"{above} of {len(once)} steps were clipped")
bottom[1].set_title(f"{len(left_out)} steps were left out; each halved it")
figure

# %% [markdown]
r"""
Read the four together. At first the scale is too large: gradients overflow (the gaps in the third figure), steps are left out, the
scale falls, and the plan waits (the rate stays level there). Later overflows are rare, and after enough good steps the scale grows again. Nothing in the curves tells where the run was killed.

### How often to save

A checkpoint costs time each time. A kill costs the steps since the last one, on average half of the distance. Between
the two lies an optimum, known since 1974: about √(2 · cost of a checkpoint · time between kills), as long as a checkpoint costs little beside
that time. Everything is counted in steps here.
"""


# %% cell="how_often"
def how_often_figure(steps_between_kills=2000, checkpoint_costs=2.0):
    every = np.unique(np.geomspace(1, 1000, 200).astype(int))
    saving = checkpoint_costs / every
    again = every / 2 / steps_between_kills
    best = math.sqrt(2 * checkpoint_costs * steps_between_kills)
    figure, axes = new_figure(figsize=(6, 3))
    axes.plot(every, saving, "--", label="writing checkpoints")
    axes.plot(every, again, "-.", label="making steps again")
    axes.plot(every, saving + again, label="both", color=PALETTE[6])
    axes.axvline(best, color="0.75", linestyle=":")
    axes.set(xscale="log", yscale="log", ylim=(1e-4, 3))
    axes.set(xlabel="steps between checkpoints", ylabel="share of extra time")
    lost = checkpoint_costs / best + best / 2 / steps_between_kills
    axes.set_title(f"Best: about every {best:.0f} steps, {lost:.0%} extra time")
    axes.legend()
    return figure


explore(
    how_often_figure,
    steps_between_kills=[500, 2000, 10_000, 100_000],
    checkpoint_costs=[0.1, 0.5, 2.0, 10.0],
)

# %% [markdown]
r"""
## 6 · Measure it

What does a step of this run take, and what does a checkpoint?
"""

# %% cell="measure_run"
with contextlib.chdir(folder):
    parts = make_parts()
parts["net"].train().stem.eval()
few = X_new[:64], y_new[:64]
step_s = measure_time(
    lambda: one_step(*parts.values(), *few), repeats=5, device="cpu"
)
now = {"done": 0, "best": 0.0, "weights": None}
save_s = measure_time(
    lambda: save_all(folder / "a.pt", parts, now), repeats=5, device="cpu"
)
print("one step:", step_s, " one checkpoint:", save_s)
print(f"a checkpoint costs {save_s.median_s / step_s.median_s:.2g} steps")

# %%
for name, took in (("step_ms", step_s), ("save_ms", save_s)):
    ms = 1e3 * took.median_s
    beside_reference(f"15_capstone/{name}", ms, unit="ms", device="cpu")

# %% [markdown]
r"""
## 7 · On two processes

With `DistributedDataParallel` (chapter 14) each process has a share of every step, and the gradients are averaged during `backward()`. Three
lines of the step change:

- the number of samples is that of the step on **all** processes, and the loss is multiplied by their number, since the
  average over processes divides by it;
- the exchange waits for the last micro-batch (`no_sync`), even if the processes have unequally many;
- clipping comes after the exchange: then all clip the same gradient.

What overflows anywhere is infinite or NaN everywhere after the exchange: all leave out the same step, and the scalers stay alike.

The cell starts two processes that speak over gloo on this machine, and compares. The shares are unequal: 40 images and 24. Everything is in
float64, and in eval mode, since dropout and batch statistics are each process's own.
"""


# %%
def clipped_gradient(net, images, labels, num_samples, num_processes=1):
    waits = getattr(net, "no_sync", contextlib.nullcontext)
    pieces = list(zip(images.split(24), labels.split(24), strict=True))
    for number, (few, wanted) in enumerate(pieces, start=1):
        last = number == len(pieces)
        with contextlib.nullcontext() if last else waits():
            summed = F.cross_entropy(net(few), wanted, reduction="sum")
            (num_processes * summed / num_samples).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    return [p.grad for p in net.parameters() if p.grad is not None]


def load_net():
    net = make_net()
    net.load_state_dict(torch.load("pretrained.pt"))
    net.stem.requires_grad_(False)
    return net.double().eval()


# %%
RANKS = """
import contextlib, datetime, sys
from collections import OrderedDict
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
torch.set_num_threads(1)
"""
ON_EACH = """
rank, X, y = int(sys.argv[1]), *torch.load("step.pt")
share = slice(0, 40) if rank == 0 else slice(40, 64)
dist.init_process_group(
    "gloo", store=dist.FileStore("store", 2), rank=rank, world_size=2,
    timeout=datetime.timedelta(seconds=30),
)
net = nn.parallel.DistributedDataParallel(load_net())
torch.save(clipped_gradient(net, X[share], y[share], 64, 2), f"rank{rank}.pt")
dist.destroy_process_group()
"""
shared = map(inspect.getsource, [block, make_net, load_net, clipped_gradient])
(folder / "ranks.py").write_text("\n\n".join([RANKS, *shared, ON_EACH]))
torch.save([X_new[:64].double(), y_new[:64]], folder / "step.pt")


def start_rank(rank):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if os.path.exists("/sys/class/net/lo"):
        environment["GLOO_SOCKET_IFNAME"] = "lo"  # this machine alone
    return subprocess.Popen(
        [sys.executable, "ranks.py", str(rank)],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


# %%
def on_two_processes(deadline_s=60):
    (folder / "store").unlink(missing_ok=True)
    ranks = [start_rank(rank) for rank in range(2)]
    try:
        said = [one.communicate(timeout=deadline_s)[1] for one in ranks]
    finally:
        for one in ranks:
            one.kill()
            one.wait()
    if any(one.returncode for one in ranks):
        raise RuntimeError("a rank ended early: " + "".join(said)[-800:])
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]


# %% cell="two_processes"
both = on_two_processes()
with contextlib.chdir(folder):
    alone = clipped_gradient(load_net(), X_new[:64].double(), y_new[:64], 64)
for rank, gradients in enumerate(both):
    pairs = zip(gradients, alone, strict=True)
    off = max((a - b).abs().max().item() for a, b in pairs)
    print(f"rank {rank}: largest difference from one process {off:.1g}")
    assert off < 1e-12

# %% [markdown]
r"""
The run around the step changes, too. Rank 0 alone writes checkpoints and log, and the others wait for it. Each process takes its own share of the rows, in an order that all draw
from one seed; for what else it draws it has a seed of its own, and its own random states in the file. The log's loss is the total of all processes, divided by the number of all samples. The parts of the model are at `net.module`.
"""

# %% [markdown]
r"""
## 8 · Exercises

Four functions, and together they are the run of this chapter: what is trained, one step, the loop
that survives, the report. They do not depend on one another. At the end a cell puts *your* four
together, kills them and goes on.

In all of them `config` is a dict like `CONFIG`. Read what you need from it, and nothing from
`CONFIG` itself: the checks bring others. The visible checks are few. When your notebook is graded,
hidden ones look at everything that folds open under *All that is checked*.
"""

# %% [markdown] task="set_up" title="What is trained, and how fast" level="more" minutes=24 builds_on="section 3, chapters 06 and 07"
r"""
Write `set_up(model, config)`, which freezes parts of the model and returns the optimizer and the schedule, and
`train_mode(model, config)`, which puts all but the frozen parts into training mode.

```python
>>> net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
>>> plan = {"frozen": ["0"], "lr": 0.1, "weight_decay": 0.01}
>>> plan |= {"warmup_steps": 2, "num_steps": 6}
>>> optimizer, schedule = set_up(net, plan)
>>> rates = []
>>> for _ in range(7):
...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
...     optimizer.step()
...     schedule.step()
>>> rates
[0.05, 0.1, 0.1, 0.0854, 0.05, 0.0146, 0.0]
>>> train_mode(net, plan)
>>> net[0].training, net[1].training
(False, True)
```

- `config["frozen"]` is a list of dotted names of modules, such as `["stem", "body.norm"]`. `set_up` gives all parameters of these
  parts `requires_grad=False`; all others keep the flag that they have.
- After `train_mode` the frozen parts and all within them are in eval mode, and everything else is in training mode.
- The optimizer is a `torch.optim.AdamW` with the rate `config["lr"]`. Every parameter that is still trainable stands in it once. Those
  with two dimensions or more have the weight decay `config["weight_decay"]`; those with fewer have none.
- Let W be `config["warmup_steps"]` and N `config["num_steps"]`, 0 ≤ W < N. In step t = 0, 1, 2, … the rate is `config["lr"]` times
  (t + 1) / W while t < W, then ½ (1 + cos(π (t − W) / (N − W))) up to t = N, and 0 from there on.
- The schedule has `step()`, `state_dict()` and `load_state_dict()`. The state dicts of both, loaded into what `set_up` made for a new model, go
  on in the middle of the plan.

<details><summary>Hint 1: find a part</summary>

`model.get_submodule("body.norm")` is the part; its `requires_grad_` and `eval` reach all of it.
</details>
<details><summary>Hint 2: a plan as a factor</summary>

`torch.optim.lr_scheduler.LambdaLR(optimizer, share)` multiplies the rate by `share(t)`. Its state
dict holds t, and not the function.
</details>
<details><summary>Help: the rate rises again at the end</summary>

The cosine does. Let the share of the way that is done not exceed 1.
</details>
"""


# %% exercise="set_up"
def set_up(model: nn.Module, config: dict):
    """Freezes the parts of the model; the optimizer and the schedule."""
    ### BEGIN SOLUTION
    for part in config["frozen"]:
        model.get_submodule(part).requires_grad_(False)
    trained = [one for one in model.parameters() if one.requires_grad]
    groups = [
        {
            "params": [one for one in trained if one.dim() > 1],
            "weight_decay": config["weight_decay"],
        },
        {
            "params": [one for one in trained if one.dim() <= 1],
            "weight_decay": 0.0,
        },
    ]
    optimizer = torch.optim.AdamW(groups, lr=config["lr"])
    warmup, num_steps = config["warmup_steps"], config["num_steps"]

    def share(t: int) -> float:
        if t < warmup:
            return (t + 1) / warmup
        way = min(1.0, (t - warmup) / (num_steps - warmup))
        return 0.5 * (1 + math.cos(math.pi * way))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    ### END SOLUTION


def train_mode(model: nn.Module, config: dict) -> None:
    """Training mode for all but the frozen parts."""
    ### BEGIN SOLUTION
    model.train()
    for part in config["frozen"]:
        model.get_submodule(part).eval()
    ### END SOLUTION


# %% check="set_up"
with visible_check("set_up"):
    a_net = nn.Sequential()
    a_net.add_module("stem", nn.BatchNorm1d(3))
    a_net.add_module("stem2", nn.Linear(3, 2))
    plan = {**CONFIG, "frozen": ["stem"], "warmup_steps": 2, "num_steps": 6}
    an_optimizer, a_schedule = set_up(a_net, plan)
    flags = [one.requires_grad for one in a_net.parameters()]
    expect("what is trainable", flags, [False, False, True, True])
    rates = []
    for _ in range(7):
        rates.append(an_optimizer.param_groups[0]["lr"] / plan["lr"])
        an_optimizer.step()
        a_schedule.step()
    expect("the first two shares", rates[:2], [0.5, 1.0])
    expect("the share of step 4, halfway down", rates[4], 0.5)
    expect("the share of step 6", rates[6], 0.0)
    train_mode(a_net.eval(), plan)
    modes = [a_net.stem.training, a_net.stem2.training]
    expect("the modes", modes, [False, True])

# %% grade="set_up" points=12

# %% [markdown] task="train_step" title="One step of many parts" level="core" minutes=30 builds_on="section 3, chapters 08, 09 and 10"
r"""
Write `train_step(model, optimizer, schedule, scaler, batches, config)`, which makes *one* optimizer step from a list of micro-batches
`(x, y)` and returns five facts about it.

```python
>>> net = nn.Linear(1, 2, bias=False)
>>> _ = nn.init.zeros_(net.weight)
>>> sgd = torch.optim.SGD(net.parameters(), lr=0.5)
>>> halves = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
>>> scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
>>> x, y = torch.full((3, 1), 8.0), torch.zeros(3, dtype=torch.int64)
>>> batches = [(x[:2], y[:2]), (x[2:], y[2:])]
>>> config = {"dtype": None, "max_norm": 0.1}
>>> facts = train_step(net, sgd, halves, scaler, batches, config)
>>> for name, value in facts.items():
...     print(name, value if isinstance(value, bool) else round(value, 4))
loss 0.6931
grad_norm 5.6569
skipped False
lr 0.5
scale 256.0
>>> round(net.weight.norm().item(), 4), sgd.param_groups[0]["lr"]
(0.05, 0.25)
```

- The step uses the gradient of the mean cross-entropy over **all samples of the list**. The micro-batches are of unequal sizes; the model sees
  one at a time and goes backward before the next one.
- Forward pass and loss are under autocast to `config["dtype"]` (if it is `None`, there is no autocast), on the device of `x`. Backward pass and
  step are outside.
- `optimizer` holds every trainable parameter of `model`, and nothing else. `scaler` is a `torch.amp.GradScaler` with a scale from `2**-6` to `2**24`, or a disabled one. It is updated once. The total norm of the **true** gradient is clipped to
  `config["max_norm"]`, as `nn.utils.clip_grad_norm_` does.
- If a gradient overflows, the scaler leaves the step out (a disabled one does not), and nothing is raised. `schedule.step()` comes once after a step that was made, and not
  after one that was left out.
- Gradients from before do not count, and none are left afterwards.

<details><summary>Hint 1: the order</summary>

Read rate and scale. For each micro-batch: forward, scale, backward. Then unscale, clip, step,
update, and the schedule if the step was made.
</details>
<details><summary>Hint 2: the weights of the micro-batches</summary>

`reduction="sum"`, divided by the number of samples of the whole list, before the backward pass.
</details>
<details><summary>Hint 3: was it left out?</summary>

Only a step that was left out lowers the scale: compare `scaler.get_scale()` before and after.
</details>
"""


# %% exercise="train_step"
def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule,
    scaler: torch.amp.GradScaler,
    batches: list[tuple[Tensor, Tensor]],  # x (n, ...), y (n,) int64
    config: dict,
) -> dict:
    """One optimizer step; the loss, the norm, and so on, of it."""
    ### BEGIN SOLUTION
    lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
    dtype, loss_sum = config["dtype"], 0.0
    num_samples = sum(len(y) for _, y in batches)
    model.zero_grad()
    for x, y in batches:
        with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss / num_samples).backward()
        loss_sum += loss.item()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
    scaler.step(optimizer)
    scaler.update()
    skipped = scaler.get_scale() < scale
    if not skipped:
        schedule.step()
    model.zero_grad()
    return {
        "loss": loss_sum / num_samples,
        "grad_norm": norm.item(),
        "skipped": skipped,
        "lr": lr,
        "scale": scale,
    }
    ### END SOLUTION


# %% check="train_step"
with visible_check("train_step"):
    torch.manual_seed(3)
    X, y = 9 * torch.randn(7, 3).double(), torch.randint(2, (7,))
    a_net = nn.Linear(3, 2).double()
    alone = F.cross_entropy(a_net(X), y)
    true = torch.autograd.grad(alone, tuple(a_net.parameters()))
    length = torch.cat([one.flatten() for one in true]).norm().item()
    before = a_net.weight.detach().clone()
    sgd = torch.optim.SGD(a_net.parameters(), lr=0.5)
    halves = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
    a_scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    settings = {**CONFIG, "dtype": None, "max_norm": length / 2}
    ragged = list(zip(X.split([4, 2, 1]), y.split([4, 2, 1]), strict=True))
    facts = train_step(a_net, sgd, halves, a_scaler, ragged, settings)
    expect("the loss", facts["loss"], alone.item())
    expect("the norm before clipping", facts["grad_norm"], length)
    expect("the rate of the step", facts["lr"], 0.5)
    expect("the rate after it", sgd.param_groups[0]["lr"], 0.25)
    expect("the update", a_net.weight - before, -0.25 * true[0], rtol=1e-4)

# %% grade="train_step" points=17

# %% [markdown]
r"""
### A run that can be killed

The next exercise is about the loop around such steps. A `run` brings its parts and its step along;
here is one, on numbers made up on the spot. `random_states` and `set_random_states` are helpers that you may use.
"""


# %% setup="toy_run"
class ToyRun:
    """A training run: its settings, its parts, and what one step is.

    Attributes:
        config: the settings; `fit` reads num_epochs, save_every and keep.
        parts: the objects with a state, by name; "model" is one of them.
    """

    def __init__(self, **changes):
        self.config = {"num_epochs": 3, "save_every": 4, "keep": 2, **changes}
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.3), nn.Linear(4, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        halves = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)
        self.parts = {"model": model, "optimizer": optimizer, "plan": halves}

    def batches(self, epoch: int) -> list[Tensor]:
        """The samples of each step of this epoch: the same at every call."""
        own = torch.Generator().manual_seed(100 + epoch)
        return list(torch.randperm(10, generator=own).split(4))

    def step(self, indices: Tensor) -> dict:
        """Makes one optimizer step; the facts about it."""
        model, optimizer, halves = self.parts.values()
        x = indices.unsqueeze(1) / torch.tensor([5.0, 7.0, 9.0])
        noise = 0.1 * np.random.standard_normal() * random.choice((-1, 1))
        loss = (model.train()(x) - x.sum(1, True) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        halves.step()
        return {"loss": loss.item(), "lr": halves.get_last_lr()[0]}

    def evaluate(self) -> float:
        """How good the model is now; more is better."""
        return -self.parts["model"][0].weight.detach().norm().item()


def random_states() -> dict:
    """The states of the three generators, as plain data."""
    name, keys, *rest = np.random.get_state()
    version, numbers, spare = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": [name, torch.tensor(keys.astype(np.int64)), *rest],
        "python": [version, torch.tensor(numbers), spare],
    }


def set_random_states(states: dict) -> None:
    """Puts the three generators back into these states."""
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    version, numbers, spare = states["python"]
    random.setstate((version, tuple(numbers.tolist()), spare))
    torch.set_rng_state(states["torch"])


# %% [markdown] task="fit" title="A loop that survives" level="hard" minutes=40 builds_on="sections 3 and 4, chapters 01 and 12"
r"""
Write `fit(run, folder)`, which trains `run` to the end and returns the log and the best, so that a run that is killed and called again ends, bit for
bit, as if nothing had happened.

```python
>>> seed_everything(0)
>>> with tempfile.TemporaryDirectory() as place:
...     log, best = fit(ToyRun(), Path(place, "new"))
...     print(sorted(path.name for path in Path(place, "new").iterdir()))
['step_000008.pt', 'step_000009.pt']
>>> len(log), sorted(log[-1]), sorted(best)
(9, ['epoch', 'loss', 'lr', 'step'], ['epoch', 'metric', 'model'])
```

- For each epoch 0, 1, …, `run.config["num_epochs"]` − 1: one `run.step(indices)` for each entry of `run.batches(epoch)`, in order, and then
  `run.evaluate()` once.
- The log has a dict per step of the whole run: what `run.step` returned, and beside it `"epoch"` and `"step"`, counted from 1 through all epochs. The best
  is a dict: `"epoch"` and `"metric"` of the highest metric, and `"model"`: a state dict of the model as it was then.
- After every `run.config["save_every"]` steps, and at the end of the run, a checkpoint such as `step_000012.pt`, the number of steps done, is written into
  the `Path` `folder`. It and the `run.config["keep"]` − 1 before it stay, and the older ones go once it is there.
- It holds everything: all `run.parts` (by `state_dict()` and `load_state_dict()`), random states, log, best. Whatever kills the process, also in the
  middle of a write: a file named `step_….pt` is whole.
- Called again, with a new `run` and other seeds, `fit` goes on from the newest whole checkpoint. What that holds is not made again.

<details><summary>Hint 1: find the place again</summary>

Count the steps through all epochs, as without a checkpoint, and pass over those up to the number that
the checkpoint holds.
</details>
<details><summary>Hint 2: whole or not there</summary>

Write under another name in the same folder, then `os.replace`: if the process is killed, the rename has happened or has not.
`torch.save` refuses a name like `.unfinished`, whose only dot is the first character.
</details>
<details><summary>Help: everything is right but the best</summary>

`state_dict()` is a dict of the live tensors. Keep `copy.deepcopy` of it. And look where the evaluation
stands: before the checkpoint of the same step.
</details>
"""


# %% exercise="fit"
def fit(run, folder: Path) -> tuple[list[dict], dict]:
    """Trains to the end, from the newest whole checkpoint in the folder.

    Returns:
        The facts of every step of the run, and the best epoch.
    """
    ### BEGIN SOLUTION
    num_epochs, keep = run.config["num_epochs"], run.config["keep"]
    done, log, best = 0, [], {"metric": -math.inf}
    folder.mkdir(exist_ok=True)
    for path in sorted(folder.glob("step_*.pt"), reverse=True):
        try:
            saved = torch.load(path)
        except Exception:  # broken off: there is an older one, perhaps
            continue
        for name, part in run.parts.items():
            part.load_state_dict(saved["parts"][name])
        done, log, best = saved["done"], saved["log"], saved["best"]
        set_random_states(saved["random"])
        break

    number = 0
    for epoch in range(num_epochs):
        to_do = run.batches(epoch)
        for place, indices in enumerate(to_do, start=1):
            number += 1
            if number <= done:
                continue
            facts = run.step(indices)
            log.append({**facts, "epoch": epoch, "step": number})
            if place == len(to_do):
                metric = run.evaluate()
                if metric > best["metric"]:
                    now = copy.deepcopy(run.parts["model"].state_dict())
                    best = {"epoch": epoch, "metric": metric, "model": now}
            ends = place == len(to_do) and epoch == num_epochs - 1
            if ends or number % run.config["save_every"] == 0:
                states = {k: one.state_dict() for k, one in run.parts.items()}
                saved = {"parts": states, "done": number, "log": log}
                saved |= {"best": best, "random": random_states()}
                torch.save(saved, folder / "unfinished")
                new_name = folder / f"step_{number:06d}.pt"
                os.replace(folder / "unfinished", new_name)
                there = sorted(folder.glob("step_*.pt"))
                there = there[: there.index(new_name) + 1]
                for old in there[:-keep]:
                    old.unlink()
    return log, best
    ### END SOLUTION


# %% check="fit"
class Killed(BaseException):
    """Ends a run of the visible check, as a kill would."""


class ShortRun(ToyRun):
    left = 6

    def step(self, indices):
        if self.left == 0:
            raise Killed
        self.left -= 1
        return super().step(indices)


with visible_check("fit"), tempfile.TemporaryDirectory() as place:
    ended = []
    for name, kinds in {"a": [ToyRun], "b": [ShortRun, ToyRun]}.items():
        for number, kind in enumerate(kinds):
            seed_everything(number)
            a_run = kind()
            with contextlib.suppress(Killed):
                ended.append((fit(a_run, Path(place, name)), a_run.parts))
    (whole, parts_whole), (resumed, parts_resumed) = ended
    expect("the log", resumed[0], whole[0], rtol=0, atol=0)
    expect("the best epoch", resumed[1]["epoch"], whole[1]["epoch"])
    for key, weight in parts_whole["model"].state_dict().items():
        got = parts_resumed["model"].state_dict()[key]
        expect(key, got, weight, rtol=0, atol=0)

# %% grade="fit" points=20

# %% [markdown] task="summarize" title="A report that counts once" level="more" minutes=20 builds_on="section 5, chapter 11"
r"""
Write `summarize(lines, config)`, which makes a report of the lines of JSON that the processes of a run have written, and counts once what they made
again.

```python
>>> step = {"step": 1, "epoch": 0, "num_samples": 8, "loss": 2.0, "grad_norm": 0.5}
>>> step |= {"skipped": False, "lr": 0.1, "seconds": 1.0}
>>> evaluation = {"epoch": 0, "metric": 0.93, "seconds": 2.0}
>>> lines = [json.dumps(one) for one in (step, {**step, "loss": 1.0}, evaluation)]
>>> for item in summarize([*lines, '{"step": 2, "epo'], {"max_norm": 1.0}).items():
...     print(*item)
steps 1
repeated 1
skipped 0
clipped 0.0
epoch_losses [1.0]
best_epoch 0
best_metric 0.93
peak_lr 0.1
resumed_after [0]
seconds 4.0
```

- The line of an evaluation has no `step`. A line that is not, from its beginning to its end, one JSON object is passed over.
- A step, or the evaluation of an epoch, that stands there several times counts **once: the last time**. `steps` and `skipped` count steps; `repeated`
  is how many lines of steps were made again later.
- Of the steps not skipped, `clipped` is the share whose `grad_norm` is above `config["max_norm"]`, and `peak_lr` the highest `lr`. `epoch_losses` has
  for each epoch that has steps the mean of `loss` over its **samples**, also those of skipped steps.
- `best_epoch` and `best_metric` are of the evaluation with the highest metric; of equals the earlier epoch.
- `resumed_after` has one entry for each time the run went back: the number of the last step that was kept, 0 if it began again. `seconds` is the sum over
  **all** whole lines: that is what was paid.

<details><summary>Hint 1: the last time</summary>

A dict from the number of the step to its line: a later line replaces an earlier one.
</details>
<details><summary>Hint 2: a mean over samples</summary>

Sum of `loss * num_samples`, divided by the sum of `num_samples`. The last batch of an epoch may be smaller.
</details>
"""


# %% exercise="summarize"
def summarize(lines: list[str], config: dict) -> dict:
    """The report of a run from the lines that its processes wrote."""
    ### BEGIN SOLUTION
    steps, metrics, resumed_after = {}, {}, []
    num_step_lines, last_step, seconds = 0, 0, 0.0
    for line in lines:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not isinstance(entry, dict):
            continue
        seconds += entry["seconds"]
        if "step" not in entry:
            metrics[entry["epoch"]] = entry["metric"]
            continue
        num_step_lines += 1
        if entry["step"] <= last_step:
            resumed_after.append(entry["step"] - 1)
        last_step = entry["step"]
        steps[last_step] = entry

    made = [one for one in steps.values() if not one["skipped"]]
    clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
    totals: dict[int, tuple[float, int]] = {}
    for one in steps.values():
        n = one["num_samples"]
        total, count = totals.get(one["epoch"], (0.0, 0))
        totals[one["epoch"]] = total + n * one["loss"], count + n
    best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
    return {
        "steps": len(steps),
        "repeated": num_step_lines - len(steps),
        "skipped": len(steps) - len(made),
        "clipped": clipped / len(made) if made else 0.0,
        "epoch_losses": [totals[e][0] / totals[e][1] for e in sorted(totals)],
        "best_epoch": best,
        "best_metric": metrics.get(best),
        "peak_lr": max((one["lr"] for one in made), default=0.0),
        "resumed_after": resumed_after,
        "seconds": seconds,
    }
    ### END SOLUTION


# %% check="summarize"
with visible_check("summarize"):
    usual = {"num_samples": 8, "grad_norm": 0.5, "skipped": False, "lr": 0.1}
    written = [
        {"step": 1, "epoch": 0, "loss": 2.0, "seconds": 1.0},
        {"step": 2, "epoch": 0, "loss": 1.0, "seconds": 1.0, "num_samples": 2},
        {"step": 2, "epoch": 0, "loss": 1.0, "seconds": 1.0, "num_samples": 2},
    ]
    lines = [json.dumps({**usual, **one}) for one in written]
    lines += ['{"step": 3, "epo', '{"epoch": 0, "metric": 0.5, "seconds": 1.0}']
    seen = summarize(lines, {**CONFIG, "max_norm": 1.0})
    for key, wanted in {
        "steps": 2,
        "repeated": 1,
        "epoch_losses": [1.8],
        "best_epoch": 0,
        "resumed_after": [1],
        "seconds": 4.0,
    }.items():
        expect(key, seen[key], wanted)

# %% grade="summarize" points=11

# %% [markdown]
r"""
## 9 · All four together

This cell builds a run from *your* four functions: it fine-tunes on the digits, is stopped twice at random and goes on. As long as
one of them is missing, it says so.
"""


# %%
class Stopped(BaseException):
    """Ends a run in the middle of a step, as a kill would."""


class Clock:
    """Counts the steps of a run: one more part with a state."""

    steps = 0

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


class DigitsRun:
    """The fine-tuning of this chapter, made of the four exercises."""

    config = CONFIG
    rows = 64  # images per step
    per_epoch = math.ceil(len(y_new) / rows)  # steps

    def __init__(self, lines, stops_at):
        self.lines, self.stops_at = lines, stops_at
        net = make_net()
        net.load_state_dict(pretrained.state_dict())
        adam, plan = set_up(net, CONFIG)
        scaler = torch.amp.GradScaler(
            "cpu", 2.0**22, growth_interval=self.per_epoch
        )
        self.parts = {"model": net, "adam": adam, "plan": plan}
        self.parts |= {"scaler": scaler, "clock": Clock()}

    def batches(self, epoch):
        order = torch.Generator().manual_seed(epoch)
        order = torch.randperm(len(y_new), generator=order)
        return list(order.split(self.rows))

    def step(self, rows):
        net, adam, plan, scaler, clock = self.parts.values()
        began = time.perf_counter()
        train_mode(net, CONFIG)
        few = [(shift(X_new[some]), y_new[some]) for some in rows.split(24)]
        facts = train_step(net, adam, plan, scaler, few, CONFIG)
        clock.steps += 1
        if clock.steps == self.stops_at:
            raise Stopped
        epoch = (clock.steps - 1) // self.per_epoch
        line = {"step": clock.steps, "epoch": epoch, **facts}
        line |= {"num_samples": len(rows)}
        line["seconds"] = time.perf_counter() - began
        self.lines.append(json.dumps(line))
        return facts

    def evaluate(self):
        began, net = time.perf_counter(), self.parts["model"].eval()
        with torch.inference_mode():
            hits = (net(X_val).argmax(1) == y_val).float().mean().item()
        epochs_done = self.parts["clock"].steps // self.per_epoch
        line = {"epoch": epochs_done - 1, "metric": hits}
        line["seconds"] = time.perf_counter() - began
        self.lines.append(json.dumps(line))
        return hits


# %%
def all_together():
    """Whether your run, stopped twice, is the run that is not, and its report."""
    ended = []
    every = CONFIG["save_every"]
    # some steps after a checkpoint
    places = [every * one + anywhere.randrange(2, every + 1) for one in (2, 6)]
    for stops in ([None], [*places, None]):
        place, lines = Path(tempfile.mkdtemp(dir=folder)), []
        for seed, stops_at in enumerate(stops):
            seed_everything(seed)
            a_run = DigitsRun(lines, stops_at)
            with contextlib.suppress(Stopped):
                log, best = fit(a_run, place)
        weights = [one.tolist() for one in best["model"].values()]
        # as text: a norm that is NaN equals no other
        ended.append(repr((log, best["epoch"], best["metric"], weights)))
    report = {"stopped in": places, **summarize(lines, CONFIG)}
    return ended[0] == ended[1], report


try:
    same, found = all_together()
    print("the same to the last bit?", same)
    short = json.dumps(found)  # of floats, three digits
    short = json.loads(short, parse_float=lambda one: round(float(one), 3))
    for key, value in short.items():
        print(f"{key:>13}: {value}")
except NotImplementedError:
    print("not all four functions are written yet")
except Exception as error:
    print("not yet right:", type(error).__name__, error)

# %% [markdown]
r"""
## 10 · Recap

- Set up: load, freeze, then give the optimizer what is still trainable, in groups. One plan for the whole run, counted in optimizer steps.
- Every epoch: `train()`, then the frozen parts back to `eval()`.
- Every step: forward under autocast, sums over all samples, scale, backward; unscale, clip, step, update; the plan if the step was made.
- Every few steps: evaluate if the epoch is over, then write everything under another name and rename.
- Everything: all parts with a state, the random states of torch, NumPy, Python and each GPU, where you are, the log, the best with its weights.
- A rename is safe against a killed process. Against a power cut it is not: call `os.fsync` on the written file before the rename (chapter 12).
- After a kill: the newest checkpoint that is whole. Test it by killing, with a comparison of bits (on a GPU, with deterministic kernels: chapter 01).
- A log of a run that was killed may hold steps twice. Count each once, the last time.

**Primary sources**

- PyTorch: [automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html),
  [saving and loading](https://docs.pytorch.org/docs/stable/notes/serialization.html),
  [reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html),
  [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html).
- P. Goyal and others, [Accurate, Large Minibatch SGD](https://arxiv.org/abs/1706.02677), 2017: warm-up, sums over all workers, no decay for norms.
- I. Loshchilov and F. Hutter, [SGDR](https://arxiv.org/abs/1608.03983), 2016: the cosine.
- J. W. Young, [A first order approximation to the optimum checkpoint interval](https://doi.org/10.1145/361147.361115), 1974.
"""
