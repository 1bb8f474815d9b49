"""What chapter 15 states about tricks that meet, run."""

import json
import math
import os
import random
import signal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

BY_CELL = {
    "killed_for_real": [
        "The third one finishes the run, and its digest is compared with that of the run that nothing stopped.",
    ],
    "two_processes": [
        "the number of samples is that of the step on **all** processes, and the loss is multiplied by their number, since the average over processes divides by it;",
        "the exchange waits for the last micro-batch (`no_sync`), even if the processes have unequally many;",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.get_rng_state_all.html": [
        "On a GPU dropout draws from the GPU's own generator, which `torch.get_rng_state()` does not know",
    ],
    "https://doi.org/10.1145/361147.361115": [
        "Between the two lies an optimum, known since 1974",
    ],
}


def net_with_stem():
    stem = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    return nn.Sequential(stem, nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("keeps_still", [False, True])
def test_freezing_meets_train(keeps_still):
    """`requires_grad=False` keeps weights. `net.train()` at the beginning of the epoch wakes up the frozen normalization: its statistics follow the new data.

    Every epoch: `train()`, then the frozen parts back to `eval()`.
    """
    net = net_with_stem()
    net[0].requires_grad_(False).eval()
    before = {k: v.clone() for k, v in net[0].state_dict().items()}
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.1)
    net.train()
    if keeps_still:
        net[0].eval()
    for _ in range(3):
        sgd.zero_grad()
        net(torch.randn(8, 3) + 5).square().sum().backward()
        sgd.step()
    moved = {
        k for k, v in net[0].state_dict().items() if not v.equal(before[k])
    }
    of_norm = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert moved == (set() if keeps_still else of_norm)


@pytest.mark.parametrize("scale", [16.0, 1024.0])
def test_the_scaler_meets_clipping(scale):
    """One step of SGD with a rate of 1, so the length of the update is the length of the gradient that was used: at most 0.1, if the limit is 0.1.

    A factor of 1024, and nothing is said. AdamW would hide it for a while, since it divides gradients by their own size.
    """
    found = {}
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        for unscaled in (True, False):
            weight = nn.Parameter(torch.zeros(4))
            one = kind([weight], lr=1.0)
            scaler = torch.amp.GradScaler("cpu", init_scale=scale)
            scaler.scale(3 * weight.sum()).backward()
            if unscaled:
                scaler.unscale_(one)
            nn.utils.clip_grad_norm_([weight], 0.1)
            scaler.step(one)
            found[kind, unscaled] = weight.norm().item()
    assert found[torch.optim.SGD, True] == pytest.approx(0.1, rel=1e-4)
    assert found[torch.optim.SGD, False] == pytest.approx(0.1 / scale, rel=1e-4)
    hidden = found[torch.optim.AdamW, True], found[torch.optim.AdamW, False]
    assert hidden[0] == pytest.approx(hidden[1], rel=1e-2)


def test_accumulation_meets_the_last_batch():
    """| accumulation, last batch | a mean of means: a small micro-batch counts too much | sums, divided by all samples of the step |"""
    X, y = torch.randn(9, 3).double(), torch.randint(2, (9,))
    whole = nn.Linear(3, 2).double()
    found = {}
    for how, sizes in (
        ("whole", [9]),
        ("means", [4, 4, 1]),
        ("sums", [4, 4, 1]),
    ):
        whole.zero_grad()
        for x, t in zip(X.split(sizes), y.split(sizes), strict=True):
            reduction = "sum" if how == "sums" else "mean"
            loss = F.cross_entropy(whole(x), t, reduction=reduction)
            (loss / (9 if how == "sums" else len(sizes))).backward()
        found[how] = whole.weight.grad.clone()
    torch.testing.assert_close(found["sums"], found["whole"])
    assert not torch.allclose(found["means"], found["whole"], rtol=1e-2)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_freezing_meets_weight_decay_and_clipping(set_to_none):
    """| freezing, weight decay | the optimizer holds frozen weights | give it the trainable ones only |

    | freezing, clipping | what was frozen in mid-run still has its last gradient, and the norm counts it | clear the model's gradients, not the optimizer's |
    """
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    adam = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.5)
    net(100 * torch.ones(1, 2)).sum().backward()
    adam.step()
    net[0].requires_grad_(False)
    held = [p.detach().clone() for p in net[0].parameters()]
    adam.zero_grad(set_to_none=set_to_none)
    net(torch.ones(1, 2)).sum().backward()
    adam.step()
    still = all(
        torch.equal(*pair)
        for pair in zip(held, net[0].parameters(), strict=True)
    )
    assert still == set_to_none  # gradients of zeros move what is held

    net[1].weight.grad = torch.full((2, 2), 50.0)
    net[1].weight.requires_grad_(False)
    trained = torch.optim.SGD([net[1].bias], lr=0.1)
    trained.zero_grad()
    net[1].bias.grad = torch.ones(2)
    assert nn.utils.clip_grad_norm_(net.parameters(), 1.0) > 50
    net.zero_grad()
    net[1].bias.grad = torch.ones(2)
    assert nn.utils.clip_grad_norm_(net.parameters(), 1.0) < 2


