"""What chapter 11 states about evaluating and about memory, run."""

import contextlib
import functools
import gc
import os
import pickle
import random
import subprocess
import sys
import threading
import types
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import classification_report, f1_score, precision_score
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import (
    checkpoint,
    create_selective_checkpoint_contexts,
)
from torch.utils.flop_counter import FlopCounterMode

from course_grader.chapter.source import read_chapter
from course_utils import digits, recorded, saved_tensor_bytes

BY_CELL = {
    "claim_000_19": [
        "Without `eval()` dropout stays on and batch norm learns from the test data; and `eval()` without `no_grad` still keeps what a backward pass needs.",
    ],
    "claim_000_20_24": [
        "A temporary tensor is freed with its last reference",
        "*Correct*, at once without reference cycles.",
    ],
    "claim_002_26": ["*Half the story:* the cache, not the memory."],
    "claim_003_23": [
        "*Correct*, over all predictions at once. An F1 per batch, averaged, is another number (section 3).",
    ],
    "claim_003_24_26": [
        "Swapped, precision and recall change places, and support counts predictions. Accuracy and the F1 of each class stay the same and hide it.",
        "*Correct:* the truth comes first.",
    ],
    "claim_003_25": [
        "*Half the story:* more classes need nothing in the report (`f1_score` wants an `average=` then).",
        "What needs `labels=` is a class that occurs nowhere, and `zero_division=` says what 0 / 0 is.",
    ],
    "claim_004_06_07": [
        "But `loss` is a tensor with a graph behind it, and so is the sum: every batch hangs its graph onto that of all batches before.",
        "without one the inputs remain as well.",
        "`loss.detach()` does not, and leaks as little (add it up in float32).",
    ],
    "claim_004_10": ["*Correct*, for what is made inside."],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode": [
        "The latter is somewhat faster, and stricter.",
    ],
    "https://lightning.ai/docs/torchmetrics/stable/pages/implement.html": [
        "The package torchmetrics does so",
    ],
    "https://docs.pytorch.org/docs/stable/checkpoint.html": [
        "`use_reentrant=False` is the form to use.",
    ],
    "https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu": [
        "*Offloading* moves what is saved to the CPU: `with torch.autograd.graph.save_on_cpu():`.",
    ],
    "https://docs.pytorch.org/docs/stable/torch_cuda_memory.html": [
        "`torch.cuda.memory._record_memory_history()`, then `torch.cuda.memory._dump_snapshot(path)`; open the file at",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.reset_peak_memory_stats.html": [
        "`torch.cuda.reset_peak_memory_stats()`, then `max_memory_allocated()`",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.memory_summary.html": [
        "`torch.cuda.memory_summary()`: allocated, reserved, retries",
    ],
    "https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp": [
        "the real one also splits and merges blocks.",
        "`empty_cache()` gives cached blocks in which no tensor lives to others.",
    ],
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html": [
        "That is why many loops run their longest batch first: out of memory, if at all, then at once.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/faq.html": [
        "Memory that stays after a crash belongs to a process that still runs, often a worker of a data loader",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.record_stream.html": [
        "A tensor that a second stream still reads needs `tensor.record_stream(stream)`, or its memory may be handed out too early.",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear_cross_entropy.html": [
        "with `options=` works through the tokens in chunks, so that the whole never exists.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management": [
        "*Allocated* is what tensors use, *reserved* what PyTorch has taken from the driver.",
        "The first use makes a *context*, a few hundred MiB for the driver and the kernels. Blocks follow as tensors ask for them, and are kept when these are freed.",
        "PyTorch itself gains nothing, but for fragments that may be mended.",
        "On a GPU, asking the driver for memory is slow and makes the device wait. So PyTorch keeps what was freed and hands it out again.",
        "`nvidia-smi` shows reserved memory, plus the context.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution": [
        "on a GPU each `.item()` waits until everything before it has been computed.",
        "`loss.detach()` is a tensor without the graph, and does not wait for a GPU.",
        "`.item()` waits for a GPU; `loss.detach()` does not, and leaks as little (add it up in float32).",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf": [
        "the environment variable `PYTORCH_ALLOC_CONF=expandable_segments:True` before the process starts (not read where the older `PYTORCH_CUDA_ALLOC_CONF` is set): segments that grow leave fewer gaps",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html": [
        "`empty_cache` frees no tensor.",
    ],
    "https://docs.nvidia.com/deploy/nvidia-smi/index.html": [
        "It needs root and a card that nobody uses",
    ],
}


def network(dtype=torch.float32):
    layers = (
        nn.Linear(6, 8),
        nn.BatchNorm1d(8),
        nn.Dropout(0.5),
        nn.Linear(8, 3),
    )
    return nn.Sequential(*layers).to(dtype)


@pytest.mark.parametrize(
    "context", [contextlib.nullcontext, torch.no_grad, torch.inference_mode]
)
@pytest.mark.parametrize("training", [True, False])
def test_three_switches(training, context):
    """| `model.eval()` | how layers compute: no dropout, running statistics instead of the batch's | autograd records as before |

    | `torch.no_grad()` | autograd: no graph, nothing kept for backward | the layers' modes |

    An evaluation wants 0 in both columns and steady outputs. That takes two switches.

    An evaluation needs one of each kind

    `eval()` sets how layers compute. `no_grad()` and `inference_mode()` switch off the recording.
    """
    net, x = network().train(training), torch.randn(16, 6)
    records = context is contextlib.nullcontext
    with saved_tensor_bytes([*net.parameters(), x]) as saved, context():
        first, second = net(x), net(x)
    assert torch.equal(first, second) == (not training)
    assert net[1].num_batches_tracked == (2 if training else 0)
    assert first.requires_grad == records
    assert bool(saved.peak_bytes) == records
    assert net.training == training


def test_the_other_path_of_an_encoder():
    """(An `nn.TransformerEncoder` with `batch_first=True` may take another path in eval where nothing needs a gradient, as in a frozen one: padding at the end then comes out as 0, or as the bias of its last norm.)"""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 4, 8)
    masked = torch.tensor([[False] * 4, [False, False, True, True]])
    outputs = []
    for grad in (True, False):
        with (
            torch.set_grad_enabled(grad),
            warnings.catch_warnings(action="ignore"),
        ):
            outputs.append(encoder(x, src_key_padding_mask=masked))
    recorded, other = outputs
    assert recorded[masked].all()
    assert not other[masked].any()
    torch.testing.assert_close(recorded[~masked], other[~masked])
    with warnings.catch_warnings(action="ignore"):
        frozen = encoder.requires_grad_(False)(x, src_key_padding_mask=masked)
    assert torch.is_grad_enabled()
    assert not frozen[masked].any()
    last = nn.LayerNorm(8)
    nn.init.constant_(last.bias, 0.5)
    encoder = nn.TransformerEncoder(layer, 2, norm=last).eval()
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        other = encoder(x, src_key_padding_mask=masked)
    assert (other[masked] == 0.5).all()


