# ruff: noqa: F821 - names of the set-up cells
"""The answer bank of chapter 15: one run with all of it."""

import contextlib
import copy
import json
import math
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# set_up, train_mode


@accepted("set_up", body=True)
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
        for name, module in model.named_modules():
            module.training = not frozen_part(name, config)


@accepted("set_up", body=True)
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


@accepted("set_up", body=True)
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
            wide, lr=config["lr"], weight_decay=config["weight_decay"]
        )
        optimizer.add_param_group({"params": thin, "weight_decay": 0.0})
        return optimizer, WarmupCosine(optimizer, config)

    def train_mode(model, config):
        model.train()
        for name in config["frozen"]:
            model.get_submodule(name).train(False)


@accepted("set_up", body=True)
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


@accepted("set_up", body=True)
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
        for name, module in model.named_modules():
            if name in config["frozen"]:
                module.eval()


@accepted("set_up", body=True)
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


@accepted("set_up", body=True)
def by_one_function_per_group():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        shares = [share] * len(optimizer.param_groups)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, shares)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "Nothing is frozen: eval mode alone keeps statistics still, not "
        "weights. Call requires_grad_(False) on the parts."
    ),
)
def without_freezing():
    def set_up(model, config):
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


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "You froze every parameter whose name begins with the text of a "
        "part's name, so stem froze stem2 as well. A name goes on with a "
        "dot; get_submodule finds the very part."
    ),
)
def freezing_by_the_start_of_names():
    def set_up(model, config):
        for name, one in model.named_parameters():
            if name.startswith(tuple(config["frozen"])):
                one.requires_grad_(False)
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


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "You made everything trainable first, also what somebody had frozen "
        "before. Parameters outside the named parts keep their flag."
    ),
)
def unfreezing_all_others():
    def set_up(model, config):
        model.requires_grad_(True)
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


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "You froze the parameters of the part itself and not those of the "
        "layers within it: parameters(recurse=False) does not look inside."
    ),
)
def freezing_one_level():
    def set_up(model, config):
        for part in config["frozen"]:
            for one in model.get_submodule(part).parameters(recurse=False):
                one.requires_grad_(False)
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "Frozen parameters stand in your optimizer. Whoever gives them a "
        "gradient, or has left one, lets weight decay and moments move "
        "them. Give the optimizer the trainable ones."
    ),
)
def all_parameters_in_the_optimizer():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = list(model.parameters())
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "Biases and norms are decayed as well. Parameters with fewer than "
        "two dimensions get a weight decay of 0."
    ),
)
def decay_for_all():
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
                "weight_decay": config["weight_decay"],
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "You decided about weight decay by the word bias in the name. "
        "Norms' weights are called weight, and a matrix may be called a "
        "bias: count dimensions."
    ),
)
def decay_by_the_word_bias():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [
                    p
                    for n, p in model.named_parameters()
                    if p.requires_grad and "bias" not in n
                ],
                "weight_decay": config["weight_decay"],
            },
            {
                "params": [
                    p
                    for n, p in model.named_parameters()
                    if p.requires_grad and "bias" in n
                ],
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "The matrices have AdamW's default weight decay of 0.01 and not "
        "that of the config."
    ),
)
def default_decay():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        trained = [one for one in model.parameters() if one.requires_grad]
        groups = [
            {
                "params": [one for one in trained if one.dim() > 1],
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "This is Adam. It adds the weight decay to the gradient, where the "
        "moments scale it away; AdamW decays the weights themselves."
    ),
)
def adam_with_l2():
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
        optimizer = torch.optim.Adam(groups, lr=config["lr"])
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


@wrong(
    "set_up",
    breaks=hidden_tests.rates_of_the_plan,
    body=True,
    tells=(
        "Your warm-up begins with a rate of 0: the first step does nothing. "
        "The share of step t is (t + 1) / W."
    ),
)
def warm_up_from_zero():
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

        def share(t: int) -> float:
            if t < warmup:
                return t / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.rates_of_the_plan,
    body=True,
    tells=(
        "Your cosine began with the run and is under way when the warm-up "
        "ends, so the rate jumps down there. Count from the end of the "
        "warm-up: (t - W) / (N - W)."
    ),
)
def cosine_from_the_first_step():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, t / num_steps)
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.rates_of_the_plan,
    body=True,
    tells=(
        "After the warm-up your rate falls along a straight line, not along "
        "a cosine."
    ),
)
def a_line_down():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 1 - way

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.corners_of_the_plan,
    body=True,
    tells=(
        "Beyond the plan your rate rises again, as a cosine does. Let the "
        "share of the way that is done not exceed 1."
    ),
)
def rate_rises_again():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = (t - warmup) / (num_steps - warmup)
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.corners_of_the_plan,
    body=True,
    tells=(
        "Your rate does not fall to 0 but stays at a hundredth of its peak. "
        "The plan ends with 0."
    ),
)
def never_below_a_hundredth():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return max(0.01, 0.5 * (1 + math.cos(math.pi * way)))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.corners_of_the_plan,
    body=True,
    tells=(
        "Without a warm-up you divide by its length, 0. Divide only while t "
        "is below W."
    ),
)
def division_by_no_warm_up():
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

        def share(t: int) -> float:
            up = min(1.0, (t + 1) / warmup)
            if t < warmup:
                return up
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.from_state_dicts,
    body=True,
    tells=(
        "Your schedule counts its calls in a variable of its own, which is "
        "not in its state dict: after a restart the warm-up comes again. "
        "Use the number that the schedule passes in."
    ),
)
def counting_by_itself():
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

        calls = iter(range(10**9))

        def share(_: int) -> float:
            t = next(calls)
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.rates_of_the_plan,
    body=True,
    tells=(
        "Only one group follows the plan; biases and norms keep the full "
        "rate. Give the schedule one function, and it holds for all groups."
    ),
)
def only_the_matrices_follow_the_plan():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(
            optimizer, [share, lambda t: 1.0]
        )

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "Your set_up changes modes. It only freezes and makes the "
        "optimizer; train_mode is called before every epoch and chooses the "
        "modes."
    ),
)
def set_up_chooses_the_modes():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
            model.get_submodule(part).eval()
        model.body.train()
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


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "Frozen parts are in training mode: their normalization uses the "
        "batch and moves its statistics, though no weight moves. Put them "
        "into eval mode after model.train()."
    ),
)
def all_in_training_mode():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "Only the normalization of the frozen parts is in eval mode; their "
        "dropout still draws. Call eval() on the whole part."
    ),
)
def only_batch_norm_in_eval():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            for one in model.get_submodule(part).modules():
                if isinstance(one, nn.BatchNorm1d):
                    one.eval()


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "You set the flag of the frozen part itself. Modes are kept by "
        "every layer within: eval() reaches them all."
    ),
)
def only_the_outermost_module():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).training = False


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "You put the frozen parts into eval mode and nothing into training "
        "mode: after an evaluation the rest stays in eval mode too."
    ),
)
def the_rest_is_left_alone():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "Frozen parts are in training mode: their normalization uses the "
        "batch and moves its statistics, though no weight moves. Put them "
        "into eval mode after model.train()."
    ),
)
def eval_before_train():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).eval()
        model.train()


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "named_parameters gives a parameter that layers share one name "
        "only, its first. By names you miss it in the frozen part; "
        "get_submodule finds it."
    ),
)
def freezing_without_shared_parameters():
    def set_up(model, config):
        for name, one in model.named_parameters():
            parts = [part + "." for part in config["frozen"]]
            if name.startswith(tuple(parts)):
                one.requires_grad_(False)
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "You gave AdamW an eps of your own. What the exercise does not say "
        "is as by default."
    ),
)
def another_eps():
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
        optimizer = torch.optim.AdamW(groups, lr=config["lr"], eps=1e-6)
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


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "You tell the frozen parts by requires_grad. Dropout and "
        "activations have no parameters to tell it by, and others may be "
        'frozen that the config does not name. Go by config["frozen"].'
    ),
)
def modes_by_the_flags_of_parameters():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for module in model.modules():
            flags = [one.requires_grad for one in module.parameters()]
            if flags and not any(flags):
                module.eval()


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "train_mode uses what set_up has left on the model and not its "
        "own config. It must do for a model that set_up has not seen, and "
        "follow a config that names other parts."
    ),
)
def modes_remembered_by_set_up():
    def set_up(model, config):
        for part in config["frozen"]:
            model.get_submodule(part).requires_grad_(False)
        model.still = list(config["frozen"])
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in model.still:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "You replace the frozen layers' own train method, so nobody can "
        "ever put them into training mode again: not a config that names "
        "other parts, either. Only set the mode."
    ),
)
def frozen_for_ever():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            for one in model.get_submodule(part).modules():
                one.training = False
                one.train = lambda mode=True, one=one: one


