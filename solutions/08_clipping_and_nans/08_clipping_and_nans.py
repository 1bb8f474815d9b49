# %% [markdown] reading_minutes=30 builds_on="chapter 03 (*stable losses*), chapter 04 (*hooks*), chapter 05 (*running statistics*), chapter 06 (*learning rates*)"
r"""
# 08 · Clipping and NaNs

A loss falls for an hour, jumps, and prints `nan` from then on. Clipping keeps a step that is
too large from doing harm. It repairs nothing that is already NaN. So this chapter has two
halves: how to clip, and how to find where the first NaN came from.

**After this chapter you can**

- clip by the norm of all gradients, at the right place in the loop, and read the norm it returns;
- say what clipping cannot repair, and skip a bad batch so that it leaves no trace;
- write formulas whose gradients are finite where the obvious ones give NaN;
- find the first layer, operation or batch that went wrong, with hooks and anomaly mode.
"""

# %% setup="imports"
import copy
import math
import re
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above, and one more in section 6, is all that the exercises need. The cells that you only
read use a few things more.
"""

# %%
import numpy as np

from course_utils import (
    PALETTE,
    bar_chart,
    beside_reference,
    digits,
    explore,
    measure_time,
    new_figure,
    pick_device,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

A recurrent network reads each digit row by row: eight steps through the same weights. If these
weights make a vector longer, it grows at each of the eight, and so does the gradient on its way
back.
"""

# %%
data = digits()


