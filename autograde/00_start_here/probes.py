"""Drives what the exercises of chapter 00 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret.
"""

import contextlib
import copy
import os
from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils import _device

# quiz


def answer(quiz, case):
    """The letter for the question of the case, in small letters."""
    given, form, letter = quiz(), "a letter", ""
    if not isinstance(given, dict):
        form = "no dict"
    elif case["question"] not in given:
        form = "no answer"
    else:
        letter = str(given[case["question"]]).strip().lower()
        if letter not in ("a", "b", "c", "d"):
            form, letter = "no letter", ""
    return {"letter": letter, "form": form, "ticket": case["ticket"]}


# choose_gpus

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


def environment(env_for, case):
    """What the new environment says, and what became of those that were there.

    With `of_process` the caller's environment is os.environ itself.
    """
    environ, own = dict(case["environ"]), {"PATH": "own", "TAG": case["tag"]}
    own |= {ORDER: "FASTEST_FIRST", VISIBLE: "63"}  # count for nothing
    if case.get("of_process"):
        own = environ
    options = [case["override"]] if "override" in case else []
    gpus = case["gpus"]
    if case.get("as_range"):
        gpus = range(*gpus)
    asked_for = copy.copy(gpus)
    with mock.patch.dict(os.environ, own, clear=True):
        given = os.environ if case.get("of_process") else environ
        made = env_for(gpus, given, *options)
        facts = {
            "environ": {**given},
            "os.environ": {**os.environ},
            "is a dict": type(made) is dict,
            "is another": made is not given,
            "gpus stayed": gpus == asked_for,
        }
        entries = {**made} if hasattr(made, "keys") else {}
    rest = {key: one for key, one in entries.items() if key not in NAMES}
    return {
        **facts,
        "variable": entries.get(VISIBLE),
        "order": entries.get(ORDER),
        "rest": rest,
    }


NAMES = (VISIBLE, ORDER)


def refusal(env_for, case):
    """The environment, or that the GPUs were refused with a ValueError."""
    try:
        return environment(env_for, case)
    except ValueError:
        return {"refused": True, "tag": case["tag"]}


def seen_cards(physical_ids, case):
    """The list; with `again` that of a second call, after the caller has written
    into the first."""
    visible, num_gpus = case["visible"], case["num_gpus"]
    ids = physical_ids(visible, num_gpus)
    if case.get("again") and isinstance(ids, list):
        ids.append(-1)
        ids = physical_ids(visible, num_gpus)
    return {"ids": ids}


def name_of_card(cuda_name, case):
    """The name, or that the program does not see the card."""
    visible, num_gpus = case["visible"], case["num_gpus"]
    try:
        return {"name": cuda_name(case["gpu"], visible, num_gpus)}
    except ValueError:
        return {"refused": True}


# to_device

Pair = namedtuple("Pair", ["first", "second"])
One = namedtuple("One", ["only"])


class Sample:
    """An object that holds a tensor and is no container."""

    def __init__(self, x):
        self.x = x

    def to(self, device):
        return Sample(self.x.to(device))


@dataclass
class Record:
    """Another one, whose fields can be asked for."""

    x: torch.Tensor


class Fields:
    """No tuple, although it has what a named tuple has."""

    _fields = ("x",)


