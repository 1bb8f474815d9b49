# %% [markdown] reading_minutes=25 builds_on="chapter 03 (*means of means*), chapter 05 (*batch normalization in eval*), chapter 09 (*graphs and their memory*)"
r"""
# 11 · Evaluation and memory

Training has a loop that everybody checks. Evaluation has one that nobody does: it raises no error,
prints a number between 0 and 1, and that number decides which model is kept. And the memory that
runs out in the third epoch was lost in a line that adds up losses.

**After this chapter you can**

- tell `eval()`, `no_grad()` and `inference_mode()` apart, and write an evaluation that leaves no
  trace in the model, also when it fails;
- average losses and accuracies so that the last, shorter batch and the padding count as they
  should;
- find what keeps memory alive: graphs behind losses, outputs in lists, tracebacks;
- read the allocator's numbers, and trade time for memory with activation checkpointing;
- compute precision, recall and F1 over all predictions, with a class that never occurs.
"""

# %% setup="imports"
import contextlib
import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import (
    classification_report,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)
from torch import Tensor, nn

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few things
more.
"""

# %%
import copy
import gc
import warnings
import weakref

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from course_utils import (
    PALETTE,
    bar_chart,
    beside_reference,
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

### A score that depends on the order of the data

A network with batch norm and dropout learns the digits.
"""

# %%
data = digits()


def new_network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(64, 10),
    )


# %% cell="train_network"
network = new_network()
adam = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(80):
    pick = torch.randperm(len(data.X_train))[:128]
    scores = network(data.X_train[pick])
    train_loss = F.cross_entropy(scores, data.y_train[pick])
    adam.zero_grad()
    train_loss.backward()
    adam.step()
print(f"training loss, last batch: {train_loss.item():.2f}")

# %% [markdown]
r"""
Now it is evaluated on 360 test images: with `eval()`, and with `no_grad()` alone, as many posts do
it. The latter once in the order of the file, and once sorted by class, as a folder of images comes.
"""


# %% cell="order_matters"
def test_accuracy(net, train_mode, by_class, batch_size):
    twin = copy.deepcopy(net).train(train_mode)  # spares the statistics
    place = torch.arange(len(data.y_test))
    if by_class:
        place = data.y_test.argsort(stable=True)
    torch.manual_seed(1)
    num_hits = 0
    with torch.no_grad():
        for part in place.split(batch_size):
            guess = twin(data.X_test[part]).argmax(1)
            num_hits += (guess == data.y_test[part]).sum().item()
    return num_hits / len(place)


# %% cell="order_matters_figure"
eval_sizes = [6, 18, 36, 90, 180, 360]
curves = {
    "eval()": (False, True),
    "no_grad(), file order": (True, False),
    "no_grad(), sorted by class": (True, True),
}
curves = {
    name: [test_accuracy(network, *how, n) for n in eval_sizes]
    for name, how in curves.items()
}
figure = line_chart(
    curves,
    title="Without eval() the score depends on order and batch size",
    xlabel="images per batch of the evaluation",
    ylabel="test accuracy",
    x=eval_sizes,
    log_x=True,
)
figure.axes[0].set_xticks(eval_sizes, eval_sizes)
figure.axes[0].minorticks_off()
figure.axes[0].set_ylim(0, 1.02)
figure.axes[0].legend(loc=(0.02, 0.3))
figure

# %% [markdown]
r"""
One model, one test set. In training mode batch norm normalizes by whatever is in the batch. If that
is a single class, the mean it takes away is what made the class recognisable. Nothing raises an
error, unless the last batch holds one image.
"""

# %% cell="batch_of_one_raises"
try:
    network.train()(data.X_test[:1])
except ValueError as error:
    print("ValueError:", str(error)[:52])

# %% [markdown]
r"""
### Memory that grows with the epoch

`total += loss` looks like adding numbers. But `loss` is a tensor with a graph behind it, and so
is the sum: every batch hangs its graph onto that of all batches before.
"""


