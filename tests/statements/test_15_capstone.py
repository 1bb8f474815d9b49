"""What chapter 15 states about tricks that meet, run."""

import copy
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

BY_CELL = {
    "killed_for_real": [
        "The third one finishes the run, and its digest is compared with that of the run that nothing stopped.",
        "The random states of this run are three, since it runs on a CPU.",
    ],
    "two_processes": [
        "the number of samples is that of the step on **all** processes, and the loss is multiplied by their number, since the average over processes divides by it;",
        "the exchange waits for the last micro-batch (`no_sync`), even if the processes have unequally many;",
        "With `DistributedDataParallel` (chapter 14) each process has a share of every step, and the gradients are averaged during `backward()`.",
    ],
}

BY_SOURCE = {
    "https://docs.pytorch.org/docs/stable/generated/torch.cuda.get_rng_state_all.html": [
        "On a GPU dropout draws from the GPU's own generator, which `torch.get_rng_state()` does not know",
        "save `torch.cuda.get_rng_state_all()` as well, and give it back with `torch.cuda.set_rng_state_all(...)`.",
    ],
    "https://docs.python.org/3/library/signal.html#signal.SIGKILL": [
        "Killing needs Linux or macOS, as on Colab.",
    ],
    "https://docs.python.org/3/library/os.html#os.replace": [
        "Write under another name in the same folder, then `os.replace`: if the process is killed, the rename has happened or has not.",
    ],
    "https://man7.org/linux/man-pages/man2/fsync.2.html": [
        "Against a power cut it is not: call `os.fsync` on the written file before the rename (chapter 12).",
    ],
    "https://arxiv.org/abs/1706.02677": [
        "warm-up, sums over all workers, no decay for norms.",
    ],
    "https://arxiv.org/abs/1608.03983": ["2016: the cosine."],
    "https://doi.org/10.1145/361147.361115": [
        "Between the two lies an optimum, known since 1974",
    ],
}


def net_with_stem():
    stem = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    return nn.Sequential(stem, nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("keeps_still", [False, True])
def test_freezing_meets_train(keeps_still):
    """`requires_grad=False` gives weights no gradient from then on. `net.train()` at the beginning of the epoch wakes up the frozen normalization: its statistics follow the new data.

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
    assert all(one.grad is None for one in net[0].parameters())
    moved = {
        k for k, v in net[0].state_dict().items() if not v.equal(before[k])
    }
    of_norm = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert moved == (set() if keeps_still else of_norm)


def length_under_adamw(num_weights, scale, unscaled):
    """Of the first update, with gradients from 0.5 to 1.5, clipped to 0.1."""
    weight = nn.Parameter(torch.zeros(num_weights))
    adamw = torch.optim.AdamW([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    slopes = torch.linspace(0.5, 1.5, num_weights)
    scaler.scale((slopes * weight).sum()).backward()
    if unscaled:
        scaler.unscale_(adamw)
    nn.utils.clip_grad_norm_([weight], 0.1)
    scaler.step(adamw)
    return weight.norm().item()


@pytest.mark.parametrize(
    ("num_weights", "scale", "least", "most"),
    [(4, 1024.0, 0.99, 1.0), (10_000, 2.0**22, 0.0, 0.1)],
)
def test_how_long_adamw_hides_it(num_weights, scale, least, most):
    """AdamW would hide it as long as the gradients are large beside its `eps`, since it divides them by their own size."""
    right = length_under_adamw(num_weights, scale, unscaled=True)
    wrong = length_under_adamw(num_weights, scale, unscaled=False)
    assert least <= wrong / right <= most


@pytest.mark.parametrize("scale", [16.0, 1024.0])
def test_the_scaler_meets_clipping(scale):
    """One step of SGD with a rate of 1, so the length of the update is the length of the gradient that was used: at most 0.1, if the limit is 0.1.

    A factor of 1024, and nothing is said.
    """
    for unscaled in (True, False):
        weight = nn.Parameter(torch.zeros(4))
        sgd = torch.optim.SGD([weight], lr=1.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        scaler.scale(3 * weight.sum()).backward()
        if unscaled:
            scaler.unscale_(sgd)
        nn.utils.clip_grad_norm_([weight], 0.1)
        scaler.step(sgd)
        wanted = 0.1 if unscaled else 0.1 / scale
        assert weight.norm().item() == pytest.approx(wanted, rel=1e-4)


def test_accumulation_meets_the_last_batch():
    """| accumulation, last batch | a mean of means: a small micro-batch counts too much | sums, divided by all samples of the step |

    `reduction="sum"`, divided by the number of samples of the whole list, before the backward pass.
    """
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
    """| freezing in mid-run, weight decay | with `set_to_none=False` a frozen weight keeps a gradient of zeros, and decays on | set gradients to None, or leave the weight out of the optimizer |

    | freezing, clipping | what was frozen in mid-run and is in no optimizer any more still has its last gradient, and the norm counts it | clear the model's gradients, not the optimizer's |
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


@pytest.mark.parametrize("left_out", [0, 3])
@pytest.mark.parametrize("steps", [5, 48])
def test_one_cycle_ends(steps, left_out):
    """`OneCycleLR` has a warm-up and moves per step: 4 epochs of 12 steps. (A 49th step of the plan would raise; it makes fewer than 48 where the scaler leaves steps out.)"""
    sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    plan = torch.optim.lr_scheduler.OneCycleLR(
        sgd, 0.1, total_steps=steps, cycle_momentum=False
    )
    rates = []
    scaler = torch.amp.GradScaler("cpu", 2.0, growth_interval=1000)
    for step in range(steps):
        rates.append(sgd.param_groups[0]["lr"])
        before = scaler.get_scale()
        gradient = torch.tensor([torch.inf if step < left_out else 1.0])
        sgd.param_groups[0]["params"][0].grad = scaler.scale(gradient)
        scaler.step(sgd)
        scaler.update()
        if scaler.get_scale() >= before:
            plan.step()
    assert plan.last_epoch == steps - left_out
    if left_out:  # there is room for as many more
        for _ in range(left_out):
            plan.step()
    else:
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


@pytest.mark.parametrize("cost", [0.1, 2.0, 10.0, 50.0])
@pytest.mark.parametrize("between_kills", [500, 100_000])
def test_how_often_to_save(cost, between_kills):
    """A kill costs the steps since the last one, on average half of the distance.

    about √(2 · cost of a checkpoint · time between kills), as long as a checkpoint costs little beside that time.
    """
    about = math.sqrt(2 * cost * between_kills)
    every = np.arange(1, 6000)
    extra = cost / every + every / 2 / between_kills
    assert abs(every[extra.argmin()] - about) <= 1
    # what an interval takes on average where kills come at random
    expected = between_kills * np.expm1((every + cost) / between_kills)
    best = every[(expected / every).argmin()]
    assert (abs(best - about) < max(1, 0.1 * best)) == (
        cost < 0.1 * between_kills
    )
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
    """`torch.optim.lr_scheduler.LambdaLR(optimizer, share)` multiplies the rate by `share(t)`. Its state dict holds t, and not the function.

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
    other = torch.optim.lr_scheduler.LambdaLR(sgd, lambda t: 7.0)
    other.load_state_dict(plan.state_dict())
    assert other.lr_lambdas[0](4) == 7.0
    cosine = [(1 + math.cos(math.pi * share)) / 2 for share in (0.9, 1.0, 1.1)]
    assert cosine[1] < min(cosine[0], cosine[2])
    lines = [json.dumps({"step": 1, "loss": one}) for one in (2.0, 1.0)]
    kept = {one["step"]: one for one in map(json.loads, lines)}
    assert kept == {1: {"step": 1, "loss": 1.0}}


@pytest.mark.parametrize("per_step", [2, 3])
def test_accumulation_meets_the_schedule(per_step):
    """| accumulation, schedule | the plan moves per micro-batch | once per optimizer step |

    One plan for the whole run, counted in optimizer steps.
    """
    rates = {}
    for moves in (1, per_step):
        sgd = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=12)
        for _ in range(12 // per_step):
            sgd.step()
            for _ in range(moves):
                plan.step()
        rates[moves] = sgd.param_groups[0]["lr"]
    assert rates[1] > 0.2  # on its way
    assert rates[per_step] == pytest.approx(0, abs=1e-6)  # over too early


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW]
)
def test_the_best_model_is_a_copy(kind, dtype):
    """`state_dict()` is a dict of the live tensors. Keep `copy.deepcopy` of it.

    | checkpoint, best model | a dict of live tensors | a deep copy, inside the checkpoint |
    """
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to(dtype)
    optimizer = kind(net.parameters(), lr=0.1)
    live = net.state_dict()
    shallow, deep = live.copy(), copy.deepcopy(live)
    before = {name: one.clone() for name, one in live.items()}
    net(torch.randn(4, 3, dtype=dtype)).square().sum().backward()
    optimizer.step()
    for name, now in net.state_dict().items():
        assert torch.equal(live[name], now)
        assert torch.equal(shallow[name], now)
        assert torch.equal(deep[name], before[name])
    assert not torch.equal(live["1.running_mean"], deep["1.running_mean"])
    assert not torch.equal(live["1.bias"], deep["1.bias"])


def test_dropout_after_a_restart(tmp_path):
    """| checkpoint, dropout | other random numbers after the restart | the random states in the file: torch, NumPy, Python, and each GPU's |"""

    def draw():
        dropped = F.dropout(torch.ones(64)).tolist()
        return dropped, np.random.rand(3).tolist(), random.random()

    kind, keys, *more = np.random.get_state()
    held = [torch.get_rng_state(), [kind, keys.tolist(), *more]]
    torch.save([*held, random.getstate()], tmp_path / "draws.pt")
    went_on = draw()
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    other = draw()
    assert all(a != b for a, b in zip(other, went_on, strict=True))
    of_torch, (kind, keys, *more), of_python = torch.load(tmp_path / "draws.pt")
    torch.set_rng_state(of_torch)
    np.random.set_state((kind, np.array(keys, dtype="uint32"), *more))
    random.setstate(of_python)
    assert draw() == went_on


def test_who_is_killed_says_nothing(tmp_path):
    """dies in a step, by `SIGKILL`: no clean-up, no goodbye.

    Each step writes its line of the log at once.

    who is killed says nothing
    """
    program = """
import atexit, os, signal
atexit.register(print, "goodbye")
with open("log", "a") as log:
    log.write("step 1")
print("so far so good")
try:
    os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))
finally:
    print("cleaned up")
"""
    ended = {}
    for name in ("SIGKILL", "SIGINT"):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program],
            cwd=tmp_path,
            env={**os.environ, "SIGNAL": name},
            capture_output=True,
            text=True,
        )
        ended[name] = done.returncode, done.stdout.split("\n")[:-1]
    assert ended["SIGKILL"] == (-9, [])
    assert ended["SIGINT"][1] == ["so far so good", "cleaned up", "goodbye"]
    assert (tmp_path / "log").read_text() == "step 1step 1"


