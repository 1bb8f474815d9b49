# %% [markdown] reading_minutes=30 builds_on="chapter 02, *shapes and broadcasting*"
r"""
# 05 · Normalization

Batch norm is three lines of arithmetic and two sets of statistics. The arithmetic is
seldom wrong. What goes wrong is *which* statistics were used: those of the batch or the
running ones, of this sample or of its neighbours, with n or with n − 1.

**After this chapter you can**

- say for batch, layer, instance and group norm which elements are averaged together, and
  write all four;
- keep running statistics exactly as PyTorch does;
- tell training from eval by what a layer computes, and find the models that are in the
  wrong mode;
- ask a trained model about a single sample.
"""

# %% setup="imports"
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
import inspect
import warnings
from functools import partial

import numpy as np

from course_utils import (
    PALETTE,
    bar_chart,
    beside_reference,
    digit_mlp,
    digits,
    explore,
    measure_time,
    new_figure,
    peak_memory,
    pick_device,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

### A forgotten `eval()`

We train a small network with batch norm on handwritten digits. (`digit_mlp(norm="batch")` has two hidden layers: `linear1`, `norm1` and a ReLU, the same again
as `linear2` and `norm2`, then `head`.)
"""

# %%
data = digits()
torch.manual_seed(0)
model = digit_mlp(norm="batch")
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for _ in range(5):
    for rows in torch.randperm(len(data.X_train)).split(64):
        loss = F.cross_entropy(model(data.X_train[rows]), data.y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

trained = {name: value.clone() for name, value in model.state_dict().items()}

# %% [markdown]
r"""
Then we test it three times. Once as it should be; then in training mode, on shuffled test
images; then in training mode on test images that come sorted by digit, as a folder of
files would. The state is put back each time.
"""


# %% cell="forgotten_eval"
def accuracy(order, training):
    model.load_state_dict(trained)
    model.train(training)
    hits = 0
    with torch.no_grad():
        for rows in order.split(32):
            guess = model(data.X_test[rows]).argmax(1)
            hits += (guess == data.y_test[rows]).sum().item()
    return hits / len(order)


by_digit = data.y_test.argsort(stable=True)
shuffled = torch.randperm(
    len(by_digit), generator=torch.Generator().manual_seed(1)
)
tested = {
    "eval mode": accuracy(by_digit, training=False),
    "training mode, shuffled": accuracy(shuffled, training=True),
    "training mode, sorted by digit": accuracy(by_digit, training=True),
}
moved = model.state_dict()["norm1.num_batches_tracked"]
moved = moved - trained["norm1.num_batches_tracked"]
print(f"the last test moved the running statistics {moved.item()} times")

# %%
lost = tested["eval mode"] - tested["training mode, sorted by digit"]
bar_chart(
    {name: 100 * value for name, value in tested.items()},
    title=f"A forgotten eval() costs up to {100 * lost:.0f} points",
    xlabel="test accuracy (%)",
)

# %% [markdown]
r"""
In training mode each batch is normalized by its own mean. If all of it is sevens, what
sevens have in common is subtracted. On shuffled data the damage is small, and that is
worse: nobody notices. Besides, every test batch moved the running statistics. The test
data have leaked into the model.
"""

# %% [markdown]
r"""
### A batch of one

`attempt` calls a function and returns what came of it: a result or an error, and the
warnings. We need it again in section 5.
"""


# %%
def attempt(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except Exception as error:
            result = error
    return result, [str(one.message) for one in caught]


# %% cell="batch_of_one"
alone = {
    "BatchNorm1d, (1, 3)": (nn.BatchNorm1d(3), (1, 3)),
    "BatchNorm2d, (1, 3, 4, 4)": (nn.BatchNorm2d(3), (1, 3, 4, 4)),
    "BatchNorm1d in eval, (1, 3)": (nn.BatchNorm1d(3).eval(), (1, 3)),
    "InstanceNorm2d, (2, 3, 1, 1)": (nn.InstanceNorm2d(3), (2, 3, 1, 1)),
    "GroupNorm(3, 3), (1, 3)": (nn.GroupNorm(3, 3), (1, 3)),
    "GroupNorm(3, 3), (2, 3)": (nn.GroupNorm(3, 3), (2, 3)),
    "LayerNorm(3), (1, 3)": (nn.LayerNorm(3), (1, 3)),
}
outcome = {}
for name, (layer, shape) in alone.items():
    result, _ = attempt(partial(layer, torch.ones(shape)))
    outcome[name] = "raises" if isinstance(result, Exception) else "works"
    print(f"{name:30} {outcome[name]}")

expected = ["raises", "works", "works", "raises", "raises", "works", "works"]
assert list(outcome.values()) == expected

# %% [markdown]
r"""
What counts is not the number of samples but the number of values behind each mean. With
one value the mean *is* the value, and nothing is left. Batch norm and instance norm refuse
that. Group norm refuses it for a single sample only: for two it returns zeros, or what rounding
leaves of them, without a word. (With inputs around a million that can be more than 1.) And `InstanceNorm1d` takes features of shape (N, C) for one sample with N channels.

The image passes: its channels have 16 values each. It is then normalized by itself alone,
which is not what the network learned with.
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

Subtract a mean, divide by a standard deviation, then let the network undo it if it wants:

$$y = \gamma\, \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta ,
\qquad \sigma^2 = \frac{1}{n} \sum (x - \mu)^2 .$$

$\mu$ and $\sigma^2$ are taken over $n$ elements. $\sigma^2$ is the *biased* variance, divided
by $n$. $\varepsilon$ keeps the root away from 0. $\gamma$ (`weight`) and $\beta$ (`bias`) are
learned.

Which $n$ elements? That is the main difference between the four layers. For images of
shape (N, C, H, W):

| layer | one mean for each | dimensions averaged | `weight` | running statistics |
|---|---|---|---|---|
| batch norm | channel | N, H, W | (C,) | yes |
| layer norm | sample | the last ones, here C, H, W | their shape | no |
| instance norm | sample and channel | H, W | none by default | no by default |
| group norm | sample and group of channels | C / G, H, W | (C,) | no |
"""

# %% cell="shortest_form"
torch.manual_seed(2)
x = 2 * torch.randn(4, 6, 5, 5) + 1


def normalized(x, dims, eps=1e-5):
    mean = x.mean(dims, keepdim=True)
    var = x.var(dims, correction=0, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


grouped = x.unflatten(1, (3, 2))
off = {
    "batch norm": normalized(x, (0, 2, 3)) - nn.BatchNorm2d(6)(x),
    "layer norm": normalized(x, (1, 2, 3)) - nn.LayerNorm([6, 5, 5])(x),
    "instance norm": normalized(x, (2, 3)) - nn.InstanceNorm2d(6)(x),
    "group norm": normalized(grouped, (2, 3, 4)).flatten(1, 2)
    - nn.GroupNorm(3, 6)(x),
}
for name, difference in off.items():
    print(f"{name:14} off by {difference.abs().max().item():.0e}")

# %% [markdown]
r"""
## 3 · See it

### Which elements are averaged together

A batch drawn as a block: samples to the back, channels to the right, the places of an image
upwards. The blue elements share one mean and one variance. The greys show where the other
means are taken. Turn the block, and make the batch smaller.
"""


# %%
def who_shares(norm, batch_size, num_groups):
    """For each element of the block: which sample's mean, which channel's."""
    n, c, _ = np.indices((batch_size, 6, 5))
    group = c // (6 // num_groups)
    return {
        "Batch norm": (0 * n, c),
        "Layer norm": (n, 0 * c),
        "Instance norm": (n, c),
        "Group norm": (n, group),
    }[norm]


# %% cell="averaged_together"
def block_figure(batch_size=4, num_groups=3, turn=-60):
    figure, flat = new_figure(1, 4, figsize=(9, 2.8))
    names = ("Batch norm", "Layer norm", "Instance norm", "Group norm")
    for place, name in enumerate(names):
        flat[place].remove()
        axes = figure.add_subplot(1, 4, place + 1, projection="3d")
        sample, channel = who_shares(name, batch_size, num_groups)
        together = (sample == 0) & (channel == 0)
        color = np.where((sample + channel) % 2, "0.93", "0.75").astype(object)
        color[together] = PALETTE[0]
        block = color.transpose(1, 0, 2)  # channels, samples, places
        axes.voxels(
            np.ones(block.shape), facecolors=block, edgecolor="w", lw=0.4
        )
        axes.view_init(elev=24, azim=turn)
        axes.set(xticks=[], yticks=[], zticks=[], box_aspect=(6, 4, 5))
        axes.set_xlim(0, 6)
        axes.set_ylim(0, 4)
        axes.set_xlabel("channel", labelpad=-14)
        axes.set_ylabel("sample", labelpad=-14)
        axes.set_zlabel("place (h, w)", labelpad=-14)
        count = (sample.max() + 1) * (channel.max() + 1)
        means = f"{count} mean{'' if count == 1 else 's'}"
        values = f"{together.sum()} values{'' if count == 1 else ' each'}"
        axes.set_title(f"{name}:\n{means}, {values}", loc="center")
    return figure


explore(
    block_figure,
    batch_size=range(1, 5),
    num_groups=[1, 2, 3, 6],
    turn=(-85, -5, 10),
)

# %% [markdown]
r"""
- **Batch norm alone reaches across samples** of a batch. From there come its two modes, its
  running statistics and the trouble with small batches. (Instance norm can be told to keep running
  statistics too, with `track_running_stats=True`. It has two modes then.)
- One group: group norm is layer norm over C, H and W. As many groups as channels: it is
  instance norm.
- A batch of one: batch norm is instance norm.

One warning: on a CPU, for float32 images in `channels_last` order (chapter 02; volumes too), PyTorch 2.13 computes `nn.GroupNorm` with too few digits: with a mean of
1000 and a spread of 1 its result may be off by more than 0.1. Call it with `x.contiguous()`, or in float64. A compiled layer keeps its digits.
"""

# %% [markdown]
r"""
### The running statistics

In eval there may be no batch to average over. So in training batch norm notes what it sees:

$$\text{running} \leftarrow (1 - m)\, \text{running} + m\, \text{batch} .$$

Three things to remember. `momentum` $m$ is the share of the **new** batch. The mean is the
batch's mean; the variance stored is the **unbiased** one, divided by $n - 1$, though the batch
itself was normalized with the one divided by $n$. And `momentum=None` stands for the plain
average: $m = 1/k$ at the $k$-th batch, which `num_batches_tracked` counts (also one that was refused for its single value).

Here the data change at batch 60.
"""


# %% cell="momentum_figure"
def momentum_figure(momentum=0.1, batch_size=8):
    generator = torch.Generator().manual_seed(5)
    layer = nn.BatchNorm1d(1, momentum=momentum, affine=False)
    batch_means, running = [], []
    for step in range(120):
        x = torch.randn(batch_size, 1, generator=generator)
        x = x + (2.0 if step < 60 else 4.0)
        layer(x)
        batch_means.append(x.mean())
        running.append(layer.running_mean.item())
    figure, axes = new_figure(figsize=(6, 3))
    axes.plot(batch_means, ".", color="0.6", label="mean of the batch")
    axes.step([0, 60, 120], [2, 2, 4], color=PALETTE[1], label="true mean")
    axes.plot(running, color=PALETTE[0], label="running mean")
    axes.set(ylim=(-0.5, 7), xlabel="training batch", ylabel="mean of x")
    late = abs(running[-1] - 4)
    axes.set_title(f"momentum={momentum}: {late:.2f} off at the end")
    axes.legend(loc="upper left", ncols=3)
    return figure


explore(
    momentum_figure,
    momentum=[None, 0.0, 0.01, 0.1, 0.3, 0.9],
    batch_size=[2, 8, 64],
)

# %% [markdown]
r"""
Small momentum is slow, large momentum is noisy, and None never forgets: right where the data
stay the same, as in a pass that only renews the statistics (`reset_running_stats()` first, or the old count goes on), and wrong at the start of a
training, when the network before the layer is still changing.
"""

# %% [markdown]
r"""
## 4 · Measure it on this machine

One layer, forward and backward, on a batch of 32 feature maps. All four read the same maps and
write as many numbers, a few operations each. They differ in the code behind them, which each device has of its own.
"""

# %%
torch.manual_seed(4)
maps = torch.randn(32, 64, 32, 32, device=device, requires_grad=True)
layers = {
    "none": nn.Identity(),
    "batch": nn.BatchNorm2d(64),
    "layer": nn.LayerNorm([64, 32, 32]),
    "instance": nn.InstanceNorm2d(64),
    "group": nn.GroupNorm(8, 64),
}

# %% cell="measure_layers"
step_ms = {}
for name, layer in layers.items():
    layer.to(device)

    def step(layer=layer):
        maps.grad = None
        (layer(maps) * maps).sum().backward()

    took = measure_time(step, repeats=5)
    held = peak_memory(step, ignore=[maps, *layer.parameters()])
    step_ms[name] = took.median_s * 1e3
    print(f"{name:9} {took}, {held.counted} {held.peak_bytes / 2**20:.1f} MiB")

# %% cell="measure_beside_reference"
for name in ("batch", "group"):
    beside_reference(
        f"05_normalization/{name}_norm_step_ms", step_ms[name], unit="ms"
    )

# %% [markdown]
r"""
The line `none` is what the measurement itself costs: the product, the sum and their gradients.
In eval a batch norm with running statistics measures nothing: it is a fixed scale and shift and can be folded into the
convolution before it, as `torch.nn.utils.fusion.fuse_conv_bn_eval` does (a `ConvTranspose2d` of one group needs `transpose=True`; with several, fuse by hand).
Layer norm and group norm
cannot, nor can an instance norm without running statistics, which is the usual one.
"""

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about normalization, run against the PyTorch that is installed here. Each cell
ends in an assertion. If a later version changes the answer, the cell fails, and you know.
"""

# %% [markdown] cell="claim_001_01_02"
r"""
> **"All normalization layers exist to cure internal covariate shift."**
> *Outdated.*
>
> **"Internal covariate shift means that the distribution of the data has become abnormal. See the
> batch norm paper."**
> *Half the story.* The source is right, the meaning is not.

Ioffe and Szegedy (2015) meant that the *inputs of a layer* change their distribution all through
training, because the layers before it learn. Nothing is abnormal about the data. They hoped that
batch norm would reduce that.

Santurkar and others (2018) put the hope to the test. They added noise *behind* the batch norm layers,
so that the shift was there again and larger: training went as well as with plain batch norm. What they
found instead is a smoother loss surface, with gradients that can be trusted over longer steps.

The other three layers had motives of their own: recurrent networks and small batches (layer norm), the
style of images (instance norm), small batches in detection (group norm). No cell here can settle it; the
papers are in the recap.
"""

# %% [markdown]
r"""
> **"The common form is γ · (x − mean) / √(var² + ε) + β."**
> *Wrong.* The variance is a square already.
"""

# %% cell="claim_001_03"
torch.manual_seed(3)
x = 3 * torch.randn(8, 4, 5, 5, dtype=torch.float64) + 1
library = F.batch_norm(x, None, None, training=True)
mean = x.mean((0, 2, 3), keepdim=True)
var = x.var((0, 2, 3), correction=0, keepdim=True)

squared = (x - mean) / (var**2 + 1e-5).sqrt()
plain = (x - mean) / (var + 1e-5).sqrt()
print(f"var squared: off by {(squared - library).abs().max():.2g}")
print(f"var:         off by {(plain - library).abs().max():.2g}")

assert (plain - library).abs().max() < 1e-10
assert (squared - library).abs().max() > 0.1

# %% [markdown]
r"""
> **"The four layers differ in how mean and variance are taken."**
> *Half the story.* They also differ in the shape of their parameters, in what they keep, and in
> whether the mode matters.
>
> **"Batch norm: per channel, over the batch."**
> *Correct*, over the places too, and in training.
"""

# %% cell="claim_001_04_05"
torch.manual_seed(4)
x = torch.randn(4, 6, 5, 7)
kept, same = {}, {}
for layer in (
    nn.BatchNorm2d(6),
    nn.LayerNorm([6, 5, 7]),
    nn.InstanceNorm2d(6),
    nn.GroupNorm(3, 6),
):
    name = type(layer).__name__
    kept[name] = {k: tuple(v.shape) for k, v in layer.state_dict().items()}
    same[name] = torch.equal(layer.train()(x), layer.eval()(x))
    print(f"{name}: eval same as training: {same[name]}\n    {kept[name]}")
means = nn.BatchNorm2d(6)(x + 7).mean((0, 2, 3))

assert not same.pop("BatchNorm2d")
assert all(same.values())
assert len({str(one) for one in kept.values()}) == 4
assert means.abs().max() < 1e-5

# %% [markdown]
r"""
> **"Batch norm does not suit networks for sequences of varying length, so layer norm takes the
> statistics of one sample."**
> *Correct.*

We pad three sequences with zeros. For layer norm nothing changes: each step stands alone. Batch
norm averages over the padding too.
"""

# %% cell="claim_001_06"
torch.manual_seed(6)
steps = torch.randn(3, 5, 4) + 1  # samples, steps, features
padded = F.pad(steps, (0, 0, 0, 3))

by_layer = nn.LayerNorm(4)
layer_change = (by_layer(padded)[:, :5] - by_layer(steps)).abs().max()
by_batch = nn.BatchNorm1d(4)
batch_change = by_batch(padded.mT)[..., :5] - by_batch(steps.mT)
print(f"layer norm changes by {layer_change:.1g}")
print(f"batch norm changes by {batch_change.abs().max():.2g}")

assert layer_change < 1e-5
assert batch_change.abs().max() > 0.1

# %% [markdown]
r"""
> **"γ and β of layer norm are elementwise."** *Correct*: they have the shape that is normalized.
>
> **"γ and β of group norm belong to channels."** *Correct*, and not to groups.
"""

# %% cell="claim_001_07_10"
layer_weight = nn.LayerNorm([5, 4]).weight
group_weight = nn.GroupNorm(3, 6).weight
print("layer norm:", tuple(layer_weight.shape))
print("group norm:", tuple(group_weight.shape))
print("without bias:", list(nn.LayerNorm(5, bias=False).state_dict()))

assert layer_weight.shape == (5, 4)
assert group_weight.shape == (6,)

# %% [markdown]
r"""
> **"Instance norm: per sample and channel, for generating images."**
> *Correct.* It takes brightness and contrast out of every picture.

Twice as much contrast and an offset of 3 change nothing, as long as the variance is large against
ε. For pictures that are almost flat it is not.
"""

# %% cell="claim_001_08"
torch.manual_seed(8)
picture = torch.randn(2, 3, 8, 8, dtype=torch.float64)
changes = {}
for spread in (1.0, 0.01):
    x = spread * picture
    change = F.instance_norm(2 * x + 3) - F.instance_norm(x)
    changes[spread] = change.abs().max().item()
    print(f"standard deviation {spread:4g}: changes by {changes[spread]:.1g}")

assert changes[1.0] < 1e-4
assert changes[0.01] > 1e-2

# %% [markdown]
r"""
> **"With small batches batch norm gets noisy; group norm takes groups of channels instead."**
> *Correct.* The groups are blocks of *neighbouring* channels.

The mean of n independent numbers strays by $1/\sqrt{n}$ of their standard deviation.
"""

# %% cell="claim_001_09"
torch.manual_seed(9)
strays = {n: torch.randn(4000, n).mean(1).std().item() for n in (2, 8, 64)}
for n, stray in strays.items():
    print(f"batch of {n:2}: its mean strays by {stray:.2f}")

x = torch.randn(4, 6, 3, 3, dtype=torch.float64)
library = F.group_norm(x, 3)
blocks = normalized(x.unflatten(1, (3, 2)), (2, 3, 4)).flatten(1, 2)
every_third = normalized(x.unflatten(1, (2, 3)), (1, 3, 4)).flatten(1, 2)
print(f"neighbours: off by {(blocks - library).abs().max():.1g}")
print(f"every third channel: off by {(every_third - library).abs().max():.2g}")

assert all(abs(s * n**0.5 - 1) < 0.1 for n, s in strays.items())
assert (blocks - library).abs().max() < 1e-10
assert (every_third - library).abs().max() > 0.1

# %% [markdown]
r"""
> **"BatchNorm takes `num_features`, `eps=1e-5`, `momentum=0.1`, `affine=True`,
> `track_running_stats=True`."** *Correct.* Newer versions add `bias=`.
>
> **"`affine` says whether γ and β are learned."** *Correct.*
"""

# %% cell="claim_001_11_13"
arguments = inspect.signature(nn.BatchNorm2d).parameters
defaults = {name: one.default for name, one in arguments.items()}
names = ("eps", "momentum", "affine", "track_running_stats")
print({name: defaults[name] for name in names})
without = nn.BatchNorm2d(3, affine=False)
print("affine=False:", list(without.parameters()))

assert [defaults[name] for name in names] == [1e-5, 0.1, True, True]
assert not list(without.parameters())

# %% [markdown]
r"""
> **"`momentum` is for the exponential average of mean and variance."**
> *Half the story.* It is the weight of the new batch. None means the plain average, and 0.0 keeps
> the buffers without freezing the layer: batches are still normalized by themselves, and counted.
> A NaN or an infinity in a batch, or a variance that overflows, reaches the buffers all the same,
> since 0 · NaN and 0 · ∞ are NaN.
"""

# %% cell="claim_001_12"
torch.manual_seed(12)
batches = [torch.randn(n, 3, dtype=torch.float64) + n for n in (8, 8, 4)]


def after_batches(momentum):
    layer = nn.BatchNorm1d(3, momentum=momentum, dtype=torch.float64)
    outputs = [layer(one) for one in batches]
    return layer, outputs


plain_average, _ = after_batches(None)
frozen, outputs = after_batches(0.0)
poisoned = nn.BatchNorm1d(1, momentum=0.0)
poisoned(torch.tensor([[torch.inf], [1.0]]))
of_means = torch.stack([one.mean(0) for one in batches]).mean(0)
pooled = torch.cat(batches).mean(0)
gap = (pooled - of_means).abs().max()
print(f"None: mean of the batch means, {gap:.2f} from the pooled mean")
print("0.0:", frozen.running_mean.tolist(), "after", end=" ")
print(frozen.num_batches_tracked.item(), "batches")

assert torch.allclose(plain_average.running_mean, of_means)
assert gap > 0.1
assert frozen.running_mean.eq(0).all()
assert frozen.num_batches_tracked == 3
assert outputs[0].mean(0).abs().max() < 1e-10  # normalized all the same
assert poisoned.running_mean.isnan().all()

# %% [markdown]
r"""
> **"`track_running_stats` says whether the layer is in training or in test."**
> *Wrong.* It says whether running buffers exist. The mode is `layer.training`.

With False in the constructor there are no buffers, and eval has only the batch to go by. Set as an
attribute *afterwards*, False changes nothing in eval: the buffers are there and are used. In training
it stops their updates and the count, while each batch is still normalized by itself. (An instance norm
then uses the sample in both modes, and its buffers move in both.)
"""

# %% cell="claim_001_14"
torch.manual_seed(14)
x = torch.randn(8, 3, 4, 4) + 5
by_the_batch = nn.BatchNorm2d(3)(x)

built = nn.BatchNorm2d(3, track_running_stats=False).eval()
later = nn.BatchNorm2d(3).eval()
later.track_running_stats = False
print("built without:", list(built.state_dict()))
print(f"  in eval its mean is {built(x).mean().abs():.2f}")
print(f"switched off later: in eval its mean is {later(x).mean():.2f}")
later.train()(x)  # the mean of x is 5, and the buffers stay
later.eval()

assert torch.allclose(built(x), by_the_batch)
assert torch.allclose(later(x), x / (1 + 1e-5) ** 0.5)
assert later.num_batches_tracked == 0

# %% [markdown]
r"""
> **"In test only the current batch is used; in training earlier batches have a say in mean and
> variance."**
> *Wrong*, it is the other way round.

We put nonsense into the buffers. Training does not notice. Eval uses it, row by row. And
`no_grad` is not eval: in training mode it still moves the buffers.
"""

# %% cell="claim_001_15"
torch.manual_seed(15)
layer = nn.BatchNorm2d(3, dtype=torch.float64)
x = torch.randn(8, 3, 4, 4, dtype=torch.float64)
untouched = layer(x)
layer.running_mean.fill_(100.0)
layer.running_var.fill_(50.0)

in_eval, one_row = layer.eval()(x), layer(x[:1])
in_training = layer.train()(x)
count = layer.num_batches_tracked.item()
with torch.no_grad():
    layer(x)
print(f"training changes by {(in_training - untouched).abs().max():.1g}")
print(f"eval has the mean {in_eval.mean():.1f}")

assert torch.allclose(in_training, untouched, atol=1e-12)
assert torch.allclose(in_eval, (x - 100) / (50 + 1e-5) ** 0.5)
assert torch.allclose(in_eval[:1], one_row, atol=1e-12)
assert layer.num_batches_tracked == count + 1

# %% [markdown]
r"""
> **"running_mean = (1 − m) · old + m · mean of the batch."** *Correct.*
>
> **"running_var likewise, with the variance of the batch."** *Half the story.* It is the unbiased
> variance, while the batch was normalized with the biased one.
"""

# %% cell="claim_001_16_17"
torch.manual_seed(16)
layer = nn.BatchNorm1d(3, momentum=0.1, dtype=torch.float64)
x = torch.randn(5, 3, dtype=torch.float64) + 2
layer(x)

mean_off = layer.running_mean - (0.9 * 0 + 0.1 * x.mean(0))
unbiased_off = layer.running_var - (0.9 * 1 + 0.1 * x.var(0, correction=1))
biased_off = layer.running_var - (0.9 * 1 + 0.1 * x.var(0, correction=0))
print(f"mean:           off by {mean_off.abs().max():.1g}")
print(f"var with n − 1: off by {unbiased_off.abs().max():.1g}")
print(f"var with n:     off by {biased_off.abs().max():.1g}")

assert max(mean_off.abs().max(), unbiased_off.abs().max()) < 1e-12
assert biased_off.abs().max() > 1e-3

# %% [markdown]
r"""
> **"This momentum is the one from the optimizers."**
> *Half the story.* Both carry the past along, but SGD's 0.9 keeps nine tenths of the old buffer and
> adds all of the new gradient. BatchNorm's 0.9 takes nine tenths of the *new* batch.
"""

# %% cell="claim_001_18"
weight = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
buffers = []
for _ in range(3):
    weight.grad = torch.ones(1)
    optimizer.step()
    buffers.append(optimizer.state[weight]["momentum_buffer"].item())

layer = nn.BatchNorm1d(1, momentum=0.9)
layer(torch.tensor([[0.0], [20.0]]))
print("SGD, gradients of 1:", [round(one, 2) for one in buffers])
print(f"BatchNorm, a batch of mean 10: {layer.running_mean.item():.1f}")

assert np.allclose(buffers, [1.0, 1.9, 2.71])
assert abs(layer.running_mean.item() - 9.0) < 1e-5

# %% [markdown]
r"""
> **"The signature is `LayerNorm(normalized_shape, eps=1e-5, elementwise_affine=True)`."** *Correct*, and
> there is `bias=`.
>
> **"`normalized_shape` must be the last dimensions: [5, 4] is not allowed for (20, 5, 4, 10)."** *Half the
> story.* The constructor takes it; only the call raises. Where two dimensions have the same size, nothing
> can warn you, and the last is used.
"""

# %% cell="claim_001_19_20"
torch.manual_seed(19)
x = torch.randn(20, 5, 4, 10)
layer = nn.LayerNorm([5, 4])
refused, _ = attempt(lambda: layer(x))
print(type(refused).__name__, str(refused)[:58])
square = torch.randn(2, 4, 4)
over_last = nn.LayerNorm(4)(square).mean(-1)

names = list(inspect.signature(nn.LayerNorm).parameters)
assert names[:3] == ["normalized_shape", "eps", "elementwise_affine"]
assert isinstance(refused, RuntimeError)
assert over_last.abs().max() < 1e-5

# %% [markdown]
r"""
> **"`InstanceNorm2d(num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False)`."**
> *Half the story.* The defaults are right. Not said: with them a wrong `num_features` only warns and a
> single place per channel raises; with tracking `num_batches_tracked` stays at 0, and with
> `momentum=None` the buffers never move, except to NaN.
"""

# %% cell="claim_001_21"
torch.manual_seed(21)
arguments = inspect.signature(nn.InstanceNorm2d).parameters
passed, told = attempt(lambda: nn.InstanceNorm2d(4)(torch.randn(2, 6, 3, 3)))
strict = nn.InstanceNorm2d(4, affine=True)
refused, _ = attempt(lambda: strict(torch.randn(2, 6, 3, 3)))
single, _ = attempt(lambda: nn.InstanceNorm2d(4)(torch.randn(2, 4, 1, 1)))
tracking = nn.InstanceNorm2d(4, track_running_stats=True)
tracking(torch.randn(2, 4, 3, 3))
print("wrong num_features:", told[0][:44])
print("affine=True:", type(refused).__name__)
print("one place:", type(single).__name__)
print("count with tracking:", tracking.num_batches_tracked.item())

assert not arguments["affine"].default
assert not arguments["track_running_stats"].default
assert "does not match" in told[0]
assert isinstance(refused, ValueError)
assert isinstance(single, ValueError)
assert tracking.num_batches_tracked == 0

# %% [markdown]
r"""
> **"In GroupNorm the number of groups must divide the channels, and the affine parameters are per
> channel."** *Correct*: the constructor raises. It raises for swapped arguments too, as soon as there are
> fewer groups than channels.
"""

# %% cell="claim_001_22"
odd, _ = attempt(lambda: nn.GroupNorm(4, 6))
swapped, _ = attempt(lambda: nn.GroupNorm(6, 3))
fitting = nn.GroupNorm(3, 6)
print("4 groups of 6:", type(odd).__name__, odd)
print("3 groups of 6, swapped:", type(swapped).__name__)

assert isinstance(odd, ValueError)
assert isinstance(swapped, ValueError)
assert fitting.weight.shape == (6,)

# %% [markdown]
r"""
### A fifth layer

Large language models often leave the mean out. `nn.RMSNorm` divides by the root of the mean square and
has no bias. Its default ε is not 1e-5: in float32 it is float32's machine epsilon, 1.2e-7. In bfloat16 and
float16 it is the same 1.2e-7, since the layer computes in float32 there. (Older documentation promised the epsilon of
the dtype, 0.0078 and 0.00098.) Where small inputs matter, say `eps=` yourself.
"""

# %% cell="rms_norm"
torch.manual_seed(30)
x = torch.randn(4, 10) + 2
eps = torch.finfo(x.dtype).eps
by_hand = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
layer = nn.RMSNorm(10)
print(f"off by {(layer(x) - by_hand).abs().max():.0e}", end=", ")
print(f"mean of the output {layer(x).mean():.2f}")
assert torch.allclose(layer(x), by_hand)

small = torch.full((1, 4), 1e-3, dtype=torch.bfloat16)
default = nn.RMSNorm(4, dtype=torch.bfloat16)(small)[0, 0].item()
of_the_dtype = 1e-3 / (1e-6 + torch.finfo(torch.bfloat16).eps) ** 0.5
of_float32 = 1e-3 / (1e-6 + eps) ** 0.5
print(f"0.001 in bfloat16 becomes {default:.3f}: ", end="")
print(f"{of_float32:.3f} by 1.2e-7, {of_the_dtype:.3f} by 0.0078")
assert abs(default - of_float32) < 0.01

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Each exercise is judged by itself, with the imports of the set-up cell; an answer that calls
your answer to another exercise falls with it. Keep the names and the order of the arguments.
Where you know a layer or function of PyTorch that does it all, you may call it for full marks;
you learn more by hand.
"""

# %% [markdown] task="batch_norm" title="Batch norm, forward" level="core" minutes=12 builds_on="sections 1 to 3, broadcasting (chapter 02)"
r"""
Write `batch_norm(x, weight, bias, eps)`, a function that returns what `nn.BatchNorm1d` and `nn.BatchNorm2d`
return in training.

```python
>>> x = torch.tensor([[0.0, 5.0], [2.0, 5.0], [4.0, 8.0]])
>>> batch_norm(x, weight=torch.tensor([1.0, 2.0]), bias=torch.tensor([0.0, 3.0]))
tensor([[-1.2247,  1.5858],
        [ 0.0000,  1.5858],
        [ 1.2247,  5.8284]])
```

- `x` is floating point of shape (N, C), (N, C, L) or (N, C, H, W). `weight` and `bias` have shape (C,). The
  result has the shape and the dtype of `x`.
- Channel by channel, subtract the mean and divide by $\sqrt{\text{var} + \varepsilon}$, where
  var is the *biased* variance (divided by the number of values). Then multiply by the
  channel's weight and add its bias.
- It must hold in float32 for a mean of 1000 and a standard deviation of 1, to 0.001.
- The gradients reach `x`, also through mean and variance, `weight` and `bias`.
- If a channel has only one value in the whole batch, raise a `ValueError`, as PyTorch does.
  One *sample* alone is no reason to raise.

<details><summary>Hint 1: which dimensions</summary>

All but dimension 1: `[0, *range(2, x.dim())]` for any number of dimensions.
`keepdim=True` leaves mean and variance in a shape that broadcasts against `x`.
</details>
<details><summary>Hint 2: weight and bias</summary>

A weight of shape (C,) broadcasts against the *last* dimension. Give it as many dimensions
as `x` has: C at place 1, and 1 everywhere else.
</details>
<details><summary>Hint 3: the variance</summary>

`x.var(...)` divides by n − 1 unless you say `correction=0`. The mean of the squares less the
square of the mean is the same number on paper. In float32 it subtracts two large numbers.
</details>
<details><summary>Help: my gradient with respect to x is too large</summary>

Mean and variance depend on `x`. Taken under `no_grad`, or detached, they count as constants
and part of the gradient is missing.
</details>
"""


# %% exercise="batch_norm"
def batch_norm(
    x: Tensor,  # (N, C), (N, C, L) or (N, C, H, W)
    weight: Tensor,  # (C,)
    bias: Tensor,  # (C,)
    eps: float = 1e-5,
) -> Tensor:  # the shape of x
    """Each channel normalized by its mean and variance in this batch.

    Raises:
        ValueError: a channel has only one value.
    """
    ### BEGIN SOLUTION
    if x.numel() == x.shape[1]:
        raise ValueError("a single value per channel has no variance")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    shape = [1, -1] + [1] * (x.dim() - 2)
    normalized = (x - mean) * torch.rsqrt(var + eps)
    return normalized * weight.view(shape) + bias.view(shape)
    ### END SOLUTION


# %% check="batch_norm"
with visible_check("batch_norm"):
    x = torch.tensor([[0.0, 5.0], [2.0, 5.0], [4.0, 8.0]])
    got = batch_norm(x, torch.tensor([1.0, 2.0]), torch.tensor([0.0, 3.0]))
    expect("the shape", tuple(got.shape), (3, 2))
    expect(
        "channel 0", got[:, 0], torch.tensor([-1.2247, 0, 1.2247]), atol=1e-3
    )
    expect("the mean of channel 1", got[:, 1].mean().item(), 3.0, atol=1e-4)

# %% grade="batch_norm" points=5

# %% [markdown] task="running_stats" title="Running statistics as PyTorch keeps them" level="core" minutes=14 builds_on="section 3, exercise 1"
r"""
Write a module `RunningStats(num_features, momentum)` that lets its input through unchanged
and keeps the running statistics that `nn.BatchNorm2d` would keep.

```python
>>> stats = RunningStats(1, momentum=0.5)
>>> _ = stats(torch.tensor([[1.0], [2.0], [6.0]]))
>>> dict(stats.state_dict())
{'running_mean': tensor([1.5000]), 'running_var': tensor([4.]), 'num_batches_tracked': tensor(1)}
```

- Three **buffers**, and nothing else, are in its `state_dict`: `running_mean` (zeros, shape (C,)),
  `running_var` (ones, shape (C,)) and `num_batches_tracked` (0, an int64 tensor without
  dimensions).
- Called in training mode (`self.training`) with `x` of shape (N, C), (N, C, L) or (N, C, H, W), it counts
  the batch and moves the buffers: `running = (1 - momentum) * running + momentum * batch`. For the
  variance that is the *unbiased* one of the batch (divided by n − 1).
- `momentum=None` means the plain average over all batches so far. `momentum=0.0` leaves mean and variance
  as they are, where those of the batch are finite, and still counts.
- In eval mode nothing changes. In training mode the buffers move under `torch.no_grad()`, too.
- The result is `x`, and gradients pass through it. The buffers never carry a graph.

<details><summary>Hint 1: making buffers</summary>

`self.register_buffer("running_mean", torch.zeros(num_features))`. A plain attribute would be
neither saved nor moved to the GPU, a parameter would be trained.
</details>
<details><summary>Hint 2: the plain average</summary>

After k batches with average a, the average of k + 1 batches is a + (b − a) / (k + 1). That is
the same update with another momentum.
</details>
<details><summary>Hint 3: no graph</summary>

`with torch.no_grad():` around the update, or `x.detach()`. Detach what you measure, not
what you return.
</details>
<details><summary>Help: momentum 0.0 behaves like None</summary>

`if self.momentum:` and `self.momentum or ...` take 0.0 for nothing. Ask
`if self.momentum is None`.
</details>
"""


# %% exercise="running_stats"
class RunningStats(nn.Module):
    """Lets x through and keeps its mean and variance per channel."""

    def __init__(self, num_features: int, momentum: float | None = 0.1):
        super().__init__()
        ### BEGIN SOLUTION
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        if self.training:
            values = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            share = self.momentum
            if share is None:
                share = 1 / self.num_batches_tracked.item()
            self.running_mean.lerp_(values.mean(1), share)
            self.running_var.lerp_(values.var(1), share)
        return x
        ### END SOLUTION


# %% check="running_stats"
with visible_check("running_stats"):
    stats = RunningStats(1, momentum=0.5)
    stats(torch.tensor([[1.0], [2.0], [6.0]]))
    expect("the running mean", stats.running_mean, torch.tensor([1.5]))
    expect("the running variance", stats.running_var, torch.tensor([4.0]))
    expect("the count", stats.num_batches_tracked, torch.tensor(1))

# %% grade="running_stats" points=6

# %% [markdown] task="train_and_eval" title="Train against eval" level="more" minutes=15 builds_on="sections 3 and 5, exercises 1 and 2"
r"""
Put both together in a module `BatchNorm(num_features, eps, momentum, track_running_stats)`, which has the state and the
behaviour of `nn.BatchNorm2d` for inputs of shape (N, C, H, W).

```python
>>> layer = BatchNorm(1, momentum=0.5)
>>> x = torch.tensor([0.0, 2.0]).view(2, 1, 1, 1)
>>> layer(x).flatten().detach(), layer.running_mean
(tensor([-1.0000,  1.0000]), tensor([0.5000]))
>>> layer.eval()(x[:1]).flatten().detach()
tensor([-0.4082])
```

- Parameters are `weight` (ones) and `bias` (zeros), buffers are `running_mean`, `running_var` and
  `num_batches_tracked` as in exercise 2. With `track_running_stats=False` the three are
  None and `state_dict` holds `weight` and `bias` alone.
- In training mode (`self.training`) each channel is normalized by the mean and the biased variance of *this
  batch*, and the buffers are updated as in exercise 2. `momentum` is a number here.
- In eval mode it is normalized by the running mean and variance as they are at the call, and no buffer changes.
- Without buffers both modes use the batch.
- Gradients reach `x`, `weight` and `bias` in both modes, several times in a row. Under `torch.no_grad()` the
  result carries no graph.

<details><summary>Hint 1: two questions</summary>

*Which statistics normalize?* and *are the buffers updated?* Answer each by itself. For the first:
the batch's, if `self.training` or if there are no buffers.
</details>
<details><summary>Hint 2: no buffers</summary>

`self.register_buffer("running_mean", None)` makes an attribute that is None and does not show up
in `state_dict`.
</details>
<details><summary>Hint 3: two variances</summary>

The batch is normalized with the variance divided by n, and stored with the one divided by n − 1:
`correction=0` and `correction=1`.
</details>
<details><summary>Help: "trying to backward through the graph a second time"</summary>

The buffers hold on to the graph of the last batch. Update them under `torch.no_grad()`.
</details>
"""


# %% exercise="train_and_eval"
class BatchNorm(nn.Module):
    """Batch norm of images (N, C, H, W), with the state of nn.BatchNorm2d."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        track_running_stats: bool = True,
    ):
        super().__init__()
        ### BEGIN SOLUTION
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        tracked = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, value in tracked.items():
            self.register_buffer(name, value if track_running_stats else None)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        has_buffers = self.running_mean is not None
        if self.training or not has_buffers:
            var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        else:
            mean, var = self.running_mean, self.running_var
        if self.training and has_buffers:
            with torch.no_grad():
                self.num_batches_tracked += 1
                unbiased = x.var((0, 2, 3), correction=1)
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(unbiased, self.momentum)
        scale = self.weight * torch.rsqrt(var + self.eps)
        centred = x - mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]
        ### END SOLUTION


