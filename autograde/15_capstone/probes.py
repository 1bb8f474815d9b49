"""Drives what the exercises of chapter 15 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. What is killed is a process of its own, forked for it, or a
run here whose folder is put back to what it was at that moment. It brings its
gradients along, by formula: autograd refuses to run in a fork once a GPU's threads
have been started.
"""

import contextlib
import copy
import errno
import functools
import io
import math
import os
import pathlib
import pickle
import random
import resource
import shutil
import signal
import sys
from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler

DTYPES = {"off": None, "float16": torch.float16, "bfloat16": torch.bfloat16}


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def fill(model, start):
    """Gives the parameters the values of `start`, scaled to their width."""
    with torch.no_grad():
        at = 0
        for parameter in model.parameters():
            values = start[at : at + parameter.numel()]
            at += parameter.numel()
            width = max(1, parameter.shape[-1]) if parameter.dim() else 1
            parameter.copy_(values.view_as(parameter) / width**0.5)
    return model


def contents(module):
    return {
        name: value.detach().clone()
        for name, value in module.state_dict().items()
    }


def generators():
    """The states of the three global generators, as something to compare."""
    _, keys, *of_numpy = np.random.get_state()
    return (
        torch.get_rng_state().numpy().tobytes(),
        keys.tobytes(),
        of_numpy,
        random.getstate(),
    )


# set_up, train_mode


class Block(nn.Module):
    """A linear layer, batch normalization and dropout."""

    def __init__(self, features, width):
        super().__init__()
        self.linear = nn.Linear(features, width)
        self.norm = nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.norm(self.linear(x)).tanh())