@wrong(
    "set_up",
    breaks=hidden_tests.modes_of_the_parts,
    body=True,
    tells=(
        "You take the names out of the caller's list while you go through "
        "it: train_mode then finds nothing frozen. Read the config and "
        "leave it as it is."
    ),
)
def names_used_up():
    def set_up(model, config):
        while config["frozen"]:
            model.get_submodule(config["frozen"].pop()).requires_grad_(False)
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "You chose another implementation of AdamW (foreach, fused). What "
        "the exercise does not say is as by default."
    ),
)
def another_implementation():
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
        optimizer = torch.optim.AdamW(groups, lr=config["lr"], fused=True)
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


@wrong(
    "set_up",
    breaks=hidden_tests.frozen_parts,
    body=True,
    tells=(
        "Only the matrices of the frozen parts are frozen; their biases "
        "and norms still train. Every parameter of a part counts."
    ),
)
def only_matrices_frozen():
    def set_up(model, config):
        for part in config["frozen"]:
            for one in model.get_submodule(part).parameters():
                if one.dim() > 1:
                    one.requires_grad_(False)
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


@wrong(
    "set_up",
    breaks=hidden_tests.decay_groups,
    body=True,
    tells=(
        "The frozen parameters stand in the optimizer with a rate of 0. "
        "They do not belong there: the optimizer gets the trainable ones "
        "only."
    ),
)
def frozen_ones_at_rate_zero():
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
        still = [one for one in model.parameters() if not one.requires_grad]
        groups.append({"params": still, "weight_decay": 0.0, "lr": 0.0})
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


@wrong(
    "set_up",
    breaks=hidden_tests.rates_of_the_plan,
    body=True,
    tells=(
        "Your cosine reaches 0 one step too early. It takes N - W steps "
        "from its first to 0, not one less."
    ),
)
def cosine_one_step_short():
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

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / max(1, num_steps - warmup - 1))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


@wrong(
    "set_up",
    breaks=hidden_tests.from_state_dicts,
    body=True,
    tells=(
        "The state dict of your schedule is empty: after a restart the "
        "warm-up comes again. The number of steps belongs into it."
    ),
)
def schedule_without_a_state():
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

        class Own:
            def __init__(self):
                self.t = 0
                self.put()

            def put(self):
                for g in optimizer.param_groups:
                    g["lr"] = config["lr"] * share(self.t)

            def step(self):
                self.t += 1
                self.put()

            def state_dict(self):
                return {}

            def load_state_dict(self, state):
                pass

        def share(t: int) -> float:
            if t < warmup:
                return (t + 1) / warmup
            way = min(1.0, (t - warmup) / (num_steps - warmup))
            return 0.5 * (1 + math.cos(math.pi * way))

        return optimizer, Own()

    def train_mode(model, config):
        model.train()
        for part in config["frozen"]:
            model.get_submodule(part).eval()


# train_step


@accepted("train_step")
def by_shares_of_means(model, optimizer, schedule, scaler, batches, config):
    facts = {
        "lr": optimizer.param_groups[0]["lr"],
        "scale": scaler.get_scale(),
        "loss": 0.0,
    }
    total = sum(x.shape[0] for x, _ in batches)
    model.zero_grad(set_to_none=False)
    context = contextlib.nullcontext()
    if config["dtype"] is not None:
        context = torch.autocast("cpu", dtype=config["dtype"])
    for x, y in batches:
        with context:
            loss = nn.functional.cross_entropy(model(x), y) * (len(y) / total)
        scaler.scale(loss).backward()
        facts["loss"] += float(loss.detach())
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(
        [p for group in optimizer.param_groups for p in group["params"]],
        max_norm=config["max_norm"],
        foreach=False,
    )
    scaler.step(optimizer)
    scaler.update()
    facts["grad_norm"] = float(norm)
    facts["skipped"] = bool(scaler.get_scale() < facts["scale"])
    if not facts["skipped"]:
        schedule.step()
    model.zero_grad(set_to_none=True)
    return facts


@accepted("train_step")
def by_counting_optimizer_steps(
    model, optimizer, schedule, scaler, batches, config
):
    made = []
    handle = optimizer.register_step_post_hook(lambda *_: made.append(1))
    rate, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
    samples = sum(len(y) for _, y in batches)
    for parameter in model.parameters():
        parameter.grad = None
    total = 0.0
    for x, y in batches:
        on = config["dtype"] is not None
        with torch.autocast("cpu", config["dtype"], enabled=on):
            losses = F.cross_entropy(model(x), y, reduction="none")
            part = losses.sum() / samples
        scaler.scale(part).backward()
        total += part.item()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
    scaler.step(optimizer)
    scaler.update()
    handle.remove()
    if made:
        schedule.step()
    for parameter in model.parameters():
        parameter.grad = None
    return dict(
        loss=total,
        grad_norm=norm.item(),
        skipped=not made,
        lr=rate,
        scale=scale,
    )


@accepted("train_step")
def by_division_after_the_sum(
    model, optimizer, schedule, scaler, batches, config
):
    lr, scale = float(optimizer.param_groups[0]["lr"]), scaler.get_scale()
    model.zero_grad()
    n, loss_sum = 0, 0.0
    for x, y in batches:
        if config["dtype"] is None:
            loss = F.cross_entropy(model(x), y, reduction="sum")
        else:
            with torch.autocast(x.device.type, dtype=config["dtype"]):
                loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss).backward()
        loss_sum += loss.item()
        n += len(x)
    scaler.unscale_(optimizer)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    for one in gradients:
        one.div_(n)
    norm = nn.utils.get_total_norm(gradients)
    nn.utils.clip_grads_with_norm_(model.parameters(), config["max_norm"], norm)
    scaler.step(optimizer)
    scaler.update()
    skipped = scaler.get_scale() < scale
    if not skipped:
        schedule.step()
    model.zero_grad()
    return {
        "loss": loss_sum / n,
        "grad_norm": float(norm),
        "skipped": skipped,
        "lr": lr,
        "scale": scale,
    }


@accepted("train_step")
def by_clipping_with_a_factor(
    model, optimizer, schedule, scaler, batches, config
):
    facts = dict(lr=optimizer.param_groups[0]["lr"], scale=scaler.get_scale())
    total = sum(len(y) for _, y in batches)
    model.zero_grad()
    losses = []
    for x, y in batches:
        with torch.autocast(
            "cpu",
            dtype=config["dtype"] or torch.bfloat16,
            enabled=bool(config["dtype"]),
        ):
            loss = F.cross_entropy(model(x), y, reduction="sum") / total
        scaler.scale(loss).backward()
        losses.append(loss.item())
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(g.double().square().sum().item() for g in grads))
    if norm > config["max_norm"]:
        for g in grads:
            g.mul_(config["max_norm"] / norm)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    facts["skipped"] = scaler.is_enabled() and scaler.get_scale() < before
    if not facts["skipped"]:
        schedule.step()
    model.zero_grad()
    return {**facts, "loss": sum(losses), "grad_norm": norm}


