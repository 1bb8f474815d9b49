"""What chapter 04 states about looking into models, run."""

import contextlib
import copy
import functools
import io
import re
import sys
import warnings
from unittest import mock

import pytest
import torch
import torchinfo
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint
from tqdm import tqdm

BY_CELL = {
    "look_changes": [
        "In training mode that is a training batch for every batch norm (chapter 05), and dropout draws random numbers.",
    ],
    "late_binding": [
        "A function looks its free variables up when it is *called*. Without it every hook finds the name that the loop ended with.",
    ],
    "not_in_the_graph": [
        "in a residual network the number of *ways* through the graph doubles with each block.",
    ],
    "claim_000_04": ["*Correct*, by hooks or by the package torchinfo."],
    "claim_002_37": [
        "A shared tensor counts once, a frozen one counts, a buffer does not.",
        "And a lazy layer has no size before its first batch: `numel` raises.",
    ],
    "claim_002_38": [
        "`named_parameters()` lists the frozen ones too. `state_dict()` adds the buffers that are saved, and the parameters and buffers in it never require a gradient, unless asked with `keep_vars=True`.",
        "Neither knows what is in a list.",
    ],
    "claim_000_05": [
        "It adds up parameters layer call by layer call, so a shared layer counts twice.",
    ],
    "claim_002_39": [
        "A small network has no entry 28.",
        "And there is no gradient before `backward()`: it is None.",
    ],
    "wrapped_names": [
        'A filter such as `name.startswith("head")` then matches nothing, without a word',
    ],
    "claim_002_40": [
        "The size has the batch axis in it. Without it the model of the cell fails, unless `batch_dim=0` says where one is to be put.",
    ],
    "claim_002_41": [
        "What was made under `no_grad` has no graph: one lonely box, and no error.",
    ],
    "claim_003_09_10": [
        "`enumerate` has no length, so without `total=` the bar only counts.",
    ],
    "claim_003_11_12": [
        "It is batches per second; a batch took 1 / 1.54 = 0.65 s.",
        "Below one batch per second tqdm turns the number over and writes `s/it`.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution": [
        "`.item()` in a hook or in `bar.set_postfix` makes the CPU wait for the GPU, every time (chapter 11).",
    ],
    "https://pypi.org/project/torchsummary/": ["Its last version, 1.5.1,"],
    "https://docs.astral.sh/ruff/rules/function-uses-loop-variable/": [
        "(Ruff knows this mistake as B023; here it is told to look away.)",
    ],
    "https://docs.python.org/3/whatsnew/3.12.html": [
        "(torchviz asks `distutils`, which Python 3.12 took out and setuptools brings back.)",
    ],
}


class Tower(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.inner = keep([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        for layer in self.inner:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize(
    "keep", [list, tuple, nn.ModuleList, "dict", nn.ModuleDict]
)
def test_who_registers(keep):
    """They are missing in `parameters()`, in `state_dict()` and in every checkpoint made of it, and `to("cuda")` leaves them behind.

    A model is what it has registered. Lists, dicts and functions do not register; `nn.ModuleList`, `nn.ModuleDict` and `nn.ParameterList` do.

    `nn.ModuleList` is a list that registers what it holds.
    """

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
            named = {"a": layers[0], "b": layers[1]}
            made = {"dict": lambda: named, nn.ModuleDict: lambda: keep(named)}
            self.held = made.get(keep, lambda: keep(layers))()
            self.listed = nn.ParameterList([torch.ones(2)])
            self.layers = layers if keep is list else None
            self.by_function = lambda x, layer=nn.Linear(2, 2): layer(x)  # noqa: B008

    net = Net()
    registers = keep in (nn.ModuleList, nn.ModuleDict)
    assert len(list(net.parameters())) == 1 + 4 * registers
    assert len(net.state_dict()) == 1 + 4 * registers
    net.to("meta")
    layers = net.held.values() if hasattr(net.held, "values") else net.held
    assert all(layer.weight.is_meta == registers for layer in layers)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_they_keep_their_first_weights(kind):
    """The six layers of the list keep their first random weights.

    The rest of the network learns around them, so the loss falls all the same.
    """
    net = Tower(list)
    before = [layer.weight.detach().clone() for layer in net.inner]
    optimizer, losses = kind(net.parameters(), lr=0.05), []
    x = torch.randn(32, 2)
    for _ in range(40):
        loss = (net(x) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    pairs = zip(before, net.inner, strict=True)
    assert all(torch.equal(a, b.weight) for a, b in pairs)
    assert losses[-1] < losses[0]


def test_a_hook_that_stays():
    """Hooks see what passes through a layer.

    Each also keeps its graph alive and, until a `backward()` frees it, all that the operations have saved for it.
    """
    layer, outputs = nn.Linear(2, 2), []
    hook = layer.register_forward_hook(lambda m, i, o: outputs.append(o))
    for _ in range(3):
        layer(torch.randn(4, 2))
    hook.remove()
    layer(torch.randn(4, 2))
    assert len(outputs) == 3
    outputs[0].sum().backward()  # its graph is still there
    with pytest.raises(RuntimeError, match="already been freed"):
        outputs[0].sum().backward()


def test_what_hooks_cannot_see():
    """Only *calling* a module runs its hooks: `model(x)` does, `model.forward(x)` skips those of the model itself.

    A model that calls `F.relu` shows no ReLU, and `nn.MultiheadAttention` uses its `out_proj` without calling it.

    A layer that is called twice is seen twice. One that is never called is not seen.

    Some layers return more than a tensor: `nn.LSTM` gives `(output, (h, c))`, and `.shape` raises. `.shape` may also raise inside an `nn.TransformerEncoder` with a padding mask, in eval without gradients; the encoder's `use_nested_tensor = False` prevents it.
    """
    seen = []

    def watch(model):
        seen.clear()
        for name, layer in model.named_modules():
            layer.register_forward_hook(lambda *_, name=name: seen.append(name))

    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, nn.ReLU(), layer)
    net.unused = nn.Linear(2, 2)
    net.forward = lambda x: layer(torch.relu(layer(x)))
    watch(net)
    net(torch.ones(1, 2))
    assert seen == ["0", "0", ""]
    seen.clear()
    net.forward(torch.ones(1, 2))
    assert seen == ["0", "0"]
    for batch_first in (True, False):
        attention = nn.MultiheadAttention(4, 2, batch_first=batch_first)
        watch(attention)
        attention(*[torch.ones(3, 5, 4)] * 3)
        assert seen == [""]
        assert "out_proj" in dict(attention.named_modules())
    out = nn.LSTM(2, 3)(torch.ones(4, 1, 2))
    assert len(out) == 2
    assert len(out[1]) == 2
    with pytest.raises(AttributeError):
        _ = out.shape


def test_nested_tensors_of_an_encoder():
    """`.shape` may also raise inside an `nn.TransformerEncoder` with a padding mask, in eval without gradients; the encoder's `use_nested_tensor = False` prevents it."""
    padding = torch.tensor([[False, False, True], [False, True, True]])
    for nested in (True, False):
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 1)
        encoder.use_nested_tensor = encoder.use_nested_tensor and nested
        encoder.layers[0].register_forward_hook(lambda *given: given[2].shape)
        for train, grad in ((True, False), (False, True), (False, False)):
            encoder.train(train)
            raises = nested and not train and not grad
            with (
                torch.set_grad_enabled(grad),
                warnings.catch_warnings(action="ignore"),
                pytest.raises(RuntimeError, match="support sizes")
                if raises
                else contextlib.nullcontext(),
            ):
                encoder(torch.randn(2, 3, 4), src_key_padding_mask=padding)


def test_a_hook_on_a_compiled_model():
    """Once compiled, at its first call, a model may not hear a later hook on an inner layer that had none of its kind, and says nothing. Compiled code hears it only if it was made after the hook, as for `no_grad` or another shape; older code stays deaf, and may go on where it fits. (A forward hook is heard at once on what `torch.compile(model)` gave back, and on that model itself if you wrote its `forward`.)"""
    for anew in (
        lambda net: net(torch.ones(3, 2)),
        lambda net: net(torch.ones(1, 2, dtype=torch.float64)),
        lambda net: torch.no_grad()(net)(torch.ones(1, 2)),
    ):
        torch._dynamo.reset()
        small, heard = nn.Sequential(nn.ReLU(), nn.Tanh()), []
        compiled = torch.compile(small, backend="eager")
        compiled(torch.ones(1, 2))
        with warnings.catch_warnings(action="error"):
            small[0].register_forward_hook(lambda *_, h=heard: h.append(1))
            for _ in range(3):
                compiled(torch.ones(1, 2))
        assert heard == []
        anew(compiled)
        assert heard == [1]
        compiled(torch.ones(1, 2))  # what was compiled for it before fits
        assert heard == [1]
        compiled.register_forward_hook(lambda *_, h=heard: h.append(2))
        compiled(torch.ones(1, 2))
        assert heard[-1] == 2
    torch._dynamo.reset()
    small, heard = nn.Sequential(nn.ReLU(), nn.Tanh()), []
    small[0].register_forward_hook(lambda *_: None)
    compiled = torch.compile(small, backend="eager")
    compiled(torch.ones(1, 2))
    small[0].register_forward_hook(lambda *_: heard.append(1))
    compiled(torch.ones(1, 2))
    assert heard == [1]
    torch._dynamo.reset()
    small, heard = nn.Sequential(nn.ReLU(), nn.Tanh()), []
    small[0].register_forward_hook(lambda *_: None)
    compiled = torch.compile(small, backend="eager")
    compiled(torch.ones(1, 2))
    small[0].register_forward_pre_hook(lambda *_: heard.append(1))
    compiled(torch.ones(1, 2))
    assert heard == []  # of its kind it had none
    recurrent = nn.Sequential(nn.ReLU(), nn.GRU(2, 2))
    compiled = torch.compile(recurrent, backend="eager")
    compiled(torch.ones(1, 2))
    recurrent[0].register_forward_hook(lambda *_: heard.append(1))
    compiled(torch.ones(1, 2))
    assert heard == [1]  # "may": nothing of it was compiled
    torch._dynamo.reset()
    for own, on_itself in (
        (Forward(), True),
        (nn.Sequential(nn.ReLU()), False),
    ):
        for itself in (True, False):
            torch._dynamo.reset()
            net, heard = copy.deepcopy(own), []
            compiled = torch.compile(net, backend="eager")
            compiled(torch.ones(1, 2))
            hooked = net if itself else compiled
            hooked.register_forward_hook(lambda *_, h=heard: h.append(1))
            compiled(torch.ones(1, 2))
            assert bool(heard) == (on_itself or not itself)
    torch._dynamo.reset()


def test_a_list_computes_the_same():
    """Both compute the same thing.

    4 tensors where 16 were meant.
    """
    outputs, counts = [], []
    for keep in (nn.ModuleList, list):
        torch.manual_seed(0)
        net = nn.Module()
        layers = [nn.Linear(3, 3) for _ in range(6)]
        net.first, net.last = nn.Linear(4, 3), nn.Linear(3, 2)
        net.hidden = keep(layers)
        x = net.first(torch.ones(2, 4)).relu()
        for layer in net.hidden:
            x = x + layer(x).relu()
        outputs.append(net.last(x))
        counts.append(len(list(net.parameters())))
    assert torch.equal(*outputs)
    assert counts == [16, 4]


def test_functions_have_no_hooks():
    """Functions have no hooks."""
    for function in (nn.functional.relu, torch.relu, torch.ones(1).relu):
        assert not hasattr(function, "register_forward_hook")
        assert not hasattr(function, "_forward_hooks")
    assert hasattr(nn.ReLU(), "register_forward_hook")


def test_modes_are_put_back_one_by_one():
    """`model.train()` at the end would wake layers that were in eval on purpose."""
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout())
    net[0].eval()
    net.eval()
    net.train()
    assert net[0].training


def test_what_the_count_gives():
    """It gives each tensor once.

    Summing `state_dict()` counts the shared one twice, and the buffers that are saved.

    Count over `parameters()`: shared ones once, frozen ones too, buffers never.
    """
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.BatchNorm1d(3))
    net.tied = nn.Linear(3, 3, bias=False)
    net.tied.weight = net[0].weight
    net[1].requires_grad_(False)
    assert sum(p.numel() for p in net.parameters()) == 9 + 6
    net.register_buffer("not_saved", torch.ones(5), persistent=False)
    held = sum(v.numel() for v in net.state_dict().values())
    assert held == 9 + 9 + 6 + 3 + 3 + 1
    assert torch.ones(1, dtype=torch.bfloat16).element_size() == 2
    assert torch.ones(1, dtype=torch.complex64).element_size() == 8


@pytest.mark.parametrize(
    ("kind", "options", "copies"),
    [
        (torch.optim.Adam, {}, 2),
        (torch.optim.SGD, {"momentum": 0.9}, 1),
        (torch.optim.SGD, {}, 0),
    ],
)
def test_what_the_optimizer_keeps(kind, options, copies):
    """the parameters (Adam keeps two copies more of what is trained, SGD with momentum one, plain SGD none), and the outputs, which grow with the batch."""
    layer = nn.Linear(10, 10)
    one = kind(layer.parameters(), lr=0.1, **options)
    frozen = nn.Linear(10, 10).requires_grad_(False)
    one.add_param_group({"params": list(frozen.parameters())})
    layer(frozen(torch.ones(1, 10))).sum().backward()
    one.step()
    for p in (*layer.parameters(), *frozen.parameters()):
        same = [
            value
            for value in one.state[p].values()
            if torch.is_tensor(value) and value.shape == p.shape
        ]
        assert len(same) == (copies if p.requires_grad else 0)
    sizes = [layer(torch.ones(n, 10)).numel() for n in (1, 8)]
    assert sizes[1] == 8 * sizes[0]


def test_recursion_has_an_end():
    """And a list takes the place of recursion, which Python stops at a depth of about a thousand."""
    assert sys.getrecursionlimit() >= 1000

    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    with pytest.raises(RecursionError):
        deep(sys.getrecursionlimit())


@pytest.mark.parametrize("compiled_in_place", [True, False])
def test_names_that_a_wrapper_changes(compiled_in_place):
    """`torch.compile(model)` puts `_orig_mod.` before every name that you list, and `AveragedModel` puts `module.`.

    `model.compile()` keeps the names.
    """
    net = nn.Sequential(nn.Linear(2, 2))
    if compiled_in_place:
        net.compile()
        names = [n for n, _ in net.named_parameters()]
        assert names == ["0.weight", "0.bias"]
        names = [n for n, _ in AveragedModel(net).named_parameters()]
        assert names == ["module.0.weight", "module.0.bias"]
    else:
        names = [n for n, _ in torch.compile(net).named_parameters()]
        assert names == ["_orig_mod.0.weight", "_orig_mod.0.bias"]


class Forward(nn.Module):
    """Has a `forward` that somebody wrote."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class Derived(nn.Linear):
    """Has the `forward` of `nn.Linear`."""


class Stacked(nn.Sequential):
    """Has the `forward` of `nn.Sequential`."""

    def __init__(self):
        super().__init__(nn.Linear(2, 2), nn.ReLU())


def compilations(model, in_place):
    """How often a model's code is compiled for one call."""
    counted = []

    def backend(graph, inputs):
        counted.append(graph)
        return graph.forward

    torch._dynamo.reset()
    if in_place:
        model.compile(backend=backend)
    else:
        model = torch.compile(model, backend=backend)
    model(torch.ones(3, 2))
    torch._dynamo.reset()
    return len(counted)


def test_what_is_compiled_in_place():
    """It compiles in place every `forward` that you wrote, also those inside a bare `nn.Sequential`. The layers and containers of `torch.nn` alone (a `nn.Linear`, a `nn.Sequential` of such, a class made from it that has no `forward` of its own) it leaves as they are in 2.13 if they have no hooks, without a word (with `fullgraph=True` the call raises)."""
    assert compilations(Forward(), True) == compilations(Forward(), False) == 1
    of_own = nn.Sequential(Forward(), nn.Linear(2, 2), Forward())
    assert compilations(of_own, True) == 2
    inner = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Forward()))
    assert compilations(inner, True) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for made in (
            lambda: Forward().layers,
            lambda: nn.Linear(2, 2),
            lambda: Derived(2, 2),
            lambda: nn.BatchNorm1d(2),
            lambda: nn.TransformerEncoderLayer(2, 1, 4),
            Stacked,
        ):
            assert compilations(made(), True) == 0
    if torch.__version__ >= "2.13":
        hooked = nn.Linear(2, 2)
        hooked.register_forward_hook(lambda *_: None)
        assert compilations(hooked, True) == 1
        plain = nn.Sequential(nn.Linear(2, 2))
        plain.compile(fullgraph=True, backend="eager")
        with pytest.raises(RuntimeError, match="no compiled frames"):
            plain(torch.ones(1, 2))
    assert compilations(Forward().layers, False) == 1
    assert compilations(nn.Linear(2, 2), False) == 1


