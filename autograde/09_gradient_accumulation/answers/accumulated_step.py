"""Answers to `accumulated_step` of chapter 09."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def step_by_sums(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = torch.zeros(())
    for part in torch.arange(len(X)).chunk(num_micro):
        loss = F.cross_entropy(model(X[part]), y[part], reduction="sum")
        (loss / len(X)).backward()
        total = total + loss.detach().double()
    optimizer.step()
    return (total / len(X)).item()


@accepted()
def step_with_final_rescale(model, optimizer, X, y, num_micro):
    model.zero_grad()
    losses = []
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        losses.append(loss.item())
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= num_micro
    optimizer.step()
    return sum(losses) / len(losses)


@accepted()
def step_by_autograd_grad(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    params = [p for p in model.parameters() if p.requires_grad]
    sums, total = [None] * len(params), 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        grads = torch.autograd.grad(loss, params, allow_unused=True)
        for i, g in enumerate(grads):
            if g is not None:
                sums[i] = g if sums[i] is None else sums[i] + g
        total += float(loss)
    for p, g in zip(params, sums):
        p.grad = g
    optimizer.step()
    return total


@accepted()
def step_in_reverse(model, optimizer, X, y, num_micro):
    size = len(X) // num_micro
    optimizer.zero_grad()
    total = 0.0
    for start in reversed(range(0, len(X), size)):
        logits = model(X[start : start + size])
        log_probs = logits.log_softmax(dim=-1)
        picked = log_probs.gather(1, y[start : start + size].unsqueeze(1))
        loss = -picked.mean()
        loss.backward(torch.tensor(1 / num_micro, dtype=loss.dtype))
        total += loss.item() * size / len(X)
    optimizer.step()
    optimizer.zero_grad()
    return total


@accepted()
def step_on_strided_parts(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    loss_fn = nn.CrossEntropyLoss()
    total = 0.0
    for i in range(num_micro):
        loss = loss_fn(model(X[i::num_micro]), y[i::num_micro])
        loss.mul(1 / num_micro).backward()
        with torch.no_grad():
            total += (loss / num_micro).item()
    optimizer.step()
    return total


@accepted()
def step_through_a_loader(model, optimizer, X, y, num_micro):
    dataset = torch.utils.data.TensorDataset(X, y)
    size = len(X) // num_micro
    loader = torch.utils.data.DataLoader(dataset, batch_size=size)
    optimizer.zero_grad()
    total = 0.0
    for x, t in loader:
        loss = F.cross_entropy(model(x), t) / len(loader)
        loss.backward()
        total += loss.detach().item()
    optimizer.step()
    return total


@accepted()
def step_with_the_last_inside(model, optimizer, X, y, num_micro):
    total = 0.0
    for i, (x, t) in enumerate(zip(X.chunk(num_micro), y.chunk(num_micro))):
        if i == 0:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
        if (i + 1) % num_micro == 0:
            optimizer.step()
    return total


@accepted()
def step_with_gradient_hooks(model, optimizer, X, y, num_micro):
    hooks = [
        p.register_hook(lambda g: g / num_micro)
        for p in model.parameters()
        if p.requires_grad
    ]
    optimizer.zero_grad()
    losses = []
    for x, t in zip(X.tensor_split(num_micro), y.tensor_split(num_micro)):
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        losses.append(loss.detach())
    for hook in hooks:
        hook.remove()
    optimizer.step()
    return torch.stack(losses).mean().item()


@accepted()
def step_by_a_closure(model, optimizer, X, y, num_micro):
    def closure():
        optimizer.zero_grad()
        total = 0.0
        for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
            loss = F.cross_entropy(model(x), t, reduction="sum") / len(X)
            loss.backward()
            total += loss.item()
        return total

    return optimizer.step(closure)


@accepted()
def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    breaks=hidden_tests.small_micro_batches,
    tells="The whole batch goes through the model at once. The numbers are right, "
    "and the memory is what it was without accumulation. Give the model one "
    "micro-batch at a time.",
)
def step_at_once(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(X), y)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong(
    breaks=hidden_tests.graphs_are_freed,
    tells="All graphs are there together, and with them as much memory as the "
    "whole batch needs. Either you go backward once, over all losses, or "
    "`retain_graph=True` keeps the graphs. Call a plain `backward()` for each "
    "micro-batch, inside the loop.",
)
def step_on_joined_logits(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    logits = torch.cat([model(x) for x in X.chunk(num_micro)])
    loss = F.cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong(
    breaks=hidden_tests.returned_loss,
    tells="You return the loss of the last micro-batch as that of the batch. Take "
    "the mean over all micro-batches.",
)
def step_returns_the_last(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        (loss / num_micro).backward()
    optimizer.step()
    return loss.item()


@wrong(
    breaks=hidden_tests.small_micro_batches,
    tells="You run the whole batch through the model once more to get its loss. "
    "That costs a forward pass and the memory you wanted to save. Add the "
    "micro-batches' losses up instead.",
)
def step_with_another_forward(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    with torch.no_grad():
        mean = F.cross_entropy(model(X), y).item()
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        (F.cross_entropy(model(x), t) / num_micro).backward()
    optimizer.step()
    return mean


@wrong(
    breaks=hidden_tests.small_micro_batches,
    tells="The samples go through the model twice: once for the gradient and once "
    "more, in parts, for the loss. Take the loss of the pass that you make "
    "anyway.",
)
def step_with_a_second_pass(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    mean = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        with torch.no_grad():
            mean += F.cross_entropy(model(x), t).item() / num_micro
        (F.cross_entropy(model(x), t) / num_micro).backward()
    optimizer.step()
    return mean


@wrong(
    breaks=hidden_tests.momentum_and_decay,
    tells="You left the gradient undivided and divided the learning rate instead. "
    "Weight decay and everything that looks at the gradient's size then come "
    "out too weak or too strong. Divide the loss.",
)
def step_with_a_smaller_rate(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        total += loss.item() / num_micro
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] /= num_micro
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
    return total


@wrong(
    breaks=hidden_tests.small_micro_batches,
    tells="The whole batch goes through a copy of the model, and you carry its "
    "gradients over. A copy needs the same memory, and more. Give the model "
    "itself one micro-batch at a time.",
)
def step_on_a_copy(model, optimizer, X, y, num_micro):
    twin = copy.deepcopy(model)
    twin.zero_grad()
    loss = F.cross_entropy(twin(X), y)
    loss.backward()
    for p, q in zip(model.parameters(), twin.parameters()):
        p.grad = q.grad
    optimizer.step()
    return loss.item()


@wrong(
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You measure and train in eval, and switch back at the end. "
    "Dropout and batch norm then do something else than the caller asked for. "
    "Leave the mode alone.",
)
def step_in_eval_for_a_while(model, optimizer, X, y, num_micro):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    for m, mode in modes.items():
        m.training = mode
    return total