# %% check="train_and_eval"
with visible_check("train_and_eval"):
    layer = BatchNorm(2)
    x = torch.arange(8.0).reshape(2, 2, 2, 1)
    expect("a mean in training", layer(x)[:, 0].mean().item(), 0.0, atol=1e-5)
    expect("the count", layer.num_batches_tracked.item(), 1)
    layer.eval()
    expect("one row in eval", layer(x[:1]), layer(x)[:1])

# %% grade="train_and_eval" points=6

# %% [markdown] task="one_reshape" title="Layer, instance and group norm from one reshape" level="more" minutes=20 builds_on="sections 2 to 4, exercise 1"
r"""
Write the modules `GroupNorm(num_groups, num_channels, eps, affine)`, `InstanceNorm(num_features, eps, affine)` and
`LayerNorm(normalized_shape, eps)`, which differ from `batch_norm` in which elements are averaged together.

```python
>>> x = torch.tensor([0.0, 2.0, 5.0, 9.0]).view(1, 4, 1, 1)
>>> GroupNorm(2, 4)(x).flatten().detach()
tensor([-1.0000,  1.0000, -1.0000,  1.0000])
>>> LayerNorm([2])(torch.tensor([[1.0, 3.0], [5.0, 5.0]])).detach()
tensor([[-1.0000,  1.0000],
        [ 0.0000,  0.0000]])
>>> list(InstanceNorm(3).state_dict())
[]
```

- `GroupNorm`, for `x` of shape (N, C), (N, C, L) or (N, C, H, W): for each sample, each group of C / G *neighbouring*
  channels has one mean and variance. The constructor raises a `ValueError` if G does not divide C.
- `InstanceNorm`, for `x` of shape (N, C, H, W): for each sample, each channel has its own.
- `LayerNorm`: `normalized_shape` is a list of sizes, those of the *last* dimensions of `x`; all elements in these are
  averaged together. If `x` ends in other sizes, the call raises a `ValueError` or a `RuntimeError`.
- With `affine=True` the first two have parameters `weight` and `bias` of shape (C,), without it none. `GroupNorm` has
  them by default, `InstanceNorm` has not. `LayerNorm` has them always, in the shape `normalized_shape`.
- Nothing depends on the mode, on other samples or on earlier calls.

<details><summary>Hint 1: the one reshape</summary>

`x.reshape(N, G, -1)`, normalize the last dimension, reshape back to `x.shape`. `reshape` reads in
order, so a group gets neighbouring channels. G = C is instance norm.
</details>
<details><summary>Hint 2: layer norm by the same reshape</summary>

`x.flatten(-len(normalized_shape))` makes one dimension of the last ones. Compare
`x.shape[-len(normalized_shape):]` with `tuple(normalized_shape)` first, as a shape equals no list: the reshape would not mind.
</details>
<details><summary>Hint 3: weight and bias</summary>

After reshaping *back*. Per channel they need the shape (C, 1, 1) for images, for layer norm they
broadcast as they are.
</details>
<details><summary>Help: a parameter that may be missing</summary>

`self.register_parameter("weight", None)` makes an attribute that is None and does not show up in
`state_dict`.
</details>
"""


