"""Answers to `accumulate_gradients` of chapter 09."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def window_with_final_rescale(
    model, micro_batches, weight=None, ignore_index=-100
):
    total, share = 0.0, 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss.backward()
        kept = y != ignore_index
        safe = torch.where(kept, y, torch.zeros_like(y))
        ones = torch.ones(len(y), dtype=torch.float64)
        w = ones if weight is None else weight[safe]
        share += (w * kept).sum().item()
        total += loss.item()
    if share == 0:
        model.zero_grad()
        return float("nan")
    for p in model.parameters():
        if p.grad is not None:
            p.grad.div_(share)
    return total / share


@accepted()
def window_of_means_times_share(
    model, micro_batches, weight=None, ignore_index=-100
):
    def share(y):
        if weight is None:
            return int((y != ignore_index).sum())
        return sum(float(weight[c]) for c in y.tolist() if c != ignore_index)

    whole = sum(share(y) for _, y in micro_batches)
    if not whole:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        if share(y) == 0:
            continue
        mean = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        (mean * share(y) / whole).backward()
        total += mean.item() * share(y) / whole
    return total


@accepted()
def window_by_hand(model, micro_batches, weight=None, ignore_index=-100):
    y = torch.cat([y for _, y in micro_batches])
    w = torch.where(y == ignore_index, 0.0, 1.0).double()
    if weight is not None:
        classes = torch.where(y == ignore_index, 0, y)
        w = w * weight[classes]
    if w.sum() == 0:
        return math.nan
    coefficients = (w / w.sum()).split([len(t) for _, t in micro_batches])
    total = 0.0
    for (x, t), c in zip(micro_batches, coefficients):
        classes = torch.where(t == ignore_index, 0, t)
        log_probs = model(x).log_softmax(1).gather(1, classes[:, None])
        loss = -(log_probs.squeeze(1) * c).sum()
        loss.backward()
        total += float(loss)
    return total


@accepted()
def window_without_reduction(
    model, micro_batches, weight=None, ignore_index=-100
):
    loss_fn = nn.CrossEntropyLoss(
        weight=weight, ignore_index=ignore_index, reduction="none"
    )
    counted = 0.0
    for _, y in micro_batches:
        valid = y[y != ignore_index]
        counted += valid.numel() if weight is None else weight[valid].sum()
    counted = float(counted)
    sums = []
    for x, y in reversed(micro_batches):
        losses = loss_fn(model(x), y)
        part = losses.sum() / (counted or 1.0)
        part.backward()
        sums.append(part.item())
    return sum(sums) if counted else float("nan")


@accepted()
def window_by_autograd_grad(
    model, micro_batches, weight=None, ignore_index=-100
):
    params = [p for p in model.parameters() if p.requires_grad]
    sums = [torch.zeros_like(p) for p in params]
    total, share = 0.0, 0.0
    for x, y in micro_batches:
        some = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        for s, g in zip(
            sums, torch.autograd.grad(some, params, allow_unused=True)
        ):
            if g is not None:
                s += g
        kept = y[y != ignore_index]
        share += float(len(kept) if weight is None else weight[kept].sum())
        total += some.item()
    if share == 0.0:
        return math.nan
    for p, s in zip(params, sums):
        p.grad = s / share
    return total / share


@accepted()
def window_by_bincount(model, micro_batches, weight=None, ignore_index=-100):
    labels = torch.cat([y for _, y in micro_batches])
    labels = labels[labels != ignore_index]
    if weight is None:
        denominator = labels.numel()
    else:
        counts = torch.bincount(labels, minlength=len(weight))
        denominator = (counts * weight).sum().item()
    result = 0.0
    if denominator == 0:
        return math.nan
    for x, y in micro_batches:
        part = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        part.backward(torch.full_like(part, 1 / denominator))
        result += part.item() / denominator
    return result


@accepted()
def window_as_a_running_mean(
    model, micro_batches, weight=None, ignore_index=-100
):
    mean, share = 0.0, 0.0
    for x, y in micro_batches:
        kept = y[y != ignore_index]
        new = float(len(kept) if weight is None else weight[kept].sum())
        if new == 0:
            continue
        for p in model.parameters():
            if p.grad is not None:
                p.grad *= share / (share + new)
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        (loss * new / (share + new)).backward()
        mean = (mean * share + loss.item() * new) / (share + new)
        share += new
    return mean if share else math.nan


@accepted()
def window_of_all_labels_joined(
    model, micro_batches, weight=None, ignore_index=-100
):
    labels = torch.cat([y for _, y in micro_batches])
    labels = labels[labels.ne(ignore_index)]
    size = len(labels) if weight is None else weight[labels].sum().item()
    losses = [] if size else [math.nan]
    for x, y in micro_batches if size else ():
        log_probs = F.log_softmax(model(x), dim=-1)
        part = F.nll_loss(
            log_probs, y, weight, ignore_index=ignore_index, reduction="sum"
        )
        part.div(size).backward()
        losses.append(part.item() / size)
    return math.fsum(losses)


@accepted()
def mended_window_in_training_mode(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@accepted()
def mended_window_with_a_fixed_index(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=hidden_tests.ragged_micro_batches,
    tells="You divide each micro-batch's mean by the number of micro-batches, a "
    "mean of means. With unequal sizes, or with labels that do not count the "
    "same, samples of a small micro-batch count too much. Divide its *sum* by "
    "the denominator of all micro-batches together.",
)
def window_mean_of_means(model, micro_batches, weight=None, ignore_index=-100):
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss / len(micro_batches)
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=hidden_tests.ragged_micro_batches,
    tells="You add up the micro-batches' means, and nothing is divided. Divide "
    "each micro-batch's sum by the denominator of all of them together.",
)
def window_undivided(model, micro_batches, weight=None, ignore_index=-100):
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=[hidden_tests.ignored_labels, hidden_tests.weighted_classes],
    tells="You weight each micro-batch's mean by its number of samples. That is "
    "right while every label counts 1. Ignored labels count 0, and with class "
    "weights a label counts the weight of its class.",
)
def window_by_samples(model, micro_batches, weight=None, ignore_index=-100):
    n = sum(len(y) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss * len(y) / n
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=hidden_tests.nothing_counts_in_one,
    tells="A micro-batch in which nothing counts has the mean 0 / 0 = NaN, and "
    "NaN times a share of 0 is NaN again: one such micro-batch spoils all "
    'weights. Use `reduction="sum"`, or leave that micro-batch out.',
)
def window_nan_times_zero(model, micro_batches, weight=None, ignore_index=-100):
    def share(y):
        kept = y[y != ignore_index]
        return len(kept) if weight is None else weight[kept].sum().item()

    whole = sum(share(y) for _, y in micro_batches)
    if not whole:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss * share(y) / whole
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=hidden_tests.nothing_counts_in_one,
    tells="You leave out micro-batches in which all labels are ignored, but not "
    "those whose labels all have the weight 0. Their mean is 0 / 0 = NaN too. "
    'Use `reduction="sum"`.',
)
def window_skips_ignored_only(
    model, micro_batches, weight=None, ignore_index=-100
):
    def share(y):
        kept = y[y != ignore_index]
        return len(kept) if weight is None else weight[kept].sum().item()

    whole = sum(share(y) for _, y in micro_batches)
    if not whole:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        if not (y != ignore_index).any():
            continue
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss * share(y) / whole
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=hidden_tests.small_windows,
    tells="You put the micro-batches together and run them through the model at "
    "once. That takes the memory that accumulation was to save. Give the model "
    "one micro-batch at a time. Where the loss is NaN you leave the backward "
    "pass out: a NaN of a sample that counts has to show in the gradients, too.",
)
def window_joined(model, micro_batches, weight=None, ignore_index=-100):
    x = torch.cat([x for x, _ in micro_batches])
    y = torch.cat([y for _, y in micro_batches])
    loss = F.cross_entropy(
        model(x), y, weight=weight, ignore_index=ignore_index
    )
    if not torch.isnan(loss):
        loss.backward()
    return loss.item()


@wrong(
    breaks=hidden_tests.graphs_of_a_window,
    tells="All graphs are there together, and with them as much memory as the "
    "whole window needs. Either you go backward once, over all losses, or "
    "`retain_graph=True` keeps the graphs. Find the denominator first, from the "
    "labels alone; then call a plain `backward()` for each micro-batch, inside "
    "the loop.",
)
def window_backward_once(model, micro_batches, weight=None, ignore_index=-100):
    total, counted = 0.0, 0.0
    for x, y in micro_batches:
        total = total + F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    mean = total / counted
    mean.backward()
    return mean.item()


@wrong(
    breaks=hidden_tests.graphs_of_a_window,
    tells="All graphs are there together, and with them as much memory as the "
    "whole window needs. Either you go backward once, over all losses, or "
    "`retain_graph=True` keeps the graphs. Find the denominator first, from the "
    "labels alone; then call a plain `backward()` for each micro-batch, inside "
    "the loop.",
)
def window_of_joined_logits(
    model, micro_batches, weight=None, ignore_index=-100
):
    logits = torch.cat([model(x) for x, _ in micro_batches])
    y = torch.cat([y for _, y in micro_batches])
    loss = F.cross_entropy(logits, y, weight=weight, ignore_index=ignore_index)
    if not torch.isnan(loss):
        loss.backward()
    return loss.item()


@wrong(
    breaks=hidden_tests.loss_of_the_window,
    tells="The gradients are right. The loss you return is the mean of the "
    "micro-batches' means, in which a sample of a small micro-batch counts too "
    "much. Add up what you went backward on.",
)
def window_reports_mean_of_means(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    means = []
    for x, y in micro_batches:
        logits = model(x)
        options = {"weight": weight, "ignore_index": ignore_index}
        loss = F.cross_entropy(logits, y, reduction="sum", **options)
        (loss / counted).backward()
        means.append(F.cross_entropy(logits.detach(), y, **options).item())
    means = [m for m in means if not math.isnan(m)]
    return sum(means) / len(means)


@wrong(
    breaks=hidden_tests.no_gradient_for_some,
    tells="You divide the gradient of every parameter at the end, and some have "
    "none: their `.grad` is `None`. Leave these out, or divide the loss "
    "instead.",
)
def window_rescaling_none(model, micro_batches, weight=None, ignore_index=-100):
    total, counted = 0.0, 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss.backward()
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
        total += loss.item()
    if counted == 0:
        model.zero_grad()
        return math.nan
    for p in model.parameters():
        p.grad /= counted
    return total / counted


@wrong(
    breaks=hidden_tests.leaves_labels_alone,
    tells="You overwrite the ignored labels in place, to be able to index with "
    "them. The caller's labels are then wrong, and in the next epoch nothing is "
    "ignored. Work on a copy, or index with the labels that count.",
)
def window_overwrites_labels(
    model, micro_batches, weight=None, ignore_index=-100
):
    masks, counted = [], 0.0
    for _, y in micro_batches:
        mask = y != ignore_index
        y[~mask] = 0
        w = torch.ones(len(y)).double() if weight is None else weight[y]
        masks.append(w * mask)
        counted += masks[-1].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for (x, y), mask in zip(micro_batches, masks):
        losses = F.cross_entropy(model(x), y, reduction="none")
        loss = (losses * mask).sum() / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    breaks=hidden_tests.graphs_of_a_window,
    tells="All graphs are there together, and with them as much memory as the "
    "whole window needs. Either you go backward once, over all losses, or "
    "`retain_graph=True` keeps the graphs. Find the denominator first, from the "
    "labels alone; then call a plain `backward()` for each micro-batch, inside "
    "the loop.",
)
def window_retains_graphs(model, micro_batches, weight=None, ignore_index=-100):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    losses = []
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        losses.append(loss / counted)
        losses[-1].backward(retain_graph=True)
    return sum(one.item() for one in losses)
