# ruff: noqa: F821 - names of the set-up cells
"""Answers to `train_step` of chapter 15."""

import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


@accepted()
def by_shares_of_means(model, optimizer, schedule, scaler, batches, config):
    facts = {
        "lr": optimizer.param_groups[0]["lr"],
        "scale": scaler.get_scale(),
        "loss": 0.0,
    }
    total = sum(x.shape[0] for x, _ in batches)
    model.zero_grad(set_to_none=False)
    context = contextlib.nullcontext()
    if config["dtype"] is not None:
        context = torch.autocast("cpu", dtype=config["dtype"])
    for x, y in batches:
        with context:
            loss = nn.functional.cross_entropy(model(x), y) * (len(y) / total)
        scaler.scale(loss).backward()
        facts["loss"] += float(loss.detach())
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(
        [p for group in optimizer.param_groups for p in group["params"]],
        max_norm=config["max_norm"],
        foreach=False,
    )
    scaler.step(optimizer)
    scaler.update()
    facts["grad_norm"] = float(norm)
    facts["skipped"] = bool(scaler.get_scale() < facts["scale"])
    if not facts["skipped"]:
        schedule.step()
    model.zero_grad(set_to_none=True)
    return facts


@accepted()
def by_the_optimizers_parameters_alone(
    model, optimizer, schedule, scaler, batches, config
):
    trainable = [p for group in optimizer.param_groups for p in group["params"]]
    for p in trainable:
        p.grad = None
    facts = {
        "scale": float(scaler.get_scale()),
        "lr": float(schedule.get_last_lr()[0]),
    }
    samples = math.fsum(y.numel() for _, y in batches)
    losses = []
    for x, y in batches:
        around = (
            contextlib.nullcontext()
            if config["dtype"] is None
            else torch.autocast(x.device.type, config["dtype"])
        )
        with around:
            loss = nn.CrossEntropyLoss(reduction="none")(model(x), y).sum()
        losses.append(loss.item())
        scaler.scale(loss).mul(1 / samples).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.get_total_norm(
        [p.grad for p in trainable if p.grad is not None]
    )
    nn.utils.clip_grads_with_norm_(trainable, config["max_norm"], norm)
    scaler.step(optimizer)
    scaler.update()
    facts |= {
        "skipped": scaler.is_enabled() and not math.isfinite(norm),
        "grad_norm": float(norm),
        "loss": sum(losses) / samples,
    }
    if not facts["skipped"]:
        schedule.step()
    for p in trainable:
        p.grad = None
    return facts


@accepted()
def by_what_is_trainable_alone(
    model, optimizer, schedule, scaler, batches, config
):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer.zero_grad(set_to_none=True)
    rate, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
    n = len(torch.cat([y for _, y in batches]))

    def one(x, y):
        kind = x.device.type
        with torch.autocast(
            kind,
            config["dtype"] or torch.bfloat16,
            enabled=bool(config["dtype"]),
        ):
            loss = F.cross_entropy(model(x), y) * (len(y) / n)
        scaler.scale(loss).backward()
        return loss.detach()

    losses = torch.stack([one(*pair) for pair in batches])
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(params, config["max_norm"])
    scaler.step(optimizer)
    scaler.update()
    left_out = scale > scaler.get_scale()
    None if left_out else schedule.step()
    optimizer.zero_grad(set_to_none=True)
    return dict(
        loss=losses.sum().item(),
        grad_norm=norm.item(),
        skipped=left_out,
        lr=rate,
        scale=scale,
    )


@accepted()
def by_counting_optimizer_steps(
    model, optimizer, schedule, scaler, batches, config
):
    made = []
    handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
    rate, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
    samples = sum(len(y) for _, y in batches)
    for parameter in model.parameters():
        parameter.grad = None
    total = 0.0
    for x, y in batches:
        on = config["dtype"] is not None
        with torch.autocast("cpu", config["dtype"], enabled=on):
            losses = F.cross_entropy(model(x), y, reduction="none")
            part = losses.sum() / samples
        scaler.scale(part).backward()
        total += part.item()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
    scaler.step(optimizer)
    scaler.update()
    handle.remove()
    if made:
        schedule.step()
    for parameter in model.parameters():
        parameter.grad = None
    return dict(
        loss=total,
        grad_norm=norm.item(),
        skipped=not made,
        lr=rate,
        scale=scale,
    )