def test_where_a_switch_holds():
    """The first belongs to the *model* and stays until somebody sets it back. The other two belong to the *thread* and end with their block."""
    for context in (torch.no_grad, torch.inference_mode):
        seen = []
        with context():
            assert not torch.is_grad_enabled()
            other = threading.Thread(
                target=lambda seen=seen: seen.append(torch.is_grad_enabled())
            )
            other.start()
            other.join()
        assert seen == [True]
        assert torch.is_grad_enabled()
    net = network()
    with torch.no_grad():
        net.eval()
    assert not net.training


def test_batch_norm_in_training_mode():
    """In training mode batch norm normalizes by whatever is in the batch.

    Nothing raises an error, unless the last batch holds one image.

    Where a score hangs on the order of the data, look for a layer in training mode, and for a mean over batches.

    *every* layer of the model is in eval mode: with nearly all layers, a row's output then does not depend on the rows beside it.
    """
    net, x = network(), torch.randn(16, 6)
    net[2].eval()
    with torch.no_grad():
        together = net(x)
        apart = torch.cat([net(part) for part in x.split(4)])
        assert not torch.allclose(together, apart, atol=1e-2)
        with pytest.raises(ValueError, match="more than 1 value"):
            net(x[:1])
        net.eval()
        apart = torch.cat([net(part) for part in x.split(4)])
        torch.testing.assert_close(net(x), apart)
        # in eval mode, in two orders, with a last batch of one
        y = torch.tensor([0, 1] * 8)
        y[0] = 2
        order = torch.arange(15, -1, -1)
        for batches, same in ((4, True), (5, False)):
            scores = [
                sum(
                    F.cross_entropy(net(x[part]), y[part]).item()
                    for part in places.split(batches)
                )
                / len(places.split(batches))
                for places in (order, order.flip(0))
            ]
            assert (abs(scores[0] - scores[1]) < 1e-4) == same


def test_inference_tensors():
    """| `torch.inference_mode()` | as `no_grad`, and its new tensors cannot be saved for `backward()` | the layers' modes |

    `inference_mode` is stricter: its new tensors cannot be saved for `backward()`.

    A tensor that is new under `inference_mode` cannot be saved for `backward()`.

    Its new tensors carry a mark. (A view of an older tensor is not new: what `nn.Flatten` gives of a contiguous tensor has no mark.)
    """
    weight = nn.Parameter(torch.ones(3))
    with torch.inference_mode():
        marked, other = torch.ones(3) * 2, torch.ones(3)
        other.add_(1)
    assert marked.is_inference()
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        weight * marked
    with pytest.raises(
        RuntimeError, match="Inplace update to inference tensor"
    ):
        marked.add_(1)
    with pytest.raises(RuntimeError, match="requires_grad=True on inference"):
        marked.requires_grad_()
    older, swapped = torch.ones(1, 3), torch.ones(2, 3, 4).transpose(1, 2)
    with torch.inference_mode():
        views = nn.Flatten()(older), older[0], older.view(3), weight[:2]
        news = older * 1, older.clone(), older[[0]], nn.ReLU()(older)
        news += (nn.Flatten()(swapped),)
    assert not any(view.is_inference() for view in views)
    assert all(new.is_inference() for new in news)
    (weight * views[1]).sum().backward()
    weight.grad = None
    (weight + marked).sum().backward()  # a sum saves nothing
    (weight * marked.clone()).sum().backward()
    assert torch.equal(weight.grad, 1 + marked)
    with torch.no_grad():
        plain = torch.ones(3) * 2
    (weight * plain).sum().backward()
    by_transform = torch.func.grad(lambda w: (w * marked).sum())(torch.ones(3))
    assert torch.equal(by_transform, marked)


@pytest.mark.parametrize("batch_size", [1, 4, 17])
def test_means(batch_size):
    """17 samples in batches of 4 make four full batches and a last one of a single sample. The mean of the batches' means gives that sample the weight of four.

    With padding it is worse: the mean of a batch is over the labels that count, so its weight is *their* number, not the number of rows. Sums and counts are right in both cases. With class weights, and labels as indices, the count is the sum of the labels' weights.

    Averages: add up sums, count what counts, divide once.

    `F.cross_entropy` has `reduction="sum"` and `ignore_index`.
    """
    z, y = torch.randn(17, 3).double(), torch.randint(3, (17,))
    y[1:3] = -100
    pieces = list(zip(z.split(batch_size), y.split(batch_size), strict=True))
    assert len(torch.arange(17).split(4)) == 5
    assert len(torch.arange(17).split(4)[-1]) == 1
    total = sum(F.cross_entropy(*one, reduction="sum") for one in pieces)
    count = sum((t != -100).sum() for _, t in pieces)
    torch.testing.assert_close(total / count, F.cross_entropy(z, y))
    weight = torch.tensor([1.0, 5.0, 0.2]).double()
    total = sum(
        F.cross_entropy(*one, weight, reduction="sum") for one in pieces
    )
    mean = F.cross_entropy(z, y, weight)
    torch.testing.assert_close(total / weight[y[y != -100]].sum(), mean)
    assert abs(total / count - mean) > 1e-3
    if batch_size == 4:
        by_rows = (
            sum(F.cross_entropy(*one) * len(one[1]) for one in pieces) / 17
        )
        assert abs(by_rows - F.cross_entropy(z, y)) > 1e-3


def test_metrics_that_are_no_means():
    """Precision and F1 are not: weights by the batches' sizes do not repair an F1 averaged over them. Collect all predictions, or counts of hits, and compute once.

    Accuracy is a mean over samples, so sums and counts are enough.

    With several processes that means: add up the *counts* of all (`all_reduce`), then divide.

    F1 and its kin are no means: compute them over all predictions, the truth first, all classes listed.
    """
    truth = (torch.rand(96) < 0.3).long()
    guess = torch.where(torch.rand(96) < 0.25, 1 - truth, truth)
    for score in (f1_score, precision_score):
        for sizes in ([48, 48], [60, 36], [10] * 9 + [6]):
            parts = list(
                zip(truth.split(sizes), guess.split(sizes), strict=True)
            )
            weighted = sum(
                len(t) * score(t, g, zero_division=0) for t, g in parts
            )
            assert abs(weighted / 96 - score(truth, guess)) > 1e-4
            hits = sum((t * g).sum() for t, g in parts)
            either = sum((t + g).sum() for t, g in parts)
            assert abs(2 * hits / either - f1_score(truth, guess)) < 1e-6
            right = sum((t == g).sum() for t, g in parts)
            assert right == 96 * (truth == guess).double().mean()


def watch(tensor):
    return weakref.ref(tensor.untyped_storage())


def test_the_last_reference():
    """A tensor's memory is free for reuse the moment the last reference to it goes. No collector has to run, except where objects hold each other in a circle.

    `detach()` cuts off the graph; it copies nothing, so the memory is shared and stays. A view of one element holds all thousand.

    Memory is freed with the last reference. Losses, outputs, views and tracebacks are references.
    """
    gc.disable()
    try:
        weight = torch.ones(1000, requires_grad=True)
        for hold, alive in (
            (lambda t: None, False),
            (lambda t: t[0].item(), False),
            (lambda t: t.clone(), False),
            (lambda t: t[0], True),
            (lambda t: t.detach(), True),
            (lambda t: t.numpy(), True),
            (lambda t: (t * weight).sum(), True),
            (lambda t: (t * weight).sum().detach(), False),
            (lambda t: (t * weight).sum().item(), False),
        ):
            tensor = torch.zeros(1000)
            storage, kept = watch(tensor), hold(tensor)
            del tensor
            assert (storage() is not None) == alive
            del kept
            assert storage() is None
        one, other = [torch.zeros(1000)], []
        storage = watch(one[0])
        one.append(other)
        other.append(one)
        del one, other
        assert storage() is not None
        gc.collect()
        assert storage() is None
    finally:
        gc.enable()


