# %% [markdown] reading_minutes=25 builds_on="chapter 02, *shapes, dtypes and views*"
r"""
# 03 · One-hot labels and losses

A classifier's loss takes scores and labels, and both are plain tensors. With a
wrong shape or one softmax too many, training seldom stops. It goes on and learns
something else.

**After this chapter you can**

- turn labels into one-hot rows, for any shape, integer dtype and device, without
  touching the caller's tensor;
- say what cross-entropy wants, and compute it by hand with class weights, ignored
  labels, label smoothing and three reductions;
- recognise the silent failures: labels resized in place, softmax taken twice, a
  squared error that broadcasts, a mean of means;
- average a loss over batches of unequal size.
"""

# %% setup="imports"
import math
import warnings
from collections.abc import Iterable

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
    digits,
    explore,
    line_chart,
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

Four mistakes. None of them raises an error.

### A helper that changes its caller's labels

Here is the idea of a helper that many posts pass on: turn the labels into a column,
then *scatter* ones into a matrix of zeros.
"""

# %% cell="popular_helper"
num_classes, batch_size = 8, 4


def popular_one_hot(labels):
    column = labels.resize_(batch_size, 1)
    zeros = torch.zeros(batch_size, num_classes)
    return zeros.scatter_(1, column, 1.0).numpy()


# %% [markdown]
r"""
We give it every second label of a tensor, and read the classes back from its rows.
"""

# %% cell="strided_labels"
labels = torch.arange(8)[::2]
print("labels before:", labels.tolist())

encoded = popular_one_hot(labels)
print("encoded as:   ", encoded.argmax(1).tolist())
print("labels after: ", labels.flatten().tolist(), tuple(labels.shape))

# %% [markdown]
r"""
Three of the four classes are wrong, and the caller's labels have changed. `resize_`
does not reshape. Given another shape, it takes the memory *behind* the tensor and reads it anew,
in order, from the place where the tensor itself begins. `labels` is a view that skips every second
number; after `resize_` it no longer skips.

Such views are common: a column of a table (`table[:, -1]`), the tokens from the second
on (`tokens[:, 1:]`), every tenth sample.
"""

# %% [markdown]
r"""
### One softmax too many

`F.cross_entropy` takes a softmax itself. If the model ends in one too, there are two.
We train the same linear classifier on handwritten digits with and without the extra
one, by three optimizers.
"""

# %%
data = digits()
pixels, digit = data.X_train.flatten(1), data.y_train


def train(loss_of, optimizer_class, lr, num_steps=150):
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimizer = optimizer_class(model.parameters(), lr=lr)
    losses = []
    for _ in range(num_steps):
        loss = loss_of(model(pixels), digit)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    hits = model(data.X_test.flatten(1)).argmax(1) == data.y_test
    return losses, hits.double().mean().item()


# %% cell="softmax_twice"
def loss_of_softmax(z, y):
    return F.cross_entropy(z.softmax(1), y)


floor = math.log(math.e + 9) - 1
curves = {}
for optimizer_class, lr in (
    (torch.optim.SGD, 0.1),
    (torch.optim.Adam, 0.001),
    (torch.optim.Adam, 0.1),
):
    for times, loss_of in (
        ("once", F.cross_entropy),
        ("twice", loss_of_softmax),
    ):
        losses, accuracy = train(loss_of, optimizer_class, lr)
        name = f"softmax {times}, {optimizer_class.__name__} {lr:g}"
        curves[name] = losses
        print(f"{name:25} loss {losses[-1]:.3f}, accuracy {accuracy:.3f}")
print(f"log(e + 9) - 1 = {floor:.4f}")

# %% figure="The training loss with the softmax taken once and twice"
shown = ["softmax once, SGD 0.1", "softmax twice, SGD 0.1"]
shown += ["softmax twice, Adam 0.1"]
figure = line_chart(
    {name: curves[name] for name in shown},
    title=f"Taken twice, the loss cannot fall below {floor:.2f}",
    xlabel="step",
    ylabel="training loss (nats)",
)
figure.axes[0].axhline(floor, color="0.5", linewidth=1)
figure.axes[0].text(118, floor - 0.17, "log(e + 9) − 1", color="0.4")
figure.axes[0].set_ylim(0, None)
figure

# %% [markdown]
r"""
The losses are in nats, the unit of the natural logarithm. Probabilities are numbers from 0
to 1. Taken as logits, the best of them are a 1 for the target and nine 0s, and even these
cost $\log(e + 9) - 1 = 1.4612$. So **if a ten-class loss stays above 1.46, suspect a
second softmax.**

