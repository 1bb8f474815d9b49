"""Answers to `decayed_step` of chapter 06."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


decay_on_zeros = edit(
    decay_with_a_new_gradient,
    {
        "optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="You clear gradients to zeros. A layer that was used once then has a "
    "gradient of zeros for ever, and is decayed and moved by momentum though the "
    "loss does not reach it. `zero_grad()` with its default sets None.",
)

decay_twice = edit(
    decay_with_a_new_gradient,
    {
        "for group in optimizer.param_groups:": """
        for group in optimizer.param_groups:
            if not decoupled:
                group["weight_decay"] = weight_decay
        """,
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.as_in_the_gradient,
    tells="You decay twice: in the gradient and by the optimizer's own "
    "`weight_decay`. One of them is enough; and its settings stay as they are.",
)

decay_by_the_whole_square = edit(
    decay_with_a_new_gradient,
    {
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=2 * weight_decay)",
    },
    breaks=hidden_tests.as_in_the_gradient,
    tells="Your decay is twice as strong as it should be: the gradient of λ·w² is "
    "2·λ·w. The penalty is λ/2 times the sum of squares, its gradient λ·w.",
)

decay_by_the_norm = edit(
    decay_with_a_new_gradient,
    {
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p / p.norm(), alpha=weight_decay)",
    },
    breaks=hidden_tests.as_in_the_gradient,
    tells="You take the norm, not its square: the gradient of λ·‖w‖ has the same "
    "size for large and small weights. The penalty is λ/2 · ‖w‖².",
)


@wrong(
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


decay_of_the_unreached = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": "",
        """
        if p.grad is None:
            continue
        """: "",
        "else:": "elif p.grad is not None:",
        "return loss.item() + penalty": "return loss.item()",
    },
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="You shrink every parameter of the optimizer, also those that this "
    "step's loss does not reach. Skip parameters whose `.grad` is None.",
)


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


decay_without_the_rate = edit(
    decay_with_a_new_gradient,
    {
        'p.mul_(1 - group["lr"] * weight_decay)': "p.mul_(1 - weight_decay)",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.as_in_adamw,
    tells="You multiply by 1 - λ. AdamW's decay is scaled by the learning rate: "
    "1 - lr·λ.",
)

decay_at_the_first_rate = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": 'lr = optimizer.param_groups[0]["lr"]',
        'p.mul_(1 - group["lr"] * weight_decay)': "p.mul_(1 - lr * weight_decay)",
        "return loss.item() + penalty": "return loss.item()",
    },
    breaks=hidden_tests.rate_of_the_group,
    tells="You use the first group's rate for all. The lr in 1 - lr·λ is that of "
    "the weight's own group.",
)

decay_at_the_default_rate = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": 'lr = optimizer.defaults["lr"]',
        'p.mul_(1 - group["lr"] * weight_decay)': "p.mul_(1 - lr * weight_decay)",
        "return loss.item() + penalty": "return loss.item()",
    },
    breaks=hidden_tests.as_in_adamw,
    tells="You take the rate from `optimizer.defaults`, which is not what the "
    'groups use. It stands in `group["lr"]`.',
)


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


decay_both_ways = edit(
    decay_with_a_new_gradient,
    {
        "if decoupled:": """
        p.grad.add_(p, alpha=weight_decay)
        if decoupled:
        """,
        """
        else:
            p.grad = p.grad + weight_decay * p.detach()
        """: "",
    },
    breaks=hidden_tests.as_in_adamw,
    tells="With `decoupled=True` you decay twice: the weights shrink, and the "
    "decay is in the gradient as well. Leave the gradient plain.",
)

decay_returning_the_penalty = edit(
    mended_decay_returning_the_penalty,
    {
        "if decoupled:": """
        penalty += weight_decay / 2 * p.square().sum().item()
        if decoupled:
        """,
    },
    breaks=hidden_tests.returned_loss,
    tells="The loss that you return has the penalty in it. It could not be "
    "compared between runs with another decay: return the squared error alone.",
)

decay_returning_a_tensor = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": "",
        "return loss.item() + penalty": "return loss",
    },
    breaks=hidden_tests.returned_loss,
    tells="You return a tensor, and with it the graph. Return a float: `.item()`.",
)

decay_returning_the_next_loss = edit(
    mended_decay_returning_the_penalty,
    {
        """
        loss = F.mse_loss(model(X), y)
        loss.backward()
        penalty = 0.0
        """: "F.mse_loss(model(X), y).backward()",
        "return loss.item() + penalty": """
        with torch.no_grad():
            return F.mse_loss(model(X), y).item()
        """,
    },
    breaks=[hidden_tests.returned_loss, hidden_tests.leaves_the_others],
    tells="You call the model a second time, after the step, for the loss that "
    "you return. It is asked for before the step; and a forward pass in training "
    "moves BatchNorm's statistics.",
)

decay_of_matrices = edit(
    decay_with_a_new_gradient,
    {
        "if p.grad is None:": "if p.grad is None or p.dim() < 2:",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=[hidden_tests.as_in_the_gradient, hidden_tests.as_in_adamw],
    tells="You leave biases out. Here all parameters are decayed, whatever their "
    "dimensions.",
)

decay_never_cleared = edit(
    decay_with_a_new_gradient,
    {
        "optimizer.zero_grad()": "",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.old_gradients,
    tells="You never clear the gradients: each step is made on all gradients so "
    "far. Call `optimizer.zero_grad()` before `backward()`.",
)

decay_but_not_of_zeros = edit(
    decay_with_a_new_gradient,
    {
        "if p.grad is None:": "if p.grad is None or not p.grad.any():",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.zeros_are_a_gradient,
    tells="You skip parameters whose gradient is zero. Zeros are a gradient, and "
    "PyTorch decays these parameters: skip only those whose `.grad` is None.",
)

decay_in_train_mode = edit(
    decay_with_a_new_gradient,
    {
        """
        def decay_with_a_new_gradient(
            model, optimizer, X, y, weight_decay, decoupled=False
        ):
        """: """
        def decay_with_a_new_gradient(model, optimizer, X, y, weight_decay, decoupled=False):
            model.train()
        """,
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.leaves_the_others,
    tells="You put the model into training mode. It is left as it is: somebody "
    "may have put it into eval on purpose.",
)


@wrong(
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


decay_with_a_seed = edit(
    decay_with_a_new_gradient,
    {
        """
        def decay_with_a_new_gradient(
            model, optimizer, X, y, weight_decay, decoupled=False
        ):
        """: """
        def decay_with_a_new_gradient(model, optimizer, X, y, weight_decay, decoupled=False):
            torch.manual_seed(0)
        """,
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.leaves_the_others,
    tells="You seed the global random state. Nothing random is asked for here, and "
    "whoever draws afterwards gets other numbers than expected: leave it alone.",
)

decay_by_the_exponential = edit(
    decay_with_a_new_gradient,
    {
        'p.mul_(1 - group["lr"] * weight_decay)': 'p.mul_(math.exp(-group["lr"] * weight_decay))',
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.as_in_adamw,
    tells="You take exp(-lr·λ) for the factor. That is close for small rates, but "
    "AdamW multiplies by 1 - lr·λ.",
)

decay_summing_columns = edit(
    decay_with_a_new_gradient,
    {
        "loss = F.mse_loss(model(X), y)": "loss = (model(X) - y).square().sum(-1).mean()",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.returned_loss,
    tells="You sum over the columns of `y`. `F.mse_loss` takes the mean over "
    "all elements.",
)


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


decay_clamped = edit(
    decay_with_a_new_gradient,
    {
        'p.mul_(1 - group["lr"] * weight_decay)': 'p.mul_(max(0.0, 1 - group["lr"] * weight_decay))',
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.as_in_adamw,
    tells="You keep 1 - lr·λ from becoming negative. AdamW does not.",
)

decay_but_not_of_scalars = edit(
    decay_with_a_new_gradient,
    {
        "if p.grad is None:": "if p.grad is None or p.dim() == 0:",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You leave out parameters without dimensions. Every parameter "
    "decays that the loss reaches.",
)

decay_of_registered_ones = edit(
    decay_with_a_new_gradient,
    {
        "if p.grad is None:": """
        if p.grad is None or not any(
            p is q for q in model.parameters()
        ):
        """,
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You decay what is registered in the model. What counts is that it "
    "is in the optimizer and that the loss reaches it.",
)

decay_of_those_reached_first = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": """
        seen = vars(model).setdefault(
            "reached", {p for p in model.parameters() if p.grad is not None}
        )
        """,
        "if p.grad is None:": "if p.grad is None or p not in seen:",
        "return loss.item() + penalty": "return loss.item()",
    },
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You remember what the first step reached. Another step may reach "
    "other parameters.",
)

decay_forgetting_the_unreached = edit(
    decay_with_a_new_gradient,
    {
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
        "optimizer.step()": """
        optimizer.step()
        for p in list(optimizer.state):
            if p.grad is None:
                del optimizer.state[p]
        """,
    },
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You delete the state of parameters that this loss does not reach. "
    "They lose their momentum.",
)

decay_skipping_perfect_steps = edit(
    decay_with_a_new_gradient,
    {
        "loss = F.mse_loss(model(X), y)": """
        loss = F.mse_loss(model(X), y)
        if loss == 0:
            return 0.0
        """,
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.as_in_the_gradient,
    tells="You leave early when the loss is 0. The weights decay all the "
    "same, and momentum goes on.",
)


@wrong(
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


decay_left_in_the_defaults = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": "",
        "optimizer.step()": """
        optimizer.defaults["weight_decay"] = weight_decay
        optimizer.step()
        """,
        "return loss.item() + penalty": "return loss.item()",
    },
    breaks=hidden_tests.leaves_the_others,
    tells="You leave the decay in the optimizer's `defaults`: a group that is"
    " added later would decay.",
)

decay_tracking_the_batch = edit(
    decay_with_a_new_gradient,
    {
        "loss = F.mse_loss(model(X), y)": "loss = F.mse_loss(model(X.requires_grad_()), y)",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.leaves_the_others,
    tells="You switch on `requires_grad` of `X`. It is to be left alone.",
)

decay_beside_stray_gradients = edit(
    decay_with_a_new_gradient,
    {
        "optimizer.zero_grad()": "model.zero_grad()",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.unreached_keeps_every_bit,
    tells="You clear the gradients of the model only. The optimizer may hold "
    "a parameter that the model does not, with an old gradient.",
)

decay_by_the_name_of_adamw = edit(
    decay_with_a_new_gradient,
    {
        "if decoupled:": "if decoupled or isinstance(optimizer, torch.optim.AdamW):",
        "p.grad = p.grad + weight_decay * p.detach()": "p.grad.add_(p, alpha=weight_decay)",
    },
    breaks=hidden_tests.each_kind_of_optimizer,
    tells="Under AdamW you shrink the weights whatever `decoupled` says. It "
    "is the argument that decides.",
)

decay_with_the_rate_in_the_gradient = edit(
    mended_decay_returning_the_penalty,
    {
        "p.grad.add_(p, alpha=weight_decay)": 'p.grad.add_(p, alpha=group["lr"] * weight_decay)',
    },
    breaks=hidden_tests.as_in_the_gradient,
    tells="You add lr·λ·w to the gradient. The step multiplies by lr once more. In "
    "the gradient the decay is λ·w; lr·λ belongs to `decoupled=True`.",
)

decay_leaving_a_hook = edit(
    decay_in_a_hook,
    {"handle.remove()": ""},
    breaks=hidden_tests.as_in_the_gradient,
    tells="You leave your hook on the optimizer. The second call adds another, and "
    "decays twice. Keep the handle, and call `remove()`.",
)

decay_of_distinct_values = edit(
    mended_decay_returning_the_penalty,
    {
        "penalty = 0.0": "penalty, done = 0.0, []",
        "if p.grad is None:": """
        done.append(p.clone())
        if p.grad is None or any(
            p.shape == q.shape and torch.equal(p, q) for q in done[:-1]
        ):
        """,
    },
    breaks=hidden_tests.each_kind_of_parameter,
    tells="You look by their values for parameters that come twice. Two layers may "
    "have equal values and are both decayed. Compare `id(p)`.",
)

decayed_step_not_where_the_loss_is_infinite = edit(
    SOLUTION,
    {"optimizer.step()": "if error.isfinite():\n    optimizer.step()"},
    breaks=hidden_tests.as_in_the_gradient,
    tells="You make no step where the loss is not finite. Nobody asked for it: it hides "
    "what is wrong with the data.",
)

nothing_at_a_rate_of_zero = edit(
    SOLUTION,
    {"for p in reached:": 'for p in reached if group["lr"] else []:'},
    breaks=hidden_tests.rate_of_the_group,
    tells="You leave out the decay while a group's rate is 0. Momentum remembers the "
    "gradient of such a step, and the weights are part of it.",
)


decay_with_a_second_look = edit(
    SOLUTION,
    {
        """
        error.backward()
        """: """
        if not error.isfinite():
            error = F.mse_loss(model(X), y)
        error.backward()
        """
    },
    breaks=hidden_tests.leaves_the_others,
    tells="Where the loss is not finite you call the model once more. One step has "
    "one forward pass, whatever comes of it: a second one moves running "
    "statistics again, and the loss is no better.",
)

decay_by_a_hook_added_once = edit(
    decay_in_a_hook,
    {
        "handle = optimizer.register_step_pre_hook(before_the_step)": """
        if not hasattr(optimizer, "decays"):
            optimizer.register_step_pre_hook(before_the_step)
            optimizer.decays = True
        """,
        "handle.remove()": "",
    },
    breaks=hidden_tests.leaves_the_others,
    tells="You add a hook to the optimizer at the first call, and it stays. It decays at "
    "every later step, with the numbers of that call, whoever steps. Decay within the "
    "function.",
)


decay_added_to_one_tensor_twice = edit(
    decay_by_autograd,
    {"p.grad = g + weight_decay * p": "p.grad = g.add_(p, alpha=weight_decay)"},
    breaks=hidden_tests.each_kind_of_parameter,
    tells="What `torch.autograd.grad` gives may be one tensor for two parameters, where the "
    "model adds them up. You add the decay to it in place, so each gets that of both. Make "
    "a new tensor: `g + weight_decay * p`.",
)
