# %% [markdown] reading_minutes=25 builds_on="chapter 00, *moving modules*; chapter 02, *dtypes*"
r"""
# 04 · Inspecting models

A model is what it has registered, not what you meant. Looking inside is cheap, as long as
the look does not change what it looks at.

**After this chapter you can**

- count parameters without counting one twice or a buffer at all;
- write down the shape behind each layer, and leave the model exactly as it was;
- list what an optimizer would train, and find the layer that nobody registered;
- draw the graph that autograd recorded, and see what is missing in it;
- read a progress bar: what its numbers are, and what they are not.
"""

# %% setup="imports"
import io

import torch
from graphviz import Digraph
from torch import Tensor, nn
from tqdm import tqdm

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few things
more.
"""

# %%
import inspect
import warnings
from contextlib import contextmanager

import torch.nn.functional as F
import torchinfo
from torch.utils.data import DataLoader, TensorDataset

from course_utils import (
    PALETTE,
    beside_reference,
    digit_convnet,
    digit_mlp,
    digits,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
    show_graph,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

### A layer that nobody registered

Two towers of six hidden layers. One keeps them in an `nn.ModuleList`, the other in a Python
list. Both compute the same thing.
"""


# %%
class Tower(nn.Module):
    def __init__(self, keep):
        super().__init__()
        hidden = [nn.Linear(32, 32) for _ in range(6)]
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 10)
        self.hidden = keep(hidden)

    def forward(self, x):
        x = self.first(x.flatten(1)).relu()
        for layer in self.hidden:
            x = x + layer(x).relu()
        return self.last(x)


# %% cell="list_held"
data = digits()
losses = {}
for keep in (nn.ModuleList, list):
    torch.manual_seed(0)
    tower = Tower(keep)
    adam = torch.optim.Adam(tower.parameters(), lr=3e-3)
    name = f"{keep.__name__}: {len(list(tower.parameters()))} tensors"
    losses[name] = []
    for rows in torch.randperm(len(data.X_train)).repeat(3).split(64):
        loss = F.cross_entropy(tower(data.X_train[rows]), data.y_train[rows])
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses[name].append(loss.item())

# %%
smooth = {
    name: [sum(one[i : i + 8]) / 8 for i in range(len(one) - 8)]
    for name, one in losses.items()
}
line_chart(
    smooth,
    title="Layers in a list are never trained",
    xlabel="training step",
    ylabel="loss (mean of 8 steps)",
)

# %% [markdown]
r"""
No error, no warning. The six layers of the list keep their first random weights. They are missing
in `parameters()`, in `state_dict()` and in every checkpoint made of it, and `to("cuda")` leaves them behind. The
rest of the network learns around them, so the loss falls all the same. The count gives it away: 4
tensors where 16 were meant.
"""

# %% [markdown]
r"""
### A look that changes the model

To see shapes one sends a batch through. In training mode that is a training batch for every batch
norm (chapter 05), and dropout draws random numbers.
"""

# %% cell="look_changes"
torch.manual_seed(1)
net = digit_convnet(norm="batch")
before = net.norm1.running_mean.clone()
with torch.no_grad():
    net(torch.zeros(1, 1, 8, 8))
moved = (net.norm1.running_mean - before).abs().max().item()
seen_batches = net.norm1.num_batches_tracked.item()
print(f"one look: the running mean moved by {moved:.3f},", end=" ")
print(f"num_batches_tracked is {seen_batches}")

assert seen_batches == 1

# %% [markdown]
r"""
### A hook that stays

Hooks see what passes through a layer. Here they collect outputs, and nobody takes them off again.
"""


# %% cell="hook_stays"
def held_mib(remove):
    torch.manual_seed(2)
    net, outputs, held = digit_convnet(), [], []
    hooks = [
        layer.register_forward_hook(lambda m, i, o: outputs.append(o))
        for layer in net
    ]
    for rows in torch.arange(len(data.X_train)).split(64):
        net(data.X_train[rows])
        if remove:
            for hook in hooks:
                hook.remove()
        total = sum(one.numel() * one.element_size() for one in outputs)
        held.append(total / 2**20)
    return held


held = {"hooks left": held_mib(False), "removed after one": held_mib(True)}

# %%
grows = held["hooks left"][-1]
line_chart(
    held,
    x=range(1, 1 + len(held["hooks left"])),
    title=f"Forgotten hooks hold {grows:.0f} MiB after one epoch",
    xlabel="batches seen",
    ylabel="outputs held (MiB)",
)

# %% [markdown]
r"""
(The last batch is smaller, so the line bends there.) These are only the outputs. Each also keeps its graph alive and, until a `backward()` frees it, all that the operations have saved for
it. On a GPU the run ends hours later with *out of memory*, far from the cell that is to blame.
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

**Count** what `parameters()` gives. It gives each tensor once.
"""

# %% cell="shortest_count"
net = digit_convnet(norm="batch")
total = sum(p.numel() for p in net.parameters())
print(f"{total:,} parameters")

