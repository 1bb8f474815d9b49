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
        "Two ways to freeze nothing, without an error. Python lets you give a module or a tensor an attribute that nobody reads, a misspelt one too.",
    ],
    "ways_table": [
        "What freezing with the statistics keeps, in every row, is the old task.",
    ],
    "low_rank": [
        "One of them starts at zero, so at first the model is the old one.",
    ],
    "claim_000_27": [
        "BatchNorm's buffers move in training mode; in eval mode they stay.",
    ],
    "claim_000_31_later": [
        "frozen *after* some steps, where `zero_grad(set_to_none=False)` leaves a gradient of zeros, momentum and decay still move the parameter.",
    ],
    "claim_000_31_unfrozen": [
        "Unfrozen later, a parameter that the optimizer does not know never moves.",
        "A `filter` object is empty after its first use.",
    ],
    "claim_001_32": [
        "`strict=False` forgives keys that are missing or left over, not shapes (chapter 12 has the two exceptions, and what else it hides).",
    ],
    "claim_004_11": [
        "And the flag of the detached tensor can be switched on: it is a leaf.",
    ],
    "through_a_frozen_model": [
        "The other direction, A through a fixed B, is not symmetric. Detaching anything would cut the way that the gradient must take. Freeze the parameters of B.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/vision/stable/generated/torchvision.ops.FrozenBatchNorm2d.html": [
        "For BatchNorm there is also `torchvision.ops.FrozenBatchNorm2d`, which has no training mode.",
    ],
    "https://github.com/pytorch/pytorch/issues/5878": [
        "(On a GPU no gradient passes an `nn.LSTM` in eval mode: cuDNN refuses. If layers before it are trained, leave it in training mode, with its `dropout` set to 0.)",
    ],
    "https://huggingface.co/docs/peft": [
        "The `peft` package does this for whole models.",
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
    """Their `requires_grad` is False from the start and does not protect them: every forward pass in training mode moves them.

    spectral norm keeps two vectors as buffers and moves them in each forward pass in training mode (that of `parametrizations` whenever the weight is read).
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
    if layer == "spectral":
        assert one.weight is not None  # read
        assert not all(map(torch.equal, after, one.buffers()))
        after = [buffer.clone() for buffer in one.buffers()]
    one.eval()(x)
    now = list(one.buffers())
    assert all(torch.equal(*pair) for pair in zip(after, now, strict=True))


def test_train_wakes_every_layer():
    """Every `train()` puts all layers into training mode, so say it again after each."""
    net = stages()
    net.early.eval()
    net.train()
    assert all(one.training for one in net.modules())


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("still", [True, False])
def test_a_backbone_to_the_last_bit(kind, still):
    """**Keep the statistics**: frozen layers stay in eval mode.

    Now the backbone is the same to the last bit.
    """
    net = stages()
    net.early.requires_grad_(False)
    before = copy.deepcopy(net.early.state_dict())
    optimizer = kind(net.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(5):
        net.train()
        net.early.train(not still)
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
    after = net.early.state_dict()
    assert all(after[key].equal(before[key]) for key in before) == still


def test_what_sixty_passes_leave():
    """They are now those of nine images from another scanner."""
    norm, nine = nn.BatchNorm1d(6), torch.randn(9, 6) - 2
    with torch.no_grad():
        norm(5 + torch.randn(100, 6))
        norm.running_mean.fill_(5)
        for _ in range(60):
            norm(nine[torch.randint(9, (32,))])
    assert ((norm.running_mean - nine.mean(0)).abs() < 0.5).all()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("max_norm", [1.0, None])
def test_an_embedding_with_a_bound(training, max_norm):
    """Parameters stay, but for the exceptions below.

    And an `nn.Embedding` with `max_norm` shortens the vectors that it looks up, in place, frozen or not, in eval mode too.
    """
    table = nn.Embedding(3, 4, max_norm=max_norm).train(training)
    for frozen in (False, True):
        with torch.no_grad():
            table.weight.fill_(5)
        table.requires_grad_(not frozen)
        table(torch.tensor([1]))
        lengths = table.weight.detach().norm(dim=1)
        assert lengths[0] == lengths[2] == 10
        assert lengths[1] == pytest.approx(max_norm or 10, rel=1e-4)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_moves_what_is_frozen_later(line_search):
    """(`LBFGS` does with any setting: make a new one, and for what is unfrozen later, too.)"""
    torch.manual_seed(0)
    net, x, y = stages().eval(), torch.randn(16, 4), torch.randn(16, 2)

    def lbfgs():
        kept = [p for p in net.parameters() if p.requires_grad]
        return torch.optim.LBFGS(kept, lr=0.1, line_search_fn=line_search)

    def a_step(optimizer):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)

    old = lbfgs()
    a_step(old)
    net.early.requires_grad_(False)
    for optimizer, moves in ((old, True), (lbfgs(), False)):
        before = net.early[0].weight.clone()
        a_step(optimizer)
        assert (not torch.equal(before, net.early[0].weight)) == moves
        assert net.early[0].weight.grad is None
    one = torch.optim.LBFGS(net.head.parameters())
    one.add_param_group({"params": list(net.early.parameters())})
    with pytest.raises(AssertionError, match="one param_group"):
        a_step(one)


def test_a_prefix_with_its_dot():
    """`"layer1."` is not the beginning of `layer10.weight`."""
    assert "layer10.weight".startswith("layer1")
    assert not "layer10.weight".startswith("layer1.")


def test_a_tied_weight_has_one_name():
    """(A tied weight has one name in `named_parameters()`, its first; frozen, or loaded without `assign=True`, under one name, it is so under both.)"""
    net = nn.ModuleDict({"embed": nn.Embedding(5, 3), "head": nn.Linear(3, 5)})
    net["head"].weight = net["embed"].weight
    names = [name for name, _ in net.named_parameters()]
    assert names == ["embed.weight", "head.bias"]
    dict(net.named_parameters())["embed.weight"].requires_grad_(False)
    assert not net["head"].weight.requires_grad
    held = {"embed.weight": torch.ones(5, 3)}
    net.load_state_dict(held, strict=False)
    assert (net["head"].weight == 1).all()
    held = {"embed.weight": torch.zeros(5, 3)}
    net.load_state_dict(held, strict=False, assign=True)
    assert (net["head"].weight == 1).all()


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
    """`b(a(x).detach())` trains `b` alone. To train `a` through a fixed `b`, freeze the *parameters* of `b`; its operations must stay on the graph, for the gradient comes back through them. (In training mode the BatchNorm of `b` still moves.)

    A still *runs*: in training mode its BatchNorm counts and its dropout drops. It builds a graph that nobody uses, unless it runs under `no_grad`.

    `b(a(x).detach())` trains b; to train a through b, freeze b's parameters and put b in eval mode (an LSTM on a GPU stays in training mode, without dropout).
    """
    a, b, x = stages(), nn.Linear(2, 1), torch.randn(8, 4)
    if which == "b":
        out = a(x)
        assert out.grad_fn is not None
        b(out.detach()).sum().backward()
        with torch.no_grad():
            assert a(x).grad_fn is None
        assert a.early[1].num_batches_tracked == 2
        heard = nn.Dropout(0.5)(torch.ones(100))
        assert set(heard.tolist()) == {0.0, 2.0}
    else:
        b.requires_grad_(False)
        b(a(x)).sum().backward()
        norm = nn.BatchNorm1d(2).requires_grad_(False)
        norm(a(x).detach())
        assert norm.running_mean.any()
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
    """The optimizer has moments for the adapter alone, a checkpoint needs the adapter alone (filter the `state_dict`, which holds the frozen weights too, by name: nothing in it has `requires_grad`), and several adapters share one model. Afterwards the product can be added to the weight.

    The backward pass still goes through the layers: what is saved is the memory of gradients and moments. Of activations little is: the input of a frozen `Linear` without an adapter, say.
    """
    layers = [nn.Linear(16, 16).requires_grad_(False) for _ in range(3)]
    downs = [nn.Linear(16, 2, bias=False) for _ in layers]
    ups = [nn.Linear(2, 16, bias=False) for _ in layers]
    x = torch.randn(32, 16)

    def forward(*adapted):
        out = x
        for i, layer in enumerate(layers):
            out = layer(out) + (ups[i](downs[i](out)) if i in adapted else 0)
            out = F.gelu(out)
        return out

    known = [p for one in [*layers, *downs, *ups] for p in one.parameters()]
    adam = torch.optim.AdamW([p for p in known if p.requires_grad])
    with saved_tensor_bytes([*known, x]) as saved:
        forward(0, 1, 2).sum().backward()
    adam.step()
    with_adapter = saved.peak_bytes
    with saved_tensor_bytes([*known, x]) as saved:
        forward(0).sum()
    assert saved.peak_bytes < with_adapter
    state = nn.ModuleList([layers[0], downs[0], ups[0]]).state_dict()
    assert "0.weight" in state
    assert all(p.grad is None for layer in layers for p in layer.parameters())
    assert downs[0].weight.grad.any()
    assert sum(len(one) for one in adam.state.values()) == 3 * 6
    first, scale = nn.Linear(16, 16), nn.Parameter(torch.ones(16))
    for needed, bytes_kept in ((True, 32 * 16 * 4), (False, 0)):
        scale.requires_grad_(needed)
        with saved_tensor_bytes([*first.parameters(), scale, x]) as saved:
            scaled = first(x) * scale
            assert saved.live_bytes == bytes_kept
        del scaled
    for layer in layers:
        layer.requires_grad_(True)
    with saved_tensor_bytes([*known, x]) as saved:
        forward().sum()
    assert with_adapter >= saved.peak_bytes
    for layer, down, up in zip(layers, downs, ups, strict=True):
        both = layer(x) + up(down(x))
        merged = F.linear(x, layer.weight + up.weight @ down.weight, layer.bias)
        torch.testing.assert_close(both, merged)


@pytest.mark.parametrize("relu", [True, False])
def test_what_is_kept(relu):
    """Where the *first* layers are frozen, the backward pass ends at the first trained one, and nothing before it is kept. Where the *last* ones are, the gradient passes through them, and it depends on the layer what that takes. A frozen `Linear` needs its weight and not its input. A ReLU that is not compiled needs its output, frozen or not. So here freezing the last half saves nothing with ReLUs, and more than half without.

    Frozen first layers save time and memory. Frozen last layers save the input that a `Linear` would keep; a convolution keeps what it kept, and so does a ReLU that is not compiled.
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
    for last, saves in (
        (nn.Linear(width, width), True),
        (nn.Conv1d(2, 2, 3, padding=1), False),
        (nn.ConvTranspose1d(2, 2, 3, padding=1), False),
    ):
        first, found = nn.Linear(width, width), []
        known = [*first.parameters(), *last.parameters(), x]
        rows = x if saves else x.view(16, 2, width)
        for needed in (True, False):
            last.requires_grad_(needed)
            with saved_tensor_bytes(known) as saved:
                out = last(first(rows))
                found.append(saved.live_bytes)
        assert found == ([activation, 0] if saves else [activation] * 2)
        assert out.requires_grad


def test_what_the_flag_says():
    """The flag says what is trainable *from now on*.

    only leaves have a flag to change. To cut a computed tensor off the graph is what `detach` is for.
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
    """a change of flags can make `torch.compile` compile anew (it does in PyTorch 2.13)"""
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
    if torch.__version__ < "2.13":
        pytest.skip("this torch is older")
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


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_nothing_to_train(kind):
    """And an optimizer refuses an empty list, but takes an empty group and frozen parameters."""
    with pytest.raises(ValueError, match="empty"):
        kind([], lr=0.1)
    kind([{"params": []}], lr=0.1)
    head = nn.Linear(2, 1).requires_grad_(False)
    before = copy.deepcopy(head.state_dict())
    kind(head.parameters(), lr=0.1).step()
    assert all(torch.equal(before[k], v) for k, v in head.state_dict().items())


def test_added_under_a_schedule():
    """`optimizer.add_param_group` adds what is unfrozen later, at the rate that the optimizer was *made* with (a tensor is shared, and may have moved since). (Made of `named_parameters()`, it wants names there, too.) After some decays this rate is ten or a hundred times the present one, and some schedulers cannot go on.

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
        named = torch.optim.SGD([("head", head)], lr=0.1)
        with pytest.raises(ValueError, match="names"):
            named.add_param_group({"params": [later]})
        named.add_param_group({"params": [("later", later)]})
        try:
            plan.step()
            went_on[name] = True
        except Exception:
            went_on[name] = False
    assert set(went_on.values()) == {True, False}
    head, later = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([head], lr=torch.tensor(0.1))
    plan = lr_scheduler.StepLR(sgd, 1, 0.1)
    sgd.step()
    plan.step()
    sgd.add_param_group({"params": [later]})
    assert sgd.param_groups[1]["lr"] == pytest.approx(0.01)
    assert sgd.param_groups[1]["lr"] is sgd.param_groups[0]["lr"]


def test_a_plan_that_starts_over():
    """Give the group its rate, and make the scheduler anew: its plan starts over."""
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    fell = []
    plan = lr_scheduler.StepLR(sgd, 10, 0.1)
    for step in range(25):
        if step == 8:
            del sgd.param_groups[0]["initial_lr"]
            plan = lr_scheduler.StepLR(sgd, 10, 0.1)
        before = sgd.param_groups[0]["lr"]
        sgd.step()
        plan.step()
        if sgd.param_groups[0]["lr"] < before:
            fell.append(step + 1)
    assert fell == [18]


@pytest.mark.parametrize("delete", [True, False])
def test_a_scheduler_anew(delete):
    """The old groups still have a key `initial_lr`, and a new `LambdaLR`, `SequentialLR`, `CyclicLR` or `CosineAnnealingWarmRestarts` begins there again. Delete the key before you make any new scheduler."""
    head, later = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([head], lr=0.1)
    plan = lr_scheduler.LambdaLR(sgd, lambda n: 0.5**n)
    for _ in range(2):
        sgd.step()
        plan.step()
    sgd.add_param_group({"params": [later], "lr": 0.3})
    assert ["initial_lr" in g for g in sgd.param_groups] == [True, False]
    if delete:
        del sgd.param_groups[0]["initial_lr"]
    begun = sgd.param_groups[0].get("initial_lr")
    for make in (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 10),
        lambda o: lr_scheduler.SequentialLR(
            o,
            [
                lr_scheduler.ConstantLR(o, 1.0),
                lr_scheduler.ExponentialLR(o, 0.5),
            ],
            [2],
        ),
    ):
        twin = torch.optim.SGD([head], lr=0.025)
        if begun:
            twin.param_groups[0]["initial_lr"] = begun
        make(twin)
        assert twin.param_groups[0]["lr"] == (begun or 0.025)
    twin = torch.optim.SGD([head], lr=0.025, momentum=0.9)
    if begun:
        twin.param_groups[0]["initial_lr"] = begun
    lr_scheduler.CyclicLR(twin, 0.01, 0.2)
    assert twin.param_groups[0]["lr"] == (begun or 0.01)
    lr_scheduler.LambdaLR(sgd, lambda n: 0.5**n)
    rates = [round(group["lr"], 6) for group in sgd.param_groups]
    assert rates == [0.025 if delete else 0.1, 0.3]


def test_a_count_without_weights_and_input():
    """`saved_tensor_bytes` counts what autograd keeps for the backward pass; what is in memory anyhow, weights and input, is left out."""
    line, x = nn.Linear(4, 4), torch.randn(8, 4)
    kept = []
    for ignored in ([], [line.weight], [line.weight, x]):
        line.weight.requires_grad_(True)
        with saved_tensor_bytes(ignore=ignored) as saved:
            line(x.requires_grad_()).sum()
            kept.append(saved.peak_bytes)
    assert kept == [4 * (16 + 32), 4 * 32, 0]


@pytest.mark.parametrize("training", [True, False])
def test_features_computed_once(training):
    """Features of a frozen part in eval mode can be computed once, where its inputs stay the same."""
    part = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    part.requires_grad_(False).train(training)
    x = torch.randn(16, 4)
    assert torch.equal(part(x), part(x)) != training


@pytest.mark.parametrize("rank", [1, 4])
def test_adapters_where_they_are_wanted(rank):
    """LoRA freezes everything and trains two thin matrices beside each weight that it adapts."""
    net = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 2))
    net.requires_grad_(False)
    thin = nn.Linear(32, rank, bias=False), nn.Linear(rank, 32, bias=False)
    x = torch.randn(5, 32)
    net[1](net[0](x) + thin[1](thin[0](x))).sum().backward()
    assert all(p.grad is None for p in net.parameters())
    assert sum(one.weight.grad.numel() for one in thin) == 2 * rank * 32


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
    net.requires_grad_(False).load_state_dict(given, assign=True)
    assert not any(p.requires_grad for p in net.parameters())


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

    `p in some_list` compares numbers: it fails, or it takes another parameter with the same single number for `p`. Compare `id(p)`. The parameters are in `optimizer.param_groups`, each group a dict with the key `"params"`.

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
    alone, other = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    assert alone in [other]
    sgd = torch.optim.SGD([other])
    held = {id(p) for group in sgd.param_groups for p in group["params"]}
    assert id(other) in held
    assert id(alone) not in held
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


def test_frozen_but_not_still():
    """Freezing is how you keep it: fewer weights to train, less memory

    A layer that only *looks* frozen gives you none of that, and says nothing.

    A frozen parameter has `requires_grad=False` and `grad=None`.
    """
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    held = {}
    for how in ("trained", "looks frozen", "frozen"):
        if how == "looks frozen":
            model[0].requires_grad = False
        elif how == "frozen":
            model[0].requires_grad_(False)
        model.zero_grad()
        with saved_tensor_bytes(ignore=list(model.parameters())) as saved:
            loss = model(torch.ones(4, 8)).sum()
            held[how] = saved.live_bytes
        loss.backward()
        assert (model[0].weight.grad is None) == (how == "frozen")
        assert model[2].weight.grad is not None
    assert held["frozen"] < held["trained"] == held["looks frozen"]


@pytest.mark.parametrize("name", ["0", "", "1", "0.weight"])
def test_find_a_part(name):
    """`prefixes` is a list of dotted names of parts, at least one, such as `["encoder.block1"]`. A part may be a single layer."""
    model = nn.Sequential(nn.Linear(2, 2))
    if name in ("0", ""):
        assert model.get_submodule(name) is (model[0] if name else model)
        nested = nn.ModuleDict({"encoder": nn.ModuleDict({"block1": model})})
        assert nested.get_submodule("encoder.block1") is model
    else:
        with pytest.raises(AttributeError):
            model.get_submodule(name)