def test_the_order_of_an_epoch():
    """The order of an epoch follows from seed and epoch, so it need not be saved."""

    def order(seed, epoch):
        own = torch.Generator().manual_seed(1000 * seed + epoch)
        return torch.randperm(40, generator=own).tolist()

    before = torch.get_rng_state()
    first = order(3, 0)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(7)
    torch.rand(5)
    assert order(3, 0) == first
    assert first not in (order(3, 1), order(4, 0))


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_that_overflows(kind, bad):
    """If a gradient overflows, the scaler leaves the step out (a disabled one does not), and nothing is raised."""
    for enabled in (True, False):
        weight = nn.Parameter(torch.ones(2))
        optimizer = kind([weight], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=enabled)
        slopes = torch.tensor([1.0, bad])
        scaler.scale((slopes * weight).sum()).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert not norm.isfinite()
        assert torch.equal(weight, torch.ones(2)) == enabled


def test_a_scale_that_is_too_large_at_first():
    """At first the scale is too large: gradients overflow (the gaps in the third figure), steps are left out, the scale falls, and the plan waits (the rate stays level there).

    after enough good steps the scale grows again.
    """
    net = nn.Linear(4, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    plan = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
    scaler = torch.amp.GradScaler("cpu", 2.0**22, growth_interval=3)
    scales, rates, norms = [], [], []
    for _ in range(14):
        sgd.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = net(torch.ones(8, 4)).float().mean()
        scales.append(scaler.get_scale())
        rates.append(sgd.param_groups[0]["lr"])
        scaler.scale(loss).backward()
        scaler.unscale_(sgd)
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0).item())
        scaler.step(sgd)
        scaler.update()
        if scaler.get_scale() >= scales[-1]:
            plan.step()
    left_out = [not math.isfinite(one) for one in norms]
    first_made = left_out.index(False)
    assert left_out[0]
    assert 0 < first_made < 12
    for t, was_left_out in enumerate(left_out[:-1]):
        assert (scales[t + 1] == scales[t] / 2) == was_left_out
        assert (rates[t + 1] == rates[t]) == was_left_out
    grew = [a < b for a, b in itertools.pairwise(scales)]
    assert grew.index(True) == first_made + 2  # after three good steps


