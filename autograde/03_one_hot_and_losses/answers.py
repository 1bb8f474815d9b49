"""The answer bank of chapter 03: one-hot labels and losses."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# one_hot


@accepted("one_hot")
def by_the_library(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes).to(dtype)


@accepted("one_hot")
def by_scatter_with_int32(labels, num_classes, dtype=torch.float32):
    index = labels.int()[..., None]
    rows = labels.new_zeros((*labels.shape, num_classes), dtype=dtype)
    return rows.scatter(-1, index.long(), torch.ones_like(index, dtype=dtype))


@accepted("one_hot")
def by_checked_eye(labels, num_classes, dtype=torch.float32):
    labels = labels.to(torch.int64)
    if labels.numel() and (labels.min() < 0 or labels.max() >= num_classes):
        raise ValueError("a label is no class")
    return torch.eye(num_classes, dtype=dtype, device=labels.device)[labels]


@accepted("one_hot")
def by_eye_moved_to_the_device(labels, num_classes, dtype=torch.float32):
    labels = labels.long()
    if not ((labels >= 0) & (labels < num_classes)).all():
        raise IndexError(f"labels must be in 0..{num_classes - 1}")
    eye = torch.eye(num_classes).to(labels.device)
    return (
        eye.index_select(0, labels.reshape(-1).int())
        .to(dtype)
        .reshape(labels.shape + (num_classes,))
    )


@accepted("one_hot")
def by_checked_comparison(labels, num_classes, dtype=torch.float32):
    classes = torch.arange(num_classes, device=labels.device)
    hits = labels.unsqueeze(-1) == classes
    if not hits.any(dim=-1).all():
        raise ValueError("a label is no class")
    return hits.to(dtype)


@accepted("one_hot")
def by_asserted_comparison(labels, num_classes, dtype=torch.float32):
    classes = torch.arange(num_classes, device=labels.device)
    rows = (labels[..., None] == classes).to(dtype)
    torch._assert_async((rows.sum(-1) == 1).all())
    return rows


@accepted("one_hot")
def by_flat_positions(labels, num_classes, dtype=torch.float32):
    flat = labels.long().flatten()
    if any(not 0 <= label < num_classes for label in flat.tolist()):
        raise ValueError("a label is no class")
    rows = torch.zeros(flat.numel() * num_classes, dtype=dtype)
    rows = rows.to(labels.device)
    start = torch.arange(flat.numel(), device=labels.device) * num_classes
    rows[start + flat] = 1
    return rows.view(*labels.shape, num_classes)


@accepted("one_hot")
def by_a_loop(labels, num_classes, dtype=torch.float32):
    rows = []
    for label in labels.reshape(-1).tolist():
        if label not in range(num_classes):
            raise ValueError(f"{label} is no class")
        rows.append([float(label == c) for c in range(num_classes)])
    made = torch.tensor(rows, dtype=dtype, device=labels.device)
    return made.reshape(*labels.shape, num_classes)


@accepted("one_hot")
def by_embedding(labels, num_classes, dtype=torch.float32):
    eye = torch.eye(num_classes, dtype=dtype, device=labels.device)
    return F.embedding(labels.long(), eye)


@wrong(
    "one_hot",
    breaks=[
        hidden_tests.leaves_labels_alone,
        hidden_tests.labels_of_any_shape,
    ],
    tells="You made a column of the labels with `resize_`. It changes the "
    "caller's tensor, and on a view it reads the storage behind the view: other "
    "labels. Use `labels.unsqueeze(-1)`, which makes a new view and reads the "
    "labels you were given.",
)
def by_resize(labels, num_classes, dtype=torch.float32):
    shape = labels.shape
    column = labels.resize_(labels.numel(), 1).long()
    rows = torch.zeros(
        column.shape[0], num_classes, dtype=dtype, device=labels.device
    )
    return rows.scatter_(1, column, 1).reshape(*shape, num_classes)


@wrong(
    "one_hot",
    breaks=hidden_tests.leaves_labels_alone,
    tells="You gave the caller's labels another dimension in place, with "
    "`unsqueeze_`. After your function they are a column. Use `unsqueeze`, "
    "without the underscore.",
)
def by_unsqueeze_in_place(labels, num_classes, dtype=torch.float32):
    shape = labels.shape
    rows = torch.zeros(*shape, num_classes, dtype=dtype, device=labels.device)
    return rows.scatter_(-1, labels.unsqueeze_(-1).long(), 1)


@wrong(
    "one_hot",
    breaks=hidden_tests.ones_at_labels,
    tells="You wrote the batch size into the function. It works for batches of "
    "that size alone, and the last batch of an epoch is often shorter. Take "
    "the size from `labels.shape`.",
)
def with_a_fixed_batch_size(labels, num_classes, dtype=torch.float32):
    rows = torch.zeros(4, num_classes, dtype=dtype, device=labels.device)
    return rows.scatter_(1, labels.long().reshape(-1, 1), 1)


@wrong(
    "one_hot",
    breaks=hidden_tests.ones_at_labels,
    tells="You took the number of classes from the largest label. A batch "
    "without the last class then gets too few columns, and a label past the "
    "last class goes unnoticed. Use `num_classes`.",
)
def with_inferred_classes(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long()).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.ones_at_labels,
    tells="You scattered along dimension 0. `scatter_(0, ...)` reads a label as "
    "a row number and fills column 0. The classes are the last dimension: "
    "scatter along -1.",
)
def along_rows(labels, num_classes, dtype=torch.float32):
    rows = torch.zeros(
        *labels.shape, num_classes, dtype=dtype, device=labels.device
    )
    return rows.scatter_(0, labels.long().unsqueeze(-1), 1)


@wrong(
    "one_hot",
    breaks=hidden_tests.dtype_as_asked,
    tells="Your result is int64, as `F.one_hot` makes it, whatever dtype was "
    "asked for. A loss wants the dtype of the scores: end with `.to(dtype)`.",
)
def always_int64(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes)


@wrong(
    "one_hot",
    breaks=hidden_tests.dtype_as_asked,
    tells="Your result is float32 whatever dtype was asked for. Pass `dtype` on "
    "to the function that makes the zeros.",
)
def always_float32(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes).float()


@wrong(
    "one_hot",
    breaks=hidden_tests.ones_at_labels,
    tells="You return a NumPy array. It has left the device and the graph, and "
    "no loss takes it. Return the tensor itself.",
)
def as_numpy(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long(), num_classes).to(dtype).numpy()


@wrong(
    "one_hot",
    breaks=hidden_tests.stays_on_the_device,
    tells="Your result is made on the CPU, wherever the labels are. With labels "
    "on a GPU it fails or lands beside the scores on the wrong device. Pass "
    "`device=labels.device` where you make the zeros.",
)
def on_the_cpu(labels, num_classes, dtype=torch.float32):
    rows = torch.zeros(*labels.shape, num_classes, dtype=dtype)
    return rows.scatter_(-1, labels.long().unsqueeze(-1), 1)


@wrong(
    "one_hot",
    breaks=hidden_tests.stays_on_the_device,
    tells="Your result is made on the CPU, wherever the labels are. With labels "
    "on a GPU it fails or lands beside the scores on the wrong device. Pass "
    "`device=labels.device` where you make the zeros.",
)
def brought_to_the_cpu(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.cpu().long(), num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You index with the labels, and an index of -1 means the last row: a "
    "label of -1 silently becomes the last class. Check the labels first, or "
    "use `scatter_`, which takes no negative index.",
)
def by_unchecked_eye(labels, num_classes, dtype=torch.float32):
    eye = torch.eye(num_classes, dtype=dtype, device=labels.device)
    return eye[labels.long()]


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You index with the labels, and an index of -1 means the last row: a "
    "label of -1 silently becomes the last class. Check the labels first, or "
    "use `scatter_`, which takes no negative index.",
)
def by_unchecked_indexing(labels, num_classes, dtype=torch.float32):
    flat = labels.reshape(-1).long()
    rows = torch.zeros(
        flat.numel(), num_classes, dtype=dtype, device=labels.device
    )
    rows[torch.arange(flat.numel(), device=labels.device), flat] = 1
    return rows.reshape(*labels.shape, num_classes)


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You compare the labels with every class. A label that is no class "
    "equals none of them, so its row is all zeros and no loss will complain. "
    "Check that every label lies in 0..num_classes-1.",
)
def by_unchecked_comparison(labels, num_classes, dtype=torch.float32):
    classes = torch.arange(num_classes, device=labels.device)
    return (labels.unsqueeze(-1) == classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You force bad labels into range, with `clamp` or `%`, so a mistake in "
    "the data turns into a class. Let them raise an error.",
)
def with_clamped_labels(labels, num_classes, dtype=torch.float32):
    labels = labels.long().clamp(0, num_classes - 1)
    return F.one_hot(labels, num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You force bad labels into range, with `clamp` or `%`, so a mistake in "
    "the data turns into a class. Let them raise an error.",
)
def with_labels_modulo(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long() % num_classes, num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You catch labels past the last class but let negative ones through: "
    "they wrap around and count from the last class. Check both ends.",
)
def with_half_a_check(labels, num_classes, dtype=torch.float32):
    if (labels >= num_classes).any():
        raise ValueError("a label is no class")
    eye = torch.eye(num_classes, dtype=dtype, device=labels.device)
    return eye[labels.long() % num_classes]


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_integer_dtype,
    tells="You pass the labels on as they are. `F.one_hot` takes int64 alone: "
    "turn them into that dtype first, with `labels.long()`.",
)
def for_int64_only(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels, num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_integer_dtype,
    tells="You index with uint8 labels. PyTorch reads a uint8 index as a mask, "
    "not as positions, so it picks other rows. Use `labels.long()`.",
)
def by_eye_with_a_mask(labels, num_classes, dtype=torch.float32):
    if labels.numel() and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError("a label is no class")
    return torch.eye(num_classes, dtype=dtype, device=labels.device)[labels]


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_shape,
    tells="Your function works for labels of one dimension only. Put the new "
    "dimension last, with `unsqueeze(-1)`, and scatter along -1: then any "
    "shape works.",
)
def for_one_dimension_only(labels, num_classes, dtype=torch.float32):
    (n,) = labels.shape
    rows = torch.zeros(n, num_classes, dtype=dtype, device=labels.device)
    return rows.scatter_(1, labels.long().unsqueeze(1), 1)


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_shape,
    tells="You flatten the labels and return one row per label. The result must "
    "keep the shape of the labels, with the classes behind it: reshape it to "
    "`(*labels.shape, num_classes)`.",
)
def left_flat(labels, num_classes, dtype=torch.float32):
    return F.one_hot(labels.long().reshape(-1), num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_shape,
    tells="You flatten with `view`, which cannot flatten every strided tensor "
    "and raises on a transposed one. Use `reshape`, or better no flattening "
    "at all.",
)
def flattened_by_view(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.view(-1).long(), num_classes).to(dtype)
    return rows.view(*labels.shape, num_classes)


@wrong(
    "one_hot",
    breaks=hidden_tests.ones_at_labels,
    tells="Your classes are the first dimension. The result has the shape of the "
    "labels and then the classes: `(*labels.shape, num_classes)`.",
)
def with_classes_first(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.long(), num_classes).to(dtype)
    return rows.movedim(-1, 0).contiguous()


@wrong(
    "one_hot",
    breaks=hidden_tests.ones_at_labels,
    tells="Your ones stand one column too far left: classes count from 0, so "
    "label 0 belongs to column 0.",
)
def counted_from_one(labels, num_classes, dtype=torch.float32):
    columns = (labels.long() - 1) % num_classes
    if ((labels < 0) | (labels >= num_classes)).any():
        raise ValueError("a label is no class")
    return F.one_hot(columns, num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.leaves_labels_alone,
    tells="You gave the caller's labels another dimension in place, with "
    "`unsqueeze_`. After your function they are a column. Use `unsqueeze`, "
    "without the underscore.",
)
def by_unsqueeze_in_place_if_strided(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.long(), num_classes).to(dtype)
    if not labels.is_contiguous():
        labels.unsqueeze_(-1)
    return rows


@wrong(
    "one_hot",
    breaks=hidden_tests.leaves_labels_alone,
    tells="You write into the caller's labels on some way through your "
    "function: for a strided view, or for a dtype other than int64. Work on a "
    "tensor of your own, such as `labels.long()` or `labels.clone()`.",
)
def strided_labels_overwritten(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.long(), num_classes).to(dtype)
    if not labels.is_contiguous():
        labels.zero_()
    return rows


@wrong(
    "one_hot",
    breaks=hidden_tests.leaves_labels_alone,
    tells="You write into the caller's labels on some way through your "
    "function: for a strided view, or for a dtype other than int64. Work on a "
    "tensor of your own, such as `labels.long()` or `labels.clone()`.",
)
def narrow_labels_overwritten(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.long(), num_classes).to(dtype)
    if labels.dtype != torch.int64:
        labels.zero_()
    return rows


@wrong(
    "one_hot",
    breaks=hidden_tests.results_of_their_own,
    tells="You keep the zeros from one call to the next and hand out the same "
    "tensor again. The rows of the last batch change when the next one is "
    "encoded. Make the zeros anew in every call.",
    body=True,
)
def into_a_kept_buffer():
    kept = {}

    def one_hot(labels, num_classes, dtype=torch.float32):
        key = (labels.shape, num_classes, dtype, labels.device)
        if key not in kept:
            shape = (*labels.shape, num_classes)
            kept[key] = torch.zeros(shape, dtype=dtype, device=labels.device)
        index = labels.long().unsqueeze(-1)
        return kept[key].zero_().scatter_(-1, index, 1)


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_integer_dtype,
    tells="You read uint8 labels as int8. From 128 on that makes them "
    "negative. `labels.long()` keeps every value.",
)
def uint8_read_as_int8(labels, num_classes, dtype=torch.float32):
    if labels.dtype == torch.uint8:
        labels = labels.view(torch.int8)
    return F.one_hot(labels.long(), num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_integer_dtype,
    tells="You count the classes in the dtype of the labels. With more classes "
    "than that dtype can count they wrap around, and a row gets two ones. "
    "Compare with classes of int64.",
)
def classes_in_the_dtype_of_the_labels(
    labels, num_classes, dtype=torch.float32
):
    classes = torch.arange(num_classes, device=labels.device)
    hits = labels.unsqueeze(-1) == classes.to(labels.dtype)
    if not hits.any(dim=-1).all():
        raise ValueError("a label is no class")
    return hits.to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.labels_of_any_integer_dtype,
    tells="You compare the labels with `num_classes` in their own dtype. A "
    "uint8 has no room for 300: it is taken for 44, and good labels are "
    "refused. Turn the labels into int64 before you check them.",
)
def bounds_in_the_dtype_of_the_labels(labels, num_classes, dtype=torch.float32):
    if not ((labels >= 0) & (labels < num_classes)).all():
        raise IndexError(f"labels must be in 0..{num_classes - 1}")
    return F.one_hot(labels.long(), num_classes).to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.bad_labels_raise,
    tells="You check labels of one dimension and let those of more through. A "
    "bad label among them becomes a row of zeros. Check whatever the shape.",
)
def flat_labels_checked_only(labels, num_classes, dtype=torch.float32):
    classes = torch.arange(num_classes, device=labels.device)
    hits = labels.unsqueeze(-1) == classes
    if labels.dim() <= 1 and not hits.any(dim=-1).all():
        raise ValueError("a label is no class")
    return hits.to(dtype)


@wrong(
    "one_hot",
    breaks=hidden_tests.dtype_as_asked,
    tells="A label without dimensions takes another way through your function, "
    "where `dtype` is forgotten. Pass it on there too, or better let one way "
    "serve all shapes.",
)
def dtype_forgotten_for_one_label(labels, num_classes, dtype=torch.float32):
    rows = F.one_hot(labels.long(), num_classes)
    return rows.to(dtype) if labels.dim() else rows.float()


# cross_entropy


@accepted("cross_entropy")
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


@accepted("cross_entropy")
def by_the_module(logits, target, **options):
    return nn.CrossEntropyLoss(**options)(logits, target)


@accepted("cross_entropy")
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


@accepted("cross_entropy")
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


@accepted("cross_entropy")
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


@accepted("cross_entropy")
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
    wanted = wanted + label_smoothing / num_classes * keep.unsqueeze(-1)
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


@accepted("cross_entropy")
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
            losses.append(row.new_zeros(()))
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
    "cross_entropy",
    breaks=hidden_tests.plain_cross_entropy,
    tells="You take a softmax before a function that takes one itself. The loss "
    "then cannot come near 0 and its gradient is weak. Hand over the logits as "
    "they are.",
)
def softmax_first(logits, target, **options):
    return F.cross_entropy(logits.softmax(1), target, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.large_logits,
    tells="You subtract one maximum for the whole batch. Rows far below it "
    "underflow: all their exponentials are 0. Subtract each row's own maximum, "
    "with `amax(dim=1, keepdim=True)`.",
)
def with_one_maximum_for_all(logits, target, **options):
    if not logits.numel():
        return F.cross_entropy(logits, target, **options)
    if options.get("reduction", "mean") not in ("none", "sum", "mean"):
        raise ValueError
    shifted = logits - logits.max()
    log_probs = shifted - shifted.exp().sum(1, keepdim=True).log()
    if not log_probs.isfinite().all():
        return F.nll_loss(log_probs, target, **options)
    return F.cross_entropy(log_probs, target, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.plain_cross_entropy,
    tells="`F.cross_entropy` refuses your target and raises. Class indices go in "
    "as they are: int64 of shape (N,), neither as a column (N, 1) nor as a "
    "one-hot of integers.",
)
def target_as_a_column(logits, target, **options):
    return F.cross_entropy(logits, target.unsqueeze(1), **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.plain_cross_entropy,
    tells="`F.cross_entropy` refuses your target and raises. Class indices go in "
    "as they are: int64 of shape (N,), neither as a column (N, 1) nor as a "
    "one-hot of integers.",
)
def target_as_integer_one_hot(logits, target, **options):
    rows = F.one_hot(target.clamp(min=0), logits.shape[1])
    return F.cross_entropy(logits, rows.movedim(-1, 1), **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.plain_cross_entropy,
    tells="The sign is missing: the loss is minus the log-probability of the "
    "target. Yours is never above 0, and minimising it would make the model "
    "worse.",
)
def without_the_minus(logits, target, **options):
    return -F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.class_weights,
    tells="Your weighted mean divides by the number of samples. It must divide "
    "by the sum of the weights of their targets, or the size of the loss "
    "changes with the mix of classes in the batch.",
)
def weighted_mean_over_n(logits, target, **options):
    reduction = options.pop("reduction", "mean")
    if reduction != "mean":
        return F.cross_entropy(logits, target, reduction=reduction, **options)
    losses = F.cross_entropy(logits, target, reduction="none", **options)
    kept = target != options.get("ignore_index", -100)
    return losses.sum() / kept.sum()


@wrong(
    "cross_entropy",
    breaks=hidden_tests.class_weights,
    tells="Your weighted mean divides by the sum of all class weights. It must "
    "divide by the weights of the targets in the batch: one weight per sample, "
    "that of its own class.",
)
def weighted_mean_over_all_weights(logits, target, **options):
    reduction = options.pop("reduction", "mean")
    weight = options.get("weight")
    if reduction != "mean" or weight is None:
        return F.cross_entropy(logits, target, reduction=reduction, **options)
    losses = F.cross_entropy(logits, target, reduction="sum", **options)
    return losses / weight.sum()


@wrong(
    "cross_entropy",
    breaks=hidden_tests.class_weights,
    tells="You accept `weight` and never use it. Multiply each sample's loss by "
    "the weight of its target class.",
)
def without_the_weights(logits, target, weight=None, **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.ignored_targets,
    tells="Ignored targets add nothing to your sum but still count in the mean's "
    "denominator, so padding makes the loss smaller. Divide by the targets "
    "that are kept.",
)
def ignored_in_the_denominator(logits, target, **options):
    reduction = options.pop("reduction", "mean")
    if reduction != "mean":
        return F.cross_entropy(logits, target, reduction=reduction, **options)
    losses = F.cross_entropy(logits, target, reduction="none", **options)
    weight = options.get("weight")
    if weight is None:
        return losses.mean()
    return losses.sum() / weight[target.clamp(min=0)].sum()


@wrong(
    "cross_entropy",
    breaks=hidden_tests.ignored_targets,
    tells="You treat ignored targets as class 0. Taking class 0 for them keeps "
    "`gather` from failing, but their losses must then be set to 0 and left "
    "out of the mean.",
)
def ignored_as_class_zero(logits, target, ignore_index=-100, **options):
    safe = target.masked_fill(target == ignore_index, 0)
    return F.cross_entropy(logits, safe, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.ignored_targets,
    tells="You ignore -100 whatever `ignore_index` says. It is only the default: "
    "compare the target with `ignore_index`, which may be a class too.",
)
def always_ignoring_minus_100(logits, target, ignore_index=-100, **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.ignored_targets,
    tells="You count the losses that differ from 0. A sample that is right and "
    "sure has a loss of exactly 0 and still counts in the mean. Count the "
    "targets that differ from `ignore_index`.",
)
def counting_losses_above_zero(logits, target, **options):
    reduction = options.pop("reduction", "mean")
    if reduction != "mean" or options.get("weight") is not None:
        return F.cross_entropy(logits, target, reduction=reduction, **options)
    losses = F.cross_entropy(logits, target, reduction="none", **options)
    return losses.sum() / (losses != 0).sum()


@wrong(
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.bad_targets_raise,
    tells="You ignore every negative target. Only `ignore_index` may be ignored: "
    "it can also be a class, and any other negative target is a mistake in the "
    "data that has to raise.",
)
def ignoring_all_negatives(logits, target, ignore_index=-100, **options):
    target = target.masked_fill(target < 0, -100)
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
    breaks=[
        hidden_tests.leaves_arguments_alone,
        hidden_tests.gradient_of_the_loss,
    ],
    tells="You subtract the maximum from the caller's logits in place. On "
    "logits that need a gradient this may raise, and elsewhere the caller's "
    "scores have changed. Write `logits = logits - ...`.",
)
def logits_shifted_in_place(logits, target, **options):
    if logits.numel():
        logits -= logits.amax(1, keepdim=True)
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.smoothed_labels,
    tells="You accept `label_smoothing` and never use it.",
)
def without_smoothing(logits, target, label_smoothing=0.0, **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.smoothed_and_weighted,
    tells="You hand the smoothed rows to `F.cross_entropy` as probabilities. "
    "With probabilities its weighted mean divides by the number of samples "
    "rather than by the weights of their targets, and it cannot ignore any.",
)
def by_probability_targets(
    logits,
    target,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    rows = F.one_hot(target, logits.shape[1]).to(logits.dtype).movedim(-1, 1)
    return F.cross_entropy(
        logits,
        rows,
        weight,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@wrong(
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.extra_dimension,
    tells="You flatten logits (N, C, d) with `reshape(-1, C)`, which mixes "
    "classes and positions: it reads the numbers in memory order. Move the "
    "classes to the end first, with `movedim(1, -1)`.",
)
def flattened_without_moving(logits, target, **options):
    classes = logits.shape[1]
    losses = F.cross_entropy(
        logits.reshape(-1, classes), target.reshape(-1), **options
    )
    return losses if not losses.dim() else losses.reshape(target.shape)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.extra_dimension,
    tells="Your code stops at logits (N, C, d). Most operations take it as it "
    "is if you name the class dimension, 1, and insert the target's with "
    "`unsqueeze(1)`.",
)
def for_two_dimensions_only(logits, target, **options):
    _, _ = logits.shape
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.three_reductions,
    tells='With `reduction="none"` you lose dimensions of size 1: `squeeze()` '
    "removes every one of them. Name the one you mean: `squeeze(1)`.",
)
def squeezed_too_much(logits, target, **options):
    return F.cross_entropy(logits, target, **options).squeeze()


@wrong(
    "cross_entropy",
    breaks=hidden_tests.three_reductions,
    tells="You return the mean whatever `reduction` says.",
)
def always_the_mean(logits, target, reduction="mean", **options):
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.three_reductions,
    tells="You return the sum where the mean was asked for.",
)
def sum_for_mean(logits, target, reduction="mean", **options):
    reduction = "sum" if reduction == "mean" else reduction
    return F.cross_entropy(logits, target, reduction=reduction, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.unknown_reduction_raises,
    tells="An unknown reduction gets None: no branch of your code takes it, and "
    "the function ends. A typing mistake then fails somewhere else. Raise a "
    "ValueError.",
)
def unknown_reduction_as_none(logits, target, reduction="mean", **options):
    if reduction in ("none", "sum", "mean"):
        return F.cross_entropy(logits, target, reduction=reduction, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.nothing_to_count,
    tells="Where nothing is left to count you return 0 for the mean, by a floor "
    "under the denominator. The library returns NaN. A 0 would look like a "
    "perfect batch.",
)
def zero_for_an_empty_mean(logits, target, **options):
    loss = F.cross_entropy(logits, target, **options)
    return torch.nan_to_num(loss, nan=0.0)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.gradient_of_the_loss,
    tells="Your loss is cut off from the logits, by `.item()`, `.detach()`, "
    "`.data`, NumPy or `no_grad`, so nothing can be learned from it. Stay with "
    "tensor operations.",
)
def cut_off_from_the_logits(logits, target, **options):
    return F.cross_entropy(logits.detach(), target, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.bad_targets_with_options,
    tells="You ignore -100 besides `ignore_index`. Where another number is to be "
    "ignored, -100 is a mistake in the data and has to raise.",
)
def ignoring_minus_100_as_well(logits, target, ignore_index=-100, **options):
    target = target.masked_fill(target == -100, ignore_index)
    return F.cross_entropy(logits, target, ignore_index=ignore_index, **options)


@wrong(
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
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
    "cross_entropy",
    breaks=hidden_tests.gradient_with_options,
    tells="On one way through your function the loss is cut off from the logits: "
    'for logits (N, C, d), or for reduction "none". Stay with tensor operations '
    "there too: no `.detach()`, no `.data`, no filling of an empty tensor from "
    "numbers.",
)
def cut_off_with_positions(logits, target, **options):
    if logits.dim() == 3:
        logits = logits.detach()
    return F.cross_entropy(logits, target, **options)


@wrong(
    "cross_entropy",
    breaks=hidden_tests.gradient_with_options,
    tells="On one way through your function the loss is cut off from the logits: "
    'for logits (N, C, d), or for reduction "none". Stay with tensor operations '
    "there too: no `.detach()`, no `.data`, no filling of an empty tensor from "
    "numbers.",
)
def cut_off_without_reduction(logits, target, reduction="mean", **options):
    losses = F.cross_entropy(logits, target, reduction=reduction, **options)
    return losses.detach() if reduction == "none" else losses


# class_mse


@accepted("class_mse")
def by_explicit_check(scores, target):
    if target.shape == scores.shape:
        rows = target
    elif target.shape == scores.shape[:1] and not target.is_floating_point():
        rows = F.one_hot(target.long(), scores.size(1))
    else:
        raise ValueError("target must hold class indices or rows of scores")
    return F.mse_loss(scores, rows.to(scores.dtype))


@accepted("class_mse")
def by_reshape_as(scores, target):
    n, num_classes = scores.shape
    if target.shape == (n,) and not target.is_floating_point():
        flat = F.one_hot(target.long(), num_classes).flatten()
        target = flat.reshape_as(scores)
    if target.shape != scores.shape:
        raise ValueError(f"target has shape {tuple(target.shape)}")
    return (scores - target.to(scores.dtype)).pow(2).mean()


@accepted("class_mse")
def by_scatter(scores, target):
    if target.dim() == 1 and not torch.is_floating_point(target):
        if len(target) != len(scores):
            raise ValueError("as many labels as rows, please")
        rows = torch.zeros_like(scores)
        target = rows.scatter(1, target.long()[:, None], 1.0)
    if scores.shape != target.shape:
        raise ValueError("shapes differ")
    squares = torch.square(scores - target.to(scores))
    return squares.sum() / scores.numel()


@accepted("class_mse")
def by_the_square_of_the_sum(scores, target):
    if target.shape == scores.shape:
        return ((scores - target.type_as(scores)) ** 2).mean()
    if target.is_floating_point() or target.shape != (scores.shape[0],):
        raise ValueError("no labels and no rows")
    picked = scores.gather(1, target.long().unsqueeze(1)).squeeze(1)
    total = (scores**2).sum() - 2 * picked.sum() + len(target)
    return total / scores.numel()


@accepted("class_mse")
def by_a_loop_over_classes(scores, target):
    if target.shape != scores.shape:
        if target.is_floating_point() or target.dim() != 1:
            raise ValueError("target")
        if target.size(0) != scores.size(0):
            raise ValueError("target")
        columns = [(target == c) for c in range(scores.size(1))]
        target = torch.stack(columns, dim=1)
        if not target.any(dim=1).all():
            raise IndexError("a label is no class")
    return nn.MSELoss()(scores, target.type_as(scores))


@wrong(
    "class_mse",
    breaks=hidden_tests.as_many_samples_as_classes,
    tells="You hand the target to the loss as it comes. Where the number of "
    "samples equals the number of classes, (N,) broadcasts against (N, N), and "
    "the labels' numbers are taken for scores. Make one-hot rows of class "
    "indices, and compare shapes before you subtract.",
)
def broadcast_by_the_library(scores, target):
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.as_many_samples_as_classes,
    tells="You subtract the target as it comes. Where the number of "
    "samples equals the number of classes, (N,) broadcasts against (N, N), and "
    "the labels' numbers are taken for scores. Make one-hot rows of class "
    "indices, and compare shapes before you subtract.",
)
def broadcast_by_hand(scores, target):
    return ((scores - target) ** 2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.as_many_samples_as_classes,
    tells="You turn the labels into a column and let it broadcast over the "
    "classes: every score is then compared with the label's number. A label "
    "names a column; it is no score. Make one-hot rows.",
)
def labels_as_a_column(scores, target):
    if target.dim() == 1:
        if target.is_floating_point() or len(target) != len(scores):
            raise ValueError
        target = target[:, None]
    elif target.shape != scores.shape:
        raise ValueError
    return ((scores - target) ** 2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You make one-hot rows but never compare shapes, so a target of "
    "another shape still broadcasts. Raise a ValueError unless the target has "
    "the shape of the scores.",
)
def without_a_shape_check(scores, target):
    if not target.is_floating_point() and target.shape != scores.shape:
        target = F.one_hot(target.long(), scores.shape[1])
    return ((scores - target) ** 2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You check the number of rows alone. A target (N, 1) or (N,) has as "
    "many rows as the scores and still broadcasts. Compare whole shapes.",
)
def checking_the_rows_only(scores, target):
    if target.dim() == 0 or len(target) != len(scores):
        raise ValueError("rows")
    if target.dim() == 1 and not target.is_floating_point():
        target = F.one_hot(target.long(), scores.shape[1])
    return ((scores - target) ** 2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You reshape any target to the shape of the scores. That fits as soon "
    "as the number of elements does: a transposed target passes and is read in "
    "the wrong order. Raise a ValueError where shapes differ.",
)
def reshaping_whatever_comes(scores, target):
    if target.dtype in (torch.int32, torch.int64) and target.dim() == 1:
        if len(target) != len(scores):
            raise ValueError("rows")
        target = F.one_hot(target.long(), scores.shape[1])
    if target.numel() != scores.numel():
        raise ValueError("sizes")
    return F.mse_loss(scores, target.reshape_as(scores).to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You flatten or squeeze the target and then take it for labels. A "
    "column (N, 1), floating-point labels or a single label are mistakes "
    "upstream: raise a ValueError.",
)
def taking_any_labels(scores, target):
    if target.shape == scores.shape:
        return F.mse_loss(scores, target.to(scores.dtype))
    labels = target.reshape(-1).long()
    if len(labels) != len(scores):
        raise ValueError("labels")
    rows = F.one_hot(labels, scores.shape[1]).to(scores.dtype)
    return F.mse_loss(scores, rows)


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You refuse what does not fit with an AssertionError. An `assert` is "
    "for what cannot happen, and `python -O` removes it. Raise a ValueError.",
)
def refusing_by_assert(scores, target):
    if target.shape != scores.shape:
        assert not target.is_floating_point()
        assert target.shape == scores.shape[:1]
        target = F.one_hot(target.long(), scores.shape[1])
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_rows,
    tells="You take every target for class indices. A target of the shape of "
    "the scores is used as it is.",
)
def for_labels_only(scores, target):
    if target.dim() != 1 or target.is_floating_point():
        raise ValueError("labels, please")
    if len(target) != len(scores):
        raise ValueError("as many labels as rows, please")
    rows = F.one_hot(target.long(), scores.shape[1])
    return F.mse_loss(scores, rows.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_indices,
    tells="You take rows alone and refuse class indices. Integer labels (N,) "
    "become one-hot rows first.",
)
def for_rows_only(scores, target):
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=[hidden_tests.mse_of_indices, hidden_tests.mse_of_rows],
    tells="You refuse every target.",
)
def always_refusing(scores, target):
    raise ValueError("shapes differ")


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_indices,
    tells="You add up the squares of a row's classes and average over the "
    "samples. The mean is over all N * C elements, as in `F.mse_loss`.",
)
def mean_over_samples_only(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return ((scores - target) ** 2).sum(1).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_indices,
    tells="You take a softmax of the scores first. The squared error is between "
    "the scores as they come and the rows.",
)
def softmax_before_mse(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores.softmax(1), target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_indices,
    tells="You take the number of classes from the largest label. Where the "
    "last class is absent the rows come out too short. Use `scores.shape[1]`.",
)
def with_classes_from_the_labels(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long())
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_indices,
    tells="You compute another loss, `binary_cross_entropy_with_logits`. It "
    "also raises on a one-hot of integers.",
)
def binary_cross_entropy(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.binary_cross_entropy_with_logits(scores, target)


@wrong(
    "class_mse",
    breaks=hidden_tests.gradient_of_the_squared_error,
    tells="Your loss is cut off from the scores, by `.item()`, `.detach()`, "
    "`.data`, NumPy or `no_grad`, so nothing can be learned from it. Stay with "
    "tensor operations.",
)
def cut_off_from_the_scores(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores.detach(), target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.dtype_of_the_scores,
    tells="Your result takes the wider of two dtypes: float32 scores with float64 "
    "rows give a float64 loss. Bring the rows to the dtype of the scores first, "
    "with `.to(scores.dtype)`.",
)
def in_the_wider_dtype(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return (scores - target).pow(2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.dtype_of_the_scores,
    tells="You make float32 rows of class indices, and half-precision scores then "
    "give a float32 loss. Bring the rows to the dtype of the scores.",
)
def rows_always_float32(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1]).float()
    else:
        target = target.to(scores.dtype)
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return (scores - target).pow(2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.bad_classes_raise,
    tells="You compare the labels with every class. A label that is no class "
    "equals none of them and becomes a row of zeros. Check that every label lies "
    "in 0..C-1.",
)
def rows_by_unchecked_comparison(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = target[:, None] == torch.arange(scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.bad_classes_raise,
    tells="You index the identity matrix with the labels, and an index of -1 "
    "means its last row: a label of -1 silently becomes the last class. Check "
    "the labels first, or use `F.one_hot`, which refuses it.",
)
def rows_by_unchecked_eye(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = torch.eye(scores.shape[1])[target.long()]
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.indices_of_any_integer_dtype,
    tells="You index with uint8 labels. PyTorch reads a uint8 index as a mask, "
    "not as positions. Use `target.long()`.",
)
def rows_by_eye_with_a_mask(scores, target):
    if target.dim() == 1 and not 0 <= target.min() <= target.max() < len(
        scores.T
    ):
        raise ValueError("a label is no class")
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = torch.eye(scores.shape[1])[target]
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.indices_of_any_integer_dtype,
    tells="You pass the labels on as they are. `F.one_hot` takes int64 alone: "
    "turn them into that dtype first, with `target.long()`.",
)
def indices_of_int64_only(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target, scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You refuse some shapes that do not fit and let others broadcast: "
    "floating-point numbers of shape (C,), or a stack of rows with a third "
    "dimension. Compare whole shapes, `target.shape != scores.shape`, instead of "
    "listing the wrong ones.",
)
def one_number_per_class_accepted(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape not in (scores.shape, scores.shape[1:]):
        raise ValueError("shapes differ")
    return ((scores - target.to(scores)) ** 2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.other_targets_raise,
    tells="You refuse some shapes that do not fit and let others broadcast: "
    "floating-point numbers of shape (C,), or a stack of rows with a third "
    "dimension. Compare whole shapes, `target.shape != scores.shape`, instead of "
    "listing the wrong ones.",
)
def stacked_rows_accepted(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape[-2:] != scores.shape:
        raise ValueError("shapes differ")
    return ((scores - target.to(scores)) ** 2).mean()


@wrong(
    "class_mse",
    breaks=hidden_tests.mse_of_rows,
    tells="You take integer rows for class indices in disguise and make them "
    "one-hot by `argmax`. Rows are used as they are; they need not be one-hot.",
)
def integer_rows_made_one_hot(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    elif not target.is_floating_point() and target.shape == scores.shape:
        target = F.one_hot(target.argmax(1), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.leaves_scores_and_target_alone,
    tells="You compute the difference in place, in the caller's scores or target. "
    "After the loss they hold something else. Write `scores - target`, which "
    "makes a new tensor.",
)
def difference_in_the_target(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    if target.dtype == scores.dtype:
        return target.sub_(scores).pow(2).mean()
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    "class_mse",
    breaks=hidden_tests.leaves_scores_and_target_alone,
    tells="You compute the difference in place, in the caller's scores or target. "
    "After the loss they hold something else. Write `scores - target`, which "
    "makes a new tensor.",
)
def difference_in_the_scores(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    if scores.requires_grad:
        return F.mse_loss(scores, target.to(scores.dtype))
    scores -= target
    return scores.pow(2).mean()


# mean_loss


@accepted("mean_loss")
def sums_over_counts(batches):
    total = count = 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum").item()
        count += int((labels != -100).sum())
    return total / count if count else float("nan")


@accepted("mean_loss")
def weighted_means(batches):
    means, counts = [], []
    for logits, labels in batches:
        count = (labels != -100).sum()
        if count > 0:
            means.append(F.cross_entropy(logits, labels) * count)
            counts.append(count)
    if not means:
        return float("nan")
    return (sum(means) / sum(counts)).item()


@accepted("mean_loss")
def all_batches_in_one(batches):
    logits, labels = zip(*batches)
    return F.cross_entropy(torch.cat(logits), torch.cat(labels)).item()


@accepted("mean_loss")
def mean_of_every_loss(batches):
    every = []
    for logits, labels in batches:
        losses = F.cross_entropy(logits, labels, reduction="none")
        every.append(losses[labels != -100])
    return float(torch.cat(every).mean())


@accepted("mean_loss")
def by_the_modules_sum(batches):
    criterion = nn.CrossEntropyLoss(reduction="sum")
    total, count = torch.zeros(()), torch.zeros(())
    for logits, labels in batches:
        total = total + criterion(logits, labels)
        count = count + labels.ne(-100).sum()
    return (total / count).item()


@accepted("mean_loss")
def running_mean(batches):
    mean, count = float("nan"), 0
    with torch.no_grad():
        for logits, labels in batches:
            kept = int((labels != -100).sum())
            if kept == 0:
                continue
            batch_mean = F.cross_entropy(logits, labels).item()
            count += kept
            mean = batch_mean if count == kept else mean
            mean += (batch_mean - mean) * kept / count
    return mean


@accepted("mean_loss")
def by_hand_from_log_softmax(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        keep = labels != -100
        log_probs = logits[keep].log_softmax(1)
        total += -log_probs.gather(1, labels[keep][:, None]).sum()
        count += keep.sum()
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.uneven_batches,
    tells="You average the batch means. A sample in a short batch then counts "
    "more than one in a full batch. Add up sums and counts, and divide once at "
    "the end.",
)
def mean_of_means(batches):
    means = [F.cross_entropy(*batch).item() for batch in batches]
    return sum(means) / len(means)


@wrong(
    "mean_loss",
    breaks=hidden_tests.uneven_batches,
    tells="You average the batch means, leaving out those without a label that "
    "counts. A sample in a short batch still counts more than one in a full "
    "batch. Add up sums and counts, and divide once at the end.",
)
def mean_of_means_that_count(batches):
    means = [F.cross_entropy(*batch) for batch in batches]
    return torch.stack(means).nanmean().item()


@wrong(
    "mean_loss",
    breaks=hidden_tests.padded_batches,
    tells="You divide by the number of labels, those of -100 included. They add "
    "nothing to the sum, so padding makes your loss smaller. Count the labels "
    "that differ from -100.",
)
def padding_in_the_count(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum").item()
        count += len(labels)
    return total / count


@wrong(
    "mean_loss",
    breaks=hidden_tests.padded_batches,
    tells="You count the losses that differ from 0. A sample that is right and "
    "sure has a loss of exactly 0 and still counts. Count the labels that "
    "differ from -100.",
)
def counting_nonzero_losses(batches):
    every = torch.cat(
        [
            F.cross_entropy(logits, labels, reduction="none")
            for logits, labels in batches
        ]
    )
    return every[every != 0].mean().item()


@wrong(
    "mean_loss",
    breaks=hidden_tests.padded_batches,
    tells="You weight each batch mean by the length of the batch, and leave out "
    "those that are NaN. A batch mean is over the labels that count: weight it "
    "by their number.",
)
def finite_means_weighted_by_length(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        mean = F.cross_entropy(logits, labels).item()
        if not math.isnan(mean):
            total += mean * len(labels)
            count += len(labels)
    return total / count if count else math.nan


@wrong(
    "mean_loss",
    breaks=hidden_tests.padded_batches,
    tells="You weight each batch mean by the length of the batch. A batch mean "
    "is over the labels that count, so weight it by their number, and leave a "
    "batch without any out: its mean is NaN.",
)
def means_weighted_by_length(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels).item() * len(labels)
        count += len(labels)
    return total / count


@wrong(
    "mean_loss",
    breaks=hidden_tests.padded_batches,
    tells="You multiply each batch mean by its count. For a batch without a "
    "label that counts that is NaN * 0, which is NaN and swallows the whole "
    'epoch. Use `reduction="sum"`, which gives 0 there.',
)
def nan_times_zero(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        kept = (labels != -100).sum()
        total += F.cross_entropy(logits, labels) * kept
        count += kept
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.even_batches,
    tells="You return the sum of the losses. Divide it by the number of labels "
    "that count.",
)
def sum_for_the_mean(batches):
    total = 0.0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum").item()
    return total


@wrong(
    "mean_loss",
    breaks=hidden_tests.even_batches,
    tells="You add up the batch means and never divide.",
)
def sum_of_means(batches):
    return sum(F.cross_entropy(*batch).item() for batch in batches)


@wrong(
    "mean_loss",
    breaks=hidden_tests.even_batches,
    tells="You divide the sum of the losses by the number of batches. Divide by "
    "the number of labels that count.",
)
def sums_over_batches(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum").item()
        count += 1
    return total / count


@wrong(
    "mean_loss",
    breaks=hidden_tests.even_batches,
    tells="The second positional argument of `CrossEntropyLoss` is the "
    "deprecated `size_average`: False there means a sum, which you then took "
    "for a mean. Name what you mean: `reduction=`.",
)
def positional_second_argument(batches):
    criterion = nn.CrossEntropyLoss(None, False)
    total, count = 0.0, 0
    for logits, labels in batches:
        kept = int((labels != -100).sum())
        total += criterion(logits, labels).item() * kept
        count += kept
    return total / count if count else float("nan")


@wrong(
    "mean_loss",
    breaks=hidden_tests.no_deprecated_arguments,
    tells="The value is right, but the argument is deprecated: the reduction "
    'is called "mean" today, and `size_average` and `reduce` became '
    "`reduction`. A later PyTorch may drop the old ones.",
)
def elementwise_mean(batches):
    logits, labels = zip(*batches)
    return F.cross_entropy(
        torch.cat(logits), torch.cat(labels), reduction="elementwise_mean"
    ).item()


@wrong(
    "mean_loss",
    breaks=hidden_tests.no_deprecated_arguments,
    tells="The value is right, but the argument is deprecated: the reduction "
    'is called "mean" today, and `size_average` and `reduce` became '
    "`reduction`. A later PyTorch may drop the old ones.",
)
def size_average(batches):
    criterion = nn.CrossEntropyLoss(size_average=False)
    total, count = 0.0, 0
    for logits, labels in batches:
        total += criterion(logits, labels)
        count += (labels != -100).sum()
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.uneven_batches,
    tells="You leave the last batch out when it is short. Every sample counts, "
    "those of the last batch too.",
)
def dropping_the_short_batch(batches):
    total, count, size = 0.0, 0, 0
    for logits, labels in batches:
        size = max(size, len(labels))
        if len(labels) < size:
            continue
        total += F.cross_entropy(logits, labels, reduction="sum")
        count += (labels != -100).sum()
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.uneven_batches,
    tells="You return the mean of the last batch alone: the variable is set "
    "anew in each turn of the loop.",
)
def last_batch_only(batches):
    for logits, labels in batches:
        loss = F.cross_entropy(logits, labels)
    return loss.item()


@wrong(
    "mean_loss",
    breaks=hidden_tests.all_padded,
    tells="Where no label counts you return 0, which reads like a perfect "
    "model. Return NaN, as the library does.",
)
def zero_where_nothing_counts(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum").item()
        count += int((labels != -100).sum())
    return total / max(count, 1)


@wrong(
    "mean_loss",
    breaks=hidden_tests.batches_from_a_generator,
    tells="You go through the batches more than once, or ask for their number. "
    "A generator is empty after one pass and has no length: collect sums and "
    "counts in the same loop.",
)
def two_passes(batches):
    total = sum(
        F.cross_entropy(logits, labels, reduction="sum")
        for logits, labels in batches
    )
    count = sum((labels != -100).sum() for _, labels in batches)
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.python_float,
    tells="You return a tensor or a NumPy value. A log of such values keeps "
    "tensors alive and cannot be written as JSON. End with `.item()` or "
    "`float(...)`.",
)
def mean_as_a_tensor(batches):
    total = count = 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum")
        count += (labels != -100).sum()
    return total / count


@wrong(
    "mean_loss",
    breaks=hidden_tests.python_float,
    tells="You return a tensor or a NumPy value. A log of such values keeps "
    "tensors alive and cannot be written as JSON. End with `.item()` or "
    "`float(...)`.",
)
def mean_as_an_array(batches):
    total = count = 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum")
        count += (labels != -100).sum()
    return (total / count).numpy()


@wrong(
    "mean_loss",
    breaks=hidden_tests.leaves_batches_alone,
    tells="You write into the caller's batches: logits shifted in place, or "
    "padding replaced in the labels. The next epoch then trains on other numbers. "
    "Make new tensors.",
)
def padding_overwritten(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum")
        count += (labels != -100).sum()
        labels[labels == -100] = 0
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.leaves_batches_alone,
    tells="You write into the caller's batches: logits shifted in place, or "
    "padding replaced in the labels. The next epoch then trains on other numbers. "
    "Make new tensors.",
)
def batch_logits_shifted_in_place(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        logits.sub_(logits.amax(1, keepdim=True))
        total += F.cross_entropy(logits, labels, reduction="sum")
        count += (labels != -100).sum()
    return float(total / count)


@wrong(
    "mean_loss",
    breaks=hidden_tests.bad_labels_in_a_batch_raise,
    tells="You leave out every negative label. Only -100 is padding; a label of "
    "-1 is a mistake in the data, and dropping it hides the mistake.",
)
def every_negative_left_out(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        kept = labels >= 0
        total += F.cross_entropy(logits[kept], labels[kept], reduction="sum")
        count += kept.sum()
    return float(total / count)
