# ruff: noqa: F821 - names of the set-up cells
"""Answers to `fit` of chapter 15."""

import contextlib
import copy
import math
import os

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def by_a_state_that_is_saved(run, folder):
    import io
    import re

    settings = run.config
    folder.mkdir(exist_ok=True)
    state = {"number": 0, "log": [], "best": None}

    def numbered():
        found = {}
        for path in folder.iterdir():
            match = re.fullmatch(r"step_(\d{6})\.pt", path.name)
            if match:
                found[int(match[1])] = path
        return [found[number] for number in sorted(found)]

    for path in reversed(numbered()):
        try:
            loaded = torch.load(path, weights_only=True)
        except Exception:
            continue
        state = loaded["state"]
        for name in run.parts:
            run.parts[name].load_state_dict(loaded[f"part {name}"])
        set_random_states(loaded["random"])
        break

    def save():
        content = {"state": state, "random": random_states()}
        for name, part in run.parts.items():
            content[f"part {name}"] = part.state_dict()
        stream = io.BytesIO()
        torch.save(content, stream)
        path = folder / f"step_{state['number']:06}.pt"
        beside = path.with_suffix(".part")
        with open(beside, "wb") as file:
            file.write(stream.getvalue())
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
        up_to_it = [one for one in numbered() if one.name <= path.name]
        for old in up_to_it[: -settings["keep"]]:
            os.remove(old)

    plan = [
        (epoch, indices, place == 0)
        for epoch in range(settings["num_epochs"])
        for place, indices in reversed(
            list(enumerate(reversed(run.batches(epoch))))
        )
    ]
    for epoch, indices, is_last in plan[state["number"] :]:
        facts = dict(run.step(indices))
        state["number"] += 1
        facts.update(epoch=epoch, step=state["number"])
        state["log"].append(facts)
        if is_last:
            metric = run.evaluate()
            if state["best"] is None or metric > state["best"]["metric"]:
                weights = run.parts["model"].state_dict()
                state["best"] = {
                    "epoch": epoch,
                    "metric": metric,
                    "model": {k: v.clone() for k, v in weights.items()},
                }
        finished = state["number"] == len(plan)
        if finished or state["number"] % settings["save_every"] == 0:
            save()
    return state["log"], state["best"]


@accepted()
def by_epoch_and_position(run, folder):
    import re

    os.makedirs(folder, exist_ok=True)
    epoch, position, step = 0, 0, 0
    log, best = [], {"epoch": -1, "metric": float("-inf"), "model": None}
    names = [n for n in os.listdir(folder) if re.match(r"step_\d+\.pt$", n)]
    for name in sorted(names)[::-1]:
        try:
            saved = torch.load(os.path.join(folder, name))
        except Exception:
            continue
        epoch, position, step = saved["epoch"], saved["position"], saved["step"]
        log, best = saved["log"], saved["best"]
        for key, state in saved["parts"].items():
            run.parts[key].load_state_dict(state)
        set_random_states(saved["states"])
        break
    while epoch < run.config["num_epochs"]:
        batches = run.batches(epoch)
        while position < len(batches):
            record = {**run.step(batches[position])}
            step += 1
            position += 1
            record["epoch"], record["step"] = epoch, step
            log.append(record)
            at_end = position == len(batches)
            if at_end:
                metric = run.evaluate()
                if metric > best["metric"]:
                    best = dict(
                        epoch=epoch,
                        metric=metric,
                        model=copy.deepcopy(run.parts["model"]).state_dict(),
                    )
            last = at_end and epoch + 1 == run.config["num_epochs"]
            if step % run.config["save_every"] == 0 or last:
                path = os.path.join(folder, f"step_{step:06d}.pt")
                torch.save(
                    {
                        "epoch": epoch + at_end,
                        "position": 0 if at_end else position,
                        "step": step,
                        "log": log,
                        "best": best,
                        "parts": {
                            k: p.state_dict() for k, p in run.parts.items()
                        },
                        "states": random_states(),
                    },
                    path + ".tmp",
                )
                os.replace(path + ".tmp", path)
                there = [
                    n
                    for n in os.listdir(folder)
                    if re.match(r"step_\d+\.pt$", n) and int(n[5:-3]) <= step
                ]
                for name in sorted(there)[: -run.config["keep"]]:
                    os.remove(os.path.join(folder, name))
        epoch, position = epoch + 1, 0
    return log, best