# %% [markdown]
r"""
**List** with names. A shape, whether it is trained, whether a gradient has arrived: most riddles end
here.
"""

# %% cell="shortest_list"
net.conv1.requires_grad_(False)
F.cross_entropy(net(data.X_train[:8]), data.y_train[:8]).backward()
for name, p in list(net.named_parameters())[:6]:
    has_grad = p.grad is not None
    print(f"{name:13} {tuple(p.shape)!s:15} {p.requires_grad!s:6} {has_grad}")

# %% [markdown]
r"""
**Look behind each layer** with forward hooks. Four things belong together: eval mode, no gradient,
`finally`, and modes that are put back one by one. `model.train()` at the end would wake layers that were
in eval on purpose. (A layer whose own `train()` does more, as a LoRA layer that merges its weights, needs `module.train(was)`, which sets its children, too.)
"""


# %%
@contextmanager
def quiet_look(model):
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            yield model.eval()
    finally:
        for module, was in modes:
            module.training = was


# %% cell="shortest_hooks"
rows, hooks = [], []
for name, layer in net.named_children():

    def note(module, inputs, output, name=name):
        rows.append((name, type(module).__name__, tuple(output.shape)))

    hooks.append(layer.register_forward_hook(note))
try:
    with quiet_look(net):
        net(data.X_train[:1])
finally:
    for hook in hooks:
        hook.remove()
print(*rows[:4], sep="\n")

# %% [markdown]
r"""
`name=name` is no decoration. A function looks its free variables up when it is *called*. Without it
every hook finds the name that the loop ended with. (Ruff knows this mistake as B023; here it is told to
look away.)
"""

# %% cell="late_binding"
late = []
hooks = [
    layer.register_forward_hook(lambda *_: late.append(name))  # noqa: B023
    for name, layer in net.named_children()
]
with quiet_look(net):
    net(data.X_train[:1])
for hook in hooks:
    hook.remove()
print(late[:4])

assert set(late) == {name}

# %% [markdown]
r"""
What hooks cannot see:

- Only *calling* a module runs its hooks: `model(x)` does, `model.forward(x)` skips those of the model
  itself.
- Functions have no hooks. A model that calls `F.relu` shows no ReLU, and `nn.MultiheadAttention` uses its
  `out_proj` without calling it.
- A layer that is called twice is seen twice. One that is never called is not seen.
- Some layers return more than a tensor: `nn.LSTM` gives `(output, (h, c))`, and `.shape` raises. `.shape` may also raise inside an `nn.TransformerEncoder` with a padding mask, in eval without gradients; the encoder's `use_nested_tensor = False` prevents it.
- Once compiled, at its first call, a model may not hear a later hook on an inner layer that had none of its kind, and says nothing. Compiled code hears it only if it was made after the hook, as for `no_grad` or another shape; older code stays deaf, and may go on where it fits. (A forward hook is heard at once on what `torch.compile(model)` gave back, and on that model itself if you wrote its `forward`.)
  Look at the model itself, before it is compiled, and not through `DistributedDataParallel` (chapter 14).
"""

# %% cell="compiled_model_ignores_hooks"
small = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
compiled = torch.compile(small, backend="eager")
one_row, heard = torch.ones(1, 2), []
compiled(one_row)
small[0].register_forward_hook(lambda *_: heard.append("a call"))
compiled(one_row)
print("heard from the compiled model:", heard)
assert heard == []

small(one_row)
print("heard from the model itself:  ", heard)
assert heard == ["a call"]

# %% [markdown]
r"""
## 3 · See it

### Where the numbers are

The convolutional network of this course, layer by layer. Two counts that are easily taken for each
other: the parameters (Adam keeps two copies more of what is trained, SGD with momentum one, plain SGD none), and the outputs, which grow
with the batch.
"""


# %% cell="where_it_sits"
def where_it_sits(width=16, batch_size=32, norm="batch"):
    torch.manual_seed(3)
    net, outputs = digit_convnet(width=width, norm=norm), {}
    for name, layer in net.named_children():

        def count(module, inputs, output, name=name):
            outputs[name] = output.numel() / 1e3

        layer.register_forward_hook(count)
    with quiet_look(net):
        net(torch.zeros(batch_size, 1, 8, 8))
    kilo = {
        name: sum(p.numel() for p in layer.parameters()) / 1e3
        for name, layer in net.named_children()
    }
    early = [name for name in kilo if name.endswith("1") and name != "pool1"]
    figure, panels = new_figure(1, 2, figsize=(8, 3.2))
    for axes, counts, what in zip(
        panels,
        (kilo, outputs),
        ("parameters", "output values"),
        strict=True,
    ):
        axes.barh(list(counts), list(counts.values()), color=PALETTE[0])
        axes.invert_yaxis()
        share = sum(counts[one] for one in early) / sum(counts.values())
        axes.set_title(f"{100 * share:.0f} % of the {what} before pool1")
        axes.set_xlabel(f"{what} (thousands)")
    return figure


