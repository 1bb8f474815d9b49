"""Drives what the exercises of chapter 14 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. A rank is a process here, with a gloo group of its own, as
on several GPUs: a rank that fails or leaves is noticed by the others at once.
"""

import builtins
import contextlib
import datetime
import functools
import gc
import inspect
import json
import multiprocessing
import operator
import os
import pickle
import random
import signal
import sys
import time
import traceback
import warnings
from itertools import chain, pairwise

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

CONNECT_LIMIT_S = 50.0
GROUP_LIMIT_S = 15.0
"""A rank that fails or leaves is noticed at once; this is for those that wait for
different things."""
BUSY = 100
"""Times what connecting took is added to it: so long this machine takes just now."""
TOGETHER = datetime.timedelta(milliseconds=100)
"""Ranks that come to their end within this time have all been there for what the
last one did."""
CHILD_LIMIT_S = 90
"""Ends a forked process that nobody waits for any more."""

# Ranks


@functools.cache
def device_of(process_id):
    """What gloo sends with in this process. One that ends waits for its thread."""
    return dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")


def new_group(store, rank, world_size):
    """The group of all ranks, as the rank with this number holds it."""
    options = dist.ProcessGroupGloo._Options()
    options._timeout = datetime.timedelta(seconds=CONNECT_LIMIT_S)
    started = time.monotonic()
    options._devices = [device_of(os.getpid())]
    gloo = dist.ProcessGroupGloo(store, rank, world_size, options)
    group = dist.ProcessGroup(store, rank, world_size)
    kind = dist.ProcessGroup.BackendType.GLOO
    group._register_backend(torch.device("cpu"), kind, gloo)
    group._set_default_backend(kind)
    # as `init_process_group` does: one that left while another is still
    # connecting would be an error for that other
    store.set(f"connected {rank}", "")
    everyone = [f"connected {one}" for one in range(world_size)]
    store.wait(everyone, options._timeout)
    took = time.monotonic() - started
    limit = datetime.timedelta(seconds=GROUP_LIMIT_S + BUSY * took)
    gloo._set_default_timeout(limit)
    return group


@functools.cache
def use_once():
    """Does what PyTorch imports and sets up at first use here, once, and not in
    each fork."""
    group = new_group(dist.HashStore(), 0, 1)
    norm = DistributedDataParallel(nn.BatchNorm1d(1), process_group=group)
    norm(torch.ones(2, 1)).sum().backward()
    del norm  # before the group that it uses
    gc.collect()
    gc.freeze()  # all that was imported: it need not be looked at each time


def on_ranks(function, world_size):
    """Runs `function(rank, group)` once per rank: rank 0 in this process, where
    what it leaves behind is seen, each other one in a fork of it.

    Returns:
        What each returned, in the order of ranks. What a rank raised is raised
        here: the first one, since others fail because of it.
    """
    use_once()
    with Ranks(lambda rank, group, _: function(rank, group)) as ranks:
        return ranks.run(world_size, None)


