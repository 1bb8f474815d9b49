"""The answer bank of chapter 06: learning rates."""

import copy
import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler

from course_grader.bank import accepted, wrong

from . import hidden_tests

# train_in_steps


@accepted("train_in_steps")
def steps_by_lambda(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.LambdaLR(optimizer, lambda n: gamma ** (n // step_size))
    rates = []
    for _ in range(num_epochs):
        rates.append([group["lr"] for group in optimizer.param_groups])
        for X, y in loader:
            loss = F.mse_loss(model(X), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        plan.step()
    return rates


@accepted("train_in_steps")
def steps_by_milestones(model, optimizer, loader, num_epochs, step_size, gamma):
    milestones = list(range(step_size, num_epochs + 1, step_size))
    plan = lr_scheduler.MultiStepLR(optimizer, milestones, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(list(plan.get_last_lr()))
        for X, y in loader:
            optimizer.zero_grad(set_to_none=False)
            (model(X) - y).square().mean().backward()
            optimizer.step()
        plan.step()
    return rates


@accepted("train_in_steps")
def steps_of_an_exponential(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.ExponentialLR(optimizer, gamma)
    rates = []
    for epoch in range(1, num_epochs + 1):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            model.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        if epoch % step_size == 0:
            plan.step()
    return rates


@accepted("train_in_steps")
def steps_by_hand(model, optimizer, loader, num_epochs, step_size, gamma):
    base = [group["lr"] for group in optimizer.param_groups]
    rates = []
    for epoch in range(num_epochs):
        factor = gamma ** (epoch // step_size)
        rates.append([lr * factor for lr in base])
        for group, lr in zip(optimizer.param_groups, rates[-1]):
            group["lr"] = lr
        for X, y in loader:
            loss = F.mse_loss(model(X), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return rates


@accepted("train_in_steps")
def steps_multiplied_in_place(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    rates = []
    for epoch in range(num_epochs):
        if epoch > 0 and epoch % step_size == 0:
            for group in optimizer.param_groups:
                group["lr"] *= gamma
        rates.append([group["lr"] for group in optimizer.param_groups])
        for batch in loader:
            optimizer.zero_grad()
            loss = nn.MSELoss()(model(batch[0]), batch[1])
            loss.backward()
            optimizer.step()
    return rates


@accepted("train_in_steps")
def steps_by_groups_of_epochs(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    def epoch():
        for X, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(X), y)
            loss.backward()
            optimizer.step()
        return [float(group["lr"]) for group in optimizer.param_groups]

    rates, factors = [], [group["lr"] for group in optimizer.param_groups]
    while len(rates) < num_epochs:
        for group, lr in zip(optimizer.param_groups, factors):
            group["lr"] = lr
        for _ in range(min(step_size, num_epochs - len(rates))):
            rates.append(epoch())
        factors = [gamma * lr for lr in factors]
    return rates


@wrong(
    "train_in_steps",
    breaks=[hidden_tests.ten_ten_five, hidden_tests.without_warnings],
    tells="You step the scheduler at the start of each epoch, before anything has "
    "been trained: every drop comes one epoch early. Step it at the end of the "
    "epoch, after the optimizer.",
)
def steps_scheduler_first(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        plan.step()
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.ten_ten_five,
    tells="You silence the warning about the order of calls, and the drops come "
    "one epoch early all the same. Step the scheduler at the end of the epoch; "
    "then there is nothing to silence.",
)
def steps_silenced(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan.step()
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.ten_ten_five,
    tells="You step the scheduler after every batch, so it counts batches as "
    "epochs and drops far too early. Step it once, after the loop over the "
    "batches.",
)
def steps_each_batch(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
            plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.returned_rates,
    tells="You write the rates down after the scheduler has stepped: they are "
    "those of the next epoch. Read them before the epoch is trained.",
)
def steps_recorded_late(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
        rates.append(plan.get_last_lr())
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="Your code stops with a TypeError before anything is trained. A number "
    "cannot be looped over: write `range(num_epochs)`. And the argument "
    "`verbose=` of schedulers was removed: leave it out.",
)
def steps_over_an_int(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in num_epochs:
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=[hidden_tests.ten_ten_five, hidden_tests.without_warnings],
    tells="You hand the epoch to `scheduler.step(epoch)`. The argument is "
    "deprecated, and the number is that of the epoch that has just ended, so "
    "drops come late. Call `step()` without it.",
)
def steps_with_the_epoch(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for epoch in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step(epoch)
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.without_warnings,
    tells="The rates are right, but `scheduler.step(epoch)` is deprecated and "
    "warns. The scheduler counts by itself: call `step()`.",
)
def steps_with_the_next_epoch(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for epoch in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step(epoch + 1)
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="Your code stops with a TypeError before anything is trained. A number "
    "cannot be looped over: write `range(num_epochs)`. And the argument "
    "`verbose=` of schedulers was removed: leave it out.",
)
def steps_verbose(model, optimizer, loader, num_epochs, step_size, gamma):
    rates = []
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma, verbose=False)
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="You make a new scheduler in every epoch. Each begins to count at 0, so "
    "the plan is never reached. Make it once, before the first epoch.",
)
def steps_scheduler_made_late(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    rates = []
    for _ in range(num_epochs):
        plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.ten_ten_five,
    tells="You multiply by `gamma` after every epoch. It is due once in "
    "`step_size` epochs.",
)
def steps_every_epoch(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.ExponentialLR(optimizer, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.short_plans,
    tells="`epoch % step_size == 0` is true for the first epoch as well, so it is "
    "trained with a rate that has dropped already. Leave out epoch 0.",
)
def steps_dropped_at_once(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    rates = []
    for epoch in range(num_epochs):
        if epoch % step_size == 0:
            for group in optimizer.param_groups:
                group["lr"] *= gamma
        rates.append([group["lr"] for group in optimizer.param_groups])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="You give all groups the rate of the first. Each has a rate of its own, "
    "and each is multiplied by `gamma`.",
)
def steps_of_the_first_group(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    base = optimizer.param_groups[0]["lr"]
    rates = []
    for epoch in range(num_epochs):
        lr = base * gamma ** (epoch // step_size)
        for group in optimizer.param_groups:
            group["lr"] = lr
        rates.append([lr for _ in optimizer.param_groups])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="You lower the rate of the first group alone. The others train on at "
    "their first rate: loop over all of `optimizer.param_groups`.",
)
def steps_lower_one_group(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    rates = []
    for epoch in range(num_epochs):
        if epoch > 0 and epoch % step_size == 0:
            optimizer.param_groups[0]["lr"] *= gamma
        rates.append([group["lr"] for group in optimizer.param_groups])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.ten_ten_five,
    tells="You begin with `optimizer.defaults`. That is the rate for groups "
    "without one of their own; what is used stands in `param_groups`.",
)
def steps_from_the_defaults(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    base = optimizer.defaults["lr"]
    rates = []
    for epoch in range(num_epochs):
        lr = base * gamma ** (epoch // step_size)
        for group in optimizer.param_groups:
            group["lr"] = lr
        rates.append([lr for _ in optimizer.param_groups])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You never clear the gradients: each step is made on the sum of all "
    "gradients so far. Call `optimizer.zero_grad()` before each `backward()`.",
)
def steps_never_cleared(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You step the optimizer once for each epoch, on the gradients of all "
    "batches together. Step it once for each batch.",
)
def steps_once_an_epoch(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        optimizer.zero_grad()
        for X, y in loader:
            F.mse_loss(model(X), y).backward()
        optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You make a new optimizer for each epoch. The one you were given never "
    "steps, and what it remembers (momentum, Adam's averages) is lost. Change "
    'the `"lr"` of its groups instead.',
)
def steps_of_a_new_optimizer(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    rates = []
    for epoch in range(num_epochs):
        factor = gamma ** (epoch // step_size)
        groups = [
            {**group, "lr": group["lr"] * factor}
            for group in optimizer.param_groups
        ]
        fresh = type(optimizer)(groups)
        rates.append([group["lr"] for group in groups])
        for X, y in loader:
            fresh.zero_grad()
            F.mse_loss(model(X), y).backward()
            fresh.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.ten_ten_five,
    tells="You compute the plan and return it, but no group ever gets these "
    'rates: assign them to `group["lr"]`, or use a scheduler.',
)
def steps_only_told(model, optimizer, loader, num_epochs, step_size, gamma):
    rates = []
    for epoch in range(num_epochs):
        factor = gamma ** (epoch // step_size)
        rates.append([group["lr"] * factor for group in optimizer.param_groups])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.returned_rates,
    tells="You return one number for each epoch: the rate of the first group. "
    "Each epoch's entry is a list, with one number for each group.",
)
def steps_returning_numbers(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr()[0])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.returned_rates,
    tells="You append the same list every time and change it later, so all "
    "epochs show the last rates. Make a new list for each epoch.",
)
def steps_returning_one_list(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    now = [group["lr"] for group in optimizer.param_groups]
    rates = []
    for epoch in range(num_epochs):
        if epoch > 0 and epoch % step_size == 0:
            for i, group in enumerate(optimizer.param_groups):
                group["lr"] = now[i] = now[i] * gamma
        rates.append(now)
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.returned_rates,
    tells="You write the rates down once for each batch. Return one entry for "
    "each epoch.",
)
def steps_returning_batches(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        for X, y in loader:
            rates.append(plan.get_last_lr())
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You put the model into training mode. The text asks you to leave the "
    "mode as it is: some layers may be in eval on purpose.",
)
def steps_in_train_mode(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    model.train()
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You ask the loader for its length. It need not have one: go through it "
    "with a `for` loop.",
)
def steps_by_length(model, optimizer, loader, num_epochs, step_size, gamma):
    num_steps = num_epochs * len(loader)
    plan = lr_scheduler.StepLR(optimizer, step_size * len(loader), gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
            plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="Dropping the rate, you also lower the weight decay of the group. Only "
    'its `"lr"` changes.',
)
def steps_lower_decay_too(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    rates = []
    for epoch in range(num_epochs):
        if epoch > 0 and epoch % step_size == 0:
            for group in optimizer.param_groups:
                group["lr"] *= gamma
                group["weight_decay"] *= gamma
        rates.append([group["lr"] for group in optimizer.param_groups])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You clear the gradients after each step, and never before the first: "
    "what somebody left in `.grad` is part of that step. Clear before each "
    "`backward()`.",
)
def steps_cleared_afterwards(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            F.mse_loss(model(X), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You do not go through the loader once for each epoch: you keep its "
    "first batches, or take a pass only to count them. A loader that shuffles "
    "has other batches each time. Loop over it once per epoch.",
)
def steps_on_kept_batches(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates, batches = [], list(loader)
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in batches:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You do not go through the loader once for each epoch: you keep its "
    "first batches, or take a pass only to count them. A loader that shuffles "
    "has other batches each time. Loop over it once per epoch.",
)
def steps_after_counting(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    length = step_size * sum(1 for _ in loader)
    plan = lr_scheduler.StepLR(optimizer, length, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
            plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.ten_ten_five,
    tells="You round the rates. Rates are used as they are; round only what you "
    "print.",
)
def steps_rounded(model, optimizer, loader, num_epochs, step_size, gamma):
    base = [group["lr"] for group in optimizer.param_groups]
    rates = []
    for epoch in range(num_epochs):
        factor = gamma ** (epoch // step_size)
        rates.append([round(lr * factor, 6) for lr in base])
        for group, lr in zip(optimizer.param_groups, rates[-1]):
            group["lr"] = lr
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="With each drop you clear what the optimizer remembers: momentum and "
    "Adam's averages begin anew. Only the rate changes.",
)
def steps_forgetting_momentum(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for epoch in range(num_epochs):
        if epoch % step_size == 0:
            optimizer.state.clear()
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You seed the global random state. Nothing random is asked for here, and "
    "whoever draws afterwards gets other numbers than expected: leave it alone.",
)
def steps_with_a_seed(model, optimizer, loader, num_epochs, step_size, gamma):
    torch.manual_seed(0)
    plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(plan.get_last_lr())
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        plan.step()
    return rates


@accepted("train_in_steps")
def steps_by_a_closure(model, optimizer, loader, num_epochs, step_size, gamma):
    plan = lr_scheduler.StepLR(optimizer, step_size=step_size, gamma=gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append([float(group["lr"]) for group in optimizer.param_groups])
        for X, y in loader:

            def closure():
                optimizer.zero_grad()
                loss = F.mse_loss(model(X), y)
                loss.backward()
                return loss

            optimizer.step(closure)
        plan.step()
    return rates


# make_optimizer


@accepted("make_optimizer")
def groups_of_one(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    names = [name for name, _ in model.named_parameters()]
    for path in rates:
        if not any(n == path or n.startswith(path + ".") for n in names):
            raise KeyError(path)
    groups = []
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        best = ""
        for path in rates:
            if (name == path or name.startswith(path + ".")) and len(
                path
            ) > len(best):
                best = path
        group = {"params": [p], "lr": rates.get(best, lr)}
        if p.ndim < 2 and not decay_all:
            group["weight_decay"] = 0.0
        groups.append(group)
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@accepted("make_optimizer")
def groups_added_later(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    left = dict(model.named_parameters())
    known = set()
    for name in left:
        parts = name.split(".")
        known |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
    if not set(rates) <= known:
        raise ValueError("unknown path")
    optimizer = None
    for path in sorted(rates, key=len, reverse=True) + [None]:
        rate = lr if path is None else rates[path]
        names = [
            n
            for n in left
            if path is None
            or n.split(".")[: path.count(".") + 1] == path.split(".")
        ]
        for n in names:
            p = left.pop(n)
            if not p.requires_grad:
                continue
            decay = weight_decay if decay_all or p.dim() >= 2 else 0
            group = {"params": p, "lr": rate, "weight_decay": decay}
            if optimizer is None:
                optimizer = torch.optim.SGD([group], lr=lr, momentum=momentum)
            else:
                optimizer.add_param_group(group)
    return optimizer


@accepted("make_optimizer")
def groups_with_names(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = {}, set()
    for name, p in model.named_parameters():
        path, rate = name, lr
        found = None
        while path:
            if path in rates:
                used.add(path)
                found = found or path
            path = path.rpartition(".")[0]
        if found:
            rate = rates[found]
        if p.requires_grad:
            key = rate, decay_all or p.dim() > 1
            groups.setdefault(key, []).append((name, p))
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(
        [
            {
                "params": members,
                "lr": rate,
                "weight_decay": weight_decay if decays else 0.0,
            }
            for (rate, decays), members in groups.items()
        ],
        lr=lr,
        momentum=momentum,
    )


@accepted("make_optimizer")
def groups_overwritten_in_order(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    rate_of = {name: lr for name, _ in model.named_parameters()}
    for path in sorted(rates):
        below = [n for n in rate_of if f"{n}.".startswith(f"{path}.")]
        if not below:
            raise KeyError(f"{path} fits no parameter")
        rate_of.update(dict.fromkeys(below, rates[path]))
    optimizer = None
    for name, p in model.named_parameters():
        if p.requires_grad:
            decays = decay_all or len(p.shape) > 1
            group = {"params": [p], "lr": rate_of[name]}
            group["weight_decay"] = weight_decay * decays
            if optimizer is None:
                optimizer = torch.optim.SGD([group], momentum=momentum)
            else:
                optimizer.add_param_group(group)
    return optimizer


@accepted("make_optimizer")
def groups_with_empty_ones(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    sets = {path: ([], []) for path in [*rates, ""]}
    seen = set()
    for name, p in model.named_parameters():
        fit = [r for r in rates if name == r or name.startswith(f"{r}.")]
        seen |= set(fit)
        if p.requires_grad:
            low = p.dim() < 2 and not decay_all
            sets[max(fit, key=len, default="")][low].append(p)
    if len(seen) < len(rates):
        raise ValueError("a path without a parameter")
    groups = []
    for path, (high, low) in sets.items():
        rate = rates[path] if path else lr
        groups.append(
            {"params": high, "lr": rate, "weight_decay": weight_decay}
        )
        groups.append({"params": low, "lr": rate, "weight_decay": 0.0})
    return torch.optim.SGD(groups, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=[hidden_tests.rates_by_path, hidden_tests.unknown_paths],
    tells="You take a parameter to belong to a path if its name contains the "
    "path anywhere: `conv1` then also fits `conv10`. Compare the beginning, up "
    'to a dot: `(name + ".").startswith(path + ".")`.',
)
def groups_by_substring(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [path for path in rates if path in name]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=[hidden_tests.rates_by_path, hidden_tests.unknown_paths],
    tells="`name.startswith(path)` without a dot: `conv1` then also fits "
    "`conv10.weight`, and half a word fits as well. Put a dot behind both.",
)
def groups_without_the_dot(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [path for path in rates if name.startswith(path)]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="With the dot alone, a path that is a parameter's whole name fits "
    "nothing. Put a dot behind the name as well, or compare for equality too.",
)
def groups_of_modules_only(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [path for path in rates if name.startswith(path + ".")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=[hidden_tests.rates_by_path, hidden_tests.each_parameter_once],
    tells="Parameters that no path fits are in no group: they are never trained, "
    "and nothing says so. Give the rest a group with the rate `lr`.",
)
def groups_without_the_rest(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad and paths:
            rate = rates[max(paths, key=len)]
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="You give a group the parameters of a path, and another group all "
    "parameters of the model. A parameter may be in one group only: sort each "
    "into exactly one.",
)
def groups_that_overlap(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    named = dict(model.named_parameters())
    groups = []
    for path, rate in rates.items():
        inside = [p for n, p in named.items() if f"{n}.".startswith(f"{path}.")]
        if not inside:
            raise ValueError("a path fits nothing")
        groups.append({"params": inside, "lr": rate})
    groups.append({"params": list(named.values())})
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@wrong(
    "make_optimizer",
    breaks=hidden_tests.longest_path,
    tells="Where several paths fit, you take the first in the dict. The longest "
    "one decides.",
)
def groups_by_the_first_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[paths[0]] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.longest_path,
    tells="Where several paths fit, you take the last in the dict. The longest "
    "one decides.",
)
def groups_by_the_last_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        rate = lr
        for path, own in rates.items():
            if f"{name}.".startswith(f"{path}."):
                used.add(path)
                rate = own
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.longest_path,
    tells="Where several paths fit, you take the shortest. The longest one "
    "decides: it is the most special.",
)
def groups_by_the_shortest_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[min(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="Frozen parameters are in the optimizer. Leave out those whose "
    "`requires_grad` is False.",
)
def groups_with_frozen_ones(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="A generator such as `named_parameters()` can be gone through once. The "
    "second pass finds nothing, and the group stays empty. Make a list or a "
    "dict of it, or call it again.",
)
def groups_of_a_used_generator(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    named = model.named_parameters()
    fitting = {}
    for name, p in named:
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        if paths:
            fitting[name] = max(paths, key=len), p
    for path in rates:
        if not any(f"{n}.".startswith(f"{path}.") for n in fitting):
            raise ValueError("a path fits nothing")
    groups = [{"params": []}]
    for path, p in fitting.values():
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append(
                {"params": [p], "lr": rates[path], "weight_decay": decay}
            )
    for name, p in named:
        if name not in fitting and p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells='Your groups have a key that no optimizer knows, such as "Lr". It is '
    "kept and never read, so all of them train at `lr`. The key is "
    '"lr".',
)
def groups_with_a_misspelt_key(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "Lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="`parameter in some_list` compares tensors by value and raises when "
    "their shapes differ. Compare `id(parameter)`, or names.",
)
def groups_by_membership(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, special = [], []
    for path in sorted(rates, key=len, reverse=True):
        inside = [
            p
            for n, p in model.named_parameters()
            if f"{n}.".startswith(f"{path}.")
        ]
        if not inside:
            raise ValueError("a path fits nothing")
        mine = [p for p in inside if p.requires_grad and p not in special]
        special += inside
        groups.append({"params": mine, "lr": rates[path]})
    rest = [
        p for p in model.parameters() if p.requires_grad and p not in special
    ]
    groups.append({"params": rest})
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="A path that fits no parameter passes unnoticed: a misspelt layer then "
    "trains at the rate of the rest. Count what each path fits, and raise a "
    "`ValueError` if it is nothing.",
)
def groups_for_any_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups = []
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You refuse a path whose parameters are all frozen. It does fit "
    "parameters of the model: look at all of them before you leave out the "
    "frozen ones.",
)
def groups_refusing_frozen_paths(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You refuse a path whose parameters all went to longer paths. It fits "
    "parameters all the same: note what each path fits, not what it is left "
    "with.",
)
def groups_refusing_covered_paths(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        rate = lr
        if paths:
            best = max(paths, key=len)
            used.add(best)
            rate = rates[best]
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=[hidden_tests.each_parameter_once, hidden_tests.it_trains],
    tells="Your optimizer holds other tensors than the model's parameters: "
    "copies, or what `state_dict()` gives. It changes what the model never "
    "reads, or never gets a gradient. Take them from `named_parameters()`.",
)
def groups_of_a_copy(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in copy.deepcopy(model).named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=[hidden_tests.each_parameter_once, hidden_tests.it_trains],
    tells="Your optimizer holds other tensors than the model's parameters: "
    "copies, or what `state_dict()` gives. It changes what the model never "
    "reads, or never gets a gradient. Take them from `named_parameters()`.",
)
def groups_of_the_state_dict(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.state_dict().items():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="All your groups decay. With `decay_all=False` parameters with fewer "
    "than two dimensions get a group with `weight_decay` 0.",
)
def groups_that_all_decay(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            groups.append({"params": [p], "lr": rate})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="You keep the decay off biases by their name. The weights of norms and "
    "other parameters with fewer than two dimensions are decayed: ask for "
    "`parameter.dim()`.",
)
def groups_by_the_name_bias(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            is_bias = name.endswith("bias") and not decay_all
            decay = 0.0 if is_bias else weight_decay
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="`dim() == 1` leaves out parameters without dimensions: a scalar is "
    "decayed. Ask for fewer than two.",
)
def groups_forgetting_scalars(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            spared = p.dim() == 1 and not decay_all
            decay = 0.0 if spared else weight_decay
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="`decay_all` has no effect: parameters with fewer than two dimensions "
    "never decay. With `decay_all=True` they do.",
)
def groups_without_decay_all(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="Only parameters that no path fits keep the decay off their vectors. "
    "The rate and the decay are two decisions: make both for each parameter.",
)
def groups_decaying_special_vectors(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            spared = p.dim() < 2 and not decay_all and not paths
            decay = 0.0 if spared else weight_decay
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.it_trains,
    tells="`momentum` is not handed on. What all groups share goes outside, as an "
    "argument of the optimizer.",
)
def groups_without_momentum(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.it_trains,
    tells="You return another optimizer than `torch.optim.SGD`, so the steps are "
    "other ones.",
)
def groups_of_adamw(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.AdamW(groups, lr=lr)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.it_trains,
    tells="You switched on Nesterov momentum, which nobody asked for. All other "
    "settings are SGD's defaults.",
)
def groups_with_nesterov(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, nesterov=momentum > 0
    )


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="A weight that two layers share stands in your groups twice. "
    "`model.named_parameters()` gives it once; a loop over modules, or "
    "`remove_duplicate=False`, does not.",
)
def groups_with_shared_ones_twice(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = {}, set()
    for name, p in model.named_parameters(remove_duplicate=False):
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.setdefault((rate, decay), []).append(p)
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(
        [
            {"params": members, "lr": rate, "weight_decay": decay}
            for (rate, decay), members in groups.items()
        ],
        lr=lr,
        momentum=momentum,
    )


@wrong(
    "make_optimizer",
    breaks=hidden_tests.hands_off,
    tells="You take the paths out of the caller's dict with `pop`. It stays as it "
    "is: work on a copy, or only read it.",
)
def groups_emptying_the_dict(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, left = [], dict(model.named_parameters())
    for path in sorted(rates, key=len, reverse=True):
        rate = rates.pop(path)
        names = [
            n
            for n, _ in model.named_parameters()
            if f"{n}.".startswith(f"{path}.")
        ]
        if not names:
            raise ValueError("a path fits nothing")
        for n in names:
            p = left.pop(n, None)
            if p is not None and p.requires_grad:
                decay = weight_decay if decay_all or p.dim() > 1 else 0.0
                groups.append(
                    {"params": [p], "lr": rate, "weight_decay": decay}
                )
    for p in left.values():
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="You set `requires_grad` on all parameters, so frozen ones come back "
    "into training. The model stays as it is: leave frozen parameters out.",
)
def groups_that_thaw(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        p.requires_grad_(True)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="You return the list of groups. The optimizer made of it is asked for.",
)
def groups_without_an_optimizer(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return groups


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="`rate or lr` takes a rate of 0 for no rate. Ask whether a path fits, "
    "not whether its rate is true.",
)
def groups_without_a_zero_rate(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates.get(max(paths, key=len, default=None)) or lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="`dim() == 2` decays matrices only: the weights of convolutions have "
    "four dimensions. Fewer than two are spared, all others decay.",
)
def groups_decaying_matrices_only(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() == 2 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You look a path up in `state_dict()`, which has buffers as well. A "
    "running mean is no parameter: look in `named_parameters()`.",
)
def groups_accepting_buffers(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        known = [
            k for k in model.state_dict() if f"{k}.".startswith(f"{path}.")
        ]
        if not known:
            raise ValueError("a path fits nothing")
    groups = []
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="You ask the module at a path for its parameters. A weight that it "
    "shares with another layer then gets this rate, though its name is elsewhere. "
    "Go by the names that `named_parameters()` gives.",
)
def groups_by_module(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    rate_of = {id(p): lr for p in model.parameters()}
    for path in sorted(rates):
        owner, _, last = path.rpartition(".")
        try:
            holder = model.get_submodule(owner)
            one = getattr(holder, last)
        except AttributeError:
            raise KeyError(path) from None
        inside = list(one.parameters()) if isinstance(one, nn.Module) else [one]
        for p in inside:
            if id(p) not in rate_of:
                raise KeyError(path)
            rate_of[id(p)] = rates[path]
    groups = [
        {
            "params": [p],
            "lr": rate_of[id(p)],
            "weight_decay": weight_decay if decay_all or p.dim() > 1 else 0.0,
        }
        for p in model.parameters()
        if p.requires_grad
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="In a regular expression the dot of a path stands for any character. "
    "Escape the path with `re.escape`, or compare strings.",
)
def groups_by_regular_expression(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    import re

    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if re.match(rf"{q}(\.|$)", name)]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.hands_off,
    tells="You seed the global random state. Nothing random is asked for here, and "
    "whoever draws afterwards gets other numbers than expected: leave it alone.",
)
def groups_with_a_seed(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    torch.manual_seed(0)
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


# decayed_step


@accepted("decayed_step")
def decay_by_the_option(model, optimizer, X, y, weight_decay, decoupled=False):
    loss = F.mse_loss(model(X), y)
    optimizer.zero_grad()
    loss.backward()
    has_option = type(optimizer) in (torch.optim.SGD, torch.optim.Adam)
    if decoupled or not has_option:
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and decoupled:
                    p.data *= 1 - group["lr"] * weight_decay
                elif p.grad is not None:
                    p.grad += weight_decay * p.data
        optimizer.step()
        return loss.item()
    kept = [group["weight_decay"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["weight_decay"] = weight_decay
    optimizer.step()
    for group, value in zip(optimizer.param_groups, kept):
        group["weight_decay"] = value
    return loss.item()


@accepted("decayed_step")
def decay_by_a_penalty(model, optimizer, X, y, weight_decay, decoupled=False):
    loss = F.mse_loss(model(X), y)
    params = [p for g in optimizer.param_groups for p in g["params"]]
    params = [p for p in params if p.requires_grad]
    grads = torch.autograd.grad(
        loss, params, retain_graph=True, allow_unused=True
    )
    reached = [p for p, g in zip(params, grads) if g is not None]
    optimizer.zero_grad()
    if decoupled:
        loss.backward()
        ids = {id(p) for p in reached}
        with torch.no_grad():
            for g in optimizer.param_groups:
                for p in g["params"]:
                    if id(p) in ids:
                        p.mul_(1 - g["lr"] * weight_decay)
    else:
        penalty = sum(p.square().sum() for p in reached)
        (loss + weight_decay / 2 * penalty).backward()
    optimizer.step()
    return float(loss.detach())


@accepted("decayed_step")
def decay_by_autograd(model, optimizer, X, y, weight_decay, decoupled=False):
    loss = nn.MSELoss()(model(X), y)
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = None
    wanted = [
        (p, g["lr"])
        for g in optimizer.param_groups
        for p in g["params"]
        if p.requires_grad
    ]
    grads = torch.autograd.grad(loss, [p for p, _ in wanted], allow_unused=True)
    with torch.no_grad():
        for (p, lr), g in zip(wanted, grads):
            if g is None:
                continue
            if decoupled:
                p.sub_(lr * weight_decay * p)
                p.grad = g
            else:
                p.grad = g + weight_decay * p
    optimizer.step()
    return loss.item()


@accepted("decayed_step")
def decay_in_a_hook(model, optimizer, X, y, weight_decay, decoupled=False):
    @torch.no_grad()
    def before_the_step(stepping, args, kwargs):
        for group in stepping.param_groups:
            some = [p for p in group["params"] if p.grad is not None]
            if some and decoupled:
                torch._foreach_mul_(some, 1 - group["lr"] * weight_decay)
            elif some:
                grads = [p.grad for p in some]
                torch._foreach_add_(grads, some, alpha=weight_decay)

    handle = optimizer.register_step_pre_hook(before_the_step)
    model.zero_grad(set_to_none=True)
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    optimizer.step()
    handle.remove()
    return loss.item()


@accepted("decayed_step")
def decay_from_the_side(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    old = {
        p: p.detach().clone() * group["lr"] * weight_decay
        for group in optimizer.param_groups
        for p in group["params"]
        if p.grad is not None
    }
    for p in old:
        if not decoupled:
            p.grad = p.grad + weight_decay * p.detach()
    optimizer.step()
    if decoupled:
        with torch.no_grad():
            for p, shrunk in old.items():
                p -= shrunk
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="You clear gradients to zeros. A layer that was used once then has a "
    "gradient of zeros for ever, and is decayed and moved by momentum though the "
    "loss does not reach it. `zero_grad()` with its default sets None.",
)
def decay_on_zeros(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad(set_to_none=False)
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_the_gradient,
    tells="You decay twice: in the gradient and by the optimizer's own "
    "`weight_decay`. One of them is enough; and its settings stay as they are.",
)
def decay_twice(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            if not decoupled:
                group["weight_decay"] = weight_decay
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_the_gradient,
    tells="Your decay is twice as strong as it should be: the gradient of λ·w² is "
    "2·λ·w. The penalty is λ/2 times the sum of squares, its gradient λ·w.",
)
def decay_by_the_whole_square(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=2 * weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_the_gradient,
    tells="You take the norm, not its square: the gradient of λ·‖w‖ has the same "
    "size for large and small weights. The penalty is λ/2 · ‖w‖².",
)
def decay_by_the_norm(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p / p.norm(), alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="With `decoupled=True` you still add the decay to the gradient, where "
    "Adam scales it away. Shrink the weights themselves by 1 - lr·λ, and leave "
    "the gradient plain.",
)
def decay_never_decoupled(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_the_gradient,
    tells="With `decoupled=False` you shrink the weights themselves. That is the "
    "same for plain SGD only: under momentum and Adam the decay must be part of "
    "the gradient.",
)
def decay_always_decoupled(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["lr"] * weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You decay everything in `state_dict()`: running means and variances "
    "too, and parameters that the optimizer does not have. Only parameters in "
    "the optimizer are decayed.",
)
def decay_of_buffers(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    rate = {
        id(p): (p, group["lr"])
        for group in optimizer.param_groups
        for p in group["params"]
        if p.grad is not None
    }
    with torch.no_grad():
        for p, lr in rate.values():
            if decoupled:
                p.mul_(1 - lr * weight_decay)
            else:
                p.grad.add_(p, alpha=weight_decay)
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.mul_(1 - optimizer.param_groups[0]["lr"] * weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You decay all parameters of the model, also those that are not in the "
    "optimizer. Go through `optimizer.param_groups`.",
)
def decay_outside(model, optimizer, X, y, weight_decay, decoupled=False):
    model.zero_grad()
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    rate = {
        id(p): group["lr"]
        for group in optimizer.param_groups
        for p in group["params"]
    }
    last = optimizer.param_groups[-1]["lr"]
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is None:
                continue
            if decoupled:
                p.mul_(1 - rate.get(id(p), last) * weight_decay)
            else:
                p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="You shrink every parameter of the optimizer, also those that this "
    "step's loss does not reach. Skip parameters whose `.grad` is None.",
)
def decay_of_the_unreached(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                elif p.grad is not None:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="A penalty over all parameters of the optimizer reaches all of them: a "
    "layer that the loss does not use gets the gradient λ·w. Take the penalty "
    "over the reached ones, or add λ·w to the gradients that there are.",
)
def decay_by_a_penalty_on_all(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    if not decoupled:
        params = [p for g in optimizer.param_groups for p in g["params"]]
        penalty = sum(p.square().sum() for p in params)
        (loss + weight_decay / 2 * penalty).backward()
    else:
        loss.backward()
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.mul_(1 - group["lr"] * weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="You multiply by 1 - λ. AdamW's decay is scaled by the learning rate: "
    "1 - lr·λ.",
)
def decay_without_the_rate(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.rate_of_the_group,
    tells="You use the first group's rate for all. The lr in 1 - lr·λ is that of "
    "the weight's own group.",
)
def decay_at_the_first_rate(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    lr = optimizer.param_groups[0]["lr"]
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - lr * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="You take the rate from `optimizer.defaults`, which is not what the "
    'groups use. It stands in `group["lr"]`.',
)
def decay_at_the_default_rate(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    lr = optimizer.defaults["lr"]
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - lr * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="You shrink the weights after the optimizer's step, so the step itself "
    "is shrunk as well. First they shrink, then the step is taken.",
)
def decay_after_the_step(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and not decoupled:
                    p.grad.add_(p, alpha=weight_decay)
        optimizer.step()
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
    return loss.item()


@wrong(
    "decayed_step",
    breaks=[hidden_tests.as_in_adamw, hidden_tests.returned_loss],
    tells="You shrink the weights before the forward pass: loss and gradient are "
    "those of other weights, and you cannot know yet what the loss will reach. "
    "Shrink them between `backward()` and `step()`.",
)
def decay_before_the_forward(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and not decoupled:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="With `decoupled=True` you decay twice: the weights shrink, and the "
    "decay is in the gradient as well. Leave the gradient plain.",
)
def decay_both_ways(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.grad.add_(p, alpha=weight_decay)
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.returned_loss,
    tells="The loss that you return has the penalty in it. It could not be "
    "compared between runs with another decay: return the squared error alone.",
)
def decay_returning_the_penalty(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    penalty = 0.0
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                penalty += weight_decay / 2 * p.square().sum().item()
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item() + penalty


@wrong(
    "decayed_step",
    breaks=hidden_tests.returned_loss,
    tells="You return a tensor, and with it the graph. Return a float: `.item()`.",
)
def decay_returning_a_tensor(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss


@wrong(
    "decayed_step",
    breaks=[hidden_tests.returned_loss, hidden_tests.leaves_the_others],
    tells="You call the model a second time, after the step, for the loss that "
    "you return. It is asked for before the step; and a forward pass in training "
    "moves BatchNorm's statistics.",
)
def decay_returning_the_next_loss(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    F.mse_loss(model(X), y).backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    with torch.no_grad():
        return F.mse_loss(model(X), y).item()


@wrong(
    "decayed_step",
    breaks=[hidden_tests.as_in_the_gradient, hidden_tests.as_in_adamw],
    tells="You leave biases out. Here all parameters are decayed, whatever their "
    "dimensions.",
)
def decay_of_matrices(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None or p.dim() < 2:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.old_gradients,
    tells="You never clear the gradients: each step is made on all gradients so "
    "far. Call `optimizer.zero_grad()` before `backward()`.",
)
def decay_never_cleared(model, optimizer, X, y, weight_decay, decoupled=False):
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.zeros_are_a_gradient,
    tells="You skip parameters whose gradient is zero. Zeros are a gradient, and "
    "PyTorch decays these parameters: skip only those whose `.grad` is None.",
)
def decay_but_not_of_zeros(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None or not p.grad.any():
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You put the model into training mode. It is left as it is: somebody "
    "may have put it into eval on purpose.",
)
def decay_in_train_mode(model, optimizer, X, y, weight_decay, decoupled=False):
    model.train()
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You leave the optimizer's `weight_decay` set, so its next step by "
    "anybody else decays as well. Put back what was there.",
)
def decay_left_switched_on(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            group["weight_decay"] = 0.0 if decoupled else weight_decay
            for p in group["params"]:
                if p.grad is not None and decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="You make a new AdamW for each step. It knows nothing of the steps "
    "before: its averages begin again each time. Use the optimizer you were "
    "given.",
)
def decay_by_a_new_adamw(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    if decoupled:
        groups = [
            {"params": group["params"], "lr": group["lr"]}
            for group in optimizer.param_groups
        ]
        torch.optim.AdamW(groups, weight_decay=weight_decay).step()
        return loss.item()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="A parameter that gets no gradient from this loss keeps the one it had "
    "before, and the optimizer uses it. Clear all gradients of the optimizer "
    "first, those of frozen parameters too.",
)
def decay_beside_old_gradients(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    loss = F.mse_loss(model(X), y)
    mine = [
        (p, group["lr"])
        for group in optimizer.param_groups
        for p in group["params"]
        if p.requires_grad
    ]
    grads = torch.autograd.grad(loss, [p for p, _ in mine], allow_unused=True)
    with torch.no_grad():
        for (p, lr), g in zip(mine, grads):
            if g is None:
                continue
            if decoupled:
                p.mul_(1 - lr * weight_decay)
                p.grad = g
            else:
                p.grad = g + weight_decay * p
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You seed the global random state. Nothing random is asked for here, and "
    "whoever draws afterwards gets other numbers than expected: leave it alone.",
)
def decay_with_a_seed(model, optimizer, X, y, weight_decay, decoupled=False):
    torch.manual_seed(0)
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="You take exp(-lr·λ) for the factor. That is close for small rates, but "
    "AdamW multiplies by 1 - lr·λ.",
)
def decay_by_the_exponential(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(math.exp(-group["lr"] * weight_decay))
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You switch the whole model to training mode and back. Parts of it "
    "may have been in eval on purpose: leave the mode alone.",
)
def steps_restoring_one_mode(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    was = model.training
    model.train()
    for epoch in range(num_epochs):
        used.append([float(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        scheduler.step()
    model.train(was)
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.short_plans,
    tells="You keep the rate above a floor. Nobody asked for one: it is "
    "multiplied by gamma as often as the plan says.",
)
def steps_with_a_floor(model, optimizer, loader, num_epochs, step_size, gamma):
    first = [float(g["lr"]) for g in optimizer.param_groups]
    used = []
    for epoch in range(num_epochs):
        now = [max(1e-6, r * gamma ** (epoch // step_size)) for r in first]
        for g, r in zip(optimizer.param_groups, now):
            g["lr"] = r
        used.append(now)
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You begin one more pass over the loader after the last epoch. Go "
    "through it once for each epoch.",
)
def steps_with_one_more_pass(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    for epoch in range(num_epochs):
        used.append([float(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        scheduler.step()
    for _ in loader:
        break
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You call the model twice for each pair. Dropout would draw and "
    "BatchNorm would count twice.",
)
def steps_calling_twice(model, optimizer, loader, num_epochs, step_size, gamma):
    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    for epoch in range(num_epochs):
        used.append([float(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            model(X)
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        scheduler.step()
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You set `requires_grad` on the whole model. What was frozen stays "
    "frozen.",
)
def steps_that_thaw(model, optimizer, loader, num_epochs, step_size, gamma):
    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    model.requires_grad_(True)
    for epoch in range(num_epochs):
        used.append([float(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        scheduler.step()
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You switch on `requires_grad` of the batches. They are to be left "
    "alone.",
)
def steps_tracking_the_batch(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    for epoch in range(num_epochs):
        used.append([float(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            X.requires_grad_()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        scheduler.step()
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.one_step_per_batch,
    tells="You clip the gradient. Nobody asked for it: large gradients give "
    "other steps.",
)
def steps_clipped(model, optimizer, loader, num_epochs, step_size, gamma):
    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    for epoch in range(num_epochs):
        used.append([float(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
        scheduler.step()
    return used


@wrong(
    "train_in_steps",
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="You divide by the rate of the first group. It may be 0.",
)
def steps_by_ratio_of_groups(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    first = [float(g["lr"]) for g in optimizer.param_groups]
    used = []
    for epoch in range(num_epochs):
        now = [
            first[0] * gamma ** (epoch // step_size) * (r / first[0])
            for r in first
        ]
        for g, r in zip(optimizer.param_groups, now):
            g["lr"] = r
        used.append(now)
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return used


@accepted("train_in_steps")
def steps_telling_numpy_floats(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    import numpy as np

    scheduler = lr_scheduler.StepLR(optimizer, step_size, gamma)
    used = []
    for epoch in range(num_epochs):
        used.append([np.float64(r) for r in scheduler.get_last_lr()])
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
        scheduler.step()
    return used


@accepted("train_in_steps")
def steps_through_the_state_dict(
    model, optimizer, loader, num_epochs, step_size, gamma
):
    first = [float(g["lr"]) for g in optimizer.param_groups]
    used = []
    for epoch in range(num_epochs):
        now = [r * gamma ** (epoch // step_size) for r in first]
        sd = optimizer.state_dict()
        for g, r in zip(sd["param_groups"], now):
            g["lr"] = r
        optimizer.load_state_dict(sd)
        used.append(now)
        for X, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(X), y).backward()
            optimizer.step()
    return used


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You take the empty path for the whole model. It fits no parameter "
    "and is refused.",
)
def groups_of_the_empty_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            path == "" or (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You strip a dot at the end of a path. `head.` fits no parameter "
    "and is refused.",
)
def groups_stripping_dots(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path.rstrip(".") + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [
            q for q in rates if (name + ".").startswith(q.rstrip(".") + ".")
        ]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You look for unknown paths with a regular expression, in which a "
    "dot stands for any character.",
)
def groups_checked_by_expression(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    import re

    for path in rates:
        if not any(
            re.match(path + r"(\.|$)", n) for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You accept the path of every module, also of one without "
    "parameters. It fits no parameter.",
)
def groups_of_known_modules(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    known = {n for n, _ in model.named_modules()} | {
        n for n, _ in model.named_parameters()
    }
    for path in rates:
        if path not in known:
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.unknown_paths,
    tells="You accept the second name of a shared parameter. It goes by the "
    "name that `named_parameters()` gives it.",
)
def groups_by_second_names(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters(remove_duplicate=False)
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="You look at paths of one or two parts and at full names. A path "
    "may be of any length.",
)
def groups_two_parts_deep(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        parts = name.split(".")
        fits = [q for q in rates if q in (name, parts[0], ".".join(parts[:2]))]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.it_trains,
    tells="You set `foreach`. All settings that nobody mentions are SGD's "
    "defaults.",
)
def groups_with_foreach(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum, foreach=True)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.rates_by_path,
    tells="You round the rates. Pass them on as they are.",
)
def groups_of_rounded_rates(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": round(r, 5), "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.hands_off,
    tells="You bring the dict of rates into another order. It belongs to the "
    "caller: sort a copy.",
)
def groups_sorting_the_dict(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    for q in sorted(rates):
        rates[q] = rates.pop(q)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.hands_off,
    tells="You freeze what has a rate of 0. The model stays as it is.",
)
def groups_freezing_zero_rates(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        if rate == 0:
            p.requires_grad_(False)
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.hands_off,
    tells="You clear gradients of the model. Making an optimizer leaves them "
    "alone.",
)
def groups_clearing_gradients(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
        p.grad = None
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="Without decay you hand over all parameters of the model, frozen "
    "ones and paths included.",
)
def groups_short_without_decay(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    if weight_decay == 0:
        return torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.each_parameter_once,
    tells="Without paths you hand over all parameters of the model, frozen "
    "ones included.",
)
def groups_short_without_paths(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    if not rates and decay_all:
        return torch.optim.SGD(
            model.parameters(),
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "make_optimizer",
    breaks=hidden_tests.decay_by_dimensions,
    tells="You spare a matrix of one element. It has two dimensions, so it "
    "decays.",
)
def groups_counting_elements(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = (
            weight_decay
            if decay_all
            or p.dim() > 1
            and p.dtype.is_floating_point
            and p.numel() > 1
            else 0.0
        )
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    "decayed_step",
    breaks=hidden_tests.returned_loss,
    tells="You sum over the columns of `y`. `F.mse_loss` takes the mean over "
    "all elements.",
)
def decay_summing_columns(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = (model(X) - y).square().sum(-1).mean()
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_optimizer,
    tells="You set the option `weight_decay` of any optimizer. AdamW decays "
    "differently by it, and Rprop does not know it.",
)
def decay_by_the_option_of_any(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    if decoupled:
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.mul_(1 - group["lr"] * weight_decay)
        optimizer.step()
    else:
        old = [g.get("weight_decay", 0) for g in optimizer.param_groups]
        for g in optimizer.param_groups:
            g["weight_decay"] = weight_decay
        optimizer.step()
        for g, o in zip(optimizer.param_groups, old):
            g["weight_decay"] = o
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_parameter,
    tells="A layer that stands in the model under two names is decayed twice."
    " Go through the groups of the optimizer.",
)
def decay_of_shared_twice(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    rates = {p: g["lr"] for g in optimizer.param_groups for p in g["params"]}
    with torch.no_grad():
        for _, p in model.named_parameters(remove_duplicate=False):
            if p.grad is None or p not in rates:
                continue
            if decoupled:
                p.mul_(1 - rates[p] * weight_decay)
            else:
                p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_adamw,
    tells="You keep 1 - lr·λ from becoming negative. AdamW does not.",
)
def decay_clamped(model, optimizer, X, y, weight_decay, decoupled=False):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(max(0.0, 1 - group["lr"] * weight_decay))
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You leave out parameters without dimensions. Every parameter "
    "decays that the loss reaches.",
)
def decay_but_not_of_scalars(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None or p.dim() == 0:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You decay what is registered in the model. What counts is that it "
    "is in the optimizer and that the loss reaches it.",
)
def decay_of_registered_ones(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None or not any(
                    p is q for q in model.parameters()
                ):
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You remember what the first step reached. Another step may reach "
    "other parameters.",
)
def decay_of_those_reached_first(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    seen = vars(model).setdefault(
        "reached", {p for p in model.parameters() if p.grad is not None}
    )
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None or p not in seen:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You delete the state of parameters that this loss does not reach. "
    "They lose their momentum.",
)
def decay_forgetting_the_unreached(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    for p in list(optimizer.state):
        if p.grad is None:
            del optimizer.state[p]
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.as_in_the_gradient,
    tells="You leave early when the loss is 0. The weights decay all the "
    "same, and momentum goes on.",
)
def decay_skipping_perfect_steps(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    if loss == 0:
        return 0.0
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You switch the whole model to training mode and back. Parts of it "
    "may have been in eval on purpose: leave the mode alone.",
)
def decay_restoring_one_mode(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    was = model.training
    model.train()
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    model.train(was)
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You leave the decay in the optimizer's `defaults`: a group that is"
    " added later would decay.",
)
def decay_left_in_the_defaults(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.defaults["weight_decay"] = weight_decay
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.leaves_the_others,
    tells="You switch on `requires_grad` of `X`. It is to be left alone.",
)
def decay_tracking_the_batch(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X.requires_grad_()), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="You clear the gradients of the model only. The optimizer may hold "
    "a parameter that the model does not, with an old gradient.",
)
def decay_beside_stray_gradients(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    model.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@wrong(
    "decayed_step",
    breaks=hidden_tests.each_kind_of_optimizer,
    tells="Under AdamW you shrink the weights whatever `decoupled` says. It "
    "is the argument that decides.",
)
def decay_by_the_name_of_adamw(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled or isinstance(optimizer, torch.optim.AdamW):
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item()


@accepted("decayed_step")
def decay_with_a_new_gradient(
    model, optimizer, X, y, weight_decay, decoupled=False
):
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), y)
    loss.backward()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad = p.grad + weight_decay * p.detach()
    optimizer.step()
    return loss.item()


@accepted("decayed_step")
def decay_in_lists(model, optimizer, X, y, weight_decay, decoupled=False):
    for g in optimizer.param_groups:
        for p in g["params"]:
            p.grad = None
    loss = F.mse_loss(model(X), y)
    loss.backward()
    for g in optimizer.param_groups:
        ps = [p.detach() for p in g["params"] if p.grad is not None]
        gs = [p.grad for p in g["params"] if p.grad is not None]
        if not ps:
            continue
        if decoupled:
            torch._foreach_mul_(ps, 1 - float(g["lr"]) * weight_decay)
        else:
            torch._foreach_add_(gs, ps, alpha=weight_decay)
    optimizer.step()
    return loss.detach().double().item()
