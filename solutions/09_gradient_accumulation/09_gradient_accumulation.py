# %% [markdown] reading_minutes=25 builds_on="chapter 03 (*means of means*), chapter 05 (*batch normalization*), chapter 06 (*when the scheduler steps*), chapter 08 (*clipping*)"
r"""
# 09 · Gradient accumulation

A batch of 256 does not fit, eight of 32 do. `backward()` *adds* to `.grad`, so one can
run the eight one after another and step once. The gradient is then that of the 256, up to
rounding, if the parts are weighted rightly, no hook clips their gradients, and no layer and no loss looks at the whole batch, draws
random numbers or, as spectral norm, changes with each pass. The usual loop does not weight them rightly.

**After this chapter you can**

- accumulate gradients so that the update equals that of the full batch, also with parts of
  unequal size, class weights and ignored labels;
- write the epoch's loop: one step, one clip and one scheduler step per window, and no
  gradients left at the end;
- tell from row counts and memory whether a loop accumulates at all;
- say which layers make equality impossible, show it, and repair it.
"""

# %% setup="imports"
import copy
import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few
things more.
"""

# %%
from course_utils import (
    PALETTE,
    beside_reference,
    digit_convnet,
    digit_mlp,
    digits,
    explore,
    gaussian_clusters,
    line_chart,
    measure_time,
    new_figure,
    peak_memory,
    pick_device,
    saved_tensor_bytes,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

This is the loop that many posts pass on, with `k` = 2: go backward on each batch, step on
every second.

```python
for i, (x, y) in enumerate(loader):
    F.cross_entropy(model(x), y).backward()
    if (i + 1) % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

It has two faults, and neither raises an error.

### The parts are added, not averaged

The loss of a batch is a *mean*. Two means of 16 samples added up are twice the mean of the 32.
"""

# %%
torch.manual_seed(0)
rows, classes = torch.randn(32, 6).double(), torch.randint(3, (32,))


def new_mlp():
    torch.manual_seed(1)
    layers = nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)
    return nn.Sequential(*layers).double()


def flat_gradient(model):
    found = [p.grad for p in model.parameters()]
    return torch.cat([g.flatten() for g in found])


def relative_error(seen, wanted):
    return ((seen - wanted).norm() / wanted.norm()).item()


# %% cell="sum_of_means"
whole, halves = new_mlp(), new_mlp()
F.cross_entropy(whole(rows), classes).backward()
for half in (slice(0, 16), slice(16, 32)):
    F.cross_entropy(halves(rows[half]), classes[half]).backward()

ratio = flat_gradient(halves) / flat_gradient(whole)
print(f"ratio, smallest {ratio.min():.12f}, largest {ratio.max():.12f}")

# %% [markdown]
r"""
Twice the gradient is twice the learning rate: with eight parts, eight times. Here the digits
are learned from batches of 256, whole and in eight parts.
"""

# %%
data = digits()


# %% cell="undivided_training"
def train_digits(num_parts, divide=True, lr=0.2, num_steps=80):
    torch.manual_seed(0)
    model, losses = digit_mlp(), []
    sgd = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(num_steps):
        pick = torch.randperm(len(data.X_train))[:256]
        sgd.zero_grad()
        losses.append(0.0)
        for part in pick.chunk(num_parts):
            scores = model(data.X_train[part])
            part_loss = F.cross_entropy(scores, data.y_train[part])
            (part_loss / num_parts if divide else part_loss).backward()
            losses[-1] += part_loss.item() / num_parts
        sgd.step()
    return losses


curves = {
    "256 at once": train_digits(1),
    "8 x 32, divided by 8": train_digits(8),
    "8 x 32, not divided": train_digits(8, divide=False),
}

# %%
figure = line_chart(
    curves,
    title="Divided, eight parts train like the whole batch",
    xlabel="optimizer step",
    ylabel="training loss (nats)",
)
figure.axes[0].set_ylim(0, 5)
figure

# %% [markdown]
r"""
The first two lines lie on each other. The third would have needed an eighth of the learning
rate. With Adam you would not see it: Adam divides the gradient by its own size, so a constant
factor drops out as long as the gradient is large beside `eps`, nothing clips it, and nothing else is added to it, as Adam's
`weight_decay` is by default. That is why we test accumulation with SGD.
"""

# %% cell="adam_hides"
for kind, lr in ((torch.optim.SGD, 0.1), (torch.optim.Adam, 0.01)):
    results = []
    for parts_are_divided in (True, False):
        model = new_mlp()
        optimizer = kind(model.parameters(), lr=lr)
        for _ in range(3):
            optimizer.zero_grad()
            for x, y in zip(rows.chunk(2), classes.chunk(2), strict=True):
                factor = 0.5 if parts_are_divided else 1.0
                (factor * F.cross_entropy(model(x), y)).backward()
            optimizer.step()
        results.append(nn.utils.parameters_to_vector(model.parameters()))
    change = (results[0] - results[1]).abs().max()
    print(f"{kind.__name__:4}: weights differ by up to {change:.1e}")

# %% [markdown]
r"""
### The last batches get no step of their own

Five batches and `k` = 2: two steps, and one batch left over. Its gradient stays in `.grad`. It
enters the first step of the *next* epoch, which so adds up three batches instead of two. After the
last epoch it is lost.
"""

# %% cell="leftover"
model = new_mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
num_steps = 0
for i, (x, y) in enumerate(zip(rows.split(7), classes.split(7), strict=True)):
    F.cross_entropy(model(x), y).backward()
    if i % 2 == 1:
        optimizer.step()
        optimizer.zero_grad()
        num_steps += 1
left_over = flat_gradient(model).norm().item()
print(f"5 batches, {num_steps} steps")
print(f"gradient left: norm {left_over:.2f}")

# %% [markdown]
r"""
### A mean of means again

Dividing by `k` is right only if all parts count the same. They do not if the last part is
shorter, if labels are ignored (padding!), or if classes have weights. In October 2024 this was
found in the training loops of large libraries: sequences of unequal length, each
part's loss averaged over its own tokens, then averaged again.
"""


