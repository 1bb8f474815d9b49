"""Drives what the exercises of chapter 14 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. A rank is a thread here, with a gloo group of its own:
what crosses between ranks crosses as it does between processes, and a rank that
fails or leaves is noticed by the others at once.
"""

import copy
import datetime
import functools
import json
import os
import random
import signal
import threading
import time
import traceback

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

GROUP_LIMIT_S = 20.0
"""A rank that fails or leaves is noticed at once; this is for those that wait for
different things, and long enough for a machine with other things to do."""
CHILD_LIMIT_S = 20

# Ranks


def new_group(store, rank, world_size):
    """The group of all ranks, as the rank with this number holds it."""
    options = dist.ProcessGroupGloo._Options()
    options._timeout = datetime.timedelta(seconds=GROUP_LIMIT_S)
    options._devices = [
        dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")
    ]
    gloo = dist.ProcessGroupGloo(store, rank, world_size, options)
    group = dist.ProcessGroup(store, rank, world_size)
    kind = dist.ProcessGroup.BackendType.GLOO
    group._register_backend(torch.device("cpu"), kind, gloo)
    group._set_default_backend(kind)
    return group


@functools.cache
def use_once():
    """Does in this thread what PyTorch sets up at first use (imports, locks), so
    that several threads at once do not wait for each other for ever."""
    group = new_group(dist.HashStore(), 0, 1)
    dist.all_reduce(torch.ones(1), group=group)
    norm = DistributedDataParallel(nn.BatchNorm1d(1), process_group=group)
    norm(torch.ones(2, 1)).sum().backward()
    del norm  # before the group that it uses


