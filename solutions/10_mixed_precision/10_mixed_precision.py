# %% [markdown] reading_minutes=25 builds_on="chapter 02 (*dtypes*), chapter 06 (*schedules*), chapter 08 (*clipping*), chapter 09 (*accumulation*)"
r"""
# 10 · Mixed precision

Half the bytes per number, and on a GPU several times the speed of a matrix product: 16 bit is where
most training happens today. It goes wrong in quiet ways. Small updates are rounded away, small
gradients become 0, sums overflow, and a clipping threshold means a thousandth of what you think.

**After this chapter you can**

- say which numbers float16 and bfloat16 can hold, and which of your gradients they lose;
- train under `torch.autocast` with the block around the right lines, and tell what it converts;
- write a loss scaler, and use PyTorch's in the right order, also with clipping;
- combine it with accumulation and a learning rate schedule, where a step may be skipped.
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
import warnings

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

Two formats have 16 bits. `float16` spends 5 of them on the exponent and 10 on the digits,
`bfloat16` 8 and 7. So bfloat16 reaches as far as float32, with two to three decimal digits; float16 has
three to four, and ends at 65504.
"""

# %% cell="three_formats"
for format_16 in (torch.float32, torch.bfloat16, torch.float16):
    info = torch.finfo(format_16)
    print(f"{str(format_16)[6:]:9} largest {info.max:7.1e}", end="")
    print(f", smallest {info.smallest_normal * info.eps:7.1e}", end="")
    print(f", next after 1: {1 + info.eps:.7f}")

# %% [markdown]
r"""
### Small updates are lost

With a small learning rate, a step adds to most weights a thousandth of themselves, or less. In bfloat16 there is
no number between 1 and 1.0078: the sum is rounded back to the weight. So a model whose *weights* are bfloat16 hardly
learns while its gradients are fine. (float16 has three bits more, and loses only smaller updates, save near 0, where
some biases start: its steps are never finer than 6 · 10⁻⁸.) Below, the digits are learned three times at such a rate, with the same numbers drawn.
"""

# %%
data = digits()


# %% cell="lost_updates"
def train_digits(weights_in, autocast_to=None, num_steps=300, lr=0.02):
    torch.manual_seed(0)
    net, curve = digit_mlp().to(weights_in), []
    sgd = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(num_steps):
        pick = torch.randperm(len(data.X_train))[:128]
        images, labels = data.X_train[pick], data.y_train[pick]
        on = autocast_to is not None
        with torch.autocast("cpu", autocast_to, enabled=on):
            mean = F.cross_entropy(net(images.to(weights_in)), labels)
        sgd.zero_grad()
        mean.backward()
        sgd.step()
        curve.append(mean.item())
    windows = torch.tensor(curve).unfold(0, 20, 10)
    return windows.mean(1).tolist()


# %%
curves = {
    "all in float32": train_digits(torch.float32),
    "autocast to bfloat16": train_digits(torch.float32, torch.bfloat16),
    "all in bfloat16": train_digits(torch.bfloat16),
}
line_chart(
    curves,
    title="bfloat16 weights and a small rate: learning stalls",
    xlabel="optimizer step",
    ylabel="training loss, mean of 20 steps (nats)",
    x=[20 + 10 * i for i in range(len(curves["all in float32"]))],
)

# %% [markdown]
r"""
The first two lines lie on each other: under autocast the layers compute in bfloat16, from copies, while the
weights stay float32.

### Small gradients become 0

In float16 the smallest number is 6 · 10⁻⁸. Gradients are often smaller. Below are those of the
activations of a small network that has learned the digits. This is what flows backward from layer
to layer, in 16 bit under autocast. Each is one sample's share of a *mean*, and most samples are
classified well already.
"""


# %% cell="gradient_sizes"
def gradient_sizes(num_steps=30):
    torch.manual_seed(0)
    net, kept = digit_convnet(), []
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    images, labels = data.X_train[:512], data.y_train[:512]
    for _ in range(num_steps):
        adam.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        adam.step()
    for name in ("conv1", "conv2", "head"):
        layer = net.get_submodule(name)
        layer.register_forward_hook(lambda *of: kept.append(of[2]))
    mean = F.cross_entropy(net(images), labels)
    found = torch.autograd.grad(mean, kept)
    flat = torch.cat([one.flatten() for one in found]).abs()
    return flat[flat > 0]


sizes = gradient_sizes()
lost = (sizes < 2**-25).float().mean().item()
print(f"{len(sizes)} gradients that are not 0 in float32")
print(f"{lost:.0%} of them are 0 in float16")

# %% [markdown]
r"""
The remedy is a factor. Multiply the *loss*, and by the chain rule every gradient is multiplied, before it is rounded.
Divide the gradients of the weights, which are float32, when the backward pass is over. Move the slider: the whole
histogram moves right. Green is the normal range of float16; in the yellow one digits are lost. Too far, and the
largest overflow.
"""


# %% cell="underflow_figure"
def underflow_figure(log2_scale=0):
    exponents = (sizes.log2() + log2_scale).numpy()
    under, over = (exponents < -25).mean(), (exponents >= 16).mean()
    figure, axes = new_figure(figsize=(6, 3))
    axes.axvspan(-14, 16, color=PALETTE[2], alpha=0.2)
    axes.axvspan(-24, -14, color=PALETTE[4], alpha=0.2)
    counts, *_ = axes.hist(exponents, bins=range(-60, 28), color=PALETTE[0])
    axes.set_ylim(0, 1.2 * counts.max())
    for place, words in ((1, "normal range"), (-19, "fewer digits")):
        axes.text(place, 1.1 * counts.max(), words, ha="center", fontsize=8)
    axes.set(xlim=(-60, 28), xlabel="size of a gradient, as a power of 2")
    axes.set(ylabel="gradients", yticks=[])
    axes.spines["left"].set_visible(False)
    verdict = f"{under:.0%} become 0"
    if over > 0:
        verdict += f", {over:.1%} become infinite"
    axes.set_title(f"Loss times 2^{log2_scale}: in float16 {verdict}")
    return figure