The second softmax also makes the gradient smaller: ten times for ten classes where the model is
unsure, and far more where it is sure and wrong. What that costs depends on the optimizer. Here SGD at 0.1 gets a third of the digits
right, where it got nine in ten. Adam at 0.1 divides each gradient by its own size, and its
accuracy hides the mistake.
"""

# %% [markdown]
r"""
### A squared error that broadcasts

A regression model returns shape (64, 1). The target has shape (64,). Their difference
has shape (64, 64): every output is compared with every target.
"""

# %% cell="mse_broadcasts"
torch.manual_seed(0)
x = torch.linspace(-1, 1, 64).unsqueeze(1)
y = 2 * x.squeeze(1) + 3 + 0.2 * torch.randn(64)


def fit(target):
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(200):
        optimizer.zero_grad()
        F.mse_loss(model(x), target).backward()
        optimizer.step()
    return model(x).detach()


# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    flat, sloped = fit(y), fit(y.unsqueeze(1))
print(str(caught[0].message).split(". ")[0] + ".")

# %% figure="What the model learns from a target of each shape"
figure, axes = new_figure()
axes.plot(x, y, ".", color="0.6", label="data")
axes.plot(x, sloped, label="target (64, 1)")
axes.plot(x, flat, "--", label="target (64,)")
axes.set(xlabel="input x", ylabel="output y")
axes.set_title("Broadcast, the model learns the mean of all targets")
axes.legend()
figure

# %% [markdown]
r"""
PyTorch warns at the first step, and as a rule no more while the shapes are the same. In a notebook that warning scrolls away; in a
job on a cluster it sits in a file. In your own code, written as
`((output - target) ** 2).mean()`, there is none.
"""

# %% [markdown]
r"""
### A mean of means

Seventeen samples in batches of four leave one for the last batch. That one then counts
as much as four others.
"""

# %% cell="mean_of_means"
torch.manual_seed(1)
scores, classes = torch.randn(17, 5), torch.randint(5, (17,))
scores[-1] *= 4

pieces = zip(scores.split(4), classes.split(4), strict=True)
means = torch.stack([F.cross_entropy(*piece) for piece in pieces])
print("batch means:       ", [round(m, 2) for m in means.tolist()])
print(f"mean of the means:  {means.mean():.3f}")
print(f"mean of the samples: {F.cross_entropy(scores, classes):.3f}")

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

Three calls: `F.one_hot`, `F.cross_entropy`, `F.mse_loss`. `num_classes` is given and not
guessed from the batch, the logits go in as they are, and both sides of the squared error
have one shape.
"""

# %% cell="shortest_form"
torch.manual_seed(2)
logits, labels = torch.randn(3, 4), torch.tensor([2, 0, 1])

rows = F.one_hot(labels, num_classes=4).to(logits.dtype)
print(rows)
print("cross-entropy:", F.cross_entropy(logits, labels).item())
print("squared error:", F.mse_loss(logits, rows).item())

# %% [markdown]
r"""
**Scatter** is what happens inside `F.one_hot`. `zeros.scatter_(dim, index, 1)` writes a 1
at the places that `index` names along `dim`. `index` has as many dimensions as the zeros;
here its last one has size 1: one place per row.

| | `labels` | `index` | `zeros` |
|---|---|---|---|
| shape | (3,) | (3, 1) | (3, 4) |
| values | 2, 0, 1 | [2], [0], [1] | row 0 gets its 1 in column 2, ... |
"""

# %% [markdown]
r"""
**Cross-entropy** of logits $z$ with the class $y$ is minus the log-probability of $y$:

$$\ell = -\log p_y = -\log \frac{e^{z_y}}{\sum_c e^{z_c}}
= \log \sum_c e^{z_c} - z_y .$$

With label smoothing $\varepsilon$ the target is no longer all on $y$: a share
$1 - \varepsilon$ stays there and $\varepsilon$ is spread evenly over all $C$ classes, $y$
among them. With class weights $w$ the term of class $c$ is multiplied by $w_c$:

$$\ell = -(1 - \varepsilon)\, w_y \log p_y
- \frac{\varepsilon}{C} \sum_c w_c \log p_c .$$

A sample whose label equals `ignore_index` costs nothing. Then the samples are reduced:

| `reduction` | result |
|---|---|
| `"none"` | every $\ell_n$, with 0 where the label is ignored |
| `"sum"` | $\sum_n \ell_n$ |
| `"mean"` | $\sum_n \ell_n \big/ \sum_n w_{y_n}$, both over the labels that are not ignored |

Without weights, $\sum_n w_{y_n}$ is the number of labels that are not ignored. On a CPU, outside of autocast, the loss is summed in the dtype of the
logits: in float16 a mean over many samples, or smoothing over many classes, may be infinite or NaN, compiled or not. If labels are ignored and the loss itself is not compiled, it may be far off in both 16-bit dtypes. Give it `logits.float()`.
"""

