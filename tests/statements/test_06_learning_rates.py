"""What chapter 06 states about schedules, groups and decay, run."""

import contextlib
import functools
import inspect
import math
import shutil
import warnings

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import config as inductor
from torch.optim import lr_scheduler, swa_utils
from torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
)

from course_utils import digit_mlp, recorded

BY_CELL = {
    "claim_000_25_002_44": [
        "*Correct*, if it is stepped once at the end of each epoch.",
    ],
    "claim_000_26_002_45": [
        "With the scheduler first the rates have nine epochs, ten and six: the plan runs one epoch ahead.",
    ],
    "claim_004_35": [
        "And AdamW decays by default: 0.01.",
        "AdamW shrinks the weights themselves, by 0.01 · lr if you do not say otherwise.",
    ],
    "claim_004_36": [
        "With a gradient of zeros it depends on the optimizer.",
        "With gradients that are `None`, the default since PyTorch 2.0, these optimizers skip the layer: not one bit changes. A gradient of *zeros* is a gradient.",
        "With `grad=None` it keeps every bit.",
        "it brings along what momentum and Adam's averages remember.",
        "Without such a step plain SGD and AdamW shrink it alike.",
    ],
    "claim_004_37": [
        "a gradient of zeros, by decay, and by momentum also without decay.",
    ],
    "measure": [
        "On the CPU `foreach` still makes an operation for each tensor.",
    ],
}

BY_SOURCE = {
    "https://arxiv.org/abs/2404.06395": [
        "*warm-up, stable, decay* (WSD), a constant rate, and a short fall whenever a finished model is wanted",
    ],
    "https://docs.pytorch.org/docs/stable/optim.html": [
        "For a moment, `foreach` mostly needs memory for another copy of the parameters.",
    ],
    "https://github.com/pytorch/pytorch/releases/tag/v1.1.0": [
        "since PyTorch 1.1 of 2019",
    ],
}


def one_weight():
    return nn.Parameter(torch.ones(1))


def rates_of(make, steps, groups=None, **options):
    sgd = torch.optim.SGD(groups or [one_weight()], lr=1.0, **options)
    plan, seen = make(sgd), []
    for _ in range(steps):
        seen.append([group["lr"] for group in sgd.param_groups])
        sgd.step()
        plan.step()
    return seen


def two_groups():
    return [{"params": [one_weight()]}, {"params": [one_weight()], "lr": 0.1}]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_the_optimizer_holds_tensors(kind):
    """The optimizer holds tensors, not the model. If you replace a layer afterwards, it holds the old one, and the new one is not trained.

    what is in no list is not trained, without a word.
    """
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    one = kind(net.parameters(), lr=0.1, weight_decay=0.1)
    old = net[1]
    old_before = old.weight.detach().clone()
    net[1] = nn.Linear(2, 1)
    assert one.param_groups[0]["params"][2] is old.weight
    before = [p.detach().clone() for p in net.parameters()]
    net(torch.ones(3, 2)).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.step()
    pairs = zip(before, net.parameters(), strict=True)
    assert [torch.equal(*pair) for pair in pairs] == [False, False, True, True]
    assert torch.equal(old.weight, old_before)


def test_groups_that_say_nothing():
    """A group is a dict, and a dict takes any key. A generator can be gone through once, and a group may be empty. A list holds a parameter twice with a warning. Only one slip of five raises an error.

    its own options win, the rest comes from outside, and a misspelt key is no error.
    """
    layer = nn.Linear(2, 2)
    group = {"params": layer.parameters(), "Lr": 1e-4}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = torch.optim.SGD([group], lr=0.1).param_groups[0]
        assert (made["lr"], made["Lr"]) == (0.1, 1e-4)
        once = layer.parameters()
        made = torch.optim.SGD(
            [{"params": once}, {"params": once}]
        ).param_groups
        assert [len(one["params"]) for one in made] == [2, 0]
        torch.optim.SGD([layer.bias])  # the weight is forgotten
    assert "conv1" in "conv10.weight"
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([layer.bias, layer.bias])
    with pytest.raises(ValueError, match="more than one parameter group"):
        torch.optim.SGD([{"params": [layer.bias]}, {"params": [layer.bias]}])


OTHER_VALUES = {
    "lr": 0.05,
    "weight_decay": 0.3,
    "momentum": 0.5,
    "dampening": 0.3,
    "nesterov": True,
    "maximize": True,
    "betas": (0.5, 0.6),
    "eps": 0.5,
    "amsgrad": True,
    "decoupled_weight_decay": True,
    "lr_decay": 0.9,
    "initial_accumulator_value": 5.0,
    "rho": 0.4,
    "alpha": 0.5,
    "centered": True,
    "etas": (0.3, 1.7),
    "step_sizes": (1e-2, 0.02),
    "lambd": 0.5,
    "beta2_decay": -0.3,
    "ns_steps": 2,
}


@pytest.mark.parametrize(
    "kind",
    [
        "SGD",
        "Adam",
        "AdamW",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "RMSprop",
        "Rprop",
        "ASGD",
        "Adafactor",
        "Muon",
    ],
)
def test_a_group_own_options_win(kind):
    """*Both correct*, for `weight_decay`, `momentum` and whatever else the step computes with. `differentiable` and Adagrad's `initial_accumulator_value` count from outside alone."""
    make = getattr(torch.optim, kind)
    known = inspect.signature(make).parameters

    def after_steps(outer, own):
        weight = nn.Parameter(torch.tensor([[1.0, -2.0], [0.5, 3.0]]))
        one = make([{"params": [weight], **own}], **outer)
        for step in range(3):
            weight.grad = torch.cos(3 * weight.detach() + step)
            one.step()
        return weight.detach()

    for name in OTHER_VALUES.keys() & known.keys():
        if kind == "Adafactor" and name == "eps":
            continue  # a pair there
        outer = {
            "nesterov": {"momentum": 0.9},
            "dampening": {"momentum": 0.9},
            "decoupled_weight_decay": {"weight_decay": 0.3},
        }.get(name, {})
        value, default = OTHER_VALUES[name], known[name].default
        outside = after_steps({**outer, name: value}, {})
        from_group = after_steps(outer, {name: value})
        kept_out = after_steps({**outer, name: value}, {name: default})
        wins = torch.equal(from_group, outside)
        wins &= torch.equal(kept_out, after_steps(outer, {}))
        assert wins == (name != "initial_accumulator_value"), name

    if kind in ("SGD", "AdamW", "Rprop", "Adadelta"):
        # asked for from outside, a leaf that takes gradients is in its way
        with pytest.raises(RuntimeError, match="a leaf Variable"):
            after_steps({"differentiable": True}, {})
        own = after_steps({}, {"differentiable": True})
        assert torch.equal(own, after_steps({}, {}))


def test_the_warning_about_the_order():
    """There is a warning, but Python shows it once for each place in the code"""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            sgd = torch.optim.SGD([one_weight()], lr=1.0)
            plan = lr_scheduler.StepLR(sgd, 1)
            plan.step()
    assert (
        len([one for one in told if "optimizer.step()" in str(one.message)])
        == 1
    )


def test_what_a_scheduler_counts():
    """`get_last_lr()` has one number per group.

    A scheduler counts its calls and knows nothing of epochs. `step(epoch)` is outdated: `StepLR` still takes it, with a warning, `SequentialLR` does not. (`CosineAnnealingWarmRestarts` alone is meant to be called so, if you like.) The argument `verbose=` is gone.

    `scheduler.get_last_lr()` is a list with one number per group. After `scheduler.step()` it is already that of the next epoch.
    """
    sgd = torch.optim.SGD(two_groups(), lr=1.0)
    plan = lr_scheduler.StepLR(sgd, 2, 0.5)
    sgd.step()
    for calls in range(1, 5):
        plan.step()
        wanted = [0.5 ** (calls // 2), 0.1 * 0.5 ** (calls // 2)]
        assert plan.get_last_lr() == pytest.approx(wanted)
        assert [g["lr"] for g in sgd.param_groups] == plan.get_last_lr()
    with pytest.warns(UserWarning, match="epoch"):
        plan.step(8)
    assert plan.get_last_lr()[0] == pytest.approx(0.5**4)
    parts = [lr_scheduler.ConstantLR(sgd), lr_scheduler.ConstantLR(sgd)]
    with pytest.raises(TypeError, match="positional"):
        lr_scheduler.SequentialLR(sgd, parts, [2]).step(1)
    again = lr_scheduler.CosineAnnealingWarmRestarts(sgd, 2)
    with warnings.catch_warnings(action="error"):
        again.step(0.5)
    for name in ("StepLR", "ReduceLROnPlateau", "LambdaLR"):
        made = inspect.signature(getattr(lr_scheduler, name)).parameters
        assert "verbose" not in made


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_reduce_on_plateau(patience):
    """`ReduceLROnPlateau` lowers the rate once the metric has not improved for more than `patience` calls. To improve is to fall: an accuracy needs `mode="max"`. An improvement of less than `threshold`, by default 0.0001 of the metric, counts as none. (A metric below 0 needs `threshold_mode="abs"`. By default a standstill counts as an improvement there.)"""
    for metrics in ([1.0] * 9, [1.0 - 0.00001 * n for n in range(9)]):
        sgd = torch.optim.SGD([one_weight()], lr=1.0)
        plan = lr_scheduler.ReduceLROnPlateau(
            sgd, factor=0.1, patience=patience
        )
        calls_until_lower = 0
        for metric in metrics:
            plan.step(metric)
            if sgd.param_groups[0]["lr"] < 1:
                break
            calls_until_lower += 1
        # the first call sets the best; then `patience` calls are forgiven
        assert calls_until_lower == 1 + patience
    plan = lr_scheduler.ReduceLROnPlateau(
        torch.optim.SGD([one_weight()], lr=1.0), patience=0
    )
    for n in range(9):
        plan.step(1.0 - 0.001 * n)
    assert plan.get_last_lr() == [1.0]
    assert plan.threshold == 1e-4
    for options, kept in (({}, False), ({"mode": "max"}, True)):
        sgd = torch.optim.SGD([one_weight()], lr=1.0)
        plan = lr_scheduler.ReduceLROnPlateau(sgd, patience=patience, **options)
        for n in range(9):
            plan.step(0.5 + 0.05 * n)  # an accuracy that rises
        assert (sgd.param_groups[0]["lr"] == 1) == kept
    for metric in (1.0, -1.0):
        for threshold_mode in ("rel", "abs"):
            for mode in ("min", "max"):
                sgd = torch.optim.SGD([one_weight()], lr=1.0)
                plan = lr_scheduler.ReduceLROnPlateau(
                    sgd,
                    mode,
                    patience=patience,
                    threshold_mode=threshold_mode,
                )
                for _ in range(9):
                    plan.step(metric)
                fell = sgd.param_groups[0]["lr"] < 1
                assert fell == (metric > 0 or threshold_mode == "abs")


def test_names_in_groups():
    """Given `model.named_parameters()` instead of `parameters()`, an optimizer keeps the names, in `group["param_names"]`.

    `name.startswith("conv1.")` is true for `conv1.weight` and false for `conv10.weight`.

    `(name + ".").startswith(path + ".")` is true for the name itself and for everything below it.
    """
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        group = kind(nn.Linear(1, 1).named_parameters(), lr=0.1).param_groups[0]
        assert group["param_names"] == ["weight", "bias"]
        assert (
            "param_names"
            not in kind(nn.Linear(1, 1).parameters()).param_groups[0]
        )
    assert "conv1.weight".startswith("conv1.")
    assert not "conv10.weight".startswith("conv1.")
    names = ["a", "a.b", "a.b.c", "ab"]
    fit = [(name + ".").startswith("a.b" + ".") for name in names]
    assert fit == [False, True, True, False]


def test_the_ratio_of_groups():
    """Most schedules multiply each group's own rate, so their ratio stays. An `eta_min` is a rate, not a factor: there all groups end at the same one. And `OneCycleLR` and `CyclicLR` *replace* the groups' rates by their own, from the first step on (`CyclicLR` from the second one, if an earlier schedule has left `initial_lr` in the groups): one number makes all groups alike, a list has one for each. By default both also set the momentum (Adam's beta1), even where SGD had 0, and refuse an optimizer with neither, such as Adagrad.

    `OneCycleLR` and `CyclicLR` replace each group's rate.
    """
    for make in (
        lambda o: lr_scheduler.StepLR(o, 2, 0.5),
        lambda o: lr_scheduler.MultiStepLR(o, [2, 4], 0.5),
        lambda o: lr_scheduler.ExponentialLR(o, 0.8),
        lambda o: lr_scheduler.LambdaLR(o, lambda n: 1 / (n + 1)),
        lambda o: lr_scheduler.LinearLR(o, 0.1, total_iters=3),
        lambda o: lr_scheduler.CosineAnnealingLR(o, 20),
    ):
        seen = rates_of(make, 8, two_groups())
        assert all(a / b == pytest.approx(10) for a, b in seen)
    seen = rates_of(
        lambda o: lr_scheduler.CosineAnnealingLR(o, 5, 0.01), 6, two_groups()
    )
    assert seen[-1] == pytest.approx([0.01, 0.01])
    for make, alike in (
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10), True),
        (lambda o: lr_scheduler.OneCycleLR(o, [1.0, 0.1], 10), False),
        (lambda o: lr_scheduler.CyclicLR(o, 0.01, 1.0), True),
        (lambda o: lr_scheduler.CyclicLR(o, [0.01, 0.001], [1.0, 0.1]), False),
    ):
        sgd = torch.optim.SGD(two_groups(), lr=1.0, momentum=0.5)
        make(sgd)
        first, second = (group["lr"] for group in sgd.param_groups)
        assert (first == second) == alike
        assert sgd.param_groups[0]["momentum"] != 0.5
        plain = torch.optim.SGD(two_groups(), lr=1.0)
        assert plain.param_groups[0]["momentum"] == 0
        make(plain)
        assert plain.param_groups[0]["momentum"] > 0.8
        adam = torch.optim.Adam(two_groups(), betas=(0.5, 0.9))
        make(adam)
        assert adam.param_groups[0]["betas"][0] > 0.8
    for make, stays in (
        (lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.05), True),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.05, 10), False),
    ):
        sgd = torch.optim.SGD(two_groups(), lr=1.0)
        lr_scheduler.StepLR(sgd, 1, 0.1)
        second = make(sgd)
        assert (sgd.param_groups[0]["lr"] == 1.0) == stays
        sgd.step()
        second.step()
        assert sgd.param_groups[0]["lr"] < 0.05
    for kind in (torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.Rprop):
        for make in (
            lambda o, **how: lr_scheduler.OneCycleLR(o, 1.0, 10, **how),
            lambda o, **how: lr_scheduler.CyclicLR(o, 0.01, 1.0, **how),
        ):
            with pytest.raises(ValueError, match="momentum"):
                make(kind(two_groups(), lr=1.0))
            make(kind(two_groups(), lr=1.0), cycle_momentum=False)


def test_warm_up_and_past_the_end():
    """`SequentialLR` puts one schedule behind another. (Not `ReduceLROnPlateau`, which it refuses. Behind another, a `ChainedScheduler` or a `SequentialLR` raises when its turn comes; in front, a `SequentialLR` changes over a step early, and either may begin at its second rate. `MultiplicativeLR` goes on from the last rate of the warm-up. `OneCycleLR` has a warm-up of its own, and begins at its own first rate; a warm-up before it rises to that one.) Here the rate rises for four batches, then falls along a cosine.

    `CosineAnnealingLR` is periodic. Who trains longer than planned climbs the other side of the cosine:
    """

    def make(o):
        rise = lr_scheduler.LinearLR(o, 0.1, total_iters=4)
        fall = lr_scheduler.CosineAnnealingLR(o, 8)
        return lr_scheduler.SequentialLR(o, [rise, fall], [4])

    seen = seen_alone = [one for (one,) in rates_of(make, 12)]
    assert seen[:5] == sorted(seen[:5])
    wanted = [(1 + math.cos(math.pi * n / 8)) / 2 for n in range(8)]
    assert seen[4:] == pytest.approx(wanted)
    seen = [
        one
        for (one,) in rates_of(
            lambda o: lr_scheduler.CosineAnnealingLR(o, 5), 11
        )
    ]
    assert seen[5] < 1e-9
    assert seen[10] == pytest.approx(1.0)

    def behind_a_rise(second):
        def make(o):
            rise = lr_scheduler.LinearLR(o, 0.1, total_iters=4)
            return lr_scheduler.SequentialLR(o, [rise, second(o)], [4])

        return [one for (one,) in rates_of(make, 5)]

    for group in (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ExponentialLR(o, 0.9)]
        ),
        make,
    ):
        with pytest.raises(NotImplementedError):
            behind_a_rise(group)
    with_factors = behind_a_rise(
        lambda o: lr_scheduler.MultiplicativeLR(o, lambda step: 0.9)
    )
    assert with_factors[-1] == pytest.approx(0.9 * 0.775)

    def in_front(o):
        behind = lr_scheduler.ConstantLR(o, 1.0)
        return lr_scheduler.SequentialLR(o, [make(o), behind], [9])

    early = [one for (one,) in rates_of(in_front, 8)]
    assert early[3:7] == pytest.approx(seen_alone[4:8])

    def chained(o):
        return lr_scheduler.ChainedScheduler(
            [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.StepLR(o, 2, 0.5)]
        )

    def chained_in_front(o):
        behind = lr_scheduler.ConstantLR(o, 1.0)
        return lr_scheduler.SequentialLR(o, [chained(o), behind], [9])

    alone = [one for (one,) in rates_of(chained, 8)]
    assert rates_of(chained_in_front, 8)[0] == [alone[1]]

    def sequence(o):
        parts = [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.StepLR(o, 9)]
        return lr_scheduler.SequentialLR(o, parts, [4])

    def sequence_in_front(o):
        behind = lr_scheduler.ConstantLR(o, 1.0)
        return lr_scheduler.SequentialLR(o, [sequence(o), behind], [9])

    assert rates_of(sequence_in_front, 8)[0] == rates_of(sequence, 8)[1]

    rise = [0.1, 0.325, 0.55, 0.775, 1.0]
    for second in (
        lambda o: lr_scheduler.StepLR(o, 10),
        lambda o: lr_scheduler.ExponentialLR(o, 0.9),
        lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 10),
    ):
        assert behind_a_rise(second) == pytest.approx(rise)
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        behind_a_rise(lr_scheduler.ReduceLROnPlateau)
    seen = behind_a_rise(lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10))
    assert seen == pytest.approx([one / 25 for one in rise])  # its first rate
    seen = behind_a_rise(lambda o: lr_scheduler.OneCycleLR(o, 3.0, 10))
    assert seen == pytest.approx([3 / 25 * one for one in rise])

    def behind_fifths(o):
        rise = lr_scheduler.LambdaLR(o, lambda n: (n + 1) / 5)
        cycle = lr_scheduler.OneCycleLR(o, 1.0, 10)
        return lr_scheduler.SequentialLR(o, [rise, cycle], [4])

    seen = [one for (one,) in rates_of(behind_fifths, 5)]
    assert seen[3] > 0.5
    assert seen[4] == pytest.approx(1 / 25)


@pytest.mark.slow
def test_zeros_of_a_compiled_model():
    """and, in a compiled model, often from outputs that the loss leaves out."""
    for compiled in (False, True):
        torch._dynamo.reset()
        used, unused = one_weight(), one_weight()

        def both(used=used, unused=unused):
            return 2 * used, 2 * unused

        called = torch.compile(both, backend="aot_eager") if compiled else both
        called()[0].sum().backward()
        assert (unused.grad is None) == (not compiled)
    assert not unused.grad.any()
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="compiles C++")
def test_how_often_a_step_is_compiled():
    """Under `torch.compile(optimizer.step)` a rate that is a float is compiled in, and a change compiles anew. On a CPU Adam and AdamW compile anew once; SGD, RMSprop and most with `foreach=True` for each new rate, eight versions at most: further rates run uncompiled."""
    for kind, foreach, graphs in (
        (torch.optim.Adam, None, [1, 2, 2]),
        (torch.optim.AdamW, None, [1, 2, 2]),
        (torch.optim.AdamW, True, [1, 2, 8]),
        (torch.optim.SGD, None, [1, 2, 8]),
        (torch.optim.RMSprop, None, [1, 2, 8]),
    ):
        torch._dynamo.reset()
        counters.clear()
        weight = one_weight()
        weight.grad = torch.ones(1)
        optimizer = kind([weight], lr=1.0, foreach=foreach)
        step = torch.compile(optimizer.step)
        compiled = []
        for number in range(12):
            optimizer.param_groups[0]["lr"] = 0.5**number
            before = weight.detach().clone()
            step()
            compiled.append(counters["stats"]["unique_graphs"])
            assert not torch.equal(weight, before)  # it runs, compiled or not
        assert [*compiled[:2], compiled[-1]] == graphs, kind


@pytest.mark.slow
def test_a_compiled_step():
    """`lr=torch.tensor(1e-3)` is not compiled in. But `OneCycleLR` moves Adam's betas too, which are. And here the compiler's cache on disk may give back a step with an old number in it, even of an earlier run, without a warning: for NAdam, and for Nesterov SGD whose rate is a tensor, where `OneCycleLR` moves betas or momentum; for Muon with weight decay, where a float changes. `TORCHINDUCTOR_FX_GRAPH_CACHE=0` in the environment turns it off. Adam and AdamW refuse a tensor beside `foreach=True`, unless `capturable=True` (which on a CPU steps compiled only, and raises after the eighth version). Then `group["lr"]` is a tensor, and schedulers write into it: give each group one of its own, and note `.item()`. Make the scheduler first, else it warns of a wrong order."""
    for tensor in (False, True):
        torch._dynamo.reset()
        compiled = []

        def backend(graph, inputs, compiled=compiled):
            compiled.append(1)
            return graph.forward

        weight = one_weight()
        rate = torch.tensor(1e-3) if tensor else 1e-3
        adam = torch.optim.AdamW([weight], lr=rate, capturable=False)
        step = torch.compile(adam.step, backend=backend)
        weight.grad = torch.ones(1)
        for _ in range(3):
            step()
        before = len(compiled)
        if tensor:
            adam.param_groups[0]["lr"].fill_(1e-4)
        else:
            adam.param_groups[0]["lr"] = 1e-4
        step()
        assert (len(compiled) > before) == (not tensor)
        before = len(compiled)
        adam.param_groups[0]["betas"] = (0.8, 0.99)
        step()
        assert len(compiled) > before
    for kind in (torch.optim.Adam, torch.optim.AdamW):
        with pytest.raises(ValueError, match="capturable=False and foreach"):
            kind([one_weight()], lr=torch.tensor(1e-3), foreach=True)
        kind(
            [one_weight()], lr=torch.tensor(1e-3), foreach=True, capturable=True
        )
        weight = one_weight()
        weight.grad = torch.ones(1)
        capturable = kind(
            [weight], lr=torch.tensor(1e-3), foreach=True, capturable=True
        )
        with pytest.raises(AssertionError, match="supported devices"):
            capturable.step()
        torch.compile(capturable.step, backend="aot_eager")()
        assert weight != 1
    for kind in (torch.optim.SGD, torch.optim.NAdam, torch.optim.RMSprop):
        kind([one_weight()], lr=torch.tensor(1e-3), foreach=True)
    for scheduler_first in (True, False):
        torch._dynamo.reset()
        weight = one_weight()
        weight.grad = torch.ones(1)
        sgd = torch.optim.SGD([weight], lr=0.1)
        if scheduler_first:
            plan = lr_scheduler.ExponentialLR(sgd, 0.5)
        step = torch.compile(sgd.step, backend="eager")
        if not scheduler_first:
            plan = lr_scheduler.ExponentialLR(sgd, 0.5)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            step()
            plan.step()
        of_order = [one for one in told if "Detected call" in str(one.message)]
        assert bool(of_order) == (not scheduler_first)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="compiles C++")
@pytest.mark.parametrize(
    ("cycled", "cache"), [(False, True), (True, True), (True, False)]
)
@pytest.mark.parametrize(
    ("make", "tensor", "spoilt"),
    [
        (functools.partial(torch.optim.SGD, momentum=0.9), True, False),
        (
            functools.partial(torch.optim.SGD, momentum=0.9, nesterov=True),
            True,
            True,
        ),
        (torch.optim.NAdam, False, True),
        (torch.optim.NAdam, True, True),
        (torch.optim.Adam, True, False),
    ],
)
def test_a_compiled_step_and_a_cycled_momentum(
    make, tensor, spoilt, cycled, cache
):
    """But `OneCycleLR` moves Adam's betas too, which are. And here the compiler's cache on disk may give back a step with an old number in it, even of an earlier run, without a warning: for NAdam, and for Nesterov SGD whose rate is a tensor, where `OneCycleLR` moves betas or momentum; for Muon with weight decay, where a float changes. `TORCHINDUCTOR_FX_GRAPH_CACHE=0` in the environment turns it off."""
    ends = []
    for compiled in (False, True):
        torch._dynamo.reset()
        weight = one_weight()
        optimizer = make([weight], lr=torch.tensor(0.01) if tensor else 0.01)
        plan = lr_scheduler.OneCycleLR(
            optimizer, 0.1, 20, cycle_momentum=cycled
        )
        step = torch.compile(optimizer.step) if compiled else optimizer.step
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            with inductor.patch(fx_graph_cache=cache):
                for _ in range(8):
                    weight.grad = torch.ones(1)
                    step()
                    plan.step()
        ends.append(weight.detach())
    wrong = cycled and spoilt and cache
    assert torch.allclose(*ends, rtol=1e-4, atol=1e-4) != wrong


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="compiles C++")
@pytest.mark.parametrize(
    ("weight_decay", "tensor", "cache"),
    [
        (0.1, False, True),
        (0.1, False, False),
        (0.1, True, True),
        (0.0, False, True),
    ],
)
def test_a_compiled_step_of_muon(weight_decay, tensor, cache):
    """for Muon with weight decay, where a float changes. `TORCHINDUCTOR_FX_GRAPH_CACHE=0` in the environment turns it off."""
    last = []
    for compiled in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(4, 4))
        muon = torch.optim.Muon(
            [weight],
            lr=torch.tensor(0.1) if tensor else 0.1,
            weight_decay=weight_decay,
        )
        plan = lr_scheduler.StepLR(muon, 3, 0.1)
        step = torch.compile(muon.step) if compiled else muon.step
        with inductor.patch(fx_graph_cache=cache):
            for _ in range(9):
                before = weight.detach().clone()
                weight.grad = torch.randn(4, 4)
                step()
                plan.step()
        last.append((weight.detach() - before).norm().item())
    wrong = weight_decay > 0 and not tensor and cache
    assert (last[1] > 2 * last[0]) == wrong


def test_a_fall_that_is_decided_later():
    """(until then the plan below has `math.inf` steps: let its function read the number from a variable, and set that, for a new scheduler would warm up again)"""

    def plan(step):
        rise, fall = (step + 1) / 3, (num_steps - step) / 4
        return max(0.0, min(1.0, rise, fall))

    num_steps = math.inf
    sgd = torch.optim.SGD([one_weight()], lr=1.0)
    scheduler, rates = lr_scheduler.LambdaLR(sgd, plan), []
    for step in range(10):
        if step == 6:
            num_steps = 10
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        scheduler.step()
    assert rates[3:7] == [1] * 4
    assert rates[7:] == [0.75, 0.5, 0.25]
    lr_scheduler.LambdaLR(sgd, plan)
    assert sgd.param_groups[0]["lr"] < 0.5


@pytest.mark.parametrize("own", [False, True])
def test_a_rate_that_is_a_tensor(own):
    """Then `group["lr"]` is a tensor, and schedulers write into it: give each group one of its own, and note `.item()`."""
    rate = torch.tensor(1.0)
    groups = [{"params": [one_weight()]} for _ in range(2)]
    if own:
        groups = [{**one, "lr": rate.clone()} for one in groups]
    sgd = torch.optim.SGD(groups, lr=rate)
    plan = lr_scheduler.ReduceLROnPlateau(sgd, factor=0.1, patience=0)
    noted, told = sgd.param_groups[0]["lr"], plan.get_last_lr()
    assert torch.is_tensor(noted)
    for _ in range(2):
        plan.step(1.0)
    assert noted is sgd.param_groups[0]["lr"]
    assert noted.item() == pytest.approx(0.1 if own else 0.01)
    assert told == [1.0, 1.0]  # copies: nobody writes into these