@accepted()
def by_division_after_the_sum(
    model, optimizer, schedule, scaler, batches, config
):
    lr, scale = float(optimizer.param_groups[0]["lr"]), scaler.get_scale()
    model.zero_grad()
    n, loss_sum = 0, 0.0
    for x, y in batches:
        if config["dtype"] is None:
            loss = F.cross_entropy(model(x), y, reduction="sum")
        else:
            with torch.autocast(x.device.type, dtype=config["dtype"]):
                loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss).backward()
        loss_sum += loss.item()
        n += len(x)
    scaler.unscale_(optimizer)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    for one in gradients:
        one.div_(n)
    norm = nn.utils.get_total_norm(gradients)
    nn.utils.clip_grads_with_norm_(model.parameters(), config["max_norm"], norm)
    scaler.step(optimizer)
    scaler.update()
    skipped = scaler.get_scale() < scale
    if not skipped:
        schedule.step()
    model.zero_grad()
    return {
        "loss": loss_sum / n,
        "grad_norm": float(norm),
        "skipped": skipped,
        "lr": lr,
        "scale": scale,
    }


@accepted()
def by_clipping_with_a_factor(
    model, optimizer, schedule, scaler, batches, config
):
    facts = dict(lr=optimizer.param_groups[0]["lr"], scale=scaler.get_scale())
    total = sum(len(y) for _, y in batches)
    model.zero_grad()
    losses = []
    for x, y in batches:
        with torch.autocast(
            "cpu",
            dtype=config["dtype"] or torch.bfloat16,
            enabled=bool(config["dtype"]),
        ):
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
        scaler.scale(loss).backward()
        losses.append(loss.item())
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(g.double().square().sum().item() for g in grads))
    if norm > config["max_norm"]:
        for g in grads:
            g.mul_(config["max_norm"] / norm)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    facts["skipped"] = scaler.is_enabled() and scaler.get_scale() < before
    if not facts["skipped"]:
        schedule.step()
    model.zero_grad()
    return {**facts, "loss": sum(losses), "grad_norm": norm}


@accepted()
def by_a_finite_norm(model, optimizer, schedule, scaler, batches, config):
    lr = schedule.get_last_lr()[0]
    scale = scaler.get_scale()
    total = sum(y.numel() for _, y in batches)
    model.zero_grad(set_to_none=True)
    loss_sum = torch.zeros((), dtype=torch.float64)
    for x, y in batches:
        with torch.autocast(
            "cpu", config["dtype"], enabled=config["dtype"] is not None
        ):
            log_probs = F.log_softmax(model(x), dim=1)
            loss = F.nll_loss(log_probs, y, reduction="sum")
        scaler.scale(loss / total).backward()
        loss_sum += loss.detach()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
    scaler.step(optimizer)
    scaler.update()
    skipped = scaler.is_enabled() and not math.isfinite(norm)
    if not skipped:
        schedule.step()
    model.zero_grad()
    return {
        "loss": (loss_sum / total).item(),
        "grad_norm": norm.item(),
        "skipped": skipped,
        "lr": lr,
        "scale": scale,
    }