# %% cell="growing_graph"
def count_graph_nodes(tensor):
    waiting, seen = [tensor.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return len(seen)


torch.manual_seed(2)
line, total, node_counts = nn.Linear(10, 1), 0.0, []
for _ in range(30):
    total += line(torch.randn(8, 10)).pow(2).mean()
    node_counts.append(count_graph_nodes(total))
print("nodes after 1, 10, 30 batches:", *[node_counts[i] for i in (0, 9, 29)])

# %% [markdown]
r"""
## 2 · The trick: three switches, three jobs

| | what it changes | what it leaves |
|---|---|---|
| `model.eval()` | how layers compute: no dropout, running statistics instead of the batch's | autograd records as before |
| `torch.no_grad()` | autograd: no graph, nothing kept for backward | the layers' modes |
| `torch.inference_mode()` | as `no_grad`, and its new tensors cannot be saved for `backward()` | the layers' modes |

(An `nn.TransformerEncoder` with `batch_first=True` may take another path in eval where nothing needs a gradient, as in a frozen one: padding at the end then comes out as 0, or as the bias of its last norm.)
The first belongs to the *model* and stays until somebody sets it back. The other two belong to the *thread*
and end with their block. The cell asks each of them the same four questions.
"""


# %% cell="three_switches"
def four_answers(mode, context):
    net = new_network().train(mode)
    before = net[2].num_batches_tracked.item()
    torch.manual_seed(3)
    with saved_tensor_bytes(net.parameters()) as saved, context:
        first, second = net(data.X_test), net(data.X_test)
    moved = net[2].num_batches_tracked.item() - before
    steady = "steady" if torch.equal(first, second) else "random"
    return f"{steady:8} {moved:7} {saved.peak_bytes:9} {first.is_inference()}"


print("                  outputs    moved     saved inference tensor")
for name, mode, context in (
    ("nothing", True, contextlib.nullcontext()),
    ("no_grad", True, torch.no_grad()),
    ("eval", False, contextlib.nullcontext()),
    ("eval + no_grad", False, torch.no_grad()),
    ("eval + inference", False, torch.inference_mode()),
):
    print(f"{name:17}", four_answers(mode, context))

# %% [markdown]
r"""
*Moved*: batches that entered the running statistics in two passes. *Saved*: bytes kept for a backward
pass that never comes. An evaluation wants 0 in both columns and steady outputs. That takes two
switches. (`eval()` does not reach everything: `F.dropout(x)` drops always, and a batch norm with
`track_running_stats=False` knows only the batch.) The shortest form, for a model whose layers are all in the same mode:
"""


# %% cell="shortest_form"
@torch.no_grad()
def scores_of(net, inputs):
    net.eval()
    scores = net(inputs)
    net.train()
    return scores


print(scores_of(network, data.X_test).shape)

# %% [markdown]
r"""
It has three weak points, which exercise 1 repairs: it trains layers that somebody froze in `eval`; it
leaves the model in training mode even if it was not; and if the forward pass raises an error, the last lines
are never reached.

**`no_grad` or `inference_mode`?** The latter is somewhat faster, and stricter. Its new tensors carry a mark. (A
view of an older tensor is not new: what `nn.Flatten` gives of a contiguous tensor has no mark.)
"""

# %% cell="inference_tensors"
with torch.inference_mode():
    marked = line(torch.randn(3, 10))
for what, use in {
    "train on it": lambda: nn.Linear(1, 1)(marked).sum().backward(),
    "change it in place": lambda: marked.add_(1),
    "train on a clone": lambda: (
        nn.Linear(1, 1)(marked.clone()).sum().backward()
    ),
}.items():
    try:
        use()
        print(f"{what}: works")
    except RuntimeError as error:
        print(f"{what}: RuntimeError: {str(error).split('.')[0]}.")

# %% [markdown]
r"""
So: `inference_mode` where outputs are only looked at; `no_grad` where they will be used in training
(targets of a teacher, an average of weights, features that are cached), also where the model itself keeps some, such as a
table that it makes at its first call, or FSDP2's gathered weights.

## 3 · Averages and reports over all samples

### The last batch

17 samples in batches of 4 make four full batches and a last one of a single sample. The mean of the
batches' means gives that sample the weight of four.
"""

# %% cell="mean_of_means"
torch.manual_seed(4)
sample_losses = torch.rand(17)
sample_losses[-1] = 9.0


def mean_of_batch_means(values, batch_size):
    means = [part.mean() for part in values.split(batch_size)]
    return (sum(means) / len(means)).item()


def mean_by_counting(values, batch_size):
    sums = [
        (part.mean() * len(part)).item() for part in values.split(batch_size)
    ]
    return sum(sums) / len(values)


for n in (1, 4, 17):
    means = mean_of_batch_means(sample_losses, n)
    counted = mean_by_counting(sample_losses, n)
    print(f"batches of {n:2}: mean of means {means:.3f}, counted {counted:.3f}")

# %% [markdown]
r"""
Choose the size of the batches, and how hard the last sample is. Bars are the weight of each sample in the
result; on the dashed line all count the same.
"""


# %% cell="weights_figure"
def weights_figure(num_samples=17, batch_size=4, last_loss=9.0):
    values = torch.cat(
        [sample_losses[: num_samples - 1], torch.tensor([last_loss])]
    )
    parts = torch.arange(num_samples).split(batch_size)
    shares = [1 / len(part) / len(parts) for part in parts for _ in part]
    figure, axes = new_figure(figsize=(6, 3))
    colors = [PALETTE[i % 2] for i, part in enumerate(parts) for _ in part]
    axes.bar(range(1, num_samples + 1), shares, color=colors)
    axes.axhline(1 / num_samples, color="0.3", linestyle="--")
    seen = mean_of_batch_means(values, batch_size)
    right = values.mean().item()
    axes.set_title(f"Mean of means {seen:.2f}, mean of the samples {right:.2f}")
    axes.set_xticks(range(1, num_samples + 1, 2))
    axes.set(xlabel="sample (colours: batches)", ylabel="weight in the mean")
    return figure


explore(
    weights_figure,
    num_samples=range(8, 18),
    batch_size=range(1, 10),
    last_loss=(0.0, 12.0),
)

# %% [markdown]
r"""
With padding it is worse: the mean of a batch is over the labels that count, so its weight is *their* number,
not the number of rows. Sums and counts are right in both cases. With class weights, and labels as indices, the count is the sum of the labels' weights.

### Metrics that are no means

Accuracy is a mean over samples, so sums and counts are enough. Precision and F1 are not: weights by the
batches' sizes do not repair an F1 averaged over them. Collect all predictions, or counts of hits, and compute once. With several processes that
means: add up the *counts* of all (`all_reduce`), then divide. The package torchmetrics does so; chapter 14 has the sampler that must not count a
sample twice.
"""

# %% cell="f1_of_batches"
truth = torch.tensor([1, 1, 1, 0, 0, 0, 0, 1])
guess = torch.tensor([1, 1, 1, 0, 0, 1, 0, 1])
at_once = f1_score(truth, guess)
halves = [
    f1_score(t, g) for t, g in zip(truth.chunk(2), guess.chunk(2), strict=True)
]
print(
    f"F1 of all 8: {at_once:.4f}; mean over two batches: {sum(halves) / 2:.4f}"
)

# %% cell="f1_figure"
torch.manual_seed(5)
many_truths = (torch.rand(1024) < 0.1).long()  # one in ten is positive
flip = torch.rand(1024) < 0.15
many_guesses = torch.where(flip, 1 - many_truths, many_truths)
f1_sizes, f1_means = [8, 16, 32, 64, 128, 256, 512, 1024], []
for n in f1_sizes:
    parts = zip(many_truths.split(n), many_guesses.split(n), strict=True)
    f1_means.append(
        float(np.mean([f1_score(t, g, zero_division=0) for t, g in parts]))
    )
figure = line_chart(
    {
        "averaged over batches": f1_means,
        "over all predictions": [f1_means[-1]] * len(f1_sizes),
    },
    title=f"F1 is {f1_means[-1]:.2f}; batches of 8 average {f1_means[0]:.2f}",
    xlabel="samples per batch",
    ylabel="F1 of the rare class",
    x=f1_sizes,
    log_x=True,
)
figure.axes[0].set_xticks(f1_sizes, f1_sizes)
figure.axes[0].minorticks_off()
figure.axes[0].set_ylim(0, 0.8)
figure

# %% [markdown]
r"""
## 4 · What keeps memory alive

A tensor's memory is free for reuse the moment the last reference to it goes. No collector has to run, except where
objects hold each other in a circle. (On CUDA that is so for work on one stream. A tensor that a second stream still reads
needs `tensor.record_stream(stream)`, or its memory may be handed out too early.) So memory that does not go has somebody who holds it, and the question is who.
"""


# %% cell="who_holds_it"
def alive_after(hold):
    tensor = torch.zeros(1000)
    watch = weakref.ref(tensor.untyped_storage())
    kept = hold(tensor)
    del tensor
    return "alive" if watch() is not None else "freed", type(kept).__name__


weight = torch.ones(1000, requires_grad=True)
for what, hold in {
    "nobody": lambda t: None,
    "a number from it": lambda t: t[0].item(),
    "a view of one element": lambda t: t[0],
    "what detach() gives": lambda t: t.detach(),
    "a loss with its graph": lambda t: (t * weight).sum(),
    "that loss, detached": lambda t: (t * weight).sum().detach(),
}.items():
    print(f"{what:28}", *alive_after(hold))

# %% [markdown]
r"""
`detach()` cuts off the graph; it copies nothing, so the memory is shared and stays. A view of one element holds
all thousand.

To *see* it we count the bytes of all tensors that exist, after every operation. A dispatch mode is asked about
each operation, backward passes included, and a weak reference tells when a storage is gone.
"""


# %% cell="live_bytes"
class LiveBytes(TorchDispatchMode):
    """Bytes of the tensors made in this block that still exist."""

    def __init__(self, ignore=()):
        super().__init__()
        self.now, self.timeline = 0, [0]
        self.known = {one.untyped_storage()._cdata for one in ignore}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, Tensor):
                self.watch(one.untyped_storage())
        self.timeline.append(self.now)
        return result

    def watch(self, storage):
        if storage._cdata not in self.known:
            self.known.add(storage._cdata)
            self.now += storage.nbytes()
            weakref.finalize(
                storage, self.gone, storage._cdata, storage.nbytes()
            )

    def gone(self, address, num_bytes):
        self.known.discard(address)
        self.now -= num_bytes