explore(underflow_figure, log2_scale=range(0, 37, 4))

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

**bfloat16:** one block, around the forward pass and the loss.
"""

# %% cell="shortest_bf16"
torch.manual_seed(0)
net = digit_mlp()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
images, labels = data.X_train[:256], data.y_train[:256]

with torch.autocast("cpu", torch.bfloat16):
    scores = net(images)
    mean = F.cross_entropy(scores, labels)
mean.backward()
sgd.step()
print("scores:", scores.dtype, " loss:", mean.dtype)
print("weights:", net.head.weight.dtype, end="")
print("  gradients:", net.head.weight.grad.dtype)

# %% [markdown]
r"""
`backward()` and `step()` stand outside. The backward pass runs each of PyTorch's operations in the dtype of its
forward pass; the optimizer works on float32 weights. On a GPU the first argument is `"cuda"`; `some_tensor.device.type`
serves both. Without a dtype, autocast goes to float16 on a GPU and to bfloat16 on a CPU: name it.

**float16:** the same block, and a scaler, made once for the whole run.
"""

# %% cell="shortest_fp16"
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)

for _ in range(3):
    sgd.zero_grad()
    with torch.autocast("cpu", torch.float16):
        mean = F.cross_entropy(net(images), labels)
    scaler.scale(mean).backward()  # gradients, times the scale
    scaler.step(sgd)  # divided by it; no step if one is inf or NaN
    scaler.update()  # the scale falls after an overflow, else may grow
    print(f"loss {mean.item():.3f}, scale {scaler.get_scale():.0f}")

# %% [markdown]
r"""
Nobody knows the right scale, so the scaler looks for it: it starts high, halves the scale when a gradient overflows
(and *skips that step*), and doubles it after 2000 good steps in a row. (Where the *forward* pass overflowed before a batch norm, its statistics are not finite any more: chapter 08 puts buffers back.) If every batch has a NaN, every step is skipped, and nothing raises: the scale falls, in the end to 0. From `2**-128` on, where one over it is infinite in float32, a good batch may make the weights infinite or NaN. bfloat16 has the range of float32 and needs no scaler;
`GradScaler(..., enabled=False)` lets the same loop serve both.

Its state belongs in the checkpoint (chapter 12): `scaler.state_dict()`. (A disabled one has none, and an enabled one raises if it is given that.)

**With clipping**, the gradients must be the true ones first. `unscale_` divides them now, and `step` knows that it
has been done. Here the update is measured: it should have the length 0.1 · 0.5, learning rate times threshold.
"""


# %% cell="clip_order"
def update_length(unscale_first, init_scale, max_norm=0.5):
    torch.manual_seed(0)
    layer = nn.Linear(64, 10)
    moves = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale)
    before = nn.utils.parameters_to_vector(layer.parameters())
    mean = F.cross_entropy(9 * layer(images.flatten(1)), labels)
    scaler.scale(mean).backward()
    if unscale_first:
        scaler.unscale_(moves)
    nn.utils.clip_grad_norm_(layer.parameters(), max_norm)
    scaler.step(moves)
    after = nn.utils.parameters_to_vector(layer.parameters())
    return (after - before).norm().item()


for power in (4, 10, 16):
    right, wrong = update_length(True, 2**power), update_length(False, 2**power)
    print(f"scale 2^{power:<2}: unscaled first {right:.4f}", end="")
    print(f", clipped as it is {wrong:.7f}")

# %% [markdown]
r"""
Without `unscale_` nothing fails: nearly every gradient is cut to `max_norm` / scale, long or short. Under SGD the run hardly learns. Adam divides the scale out again, but for its `eps`, and not the cutting.

**With accumulation** (chapter 09), what belongs to a micro-batch and what to a window stay apart:

| each micro-batch | each window |
|---|---|
| forward under autocast | `unscale_` and clipping, if wanted |
| its share of the loss, scaled | `scaler.step`, `scaler.update` |
| backward | clear the gradients |

All parts of a window must have the same scale, so `update()` waits. And an overflow in one part makes the sum
infinite or NaN: the whole window is skipped.
"""

# %% [markdown]
r"""
## 3 · See it

### Autocast, operation by operation

Autocast keeps lists. Matrix products by `@` or a linear layer, and convolutions, of float32 go to 16 bit; some operations that lose too much go to float32; most
others take what they get, or the widest of their inputs. The lists differ between devices: this is yours.
"""

# %% cell="op_by_op"
wide = torch.ones(4, 4, device=device)
target = torch.zeros(4, dtype=torch.int64, device=device)
with torch.autocast(device.type, torch.bfloat16):
    low = wide @ wide
    results = {
        "matmul of float32": low,
        "linear of float32": F.linear(wide, wide),
        "relu of bfloat16": low.relu(),
        "bfloat16 + float32": low + wide,
        "float32 + float32": wide + wide,
        "softmax of bfloat16": low.softmax(1),
        "sum of bfloat16": low.sum(),
        "exp of bfloat16": low.exp(),
        "layer_norm of bfloat16": F.layer_norm(low, [4]),
        "cross_entropy of bfloat16": F.cross_entropy(low, target),
        "mse_loss of bfloat16": F.mse_loss(low, low),
    }
for operation, result in results.items():
    print(f"{operation:26} -> {str(result.dtype)[6:]}")

# %% [markdown]
r"""
On a GPU softmax, sums, exp and layer norm are on the float32 list; on a CPU they stay bfloat16. Outside the block
the loss of bfloat16 scores is bfloat16, so keep it inside, or call `.float()` on the scores first; for a formula of your own do so inside, too. NumPy knows no bfloat16: `.float()` before `.numpy()`.