def test_a_part_by_its_name():
    """`model.get_submodule("body.norm")` is the part; its `requires_grad_` and `eval` reach all of it."""
    net = nn.Sequential()
    net.add_module("body", nn.Sequential())
    inner = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net.body.add_module("norm", inner)
    net.body.add_module("last", nn.Linear(2, 2))
    part = net.get_submodule("body.norm")
    assert part is inner
    part.requires_grad_(False).eval()
    assert not any(one.training for one in part.modules())
    assert [one.requires_grad for one in net.parameters()] == [False] * 4 + [
        True
    ] * 2
    assert net.training
    assert net.body.training


def test_what_is_each_process_own():
    """Everything is in float64, and in eval mode, since dropout and batch statistics are each process's own."""
    x, norm = torch.randn(8, 3).double(), nn.BatchNorm1d(3).double()
    for training in (True, False):
        norm.train(training)
        whole = copy.deepcopy(norm)(x)
        shares = [copy.deepcopy(norm)(one) for one in x.split([5, 3])]
        assert torch.allclose(torch.cat(shares), whole) != training
        masks = []
        for seed in range(2):  # each process draws its own
            torch.manual_seed(seed)
            masks.append(F.dropout(torch.ones(64), training=training))
        assert torch.equal(*masks) != training


def test_a_norm_that_is_nan(tmp_path):
    """as text: a norm that is NaN equals no other"""
    log = [{"grad_norm": math.nan}]
    torch.save(log, tmp_path / "log.pt")
    loaded = torch.load(tmp_path / "log.pt")
    assert loaded != log
    assert repr(loaded) == repr(log)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_in_the_middle_of_the_plan(kind):
    """The state dicts of both, loaded into what `set_up` made for a new model, go on in the middle of the plan."""

    def made():
        optimizer = kind([nn.Parameter(torch.ones(2))], lr=0.4)
        factor = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda t: 1 / (t + 1)
        )
        return optimizer, factor

    def goes_on(optimizer, plan):
        rates = []
        for _ in range(3):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            plan.step()
        return rates

    first = made()
    goes_on(*first)
    states = [copy.deepcopy(one.state_dict()) for one in first]
    second = made()
    for one, state in zip(second, states, strict=True):
        one.load_state_dict(state)
    assert goes_on(*second) == goes_on(*first)
    alone = made()  # the plan's state does not set the rate
    alone[1].load_state_dict(states[1])
    assert alone[0].param_groups[0]["lr"] == 0.4


