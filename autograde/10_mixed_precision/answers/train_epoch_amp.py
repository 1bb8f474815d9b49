"""Answers to `train_epoch_amp` of chapter 10."""

import itertools
import math

import torch
import torch.nn.functional as F

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


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


amp_epoch_backward_with_a_gradient = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "loss.backward(scaler.scale(torch.ones_like(loss)) / size)",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
)

amp_epoch_looking_ahead = edit(
    amp_epoch_of_means,
    {
        "pairs = iter(loader)": "pairs = itertools.chain(loader)",
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
)

amp_epoch_undivided = edit(
    amp_epoch_of_means,
    {
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss).backward()",
    },
    breaks=[hidden_tests.windows_use_their_mean, hidden_tests.last_window],
    tells="The mean losses of the micro-batches are added up and never divided: "
    "the gradient is as many times too large as a window has "
    "micro-batches. Divide by the samples of the window.",
)

amp_epoch_mean_of_means = edit(
    amp_epoch_of_means,
    {
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / len(window)).backward()",
    },
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You take the mean of the micro-batches' means. Where they are of "
    "unequal size, samples in small ones count more. Divide sums by the "
    "samples of the window.",
)

amp_epoch_divided_by_k = edit(
    amp_epoch_of_means,
    {
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / accumulation_steps).backward()",
    },
    breaks=[hidden_tests.last_window],
    tells="You divide by `accumulation_steps` means in every window. The last "
    "window may have fewer micro-batches, and micro-batches may differ in "
    "size. Divide by the samples of the window.",
)

