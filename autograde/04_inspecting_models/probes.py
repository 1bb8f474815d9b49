"""Drives what the exercises of chapter 04 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. Models are built here from the sizes and names of the
case, since a model is no plain data.
"""

import builtins
import contextlib
import gc
import io
import os
import re
import subprocess
import sys
from collections import OrderedDict, namedtuple
from unittest import mock

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

# count_parameters


class Gain(nn.Parameter):
    """A kind of parameter that somebody made for a purpose."""


class Own(nn.Module):
    """Parameters of its own, in every kind of container, beside a submodule's."""

    def __init__(self, a, b):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.gain = Gain(torch.ones(a))
        self.rows = nn.ParameterList([torch.zeros(a), torch.zeros(a, b)])
        self.named = nn.ParameterDict({"tail": torch.zeros(b)})
        self.inner = nn.Linear(b, a)


class Buffered(nn.Module):
    """Buffers and tensors that are no parameters, beside some that are."""

    def __init__(self, a, b):
        super().__init__()
        self.norm = nn.BatchNorm2d(a)
        self.plain = nn.BatchNorm1d(b, affine=False)
        self.register_buffer("mask", torch.ones(a, b))
        self.register_buffer("passing", torch.ones(b), persistent=False)
        self.note = torch.ones(a)
        self.in_a_list = [nn.Linear(a, b)]
        self.layer = nn.Linear(a, b)


def tied(a, b):
    model = nn.Sequential(nn.Embedding(a, b), nn.Linear(b, a))
    model[1].weight = model[0].weight
    return model


def twice(a, b):
    shared = nn.Linear(b, b)
    return nn.Sequential(nn.Linear(a, b), shared, nn.Sequential(shared))


def frozen(model, *names):
    for name, parameter in model.named_parameters():
        if name in names or not names:
            parameter.requires_grad_(False)
    return model


def of_many_dtypes(a, b):
    model = nn.Sequential(
        nn.Linear(a, b, dtype=torch.bfloat16),
        nn.Linear(b, a, dtype=torch.complex64),
        nn.Linear(a, a, bias=False, dtype=torch.float64),
    )
    whole = torch.zeros(a, b, dtype=torch.int8)
    model.codes = nn.Parameter(whole, requires_grad=False)
    return model


def of_odd_memory(a, b):
    model = nn.Module()
    model.none = nn.Parameter(torch.zeros(0, a))
    model.same = nn.Parameter(torch.ones(1).expand(b))
    model.every_second = nn.Parameter(torch.zeros(2 * a, b)[::2])
    model.on_the_same = nn.Parameter(model.every_second.detach())
    return model


def warmed(a, b):
    model = nn.Sequential(nn.LazyLinear(b))
    model(torch.zeros(2, a))
    return model


def lazy_frozen(a, b):
    model = nn.Sequential(nn.Linear(a, b), nn.LazyLinear(b))
    for parameter in model[1].parameters():
        parameter.requires_grad = False  # `requires_grad_` refuses it
    return model


COUNTED = {
    "linear": lambda a, b: nn.Sequential(nn.Linear(a, b), nn.Linear(b, a)),
    "conv": lambda a, b: nn.Sequential(
        nn.Conv2d(a, b, 3), nn.Sequential(nn.ConvTranspose2d(b, a, (1, 2)))
    ),
    "own": Own,
    "recurrent": lambda a, b: nn.ModuleDict(
        {"module": nn.LSTM(a, b), "head": nn.Linear(b, a)}
    ),
    "attention": lambda a, b: nn.MultiheadAttention(2 * a, 2),
    "tied": tied,
    "twice": twice,
    "buffers": Buffered,
    "dtypes": of_many_dtypes,
    "odd memory": of_odd_memory,
    "without": lambda a, b: nn.Sequential(nn.ReLU(), nn.Dropout(0.5)),
    "frozen bias": lambda a, b: frozen(nn.Linear(a, b), "bias"),
    "frozen layer": lambda a, b: frozen(
        nn.Sequential(nn.Linear(a, b), nn.Linear(b, a)), "0.weight", "0.bias"
    ),
    "frozen tied": lambda a, b: frozen(tied(a, b), "0.weight"),
    "all frozen": lambda a, b: frozen(nn.Linear(a, b)),
    "lazy": lambda a, b: nn.Sequential(nn.Linear(a, b), nn.LazyLinear(b)),
    "lazy frozen": lazy_frozen,
    "lazy own": lambda a, b: nn.ParameterList(
        [torch.zeros(a, b), nn.UninitializedParameter()]
    ),
    "lazy norm": lambda a, b: nn.Sequential(nn.LazyBatchNorm1d()),
    # Only its buffers have no size yet.
    "lazy buffers": lambda a, b: nn.Sequential(
        nn.LazyBatchNorm1d(affine=False), nn.Linear(a, b)
    ),
    "alike": lambda a, b: nn.Sequential(nn.LayerNorm(a), nn.LayerNorm(a)),
    "warmed": warmed,
}