def build(form, t, case):
    """A batch of this form, of the tensors `t`."""
    others = [None, "text", 7, 2.5, True, np.arange(3), Sample(t[0]), b"raw"]
    others += [{case["key"]}, range(3), iter("ab"), Record(t[0])]
    forms = {
        "a tensor": lambda: t[0],
        "a list": lambda: [t[0], t[1], t[2]],
        "a tuple": lambda: (t[0], t[1], t[2]),
        "a tuple of one": lambda: (t[1],),
        "a list that begins with text": lambda: ["text", t[0], t[1]],
        "a tuple that begins with a number": lambda: (case["number"], t[0]),
        "an nn.Parameter": lambda: nn.Parameter(t[0]),
        "a frozen nn.Parameter": lambda: nn.Parameter(t[0], False),
        "an nn.Module": lambda: [nn.Linear(2, 1), t[0]],
        "an object with _fields": lambda: Fields(),
        "a list with an nn.Parameter": lambda: [t[1], nn.Parameter(t[0])],
        "a dict": lambda: {"x": t[0], "y": t[1], case["key"]: t[2]},
        "a dict with numbers and tuples as keys": lambda: {
            case["number"]: t[0],
            ("a", 1): t[1],
            None: t[2],
        },
        "a dict with a tensor as key": lambda: {t[0]: t[1], "x": t[2]},
        "a named tuple": lambda: Pair(t[0], t[1]),
        "an OrderedDict": lambda: OrderedDict(z=t[1], a=t[0], m=t[2]),
        "a list of dicts": lambda: [{"x": t[0]}, {"x": t[1], "y": t[2]}],
        "a dict of lists and tuples": lambda: {
            "x": [t[0], (t[1], case["key"])],
            "y": ((t[2],), [None]),
        },
        "named tuples in named tuples": lambda: Pair(
            Pair(t[0], [t[1]]), {"deep": Pair(t[2], None)}
        ),
        "a list of named tuples": lambda: [Pair(t[0], 2), One(t[1]), (t[2],)],
        "an OrderedDict in a tuple": lambda: (
            OrderedDict(b=[t[0]], a=(t[1],)),
            t[2],
        ),
        "five levels": lambda: [({"a": [(t[0], {"b": t[1]})]}, t[2])],
        "objects of other kinds": lambda: [*others, t[0]],
        "None": lambda: None,
        "text": lambda: case["key"],
        "a number": lambda: case["number"],
        "an object of a class": lambda: Sample(t[0]),
        "an object of a dataclass": lambda: Record(t[0]),
        "a set": lambda: {case["key"], 3},
        "a range": lambda: range(4),
        "an iterator": lambda: iter([t[0]]),
        "a UserDict": lambda: UserDict(x=t[0]),
        "a bytearray": lambda: bytearray(b"raw"),
        "a mapping that is no dict": lambda: MappingProxyType({"x": t[0]}),
        "a NumPy array": lambda: np.arange(4),
        "an empty list": list,
        "an empty dict": dict,
        "an empty tuple": lambda: (),
        "empty containers": lambda: {
            "a": [],
            "b": ({}, OrderedDict()),
            "c": t[0],
        },
    }
    return forms[form]()


CONTAINERS = (dict, list, tuple)


def _named(key, before):
    """The key, or which one of those from before a tensor is."""
    if not isinstance(key, torch.Tensor):
        return key
    places = [i for i, one in enumerate(before) if one is key]
    return f"tensor {places[0]}" if places else "another tensor"


def _described(value, original, values):
    """Plain data that says what stands where.

    `original` is what stood there before: an object that is no tensor and no
    container must be the same one.
    """
    if isinstance(value, torch.Tensor):
        facts = {
            "is": "a tensor",
            "device": value.device.type,
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "needs a gradient": value.requires_grad,
        }
        if values and value.device.type != "meta":
            facts["values"] = value.detach().double().reshape(-1).tolist()
        return facts
    kind = type(value).__name__
    if isinstance(value, dict):
        before = original if isinstance(original, dict) else {}
        return {
            "is": kind,
            "same type": type(value) is type(original),
            "keys": [_named(key, before) for key in value],
            "items": [
                _described(one, before.get(key), values)
                for key, one in value.items()
            ],
        }
    if isinstance(value, list | tuple):
        before = original if isinstance(original, CONTAINERS[1:]) else ()
        before = [*before, *([None] * len(value))]
        return {
            "is": kind,
            "same type": type(value) is type(original),
            "items": [
                _described(one, old, values)
                for one, old in zip(value, before, strict=False)
            ],
        }
    facts = {"is": kind, "same object": value is original}
    return {**facts, "value": value} if isinstance(value, str | int) else facts


def _identities(value):
    """Which objects stand where in a batch, and how they are."""
    here = [id(value), type(value).__name__]
    if isinstance(value, torch.Tensor):
        return [*here, value._version, value.requires_grad, str(value.device)]
    if isinstance(value, Sample | Record):
        return [*here, id(value.x)]
    if isinstance(value, nn.Module):
        return [*here, *map(_identities, value.parameters())]
    if isinstance(value, dict):
        items = [
            [_named(key, value), id(key), _identities(one)]
            for key, one in value.items()
        ]
        return [*here, *items]
    if isinstance(value, list | tuple):
        return [*here, *map(_identities, value)]
    return here


def moved(to_device, case):
    """How the batch looks after the move, and whether the old one is as it was."""
    tensors = [one.clone() for one in case["tensors"]]
    tensors = [
        one.requires_grad_() if needs else one
        for one, needs in zip(tensors, case["needs_gradient"], strict=True)
    ]
    batch = build(case["batch"], tensors, case)
    before = _identities(batch)
    contents = [one.detach().clone() for one in tensors]
    device = case["device"]
    if case.get("as_object"):
        device = torch.device(device)
    out = to_device(batch, device)
    same = _identities(batch) == before and all(
        _alike(one.detach(), old)
        for one, old in zip(tensors, contents, strict=True)
    )
    return {
        "moved": _described(out, batch, case["device"] == "cpu"),
        "the caller's batch stayed": same,
    }


