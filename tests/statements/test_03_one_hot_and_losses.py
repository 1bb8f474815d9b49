"""What chapter 03 states about one-hot rows and losses, run."""

import contextlib
import inspect
import math
import shutil
import warnings
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils import digits

BY_CELL = {
    "claim_000_16": [
        "*Correct*, and the shapes must match.",
        "With four samples and four classes the labels broadcast. The number below has nothing to do with the classes; a warning is all you get.",
    ],
    "claim_000_17": [
        "it changes the caller's tensor, and on a view it encodes other labels.",
        "Three of the four classes are wrong, and the caller's labels have changed.",
        "Given five labels it drops the fifth.",
    ],
    "claim_004_15": ['The default is called `"mean"`.'],
    "claim_004_15_overrides": [
        "`size_average=False` overrides what `reduction` says, and a second *positional* argument is `size_average`.",
    ],
}

BY_SOURCE = {
    "https://arxiv.org/abs/2006.07322": [
        "Hui and Belkin (see the recap) trained many networks with the squared error of the logits, with results on a par with cross-entropy.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution": [
        "On a GPU a label out of range is found inside the kernel: the error (*device-side assert*) comes late and spoils the process.",
    ],
}

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SINGLE_AND_DOUBLE = [torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_resize_reads_the_memory_behind(dtype):
    """`resize_` does not reshape. Given another shape, it takes the memory *behind* the tensor and reads it anew, in order, from the place where the tensor itself begins.

    Such views are common: a column of a table (`table[:, -1]`), the tokens from the second on (`tokens[:, 1:]`), every tenth sample.

    `labels` is a view that skips every second number; after `resize_` it no longer skips.

    `resize_` is not `reshape`.
    """
    table = torch.arange(24, dtype=dtype).reshape(4, 6)
    for view in (
        torch.arange(8, dtype=dtype)[::2],
        table[:, -1],
        table[:, 1:],
        torch.arange(99, dtype=dtype)[::10],
    ):
        start = view.storage_offset()
        size = view.numel()
        behind = torch.as_strided(view, (size,), (1,), start).clone()
        reshaped = view.flatten().clone()
        view.resize_(size, 1)
        assert view.stride(0) == 1
        assert torch.equal(view.flatten(), behind)
        assert not torch.equal(behind, reshaped)
    for view in (torch.arange(8, dtype=dtype)[::2], table.T):
        shape, strides, numbers = view.shape, view.stride(), view.clone()
        view.resize_(shape)
        assert view.stride() == strides
        assert torch.equal(view, numbers)


@pytest.mark.parametrize("num_classes", [2, 10, 1000])
@pytest.mark.parametrize("dtype", SINGLE_AND_DOUBLE)
def test_two_softmaxes_have_a_floor(dtype, num_classes):
    r"""Taken as logits, the best of them are a 1 for the target and nine 0s, and even these cost $\log(e + 9) - 1 = 1.4612$.

    `F.cross_entropy` takes a softmax itself. If the model ends in one too, there are two.

    The second softmax also makes the gradient smaller: ten times for ten classes where the model is unsure, and far more where it is sure and wrong.
    """
    assert round(math.log(math.e + 9) - 1, 4) == 1.4612
    floor = math.log(math.e + num_classes - 1) - 1
    target = torch.randint(num_classes, (50,))
    for scale in (1, 10, 1000):
        z = scale * torch.randn(50, num_classes, dtype=dtype)
        z[:25] = scale * F.one_hot(target[:25], num_classes).to(dtype)
        twice = F.cross_entropy(z.softmax(1), target, reduction="none")
        assert (twice >= floor - 1e-5).all()
    assert abs(twice[:25] - floor).max() < 1e-5
    by_hand = -z.softmax(1).log()[torch.arange(50), target]
    once = F.cross_entropy(z, target, reduction="none")
    torch.testing.assert_close(by_hand[:25], once[:25])
    z = (10 * torch.randn(50, num_classes, dtype=dtype)).requires_grad_()
    sure = F.one_hot((target + 1) % num_classes, num_classes).bool()
    at = z.detach().masked_fill(sure, 100).requires_grad_()
    (one,) = torch.autograd.grad(F.cross_entropy(at, target), at)
    (two,) = torch.autograd.grad(F.cross_entropy(at.softmax(1), target), at)
    assert two.norm() < 1e-3 * one.norm()
    right = 12 * F.one_hot(target, num_classes).to(dtype)  # sure, not wrong
    at = right.requires_grad_()
    (one,) = torch.autograd.grad(F.cross_entropy(at, target), at)
    (two,) = torch.autograd.grad(F.cross_entropy(at.softmax(1), target), at)
    assert one.norm() / 2 < two.norm() < one.norm()
    at = torch.zeros(50, num_classes, dtype=dtype, requires_grad=True)
    (one,) = torch.autograd.grad(F.cross_entropy(at, target), at)
    (two,) = torch.autograd.grad(F.cross_entropy(at.softmax(1), target), at)
    torch.testing.assert_close(num_classes * two, one)


def test_what_the_second_softmax_costs_by_optimizer():
    """Here SGD at 0.1 gets a third of the digits right, where it got nine in ten. Adam at 0.1 divides each gradient by its own size, and its accuracy hides the mistake."""
    data = digits()
    pixels, digit = data.X_train.flatten(1), data.y_train

    def accuracy(times, optimizer_class):
        torch.manual_seed(0)
        model = nn.Linear(64, 10)
        optimizer = optimizer_class(model.parameters(), lr=0.1)
        for _ in range(150):
            z = model(pixels)
            optimizer.zero_grad()
            F.cross_entropy(z if times == 1 else z.softmax(1), digit).backward()
            optimizer.step()
        hits = model(data.X_test.flatten(1)).argmax(1) == data.y_test
        return hits.double().mean().item()

    assert abs(accuracy(2, torch.optim.SGD) - 1 / 3) < 0.05
    assert abs(accuracy(1, torch.optim.SGD) - 0.9) < 0.03
    assert accuracy(1, torch.optim.Adam) - accuracy(2, torch.optim.Adam) < 0.03


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss])
def test_a_squared_error_broadcasts(loss):
    """A regression model returns shape (64, 1). The target has shape (64,). Their difference has shape (64, 64): every output is compared with every target.

    In your own code, written as `((output - target) ** 2).mean()`, there is none.
    """
    output, target = torch.randn(64, 1), torch.randn(64)
    assert (output - target).shape == (64, 64)
    with pytest.warns(UserWarning, match="broadcasting"):
        told = loss(output, target, reduction="none")
    assert told.shape == (64, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((output - target) ** 2).mean()
        loss(output, target.unsqueeze(1))


def test_pytorch_warns_once():
    """PyTorch warns at the first step, and as a rule no more while the shapes are the same."""
    output, target = torch.randn(64, 1), torch.randn(64)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(5):
            F.mse_loss(output, target)
        assert len(told) == 1
        F.mse_loss(output[:5], target[:5])
    assert len(told) == 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(5):  # what changes filters makes Python forget
            F.mse_loss(output, target)
            with warnings.catch_warnings():  # as some metrics do
                pass
    assert len(told) == 5


def test_a_broadcast_error_learns_the_mean():
    """Broadcast, the model learns the mean of all targets"""
    x = torch.linspace(-1, 1, 64).unsqueeze(1)
    y = 2 * x.squeeze(1) + 3
    model = nn.Linear(1, 1)
    sgd = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(200):
        sgd.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        sgd.step()
    torch.testing.assert_close(
        model(x).detach(), y.mean().expand(64, 1), rtol=0, atol=1e-3
    )


def test_a_mean_of_means():
    """Seventeen samples in batches of four leave one for the last batch. That one then counts as much as four others.

    Across batches add up sums and what they are divided by (counts or, with class weights and indices, the targets' weights), in float64 or as Python numbers, and divide once.
    """
    z = torch.randn(17, 5, dtype=torch.float64, requires_grad=True)
    y = torch.randint(5, (17,))
    pieces = list(zip(z.split(4), y.split(4), strict=True))
    assert [len(one) for _, one in pieces] == [4, 4, 4, 4, 1]
    means = torch.stack([F.cross_entropy(*piece) for piece in pieces])
    each = F.cross_entropy(z, y, reduction="none")
    torch.testing.assert_close(
        means.mean(), (each[:16].mean(0) * 4 + each[16]) / 5
    )
    sums = [F.cross_entropy(*piece, reduction="sum") for piece in pieces]
    torch.testing.assert_close(sum(sums) / 17, F.cross_entropy(z, y))
    flat = torch.zeros(2000, 10, dtype=torch.bfloat16)
    fours = zip(flat.split(4), torch.zeros(2000).long().split(4), strict=True)
    sums = [F.cross_entropy(*piece, reduction="sum") for piece in fours]
    assert sum(sums) / 2000 < 0.9 * math.log(10)
    assert abs(sum(one.item() for one in sums) / 2000 - math.log(10)) < 0.02
    for dtype, exact in ((torch.float32, False), (torch.float64, True)):
        count = torch.tensor(2**26, dtype=dtype)  # of labels, so far
        for _ in range(100):
            count += 509
        assert (count == 2**26 + 50_900) == exact


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_scatter_is_one_hot(shape):
    """`zeros.scatter_(dim, index, 1)` writes a 1 at the places that `index` names along `dim`. `index` has as many dimensions as the zeros; here its last one has size 1: one place per row.

    `scatter_` wants an index with as many dimensions as the zeros. `labels.unsqueeze(-1)` gives the labels one more dimension, at the end, and copies nothing.
    """
    labels = torch.randint(4, shape)
    column = labels.unsqueeze(-1)
    assert column.data_ptr() == labels.data_ptr()
    rows = torch.zeros(*shape, 4).scatter_(-1, column, 1)
    assert torch.equal(rows, F.one_hot(labels, 4).float())
    if shape:
        with pytest.raises(RuntimeError, match="same number of dimensions"):
            torch.zeros(*shape, 4).scatter_(-1, labels, 1)


def test_what_refuses_a_label():
    """Indexing with `[...]` counts -1 from the end, and comparing with `==` finds no class and leaves a row of zeros. `scatter_` refuses both ends by itself, but not in compiled code; the other ways need a check.

    `gather` refuses -100.
    """
    bad = torch.tensor([-1])
    assert torch.eye(3)[bad].tolist() == [[0, 0, 1]]
    assert not (bad.unsqueeze(-1) == torch.arange(3)).any()
    for label in (-1, -100, 3):
        index = torch.tensor([[label]])
        with pytest.raises(RuntimeError, match="out of bounds"):
            torch.zeros(1, 3).scatter_(1, index, 1)
        with pytest.raises(RuntimeError, match="out of bounds"):
            torch.zeros(1, 3).gather(1, index)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", SINGLE_AND_DOUBLE)
def test_the_formulas_of_cross_entropy(dtype, weighted, smoothing):
    r"""**Cross-entropy** of logits $z$ with the class $y$ is minus the log-probability of $y$:

    With label smoothing $\varepsilon$ the target is no longer all on $y$: a share $1 - \varepsilon$ stays there and $\varepsilon$ is spread evenly over all $C$ classes, $y$ among them. With class weights $w$ the term of class $c$ is multiplied by $w_c$:

    $$\ell = -(1 - \varepsilon)\, w_y \log p_y - \frac{\varepsilon}{C} \sum_c w_c \log p_c .$$

    $$\ell = -\log p_y = -\log \frac{e^{z_y}}{\sum_c e^{z_c}} = \log \sum_c e^{z_c} - z_y .$$

    A sample whose label equals `ignore_index` costs nothing.

    | `"sum"` | $\sum_n \ell_n$ |

    | `"none"` | every $\ell_n$, with 0 where the label is ignored |

    | `"mean"` | $\sum_n \ell_n \big/ \sum_n w_{y_n}$, both over the labels that are not ignored |

    Without weights, $\sum_n w_{y_n}$ is the number of labels that are not ignored.

    With class indices the weighted mean divides by the weights of the targets that count, not by N. With rows it divides by N. Smoothing gives every class, the target's too, a share of ε / C.
    """
    z, y = torch.randn(9, 4, dtype=dtype), torch.randint(4, (9,))
    plain = z.logsumexp(1) - z[torch.arange(9), y]
    torch.testing.assert_close(F.cross_entropy(z, y, reduction="none"), plain)
    w = torch.rand(4, dtype=dtype) if weighted else torch.ones(4, dtype=dtype)
    for ignore_index in (-100, 2):
        y[0] = ignore_index
        kept = y != ignore_index
        index = torch.where(kept, y, 0)
        log_p = z.log_softmax(1)
        each = -(1 - smoothing) * w[index] * log_p[torch.arange(9), index]
        each = (each - smoothing / 4 * (w * log_p).sum(1)) * kept
        for reduction, wanted in (
            ("none", each),
            ("sum", each.sum()),
            ("mean", each.sum() / w[index][kept].sum()),
        ):
            got = F.cross_entropy(
                z,
                y,
                w if weighted else None,
                ignore_index=ignore_index,
                reduction=reduction,
                label_smoothing=smoothing,
            )
            torch.testing.assert_close(got, wanted)
    rows = F.one_hot(index, 4).to(dtype)
    got = F.cross_entropy(z, rows, w, label_smoothing=smoothing)
    each = -((1 - smoothing) * rows + smoothing / 4) * w * log_p
    torch.testing.assert_close(got, each.sum() / 9)


def test_log_softmax_and_the_log_of_softmax():
    r"""Because a small probability is 0 in float32, and its logarithm is $-\infty$. `log_softmax` never forms the probability. Below $10^{-38}$, from a gap of 88 on, float32 holds it with fewer and fewer digits: at 100 the naive result is slightly off, and from 104 on nothing is left."""

    def naive_and_stable(gap):
        pair = torch.tensor([0.0, gap])
        return pair.softmax(0).log()[0].item(), pair.log_softmax(0)[0].item()

    for gap in (10.0, 50.0, 80.0, 87.0):
        naive, stable = naive_and_stable(gap)
        assert abs(naive - stable) < 1e-4
    naive, stable = naive_and_stable(100.0)
    assert 1e-4 < abs(naive - stable) < 0.1
    for gap in (104.0, 110.0, 1000.0):
        naive, stable = naive_and_stable(gap)
        assert naive == -math.inf
        assert stable == -gap
    assert math.exp(-88) < torch.finfo(torch.float32).tiny < math.exp(-87)


@pytest.mark.parametrize("num_classes", [2, 5, 20])
@pytest.mark.parametrize("smoothing", [0.05, 0.1, 0.5])
def test_the_best_margin_of_smoothing(smoothing, num_classes):
    r"""Without smoothing a larger margin is always better. With smoothing there is a best margin, and going beyond it costs.

    The best margin is where the model's probabilities equal the wanted ones: $m = \log\big((1 - \varepsilon + \varepsilon/C)\,/\,(\varepsilon/C)\big)$. At $\varepsilon = 0.1$ and $C = 5$ that is $\log(0.92 / 0.02) = 3.8$. The smallest loss is then above 0, so losses with different smoothing cannot be compared.
    """
    share = smoothing / num_classes
    best = math.log((1 - smoothing + share) / share)
    margins = torch.tensor([best - 0.1, best, best + 0.1], dtype=torch.float64)
    z = torch.zeros(3, num_classes, dtype=torch.float64)
    z[:, 0] = margins
    target = torch.zeros(3, dtype=torch.long)
    losses = F.cross_entropy(
        z, target, reduction="none", label_smoothing=smoothing
    )
    assert losses.argmin() == 1
    assert losses.min() > 0.01
    assert abs(z[1].softmax(0)[0] - (1 - smoothing + share)) < 1e-9
    plain = F.cross_entropy(z, target, reduction="none")
    assert (plain.diff() < 0).all()
    assert round(math.log(0.92 / 0.02), 1) == 3.8


@pytest.mark.parametrize("num_classes", [2, 10, 1000])
def test_how_hard_each_loss_pushes(num_classes):
    """**Cross-entropy** pushes with almost 1, and lets go once the target's probability is near 1.

    **Squared error of the softmax** has let go: the softmax is flat there, so the gradient is near 0 exactly where the mistake is largest.

    The squared error of the *softmax* is the poor choice: it does nothing about the worst mistakes.

    **Squared error of the logits** pushes the harder the larger the mistake, and pushes *back* once the margin is above 1, although the answer is right.
    """

    def push(loss_of, margin):
        m = torch.tensor(margin, dtype=torch.float64, requires_grad=True)
        z = torch.cat([m[None], torch.zeros(num_classes - 1).double()])[None]
        target = F.one_hot(torch.tensor([0]), num_classes).double()
        (gradient,) = torch.autograd.grad(loss_of(z, target), m)
        return -gradient.item()

    def of_softmax(z, t):
        return ((z.softmax(1) - t) ** 2).sum()

    def of_logits(z, t):
        return ((z - t) ** 2).sum()

    assert push(F.cross_entropy, -6.0) > 0.99
    sure = math.log(999 * num_classes)
    assert push(F.cross_entropy, sure) < 0.01
    assert abs(push(of_softmax, -8.0)) < 0.01
    assert push(of_logits, -4.0) > push(of_logits, -2.0) > 0
    assert push(of_logits, 2.0) < 0


def test_targets_as_rows_in_memory():
    """Without class weights, and if every log-probability is finite, cross-entropy gives the same loss for both. For a vocabulary of 8192 words the rows are 4096 times as large as the indices: float32 instead of int64, and 8192 of them.

    Both steps hold the log-probabilities and the target for the backward pass. Without label smoothing and outside of autocast, rows are kept as they are and not as a copy: a batch of them occupies its memory once, and until the backward pass is done.
    """
    index = torch.randint(8192, (4,))
    rows = F.one_hot(index, 8192).float()
    assert rows.nbytes == 4096 * index.nbytes
    z = torch.randn(4, 8192, requires_grad=True)
    for smoothing in (0.0, 0.1):
        torch.testing.assert_close(
            F.cross_entropy(z, index, label_smoothing=smoothing),
            F.cross_entropy(z, rows, label_smoothing=smoothing),
        )
    halves = torch.tensor([[20.0, torch.finfo(torch.float16).min]]).half()
    assert halves.isfinite().all()
    assert halves.log_softmax(1).isinf().any()
    first = torch.tensor([0])
    assert F.cross_entropy(halves, first) == 0
    assert F.cross_entropy(halves, F.one_hot(first, 2).half()).isnan()
    for target in (index, rows):
        saved = []

        def pack(tensor, saved=saved):
            saved.append((tensor.data_ptr(), tuple(tensor.shape)))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            F.cross_entropy(z, target)
        kept = target.clone()
        alive = weakref.ref(kept)
        loss = F.cross_entropy(z, kept)
        del kept
        assert alive() is not None
        loss.backward()
        assert alive() is None
        assert target.data_ptr() in [pointer for pointer, _ in saved]
        assert (4, 8192) in [shape for _, shape in saved]
        saved.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            F.cross_entropy(z, target, label_smoothing=0.1)
        kept_itself = target.data_ptr() in [pointer for pointer, _ in saved]
        assert kept_itself == (target is index)
    # rows of any order in memory, and with positions
    for rows_of_any in (
        rows.T.contiguous().T,
        torch.rand(4, 8, 6)[:, :, 1:],
        torch.rand(4, 6, 8).transpose(1, 2),
    ):
        saved.clear()
        logits = torch.randn(rows_of_any.shape, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            F.cross_entropy(logits, rows_of_any)
        assert rows_of_any.data_ptr() in [pointer for pointer, _ in saved]
    saved.clear()
    halves = rows.bfloat16()
    with (
        torch.autocast("cpu"),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
    ):
        F.cross_entropy(z, halves)
    assert halves.data_ptr() not in [pointer for pointer, _ in saved]


@pytest.mark.parametrize("length", [5, 3])
def test_where_rows_have_their_classes(length):
    """It takes float rows as well (their classes in dimension 1, as those of the logits, where `F.one_hot` puts them last), with the same result up to rounding if all log-probabilities are finite, and refuses rows of integers."""
    z = torch.randn(2, 5, length)
    index = torch.randint(5, (2, length))
    rows = F.one_hot(index, 5).float()
    wanted = F.cross_entropy(z, index)
    torch.testing.assert_close(F.cross_entropy(z, rows.mT), wanted)
    with pytest.raises(RuntimeError):
        F.cross_entropy(z, rows.mT.long())
    if length == 5:
        assert not torch.isclose(F.cross_entropy(z, rows), wanted)
        return
    with pytest.raises(RuntimeError, match="target size"):
        F.cross_entropy(z, rows)


@pytest.mark.parametrize("positions", [(), (2,), (3, 4)])
def test_what_the_weighted_mean_divides_by(positions):
    """With class weights the two forms *differ*: given indices, the mean divides by the sum of the targets' weights; given rows, by their number."""
    z = torch.randn(3, 5, *positions, dtype=torch.float64)
    index = torch.randint(5, (3, *positions))
    rows = F.one_hot(index, 5).movedim(-1, 1).double()
    weight = torch.rand(5, dtype=torch.float64) + 0.5
    for target, divisor in (
        (index, weight[index].sum()),
        (rows, index.numel()),
    ):
        torch.testing.assert_close(
            F.cross_entropy(z, target, weight) * divisor,
            F.cross_entropy(z, target, weight, reduction="sum"),
        )


@pytest.mark.parametrize("dtype", SINGLE_AND_DOUBLE)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_rows_and_a_masked_class(dtype, reduction):
    """(Rows make NaN of a class that is masked by a logit of −∞, in float16, where nothing is compiled, also by its most negative number if the logsumexp of the others reaches about 16, even where its target is 0; indices do not, though with label smoothing a −∞ makes the loss infinite, or NaN if that class has a weight of 0, and the dtype's most negative number may make it infinite.)"""
    z, y = torch.randn(6, 4, dtype=dtype), torch.tensor([0, 3, 1, 1, 3, 0])
    rows = F.one_hot(y, 4).to(dtype)
    both = [F.cross_entropy(z, one, reduction=reduction) for one in (y, rows)]
    torch.testing.assert_close(*both)
    z[:, 2] = -torch.inf
    assert F.cross_entropy(z, y, reduction=reduction).isfinite().all()
    smoothed = F.cross_entropy(z, y, reduction=reduction, label_smoothing=0.1)
    assert (smoothed == torch.inf).all()
    none_of_it = torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=dtype)
    options = {"reduction": reduction, "label_smoothing": 0.1}
    assert F.cross_entropy(z, y, none_of_it, **options).isnan().all()
    assert F.cross_entropy(z, rows, reduction=reduction).isnan().all()
    z[:, 1:3] = torch.finfo(dtype).min
    smoothed = F.cross_entropy(z, y, reduction=reduction, label_smoothing=0.1)
    assert smoothed.isinf().any()
    lowest = torch.finfo(torch.float16).min
    for others, wrong in (
        ([15.5], False),
        ([16.5], True),
        ([8.0] * 1000, False),
        ([10.0] * 1000, True),
    ):
        half = torch.tensor([[*others, lowest]]).half()
        row = torch.zeros_like(half)
        row[0, 0] = 1
        lost = F.cross_entropy(half, row, reduction=reduction)
        assert bool(lost.isnan().any()) == wrong


@pytest.mark.slow
def test_a_masked_class_in_compiled_code():
    """in float16, where nothing is compiled, also by its most negative number if the logsumexp of the others reaches about 16"""
    half = torch.tensor([[16.5, torch.finfo(torch.float16).min]]).half()
    row = torch.tensor([[1.0, 0.0]]).half()
    assert F.cross_entropy(half, row).isnan()
    torch._dynamo.reset()
    assert torch.compile(F.cross_entropy)(half, row).isfinite()
    half[0, 1] = -torch.inf
    assert torch.compile(F.cross_entropy)(half, row).isnan()


@pytest.mark.parametrize("dtype", FLOATS)
def test_it_builds_no_rows(dtype):
    """It builds no rows: it picks one log-probability per sample.

    And rows know no `ignore_index`: without label smoothing a row of zeros costs nothing, but the mean counts it.
    """
    z = torch.randn(3, 5, dtype=dtype, requires_grad=True)
    loss = F.cross_entropy(z, torch.tensor([0, 1, 2]))
    assert type(loss.grad_fn).__name__ == "NllLossBackward0"
    rows = F.one_hot(torch.tensor([0, 1, 2]), 5).to(dtype)
    for index in (0, 3):
        with pytest.raises(RuntimeError, match="ignore_index"):
            F.cross_entropy(z, rows, ignore_index=index)
    rows[1] = 0
    each = F.cross_entropy(z, rows, reduction="none")
    assert each[1] == 0
    torch.testing.assert_close(F.cross_entropy(z, rows), each.sum() / 3)
    assert not torch.autograd.grad(each.sum(), z)[0][1].any()
    smooth = F.cross_entropy(z, rows, reduction="none", label_smoothing=0.1)
    assert smooth[1] > 0


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool, torch.float32])
def test_dtypes_of_class_indices(dtype):
    """`F.cross_entropy` wants raw logits, and class indices of int64. (uint8 works in some cases, not in compiled code.)"""
    z, y = torch.randn(3, 2), torch.tensor([1, 0, 1]).to(dtype)
    if dtype in (torch.int64, torch.uint8):
        torch.testing.assert_close(
            F.cross_entropy(z, y), F.cross_entropy(z, y.long())
        )
        smoothed = {"weight": torch.ones(2), "label_smoothing": 0.1}
        with (
            pytest.raises(RuntimeError, match="index")
            if dtype == torch.uint8
            else contextlib.nullcontext()
        ):
            F.cross_entropy(z, y, **smoothed)
        torch._dynamo.reset()
        compiled = torch.compile(F.cross_entropy, backend="eager")
        with (
            pytest.raises(Exception, match="index")
            if dtype == torch.uint8
            else contextlib.nullcontext()
        ):
            compiled(z, y)
        torch._dynamo.reset()
    else:
        with pytest.raises(RuntimeError):
            F.cross_entropy(z, y)
    images, of_pixels = torch.randn(3, 2, 4), torch.zeros(3, 4).to(dtype)
    if dtype == torch.int64:
        assert F.cross_entropy(images, of_pixels).ndim == 0
    else:
        with pytest.raises(RuntimeError):
            F.cross_entropy(images, of_pixels)


def test_random_labels():
    """`torch.randint` says the same in one call, takes a `generator` and a `device`, and never shows unfilled memory."""
    first, second = (
        torch.randint(
            10, (50,), generator=torch.Generator().manual_seed(1), device="cpu"
        )
        for _ in range(2)
    )
    assert torch.equal(first, second)
    assert torch.randint(10, (3,), device="meta").is_meta


def test_old_arguments():
    """The old name still works and warns. So do the old arguments"""
    z, y = torch.randn(3, 2), torch.tensor([1, 0, 1])
    for options, wanted in (
        ({"reduction": "elementwise_mean"}, "mean"),
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": False}, "none"),
    ):
        with pytest.warns(UserWarning, match="deprecated"):
            got = F.cross_entropy(z, y, **options)
        torch.testing.assert_close(got, F.cross_entropy(z, y, reduction=wanted))
    second = list(inspect.signature(nn.CrossEntropyLoss).parameters)[1]
    assert second == "size_average"


def test_one_hot_guesses():
    """`F.one_hot(labels.long(), num_classes).to(dtype)`: the number of classes is given, never guessed from the batch."""
    assert F.one_hot(torch.tensor([0, 1])).shape == (2, 2)
    assert F.one_hot(torch.tensor([0, 3])).shape == (2, 4)
    for dtype in INTEGERS:
        labels = torch.tensor([0, 3], dtype=dtype)
        assert F.one_hot(labels.long(), 5).to(torch.float64).shape == (2, 5)
    with pytest.raises(RuntimeError, match="LongTensor"):
        F.one_hot(torch.tensor([0, 3], dtype=torch.int32), 5)


