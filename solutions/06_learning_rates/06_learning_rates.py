# %% [markdown] reading_minutes=20 builds_on="chapter 04 (*names of parameters*), chapter 05 (*BatchNorm's buffers*)"
r"""
# 06 · Learning rates

The learning rate is the setting that matters most, and the one that goes wrong without a
sound: a schedule that runs ahead by an epoch, a layer that no group holds, a decay that
is not the one you meant. All of it can be read off the optimizer, if you look.

**After this chapter you can**

- place a scheduler in a loop so that every epoch has the rate that was planned, and write
  down the rate that was used;
- give layers their own rates and decays, and prove that each parameter is in exactly one
  group;
- say what `weight_decay` does under SGD, Adam and AdamW, and to a layer that gets no
  gradient;
- warm up, average weights, and choose how the optimizer loops over its parameters.
"""

# %% setup="imports"
import copy
import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import lr_scheduler

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few
things more.
"""

# %%
from collections import Counter

from torch.optim import swa_utils

from course_utils import (
    PALETTE,
    beside_reference,
    digit_mlp,
    digits,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
)

device = pick_device()
data = digits()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

### A schedule that runs ahead

Ten epochs at 0.001, ten at a tenth of it, five at a hundredth: that is the plan. Many posts
begin each epoch with `scheduler.step()`. We count the epochs that each rate got.
"""


# %% cell="one_epoch_early"
def rates_used(scheduler_first, num_epochs=25):
    weight = nn.Parameter(torch.ones(1))
    adam = torch.optim.Adam([weight], lr=1e-3)
    plan = lr_scheduler.StepLR(adam, step_size=10, gamma=0.1)
    rates = []
    for _ in range(num_epochs):
        if scheduler_first:
            plan.step()
        rates.append(f"{adam.param_groups[0]['lr']:.0e}")
        adam.step()  # the epoch's training
        if not scheduler_first:
            plan.step()
    return Counter(rates)


print("scheduler last: ", dict(rates_used(scheduler_first=False)))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print("scheduler first:", dict(rates_used(scheduler_first=True)))
print(str(caught[0].message).split(". ")[0])

# %% [markdown]
r"""
With the scheduler first the rates have nine epochs, ten and six: the plan runs one epoch ahead. There is a warning, but Python shows it once for
each place in the code, and it is lost between two progress bars.

### A head that is in no optimizer

The optimizer holds tensors, not the model. If you replace a layer afterwards, it holds the old
one, and the new one is not trained. We take one epoch of steps and look at how far each layer has moved. (`digit_mlp()` is a small network for the digits: `linear1`, `linear2` and `head`, with
ReLUs between.)
"""


# %%
def train_epoch(model, optimizer, scheduler=None, batch_size=64):
    """One epoch on the digits; returns the mean of the batches' losses."""
    losses = []
    for pick in torch.randperm(len(data.X_train)).split(batch_size):
        loss = F.cross_entropy(model(data.X_train[pick]), data.y_train[pick])
        model.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if scheduler is not None:
            scheduler.step()
    return sum(losses) / len(losses)


# %% cell="head_replaced_late"
torch.manual_seed(0)
model = digit_mlp()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
model.head = nn.Linear(64, 10)  # too late: the optimizer has the old one
before = copy.deepcopy(model.state_dict())
train_epoch(model, sgd)
for name, parameter in model.named_parameters():
    if name.endswith("weight"):
        moved = (parameter - before[name]).norm().item()
        print(f"{name:15} moved by {moved:.3f}")

# %% [markdown]
r"""
### Groups that say nothing

A group is a dict, and a dict takes any key. A generator can be gone through once, and a
group may be empty. A list holds a parameter twice with a warning. Only one slip of
five raises an error.
"""

# %% cell="silent_groups"
model = digit_mlp()
misspelt = {"params": model.head.parameters(), "Lr": 1e-4}
group = torch.optim.SGD([misspelt], lr=0.1).param_groups[0]
print(f"misspelt key:     lr is {group['lr']}, and Lr {group['Lr']}")

once = model.head.parameters()
sizes = [
    len(group["params"])
    for group in torch.optim.SGD(
        [{"params": once}, {"params": once}]
    ).param_groups
]
print("generator reused: sizes of the groups", sizes)

held, total = len(group["params"]), len(list(model.parameters()))
print(f"layer forgotten:  {held} of {total} parameters are held")
print("name by 'in':    ", "conv1" in "conv10.weight")

try:
    doubled = [{"params": model.parameters()}, {"params": model.head.weight}]
    torch.optim.SGD(doubled)
except ValueError as error:
    print("in two groups:   ", error)

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

### The loop

First the optimizer steps, then the scheduler. Read the rate *before* you train with it.
"""

# %% cell="shortest_loop"
torch.manual_seed(0)
model = digit_mlp()
sgd = torch.optim.SGD(model.parameters(), lr=0.2)
scheduler = lr_scheduler.StepLR(sgd, step_size=2, gamma=0.1)
for epoch in range(1, 6):
    (rate,) = scheduler.get_last_lr()
    loss = train_epoch(model, sgd)
    scheduler.step()
    print(f"epoch {epoch}: lr {rate:.3f}, loss {loss:.3f}")

# %% [markdown]
r"""
`get_last_lr()` has one number per group. The scheduler is made once, before the loop. What it
wants to be called with, and when, depends on its kind:

| scheduler | `step` after | call |
|---|---|---|
| `StepLR`, `MultiStepLR`, `ExponentialLR` | each epoch | `step()` |
| `OneCycleLR`, warm-up, most cosine schedules today | each *step of the optimizer* | `step()` |
| `ReduceLROnPlateau` | each validation | `step(metric)` |

A scheduler counts its calls and knows nothing of epochs. `step(epoch)` is outdated: `StepLR` still takes it, with a
warning, `SequentialLR` does not. (`CosineAnnealingWarmRestarts` alone is meant to be called so, if you like.) The argument `verbose=` is gone. `ReduceLROnPlateau` lowers the rate once the metric has
not improved for more than `patience` calls. To improve is to fall: an accuracy needs `mode="max"`. An improvement of less than `threshold`, by default 0.0001 of the metric, counts as none. (A metric below
0 needs `threshold_mode="abs"`. By default a standstill counts as an improvement there.)
"""

# %% cell="plateau"
sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
scheduler = lr_scheduler.ReduceLROnPlateau(sgd, factor=0.1, patience=1)
for validation_loss in (0.9, 0.5, 0.5, 0.6, 0.4):
    print(f"lr {scheduler.get_last_lr()[0]:.1f}, then {validation_loss}")
    sgd.step()
    scheduler.step(validation_loss)

# %% [markdown]
r"""

### Groups

One pass over `named_parameters()`, one list for each kind, and a count. Decay is usually kept
off biases and the weights of norms. They are told by their one dimension. (A `LayerNorm` over several axes has weights of several, and so have an attention's `bias_k`
and `bias_v`; those go by name.)
"""

# %% cell="shortest_groups"
torch.manual_seed(0)
model = digit_mlp(norm="layer")
kinds = {"matrices": [], "vectors": []}
for _, parameter in model.named_parameters():
    kinds["matrices" if parameter.dim() > 1 else "vectors"].append(parameter)

adamw = torch.optim.AdamW(
    [
        {"params": kinds["matrices"], "weight_decay": 0.1},
        {"params": kinds["vectors"], "weight_decay": 0.0},
    ],
    lr=1e-3,  # for every group that says nothing else
)
held = [parameter for one in adamw.param_groups for parameter in one["params"]]
assert {id(p) for p in held} == {id(p) for p in model.parameters()}
assert len(held) == len(list(model.parameters()))

# %% [markdown]
r"""
To go by names, end the prefix with a dot: `name.startswith("conv1.")` is true for `conv1.weight`
and false for `conv10.weight`. Given `model.named_parameters()` instead of `parameters()`, an
optimizer keeps the names, in `group["param_names"]`.

Most schedules multiply each group's own rate, so their ratio stays. An `eta_min` is a rate, not a
factor: there all groups end at the same one. And `OneCycleLR` and `CyclicLR` *replace* the groups' rates by their own, from the first step on
(`CyclicLR` from the second one, if an earlier schedule has left `initial_lr` in the groups): one number makes all groups alike, a list has one for each. By default both
also set the momentum (Adam's beta1), even where SGD had 0, and refuse an optimizer with neither, such as Adagrad.
"""

# %% cell="ratio_of_groups"
for name, make in {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 10, 0.1),
    "cosine, eta_min": lambda o: lr_scheduler.CosineAnnealingLR(o, 10, 0.01),
}.items():
    fast, slow = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([{"params": fast}, {"params": slow, "lr": 0.1}], lr=1)
    scheduler = make(sgd)
    for _ in range(10):
        sgd.step()
        scheduler.step()
    print(f"{name:16} ends at", [f"{r:.3f}" for r in scheduler.get_last_lr()])

# %% cell="rates_replaced"
for name, make in {
    "OneCycleLR, 1.0": lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10),
    "OneCycleLR, list": lambda o: lr_scheduler.OneCycleLR(o, [1.0, 0.1], 10),
    "CyclicLR, 0.01": lambda o: lr_scheduler.CyclicLR(o, 0.01, 1.0),
}.items():
    fast, slow = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    two = [{"params": fast}, {"params": slow, "lr": 0.1}]
    sgd = torch.optim.SGD(two, lr=1, momentum=0.9)
    make(sgd)
    begin = [round(one["lr"], 4) for one in sgd.param_groups]
    momentum = sgd.param_groups[0]["momentum"]
    print(f"{name:16} begins at {begin}, momentum {momentum}")

# %% [markdown]
r"""
### Warm-up

`SequentialLR` puts one schedule behind another. (Not `ReduceLROnPlateau`, which it refuses. Behind another, a `ChainedScheduler` or a
`SequentialLR` raises when its turn comes; in front, a `SequentialLR` changes over a step early, and either may begin at its second rate. `MultiplicativeLR` goes on from the last rate of the warm-up. `OneCycleLR` has a warm-up of its own,
and begins at its own first rate; a warm-up before it rises to that one.) Here the rate rises for four batches, then falls along a cosine.
"""


# %% cell="warm_up"
def warm_up_cosine(optimizer, num_steps, num_warm_up):
    rise = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=num_warm_up)
    fall = lr_scheduler.CosineAnnealingLR(optimizer, num_steps - num_warm_up)
    return lr_scheduler.SequentialLR(optimizer, [rise, fall], [num_warm_up])


sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
scheduler = warm_up_cosine(sgd, num_steps=12, num_warm_up=4)
rates = []
for _ in range(12):
    rates.append(round(scheduler.get_last_lr()[0], 2))
    sgd.step()
    scheduler.step()
print(rates)

# %% [markdown]
r"""
`CosineAnnealingLR` is periodic. Who trains longer than planned climbs the other side of the cosine:
"""

# %% cell="past_the_end"
rates = []
for _ in range(4):
    rates.append(round(scheduler.get_last_lr()[0], 2))
    sgd.step()
    scheduler.step()
print("after the twelve planned steps:", rates)

# %% [markdown]
r"""
### Which schedule today

For a run of known length: warm up over the first few per cent of the steps, then a cosine or a straight line, to a tenth of the rate or to zero. Where the
length is not fixed beforehand: *warm-up, stable, decay* (WSD), a constant rate, and a short fall whenever a finished model is wanted (until then the plan below has `math.inf` steps: let its function read the number from a variable, and set that, for a new scheduler would warm up again). Any
such plan is a function of the step:
"""


# %% cell="warm_up_stable_decay"
def warm_up_stable_decay(step, num_steps, num_warm_up, num_fall):
    rise = (step + 1) / max(num_warm_up, 1)
    fall = (num_steps - step) / max(num_fall, 1)
    return max(0.0, min(1.0, rise, fall))


sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
scheduler = lr_scheduler.LambdaLR(
    sgd, lambda step: warm_up_stable_decay(step, 12, 3, 4)
)
rates = []
for _ in range(14):
    rates.append(round(scheduler.get_last_lr()[0], 2))
    sgd.step()
    scheduler.step()
print(rates)

# %% [markdown]
r"""
What such a plan counts are steps of the *optimizer*. With gradient accumulation that is one in several batches (chapter 09). A step that a `GradScaler` skips is
no step; a scheduler that is called all the same counts it (chapter 10). A checkpoint holds `scheduler.state_dict()` beside the optimizer's (chapter 12).

Under `torch.compile(optimizer.step)` a rate that is a float is compiled in, and a change compiles anew. On a CPU Adam and AdamW compile anew once; SGD, RMSprop and most with `foreach=True` for each new rate, eight versions at most: further rates run uncompiled. `lr=torch.tensor(1e-3)` is
not compiled in. But `OneCycleLR` moves Adam's betas too, which are. And here the compiler's cache on disk may give back a step with an old number in it, even of an earlier run, without a warning: for NAdam, and for Nesterov SGD whose rate is a tensor, where `OneCycleLR` moves betas or momentum; for Muon with weight decay, where a float changes. `TORCHINDUCTOR_FX_GRAPH_CACHE=0` in the environment turns it off. Adam and AdamW refuse a tensor beside `foreach=True`, unless `capturable=True` (which on a CPU steps compiled only, and raises after the eighth version). Then `group["lr"]` is a tensor, and schedulers write into it: give each group one of its own, and note `.item()`. Make the scheduler first, else it warns of a wrong order.

**One optimizer, one schedule.** Most schedulers leave their start in `group["initial_lr"]`, and the
next one on the same optimizer may begin there instead of at the present rate. Which of them do
is not obvious. Make a new optimizer, or remove the key.
"""

# %% cell="second_schedule"
for name, make in {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 1, 0.5),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.5**n),
}.items():
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    earlier = lr_scheduler.StepLR(sgd, 1, 0.1)
    sgd.step()
    earlier.step()
    make(sgd)
    print(f"at 0.1, then {name:8} begins at {sgd.param_groups[0]['lr']}")

# %% [markdown]
r"""
## 3 · See it

### Schedules on one chart

25 epochs of four batches. Choose a schedule, and where `step()` is called.
"""

# %%
NUM_EPOCHS, NUM_BATCHES = 25, 4
SCHEDULES = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 10, 0.1),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [15, 20], 0.3),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.85),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 25),
    "warm-up, then cosine": lambda o: warm_up_cosine(o, 100, 12),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 1.0, 100),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(
        o, factor=0.3, patience=2
    ),
}
FOR_BATCHES = ("warm-up, then cosine", "OneCycleLR")
PLACES = ("as planned", "at the start of the epoch", "after each batch")


def loss_of_epoch(epoch):
    return max(0.4, 1 - 0.08 * epoch)  # no better from epoch 8 on


def trace(schedule, place="as planned"):
    """The rate of each of the 100 batches."""
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler, rates = SCHEDULES[schedule](sgd), []
    each_batch = place == PLACES[2]
    if place == PLACES[0]:
        each_batch = schedule in FOR_BATCHES

    def step(epoch):
        if schedule == "ReduceLROnPlateau":
            scheduler.step(loss_of_epoch(epoch))
        else:
            scheduler.step()

    for batch in range(NUM_EPOCHS * NUM_BATCHES):
        epoch, within = divmod(batch, NUM_BATCHES)
        if place == PLACES[1] and within == 0:
            step(epoch)
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        last = within == NUM_BATCHES - 1
        if each_batch or (last and place == PLACES[0]):
            step(epoch)
    return rates


# %% cell="schedules_figure"
def schedules_figure(schedule="StepLR", stepped=PLACES[1]):
    with warnings.catch_warnings(action="ignore"):
        rates = trace(schedule, stepped)
    planned = trace(schedule)
    figure, axes = new_figure(figsize=(6.5, 3.2))
    epochs = [batch / NUM_BATCHES for batch in range(len(planned))]
    blue = {"color": PALETTE[0], "label": f"{schedule}, planned"}
    axes.step(epochs, planned, where="post", **blue)
    title = f"{schedule}: every epoch has the planned rate"
    if rates != planned:
        where = f"stepped {stepped}"
        orange = {"color": PALETTE[1], "linestyle": "--", "label": where}
        axes.step(epochs, rates, where="post", **orange)
        pairs = zip(rates, planned, strict=True)
        wrong = sum(abs(a - b) > 1e-9 for a, b in pairs)
        title = f"{schedule}: {wrong} of 100 batches have another rate"
    axes.set_title(title)
    axes.set(xlabel="epoch", ylabel="learning rate / the optimizer's lr")
    axes.set(yscale="log", ylim=(1e-3, 2))
    axes.legend(
        loc="upper right", facecolor="white", framealpha=0.9, frameon=True
    )
    return figure


explore(schedules_figure, schedule=list(SCHEDULES), stepped=list(PLACES))

# %% [markdown]
r"""
Stepped after each batch, a schedule that was meant for epochs runs through its plan four times
as fast: with thousands of batches it has ended before the first epoch has. (A cosine then climbs again.)

### What a schedule is for

The idea: large steps go fast and do not settle, small ones settle before they have got far. Look whether that is so on the digits, in batches of 8. (One seed, and
the training loss alone: no more than an example.)
"""


# %% cell="what_for"
def training_curve(lr, make_schedule=None, num_epochs=12):
    torch.manual_seed(6)
    net = digit_mlp(width=32)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    num_steps = num_epochs * math.ceil(len(data.X_train) / 8)
    plan = make_schedule and make_schedule(optimizer, num_steps)
    curve = []
    for _ in range(num_epochs):
        train_epoch(net, optimizer, plan, batch_size=8)
        with torch.no_grad():
            scores = net(data.X_train)
        curve.append(F.cross_entropy(scores, data.y_train).item())
    return curve


def rise_and_fall(optimizer, num_steps):
    return warm_up_cosine(optimizer, num_steps, num_steps // 10)


curves = {
    "0.02 throughout": training_curve(0.02),
    "0.3 throughout": training_curve(0.3),
    "warm-up to 0.3, then cosine": training_curve(0.3, rise_and_fall),
}

# %%
figure = line_chart(
    curves,
    title="Large steps first, small steps last: one run of each",
    xlabel="epoch",
    ylabel="training loss (nats)",
    x=range(1, 13),
    log_y=True,
)
figure.axes[0].set_xticks(range(2, 13, 2))
figure

# %% [markdown]
r"""
### Does an unused layer shrink?

A popular warning: a layer that gets no gradient is still decayed, down to zero. We use a layer in
one training step and never again, and follow its norm. Choose the optimizer.
"""

# %%
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1),
}
CLEARED = ("None (the default)", "zeros", "None, but 0 * output in the loss")


def norms_of_unused(optimizer, cleared, used_first=True):
    """Norm of a layer after a step that used it, and after 50 that do not."""
    torch.manual_seed(0)
    used, unused = nn.Linear(2, 2).double(), nn.Linear(2, 2).double()
    stepper = OPTIMIZERS[optimizer]([*used.parameters(), *unused.parameters()])
    x, norms = torch.ones(1, 2).double(), []
    for step in range(51):
        stepper.zero_grad(set_to_none=cleared != CLEARED[1])
        loss = used(x).sum()
        if step == 0 and used_first:
            loss = loss + unused(x).sum()
        elif cleared == CLEARED[2]:
            loss = loss + 0 * unused(x).sum()
        loss.backward()
        stepper.step()
        norms.append(unused.weight.norm().item())
    return [norm / norms[0] for norm in norms]


# %% cell="unused_figure"
def unused_figure(optimizer="SGD"):
    figure, axes = new_figure(figsize=(6, 3))
    lines = {way: norms_of_unused(optimizer, way) for way in CLEARED}
    styles = ("-", "-", ":")
    for (way, norms), style in zip(lines.items(), styles, strict=True):
        axes.plot(norms, style, label=way)
    default, zeros, _ = (norms[-1] for norms in lines.values())
    axes.set_title(
        f"{optimizer}: x {default:.0f} with None, x {zeros:.3g} with zeros"
    )
    axes.set(xlabel="steps since the layer was used last", ylim=(0, None))
    axes.set(ylabel="norm / norm at last use")
    axes.legend(title="gradients are cleared to")
    return figure


explore(unused_figure, optimizer=list(OPTIMIZERS))

# %% [markdown]
r"""
With gradients that are `None`, the default since PyTorch 2.0, these optimizers skip the layer: not
one bit changes. A gradient of *zeros* is a gradient. Then decay goes on, and so does what momentum
or Adam's averages remember: look at AdamW, whose layer grows here.
"""

# %% [markdown]
r"""
## 4 · Measure it on this machine

An optimizer does the same few operations on each parameter. It can loop over them, or hand lists of
tensors to one kernel (most do, with `foreach=True`). SGD, Adam and AdamW can do everything in one pass (`fused=True`). All three can be chosen on the CPU and on a GPU, and give the same
float32 weights up to rounding. (On a CPU, PyTorch 2.13's fused ones go wrong, without a word, where a parameter has gaps in memory (`big[:, :3]`), or its gradient or moments lie in another order than it: a gradient set by hand, `channels_last` from mid-run on. Fused SGD leaves most weights in bfloat16 and float16 as they are. With momentum it raises where a parameter has its first gradient later than others of its group, and its first step must not be one that a `GradScaler` leaves out (chapter 10).) On the CPU `foreach` still makes an operation for each tensor. Here: AdamW on 200 small
layers.
"""

# %% cell="measure"
WAYS = {
    "loop": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def many_layers():
    torch.manual_seed(0)
    shape = (200, 64, 64)
    weights = [nn.Parameter(w) for w in torch.randn(shape, device=device)]
    for weight in weights:
        weight.grad = torch.cos(weight.detach())
    return weights


step_ms, results = {}, {}
for way, options in WAYS.items():
    weights = many_layers()
    adamw = torch.optim.AdamW(weights, **options)
    timing = measure_time(adamw.step, warmup=2, repeats=7)
    step_ms[way], results[way] = timing.median_s * 1e3, weights[0].detach()
    print(f"{way:8} {timing}")
    torch.testing.assert_close(weights[0].detach(), results["loop"])

# %% cell="measure_beside_reference"
for way, ms in step_ms.items():
    name = f"06_learning_rates/adamw_step_{way}_ms"
    beside_reference(name, ms, unit="ms")

# %% [markdown]
r"""
On a GPU each small operation costs the time of its launch, so the ways lie further apart:
"""

# %% cell="recorded_on_a_gpu"
from course_utils import show_recorded

show_recorded(
    {way: f"06_learning_rates/adamw_step_{way}_ms" for way in WAYS},
    unit="ms",
    device="cuda",
)

# %% [markdown]
r"""
By default most optimizers take `foreach` on a CUDA GPU, the loop on a CPU and on Apple's GPU. For a moment, `foreach` mostly needs memory for another copy of the parameters.

### Averaging weights

A decaying rate lets the weights settle. An average over the last steps does something similar at a
*constant* rate: `swa_utils.AveragedModel` keeps one beside the model. It averages parameters,
in their dtype (in bfloat16 a slow average stands still). Buffers it copies from the model at each update, so BatchNorm's
statistics are those of the last weights, not of the averaged ones. `update_bn` takes them anew, also in layers that you had put in eval; afterwards all layers are in the model's own mode. `use_buffers=True` averages
them, too, for an average as below, and rounds integers towards 0: at 0.9999 a `position_ids` of 511 becomes 510. (The plain one fails at a mask of bools, and on a GPU at BatchNorm's counter of batches, which is an integer.)
"""

# %% cell="averaged"
torch.manual_seed(4)
model = digit_mlp(width=32, norm="batch")
sgd = torch.optim.SGD(model.parameters(), lr=1.0)
decay_99 = swa_utils.get_ema_multi_avg_fn(0.99)
average = swa_utils.AveragedModel(model, multi_avg_fn=decay_99)


class AfterEachStep:  # `train_epoch` calls it like a scheduler
    def step(self):
        average.update_parameters(model)


def test_loss(net):
    with torch.no_grad():
        return F.cross_entropy(net.eval()(data.X_test), data.y_test).item()


for _ in range(10):
    train_epoch(model.train(), sgd, AfterEachStep())
print(f"last weights:             test loss {test_loss(model):.3f}")
print(f"average, old statistics:  test loss {test_loss(average):.3f}")
swa_utils.update_bn(data.X_train.split(64), average)
print(f"average, after update_bn: test loss {test_loss(average):.3f}")

# %% [markdown]
r"""
The keys of its state dict begin with `module.`, and there is one more, `n_averaged`: chapter 12 is
about such prefixes.
"""

# %% [markdown]
r"""
## 5 · Folklore check

What popular posts say, run against the PyTorch that is installed here. Each cell ends in an
assertion.

> **"`StepLR(optimizer, 10, 0.1)` multiplies the rate by 0.1 every ten epochs."**
>
> **"Set up Adam, and a StepLR on it."**
> *Correct*, if it is stepped once at the end of each epoch.
"""

# %% cell="claim_000_25_002_44"
counts = rates_used(scheduler_first=False)
print(dict(counts))

assert counts == {"1e-03": 10, "1e-04": 10, "1e-05": 5}

# %% [markdown]
r"""
> **"`for n in n_epoch:` begin with `scheduler.step()`, then train."** (2018, and again in 2022)
> *Wrong*, since PyTorch 1.1 of 2019, and an integer cannot be looped over.
"""

# %% cell="claim_000_26_002_45"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    counts = rates_used(scheduler_first=True)
print(dict(counts), caught[0].category.__name__)
try:
    for _ in 25:
        pass
except TypeError as error:
    message = str(error)
    print(message)

assert counts == {"1e-03": 9, "1e-04": 10, "1e-05": 6}
assert "before `optimizer.step()`" in str(caught[0].message)
assert "not iterable" in message

# %% [markdown]
r"""
> **"Layers can have different learning rates; collect their parameters in lists."**
> *Correct.* Leave nothing out: what is in no list is not trained, without a word.
"""

# %% cell="claim_000_32"
torch.manual_seed(0)
model = digit_mlp()
early = [p for n, p in model.named_parameters() if not n.startswith("head.")]
late = list(model.head.parameters())
sgd = torch.optim.SGD(
    [{"params": early, "lr": 0.01}, {"params": late, "lr": 0.1}]
)
start = copy.deepcopy(model)
F.cross_entropy(model(data.X_train), data.y_train).backward()
sgd.step()

for (name, parameter), old in zip(
    model.named_parameters(), start.parameters(), strict=True
):
    rate = 0.1 if name.startswith("head.") else 0.01
    torch.testing.assert_close(parameter, old - rate * parameter.grad)
assert len(early) + len(late) == len(list(model.parameters()))

# %% [markdown]
r"""
> **"Pass a list of dicts; what the groups share goes outside."**
>
> **"The outer `lr` is for the groups without one; a group's own wins."**
> *Both correct*, for `weight_decay`, `momentum` and whatever else the step computes with. `differentiable` and Adagrad's `initial_accumulator_value` count from outside alone.
"""

# %% cell="claim_000_33_34"
a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
sgd = torch.optim.SGD(
    [{"params": [a]}, {"params": [b], "lr": 0.1, "weight_decay": 0.0}],
    lr=0.01,
    weight_decay=0.5,
)
a.grad, b.grad = torch.ones(1), torch.ones(1)
sgd.step()
print(f"a moved by {1 - a.item():.3f}, b by {1 - b.item():.3f}")

torch.testing.assert_close(a.detach(), torch.tensor([1 - 0.01 * (1 + 0.5)]))
torch.testing.assert_close(b.detach(), torch.tensor([1 - 0.1]))

# %% [markdown]
r"""
> **"`weight_decay` adds an L2 penalty, which favours small weights."**
> *Half the story:* exact for SGD and Adam if the loss reaches each weight and nothing clips its gradient, not for AdamW.

The penalty is $\frac{\lambda}{2}\lVert w \rVert^2$, so that its gradient is $\lambda w$. The option adds that within
`step()`, so clipping (chapter 08) limits a penalty in the loss, and not the option. In Adam it
passes through the averages and the division like every gradient: beside large gradients of the loss little of it is left; alone,
large or small, it is scaled to about the same step. AdamW leaves it out of the gradient and shrinks the weights by $1 - \text{lr}\,\lambda$.
And AdamW decays by default: 0.01. With the same `weight_decay`, `Adam(decoupled_weight_decay=True)` is AdamW. `Muon`, for matrices alone, decays by 0.1 if you do not say
otherwise.
"""


# %% cell="claim_004_35"
def two_weights(kind, explicit, **settings):
    w = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    decay = 0.0 if explicit else 0.1
    optimizer = kind([w], lr=0.1, weight_decay=decay, **settings)
    for _ in range(5):
        loss = 3 * w[0] + w[1]
        if explicit:
            loss = loss + 0.1 / 2 * w.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return w.detach()


gaps = {}
for kind, settings in (
    (torch.optim.SGD, {}),
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.Adam, {}),
    (torch.optim.AdamW, {}),
):
    by_option = two_weights(kind, False, **settings)
    gap = (by_option - two_weights(kind, True, **settings)).abs().max().item()
    gaps.setdefault(kind.__name__, []).append(gap)
    print(f"{kind.__name__:5} {settings!s:17} apart by {gap:.3g}")

assert max(gaps["SGD"] + gaps["Adam"]) < 1e-12
assert gaps["AdamW"][0] > 0.1
assert torch.optim.AdamW([a]).defaults["weight_decay"] == 0.01
matrix = nn.Parameter(torch.ones(2, 2))
assert torch.optim.Muon([matrix]).defaults["weight_decay"] == 0.1
assert torch.optim.Adam([a]).defaults["weight_decay"] == 0

# %% [markdown]
r"""
> **"A layer that gets no gradient still shrinks to zero under `weight_decay`."**
> *Outdated.* With `grad=None` it keeps every bit. With a gradient of zeros it depends on the
> optimizer.

The default of `zero_grad` has been `None` since 2.0. Zeros come from `set_to_none=False`, if the layer
was used before, from an output that is cut away or multiplied by 0, and, in a compiled model, often from outputs that the loss leaves out. A dense embedding has them in the rows of all tokens that are not in the batch.
"""

# %% cell="claim_004_36"
ends = {}
for optimizer in OPTIMIZERS:
    ends[optimizer] = [norms_of_unused(optimizer, c)[-1] for c in CLEARED]
    print(f"{optimizer:14}", *(f"{ratio:8.4f}" for ratio in ends[optimizer]))
print(f"(1 - 0.1 * 0.1)^50 = {0.99**50:.4f}")
unused = {o: norms_of_unused(o, CLEARED[2], False)[-1] for o in OPTIMIZERS}
print("never used, 0 * output:", {o: round(r, 4) for o, r in unused.items()})

assert all(none == 1.0 for none, _, _ in ends.values())
assert abs(ends["SGD"][1] - 0.99**50) < 1e-12
assert abs(ends["SGD"][2] - 0.99**50) < 1e-12
assert ends["AdamW"][1] > 1.2
assert ends["Adam"][1] < 0.5
assert abs(unused["SGD"] - 0.99**50) < 1e-12
assert abs(unused["AdamW"] - 0.99**50) < 1e-12
assert unused["Adam"] < 0.2

# %% [markdown]
r"""
The columns are `None`, zeros, and `0 * output`, after one step that used the layer: it brings along what
momentum and Adam's averages remember. Without such a step plain SGD and AdamW shrink it alike.

> **"Never give the optimizer weights that should not change."**
> *Half the story:* good advice, but `grad=None` is skipped by SGD, Adam and AdamW alike.

Two things move them: a gradient that is left from before they were frozen; and a gradient of zeros, by decay, and by momentum also without
decay.
"""


# %% cell="claim_004_37"
def frozen_moves(kind, set_to_none, **settings):
    """How far a weight moves in five steps after it was frozen."""
    w, other = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = kind([w, other], lr=0.1, **settings)
    (w.sum() + other.sum()).backward()
    optimizer.step()
    w.requires_grad_(False)
    start = w.clone()
    for _ in range(5):
        optimizer.zero_grad(set_to_none=set_to_none)
        other.sum().backward()
        optimizer.step()
    return (w - start).abs().max().item()


decayed = {"weight_decay": 0.1}
skipped = [
    frozen_moves(torch.optim.SGD, True, momentum=0.9, **decayed),
    frozen_moves(torch.optim.Adam, True, **decayed),
    frozen_moves(torch.optim.AdamW, True, **decayed),
]
by_momentum = frozen_moves(torch.optim.SGD, False, momentum=0.9)
print("grad=None:", skipped)
print(f"zeros, momentum 0.9, no decay: {by_momentum:.2f}")

assert skipped == [0.0, 0.0, 0.0]
assert by_momentum > 0.3

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*, in float64 on the
CPU.
"""

# %% [markdown] task="train_in_steps" title="A schedule that keeps its plan" level="core" minutes=14 builds_on="section 2"
r"""
Write `train_in_steps(model, optimizer, loader, num_epochs, step_size, gamma)`, which trains while every
group's rate is multiplied by `gamma` after every `step_size` epochs.

```python
>>> model = nn.Linear(2, 1)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
>>> loader = [(torch.ones(3, 2), torch.ones(3, 1))]
>>> train_in_steps(model, optimizer, loader, num_epochs=3, step_size=2, gamma=0.1)
[[0.5], [0.5], [0.05]]
```

- The first `step_size` epochs use the rates that the optimizer has when your function is called. How the later
  ones come about is up to you: any scheduler of PyTorch, or your own arithmetic.
- Each epoch goes through `loader` once. For each pair `X`, `y` there is one step of *this* optimizer, on the gradient
  of `F.mse_loss(model(X), y)` alone: gradients that were there before do not count.
- It returns the rates that were used: for each epoch a list of floats, one for each group, in the order of
  `optimizer.param_groups`.
- Groups may begin with different rates. All their other settings stay as they are.
- Nothing warns, as long as each epoch has a batch.

<details><summary>Hint 1: the order</summary>

In each epoch: write down the rates, go through the loader, then step the scheduler. Make the scheduler once,
before the first epoch.
</details>
<details><summary>Hint 2: the rates to return</summary>

`scheduler.get_last_lr()` is a list with one number per group. After `scheduler.step()` it is already that of
the next epoch.
</details>
<details><summary>Help: nine epochs at the first rate instead of ten</summary>

The scheduler was stepped before the first epoch had been trained.
</details>
"""


# %% exercise="train_in_steps"
def train_in_steps(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader,  # yields X (n, ...), y of the shape of model(X)
    num_epochs: int,
    step_size: int,
    gamma: float,
) -> list[list[float]]:
    """Trains with a rate that drops every `step_size` epochs.

    Returns:
        The rates used: one list per epoch, with one number per group.
    """
    ### BEGIN SOLUTION
    drops = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    while len(rates) < num_epochs:
        rates.append(drops.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        drops.step()
    return rates
    ### END SOLUTION


# %% check="train_in_steps"
with visible_check("train_in_steps"):
    torch.manual_seed(0)
    line = nn.Linear(2, 1).double()
    adam = torch.optim.Adam(line.parameters(), lr=0.5)
    pairs = [(torch.ones(3, 2).double(), torch.ones(3, 1).double())] * 2
    taken = []
    adam.register_step_pre_hook(
        lambda o, *_: taken.append(o.param_groups[0]["lr"])
    )
    got = train_in_steps(
        line, adam, pairs, num_epochs=3, step_size=2, gamma=0.1
    )
    expect("the rate of each step", taken, [0.5] * 4 + [0.05] * 2)
    expect("what you return", got, [[0.5], [0.5], [0.05]])

# %% grade="train_in_steps" points=6

# %% [markdown] task="make_optimizer" title="Every parameter in one group" level="core" minutes=16 builds_on="section 2, names of parameters (chapter 04)"
r"""
Write `make_optimizer(model, rates, lr, weight_decay, momentum, decay_all)`, which returns a `torch.optim.SGD` with a rate for
each part of the model and every trainable parameter exactly once.

```python
>>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
>>> groups = make_optimizer(model, {"1": 0.5}, lr=0.1, weight_decay=0.01).param_groups
>>> sorted({(group["lr"], group["weight_decay"]) for group in groups})
[(0.1, 0.0), (0.1, 0.01), (0.5, 0.0), (0.5, 0.01)]
```

- `rates` maps paths to learning rates. A path fits a parameter if it is the parameter's name, or the beginning of it up to a
  dot: `backbone` fits `backbone.0.weight`, and not `backbone2.weight`. If several fit, the longest decides; if none does,
  the rate is `lr`.
- The weight decay is `weight_decay`. With `decay_all=False` parameters with fewer than two dimensions get 0.
- `momentum` is for all of them. All other settings are SGD's defaults. How many groups there are is up to you.
- A path that fits no parameter of the model raises a `ValueError` or a `KeyError`.
- `rates` and the model stay as they are, and nothing warns.

<details><summary>Hint 1: one pass</summary>

Go through `model.named_parameters()` once and decide for each parameter its rate and its decay.
</details>
<details><summary>Hint 2: paths that end at a dot</summary>

`(name + ".").startswith(path + ".")` is true for the name itself and for everything below it.
</details>
<details><summary>Hint 3: from decisions to groups</summary>

A dict from `(rate, decay)` to a list of parameters becomes a list of groups. A group for every single parameter
works as well.
</details>
<details><summary>Help: "Boolean value of Tensor ... is ambiguous", or sizes that must match</summary>

`p in some_list` compares tensors by value. Compare `id(p)`, or names.
</details>
"""


# %% exercise="make_optimizer"
def make_optimizer(
    model: nn.Module,
    rates: dict[str, float],
    lr: float,
    weight_decay: float,
    momentum: float = 0.0,
    decay_all: bool = False,
) -> torch.optim.SGD:
    """SGD with a rate for each path, and each trainable parameter once.

    Raises:
        ValueError or KeyError: a path fits no parameter.
    """
    ### BEGIN SOLUTION
    grouped: dict[tuple[float, float], list[nn.Parameter]] = {}
    unseen = set(rates)
    for full, p in model.named_parameters():
        paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]
        unseen.difference_update(paths)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        if p.requires_grad:
            grouped.setdefault((rate, decay), []).append(p)
    if unseen:
        raise ValueError(f"no parameter is at {sorted(unseen)}")
    groups = [
        {"params": members, "lr": rate, "weight_decay": decay}
        for (rate, decay), members in grouped.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)
    ### END SOLUTION


# %% check="make_optimizer"
with visible_check("make_optimizer"):
    layers = {"conv1": nn.Conv2d(1, 2, 3), "conv10": nn.Conv2d(2, 2, 3)}
    small = nn.Sequential()
    for name, layer in layers.items():
        small.add_module(name, layer)
    found = {}
    for group in make_optimizer(small, {"conv1": 0.5}, 0.1, 0.01).param_groups:
        for parameter in group["params"]:
            found[id(parameter)] = group["lr"], group["weight_decay"]
    expect("how many parameters it has", len(found), 4)
    for name, wanted in (("conv1", (0.5, 0.01)), ("conv10", (0.1, 0.01))):
        seen = found.get(id(layers[name].weight))
        expect(f"lr and weight_decay of {name}.weight", seen, wanted)

# %% grade="make_optimizer" points=7

# %% [markdown] task="decayed_step" title="Weight decay, made by hand" level="hard" minutes=20 builds_on="section 3, what section 5 says about decay"
r"""
Write `decayed_step(model, optimizer, X, y, weight_decay, decoupled)`, one training step on `F.mse_loss(model(X), y)` in which you
bring the weight decay $\lambda$ yourself, to an optimizer that was made without.

```python
>>> model = nn.Linear(1, 1, bias=False)
>>> model.weight.data.fill_(2.0)
tensor([[2.]])
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
>>> x, y = torch.ones(1, 1), torch.full((1, 1), 2.0)
>>> decayed_step(model, optimizer, x, y, weight_decay=0.5)
0.0
>>> model.weight.data
tensor([[1.9000]])
```

- With `decoupled=False`, $\lambda w$ is added to the gradient of each weight $w$, as by the option `weight_decay` of SGD and Adam.
- With `decoupled=True`, each weight is multiplied by $1 - \text{lr}\,\lambda$, lr being the rate of its group, and then takes the
  optimizer's step on the plain gradient, as in AdamW. That gradient is of the weights before they shrink.
- What is decayed: every parameter that is in the optimizer *and* is reached by this step's loss, once, biases and scalars too. One
  that this loss does not reach keeps every bit.
- Gradients from before do not count. Afterwards the optimizer's settings are as before, and no hook of yours is left on it or on a parameter.
- It returns the loss before the step, without any penalty, as a Python float.

<details><summary>Hint 1: which parameters</summary>

After `optimizer.zero_grad()` and `backward()`, the parameters whose `.grad` is not `None` are those that the loss has reached.
(In a compiled model a layer can get zeros if its output is returned and the loss does not use it. The cases have none.)
</details>
<details><summary>Hint 2: where to change them</summary>

Between `backward()` and `step()`, under `torch.no_grad()`: `p.grad.add_(...)` or `p.mul_(...)`, for each `p` of each group.
</details>
<details><summary>Help: a penalty in the loss gives other numbers</summary>

Its gradient is λ·w only if the penalty is λ/2 · the *sum of squares*, and only over what the loss reaches: a penalty over
all parameters reaches all of them.
</details>
"""


# %% exercise="decayed_step"
def decayed_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    X: Tensor,  # (n, ...)
    y: Tensor,  # of the shape of model(X)
    weight_decay: float,
    decoupled: bool = False,
) -> float:
    """One step with weight decay; returns the loss without it."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    error = F.mse_loss(model(X), y)
    error.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            reached = [p for p in group["params"] if p.grad is not None]
            for p in reached:
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return error.item()
    ### END SOLUTION


# %% check="decayed_step"
with visible_check("decayed_step"):
    for by_hand, kind in ((False, torch.optim.Adam), (True, torch.optim.AdamW)):
        torch.manual_seed(1)
        mine = nn.Linear(3, 1).double()
        theirs = copy.deepcopy(mine)
        plain = torch.optim.Adam(mine.parameters(), lr=0.1)
        built_in = kind(theirs.parameters(), lr=0.1, weight_decay=0.5)
        X, y = torch.randn(4, 3).double(), torch.randn(4, 1).double()
        decayed_step(mine, plain, X, y, 0.5, decoupled=by_hand)
        F.mse_loss(theirs(X), y).backward()
        built_in.step()
        what = f"the weight with decoupled={by_hand}"
        expect(what, mine.weight.detach(), theirs.weight.detach())

# %% grade="decayed_step" points=8

# %% [markdown]
r"""
## 7 · Recap

- The optimizer steps, then the scheduler. Read the rate before training with it.
- A scheduler counts calls. Per epoch or per batch is your decision, and must fit its plan.
- `ReduceLROnPlateau` wants the metric, and `mode="max"` where more is better. Warm-up goes in front of most others by `SequentialLR`. `OneCycleLR` and `CyclicLR` replace each group's rate.
- Today: warm-up, then a cosine, a line, or a constant rate with a fall at the end. Count steps of the optimizer.
- A group is a dict: its own options win, the rest comes from outside, and a misspelt key is no error. Count
  the parameters.
- Prefixes end at a dot. Replace layers first, make the optimizer afterwards.
- `weight_decay` is an L2 penalty under SGD and Adam, which no clipping limits. AdamW shrinks the weights themselves, by 0.01 · lr if you do not
  say otherwise.
- `grad=None` is skipped, whatever the decay, by all but LBFGS. Zeros are a gradient.

**Primary sources**

- PyTorch: [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate),
  [per-parameter options](https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options),
  [zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html),
  [weight averaging](https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema); the order of calls changed with
  [version 1.1.0](https://github.com/pytorch/pytorch/releases/tag/v1.1.0).
- Decay outside the gradient: I. Loshchilov and F. Hutter, [Decoupled Weight Decay
  Regularization](https://arxiv.org/abs/1711.05101), 2017.
- Warm-up: P. Goyal and others, [Accurate, Large Minibatch SGD](https://arxiv.org/abs/1706.02677), 2017.
- Warm-up, stable, decay: S. Hu and others, [MiniCPM](https://arxiv.org/abs/2404.06395), 2024.
- Averages: P. Izmailov and others, [Averaging Weights Leads to Wider Optima](https://arxiv.org/abs/1803.05407), 2018.
"""