amp_epoch_without_flush = edit(
    amp_epoch_of_means,
    {
        "while window := list(itertools.islice(pairs, accumulation_steps)):": """
        while window := list(itertools.islice(pairs, accumulation_steps)):
            if len(window) < accumulation_steps:
                for x, y in window:
                    with torch.autocast("cpu", dtype, enabled=dtype is not None):
                        loss = F.cross_entropy(model(x), y, reduction="sum")
                    scaler.scale(loss / len(y)).backward()
                    total += loss.item()
                    samples += len(y)
                optimizer.zero_grad()
                break
        """,
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
    breaks=[hidden_tests.last_window, hidden_tests.one_update_per_window],
    tells="A last window that is not full is never stepped on. Its gradients "
    "are lost, or leak into the next epoch. Step after the last "
    "micro-batch, too.",
)

amp_epoch_updates_each_micro_batch = edit(
    amp_epoch_of_means,
    {
        """
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * (len(y) / size)).backward()
            total += loss.item() * len(y)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        """: """
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
            total += loss.item()
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
        """,
    },
    breaks=[hidden_tests.one_update_per_window],
    tells="The scaler is updated, and the optimizer steps, after every "
    "micro-batch. That is training on small batches. Step and update once "
    "per window.",
)

amp_epoch_steps_and_clears_each = edit(
    amp_epoch_of_means,
    {
        "while window := list(itertools.islice(pairs, accumulation_steps)):": "while window := list(itertools.islice(pairs, 1)):",
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
    breaks=[
        hidden_tests.one_update_per_window,
        hidden_tests.windows_use_their_mean,
    ],
    tells="Every micro-batch makes a step of its own, and its gradients are "
    "cleared. Nothing is accumulated. Step, update and clear once per "
    "window.",
)

amp_epoch_unscales_each_micro_batch = edit(
    amp_epoch_backward_with_a_gradient,
    {
        "loss.backward(scaler.scale(torch.ones_like(loss)) / size)": """
        scaler.scale(loss / size).backward()
        scaler.unscale_(optimizer)
        """,
    },
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You call `unscale_` after every micro-batch. The second call in a "
    "window raises; without the error, gradients of two scales would be "
    "added. Unscale at most once, when the window is complete.",
)

amp_epoch_backward_inside = edit(
    amp_epoch_of_means,
    {
        """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss * (len(y) / size)).backward()
        total += loss.item() * len(y)
        """: """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / size).backward()
        total += loss.item()
        """,
    },
    breaks=[hidden_tests.epoch_in_autocast],
    tells="A backward pass runs inside an autocast block. Open a block for each "
    "forward pass, and end it after the loss.",
)

amp_epoch_around_the_window = edit(
    amp_epoch_of_means,
    {
        """
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * (len(y) / size)).backward()
            total += loss.item() * len(y)
        """: """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            for x, y in window:
                loss = F.cross_entropy(model(x), y, reduction="sum")
                scaler.scale(loss / size).backward()
                total += loss.item()
        """,
    },
    breaks=[hidden_tests.epoch_in_autocast],
    tells="A backward pass runs inside an autocast block. Open a block for each "
    "forward pass, and end it after the loss.",
)

amp_epoch_around_the_epoch = edit(
    amp_epoch_zero_grad_first,
    {
        "total, samples, skips = 0.0, 0, 0": """
        total, samples, skips = 0.0, 0, 0
        block = torch.autocast("cpu", dtype, enabled=dtype is not None)
        block.__enter__()
        """,
        "optimizer.zero_grad()": "",
        """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        """: 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "skips += int(skipped)": """
        optimizer.zero_grad()
        skips += int(skipped)
        """,
        "model.zero_grad()": "block.__exit__(None, None, None)",
    },
    breaks=[hidden_tests.epoch_in_autocast],
    tells="The autocast block is around the whole epoch. Its copies of the "
    "weights are those of the first window until it ends, and steps and "
    "backward passes run inside. Open one for each forward pass.",
)

amp_epoch_without_autocast = edit(
    amp_epoch_with_loss_outside,
    {
        """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            logits = model(x)
        if dtype is not None:
            logits = logits.float()
        loss = F.cross_entropy(logits, y, reduction="sum")
        """: 'loss = F.cross_entropy(model(x), y, reduction="sum")',
    },
    breaks=[hidden_tests.epoch_in_autocast],
    tells="Your code ignores `dtype`: nothing computes in 16 bit. A scaler "
    "converts nothing. Put forward pass and loss under `torch.autocast`.",
)

amp_epoch_without_scale = edit(
    amp_epoch_backward_with_a_gradient,
    {
        "loss.backward(scaler.scale(torch.ones_like(loss)) / size)": """
        scaler.scale(loss / size)
        (loss / size).backward()
        """,
    },
    breaks=[hidden_tests.epoch_of_tiny_gradients],
    tells="The loss is not scaled before `backward()`, so float16 gradients "
    "underflow; and the scaler divides by a scale that is not there. "
    "Write `scaler.scale(...).backward()`.",
)

amp_epoch_without_a_scaler = edit(
    amp_epoch_looking_at_gradients,
    {
        "scaler.scale(loss / size).backward()": "(loss / size).backward()",
        """
        scaler.unscale_(optimizer)
        skipped = scaler.is_enabled() and not all(
            bool(p.grad.isfinite().all())
            for p in model.parameters()
            if p.grad is not None
        )
        if not skipped:
            scaler.step(optimizer)
        scaler.update()
        """: """
        optimizer.step()
        skipped = False
        """,
    },
    breaks=[
        hidden_tests.one_update_per_window,
        hidden_tests.epoch_of_tiny_gradients,
    ],
    tells="You do not use the scaler at all. Without it small float16 gradients "
    "become 0, and nothing skips a step that overflows.",
)

amp_epoch_drops_the_micro_batch = edit(
    amp_epoch_backward_with_a_gradient,
    {
        "loss.backward(scaler.scale(torch.ones_like(loss)) / size)": """
        scaler.scale(loss / size).backward()
        finite = all(
            bool(p.grad.isfinite().all())
            for p in model.parameters()
            if p.grad is not None
        )
        if not finite:
            optimizer.zero_grad()
            for p in model.parameters():
                if p.requires_grad:
                    p.grad = torch.zeros_like(p)
        """,
    },
    breaks=[hidden_tests.overflow_skips_the_window],
    tells="When a micro-batch overflows, you clear the gradients and go on with "
    "the rest of its window. What is stepped on then is not the window's "
    "mean. Let the scaler skip the whole window: an inf makes the sum "
    "inf.",
)

amp_epoch_clears_after_steps_alone = edit(
    amp_epoch_zero_grad_first,
    {
        "optimizer.zero_grad()": "",
        "skips += int(skipped)": """
        if not skipped:
            optimizer.zero_grad()
        skips += int(skipped)
        """,
        "model.zero_grad()": "",
    },
    breaks=[
        hidden_tests.overflow_skips_the_window,
        hidden_tests.no_gradients_left,
    ],
    tells="You clear the gradients only after a step that was made. After an "
    "overflow inf stays in them, and every window after it is skipped as "
    "well. Clear them after each window.",
)

amp_epoch_never_clears = edit(
    amp_epoch_zero_grad_first,
    {
        "optimizer.zero_grad()": "",
        "model.zero_grad()": "",
    },
    breaks=[
        hidden_tests.windows_use_their_mean,
        hidden_tests.no_gradients_left,
    ],
    tells="The gradients are never cleared: each window adds to those before "
    "it. Clear them after each window.",
)

amp_epoch_leaves_the_last = edit(
    amp_epoch_zero_grad_first,
    {"model.zero_grad()": ""},
    breaks=[hidden_tests.no_gradients_left],
    tells="You clear the gradients at the start of each window, and not after "
    "the last one. They are left there for the next epoch, or for whoever "
    "accumulates next.",
)

amp_epoch_schedule_each_window = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "if scheduler is not None and not skipped:": "if scheduler is not None:",
    },
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler steps after every window, also where the step was "
    "skipped. The rate then falls without a step, and after a first "
    "window that is skipped PyTorch warns. Step it only if the scale has "
    "not fallen.",
)