# %% [markdown]
r"""
**Why logits and not probabilities?** Because a small probability is 0 in float32, and its
logarithm is $-\infty$. `log_softmax` never forms the probability. Below $10^{-38}$, from
a gap of 88 on, float32 holds it with fewer and fewer digits: at 100 the naive result is
slightly off, and from 104 on nothing is left.
"""

# %% cell="log_softmax"
for gap in (10.0, 80.0, 100.0, 110.0, 1000.0):
    pair = torch.tensor([0.0, gap])
    naive, stable = pair.softmax(0).log(), pair.log_softmax(0)
    print(f"gap {gap:6g}: log of softmax {naive[0]:9.2f}", end="   ")
    print(f"log_softmax {stable[0]:9.2f}")

# %% [markdown]
r"""
## 3 · See it

### What label smoothing asks for

Take $C$ classes and logits that are 0 except for the target's, which stands above the
others by a *margin*. Move the sliders. Without smoothing a larger margin is always
better. With smoothing there is a best margin, and going beyond it costs.
"""


# %% cell="label_smoothing_figure" figure="What label smoothing asks for"
def smoothing_figure(smoothing=0.1, num_classes=5):
    margins = torch.linspace(-4, 14, 361)
    logits = torch.zeros(361, num_classes)
    logits[:, 0] = margins
    target = torch.zeros(361, dtype=torch.int64)
    losses = F.cross_entropy(
        logits, target, reduction="none", label_smoothing=smoothing
    )
    wanted = torch.full((num_classes,), smoothing / num_classes)
    wanted[0] += 1 - smoothing

    figure, (left, right) = new_figure(1, 2)
    left.bar(range(num_classes), wanted, color=PALETTE[0])
    left.set(ylim=(0, 1), xlabel="class (0 is the target)")
    left.set(ylabel="wanted probability")
    left.xaxis.get_major_locator().set_params(integer=True)
    left.set_title(f"Smoothing {smoothing:.2f} wants {wanted[0]:.3g}")
    right.plot(margins, losses, color=PALETTE[1])
    right.set(ylim=(0, 5), xlabel="margin of the target's logit")
    right.set(ylabel="loss (nats)")
    right.set_title("No margin is large enough")
    if smoothing:
        best = (wanted[0] / wanted[1]).log().item()
        right.axvline(best, color=PALETTE[6], linewidth=1, linestyle=":")
        right.set_title(f"The best margin is {best:.1f}")
    return figure


explore(smoothing_figure, smoothing=(0.0, 0.5, 0.05), num_classes=range(2, 21))

# %% [markdown]
r"""
The best margin is where the model's probabilities equal the wanted ones:
$m = \log\big((1 - \varepsilon + \varepsilon/C)\,/\,(\varepsilon/C)\big)$. At
$\varepsilon = 0.1$ and $C = 5$ that is $\log(0.92 / 0.02) = 3.8$. The smallest loss
is then above 0, so losses with different smoothing cannot be compared.
"""

# %% [markdown]
r"""
### How hard each loss pushes

The gradient says what the loss does about a mistake. We draw the push on the margin,
$-\partial \ell / \partial m$, for cross-entropy and for two squared errors: of the
softmax probabilities, and of the logits themselves.
"""


# %% cell="push_figure" figure="How hard each loss pushes"
def push_figure(num_classes=10):
    margins = torch.linspace(-4, 5, 401, requires_grad=True)
    others = torch.zeros(401, num_classes - 1)
    logits = torch.cat([margins.unsqueeze(1), others], dim=1)
    target = F.one_hot(torch.zeros(401, dtype=torch.int64), num_classes)
    losses = {
        "cross-entropy": -logits.log_softmax(1)[:, 0],
        "squared error of softmax": (logits.softmax(1) - target) ** 2,
        "squared error of logits": (logits - target) ** 2,
    }
    figure, axes = new_figure(figsize=(6, 3.2))
    for (name, loss), style in zip(
        losses.items(), ("-", "--", ":"), strict=True
    ):
        (gradient,) = torch.autograd.grad(
            loss.sum(), margins, retain_graph=True
        )
        axes.plot(margins.detach(), -gradient, style, label=name)
    axes.axhline(0, color="0.8", linewidth=1, zorder=0)
    axes.set(ylim=(-4, 10.5), xlabel="margin of the target's logit")
    axes.set(ylabel="push on the margin")
    axes.set_title("Confidently wrong: only cross-entropy pushes evenly")
    axes.legend()
    return figure


