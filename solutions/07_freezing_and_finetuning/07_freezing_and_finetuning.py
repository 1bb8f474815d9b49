# %% [markdown] reading_minutes=25 builds_on="chapter 04, *names of parameters*; chapter 05, *BatchNorm's buffers*; chapter 06, *parameter groups*"
r"""
# 07 · Freezing and fine-tuning

A pretrained model knows something. Freezing is how you keep it: fewer weights to train, less
memory, and an old task that still works afterwards. A layer that only *looks* frozen gives you
none of that, and says nothing.

**After this chapter you can**

- freeze a part of a model by its name, unfreeze it again, and see that the optimizer knows;
- freeze a BatchNorm so that its statistics stay too, and stay through the next `model.train()`;
- train one of two models that are joined, in either direction;
- load those weights of a file that fit, leave the head alone, and report what was not loaded.
"""

# %% setup="imports"
import copy
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few things
more.
"""

# %%
import functools

from course_utils import (
    bar_chart,
    beside_reference,
    digit_mlp,
    digits,
    explore,
    measure_time,
    new_figure,
    pick_device,
    saved_tensor_bytes,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

A small network with BatchNorm learns the digits 0 to 6 from a thousand images. Later it shall
learn 7, 8 and 9 as well, from a handful, which another scanner made: white on black has become
black on white. The plan: keep the backbone, freeze it, train a new head for the three new digits.
The old head goes on reading the old digits from the same backbone.
"""

# %%
data = digits()


def some_digits(images, labels, first, last):
    """The images of the digits first .. last, labelled from 0."""
    chosen = (labels >= first) & (labels <= last)
    return images[chosen].to(device), (labels[chosen] - first).to(device)


old = some_digits(data.X_train, data.y_train, 0, 6)
old_test = some_digits(data.X_test, data.y_test, 0, 6)
new = some_digits(1 - data.X_train, data.y_train, 7, 9)
new_test = some_digits(1 - data.X_test, data.y_test, 7, 9)
print(len(old[0]), "old images,", len(new[0]), "new ones to choose from")


# %%
def make_net(num_classes):
    net = digit_mlp(norm="batch")
    net.head = nn.Linear(net.head.in_features, num_classes)
    return net.to(device)


def accuracy(net, X, y):
    was_training = net.training
    with torch.no_grad():
        right = (net.eval()(X).argmax(1) == y).float().mean().item()
    net.train(was_training)
    return right