# %% cell="mean_of_means"
def error_of_mean(sizes, labels=classes, **options):
    full, parts = new_mlp(), new_mlp()
    F.cross_entropy(full(rows), labels, **options).backward()
    for x, y in zip(rows.split(sizes), labels.split(sizes), strict=True):
        mean = F.cross_entropy(parts(x), y, **options)
        (mean / len(sizes)).backward()
    return relative_error(flat_gradient(parts), flat_gradient(full))


padded = torch.where(torch.arange(32) < 10, -100, classes)
weights = torch.tensor([1.0, 5.0, 0.2]).double()
print(f"16 + 16:                  {error_of_mean([16, 16]):.0e}")
print(f"20 + 12:                  {error_of_mean([20, 12]):.2f}")
print(f"16 + 15 + 1:              {error_of_mean([16, 15, 1]):.2f}")
print(f"16 + 16, 10 ignored:      {error_of_mean([16, 16], padded):.2f}")
halved = error_of_mean([16, 16], weight=weights)
print(f"16 + 16, class weights:   {halved:.2f}")

# %% [markdown]
r"""
The numbers are relative errors of the gradient. In `16 + 15 + 1` one sample counts as much as
sixteen others: the error is larger than the gradient itself.
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

Three calls, three jobs. `backward()` adds to `.grad`. `step()` uses what is there.
`zero_grad()` clears it. (Clipping and a scaler's `unscale_` rescale what is there: once per window,
therefore, before the step.) So sum the losses of a part and divide by the number
of samples of the *whole*.
"""

# %% cell="shortest_form"
model = new_mlp()
for x, y in zip(rows.split(20), classes.split(20), strict=True):
    part_loss = F.cross_entropy(model(x), y, reduction="sum")
    (part_loss / len(rows)).backward()

error = relative_error(flat_gradient(model), flat_gradient(whole))
print(f"20 + 12 against 32: relative error {error:.1e}")

# %% [markdown]
r"""
**What to divide by.** Let $D$ be the denominator of the full batch's mean. Each part contributes
its *sum* over that same $D$:

$$g = \frac{1}{D} \sum_j \sum_{n \in \text{part } j} \nabla \ell_n$$

| the loss is | $D$, over the whole window |
|---|---|
| a mean over samples | number of samples; for `F.cross_entropy`, of tokens or pixels |
| a mean over all outputs, as `F.mse_loss` without `weight` | number of outputs of all samples together |
| with `ignore_index` | number of labels that are not ignored |
| `F.cross_entropy` with class weights, labels as indices | sum of the weights $w_{y_n}$ of these labels |

(`F.ctc_loss` divides each sample by its target's length first: weight each part's mean by its share of the samples.)

Dividing each part's *mean* by the number of parts is the special case in which all parts have
the same share of $D$.
"""

# %% [markdown]
r"""
**Why it saves memory.** The forward pass keeps what the backward pass will need. `backward()` lets
go of it. If each part goes backward before the next one goes forward, there is never more than one
part's graph. If you add up the losses and go backward once at the end, all graphs are there
together. The gradient is the same, and nothing is saved.
"""


# %% cell="graphs_over_time"
def kept_over_time(strategy, num_parts=4):
    model, kept, waiting = digit_mlp(width=256), [0.0], []
    images, labels = torch.rand(256, 1, 8, 8), torch.zeros(256).long()
    with saved_tensor_bytes([*model.parameters(), images, labels]) as saved:
        for part in torch.arange(256).chunk(num_parts):
            scores = model(images[part])
            part_sum = F.cross_entropy(scores, labels[part], reduction="sum")
            waiting.append(part_sum / 256)
            kept.append(saved.live_bytes / 2**20)
            if strategy == "each":
                waiting.pop().backward()
                kept.append(saved.live_bytes / 2**20)
        if waiting:
            sum(waiting).backward()
            kept.append(saved.live_bytes / 2**20)
    return kept


# %% cell="graphs_over_time_figure"
torch.manual_seed(2)
each, together = kept_over_time("each"), kept_over_time("once")
figure, axes = new_figure(figsize=(6, 3))
axes.plot(range(6), together, "o--", color=PALETTE[1], label="backward once")
axes.plot(range(9), each, "o-", color=PALETTE[0], label="backward on each part")
axes.set(xlabel="moment: each forward, each backward", ylim=(0, None))
axes.set(ylabel="kept for backward (MiB)")
axes.set_title(f"One graph at a time: {max(together) / max(each):.1f} x less")
axes.legend()
figure

# %% [markdown]
r"""
## 3 · See it

### An epoch, window by window

`n` micro-batches, a step after every `k` of them, and after the last. Move the sliders: each
column is a micro-batch, F a forward pass and B a backward pass. An orange column belongs to a
window that is not full: its denominator is its own, smaller, one.
"""


# %% cell="epoch_figure"
def epoch_figure(num_micro_batches=10, accumulation_steps=4, flush=True):
    n, k = num_micro_batches, accumulation_steps
    figure, axes = new_figure(figsize=(7, 2.2))
    for i in range(n):
        full = i < n - n % k
        color = PALETTE[5] if full else PALETTE[4]
        axes.bar(i, 1, width=0.9, color=color)
        axes.text(i, 0.5, "F\nB", ha="center", va="center", fontsize=8)
        if (i + 1) % k == 0 or (flush and i == n - 1):
            axes.plot([i + 0.5] * 2, [0, 1.25], color=PALETTE[6])
            axes.text(i + 0.5, 1.3, "step", ha="right", fontsize=8)
    steps, left = n // k, n % k
    if flush:
        steps += left > 0
    wasted = left if not flush else 0
    words = f"{wasted} leak{'s' if wasted == 1 else ''}"
    words = words if wasted else "every one is used"
    batches = f"{n} micro-batch{'' if n == 1 else 'es'}"
    made = f"{steps} step{'' if steps == 1 else 's'}"
    axes.set(xlim=(-0.6, max(n, 5)), ylim=(0, 1.6), yticks=[])
    axes.set(xlabel="micro-batch")
    axes.set_xticks(range(n), range(1, n + 1))
    axes.spines["left"].set_visible(False)
    axes.set_title(f"{batches}, {made}: {words}")
    return figure