@pytest.mark.parametrize("num_samples", [10, 12])
def test_a_mean_over_samples(num_samples):
    """Sum of `loss * num_samples`, divided by the sum of `num_samples`.

    The last batch of an epoch may be smaller.
    """
    losses = torch.rand(num_samples).double() ** 3
    batches = losses.split(4)
    sizes = [len(one) for one in batches]
    means = [one.mean().item() for one in batches]
    whole = sum(m * n for m, n in zip(means, sizes, strict=True)) / sum(sizes)
    assert whole == pytest.approx(losses.mean().item())
    smaller = sizes[-1] < sizes[0]
    assert smaller == (num_samples == 10)
    plain = sum(means) / len(means)
    assert (plain == pytest.approx(whole, rel=1e-9)) == (not smaller)


@pytest.mark.parametrize("evaluates_first", [True, False])
@pytest.mark.parametrize("dies", ["before saving", "after saving"])
def test_evaluation_meets_the_checkpoint(evaluates_first, dies):
    """| checkpoint, evaluation | saved before the evaluation of the same step: it is lost, or made twice | evaluate, then save |

    And look where the evaluation stands: before the checkpoint of the same step.
    """

    def run(saved, dying):
        """Three steps with an evaluation and a checkpoint after each."""
        now = copy.deepcopy(saved) or {"done": 0, "found": []}
        while now["done"] < 3:
            now["done"] += 1
            turns = ["evaluate", "save"]
            for turn in turns if evaluates_first else turns[::-1]:
                at = (now["done"], turn)
                if dying == (*at, "before"):
                    return None, saved
                if turn == "save":
                    saved = copy.deepcopy(now)
                else:
                    now["found"].append(now["done"])
                if dying == (*at, "after"):
                    return None, saved
        return now["found"], saved

    _, saved = run(None, (2, "save", dies.split()[0]))
    found, _ = run(saved, None)
    if evaluates_first:
        assert found == [1, 2, 3]
    else:  # the checkpoint never holds the evaluation of its own step
        assert found == ([1, 3] if dies == "after saving" else [2, 3])


