"""What chapter 07 states about freezing and loading, run."""

import copy
from collections import OrderedDict

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler

from course_utils import saved_tensor_bytes

BY_CELL = {
    "what_moved": [
        "The running statistics of BatchNorm are buffers, not parameters.",
    ],
    "frozen_by_flag": ["No weight of the backbone has moved"],
    "silent_flags": [
        "Python lets you set any attribute on a module or a tensor, misspelt ones too.",
    ],
    "shortest_statistics": ["Now the backbone is the same to the last bit."],
    "low_rank": [
        "One of them starts at zero, so at first the model is the old one.",
    ],
    "claim_000_27": [
        "Parameters stay. BatchNorm's buffers move in training mode; in eval mode they stay.",
    ],
    "claim_000_31_later": [
        "frozen *after* some steps, where `zero_grad(set_to_none=False)` leaves a gradient of zeros, momentum and decay still move the parameter.",
    ],
    "claim_000_31_unfrozen": [
        "Unfrozen later, a parameter that the optimizer does not know never moves. And with nothing to train, the optimizer says so.",
        "A `filter` object is empty after its first use.",
    ],
    "claim_001_32": [
        "`strict=False` forgives keys that are missing or left over, not shapes (chapter 12 has what else it hides).",
    ],
    "claim_004_11": [
        "If autograd had saved the original, `backward` says so; with `.data` nobody says anything, and the gradient is wrong. And the flag of the detached tensor can be switched on: it is a leaf.",
    ],
    "claim_004_12": [
        "Under `inference_mode` it is one step too far: such a tensor cannot be saved for a backward pass.",
    ],
    "through_a_frozen_model": [
        "Detaching anything would cut the way that the gradient must take. Freeze the parameters of B.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/vision/stable/generated/torchvision.ops.FrozenBatchNorm2d.html": [
        "For BatchNorm there is also `torchvision.ops.FrozenBatchNorm2d`, which has no training mode.",
    ],
    "https://arxiv.org/abs/2106.09685": [
        "Large models are mostly fine-tuned by *low-rank adapters*. The weight is frozen. Beside it stand two thin matrices whose product is added to what it computes.",
    ],
}


def stages():
    early = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    return nn.Sequential(OrderedDict(early=early, head=nn.Linear(6, 2)))


@pytest.mark.parametrize("layer", ["batch", "instance", "spectral"])
def test_buffers_move_in_training_mode(layer):
    """They have no `requires_grad`; every forward pass in training mode moves them.

    spectral norm keeps two vectors as buffers and moves them in each forward pass in training mode.
    """
    make = {
        "batch": lambda: nn.BatchNorm1d(6),
        "instance": lambda: nn.InstanceNorm1d(6, track_running_stats=True),
        "spectral": lambda: nn.utils.parametrizations.spectral_norm(
            nn.Linear(6, 6)
        ),
    }[layer]
    one = make().requires_grad_(False)
    x = torch.randn(5, 6) if layer != "instance" else torch.randn(5, 6, 3)
    if layer == "spectral":
        assert len(list(one.buffers())) == 2
    assert not any(buffer.requires_grad for buffer in one.buffers())
    before = [buffer.clone() for buffer in one.buffers()]
    with torch.no_grad():
        one(x)
    after = [buffer.clone() for buffer in one.buffers()]
    moved = [not torch.equal(*pair) for pair in zip(before, after, strict=True)]
    assert any(moved)
    one.eval()(x)
    now = list(one.buffers())
    assert all(torch.equal(*pair) for pair in zip(after, now, strict=True))


def test_train_wakes_every_layer():
    """Every `train()` puts all layers into training mode, so say it again after each.

    a frozen BatchNorm is in eval mode, again after every `train()`. Momentum 0 keeps the statistics and still normalizes by the batch.
    """
    net = stages()
    net.early.eval()
    net.train()
    assert all(one.training for one in net.modules())
    norm, x = nn.BatchNorm1d(6, momentum=0.0), torch.randn(5, 6) + 3
    assert norm(x).mean().abs() < 1e-5
    assert not norm.running_mean.any()


def test_a_prefix_with_its_dot():
    """`"layer1."` is not the beginning of `layer10.weight`."""
    assert "layer10.weight".startswith("layer1")
    assert not "layer10.weight".startswith("layer1.")


def test_flags_on_modules():
    """A flag set on a *module* is the no-op of section 1; `module.requires_grad_(False)`, with the underscore at the end, reaches its parameters.

    `module.requires_grad = False` does nothing.
    """
    for make in (stages, lambda: nn.LSTM(2, 3), lambda: nn.Conv2d(1, 2, 3)):
        net = make()
        net.requires_grad = False
        assert all(p.requires_grad for p in net.parameters())
        del net.requires_grad
        net.requires_grad_(False)
        assert not any(p.requires_grad for p in net.parameters())


@pytest.mark.parametrize("which", ["b", "a"])
def test_between_two_models(which):
    """`b(a(x).detach())` trains `b` alone. To train `a` through a fixed `b`, freeze the *parameters* of `b`; its operations must stay on the graph, for the gradient comes back through them.

    A still *runs*: in training mode its BatchNorm counts and its dropout drops. It builds a graph that nobody uses, unless it runs under `no_grad`.

    `b(a(x).detach())` trains b; to train a through b, freeze b's parameters.
    """
    a, b, x = stages(), nn.Linear(2, 1), torch.randn(8, 4)
    if which == "b":
        out = a(x)
        assert out.grad_fn is not None
        b(out.detach()).sum().backward()
        with torch.no_grad():
            assert a(x).grad_fn is None
        assert a.early[1].num_batches_tracked == 2
    else:
        b.requires_grad_(False)
        b(a(x)).sum().backward()
    assert all((p.grad is None) == (which == "b") for p in a.parameters())
    assert all((p.grad is None) == (which == "a") for p in b.parameters())


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_weight_decay_pulls_to_zero(kind):
    """Note that weight decay then pulls the pretrained weights towards zero, not towards where they started."""
    weight = nn.Parameter(torch.full((3,), 5.0))
    one = kind([weight], lr=0.1, weight_decay=0.5)
    for _ in range(20):
        weight.grad = torch.zeros(3)
        one.step()
    assert (weight.abs() < 4).all()


def test_low_rank_adapters():
    """The optimizer has moments for the adapter alone, a checkpoint holds the adapter alone, and several adapters share one model. Afterwards the product can be added to the weight.

    The backward pass still goes through all layers: what is saved is the memory of gradients and moments, not that of activations.
    """
    layers = [nn.Linear(16, 16).requires_grad_(False) for _ in range(3)]
    downs = [nn.Linear(16, 2, bias=False) for _ in layers]
    ups = [nn.Linear(2, 16, bias=False) for _ in layers]
    x = torch.randn(32, 16)

    def forward(adapted):
        out = x
        for layer, down, up in zip(layers, downs, ups, strict=True):
            out = layer(out) + (up(down(out)) if adapted else 0)
            out = out.tanh()
        return out

    known = [p for one in [*layers, *downs, *ups] for p in one.parameters()]
    adam = torch.optim.AdamW([p for p in known if p.requires_grad])
    with saved_tensor_bytes([*known, x]) as saved:
        forward(True).sum().backward()
    adam.step()
    with_adapter = saved.peak_bytes
    assert all(p.grad is None for layer in layers for p in layer.parameters())
    assert downs[0].weight.grad.any()
    assert sum(len(one) for one in adam.state.values()) == 3 * 6
    for layer in layers:
        layer.requires_grad_(True)
    with saved_tensor_bytes([*known, x]) as saved:
        forward(False).sum()
    assert with_adapter >= saved.peak_bytes
    for layer, down, up in zip(layers, downs, ups, strict=True):
        both = layer(x) + up(down(x))
        merged = F.linear(x, layer.weight + up.weight @ down.weight, layer.bias)
        torch.testing.assert_close(both, merged)


@pytest.mark.parametrize("relu", [True, False])
def test_what_is_kept(relu):
    """Where the *first* layers are frozen, the backward pass ends at the first trained one, and nothing before it is kept. Where the *last* ones are, the gradient passes through them, and it depends on the layer what that takes. A frozen `Linear` needs its weight and not its input. A ReLU needs its output, frozen or not. So here freezing the last half saves nothing with ReLUs, and more than half without.

    Frozen first layers save time and memory. Frozen last layers save what the layer needs only for its own gradient: the input of a `Linear`, nothing of a ReLU.
    """
    width, x = 16, torch.randn(32, 16)
    parts = [
        nn.Sequential(nn.Linear(width, width), *[nn.ReLU()] * relu)
        for _ in range(8)
    ]
    net = nn.Sequential(*parts, nn.Linear(width, 10))

    def kept(frozen):
        for index, part in enumerate(net):
            part.requires_grad_(index not in frozen)
        with saved_tensor_bytes([*net.parameters(), x]) as saved:
            loss = F.cross_entropy(net(x), torch.zeros(32, dtype=torch.long))
            return saved.live_bytes, loss

    whole, _ = kept(())
    first_half, loss = kept(range(4))
    last_half, _ = kept(range(4, 9))
    activation = 32 * width * 4
    # of the inputs of parts 1 to 8, those of 1, 2 and 3 are not kept
    assert first_half == whole - 3 * activation
    if relu:
        assert last_half == whole
    else:
        assert last_half < 0.5 * whole
    kept(range(4))
    loss.backward()


def test_what_the_flag_says():
    """The flag says what is trainable *from now on*.

    only leaves have a flag to change.
    """
    net, x = stages().eval(), torch.randn(3, 4)
    loss = net(x).sum()
    net.head.requires_grad_(False)
    net.early.requires_grad_(False)
    net.zero_grad()
    assert loss.requires_grad
    assert not net(x).requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        loss.requires_grad = False
    loss.detach().requires_grad = True


def test_a_change_of_flags_compiles_anew():
    """a change of flags makes `torch.compile` compile anew"""
    compiled = []

    def backend(graph, inputs):
        compiled.append(1)
        return graph.forward

    torch._dynamo.reset()
    line = nn.Linear(2, 2)
    fast = torch.compile(line, backend=backend)
    x = torch.randn(3, 2)
    fast(x)
    fast(x)
    assert len(compiled) == 1
    line.requires_grad_(False)
    fast(x)
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        (torch.optim.AdamW, {"weight_decay": 0.1}),
        (torch.optim.Adam, {"weight_decay": 0.1}),
    ],
)
def test_without_a_gradient_it_is_skipped(kind, options):
    """A parameter that never had a gradient is skipped anyway, weight decay included."""
    one, other = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = kind([one, other], lr=0.1, **options)
    for set_to_none in (True, False):
        optimizer.zero_grad(set_to_none=set_to_none)
        one.sum().backward()
        optimizer.step()
    assert torch.equal(other, torch.ones(2))
    assert not torch.equal(one, torch.ones(2))


