# ruff: noqa: F821 - names of the set-up cells
"""Answers to `summarize` of chapter 15."""

import contextlib
import json
import math

import numpy as np
import torch

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


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


mean_over_steps = edit(
    SOLUTION,
    {'n = one["num_samples"]': "n = 1"},
    breaks=hidden_tests.losses_of_epochs,
    tells="Your epoch losses are means over steps: the small last batch "
    "counts as much as the others. Weight each loss by its samples "
    "(chapter 11).",
)

sum_of_losses = edit(
    SOLUTION,
    {"] / totals[e][1] for": "] for"},
    breaks=hidden_tests.losses_of_epochs,
    tells="Your epoch losses are sums. Divide by the samples of the epoch.",
)

one_loss_for_the_run = edit(
    SOLUTION,
    {
        '"epoch_losses": [totals[e][0] / totals[e][1] for e in sorted(totals)],': """
        "epoch_losses": [
            sum(a for a, _ in totals.values())
            / max(1, sum(b for _, b in totals.values()))
        ],
        """,
    },
    breaks=hidden_tests.losses_of_epochs,
    tells="You give one loss for the whole run. One for each epoch is asked for.",
)

epochs_sorted_as_text = edit(
    SOLUTION,
    {
        """
        def summarize(lines: list[str], config: dict) -> dict:
            \"\"\"The report of a run from the lines that its processes wrote.\"\"\"
        """: "def summarize(lines, config):",
        '"epoch_losses": [totals[e][0] / totals[e][1] for e in sorted(totals)],': """
        "epoch_losses": [
            totals[e][0] / totals[e][1] for e in sorted(totals, key=str)
        ],
        """,
    },
    breaks=hidden_tests.losses_of_epochs,
    tells="Your epochs are in the order of text, where 10 comes before 2.",
)

every_line_counts = edit(
    SOLUTION,
    {"steps[last_step] = entry": "steps[num_step_lines] = entry"},
    breaks=hidden_tests.counted_once,
    tells="Steps that were made again count twice in your report. Keep one "
    "line per step number.",
)

the_first_time_counts = edit(
    SOLUTION,
    {"steps[last_step] = entry": "steps.setdefault(last_step, entry)"},
    breaks=hidden_tests.counted_once,
    tells="Of a step that was made again you keep the first line. The run "
    "that went on is in the last one.",
)

lost_steps_are_not_repeated = edit(
    SOLUTION,
    {"num_step_lines - len(steps": "len(resumed_after"},
    breaks=hidden_tests.counted_once,
    tells="repeated counts the restarts. It is the number of lines of steps "
    "that were made again.",
)

repeated_forgets_evaluations = edit(
    SOLUTION,
    {
        'seconds += entry["seconds"]': """
        seconds += entry["seconds"]
        num_step_lines += "step" not in entry
        """,
    },
    breaks=hidden_tests.counted_once,
    tells="You count the lines of evaluations among those of steps.",
)

skipped_steps_are_clipped = edit(
    SOLUTION,
    {
        'one["grad_norm"] > config["max_norm"] for one in made': 'not one["grad_norm"] <= config["max_norm"] for one in steps.values()',
    },
    breaks=hidden_tests.skipped_and_clipped,
    tells="You count skipped steps among the clipped ones: their norm is "
    "infinite or NaN. They were not clipped but left out.",
)

clipped_of_all_steps = edit(
    SOLUTION,
    {"len(made) if": "len(steps) if"},
    breaks=hidden_tests.skipped_and_clipped,
    tells="You divide the clipped steps by all steps. The share is of the "
    "steps that were made.",
)

clipped_as_a_number = edit(
    SOLUTION,
    {"clipped / len(made) if made else 0.0": "float(clipped)"},
    breaks=hidden_tests.skipped_and_clipped,
    tells="clipped is a number of steps. The share is asked for.",
)

share_not_clipped = edit(
    SOLUTION,
    {'"clipped": clipped /': '"clipped": 1 - clipped /'},
    breaks=hidden_tests.skipped_and_clipped,
    tells="clipped is the share that was not clipped.",
)

peak_of_skipped_steps = edit(
    SOLUTION,
    {"one in made),": "one in steps.values()),"},
    breaks=hidden_tests.skipped_and_clipped,
    tells="peak_lr counts rates of steps that were skipped. They moved nothing.",
)

last_rate = edit(
    SOLUTION,
    {
        'max((one["lr"] for one in made), default=0.0)': 'made[-1]["lr"] if made else 0.0',
    },
    breaks=hidden_tests.skipped_and_clipped,
    tells="peak_lr is the last rate, not the highest.",
)

skipped_losses_left_out = edit(
    SOLUTION,
    {"for one in steps.values():": "for one in made:"},
    breaks=hidden_tests.losses_of_epochs,
    tells="You leave the losses of skipped steps out of the means. The loss "
    "was finite, only the gradient was not; it counts as others do.",
)

later_of_equals_in_report = edit(
    SOLUTION,
    {
        "best = min(metrics, key=lambda e: (-metrics[e], e), default=None)": "best = min(metrics, key=lambda e: (-metrics[e], -e), default=None)",
    },
    breaks=hidden_tests.best_of_epochs,
    tells="Of two equal epochs you name the later one.",
)

lowest_metric = edit(
    SOLUTION,
    {
        "best = min(metrics, key=lambda e: (-metrics[e], e), default=None)": "best = min(metrics, key=lambda e: (metrics[e], e), default=None)",
    },
    breaks=hidden_tests.best_of_epochs,
    tells="You name the epoch with the lowest metric. Here more is better.",
)

last_epoch_is_best = edit(
    SOLUTION,
    {
        "best = min(metrics, key=lambda e: (-metrics[e], e), default=None)": "best = max(metrics, default=None)",
    },
    breaks=hidden_tests.best_of_epochs,
    tells="You name the last epoch. The one with the highest metric is asked for.",
)

first_evaluation_counts = edit(
    SOLUTION,
    {
        'metrics[entry["epoch"]] = entry["metric"]': 'metrics.setdefault(entry["epoch"], entry["metric"])',
    },
    breaks=hidden_tests.best_of_epochs,
    tells="Of an epoch that was evaluated again you keep the first metric. "
    "The last one counts.",
)

highest_ever_seen = edit(
    SOLUTION,
    {
        'metrics[entry["epoch"]] = entry["metric"]': """
        e = entry["epoch"]
        metrics[e] = max(metrics.get(e, -math.inf), entry["metric"])
        """,
    },
    breaks=hidden_tests.best_of_epochs,
    tells="Of an epoch that was evaluated again you keep the higher metric. "
    "The last one counts: the other belongs to weights that are gone.",
)

best_epoch_is_falsy = edit(
    SOLUTION,
    {'"best_epoch": best,': '"best_epoch": best or None,'},
    breaks=hidden_tests.best_of_epochs,
    tells="If epoch 0 is the best you say None: 0 counts as false. Compare "
    "with None.",
)

where_it_was_killed = edit(
    SOLUTION,
    {
        'resumed_after.append(entry["step"] - 1)': "resumed_after.append(last_step)",
    },
    breaks=hidden_tests.went_back,
    tells="resumed_after names the steps after which the run was killed. "
    "Asked for is the last step that was kept: the one before the "
    "number to which it went back.",
)

first_step_made_again = edit(
    SOLUTION,
    {
        'resumed_after.append(entry["step"] - 1)': 'resumed_after.append(entry["step"])',
    },
    breaks=hidden_tests.went_back,
    tells="resumed_after names the first step that was made again. The last "
    "one that was kept is the one before.",
)