# %%
def fit(net, X, y, steps, set_mode=nn.Module.train):
    knobs = [p for p in net.parameters() if p.requires_grad]
    sgd = torch.optim.SGD(knobs, lr=0.05, momentum=0.9)
    for _ in range(steps):
        rows = torch.randint(len(X), (32,)).to(device)
        set_mode(net)
        loss = F.cross_entropy(net(X[rows]), y[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()


torch.manual_seed(0)
pretrained = make_net(7)
fit(pretrained, *old, steps=300)
print(f"old digits: {accuracy(pretrained, *old_test):.1%}")


# %% [markdown]
r"""
Now the new head, on three images of each new digit. Every parameter of the backbone has
`requires_grad=False`.
"""


# %%
def few(per_class):
    """`per_class` images of each new digit."""
    rows = [torch.where(new[1] == c)[0][:per_class] for c in range(3)]
    rows = torch.cat(rows)
    return new[0][rows], new[1][rows]


def old_accuracy(net):
    """Accuracy on the old digits, with the old head on the net's backbone."""
    with_old_head = copy.deepcopy(net)
    with_old_head.head = pretrained.head
    return accuracy(with_old_head, *old_test)


# %% cell="frozen_by_flag"
torch.manual_seed(1)
tuned = copy.deepcopy(pretrained)
tuned.requires_grad_(False)
tuned.head = nn.Linear(64, 3).to(device)
fit(tuned, *few(3), steps=60)

weights = dict(pretrained.named_parameters())
same = [n for n, p in tuned.named_parameters() if p.equal(weights[n])]
print("unchanged:", *same[:4], "...")
print(f"old digits: before {accuracy(pretrained, *old_test):.1%},", end=" ")
print(f"after {old_accuracy(tuned):.1%}")
assert len(same) == len(weights) - 2  # all but the head's
assert old_accuracy(tuned) < accuracy(pretrained, *old_test) - 0.05

# %% [markdown]
r"""
No weight of the backbone has moved, and yet it is another backbone. What has moved?
"""

# %% cell="what_moved"
before, after = pretrained.state_dict(), tuned.state_dict()
moved = [k for k in after if "head" not in k and not after[k].equal(before[k])]
print(*moved, sep="\n")
assert len(moved) == 6  # three buffers in each of two BatchNorms

# %% [markdown]
r"""
The running statistics of BatchNorm are buffers, not parameters. Their `requires_grad` is False from the start
and does not protect them: every forward pass in training mode moves them. They are now those of nine images from another
scanner.

### Flags that freeze nothing

Two ways to freeze nothing, without an error. Python lets you give a module or a tensor an
attribute that nobody reads, a misspelt one too.
"""

# %% cell="silent_flags"
net = digit_mlp()
net.linear1.requires_grad = False  # an attribute that nobody reads
net.linear2.weight.require_grad = False  # a letter is missing
print("frozen:", [n for n, p in net.named_parameters() if not p.requires_grad])

net.linear1.requires_grad_(False)
print("frozen:", [n for n, p in net.named_parameters() if not p.requires_grad])
assert not net.linear1.bias.requires_grad

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

**Freeze** by name, with the dot at the end: `"layer1."` is not the beginning of
`layer10.weight`. (A tied weight has one name in `named_parameters()`, its first; frozen, or loaded without `assign=True`, under one name, it is so under both.)
"""


# %% cell="shortest_freeze"
torch.manual_seed(2)
tuned = copy.deepcopy(pretrained)
tuned.head = nn.Linear(64, 3).to(device)
for parameter_name, p in tuned.named_parameters():
    if parameter_name.startswith(("linear1.", "norm1.", "linear2.", "norm2.")):
        p.requires_grad_(False)

print([n for n, p in tuned.named_parameters() if p.requires_grad])


# %% [markdown]
r"""
**Keep the statistics**: frozen layers stay in eval mode. Every `train()` puts all layers into
training mode, so say it again after each. (On a GPU no gradient passes an `nn.LSTM` in eval mode: cuDNN refuses.
If layers before it are trained, leave it in training mode, with its `dropout` set to 0.)
"""


# %% cell="shortest_statistics"
def train_the_head(net):
    net.train()
    for layer in (net.norm1, net.norm2):
        layer.eval()


fit(tuned, *few(3), steps=60, set_mode=train_the_head)
print(f"old digits: before {accuracy(pretrained, *old_test):.1%},", end=" ")
print(f"after {old_accuracy(tuned):.1%}")
assert old_accuracy(tuned) == accuracy(pretrained, *old_test)

# %% [markdown]
r"""
Now the backbone is the same to the last bit. Exercise 2 puts the second `eval()` where it
cannot be forgotten: into the module's own `train`.

**Give the optimizer** what is to be trained, as a *list*: `fit` above does. A `filter` object
is empty after its first use.

**Between two models**: `b(a(x).detach())` trains `b` alone.
To train `a` through a fixed `b`, freeze the *parameters* of `b`; its operations must stay on
the graph, for the gradient comes back through them. (In training mode the BatchNorm of `b` still moves.)

**Load what fits**: filter the file by key *and* by shape, without the old head, then `load_state_dict(...,
strict=False)`, and print what was left out.
"""

# %% [markdown]
r"""
## 3 · See it

One, two or more images of each new digit, and four ways to use them:

- *from scratch*: a new network, nothing pretrained;
- *train everything*: pretrained, nothing frozen;
- *flags only*: the backbone's `requires_grad` is `False`;
- *flags and statistics*: its BatchNorms are in eval mode too.

Each point is the mean of three runs.
"""


# %%
def one_way(way, per_class, steps, seed):
    """(accuracy on the new digits, on the old ones)."""
    torch.manual_seed(seed)
    scratch = way == "from scratch"
    net = make_net(7) if scratch else copy.deepcopy(pretrained)
    net.requires_grad_(not way.startswith("flags"))
    net.head = nn.Linear(64, 3).to(device)
    with_statistics = way == "flags and statistics"
    mode = train_the_head if with_statistics else nn.Module.train
    fit(net, *few(per_class), steps, set_mode=mode)
    return accuracy(net, *new_test), old_accuracy(net)


# %%
@functools.cache
def mean_of_runs(way, per_class, steps):
    runs = [one_way(way, per_class, steps, seed) for seed in range(3)]
    return torch.tensor(runs).mean(0).tolist()


def ways_figure(per_class=3, steps=60):
    figure, axes = new_figure(figsize=(6, 3.2))
    for way, mark in (
        ("train everything", "s"),
        ("flags only", "D"),
        ("flags and statistics", "o"),
    ):
        on_new, on_old = mean_of_runs(way, per_class, steps)
        axes.plot(on_old, on_new, mark, markersize=9, label=way)
    on_new, _ = mean_of_runs("from scratch", per_class, steps)
    axes.axhline(on_new, color="0.5", linestyle=":", label="from scratch")
    axes.axvline(accuracy(pretrained, *old_test), color="0.8", linewidth=1)
    axes.set(xlim=(0.4, 1.02), ylim=(0.4, 1.02))
    axes.set(xlabel="accuracy on the old digits (grey: before)")
    axes.set(ylabel="accuracy on the new digits")
    axes.set_title("Only frozen statistics keep the old task whole")
    axes.legend(loc="lower left")
    return figure


# %% cell="ways_figure"
explore(ways_figure, per_class=[1, 2, 3, 5, 10, 20], steps=[20, 60, 120])

# %% cell="ways_table"
WAYS = "from scratch", "train everything", "flags only", "flags and statistics"
for per_class in (1, 3, 10):
    print(f"{per_class} of each new digit:")
    for way in WAYS:
        on_new, on_old = mean_of_runs(way, per_class, 60)
        print(f"  {way:21} old {on_old:.1%}  new {on_new:.1%}")
    assert on_old > 0.95  # of the last way

# %% [markdown]
r"""
Read it honestly. With one image of each, three seeds decide little: over thirty, a network trained from scratch is as good for the new digits as the frozen backbone. With three images it is ahead: this small network learns three digits quickly, and black on white is not what the backbone has seen.
What freezing with the statistics keeps, in every row, is the old task. Flags without statistics do not keep it. Whether they lose more of it than training
everything does depends on the images and the steps: with one image and these 60 steps they lose far more.

A middle way is to train everything, slowly: groups with smaller rates for the earlier layers (chapter 06). Note that weight decay then pulls the pretrained
weights towards zero, not towards where they started.

### LoRA: freeze all, add little

Large models are mostly fine-tuned by *low-rank adapters*. The weight is frozen. Beside it stand two thin matrices whose product is added to what it
computes. One of them starts at zero, so at first the model is the old one.
"""


# %% cell="low_rank"
class LowRank(nn.Module):
    """A frozen linear layer with an adapter of rank `rank`."""

    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


torch.manual_seed(6)
plain = nn.Linear(1024, 1024)
adapted = LowRank(plain, rank=8)
trained = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
x = torch.randn(5, 1024)
print(f"{trained:,} of {plain.weight.numel():,} weights are trained")
assert adapted(x).equal(plain(x))

# %% [markdown]
r"""
The optimizer has moments for the adapter alone, a checkpoint needs the adapter alone (filter the `state_dict`, which holds the frozen weights too, by name: nothing in it has `requires_grad`), and several
adapters share one model. Afterwards the product can be added to the weight. The `peft` package does this for whole models. The backward pass still goes
through the layers: what is saved is the memory of gradients and moments. Of activations little is: the input of a frozen `Linear` without an adapter, say.
"""

# %% [markdown]
r"""
## 4 · Measure it on this machine

What does freezing save? Below an eight-layer network, one step of forward and backward, by
what is trained. *Cached features* runs the frozen part once, before training, and then trains
the head on what came out.
"""

# %%
torch.manual_seed(4)
width, depth = 256, 8
parts = [
    nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)
]
deep = nn.Sequential(*parts, nn.Linear(width, 10)).to(device)
X = torch.randn(256, width).to(device)
y = torch.zeros(256, dtype=torch.long, device=device)
cached = deep[:-1](X).detach()


def one_step(first_trained):
    for index, part in enumerate(deep):
        part.requires_grad_(index >= first_trained)
    F.cross_entropy(deep(X), y).backward()
    deep.zero_grad()


def one_cached_step():
    F.cross_entropy(deep[-1](cached), y).backward()
    deep.zero_grad()


# %% cell="measure_steps"
steps = {
    "everything trained": lambda: one_step(0),
    "first half frozen": lambda: one_step(depth // 2),
    "all but the head frozen": lambda: one_step(depth),
    "the same, features cached": one_cached_step,
}
times = {
    name: measure_time(step, repeats=5).median_s * 1e3
    for name, step in steps.items()
}
gain = times["everything trained"] / times["all but the head frozen"]
bar_chart(
    times,
    title=f"Only the head trained: a step is {gain:.0f} times as fast",
    xlabel=f"forward and backward, ms ({device.type})",
)

# %% cell="measure_beside_reference"
everything_ms = times["everything trained"]
head_ms = times["all but the head frozen"]
beside_reference(
    "07_freezing_and_finetuning/everything_ms", everything_ms, unit="ms"
)
beside_reference("07_freezing_and_finetuning/head_ms", head_ms, unit="ms")

# %% [markdown]
r"""
And the memory? `saved_tensor_bytes` counts what autograd keeps for the backward pass; what is in memory anyhow, weights and input, is left out.
We count with the ReLUs and without.
"""


# %% cell="measure_saved"
def saved_mebibytes(net, frozen_part):
    for index, part in enumerate(net):
        first, last = index < depth // 2, index >= depth // 2
        frozen = {"first half": first, "last half": last}.get(frozen_part)
        part.requires_grad_(not frozen)
    with saved_tensor_bytes(ignore=[*net.parameters(), X]) as saved:
        loss = F.cross_entropy(net(X), y)
        return saved.live_bytes / 2**20 if loss.requires_grad else 0.0


linear = nn.Sequential(*(part[0] for part in parts), deep[-1])
for frozen_part in ("none", "first half", "last half"):
    with_relu = saved_mebibytes(deep, frozen_part)
    without = saved_mebibytes(linear, frozen_part)
    print(f"frozen: {frozen_part:10}  with ReLU {with_relu:.2f} MiB,", end=" ")
    print(f"without {without:.2f}")

# %% [markdown]
r"""
Where the *first* layers are frozen, the backward pass ends at the first trained one, and
nothing before it is kept. Where the *last* ones are, the gradient passes through them, and it depends on the layer what that takes. A frozen
`Linear` needs its weight and not its input. A ReLU that is not compiled needs its output, frozen or not. So here freezing the last half saves nothing with ReLUs, and more than
half without.
"""

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about freezing, run against the PyTorch that is installed here. Each cell ends
in an assertion. If a later version changes the answer, the cell fails, and you know.

`stages` makes a small network with a BatchNorm, `train_some` trains it, `changed` says what
is different from a snapshot.
"""


# %%
def stages():
    torch.manual_seed(5)
    early = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    return nn.Sequential(OrderedDict(early=early, head=nn.Linear(6, 2)))


def train_some(net, sgd, steps=3, set_to_none=True):
    for step in range(steps):
        sgd.zero_grad(set_to_none=set_to_none)
        x = torch.sin(torch.arange(32.0) + step).reshape(8, 4)
        net(x).square().sum().backward()
        sgd.step()


def changed(net, snapshot):
    now = net.state_dict()
    return [name for name in now if not now[name].equal(snapshot[name])]


def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except Exception as error:
        return type(error).__name__
    return "not refused"


# %% [markdown]
r"""
> **"Freeze the first layers of a pretrained network, and they do not change."**
> *Half the story.*

Parameters stay, but for the exceptions below. BatchNorm's buffers move in training mode; in eval
mode they stay.
"""

# %% cell="claim_000_27"
for mode in ("train", "eval"):
    net = stages()
    net.early.requires_grad_(False)
    if mode == "eval":
        net.early.eval()
    snapshot = copy.deepcopy(net.state_dict())
    train_some(net, torch.optim.SGD(net.head.parameters(), lr=0.01))
    of_early = [n for n in changed(net, snapshot) if n.startswith("early")]
    print(f"{mode}:", of_early or "nothing changed")
    buffers = ["running_mean", "running_var", "num_batches_tracked"]
    wanted = [f"early.1.{one}" for one in buffers] if mode == "train" else []
    assert of_early == wanted

# %% [markdown]
r"""
BatchNorm is not alone: spectral norm keeps two vectors as buffers and moves them in each forward pass in training mode (that of `parametrizations` whenever the weight is read). For BatchNorm there is
also `torchvision.ops.FrozenBatchNorm2d`, which has no training mode. And an `nn.Embedding` with `max_norm` shortens the vectors that it looks up, in place,
frozen or not, in eval mode too.

> **"Print the names of the layers first."** *Correct.*
>
> **"List the layers and switch `requires_grad` off."** *Correct*, on the parameters.
>
> **"Print again: `False` means not trainable."** *Correct.*

`named_parameters` gives names and flags. A flag set on a *module* is the no-op of section 1;
`module.requires_grad_(False)`, with the underscore at the end, reaches its parameters. The flag
says what is trainable *from now on*. The next claim has what it does not say. So freeze first, and wrap and compile afterwards: a change of flags can make
`torch.compile` compile anew (it does in PyTorch 2.13), and DDP has counted on the old ones (chapter 14).
"""

# %% cell="claim_000_28_30"
net = stages()
print([name for name, _ in net.named_parameters()])
for name, p in net.named_parameters():
    p.requires_grad = not name.startswith("early.")
print({name: p.requires_grad for name, p in net.named_parameters()})
train_some(net, torch.optim.SGD(net.parameters(), lr=0.01))

assert all(p.grad is None for p in net.early.parameters())
assert all(p.grad is not None for p in net.head.parameters())
assert refused(setattr, net.head(torch.ones(6)), "requires_grad", False) == (
    "RuntimeError"
)

# %% [markdown]
r"""
The last line: only leaves have a flag to change. To cut a computed tensor off the graph is what
`detach` is for.

> **"Give the optimizer only the parameters with `requires_grad=True`."** *Correct*, as a habit.

A parameter that never had a gradient is skipped anyway, weight decay included. Three cases in
which it matters: frozen *after* some steps, where `zero_grad(set_to_none=False)` leaves a gradient of zeros, momentum and decay still move the parameter. (`LBFGS` does with any setting: make a new one, and for what is unfrozen later, too.) Unfrozen later, a parameter that
the optimizer does not know never moves. And an optimizer refuses an empty list, but takes an empty group and frozen parameters.
"""

# %% cell="claim_000_31"
settings = {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}
net = stages()
net.early.requires_grad_(False)
snapshot = copy.deepcopy(net.state_dict())
train_some(net.eval(), torch.optim.SGD(net.parameters(), **settings))
print("frozen before:", changed(net, snapshot))
assert changed(net, snapshot) == ["head.weight", "head.bias"]

# %% cell="claim_000_31_later"
for to_none in (True, False):
    net = stages().eval()
    sgd = torch.optim.SGD(net.parameters(), **settings)
    train_some(net, sgd)
    net.early.requires_grad_(False)
    snapshot = copy.deepcopy(net.state_dict())
    train_some(net, sgd, set_to_none=to_none)
    still = "early.0.weight" in changed(net, snapshot)
    print(f"frozen later, set_to_none={to_none}: still moves? {still}")
    assert still != to_none

# %% cell="claim_000_31_unfrozen"
sgd = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
net.early.requires_grad_(True)
snapshot = copy.deepcopy(net.state_dict())
train_some(net, sgd)
print("unfrozen, unknown to the optimizer:", changed(net, snapshot))
assert changed(net, snapshot) == ["head.weight", "head.bias"]

once = filter(lambda p: p.requires_grad, net.parameters())
assert [len(list(once)), len(list(once))] == [6, 0]
assert refused(torch.optim.SGD, once, lr=0.1) == "ValueError"

# %% [markdown]
r"""
`optimizer.add_param_group` adds what is unfrozen later, at the rate that the optimizer was *made* with (a tensor is shared, and may have moved since). (Made of `named_parameters()`, it wants names there, too.) After some decays this rate is ten or a hundred times the present one, and some schedulers cannot go on. Give the group its rate, and make the scheduler anew: its plan starts over. The old groups still have a key `initial_lr`, and a new
`LambdaLR`, `SequentialLR`, `CyclicLR` or `CosineAnnealingWarmRestarts` begins there again. Delete the key before you make any new scheduler.
"""

# %% cell="added_under_a_schedule"
for name, make in {
    "StepLR": lambda o: torch.optim.lr_scheduler.StepLR(o, 1, 0.1),
    "LambdaLR": lambda o: torch.optim.lr_scheduler.LambdaLR(
        o, lambda n: 0.1**n
    ),
}.items():
    sgd = torch.optim.SGD(net.head.parameters(), lr=0.1)
    schedule = make(sgd)
    for _ in range(2):
        sgd.step()
        schedule.step()
    sgd.add_param_group({"params": list(net.early.parameters())})
    rates = [round(group["lr"], 4) for group in sgd.param_groups]
    print(f"{name}: rates {rates}, next step:", refused(schedule.step))

# %% [markdown]
r"""
> **"Fine-tuning is work on dicts and lists: load a part, freeze a part."** *Half the story.*

Filter by key *and by shape*. `strict=False` forgives keys that are missing or left over, not
shapes (chapter 12 has the two exceptions, and what else it hides). And where the old head has the shape of the new one,
shape does not tell them apart: leave the head out by its name.
"""

# %% cell="claim_001_32"
source, target = stages(), stages()
source.head = nn.Linear(6, 9)
print(refused(target.load_state_dict, source.state_dict(), strict=False))
mine = target.state_dict()
fits = {
    key: tensor.double()
    for key, tensor in source.state_dict().items()
    if key in mine and tensor.shape == mine[key].shape
}
report = target.load_state_dict(fits, strict=False)
print("not in the file:", report.missing_keys)
print("float64 in the file, in the model:", target.early[0].weight.dtype)

assert refused(target.load_state_dict, source.state_dict(), strict=False) == (
    "RuntimeError"
)
assert report.missing_keys == ["head.weight", "head.bias"]
assert target.early[0].weight.dtype == torch.float32

# %% [markdown]
r"""
The last line: loading copies into the tensors of the model, so the dtype is the model's, and no
warning says that digits were lost. With `assign=True` the tensors of the file take the place of the model's, dtype and all: an optimizer that was made before then
holds the old ones.

> **"`detach()` gives a new tensor off the graph that never requires a gradient."**
> *Half the story.*

A new tensor object, on the same memory: an in-place edit reaches the original. If autograd had saved the original, `backward` says so (not within `save_on_cpu`, chapter 11); with `.data`, or by `detach().numpy()`, nobody says anything, and the gradient is
wrong. And the flag of the detached tensor can be switched on: it is a leaf.
"""


# %% cell="claim_004_11"
def gradient_after_edit(cut):
    x = torch.zeros(3, requires_grad=True)
    out = torch.sigmoid(x)  # its gradient is out * (1 - out)
    cut(out).zero_()
    out.sum().backward()
    return x.grad.tolist()


print("detach:", refused(gradient_after_edit, Tensor.detach))
wrong = gradient_after_edit(lambda out: out.data)
right = gradient_after_edit(lambda out: out.detach().clone())
print("data:", wrong, "· detach().clone():", right)

off = torch.ones(2, requires_grad=True).exp().detach()
assert off.requires_grad is False
assert off.requires_grad_().is_leaf
assert refused(gradient_after_edit, Tensor.detach) == "RuntimeError"
assert (wrong, right) == ([0.0] * 3, [0.25] * 3)

# %% [markdown]
r"""
> **"A feeds B, train only B: detach the output of A."** *Correct.*

A still *runs*: in training mode its BatchNorm counts and its dropout drops. It builds a graph
that nobody uses, unless it runs under `no_grad`. Under `inference_mode` it is one step too far:
such a tensor cannot be saved for `backward()`.
"""

# %% cell="claim_004_12"
A, B = stages(), nn.Linear(2, 1)
x = torch.randn(8, 4)
B(A(x).detach()).sum().backward()
print("A:", A.head.weight.grad, "· B:", B.weight.grad.shape)
with torch.no_grad():
    features = A(x)
B(features).sum().backward()
print("batches that A's BatchNorm has counted:", A.early[1].num_batches_tracked)
with torch.inference_mode():
    features = A(x)
print("inference_mode:", refused(B, features))

assert all(p.grad is None for p in A.parameters())
assert B.weight.grad is not None
assert A.early[1].num_batches_tracked == 3
assert refused(B, features) == "RuntimeError"

# %% [markdown]
r"""
The other direction, A through a fixed B, is not symmetric. Detaching anything would cut the way
that the gradient must take. Freeze the parameters of B.
"""

# %% cell="through_a_frozen_model"
A, B = stages(), nn.Linear(2, 1).requires_grad_(False)
B(A(x)).sum().backward()
print("A:", A.head.weight.grad.shape, "· B:", B.weight.grad)
assert A.head.weight.grad is not None
assert B.weight.grad is None
assert refused(B(A(x).detach()).sum().backward) == "RuntimeError"

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Each exercise is judged by itself; it is best not to lean on the answer of another one. Keep the
names and the order of the arguments.
"""

# %% [markdown] task="freeze" title="Freeze by prefix" level="core" minutes=18 builds_on="sections 1, 2 and 5"
r"""
Write `freeze(model, prefix)`, `unfreeze(model, prefix, optimizer)` and `trainable_sgd(model, lr, momentum, weight_decay)`, which
freeze a part of a model by its name, wake it again, and train what is not frozen.

```python
>>> model = nn.Sequential(OrderedDict(one=nn.Linear(2, 2), one1=nn.Linear(2, 2)))
>>> freeze(model, "one")
['one.weight', 'one.bias']
>>> sgd = trainable_sgd(model, lr=0.1, momentum=0.9, weight_decay=0.0)
>>> unfreeze(model, "one", sgd)
['one.weight', 'one.bias']
>>> [len(group["params"]) for group in sgd.param_groups]
[2, 2]
```

- A parameter lies under `prefix` if its name goes on with a dot after it: `layer1.weight` and `layer1.0.bias` lie under
  `layer1`; `layer10.weight` and `encoder.layer1.weight` do not.
- `freeze` sets `requires_grad` to `False` for every parameter under the prefix and makes their `grad` `None`. It changes
  nothing else, and returns the list of their names, in the model's order.
- `unfreeze` sets `requires_grad` to `True` again, and adds to the optimizer those of them that it does not hold yet, with the
  settings that it was made with. It returns the names, as `freeze` does.
- Both raise a `ValueError`, a `KeyError` or an `AttributeError` if no parameter lies under the prefix.
- `trainable_sgd` returns a `torch.optim.SGD` with these settings, in which every parameter with `requires_grad=True` is held
  once, and no other. It raises a `ValueError` if there is none.

<details><summary>Hint 1: names</summary>

`name.startswith(prefix + ".")`. `named_parameters` gives a shared parameter once, by its first
name; with `remove_duplicate=False` by all of them.
</details>
<details><summary>Hint 2: does the optimizer hold it?</summary>

`p in some_list` compares numbers: it fails, or it takes another parameter with the same single
number for `p`. Compare `id(p)`. The parameters are in `optimizer.param_groups`, each group a
dict with the key `"params"`.
</details>
<details><summary>Hint 3: adding to an optimizer</summary>

`optimizer.add_param_group({"params": [...]})` fills in what the group does not say from the
settings that the optimizer was made with.
</details>
"""


# %% exercise="freeze"
def freeze(model: nn.Module, prefix: str) -> list[str]:
    """Freezes the parameters under the prefix; returns their names."""
    ### BEGIN SOLUTION
    names = []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name.startswith(prefix + "."):
            parameter.requires_grad_(False)
            parameter.grad = None
            names.append(name)
    if not names:
        raise ValueError(f"no parameter lies under {prefix!r}")
    return names
    ### END SOLUTION


def unfreeze(
    model: nn.Module, prefix: str, optimizer: torch.optim.Optimizer
) -> list[str]:
    """Makes them trainable again, in this optimizer; returns their names."""
    ### BEGIN SOLUTION
    held = {id(q) for g in optimizer.param_groups for q in g["params"]}
    names, to_add = [], []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name.startswith(prefix + "."):
            parameter.requires_grad_(True)
            names.append(name)
            if id(parameter) not in held:
                held.add(id(parameter))  # it may have another name here
                to_add.append(parameter)
    if not names:
        raise ValueError(f"no parameter lies under {prefix!r}")
    if to_add:
        optimizer.add_param_group({"params": to_add})
    return names
    ### END SOLUTION


def trainable_sgd(
    model: nn.Module, lr: float, momentum: float, weight_decay: float
) -> torch.optim.SGD:
    """SGD over the parameters that are not frozen; ValueError without any."""
    ### BEGIN SOLUTION
    trainable = [q for q in model.parameters() if q.requires_grad]
    if not trainable:
        raise ValueError("every parameter of the model is frozen")
    return torch.optim.SGD(
        trainable, lr=lr, momentum=momentum, weight_decay=weight_decay
    )
    ### END SOLUTION


# %% check="freeze"
with visible_check("freeze"):
    layers = OrderedDict(one=nn.Linear(2, 2), one1=nn.Linear(2, 2))
    a_model = nn.Sequential(layers)
    expect("the names", freeze(a_model, "one"), ["one.weight", "one.bias"])
    flags = [p.requires_grad for p in a_model.parameters()]
    expect("the flags", flags, [False, False, True, True])
    an_sgd = trainable_sgd(a_model, 0.1, 0.9, 0.0)
    held = [p for group in an_sgd.param_groups for p in group["params"]]
    expect("parameters held", len(held), 2)
    unfreeze(a_model, "one", an_sgd)
    held = [p for group in an_sgd.param_groups for p in group["params"]]
    expect("held", len(held), 4)

# %% grade="freeze" points=8

# %% [markdown] task="partly_frozen" title="A part that stays as it is" level="more" minutes=18 builds_on="sections 1 and 2, BatchNorm's buffers (chapter 05)"
r"""
Write the class `PartlyFrozen`, which wraps a model and keeps some of its parts as they are, whatever mode is asked for.

```python
>>> model = nn.Sequential(OrderedDict(norm=nn.BatchNorm1d(2), head=nn.Linear(2, 1)))
>>> net = PartlyFrozen(model, prefixes=["norm"]).train()
>>> net(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
>>> model.norm.running_mean, model.norm.weight.grad, model.head.bias.grad
(tensor([0., 0.]), None, tensor([2.]))
```

- `prefixes` is a list of dotted names of parts, at least one, such as `["encoder.block1"]`. A part may be a single layer. `net.model` is
  the model that was given, and `net(x)` is what it computes.
- Parameters of the frozen parts have `requires_grad=False` and get no gradient; those of the rest keep the flag that they have. A
  gradient passes *through* a frozen part.
- The frozen parts compute as in eval mode: right after the class was made, and whatever follows of `net.train()`, `net.eval()` and
  training steps. Their buffers stay bit for bit.
- The rest follows `net.train()` and `net.eval()` as it does without a wrapper. Both return `net`.
- A name of no part of the model raises an `AttributeError`, a `KeyError` or a `ValueError` when the class is made.

<details><summary>Hint 1: find a part</summary>

`model.get_submodule("encoder.block1")`.
</details>
<details><summary>Hint 2: where to say eval</summary>

`net.eval()` is `net.train(False)`. So there is one method to override. Call the original first,
then put the frozen parts back.
</details>
<details><summary>Help: the state dict has every frozen tensor twice</summary>

A module that you assign to an attribute, or put into an `nn.ModuleList`, becomes a child of `net`.
In a plain list it does not.
</details>
"""


# %% exercise="partly_frozen"
class PartlyFrozen(nn.Module):
    """A model of which some parts stay as they are."""

    def __init__(self, model: nn.Module, prefixes: list[str]):
        super().__init__()
        ### BEGIN SOLUTION
        self.model = model
        self.frozen_parts = [model.get_submodule(one) for one in prefixes]
        for part in self.frozen_parts:
            part.requires_grad_(False)
        self.train()
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return self.model(x)
        ### END SOLUTION

    def train(self, mode: bool = True):
        ### BEGIN SOLUTION
        super().train(mode)
        for part in self.frozen_parts:
            part.eval()
        return self
        ### END SOLUTION


# %% check="partly_frozen"
with visible_check("partly_frozen"):
    layers = OrderedDict(norm=nn.BatchNorm1d(2), head=nn.Linear(2, 1))
    a_model = nn.Sequential(layers)
    partly = PartlyFrozen(a_model, ["norm"]).train()
    partly(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    expect("the running mean", a_model.norm.running_mean, torch.zeros(2))
    expect("the norm's gradient", a_model.norm.weight.grad, None)
    expect("the head's gradient there?", a_model.head.bias.grad is None, False)

# %% grade="partly_frozen" points=8

# %% [markdown] task="one_of_two" title="Train one of two models" level="more" minutes=14 builds_on="section 5"
r"""
Write `backward_into_b(a, b, x, y)` and `backward_into_a(a, b, x, y)`, which send the gradients of `F.mse_loss(b(a(x)), y)` into one
of two models alone.

```python
>>> a, b = nn.Linear(1, 1), nn.Linear(1, 1)
>>> x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [1.0]])
>>> loss, features = backward_into_b(a, b, x, y)
>>> a.weight.grad is None, b.weight.grad is None, features.requires_grad
(True, False, False)
>>> b.zero_grad()
>>> backward_into_a(a, b, x, y) == loss
True
>>> a.weight.grad is None, b.weight.grad is None
(False, True)
```

- Both run each model once, in the mode that it has, and the backward pass. They take no optimizer step. Gradients add to the `grad` that is
  there, as by `loss.backward()`.
- `backward_into_b` returns the loss, a Python `float`, and the features: what `a(x)` gave, as a tensor that is on no graph and asks for no
  gradient.
- The features hold what `a` computed also where `b` works in place, as `nn.ReLU(inplace=True)` in its first layer does.
- `backward_into_a` returns the loss, a Python `float`.
- The *other* model's `grad` is as it was before: `None`, or what was there from earlier steps. Every `requires_grad` is as it was.

<details><summary>Hint 1: into b</summary>

`detach` shares memory with the original. What `b` may write into should be a copy.
</details>
<details><summary>Hint 2: into a</summary>

Freeze the parameters of `b` for the time of the call, and remember which were frozen already. Or
look at what `Tensor.backward` takes as `inputs`.
</details>
"""


# %% exercise="one_of_two"
def backward_into_b(
    a: nn.Module, b: nn.Module, x: Tensor, y: Tensor
) -> tuple[float, Tensor]:
    """Gradients for b alone; returns the loss and what a computed."""
    ### BEGIN SOLUTION
    features = a(x).detach()
    loss = F.mse_loss(b(features.clone()), y)
    loss.backward()
    return loss.item(), features
    ### END SOLUTION


def backward_into_a(a: nn.Module, b: nn.Module, x: Tensor, y: Tensor) -> float:
    """Gradients for a alone, through b; returns the loss."""
    ### BEGIN SOLUTION
    wanted = [q for q in a.parameters() if q.requires_grad]
    loss = F.mse_loss(b(a(x)), y)
    loss.backward(inputs=wanted)
    return loss.item()
    ### END SOLUTION


# %% check="one_of_two"
with visible_check("one_of_two"):
    a_model, b_model = nn.Linear(1, 1), nn.Linear(1, 1)
    samples, goals = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [1.0]])
    value, seen = backward_into_b(a_model, b_model, samples, goals)
    expect("the features", seen, a_model(samples).detach())
    expect("a's gradient", a_model.weight.grad, None)
    expect("b's gradient there?", b_model.weight.grad is not None, True)
    b_model.zero_grad()
    expect("the loss", backward_into_a(a_model, b_model, samples, goals), value)
    expect("a's gradient there?", a_model.weight.grad is not None, True)
    expect("b's gradient", b_model.weight.grad, None)

# %% grade="one_of_two" points=6

# %% [markdown] task="load_matching" title="Load what fits" level="more" minutes=14 builds_on="section 5"
r"""
Write `load_matching(model, state_dict, head, prefix)`, which loads into `model` what fits of a state dict, and leaves the rest of the
model as it is.

```python
>>> model = nn.Sequential(OrderedDict(body=nn.Linear(2, 2), head=nn.Linear(2, 2)))
>>> saved = {"net.body.weight": torch.eye(2), "net.head.weight": torch.eye(2)}
>>> load_matching(model, saved, head="head", prefix="net.")
(['body.weight'], ['net.head.weight'])
```

- A key is loaded if it begins with `prefix`, which is taken off, once, and the rest is a name in the model's own state dict: of a
  parameter or of a buffer.
- Its tensor must have the *shape* that the model has under this name.
- What lies under `head`, the dotted name of a part of the model, is never loaded, also where it would fit.
- It returns two lists, each in any order: the names that were loaded, as the model has them, and the keys that were skipped, as the
  state dict has them. If nothing would be loaded, it raises a `ValueError`.
- The model keeps its parameters (the same objects) and its dtypes. The state dict stays as it was, also when the model is trained on.

<details><summary>Hint 1: two steps</summary>

Make a new dict of what fits, under the model's names. Then load it at once, with `strict=False`.
</details>
<details><summary>Hint 2: strings</summary>

`key.startswith(prefix)` and `key.removeprefix(prefix)`; an empty prefix needs no extra case. For
the head, the dot counts: `head2.weight` does not lie under `head`.
</details>
"""


# %% exercise="load_matching"
def load_matching(
    model: nn.Module, state_dict: dict[str, Tensor], head: str, prefix: str = ""
) -> tuple[list[str], list[str]]:
    """Loads what fits, but for the head.

    Returns:
        The model's names that were loaded, and the file's keys that were not.

    Raises:
        ValueError: nothing fits.
    """
    ### BEGIN SOLUTION
    own = model.state_dict()
    matching, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        known = key.startswith(prefix) and name in own
        in_head = name.startswith(head + ".")
        if known and not in_head and tensor.shape == own[name].shape:
            matching[name] = tensor
        else:
            skipped.append(key)
    if not matching:
        raise ValueError("nothing in the state dict fits the model")
    model.load_state_dict(matching, strict=False)
    return list(matching), skipped
    ### END SOLUTION


# %% check="load_matching"
with visible_check("load_matching"):
    a_model = nn.Sequential(OrderedDict(body=nn.Linear(2, 2)))
    a_model.add_module("head", nn.Linear(2, 2))
    a_file = {"net.body.weight": torch.eye(2), "net.head.weight": torch.eye(2)}
    done, left = load_matching(a_model, a_file, head="head", prefix="net.")
    expect("what was loaded", done, ["body.weight"])
    expect("what was skipped", left, ["net.head.weight"])
    expect("the body", a_model.body.weight.detach(), torch.eye(2))

# %% grade="load_matching" points=6

# %% [markdown]
r"""
## 7 · Recap

- A frozen parameter has `requires_grad=False` and `grad=None`. Freeze by prefix *with* the dot, before you wrap or compile.
  `module.requires_grad = False` does nothing.
- BatchNorm's statistics are not parameters: a frozen BatchNorm is in eval mode, again after every
  `train()`. Momentum 0 keeps mean and variance while those of the batch are finite, and still normalizes by the batch.
- The optimizer gets a list of what is trainable. What is unfrozen later has to be added, at a rate of its own and with a new scheduler.
- Frozen first layers save time and memory. Frozen last layers save the input that a `Linear` would keep; a convolution keeps what it kept, and so does a ReLU that is not compiled. Features of a frozen part in
  eval mode can be computed once, where its inputs stay the same.
- LoRA freezes everything and trains two thin matrices beside each weight that it adapts.
- `detach` shares memory. `b(a(x).detach())` trains b; to train a through b, freeze b's parameters and put b in eval mode (an LSTM on a GPU stays in training mode, without dropout).
- Load by key and shape, leave the head out by name, report what was skipped.

**Primary sources**

- PyTorch: [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html), on
  `requires_grad`, grad modes and eval mode,
  [BatchNorm2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html),
  [Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html),
  [Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html),
  [Optimizer.add_param_group](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.add_param_group.html),
  [Transfer learning tutorial](https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html).
- J. Yosinski, J. Clune, Y. Bengio, H. Lipson, [How transferable are features in deep neural
  networks?](https://arxiv.org/abs/1411.1792), 2014: which layers are worth keeping.
- E. Hu and others, [LoRA: Low-Rank Adaptation of Large Language Models](https://arxiv.org/abs/2106.09685), 2021.
"""