### The block belongs in the loop

Autocast makes its 16-bit copy of a trained weight once per block and keeps it until the *outermost* block ends: a layer that is
used twice is converted once. (A frozen one is converted each time, and so are a view as `w.T`, a computed one, as with weight norm, and
any under `inference_mode`.) In a block around the whole loop a layer that is not compiled goes on with old copies: the compiler leaves some alone, as an `nn.GRU` and what stands in the same `forward`, and its backend `"eager"` all.
"""

# %% cell="stale_weights"
layer, row = nn.Linear(3, 1), torch.ones(1, 3)
with torch.autocast("cpu", torch.bfloat16):
    first = layer(row).item()
    nn.init.zeros_(layer.weight)  # as a large optimizer step
    nn.init.zeros_(layer.bias)
    same_block = layer(row).item()
with torch.autocast("cpu", torch.bfloat16):
    new_block = layer(row).item()

print(f"before {first:.3f}; all weights set to 0, then")
print(f"in the same block {same_block:.3f}, in a new one {new_block:.3f}")

# %% [markdown]
r"""
### An evaluation has a precision, too

The weights are float32, so nearly every trained network runs in either precision, and nothing tells you in which. Called after the
block, an evaluation silently computes in float32; called inside one, in bfloat16. There scores may tie that were apart, and a
few predictions may change. So let the evaluation open its own block, also to switch autocast *off*: that says what was measured.
And call it after the training block: within one, it goes on with the 16-bit copies of the weights which that block has made,
also when the weights have changed. Under the other 16-bit dtype that is an error. (`cache_enabled=False` makes new copies, and so
does `inference_mode`.)
"""


# %% cell="evaluation_precision"
def digit_scores(to=None):
    with torch.no_grad(), torch.autocast("cpu", to, enabled=to is not None):
        return learner(data.X_test)


torch.manual_seed(3)
learner = digit_mlp()
adam = torch.optim.Adam(learner.parameters(), lr=0.01)
for _ in range(10):
    adam.zero_grad()
    F.cross_entropy(learner(data.X_train), data.y_train).backward()
    adam.step()
with torch.no_grad():
    silent = learner(data.X_test)
    with torch.autocast("cpu", torch.bfloat16):
        silent_too, own_block = learner(data.X_test), digit_scores()
low_scores = digit_scores(torch.bfloat16)
for name, scores in (("after", silent), ("inside", silent_too)):
    hits = (scores.argmax(1) == data.y_test).float().mean().item()
    top = scores.float().topk(2).values
    ties = (top[:, 0] == top[:, 1]).sum().item()
    print(
        f"{name:6} a block: {str(scores.dtype)[6:]:8}, accuracy {hits:.4f}",
        end="",
    )
    print(f", {ties} ties for the best score")

assert (silent.dtype, silent_too.dtype) == (torch.float32, torch.bfloat16)
assert torch.equal(own_block, silent)
assert torch.equal(low_scores, silent_too)
assert not torch.equal(silent, silent_too.float())

# %% [markdown]
r"""
### A scaler at work

A high start, and a growth interval of 20 to see something. Each cross is a step that was skipped.
"""


# %% cell="scale_over_time"
def scale_over_time(num_steps=160):
    torch.manual_seed(0)
    net, scales, skips = digit_mlp(width=16), [], []
    moves = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**28, growth_interval=20)
    for number in range(num_steps):
        pick = torch.randperm(len(data.X_train))[:32]
        moves.zero_grad()
        with torch.autocast("cpu", torch.float16):
            mean = F.cross_entropy(net(data.X_train[pick]), data.y_train[pick])
        scaler.scale(mean).backward()
        scaler.step(moves)
        scales.append(scaler.get_scale())
        scaler.update()
        if scaler.get_scale() < scales[-1]:
            skips.append(number)
    return scales, skips


# %%
scales, skips = scale_over_time()
figure, axes = new_figure(figsize=(6, 3))
axes.step(range(len(scales)), scales, where="mid", color=PALETTE[0])
marked = [scales[i] for i in skips]
axes.plot(skips, marked, "x", color=PALETTE[1], label="skipped step")
axes.set_yscale("log", base=2)
axes.set(xlabel="step", ylabel="scale")
axes.set_title(f"The scale finds its level: {len(skips)} of 160 steps skipped")
axes.legend()
figure

# %% [markdown]
r"""
### A skipped step and the schedule

The scheduler (chapter 06) does not know that a step was skipped. It lowers the rate all the same; and if it was the
very first step, PyTorch warns of a wrong order. (A *fused* optimizer is called and moves nothing: no warning, and who counts calls of `step` counts it.
Give no scaler to fused SGD with momentum: if its first step is skipped, its momentum is memory that nobody has written, and
the next step adds it to the weights.)
Step the schedule only if the scale did not fall. Stop the run long before the scale is 0, at 1e-30 say. (With one scaler for two optimizers it falls for both, though the other one may have stepped.)
"""

# %% cell="schedule_after_a_skip"
layer = nn.Linear(3, 1)
moves = torch.optim.SGD(layer.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(moves, step_size=1, gamma=0.1)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(layer(row).sum() * math.inf).backward()
scaler.step(moves)
scaler.update()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    schedule.step()
print(f"rate: {moves.param_groups[0]['lr']:.3g}")
print("warning:", str(caught[0].message).partition(". ")[0])

# %% [markdown]
r"""
## 4 · Measure it on this machine

Forward and backward pass of a multilayer perceptron, in each precision. `tf32` is no autocast: the inputs of float32 matrix
products are rounded to 10 bits of fraction, on NVIDIA GPUs since 2020, after
`torch.set_float32_matmul_precision("high")`. On a GPU `torch.cuda.is_bf16_supported(including_emulation=False)` tells
whether bfloat16 is built in. Without the argument it is True as well where bfloat16 is emulated, and slow, as on a T4. Convolutions by cuDNN round to
tf32 by default, so float32 is not quite float32 there: `torch.backends.cudnn.conv.fp32_precision` says "tf32", and takes "ieee" (chapter 01 has what then raises).