def count(count_parameters, case):
    with (
        torch.device(case.get("device", "cpu")),
        torch.random.fork_rng(devices=[]),
    ):
        model = COUNTED[case["kind"]](*case["sizes"])
    model.train(case.get("training", True))
    if case.get("gradients"):
        give_gradients(model)
    before = State(model)
    with torch.set_grad_enabled(case.get("grad", True)):
        try:
            counts = count_parameters(model)
        except ValueError:
            if case["kind"] != "lazy buffers":  # where one is asked for
                raise
            return {"refused": True}
        kept = torch.is_grad_enabled() == case.get("grad", True)
    return {
        "counts": counts,
        "changes": before.changes_in(model),
        "grad_mode_kept": kept,
    }


def count_again(count_parameters, case):
    """Counts, freezes the model and adds to it, and counts once more."""
    model = COUNTED[case["kind"]](*case["sizes"])
    count_parameters(model)
    model.requires_grad_(False)
    model.added = nn.Linear(*case["sizes"])
    return {"counts": count_parameters(model)}


def give_gradients(model):
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.ones_like(parameter)


class State:
    """What a look must not change, and the very tensors that a model holds."""

    def __init__(self, model):
        self.facts, self.tensors = described(model), tensors_of(model)

    def changes_in(self, model):
        """What of it is another now: the names of the facts."""
        facts, now = described(model), tensors_of(model)
        changed = [what for what in facts if facts[what] != self.facts[what]]
        if len(now) != len(self.tensors) or any(
            one is not other
            for one, other in zip(self.tensors, now, strict=False)
        ):
            changed.append("tensors")
        return changed


def tensors_of(model):
    parameters = list(model.parameters())
    gradients = [p.grad for p in parameters if p.grad is not None]
    return [*parameters, *gradients, *model.buffers()]


def described(model):
    """What of a model can change, in the order in which a learner hears of it."""
    entries = [
        (name, value)
        for name, value in [*model.named_parameters(), *model.named_buffers()]
        if not isinstance(value, nn.parameter.UninitializedTensorMixin)
    ]
    here = [value for _, value in entries if value.device.type == "cpu"]
    modules = list(model.modules())
    return {
        "modes": [module.training for module in modules],
        "hooks": [hook_count(module) for module in modules]
        + [len(value._backward_hooks or {}) for _, value in entries],
        "flags": [value.requires_grad for _, value in entries],
        "gradients": str([listed(value.grad) for value in here]),
        "values": str([listed(value) for value in here]),
        "dtypes": [
            f"{name} {value.dtype} {value.device}" for name, value in entries
        ],
        "attributes": [sorted(vars(module)) for module in modules]
        + [str(model)],
    }


def listed(value):
    return None if value is None else value.tolist()


def hook_count(module):
    return sum(
        len(hooks)
        for name, hooks in vars(module).items()
        if name.endswith("_hooks") and hooks is not None
    )


# layer_shapes

RUNS = []
"""What the spies have seen: (in training mode, gradients on), call by call."""


class Spy(nn.Module):
    """A leaf of one's own: notes the circumstances and passes its input on."""

    def forward(self, x):
        RUNS.append((self.training, torch.is_grad_enabled()))
        return x


class Nest(nn.Module):
    """A leaf that returns much more than a tensor."""

    def forward(self, x):
        return [x.sum(), (x, [x[:, :1]]), None, {"x": x}, 3, [], ()]


class Wraps(nn.Module):
    """A leaf that returns a tuple or a list with its input alone, or with
    nothing."""

    def __init__(self, kind, length):
        super().__init__()
        self.kind, self.length = kind, length

    def forward(self, x):
        return self.kind([x][: self.length])


Pair = namedtuple("Pair", ["values", "indices"])