class RowReader(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.rnn = nn.RNN(8, 64, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(64, 10)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain)

    def forward(self, images):  # (n, 1, 8, 8)
        states, _ = self.rnn(images.squeeze(1))
        return self.head(states[:, -1])


# %% cell="exploding_training"
def train_reader(clip_at=None, gain=3.0, lr=0.2, num_steps=200):
    torch.manual_seed(0)
    reader, losses, norms = RowReader(gain), [], []
    sgd = torch.optim.SGD(reader.parameters(), lr=lr)
    for _ in range(num_steps):
        pick = torch.randint(len(data.X_train), (64,))
        scores = reader(data.X_train[pick])
        loss = F.cross_entropy(scores, data.y_train[pick])
        sgd.zero_grad()
        loss.backward()
        bound = math.inf if clip_at is None else clip_at
        total = nn.utils.clip_grad_norm_(reader.parameters(), bound)
        sgd.step()
        losses.append(loss.item())
        norms.append(total.item())
    return losses, norms


unclipped, unclipped_norms = train_reader()
clipped, clipped_norms = train_reader(clip_at=3.0)
first_bad = [math.isfinite(one) for one in unclipped].index(False)
print("unclipped:", unclipped[: first_bad + 1])
print("clipped, the last loss:", clipped[-1])

# %% cell="exploding_figure"
figure, (left, right) = new_figure(1, 2)
for axes, name, pair in (
    (left, "loss (nats)", (unclipped, clipped)),
    (right, "norm of the gradient", (unclipped_norms, clipped_norms)),
):
    axes.plot(pair[1], color=PALETTE[0], label="clipped to 3")
    axes.plot(pair[0], "o-", color=PALETTE[1], label="as it is")
    axes.set(xlabel="step", ylabel=name, yscale="log", ylim=(0.1, 1e4))
right.axhline(3.0, color="0.5", linestyle=":")
left.set_title(f"As it is: not finite at step {first_bad}")
right.set_title("The norm, before clipping")
left.legend()
figure

# %% [markdown]
r"""
One step with a large gradient throws the weights far away, where the next gradient is larger
still. After a few of them numbers overflow, and the loss is not finite any more. Clipped, the same
network with the same learning rate learns. The right plot shows what is worth logging: the norm
*before* clipping. Where it stands above the dotted line, clipping acted: at first at every step, later at some.
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

```python
loss.backward()
norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
optimizer.step()
```

After `backward()`, before `step()`. All gradients are taken together as one long vector $g$. If its
norm is larger than `max_norm`, every gradient is multiplied by the same factor (name a tied weight once):

$$g \leftarrow g \cdot \min\left(1, \frac{\text{max\_norm}}{\lVert g \rVert + 10^{-6}}\right)$$

(The $10^{-6}$ avoids 0 / 0. It matters only where `max_norm` and the norm are both tiny. Where all is float16, 1 / norm is
infinite below a norm of some 1.5e-5: nothing is clipped, and `max_norm=0` makes all NaN.)
The direction stays, the length is bounded, and with plain SGD a step is, up to rounding, never longer, in the norm that is clipped, than the largest `lr` times `max_norm`. Under Adam that is not so: it divides gradients by their own size, so a first step has nearly the same length with and without
clipping, as long as they stay large beside its `eps`. What clipping bounds there is the weight of one batch in Adam's averages. Choose `max_norm` from the log: a little above the usual
norms, so that it acts on the outliers. If it acts at every step, you have normalized the gradient. At any other place in the loop the call does something else, without an error:
"""


# %% cell="order_matters"
def length_of_step(order):
    torch.manual_seed(0)
    line, x = nn.Linear(3, 1), 50 * torch.randn(8, 3)
    sgd = torch.optim.SGD(line.parameters(), lr=0.1)
    start = nn.utils.parameters_to_vector(line.parameters()).detach()
    for call in order.split(", "):
        if call == "backward":
            line(x).pow(2).mean().backward()
        elif call == "clip":
            nn.utils.clip_grad_norm_(line.parameters(), 1.0)
        else:
            sgd.step()
    moved = nn.utils.parameters_to_vector(line.parameters()).detach()
    return (moved - start).norm().item()


for order in (
    "backward, clip, step",
    "clip, backward, step",
    "backward, step, clip",
):
    print(f"{order}: the weights moved by {length_of_step(order):.3f}")

# %% [markdown]
r"""
## 3 · See it

### By norm, by value, tensor by tensor

Two gradients, of one number each, drawn as an arrow from 0 to the dot. Clipping by norm shortens the arrow. Clipping by value
(`clip_grad_value_`) cuts each entry that is too large, and so does clipping each tensor by itself here. Where they cut, both *turn* the
arrow, unless its two entries are equal in size or one is 0.
"""


# %% cell="arrows"
def arrows_figure(max_norm=2.0, angle=20):
    turn = math.radians(angle)
    full = torch.tensor([5 * math.cos(turn), 5 * math.sin(turn)])
    by_norm = full * min(1.0, max_norm / 5)
    by_value = full.clamp(-max_norm, max_norm)
    figure, axes = new_figure(figsize=(5, 3.4))
    for arrow, color, name in (
        (full, PALETTE[6], "the gradient"),
        (by_value, PALETTE[1], "clipped by value"),
        (by_norm, PALETTE[0], "clipped by norm"),
    ):
        right, up = arrow.tolist()
        axes.plot([0, right], [0, up], color=color, label=name)
        axes.plot(right, up, "o", color=color)
    around = torch.linspace(0, math.pi / 2, 50)
    axes.plot(
        max_norm * around.cos(), max_norm * around.sin(), ":", color="0.5"
    )
    off = torch.atan2(by_value[1], by_value[0]).item() - turn
    axes.set_title(
        f"Clipping by value turns the step by {round(math.degrees(off))}°"
    )
    axes.set(xlabel="first entry", ylabel="second entry", aspect="equal")
    axes.set(xlim=(-0.2, 5.5), ylim=(-0.2, 5.5))
    axes.legend(loc="upper right")
    return figure


explore(arrows_figure, max_norm=(0.5, 5.0, 0.5), angle=range(5, 86, 5))

# %% [markdown]
r"""
### What clipping cannot repair

With a `norm_type` above 0, a NaN in one entry makes the norm NaN, and then the factor, and then *every* gradient. An infinite entry
makes the factor 0, where `max_norm` is finite: the infinity becomes 0 · inf = NaN, and all else becomes 0. (By value, the NaN stays alone, and the infinity
becomes the bound: finite, and without meaning.)
"""


# %% cell="cannot_repair"
def clipped_pair(first, dtype=torch.float32, **options):
    pair = [torch.zeros(2, dtype=dtype, requires_grad=True) for _ in "ab"]
    pair[0].grad = torch.tensor([first, 1.0], dtype=dtype)
    pair[1].grad = torch.tensor([1.0, 1.0], dtype=dtype)
    total = nn.utils.clip_grad_norm_(pair, 1.0, **options)
    return total.item(), pair[0].grad.tolist() + pair[1].grad.tolist()


for first in (3.0, math.nan, math.inf):
    print(f"{first} 1 1 1 ->", clipped_pair(first)[1])
print("float16: 60000 60000 1 1 ->", end=" ")
a = torch.zeros(4, dtype=torch.float16, requires_grad=True)
a.grad = torch.tensor([6e4, 6e4, 1, 1], dtype=torch.float16)
print(nn.utils.clip_grad_norm_([a], 1.0).item(), a.grad.tolist())

# %% [markdown]
r"""
The last line is the same in disguise. All four entries are finite, but PyTorch takes the norm in
their dtype, and beyond 65504 that is infinite in float16. The gradient is 0, and nobody hears of it. (Autocast
keeps gradients of float32 weights in float32; chapter 10 has the rest.)

So clip *and look*: the returned norm is the one number that tells. `error_if_nonfinite=True` makes it an error.
Leave it off beside an enabled `GradScaler`, which skips steps with a bad entry.
"""

# %% [markdown]
r"""
## 4 · Where NaN comes from

Overflow itself does not give NaN but infinity (float8 differs by kind: infinity, NaN or, in 2.13, its largest number), and the NaN comes one step of arithmetic later: $\infty - \infty$,
$0 \cdot \infty$, $\infty / \infty$. (In a matrix product, a complex product or a layer norm both may happen inside one operation.) In a forward
pass one sees it in the loss. Harder to see are those of the *backward* pass: the value is fine, and the
slope of one operation is infinite. (Of the six below two have a slope that PyTorch sets to 0, and `x * log(x)` has no value either.)
"""


# %% cell="slopes_at_zero"
def slope(function, at):
    point = torch.tensor(at, requires_grad=True)
    value = function(point)
    value.backward()
    return value.item(), point.grad.tolist()


for name, function, at in (
    ("sqrt(x)", torch.sqrt, 0.0),
    ("0 * sqrt(x)", lambda x: 0 * x.sqrt(), 0.0),
    ("sqrt(x**2)", lambda x: (x * x).sqrt(), 0.0),
    ("norm(x)", lambda x: x.norm(), [0.0, 0.0]),
    ("x * log(x)", lambda x: x * x.log(), 0.0),
    ("std(x)", lambda x: x.std(), [1.0, 1.0]),
):
    value, found = slope(function, at)
    print(f"{name:12} at {at}: value {value}, slope {found}")

# %% [markdown]
r"""
At 0 PyTorch takes 0 as the slope of `norm` and of `std`; the same formulas by hand give NaN, and so does `norm` differentiated twice. (The `std` of a
single number is NaN itself: it divides by n - 1. With `correction=0` it is 0.)

**The trap of `torch.where`.** `torch.where(x > 0, x.sqrt(), 0)` looks safe, and its value is. But both branches are
computed, and the backward pass sends a 0 into the branch that was not chosen: 0 times an infinite slope is NaN.
Make the *input* safe first, then choose. The same goes for an epsilon: inside the root it
helps (and changes the value; in float16 1e-8 is 0 and helps nothing), after the root it does nothing.
"""

# %% cell="where_trap"
for name, rooted in (
    ("one where", lambda x: torch.where(x > 0, x.sqrt(), 0.0)),
    ("two", lambda x: torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0)),
    ("eps after", lambda x: x.sqrt() + 1e-8),
    ("eps inside", lambda x: (x + 1e-8).sqrt()),
):
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    rooted(x).sum().backward()
    print(f"{name:10}: slopes {x.grad.tolist()}")

# %% [markdown]
r"""
**Exponentials.** A logit of 10000 overflows in `exp`. `F.log_softmax` subtracts the largest logit first, and
`F.cross_entropy` uses it. In general: take PyTorch's own function for the whole expression (`logsumexp`,
`log_softmax`, `softplus`, `vector_norm`) instead of the formula from the paper, and look at its slope in the corner, not
at its value alone. `torch.xlogy(x, x)` gives 0 at 0, as it should, with the slope NaN. `torch.special.entr` has an infinite
slope there. Behind a softmax both give NaN gradients.
"""

# %% cell="entropy_slopes"
for name, formula in (
    ("xlogy", lambda p: 0 - torch.xlogy(p, p).sum()),
    ("entr", lambda p: torch.special.entr(p).sum()),
):
    scores = torch.tensor([1e4, 0.0], requires_grad=True)
    value = formula(scores.softmax(0))
    value.backward()
    print(f"{name:5}: value {value:.1f}, slopes {scores.grad.tolist()}")
    assert value == 0
    assert scores.grad.isnan().all()

# %% cell="stable_softmax"
logits = torch.tensor([1e4, 0.0])
print("formula:    ", (logits.exp() / logits.exp().sum()).log().tolist())
print("log(softmax):", logits.softmax(0).log().tolist())
print("log_softmax:", F.log_softmax(logits, 0).tolist())

