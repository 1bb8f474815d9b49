"""What chapter 12 states about saving and loading, run."""

import copy
import io
import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import types
import warnings
import zipfile
from argparse import Namespace
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel

from course_grader.chapter.source import read_chapter

BY_CELL = {
    "killed_for_real": [
        "Its result is that of the eight steps that nobody stopped.",
        "The second process had another seed and made three steps.",
    ],
    "measure_checkpoint": [
        "The checkpoint is three times as large as the weights: AdamW keeps two numbers for each.",
    ],
    "claim_001_23": [
        "The file is a zip archive",
        "*Correct*, and `f` may be a `str`, a `Path` or an open binary file.",
    ],
    "claim_001_25": [
        "The file only *says* where its tensors were, so we change that, to a GPU that no machine has.",
    ],
    "claim_001_27": [
        "It loads in place and returns a report: which keys were missing, which unexpected",
    ],
    "claim_001_28": [
        "Switch the scheduler on: the difference is exactly 0.",
    ],
    "claim_001_30": [
        "That epoch is then run a second time: eleven epochs instead of ten.",
    ],
    "claim_001_31": [
        "It sets a counter.",
        "With the index of the finished epoch most schedules are late by one; with the count of finished epochs most are right, but not those that hold more than a counter. A state dict is right for all of them.",
    ],
    "claim_001_40": [
        "`torch.compile(model)` puts `_orig_mod.` before the keys; `model.compile()` does not. `AveragedModel` puts `module.` there *and* adds `n_averaged`, which no plain model knows.",
    ],
    "claim_001_41_42": [
        "A state dict can be edited; it only must not change *while* one iterates over it.",
        "PyTorch has a function for it, which works in place, renames the metadata too, and returns nothing.",
        "`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present` does it in place and returns nothing.",
    ],
    "claim_004_21_23": [
        "The counter is an int64 buffer without dimensions. Other settings on the two sides give the same error: here `track_running_stats=False`.",
    ],
    "claim_004_22": [
        "It never enters the output of a training batch. It only weighs the running averages, and only with `momentum=None`.",
    ],
    "claim_004_25": [
        "`strict=False` hides; read the two lists that it returns.",
    ],
}

BY_SOURCE = {
    "https://docs.python.org/3/library/os.html#os.replace": [
        "A rename inside one file system is done as a whole or not at all.",
        "`os.replace` either happens or does not.",
        "atomic where POSIX is",
    ],
    "https://man7.org/linux/man-pages/man2/fsync.2.html": [
        "The rename itself is safe when the folder has been synced too.",
        "A power cut is worse than a kill. To survive one, the bytes must have reached the disk before the rename",
    ],
    "https://man7.org/linux/man-pages/man5/nfs.5.html": [
        "On a network file system other machines may see it later.",
    ],
    "https://slurm.schedmd.com/slurm.conf.html": [
        "Clusters send SIGTERM before they kill",
    ],
    "https://docs.pytorch.org/docs/stable/notes/randomness.html": [
        "*To the last bit* also needs deterministic kernels on a GPU (chapter 01), the same hardware, versions and number of threads.",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.load.html": [
        "That is quick to begin with, and it helps where only a part is needed.",
    ],
    "https://github.com/pytorch/pytorch/security/advisories": [
        "its reader has had holes (CVE-2025-32434 before PyTorch 2.6, CVE-2026-24747 before 2.10).",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.get_rng_state_all.html": [
        "Dropout on a GPU draws from another one, so save `torch.cuda.get_rng_state_all()` too (an empty list without a GPU) and set it with `torch.cuda.set_rng_state_all`.",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.checkpoint.html": [
        "`async_save` first copies to the CPU and writes while training goes on.",
        "Where no single process holds the whole model (FSDP, tensor parallelism), each writes its share with `torch.distributed.checkpoint`",
    ],
    "https://github.com/pytorch/data/tree/main/torchdata/stateful_dataloader": [
        "use `StatefulDataLoader` of the package torchdata, which has a state dict.",
    ],
    "https://docs.pytorch.org/vision/stable/generated/torchvision.ops.FrozenBatchNorm2d.html": [
        "Frozen normalizations of their own class (torchvision's `FrozenBatchNorm2d`), files converted from other frameworks and those from before PyTorch 0.4.1 have no `num_batches_tracked`.",
    ],
}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "file.pt"


def through_file(item, there, **options):
    torch.save(item, there)
    return torch.load(there, **options)


def small_net():
    layers = (
        nn.Linear(4, 8),
        nn.BatchNorm1d(8),
        nn.Dropout(0.5),
        nn.Linear(8, 2),
    )
    return nn.Sequential(*layers)


class Unwilling:
    def __reduce__(self):
        raise RuntimeError("not me")


def test_the_old_file_is_gone_first(there):
    """the old one was gone before the first byte of the new one was written."""
    torch.save(torch.ones(1000), there)
    size = there.stat().st_size
    with pytest.raises(RuntimeError, match="not me"):
        torch.save({"weights": torch.ones(1000), "other": Unwilling()}, there)
    assert there.stat().st_size < size / 4
    with pytest.raises(
        (RuntimeError, OSError, EOFError, pickle.UnpicklingError)
    ):
        torch.load(there)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("width", [64, 300, 1000])
def test_half_a_file(there, width, share):
    """The message names no cause: `torch.load` looks for the index of the file at its end, and the end is missing. Where 100 kB or more of the file are left, the same fault reads "PytorchStreamReader failed reading zip archive: failed finding central directory", and then it goes on to say that the file is probably broken."""
    torch.save(nn.Linear(width, width).state_dict(), there)
    content = there.read_bytes()
    assert content[-22:-18] == b"PK\5\6"  # the end of a zip's index
    cut = content[: int(share * len(content))]
    there.write_bytes(cut)
    with pytest.raises((RuntimeError, OSError)) as raised:
        torch.load(there)
    said = str(raised.value)
    if len(cut) >= 100_000:
        assert "failed reading zip archive: failed finding central" in said
        assert "likelihood that your checkpoint file is corrupted" in said
    else:  # as in the cell
        assert "corrupted" not in said
        assert isinstance(raised.value, OSError)


@pytest.mark.parametrize("make", [nn.Linear, nn.LSTM])
def test_a_state_dict_is_live(make):
    """It is a dict of the live tensors, and training changes tensors in place.

    `model.state_dict()` is a dict of the live tensors, and so is its `.copy()`. `copy.deepcopy` copies the tensors too.

    `state_dict()` is live. `copy.deepcopy` makes a snapshot of it.
    """
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        net = make(2, 3)
        live, shallow = net.state_dict(), net.state_dict().copy()
        snapshot = copy.deepcopy(net.state_dict())
        for p in net.parameters():
            p.grad = torch.ones_like(p)
        kind(net.parameters(), lr=0.1).step()
        for name, p in net.named_parameters():
            assert torch.equal(live[name], p)
            assert torch.equal(shallow[name], p)
            assert not torch.equal(snapshot[name], p)


