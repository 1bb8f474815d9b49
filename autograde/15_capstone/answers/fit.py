# ruff: noqa: F821 - names of the set-up cells
"""Answers to `fit` of chapter 15."""

import contextlib
import copy
import math
import os

import torch

from course_grader.bank import accepted, wrong

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