@accepted()
def by_a_generator_of_steps(run, folder):
    config = run.config

    def steps():
        number = 0
        for epoch in range(config["num_epochs"]):
            batches = run.batches(epoch)
            for indices in batches:
                number += 1
                yield number, epoch, indices, indices is batches[-1]

    def newest():
        for path in sorted(folder.glob("step_??????.pt"))[::-1]:
            with contextlib.suppress(Exception):
                return torch.load(path, map_location="cpu")
        return None

    folder.mkdir(exist_ok=True)
    held = newest() or {"number": 0, "log": [], "best": {}}
    for name, state in held.get("parts", {}).items():
        run.parts[name].load_state_dict(state)
    if "random" in held:
        set_random_states(held["random"])
    log, best = held["log"], held["best"]
    total = sum(len(run.batches(e)) for e in range(config["num_epochs"]))
    for number, epoch, indices, ends in steps():
        if number <= held["number"]:
            continue
        log.append(run.step(indices) | {"epoch": epoch, "step": number})
        if ends:
            metric = run.evaluate()
            if not best or best["metric"] < metric:
                snapshot = run.parts["model"].state_dict()
                snapshot = {k: v.detach().clone() for k, v in snapshot.items()}
                best = {"epoch": epoch, "metric": metric, "model": snapshot}
        if number % config["save_every"] and number != total:
            continue
        content = {
            "number": number,
            "log": log,
            "best": best,
            "random": random_states(),
            "parts": {k: v.state_dict() for k, v in run.parts.items()},
        }
        beside = folder / "unfinished.part"
        with open(beside, "wb") as file:
            torch.save(content, file)
        os.replace(beside, folder / f"step_{number:06d}.pt")
        kept = sorted(folder.glob("step_??????.pt"), reverse=True)
        kept = kept[kept.index(folder / f"step_{number:06d}.pt") :]
        for path in kept[config["keep"] :]:
            path.unlink()
    return log, best


@accepted(body=True)
def by_a_class():
    class Loop:
        def __init__(self, run, folder):
            self.run, self.folder = run, folder
            self.done, self.log, self.best = 0, [], None
            folder.mkdir(parents=True, exist_ok=True)
            for path in self.files()[::-1]:
                try:
                    saved = torch.load(path)
                except Exception:
                    continue
                for part, state in zip(
                    run.parts.values(), saved["parts"], strict=True
                ):
                    part.load_state_dict(state)
                self.done, self.log, self.best = saved["loop"]
                set_random_states(saved["draws"])
                return

        def files(self):
            return sorted(self.folder.glob("step_[0-9]*.pt"))

        def save(self):
            parts = [one.state_dict() for one in self.run.parts.values()]
            loop = [self.done, self.log, self.best]
            saved = {"parts": parts, "loop": loop, "draws": random_states()}
            path = self.folder / f"step_{self.done:06d}.pt"
            torch.save(saved, path.with_suffix(".writing"))
            path.with_suffix(".writing").replace(path)
            while self.files().index(path) >= self.run.config["keep"]:
                self.files()[0].unlink()

        def go(self):
            config, number = self.run.config, 0
            for epoch in range(config["num_epochs"]):
                batches = self.run.batches(epoch)
                first, number = number, number + len(batches)
                for step in range(max(first, self.done), number):
                    facts = self.run.step(batches[step - first])
                    self.done = step + 1
                    self.log.append(
                        {**facts, "epoch": epoch, "step": self.done}
                    )
                    if self.done == number:
                        self.look(epoch)
                    last = epoch == config["num_epochs"] - 1
                    due = self.done % config["save_every"] == 0
                    if due or (last and self.done == number):
                        self.save()
            return self.log, self.best

        def look(self, epoch):
            metric = self.run.evaluate()
            if self.best is None or metric > self.best["metric"]:
                model = copy.deepcopy(self.run.parts["model"].state_dict())
                self.best = {"epoch": epoch, "metric": metric, "model": model}

    def fit(run, folder):
        return Loop(run, folder).go()


@accepted()
def with_orders_in_the_checkpoint(run, folder):
    folder.mkdir(parents=True, exist_ok=True)
    to_come = [
        [epoch, indices]
        for epoch in range(run.config["num_epochs"])
        for indices in run.batches(epoch)
    ]
    number, log, metrics, best = 0, [], [], None
    found = sorted(folder.glob("step_*.pt"), key=lambda p: p.name)
    while found:
        try:
            saved = torch.load(found.pop())
        except Exception:
            continue
        to_come, number, log = saved["to_come"], saved["number"], saved["log"]
        metrics, best = saved["metrics"], saved["best"]
        for name, part in run.parts.items():
            part.load_state_dict(saved["parts"][name])
        set_random_states(saved["random"])
        break
    while to_come:
        epoch, indices = to_come.pop(0)
        facts = run.step(indices)
        number += 1
        log.append({"epoch": epoch, "step": number, **facts})
        if not to_come or to_come[0][0] != epoch:
            metrics.append(run.evaluate())
            if metrics.index(max(metrics)) == epoch:
                best = copy.deepcopy(run.parts["model"].state_dict())
        if number % run.config["save_every"] == 0 or not to_come:
            saved = dict(
                to_come=to_come,
                number=number,
                log=log,
                metrics=metrics,
                best=best,
                random=random_states(),
                parts={k: run.parts[k].state_dict() for k in run.parts},
            )
            name = f"step_{number:06d}.pt"
            place = folder / "unfinished"
            place.mkdir(exist_ok=True)
            torch.save(saved, place / name)
            os.replace(place / name, folder / name)
            place.rmdir()
            older = [one for one in folder.glob("step_*.pt") if one.name < name]
            spared = run.config["keep"] - 1
            for old in sorted(older, reverse=True)[spared:]:
                os.unlink(old)
    epoch = metrics.index(max(metrics))
    return log, {"epoch": epoch, "metric": metrics[epoch], "model": best}