explore(
    where_it_sits,
    width=[4, 8, 16, 32],
    batch_size=[1, 8, 32, 128],
    norm=["none", "batch", "layer"],
)

# %% [markdown]
r"""
(The hooks stay on a model that is thrown away with them. That is the one case in which it does no
harm.)

### The graph that autograd recorded

`make_dot` of the package torchviz draws it, from the leaves on top to the loss at the bottom.
`show_graph` of this course calls it, and draws by itself where Graphviz is not installed. This model
has two branches, and somebody has detached one of them.
"""


# %% cell="graph_picture"
class TwoBranches(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.far = nn.Linear(3, 4), nn.Linear(3, 4)
        self.head = nn.Linear(4, 1, bias=False)

    def forward(self, x):
        return self.head(self.near(x).tanh() + self.far(x).detach())


torch.manual_seed(4)
branches = TwoBranches()
with warnings.catch_warnings(action="ignore"):  # torchviz asks distutils
    picture = show_graph(
        branches(torch.randn(2, 3)).mean(), dict(branches.named_parameters())
    )
picture

# %% [markdown]
r"""
Blue boxes are leaves that will get a gradient, grey ones operations, the green one the output. `far` is
missing. Of an uncompiled model the picture says it without a backward pass, and so does a comparison of names. (Layers under a checkpoint with `use_reentrant=True`
are missing too, and do get their gradients, if the checkpoint's input requires one.) Large models are better asked than drawn.

Each operation is visited once: in a residual network the number of *ways* through the graph doubles with each block. And a list takes
the place of recursion, which Python stops at a depth of about a thousand.
"""


# %% cell="not_in_the_graph"
def leaves(fn):
    found, visited, waiting = set(), {fn}, [fn]
    while waiting:
        fn = waiting.pop()
        if hasattr(fn, "variable"):
            found.add(fn.variable)
        for upstream, _ in fn.next_functions:
            if upstream is not None and upstream not in visited:
                visited.add(upstream)
                waiting.append(upstream)
    return found


reached = leaves(branches(torch.randn(2, 3)).mean().grad_fn)
lost = [n for n, p in branches.named_parameters() if p not in reached]
print("no gradient will come to", lost)
assert lost == ["far.weight", "far.bias"]

wide = torch.ones(3, requires_grad=True)
deep = wide
for _ in range(48):  # 2 ** 48 ways from the end to the beginning
    deep = deep + deep.tanh()
for _ in range(2000):
    deep = deep + 1
assert leaves(deep.sum().grad_fn) == {wide}

# %% [markdown]
r"""
## 4 · Measure it on this machine

What a look costs: a layer that does nothing, called a thousand times, without a hook and with one; and a
bar around an empty loop. Times for a thousand turns.
"""


# %%
def call_often(layer):
    for _ in range(1000):
        layer(one_number)


def turn_often(turns):
    for _ in turns:
        pass


one_number = torch.zeros(1, device=device)
unwatched, watched = nn.Identity(), nn.Identity()
watched.register_forward_hook(lambda *_: None)
screen = io.StringIO()

# %% cell="measure_looks"
took = {
    "layer": measure_time(lambda: call_often(unwatched)),
    "layer with a hook": measure_time(lambda: call_often(watched)),
    "loop": measure_time(lambda: turn_often(range(1000))),
    "loop with a bar": measure_time(
        lambda: turn_often(tqdm(range(1000), file=screen))
    ),
}
for name, one in took.items():
    print(f"{name:18} {one}")
hook_ms = 1e3 * (took["layer with a hook"].median_s - took["layer"].median_s)
beside_reference("04_inspecting_models/hook_us_per_call", hook_ms, unit="µs")

# %% [markdown]
r"""
Milliseconds per thousand are microseconds per turn: a hook and a bar cost next to nothing beside a training
step. What costs is what one does in them: `.item()` in a hook or in `bar.set_postfix` makes the CPU wait for
the GPU, every time (chapter 11).
"""

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about looking inside, run against what is installed here. Each cell ends in an
assertion. If a later version changes the answer, the cell fails, and you know.
"""

# %% [markdown]
r"""
> **"The sizes behind each layer, as Keras prints them, can be had in PyTorch too."**
> *Correct*, by hooks or by the package torchinfo.
"""

# %% cell="claim_000_04"
net = digit_convnet()
table = torchinfo.summary(net, (1, 1, 8, 8), verbose=0)
by_torchinfo = [
    (one.var_name, tuple(one.output_size))
    for one in table.summary_list
    if one.depth == 1
]
by_hooks = [(name, shape) for name, _, shape in rows if "norm" not in name]
print(by_torchinfo[:3])

assert by_torchinfo == by_hooks

# %% [markdown]
r"""
> **"`torchsummary.summary(model, input_size=(C, H, W))` prints them."**
> *Outdated.* Its last version, 1.5.1, sends two samples through the model in the mode it is in, so
> batch norm learns from random noise. It adds up parameters layer call by layer call, so a shared
> layer counts twice. LSTM and Embedding crash it.

It is not installed here. What it does is quickly imitated; with 1.5.1 itself we measured the same: a
counter that moved by 1, and 40 for the 20 parameters of a layer used twice.
"""


# %% cell="claim_000_05"
def as_torchsummary(model, size):
    counts = []
    for layer in model.children():  # names each layer once
        layer.register_forward_hook(
            lambda m, i, o: counts.append(
                sum(p.numel() for p in m.parameters())
            )
        )
    model(torch.rand(2, *size))
    return sum(counts)


torch.manual_seed(6)
layer, norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
doubled = as_torchsummary(nn.Sequential(layer, layer), (4,))
true_count = torchinfo.summary(nn.Sequential(layer, layer), verbose=0)
as_torchsummary(nn.Sequential(norm), (4,))
print("shared layer:", doubled, "and not", true_count.total_params)
print("batches that the look taught:", norm.num_batches_tracked.item())

assert (doubled, true_count.total_params) == (40, 20)
assert norm.num_batches_tracked == 1

# %% [markdown]
r"""
> **"The number of parameters is the sum of `numel` over `model.parameters()`."**
> *Correct.* A shared tensor counts once, a frozen one counts, a buffer does not.

Summing `state_dict()` counts the shared one twice, and the buffers that are saved. torchinfo may count a shared *tensor* more than once, and a shared
*layer* that stands in two containers. And a lazy layer has no size before its first batch: `numel`
raises. torchinfo says 0, or, given a size, makes it a layer with one.
"""

# %% cell="claim_002_37"
tied = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
tied[1].weight = tied[0].weight
tied[0].requires_grad_(False)
counts = {
    "parameters()": sum(p.numel() for p in tied.parameters()),
    "state_dict()": sum(v.numel() for v in tied.state_dict().values()),
    "torchinfo": torchinfo.summary(tied, verbose=0).total_params,
}
print(counts)
buffers = nn.BatchNorm1d(3, affine=False)
try:
    message = sum(p.numel() for p in nn.LazyLinear(3).parameters())
except ValueError as error:
    message = str(error)
print(message.split(" in ")[0])

assert counts["parameters()"] == 9
assert counts["state_dict()"] == 18
assert not list(buffers.parameters())
assert buffers.state_dict()
assert message.startswith("Attempted to use an uninitialized parameter")

# %% [markdown]
r"""
> **"`state_dict()` or `named_parameters()` lists all trainable parameters, inherited ones too."**
> *Wrong.* The part about inheritance is right.

`named_parameters()` lists the frozen ones too. `state_dict()` adds the buffers that are saved, and the parameters and buffers in it never
require a gradient, unless asked with `keep_vars=True`. So no filter can save it. Neither knows what is in a list.
"""


# %% cell="claim_002_38"
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.inherited = nn.Linear(2, 2)


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(2, 2, bias=False).requires_grad_(False)
        self.norm = nn.BatchNorm1d(2, affine=False)
        self.in_a_list = [nn.Linear(2, 2)]


derived = Derived()
named = dict(derived.named_parameters())
state = derived.state_dict()
print("named_parameters():", list(named))
print("state_dict() adds: ", [key for key in state if key not in named])
live = derived.state_dict(keep_vars=True)

assert "inherited.weight" in named
assert "frozen.weight" in named
assert "norm.running_mean" in state
assert not any(value.requires_grad for value in state.values())
assert live["inherited.weight"].requires_grad
assert not any("in_a_list" in key for key in state)

# %% [markdown]
r"""
> **"Take entry 28 of the list of parameters; print its name, value and gradient."**
> *Wrong*, three times. The snippet indexes `param` and the list is called `params`. A small network has
> no entry 28. And there is no gradient before `backward()`: it is None.

Numbers of that kind also change when a layer is put in before. Names that you gave do not; those in a plain
`nn.Sequential` or an `nn.ModuleList` are numbers, too.
"""

# %% cell="claim_002_39"
params = list(digit_mlp().named_parameters())
print("a small network has", len(params), "entries")
raised = []
for snippet in ("param[28]", "params[28]"):
    try:
        eval(snippet, {"params": params})
    except (NameError, IndexError) as error:
        raised.append(type(error).__name__)
        print(f"{snippet}: {raised[-1]}: {error}")
name, value = params[0]
print(name, "has the gradient", value.grad)

assert raised == ["NameError", "IndexError"]
assert value.grad is None

# %% [markdown]
r"""
> **"`torchinfo.summary(model, (1, 3, 28, 28), verbose=0)`, then `str()` of it."**
> *Correct.* The size has the batch axis in it. Without it the model of the cell fails, unless `batch_dim=0` says
> where one is to be put. `Linear` and `Conv2d` take a single sample: there no error helps you.

Integer inputs need `dtypes=` or `input_data=`: noise of floats is no token. It looks in eval mode by default,
so batch norm is left alone. After the pass it puts the model's mode on *all* layers: one that was in eval on purpose is woken. Given a size, it draws
random numbers (chapter 01), and takes the model to the GPU, if there is one, and leaves it there; `device="cpu"` keeps it.
"""

# %% cell="claim_002_40"
net = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(5408, 10)
)
table = str(torchinfo.summary(net, (1, 3, 28, 28), verbose=0))
print(*table.splitlines()[1:9], sep="\n")
outcome = {}
for name, options in {
    "no batch axis": {"input_size": (3, 28, 28)},
    "batch_dim=0": {"input_size": (3, 28, 28), "batch_dim": 0},
}.items():
    try:
        torchinfo.summary(net, verbose=0, **options)
        outcome[name] = "works"
    except RuntimeError:
        outcome[name] = "fails"
tokens = torch.zeros(2, 4, dtype=torch.int64)
embedded = torchinfo.summary(nn.Embedding(9, 3), input_data=tokens, verbose=0)
print(outcome)

assert outcome == {"no batch axis": "fails", "batch_dim=0": "works"}
assert embedded.total_params == 27
assert net[1].num_batches_tracked == 0
assert net.training

# %% [markdown]
r"""
> **"`torchviz.make_dot(y.mean(), params=dict(model.named_parameters()), show_attrs=…, show_saved=…)`
> draws the graph."**
> *Correct.* To make a picture of it needs Graphviz' program `dot` as well. Its description, `.source`,
> does not.

What was made under `no_grad` has no graph: one lonely box, and no error. (torchviz asks `distutils`, which Python
3.12 took out and setuptools brings back.)
"""

# %% cell="claim_002_41"
with warnings.catch_warnings(action="ignore"):
    import torchviz

    torch.manual_seed(7)
    mlp = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1))
    names = dict(mlp.named_parameters())
    y = mlp(torch.randn(1, 8))
    draw = torchviz.make_dot
    full = draw(y.mean(), params=names, show_attrs=True, show_saved=True)
    with torch.no_grad():
        lonely = draw(mlp(torch.randn(1, 8)).mean(), params=names)
print(full.source.count("label="), "boxes;", end=" ")
print("under no_grad", lonely.source.count("label="))

assert all(name in full.source for name in names)
assert lonely.source.count("label=") == 1

# %% [markdown]
r"""
> **"For a progress bar, install tqdm and import it."**
> *Half the story*: `pip install tqdm` is a line for the shell and `from tqdm import tqdm` one for Python; the
> post glues them together. `tqdm.auto` takes the bar that suits the place.
>
> **"`tqdm(enumerate(loader), total=len(loader), position=0, leave=True)`"**
> *Correct.* `enumerate` has no length, so without `total=` the bar only counts. Turned around,
> `enumerate(tqdm(loader))`, it finds the length by itself.
"""

# %% cell="claim_003_09_10"
loader = DataLoader(TensorDataset(torch.arange(5)), batch_size=2)
quiet = {"file": io.StringIO()}
totals = {
    "enumerate alone": tqdm(enumerate(loader), **quiet).total,
    "with total=": tqdm(enumerate(loader), total=len(loader), **quiet).total,
    "loader": tqdm(loader, **quiet).total,
}
print(totals)
screen = io.StringIO()
for _ in tqdm(loader, file=screen, position=0, leave=True):
    pass
print(screen.getvalue().split("\r")[-1].strip())

assert list(totals.values()) == [None, 3, 3]
assert "3/3" in screen.getvalue()

# %% [markdown]
r"""
> **"691/691 [07:28<00:00, 1.54it/s]: 691 batches, and 7:28 is the time they took."**
> *Correct.* While it runs, the first time is what has passed, the second what is left.
>
> **"1.54it/s is the average time of a batch."**
> *Wrong.* It is batches per second; a batch took 1 / 1.54 = 0.65 s.

Below one batch per second tqdm turns the number over and writes `s/it`. *Then* it is the time of a batch. While
the bar runs, either is a moving average and favours the last batches (`smoothing=0.3`).
"""

# %% cell="claim_003_11_12"
for done, passed_s in ((691, 448.7), (311, 202.0), (3, 9.0)):
    print(tqdm.format_meter(done, 691, passed_s, ncols=60))
whole_s = 691 / 1.54
print(f"691 batches at 1.54it/s: {whole_s:.1f} s", end=", ")
print(f"{whole_s // 60:.0f}:{int(whole_s % 60):02}")

assert abs(whole_s - 448.7) < 0.1
assert "3.00s/it" in tqdm.format_meter(3, 691, 9.0)
assert inspect.signature(tqdm.__init__).parameters["smoothing"].default == 0.3

# %% [markdown]
r"""
### Names that a wrapper changes

`torch.compile(model)` puts `_orig_mod.` before every name that you list, and `AveragedModel` puts `module.`. A filter
such as `name.startswith("head")` then matches nothing, without a word: no layer is frozen, no group gets its
learning rate. `model.compile()` keeps the names. It compiles in place every `forward` that you wrote, also those inside a bare
`nn.Sequential`. The layers and containers of `torch.nn` alone (a `nn.Linear`, a `nn.Sequential` of such, a class made from it that has no `forward` of its own) it leaves as they are in 2.13 if they have no hooks, without a word (with `fullgraph=True` the call raises). Chapter 12 loads such files.
"""

# %% cell="wrapped_names"
averaged = torch.optim.swa_utils.AveragedModel(digit_mlp())
heads = [n for n, _ in averaged.named_parameters() if n.startswith("head")]
print("found:", heads, "among", next(averaged.named_parameters())[0], "...")

assert heads == []

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it. These visible checks are
few. When your notebook is graded, hidden ones look at everything that folds open under *All that is
checked*.

Each exercise is judged separately, with the set-up cell's imports; what else you need you import in
the cell itself. Keep the names and the order of the arguments. Where a library does all that is
checked, you may call it for full marks. Not every library does.
"""

# %% [markdown] task="count_parameters" title="Counting parameters" level="core" minutes=8 builds_on="section 2"
r"""
Write `count_parameters(model)`, which says how large a model is, in numbers and in bytes.

```python
>>> layer = nn.Linear(3, 2)
>>> layer.bias.requires_grad = False
>>> count_parameters(layer)
{'total': 8, 'trainable': 6, 'bytes': 32}
```

- `"total"` is how many numbers all parameters of the model hold together, `"trainable"` the same for those
  that require a gradient. All three are Python ints.
- `"bytes"` is what all parameters take, each by the size of its own dtype.
- A parameter is what the model or one of its submodules has registered as one. It counts once, however
  many names it goes by. Buffers do not count.
- The model may be of any dtype and on any device, `meta` included. It is left as it was.
- If a parameter has no size yet, as in a lazy layer that has seen no batch, raise a `ValueError`.

<details><summary>Hint 1: which ones</summary>

`model.parameters()` gives exactly these, each once.
</details>
<details><summary>Hint 2: the bytes</summary>

`p.element_size()` is the number of bytes for each number: 2 for bfloat16, 8 for complex64.
</details>
"""


# %% exercise="count_parameters"
def count_parameters(model: nn.Module) -> dict[str, int]:
    """Numbers held by the parameters, of them trainable, and their bytes."""
    ### BEGIN SOLUTION
    parameters = list(model.parameters())
    learning = [p for p in parameters if p.requires_grad]
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in learning),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }
    ### END SOLUTION


# %% check="count_parameters"
with visible_check("count_parameters"):
    layer = nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    counted = count_parameters(layer)
    expect("3 x 2 and 2 biases", counted["total"], 8)
    expect("without the frozen bias", counted["trainable"], 6)
    expect("bytes in float32", counted["bytes"], 32)

# %% grade="count_parameters" points=4

# %% [markdown] task="layer_shapes" title="Shapes behind each layer" level="more" minutes=18 builds_on="sections 1 and 2"
r"""
Write `layer_shapes(model, *inputs)`, which calls `model(*inputs)` once and lists what comes out of each layer.

```python
>>> relu = nn.ReLU()
>>> model = nn.Sequential(nn.Linear(3, 2), relu, nn.Linear(2, 5), relu)
>>> layer_shapes(model, torch.zeros(4, 3))
[('0', 'Linear', (4, 2)), ('1', 'ReLU', (4, 2)), ('2', 'Linear', (4, 5)), ('1', 'ReLU', (4, 5))]
```

- The list has one tuple `(name, type, shape)` for every call of a *leaf*, in the order of the calls. A leaf is a
  module without submodules. That may be `model` itself.
- `name` is the one that `model.named_modules()` gives, `type` the name of its class.
- `shape` is the shape of what it returned, as a tuple of ints. For a tuple or a list it is a *list* of what its
  members give, nested the same. For anything else it is None.
- The call of the model runs with every module in eval mode, and without gradients.
- Afterwards all is as before, also when the model raises: each module in its own mode, your hooks gone, those of
  others there. The exception reaches the caller.

<details><summary>Hint 1: the skeleton</summary>

Note the modes; register; `try:` run under `torch.no_grad()`; `finally:` remove the hooks, put the modes
back. Section 2 has the parts.
</details>
<details><summary>Hint 2: nested outputs</summary>

A small function that calls itself: a tensor gives `tuple(value.shape)`, a tuple or list gives a list of
what the function says of each member.
</details>
<details><summary>Help: all my names are the same</summary>

The hook looks `name` up when it runs. Bind it when you make the hook: a default argument, or
`functools.partial`.
</details>
"""


