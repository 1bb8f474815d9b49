"""Answers to `train_epoch` of chapter 09."""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def epoch_with_final_rescale(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total = seen = in_window = parts = 0

    def finish():
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= in_window
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()

    for x, y in loader:
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        total += loss.item()
        seen += len(y)
        in_window += len(y)
        parts += 1
        if parts == accumulation_steps:
            finish()
            in_window = parts = 0
    if parts:
        finish()
    return total / seen if seen else float("nan")


@accepted()
def epoch_with_lookahead(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    end = object()
    batches = iter(loader)
    window, total, count = [], 0.0, 0
    current = next(batches, end)
    while current is not end:
        following = next(batches, end)
        window.append(current)
        if len(window) == accumulation_steps or following is end:
            n = sum(x.shape[0] for x, _ in window)
            optimizer.zero_grad(set_to_none=False)
            for x, y in window:
                loss = F.cross_entropy(model(x), y) * (len(y) / n)
                loss.backward()
                total += loss.item() * n
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler:
                scheduler.step()
            count += n
            window = []
        current = following
    optimizer.zero_grad()
    return total / count if count else math.nan


@accepted()
def epoch_by_groupby(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    def number(pair):
        return pair[0] // accumulation_steps

    losses = []
    for _, group in itertools.groupby(enumerate(loader), key=number):
        window = [pair for _, pair in group]
        n = sum(y.numel() for _, y in window)
        optimizer.zero_grad()
        for x, y in window:
            each = F.cross_entropy(model(x), y, reduction="none")
            (each.sum() / n).backward()
            losses += each.detach().tolist()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
    return sum(losses) / len(losses) if losses else math.nan


@accepted()
def epoch_with_clipping_by_hand(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches, sums, count = iter(loader), 0.0, 0
    while True:
        window = []
        for _ in range(accumulation_steps):
            try:
                window.append(next(batches))
            except StopIteration:
                break
        if not window:
            break
        n = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum") / n
            loss.backward()
            sums += float(loss) * n
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if max_norm is not None:
            norm = torch.stack([g.norm() for g in grads]).norm()
            for g in grads:
                g.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
        optimizer.step()
        scheduler and scheduler.step()
        model.zero_grad()
        count += n
        if len(window) < accumulation_steps:
            break
    return sums / max(count, 1) if count else math.nan


@accepted(body=True)
def epoch_with_a_function_of_its_own():
    def end_of_window(model, optimizer, scheduler, max_norm, size):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = None if p.grad is None else p.grad / size
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()

    def train_epoch(
        model,
        optimizer,
        loader,
        accumulation_steps,
        scheduler=None,
        max_norm=None,
    ):
        last = model, optimizer, scheduler, max_norm
        loss_sum, samples, size = torch.zeros(()).double(), 0, 0
        for i, (x, y) in enumerate(loader, start=1):
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
            loss_sum += loss.detach()
            samples, size = samples + len(x), size + len(x)
            if i % accumulation_steps == 0:
                end_of_window(*last, size)
                size = 0
        if size:
            end_of_window(*last, size)
        return (loss_sum / samples).item()


@accepted(body=True)
def epoch_from_a_generator_of_windows():
    def windows(loader, k):
        window = []
        for pair in loader:
            window.append(pair)
            if len(window) == k:
                yield window
                window = []
        if window:
            yield window

    def train_epoch(
        model,
        optimizer,
        loader,
        accumulation_steps,
        scheduler=None,
        max_norm=None,
    ):
        losses, sizes = [], []
        for window in windows(loader, accumulation_steps):
            y_all = torch.cat([y for _, y in window])
            mean = 0.0
            for x, y in window:
                loss = nn.CrossEntropyLoss(reduction="sum")(model(x), y)
                loss = loss / y_all.numel()
                loss.backward()
                mean += loss.item()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(mean)
            sizes.append(len(y_all))
        if not losses:
            return math.nan
        return sum(a * b for a, b in zip(losses, sizes)) / sum(sizes)


@accepted()
def epoch_of_running_means(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    def finish():
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()

    inside = total = seen = 0
    for i, (x, y) in enumerate(loader, start=1):
        size = len(y)
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(inside / (inside + size))
        mean = F.cross_entropy(model(x), y)
        inside += size
        (mean * (size / inside)).backward()
        total += mean.item() * size
        seen += size
        if i % accumulation_steps == 0:
            finish()
            inside = 0
    if inside:
        finish()
    return total / seen if seen else math.nan


@accepted()
def mended_epoch_zeroes_each_time(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    breaks=[hidden_tests.clean_at_the_end, hidden_tests.short_last_window],
    tells="The gradients of the last, shorter window are computed and never "
    "stepped on. They stay in `.grad` and enter the first step of the "
    "next epoch. Step and clear after the last micro-batch as well.",
)
def epoch_leaks_the_rest(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen = 0.0, 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        (loss / accumulation_steps).backward()
        total += loss.item() * len(y)
        seen += len(y)
        if (i + 1) % accumulation_steps == 0:
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
    return total / seen if seen else math.nan


@wrong(
    breaks=[hidden_tests.clean_at_the_end, hidden_tests.full_windows],
    tells="This is the loop of the posts. Nothing is divided, so updates are "
    "`accumulation_steps` times too large, and what does not fill a "
    "window stays in `.grad` for the next epoch. Divide by the window's "
    "samples, and step after the last micro-batch too.",
)
def epoch_leaks_undivided(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen = 0.0, 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        total += loss.item() * len(y)
        seen += len(y)
        if (i + 1) % accumulation_steps == 0:
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
    return total / seen if seen else math.nan


@wrong(
    breaks=[hidden_tests.one_step_per_window, hidden_tests.full_windows],
    tells="`i % accumulation_steps == 0` is true for the *first* micro-batch "
    "of a window: your windows begin one too late. Use `(i + 1) % "
    "accumulation_steps == 0`.",
)
def epoch_steps_at_the_first(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen, size = 0.0, 0, 0
    batches = list(loader)
    for i, (x, y) in enumerate(batches):
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        total += loss.item()
        seen += len(y)
        size += len(y)
        if i % accumulation_steps == 0 or i == len(batches) - 1:
            for p in model.parameters():
                p.grad /= size
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
            size = 0
    return total / seen if seen else math.nan


@wrong(
    breaks=hidden_tests.loader_without_a_length,
    tells="You ask the loader for its length. A generator has none, nor has a "
    "loader over a stream. Take windows with `itertools.islice`, or "
    "look at what is waiting after the loop.",
)
def epoch_wants_a_length(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen, size = 0.0, 0, 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        total += loss.item()
        seen += len(y)
        size += len(y)
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            for p in model.parameters():
                p.grad /= size
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
            size = 0
    return total / seen if seen else math.nan


@wrong(
    breaks=hidden_tests.small_in_the_loop,
    tells="You put a window's micro-batches together and run them through the "
    "model at once. The numbers are right, and nothing is saved. One "
    "forward and one backward pass for each micro-batch.",
)
def epoch_joins_the_window(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        x = torch.cat([x for x, _ in window])
        y = torch.cat([y for _, y in window])
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        total += loss.item() * len(y)
        seen += len(y)
    return total / seen if seen else math.nan


@wrong(
    breaks=[hidden_tests.small_in_the_loop, hidden_tests.loss_of_the_epoch],
    tells="You take the epoch's loss from another pass over the data, after the "
    "training. It costs a forward pass for every sample and is the loss of "
    "another model. Add up the losses of the passes that you make anyway.",
)
def epoch_measures_afterwards(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    kept = []
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        kept += window
    total = 0.0
    with torch.no_grad():
        for x, y in kept:
            total += F.cross_entropy(model(x), y, reduction="sum").item()
    seen = sum(len(y) for _, y in kept)
    return total / seen if seen else math.nan
