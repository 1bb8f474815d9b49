"""What chapter 09 states about accumulating gradients, run."""

import copy
import itertools
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DistributedSampler

from course_grader.chapter.source import read_chapter
from course_utils import digit_mlp, digits, recorded, saved_tensor_bytes

BY_CELL = {
    "claim_003_14": [
        "With these the gradients agree to rounding. With batch normalization in training they do not.",
    ],
    "claim_003_16_20": [
        "added mean losses give exactly twice the gradient.",
        "Undivided, plain SGD is SGD with twice the learning rate. Weight decay does not grow with the gradient",
    ],
    "claim_003_17": [
        "Moving the output and the loss does nothing. They are made where the model and its inputs are. `.to` of a tensor that is there already returns the same object.",
    ],
    "claim_003_18": [
        "`backward()` adds to `.grad`, `step()` uses it and does not clear it, `zero_grad()` does.",
    ],
    "claim_003_19": [
        "nothing is divided, and what is left at the end of an epoch leaks into the next",
        "Five batches and `k` = 2: two steps, and one batch left over. Its gradient stays in `.grad`.",
    ],
    "claim_003_21": [
        "it weighs no more than the others.",
        "A sum has no last term. In reverse order the gradient is the same up to rounding.",
    ],
}

BY_SOURCE = {
    "https://arxiv.org/abs/2103.00020": [
        "contrastive losses, in which the other samples of the batch are the negatives (CLIP, SimCLR)",
    ],
    "https://arxiv.org/abs/2101.03961": [
        "load balancing in a mixture of experts",
    ],
    "https://arxiv.org/abs/1706.02677": [
        "its section on pitfalls has the missing factor.",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html": [
        "With `DataParallel` and `DistributedDataParallel` (DDP) each GPU works on a part of the *batch*. `DataParallel` cuts it",
        "With `DataParallel` the others hold a copy of the model during a step, and the first holds the rest.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/ddp.html": [
        "With DDP each GPU holds the whole model with gradients and optimizer state.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation": [
        "Scale each part; unscale, clip, step and update once per window.",
    ],
    "https://docs.pytorch.org/docs/stable/amp.html": [
        "bfloat16 needs none.",
    ],
    "https://huggingface.co/blog/gradient_accumulation": [
        "In October 2024 this was found in the training loops of large libraries: sequences of unequal length, each part's loss averaged over its own tokens, then averaged again.",
    ],
    "https://arxiv.org/abs/2507.07101": [
        "For language models that has been measured to do as well (sources below).",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html": [
        "`SyncBatchNorm` does not help: it shares statistics between processes at one moment, not between micro-batches one after another.",
    ],
    "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html": [
        "With FSDP2 (`fully_shard`) the switch is `model.set_requires_gradient_sync(False)`.",
        "Sharding (FSDP, `fully_shard`) cuts the model too.",
        "until the exchange each process holds the gradients of the whole model, unsharded.",
    ],
}


def mlp(dtype=torch.float64, *layers):
    torch.manual_seed(1)
    parts = nn.Linear(6, 8), *layers, nn.Tanh(), nn.Linear(8, 3)
    return nn.Sequential(*parts).to(dtype)


def rows_and_classes(n=32, dtype=torch.float64):
    torch.manual_seed(0)
    return torch.randn(n, 6, dtype=dtype), torch.randint(3, (n,))


def gradient_of(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def accumulated(model, sizes, weigh, labels=None, **options):
    """The gradient of parts; `weigh` makes the loss of (model's output, y)."""
    X, y = rows_and_classes(sum(sizes), next(model.parameters()).dtype)
    y = y if labels is None else labels
    for x, t in zip(X.split(sizes), y.split(sizes), strict=True):
        weigh(model(x), t, **options).backward()
    return gradient_of(model)


def error(seen, wanted):
    return ((seen - wanted).norm() / wanted.norm()).item()


@pytest.mark.parametrize("parts", [2, 8])
def test_parts_are_added(parts):
    """The loss of a batch is a *mean*. Two means of 16 samples added up are twice the mean of the 32.

    Twice the gradient is twice the learning rate: with eight parts, eight times.

    Undivided, plain SGD trains at `k` times its learning rate
    """
    whole = accumulated(mlp(), [32], F.cross_entropy)
    added = accumulated(mlp(), [32 // parts] * parts, F.cross_entropy)
    assert error(added, parts * whole) < 1e-12


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW])
def test_adam_hides_the_factor(optimizer):
    """With Adam you would not see it: Adam divides the gradient by its own size, so a constant factor drops out as long as the gradient is large beside `eps`, nothing clips it, and nothing else is added to it, as Adam's `weight_decay` is by default.

    If all are full and nothing is clipped, AdamW, and Adam without weight decay, hide it while gradients are large beside `eps`.
    """
    ends = {}
    for kind, decay in ((optimizer, 0), (optimizer, 0.1), (torch.optim.SGD, 0)):
        for factor in (1.0, 0.125):
            model = mlp()
            one = kind(model.parameters(), lr=0.01, weight_decay=decay)
            for _ in range(3):
                one.zero_grad()
                accumulated(
                    model,
                    [32],
                    lambda z, y, f=factor: f * F.cross_entropy(z, y),
                )
                one.step()
            ends[kind, decay, factor] = nn.utils.parameters_to_vector(
                model.parameters()
            )

    def apart(*run):
        return (ends[*run, 1.0] - ends[*run, 0.125]).abs().max()

    assert apart(optimizer, 0) < 1e-5 < 1e-3 < apart(torch.optim.SGD, 0)
    # AdamW keeps its decay out of the gradient
    in_gradient = optimizer is torch.optim.Adam
    assert (apart(optimizer, 0.1) > 1e-3) == in_gradient
    assert (apart(optimizer, 0.1) < 1e-5) == (not in_gradient)
    assert not torch.optim.Adam(mlp().parameters()).defaults[
        "decoupled_weight_decay"
    ]
    steps = []
    for factor in (1.0, 0.125):
        weight = nn.Parameter(torch.zeros(1))
        (1e-9 * factor * weight).sum().backward()  # small beside eps, 1e-8
        optimizer([weight], lr=0.01).step()
        steps.append(weight.item())
    assert steps[0] < 5 * steps[1] < 0
    ends = []
    for factor in (1.0, 0.125):
        model = mlp()
        one = optimizer(model.parameters(), lr=0.01, weight_decay=0)
        for scale in (1.0, 8.0):  # of gradients, the second ones clipped
            one.zero_grad()
            accumulated(
                model,
                [32],
                lambda z, y, f=factor * scale: f * F.cross_entropy(z, y),
            )
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            one.step()
        ends.append(nn.utils.parameters_to_vector(model.parameters()))
    assert (ends[0] - ends[1]).abs().max() > 1e-4


def test_what_is_left_enters_the_next_epoch():
    """It enters the first step of the *next* epoch, which so adds up three batches instead of two. After the last epoch it is lost."""
    model = nn.Linear(1, 1, bias=False)
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    steps, seen, weights = 0, [], []
    sgd.register_step_pre_hook(lambda *_: seen.append(model.weight.grad.item()))
    for _ in range(2):
        for i, x in enumerate([1.0, 2.0, 4.0, 8.0, 16.0]):
            weights.append(model.weight.item())
            (model.weight.sum() * x).backward()
            if (i + 1) % 2 == 0:
                sgd.step()
                sgd.zero_grad()
                steps += 1
    assert steps == 4
    assert seen == [3.0, 12.0, 16.0 + 3.0, 12.0]
    assert weights[4] == weights[5] == weights[6] != weights[7]  # not stale
    assert model.weight.grad == 16  # of the last epoch, never stepped on


@pytest.mark.parametrize("case", ["shorter", "ignored", "weights"])
def test_a_mean_of_means(case):
    """Dividing by `k` is right only if all parts count the same.

    They do not if the last part is shorter, if labels are ignored (padding!), or if classes have weights.

    Dividing each part's *mean* by the number of parts is the special case in which all parts have the same share of $D$.

    Dividing means by `k` is right only where all parts have the same denominator.
    """
    _, y = rows_and_classes()
    sizes, options = [16, 16], {}
    if case == "shorter":
        sizes = [20, 12]
    elif case == "ignored":
        y = torch.where(torch.arange(32) < 10, -100, y)
    else:
        options = {"weight": torch.tensor([1.0, 5.0, 0.2]).double()}
    whole = accumulated(mlp(), [32], F.cross_entropy, y, **options)
    parts = accumulated(
        mlp(),
        sizes,
        lambda z, t, **o: F.cross_entropy(z, t, **o) / len(sizes),
        y,
        **options,
    )
    assert error(parts, whole) > 0.03
    even = torch.where(torch.arange(32) % 16 < 5, -100, rows_and_classes()[1])
    whole = accumulated(mlp(), [32], F.cross_entropy, even)
    parts = accumulated(
        mlp(), [16, 16], lambda z, t: F.cross_entropy(z, t) / 2, even
    )
    assert error(parts, whole) < 1e-12


def test_one_sample_counts_as_sixteen():
    """In `16 + 15 + 1` one sample counts as much as sixteen others: the error is larger than the gradient itself."""
    whole = accumulated(mlp(), [32], F.cross_entropy)
    parts = accumulated(
        mlp(), [16, 15, 1], lambda z, t: F.cross_entropy(z, t) / 3
    )
    assert error(parts, whole) > 1
    shares = [1 / n / 3 for n in (16, 15, 1) for _ in range(n)]
    assert shares[-1] == pytest.approx(sum(shares[:16]))


@pytest.mark.parametrize(
    "sizes", [[32], [16, 16], [20, 12], [16, 15, 1], [1] * 32]
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [0, 10])
def test_what_to_divide_by(ignored, weighted, sizes):
    r"""So sum the losses of a part and divide by the number of samples of the *whole*.

    $$g = \frac{1}{D} \sum_j \sum_{n \in \text{part } j} \nabla \ell_n$$

    Let $D$ be the denominator of the full batch's mean. Each part contributes its *sum* over that same $D$:

    | a mean over samples | number of samples; for `F.cross_entropy`, of tokens or pixels |

    | a mean over all outputs, as `F.mse_loss` without `weight` | number of outputs of all samples together |

    `weight[labels]` is the weight of each, and their sum the share of this micro-batch in the denominator. Without `weight` it is their number.

    | with `ignore_index` | number of labels that are not ignored |

    | `F.cross_entropy` with class weights, labels as indices | sum of the weights $w_{y_n}$ of these labels |

    Divide each part's *sum* by the denominator of the whole window: samples, outputs, labels that count, or the sum of their weights.
    """
    _, y = rows_and_classes()
    y = torch.where(torch.arange(32) < ignored, -100, y)
    weight = torch.tensor([1.0, 5.0, 0.2]).double()
    counted = y[y != -100]
    denominator = weight[counted].sum() if weighted else len(counted)
    options = {"weight": weight} if weighted else {}
    whole = accumulated(mlp(), [32], F.cross_entropy, y, **options)
    parts = accumulated(
        mlp(),
        sizes,
        lambda z, t, **o: (
            F.cross_entropy(z, t, reduction="sum", **o) / denominator
        ),
        y,
        **options,
    )
    assert error(parts, whole) < 1e-12
    if weighted and not ignored:  # what other labels and losses divide by
        z = torch.randn(32, 3).double()
        shares = F.one_hot(y, 3).double()
        for found, total in (
            (F.cross_entropy(z, shares, weight=weight), denominator),
            (F.multi_margin_loss(z, y, weight=weight), denominator),
        ):
            assert not torch.isclose(found * total, found * 32)
        for loss, target in (
            (F.cross_entropy, shares),
            (F.multi_margin_loss, y),
        ):
            summed = loss(z, target, weight=weight, reduction="sum")
            mean = loss(z, target, weight=weight)
            torch.testing.assert_close(mean, summed / 32)
            assert abs(mean - summed / denominator) > 1e-3
    if not weighted and not ignored:  # three outputs for each sample
        wanted = torch.randn(32, 3).double()
        whole, parts, by_samples = (
            accumulated(
                mlp(),
                those,
                lambda z, t, by=by: (
                    F.mse_loss(z, wanted[t], reduction="sum") / by
                ),
                torch.arange(32),
            )
            for those, by in (([32], 96), (sizes, 96), (sizes, 32))
        )
        mean = accumulated(
            mlp(),
            [32],
            lambda z, t: F.mse_loss(z, wanted[t]),
            torch.arange(32),
        )
        assert max(error(whole, mean), error(parts, mean)) < 1e-12
        assert error(by_samples, 3 * mean) < 1e-12


def test_parts_of_ctc_loss():
    """(`F.ctc_loss` divides each sample by its target's length first: weight each part's mean by its share of the samples.)"""
    torch.manual_seed(0)
    logits = torch.randn(9, 6, 4, dtype=torch.float64).log_softmax(2)
    lengths, targets = torch.tensor([1, 4, 2, 1, 3, 2]), torch.ones(6, 4).long()
    targets[:, 1::2] = 2

    def loss(rows, reduction="mean"):
        frames = torch.full((len(lengths[rows]),), 9)
        given = logits[:, rows], targets[rows], frames, lengths[rows]
        return F.ctc_loss(*given, reduction=reduction)

    first, rest, whole = slice(0, 2), slice(2, 6), slice(0, 6)
    by_share = loss(first) * 2 / 6 + loss(rest) * 4 / 6
    torch.testing.assert_close(by_share, loss(whole))
    for count in (6, lengths.sum()):
        assert not torch.isclose(loss(whole, "sum") / count, loss(whole))


def parts_and_whole(model, X, y, num_parts, of=F.cross_entropy):
    """The gradients of each part's share of the mean, and that of the whole."""
    found = []
    for size in (len(y) // num_parts, len(y)):
        for x, t in zip(X.split(size), y.split(size), strict=True):
            model.zero_grad()
            (of(model(x), t, reduction="sum") / len(y)).backward()
            found.append(gradient_of(model).clone())
    return found[:-1], found[-1]


@pytest.mark.parametrize("deep", [False, True])
def test_float32_agrees_to_rounding(deep):
    """float32 gradients agree to five or six digits, not bitwise: the sums are taken in another order."""
    if deep:
        torch.manual_seed(0)
        layers = [nn.Conv2d(1, 16, 3, padding=1)]
        for _ in range(20):
            layers += [nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1)]
        model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 10))
        X, y = torch.randn(32, 1, 8, 8), torch.randint(10, (32,))
    else:
        model = mlp(torch.float32)
        X, y = rows_and_classes(32, torch.float32)
    together = []
    for num_parts in (2, 4, 8, 32):
        parts, whole = parts_and_whole(model, X, y, num_parts)
        together.append(sum(parts))
        assert error(together[-1], whole) < (1e-5 if deep else 1e-6)
    assert not all(torch.equal(one, whole) for one in together)


def test_float32_where_the_terms_cancel():
    """To fewer where the terms cancel, as near a minimum."""
    torch.manual_seed(0)
    X, y = torch.randn(256, 20), torch.randn(256, 3)
    model = nn.Linear(20, 3, bias=False)
    parts, whole = parts_and_whole(model, X, y, 8, F.mse_loss)
    assert error(sum(parts), whole) < 1e-6
    best = torch.linalg.lstsq(X.double(), y.double()).solution
    with torch.no_grad():
        model.weight.copy_(best.T)
    parts, whole = parts_and_whole(model, X, y, 8, F.mse_loss)
    apart = (sum(parts) - whole).norm()
    assert apart / whole.norm() > 1e-5
    assert apart / sum(part.norm() for part in parts) < 1e-6


def test_three_calls():
    """`backward()` adds to `.grad`. `step()` uses what is there. `zero_grad()` clears it. (Clipping and a scaler's `unscale_` rescale what is there: once per window, therefore, before the step.)

    `backward()` adds, `step()` uses, `zero_grad()` clears. Nothing is averaged for you.

    `backward()` *adds* to `.grad`, so one can run the eight one after another and step once.
    """
    for kind in (torch.optim.SGD, torch.optim.Adam):
        weight = nn.Parameter(torch.ones(1))
        one = kind([weight], lr=0.1)
        for _ in range(2):
            (3 * weight).sum().backward()
        assert weight.grad == 6
        nn.utils.clip_grad_norm_([weight], 3.0)
        assert weight.grad.item() == pytest.approx(3)
        one.step()
        assert weight.grad.item() == pytest.approx(3)
        one.zero_grad()
        assert weight.grad is None
        weight.grad = torch.ones(1)
        one.zero_grad(set_to_none=False)
        assert weight.grad == 0
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(weight.sum()).backward()
        assert weight.grad == 4
        scaler.unscale_(one)
        assert weight.grad == 1


def test_why_it_saves_memory():
    """The forward pass keeps what the backward pass will need. `backward()` lets go of it. If each part goes backward before the next one goes forward, there is never more than one part's graph. If you add up the losses and go backward once at the end, all graphs are there together. The gradient is the same, and nothing is saved.

    Go backward on each part before the next goes forward, or no memory is saved.
    """
    X, y = torch.randn(64, 6).double(), torch.randint(3, (64,))
    peaks, gradients = {}, {}
    for strategy, parts in (("whole", 1), ("each", 4), ("once", 4)):
        model, waiting = mlp(), []
        with saved_tensor_bytes([*model.parameters(), X, y]) as saved:
            for x, t in zip(X.chunk(parts), y.chunk(parts), strict=True):
                waiting.append(F.cross_entropy(model(x), t) / parts)
                if strategy == "each":
                    waiting.pop().backward()
                    assert saved.live_bytes == 0
            if waiting:
                sum(waiting).backward()
        peaks[strategy] = saved.peak_bytes
        gradients[strategy] = gradient_of(model)
    assert peaks["each"] < 0.3 * peaks["whole"]
    assert peaks["once"] > 0.95 * peaks["whole"]
    assert error(gradients["each"], gradients["once"]) < 1e-12


@pytest.mark.parametrize("parts", [2, 4, 32])
def test_batch_norm_and_others(parts):
    r"""Under batch normalization in training it depends on the mean and the variance of whatever else is in the *micro*-batch. No weighting repairs that: the parts compute another function.

    An error of $10^{-16}$ is rounding.

    Its running statistics also move once per *micro*-batch, as if there had been that many batches.

    | normalize per sample: group norm, layer norm | exact | another architecture |

    | batch norm in `eval()`: fixed statistics | exact | only where the statistics are good: fine-tuning |
    """

    def gap(layer, train=True):
        found = []
        for k in (1, parts):
            model = mlp(torch.float64, layer()).train(train)
            found.append(
                accumulated(
                    model,
                    [64 // k] * k,
                    lambda z, t, k=k: F.cross_entropy(z, t) / k,
                )
            )
        return error(found[1], found[0]), model

    for per_sample in (
        lambda: nn.LayerNorm(8),
        lambda: nn.GroupNorm(2, 8),
        lambda: nn.RMSNorm(8),
    ):
        assert gap(per_sample)[0] < 1e-14
    far, model = gap(lambda: nn.BatchNorm1d(8))
    assert far > 0.01
    assert model[1].num_batches_tracked == parts
    fixed, model = gap(lambda: nn.BatchNorm1d(8), train=False)
    assert fixed < 1e-14
    assert model[1].num_batches_tracked == 0


def test_batch_norm_with_two_samples_each():
    """In training the gradient of the batch-norm network is another one, and with 32 parts of two samples each the error is larger than the gradient."""
    for seed in range(3):
        found = []
        for k in (1, 32):
            torch.manual_seed(seed)
            model = digit_mlp(norm="batch").double()
            X, y = torch.rand(64, 1, 8, 8).double(), torch.randint(10, (64,))
            for x, t in zip(X.chunk(k), y.chunk(k), strict=True):
                (F.cross_entropy(model(x), t) / k).backward()
            found.append(gradient_of(model))
        assert error(found[1], found[0]) > 1


def test_dropout_draws_numbers():
    """It treats samples alone, but draws random numbers: both ways are right, and equal only if the same numbers are drawn."""

    class Masked(nn.Module):
        def forward(self, x):
            keep, masks[:] = masks[: len(x)], masks[len(x) :]
            return x * torch.stack(keep)

    def draw_in_between(module, inputs):
        torch.rand(5)

    found = {}
    for k in (1, 4):
        torch.manual_seed(3)
        masks = list((torch.rand(32, 8) > 0.5).double())
        for name, layer in (("same", Masked()), ("other", nn.Dropout(0.5))):
            model = mlp(torch.float64, layer)
            if k > 1:  # other draws in between
                model.register_forward_pre_hook(draw_in_between)
            found[name, k] = accumulated(
                model,
                [32 // k] * k,
                lambda z, t, k=k: F.cross_entropy(z, t) / k,
            )
    assert error(found["same", 4], found["same", 1]) < 1e-12
    assert error(found["other", 4], found["other", 1]) > 0.05


@pytest.mark.parametrize(
    ("make", "at_least"),
    [
        (lambda: nn.LayerNorm(8), 0),
        (lambda: nn.GroupNorm(2, 8), 0),
        (lambda: nn.BatchNorm1d(8), 0.05),
        # whatever the seed
        (lambda: nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5)), 0.05),
        (lambda: nn.utils.spectral_norm(nn.Linear(8, 8)), 1e-3),
        (
            lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)),
            1e-8,
        ),
    ],
)
def test_layers_that_keep_the_update(make, at_least):
    """The gradient is then that of the 256, up to rounding, if the parts are weighted rightly, no hook clips their gradients, and no layer and no loss looks at the whole batch, draws random numbers or, as spectral norm, changes with each pass.

    *Correct*, for layers and losses that look at one sample at a time, draw nothing and do not change from pass to pass.
    """
    found = []
    for k in (1, 4):
        torch.manual_seed(5)
        found.append(
            accumulated(
                mlp(torch.float64, make()),
                [32 // k] * k,
                lambda z, t, k=k: F.cross_entropy(z, t) / k,
            )
        )
    off = error(*found[::-1])
    assert off > at_least if at_least else off < 1e-12


def test_a_hook_that_clips_parts():
    """if the parts are weighted rightly, no hook clips their gradients, and"""
    found = []
    for k in (1, 4):
        torch.manual_seed(5)
        model = mlp(torch.float64)
        for one in model.parameters():
            one.register_hook(lambda g: g.clamp(-0.001, 0.001))
        found.append(
            accumulated(
                model,
                [32 // k] * k,
                lambda z, t, k=k: F.cross_entropy(z, t) / k,
            )
        )
    assert error(*found[::-1]) > 0.1


@pytest.mark.parametrize(
    "spectral",
    [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm],
)
def test_spectral_norm_moves_with_each_pass(spectral):
    """*Spectral norm* in training (chapter 07) moves its two vectors with each forward pass: each part has slightly other weights."""
    x = torch.randn(4, 8)
    for train in (True, False):
        torch.manual_seed(6)
        layer = spectral(nn.Linear(8, 8)).train(train)
        vectors, weights = [], []
        for _ in range(2):
            layer(x)
            weights.append(layer.weight.detach().clone())
            vectors.append([one.clone() for one in layer.buffers()])
        assert len(vectors[0]) == 2
        for before, after in zip(*vectors, strict=True):
            assert torch.equal(before, after) != train
        if not train:
            assert torch.equal(*weights)
        elif spectral is nn.utils.spectral_norm:  # read before it moves
            assert 0 < error(*weights) < 0.5


@pytest.mark.parametrize("loss", ["contrastive", "dice", "balance"])
def test_losses_that_are_no_sums(loss):
    """**Losses that are not sums over samples** fail in the same way, whatever the layers are

    The negatives of a micro-batch are those of the micro-batch. Accumulating does not make their batch larger.

    Batch norm in training sees the micro-batch, and so does a contrastive loss. No weighting repairs that
    """
    sizes = []

    def loss_of(z, t):
        if loss == "contrastive":
            scores = z @ (z + t[:, None]).T
            sizes.append(scores.shape[1] - 1)
            return F.cross_entropy(scores, torch.arange(len(z)))
        p, target = z.softmax(1)[:, :2], F.one_hot(t, 3)[:, :2].double()
        if loss == "dice":
            return 1 - 2 * (p * target).sum() / (p.sum() + target.sum())
        return 3 * (p.mean(0) * target.mean(0)).sum()

    whole = accumulated(mlp(), [32], loss_of)
    parts = accumulated(mlp(), [8] * 4, lambda z, t: loss_of(z, t) / 4)
    assert error(parts, whole) > 1e-3
    best = (parts @ whole / parts.square().sum()) * parts
    assert error(best, whole) > 1e-3  # of all weights the best
    if loss == "contrastive":
        assert sizes == [31, 7, 7, 7, 7]


@pytest.mark.parametrize("model", ["mean", "masked mean", "last state"])
@pytest.mark.parametrize("longest", ["of the part", "of the window"])
def test_parts_with_a_padding_of_their_own(model, longest):
    """(And not where each part is padded to its own longest sequence, if the model does not mask the padding: a mean over steps or the last state of a GRU is then another.)"""
    labels = torch.randint(3, (8,))
    sequences = [torch.randint(1, 9, (n,)) for n in (9, 8, 3, 2, 2, 1, 4, 3)]
    whole = nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    embed = nn.Embedding(9, 4, padding_idx=0).double()
    gru = nn.GRU(4, 4, batch_first=True).double()
    head = nn.Linear(4, 3).double()

    def scores(tokens):
        x = embed(tokens)
        if model == "last state":
            return head(gru(x)[0][:, -1])
        if model == "masked mean":
            steps = (tokens != 0).sum(1, keepdim=True)
            return head(x.sum(1) / steps)
        return head(x.mean(1))

    def gradient(num_parts):
        for layer in (embed, gru, head):
            layer.zero_grad()
        for rows in torch.arange(8).chunk(num_parts):
            tokens = whole[rows]
            if longest == "of the part":
                tokens = tokens[:, : int((tokens != 0).sum(1).max())]
            part = F.cross_entropy(
                scores(tokens), labels[rows], reduction="sum"
            )
            (part / 8).backward()
        return torch.cat([embed.weight.grad, head.weight.grad]).flatten()

    exact = model == "masked mean" or longest == "of the window"
    assert (error(gradient(4), gradient(1)) < 1e-12) == exact


def test_a_penalty_on_the_weights():
    """(A penalty on the weights does not fail: add it once per window, not to each part.)"""

    def gradient(sizes, with_penalty):
        model, (X, y) = mlp(), rows_and_classes()
        for i, (x, t) in enumerate(
            zip(X.split(sizes), y.split(sizes), strict=True)
        ):
            loss = F.cross_entropy(model(x), t, reduction="sum") / 32
            if i in with_penalty:
                loss = loss + 0.1 * model[0].weight.abs().sum()
            loss.backward()
        return gradient_of(model)

    whole = gradient([32], [0])
    for once in range(3):
        assert error(gradient([20, 8, 4], [once]), whole) < 1e-12
    assert error(gradient([20, 8, 4], range(3)), whole) > 0.5


def test_beside_steps_on_small_batches():
    """Beside steps on the same small batches accumulation saves only optimizer steps: as many passes, fewer updates. And it holds the gradients during the forward passes that follow."""

    class Counting(TorchDispatchMode):
        """Counts operations, in an optimizer's step and elsewhere."""

        def __init__(self):
            super().__init__()
            self.place, self.seen = "passes", {"passes": 0, "steps": 0}

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            self.seen[self.place] += 1
            return operation(*args, **(kwargs or {}))

    held, operations = [], []
    for k in (1, 4):
        model, steps, passes = mlp(), 0, []

        def note(module, inputs, model=model, passes=passes):
            passes.append(any(p.grad is not None for p in model.parameters()))

        model.register_forward_pre_hook(note)
        X, y = rows_and_classes()
        adamw = torch.optim.AdamW(model.parameters())
        with Counting() as count:
            for i, (x, t) in enumerate(
                zip(X.split(4), y.split(4), strict=True)
            ):
                (F.cross_entropy(model(x), t) / k).backward()
                if (i + 1) % k == 0:
                    count.place = "steps"
                    adamw.step()
                    adamw.zero_grad()
                    count.place = "passes"
                    steps += 1
        held.append((len(passes), steps, sum(passes)))
        operations.append(count.seen)
    assert held == [(8, 8, 0), (8, 2, 6)]
    plain, summed = operations
    assert plain["passes"] <= summed["passes"]
    assert plain["steps"] > 3 * summed["steps"] > 0


def test_a_threshold_for_clipping_means_something_else():
    """and a threshold for clipping means something else."""
    norms = []
    for divide in (False, True):
        model = mlp()
        accumulated(
            model,
            [16, 16],
            lambda z, t, d=divide: F.cross_entropy(z, t) / (1 + d),
        )
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
    assert norms[0].item() == pytest.approx(2 * norms[1].item())


@pytest.fixture
def one_process(tmp_path: Path):
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("around", ["nothing", "backward", "both"])
def test_no_sync_stands_around_the_forward_pass(one_process, around):
    """`DistributedDataParallel` averages gradients between processes in the backward pass after each forward pass. While accumulating, only the last of a window has to. `no_sync()` skips it, and must stand around the **forward** pass too:

    It is the forward pass that prepares the exchange. Around `backward()` alone, `no_sync` still lets every part exchange its gradients: right numbers, all of the cost, and no sign of it.

    DDP's `no_sync()` stands around forward and backward of all but the last part (with `static_graph=True`, from the second step on).
    """
    model, exchanges = mlp(), []
    wrapped = DistributedDataParallel(model)

    def count(state, bucket):
        exchanges.append(bucket.index())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    wrapped.register_comm_hook(None, count)
    X, y = rows_and_classes()
    for i, (x, t) in enumerate(zip(X.chunk(4), y.chunk(4), strict=True)):
        last = i == 3
        if around == "both" and not last:
            with wrapped.no_sync():
                (F.cross_entropy(wrapped(x), t) / 4).backward()
            continue
        loss = F.cross_entropy(wrapped(x), t) / 4
        if around == "backward" and not last:
            with wrapped.no_sync():
                loss.backward()
        else:
            loss.backward()
    assert len(exchanges) == (1 if around == "both" else 4)
    whole = accumulated(mlp(), [32], F.cross_entropy)
    assert error(gradient_of(model), whole) < 1e-12
    exchanges.clear()
    out = wrapped(X).square().mean()
    out.backward(retain_graph=True)
    out.backward()
    assert len(exchanges) == 1


def test_the_scale_must_not_change_within_a_window():
    """The scale must not change within a window."""
    for changes in (False, True):
        weight = nn.Parameter(torch.ones(1))
        sgd = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for part in range(2):
            if changes and part:
                scaler.update(8.0)
            scaler.scale(weight.sum()).backward()
        scaler.unscale_(sgd)
        assert (weight.grad == 2) == (not changes)


def test_gradients_of_bfloat16(on_ranks, tmp_path):
    """Parameters that *are* bfloat16 have bfloat16 gradients, and small parts are lost in the sum. In PyTorch 2.13 `param.grad_dtype = torch.float32` keeps the sum in float32; a `deepcopy` of the model or a file loses it without a word, and under DDP the backward pass raises."""
    if not hasattr(torch.Tensor, "grad_dtype"):
        pytest.skip("this torch is older")
    for kept in (False, True):
        weight = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
        if kept:
            weight.grad_dtype = torch.float32
        for _ in range(1000):
            # as from a part in float32: 1 is lost beside 256 in bfloat16
            weight.sum().backward()
        assert weight.grad.dtype == (torch.float32 if kept else torch.bfloat16)
        assert weight.grad == (1000 if kept else 256)
    line = nn.Linear(2, 1, bias=False).bfloat16()
    line.weight.grad_dtype = torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert copy.deepcopy(line).weight.grad_dtype == torch.bfloat16
        torch.save(line, tmp_path / "line.pt")
        loaded = torch.load(tmp_path / "line.pt", weights_only=False)
        assert loaded.weight.grad_dtype == torch.bfloat16

    def backward(rank, group):
        own = copy.deepcopy(line)  # with a shared one, ranks may wait for ever
        own.weight.grad_dtype = torch.float32
        wrapped = nn.parallel.DistributedDataParallel(own, process_group=group)
        wrapped(torch.ones(1, 2).bfloat16()).sum().backward()

    with pytest.raises(RuntimeError, match="BFloat16"):
        on_ranks(backward, 2)


def test_optimizers_with_gradients_of_another_dtype():
    """`torch.optim.SGD` steps on such a gradient, unless it is `fused` or compiled; `torch.optim.AdamW` raises a `RuntimeError`."""
    if not hasattr(torch.Tensor, "grad_dtype"):
        pytest.skip("this torch is older")
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        for options in (
            {},
            {"foreach": False},
            {"foreach": True},
            {"fused": True},
        ):
            weight = nn.Parameter(torch.ones(3, 3, dtype=torch.bfloat16))
            weight.grad_dtype = torch.float32
            weight.sum().backward()
            optimizer = kind([weight], lr=0.5, **options)
            if kind is torch.optim.AdamW or "fused" in options:
                with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
                    optimizer.step()
                continue
            optimizer.step()
            assert weight.dtype == torch.bfloat16
            assert torch.equal(weight, torch.full_like(weight, 0.5))
            compiled = torch.compile(optimizer.step, backend="eager")
            with pytest.raises(Exception, match="grad_dtype"):
                compiled()


def test_reduction_of_an_empty_part():
    """`reduction="mean"` divides 0 by 0. `reduction="sum"` gives 0, and its gradient is 0 as well, if the logits are finite.

    NaN · 0 is NaN.
    """
    z = torch.randn(3, 2, requires_grad=True)
    ignored = torch.full((3,), -100)
    assert F.cross_entropy(z, ignored).isnan()
    assert (0 * F.cross_entropy(z, ignored)).isnan()
    total = F.cross_entropy(z, ignored, reduction="sum")
    total.backward()
    assert total == 0
    assert not z.grad.any()
    for bad in (torch.nan, torch.inf):
        z = torch.full((3, 2), bad, requires_grad=True)
        F.cross_entropy(z, ignored, reduction="sum").backward()
        assert z.grad.isnan().all()


def test_hints_of_the_exercises():
    """`X.chunk(num_micro)` gives the parts in order

    `itertools.islice(iterator, k)` takes the next k items, or as many as there are.

    A deep copy of a parameter comes without its `.grad`.

    n micro-batches give ⌈n / k⌉ steps. If you step at multiples of k and once more after the loop, n = 4, k = 2 gets a third.

    `.item()` makes a float. What you divided already adds up to the mean; what you did not divide adds up to `num_micro` times the mean.

    Call `iter(loader)` once, before the loop; an empty list means the end.

    `named_children()` gives the layers right below a module, each once, and `setattr(module, name, new_layer)` replaces one, also in an `nn.Sequential`.
    """
    X = torch.arange(12)
    for n in (1, 2, 3, 4, 6, 12):
        assert torch.equal(torch.cat(X.chunk(n)), X)
        assert len(X.chunk(n)) == n
    iterator = iter(range(5))
    taken = [list(itertools.islice(iterator, 2)) for _ in range(4)]
    assert taken == [[0, 1], [2, 3], [4], []]
    model = mlp()
    model(torch.randn(2, 6).double()).sum().backward()
    assert all(p.grad is None for p in copy.deepcopy(model).parameters())
    assert copy.deepcopy(model[0].weight).grad is None
    for n, k in itertools.product(range(1, 9), range(1, 5)):
        iterator = iter(range(n))
        windows = 0
        while list(itertools.islice(iterator, k)):
            windows += 1
        assert windows == math.ceil(n / k)
    assert sum((i + 1) % 2 == 0 for i in range(4)) + 1 == 3
    losses = torch.rand(12)
    for n in (1, 3, 4):
        means = [part.mean().item() for part in losses.chunk(n)]
        assert isinstance(means[0], float)
        assert sum(means) == pytest.approx(n * losses.mean().item())
    loader = range(5)
    assert next(iter(loader)) == next(iter(loader)) == 0
    nested = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert [name for name, _ in nested.named_children()] == ["0", "1"]
    setattr(nested, "1", nn.Identity())
    assert isinstance(nested[1], nn.Identity)
    assert len(nested) == 2
    twice = nn.Sequential(nested[1], nn.Tanh(), nested[1])
    assert [name for name, _ in twice.named_children()] == ["0", "1"]


@pytest.mark.parametrize(
    "shape", [(4, 7), (4, 7, 3), (4, 7, 3, 2), (4, 7, 2, 2, 2)]
)
def test_group_norm_of_one_group(shape):
    """`nn.GroupNorm(1, C)` takes all channels and positions of a sample together, for inputs of any number of dimensions. It has one weight and one bias per channel, as batch norm does.

    A new layer is float32. Give it `dtype=layer.weight.dtype`

    per-sample normalization does, for the norm.
    """
    layer = nn.GroupNorm(1, 7)
    out = layer(3 * torch.randn(shape) + 5).flatten(1)
    torch.testing.assert_close(out.mean(1), torch.zeros(4), rtol=0, atol=1e-5)
    torch.testing.assert_close(
        out.var(1, correction=0), torch.ones(4), rtol=1e-3, atol=0
    )
    assert (
        layer.weight.shape == layer.bias.shape == nn.BatchNorm1d(7).weight.shape
    )
    assert layer.weight.dtype == torch.float32
    with pytest.raises(RuntimeError, match=r"mixed dtype|expected scalar type"):
        layer(torch.randn(shape).double())
    double = nn.GroupNorm(1, 7, dtype=torch.float64)
    x = torch.randn(shape).double()
    assert torch.equal(double(x)[:1], double(x[:1]))


@pytest.mark.parametrize(
    ("mean", "spread", "dtype"),
    [
        (10_000, 4, torch.float32),
        (500, 1, torch.float32),
        (500, 1, torch.float16),
        (500, 1, torch.float64),
    ],
)
def test_group_norm_far_from_zero_in_channels_last(mean, spread, dtype):
    """For images in `torch.channels_last`, or volumes in `torch.channels_last_3d`, float32 or narrower, whose mean is hundreds of times their spread, its variance is off here, on a CPU, but not on their `clone(memory_format=torch.contiguous_format)`."""
    torch.manual_seed(0)
    x = (spread * torch.randn(8, 8, 16, 16) + mean).to(dtype)
    layer = nn.GroupNorm(1, 8, dtype=dtype)

    def off_one(images):
        variances = layer(images).detach().double().flatten(1)
        variances = variances.var(1, correction=0)
        return (variances - 1).abs().max()

    last = x.contiguous(memory_format=torch.channels_last)
    assert (off_one(last) > 0.05) == (dtype != torch.float64)
    plain = {"memory_format": torch.contiguous_format}
    assert off_one(last.clone(**plain)) < 0.01
    assert off_one(x) < 0.01
    places = (spread * torch.randn(8, 1, 1, 64, dtype=torch.float64) + mean).to(
        dtype
    )
    single = places.permute(0, 3, 1, 2)  # (8, 64, 1, 1), as after pooling
    layer = nn.GroupNorm(1, 64, dtype=dtype)
    assert single.contiguous() is single
    assert off_one(single.clone(**plain)) < 0.01
    layer = nn.GroupNorm(1, 8, dtype=dtype)
    volumes = x.reshape(8, 8, 4, 8, 8)
    last = volumes.contiguous(memory_format=torch.channels_last_3d)
    assert (off_one(last) > 0.05) == (dtype != torch.float64)
    assert off_one(volumes) < 0.01


@pytest.mark.parametrize("parts", [2, 8])
def test_a_fraction_of_the_learning_rate(parts):
    """The first two lines lie on each other. The third would have needed an eighth of the learning rate."""
    data = digits()

    def losses(num_parts, lr, divide):
        torch.manual_seed(0)
        model, found = digit_mlp(width=16), []
        sgd = torch.optim.SGD(model.parameters(), lr=lr)
        for _ in range(8):
            pick = torch.randperm(1000)[:64]
            sgd.zero_grad()
            found.append(0.0)
            for part in pick.chunk(num_parts):
                loss = F.cross_entropy(
                    model(data.X_train[part]), data.y_train[part]
                )
                (loss / num_parts if divide else loss).backward()
                found[-1] += loss.item() / num_parts
            sgd.step()
        return torch.tensor(found)

    whole = losses(1, 0.2, True)
    torch.testing.assert_close(losses(parts, 0.2, True), whole)
    torch.testing.assert_close(losses(parts, 0.2 / parts, False), whole)
    assert (losses(parts, 0.2, False) - whole).abs().max() > 0.01


def test_the_two_faults_raise_nothing():
    """It has two faults, and neither raises an error."""
    model, steps = mlp(), 0
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    X, y = rows_and_classes(35)
    for i, (x, t) in enumerate(zip(X.split(7), y.split(7), strict=True)):
        F.cross_entropy(model(x), t).backward()
        if (i + 1) % 2 == 0:
            sgd.step()
            sgd.zero_grad()
            steps += 1
    assert steps == 2
    assert gradient_of(model).norm() > 0


def test_the_network_of_the_digits():
    """`digit_mlp` is two hidden layers; the norm stands behind each linear layer but the last."""
    for norm, kind in (("batch", nn.BatchNorm1d), ("layer", nn.LayerNorm)):
        layers = [
            type(layer)
            for layer in digit_mlp(norm=norm).modules()
            if isinstance(layer, nn.Linear | kind)
        ]
        assert layers == [nn.Linear, kind] * 2 + [nn.Linear]


def test_what_falls_with_the_part():
    """What is kept for the backward pass falls with the part. Weights, gradients and the optimizer's state do not: gradients stay for the whole window."""
    X, y = torch.randn(64, 6).double(), torch.randint(3, (64,))
    peaks = {}
    for parts in (1, 2, 4, 8):
        model = mlp()
        adam, held = torch.optim.Adam(model.parameters()), set()
        with saved_tensor_bytes([*model.parameters(), X, y]) as saved:
            for x, t in zip(X.chunk(parts), y.chunk(parts), strict=True):
                (F.cross_entropy(model(x), t) / parts).backward()
                held.add(sum(p.grad.nbytes for p in model.parameters()))
        adam.step()
        peaks[parts] = saved.peak_bytes
        states = sum(s["exp_avg"].nbytes for s in adam.state.values())
        assert held == {sum(p.nbytes for p in model.parameters())} == {states}
    for parts in (2, 4, 8):
        assert peaks[parts] == pytest.approx(peaks[1] / parts, rel=0.1)


def test_other_ways_to_save_memory():
    """there are activation checkpointing, evaluation without a graph, and optimizers with a smaller state."""
    X, model = torch.randn(64, 6).double(), mlp()

    def kept(run):
        with saved_tensor_bytes([*model.parameters(), X]) as saved:
            run()
        return saved.peak_bytes

    plain = kept(lambda: model(X))
    assert kept(lambda: checkpoint(model, X, use_reentrant=False)) < plain
    with torch.no_grad():
        assert kept(lambda: model(X)) == 0 < plain
    sizes = []
    for kind in (torch.optim.Adam, torch.optim.Adafactor, torch.optim.SGD):
        wide = nn.Linear(50, 50)
        optimizer = kind(wide.parameters(), lr=0.1)
        wide(torch.ones(1, 50)).sum().backward()
        optimizer.step()
        sizes.append(
            sum(
                tensor.numel()
                for state in optimizer.state.values()
                for tensor in state.values()
                if isinstance(tensor, torch.Tensor)
            )
        )
    assert sizes[0] > 10 * sizes[1] > sizes[2] == 0


def test_who_cuts_the_batch(one_process):
    """with DDP a sampler gives each process its part."""
    model, seen = mlp(), []
    model.register_forward_pre_hook(
        lambda module, inputs: seen.append(len(inputs[0]))
    )
    DistributedDataParallel(model)(rows_and_classes()[0])
    assert seen == [32]  # whatever it is given
    samplers = [DistributedSampler(range(32), 4, rank) for rank in range(4)]
    assert [len(list(one)) for one in samplers] == [8] * 4
    assert sorted(i for one in samplers for i in one) == list(range(32))


@pytest.fixture(scope="module")
def on_ranks() -> Any:
    """Chapter 14's own: ranks as threads, each with a gloo group."""
    path = "solutions/14_multi_gpu/14_multi_gpu.py"
    chapter = read_chapter(Path(__file__).resolve().parents[2] / path)
    names: dict[str, Any] = {}
    for _, source in chapter.setup_source:
        exec(source, names)
    return names["on_ranks"]


@pytest.mark.parametrize("sizes", [[16, 16], [25, 7]])
def test_the_denominator_of_several_processes(on_ranks, sizes):
    """**The denominator** is that of the window over *all* processes. DDP *averages* over them, so multiply by their number:

    Without `world_size` the gradient of two processes is half of the right one. If parts are unequal (tokens!), the processes have to add up their counts first, with `all_reduce`.

    DDP averages: divide by the denominator of all processes, and multiply by their number.
    """
    X, y = rows_and_classes()
    torch.manual_seed(1)
    weight = torch.randn(3, 6).double()

    def gradient(rank, group, factor, own_count=False):
        linear = nn.Linear(6, 3, bias=False).double()
        with torch.no_grad():
            linear.weight.copy_(weight)
        ddp = DistributedDataParallel(linear, process_group=group)
        x, t = X.split(sizes)[rank], y.split(sizes)[rank]
        count = torch.tensor(float(len(t)))
        if not own_count:
            dist.all_reduce(count, group=group)
        loss = F.cross_entropy(ddp(x), t, reduction="sum")
        (loss * factor / count).backward()
        return linear.weight.grad.flatten()

    whole = nn.Linear(6, 3, bias=False).double()
    with torch.no_grad():
        whole.weight.copy_(weight)
    F.cross_entropy(whole(X), y).backward()
    wanted = whole.weight.grad.flatten()
    for one in on_ranks(lambda r, g: gradient(r, g, 2), 2):
        assert error(one, wanted) < 1e-12
    for one in on_ranks(lambda r, g: gradient(r, g, 1), 2):
        assert error(one, wanted / 2) < 1e-12
    for one in on_ranks(lambda r, g: gradient(r, g, 1, True), 2):
        assert (error(one, wanted) < 1e-12) == (sizes[0] == sizes[1])


@pytest.mark.parametrize("overflows", [False, True])
@pytest.mark.parametrize("grows", [False, True])
def test_a_window_with_a_scaler(overflows, grows):
    """Where it has fallen, the step was left out, and the schedule waits."""
    weight = nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([weight], lr=0.1)
    plan = torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=8.0, growth_interval=1 if grows else 100
    )
    for part in range(2):
        slope = math.inf if overflows and part == 1 else 2.0
        scaler.scale(weight.sum() * slope / 2).backward()
    scaler.unscale_(sgd)
    nn.utils.clip_grad_norm_([weight], 1.0)
    scale = scaler.get_scale()
    scaler.step(sgd)
    scaler.update()
    if scaler.get_scale() >= scale:
        plan.step()
    fallen = scaler.get_scale() < scale
    assert fallen == overflows == (weight.item() == 1)
    assert plan.last_epoch == (0 if overflows else 1)
    if not overflows:
        assert weight.item() == pytest.approx(0.9)
        assert (scaler.get_scale() > scale) == grows


def test_where_to_clear_and_to_clip():
    """Then the second one still has the gradients of the first. `zero_grad()` belongs before the first `backward()` of a step, and nowhere between two of them.

    Clipping wants the finished gradient: after the last `backward()` of the window and after any division.

    Add up gradients of *summed* losses, count the samples, and divide all gradients by the count before clipping and the step.

    One clip, one step, one scheduler step per window; the last window is stepped on too, with its own denominator.
    """
    whole = 100 * accumulated(mlp(), [32], F.cross_entropy)
    wanted = whole / whole.norm()
    X, y = rows_and_classes()

    def result(order):
        model, done = mlp(), 0
        for x, t in zip(X.split(20), y.split(20), strict=True):
            if order == "clear in between":
                model.zero_grad()
            loss = 100 * F.cross_entropy(model(x), t, reduction="sum")
            (loss if order == "divide last" else loss / 32).backward()
            done += len(t)
            if order == "clip each part":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if order == "clip, then divide":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if order in ("divide last", "clip, then divide"):
            for p in model.parameters():
                p.grad /= done
        if order != "clip, then divide":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return error(gradient_of(model), wanted)

    assert result("right") < 1e-6
    assert result("divide last") < 1e-6
    for order in ("clear in between", "clip each part", "clip, then divide"):
        assert result(order) > 0.01


def test_the_last_window_has_its_own_denominator():
    """An orange column belongs to a window that is not full: its denominator is its own, smaller, one."""
    X, y = rows_and_classes(20)
    model = mlp()
    whole = accumulated(mlp(), [20], F.cross_entropy)
    for denominator, wanted in ((20, 1.0), (32, 20 / 32)):
        model.zero_grad()
        for x, t in zip(X.split(8), y.split(8), strict=True):
            loss = F.cross_entropy(model(x), t, reduction="sum")
            (loss / denominator).backward()
        assert error(gradient_of(model), wanted * whole) < 1e-12


def test_gaps_of_wrong_answers():
    """Then the parts are weighted wrongly, or both gradients landed in the same `.grad`. With group normalization the result is about 1e-16 in float64.

    A forward pass in training moves running statistics.
    """

    def gap(weigh, same_grad=None):
        full_model = mlp(torch.float64, nn.GroupNorm(1, 8))
        model = mlp(torch.float64, nn.GroupNorm(1, 8))
        if same_grad == "full first":
            model = full_model
        full = accumulated(full_model, [32], F.cross_entropy).clone()
        seen = accumulated(model, [16, 16], weigh)
        if same_grad == "parts first":
            full = accumulated(model, [32], F.cross_entropy)
        return error(seen, full)

    def right(z, t):
        return F.cross_entropy(z, t) / 2

    assert gap(right) < 1e-14
    assert gap(F.cross_entropy) == pytest.approx(1)
    assert gap(right, "full first") == pytest.approx(1)
    assert gap(right, "parts first") == pytest.approx(0.5)
    for train in (True, False):
        norm = nn.BatchNorm1d(6).train(train)
        norm(torch.randn(5, 6) + 3)
        assert norm.running_mean.any() == train


def test_parts_on_a_gpu():
    """On a GPU, with a batch of 8192, the memory falls as much, and the time grows more: a small part leaves most of a large card idle."""

    def ratio(what, kind):
        whole, part = (
            recorded(f"09_gradient_accumulation/{k}_parts_{what}", kind).value
            for k in (1, 32)
        )
        return whole / part

    for kind in ("cpu", "cuda"):
        assert ratio("peak_mib", kind) == pytest.approx(32, rel=0.02)
    assert 1 / ratio("step_ms", "cuda") > 1.3 / ratio("step_ms", "cpu")