# %% exercise="layer_shapes"
def layer_shapes(model: nn.Module, *inputs: Tensor) -> list[tuple]:
    """(name, type, shape) of every call of a leaf, in the order of the calls."""
    ### BEGIN SOLUTION
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen
    ### END SOLUTION


# %% check="layer_shapes"
with visible_check("layer_shapes"):
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 2), relu, nn.Linear(2, 5), relu)
    listed = layer_shapes(model, torch.zeros(4, 3))
    expect("the first", listed[0], ("0", "Linear", (4, 2)))
    expect("names", [one[0] for one in listed], ["0", "1", "2", "1"])
    expect("hooks left", len(relu._forward_hooks), 0)
    expect("the mode afterwards", model.training, True)

# %% grade="layer_shapes" points=8

# %% [markdown] task="trainable_report" title="What will be trained" level="core" minutes=12 builds_on="sections 1 and 2"
r"""
Write `trainable_report(model)`, which shows what learns, and `Stack(width, depth)`, a module that has nothing to hide from
it.

```python
>>> layer = nn.Linear(2, 1)
>>> layer(torch.tensor([[3.0, 4.0]])).sum().backward()
>>> trainable_report(layer)
{'weight': ((1, 2), 5.0), 'bias': ((1,), 1.0)}
>>> len(list(Stack(4, depth=3).parameters()))
6
```

- `trainable_report` returns a dict, from the name of each parameter that requires a gradient to a tuple
  `(shape, grad_norm)`. Names and their order are those of `named_parameters()`; `shape` is a tuple of ints.
- `grad_norm` is None as long as no gradient has arrived, else the Euclidean norm of the gradient as a Python float,
  worked out in float64.
- It only reads, and each call reads anew.
- `Stack` is a module of `depth` linear layers from `width` to `width` features, with a ReLU *between* them, none after
  the last. `forward(x)` takes `x` of shape (N, width).
- Each layer has a weight and a bias of its own, as an `nn.Linear` has them, and all of them are parameters of the `Stack`, in the order of the layers.

<details><summary>Hint 1: norms</summary>

`p.grad.double().norm().item()`. First ask whether `p.grad is None`: the truth value of a tensor is something
else.
</details>
<details><summary>Hint 2: layers in a row</summary>

`nn.ModuleList` is a list that registers what it holds.
</details>
"""