class Keep(torch.autograd.Function):
    """Twice its input, which it keeps for nothing."""

    @staticmethod
    def forward(ctx, x, saves):
        if saves:
            ctx.save_for_backward(x)
        else:
            ctx.x = x
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient, None


@pytest.mark.parametrize("backward", [False, True, "retain_graph"])
def test_a_list_of_losses(backward):
    """each of them holds its graph, and the graph holds inputs and activations. After a backward pass without `retain_graph` or `create_graph` the graph lets go of these where that pass went through it (another head's loss keeps its own part), and what is left are its nodes, the outputs you keep, and inputs that require a gradient themselves.

    After a backward pass through them the inputs are free (unless they require a gradient) and the nodes remain

    (A function of your own that writes a tensor to `ctx.x` keeps it: call `ctx.save_for_backward`.)
    """
    for saves in (False, True):
        x = torch.randn(3, requires_grad=True) * 1
        seen, loss = watch(x), Keep.apply(x, saves).sum()
        if backward:
            loss.backward(retain_graph=backward == "retain_graph")
        del x
        assert (seen() is None) == (saves and backward is True)
    x = torch.randn(3, requires_grad=True) * 1
    seen, loss = watch(x), Keep.apply(x, True).sum()
    torch.autograd.grad(loss, x, create_graph=True)
    del x
    assert seen() is not None
    asking = torch.randn(8, 6, requires_grad=True)
    seen, loss = watch(asking), network()(asking).sum()
    if backward:
        loss.backward(retain_graph=backward == "retain_graph")
    del asking
    assert seen() is not None
    del loss
    assert seen() is None
    net, losses, inputs = network(), [], []
    for _ in range(5):
        x = torch.randn(8, 6)
        inputs.append(watch(x))
        loss = F.cross_entropy(net(x), torch.zeros(8, dtype=torch.long))
        if backward:
            loss.backward(retain_graph=backward == "retain_graph")
        losses.append(loss)
        del x, loss
    assert all((one() is None) == (backward is True) for one in inputs)
    assert all(one.grad_fn is not None for one in losses)
    h = torch.randn(3, requires_grad=True).sin()
    seen, loss, other = watch(h), h.exp().sum(), h.square().sum()
    if backward:
        loss.backward(retain_graph=backward == "retain_graph")
    del h, loss
    assert seen() is not None
    del other
    assert seen() is None


def test_a_traceback_holds():
    """**A traceback holds tensors too.**

    the error keeps every frame it went through, with all local names in them.
    """
    watched = []

    def fails_halfway():
        activations = torch.zeros(1000)
        watched.append(watch(activations))
        raise RuntimeError("out of memory")

    kept = None
    try:
        fails_halfway()
    except RuntimeError as error:
        kept = error
        assert watched[0]() is not None
    assert watched[0]() is not None
    frames = kept.__traceback__
    assert "activations" in frames.tb_next.tb_frame.f_locals
    del frames, kept
    gc.collect()
    assert watched[0]() is None
    assert sys.exc_info() == (None, None, None)


def test_checkpointing():
    """*Activation checkpointing* keeps a few of them, and computes the others again when the backward pass needs them.

    Checkpointing pays for memory with a second forward pass. In matrix products a backward pass takes about two forward passes, so this is a third more arithmetic.

    where our reference for CPUs was measured the step takes half as long again (on an H200, a third).
    """
    for kind, low, high in (("cpu", 1.4, 1.6), ("cuda", 1.28, 1.38)):
        longer, plain = (
            recorded(f"11_evaluation_and_memory/{name}_ms", kind).value
            for name in ("step_checkpointed", "step")
        )
        assert low < longer / plain < high
    net = nn.Sequential(
        *[nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(16)]
    )
    x = torch.randn(8, 32)

    def run(checkpointed):
        net.zero_grad()
        out = x
        for start in range(0, 16, 4):
            part = net[start : start + 4]
            out = (
                checkpoint(part, out, use_reentrant=False)
                if checkpointed
                else part(out)
            )
        return out.sum()

    flops, gradients = {}, {}
    for checkpointed in (False, True):
        with FlopCounterMode(display=False) as counted:
            loss = run(checkpointed)
        forward = counted.get_total_flops()
        with FlopCounterMode(display=False) as counted:
            loss.backward()
        flops[checkpointed] = forward, counted.get_total_flops()
        gradients[checkpointed] = net[0][0].weight.grad.clone()
    assert torch.equal(gradients[True], gradients[False])
    forward, backward = flops[False]
    assert abs(backward / forward - 2) < 0.1
    assert abs(sum(flops[True]) / sum(flops[False]) - 4 / 3) < 0.03