explore(
    epoch_figure,
    num_micro_batches=range(1, 17),
    accumulation_steps=range(1, 9),
    flush=True,
)

# %% [markdown]
r"""
### How much each sample counts

Each dot is one of 32 samples: its share in the update. On the dashed line all count the same.
Choose how the batch is cut, and how many of the first labels are padding.
"""


# %% cell="share_figure"
def share_figure(cut="16 + 15 + 1", ignored=0):
    sizes = [int(one) for one in cut.split(" + ")]
    counts = torch.arange(32) >= ignored
    shares = []
    for part in counts.split(sizes):
        valid = max(int(part.sum()), 1)
        shares += (part / valid / len(sizes)).tolist()
    fair = 1 / int(counts.sum())
    figure, axes = new_figure(figsize=(6, 3))
    axes.axhline(fair, color=PALETTE[0], linestyle="--")
    axes.text(0, fair, "right share", color=PALETTE[0], va="bottom")
    axes.plot(range(32), shares, "o", color=PALETTE[1])
    largest = max(shares) / fair
    even = "Every sample counts the same"
    odd = f"Mean of means: one sample counts {largest:.3g} x its share"
    axes.set_title(odd if largest > 1.001 else even)
    axes.set(xlabel="sample", ylabel="share in the update")
    axes.set(ylim=(0, 1.15 * max(shares)))
    return figure


explore(
    share_figure,
    cut=["16 + 16", "20 + 12", "16 + 15 + 1", "8 + 8 + 8 + 8"],
    ignored=range(8),
)

# %% [markdown]
r"""
### Where equality must fail

Everything so far took for granted that the loss of a sample depends on that sample alone. Under
batch normalization in training it depends on the mean and the variance of whatever else
is in the *micro*-batch. No weighting repairs that: the parts compute another function.
(`digit_mlp` is two hidden layers; the norm stands behind each linear layer but the last.)
"""


# %% cell="norms_compared"
def error_with(norm, num_parts, train=True):
    errors = []
    for parts in (1, num_parts):
        torch.manual_seed(3)
        model = digit_mlp(norm=norm).double().train(train)
        images, labels = data.X_train[:64].double(), data.y_train[:64]
        for x, y in zip(images.chunk(parts), labels.chunk(parts), strict=True):
            (F.cross_entropy(model(x), y) * len(x) / 64).backward()
        errors.append(flat_gradient(model))
    return relative_error(errors[1], errors[0])


# %% cell="norms_figure"
splits = [2, 4, 8, 16, 32]
lines = {
    "batch norm, train": [error_with("batch", k) for k in splits],
    "batch norm, eval": [error_with("batch", k, False) for k in splits],
    "layer norm": [error_with("layer", k) for k in splits],
    "group norm": [error_with("group", k) for k in splits],
}
figure = line_chart(
    lines,
    title="Of these, only batch statistics break the equality",
    xlabel="micro-batches per batch of 64",
    ylabel="relative error of the gradient",
    x=splits,
    log_x=True,
    log_y=True,
)
figure.axes[0].set_xscale("log", base=2)
figure.axes[0].set_xticks(splits, splits)
figure.axes[0].legend(loc="center right")
figure

# %% [markdown]
r"""
An error of $10^{-16}$ is rounding. In training the gradient of the batch-norm network is another
one, and with 32 parts of two samples each the error is larger than the gradient. Its running
statistics also move once per *micro*-batch, as if there had been that many batches.

What can be done:

| | equality | price |
|---|---|---|
| normalize per sample: group norm, layer norm | exact | another architecture |
| batch norm in `eval()`: fixed statistics | exact | only where the statistics are good: fine-tuning |
| accept it | no | the statistics of a small batch |

`SyncBatchNorm` does not help: it shares statistics between processes at one moment, not between
micro-batches one after another. *Dropout* is another matter. It treats samples alone, but draws
random numbers: both ways are right, and equal only if the same numbers are drawn. *Spectral norm* in training
(chapter 07) moves its two vectors with each forward pass: each part has slightly other weights.

**Losses that are not sums over samples** fail in the same way, whatever the layers are: contrastive
losses, in which the other samples of the batch are the negatives (CLIP, SimCLR), the Dice loss of a
whole batch, load balancing in a mixture of experts. The negatives of a micro-batch are those of the
micro-batch. Accumulating does not make their batch larger. (A penalty on the weights does not fail: add it once per window, not to each part.)
"""

# %% [markdown]
r"""
## 4 · Measure it on this machine

One step on 256 images (8192 on a GPU), cut into more and more parts. What is kept for the backward pass falls with the
part. Weights, gradients and the optimizer's state do not: gradients stay for the whole window. Time grows where a
part no longer fills the device.

**When not to.** Beside steps on the same small batches accumulation saves only optimizer steps: as many passes, fewer updates. And it
holds the gradients during the forward passes that follow. It pays where the *batch size* is wanted: a recipe to be reproduced, an exchange between GPUs to be made rarer. If a
small batch is only what fits, try it as it is, with a rate and betas tuned for it. For language models that has
been measured to do as well (sources below).
"""

# %%
batch_size = 8192 if device.type == "cuda" else 256
images, labels = gaussian_clusters(batch_size, (1, 8, 8), device=device)
convnet = digit_convnet(width=16).to(device)


def step_in_parts(num_parts):
    convnet.zero_grad()
    for x, y in zip(
        images.chunk(num_parts), labels.chunk(num_parts), strict=True
    ):
        part_sum = F.cross_entropy(convnet(x), y, reduction="sum")
        (part_sum / len(images)).backward()


# %% cell="measure"
cuts, peak_mib, step_ms = [1, 2, 4, 8, 16, 32], [], []
known = [*convnet.parameters(), images, labels]
for k in cuts:
    memory = peak_memory(lambda k=k: step_in_parts(k), ignore=known)
    timing = measure_time(lambda k=k: step_in_parts(k), warmup=1, repeats=3)
    peak_mib.append(memory.peak_bytes / 2**20)
    step_ms.append(timing.median_s * 1e3)
    print(f"{k:2} parts: {peak_mib[-1]:6.2f} MiB ({memory.counted})", end="")
    print(f", step {timing}")

# %%
figure, (left, right) = new_figure(1, 2)
left.plot(cuts, peak_mib, "o-", color=PALETTE[0])
left.set(xlabel="parts", ylabel=f"peak, {memory.counted} (MiB)")
left.set_title(f"Kept: {peak_mib[0] / peak_mib[-1]:.0f} x less")
right.plot(cuts, step_ms, "o-", color=PALETTE[1])
right.set(xlabel="parts", ylabel="time of a step (ms)", ylim=(0, None))
right.set_title(f"Time: {step_ms[-1] / step_ms[0]:.1f} x with 32 parts")
for one in (left, right):
    one.set_xscale("log", base=2)
    one.set_xticks(cuts, cuts)
left.set_yscale("log")
figure

# %% cell="measure_beside_reference"
for k, mib, ms in zip(cuts, peak_mib, step_ms, strict=True):
    if k in (1, 32):
        name = f"09_gradient_accumulation/{k}_parts"
        beside_reference(f"{name}_peak_mib", mib, unit="MiB")
        beside_reference(f"{name}_step_ms", ms, unit="ms")

# %% [markdown]
r"""
On a GPU, with a batch of 8192, the memory falls as much, and the time grows more: a small part leaves most of a large card idle.
"""

# %% cell="recorded_on_a_gpu"
from course_utils import show_recorded

for what, unit in (("peak_mib", "MiB"), ("step_ms", "ms")):
    show_recorded(
        {
            f"{k:2} parts": f"09_gradient_accumulation/{k}_parts_{what}"
            for k in (1, 32)
        },
        unit=unit,
        device="cuda",
    )

# %% [markdown]
r"""
## 5 · Folklore check

What popular posts say about accumulation, run against the PyTorch that is installed here. Each
cell ends in an assertion.

> **"Out of memory? Go to 16 bit, or make the batch or the model smaller."**
> *Correct* with many rows (chapter 10), and not all: there are activation checkpointing, evaluation without a graph, and
> optimizers with a smaller state.

Bytes kept for the backward pass, per step:
"""


# %% cell="claim_003_13"
def kept_bytes(width=256, batch_size=1024, bf16=False):
    torch.manual_seed(13)
    model, batch = digit_mlp(width=width), torch.rand(batch_size, 1, 8, 8)
    with (
        saved_tensor_bytes(model.parameters()) as saved,
        torch.autocast("cpu", torch.bfloat16, enabled=bf16),
    ):
        model(batch)
    return saved.peak_bytes


as_it_was = kept_bytes()
print("float32, 1024 rows:", as_it_was)
print("bfloat16:          ", kept_bytes(bf16=True))
print("512 rows:          ", kept_bytes(batch_size=512))
print("half the width:    ", kept_bytes(width=128))

assert kept_bytes(bf16=True) < as_it_was
assert kept_bytes(batch_size=512) == as_it_was / 2
assert kept_bytes(width=128) < as_it_was

# %% [markdown]
r"""
> **"Accumulation simulates a larger batch."**
> *Correct*, for layers and losses that look at one sample at a time, draw nothing and do not change from pass to pass.

With these the gradients agree to rounding. With batch normalization in training they do not. (And not where each part is padded to its own longest sequence, if
the model does not mask the padding: a mean over steps or the last state of a GRU is then another.)
"""

# %% cell="claim_003_14"
for norm in ("none", "layer", "group", "batch"):
    print(f"{norm:5} norm: relative error {error_with(norm, 4):.0e}")

assert max(error_with(norm, 4) for norm in ("none", "layer", "group")) < 1e-12
assert error_with("batch", 4) > 0.05

# %% [markdown] cell="claim_003_15"
r"""
> **"Several GPUs are another answer."**
> *Half the story.*

With `DataParallel` and `DistributedDataParallel` (DDP) each GPU works on a part of the *batch*. `DataParallel` cuts it; with
DDP a sampler gives each process its part. With DDP each GPU holds the whole model
with gradients and optimizer state. With `DataParallel` the others hold a copy of the model during a
step, and the first holds the rest. So a model that is too large for one GPU is too large for eight.
Sharding (FSDP, `fully_shard`) cuts the model too. Chapter 14 runs
them.
"""

# %% [markdown]
r"""
> **"Two forward passes of 16, gradients added, one step: a batch of 32."**
> *Half the story:* added mean losses give exactly twice the gradient.
>
> **"So the effective batch is 32."**
> *Only after dividing.* Undivided, plain SGD is SGD with twice the learning rate. Weight decay does
> not grow with the gradient, and a threshold for clipping means something else.
"""


# %% cell="claim_003_16_20"
def weights_after(divide, **settings):
    model = new_mlp()
    sgd = torch.optim.SGD(model.parameters(), **settings)
    for _ in range(3):
        sgd.zero_grad()
        for half in (slice(0, 16), slice(16, 32)):
            mean = F.cross_entropy(model(rows[half]), classes[half])
            (mean / 2 if divide else mean).backward()
        sgd.step()
    return nn.utils.parameters_to_vector(model.parameters())


doubled = relative_error(flat_gradient(halves), 2 * flat_gradient(whole))
half_rate = weights_after(False, lr=0.05) - weights_after(True, lr=0.1)
decay = {"weight_decay": 0.1}
decayed = weights_after(False, lr=0.05, **decay)
decayed = decayed - weights_after(True, lr=0.1, **decay)
print(f"undivided against twice the gradient: {doubled:.0e}")
print(f"undivided at lr / 2, weights differ by {half_rate.abs().max():.0e}")
print(f"the same with weight decay:            {decayed.abs().max():.0e}")

