"""What chapter 00 states about devices and moves, run; meta is the second device."""

import copy
import itertools
import operator
import os
import subprocess
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.cuda import _parse_visible_devices
from torch.utils.data import DataLoader

from course_utils import describe_machine

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
    "claim_002_19": [
        "Up to ten GPUs that goes well, if none is cut into slices (MIG)."
    ],
    "claim_000_02": [
        'With "2,1", `cuda:0` is physical GPU 2, in CUDA\'s own order (section 3).',
        "The list is an order: `2,0` is not `0,2`.",
    ],
    "claim_000_01": ["Only GPU 0 is left."],
    "claim_002_25": [
        "From Python the same is `env=` of a new process, as exercise 2 has it.",
    ],
    "claim_001_36": [
        "`setdefault` leaves a value that is already there.",
        "*Half right:* as text only, and in time.",
    ],
    "claim_001_33": [
        "*Correct* in a single process. Newer, and not for CUDA alone: `torch.accelerator.current_accelerator`.",
    ],
    "claim_001_34": [
        "*Correct*, but for the copy: where nothing changes you get the same tensor back.",
    ],
    "claim_001_35": [
        "The optimizer's state does not move: Adam's moments, made at the first step, stay in the old dtype and on the old device.",
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
        "it comes early: one `torch.cuda.is_available()` is enough to freeze the list,",
        "`cuda` without a number then means the first (until `torch.cuda.set_device` chooses another).",
    ],
    "https://github.com/pytorch/pytorch/issues/80876": [
        "PyTorch 1.12.0 froze it at `import torch`.",
    ],
    "https://github.com/pytorch/pytorch/blob/main/torch/csrc/cuda/shared/cudnn.cpp": [
        "`cuda` is what this PyTorch was *built* with, `cudnn` the library that it runs with. Neither says anything about the driver.",
    ],
    "https://www.tensorflow.org/guide/gpu": ["The name is TensorFlow's."],
    "https://docs.pytorch.org/docs/stable/accelerator.html": [
        "without `check_available=True` it names what this PyTorch was *built* for, and a build for CUDA on a machine without a GPU then fails at the first `.to`.",
    ],
    "https://docs.nvidia.com/deploy/nvidia-smi/index.html": [
        "The *CUDA Version* in the table's head is the newest that the driver supports.",
        "Utilisation is the share of time in which *some* kernel ran.",
        "It is neither the toolkit on the disk nor what PyTorch was built with.",
        "`--query-gpu=index` asks for them.",
        "`CUDA_VISIBLE_DEVICES` takes UUIDs too, and these do not depend on any order.",
    ],
    "https://docs.nvidia.com/deploy/driver-persistence/index.html": [
        "NVIDIA calls it near its end of life and recommends the daemon `nvidia-persistenced`.",
    ],
}