def test_the_older_form():
    """The older form raises an error with keyword arguments and under `torch.autograd.grad`. With inputs that need no gradient, such as the batch itself, it is worse: it only warns, and the layers inside get no gradient."""
    layer = nn.Linear(3, 3)
    x = torch.randn(2, 3, requires_grad=True)
    with pytest.raises(ValueError, match="keyword"):
        checkpoint(lambda x, k: layer(x), x, k=1, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant"):
        torch.autograd.grad(checkpoint(layer, x, use_reentrant=True).sum(), x)
    with pytest.warns(UserWarning, match="None of the inputs"):
        out = checkpoint(layer, x.detach(), use_reentrant=True)
    assert not out.requires_grad
    checkpoint(
        lambda x, k: layer(x), x.detach(), k=1, use_reentrant=False
    ).sum().backward()
    assert layer.weight.grad is not None
    torch.autograd.grad(checkpoint(layer, x, use_reentrant=False).sum(), x)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("momentum", [0.1, 0.5])
def test_random_states_and_statistics(momentum, reentrant, monkeypatch):
    """Both forms restore PyTorch's random state for the second pass (`preserve_rng_state`; of GPUs only those whose tensors are passed by position), so dropout drops the same units. What is drawn from Python's `random`, from NumPy or from a generator of your own is another number then, and the gradient may be wrong. Batch norm in training is another matter: its running statistics move twice (once where the call of `checkpoint` itself is compiled, though the backend `"eager"` raises in the backward pass). Leave such layers outside of the groups, or, where they move twice, give them `momentum=1 - (1 - m) ** 0.5`: two moves by that, one in the forward and one in the backward pass, are one move by `m`, if no other batch passes between them."""
    x = torch.randn(16, 6, requires_grad=True)
    masks = []

    def dropped(x):
        out = F.dropout(x, 0.5)
        masks.append(out.detach() == 0)
        return out.sin().exp()

    checkpoint(dropped, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(*masks)
    looked_at = []
    monkeypatch.setattr(
        torch.utils.checkpoint,
        "get_device_states",
        lambda *given: looked_at.append(given) or ([], []),
    )
    monkeypatch.setattr(
        torch.utils.checkpoint,
        "_get_device_module",
        lambda _: types.SimpleNamespace(_initialized=True),
    )
    checkpoint(lambda *_: dropped(x), use_reentrant=False)
    if not reentrant:
        checkpoint(lambda one: dropped(one), one=x, use_reentrant=False)
    checkpoint(dropped, x, use_reentrant=reentrant)
    assert looked_at[-1] == (x,)
    assert set(looked_at[:-1]) == {()}
    monkeypatch.undo()
    own = torch.Generator().manual_seed(3)
    for draw in (
        random.random,
        lambda: float(np.random.random()),
        lambda: torch.rand((), generator=own).item(),
    ):
        drawn = []

        def scaled(x, draw=draw, drawn=drawn):
            drawn.append(draw())
            return (x * drawn[-1]).exp()

        x.grad = None
        checkpoint(scaled, x, use_reentrant=reentrant).sum().backward()
        first, second = drawn
        assert first != second
        right = first * (x * first).exp()
        assert not torch.allclose(x.grad, right, rtol=1e-3)
    once, twice = (nn.BatchNorm1d(6, momentum=momentum) for _ in range(2))
    mended = nn.BatchNorm1d(6, momentum=1 - (1 - momentum) ** 0.5)
    once(x)
    for norm in (twice, mended):
        checkpoint(norm, x, use_reentrant=reentrant).sum().backward()
    assert twice.num_batches_tracked == 2
    for name in ("running_mean", "running_var"):
        wanted = getattr(once, name)
        assert not torch.allclose(getattr(twice, name), wanted)
        torch.testing.assert_close(getattr(mended, name), wanted)
    if reentrant:
        return
    compiled = nn.BatchNorm1d(6, momentum=momentum)
    torch.compile(
        lambda x: checkpoint(compiled, x, use_reentrant=False),
        backend="aot_eager",
    )(x).sum().backward()
    assert compiled.num_batches_tracked == 1
    torch.testing.assert_close(compiled.running_mean, once.running_mean)
    eager = torch.compile(
        lambda x: checkpoint(compiled, x, use_reentrant=False),
        backend="eager",
    )
    with pytest.raises(RuntimeError, match="inplace operation"):
        eager(x).sum().backward()
    # a compiled layer in a group that is not compiled moves twice again
    inner = nn.BatchNorm1d(6, momentum=1 - (1 - momentum) ** 0.5)
    layer = torch.compile(lambda x: inner(x), backend="aot_eager")
    checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert inner.num_batches_tracked == 2
    torch.testing.assert_close(inner.running_mean, once.running_mean)


def test_linear_cross_entropy():
    """`F.linear_cross_entropy` takes the last layer's input, (tokens, width), and weight

    Older versions of PyTorch lack it.

    In chunks, the losses of the tokens are added up in the dtype of the input, under autocast too: in bfloat16 the mean of many can be wrong by a fifth or more.

    `reduction="none"` and then `.float().mean()` gives it right.

    In float16 leave it: with a mean or a sum, loss scaling does not reach inside.
    """
    if not hasattr(nn, "LinearCrossEntropyOptions"):
        pytest.skip("this torch is older")
    torch.manual_seed(3)
    body, head = nn.Linear(16, 16), nn.Linear(16, 500, bias=False)
    rows, y = torch.randn(256, 16), torch.randint(500, (256,))
    with torch.autocast("cpu", torch.bfloat16):
        h = body(rows)
        assert F.cross_entropy(head(h), y).dtype == torch.float32
        for given in (h, h.float()):
            losses = [
                F.linear_cross_entropy(given, head.weight, y, options=options)
                for options in (None, nn.LinearCrossEntropyOptions())
            ]
            assert [one.dtype for one in losses] == [torch.float32, given.dtype]
            off = abs(losses[1].item() / losses[0].item() - 1)
            assert (off > 1e-3) == (given is h)
    table = 0.1 * torch.randn(4000, 64)
    rows, y = torch.randn(8192, 64), torch.randint(4000, (8192,))
    wanted = F.cross_entropy(rows @ table.T, y)
    for low_rows in (rows.bfloat16(), rows):
        with torch.autocast("cpu", torch.bfloat16):
            mean, each = (
                F.linear_cross_entropy(
                    low_rows,
                    table.to(low_rows.dtype),
                    y,
                    reduction=reduction,
                    options=nn.LinearCrossEntropyOptions(
                        batch_chunk_size=chunk
                    ),
                )
                for reduction, chunk in (("mean", 16), ("none", 16))
            )
        off = abs(mean.item() / wanted.item() - 1)
        assert (off > 0.2) == (low_rows is not rows)
        torch.testing.assert_close(
            each.float().mean(), wanted, rtol=1e-3, atol=0
        )
    h = torch.randn(12, 4, requires_grad=True)
    w = torch.randn(30, 4, requires_grad=True)
    y = torch.randint(30, (12,))
    wanted = torch.autograd.grad(F.cross_entropy(F.linear(h, w), y), (h, w))
    for options in (None, nn.LinearCrossEntropyOptions()):
        loss = F.linear_cross_entropy(h, w, y, options=options)
        for got, one in zip(
            torch.autograd.grad(loss, (h, w)), wanted, strict=True
        ):
            torch.testing.assert_close(got, one)
    # a model that is sure of its answers: tiny gradients
    table = 0.02 * torch.randn(2000, 64)
    y = torch.randint(2000, (4096,))
    h = 14 * table[y] / table[y].square().sum(1, keepdim=True)
    lost = []
    for options in (None, nn.LinearCrossEntropyOptions()):
        low = h.half().requires_grad_()
        loss = F.linear_cross_entropy(low, table.half(), y, options=options)
        (4096.0 * loss).backward()
        lost.append((low.grad == 0).double().mean().item())
    assert lost[0] < 0.01 < 0.3 < lost[1]
    low = h.half().requires_grad_()
    each = F.linear_cross_entropy(
        low,
        table.half(),
        y,
        reduction="none",
        options=nn.LinearCrossEntropyOptions(),
    )
    each.backward(torch.ones_like(each))
    assert (low.grad == 0).double().mean() < 0.01


def test_numbers_of_the_optimizers():
    """So under AdamW a model in float32 takes 16 bytes a trained parameter before the first activation: weight, gradient, two moments."""
    for optimizer, options, numbers in (
        (torch.optim.SGD, {}, 0),
        (torch.optim.SGD, {"momentum": 0.9}, 1),
        (torch.optim.AdamW, {}, 2),
        (torch.optim.Adam, {}, 2),
    ):
        wide = nn.Linear(100, 100)
        one = optimizer(wide.parameters(), lr=0.1, **options)
        wide(torch.ones(1, 100)).sum().backward()
        one.step()
        held = sum(
            tensor.nbytes
            for state in one.state.values()
            for tensor in state.values()
            if tensor is not None
        )
        weights = sum(p.nbytes for p in wide.parameters())
        gradients = sum(p.grad.nbytes for p in wide.parameters())
        per_parameter = (weights + gradients + held) / (weights / 4)
        assert abs(per_parameter - (8 + 4 * numbers)) < 0.01


def test_weighted_f1_tells():
    """*Wrong for the call.*"""
    truth, guess = [1, 1, 0, 1, 1], [0, 1, 0, 0, 1]
    right = classification_report(truth, guess, output_dict=True)
    swapped = classification_report(guess, truth, output_dict=True)
    assert right["weighted avg"] != swapped["weighted avg"]


def test_hints_of_the_exercises():
    """`model.modules()` gives every layer, the model itself included, each once.

    What stands in `finally:` runs with and without an error, and also after a `return`.

    `logits.argmax(dim=1)` is a new tensor of integers: no graph, and no memory shared with the logits. `logits.detach()` shares all of it.

    A mean in bfloat16 has two or three digits at best; on a CPU, with ignored labels, it may be far too small. `logits.double()` before the loss serves all four dtypes. `.float()` is enough for the checks, but takes digits from float64.

    A `with` block ends with an error, too.

    it can be gone through once and has no length.
    """
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert list(net.modules()) == [net, shared, net[1]]
    ran = []

    def returns():
        try:
            return 1
        finally:
            ran.append(1)

    assert returns() == 1
    assert ran == [1]
    with pytest.raises(KeyError), torch.no_grad():
        raise KeyError
    assert torch.is_grad_enabled()
    batches = (one for one in range(3))
    assert [list(batches), list(batches)] == [[0, 1, 2], []]
    with pytest.raises(TypeError, match="len"):
        len(batches)
    z = torch.randn(3, 4, requires_grad=True) * 1
    classes = z.argmax(dim=1)
    assert classes.dtype == torch.int64
    assert not classes.requires_grad
    assert (
        classes.untyped_storage().data_ptr() != z.untyped_storage().data_ptr()
    )
    assert z.detach().data_ptr() == z.data_ptr()
    assert 1e-3 < torch.finfo(torch.bfloat16).eps < 1e-2
    wide = 20000 - torch.rand(500, 10, dtype=torch.float64) / 100
    right, y = wide.argmax(1), torch.randint(10, (500,))
    loss = F.cross_entropy(wide, y)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        low = wide.to(dtype)
        assert torch.equal(low.double().to(dtype), low)
        assert torch.equal(low.double().argmax(1), low.argmax(1))
    assert (wide.float().argmax(1) != right).sum() > 50
    assert abs(F.cross_entropy(wide.float(), y) / loss - 1) > 1e-5
    low = torch.randn(8192, 50).bfloat16()
    y = torch.randint(50, (8192,))
    assert (
        0.9 < F.cross_entropy(low, y) / F.cross_entropy(low.double(), y) < 1.1
    )
    y[::16] = -100  # the first token of each text of 16
    assert F.cross_entropy(low, y) < 0.5 * F.cross_entropy(low.double(), y)


CHAPTER = Path("solutions/11_evaluation_and_memory/11_evaluation_and_memory.py")


@pytest.fixture(scope="module")
def chapters_own() -> Any:
    """What three cells of the chapter define: its counter, its deep network,
    its allocator."""
    chapter = read_chapter(Path(__file__).resolve().parents[2] / CHAPTER)
    wanted = {"live_bytes", "timelines", "caching_allocator", "shortest_form"}
    names = {
        "torch": torch,
        "nn": nn,
        "Tensor": Tensor,
        "weakref": weakref,
        "checkpoint": checkpoint,
        "tree_leaves": tree_leaves,
        "TorchDispatchMode": TorchDispatchMode,
        "network": nn.Linear(2, 2),
        "data": types.SimpleNamespace(X_test=torch.ones(1, 2)),
    }
    for cell in chapter.cells:
        if cell.name in wanted:
            exec(cell.source, names)
    return types.SimpleNamespace(**names)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_batch_of_one_class(dropout):
    """If that is a single class, the mean it takes away is what made the class recognisable."""
    data = digits()
    X, y = data.X_train[:400].flatten(1), data.y_train[:400]
    layers = nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU()
    net = nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(32, 10))
    adam = torch.optim.Adam(net.parameters(), lr=0.02)
    for pick in torch.randint(400, (30, 100)):
        adam.zero_grad()
        F.cross_entropy(net(X[pick]), y[pick]).backward()
        adam.step()
    by_class = y.argsort(stable=True)

    @torch.no_grad()
    def accuracy(places):
        parts = places.split(20)
        hits = [(net(X[part]).argmax(1) == y[part]).sum() for part in parts]
        return sum(hits).item() / 400

    mixed, sorted_by_class = accuracy(torch.randperm(400)), accuracy(by_class)
    net.eval()
    assert accuracy(by_class) > 0.85
    assert mixed > sorted_by_class + 0.2


def test_the_shortest_form(chapters_own):
    """It has three weak points, which exercise 1 repairs: it trains layers that somebody froze in `eval`; it leaves the model in training mode even if it was not; and if the forward pass raises an error, the last lines are never reached."""
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net[1].eval()
    chapters_own.scores_of(net, torch.ones(3, 2))
    assert net[1].training
    chapters_own.scores_of(net.eval(), torch.ones(3, 2))
    assert net.training
    with pytest.raises(RuntimeError):
        chapters_own.scores_of(net, torch.ones(3, 5))
    assert not net.training


def test_where_inference_mode_is_in_the_way():
    """So: `inference_mode` where outputs are only looked at; `no_grad` where they will be used in training (targets of a teacher, an average of weights, features that are cached), also where the model itself keeps some, such as a table that it makes at its first call, or FSDP2's gathered weights."""
    net, student, x = nn.Linear(3, 3), nn.Linear(3, 3), torch.randn(4, 3)
    weight = student.weight.detach()
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            targets, features = net(x).softmax(1), net(x)
            average = net.weight * 0.9
        for use, given in (
            (lambda t: F.cross_entropy(student(x), t).backward(), targets),
            (lambda t: F.mse_loss(student(x), t).backward(), targets),
            (lambda f: student(f).sum().backward(), features),
            (lambda a: a.lerp_(weight, 0.1), average),
        ):
            assert given.isfinite().all()  # looked at
            if context is torch.no_grad:
                use(given)
            else:
                with pytest.raises(RuntimeError, match="nference"):
                    use(given)

        class WithTable(nn.Linear):
            table = None

            def forward(self, x):
                if self.table is None:
                    self.table = torch.arange(3.0)
                return super().forward(x) * self.table

        model = WithTable(3, 3)
        with context():
            model(x)
        if context is torch.no_grad:
            model(x).sum().backward()
        else:
            with pytest.raises(RuntimeError, match="nference"):
                model(x).sum().backward()


@pytest.mark.parametrize("trained_before", [False, True])
def test_inference_mode_and_fsdp(tmp_path, trained_before):
    """also where the model itself keeps some, such as a table that it makes at its first call, or FSDP2's gathered weights."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    try:
        mesh, x = init_device_mesh("cpu", (1,)), torch.ones(2, 3)
        for context in (torch.no_grad, torch.inference_mode):
            net = fully_shard(nn.Linear(3, 3), mesh=mesh)
            if trained_before:
                net(x).sum().backward()
            wrong = context is torch.inference_mode and not trained_before
            with (
                pytest.raises(RuntimeError, match="nference")
                if wrong
                else contextlib.nullcontext()
            ):
                with context():
                    net(x)
                net(x).sum().backward()
    finally:
        dist.destroy_process_group()


def test_what_a_dispatch_mode_is_asked():
    """A dispatch mode is asked about each operation, backward passes included, and a weak reference tells when a storage is gone."""

    class Asked(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            self.names.append(str(operation))
            return operation(*args, **(kwargs or {}))

    weight = torch.randn(3, 3, requires_grad=True)
    with Asked() as asked:
        out = weight.tanh().exp().sum()
        before = len(asked.names)
        out.backward()
    assert {"aten.tanh.default", "aten.exp.default"} < set(asked.names[:before])
    assert "aten.tanh_backward.default" in asked.names[before:]
    one = torch.zeros(3)
    gone = []
    weakref.finalize(one.untyped_storage(), gone.append, True)
    part = one[:1]
    del one
    assert gone == []
    del part
    assert gone == [True]


def test_a_second_attempt():
    """So a second attempt belongs *after* the `except` block, not inside it."""
    watched = []

    def fails():
        activations = torch.zeros(1000)
        watched.append(watch(activations))
        raise RuntimeError("out of memory")

    try:
        fails()
    except RuntimeError:
        assert watched[0]() is not None
    assert watched[0]() is None


JUPYTER = """
import gc, sys, weakref
from IPython.core.interactiveshell import InteractiveShell

FAILS = '''
class Activations(list):
    pass

def fails():
    activations = Activations()
    watched.append(weakref.ref(activations))
    raise RuntimeError("out of memory")

fails()
'''
jupyter = InteractiveShell.instance()
watched = []
jupyter.user_ns |= {"watched": watched, "weakref": weakref}
places = [(sys, "last_value"), (sys, "last_traceback")]
if sys.version_info >= (3, 12):
    places.append((sys, "last_exc"))
places.append((jupyter.InteractiveTB, "tb"))

def alive():
    gc.collect()
    return watched[-1]() is not None

for left in places:
    jupyter.run_cell(FAILS)
    jupyter.run_cell("pass")  # the result of a cell is kept until the next
    for place in places:
        if place != left:
            setattr(*place, None)
    assert alive(), left
    setattr(*left, None)
    assert not alive(), left
jupyter.run_cell(FAILS)
for place in places:
    setattr(*place, None)
assert alive()
jupyter.run_cell("pass")
assert not alive()
jupyter.run_cell(FAILS)
assert alive()
jupyter.run_cell("1 +")
assert alive()
jupyter.run_cell("1 / 0")
assert not alive()

for shows in ("", "; x"):
    made = "x = Activations(); watched.append(weakref.ref(x))" + shows
    for cell in (made, "del x", "pass"):
        jupyter.run_cell(cell, store_history=True)
    assert alive() == bool(shows)
"""


def test_what_jupyter_keeps(tmp_path):
    """Jupyter keeps the last error as well: as `sys.last_value`, `sys.last_traceback` and, since Python 3.12, `sys.last_exc`, and its frames once more as `get_ipython().InteractiveTB.tb` and, until the next cell has ended, as `get_ipython().last_execution_result`. One that is left holds every frame. A small error in another cell, such as `1 / 0` (but no syntax error or unknown magic), takes the place of all of them; then `gc.collect()`.

    What keeps them are names that live on in a loop, lists, tracebacks, and in a notebook the value of a cell's last line (in `Out`).
    """
    done = subprocess.run(
        [sys.executable, "-c", JUPYTER],
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_memory_of_a_step(chapters_own):
    """the forward pass piles up activations, the backward pass takes them down. Under `no_grad` each goes as soon as the next is there.

    What is left at the end are the gradients.

    Activation checkpointing keeps a few activations and computes the rest twice.
    """
    peaks, after_forward = {}, {}
    activation = 64 * 32 * 4
    for depth in (4, 16):
        for kind in ("plain", "checkpointed", "no_grad"):
            deep = chapters_own.deep_network(depth, 32)
            x = torch.randn(64, 32)
            with chapters_own.LiveBytes([*deep.parameters(), x]) as live:
                out = chapters_own.run_deep(deep, x, kind)
                after_forward[kind, depth] = live.now // activation
                if kind != "no_grad":
                    out.backward()
            peaks[kind, depth] = max(live.timeline) // activation
            if kind != "no_grad":
                gradients = sum(p.grad.nbytes for p in deep.parameters())
                assert live.now == gradients + out.nbytes
    assert peaks["no_grad", 4] == peaks["no_grad", 16] <= 3
    for depth in (4, 16):
        # two activations of each of its layers, one input of each other group
        assert after_forward["plain", depth] == 2 * depth
        assert after_forward["checkpointed", depth] == depth // 4 - 1
    assert peaks["checkpointed", 16] < peaks["plain", 16]


@pytest.mark.parametrize("groups", [2, 4])
def test_saved_tensors_and_checkpointing(groups):
    """Off a GPU, *saved tensors* counts the input of each group of layers, and leaves out what the backward pass computes again; the figure above counts both."""
    deep = nn.Sequential(
        *[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(8)]
    )
    x = torch.randn(100, 8)
    with saved_tensor_bytes(deep.parameters()) as saved:
        out = x
        for part in torch.arange(8).split(8 // groups):
            layers = deep[part[0] : part[-1] + 1]
            out = checkpoint(layers, out, use_reentrant=False)
        assert saved.live_bytes == groups * x.nbytes
        out.sum().backward()
    assert saved.peak_bytes == groups * x.nbytes
    with saved_tensor_bytes(deep.parameters()) as saved:
        deep(x).sum().backward()
    assert saved.peak_bytes == 9 * x.nbytes


def test_selective_checkpointing():
    """*Selective* checkpointing keeps the results of some operations, such as matrix products, and computes the cheap ones again: `context_fn=` of `checkpoint` with `create_selective_checkpoint_contexts`."""

    class Counted(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            self.names.append(operation)
            return operation(*args, **(kwargs or {}))

    layers = nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh()
    product, tanh = torch.ops.aten.addmm.default, torch.ops.aten.tanh.default
    for kept, times in (([], (4, 4)), ([product], (2, 4)), ([tanh], (4, 2))):
        choose = functools.partial(create_selective_checkpoint_contexts, kept)
        with Counted() as counted:
            checkpoint(
                nn.Sequential(*layers),
                torch.randn(4, 6),
                use_reentrant=False,
                context_fn=choose,
            ).sum().backward()
        names = counted.names
        assert (names.count(product), names.count(tanh)) == times


def test_peaks_of_linear_cross_entropy(chapters_own):
    """It saves where tokens and words are many beside the width, and may cost more where they are not. Without options it saves nothing. With label smoothing, or with rows as targets, it cannot either: it warns, and makes the whole.

    (The counter does not look into an operation: the chunk that is being worked on is not in the last number.)
    """
    if not hasattr(nn, "LinearCrossEntropyOptions"):
        pytest.skip("this torch is older")
    chunks, seen = nn.LinearCrossEntropyOptions(), set()
    for tokens in (64, 512):
        h = torch.randn(tokens, 16, requires_grad=True)
        w = torch.randn(500, 16, requires_grad=True)
        y = torch.randint(500, (tokens,))
        peaks = []
        for make in (
            lambda h, w, y: F.cross_entropy(F.linear(h, w), y),
            F.linear_cross_entropy,
            functools.partial(F.linear_cross_entropy, options=chunks),
        ):
            with chapters_own.LiveBytes([h, w, y]) as live:
                make(h, w, y).backward()
            h.grad = w.grad = None
            peaks.append(max(live.timeline))
        assert peaks[1] >= peaks[0] > 4 * 500 * tokens
        assert peaks[2] < 4 * 500 * tokens
        seen.add(len(live.timeline))
        rows = F.one_hot(y, 500).float()
        for target, smoothing in ((y, 0.1), (rows, 0.0)):
            with (
                pytest.warns(UserWarning, match="options"),
                chapters_own.LiveBytes([h, w, y]) as whole,
            ):
                F.linear_cross_entropy(
                    h, w, target, label_smoothing=smoothing, options=chunks
                ).backward()
            assert max(whole.timeline) > 4 * 500 * tokens
    assert len(seen) == 1  # as many operations, whatever the chunks

    for tokens, width in ((64, 600), (8, 64)):
        h = torch.randn(tokens, width, requires_grad=True)
        w = torch.randn(500, width, requires_grad=True)
        peaks = []
        for options in (None, chunks):
            with chapters_own.LiveBytes([h, w]) as live:
                F.linear_cross_entropy(
                    h, w, y[:tokens], options=options
                ).backward()
            h.grad = w.grad = None
            peaks.append(max(live.timeline))
        assert peaks[1] > peaks[0]


def test_the_longest_batch_first(chapters_own):
    """Of the orders *longest first* needs the least, because later batches fit into blocks that are there.

    `empty_cache()` lowers the blue area between batches, for others, and here the peak of every order to what is used; the next batch asks the driver again.
    """
    lengths = [50, 90, 30, 160, 60, 120, 40, 200]

    def runs(lengths, empty_after_each=False):
        pool, peak, requests = chapters_own.CachingAllocator(), 0, 0
        for length in lengths:
            blocks = []
            for _ in range(6):
                before = pool.reserved
                blocks.append(pool.take(length))
                requests += pool.reserved > before
            peak = max(peak, pool.reserved)
            for block in blocks:
                pool.give(*block)
            held = pool.reserved
            if empty_after_each:
                pool.empty_cache()
                assert pool.reserved == 0 < held
        assert pool.allocated == 0
        return peak, requests

    least, requests = runs(sorted(lengths, reverse=True))
    assert least < min(runs(lengths)[0], runs(sorted(lengths))[0])
    for order in (lengths, sorted(lengths), sorted(lengths, reverse=True)):
        assert runs(order, empty_after_each=True)[0] == 6 * max(lengths) < least
    for _ in range(100):
        order = [lengths[i] for i in torch.randperm(8)]
        assert runs(order)[0] >= least
        assert runs(order, True)[1] == 6 * 8 > requests


def test_a_sum_of_losses_in_bfloat16():
    """Add up `loss.detach().float()` on the device (a sum in bfloat16 soon stands still), and ask for the number every 50 batches."""
    model = nn.Linear(8, 4, dtype=torch.bfloat16)
    x, y = torch.randn(8, 8, dtype=torch.bfloat16), torch.randint(4, (8,))
    loss = F.cross_entropy(model(x), y)
    assert loss.dtype == torch.bfloat16
    as_it_is, wide = 0.0, 0.0
    for _ in range(2000):
        as_it_is += loss.detach()
        wide += loss.detach().float()
    assert not wide.requires_grad
    assert abs(wide.item() / 2000 - loss.item()) < 1e-3
    assert as_it_is < 0.6 * wide
    assert as_it_is + loss.detach() == as_it_is


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_machine_without_a_gpu(capfd):
    """On a machine without a GPU it does nothing and says nothing.

    No CUDA here, and the CPU allocator has no such counters.
    """
    kept = torch.ones(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.cuda.empty_cache() is None
    assert capfd.readouterr() == ("", "")
    assert kept.sum() == 1000
    assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 0
    assert not hasattr(torch.cpu, "memory_allocated")


def test_a_loss_has_no_dimension():
    """*Correct*: it raises an `IndexError`, whose message says what to do."""
    for loss in (
        F.mse_loss(torch.ones(2), torch.zeros(2)),
        F.cross_entropy(torch.zeros(1, 2), torch.tensor([1])),
    ):
        assert loss.dim() == 0
        with pytest.raises(IndexError, match=r"tensor\.item\(\)"):
            loss.data[0]


@pytest.mark.parametrize("ignored", [0, -100])
def test_hits_that_do_not_count(ignored):
    """Count a label as right only where it also counts: `(predicted == y) & (y != ignore_index)`."""
    y = torch.tensor([ignored, ignored, 1, 2])
    predicted = torch.tensor([0, 0, 1, 1])
    counts = (y != ignored).sum()
    assert ((predicted == y) & (y != ignored)).sum() / counts == 0.5
    assert (((predicted == y).sum() / counts) > 1) == (ignored == 0)


def test_an_empty_list_of_tensors():
    """Begin the list with an empty tensor, or treat the case apart."""
    with pytest.raises((RuntimeError, ValueError), match="non-empty"):
        torch.cat([])
    begun = torch.cat([torch.empty(0, dtype=torch.int64), torch.arange(3)])
    assert begun.tolist() == [0, 1, 2]
    assert begun.dtype == torch.int64


def test_a_report_of_absent_classes():
    """`output_dict=True` gives numbers instead of text.

    `labels=range(num_classes)` lists all classes, and `zero_division=0` says what 0 / 0 is.

    A confusion matrix is all you need: its diagonal, the sums of its rows and those of its columns.
    """
    truth, guess = torch.randint(4, (2, 60))
    truth[truth == 2] = 1  # 2 is no label, 3 no prediction, 4 neither
    guess[guess == 3] = 0
    assert isinstance(classification_report(truth, guess, zero_division=0), str)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = classification_report(
            truth, guess, labels=range(5), output_dict=True, zero_division=0
        )
    assert "4" not in classification_report(
        truth, guess, output_dict=True, zero_division=0
    )
    table = torch.zeros(5, 5).index_put_(
        (truth, guess), torch.ones(60), accumulate=True
    )
    for name, sums in (("precision", table.sum(0)), ("recall", table.sum(1))):
        expected = table.diagonal() / sums.clamp_min(1)
        got = torch.tensor([report[str(c)][name] for c in range(5)])
        torch.testing.assert_close(got, expected)
    assert table.sum(1).tolist() == [
        report[str(c)]["support"] for c in range(5)
    ]


@pytest.mark.parametrize("tracks", [True, False])
def test_what_eval_does_not_reach(tracks):
    """(`eval()` does not reach everything: `F.dropout(x)` drops always, and a batch norm with `track_running_stats=False` knows only the batch.)"""
    x = torch.randn(8, 6)
    norm = nn.BatchNorm1d(6, track_running_stats=tracks)
    norm(x + 3)
    norm.eval()
    assert torch.allclose(norm(x)[:4], norm(x[:4]), atol=1e-4) == tracks

    class Drops(nn.Module):
        def forward(self, x):
            told = {"training": self.training} if tracks else {}
            return F.dropout(x, **told)

    assert (Drops().eval()(torch.ones(99)) == 0).any() != tracks


MIB = 2**20


def test_no_grad_on_a_gpu():
    """On a GPU, with 65536 rows, the allocator counts more than what is saved. `no_grad` saves memory and no time there:"""

    def ratio(what):
        graph, without = (
            recorded(f"11_evaluation_and_memory/{name}_{what}", "cuda").value
            for name in ("forward_with_graph", "forward_no_grad")
        )
        return graph / without

    assert ratio("mib") > 4
    assert ratio("ms") == pytest.approx(1, abs=0.05)


@pytest.mark.gpu
def test_allocated_and_reserved():
    """*Allocated* is what tensors use, *reserved* what PyTorch has taken from the driver.

    On a GPU, asking the driver for memory is slow and makes the device wait. So PyTorch keeps what was freed and hands it out again.

    the real one also splits and merges blocks.

    `empty_cache` frees no tensor.

    `empty_cache()` gives cached blocks in which no tensor lives to others.

    PyTorch itself gains nothing, but for fragments that may be mended.
    """
    gc.collect()
    torch.cuda.empty_cache()
    numbers = torch.cuda.memory_allocated, torch.cuda.memory_reserved
    start = [one() for one in numbers]

    def more():
        now = zip(numbers, start, strict=True)
        return [(one() - before) // MIB for one, before in now]

    kept = torch.ones(64 * MIB // 4, device="cuda")
    whole = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    address = whole.data_ptr()
    assert more() == [128, 128]
    del whole
    assert more() == [64, 128]
    half = torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
    other = torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
    assert address in (half.data_ptr(), other.data_ptr())
    assert more() == [128, 128]
    del half, other
    whole = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    assert (whole.data_ptr(), more()) == (address, [128, 128])
    free = torch.cuda.mem_get_info()[0]
    del whole
    torch.cuda.empty_cache()
    assert more() == [64, 64]
    assert torch.cuda.mem_get_info()[0] >= free + 64 * MIB
    assert kept.sum().item() == kept.numel()


@pytest.mark.gpu
def test_what_a_process_takes():
    """The first use makes a *context*, a few hundred MiB for the driver and the kernels. Blocks follow as tensors ask for them, and are kept when these are freed.

    `nvidia-smi` shows reserved memory, plus the context.
    """
    torch.ones(1, device="cuda")
    program = (
        "import torch\n"
        "one = torch.ones(1, device='cuda')\n"
        "print(torch.cuda.memory_reserved(), flush=True)\n"
        "input()\n"
        "torch.empty(512 * 2**20, dtype=torch.uint8, device='cuda')\n"
        "print(torch.cuda.memory_reserved(), flush=True)\n"
        "input()\n"
    )

    def used():
        asked = subprocess.run(
            [
                "nvidia-smi",
                "--query-gpu=memory.used",
                "--format=csv,noheader,nounits",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(asked.stdout.splitlines()[0])

    before = used()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        reserved = int(other.stdout.readline()) / MIB
        context = used() - before - reserved
        other.stdin.write("\n")
        other.stdin.flush()
        more = int(other.stdout.readline()) / MIB
        shown = used() - before
        other.communicate("\n")
    assert 100 < context < 1000
    assert (reserved, more - reserved) == (2, 512)
    assert shown == pytest.approx(context + more, abs=8)


@pytest.mark.gpu
def test_what_tells_of_memory(python, tmp_path):
    """`torch.cuda.reset_peak_memory_stats()`, then `max_memory_allocated()`

    `torch.cuda.memory_summary()`: allocated, reserved, retries

    `torch.cuda.memory._record_memory_history()`, then `torch.cuda.memory._dump_snapshot(path)`; open the file at
    """
    before = torch.cuda.memory_allocated()
    torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.max_memory_allocated() == before + 32 * MIB
    summary = torch.cuda.memory_summary()
    for words in ("Allocated memory", "GPU reserved memory", "retries"):
        assert words in summary
    path = tmp_path / "memory.pickle"
    python(
        "import torch\n"
        "torch.cuda.memory._record_memory_history()\n"
        "kept = torch.empty(3 * 2**20, dtype=torch.uint8, device='cuda')\n"
        f"torch.cuda.memory._dump_snapshot({str(path)!r})"
    )
    told = pickle.loads(path.read_bytes())
    sizes = [b["size"] for one in told["segments"] for b in one["blocks"]]
    assert 3 * MIB in sizes
    assert any(told["device_traces"])


@pytest.mark.gpu
def test_segments_that_grow(python):
    """the environment variable `PYTORCH_ALLOC_CONF=expandable_segments:True` before the process starts (not read where the older `PYTORCH_CUDA_ALLOC_CONF` is set): segments that grow leave fewer gaps"""
    growing = (
        "import torch\n"
        "for size in (50, 100, 150):\n"
        "    torch.empty(size * 2**20, dtype=torch.uint8, device='cuda')\n"
        "print(torch.cuda.memory_reserved() // 2**20)"
    )
    assert python(growing, PYTORCH_ALLOC_CONF="") == "300"
    expandable = python(growing, PYTORCH_ALLOC_CONF="expandable_segments:True")
    assert 150 <= int(expandable.splitlines()[-1]) <= 160


@pytest.mark.gpu
@pytest.mark.parametrize("told", [False, True])
def test_memory_that_a_second_stream_reads(told):
    """A tensor that a second stream still reads needs `tensor.record_stream(stream)`, or its memory may be handed out too early."""
    torch.cuda.empty_cache()
    second = torch.cuda.Stream()
    tensor = torch.full((MIB,), 3.0, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(second):
        torch.cuda._sleep(1_000_000_000)
        copy = tensor.clone()
    if told:
        tensor.record_stream(second)
    address = tensor.data_ptr()
    del tensor
    another = torch.full((MIB,), 7.0, device="cuda")
    assert (another.data_ptr() == address) == (not told)
    torch.cuda.synchronize()
    assert copy.unique().tolist() == [3.0 if told else 7.0]


@pytest.mark.gpu
def test_what_waits_for_the_gpu(waits):
    """on a GPU each `.item()` waits until everything before it has been computed.

    `loss.detach()` is a tensor without the graph, and does not wait for a GPU.

    `.item()` waits for a GPU; `loss.detach()` does not, and leaks as little (add it up in float32).
    """
    weight = torch.ones(3, device="cuda", requires_grad=True)
    loss = (weight * 2).sum()
    total = torch.zeros((), device="cuda")
    # the first call of a kernel loads it, and may wait
    total.add_(loss.detach())
    assert waits(loss.item)
    assert not waits(lambda: total.add_(loss.detach()))
    assert not waits(lambda: print(loss.detach().shape))
    assert waits(lambda: float(loss))