class Ranks:
    """Rank 0 in this process, each other one in a fork of it that stays for the
    next case: a fork and its first step take longer than most cases. So does a group,
    which takes ten milliseconds to end: it stays where all ranks came to the end of a
    case together, and none has asked it for something that the others have not.

    Args:
        function: `function(rank, group, case)` is what a rank does.
    """

    def __init__(self, function):
        self.function = function
        self.others = []
        # a file would do, but is asked every ten milliseconds
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True)
        self.cases = 0
        # by number of ranks: this rank's groups, and which ones all ranks have
        self.groups, self.names = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for other in self.others:
            other.end()
        self.others = []
        self._end_groups()

    def _end_groups(self):
        self.groups.clear()
        self.names.clear()

    def run(self, world_size, case):
        """All ranks on a case. Returns and raises as `on_ranks` does; after an
        error the next case gets new processes."""
        if len(self.others) < world_size - 1:
            self._end_groups()  # a fork would keep their connections open
        gc.collect()  # groups that only a cycle holds, while their threads are idle
        while len(self.others) < world_size - 1:
            own_store = dist.TCPStore("127.0.0.1", self.store.port)
            self.others.append(
                Fork(functools.partial(self._outcome, own_store, {}))
            )
        self.cases += 1
        name = self.names.pop(world_size, f"group {self.cases}")
        asked = self.cases, name, world_size, case
        others = self.others[: world_size - 1]
        try:
            for rank, other in enumerate(others, 1):
                other.ask(rank, *asked)
            ended = [self._outcome(self.store, self.groups, 0, *asked)]
            ended += [other.answer() for other in others]
        except BaseException:
            self.__exit__()
            raise
        failures = [failure for _, failure, _ in ended if failure]
        if not failures:
            if all(together for *_, together in ended):
                self.names[world_size] = name
            return [returned for returned, *_ in ended]
        self.__exit__()
        _, first = min(failures, key=lambda one: one[0])
        # rank 0's own tells where it came from
        raised_here = ended[0][1] and ended[0][1][1]
        raise raised_here if type(raised_here) is type(first) else first

    def _outcome(self, store, groups, rank, number, name, world_size, case):
        """(what it returned, None, whether all ranks ended together) or (None, (when,
        what it raised), False)"""
        known, group = groups.get(world_size, (None, None))
        if known != name:
            of_group = dist.PrefixStore(name, store)
            group = new_group(of_group, rank, world_size)
            groups[world_size] = name, group
        of_case = dist.PrefixStore(f"case {number}", store)
        together = False
        try:
            returned = self.function(rank, group, case)
            together = ended_together(of_case, group, rank, world_size)
            return returned, None, together
        except BaseException as error:
            when = time.monotonic()
            traceback.clear_frames(error.__traceback__)  # they hold it, too
            return None, (when, error), False
        finally:
            if not together:
                # `group` is held here, so that it ends last, and not inside of
                # DDP's destructor, which would wait for gloo's threads while they
                # wait for Python
                del groups[world_size]
            if rank:  # a group in a cycle would not be seen to leave
                gc.collect()


def ended_together(store, group, rank, world_size):
    """Whether all ranks are at their end now, after as many collectives each. A rank
    that still waits has to notice that another has left."""
    names = [f"ended {one}" for one in range(world_size)]
    store.set(names[rank], str(group._get_sequence_number_for_group()))
    try:
        store.wait(names, TOGETHER)
    except dist.DistStoreError:
        return False
    return len(set(store.multi_get(names))) == 1


class Fork:
    """A forked process that answers with what `function(...)` returns there."""

    def __init__(self, function):
        self.pipe, theirs = multiprocessing.Pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of threads, and gloo has some
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            try:
                # a cycle may hold a group: its end would wait for threads, which
                # are not here
                gc.freeze()
                self.pipe.close()
                while True:
                    asked = pickle.loads(theirs.recv_bytes())
                    signal.alarm(CHILD_LIMIT_S)
                    with same_conditions():
                        returned = function(*asked)
                    theirs.send_bytes(pickle.dumps(returned))
                    signal.alarm(0)
            finally:
                os._exit(0)
        theirs.close()

    def ask(self, *given):
        # `answer` says that it ended
        with contextlib.suppress(ConnectionError):
            self.pipe.send_bytes(pickle.dumps(given))

    def answer(self):
        """What it returned to what was asked; raises, if it ended instead."""
        try:
            return pickle.loads(self.pipe.recv_bytes())
        except (EOFError, ConnectionError):
            raise RuntimeError("A process ended without an answer.") from None

    def end(self):
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


STANDING = {}
"""What runs on ranks that stay, to these ranks."""


def standing_ranks(function, implementation):
    """Those that run `function(implementation, rank, group, case)` on one case after
    the other. Another implementation ends the ranks of the one before."""
    # what the judge wraps around it is new in each call
    own = function, id(inspect.unwrap(implementation))
    if own not in STANDING:
        use_once()
        while STANDING:
            STANDING.popitem()[1].__exit__()
        STANDING[own] = Ranks(functools.partial(function, implementation))
    return STANDING[own]


@contextlib.contextmanager
def same_conditions():
    """As the judge makes them for rank 0 before each case."""
    torch.manual_seed(0)
    random.seed(0)
    with torch.enable_grad(), torch.autograd.set_detect_anomaly(False):
        yield
    torch.set_default_dtype(torch.float32)


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