def test_one_optimizer_one_schedule():
    """Most schedulers leave their start in `group["initial_lr"]`, and the next one on the same optimizer may begin there instead of at the present rate.

    Make a new optimizer, or remove the key.
    """
    begins = {}
    for name, make in {
        "StepLR": lambda o: lr_scheduler.StepLR(o, 1, 0.5),
        "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.5**n),
    }.items():
        for removed in (False, True):
            sgd = torch.optim.SGD([one_weight()], lr=1.0)
            earlier = lr_scheduler.StepLR(sgd, 1, 0.1)
            assert sgd.param_groups[0]["initial_lr"] == 1.0
            sgd.step()
            earlier.step()
            if removed:
                del sgd.param_groups[0]["initial_lr"]
            make(sgd)
            begins[name, removed] = round(sgd.param_groups[0]["lr"], 6)
    assert begins["StepLR", False] != begins["LambdaLR", False]
    assert {begins[name, True] for name in ("StepLR", "LambdaLR")} == {0.1}
    for make in (
        lambda o: lr_scheduler.ConstantLR(o),
        lambda o: lr_scheduler.ExponentialLR(o, 0.9),
        lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, 5),
        lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0),
    ):
        sgd = torch.optim.SGD([one_weight()], lr=1.0, momentum=0.9)
        make(sgd)
        assert "initial_lr" in sgd.param_groups[0]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        (torch.optim.Adam, {"weight_decay": 0.1}),
        (torch.optim.AdamW, {"weight_decay": 0.1}),
        (torch.optim.RMSprop, {"weight_decay": 0.1}),
    ],
)
def test_none_is_skipped(optimizer, options):
    """`grad=None` is skipped, whatever the decay, by all but LBFGS. Zeros are a gradient.

    The default of `zero_grad` has been `None` since 2.0. Zeros come from `set_to_none=False`, if the layer was used before, from an output that is cut away or multiplied by 0, and, in a compiled model, often from outputs that the loss leaves out. A dense embedding has them in the rows of all tokens that are not in the batch.
    """
    default = inspect.signature(torch.optim.Optimizer.zero_grad).parameters
    assert default["set_to_none"].default is True
    for zeros in (None, "cleared", "times zero"):
        weight = one_weight()
        one = optimizer([weight], lr=0.03, **options)
        weight.sum().backward()
        one.step()
        one.zero_grad(set_to_none=zeros != "cleared")
        if zeros == "times zero":
            (0 * weight).sum().backward()
        before = weight.item()
        one.step()
        assert (weight.grad is None) == (zeros is None)
        assert (weight.item() == before) == (zeros is None)
    for cut in (
        lambda used, unused: torch.cat([used, unused])[:1],
        lambda used, unused: used.index_add(0, torch.arange(0), unused[:0]),
    ):
        used, unused = one_weight(), one_weight()
        cut(2 * used, 2 * unused).sum().backward()
        assert unused.grad.tolist() == [0.0]
    table = nn.Embedding(3, 2)
    one = optimizer(table.parameters(), lr=0.03, **options)
    for tokens in ([0, 1], [0]):
        before = table.weight[1:].detach().clone()
        one.zero_grad()
        table(torch.tensor(tokens)).sum().backward()
        one.step()
    assert not table.weight.grad[1:].any()
    assert not torch.isclose(table.weight[1], before[0], atol=1e-7).any()
    kinds = [
        one
        for one in vars(torch.optim).values()
        if inspect.isclass(one)
        and issubclass(one, torch.optim.Optimizer)
        and one not in (torch.optim.Optimizer, torch.optim.LBFGS)
    ]
    assert len(kinds) > 10
    for kind in kinds:
        weights = [nn.Parameter(torch.ones(2, 2)) for _ in range(2)]
        one = kind(weights, lr=0.1)
        for weight in weights:
            gradient = torch.ones(2, 2)
            sparse = kind is torch.optim.SparseAdam
            weight.grad = gradient.to_sparse() if sparse else gradient
        one.step()
        weights[0].grad = None
        before = weights[0].detach().clone()
        one.step()
        assert torch.equal(weights[0], before)
    first, other = one_weight(), one_weight()
    one = torch.optim.LBFGS([first, other], lr=0.1, max_iter=3)

    def closure(used):
        one.zero_grad()
        loss = (other - 3) ** 2 + (2 * (first - 3) ** 2 if used else 0)
        loss.backward()
        return loss

    one.step(lambda: closure(True))
    before = first.item()
    one.step(lambda: closure(False))
    assert first.grad is None
    assert first.item() != before


def test_the_default_on_a_cpu():
    """By default most optimizers take `foreach` on a CUDA GPU, the loop on a CPU and on Apple's GPU."""
    for foreach in (None, True):
        weights = [one_weight() for _ in range(5)]
        adamw = torch.optim.AdamW(weights, foreach=foreach)
        for weight in weights:
            weight.grad = torch.ones(1)
        with torch.profiler.profile(acc_events=True) as seen:
            adamw.step()
        names = {one.name for one in seen.events()}
        lists = any(name.startswith("aten::_foreach") for name in names)
        assert lists == bool(foreach)
        each = [one for one in seen.events() if one.name == "aten::addcdiv_"]
        assert len(each) == len(weights)
    kinds = _get_foreach_kernels_supported_devices()
    assert "cuda" in kinds
    assert not {"mps", "cpu"} & set(kinds)


@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_models(use_buffers):
    """It averages parameters, in their dtype (in bfloat16 a slow average stands still). Buffers it copies from the model at each update, so BatchNorm's statistics are those of the last weights, not of the averaged ones. `update_bn` takes them anew, also in layers that you had put in eval; afterwards all layers are in the model's own mode. `use_buffers=True` averages them, too, for an average as below, and rounds integers towards 0: at 0.9999 a `position_ids` of 511 becomes 510. (The plain one fails at a mask of bools, and on a GPU at BatchNorm's counter of batches, which is an integer.)

    The keys of its state dict begin with `module.`, and there is one more, `n_averaged`
    """
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    average = swa_utils.AveragedModel(model, use_buffers=use_buffers)
    weights, means = [], []
    for _ in range(4):
        with torch.no_grad():
            model[0].weight.add_(1)
            model(torch.randn(8, 2))
        average.update_parameters(model)
        weights.append(model[0].weight.detach().clone())
        means.append(model[1].running_mean.clone())
    torch.testing.assert_close(
        average.module[0].weight.detach(), torch.stack(weights).mean(0)
    )
    on_gpu = swa_utils.AveragedModel(  # its way for lists of tensors
        model,
        use_buffers=use_buffers,
        multi_avg_fn=swa_utils.get_swa_multi_avg_fn(),
    )
    on_gpu.update_parameters(model)
    with contextlib.ExitStack() as stack:
        if use_buffers:
            stack.enter_context(pytest.raises(RuntimeError, match="Integer"))
        on_gpu.update_parameters(model)
    wanted = torch.stack(means).mean(0) if use_buffers else means[-1]
    torch.testing.assert_close(average.module[1].running_mean, wanted)
    keys = set(average.state_dict())
    assert keys == {f"module.{k}" for k in model.state_dict()} | {"n_averaged"}
    batches = [torch.randn(8, 2) + 5 for _ in range(3)]
    swa_utils.update_bn(batches, average)
    with torch.no_grad():
        seen = torch.stack([average.module[0](x).mean(0) for x in batches])
    torch.testing.assert_close(average.module[1].running_mean, seen.mean(0))
    for mode in (True, False):
        average.train(mode)
        average.module[1].eval()
        before = average.module[1].running_mean.clone()
        swa_utils.update_bn([torch.randn(8, 2) - 5 - int(mode)], average)
        assert not torch.allclose(average.module[1].running_mean, before)
        assert {one.training for one in average.modules()} == {mode}


@pytest.mark.parametrize("use_buffers", [False, True])
def test_an_average_of_integers(use_buffers):
    """`use_buffers=True` averages them, too, for an average as below, and rounds integers towards 0: at 0.9999 a `position_ids` of 511 becomes 510."""
    masked = nn.Linear(2, 2)
    masked.register_buffer("mask", torch.ones(2, 2).tril().bool())
    plain = swa_utils.AveragedModel(masked, use_buffers=use_buffers)
    plain.update_parameters(masked)
    with contextlib.ExitStack() as stack:
        if use_buffers:
            stack.enter_context(pytest.raises(RuntimeError, match="bool"))
        plain.update_parameters(masked)
    model = nn.Linear(2, 2)
    model.register_buffer("position_ids", torch.arange(-511, 512))
    lost = set()
    for decay in (0.9, 0.99, 0.999, 0.9999):
        average = swa_utils.AveragedModel(
            model,
            multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay),
            use_buffers=use_buffers,
        )
        for _ in range(3):
            average.update_parameters(model)
        off = model.position_ids.abs() - average.module.position_ids.abs()
        lost |= set(off.tolist())
    assert lost == ({0, 1} if use_buffers else {0})