On a CPU the time depends on what it has built in for 16 bit; float16 is often far slower than float32. With many rows, and hidden layers
larger than the input, the memory kept for the backward pass beside weights and input falls on any device, though not to half: 16-bit copies of the weights and of the input are kept as well. With few rows
or a wide input they outweigh what is saved.
"""

# %%
on_gpu = device.type == "cuda"
if on_gpu:
    built_in = torch.cuda.is_bf16_supported(including_emulation=False)
    print("bfloat16 built in:", built_in)
width, rows = (4096, 8192) if on_gpu else (256, 512)
points, kinds = gaussian_clusters(rows, (1, 8, 8), device=device)
big = digit_mlp(width=width, depth=3).to(device)


def step_in(precision):
    big.zero_grad()
    to = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision)
    matmul = "high" if precision == "tf32" else "highest"
    torch.set_float32_matmul_precision(matmul)
    with torch.autocast(device.type, to, enabled=to is not None):
        mean = F.cross_entropy(big(points), kinds)
    mean.backward()
    torch.set_float32_matmul_precision("highest")


# %% cell="measure"
precisions = ["fp32", *(["tf32"] if on_gpu else []), "bf16", "fp16"]
step_ms, peak_mib = {}, {}
known = [*big.parameters(), points, kinds]
for one in precisions:
    memory = peak_memory(lambda one=one: step_in(one), ignore=known)
    timing = measure_time(lambda one=one: step_in(one), warmup=1, repeats=3)
    peak_mib[one] = memory.peak_bytes / 2**20
    step_ms[one] = timing.median_s * 1e3
    print(f"{one}: {peak_mib[one]:7.2f} MiB ({memory.counted})", end="")
    print(f", step {timing}")

# %%
figure, (left, right) = new_figure(1, 2)
bars = left.bar(precisions, list(peak_mib.values()), color=PALETTE[0])
left.bar_label(bars, fmt="%.3g")
left.set(ylabel=f"peak, {memory.counted} (MiB)")
left.set_title(f"Memory: bf16 {peak_mib['bf16'] / peak_mib['fp32']:.2f} x")
bars = right.bar(precisions, list(step_ms.values()), color=PALETTE[1])
right.bar_label(bars, fmt="%.3g")
right.set(ylabel="time of both passes (ms)")
right.set_title(f"Time: bf16 {step_ms['bf16'] / step_ms['fp32']:.2f} x")
figure

# %% cell="measure_beside_reference"
for one in precisions:
    name = f"10_mixed_precision/{one}"
    beside_reference(f"{name}_peak_mib", peak_mib[one], unit="MiB")
    beside_reference(f"{name}_step_ms", step_ms[one], unit="ms")

# %% [markdown]
r"""
On a GPU with tensor cores the same cells, with layers of 4096 and 8192 rows, gave this. There 16 bit is worth its trouble.
"""

# %% cell="recorded_on_a_gpu"
from course_utils import show_recorded

for what, unit in (("step_ms", "ms"), ("peak_mib", "MiB")):
    show_recorded(
        {
            one: f"10_mixed_precision/{one}_{what}"
            for one in ("fp32", "tf32", "bf16", "fp16")
        },
        unit=unit,
        device="cuda",
    )

# %% [markdown]
r"""
## 5 · Folklore check

What popular posts say about 16-bit training, run against the PyTorch that is installed here. Each
cell ends in an assertion.

> **"By default PyTorch keeps floats in 32 bits."**
> *Correct.*
"""

# %% cell="claim_003_01"
print(torch.get_default_dtype(), nn.Linear(2, 2).weight.dtype)

assert torch.get_default_dtype() == torch.float32
assert nn.Linear(2, 2).weight.dtype == torch.float32

# %% [markdown]
r"""
> **"That makes models memory-hungry, so that training must be smaller and slower."**
> *Half the story.* Here most of the memory is not the model but what is kept for the backward pass.

Bytes in a training step with Adam, for a convnet and 512 images. With few rows, or with a large model that recomputes its activations, weights,
gradients and Adam's state (16 bytes per parameter) are the larger part.
"""


# %% cell="claim_003_02"
def kept_for_backward(net, batch, to=None):
    on = to is not None
    with (
        saved_tensor_bytes([*net.parameters(), batch]) as saved,
        torch.autocast("cpu", to, enabled=on),
    ):
        net(batch)
    return saved.peak_bytes


torch.manual_seed(2)
net, batch = digit_convnet(width=32), torch.rand(512, 1, 8, 8)
weight_bytes = sum(4 * p.numel() for p in net.parameters())
activation_bytes = kept_for_backward(net, batch)
print(f"weights {weight_bytes:9,}   gradients {weight_bytes:9,}")
print(f"Adam's state {2 * weight_bytes:9,}")
print(f"kept for the backward pass {activation_bytes:,}")

assert activation_bytes > 4 * weight_bytes

# %% [markdown]
r"""
> **"Store all variables in 16 bit: less memory, faster, the same quality."**
> *Wrong.* Mixed precision keeps weights and gradients in float32; it is the activations that shrink.