def test_added_under_a_schedule():
    """`optimizer.add_param_group` adds what is unfrozen later, at the rate that the optimizer was *made* with. Under a schedule that is ten or a hundred times the present one, and some schedulers cannot go on.

    `optimizer.add_param_group({"params": [...]})` fills in what the group does not say from the settings that the optimizer was made with.
    """
    went_on = {}
    for name, make in {
        "StepLR": lambda o: lr_scheduler.StepLR(o, 1, 0.1),
        "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.1**n),
    }.items():
        head, later = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        sgd = torch.optim.SGD([head], lr=0.1, momentum=0.7)
        plan = make(sgd)
        for _ in range(2):
            sgd.step()
            plan.step()
        sgd.add_param_group({"params": [later]})
        assert [round(g["lr"], 6) for g in sgd.param_groups] == [0.001, 0.1]
        assert sgd.param_groups[1]["momentum"] == 0.7
        try:
            plan.step()
            went_on[name] = True
        except Exception:
            went_on[name] = False
    assert set(went_on.values()) == {True, False}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_loading_copies_into_the_model(dtype, recwarn):
    """loading copies into the tensors of the model, so the dtype is the model's, and no warning says that digits were lost. With `assign=True` the tensors of the file take the place of the model's, dtype and all: an optimizer that was made before then holds the old ones."""
    net = stages()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    given = {
        k: v.to(dtype) if v.is_floating_point() else v
        for k, v in copy.deepcopy(net.state_dict()).items()
    }
    before = net.head.weight
    net.load_state_dict(given)
    assert net.head.weight is before
    assert net.head.weight.dtype == torch.float32
    net.load_state_dict(given, assign=True)
    assert not recwarn
    assert net.head.weight.dtype == dtype
    held = {id(p) for group in sgd.param_groups for p in group["params"]}
    assert id(net.head.weight) not in held
    assert id(before) in held