def test_decoupled_decay():
    """AdamW leaves it out of the gradient and shrinks the weights by $1 - \\text{lr}\\,\\lambda$.

    With the same `weight_decay`, `Adam(decoupled_weight_decay=True)` is AdamW. `Muon`, for matrices alone, decays by 0.1 if you do not say otherwise.
    """
    ends = []
    for make in (
        lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.3),
        lambda p: torch.optim.Adam(
            p, lr=0.1, weight_decay=0.3, decoupled_weight_decay=True
        ),
        lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.3),
    ):
        weight = nn.Parameter(torch.tensor([1.0, -2.0]))
        one = make([weight])
        for step in range(3):
            weight.grad = torch.tensor([1.0, 0.1 * step])
            one.step()
        ends.append(weight.detach())
    assert torch.equal(ends[0], ends[1])
    assert not torch.allclose(ends[0], ends[2])
    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    weight.grad = torch.zeros(2)
    torch.optim.AdamW([weight], lr=0.1, weight_decay=0.3).step()
    torch.testing.assert_close(
        weight.detach(), torch.tensor([1.0, -2.0]) * 0.97
    )
    with pytest.raises(ValueError, match="2D"):
        torch.optim.Muon([nn.Parameter(torch.ones(3))])


@pytest.mark.parametrize(("start", "grows"), [(0.1, True), (5.0, False)])
def test_what_adamw_remembers(start, grows):
    """look at AdamW, whose layer grows here."""
    weight = nn.Parameter(torch.tensor(start, dtype=torch.float64))
    adamw = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.1)
    sizes = []
    for gradient in (1.0, *[0.0] * 50):
        weight.grad = torch.full_like(weight, gradient)
        adamw.step()
        sizes.append(abs(weight.item()))
    assert (sizes[-1] > sizes[0]) == grows


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize(
    ("kind", "settings", "exact"),
    [
        (torch.optim.SGD, {}, True),
        (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, True),
        (torch.optim.SGD, {"fused": True}, True),
        (torch.optim.Adam, {}, True),
        (torch.optim.Adam, {"amsgrad": True}, True),
        (torch.optim.AdamW, {}, False),
    ],
)
def test_the_option_against_a_penalty(kind, settings, exact, clips):
    """exact for SGD and Adam if the loss reaches each weight and nothing clips its gradient, not for AdamW.

    The option adds that within `step()`, so clipping (chapter 08) limits a penalty in the loss, and not the option.

    `weight_decay` is an L2 penalty under SGD and Adam, which no clipping limits.
    """
    ends = []
    for by_option in (True, False):
        w = nn.Parameter(torch.tensor([1.0, -2.0]).double())
        optimizer = kind(
            [w], lr=0.1, weight_decay=0.5 if by_option else 0.0, **settings
        )
        for step in range(5):
            loss = (3 - step) * w[0] + w[1]
            if not by_option:
                loss = loss + 0.5 / 2 * w.square().sum()
            optimizer.zero_grad()
            loss.backward()
            if clips:
                nn.utils.clip_grad_norm_([w], 0.5)
            optimizer.step()
        ends.append(w.detach())
    gap = (ends[0] - ends[1]).abs().max()
    assert gap < 1e-12 if exact and not clips else gap > 1e-3
    if clips and kind is torch.optim.SGD and not settings:
        w = nn.Parameter(torch.tensor([100.0]).double())
        optimizer = kind([w], lr=0.1, weight_decay=0.5)
        w.sum().backward()
        nn.utils.clip_grad_norm_([w], 0.5)
        optimizer.step()  # further than any gradient of norm 0.5 takes it
        torch.testing.assert_close(w.item(), 100 - 0.1 * (0.5 + 0.5 * 100))
    if exact and not clips:
        for by_option in (True, False):
            pair = [nn.Parameter(torch.ones(1)) for _ in range(2)]
            decay = 0.5 if by_option else 0.0
            optimizer = kind(pair, lr=0.1, weight_decay=decay, **settings)
            loss = pair[0].sum()  # reaches the first alone
            if not by_option:
                loss = loss + 0.5 / 2 * sum(w.square().sum() for w in pair)
            loss.backward()
            optimizer.step()
            assert (pair[1].item() == 1) == by_option


def test_a_penalty():
    """Its gradient is λ·w only if the penalty is λ/2 · the *sum of squares*, and only over what the loss reaches: a penalty over all parameters reaches all of them."""
    used, unused = (nn.Parameter(torch.tensor([2.0, -1.0])) for _ in range(2))
    (0.3 / 2 * used.square().sum()).backward()
    torch.testing.assert_close(used.grad, 0.3 * used.detach())
    assert unused.grad is None
    (0.3 / 2 * (used.square().sum() + unused.square().sum())).backward()
    assert unused.grad is not None


def test_vectors_and_matrices():
    """They are told by their one dimension. (A `LayerNorm` over several axes has weights of several, and so have an attention's `bias_k` and `bias_v`; those go by name.)"""
    for norm in (
        nn.LayerNorm(4),
        nn.BatchNorm2d(4),
        nn.GroupNorm(2, 4),
        nn.RMSNorm(4),
        nn.InstanceNorm2d(4, affine=True),
    ):
        assert {p.dim() for p in norm.parameters()} == {1}
    for layer in (nn.Linear(2, 3), nn.Conv2d(1, 2, 3), nn.Conv1d(1, 2, 3)):
        assert layer.bias.dim() == 1 < layer.weight.dim()
    assert nn.LayerNorm((4, 5)).weight.dim() == 2
    attention = nn.MultiheadAttention(4, 2, add_bias_kv=True)
    assert attention.bias_k.dim() == attention.bias_v.dim() == 3


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("size", [0.01, 100.0])
def test_a_penalty_under_adam(kind, size):
    """In Adam it passes through the averages and the division like every gradient: beside large gradients of the loss little of it is left; alone, large or small, it is scaled to about the same step."""
    weight = nn.Parameter(torch.tensor([size], dtype=torch.float64))
    adam = kind([weight], lr=1e-3, weight_decay=0.1)
    weight.grad = torch.zeros_like(weight)
    adam.step()
    moved = size - weight.item()
    wanted = 1e-3 if kind is torch.optim.Adam else 1e-3 * 0.1 * size
    assert moved == pytest.approx(wanted, rel=1e-3)
    pulled = []
    for noise in (1.0, 10.0):
        ends = []
        for decay in (0.0, 0.01):
            torch.manual_seed(0)
            weight = nn.Parameter(torch.full((500,), size).double())
            adam = kind([weight], lr=1e-4, weight_decay=decay)
            for _ in range(100):
                weight.grad = noise * size * torch.randn(500).double()
                adam.step()
            ends.append(weight.mean().item())
        pulled.append(ends[0] - ends[1])
    less = 10 if kind is torch.optim.Adam else 1
    assert pulled[0] / pulled[1] == pytest.approx(less, rel=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"kind": torch.optim.Adam, "amsgrad": True},
        {"kind": torch.optim.RMSprop},
    ],
)
def test_the_penalty(options):
    """The penalty is $\\frac{\\lambda}{2}\\lVert w \\rVert^2$, so that its gradient is $\\lambda w$."""
    options = dict(options)
    kind, ends = options.pop("kind", torch.optim.SGD), []
    for by_hand in (False, True):
        weight = nn.Parameter(torch.tensor([1.0, -2.0]).double())
        decay = 0.0 if by_hand else 0.3
        one = kind([weight], lr=0.01, weight_decay=decay, **options)
        for _ in range(4):
            loss = 3 * weight[0] + weight[1]
            if by_hand:
                loss = loss + 0.3 / 2 * weight.square().sum()
            one.zero_grad()
            loss.backward()
            one.step()
        ends.append(weight.detach())
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_what_adam_remembers(kind):
    """A gradient of *zeros* is a gradient. Then decay goes on, and so does what momentum or Adam's averages remember"""
    weight = nn.Parameter(torch.ones(1).double())
    one = kind([weight], lr=0.1, weight_decay=0.0)
    weight.grad = torch.ones_like(weight)
    one.step()
    weight.grad = torch.zeros_like(weight)
    before = weight.item()
    one.step()
    assert weight.item() < before - 1e-3
    weight.grad = None
    before = weight.item()
    one.step()
    assert weight.item() == before