explore(push_figure, num_classes=[2, 10, 100, 1000])

# %% [markdown]
r"""
Read it from the left, where the model is wrong and sure of it.

- **Cross-entropy** pushes with almost 1, and lets go once the target's probability is
  near 1.
- **Squared error of the softmax** has let go: the softmax is flat there, so the gradient
  is near 0 exactly where the mistake is largest.
- **Squared error of the logits** pushes the harder the larger the mistake, and pushes
  *back* once the margin is above 1, although the answer is right.

That does not make squared error useless for classes. Hui and Belkin (see the recap)
trained many networks with the squared error of the logits, with results on a par with
cross-entropy. The squared error of the *softmax* is the poor choice: it does nothing
about the worst mistakes.
"""

# %% [markdown]
r"""
## 4 · Measure it on this machine

Class indices or one-hot rows? Without class weights, and if every log-probability is finite, cross-entropy gives the same
loss for both. For a vocabulary of 8192 words the rows are 4096 times as large as the indices:
float32 instead of int64, and 8192 of them.
"""

# %%
torch.manual_seed(4)
words = torch.randn(1024, 8192, device=device, requires_grad=True)
word_index = torch.randint(8192, (1024,), device=device)
word_rows = F.one_hot(word_index, 8192).float()


def forward_backward(target):
    words.grad = None
    F.cross_entropy(words, target).backward()


# %% cell="measure_targets"
results = {}
for name, target in (("indices", word_index), ("rows", word_rows)):

    def step(target=target):
        forward_backward(target)

    step_time = measure_time(step, repeats=7)
    memory = peak_memory(step, ignore=[words])
    results[name] = step_time.median_s * 1e3
    print(f"{name:7}: target {target.nbytes / 2**20:7.3f} MiB", end="")
    print(f", step {step_time}, {memory.counted}", end="")
    print(f" {memory.peak_bytes / 2**20:.0f} MiB")

# %% cell="measure_beside_reference"
for name in ("indices", "rows"):
    recorded_as = f"03_one_hot_and_losses/step_with_{name}_ms"
    beside_reference(recorded_as, results[name], unit="ms")

# %% [markdown]
r"""
Both steps hold the log-probabilities and the target for the backward pass. Without label smoothing and outside of autocast, rows are kept as they are and not as a copy: a batch of them occupies its memory once, and until the backward pass is done. Use rows where the target is a true distribution: soft labels, mixtures
of two images, the output of a teacher model.
"""

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about one-hot labels and losses, run against the PyTorch that is installed
here. Each cell ends in an assertion. If a later version changes the answer, the cell
fails, and you know.

`attempt` calls a function and returns what came of it: a result or an error, and the
warnings.
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


# %% [markdown]
r"""
> **"Cross-entropy turns the labels into one-hot rows for you."**
> *Half the story.*

It builds no rows: it picks one log-probability per sample. It takes float rows as well (their classes in dimension 1, as those of the logits, where `F.one_hot` puts them last), with the same result up to rounding if all log-probabilities are finite, and refuses rows of integers. (Rows make NaN of a class
that is masked by a logit of −∞, in float16, where nothing is compiled, also by its most negative number if the logsumexp of the others reaches about 16, even where its target is 0; indices do not, though with label smoothing a −∞ makes the loss infinite, or NaN if that class has a weight of 0, and the dtype's most negative number may make it infinite.) With class weights the
two forms *differ*: given indices, the mean divides by the sum of the targets' weights;
given rows, by their number. And rows know no `ignore_index`: without label smoothing a row of zeros costs nothing, but the mean counts it.
"""

# %% cell="claim_000_15"
torch.manual_seed(15)
logits, labels = torch.randn(6, 4), torch.tensor([0, 3, 1, 1, 2, 0])
rows = F.one_hot(labels, 4)

by_index = F.cross_entropy(logits, labels)
by_rows = F.cross_entropy(logits, rows.float())
refused, _ = attempt(lambda: F.cross_entropy(logits, rows))
print(f"indices {by_index:.4f}, float rows {by_rows:.4f}")
print(f"integer rows: {type(refused).__name__}: {refused}")

assert torch.isclose(by_index, by_rows)
assert isinstance(refused, RuntimeError)

# %% cell="claim_000_15_weights"
weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
by_index = F.cross_entropy(logits, labels, weight)
by_rows = F.cross_entropy(logits, rows.float(), weight)
print(f"with class weights: indices {by_index:.4f}, rows {by_rows:.4f}")

refused, _ = attempt(
    lambda: F.cross_entropy(logits, rows.float(), ignore_index=0)
)
print("rows with ignore_index=0:", refused)