# %% [markdown]
r"""
## 5 · Find the first one

### Forward: hooks

A NaN spreads to nearly everything that is computed from it. (A comparison or an `argmax` hides it.) The module to blame is the one whose *inputs are finite and whose output is
not*. A forward hook on every module that is called sees both (inputs given by keyword only with `with_kwargs=True`; the output of an `nn.RNN` is a tuple), and the first name it
writes down is the place. (A mask of −∞ is no fault: leave it out of the inputs. Leave out a module, too, that is there to make one. Hunt in an uncompiled model: a compiled one may not hear a hook that comes later.) (A module that writes into its input is not blamed: the hook sees the input as it is afterwards. A
forward *pre*-hook sees it before.)
"""


# %% cell="forward_hunt"
class OverMean(nn.Module):
    def forward(self, x):  # (n, d): rows divided by their mean
        return x / x.mean(1, keepdim=True)


torch.manual_seed(3)
suspect = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), OverMean(), nn.Linear(6, 2))
suspect[0].bias.data.fill_(-3.0)


def report(place):
    def look(layer, args, out):
        if args[0].isfinite().all() and not out.isfinite().all():
            print("first not finite:", place, type(layer).__name__)

    return look


hooks = [
    m.register_forward_hook(report(n)) for n, m in suspect.named_children()
]
suspect(torch.rand(5, 4))
for hook in hooks:
    hook.remove()

# %% [markdown]
r"""
All ReLUs were off, the row's mean was 0, and 0 / 0 is NaN.

### Backward: anomaly mode

`torch.autograd.detect_anomaly()` checks what each operation returns on the way back. At the first NaN it raises an error
that names the operation, and, if the forward pass was in the block as well, prints where in *your* code that operation stood. (A NaN that is made where two gradients of one tensor are added, $\infty - \infty$, it does not see, or puts down to the operation before that tensor.) With a `GradScaler` it may also stop at an overflow that would only be
skipped: switch the scaler off for the hunt. Of compiled code it names the whole.
"""

# %% cell="anomaly"
x = torch.zeros(3, requires_grad=True)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    try:
        with torch.autograd.detect_anomaly():
            x.pow(2).sum().sqrt().backward()
    except RuntimeError as complaint:
        print(complaint)
print("from:", str(told[-1].message).splitlines()[-2:][0].strip())

# %% [markdown]
r"""
It names `pow`, not `sqrt`: the root's slope is infinite, and that is no NaN yet. The infinity passes back through `sum`, and
would pass through any number of such operations, until it meets a 0: the NaN is 0 · inf. Read the message as "here, or anywhere
later in the forward pass". Anomaly mode does not look for infinity, and it is for hunting only: section 7 measures what it costs.

### Dirty data, and what it leaves behind

One NaN in one image, one forward pass in training, and batch norm's running statistics are NaN for good. The weights are
fine, and every later prediction in `eval()` is NaN. A skipped step is not enough.
"""

# %% cell="poisoned_statistics"
torch.manual_seed(4)
poisoned = nn.BatchNorm1d(3)
poisoned(torch.tensor([[1.0, math.nan, 0.0], [2.0, 1.0, 1.0]]))
for _ in range(1000):
    poisoned(torch.randn(16, 3))
print("after 1000 good batches:", poisoned.running_mean.tolist())
print("in eval:", poisoned.eval()(torch.zeros(1, 3)).detach().tolist())

# %% [markdown]
r"""
### Before it breaks: activations and gradients, layer by layer

NaN is the last act. The play is visible earlier, in the size of activations and gradients. Below, a network of eight
layers with `tanh`. Its weights are drawn with a *gain*. Each column is a layer, each
row a size; the darker, the more numbers of that size. The outermost rows count what lies beyond them, too. Move the gain.
"""


# %% cell="histograms"
def sizes_by_layer(gain, depth=8, width=100):
    torch.manual_seed(5)
    flow, outs = torch.randn(200, width), []
    for _ in range(depth):
        layer = nn.Linear(width, width, bias=False)
        nn.init.normal_(layer.weight, std=gain / width**0.5)
        flow = layer(flow).tanh()
        flow.retain_grad()
        outs.append(flow)
    (flow * torch.randn_like(flow)).sum().backward()
    return outs


def layers_figure(gain=1.0):
    outs = sizes_by_layer(gain)
    figure, axes = new_figure(1, 2, figsize=(7, 3.2))
    for one, what in zip(axes, ("activation", "gradient"), strict=True):
        columns = []
        for out in outs:
            numbers = out.detach() if what == "activation" else out.grad
            sizes = numbers.abs().clamp(min=1e-12).log10()
            counts = torch.histc(sizes.clamp(-4, 1), 50, -4, 1)
            columns.append(counts / counts.sum().clamp(min=1))
        image = torch.stack(columns, 1).numpy()
        one.imshow(
            image,
            origin="lower",
            aspect="auto",
            extent=(0.5, 8.5, -4, 1),
            cmap="Blues",
        )
        one.set(xlabel="layer", ylabel=f"log10 of |{what}|")
    saturated = (outs[-1].abs() > 0.97).float().mean().item()
    ratio = outs[0].grad.norm() / outs[-1].grad.norm()
    axes[0].set_title(f"Gain {gain:g}: {100 * saturated:.0f} % saturated")
    axes[1].set_title(f"First / last gradient: {ratio:.1g}")
    return figure


explore(layers_figure, gain=[0.5, 1.0, 1.5, 2.0, 3.0, 5.0])

# %% [markdown]
r"""
With a gain of 0.5 activations and gradients fade from layer to layer. At 1 they fade slowly. At 3 many units stand at ±1, and gradients grow towards the input, as in section 1. The same picture
of your own network costs two hooks per layer: one forward, one on the gradient.
"""

# %% [markdown]
r"""
## 6 · A bug hunt

Five runs, five different faults. The cell below makes them; exercise 5 asks for a function that finds the fault, in these
and in others.
"""


# %% setup="broken_runs"
class Proportions(nn.Module):
    def forward(self, x):  # (n, d): each row divided by its sum of sizes
        return x / x.abs().sum(1, keepdim=True)


class WithLength(nn.Module):
    def forward(self, x):  # (n, d) -> (n, d + 1): each row and its length
        return torch.cat([x, x.pow(2).sum(1, keepdim=True).sqrt()], 1)


def log_loss(score, y):
    p = score.squeeze(1).sigmoid()
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def squared_error(score, y):
    return (score.squeeze(1) - y).pow(2).mean()