def test_every_optimizer_skips_none():
    """good advice, but `grad=None` is skipped by SGD, Adam and AdamW alike."""
    for kind in (
        torch.optim.SGD,
        torch.optim.Adam,
        torch.optim.AdamW,
        torch.optim.RMSprop,
        torch.optim.Adagrad,
        torch.optim.NAdam,
    ):
        for foreach in (False, True):
            weight, other = one_weight(), one_weight()
            one = kind([weight, other], lr=0.1, weight_decay=0.1)
            one.param_groups[0]["foreach"] = foreach
            (weight + other).backward()
            one.step()
            one.zero_grad()
            before = weight.item()
            other.backward()
            one.step()
            assert weight.item() == before
            assert one.state.get(weight, {}).get("step", 1) == 1


def test_what_a_step_wants():
    """`ReduceLROnPlateau` wants the metric, and `mode="max"` where more is better."""
    plan = lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([one_weight()]))
    with pytest.raises(TypeError, match="metrics"):
        plan.step()
    plan.step(1.0)


def test_a_schedule_beside_the_optimizer():
    """A checkpoint holds `scheduler.state_dict()` beside the optimizer's (chapter 12)."""

    def fresh():
        sgd = torch.optim.SGD([one_weight()], lr=1.0)
        return sgd, lr_scheduler.StepLR(sgd, 2, 0.1)

    sgd, plan = fresh()
    for _ in range(3):
        sgd.step()
        plan.step()
    for both in (True, False):
        new_sgd, new_plan = fresh()
        new_plan.load_state_dict(plan.state_dict())
        if both:
            new_sgd.load_state_dict(sgd.state_dict())
        wanted = sgd.param_groups[0]["lr"] if both else 1.0
        assert new_sgd.param_groups[0]["lr"] == wanted
        assert new_plan.last_epoch == 3


def test_steps_of_epochs_taken_by_batches():
    """Stepped after each batch, a schedule that was meant for epochs runs through its plan four times as fast: with thousands of batches it has ended before the first epoch has. (A cosine then climbs again.)"""
    for plan in (
        lambda o: lr_scheduler.StepLR(o, 10, 0.1),
        lambda o: lr_scheduler.ExponentialLR(o, 0.85),
    ):
        rates = rates_of(plan, 100)
        by_epoch = [rate for rate in rates[:25] for _ in range(4)]
        assert rates[::4] != by_epoch[::4]
        assert rates[:25] == by_epoch[::4]
    cosine = [
        rate
        for rate, *_ in rates_of(
            lambda o: lr_scheduler.CosineAnnealingLR(o, 25), 60
        )
    ]
    assert min(cosine) < 0.01 * cosine[0]
    assert max(cosine[30:]) > 0.99 * cosine[0]


def test_a_plan_is_a_function_of_the_step():
    """Any such plan is a function of the step"""

    def warm_up_stable_decay(step):
        return max(0.0, min(1.0, (step + 1) / 3, (12 - step) / 4))

    seen = [
        one
        for (one,) in rates_of(
            lambda o: lr_scheduler.LambdaLR(o, warm_up_stable_decay), 14
        )
    ]
    assert seen == pytest.approx(
        [1 / 3, 2 / 3, *[1.0] * 7, 3 / 4, 2 / 4, 1 / 4, 0.0, 0.0]
    )


def test_in_a_list_by_value():
    """`p in some_list` compares tensors by value."""
    held = [nn.Parameter(torch.ones(2))]
    with pytest.raises(RuntimeError, match="is ambiguous"):
        nn.Parameter(torch.ones(2)) in held  # noqa: B015
    with pytest.raises(RuntimeError, match="must match the size"):
        nn.Parameter(torch.ones(3)) in held  # noqa: B015
    assert nn.Parameter(torch.ones(1)) in [nn.Parameter(torch.ones(1))]


def test_what_the_loss_has_reached():
    """After `optimizer.zero_grad()` and `backward()`, the parameters whose `.grad` is not `None` are those that the loss has reached.

    A scheduler counts calls.
    """
    used, unused = one_weight(), one_weight()
    sgd = torch.optim.SGD([used, unused], lr=0.1)
    (used + unused).backward()
    sgd.zero_grad()
    used.backward()
    assert used.grad is not None
    assert unused.grad is None
    plan = lr_scheduler.StepLR(sgd, 1, 0.5)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(3):  # no step of the optimizer at all
            plan.step()
    assert sgd.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**3)


def test_an_integer_cannot_be_looped_over():
    """an integer cannot be looped over."""
    with pytest.raises(TypeError, match="not iterable"):
        iter(25)