def test_hints_of_the_exercises():
    """multiplied by the mask, a NaN stays NaN. `clamp` would also swallow labels that are wrong.

    For an empty sum PyTorch computes 0 / 0 = NaN by itself.

    A weight of shape (C,) broadcasts against the *last* dimension.

    Take it out of the result with `squeeze(1)`; a bare `squeeze()` takes others too.

    `reduction="sum"` gives it directly, and 0 for a batch of padding. The mean of such a batch is NaN, and NaN · 0 is NaN again.

    Python's 0.0 / 0 raises, a tensor's 0 / 0 is NaN.

    That is broadcasting giving up, with a `RuntimeError`.
    """
    nan = torch.tensor(math.nan)
    assert (nan * False).isnan()
    assert (nan * 0).isnan()
    assert torch.tensor([-100, 7]).clamp(0, 4).tolist() == [0, 4]
    assert (torch.zeros(0).sum() / torch.zeros(0).sum()).isnan()
    assert (torch.ones(2, 3, 4) * torch.arange(4))[0, 0].tolist() == [
        0,
        1,
        2,
        3,
    ]
    assert torch.ones(1, 1, 1).squeeze().shape == ()
    assert torch.ones(1, 1, 1).squeeze(1).shape == (1, 1)
    padding = torch.randn(3, 2), torch.full((3,), -100)
    assert F.cross_entropy(*padding, reduction="sum") == 0
    assert F.cross_entropy(*padding).isnan()
    with pytest.raises(ZeroDivisionError):
        _ = 0.0 / 0
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        torch.ones(2, 3) - torch.ones(2)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_batch_size_built_in(n):
    """It also has the batch size built in.

    Given three it would read on behind them: the next number of a longer tensor, or memory that nobody has filled; where memory cannot grow (NumPy's) it would raise. We leave that out.

    And it is for the CPU alone: its zeros are made there, and NumPy has no tensor of a GPU.
    """
    labels = torch.arange(n)
    held = labels.untyped_storage().nbytes()
    labels.resize_(4, 1)  # what the helper does, without reading it
    assert len(labels) == 4
    grown = labels.untyped_storage().nbytes() - held
    assert grown == (8 if n == 3 else 0)
    assert torch.arange(8)[:3].resize_(4, 1).flatten().tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.from_numpy(torch.arange(3).numpy()).resize_(4, 1)
    assert torch.zeros(4, 8).device.type == "cpu"
    with pytest.raises(TypeError, match="to numpy"):
        torch.zeros(n, device="meta").numpy()