@accepted("train_step")
def by_a_finite_norm(model, optimizer, schedule, scaler, batches, config):
    lr = schedule.get_last_lr()[0]
    scale = scaler.get_scale()
    total = sum(y.numel() for _, y in batches)
    model.zero_grad(set_to_none=True)
    loss_sum = torch.zeros((), dtype=torch.float64)
    for x, y in batches:
        with torch.autocast(
            "cpu", config["dtype"], enabled=config["dtype"] is not None
        ):
            log_probs = F.log_softmax(model(x), dim=1)
            loss = F.nll_loss(log_probs, y, reduction="sum")
        scaler.scale(loss / total).backward()
        loss_sum += loss.detach()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
    scaler.step(optimizer)
    scaler.update()
    skipped = scaler.is_enabled() and not math.isfinite(norm)
    if not skipped:
        schedule.step()
    model.zero_grad()
    return {
        "loss": (loss_sum / total).item(),
        "grad_norm": norm.item(),
        "skipped": skipped,
        "lr": lr,
        "scale": scale,
    }


@accepted("train_step", body=True)
def by_its_own_skip():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        skipped = scaler.is_enabled() and not math.isfinite(norm.item())
        if not skipped:
            optimizer.step()
        scaler.update()
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@accepted("train_step", body=True)
def by_adding_up_gradients():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.nll_loss(
                    F.log_softmax(model(x), 1), y, reduction="sum"
                )
            scaled = scaler.scale(loss / num_samples)
            wanted = [one for one in model.parameters() if one.requires_grad]
            for one, grad in zip(
                wanted, torch.autograd.grad(scaled, wanted), strict=True
            ):
                one.grad = grad if one.grad is None else one.grad + grad
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@accepted("train_step", body=True)
def by_a_limit_that_is_scaled():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        norm = nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"] * scaler.get_scale()
        )
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item() / scale,
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You took the mean over the micro-batches of their means. In a "
        "small micro-batch a sample then counts more. Sum, and divide by "
        "the samples of the whole list (chapter 09)."
    ),
)
def mean_of_means():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss / len(batches)).backward()
            loss_sum += loss.item() * len(y)
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You added up the means of the micro-batches: the gradient is too "
        "large by about the number of micro-batches. Divide by the samples "
        "of the whole list."
    ),
)
def sum_of_means():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            loss_sum += loss.item() * len(y)
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "The gradient is that of the sum over the samples. Divide by their "
        "number before the backward pass."
    ),
)
def sum_over_samples():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You clear the gradients before every micro-batch, so only the last "
        "one counts. Clear them once per step."
    ),
)
def only_the_last_micro_batch():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            model.zero_grad()
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.one_micro_batch_at_a_time,
    body=True,
    tells=(
        "You join the micro-batches into one. The result is right, and the "
        "memory that they were to save is gone."
    ),
)
def one_large_batch():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        x, y = (torch.cat(one) for one in zip(*batches, strict=True))
        for x, y in [(x, y)]:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.one_micro_batch_at_a_time,
    body=True,
    tells=(
        "You go backward once, at the end: until then the graphs of all "
        "micro-batches are kept. Go backward on each before the next one."
    ),
)
def backward_at_the_end():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum, scaled = config["dtype"], 0.0, 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaled = scaled + scaler.scale(loss / num_samples)
            loss_sum += loss.item()
        scaled.backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clipped the scaled gradient. Its norm is larger by the scale, "
        "and the step far too small. Call scaler.unscale_(optimizer) before "
        "you clip."
    ),
)
def clipping_the_scaled_gradient():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clipped the scaled gradient. Its norm is larger by the scale, "
        "and the step far too small. Call scaler.unscale_(optimizer) before "
        "you clip."
    ),
)
def unscaling_after_clipping():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "The step was made with a gradient that is not clipped: max_norm "
        "has no effect on it. Clip after unscale_ and before the step."
    ),
)
def without_clipping():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clipped each entry of the gradient. That turns its direction; "
        "clip the norm of all parameters together (chapter 08)."
    ),
)
def clipping_by_value():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        nn.utils.clip_grad_value_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clipped the norm of each parameter alone. The limit holds for "
        "the norm of all of them together."
    ),
)
def clipping_each_parameter():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        for one in model.parameters():
            nn.utils.clip_grad_norm_(one, config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You bring every gradient to the norm max_norm, also one that was "
        "shorter. Clipping only shortens."
    ),
)
def always_stretched_to_the_limit():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
        for one in model.parameters():
            if one.grad is not None and math.isfinite(norm):
                one.grad.mul_(config["max_norm"] / norm)
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "The step was made with a gradient that is not clipped: max_norm "
        "has no effect on it. Clip after unscale_ and before the step."
    ),
)
def clipping_after_the_step():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clip after every micro-batch. What is clipped must be the "
        "gradient of all of them: once, before the step."
    ),
)
def clipping_within_the_loop():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            nn.utils.clip_grad_norm_(
                model.parameters(), config["max_norm"] * scale
            )
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.overflow_is_left_out,
    body=True,
    tells=(
        "You call optimizer.step() and not scaler.step(optimizer): an "
        "infinite gradient goes into the weights."
    ),
)
def optimizer_steps_by_itself():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        optimizer.step()
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.overflow_is_left_out,
    body=True,
    tells=(
        "You raise at an overflow. With a scaler that is an ordinary event: "
        "it leaves out the step and lowers the scale."
    ),
)
def overflow_raises():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"], error_if_nonfinite=True
        )
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.overflow_is_left_out,
    body=True,
    tells=(
        "The scaler is not updated: its scale never falls after an overflow "
        "and never grows. Call scaler.update() once per step."
    ),
)
def scaler_is_not_updated():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        skipped = not math.isfinite(norm)
        scaler._per_optimizer_states.clear()
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.schedule_moves_once,
    body=True,
    tells=(
        "The schedule moves also where the step was left out. Then the plan "
        "runs ahead of the steps, and PyTorch warns if it is the first."
    ),
)
def schedule_on_every_call():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.schedule_moves_once,
    body=True,
    tells=(
        "The schedule moves once per micro-batch: the plan is over long "
        "before the run. Move it once per optimizer step."
    ),
)
def schedule_per_micro_batch():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            for _ in batches:
                schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.schedule_moves_once,
    body=True,
    tells=(
        "The schedule never moves. Call schedule.step() after each step "
        "that was made."
    ),
)
def schedule_never():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.schedule_moves_once,
    body=True,
    tells=(
        "The schedule moves before the optimizer: the first rate of the "
        "plan is never used. And it moves where the step is left out."
    ),
)
def schedule_first():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        schedule.step()
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.schedule_moves_once,
    body=True,
    tells=(
        "You take every change of the scale for a step left out. It also "
        "grows, after steps that were made; only a smaller one means a "
        "skip."
    ),
)
def any_change_of_scale_is_a_skip():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() != scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.overflow_is_left_out,
    body=True,
    tells=(
        "You ask whether the loss is finite. Gradients overflow while the "
        "loss is fine. Ask the scale: only a skip lowers it."
    ),
)
def skip_by_the_loss():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = not math.isfinite(loss_sum)
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "The backward pass is under autocast. It belongs outside: each "
        "operation goes back in the dtype in which it went forward."
    ),
)
def everything_under_autocast():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
                scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "Autocast is on also where dtype is None: then torch.autocast takes "
        "its default, bfloat16."
    ),
)
def autocast_always_on():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(x.device.type, dtype):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=("There is no autocast: the forward pass is in full precision."),
)
def without_autocast():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(x.device.type, dtype, enabled=False):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "You do not name the dtype, and autocast takes bfloat16 on a CPU "
        "also where float16 was asked for."
    ),
)
def autocast_default_dtype():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(x.device.type, enabled=dtype is not None):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "You convert x yourself. Autocast converts where it helps, "
        "operation by operation; the model gets x as it came."
    ),
)
def converted_inputs():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(
                    model(x.to(dtype) if dtype else x), y, reduction="sum"
                )
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clean_gradients,
    body=True,
    tells=(
        "After the step its gradients are still there. Clear them: what "
        "comes next (another loss, an evaluation of gradients) starts "
        "clean."
    ),
)
def gradients_left():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clean_gradients,
    body=True,
    tells=(
        "Gradients that were there before are added to those of the step. "
        "Clear them at the start as well."
    ),
)
def old_gradients_count():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.modes_of_the_caller,
    body=True,
    tells=(
        "You call model.train(): that puts frozen parts back into training "
        "mode, and their statistics move. The modes are the caller's."
    ),
)
def training_mode_by_itself():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        model.train()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.modes_of_the_caller,
    body=True,
    tells=("You put the model into eval mode. The modes are the caller's."),
)
def eval_mode():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        model.eval()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "grad_norm is the norm after clipping, never above the limit. In a "
        "report it is the norm before clipping that tells something."
    ),
)
def norm_after_clipping():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        norm = norm.clamp(max=config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "lr is read after the schedule moved: that is the rate of the next "
        "step."
    ),
)
def rate_after_the_schedule():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": optimizer.param_groups[0]["lr"],
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "scale is read after the update: that is the scale of the next step."
    ),
)
def scale_after_the_update():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scaler.get_scale(),
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "The step is right, and the loss that you report is the mean of the "
        "micro-batches' means. Divide the sum by the number of samples."
    ),
)
def loss_as_mean_of_means():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item() / len(y)
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / len(batches),
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "loss is that of the last micro-batch alone. Add up over all of them."
    ),
)
def loss_of_the_last_micro_batch():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum = loss.item() / len(y) * num_samples
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "grad_norm is a tensor. A log of tensors keeps them on their "
        "device, and JSON refuses them: take .item()."
    ),
)
def facts_as_tensors():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm,
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You unscale after every micro-batch. The scaler does so once per "
        "step and raises at the second time; the gradients of later micro- "
        "batches would be scaled again."
    ),
)
def unscaling_in_the_loop():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            scaler.unscale_(optimizer)
            loss_sum += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clean_gradients,
    body=True,
    tells=(
        "After an overflow the infinite gradients are left. Clear them "
        "after every step, also after one that was left out."
    ),
)
def clean_only_after_made_steps():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        if not skipped:
            model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You take all micro-batches to be as large as the first. Add up "
        "their sizes."
    ),
)
def sizes_of_the_first():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = len(batches) * len(batches[0][1])
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "You convert the model to 16 bit for the forward pass and back. Its "
        "weights lose their last digits at every step; autocast makes "
        "copies by itself."
    ),
)
def config_dtype_for_the_model():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        kept = next(model.parameters()).dtype
        model.to(dtype or kept)
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(
                    model(x.to(dtype or kept)), y, reduction="sum"
                )
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        model.to(kept)
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "A disabled scaler leaves out nothing, also where the norm is "
        "infinite: then the step was made, and skipped is False."
    ),
)
def any_norm_that_is_not_finite_is_a_skip():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = not math.isfinite(norm)
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "The loss is computed outside of autocast. It belongs into the with "
        "block, like the forward pass."
    ),
)
def loss_outside_autocast():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                logits = model(x)
            loss = F.cross_entropy(logits, y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "The optimizer steps under autocast. Only forward pass and loss "
        "belong there."
    ),
)
def step_under_autocast():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clean_gradients,
    body=True,
    tells=(
        "You clear the gradients that the optimizer knows. A parameter "
        "that was frozen in mid-run is not in it and still has its last "
        "gradient, whose norm counts when you clip. Clear those of the "
        "model."
    ),
)
def only_the_optimizers_gradients_cleared():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        optimizer.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        optimizer.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.modes_of_the_caller,
    body=True,
    tells=(
        "You take the micro-batches out of the caller's list: afterwards "
        "it is empty. Go through it and leave it as it is."
    ),
)
def list_used_up():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        while batches:
            x, y = batches.pop(0)
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clip the parameters of the first group alone. The limit "
        "holds for the norm of all of them together."
    ),
)
def clipping_the_first_group():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(
            optimizer.param_groups[0]["params"], config["max_norm"]
        )
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.clips_the_true_gradient,
    body=True,
    tells=(
        "You clip by the largest entry, the infinity norm. The total norm "
        "is the 2-norm, the default."
    ),
)
def clipping_the_largest_entry():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(
            model.parameters(), config["max_norm"], norm_type=float("inf")
        )
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "Where the gradient overflows you report a norm of 0 or another "
        "number. It is infinite or NaN, and the report is to say so."
    ),
)
def norm_of_zero_at_an_overflow():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": float(np.nan_to_num(norm.item(), posinf=0.0)),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "You replace infinite gradients by numbers. The scaler no longer "
        "sees in the norm what happened, and the report looks as if "
        "nothing had."
    ),
)
def infinite_gradients_as_zeros():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        for one in model.parameters():
            if one.grad is not None:
                one.grad.nan_to_num_(0.0, 0.0, 0.0)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "At an overflow you leave out the rest of the list: the loss is "
        "not that of all samples."
    ),
)
def rest_of_the_list_left_out():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
            if not all(
                p.grad.isfinite().all()
                for p in model.parameters()
                if p.grad is not None
            ):
                break
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.one_micro_batch_at_a_time,
    body=True,
    tells=(
        "You run the model twice on each micro-batch, the second time for "
        "the loss alone. That costs a third more, and dropout and "
        "statistics count it twice. Keep the loss of the first."
    ),
)
def a_second_forward_pass():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            with torch.no_grad():
                loss_sum += F.cross_entropy(model(x), y, reduction="sum").item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.facts_of_the_step,
    body=True,
    tells=(
        "lr is the rate of the last group. That of the first one is asked for."
    ),
)
def rate_of_the_last_group():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[-1]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.mean_over_all_samples,
    body=True,
    tells=(
        "You leave out micro-batches of a single sample. Every sample of "
        "the list counts."
    ),
)
def single_samples_left_out():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in [b for b in batches if len(b[1]) > 1]:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


