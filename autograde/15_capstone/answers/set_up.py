# ruff: noqa: F821 - names of the set-up cells
"""Answers to `set_up` of chapter 15."""

import math

import numpy as np
import torch

from course_grader.bank import accepted


@accepted(body=True)
def by_names_of_parameters():
    def frozen_part(name, config):
        return any(
            name == part or name.startswith(part + ".")
            for part in config["frozen"]
        )

    def set_up(model, config):
        groups = {True: [], False: []}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if frozen_part(name, config):
                parameter.requires_grad = False
        for parameter in model.parameters():
            if parameter.requires_grad:
                groups[parameter.dim() >= 2].append(parameter)
        optimizer = torch.optim.AdamW(
            [
                {
                    "params": members,
                    "weight_decay": config["weight_decay"] if decays else 0,
                }
                for decays, members in groups.items()
                if members
            ],
            lr=config["lr"],
        )
        warmup, total = config["warmup_steps"], config["num_steps"]

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            if step >= total:
                return 0.0
            share = (step - warmup) / (total - warmup)
            return (1 + math.cos(math.pi * share)) / 2

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

    def train_mode(model, config):
        model.train()
        for name, module in model.named_modules(remove_duplicate=False):
            if frozen_part(name, config):
                module.eval()


@accepted(body=True)
def by_a_group_for_each_parameter():
    def set_up(model, config):
        for name in config["frozen"]:
            for parameter in model.get_submodule(name).parameters():
                parameter.requires_grad = False
        optimizer = torch.optim.AdamW(
            [
                {
                    "params": [one],
                    "weight_decay": config["weight_decay"] * (one.ndim > 1),
                }
                for one in model.parameters()
                if one.requires_grad
            ],
            lr=config["lr"],
        )
        w, n = config["warmup_steps"], config["num_steps"]
        table = [(t + 1) / w for t in range(w)]
        table += [
            0.5 + 0.5 * math.cos(math.pi * (t - w) / (n - w))
            for t in range(w, n)
        ]
        return optimizer, torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda t: table[t] if t < n else 0.0
        )

    def train_mode(model, config):
        model.train(True)
        for name in config["frozen"]:
            for module in model.get_submodule(name).modules():
                module.training = False


@accepted(body=True)
def by_a_schedule_of_its_own():
    class WarmupCosine:
        def __init__(self, optimizer, config):
            self.optimizer, self.config, self.t = optimizer, config, 0
            self.apply()

        def apply(self):
            w, n = self.config["warmup_steps"], self.config["num_steps"]
            if self.t < w:
                share = (self.t + 1) / w
            else:
                way = (min(self.t, n) - w) / (n - w)
                share = math.cos(math.pi * way / 2) ** 2
            for group in self.optimizer.param_groups:
                group["lr"] = self.config["lr"] * share

        def step(self):
            self.t += 1
            self.apply()

        def state_dict(self):
            return {"t": self.t}

        def load_state_dict(self, state):
            self.t = state["t"]
            self.apply()

    def set_up(model, config):
        for name in config["frozen"]:
            model.get_submodule(name).requires_grad_(False)
        wide = [
            p for p in model.parameters() if p.requires_grad and p.dim() > 1
        ]
        thin = [
            p for p in model.parameters() if p.requires_grad and p.dim() < 2
        ]
        optimizer = torch.optim.AdamW(
            [{"params": wide}],
            lr=config["lr"],
            weight_decay=config["weight_decay"],
        )
        optimizer.add_param_group({"params": thin, "weight_decay": 0.0})
        return optimizer, WarmupCosine(optimizer, config)

    def train_mode(model, config):
        model.train()
        for name in config["frozen"]:
            model.get_submodule(name).train(False)


@accepted(body=True)
def by_a_subclass_of_lr_scheduler():
    class Plan(torch.optim.lr_scheduler.LRScheduler):
        def __init__(self, optimizer, warmup, num_steps):
            self.warmup, self.num_steps = warmup, num_steps
            super().__init__(optimizer)

        def get_lr(self):
            t = self.last_epoch
            if t < self.warmup:
                share = (t + 1) / self.warmup
            else:
                way = (t - self.warmup) / (self.num_steps - self.warmup)
                share = 0.5 * (1 + math.cos(math.pi * min(way, 1)))
            return [share * base for base in self.base_lrs]

    def set_up(model, config):
        frozen = set()
        for name in config["frozen"]:
            frozen |= {id(p) for p in model.get_submodule(name).parameters()}
        decays, others = [], []
        for parameter in model.parameters():
            parameter.requires_grad_(
                parameter.requires_grad and id(parameter) not in frozen
            )
            if parameter.requires_grad:
                (decays if parameter.dim() > 1 else others).append(parameter)
        optimizer = torch.optim.AdamW(
            [
                {"params": decays, "weight_decay": config["weight_decay"]},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=config["lr"],
        )
        plan = Plan(optimizer, config["warmup_steps"], config["num_steps"])
        return optimizer, plan

    def train_mode(model, config):
        model.train()
        frozen = [model.get_submodule(name) for name in config["frozen"]]
        for module in frozen:
            module.apply(lambda one: one.train(False))


@accepted(body=True)
def by_an_object_as_factor():
    class Share:
        def __init__(self, config):
            self.warmup = config["warmup_steps"]
            self.rest = config["num_steps"] - config["warmup_steps"]

        def __call__(self, t):
            if t < self.warmup:
                return (t + 1) / self.warmup
            angle = torch.tensor(
                math.pi * min(1.0, (t - self.warmup) / self.rest)
            ).double()
            return (0.5 + 0.5 * angle.cos()).item()

    def set_up(model, config):
        for name, module in model.named_modules():
            if name in config["frozen"]:
                module.requires_grad_(False)
        trained = list(filter(lambda p: p.requires_grad, model.parameters()))
        by_decay = {}
        for one in trained:
            decay = config["weight_decay"] if len(one.shape) > 1 else 0.0
            by_decay.setdefault(decay, []).append(one)
        optimizer = torch.optim.AdamW(
            [
                {"params": params, "weight_decay": decay}
                for decay, params in by_decay.items()
            ],
            lr=config["lr"],
        )
        share = Share(config)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for name, module in model.named_modules(remove_duplicate=False):
            if name in config["frozen"]:
                module.eval()


@accepted(body=True)
def by_a_table_of_shares():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [one for one in trained if one.dim() > 1],
                "weight_decay": config["weight_decay"],
            },
            {
                "params": [one for one in trained if one.dim() <= 1],
                "weight_decay": 0.0,
            },
        ]
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        warmup, num_steps = config["warmup_steps"], config["num_steps"]

        up = (np.arange(warmup) + 1) / max(1, warmup)
        down = 0.5 * (1 + np.cos(np.linspace(0, np.pi, num_steps - warmup + 1)))
        table = np.concatenate([up, down])

        def share(t: int) -> float:
            return float(table[min(t, num_steps)])

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        parts = [model.get_submodule(name) for name in config["frozen"]]
        still = {id(one) for part in parts for one in part.modules()}
        for one in model.modules():
            one.training = id(one) not in still


@accepted(body=True)
def mended_decay_by_the_word_bias():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [
                    one for one in trained if one.dim() > 1 and one is not None
                ],
                "weight_decay": config["weight_decay"],
            },
            {
                "params": [one for one in trained if one.dim() <= 1],
                "weight_decay": 0.0,
            },
        ]
        optimizer = torch.optim.AdamW(groups, lr=config["lr"])
        warmup, num_steps = config["warmup_steps"], config["num_steps"]

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()