# %% exercise="one_reshape"
class GroupNorm(nn.Module):
    """Normalizes groups of neighbouring channels, sample by sample."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
    ):
        super().__init__()
        ### BEGIN SOLUTION
        if num_channels % num_groups:
            raise ValueError(f"{num_groups} groups of {num_channels} channels")
        self.num_groups, self.eps = num_groups, eps
        ones, zeros = torch.ones(num_channels), torch.zeros(num_channels)
        self.weight = nn.Parameter(ones) if affine else None
        self.bias = nn.Parameter(zeros) if affine else None
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        grouped = x.reshape(x.shape[0], self.num_groups, -1)
        var, mean = torch.var_mean(grouped, 2, correction=0, keepdim=True)
        grouped = (grouped - mean) * torch.rsqrt(var + self.eps)
        out = grouped.reshape(x.shape)
        if self.weight is None:
            return out
        shape = (-1, *[1] * (x.dim() - 2))
        return out * self.weight.view(shape) + self.bias.view(shape)
        ### END SOLUTION


class InstanceNorm(nn.Module):
    """Normalizes each channel of each sample."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, affine: bool = False
    ):
        super().__init__()
        ### BEGIN SOLUTION
        self.eps = eps
        made = torch.ones(num_features), torch.zeros(num_features)
        self.weight = nn.Parameter(made[0]) if affine else None
        self.bias = nn.Parameter(made[1]) if affine else None
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        flat = x.flatten(2)
        var, mean = torch.var_mean(flat, -1, correction=0, keepdim=True)
        flat = (flat - mean) * torch.rsqrt(var + self.eps)
        if self.weight is not None:
            flat = flat * self.weight[:, None] + self.bias[:, None]
        return flat.reshape(x.shape)
        ### END SOLUTION