ROWS, GRAD_MODES = [], []
"""What went through the models below: the sum of each forward pass's rows, and
whether gradients were on."""


class Noted(nn.Module):
    """Its input, written down."""

    def forward(self, x):
        ROWS.append(x.detach().flatten(1).sum(1).clone())
        GRAD_MODES.append(torch.is_grad_enabled())
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


class Scale(nn.Module):
    """Its input times what its buffer holds, once that has seen the input: what
    the buffer holds is kept for the backward pass."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))

    def forward(self, x):
        self.scale += x.detach().abs().mean()
        return x * self.scale


class Two(nn.Module):
    """A layer used twice, whose weight another has, too, beside one that is
    frozen and one that is not used."""

    def __init__(self, width):
        super().__init__()
        self.twice = nn.Linear(width, width)
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.unused = nn.Linear(2, 2)
        self.tied = nn.Linear(width, width)
        self.tied.weight = self.twice.weight

    def forward(self, x):
        hidden = self.tied(self.frozen(self.twice(x).tanh()))
        return self.twice(hidden.tanh())


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
        if kind == "scale":
            layers.append(Scale())
        if kind == "traps":
            layers.append(Two(width))
        layers.append(nn.Tanh())
        if not images:
            layers.append(nn.Linear(width, outputs))
        model = nn.Sequential(*layers).double()
    fill(model, case["start"])
    model.train(case["train"])
    model[-1].train(case["train"] != case["mixed"])
    return model


def sizes_of_chunks(chunk_sizes, case):
    return [
        chunk_sizes(batch_size, num_devices)
        for batch_size, num_devices in case["asked"]
    ]


def through_devices(data_parallel, case):
    """One forward and backward pass, or some."""
    model = network(case)
    parameters = list(model.parameters())
    buffers = dict(model.named_buffers())
    names = list(model.state_dict())
    modes = [layer.training for layer in model.modules()]
    X = case["X"].clone().requires_grad_(case["inputs_too"])
    ROWS.clear()
    GRAD_MODES.clear()
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
    same_buffers = dict(model.named_buffers())
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
        "grad_modes": sorted(set(GRAD_MODES)),
        "buffers": flat(model.buffers()),
        "weights": flat(model.parameters()),
        "kept": kept,
        "modes_kept": modes == [one.training for one in model.modules()],
        "buffers_kept": list(same_buffers) == list(buffers)
        and all(same_buffers[name] is buffers[name] for name in buffers),
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
        if other == "tied":
            self.other = nn.Linear(width, width)
            self.other.weight = self.module.weight
        if other == "scratch":
            start = torch.zeros(width, dtype=torch.float64)
            self.register_buffer("scratch", start, persistent=False)


def unwrapped_state(plain_state_dict, case):
    """The state dicts of one model, wrapped in different ways."""
    with torch.random.fork_rng(devices=[]):
        model = Inner(case["width"], case["other"]).double()
        fill(model, case["start"])
    found = {}
    for how in case["wrapped"]:
        what = f"the state dict of a model in {how}"
        if how == "plain":
            what = "the state dict of a plain model"
            state = plain_state_dict(model)
        elif how == "DataParallel":
            state = plain_state_dict(nn.DataParallel(model))
        else:

            def wrapped(rank, group):
                return plain_state_dict(
                    DistributedDataParallel(model, process_group=group)
                )

            (state,) = on_ranks(wrapped, 1)
        found[what] = {name: value.clone() for name, value in state.items()}
    found["list of the model's own names afterwards"] = list(model.state_dict())
    found["list of its modes afterwards"] = [
        layer.training for layer in model.modules()
    ]
    return found


# ddp_step


class Watched(nn.Module):
    """A classifier that writes down what it is used for, in order."""

    def __init__(self, num_features, num_classes, frozen, loudness):
        super().__init__()
        self.loudness = loudness
        self.first = nn.Linear(num_features, 5)
        self.last = nn.Linear(5, num_classes)
        self.first.bias.requires_grad_(not frozen)
        self.events, self.samples, self.modes = [], [], set()

    def forward(self, x):
        self.modes.add((self.training, self.first.training))
        self.samples.append(x.detach().flatten(1).sum(1).clone())
        self.events.append(f"forward {len(x)}")
        seen = self.first(x).tanh()
        if seen.dim() > 2:  # texts: the mean over their places
            seen = seen.mean(1)
        out = self.loudness * self.last(seen)
        if out.requires_grad:
            out.register_hook(
                lambda _: self.events.append(f"backward {len(x)}")
            )
        return out


def _settings(optimizer):
    """All of them, less the parameters."""
    return [
        {key: value for key, value in group.items() if key != "params"}
        for group in optimizer.param_groups
    ]


FEW = 250
"""So many bytes beside the gradient may cross in a step: counts, losses."""


def but_for_a_few(bytes_sent, gradient_bytes):
    """What crossed, without a few bytes beside whole gradients: which numbers these
    are, and in which dtype, is the learner's to choose."""
    beside = bytes_sent % gradient_bytes
    return bytes_sent - beside if beside <= FEW else bytes_sent