amp_epoch_schedule_never = edit(
    amp_epoch_zero_grad_first,
    {
        "optimizer.zero_grad()": "",
        """
        if scheduler is not None and not skipped:
            scheduler.step()
        """: "optimizer.zero_grad()",
        "model.zero_grad()": "",
    },
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler is never stepped.",
)

amp_epoch_schedule_each_micro_batch = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "scheduler.step()": """
        for _ in window:
            scheduler.step()
        """,
    },
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler steps once per micro-batch. It belongs to the "
    "optimizer's steps: one per window.",
)

amp_epoch_schedule_at_growth = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "skipped = scaler.get_scale() < before": "skipped = scaler.get_scale() != before",
    },
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="You take every change of the scale for a skipped step. It also "
    "grows, after a good one. Only a scale that fell tells of a skip.",
)

amp_epoch_schedule_if_grown = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "if scheduler is not None and not skipped:": "if scheduler is not None and not skipped and scaler.is_enabled():",
    },
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="With a disabled scaler your scheduler never steps. Its scale stays "
    "1.0, and every step is made: compare the scale before and after "
    "`update()`; if it has not fallen, the step was made.",
)

amp_epoch_counts_by_the_loss = edit(
    amp_epoch_looking_ahead,
    {
        "itertools.chain": "iter",
        "before = scaler.get_scale()": "",
        "scaler.get_scale() < before": "not math.isfinite(loss.item())",
    },
    breaks=[hidden_tests.skipped_windows, hidden_tests.schedule_of_made_steps],
    tells="You look at the loss to see whether a window was skipped. It is "
    "float32 and finite when a gradient overflows. Compare the scale "
    "before and after `update()`.",
)

amp_epoch_counts_micro_batches = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "skips += int(skipped)": "skips += len(window) if skipped else 0",
    },
    breaks=[hidden_tests.skipped_windows],
    tells="You count the micro-batches of skipped windows. Asked for is the "
    "number of windows.",
)

amp_epoch_counts_made_windows = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "skips += int(skipped)": "skips += int(not skipped)",
    },
    breaks=[hidden_tests.skipped_windows],
    tells="You count the windows that were stepped on. Asked for are those that "
    "were skipped.",
)

amp_epoch_tells_that_it_skipped = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "return (total / samples if samples else math.nan), skips": "return (total / samples if samples else math.nan), skips > 0",
    },
    breaks=[hidden_tests.skipped_windows],
    tells="You tell whether a window was skipped. Asked for is how many, as an "
    "int.",
)

