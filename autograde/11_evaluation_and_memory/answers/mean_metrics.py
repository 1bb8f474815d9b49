"""Answers to `mean_metrics` of chapter 11."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def metrics_of_everything_together(pairs, ignore_index=-100):
    logits, labels = [], []
    for x, y in pairs:
        classes_last = x.detach().double().movedim(1, -1)
        logits.append(classes_last.reshape(-1, x.shape[1]))
        labels.append(y.reshape(-1))
    if not labels:
        return {"loss": math.nan, "accuracy": math.nan, "count": 0}
    logits, labels = torch.cat(logits), torch.cat(labels)
    keep = labels != ignore_index
    logits, labels = logits[keep], labels[keep]
    if len(labels) == 0:
        return {"loss": math.nan, "accuracy": math.nan, "count": 0}
    right = logits.argmax(1) == labels
    return {
        "loss": F.cross_entropy(logits, labels).item(),
        "accuracy": right.double().mean().item(),
        "count": len(labels),
    }


@accepted()
@torch.no_grad()
def metrics_weighting_the_means(pairs, ignore_index=-100):
    loss_sum = right = count = 0
    for x, y in pairs:
        keep = y.ne(ignore_index)
        n = int(keep.sum())
        if n == 0:
            continue
        mean = F.cross_entropy(x.float(), y, ignore_index=ignore_index)
        loss_sum += float(mean) * n
        right += int((x.argmax(1)[keep] == y[keep]).sum())
        count += n
    if count == 0:
        return dict(loss=float("nan"), accuracy=float("nan"), count=0)
    return dict(loss=loss_sum / count, accuracy=right / count, count=count)


@accepted(body=True)
def metrics_by_an_accumulator():
    class Mean:
        def __init__(self):
            self.total, self.weight = 0.0, 0

        def update(self, values):
            self.total += float(values.sum(dtype=torch.float64))
            self.weight += values.numel()

        def compute(self):
            return self.total / self.weight if self.weight else math.nan

    def mean_metrics(pairs, ignore_index=-100):
        loss, accuracy = Mean(), Mean()
        for x, y in pairs:
            keep = y != ignore_index
            with torch.no_grad():
                losses = F.cross_entropy(
                    x.float(), y, ignore_index=ignore_index, reduction="none"
                )
            loss.update(losses[keep])
            accuracy.update((x.argmax(1) == y)[keep].double())
        return {
            "loss": loss.compute(),
            "accuracy": accuracy.compute(),
            "count": loss.weight,
        }


@accepted()
def metrics_with_running_tensors(pairs, ignore_index=-100):
    total = torch.zeros((), dtype=torch.float64)
    right = torch.zeros((), dtype=torch.int64)
    count = torch.zeros((), dtype=torch.int64)
    for x, y in pairs:
        keep = y != ignore_index
        log_probs = x.detach().float().log_softmax(1)
        at = torch.where(keep, y, 0).unsqueeze(1)
        losses = -log_probs.gather(1, at).squeeze(1)
        total += torch.where(keep, losses, 0.0).sum()
        right += ((x.argmax(1) == y) & keep).sum()
        count += keep.sum()
    loss, accuracy = total / count, right / count.double()
    return {
        "loss": loss.item(),
        "accuracy": accuracy.item(),
        "count": count.item(),
    }


@accepted()
def metrics_with_numpy(pairs, ignore_index=-100):
    losses, hits = [], []
    for x, y in pairs:
        x = np.moveaxis(x.detach().double().numpy(), 1, -1)
        x, y = x.reshape(-1, x.shape[-1]), y.numpy().reshape(-1)
        x, y = x[y != ignore_index], y[y != ignore_index]
        top = x.max(1, initial=-np.inf)
        log_sum = top + np.log(np.exp(x - top[:, None]).sum(1))
        losses += (log_sum - x[np.arange(len(y)), y]).tolist()
        hits += (x.argmax(1) == y).tolist() if len(y) else []
    n = len(losses)
    if n == 0:
        return {"loss": math.nan, "accuracy": math.nan, "count": 0}
    return {
        "loss": math.fsum(losses) / n,
        "accuracy": sum(hits) / n,
        "count": n,
    }


@accepted()
def metrics_sample_by_sample(pairs, ignore_index=-100):
    losses, hits = [], []
    for logits, y in pairs:
        rows = logits.detach().transpose(0, 1).flatten(1).T.double()
        for row, label in zip(rows, y.flatten().tolist()):
            if label != ignore_index:
                losses.append(-row.log_softmax(0)[label].item())
                hits.append(row.argmax().item() == label)
    n = len(hits)
    loss = math.fsum(losses) / n if n else math.nan
    return {"loss": loss, "accuracy": sum(hits) / n if n else loss, "count": n}


@accepted()
def metrics_in_float32(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        with torch.no_grad():
            x = x.float()
            keep = y != ignore_index
            labels = y.where(keep, 0).unsqueeze(1)
            picked = x.gather(1, labels).squeeze(1)
            losses = (x.logsumexp(1) - picked).masked_fill(~keep, 0)
        loss_sum += losses.sum().item()
        right += torch.logical_and(x.max(1).indices == y, keep).sum().item()
        count += keep.sum().item()
    means = [n / count if count else math.nan for n in (loss_sum, right)]
    return {"loss": means[0], "accuracy": means[1], "count": count}


@accepted()
def mended_metrics_with_guesses_in_half(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    breaks=[hidden_tests.mean_loss_of_all, hidden_tests.accuracy_of_all],
    tells="You average the means of the batches. A last batch of one sample then "
    "counts as much as a full one. Add up sums, count the labels, and divide "
    "once, at the end.",
)
def metrics_mean_of_means(pairs, ignore_index=-100):
    losses, accuracies, count = [], [], 0
    for x, y in pairs:
        x = x.detach().float()
        keep = y != ignore_index
        if keep.any():
            loss = F.cross_entropy(x, y, ignore_index=ignore_index)
            losses.append(loss.item())
            right = (x.argmax(1) == y)[keep]
            accuracies.append(right.float().mean().item())
            count += int(keep.sum())
    n = len(losses)
    return {
        "loss": sum(losses) / n if n else math.nan,
        "accuracy": sum(accuracies) / n if n else math.nan,
        "count": count,
    }


@wrong(
    breaks=hidden_tests.mean_loss_of_all,
    tells="The accuracy is that of all labels, and the loss is a mean of the "
    "batches' means, in which a short last batch counts too much. Weight each "
    "mean by the number of its labels.",
)
def metrics_loss_mean_of_means(pairs, ignore_index=-100):
    losses, right, count = [], 0, 0
    for x, y in pairs:
        x = x.detach().float()
        keep = y != ignore_index
        if keep.any():
            loss = F.cross_entropy(x, y, ignore_index=ignore_index)
            losses.append(loss.item())
            right += int((x.argmax(1) == y)[keep].sum())
            count += int(keep.sum())
    return {
        "loss": sum(losses) / len(losses) if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    breaks=[hidden_tests.ignored_labels],
    tells="You multiply the mean of a batch by its size. The mean was taken over "
    "the labels that are not ignored: weight it by *their* number, and divide "
    "by theirs.",
)
def metrics_weighted_by_batch_size(pairs, ignore_index=-100):
    loss_sum, right, count, size = 0.0, 0, 0, 0
    for x, y in pairs:
        keep = y != ignore_index
        if keep.any():
            mean = F.cross_entropy(
                x.detach().double(), y, ignore_index=ignore_index
            )
            loss_sum += mean.item() * y.numel()
            size += y.numel()
            right += int((x.argmax(1) == y)[keep].sum())
            count += int(keep.sum())
    return {
        "loss": loss_sum / size if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    breaks=hidden_tests.nothing_counts_in_a_batch,
    tells="A batch in which nothing counts makes the loss NaN: its mean is 0 / 0, "
    "and NaN times 0 is NaN. Use sums, or leave such batches out.",
)
def metrics_nan_from_an_empty_batch(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        keep = y != ignore_index
        n = int(keep.sum())
        mean = F.cross_entropy(
            x.detach().double(), y, ignore_index=ignore_index
        )
        loss_sum += mean.item() * n
        right += int((x.argmax(1) == y)[keep].sum())
        count += n
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    breaks=hidden_tests.floats_and_an_int,
    tells="You return tensors. Whoever collects them collects tensors, and JSON "
    "cannot write them. `.item()` makes numbers of them.",
)
def metrics_as_tensors(pairs, ignore_index=-100):
    loss_sum, right, count = torch.zeros(()).double(), 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        )
        right = right + (x.argmax(1) == y)[keep].sum()
        count += int(keep.sum())
    nan = torch.tensor(math.nan)
    return {
        "loss": loss_sum / count if count else nan,
        "accuracy": (right / count).double() if count else nan,
        "count": count,
    }


@wrong(
    breaks=hidden_tests.metrics_of_a_generator,
    tells="You go through `pairs` twice. A generator is empty the second time. "
    "Compute both sums in one loop.",
)
def metrics_in_two_passes(pairs, ignore_index=-100):
    loss_sum, count = 0.0, 0
    for x, y in pairs:
        loss_sum += F.cross_entropy(
            x.detach().double(), y, ignore_index=ignore_index, reduction="sum"
        ).item()
        count += int((y != ignore_index).sum())
    right = 0
    for x, y in pairs:
        right += int(((x.argmax(1) == y) & (y != ignore_index)).sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    breaks=hidden_tests.labels_at_positions,
    tells="You average over the positions of a sequence first and over sequences "
    "then. With padding, sequences have different numbers of labels: count "
    "labels.",
)
def metrics_sequence_by_sequence(pairs, ignore_index=-100):
    losses, accuracies, count = [], [], 0
    for x, y in pairs:
        x = x.detach().double()
        for row, labels in zip(x, y):
            if labels.dim() == 1:
                row, labels = row.T, labels
            else:
                row, labels = row[None], labels[None]
            keep = labels != ignore_index
            if keep.any():
                row, labels = row[keep], labels[keep]
                losses.append(F.cross_entropy(row, labels).item())
                right = row.argmax(1) == labels
                accuracies.append(right.double().mean().item())
                count += len(labels)
    n = len(losses)
    return {
        "loss": sum(losses) / n if n else math.nan,
        "accuracy": sum(accuracies) / n if n else math.nan,
        "count": count,
    }


@wrong(
    breaks=hidden_tests.mean_loss_of_all,
    tells="You take the mean of exponentials, or another average that moves with "
    "the stream: later batches count more than earlier ones.",
)
def metrics_by_moving_average(pairs, ignore_index=-100):
    loss, right, count = math.nan, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        if keep.any():
            new = F.cross_entropy(x, y, ignore_index=ignore_index).item()
            loss = new if count == 0 else 0.9 * loss + 0.1 * new
            right += int((x.argmax(1) == y)[keep].sum())
            count += int(keep.sum())
    return {
        "loss": loss,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }
