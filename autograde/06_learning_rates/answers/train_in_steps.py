"""Answers to `train_in_steps` of chapter 06."""

import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


steps_scheduler_first = edit(
    mended_steps_in_train_mode,
    {
        "for _ in range(num_epochs):": """
        for _ in range(num_epochs):
            plan.step()
        """,
        "plan.step()": "",
    },
    breaks=[hidden_tests.ten_ten_five, hidden_tests.without_warnings],
    tells="You step the scheduler at the start of each epoch, before anything has "
    "been trained: every drop comes one epoch early. Step it at the end of the "
    "epoch, after the optimizer.",
)

EARLY_IN_SILENCE = (
    "The drops come one epoch early, and nothing warns of it: you step the scheduler "
    "before the epoch and silence the warning, or your epochs count from 1. The first "
    "`step_size` epochs have the rates at the start. Count from 0, and step the "
    "scheduler at the end of the epoch."
)

steps_silenced = edit(
    mended_steps_in_train_mode,
    {
        "for _ in range(num_epochs):": """
        for _ in range(num_epochs):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plan.step()
        """,
        "plan.step()": "",
    },
    breaks=hidden_tests.ten_ten_five,
    tells=EARLY_IN_SILENCE,
)

steps_counted_from_one = edit(
    mended_steps_in_train_mode,
    {
        "plan = lr_scheduler.StepLR(optimizer, step_size, gamma)": """
        plan = lr_scheduler.LambdaLR(
            optimizer, lambda epoch: gamma ** ((epoch + 1) // step_size)
        )
        """,
    },
    breaks=hidden_tests.ten_ten_five,
    tells=EARLY_IN_SILENCE,
)

steps_each_batch = edit(
    steps_of_an_exponential,
    {
        "plan = lr_scheduler.ExponentialLR(optimizer, gamma)": "plan = lr_scheduler.StepLR(optimizer, step_size, gamma)",
        "for epoch in range(1, num_epochs + 1):": "for _ in range(num_epochs):",
        "model.zero_grad()": "optimizer.zero_grad()",
        "if epoch % step_size == 0:": "",
    },
    breaks=hidden_tests.ten_ten_five,
    tells="You step the scheduler after every batch, so it counts batches as "
    "epochs and drops far too early. Step it once, after the loop over the "
    "batches.",
)

steps_recorded_late = edit(
    mended_steps_in_train_mode,
    {
        "rates.append(plan.get_last_lr())": "",
        "plan.step()": """
        plan.step()
        rates.append(plan.get_last_lr())
        """,
    },
    breaks=hidden_tests.returned_rates,
    tells="You write the rates down after the scheduler has stepped: they are "
    "those of the next epoch. Read them before the epoch is trained.",
)

steps_over_an_int = edit(
    mended_steps_in_train_mode,
    {"for _ in range(num_epochs):": "for _ in num_epochs:"},
    breaks=hidden_tests.one_step_per_batch,
    tells="Your code stops with a TypeError before anything is trained. A number "
    "cannot be looped over: write `range(num_epochs)`. And the argument "
    "`verbose=` of schedulers was removed: leave it out.",
)

steps_with_the_epoch = edit(
    mended_steps_in_train_mode,
    {
        "for _ in range(num_epochs):": "for epoch in range(num_epochs):",
        "plan.step()": "plan.step(epoch)",
    },
    breaks=[hidden_tests.ten_ten_five, hidden_tests.without_warnings],
    tells="You hand the epoch to `scheduler.step(epoch)`. The argument is "
    "deprecated, and the number is that of the epoch that has just ended, so "
    "drops come late. Call `step()` without it.",
)

steps_with_the_next_epoch = edit(
    mended_steps_in_train_mode,
    {
        "for _ in range(num_epochs):": "for epoch in range(num_epochs):",
        "plan.step()": "plan.step(epoch + 1)",
    },
    breaks=hidden_tests.without_warnings,
    tells="The rates are right, but `scheduler.step(epoch)` is deprecated and "
    "warns. The scheduler counts by itself: call `step()`.",
)

