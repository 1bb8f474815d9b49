"""Drives what the exercises of chapter 06 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. Rates and gradients are read by a hook in the moment in
which the optimizer steps, so what a function says of itself does not count.
"""

import warnings
from unittest import mock

import torch
from torch import nn


def made(make, start):
    """The module that `make()` makes, in float64, with the values of one long
    vector. The global random state is as before, so that a learner's draws show.
    """
    with torch.random.fork_rng(devices=[]):
        module = make().double()
    at = 0
    with torch.no_grad():
        for parameter in module.parameters():
            size = parameter.numel()
            parameter.copy_(start[at : at + size].view_as(parameter))
            at += size
    return module


def values_of(module):
    return {
        name: parameter.detach().clone()
        for name, parameter in module.named_parameters()
    }


def settings_of(optimizer, *without):
    """The plain settings of each group, in the order of their names."""
    return [
        [
            [key, group[key]]
            for key in sorted(group)
            if key not in ("params", "initial_lr", *without)
            and isinstance(group[key], bool | int | float | tuple | None)
        ]
        for group in optimizer.param_groups
    ]


def plain_batches(batches):
    return not any(
        tensor.requires_grad for batch in batches for tensor in batch
    )


def modes_of(module):
    return [one.training for one in module.modules()]


OPTIMIZERS = {
    "SGD": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "Adam": (torch.optim.Adam, {}),
    "AdamW": (torch.optim.AdamW, {"weight_decay": 0.0}),
    "RMSprop": (torch.optim.RMSprop, {}),
    "Rprop": (torch.optim.Rprop, {}),
    "decay": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "dampened": (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.1}),
}


# train_in_steps


class Shuffled:
    """Begins with another batch each time, and has no length."""

    def __init__(self, batches):
        self.batches, self.num_passes = batches, 0

    def __repr__(self):
        return f"a loader of {len(self.batches)} batches, in another order each time"

    def __iter__(self):
        first = self.num_passes % len(self.batches)
        self.num_passes += 1
        return iter(self.batches[first:] + self.batches[:first])


class Watched(nn.Sequential):
    """Notes at each call which of its modules are in training mode, and the
    input of the first. With `own` it has a parameter beside its layers."""

    def __init__(self, *layers, own):
        super().__init__(*layers)
        self.modes, self.first_input = [], None
        self.gain = nn.Parameter(torch.ones(2)) if own else None

    def forward(self, x):
        if not self.modes:
            self.first_input = x.detach().clone()
        self.modes.append(modes_of(self))
        out = super().forward(x)
        return out if self.gain is None else out * (1 + self.gain)


def trained(train_in_steps, case):
    """Trains a small network, and notes the rates at every step."""
    width = case["batches"][0][0].shape[-1]

    def network():
        layers = nn.Linear(width, 4), nn.Tanh(), nn.Linear(4, 2)
        return Watched(*layers, own=case["own"])

    model = made(network, case["start"])
    model.to(case["batches"][0][0].dtype)
    model.train(case["train"])
    first, between, last = model
    between.train(case["train_between"])
    modes = modes_of(model)
    first.bias.requires_grad_(not case["frozen_bias"])
    kind, settings = OPTIMIZERS[case["optimizer"]]
    lrs = case["lrs"]
    members = [[first.weight, first.bias], [last.weight], [last.bias]]
    if len(lrs) == 1:
        members = [list(model.parameters())]
    groups = [
        {"params": params, "lr": lr}
        for params, lr in zip(members, lrs, strict=True)
    ]
    if len(lrs) > 1:
        groups[1]["weight_decay"] = 0.01
    optimizer = kind(groups, **settings)
    before = settings_of(optimizer, "lr")
    used = []
    optimizer.register_step_pre_hook(
        lambda stepping, *_: used.append(
            [float(group["lr"]) for group in stepping.param_groups]
        )
    )
    if case["old_gradients"]:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    loader = case["batches"] if case["as_list"] else Shuffled(case["batches"])
    with mock.patch.object(warnings, "warn", wraps=warnings.warn) as warn:
        returned = train_in_steps(
            model,
            optimizer,
            loader,
            case["num_epochs"],
            case["step_size"],
            case["gamma"],
        )
    return {
        "number_of_warnings": warn.call_count,  # a filter may hide them
        "used": used,
        "returned": returned,
        "weights": values_of(model),
        "same_settings": settings_of(optimizer, "lr") == before,
        "num_groups": len(optimizer.param_groups),
        "calls": len(model.modes),
        "first_input": model.first_input,
        "modes_kept": all(one == modes for one in model.modes)
        and modes_of(model) == modes,
        "frozen_kept": first.bias.requires_grad is not case["frozen_bias"],
        "passes": getattr(loader, "num_passes", 0),
        "plain_batches": plain_batches(case["batches"]),
    }


# make_optimizer