by_its_own_skip = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        skipped = scaler.is_enabled() and not math.isfinite(norm.item())
        if not skipped:
            optimizer.step()
        """,
        "skipped = scaler.get_scale() < scale": "",
    },
)


@accepted(body=True)
def by_adding_up_gradients():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.nll_loss(
                    F.log_softmax(model(x), 1), y, reduction="sum"
                )
            scaled = scaler.scale(loss / num_samples)
            wanted = [one for one in model.parameters() if one.requires_grad]
            for one, grad in zip(
                wanted, torch.autograd.grad(scaled, wanted), strict=True
            ):
                # a sum of two parameters has one gradient for both
                one.grad = grad.clone() if one.grad is None else one.grad + grad
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@accepted(body=True)
def by_a_limit_that_is_scaled():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        norm = nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"] * scaler.get_scale()
        )
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item() / scale,
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@accepted(body=True)
def mended_gradients_left():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        optimizer.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


mean_of_means = edit(
    SOLUTION,
    {
        'loss = F.cross_entropy(model(x), y, reduction="sum")': "loss = F.cross_entropy(model(x), y)",
        "scaler.scale(loss / num_samples).backward()": "scaler.scale(loss / len(batches)).backward()",
        "loss_sum += loss.item()": "loss_sum += loss.item() * len(y)",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You took the mean over the micro-batches of their means. In a "
    "small micro-batch a sample then counts more. Sum, and divide by "
    "the samples of the whole list (chapter 09).",
)

sum_of_means = edit(
    SOLUTION,
    {
        'loss = F.cross_entropy(model(x), y, reduction="sum")': "loss = F.cross_entropy(model(x), y)",
        "scaler.scale(loss / num_samples).backward()": "scaler.scale(loss).backward()",
        "loss_sum += loss.item()": "loss_sum += loss.item() * len(y)",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You added up the means of the micro-batches: the gradient is too "
    "large by about the number of micro-batches. Divide by the samples "
    "of the whole list.",
)

sum_over_samples = edit(
    SOLUTION,
    {
        "scaler.scale(loss / num_samples).backward()": "scaler.scale(loss).backward()",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="The gradient is that of the sum over the samples. Divide by their "
    "number before the backward pass.",
)

only_the_last_micro_batch = edit(
    SOLUTION,
    {
        "scaler.scale(loss / num_samples).backward()": """
        model.zero_grad()
        scaler.scale(loss / num_samples).backward()
        """,
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You clear the gradients before every micro-batch, so only the last "
    "one counts. Clear them once per step.",
)

one_large_batch = edit(
    SOLUTION,
    {
        "for x, y in batches:": """
        x, y = (torch.cat(one) for one in zip(*batches, strict=True))
        for x, y in [(x, y)]:
        """,
    },
    breaks=hidden_tests.one_micro_batch_at_a_time,
    tells="You join the micro-batches into one. The result is right, and the "
    "memory that they were to save is gone.",
)

backward_at_the_end = edit(
    SOLUTION,
    {
        'dtype, loss_sum = config["dtype"], 0.0': 'dtype, loss_sum, scaled = config["dtype"], 0.0, 0.0',
        "scaler.scale(loss / num_samples).backward()": "scaled = scaled + scaler.scale(loss / num_samples)",
        "scaler.unscale_(optimizer)": """
        scaled.backward()
        scaler.unscale_(optimizer)
        """,
    },
    breaks=hidden_tests.one_micro_batch_at_a_time,
    tells="You go backward once, at the end: until then the graphs of all "
    "micro-batches are kept. Go backward on each before the next one.",
)

clipping_the_scaled_gradient = edit(
    SOLUTION,
    {"scaler.unscale_(optimizer)": ""},
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clipped the scaled gradient. Its norm is larger by the scale, "
    "and the step far too small. Call scaler.unscale_(optimizer) before "
    "you clip.",
)

unscaling_after_clipping = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.unscale_(optimizer)
        """,
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': "",
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clipped the scaled gradient. Its norm is larger by the scale, "
    "and the step far too small. Call scaler.unscale_(optimizer) before "
    "you clip.",
)

without_clipping = edit(
    SOLUTION,
    {'config["max_norm"]': "math.inf"},
    breaks=hidden_tests.clips_the_true_gradient,
    tells="The step was made with a gradient that is not clipped: max_norm "
    "has no effect on it. Clip after unscale_ and before the step.",
)

clipping_by_value = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        nn.utils.clip_grad_value_(model.parameters(), config["max_norm"])
        """,
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clipped each entry of the gradient. That turns its direction; "
    "clip the norm of all parameters together (chapter 08).",
)

clipping_each_parameter = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        for one in model.parameters():
            nn.utils.clip_grad_norm_(one, config["max_norm"])
        """,
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clipped the norm of each parameter alone. The limit holds for "
    "the norm of all of them together.",
)

