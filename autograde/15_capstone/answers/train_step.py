# ruff: noqa: F821 - names of the set-up cells
"""Answers to `train_step` of chapter 15."""

import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted


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
            scores = model(x)
            wide = torch.promote_types(scores.dtype, torch.float32)
            log_probs = F.log_softmax(scores, dim=1, dtype=wide)
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
                scores = model(x)
                wide = torch.promote_types(scores.dtype, torch.float32)
                rows = F.log_softmax(scores, 1, dtype=wide)
                loss = F.nll_loss(rows, y, reduction="sum")
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