@wrong(
    "train_step",
    breaks=hidden_tests.autocast_where_asked,
    body=True,
    tells=(
        "You round the gradients to the dtype of autocast before the "
        "step. Once unscaled they need the full dtype: the small ones "
        "become 0."
    ),
)
def gradients_rounded():
    def train_step(model, optimizer, schedule, scaler, batches, config):
        lr, scale = optimizer.param_groups[0]["lr"], scaler.get_scale()
        dtype, loss_sum = config["dtype"], 0.0
        num_samples = sum(len(y) for _, y in batches)
        model.zero_grad()
        for x, y in batches:
            with torch.autocast(
                x.device.type, dtype, enabled=dtype is not None
            ):
                loss = F.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss / num_samples).backward()
            loss_sum += loss.item()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config["max_norm"])
        with torch.no_grad():
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.copy_(p.grad.to(dtype or p.dtype))
        scaler.step(optimizer)
        scaler.update()
        skipped = scaler.get_scale() < scale
        if not skipped:
            schedule.step()
        model.zero_grad()
        return {
            "loss": loss_sum / num_samples,
            "grad_norm": norm.item(),
            "skipped": skipped,
            "lr": lr,
            "scale": scale,
        }


# fit


@accepted("fit")
def by_a_state_that_is_saved(run, folder):
    import io
    import re

    settings = run.config
    folder.mkdir(parents=True, exist_ok=True)
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
        except (RuntimeError, EOFError, OSError):
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


@accepted("fit")
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


@accepted("fit")
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

    folder.mkdir(parents=True, exist_ok=True)
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
        handle, beside = tempfile.mkstemp(dir=folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            torch.save(content, file)
        os.replace(beside, folder / f"step_{number:06d}.pt")
        kept = sorted(folder.glob("step_??????.pt"), reverse=True)
        kept = kept[kept.index(folder / f"step_{number:06d}.pt") :]
        for path in kept[config["keep"] :]:
            path.unlink()
    return log, best


@accepted("fit", body=True)
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


@accepted("fit")
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
            with tempfile.TemporaryDirectory(dir=folder) as place:
                torch.save(saved, Path(place) / name)
                os.replace(Path(place) / name, folder / name)
            older = [one for one in folder.glob("step_*.pt") if one.name < name]
            spared = run.config["keep"] - 1
            for old in sorted(older, reverse=True)[spared:]:
                os.unlink(old)
    epoch = metrics.index(max(metrics))
    return log, {"epoch": epoch, "metric": metrics[epoch], "model": best}


@accepted("fit", body=True)
def by_removing_broken_ones():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except Exception:
                path.unlink()
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@accepted("fit", body=True)
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
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=(
        "You write checkpoints and never read one: after a kill everything "
        "begins again."
    ),
)
def begins_again():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True)[:0]:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=(
        "Only the model and the optimizer come back. Schedule, scaler and "
        "whatever else a run brings begin anew: the rate and the scale "
        "jump. Load all of run.parts."
    ),
)
def only_model_and_optimizer():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except Exception:  # broken off: there is an older one, perhaps
                continue
            for name in ("model", "optimizer"):
                run.parts[name].load_state_dict(saved["parts"][name])
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=(
        "You load four parts that you know by name. A run may bring others: "
        "go through run.parts."
    ),
)
def four_known_parts():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except Exception:  # broken off: there is an older one, perhaps
                continue
            for name in ("model", "optimizer", "schedule", "scaler"):
                run.parts[name].load_state_dict(saved["parts"][name])
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=(
        "Only the model comes back. Without the optimizer's moments the "
        "first steps after the restart are too large, and schedule and "
        "scaler begin anew."
    ),
)
def only_the_model():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except Exception:  # broken off: there is an older one, perhaps
                continue
            run.parts["model"].load_state_dict(saved["parts"]["model"])
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "The random states are not put back: after a restart dropout and "
        "noise are others, and so is everything that follows."
    ),
)
def without_random_states():
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "Only PyTorch's generator goes on. NumPy's and Python's draw as "
        "well: augmentation often uses them."
    ),
)
def only_torchs_generator():
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
            torch.set_rng_state(saved["random"]["torch"])
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "You seed the generators at the restart: the same numbers come that "
        "came at the beginning, not those that come next."
    ),
)
def seeded_again():
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
            seed_everything(0)
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "Your checkpoints hold the random states from the beginning of the "
        "process. Ask for them when you save."
    ),
)
def random_states_first():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        at_the_start = random_states()
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
                    saved |= {"best": best, "random": at_the_start}
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "You seed the generators yourself. The caller has done so, and the "
        "run then is not the one without checkpoints."
    ),
)
def seeded_at_the_start():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        seed_everything(0)
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=(
        "The log begins with the restart: what came before is lost. Keep it "
        "in the checkpoint."
    ),
)
def log_of_the_last_process():
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
            done, best = saved["done"], saved["best"]
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "The best so far is forgotten at a restart; the first epoch "
        "afterwards becomes the best, whatever came before. Keep it in the "
        "checkpoint."
    ),
)
def best_forgotten():
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
            done, log = saved["done"], saved["log"]
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "After a restart the best metric is kept, and with it the weights "
        "of the checkpoint in place of the best ones. Save the best weights "
        "too."
    ),
)
def metric_without_its_model():
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
            best["model"] = copy.deepcopy(run.parts["model"].state_dict())
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "state_dict() is a dict of the live tensors: your best model "
        "follows the training. Keep a deep copy (chapter 12)."
    ),
)
def best_is_live():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = run.parts["model"].state_dict()
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "state_dict() is a dict of the live tensors: your best model "
        "follows the training. Keep a deep copy (chapter 12)."
    ),
)
def best_is_a_shallow_copy():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = dict(run.parts["model"].state_dict())
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "The best model lacks its buffers, such as running statistics. A "
        "state dict has them."
    ),
)
def best_is_parameters_only():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = {
                            k: v.detach().clone()
                            for k, v in run.parts["model"].named_parameters()
                        }
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "Of two equal metrics you keep the later one. Only a better one "
        "replaces the best."
    ),
)
def later_of_equals():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric >= best["metric"]:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=("You keep the epoch with the smallest metric. Here more is better."),
)
def smallest_is_best():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": math.inf}
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric < best["metric"]:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "You begin with a best metric of 0: epochs with negative ones never "
        "count. Begin with minus infinity."
    ),
)
def only_positive_metrics():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": 0.0}
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "You evaluate after the checkpoint of the same step. After a "
        "restart from there the evaluation never happens, and its random "
        "numbers are not drawn."
    ),
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


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "You evaluate after every step. Once per epoch, after its last step."
    ),
)
def evaluates_each_step():
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
                if True:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "After a restart the epoch begins again: steps that the checkpoint "
        "holds are made twice. Go on within the epoch."
    ),
)
def epoch_run_again():
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
                if number - place + len(to_do) <= done:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "After a restart the last step before the checkpoint is made again. "
        "The number in the checkpoint is that of a step that is done."
    ),
)
def last_step_again():
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
                if number < done:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=("After a restart one step is left out: you go on one too far."),
)
def one_step_left_out():
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
                if number <= done + (done > 0):
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "After a restart the rest of the epoch is left out, and you go on "
        "with the next one."
    ),
)
def epochs_left_out():
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
                if done and number - place <= done:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_while_writing,
    body=True,
    tells=(
        "You write under the final name. A process that is killed in "
        "between leaves half a file there. Write beside it, then "
        "os.replace."
    ),
)
def written_in_place():
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
                    new_name = folder / f"step_{number:06d}.pt"
                    torch.save(saved, new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_while_writing,
    body=True,
    tells=(
        "You write under the final name. A process that is killed in "
        "between leaves half a file there. Write beside it, then "
        "os.replace."
    ),
)
def written_in_place_and_flushed():
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
                    new_name = folder / f"step_{number:06d}.pt"
                    with open(new_name, "wb") as file:
                        torch.save(saved, file)
                        file.flush()
                        os.fsync(file.fileno())
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_while_writing,
    body=True,
    tells=(
        "You remove the old checkpoints before the new one is in place. "
        "Killed in between, with keep = 1, you have none."
    ),
)
def old_ones_removed_first():
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
                    for old in sorted(folder.glob("step_*.pt"))[::-1][
                        keep - 1 :
                    ]:
                        old.unlink()
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "Old checkpoints are never removed: the disk fills up. Only the "
        "newest keep of them stay."
    ),
)
def nothing_is_removed():
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
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=("One checkpoint more than keep stays."),
)
def one_too_many():
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[: -keep - 1]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You remove files that are not yours. Only those named step_….pt "
        "are checkpoints."
    ),
)
def other_files_removed():
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
                    there = sorted(folder.glob("*"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You take every file that ends in .pt for a checkpoint of yours. "
        "Only those named step_….pt are."
    ),
)
def all_pt_files_removed():
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
                    there = sorted(folder.glob("*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "The number in the name has not six digits. Sorted as text, step_10 "
        "then comes before step_9."
    ),
)
def names_without_zeros():
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
                    new_name = folder / f"step_{number}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "There is no checkpoint at the end of the run: called once more, it "
        "makes the last steps again."
    ),
)
def no_checkpoint_at_the_end():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = copy.deepcopy(run.parts["model"].state_dict())
                        best = {"epoch": epoch, "metric": metric, "model": now}
                ends = False
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
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You save at the end of each epoch. Save after every save_every "
        "steps, also within an epoch, and at the end."
    ),
)
def a_checkpoint_per_epoch():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = copy.deepcopy(run.parts["model"].state_dict())
                        best = {"epoch": epoch, "metric": metric, "model": now}
                ends = place == len(to_do) and epoch == num_epochs - 1
                if place == len(to_do):
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
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You count the steps of each epoch anew to see whether a checkpoint "
        "is due. Count through all epochs."
    ),
)
def steps_counted_per_epoch():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = copy.deepcopy(run.parts["model"].state_dict())
                        best = {"epoch": epoch, "metric": metric, "model": now}
                ends = place == len(to_do) and epoch == num_epochs - 1
                if ends or place % run.config["save_every"] == 0:
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
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "If the newest checkpoint is broken you begin again, though an "
        "older one is whole. Try the next."
    ),
)
def only_the_newest_is_tried():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except Exception:
                break
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "A checkpoint whose copy broke off stops you with an error. Pass "
        "over it and take the next older one."
    ),
)
def broken_copies_raise():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            saved = torch.load(path)
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You expect a RuntimeError from a broken file. An empty one raises "
        "an EOFError; catch every Exception that torch.load raises."
    ),
)
def only_runtime_errors():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path)
            except RuntimeError:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You take the file with the latest date. Copies have new dates; the "
        "number of steps in the name tells which is the newest."
    ),
)
def newest_by_date():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(
            folder.glob("step_*.pt"),
            key=lambda one: one.stat().st_mtime,
            reverse=True,
        ):
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You go on from the oldest checkpoint that is kept, not from the "
        "newest."
    ),
)
def oldest_first():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt")):
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.one_file_is_enough,
    body=True,
    tells=(
        "The best lies in a second file. A checkpoint that is copied "
        "elsewhere goes on without it; and two files are never written at "
        "one moment."
    ),
)
def best_in_a_file_of_its_own():
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
            done, log = saved["done"], saved["log"]
            if (folder / "best_model").exists():
                best = torch.load(folder / "best_model")
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
                    torch.save(best, folder / "unfinished")
                    os.replace(folder / "unfinished", folder / "best_model")
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=("The model's buffers do not come back. Load its whole state dict."),
)
def weights_as_parameters_only():
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
                state = saved["parts"][name]
                if name == "model":
                    for key, value in part.named_buffers():
                        state = {**state, key: value}
                part.load_state_dict(state)
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_in_a_step,
    body=True,
    tells=(
        "You save the objects themselves. torch.load with its defaults "
        "refuses them, for loading them can run code. Save state dicts."
    ),
)
def whole_objects():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True):
            try:
                saved = torch.load(path, weights_only=False)
            except Exception:  # broken off: there is an older one, perhaps
                continue
            for name, part in run.parts.items():
                part.load_state_dict(saved["parts"][name].state_dict())
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
                    states = dict(run.parts)
                    saved = {"parts": states, "done": number, "log": log}
                    saved |= {"best": best, "random": random_states()}
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "The steps in your log count from 0. They count from 1, through all "
        "epochs."
    ),
)
def steps_counted_from_zero():
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
                log.append({**facts, "epoch": epoch, "step": number - 1})
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "Your log keeps only the loss of what run.step returned. Keep all "
        "of it."
    ),
)
def log_without_facts():
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
                log.append(
                    {"epoch": epoch, "step": number, "loss": facts["loss"]}
                )
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "Your checkpoint holds the random states from before the evaluation "
        "of the same step. What the evaluation drew is drawn again after a "
        "restart."
    ),
)
def random_states_before_the_evaluation():
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
                at_the_step = random_states()
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
                    saved |= {"best": best, "random": at_the_step}
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You remove the checkpoints with the oldest dates. Copies have new "
        "dates: the number of steps in the name tells which are the older "
        "ones."
    ),
)
def old_ones_by_date():
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
                    there = sorted(
                        folder.glob("step_*.pt"),
                        key=lambda one: one.stat().st_mtime,
                    )
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "At the end you load the best weights into the model. The parts "
        "stay as the last step left them; the caller has the best and may "
        "load it."
    ),
)
def best_is_loaded_at_the_end():
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        run.parts["model"].load_state_dict(best["model"])
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "Your checkpoint holds the random states from before its last step: "
        "what that step drew is drawn again after a restart."
    ),
)
def saves_before_the_step():
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
                before = random_states()
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
                    saved |= {"best": best, "random": before}
                    torch.save(saved, folder / "unfinished")
                    new_name = folder / f"step_{number:06d}.pt"
                    os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_while_writing,
    body=True,
    tells=(
        "You write another file and copy it to its name, as shutil.move does "
        "between two disks. A copy can be cut off in the middle; os.replace "
        "within the folder renames, at once or not at all."
    ),
)
def copied_into_place():
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
                    content = (folder / "unfinished").read_bytes()
                    new_name.write_bytes(content)
                    (folder / "unfinished").unlink()
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You remove all files that end with .tmp. Only your own unfinished "
        "ones are your business."
    ),
)
def all_tmp_files_removed():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*.tmp"):
            left.unlink()
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You keep the checkpoints with the highest numbers. Where broken "
        "copies with higher numbers lie there, the new one is removed at "
        "once: it stays, and the keep - 1 before it."
    ),
)
def the_highest_numbers_stay():
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
                    there = sorted(folder.glob("step_*.pt"))
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "Normal numbers are drawn in pairs, and the generators of NumPy "
        "and Python keep the second one in reserve. You leave it out of "
        "the states: put all of them back."
    ),
)
def numpys_reserve_forgotten():
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
            kind, keys, pos, _, _ = np.random.get_state()
            np.random.set_state((kind, keys, pos, 0, 0.0))
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.random_numbers_go_on,
    body=True,
    tells=(
        "Normal numbers are drawn in pairs, and the generators of NumPy "
        "and Python keep the second one in reserve. You leave it out of "
        "the states: put all of them back."
    ),
)
def pythons_reserve_forgotten():
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
            version, numbers, _ = random.getstate()
            random.setstate((version, numbers, None))
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_while_writing,
    body=True,
    tells=(
        "You write another file and copy it to its name, as shutil.move does "
        "between two disks. A copy can be cut off in the middle; os.replace "
        "within the folder renames, at once or not at all."
    ),
)
def moved_from_another_disk():
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
                    import shutil

                    new_name = folder / f"step_{number:06d}.pt"
                    with tempfile.TemporaryDirectory() as place:
                        torch.save(saved, Path(place) / "new.pt")
                        shutil.move(Path(place) / "new.pt", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.killed_while_writing,
    body=True,
    tells=(
        "Your unfinished file is itself named step_….pt: killed in "
        "between, it is taken for a checkpoint. Give it another beginning "
        "or end."
    ),
)
def unfinished_with_a_checkpoints_name():
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
                    new_name = folder / f"step_{number:06d}.pt"
                    torch.save(saved, folder / f"step_{number:06d}.tmp.pt")
                    os.replace(folder / f"step_{number:06d}.tmp.pt", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You do not write a checkpoint whose name is there already. It "
        "may be somebody's broken copy: replace it."
    ),
)
def not_written_if_there():
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
                    new_name = folder / f"step_{number:06d}.pt"
                    if not new_name.exists():
                        torch.save(saved, folder / "unfinished")
                        os.replace(folder / "unfinished", new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "You draw a file name from Python's global generator: with "
        "checkpoints the run then sees other random numbers than without. "
        "tempfile has a generator of its own."
    ),
)
def a_name_drawn_from_random():
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
                    new_name = folder / f"step_{number:06d}.pt"
                    beside = folder / f"{random.random()}.tmp"
                    torch.save(saved, beside)
                    os.replace(beside, new_name)
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "You call eval() and train() around the evaluation. That wakes up "
        "what the run keeps in eval mode; modes are its own business."
    ),
)
def modes_chosen_by_fit():
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
                if place == len(to_do):
                    run.parts["model"].eval()
                    metric = run.evaluate()
                    run.parts["model"].train()
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You count only the checkpoints that this process has written. "
        "Those from before the kill are never removed."
    ),
)
def only_its_own_are_counted():
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
        mine = []
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
                    mine.append(new_name)
                    for old in mine[:-keep]:
                        old.unlink(missing_ok=True)
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.files_in_the_folder,
    body=True,
    tells=(
        "You compute the number of the one to remove. The checkpoint at "
        "the end is off that grid, and one too many stays: look what is "
        "there."
    ),
)
def one_removed_by_its_number():
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
                    old = number - keep * run.config["save_every"]
                    (folder / f"step_{old:06d}.pt").unlink(missing_ok=True)
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "After a restart the later one of equal metrics becomes the best. "
        "The earlier one stays, whether it was before the kill or not."
    ),
)
def later_of_equals_after_a_restart():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"] or (
                        done and metric == best["metric"]
                    ):
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.the_best_is_kept,
    body=True,
    tells=(
        "You ask for a smallest gain. Any higher metric is better, "
        "however close."
    ),
)
def small_gains_do_not_count():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"] + 1e-2:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=(
        "You put the random states back after each evaluation. What it "
        "draws is part of the run."
    ),
)
def draws_of_the_evaluation_undone():
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
                if place == len(to_do):
                    states = random_states()
                    metric = run.evaluate()
                    set_random_states(states)
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.newest_whole_one,
    body=True,
    tells=(
        "You try the two newest checkpoints and then begin again, though "
        "an older one may be whole. Try them all."
    ),
)
def two_are_tried():
    def fit(run, folder):
        num_epochs, keep = run.config["num_epochs"], run.config["keep"]
        done, log, best = 0, [], {"metric": -math.inf}
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("step_*.pt"), reverse=True)[:2]:
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.nothing_stops_it,
    body=True,
    tells=("You count steps as if all epochs were as long as the first."),
)
def epochs_of_equal_length():
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
                number = epoch * len(run.batches(0)) + place
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
                    there = sorted(folder.glob("step_*.pt"))
                    there = there[: there.index(new_name) + 1]
                    for old in there[:-keep]:
                        old.unlink()
        return log, best


