# ruff: noqa: F821 - names of the set-up cells
"""Answers to `summarize` of chapter 15."""

import contextlib
import json
import math

import numpy as np
import torch

from course_grader.bank import accepted


@accepted()
def by_one_pass_and_two_dicts(lines, config):
    entries = []
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if isinstance(found, dict):
            entries.append(found)
    step_entries = [one for one in entries if "step" in one]
    steps = {one["step"]: one for one in step_entries}
    metrics = {
        one["epoch"]: one["metric"] for one in entries if "step" not in one
    }
    epochs = sorted({one["epoch"] for one in steps.values()})
    losses = []
    for epoch in epochs:
        own = [one for one in steps.values() if one["epoch"] == epoch]
        n = sum(one["num_samples"] for one in own)
        losses.append(sum(one["loss"] * one["num_samples"] for one in own) / n)
    made = [one for one in steps.values() if not one["skipped"]]
    numbers = [one["step"] for one in step_entries]
    above = [one for one in made if one["grad_norm"] > config["max_norm"]]
    best_epoch = best_metric = None
    for epoch in sorted(metrics):
        if best_metric is None or metrics[epoch] > best_metric:
            best_epoch, best_metric = epoch, metrics[epoch]
    return {
        "steps": len(steps),
        "repeated": len(step_entries) - len(steps),
        "skipped": sum(one["skipped"] for one in steps.values()),
        "clipped": len(above) / len(made) if made else 0.0,
        "epoch_losses": losses,
        "best_epoch": best_epoch,
        "best_metric": best_metric,
        "peak_lr": max([one["lr"] for one in made] or [0.0]),
        "resumed_after": [
            later - 1
            for earlier, later in zip(numbers, numbers[1:])
            if later <= earlier
        ],
        "seconds": float(sum(one["seconds"] for one in entries)),
    }


@accepted()
def by_arrays(lines, config):
    def parsed():
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)

    whole = [one for one in parsed() if type(one) is dict]
    of_steps = [one for one in whole if one.get("step") is not None]
    last = list({one["step"]: one for one in of_steps}.values())
    numbers = np.array([one["step"] for one in of_steps], dtype=int)
    epochs = np.array([one["epoch"] for one in last], dtype=int)
    weights = np.array([one["num_samples"] for one in last], dtype=float)
    losses = np.array([one["loss"] for one in last], dtype=float)
    made = np.array([not one["skipped"] for one in last], dtype=bool)
    norms = np.array([one["grad_norm"] for one in last], dtype=float)[made]
    rates = np.array([one["lr"] for one in last], dtype=float)[made]
    metrics = {}
    for one in whole:
        if one.get("step") is None:
            metrics[one["epoch"]] = one["metric"]
    best = None
    if metrics:
        top = max(metrics.values())
        best = min(e for e, metric in metrics.items() if metric == top)
    back = np.flatnonzero(np.diff(numbers) <= 0) + 1 if len(numbers) else []
    return {
        "steps": len(last),
        "repeated": len(of_steps) - len(last),
        "skipped": int((~made).sum()),
        "clipped": float((norms > config["max_norm"]).mean())
        if len(norms)
        else 0.0,
        "epoch_losses": [
            float(np.average(losses[epochs == e], weights=weights[epochs == e]))
            for e in np.unique(epochs)
        ],
        "best_epoch": best,
        "best_metric": None if best is None else metrics[best],
        "peak_lr": float(rates.max()) if len(rates) else 0.0,
        "resumed_after": [int(numbers[place]) - 1 for place in back],
        "seconds": math.fsum(one["seconds"] for one in whole),
    }


@accepted()
def from_the_end(lines, config):
    seen_steps, seen_epochs = {}, {}
    resumed, seconds, count, later = [], 0.0, 0, math.inf
    for line in lines[::-1]:
        try:
            entry = json.loads(line)
            seconds += entry["seconds"]
        except (ValueError, TypeError, KeyError):
            continue
        if "metric" in entry and "step" not in entry:
            seen_epochs.setdefault(entry["epoch"], entry["metric"])
            continue
        count += 1
        if later <= entry["step"]:
            resumed.insert(0, later - 1)
        later = entry["step"]
        seen_steps.setdefault(entry["step"], entry)
    steps = [seen_steps[one] for one in sorted(seen_steps)]
    made = [one for one in steps if not one["skipped"]]
    sums, sizes = {}, {}
    for one in steps:
        e, n = one["epoch"], one["num_samples"]
        sums[e] = sums.get(e, 0.0) + one["loss"] * n
        sizes[e] = sizes.get(e, 0) + n
    ranked = sorted(seen_epochs, key=lambda e: (-seen_epochs[e], e))
    result = dict(steps=len(steps), repeated=count - len(steps))
    result["skipped"] = len(steps) - len(made)
    over = sum(1 for one in made if one["grad_norm"] > config["max_norm"])
    result["clipped"] = float(over / max(1, len(made)))
    result["epoch_losses"] = [sums[e] / sizes[e] for e in sorted(sums)]
    result["best_epoch"] = ranked[0] if ranked else None
    result["best_metric"] = seen_epochs[ranked[0]] if ranked else None
    result["peak_lr"] = max([0.0, *(one["lr"] for one in made)])
    result["resumed_after"] = resumed
    result["seconds"] = seconds
    return result


@accepted(body=True)
def by_helpers():
    def whole(line):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            return {}
        return entry if isinstance(entry, dict) else {}

    def mean(entries):
        weights = [one["num_samples"] for one in entries]
        values = [one["loss"] * one["num_samples"] for one in entries]
        return sum(values) / sum(weights)

    def summarize(lines, config):
        entries = list(filter(None, map(whole, lines)))
        steps, evaluations, epochs = {}, {}, {}
        resumed_after, number = [], 0
        for entry in entries:
            if "step" not in entry:
                evaluations[entry["epoch"]] = entry["metric"]
                continue
            if not entry["step"] > number:
                resumed_after += [entry["step"] - 1]
            number = entry["step"]
            steps[number] = entry
        for entry in steps.values():
            epochs.setdefault(entry["epoch"], []).append(entry)
        made = [one for one in steps.values() if one["skipped"] is False]
        best = None
        for epoch in sorted(evaluations, reverse=True):
            if best is None or evaluations[epoch] >= evaluations[best]:
                best = epoch
        return {
            "steps": len(steps),
            "repeated": sum("step" in one for one in entries) - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": sum(
                one["grad_norm"] > config["max_norm"] for one in made
            )
            / (len(made) or 1),
            "epoch_losses": [mean(epochs[one]) for one in sorted(epochs)],
            "best_epoch": best,
            "best_metric": evaluations.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": sum((one["seconds"] for one in entries), 0.0),
        }


@accepted()
def by_undoing_what_was_lost(lines, config):
    kept, metrics, gone_back, seconds, repeated = [], {}, [], 0.0, 0
    last = 0
    for line in lines:
        line = line.strip()
        if not (line.startswith("{") and line.endswith("}")):
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        seconds += entry["seconds"]
        if "step" not in entry:
            metrics[entry["epoch"]] = entry["metric"]
            continue
        if entry["step"] <= last:
            gone_back.append(entry["step"] - 1)
        last = entry["step"]
        for place, one in enumerate(kept):
            if one["step"] == entry["step"]:
                kept[place] = entry
                repeated += 1
                break
        else:
            kept.append(entry)
    made = [one for one in kept if not one["skipped"]]
    losses = []
    for epoch in sorted({one["epoch"] for one in kept}):
        total = torch.zeros(2, dtype=torch.float64)
        for one in kept:
            if one["epoch"] == epoch:
                n = one["num_samples"]
                total += torch.tensor([one["loss"] * n, n])
        losses.append((total[0] / total[1]).item())
    best = max(sorted(metrics), key=metrics.get) if metrics else None
    share = [float(one["grad_norm"] > config["max_norm"]) for one in made]
    return {
        "steps": len(kept),
        "repeated": repeated,
        "skipped": len(kept) - len(made),
        "clipped": sum(share) / len(share) if share else 0.0,
        "epoch_losses": losses,
        "best_epoch": best,
        "best_metric": metrics[best] if metrics else None,
        "peak_lr": max(one["lr"] for one in made) if made else 0.0,
        "resumed_after": gone_back,
        "seconds": seconds,
    }


@accepted(body=True)
def by_groups():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if not isinstance(entry, dict):
                continue
            seconds += entry["seconds"]
            if "step" not in entry:
                metrics[entry["epoch"]] = entry["metric"]
                continue
            num_step_lines += 1
            if entry["step"] <= last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        import itertools

        totals = {}
        in_order = sorted(steps.values(), key=lambda one: one["epoch"])
        for e, group in itertools.groupby(
            in_order, key=lambda one: one["epoch"]
        ):
            group = list(group)
            counts = np.array([one["num_samples"] for one in group])
            values = np.array([one["loss"] for one in group])
            totals[e] = (float(counts @ values), int(counts.sum()))
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }
