"""Answers to `class_mse` of chapter 03."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_explicit_check(scores, target):
    if target.shape == scores.shape:
        rows = target
    elif target.shape == scores.shape[:1] and not target.is_floating_point():
        rows = F.one_hot(target.long(), scores.size(1))
    else:
        raise ValueError("target must hold class indices or rows of scores")
    return F.mse_loss(scores, rows.to(scores.dtype))


@accepted()
def by_reshape_as(scores, target):
    n, num_classes = scores.shape
    if target.shape == (n,) and not target.is_floating_point():
        flat = F.one_hot(target.long(), num_classes).flatten()
        target = flat.reshape_as(scores)
    if target.shape != scores.shape:
        raise ValueError(f"target has shape {tuple(target.shape)}")
    return (scores - target.to(scores.dtype)).pow(2).mean()


@accepted()
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


@accepted()
def by_the_square_of_the_sum(scores, target):
    if target.shape == scores.shape:
        return ((scores - target.type_as(scores)) ** 2).mean()
    if target.is_floating_point() or target.shape != (scores.shape[0],):
        raise ValueError("no labels and no rows")
    picked = scores.gather(1, target.long().unsqueeze(1)).squeeze(1)
    total = (scores**2).sum() - 2 * picked.sum() + len(target)
    return total / scores.numel()


@accepted()
def by_a_loop_over_classes(scores, target):
    if target.shape != scores.shape:
        if target.is_floating_point() or target.dim() != 1:
            raise ValueError("target")
        if target.size(0) != scores.size(0):
            raise ValueError("target")
        labels = target.long()
        columns = [labels == c for c in range(scores.size(1))]
        target = torch.stack(columns, dim=1)
        if not target.any(dim=1).all():
            raise IndexError("a label is no class")
    return nn.MSELoss()(scores, target.type_as(scores))


@accepted()
def mended_rows_by_eye_with_a_mask(scores, target):
    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    breaks=hidden_tests.as_many_samples_as_classes,
    tells="You hand the target to the loss as it comes. Where the number of "
    "samples equals the number of classes, (N,) broadcasts against (N, N), and "
    "the labels' numbers are taken for scores. Make one-hot rows of class "
    "indices, and compare shapes before you subtract.",
)
def broadcast_by_the_library(scores, target):
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    breaks=hidden_tests.as_many_samples_as_classes,
    tells="You subtract the target as it comes. Where the number of "
    "samples equals the number of classes, (N,) broadcasts against (N, N), and "
    "the labels' numbers are taken for scores. Make one-hot rows of class "
    "indices, and compare shapes before you subtract.",
)
def broadcast_by_hand(scores, target):
    return ((scores - target) ** 2).mean()


@wrong(
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
    breaks=[hidden_tests.mse_of_indices, hidden_tests.mse_of_rows],
    tells="You refuse every target.",
)
def always_refusing(scores, target):
    raise ValueError("shapes differ")


@wrong(
    breaks=hidden_tests.gradient_of_the_squared_error,
    tells="Your `backward` returns the gradient of the error whatever arrives from behind it. "
    "An error that is multiplied by 3, or added to another loss, is no longer learned from in "
    "the right measure. Multiply by what arrives, or let autograd do it all.",
)
def gradient_whatever_comes_back(scores, target):
    class SquaredError(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scores, rows):
            ctx.save_for_backward(2 * (scores - rows) / scores.numel())
            return (scores - rows).square().mean()

        @staticmethod
        def backward(ctx, arriving):
            return *ctx.saved_tensors, None

    if not target.is_floating_point() and target.shape == scores.shape[:1]:
        target = F.one_hot(target.long(), scores.shape[1])
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return SquaredError.apply(scores, target.to(scores.dtype))