assert doubled < 1e-12
assert half_rate.abs().max() < 1e-12
assert decayed.abs().max() > 1e-4

# %% [markdown]
r"""
> **"The plain loop: `train()`, move inputs, output and loss to the device, zero, forward, loss,
> backward, step."**
> *Correct.* Moving the output and the loss does nothing.

They are made where the model and its inputs are. `.to` of a tensor that is there already returns
the same object.
"""

# %% cell="claim_003_17"
model = new_mlp().to(device, torch.float32)
model.train()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, wanted = rows.float().to(device), classes.to(device)
before = nn.utils.parameters_to_vector(model.parameters()).clone()

sgd.zero_grad()
output = model(inputs)
loss = F.cross_entropy(output, wanted)
loss.backward()
sgd.step()
moved = nn.utils.parameters_to_vector(model.parameters()) - before
print("output and loss are on", output.device, "and", loss.device)

assert output.to(device) is output
assert loss.to(device) is loss
assert moved.norm() > 0

# %% [markdown]
r"""
> **"The key is what `backward()` and `step()` each do."**
> *Half the story:* `backward()` adds to `.grad`, `step()` uses it and does not clear it,
> `zero_grad()` does.
"""

# %% cell="claim_003_18"
model = new_mlp()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
F.cross_entropy(model(rows), classes).backward()
once = flat_gradient(model)
F.cross_entropy(model(rows), classes).backward()
twice = flat_gradient(model)
sgd.step()
after_step = flat_gradient(model)
sgd.zero_grad()
print("second backward over first:", (twice.norm() / once.norm()).item())
print("after zero_grad:", model[0].weight.grad)

assert torch.allclose(twice, 2 * once)
assert torch.equal(after_step, twice)
assert model[0].weight.grad is None

# %% [markdown]
r"""
> **"Go backward on every batch; step and zero on every second."**
> *Wrong:* nothing is divided, and what is left at the end of an epoch leaks into the next
> (section 1).
"""

# %% cell="claim_003_19"
assert doubled < 1e-12
assert num_steps == 2
assert left_over > 0.1

# %% [markdown]
r"""
> **"Accumulation is a compromise: the last backward pass weighs more."**
> *Wrong:* it weighs no more than the others.

A sum has no last term. In reverse order the gradient is the same up to rounding.
"""

# %% cell="claim_003_21"
orders = []
for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
    model = new_mlp()
    for j in order:
        part = slice(8 * j, 8 * j + 8)
        (F.cross_entropy(model(rows[part]), classes[part]) / 4).backward()
    orders.append(flat_gradient(model))
reversed_error = relative_error(orders[1], orders[0])
print(f"reversed order: relative error {reversed_error:.0e}")

assert reversed_error < 1e-12

# %% [markdown]
r"""
### With several processes

`DistributedDataParallel` averages gradients between processes in the backward pass after each forward pass. While
accumulating, only the last of a window has to. `no_sync()` skips it, and must stand around the
**forward** pass too:

```python
with model.no_sync() if not last_of_window else contextlib.nullcontext():
    part_loss = sum_of_losses(model(x), y) / samples_of_window
    part_loss.backward()
```

With `static_graph=True` the very first pass must not stand in it (chapter 14).

It is the forward pass that prepares the exchange. Around `backward()` alone, `no_sync` still lets
every part exchange its gradients: right numbers, all of the cost, and no sign of it. Chapter 14
counts the exchanges.

**The denominator** is that of the window over *all* processes. DDP *averages* over them, so multiply
by their number:

```python
part_loss = loss_sum * world_size / samples_of_all_processes
```

Without `world_size` the gradient of two processes is half of the right one. If parts are unequal
(tokens!), the processes have to add up their counts first, with `all_reduce`.

With FSDP2 (`fully_shard`) the switch is `model.set_requires_gradient_sync(False)`. It has a price:
until the exchange each process holds the gradients of the whole model, unsharded.

### With mixed precision

```python
for x, y in window:
    with torch.autocast(device.type, torch.float16):
        part_loss = sum_of_losses(model(x), y) / samples_of_window
    scaler.scale(part_loss).backward()
scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_(parameters, max_norm)
scale = scaler.get_scale()
scaler.step(optimizer)
scaler.update()
if scaler.get_scale() >= scale:
    scheduler.step()
optimizer.zero_grad()
```

Scale each part; unscale, clip, step and update once per window. The scale must not change within a
window. Where it has fallen, the step was left out, and the schedule waits. Chapter 10 explains the scaler; bfloat16 needs none.

Parameters that *are* bfloat16 have bfloat16 gradients, and small parts are lost in the sum. In PyTorch
2.13 `param.grad_dtype = torch.float32` keeps the sum in float32; a `deepcopy` of the model or a file loses it without a word, and under DDP the backward pass raises. `torch.optim.SGD` steps on such
a gradient, unless it is `fused` or compiled; `torch.optim.AdamW` raises a `RuntimeError`.
"""

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Exercises 1 to 3 are checked in float64, 1 and 3 with SGD. Besides the numbers the checks look at *how* the model
is used: how many rows each forward pass gets, and how much memory waits for a backward pass. Go
backward on each micro-batch before the next one goes forward.
"""

# %% [markdown] task="accumulated_step" title="Equal micro-batches" level="core" minutes=12 builds_on="section 2"
r"""
Write `accumulated_step(model, optimizer, X, y, num_micro)`, one optimizer step on the batch `X`, `y` that never holds more
than one of `num_micro` equal micro-batches in memory.

```python
>>> _ = torch.manual_seed(0)
>>> X, y = torch.randn(8, 3), torch.randint(2, (8,))
>>> model = nn.Linear(3, 2)
>>> sgd = torch.optim.SGD(model.parameters(), lr=0.5)
>>> whole = F.cross_entropy(model(X), y).item()
>>> round(accumulated_step(model, sgd, X, y, num_micro=4), 4) == round(whole, 4)
True
```