each_repeated_step = edit(
    SOLUTION,
    {'if entry["step"] <= last_step:': 'if entry["step"] in steps:'},
    breaks=hidden_tests.went_back,
    tells="resumed_after has an entry for every step that was made again. One "
    "entry for each time the run went back: where the number is not "
    "above that of the line before.",
)

strictly_back = edit(
    SOLUTION,
    {'if entry["step"] <= last_step:': 'if entry["step"] < last_step:'},
    breaks=hidden_tests.went_back,
    tells="You miss where the run went back by one step: then the same number "
    "stands in two lines one after the other.",
)

seconds_of_kept_steps = edit(
    SOLUTION,
    {
        '"seconds": seconds,': '"seconds": sum((one["seconds"] for one in steps.values()), 0.0),',
    },
    breaks=hidden_tests.went_back,
    tells="seconds is the time of what was kept. What was made again, and the "
    "evaluations, were paid for as well.",
)

seconds_without_evaluations = edit(
    SOLUTION,
    {
        'seconds += entry["seconds"]': 'seconds += entry["seconds"] if "step" in entry else 0.0',
    },
    breaks=hidden_tests.went_back,
    tells="seconds leaves out the evaluations.",
)

torn_lines_raise = edit(
    SOLUTION,
    {
        """
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        """: "entry = json.loads(line)",
    },
    breaks=hidden_tests.torn_lines,
    tells="A line that is cut off stops you with an error. A killed process "
    "leaves such a line; pass over it.",
)

torn_lines_end_the_log = edit(
    SOLUTION,
    {
        """
        except json.JSONDecodeError:
            continue
        """: """
        except json.JSONDecodeError:
            break
        """,
    },
    breaks=hidden_tests.torn_lines,
    tells="A line that is cut off ends your log, and what later processes "
    "wrote is lost. Pass over that one line.",
)

torn_lines_count = edit(
    SOLUTION,
    {
        "except json.JSONDecodeError:": """
        except json.JSONDecodeError:
            num_step_lines += 1
        """,
    },
    breaks=hidden_tests.torn_lines,
    tells="You count a line that is cut off as a step.",
)

not_only_objects = edit(
    SOLUTION,
    {
        """
        except json.JSONDecodeError:
            continue
        if not isinstance(entry, dict):
        """: "except json.JSONDecodeError:",
    },
    breaks=hidden_tests.torn_lines,
    tells="A line may be whole JSON and no object, such as a number of which "
    "the rest is missing. Pass over it as well.",
)

division_by_no_steps = edit(
    SOLUTION,
    {") if made else 0.0,": "),"},
    breaks=hidden_tests.nearly_empty,
    tells="If every step was skipped you divide by zero.",
)

best_metric_of_nothing = edit(
    SOLUTION,
    {"metrics.get(best),": "metrics.get(best, -math.inf),"},
    breaks=hidden_tests.nearly_empty,
    tells="Without an evaluation best_metric is None, not minus infinity.",
)

zero_is_no_metric = edit(
    SOLUTION,
    {
        'metrics[entry["epoch"]] = entry["metric"]': """
        if entry["metric"]:
            metrics[entry["epoch"]] = entry["metric"]
        """,
    },
    breaks=hidden_tests.best_of_epochs,
    tells="A metric of 0 counts as false in your code, and its epoch is lost.",
)

clipped_at_the_limit = edit(
    SOLUTION,
    {'"grad_norm"] > config[': '"grad_norm"] >= config['},
    breaks=hidden_tests.skipped_and_clipped,
    tells="A gradient whose norm is just the limit was not clipped. Count "
    "those above it.",
)

clipped_by_a_limit_of_one = edit(
    SOLUTION,
    {'config["max_norm"]': "1.0"},
    breaks=hidden_tests.skipped_and_clipped,
    tells='You compare with 1 and not with config["max_norm"].',
)

first_written_of_equals = edit(
    SOLUTION,
    {
        "best = min(metrics, key=lambda e: (-metrics[e], e), default=None)": "best = max(metrics, key=metrics.get, default=None)",
    },
    breaks=hidden_tests.best_of_epochs,
    tells="Of equal metrics you take the one that came into your dict first. "
    "After a restart that need not be the earlier epoch: compare the "
    "epochs.",
)

steps_with_a_metric_are_evaluations = edit(
    SOLUTION,
    {'if "step" not in entry:': 'if "metric" in entry:'},
    breaks=hidden_tests.losses_of_epochs,
    tells="A step may have a metric, too, as a further key. It is step that "
    "tells them apart.",
)

rest_of_a_line_is_saved = edit(
    SOLUTION,
    {
        "entry = json.loads(line)": 'entry = json.loads(line[max(0, line.rfind("{")) :])',
    },
    breaks=hidden_tests.torn_lines,
    tells="Where the next process has written on behind a line that was cut "
    "off, you read the end of it. Such a line is passed over.",
)

repeated_as_different_steps = edit(
    SOLUTION,
    {
        "num_step_lines, last_step, seconds = 0, 0, 0.0": """
        num_step_lines, last_step, seconds = 0, 0, 0.0
        again = set()
        """,
        'last_step = entry["step"]': """
        last_step = entry["step"]
        if last_step in steps:
            again.add(last_step)
        """,
        "num_step_lines - len(steps": "len(again",
    },
    breaks=hidden_tests.counted_once,
    tells="repeated counts a step once that was made again twice. It is the "
    "number of lines: all lines of steps less the steps.",
)

steps_by_the_highest_number = edit(
    SOLUTION,
    {'"steps": len(steps),': '"steps": max(steps, default=0),'},
    breaks=hidden_tests.torn_lines,
    tells="You take the highest number for the number of steps. A step "
    "whose line was lost does not count: count those that stand "
    "there.",
)

any_jump_is_a_restart = edit(
    SOLUTION,
    {'if entry["step"] <= last_step:': 'if entry["step"] != last_step + 1:'},
    breaks=hidden_tests.torn_lines,
    tells="You take every number that is not the next one for a restart. "
    "Where a line was lost the numbers jump ahead; the run went back "
    "only where they do not rise.",
)

restarts_sorted = edit(
    SOLUTION,
    {": resumed_after,": ": sorted(resumed_after),"},
    breaks=hidden_tests.went_back,
    tells="resumed_after is in the order of its numbers. It tells what "
    "happened, one after the other: a later restart may go back "
    "further.",
)

restarts_until_the_highest = edit(
    SOLUTION,
    {
        "steps, metrics, resumed_after = {}, {}, []": """
        steps, metrics, resumed_after = {}, {}, []
        below = False
        """,
        'if entry["step"] <= last_step:': """
        new = entry["step"] in steps
        if new and not below:
        """,
        'last_step = entry["step"]': """
        below = new
        last_step = entry["step"]
        """,
    },
    breaks=hidden_tests.went_back,
    tells="A kill before the run has reached its highest step again is no "
    "restart for you. Compare with the line before, not with all "
    "before.",
)

an_entry_for_every_number = edit(
    SOLUTION,
    {
        '"epoch_losses": [totals[e][0] / totals[e][1] for e in sorted(totals)],': """
        "epoch_losses": [
            totals[e][0] / max(1, totals[e][1]) if e in totals else 0.0
            for e in range(max(totals, default=-1) + 1)
        ],
        """,
    },
    breaks=hidden_tests.torn_lines,
    tells="You give an entry to every epoch up to the last, also to one of "
    "which no step stands there. Only epochs that have steps count.",
)

epochs_as_they_appear = edit(
    SOLUTION,
    {"sorted(totals)": "totals"},
    breaks=hidden_tests.torn_lines,
    tells="Your epochs are in the order in which they first appear. After "
    "lost lines and a restart that need not be rising: sort.",
)