class Odd:
    """Where the odd leaves are."""

    class Leaf(nn.Module):
        """A leaf with a child that is None, a name of its own for `repr`, and
        outputs that are nearly tensors, tuples or neither."""

        def __init__(self, a):
            super().__init__()
            self.register_module("downsample", None)
            self.table = nn.Parameter(torch.zeros(a, 2))

        def _get_name(self):
            return "CalledOtherwise"

        def forward(self, x):
            return [self.table, x, Pair(x, x[:, 0]), x.numpy()]


class Turns(nn.Module):
    """Turns its input in place, and with it the output of the layer before."""

    def forward(self, x):
        return x.t_()


class Fails(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error("this layer always fails")


class Applies(nn.Module):
    """Calls its submodules in the order of `calls`, whatever they return; of a
    tuple or list, the first tensor goes on. Notes the circumstances as a spy."""

    def __init__(self, modules, calls):
        super().__init__()
        for name, module in modules:
            self.add_module(name, module)
        self.calls = calls

    def forward(self, x):
        RUNS.append((self.training, torch.is_grad_enabled()))
        for name in self.calls:
            x = getattr(self, name)(x)
            while isinstance(x, tuple | list) and x:
                x = x[1] if isinstance(x, list) and len(x) > 1 else x[0]
        return x


class TwoInputs(nn.Module):
    def __init__(self, a, b, name):
        super().__init__()
        self.add_module(name, nn.Bilinear(a, b, 2))
        self.name = name

    def forward(self, x, y):
        return getattr(self, self.name)(x, y)


def shaped_model(case):
    """A model and its inputs."""
    first, second, third = case["names"]
    a, b = case["sizes"]
    batch = case["batch"]
    kind = case["kind"]
    rows = torch.full((batch, a), 0.5)
    if kind == "conv":
        layers = OrderedDict()
        layers[first] = nn.Conv2d(3, a, 3)
        layers["norm"] = nn.BatchNorm2d(a)
        layers[second] = nn.ReLU()
        layers["spy"] = Spy()
        layers["pool"] = nn.AdaptiveAvgPool2d(2)
        layers["flat"] = nn.Flatten()
        layers["drop"] = nn.Dropout(0.5)
        layers[third] = nn.Linear(4 * a, b)
        return nn.Sequential(layers), [torch.ones(batch, 3, 29, 31)]
    if kind == "tokens":
        lstm = nn.LSTM(a, b, batch_first=True)
        modules = [(first, nn.Embedding(9, a)), (second, lstm)]
        modules += [(third, nn.Linear(b, 2))]
        tokens = torch.arange(7).repeat(batch, 1)
        return Applies(modules, case["names"]), [tokens]
    if kind == "reused":
        act = nn.ReLU()
        modules = [(first, nn.Linear(a, a)), (second, act), (third, act)]
        calls = [first, second, first, third, third]
        return Applies(modules, calls), [rows]
    if kind == "order":
        inner = nn.Sequential(nn.Linear(a, b), nn.Sequential(nn.Tanh(), Spy()))
        last = nn.Sequential(nn.Linear(b, 2))  # as in a DataParallel
        modules = [("module", last), ("never", nn.Linear(a, b))]
        modules += [(third, nn.Sequential()), (second, inner), (first, Spy())]
        calls = [first, third, second, "module"]
        return Applies(modules, calls), [rows]
    if kind == "shared":
        act = nn.Dropout(0.5)
        towers = [nn.Sequential(act), nn.Sequential(nn.Linear(a, a), act)]
        modules = [(first, towers[0]), (second, towers[1])]
        return Applies(modules, [first, second, first]), [rows]
    if kind == "leaf":
        return nn.Linear(a, b), [rows]
    if kind == "own leaf":
        return Spy(), [rows]
    if kind == "two inputs":
        model = TwoInputs(a, b, first)
        return model, [rows, torch.ones(batch, b)]
    if kind == "nested":
        modules = [(first, Nest()), (second, nn.Flatten(0))]
        return Applies(modules, [first, second]), [rows]
    if kind == "wrapped":
        leaves = [Wraps(tuple, 1), Wraps(list, 1), Wraps(tuple, 0)]
        modules = list(zip(case["names"], leaves, strict=True))
        return Applies(modules, case["names"]), [rows]
    if kind == "odd":
        modules = [(first, Odd.Leaf(a)), (second, nn.Identity())]
        return Applies(modules, [first, second]), [rows]
    if kind == "turned":
        layers = [nn.Linear(a, b), Turns(), nn.Flatten(0)]
        return nn.Sequential(*layers), [rows]
    if kind == "double":
        return nn.Sequential(Spy(), nn.Linear(a, b)).double(), [rows.double()]
    if kind == "modes":
        tail = nn.Sequential(nn.BatchNorm1d(a), nn.Dropout(0.5), Spy())
        layers = [Spy(), nn.Dropout(0.3), tail, nn.Sequential(Spy())]
        return nn.Sequential(*layers, nn.Linear(a, b)), [rows]
    # "fails": something has been done before the exception.
    layers = [nn.BatchNorm1d(a), nn.Dropout(0.5), nn.Linear(a, b)]
    model = nn.Sequential(OrderedDict(zip(case["names"], layers, strict=True)))
    return model, [rows]


def prepare(case):
    model, inputs = shaped_model(case)
    modes = case.get("modes", [True])
    for place, module in enumerate(model.modules()):
        module.training = bool(modes[place % len(modes)])
    return model, inputs


def look(layer_shapes, case):
    model, inputs = prepare(case)
    others = []
    if case.get("hooks of others"):
        for module in model.modules():
            module.register_forward_hook(lambda *_: others.append("after"))
            module.register_forward_pre_hook(lambda *_: others.append("before"))
    for place, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(place % 3 != 1)
    if case.get("gradients"):
        give_gradients(model)
        for one in inputs:
            one.requires_grad_()
            one.grad = torch.ones_like(one)
    flags = [(one.requires_grad, one.grad) for one in inputs]
    before = State(model)
    given = [one.detach().clone() for one in inputs]
    RUNS.clear()
    with torch.set_grad_enabled(case.get("grad", True)):
        listed = layer_shapes(model, *inputs)
        grad_mode_kept = torch.is_grad_enabled() == case.get("grad", True)
    facts = {
        "runs": list(RUNS),
        "calls_seen_by_others": list(others),
        "changes": before.changes_in(model),
        "inputs_kept": all(map(torch.equal, inputs, given))
        and flags == [(one.requires_grad, one.grad) for one in inputs],
        "grad_mode_kept": grad_mode_kept,
        "global_hooks": len(nn.modules.module._global_forward_hooks),
    }
    # Later calls of the model must not reach the list any more.
    length = len(listed)
    with torch.no_grad():
        model.eval()(*inputs)
    grew = len(listed) != length
    return {"listed": listed, "grew": grew, **facts}


def look_twice(layer_shapes, case):
    """Two batches of other sizes; the first list must survive the second."""
    model, inputs = prepare(case)
    first = layer_shapes(model, *inputs)
    kept = list(first)
    other = [torch.cat([one, one]) for one in inputs]
    second = layer_shapes(model, *other)
    return {"listed": [*kept, *second], "first_kept": list(first) == kept}


def look_and_fail(layer_shapes, case):
    model, inputs = prepare(case)
    model[0].register_forward_hook(lambda *_: None)  # another's
    listed = layer_shapes(model, *inputs)
    errors = {"an error": LookupError, "an interrupt": KeyboardInterrupt}
    error = errors[case["raises"]]
    model.append(Fails(error))
    model[-1].training = bool(case["modes"][0])
    before = State(model)
    reaches, on = "nothing", case.get("grad", True)
    with torch.set_grad_enabled(on):
        try:
            layer_shapes(model, *inputs)
        except error:
            reaches = "its exception"
        kept = torch.is_grad_enabled() == on
    return {
        "listed": listed,
        "reaches": reaches,
        "changes": before.changes_in(model),
        "global_hooks": len(nn.modules.module._global_forward_hooks),
        "grad_mode_kept": kept and torch.is_grad_enabled(),
    }


# trainable_report, Stack


class Base(nn.Module):
    def __init__(self, a, b, names):
        super().__init__()
        self.add_module(names[0], nn.Linear(a, b))
        self.register_parameter(names[1], nn.Parameter(torch.zeros(b)))


class Derived(Base):
    def __init__(self, a, b, names):
        super().__init__(a, b, names)
        self.add_module(names[2], nn.Sequential(nn.Linear(b, a), nn.ReLU()))
        self.gain = nn.Parameter(torch.ones(()))
        self.empty = nn.Parameter(torch.zeros(0, b))


def reported_model(case):
    a, b = case["sizes"]
    names = case["names"]
    if case["kind"] == "inherited":
        return Derived(a, b, names)
    if case["kind"] == "tied":
        shared = nn.Linear(a, a)
        layers = [nn.Linear(a, a), nn.Linear(a, a, bias=False), shared]
        layers[1].weight = layers[0].weight
        model = nn.Sequential(OrderedDict(zip(names, layers, strict=True)))
        model.add_module("again", shared)
        return model
    if case["kind"] == "leaf":
        return nn.Conv2d(a, b, 3)
    if case["kind"] == "nested":
        layers = [Base(a, b, names), nn.LSTM(b, 2), Base(b, a, names)]
        parts = ["module", *names[1:]]  # as in a DataParallel
        return nn.Sequential(OrderedDict(zip(parts, layers, strict=True)))
    layers = [nn.Conv2d(1, a, 3), nn.BatchNorm2d(a), nn.Linear(a, b)]
    model = nn.Sequential(OrderedDict(zip(names, layers, strict=True)))
    model.register_buffer("steps", torch.zeros(3))
    return model


def report(trainable_report, case):
    """Gradients come from the case's seed: some drawn, some zero, some none."""
    model = reported_model(case).to(getattr(torch, case["dtype"]))
    parameters = list(model.parameters())
    for place, frozen_too in zip(
        range(len(parameters)), case.get("frozen", []), strict=False
    ):
        parameters[place].requires_grad_(not frozen_too)
    drawn = torch.Generator().manual_seed(case["seed"])
    for parameter, how in zip(parameters, case["gradients"], strict=False):
        if how == "none":
            continue
        # A frozen one may have a gradient from before it was frozen.
        f64 = torch.float64
        values = torch.randn(parameter.shape, generator=drawn, dtype=f64)
        values = values * (how != "zero") * case.get("scale", 1.0)
        if how == "nan":
            values[0] = float("nan")
        if how == "inf":
            values[0] = float("inf")
        if values.dim() > 1:  # as channels_last: `view(-1)` refuses it
            values = values.movedim(0, -1).contiguous().movedim(-1, 0)
        parameter.grad = values.to(parameter.dtype)
    before = State(model)
    made = trainable_report(model)
    return {
        "entries": list(made.items()) if isinstance(made, dict) else made,
        "all_names": [
            name for name, _ in model.named_parameters(remove_duplicate=False)
        ],
        "changes": before.changes_in(model),
    }


def report_again(trainable_report, case):
    """The report after a gradient has come and another parameter is frozen."""
    model = reported_model(case)
    before = dict(trainable_report(model))
    first, second, *_ = model.parameters()
    name = next(name for name, _ in model.named_parameters())
    first.grad = torch.ones_like(first)
    second.requires_grad_(False)
    again = trainable_report(model)
    return {
        "entries": list(again.items()),
        # a report without the one that changed has no reason to be another
        "as_before": name in before and again == before,
    }


def by_dimensions(model):
    """Weights and biases, each in the order in which they are registered."""
    parameters = list(model.parameters())
    weights = [p for p in parameters if p.dim() == 2]
    return weights, [p for p in parameters if p.dim() == 1]


def registered(Stack, case):
    """What a Stack knows to be its own, before and after a change of dtype."""
    stack = Stack(case["width"], case["depth"])
    shapes = sorted(tuple(p.shape) for p in stack.parameters())
    with torch.no_grad():
        for place, parameter in enumerate(stack.parameters()):
            parameter.fill_(place)
        for parameter in Stack(case["width"], case["depth"]).parameters():
            parameter.fill_(-1)
    held = [p.flatten()[0].item() for p in stack.parameters()]
    stack.to(torch.float64)
    x = torch.ones(2, case["width"], dtype=torch.float64)
    saved = stack.state_dict()
    return {
        "shapes": shapes,
        "apart": held == list(range(len(held))),
        "trainable": all(p.requires_grad for p in stack.parameters()),
        "saved": all(name in saved for name, _ in stack.named_parameters()),
        "after_to": str(stack(x).dtype),
    }


def trained(Stack, case):
    """Outputs with the weights of the case, before and after a step of SGD."""
    stack = Stack(case["width"], case["depth"]).to(torch.float64)
    Stack(case["width"], case["depth"] + 1)  # changes nothing of the first
    weights, biases = by_dimensions(stack)
    with torch.no_grad():
        for own, given in zip(weights, case["weights"], strict=False):
            own.copy_(given)
        for own, given in zip(biases, case["biases"], strict=False):
            own.copy_(given)
    stack.train(case["training"])
    x = case["x"]
    if case["step"]:
        x = x.clone().requires_grad_()
    out = stack(x)
    found = {"out": out.detach(), "number": len(weights) + len(biases)}
    if case["step"] and not out.requires_grad:
        found |= {"reaches_x": None, "after": None}
    elif case["step"]:
        out.square().sum().backward()
        found["reaches_x"] = x.grad
        torch.optim.SGD(stack.parameters(), lr=0.01).step()
        found["after"] = stack(case["x"]).detach()
    return found


# graph_of


class Diamond(nn.Module):
    """What one operation gives goes into several others."""

    def __init__(self, a, name):
        super().__init__()
        self.add_module(name, nn.Linear(a, a))
        self.name = name
        self.gain = nn.Parameter(torch.ones(a))

    def forward(self, x):
        h = getattr(self, self.name)(x)
        return h.exp() * h + h.tanh() * self.gain + self.gain


class Residual(nn.Module):
    """Two branches that run the same operations, and a layer never used."""

    def __init__(self, a, names, act):
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(a, a))
        self.names = names
        self.act = act

    def forward(self, x):
        left, right, _ = (getattr(self, name) for name in self.names)
        return self.act(left(x)) * self.act(right(x)) + x