# %% exercise="trainable_report"
def trainable_report(
    model: nn.Module,
) -> dict[str, tuple[tuple[int, ...], float | None]]:
    """name -> (shape, norm of the gradient or None), trainable ones alone."""
    ### BEGIN SOLUTION
    report = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            gradient = parameter.grad
            norm = None
            if gradient is not None:
                norm = gradient.double().norm().item()
            report[name] = (tuple(parameter.shape), norm)
    return report
    ### END SOLUTION


class Stack(nn.Module):
    """Linear layers from `width` to `width`, with a ReLU between them."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        ### BEGIN SOLUTION
        layers = [nn.Linear(width, width) for _ in range(depth)]
        self.layers = nn.ModuleList(layers)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        for place, layer in enumerate(self.layers):
            x = layer(x.relu() if place else x)
        return x
        ### END SOLUTION


# %% check="trainable_report"
with visible_check("trainable_report"):
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    expect("before", trainable_report(layer), {"weight": ((1, 2), None)})
    layer(torch.tensor([[3.0, 4.0]])).sum().backward()
    expect("after backward", trainable_report(layer)["weight"][1], 5.0)
    count = len(list(Stack(4, depth=3).parameters()))
    expect("parameters of a Stack of 3", count, 6)

# %% grade="trainable_report" points=5

# %% [markdown] task="graph_of" title="The graph, with names" level="more" minutes=10 builds_on="section 3"
r"""
Write `graph_of(model, x)`, which returns the autograd graph of `model(x).mean()` as a `graphviz.Digraph`, so that you see by
name what a gradient will reach.