def _alike(one, other):
    """Whether the numbers are the same, where NaN equals NaN."""
    return bool(((one == other) | ((one != one) & (other != other))).all())


def moved_strided(to_device, case):
    """Views and transposed tensors, moved to the CPU where they are already."""
    table = case["table"]
    views = [table.T, table[:, 1], table[::2], table[0, 0]]
    out = to_device({"views": views}, "cpu")["views"]
    return {
        "values": [one.contiguous() for one in out],
        "count": len(out),
    }


def gradient_through_the_move(to_device, case):
    """What reaches the leaf when the moved tensor is used.

    No number comes back from meta: there the way to the leaf is looked for.
    """
    leaf = case["x"].clone().requires_grad_()
    far = to_device([{"x": leaf * 2}], "meta")[0]["x"]
    out = to_device([{"x": leaf * 2}], "cpu")[0]["x"]
    facts = {"arrives from meta": _leads_to(far.grad_fn, leaf)}
    own = nn.Parameter(case["x"].clone())
    (used,) = to_device([own], "cpu")
    if used.requires_grad:
        (used * case["scale"]).sum().backward()
    facts["gradient of an nn.Parameter"] = own.grad
    if not out.requires_grad:
        return {**facts, "gradient": None}
    (out * case["scale"]).sum().backward()
    return {**facts, "gradient": leaf.grad}


def _leads_to(node, leaf):
    """Whether the graph behind this node reaches the leaf."""
    if node is None:
        return False
    if getattr(node, "variable", None) is leaf:
        return True
    return any(_leads_to(one, leaf) for one, _ in node.next_functions)


# token_rnn


def _model(TokenRNN, case):
    """A model with the weights of the case, and the names it does not have, or has
    where the module does not know them, as in a Python list."""
    with torch.random.fork_rng(devices=[]):
        model = TokenRNN(case["num_tokens"], case["width"], case["num_layers"])
    found = model.load_state_dict(case["state"], strict=False)
    lacks = {"absent": [], "hidden": []}
    for name in sorted(found.unexpected_keys):
        one, value = _reached(model, name), case["state"][name]
        there = isinstance(one, torch.Tensor) and one.shape == value.shape
        if there:
            one.data.copy_(value)
        lacks["hidden" if there else "absent"].append(name)
    return model, lacks


def _reached(model, name):
    """What stands at `layers.0.weight`, known to the module or not."""
    one = model
    try:
        for part in name.split("."):
            one = one[int(part)] if part.isdecimal() else getattr(one, part)
    except (AttributeError, LookupError, TypeError):
        return None
    return one


def _hidden(model, num_layers):
    """The weights of the layers, if they stand where they should."""
    names = [
        f"layers.{i}.{kind}"
        for i in range(num_layers)
        for kind in ("weight", "bias")
    ]
    held = {name: _reached(model, name) for name in names}
    return {
        name: one for name, one in held.items() if isinstance(one, torch.Tensor)
    }


def outputs(TokenRNN, case):
    model, lacks = _model(TokenRNN, case)
    return {**lacks, "out": model(case["tokens"])}


def called_twice(TokenRNN, case):
    """The second of two calls, after one with other rows."""
    model, lacks = _model(TokenRNN, case)
    model(case["other_tokens"])
    return {**lacks, "out": model(case["tokens"])}


def construction(TokenRNN, case):
    """What the constructor draws, and what it does to the settings."""
    sizes = case["num_tokens"], case["width"], case["num_layers"]
    before = torch.get_default_dtype()
    drawn, stays = [], []
    with torch.random.fork_rng(devices=[]):
        for seed in case["seeds"]:
            torch.manual_seed(seed)
            model = TokenRNN(*sizes)
            named = _hidden(model, case["num_layers"])
            named |= dict(model.named_parameters())
            drawn.append({name: named[name].detach() for name in sorted(named)})
            stays.append(torch.initial_seed() == seed)
        try:
            torch.set_default_dtype(torch.float64)
            with _default_device("meta"):
                TokenRNN(*sizes)
                now = torch.get_default_dtype(), torch.get_default_device().type
        finally:
            torch.set_default_dtype(before)
    first, second = drawn
    layers = [one for name, one in first.items() if name.startswith("layers.")]
    tables = [one for name, one in first.items() if name == "embed.weight"]
    return {
        "shapes": {name: list(one.shape) for name, one in first.items()},
        "seed stays": all(stays),
        "default dtype stays": now[0] == torch.float64,
        "default device stays": now[1] == "meta",
        "models differ": not all(
            torch.equal(one, second[name]) for name, one in first.items()
        ),
        "layers differ": len({one.sum().item() for one in layers})
        == len(layers),
        "spread": [
            float(torch.cat([one.reshape(-1) for one in some]).std()) * scale
            for some, scale in ((tables, 1.0), (layers, case["width"] ** 0.5))
            if some
        ],
    }