amp_epoch_skips_by_hand = edit(
    amp_epoch_looking_at_gradients,
    {
        """
        if not skipped:
            scaler.step(optimizer)
        scaler.update()
        """: """
        if not skipped:
            scaler.step(optimizer)
            scaler.update()
        else:
            scaler._per_optimizer_states.clear()
        """,
    },
    breaks=[hidden_tests.overflow_skips_the_window],
    tells="You find the overflow yourself and go on to the next window without "
    "`scaler.update()`, so the scale stays, and the next window overflows "
    "as well. Call `update()` after every window.",
)

amp_epoch_steps_by_itself = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "scaler.step(optimizer)": """
        scaler.unscale_(optimizer)
        optimizer.step()
        """,
    },
    breaks=[hidden_tests.overflow_skips_the_window],
    tells="After `unscale_` you call `optimizer.step()` yourself, and so step "
    "after an overflow, too. `scaler.step(optimizer)` leaves that step "
    "out.",
)

amp_epoch_steps_twice = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "scaler.update()": """
        scaler.update()
        optimizer.step()
        """,
    },
    breaks=[hidden_tests.one_update_per_window],
    tells="The optimizer steps twice per window: by itself and through the "
    "scaler. `scaler.step(optimizer)` is enough.",
)

amp_epoch_never_updates = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "scaler.update()": "",
    },
    breaks=[hidden_tests.one_update_per_window],
    tells="`scaler.update()` is missing: the scale never changes, and the next "
    "window's step raises.",
)

amp_epoch_with_a_new_scaler = edit(
    amp_epoch_counting_steps,
    {
        """
        made = []
        handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
        """: 'scaler = torch.amp.GradScaler("cpu", scaler.get_scale())',
        "known = len(made)": "before = scaler.get_scale()",
        "skipped = len(made) == known": "skipped = scaler.get_scale() < before",
        "handle.remove()": "",
    },
    breaks=[
        hidden_tests.overflow_skips_the_window,
        hidden_tests.one_update_per_window,
    ],
    tells="You make a scaler of your own in each epoch. What the scale has "
    "learned is lost, and the one you were given never hears of an "
    "overflow. Use that one.",
)

amp_epoch_together = edit(
    amp_epoch_of_means,
    {
        """
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * (len(y) / size)).backward()
            total += loss.item() * len(y)
        """: """
        x = torch.cat([pair[0] for pair in window])
        y = torch.cat([pair[1] for pair in window])
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss / size).backward()
        total += loss.item()
        """,
    },
    breaks=[hidden_tests.epoch_graphs],
    tells="You put the micro-batches of a window together and go forward once. "
    "The numbers are right, and the memory is that of the whole window. "
    "Give the model one micro-batch at a time.",
)

amp_epoch_backward_once = edit(
    amp_epoch_of_means,
    {
        "size = sum(len(y) for _, y in window)": """
        size = sum(len(y) for _, y in window)
        losses = []
        """,
        """
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * (len(y) / size)).backward()
            total += loss.item() * len(y)
        """: """
        for x, y in window:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                losses.append(F.cross_entropy(model(x), y, reduction="sum"))
        scaler.scale(sum(losses) / size).backward()
        total += sum(losses).item()
        """,
    },
    breaks=[hidden_tests.epoch_graphs],
    tells="You go backward once, on the sum of all losses of a window. Until "
    "then all graphs are kept: as much memory as the whole window needs. "
    "Go backward on each micro-batch.",
)

amp_epoch_mean_of_batch_means = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item() / len(y)",
        "samples += size": "samples += len(window)",
    },
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return is the mean of the micro-batches' means. Asked "
    "for is the mean over samples: a short micro-batch counts less.",
)

amp_epoch_loss_of_windows = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item() / size",
        "samples += size": "samples = 1",
    },
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return adds up the windows' means. Asked for is the "
    "mean over all samples of the epoch.",
)

amp_epoch_scaled_loss = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item() * scaler.get_scale()",
    },
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return is scaled. What is logged must not depend on the "
    "scale.",
)

amp_epoch_loss_of_good_windows = edit(
    amp_epoch_of_means,
    {
        "size = sum(len(y) for _, y in window)": """
        size = sum(len(y) for _, y in window)
        known = total
        """,
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "samples += size": """
        if skipped:
            total = known
        else:
            samples += size
        """,
    },
    breaks=[hidden_tests.epoch_loss],
    tells="Windows that were skipped are left out of the mean loss. Their "
    "samples went through the model as well, and the text counts them.",
)

amp_epoch_zero_for_nothing = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "return (total / samples if samples else math.nan), skips": "return (total / samples if samples else 0.0), skips",
    },
    breaks=[hidden_tests.epoch_loss],
    tells="For a loader that yields nothing you return 0.0, or divide by zero. "
    "A mean over nothing is NaN.",
)

amp_epoch_fails_on_nothing = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "return (total / samples if samples else math.nan), skips": "return total / samples, skips",
    },
    breaks=[hidden_tests.epoch_loss],
    tells="For a loader that yields nothing your code divides by zero. A mean "
    "over nothing is NaN.",
)

amp_epoch_updates_on_nothing = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "return (total / samples if samples else math.nan), skips": """
        if not samples:
            scaler.step(optimizer)
            scaler.update()
        return (total / samples if samples else math.nan), skips
        """,
    },
    breaks=[hidden_tests.epoch_loss],
    tells="With a loader that yields nothing you still step or update, and the "
    "scaler raises: it has seen no gradient. Do so only for windows that "
    "hold something.",
)

amp_epoch_returns_the_loss = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "return (total / samples if samples else math.nan), skips": "return total / samples if samples else math.nan",
    },
    breaks=[hidden_tests.epoch_loss, hidden_tests.skipped_windows],
    tells="You return one thing. Asked for are two: the mean loss, and how many "
    "windows were skipped.",
)

amp_epoch_returns_a_tensor = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.detach()",
    },
    breaks=[hidden_tests.epoch_loss],
    tells="The loss you return is a tensor. Asked for is a Python float.",
)

amp_epoch_begins_anew = edit(
    amp_epoch_of_means,
    {"pairs = iter(loader)": "pairs = loader"},
    breaks=hidden_tests.one_update_per_window,
    tells="You call `itertools.islice` on the loader itself. A list or a `DataLoader` "
    "begins anew each time, so every window is the first one, without end. Call "
    "`iter(loader)` once, before the first window.",
)

amp_epoch_needs_a_length = edit(
    amp_epoch_counting_steps,
    {
        """
        made = []
        handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
        """: "total_steps = len(loader)",
        "known = len(made)": "before = scaler.get_scale()",
        "skipped = len(made) == known": "skipped = scaler.get_scale() < before",
        "handle.remove()": "",
    },
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You ask the loader for its length. It may be a generator, which has "
    "none. Take windows with `itertools.islice`, or look whether there is "
    "a next one.",
)

amp_epoch_scaler_must_be_on = edit(
    amp_epoch_counting_steps,
    {
        """
        made = []
        handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
        """: "assert scaler.is_enabled()",
        "known = len(made)": "before = scaler.get_scale()",
        "skipped = len(made) == known": "skipped = scaler.get_scale() < before",
        "handle.remove()": "",
    },
    breaks=[hidden_tests.epoch_disabled],
    tells="You take for granted that the scaler is enabled. A disabled one has "
    "a scale of 1 and just steps; the same calls serve both.",
)

amp_epoch_in_train_mode = edit(
    amp_epoch_counting_steps,
    {
        """
        made = []
        handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
        """: "model.train()",
        "known = len(made)": "before = scaler.get_scale()",
        "skipped = len(made) == known": "skipped = scaler.get_scale() < before",
        "handle.remove()": "",
    },
    breaks=[hidden_tests.epoch_leaves_the_rest],
    tells="You call `model.train()`. Layers that were in eval mode are not any "
    "more. The mode is not yours to change here.",
)