# %% [markdown]
r"""
Five ways to keep a log of 20 batches. Two train, with a backward pass for each; three evaluate, with gradients
left on.
"""


# %% cell="kept_by_logs"
def kept_by_log(what_to_keep, backward, num_batches=20):
    torch.manual_seed(6)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    kept, kib = [], []
    with LiveBytes([*net.parameters()]) as live:
        for _ in range(num_batches):
            x, labels = torch.randn(64, 64), torch.randint(10, (64,))
            logits = net(x)
            loss = F.cross_entropy(logits, labels)
            if backward:
                loss.backward()
                net.zero_grad()
            kept.append(what_to_keep(loss, logits))
            del x, labels, logits, loss
            kib.append(live.now / 2**10)
    return kib


# %% cell="kept_by_logs_figure"
logs = {
    "evaluating, loss": (lambda loss, logits: loss, False),
    "evaluating, logits.detach()": (
        lambda loss, logits: logits.detach(),
        False,
    ),
    "evaluating, argmax": (lambda loss, logits: logits.argmax(1), False),
    "training, logits": (lambda loss, logits: logits, True),
    "training, loss.item()": (lambda loss, logits: loss.item(), True),
}
logs = {name: kept_by_log(*how) for name, how in logs.items()}
figure, axes = new_figure(figsize=(8, 3.4))
strokes = ("-", 2), ("-", 5), ("-", 2), ("--", 2), ("-", 2)
for (name, kib), (dashes, width) in zip(logs.items(), strokes, strict=True):
    label = f"{name}: {kib[-1]:.0f} KiB"
    axes.plot(range(1, 21), kib, dashes, linewidth=width, label=label)
axes.set_yscale("symlog", linthresh=0.5)  # a logarithm that shows 0
axes.set_xticks(range(0, 21, 5))
axes.set(
    xlabel="batches so far", ylabel="kept by the log (KiB)", ylim=(-0.2, 3e3)
)
ratio = logs["evaluating, loss"][-1] / logs["evaluating, argmax"][-1]
axes.set_title(f"A list of losses keeps {ratio:.0f} x what classes need")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
figure

# %% [markdown]
r"""
The worst one keeps nothing but losses: each of them holds its graph, and the graph holds inputs and activations.
After a backward pass without `retain_graph` or `create_graph` the graph lets go of these where that pass went through it (another head's loss keeps its own part), and what is left are its
nodes, the outputs you keep, and inputs that require a gradient themselves. (A function of your own that writes a tensor to `ctx.x` keeps it: call `ctx.save_for_backward`.)

**A traceback holds tensors too.** After an out-of-memory error in a notebook, the error keeps every frame it
went through, with all local names in them.
"""

# %% cell="traceback_holds"
watched = []


def fails_halfway():
    activations = torch.zeros(1000)
    watched.append(weakref.ref(activations))
    raise RuntimeError("out of memory")


try:
    fails_halfway()
except RuntimeError as error:
    last_error = error
print("with the error:    ", "alive" if watched[0]() is not None else "freed")
del last_error
gc.collect()  # needed where a frame holds its own error
print("without the error: ", "alive" if watched[0]() is not None else "freed")

# %% [markdown]
r"""
So a second attempt belongs *after* the `except` block, not inside it. Jupyter keeps the last error
as well: as `sys.last_value`, `sys.last_traceback` and, since Python 3.12, `sys.last_exc`, and its frames once more
as `get_ipython().InteractiveTB.tb` and, until the next cell has ended, as `get_ipython().last_execution_result`. One that is left holds every frame. A small error in another cell, such as `1 / 0` (but no syntax error or unknown magic), takes the
place of all of them; then `gc.collect()`.

## 5 · Where memory goes in time

### One training step

The same counter, for one step of a deep network: the forward pass piles up activations, the backward pass takes them
down. Under `no_grad` each goes as soon as the next is there. *Activation checkpointing* keeps a few of them, and
computes the others again when the backward pass needs them.
"""


# %% cell="timelines"
def deep_network(depth=16, width=128):
    torch.manual_seed(7)
    layers = [
        nn.Sequential(
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
        )
        for _ in range(depth)
    ]
    return nn.Sequential(*layers)


def run_deep(net, x, kind, group=4):
    if kind == "no_grad":
        with torch.no_grad():
            return net(x).sum()
    if kind == "plain":
        return net(x).sum()
    for start in range(0, len(net), group):
        x = checkpoint(net[start : start + group], x, use_reentrant=False)
    return x.sum()


# %% cell="timelines_recorded"
timelines, gradients = {}, {}
for kind in ("plain", "checkpointed", "no_grad"):
    deep = deep_network()
    torch.manual_seed(8)
    wide_batch = torch.randn(512, 128)
    with LiveBytes([*deep.parameters(), wide_batch]) as live:
        outcome = run_deep(deep, wide_batch, kind)
        if kind != "no_grad":
            outcome.backward()
    timelines[kind] = [mark / 2**20 for mark in live.timeline]
    gradients[kind] = deep[0][0].weight.grad
same = torch.equal(gradients["plain"], gradients["checkpointed"])
print("the same gradients:", same)

# %% cell="timelines_figure"
figure, axes = new_figure(figsize=(7, 3.2))
for i, (kind, mib) in enumerate(timelines.items()):
    axes.plot(mib, label=kind, color=PALETTE[i])
less = max(timelines["plain"]) / max(timelines["checkpointed"])
axes.set_title(f"Checkpointing: {less:.1f} x less at the peak, more operations")
axes.set(xlabel="operations so far", ylabel="tensors alive (MiB)")
axes.legend()
figure

# %% [markdown]
r"""
What is left at the end are the gradients. `use_reentrant=False` is the form to use. The older form raises an error with keyword
arguments and under `torch.autograd.grad`. With inputs that need no gradient, such as the batch itself, it is worse: it only warns, and the layers inside get no gradient.
"""

# %% cell="older_form"
lone = nn.Linear(3, 3)
x_plain = torch.randn(2, 3)  # a batch: it needs no gradient
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    old_way = checkpoint(lone, x_plain, use_reentrant=True)
new_way = checkpoint(lone, x_plain, use_reentrant=False)
print("older form: requires_grad", old_way.requires_grad)
print("  and a warning:", str(caught[0].message)[:51])
print("use_reentrant=False: requires_grad", new_way.requires_grad)

# %% [markdown]
r"""
Both forms restore PyTorch's random state for the second pass (`preserve_rng_state`; of GPUs only those whose tensors are passed by position), so dropout drops the same units. What is drawn from Python's
`random`, from NumPy or from a generator of your own is another number then, and the gradient may be wrong. Batch norm in training is another matter: its running statistics move twice (once where the call of `checkpoint` itself is compiled, though the backend `"eager"` raises in the backward pass). Leave such layers outside of the groups, or, where they move twice, give them `momentum=1 - (1 - m) ** 0.5`: two
moves by that, one in the forward and one in the backward pass, are one move by `m`, if no other batch passes between them.
"""

