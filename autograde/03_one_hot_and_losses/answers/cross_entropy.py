"""Answers to `cross_entropy` of chapter 03."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def cross_entropy_of_the_library(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    return F.cross_entropy(
        logits,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@accepted()
def by_the_module(logits, target, **options):
    return nn.CrossEntropyLoss(**options)(logits, target)


@accepted()
def by_logsumexp(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    classes = logits.shape[1]
    if weight is None:
        weight = torch.ones(classes, dtype=logits.dtype)
    scores = logits.movedim(1, -1)
    keep = target != ignore_index
    scores, labels = scores[keep], target[keep]
    if ((labels < 0) | (labels >= classes)).any():
        raise ValueError("a target is no class")
    loss = scores.logsumexp(-1, keepdim=True) - scores
    at_label = loss[torch.arange(len(labels)), labels] * weight[labels]
    spread = (loss * weight).mean(-1)
    kept = (1 - label_smoothing) * at_label + label_smoothing * spread
    if reduction == "sum":
        return kept.sum()
    if reduction == "mean":
        return kept.sum() / weight[labels].sum()
    if reduction == "none":
        out = logits.new_zeros(target.shape)
        out[keep] = kept
        return out
    raise ValueError(reduction)


@accepted()
def by_nll_loss(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    log_probs = F.log_softmax(logits, 1)
    picked = F.nll_loss(
        log_probs, target, weight, ignore_index=ignore_index, reduction="none"
    )
    size = logits.shape[1]
    weights = logits.new_ones(size) if weight is None else weight
    columns = weights.reshape(1, -1, *[1] * (logits.dim() - 2))
    kept = target.ne(ignore_index)
    spread = -(log_probs * columns).mean(1).where(kept, logits.new_zeros(()))
    losses = picked + label_smoothing * (spread - picked)
    match reduction:
        case "none":
            return losses
        case "sum":
            return losses.sum()
        case "mean":
            return losses.sum() / weights[target[kept]].sum()
    raise ValueError(f"no such reduction: {reduction}")


@accepted()
def by_subtracting_the_maximum(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    if reduction not in {"none", "sum", "mean"}:
        raise ValueError("reduction")
    shifted = logits - logits.amax(1, keepdim=True).detach()
    log_probs = shifted - shifted.exp().sum(1, keepdim=True).log()
    keep = (target != ignore_index).to(logits.dtype)
    safe = target.masked_fill(target == ignore_index, 0)
    nll = -log_probs.gather(1, safe[:, None])[:, 0]
    smooth = -log_probs
    class_weight = torch.ones_like(keep)
    if weight is not None:
        class_weight = weight[safe]
        smooth = smooth * weight.view(-1, *[1] * (logits.dim() - 2))
    loss = (1 - label_smoothing) * nll * class_weight
    loss = loss + label_smoothing * smooth.mean(1)
    loss = loss.masked_fill(keep == 0, 0.0)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (class_weight * keep).sum()


@accepted()
def by_target_distribution(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    num_classes = logits.shape[1]
    keep = target != ignore_index
    rows = F.one_hot(torch.where(keep, target, 0), num_classes)
    rows = rows.to(logits.dtype) * keep.unsqueeze(-1)
    wanted = rows * (1 - label_smoothing)
    share = label_smoothing / num_classes
    wanted = wanted + share * keep.unsqueeze(-1).to(rows.dtype)
    counted = rows
    if weight is not None:
        wanted, counted = wanted * weight, rows * weight
    losses = -(wanted * logits.movedim(1, -1).log_softmax(-1)).sum(-1)
    losses = losses.where(keep, torch.zeros_like(losses))
    reduced = {
        "none": lambda: losses,
        "sum": lambda: losses.sum(),
        "mean": lambda: losses.sum() / counted.sum(),
    }
    if reduction not in reduced:
        raise ValueError(f"reduction must be one of {list(reduced)}")
    return reduced[reduction]()


@accepted()
def by_a_loop_over_samples(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    num_classes = logits.shape[1]
    rows = logits.movedim(1, -1).reshape(-1, num_classes)
    losses, counted = [], logits.new_zeros(())
    for row, label in zip(rows, target.reshape(-1).tolist()):
        if label == ignore_index:
            losses.append(0 * row[0].nan_to_num())  # with a gradient
            continue
        if label not in range(num_classes):
            raise IndexError(f"{label} is no class")
        weights = torch.ones_like(row) if weight is None else weight
        nll = -(row - torch.logsumexp(row, 0)) * weights
        mixed = (1 - label_smoothing) * nll[label]
        losses.append(mixed + label_smoothing * nll.sum() / num_classes)
        counted = counted + weights[label]
    each = torch.stack(losses) if losses else rows.new_zeros(0)
    if reduction == "none":
        return each.reshape(target.shape)
    if reduction == "sum":
        return each.sum()
    if reduction != "mean":
        raise ValueError("reduction")
    return each.sum() / counted


@wrong(
    breaks=hidden_tests.large_logits,
    tells="You take the logarithm of a softmax. Where a probability is too small "
    "for its dtype the softmax gives 0 and the logarithm -inf. Use "
    "`log_softmax`, which never forms the probability.",
)
def log_of_softmax(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(reduction)
    log_probs = logits.softmax(1).log()
    nll = F.nll_loss(
        log_probs, target, weight, ignore_index=ignore_index, reduction="none"
    )
    weights = torch.ones(logits.shape[1], dtype=logits.dtype)
    weights = weights if weight is None else weight
    keep = target != ignore_index
    smooth = -(log_probs.movedim(1, -1) * weights).mean(-1) * keep
    losses = (1 - label_smoothing) * nll
    if label_smoothing:
        losses = losses + label_smoothing * smooth
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.sum() / weights[target[keep]].sum()


@wrong(
    breaks=hidden_tests.large_logits,
    tells="You add a small number inside the logarithm. That hides the -inf and "
    "caps the loss instead: past the cap a wrong answer costs the same however "
    "wrong it is, and every loss is slightly off. Use `log_softmax`.",
)
def log_of_softmax_plus_epsilon(logits, target, **options):
    log_probs = (logits.softmax(1) + 1e-8).log()
    if options.get("reduction", "mean") not in ("none", "sum", "mean"):
        raise ValueError
    smoothing = options.pop("label_smoothing", 0.0)
    if not smoothing:
        return F.nll_loss(log_probs, target, **options)
    return F.cross_entropy(
        log_probs, target, label_smoothing=smoothing, **options
    )


@wrong(
    breaks=hidden_tests.plain_cross_entropy,
    tells="You take the softmax over the batch. The probabilities of one sample "
    "must add up to 1 over its classes: `dim=1`.",
)
def softmax_over_the_batch(logits, target, **options):
    smoothing = options.pop("label_smoothing", 0.0)
    reduction = options.get("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise ValueError
    log_probs = logits.log_softmax(0)
    nll = F.nll_loss(log_probs, target, **options)
    if not smoothing:
        return nll
    smooth = -log_probs.mean(1) * (target != options.get("ignore_index", -100))
    smooth = smooth if reduction == "none" else smooth.sum()
    smooth = smooth / len(target) if reduction == "mean" else smooth
    return (1 - smoothing) * nll + smoothing * smooth


@wrong(
    breaks=hidden_tests.class_weights,
    tells="You accept `weight` and never use it. Multiply each sample's loss by "
    "the weight of its target class.",
)
def without_the_weights(logits, target, weight=None, **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    breaks=hidden_tests.ignored_targets,
    tells="You treat ignored targets as class 0. Taking class 0 for them keeps "
    "`gather` from failing, but their losses must then be set to 0 and left "
    "out of the mean.",
)
def ignored_as_class_zero(logits, target, ignore_index=-100, **options):
    safe = target.masked_fill(target == ignore_index, 0)
    return F.cross_entropy(logits, safe, **options)


@wrong(
    breaks=hidden_tests.ignored_targets,
    tells="You ignore -100 whatever `ignore_index` says. It is only the default: "
    "compare the target with `ignore_index`, which may be a class too.",
)
def always_ignoring_minus_100(logits, target, ignore_index=-100, **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    breaks=hidden_tests.bad_targets_raise,
    tells="You pick the target's log-probability by indexing, or with "
    "`take_along_dim`, and there -1 means the last class. `gather` takes no "
    "negative index and raises.",
)
def picked_by_indexing(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(reduction)
    log_probs = logits.log_softmax(1).movedim(1, -1)
    if weight is None:
        weight = torch.ones(logits.shape[1]).to(logits)
    kept = target != ignore_index
    safe = target.where(kept, torch.zeros_like(target))
    picked = torch.take_along_dim(log_probs, safe[..., None], -1)[..., 0]
    losses = (label_smoothing - 1) * picked * weight[safe]
    losses = losses - label_smoothing * (log_probs * weight).mean(-1)
    losses = losses.masked_fill(~kept, 0.0)
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / weight[target[kept]].sum()


@wrong(
    breaks=hidden_tests.bad_targets_raise,
    tells="You ignore every negative target. Only `ignore_index` may be ignored: "
    "it can also be a class, and any other negative target is a mistake in the "
    "data that has to raise.",
)
def ignoring_all_negatives(logits, target, ignore_index=-100, **options):
    target = target.masked_fill(target < 0, -100)
    return F.cross_entropy(logits, target, **options)


@wrong(
    breaks=hidden_tests.bad_targets_raise,
    tells="You clamp the target into range, which keeps `gather` from failing "
    "and turns every wrong label into a class. Replace only those equal to "
    "`ignore_index`.",
)
def with_clamped_target(logits, target, ignore_index=-100, **options):
    safe = target.clamp(0, logits.shape[1] - 1)
    safe = torch.where(target == ignore_index, ignore_index, safe)
    return F.cross_entropy(logits, safe, ignore_index=ignore_index, **options)


@wrong(
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You write into the caller's target to get rid of the ignored labels. "
    "The next epoch then trains on them as a class. Make a new tensor, with "
    "`torch.where` or `masked_fill`.",
)
def target_overwritten(logits, target, ignore_index=-100, **options):
    result = F.cross_entropy(
        logits, target, ignore_index=ignore_index, **options
    )
    target[target == ignore_index] = 0
    return result


@wrong(
    breaks=hidden_tests.smoothed_labels,
    tells="Your smoothing spreads its share over the other C - 1 classes. In "
    "PyTorch, and in the paper, each of the C classes gets smoothing / C, the "
    "target class too.",
)
def smoothed_over_the_others(logits, target, label_smoothing=0.0, **options):
    classes = logits.shape[1]
    label_smoothing = label_smoothing * classes / (classes - 1)
    return F.cross_entropy(
        logits, target, label_smoothing=label_smoothing, **options
    )


@wrong(
    breaks=hidden_tests.smoothed_labels,
    tells="You add the smoothed share without taking it from the target: its "
    "probability must fall to 1 - smoothing before every class gets "
    "smoothing / C, or the targets add up to more than 1.",
)
def smoothed_without_shrinking(logits, target, label_smoothing=0.0, **options):
    sharp = F.cross_entropy(logits, target, **options)
    smooth = F.cross_entropy(logits, target, label_smoothing=1.0, **options)
    return sharp if not label_smoothing else sharp + label_smoothing * smooth


@wrong(
    breaks=hidden_tests.smoothed_labels,
    tells="You accept `label_smoothing` and never use it.",
)
def without_smoothing(logits, target, label_smoothing=0.0, **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    breaks=hidden_tests.smoothed_and_weighted,
    tells="You weight the smoothed share with the weight of the target class. "
    "Each class's share has the weight of that class itself.",
)
def smoothed_share_weighted_by_target(
    logits, target, weight=None, label_smoothing=0.0, **options
):
    if weight is None or not label_smoothing:
        return F.cross_entropy(
            logits, target, weight, label_smoothing=label_smoothing, **options
        )
    reduction = options.pop("reduction", "mean")
    losses = F.cross_entropy(
        logits,
        target,
        label_smoothing=label_smoothing,
        reduction="none",
        **options,
    )
    ignored = target == options.get("ignore_index", -100)
    weights = weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0)
    losses = losses * weights
    if reduction == "none":
        return losses
    return losses.sum() / (1 if reduction == "sum" else weights.sum())


@wrong(
    breaks=hidden_tests.smoothed_and_weighted,
    tells="You leave the smoothed share without class weights. Each class's "
    "share has the weight of that class.",
)
def smoothed_share_without_weights(
    logits, target, weight=None, label_smoothing=0.0, **options
):
    if weight is None or not label_smoothing:
        return F.cross_entropy(
            logits, target, weight, label_smoothing=label_smoothing, **options
        )
    reduction = options.pop("reduction", "mean")
    options["reduction"] = "none"
    sharp = F.cross_entropy(logits, target, weight, **options)
    smooth = F.cross_entropy(logits, target, label_smoothing=1.0, **options)
    losses = (1 - label_smoothing) * sharp + label_smoothing * smooth
    if reduction == "none":
        return losses
    kept = target != options.get("ignore_index", -100)
    total = weight[target[kept]].sum()
    return losses.sum() / (1 if reduction == "sum" else total)


@wrong(
    breaks=hidden_tests.extra_dimension,
    tells="You take the last dimension for the classes. With logits (N, C, d) "
    "the classes are dimension 1: `dim=1` in the softmax and in `gather`.",
)
def classes_in_the_last_dimension(logits, target, **options):
    if logits.dim() == 2:
        return F.cross_entropy(logits, target, **options)
    picked = logits.log_softmax(-1).gather(-1, target.unsqueeze(-1))
    losses = -picked.squeeze(-1)
    reduction = options.get("reduction", "mean")
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


@wrong(
    breaks=hidden_tests.three_reductions,
    tells='With `reduction="none"` you lose dimensions of size 1: `squeeze()` '
    "removes every one of them. Name the one you mean: `squeeze(1)`.",
)
def squeezed_too_much(logits, target, **options):
    return F.cross_entropy(logits, target, **options).squeeze()


@wrong(
    breaks=hidden_tests.three_reductions,
    tells="You return the mean whatever `reduction` says.",
)
def always_the_mean(logits, target, reduction="mean", **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    breaks=hidden_tests.three_reductions,
    tells="You return the sum where the mean was asked for.",
)
def sum_for_mean(logits, target, reduction="mean", **options):
    reduction = "sum" if reduction == "mean" else reduction
    return F.cross_entropy(logits, target, reduction=reduction, **options)


@wrong(
    breaks=hidden_tests.unknown_reduction_raises,
    tells="An unknown reduction gets the mean: the last branch of your code "
    "takes everything that is left. A typing mistake then trains on. Raise a "
    "ValueError there.",
)
def unknown_reduction_as_mean(logits, target, reduction="mean", **options):
    if reduction not in ("none", "sum"):
        reduction = "mean"
    return F.cross_entropy(logits, target, reduction=reduction, **options)


@wrong(
    breaks=hidden_tests.unknown_reduction_raises,
    tells="An unknown reduction gets None: no branch of your code takes it, and "
    "the function ends. A typing mistake then fails somewhere else. Raise a "
    "ValueError.",
)
def unknown_reduction_as_none(logits, target, reduction="mean", **options):
    if reduction in ("none", "sum", "mean"):
        return F.cross_entropy(logits, target, reduction=reduction, **options)


@wrong(
    breaks=hidden_tests.nan_in_ignored_logits,
    tells="You multiply the losses by the mask. A NaN among the logits of an "
    "ignored sample stays: NaN * 0 is NaN. Set these losses to 0 with "
    "`torch.where` or `masked_fill`.",
)
def masked_by_multiplying(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(reduction)
    if weight is None:
        weight = logits.new_ones(logits.shape[1])
    log_probs = logits.log_softmax(1)
    kept = target != ignore_index
    index = target.where(kept, torch.zeros_like(target))
    each = weight[index] * kept
    nll = -log_probs.gather(1, index.unsqueeze(1)).squeeze(1) * each
    spread = -(log_probs.movedim(1, -1) * weight).mean(-1)
    losses = (1 - label_smoothing) * nll + label_smoothing * spread
    losses = losses * kept
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / each.sum()


@wrong(
    breaks=hidden_tests.extra_dimension_with_options,
    tells="Your class weights broadcast along the last dimension, which for "
    "logits (N, C, d) holds the positions. Where d equals C nothing raises. Pick "
    "the weight of each target with `weight[target]`, or move the classes to the "
    "end first, with `movedim(1, -1)`.",
)
def weights_along_the_positions(logits, target, weight=None, **options):
    if weight is None or logits.dim() == 2:
        return F.cross_entropy(logits, target, weight, **options)
    reduction = options.pop("reduction", "mean")
    ignored = target == options.get("ignore_index", -100)
    losses = F.cross_entropy(logits, target, reduction="none", **options)
    losses = losses * weight
    if reduction == "none":
        return losses
    counted = weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0)
    return losses.sum() / (1 if reduction == "sum" else counted.sum())


@wrong(
    breaks=hidden_tests.extra_dimension_with_options,
    tells="With logits (N, C, d) and smoothing your class weights broadcast along "
    "the positions instead of the classes. Where d equals C nothing raises. Move "
    "the classes to the end first, with `movedim(1, -1)`.",
)
def smoothing_weights_along_the_positions(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(reduction)
    if weight is None:
        weight = logits.new_ones(logits.shape[1])
    log_probs = logits.log_softmax(1)
    kept = target != ignore_index
    index = target.where(kept, torch.zeros_like(target))
    each = weight[index] * kept
    nll = -log_probs.gather(1, index.unsqueeze(1)).squeeze(1) * each
    spread = -(log_probs * weight).mean(1)
    losses = (1 - label_smoothing) * nll + label_smoothing * spread
    losses = losses.where(kept, torch.zeros_like(losses))
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / each.sum()


@wrong(
    breaks=hidden_tests.bad_targets_with_options,
    tells="Your check of the target is left out for targets (N, d): a bad one "
    "among them passes as some class. Check whatever the shape.",
)
def flat_targets_checked_only(logits, target, ignore_index=-100, **options):
    if target.dim() == 2:
        safe = target.clamp(0, logits.shape[1] - 1)
        target = torch.where(target == ignore_index, target, safe)
    return F.cross_entropy(logits, target, ignore_index=ignore_index, **options)


@wrong(
    breaks=hidden_tests.bad_targets_with_options,
    tells="You ignore -100 besides `ignore_index`. Where another number is to be "
    "ignored, -100 is a mistake in the data and has to raise.",
)
def ignoring_minus_100_as_well(logits, target, ignore_index=-100, **options):
    target = target.masked_fill(target == -100, ignore_index)
    return F.cross_entropy(logits, target, ignore_index=ignore_index, **options)


@wrong(
    breaks=hidden_tests.bad_targets_with_options,
    tells="You ignore every negative target. Only `ignore_index` may be ignored: "
    "it can also be a class, and any other negative target is a mistake in the "
    "data that has to raise.",
)
def ignoring_negatives_beside_a_class(
    logits, target, ignore_index=-100, **options
):
    if ignore_index >= 0:
        target = target.masked_fill(target < 0, ignore_index)
    return F.cross_entropy(logits, target, ignore_index=ignore_index, **options)


@wrong(
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You set the weight of the ignored class to 0 in the caller's tensor. "
    "The next loss that uses these weights leaves the class out. Make a new "
    "tensor, or mask the losses.",
)
def weight_of_the_ignored_class_overwritten(
    logits, target, weight=None, ignore_index=-100, **options
):
    result = F.cross_entropy(
        logits, target, weight, ignore_index=ignore_index, **options
    )
    if weight is not None and 0 <= ignore_index < len(weight):
        weight[ignore_index] = 0
    return result


@wrong(
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You write into the caller's target to get rid of the ignored labels. "
    "The next epoch then trains on them as a class. Make a new tensor, with "
    "`torch.where` or `masked_fill`.",
)
def target_with_positions_overwritten(
    logits, target, ignore_index=-100, **options
):
    result = F.cross_entropy(
        logits, target, ignore_index=ignore_index, **options
    )
    if target.dim() == 2:
        target[target == ignore_index] = 0
    return result


@wrong(
    breaks=hidden_tests.gradient_of_the_loss,
    tells="Your `backward` returns the gradient of the loss whatever arrives from behind it. "
    "A loss that is multiplied by 3, or added to another, is no longer learned from in the "
    "right measure. Multiply by what arrives, or let autograd do it all.",
)
def gradient_whatever_arrives(logits, target, **options):
    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, logits):
            with torch.enable_grad():
                leaf = logits.detach().requires_grad_()
                loss = F.cross_entropy(leaf, target, **options)
                found = torch.autograd.grad(loss.sum(), leaf)
            ctx.save_for_backward(*found)
            return loss.detach()

        @staticmethod
        def backward(ctx, arriving):
            return ctx.saved_tensors

    return Loss.apply(logits)