def watched(case):
    """The model of a case, the same on all ranks."""
    num_features = case["shards"][0][0][0][0].shape[-1]
    with torch.random.fork_rng(devices=[]):
        model = Watched(
            num_features,
            case["num_classes"],
            case["frozen"],
            case["loudness"],
        )
        fill(model.double(), case["start"])
    model.train(case["train"])
    model.first.train(case["train"] != case["mixed"])
    return model


def steps_of_rank(ddp_step, rank, group, case):
    own = watched(case)
    wrapped = DistributedDataParallel(own, process_group=group)
    groups = [{"params": list(one.parameters())} for one in own.children()]
    sgd = torch.optim.SGD(groups, **case["sgd"])
    trained = [one for one in own.parameters() if one.requires_grad]
    gradient_bytes = 8 * flat(trained).numel()
    found, losses, sent = [], [], []
    sgd.register_step_post_hook(lambda *_: found.append(gradients_of(own)))
    modes = [layer.training for layer in own.modules()]
    settings = _settings(sgd)
    if case["old_gradients"]:
        for parameter in own.parameters():
            parameter.grad = torch.ones_like(parameter)
    for of_step in case["shards"][rank]:
        micro_batches = list(of_step)
        if case["repeated"]:
            micro_batches = micro_batches[:1] * len(micro_batches)
        given = list(micro_batches)
        with Traffic() as traffic:
            loss = ddp_step(wrapped, sgd, micro_batches, group)
        losses.append(loss)
        sent.append(but_for_a_few(traffic.bytes_sent, gradient_bytes))
    tensors = [one for pair in given for one in pair]
    seen = {
        "weights": flat(own.parameters()),
        "losses": losses,
        "gradients": found,
        "sent": sent,
        "events": own.events,
        "samples": torch.cat(own.samples)
        if own.samples
        else torch.zeros(0).double(),
        "settings_kept": _settings(sgd) == settings,
        "tensors_kept": not any(one.requires_grad for one in tensors),
        "modes_kept": modes == [one.training for one in own.modules()]
        and own.modes == {(modes[0], modes[1])},
        "switch_on": bool(wrapped.require_backward_grad_sync),
        "list_kept": len(micro_batches) == len(given)
        and all(a is b for a, b in zip(micro_batches, given, strict=True)),
    }
    return seen, gradient_bytes


def steps_of_ranks(ddp_step, case):
    """Some steps of all ranks together."""
    standing = standing_ranks(steps_of_rank, ddp_step)
    ranks, gradient_bytes = zip(
        *standing.run(len(case["shards"]), case), strict=True
    )
    first = ranks[0]["weights"]
    return {
        "ranks": list(ranks),
        "gradient_bytes": gradient_bytes[0],
        "apart": max(
            float((one["weights"] - first).abs().max()) for one in ranks
        ),
    }


# train_shard, eval_shard, global_accuracy


def in_child(function):
    """What `function()` returns in a forked process, as JSON keeps it; None if it
    raises there."""
    child = Fork(lambda: json.dumps(function()))
    child.ask()
    try:
        return json.loads(child.answer())
    except RuntimeError:
        return None
    finally:
        child.end()


def as_in_another_process():
    """Lets `hash` of texts be another one, as it is in each new Python process.
    For a child that ends soon."""
    own_hash = builtins.hash

    def hash_of(value):
        if isinstance(value, tuple):
            return own_hash(tuple(map(hash_of, value)))
        salted = isinstance(value, str | bytes)
        return own_hash((value, "salt") if salted else value)

    builtins.hash = hash_of


class GlobalSeeds:
    """Notes whether this thread seeds or puts back global random numbers."""

    def __init__(self):
        self.seen = False

    def _trace(self, frame, event, what):
        if event == "c_call" and what.__self__ is torch.default_generator:
            self.seen |= what.__name__ in ("manual_seed", "seed", "set_state")
        elif event == "c_call" and what.__self__ is random._inst:
            self.seen |= what.__name__ in ("seed", "setstate")

    def _noted(self, function):
        def call(*args, **kwargs):
            self.seen = True
            return function(*args, **kwargs)

        return call

    def __enter__(self):
        self.before = sys.getprofile(), np.random.seed, np.random.set_state
        # NumPy's functions are not among those that a profile shows
        np.random.seed = self._noted(np.random.seed)
        np.random.set_state = self._noted(np.random.set_state)
        sys.setprofile(self._trace)
        return self

    def __exit__(self, *error):
        profile, np.random.seed, np.random.set_state = self.before
        sys.setprofile(profile)


LATE = ((255, 2**24),)
"""Epochs, and seeds so far apart that the product with the next epoch's number has
none of the 32 bits that PyTorch takes of a seed."""


def shards_of_epochs(train_shard, case):
    """Each epoch's shards, asked for in the order that the case gives: as ranks
    that are not equally fast ask. Each twice, and if the case says so also in a
    process of its own, the last epoch first: a run that was resumed."""

    def shard_of(epoch, rank, seed):
        return train_shard(
            case["num_samples"], rank, case["world_size"], epoch, seed
        )

    def all_shards(order):
        return {
            f"{epoch} {rank}": shard_of(epoch, rank, case["seed"])
            for epoch, rank in order
        }

    def elsewhere():
        as_in_another_process()
        return all_shards(case["order"])

    # reversed, the order might begin with the same epochs
    seen = list(dict.fromkeys(epoch for epoch, _ in case["order"]))
    backwards = sorted(case["order"], key=lambda one: -seen.index(one[0]))
    resumed = other_process = None
    if case["resumed"]:
        resumed = in_child(lambda: all_shards(backwards))
        other_process = in_child(elsewhere)
    shards, again = {}, True
    with GlobalSeeds() as seeds:
        for epoch, rank in case["order"]:
            if case["others_draw"]:
                torch.rand(1), random.random()
            shard = shard_of(epoch, rank, case["seed"])
            copied = list(shard) if type(shard) is list else shard
            first = shards.setdefault(f"{epoch} {rank}", copied)
            again = again and list(shard) == list(first)
    others = [
        [
            shard_of(epoch, rank, case["seed"] + more)
            for epoch in range(case["num_epochs"])
            for rank in range(case["world_size"])
        ]
        for more in case["other_seeds"]
    ]
    late = [
        [shard_of(epoch, 0, case["seed"] + more) for more in (0, apart)]
        for epoch, apart in LATE
        if case["resumed"]
    ]
    far = [
        shard_of(case["far_epoch"], rank, case["seed"])
        for rank in range(case["world_size"])
        if case["far_epoch"]
    ]
    own = [
        shards[f"{epoch} {rank}"]
        for epoch in range(case["num_epochs"])
        for rank in range(case["world_size"])
    ]
    pairs = [
        *(pair for other in others for pair in zip(other, own, strict=True)),
        *(tuple(pair) for pair in late),
        *zip(far, own, strict=False),
    ]
    # the caller may do with a list what it likes
    own_list = True
    for epoch, rank in case["order"] if case["resumed"] else ():
        shard = shard_of(epoch, rank, case["seed"])
        if type(shard) is list:
            shard.reverse()
            later = shard_of(epoch, rank, case["seed"])
            own_list &= later == shards[f"{epoch} {rank}"]
    without_seed = [
        train_shard(case["num_samples"], rank, case["world_size"], epoch)
        for epoch in range(case["num_epochs"])
        for rank in range(case["world_size"])
        if case["seed"] == 0
    ]
    return {
        "shards": {key: as_numbers(one) for key, one in shards.items()},
        "again": again and (not case["resumed"] or resumed == shards),
        "other_process": not case["resumed"] or other_process == shards,
        "global_seeds": seeds.seen,
        "other_seeds": [[as_numbers(i) for i in one] for one in others],
        "late": [[as_numbers(i) for i in one] for one in late],
        "far": [as_numbers(one) for one in far],
        "own_list": own_list,
        "seed 0 by default": not without_seed or without_seed == own,
        "without_seed": [as_numbers(one) for one in without_seed],
        "facts": facts_about(shards, pairs, case),
    }