mean_weight = weight[labels].sum() / len(labels)
assert not torch.isclose(by_index, by_rows)
assert torch.isclose(by_index * mean_weight, by_rows)
assert isinstance(refused, RuntimeError)

# %% [markdown]
r"""
> **"For the squared error you have to make the one-hot rows yourself."**
> *Correct*, and the shapes must match.

With four samples and four classes the labels broadcast. The number below has nothing to
do with the classes; a warning is all you get.
"""

# %% cell="claim_000_16"
torch.manual_seed(16)
scores, labels = torch.randn(4, 4), torch.tensor([0, 3, 1, 2])

broadcast, told = attempt(lambda: F.mse_loss(scores, labels.float()))
right, untold = attempt(lambda: F.mse_loss(scores, torch.eye(4)[labels]))
print(f"labels as they are: {broadcast:.4f}, {len(told)} warning")
print(f"one-hot rows:       {right:.4f}, {len(untold)} warnings")

assert "broadcasting" in told[0]
assert not untold
assert not torch.isclose(broadcast, right)

# %% [markdown]
r"""
> **"Here is a one-hot helper: `resize_` the labels to a column, `scatter_` ones into
> zeros, return a NumPy array."**
> *Wrong.*

Section 1 showed two faults: it changes the caller's tensor, and on a view it encodes other
labels. It also has the batch size built in. Given five labels it drops the fifth. Given
three it would read on behind them: the next number of a longer tensor, or memory that nobody has filled; where memory cannot grow (NumPy's)
it would raise. We leave that out. And it is for the CPU alone: its zeros are made there, and NumPy has no tensor
of a GPU.
"""

# %% cell="claim_000_17"
given = torch.arange(8)[::2]
wrong_classes = popular_one_hot(given).argmax(1).tolist()
five = popular_one_hot(torch.tensor([1, 2, 3, 4, 5]))
print("0, 2, 4, 6 become", wrong_classes, "in shape", tuple(given.shape))
print("five labels give", len(five), "rows")

assert wrong_classes == [0, 1, 2, 3]
assert given.shape == (4, 1)
assert len(five) == 4

# %% [markdown]
r"""
> **"Random labels: `torch.LongTensor(n).random_() % C`."**
> *Outdated.*

It works. The legacy constructor hands out memory with whatever is in it until `random_`
fills it. `torch.randint` says the same in one call, takes a `generator` and a `device`,
and never shows unfilled memory.
"""

# %% cell="claim_000_18"
torch.manual_seed(18)
legacy = torch.LongTensor(1000).random_() % 10
modern = torch.randint(10, (1000,))
print("legacy:", legacy[:8].tolist(), "modern:", modern[:8].tolist())

assert legacy.dtype == modern.dtype == torch.int64
assert set(legacy.tolist()) == set(modern.tolist()) == set(range(10))

# %% [markdown]
r"""
> **"`CrossEntropyLoss` takes `size_average` and `reduce`, and its default reduction is
> `elementwise_mean`."**
> *Outdated.*

The default is called `"mean"`. The old name still works and warns. So do the old
arguments, and they are worse: `size_average=False` overrides what `reduction` says, and
a second *positional* argument is `size_average`. Write `reduction=` by name.
"""

# %% cell="claim_004_15"
torch.manual_seed(4)
logits, labels = torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 0])
old_name, told = attempt(
    lambda: F.cross_entropy(logits, labels, reduction="elementwise_mean")
)
print("the default is", nn.CrossEntropyLoss().reduction)
print("elementwise_mean:", told[0])

assert nn.CrossEntropyLoss().reduction == "mean"
assert old_name == F.cross_entropy(logits, labels)

# %% cell="claim_004_15_overrides"
named, told = attempt(
    lambda: nn.CrossEntropyLoss(size_average=False, reduction="mean")
)
positional, told_too = attempt(lambda: nn.CrossEntropyLoss(None, False))
print('size_average=False, reduction="mean" is a', named.reduction)
print("CrossEntropyLoss(None, False) is a", positional.reduction)

assert named.reduction == positional.reduction == "sum"
assert all([told, told_too])

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Each exercise is judged separately. Do not lean on your answer to another exercise: where
that one is wrong, this one would be too. The set-up cell's imports are there; what else you
need you import in the cell itself. Keep the names and the order of the arguments. Where you
know a library function that does it all, you may call it for full marks; you learn more by
hand.
"""

# %% [markdown] task="one_hot" title="One-hot by scatter" level="core" minutes=10 builds_on="sections 1 and 2, views (chapter 02)"
r"""
Write `one_hot(labels, num_classes, dtype)`, which turns class labels into rows with a single
1, so that a loss can compare them with scores.