class Number(nn.Module):
    """Gives one number, as a model with its loss inside."""

    def __init__(self, a, name):
        super().__init__()
        self.add_module(name, nn.Linear(a, a))
        self.name = name

    def forward(self, x):
        return getattr(self, self.name)(x).square().sum()


class Branches(nn.Module):
    """One operation takes what many branches give; a parameter is a number."""

    def __init__(self, a, names):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(2.0))
        for name in names:
            self.add_module(name, nn.Linear(a, a))
        self.names = names

    def forward(self, x):
        given = [getattr(self, name)(x) for name in self.names]
        first = given[0]
        others = [first.sin(), first.cos(), first.exp()]
        return torch.cat([*others, *given]) * self.gain


def graphed_model(case):
    a, names = case["width"], case["names"]
    if case["kind"] == "branches":
        model = Branches(a, ["module", *names[1:]])  # as in a DataParallel
        deep = nn.Sequential(nn.Sequential(nn.Linear(a, a)))
        setattr(model, names[1], deep)
        return model
    if case["kind"] == "residual":
        return Residual(a, names, getattr(nn, case["acts"][0])())
    if case["kind"] == "diamond":
        return Diamond(a, names[0])
    if case["kind"] == "number":
        return Number(a, names[0])
    if case["kind"] == "tokens":
        layers = [nn.Embedding(9, a), nn.Linear(a, a)]
        return nn.Sequential(*layers)
    layers = OrderedDict()
    for name in names[: case["depth"]]:
        layers[name] = nn.Linear(a, a)
        layers["act_" + name] = getattr(nn, case["acts"][len(layers) // 2])()
    if case["kind"] == "dropout":
        layers["drop"] = nn.Dropout(0.5)
    model = nn.Sequential(layers)
    if case["kind"] == "tied":
        model[2].weight = model[0].weight
    if case["kind"] == "frozen":
        model[0].requires_grad_(False)
        model[2].bias.requires_grad_(False)
    return model


def draw_graph(graph_of, case):
    model = graphed_model(case)
    model.train(case.get("training", True))
    runs = []
    model.register_forward_hook(lambda *_: runs.append(1))
    if case.get("gradients"):
        give_gradients(model)
    before = State(model)
    x = torch.ones(2, case["width"])
    if case["kind"] == "tokens":
        x = x.long()
    files = files_here()
    with torch.set_grad_enabled(case.get("grad", True)), Outside() as outside:
        made = graph_of(model, x)
        kept = torch.is_grad_enabled() == case.get("grad", True)
    facts = {
        "changes": before.changes_in(model),
        "x_kept": not x.requires_grad,
        "grad_mode_kept": kept,
        "runs": len(runs),
        "hooks": sum(len(p._backward_hooks or {}) for p in model.parameters()),
        "files": files_here() == files and not outside.written,
        "programs": outside.called,
    }
    source = getattr(made, "source", None)
    if not isinstance(source, str):
        return {"source": "missing", **facts}
    names = [name for name, _ in model.named_parameters()]
    return {**boxes_and_flows(source, names), **facts}


def fail_to_draw(graph_of, case):
    """A model that raises, under each grad mode; and what is left of it."""
    x, weight = case["x"].clone(), case["weight"].clone()
    model = nn.Sequential(nn.Linear(x.shape[1], 3), Fails(LookupError))
    with torch.no_grad():
        model[0].weight.copy_(weight)
    before, kept = State(model), []
    for on in (True, False):
        with torch.set_grad_enabled(on):
            try:
                graph_of(model, x)
            except LookupError:
                kept.append(torch.is_grad_enabled() == on)
    return {
        "kept": kept,
        "changes": before.changes_in(model),
        "x": x,
        "weight": model[0].weight.detach(),
    }


class Outside:
    """Counts the files that are opened for writing, wherever they are, and the
    programs that are called."""

    def __enter__(self):
        self.written, self.called = 0, 0
        opens, starts = builtins.open, subprocess.Popen

        def opened(file, mode="r", *args, **kwargs):
            self.written += bool(set(mode) & set("wax+"))
            return opens(file, mode, *args, **kwargs)

        def started(*args, **kwargs):
            self.called += 1
            return starts(*args, **kwargs)

        self.patches = [
            mock.patch.object(builtins, "open", opened),
            mock.patch.object(io, "open", opened),
            mock.patch.object(subprocess, "Popen", started),
        ]
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *error):
        for patch in self.patches:
            patch.stop()


def files_here():
    """Names and times of the files in the current folder."""
    return sorted((one.name, one.stat().st_mtime_ns) for one in os.scandir())


ID = r'(?:"(?:\\.|[^"\\])*"|[\w.]+)'
ATTRIBUTES = r'\[((?:"(?:\\.|[^"\\])*"|[^\]"])*)\]'


def unquoted(text):
    return text[1:-1].replace('\\"', '"') if text.startswith('"') else text


def first_line(label):
    lines = [one.strip() for one in re.split(r"\n|\\[nlr]", label)]
    return next((one for one in lines if one), "")


def boxes_and_flows(source, names):
    """The operations, the named parameters and what flows into an operation."""
    labels, after, drawn = {}, {}, {}
    edge = rf"^[ \t]*({ID})[ \t]*->[ \t]*({ID})[ \t]*(?:{ATTRIBUTES})?"
    for start, end, attributes in re.findall(edge, source, re.M):
        for one in (start, end):
            labels.setdefault(unquoted(one), [])
        if not re.search(r"dir\s*=\s*\"?none", attributes):
            after.setdefault(unquoted(start), set()).add(unquoted(end))
            both = unquoted(start), unquoted(end)
            drawn[both] = drawn.get(both, 0) + 1
    box = rf"^[ \t]*({ID})[ \t]*(?:{ATTRIBUTES})?[ \t]*;?[ \t]*$"
    for name, attributes in re.findall(box, source, re.M):
        if name in ("graph", "node", "edge", "digraph"):
            continue
        given = re.search(rf"label\s*=\s*({ID})", attributes)
        text = unquoted(given[1]) if given else unquoted(name)
        labels.setdefault(unquoted(name), []).append(first_line(text))
    kinds = {}
    for one, lines in labels.items():
        lines = lines or [one]
        operations = [x for x in lines if re.fullmatch(r"\w+Backward\d*", x)]
        parameters = [x for x in lines if x in names]
        kinds[one] = next(iter([*parameters, *operations]), lines[-1])
    flows = []
    for start, ends in after.items():
        if kinds[start] == "AccumulateGrad":
            continue
        reached = set(ends)
        for end in ends:
            if kinds[end] == "AccumulateGrad":
                reached |= after.get(end, set())
        flows += [
            (kinds[start], kinds[end])
            for end in reached
            if re.fullmatch(r"\w+Backward\d*", kinds[end])
        ]
    found = kinds.values()
    known = [
        (start, end)
        for start, end in flows
        if start in names or re.fullmatch(r"\w+Backward\d*", start)
    ]
    times = {}
    for ends, number in drawn.items():
        both = [kinds[one] for one in ends]
        if all(re.fullmatch(r"\w+Backward\d*", one) for one in both):
            ends = " to ".join(both)
            times[ends] = times.get(ends, 0) + number
    return {
        "source": "there",
        "operations": sorted(
            x for x in found if re.fullmatch(r"\w+Backward\d*", x)
        ),
        "parameters": sorted(x for x in found if x in names),
        "flows": sorted(known),
        "edges": times,
    }


# progress, seconds_for


class Endless(IterableDataset):
    """Its loader has a `__len__` that raises a TypeError."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)


class Counted:
    """A loader that counts what is taken from it and may fail on the way."""

    def __init__(self, batches, fails_at=None, error="LookupError"):
        self.batches, self.fails_at = batches, fails_at
        self.error = getattr(builtins, error)
        self.taken, self.started = 0, 0

    def __iter__(self):
        self.started += 1
        for place, batch in enumerate(self.batches):
            if place == self.fails_at:
                raise self.error("this batch cannot be read")
            self.taken += 1
            yield batch


class Unopened(Counted):
    """A loader whose length cannot be read: no TypeError, so no answer."""

    def __len__(self):
        raise self.error("this batch cannot be read")


class CountedWithLength(Counted):
    def __len__(self):
        return len(self.batches)

    def __getitem__(self, place):
        """By number it gives something else, as the data set of a loader."""
        return f"sample {place}"


class Short(CountedWithLength):
    """Has more batches than it says."""

    def __len__(self):
        return len(self.batches) - 1


def loader_of(case):
    """A loader of the kind of the case, and its length if it tells one."""
    batches = case["batches"]
    if case["kind"] == "sized":
        fails = case.get("fails_at"), case.get("error", "LookupError")
        return CountedWithLength(batches, *fails), len(batches)
    if case["kind"] == "short":
        return Short(batches), len(batches) - 1
    if case["kind"] == "unsized":
        return Counted(batches), None
    if case["kind"] == "unopened":
        return Unopened(batches, error=case.get("error", "LookupError")), None
    if case["kind"] == "generator":
        return (one for one in batches), None
    if case["kind"] == "iterator":
        return iter(batches), None
    if case["kind"] == "list":
        return batches, len(batches)
    values = torch.cat([one.flatten() for one in batches])
    if case["kind"] == "endless":
        return DataLoader(Endless(values.tolist()), batch_size=2), None
    loader = DataLoader(
        TensorDataset(values), batch_size=2, drop_last=case["drop_last"]
    )
    return loader, len(loader)


def counts_in(text):
    return [(int(a), int(b)) for a, b in re.findall(r"(\d+)/(\d+)", text)]


def last_line(text):
    lines = [one for one in re.split(r"[\r\n]", text) if one.strip()]
    return lines[-1] if lines else ""


def walk(progress, case):
    """Goes through a loader, all of it or the first few batches."""
    loader, length = loader_of(case)
    screen, elsewhere = io.StringIO(), io.StringIO()
    most = case.get("most")
    pairs, lag, reaches, too_early, shown = [], [], "nothing", False, True
    with (
        contextlib.redirect_stdout(elsewhere),
        contextlib.redirect_stderr(elsewhere),
    ):
        try:
            made = progress(loader, screen)
            lag.append(getattr(loader, "taken", 0))
            for i, batch in made:
                pairs.append((i, batch))
                lag.append(getattr(loader, "taken", len(pairs)) - len(pairs))
                if len(pairs) > 1:
                    shown = shown and bool(screen.getvalue().strip())
                if len(pairs) != length:
                    early = counts_in(screen.getvalue())
                    too_early = too_early or (length, length) in early
                if len(pairs) == most:
                    break
        except (
            *(AttributeError, LookupError, OSError),
            *(RuntimeError, TypeError, ValueError),
        ) as error:
            if "this batch cannot be read" not in str(error):
                raise
            reaches = type(error).__name__
            if case["kind"] == "unopened":  # asked before or after the first
                pairs.clear()
                lag.clear()
        gc.collect()
        replaced = sys.stdout is not elsewhere or sys.stderr is not elsewhere
    text = "" if screen.closed else screen.getvalue()
    counts = counts_in(text)
    if case["kind"] == "short":  # the bar may say anything
        too_early = False
    return {
        "numbers": [i for i, _ in pairs],
        "batches": [batch for _, batch in pairs],
        "taken_too_early": max(lag, default=0),
        "gone_through": max(1, getattr(loader, "started", 1)),
        "reaches": reaches,
        "written_elsewhere": bool(elsewhere.getvalue()) or replaced,
        "closed": screen.closed,
        "written": bool(text.strip()) or length == 0,
        "complete_too_early": too_early,
        "shown_on_the_way": shown,
        "complete_at_the_end": (length, length) in counts_in(last_line(text)),
        "counts_of_a_total": bool(counts),
    }


def same_objects(progress, case):
    """Whether the very batches of the loader come through."""
    batches = case["batches"]
    screen = io.StringIO()
    given = [batch for _, batch in progress(list(batches), screen)]
    same = [one is other for one, other in zip(given, batches, strict=False)]
    return {"same": same, "first": given[0] if given else None}


def seconds(seconds_for, case):
    """The seconds, or the name of the exception that a good rate raised."""
    try:
        return {"seconds": seconds_for(case["num_batches"], case["rate"])}
    except (ValueError, TypeError, IndexError, KeyError) as error:
        return {"raised": type(error).__name__}