always_stretched_to_the_limit = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        for one in model.parameters():
            if one.grad is not None and math.isfinite(norm):
                one.grad.mul_(config["max_norm"] / norm)
        """,
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You bring every gradient to the norm max_norm, also one that was "
    "shorter. Clipping only shortens.",
)

clipping_after_the_step = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        """,
        "scaler.step(optimizer)": "",
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="The step was made with a gradient that is not clipped: max_norm "
    "has no effect on it. Clip after unscale_ and before the step.",
)

clipping_within_the_loop = edit(
    SOLUTION,
    {
        "scaler.scale(loss / num_samples).backward()": """
        scaler.scale(loss / num_samples).backward()
        nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"] * scale
        )
        """,
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clip after every micro-batch. What is clipped must be the "
    "gradient of all of them: once, before the step.",
)

optimizer_steps_by_itself = edit(
    SOLUTION,
    {"scaler.step(optimizer)": "optimizer.step()"},
    breaks=hidden_tests.overflow_is_left_out,
    tells="You call optimizer.step() and not scaler.step(optimizer): an "
    "infinite gradient goes into the weights.",
)

overflow_raises = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"], error_if_nonfinite=True
        )
        """,
    },
    breaks=hidden_tests.overflow_is_left_out,
    tells="You raise at an overflow. With a scaler that is an ordinary event: "
    "it leaves out the step and lowers the scale.",
)

scaler_is_not_updated = edit(
    SOLUTION,
    {
        """
        scaler.update()
        skipped = scaler.get_scale() < scale
        """: """
        skipped = not math.isfinite(norm)
        scaler._per_optimizer_states.clear()
        """,
    },
    breaks=hidden_tests.overflow_is_left_out,
    tells="The scaler is not updated: its scale never falls after an overflow "
    "and never grows. Call scaler.update() once per step.",
)

schedule_on_every_call = edit(
    SOLUTION,
    {
        """
        if not skipped:
            schedule.step()
        """: "schedule.step()",
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="The schedule moves also where the step was left out. Then the plan "
    "runs ahead of the steps, and PyTorch warns if it is the first.",
)

schedule_per_micro_batch = edit(
    SOLUTION,
    {
        "schedule.step()": """
        for _ in batches:
            schedule.step()
        """,
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="The schedule moves once per micro-batch: the plan is over long "
    "before the run. Move it once per optimizer step.",
)

schedule_never = edit(
    SOLUTION,
    {
        """
        if not skipped:
            schedule.step()
        """: "",
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="The schedule never moves. Call schedule.step() after each step "
    "that was made.",
)

schedule_first = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        scaler.unscale_(optimizer)
        schedule.step()
        """,
        """
        if not skipped:
            schedule.step()
        """: "",
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="The schedule moves before the optimizer: the first rate of the "
    "plan is never used. And it moves where the step is left out.",
)

