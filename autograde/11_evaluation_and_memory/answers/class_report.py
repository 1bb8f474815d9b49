"""Answers to `class_report` of chapter 11."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import (
    classification_report,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def report_by_a_confusion_matrix(pairs, num_classes):
    counts = torch.zeros(num_classes, num_classes, dtype=torch.float64)
    for logits, y in pairs:
        for truth, guess in zip(y.tolist(), logits.argmax(1).tolist()):
            counts[truth, guess] += 1
    hits, truths, guesses = counts.diagonal(), counts.sum(1), counts.sum(0)
    precision = torch.where(guesses > 0, hits / guesses.clamp(min=1), 0.0)
    recall = torch.where(truths > 0, hits / truths.clamp(min=1), 0.0)
    f1 = 2 * hits / (truths + guesses).clamp(min=1)
    return {
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "f1": f1.tolist(),
        "support": truths.long().tolist(),
        "accuracy": (hits.sum() / counts.sum()).item(),
        "macro_f1": f1.mean().item(),
        "weighted_f1": ((f1 * truths).sum() / truths.sum()).item(),
    }


@accepted()
def report_by_scores_and_support(pairs, num_classes):
    truths, guesses = [], []
    for logits, y in pairs:
        truths.append(y.numpy())
        guesses.append(logits.detach().numpy().argmax(1))
    truths, guesses = np.concatenate(truths), np.concatenate(guesses)
    options = dict(labels=list(range(num_classes)), zero_division=0.0)
    precision, recall, f1, support = precision_recall_fscore_support(
        truths, guesses, **options
    )
    weighted = f1_score(truths, guesses, average="weighted", **options)
    return {
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "f1": f1.tolist(),
        "support": support.tolist(),
        "accuracy": float((truths == guesses).mean()),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float(weighted),
    }


@accepted()
def report_by_sklearns_matrix(pairs, num_classes):
    table = np.zeros((num_classes, num_classes), dtype=np.int64)
    for logits, y in pairs:
        with torch.no_grad():
            guess = logits.max(dim=1).indices
        table += confusion_matrix(y, guess, labels=np.arange(num_classes))
    hits = np.diag(table)

    def ratio(above, below):
        return [float(a / b) if b else 0.0 for a, b in zip(above, below)]

    truths, guesses = table.sum(axis=1), table.sum(axis=0)
    f1 = ratio(2 * hits, truths + guesses)
    return {
        "precision": ratio(hits, guesses),
        "recall": ratio(hits, truths),
        "f1": f1,
        "support": [int(n) for n in truths],
        "accuracy": float(hits.sum() / table.sum()),
        "macro_f1": math.fsum(f1) / num_classes,
        "weighted_f1": float(np.average(f1, weights=truths)),
    }


@accepted()
def report_by_counting(pairs, num_classes):
    from collections import Counter

    truths, guesses, hits = Counter(), Counter(), Counter()
    for logits, y in pairs:
        for row, truth in zip(logits.tolist(), y.tolist()):
            guess = row.index(max(row))
            truths[truth] += 1
            guesses[guess] += 1
            hits[guess] += guess == truth
    every = range(num_classes)
    n = sum(truths.values())
    p = [hits[c] / guesses[c] if guesses[c] else 0.0 for c in every]
    r = [hits[c] / truths[c] if truths[c] else 0.0 for c in every]
    f1 = [2 * a * b / (a + b) if a + b else 0.0 for a, b in zip(p, r)]
    return dict(
        precision=p,
        recall=r,
        f1=f1,
        support=[truths[c] for c in every],
        accuracy=sum(hits.values()) / n,
        macro_f1=sum(f1) / num_classes,
        weighted_f1=sum(f * truths[c] for c, f in zip(every, f1)) / n,
    )


@accepted()
def report_with_names(pairs, num_classes):
    pairs = [(logits.argmax(-1), y) for logits, y in pairs]
    y_pred = torch.cat([guess for guess, _ in pairs])
    y_true = torch.cat([y for _, y in pairs])
    names = [f"class {c}" for c in range(num_classes)]
    report = classification_report(
        y_true,
        y_pred,
        labels=list(range(num_classes)),
        target_names=names,
        output_dict=True,
        zero_division=0.0,
    )
    return {
        "precision": [report[name]["precision"] for name in names],
        "recall": [report[name]["recall"] for name in names],
        "f1": [report[name]["f1-score"] for name in names],
        "support": y_true.bincount(minlength=num_classes).tolist(),
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@accepted()
def report_by_one_hot(pairs, num_classes):
    table = np.zeros((num_classes, num_classes))
    for logits, y in pairs:
        guess = F.one_hot(logits.argmax(1), num_classes).double()
        table += (F.one_hot(y, num_classes).double().T @ guess).numpy()
    hits, support = table.diagonal(), table.sum(1)
    tiny = np.finfo(float).tiny
    f1 = 2 * hits / np.maximum(support + table.sum(0), tiny)
    return {
        "f1": f1.tolist(),
        "recall": (hits / np.maximum(support, tiny)).tolist(),
        "precision": (hits / np.maximum(table.sum(0), tiny)).tolist(),
        "support": support.astype(int).tolist(),
        "accuracy": float(hits.sum() / table.sum()),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float(f1 @ support / support.sum()),
    }


@accepted()
def report_catching_warnings(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = classification_report(
            y_true, y_pred, labels=range(num_classes), output_dict=True
        )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    breaks=hidden_tests.however_it_is_cut,
    tells="You compute a report for each batch and average. F1 is no mean "
    "over samples: the average of the batches' numbers depends on how "
    "the data were cut. Collect all predictions first.",
)
def report_averaged_over_batches(pairs, num_classes):
    reports = []
    for logits, y in pairs:
        report = classification_report(
            y.tolist(),
            logits.argmax(dim=1).tolist(),
            labels=range(num_classes),
            output_dict=True,
            zero_division=0,
        )
        reports.append(report)

    def mean(one, other):
        found = [report[one][other] for report in reports]
        return sum(found) / len(found)

    def total(one):
        return int(sum(report[one]["support"] for report in reports))

    every = [str(c) for c in range(num_classes)]
    accuracies = [report["accuracy"] for report in reports]
    return {
        "precision": [mean(c, "precision") for c in every],
        "recall": [mean(c, "recall") for c in every],
        "f1": [mean(c, "f1-score") for c in every],
        "support": [total(c) for c in every],
        "accuracy": sum(accuracies) / len(accuracies),
        "macro_f1": mean("macro avg", "f1-score"),
        "weighted_f1": mean("weighted avg", "f1-score"),
    }


@wrong(
    breaks=hidden_tests.form_of_the_report,
    tells="You return tensors where lists of Python floats are asked for. "
    "`.tolist()` makes them.",
)
def report_with_tensors(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": torch.tensor([row["precision"] for row in rows]).double(),
        "recall": torch.tensor([row["recall"] for row in rows]).double(),
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    breaks=[hidden_tests.precision_and_recall, hidden_tests.f1_of_classes],
    tells="You give the accuracy for everything. It says nothing about single "
    "classes: a model that never finds a rare class may have 99 "
    "percent.",
)
def report_with_accuracy_alone(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    accuracy = float(np.mean(np.equal(y_true, y_pred)))
    return {
        "precision": [accuracy] * num_classes,
        "recall": [accuracy] * num_classes,
        "f1": [accuracy] * num_classes,
        "support": [y_true.count(c) for c in range(num_classes)],
        "accuracy": accuracy,
        "macro_f1": accuracy,
        "weighted_f1": accuracy,
    }


@wrong(
    breaks=hidden_tests.precision_and_recall,
    tells="You round to two digits, as the printed report does. The exercise "
    "asks for all of them.",
)
def report_rounded(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [round(row["precision"], 2) for row in rows],
        "recall": [round(row["recall"], 2) for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    breaks=hidden_tests.form_of_the_report,
    tells="You return scikit-learn's own report. The exercise asks for another "
    "form: one list for each of precision, recall, f1 and support.",
)
def report_as_it_comes(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    return classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )


@wrong(
    breaks=hidden_tests.precision_and_recall,
    tells="You compare with a threshold of one half instead of taking the highest "
    "logit: several classes, or none, are then predicted for a sample.",
)
def report_by_threshold(pairs, num_classes):
    hits = [0] * num_classes
    guesses, truths, n = [0] * num_classes, [0] * num_classes, 0
    for logits, y in pairs:
        for row, truth in zip(logits.tolist(), y.tolist()):
            truths[truth] += 1
            n += 1
            for c, value in enumerate(row):
                guesses[c] += value > 0.5
                hits[c] += value > 0.5 and c == truth
    p = [h / g if g else 0.0 for h, g in zip(hits, guesses)]
    r = [h / t if t else 0.0 for h, t in zip(hits, truths)]
    f1 = [2 * a * b / (a + b) if a + b else 0.0 for a, b in zip(p, r)]
    return {
        "precision": p,
        "recall": r,
        "f1": f1,
        "support": truths,
        "accuracy": sum(hits) / n,
        "macro_f1": sum(f1) / num_classes,
        "weighted_f1": sum(f * t for f, t in zip(f1, truths)) / n,
    }


@wrong(
    breaks=hidden_tests.precision_and_recall,
    tells="Your counts are bytes. Beyond 255 they begin again at 0, without a word. "
    "Count in int64.",
)
def report_counting_in_bytes(pairs, num_classes):
    table = np.zeros((num_classes, num_classes), dtype=np.uint8)
    for logits, y in pairs:
        for truth, guess in zip(y.tolist(), logits.argmax(1).tolist()):
            table[truth, guess] += 1
    table = table.astype(float)
    hits, truths, guesses = np.diag(table), table.sum(1), table.sum(0)
    f1 = 2 * hits / np.maximum(truths + guesses, 1)
    return {
        "precision": (hits / np.maximum(guesses, 1)).tolist(),
        "recall": (hits / np.maximum(truths, 1)).tolist(),
        "f1": f1.tolist(),
        "support": truths.astype(int).tolist(),
        "accuracy": float(hits.sum() / table.sum()),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float(f1 @ truths / truths.sum()),
    }