def test_none_is_not_zero():
    """None is not 0: nothing has arrived since `zero_grad()`.

    First ask whether `p.grad is None`: the truth value of a tensor is something else.
    """
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    (0 * used).sum().backward()
    assert unused.grad is None
    assert not used.grad.any()
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(used.grad)
    assert not torch.zeros(1)
    torch.optim.SGD([used]).zero_grad()
    assert used.grad is None


def test_grad_modes_nest():
    """`with torch.enable_grad():` switches gradients on for a block, inside `no_grad` too, and back to what was. (Not inside `inference_mode`.)"""
    weight = torch.ones(1, requires_grad=True)
    with torch.inference_mode(), torch.enable_grad():
        assert not (2 * weight).requires_grad
    for outer in (True, False):
        with torch.set_grad_enabled(outer):
            with torch.enable_grad():
                assert torch.is_grad_enabled()
            assert torch.is_grad_enabled() == outer


def test_bars():
    """Turned around, `enumerate(tqdm(loader))`, it finds the length by itself.

    `tqdm(enumerate(loader))` cannot. `tqdm(loader)` asks the loader, and takes a `TypeError` for *no length*. An `AttributeError` too, which may be a slip in the loader: ask with `len` yourself, and give `total=`.

    While it runs, the first time is what has passed, the second what is left.
    """

    class Endless:
        def __init__(self, error):
            self.error = error

        def __len__(self):
            raise self.error

        def __iter__(self):
            return iter("abc")

    for error in (LookupError, ValueError, NotImplementedError):
        with pytest.raises(error):
            tqdm(Endless(error), file=io.StringIO())
    for loader, total in (
        ([1, 2, 3], 3),
        (Endless(TypeError), None),
        (Endless(AttributeError), None),
    ):
        screen = io.StringIO()
        bar = tqdm(loader, file=screen)
        assert bar.total == total
        assert len(list(enumerate(bar))) == 3
        assert ("3/3" in screen.getvalue()) == (total == 3)
    assert tqdm(enumerate([1, 2]), file=io.StringIO()).total is None
    assert "[00:20<01:00" in tqdm.format_meter(1, 4, 20.0)


def test_torchinfo_moves_the_model():
    """Given a size, it draws random numbers (chapter 01), and takes the model to the GPU, if there is one, and leaves it there; `device="cpu"` keeps it."""
    model = nn.Linear(3, 4)
    torchinfo.summary(model, (1, 3), verbose=0, device="cpu")
    assert model.weight.device.type == "cpu"
    for given in ({"input_data": torch.ones(1, 3)}, {"input_size": (1, 3)}):
        before = torch.get_rng_state()
        torchinfo.summary(model, verbose=0, device="cpu", **given)
        draws = not torch.equal(torch.get_rng_state(), before)
        assert draws == ("input_size" in given)
    if torch.cuda.is_available():
        torchinfo.summary(model, (1, 3), verbose=0)
        assert model.weight.device.type == "cuda"
        return
    with (
        mock.patch.object(torch.cuda, "is_available", return_value=True),
        pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA"),
    ):
        torchinfo.summary(model, (1, 3), verbose=0)


def test_what_torchinfo_does():
    """torchinfo may count a shared *tensor* more than once, and a shared *layer* that stands in two containers. And a lazy layer has no size before its first batch: `numel` raises. torchinfo says 0, or, given a size, makes it a layer with one.

    Integer inputs need `dtypes=` or `input_data=`: noise of floats is no token. It looks in eval mode by default, so batch norm is left alone. After the pass it puts the model's mode on *all* layers: one that was in eval on purpose is woken.

    `Linear` and `Conv2d` take a single sample: there no error helps you.
    """

    def total(model, *inputs, **options):
        return torchinfo.summary(
            model, *inputs, verbose=0, **{"device": "cpu", **options}
        ).total_params

    one = nn.Linear(3, 3, bias=False)
    tied = nn.Sequential(one, nn.Linear(3, 3, bias=False))
    tied[1].weight = one.weight
    for inputs in ((), ((1, 3),)):
        assert total(tied, *inputs) == 18
        assert total(nn.Sequential(one, one), *inputs) == 9
        first, second = nn.Sequential(one), nn.Sequential(nn.ReLU(), one)
        assert total(nn.Sequential(first, second), *inputs) > 9
    lazy = nn.LazyLinear(3)
    with pytest.raises(ValueError, match="uninitialized"):
        lazy.weight.numel()
    assert total(lazy) == 0
    lazy = nn.Sequential(lazy)
    assert total(lazy, (1, 4)) == 15
    assert type(lazy[0]) is nn.Linear
    for single, size, out in (
        (nn.Linear(3, 4), (3,), (4,)),
        (nn.Conv2d(3, 8, 3), (3, 9, 9), (8, 7, 7)),
    ):
        table = torchinfo.summary(single, size, verbose=0, device="cpu")
        assert tuple(table.summary_list[0].output_size) == out
    words = nn.Embedding(4, 2)
    with pytest.raises(RuntimeError):
        total(words, (1, 3))
    assert total(words, (1, 3), dtypes=[torch.long]) == 8
    assert total(words, input_data=torch.zeros(1, 3, dtype=torch.long)) == 8
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())
    model[1].eval()
    total(model, (4, 3))
    assert model[1].num_batches_tracked == 0
    assert [module.training for module in model.modules()] == [True] * 4
    model.eval()
    model[1].train()
    total(model, (4, 3))
    assert [module.training for module in model.modules()] == [False] * 4
    model.train()
    total(model, (4, 3), mode="train")
    assert model[1].num_batches_tracked > 0
    assert not any(module._forward_hooks for module in model.modules())