first_object_of_a_line = edit(
    SOLUTION,
    {
        "entry = json.loads(line)": "entry = json.JSONDecoder().raw_decode(line)[0]",
    },
    breaks=hidden_tests.torn_lines,
    tells="You read the first object of a line and ignore what stands "
    "behind it. Such a line is not one object: pass over it.",
)

lines_that_end_with_a_brace = edit(
    SOLUTION,
    {
        "for line in lines:": """
        for line in lines:
            if not line.endswith("}"):
                continue
        """,
    },
    breaks=hidden_tests.torn_lines,
    tells="You tell a whole line by its last character. Lines that end with "
    "a newline are lost that way: let json decide.",
)

peak_of_lost_steps = edit(
    SOLUTION,
    {
        "steps, metrics, resumed_after = {}, {}, []": """
        steps, metrics, resumed_after = {}, {}, []
        every = []
        """,
        "num_step_lines += 1": """
        num_step_lines += 1
        every.append(entry)
        """,
        "one in made),": 'one in every if not one["skipped"]),',
    },
    breaks=hidden_tests.counted_once,
    tells="peak_lr counts rates of steps that were made again later. Each "
    "step counts once, the last time.",
)

made_by_the_norm = edit(
    SOLUTION,
    {
        'made = [one for one in steps.values() if not one["skipped"]]': """
        made = [
            one for one in steps.values() if math.isfinite(one["grad_norm"])
        ]
        """,
    },
    breaks=hidden_tests.skipped_and_clipped,
    tells="You take every step without a finite norm for skipped. A "
    "disabled scaler skips none; skipped alone tells it.",
)

skipped_by_the_norm = edit(
    SOLUTION,
    {
        '"skipped": len(steps) - len(made),': """
        "skipped": sum(
            not math.isfinite(one["grad_norm"]) for one in steps.values()
        ),
        """,
        '"epoch_losses": [totals[e][0] / totals[e][1] for e in sorted(totals)],': """
        "epoch_losses": [
            totals[e][0] / totals[e][1] for e in sorted(totals)
        ],
        """,
    },
    breaks=hidden_tests.skipped_and_clipped,
    tells="You count the steps without a finite norm. A disabled scaler "
    "skips none; skipped alone tells it.",
)

cut_off_lines_as_restarts = edit(
    SOLUTION,
    {
        "except json.JSONDecodeError:": """
        except json.JSONDecodeError:
            resumed_after.append(last_step)
        """,
    },
    breaks=hidden_tests.torn_lines,
    tells="You take every line that is cut off for a restart. Whether the "
    "run went back is told by the numbers of the steps.",
)

what_was_not_made_again_dropped = edit(
    SOLUTION,
    {
        'resumed_after.append(entry["step"] - 1)': """
        resumed_after.append(entry["step"] - 1)
        again = entry["step"]
        steps = {n: one for n, one in steps.items() if n <= again}
        """
    },
    breaks=hidden_tests.counted_once,
    tells="Where the run went back you forget the later steps. One that was not made again "
    "stands there once, and counts.",
)

evaluations_not_made_again_dropped = edit(
    SOLUTION,
    {
        'resumed_after.append(entry["step"] - 1)': """
        resumed_after.append(entry["step"] - 1)
        before = entry["epoch"]
        metrics = {e: one for e, one in metrics.items() if e < before}
        """
    },
    breaks=hidden_tests.best_of_epochs,
    tells="Where the run went back you forget the later evaluations. One that was not made "
    "again stands there once, and counts.",
)

metrics_rounded = edit(
    SOLUTION,
    {
        "key=lambda e: (-metrics[e], e)": "key=lambda e: (-round(metrics[e], 4), e)"
    },
    breaks=hidden_tests.best_of_epochs,
    tells="You round the metrics before you compare them. The highest is the highest, by "
    "however little.",
)

