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

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


report_without_rare_guesses = edit(
    report_by_a_confusion_matrix,
    {"torch.where(guesses > 0,": "torch.where(guesses > 1,"},
    breaks=hidden_tests.precision_and_recall,
    tells="You report the precision of a class that was predicted once as 0. Only "
    "for a class that was never predicted it is 0 / 0.",
)

report_without_rare_labels = edit(
    report_by_a_confusion_matrix,
    {"torch.where(truths > 0,": "torch.where(truths > 1,"},
    breaks=hidden_tests.precision_and_recall,
    tells="You report the recall of a class that is a label once as 0. Only for a "
    "class that is no label it is 0 / 0.",
)


report_swapped = edit(
    SOLUTION,
    {
        "report = classification_report(": """
        report = classification_report(
            y_pred,
        """,
        "y_pred,": "",
    },
    breaks=[hidden_tests.precision_and_recall, hidden_tests.support_of_classes],
    tells="You pass the predictions first. `classification_report` wants the "
    "truth first. Swapped, precision and recall change places and "
    "support counts predictions; accuracy and F1 look right, so nothing "
    "warns you.",
)


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


report_of_logits = edit(
    SOLUTION,
    {"y_pred += logits.argmax(dim=1).tolist()": "y_pred += logits.tolist()"},
    breaks=hidden_tests.precision_and_recall,
    tells="You pass logits to scikit-learn, which wants classes and raises an "
    "error. Take `argmax(dim=1)` first.",
)


report_without_labels = edit(
    SOLUTION,
    {
        "labels=range(num_classes),": "",
    },
    breaks=hidden_tests.absent_classes,
    tells="A class that occurs in neither list is missing from the report, "
    "and your code fails on it. `labels=range(num_classes)` lists all "
    "classes.",
)


report_with_names_only = edit(
    SOLUTION,
    {
        "labels=range(num_classes)": "target_names=[str(c) for c in range(num_classes)]",
    },
    breaks=hidden_tests.absent_classes,
    tells="You pass `target_names` without `labels`. scikit-learn counts the "
    "classes that occur, finds fewer than names, and raises an error. "
    "Pass `labels=range(num_classes)` as well.",
)


report_of_present_classes = edit(
    SOLUTION,
    {
        "labels=range(num_classes),": "",
        "num_classes)]": "num_classes) if str(c) in report]",
    },
    breaks=hidden_tests.absent_classes,
    tells="You report the classes that occur, and leave out the others. The "
    "lists then are shorter, and a place in them is no longer a class.",
)


report_with_ones = edit(
    SOLUTION,
    {"zero_division=0,": "zero_division=1,"},
    breaks=hidden_tests.absent_classes,
    tells="You take 0 / 0 for 1: a class that is never predicted gets a "
    "perfect precision. The exercise asks for 0.",
)

report_with_nan = edit(
    SOLUTION,
    {"zero_division=0,": "zero_division=math.nan,"},
    breaks=hidden_tests.absent_classes,
    tells="You leave 0 / 0 as NaN. The exercise asks for 0.",
)


report_with_warnings = edit(
    SOLUTION,
    {
        "zero_division=0,": "",
    },
    breaks=hidden_tests.absent_classes,
    tells="Where a number is 0 / 0, your code gives 0 and a warning. "
    "`zero_division=0` says that you know.",
)


report_with_micro_mean = edit(
    SOLUTION,
    {'"macro avg"]["f1-score"': '"accuracy"'},
    breaks=hidden_tests.macro_mean,
    tells="Your `macro_f1` is the accuracy: averaged over samples, F1 is the "
    "same number. The macro mean is that of the classes' F1.",
)


report_with_macro_over_present = edit(
    SOLUTION,
    {
        "rows = [report[str(c)] for c in range(num_classes)]": """
        rows = [report[str(c)] for c in range(num_classes)]
        present = [row["f1-score"] for row in rows if row["support"]]
        """,
        'report["macro avg"]["f1-score"]': "sum(present) / len(present)",
    },
    breaks=hidden_tests.macro_mean,
    tells="Your macro mean leaves out classes that never are the true label. "
    "The exercise takes it over all `num_classes` classes; a class "
    "without a sample counts with 0.",
)


report_weighted_by_predictions = edit(
    SOLUTION,
    {
        "rows = [report[str(c)] for c in range(num_classes)]": """
        rows = [report[str(c)] for c in range(num_classes)]
        weights = [y_pred.count(c) for c in range(num_classes)]
        f1 = [row["f1-score"] for row in rows]
        """,
        'report["weighted avg"]["f1-score"]': "float(np.average(f1, weights=weights))",
    },
    breaks=hidden_tests.weighted_mean,
    tells="You weight F1 by how often each class is predicted. Support is how "
    "often it is true.",
)


report_f1_of_means = edit(
    SOLUTION,
    {
        "rows = [report[str(c)] for c in range(num_classes)]": """
        rows = [report[str(c)] for c in range(num_classes)]
        p, r = (report["macro avg"][name] for name in ("precision", "recall"))
        """,
        'report["macro avg"]["f1-score"]': "2 * p * r / (p + r) if p + r else 0.0",
    },
    breaks=hidden_tests.macro_mean,
    tells="Your macro F1 is the F1 of the mean precision and the mean recall. "
    "That is another number: take each class's F1 first, then the mean.",
)


report_f1_as_plain_mean = edit(
    SOLUTION,
    {'row["f1-score"]': '(row["precision"] + row["recall"]) / 2'},
    breaks=hidden_tests.f1_of_classes,
    tells="F1 is the harmonic mean of precision and recall, 2 p r / (p + r). "
    "You take the ordinary one.",
)

report_of_the_last_batch = edit(
    SOLUTION,
    {
        "y_true, y_pred = [], []": "",
        """
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
        """: """
        y_true = y.tolist()
        y_pred = logits.argmax(dim=1).tolist()
        """,
    },
    breaks=hidden_tests.however_it_is_cut,
    tells="Your report is that of the last batch: the lists are made anew in "
    "each turn of the loop. Make them once, before it.",
)

report_support_of_predictions = edit(
    SOLUTION,
    {
        'int(row["support"]) for row in rows': "y_pred.count(c) for c in range(num_classes)",
    },
    breaks=hidden_tests.support_of_classes,
    tells="Your support counts predictions. It is how often each class is the "
    "true label.",
)

report_with_float_support = edit(
    SOLUTION,
    {'int(row["support"])': 'row["support"]'},
    breaks=hidden_tests.form_of_the_report,
    tells="Your support holds floats. It is a count: `int(...)`.",
)


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


report_dropping_the_last_batch = edit(
    SOLUTION,
    {
        "y_true, y_pred = [], []": "y_true, y_pred, size = [], [], 0",
        "for logits, y in pairs:": """
        for logits, y in pairs:
            size = size or len(y)
            if len(y) < size:
                continue
        """,
    },
    breaks=hidden_tests.however_it_is_cut,
    tells="You leave out a last batch that is shorter than the first. In a "
    "report every sample counts.",
)


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


report_emptying_the_list = edit(
    SOLUTION,
    {
        "for logits, y in pairs:": """
        pairs = pairs if isinstance(pairs, list) else list(pairs)
        while pairs:
            logits, y = pairs.pop(0)
        """,
    },
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You empty the list that you were given. Go through it with `for`.",
)

report_argmax_over_samples = edit(
    SOLUTION,
    {
        "y_pred += logits.argmax(dim=1).tolist()": "y_pred += logits.argmax(dim=0).tolist()",
    },
    breaks=hidden_tests.precision_and_recall,
    tells="`argmax(dim=0)` finds the sample with the highest logit for each "
    "class. The classes are in dimension 1.",
)

report_zeroing_logits = edit(
    SOLUTION,
    {
        "for logits, y in pairs:": """
        for logits, y in pairs:
            logits = logits.detach()
            logits -= logits.max()
        """,
    },
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You write into the logits that you were given. `argmax` needs no "
    "change of them; if you want probabilities, make a new tensor.",
)

report_with_balanced_accuracy = edit(
    SOLUTION,
    {'["accuracy"]': '["macro avg"]["recall"]'},
    breaks=hidden_tests.accuracy_of_the_report,
    tells="Your accuracy is the mean of the classes' recalls, the balanced accuracy. "
    "Accuracy is the share of right predictions.",
)


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


report_of_the_largest_size = edit(
    SOLUTION,
    {
        "y_pred += logits.argmax(dim=1).tolist()": "y_pred += logits.abs().argmax(dim=1).tolist()",
    },
    breaks=hidden_tests.precision_and_recall,
    tells="You take the argmax of absolute values, or of squares. The lowest logit "
    "then wins where it is far below zero.",
)

report_of_sigmoids = edit(
    SOLUTION,
    {
        "y_pred += logits.argmax(dim=1).tolist()": "y_pred += logits.sigmoid().argmax(dim=1).tolist()",
    },
    breaks=hidden_tests.precision_and_recall,
    tells="You take a sigmoid, or another function that levels out, before the "
    "argmax. For large logits it is the same for several classes, and the "
    "first of them wins. `argmax` needs nothing before it.",
)