```python
>>> one_hot(torch.tensor([2, 0]), num_classes=3)
tensor([[0., 0., 1.],
        [1., 0., 0.]])
```

- `labels` has any shape and any integer dtype; the result has the shape
  `(*labels.shape, num_classes)`.
- The result has the dtype `dtype` and is on the device of the labels.
- A label that is no class raises a `ValueError`, an `IndexError` or a `RuntimeError`,
  whichever comes naturally.
- The labels stay as they were, and the result is a new tensor.

<details><summary>Hint 1: the shape of the index</summary>

`scatter_` wants an index with as many dimensions as the zeros. `labels.unsqueeze(-1)` gives
the labels one more dimension, at the end, and copies nothing.
</details>
<details><summary>Hint 2: any number of dimensions</summary>

Count dimensions from the end: `torch.zeros(*labels.shape, num_classes, ...)`, and scatter
along dimension -1. Then one-dimensional labels need no case of their own.
</details>
<details><summary>Hint 3: dtype and device</summary>

`torch.zeros` and its like take `dtype=` and `device=`. The index of a scatter should be int64: `labels.long()` gives one. (Labels of int64 it gives back as they are: change nothing in place.)
</details>
<details><summary>Help: a label of -1 raises nothing</summary>

Indexing with `[...]` counts -1 from the end, and comparing with `==` finds no class and leaves
a row of zeros. `scatter_` refuses both ends by itself, but not in compiled code; the other ways need a check.
</details>
"""


# %% exercise="one_hot"
def one_hot(
    labels: Tensor,  # (*), any integer dtype
    num_classes: int,
    dtype: torch.dtype = torch.float32,
) -> Tensor:  # (*, num_classes)
    """One-hot rows of the labels, on their device.

    Raises:
        ValueError, IndexError or RuntimeError: a label is no class.
    """
    ### BEGIN SOLUTION
    index = labels.long().unsqueeze(-1)
    shape = (*labels.shape, num_classes)
    zeros = torch.zeros(shape, dtype=dtype, device=labels.device)
    return zeros.scatter_(-1, index, 1)
    ### END SOLUTION


# %% check="one_hot"
with visible_check("one_hot"):
    classes = torch.tensor([2, 0])
    got = one_hot(classes, 3)
    expect("the shape", tuple(got.shape), (2, 3))
    expect("the row of label 2", got[0], torch.tensor([0.0, 0.0, 1.0]))
    expect("labels afterwards", classes, torch.tensor([2, 0]))

# %% grade="one_hot" points=5

# %% [markdown] task="cross_entropy" title="Cross-entropy from logits" level="hard" minutes=30 builds_on="section 2, gather and broadcasting (chapter 02)"
r"""
Write `cross_entropy(logits, target, ...)`, which does by hand what `F.cross_entropy` does with
class indices, so that you know what each option does to the loss.

```python
>>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
>>> cross_entropy(logits, torch.tensor([0, 1]), reduction="none")
tensor([0.2395, 1.5514])
>>> cross_entropy(logits, torch.tensor([0, -100]))
tensor(0.2395)
```

- `logits` has shape (N, C) or (N, C, d), `target` is int64 of shape (N,) or (N, d), `weight`
  has shape (C,) and the dtype of the logits.
- `reduction` is `"none"`, `"sum"` or `"mean"`, as in the table of section 2; anything else
  raises a `ValueError`.
- A target equal to `ignore_index`, which may be any integer, costs nothing and is not counted.
- Any other target that is no class raises a `ValueError`, an `IndexError` or a
  `RuntimeError`.
- The arguments stay as they were, and gradients reach the logits.

<details><summary>Hint 1: where to begin</summary>

With shape (N, C) and no options. Look at the visible check, then add one option after the
other. The plain mean has marks of its own, and so has each option alone; the other marks are
for several options together.
</details>
<details><summary>Hint 2: the log-probability of the target</summary>

`log_softmax(dim=1)` gives all log-probabilities; `gather(1, index)` picks one per sample. As in
a scatter, the index needs the class dimension: `target.unsqueeze(1)`. Take it out of the result
with `squeeze(1)`; a bare `squeeze()` takes others too.
</details>
<details><summary>Hint 3: ignored targets</summary>

`gather` refuses -100. Make a mask, put any class in the place of the ignored targets *in a new
tensor* (`torch.where`), and set their losses to 0 afterwards, by `torch.where` again: multiplied
by the mask, a NaN stays NaN. `clamp` would also swallow labels that are wrong.
</details>
<details><summary>Hint 4: the denominator of the mean</summary>