class Scaled(nn.Module):
    """A model with parameters of zero, one and two dimensions of its own."""

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.zeros(()))
        self.empty = nn.Parameter(torch.zeros(0, 3))
        self.embedding = nn.Embedding(3, 2)
        self.norm = nn.LayerNorm(2)
        self.act = nn.PReLU(2)
        self.head = nn.Linear(2, 3)
        self.conv = nn.Conv2d(1, 2, 1)
        self.gate = nn.Linear(1, 1)


class Nested(nn.Module):
    """Paths that begin alike."""

    def __init__(self):
        super().__init__()
        blocks = [nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2)]
        self.backbone = nn.Sequential(*blocks)
        self.backbone2 = nn.Linear(2, 2)
        self.my_backbone = nn.Linear(2, 2)
        self.backbone_0 = nn.Linear(2, 2)
        self.head = nn.ModuleDict({"backbone": nn.Linear(2, 2)})
        self.drop = nn.Dropout()
        self.deep = nn.Sequential(nn.Sequential(nn.Sequential()))
        self.deep[0][0].append(nn.Linear(2, 1))


class Tied(nn.Module):
    """Two layers that share their weight."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(3, 2)
        self.between = nn.Linear(2, 2)
        self.decoder = nn.Linear(2, 3)
        self.decoder.weight = self.encoder.weight


class TiedAlone(Tied):
    """The same where the second layer has no parameter of its own."""

    def __init__(self):
        super().__init__()
        self.decoder.bias = None


MODELS = {
    "layers": lambda: nn.Sequential(*(nn.Linear(1, 2) for _ in range(12))),
    "scaled": Scaled,
    "nested": Nested,
    "tied": Tied,
    "tied alone": TiedAlone,
}


def a_model(case):
    model = made(MODELS[case["model"]], case["start"])
    for path in case["frozen"]:
        for name, parameter in model.named_parameters():
            if f"{name}.".startswith(f"{path}."):
                parameter.requires_grad_(False)
    return model.train(case["train"])


def state_of(model):
    return [
        [
            name,
            parameter.requires_grad,
            parameter.grad is None,
            parameter.detach().tolist(),
        ]
        for name, parameter in model.named_parameters()
    ] + [[name, one.training, []] for name, one in model.named_modules()]


def setting_in_words(value):
    """0 and 0.0 are one setting."""
    return str(float(value)) if type(value) in (int, float) else str(value)


def grouped(make_optimizer, case):
    """Where each parameter of the model stands in the optimizer."""
    model = a_model(case)
    rates = dict(case["rates"])
    options = {
        name: case[name] for name in ("momentum", "decay_all") if name in case
    }
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = state_of(model)
    optimizer = make_optimizer(
        model, rates, case["lr"], case["weight_decay"], **options
    )
    seen = {"is_sgd": isinstance(optimizer, torch.optim.SGD)}
    seen["model_kept"] = state_of(model) == before
    seen["values"] = values_of(model)
    seen["rates_kept"] = list(rates.items()) == list(case["rates"].items())
    if not isinstance(optimizer, torch.optim.Optimizer):
        return seen
    names = {
        id(parameter): name for name, parameter in model.named_parameters()
    }
    seen.update(times=dict.fromkeys(names.values(), 0), strangers=0)
    for key in ("lr", "weight_decay", "momentum"):
        seen[key] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = names.get(id(parameter))
            if name is None:
                seen["strangers"] += 1
                continue
            seen["times"][name] += 1
            for key in ("lr", "weight_decay", "momentum"):
                seen[key][name] = float(group.get(key, float("nan")))
    seen["others"] = sorted(
        {
            (key, setting_in_words(group.get(key)))
            for group in optimizer.param_groups
            for key in (
                "dampening",
                "nesterov",
                "maximize",
                "foreach",
                "fused",
                "differentiable",
            )
        }
    )
    for _ in range(2):
        for name, parameter in model.named_parameters():
            parameter.grad = None
            if parameter.requires_grad:
                parameter.grad = case["gradients"][name].clone()
        optimizer.step()
    seen["after_steps"] = values_of(model)
    return seen


def refused(make_optimizer, case):
    """Whether the case's paths are refused, and what stands in the groups if they
    are not."""
    try:
        seen = grouped(make_optimizer, case)
    except (ValueError, KeyError):
        return {"refused": True, "times": {}, "values": {}}
    facts = {key: seen.get(key, {}) for key in ("times", "values")}
    return {"refused": False, **facts}


# decayed_step


class Network(nn.Module):
    """A network some of whose parts come into play only when asked to."""

    def __init__(self, width, parts):
        super().__init__()
        self.body = nn.Linear(width, 3)
        self.norm = nn.BatchNorm1d(3) if "norm" in parts else nn.Identity()
        self.head = nn.Linear(3, 2)
        if "tied" in parts:
            self.again = self.body
        if "scalar" in parts:
            self.scalar = nn.Parameter(torch.zeros(()))
        if "twins" in parts:  # which are added up, and so get one gradient
            self.one, self.other = (
                nn.Parameter(torch.zeros(2)) for _ in range(2)
            )
        for name in ("side", "zeroed", "outside", "never", "frozen"):
            if name in parts:
                setattr(self, name, nn.Linear(width, 2))
        if "frozen" in parts:
            self.frozen.requires_grad_(False)
        self.side_is_used, self.num_calls, self.noted = True, 0, {}
        self.modes, self.unregistered = [], []

    def forward(self, x):
        self.num_calls += 1
        self.modes.append(modes_of(self))
        out = self.head(torch.tanh(self.norm(self.body(x))))
        for name in ("outside", "frozen"):
            if hasattr(self, name):
                out = out + getattr(self, name)(x)
        if hasattr(self, "zeroed"):
            out = out + 0 * self.zeroed(x)
        if hasattr(self, "side") and self.side_is_used:
            out = out + self.side(x)
        if hasattr(self, "one"):
            out = out + (self.one + self.other)
        if hasattr(self, "scalar"):
            out = out * self.scalar
        for parameter in self.unregistered:
            out = out + parameter
        self.noted = buffers_of(self)
        return out


def buffers_of(module):
    return {name: buffer.tolist() for name, buffer in module.named_buffers()}


def hooks_of(optimizer):
    """How many hooks the optimizer has, with those of its parameters."""
    held = [
        optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
    ]
    for group in optimizer.param_groups:
        for one in group["params"]:
            held += [one._backward_hooks, one._post_accumulate_grad_hooks]
    return sum(len(some or ()) for some in held)


def decayed(decayed_step, case):
    """Some steps with weight decay."""
    width = case["batches"][0][0].shape[-1]
    model = made(lambda: Network(width, case["parts"]), case["start"])
    model.train(case["train"])
    model.norm.train(case["train_norm"])
    modes, start = modes_of(model), values_of(model)
    extra = {
        name: nn.Parameter(case["start"][:2].clone())
        for name in ("unregistered", "stray")
        if name in case["parts"]
    }
    if "unregistered" in extra:
        model.unregistered.append(extra["unregistered"])
    if "stray" in extra:
        extra["stray"].grad = torch.ones(2, dtype=torch.float64)
    kind, settings = OPTIMIZERS[case["optimizer"]]
    early = [*model.body.parameters(), *model.norm.parameters()]
    late = list(model.head.parameters())
    for name in ("side", "zeroed", "never", "frozen"):
        if hasattr(model, name):
            late += getattr(model, name).parameters()
    for name in ("scalar", "one", "other"):
        late += [getattr(model, name)] if hasattr(model, name) else []
    late += extra.values()
    groups = [
        {"params": params, "lr": lr}
        for params, lr in zip((early, late), case["lrs"], strict=True)
    ]
    optimizer = kind(groups, **settings)
    if "later_lrs" in case:  # as a scheduler notes where it began
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    before, defaults = settings_of(optimizer), dict(optimizer.defaults)
    if case["old_gradients"]:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    by_name = {"decoupled": case["decoupled"]} if "decoupled" in case else {}
    by_place = list(by_name.values())
    losses, stayed, buffers_kept = [], True, True
    hooks = hooks_of(optimizer)
    for (X, y), side in zip(case["batches"], case["side_used"], strict=True):
        model.side_is_used = side
        still = values_of(model)
        given = model, optimizer, X, y, case["weight_decay"]
        if losses:
            losses.append(decayed_step(*given, **by_name))
        else:
            losses.append(decayed_step(*given, *by_place))
        later = zip(
            optimizer.param_groups, case.get("later_lrs", ()), strict=False
        )
        for group, lr in later:
            group["lr"] = lr
        buffers_kept = buffers_kept and buffers_of(model) == model.noted
        for name, value in values_of(model).items():
            part = name.partition(".")[0]
            if part in ("never", "frozen") or (part == "side" and not side):
                stayed = stayed and torch.equal(value, still[name])
    if "stray" in extra:
        stayed = stayed and torch.equal(extra["stray"], case["start"][:2])
    return {
        "weights": values_of(model)
        | {name: one.detach().clone() for name, one in extra.items()},
        "change_of_reached": torch.cat(
            [
                (value - start[name]).flatten()
                for name, value in values_of(model).items()
                if name.startswith(("body.", "head."))
            ]
        ),
        "buffers_kept": buffers_kept,
        "hooks_left": hooks_of(optimizer) > hooks,
        "losses": losses,
        "stayed": stayed,
        "calls": model.num_calls,
        "same_settings": settings_of(optimizer) == before
        and optimizer.defaults == defaults,
        "modes_kept": all(one == modes for one in model.modes)
        and modes_of(model) == modes,
        "plain_batches": plain_batches(case["batches"]),
    }