def broken_run(number):
    """Model, loss function, batches and learning rate of run 1, 2, 3, 4 or 5."""
    generator = torch.Generator().manual_seed(number)
    X = torch.randn(20, 16, 6, generator=generator)
    y = (X[:, :, 0] + X[:, :, 1] > 0).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number)
        middle = {2: Proportions(), 3: nn.ReLU()}.get(number, nn.Tanh())
        last = WithLength() if number == 4 else nn.Identity()
        model = nn.Sequential(
            nn.Linear(6, 8, bias=False),
            middle,
            nn.Linear(8, 8, bias=False),
            last,
            nn.Linear(9 if number == 4 else 8, 1),
        )
    loss_function, lr = log_loss, 0.5
    if number == 1:
        X[7, 3, 2] = torch.inf
    if number in (2, 4):
        X[5 * number - 4, 9] = 0
    if number == 3:
        X[9, 0], y[9, 0] = 1e5 * X[9, 0], 1 - y[9, 0]
    if number == 5:
        loss_function, lr = squared_error, 10.0
    return model, loss_function, list(zip(X, y, strict=True)), lr


# %% cell="five_runs"
def losses_of(number):
    net, criterion, pairs, rate = broken_run(number)
    seen = []
    for features, wanted in pairs:
        loss = criterion(net(features), wanted)
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in net.parameters():
                weight.sub_(weight.grad, alpha=rate)
        seen.append(loss.item())
    return seen


runs = {f"run {number}": losses_of(number) for number in range(1, 6)}
figure, axes = new_figure(figsize=(6, 3))
for (name, seen), color in zip(runs.items(), PALETTE, strict=False):
    finite = [one for one in seen if math.isfinite(one) and one < 1e3]
    axes.plot(finite, "o-", color=color, label=name)
    axes.plot(len(finite) - 1, finite[-1], "x", color=color, markersize=10)
axes.set(xlabel="step", ylabel="loss", xlim=(-0.5, 22), ylim=(0.1, 1e3))
axes.set_yscale("log")
axes.set_xticks(range(0, 20, 2))
axes.set_title("Five runs that end in NaN; a cross is the last loss below 1000")
axes.legend(loc="upper right")
figure

# %% [markdown]
r"""
A routine for the hunt, cheapest first:

1. **When?** The last good step, from the log. Does it come back with the same seed? (Chapter 01.)
2. **State.** Are parameters *and buffers* finite before that step? A checkpoint may be the culprit.
3. **Data.** Are `x` and `y` of that batch finite?
4. **Forward.** Hooks: the first module with finite input and output that is not.
5. **Loss.** Finite output, loss not: a log, a division.
6. **Backward.** Finite loss, gradient NaN: anomaly mode names the operation. (An infinity it does not see.)
7. **Or is it the learning rate?** Weights that explode break *some* layer first. Run it again with a hundredth of the rate. If the NaN
   comes all the same, it is another fault, or the rate was more than a hundred times too large. If it stays away, that may also be because the weights have hardly moved.
"""

# %% [markdown]
r"""
## 7 · Measure it on this machine

What does clipping cost, beside forward and backward? And anomaly mode? 60 layers of 100 x 100 (1000 x 1000 on a
GPU), 64 rows. `foreach=True` works on all tensors in a few calls and is the default where it can; `foreach=False` is a loop.
"""

# %%
width = 1000 if device.type == "cuda" else 100
torch.manual_seed(6)
deep = nn.Sequential(*(nn.Linear(width, width) for _ in range(60))).to(device)
inputs = torch.randn(64, width, device=device)


def forward_and_backward():
    deep.zero_grad()
    deep(inputs).pow(2).mean().backward()


def in_anomaly_mode():
    with torch.autograd.set_detect_anomaly(mode=True):
        forward_and_backward()


forward_and_backward()

# %% cell="measure"
weights = list(deep.parameters())
timed = {
    "forward and backward": forward_and_backward,
    "the same in anomaly mode": in_anomaly_mode,
    "clip": lambda: nn.utils.clip_grad_norm_(weights, 1e9),
    "clip, foreach=False": lambda: nn.utils.clip_grad_norm_(
        weights, 1e9, foreach=False
    ),
}
took_ms = {}
for name, function in timed.items():
    timing = measure_time(function, warmup=2, repeats=9)
    took_ms[name] = timing.median_s * 1e3
    print(f"{name:25}: {timing}")

# %%
share = took_ms["clip"] / took_ms["forward and backward"]
slower = took_ms["the same in anomaly mode"] / took_ms["forward and backward"]
bar_chart(
    took_ms,
    title=f"Clipping: {100 * share:.0f} % on top; anomaly mode: {slower:.1f} x",
    xlabel="time of a call (ms)",
)

# %% cell="measure_beside_reference"
for name, ms in took_ms.items():
    short = name.replace(" ", "_").replace(",", "").replace("=", "_")
    beside_reference(f"08_clipping_and_nans/{short}_ms", ms, unit="ms")

# %% [markdown]
r"""
## 8 · Folklore check

What popular posts say, run against the PyTorch that is installed here. Each cell ends in an assertion.

> **"The order is `zero_grad`, `backward`, `clip_grad_norm_(parameters, 20, 2)`, `step`."** (In two posts.)
> *Correct.* With a gradient scaler, `scaler.unscale_(optimizer)` comes before clipping (chapter 10).
"""

# %% cell="claim_000_06"
right_order = length_of_step("backward, clip, step")
too_early = length_of_step("clip, backward, step")
too_late = length_of_step("backward, step, clip")
print(f"{right_order:.4f}  {too_early:.1f}  {too_late:.1f}")

assert abs(right_order - 0.1) < 1e-5  # lr 0.1 times max_norm 1
assert too_early > 100
assert too_late > 100

# %% [markdown]
r"""
> **"Its arguments: the parameters whose gradients are normalized, the largest norm, the kind of norm, 2 if not given."**
> *Correct*, and there is more: it is *one* norm of all, the norm before clipping is returned, `inf` is a kind of norm too, and
> `error_if_nonfinite` is `False` unless you say otherwise.
"""


# %% cell="claim_000_07"
def two_gradients():
    pair = [torch.zeros(2, requires_grad=True) for _ in range(2)]
    pair[0].grad, pair[1].grad = torch.tensor([3.0, 0]), torch.tensor([0, 4.0])
    return pair


kinds = (2.0, 1.0, math.inf)
norms = [
    nn.utils.clip_grad_norm_(two_gradients(), 1.0, k).item() for k in kinds
]
joint = two_gradients()
nn.utils.clip_grad_norm_(joint, 1.0)
together = torch.cat([one.grad for one in joint])
print("norms 2, 1, inf:", norms, "after:", together.tolist())

assert norms == [5.0, 7.0, 4.0]
assert abs(together.norm().item() - 1) < 1e-5
assert math.isnan(clipped_pair(math.nan)[0])  # no error by default