class LayerNorm(nn.Module):
    """Normalizes over the last dimensions."""

    def __init__(self, normalized_shape: list[int], eps: float = 1e-5):
        super().__init__()
        ### BEGIN SOLUTION
        self.shape, self.eps = torch.Size(normalized_shape), eps
        self.weight = nn.Parameter(torch.ones(self.shape))
        self.bias = nn.Parameter(torch.zeros(self.shape))
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        if x.shape[-len(self.shape) :] != self.shape:
            raise ValueError(f"{tuple(x.shape)} ends in another shape")
        rows = x.flatten(-len(self.shape))
        var, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
        rows = (rows - mean) * torch.rsqrt(var + self.eps)
        return rows.reshape(x.shape) * self.weight + self.bias
        ### END SOLUTION


# %% check="one_reshape"
with visible_check("one_reshape"):
    x = torch.tensor([[0.0, 2.0, 5.0, 9.0]]).reshape(1, 4, 1, 1)
    signs = GroupNorm(2, 4)(x).flatten()
    expect("two groups", signs, torch.tensor([-1.0, 1, -1, 1]), atol=1e-4)
    flat = LayerNorm([2])(torch.tensor([[1.0, 3.0], [5.0, 5.0]]))
    expect("layer norm", flat, torch.tensor([[-1.0, 1], [0, 0]]), atol=1e-4)
    expect("keys of InstanceNorm", list(InstanceNorm(3).state_dict()), [])