class Odd(nn.Module):
    """Parameters of one to five dimensions, in layers of all kinds."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(2, 2))
        self.line = nn.Conv1d(2, 2, 3)
        self.space = nn.Conv3d(1, 2, 1)
        self.table = nn.Embedding(3, 2)
        self.norm = nn.LayerNorm((2, 3))


class Net(nn.Module):
    """Blocks with names that are alike, and parameters of every shape."""

    def __init__(self, case):
        super().__init__()
        features, width = case["x"].shape[1], case["width"]
        self.stem = Block(features, width)
        self.stem2 = Block(width, width)
        self.body = nn.Sequential(
            OrderedDict(first=Block(width, width), norm=nn.LayerNorm(width))
        )
        self.temperature = nn.Parameter(torch.ones(()))
        self.bias_table = nn.Parameter(torch.ones(2, width))
        self.head = nn.Linear(width, 2)
        self.odd = Odd()
        if case["tied"]:
            self.shadow = nn.Linear(width, 2)
            self.shadow.weight = self.head.weight
            self.again = nn.Sequential(self.stem2)

    def forward(self, x):
        hidden = self.stem2(self.stem(x)) + self.bias_table[0]
        logits = self.head(self.body(hidden)) * self.temperature
        if hasattr(self, "shadow"):
            logits = logits + self.shadow(hidden * self.bias_table[1])
        return logits


def net_of(case, shift=0.0):
    with torch.random.fork_rng(devices=[]):
        net = Net(case).double()
    fill(net, case["start"] + shift)
    for name in case["frozen_before"]:
        net.get_parameter(name).requires_grad_(False)
    return net


def in_groups(optimizer, net):
    """For each parameter how often it is in the optimizer, with which decay and
    rate; and how many tensors there are no parameters of the net."""
    found = {id(p): [0, 0.0, 0.0] for p in net.parameters()}
    strangers = 0
    for group in optimizer.param_groups:
        for one in group["params"]:
            if id(one) not in found:
                strangers += 1
                continue
            entry = found[id(one)]
            entry[0] += 1
            entry[1:] = [float(group["weight_decay"]), float(group["lr"])]
    named = {name: found[id(p)] for name, p in net.named_parameters()}
    return named, strangers


OPTIONS = ("betas", "eps", "amsgrad", "maximize", "foreach", "fused")
OPTIONS += ("capturable", "differentiable")


def arranged(set_up, train_mode, case):
    """What `set_up` makes of a model."""
    net = net_of(case)
    net.body.eval()
    # what is frozen now may have been trained before
    for parameter in net.body.parameters():
        parameter.grad = torch.ones_like(parameter)
    modes = [one.training for one in net.modules()]
    printed, config = str(net), copy.deepcopy(case["config"])
    drawn = generators()
    optimizer, _ = set_up(net, config)
    rng_kept = drawn == generators()
    groups, strangers = in_groups(optimizer, net)
    return {
        "flags": flags_of(net),
        "gradients_kept": not any(
            p.requires_grad and p.grad is None for p in net.body.parameters()
        ),
        "counts": {name: entry[0] for name, entry in groups.items()},
        "decays": {
            name: entry[1] for name, entry in groups.items() if entry[0]
        },
        "rates": {name: entry[2] for name, entry in groups.items() if entry[0]},
        "strangers": strangers,
        "kind": type(optimizer).__name__,
        "options": sorted(
            {
                str([group.get(key) for key in OPTIONS])
                for group in optimizer.param_groups
            }
        ),
        "modes_kept": modes == [one.training for one in net.modules()],
        "rng_kept": rng_kept,
        "settings_kept": printed == str(net),
        "config_kept": config == case["config"],
        "weights": contents(net),
    }


def rates_of(optimizer):
    """The rate of every group that holds parameters."""
    return [
        float(group["lr"])
        for group in optimizer.param_groups
        if group["params"]
    ]


def planned(set_up, train_mode, case):
    """The rates of all steps, and of some beyond the plan."""
    net = net_of(case)
    optimizer, schedule = set_up(net, dict(case["config"]))
    rates, together = [], True
    for _ in range(case["num_steps"]):
        now = rates_of(optimizer)
        together &= max(now) - min(now) <= 1e-9 * case["config"]["lr"]
        rates.append(now[0])
        optimizer.step()
        schedule.step()
    return {"rates": rates, "together": together}


def give_gradients(net, number):
    for parameter in net.parameters():
        if parameter.requires_grad:
            parameter.grad = (parameter.detach() + number).cos()


def goes_on(set_up, train_mode, case):
    """Some steps, then the rest with a new model, optimizer and schedule into which
    the states were loaded."""
    net, rates = net_of(case), []
    optimizer, schedule = set_up(net, dict(case["config"]))
    for number in range(case["num_steps"]):
        if number == case["stop"]:
            stream = io.BytesIO()
            states = [one.state_dict() for one in (net, optimizer, schedule)]
            torch.save(states, stream)
            stream.seek(0)
            net = net_of(case, shift=1.0)
            optimizer, schedule = set_up(net, dict(case["config"]))
            parts = (net, optimizer, schedule)
            try:
                loaded = torch.load(stream)
            except pickle.UnpicklingError:
                return {"read": False}
            for one, state in zip(parts, loaded, strict=True):
                one.load_state_dict(state)
        rates.append(rates_of(optimizer)[0])
        give_gradients(net, number)
        optimizer.step()
        schedule.step()
    return {"read": True, "rates": rates, "weights": contents(net)}


def modes_after(set_up, train_mode, case):
    """The modes of all modules after some calls, and a batch that goes through."""
    net = net_of(case)
    if not case["unseen"]:
        set_up(net, dict(case["config"]))
    history, flags = [], flags_of(net)
    for before in case["before"]:
        if before == "eval":
            net.eval()
        elif before == "train":
            net.train()
        elif before == "mixed":
            net.eval()
            net.get_submodule("stem.norm").train()
            net.get_submodule("body.first").train()
        elif before == "parts":  # the model itself is in training mode
            net.train()
            net.body.eval()
        elif before == "others":  # until now, other parts were the frozen ones
            others = {**case["config"], "frozen": ["head", "stem2.norm"]}
            train_mode(net, others)
        train_mode(net, dict(case["config"]))
        history.append(
            {name: one.training for name, one in net.named_modules()}
        )
    # who freezes the same parts once more does no harm
    same_parts = not case["unseen"] and "others" not in case["before"]
    flags_kept = not same_parts or flags == flags_of(net)
    torch.default_generator.manual_seed(3)
    net(case["x"])
    return {
        "history": history,
        "flags_kept": flags_kept,
        "buffers": dict(contents_of_buffers(net)),
    }


def flags_of(net):
    return {name: p.requires_grad for name, p in net.named_parameters()}


def contents_of_buffers(net):
    for name, value in net.named_buffers():
        yield name, value.detach().clone()


def trained(set_up, train_mode, case):
    """Some steps of training, with a look in eval mode after each of them."""
    net = net_of(case)
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = contents(net)
    optimizer, schedule = set_up(net, dict(case["config"]))
    for number in range(case["num_steps"]):
        train_mode(net, dict(case["config"]))
        torch.default_generator.manual_seed(number)
        optimizer.zero_grad()
        net(case["x"]).square().mean().backward()
        optimizer.step()
        schedule.step()
        net.eval()
        net(case["x"])
    after = contents(net)
    moved = [name for name in before if not before[name].equal(after[name])]
    return {"weights": after, "moved": sorted(moved)}


# train_step


class Watched(nn.Module):
    """A classifier of rows that writes down how it is used.

    Its normalization is in eval mode while the rest is in training mode, as a
    frozen part is. With `own` it has a parameter beside its layers, with
    `sum_of_two` its last weight is a sum of two parameters, which get one gradient.
    Only where the case says so it minds its mode. A gradient becomes infinite where
    a row begins with POISON.
    """

    def __init__(self, case):
        super().__init__()
        features, width = case["num_features"], case["width"]
        self.first = nn.Linear(features, width)
        self.norm = (nn.BatchNorm1d if case["norm_minds"] else Still)(width)
        self.last = nn.Linear(width, case["num_classes"])
        self.gain = nn.Parameter(torch.ones(())) if case["own"] else None
        of_last = torch.zeros(case["num_classes"], width)
        self.more = nn.Parameter(of_last) if case["sum_of_two"] else None
        self.loudness, self.spied = case["loudness"], case["spied"]
        self.as_they_are = case["as_they_are"]
        self.forwards, self.events = [], []

    def forward(self, x):
        rows = x.detach().double()
        poisoned = bool((rows[:, 0] > POISON / 2).any())
        first = self.first(x.clamp(-9, 9))
        weight = self.last.weight
        if self.more is not None:
            weight = weight + self.more
        logits = nn.functional.linear(
            self.norm(first).tanh(), weight, self.last.bias
        )
        self.forwards.append(
            {
                "x": name_of(x.dtype),
                "autocast": autocast_now(),
                "layers": sorted(
                    {name_of(one.dtype) for one in (first, logits)}
                ),
                "weights": sorted(
                    {name_of(p.dtype) for p in self.parameters()}
                ),
                "modes": [one.training for one in self.modules()],
                "rows": len(rows),
            }
        )
        sums = rows.sum(1).tolist()
        self.events.append(["forward", "", sums])
        if logits.requires_grad:
            logits.register_hook(self.came_back(sums, poisoned))
        if not self.as_they_are:
            # in the dtype of the weights: it is the gradient that shall be small
            logits = logits.to(self.last.weight.dtype) * self.loudness
        if self.gain is not None:
            logits = logits * self.gain
        return logits.as_subclass(Spied) if self.spied else logits

    def came_back(self, sums, poisoned):
        def hook(gradient):
            self.events.append(["backward", autocast_now(), sums])
            return gradient * math.inf if poisoned else None

        return hook


class Still(nn.BatchNorm1d):
    """A normalization that uses its statistics in training mode, too."""

    def forward(self, x):
        statistics = self.running_mean, self.running_var
        return nn.functional.batch_norm(x, *statistics, self.weight, self.bias)


class Spied(torch.Tensor):
    """Logits that note whether the loss that is made of them is under autocast."""

    seen: list[str] = []  # noqa: RUF012 - emptied before each use

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in LOSSES:
            cls.seen.append(autocast_now())
        return super().__torch_function__(function, types, args, kwargs or {})


LOSSES = ("cross_entropy", "log_softmax", "nll_loss", "logsumexp")
POISON = 1000.0


def autocast_now():
    if not torch.is_autocast_enabled("cpu"):
        return "off"
    return name_of(torch.get_autocast_dtype("cpu"))


def close_autocast():
    """Switches autocast off and forgets its copies of weights: what is left on
    would reach into what is run next."""
    while torch.autocast_decrement_nesting() > 0:
        pass
    torch.clear_autocast_cache()
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_cache_enabled(True)
    torch.set_autocast_dtype("cpu", torch.bfloat16)


class Scaler(torch.amp.GradScaler):
    """PyTorch's scaler, which counts its updates."""

    num_updates = 0

    def update(self, new_scale=None):
        self.num_updates += 1
        super().update(new_scale)


class Schedule(lr_scheduler.LambdaLR):
    """Lowers the rate at every step, and counts its steps."""

    def __init__(self, optimizer):
        self.num_steps = -1  # the first one is its own
        super().__init__(optimizer, lambda step: 0.7**step)

    def step(self, *arguments):
        self.num_steps += 1
        super().step(*arguments)


def watched_model(case):
    with torch.random.fork_rng(devices=[]):
        model = Watched(case)
    model.to(getattr(torch, case["weights_dtype"]))
    fill(model, case["start"])
    with torch.no_grad():
        model.norm.weight.fill_(1.0)
        model.norm.running_mean.fill_(0.2)
        model.norm.running_var.fill_(0.7)
    model.norm.eval()
    if case["frozen"]:
        model.norm.requires_grad_(False)
    return model


def vector_of(model):
    vector = nn.utils.parameters_to_vector(model.parameters())
    return vector.detach().double().clone()


def momentum_of(optimizer):
    kept = [
        state["momentum_buffer"].flatten().double()
        for state in optimizer.state.values()
        if state.get("momentum_buffer") is not None
    ]
    return torch.cat(kept).clone() if kept else torch.zeros(0).double()


def gradients_left(parameters):
    kept = [p.grad for p in parameters if p.grad is not None]
    return sum(float(one.double().abs().sum()) for one in kept)