@pytest.mark.parametrize("num_classes", [2, 10, 1000])
def test_nats(num_classes):
    """The losses are in nats, the unit of the natural logarithm."""
    even = torch.zeros(3, num_classes)
    loss = F.cross_entropy(even, torch.tensor([0, 1, 1]))
    assert loss.item() == pytest.approx(math.log(num_classes))


def test_three_calls():
    """`num_classes` is given and not guessed from the batch, the logits go in as they are, and both sides of the squared error have one shape.

    | values | 2, 0, 1 | [2], [0], [1] | row 0 gets its 1 in column 2, ... |
    """
    labels = torch.tensor([2, 0, 1])
    rows = F.one_hot(labels, num_classes=4).to(torch.float32)
    assert rows.shape == (3, 4)
    assert F.one_hot(labels).shape == (3, 3)
    index = labels.unsqueeze(1)
    assert torch.equal(torch.zeros(3, 4).scatter_(1, index, 1), rows)
    assert rows[0].tolist() == [0, 0, 1, 0]
    logits = torch.randn(3, 4)
    shifted = F.cross_entropy(logits + 100, labels)
    torch.testing.assert_close(shifted, F.cross_entropy(logits, labels))


@pytest.mark.parametrize("shape", [(6, 4), (0, 4), (2, 4, 3)])
def test_an_ignored_label_has_no_slope(shape):
    """With class weights the two forms *differ*

    A target equal to `ignore_index`, which may be any integer, costs nothing and is not counted.
    """
    z = torch.randn(shape, requires_grad=True)
    y = torch.randint(4, (shape[0], *shape[2:]))
    rows = F.one_hot(y, 4).movedim(-1, 1)
    by_rows = F.cross_entropy(z, rows.float(), reduction="sum")
    by_index = F.cross_entropy(z, y, reduction="sum")
    torch.testing.assert_close(by_rows, by_index)
    if shape[0]:
        with pytest.raises(RuntimeError, match="floating point"):
            F.cross_entropy(z, rows)
        weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
        first = F.cross_entropy(z, y, weight)
        assert not torch.isclose(
            first, F.cross_entropy(z, rows.float(), weight)
        )
    for ignored in (-100, -1, 3, 99):
        left_out = y.clone()
        left_out[:1] = ignored
        loss = F.cross_entropy(
            z, left_out, ignore_index=ignored, reduction="sum"
        )
        (slope,) = torch.autograd.grad(loss, z)
        assert not slope[:1].any()


@pytest.mark.parametrize("n", [1, 7])
def test_unfilled_memory(n):
    """It works. The legacy constructor hands out memory with whatever is in it until `random_` fills it."""
    always = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)  # marks what nobody has filled
    try:
        labels = torch.LongTensor(n)
        counted = torch.zeros(n, dtype=torch.int64)
    finally:
        torch.use_deterministic_algorithms(always)
    assert labels.eq(torch.iinfo(torch.int64).max).all()
    assert not counted.any()
    assert labels.shape == (n,)
    assert labels.dtype == torch.int64
    where = labels.data_ptr()
    assert (labels.random_() % 10 < 10).all()
    assert labels.data_ptr() == where


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool])
def test_the_index_of_a_scatter(dtype):
    """`torch.zeros` and its like take `dtype=` and `device=`. The index of a scatter should be int64: `labels.long()` gives one. (Labels of int64 it gives back as they are: change nothing in place.)"""
    labels = torch.tensor([1, 0]).to(dtype)
    zeros = torch.zeros(2, 3, dtype=torch.float16, device="cpu")
    for make in (torch.ones, torch.empty, torch.rand):
        assert make(2, dtype=torch.float64, device="meta").is_meta
    rows = zeros.scatter_(1, labels.long().unsqueeze(1), 1)
    assert rows.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert labels.dtype == dtype
    assert labels.tolist() == [1, 0]
    assert (labels.long() is labels) == (dtype == torch.int64)
    if dtype not in (torch.int64, torch.int32):
        with pytest.raises(RuntimeError, match="dtype"):
            zeros.scatter_(1, labels.unsqueeze(1), 1)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0)])