# %% cell="statistics_move_twice"
X_norm = torch.randn(32, 3)
once, twice = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
mended = nn.BatchNorm1d(3, momentum=1 - (1 - 0.1) ** 0.5)
once(X_norm)
for norm in (twice, mended):
    checkpoint(norm, X_norm, use_reentrant=False).sum().backward()
for words, norm in (("once", once), ("twice", twice), ("mended", mended)):
    print(f"{words:7} running mean", norm.running_mean.numpy().round(4))

# %% [markdown]
r"""
Two relatives. *Selective* checkpointing keeps the results of some operations, such as matrix products, and computes the cheap ones again:
`context_fn=` of `checkpoint` with `create_selective_checkpoint_contexts`. *Offloading* moves what is saved to the CPU:
`with torch.autograd.graph.save_on_cpu():`.

**The logits of a large vocabulary** are often the largest tensor of all: tokens times words. `F.linear_cross_entropy` takes the last layer's input, (tokens, width), and weight, and
with `options=` works through the tokens in chunks, so that the whole never exists. It saves where tokens and words are many beside the width, and may cost more where they are not. Without options it saves nothing. With label smoothing, or with rows as targets, it cannot either: it warns, and makes the whole. In chunks, the losses of the tokens are added up in the dtype of the input, under autocast too: in bfloat16 the mean of many can be wrong by a fifth or more. `reduction="none"` and then `.float().mean()` gives it right. In float16 leave it: with a mean or a sum, loss scaling does not
reach inside. Older versions of PyTorch lack it.
"""

# %% cell="chunked_loss"
hidden = torch.randn(512, 64, requires_grad=True)
vocabulary = torch.randn(8000, 64, requires_grad=True)
next_words = torch.randint(8000, (512,))


def peak_of_loss(make_loss):
    hidden.grad = vocabulary.grad = None
    with LiveBytes([hidden, vocabulary]) as live:
        big_loss = make_loss()
        big_loss.backward()
    return f"loss {big_loss:.4f}, peak {max(live.timeline) / 2**20:.1f} MiB"


given = hidden, vocabulary, next_words
two_steps = peak_of_loss(
    lambda: F.cross_entropy(F.linear(hidden, vocabulary), next_words)
)
print("linear, then cross_entropy:", two_steps)
if hasattr(nn, "LinearCrossEntropyOptions"):
    chunks = nn.LinearCrossEntropyOptions()
    for options in (None, chunks):
        words = "in chunks" if options else "no options"
        peak = peak_of_loss(
            lambda how=options: F.linear_cross_entropy(*given, options=how)
        )
        print(f"linear_cross_entropy, {words}:", peak)
else:
    print("This PyTorch has no linear_cross_entropy in chunks.")

# %% [markdown]
r"""
(The counter does not look into an operation: the chunk that is being worked on is not in the last number.)

Activations are not all. Beside each parameter stand its gradient and the optimizer's numbers. Here are the latter, counted after one step:
"""

# %% cell="optimizer_states"
wide = nn.Linear(1000, 1000)
num_parameters = sum(p.numel() for p in wide.parameters())
for name, optimizer in {
    "SGD": torch.optim.SGD(wide.parameters()),
    "SGD, momentum": torch.optim.SGD(wide.parameters(), momentum=0.9),
    "AdamW": torch.optim.AdamW(wide.parameters()),
}.items():
    wide(torch.ones(1, 1000)).sum().backward()
    optimizer.step()
    num_states = sum(
        tensor.numel()
        for state in optimizer.state.values()
        for tensor in state.values()
        if tensor is not None
    )
    print(f"{name:14} {num_states / num_parameters:.1f} numbers a parameter")

# %% [markdown]
r"""
So under AdamW a model in float32 takes 16 bytes a trained parameter before the first activation: weight, gradient, two moments.

### Two numbers: allocated and reserved

On a GPU, asking the driver for memory is slow and makes the device wait. So PyTorch keeps what was freed and hands it
out again. *Allocated* is what tensors use, *reserved* what PyTorch has taken from the driver. `nvidia-smi` shows reserved
memory, plus the context. Here is the idea; the real one also splits and merges blocks.
"""


# %% cell="caching_allocator"
class CachingAllocator:
    """Keeps freed blocks, and hands them out again whole."""

    def __init__(self):
        self.free, self.allocated, self.reserved = [], 0, 0

    def take(self, size):
        fits = [block for block in self.free if size <= block <= 2 * size]
        if fits:
            block = min(fits)
            self.free.remove(block)
        else:
            block = size
            self.reserved += size  # a request to the driver
        self.allocated += size
        return block, size

    def give(self, block, size):
        self.allocated -= size
        self.free.append(block)

    def empty_cache(self):
        self.reserved -= sum(self.free)
        self.free.clear()


# %% [markdown]
r"""
Eight batches of texts of different lengths, each with six activations that are freed at its end. Sort the lengths,
or call `empty_cache()` after each batch.
"""


# %% cell="allocator_figure"
def allocator_figure(order="as they come", empty_after_each=False):
    lengths = [50, 90, 30, 160, 60, 120, 40, 200]
    if order != "as they come":
        lengths.sort(reverse=order == "longest first")
    pool, used, taken, requests = CachingAllocator(), [], [], 0
    for length in lengths:
        blocks = []
        for _ in range(6):
            before = pool.reserved
            blocks.append(pool.take(length))
            requests += pool.reserved > before
            used.append(pool.allocated)
            taken.append(pool.reserved)
        for block in blocks:
            pool.give(*block)
            used.append(pool.allocated)
            taken.append(pool.reserved)
        if empty_after_each:
            pool.empty_cache()
    figure, axes = new_figure(figsize=(7, 3))
    axes.fill_between(
        range(len(taken)), taken, color=PALETTE[5], label="reserved"
    )
    axes.plot(used, color=PALETTE[1], label="allocated")
    more = max(taken) / max(used)
    axes.set_title(
        f"Peak reserved {more:.1f} x allocated, {requests} driver requests"
    )
    axes.set(xlabel="requests and releases", ylabel="memory (MiB)")
    axes.legend(loc="upper left")
    return figure


explore(
    allocator_figure,
    order=["as they come", "shortest first", "longest first"],
    empty_after_each=False,
)

# %% [markdown]
r"""
Of the orders *longest first* needs the least, because later batches fit into blocks that are there. That is why many loops run
their longest batch first: out of memory, if at all, then at once. `empty_cache()` lowers the blue area between
batches, for others, and here the peak of every order to what is used; the next batch asks the driver again.

On a GPU the real numbers:
"""

# %% cell="allocator_numbers"
if device.type == "cuda":

    def show_memory(when):
        used = torch.cuda.memory_allocated() / 2**20
        taken = torch.cuda.memory_reserved() / 2**20
        print(f"{when:20} allocated {used:7.1f}, reserved {taken:7.1f} MiB")

    show_memory("at first")
    block_of_ones = torch.ones(64, 2**20, device=device)
    show_memory("256 MiB made")
    torch.cuda.empty_cache()
    show_memory("empty_cache")
    del block_of_ones
    show_memory("del")
    torch.cuda.empty_cache()
    show_memory("empty_cache")
else:
    print("No CUDA here, and the CPU allocator has no such counters.")