FACTS = ("loss", "grad_norm", "skipped", "lr", "scale")


def stepped(train_step, case):
    """Some optimizer steps, one after another."""
    model = watched_model(case)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(
        [
            {"params": [p for p in trained if p.dim() > 1]},
            {
                "params": [p for p in trained if p.dim() <= 1],
                "lr": 2 * case["lr"],
            },
        ],
        lr=case["lr"],
        momentum=case["momentum"],
        weight_decay=case["weight_decay"],
    )
    in_step = []
    optimizer.register_step_pre_hook(
        lambda *_: in_step.append(autocast_now()) and None
    )
    Spied.seen.clear()
    schedule = Schedule(optimizer)
    scaler = Scaler(device="cpu", **case["scaler"])
    if case["old_gradients"]:
        # also those of what was frozen since
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    modes = [one.training for one in model.modules()]
    config = {"max_norm": case["max_norm"], "dtype": DTYPES[case["autocast"]]}
    history, start, list_kept = [], vector_of(model), True
    torch.default_generator.manual_seed(7)
    drawn = generators()
    close_autocast()
    try:
        for batches in case["steps"]:
            pairs = [(x, y) for x, y in batches]
            given = list(map(id, pairs))
            facts = train_step(
                model, optimizer, schedule, scaler, pairs, dict(config)
            )
            list_kept &= given == list(map(id, pairs))
            facts = dict(facts) if isinstance(facts, dict) else {}
            history.append(
                {
                    "keys": sorted(map(str, facts)),
                    "types": [type(facts.get(one)).__name__ for one in FACTS],
                    "facts": {
                        one: float(facts[one])
                        for one in FACTS
                        if isinstance(facts.get(one), bool | int | float)
                    },
                    "weights": vector_of(model),
                    "momentum": momentum_of(optimizer),
                    "schedule_steps": schedule.num_steps,
                    "num_steps": len(in_step),
                    "updates": scaler.num_updates,
                    "scale_after": scaler.get_scale(),
                    "left": gradients_left(trained),
                }
            )
            close_autocast()
    finally:
        close_autocast()
    return {
        "start": start,
        "list_kept": list_kept,
        "history": history,
        "forwards": [
            {key: one[key] for key in ("x", "autocast", "layers", "weights")}
            for one in model.forwards
        ],
        "rows": [one["rows"] for one in model.forwards],
        "modes_kept": modes == [one.training for one in model.modules()]
        and all(one["modes"] == modes for one in model.forwards),
        "order": [one[0] for one in model.events],
        "in_backward": sorted({one[1] for one in model.events if one[1]}),
        "in_step": sorted(set(in_step)),
        "in_loss": sorted(set(Spied.seen)),
        "samples": torch.tensor(
            sorted(
                0.0 if math.isnan(one) else one
                for _, back, sums in model.events
                for one in sums
                if back
            ),
            dtype=torch.float64,
        ),
        "rng_kept": drawn == generators(),
        "buffers": dict(contents_of_buffers(model)),
    }


