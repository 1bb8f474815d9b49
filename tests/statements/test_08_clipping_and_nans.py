"""What chapter 08 states about clipping, NaN and infinity, run."""

import itertools
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_grader.chapter.source import read_chapter

clip = nn.utils.clip_grad_norm_

BY_CELL = {
    "claim_000_06": [
        "At any other place in the loop the call does something else, without an error:",
        "After `backward()`, before `step()`.",
        "Backward, clip, step.",
    ],
    "claim_000_07": [
        "it is *one* norm of all, the norm before clipping is returned, `inf` is a kind of norm too, and `error_if_nonfinite` is `False` unless you say otherwise.",
    ],
    "entropy_slopes": ["Behind a softmax both give NaN gradients."],
    "claim_004_27": [
        "After a few of them numbers overflow, and the loss is not finite any more.",
        "Clipping bounds what has a finite norm.",
        "Clipped, the same network with the same learning rate learns.",
        "Overflow gives infinity; NaN follows from inf - inf or 0 · inf.",
        "It cannot repair: one NaN makes all gradients NaN.",
    ],
    "claim_004_28": [
        "The root of 0 is 0, and its slope is infinite.",
        "The slope of `x.norm()` at 0 is 0, that of the root of a sum of squares is NaN.",
    ],
    "claim_004_29": ["*Correct*, and test for infinity, and the targets."],
    "claim_004_30": ["`inf == inf` is True."],
    "claim_004_31": [
        "both are False for infinity, which is how many NaNs begin. Ask `isfinite`.",
    ],
    "claim_004_32": [
        "It raises for bfloat16 and, outside of `no_grad`, for a tensor that requires a gradient",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.cpu.html": [
        "and copies the data from the GPU.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution": [
        "On a GPU `.item()` on the norm makes the CPU wait, at each call.",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html": [
        "Under FSDP2 gradients are `DTensor`s; the norm is then taken over all shards, and costs an exchange.",
    ],
}

HALF = [torch.float16, torch.bfloat16]
FULL = [torch.float32, torch.float64]
PS = [0.5, 1.0, 2.0, 3.0, math.inf]


def with_gradients(*gradients, dtype=torch.float32):
    parameters = []
    for values in gradients:
        one = torch.zeros(len(values), dtype=dtype, requires_grad=True)
        one.grad = torch.tensor(values, dtype=dtype)
        parameters.append(one)
    return parameters


def slope(function, at, dtype=torch.float32):
    x = torch.tensor(at, dtype=dtype, requires_grad=True)
    value = function(x)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("bound", [0.5, 100.0])
def test_all_gradients_get_one_factor(bound, p, foreach):
    r"""All gradients are taken together as one long vector $g$. If its norm is larger than `max_norm`, every gradient is multiplied by the same factor (name a tied weight once):

    $$g \leftarrow g \cdot \min\left(1, \frac{\text{max\_norm}}{\lVert g \rVert + 10^{-6}}\right)$$

    PyTorch adds 1e-6 to the norm before it divides by it.

    One norm over all gradients, one factor for all; log the norm that is returned.

    Where it stands above the dotted line, clipping acted

    If it is smaller, they stay as they are, bit for bit.
    """
    # The 1e-6 is tiny beside these norms; the next test has the others.
    pair = with_gradients([3.0, -1.0], [0.5], dtype=torch.float64)
    before = torch.cat([one.grad for one in pair])
    total = clip(pair, bound, p, foreach=foreach)
    norm = torch.linalg.vector_norm(before, p)
    torch.testing.assert_close(total, norm, rtol=1e-14, atol=0)
    factor = min(1.0, bound / (norm.item() + 1e-6))
    after = torch.cat([one.grad for one in pair])
    torch.testing.assert_close(after, before * factor, rtol=1e-13, atol=0)
    assert (total > bound) == (not torch.equal(after, before))
    (tied,) = with_gradients([3.0, 4.0], dtype=torch.float64)
    clip([tied, tied], 1.0, 2.0, foreach=foreach)
    assert tied.grad.norm() < 0.1


@pytest.mark.parametrize("foreach", [None, True, False])
def test_what_is_added_to_the_norm(foreach):
    """(The $10^{-6}$ avoids 0 / 0. It matters only where `max_norm` and the norm are both tiny. Where all is float16, 1 / norm is infinite below a norm of some 1.5e-5: nothing is clipped, and `max_norm=0` makes all NaN.)"""
    for norm, clipped in ((1e-5, False), (1.6e-5, True)):
        (one,) = with_gradients([norm], dtype=torch.float16)
        assert (1 / one.grad).isfinite().item() == clipped
        clip([one], norm / 10, foreach=foreach)
        assert (one.grad.item() < norm / 5) == clipped
        (one,) = with_gradients([norm], dtype=torch.float16)
        clip([one], 0.0, foreach=foreach)
        assert one.grad.isnan().item() == (not clipped)
    for norm, bound, error in (
        (1.0, 0.5, 1e-6),
        (1e6, 1e-9, 1e-12),
        (0.05, 0.01, 2e-5),
        (5e-6, 1e-6, 0.17),
    ):
        (one,) = with_gradients([0.6 * norm, 0.8 * norm], dtype=torch.float64)
        clip([one], bound, foreach=foreach)
        assert 1 - one.grad.norm().item() / bound == pytest.approx(
            error, rel=0.05, abs=1e-13
        )
    for bound, changed in ((1.0, False), (1e-7, True)):  # the norm is 5e-8
        (small,) = with_gradients([3e-8, 4e-8])
        before = small.grad.clone()
        clip([small], bound, foreach=foreach)
        assert torch.equal(small.grad, before) == (not changed)
    (zero,) = with_gradients([0.0, 0.0])
    clip([zero], 0.0, foreach=foreach)
    assert zero.grad.tolist() == [0, 0]


@pytest.mark.parametrize("scale", [0.01, 1.0, 1000.0])
def test_a_step_of_sgd_is_bounded(scale):
    """The direction stays, the length is bounded, and with plain SGD a step is, up to rounding, never longer, in the norm that is clipped, than the largest `lr` times `max_norm`.

    If it acts at every step, you have normalized the gradient.
    """
    line, x = nn.Linear(3, 2).double(), scale * torch.randn(8, 3).double()
    sgd = torch.optim.SGD(line.parameters(), lr=0.1)
    for _ in range(5):
        start = nn.utils.parameters_to_vector(line.parameters()).detach()
        sgd.zero_grad()
        line(x).pow(2).mean().backward()
        gradient = torch.cat([p.grad.flatten() for p in line.parameters()])
        total = clip(line.parameters(), 0.5)
        clipped = torch.cat([p.grad.flatten() for p in line.parameters()])
        sgd.step()
        end = nn.utils.parameters_to_vector(line.parameters()).detach()
        assert (end - start).norm() <= 0.1 * 0.5 * (1 + 1e-9)
        assert torch.cosine_similarity(clipped, gradient, 0) > 1 - 1e-12
        if total > 0.5:
            assert abs(clipped.norm() - 0.5) < 1e-5
    one, other = with_gradients([3.0], [4.0])
    sgd = torch.optim.SGD(
        [{"params": [one], "lr": 0.1}, {"params": [other], "lr": 1.0}]
    )
    start = torch.cat([one, other]).detach()
    clip([one, other], 1.0)
    sgd.step()
    length = (torch.cat([one, other]) - start).norm()
    assert 0.1 < length <= 1.0


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW])
def test_clipping_and_the_first_step_of_adam(optimizer):
    """it divides gradients by their own size, so a first step has nearly the same length with and without clipping, as long as they stay large beside its `eps`.

    What clipping bounds there is the weight of one batch in Adam's averages.

    with plain SGD a step is, up to rounding, never longer, in the norm that is clipped, than the largest `lr` times `max_norm`. Under Adam that is not so
    """
    lengths, averages = [], []
    for bound in (math.inf, 1.0):
        torch.manual_seed(0)
        line, x = nn.Linear(5, 2), 50 * torch.randn(8, 5)
        adam = optimizer(line.parameters(), lr=0.1)
        start = nn.utils.parameters_to_vector(line.parameters()).detach()
        line(x).pow(2).mean().backward()
        assert clip(line.parameters(), bound) > 100
        adam.step()
        end = nn.utils.parameters_to_vector(line.parameters()).detach()
        lengths.append((end - start).norm())
        state = [adam.state[p]["exp_avg"] for p in line.parameters()]
        averages.append(nn.utils.parameters_to_vector(state).norm())
    torch.testing.assert_close(lengths[0], lengths[1], rtol=1e-3, atol=0)
    assert lengths[1] > 3 * 0.1  # lr times max_norm is 0.1
    assert averages[0] > 10
    assert averages[1] <= 0.1 * (1 + 1e-4)  # (1 - beta1) times max_norm

    def first_step(bound, size):
        weight = nn.Parameter(torch.zeros(2))
        adam = optimizer([weight], lr=0.1)
        weight.grad = torch.tensor([1000.0, size])
        clip([weight], bound)
        adam.step()
        return weight.detach().norm()

    assert abs(first_step(1.0, 1e-2) / first_step(math.inf, 1e-2) - 1) < 1e-3
    # clipped, the small one is 1e-9, and `eps` is 1e-8
    assert first_step(1.0, 1e-6) < 0.8 * first_step(math.inf, 1e-6)