- The step has the same effect as one step on the mean cross-entropy of the whole batch.
- `len(X)` is a multiple of `num_micro`, which may be 1 or `len(X)`.
- The optimizer steps once. Gradients that were there before do not count.
- Some parameters may be frozen or unused: no step may move them.
- It returns the mean loss of the batch, before the step, as a Python float.

<details><summary>Hint 1: the parts</summary>

`X.chunk(num_micro)` gives the parts in order, and so does `y.chunk(num_micro)`. `zip` goes through both.
</details>
<details><summary>Hint 2: what to divide</summary>

Each part's mean loss, by the number of parts, before `backward()`.
</details>
<details><summary>Hint 3: the loss to return</summary>

`.item()` makes a float. What you divided already adds up to the mean; what you did not divide adds up to
`num_micro` times the mean.
</details>
<details><summary>Help: only the first batch is right</summary>

Then the second one still has the gradients of the first. `zero_grad()` belongs before the first `backward()`
of a step, and nowhere between two of them.
</details>
"""


# %% exercise="accumulated_step"
def accumulated_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    X: Tensor,  # (N, ...)
    y: Tensor,  # (N,) int64
    num_micro: int,
) -> float:
    """One step on the batch in micro-batches; returns its mean loss."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    total = 0.0
    pairs = zip(X.chunk(num_micro), y.chunk(num_micro), strict=True)
    for X_micro, y_micro in pairs:
        loss = F.cross_entropy(model(X_micro), y_micro) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total
    ### END SOLUTION


# %% check="accumulated_step"
with visible_check("accumulated_step"):
    torch.manual_seed(0)
    X, y = torch.randn(8, 3).double(), torch.randint(2, (8,))
    model = nn.Linear(3, 2).double()
    direct = copy.deepcopy(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.5)
    mean = F.cross_entropy(direct(X), y)
    mean.backward()
    returned = accumulated_step(model, sgd, X, y, 4)
    expect("the loss", returned, mean.item())
    moved = direct.bias - 0.5 * direct.bias.grad
    expect("the bias after a step", model.bias.detach(), moved.detach())

# %% grade="accumulated_step" points=6

# %% [markdown] task="accumulate_gradients" title="Unequal micro-batches, weights and ignored labels" level="more" minutes=18 builds_on="section 2, exercise 1, chapter 03"
r"""
Write `accumulate_gradients(model, micro_batches, weight, ignore_index)`, which leaves in `.grad` the gradient of the loss that
`F.cross_entropy(..., weight=weight, ignore_index=ignore_index)` gives for *one* batch that holds all micro-batches.

```python
>>> X, y = torch.eye(5), torch.tensor([0, 1, 1, -100, 0])
>>> _ = torch.manual_seed(0)
>>> model = nn.Linear(5, 2)
>>> whole = F.cross_entropy(model(X), y).item()
>>> micro_batches = [(X[:3], y[:3]), (X[3:], y[3:])]
>>> round(accumulate_gradients(model, micro_batches), 4) == round(whole, 4)
True
```

- `micro_batches` is a list of pairs `x` (n, ...), `y` (n,). The n differ; each is at least 1.
- `weight` is `None` or has shape (C,), one for each class, and is not negative. `ignore_index` may be any integer, also one
  that is a class.
- A micro-batch in which nothing counts (all labels ignored, or of weight 0) adds nothing: no NaN.
- It returns the loss, as a Python float. If nothing counts in *any* of them, that is NaN, and the gradients hold no NaN.
- There is no optimizer here. Gradients are `None` at the start.

<details><summary>Hint 1: the denominator</summary>

You need it before the first `backward()`. The list can be gone through twice: first the labels alone, then
the forward and backward passes.
</details>
<details><summary>Hint 2: the weights of the labels</summary>

Take the labels that are not ignored, then index: `weight[labels]` is the weight of each, and their sum the share of
this micro-batch in the denominator. Without `weight` it is their number.
</details>
<details><summary>Hint 3: no NaN from an empty part</summary>

`reduction="mean"` divides 0 by 0. `reduction="sum"` gives 0, and its gradient is 0 as well, if the logits are finite.
</details>
<details><summary>Help: multiplying the mean by its share gives NaN</summary>

NaN · 0 is NaN. Either use the sum, or leave out the micro-batches of which nothing counts.
</details>
"""


# %% exercise="accumulate_gradients"
def accumulate_gradients(
    model: nn.Module,
    micro_batches: list[tuple[Tensor, Tensor]],
    weight: Tensor | None = None,  # (C,)
    ignore_index: int = -100,
) -> float:
    """Gradient of the mean over all micro-batches, into .grad.

    Returns:
        The mean loss; NaN if no label counts.
    """
    ### BEGIN SOLUTION
    denominator = 0.0
    for _, y in micro_batches:
        counted = y[y != ignore_index]
        shares = torch.ones(len(counted)) if weight is None else weight[counted]
        denominator += shares.sum().item()
    if denominator == 0:
        return math.nan
    options = {"weight": weight, "ignore_index": ignore_index}
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(model(x), y, reduction="sum", **options)
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total
    ### END SOLUTION


# %% check="accumulate_gradients"
with visible_check("accumulate_gradients"):
    torch.manual_seed(1)
    X, y = torch.randn(5, 3).double(), torch.tensor([0, 1, 1, -100, 0])
    model = nn.Linear(3, 2).double()
    direct = copy.deepcopy(model)
    mean = F.cross_entropy(direct(X), y)
    mean.backward()
    pairs = [(X[:3], y[:3]), (X[3:], y[3:])]
    expect("the loss", accumulate_gradients(model, pairs), mean.item())
    expect("the bias's gradient", model.bias.grad, direct.bias.grad)

# %% grade="accumulate_gradients" points=8