Give each sample the weight of its target's class, 1 without weights, 0 if ignored. The mean is the
sum of the losses divided by the sum of these. For an empty sum PyTorch computes 0 / 0 = NaN by
itself.
</details>
<details><summary>Help: it works for (N, C) and not for (N, C, d)</summary>

A weight of shape (C,) broadcasts against the *last* dimension. `log_probs.movedim(1, -1)` puts the
classes there. `reshape(-1, C)` without moving them first mixes classes with positions.
</details>
"""


# %% exercise="cross_entropy"
def cross_entropy(
    logits: Tensor,  # (N, C) or (N, C, d), floating point
    target: Tensor,  # (N,) or (N, d), int64
    weight: Tensor | None = None,  # (C,)
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # () or, for reduction="none", the shape of the target
    """Cross-entropy of logits with class indices.

    Raises:
        ValueError: an unknown reduction.
        ValueError, IndexError or RuntimeError: a target is no class.
    """
    ### BEGIN SOLUTION
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"reduction is {reduction!r}, not none, sum or mean")
    if weight is None:
        weight = logits.new_ones(logits.shape[1])
    log_probs = logits.log_softmax(dim=1)
    kept = target != ignore_index
    index = torch.where(kept, target, 0)  # any class: it is masked below

    picked = log_probs.gather(1, index.unsqueeze(1)).squeeze(1)
    target_weight = weight[index] * kept
    spread = (log_probs.movedim(1, -1) * weight).mean(-1)
    losses = -(1 - label_smoothing) * picked * target_weight
    if label_smoothing:  # 0 times an infinite logit would be NaN
        losses = losses - label_smoothing * spread
    losses = torch.where(kept, losses, 0.0)  # NaN * 0 would be NaN
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.sum() / target_weight.sum()
    ### END SOLUTION


# %% check="cross_entropy"
with visible_check("cross_entropy"):
    scores = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    target, ignored = torch.tensor([0, 1]), torch.tensor([0, -100])
    first = -scores[0].log_softmax(0)[0]
    expect("the loss of row 0", cross_entropy(scores[:1], target[:1]), first)
    both = cross_entropy(scores, target, reduction="none")
    expect("with reduction none, the shape", tuple(both.shape), (2,))
    expect("with row 1 ignored", cross_entropy(scores, ignored), first)

# %% grade="cross_entropy" points=15

# %% [markdown] task="class_mse" title="A squared error that refuses to broadcast" level="more" minutes=10 builds_on="section 1, exercise 1"
r"""
Write `class_mse(scores, target)`, a mean squared error that takes class indices or rows, and
refuses what would only broadcast.

```python
>>> scores = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
>>> class_mse(scores, torch.tensor([0, 2]))
tensor(0.6667)
>>> class_mse(scores, torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
tensor(0.6667)
```

- `scores` is floating point of shape (N, C). The mean goes over all N · C elements, has the
  dtype of the scores, and gradients reach the scores through it.
- A target of shape (N,) and an integer dtype holds class indices. They stand for their one-hot
  rows.
- A target of the shape of the scores, floating point or integer, is used as it is.
- Any other target raises a `ValueError`. A class index below 0, or of C or above, may raise an
  `IndexError` or a `RuntimeError` as well.
- Scores and target stay as they were, and no warning appears.

<details><summary>Hint 1: the order of the tests</summary>

First turn class indices into rows, if that is what you have. Then compare `target.shape` with
`scores.shape`, and raise. What is left can be subtracted, in the dtype of the scores.
</details>
<details><summary>Hint 2: is it class indices?</summary>

It is if the shape is (N,) *and* the dtype an integer one: `not target.is_floating_point()`. Rows may be
integers, too. `scores.shape[:1]` is `(N,)`, and a shape compares with a shape.
</details>
<details><summary>Help: I get "size of tensor a must match the size of tensor b"</summary>

That is broadcasting giving up, with a `RuntimeError`. With other numbers it would not have given up.
Compare shapes before you subtract.
</details>
"""


# %% exercise="class_mse"
def class_mse(
    scores: Tensor,  # (N, C), floating point
    target: Tensor,  # (N,) class indices, or (N, C) rows
) -> Tensor:  # ()
    """Mean squared error of the scores against class indices or rows.

    Raises:
        ValueError: the target is neither.
        ValueError, IndexError or RuntimeError: a class index is no class.
    """
    ### BEGIN SOLUTION
    integer = not target.is_floating_point()
    if integer and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), num_classes=scores.shape[1])
    if target.shape != scores.shape:
        shapes = tuple(target.shape), tuple(scores.shape)
        raise ValueError("target {} does not fit scores {}".format(*shapes))
    return F.mse_loss(scores, target.to(scores.dtype))
    ### END SOLUTION


# %% check="class_mse"
with visible_check("class_mse"):
    scores = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    got = class_mse(scores, torch.tensor([0, 2]))
    expect("the error for labels 0, 2", got, torch.tensor(4 / 6))
    encoded = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    expect("the error for the same rows", class_mse(scores, encoded), got)

# %% grade="class_mse" points=5

# %% [markdown] task="mean_loss" title="A mean over batches of unequal size" level="core" minutes=10 builds_on="sections 1 and 2"
r"""
Write `mean_loss(batches)`, the mean cross-entropy over all samples of an epoch, as
`F.cross_entropy` would give it for one batch that holds them all.