def test_a_name_bound_in_time():
    """The hook looks `name` up when it runs. Bind it when you make the hook: a default argument, or `functools.partial`."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    late, default, partial = [], [], []

    def note(name, *_):
        partial.append(name)

    for name, layer in model.named_children():
        layer.register_forward_hook(lambda *_: late.append(name))  # noqa: B023
        layer.register_forward_hook(lambda *_, name=name: default.append(name))
        layer.register_forward_hook(functools.partial(note, name))
    model(torch.ones(1, 2))
    assert late == ["2", "2", "2"]
    assert default == partial == ["0", "1", "2"]


def test_sizes_of_numbers():
    """`p.element_size()` is the number of bytes for each number: 2 for bfloat16, 8 for complex64.

    `model.parameters()` gives exactly these, each once.
    """
    for device in ("cpu", "meta"):
        for dtype, size in ((torch.bfloat16, 2), (torch.complex64, 8)):
            p = nn.Parameter(torch.empty(3, dtype=dtype, device=device))
            assert p.element_size() == size
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    model.same = model[1]
    assert len(list(model.parameters())) == 4


def test_a_graph_is_kept_by_leaves():
    """Blue boxes are leaves that will get a gradient, grey ones operations, the green one the output.

    Each operation is visited once

    `make_dot` of the package torchviz draws it, from the leaves on top to the loss at the bottom.

    Its `params=` wants a dict from names to tensors.
    """
    with warnings.catch_warnings(action="ignore"):
        import torchviz
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    out = model(torch.ones(1, 2)).tanh()
    drawn = torchviz.make_dot(
        (out + out).mean(), params=dict(model.named_parameters())
    ).source
    boxes = {
        label.split()[0]: (box, look)
        for box, label, look in re.findall(
            r'^\t(\d+) \[label="?([^"\]]*?)"?( fillcolor=\w+)?\]', drawn, re.M
        )
    }
    leaf, colour = boxes["weight"]
    assert "lightblue" in colour
    assert not boxes["TanhBackward0"][1]
    assert "bias" not in drawn
    assert drawn.count("=darkolivegreen1") == 1
    assert drawn.count("TanhBackward0") == 1
    assert f"{leaf} -> " in drawn
    assert f"-> {leaf}" not in drawn


def test_what_the_picture_says(monkeypatch, tmp_path):
    """To make a picture of it needs Graphviz' program `dot` as well. Its description, `.source`, does not.

    Of an uncompiled model the picture says it without a backward pass, and so does a comparison of names.

    The picture of an uncompiled model's graph shows what is cut off (layers under a reentrant checkpoint only seem to be).
    """
    import graphviz

    with warnings.catch_warnings(action="ignore"):
        import torchviz
    monkeypatch.setenv("PATH", str(tmp_path))
    near, far = nn.Linear(2, 2), nn.Linear(2, 2)
    model = nn.ModuleDict({"near": near, "far": far})
    x = torch.ones(1, 2)
    for cut in (True, False):
        other = far(x).detach() if cut else far(x)
        drawn = torchviz.make_dot(
            (near(x) + other).mean(), params=dict(model.named_parameters())
        )
        shown = [n for n, _ in model.named_parameters() if n in drawn.source]
        assert len(shown) == (2 if cut else 4)
        assert near.weight.grad is None
        with pytest.raises(graphviz.ExecutableNotFound):
            drawn.pipe("svg")
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: near(x) + far(x).detach(), backend="aot_eager"
    )
    loss = compiled(x).mean()
    drawn = torchviz.make_dot(loss, params=dict(model.named_parameters()))
    assert "far.weight" in drawn.source
    loss.backward()
    assert far.weight.grad is None
    torch._dynamo.reset()


def test_a_checkpoint_hides_its_layers():
    """(Layers under a checkpoint with `use_reentrant=True` are missing too, and do get their gradients, if the checkpoint's input requires one.)"""
    with warnings.catch_warnings(action="ignore"):
        import torchviz
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(3)))
    names = dict(model.named_parameters())
    for reentrant in (True, False):
        model.zero_grad()
        x = checkpoint(
            model[1], model[0](torch.ones(1, 2)), use_reentrant=reentrant
        )
        loss = model[2](x).mean()
        drawn = torchviz.make_dot(loss, params=names).source
        missing = [name for name in names if name not in drawn]
        assert missing == (["1.weight", "1.bias"] if reentrant else [])
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
    for needs_one in (True, False):  # as the batch itself
        first, last = nn.Linear(2, 2), nn.Linear(2, 1)
        x = torch.ones(1, 2, requires_grad=needs_one)
        with warnings.catch_warnings(action="ignore"):
            last(checkpoint(first, x, use_reentrant=True)).mean().backward()
        assert (first.weight.grad is not None) == needs_one
        assert last.weight.grad is not None