any_change_of_scale_is_a_skip = edit(
    SOLUTION,
    {
        "skipped = scaler.get_scale() < scale": "skipped = scaler.get_scale() != scale",
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="You take every change of the scale for a step left out. It also "
    "grows, after steps that were made; only a smaller one means a "
    "skip.",
)

skip_by_still_weights = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        before = [p.detach().clone() for p in model.parameters()]
        scaler.step(optimizer)
        """,
        "skipped = scaler.get_scale() < scale": "skipped = all(map(torch.equal, before, model.parameters()))",
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="You take a step that moved no weight for one left out. At a rate of "
    "0, as a warm-up begins, a step moves nothing, and the schedule never "
    "leaves that rate.",
)

skip_by_the_loss = edit(
    SOLUTION,
    {
        "skipped = scaler.get_scale() < scale": "skipped = not math.isfinite(loss_sum)",
    },
    breaks=hidden_tests.overflow_is_left_out,
    tells="You ask whether the loss is finite. Gradients overflow while the "
    "loss is fine. Ask the scale: only a skip lowers it.",
)

everything_under_autocast = edit(
    SOLUTION,
    {
        """
        with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss / num_samples).backward()
        """: """
        with torch.autocast(
            x.device.type, dtype, enabled=dtype is not None
        ):
            loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
        """,
    },
    breaks=hidden_tests.autocast_where_asked,
    tells="The backward pass is under autocast. It belongs outside: each "
    "operation goes back in the dtype in which it went forward.",
)

autocast_always_on = edit(
    SOLUTION,
    {"dtype, enabled=dtype is not None)": "dtype)"},
    breaks=hidden_tests.autocast_where_asked,
    tells="Autocast is on also where dtype is None: then torch.autocast takes "
    "its default, bfloat16 on a CPU.",
)

without_autocast = edit(
    SOLUTION,
    {"dtype is not None": "False"},
    breaks=hidden_tests.autocast_where_asked,
    tells="There is no autocast: the forward pass is in full precision.",
)

autocast_default_dtype = edit(
    SOLUTION,
    {", dtype, enabled": ", enabled"},
    breaks=hidden_tests.autocast_where_asked,
    tells="You do not name the dtype, and autocast takes bfloat16 on a CPU "
    "also where float16 was asked for.",
)

converted_inputs = edit(
    SOLUTION,
    {
        'loss = F.cross_entropy(model(x), y, reduction="sum")': """
        loss = F.cross_entropy(
            model(x.to(dtype) if dtype else x), y, reduction="sum"
        )
        """,
    },
    breaks=hidden_tests.autocast_where_asked,
    tells="You convert x yourself. Autocast converts where it helps, "
    "operation by operation; the model gets x as it came.",
)

gradients_left = edit(
    mended_gradients_left,
    {"optimizer.zero_grad()": ""},
    breaks=hidden_tests.clean_gradients,
    tells="After the step its gradients are still there. Clear them: what "
    "comes next (another loss, an evaluation of gradients) starts "
    "clean.",
)

old_gradients_count = edit(
    mended_gradients_left,
    {
        "model.zero_grad()": "",
        "optimizer.zero_grad()": "model.zero_grad()",
    },
    breaks=hidden_tests.clean_gradients,
    tells="Gradients that were there before are added to those of the step. "
    "Clear them at the start as well.",
)

training_mode_by_itself = edit(
    SOLUTION,
    {
        "for x, y in batches:": """
        model.train()
        for x, y in batches:
        """,
    },
    breaks=hidden_tests.modes_of_the_caller,
    tells="You call model.train(): that puts frozen parts back into training "
    "mode, and their statistics move. The modes are the caller's.",
)

eval_mode = edit(
    SOLUTION,
    {
        "for x, y in batches:": """
        model.eval()
        for x, y in batches:
        """,
    },
    breaks=hidden_tests.modes_of_the_caller,
    tells="You put the model into eval mode. The modes are the caller's.",
)

norm_after_clipping = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        norm = norm.clamp(max=config["max_norm"])
        """,
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="grad_norm is the norm after clipping, never above the limit. In a "
    "report it is the norm before clipping that tells something.",
)

rate_after_the_schedule = edit(
    SOLUTION,
    {
        '"lr": lr,': '"lr": optimizer.param_groups[0]["lr"],',
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="lr is read after the schedule moved: that is the rate of the next "
    "step.",
)

scale_after_the_update = edit(
    SOLUTION,
    {'"scale": scale,': '"scale": scaler.get_scale(),'},
    breaks=hidden_tests.facts_of_the_step,
    tells="scale is read after the update: that is the scale of the next step.",
)

loss_as_mean_of_means = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum += loss.item() / len(y)",
        "/ num_samples,": "/ len(batches),",
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="The step is right, and the loss that you report is the mean of the "
    "micro-batches' means. Divide the sum by the number of samples.",
)

loss_of_the_last_micro_batch = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum = loss.item() / len(y) * num_samples",
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="loss is that of the last micro-batch alone. Add up over all of them.",
)

facts_as_tensors = edit(
    SOLUTION,
    {"norm.item(),": "norm,"},
    breaks=hidden_tests.facts_of_the_step,
    tells="grad_norm is a tensor. A log of tensors keeps them on their "
    "device, and JSON refuses them: take .item().",
)

