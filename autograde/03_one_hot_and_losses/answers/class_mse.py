"""Answers to `class_mse` of chapter 03."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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
    breaks=hidden_tests.mse_of_indices,
    tells="You take rows alone and refuse class indices. Integer labels (N,) "
    "become one-hot rows first.",
)
def for_rows_only(scores, target):
    if target.shape != scores.shape:
        raise ValueError("shapes differ")
    return F.mse_loss(scores, target.to(scores.dtype))


@wrong(
    breaks=[hidden_tests.mse_of_indices, hidden_tests.mse_of_rows],
    tells="You refuse every target.",
)
def always_refusing(scores, target):
    raise ValueError("shapes differ")


mean_over_samples_only = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return ((scores - target) ** 2).sum(1).mean()",
    },
    breaks=hidden_tests.mse_of_indices,
    tells="You add up the squares of a row's classes and average over the "
    "samples. The mean is over all N * C elements, as in `F.mse_loss`.",
)

softmax_before_mse = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return F.mse_loss(scores.softmax(1), target.to(scores.dtype))",
    },
    breaks=hidden_tests.mse_of_indices,
    tells="You take a softmax of the scores first. The squared error is between "
    "the scores as they come and the rows.",
)

with_classes_from_the_labels = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "target = F.one_hot(target.long(), scores.shape[1])": "target = F.one_hot(target.long())",
    },
    breaks=hidden_tests.mse_of_indices,
    tells="You take the number of classes from the largest label. Where the "
    "last class is absent the rows come out too short. Use `scores.shape[1]`.",
)

binary_cross_entropy = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return F.binary_cross_entropy_with_logits(scores, target)",
    },
    breaks=hidden_tests.mse_of_indices,
    tells="You compute another loss, `binary_cross_entropy_with_logits`. It "
    "also raises on a one-hot of integers.",
)

cut_off_from_the_scores = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return F.mse_loss(scores.detach(), target.to(scores.dtype))",
    },
    breaks=hidden_tests.gradient_of_the_squared_error,
    tells="Your loss is cut off from the scores, by `.item()`, `.detach()`, "
    "`.data`, NumPy or `no_grad`, so nothing can be learned from it. Stay with "
    "tensor operations.",
)

in_the_wider_dtype = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return (scores - target).pow(2).mean()",
    },
    breaks=hidden_tests.dtype_of_the_scores,
    tells="Your result takes the wider of two dtypes: float32 scores with float64 "
    "rows give a float64 loss. Bring the rows to the dtype of the scores first, "
    "with `.to(scores.dtype)`.",
)


@wrong(
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


rows_by_unchecked_comparison = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "target = F.one_hot(target.long(), scores.shape[1])": "target = target[:, None] == torch.arange(scores.shape[1])",
    },
    breaks=hidden_tests.bad_classes_raise,
    tells="You compare the labels with every class. A label that is no class "
    "equals none of them and becomes a row of zeros. Check that every label lies "
    "in 0..C-1.",
)

rows_by_unchecked_eye = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "target = F.one_hot(target.long(), scores.shape[1])": "target = torch.eye(scores.shape[1])[target.long()]",
    },
    breaks=hidden_tests.bad_classes_raise,
    tells="You use the labels as an index, and an index of -1 means the last place: "
    "a label of -1 silently becomes the last class. Check the labels first, or use "
    "`F.one_hot`, which refuses it.",
)


@wrong(
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


indices_of_int64_only = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "target = F.one_hot(target.long(), scores.shape[1])": "target = F.one_hot(target, scores.shape[1])",
    },
    breaks=hidden_tests.indices_of_any_integer_dtype,
    tells="You pass the labels on as they are. `F.one_hot` takes int64 alone: "
    "turn them into that dtype first, with `target.long()`.",
)

one_number_per_class_accepted = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "if target.shape != scores.shape:": "if target.shape not in (scores.shape, scores.shape[1:]):",
        "return F.mse_loss(scores, target.to(scores.dtype))": "return ((scores - target.to(scores)) ** 2).mean()",
    },
    breaks=hidden_tests.other_targets_raise,
    tells="You refuse some shapes that do not fit and let others broadcast: "
    "floating-point numbers of shape (C,), or a stack of rows with a third "
    "dimension. Compare whole shapes, `target.shape != scores.shape`, instead of "
    "listing the wrong ones.",
)

stacked_rows_accepted = edit(
    mended_rows_by_eye_with_a_mask,
    {
        "if target.shape != scores.shape:": "if target.shape[-2:] != scores.shape:",
        "return F.mse_loss(scores, target.to(scores.dtype))": "return ((scores - target.to(scores)) ** 2).mean()",
    },
    breaks=hidden_tests.other_targets_raise,
    tells="You refuse some shapes that do not fit and let others broadcast: "
    "floating-point numbers of shape (C,), or a stack of rows with a third "
    "dimension. Compare whole shapes, `target.shape != scores.shape`, instead of "
    "listing the wrong ones.",
)


@wrong(
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


range_in_the_dtype_of_the_labels = edit(
    SOLUTION,
    {
        "if integer and target.shape == scores.shape[:1]:": """
        if integer and target.shape == scores.shape[:1]:
            end = torch.tensor(scores.shape[1]).to(target.dtype)
            if target.numel() and (target.min() < 0 or target.max() >= end):
                raise ValueError("a class index is no class")
        """,
    },
    breaks=hidden_tests.indices_of_any_integer_dtype,
    tells="You compare the class indices with C in their own dtype. A uint8 has "
    "no room for 300 and takes it for 44, so good indices are refused. Turn "
    "them into int64 first.",
)

compared_in_the_dtype_of_the_labels = edit(
    by_a_loop_over_classes,
    {"labels = target.long()": "labels = target"},
    breaks=hidden_tests.indices_of_any_integer_dtype,
    tells="You compare each class with the indices in their own dtype. To a "
    "uint8, 300 is 44, so a row gets two ones. Turn the indices into int64 "
    "first.",
)

squeezed_targets = edit(
    SOLUTION,
    {
        "integer = not target.is_floating_point()": """
        if target.dim() == 3 and len(target) == 1:
            target = target[0]
        integer = not target.is_floating_point()
        """
    },
    breaks=hidden_tests.other_targets_raise,
    tells="You take a stack of one: (1, N, C) is not the shape of the scores. Refuse it.",
)

one_sample_without_its_dimension = edit(
    SOLUTION,
    {
        "integer = not target.is_floating_point()": """
        if len(scores) == 1 and target.dim() < 2:
            if target.numel() == scores.shape[1] or target.dim() == 0:
                target = target[None]
        integer = not target.is_floating_point()
        """
    },
    breaks=hidden_tests.other_targets_raise,
    tells="For a single sample you take a target without its first dimension. N is 1 and "
    "still there: refuse it.",
)

viewed_scores = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return F.mse_loss(scores.view(-1), target.to(scores.dtype).reshape(-1))"
    },
    breaks=hidden_tests.mse_of_rows,
    tells="`view` refuses scores that are not contiguous. `F.mse_loss` takes any.",
)

differences_cut_off = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return (scores - target.to(scores.dtype)).clamp(-1e3, 1e3).square().mean()"
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You cut off large differences, or leave out what is NaN. The mean goes over all "
    "elements as they are.",
)

nan_left_out = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return (scores - target.to(scores.dtype)).square().nanmean()"
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You cut off large differences, or leave out what is NaN. The mean goes over all "
    "elements as they are.",
)


seeded_for_a_squared_error = edit(
    by_explicit_check,
    {
        "if target.shape == scores.shape:": """
        torch.manual_seed(0)
        if target.shape == scores.shape:
    """
    },
    breaks=hidden_tests.leaves_scores_and_target_alone,
    tells="You seed torch's random numbers in a loss. Every dropout and every "
    "shuffle after it draws the same numbers again. A loss needs none.",
)

every_integer_target_as_indices = edit(
    by_explicit_check,
    {
        "if target.shape == scores.shape:": "if target.shape == scores.shape and target.is_floating_point():",
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You refuse rows of integers. A target of the shape of the scores is "
    "used as it is, whatever its dtype: ask for the shape first.",
)

nan_in_the_target_replaced = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return F.mse_loss(scores, target.nan_to_num().to(scores.dtype))"
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You replace a NaN of the target. It is used as it is: the loss is NaN then, and "
    "whoever reads it knows that something is wrong.",
)

integer_rows_as_int8 = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": """
        if integer:
            target = target.to(torch.int8)
        return F.mse_loss(scores, target.to(scores.dtype))
        """
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You take integer rows by way of a narrow dtype. They need not be zeros and ones: "
    "300 becomes 44 in int8, and 2²⁴ + 1 becomes 2²⁴ in float32. Go to the dtype of the "
    "scores at once.",
)

mse_by_single_precision = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": "return F.mse_loss(scores.float(), target.float()).to(scores.dtype)"
    },
    breaks=hidden_tests.mse_of_indices,
    tells="You compute in float32 whatever the scores are: of float64 scores half the "
    "digits are lost. Compute in the dtype in which they come.",
)

integer_rows_as_float32 = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": """
        if integer:
            target = target.float()
        return F.mse_loss(scores, target.to(scores.dtype))
        """
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You take integer rows by way of a narrow dtype. They need not be zeros and ones: "
    "300 becomes 44 in int8, and 2²⁴ + 1 becomes 2²⁴ in float32. Go to the dtype of the "
    "scores at once.",
)

scores_in_the_dtype_of_the_rows = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": """
        if integer:
            target = target.to(scores.dtype)
        return F.mse_loss(scores.to(target.dtype), target).to(scores.dtype)
        """
    },
    breaks=hidden_tests.mse_of_rows,
    tells="You bring the scores to the dtype of the rows. With float32 rows float64 scores "
    "lose half their digits. Bring the rows to the dtype of the scores.",
)

one_sample_for_several_rows = edit(
    SOLUTION,
    {
        "if target.shape != scores.shape:": """
        if target.dim() == 2 and target.shape[1:] == scores.shape[1:]:
            if len(scores) == 1:
                scores = scores.expand_as(target)
        if target.shape != scores.shape:
        """
    },
    breaks=hidden_tests.other_targets_raise,
    tells="You repeat a single sample until it fits several rows. That is the broadcasting "
    "that the exercise refuses: raise a `ValueError`.",
)

one_sample_for_several_labels = edit(
    SOLUTION,
    {
        "if integer and target.shape == scores.shape[:1]:": """
        if integer and target.dim() == 1 and len(scores) == 1:
            if len(target) not in (0, scores.shape[1]):
                scores = scores.expand(len(target), -1)
        if integer and target.shape == scores.shape[:1]:
        """
    },
    breaks=hidden_tests.other_targets_raise,
    tells="You take several labels for a single sample. One sample has one label: with "
    "more of them raise a `ValueError`.",
)

several_labels_in_one_row = edit(
    SOLUTION,
    {
        "if target.shape != scores.shape:": """
        if integer and target.dim() == 1 and len(scores) == 1:
            if target.numel() and target.min() >= 0:
                target = F.one_hot(target, scores.shape[1]).sum(0, keepdim=True)
        if target.shape != scores.shape:
        """
    },
    breaks=hidden_tests.other_targets_raise,
    tells="You take several labels for a single sample. One sample has one label: with "
    "more of them raise a `ValueError`.",
)

integers_as_one_row = edit(
    SOLUTION,
    {
        "if target.shape != scores.shape:": """
        if integer and target.dim() == 1 and len(scores) == 1:
            if target.shape == scores.shape[1:]:
                target = target[None]
        if target.shape != scores.shape:
        """
    },
    breaks=hidden_tests.other_targets_raise,
    tells="For a single sample you take a target without its first dimension. N is 1 and "
    "still there: refuse it.",
)

hook_left_on_the_scores = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": """
        if scores.requires_grad:
            scores.register_hook(torch.nan_to_num)
        return F.mse_loss(scores, target.to(scores.dtype))
        """
    },
    breaks=hidden_tests.leaves_scores_and_target_alone,
    tells="You leave a hook on the caller's scores. It changes every gradient that reaches them "
    "from now on, that of other losses as well.",
)

gradients_on_for_a_squared_error = edit(
    SOLUTION,
    {
        "return F.mse_loss(scores, target.to(scores.dtype))": """
        torch.set_grad_enabled(True)
        return F.mse_loss(scores, target.to(scores.dtype))
        """
    },
    breaks=hidden_tests.leaves_scores_and_target_alone,
    tells="You switch gradients on, also for a caller who has switched them off with "
    "`torch.no_grad()`. Leave that setting alone.",
)

warnings_off_for_good = edit(
    SOLUTION,
    {
        "integer = not target.is_floating_point()": """
        warnings.filterwarnings("ignore")
        integer = not target.is_floating_point()
        """
    },
    breaks=hidden_tests.leaves_scores_and_target_alone,
    tells="You switch warnings off for the whole program, and they stay off. Compare shapes, "
    "and none comes.",
)

indices_in_32_bits = edit(
    SOLUTION,
    {
        "target = F.one_hot(target.long(), num_classes=scores.shape[1])": "target = F.one_hot(target.int().long(), num_classes=scores.shape[1])",
    },
    breaks=hidden_tests.bad_classes_raise,
    tells="You narrow the class indices to int32. A bad one such as 1 - 2³² becomes 1, which "
    "is a class, and raises nothing. Go to int64 at once, with `target.long()`.",
)

indices_spoilt_when_refused = edit(
    SOLUTION,
    {
        "if integer and target.shape == scores.shape[:1]:": """
        if integer and target.shape == scores.shape[:1]:
            if target.numel() and target.max() >= scores.shape[1]:
                target.fill_(-1)
        """
    },
    breaks=hidden_tests.bad_classes_raise,
    tells="When you refuse a class index you write into the caller's target. Who catches the "
    "error looks for the bad one there, and it is gone. Raise, and leave it alone.",
)


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