def test_by_norm_keeps_the_direction_and_others_may_not():
    """Clipping by norm shortens the arrow. Clipping by value (`clip_grad_value_`) cuts each entry that is too large, and so does clipping each tensor by itself here. Where they cut, both *turn* the arrow, unless its two entries are equal in size or one is 0.

    Clipping by value, or tensor by tensor, can turn the step.
    """

    def each_by_itself(pair, bound):
        for one in pair:
            clip(one, bound)

    def result(cut, entries, bound):
        """Whether the arrow turned, and whether it became shorter."""
        pair = with_gradients(*[[one] for one in entries])
        cut(pair, bound)
        after = torch.cat([one.grad for one in pair])
        full = torch.tensor(entries)
        turned = 1 - torch.cosine_similarity(after, full, 0) > 1e-3
        return turned.item(), (after.norm() < full.norm() - 1e-3).item()

    by_value = nn.utils.clip_grad_value_
    for entries in ([4.0, 3.0], [3.0, 3.0], [4.33, 2.5], [5.0, 0.0]):
        for bound in (2.0, 3.5):
            joint = result(clip, entries, bound)
            assert joint == (False, True)
    for cut in (by_value, each_by_itself):
        assert result(cut, [4.0, 3.0], 2.0) == (True, True)
        assert result(cut, [4.0, 3.0], 3.5) == (True, True)
        # no entry is above the bound, the norm of 5 is
        assert result(cut, [4.33, 2.5], 4.5) == (False, False)
        assert result(clip, [4.33, 2.5], 4.5) == (False, True)
        for entries in ([3.0, 3.0], [3.0, -3.0], [5.0, 0.0]):
            assert result(cut, entries, 2.0) == (False, True)
    two = with_gradients([4.0], [3.0])
    by_value(two, 2.0)
    assert [one.grad.item() for one in two] == [2.0, 2.0]


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("p", PS)
def test_what_clipping_makes_of_nan_and_infinity(p, foreach, dtype):
    """With a `norm_type` above 0, a NaN in one entry makes the norm NaN, and then the factor, and then *every* gradient. An infinite entry makes the factor 0, where `max_norm` is finite: the infinity becomes 0 · inf = NaN, and all else becomes 0.

    after a NaN norm each gradient is NaN, after an infinite one (and with a finite `max_norm`) the infinite entries are NaN and all others 0.

    It repairs nothing that is already NaN.

    But it has already multiplied the gradients: what is left of them is for throwing away.

    Clipping bounds what has a finite norm. By norm, a NaN becomes all NaN, an infinity becomes NaN and zeros; in float16, and in float32 beyond 1.8e19, the norm itself may overflow.
    """
    for bad in (math.nan, math.inf, -math.inf):
        pair = with_gradients([bad, 1.0], [1.0, 0.0], dtype=dtype)
        total = clip(pair, 1.0, p, foreach=foreach)
        after = pair[0].grad.tolist() + pair[1].grad.tolist()
        assert math.isnan(total) if math.isnan(bad) else total == math.inf
        assert math.isnan(after[0])
        if math.isnan(bad):
            assert all(map(math.isnan, after))
        else:
            assert after[1:] == [0, 0, 0]
            unbound = with_gradients([bad, 1.0], dtype=dtype)
            clip(unbound, math.inf, p, foreach=foreach)
            assert unbound[0].grad.isnan().all()
        fresh = with_gradients([bad, 1.0], [1.0, 0.0], dtype=dtype)
        with pytest.raises(RuntimeError, match="non-finite"):
            clip(fresh, 1.0, p, error_if_nonfinite=True, foreach=foreach)


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
@pytest.mark.parametrize("foreach", [None, True, False])
def test_what_clipping_by_value_makes_of_them(foreach, dtype):
    """(By value, the NaN stays alone, and the infinity becomes the bound: finite, and without meaning.)"""
    (one,) = with_gradients([math.nan, math.inf, -math.inf, 0.5], dtype=dtype)
    nn.utils.clip_grad_value_([one], 2.0, foreach=foreach)
    assert one.grad[0].isnan()
    assert one.grad[1:].tolist() == [2.0, -2.0, 0.5]