def test_gradients_for_one_of_two():
    """Freeze the parameters of `b` for the time of the call, and remember which were frozen already. Or look at what `Tensor.backward` takes as `inputs`."""
    a, b = nn.Linear(1, 1), nn.Linear(1, 1)
    b.weight.grad = torch.full((1, 1), 7.0)
    b(a(torch.ones(2, 1))).sum().backward(inputs=list(a.parameters()))
    assert all(p.grad is not None for p in a.parameters())
    assert b.weight.grad.item() == 7
    assert b.bias.grad is None
    assert all(p.requires_grad for p in b.parameters())


def test_prefixes_as_strings():
    """`key.startswith(prefix)` and `key.removeprefix(prefix)`; an empty prefix needs no extra case. For the head, the dot counts: `head2.weight` does not lie under `head`."""
    assert "net.net.weight".removeprefix("net.") == "net.weight"
    assert "weight".removeprefix("net.") == "weight"
    assert "weight".startswith("")
    assert "weight".removeprefix("") == "weight"
    assert not "head2.weight".startswith("head.")


@pytest.mark.parametrize("training", [True, False])
def test_momentum_of_zero(training):
    """a frozen BatchNorm is in eval mode, again after every `train()`. Momentum 0 keeps mean and variance while those of the batch are finite, and still normalizes by the batch."""
    for momentum, moves in ((0.1, True), (None, True), (0.0, False)):
        norm = nn.BatchNorm1d(2, momentum=momentum).requires_grad_(False)
        norm.train(training)
        weight = norm.weight.clone()
        with torch.no_grad():
            out = norm(3 + torch.randn(16, 2))
        assert norm.weight.equal(weight)
        assert norm.running_mean.any() == (moves and training)
        assert (out.mean().abs() < 1e-5) == training
        assert norm.num_batches_tracked == int(training)
        # a variance that overflows, and an infinity
        norm(torch.tensor([[3e19, 0.0], [-3e19, 2.0]]))
        assert norm.running_var.isfinite().all() == (not training)
        norm(torch.tensor([[torch.inf, 0.0], [1.0, 2.0]]))
        assert norm.running_mean.isfinite().all() == (not training)