def test_detach_shares_memory():
    """A new tensor object, on the same memory: an in-place edit reaches the original.

    `detach` shares memory with the original. What `b` may write into should be a copy.
    """
    x = torch.ones(3, requires_grad=True) * 2
    cut = x.detach()
    cut.zero_()
    assert not x.any()
    features = torch.tensor([-1.0, 1.0])
    nn.ReLU(inplace=True)(features)
    assert features.tolist() == [0.0, 1.0]


def test_hints_of_the_exercises():
    """`named_parameters` gives a shared parameter once, by its first name; with `remove_duplicate=False` by all of them.

    `p in some_list` compares numbers and fails.

    `net.eval()` is `net.train(False)`. So there is one method to override.

    A module that you assign to an attribute, or put into an `nn.ModuleList`, becomes a child of `net`. In a plain list it does not.
    """
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, shared)
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    every = [n for n, _ in net.named_parameters(remove_duplicate=False)]
    assert every == ["0.weight", "0.bias", "1.weight", "1.bias"]
    a, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))
    with pytest.raises(RuntimeError):
        assert a in [b]
    asked = []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attribute = nn.Linear(1, 1)
            self.listed = nn.ModuleList([nn.Linear(1, 1)])
            self.plain = [nn.Linear(1, 1)]

        def train(self, mode=True):
            asked.append(mode)
            return super().train(mode)

    net = Net()
    net.eval()
    assert asked == [False]
    assert {n for n, _ in net.named_modules()} == {
        "",
        "attribute",
        "listed",
        "listed.0",
    }