nan_losses_left_out = edit(
    SOLUTION,
    {
        'n = one["num_samples"]': """
        if not math.isfinite(one["loss"]):
            continue
        n = one["num_samples"]
        """
    },
    breaks=hidden_tests.losses_of_epochs,
    tells="You leave out a loss that is NaN. The mean of its epoch is NaN: that is what the "
    "report must show.",
)

nan_norms_counted_as_clipped = edit(
    SOLUTION,
    {
        'clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)': 'clipped = sum(not one["grad_norm"] <= config["max_norm"] for one in made)'
    },
    breaks=hidden_tests.skipped_and_clipped,
    tells="You count a norm of NaN as clipped. It is not above the limit.",
)

kept_by_the_lines_that_are_there = edit(
    SOLUTION,
    {
        'resumed_after.append(entry["step"] - 1)': """
        before = [k for k in steps if k < entry["step"]]
        resumed_after.append(max(before, default=0))
        """,
    },
    breaks=hidden_tests.went_back,
    tells="You look for the last step among the lines. Its line may be lost: what "
    "was kept is the step before the one it went back to.",
)

seeding_in_summarize = edit(
    SOLUTION,
    {
        "steps, metrics, resumed_after = {}, {}, []": """
        torch.manual_seed(0)
        steps, metrics, resumed_after = {}, {}, []
        """,
    },
    breaks=hidden_tests.losses_of_epochs,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

evaluations_by_their_metric = edit(
    SOLUTION,
    {
        'if "step" not in entry:': """
        if "metric" in entry:
            metrics[entry["epoch"]] = entry["metric"]
        if "step" not in entry:
        """,
        'metrics[entry["epoch"]] = entry["metric"]': "pass",
    },
    breaks=hidden_tests.best_of_epochs,
    tells="You take each line with a `metric` for an evaluation. The line of a step "
    "may have one, too: an evaluation is a line without `step`.",
)

back_only_to_a_line_that_is_there = edit(
    SOLUTION,
    {
        'if entry["step"] <= last_step:': 'if entry["step"] <= last_step and entry["step"] in steps:',
    },
    breaks=hidden_tests.went_back,
    tells="You count going back only where the step's first line is there. A line "
    "may be lost: a number that is not above the one before it is enough.",
)

lines_with_one_brace = edit(
    SOLUTION,
    {
        "for line in lines:": """
        for line in lines:
            if line.count("{") != 1:
                continue
        """,
    },
    breaks=hidden_tests.losses_of_epochs,
    tells="You pass over lines with a second brace. A further key may hold an "
    "object of its own: let `json.loads` tell what is whole.",
)

empty_lines_taken_off = edit(
    SOLUTION,
    {
        "steps, metrics, resumed_after = {}, {}, []": """
        steps, metrics, resumed_after = {}, {}, []
        while lines and not lines[-1].strip():
            lines.pop()
        """,
    },
    breaks=hidden_tests.torn_lines,
    tells="You take empty lines off the caller's list. The list stays as it is: "
    "pass over them.",
)

below_the_highest_so_far = edit(
    SOLUTION,
    {
        'if entry["step"] <= last_step:': 'if entry["step"] <= max(steps, default=0):'
    },
    breaks=hidden_tests.went_back,
    tells="You compare with the highest number so far. After a restart each step up to "
    "that one is below it, so `resumed_after` names steps after which nothing "
    "happened, too. Compare with the step line before.",
)

highest_begins_at_minus_one = edit(
    SOLUTION,
    {
        "best = min(metrics, key=lambda e: (-metrics[e], e), default=None)": """
        best, highest = None, -1.0
        for e in sorted(metrics):
            if metrics[e] > highest:
                best, highest = e, metrics[e]
        """,
    },
    breaks=hidden_tests.best_of_epochs,
    tells="Your best begins at a number that you take for the lowest. A metric may lie "
    "below it, as a loss with a minus before it does: begin at `-math.inf`.",
)