steps_verbose = edit(
    mended_steps_in_train_mode,
    {
        "plan = lr_scheduler.StepLR(optimizer, step_size, gamma)": "",
        "rates = []": """
        rates = []
        plan = lr_scheduler.StepLR(optimizer, step_size, gamma, verbose=False)
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="Your code stops with a TypeError before anything is trained. A number "
    "cannot be looped over: write `range(num_epochs)`. And the argument "
    "`verbose=` of schedulers was removed: leave it out.",
)

steps_scheduler_made_late = edit(
    mended_steps_in_train_mode,
    {
        "plan = lr_scheduler.StepLR(optimizer, step_size, gamma)": "",
        "for _ in range(num_epochs):": """
        for _ in range(num_epochs):
            plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
        """,
    },
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="You make a new scheduler in every epoch. Each begins to count at 0, so "
    "the plan is never reached. Make it once, before the first epoch.",
)

steps_every_epoch = edit(
    mended_steps_in_train_mode,
    {
        "plan = lr_scheduler.StepLR(optimizer, step_size, gamma)": "plan = lr_scheduler.ExponentialLR(optimizer, gamma)",
    },
    breaks=hidden_tests.ten_ten_five,
    tells="You multiply by `gamma` after every epoch. It is due once in "
    "`step_size` epochs.",
)

steps_dropped_at_once = edit(
    steps_multiplied_in_place,
    {
        "if epoch > 0 and epoch % step_size == 0:": "if epoch % step_size == 0:",
        "for batch in loader:": "for X, y in loader:",
        """
        loss = nn.MSELoss()(model(batch[0]), batch[1])
        loss.backward()
        """: "F.mse_loss(model(X), y).backward()",
    },
    breaks=hidden_tests.short_plans,
    tells="`epoch % step_size == 0` is true for the first epoch as well, so it is "
    "trained with a rate that has dropped already. Leave out epoch 0.",
)


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


steps_never_cleared = edit(
    mended_steps_in_train_mode,
    {"optimizer.zero_grad()": ""},
    breaks=hidden_tests.one_step_per_batch,
    tells="You never clear the gradients: each step is made on the sum of all "
    "gradients so far. Call `optimizer.zero_grad()` before each `backward()`.",
)


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


steps_returning_numbers = edit(
    mended_steps_in_train_mode,
    {
        "rates.append(plan.get_last_lr())": "rates.append(plan.get_last_lr()[0])",
    },
    breaks=hidden_tests.returned_rates,
    tells="You return one number for each epoch: the rate of the first group. "
    "Each epoch's entry is a list, with one number for each group.",
)


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


steps_returning_batches = edit(
    steps_by_lambda,
    {
        "LambdaLR(optimizer, lambda n: gamma ** (n // step_size)": "StepLR(optimizer, step_size, gamma",
        'rates.append([group["lr"] for group in optimizer.param_groups])': "",
        "loss = F.mse_loss(model(X), y)": "rates.append(plan.get_last_lr())",
        "loss.backward()": "F.mse_loss(model(X), y).backward()",
    },
    breaks=hidden_tests.returned_rates,
    tells="You write the rates down once for each batch. Return one entry for "
    "each epoch.",
)

steps_in_train_mode = edit(
    mended_steps_in_train_mode,
    {
        "rates = []": """
        rates = []
        model.train()
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You put the model into training mode. The text asks you to leave the "
    "mode as it is: some layers may be in eval on purpose.",
)

steps_by_length = edit(
    steps_of_an_exponential,
    {
        "plan = lr_scheduler.ExponentialLR(optimizer, gamma)": """
        num_steps = num_epochs * len(loader)
        plan = lr_scheduler.StepLR(optimizer, step_size * len(loader), gamma)
        """,
        "for epoch in range(1, num_epochs + 1):": "for _ in range(num_epochs):",
        "model.zero_grad()": "optimizer.zero_grad()",
        "if epoch % step_size == 0:": "",
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You ask the loader for its length. It need not have one: go through it "
    "with a `for` loop.",
)

steps_lower_decay_too = edit(
    steps_multiplied_in_place,
    {
        'group["lr"] *= gamma': """
        group["lr"] *= gamma
        group["weight_decay"] *= gamma
        """,
        "for batch in loader:": "for X, y in loader:",
        """
        loss = nn.MSELoss()(model(batch[0]), batch[1])
        loss.backward()
        """: "F.mse_loss(model(X), y).backward()",
    },
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="Dropping the rate, you also lower the weight decay of the group. Only "
    'its `"lr"` changes.',
)

steps_cleared_afterwards = edit(
    mended_steps_in_train_mode,
    {
        "optimizer.zero_grad()": "",
        "optimizer.step()": """
        optimizer.step()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You clear the gradients after each step, and never before the first: "
    "what somebody left in `.grad` is part of that step. Clear before each "
    "`backward()`.",
)

steps_on_kept_batches = edit(
    mended_steps_in_train_mode,
    {
        "rates = []": "rates, batches = [], list(loader)",
        "for X, y in loader:": "for X, y in batches:",
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You do not go through the loader once for each epoch: you keep its "
    "first batches, or take a pass only to count them. A loader that shuffles "
    "has other batches each time. Loop over it once per epoch.",
)

steps_after_counting = edit(
    steps_of_an_exponential,
    {
        "plan = lr_scheduler.ExponentialLR(optimizer, gamma)": """
        length = step_size * sum(1 for _ in loader)
        plan = lr_scheduler.StepLR(optimizer, length, gamma)
        """,
        "for epoch in range(1, num_epochs + 1):": "for _ in range(num_epochs):",
        "model.zero_grad()": "optimizer.zero_grad()",
        "if epoch % step_size == 0:": "",
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You do not go through the loader once for each epoch: you keep its "
    "first batches, or take a pass only to count them. A loader that shuffles "
    "has other batches each time. Loop over it once per epoch.",
)

steps_rounded = edit(
    steps_by_hand,
    {
        "rates.append([lr * factor for lr in base])": "rates.append([round(lr * factor, 6) for lr in base])",
        "loss = F.mse_loss(model(X), y)": "",
        "loss.backward()": "F.mse_loss(model(X), y).backward()",
    },
    breaks=hidden_tests.ten_ten_five,
    tells="You round the rates. Rates are used as they are; round only what you "
    "print.",
)

steps_forgetting_momentum = edit(
    mended_steps_in_train_mode,
    {
        "for _ in range(num_epochs):": """
        for epoch in range(num_epochs):
            if epoch % step_size == 0:
                optimizer.state.clear()
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="With each drop you clear what the optimizer remembers: momentum and "
    "Adam's averages begin anew. Only the rate changes.",
)

steps_with_a_seed = edit(
    steps_by_lambda,
    {
        "plan = lr_scheduler.LambdaLR(optimizer, lambda n: gamma ** (n // step_size))": """
        torch.manual_seed(0)
        plan = lr_scheduler.StepLR(optimizer, step_size, gamma)
        """,
        'rates.append([group["lr"] for group in optimizer.param_groups])': "rates.append(plan.get_last_lr())",
        "loss = F.mse_loss(model(X), y)": "",
        "loss.backward()": "F.mse_loss(model(X), y).backward()",
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You seed the global random state. Nothing random is asked for here, and "
    "whoever draws afterwards gets other numbers than expected: leave it alone.",
)


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


steps_with_one_more_pass = edit(
    steps_telling_numpy_floats,
    {
        "import numpy as np": "",
        "used.append([np.float64(r) for r in scheduler.get_last_lr()])": "used.append([float(r) for r in scheduler.get_last_lr()])",
        "return used": """
        for _ in loader:
            break
        return used
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You begin one more pass over the loader after the last epoch. Go "
    "through it once for each epoch.",
)

steps_calling_twice = edit(
    steps_telling_numpy_floats,
    {
        "import numpy as np": "",
        "used.append([np.float64(r) for r in scheduler.get_last_lr()])": "used.append([float(r) for r in scheduler.get_last_lr()])",
        "optimizer.zero_grad()": """
        optimizer.zero_grad()
        model(X)
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You call the model twice for each pair. Dropout would draw and "
    "BatchNorm would count twice.",
)

steps_that_thaw = edit(
    steps_telling_numpy_floats,
    {
        "import numpy as np": "",
        "used = []": """
        used = []
        model.requires_grad_(True)
        """,
        "used.append([np.float64(r) for r in scheduler.get_last_lr()])": "used.append([float(r) for r in scheduler.get_last_lr()])",
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You set `requires_grad` on the whole model. What was frozen stays "
    "frozen.",
)

steps_tracking_the_batch = edit(
    steps_telling_numpy_floats,
    {
        "import numpy as np": "",
        "used.append([np.float64(r) for r in scheduler.get_last_lr()])": "used.append([float(r) for r in scheduler.get_last_lr()])",
        "optimizer.zero_grad()": """
        optimizer.zero_grad()
        X.requires_grad_()
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You switch on `requires_grad` of the batches. They are to be left "
    "alone.",
)

steps_clipped = edit(
    steps_telling_numpy_floats,
    {
        "import numpy as np": "",
        "used.append([np.float64(r) for r in scheduler.get_last_lr()])": "used.append([float(r) for r in scheduler.get_last_lr()])",
        "F.mse_loss(model(X), y).backward()": """
        F.mse_loss(model(X), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You clip the gradient. Nobody asked for it: large gradients give "
    "other steps.",
)


@wrong(
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


steps_cleared_to_zeros = edit(
    mended_steps_in_train_mode,
    {"optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)"},
    breaks=hidden_tests.one_step_per_batch,
    tells="You set gradients to zeros. A frozen parameter that still has an old "
    "gradient then has one of zeros, and weight decay and momentum move it. "
    "`zero_grad()` with its default sets None, which the optimizer skips.",
)

steps_cleared_once_an_epoch = edit(
    mended_steps_in_train_mode,
    {
        """
        for X, y in loader:
            optimizer.zero_grad()
        """: """
        optimizer.zero_grad()
        for X, y in loader:
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You clear the gradients once for each epoch. Within it they add up: each "
    "step is made on the sum over all batches so far. Clear before each "
    "`backward()`.",
)

steps_on_the_sum = edit(
    mended_steps_in_train_mode,
    {
        "F.mse_loss(model(X), y).backward()": 'F.mse_loss(model(X), y, reduction="sum").backward()',
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You train on the sum of the squared errors. The exercise asks for their "
    "mean, `F.mse_loss(model(X), y)`.",
)

steps_skipping_zero_rates = edit(
    mended_steps_in_train_mode,
    {
        "rates.append(plan.get_last_lr())": """
        rates.append(plan.get_last_lr())
        if not any(rates[-1]):
            plan.step()
            continue
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You leave out epochs in which all rates are 0. They train no weight, and "
    "batch norm's statistics move all the same. The model is called for "
    "each pair.",
)

steps_not_where_the_loss_is_zero = edit(
    SOLUTION,
    {
        "F.mse_loss(model(X), y).backward()": """
        loss = F.mse_loss(model(X), y)
        if loss.item() == 0:
            continue
        loss.backward()
        """
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You make no step where the loss is 0. There is one for each pair: weight decay "
    "and momentum move the weights all the same.",
)

steps_not_where_the_loss_is_infinite = edit(
    SOLUTION,
    {
        "F.mse_loss(model(X), y).backward()": """
        loss = F.mse_loss(model(X), y)
        if not loss.isfinite():
            continue
        loss.backward()
        """
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You make no step where the loss is not finite. Nobody asked for it: it hides "
    "what is wrong with the data. There is one step for each pair.",
)

steps_in_double = edit(
    SOLUTION,
    {
        "F.mse_loss(model(X), y).backward()": "F.mse_loss(model(X.double()), y.double()).backward()"
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You make float64 of the batches. A model in float32, the usual one, refuses "
    "them. Take the batches as they are.",
)

steps_by_nine_milestones = edit(
    steps_by_milestones,
    {
        "milestones = list(range(step_size, num_epochs + 1, step_size))": "milestones = list(range(step_size, 10 * step_size, step_size))"
    },
    breaks=hidden_tests.short_plans,
    tells="Your list of drops ends too early. There is one after every `step_size` epochs, "
    "as long as the run lasts.",
)

steps_without_nesterov = edit(
    steps_multiplied_in_place,
    {
        'group["lr"] *= gamma': """
        group["lr"] *= gamma
        if group.get("nesterov"):
            group["nesterov"] = False
        """
    },
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="Dropping the rate, you also change a setting of momentum: `nesterov` or "
    '`dampening`. Only `"lr"` changes.',
)

steps_without_dampening = edit(
    steps_multiplied_in_place,
    {
        'group["lr"] *= gamma': """
        group["lr"] *= gamma
        if group.get("dampening"):
            group["dampening"] = 0
        """
    },
    breaks=hidden_tests.groups_keep_their_ratio,
    tells="Dropping the rate, you also change a setting of momentum: `nesterov` or "
    '`dampening`. Only `"lr"` changes.',
)

cleared_layer_by_layer = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for layer in model.children():
            layer.zero_grad()
        """
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `optimizer.zero_grad()` clears all.",
)

steps_clipped_to_one = edit(
    SOLUTION,
    {
        "F.mse_loss(model(X), y).backward()": """
        F.mse_loss(model(X), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You clip the gradient. Nobody asked for it: large gradients give "
    "other steps.",
)