Section 1 trained with all in bfloat16.
"""

# %% cell="claim_003_03"
print("1 + 1e-4 in float16 :", (torch.tensor(1.0).half() + 1e-4).item())
print("1 + 1e-3 in bfloat16:", (torch.tensor(1.0).bfloat16() + 1e-3).item())
fell = {name: curve[0] - curve[-1] for name, curve in curves.items()}
print("the loss fell by:", {k: round(v, 3) for k, v in fell.items()})

assert torch.tensor(1.0).half() + 1e-4 == 1
assert fell["all in bfloat16"] < 0.5 * fell["all in float32"]
assert fell["autocast to bfloat16"] > 0.9 * fell["all in float32"]

# %% [markdown]
r"""
> **"Converting all computation takes a few lines"**, and then a `GradScaler` is shown.
> *Half the story.* The scaler converts nothing. `autocast` does, and not everything.
"""

# %% cell="claim_003_04"
net = digit_mlp()
scaler = torch.amp.GradScaler("cpu")
scaled = scaler.scale(net(batch).mean())
with torch.autocast("cpu", torch.bfloat16):
    under_autocast = net(batch)
    untouched = batch + batch
print("with a scaler only:", scaled.dtype)
print("under autocast:", under_autocast.dtype, "and", untouched.dtype)

assert scaled.dtype == torch.float32
assert under_autocast.dtype == torch.bfloat16
assert untouched.dtype == torch.float32

# %% [markdown]
r"""
> **"`scaler = torch.cuda.amp.GradScaler()`"**
> *Outdated:* it warns. Write `torch.amp.GradScaler("cuda")`. Without a GPU it switches itself off, and the code runs
> without scaling.
"""

# %% cell="claim_003_05"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    old_name = torch.cuda.amp.GradScaler()
print("old name:", sorted({one.category.__name__ for one in caught}))
print("enabled:", old_name.is_enabled())

assert FutureWarning in {one.category for one in caught}
assert old_name.is_enabled() == torch.cuda.is_available()

# %% [markdown]
r"""
> **"It scales the loss to minimise underflow of float16 gradients."**
> *Correct.* bfloat16 has no such underflow.
"""


# %% cell="claim_003_06"
def share_of_zeros(scale, to=torch.float16):
    torch.manual_seed(6)
    layers = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
    with torch.autocast("cpu", to):
        out = layers(torch.randn(4, 8))
    (out.float().sum() * 1e-9 * scale).backward()
    return (layers[0].weight.grad == 0).float().mean().item()


print("float16, scale 1:    ", share_of_zeros(1))
print("float16, scale 65536:", share_of_zeros(65536))
print("bfloat16, scale 1:   ", share_of_zeros(1, torch.bfloat16))

assert share_of_zeros(1) == 1.0
assert share_of_zeros(65536) == 0.0
assert share_of_zeros(1, torch.bfloat16) == 0.0

# %% [markdown]
r"""
> **"In sequence: scale the loss, `loss.backward()`, `optimizer.step()`, `scaler.step`, `scaler.update`."**
> *Wrong* as printed. The scaled loss is thrown away, and the optimizer steps twice.

With Adam the two steps are easy to see. With SGD the second one uses gradients that were divided by the scale, too small
to notice.
"""


# %% cell="claim_003_07"
def steps_and_move(as_printed, kind, lr):
    torch.manual_seed(7)
    layer, scaler = nn.Linear(3, 1), torch.amp.GradScaler("cpu")
    calls, moves = [], kind(layer.parameters(), lr=lr)
    moves.register_step_post_hook(lambda *_: calls.append(1))
    before = layer.weight.detach().clone()
    mean = (layer(torch.randn(8, 3)) ** 2).mean()
    scaled = scaler.scale(mean)
    if as_printed:
        mean.backward()
        moves.step()
    else:
        scaled.backward()
    scaler.step(moves)
    scaler.update()
    return len(calls), (layer.weight - before).norm().item()


printed = steps_and_move(True, torch.optim.Adam, 0.1)
right = steps_and_move(False, torch.optim.Adam, 0.1)
print(f"as printed: {printed[0]} steps, {printed[1] / right[1]:.2f} x as far")

assert (printed[0], right[0]) == (2, 1)
assert printed[1] > 1.3 * right[1]

# %% [markdown]
r"""
> **"All-16-bit is unstable, and only some operations work in it; see the documentation."**
> *Correct.* The lists of operations differ between devices.
"""

# %% cell="claim_003_08"
ones = torch.ones(70_000, dtype=torch.float16)
large = torch.tensor([70_000.0, 0.0]).half()
with torch.autocast("cpu", torch.bfloat16):
    inside = F.cross_entropy(low.cpu(), target.cpu()).dtype
print("float16 sum of 70000 ones:", ones.sum().item())
print("float16 softmax of 70000 and 0:", large.softmax(0).tolist())
print("cross_entropy of bfloat16 under autocast:", inside)

assert ones.sum().isinf()
assert large.softmax(0).isnan().any()
assert inside == torch.float32

# %% [markdown]
r"""
> **"With accumulation: forward under `torch.cuda.amp.autocast()`, `scale(loss).backward()`, and step, update and
> zero on every second batch."**
> *Outdated*, and incomplete: the name warns, nothing is divided by 2, and what is left at the end is not stepped on.
"""


# %% cell="claim_003_22"
def two_halves(divisor):
    torch.manual_seed(22)
    layer, scaler = nn.Linear(4, 1), torch.amp.GradScaler("cpu")
    inputs, wanted = torch.randn(16, 4), torch.randn(16, 1)
    for x, y in zip(inputs.chunk(2), wanted.chunk(2), strict=True):
        half = F.mse_loss(layer(x), y) / divisor
        scaler.scale(half).backward()
    accumulated = layer.weight.grad / scaler.get_scale()
    mean = F.mse_loss(layer(inputs), wanted)
    (whole,) = torch.autograd.grad(mean, layer.weight)
    return ((accumulated - whole).norm() / whole.norm()).item()


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.cuda.amp.autocast()
print(f"relative error: {two_halves(1):.2f}; divided: {two_halves(2):.0e}")

assert FutureWarning in {one.category for one in caught}
assert two_halves(1) > 0.9
assert two_halves(2) < 1e-5

# %% [markdown]
r"""
> **"16 bit saves memory, and accumulation simulates a larger batch."**
> *With conditions.* It is the activations that take less, with many rows (section 4); weights, gradients and optimizer state do not. And
> accumulation wants its division, its last window, and layers without batch statistics (chapter 09).
"""

# %% cell="claim_003_27"
deep, many = digit_mlp(width=256, depth=4), torch.rand(2048, 1, 8, 8)
half_bytes = kept_for_backward(deep, many, torch.bfloat16)
full_bytes = kept_for_backward(deep, many)
print(f"kept for backward: {half_bytes / full_bytes:.2f} of float32")
print("bytes per weight:", deep.head.weight.element_size())

assert half_bytes < 0.7 * full_bytes
assert deep.head.weight.element_size() == 4
assert two_halves(2) < 1e-5 < two_halves(1)

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Everything is checked on the CPU, which has autocast and the scaler, too. In float64, which
autocast leaves alone, the weights must be right to five digits; in 16 bit to two. Besides, the model writes down in
which dtype its layers compute, and where autocast is on.
"""