def test_dimensions_from_the_end(shape):
    """Count dimensions from the end: `torch.zeros(*labels.shape, num_classes, ...)`, and scatter along dimension -1. Then one-dimensional labels need no case of their own."""
    labels = torch.randint(4, shape)
    rows = torch.zeros(*labels.shape, 4).scatter_(-1, labels[..., None], 1)
    assert rows.shape == (*shape, 4)
    assert torch.equal(rows.argmax(-1), labels)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 2), (1, 3)])
def test_the_log_probability_of_the_target(shape):
    """`log_softmax(dim=1)` gives all log-probabilities; `gather(1, index)` picks one per sample. As in a scatter, the index needs the class dimension: `target.unsqueeze(1)`.

    A weight of shape (C,) broadcasts against the *last* dimension. `log_probs.movedim(1, -1)` puts the classes there. `reshape(-1, C)` without moving them first mixes classes with positions.
    """
    z = torch.randn(shape)
    y = torch.randint(3, (shape[0], *shape[2:]))
    log_probs = z.log_softmax(dim=1)
    picked = log_probs.gather(1, y.unsqueeze(1)).squeeze(1)
    each = F.cross_entropy(z, y, reduction="none")
    torch.testing.assert_close(-picked, each)
    with pytest.raises(RuntimeError, match="dimensions"):
        log_probs.gather(1, y)
    weight = torch.tensor([1.0, 10.0, 100.0])
    moved = log_probs.movedim(1, -1) * weight
    for c in range(3):
        torch.testing.assert_close(moved[..., c], log_probs[:, c] * weight[c])
    sums = [
        one.reshape(-1, 3).exp().sum(1)
        for one in (log_probs, log_probs.movedim(1, -1))
    ]
    torch.testing.assert_close(sums[1], torch.ones_like(sums[1]))
    assert torch.allclose(*sums) == (len(shape) == 2)


