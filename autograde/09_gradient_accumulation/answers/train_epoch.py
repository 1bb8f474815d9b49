"""Answers to `train_epoch` of chapter 09."""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


epoch_looks_for_anomalies = edit(
    mended_epoch_zeroes_each_time,
    {
        "(loss / size).backward()": """
        with torch.autograd.detect_anomaly():
            (loss / size).backward()
        """,
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You switch anomaly detection on, for a while or for good. It is for a "
    "search: each operation then records where it was called, and training is "
    "several times slower. Leave PyTorch's settings as they are.",
)

epoch_undivided = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        loss = F.cross_entropy(model(x), y, reduction="sum")
        (loss / size).backward()
        total += loss.item()
        """: """
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        total += loss.item() * len(y)
        """,
    },
    breaks=hidden_tests.full_windows,
    tells="You added the mean losses of a window without dividing: the update "
    "is too large by the number of micro-batches in it. Divide each "
    "micro-batch's sum by the window's samples.",
)

epoch_divides_the_last_by_k = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        loss = F.cross_entropy(model(x), y, reduction="sum")
        (loss / size).backward()
        total += loss.item()
        """: """
        loss = F.cross_entropy(model(x), y)
        (loss / accumulation_steps).backward()
        total += loss.item() * len(y)
        """,
    },
    breaks=hidden_tests.short_last_window,
    tells="You divide by `accumulation_steps` in the last window too, where "
    "there are fewer micro-batches: that update is too small. Divide by "
    "what is in *that* window.",
)

epoch_mean_of_means = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        loss = F.cross_entropy(model(x), y, reduction="sum")
        (loss / size).backward()
        total += loss.item()
        """: """
        loss = F.cross_entropy(model(x), y)
        (loss / len(window)).backward()
        total += loss.item() * len(y)
        """,
    },
    breaks=hidden_tests.short_last_micro_batch,
    tells="In each window you take the mean of the micro-batches' means. With "
    "micro-batches of unequal size, samples of a small one count too "
    "much. Divide sums by the number of samples in the window.",
)

epoch_full_size_throughout = edit(
    mended_epoch_zeroes_each_time,
    {
        "total, seen = 0.0, 0": """
        total, seen = 0.0, 0
        first = None
        """,
        "size = sum(len(y) for _, y in window)": """
        size = sum(len(y) for _, y in window)
        first = first or size
        """,
        "(loss / size).backward()": "(loss / first).backward()",
    },
    breaks=hidden_tests.short_last_window,
    tells="You divide every window's sums by the size of the first window. "
    "The last window is often smaller; divide by its own number of "
    "samples.",
)

epoch_drops_the_rest = edit(
    mended_epoch_zeroes_each_time,
    {
        "while window := list(itertools.islice(batches, accumulation_steps)):": """
        while window := list(itertools.islice(batches, accumulation_steps)):
            if len(window) < accumulation_steps:
                for x, y in window:
                    total += F.cross_entropy(model(x), y).item() * len(y)
                    seen += len(y)
                break
        """,
    },
    breaks=[hidden_tests.short_last_window, hidden_tests.one_step_per_window],
    tells="What does not fill a window at the end of the epoch is dropped: "
    "these samples never train. Step once more after the last "
    "micro-batch, with the denominator of that shorter window.",
)


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


epoch_steps_twice_at_the_end = edit(
    mended_epoch_zeroes_each_time,
    {
        "optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)",
        "return total / seen if seen else math.nan": """
        if seen:
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
        return total / seen if seen else math.nan
        """,
    },
    breaks=hidden_tests.one_step_per_window,
    tells="You step once more after the loop even if the last window was "
    "full. That step has no gradient of its own, but it counts: "
    "momentum and weight decay act again, and the scheduler moves on. "
    "Step only if something is waiting.",
)


@wrong(
    breaks=hidden_tests.one_step_per_window,
    tells="You step after every micro-batch: that is plain training on small "
    "batches. Step once per window.",
)
def epoch_steps_each_time(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        if scheduler is not None:
            scheduler.step()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


epoch_zeroes_each_time = edit(
    mended_epoch_zeroes_each_time,
    {
        "for x, y in window:": """
        for x, y in window:
            optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.full_windows,
    tells="You clear the gradients before every micro-batch, so each step "
    "uses the last micro-batch of its window alone. Clear after the "
    "step.",
)