def test_the_norm_overflows_in_float16():
    """PyTorch takes the norm in their dtype, and beyond 65504 that is infinite in float16. The gradient is 0, and nobody hears of it.

    So clip *and look*: the returned norm is the one number that tells. `error_if_nonfinite=True` makes it an error. Leave it off beside an enabled `GradScaler`, which skips steps with a bad entry.
    """
    assert torch.finfo(torch.float16).max == 65504
    (single,) = with_gradients([2e19, 1.0])
    assert clip([single], 1.0) == math.inf
    assert single.grad.tolist() == [0, 0]
    (smaller,) = with_gradients([1.8e19, 1.0])
    assert clip([smaller], 1.0) < math.inf
    for gradients in ([[6e4, 6e4, 1, 1]], [[6e4, 1], [6e4, 1]]):
        half = with_gradients(*gradients, dtype=torch.float16)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            total = clip(half, 1.0)
        assert total.dtype == torch.float16
        assert total == math.inf
        assert all(not one.grad.any() for one in half)
        full = with_gradients(*gradients)
        assert clip(full, 1.0) < 1e5
        half = with_gradients(*gradients, dtype=torch.float16)
        with pytest.raises(RuntimeError, match="non-finite"):
            clip(half, 1.0, error_if_nonfinite=True)
    # a factor of 1e-7 rounded to float16 is a fifth too large; 2.9e-8 is 0
    factor = torch.tensor([1e-7, 2.9e-8], dtype=torch.float16).tolist()
    assert factor == [pytest.approx(1.2e-7, rel=0.01), 0]