@contextlib.contextmanager
def _default_device(device):
    """Within it this is the default device; None leaves it as it is."""
    if device is None:
        yield
        return
    before = _device.CURRENT_DEVICE  # None where none was set
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(before)


def parts(TokenRNN, case):
    """What the module owns, under which names."""
    model, lacks = _model(TokenRNN, case)
    names = {name: list(one.shape) for name, one in model.named_parameters()}
    decay = model.decay
    is_tensor = isinstance(decay, torch.Tensor)
    token = torch.zeros(1, 1, dtype=torch.int64)
    with contextlib.suppress(Exception):  # what it gives is judged elsewhere
        model(token)  # an entry may come with the first call
    extra = set(model.state_dict()) - set(names) - {"decay"}
    options = "padding_idx", "max_norm", "scale_grad_by_freq", "sparse"
    chosen = [
        one
        for one in options
        if getattr(model.embed, one, None) not in (None, False)
    ]
    return {
        **lacks,
        "parameters": dict(sorted(names.items())),
        "decay": decay.detach() if is_tensor else None,
        "decay needs a gradient": is_tensor and decay.requires_grad,
        "embed is an nn.Embedding": isinstance(model.embed, nn.Embedding),
        "options of embed": chosen,
        "further entries": sorted(extra),
        "trained": all(one.requires_grad for one in model.parameters()),
    }


def places(TokenRNN, case):
    """Device and dtype of all that the module has, after a move or a cast."""
    model, lacks = _model(TokenRNN, case)
    holder = nn.ModuleDict({"inner": model}) if case["inside"] else model
    for step in case["moves"]:
        _apply(holder, step)
    held = dict(model.named_parameters())
    held |= dict(model.named_buffers())
    held["decay"] = model.decay
    return {
        **lacks,
        "places": {
            name: [one.device.type, str(one.dtype), list(one.shape)]
            for name, one in sorted(held.items())
        },
    }


def _apply(module, step):
    """Moves or casts a module: "meta", "double", "to bfloat16", ..."""
    if step == "meta":
        module.to("meta")
    elif step.startswith("to "):
        module.to(getattr(torch, step.removeprefix("to ")))
    else:
        getattr(module, step)()


def after_moves(TokenRNN, case):
    """The output after moves and casts, or that it could not be had."""
    model, lacks = _model(TokenRNN, case)
    if case["called_before"]:
        model(case["tokens"])
    holder = nn.ModuleDict({"inner": model}) if case["inside"] else model
    for step in case["moves"]:
        _apply(holder, step)
    if case.get("exact"):  # weights that are no numbers of float32
        with torch.no_grad():
            for one in model.parameters():
                one.add_(1e-10)
    tokens = case["tokens"].to(model.embed.weight.device)
    try:
        with _default_device(case.get("default_device")):
            before = torch.get_default_device()
            out = model(tokens)
            stays = torch.get_default_device() == before
    except NotImplementedError:
        raise
    except (RuntimeError, TypeError) as error:
        mixed = _mixed(str(error))
        if mixed is None:
            raise
        return {**lacks, "ran": False, "mixed": mixed}
    if not isinstance(out, torch.Tensor):
        return {**lacks, "ran": True, "out": out}
    facts = {
        **lacks,
        "ran": True,
        "default device stays": stays,
        "dtype": str(out.dtype),
        "device": out.device.type,
        "shape": list(out.shape),
    }
    if out.device.type != "meta":
        facts["out"] = out.detach().double()
        facts["needs a gradient"] = out.requires_grad
    return facts


def _mixed(text):
    """What an error says is not the same; None if it is about something else."""
    if "device" in text:
        return "devices"
    return "dtypes" if "type" in text else None