epoch_never_zeroes = edit(
    mended_epoch_zeroes_each_time,
    {"optimizer.zero_grad()": ""},
    breaks=[hidden_tests.full_windows, hidden_tests.clean_at_the_end],
    tells="You never clear the gradients: each step uses all windows so far. "
    "Clear them after each step.",
)


@wrong(
    breaks=hidden_tests.clipped_once,
    tells="You clip after every micro-batch, on what has been added up so "
    "far. Clip once per window, after its last `backward()`.",
)
def epoch_clips_each_time(
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


NEVER_CLIPPED = (
    "The gradient that is stepped on has not been clipped, though `max_norm` is given: "
    "you do not clip, or too early, before the gradient of the window is there, or too "
    "late, after the step. Clip right before the step."
)

epoch_never_clips = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        """: "",
    },
    breaks=hidden_tests.clipped_once,
    tells=NEVER_CLIPPED,
)

epoch_clips_after_the_step = edit(
    mended_epoch_zeroes_each_time,
    {
        "if max_norm is not None:": """
        optimizer.step()
        if max_norm is not None:
        """,
        "optimizer.step()": "",
    },
    breaks=hidden_tests.clipped_once,
    tells=NEVER_CLIPPED,
)

epoch_clips_before_the_window = edit(
    SOLUTION,
    {
        "for x, y in window:": """
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        for x, y in window:
        """,
        """
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        """: "optimizer.step()",
    },
    breaks=hidden_tests.clipped_once,
    tells=NEVER_CLIPPED,
)

epoch_clips_values = edit(
    mended_epoch_zeroes_each_time,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": "nn.utils.clip_grad_value_(model.parameters(), max_norm)",
    },
    breaks=hidden_tests.clipped_once,
    tells="You clip each number of the gradient by itself, with "
    "`clip_grad_value_`. That changes its direction. `max_norm` is a "
    "bound on the total norm: `clip_grad_norm_`.",
)

epoch_clips_each_parameter = edit(
    mended_epoch_zeroes_each_time,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        for p in model.parameters():
            nn.utils.clip_grad_norm_([p], max_norm)
        """,
    },
    breaks=hidden_tests.clipped_once,
    tells="You clip each parameter's gradient by its own norm. `max_norm` "
    "bounds the norm of all gradients together: give `clip_grad_norm_` "
    "all parameters at once.",
)

epoch_clips_before_dividing = edit(
    mended_epoch_zeroes_each_time,
    {
        "(loss / size).backward()": "loss.backward()",
        "optimizer.step()": """
        for p in model.parameters():
            p.grad /= size
        optimizer.step()
        """,
    },
    breaks=hidden_tests.clipped_once,
    tells="You clip the gradient of the summed losses and divide it "
    "afterwards, so it ends far below `max_norm`. Clip last, right "
    "before the step.",
)

epoch_schedules_each_micro_batch = edit(
    mended_epoch_zeroes_each_time,
    {
        "scheduler.step()": """
        for _ in window:
            scheduler.step()
        """,
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps once per micro-batch, so the rate falls "
    "`accumulation_steps` times too fast. It steps once per optimizer "
    "step.",
)

epoch_schedules_once = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        if scheduler is not None:
            scheduler.step()
        """: "",
        "return total / seen if seen else math.nan": """
        if scheduler is not None and seen:
            scheduler.step()
        return total / seen if seen else math.nan
        """,
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps once, at the end of the epoch. Here it is to "
    "step after each optimizer step.",
)

epoch_schedules_first = edit(
    mended_epoch_zeroes_each_time,
    {
        "optimizer.step()": "",
        "optimizer.zero_grad()": """
        optimizer.step()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps before the optimizer: the first rate is never "
    "used, and PyTorch warns. Step the optimizer first.",
)