@pytest.mark.parametrize("dtype", HALF)
def test_autocast_keeps_gradients_of_float32_weights(dtype):
    """(Autocast keeps gradients of float32 weights in float32; chapter 10 has the rest.)"""
    net = nn.Sequential(nn.Conv1d(2, 3, 1), nn.Flatten(), nn.Linear(12, 2))
    with torch.autocast("cpu", dtype):
        out = net(torch.randn(5, 2, 4))
        assert out.dtype == dtype
        loss = F.cross_entropy(out, torch.zeros(5, dtype=torch.long))
    loss.backward()
    assert all(p.grad.dtype == torch.float32 for p in net.parameters())


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
def test_overflow_is_infinity_and_then_nan(dtype):
    r"""Overflow itself does not give NaN but infinity (float8 differs by kind: infinity, NaN or, in 2.13, its largest number), and the NaN comes one step of arithmetic later: $\infty - \infty$, $0 \cdot \infty$, $\infty / \infty$. (In a matrix product, a complex product or a layer norm both may happen inside one operation.)"""
    over = torch.tensor(1e9)
    assert over.to(torch.float8_e4m3fnuz).isnan()
    assert over.to(torch.float8_e5m2) == math.inf
    if torch.__version__ >= "2.13":
        assert over.to(torch.float8_e4m3fn).float() == 448
    large = torch.tensor(torch.finfo(dtype).max, dtype=dtype)
    for over in (large * 2, large + large, large.pow(3), large.exp()):
        assert over == math.inf
        for one in (over - over, 0 * over, over / over):
            assert one.isnan()
    if dtype != torch.float16:  # whose sums are taken in float32
        rows = torch.stack([large, large])[None]
        signs = torch.tensor([10.0, -10.0], dtype=dtype)
        # "may": some kernels add a product of float32 or float64 without rounding it,
        # and stay at infinity
        if dtype == torch.bfloat16:
            assert (rows @ signs[:, None]).isnan()
        assert (rows * signs)[0].tolist() == [math.inf, -math.inf]
        assert F.layer_norm(rows * signs.sign(), (2,)).isnan().all()
    z = torch.tensor(1e30 + 1e30j)
    assert (z * z).isnan()


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
@pytest.mark.parametrize("correction", [0, 1])
def test_slopes_of_norm_and_std(correction, dtype):
    """At 0 PyTorch takes 0 as the slope of `norm` and of `std`; the same formulas by hand give NaN, and so does `norm` differentiated twice.

    `torch.linalg.vector_norm` takes 0 as its gradient at 0.
    """
    zero, same = [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]
    for function, at in (
        (torch.Tensor.norm, zero),
        (torch.linalg.vector_norm, zero),
        (lambda x: torch.linalg.vector_norm(x, 3.0), zero),
        (lambda x: torch.linalg.vector_norm(x, math.inf), zero),
        (lambda x: x.std(correction=correction), same),
    ):
        value, found = slope(function, at, dtype)
        assert value == 0
        assert found.tolist() == zero
    x = torch.tensor(zero, dtype=dtype, requires_grad=True)
    (first,) = torch.autograd.grad(x.norm(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert second.isnan().all()
    for by_hand, at in (
        (lambda x: x.pow(2).sum().sqrt(), zero),
        (lambda x: (x - x.mean()).pow(2).mean().sqrt(), same),
    ):
        value, found = slope(by_hand, at, dtype)
        assert value == 0
        assert found.isnan().all()


@pytest.mark.parametrize("function", [torch.sqrt, torch.log, torch.reciprocal])
@pytest.mark.parametrize("dtype", [*HALF, *FULL])
def test_where_computes_both_branches(dtype, function):
    """But both branches are computed, and the backward pass sends a 0 into the branch that was not chosen: 0 times an infinite slope is NaN. Make the *input* safe first, then choose.

    `torch.where(x > 0, x.sqrt(), 0)` looks safe, and its value is.

    `torch.where(ok, f(x), 0)` computes `f` everywhere, and backward multiplies the 0 of the unused entries by the infinite slope of `f`.

    `torch.where` helps only if the input was made safe first.

    Make the input safe *before* the root, the log, the division; a single `torch.where` saves the value and not the gradient.
    """
    at = [0.0, 1.0]
    value, found = slope(
        lambda x: torch.where(x > 0, function(x), 0), at, dtype
    )
    assert value[0] == 0
    assert found[0].isnan()
    value, found = slope(
        lambda x: torch.where(x > 0, function(torch.where(x > 0, x, 1)), 0),
        at,
        dtype,
    )
    assert value[0] == 0
    assert found[0] == 0
    assert found.isfinite().all()


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
def test_an_epsilon_belongs_inside(dtype):
    """inside the root it helps (and changes the value; in float16 1e-8 is 0 and helps nothing), after the root it does nothing."""
    inside, found = slope(lambda x: (x + 1e-8).sqrt(), [0.0], dtype)
    vanishes = torch.tensor(1e-8, dtype=dtype) == 0
    assert vanishes == (dtype == torch.float16)
    assert (inside > 0) == (not vanishes)
    assert found.isfinite() == (not vanishes)
    _, found = slope(lambda x: x.sqrt() + 1e-8, [0.0], dtype)
    assert found == math.inf


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
def test_exponentials(dtype):
    """A logit of 10000 overflows in `exp`. `F.log_softmax` subtracts the largest logit first, and `F.cross_entropy` uses it.

    `F.log_softmax` never takes the log of 0. Its value can be `-inf`, and 0 times that is NaN.
    """
    logits = torch.tensor([[1e4, 0.0]], dtype=dtype, requires_grad=True)
    assert logits.exp()[0, 0] == math.inf
    assert F.log_softmax(logits, 1).isfinite().all()
    shifted = F.log_softmax(logits - 9992, 1)
    torch.testing.assert_close(F.log_softmax(logits, 1), shifted)
    for target in (torch.tensor([1]), torch.tensor([[0, 1]], dtype=dtype)):
        loss = F.cross_entropy(logits, target)
        assert loss.isfinite()
        (gradient,) = torch.autograd.grad(loss, logits)
        assert gradient.isfinite().all()
    nodes, names = [F.cross_entropy(logits, torch.tensor([1])).grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is not None:
            names.add(type(node).__name__)
            nodes += [one for one, _ in node.next_functions]
    assert "LogSoftmaxBackward0" in names
    ruled_out = F.log_softmax(torch.tensor([0.0, -math.inf], dtype=dtype), 0)
    assert ruled_out[1] == -math.inf
    assert (0 * ruled_out[1]).isnan()


@pytest.mark.parametrize("dtype", FULL)
def test_xlogy_and_entr_at_zero(dtype):
    """`torch.xlogy(x, x)` gives 0 at 0, as it should, with the slope NaN. `torch.special.entr` has an infinite slope there."""
    value, found = slope(lambda x: torch.xlogy(x, x), 0.0, dtype)
    assert value == 0
    assert found.isnan()
    value, found = slope(torch.special.entr, 0.0, dtype)
    assert value == 0
    assert found == math.inf


class Container(nn.Module):
    def __init__(self, own_fault):
        super().__init__()
        self.line, self.after, self.own_fault = (
            nn.Linear(2, 2),
            nn.ReLU(),
            own_fault,
        )

    def forward(self, x):
        x = self.after(self.line(x))
        return x / 0 - x / 0 if self.own_fault else x


@pytest.mark.parametrize("own_fault", [True, False])
def test_a_forward_hook_finds_the_place(own_fault):
    """The module to blame is the one whose *inputs are finite and whose output is not*. A forward hook on every module that is called sees both (inputs given by keyword only with `with_kwargs=True`; the output of an `nn.RNN` is a tuple), and the first name it writes down is the place. (A mask of −∞ is no fault: leave it out of the inputs. Leave out a module, too, that is there to make one. Hunt in an uncompiled model: a compiled one may not hear a hook that comes later.)

    `module.register_forward_hook(hook)` calls `hook(module, inputs, output)` when the module has finished.

    A leaf finishes before the container it stands in.
    """
    net = nn.Sequential(nn.Linear(2, 2), Container(own_fault), nn.Linear(2, 1))
    if not own_fault:
        net[1].line.bias.data[0] = math.inf
    blamed, finished = [], []

    def watch(name):
        def hook(module, inputs, output):
            assert isinstance(inputs, tuple)
            finished.append(name)
            if inputs[0].isfinite().all() and not output.isfinite().all():
                blamed.append(name)

        return hook

    for name, module in net.named_modules():
        module.register_forward_hook(watch(name))
    net(torch.randn(3, 2))
    assert blamed[0] == ("1" if own_fault else "1.line")
    assert finished == ["0", "1.line", "1.after", "1", "2", ""]


def test_inputs_given_by_keyword():
    """(inputs given by keyword only with `with_kwargs=True`; the output of an `nn.RNN` is a tuple)"""
    seen = []
    line = nn.Linear(2, 1)
    line.register_forward_hook(lambda *told: seen.append(told[1:-1]))
    line.register_forward_hook(
        lambda *told: seen.append(told[1:-1]), with_kwargs=True
    )
    x = torch.ones(1, 2)
    line(x)
    line(input=x)
    assert seen == [((x,),), ((x,), {}), ((),), ((), {"input": x})]
    outputs = []
    for layer in (nn.RNN(2, 2), nn.LSTM(2, 2), line):
        layer.register_forward_hook(lambda *told: outputs.append(told[-1]))
        layer(x)
    assert [type(one) for one in outputs] == [tuple, tuple, torch.Tensor]


@pytest.mark.parametrize("in_place", [True, False])
def test_a_module_that_writes_into_its_input(in_place):
    """(A module that writes into its input is not blamed: the hook sees the input as it is afterwards. A forward *pre*-hook sees it before.)"""

    class Divided(nn.Module):
        def forward(self, x):
            return x.div_(0 * x) if in_place else x / (0 * x)

    net = nn.Sequential(nn.Linear(2, 2), Divided())
    before, blamed, blamed_by_both = [], [], []

    def look_before(module, inputs):
        before.append(inputs[0].isfinite().all())

    def look(module, inputs, output):
        if output.isfinite().all():
            return
        if inputs[0].isfinite().all():
            blamed.append(module)
        if before[-1]:
            blamed_by_both.append(module)

    for module in net:
        module.register_forward_pre_hook(look_before)
        module.register_forward_hook(look)
    net(torch.ones(3, 2))
    assert blamed == ([] if in_place else [net[1]])
    assert blamed_by_both == [net[1]]


def complaint_of(function):
    """The error of anomaly mode, and what it warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with (
            pytest.raises(RuntimeError) as raised,
            torch.autograd.set_detect_anomaly(True),
        ):
            function().backward()
    return str(raised.value), [str(one.message) for one in told]


def test_anomaly_mode():
    r"""`torch.autograd.detect_anomaly()` checks what each operation returns on the way back.

    (A NaN that is made where two gradients of one tensor are added, $\infty - \infty$, it does not see, or puts down to the operation before that tensor.) With a `GradScaler` it may also stop at an overflow that would only be skipped: switch the scaler off for the hunt. Of compiled code it names the whole.

    it complains of a NaN that a mask throws away later.

    At the first NaN it raises an error that names the operation, and, if the forward pass was in the block as well, prints where in *your* code that operation stood.

    Anomaly mode raises a `RuntimeError` that begins with `Function 'SqrtBackward0' returned nan values`.

    It names `pow`, not `sqrt`: the root's slope is infinite, and that is no NaN yet.

    Anomaly mode does not look for infinity

    It also raises for a NaN that never reaches the gradient of a parameter: that is no fault.
    """
    x = torch.zeros(3, requires_grad=True)
    error, told = complaint_of(lambda: x.pow(2).sum().sqrt())
    assert "'PowBackward0'" in error
    assert any("x.pow(2).sum().sqrt()" in one for one in told)
    error, _ = complaint_of(lambda: (0 * x.sqrt()).sum())
    assert error.startswith("Function 'SqrtBackward0' returned nan values")
    with torch.autograd.set_detect_anomaly(True):
        x.sqrt().sum().backward()
    assert (x.grad == math.inf).all()
    twice = torch.zeros(3, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (twice.sqrt() - (2 * twice).sqrt()).sum().backward()
    assert twice.grad.isnan().all()  # and nothing was raised
    between = 2 * torch.zeros(3, requires_grad=True)
    error, _ = complaint_of(lambda: (between.sqrt() - between.sqrt()).sum())
    assert error.startswith("Function 'MulBackward0' returned nan values")

    def masked():
        inner = 0 * x.sqrt()  # NaN inside, thrown away before it reaches y
        y.data = torch.ones(3)
        return torch.where(torch.zeros(3, dtype=torch.bool), inner, y).sum()

    y = torch.ones(3, requires_grad=True)
    x = (0 * y).detach().requires_grad_()
    complaint_of(masked)


def test_anomaly_mode_and_a_scaler():
    """With a `GradScaler` it may also stop at an overflow that would only be skipped: switch the scaler off for the hunt. Of compiled code it names the whole."""
    for scale in (2.0**30, 1.0):
        weight = torch.ones(4, 4, requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):
            with torch.autocast("cpu", torch.float16):
                hidden = torch.ones(4, 4) @ weight
                loss = (hidden @ weight - hidden @ weight).float().sum()
            if scale == 1:
                (scale * loss).backward()
            else:
                with pytest.raises(RuntimeError, match="returned nan values"):
                    (scale * loss).backward()


@pytest.mark.slow
def test_anomaly_mode_and_compiled_code():
    """Of compiled code it names the whole."""
    torch._dynamo.reset()

    def length(x):
        return x.pow(2).sum().sqrt()

    compiled = torch.compile(length, backend="aot_eager")
    for function, name in ((length, "Pow"), (compiled, "CompiledFunction")):
        x = torch.zeros(3, requires_grad=True)
        with (
            warnings.catch_warnings(action="ignore"),
            torch.autograd.set_detect_anomaly(True),
            pytest.raises(RuntimeError, match=f"'{name}Backward"),
        ):
            function(x).backward()
    torch._dynamo.reset()


def test_a_mask_is_no_fault():
    """(A mask of −∞ is no fault: leave it out of the inputs. Leave out a module, too, that is there to make one. Hunt in an uncompiled model: a compiled one may not hear a hook that comes later.)"""
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    layer.self_attn.in_proj_weight.data.mul_(1e25)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    finite = {}

    def hook(module, inputs, options, output):
        given = [*inputs, *options.values()]
        for name, left_out in (("all", None), ("but the mask", mask)):
            finite[name] = all(
                one.isfinite().all()
                for one in given
                if isinstance(one, torch.Tensor) and one is not left_out
            )
        finite["output"] = bool(output[0].isfinite().all())

    layer.self_attn.register_forward_hook(hook, with_kwargs=True)
    layer(torch.randn(1, 3, 4), src_mask=mask)
    assert finite == {"all": False, "but the mask": True, "output": False}

    class Masked(nn.Module):
        def forward(self, scores):
            return scores.masked_fill(mask.isinf(), -math.inf)

    class Log(nn.Module):
        def forward(self, shares):
            return shares.log()

    layers = {"mask": Masked(), "share": nn.Softmax(-1), "log": Log()}
    blamed = []
    for name, one in layers.items():
        one.register_forward_hook(
            lambda module, inputs, output, name=name: (
                blamed.append(name)
                if inputs[0].isfinite().all() and not output.isfinite().all()
                else None
            )
        )
    nn.Sequential(*layers.values())(torch.randn(3, 3))
    assert blamed == ["mask", "log"]


def test_set_detect_anomaly_does_not_warn():
    """`torch.autograd.set_detect_anomaly(True)` is a context manager as well, and warns only where it raises."""
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autograd.set_detect_anomaly(True):
            assert torch.is_anomaly_enabled()
            x.sum().backward()
    assert not torch.is_anomaly_enabled()
    zeros = torch.zeros(2, requires_grad=True)
    outside = zeros.pow(2).sum().sqrt()
    with (
        pytest.warns(UserWarning, match="No forward pass information"),
        pytest.raises(RuntimeError, match="PowBackward0"),
        torch.autograd.set_detect_anomaly(True),
    ):
        outside.backward()
    with (
        pytest.warns(UserWarning, match="Anomaly"),
        torch.autograd.detect_anomaly(),
    ):
        pass


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [(nn.BatchNorm1d, (4, 3)), (nn.BatchNorm2d, (4, 3, 2, 2))],
)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_batch_norm_keeps_a_nan(bad, layer, shape, momentum):
    """One NaN in one image, one forward pass in training, and batch norm's running statistics are NaN for good.

    The weights are fine, and every later prediction in `eval()` is NaN. A skipped step is not enough.

    Batch norm keeps what went through it.
    """
    net = nn.Sequential(
        layer(3, momentum=momentum), nn.Flatten(), nn.LazyLinear(2)
    )
    x = torch.randn(shape)
    x[0, 1] = bad
    net(x)
    for _ in range(20):
        net(torch.randn(shape))
    assert net[0].running_mean[1].isnan() or bad == math.inf
    assert net[0].running_var[1].isnan()
    assert net.eval()(torch.randn(shape)).isnan().all()
    assert all(p.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [50, 200])
def test_the_gain_of_a_deep_tanh(width, seed):
    """With a gain of 0.5 activations and gradients fade from layer to layer. At 1 they fade slowly. At 3 many units stand at ±1, and gradients grow towards the input, as in section 1."""
    found = {}
    for gain in (0.5, 1.0, 3.0):
        torch.manual_seed(seed)
        x = torch.randn(100, width, requires_grad=True)
        flow, outs = x, []
        for _ in range(8):
            weight = torch.randn(width, width) * gain / width**0.5
            flow = (flow @ weight).tanh()
            flow.retain_grad()
            outs.append(flow)
        (flow * torch.randn_like(flow)).sum().backward()
        forward = (outs[-1].norm() / outs[0].norm()).item() ** (1 / 7)
        backward = (outs[0].grad.norm() / outs[-1].grad.norm()).item() ** (
            1 / 7
        )
        saturated = (outs[-1].abs() > 0.97).float().mean().item()
        found[gain] = forward, backward, saturated
    assert max(found[0.5][:2]) < 0.6  # a layer halves them
    assert min(found[1.0][:2]) > 0.8
    assert max(found[1.0][:2]) < 0.95
    assert found[3.0][1] > 1.2
    assert found[3.0][2] > 0.25


def test_foreach_is_the_default():
    """`foreach=True` works on all tensors in a few calls and is the default where it can; `foreach=False` is a loop."""
    calls = {}
    for foreach in (None, True, False):
        many = with_gradients(*[[3.0, 4.0]] * 20)
        with torch.profiler.profile(acc_events=True) as seen:
            clip(many, 1.0, foreach=foreach)
        names = [one.name for one in seen.events()]
        calls[foreach] = (
            names.count("aten::_foreach_mul_"),
            names.count("aten::_foreach_norm"),
            names.count("aten::linalg_vector_norm"),
        )
    assert calls[None][:2] == calls[True][:2] == (1, 1)
    assert calls[False][:2] == (0, 0)
    assert calls[False][2] >= 20


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("dtype", FULL)
def test_the_norm_of_norms(dtype, p):
    """The norm of the norms is the norm of all: `torch.stack` the norm of each gradient, and take the norm of that. It holds for every $p$. `torch.linalg.vector_norm(g, p)` takes the norm of a tensor of any shape, but for $p = \\infty$ it refuses an empty one."""
    parts = [torch.randn(shape, dtype=dtype) for shape in [(3,), (2, 4), ()]]
    norms = [torch.linalg.vector_norm(one, p) for one in parts]
    joint = torch.linalg.vector_norm(torch.stack(norms), p)
    whole = torch.linalg.vector_norm(
        torch.cat([one.flatten() for one in parts]), p
    )
    torch.testing.assert_close(joint, whole)
    empty = torch.zeros(0, 3, dtype=dtype)
    if p == math.inf:
        with pytest.raises(RuntimeError, match="empty"):
            torch.linalg.vector_norm(empty, p)
    else:
        assert torch.linalg.vector_norm(empty, p) == 0


def test_clamp_and_comparison_of_nan():
    """`clamp(max=1.0)` keeps a NaN, as the text asks. `if norm > max_norm` does not multiply at all then: it is False for NaN."""
    for dtype in [*HALF, *FULL]:
        nan = torch.tensor(math.nan, dtype=dtype)
        assert nan.clamp(max=1.0).isnan()
        assert not nan > 1.0


def test_pytorch_own_parts():
    """`nn.utils.get_total_norm` takes gradients, not parameters; `nn.utils.clip_grads_with_norm_` takes the norm you give it."""
    pair = with_gradients([3.0], [4.0])
    assert nn.utils.get_total_norm([one.grad for one in pair]) == 5
    assert nn.utils.get_total_norm(pair) == 0  # of the parameters' own values
    nn.utils.clip_grads_with_norm_(pair, 1.0, torch.tensor(10.0))
    torch.testing.assert_close(pair[0].grad, torch.tensor([0.3]))


def test_numbers_that_are_not_finite():
    """NaN equals nothing.

    `is` asks whether two names mean one object, which says nothing about either.

    `isfinite`, not `isnan`: infinity often comes first.

    `torch.isfinite` takes every dtype of the list, integers and complex included.

    `math.isfinite(10**400)` wants a float and cannot make one.

    Finite values up to the largest of their dtype are finite, also if their sum is not.

    A generator is empty after the first loop over it.
    """
    for nan in (math.nan, np.float32("nan"), torch.tensor(math.nan)):
        assert nan != nan
        assert nan != 1.0
    assert math.nan is math.nan
    assert float("nan") is not float("nan")
    inf = torch.tensor(math.inf)
    assert not inf.isnan()
    assert not inf.isfinite()
    floats = [*HALF, *FULL, torch.complex64, torch.complex128]
    integers = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
    for dtype in floats:
        bad = torch.tensor([1.0, math.inf], dtype=dtype)
        assert torch.isfinite(bad).tolist() == [True, False]
    for dtype in [
        *integers,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.bool,
    ]:
        assert torch.isfinite(torch.ones(2, dtype=dtype)).all()
    assert not torch.isfinite(torch.tensor(complex(0, math.nan)))
    for dtype in [*HALF, *FULL]:
        large = torch.full((3,), torch.finfo(dtype).max, dtype=dtype)
        assert torch.isfinite(large).all()
        assert not large.sum().isfinite()
    with pytest.raises(OverflowError):
        math.isfinite(10**400)
    once = (n for n in range(3))
    assert [*once, *once] == [0, 1, 2]


def test_isfinite_takes_what_numpy_refuses():
    """`torch.isfinite(x).all()` does neither.

    The second takes every loss, and misses infinity.
    """
    for dtype in (*HALF, *FULL):
        loss = torch.tensor(math.inf, dtype=dtype, requires_grad=True)
        assert not np.isnan(loss.item())
        assert np.isnan((loss - loss).item())
        assert not torch.isfinite(loss).all()
    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    assert torch.isfinite(x).all()
    meta = torch.ones(2, device="meta")
    assert torch.isfinite(meta).device == meta.device


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.SGD, {"weight_decay": 0.1}),
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {}),
        (torch.optim.RMSprop, {"momentum": 0.9}),
    ],
)
def test_a_step_with_zeros_is_a_step(optimizer, options):
    """A step with zeros as gradients is a step all the same: momentum and weight decay move the weights."""
    weight = nn.Parameter(torch.ones(2))
    one = optimizer([weight], lr=0.1, **options)
    weight.grad = torch.ones(2)
    one.step()
    before = weight.detach().clone()
    weight.grad = torch.zeros(2)
    one.step()
    assert not torch.equal(weight, before)


def test_one_number_tells_all():
    """`clip_grad_norm_` returns the norm, and that is NaN or infinite if a single gradient is.

    With a gradient scaler, `scaler.unscale_(optimizer)` comes before clipping (chapter 10).
    """
    for bad in (math.nan, math.inf):
        many = with_gradients(*[[1.0]] * 9, [bad])
        assert not clip(many, 1.0).isfinite()
    weight = nn.Parameter(torch.zeros(1))
    sgd = torch.optim.SGD([weight], lr=1.0)
    for unscaled, wanted in ((True, 1.0), (False, 1.0 / 1024)):
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        weight.data.zero_()
        sgd.zero_grad()
        scaler.scale(3 * weight.sum()).backward()
        if unscaled:
            scaler.unscale_(sgd)
        clip([weight], 1.0)
        scaler.step(sgd)
        assert abs(-weight.item() - wanted) < 1e-5


def test_a_forward_pass_in_training_writes_running_statistics():
    """A forward pass in training writes running statistics."""
    norm = nn.BatchNorm1d(2)
    with torch.no_grad():
        norm(torch.randn(4, 2))
    assert norm.num_batches_tracked == 1
    assert norm.running_mean.any()
    kept = norm.running_mean.clone()
    norm.eval()(torch.randn(4, 2))
    assert torch.equal(norm.running_mean, kept)


def test_patterns_in_the_error():
    """`re.search(r"'([^']+)'", str(error))` finds the name."""
    x = torch.zeros(2, 2, requires_grad=True)
    error, _ = complaint_of(lambda: (0 * x.sqrt()).sum())
    assert re.search(r"'([^']+)'", error)[1] == "SqrtBackward0"

    def root_of_a_slice():
        own = 1 * x
        own[:, :1].sqrt_()
        return (0 * own).sum()

    error, _ = complaint_of(root_of_a_slice)
    name = re.search(r"'([^']+)'", error)[1]
    assert name == "torch::autograd::CopySlices"
    assert error == f"Function '{name}' returned nan values in its 0th output."


@pytest.mark.parametrize("gain", [0.5, 1.0, 3.0])
def test_eight_steps_through_the_same_weights(gain):
    """If these weights make a vector longer, it grows at each of the eight, and so does the gradient on its way back."""
    rnn = nn.RNN(8, 64, nonlinearity="relu", batch_first=True)
    nn.init.orthogonal_(rnn.weight_hh_l0, gain)
    for name in ("weight_ih_l0", "bias_ih_l0", "bias_hh_l0"):
        nn.init.zeros_(getattr(rnn, name))
    weight = rnn.weight_hh_l0.detach()
    state = torch.rand(64)
    flows = [state.requires_grad_()]
    for _ in range(8):
        flows.append(weight @ flows[-1])  # the part of a ReLU that is on
        flows[-1].retain_grad()
    flows[-1].sum().backward()
    for one, other in itertools.pairwise(flows):
        assert (other.norm() / one.norm()).item() == pytest.approx(gain)
        ratio = one.grad.norm() / other.grad.norm()
        assert ratio.item() == pytest.approx(gain)
    first = torch.rand(1, 1, 64, requires_grad=True)
    out, _ = rnn(torch.zeros(1, 8, 8), first)
    out[0, -1].sum().backward()
    grows = first.grad.norm() > out.detach()[0, -1].numel() ** 0.5
    assert grows.item() == (gain > 2)  # a ReLU lets half of it through


@pytest.mark.parametrize("power", [2, 4])
@pytest.mark.parametrize("bound", [math.inf, 1.0])
def test_a_step_that_is_too_large(bound, power):
    """One step with a large gradient throws the weights far away, where the next gradient is larger still.

    Clipping keeps a step that is too large from doing harm.
    """
    weight = nn.Parameter(torch.tensor([2.0]))
    sgd = torch.optim.SGD([weight], lr=5.0 if bound == math.inf else 0.5)
    norms, losses = [], []
    for _ in range(90):
        sgd.zero_grad()
        loss = weight.pow(power).sum()
        loss.backward()
        norms.append(clip([weight], bound).item())
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            break
        sgd.step()
    if bound == math.inf:
        assert not math.isfinite(losses[-1])
        finite = [one for one in norms if math.isfinite(one)]
        assert finite == sorted(finite)
        assert len(finite) > 2
    else:
        assert norms[0] > 1
        assert losses[-1] < 0.5 < losses[0]


@pytest.mark.parametrize("dtype", FULL)
def test_the_treacherous_ones(dtype):
    """In a forward pass one sees it in the loss. Harder to see are those of the *backward* pass: the value is fine, and the slope of one operation is infinite."""
    at = [0.0, 1.0]
    value, found = slope(lambda x: x.log(), at, dtype)
    assert not value.sum().isfinite()
    for function in (
        torch.sqrt,
        lambda x: x.pow(0.5),
        lambda x: x.pow(1 / 3),
        torch.special.entr,
        lambda x: (1 - x).acos(),
    ):
        value, found = slope(function, at, dtype)
        assert value.isfinite().all()
        assert found[0].abs() == math.inf


@pytest.mark.parametrize("dtype", [*HALF, *FULL])
def test_functions_for_the_whole_expression(dtype):
    """take PyTorch's own function for the whole expression (`logsumexp`, `log_softmax`, `softplus`, `vector_norm`) instead of the formula from the paper, and look at its slope in the corner, not at its value alone."""
    far = [1e4, -1e4]
    for whole, formula, at in (
        (lambda x: x.logsumexp(0), lambda x: x.exp().sum().log(), far),
        (
            lambda x: F.log_softmax(x, 0),
            lambda x: (x.exp() / x.exp().sum()).log(),
            far,
        ),
        (F.softplus, lambda x: (1 + x.exp()).log(), far),
        (
            torch.linalg.vector_norm,
            lambda x: x.pow(2).sum().sqrt(),
            [0.0, 0.0],
        ),
    ):
        value, found = slope(whole, at, dtype)
        assert value.isfinite().all()
        assert found.isfinite().all()
        value, found = slope(formula, at, dtype)
        assert not (value.isfinite().all() and found.isfinite().all())
    # a value that is right, with a slope that is not
    value, found = slope(lambda x: torch.xlogy(x, x), [0.0], dtype)
    assert value == 0
    assert found.isnan()


def test_a_nan_spreads():
    """A NaN spreads to nearly everything that is computed from it. (A comparison or an `argmax` hides it.)"""
    x = torch.randn(2, 1, 6)
    x[0, 0, 2] = math.nan
    layers = nn.Linear(6, 4), nn.Conv1d(1, 3, 6), nn.LayerNorm(6)
    pools = nn.MaxPool1d(6), nn.AvgPool1d(6), nn.Softmax(-1)
    for layer in (*layers, *pools):
        out = layer(x)
        assert out[0].isnan().all()
        assert out[1].isfinite().all()
    for each in (nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.GELU(), nn.Dropout()):
        assert each(x)[0, 0, 2].isnan()
    assert nn.BatchNorm1d(1)(x).isnan().all()
    assert x.max().isnan()
    for hides in ((x > 0), x.argmax(-1), x.sort().indices):
        assert not hides.is_floating_point()
        assert hides.isfinite().all()


def test_all_relus_off():
    """All ReLUs were off, the row's mean was 0, and 0 / 0 is NaN."""
    for seed in range(3):
        torch.manual_seed(seed)
        line = nn.Linear(4, 6)
        line.bias.data.fill_(-3.0)
        off = line(torch.rand(5, 4)).relu()
        assert not off.any()
        assert (off / off.mean(1, keepdim=True)).isnan().all()


@pytest.mark.parametrize("between", [0, 1, 5])
def test_what_anomaly_mode_names(between):
    """The infinity passes back through `sum`, and would pass through any number of such operations, until it meets a 0: the NaN is 0 · inf. Read the message as "here, or anywhere later in the forward pass"."""
    x = torch.zeros(3, requires_grad=True)

    def rooted(meets_zero):
        out = x.pow(2) if meets_zero else x * 2
        for _ in range(between):
            out = 2 * out + out.flip(0)
        return out.sum().sqrt()

    error, _ = complaint_of(lambda: rooted(True))
    assert "'PowBackward0'" in error
    with torch.autograd.set_detect_anomaly(True):
        rooted(False).backward()
    assert (x.grad == math.inf).all()


def test_two_hooks_per_layer():
    """The same picture of your own network costs two hooks per layer: one forward, one on the gradient."""
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2), nn.Tanh())
    activations, gradients = {}, {}

    def look(name):
        def forward(module, inputs, out):
            activations[name] = out.detach()
            out.register_hook(lambda g: gradients.__setitem__(name, g))

        return forward

    for name, layer in net.named_children():
        layer.register_forward_hook(look(name))
    x = torch.randn(3, 4)
    net(x).sum().backward()
    assert list(activations) == ["0", "1", "2", "3"]
    assert list(gradients) == ["3", "2", "1", "0"]
    assert torch.equal(activations["0"], net[0](x))
    wanted = gradients["0"].T @ x
    torch.testing.assert_close(net[0].weight.grad, wanted)


def test_what_a_clip_reads_and_writes():
    """It reads each gradient twice and writes it once."""

    class Asked(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            reached = sum(
                isinstance(one, torch.Tensor) and one.data_ptr() in places
                for one in tree_leaves((args, kwargs))
            )
            if reached:
                self.seen.append((str(operation).split(".")[1], reached))
            return operation(*args, **(kwargs or {}))

    for bound in (1.0, 1e9):  # also where nothing is to be clipped
        many = with_gradients(*[[3.0, 4.0]] * 5)
        places = {one.grad.data_ptr() for one in many}
        with Asked() as asked:
            clip(many, bound, foreach=True)
        assert asked.seen == [("_foreach_norm", 5), ("_foreach_mul_", 5)]


class Counted(nn.Module):
    """Puts another tensor in its buffer's place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen = self.seen + x.detach().sum()
        return x


def test_buffers_that_are_put_back():
    """Where the *loss* turns out bad it is too late: keep a clone of each of `model.buffers()` from before, and copy it into what `model.buffers()` gives then: a layer may have put another tensor in a buffer's place.

    A bad batch is skipped whole, under DDP (chapter 14) by all ranks: no step, no gradients left, buffers put back.
    """
    net = nn.Sequential(nn.BatchNorm1d(2), Counted())
    net(torch.randn(4, 2))
    references = list(net.buffers())
    kept = [buffer.clone() for buffer in net.buffers()]
    net(torch.full((4, 2), math.nan))
    assert not all(
        torch.equal(buffer, old)
        for buffer, old in zip(net.buffers(), kept, strict=True)
    )
    for buffer, old in zip(references, kept, strict=True):
        buffer.copy_(old)
    assert net[1].seen.isnan()  # another tensor
    for buffer, old in zip(net.buffers(), kept, strict=True):
        buffer.copy_(old)
        assert torch.equal(buffer, old)
    assert net.eval()(torch.ones(2, 2)).isfinite().all()


def test_the_mean_of_nothing():
    """0 / 0. Divide the sum by the number of known targets, but at least by 1."""
    for dtype in FULL:
        nothing = torch.zeros(0, dtype=dtype)
        assert nothing.mean().isnan()
        assert nothing.sum() / max(len(nothing), 1) == 0
        x = torch.ones(2, dtype=dtype, requires_grad=True)
        known = torch.zeros(2, dtype=torch.bool)
        errors = torch.where(known, x, 0)
        (errors.sum() / known.sum().clamp(min=1)).backward()
        assert x.grad.tolist() == [0, 0]


@pytest.fixture(scope="module")
def broken_run() -> Any:
    """The chapter's own, of the set-up cell of its bug hunt."""
    path = "solutions/08_clipping_and_nans/08_clipping_and_nans.py"
    chapter = read_chapter(Path(__file__).resolve().parents[2] / path)
    names: dict[str, Any] = {}
    for _, source in chapter.setup_source:
        exec(source, names)
    return names["broken_run"]


def first_bad_layer(run, rate):
    """(step, name) of what is first not finite in a forward pass."""
    model, loss_function, batches, _ = run
    for step, (x, y) in enumerate(batches):
        out = x
        for name, layer in model.named_children():
            out = layer(out)
            if x.isfinite().all() and not out.isfinite().all():
                return step, name
        model.zero_grad()
        loss_function(out, y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= rate * p.grad
    return None


def test_is_it_the_learning_rate(broken_run):
    """Weights that explode break *some* layer first. Run it again with a hundredth of the rate. If the NaN comes all the same, it is another fault, or the rate was more than a hundred times too large."""
    *_, rate = broken_run(5)
    assert first_bad_layer(broken_run(5), rate) is not None
    assert first_bad_layer(broken_run(5), rate / 100) is None
    assert first_bad_layer(broken_run(5), 1e3 * rate / 100) is not None
    *_, rate = broken_run(2)
    fault = first_bad_layer(broken_run(2), rate)
    assert fault == first_bad_layer(broken_run(2), rate / 100) == (6, "1")


def test_weights_that_have_hardly_moved():
    """If it stays away, that may also be because the weights have hardly moved."""

    def breaks(rate):
        """A root whose argument turns negative: no fault of the rate."""
        weight = nn.Parameter(torch.tensor([1.0]))
        for _ in range(20):
            loss = (weight - 0.5).sqrt().sum()
            if not loss.isfinite():
                return True
            (gradient,) = torch.autograd.grad(loss, weight)
            weight.data -= rate * gradient
        return False

    assert breaks(0.1)
    assert not breaks(0.001)


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize("shape", [(1,), (1, 3)])
@pytest.mark.parametrize("dtype", [*HALF, *FULL])
def test_the_std_of_a_single_number(dtype, shape):
    """(The `std` of a single number is NaN itself: it divides by n - 1. With `correction=0` it is 0.)"""
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    assert x.std(0).isnan().all()
    value = x.std(0, correction=0)
    value.sum().backward()
    assert not value.any()
    assert not x.grad.any()


@pytest.mark.gpu
def test_what_waits_for_the_gpu(waits):
    """On a GPU `.item()` on the norm makes the CPU wait, at each call.

    and copies the data from the GPU.
    """
    weight = nn.Parameter(torch.ones(3, device="cuda"))
    weight.grad = torch.ones(3, device="cuda")

    def clip():
        return nn.utils.clip_grad_norm_([weight], 1.0)

    clip()
    assert not waits(clip)
    assert waits(lambda: clip().item())
    assert weight.detach().cpu().device.type == "cpu"
    assert waits(lambda: weight.detach().cpu())
