"""Answers to `train` of chapter 12."""

import math
import random

import numpy as np
import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_one_key_for_each(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    left, epoch, losses = [], 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        scaler.load_state_dict(saved["scaler"])
        left, epoch, losses = saved["left"], saved["epoch"], saved["losses"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, keys.numpy(), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while left or epoch < job.num_epochs:
        if not left:
            order = torch.randperm(job.num_samples)
            left, epoch = list(order.split(job.batch_size)), epoch + 1
        indices = left.pop(0)
        losses.append(job.step(model, optimizer, scheduler, scaler, indices))
        name, keys, *rest = np.random.get_state()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "left": left,
            "epoch": epoch,
            "losses": losses,
            "numpy": (name, torch.from_numpy(keys), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    return model, losses


@accepted()
def by_the_order_and_a_position(job, path):
    def draw_states(states=None):
        if states is None:
            kind, keys, position, has_gauss, gauss = np.random.get_state()
            rest = [position, has_gauss, gauss]
            return [
                torch.get_rng_state(),
                random.getstate(),
                keys.tolist(),
                rest,
            ]
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        keys = np.array(states[2], dtype=np.uint32)
        np.random.set_state(("MT19937", keys, *states[3]))

    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, order = [], None
    per_epoch = math.ceil(job.num_samples / job.batch_size)
    if path.exists():
        states, order, losses, random_states = torch.load(path).values()
        for part, state in zip(parts, states, strict=True):
            part.load_state_dict(state)
        draw_states(random_states)
    for step in range(len(losses), job.num_epochs * per_epoch):
        if step % per_epoch == 0:
            order = torch.randperm(job.num_samples)
        start = step % per_epoch * job.batch_size
        indices = order[start : start + job.batch_size]
        losses.append(job.step(*parts, indices))
        states = [part.state_dict() for part in parts]
        content = dict(zip("abcd", (states, order, losses, draw_states())))
        torch.save(content, path)
    return model, losses


@accepted()
def order_drawn_again_from_its_random_state(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    scaler = job.make_scaler()
    first_epoch, first_batch, losses, resumed = 0, 0, [], None
    if path.exists():
        resumed = torch.load(path)
        first_epoch, first_batch = resumed["epoch"], resumed["batch"]
        losses = resumed["losses"]
        model.load_state_dict(resumed["model"])
        optimizer.load_state_dict(resumed["optimizer"])
        scheduler.load_state_dict(resumed["scheduler"])
        scaler.load_state_dict(resumed["scaler"])
        torch.set_rng_state(resumed["before_the_order"])
    for epoch in range(first_epoch, job.num_epochs):
        before_the_order = torch.get_rng_state()
        batches = torch.randperm(job.num_samples).split(job.batch_size)
        if resumed:
            torch.set_rng_state(resumed["torch"])
            state = (*resumed["numpy"],)
            state = (state[0], state[1].numpy(), *state[2:])
            np.random.set_state(state)
            random.setstate(resumed["python"])
            resumed = None
        for batch, indices in enumerate(batches):
            if epoch == first_epoch and batch < first_batch:
                continue
            parts = model, optimizer, scheduler, scaler
            losses.append(job.step(*parts, indices))
            name, keys, *rest = np.random.get_state()
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "scaler": scaler.state_dict(),
                    "epoch": epoch,
                    "batch": batch + 1,
                    "losses": losses,
                    "before_the_order": before_the_order,
                    "torch": torch.get_rng_state(),
                    "numpy": [name, torch.from_numpy(keys), *rest],
                    "python": random.getstate(),
                },
                path,
            )
    return model, losses


@accepted()
def all_parts_under_one_roof(job, path):
    class Run:
        def __init__(self):
            self.model = job.make_model()
            self.optimizer = job.make_optimizer(self.model)
            self.scheduler = job.make_scheduler(self.optimizer)
            self.scaler = job.make_scaler()
            self.todo = torch.empty(0, dtype=torch.int64)
            self.epochs_left = job.num_epochs
            self.losses = torch.empty(0, dtype=torch.float64)

        def parts(self):
            return self.model, self.optimizer, self.scheduler, self.scaler

        def state_dict(self):
            numpy = np.random.get_state(legacy=False)
            numpy["state"]["key"] = numpy["state"]["key"].tolist()
            return {
                "parts": [part.state_dict() for part in self.parts()],
                "todo": self.todo,
                "epochs_left": self.epochs_left,
                "losses": self.losses,
                "random": [torch.get_rng_state(), numpy, random.getstate()],
            }

        def load_state_dict(self, state):
            for part, own in zip(self.parts(), state["parts"], strict=True):
                part.load_state_dict(own)
            self.todo, self.losses = state["todo"], state["losses"]
            self.epochs_left = state["epochs_left"]
            of_torch, of_numpy, of_python = state["random"]
            key = np.array(of_numpy["state"]["key"], dtype=np.uint32)
            of_numpy["state"]["key"] = key
            torch.set_rng_state(of_torch)
            np.random.set_state(of_numpy)
            random.setstate(of_python)

        def one_step(self):
            if not len(self.todo):
                self.todo = torch.randperm(job.num_samples)
                self.epochs_left -= 1
            batch = self.todo[: job.batch_size]
            self.todo = self.todo[job.batch_size :].clone()
            loss = torch.tensor(
                [job.step(*self.parts(), batch)], dtype=torch.float64
            )
            self.losses = torch.cat([self.losses, loss])

    run = Run()
    if path.is_file():
        run.load_state_dict(torch.load(path, weights_only=True))
    while len(run.todo) or run.epochs_left:
        run.one_step()
        torch.save(run.state_dict(), path)
    return run.model, run.losses.tolist()


@accepted()
def with_a_checkpoint_before_the_first_step(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    if not path.exists():
        name, keys, *rest = np.random.get_state()
        saved = {
            "parts": [part.state_dict() for part in parts],
            "losses": losses,
            "epoch": epoch,
            "left": left,
            "numpy": (name, keys.tolist(), *rest),
            "python": random.getstate(),
            "torch": torch.get_rng_state(),
        }
        torch.save(saved, path)
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@accepted()
def with_states_from_other_functions(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        of_numpy = saved["numpy"]
        keys = np.array(of_numpy["state"]["key"], dtype=np.uint32)
        of_numpy["state"]["key"] = keys
        np.random.set_state(of_numpy)
        random.setstate(saved["python"])
        torch.default_generator.set_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            of_numpy = np.random.get_state(legacy=False)
            of_numpy["state"]["key"] = of_numpy["state"]["key"].tolist()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": of_numpy,
                "python": random.getstate(),
                "torch": torch.default_generator.get_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@accepted()
def mended_saved_in_the_end_in_any_case(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            losses.append(job.step(*parts, left.pop(0)))
            name, keys, *rest = np.random.get_state()
            saved = {
                "parts": [part.state_dict() for part in parts],
                "losses": losses,
                "epoch": epoch,
                "left": left,
                "numpy": (name, keys.tolist(), *rest),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
            }
            torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses


@wrong(
    breaks=hidden_tests.interrupted_step,
    tells="You save when a step is interrupted. Half a step has then "
    "changed weights, random states or the scheduler, and the step "
    "is made again on top. Save after whole steps only.",
)
def saved_in_the_end_in_any_case(job, path):
    model = job.make_model()
    optimizer = job.make_optimizer(model)
    scheduler = job.make_scheduler(optimizer)
    parts = (model, optimizer, scheduler, job.make_scaler())
    losses, epoch, left = [], 0, None
    if path.exists():
        saved = torch.load(path)
        for part, state in zip(parts, saved["parts"], strict=True):
            part.load_state_dict(state)
        losses, epoch, left = saved["losses"], saved["epoch"], saved["left"]
        name, keys, *rest = saved["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), *rest))
        random.setstate(saved["python"])
        torch.set_rng_state(saved["torch"])
    while epoch < job.num_epochs:
        if left is None:
            left = list(torch.randperm(job.num_samples).split(job.batch_size))
        while left:
            try:
                losses.append(job.step(*parts, left[0]))
                left.pop(0)
            finally:
                name, keys, *rest = np.random.get_state()
                saved = {
                    "parts": [part.state_dict() for part in parts],
                    "losses": losses,
                    "epoch": epoch,
                    "left": left,
                    "numpy": (name, keys.tolist(), *rest),
                    "python": random.getstate(),
                    "torch": torch.get_rng_state(),
                }
                torch.save(saved, path)
        epoch, left = epoch + 1, None
    return model, losses