def test_a_step_that_a_scaler_skips():
    """A step that a `GradScaler` skips is no step; a scheduler that is called all the same counts it (chapter 10)."""
    weight = one_weight()
    sgd = torch.optim.SGD([weight], lr=1.0)
    plan = lr_scheduler.StepLR(sgd, 1, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for factor, rate in ((1.0, 0.5), (math.inf, 0.25)):
        before = weight.item()
        sgd.zero_grad()
        scaler.scale(factor * weight.sum()).backward()
        scaler.step(sgd)
        scaler.update()
        plan.step()
        assert (weight.item() == before) == (factor == math.inf)
        assert plan.get_last_lr() == [rate]


def test_the_small_network():
    """`digit_mlp()` is a small network for the digits: `linear1`, `linear2` and `head`, with ReLUs between."""
    kinds = [type(one) for one in digit_mlp().modules()]
    assert kinds.count(nn.Linear) == 3
    assert kinds.count(nn.ReLU) == 2
    names = {name.split(".")[0] for name, _ in digit_mlp().named_parameters()}
    assert names == {"linear1", "linear2", "head"}


@pytest.mark.parametrize(
    "kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW]
)
def test_three_ways_to_step(kind):
    """It can loop over them, or hand lists of tensors to one kernel (most do, with `foreach=True`). SGD, Adam and AdamW can do everything in one pass (`fused=True`)."""
    calls, ends = {}, []
    for way in (None, "foreach", "fused"):
        options = {way: True} if way else {"foreach": False}
        weights = [nn.Parameter(torch.full((3,), 2.0)) for _ in range(5)]
        one = kind(weights, lr=0.1, **options)
        for weight in weights:
            weight.grad = torch.ones(3)
        with torch.profiler.profile(acc_events=True) as seen:
            one.step()
        calls[way] = [event.name for event in seen.events()]
        ends.append(torch.stack(weights).detach())
    for end in ends[1:]:
        torch.testing.assert_close(end, ends[0])

    def uses(way, what):
        return any(n.startswith(f"aten::_{what}") for n in calls[way])

    assert not uses(None, "foreach")
    assert uses("foreach", "foreach")
    assert [uses(way, "fused") for way in calls] == [False, False, True]
    with pytest.raises(TypeError, match="fused"):
        torch.optim.RMSprop([one_weight()], fused=True)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16]
)
def test_the_ways_agree(kind, dtype):
    """All three can be chosen on the CPU and on a GPU, and give the same float32 weights up to rounding. (On a CPU, PyTorch 2.13's fused ones go wrong, without a word, where a parameter has gaps in memory (`big[:, :3]`), or its gradient or moments lie in another order than it: a gradient set by hand, `channels_last` from mid-run on. Fused SGD leaves most weights in bfloat16 and float16 as they are. With momentum it raises where a parameter has its first gradient later than others of its group, and its first step must not be one that a `GradScaler` leaves out (chapter 10).)"""
    ends = {}
    for way in ("loop", "foreach", "fused"):
        options = {"foreach": False} if way == "loop" else {way: True}
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(100).to(dtype))
        before = weight.detach().clone()
        one = getattr(torch.optim, kind)([weight], lr=0.1, **options)
        for _ in range(2):
            weight.grad = torch.ones(100, dtype=dtype)
            one.step()
        ends[way] = weight.detach()
    wide = {"rtol": 0.05, "atol": 0.05}
    tolerance = {} if dtype == torch.float32 else wide
    stands = (ends["fused"] == before).double().mean()
    if kind == "SGD" and dtype != torch.float32:
        assert stands > 0.5
        assert (ends["loop"] != before).all()
    else:
        assert stands == 0
        torch.testing.assert_close(ends["fused"], ends["loop"], **tolerance)
    torch.testing.assert_close(ends["foreach"], ends["loop"], **tolerance)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("way", ["loop", "foreach", "fused"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_first_gradient_that_comes_later(kind, way, momentum):
    """With momentum it raises where a parameter has its first gradient later than others of its group, and its first step must not be one that a `GradScaler` leaves out (chapter 10).)"""
    options = {"foreach": False} if way == "loop" else {way: True}
    if kind == "SGD":
        options["momentum"] = momentum
    early, late = (nn.Parameter(torch.ones(3)) for _ in range(2))
    one = getattr(torch.optim, kind)([late, early], lr=0.1, **options)
    early.grad = torch.ones(3)
    one.step()
    late.grad = torch.ones(3)
    if kind == "SGD" and momentum and way == "fused":
        with pytest.raises(TypeError):
            one.step()
        return
    one.step()
    assert late.isfinite().all()
    assert (late != 1).all()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize(
    "case", ["plain", "slice", "turned", "in mid-run", "by hand"]
)
def test_where_fused_goes_wrong(kind, case):
    """(On a CPU, PyTorch 2.13's fused ones go wrong, without a word, where a parameter has gaps in memory (`big[:, :3]`), or its gradient or moments lie in another order than it: a gradient set by hand, `channels_last` from mid-run on. Fused SGD leaves most weights in bfloat16 and float16 as they are. With momentum it raises where a parameter has its first gradient later than others of its group, and its first step must not be one that a `GradScaler` leaves out (chapter 10).)"""
    options = {"momentum": 0.9} if kind == "SGD" else {}
    ends = []
    for fused in (False, True):
        torch.manual_seed(0)
        large = torch.randn(4, 6, 3, 3)
        large = large[:, :3] if case == "slice" else large[:, :3].clone()
        if case == "turned":
            large = large.to(memory_format=torch.channels_last)
        weight = nn.Parameter(large)
        one = getattr(torch.optim, kind)(
            [weight], lr=0.1, fused=fused, **options
        )
        for step in range(4):
            if case == "in mid-run" and step == 2:
                weight.data = weight.data.to(memory_format=torch.channels_last)
                weight.grad = None
            one.zero_grad()
            (weight * torch.randn(3, 1, 1)).pow(2).sum().backward()
            if case == "by hand":
                weight.grad = weight.grad.contiguous(
                    memory_format=torch.channels_last
                )
            one.step()
        ends.append(weight.detach())
    wrong = case in ("slice", "in mid-run", "by hand")
    assert torch.allclose(*ends, rtol=1e-3, atol=1e-4) != wrong


def test_an_average_settles():
    """An average over the last steps does something similar at a *constant* rate: `swa_utils.AveragedModel` keeps one beside the model."""
    for seed in range(3):
        torch.manual_seed(seed)
        model = nn.Linear(100, 1, bias=False)  # its best weights are zeros
        sgd = torch.optim.SGD(model.parameters(), lr=0.2)
        decay = swa_utils.get_ema_multi_avg_fn(0.99)
        average = swa_utils.AveragedModel(model, multi_avg_fn=decay)
        for _ in range(1000):
            noisy = model.weight.detach() + torch.randn(1, 100)
            model.weight.grad = noisy
            sgd.step()
            average.update_parameters(model)
        assert average.module.weight.norm() < 0.5 * model.weight.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_average_in_its_dtype(dtype):
    """It averages parameters, in their dtype (in bfloat16 a slow average stands still)."""
    model = nn.Linear(2, 2).to(dtype)
    nn.init.ones_(model.weight)
    decay = swa_utils.get_ema_multi_avg_fn(0.999)
    average = swa_utils.AveragedModel(model, multi_avg_fn=decay)
    average.update_parameters(model)
    nn.init.constant_(model.weight, 1.1)
    for _ in range(1000):
        average.update_parameters(model)
    stands = dtype == torch.bfloat16
    assert torch.equal(average.module.weight, torch.ones(2, 2)) == stands


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("cleared", [True, False])
def test_what_moves_a_frozen_weight(set_to_none, cleared):
    """Two things move them: a gradient that is left from before they were frozen; and a gradient of zeros, by decay, and by momentum also without decay."""
    for options in ({}, {"momentum": 0.9}, {"weight_decay": 0.1}):
        weight = one_weight()
        sgd = torch.optim.SGD([weight], lr=0.1, **options)
        weight.sum().backward()
        sgd.step()
        weight.requires_grad_(False)
        if cleared:
            sgd.zero_grad(set_to_none=set_to_none)
        before = weight.item()
        sgd.step()
        by_zeros = bool(options) and not set_to_none
        assert (weight.item() != before) == (not cleared or by_zeros)


def test_a_group_for_each_parameter():
    """A group for every single parameter works as well."""
    ends = []
    for single in (True, False):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
        one = list(net.parameters())
        groups = [{"params": [p]} for p in one] if single else one
        sgd = torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.1)
        for _ in range(3):
            sgd.zero_grad()
            net(torch.ones(4, 2)).sum().backward()
            sgd.step()
        ends.append(nn.utils.parameters_to_vector(one).detach())
    assert torch.equal(*ends)


def test_an_epoch_without_a_batch():
    """Nothing warns, as long as each epoch has a batch.

    First the optimizer steps, then the scheduler.
    """
    for batches in (0, 1):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            sgd = torch.optim.SGD([one_weight()], lr=1.0)
            plan = lr_scheduler.StepLR(sgd, 1)
            for _ in range(batches):
                sgd.step()
            plan.step()
        assert len(told) == (batches == 0)


def test_ways_to_step_lie_further_apart_on_a_gpu():
    """On a GPU each small operation costs the time of its launch, so the ways lie further apart:"""

    def ratio(kind):
        loop, fused = (
            recorded(f"06_learning_rates/adamw_step_{way}_ms", kind).value
            for way in ("loop", "fused")
        )
        return loop / fused

    assert ratio("cuda") > 2 * ratio("cpu")


@pytest.mark.gpu
def test_what_foreach_needs_for_a_moment():
    """For a moment, `foreach` mostly needs memory for another copy of the parameters."""
    peaks = {}
    for foreach in (False, True):
        weights = [
            nn.Parameter(torch.ones(2**20, device="cuda")) for _ in range(16)
        ]
        for one in weights:
            one.grad = torch.ones_like(one)
        optimizer = torch.optim.AdamW(weights, foreach=foreach, fused=False)
        optimizer.step()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        optimizer.step()
        peaks[foreach] = torch.cuda.max_memory_allocated() - before
    whole = 16 * 2**20 * 4
    assert peaks[False] < whole / 4
    assert peaks[True] >= whole