# %% grade="one_reshape" points=8

# %% [markdown] task="predict_one" title="A batch of one" level="more" minutes=12 builds_on="sections 1 and 5, exercise 3"
r"""
Write `predict_one(model, x)`, which lets a trained model answer for one sample and leaves the model as it was.

```python
>>> model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
>>> predict_one(model, torch.tensor([1.0, -2.0]))
tensor([ 1.0000, -2.0000])
>>> model.training
True
```

- `model` is any module that takes batches, in training mode, in eval mode, or partly in each. `x` is
  one sample without batch dimension.
- The result is what `model(...)` gives for this sample alone in evaluation: by running statistics, without dropout. It
  carries no graph.
- Only the batch dimension is gone: (1, 1) becomes (1,), and (1, 3, 1, 2) becomes (3, 1, 2).
- Afterwards every module is in the mode it was in, each by itself: a frozen batch norm stays frozen.
- The modes are back also if the model raises, or is stopped by a `KeyboardInterrupt`, and the exception reaches
  the caller.

<details><summary>Hint 1: the mode of every module</summary>

`model.eval()` goes through all submodules, and so does `model.train()`: it would also wake those that
were frozen. Note `module.training` for each of `model.modules()` first.
</details>
<details><summary>Hint 2: whatever happens</summary>

`try: ... finally: ...` runs the last part also when the first raises.
</details>
<details><summary>Hint 3: the batch dimension</summary>

`x.unsqueeze(0)` adds it. `squeeze()` without a number takes away every dimension of size 1:
`squeeze(0)` or `[0]`.
</details>
"""