unscaling_in_the_loop = edit(
    SOLUTION,
    {
        "scaler.scale(loss / num_samples).backward()": """
        scaler.scale(loss / num_samples).backward()
        scaler.unscale_(optimizer)
        """,
        "scaler.unscale_(optimizer)": "",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You unscale after every micro-batch. The scaler does so once per "
    "step and raises at the second time; the gradients of later "
    "micro-batches would be scaled again.",
)

clean_only_after_made_steps = edit(
    mended_gradients_left,
    {
        "optimizer.zero_grad()": """
        if not skipped:
            model.zero_grad()
        """,
    },
    breaks=hidden_tests.clean_gradients,
    tells="After an overflow the infinite gradients are left. Clear them "
    "after every step, also after one that was left out.",
)

sizes_of_the_first = edit(
    SOLUTION,
    {
        "num_samples = sum(len(y) for _, y in batches)": "num_samples = len(batches) * len(batches[0][1])",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You take all micro-batches to be as large as the first. Add up "
    "their sizes.",
)

config_dtype_for_the_model = edit(
    SOLUTION,
    {
        "for x, y in batches:": """
        kept = next(model.parameters()).dtype
        model.to(dtype or kept)
        for x, y in batches:
        """,
        'loss = F.cross_entropy(model(x), y, reduction="sum")': """
        loss = F.cross_entropy(
            model(x.to(dtype or kept)), y, reduction="sum"
        )
        """,
        "scaler.unscale_(optimizer)": """
        model.to(kept)
        scaler.unscale_(optimizer)
        """,
    },
    breaks=hidden_tests.autocast_where_asked,
    tells="You convert the model to 16 bit for the forward pass and back. Its "
    "weights lose their last digits at every step; autocast makes "
    "copies by itself.",
)

any_norm_that_is_not_finite_is_a_skip = edit(
    SOLUTION,
    {
        "skipped = scaler.get_scale() < scale": "skipped = not math.isfinite(norm)",
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="A disabled scaler leaves out nothing, also where the norm is "
    "infinite: then the step was made, and skipped is False.",
)

loss_outside_autocast = edit(
    SOLUTION,
    {
        """
        with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        """: """
        with torch.autocast(
            x.device.type, dtype, enabled=dtype is not None
        ):
            logits = model(x)
        loss = F.cross_entropy(logits, y, reduction="sum")
        """,
    },
    breaks=hidden_tests.autocast_where_asked,
    tells="The loss is computed outside of autocast. It belongs into the with "
    "block, like the forward pass.",
)

step_under_autocast = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            scaler.step(optimizer)
        """,
    },
    breaks=hidden_tests.autocast_where_asked,
    tells="The optimizer steps under autocast. Only forward pass and loss "
    "belong there.",
)

only_the_optimizers_gradients_cleared = edit(
    mended_gradients_left,
    {"model.zero_grad()": "optimizer.zero_grad()"},
    breaks=hidden_tests.clean_gradients,
    tells="You clear the gradients that the optimizer knows. A parameter "
    "that was frozen in mid-run is not in it and still has its last "
    "gradient, whose norm counts when you clip. Clear those of the "
    "model.",
)

list_used_up = edit(
    SOLUTION,
    {
        "for x, y in batches:": """
        while batches:
            x, y = batches.pop(0)
        """,
    },
    breaks=hidden_tests.modes_of_the_caller,
    tells="You take the micro-batches out of the caller's list: afterwards "
    "it is empty. Go through it and leave it as it is.",
)

clipping_the_first_group = edit(
    SOLUTION,
    {"model.parameters()": 'optimizer.param_groups[0]["params"]'},
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clip the parameters of the first group alone. The limit "
    "holds for the norm of all of them together.",
)

clipping_the_largest_entry = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"], norm_type=float("inf")
        )
        """,
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="You clip by the largest entry, the infinity norm. The total norm "
    "is the 2-norm, the default.",
)

norm_of_zero_at_an_overflow = edit(
    SOLUTION,
    {": norm.item()": ": float(np.nan_to_num(norm.item(), posinf=0.0))"},
    breaks=hidden_tests.facts_of_the_step,
    tells="Where the gradient overflows you report a norm of 0 or another "
    "number. It is infinite or NaN, and the report is to say so.",
)

infinite_gradients_as_zeros = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        scaler.unscale_(optimizer)
        for one in model.parameters():
            if one.grad is not None:
                one.grad.nan_to_num_(0.0, 0.0, 0.0)
        """,
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="You replace infinite gradients by numbers. The scaler no longer "
    "sees in the norm what happened, and the report looks as if "
    "nothing had.",
)

rest_of_the_list_left_out = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": """
        loss_sum += loss.item()
        if not all(
            p.grad.isfinite().all()
            for p in model.parameters()
            if p.grad is not None
        ):
            break
        """,
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="At an overflow you leave out the rest of the list: the loss is "
    "not that of all samples.",
)

a_second_forward_pass = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": """
        with torch.no_grad():
            loss_sum += F.cross_entropy(model(x), y, reduction="sum").item()
        """,
    },
    breaks=hidden_tests.one_micro_batch_at_a_time,
    tells="You run the model twice on each micro-batch, the second time for "
    "the loss alone. That costs a third more, and dropout and "
    "statistics count it twice. Keep the loss of the first.",
)

SECOND_LOOK = (
    "Where a number is not finite you call the model once more. Each micro-batch goes "
    "through once, whatever comes of it: the scaler leaves the step out."
)

second_look_at_a_bad_loss = edit(
    SOLUTION,
    {
        "scaler.scale(loss / num_samples).backward()": """
        if not loss.isfinite():
            with torch.no_grad():
                model(x)
        scaler.scale(loss / num_samples).backward()
        """,
    },
    breaks=hidden_tests.one_micro_batch_at_a_time,
    tells=SECOND_LOOK,
)

second_look_at_a_bad_gradient = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": """
        loss_sum += loss.item()
        if not all(p.grad.isfinite().all() for p in model.parameters() if p.requires_grad):
            with torch.no_grad():
                model(x)
        """,
    },
    breaks=hidden_tests.one_micro_batch_at_a_time,
    tells=SECOND_LOOK,
)

rate_of_the_last_group = edit(
    SOLUTION,
    {
        'lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()': 'lr, scale = optimizer.param_groups[-1]["lr"], scaler.get_scale()',
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="lr is the rate of another group than the first one, or the highest of all. That of the first one is asked for.",
)

single_samples_left_out = edit(
    SOLUTION,
    {
        "for x, y in batches:": "for x, y in [b for b in batches if len(b[1]) > 1]:",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You leave out micro-batches of a single sample. Every sample of "
    "the list counts.",
)

gradients_rounded = edit(
    SOLUTION,
    {
        'norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])': """
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        with torch.no_grad():
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.copy_(p.grad.to(dtype or p.dtype))
        """,
    },
    breaks=hidden_tests.autocast_where_asked,
    tells="You round the gradients to the dtype of autocast before the "
    "step. Once unscaled they need the full dtype: the small ones "
    "become 0.",
)

step_leaves_out_bad_micro_batches = edit(
    SOLUTION,
    {
        "scaler.scale(loss / num_samples).backward()": "if not loss.isfinite():\n"
        "    continue\n"
        "scaler.scale(loss / num_samples).backward()"
    },
    breaks=hidden_tests.overflow_is_left_out,
    tells="You leave out one micro-batch and step on the others. The whole step is left "
    "out: go backward all the same, and the scaler sees it.",
)

step_hides_a_loss_of_nan = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum += loss.item() if loss.isfinite() else 0.0"
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="A loss that is NaN is left out of your mean. It is a mean over all samples, and "
    "a NaN among them is worth knowing.",
)

step_where_the_norm_is_finite = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": "if norm.isfinite():\n    scaler.step(optimizer)"
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="You leave the step out yourself. An enabled scaler does that; a disabled one "
    "leaves none out. `scaler.step(optimizer)` knows which it is.",
)

step_where_something_is_left_of_the_gradient = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": 'if config["max_norm"] > 0:\n    scaler.step(optimizer)'
    },
    breaks=hidden_tests.clips_the_true_gradient,
    tells="With `max_norm` 0 you make no step. A step with gradients of zeros is one all "
    "the same: weight decay and momentum go on.",
)

step_where_the_norm_is_not_zero = edit(
    SOLUTION,
    {"scaler.step(optimizer)": "if norm != 0:\n    scaler.step(optimizer)"},
    breaks=hidden_tests.clips_the_true_gradient,
    tells="Where the gradient is 0 you make no step. A step with gradients of zeros is one "
    "all the same: weight decay and momentum go on.",
)

step_and_cap_the_scale = edit(
    SOLUTION,
    {
        "scaler.update()": "scaler.update()\n"
        "if scaler.is_enabled() and scaler.get_scale() > 65536:\n"
        "    scaler.update(65536.0)"
    },
    breaks=hidden_tests.schedule_moves_once,
    tells="You hold the scale below 65536. It may be any; and where you lower it, a step "
    "that was made looks as if it had been left out.",
)

step_on_what_was_nan = edit(
    SOLUTION,
    {
        "norm = nn.utils": "for p in model.parameters():\n"
        "    if p.grad is not None:\n"
        "        p.grad.nan_to_num_()\n"
        "norm = nn.utils"
    },
    breaks=hidden_tests.facts_of_the_step,
    tells="`nan_to_num_` hides a NaN, and the norm that you return is finite. Where the "
    "gradient holds a NaN, the norm is NaN.",
)

scale_with_a_floor = edit(
    SOLUTION,
    {
        "skipped = scaler.get_scale() < scale": """
        skipped = scaler.get_scale() < scale
        if scaler.is_enabled():
            scaler.update(min(max(scaler.get_scale(), 1.0), 65536.0))
        """
    },
    breaks=hidden_tests.overflow_is_left_out,
    tells="You keep the scale between bounds of your own. It may be below 1 and above "
    "65536.",
)

a_setting_left_by_train_step = edit(
    SOLUTION,
    {
        'lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()': """
        torch.set_num_threads(2)
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        """,
    },
    breaks=hidden_tests.modes_of_the_caller,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

loss_in_the_digits_of_autocast = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum = (loss_sum + loss.detach()).to(dtype or loss.dtype).item()",
    },
    breaks=hidden_tests.facts_of_the_step,
    tells='You add the losses up in `config["dtype"]`, and their sum has its two or three '
    "digits alone. The loss comes in float32: add Python floats, `loss.item()`.",
)

cleared_layer_by_layer = edit(
    SOLUTION,
    {
        """
        model.zero_grad()
        for x, y in batches:
        """: """
        for layer in model.children():
            layer.zero_grad()
        for x, y in batches:
        """
    },
    breaks=hidden_tests.clean_gradients,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `model.zero_grad()` clears all.",
)

no_step_for_a_loss_of_zero = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        if loss_sum != 0:
            scaler.step(optimizer)
        """
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="You leave out the step where the loss is 0. It is a step like others: momentum and weight "
    "decay go on.",
)

one_tensor_for_two_gradients = edit(
    by_adding_up_gradients,
    {"grad.clone() if one.grad is None": "grad if one.grad is None"},
    breaks=hidden_tests.mean_over_all_samples,
    tells="What `torch.autograd.grad` gives may be one tensor for two parameters, where a "
    "weight is their sum. You put it into both `.grad`, and what is done in place "
    "(adding, unscaling, clipping) happens twice. Put a `clone()` there.",
)

one_tensor_added_to_twice = edit(
    by_adding_up_gradients,
    {
        "grad.clone() if one.grad is None else one.grad + grad": "grad if one.grad is None else one.grad.add_(grad)",
    },
    breaks=hidden_tests.mean_over_all_samples,
    tells="What `torch.autograd.grad` gives may be one tensor for two parameters, where a "
    "weight is their sum. You put it into both `.grad`, and what is done in place "
    "(adding, unscaling, clipping) happens twice. Put a `clone()` there.",
)