by_removing_broken_ones = edit(
    SOLUTION,
    {
        "except Exception:": """
        except Exception:
            path.unlink()
        """,
    },
)


@accepted(body=True)
def by_the_numbers_inside():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        whole = []
        for path in folder.glob("step_*.pt"):
            with contextlib.suppress(Exception):
                whole.append(torch.load(path))
        for saved in sorted(whole, key=lambda one: -one["done"]):
            for name, part in run.parts.items():
                part.load_state_dict(saved["parts"][name])
            done, log, best = saved["done"], saved["log"], saved["best"]
            set_random_states(saved["random"])
            break

        number = 0
        for epoch in range(num_epochs):
            to_do = run.batches(epoch)
            for place, indices in enumerate(to_do, start=1):
                number += 1
                if number <= done:
                    continue
                facts = run.step(indices)
                log.append({**facts, "epoch": epoch, "step": number})
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = copy.deepcopy(run.parts["model"].state_dict())
                        best = {"epoch": epoch, "metric": metric, "model": now}
                ends = place == len(to_do) and epoch == num_epochs - 1
                if ends or number % run.config["save_every"] == 0:
                    states = {
                        k: one.state_dict() for k, one in run.parts.items()
                    }
                    saved = {"parts": states, "done": number, "log": log}
                    saved |= {"best": best, "random": random_states()}
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    names = {folder / f"step_{number:06d}.pt"}
                    before = [
                        p
                        for p in sorted(folder.glob("step_*.pt"))
                        if p < new_name
                    ]
                    names |= set(before[max(0, len(before) - keep + 1) :])
                    for old in folder.glob("step_*.pt"):
                        if old not in names:
                            old.unlink()
        return log, best