def test_one_operation_two_devices():
    """`away` is a second device. Without a GPU it is *meta*, which every machine has: tensors there have a shape and a dtype, and no values. As a rule, one operation does not take tensors of two devices. (Allowed, among others: in arithmetic a CPU tensor without dimensions, an index on the CPU, and `copy_`, but not out of *meta*.) *meta* is less strict than a GPU: addition, `cat` and a `Linear` with a bias raise there, and so does a matrix times a vector, but not `+=`, products of two matrices, convolutions and `nn.Embedding`.

    *meta* is a second device on every machine, for a first test of device handling. A GPU may refuse what *meta* lets pass, and takes what *meta* refuses because it has no values: `x[mask]`, `.item()`.
    """
    here, away = torch.ones(3), torch.ones(3, device="meta")
    assert (away.shape, away.dtype) == (here.shape, here.dtype)
    with pytest.raises(NotImplementedError):
        away.to("cpu")
    for operation in (torch.add, torch.dot, lambda a, b: torch.cat([a, b])):
        with pytest.raises((RuntimeError, NotImplementedError)):
            operation(here, away)
    for shape in ((3,), (4, 3), (2, 4, 3)):
        with pytest.raises(RuntimeError):
            nn.Linear(3, 1, device="meta")(torch.ones(shape))
    kept, there = torch.ones(3, 3), torch.ones(3, 3, device="meta")
    for matrix, vector in ((kept, away), (there, here), (kept[None], away)):
        with pytest.raises(RuntimeError):
            matrix @ vector
    image, ids = torch.ones(1, 1, 8, 8), torch.tensor([[0, 1]])
    for passes in (
        lambda: operator.iadd(torch.ones(3), away),
        lambda: operator.iadd(torch.ones(3, device="meta"), here),
        lambda: kept @ there,
        lambda: there @ kept,
        lambda: kept[None] @ there[None],
        lambda: nn.Conv2d(1, 2, 3, device="meta")(image),
        lambda: nn.Conv2d(1, 2, 3, bias=False, device="meta")(image),
        lambda: nn.Embedding(5, 3, device="meta")(ids),
        lambda: nn.Embedding(5, 3)(ids.to("meta")),
    ):
        passes()
    for needs_values in (lambda: away[away > 0], away.sum().item):
        with pytest.raises((RuntimeError, NotImplementedError)):
            needs_values()
    assert (away * torch.tensor(2.0)).is_meta
    assert away[torch.tensor([0, 1])].is_meta
    assert away.copy_(here).is_meta
    with pytest.raises(NotImplementedError, match="no data"):
        here.copy_(away)


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


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_hidden_layer_does_not_learn(kind):
    """on a CPU this model would train without a word, and the hidden layer would not learn.

    `nn.ModuleList` for the layers, `self.register_buffer("decay", ...)` for a tensor that belongs to the module and is not trained.
    """

    class Hides(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = [nn.Linear(2, 2)]
            self.known = nn.ModuleList([nn.Linear(2, 1)])
            self.register_buffer("decay", torch.ones(2))

        def forward(self, x):
            return self.known[0](self.decay * self.hidden[0](x))

    net, x = Hides(), torch.randn(8, 2)
    tensors = [net.hidden[0].weight, net.known[0].weight, net.decay]
    before = [one.detach().clone() for one in tensors]
    optimizer = kind(net.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
    still = [torch.equal(*pair) for pair in zip(tensors, before, strict=True)]
    assert still == [True, False, True]
    assert sorted(net.state_dict()) == [
        "decay",
        "known.0.bias",
        "known.0.weight",
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_born_in_the_right_place(dtype):
    """A tensor made inside a model takes device and dtype from one that is already there:

    `tokens.new_zeros(4)` of integer token ids is a state of integers. For a state of the model, ask a weight of the model.

    `self.embed.weight.new_zeros(...)` has the device and dtype that the weights have *now*. Tokens are integers, and what the constructor saw may be out of date.

    New tensors take device and dtype from one that is there: `new_zeros`, `zeros_like`, or `device=` and `dtype=` both. Not from the token ids.
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
    assert torch.zeros(4, device=X.device).dtype == torch.get_default_dtype()
    embed = nn.Embedding(5, 3)
    for move in (embed.double, lambda: embed.to("meta")):
        move()
        made = embed.weight.new_zeros(4)
        assert made.dtype == embed.weight.dtype == torch.float64
        assert made.device == embed.weight.device
    assert not torch.tensor([5, 2]).new_zeros(4).is_floating_point()
    assert torch.zeros(4, device=X.device).dtype == torch.float32
    assert torch.zeros(4).device.type == "cpu"


def test_the_context():
    """under `with torch.device(X.device):` most functions that make a tensor of sizes or numbers (`torch.zeros`, `torch.tensor`, the layers of `nn`) make it there. It does not reach all: not `torch.Tensor(3)`, `torch.normal`, `torch.from_numpy`, nor what is made like a tensor on the CPU (`zeros_like`, `clone`). It sets no dtype."""
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
            torch.FloatTensor(3),
            torch.block_diag(),
            torch.normal(0.0, 1.0, (3,)),
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
        ("1,7,0", [1]),
    ],
)
def test_visible_devices(monkeypatch, text, wanted):
    """The first entry that is no GPU ends the list.

    A GPU named twice leaves none. An empty list too: a good way to try a script without one.

    It hides, orders and renumbers; an entry that is no GPU ends the list, one named twice empties it.

    Physical GPU 2 is its `cuda:0`, physical GPU 0 its `cuda:1`; the others do not exist for it.

    `2,0,-1,1` shows two GPUs, `1,7,0` one.

    With `3` there is one GPU, and its name is `cuda:0`. `cuda:3` does not exist.
    """
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
    read = _parse_visible_devices()
    assert [*itertools.takewhile(lambda gpu: gpu < 4, read)] == wanted


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_a_module_keeps_its_parameters(kind):
    """The module itself is returned, and by default its parameters stay the same objects, so an optimizer that holds them holds the moved ones.

    (*Meta* puts new ones in their place, two for a shared one, unless `torch.__future__.set_swap_module_params_on_conversion(True)`.)

    So move first and make the optimizer then.
    """
    layer = nn.Linear(2, 1)
    optimizer, weight = kind(layer.parameters(), lr=0.1), layer.weight
    for move in (lambda m: m.double(), lambda m: m.to(torch.bfloat16)):
        assert move(layer) is layer
        assert layer.weight is weight
        assert optimizer.param_groups[0]["params"][0] is layer.weight
    assert layer.to("meta").weight is not weight

    def tied():
        first, last = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        last.weight = first.weight
        return nn.Sequential(first, last)

    assert len(list(tied().double().parameters())) == 1
    assert len(list(tied().to("meta").parameters())) == 2
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer = nn.Linear(2, 1)
        weight = layer.weight
        assert layer.double().weight is not weight
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = nn.Linear(2, 1)
        weight = layer.weight
        assert layer.to("meta").weight is weight
        assert weight.is_meta
        assert len(list(tied().to("meta").parameters())) == 1
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


@pytest.mark.parametrize(
    "move", [{"device": "meta"}, {"dtype": torch.float64}, {"device": "cpu"}]
)
def test_buffers_after_a_move(move):
    """Buffers are new objects after a move: one that two modules shared has become two."""
    shared, pair = torch.ones(2), nn.ModuleList([nn.Module(), nn.Module()])
    weight = nn.Parameter(torch.ones(2))
    for one in pair:
        one.register_buffer("mask", shared)
        one.weight = weight
    pair.to(**move)
    moves = move != {"device": "cpu"}
    assert (pair[0].mask is pair[1].mask) == (not moves)
    assert (pair[0].mask is shared) == (not moves)
    if move.get("device") != "meta":  # there parameters are new, too
        assert pair[0].weight is pair[1].weight is weight


@pytest.mark.parametrize(
    "device", ["meta", pytest.param("cuda", marks=pytest.mark.gpu)]
)
@pytest.mark.parametrize("own", [True, False])
def test_a_loader_under_the_context(device, own):
    """And it reaches too far: under it a loop over a `DataLoader` may raise, on *meta* nearly always, on a GPU with `shuffle=True`, a `generator=` of its own or forked workers."""
    rng = torch.Generator().manual_seed(0) if own else None
    loader = DataLoader(range(4), shuffle=True, generator=rng)
    assert len(list(loader)) == 4
    with torch.device("cpu"):
        assert len(list(loader)) == 4
    in_order = DataLoader(range(4), generator=torch.Generator())
    for one in (loader, in_order):
        with torch.device(device), pytest.raises(RuntimeError):
            list(one)
    if device == "cuda":
        forked = DataLoader(
            range(4), num_workers=1, multiprocessing_context="fork"
        )
        torch.ones(1, device=device)
        with torch.device(device), pytest.raises(RuntimeError):
            list(forked)
    if device == "meta":
        with torch.device(device), pytest.raises(RuntimeError):
            list(DataLoader(range(4)))
        going_on = DataLoader(
            range(4),
            num_workers=1,
            persistent_workers=True,
            multiprocessing_context="fork",
        )
        list(going_on)
        with torch.device(device):
            assert len(list(going_on)) == 4


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


def test_a_copy_is_asked_for():
    """`copy=True` asks for one, where a plain `.to(device)` would have nothing to do."""
    for device in ("cpu", torch.device("cpu")):
        x = torch.ones(3)
        assert x.to(device) is x
        assert x.to(device, x.dtype) is x
        copied = x.to(device, copy=True)
        assert copied.data_ptr() != x.data_ptr()
        assert torch.equal(copied, x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_gradient_finds_its_way_back(dtype):
    """Tensors keep shape, dtype, values and `requires_grad`, and a gradient finds its way back through the move."""
    x = torch.ones(3, dtype=dtype, requires_grad=True)
    for moved in (x.to("cpu", copy=True), x.to("meta")):
        assert moved.requires_grad
        assert (moved.shape, moved.dtype) == (x.shape, x.dtype)
        assert moved.grad_fn is not None
    (2 * x.to("cpu", copy=True)).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))


def test_how_a_device_is_shown():
    """The second half is how Python displays the object."""
    assert repr(torch.device("cuda")) == "device(type='cuda')"
    assert repr(torch.device("cuda:1")) == "device(type='cuda', index=1)"
    assert str(torch.device("cuda")) == "cuda"


def test_a_line_taken_apart():
    """From the outside to the inside: `line.split(": ", 1)` cuts once, at the first; `text.rsplit(" (UUID: ", 1)` once, at the last."""
    line = "GPU 10: A: B (UUID: C) (UUID: GPU-b2e8)"
    head, text = line.split(": ", 1)
    assert (head, text) == ("GPU 10", "A: B (UUID: C) (UUID: GPU-b2e8)")
    assert text.rsplit(" (UUID: ", 1) == ["A: B (UUID: C)", "GPU-b2e8)"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="There is a GPU.")
def test_a_report_without_a_gpu():
    """Ask `is_available()` before you ask a GPU for anything.

    `describe_machine()` of `course_utils` answers without raising:
    """
    for question in (
        torch.cuda.current_device,
        lambda: torch.cuda.get_device_name(0),
        lambda: torch.cuda.get_device_properties(0),
    ):
        with pytest.raises((RuntimeError, AssertionError)):
            question()
    assert torch.__version__.startswith(describe_machine()["torch"][:4])


def test_move_first():
    """`x = x.to(device)` for tensors, `model.to(device)` for modules; then the optimizer."""
    x, layer = torch.ones(1, 2), nn.Linear(2, 1)
    x.to("meta")
    layer.to("meta")
    assert not x.is_meta
    assert layer.weight.is_meta


@pytest.mark.gpu
def test_what_freezes_the_list(python):
    """it comes early: one `torch.cuda.is_available()` is enough to freeze the list,

    unless PyTorch asks the driver's management library instead (`PYTORCH_NVML_BASED_CUDA_CHECK=1`).
    """
    late = (
        "import os, torch\n"
        "assert torch.cuda.is_available()\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "print(torch.ones(1, device='cuda').device)"
    )
    assert python(late) == "cuda:0"
    asked_otherwise = python(late, PYTORCH_NVML_BASED_CUDA_CHECK="1")
    assert asked_otherwise.splitlines()[-1] != "cuda:0"


@pytest.mark.gpu
def test_cuda_without_a_number():
    """`cuda` without a number then means the first (until `torch.cuda.set_device` chooses another)."""
    assert str(torch.ones(1, device="cuda").device) == "cuda:0"


@pytest.mark.gpu
def test_uuids(python):
    """`CUDA_VISIBLE_DEVICES` takes UUIDs too, and these do not depend on any order.

    `--query-gpu=index` asks for them.
    """
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    index, uuid = asked.stdout.splitlines()[0].split(", ")
    assert index == "0"
    count = "import torch; print(torch.cuda.device_count())"
    assert python(count, CUDA_VISIBLE_DEVICES=uuid) == "1"
    another = uuid[:-4] + ("0000" if uuid[-4:] != "0000" else "1111")
    assert python(count, CUDA_VISIBLE_DEVICES=another) == "0"