def test_a_load_that_loads_nothing():
    """Loading them raises an error, and `strict=False` makes it go away.

    It hides everything that is missing or left over: section 1 loaded a file of which not one key fitted.
    """
    net = nn.Sequential(nn.Linear(2, 3), nn.PReLU())
    wrapped = {"module." + k: v + 1 for k, v in net.state_dict().items()}
    before = copy.deepcopy(net.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict(wrapped)
    report = net.load_state_dict(wrapped, strict=False)
    assert (
        len(report.missing_keys) == len(report.unexpected_keys) == len(wrapped)
    )
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())


class Importable:
    pass


def test_what_load_reads_by_default(there):
    """By default it reads tensors, numbers, strings, and lists, tuples, dicts and sets of them, and refuses nearly all else.

    Since PyTorch 2.6 `weights_only=True` is the default.

    So it refuses models, NumPy's arrays and scalars, a `Path`, a `Namespace`, a `defaultdict`.

    `torch.get_rng_state()` is a tensor and `random.getstate()` a tuple of numbers: both are fine. `np.random.get_state()` is a tuple with an array in it, which `torch.load` refuses: make a list (`tolist()`) or a tensor of the array.

    A NumPy scalar is an object of NumPy's, not a number. `float(metric)` makes one of all three.

    `torch.load` with its defaults unpickles no objects of unknown classes

    `float(metric)` and `tolist()` for NumPy's random state keep the file readable.
    """
    plain = {
        "tensor": torch.ones(2, dtype=torch.bfloat16),
        "numbers": [1, 2.5, True, None, 3 + 4j],
        "tuple": ("text", {"set"}),
        "ordered": OrderedDict(a=1),
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "parameter": nn.Parameter(torch.ones(1)),
    }
    assert through_file(plain, there)["numbers"] == plain["numbers"]
    for item in (
        nn.Linear(2, 2),
        np.ones(2),
        np.float64(0.5),
        np.random.get_state(),
        Path("runs"),
        Namespace(lr=0.1),
        defaultdict(list),
        Importable(),
        frozenset([1]),
    ):
        with pytest.raises(pickle.UnpicklingError):
            through_file({"inside": [item]}, there)
    name, keys, *rest = np.random.get_state()
    through_file([name, keys.tolist(), *rest], there)
    through_file([name, torch.from_numpy(keys), *rest], there)
    for metric in (
        0.1,
        np.float64(0.1),
        torch.tensor(0.1, dtype=torch.float64),
    ):
        assert through_file(float(metric), there) == 0.1


def test_objects_need_their_class(there):
    """For a file that you trust there are `weights_only=False` and, narrower, a list of classes in `safe_globals`. The first needs the class to be importable under its old name; `safe_globals` takes a class that you hold, also in place of one that is gone: `[(New, "old.module.Name")]`."""
    module = types.ModuleType("for_a_while")
    kind = type("Kind", (), {"__module__": "for_a_while"})
    module.Kind = kind
    sys.modules["for_a_while"] = module
    try:
        torch.save(kind(), there)
        with torch.serialization.safe_globals([kind]):
            assert type(torch.load(there)) is kind
        assert type(torch.load(there, weights_only=False)) is kind
    finally:
        del sys.modules["for_a_while"]
    with pytest.raises(ModuleNotFoundError):
        torch.load(there, weights_only=False)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(there)
    with torch.serialization.safe_globals([kind]):
        assert type(torch.load(there)) is kind
    new = type("New", (), {})
    with torch.serialization.safe_globals([(new, "for_a_while.Kind")]):
        assert type(torch.load(there)) is new


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_what_empty_moments_do(kind):
    """moments and step counts are empty: the first steps of Adam are too large, those of SGD with momentum (without dampening) too small"""

    def length_of_next_step(empty):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.zeros(1000))
        options = {"lr": 0.1} | ({"momentum": 0.9} if kind == "sgd" else {})
        new = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind]
        one = new([weight], **options)
        for step in range(60):
            if empty and step == 59:
                one = new([weight], **options)
            noise = 5.0 if kind == "adam" else 0.1
            weight.grad = 1 + noise * torch.randn(1000)
            before = weight.detach().clone()
            one.step()
        return (weight - before).norm().item()

    ratio = length_of_next_step(True) / length_of_next_step(False)
    assert ratio > 1.5 if kind == "adam" else ratio < 0.2


def test_generators_of_their_own(there):
    """`torch.get_rng_state()` is the generator of the *CPU*.

    The same goes for generators of your own: that of a `DataLoader` (`get_state()`), and each `np.random.default_rng`, which `np.random.get_state()` does not cover.
    """
    assert torch.equal(
        torch.get_rng_state(), torch.default_generator.get_state()
    )
    assert torch.default_generator.device.type == "cpu"
    state = torch.get_rng_state()
    own = torch.Generator().manual_seed(3)
    torch.randn(2, generator=own)
    assert torch.equal(state, torch.get_rng_state())
    kept = own.get_state()
    drawn = torch.randn(2, generator=own)
    own.set_state(through_file(kept, there))
    assert torch.equal(drawn, torch.randn(2, generator=own))
    of_numpy = np.random.default_rng(0)
    before = np.random.get_state()[1].tolist(), np.random.get_state()[2]
    of_numpy.random(9)
    assert before == (
        np.random.get_state()[1].tolist(),
        np.random.get_state()[2],
    )


def test_a_view_saves_its_storage(there):
    """A view saves its whole storage: `torch.save(big[:1])` writes all of `big`, so save `big[:1].clone()`."""
    big = torch.ones(5000)
    sizes = []
    for item in (big, big[:1], big[:1].clone()):
        torch.save(item, there)
        sizes.append(there.stat().st_size)
    assert sizes[1] > 0.95 * sizes[0]
    assert sizes[2] < 0.2 * sizes[0]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["AdamW", "SGD"])
def test_what_an_optimizer_loads_is_not_copied(kind, fused):
    """And where dtype and device fit nothing is copied: as training goes on, the state dict that you loaded changes."""
    options = {"momentum": 0.9} if kind == "SGD" else {}

    def steps(optimizer, state_dict=None):
        if state_dict is not None:
            optimizer.load_state_dict(state_dict)
        (weight,) = optimizer.param_groups[0]["params"]
        weight.grad = torch.ones_like(weight)
        optimizer.step()
        return optimizer

    def begin(dtype=torch.float32):
        weights = [nn.Parameter(torch.ones(3, dtype=dtype))]
        return getattr(torch.optim, kind)(
            weights, lr=0.1, fused=fused, **options
        )

    held = copy.deepcopy(steps(begin()).state_dict())
    before = copy.deepcopy(held["state"][0])
    name = "momentum_buffer" if kind == "SGD" else "exp_avg"
    steps(begin(torch.float64), held)
    assert torch.equal(held["state"][0][name], before[name])
    steps(begin(), copy.deepcopy(held))
    assert torch.equal(held["state"][0][name], before[name])
    steps(begin(), held)
    assert not torch.equal(held["state"][0][name], before[name])


def test_without_the_optimizer_the_loss_is_higher():
    """Switch the optimizer off: at first the loss is higher, because AdamW begins again with empty moments and with its first learning rate, 0.02, also where the scheduler comes back."""
    from course_utils import digits

    data = digits()
    X, y = data.X_train[:512].flatten(1), data.y_train[:512]

    def losses_after(stop, optimizer, rate=True, scheduler=True):
        torch.manual_seed(0)
        layers = (
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(32, 10),
        )
        net, found = nn.Sequential(*layers), []
        adam = torch.optim.AdamW(net.parameters(), lr=0.02)
        plan = lr_scheduler.CosineAnnealingLR(adam, 20)
        for epoch in range(stop + 1):
            if epoch == stop and not optimizer:
                planned, held = adam.param_groups[0]["lr"], plan.state_dict()
                adam = torch.optim.AdamW(net.parameters(), lr=0.02)
                plan = lr_scheduler.CosineAnnealingLR(adam, 20)
                if scheduler:
                    plan.load_state_dict(held)
                assert adam.param_groups[0]["lr"] == 0.02
                assert planned < 0.02
                if rate:
                    adam.param_groups[0]["lr"] = planned
            for pick in torch.randperm(512).split(64):
                loss = F.cross_entropy(net(X[pick]), y[pick])
                adam.zero_grad()
                loss.backward()
                adam.step()
                found.append(loss.item())
            plan.step()
        return sum(found[-8:])

    for stop in (8, 12):
        complete = losses_after(stop, True)
        no_moments = losses_after(stop, False)
        nothing = losses_after(stop, False, rate=False)
        assert complete < no_moments < nothing
        alone = losses_after(stop, False, rate=False, scheduler=False)
        assert alone > no_moments


RATES = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3, 0.5),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 12),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=13),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o,
        [
            lr_scheduler.LinearLR(o, 0.1, total_iters=3),
            lr_scheduler.CosineAnnealingLR(o, 9),
        ],
        [3],
    ),
}


def test_make_both_before_you_load():
    """Only the first column is *yes* throughout. Making a scheduler can change the optimizer's learning rates, so make both before you load either.

    Make all four parts first, then load all four: making a scheduler can change learning rates of the optimizer. Set the random states last: making a model draws numbers.
    """

    def rates(make, way):
        sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        plan, seen = make(sgd), []
        for step in range(12):
            if step == 5 and way:
                kept = sgd.state_dict(), plan.state_dict()
                sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
                if way == "optimizer first":
                    sgd.load_state_dict(kept[0])
                plan = make(sgd)
                if way == "both":
                    sgd.load_state_dict(kept[0])
                plan.load_state_dict(kept[1])
            seen.append(sgd.param_groups[0]["lr"])
            sgd.step()
            plan.step()
        return pytest.approx(seen)

    wrong = []
    for name, make in RATES.items():
        assert rates(make, "both") == rates(make, None).expected
        if rates(make, "optimizer first") != rates(make, None).expected:
            wrong.append(name)
    assert wrong
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    RATES["OneCycleLR"](sgd)
    assert sgd.param_groups[0]["lr"] != 1.0
    state = torch.get_rng_state()
    nn.Linear(2, 2)
    assert not torch.equal(state, torch.get_rng_state())


def test_mapped_files(there):
    """With `mmap=True` the file is not read but mapped: a tensor's bytes come from the disk when they are first used.

    It wants a path and a file in the default format. Replacing the file by `os.replace` does it no harm; writing into the file would.
    """
    torch.save(torch.zeros(4096), there)
    with pytest.raises(ValueError, match="mmap"):
        torch.load(io.BytesIO(there.read_bytes()), mmap=True)
    old_format = there.with_suffix(".old")
    torch.save(torch.zeros(9), old_format, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap"):
        torch.load(old_format, mmap=True)

    mapped = torch.load(there, mmap=True)
    beside = there.with_suffix(".new")
    torch.save(torch.ones(4096), beside)
    os.replace(beside, there)
    assert not mapped.any()

    mapped = torch.load(there, mmap=True)
    content = there.read_bytes()
    place = content.index(torch.ones(64).numpy().tobytes())
    with there.open("r+b") as file:
        file.seek(place)
        file.write(torch.full((64,), 7.0).numpy().tobytes())
    assert mapped[0] == 7


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_state_goes_by_position(kind, named):
    """The optimizer's state goes **by position**, not by name. If the same parameters come in another order, and the shapes happen to agree, each gets another's moments, and no error tells.

    An optimizer's state goes by position.
    """
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    one_way, other_way = [("a", a), ("b", b)], [("b", b), ("a", a)]
    if not named:
        one_way, other_way = [a, b], [b, a]
    one, other = (
        kind(one_way, lr=0.1, **options),
        kind(other_way, lr=0.1, **options),
    )
    a.grad, b.grad = torch.ones(2), torch.full((2,), 9.0)
    one.step()
    other.load_state_dict(one.state_dict())
    (moment,) = {"exp_avg", "momentum_buffer"} & one.state[a].keys()
    assert torch.equal(other.state[a][moment], one.state[b][moment])
    assert not torch.equal(other.state[a][moment], one.state[a][moment])


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16]
)
@pytest.mark.parametrize("kind", ["AdamW", "SGD", "NAdam"])
def test_state_takes_the_dtype_of_weights(there, kind, dtype):
    """Loaded, all tensors of the state but `step` take the dtype of a floating-point weight: what was float32 beside bfloat16 comes back rounded, and NAdam with float64 weights does not go on to the last bit."""
    options = {"momentum": 0.9} if kind == "SGD" else {}

    def begin(weight):
        weight = nn.Parameter(weight.clone())
        one = getattr(torch.optim, kind)([weight], lr=0.1, **options)
        return weight, one

    def steps(weight, one, number):
        for _ in range(number):
            weight.grad = weight.detach() - 3
            one.step()

    weight, one = begin(torch.ones(3, dtype=dtype))
    steps(weight, one, 3)
    one.state[weight]["kept"] = torch.tensor([1.001, 300.0])
    one.state[weight]["count"] = torch.tensor([257])
    held = through_file((weight.detach(), one.state_dict()), there)
    resumed, other = begin(held[0])
    other.load_state_dict(held[1])
    for name, value in other.state[resumed].items():
        before = one.state[weight][name]
        if name == "step":
            assert value.dtype == before.dtype == torch.float32
        elif value is not None:
            assert value.dtype == dtype
            assert torch.equal(value, before.to(dtype))
    rounded = not torch.equal(
        other.state[resumed]["kept"].float(), one.state[weight]["kept"]
    )
    assert rounded == (dtype == torch.bfloat16)
    if kind == "NAdam":
        own = one.state[weight]["mu_product"]
        back = other.state[resumed]["mu_product"]
        assert own.dtype == torch.float32
        assert (own != back.float()) == (dtype == torch.bfloat16)
    steps(weight, one, 4)
    steps(resumed, other, 4)
    if dtype != torch.bfloat16:
        exact = kind != "NAdam" or dtype == torch.float32
        assert torch.equal(weight, resumed) == exact