```python
>>> sure, unsure = torch.tensor([[9.0, 0.0]] * 3), torch.tensor([[0.0, 0.0]])
>>> batches = [(sure, torch.tensor([0, 0, 0])), (unsure, torch.tensor([0]))]
>>> print(f"{mean_loss(batches):.4f}")
0.1734
```

- `batches` yields at least one pair: logits of shape (n, C) and int64 labels of shape (n,). The
  n may differ; each is at least 1. It may be a generator, which has no length and can be gone
  through once.
- Labels of -100 are padding and do not count. If no label counts at all, the mean is NaN.
- Any other label that is no class raises a `ValueError`, an `IndexError` or a `RuntimeError`.
- Return a Python float. The batches stay as they were.
- No warning may appear, as deprecated arguments would cause.

<details><summary>Hint 1: what to carry through the loop</summary>

Two numbers: the sum of the losses so far, and how many labels they came from. Divide once, after the
loop.
</details>
<details><summary>Hint 2: the sum of a batch</summary>

`reduction="sum"` gives it directly, and 0 for a batch of padding. The mean of such a batch is NaN, and
NaN · 0 is NaN again.
</details>
<details><summary>Help: I get a ZeroDivisionError</summary>

Python's 0.0 / 0 raises, a tensor's 0 / 0 is NaN. Keep one of the two numbers a tensor until after the
division, or return `float("nan")` yourself.
</details>
"""


# %% exercise="mean_loss"
def mean_loss(
    batches: Iterable[tuple[Tensor, Tensor]],  # logits (n, C), labels (n,)
) -> float:
    """Mean cross-entropy over all labels that are not -100.

    Raises:
        ValueError, IndexError or RuntimeError: another label is no class.
    """
    ### BEGIN SOLUTION
    total, count = torch.zeros((), dtype=torch.float64), 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum")
        count += (labels != -100).sum()
    return float(total / count)
    ### END SOLUTION


# %% check="mean_loss"
with visible_check("mean_loss"):
    sure, unsure = torch.tensor([[9.0, 0.0]] * 3), torch.tensor([[0.0, 0.0]])
    zeros = torch.tensor([0, 0, 0])
    together = F.cross_entropy(torch.cat([sure, unsure]), torch.zeros(4).long())
    got = mean_loss([(sure, zeros), (unsure, zeros[:1])])
    expect("the mean over batches of 3 and 1", got, together.item())

# %% grade="mean_loss" points=5

# %% [markdown]
r"""
## 7 · Recap

- `F.one_hot(labels.long(), num_classes).to(dtype)`: the number of classes is given, never
  guessed from the batch. `resize_` is not `reshape`.
- `F.cross_entropy` wants raw logits, and class indices of int64. (uint8 works in some cases, not in compiled code.) If a ten-class loss stays above 1.46, suspect a second softmax.
- With class indices the weighted mean divides by the weights of the targets that count, not by N. With rows it
  divides by N. Smoothing gives every class, the target's too, a share of ε / C.
- A squared error compares shapes only as far as broadcasting needs. Compare them yourself.
- Across batches add up sums and what they are divided by (counts or, with class weights and indices, the targets' weights), in float64 or as Python numbers, and divide once.
- On a GPU a label out of range is found inside the kernel: the error (*device-side assert*) comes
  late and spoils the process. Check labels while they are on the CPU.

**Primary sources**

- PyTorch:
  [CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html),
  [one_hot](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html),
  [scatter_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html),
  [resize_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.resize_.html) and its warning,
  [MSELoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html).
- Label smoothing: C. Szegedy and others,
  [Rethinking the Inception Architecture for Computer Vision](https://arxiv.org/abs/1512.00567), 2015,
  section 7. What it does: R. Müller, S. Kornblith, G. Hinton,
  [When Does Label Smoothing Help?](https://arxiv.org/abs/1906.02629), 2019.
- Squared error for classes: L. Hui and M. Belkin,
  [Evaluation of Neural Architectures Trained with Square Loss vs Cross-Entropy in Classification
  Tasks](https://arxiv.org/abs/2006.07322), 2020.
"""