def is_list_of_ints(shard):
    return type(shard) is list and all(type(i) is int for i in shard)


def as_numbers(shard):
    """A list of ints as a tensor: the checks allow any distance between its
    entries, so that two implementations that draw different orders are alike
    where the facts about these are."""
    if is_list_of_ints(shard):
        return torch.tensor(shard, dtype=torch.float64)
    return {"given": shard}


def facts_about(shards, pairs, case):
    """What tells one way of drawing orders from another: for the many samples of
    which no two orders agree by chance, how each shard is like that of the first
    epoch, and how these pairs are alike."""
    keys = sorted(shards)
    lists = [shards[key] for key in keys]
    ranks = range(case["world_size"])
    epochs = [
        [shards[f"{epoch} {rank}"] for rank in ranks]
        for epoch in range(case["num_epochs"])
    ]
    firsts = [
        (one, other)
        for e in epochs
        for one, other in zip(e, epochs[0], strict=True)
    ]
    pairs = [*firsts[len(ranks) :], *pairs]
    if not all(map(is_list_of_ints, (*lists, *chain(*pairs)))):
        return "no lists of ints"
    counts = [
        sorted({[*chain(*e)].count(i) for i in range(case["num_samples"])})
        for e in epochs
    ]
    if case["num_samples"] < 100:
        return {"counts": counts}
    return {
        "counts": counts,
        "in order": [one == sorted(one) for one in lists],
        "same places": [
            sum(map(operator.eq, one, other)) > 0.3 * len(one)
            for one, other in pairs
        ],
        "same samples": [
            len({*one} & {*other}) > 0.8 * len({*one}) for one, other in pairs
        ],
        "same neighbours": [
            len({*pairwise(one)} & {*pairwise(other)}) > 0.3 * len(one)
            for one, other in pairs
        ],
    }


def shards_to_evaluate(eval_shard, case):
    return [
        [
            eval_shard(num_samples, rank, world_size)
            for rank in range(world_size)
        ]
        for num_samples, world_size in case["asked"]
    ]


def accuracy_of_rank(global_accuracy, rank, group, case):
    """What it returned or (when, what it raised), and whether it took part."""
    indices, correct = case["shards"][rank]
    before = indices.clone(), correct.clone()
    returned = error = None
    with Traffic() as traffic:
        try:
            returned = global_accuracy(
                indices, correct, case["num_samples"], group
            )
        except Exception as raised:
            when = time.monotonic()
            traceback.clear_frames(raised.__traceback__)
            error = when, raised
    kept = torch.equal(before[0], indices) and torch.equal(before[1], correct)
    given = {"accuracy": returned, "kept": kept}
    return given, error, traffic.bytes_sent > 0


def accuracy_of_all(global_accuracy, case):
    """The accuracy, as each rank has it; which ranks took part, where some raised
    because others did not."""
    standing = standing_ranks(accuracy_of_rank, global_accuracy)
    ranks = standing.run(len(case["shards"]), case)
    failures = [error for _, error, _ in ranks if error]
    if not failures:
        return [given for given, _, _ in ranks]
    left_out = [
        rank
        for rank, (_, error, sent) in enumerate(ranks)
        if not (error or sent)
    ]
    if left_out:
        return {"left out": left_out}
    _, first = min(failures, key=lambda one: one[0])
    # rank 0's own has its traceback
    own = ranks[0][1] and ranks[0][1][1]
    raise own if type(own) is type(first) else first
