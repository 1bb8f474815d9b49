"""What chapter 10 states about 16 bits, run on the CPU."""

import itertools
import math
import types
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_grader.chapter.source import read_chapter
from course_utils import digit_mlp, digits, saved_tensor_bytes

BY_CELL = {
    "evaluation_precision": [
        "Called after the block, an evaluation silently computes in float32; called inside one, in bfloat16.",
        "So let the evaluation open its own block, also to switch autocast *off*: that says what was measured.",
    ],
    "claim_003_02": [
        "Here most of the memory is not the model but what is kept for the backward pass.",
    ],
    "claim_003_03": [
        "Mixed precision keeps weights and gradients in float32; it is the activations that shrink.",
    ],
    "claim_003_04": [
        "The scaler converts nothing. `autocast` does, and not everything.",
    ],
    "claim_003_05": ["Without a GPU it switches itself off"],
    "claim_003_06": ["bfloat16 has no such underflow."],
    "claim_003_07": [
        "The scaled loss is thrown away, and the optimizer steps twice.",
        "With Adam the two steps are easy to see.",
    ],
    "claim_003_22": [
        "the name warns, nothing is divided by 2",
    ],
    "claim_003_27": [
        "It is the activations that take less, with many rows (section 4); weights, gradients and optimizer state do not.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/amp.html": [
        "On a GPU softmax, sums, exp and layer norm are on the float32 list",
        "*Correct.* The lists of operations differ between devices.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices": [
        "the inputs of float32 matrix products are rounded to 10 bits of fraction, on NVIDIA GPUs since 2020",
        "Convolutions by cuDNN round to tf32 by default, so float32 is not quite float32 there",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_bf16_supported.html": [
        "On a GPU `torch.cuda.is_bf16_supported(including_emulation=False)` tells whether bfloat16 is built in.",
        "Without the argument it is True as well where bfloat16 is emulated, and slow, as on a T4.",
    ],
}

HALF = [torch.float16, torch.bfloat16]

CHAPTER = Path("solutions/10_mixed_precision/10_mixed_precision.py")


@pytest.fixture(scope="module")
def chapters_own() -> Any:
    """What one cell of the chapter defines: its training of the digits."""
    chapter = read_chapter(Path(__file__).resolve().parents[2] / CHAPTER)
    names = {"torch": torch, "F": F, "digit_mlp": digit_mlp, "data": digits()}
    for cell in chapter.cells:
        if cell.name == "lost_updates":
            exec(cell.source, names)
    return types.SimpleNamespace(**names)


def test_two_formats():
    """`float16` spends 5 of them on the exponent and 10 on the digits, `bfloat16` 8 and 7. So bfloat16 reaches as far as float32, with two to three decimal digits; float16 has three to four, and ends at 65504.

    In float16 the smallest number is 6 · 10⁻⁸.

    float16: three to four digits, up to 65504, nothing below 6 · 10⁻⁸. bfloat16: two to three digits, the range of float32.

    In bfloat16 there is no number between 1 and 1.0078: the sum is rounded back to the weight.
    """
    for dtype, exponent, fraction in (
        (torch.float16, 5, 10),
        (torch.bfloat16, 8, 7),
        (torch.float32, 8, 23),
    ):
        info = torch.finfo(dtype)
        assert info.eps == 2.0**-fraction
        assert info.smallest_normal == 2.0 ** (2 - 2 ** (exponent - 1))
        assert info.max == (2 - info.eps) * 2.0 ** (2 ** (exponent - 1) - 1)
    assert torch.finfo(torch.float16).max == 65504
    assert 3 <= -math.log10(torch.finfo(torch.float16).eps) + 0.3 <= 4
    assert 2 <= -math.log10(torch.finfo(torch.bfloat16).eps) + 0.3 <= 3
    smallest = torch.tensor(2.0**-24, dtype=torch.float16)
    assert smallest > 0
    assert smallest / 2 == 0
    assert abs(2.0**-24 - 6e-8) < 1e-9
    one = torch.tensor(1.0, dtype=torch.bfloat16)
    assert torch.nextafter(one, 2 * one).item() == 1.0078125
    assert one + 1e-3 == one
    assert one.half() + 1e-3 > 1
    assert one.half() + 1e-4 == 1


def test_updates_that_float16_loses():
    """(float16 has three bits more, and loses only smaller updates, save near 0, where some biases start: its steps are never finer than 6 · 10⁻⁸.)"""
    torch.manual_seed(0)

    def lost(weights, updates, dtype):
        low = weights.to(dtype)
        assert torch.equal(low.double(), weights)  # both have these weights
        return low + updates.to(dtype) == low

    digits = 1 + torch.randint(128, (20_000,)).double() / 128
    shares = 10 ** -(1 + 4 * torch.rand(20_000).double())
    for least, most in ((-16, 0), (-24, -18)):
        powers = torch.randint(least, most + 1, (20_000,))
        weights = torch.ldexp(digits, powers)
        weights = weights.half().bfloat16().double()
        updates = weights * shares
        half = lost(weights, updates, torch.float16)
        brain = lost(weights, updates, torch.bfloat16)
        if least == -16:
            assert (brain & ~half).sum() > 1000
            assert not (half & ~brain).any()
        else:
            assert (half & ~brain).sum() > 1000
    zero = torch.zeros(1, dtype=torch.double)
    assert lost(zero, zero + 1e-8, torch.float16)
    assert not lost(zero, zero + 1e-8, torch.bfloat16)


def test_updates_that_are_lost(chapters_own):
    """With a small learning rate, a step adds to most weights a thousandth of themselves, or less.

    So a model whose *weights* are bfloat16 hardly learns while its gradients are fine.
    """
    fell = {}
    for lr in (0.02, 0.2):
        for dtype in (torch.float32, *HALF):
            curve = chapters_own.train_digits(dtype, num_steps=200, lr=lr)
            fell[dtype, lr] = curve[0] - curve[-1]
    assert fell[torch.bfloat16, 0.02] < 0.5 * fell[torch.float32, 0.02]
    for dtype, lr in (
        (torch.float16, 0.02),
        (torch.float16, 0.2),
        (torch.bfloat16, 0.2),
    ):
        assert fell[dtype, lr] > 0.9 * fell[torch.float32, lr]
    shares = {}
    for lr in (0.02, 0.2):
        torch.manual_seed(0)
        net, data = digit_mlp(), chapters_own.data
        F.cross_entropy(net(data.X_train[:128]), data.y_train[:128]).backward()
        steps = [(lr * p.grad / p).abs().flatten() for p in net.parameters()]
        shares[lr] = (torch.cat(steps) < 1e-3).double().mean()
    assert shares[0.2] < 0.5 < shares[0.02]


@pytest.mark.parametrize("dtype", HALF)
def test_what_stays_float32(dtype):
    """under autocast the layers compute in bfloat16, from copies, while the weights stay float32.

    `backward()` and `step()` stand outside. The backward pass runs each of PyTorch's operations in the dtype of its forward pass; the optimizer works on float32 weights.

    Weights, gradients and optimizer state stay float32. 16-bit weights lose small updates.
    """
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    adam, flowing = torch.optim.Adam(net.parameters(), lr=0.1), []
    with torch.autocast("cpu", dtype):
        hidden = net[:2](torch.randn(5, 4))
        hidden.register_hook(lambda g: flowing.append(g.dtype))
        loss = F.cross_entropy(net[2](hidden), torch.zeros(5, dtype=torch.long))
    loss.backward()
    adam.step()
    assert hidden.dtype == dtype
    assert flowing == [dtype]
    for p in net.parameters():
        assert p.dtype == p.grad.dtype == torch.float32
        assert adam.state[p]["exp_avg"].dtype == torch.float32
    for low, lr in ((torch.bfloat16, 1e-3), (torch.float16, 1e-4)):
        weight = nn.Parameter(torch.ones(1, dtype=low))
        sgd = torch.optim.SGD([weight], lr=lr)
        for _ in range(100):
            weight.grad = torch.ones_like(weight)
            sgd.step()
        assert weight == 1


def test_a_factor_on_the_loss():
    """Multiply the *loss*, and by the chain rule every gradient is multiplied, before it is rounded. Divide the gradients of the weights, which are float32, when the backward pass is over."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
    x, found = torch.randn(4, 8), {}
    for dtype, scale in (
        (None, 1.0),
        (torch.float16, 1.0),
        (torch.float16, 2.0**24),
    ):
        layers.zero_grad()
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            out = layers(x)
        (out.float().sum() * 1e-9 * scale).backward()
        found[dtype, scale] = layers[0].weight.grad / scale
    wanted = found[None, 1.0]
    assert wanted.any()
    assert not found[torch.float16, 1.0].any()
    torch.testing.assert_close(
        found[torch.float16, 2.0**24], wanted, rtol=0.02, atol=1e-12
    )


def test_defaults_of_autocast():
    """Without a dtype, autocast goes to float16 on a GPU and to bfloat16 on a CPU: name it."""
    assert torch.get_autocast_dtype("cuda") == torch.float16
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16
    with torch.autocast("cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_how_the_scaler_looks_for_its_scale():
    """it starts high, halves the scale when a gradient overflows (and *skips that step*), and doubles it after 2000 good steps in a row. (Where the *forward* pass overflowed before a batch norm, its statistics are not finite any more: chapter 08 puts buffers back.)

    `GradScaler(..., enabled=False)` lets the same loop serve both.

    Only a skipped step lowers the scale.
    """
    weight = nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    assert scaler.get_scale() == 2.0**16
    assert scaler.get_growth_interval() == 2000
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor()) == (
        2.0,
        0.5,
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
    scales = []
    for bad in (math.inf, 1.0, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0):
        before = weight.item()
        sgd.zero_grad()
        scaler.scale(weight.sum() * bad).backward()
        scaler.step(sgd)
        scaler.update()
        assert (weight.item() == before) == (not math.isfinite(bad))
        scales.append(scaler.get_scale())
    assert scales == [4.0, 4.0, 4.0, 2.0, 2.0, 2.0, 4.0, 4.0]
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    other = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler, x = torch.amp.GradScaler("cpu", init_scale=8.0), torch.randn(6, 2)
    for size in (1.0, 1e6, 1.0):
        other.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = net(size * x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(other)
        scaler.update()
    assert loss.isfinite()
    assert all(p.isfinite().all() for p in net.parameters())
    assert not net[1].running_mean.isfinite().any()
    off = torch.amp.GradScaler("cpu", enabled=False)
    sgd.zero_grad()
    loss = weight.sum()
    assert off.scale(loss) is loss
    loss.backward()
    before = weight.item()
    off.unscale_(sgd)
    off.step(sgd)
    off.update()
    assert weight.item() == pytest.approx(before - 0.1)


@pytest.mark.parametrize("power", [4, 10, 16])
def test_clipping_and_the_scale(power):
    """`unscale_` divides them now, and `step` knows that it has been done.

    Without `unscale_` nothing fails: nearly every gradient is cut to `max_norm` / scale, long or short. Under SGD the run hardly learns. Adam divides the scale out again, but for its `eps`, and not the cutting.

    Then the *scaled* gradient was clipped to `max_norm`, and divided by the scale afterwards.
    """
    for unscaled in (True, False):
        weight = nn.Parameter(torch.zeros(4))
        sgd = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**power)
        scaler.scale(3 * weight.sum()).backward()
        if unscaled:
            scaler.unscale_(sgd)
        nn.utils.clip_grad_norm_([weight], 0.5)
        scaler.step(sgd)
        wanted = 0.5 if unscaled else 0.5 / 2.0**power
        assert weight.norm().item() == pytest.approx(wanted, rel=1e-4)
        weight = nn.Parameter(torch.zeros(4))
        adam = torch.optim.Adam([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**power)
        scaler.scale(3 * weight.sum()).backward()
        if unscaled:
            scaler.unscale_(adam)
        nn.utils.clip_grad_norm_([weight], 0.5)
        scaler.step(adam)
        assert weight.norm().item() == pytest.approx(2, rel=0.01)
    # gradients of two lengths, none of which is to be clipped
    ended = {}
    for unscaled in (True, False):
        weight = nn.Parameter(torch.zeros(4))
        adam = torch.optim.Adam([weight], lr=1.0, eps=1e-20)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**power)
        for length in (1.0, 30.0):
            adam.zero_grad()
            scaler.scale(length * weight.sum()).backward()
            if unscaled:
                scaler.unscale_(adam)
            nn.utils.clip_grad_norm_([weight], 100.0)
            scaler.step(adam)
            scaler.update()
        ended[unscaled] = weight.norm().item()
    assert abs(ended[True] / ended[False] - 1) > 0.05


def test_an_overflow_in_a_window():
    """And an overflow in one part makes the sum infinite or NaN: the whole window is skipped.

    An inf in one part makes the sum inf or NaN, and the scaler skips the step by itself.

    Then the gradients of the skipped window are still there. Clear them after every window, not only after a step.

    All parts of a window must have the same scale, so `update()` waits.
    """
    weight = nn.Parameter(torch.ones(2))
    for infinite in (math.inf, -math.inf):
        (infinite * weight.sum()).backward()
    assert weight.grad.isnan().all()
    for bad in (math.inf, -math.inf, math.nan):
        weight = nn.Parameter(torch.ones(2))
        sgd = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for part in (1.0, bad, 1.0):
            scaler.scale(part * weight.sum()).backward()
        scaler.step(sgd)
        scaler.update()
        assert torch.equal(weight, torch.ones(2))
        assert scaler.get_scale() == 2.0
        assert not sgd.state
        for cleared in (False, True):
            if cleared:
                sgd.zero_grad()
            scaler.scale(weight.sum()).backward()
            scaler.step(sgd)
            scaler.update()
            assert torch.equal(weight, torch.ones(2)) == (not cleared)


@pytest.mark.parametrize("dtype", [torch.bfloat16])
def test_operation_by_operation(dtype):
    """Matrix products by `@` or a linear layer, and convolutions, of float32 go to 16 bit; some operations that lose too much go to float32; most others take what they get, or the widest of their inputs.

    on a CPU they stay bfloat16. Outside the block the loss of bfloat16 scores is bfloat16, so keep it inside, or call `.float()` on the scores first; for a formula of your own do so inside, too. NumPy knows no bfloat16: `.float()` before `.numpy()`.
    """
    wide, target = torch.ones(4, 4), torch.zeros(4, dtype=torch.long)
    with torch.autocast("cpu", dtype):
        assert (wide.double() @ wide.double()).dtype == torch.float64
        low = wide @ wide
        for got in (
            low,
            F.linear(wide, wide),
            wide @ wide[0],
            wide[0] @ wide[0],
            F.conv1d(wide[None], wide[:, :, None]),
            low.relu(),
            low.softmax(1),
            low.sum(),
            low.exp(),
            F.layer_norm(low, [4]),
            F.layer_norm(low, [4], torch.ones(4)),  # not the widest
            (low - low.sigmoid()).pow(2).mean(),
        ):
            assert got.dtype == dtype
        for got in (
            (low.float() - low.sigmoid()).pow(2).mean(),
            low + wide,
            wide + wide,
            F.cross_entropy(low, target),
            F.mse_loss(low, low),
        ):
            assert got.dtype == torch.float32
    assert F.cross_entropy(low, target).dtype == dtype
    assert F.cross_entropy(low.float(), target).dtype == torch.float32
    with pytest.raises(TypeError):
        low.numpy()
    low.float().numpy()


class Casts(TorchDispatchMode):
    """Counts casts to 16 bit of tensors of one shape."""

    def __init__(self, shape):
        super().__init__()
        self.shape, self.count = shape, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        out = operation(*args, **(kwargs or {}))
        if "_to_copy" in str(operation) and tuple(out.shape) == self.shape:
            self.count += out.dtype in HALF
        return out


@pytest.mark.parametrize("dtype", HALF)
def test_the_copies_of_a_block(dtype):
    """Autocast makes its 16-bit copy of a trained weight once per block and keeps it until the *outermost* block ends: a layer that is used twice is converted once. (A frozen one is converted each time, and so are a view as `w.T`, a computed one, as with weight norm, and any under `inference_mode`.) In a block around the whole loop a layer that is not compiled goes on with old copies: the compiler leaves some alone, as an `nn.GRU` and what stands in the same `forward`, and its backend `"eager"` all.

    Autocast keeps its 16-bit copies of the weights until the outermost block ends. A block around the loop would go on with the copies of the first step.
    """
    layer, row = nn.Linear(3, 5), torch.ones(1, 3)
    with Casts((5, 3)) as casts, torch.autocast("cpu", dtype):
        layer(row)
        with torch.autocast("cpu", dtype):
            layer(row)
        layer(row)
    assert casts.count == 1
    for product in (
        lambda: row @ layer.weight.T,
        lambda: torch.einsum("ni,oi->no", row, layer.weight),
    ):
        kept = layer.weight.detach().clone()
        with torch.autocast("cpu", dtype):
            assert product().any()
            nn.init.zeros_(layer.weight)
            assert not product().any()
        with torch.no_grad():
            layer.weight.copy_(kept)
    frozen = nn.Linear(3, 5).requires_grad_(False)
    with Casts((5, 3)) as casts, torch.autocast("cpu", dtype):
        frozen(row)
        frozen(row)
    assert casts.count == 2
    # a layer that is converted anew sees what was written into its weight
    looks_again = {torch.no_grad: False, torch.inference_mode: True}
    for no_gradients, anew in looks_again.items():
        own = nn.Linear(3, 5, bias=False)
        with no_gradients(), torch.autocast("cpu", dtype):
            assert own(row).any()
            own.weight.data.zero_()
            assert own(row).any() == (not anew)
    sgd = torch.optim.SGD(layer.parameters(), lr=1.0)
    with torch.autocast("cpu", dtype):
        before = layer(row)
        before.sum().backward()
        sgd.step()
        assert torch.equal(layer(row), before)
    with torch.autocast("cpu", dtype):
        assert not torch.equal(layer(row), before)
    for backend, new in (("aot_eager", True), ("eager", False)):
        torch._dynamo.reset()
        fast = torch.compile(layer, backend=backend)
        with torch.autocast("cpu", dtype):
            before = fast(row)
            before.sum().backward()
            sgd.step()
            assert (not torch.equal(fast(row), before)) == new
    torch._dynamo.reset()
    memory = nn.GRU(3, 4)
    fast = torch.compile(memory, backend="aot_eager")
    with torch.autocast("cpu", dtype):
        before = fast(row)[0]
        with torch.no_grad():
            memory.weight_ih_l0.mul_(2)
        assert torch.equal(fast(row)[0], before)
    with torch.autocast("cpu", dtype):
        assert not torch.equal(fast(row)[0], before)


@pytest.mark.parametrize("dtype", HALF)
def test_an_evaluation_within_a_block(dtype):
    """And call it after the training block: within one, it goes on with the 16-bit copies of the weights which that block has made, also when the weights have changed. Under the other 16-bit dtype that is an error. (`cache_enabled=False` makes new copies, and so does `inference_mode`.)"""
    layer, row = nn.Linear(3, 1), torch.ones(1, 3)

    @torch.no_grad()
    def evaluated(**how):
        with torch.autocast("cpu", **how):
            return layer(row).item()

    with torch.autocast("cpu", dtype):
        before = layer(row).item()
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        assert evaluated(dtype=dtype) == before != 0
        assert evaluated(dtype=dtype, cache_enabled=False) == 0
        assert evaluated(enabled=False) == 0
        (other,) = set(HALF) - {dtype}
        with pytest.raises(RuntimeError, match="same dtype"):
            evaluated(dtype=other)
        assert evaluated(dtype=other, cache_enabled=False) == 0
        with torch.inference_mode():
            assert evaluated(dtype=dtype) == evaluated(dtype=other) == 0
    assert evaluated(dtype=dtype) == 0


def test_a_skipped_step_and_the_schedule():
    """It lowers the rate all the same; and if it was the very first step, PyTorch warns of a wrong order. (A *fused* optimizer is called and moves nothing: no warning, and who counts calls of `step` counts it."""
    for bad_first, fused in itertools.product((True, False), repeat=2):
        weight, calls = nn.Parameter(torch.ones(1)), []
        sgd = torch.optim.SGD([weight], lr=0.1, fused=fused)
        sgd.register_step_post_hook(lambda *_, calls=calls: calls.append(1))
        plan = torch.optim.lr_scheduler.StepLR(sgd, 1, 0.1)
        scaler = torch.amp.GradScaler("cpu")
        for turn in range(2):
            sgd.zero_grad()
            factor = math.inf if (turn == 0) == bad_first else 1.0
            scaler.scale(weight.sum() * factor).backward()
            before = weight.item()
            scaler.step(sgd)
            scaler.update()
            left_out = (turn == 0) == bad_first
            assert (weight.item() == before) == left_out
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                plan.step()
            ordered = any(
                "lr_scheduler.step()" in str(one.message) for one in told
            )
            assert ordered == (bad_first and turn == 0 and not fused)
        assert len(calls) == (2 if fused else 1)
        assert sgd.param_groups[0]["lr"] == pytest.approx(0.001)


@pytest.fixture
def marked_memory():
    """What is allocated and not yet written is NaN."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


@pytest.mark.parametrize("skipped", [0, 1])
def test_fused_sgd_with_momentum(marked_memory, skipped):
    """Give no scaler to fused SGD with momentum: if its first step is skipped, its momentum is memory that nobody has written, and the next step adds it to the weights."""

    def weight_after(kind, fused, **options):
        weight = nn.Parameter(torch.ones(3))
        optimizer = kind([weight], lr=0.1, fused=fused, **options)
        scaler = torch.amp.GradScaler("cpu")
        for turn in range(3):
            optimizer.zero_grad()
            factor = math.inf if turn == skipped else 1.0
            scaler.scale((factor * weight).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        return weight.detach()

    for kind, options in (
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.AdamW, {}),
    ):
        usual = weight_after(kind, False, **options)
        fused = weight_after(kind, True, **options)
        assert usual.isfinite().all()
        if options and skipped == 0:
            assert fused.isnan().all()
        else:
            torch.testing.assert_close(fused, usual)


@pytest.mark.parametrize(("rows", "wide"), [(4, 64), (512, 64), (512, 1024)])
def test_what_is_kept_in_16_bit(rows, wide):
    """With many rows, and hidden layers larger than the input, the memory kept for the backward pass beside weights and input falls on any device, though not to half: 16-bit copies of the weights and of the input are kept as well. With few rows or a wide input they outweigh what is saved."""
    net = nn.Sequential(
        nn.Linear(wide, 64),
        nn.ReLU(),
        *[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(3)],
    )
    x, kept = torch.randn(rows, wide), {}
    for dtype in (None, torch.bfloat16):
        with (
            saved_tensor_bytes([*net.parameters(), x]) as saved,
            torch.autocast("cpu", dtype, enabled=dtype is not None),
        ):
            net(x)
        kept[dtype] = saved.peak_bytes
    share = kept[torch.bfloat16] / kept[None]
    assert 0.5 < share < 0.9 if (rows, wide) == (512, 64) else share > 1


def test_sgd_uses_divided_gradients_as_printed():
    """With SGD the second one uses gradients that were divided by the scale, too small to notice."""
    weight = nn.Parameter(torch.zeros(1))
    sgd, scaler = torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("cpu")
    scaled = scaler.scale(weight.sum())
    assert scaled.requires_grad
    weight.sum().backward()
    sgd.step()
    once = weight.item()
    scaler.step(sgd)
    assert 0 < abs(weight.item() - once) < 1e-5


def test_tf32_in_convolutions():
    """`torch.backends.cudnn.conv.fp32_precision` says "tf32", and takes "ieee" (chapter 01 has what then raises)."""
    convolutions = torch.backends.cudnn.conv
    assert convolutions.fp32_precision == "tf32"
    try:
        convolutions.fp32_precision = "ieee"
        assert convolutions.fp32_precision == "ieee"
    finally:
        convolutions.fp32_precision = "tf32"


def test_float64_is_left_alone():
    """In float64, which autocast leaves alone, the weights must be right to five digits"""
    for dtype in HALF:
        with torch.autocast("cpu", dtype):
            layer = nn.Linear(2, 2).double()
            assert layer(torch.ones(1, 2).double()).dtype == torch.float64


def test_adam_hides_a_missing_unscale():
    """Test such a loop with SGD: AdamW, and Adam without weight decay, may hide a factor in the gradient, and so a missing unscale."""
    adams = torch.optim.Adam, torch.optim.AdamW
    for (size, decay), kind in itertools.product(
        ((1.0, 0), (1e-9, 0), (1.0, 1.0)), adams
    ):
        ends = []
        for factor in (size, 1024.0 * size):
            weight = nn.Parameter(torch.ones(3))
            adam = kind([weight], lr=0.1, weight_decay=decay)
            for step in range(3):
                adam.zero_grad()
                (
                    factor * (weight * torch.arange(1.0, 4)).sum() * (step + 1)
                ).backward()
                adam.step()
            ends.append(weight.detach())
        hidden = torch.allclose(*ends, rtol=1e-5, atol=0)
        apart = kind is torch.optim.AdamW or decay == 0
        assert hidden == (size == 1 and apart)


def test_sums_in_16_bit():
    """inf and NaN divided by the scale are inf and NaN. So look before dividing or after it: they differ only where a scale below 1 makes a large finite gradient infinite, and there both are fine.

    `clip_grad_norm_` returns the norm before clipping, as a tensor.
    """
    for bad in (math.inf, -math.inf, math.nan):
        for scale in (1024, 0.5):
            got = torch.tensor(bad) / scale
            assert got.isnan() if math.isnan(bad) else got == bad
    large = torch.tensor(3e38)
    for scale in (1024, 1, 0.5):
        assert (large / scale).isfinite() == (scale >= 1)
    weight = nn.Parameter(torch.zeros(1))
    weight.grad = torch.tensor([3.0])
    norm = nn.utils.clip_grad_norm_([weight], 1.0)
    assert isinstance(norm, torch.Tensor)
    assert norm == 3


def test_the_state_of_a_scaler():
    """Its state belongs in the checkpoint (chapter 12): `scaler.state_dict()`.

    (A disabled one has none, and an enabled one raises if it is given that.)
    """
    weight = nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=5)
    for _ in range(3):
        scaler.scale(weight.sum()).backward()
        scaler.step(sgd)
        scaler.update()
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert scaler.state_dict()["_growth_tracker"] == 3
    nothing = torch.amp.GradScaler("cpu", enabled=False).state_dict()
    assert nothing == {}
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict(nothing)


def test_too_far():
    """Green is the normal range of float16; in the yellow one digits are lost. Too far, and the largest overflow."""
    third = torch.tensor(1 / 3)
    wrong = {}
    for power in (-26, -20, -12, 0, 15, 18):
        exact = third * 2.0**power
        got = exact.half().float()
        wrong[power] = ((got - exact) / exact).abs().item()
    assert wrong[-26] == 1  # 0
    assert 2.0**-11 < wrong[-20] < 1
    assert max(wrong[one] for one in (-12, 0, 15)) < 2.0**-11
    assert math.isinf(wrong[18])


@pytest.mark.parametrize("size", [1e-9, 1e-30])
def test_bfloat16_needs_no_scaler(size):
    """bfloat16 has the range of float32 and needs no scaler;

    float16 needs a scaler, bfloat16 does not (but is slow where it is emulated): scale, backward, (unscale, clip,) step, update.
    """
    slopes = {}
    for dtype in HALF:
        x = torch.ones(2, dtype=dtype, requires_grad=True)
        (x.float() * size).sum().backward()
        slopes[dtype] = x.grad.float()
    assert not slopes[torch.float16].any()
    torch.testing.assert_close(
        slopes[torch.bfloat16], torch.full((2,), size), rtol=0.01, atol=0
    )


@pytest.mark.parametrize("dtype", HALF)
def test_losses_want_float32(dtype):
    """Then it is computed after the block, from bfloat16 logits.

    Autocast takes most of PyTorch's losses to float32, cross-entropy among them, but only while it is on. A formula of your own may stay bfloat16 even then: give it `logits.float()`.
    """
    low = torch.full((4, 4), 0.5, dtype=dtype)
    classes = torch.zeros(4, dtype=torch.int64)
    losses = (
        lambda: F.cross_entropy(low, classes),
        lambda: F.nll_loss(low, classes),
        lambda: F.mse_loss(low, low),
        lambda: F.l1_loss(low, low),
        lambda: F.huber_loss(low, low),
        lambda: F.binary_cross_entropy_with_logits(low, low),
        lambda: F.kl_div(low, low, reduction="sum"),
    )
    for loss in losses:
        with torch.autocast("cpu", dtype):
            assert loss().dtype == torch.float32
        assert loss().dtype == dtype
    positive = low.square()
    for stays in (
        lambda: F.gaussian_nll_loss(low, low, positive),
        lambda: F.multilabel_soft_margin_loss(low, low),
    ):
        with torch.autocast("cpu", dtype):
            assert stays().dtype == dtype

    def own(logits):
        return (logits - 1).pow(2).mean()

    with torch.autocast("cpu", dtype):
        assert own(low).dtype == dtype
        assert own(low.float()).dtype == torch.float32


@pytest.mark.parametrize("second", [1.001, 1.5])
def test_scores_that_tie(second):
    """There scores may tie that were apart, and a few predictions may change.

    The weights are float32, so nearly every trained network runs in either precision, and nothing tells you in which.
    """
    layer = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0], [second]]))
        exact = layer(torch.ones(1, 1))
        with warnings.catch_warnings(), torch.autocast("cpu", torch.bfloat16):
            warnings.simplefilter("error")
            low = layer(torch.ones(1, 1))
    assert exact[0, 0] < exact[0, 1]
    tied = second == 1.001  # far apart, they stay apart
    assert (low[0, 0] == low[0, 1]) == tied
    assert (exact.argmax(1), low.argmax(1)) == (1, 0 if tied else 1)


def test_what_the_scaler_remembers():
    """The scaler's `step` knows whether `unscale_` has been called.

    `scaler.step` does not tell. But only a skipped step lowers the scale: compare `get_scale()` before and after `update()`.

    Only a skipped step lowers the scale. With one optimizer, step the schedule if it did not fall.

    If the gradient overflows, weights and momentum stay, the scale falls, and the norm is inf or NaN.

    (A disabled scaler leaves no step out.)
    """
    for bad, first, enabled in itertools.product(
        (False, True), (False, True), (False, True)
    ):
        weight = nn.Parameter(torch.ones(2))
        sgd = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, enabled=enabled)
        loss = weight.sum() * (math.inf if bad else 1.0)
        scaler.scale(loss).backward()
        if first:
            scaler.unscale_(sgd)
            norm = nn.utils.clip_grad_norm_([weight], 100.0)
            assert norm.isfinite() == (not bad)
        assert scaler.step(sgd) is None
        before = scaler.get_scale()
        scaler.update()
        skipped = bad and enabled
        assert (scaler.get_scale() < before) == skipped
        assert torch.equal(weight, torch.ones(2)) == skipped
        assert (not sgd.state) == skipped
        if not bad:
            assert torch.equal(weight, torch.full((2,), 0.5))
    # as the list of checks says of PyTorch's own scaler
    sgd.zero_grad()
    scaler.scale(torch.ones(1, requires_grad=True).sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(sgd)


def test_a_good_batch_at_a_tiny_scale():
    """From `2**-128` on, where one over it is infinite in float32, a good batch may make the weights infinite or NaN."""
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        for how in ({}, {"foreach": True}, {"fused": True}):
            for power in (-126, -127, -128, -140, -149, -1000):
                good = power >= (-149 if how.get("fused") else -127)
                weight = nn.Parameter(torch.ones(2))
                one = kind([weight], lr=0.5, **how)
                scaler = torch.amp.GradScaler("cpu", init_scale=2.0**power)
                scaler.scale(weight.sum()).backward()
                scaler.step(one)
                assert weight.isfinite().all() == good


def test_a_nan_in_every_batch():
    """If every batch has a NaN, every step is skipped, and nothing raises: the scale falls, in the end to 0."""
    weight = nn.Parameter(torch.ones(2))
    sgd = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
    scaler, scales = torch.amp.GradScaler("cpu"), []
    for _ in range(200):
        sgd.zero_grad()
        scaler.scale(weight.sum() * math.nan).backward()
        scaler.step(sgd)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == sorted(scales, reverse=True)
    assert scales[0] > 0 == scales[-1]
    assert torch.equal(weight, torch.ones(2))
    assert not sgd.state


@pytest.mark.parametrize("bad", [(), (0,), (1,), (0, 1)])
def test_one_scaler_for_two_optimizers(bad):
    """(With one scaler for two optimizers it falls for both, though the other one may have stepped.)"""
    weights = [nn.Parameter(torch.ones(1)) for _ in range(2)]
    both = [torch.optim.SGD([weight], lr=0.5) for weight in weights]
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for i, weight in enumerate(weights):
        loss = weight.sum() * (math.inf if i in bad else 1.0)
        scaler.scale(loss).backward()
    for one in both:
        scaler.step(one)
    scaler.update()
    assert (scaler.get_scale() < 8.0) == bool(bad)
    for i, weight in enumerate(weights):
        assert weight.item() == (1.0 if i in bad else 0.5)


@pytest.mark.skipif(torch.cuda.is_available(), reason="There is a GPU.")
def test_a_scaler_for_a_gpu_that_is_not_there():
    """and the code runs without scaling."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = torch.amp.GradScaler("cuda")
    assert not scaler.is_enabled()
    weight = nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([weight], lr=0.5)
    scaler.scale(weight.sum()).backward()
    assert weight.grad == 1
    scaler.step(sgd)
    scaler.update()
    assert weight == 0.5


@pytest.mark.parametrize("rows", [2, 512])
def test_bytes_of_a_step(rows):
    """With few rows, or with a large model that recomputes its activations, weights, gradients and Adam's state (16 bytes per parameter) are the larger part."""
    net = nn.Sequential(
        *[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(4)]
    )
    adam = torch.optim.Adam(net.parameters())
    x = torch.randn(rows, 64)
    with saved_tensor_bytes([*net.parameters(), x]) as saved:
        out = net(x)
    out.sum().backward()
    adam.step()
    lasting = sum(
        p.nbytes
        + p.grad.nbytes
        + adam.state[p]["exp_avg"].nbytes
        + adam.state[p]["exp_avg_sq"].nbytes
        for p in net.parameters()
    )
    assert lasting == 16 * sum(p.numel() for p in net.parameters())
    assert (saved.peak_bytes < lasting) == (rows == 2)


def test_high_is_tf32():
    """after `torch.set_float32_matmul_precision("high")`."""
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cuda.matmul.allow_tf32
    try:
        torch.set_float32_matmul_precision("high")
        assert torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.set_float32_matmul_precision("highest")


def test_hints_of_the_exercises():
    """`list(itertools.islice(iterator, k))` takes the next k micro-batches; an empty list is the end.

    `for group in optimizer.param_groups: for p in group["params"]:`, and `p.grad.isfinite().all()`. `p.grad.div_(...)` changes a gradient in place.
    """
    iterator = iter(range(5))
    taken = [list(itertools.islice(iterator, 2)) for _ in range(4)]
    assert taken == [[0, 1], [2, 3], [4], []]
    layer = nn.Linear(2, 1)
    sgd = torch.optim.SGD([{"params": [p]} for p in layer.parameters()], lr=1.0)
    layer(torch.ones(1, 2)).sum().backward()
    for group in sgd.param_groups:
        for p in group["params"]:
            held = p.grad
            assert p.grad.isfinite().all()
            assert p.grad.div_(4) is held
            assert torch.equal(p.grad, torch.full_like(p, 0.25))
            p.grad[..., -1] = math.nan
            assert not p.grad.isfinite().all()


@pytest.mark.gpu
def test_the_float32_list_of_a_gpu():
    """On a GPU softmax, sums, exp and layer norm are on the float32 list

    *Correct.* The lists of operations differ between devices.
    """
    given = {}
    for kind in ("cuda", "cpu"):
        half = torch.ones(2, 4, dtype=torch.bfloat16, device=kind)
        with torch.autocast(kind, torch.bfloat16):
            given[kind] = [
                half.softmax(1).dtype,
                half.sum().dtype,
                half.exp().dtype,
                F.layer_norm(half, (4,)).dtype,
            ]
    assert given["cuda"] == [torch.float32] * 4
    assert given["cpu"] != given["cuda"]


@pytest.mark.gpu
def test_tf32_on_a_gpu():
    """the inputs of float32 matrix products are rounded to 10 bits of fraction, on NVIDIA GPUs since 2020

    Convolutions by cuDNN round to tf32 by default, so float32 is not quite float32 there

    On a GPU `torch.cuda.is_bf16_supported(including_emulation=False)` tells whether bfloat16 is built in.
    """
    ampere = torch.cuda.get_device_capability() >= (8, 0)
    assert torch.cuda.is_bf16_supported(including_emulation=False) == ampere
    if not ampere:
        pytest.skip("the card is older than Ampere")
    same = torch.eye(128, device="cuda")
    kept, lost = 1 + 2**-10, 1 + 2**-12
    before = torch.get_float32_matmul_precision()
    try:
        for precision, wanted in (("highest", lost), ("high", 1.0)):
            torch.set_float32_matmul_precision(precision)
            for number, product in ((kept, kept), (lost, wanted)):
                given = torch.full_like(same, number) @ same
                assert given.unique().tolist() == [product]
    finally:
        torch.set_float32_matmul_precision(before)
    images = torch.randn(8, 64, 32, 32, device="cuda")
    kernels = torch.randn(64, 64, 3, 3, device="cuda")
    exact = F.conv2d(images.double(), kernels.double())
    off = F.conv2d(images, kernels) - exact
    assert off.norm() / exact.norm() > 1e-4
    conv = torch.backends.cudnn.conv
    assert conv.fp32_precision == "tf32"
    conv.fp32_precision = "ieee"
    try:
        off = F.conv2d(images, kernels) - exact
        assert off.norm() / exact.norm() < 1e-5
    finally:
        conv.fp32_precision = "tf32"
