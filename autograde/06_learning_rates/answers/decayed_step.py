"""Answers to `decayed_step` of chapter 06."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def mended_decay_returning_the_penalty(
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
                if decoupled:
                    p.mul_(1 - group["lr"] * weight_decay)
                else:
                    p.grad.add_(p, alpha=weight_decay)
    optimizer.step()
    return loss.item() + penalty


@wrong(
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