# %% exercise="predict_one"
def predict_one(
    model: nn.Module,
    x: Tensor,  # (features,) or (C, H, W)
) -> Tensor:  # the output for x alone
    """The model's output for one sample in evaluation."""
    ### BEGIN SOLUTION
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, mode in modes.items():
            module.training = mode
    ### END SOLUTION


# %% check="predict_one"
with visible_check("predict_one"):
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    got = predict_one(net, torch.tensor([1.0, -2.0]))
    expect("the output", got, torch.tensor([1.0, -2.0]), atol=1e-4)
    expect("the mode afterwards", net.training, True)

# %% grade="predict_one" points=5

# %% [markdown] task="quiz" title="Fine distinctions" level="more" minutes=6 builds_on="sections 3 to 5"
r"""
Write `quiz()`, which answers the six questions below with a dict of one letter each, so that you tell apart what is easily
mixed up.

```python
>>> sorted(quiz())
['alone', 'momentum', 'motive', 'shift', 'tracking', 'two_variances']
```

- Each question counts by itself. Capital letters are fine.

**`motive`** Why does batch norm help?
(a) It has been proved that it removes internal covariate shift. (b) Its authors wanted to reduce
internal covariate shift; later experiments point to a smoother loss surface instead. (c) It repairs
abnormal training data. (d) It keeps the weights small.

**`shift`** What does the batch norm paper call internal covariate shift?
(a) The training data differ from the test data. (b) The labels of a batch drift over time. (c) The inputs
of a layer change their distribution because earlier layers learn. (d) Single samples are outliers.

**`momentum`** A BatchNorm layer with `momentum=0.9`
(a) takes nine tenths of each new running value from the new batch. (b) keeps nine tenths of the old
one, as SGD keeps its buffer. (c) speeds up the optimizer. (d) smooths the output in training.

**`tracking`** `nn.BatchNorm2d(8, track_running_stats=False)` in eval mode
(a) returns its input unchanged. (b) uses running statistics that stay at 0 and 1. (c) raises an error.
(d) normalizes by the batch it is given.

**`two_variances`** Training, 4 values per channel. Which variances does the layer take?
(a) ÷ 4 for the output and ÷ 4 for the buffer. (b) ÷ 3 for both. (c) ÷ 3 for the output, ÷ 4 for the
buffer. (d) ÷ 4 for the output, ÷ 3 for the buffer.

**`alone`** Which of these raises an error in training mode?
(a) `nn.LayerNorm(8)` on shape (1, 8). (b) `nn.BatchNorm2d(8)` on (1, 8, 4, 4). (c) `nn.BatchNorm1d(8)` on
(1, 8). (d) `nn.GroupNorm(2, 8)` on (1, 8, 1, 1).

<details><summary>Hint 1: momentum</summary>

Section 3 has a figure in which you can move it.
</details>
<details><summary>Hint 2: alone</summary>

Try them. Count how many values each mean is taken over.
</details>
"""