@pytest.mark.parametrize("saved", [True, False])
def test_an_edit_behind_autograd(saved):
    """If autograd had saved the original, `backward` says so (not within `save_on_cpu`, chapter 11); with `.data`, or by `detach().numpy()`, nobody says anything, and the gradient is wrong."""
    x = torch.zeros(3, requires_grad=True)
    out = torch.sigmoid(x) if saved else 2 * x  # 2 * x saves no output
    out.detach().zero_()
    assert not out.any()
    if saved:
        with pytest.raises(RuntimeError, match="inplace operation"):
            out.sum().backward()
        for shared in (
            lambda out: out.data,
            lambda out: torch.from_numpy(out.detach().numpy()),
        ):
            out, x.grad = torch.sigmoid(x), None
            shared(out).zero_()
            out.sum().backward()
            assert not x.grad.any()  # 0.25 is right
        x.grad = None
        with torch.autograd.graph.save_on_cpu():
            out = torch.sigmoid(x)
            out.detach().zero_()
            out.sum().backward()  # raises nothing
        assert not x.grad.any()
    else:
        out.sum().backward()
        assert x.grad.tolist() == [2.0] * 3


def test_what_fits_by_shape_alone():
    """And where the old head has the shape of the new one, shape does not tell them apart: leave the head out by its name."""
    old, new = stages(), stages()
    with torch.no_grad():
        old.head.weight.fill_(7)
    fits = {
        key: value
        for key, value in old.state_dict().items()
        if value.shape == new.state_dict()[key].shape
    }
    assert "head.weight" in fits
    new.load_state_dict(fits, strict=False)
    assert new.head.weight.eq(7).all()