# %% [markdown] task="train_in_bf16" title="Train in bfloat16" level="core" minutes=12 builds_on="section 2"
r"""
Write `train_in_bf16(model, optimizer, loss_fn, batches, enabled)`, which makes one optimizer step for each batch, with
autocast to bfloat16.

```python
>>> _ = torch.manual_seed(0)
>>> model = nn.Linear(3, 2)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
>>> batches = [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0]))] * 3
>>> losses = train_in_bf16(model, optimizer, F.cross_entropy, batches)
>>> len(losses), losses[2] < losses[0], model.weight.dtype
(3, True, torch.float32)
```

- For each batch `x`, `y` the step is on `loss_fn(model(x), y)`; `loss_fn` is `F.cross_entropy` or another that autocast takes to float32. The
  model's layers compute in bfloat16, and the loss comes out in float32. Weights and gradients stay float32 all the time, and `x`
  goes into the model as it came.
- Autocast is on in the forward pass. It is off in the backward pass, when the optimizer steps, and when the next batch is
  read: `batches` may be a generator.
- Gradients that were there before do not count.
- With `enabled=False` the same code trains in float32, without autocast.
- It returns a list: each batch's loss, as a Python float. No scaler is needed.

<details><summary>Hint 1: the block</summary>

`with torch.autocast("cpu", torch.bfloat16, enabled=enabled):` around two things, the model's call and the loss.
</details>
<details><summary>Hint 2: why not around the loop?</summary>

Autocast keeps its 16-bit copies of the weights until the outermost block ends. A block around the loop would go on with the
copies of the first step.
</details>
<details><summary>Help: the loss is bfloat16</summary>

Then it is computed after the block, from bfloat16 logits. Autocast takes most of PyTorch's losses to float32, cross-entropy among them, but only while it is
on. A formula of your own may stay bfloat16 even then: give it `logits.float()`.
</details>
"""


# %% exercise="train_in_bf16"
def train_in_bf16(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn,  # loss_fn(logits, y) -> the mean loss, a tensor
    batches,  # yields x (n, ...), y (n,)
    enabled: bool = True,
) -> list[float]:
    """One step per batch under autocast to bfloat16; the losses."""
    ### BEGIN SOLUTION
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% check="train_in_bf16"
with visible_check("train_in_bf16"):
    torch.manual_seed(0)
    model, dtypes = nn.Linear(3, 2), []
    model.register_forward_hook(lambda *of: dtypes.append(of[2].dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    pairs = [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0]))] * 3
    losses = train_in_bf16(model, optimizer, F.cross_entropy, pairs)
    expect("how many losses", len(losses), 3)
    expect("the layer's outputs", dtypes, [torch.bfloat16] * 3)
    expect("the weight's dtype", model.weight.dtype, torch.float32)
    assert losses[2] < losses[0], "the loss does not fall"

# %% grade="train_in_bf16" points=6

# %% [markdown] task="loss_scaler" title="A loss scaler of your own" level="hard" minutes=24 builds_on="sections 1 and 2"
r"""
Write `LossScaler`, for one optimizer, used as PyTorch's own, so that small gradients survive float16.

```python
>>> weight = nn.Parameter(torch.tensor([1.0]))
>>> sgd, scaler = torch.optim.SGD([weight], lr=0.5), LossScaler(init_scale=8.0)
>>> scaler.scale(weight.sum()).backward()
>>> scaler.unscale_(sgd)  # only where the true gradients are wanted, as for clipping
>>> weight.grad
tensor([1.])
>>> scaler.step(sgd)
>>> scaler.update()
>>> weight.data, scaler.get_scale()
(tensor([0.5000]), 8.0)
```

- `scale(loss)` is the loss times the scale, which `get_scale()` gives. `unscale_(optimizer)` divides all gradients of the
  optimizer's parameters by it.
- `step(optimizer)` does that first, unless it has been done. Then it calls `optimizer.step()`, once; but if a gradient holds inf,
  -inf or NaN, it does not, and nothing moves.
- `update()` ends an iteration, in which `step` was called once: what it does after an iteration without a `step` is up to you. If its step was left out, the scale is multiplied by `backoff_factor`. After `growth_interval`
  steps *in a row* that were made, it is multiplied by `growth_factor`, and the count starts anew. A step left out starts it anew
  as well.
- `enabled=False`: `scale` returns the loss as it is, the scale is always 1.0, `unscale_` and `update` do nothing, and `step` is
  `optimizer.step()`.
- `state_dict()` returns a dict, and a new scaler that loads it by `load_state_dict` goes on as the old one.

<details><summary>Hint 1: what to remember</summary>

The scale, the count of good steps, and for the current iteration: was unscaled, was stepped, overflowed. `update()` clears the last
three.
</details>
<details><summary>Hint 2: going through the gradients</summary>

`for group in optimizer.param_groups: for p in group["params"]:`, and `p.grad.isfinite().all()`. `p.grad.div_(...)` changes a
gradient in place.
</details>
<details><summary>Hint 3: inf stays inf</summary>

inf and NaN divided by the scale are inf and NaN. So look before dividing or after it: they differ only where a scale below 1 makes
a large finite gradient infinite, and there both are fine.
</details>
<details><summary>Help: after one overflow it never trains again</summary>

Then what you noted about the overflow is never cleared. It belongs to one iteration.
</details>
"""


