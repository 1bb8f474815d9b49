"""What chapter 11 states about evaluating and about memory, run."""

import contextlib
import gc
import sys
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import classification_report, f1_score, precision_score
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from course_utils import saved_tensor_bytes

BY_CELL = {
    "claim_000_19": [
        "Without `eval()` dropout stays on and batch norm learns from the test data; and `eval()` without `no_grad` saves nothing.",
    ],
    "claim_000_20_24": ["A temporary tensor is freed with its last reference"],
    "claim_003_23": [
        "*Correct*, over all predictions at once. An F1 per batch, averaged, is another number (section 3).",
    ],
    "claim_003_24_26": [
        "Swapped, precision and recall change places, and support counts predictions. Accuracy and the F1 of each class stay the same and hide it.",
    ],
    "claim_003_25": [
        "What needs `labels=` is a class that occurs nowhere, and `zero_division=` says what 0 / 0 is.",
    ],
    "claim_004_06_07": [
        "But `loss` is a tensor with a graph behind it, and so is the sum: every batch hangs its graph onto that of all batches before.",
        "without one the inputs remain as well.",
    ],
    "claim_004_10": ["*Correct*, for what is made inside."],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.record_stream.html": [
        "A tensor that a second stream still reads needs `tensor.record_stream(stream)`, or its memory may be handed out too early.",
    ],
    "https://docs.python.org/3/library/sys.html#sys.last_exc": [
        "Jupyter keeps the last error as well: its value as `sys.last_value` and, since Python 3.12, as `sys.last_exc`, its frames as `sys.last_traceback`.",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear_cross_entropy.html": [
        "with `options=` works through the tokens in chunks, so that the whole never exists.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management": [
        "*Allocated* is what tensors use, *reserved* what PyTorch has taken from the driver.",
        "The first use makes a *context*, a few hundred MiB for the driver and the kernels. Blocks follow as tensors ask for them, and are kept when these are freed.",
        "PyTorch itself gains nothing, but for fragments that may be mended.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution": [
        "on a GPU each `.item()` waits until everything before it has been computed.",
    ],
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf": [
        "the environment variable `PYTORCH_ALLOC_CONF=expandable_segments:True` before the process starts: segments that grow leave fewer gaps",
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

    A score that hangs on the order of the data was computed in training mode.
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


def test_inference_tensors():
    """| `torch.inference_mode()` | as `no_grad`, and no graph can save what it makes for a backward pass | the layers' modes |

    `inference_mode` is stricter: no graph can save its tensors.

    What is made under `inference_mode` can never be saved for a backward pass.
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
    (weight + marked).sum().backward()  # a sum saves nothing
    (weight * marked.clone()).sum().backward()
    assert torch.equal(weight.grad, 1 + marked)
    with torch.no_grad():
        plain = torch.ones(3) * 2
    (weight * plain).sum().backward()


@pytest.mark.parametrize("batch_size", [1, 4, 17])
def test_means(batch_size):
    """17 samples in batches of 4 make four full batches and a last one of a single sample. The mean of the batches' means gives that sample the weight of four.

    With padding it is worse: the mean of a batch is over the labels that count, so its weight is *their* number, not the number of rows. Sums and counts are right in every case.

    Averages: add up sums, count what counts, divide once.
    """
    z, y = torch.randn(17, 3).double(), torch.randint(3, (17,))
    y[1:3] = -100
    pieces = list(zip(z.split(batch_size), y.split(batch_size), strict=True))
    assert len(torch.arange(17).split(4)) == 5
    assert len(torch.arange(17).split(4)[-1]) == 1
    total = sum(F.cross_entropy(*one, reduction="sum") for one in pieces)
    count = sum((t != -100).sum() for _, t in pieces)
    torch.testing.assert_close(total / count, F.cross_entropy(z, y))
    if batch_size == 4:
        by_rows = (
            sum(F.cross_entropy(*one) * len(one[1]) for one in pieces) / 17
        )
        assert abs(by_rows - F.cross_entropy(z, y)) > 1e-3


def test_metrics_that_are_no_means():
    """Precision and F1 are not: weights by the batches' sizes do not repair an F1 averaged over them. Collect all predictions, or counts of hits, and compute once.

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


@pytest.mark.parametrize("backward", [False, True])
def test_a_list_of_losses(backward):
    """each of them holds its graph, and the graph holds inputs and activations. After a backward pass the graph lets go of these, and what is left are its nodes and the outputs you keep."""
    net, losses, inputs = network(), [], []
    for _ in range(5):
        x = torch.randn(8, 6)
        inputs.append(watch(x))
        loss = F.cross_entropy(net(x), torch.zeros(8, dtype=torch.long))
        if backward:
            loss.backward()
        losses.append(loss)
        del x, loss
    assert all((one() is None) == backward for one in inputs)
    assert all(one.grad_fn is not None for one in losses)


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

    Checkpointing pays for memory with a second forward pass. A backward pass takes about two forward passes, so this is a third more arithmetic, and a little more time than that.
    """
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
def test_random_states_and_statistics(momentum, reentrant):
    """Both forms restore the random state for the second pass (`preserve_rng_state`), so dropout drops the same units. Batch norm in training is another matter: its running statistics move twice. Leave such layers outside of the groups, or give them `momentum=1 - (1 - m) ** 0.5`: two moves by that are one move by `m`."""
    x = torch.randn(16, 6, requires_grad=True)
    masks = []

    def dropped(x):
        out = F.dropout(x, 0.5)
        masks.append(out.detach() == 0)
        return out.sin().exp()

    checkpoint(dropped, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(*masks)
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


def test_linear_cross_entropy():
    """`F.linear_cross_entropy` takes the last layer's input and weight

    Older versions of PyTorch lack it.
    """
    if not hasattr(nn, "LinearCrossEntropyOptions"):
        pytest.skip("this torch is older")
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


def test_numbers_of_the_optimizers():
    """So under AdamW a model in float32 takes 16 bytes a parameter before the first activation: weight, gradient, two moments."""
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

    A mean in bfloat16 has two or three digits.
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
    z = torch.randn(3, 4, requires_grad=True) * 1
    classes = z.argmax(dim=1)
    assert classes.dtype == torch.int64
    assert not classes.requires_grad
    assert (
        classes.untyped_storage().data_ptr() != z.untyped_storage().data_ptr()
    )
    assert z.detach().data_ptr() == z.data_ptr()
    assert 1e-3 < torch.finfo(torch.bfloat16).eps < 1e-2
