"""Answers to `train_epoch_amp` of chapter 10."""

import itertools
import math

import torch
import torch.nn.functional as F

from course_grader.bank import accepted


@accepted()
def amp_epoch_of_means(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * (len(y) / size)).backward()
            total += loss.item() * len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@accepted()
def amp_epoch_with_final_division(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    batches = iter(loader)
    total, samples, skips, size, in_window = 0.0, 0, 0, 0, 0
    coming = next(batches, None)
    while coming is not None:
        (x, y), coming = coming, next(batches, None)
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss).backward()
        total += loss.item()
        size += len(y)
        in_window += 1
        if in_window < accumulation_steps and coming is not None:
            continue
        scaler.unscale_(optimizer)
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= size
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < before:
            skips += 1
        elif scheduler:
            scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        samples, size, in_window = samples + size, 0, 0
    return (total / samples if samples else float("nan")), skips


@accepted()
def amp_epoch_counting_steps(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    made = []
    handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        known = len(made)
        scaler.step(optimizer)
        scaler.update()
        skipped = len(made) == known
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    handle.remove()
    return (total / samples if samples else math.nan), skips


@accepted()
def amp_epoch_with_loss_outside(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                logits = model(x)
            if dtype is not None:
                logits = logits.float()
            loss = F.cross_entropy(logits, y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips


@accepted()
def amp_epoch_zero_grad_first(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        optimizer.zero_grad()
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < before
        if scheduler is not None and not skipped:
            scheduler.step()
        skips += int(skipped)
        samples += size
    model.zero_grad()
    return (total / samples if samples else math.nan), skips


@accepted()
def amp_epoch_looking_at_gradients(
    model,
    optimizer,
    scaler,
    loader,
    accumulation_steps,
    dtype=None,
    scheduler=None,
):
    pairs = iter(loader)
    total, samples, skips = 0.0, 0, 0
    while window := list(itertools.islice(pairs, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        skipped = scaler.is_enabled() and not all(
            bool(p.grad.isfinite().all())
            for p in model.parameters()
            if p.grad is not None
        )
        if not skipped:
            scaler.step(optimizer)
        scaler.update()
        if scheduler is not None and not skipped:
            scheduler.step()
        optimizer.zero_grad()
        skips += int(skipped)
        samples += size
    return (total / samples if samples else math.nan), skips