# %% exercise="loss_scaler"
class LossScaler:
    """Scales a loss up, and its gradients down again before a step."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        ### BEGIN SOLUTION
        self.enabled = enabled
        self.now = float(init_scale)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.num_good = 0
        self.unscaled = self.stepped = self.overflowed = False
        ### END SOLUTION

    def get_scale(self) -> float:
        """The scale now."""
        ### BEGIN SOLUTION
        return self.now if self.enabled else 1.0
        ### END SOLUTION

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale."""
        ### BEGIN SOLUTION
        return loss * self.now if self.enabled else loss
        ### END SOLUTION

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides the optimizer's gradients by the scale."""
        ### BEGIN SOLUTION
        if not self.enabled:
            return
        if self.unscaled:
            raise RuntimeError("unscaled already: call update() first")
        self.unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(self.now)
                    if not p.grad.isfinite().all():
                        self.overflowed = True
        ### END SOLUTION

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Steps if all gradients are finite, unscaling them if need be."""
        ### BEGIN SOLUTION
        if self.stepped:
            raise RuntimeError("stepped already: call update() first")
        if self.enabled and not self.unscaled:
            self.unscale_(optimizer)
        self.stepped = self.enabled
        if not self.overflowed:
            optimizer.step()
        ### END SOLUTION

    def update(self) -> None:
        """Ends an iteration: the scale falls, grows or stays."""
        ### BEGIN SOLUTION
        if self.overflowed:
            self.now *= self.backoff_factor
            self.num_good = 0
        elif self.enabled:
            self.num_good += 1
            if self.num_good == self.growth_interval:
                self.now *= self.growth_factor
                self.num_good = 0
        self.unscaled = self.stepped = self.overflowed = False
        ### END SOLUTION

    def state_dict(self) -> dict:
        """All that a new scaler needs to go on as this one."""
        ### BEGIN SOLUTION
        kept = "now", "num_good", "growth_factor", "backoff_factor"
        return {name: vars(self)[name] for name in (*kept, "growth_interval")}
        ### END SOLUTION

    def load_state_dict(self, state: dict) -> None:
        """Goes on as the scaler that gave this state."""
        ### BEGIN SOLUTION
        vars(self).update(state)
        ### END SOLUTION


# %% check="loss_scaler"
with visible_check("loss_scaler"):
    torch.manual_seed(1)
    weight = nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler, seen = LossScaler(init_scale=8.0, growth_interval=2), []
    for factor in (1.0, math.inf, 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale(factor * weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((weight.item(), scaler.get_scale()))
    good = [(0.5, 8.0), (0.5, 4.0), (0.0, 4.0), (-0.5, 8.0)]
    expect("weight and scale", seen, good)

# %% grade="loss_scaler" points=10

# %% [markdown] task="clipped_step" title="Clip the true gradient" level="core" minutes=12 builds_on="section 2, exercise 2, chapter 08"
r"""
Write `clipped_step(model, optimizer, scaler, x, y, max_norm, dtype)`, one training step with a scaler and with clipping, which
returns the loss and the norm of the true gradient before clipping.

```python
>>> model = nn.Linear(1, 2, bias=False)
>>> _ = nn.init.zeros_(model.weight)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
>>> scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
>>> x, y = torch.tensor([[8.0]]), torch.tensor([0])
>>> loss, norm = clipped_step(model, optimizer, scaler, x, y, max_norm=0.1)
>>> print(f"loss {loss:.4f}, norm {norm:.4f}, update {model.weight.norm():.4f}")
loss 0.6931, norm 5.6569, update 0.1000
```

- The forward pass and the mean cross-entropy are under autocast to `dtype`, `torch.float16` or `torch.bfloat16`; with `None` there is
  no autocast. Backward pass and step are outside.
- `scaler` is a `torch.amp.GradScaler` whose scale begins at 1 to `2**24`, or a disabled one: the loss is scaled before the backward pass, and the scaler
  is updated once per call.
- `max_norm` limits the total norm of the *true* gradient, over all parameters together, as `nn.utils.clip_grad_norm_` does. Whatever
  the scale, the update must be the same.
- The optimizer steps once. Gradients that were there before do not count.
- If the gradient overflows, weights and momentum stay, the scale falls, and the norm is inf or NaN. Nothing is raised: the next call
  trains on. (A disabled scaler leaves no step out.)

<details><summary>Hint 1: the order</summary>

Scale, backward, unscale, clip, step, update. The scaler's `step` knows whether `unscale_` has been called.
</details>
<details><summary>Hint 2: what clipping returns</summary>

`clip_grad_norm_` returns the norm before clipping, as a tensor.
</details>
<details><summary>Help: the update is far too small</summary>

Then the *scaled* gradient was clipped to `max_norm`, and divided by the scale afterwards.
</details>
"""


# %% exercise="clipped_step"
def clipped_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    x: Tensor,  # (n, ...)
    y: Tensor,  # (n,) int64
    max_norm: float,
    dtype: torch.dtype | None = None,
) -> tuple[float, float]:
    """One clipped step; the loss, and the norm before clipping."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()
    ### END SOLUTION