RANKS = """
import datetime, random, sys
import numpy as np, torch
import torch.distributed as dist

rank = int(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group(
    "gloo", store=dist.FileStore("meet", 2), rank=rank, world_size=2,
    timeout=datetime.timedelta(seconds=60),
)
for one in (torch.manual_seed, np.random.seed, random.seed):
    one(rank)

def draw():
    return torch.rand(2).tolist(), np.random.rand(), random.random()

def states():
    kind, keys, *more = np.random.get_state()
    return torch.get_rng_state(), (kind, keys.tolist(), *more), random.getstate()

draw()
found = [None] * 2
dist.gather_object(states(), found if rank == 0 else None)
if rank == 0:
    torch.save(found, "file.pt")
dist.barrier()
saved, drawn, same = torch.load("file.pt"), draw(), []
for of_torch, of_numpy, of_python in (saved[rank], saved[0]):
    torch.set_rng_state(of_torch)
    np.random.set_state(of_numpy)
    random.setstate(of_python)
    same.append([a == b for a, b in zip(draw(), drawn)])
torch.save(same, f"{rank}.pt")
dist.barrier()
dist.destroy_process_group()
"""


def test_generators_of_several_processes(tmp_path):
    """Each process draws from generators of its own, so this file needs the random states of all of them (`gather_object`), and each takes its own back.

    With DDP rank 0 alone saves, and the others wait at a `barrier()` before they read the file
    """
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANKS, str(rank)],
            cwd=tmp_path,
            env={**os.environ, "GLOO_SOCKET_IFNAME": loopback},
        )
        for rank in (0, 1)
    ]
    assert [one.wait() for one in ranks] == [0, 0]
    for rank in (0, 1):
        own, of_rank_0 = torch.load(tmp_path / f"{rank}.pt")
        assert own == [True] * 3
        assert of_rank_0 == [rank == 0] * 3


def test_wrappers_hold_the_model(there):
    """`DataParallel` and `DistributedDataParallel` hold your model as their child `module`.

    To load an `AveragedModel`'s file into the plain model, take the prefix off and drop `n_averaged`, by hand and by name.

    Better than taking the prefix off later: save `wrapped.module.state_dict()`.

    `removeprefix` for `module.` and `_orig_mod.` (a new dict has no `_metadata`); better, save the model without its wrapper.
    """
    plain = small_net()
    assert nn.DataParallel(plain).module is plain
    for wrapped in (nn.DataParallel(plain), AveragedModel(plain)):
        small_net().load_state_dict(wrapped.module.state_dict())
    # as torch.compile names them: the cell claim_001_40 looks
    compiled = {"_orig_mod." + k: v for k, v in plain.state_dict().items()}
    small_net().load_state_dict(
        {k.removeprefix("_orig_mod."): v for k, v in compiled.items()}
    )
    small_net().load_state_dict(plain.state_dict())
    averaged = AveragedModel(plain)
    averaged.update_parameters(plain)
    held = through_file(averaged.state_dict(), there)
    taken = {k.removeprefix("module."): v for k, v in held.items()}
    with pytest.raises(RuntimeError, match="n_averaged"):
        plain.load_state_dict(taken)
    del taken["n_averaged"]
    plain.load_state_dict(taken)


@pytest.mark.parametrize("metadata", ["none", "old", "today's"])
@pytest.mark.parametrize("layer", [nn.BatchNorm1d, nn.BatchNorm2d])
def test_a_missing_counter(layer, metadata):
    """Where the file has no metadata, or that of an old version, BatchNorm adds a missing counter itself: not 0, but the count that the *target* has now (on *meta*, 0). Only a file with today's metadata raises.

    Where a file has no `_metadata`, or that of an old version, BatchNorm fills in a missing counter itself: with its own present value.
    """
    given = layer(2).state_dict()
    del given["num_batches_tracked"]
    if metadata == "none":
        given = OrderedDict(given)
    elif metadata == "old":
        given._metadata[""]["version"] = 1
    target = layer(2)
    target.num_batches_tracked.fill_(3)
    if metadata == "today's":
        with pytest.raises(RuntimeError, match="num_batches_tracked"):
            target.load_state_dict(given)
    else:
        target.load_state_dict(given)
        assert target.num_batches_tracked == 3
        with torch.device("meta"):
            empty = layer(2)
        empty.load_state_dict(given, assign=True)
        assert empty.num_batches_tracked == 0


def test_a_new_dict_loses_metadata():
    """The new dict is right for one prefix, and loses `_metadata`, in which modules keep the version of their format."""
    given = nn.DataParallel(nn.BatchNorm1d(2)).state_dict()
    assert given._metadata["module"]["version"] == 2
    new = OrderedDict((k[7:], v) for k, v in given.items())
    assert not hasattr(new, "_metadata")
    of_compiled = {"_orig_mod.weight": 1}
    assert [k[7:] for k in of_compiled] != ["weight"]


def test_models_on_meta():
    """A model made under `torch.device("meta")` has shapes and no numbers. Loading into it copies nothing, so `load_state_dict` must *put* the file's tensors into the model: `assign=True`. Make the optimizer afterwards, for the parameters are new objects."""
    source = nn.Linear(2, 3)
    with torch.device("meta"):
        empty = nn.Linear(2, 3)
    assert empty.weight.is_meta
    assert empty.weight.shape == (3, 2)
    with pytest.warns(UserWarning, match="no-op"):
        empty.load_state_dict(source.state_dict())
    assert empty.weight.is_meta
    before = empty.weight
    empty.load_state_dict(source.state_dict(), assign=True)
    assert empty.weight is not before
    assert torch.equal(empty.weight, source.weight)
    before = empty.weight
    empty.load_state_dict(source.state_dict())
    assert empty.weight is before


def test_an_optimizer_brings_its_settings():
    """an optimizer brings its old settings along (rate, weight decay, `fused`), and a scheduler its `T_max`, over new ones you may have set."""
    weight = nn.Parameter(torch.ones(2))
    old = {"lr": 0.1, "weight_decay": 0.1, "betas": (0.8, 0.9)}
    new = {"lr": 0.2, "weight_decay": 0.5, "betas": (0.9, 0.99), "fused": True}
    saved = torch.optim.AdamW([weight], **old).state_dict()
    adam = torch.optim.AdamW([weight], **new)
    adam.load_state_dict(saved)
    for name in new:
        assert adam.param_groups[0][name] == old.get(name)
    schedule = lr_scheduler.CosineAnnealingLR(adam, T_max=20)
    longer = lr_scheduler.CosineAnnealingLR(adam, T_max=40)
    longer.load_state_dict(schedule.state_dict())
    assert longer.T_max == 20