# %% [markdown] task="train_epoch" title="The loop, with its last window" level="more" minutes=24 builds_on="exercises 1 and 2, chapters 06 and 08"
r"""
Write `train_epoch(model, optimizer, loader, accumulation_steps, scheduler, max_norm)`, one epoch with a step after every
`accumulation_steps` micro-batches, **and after the last one**.

```python
>>> _ = torch.manual_seed(0)
>>> model = nn.Linear(3, 2)
>>> sgd = torch.optim.SGD(model.parameters(), lr=0.5)
>>> loader = [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0])) for _ in range(5)]
>>> schedule = torch.optim.lr_scheduler.StepLR(sgd, step_size=1, gamma=0.5)
>>> loss = train_epoch(model, sgd, loader, accumulation_steps=2, scheduler=schedule)
>>> type(loss), schedule.last_epoch
(<class 'float'>, 3)
```

- `loader` yields micro-batches: pairs `x` (n, ...), `y` (n,), of sizes that may differ, each at least 1. It may be a generator.
- A *window* is `accumulation_steps` micro-batches, or what is left at the end. Each step uses the mean cross-entropy over the
  samples of its window.
- If `max_norm` is given, clip the total norm of the window's gradient to it, once per step, as `nn.utils.clip_grad_norm_` does. If
  `scheduler` is given, step it once after each optimizer step.
- Gradients are `None` or zero at the start (`None`, where a parameter is frozen or unused), and must be so at the end, too.
- It returns the mean loss over all samples of the epoch, as a Python float, NaN if there is none: each sample's loss at the
  moment it went through the model.

<details><summary>Hint 1: windows of a generator</summary>

`itertools.islice(iterator, k)` takes the next k items, or as many as there are. Call `iter(loader)` once, before the loop;
an empty list means the end. A window may be a list: it holds k inputs, but no graphs.
</details>
<details><summary>Hint 2: the other way</summary>

Add up gradients of *summed* losses, count the samples, and divide all gradients by the count before clipping and the step.
</details>
<details><summary>Hint 3: the order at the end of a window</summary>

Clip, step, scheduler, clear. Clipping wants the finished gradient: after the last `backward()` of the window and after
any division.
</details>
<details><summary>Help: one step too many, or too few</summary>

n micro-batches give ⌈n / k⌉ steps. If you step at multiples of k and once more after the loop, n = 4, k = 2 gets a third.
</details>
"""


# %% exercise="train_epoch"
def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader,  # yields x (n, ...), y (n,)
    accumulation_steps: int,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
    max_norm: float | None = None,
) -> float:
    """Trains for one epoch; returns the mean loss over its samples."""
    ### BEGIN SOLUTION
    micro_batches = iter(loader)
    loss_sum, num_samples = 0.0, 0
    while window := list(itertools.islice(micro_batches, accumulation_steps)):
        window_size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / window_size).backward()
            loss_sum += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        num_samples += window_size
    return loss_sum / num_samples if num_samples else math.nan
    ### END SOLUTION


# %% check="train_epoch"
with visible_check("train_epoch"):
    torch.manual_seed(2)
    X, y = torch.randn(10, 3).double(), torch.randint(2, (10,))
    model = nn.Linear(3, 2).double()
    sgd = torch.optim.SGD(model.parameters(), lr=0.5)
    direct = copy.deepcopy(model)
    moves = torch.optim.SGD(direct.parameters(), lr=0.5)
    for part in (slice(0, 8), slice(8, 10)):
        moves.zero_grad()
        F.cross_entropy(direct(X[part]), y[part]).backward()
        moves.step()
    parts = zip(X.split(4), y.split(4), strict=True)
    train_epoch(model, sgd, parts, 2)
    expect("the bias", model.bias.detach(), direct.bias.detach())

# %% grade="train_epoch" points=10

# %% [markdown] task="accumulation_gap" title="Show where equality must fail" level="more" minutes=14 builds_on="section 3, chapter 05"
r"""
Write `accumulation_gap(model, X, y, num_micro)`, the relative error of the accumulated gradient, which says whether a model can be
trusted with accumulation.

```python
>>> _ = torch.manual_seed(0)
>>> X, y = torch.randn(8, 3).double(), torch.randint(2, (8,))
>>> model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)).double()
>>> accumulation_gap(model, X, y, num_micro=2) > 0.001
True
>>> accumulation_gap(model.eval(), X, y, num_micro=2) < 1e-12
True
```

- It is $\lVert g_\text{accumulated} - g_\text{full} \rVert / \lVert g_\text{full} \rVert$ over all parameters that get a
  gradient, taken together as one long vector. The loss is the mean cross-entropy.
- $g_\text{full}$ comes from one forward pass over all of `X`, $g_\text{accumulated}$ from `num_micro` micro-batches of equal size,
  consecutive rows, weighted so that nothing but the model itself can make a difference.
- The model is measured in the mode in which it is, which may differ from layer to layer. It has no dropout.
- Small gaps count: round nothing, and add nothing to the denominator. It returns a Python float.
- Afterwards the model is as it was: weights, gradients, running statistics and their counter, mode. So also if it raises.

<details><summary>Hint 1: an unspoilt model</summary>

A forward pass in training moves running statistics. Work on `copy.deepcopy(model)`, one for each gradient. A deep copy of a
parameter comes without its `.grad`.
</details>
<details><summary>Hint 2: one long vector</summary>

`torch.cat` of the flattened gradients, leaving out those that are `None`, in the order of `parameters()`.
</details>
<details><summary>Help: group normalization gives 0.5 or 1.0</summary>

Then the parts are weighted wrongly, or both gradients landed in the same `.grad`. With group normalization
the result is about 1e-16 in float64.
</details>
"""


# %% exercise="accumulation_gap"
def accumulation_gap(
    model: nn.Module,
    X: Tensor,  # (N, ...)
    y: Tensor,  # (N,) int64
    num_micro: int,
) -> float:
    """Relative error of the accumulated gradient; changes nothing."""

    ### BEGIN SOLUTION
    def gradient(num_parts: int) -> Tensor:
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts), strict=True):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([grad.flatten() for grad in grads])

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()
    ### END SOLUTION


