"""Answers to `train_in_steps` of chapter 06."""

import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
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


@accepted()
def steps_by_milestones(model, optimizer, loader, num_epochs, step_size, gamma):
    milestones = list(range(step_size, num_epochs + 1, step_size))
    plan = lr_scheduler.MultiStepLR(optimizer, milestones, gamma)
    rates = []
    for _ in range(num_epochs):
        rates.append(list(plan.get_last_lr()))
        for X, y in loader:
            optimizer.zero_grad(set_to_none=True)
            (model(X) - y).square().mean().backward()
            optimizer.step()
        plan.step()
    return rates


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def mended_steps_in_train_mode(
    model, optimizer, loader, num_epochs, step_size, gamma
):
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