amp_epoch_fills_gradients = edit(
    amp_epoch_zero_grad_first,
    {
        "optimizer.zero_grad()": "",
        "before = scaler.get_scale()": """
        for p in model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        before = scaler.get_scale()
        """,
        "skips += int(skipped)": """
        optimizer.zero_grad()
        skips += int(skipped)
        """,
        "model.zero_grad()": "",
    },
    breaks=[hidden_tests.epoch_without_gradients],
    tells="You give every parameter a gradient of zeros. The optimizer then "
    "treats frozen and unused ones as used, and weight decay moves them. "
    "Leave `None` as it is.",
)

amp_epoch_loss_outside = edit(
    amp_epoch_with_loss_outside,
    {
        """
        if dtype is not None:
            logits = logits.float()
        """: "",
    },
    breaks=[hidden_tests.epoch_in_autocast],
    tells="The loss is 16 bit, and scaled it overflows at once: it is computed after "
    "the autocast block from 16-bit logits, or taken apart, and `log_softmax` stays "
    "16 bit on a CPU. Use `F.cross_entropy` inside the block.",
)

amp_epoch_autocast_without_a_dtype = edit(
    amp_epoch_looking_ahead,
    {
        "itertools.chain": "iter",
        ", enabled=dtype is not None": "",
    },
    breaks=hidden_tests.epoch_in_autocast,
    tells="With `dtype=None` autocast is on all the same: without a dtype it "
    "takes the default of the device. Switch it off with `enabled=dtype "
    "is not None`.",
)

amp_epoch_in_forward = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model.forward(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You call `model.forward(x)`. Hooks of the model do not run then, and "
    "DDP does not work. Call `model(x)`.",
)

amp_epoch_swapped = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "return (total / samples if samples else math.nan), skips": "return skips, (total / samples if samples else math.nan)",
    },
    breaks=[hidden_tests.epoch_loss, hidden_tests.skipped_windows],
    tells="You return the number of skipped windows first. Asked for is the "
    "loss, then the number.",
)

amp_epoch_schedule_first = edit(
    amp_epoch_zero_grad_first,
    {
        "optimizer.zero_grad()": "",
        "before = scaler.get_scale()": """
        if scheduler is not None:
            scheduler.step()
        before = scaler.get_scale()
        """,
        """
        if scheduler is not None and not skipped:
            scheduler.step()
        """: "optimizer.zero_grad()",
        "model.zero_grad()": "",
    },
    breaks=[hidden_tests.schedule_of_made_steps],
    tells="The scheduler steps before the optimizer does, so each step uses the "
    "rate of the next one. Step it afterwards, if the step was made.",
)

amp_epoch_clears_each_micro_batch = edit(
    amp_epoch_backward_with_a_gradient,
    {
        "loss.backward(scaler.scale(torch.ones_like(loss)) / size)": """
        optimizer.zero_grad()
        scaler.scale(loss / size).backward()
        """,
    },
    breaks=[hidden_tests.windows_use_their_mean],
    tells="You clear the gradients before each micro-batch, so only the last "
    "one of a window is stepped on. Clear them once per window.",
)

amp_epoch_by_the_first_size = edit(
    amp_epoch_of_means,
    {
        "size = sum(len(y) for _, y in window)": """
        size = sum(len(y) for _, y in window)
        guess = accumulation_steps * len(window[0][1])
        """,
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / guess).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
    breaks=[hidden_tests.windows_use_their_mean, hidden_tests.last_window],
    tells="You divide by `accumulation_steps` times the size of one "
    "micro-batch. The others may be shorter, and the last window may have "
    "fewer. Add up the sizes of the window.",
)

amp_epoch_draws = edit(
    amp_epoch_counting_steps,
    {
        """
        made = []
        handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
        """: "torch.rand(())",
        "known = len(made)": "before = scaler.get_scale()",
        "skipped = len(made) == known": "skipped = scaler.get_scale() < before",
        "handle.remove()": "",
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You draw from PyTorch's global generator. Whatever the caller draws "
    "afterwards is another number. Nothing here is random.",
)

amp_epoch_leaves_a_hook = edit(
    amp_epoch_counting_steps,
    {
        "handle = optimizer": "optimizer",
        "handle.remove()": "",
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You leave a hook on the optimizer. It runs at every later step, "
    "and each call adds another. Take it off with the `remove()` of its"
    " handle.",
)

amp_epoch_watches_the_weights = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "before = scaler.get_scale()": "before = [p.detach().clone() for p in model.parameters()]",
        "skipped = scaler.get_scale() < before": "skipped = all(map(torch.equal, before, model.parameters()))",
    },
    breaks=hidden_tests.schedule_of_made_steps,
    tells="You take a step that moves nothing for a skipped one. With a rate "
    "of 0, as at the start of a warm-up, the schedule then never gets "
    "away from it. Compare the scale before and after `update()`.",
)

amp_epoch_clips = edit(
    amp_epoch_of_means,
    {
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
        "before = scaler.get_scale()": """
        before = scaler.get_scale()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        """,
    },
    breaks=hidden_tests.windows_use_their_mean,
    tells="You clip the gradients. Nobody asked for it here: where they are "
    "large, the update is another.",
)

amp_epoch_reads_inside = edit(
    amp_epoch_of_means,
    {
        "while window := list(itertools.islice(pairs, accumulation_steps)):": """
        while True:
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                window = list(itertools.islice(pairs, accumulation_steps))
            if not window:
                break
        """,
        "loss = F.cross_entropy(model(x), y)": 'loss = F.cross_entropy(model(x), y, reduction="sum")',
        "scaler.scale(loss * (len(y) / size)).backward()": "scaler.scale(loss / size).backward()",
        "total += loss.item() * len(y)": "total += loss.item()",
    },
    breaks=hidden_tests.epoch_in_autocast,
    tells="You read micro-batches inside an autocast block. What the loader "
    "computes then, as an augmentation, is 16 bit without your knowing."
    " Read them outside.",
)

amp_epoch_by_log_softmax = edit(
    amp_epoch_looking_ahead,
    {
        "itertools.chain": "iter",
        'loss = F.cross_entropy(model(x), y, reduction="sum")': """
        logs = model(x).log_softmax(1)
        loss = -logs.gather(1, y[:, None]).sum()
        """,
    },
    breaks=hidden_tests.epoch_in_autocast,
    tells="The loss is 16 bit, and scaled it overflows at once: it is computed after "
    "the autocast block from 16-bit logits, or taken apart, and `log_softmax` stays "
    "16 bit on a CPU. Use `F.cross_entropy` inside the block.",
)

amp_epoch_leaves_out_bad_micro_batches = edit(
    SOLUTION,
    {
        "scaler.scale(loss / window_size).backward()": "if not loss.isfinite():\n"
        "    continue\n"
        "scaler.scale(loss / window_size).backward()"
    },
    breaks=hidden_tests.overflow_skips_the_window,
    tells="You leave out one micro-batch, and step on what is left of its window. The "
    "whole window is skipped: go backward all the same, and the scaler sees it.",
)

amp_epoch_hides_a_loss_of_nan = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum += loss.item() if loss.isfinite() else 0.0"
    },
    breaks=hidden_tests.epoch_loss,
    tells="A loss that is NaN is left out of your mean. It is a mean over all samples, and "
    "a NaN among them is worth knowing.",
)

amp_epoch_looks_at_gradients_alone = edit(
    amp_epoch_looking_at_gradients,
    {"skipped = scaler.is_enabled() and not all(": "skipped = not all("},
    breaks=hidden_tests.epoch_disabled,
    tells="You skip a window because of its gradients. A disabled scaler skips nothing: "
    "the step is made, whatever they are.",
)

amp_epoch_caps_the_scale = edit(
    SOLUTION,
    {
        "scaler.update()": "scaler.update()\n"
        "if scaler.is_enabled() and scaler.get_scale() > 65536:\n"
        "    scaler.update(65536.0)"
    },
    breaks=hidden_tests.schedule_of_made_steps,
    tells="You hold the scale below 65536. It may be any; and where you lower it, a step "
    "that was made looks as if it had been skipped.",
)