@pytest.mark.parametrize("rest", ["frozen", "trained", "adds only"])
def test_an_inference_tensor(rest):
    """Under `inference_mode` it is one step too far: such a tensor cannot be saved for `backward()`."""
    with torch.inference_mode():
        features = torch.ones(1, 2) * 2
    layer = nn.Linear(2, 1)
    if rest == "frozen":  # nothing has to be saved
        assert not layer.requires_grad_(False)(features).requires_grad
    elif rest == "trained":
        with pytest.raises(RuntimeError, match="cannot be saved for backward"):
            layer(features)
    else:
        shift = nn.Parameter(torch.ones(2))
        (features + shift).sum().backward()
        assert shift.grad.tolist() == [1.0, 1.0]


def test_a_filter_is_used_up():
    """The optimizer gets a list of what is trainable. What is unfrozen later has to be added, at a rate of its own and with a new scheduler."""
    net = nn.Linear(2, 1)
    net.bias.requires_grad_(False)
    trainable = filter(lambda p: p.requires_grad, net.parameters())
    assert len(list(trainable)) == 1
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD(trainable, lr=0.1)
    sgd = torch.optim.SGD([p for p in net.parameters() if p.requires_grad])
    assert [len(group["params"]) for group in sgd.param_groups] == [1]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_training_mode_without_dropout(kind):
    """leave it in training mode, with its `dropout` set to 0.)"""
    frozen, x = kind(3, 3, num_layers=2, dropout=0.5), torch.ones(4, 1, 3)
    with torch.no_grad():
        wanted = frozen.eval()(x)[0]
        assert not torch.equal(frozen.train()(x)[0], wanted)
        frozen.dropout = 0.0
        assert torch.equal(frozen(x)[0], wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_in_eval_mode(kind):
    """(On a GPU no gradient passes an `nn.LSTM` in eval mode: cuDNN refuses. If layers before it are trained, leave it in training mode, with its `dropout` set to 0.)"""
    frozen = kind(3, 3).requires_grad_(False).cuda()
    x = torch.ones(4, 1, 3, device="cuda", requires_grad=True)
    frozen.train()(x)[0].sum().backward()
    assert x.grad is not None
    with pytest.raises(RuntimeError, match="training mode"):
        frozen.eval()(x)[0].sum().backward()