# %% check="clipped_step"
with visible_check("clipped_step"):
    torch.manual_seed(2)
    X, y = 9 * torch.randn(8, 3).double(), torch.randint(2, (8,))
    model = nn.Linear(3, 2).double()
    before = copy.deepcopy(model.state_dict())
    direct = F.cross_entropy(model(X), y)
    true = torch.autograd.grad(direct, tuple(model.parameters()))
    true_norm = torch.cat([one.flatten() for one in true]).norm().item()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loss, norm = clipped_step(model, optimizer, scaler, X, y, 0.1)
    expect("the loss", loss, direct.item())
    expect("the norm", norm, true_norm)
    moved = [one - before[name] for name, one in model.state_dict().items()]
    length = torch.cat([one.flatten() for one in moved]).norm().item()
    expect("the length of the update", length, 0.5 * 0.1, rtol=1e-4)

# %% grade="clipped_step" points=6

# %% [markdown] task="train_epoch_amp" title="Mixed precision with accumulation" level="more" minutes=24 builds_on="exercise 3, chapters 06 and 09"
r"""
Write `train_epoch_amp(model, optimizer, scaler, loader, accumulation_steps, dtype, scheduler)`, one epoch of the loop of chapter 09, exercise 3,
with autocast, a scaler and windows that overflow.

```python
>>> _ = torch.manual_seed(0)
>>> model = nn.Linear(3, 2)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
>>> scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
>>> loader = [(torch.zeros(4, 3), torch.tensor([0, 1, 1, 0]))] * 5
>>> loss, skipped = train_epoch_amp(model, optimizer, scaler, loader, accumulation_steps=2)
>>> round(loss, 1), skipped
(0.7, 0)
```

- `loader` yields micro-batches `x` (n, ...), `y` (n,) of equal or unequal size. A *window* is `accumulation_steps` of them, or what is left at the
  end. Each step uses the mean cross-entropy over *all samples of its window*.
- `dtype` and `scaler` are as in exercise 3. There is one `scaler.update()` and at most one optimizer step per window, also for the last.
- If the gradient of any micro-batch overflows and the scaler is enabled, the step of its *whole window* is skipped, the scale falls once, and the next window starts
  with clean gradients.
- If `scheduler` is given, step it after each step that was *made*, and not after a skipped one.
- It returns the mean loss over all samples of the epoch, those of skipped windows too, as a Python float, and how many windows were skipped, as an
  int.

<details><summary>Hint 1: the window</summary>

`list(itertools.islice(iterator, k))` takes the next k micro-batches; an empty list is the end. Their sizes give the denominator:
`reduction="sum"`, divided by the window's samples.
</details>
<details><summary>Hint 2: no test for infinity</summary>

`scaler.scale(part).backward()` for each micro-batch, then `scaler.step(optimizer)` once. An inf in one part makes the sum inf or NaN, and the
scaler skips the step by itself.
</details>
<details><summary>Hint 3: was it skipped?</summary>

`scaler.step` does not tell. But only a skipped step lowers the scale: compare `get_scale()` before and after `update()`.
</details>
<details><summary>Help: after one overflow all windows are skipped</summary>

Then the gradients of the skipped window are still there. Clear them after every window, not only after a step.
</details>
"""


# %% exercise="train_epoch_amp"
def train_epoch_amp(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    loader,  # yields x (n, ...), y (n,)
    accumulation_steps: int,
    dtype: torch.dtype | None = None,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
) -> tuple[float, int]:
    """One epoch; its mean loss, and how many windows were skipped."""
    ### BEGIN SOLUTION
    micro_batches = iter(loader)
    loss_sum, num_samples, num_skipped = 0.0, 0, 0
    while window := list(itertools.islice(micro_batches, accumulation_steps)):
        window_size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / window_size).backward()
            loss_sum += loss.item()
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        num_skipped += int(skipped)
        num_samples += window_size
    mean = loss_sum / num_samples if num_samples else math.nan
    return mean, num_skipped
    ### END SOLUTION


# %% check="train_epoch_amp"
with visible_check("train_epoch_amp"):
    torch.manual_seed(3)
    X, y = torch.randn(10, 3).double(), torch.randint(2, (10,))
    model = nn.Linear(3, 2).double()
    direct = copy.deepcopy(model)
    moves = torch.optim.SGD(direct.parameters(), lr=0.5)
    for part in (slice(0, 8), slice(8, 10)):
        moves.zero_grad()
        F.cross_entropy(direct(X[part]), y[part]).backward()
        moves.step()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    parts = zip(X.split(4), y.split(4), strict=True)
    _, skipped = train_epoch_amp(model, optimizer, scaler, parts, 2)
    expect("the bias", model.bias.detach(), direct.bias.detach())
    expect("windows skipped", skipped, 0)

# %% grade="train_epoch_amp" points=10

# %% [markdown]
r"""
## 7 · Recap

- float16: three to four digits, up to 65504, nothing below 6 · 10⁻⁸. bfloat16: two to three digits, the range of float32.
- Weights, gradients and optimizer state stay float32. 16-bit weights lose small updates.
- Autocast: one block per forward pass, around model and loss; name the dtype. Backward and step are outside.
- float16 needs a scaler, bfloat16 does not (but is slow where it is emulated): scale, backward, (unscale, clip,) step, update. One scaler per run, saved in the
  checkpoint.
- Step and update once per window of accumulation; divide by the window's samples; an overflow skips all of it.
- Only a skipped step lowers the scale. With one optimizer, step the schedule if it did not fall.
- Test such a loop with SGD: AdamW, and Adam without weight decay, may hide a factor in the gradient, and so a missing unscale.

**Primary sources**

- PyTorch: [automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html) (the lists of operations),
  [its examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html) (clipping, accumulation),
  [set_float32_matmul_precision](https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html).
- P. Micikevicius and others, [Mixed Precision Training](https://arxiv.org/abs/1710.03740), 2017: float32 weights, loss scaling.
- D. Kalamkar and others, [A Study of BFLOAT16 for Deep Learning Training](https://arxiv.org/abs/1905.12322), 2019.
"""