@pytest.mark.parametrize("dies_in", [3, 4, 5])
def test_a_log_after_a_restart(dies_in):
    """| log, restart | steps stand there twice | count each once, the last time |

    A log of a run that was killed may hold steps twice.

    A report that simply reads all lines sees a run that never was; this one keeps, of each step, what came last.
    """
    log = [{"step": n, "by": 1} for n in range(1, dies_in)]
    kept = 2 * ((dies_in - 1) // 2)  # a checkpoint after every second step
    log += [{"step": n, "by": 2} for n in range(kept + 1, 7)]
    steps = [one["step"] for one in log]
    twice = len(steps) - len(set(steps))
    assert twice == dies_in - 1 - kept
    once = {one["step"]: one for one in log}
    assert list(once) == list(range(1, 7))
    assert [one["by"] for one in once.values()] == [
        1 if n <= kept else 2 for n in range(1, 7)
    ]


@pytest.mark.parametrize("max_norm", [0.01, 1e3])
def test_the_order_of_one_step(max_norm):
    """Every step: forward under autocast, sums over all samples, scale, backward; unscale, clip, step, update; the plan if the step was made."""
    torch.manual_seed(0)
    net, X, y = nn.Linear(5, 3), torch.randn(7, 5), torch.randint(3, (7,))
    whole = copy.deepcopy(net)
    F.cross_entropy(whole(X), y).backward()
    nn.utils.clip_grad_norm_(whole.parameters(), max_norm)
    torch.optim.SGD(whole.parameters(), lr=0.1).step()
    before = [p.detach().clone() for p in net.parameters()]
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    plan = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
    scaler = torch.amp.GradScaler("cpu", 2.0**23)
    left_out = 0
    while True:
        sgd.zero_grad()
        scale = scaler.get_scale()
        for few, wanted in zip(X.split(3), y.split(3), strict=True):
            with torch.autocast("cpu", torch.float16):
                summed = F.cross_entropy(net(few), wanted, reduction="sum")
            scaler.scale(summed / len(y)).backward()
        scaler.unscale_(sgd)
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        scaler.step(sgd)
        scaler.update()
        if scaler.get_scale() >= scale:
            plan.step()
            break
        assert all(map(torch.equal, before, net.parameters()))
        assert sgd.param_groups[0]["lr"] == 0.1
        left_out += 1
    assert left_out > 0
    assert sgd.param_groups[0]["lr"] == 0.05
    for first, one, other in zip(
        before, net.parameters(), whole.parameters(), strict=True
    ):
        torch.testing.assert_close(
            one - first, other - first, rtol=0.02, atol=1e-5
        )


def test_each_process_has_its_own_states():
    """Each process takes its own share of the rows, in an order that all draw from one seed; for what else it draws it has a seed of its own, and its own random states in the file. The log's loss is the total of all processes, divided by the number of all samples. The parts of the model are at `net.module`."""

    def masks(states):
        drawn = []
        for state in states:
            torch.set_rng_state(state)
            drawn.append(F.dropout(torch.ones(64)).tolist())
        return drawn

    states = []
    for seed in range(2):  # of two processes
        torch.manual_seed(seed)
        states.append(torch.get_rng_state())
    own = masks(states)
    assert own == masks(states)
    assert own[0] != own[1]
    of_rank_0 = masks([states[0], states[0]])
    assert of_rank_0[0] == own[0] == of_rank_0[1] != own[1]
    for one_order in (True, False):
        rows = []
        for rank in range(2):
            order = torch.Generator().manual_seed(0 if one_order else rank)
            rows += torch.randperm(64, generator=order)[rank::2].tolist()
        assert (sorted(rows) == list(range(64))) == one_order
    z, y = torch.randn(6, 3), torch.randint(3, (6,))
    parts = [
        F.cross_entropy(some, few, reduction="sum") / len(y)
        for some, few in zip(z.split(4), y.split(4), strict=True)
    ]
    torch.testing.assert_close(sum(parts), F.cross_entropy(z, y))


def test_all_but_the_head_is_loaded():
    """Weights are loaded, but for the head, whose classes are new."""
    torch.manual_seed(0)
    old, new = (
        nn.ModuleDict({"stem": nn.BatchNorm1d(3), "head": nn.Linear(3, 5)})
        for _ in range(2)
    )
    nn.init.constant_(old["stem"].weight, 3)
    first = new["head"].weight.detach().clone()
    held = old.state_dict()
    held = {k: v for k, v in held.items() if not k.startswith("head.")}
    with pytest.raises(RuntimeError, match="Missing key"):
        new.load_state_dict(held)
    told = new.load_state_dict(held, strict=False)
    assert told.missing_keys == ["head.weight", "head.bias"]
    assert torch.equal(new["stem"].weight, old["stem"].weight)
    assert torch.equal(new["head"].weight, first)


@pytest.mark.parametrize("name", [".unfinished", ".unfinished-4"])
def test_a_name_that_is_refused(tmp_path, name):
    """`torch.save` refuses a name like `.unfinished`, whose only dot is the first character."""
    with pytest.raises(RuntimeError, match="invalid file name"):
        torch.save({}, tmp_path / name)
    for other in (f"{name}.pt", name[1:], "last.unfinished"):
        torch.save({}, tmp_path / other)


@pytest.mark.gpu
def test_the_gpus_own_generator():
    """On a GPU dropout draws from the GPU's own generator, which `torch.get_rng_state()` does not know

    save `torch.cuda.get_rng_state_all()` as well, and give it back with `torch.cuda.set_rng_state_all(...)`.
    """
    x = torch.ones(1000, device="cuda")
    state, states = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    first = F.dropout(x)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(F.dropout(x), first)
    torch.cuda.set_rng_state_all(states)
    assert torch.equal(F.dropout(x), first)
