"""Drives what the exercises of chapter 10 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. The model here writes down in which dtype it computes,
and where autocast is on; optimizer and scaler write down what is asked of them.

A row that begins with a number above `POISON` is poisoned: it goes forward like
others, and its gradient is infinite.
"""

import contextlib
import io
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import saved_tensor_bytes

WIDTH = 12
SEED = 20171010  # not one that anybody writes
POISON = 50.0
SPOILT = (math.inf, -math.inf, math.nan)
DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def autocast_now():
    """The dtype that autocast would use on the CPU, "off" if it is off."""
    if not torch.is_autocast_enabled("cpu"):
        return "off"
    return name_of(torch.get_autocast_dtype("cpu"))


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


class Watched(nn.Module):
    """A classifier of rows that writes down how it is used. Of images it takes the
    mean over their second dimension.

    Its middle layer is used twice. If `traps`, its first layer is frozen and one
    layer is never used. If `turns`, every second batch has a last layer of its
    own, and the logits are multiplied by weights that autocast leaves as they are:
    the sum of two parameters, which get one gradient, and of a single number.
    At the end they are multiplied by `loudness`, in the dtype of the weights: that
    makes all gradients large, or too small for float16.
    """

    def __init__(self, case):
        super().__init__()
        features, classes = case["num_features"], case["num_classes"]
        self.first = nn.Linear(features, WIDTH)
        self.middle = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, classes)
        if case["traps"]:
            self.unused = nn.Linear(3, 2)
            self.first.requires_grad_(False)
        if case["turns"]:
            self.other_last = nn.Linear(WIDTH, classes)
            self.gains = nn.Parameter(torch.ones(classes))
            self.more = nn.Parameter(torch.zeros(classes))
            self.gain = nn.Parameter(torch.zeros(()))
        self.turns = case["turns"]
        self.loudness = case["loudness"]
        self.num_calls, self.forwards = 0, []
        self.forward_samples, self.backward_samples = [], []
        self.in_backward = []

    def __call__(self, *arguments, **options):
        self.num_calls += 1
        return super().__call__(*arguments, **options)

    def forward(self, x):
        rows = x.detach().double()
        poisoned = bool((rows[:, 0] > POISON).any())
        numbers = x if x.is_floating_point() else x.to(self.last.weight.dtype)
        numbers = numbers.mean(2) if x.dim() == 3 else numbers
        first = self.first(numbers.clamp(-9, 9)).tanh()
        middle = self.middle(self.middle(first).tanh()).tanh()
        odd = self.turns and len(self.forwards) % 2
        logits = (self.other_last if odd else self.last)(middle)
        outs = {name_of(one.dtype) for one in (first, middle, logits)}
        self.forwards.append(
            {
                "x": name_of(x.dtype),
                "autocast": autocast_now(),
                "layers": sorted(outs),
                "weights": dtypes_of(self.parameters()),
                "modes": [layer.training for layer in self.modules()],
                "rows": len(rows),
            }
        )
        sums = rows.flatten(1).sum(1).tolist()
        self.forward_samples += sums
        if logits.requires_grad:
            logits.register_hook(self.came_back(sums, poisoned))
        if self.turns:
            gains = self.gains + self.more + self.gain
            logits = logits.to(gains.dtype) * gains
        if self.loudness != 1.0:
            logits = logits.to(self.last.weight.dtype) * self.loudness
        return logits

    def came_back(self, sums, poisoned):
        def hook(gradient):
            self.backward_samples.extend(sums)
            self.in_backward.append(autocast_now())
            return gradient * math.inf if poisoned else None

        return hook

    def forget(self):
        for one in (
            self.forwards,
            self.forward_samples,
            self.backward_samples,
            self.in_backward,
        ):
            one.clear()
        self.num_calls = 0


def dtypes_of(tensors):
    return sorted({name_of(one.dtype) for one in tensors})


def made(case):
    """The case's model, with the case's weights."""
    with torch.random.fork_rng(devices=[]):
        model = Watched(case)
    model.to(DTYPES[case["weights_dtype"]]).train(case["mode"] != "eval")
    if case["mode"] == "mixed":
        model.middle.eval()
    fill(model, case["start"])
    model.frozen = [not one.requires_grad for one in model.parameters()]
    return model


def fill(model, start):
    with torch.no_grad():
        at = 0
        for parameter in model.parameters():
            size = parameter.numel()
            values = start[at : at + size].view_as(parameter)
            width = parameter.shape[-1] if parameter.dim() else 1
            parameter.copy_(values / max(1, width) ** 0.5)
            at += size


def optimizer_of(case, model):
    """SGD over all parameters, in one group or in three."""
    parameters = list(model.parameters())
    groups = [{"params": parameters}]
    if case["three_groups"]:
        groups = [{"params": parameters[i::3]} for i in range(3)]
    optimizer = torch.optim.SGD(groups, **case["sgd"])
    optimizer.steps = []

    def note(*_):
        optimizer.steps.append(
            {
                "autocast": autocast_now(),
                "weights": dtypes_of(model.parameters()),
            }
        )

    def note_gradients(*_):
        # A closure makes them within the step.
        kept = [p.grad for p in model.parameters() if p.grad is not None]
        optimizer.steps[-1]["gradients"] = dtypes_of(kept)
        optimizer.steps[-1]["rounded"] = all(
            torch.equal(one, one.bfloat16().to(one.dtype)) for one in kept
        )

    optimizer.register_step_pre_hook(note)
    optimizer.register_step_post_hook(note_gradients)
    return optimizer


def hooks_of(optimizer):
    """How many hooks the optimizer has; those of its class do not count."""
    names = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    return sum(len(getattr(optimizer, name, ())) for name in names)


def weights_of(model):
    vector = nn.utils.parameters_to_vector(model.parameters())
    return vector.detach().double().clone()


def buffers_of(optimizer):
    """The optimizer's momentum, as one vector."""
    kept = [
        state["momentum_buffer"].flatten().double()
        for state in optimizer.state.values()
        if state.get("momentum_buffer") is not None
    ]
    return torch.cat(kept).clone() if kept else torch.zeros(0).double()


def gradient_norm(model):
    kept = [p.grad for p in model.parameters() if p.grad is not None]
    if not kept:
        return 0.0
    return torch.cat([one.flatten() for one in kept]).double().norm().item()


def close_autocast():
    """Switches autocast off and forgets its copies of weights.

    Returns:
        Whether something had been left on: such a thing would reach into what is
        run next.
    """
    was_on = torch.is_autocast_enabled("cpu")
    depth = torch.autocast_increment_nesting() - 1
    changed = (
        was_on
        or depth > 0
        or not torch.is_autocast_cache_enabled()
        or torch.get_autocast_dtype("cpu") != torch.bfloat16
    )
    while torch.autocast_decrement_nesting() > 0:
        pass
    torch.clear_autocast_cache()
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_cache_enabled(True)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    return changed


def give_old_gradients(model):
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    if hasattr(model, "unused"):
        model.unused.zero_grad()


def rng_kept():
    """Whether PyTorch's global generator is as `torch.manual_seed(SEED)` left it:
    neither seeded nor drawn from."""
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(SEED)
    kept = torch.equal(state, torch.get_rng_state())
    torch.set_rng_state(state)
    return kept


def use_of(model, optimizer, modes, tensors):
    """How model, optimizer, global generator and tensors were treated."""
    left = [one.training for one in model.modules()]
    return {
        "rng_kept": rng_kept(),
        "parameters_kept": [not p.requires_grad for p in model.parameters()]
        == model.frozen
        and not any(p._backward_hooks for p in model.parameters()),
        "hooks": hooks_of(optimizer),
        "called": model.num_calls == len(model.forwards),
        "modes_kept": left == modes
        and all(one["modes"] == modes for one in model.forwards),
        "tensors_plain": not any(
            one.requires_grad or one.grad is not None for one in tensors
        ),
        "forwards": [
            {key: one[key] for key in ("x", "autocast", "layers", "weights")}
            for one in model.forwards
        ],
        "rows": sorted(one["rows"] for one in model.forwards),
        "in_backward": list(model.in_backward),
        "forward": as_sorted(model.forward_samples),
        "backward": as_sorted(model.backward_samples),
    }


def as_sorted(numbers):
    return torch.tensor(numbers, dtype=torch.float64).sort().values


# train_in_bf16


class Unread(OSError, RuntimeError):
    """What a loader raises, of a kind that many catch."""


class Batches:
    """Yields batches, and notes whether autocast is on when one is asked for, and
    how many were read beyond those that the next step needs: `needed()` of all. If it
    `breaks`, it raises where the others end."""

    def __init__(self, batches, needed, breaks=False):
        self.batches, self.autocast, self.breaks = batches, [], breaks
        self.needed, self.read_ahead = needed, 0

    def read(self):
        for num_read, pair in enumerate(self.batches, start=1):
            self.autocast.append(autocast_now())
            self.read_ahead = max(self.read_ahead, num_read - self.needed())
            yield [*pair]  # a list, as a `DataLoader` gives it
        if self.breaks:
            raise Unread("the next file cannot be read")


class Anew:
    """Gives a new iterator each time, as a `DataLoader` does, but not without
    end: one epoch needs one."""

    def __init__(self, read):
        self.read, self.num_begun = read, 0

    def __repr__(self):
        return "a loader without a length"

    def __iter__(self):
        self.num_begun += 1
        if self.num_begun > 20:
            raise RuntimeError("the loader was begun again and again")
        return self.read()


def trained_in_bf16(train_in_bf16, case):
    batches = case["batches"]
    model = made(case)
    optimizer = optimizer_of(case, model)
    if case["old_gradients"]:
        give_old_gradients(model)
    modes = [layer.training for layer in model.modules()]
    losses_made = []

    def loss_fn(logits, y):
        if len(losses_made) == case["fails_at"]:
            raise LookupError("this loss fails")
        if y.is_floating_point():
            loss = F.mse_loss(logits.mean(1), y)
        else:
            loss = F.cross_entropy(logits, y)
        losses_made.append(name_of(loss.dtype))
        return loss

    reader = Batches(batches, lambda: len(optimizer.steps) + 1)
    given = reader.read() if case["as_generator"] else batches
    options = {} if case["enabled"] is None else {"enabled": case["enabled"]}
    close_autocast()
    torch.default_generator.manual_seed(SEED)
    losses = None
    try:
        with contextlib.suppress(LookupError):
            losses = train_in_bf16(model, optimizer, loss_fn, given, **options)
        autocast_after = autocast_now()
    finally:
        left_on = close_autocast()
    tensors = [one for pair in batches for one in pair]
    return {
        "weights": weights_of(model),
        "losses": losses,
        "loss_dtypes": sorted(set(losses_made)),
        "num_losses": len(losses_made),
        "steps": optimizer.steps,
        "reading": sorted(set(reader.autocast)),
        "read_ahead": reader.read_ahead,
        "autocast_after": autocast_after,
        "left_on": left_on,
        "weights_after": dtypes_of(model.parameters()),
        **use_of(model, optimizer, modes, tensors),
    }


# LossScaler


def scaler_of(LossScaler, case):
    return LossScaler(**case["settings"])


def good_steps(scaler, number):
    """Steps of an optimizer that holds one number and moves nothing: a scaler
    counts them, and they are cheap."""
    weight = torch.zeros(1, requires_grad=True)
    idle = torch.optim.SGD([weight])
    idle.step = lambda closure=None: None
    scaler.scale(weight.sum()).backward()
    for _ in range(number):
        weight.grad.fill_(1.0)
        scaler.step(idle)
        scaler.update()


def some_steps(LossScaler, case):
    """Trains with the scaler, a batch a step; some gradients are spoilt. If
    `frozen_late`, the last layer is frozen after each backward pass."""
    model = made(case)
    optimizer = optimizer_of(case, model)
    dtype = DTYPES.get(case["autocast"], torch.bfloat16)
    torch.default_generator.manual_seed(SEED)
    scaler = scaler_of(LossScaler, case)
    if case["steps_before"]:
        good_steps(scaler, case["steps_before"])
    history = []
    frozen_late = list(model.last.parameters()) if case["frozen_late"] else []
    for (x, y), spoilt in zip(case["batches"], case["spoilt"], strict=True):
        for parameter in frozen_late:
            parameter.requires_grad_(True)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype, enabled=case["autocast"] != "off"):
            loss = F.cross_entropy(model(x), y) + case["added"]
        known = loss.item()
        scaled = scaler.scale(loss)
        scaled.backward()
        found = {
            "scale": scaler.get_scale(),
            "loss": known,
            "scaled": scaled.detach().double().item(),
            "scaled_dtype": name_of(scaled.dtype),
            # a NaN equals nothing, and an earlier step made it
            "loss_kept": loss.item() == known or known != known,
        }
        if spoilt is not None:
            spoil(model, *spoilt)
        for parameter in frozen_late:
            parameter.requires_grad_(False)
        if case["unscale_first"]:
            found["scaled_norm"] = gradient_norm(model)
            scaler.unscale_(optimizer)
            found["norm"] = gradient_norm(model)
            found["finite_norm"] = finite_norm(model)
            if case["max_norm"] is not None:
                nn.utils.clip_grad_norm_(model.parameters(), case["max_norm"])
        scaler.step(optimizer)
        found["norm_left"] = finite_norm(model)
        found["step_scale"] = scaler.get_scale()
        scaler.update()
        history.append(
            {
                **found,
                "weights": weights_of(model),
                "momentum": buffers_of(optimizer),
                "num_steps": len(optimizer.steps),
                "next_scale": scaler.get_scale(),
            }
        )
    return {
        "history": history,
        "rng_kept": rng_kept(),
        "grad_mode": torch.is_grad_enabled(),
    }


def spoil(model, which, values):
    """Writes values into the gradient of one parameter: at its end, or all over
    it if it is one finite value."""
    kept = [p for p in model.parameters() if p.grad is not None]
    gradient = kept[which % len(kept)].grad
    if math.isfinite(values[0]):
        gradient.fill_(values[0])
    else:
        gradient.view(-1)[-len(values) :] = gradient.new_tensor(values)


def finite_norm(model):
    """The norm of what is finite in the gradients."""
    kept = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat(
        [torch.zeros(1), *(one.flatten() for one in kept)]
    ).double()
    return flat[flat.isfinite()].norm().item()


def a_backward(scaler, model, optimizer, pair):
    optimizer.zero_grad()
    x, y = pair
    scaler.scale(F.cross_entropy(model(x), y)).backward()


def told_off(call):
    try:
        call()
    except RuntimeError:
        return "a RuntimeError"
    except AssertionError:
        return "an AssertionError"
    except Exception:
        return "another exception"
    return "nothing"


def misused(LossScaler, case):
    """Calls in an order in which they must not come, then in one in which they
    may."""
    model = made(case)
    optimizer = optimizer_of(case, model)
    scaler = scaler_of(LossScaler, case)
    first, second, third = case["batches"]
    a_backward(scaler, model, optimizer, first)
    scaler.unscale_(optimizer)
    twice = told_off(lambda: scaler.unscale_(optimizer))
    scaler.step(optimizer)
    after_step = told_off(lambda: scaler.unscale_(optimizer))
    step_twice = told_off(lambda: scaler.step(optimizer))
    scaler.update()
    weights = [weights_of(model)]
    a_backward(scaler, model, optimizer, second)
    scaler.step(optimizer)
    after_own = told_off(lambda: scaler.unscale_(optimizer))
    step_again = told_off(lambda: scaler.step(optimizer))
    scaler.update()
    weights.append(weights_of(model))
    a_backward(scaler, model, optimizer, third)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    weights.append(weights_of(model))
    a_backward(scaler, model, optimizer, first)
    spoil(model, 0, SPOILT)
    scaler.step(optimizer)
    step_after_none = told_off(lambda: scaler.step(optimizer))
    scaler.update()
    return {
        "scale": scaler.get_scale(),
        "unscale_ after unscale_": twice,
        "unscale_ after step": after_step,
        "step after step": step_twice,
        "unscale_ after step, without unscale_ before": after_own,
        "step after step, without unscale_": step_again,
        "step after a step left out": step_after_none,
        "weights": weights,
    }


def one_step_of(scaler, model, optimizer, pair, spoilt):
    a_backward(scaler, model, optimizer, pair)
    if spoilt is not None:
        spoil(model, *spoilt)
    scaler.step(optimizer)
    scaler.update()


def saved_and_loaded(LossScaler, case):
    """Steps, a checkpoint of the scaler, and the steps after it: in the scaler
    itself and in a new one that loads the checkpoint."""
    model = made(case)
    optimizer = optimizer_of(case, model)
    scaler = scaler_of(LossScaler, case)
    pairs = list(zip(case["batches"], case["spoilt"], strict=True))
    for pair, spoilt in pairs[: case["saved_after"]]:
        one_step_of(scaler, model, optimizer, pair, spoilt)
    state = scaler.state_dict()
    is_dict, file = isinstance(state, dict), io.BytesIO()
    try:
        torch.save(dict(state), file)
        file.seek(0)
        loaded, loads = torch.load(file), True
    except (
        Exception
    ):  # it holds what cannot be saved, or is refused by torch.load
        loaded, loads = dict(state), False
    scales = {}
    for name in ("same", "new", "snapshot", "again"):
        if name != "same":
            scaler = LossScaler(**case["new_settings"])
            scaler.load_state_dict(state if name == "snapshot" else loaded)
        scales[name] = [scaler.get_scale()]
        for pair, spoilt in pairs[case["saved_after"] :]:
            one_step_of(scaler, model, optimizer, pair, spoilt)
            scales[name].append(scaler.get_scale())
    return {"is_dict": is_dict, "loads": loads, **scales}


def loaded_when_off(LossScaler, case):
    """Disabled scalers: one loads what an enabled one has saved, then another
    loads what the first had saved before; each makes a step, from the weights at
    the start."""
    model = made(case)
    optimizer = optimizer_of(case, model)
    scaler = scaler_of(LossScaler, case)
    pairs = list(zip(case["batches"], case["spoilt"], strict=True))
    for pair, spoilt in pairs[:-2]:
        one_step_of(scaler, model, optimizer, pair, spoilt)
    off = {**case["new_settings"], "enabled": False}
    first, second = LossScaler(**off), LossScaler(enabled=False)
    own = first.state_dict()
    is_dict = isinstance(own, dict)
    first.load_state_dict(scaler.state_dict())
    second.load_state_dict(own)
    found = []
    model = made(case)
    optimizer = optimizer_of(case, model)
    for one, (pair, _) in zip((first, second), pairs[-2:], strict=True):
        before = one.get_scale()
        with torch.no_grad():
            loss = F.cross_entropy(model(pair[0]), pair[1])
            scaled = one.scale(loss.clone())
        one_step_of(one, model, optimizer, pair, None)
        found.append(
            {
                "scale": before,
                "next_scale": one.get_scale(),
                "loss": loss.item(),
                "scaled": scaled.item(),
                "weights": weights_of(model),
            }
        )
    return {"is_dict": is_dict, "history": found}


def two_at_once(LossScaler, case):
    """Two scalers for two models: each alone, then both, call by call."""
    together = some_in_turns(LossScaler, case, (0, 1))
    alone = [some_in_turns(LossScaler, case, (i,)) for i in (0, 1)]
    return {
        "scales": together["scales"],
        "weights": together["weights"],
        "scales_alone": [one["scales"][0] for one in alone],
        "weights_alone": [one["weights"][0] for one in alone],
    }


def some_in_turns(LossScaler, case, which):
    pairs = list(zip(case["batches"], case["spoilt"], strict=True))
    models = [made(case) for _ in which]
    optimizers = [optimizer_of(case, model) for model in models]
    scalers = [LossScaler(**case["both_settings"][i]) for i in which]
    scales = [[] for _ in which]
    parts = list(zip(scalers, models, optimizers, strict=True))
    for pair, spoilt in pairs:
        for i, (scaler, model, optimizer) in zip(which, parts, strict=True):
            a_backward(scaler, model, optimizer, pair)
            if i == 0 and spoilt is not None:
                spoil(model, *spoilt)
        # as where two networks train against each other: both, call by call
        for scaler, _, optimizer in parts:
            scaler.unscale_(optimizer)
        for scaler, _, optimizer in parts:
            scaler.step(optimizer)
        for scaler, kept in zip(scalers, scales, strict=True):
            scaler.update()
            kept.append(scaler.get_scale())
    return {"scales": scales, "weights": [weights_of(one) for one in models]}


# clipped_step and train_epoch_amp


class Scaler(torch.amp.GradScaler):
    """PyTorch's scaler, which writes down what is asked of it."""

    def __init__(self, **settings):
        super().__init__("cpu", **settings)
        self.num_updates, self.num_steps, self.scaled = 0, 0, []

    def scale(self, outputs):
        if torch.is_tensor(outputs):
            self.scaled.append(name_of(outputs.dtype))
        return super().scale(outputs)

    def step(self, optimizer, *arguments, **options):
        self.num_steps += 1
        return super().step(optimizer, *arguments, **options)

    def update(self, new_scale=None):
        self.num_updates += 1
        super().update(new_scale)