def test_buffers_that_no_file_has():
    """A buffer with `persistent=False` is not in the file and stays on *meta*: make it anew."""

    class Turning(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.register_buffer("angles", torch.arange(2.0), persistent=False)

        def forward(self, x):
            return self.layer(x) * self.angles

    source = Turning()
    with torch.device("meta"):
        empty = Turning()
    report = empty.load_state_dict(source.state_dict(), assign=True)
    assert report.missing_keys == []
    assert empty.layer.weight.device.type == "cpu"
    assert empty.angles.is_meta
    x = torch.ones(1, 2)
    with pytest.raises(RuntimeError, match="meta"):
        empty(x)
    empty.angles = torch.arange(2.0)
    assert torch.equal(empty(x), source(x))


def test_tied_weights_and_assign():
    """Weights that were tied are two parameters then: tie them again."""

    def tied():
        layers = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
        layers[1].weight = layers[0].weight
        return layers

    source = tied()
    usual = tied()
    usual.load_state_dict(source.state_dict())
    assert usual[0].weight is usual[1].weight
    with torch.device("meta"):
        empty = tied()
    empty.load_state_dict(source.state_dict(), assign=True)
    assert len(list(source.parameters())) == 1
    assert len(list(empty.parameters())) == 2
    assert torch.equal(empty[0].weight, empty[1].weight)
    empty[1].weight = empty[0].weight
    assert len(list(empty.parameters())) == 1


@pytest.mark.parametrize("assigned", [True, False])
def test_a_state_dict_remembers_assign(assigned):
    """And a state dict once loaded with `assign=True` replaces parameters ever after, also with `assign=False`: load `dict(state_dict)`."""
    held = nn.Linear(2, 3).state_dict()
    nn.Linear(2, 3).load_state_dict(held, assign=assigned)
    for again in ({}, {"assign": False}):
        layer = nn.Linear(2, 3)
        before = layer.weight
        layer.load_state_dict(held, **again)
        assert (layer.weight is before) == (not assigned)
    layer = nn.Linear(2, 3)
    before = layer.weight
    layer.load_state_dict(dict(held))  # without its metadata
    assert layer.weight is before


def test_distributed_checkpoint(tmp_path: Path):
    """`get_state_dict` gathers the state of model and optimizer *by name*, so that a run can go on with another number of processes; `save` and `load` write and read a folder of files"""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict

    net = nn.Linear(2, 3)
    adam = torch.optim.AdamW(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    adam.step()
    weights, moments = get_state_dict(net, adam)
    assert set(moments["state"]) == {"weight", "bias"}
    dcp.save(
        {"weights": weights}, checkpoint_id=tmp_path / "folder", no_dist=True
    )
    assert (tmp_path / "folder").is_dir()
    empty = {"weights": {k: torch.zeros_like(v) for k, v in weights.items()}}
    dcp.load(empty, checkpoint_id=tmp_path / "folder", no_dist=True)
    assert torch.equal(empty["weights"]["weight"], net.weight)


def test_a_loader_keeps_no_position():
    """A `DataLoader` keeps no position."""
    loader = torch.utils.data.DataLoader(range(6), batch_size=2)
    assert next(iter(loader)).tolist() == next(iter(loader)).tolist() == [0, 1]
    assert not hasattr(loader, "state_dict")


def test_hints_of_the_exercises(tmp_path: Path):
    """`f"{file}.partial"` works for a `str` and for a `Path`. `Path(file).with_suffix(".partial")` would give a file of that very suffix its own name.

    `hasattr(file, "write")` is true for open files and false for a `str` and a `Path`.

    `str.removeprefix` removes a prefix where it is one. `lstrip` removes *characters*, and `replace` looks everywhere.

    It changes `_metadata` too, which `copy.copy` shares with the original; `dict(...)` and `.copy()` leave it behind.

    `model.state_dict().keys() - state_dict.keys()` are the names that are missing; the other way round, the names left over. Both are sets.

    `<`, `>` and `==` with NaN are false.

    (An `nn.BatchNorm2d` that is frozen has it still.)
    """
    assert f"{'a/last.pt'}.partial" == f"{Path('a/last.pt')}.partial"
    assert Path("a.partial").with_suffix(".partial") == Path("a.partial")
    assert hasattr(io.BytesIO(), "write")
    with (tmp_path / "x").open("wb") as file:
        assert hasattr(file, "write")
    assert not hasattr("x", "write")
    assert not hasattr(Path("x"), "write")
    key = "module.mo.module.w"
    assert key.removeprefix("module.") == "mo.module.w"
    assert key.lstrip("module.") == "w"
    assert key.replace("module.", "") == "mo.w"
    assert "fc.module.w".removeprefix("module.") == "fc.module.w"
    given = nn.DataParallel(nn.BatchNorm1d(2)).state_dict()
    shallow = copy.copy(given)
    assert shallow._metadata is given._metadata
    for other in (dict(given), given.copy()):
        assert not hasattr(other, "_metadata")
    consume_prefix_in_state_dict_if_present(shallow, "module.")
    assert "module" not in given._metadata
    names = {"a": 1, "b": 2}.keys() - {"b": 1, "c": 1}.keys()
    assert names == {"a"}
    assert isinstance(names, set)
    for other in (math.nan, 0.0, math.inf):
        assert not (math.nan < other)
        assert not (math.nan > other)
        assert math.nan != other
    frozen = nn.BatchNorm2d(2).eval().requires_grad_(False)
    assert "num_batches_tracked" in frozen.state_dict()


def test_the_file_is_an_archive(there):
    """a pickle that says what there is, and the bytes of each tensor."""
    torch.save({"a": torch.ones(3), "b": torch.zeros(5)}, there)
    with zipfile.ZipFile(there) as archive:
        names = archive.namelist()
        bytes_of = {n: archive.read(n) for n in names if "/data/" in n}
    assert sum(name.endswith("data.pkl") for name in names) == 1
    assert sorted(map(len, bytes_of.values())) == [12, 20]


@pytest.mark.parametrize("kind", ["CosineAnnealingLR", "OneCycleLR"])
def test_the_popular_recipe(kind):
    """Epoch 5 was run twice: `epoch` is the index of a *finished* epoch. The scheduler began anew, so the rate at the end is not the planned one. Dropout drew other masks. Nothing complained."""
    weight = nn.Parameter(torch.ones(1))

    def begin():
        torch.manual_seed(0)
        sgd = torch.optim.SGD([weight], lr=1.0)
        return sgd, RATES[kind](sgd)

    def epochs(sgd, plan, first, last, run):
        for epoch in range(first, last):
            run.append((epoch, tuple(F.dropout(torch.ones(50)).tolist())))
            sgd.step()
            plan.step()
        return sgd.param_groups[0]["lr"]

    at_once, halves = [], []
    planned = epochs(*begin(), 0, 10, at_once)
    sgd, plan = begin()
    epochs(sgd, plan, 0, 6, halves)
    saved = {"sgd": sgd.state_dict(), "epoch": 5}
    sgd, plan = begin()
    sgd.load_state_dict(saved["sgd"])
    rate = epochs(sgd, plan, saved["epoch"], 10, halves)
    assert [e for e, _ in halves] == [*range(6), *range(5, 10)]
    assert abs(rate - planned) > 1e-3
    assert halves[-1][1] != at_once[-1][1]
    assert halves[0][1] == at_once[0][1]


@pytest.mark.parametrize("fails", [False, True])
def test_the_shortest_save(there, fails):
    """**Save** state dicts and plain values, under another name in the same folder. Then rename.

    State dicts and plain values, written under another name in the same folder, then `os.replace`. Against a power cut: `os.fsync` before it.
    """
    torch.save({"step": 1, "net": nn.Linear(2, 2).state_dict()}, there)
    content = {"step": 2, "net": nn.Linear(2, 2).state_dict()}
    if fails:
        content["other"] = Unwilling()
    beside = there.with_name(there.name + ".new")
    try:
        torch.save(content, beside)
        os.replace(beside, there)
    except RuntimeError:
        assert fails
    assert torch.load(there)["step"] == (1 if fails else 2)
    assert beside.exists() == fails


def test_bytes_that_reach_the_disk(there):
    """write to an open file, then `flush()` and `os.fsync(file.fileno())`."""
    with there.open("wb") as file:
        torch.save(torch.arange(1000), file)
        assert not file.closed
        file.flush()
        os.fsync(file.fileno())
        assert there.stat().st_size == file.tell()
        assert torch.equal(torch.load(there), torch.arange(1000))


class RunsAtLoading:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"net": [x]}])
def test_what_a_pickle_can_do(there, tmp_path, wrap):
    """A pickle can run any code; this reader is meant to run none.

    It is meant to run no code
    """
    torch.save(wrap(RunsAtLoading(tmp_path / "made")), there)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(there)
    assert not (tmp_path / "made").exists()
    torch.load(there, weights_only=False)
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_safetensors(tmp_path, dtype):
    """`safetensors.torch.load_file` reads tensors and has no pickle at all."""
    from safetensors.torch import load_file, save_file

    weights, path = small_net().to(dtype).state_dict(), tmp_path / "x"
    save_file(weights, path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header.keys() - {"__metadata__"} == weights.keys()
    numbers = sum(tensor.nbytes for tensor in weights.values())
    assert len(content) == 8 + length + numbers
    for name, tensor in load_file(path).items():
        assert torch.equal(tensor, weights[name])
    with pytest.raises((ValueError, TypeError, AttributeError)):
        save_file({"other": Importable()}, path)


@pytest.mark.parametrize(("kept", "new"), [(2.0**8, True), (2.0**20, False)])
def test_a_scale_that_starts_over(kept, new):
    """the scale starts over: steps are skipped, or small gradients lost"""
    slope = 100.0 if new else 2e-13  # infinite at 2 ** 16, or 0

    def moves(scale):
        weight = nn.Parameter(torch.zeros(1))
        sgd = torch.optim.SGD([weight], lr=1e9 if slope < 1 else 1.0)
        options = {} if scale is None else {"init_scale": scale}
        scaler = torch.amp.GradScaler("cpu", **options)
        loss = weight.half().sum().float() * slope
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()
        return weight.item() != 0, scaler.get_scale()

    assert moves(kept) == (True, kept)
    moved, scale = moves(None)
    assert not moved
    assert scale == (2.0**15 if new else 2.0**16)


def test_what_was_frozen_is_trained_again():
    """no state dict holds `requires_grad`: it is as at the start"""
    old, new = nn.Linear(2, 1), nn.Linear(2, 1)
    old.weight.requires_grad_(False)
    new.load_state_dict(old.state_dict())
    assert new.weight.requires_grad
    sgd = torch.optim.SGD(old.parameters(), lr=0.1)
    again = torch.optim.SGD(new.parameters(), lr=0.1)
    again.load_state_dict(sgd.state_dict())
    for net, one in ((old, sgd), (new, again)):
        before = net.weight.detach().clone()
        net(torch.ones(1, 2)).sum().backward()
        one.step()
        assert torch.equal(net.weight, before) == (net is old)


def test_an_average_that_starts_over(there):
    """the average starts over"""
    net = nn.Linear(1, 1)
    averaged = AveragedModel(net)
    for value in (0.0, 2.0, 4.0):
        nn.init.constant_(net.weight, value)
        averaged.update_parameters(net)
    state = through_file(averaged.state_dict(), there)
    loaded, empty = AveragedModel(net), AveragedModel(net)
    loaded.load_state_dict(state)
    nn.init.constant_(net.weight, 6.0)
    for one, wanted in ((loaded, 3.0), (empty, 6.0)):
        one.update_parameters(net)
        assert one.module.weight.item() == wanted


@pytest.mark.parametrize("gone", [None, nn.Identity()])
def test_keys_below_a_child_that_is_none(gone):
    """which unexpected (not those of a child replaced by `None`)."""
    whole = nn.ModuleDict({"body": nn.Linear(2, 2), "head": nn.Linear(2, 1)})
    model = copy.deepcopy(whole)
    model.head = gone
    report = model.load_state_dict(whole.state_dict(), strict=False)
    found = [] if gone is None else ["head.weight", "head.bias"]
    assert report.unexpected_keys == found


def test_the_order_of_the_epoch(there):
    """samples come twice or never

    `torch.randperm` was called again. The order of the epoch in which the process died belongs in the checkpoint, or the random state from before it was drawn.
    """
    before = torch.get_rng_state()
    order = torch.randperm(100)
    after = torch.get_rng_state()
    seen, to_come = order[:60], order[60:]
    torch.manual_seed(99)
    assert through_file(to_come, there).tolist() == to_come.tolist()
    torch.set_rng_state(before)
    assert torch.equal(torch.randperm(100), order)
    for _ in range(3):
        torch.set_rng_state(after)
        rest = torch.randperm(100)[60:]
        both = torch.cat([seen, rest]).bincount(minlength=100)
        assert both.max() == 2
        assert both.min() == 0
        after = torch.get_rng_state()


def test_a_signal_before_the_end():
    """note it in a signal handler, let loader workers ignore it (in `worker_init_fn`; at the end `del` loaders and iterators that have a name, or the process may never end), and save after the step."""
    noted, saved = [], []
    before = signal.signal(signal.SIGTERM, lambda *_: noted.append(True))
    try:
        for step in range(5):
            if step == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            done = torch.ones(3).sum().item()
            if noted:
                saved.append((step, done))
                break
    finally:
        signal.signal(signal.SIGTERM, before)
    assert saved == [(2, 3.0)]


def ignore_sigterm(_worker):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize("kind", ["persistent", "named iterator", "loop"])
def test_workers_that_ignore_a_signal(kind, deleted):
    """let loader workers ignore it (in `worker_init_fn`; at the end `del` loaders and iterators that have a name, or the process may never end), and save after the step."""
    held = []
    context = torch.multiprocessing.get_context("fork")
    over = context.Event()

    def run():
        os.setsid()
        held.append(
            torch.utils.data.DataLoader(
                range(4),
                num_workers=1,
                persistent_workers=kind == "persistent",
                worker_init_fn=ignore_sigterm,
                multiprocessing_context="fork",
            )
        )
        if kind == "named iterator":
            held.append(iter(held[0]))
            next(held[1])
        else:
            for _ in held[0]:
                pass
        if deleted:
            held.clear()
        over.set()

    process = context.Process(target=run)
    process.start()
    try:
        assert over.wait(60)
        stays = kind != "loop" and not deleted
        process.join(1 if stays else 60)
        assert process.is_alive() == stays
    finally:
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_resumed_with_workers(persistent, own):
    """set the random states, in mid-epoch only after the batches that are done have been skipped: `iter(loader)` draws a base seed (with persistent workers only a loader's first one), and the first `next` may draw the order. So give sampler and loader a generator each, and save these as they were at the epoch's start (chapter 13);"""

    def make():
        rng = torch.Generator().manual_seed(3)
        loader = torch.utils.data.DataLoader(
            range(6),
            3,
            sampler=torch.utils.data.RandomSampler(
                range(6), generator=rng if own else None
            ),
            generator=torch.Generator().manual_seed(4) if own else None,
            num_workers=1,
            persistent_workers=persistent,
            multiprocessing_context="fork",
        )
        return loader, rng

    def epoch(loader):
        return [
            (rows.tolist(), F.dropout(torch.ones(40)).tolist())
            for rows in loader
        ]

    loader, rng = make()
    epoch(loader)
    states = torch.get_rng_state(), rng.get_state()
    whole = epoch(loader)
    loader, rng = make()
    torch.manual_seed(99)
    torch.set_rng_state(states[0])
    rng.set_state(states[1])
    assert (epoch(loader) == whole) == (own or not persistent)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("skipped_first", [True, False])
def test_resumed_in_mid_epoch(workers, skipped_first):
    """in mid-epoch only after the batches that are done have been skipped: `iter(loader)` draws a base seed (with persistent workers only a loader's first one), and the first `next` may draw the order."""

    def begin():
        return iter(
            torch.utils.data.DataLoader(
                range(12),
                3,
                shuffle=True,
                num_workers=workers,
                multiprocessing_context="fork" if workers else None,
            )
        )

    def rest(batches):
        return [(rows.tolist(), torch.rand(())) for rows in batches]

    torch.manual_seed(5)
    start = torch.get_rng_state()
    batches = begin()
    rest(next(batches) for _ in range(2))
    middle = torch.get_rng_state()
    whole = rest(batches)
    torch.set_rng_state(start)
    batches = begin()
    if not skipped_first:
        torch.set_rng_state(middle)
    for _ in range(2):
        next(batches)
    if skipped_first:
        torch.set_rng_state(middle)
    # a worker's first batches are asked for, and so the order drawn, at once
    assert (rest(batches) == whole) == (skipped_first or workers > 0)


class DrawsItself(torch.utils.data.Dataset):
    def __init__(self, seeded):
        self.seeded = seeded

    def __len__(self):
        return 8

    def __getitem__(self, key):
        epoch, index = key
        own = torch.Generator()
        own.manual_seed(1000 * epoch + index)
        return torch.rand((), generator=own if self.seeded else None)


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("workers", [0, 1])
def test_what_workers_draw_is_in_no_state(seeded, workers):
    """What loader workers draw is in none of these: seed it with epoch and index (chapter 13)."""

    def batches(done):
        loader = torch.utils.data.DataLoader(
            DrawsItself(seeded),
            2,
            sampler=[(5, index) for index in range(2 * done, 8)],
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )
        return iter(loader)

    torch.manual_seed(0)
    running = batches(0)
    for _ in range(2):
        next(running)
    state = torch.get_rng_state()
    rest = [rows.tolist() for rows in running]
    torch.manual_seed(99)
    resumed = batches(2)
    torch.set_rng_state(state)
    same = [rows.tolist() for rows in resumed] == rest
    assert same == (seeded or not workers)


@pytest.mark.parametrize("stop", [4, 7])
def test_without_the_random_states(stop):
    """Without the random states the loss looks fine, and the run is another one."""
    X, y = torch.randn(256, 8), torch.randint(2, (256,))
    y = (X[:, 0] + 0.3 * torch.randn(256) > 0).long()

    def run(resumed):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2)
        )
        adam, losses = torch.optim.AdamW(net.parameters(), lr=0.01), []
        for epoch in range(12):
            if epoch == stop and resumed:
                torch.manual_seed(99)
            for pick in torch.randperm(256).split(64):
                loss = F.cross_entropy(net(X[pick]), y[pick])
                adam.zero_grad()
                loss.backward()
                adam.step()
                losses.append(loss.item())
        return sum(losses[-8:]) / 8, net[0].weight.detach()

    (one, weights), (other, others) = run(False), run(True)
    assert abs(one - other) < 0.2 * one
    assert (weights - others).abs().max() > 1e-3