# %% [markdown]
r"""
> **"Clipping can take a lot of extra time."** (In two posts.)
> *Half the story.* It reads each gradient twice and writes it once. With few rows in the batch, or very many very small tensors, that is a share
> you can see; the cell measures it here. On a GPU `.item()` on the norm makes the CPU wait, at each call. A guard that decides in
> Python (exercise 3) pays that price. Under FSDP2 gradients
> are `DTensor`s; the norm is then taken over all shards, and costs an exchange.
"""

# %% cell="claim_000_08"
print(f"clip: {took_ms['clip']:.2f} ms, {100 * share:.0f} % of the rest")

assert took_ms["clip"] < took_ms["forward and backward"]

# %% [markdown]
r"""
> **"Exploding gradients end in NaN. Try a lower learning rate, batch norm, or clipping."**
> *Half the story.* Overflow gives infinity; NaN follows from inf - inf or 0 · inf. Clipping bounds what has a finite norm. It cannot repair: one NaN makes all gradients NaN.
"""

# %% cell="claim_004_27"
large = torch.tensor(3e38) * 10
print("3e38 * 10 =", large.item(), " inf - inf =", (large - large).item())
_, after_nan = clipped_pair(math.nan)
_, after_inf = clipped_pair(math.inf)
print("clipped NaN:", after_nan, " clipped inf:", after_inf)

assert large.isinf()
assert (large - large).isnan()
assert (0 * large).isnan()
assert all(map(math.isnan, after_nan))
assert math.isnan(after_inf[0])
assert after_inf[1:] == [0.0, 0.0, 0.0]
assert sum(clipped[-20:]) / 20 < 1
assert not math.isfinite(unclipped[-1])

# %% [markdown]
r"""
> **"A bad loss or network: a division by 0, the log of 0, the root of 0."**
> *Correct.* The root of 0 is 0, and its slope is infinite. `torch.where` helps only if the input was made safe first.
> The slope of `x.norm()` at 0 is 0, that of the root of a sum of squares is NaN.
"""

# %% cell="claim_004_28"
assert torch.tensor(0.0).log().item() == -math.inf
assert math.isnan((torch.tensor(0.0) / 0).item())
assert slope(torch.sqrt, 0.0) == (0.0, math.inf)
assert slope(lambda x: x.norm(), [0.0, 0.0]) == (0.0, [0.0, 0.0])
_, by_hand = slope(lambda x: x.pow(2).sum().sqrt(), [0.0, 0.0])
_, one_where = slope(lambda x: torch.where(x > 0, x.sqrt(), 0 * x), 0.0)
print("root of the sum of squares:", by_hand, " one where:", one_where)
assert all(map(math.isnan, by_hand))
assert math.isnan(one_where)

# %% [markdown]
r"""
> **"Dirty data: test the inputs for NaN."**
> *Correct*, and test for infinity, and the targets. Batch norm keeps what went through it.
"""

# %% cell="claim_004_29"
dirty = torch.tensor([[1.0, math.inf], [2.0, 1.0]])
statistics = nn.BatchNorm1d(2)
statistics(dirty)
statistics(torch.zeros(2, 2))
print("isnan:", dirty.isnan().any().item(), statistics.running_var.tolist())

assert not dirty.isnan().any()
assert not statistics.running_var.isfinite().all()
assert not poisoned.running_mean.isfinite().all()

# %% [markdown]
r"""
> **"NaN and infinity cannot be tested with `==` or `is`."**
> *Half the story.* NaN equals nothing. `inf == inf` is True. `is` asks whether two names mean one object, which says
> nothing about either.
"""

# %% cell="claim_004_30"
nan, other_nan = float("nan"), float("nan")
numbers = torch.tensor([1.0, math.nan, math.inf])
print("== nan:", (numbers == nan).tolist())
print("!= itself:", (numbers != numbers).tolist())

assert nan != nan
assert nan is not other_nan
assert math.inf == float("inf")
assert (numbers == math.inf).tolist() == [False, False, True]

# %% [markdown]
r"""
> **"Use `math.isnan` or `numpy.isnan`."**
> *Half the story:* both are False for infinity, which is how many NaNs begin. Ask `isfinite`.
"""

# %% cell="claim_004_31"
print("math.isnan(inf):", math.isnan(math.inf))
print("isfinite:", torch.isfinite(numbers).tolist())

assert not math.isnan(math.inf)
assert not np.isnan(np.inf)
assert not math.isfinite(math.inf)
assert not np.isfinite(np.inf)
assert torch.isfinite(numbers).tolist() == [True, False, False]

# %% [markdown]
r"""
> **"`np.any(np.isnan(x.cpu().numpy()))` for a batch, `np.isnan(loss.item())` for a loss."**
> *Half the story.* The second takes every loss, and misses infinity. The first works for plain float32. It raises for bfloat16 and, outside of `no_grad`, for a tensor that requires a gradient, and copies the
> data from the GPU. `torch.isfinite(x).all()` does neither.
"""


# %% cell="claim_004_32"
def what_happens(tensor):
    try:
        return bool(np.any(np.isnan(tensor.cpu().numpy())))
    except (RuntimeError, TypeError) as error:
        return type(error).__name__


found = [
    what_happens(torch.tensor([math.nan])),
    what_happens(torch.ones(2, dtype=torch.bfloat16)),
    what_happens(torch.ones(2, requires_grad=True)),
]
print("float32, bfloat16, requires_grad:", found)

assert found == [True, "TypeError", "RuntimeError"]
with torch.no_grad():
    assert what_happens(torch.ones(2, requires_grad=True)) is False
assert torch.isfinite(torch.ones(2, dtype=torch.bfloat16)).all()

# %% [markdown]
r"""
## 9 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not attempted*, *try
again* or how many pass. These visible checks are few. When your notebook is graded, hidden ones look at everything that folds
open under *All that is checked*.
"""