epoch_loss_in_sixteen_bits = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum += loss.to(dtype or loss.dtype).item()"
    },
    breaks=hidden_tests.epoch_loss,
    tells="You round the losses to 16 bits. Autocast takes the cross-entropy in float32: "
    "add them up as they came.",
)

amp_epoch_read_whole = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": "micro_batches = iter(list(loader))",
    },
    breaks=hidden_tests.epoch_in_autocast,
    tells="You read the whole loader before the first step. It can be larger than "
    "the memory. Read each window when its turn comes.",
)

losses_by_the_next_scale = edit(
    SOLUTION,
    {
        "scaler.scale(loss / window_size).backward()": """
        loss = scaler.scale(loss / window_size)
        loss.backward()
        """,
        "loss_sum += loss.item()": "scaled = loss.item() if x is window[0][0] else scaled + loss.item()",
        "optimizer.zero_grad()": """
        loss_sum += scaled * window_size / scaler.get_scale()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.epoch_loss,
    tells="You divide scaled losses by the scale after `update()`, which may have "
    "changed it. Keep each loss before it is scaled.",
)


amp_epoch_with_a_second_look = edit(
    SOLUTION,
    {
        """
        loss = F.cross_entropy(model(x), y, reduction="sum")
        """: """
        loss = F.cross_entropy(model(x), y, reduction="sum")
        if not loss.isfinite():
            loss = F.cross_entropy(model(x), y, reduction="sum")
        """
    },
    breaks=hidden_tests.epoch_graphs,
    tells="Where a loss is not finite, you call the model once more. It is called "
    "once for each batch, whatever comes of it: the loss is the same again.",
)

layers_cleared_after_a_window = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for layer in model.children():
            layer.zero_grad()
        """
    },
    breaks=hidden_tests.windows_use_their_mean,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `optimizer.zero_grad()` clears all.",
)

epoch_counts_each_new_scale = edit(
    SOLUTION,
    {
        "num_skipped += int(skipped)": "num_skipped += int(scaler.get_scale() != scale)",
    },
    breaks=hidden_tests.skipped_windows,
    tells="You count a window as skipped whenever the scale changes. It also grows, after good steps: "
    "a window was skipped where the scale fell.",
)

epoch_divides_the_loss_again = edit(
    SOLUTION,
    {
        "scaler.scale(loss / window_size).backward()": """
        scaled = scaler.scale(loss / window_size)
        scaled.backward()
        """,
        "loss_sum += loss.item()": "loss_sum += scaled.item() / scaler.get_scale() * window_size",
    },
    breaks=hidden_tests.epoch_loss,
    tells="You scale the loss and divide it by the scale again. Under a large scale the product is "
    "infinite, though the loss is not. Take the loss before it is scaled.",
)

amp_epoch_throws_away_what_overflows = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        scaler.unscale_(optimizer)
        kept = [q for q in model.parameters() if q.grad is not None]
        if not all(q.grad.isfinite().all() for q in kept):
            optimizer.zero_grad()
        scaler.step(optimizer)
        """,
    },
    breaks=hidden_tests.epoch_disabled,
    tells="You throw the gradients of a window away where they are not finite. An enabled "
    "scaler leaves the step out by itself. A disabled one steps on them as they are, and "
    "the NaN shows in the weights: yours hide it.",
)

amp_epoch_breaks_off_at_a_nan = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": """
        loss_sum += loss.item()
        if not loss.isfinite():
            break
        """,
    },
    breaks=hidden_tests.epoch_graphs,
    tells="You break a window off at a loss that is not finite: the micro-batches after it "
    "never go through the model. Each goes through it once, and the scaler skips the "
    "step.",
)

amp_epoch_counts_the_loader_first = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": """
        if iter(loader) is not loader:
            number = sum(1 for _ in loader)
        micro_batches = iter(loader)
        """,
    },
    breaks=hidden_tests.epoch_in_autocast,
    tells="You go through the loader once to count, before the first step. All data are "
    "read twice then, and a shuffling loader gives them in another order. Read each "
    "window when its turn comes.",
)