def test_an_edited_archive(there):
    """(`mmap=True` is not for such an edited file: its numbers are no longer aligned in memory.)"""

    def misplaced(tensors):
        return [t.data_ptr() % t.element_size() for t in tensors]

    found = []
    for size in (1, 2, 3, 5, 8):
        torch.save([torch.ones(size), torch.ones(size + 1)], there)
        assert misplaced(torch.load(there, mmap=True)) == [0, 0]
        with zipfile.ZipFile(there) as archive:
            parts = {one: archive.read(one) for one in archive.namelist()}
        with zipfile.ZipFile(there, "w") as archive:
            for one, content in parts.items():
                content = content.replace(b"X\3\0\0\0cpu", b"X\7\0\0\0cuda:63")
                archive.writestr(one, content)
        assert misplaced(torch.load(there, map_location="cpu")) == [0, 0]
        found += misplaced(torch.load(there, map_location="cpu", mmap=True))
    assert any(found)


def test_from_its_position_on():
    """`file` may also be an open binary file, which is written or read from its position on and stays open."""
    file = io.BytesIO()
    file.write(b"before")
    torch.save({"step": 1}, file)
    end = file.tell()
    torch.save({"step": 2}, file)
    for place, step in ((6, 1), (end, 2)):
        file.seek(place)
        assert torch.load(file) == {"step": step}
    assert not file.closed