# %% check="accumulation_gap"
with visible_check("accumulation_gap"):
    torch.manual_seed(3)
    X, y = torch.randn(8, 3).double(), torch.randint(2, (8,))
    layers = nn.BatchNorm1d(3), nn.Linear(3, 2)
    model = nn.Sequential(*layers).double()
    gap = accumulation_gap(model, X, y, 2)
    assert gap > 1e-3, "in training batch norm must show a gap"
    counted = model[0].num_batches_tracked.item()
    expect("num_batches_tracked afterwards", counted, 0)
    gap = accumulation_gap(model.eval(), X, y, 2)
    assert gap < 1e-12, "in eval there must be no gap"

# %% grade="accumulation_gap" points=6

# %% [markdown] task="without_batch_norm" title="Repair it, and keep the normalization" level="hard" minutes=15 builds_on="exercise 4, chapter 05"
r"""
Write `without_batch_norm(model)`, which returns a copy of a *new* model that can be trained with accumulation: every batch norm is
replaced by a normalization that looks at each sample alone.

```python
>>> model = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
>>> repaired = without_batch_norm(model)
>>> out = repaired[1](3 * torch.randn(5, 6) + 7).detach()
>>> bool(out.mean(1).abs().max() < 1e-4), type(model[1]).__name__
(True, 'BatchNorm1d')
```

- Every `nn.BatchNorm1d`, `nn.BatchNorm2d` and `nn.BatchNorm3d` is replaced where it stands, under the same name, at any depth: in training
  or in eval, frozen or not, with running statistics or without. The model itself may be one. None stands in it twice.
- Before its weight and bias, each sample of a replacement's output has mean 0 and variance 1 (the biased one, as in layer norm) over all channels and positions, taken together, in training and in `eval()`. C is at least 3 and may be any number, such as 7.
- It has the weight and the bias of the batch norm, one number per channel, of the same values, trained or frozen as they were; none,
  if `affine=False`. It has the dtype of the layer it replaces.
- Everything else in the model is kept: names, values, modes, and what is frozen.
- The model you are given stays as it is, and shares no parameter and no memory with the copy.

<details><summary>Hint 1: which layer</summary>

`nn.GroupNorm(1, C)` takes all channels and positions of a sample together, for inputs of any number of dimensions. It has one weight
and one bias per channel, as batch norm does. For images in `torch.channels_last`, or volumes in `torch.channels_last_3d`, float32 or narrower, whose mean is hundreds of times their spread, its variance is off here, on a CPU, but not on their `clone(memory_format=torch.contiguous_format)`.
</details>
<details><summary>Hint 2: going through the model</summary>

`named_children()` gives the layers right below a module, each once, and `setattr(module, name, new_layer)` replaces one, also in an
`nn.Sequential`. A function that calls itself for every child reaches any depth.
</details>
<details><summary>Help: "mixed dtype" or "expected scalar type"</summary>

A new layer is float32. Give it `dtype=layer.weight.dtype`, if there is a weight, or the copy's parameters themselves.
</details>
"""


# %% exercise="without_batch_norm"
def without_batch_norm(model: nn.Module) -> nn.Module:
    """A copy whose batch norms are per-sample normalizations."""
    ### BEGIN SOLUTION
    batch_norms = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def per_sample(layer: nn.Module) -> nn.Module:
        if not isinstance(layer, batch_norms):
            for name, child in layer.named_children():
                setattr(layer, name, per_sample(child))
            return layer
        channels, affine = layer.num_features, layer.affine
        new = nn.GroupNorm(1, channels, eps=layer.eps, affine=affine)
        if affine:
            new.weight, new.bias = layer.weight, layer.bias
        return new.train(layer.training)

    return per_sample(copy.deepcopy(model))
    ### END SOLUTION


# %% check="without_batch_norm"
with visible_check("without_batch_norm"):
    torch.manual_seed(4)
    layers = nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)
    model = nn.Sequential(*layers)
    repaired = without_batch_norm(model)
    kinds = [type(layer).__name__ for layer in model]
    expect("your argument", kinds, ["Linear", "BatchNorm1d", "Linear"])
    out = repaired[1](3 * torch.randn(5, 6) + 7)
    expect("its means", out.mean(1).detach(), torch.zeros(5), atol=1e-4)

# %% grade="without_batch_norm" points=6

# %% [markdown]
r"""
## 7 · Recap

- `backward()` adds, `step()` uses, `zero_grad()` clears. Nothing is averaged for you.
- Divide each part's *sum* by the denominator of the whole window: samples, outputs, labels that count, or the sum of their
  weights. Dividing means by `k` is right only where all parts have the same denominator.
- Undivided, plain SGD trains at `k` times its learning rate in full windows. If all are full and nothing is clipped, AdamW, and Adam without weight decay, hide it while gradients are large beside `eps`.
- One clip, one step, one scheduler step per window; the last window is stepped on too, with its own denominator.
- Go backward on each part before the next goes forward, or no memory is saved.
- Batch norm in training sees the micro-batch, and so does a contrastive loss. No weighting repairs that; per-sample
  normalization does, for the norm.
- float32 gradients agree to five or six digits, not bitwise: the sums are taken in another order. To fewer where
  the terms cancel, as near a minimum.
- DDP's `no_sync()` stands around forward and backward of all but the last part (with `static_graph=True`, from the second step on). DDP averages: divide by the denominator of all processes, and multiply by their number.

**Primary sources**

- PyTorch:
  [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html),
  [CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html) (its denominators),
  [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html),
  [gradient accumulation with mixed precision](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation),
  [GroupNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html).
- The mean of means in large libraries: Hugging Face,
  [Fixing Gradient Accumulation](https://huggingface.co/blog/gradient_accumulation), 2024.
- Normalization without the batch: Y. Wu and K. He, [Group Normalization](https://arxiv.org/abs/1803.08494), 2018.
- Small batches without accumulation: M. Marek and others,
  [Small Batch Size Training for Language Models](https://arxiv.org/abs/2507.07101), 2025.
- Learning rate and batch size: P. Goyal and others,
  [Accurate, Large Minibatch SGD](https://arxiv.org/abs/1706.02677), 2017; its section on pitfalls has the missing factor.
"""