begins_again = edit(
    SOLUTION,
    {
        'for path in sorted(folder.glob("step_*.pt"), reverse=True):': 'for path in sorted(folder.glob("step_*.pt"), reverse=True)[:0]:',
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="You write checkpoints and never read one: after a kill everything "
    "begins again.",
)

only_model_and_optimizer = edit(
    SOLUTION,
    {
        """
        for name, part in run.parts.items():
            part.load_state_dict(saved["parts"][name])
        """: """
        for name in ("model", "optimizer"):
            run.parts[name].load_state_dict(saved["parts"][name])
        """,
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="Only the model and the optimizer come back. Schedule, scaler and "
    "whatever else a run brings begin anew: the rate and the scale "
    "jump. Load all of run.parts.",
)

four_known_parts = edit(
    SOLUTION,
    {
        """
        for name, part in run.parts.items():
            part.load_state_dict(saved["parts"][name])
        """: """
        for name in ("model", "optimizer", "schedule", "scaler"):
            run.parts[name].load_state_dict(saved["parts"][name])
        """,
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="You load four parts that you know by name. A run may bring others: "
    "go through run.parts.",
)

only_the_model = edit(
    SOLUTION,
    {
        """
        for name, part in run.parts.items():
            part.load_state_dict(saved["parts"][name])
        """: 'run.parts["model"].load_state_dict(saved["parts"]["model"])',
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="Only the model comes back. Without the optimizer's moments the "
    "first steps after the restart are too large, and schedule and "
    "scaler begin anew.",
)

without_random_states = edit(
    SOLUTION,
    {'set_random_states(saved["random"])': ""},
    breaks=hidden_tests.random_numbers_go_on,
    tells="The random states are not put back: after a restart dropout and "
    "noise are others, and so is everything that follows.",
)

only_torchs_generator = edit(
    SOLUTION,
    {
        'set_random_states(saved["random"])': 'torch.set_rng_state(saved["random"]["torch"])',
    },
    breaks=hidden_tests.random_numbers_go_on,
    tells="Only PyTorch's generator goes on. NumPy's and Python's draw as "
    "well: augmentation often uses them.",
)

seeded_again = edit(
    SOLUTION,
    {'set_random_states(saved["random"])': "seed_everything(0)"},
    breaks=hidden_tests.random_numbers_go_on,
    tells="You seed the generators at the restart: the same numbers come that "
    "came at the beginning, not those that come next.",
)

random_states_first = edit(
    SOLUTION,
    {
        'done, log, best = 0, [], {"metric": -math.inf}': """
        done, log, best = 0, [], {"metric": -math.inf}
        at_the_start = random_states()
        """,
        'saved |= {"best": best, "random": random_states()}': 'saved |= {"best": best, "random": at_the_start}',
    },
    breaks=hidden_tests.random_numbers_go_on,
    tells="Your checkpoints hold the random states from the beginning of the "
    "process. Ask for them when you save.",
)

seeded_at_the_start = edit(
    SOLUTION,
    {
        "folder.mkdir(exist_ok=True)": """
        folder.mkdir(exist_ok=True)
        seed_everything(0)
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="You seed the generators yourself. The caller has done so, and the "
    "run then is not the one without checkpoints.",
)

log_of_the_last_process = edit(
    SOLUTION,
    {
        'done, log, best = saved["done"], saved["log"], saved["best"]': 'done, best = saved["done"], saved["best"]',
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="The log begins with the restart: what came before is lost. Keep it "
    "in the checkpoint.",
)

best_forgotten = edit(
    SOLUTION,
    {
        'done, log, best = saved["done"], saved["log"], saved["best"]': 'done, log = saved["done"], saved["log"]',
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="The best so far is forgotten at a restart; the first epoch "
    "afterwards becomes the best, whatever came before. Keep it in the "
    "checkpoint.",
)

metric_without_its_model = edit(
    SOLUTION,
    {
        'done, log, best = saved["done"], saved["log"], saved["best"]': """
        done, log, best = saved["done"], saved["log"], saved["best"]
        best["model"] = copy.deepcopy(run.parts["model"].state_dict())
        """,
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="After a restart the best metric is kept, and with it the weights "
    "of the checkpoint in place of the best ones. Save the best weights "
    "too.",
)

best_is_live = edit(
    SOLUTION,
    {
        'now = copy.deepcopy(run.parts["model"].state_dict())': 'now = run.parts["model"].state_dict()',
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="state_dict() is a dict of the live tensors: your best model "
    "follows the training. Keep a deep copy (chapter 12).",
)

best_is_a_shallow_copy = edit(
    SOLUTION,
    {
        'now = copy.deepcopy(run.parts["model"].state_dict())': 'now = dict(run.parts["model"].state_dict())',
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="state_dict() is a dict of the live tensors: your best model "
    "follows the training. Keep a deep copy (chapter 12).",
)

best_is_parameters_only = edit(
    SOLUTION,
    {
        'now = copy.deepcopy(run.parts["model"].state_dict())': """
        now = {
            k: v.detach().clone()
            for k, v in run.parts["model"].named_parameters()
        }
        """,
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="The best model lacks its buffers, such as running statistics. A "
    "state dict has them.",
)

later_of_equals = edit(
    SOLUTION,
    {'if metric > best["metric"]:': 'if metric >= best["metric"]:'},
    breaks=hidden_tests.the_best_is_kept,
    tells="Of two equal metrics you keep the later one. Only a better one "
    "replaces the best.",
)

smallest_is_best = edit(
    SOLUTION,
    {
        'done, log, best = 0, [], {"metric": -math.inf}': 'done, log, best = 0, [], {"metric": math.inf}',
        'if metric > best["metric"]:': 'if metric < best["metric"]:',
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="You keep the epoch with the smallest metric. Here more is better.",
)

only_positive_metrics = edit(
    SOLUTION,
    {
        'done, log, best = 0, [], {"metric": -math.inf}': 'done, log, best = 0, [], {"metric": 0.0}',
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="You begin with a best metric of 0: epochs with negative ones never "
    "count. Begin with minus infinity.",
)


@wrong(
    breaks=hidden_tests.only_what_is_left,
    tells="You evaluate after the checkpoint of the same step. After a "
    "restart from there the evaluation never happens, and its random "
    "numbers are not drawn.",
    body=True,
)
def evaluation_after_the_checkpoint():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except Exception:  # broken off: there is an older one, perhaps
                continue
            for name, part in run.parts.items():
                part.load_state_dict(saved["parts"][name])
            done, log, best = saved["done"], saved["log"], saved["best"]
            set_random_states(saved["random"])
            break

        number = 0
        for epoch in range(num_epochs):
            to_do = run.batches(epoch)
            for place, indices in enumerate(to_do, start=1):
                number += 1
                if number <= done:
                    continue
                facts = run.step(indices)
                log.append({**facts, "epoch": epoch, "step": number})
                ends = place == len(to_do) and epoch == num_epochs - 1
                if ends or number % run.config["save_every"] == 0:
                    states = {
                        k: one.state_dict() for k, one in run.parts.items()
                    }
                    saved = {"parts": states, "done": number, "log": log}
                    saved |= {"best": best, "random": random_states()}
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = copy.deepcopy(run.parts["model"].state_dict())
                        best = {"epoch": epoch, "metric": metric, "model": now}
        return log, best


evaluates_each_step = edit(
    SOLUTION,
    {"if place == len(to_do):": "if True:"},
    breaks=hidden_tests.nothing_stops_it,
    tells="You evaluate after every step. Once per epoch, after its last step.",
)

epoch_run_again = edit(
    SOLUTION,
    {"if number <= done:": "if number - place + len(to_do) <= done:"},
    breaks=hidden_tests.only_what_is_left,
    tells="After a restart the epoch begins again: steps that the checkpoint "
    "holds are made twice. Go on within the epoch.",
)

last_step_again = edit(
    SOLUTION,
    {"if number <= done:": "if number < done:"},
    breaks=hidden_tests.only_what_is_left,
    tells="After a restart the last step before the checkpoint is made again. "
    "The number in the checkpoint is that of a step that is done.",
)

one_step_left_out = edit(
    SOLUTION,
    {"if number <= done:": "if number <= done + (done > 0):"},
    breaks=hidden_tests.only_what_is_left,
    tells="After a restart one step is left out: you go on one too far.",
)

epochs_left_out = edit(
    SOLUTION,
    {"if number <= done:": "if done and number - place <= done:"},
    breaks=hidden_tests.only_what_is_left,
    tells="After a restart the rest of the epoch is left out, and you go on "
    "with the next one.",
)

written_in_place = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': "",
        'os.replace(folder / "unfinished", new_name)': "torch.save(saved, new_name)",
    },
    breaks=hidden_tests.killed_while_writing,
    tells="You write under the final name. A process that is killed in "
    "between leaves half a file there. Write beside it, then "
    "os.replace.",
)

written_in_place_and_flushed = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': "",
        'os.replace(folder / "unfinished", new_name)': """
        with open(new_name, "wb") as file:
            torch.save(saved, file)
            file.flush()
            os.fsync(file.fileno())
        """,
    },
    breaks=hidden_tests.killed_while_writing,
    tells="You write under the final name. A process that is killed in "
    "between leaves half a file there. Write beside it, then "
    "os.replace.",
)

old_ones_removed_first = edit(
    SOLUTION,
    {
        'saved |= {"best": best, "random": random_states()}': """
        saved |= {"best": best, "random": random_states()}
        for old in sorted(folder.glob("step_*.pt"))[::-1][
            keep - 1 :
        ]:
            old.unlink()
        """,
        """
        there = sorted(folder.glob("step_*.pt"))
        there = there[: there.index(new_name) + 1]
        for old in there[:-keep]:
            old.unlink()
        """: "",
    },
    breaks=hidden_tests.killed_while_writing,
    tells="You remove the old checkpoints before the new one is in place. "
    "Killed in between, with keep = 1, you have none.",
)

nothing_is_removed = edit(
    SOLUTION,
    {
        """
        there = sorted(folder.glob("step_*.pt"))
        there = there[: there.index(new_name) + 1]
        for old in there[:-keep]:
            old.unlink()
        """: "",
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="Old checkpoints are never removed: the disk fills up. Only the "
    "newest keep of them stay.",
)

one_too_many = edit(
    SOLUTION,
    {"for old in there[:-keep]:": "for old in there[: -keep - 1]:"},
    breaks=hidden_tests.files_in_the_folder,
    tells="One checkpoint more than keep stays.",
)

one_goes_at_a_time = edit(
    SOLUTION,
    {
        """
        for old in there[:-keep]:
            old.unlink()
        """: """
        if len(there) > keep:
            there[0].unlink()
        """,
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You remove one checkpoint for each that you write. Where a run with a "
    "larger `keep` was there before, its older ones stay. Remove all but the last "
    "`keep`.",
)

other_files_removed = edit(
    SOLUTION,
    {
        'there = sorted(folder.glob("step_*.pt"))': 'there = sorted(folder.glob("*"))',
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You remove files that are not yours. Only those named step_….pt "
    "are checkpoints.",
)

all_pt_files_removed = edit(
    SOLUTION,
    {
        'there = sorted(folder.glob("step_*.pt"))': 'there = sorted(folder.glob("*.pt"))',
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You take every file that ends in .pt for a checkpoint of yours. "
    "Only those named step_….pt are.",
)

names_without_zeros = edit(
    SOLUTION,
    {
        'new_name = folder / f"step_{number:06d}.pt"': 'new_name = folder / f"step_{number}.pt"',
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="The number in the name has not six digits. Sorted as text, step_10 "
    "then comes before step_9.",
)

no_checkpoint_at_the_end = edit(
    SOLUTION,
    {"ends = place == len(to_do) and epoch == num_epochs - 1": "ends = False"},
    breaks=hidden_tests.only_what_is_left,
    tells="There is no checkpoint at the end of the run: called once more, it "
    "makes the last steps again.",
)

a_checkpoint_per_epoch = edit(
    SOLUTION,
    {
        'if ends or number % run.config["save_every"] == 0:': "if place == len(to_do):",
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You save at the end of each epoch. Save after every save_every "
    "steps, also within an epoch, and at the end.",
)

steps_counted_per_epoch = edit(
    SOLUTION,
    {
        'if ends or number % run.config["save_every"] == 0:': 'if ends or place % run.config["save_every"] == 0:',
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You count the steps of each epoch anew to see whether a checkpoint "
    "is due. Count through all epochs.",
)

only_the_newest_is_tried = edit(
    SOLUTION,
    {
        """
        except Exception:  # broken off: there is an older one, perhaps
            continue
        """: """
        except Exception:
            break
        """,
    },
    breaks=hidden_tests.newest_whole_one,
    tells="If the newest checkpoint is broken you begin again, though an "
    "older one is whole. Try the next.",
)

broken_copies_raise = edit(
    SOLUTION,
    {
        """
        try:
            saved = torch.load(path)
        except Exception:  # broken off: there is an older one, perhaps
            continue
        """: "saved = torch.load(path)",
    },
    breaks=hidden_tests.newest_whole_one,
    tells="A checkpoint whose copy broke off stops you with an error. Pass "
    "over it and take the next older one.",
)

only_runtime_errors = edit(
    SOLUTION,
    {"except Exception:": "except RuntimeError:"},
    breaks=hidden_tests.newest_whole_one,
    tells="You expect a RuntimeError from a broken file. An empty one raises "
    "an EOFError; catch every Exception that torch.load raises.",
)

newest_by_date = edit(
    SOLUTION,
    {
        'for path in sorted(folder.glob("step_*.pt"), reverse=True):': """
        for path in sorted(
            folder.glob("step_*.pt"),
            key=lambda one: one.stat().st_mtime,
            reverse=True,
        ):
        """,
    },
    breaks=hidden_tests.newest_whole_one,
    tells="You take the file with the latest date. Copies have new dates; the "
    "number of steps in the name tells which is the newest.",
)

oldest_first = edit(
    SOLUTION,
    {
        'for path in sorted(folder.glob("step_*.pt"), reverse=True):': 'for path in sorted(folder.glob("step_*.pt")):',
    },
    breaks=hidden_tests.newest_whole_one,
    tells="You go on from the oldest checkpoint that is kept, not from the "
    "newest.",
)

best_in_a_file_of_its_own = edit(
    SOLUTION,
    {
        'done, log, best = saved["done"], saved["log"], saved["best"]': """
        done, log = saved["done"], saved["log"]
        if (folder / "best_model").exists():
            best = torch.load(folder / "best_model")
        """,
        'saved |= {"best": best, "random": random_states()}': """
        saved |= {"best": best, "random": random_states()}
        torch.save(best, folder / "unfinished")
        os.replace(folder / "unfinished", folder / "best_model")
        """,
    },
    breaks=hidden_tests.one_file_is_enough,
    tells="The best lies in a second file. A checkpoint that is copied "
    "elsewhere goes on without it; and two files are never written at "
    "one moment.",
)

weights_as_parameters_only = edit(
    SOLUTION,
    {
        'part.load_state_dict(saved["parts"][name])': """
        state = saved["parts"][name]
        if name == "model":
            for key, value in part.named_buffers():
                state = {**state, key: value}
        part.load_state_dict(state)
        """,
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="The model's buffers do not come back. Load its whole state dict.",
)

whole_objects = edit(
    SOLUTION,
    {
        "saved = torch.load(path)": "saved = torch.load(path, weights_only=False)",
        'part.load_state_dict(saved["parts"][name])': 'part.load_state_dict(saved["parts"][name].state_dict())',
        "states = {k: one.state_dict() for k, one in run.parts.items()}": "states = dict(run.parts)",
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="You save the objects themselves. torch.load with its defaults "
    "refuses them, for loading them can run code. Save state dicts.",
)

steps_counted_from_zero = edit(
    SOLUTION,
    {
        'log.append({**facts, "epoch": epoch, "step": number})': 'log.append({**facts, "epoch": epoch, "step": number - 1})',
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="The steps in your log count from 0. They count from 1, through all "
    "epochs.",
)

log_without_facts = edit(
    SOLUTION,
    {
        'log.append({**facts, "epoch": epoch, "step": number})': """
        log.append(
            {"epoch": epoch, "step": number, "loss": facts["loss"]}
        )
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="Your log keeps only the loss of what run.step returned. Keep all "
    "of it.",
)

random_states_before_the_evaluation = edit(
    SOLUTION,
    {
        'log.append({**facts, "epoch": epoch, "step": number})': """
        log.append({**facts, "epoch": epoch, "step": number})
        at_the_step = random_states()
        """,
        'saved |= {"best": best, "random": random_states()}': 'saved |= {"best": best, "random": at_the_step}',
    },
    breaks=hidden_tests.only_what_is_left,
    tells="Your checkpoint holds the random states from before the evaluation "
    "of the same step. What the evaluation drew is drawn again after a "
    "restart.",
)

old_ones_by_date = edit(
    SOLUTION,
    {
        """
        there = sorted(folder.glob("step_*.pt"))
        there = there[: there.index(new_name) + 1]
        """: """
        there = sorted(
            folder.glob("step_*.pt"),
            key=lambda one: one.stat().st_mtime,
        )
        """,
    },
    breaks=hidden_tests.newest_whole_one,
    tells="You remove the checkpoints with the oldest dates. Copies have new "
    "dates: the number of steps in the name tells which are the older "
    "ones.",
)

best_is_loaded_at_the_end = edit(
    SOLUTION,
    {
        "return log, best": """
        run.parts["model"].load_state_dict(best["model"])
        return log, best
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="At the end you load the best weights into the model. The parts "
    "stay as the last step left them; the caller has the best and may "
    "load it.",
)

saves_before_the_step = edit(
    SOLUTION,
    {
        "facts = run.step(indices)": """
        before = random_states()
        facts = run.step(indices)
        """,
        'saved |= {"best": best, "random": random_states()}': 'saved |= {"best": best, "random": before}',
    },
    breaks=hidden_tests.random_numbers_go_on,
    tells="Your checkpoint holds the random states from before its last step: "
    "what that step drew is drawn again after a restart.",
)

copied_into_place = edit(
    SOLUTION,
    {
        'os.replace(folder / "unfinished", new_name)': """
        content = (folder / "unfinished").read_bytes()
        new_name.write_bytes(content)
        (folder / "unfinished").unlink()
        """,
    },
    breaks=hidden_tests.killed_while_writing,
    tells="You write another file and copy it to its name, as shutil.move does "
    "between two disks. A copy can be cut off in the middle; os.replace "
    "within the folder renames, at once or not at all.",
)

all_tmp_files_removed = edit(
    SOLUTION,
    {
        "folder.mkdir(exist_ok=True)": """
        folder.mkdir(exist_ok=True)
        for left in folder.glob("*.tmp"):
            left.unlink()
        """,
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You remove all files that end with .tmp. Only your own unfinished "
    "ones are your business.",
)

the_highest_numbers_stay = edit(
    SOLUTION,
    {"there = there[: there.index(new_name) + 1]": ""},
    breaks=hidden_tests.newest_whole_one,
    tells="You keep the checkpoints with the highest numbers. Where broken "
    "copies with higher numbers lie there, the new one is removed at "
    "once: it stays, and the keep - 1 before it.",
)

numpys_reserve_forgotten = edit(
    SOLUTION,
    {
        'set_random_states(saved["random"])': """
        set_random_states(saved["random"])
        kind, keys, pos, _, _ = np.random.get_state()
        np.random.set_state((kind, keys, pos, 0, 0.0))
        """,
    },
    breaks=hidden_tests.random_numbers_go_on,
    tells="Normal numbers are drawn in pairs, and the generators of NumPy "
    "and Python keep the second one in reserve. You leave it out of "
    "the states: put all of them back.",
)

pythons_reserve_forgotten = edit(
    SOLUTION,
    {
        'set_random_states(saved["random"])': """
        set_random_states(saved["random"])
        version, numbers, _ = random.getstate()
        random.setstate((version, numbers, None))
        """,
    },
    breaks=hidden_tests.random_numbers_go_on,
    tells="Normal numbers are drawn in pairs, and the generators of NumPy "
    "and Python keep the second one in reserve. You leave it out of "
    "the states: put all of them back.",
)

moved_from_another_disk = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': "import shutil",
        'os.replace(folder / "unfinished", new_name)': """
        with tempfile.TemporaryDirectory() as place:
            torch.save(saved, Path(place) / "new.pt")
            shutil.move(Path(place) / "new.pt", new_name)
        """,
    },
    breaks=hidden_tests.killed_while_writing,
    tells="You write another file and copy it to its name, as shutil.move does "
    "between two disks. A copy can be cut off in the middle; os.replace "
    "within the folder renames, at once or not at all.",
)

unfinished_with_a_checkpoints_name = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': "",
        'os.replace(folder / "unfinished", new_name)': """
        torch.save(saved, folder / f"step_{number:06d}.tmp.pt")
        os.replace(folder / f"step_{number:06d}.tmp.pt", new_name)
        """,
    },
    breaks=hidden_tests.killed_while_writing,
    tells="Your unfinished file is itself named step_….pt: killed in "
    "between, it is taken for a checkpoint. Give it another beginning "
    "or end.",
)

not_written_if_there = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': "",
        'os.replace(folder / "unfinished", new_name)': """
        if not new_name.exists():
            torch.save(saved, folder / "unfinished")
            os.replace(folder / "unfinished", new_name)
        """,
    },
    breaks=hidden_tests.newest_whole_one,
    tells="You do not write a checkpoint whose name is there already. It "
    "may be somebody's broken copy: replace it.",
)

a_name_drawn_from_random = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': "",
        'os.replace(folder / "unfinished", new_name)': """
        beside = folder / f"{random.random()}.tmp"
        torch.save(saved, beside)
        os.replace(beside, new_name)
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="You draw a file name from Python's global generator: with "
    "checkpoints the run then sees other random numbers than without. "
    "tempfile has a generator of its own.",
)

modes_chosen_by_fit = edit(
    SOLUTION,
    {
        "if place == len(to_do):": """
        if place == len(to_do):
            run.parts["model"].eval()
        """,
        "metric = run.evaluate()": """
        metric = run.evaluate()
        run.parts["model"].train()
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="You call eval() and train() around the evaluation. That wakes up "
    "what the run keeps in eval mode; modes are its own business.",
)

only_its_own_are_counted = edit(
    SOLUTION,
    {
        "number = 0": """
        number = 0
        mine = []
        """,
        """
        there = sorted(folder.glob("step_*.pt"))
        there = there[: there.index(new_name) + 1]
        for old in there[:-keep]:
            old.unlink()
        """: """
        mine.append(new_name)
        for old in mine[:-keep]:
            old.unlink(missing_ok=True)
        """,
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You count only the checkpoints that this process has written. "
    "Those from before the kill are never removed.",
)

one_removed_by_its_number = edit(
    SOLUTION,
    {
        """
        there = sorted(folder.glob("step_*.pt"))
        there = there[: there.index(new_name) + 1]
        for old in there[:-keep]:
            old.unlink()
        """: """
        old = number - keep * run.config["save_every"]
        (folder / f"step_{old:06d}.pt").unlink(missing_ok=True)
        """,
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You compute the number of the one to remove. The checkpoint at "
    "the end is off that grid, and one too many stays: look what is "
    "there.",
)

later_of_equals_after_a_restart = edit(
    SOLUTION,
    {
        'if metric > best["metric"]:': """
        if metric > best["metric"] or (
            done and metric == best["metric"]
        ):
        """,
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="After a restart the later one of equal metrics becomes the best. "
    "The earlier one stays, whether it was before the kill or not.",
)

small_gains_do_not_count = edit(
    SOLUTION,
    {'if metric > best["metric"]:': 'if metric > best["metric"] + 1e-2:'},
    breaks=hidden_tests.the_best_is_kept,
    tells="You ask for a smallest gain. Any higher metric is better, "
    "however close.",
)

draws_of_the_evaluation_undone = edit(
    SOLUTION,
    {
        "if place == len(to_do):": """
        if place == len(to_do):
            states = random_states()
        """,
        "metric = run.evaluate()": """
        metric = run.evaluate()
        set_random_states(states)
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="You put the random states back after each evaluation. What it "
    "draws is part of the run.",
)

two_are_tried = edit(
    SOLUTION,
    {
        'for path in sorted(folder.glob("step_*.pt"), reverse=True):': 'for path in sorted(folder.glob("step_*.pt"), reverse=True)[:2]:',
    },
    breaks=hidden_tests.newest_whole_one,
    tells="You try the two newest checkpoints and then begin again, though "
    "an older one may be whole. Try them all.",
)

epochs_of_equal_length = edit(
    SOLUTION,
    {"number += 1": "number = epoch * len(run.batches(0)) + place"},
    breaks=hidden_tests.nothing_stops_it,
    tells="You count steps as if all epochs were as long as the first.",
)

end_by_the_first_epoch = edit(
    SOLUTION,
    {
        "ends = place == len(to_do) and epoch == num_epochs - 1": "ends = number == num_epochs * len(run.batches(0))",
    },
    breaks=hidden_tests.only_what_is_left,
    tells="You find the end by the length of the first epoch. Where epochs "
    "are of unequal length there is no checkpoint at the end, or at "
    "the wrong step.",
)

checkpoint_where_a_step_raises = edit(
    SOLUTION,
    {
        "facts = run.step(indices)": """
        try:
            facts = run.step(indices)
        except Exception:
            states = {k: one.state_dict() for k, one in run.parts.items()}
            saved = {"parts": states, "done": number - 1, "log": log}
            saved |= {"best": best, "random": random_states()}
            torch.save(saved, folder / f"step_{number - 1:06d}.pt")
            raise
        """,
    },
    breaks=hidden_tests.killed_in_a_step,
    tells="Where a step raises, you write a checkpoint. The weights have moved "
    "already, and the run makes this step twice.",
)

unfinished_under_new_names = edit(
    SOLUTION,
    {
        'torch.save(saved, folder / "unfinished")': """
        beside = tempfile.mktemp(dir=folder)
        torch.save(saved, beside)
        """,
        'os.replace(folder / "unfinished", new_name)': "os.replace(beside, new_name)",
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="Your unfinished file has a new name each time. That of a process which "
    "was killed stays for good: one name is written over.",
)

errors_of_a_short_file_alone = edit(
    SOLUTION,
    {
        "except Exception:  # broken off: there is an older one, perhaps": "except (RuntimeError, EOFError, OSError):",
    },
    breaks=hidden_tests.newest_whole_one,
    tells="A file may also be broken so that `torch.load` raises an "
    "UnpicklingError, which you let through.",
)

a_setting_left_by_fit = edit(
    SOLUTION,
    {
        'num_epochs, keep = run.config["num_epochs"], run.config["keep"]': """
        torch.set_num_threads(2)
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        """,
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

nothing_is_set_if_it_is_finished = edit(
    SOLUTION,
    {
        'set_random_states(saved["random"])': """
        if done == sum(len(run.batches(one)) for one in range(num_epochs)):
            return log, best
        set_random_states(saved["random"])
        """,
    },
    breaks=hidden_tests.random_numbers_go_on,
    tells="Where the run is finished already you return before the random states are "
    "set. Whoever draws after `fit` then gets other numbers than after the run that "
    "finished. Set them in every case.",
)

gradients_cleared_after_the_step = edit(
    SOLUTION,
    {
        "facts = run.step(indices)": """
        facts = run.step(indices)
        run.parts["model"].zero_grad()
        """
    },
    breaks=hidden_tests.nothing_stops_it,
    tells="You clear the gradients. When they go is for `step` to say: a run may "
    "add them up over several calls.",
)

any_file_is_a_checkpoint = edit(
    SOLUTION,
    {
        'sorted(folder.glob("step_*.pt"), reverse=True)': 'sorted(folder.glob("*.pt"), reverse=True)',
    },
    breaks=hidden_tests.files_in_the_folder,
    tells="You take every file `*.pt` for a checkpoint. Weights that somebody else has "
    "put there are none: look for `step_*.pt`.",
)

best_begins_at_minus_one = edit(
    SOLUTION,
    {
        '{"metric": -math.inf}': '{"metric": -1.0, "epoch": None, "model": None}',
    },
    breaks=hidden_tests.the_best_is_kept,
    tells="Your best begins at a number that you take for the lowest. A metric may lie "
    "below it, as a loss with a minus before it does: begin at `-math.inf`.",
)

parents_made_too = edit(
    SOLUTION,
    {
        "folder.mkdir(exist_ok=True)": "folder.mkdir(parents=True, exist_ok=True)"
    },
)