```python
>>> source = graph_of(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(1, 2)).source
>>> "0.weight" in source, "TanhBackward0" in source
(True, True)
```

- Each operation that autograd recorded has one box; the first line of its label is the operation's name, as
  `type(fn).__name__` gives it.
- Each parameter that will get a gradient through it has one box; the first line of its label is its name as in
  `named_parameters()`. Frozen and unused parameters have none. `x` requires no gradient.
- Edges go the way the forward pass goes: from what goes in to what comes out.
- The model runs once, in the mode it is in. The graph is there also under `torch.no_grad()`. Afterwards model, `x` and
  grad mode are as they were, also when the model raises; the one run may move the statistics of batch norm.
- It is read, not rendered: no file is written, no program is called.

<details><summary>Hint 1: the package</summary>

`from torchviz import make_dot`. Its `params=` wants a dict from names to tensors.
</details>
<details><summary>Hint 2: under no_grad</summary>

`with torch.enable_grad():` switches gradients on for a block, inside `no_grad` too, and back to what was. (Not inside
`inference_mode`.)
</details>
"""


# %% exercise="graph_of"
def graph_of(model: nn.Module, x: Tensor) -> Digraph:
    """The autograd graph of `model(x).mean()`, its leaves named."""
    ### BEGIN SOLUTION
    from torchviz import make_dot

    with torch.enable_grad():
        output = model(x).mean()
    return make_dot(output, params=dict(model.named_parameters()))
    ### END SOLUTION


# %% check="graph_of"
with visible_check("graph_of"):
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    text = graph_of(model, torch.ones(1, 2)).source
    expect("the weight is named", "0.weight" in text, True)
    expect("tanh is an operation", "TanhBackward0" in text, True)
    expect("no gradient has come", model[0].weight.grad, None)

# %% grade="graph_of" points=4

# %% [markdown] task="progress" title="A bar, and what it says" level="more" minutes=10 builds_on="section 5"
r"""
Write `progress(loader, file)`, which gives numbered batches while a bar shows how far it is, and
`seconds_for(num_batches, rate)`, which reads the rate that such a bar shows.