# %% [markdown] task="clip_gradients" title="Clip by the norm of all gradients" level="core" minutes=16 builds_on="section 2"
r"""
Write `clip_gradients(parameters, max_norm, norm_type, error_if_nonfinite)`, which clips all gradients to one joint norm and returns that
norm as it was **before**.

```python
>>> a, b = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
>>> a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])
>>> clip_gradients([a, b], max_norm=1.0)
tensor(5.)
>>> a.grad, b.grad
(tensor([0.6000, 0.0000]), tensor([0.0000, 0.8000]))
```

- If the norm of all gradients, taken together as one long vector, is larger than `max_norm`, *all* of them are multiplied in place by one
  common factor, so that the norm becomes `max_norm`. If it is smaller, they stay as they are, bit for bit. (PyTorch's $10^{-6}$ beside the
  norm is allowed.)
- `parameters` is one tensor or any iterable of tensors, also a generator. A tensor whose `.grad` is `None` is left out.
- `norm_type` is the $p$ of the norm $\left(\sum |g|^p\right)^{1/p}$: any number above 0, or `math.inf` for the largest $|g|$.
- If the norm is NaN or infinite, and `error_if_nonfinite`, a `RuntimeError` is raised before any gradient is
  touched. Otherwise the gradients are multiplied all the same, by `max_norm` divided by that norm. Nothing is healed by it:
  after a NaN norm each gradient is NaN, after an infinite one (and with a finite `max_norm`) the infinite entries are NaN and all others 0.
- **Half precision:** the norm of float16 and bfloat16 gradients is taken in float32, so it is right where float16 would overflow. PyTorch's own
  function takes the norm in float16 (section 3): handed in as it is, it loses these marks.

<details><summary>Hint 1: one norm of many tensors</summary>

The norm of the norms is the norm of all: `torch.stack` the norm of each gradient, and take the norm of that. It holds for every
$p$. `torch.linalg.vector_norm(g, p)` takes the norm of a tensor of any shape, but for $p = \infty$ it refuses an empty one.
</details>
<details><summary>Hint 2: the factor</summary>

`max_norm / norm`, and at most 1. `clamp(max=1.0)` keeps a NaN, as the text asks. `if norm > max_norm` does not multiply at all then: it is False
for NaN. Mind 0 / 0. PyTorch adds 1e-6 to the norm before it divides by it.
</details>
<details><summary>Hint 3: PyTorch's own parts</summary>

`nn.utils.get_total_norm` takes gradients, not parameters; `nn.utils.clip_grads_with_norm_` takes the norm you give it. Between the two there is
room for what PyTorch leaves out.
</details>
<details><summary>Help: the norm is 0, and the gradients are clipped nonetheless (or the other way round)</summary>

A generator is empty after the first loop over it. Make a list of it first.
</details>
"""