def on_ranks(function, world_size):
    """Runs `function(rank, group)` once per rank.

    Returns:
        What each returned, in the order of ranks. What a rank raised is raised
        here: the first one, since others fail because of it.
    """
    use_once()
    store = dist.HashStore()
    returned, failures = [None] * world_size, []

    def run(rank):
        # held here, so that it ends last, and not inside of DDP's destructor,
        # which would wait for gloo's threads while they wait for Python
        group = new_group(store, rank, world_size)
        try:
            returned[rank] = function(rank, group)
        except BaseException as error:
            failures.append((time.monotonic(), rank, error))
            traceback.clear_frames(error.__traceback__)  # lets go of the group

    threads = [
        threading.Thread(target=run, args=(rank,), daemon=True)
        for rank in range(world_size)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failures:
        raise min(failures, key=lambda one: one[:2])[2]
    return returned


class Traffic(TorchDispatchMode):
    """Counts the bytes that cross between ranks, whoever makes them cross."""

    def __init__(self):
        super().__init__()
        self.bytes_sent = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "c10d":
            # operators that gather or scatter name the result first
            names = [one.name for one in function._schema.arguments[:2]]
            what = names[-1].startswith("input")
            self.bytes_sent += _bytes(args[what])
        return function(*args, **(kwargs or {}))


def _bytes(value):
    """Of a tensor, or of the tensors in lists of lists."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return 0


# Models


def fill(model, start):
    """Gives the parameters the values of `start`, scaled to their width."""
    with torch.no_grad():
        at = 0
        for parameter in model.parameters():
            values = start[at : at + parameter.numel()]
            at += parameter.numel()
            width = max(1, parameter.shape[-1]) if parameter.dim() > 1 else 1
            parameter.copy_(values.view_as(parameter) / width**0.5)
    return model


def flat(tensors):
    """All of them as one vector; empty if there are none."""
    found = [one.detach().double().flatten() for one in tensors]
    return torch.cat(found) if found else torch.zeros(0).double()


def gradients_of(model):
    """All gradients as one vector, with zeros where there is none."""
    return flat(
        torch.zeros_like(p) if p.grad is None else p.grad
        for p in model.parameters()
    )


# data_parallel

ROWS = []
"""What went through the models below: the sum of each forward pass's rows."""


class Noted(nn.Module):
    """Its input, written down."""

    def forward(self, x):
        ROWS.append(x.detach().flatten(1).sum(1).clone())
        return x


class Counter(nn.Module):
    """Adds to its input what its buffer holds, then what it saw to the buffer.

    The buffer is not in the state dict if it is not `kept`.
    """

    def __init__(self, kept=True):
        super().__init__()
        start = torch.ones((), dtype=torch.float64)
        self.register_buffer("seen", start, persistent=kept)

    def forward(self, x):
        out = x + self.seen
        self.seen += x.detach().sum()
        return out


class Two(nn.Module):
    """A layer used twice, beside one that is frozen and one that is not used."""

    def __init__(self, width):
        super().__init__()
        self.twice = nn.Linear(width, width)
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.twice(self.frozen(self.twice(x).tanh()))


def network(case):
    """The network that a case describes, in float64."""
    kind, width, outputs = case["kind"], case["width"], case["num_outputs"]
    features = case["X"].shape[1]
    images = case["X"].dim() == 4
    with torch.random.fork_rng(devices=[]):
        if images:
            layers = [Noted(), nn.Conv2d(features, width, 3, padding=1)]
        else:
            layers = [Noted(), nn.Linear(features, width)]
        if kind == "norm":
            layers.append(
                nn.BatchNorm2d(width) if images else nn.BatchNorm1d(width)
            )
        if kind == "counter":
            layers.append(Counter(case["kept"]))
        if kind == "traps":
            layers.append(Two(width))
        layers.append(nn.Tanh())
        if not images:
            layers.append(nn.Linear(width, outputs))
        model = nn.Sequential(*layers).double()
    fill(model, case["start"])
    return model.train(case["train"])


def sizes_of_chunks(chunk_sizes, case):
    return [
        chunk_sizes(batch_size, num_devices)
        for batch_size, num_devices in case["asked"]
    ]


def through_devices(data_parallel, case):
    """One forward and backward pass, or some."""
    model = network(case)
    parameters = list(model.parameters())
    names = list(model.state_dict())
    modes = [layer.training for layer in model.modules()]
    X = case["X"].clone().requires_grad_(case["inputs_too"])
    ROWS.clear()
    outputs, grad_modes = [], torch.is_grad_enabled()
    for _ in range(case["num_passes"]):
        if case["graph"]:
            out = data_parallel(model, X, case["num_devices"])
            if not isinstance(out, torch.Tensor):
                return {"out": type(out).__name__}
            if out.requires_grad:
                loss = (out * case["pull"][: out.numel()].view_as(out)).sum()
                loss.backward()
        else:
            with torch.no_grad():
                out = data_parallel(model, X, case["num_devices"])
        outputs.append(out.detach().clone())
        for parameter in parameters:  # as an optimizer would
            parameter.data.mul_(0.9)
    rows = list(ROWS)
    same = list(model.parameters())
    kept = (
        len(same) == len(parameters)
        and all(a is b for a, b in zip(same, parameters, strict=True))
        and list(model.state_dict()) == names
        and torch.is_grad_enabled() == grad_modes
    )
    return {
        "out": outputs,
        "tied": out.requires_grad,
        "gradients": gradients_of(model),
        "input_gradient": None if X.grad is None else X.grad,
        "rows": sorted(rows, key=lambda one: one.tolist()),
        "buffers": flat(model.buffers()),
        "weights": flat(model.parameters()),
        "kept": kept,
        "modes_kept": modes == [one.training for one in model.modules()],
    }


class Inner(nn.Module):
    """A model whose own layer is called `module`, as wrappers call theirs."""

    def __init__(self, width, other):
        super().__init__()
        self.module = nn.Linear(width, width)
        if other == "norm":
            self.other = nn.BatchNorm1d(width)
        if other == "linear":
            self.other = nn.Linear(width, 2)


def unwrapped_state(plain_state_dict, case):
    """The state dicts of one model, wrapped in different ways."""
    with torch.random.fork_rng(devices=[]):
        model = Inner(case["width"], case["other"]).double()
        fill(model, case["start"])
    found = {}
    for how in case["wrapped"]:
        if how == "plain":
            state = plain_state_dict(model)
        elif how == "DataParallel":
            state = plain_state_dict(nn.DataParallel(model))
        else:

            def wrapped(rank, group):
                return plain_state_dict(
                    DistributedDataParallel(model, process_group=group)
                )

            (state,) = on_ranks(wrapped, 1)
        found[how] = {name: value.clone() for name, value in state.items()}
    found["after"] = list(model.state_dict())
    return found


# ddp_step


class Watched(nn.Module):
    """A classifier that writes down what it is used for, in order."""

    def __init__(self, num_features, num_classes, frozen):
        super().__init__()
        self.first = nn.Linear(num_features, 5)
        self.last = nn.Linear(5, num_classes)
        self.first.bias.requires_grad_(not frozen)
        self.events, self.samples, self.modes = [], [], set()

    def forward(self, x):
        self.modes.add((self.training, self.first.training))
        self.samples.append(x.detach().sum(1).clone())
        self.events.append(f"forward {len(x)}")
        out = self.last(self.first(x).tanh())
        if out.requires_grad:
            out.register_hook(
                lambda _: self.events.append(f"backward {len(x)}")
            )
        return out


def steps_of_ranks(ddp_step, case):
    """Some steps of all ranks together."""
    world_size, steps = len(case["shards"]), len(case["shards"][0])
    num_features = case["shards"][0][0][0][0].shape[1]
    with torch.random.fork_rng(devices=[]):
        model = Watched(num_features, case["num_classes"], case["frozen"])
        fill(model.double(), case["start"])
    model.train(case["train"])
    model.first.train(case["train"] != case["mixed"])

    def run(rank, group):
        own = copy.deepcopy(model)
        wrapped = DistributedDataParallel(own, process_group=group)
        sgd = torch.optim.SGD(wrapped.parameters(), **case["sgd"])
        found, losses, sent = [], [], []
        sgd.register_step_post_hook(lambda *_: found.append(gradients_of(own)))
        modes = [layer.training for layer in own.modules()]
        if case["old_gradients"]:
            for parameter in own.parameters():
                if parameter.requires_grad:
                    parameter.grad = torch.ones_like(parameter)
        for step in range(steps):
            micro_batches = list(case["shards"][rank][step])
            given = list(micro_batches)
            with Traffic() as traffic:
                loss = ddp_step(wrapped, sgd, micro_batches, group)
            losses.append(loss)
            sent.append(traffic.bytes_sent)
        (settings,) = sgd.param_groups
        return {
            "weights": flat(own.parameters()),
            "losses": losses,
            "gradients": found,
            "sent": sent,
            "events": own.events,
            "samples": torch.cat(own.samples)
            if own.samples
            else torch.zeros(0).double(),
            "settings": [settings["lr"], settings["momentum"]],
            "kept": modes == [layer.training for layer in own.modules()]
            and own.modes == {(modes[0], modes[1])}
            and wrapped.require_backward_grad_sync
            and len(micro_batches) == len(given)
            and all(a is b for a, b in zip(micro_batches, given, strict=True)),
        }

    ranks = on_ranks(run, world_size)
    first = ranks[0]["weights"]
    return {
        "ranks": ranks,
        "gradient_bytes": 8 * len(first),
        "apart": max(
            float((one["weights"] - first).abs().max()) for one in ranks
        ),
    }


# train_shard, eval_shard, global_accuracy


def in_child(function):
    """What `function()` returns in a forked process, as JSON keeps it; None if it
    raises there."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            signal.alarm(CHILD_LIMIT_S)
            with os.fdopen(writer, "w") as stream:
                stream.write(json.dumps(function()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        sent = stream.read()
    os.waitpid(pid, 0)
    return json.loads(sent) if sent else None


def shards_of_epochs(train_shard, case):
    """Each epoch's shards, asked for in the order that the case gives: as ranks
    that are not equally fast ask. Each twice, and if the case says so also in a
    process of its own, from the last to the first: a run that was resumed."""

    def backwards():
        return {
            f"{epoch} {rank}": train_shard(
                case["num_samples"],
                rank,
                case["world_size"],
                epoch,
                case["seed"],
            )
            for epoch, rank in reversed(case["order"])
        }

    resumed = in_child(backwards) if case["resumed"] else None
    shards, again = {}, True
    for epoch, rank in case["order"]:
        if case["others_draw"]:
            torch.rand(1), random.random()
        shard = train_shard(
            case["num_samples"], rank, case["world_size"], epoch, case["seed"]
        )
        first = shards.setdefault(f"{epoch} {rank}", shard)
        again = again and list(shard) == list(first)
    if case["resumed"]:
        again = again and resumed == shards
    other_seed = [
        train_shard(
            case["num_samples"],
            rank,
            case["world_size"],
            epoch,
            case["seed"] + 99,
        )
        for epoch in range(case["num_epochs"])
        for rank in range(case["world_size"])
    ]
    return {"shards": shards, "again": again, "other_seed": other_seed}


def shards_to_evaluate(eval_shard, case):
    return [
        [
            eval_shard(num_samples, rank, world_size)
            for rank in range(world_size)
        ]
        for num_samples, world_size in case["asked"]
    ]


def accuracy_of_all(global_accuracy, case):
    """The accuracy, as each rank has it."""

    def run(rank, group):
        indices, correct = case["shards"][rank]
        before = indices.clone(), correct.clone()
        returned = global_accuracy(indices, correct, case["num_samples"], group)
        kept = torch.equal(before[0], indices) and torch.equal(
            before[1], correct
        )
        return {"accuracy": returned, "kept": kept}

    return on_ranks(run, len(case["shards"]))
