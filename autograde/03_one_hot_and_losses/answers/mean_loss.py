"""Answers to `mean_loss` of chapter 03."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def sums_over_counts(batches):
    total = count = 0
    for logits, labels in batches:
        total += F.cross_entropy(logits, labels, reduction="sum").item()
        count += int((labels != -100).sum())
    return total / count if count else float("nan")


@accepted()
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


@accepted()
def all_batches_in_one(batches):
    logits, labels = zip(*batches)
    return F.cross_entropy(torch.cat(logits), torch.cat(labels)).item()


@accepted()
def mean_of_every_loss(batches):
    every = []
    for logits, labels in batches:
        losses = F.cross_entropy(logits, labels, reduction="none")
        every.append(losses[labels != -100])
    return float(torch.cat(every).mean())


@accepted()
def by_the_modules_sum(batches):
    criterion = nn.CrossEntropyLoss(reduction="sum")
    total, count = torch.zeros(()), torch.zeros(())
    for logits, labels in batches:
        total = total + criterion(logits, labels)
        count = count + labels.ne(-100).sum()
    return (total / count).item()


@accepted()
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


@accepted()
def by_hand_from_log_softmax(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        keep = labels != -100
        log_probs = logits[keep].log_softmax(1)
        total += -log_probs.gather(1, labels[keep][:, None]).sum()
        count += keep.sum()
    return float(total / count)


@wrong(
    breaks=hidden_tests.uneven_batches,
    tells="You average the batch means. A sample in a short batch then counts "
    "more than one in a full batch. Add up sums and counts, and divide once at "
    "the end.",
)
def mean_of_means(batches):
    means = [F.cross_entropy(*batch).item() for batch in batches]
    return sum(means) / len(means)


@wrong(
    breaks=hidden_tests.uneven_batches,
    tells="You average the batch means, leaving out those without a label that "
    "counts. A sample in a short batch still counts more than one in a full "
    "batch. Add up sums and counts, and divide once at the end.",
)
def mean_of_means_that_count(batches):
    means = [F.cross_entropy(*batch) for batch in batches]
    return torch.stack(means).nanmean().item()


@wrong(
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
    breaks=hidden_tests.even_batches,
    tells="You add up the batch means and never divide.",
)
def sum_of_means(batches):
    return sum(F.cross_entropy(*batch).item() for batch in batches)


@wrong(
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
    breaks=hidden_tests.uneven_batches,
    tells="You return the mean of the last batch alone: the variable is set "
    "anew in each turn of the loop.",
)
def last_batch_only(batches):
    for logits, labels in batches:
        loss = F.cross_entropy(logits, labels)
    return loss.item()


@wrong(
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


@wrong(
    breaks=hidden_tests.bad_labels_in_a_batch_raise,
    tells="You pass over every label from -100 down. Only -100 itself is not "
    "counted; any other that is no class is a mistake.",
)
def passes_over_all_from_minus_100_down(batches):
    total, count = 0.0, 0
    for logits, labels in batches:
        kept = labels > -100
        loss = F.cross_entropy(logits[kept], labels[kept], reduction="sum")
        total, count = total + loss.item(), count + int(kept.sum())
    return total / count if count else float("nan")