```python
>>> screen = io.StringIO()
>>> list(progress(["a", "b"], screen))
[(0, 'a'), (1, 'b')]
>>> "2/2" in screen.getvalue()
True
>>> seconds_for(10, "2.00s/it")
20.0
```

- `progress` gives the number of each batch, from 0, and the batch itself. The bar is written to the text stream `file` and
  nowhere else; the stream stays open.
- A batch is taken from the loader only when it is asked for. The loader's exceptions reach the caller, those of `len` too.
- But where `len` raises a `TypeError`, it works all the same, and the bar shows no `a/b` of two counts. Where it gives an n above 0,
  the last line on `file` has `n/n` in it once the loop over all n batches has ended. No line has it while the caller holds an
  earlier batch than the last. So the bar may move just before a batch is given out, or just after.
- `seconds_for` returns a float, in seconds. `rate` is what tqdm shows: `"1.54it/s"` or `"2.50s/it"`, with blanks around it
  or with another unit than `it`.
- tqdm shows `"?it/s"` as long as it does not know the rate: then the result is None.

<details><summary>Hint 1: who knows the length</summary>

`tqdm(enumerate(loader))` cannot. `tqdm(loader)` asks the loader, and takes a `TypeError` for *no length*. An `AttributeError` too, which may be
a slip in the loader: ask with `len` yourself, and give `total=`.
</details>
<details><summary>Hint 2: two kinds of rate</summary>

What stands after the slash decides. With `s` alone after it: batches per second. Else: seconds per batch. (No unit here is called `s` or holds a slash.)
</details>
"""


# %% exercise="progress"
def progress(loader, file):
    """(i, batch) for each batch, with a bar on `file`."""
    ### BEGIN SOLUTION
    try:
        num_batches = len(loader)
    except TypeError:
        num_batches = None
    return enumerate(tqdm(loader, total=num_batches, file=file))
    ### END SOLUTION


def seconds_for(num_batches: int, rate: str) -> float | None:
    """Seconds that `num_batches` take at a rate as tqdm shows it."""
    ### BEGIN SOLUTION
    above, below = rate.strip().split("/")
    digits_only = "".join(c for c in above if c in "0123456789.")
    if not digits_only:
        return None
    number = float(digits_only)
    return num_batches / number if below == "s" else num_batches * number
    ### END SOLUTION


# %% check="progress"
with visible_check("progress"):
    shown = io.StringIO()
    expect("pairs", list(progress(["a", "b"], shown)), [(0, "a"), (1, "b")])
    expect("2/2 on the screen", "2/2" in shown.getvalue(), True)
    expect("10 at 2.00s/it", seconds_for(10, "2.00s/it"), 20.0)

# %% grade="progress" points=4

# %% [markdown]
r"""
## 7 · Recap

- A model is what it has registered. Lists, dicts and functions do not register; `nn.ModuleList`,
  `nn.ModuleDict` and `nn.ParameterList` do.
- Count over `parameters()`: shared ones once, frozen ones too, buffers never. `state_dict()` is for saving.
- List by name, with shape, `requires_grad` and the gradient. None is not 0: nothing has arrived since `zero_grad()`.
- A look, before the model is compiled: eval, no gradient, hooks removed in `finally`, modes back one by one.
- The picture of an uncompiled model's graph shows what is cut off (layers under a reentrant checkpoint only seem to be). Large models are better asked by name.
- `it/s` is batches per second, `s/it` seconds per batch; `total=` must be known by somebody.

**Primary sources**

- PyTorch: [Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html) (`parameters`,
  `named_modules`, `register_forward_hook`),
  [ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html),
  [how autograd records](https://docs.pytorch.org/docs/stable/notes/autograd.html).
- [torchinfo](https://github.com/TylerYep/torchinfo), which took over from torchsummary;
  [torchviz](https://github.com/szagoruyko/pytorchviz); [tqdm](https://tqdm.github.io/).
"""