# %% [markdown]
r"""
Tools for a GPU, in the order in which to reach for them:

| question | tool |
|---|---|
| how much at most? | `torch.cuda.reset_peak_memory_stats()`, then `max_memory_allocated()` |
| where does it go? | `torch.cuda.memory_summary()`: allocated, reserved, retries |
| who asked for it? | `torch.cuda.memory._record_memory_history()`, then `torch.cuda.memory._dump_snapshot(path)`; open the file at [pytorch.org/memory_viz](https://pytorch.org/memory_viz) |
| much reserved, little allocated? | the environment variable `PYTORCH_ALLOC_CONF=expandable_segments:True` before the process starts (not read where the older `PYTORCH_CUDA_ALLOC_CONF` is set): segments that grow leave fewer gaps |
"""

# %% [markdown]
r"""
### Measure it on this machine

Time and memory of a forward pass with gradients on, and without; and of a training step with and without
checkpointing. On a busy machine the times scatter: look at the spread.
"""

# %%
rows_here = 65536 if device.type == "cuda" else 1024
many_rows, _ = gaussian_clusters(rows_here, (128,), device=device)
deep = deep_network(depth=8).to(device)
constants = [*deep.parameters(), many_rows]


def forward_under(context):
    with context():
        deep(many_rows)


def step_of(kind):
    deep.zero_grad()
    run_deep(deep, many_rows, kind).backward()


# %% cell="measure"
measured = {}
for name, call in {
    "forward, with graph": lambda: forward_under(contextlib.nullcontext),
    "forward, no_grad": lambda: forward_under(torch.no_grad),
    "forward, inference_mode": lambda: forward_under(torch.inference_mode),
    "step": lambda: step_of("plain"),
    "step, checkpointed": lambda: step_of("checkpointed"),
}.items():
    timing = measure_time(call, warmup=1, repeats=5)
    memory = peak_memory(call, ignore=constants)
    measured[name] = timing.median_s * 1e3, memory.peak_bytes / 2**20
    print(f"{name:24} {timing}, {measured[name][1]:.1f} MiB ({memory.counted})")

# %% [markdown]
r"""
Off a GPU, *saved tensors* counts the input of each group of layers, and leaves out what the backward pass computes again; the
figure above counts both. Checkpointing pays for memory with a second forward pass. In matrix products a backward pass takes about two
forward passes, so this is a third more arithmetic. The time may grow by more: on a CPU `tanh` is slow forward and fast backward, and where our
reference for CPUs was measured the step takes half as long again (on an H200, a third).
"""

# %% cell="measure_figure"
slower = measured["step, checkpointed"][0] / measured["step"][0]
bar_chart(
    {name: ms for name, (ms, _) in measured.items()},
    title=f"A checkpointed step takes {slower:.1f} x the time",
    xlabel=f"time on {device.type} (ms)",
)

# %% cell="measure_beside_reference"
for name, (ms, mib) in measured.items():
    words = name.replace(", ", "_").replace(" ", "_")
    beside_reference(f"11_evaluation_and_memory/{words}_ms", ms, unit="ms")
    beside_reference(f"11_evaluation_and_memory/{words}_mib", mib, unit="MiB")

# %% [markdown]
r"""
On a GPU, with 65536 rows, the allocator counts more than what is saved. `no_grad` saves memory and no time there:
"""

# %% cell="recorded_on_a_gpu"
from course_utils import show_recorded

for what, unit in (("ms", "ms"), ("mib", "MiB")):
    show_recorded(
        {
            name: "11_evaluation_and_memory/"
            f"{name.replace(', ', '_').replace(' ', '_')}_{what}"
            for name in measured
        },
        unit=unit,
        device="cuda",
    )

# %% [markdown]
r"""
**Progress bars.** A bar that shows the loss asks for `loss.item()` in every batch, and on a GPU each `.item()` waits until
everything before it has been computed. Add up `loss.detach().float()` on the device (a sum in bfloat16 soon stands still), and ask for the number every 50 batches.

## 6 · Folklore check

What popular posts say, run against the PyTorch that is installed here. Each code cell ends in an assertion. What only
a GPU can show rests on PyTorch's documentation, and is marked so.

> **"Validate under `no_grad`: faster, less memory."**
> *Half the story.* The memory part is right. Without `eval()` dropout stays on and batch norm learns from the test data; and
> `eval()` without `no_grad` still keeps what a backward pass needs.
"""


# %% cell="claim_000_19"
def saved_bytes(train_mode, context):
    net = new_network().train(train_mode)
    with saved_tensor_bytes(net.parameters()) as saved, context:
        net(data.X_test)
    return saved.peak_bytes, net[2].num_batches_tracked.item()


with_graph, moved = saved_bytes(True, torch.no_grad())
print("no_grad alone: saved", with_graph, "bytes, batches learned:", moved)
in_eval, unmoved = saved_bytes(False, contextlib.nullcontext())
print("eval alone:    saved", in_eval, "bytes, batches learned:", unmoved)

assert (with_graph, moved) == (0, 1)
assert in_eval > 0
assert unmoved == 0

# %% [markdown]
r"""
> **"Temporary tensors pile up; `empty_cache` removes them."** (its author took it back)
> *Wrong.* A temporary tensor is freed with its last reference, and `empty_cache` frees no tensor.
>
> **"Variables that are no longer used are reclaimed by themselves."**
> *Correct*, at once without reference cycles. What keeps them are names that live on in a loop, lists, tracebacks, and in a notebook the value of a cell's last line (in `Out`).
"""

# %% cell="claim_000_20_24"
with LiveBytes() as live:
    for _ in range(5):
        temporary = (torch.ones(1000) * 2).sum()
    torch.cuda.empty_cache()
    held = live.now
    del temporary
    after_del = live.now
print("held after five rounds:", held, "bytes; after del:", after_del)

assert held == 4  # the last result, one float32
assert after_del == 0

# %% [markdown] cell="claim_000_21_22_23"
r"""
> **"`empty_cache` gives cached blocks back, so that other programs can use them; `nvidia-smi` shows it."**
> *Correct.* PyTorch itself gains nothing, but for fragments that may be mended.
>
> **"At the first use of CUDA PyTorch takes a fixed amount of memory in advance."**
> *Wrong.* The first use makes a *context*, a few hundred MiB for the driver and the kernels. Blocks follow as tensors ask
> for them, and are kept when these are freed.
>
> **"It does not free the memory of tensors."**
> *Correct.* The cell of section 5 shows all three on a GPU: after the first `empty_cache()` the 256 MiB are still there, as a
> tensor holds them.

These rest on PyTorch's documentation where no GPU runs them.
"""

# %% [markdown]
r"""
> **"Clear the GPU's memory with `empty_cache`."**
> *Half the story:* the cache, not the memory. On a machine without a GPU it does nothing and says nothing.
"""

# %% cell="claim_002_26"
kept_tensor = torch.full((1000,), 3.0, device=device)
torch.cuda.empty_cache()
print("the tensor's sum after empty_cache:", kept_tensor.sum().item())

assert kept_tensor.sum().item() == 3000.0

