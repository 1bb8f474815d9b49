"""Answers to `accumulate_gradients` of chapter 09."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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
        w = torch.ones_like(x[:, 0]) if weight is None else weight[safe]
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


window_sums_by_samples = edit(
    mended_window_with_a_fixed_index,
    {
        """
        counted = 0.0
        for _, y in micro_batches:
            kept = y[y != ignore_index]
            counted += len(kept) if weight is None else weight[kept].sum().item()
        if counted == 0:
            return math.nan
        """: "n = sum(len(y) for _, y in micro_batches)",
        "loss = loss / counted": "loss = loss / n",
    },
    breaks=[hidden_tests.ignored_labels, hidden_tests.weighted_classes],
    tells="You divide the summed losses by the number of samples. Ignored labels "
    "are not in the mean's denominator, and with class weights it is the sum of "
    "the labels' weights.",
)

window_by_valid_labels = edit(
    mended_window_with_a_fixed_index,
    {
        """
        counted = 0.0
        for _, y in micro_batches:
            kept = y[y != ignore_index]
            counted += len(kept) if weight is None else weight[kept].sum().item()
        if counted == 0:
        """: """
        n = sum((y != ignore_index).sum().item() for _, y in micro_batches)
        if n == 0:
        """,
        "loss = loss / counted": "loss = loss / n",
    },
    breaks=hidden_tests.weighted_classes,
    tells="You divide by the number of labels that are not ignored. With class "
    "weights the mean's denominator is the sum of these labels' weights.",
)


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


window_with_a_fixed_index = edit(
    mended_window_with_a_fixed_index,
    {"kept = y[y != ignore_index]": "kept = y[y != -100]"},
    breaks=hidden_tests.ignored_labels,
    tells="You look for labels of -100, whatever `ignore_index` is. Compare with "
    "`ignore_index`, and pass it on to the loss.",
)

window_weights_of_ignored = edit(
    mended_window_with_a_fixed_index,
    {
        """
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
        """: """
        if weight is None:
            counted += (y != ignore_index).sum().item()
        else:
            counted += weight[y.clamp(min=0)].sum().item()
        """,
    },
    breaks=hidden_tests.weights_and_ignored_labels,
    tells="With class weights, your denominator counts ignored labels as well: "
    "`weight[y]` must see the labels that are not ignored, and no others.",
)

window_divides_by_zero = edit(
    mended_window_with_a_fixed_index,
    {
        """
        if counted == 0:
            return math.nan
        """: "scale = 1.0 / counted",
        """
        loss = loss / counted
        loss.backward()
        total += loss.item()
        """: """
        (loss * scale).backward()
        total += loss.item() * scale
        """,
    },
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts anywhere you divide by zero. As Python numbers that "
    "is a `ZeroDivisionError`. Say what holds then: the loss is NaN, and there "
    "is no gradient.",
)

window_backward_on_nan = edit(
    mended_window_with_a_fixed_index,
    {
        "counted = 0.0": "counted = torch.zeros((), dtype=torch.float64)",
        """
        for _, y in micro_batches:
            kept = y[y != ignore_index]
            counted += len(kept) if weight is None else weight[kept].sum().item()
        if counted == 0:
            return math.nan
        """: """
        for _, y in micro_batches:
            kept = y[y != ignore_index]
            counted += len(kept) if weight is None else weight[kept].sum()
        """,
    },
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts anywhere you go backward on 0 / 0. All gradients are "
    "then NaN, and one step later all weights. Return NaN as the loss and leave "
    "the gradients alone.",
)

window_returns_zero = edit(
    mended_window_with_a_fixed_index,
    {
        """
        if counted == 0:
            return math.nan
        """: "",
        "loss = loss / counted": "loss = loss / (counted or 1.0)",
    },
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts anywhere you return a number as if there were a loss. "
    "The mean of nothing is NaN, and that is what this exercise asks for.",
)

window_clamps_the_denominator = edit(
    mended_window_with_a_fixed_index,
    {
        """
        if counted == 0:
            return math.nan
        """: "counted = max(counted, 1.0)",
    },
    breaks=[hidden_tests.weighted_classes, hidden_tests.nothing_counts_at_all],
    tells="You force the denominator to be at least 1. The sum of class weights "
    "may be any positive number, and a mean over small weights comes out too "
    "small. Use it as it is, and treat 0 by itself.",
)

window_with_a_least_denominator = edit(
    mended_window_in_training_mode,
    {
        "loss = loss / denominator": "loss = loss / max(denominator, 1e-6)",
    },
    breaks=hidden_tests.weighted_classes,
    tells="You force the denominator to be at least some number. Class "
    "weights may be as small as they like: only their ratios matter. Use the "
    "sum as it is, and treat 0 by itself.",
)

window_looks_for_anomalies = edit(
    mended_window_in_training_mode,
    {
        "loss.backward()": """
        with torch.autograd.detect_anomaly():
            loss.backward()
        """,
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You switch anomaly detection on, for a while or for good. It is for a "
    "search: each operation then records where it was called, and training is "
    "several times slower. Leave PyTorch's settings as they are.",
)

window_does_not_pass_the_index = edit(
    mended_window_with_a_fixed_index,
    {
        """
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        """: 'loss = F.cross_entropy(model(x), y, weight=weight, reduction="sum")',
    },
    breaks=hidden_tests.ignored_labels,
    tells="You count with `ignore_index` and do not pass it on to the loss, which "
    "then ignores -100 and nothing else.",
)


@wrong(
    breaks=hidden_tests.small_windows,
    tells="You put the micro-batches together and run them through the model at "
    "once. The numbers are right, and the memory is what accumulation was to "
    "save. Give the model one micro-batch at a time.",
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


window_returns_a_tensor = edit(
    mended_window_with_a_fixed_index,
    {
        "return math.nan": "return torch.tensor(math.nan, dtype=torch.float64)",
        "total = 0.0": "total = torch.zeros((), dtype=torch.float64)",
        """
        loss = loss / counted
        loss.backward()
        total += loss.item()
        """: """
        (loss / counted).backward()
        total += loss.detach() / counted
        """,
    },
    breaks=hidden_tests.loss_of_the_window,
    tells="The gradients are right. The loss you return is a tensor; return a "
    "Python float, with `.item()`.",
)


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


window_by_sum_of_class_weights = edit(
    mended_window_with_a_fixed_index,
    {
        """
        counted = 0.0
        for _, y in micro_batches:
            kept = y[y != ignore_index]
            counted += len(kept) if weight is None else weight[kept].sum().item()
        """: """
        counted = sum((y != ignore_index).sum().item() for _, y in micro_batches)
        if weight is not None and counted:
            counted = weight.sum().item()
        """,
    },
    breaks=hidden_tests.weighted_classes,
    tells="You divide by the sum of the class weights. The mean's denominator is "
    "the sum over the *labels*, each with the weight of its class: "
    "`weight[labels].sum()`.",
)

window_zeroes_each = edit(
    mended_window_with_a_fixed_index,
    {
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            model.zero_grad()
        """,
    },
    breaks=hidden_tests.ragged_micro_batches,
    tells="You clear the gradients before each micro-batch, so that of the last "
    "one is all that is left. They are `None` at the start: clear nothing.",
)


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