@pytest.mark.parametrize("logit", [-math.inf, 5.0])
def test_nothing_times_infinity(logit):
    """0 times an infinite logit would be NaN

    `gather` refuses -100. Make a mask, put any class in the place of the ignored targets *in a new tensor* (`torch.where`), and set their losses to 0 afterwards, by `torch.where` again: multiplied by the mask, a NaN stays NaN.
    """
    z = torch.tensor([[0.0, 1.0, logit]])
    log_probs = z.log_softmax(1)
    assert (0 * log_probs.sum()).isnan() == math.isinf(logit)
    loss = F.cross_entropy(z, torch.tensor([1]))
    assert loss.isfinite()
    target = torch.tensor([-100])
    kept = target != -100
    index = torch.where(kept, target, 0)
    assert target.item() == -100
    bad = torch.tensor([math.nan])
    assert torch.where(kept, bad, 0.0).item() == 0
    assert (bad * kept).isnan()
    assert log_probs.gather(1, index[:, None]).shape == (1, 1)


@pytest.mark.parametrize("n", [4, 3])
def test_shapes_are_compared_with_shapes(n):
    """It is if the shape is (N,) *and* the dtype an integer one: `not target.is_floating_point()`. Rows may be integers, too. `scores.shape[:1]` is `(N,)`, and a shape compares with a shape.

    With other numbers it would not have given up. Compare shapes before you subtract.

    A squared error compares shapes only as far as broadcasting needs. Compare them yourself.
    """
    scores = torch.randn(n, 4)
    labels, numbers = torch.zeros(n, dtype=torch.int64), torch.zeros(n)
    assert labels.shape == numbers.shape == scores.shape[:1] == (n,)
    assert not labels.is_floating_point()
    assert numbers.is_floating_point()
    rows = F.one_hot(labels, 4)
    assert not rows.is_floating_point()
    assert rows.shape == scores.shape != scores.shape[:1]
    if n == 4:
        assert (scores - numbers).shape == scores.shape
    else:
        with pytest.raises(RuntimeError, match="must match the size"):
            scores - numbers