# %% [markdown] cell="claim_002_27"
r"""
> **"Or reset the card: `nvidia-smi --gpu-reset`."**
> *Wrong.* That repairs a device in a bad state. It needs root and a card that nobody uses, and the post's own output is the
> refusal. Memory that stays after a crash belongs to a process that still runs, often a worker of a data loader: find it
> (`nvidia-smi`, `ps`), and end that one, if it is yours.
"""

# %% [markdown]
r"""
> **"Metrics by hand are error-prone; use scikit-learn's report."**
> *Correct*, over all predictions at once. An F1 per batch, averaged, is another number (section 3).
"""

# %% cell="claim_003_23"
print(f"F1 {at_once:.4f}, averaged over two batches {sum(halves) / 2:.4f}")

assert abs(at_once - sum(halves) / 2) > 0.01

# %% [markdown]
r"""
> **"`classification_report(y_correct, y_pred)`."**
> *Correct:* the truth comes first.
>
> **"The first list holds the predictions, the second the truth."** (said of the variables, and true of these)
> *Wrong for the call.* Swapped, precision and recall change places, and support counts predictions. Accuracy and the F1 of
> each class stay the same and hide it.
"""

# %% cell="claim_003_24_26"
y_correct, y_pred = [1, 1, 0, 1, 1], [0, 1, 0, 0, 1]
good = classification_report(y_correct, y_pred, output_dict=True)
swapped = classification_report(y_pred, y_correct, output_dict=True)
for words, one in (("right", good), ("swapped", swapped)):
    weighted = one["weighted avg"]["f1-score"]
    print(f"{words:8} class 1: {one['1']}, weighted F1 {weighted:.4f}")

assert good["1"]["precision"] == swapped["1"]["recall"] == 1.0
assert good["1"]["support"] == 4
assert swapped["1"]["support"] == 2
assert good["accuracy"] == swapped["accuracy"]
assert good["1"]["f1-score"] == swapped["1"]["f1-score"]

# %% [markdown]
r"""
> **"This is for two classes; configure it for more."**
> *Half the story:* more classes need nothing in the report (`f1_score` wants an `average=` then). What needs `labels=` is a class that occurs nowhere, and `zero_division=` says what 0
> / 0 is.
"""

# %% cell="claim_003_25"
classification_report([0, 1, 2], [0, 2, 2], output_dict=True, zero_division=0)
names = ["cat", "dog", "horse"]
try:
    classification_report([0, 1, 0], [0, 1, 1], target_names=names)
    missing_class = "works"
except ValueError as error:
    missing_class = "raises"
    print("ValueError:", error)
listed = precision_recall_fscore_support(
    [0, 1, 0], [0, 1, 1], labels=[0, 1, 2], zero_division=0
)
table = confusion_matrix([0, 1, 0], [0, 1, 1], labels=[0, 1, 2])
print("support with labels=:", listed[3], "and the matrix:", table.shape)

assert missing_class == "raises"
assert list(listed[3]) == [2, 1, 0]

# %% [markdown]
r"""
> **"A loss has no dimension, so `loss.data[0]` fails."**
> *Correct*: it raises an `IndexError`, whose message says what to do.
"""

# %% cell="claim_004_05"
zero_dim = F.mse_loss(torch.ones(2), torch.zeros(2))
try:
    zero_dim.data[0]
    indexed = "works"
except IndexError as error:
    indexed = "IndexError"
    print("IndexError:", str(error)[:56])

assert zero_dim.dim() == 0
assert indexed == "IndexError"

# %% [markdown]
r"""
> **"Write `total_loss += loss.item()`."**
> *Correct.* `.item()` waits for a GPU; `loss.detach()` does not, and leaks as little (add it up in float32).
>
> **"Adding up loss tensors keeps the graphs and eats memory."**
> *Correct.* After a backward pass through them the inputs are free (unless they require a gradient) and the nodes remain; without one the inputs remain as well.
"""

# %% cell="claim_004_06_07"
by_item, by_detach, by_tensor = 0.0, torch.zeros(()), 0.0
inputs_alive = []
for _ in range(10):
    x = torch.randn(100, 10)
    inputs_alive.append(weakref.ref(x))
    one_loss = line(x).pow(2).mean()
    by_item += one_loss.item()
    by_detach += one_loss.detach()
    by_tensor = by_tensor + one_loss
    del x, one_loss
still = sum(one() is not None for one in inputs_alive)
print(
    "nodes behind the sum:",
    count_graph_nodes(by_tensor),
    "inputs alive:",
    still,
)

assert still == 10
assert by_detach.grad_fn is None
assert isinstance(by_item, float)
assert (node_counts[0], node_counts[9], node_counts[29]) == (7, 52, 152)
by_tensor = by_tensor.item()
assert sum(one() is not None for one in inputs_alive) == 0

# %% [markdown]
r"""
> **"Put the test loop under `no_grad`: no history."**
> *Correct*, for what is made inside. `inference_mode` is stricter: its new tensors cannot be saved for `backward()`.
"""

# %% cell="claim_004_10"
with torch.no_grad():
    without = line(torch.ones(2, 10))
    fresh_parameter = nn.Parameter(torch.ones(1))
with torch.inference_mode():
    never = line(torch.ones(2, 10))
nn.Linear(1, 1)(without).sum().backward()
try:
    nn.Linear(1, 1)(never).sum().backward()
    entered = True
except RuntimeError:
    entered = False
print("a graph saves an inference tensor:", entered)

assert without.grad_fn is None
assert fresh_parameter.requires_grad  # a leaf may still ask for one
assert not entered

# %% [markdown]
r"""
## 7 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

In exercises 1 to 4 what yields batches may be a generator: it can be gone through once and has no
length. Batches may differ in size; often the last one is shorter.
"""

# %% [markdown] task="predict" title="An evaluation that leaves no trace" level="core" minutes=16 builds_on="section 2"
r"""
Write `predict(model, batches)`, which returns the model's outputs for all batches, one below the other, and leaves no trace in the
model.

```python
>>> model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
>>> X = torch.randn(5, 3)
>>> out = predict(model, [X[:4], X[4:]])
>>> out.shape, out.requires_grad, model.training
(torch.Size([5, 2]), False, True)
```

- `batches` yields inputs `x` (n, ...), at least one of them. Each goes through once, as it comes, by `model(x)`.
- In each forward pass, *every* layer of the model is in eval mode: with nearly all layers, a row's output then does not
  depend on the rows beside it.
- In each forward pass gradients are switched off, and nothing is kept for a backward pass. `no_grad` and `inference_mode`
  are both fine.
- Afterwards each layer is in the mode in which it was, which may differ from layer to layer, and so is gradient mode.
- That holds also if the model or the loader raises an error, or if you stop the cell (`KeyboardInterrupt`). The error itself goes
  on to the caller.

<details><summary>Hint 1: modes, layer by layer</summary>

`model.modules()` gives every layer, the model itself included, each once. Note `layer.training` of each before you call
`eval()`, and set the attribute back afterwards.
</details>
<details><summary>Hint 2: whatever happens</summary>

What stands in `finally:` runs with and without an error, and also after a `return`. A `with` block ends with an error, too.
</details>
<details><summary>Help: "Inference tensors cannot be saved for backward"</summary>

A tensor that is new under `inference_mode` cannot be saved for `backward()`. Here nobody asks for that. If you need it, take `no_grad`.
</details>
"""


# %% exercise="predict"
def predict(
    model: nn.Module,
    batches,  # yields x (n, ...)
) -> Tensor:
    """The model's outputs in eval mode, without a graph, (N, ...)."""
    ### BEGIN SOLUTION
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, was_training in modes:
            layer.training = was_training
    ### END SOLUTION


# %% check="predict"
with visible_check("predict"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    model[0].eval()
    X = torch.randn(5, 3)
    got = predict(model, [X[:4], X[4:]])
    expect("the shape", tuple(got.shape), (5, 2))
    expect("requires_grad", got.requires_grad, False)
    twice = predict(model, [X[:4], X[4:]])
    expect("a second evaluation", twice, got)
    modes = [layer.training for layer in model]
    expect("the modes afterwards", modes, [False, True, True])

# %% grade="predict" points=7

# %% [markdown] task="mean_metrics" title="Averages that are right for the last batch" level="more" minutes=14 builds_on="section 3, chapter 03"
r"""
Write `mean_metrics(pairs, ignore_index)`, mean cross-entropy and accuracy over *all* labels, however they are cut into batches.

```python
>>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [9.0, 0.0]])
>>> y = torch.tensor([0, 0, 1, -100])
>>> metrics = mean_metrics([(logits[:3], y[:3]), (logits[3:], y[3:])])
>>> round(metrics["loss"], 4), round(metrics["accuracy"], 4), metrics["count"]
(0.7936, 0.6667, 3)
```

- `pairs` yields logits (n, C) with labels (n,), or logits (n, C, d) with labels (n, d), as for sequences or pixels.
- The accuracy is the share of labels whose class has the highest logit.
- Labels equal to `ignore_index`, any integer, count in neither mean. `"count"` is the number of labels that count, a Python
  int; the means are Python floats.
- If nothing counts at all, or nothing is yielded, both means are NaN and the count is 0. No error, and no warning.
- Logits may be float16, bfloat16, float32 or float64. The loss is computed in float32 or better.

<details><summary>Hint 1: sums and counts</summary>

Add up sums, count what counts, and divide once, at the end. `F.cross_entropy` has `reduction="sum"` and `ignore_index`.
</details>
<details><summary>Hint 2: sixteen bits</summary>

A mean in bfloat16 has two or three digits at best; on a CPU, with ignored labels, it may be far too small. `logits.double()` before the loss serves all four dtypes. `.float()` is enough for the
checks, but takes digits from float64.
</details>
<details><summary>Help: the accuracy is above 1, or too high</summary>

Count a label as right only where it also counts: `(predicted == y) & (y != ignore_index)`.
</details>
"""


# %% exercise="mean_metrics"
def mean_metrics(
    pairs,  # yields logits (n, C) or (n, C, d), labels (n,) or (n, d)
    ignore_index: int = -100,
) -> dict:
    """The means over all labels: {"loss", "accuracy", "count"}."""
    ### BEGIN SOLUTION
    loss_sum, num_right, num_labels = 0.0, 0, 0
    for logits, y in pairs:
        wide = logits.detach().double()
        loss_sum += F.cross_entropy(
            wide, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        labelled = y != ignore_index
        hits = (wide.argmax(dim=1) == y) & labelled
        num_right += hits.sum().item()
        num_labels += labelled.sum().item()
    return {
        "loss": loss_sum / num_labels if num_labels else math.nan,
        "accuracy": num_right / num_labels if num_labels else math.nan,
        "count": num_labels,
    }
    ### END SOLUTION


# %% check="mean_metrics"
with visible_check("mean_metrics"):
    torch.manual_seed(1)
    logits = torch.randn(5, 3)
    y = torch.tensor([0, 2, 1, -100, 2])
    wanted = F.cross_entropy(logits, y).item()
    for sizes in ([5], [4, 1], [1, 3, 1]):
        parts = zip(logits.split(sizes), y.split(sizes), strict=True)
        got = mean_metrics(parts)
        expect(f"the loss of {sizes}", got["loss"], wanted)
        expect(f"the count of {sizes}", got["count"], 4)

# %% grade="mean_metrics" points=6

# %% [markdown] task="train_and_log" title="A log that does not leak" level="more" minutes=16 builds_on="section 4"
r"""
Write `train_and_log(model, optimizer, batches)`, one epoch of training that remembers its losses and predictions, and nothing else.

```python
>>> _ = torch.manual_seed(0)
>>> model = nn.Linear(3, 2)
>>> sgd = torch.optim.SGD(model.parameters(), lr=0.5)
>>> X, y = torch.randn(6, 3), torch.tensor([0, 1, 1, 0, 0, 1])
>>> batches = [(X[:4], y[:4]), (X[4:], y[4:])]
>>> log = train_and_log(model, sgd, batches)
>>> sorted(log), len(log["losses"]), log["predictions"].shape, log["predictions"].dtype
(['losses', 'mean_loss', 'predictions'], 2, torch.Size([6]), torch.int64)
```

- For each pair `x` (n, ...), `y` (n,) the optimizer steps once, on the gradient of the batch's mean cross-entropy. Gradients that were
  there before do not count.
- `"losses"`: the mean loss of each batch before its step, in order. `"mean_loss"`: the mean over all *samples*. `"predictions"`: the class with
  the highest logit for each sample, from the same forward pass, an int64 tensor (N,).
- Nothing that you return has a graph behind it or requires a gradient.
- **One graph at a time.** When a batch goes forward, at most the graph of the batch before it still exists, however many came earlier.
- **Nothing is kept.** When a batch goes forward, at most one input and one batch of logits of earlier batches still exist, and after
  your function has returned none does, `detach`ed or not.

<details><summary>Hint 1: numbers instead of tensors</summary>

`loss.item()` is a float. `loss.detach()` is a tensor without the graph, and does not wait for a GPU.
</details>
<details><summary>Hint 2: logits</summary>

`logits.argmax(dim=1)` is a new tensor of integers: no graph, and no memory shared with the logits. `logits.detach()` shares
all of it.
</details>
<details><summary>Help: torch.cat of an empty list raises</summary>

Begin the list with an empty tensor, or treat the case apart.
</details>
"""


# %% exercise="train_and_log"
def train_and_log(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches,  # yields x (n, ...), y (n,)
) -> dict:
    """Trains one epoch: {"losses", "mean_loss", "predictions"}."""
    ### BEGIN SOLUTION
    losses, loss_sum, num_samples = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        loss_sum += losses[-1] * len(y)
        num_samples += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": loss_sum / num_samples if num_samples else math.nan,
        "predictions": torch.cat(predictions),
    }
    ### END SOLUTION


# %% check="train_and_log"
with visible_check("train_and_log"):
    torch.manual_seed(2)
    X, y = torch.randn(7, 3), torch.randint(2, (7,))
    model = nn.Linear(3, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.5)
    first = F.cross_entropy(model(X[:4]), y[:4]).item()
    guess = model(X[:4]).argmax(dim=1)
    log = train_and_log(model, sgd, [(X[:4], y[:4]), (X[4:], y[4:])])
    expect("the first loss", float(log["losses"][0]), first)
    expect("the first predictions", log["predictions"][:4], guess)
    expect("their number", len(log["predictions"]), 7)

# %% grade="train_and_log" points=7

# %% [markdown] task="class_report" title="Precision, recall and F1 of all predictions" level="more" minutes=14 builds_on="section 3"
r"""
Write `class_report(pairs, num_classes)`, which says what a classifier gets right, class by class, over *all* its predictions.

```python
>>> y = torch.tensor([1, 1, 0, 1, 1])
>>> logits = F.one_hot(torch.tensor([0, 1, 0, 0, 1]), 3).float()
>>> report = class_report([(logits[:3], y[:3]), (logits[3:], y[3:])], num_classes=3)
>>> for name, value in report.items():
...     print(name, torch.tensor(value))
precision tensor([0.3333, 1.0000, 0.0000])
recall tensor([1.0000, 0.5000, 0.0000])
f1 tensor([0.5000, 0.6667, 0.0000])
support tensor([1, 4, 0])
accuracy tensor(0.6000)
macro_f1 tensor(0.3889)
weighted_f1 tensor(0.6333)
```

- `pairs` yields logits (n, C) and labels (n,), with C = `num_classes`; at least one pair. The prediction is the class with the highest
  logit.
- `"precision"`, `"recall"` and `"f1"` are lists with one Python float for each class, in their order. `"support"` is a list of Python ints, how
  often each class is the true label.
- `"accuracy"`, `"macro_f1"` (the mean of `"f1"` over all classes) and `"weighted_f1"` (the mean weighted by support) are Python floats.
- A class may occur in no label, in no prediction, or in neither. It is reported all the same: where a number would be 0 divided by 0, it is 0, and
  no warning is given.
- Numbers agree with scikit-learn's to 1e-9. You may use scikit-learn; the first cell of this chapter imports
  `classification_report`, `confusion_matrix`, `f1_score` and `precision_recall_fscore_support`.

<details><summary>Hint 1: one call at the end</summary>

Collect labels and predicted classes over all batches, then call `classification_report(y_true, y_pred, ...)` once, the truth first. `output_dict=True` gives
numbers instead of text.
</details>
<details><summary>Hint 2: absent classes</summary>

`labels=range(num_classes)` lists all classes, and `zero_division=0` says what 0 / 0 is.
</details>
<details><summary>Hint 3: or by yourself</summary>

A confusion matrix is all you need: its diagonal, the sums of its rows and those of its columns.
</details>
"""


# %% exercise="class_report"
def class_report(
    pairs,  # yields logits (n, C), labels (n,)
    num_classes: int,
) -> dict:
    """precision, recall, f1, support by class; accuracy and mean F1s."""
    ### BEGIN SOLUTION
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }
    ### END SOLUTION


# %% check="class_report"
with visible_check("class_report"):
    y = torch.tensor([1, 1, 0, 1, 1])
    logits = F.one_hot(torch.tensor([0, 1, 0, 0, 1]), 3).float()
    pairs = zip(logits.split(2), y.split(2), strict=True)
    report = class_report(pairs, 3)
    expect("the precision", report["precision"], [1 / 3, 1.0, 0.0])
    expect("the recall", report["recall"], [1.0, 0.5, 0.0])
    expect("the support", report["support"], [1, 4, 0])

# %% grade="class_report" points=6

# %% [markdown] task="quiz" title="Where the memory is" level="more" minutes=6 builds_on="sections 4 to 6"
r"""
Write `quiz()`, which answers the six questions below with a dict of one letter each, so that you know where the memory is.

```python
>>> sorted(quiz())
['cache', 'first', 'gain', 'live', 'start', 'stuck']
```

- Each question counts by itself. Capital letters are fine.

**`cache`** `memory_allocated()` says 2 GiB, `memory_reserved()` 9 GiB. What are the other 7 GiB?
(a) A leak in your code. (b) Blocks that PyTorch keeps for its next requests. (c) Memory that other
programs use. (d) The graphs of earlier losses.

**`live`** A list holds 5 GiB of tensors on the GPU. What does `torch.cuda.empty_cache()` do about them?
(a) It frees them. (b) It moves them to the CPU. (c) It frees those without a gradient.
(d) Nothing: it gives back only blocks in which no tensor lives.

**`gain`** After `empty_cache()`, how much more can *your own* process allocate?
(a) As much as was given back. (b) In general nothing: it could have used those blocks anyhow.
(c) Twice as much. (d) As much as other programs free.

**`start`** What does PyTorch take of the GPU's memory at the first use of CUDA?
(a) A fixed share of all memory, in advance. (b) All that is free. (c) A context for the driver and the
kernels; blocks follow as tensors ask for them. (d) Nothing at all, ever, before the first backward pass.

**`first`** A large tensor is no longer needed. What comes first?
(a) Let go of every name and list that holds it: `del`. (b) `empty_cache()`. (c) `gc.collect()`,
after every batch. (d) `nvidia-smi --gpu-reset`.

**`stuck`** Your own dead run still shows in `nvidia-smi`, with its memory. What do you do?
(a) `nvidia-smi --gpu-reset`. (b) `empty_cache()` in a new process. (c) Find the process and end it.
(d) Wait for the garbage collector.

<details><summary>Hint 1: gain</summary>

The figure of section 5 shows who uses a cached block next.
</details>
<details><summary>Hint 2: stuck</summary>

Memory belongs to a process. Whose is it to give back?
</details>
"""


# %% exercise="quiz"
def quiz() -> dict[str, str]:
    """One letter for each of cache, live, gain, start, first and stuck."""
    ### BEGIN SOLUTION
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
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
## 8 · Recap

- `eval()` sets how layers compute. `no_grad()` and `inference_mode()` switch off the recording. An evaluation needs one
  of each kind, and gives every layer its mode back, in `finally`.
- Where a score hangs on the order of the data, look for a layer in training mode, and for a mean over batches.
- Averages: add up sums, count what counts, divide once. F1 and its kin are no means: compute them over all predictions,
  the truth first, all classes listed.
- Memory is freed with the last reference. Losses, outputs, views and tracebacks are references. Keep numbers.
  `detach()` lets go of the graph, not of the values.
- Allocated is what tensors use, reserved what PyTorch keeps. `empty_cache()` gives cached blocks in which no tensor lives
  to others.
- Activation checkpointing keeps a few activations and computes the rest twice.
- Memory that stays in `nvidia-smi` after a crash belongs to a process. End it, if it is yours.

**Primary sources**

- PyTorch:
  [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html) (the three switches, side by side),
  [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html) (the caching allocator and its settings),
  [Frequently asked questions](https://docs.pytorch.org/docs/stable/notes/faq.html) (what keeps memory),
  [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html),
  [Understanding CUDA memory usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html) (the snapshot),
  [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html).
- scikit-learn:
  [classification_report](https://scikit-learn.org/stable/modules/generated/sklearn.metrics.classification_report.html),
  [precision, recall and F](https://scikit-learn.org/stable/modules/model_evaluation.html#precision-recall-f-measure-metrics).
- Activation checkpointing: T. Chen and others,
  [Training Deep Nets with Sublinear Memory Cost](https://arxiv.org/abs/1604.06174), 2016.
"""