@wrong(
    "fit",
    breaks=hidden_tests.only_what_is_left,
    body=True,
    tells=(
        "You find the end by the length of the first epoch. Where epochs "
        "are of unequal length there is no checkpoint at the end, or at "
        "the wrong step."
    ),
)
def end_by_the_first_epoch():
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
                if place == len(to_do):
                    metric = run.evaluate()
                    if metric > best["metric"]:
                        now = copy.deepcopy(run.parts["model"].state_dict())
                        best = {"epoch": epoch, "metric": metric, "model": now}
                ends = number == num_epochs * len(run.batches(0))
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
        return log, best


# summarize


@accepted("summarize")
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


@accepted("summarize")
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
        if "metric" in one:
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


@accepted("summarize")
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


@accepted("summarize", body=True)
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


@accepted("summarize")
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


@accepted("summarize", body=True)
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


@wrong(
    "summarize",
    breaks=hidden_tests.losses_of_epochs,
    body=True,
    tells=(
        "Your epoch losses are means over steps: the small last batch "
        "counts as much as the others. Weight each loss by its samples "
        "(chapter 11)."
    ),
)
def mean_over_steps():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = 1
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.losses_of_epochs,
    body=True,
    tells=("Your epoch losses are sums. Divide by the samples of the epoch."),
)
def sum_of_losses():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [totals[e][0] for e in sorted(totals)],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.losses_of_epochs,
    body=True,
    tells=(
        "You give one loss for the whole run. One for each epoch is asked for."
    ),
)
def one_loss_for_the_run():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [
                sum(a for a, _ in totals.values())
                / max(1, sum(b for _, b in totals.values()))
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.losses_of_epochs,
    body=True,
    tells=("Your epochs are in the order of text, where 10 comes before 2."),
)
def epochs_sorted_as_text():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals, key=str)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.counted_once,
    body=True,
    tells=(
        "Steps that were made again count twice in your report. Keep one "
        "line per step number."
    ),
)
def every_line_counts():
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
            steps[num_step_lines] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.counted_once,
    body=True,
    tells=(
        "Of a step that was made again you keep the first line. The run "
        "that went on is in the last one."
    ),
)
def the_first_time_counts():
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
            steps.setdefault(last_step, entry)

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.counted_once,
    body=True,
    tells=(
        "repeated counts the restarts. It is the number of lines of steps "
        "that were made again."
    ),
)
def lost_steps_are_not_repeated():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": len(resumed_after),
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