# %% exercise="clip_gradients"
@torch.no_grad()
def clip_gradients(
    parameters,  # a tensor or an iterable of tensors
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Clips all gradients to one joint norm; returns the norm before."""
    ### BEGIN SOLUTION
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    double = any(g.dtype == torch.float64 for g in grads)
    dtype = torch.float64 if double else torch.float32
    norms = [
        torch.linalg.vector_norm(g, norm_type, dtype=dtype)
        for g in grads
        if g.numel() > 0
    ]
    if not norms:
        return torch.zeros((), dtype=dtype)
    joint = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError("The norm of the gradients is not finite.")
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return joint
    ### END SOLUTION


# %% check="clip_gradients"
with visible_check("clip_gradients"):
    a, b, unused = (torch.zeros(2, requires_grad=True) for _ in range(3))
    a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])
    before = clip_gradients([a, b, unused], max_norm=1.0)
    expect("the norm before", before, torch.tensor(5.0))
    expect("the first gradient", a.grad, torch.tensor([0.6, 0.0]))
    expect("the second gradient", b.grad, torch.tensor([0.0, 0.8]))
    before = clip_gradients([a, b, unused], max_norm=100.0)
    expect("a small gradient", a.grad, torch.tensor([0.6, 0.0]))

# %% grade="clip_gradients" points=8

# %% [markdown] task="nonfinite_entries" title="Name what is not finite" level="more" minutes=11 builds_on="section 5"
r"""
Write `nonfinite_entries(data, name)`, the names of all entries of a batch or a checkpoint that hold a NaN, an infinity or a negative infinity,
in the order in which they stand in `data`.

```python
>>> bad = torch.tensor([1.0, math.nan])
>>> nonfinite_entries({"x": torch.ones(2), "y": bad, "meta": [2, math.inf, "nan"]})
['batch.y', 'batch.meta[1]']
```

- `data` is a tensor, a Python `float`, `int` or `bool`, a string, `None`, or a list, tuple or dict (with strings as keys) of such, nested.
- The name of the outermost is `name`. What stands in a dict under `"key"` is called `name.key`, item 2 of a list or tuple `name[2]`:
  `batch.meta[2].scale`. Only tensors and numbers are named, never what they stand in.
- A tensor has any dtype from float16, bfloat16, float32, float64, complex64, complex128, any integer and bool, and any shape.
- Finite values up to the largest of their dtype are finite, also if their sum is not. A Python `int` may be of any size.
- It returns a list of strings, empty if all is well. `data`, its tensors and their gradients are left as they are.

<details><summary>Hint 1: the tree</summary>

A function that calls itself: on each value of a dict, with the longer name, and on each item of a list or tuple.
</details>
<details><summary>Hint 2: the leaves</summary>

`torch.isfinite` takes every dtype of the list, integers and complex included. Ask for `.all()`.
</details>
<details><summary>Help: OverflowError</summary>

`math.isfinite(10**400)` wants a float and cannot make one. An `int` is finite: there is nothing to ask.
</details>
"""


# %% exercise="nonfinite_entries"
def nonfinite_entries(data, name: str = "batch") -> list[str]:
    """Names of all tensors and numbers in `data` that are not finite."""
    ### BEGIN SOLUTION
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(torch.isfinite(data).all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, value in inside for one in nonfinite_entries(value, n)]
    ### END SOLUTION


# %% check="nonfinite_entries"
with visible_check("nonfinite_entries"):
    bad, good = torch.tensor([1.0, math.nan]), torch.ones(2, 2)
    batch = {"x": good, "y": bad, "meta": [2, math.inf, "nan"]}
    expect("of a dict", nonfinite_entries(batch), ["batch.y", "batch.meta[1]"])
    expect("of a tensor", nonfinite_entries(bad, "loss"), ["loss"])
    expect("of a good one", nonfinite_entries(good, "loss"), [])

# %% grade="nonfinite_entries" points=5

# %% [markdown] task="guarded_epoch" title="An epoch that survives bad batches" level="more" minutes=22 builds_on="exercises 1 and 2, chapter 05"
r"""
Write `guarded_epoch(model, optimizer, loss_function, loader, max_norm)`, one epoch with clipping in which a bad batch leaves no trace.

```python
>>> _ = torch.manual_seed(0)
>>> model = nn.Linear(3, 2)
>>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
>>> y = torch.zeros(4, 2)
>>> good, bad = (torch.randn(4, 3), y), (torch.full((4, 3), math.nan), y)
>>> report = guarded_epoch(model, sgd, F.mse_loss, [good, bad, good], max_norm=0.01)
>>> report["skipped"], len(report["norms"]), len(report["losses"])
([1], 2, 2)
```

- `loader` yields pairs `x`, `y`. The loss of a batch is `loss_function(model(x), y)`. A batch is **bad** if `x`, `y`, the loss, or the total
  norm of all gradients, as of `nn.utils.clip_grad_norm_`, holds a NaN or an infinity.
- Otherwise it is good: its gradient, and no other, is clipped to the total norm `max_norm` over all parameters of the model, and the
  optimizer steps once.
- A bad batch is skipped: parameters, optimizer state and all **buffers** are afterwards bit for bit what they were before it. Training goes on
  with the next batch. An error that the model raises is no bad batch: it reaches the caller.
- After the epoch every `.grad` is `None` or zero.
- It returns a dict of lists: `"norms"`, the total norm *before* clipping of each good batch, and `"losses"`, the loss of each good batch, as
  floats; `"skipped"`, the positions of the bad batches, as ints.

<details><summary>Hint 1: one number tells all</summary>

`clip_grad_norm_` returns the norm, and that is NaN or infinite if a single gradient is. But it has already multiplied the
gradients: what is left of them is for throwing away.
</details>
<details><summary>Hint 2: the buffers</summary>

A forward pass in training writes running statistics. An input with a NaN need not go through the model. Where the *loss* turns out bad it is too late: keep
a clone of each of `model.buffers()` from before, and copy it into what `model.buffers()` gives then: a layer may have put another tensor in a buffer's place.
</details>
<details><summary>Help: the weights move although nothing was stepped on</summary>

A step with zeros as gradients is a step all the same: momentum and weight decay move the weights. Do not call `step()`.
</details>
"""


# %% exercise="guarded_epoch"
def guarded_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_function,  # (output, y) -> loss
    loader,  # yields x, y
    max_norm: float,
) -> dict[str, list]:
    """One epoch with clipping, without its bad batches."""
    ### BEGIN SOLUTION
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x: Tensor, y: Tensor) -> bool:
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept, strict=True):
                buffer.copy_(value)
        model.zero_grad()
    return report
    ### END SOLUTION


# %% check="guarded_epoch"
with visible_check("guarded_epoch"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)).double()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    good = 5 * torch.randn(4, 3).double(), torch.zeros(4, 2).double()
    bad = torch.full_like(good[0], math.nan), good[1]
    seen = guarded_epoch(model, sgd, F.mse_loss, [good, bad, good], 0.01)
    expect("skipped", seen["skipped"], [1])
    expect("the number of norms", len(seen["norms"]), 2)
    expect("the counter", model[0].num_batches_tracked.item(), 2)
    assert all(p.isfinite().all() for p in model.parameters()), "NaN weights"

# %% grade="guarded_epoch" points=10

# %% [markdown] task="safe_gradients" title="Functions with safe gradients" level="more" minutes=20 builds_on="section 4"
r"""
Write `root(x)`, `lengths(X)`, `entropy(logits)` and `known_mse(prediction, target)`, whose **values and gradients** are finite where the obvious
formula gives NaN.

```python
>>> x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
>>> root(x).detach(), torch.autograd.grad(root(x).sum(), x)
(tensor([0., 1., 2.]), (tensor([0.0000, 0.5000, 0.2500]),))
>>> torch.autograd.grad(lengths(0 * x), x)
(tensor([0., 0., 0.]),)
>>> entropy(torch.tensor([0.0, 0.0, -math.inf]))
tensor(0.6931)
>>> known_mse(x.detach(), torch.tensor([1.0, math.nan, 4.0]))
tensor(0.5000)
```

- `root`: elementwise $\sqrt x$ where $x > 0$, and 0 elsewhere. Its gradient is $1 / (2 \sqrt x)$ where $x > 0$, and 0 elsewhere.
- `lengths`: $\sqrt{\sum_j X_j^2}$ over the last dimension, which goes away. Where all $X_j$ are 0 the length is 0 and its gradient 0. No
  $X_j^2$ overflows, and only that of 0 is 0.
- `entropy`: $-\sum_c p_c \log p_c$ over the last dimension, where $p$ is the softmax of the logits. A class with $p_c = 0$ adds 0. Logits may be as
  far apart as 10000 and 0, and may be `-inf`: such a class adds nothing, and its gradient is 0.
- `known_mse`: the mean of $(\text{prediction} - \text{target})^2$ over the entries whose target is known; unknown targets are NaN. The gradient of an
  unknown entry is 0. If no target is known, it is 0 and so are all gradients.
- No trick with an epsilon: values and gradients are those of the exact formula, to rounding, for small numbers too. Write nothing into the inputs, and
  leave no hook on them. The results have a graph to the input.

<details><summary>Hint 1: torch.where twice</summary>

`torch.where(ok, f(x), 0)` computes `f` everywhere, and backward multiplies the 0 of the unused entries by the infinite slope of `f`. So make the *input*
safe first: `f(torch.where(ok, x, 1))`, then choose.
</details>
<details><summary>Hint 2: what PyTorch has</summary>

`torch.linalg.vector_norm` takes 0 as its gradient at 0. `F.log_softmax` never takes the log of 0. Its value can be `-inf`, and 0 times that is NaN.
</details>
<details><summary>Help: the mean of nothing is NaN</summary>

0 / 0. Divide the sum by the number of known targets, but at least by 1.
</details>
"""


# %% exercise="safe_gradients"
def root(x: Tensor) -> Tensor:
    """The square root of what is positive, 0 elsewhere."""
    ### BEGIN SOLUTION
    positive = x > 0
    safe = torch.where(positive, x, torch.ones_like(x))
    return torch.where(positive, safe.sqrt(), torch.zeros_like(x))
    ### END SOLUTION


def lengths(X: Tensor) -> Tensor:
    """Euclidean lengths along the last dimension."""
    ### BEGIN SOLUTION
    return torch.linalg.vector_norm(X, dim=-1)
    ### END SOLUTION


def entropy(logits: Tensor) -> Tensor:
    """Entropy (nats) of the softmax over the last dimension."""
    ### BEGIN SOLUTION
    log_p = F.log_softmax(logits, dim=-1)
    finite = log_p.masked_fill(log_p == -math.inf, 0.0)
    return -(log_p.exp() * finite).sum(-1)
    ### END SOLUTION


def known_mse(prediction: Tensor, target: Tensor) -> Tensor:
    """Mean squared error where the target is not NaN; 0 if nowhere."""
    ### BEGIN SOLUTION
    known = ~target.isnan()
    error = torch.where(known, prediction - target, torch.zeros_like(target))
    return error.pow(2).sum() / known.sum().clamp(min=1)
    ### END SOLUTION


# %% check="safe_gradients"
with visible_check("safe_gradients"):
    given = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(root(given).sum(), given)
    expect("root", root(given).detach(), torch.tensor([0.0, 1.0, 2.0]))
    expect("the slope of root", gradient, torch.tensor([0.0, 0.5, 0.25]))
    (gradient,) = torch.autograd.grad(lengths(0 * given), given)
    expect("the gradient of lengths at 0", gradient, torch.zeros(3))
    flat = entropy(torch.zeros(2))
    expect("entropy of two equal classes", flat, torch.tensor(2.0).log())
    target = torch.tensor([1.0, math.nan, 4.0])
    expect("known_mse", known_mse(given, target).item(), 0.5)

# %% grade="safe_gradients" points=8

# %% [markdown] task="diagnose" title="Bug hunt: what broke this run?" level="hard" minutes=32 builds_on="sections 4 to 6, exercises 2 and 3"
r"""
Write `diagnose(model, loss_function, batches, lr)`, which finds the reason why a run ends in NaN, of the five of section 6 and of others.

```python
>>> diagnose(*broken_run(1)), diagnose(*broken_run(2)), diagnose(*broken_run(4))[:2]
(('data', 7, 'x'), ('layer', 6, '1'), ('gradient', 16))
>>> *run, lr = broken_run(5)
>>> diagnose(*run, lr)[0], diagnose(*run, lr / 1000)
('learning rate', None)
```

- **The run.** For each pair `x`, `y` of `batches`, in order: `loss_function(model(x), y)`, backward, and plain gradient descent, `p -= lr * p.grad`, for
  every parameter that has a gradient, which is that of this batch alone.
- **The fault** is what is first not finite, looked at in this order: an entry of `model.state_dict()` before the first step, `("state", 0, name)`; in step
  $i$ the batch, `("data", i, "x")` or `("data", i, "y")`; the model's output, `("layer", i, name)`; the loss, `("loss", i, "")`; the gradient of a parameter,
  `("gradient", i, operation)`. A run without a fault: `None`.
- `name` of a layer: of all modules whose output is not finite although their input is, the one that *finishes* first in the forward pass; named as in
  `named_modules()`. `operation`: what `torch.autograd.detect_anomaly` names in its error, such as `"SqrtBackward0"`; `""` if it raises none.
- **Is it the learning rate?** If the fault is in a layer, the loss or a gradient of step `i`, the run is repeated from the same start with `lr / 100`, up to
  and with step `i`. If no fault is found then, the answer is `("learning rate", i, "")`; otherwise it is the fault of the first run.
- Afterwards model, batches and PyTorch's settings are as they were.

<details><summary>Hint 1: two functions</summary>

One that runs the batches on a copy (`copy.deepcopy`) and returns the first fault or `None`, whatever the learning rate. One that calls it, and calls it
again with `lr / 100` if there is a reason to.
</details>
<details><summary>Hint 2: who finishes first</summary>

`module.register_forward_hook(hook)` calls `hook(module, inputs, output)` when the module has finished. Put one on each of
`named_modules()` and let it append its name to a list. A leaf finishes before the container it stands in.
</details>
<details><summary>Hint 3: the name of the operation</summary>

Anomaly mode raises a `RuntimeError` that begins with `Function 'SqrtBackward0' returned nan values`. `re.search(r"'([^']+)'", str(error))`
finds the name. `torch.autograd.set_detect_anomaly(True)` is a context manager as well, and warns only where it raises. First go back without it, by
`loss.backward(retain_graph=True)`. Only if a gradient is not finite go back once more, in anomaly mode: it is slow, and it complains of a NaN that a mask
throws away later. It also raises for a NaN that never reaches the gradient of a parameter: that is no fault.
</details>
<details><summary>Help: a layer after the faulty one is blamed</summary>

It got the NaN from somebody else: its input is not finite. Look at the input, too.
</details>
"""


# %% exercise="diagnose"
def diagnose(
    model: nn.Module,
    loss_function,  # (output, y) -> loss
    batches: list[tuple[Tensor, Tensor]],
    lr: float,
) -> tuple[str, int, str] | None:
    """(cause, step, where) of a broken run; None if it is not broken."""

    ### BEGIN SOLUTION
    def finite(tensor: Tensor) -> bool:
        return bool(tensor.isfinite().all())

    def operation_behind(loss: Tensor) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with torch.autograd.set_detect_anomaly(True):
                    loss.backward()
            except RuntimeError as error:
                return re.search(r"Function '([^']+)'", str(error)).group(1)
        return ""

    def first_fault(steps: int, rate: float):
        twin, blamed = copy.deepcopy(model), []

        def watch(name: str):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                return "gradient", step, operation_behind(loss)
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault
    ### END SOLUTION


# %% check="diagnose"
with visible_check("diagnose"):
    expect("run 1", diagnose(*broken_run(1)), ("data", 7, "x"))
    expect("run 2", diagnose(*broken_run(2)), ("layer", 6, "1"))
    expect("run 3", diagnose(*broken_run(3))[0], "loss")
    expect("run 4", diagnose(*broken_run(4))[:2], ("gradient", 16))
    expect("run 5", diagnose(*broken_run(5))[0], "learning rate")
    model, loss_function, batches, lr = broken_run(5)
    slow = diagnose(model, loss_function, batches, lr / 1000)
    expect("run 5 at a thousandth", slow, None)

# %% grade="diagnose" points=14

# %% [markdown]
r"""
## 10 · Recap

- Backward, clip, step. One norm over all gradients, one factor for all; log the norm that is returned.
- Clipping by value, or tensor by tensor, can turn the step.
- Clipping bounds what has a finite norm. By norm, a NaN becomes all NaN, an infinity becomes NaN and zeros; in float16, and in float32 beyond 1.8e19, the norm itself may overflow.
- `isfinite`, not `isnan`: infinity often comes first.
- A bad batch is skipped whole, under DDP (chapter 14) by all ranks: no step, no gradients left, buffers put back.
- Make the input safe *before* the root, the log, the division; a single `torch.where` saves the value and not the gradient.
- To find the first NaN: state, data, layer (finite in, not finite out), loss, gradient (anomaly mode, for NaN), and whether a smaller rate cures it.

**Primary sources**

- PyTorch:
  [clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html),
  [get_total_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.get_total_norm.html),
  [anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection),
  [gradients for non-differentiable functions](https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions),
  [Module.register_forward_hook](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook).
- Clipping: R. Pascanu, T. Mikolov and Y. Bengio, [On the difficulty of training recurrent neural networks](https://arxiv.org/abs/1211.5063), 2013.
- The size of activations and gradients: X. Glorot and Y. Bengio,
  [Understanding the difficulty of training deep feedforward neural networks](https://proceedings.mlr.press/v9/glorot10a.html), 2010.
"""