def test_a_mean_in_sixteen_bits():
    """On a CPU, outside of autocast, the loss is summed in the dtype of the logits: in float16 a mean over many samples, or smoothing over many classes, may be infinite or NaN, compiled or not. If labels are ignored and the loss itself is not compiled, it may be far off in both 16-bit dtypes. Give it `logits.float()`."""
    torch.manual_seed(0)
    logits, labels = torch.randn(16384, 100), torch.randint(100, (16384,))
    ignored = labels.clone()
    ignored[::16] = -100  # the first token of each text of 16
    every_second = labels.clone()
    every_second[::2] = -100
    for dtype, given, share in (
        (torch.float16, labels, math.inf),
        (torch.bfloat16, labels, 1.0),
        (torch.bfloat16, ignored, 0.0),
        (torch.float16, every_second, 0.4),
    ):
        low = logits.to(dtype)
        exact = F.cross_entropy(low.double(), given)
        found = F.cross_entropy(low, given).double() / exact
        assert found == share or abs(found - share) < 0.2
        mended = F.cross_entropy(low.float(), given).double() / exact
        assert abs(mended - 1) < 1e-5
    with torch.autocast("cpu", torch.bfloat16):
        kept = F.cross_entropy(logits.bfloat16(), ignored)
    exact = F.cross_entropy(logits.bfloat16().double(), ignored)
    assert abs(kept.double() / exact - 1) < 1e-5
    many = torch.zeros(300_000, 10).half()
    nothing = torch.zeros(len(many)).long()
    assert F.cross_entropy(many, nothing).isnan()
    for num_classes in (1000, 10_000):
        one, first = torch.randn(1, num_classes).half(), torch.zeros(1).long()
        for reduction in ("none", "sum", "mean"):
            options = {"reduction": reduction, "label_smoothing": 0.1}
            smooth = F.cross_entropy(one, first, **options)
            assert smooth.isfinite() == (num_classes == 1000)
            assert F.cross_entropy(one.float(), first, **options).isfinite()
        with torch.autocast("cpu", torch.float16):
            assert F.cross_entropy(one, first, label_smoothing=0.1).isfinite()
        assert F.cross_entropy(one, first).isfinite()
    low, weights = logits.bfloat16(), torch.ones(100, dtype=torch.bfloat16)
    weighted = F.cross_entropy(low, ignored, weights).double()
    exact = F.cross_entropy(low.double(), ignored)
    assert weighted / exact > 1.5  # the sum of the weights is too small, too


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler")
def test_a_compiled_mean_in_sixteen_bits(python):
    """in float16 a mean over many samples, or smoothing over many classes, may be infinite or NaN, compiled or not. If labels are ignored and the loss itself is not compiled, it may be far off in both 16-bit dtypes."""
    said = python(
        "import torch\n"
        "import torch.nn.functional as F\n"
        "loss = torch.compile(lambda z, y: F.cross_entropy(z, y), dynamic=False)\n"
        "torch.manual_seed(0)\n"
        "z, y = torch.randn(16384, 100), torch.randint(100, (16384,))\n"
        "print(loss(z.half(), y).item())\n"
        "print(loss(z.half().float(), y).isfinite().item())\n"
        "smooth = torch.compile(lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1))\n"
        "print(smooth(torch.randn(1, 10_000).half(), y[:1]).item())\n"
        "y[::2] = -100\n"
        "true = F.cross_entropy(z.bfloat16().float(), y)\n"
        "for one in (loss, F.cross_entropy):\n"
        "    off = abs(one(z.bfloat16(), y).float() / true - 1)\n"
        "    print(bool(off > 0.5))\n"
        "model = torch.compile(torch.nn.Identity())\n"
        "off = abs(F.cross_entropy(model(z.bfloat16()), y).float() / true - 1)\n"
        "print(bool(off > 0.5))"
    )
    assert said.split() == ["inf", "True", "inf", "False", "True", "True"]


def test_a_generator_of_batches():
    """It may be a generator, which has no length and can be gone through once."""
    batches = (torch.ones(n) for n in (3, 1))
    with pytest.raises(TypeError):
        len(batches)
    assert len(list(batches)) == 2
    assert len(list(batches)) == 0


@pytest.mark.gpu
def test_a_label_out_of_range_on_a_gpu(python):
    """On a GPU a label out of range is found inside the kernel: the error (*device-side assert*) comes late and spoils the process."""
    said = python(
        "import torch\n"
        "from torch.nn import functional as F\n"
        "logits = torch.zeros(2, 3, device='cuda')\n"
        "labels = torch.tensor([0, 7], device='cuda')\n"
        "F.cross_entropy(logits, labels)\n"
        "print('no error yet', flush=True)\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        torch.cuda.synchronize()\n"
        "        torch.ones(2, device='cuda').sum().item()\n"
        "    except RuntimeError as error:\n"
        "        print('device-side assert' in str(error))\n"
    )
    assert said.splitlines()[-2:] == ["True", "True"]
    assert "no error yet" in said