@wrong(
    "summarize",
    breaks=hidden_tests.counted_once,
    body=True,
    tells=("You count the lines of evaluations among those of steps."),
)
def repeated_forgets_evaluations():
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
            num_step_lines += "step" not in entry
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "You count skipped steps among the clipped ones: their norm is "
        "infinite or NaN. They were not clipped but left out."
    ),
)
def skipped_steps_are_clipped():
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
        clipped = sum(
            not one["grad_norm"] <= config["max_norm"] for one in steps.values()
        )
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "You divide the clipped steps by all steps. The share is of the "
        "steps that were made."
    ),
)
def clipped_of_all_steps():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(steps) if made else 0.0,
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=("clipped is a number of steps. The share is asked for."),
)
def clipped_as_a_number():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": float(clipped),
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=("clipped is the share that was not clipped."),
)
def share_not_clipped():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": 1 - clipped / len(made) if made else 0.0,
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "peak_lr counts rates of steps that were skipped. They moved nothing."
    ),
)
def peak_of_skipped_steps():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
            "peak_lr": max((one["lr"] for one in steps.values()), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=("peak_lr is the last rate, not the highest."),
)
def last_rate():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
            "peak_lr": made[-1]["lr"] if made else 0.0,
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "You leave the losses of skipped steps out of the means. The loss "
        "was finite, only the gradient was not; it counts as others do."
    ),
)
def skipped_losses_left_out():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in made:
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=("Of two equal epochs you name the later one."),
)
def later_of_equals_in_report():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], -e), default=None)
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=("You name the epoch with the lowest metric. Here more is better."),
)
def lowest_metric():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (metrics[e], e), default=None)
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=(
        "You name the last epoch. The one with the highest metric is asked for."
    ),
)
def last_epoch_is_best():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = max(metrics, default=None)
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=(
        "Of an epoch that was evaluated again you keep the first metric. "
        "The last one counts."
    ),
)
def first_evaluation_counts():
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
                metrics.setdefault(entry["epoch"], entry["metric"])
                continue
            num_step_lines += 1
            if entry["step"] <= last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=(
        "Of an epoch that was evaluated again you keep the higher metric. "
        "The last one counts: the other belongs to weights that are gone."
    ),
)
def highest_ever_seen():
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
                e = entry["epoch"]
                metrics[e] = max(metrics.get(e, -math.inf), entry["metric"])
                continue
            num_step_lines += 1
            if entry["step"] <= last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=(
        "If epoch 0 is the best you say None: 0 counts as false. Compare "
        "with None."
    ),
)
def best_epoch_is_falsy():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals)
            ],
            "best_epoch": best or None,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "resumed_after names the steps after which the run was killed. "
        "Asked for is the last step that was kept: the one before the "
        "number to which it went back."
    ),
)
def where_it_was_killed():
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
                resumed_after.append(last_step)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "resumed_after names the first step that was made again. The last "
        "one that was kept is the one before."
    ),
)
def first_step_made_again():
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
                resumed_after.append(entry["step"])
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "resumed_after has an entry for every step that was made again. One "
        "entry for each time the run went back: where the number is not "
        "above that of the line before."
    ),
)
def each_repeated_step():
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
            if entry["step"] in steps:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "You miss where the run went back by one step: then the same number "
        "stands in two lines one after the other."
    ),
)
def strictly_back():
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
            if entry["step"] < last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "seconds is the time of what was kept. What was made again, and the "
        "evaluations, were paid for as well."
    ),
)
def seconds_of_kept_steps():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
            "seconds": sum((one["seconds"] for one in steps.values()), 0.0),
        }


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=("seconds leaves out the evaluations."),
)
def seconds_without_evaluations():
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
            seconds += entry["seconds"] if "step" in entry else 0.0
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "A line that is cut off stops you with an error. A killed process "
        "leaves such a line; pass over it."
    ),
)
def torn_lines_raise():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            entry = json.loads(line)
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "A line that is cut off ends your log, and what later processes "
        "wrote is lost. Pass over that one line."
    ),
)
def torn_lines_end_the_log():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                break
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=("You count a line that is cut off as a step."),
)
def torn_lines_count():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                num_step_lines += 1
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "A line may be whole JSON and no object, such as a number of which "
        "the rest is missing. Pass over it as well."
    ),
)
def not_only_objects():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.nearly_empty,
    body=True,
    tells=("If every step was skipped you divide by zero."),
)
def division_by_no_steps():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made),
            "epoch_losses": [
                totals[e][0] / totals[e][1] for e in sorted(totals)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.nearly_empty,
    body=True,
    tells=("Without an evaluation best_metric is None, not minus infinity."),
)
def best_metric_of_nothing():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
            "best_metric": metrics.get(best, -math.inf),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=(
        "A metric of 0 counts as false in your code, and its epoch is lost."
    ),
)
def zero_is_no_metric():
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
                if entry["metric"]:
                    metrics[entry["epoch"]] = entry["metric"]
                continue
            num_step_lines += 1
            if entry["step"] <= last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "A gradient whose norm is just the limit was not clipped. Count "
        "those above it."
    ),
)
def clipped_at_the_limit():
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
        clipped = sum(one["grad_norm"] >= config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=('You compare with 1 and not with config["max_norm"].'),
)
def clipped_by_a_limit_of_one():
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
        clipped = sum(one["grad_norm"] > 1.0 for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.best_of_epochs,
    body=True,
    tells=(
        "Of equal metrics you take the one that came into your dict first. "
        "After a restart that need not be the earlier epoch: compare the "
        "epochs."
    ),
)
def first_written_of_equals():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = max(metrics, key=metrics.get, default=None)
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