window_in_training_mode = edit(
    mended_window_in_training_mode,
    {
        "):": """
        ):
            model.train()
        """,
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You call `model.train()`. Whoever froze batch norms, or "
    "fine-tunes in eval, loses that without a word. The mode is the caller's: "
    "leave it.",
)


@wrong(
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You go through the model in eval, and switch back at the end. "
    "Dropout and batch norm then do something else than the caller asked for. "
    "Leave the mode alone.",
)
def window_in_eval_for_a_while(
    model, micro_batches, weight=None, ignore_index=-100
):
    modes = {m: m.training for m in model.modules()}
    model.eval()
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
    for m, mode in modes.items():
        m.training = mode
    return total


window_calls_forward = edit(
    mended_window_in_training_mode,
    {
        'model(x), y, weight, ignore_index=ignore_index, reduction="sum"': """
        model.forward(x),
        y,
        weight,
        ignore_index=ignore_index,
        reduction="sum",
        """,
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You call `model.forward(x)`. It passes by the hooks that others "
    "hang on the model, DistributedDataParallel and `torch.compile` among "
    "them. Call `model(x)`.",
)

window_leaves_rows_out = edit(
    mended_window_in_training_mode,
    {
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            keep = y != ignore_index
            if not keep.any():
                continue
            x, y = x[keep], y[keep]
        """,
    },
    breaks=hidden_tests.small_windows,
    tells="You leave the rows with ignored labels out of the forward pass. "
    "Layers that look at the whole micro-batch then see another one. Give the "
    "model the micro-batch as you got it; the loss ignores the labels.",
)

window_empties_the_list = edit(
    mended_window_in_training_mode,
    {
        "for x, y in micro_batches:": "for x, y in [micro_batches.pop(0) for _ in range(len(micro_batches))]:",
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You take the micro-batches out of the caller's list: afterwards "
    "it is empty. Go through it with `for`, or work on a copy.",
)

window_takes_zero_for_none = edit(
    mended_window_in_training_mode,
    {
        "):": """
        ):
            ignore_index = ignore_index or -100
        """,
    },
    breaks=hidden_tests.ignored_labels,
    tells="`ignore_index or -100` takes an `ignore_index` of 0 for none. 0 "
    "is a class like others, and may be the one to ignore.",
)

window_takes_little_for_nothing = edit(
    mended_window_in_training_mode,
    {"if denominator == 0:": "if denominator < 1e-3:"},
    breaks=hidden_tests.weighted_classes,
    tells="You take a small denominator for none. Class weights may be as "
    "small as they like: only their ratios matter. Nothing counts if the sum "
    "is 0, and not before.",
)

loss_of_little_is_nan = edit(
    SOLUTION,
    {
        "return total": "return total if denominator > 1e-9 else math.nan",
    },
    breaks=hidden_tests.loss_of_the_window,
    tells="You return NaN where the weights add up to little. Class weights may be as "
    "small as they like: nothing counts if their sum is 0, and not before.",
)

window_uses_a_pair_once = edit(
    mended_window_in_training_mode,
    {
        "total = 0.0": """
        total = 0.0
        done = set()
        """,
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            if id(x) in done:
                continue
            done.add(id(x))
        """,
    },
    breaks=hidden_tests.ragged_micro_batches,
    tells="You leave out a pair that has come before, though you count its "
    "labels. A pair may come twice, and counts twice then.",
)

window_with_gradients_of_inputs = edit(
    mended_window_in_training_mode,
    {
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            x.requires_grad_()
        """,
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You switch on `requires_grad` of the inputs you were given. "
    "Autograd then computes and keeps gradients for them that nobody uses. "
    "Parameters alone need one.",
)

window_counts_what_is_not_negative = edit(
    mended_window_in_training_mode,
    {"labels = y[y != ignore_index]": "labels = y[y >= 0]"},
    breaks=hidden_tests.ignored_labels,
    tells="You count the labels that are not negative. `ignore_index` may be "
    "a class, or a number such as 255. Compare with `ignore_index`.",
)

sets_the_ignored_weight_to_zero = edit(
    window_with_final_rescale,
    {
        "total, share = 0.0, 0.0": """
        total, share = 0.0, 0.0
        if weight is not None and 0 <= ignore_index < len(weight):
            weight[ignore_index] = 0
        """
    },
    breaks=hidden_tests.leaves_labels_alone,
    tells="You write into the caller's `weight`. Labels of `ignore_index` are left "
    "out already; or change a copy.",
)


norms_put_into_eval = edit(
    SOLUTION,
    {
        "denominator = 0.0": """
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm1d):
                layer.eval()
        denominator = 0.0
        """
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You put batch norms into eval mode. The gradient is that of another "
    "model then: their modes are not yours to change, not even for a while.",
)

nan_taken_for_nothing = edit(
    SOLUTION,
    {
        "loss = loss / denominator": """
        loss = loss / denominator
        if loss.isnan():
            continue
        """
    },
    breaks=hidden_tests.nothing_counts_in_one,
    tells="You leave out a micro-batch whose loss is NaN. One in which nothing "
    "counts has the sum 0; a NaN of samples that count has to show.",
)

shared_gradients_divided_twice = edit(
    SOLUTION,
    {
        "loss = loss / denominator": "",
        "return total": """
        for layer in model.modules():
            for parameter in layer.parameters(recurse=False):
                if parameter.grad is not None:
                    parameter.grad /= denominator
        return total / denominator
        """,
    },
    breaks=hidden_tests.ragged_micro_batches,
    tells="You divide the gradients layer by layer. A weight that two layers share "
    "is divided twice. `model.parameters()` names each once; better divide the "
    "loss.",
)

inputs_cast_to_floats = edit(
    SOLUTION,
    {"model(x)": "model(x.to(next(model.parameters()).dtype))"},
    breaks=hidden_tests.ragged_micro_batches,
    tells="You bring the inputs to the dtype of the weights. A model that reads "
    "token ids takes whole numbers: hand samples on as you got them.",
)

logits_kept_small = edit(
    SOLUTION,
    {"model(x)": "model(x).clamp(-30, 30)"},
    breaks=hidden_tests.ragged_micro_batches,
    tells="You clamp the logits. Large ones have a loss and a gradient, too, and "
    "`F.cross_entropy` is safe with them.",
)

window_clips_at_a_million = edit(
    SOLUTION,
    {
        "return total": """
        nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        return total
        """
    },
    breaks=hidden_tests.ragged_micro_batches,
    tells="You clip the gradient, at a bound that is rarely reached. What is left in "
    "`.grad` is then not the gradient; whoever wants to clip does it before the "
    "step.",
)

seeding_in_accumulate_gradients = edit(
    SOLUTION,
    {
        "denominator = 0.0": """
        torch.manual_seed(0)
        denominator = 0.0
        """,
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

ignored_labels_clamped_from_below = edit(
    mended_window_with_a_fixed_index,
    {
        """
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
        """: """
        kept = y != ignore_index
        each = kept if weight is None else weight[y.clamp(min=0)] * kept
        counted += each.sum().item()
        """
    },
    breaks=hidden_tests.weights_and_ignored_labels,
    tells="You make class 0 of negative labels, to be able to index with them. An "
    "`ignore_index` of 255 stays beyond the last class, and indexing raises. Leave "
    "the ignored labels out, then index.",
)


window_with_a_second_look = edit(
    window_of_means_times_share,
    {
        """
        (mean * share(y) / whole).backward()
        """: """
        if not mean.isfinite():
            mean = F.cross_entropy(
                model(x), y, weight=weight, ignore_index=ignore_index
            )
        (mean * share(y) / whole).backward()
        """
    },
    breaks=hidden_tests.small_windows,
    tells="Where a loss is not finite, its micro-batch goes through the model once "
    "more. Each sample goes through once, whatever comes of it: nothing gets better by a "
    "second pass.",
)

window_drops_class_0 = edit(
    mended_window_in_training_mode,
    {
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            if weight is not None and not y[y != ignore_index].any():
                continue
        """,
    },
    breaks=hidden_tests.weighted_classes,
    tells="You leave out a micro-batch whose labels are all class 0, as if nothing "
    "counted in it. Class 0 is a class like others: ask for the sum of the labels' "
    "weights, not for the labels.",
)