@pytest.mark.parametrize("place", ["cpu", "meta"])
def test_where_tensors_go(there, place):
    """`map_location` says where tensors go; random states must stay on the CPU.

    **Load** with the defaults of `torch.load`, plus `map_location="cpu"`.

    load all their state dicts: weights and moments go to the model's device by themselves;
    """
    net = small_net()
    adam = torch.optim.AdamW(net.parameters())
    net(torch.ones(3, 4)).sum().backward()
    adam.step()
    content = {"net": net.state_dict(), "adam": adam.state_dict()}
    content["rng"] = torch.get_rng_state()
    loaded = through_file(content, there, map_location=place)
    if place == "cpu":
        torch.set_rng_state(loaded["rng"])
    else:
        with pytest.raises((TypeError, RuntimeError)):
            torch.set_rng_state(loaded["rng"])
    moments = [
        tensor
        for state in loaded["adam"]["state"].values()
        for tensor in state.values()
    ]
    assert len(moments) > 6
    for tensor in (*loaded["net"].values(), *moments):
        assert tensor.device.type == place
    if place == "meta":
        return
    for elsewhere in ("cpu", "cuda" if torch.cuda.is_available() else "meta"):
        net = small_net().to(elsewhere)
        adam = torch.optim.AdamW(net.parameters())
        with warnings.catch_warnings(action="ignore"):  # "a no-op", on meta
            net.load_state_dict(loaded["net"])
        adam.load_state_dict(loaded["adam"])
        assert {p.device.type for p in net.parameters()} == {elsewhere}
        for state in adam.state.values():
            assert state["exp_avg"].device.type == elsewhere
            assert state["exp_avg_sq"].device.type == elsewhere