@wrong(
    "summarize",
    breaks=hidden_tests.losses_of_epochs,
    body=True,
    tells=(
        "A step may have a metric, too, as a further key. It is step that "
        "tells them apart."
    ),
)
def steps_with_a_metric_are_evaluations():
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
            if "metric" in entry:
                metrics[entry["epoch"]] = entry["metric"]
                continue
            num_step_lines += 1
            if entry["step"] <= last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "Where the next process has written on behind a line that was cut "
        "off, you read the end of it. Such a line is passed over."
    ),
)
def rest_of_a_line_is_saved():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.loads(line[max(0, line.rfind("{")) :])
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.counted_once,
    body=True,
    tells=(
        "repeated counts a step once that was made again twice. It is the "
        "number of lines: all lines of steps less the steps."
    ),
)
def repeated_as_different_steps():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        again = set()
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
            if last_step in steps:
                again.add(last_step)
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": len(again),
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "You take the highest number for the number of steps. A step "
        "whose line was lost does not count: count those that stand "
        "there."
    ),
)
def steps_by_the_highest_number():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": max(steps, default=0),
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "You take every number that is not the next one for a restart. "
        "Where a line was lost the numbers jump ahead; the run went back "
        "only where they do not rise."
    ),
)
def any_jump_is_a_restart():
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
            if entry["step"] != last_step + 1:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "resumed_after is in the order of its numbers. It tells what "
        "happened, one after the other: a later restart may go back "
        "further."
    ),
)
def restarts_sorted():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
            "resumed_after": sorted(resumed_after),
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.went_back,
    body=True,
    tells=(
        "A kill before the run has reached its highest step again is no "
        "restart for you. Compare with the line before, not with all "
        "before."
    ),
)
def restarts_until_the_highest():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        below = False
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
            new = entry["step"] in steps
            if new and not below:
                resumed_after.append(entry["step"] - 1)
            below = new
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "You give an entry to every epoch up to the last, also to one of "
        "which no step stands there. Only epochs that have steps count."
    ),
)
def an_entry_for_every_number():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [
                totals[e][0] / max(1, totals[e][1]) if e in totals else 0.0
                for e in range(max(totals, default=-1) + 1)
            ],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "Your epochs are in the order in which they first appear. After "
        "lost lines and a restart that need not be rising: sort."
    ),
)
def epochs_as_they_appear():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": len(steps) - len(made),
            "clipped": clipped / len(made) if made else 0.0,
            "epoch_losses": [totals[e][0] / totals[e][1] for e in totals],
            "best_epoch": best,
            "best_metric": metrics.get(best),
            "peak_lr": max((one["lr"] for one in made), default=0.0),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "You read the first object of a line and ignore what stands "
        "behind it. Such a line is not one object: pass over it."
    ),
)
def first_object_of_a_line():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.JSONDecoder().raw_decode(line)[0]
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "You tell a whole line by its last character. Lines that end with "
        "a newline are lost that way: let json decide."
    ),
)
def lines_that_end_with_a_brace():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            if not line.endswith("}"):
                continue
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.counted_once,
    body=True,
    tells=(
        "peak_lr counts rates of steps that were made again later. Each "
        "step counts once, the last time."
    ),
)
def peak_of_lost_steps():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        every = []
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
            every.append(entry)
            if entry["step"] <= last_step:
                resumed_after.append(entry["step"] - 1)
            last_step = entry["step"]
            steps[last_step] = entry

        made = [one for one in steps.values() if not one["skipped"]]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
            "peak_lr": max(
                (one["lr"] for one in every if not one["skipped"]), default=0.0
            ),
            "resumed_after": resumed_after,
            "seconds": seconds,
        }


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "You take every step without a finite norm for skipped. A "
        "disabled scaler skips none; skipped alone tells it."
    ),
)
def made_by_the_norm():
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

        made = [
            one for one in steps.values() if math.isfinite(one["grad_norm"])
        ]
        clipped = sum(one["grad_norm"] > config["max_norm"] for one in made)
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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


@wrong(
    "summarize",
    breaks=hidden_tests.skipped_and_clipped,
    body=True,
    tells=(
        "You count the steps without a finite norm. A disabled scaler "
        "skips none; skipped alone tells it."
    ),
)
def skipped_by_the_norm():
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
        best = min(metrics, key=lambda e: (-metrics[e], e), default=None)
        return {
            "steps": len(steps),
            "repeated": num_step_lines - len(steps),
            "skipped": sum(
                not math.isfinite(one["grad_norm"]) for one in steps.values()
            ),
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


@wrong(
    "summarize",
    breaks=hidden_tests.torn_lines,
    body=True,
    tells=(
        "You take every line that is cut off for a restart. Whether the "
        "run went back is told by the numbers of the steps."
    ),
)
def cut_off_lines_as_restarts():
    def summarize(lines, config):
        steps, metrics, resumed_after = {}, {}, []
        num_step_lines, last_step, seconds = 0, 0, 0.0
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                resumed_after.append(last_step)
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
        totals: dict[int, tuple[float, int]] = {}
        for one in steps.values():
            n = one["num_samples"]
            total, count = totals.get(one["epoch"], (0.0, 0))
            totals[one["epoch"]] = total + n * one["loss"], count + n
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