def test_a_layer_without_a_gradient():
    """Numbers of that kind also change when a layer is put in before. Names that you gave do not; those in a plain `nn.Sequential` or an `nn.ModuleList` are numbers, too."""
    layers = {"first": nn.Linear(2, 2), "last": nn.Linear(2, 1)}
    short = nn.ModuleDict(layers)
    long = nn.ModuleDict({"new": nn.Linear(2, 2), **layers})
    assert list(short.parameters())[2] is layers["last"].weight
    assert list(long.parameters())[2] is layers["first"].weight
    for model in (short, long):
        named = dict(model.named_parameters())
        assert named["last.weight"] is layers["last"].weight
    longer = nn.ModuleDict({**layers, "end": nn.Linear(1, 1)})
    assert list(longer.parameters())[2] is layers["last"].weight
    for kind in (lambda all_of: nn.Sequential(*all_of), nn.ModuleList):
        for before in ([], [nn.Linear(2, 2)]):
            named = dict(kind([*before, *layers.values()]).named_parameters())
            name = f"{1 + len(before)}.weight"
            assert named[name] is layers["last"].weight


def test_the_rate_of_a_bar():
    """`it/s` is batches per second, `s/it` seconds per batch; `total=` must be known by somebody.

    What stands after the slash decides. With `s` alone after it: batches per second. Else: seconds per batch.

    tqdm shows `"?it/s"` as long as it does not know the rate

    While the bar runs, either is a moving average and favours the last batches (`smoothing=0.3`).
    """
    assert "2.00it/s" in tqdm.format_meter(10, 20, 5.0)
    assert "2.00s/it" in tqdm.format_meter(5, 20, 10.0)
    assert "2.00rows/s" in tqdm.format_meter(10, 20, 5.0, unit="rows")
    assert "3.00s/step" in tqdm.format_meter(3, None, 9.0, unit="step")
    assert "?it/s" in tqdm.format_meter(0, 20, 0.0)
    # given a rate of its own, the bar shows that one and not the mean
    assert "8.00it/s" in tqdm.format_meter(10, 20, 5.0, rate=8.0)
    assert tqdm(range(3), file=io.StringIO()).smoothing == 0.3


@pytest.mark.gpu
def test_looks_that_wait(waits):
    """`.item()` in a hook or in `bar.set_postfix` makes the CPU wait for the GPU, every time (chapter 11)."""
    layer = nn.Linear(3, 3).cuda()
    x = torch.ones(2, 3, device="cuda")
    layer(x)  # the first use of cuBLAS waits
    assert not waits(lambda: layer(x))
    handle = layer.register_forward_hook(lambda *three: three[2].sum().item())
    assert waits(lambda: layer(x))
    handle.remove()
    loss = layer(x).sum()
    bar = tqdm(range(2), file=io.StringIO())
    assert waits(lambda: bar.set_postfix(loss=loss.item()))