# %% exercise="quiz"
def quiz() -> dict[str, str]:
    """One letter for each of motive, shift, momentum, tracking,
    two_variances and alone."""
    ### BEGIN SOLUTION
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
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

- y = γ (x − mean) / √(var + ε) + β, with the biased variance. The layers differ in what is averaged
  together; only batch norm reaches across samples.
- Training normalizes by the batch and moves the buffers. Eval normalizes by the buffers and moves
  nothing. `no_grad` is neither.
- running = (1 − m) · running + m · batch. The stored variance is the unbiased one. In batch norm `momentum=None` is the plain average (bfloat16 buffers round it), 0.0 keeps the buffers, where mean and variance of the batch are finite, and does not freeze the layer.
- `track_running_stats` decides whether there are buffers; set to False later, it stops a batch norm's updates.
  `layer.training` is the mode.
- In training, batch norm with one value per channel raises. One image does not: it is normalized by itself.
- Small batches: group norm, or layer norm. Under DDP `nn.SyncBatchNorm` averages over all processes
  (chapter 14). Freezing batch norm is in chapter 07, what it does to accumulation in chapter 09, and renewing
  the running statistics of averaged weights (`swa_utils.update_bn`) in chapter 06.

**Primary sources**

- PyTorch:
  [BatchNorm2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html),
  [LayerNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html),
  [InstanceNorm2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm2d.html),
  [GroupNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html),
  [RMSNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html).
- Batch norm: S. Ioffe and C. Szegedy,
  [Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
  Shift](https://arxiv.org/abs/1502.03167), 2015. Why it helps: S. Santurkar and others,
  [How Does Batch Normalization Help Optimization?](https://arxiv.org/abs/1805.11604), 2018.
- Layer norm: J. L. Ba, J. R. Kiros, G. E. Hinton, [Layer Normalization](https://arxiv.org/abs/1607.06450), 2016.
  Instance norm: D. Ulyanov, A. Vedaldi, V. Lempitsky,
  [Instance Normalization](https://arxiv.org/abs/1607.08022), 2016. Group norm: Y. Wu and K. He,
  [Group Normalization](https://arxiv.org/abs/1803.08494), 2018. RMS norm: B. Zhang and R. Sennrich,
  [Root Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467), 2019.
"""