epoch_never_schedules = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        if scheduler is not None:
            scheduler.step()
        """: "",
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler never steps. Step it once after each optimizer step.",
)

epoch_reports_mean_of_means = edit(
    mended_epoch_zeroes_each_time,
    {
        "total, seen = 0.0, 0": """
        total, seen = 0.0, 0
        parts = 0
        """,
        "total += loss.item()": """
        total += loss.item() / len(y)
        parts += 1
        """,
        "return total / seen if seen else math.nan": "return total / parts if parts else math.nan",
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="The training is right. The loss you return is a mean of the "
    "micro-batches' means, in which samples of small micro-batches "
    "count too much. Add up sums and divide once, by the number of "
    "samples.",
)

epoch_reports_scaled = edit(
    mended_epoch_zeroes_each_time,
    {
        "total, seen = 0.0, 0": """
        total, seen = 0.0, 0
        steps = 0
        """,
        "total += loss.item()": "total += loss.item() / size",
        "optimizer.zero_grad()": """
        optimizer.zero_grad()
        steps += 1
        """,
        "return total / seen if seen else math.nan": "return total / steps if steps else math.nan",
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="The loss you return is a mean over steps: you added up the losses "
    "as they were scaled for the backward pass. In the epoch's mean "
    "each *sample* counts the same.",
)

epoch_reports_the_last = edit(
    mended_epoch_zeroes_each_time,
    {
        "total += loss.item()": "total = loss.item() / len(y)",
        "return total / seen if seen else math.nan": "return total if seen else math.nan",
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You return the loss of the last micro-batch. Return the mean over "
    "all samples of the epoch.",
)

epoch_reports_a_tensor = edit(
    mended_epoch_zeroes_each_time,
    {
        "total, seen = 0.0, 0": """
        total, seen = 0.0, 0
        total = torch.zeros((), dtype=torch.float64)
        """,
        "total += loss.item()": "total += loss.detach()",
        "return total / seen if seen else math.nan": "return total / seen",
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You return a tensor, not a float. Use `.item()`, or return NaN as "
    "a float where there is nothing.",
)

epoch_fails_when_empty = edit(
    mended_epoch_zeroes_each_time,
    {"return total / seen if seen else math.nan": "return total / seen"},
    breaks=hidden_tests.nothing_to_train_on,
    tells="With a loader that yields nothing you divide by zero. The mean of "
    "nothing is NaN: treat this case by itself.",
)

epoch_zero_when_empty = edit(
    mended_epoch_zeroes_each_time,
    {
        "return total / seen if seen else math.nan": "return total / max(seen, 1)",
    },
    breaks=hidden_tests.nothing_to_train_on,
    tells="With a loader that yields nothing you return a number as if there "
    "were a loss. A loss of 0 looks like perfect training; the mean of "
    "nothing is NaN.",
)


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


epoch_reads_everything_first = edit(
    mended_epoch_zeroes_each_time,
    {"batches = iter(loader)": "batches = iter(list(loader))"},
    breaks=hidden_tests.loader_without_a_length,
    tells="You read the whole loader into a list before the first step. All "
    "data of the epoch is then in memory at once, and loading no longer "
    "runs beside training. Take one window at a time.",
)


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


epoch_backward_once_per_window = edit(
    mended_epoch_zeroes_each_time,
    {
        "size = sum(len(y) for _, y in window)": "size, kept = sum(len(y) for _, y in window), 0.0",
        "(loss / size).backward()": "kept = kept + loss / size",
        "if max_norm is not None:": """
        kept.backward()
        if max_norm is not None:
        """,
    },
    breaks=hidden_tests.graphs_in_the_loop,
    tells="All graphs of a window are there together. Either you go backward once, "
    "over its losses, or `retain_graph=True` keeps the graphs. Call a plain "
    "`backward()` for each micro-batch.",
)

epoch_retains_graphs = edit(
    mended_epoch_zeroes_each_time,
    {"(loss / size).backward()": "(loss / size).backward(retain_graph=True)"},
    breaks=hidden_tests.graphs_in_the_loop,
    tells="You keep each graph with `retain_graph=True`, so the next forward "
    "pass comes on top of it. Leave the argument out.",
)

epoch_never_recounts = edit(
    mended_epoch_zeroes_each_time,
    {
        "size = sum(len(y) for _, y in window)": "seen += sum(len(y) for _, y in window)",
        "(loss / size).backward()": "(loss / seen).backward()",
        "seen += sum(len(y) for _, y in window)": "",
    },
    breaks=hidden_tests.full_windows,
    tells="Your count of samples is never set back, so each window is divided by "
    "all samples so far and the updates get smaller and smaller. Begin to "
    "count anew after each step.",
)

epoch_schedules_full_windows_only = edit(
    mended_epoch_zeroes_each_time,
    {
        "if scheduler is not None:": "if scheduler is not None and len(window) == accumulation_steps:",
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps after full windows, but not after the last, shorter "
    "one. It steps after each optimizer step.",
)


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


epoch_takes_zero_for_none = edit(
    mended_epoch_zeroes_each_time,
    {
        "if max_norm is not None:": "if max_norm:",
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.clipped_once,
    tells="`if max_norm:` takes a `max_norm` of 0 for none, and steps on the "
    "whole gradient where nothing was to move. Ask whether it `is not None`.",
)

epoch_caps_the_norm = edit(
    mended_epoch_zeroes_each_time,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": "nn.utils.clip_grad_norm_(model.parameters(), min(max_norm, 1.0))",
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.clipped_once,
    tells="You never let the norm exceed 1, whatever `max_norm` is. The "
    "caller's number counts.",
)

epoch_clips_the_first_group = edit(
    mended_epoch_zeroes_each_time,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        nn.utils.clip_grad_norm_(
            optimizer.param_groups[0]["params"], max_norm
        )
        """,
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.clipped_once,
    tells="You clip the parameters of the optimizer's first group alone. The "
    "total norm is that over all parameters.",
)

epoch_clips_or_schedules = edit(
    mended_epoch_zeroes_each_time,
    {
        "if scheduler is not None:": "if scheduler is not None and max_norm is None:",
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="Where you clip you do not step the scheduler. The two options may "
    "come together.",
)

epoch_fills_zeros_in = edit(
    mended_epoch_zeroes_each_time,
    {
        "while window := list(itertools.islice(batches, accumulation_steps)):": """
        while window := list(itertools.islice(batches, accumulation_steps)):
            for p in model.parameters():
                if p.requires_grad:
                    p.grad = torch.zeros_like(p)
        """,
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.epoch_without_some_gradients,
    tells="You fill the gradients with zeros before each window. A parameter "
    "that is not used has no gradient, and the optimizer skips it; with zeros "
    "it does not, and weight decay moves it. Use `optimizer.zero_grad()`.",
)

epoch_in_training_mode = edit(
    mended_epoch_zeroes_each_time,
    {
        """
        def mended_epoch_zeroes_each_time(
            model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
        ):
        """: """
        def mended_epoch_zeroes_each_time(
            model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
        ):
            model.train()
        """,
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You call `model.train()`. Whoever froze batch norms, or "
    "fine-tunes in eval, loses that without a word. The mode is the caller's "
    "here: leave it.",
)


@wrong(
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You switch to training for the epoch and back at the end. Batch "
    "norms that the caller froze move their statistics meanwhile. The mode is "
    "the caller's here: leave it.",
)
def epoch_in_training_mode_for_a_while(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    modes = {m: m.training for m in model.modules()}
    model.train()
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
        seen += size
    for m, mode in modes.items():
        m.training = mode
    return total / seen if seen else math.nan


epoch_calls_forward = edit(
    mended_epoch_zeroes_each_time,
    {
        'loss = F.cross_entropy(model(x), y, reduction="sum")': 'loss = F.cross_entropy(model.forward(x), y, reduction="sum")',
        "seen += sum(len(y) for _, y in window)": "seen += size",
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You call `model.forward(x)`. It passes by the hooks that others "
    "hang on the model, DistributedDataParallel and `torch.compile` among "
    "them. Call `model(x)`.",
)

epoch_counts_by_the_first = edit(
    mended_epoch_zeroes_each_time,
    {
        "seen += sum(len(y) for _, y in window)": "seen += len(window) * len(window[0][1])",
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You count samples as micro-batches times the size of a window's "
    "first one. The last micro-batch may be shorter: count with `len(y)`.",
)

epoch_steps_on_finite_losses_alone = edit(
    SOLUTION,
    {
        """
            (loss / window_size).backward()
            loss_sum += loss.item()
        """: """
            if loss.isfinite():
                (loss / window_size).backward()
                loss_sum += loss.item()
        """
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You leave out a loss that is not finite. Nobody asked for it: the "
    "mean is over all samples, and a NaN that is hidden is found too late.",
)

epoch_refuses_norms = edit(
    SOLUTION,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        nn.utils.clip_grad_norm_(
            model.parameters(), max_norm, error_if_nonfinite=True
        )
        """
    },
    breaks=hidden_tests.clipped_once,
    tells="You raise where the norm is not finite. `clip_grad_norm_` does not by itself: "
    "the NaN is in the weights then, and in the loss.",
)

epoch_with_a_largest_norm = edit(
    SOLUTION,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": "nn.utils.clip_grad_norm_(model.parameters(), min(max_norm, 1e3))"
    },
    breaks=hidden_tests.clipped_once,
    tells="You clip to a bound of your own. `max_norm` may be large, as gradients are.",
)

epoch_with_losses_cut_off = edit(
    SOLUTION,
    {
        "(loss / window_size).backward()": "(loss / window_size).clamp(max=100).backward()"
    },
    breaks=hidden_tests.clipped_once,
    tells="You cut off large losses before you go backward. What is cut off has no "
    "gradient: the worst samples teach nothing.",
)

epoch_lists_what_has_a_length = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": """
        has_length = hasattr(loader, "__len__")
        micro_batches = iter(list(loader) if has_length else loader)
        """
    },
    breaks=hidden_tests.loader_without_a_length,
    tells="You read a loader that has a length as a whole, and all of its batches lie in "
    "memory. Take each when its turn comes.",
)


norms_in_eval_for_a_while = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": """
        norms = [
            layer
            for layer in model.modules()
            if isinstance(layer, nn.BatchNorm1d) and layer.training
        ]
        for layer in norms:
            layer.eval()
        micro_batches = iter(loader)
        """,
        "return loss_sum / num_samples if num_samples else math.nan": """
        for layer in norms:
            layer.train()
        return loss_sum / num_samples if num_samples else math.nan
        """,
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You put batch norms into eval mode for the epoch. It trains another "
    "model then: their modes are not yours to change, not even for a while.",
)

scheduler_told_the_step = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": """
        micro_batches, steps = iter(loader), 0
        """,
        "scheduler.step()": """
            steps += 1
            scheduler.step(steps)
        """,
    },
    breaks=hidden_tests.one_scheduler_step,
    tells="You tell the scheduler the number of the step, and count anew in every "
    "epoch: the schedule begins again each time. Call `scheduler.step()`.",
)

tuples_alone = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": "micro_batches = (one for one in loader if isinstance(one, tuple))"
    },
    breaks=hidden_tests.loader_without_a_length,
    tells="You take tuples alone. A `DataLoader` yields lists of inputs and "
    "labels, so nothing is trained on. Unpack what comes.",
)

divided_by_the_data_set = edit(
    SOLUTION,
    {
        "return loss_sum / num_samples if num_samples else math.nan": """
        if hasattr(loader, "dataset"):
            num_samples = len(loader.dataset)
        return loss_sum / num_samples if num_samples else math.nan
        """
    },
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You divide by the size of the data set. With `drop_last=True` fewer "
    "samples come: count those that you have seen.",
)

no_step_without_slope = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        if any(p.grad is not None and p.grad.any() for p in model.parameters()):
            optimizer.step()
        """
    },
    breaks=hidden_tests.full_windows,
    tells="You leave out the step if all gradients are 0. Weight decay and "
    "momentum move the weights nevertheless: a window is a step.",
)

ids_cast_to_floats = edit(
    SOLUTION,
    {"model(x)": "model(x.to(next(model.parameters()).dtype))"},
    breaks=hidden_tests.full_windows,
    tells="You bring the inputs to the dtype of the weights. A model that reads "
    "token ids takes whole numbers: hand samples on as you got them.",
)

tied_gradients_divided_twice = edit(
    SOLUTION,
    {
        "(loss / window_size).backward()": "loss.backward()",
        "if max_norm is not None:": """
        for layer in model.modules():
            for parameter in layer.parameters(recurse=False):
                if parameter.grad is not None:
                    parameter.grad /= window_size
        if max_norm is not None:
        """,
    },
    breaks=hidden_tests.full_windows,
    tells="You divide the gradients layer by layer. A weight that two layers share "
    "is divided twice. `model.parameters()` names each once; better divide the "
    "loss.",
)

epoch_clips_unasked = edit(
    SOLUTION,
    {
        """
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        """: """
        bound = 1e6 if max_norm is None else max_norm
        nn.utils.clip_grad_norm_(model.parameters(), bound)
        """
    },
    breaks=hidden_tests.full_windows,
    tells="Without `max_norm` you clip at a large bound. No bound was asked for: do "
    "not clip then, or use `math.inf`.",
)

epoch_trains_once_on_a_pair = edit(
    SOLUTION,
    {
        "for x, y in window:": "for x, y in {id(pair): pair for pair in window}.values():"
    },
    breaks=hidden_tests.full_windows,
    tells="A pair that comes twice in a window is trained on once. Take each as "
    "often as it comes.",
)

epoch_without_steps_on_zeros = edit(
    SOLUTION,
    {
        """
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        """: """
        num_samples += window_size
        if max_norm is not None:
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            if norm == 0:
                continue
        """,
        """
        optimizer.zero_grad()
        num_samples += window_size
        """: "optimizer.zero_grad()",
    },
    breaks=hidden_tests.clipped_once,
    tells="You leave out the step if the gradient is zero. Weight decay and momentum "
    "move the weights all the same, and the scheduler counts the step.",
)

seeding_in_train_epoch = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": """
        torch.manual_seed(0)
        micro_batches = iter(loader)
        """,
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)


epoch_with_a_second_look = edit(
    SOLUTION,
    {
        """
        (loss / window_size).backward()
        """: """
        if not loss.isfinite():
            loss = F.cross_entropy(model(x), y, reduction="sum")
        (loss / window_size).backward()
        """
    },
    breaks=hidden_tests.small_in_the_loop,
    tells="Where a loss is not finite, its micro-batch goes through the model once "
    "more. Each sample goes through once, whatever comes of it: nothing gets better by a "
    "second pass.",
)

windows_of_loss_zero_left_out = edit(
    SOLUTION,
    {
        "loss_sum, num_samples = 0.0, 0": "loss_sum, num_samples, before = 0.0, 0, 0.0",
        "if max_norm is not None:": """
        num_samples += window_size
        lost, before = loss_sum - before, loss_sum
        if lost == 0:
            continue
        if max_norm is not None:
        """,
        "num_samples += window_size": "pass",
    },
    breaks=hidden_tests.full_windows,
    tells="You leave out the step of a window whose loss is 0. It is a step like others: momentum, "
    "weight decay and the scheduler go on.",
)

cleared_by_layers = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for layer in model.children():
            layer.zero_grad()
        """
    },
    breaks=hidden_tests.full_windows,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `optimizer.zero_grad()` clears all.",
)

cleared_by_multiplying = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for parameter in model.parameters():
            if parameter.grad is not None and parameter.requires_grad:
                parameter.grad *= 0
        """
    },
    breaks=hidden_tests.clean_at_the_end,
    tells="You clear gradients by a multiplication with 0. 0 times NaN is NaN: set them to `None`, "
    "as `zero_grad()` does.",
)

lengths_that_raise = edit(
    SOLUTION,
    {
        "micro_batches = iter(loader)": """
        if hasattr(loader, "__len__") and len(loader) == 0:
            return math.nan
        micro_batches = iter(loader)
        """
    },
    breaks=hidden_tests.loader_without_a_length,
    tells="You ask every loader that has `__len__` for its length. That of a `DataLoader` over an "
    "`IterableDataset` raises a `TypeError`: do without.",
)

epoch_one_gradient_of_two_parameters = edit(
    SOLUTION,
    {
        "(loss / window_size).backward()": """
        parameters = [p for p in model.parameters() if p.requires_grad]
        found = torch.autograd.grad(loss / window_size, parameters, allow_unused=True)
        for p, g in zip(parameters, found):
            if g is not None and p.grad is None:
                p.grad = g
            elif g is not None:
                p.grad += g
        """
    },
    breaks=hidden_tests.full_windows,
    tells="`torch.autograd.grad` may give one tensor for two parameters, as for the terms of a sum. "
    "You keep it and add to it in place, so each later gradient counts twice. Add out of place, or call "
    "`backward()`.",
)

epoch_logits_of_all_kept = edit(
    SOLUTION,
    {
        "loss_sum, num_samples = 0.0, 0": "loss_sum, num_samples, kept = 0.0, 0, []",
        'loss = F.cross_entropy(model(x), y, reduction="sum")': """
        kept.append(model(x))
        loss = F.cross_entropy(kept[-1], y, reduction="sum")
        """,
    },
    breaks=hidden_tests.graphs_in_the_loop,
    tells="You keep logits or losses that still hang on their graphs. What `backward()` does not free, "
    "as hooks and what they hold, stays until the end, for all micro-batches. Keep numbers: `.item()`, or "
    "`.detach()`.",
)

epoch_losses_with_their_graphs = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": "loss_sum += loss",
        "return loss_sum / num_samples if num_samples else math.nan": "return float(loss_sum) / num_samples if num_samples else math.nan",
    },
    breaks=hidden_tests.graphs_in_the_loop,
    tells="You keep logits or losses that still hang on their graphs. What `backward()` does not free, "
    "as hooks and what they hold, stays until the end, for all micro-batches. Keep numbers: `.item()`, or "
    "`.detach()`.",
)

epoch_loss_on_the_model = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": """
        loss_sum += loss.item()
        model.last_loss = loss
        """
    },
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You leave an attribute on the model: it holds the last graph, and goes into every copy and "
    "pickle. Use a local variable.",
)

zeros_for_frozen_layers = edit(
    SOLUTION,
    {"optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)"},
    breaks=hidden_tests.epoch_without_some_gradients,
    tells="You leave zeros as gradients. Freeze a layer then, and the next epoch still moves it by "
    "weight decay, for the optimizer leaves out `None` alone. Call `zero_grad()`, which sets `None`.",
)

norm_of_nan_passes = edit(
    SOLUTION,
    {
        "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        parameters = list(model.parameters())
        grads = [p.grad for p in parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(grads)
        if norm > max_norm:
            nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
        """
    },
    breaks=hidden_tests.clipped_once,
    tells="You clip if the norm is larger than `max_norm`. A norm of NaN is not, and the step goes on "
    "with what is finite: half a model is trained on nonsense. Multiply always, as `clip_grad_norm_` does.",
)

errors_of_the_loader_end_it = edit(
    SOLUTION,
    {
        "while window := list(itertools.islice(micro_batches, accumulation_steps)):": """
        def following():
            try:
                return next(micro_batches)
            except Exception:
                return None

        def window_of_pairs():
            pairs = iter(following, None)
            return list(itertools.islice(pairs, accumulation_steps))

        while window := window_of_pairs():
        """
    },
    breaks=hidden_tests.loader_without_a_length,
    tells="You take every error of the loader for its end. A file that cannot be read then shortens the "
    "epoch, and nobody hears of it. Catch `StopIteration` alone, or use `for` or `itertools.islice`.",
)

epoch_clips_where_the_loss_is_finite = edit(
    SOLUTION,
    {
        "if max_norm is not None:": "if max_norm is not None and math.isfinite(loss_sum):",
    },
    breaks=hidden_tests.clipped_once,
    tells="You do not clip where the loss is NaN. One gradient of NaN then leaves the others as they are: "
    "clipped, all become NaN, and everybody sees it.",
)

epoch_ends_at_a_runtime_error = edit(
    SOLUTION,
    {
        "while window := list(itertools.islice(micro_batches, accumulation_steps)):": """
        def window_of_pairs():
            pairs = []
            try:
                while len(pairs) < accumulation_steps:
                    pairs.append(next(micro_batches))
            except (StopIteration, RuntimeError):
                pass
            return pairs

        while window := window_of_pairs():
        """
    },
    breaks=hidden_tests.loader_without_a_length,
    tells="You take every error of the loader for its end. A file that cannot be read then shortens the "
    "epoch, and nobody hears of it. Catch `StopIteration` alone, or use `for` or `itertools.islice`.",
)

epoch_breaks_off_at_a_nan = edit(
    SOLUTION,
    {
        "loss_sum += loss.item()": """
        loss_sum += loss.item()
        if not loss.isfinite():
            break
        """
    },
    breaks=hidden_tests.small_in_the_loop,
    tells="You break a window off at a loss that is not finite: the micro-batches after it "
    "never go through the model. Nobody asked for that; each sample passes once.",
)