# Processes

CHILD_LIMIT_S = 20


def in_child(function):
    """Runs `function()` in a forked process.

    Returns:
        (how, value): how it ended, "returned", "raised" or "killed", and what it
        returned or the name of what it raised.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = ("raised", "")
        try:
            os.close(reader)
            signal.alarm(CHILD_LIMIT_S)
            torch.set_num_threads(1)
            answer = ("returned", function())
        except BaseException as error:
            answer = ("raised", type(error).__name__)
        finally:
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(answer, stream)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        sent = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return pickle.loads(sent) if status == 0 else ("killed", None)


def in_this_process(function):
    """Runs `function()` here. The answer is that of `in_child`."""
    try:
        return "returned", function()
    except BaseException as error:
        return "raised", type(error).__name__


class Killed(BaseException):
    """Ends a run where a signal would: see `until_killed`."""


def until_killed(run, folder):
    """Runs `run(die)` in this process until that calls `die()`, and puts the folder back
    to what it was at that moment, whatever was written on the way out. All that a killed
    process does not leave behind is what Python holds: some cases fork for that.
    The answer is that of `in_child`."""
    kept = folder.with_name("as_it_was")

    def die():
        if not kept.exists():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder, kept, symlinks=True)
        raise Killed

    with watched():
        how, value = in_this_process(lambda: run(die))
    if not kept.exists():
        return how, value
    shutil.rmtree(folder)
    kept.rename(folder)
    return "killed", None


def die_at_once():
    os.kill(os.getpid(), signal.SIGKILL)


# File operations

WATCHERS = []


def _to_the_watchers(event, arguments):
    for one in WATCHERS:
        one(event, arguments)


@functools.cache
def _begin_to_watch():
    sys.addaudithook(_to_the_watchers)  # which nothing takes away again


@contextlib.contextmanager
def watched():
    """What is put among the watchers within it sees what Python is about to do with
    files, as an audit hook does, and what PyTorch opens."""
    _begin_to_watch()
    real = torch.save

    def seen_by_the_watchers(obj, f, *args, **kwargs):
        _to_the_watchers("open", (f, "wb", 0))
        real(obj, f, *args, **kwargs)

    torch.save = seen_by_the_watchers
    try:
        yield
    finally:
        torch.save = real
        WATCHERS.clear()


def seed_all(seed):
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


# fit


class Regression(nn.Module):
    """A small model that brings its gradients along, by formula."""

    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(3, width)
        self.dropout = nn.Dropout(0.4)
        self.still = nn.Identity().eval()  # as a frozen part
        self.head = nn.Linear(width, 1)
        self.register_buffer("center", torch.zeros(3))
        self.register_buffer("steps_seen", torch.tensor(0))

    @torch.no_grad()
    def loss_and_gradients(self, x, y):
        """Mean squared error, and its gradients in the order of the parameters."""
        self.steps_seen += 1
        # another tensor, and not the old one with other numbers
        self.center = self.center.lerp(x.mean(0), 0.1)
        x = x - self.center
        hidden = self.hidden(x)
        kept = self.still(self.dropout(torch.ones_like(hidden)))
        features = hidden * kept
        error = self.head(features) - y
        up = 2 * error / len(x)
        down = up @ self.head.weight * kept
        gradients = (down.T @ x, down.sum(0), up.T @ features, up.sum(0))
        return error.square().mean(), gradients


class Meter:
    """A part of nobody's library, with a state of its own."""

    def __init__(self):
        self.seen, self.total = 0, 0.0

    def state_dict(self):
        return {"seen": self.seen, "total": self.total}

    def load_state_dict(self, state):
        self.seen, self.total = state["seen"], state["total"]


SCHEDULES = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3, 0.5),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 1 / (1 + n)),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.2, total_steps=60),
}