def test_random_states_of_a_gpu():
    """set the random states, in mid-epoch only after the batches that are done have been skipped: `iter(loader)` draws a base seed (with persistent workers only a loader's first one), and the first `next` may draw the order. So give sampler and loader a generator each, and save these as they were at the epoch's start (chapter 13); states must lie on the CPU, also those of a GPU;"""
    state = torch.get_rng_state()
    iter(torch.utils.data.DataLoader([1, 2]))
    assert not torch.equal(torch.get_rng_state(), state)
    for state in torch.cuda.get_rng_state_all():
        assert state.device.type == "cpu"
    if not torch.cuda.is_available():
        return
    states = torch.cuda.get_rng_state_all()
    torch.cuda.set_rng_state_all(states)
    with pytest.raises((TypeError, RuntimeError)):
        torch.cuda.set_rng_state_all([one.cuda() for one in states])


@pytest.mark.parametrize("strict", [True, False])
def test_a_wrong_shape(strict):
    """What does not hide is a wrong shape (but for `(1,)` where `()` is wanted, and in lazy layers that have not run, which take any), and even then the tensors that do fit have been loaded when the error comes.

    (A tensor of shape `(1,)` where `()` is wanted may pass, as it does in PyTorch.)
    """
    lazy = nn.LazyLinear(3)
    lazy.load_state_dict(nn.Linear(7, 5).state_dict(), strict=strict)
    assert lazy(torch.ones(1, 7)).shape == (1, 5)
    with pytest.raises(RuntimeError, match="size mismatch"):
        lazy.load_state_dict(nn.Linear(7, 4).state_dict(), strict=strict)
    shapes = [(), (1,), (3,), (1, 1), (1, 3), (3, 1)]
    for own in shapes:
        for given in shapes:
            net = nn.Module()
            net.first = nn.Parameter(torch.zeros(2))
            net.second = nn.Parameter(torch.zeros(own))
            state = {"first": torch.ones(2), "second": torch.ones(given)}
            passes = own == given or (own, given) == ((), (1,))
            if passes:
                net.load_state_dict(state, strict=strict)
                assert net.second.shape == own
                assert net.second.eq(1).all()
            else:
                with pytest.raises(RuntimeError, match="size mismatch"):
                    net.load_state_dict(state, strict=strict)
                assert net.second.eq(0).all()
            assert net.first.eq(1).all()


@pytest.fixture(scope="module")
def set_up() -> Any:
    """What the chapter's set-up cells define."""
    path = "solutions/12_checkpoints/12_checkpoints.py"
    chapter = read_chapter(Path(__file__).resolve().parents[2] / path)
    names: dict[str, Any] = {}
    for _, source in chapter.setup_source:
        exec(source, names)
    return types.SimpleNamespace(**names)


def test_a_step_of_the_job(set_up):
    """A step draws random numbers from three generators: PyTorch's (dropout), NumPy's and Python's. The scheduler moves after every step. The order of the samples is drawn anew at the beginning of every epoch, and the last batch of an epoch is shorter than the others."""
    job, taken = set_up.Job(), []
    net = job.make_model()
    sgd = job.make_optimizer(net)
    plan = job.make_scheduler(sgd)

    def states():
        return (
            torch.get_rng_state().tolist(),
            str(np.random.get_state()),
            random.getstate(),
        )

    before = states()
    job.step(net, sgd, plan, job.make_scaler(), torch.arange(4))
    pairs = zip(before, states(), strict=True)
    assert all(one != other for one, other in pairs)
    assert plan.last_epoch == 1

    class Watched(set_up.Job):
        def step(self, *parts):
            taken.append(parts[-1].tolist())
            return super().step(*parts)

    set_up.train_in_one_go(Watched())
    assert [len(one) for one in taken] == [4, 4, 2] * 3
    samples = [index for indices in taken for index in indices]
    epochs = [samples[i : i + 10] for i in (0, 10, 20)]
    assert all(sorted(one) == list(range(10)) for one in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("fault", ["missing", "left over", "shape", None])
def test_a_new_dict_and_a_strict_load(fault):
    """Make a *new* dict in which the counters are right, and load it with `strict=True`. Then whatever has to raise does so by itself.

    Put a zero into the dict before loading.
    """
    net = small_net()
    net(torch.randn(6, 4))
    given = OrderedDict(small_net().state_dict())
    del given["1.num_batches_tracked"]
    adapted = dict(given) | {"1.num_batches_tracked": torch.tensor(0)}
    if fault == "missing":
        del adapted["0.bias"]
    elif fault == "left over":
        adapted["9.bias"] = torch.ones(1)
    elif fault == "shape":
        adapted["0.bias"] = torch.ones(3)
    if fault:
        with pytest.raises(RuntimeError, match=r"0\.bias|9\.bias"):
            net.load_state_dict(adapted, strict=True)
        return
    weights = list(net.parameters())
    net.load_state_dict(adapted, strict=True)
    assert net[1].num_batches_tracked == 0
    same = zip(weights, net.parameters(), strict=True)
    assert all(one is other for one, other in same)
    assert "1.num_batches_tracked" not in given


@pytest.mark.parametrize("name", [".partial", ".partial-4"])
def test_a_name_that_is_refused(tmp_path, name):
    """`torch.save` refuses a name like `.partial`, whose only dot is the first character."""
    with pytest.raises(RuntimeError, match="invalid file name"):
        torch.save({}, tmp_path / name)
    for other in (f"{name}.pt", name[1:], "last.partial"):
        torch.save({}, tmp_path / other)


@pytest.mark.gpu
def test_dropout_draws_from_the_gpus_generator():
    """Dropout on a GPU draws from another one, so save `torch.cuda.get_rng_state_all()` too (an empty list without a GPU) and set it with `torch.cuda.set_rng_state_all`."""
    x = torch.ones(1000, device="cuda")
    host, gpus = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    first = F.dropout(x)
    assert torch.equal(torch.get_rng_state(), host)
    torch.set_rng_state(host)
    assert not torch.equal(F.dropout(x), first)
    torch.cuda.set_rng_state_all(gpus)
    assert torch.equal(F.dropout(x), first)