def test_scaler_meets_schedule():
    """| scaler, schedule | the plan moves on at a step that was left out | move it only after a step that was made |

    Only a step that was left out lowers the scale: compare `scaler.get_scale()` before and after.
    """
    weight = nn.Parameter(torch.ones(1))
    sgd = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for factor in (1.0, math.inf, 1.0, 1.0, math.nan):
        before, scale = weight.item(), scaler.get_scale()
        sgd.zero_grad()
        scaler.scale(factor * weight.sum()).backward()
        scaler.step(sgd)
        scaler.update()
        assert (weight.item() == before) == (scaler.get_scale() < scale)


@pytest.mark.parametrize("steps", [5, 48])
def test_one_cycle_ends(steps):
    """`OneCycleLR` has a warm-up and moves per step: 4 epochs of 12 steps. (Asked for one step more than that after the run, it raises.)"""
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    plan = torch.optim.lr_scheduler.OneCycleLR(
        sgd, 0.1, total_steps=steps, cycle_momentum=False
    )
    rates = []
    for _ in range(steps):
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        plan.step()
    assert rates[0] < max(rates)
    assert rates[-1] == min(rates)
    with pytest.raises(ValueError, match="Tried to step"):
        plan.step()


def test_what_str_leaves_out():
    """(`str(state)` would not do: it prints four digits, and leaves out the middle of tensors with more than 1000 elements.)"""
    small = torch.tensor([1.00001, 2.0])
    assert str(small) == str(torch.tensor([1.00002, 2.0]))
    assert "..." not in str(torch.zeros(1000))
    large = torch.zeros(1001)
    large[500] = 7
    assert "..." in str(large)
    assert "7" not in str(large)


def test_a_signal_that_cannot_be_caught():
    """−9 is the signal that cannot be caught."""
    assert signal.SIGKILL == 9
    with pytest.raises(OSError, match="Invalid argument"):
        signal.signal(signal.SIGKILL, lambda *_: None)


@pytest.mark.parametrize("cost", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("between_kills", [500, 10_000])
def test_how_often_to_save(cost, between_kills):
    """A kill costs the steps since the last one, on average half of the distance.

    √(2 · cost of a checkpoint · time between kills).
    """
    every = np.arange(1, 2000)
    extra = cost / every + every / 2 / between_kills
    best = every[extra.argmin()]
    assert abs(best - math.sqrt(2 * cost * between_kills)) <= 1
    generator = np.random.default_rng(0)
    lost = generator.uniform(0, 1e6, 4000) % 20
    assert abs(lost.mean() - 10) < 0.5


def test_after_the_exchange():
    """clipping comes after the exchange: then all clip the same gradient.

    What overflows anywhere is infinite or NaN everywhere after the exchange: all leave out the same step, and the scalers stay alike.
    """
    first, second = torch.tensor([3.0, 0.0]), torch.tensor([0.0, 40.0])

    def clipped(gradient):
        weight = nn.Parameter(torch.zeros(2))
        weight.grad = gradient.clone()
        nn.utils.clip_grad_norm_([weight], 1.0)
        return weight.grad

    after = clipped((first + second) / 2)
    before = (clipped(first) + clipped(second)) / 2
    assert not torch.allclose(after, before, rtol=0.1)
    for bad in (math.inf, -math.inf, math.nan):
        for other in (1.0, math.inf):
            assert not math.isfinite((bad + other) / 2)


def test_where_the_log_is(tmp_path):
    """Everything with a state goes into one dict.

    A rename is safe against a killed process.
    """
    path = tmp_path / "last.pt"
    parts = {"net": nn.Linear(2, 2)}
    torch.save({k: v.state_dict() for k, v in parts.items()}, path)
    torch.save({"half": 1}, path.with_suffix(".new"))
    assert "net" in torch.load(path)  # nothing has happened before the rename
    os.replace(path.with_suffix(".new"), path)
    assert torch.load(path) == {"half": 1}
    assert not path.with_suffix(".new").exists()


def test_generators():
    """`shift` is the augmentation, and draws from two generators; dropout draws from the third."""
    of_torch = torch.get_rng_state()
    np.random.normal(0, 0.05, (2, 2))
    random.choice((-1, 0, 1))
    assert torch.equal(of_torch, torch.get_rng_state())
    of_numpy, of_python = np.random.get_state()[1].tolist(), random.getstate()
    F.dropout(torch.ones(4))
    assert not torch.equal(of_torch, torch.get_rng_state())
    assert of_numpy == np.random.get_state()[1].tolist()
    assert of_python == random.getstate()


def test_hints_of_the_exercises():
    """`torch.optim.lr_scheduler.LambdaLR(optimizer, share)` multiplies the rate by `share(t)`. Its state is the number t alone.

    The cosine does. Let the share of the way that is done not exceed 1.

    A dict from the number of the step to its line: a later line replaces an earlier one.
    """
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.4)
    plan = torch.optim.lr_scheduler.LambdaLR(sgd, lambda t: 1 / (t + 1))
    for t in range(4):
        assert sgd.param_groups[0]["lr"] == pytest.approx(0.4 / (t + 1))
        sgd.step()
        plan.step()
    assert plan.state_dict()["last_epoch"] == 4
    assert plan.state_dict()["lr_lambdas"] == [None]
    cosine = [(1 + math.cos(math.pi * share)) / 2 for share in (0.9, 1.0, 1.1)]
    assert cosine[1] < min(cosine[0], cosine[2])
    lines = [json.dumps({"step": 1, "loss": one}) for one in (2.0, 1.0)]
    kept = {one["step"]: one for one in map(json.loads, lines)}
    assert kept == {1: {"step": 1, "loss": 1.0}}