def gradients(TokenRNN, case):
    """The gradient at every parameter, zero where it has none."""
    model, lacks = _model(TokenRNN, case)
    out = model.train(case["training"])(case["tokens"])
    if not out.requires_grad:
        return {**lacks, "gradients": None}
    (out * case["scale"]).sum().backward()
    held = dict(model.named_parameters())
    held |= {name: _reached(model, name) for name in lacks["hidden"]}
    return {
        **lacks,
        "gradients": {
            name: torch.zeros_like(one) if one.grad is None else one.grad
            for name, one in sorted(held.items())
        },
    }


# know_your_gpus


def report_here(machine_report, case):
    """The report of this very machine, with a version of PyTorch from the case,
    and without CUDA whatever it was built for."""
    with (
        _version(case["version"]),
        mock.patch.object(torch.version, "cuda", None),
        mock.patch.object(torch.backends.cudnn, "version", return_value=None),
    ):
        return {"report": _told(machine_report())}


def report_there(machine_report, case):
    """The report of a machine that the case describes, and whether the current
    GPU and the environment are afterwards as before."""
    with _version(case["version"]), _machine(case):
        current, environ = torch.cuda.current_device(), {**os.environ}
        report = _told(machine_report())
        return {
            "report": report,
            "the current GPU stays": torch.cuda.current_device() == current,
            "the environment stays": {**os.environ} == environ,
        }


def report_twice(machine_report, case):
    """The second report, after another machine was reported on, and whether the
    first is still as it was."""
    with _version(case["before"]["version"]), _machine(case["before"]):
        first = machine_report()
    before = copy.deepcopy(first)
    second = report_there(machine_report, case)
    return {**second, "the first report stays": first == before}


def _told(report):
    """The report as plain data. A str of PyTorch's own kind is a str too."""
    if not isinstance(report, dict):
        return {"report": report}
    return {
        key: str(one) if isinstance(one, str) else one
        for key, one in report.items()
    }


def _version(version):
    return _All(
        mock.patch.object(torch, "__version__", version),
        mock.patch.object(torch.version, "__version__", version),
    )


def _machine(case):
    """Puts the machine of a case in the place of this one."""
    names, works = case["names"], case["works"]
    chosen = [len(names) // 2]  # the current device: neither first nor last

    class Current:
        """Stands for `torch.cuda.device`."""

        def __init__(self, device):
            self.index = _index(device)

        def __enter__(self):
            card(self.index)
            self.before, chosen[0] = chosen[0], self.index

        def __exit__(self, *error):
            chosen[0] = self.before

    def choose(device):
        card(device)
        chosen[0] = _index(device)

    def card(device=None):
        index = chosen[0] if device is None else _index(device)
        if not works:
            raise RuntimeError("the driver on this system is too old")
        if not 0 <= index < len(names):
            raise AssertionError("Invalid device id")
        return names[index]

    def properties(device=None):
        return SimpleNamespace(name=card(device), total_memory=2**34)

    def cudnn_version():
        if case["cudnn_raises"]:
            raise RuntimeError("cuDNN version incompatibility")
        return case["cudnn"]

    stack = mock.patch.multiple(
        torch.cuda,
        is_available=lambda: works and bool(names),
        device_count=lambda: len(names),
        current_device=lambda: chosen[0],
        device=Current,
        set_device=choose,
        get_device_name=card,
        get_device_properties=properties,
    )
    return _All(
        stack,
        mock.patch.object(torch.version, "cuda", case["cuda"]),
        mock.patch.object(torch.version, "hip", case["hip"]),
        mock.patch.object(torch.backends.cudnn, "version", cudnn_version),
        mock.patch.object(
            torch.backends.cudnn,
            "is_available",
            return_value=case["cudnn_raises"] or case["cudnn"] is not None,
        ),
        mock.patch.dict(os.environ, case["environ"]),
    )


def _index(device):
    """The number in 1, "cuda:1", torch.device("cuda:1")."""
    if isinstance(device, int):
        return device
    return torch.device(device).index or 0


class _All:
    """Several context managers as one."""

    def __init__(self, *managers):
        self.managers = managers

    def __enter__(self):
        for one in self.managers:
            one.__enter__()

    def __exit__(self, *error):
        for one in reversed(self.managers):
            one.__exit__(*error)


def listed(list_gpus, case):
    """The rows; a named tuple is a tuple too."""
    rows = list_gpus(case["listing"])
    if isinstance(rows, list):
        rows = [tuple(one) if isinstance(one, tuple) else one for one in rows]
    return {"gpus": rows}
