"""What chapter 00 states about devices and moves, run; meta is the second device."""

import copy
import os
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.cuda import _parse_visible_devices

BY_CELL = {
    "claim_002_01": [
        "On a build for the CPU the version is None and the name raises.",
    ],
    "claim_004_04": [
        "The model has moved, `x` has not: a tensor's `.to` returns another tensor, which nobody kept.",
    ],
    "left_behind": [
        "A module moves what it *owns*: parameters, buffers, submodules.",
        "A tensor that is only an attribute stays where it was born.",
    ],
    "claim_002_19": ["Up to ten GPUs that goes well."],
    "claim_000_02": [
        'With "2,1", `cuda:0` is physical GPU 2.',
        "The list is an order: `2,0` is not `0,2`.",
    ],
    "claim_001_36": ["`setdefault` leaves a value that is already there."],
    "claim_001_34": [
        "*Correct*, but for the copy: where nothing changes you get the same tensor back.",
    ],
    "claim_001_35": [
        "Its state does not move: Adam's moments, made at the first step, stay in the old dtype and on the old device.",
        "Integer buffers keep their dtype.",
    ],
    "claim_004_09": ["*Correct*, the integers of token ids too."],
    "claim_002_22": [
        "It means the *current* CUDA device, whichever that is: its index is None.",
        "who runs the line calls the object, and a device cannot be called.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/notes/hip.html": [
        'On a build for AMD\'s ROCm, `torch.cuda` drives the AMD cards, and `"cuda"` is the name of their devices. There `torch.version.cuda` is None and `torch.version.hip` has the version.',
    ],
    "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html": [
        "CUDA by itself counts the fastest card first and `nvidia-smi` by the slot on the bus: with the first variable both count alike.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html": [
        "unless PyTorch asks the driver's management library instead (`PYTORCH_NVML_BASED_CUDA_CHECK=1`).",
    ],
    "https://docs.pytorch.org/docs/stable/accelerator.html": [
        "without `check_available=True` it names what this PyTorch was *built* for, and a build for CUDA on a machine without a GPU then fails at the first `.to`.",
    ],
    "https://docs.nvidia.com/deploy/nvidia-smi/index.html": [
        "The *CUDA Version* in the table's head is the newest that the driver supports.",
        "Utilisation is the share of time in which *some* kernel ran.",
        "`CUDA_VISIBLE_DEVICES` takes UUIDs too, and these do not depend on any order.",
    ],
    "https://docs.nvidia.com/deploy/driver-persistence/index.html": [
        "NVIDIA calls it near its end of life and recommends the daemon `nvidia-persistenced`.",
    ],
}


def test_one_operation_two_devices():
    """`away` is a second device. Without a GPU it is *meta*, which every machine has: tensors there have a shape and a dtype, and no values. As with a GPU, one operation does not take tensors of two devices. (Three things are allowed all the same: a tensor on the CPU without dimensions as a number, an index on the CPU, and `copy_`, which is a move.)

    *meta* is a second device on every machine: a test of device handling needs no GPU.
    """
    here, away = torch.ones(3), torch.ones(3, device="meta")
    assert (away.shape, away.dtype) == (here.shape, here.dtype)
    with pytest.raises(NotImplementedError):
        away.to("cpu")
    for operation in (torch.add, torch.dot, lambda a, b: torch.cat([a, b])):
        with pytest.raises((RuntimeError, NotImplementedError)):
            operation(here, away)
    with pytest.raises(RuntimeError):
        nn.Linear(3, 1, device="meta")(here)
    assert (away * torch.tensor(2.0)).is_meta
    assert away[torch.tensor([0, 1])].is_meta
    assert away.copy_(here).is_meta


def test_what_a_module_owns():
    """A Python list hides its layers, from `.to`, from `parameters()` and so from the optimizer

    A module moves its parameters, buffers and submodules. Lists and plain tensors stay: `nn.ModuleList`, `register_buffer`.
    """
    net = nn.Module()
    net.hidden, net.plain = [nn.Linear(2, 2)], torch.ones(1)
    net.listed = nn.ModuleList([nn.Linear(2, 2)])
    net.register_buffer("kept", torch.ones(1))
    net.register_buffer("unsaved", torch.ones(1), persistent=False)
    assert len(list(net.parameters())) == 2
    for move in (lambda m: m.double(), lambda m: m.to("meta")):
        move(net)
    assert net.kept.is_meta
    assert net.unsaved.is_meta
    assert net.listed[0].weight.is_meta
    assert not net.plain.is_meta
    assert not net.hidden[0].weight.is_meta
    assert net.plain.dtype == net.hidden[0].weight.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_born_in_the_right_place(dtype):
    """A tensor made inside a model takes device and dtype from one that is already there:

    New tensors take device and dtype from one that is there: `new_zeros`, `zeros_like`, `device=`. Not from the token ids.
    """
    X = torch.empty(4, 3, device="meta", dtype=dtype)
    for made in (
        X.new_zeros(4),
        torch.zeros_like(X),
        X.new_ones(2),
        X.new_empty(1),
    ):
        assert made.device == X.device
        assert made.dtype == dtype
    assert torch.zeros(4, device=X.device).dtype == torch.float32
    assert torch.zeros(4).device.type == "cpu"


def test_the_context():
    """under `with torch.device(X.device):` the functions that make a tensor of sizes or numbers (`torch.zeros`, `torch.tensor`, the layers of `nn`) make it there. It does not reach `torch.Tensor(3)`, `torch.from_numpy`, or what is made like a tensor on the CPU (`zeros_like`, `clone`). It sets no dtype."""
    other = torch.ones(3)
    with torch.device("meta"):
        for made in (
            torch.zeros(2),
            torch.ones(2),
            torch.tensor([1.0]),
            torch.randn(2),
            torch.arange(3),
            nn.Linear(2, 2).weight,
            nn.BatchNorm1d(2).running_mean,
        ):
            assert made.is_meta
        for made in (
            torch.Tensor(3),
            torch.from_numpy(np.ones(2)),
            torch.zeros_like(other),
            other.clone(),
            other.new_zeros(2),
        ):
            assert not made.is_meta
        assert torch.zeros(1).dtype == torch.float32
    assert not torch.zeros(1).is_meta


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0,1", [0, 1]),
        ("2,0", [2, 0]),
        ("0,2", [0, 2]),
        ("2,0,-1,1", [2, 0]),
        ("1,1", []),
        ("0,2,0", []),
        ("", []),
        ("3", [3]),
    ],
)
def test_visible_devices(monkeypatch, text, wanted):
    """The first entry that is no GPU ends the list.

    A GPU named twice leaves none. An empty list too: a good way to try a script without one.

    It hides, orders and renumbers; an invalid entry ends it.
    """
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
    assert _parse_visible_devices() == wanted


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_a_module_keeps_its_parameters(kind):
    """The module itself is returned, and its parameters stay the same objects, so an optimizer that holds them holds the moved ones.

    Not so with *meta*, which puts new parameters in their place (unless `torch.__future__.set_swap_module_params_on_conversion(True)`). So move first and make the optimizer then.
    """
    layer = nn.Linear(2, 1)
    optimizer, weight = kind(layer.parameters(), lr=0.1), layer.weight
    for move in (lambda m: m.double(), lambda m: m.to(torch.bfloat16)):
        assert move(layer) is layer
        assert layer.weight is weight
        assert optimizer.param_groups[0]["params"][0] is layer.weight
    assert layer.to("meta").weight is not weight
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = nn.Linear(2, 1)
        weight = layer.weight
        assert layer.to("meta").weight is weight
        assert weight.is_meta
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


def test_hints_of_the_exercises():
    """`dict(environ)` copies what any mapping holds, `os.environ` too. `copy.copy(os.environ)` does not: it goes on writing to the real environment.

    `"12".isdecimal()` is true; `"-1"`, `""` and `"x"` are not decimal.

    `[2, 0].index(0)` is 1, and raises a `ValueError` where there is nothing to find.

    A named tuple is a tuple, and wants its items one by one: `type(batch)(*items)`. It has an attribute `_fields`, a plain tuple has not.

    `"a"[0]` is `"a"`, which has an item 0 too.
    """
    name = "COURSE_STATEMENT_OF_FACT"
    dict(os.environ)[name] = "1"
    assert name not in os.environ
    try:
        copy.copy(os.environ)[name] = "1"
        assert name in os.environ
    finally:
        os.environ.pop(name, None)
    assert "12".isdecimal()
    assert not any(text.isdecimal() for text in ("-1", "", "x"))
    assert [2, 0].index(0) == 1
    with pytest.raises(ValueError, match="not in list"):
        [2, 0].index(3)
    pair = namedtuple("pair", "a b")
    assert isinstance(pair(1, 2), tuple)
    assert type(pair(1, 2))(*[3, 4]) == pair(3, 4)
    with pytest.raises(TypeError):
        pair([3, 4])
    assert hasattr(pair(1, 2), "_fields")
    assert not hasattr((1, 2), "_fields")
    assert isinstance(OrderedDict(), dict)
    assert "a"[0] == "a" == "a"[0][0]