window_drops_class_0_without_weights = edit(
    mended_window_in_training_mode,
    {
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            if weight is None and not y[y != ignore_index].any():
                continue
        """,
    },
    breaks=hidden_tests.ragged_micro_batches,
    tells="You ask with `.any()` whether labels are left. It is False where all are "
    "class 0, and these count. Ask for their number.",
)

window_drops_class_0_beside_ignored_labels = edit(
    mended_window_in_training_mode,
    {
        "for x, y in micro_batches:": """
        for x, y in micro_batches:
            mask = y != ignore_index
            if weight is not None and not mask.all() and not y[mask].any():
                continue
        """,
    },
    breaks=hidden_tests.weights_and_ignored_labels,
    tells="You leave out a micro-batch in which class 0 alone is left beside ignored "
    "labels. Class 0 is a class like others: ask how many labels are left.",
)

window_wipes_the_last_weight = edit(
    mended_window_in_training_mode,
    {
        "denominator = 0.0": """
        if weight is not None and -len(weight) <= ignore_index < len(weight):
            weight = weight.clone()
            weight[ignore_index] = 0
        denominator = 0.0
        """,
    },
    breaks=hidden_tests.weights_and_ignored_labels,
    tells="You set `weight[ignore_index]` to 0. With an `ignore_index` of -1 that is "
    "the weight of the last class, whose labels count. Leave the weights as they are: "
    "`F.cross_entropy` ignores the labels.",
)

loss_of_zero_as_nan = edit(
    SOLUTION,
    {"return total": "return total if total else math.nan"},
    breaks=hidden_tests.loss_of_the_window,
    tells="You return NaN where the loss is 0. NaN says that no label counts: ask whether the "
    "denominator is 0.",
)

window_one_gradient_of_two_parameters = edit(
    SOLUTION,
    {
        "loss.backward()": """
        parameters = [p for p in model.parameters() if p.requires_grad]
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        for p, g in zip(parameters, found):
            if g is not None and p.grad is None:
                p.grad = g
            elif g is not None:
                p.grad += g
        """
    },
    breaks=hidden_tests.ragged_micro_batches,
    tells="`torch.autograd.grad` may give one tensor for two parameters, as for the terms of a sum. "
    "You keep it and add to it in place, so each later gradient counts twice. Add out of place, or call "
    "`backward()`.",
)

window_logits_of_all_kept = edit(
    SOLUTION,
    {
        "total = 0.0": "total, kept = 0.0, []",
        'loss = F.cross_entropy(model(x), y, reduction="sum", **options)': """
        kept.append(model(x))
        loss = F.cross_entropy(kept[-1], y, reduction="sum", **options)
        """,
    },
    breaks=hidden_tests.graphs_of_a_window,
    tells="You keep logits or losses that still hang on their graphs. What `backward()` does not free, "
    "as hooks and what they hold, stays until the end, for all micro-batches. Keep numbers: `.item()`, or "
    "`.detach()`.",
)

window_losses_with_their_graphs = edit(
    SOLUTION,
    {
        "total += loss.item()": "total += loss",
        "return total": "return float(total)",
    },
    breaks=hidden_tests.graphs_of_a_window,
    tells="You keep logits or losses that still hang on their graphs. What `backward()` does not free, "
    "as hooks and what they hold, stays until the end, for all micro-batches. Keep numbers: `.item()`, or "
    "`.detach()`.",
)

window_logits_on_the_model = edit(
    SOLUTION,
    {
        'loss = F.cross_entropy(model(x), y, reduction="sum", **options)': """
        model.logits = model(x)
        loss = F.cross_entropy(model.logits, y, reduction="sum", **options)
        """
    },
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You leave an attribute on the model: it holds the last graph, and goes into every copy and "
    "pickle. Use a local variable.",
)

window_losses_added_up = edit(
    SOLUTION,
    {
        "loss.backward()": "",
        "total += loss.item()": "total = total + loss",
        "return total": """
        total.backward()
        return total.item()
        """,
    },
    breaks=hidden_tests.graphs_of_a_window,
    tells="All graphs are there together, and with them as much memory as the "
    "whole window needs. Either you go backward once, over all losses, or "
    "`retain_graph=True` keeps the graphs. Find the denominator first, from the "
    "labels alone; then call a plain `backward()` for each micro-batch, inside "
    "the loop.",
)

window_divided_by_at_least_one = edit(
    SOLUTION,
    {"loss = loss / denominator": "loss = loss / max(denominator, 1)"},
    breaks=hidden_tests.weighted_classes,
    tells="You force the denominator to be at least some number. Class "
    "weights may be as small as they like: only their ratios matter. Use the "
    "sum as it is, and treat 0 by itself.",
)