def clipped_steps(clipped_step, case):
    """Some batches, one after another."""
    model = made(case)
    optimizer = optimizer_of(case, model)
    if case["old_gradients"]:
        give_old_gradients(model)
    scaler = Scaler(**case["settings"])
    modes = [layer.training for layer in model.modules()]
    options = {}
    if case["autocast"] != "off":
        options["dtype"] = DTYPES[case["autocast"]]
    history = []
    close_autocast()
    torch.default_generator.manual_seed(SEED)
    try:
        for x, y in case["batches"]:
            result = clipped_step(
                model, optimizer, scaler, x, y, case["max_norm"], **options
            )
            is_pair = isinstance(result, tuple) and len(result) == 2
            loss, norm = result if is_pair else (None, None)
            history.append(
                {
                    "is_pair": is_pair,
                    "loss": loss,
                    "norm": norm,
                    "weights": weights_of(model),
                    "momentum": buffers_of(optimizer),
                    "num_steps": len(optimizer.steps),
                    "num_updates": scaler.num_updates,
                    "scale": scaler.get_scale(),
                    "autocast_after": autocast_now(),
                }
            )
    finally:
        left_on = close_autocast()
    tensors = [one for pair in case["batches"] for one in pair]
    return {
        "history": history,
        "scaled": sorted(set(scaler.scaled)),
        "steps": optimizer.steps,
        "left_on": left_on,
        "weights_after": dtypes_of(model.parameters()),
        **use_of(model, optimizer, modes, tensors),
    }


class Scheduler(torch.optim.lr_scheduler.LambdaLR):
    """Counts its steps. It lowers the rate at every step, or warms up from 0."""

    def __init__(self, optimizer, warms_up):
        self.num_steps = -1  # the first one is its own
        rate = (lambda step: step / 4) if warms_up else (lambda step: 0.7**step)
        super().__init__(optimizer, rate)

    def step(self, *arguments):
        self.num_steps += 1
        super().step(*arguments)


def bytes_of_one(model, x, y, autocast):
    """What one forward pass over these rows keeps for its backward pass."""
    dtype = DTYPES.get(autocast, torch.bfloat16)
    with (
        saved_tensor_bytes([*model.parameters(), x, y]) as saved,
        torch.autocast("cpu", dtype, enabled=autocast != "off"),
    ):
        loss = F.cross_entropy(model(x), y)
    del loss
    model.forget()
    return saved.peak_bytes


def epochs_in_windows(train_epoch_amp, case):
    """Some epochs over the same micro-batches."""
    micro_batches, k = case["micro_batches"], case["accumulation_steps"]
    model = made(case)
    optimizer = optimizer_of(case, model)
    scaler = Scaler(**case["settings"])
    modes = [layer.training for layer in model.modules()]
    options = {}
    if case["autocast"] != "off":
        options["dtype"] = DTYPES[case["autocast"]]
    if case["scheduled"]:
        scheduler = Scheduler(optimizer, case["scheduled"] == "warm-up")
        options["scheduler"] = scheduler
    tensors = [tensor for pair in micro_batches for tensor in pair]
    one = 1
    if micro_batches:
        largest = max(micro_batches, key=lambda pair: len(pair[1]))
        one = bytes_of_one(model, *largest, case["autocast"])
    torch.default_generator.manual_seed(SEED)
    close_autocast()
    history, came_out = [], False
    try:
        for _ in range(case["num_epochs"]):
            before = scaler.num_updates

            def needed(before=before):
                return k * (scaler.num_updates - before + 1)

            reader = Batches(micro_batches, needed, case["breaks"])
            with saved_tensor_bytes([*model.parameters(), *tensors]) as saved:
                loader = Anew(reader.read)
                if case["as_generator"]:
                    loader = reader.read()
                try:
                    result = train_epoch_amp(
                        model, optimizer, scaler, loader, k, **options
                    )
                except Unread:
                    if not case["breaks"]:
                        raise
                    came_out = True
                    break
            is_pair = isinstance(result, tuple) and len(result) == 2
            loss, skipped = result if is_pair else (None, None)
            history.append(
                {
                    "is_pair": is_pair,
                    "loss": loss,
                    "skipped": skipped,
                    "weights": weights_of(model),
                    "momentum": buffers_of(optimizer),
                    "left": gradient_norm(model),
                    "num_steps": len(optimizer.steps),
                    "num_updates": scaler.num_updates,
                    "scale": scaler.get_scale(),
                    "scheduler_steps": scheduler.num_steps
                    if case["scheduled"]
                    else 0,
                    "rate": optimizer.param_groups[0]["lr"],
                    "graphs": round(saved.peak_bytes / one),
                    "autocast_after": autocast_now(),
                    "reading": sorted(set(reader.autocast)),
                    "read_ahead": reader.read_ahead,
                }
            )
    finally:
        left_on = close_autocast()
    return {
        "history": history,
        "came_out": came_out,
        "scaled": sorted(set(scaler.scaled)),
        "steps": optimizer.steps,
        "left_on": left_on,
        "weights_after": dtypes_of(model.parameters()),
        **use_of(model, optimizer, modes, tensors),
    }