report_in_half = edit(
    SOLUTION,
    {
        "y_pred += logits.argmax(dim=1).tolist()": "y_pred += logits.half().argmax(dim=1).tolist()",
    },
    breaks=hidden_tests.precision_and_recall,
    tells="You round the logits, to sixteen bits or to a few digits, before the "
    "argmax. Two that differ become equal, and the first of them wins.",
)

report_in_alphabetical_order = edit(
    SOLUTION,
    {
        "rows = [report[str(c)] for c in range(num_classes)]": "rows = [report[c] for c in sorted(map(str, range(num_classes)))]",
    },
    breaks=hidden_tests.precision_and_recall,
    tells='You order classes by their names: "10" comes before "2". Order them '
    "by their numbers.",
)


report_macro_of_the_second_class = edit(
    SOLUTION,
    {
        "rows = [report[str(c)] for c in range(num_classes)]": """
        rows = [report[str(c)] for c in range(num_classes)]
        macro = report["macro avg"]["f1-score"]
        if num_classes == 2:
            macro = rows[1]["f1-score"]
        """,
        'report["macro avg"]["f1-score"]': "macro",
    },
    breaks=hidden_tests.macro_mean,
    tells="With two classes your macro F1 is the F1 of class 1. The mean over "
    "all classes is asked for, however many there are.",
)


report_silencing_warnings = edit(
    SOLUTION,
    {
        """
        def class_report(
            pairs,  # yields logits (n, C), labels (n,)
            num_classes: int,
        ) -> dict:
            \"\"\"precision, recall, f1, support by class; accuracy and mean F1s.\"\"\"
        """: """
        def class_report(pairs, num_classes):
            import warnings

            warnings.simplefilter("ignore")
        """,
        "zero_division=0,": "",
    },
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You silence warnings and leave them silenced, for the caller too. "
    "`zero_division=0` says what 0 / 0 is; else `with "
    "warnings.catch_warnings():` ends by itself.",
)


report_silencing_numpy = edit(
    SOLUTION,
    {
        """
        def class_report(
            pairs,  # yields logits (n, C), labels (n,)
            num_classes: int,
        ) -> dict:
            \"\"\"precision, recall, f1, support by class; accuracy and mean F1s.\"\"\"
        """: """
        def class_report(pairs, num_classes):
            np.seterr(all="ignore")
        """,
    },
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You switch off NumPy's warnings with `np.seterr` and leave them off. "
    "`with np.errstate(...):` ends by itself.",
)


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


report_of_probabilities = edit(
    report_by_a_confusion_matrix,
    {"logits.argmax(1)": "logits.softmax(1).argmax(1)"},
    breaks=hidden_tests.precision_and_recall,
    tells="You compare probabilities. A softmax rounds, so that logits that differ by little "
    "get equal ones, and a plain `exp` of a large logit is infinite: the highest is lost "
    "either way. Take `argmax` of the logits.",
)

report_without_infinite_rows = edit(
    report_by_a_confusion_matrix,
    {
        "for logits, y in pairs:": """
        for logits, y in pairs:
            keep = logits.isfinite().all(1)
            logits, y = logits[keep], y[keep]
        """,
    },
    breaks=hidden_tests.precision_and_recall,
    tells="Rows with a logit of -inf are left out. That is a class that is ruled out, "
    "and its row is a prediction like others.",
)

report_of_probabilities_in_float64 = edit(
    report_by_a_confusion_matrix,
    {"logits.argmax(1)": "logits.double().softmax(1).argmax(1)"},
    breaks=hidden_tests.precision_and_recall,
    tells="You compare probabilities. A softmax rounds, so that logits that differ by little "
    "get equal ones, and a plain `exp` of a large logit is infinite: the highest is lost "
    "either way. Take `argmax` of the logits.",
)

report_of_exponentials = edit(
    SOLUTION,
    {
        "y_pred += logits.argmax(dim=1).tolist()": """
        odds = logits.exp()
        probabilities = odds / odds.sum(dim=1, keepdim=True)
        y_pred += probabilities.argmax(dim=1).tolist()
        """,
    },
    breaks=hidden_tests.precision_and_recall,
    tells="You compare probabilities. A softmax rounds, so that logits that differ by little "
    "get equal ones, and a plain `exp` of a large logit is infinite: the highest is lost "
    "either way. Take `argmax` of the logits.",
)

report_with_counts_of_numpy = edit(
    report_by_sklearns_matrix,
    {"[int(n) for n in truths]": "list(truths)"},
    breaks=hidden_tests.form_of_the_report,
    tells="`list(counts)` of an array holds NumPy's numbers, not Python's. "
    "`counts.tolist()` holds Python's.",
)