class Run:
    """A training run as the chapter's `ToyRun`, which notes what happens in it.

    Attributes:
        stop: where this process is killed; None if it is not.
        die: kills it.
        steps_made, evaluations: what was done in this process.
    """

    def __init__(self, case, folder, stop=None, die=die_at_once):
        self.case, self.folder, self.stop = case, folder, stop
        self.die = die
        self.config = dict(case["config"])
        model = Regression(case["width"])
        optimizer = torch.optim.SGD(
            model.parameters(), lr=case["lr"], momentum=0.9
        )
        self.parts = {
            "model": model,
            "optimizer": optimizer,
            "schedule": SCHEDULES[case["schedule"]](optimizer),
            "scaler": torch.amp.GradScaler(
                "cpu", init_scale=case["scale"], growth_interval=4
            ),
        }
        if case["meter"]:
            self.parts["meter"] = Meter()
        self.steps_made, self.evaluations = [], 0
        self.facts = {}
        self.modes, self.modes_kept = self.modes_now(), True
        self.gradients, self.gradients_kept = self.gradients_now(), True
        self.gradients_on = True

    def modes_now(self):
        return [one.training for one in self.parts["model"].modules()]

    def gradients_now(self):
        return [
            None if p.grad is None else p.grad.clone()
            for p in self.parts["model"].parameters()
        ]

    def look(self):
        """Whether modes and gradients are those that the run has left, and gradient
        mode is on."""
        self.modes_kept &= self.modes == self.modes_now()
        self.gradients_on &= torch.is_grad_enabled()
        pairs = zip(self.gradients, self.gradients_now(), strict=True)
        self.gradients_kept &= all(
            (one is None) == (other is None)
            and (one is None or torch.equal(one, other))
            for one, other in pairs
        )

    def batches(self, epoch):
        own = torch.Generator().manual_seed(self.case["seed"] + epoch)
        order = torch.randperm(len(self.case["x"]), generator=own)
        order = order[: self.num_samples(epoch)]
        return list(order.split(self.case["batch_size"]))

    def num_samples(self, epoch):
        return len(self.case["x"]) - epoch % 2 * self.case["shorter"]

    def steps_before(self, epoch):
        size = self.case["batch_size"]
        return sum(-(-self.num_samples(one) // size) for one in range(epoch))

    def dies(self, place, at):
        stop = self.stop
        if stop is not None and (stop["in"], stop["at"]) == (place, at):
            if place == "error":
                raise RuntimeError("something in this step failed")
            self.die()

    def step(self, indices):
        self.look()
        model, optimizer = self.parts["model"], self.parts["optimizer"]
        schedule, scaler = self.parts["schedule"], self.parts["scaler"]
        noise = 0.1 * np.random.standard_normal()
        sign = random.choice((-1.0, 1.0)) * (1 + 0.1 * random.gauss(0, 1))
        x = self.case["x"][indices] * sign + noise
        loss, gradients = model.loss_and_gradients(x, self.case["y"][indices])
        scale = scaler.scale(torch.ones(()))
        for parameter, gradient in zip(
            model.parameters(), gradients, strict=True
        ):
            parameter.grad = gradient * scale
        facts = {
            "loss": loss.item() / 3,  # a float that float32 does not hold
            "lr": optimizer.param_groups[0]["lr"],
            "scale": scaler.get_scale(),
            "noise": float(noise * sign),
            "batch": str(indices.tolist()),  # one thing to write and to read
        }
        if self.case["one_dict"]:
            self.facts.update(facts)
            facts = self.facts
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        if "meter" in self.parts:
            self.parts["meter"].seen += len(indices)
            self.parts["meter"].total += loss.item()
            facts["meter"] = self.parts["meter"].total
        number = int(model.steps_seen)
        self.gradients = self.gradients_now()
        self.dies("step", number)
        self.dies("error", number)
        self.steps_made.append(number)
        self.prepare(number)
        return facts

    def prepare(self, number):
        """Lets the process die in what it does with files after this step."""
        stop = self.stop
        if stop is None or stop["at"] != number:
            return
        if stop["in"] == "write":
            sizes = [one.stat().st_size for one in self.checkpoints()]
            limit = int(stop["share"] * max(sizes, default=4000))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if stop["in"] == "copy":
            WATCHERS.append(self.dies_in_a_copy)
        if stop["in"] == "file":
            left = [stop["nth"]]

            def watch(event, arguments):
                if event in FILE_EVENTS and in_folder(arguments, self.folder):
                    left[0] -= 1
                    if left[0] < 0:
                        WATCHERS.clear()
                        self.die()

            WATCHERS.append(watch)

    def dies_in_a_copy(self, event, arguments):
        """The process dies where it has begun to write a file that has the name of
        a checkpoint already. And its folder is on a disk of its own: what comes
        from elsewhere is copied, or is refused."""
        if event == "os.rename" and in_folder(arguments[1:2], self.folder):
            source = pathlib.Path(os.fsdecode(arguments[0])).absolute()
            if not source.is_relative_to(self.folder):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        if event != "open" or not in_folder(arguments[:1], self.folder):
            return
        path, _, flags = arguments
        name = os.path.basename(os.fsdecode(path))
        if re_step(name) and flags & (os.O_WRONLY | os.O_RDWR):
            WATCHERS.clear()
            pathlib.Path(os.fsdecode(path)).write_bytes(b"PK")
            self.die()

    def evaluate(self):
        epochs_done = 0
        while self.steps_before(epochs_done) < self.parts["model"].steps_seen:
            epochs_done += 1
        self.evaluations += 1
        self.look()
        self.dies("evaluate", epochs_done)
        torch.rand(self.case["evaluation_draws"])
        if "meter" in self.parts:
            self.parts["meter"].total += 1
        return self.case["metrics"][(epochs_done - 1) % 8]

    def checkpoints(self):
        return sorted(self.folder.glob("step_*.pt"))


FILE_EVENTS = ("open", "os.rename", "os.remove", "os.link", "os.truncate")


def in_folder(arguments, folder):
    """Whether a file operation is about something in the folder."""
    for one in arguments[:2]:
        if isinstance(one, str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(one))
            if os.path.dirname(name) == str(folder):
                return True
    return False


def plain(value):
    """A copy of states and logs, of plain data."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return type(value).__name__


def report(run, result, between):
    """What a run came to."""
    pair = isinstance(result, tuple | list) and len(result) == 2
    log, best = result if pair else (None, None)
    best = best if isinstance(best, dict) else {}
    draws = [
        torch.rand(()).item(),
        np.random.standard_normal(),
        random.random(),
    ]
    names = sorted(one.name for one in run.folder.iterdir())
    return {
        "kinds": [type(log).__name__, type(best.get("metric")).__name__],
        "log": plain(log),
        "best": {key: plain(best.get(key)) for key in ("epoch", "metric")},
        "best_model": plain(best.get("model")),
        "model": contents(run.parts["model"]),
        "parts": {
            name: plain(part.state_dict())
            for name, part in run.parts.items()
            if name != "model"
        },
        "draws": draws,
        "steps_made": run.steps_made,
        "evaluations": run.evaluations,
        "modes_kept": run.modes_kept,
        "gradients_on": run.gradients_on,
        "gradients_kept": run.gradients_kept,
        "torn": [default_load(one) for one in run.checkpoints()].count(None)
        if run.case["looks_at_the_end"]
        else 0,
        "names": [one for one in names if re_step(one)],
        "others": [one for one in names if not re_step(one)],
        "between": between,
    }


def re_step(name):
    return name.startswith("step_") and name.endswith(".pt")


JUNK = {
    "notes.txt": "notes",
    "best.pt": "another's",
    "step_log.json": "{}",
    "labels.tmp": "somebody's",
}


def killed_and_resumed(fit, case):
    """A run in processes that are killed at the case's stops, one after the other,
    and then here to the end. If the case forks, these are processes of their own, and
    the last one has not begun the run.

    Every process is seeded differently, as processes are: what must go on cannot
    come from a seed.
    """
    folder = pathlib.Path("runs").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder = folder / case["folder"]
    if case["junk"]:
        folder.mkdir()
        for name, text in JUNK.items():
            (folder / name).write_text(text)
        if case["junk"] == "and weights":
            torch.save({"weight": torch.ones(2)}, folder / "weights.pt")
    survived, between, spoilt = 0, [], set()

    def start(seed, stop, folder, die=die_at_once):
        seed_all(seed)
        run = Run(case, folder, stop, die)
        return report(run, fit(run, folder), between)

    for number, stop in enumerate(case["stops"]):
        seed = case["seed"] + 1000 * number
        process = functools.partial(start, seed, stop, folder)
        if case["forks"] or stop["in"] == "write":
            how, _ = in_child(process)
        else:
            how, _ = until_killed(process, folder)
        if how == "raised" and stop["in"] != "error":
            start(seed, None, folder)
            raise RuntimeError("the process that ran this ended early")
        survived += how == "returned" and stop["in"] != "end"
        folder.mkdir(parents=True, exist_ok=True)
        if case["looks_between"]:
            between.append(what_is_in(folder, spoilt))
        folder = after_a_process(case, stop, folder, number, spoilt)
    seed = case["seed"] + 1000 * len(case["stops"])
    ended = start(seed, None, folder)
    return {**ended, "survived": survived}


def what_is_in(folder, spoilt):
    """What is found in the folder. Files that others have spoilt may be removed, and
    may stay."""
    found = [
        one
        for one in sorted(folder.glob("step_*.pt"))
        if one.name not in spoilt or default_load(one)
    ]
    whole = [default_load(one) for one in found]
    return {
        "names": [one.name for one in found],
        "torn": whole.count(None),
        "read": not any(one is False for one in whole),
    }


def after_a_process(case, stop, folder, number, spoilt):
    """What others do to the folder then. Returns where it is, and notes in `spoilt`
    what they have spoilt."""
    for deed in stop.get("then", []):
        found = sorted(folder.glob("step_*.pt"))
        if deed == "tear" and found:
            content = found[-1].read_bytes()
            found[-1].write_bytes(content[: int(0.7 * len(content))])
        if deed == "empty" and found:
            found[-1].write_bytes(b"")
            found[-2].write_text("x")  # neither raises what the other does
        if deed == "tear all":
            for one in found:
                one.write_bytes(one.read_bytes()[:700])
            spoilt.update(one.name for one in found)
        if deed == "older":  # as a run leaves them that kept more
            for step in (1, 3, 5):
                shutil.copy(found[-1], folder / f"step_{step:06d}.pt")
        if deed == "date":
            for place, one in enumerate(found):
                os.utime(one, (2e9 - 1000 * place, 2e9 - 1000 * place))
        if deed == "move":
            target = folder.with_name(f"{folder.name}_{number}")
            target.mkdir()
            for one in found[-1:]:
                one.rename(target / one.name)
            shutil.rmtree(folder)
            folder = target
        if deed == "perturb" and found:
            perturb(found[-1], case["factor"])
    return folder


def default_load(path):
    """True if `torch.load` reads the file; False if it refuses objects in it, None
    if it is not whole."""
    try:
        return _default_load(path.read_bytes())
    except OSError:
        return None


@functools.lru_cache(maxsize=16)
def _default_load(content):
    """Of a file that nobody has written to since: half of the time of a run would
    go into the lists of random states in it."""
    try:
        torch.load(io.BytesIO(content))
    except pickle.UnpicklingError:
        try:
            torch.load(io.BytesIO(content), weights_only=False)
        except Exception:
            return None
        return False
    except Exception:
        return None
    return True


def perturb(path, factor):
    """Multiplies all tensors of numbers in a checkpoint by a factor."""

    def changed(value):
        if isinstance(value, torch.Tensor):
            counts = value.is_floating_point() and value.dim() > 0
            return value * factor if counts else value
        if isinstance(value, dict):
            return type(value)((k, changed(v)) for k, v in value.items())
        if type(value) in (list, tuple):
            return type(value)(changed(one) for one in value)
        return value

    try:
        saved = torch.load(path)
    except Exception:
        return
    torch.save(changed(saved), path)


# summarize

KEYS = (
    "steps",
    "repeated",
    "skipped",
    "clipped",
    "epoch_losses",
    "best_epoch",
    "best_metric",
    "peak_lr",
    "resumed_after",
    "seconds",
)


def summarized(summarize, case):
    """The report of the lines of a case."""
    lines = list(case["lines"])
    found = summarize(lines, {"max_norm": case["max_norm"]})
    found = dict(found) if isinstance(found, dict) else {}
    if type(found.get("seconds")) is int:  # a sum of nothing
        found["seconds"] = float(found["seconds"])
    return {
        "keys": sorted(map(str, found)),
        "lines_kept": lines == list(case["lines"]),
        **{key: plain(found.get(key)) for key in KEYS},
    }
