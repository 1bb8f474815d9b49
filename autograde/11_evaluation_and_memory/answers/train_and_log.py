"""Answers to `train_and_log` of chapter 11."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def log_with_detached_tensors(model, optimizer, batches):
    losses, guesses = [], [torch.empty(0).long()]
    total, count = torch.zeros((), dtype=torch.float64), 0
    for x, y in batches:
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        total += loss.detach() * len(y)
        count += len(y)
        guesses.append(scores.detach().max(1).indices)
    return {
        "losses": losses,
        "mean_loss": total / count,
        "predictions": torch.cat(guesses),
    }


@accepted()
def log_as_one_tensor(model, optimizer, batches):
    losses, sizes, guesses = [], [], []
    for x, y in batches:
        optimizer.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        sizes.append(len(y))
        guesses.extend(scores.argmax(-1).tolist())
    losses = torch.tensor(losses, dtype=torch.float64)
    sizes = torch.tensor(sizes, dtype=torch.float64)
    return {
        "losses": losses,
        "mean_loss": (losses * sizes).sum() / sizes.sum(),
        "predictions": torch.tensor(guesses, dtype=torch.int64),
    }


@accepted(body=True)
def log_by_a_step_function():
    def step(model, optimizer, x, y):
        optimizer.zero_grad(set_to_none=False)
        logits = model(x)
        losses = F.cross_entropy(logits, y, reduction="none")
        losses.mean().backward()
        optimizer.step()
        return losses.detach().sum().item(), logits.argmax(1)

    def train_and_log(model, optimizer, batches):
        sums, guesses = [], []
        for x, y in batches:
            loss_sum, guess = step(model, optimizer, x, y)
            sums.append(loss_sum)
            guesses.append(guess)
        if not guesses:
            empty = torch.tensor([], dtype=torch.long)
            nan = float("nan")
            return {"losses": [], "mean_loss": nan, "predictions": empty}
        return {
            "losses": [s / len(g) for s, g in zip(sums, guesses)],
            "mean_loss": sum(sums) / sum(map(len, guesses)),
            "predictions": torch.hstack(guesses),
        }


@accepted()
def log_with_a_closure(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = torch.empty(0, dtype=torch.int64)
    for x, y in batches:
        found = []

        def closure():
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            found.append(logits.argmax(1))
            return loss.detach()

        losses.append(optimizer.step(closure))
        total += losses[-1].item() * len(y)
        count += len(y)
        predictions = torch.cat([predictions, found[0]])
    mean = total / count if count else math.nan
    return dict(losses=losses, mean_loss=mean, predictions=predictions)


@accepted()
def log_with_data(model, optimizer, batches):
    losses, counts, predictions = [], [], []
    batches = iter(batches)
    while True:
        pair = next(batches, None)
        if pair is None:
            break
        optimizer.zero_grad()
        logits = model(pair[0])
        loss = nn.CrossEntropyLoss()(logits, pair[1])
        loss.backward()
        with torch.no_grad():
            predictions.append(torch.max(logits, dim=1)[1].clone())
            losses.append(loss.data.clone())
        optimizer.step()
        counts.append(len(pair[1]))
        del loss, logits, pair
    if not counts:
        return {
            "losses": [],
            "mean_loss": float("nan"),
            "predictions": torch.zeros(0, dtype=torch.int64),
        }
    mean = np.average([float(loss) for loss in losses], weights=counts)
    return {
        "losses": losses,
        "mean_loss": float(mean),
        "predictions": torch.cat(predictions),
    }


@accepted()
def log_by_logsumexp(model, optimizer, batches):
    log = {"losses": [], "mean_loss": math.nan}
    guesses, loss_sum = [], 0.0
    for x, y in batches:
        logits = model(x)
        rows = torch.arange(len(y))
        loss = (logits.logsumexp(1) - logits[rows, y]).mean()
        optimizer.zero_grad()
        params = [p for p in model.parameters() if p.requires_grad]
        for p, g in zip(params, torch.autograd.grad(loss, params)):
            p.grad = g
        optimizer.step()
        log["losses"].append(loss.item())
        loss_sum += loss.item() * len(y)
        guesses += logits.argmax(1).tolist()
        log["mean_loss"] = loss_sum / len(guesses)
    return log | {"predictions": torch.tensor(guesses, dtype=torch.int64)}


@accepted()
def log_clearing_to_zeros(model, optimizer, batches):
    losses, sizes, guesses = [], [], []
    for x, y in batches:
        optimizer.zero_grad(set_to_none=False)
        logits = model(x)
        by_sample = F.cross_entropy(logits, y, reduction="none")
        by_sample.mean().backward()
        optimizer.step()
        losses.append(by_sample.detach().mean())
        sizes.append(len(y))
        guesses.extend(logits.detach().max(dim=1)[1].tolist())
    weighted = [n * loss for n, loss in zip(sizes, losses)]
    return {
        "losses": losses,
        "mean_loss": sum(weighted) / sum(sizes) if sizes else math.nan,
        "predictions": torch.tensor(guesses, dtype=torch.int64),
    }


@accepted()
def mended_log_switching_to_training(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    breaks=[hidden_tests.graphs_do_not_pile_up],
    tells="You go backward once, over the sum of all losses. Every graph waits "
    "until the end, and there is one step instead of one for each batch.",
)
def log_with_one_backward(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    optimizer.zero_grad()
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        total = total + loss * len(y)
        losses.append(loss.item())
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    if count:
        (total / count).backward()
        optimizer.step()
    return {
        "losses": losses,
        "mean_loss": total.item() / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }
