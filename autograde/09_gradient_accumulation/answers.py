"""The answer bank of chapter 09: gradient accumulation."""

import copy
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# accumulated_step


@accepted("accumulated_step")
def step_by_sums(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = torch.zeros(())
    for part in torch.arange(len(X)).chunk(num_micro):
        loss = F.cross_entropy(model(X[part]), y[part], reduction="sum")
        (loss / len(X)).backward()
        total = total + loss.detach().double()
    optimizer.step()
    return (total / len(X)).item()


@accepted("accumulated_step")
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


@accepted("accumulated_step")
def step_by_autograd_grad(model, optimizer, X, y, num_micro):
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


@accepted("accumulated_step")
def step_in_reverse(model, optimizer, X, y, num_micro):
    size = len(X) // num_micro
    optimizer.zero_grad(set_to_none=False)
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


@accepted("accumulated_step")
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


@accepted("accumulated_step")
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


@accepted("accumulated_step")
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


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="Your update is too large by exactly the number of micro-batches: you "
    "added their mean losses. Divide each by `num_micro` before `backward()`.",
)
def step_undivided(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        total += loss.item() / num_micro
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=[hidden_tests.update_of_the_full_batch, hidden_tests.returned_loss],
    tells="You added the mean losses of the micro-batches, for the gradient and "
    "for the loss you return. Both are too large by the number of "
    "micro-batches: divide each loss by `num_micro` before `backward()`.",
)
def step_and_loss_undivided(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You divided mean losses by the number of samples. A mean has been "
    "divided by the size of its part already. Divide means by `num_micro`, or "
    'sums (`reduction="sum"`) by `len(X)`.',
)
def step_divided_by_samples(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        (loss / len(X)).backward()
        total += loss.item() / num_micro
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You divided twice: the mean over a part already has the size of the "
    "part in it. Dividing by `num_micro` is all that is missing.",
)
def step_divided_twice(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        (loss / len(x) / num_micro / num_micro).backward()
        total += loss.item() / num_micro
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You clear the gradients before every micro-batch, so only the last "
    "one is left when the optimizer steps. Clear them once, before the first.",
)
def step_zero_each(model, optimizer, X, y, num_micro):
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.one_step_per_batch,
    tells="You step after every micro-batch and clear the gradients in between. "
    "That is training on small batches, not accumulation. Step once, after the "
    "last one.",
)
def step_each_time(model, optimizer, X, y, num_micro):
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.one_step_per_batch,
    tells="You step after every micro-batch while the gradient still grows, so "
    "the first micro-batch is applied again and again. Step once, after the "
    "last one.",
)
def step_while_growing(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="`i % num_micro == 0` is true for the first micro-batch, so you step "
    "on that one alone. The last one is `(i + 1) % num_micro == 0`; or step "
    "after the loop.",
)
def step_at_the_first(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for i, (x, t) in enumerate(zip(X.chunk(num_micro), y.chunk(num_micro))):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
        if i % num_micro == 0:
            optimizer.step()
    return total


@wrong(
    "accumulated_step",
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
    "accumulated_step",
    breaks=hidden_tests.graphs_are_freed,
    tells="You go backward once, over all losses together. Until then every "
    "micro-batch's graph is kept: as much memory as the whole batch needs. "
    "Call `backward()` for each micro-batch, inside the loop.",
)
def step_backward_once(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        total = total + F.cross_entropy(model(x), t) / num_micro
    total.backward()
    optimizer.step()
    return total.item()


@wrong(
    "accumulated_step",
    breaks=hidden_tests.graphs_are_freed,
    tells="You go backward once, over all losses together. Until then every "
    "micro-batch's graph is kept: as much memory as the whole batch needs. "
    "Call `backward()` for each micro-batch, inside the loop.",
)
def step_on_joined_logits(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    logits = torch.cat([model(x) for x in X.chunk(num_micro)])
    loss = F.cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong(
    "accumulated_step",
    breaks=hidden_tests.graphs_are_freed,
    tells="You keep each graph with `retain_graph=True`, so the next forward pass "
    "comes on top of it. A graph is needed for one backward pass only: leave "
    "the argument out.",
)
def step_with_retained_graphs(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward(retain_graph=True)
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.old_gradients_do_not_count,
    tells="You never clear the gradients: each batch is stepped on together with "
    "all that came before it. Call `optimizer.zero_grad()` before the first "
    "micro-batch.",
)
def step_never_cleared(model, optimizer, X, y, num_micro):
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.old_gradients_do_not_count,
    tells="You clear the gradients after the step alone. What somebody else left "
    "in `.grad` before your function ran is then part of its first step. Clear "
    "before the first micro-batch.",
)
def step_cleared_afterwards(model, optimizer, X, y, num_micro):
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.returned_loss,
    tells="You return a tensor. Whoever adds such losses up over an epoch carries "
    "tensors along, perhaps with their graphs. Return a float: `.item()`.",
)
def step_returns_a_tensor(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = torch.zeros((), dtype=X.dtype)
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.returned_loss,
    tells="You return the last micro-batch's loss, divided for the backward pass. "
    "Add these up over all micro-batches: their sum is the batch's mean.",
)
def step_returns_the_last_scaled(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
    optimizer.step()
    return loss.item()


@wrong(
    "accumulated_step",
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
    "accumulated_step",
    breaks=hidden_tests.returned_loss,
    tells="The loss you return has been divided twice: losses that were divided "
    "for the backward pass already add up to the mean.",
)
def step_returns_divided_twice(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total / num_micro


@wrong(
    "accumulated_step",
    breaks=hidden_tests.returned_loss,
    tells="The loss you return is `num_micro` times too large: the sum of the "
    "micro-batches' means. Divide it by `num_micro`.",
)
def step_returns_the_sum(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        (loss / num_micro).backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
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
    "accumulated_step",
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
    "accumulated_step",
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
    "accumulated_step",
    breaks=hidden_tests.parameters_without_gradient,
    tells="You fill the gradients of all parameters with zeros. A parameter that "
    "is not used has no gradient, and the optimizer skips it; with zeros it "
    "does not, and weight decay moves it. Use `optimizer.zero_grad()`.",
)
def step_with_zeros_filled_in(model, optimizer, X, y, num_micro):
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.parameters_without_gradient,
    tells="You divide the gradient of every parameter, and some have none: their "
    "`.grad` is `None`. Leave these out, or divide the loss instead.",
)
def step_rescaling_none(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        total += loss.item() / num_micro
    for p in model.parameters():
        p.grad /= num_micro
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.one_step_per_batch,
    tells="The gradients are right, and nobody uses them: `optimizer.step()` is "
    "missing after the loop.",
)
def step_missing(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="`X.split(num_micro)` and `X.chunk(num_micro)` are not the same: split "
    "takes the *size* of a part, chunk the *number* of parts. Your parts have "
    "`num_micro` rows each.",
)
def step_on_split(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.split(num_micro), y.split(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@accepted("accumulated_step")
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


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You divide by the number of micro-batches so far, so the first counts "
    "most and the last least. Divide each by `num_micro`.",
)
def step_divided_by_the_count_so_far(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for i, (x, t) in enumerate(zip(X.chunk(num_micro), y.chunk(num_micro))):
        loss = F.cross_entropy(model(x), t)
        (loss / (i + 1)).backward()
        total += loss.item() / num_micro
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You step before the last micro-batch has gone backward, so it does not "
    "count in this batch. First all backward passes, then the step.",
)
def step_before_the_last_backward(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for i, (x, t) in enumerate(zip(X.chunk(num_micro), y.chunk(num_micro))):
        loss = F.cross_entropy(model(x), t) / num_micro
        if i == num_micro - 1:
            optimizer.step()
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulated_step",
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


@accepted("accumulated_step")
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


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You call `model.train()`. Whoever froze batch norms, or "
    "fine-tunes in eval, loses that without a word. The mode is the caller's: "
    "leave it.",
)
def step_in_training_mode(model, optimizer, X, y, num_micro):
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
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


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="`model.train(model.training)` looks harmless and gives every "
    "layer the mode of the outermost one. A batch norm that was in eval is in "
    "training afterwards. Leave the modes alone.",
)
def step_levels_the_modes(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    model.train(model.training)
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You call `model.forward(x)`. It passes by the hooks that others "
    "hang on the model, DistributedDataParallel and `torch.compile` among "
    "them. Call `model(x)`.",
)
def step_calls_forward(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model.forward(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You flatten the samples before the model gets them. A model for "
    "images needs their shape. Cut `X` along its first dimension and leave the "
    "others alone.",
)
def step_of_flat_samples(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x.flatten(1)), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.one_micro_batch,
    tells="With one micro-batch you return a tensor, with several a float. "
    "Return a Python float always: `.item()`.",
)
def step_alone_returns_a_tensor(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    if num_micro == 1:
        loss = F.cross_entropy(model(X), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You clip the gradient, which nobody asked for here: where it is "
    "large, the update is no longer that of the full batch.",
)
def step_clips(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You seed the global generator. Every dropout mask and every "
    "shuffle after your step is then the same, step after step. Draw nothing "
    "and seed nothing.",
)
def step_seeds(model, optimizer, X, y, num_micro):
    torch.manual_seed(0)
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You switch on `requires_grad` of the batch you were given. "
    "Autograd then computes and keeps a gradient for it that nobody uses. "
    "Parameters alone need one.",
)
def step_with_gradients_of_inputs(model, optimizer, X, y, num_micro):
    X.requires_grad_()
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.one_step_per_batch,
    tells="You change the parameters yourself. The optimizer does not know "
    "of it: its momentum, its other settings and whatever counts its steps are "
    "passed by. Call `optimizer.step()`.",
)
def step_by_hand(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= group["lr"] * p.grad
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You change `requires_grad` of the model's parameters. What the "
    "caller froze, or has not used yet, is then frozen or trained from here "
    "on. It is not yours to decide.",
)
def step_freezes_what_is_unused(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    for p in model.parameters():
        p.requires_grad_(p.grad is not None)
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You leave anomaly detection on. It is a switch for all of "
    "PyTorch, and makes every backward pass after yours slower. Take it as a "
    "`with` block, while you look for a NaN, and out again.",
)
def step_leaves_anomaly_detection_on(model, optimizer, X, y, num_micro):
    torch.autograd.set_detect_anomaly(True)
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


@wrong(
    "accumulated_step",
    breaks=hidden_tests.small_micro_batches,
    tells="You never cut the batch into more than eight parts. The caller "
    "chose `num_micro` so that a part fits: take it as it is.",
)
def step_in_eight_parts_at_most(model, optimizer, X, y, num_micro):
    while num_micro > 8 and num_micro % 2 == 0:
        num_micro //= 2
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        loss = F.cross_entropy(model(x), t) / num_micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# accumulate_gradients


@accepted("accumulate_gradients")
def window_with_final_rescale(
    model, micro_batches, weight=None, ignore_index=-100
):
    total, share = 0.0, 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss.backward()
        kept = y != ignore_index
        safe = torch.where(kept, y, torch.zeros_like(y))
        w = torch.ones_like(x[:, 0]) if weight is None else weight[safe]
        share += (w * kept).sum().item()
        total += loss.item()
    if share == 0:
        model.zero_grad()
        return float("nan")
    for p in model.parameters():
        if p.grad is not None:
            p.grad.div_(share)
    return total / share


@accepted("accumulate_gradients")
def window_of_means_times_share(
    model, micro_batches, weight=None, ignore_index=-100
):
    def share(y):
        if weight is None:
            return int((y != ignore_index).sum())
        return sum(float(weight[c]) for c in y.tolist() if c != ignore_index)

    whole = sum(share(y) for _, y in micro_batches)
    if not whole:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        if share(y) == 0:
            continue
        mean = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        (mean * share(y) / whole).backward()
        total += mean.item() * share(y) / whole
    return total


@accepted("accumulate_gradients")
def window_by_hand(model, micro_batches, weight=None, ignore_index=-100):
    y = torch.cat([y for _, y in micro_batches])
    w = torch.where(y == ignore_index, 0.0, 1.0).double()
    if weight is not None:
        classes = torch.where(y == ignore_index, 0, y)
        w = w * weight[classes]
    if w.sum() == 0:
        return math.nan
    coefficients = (w / w.sum()).split([len(t) for _, t in micro_batches])
    total = 0.0
    for (x, t), c in zip(micro_batches, coefficients):
        classes = torch.where(t == ignore_index, 0, t)
        log_probs = model(x).log_softmax(1).gather(1, classes[:, None])
        loss = -(log_probs.squeeze(1) * c).sum()
        loss.backward()
        total += float(loss)
    return total


@accepted("accumulate_gradients")
def window_without_reduction(
    model, micro_batches, weight=None, ignore_index=-100
):
    loss_fn = nn.CrossEntropyLoss(
        weight=weight, ignore_index=ignore_index, reduction="none"
    )
    counted = 0.0
    for _, y in micro_batches:
        valid = y[y != ignore_index]
        counted += valid.numel() if weight is None else weight[valid].sum()
    counted = float(counted)
    sums = []
    for x, y in reversed(micro_batches):
        losses = loss_fn(model(x), y)
        part = losses.sum() / (counted or 1.0)
        part.backward()
        sums.append(part.item())
    return sum(sums) if counted else float("nan")


@accepted("accumulate_gradients")
def window_by_autograd_grad(
    model, micro_batches, weight=None, ignore_index=-100
):
    params = [p for p in model.parameters() if p.requires_grad]
    sums = [torch.zeros_like(p) for p in params]
    total, share = 0.0, 0.0
    for x, y in micro_batches:
        some = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        for s, g in zip(
            sums, torch.autograd.grad(some, params, allow_unused=True)
        ):
            if g is not None:
                s += g
        kept = y[y != ignore_index]
        share += float(len(kept) if weight is None else weight[kept].sum())
        total += some.item()
    if share == 0.0:
        return math.nan
    for p, s in zip(params, sums):
        p.grad = s / share
    return total / share


@accepted("accumulate_gradients")
def window_by_bincount(model, micro_batches, weight=None, ignore_index=-100):
    labels = torch.cat([y for _, y in micro_batches])
    labels = labels[labels != ignore_index]
    if weight is None:
        denominator = labels.numel()
    else:
        counts = torch.bincount(labels, minlength=len(weight))
        denominator = (counts * weight).sum().item()
    result = 0.0
    if denominator == 0:
        return math.nan
    for x, y in micro_batches:
        part = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        part.backward(torch.full_like(part, 1 / denominator))
        result += part.item() / denominator
    return result


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ragged_micro_batches,
    tells="You divide each micro-batch's mean by the number of micro-batches, a "
    "mean of means. With unequal sizes, or with labels that do not count the "
    "same, samples of a small micro-batch count too much. Divide its *sum* by "
    "the denominator of all micro-batches together.",
)
def window_mean_of_means(model, micro_batches, weight=None, ignore_index=-100):
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss / len(micro_batches)
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ragged_micro_batches,
    tells="You add up the micro-batches' means, and nothing is divided. Divide "
    "each micro-batch's sum by the denominator of all of them together.",
)
def window_undivided(model, micro_batches, weight=None, ignore_index=-100):
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=[hidden_tests.ignored_labels, hidden_tests.weighted_classes],
    tells="You weight each micro-batch's mean by its number of samples. That is "
    "right while every label counts 1. Ignored labels count 0, and with class "
    "weights a label counts the weight of its class.",
)
def window_by_samples(model, micro_batches, weight=None, ignore_index=-100):
    n = sum(len(y) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss * len(y) / n
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=[hidden_tests.ignored_labels, hidden_tests.weighted_classes],
    tells="You divide the summed losses by the number of samples. Ignored labels "
    "are not in the mean's denominator, and with class weights it is the sum of "
    "the labels' weights.",
)
def window_sums_by_samples(
    model, micro_batches, weight=None, ignore_index=-100
):
    n = sum(len(y) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / n
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.weighted_classes,
    tells="You divide by the number of labels that are not ignored. With class "
    "weights the mean's denominator is the sum of these labels' weights.",
)
def window_by_valid_labels(
    model, micro_batches, weight=None, ignore_index=-100
):
    n = sum((y != ignore_index).sum().item() for _, y in micro_batches)
    if n == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / n
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.nothing_counts_in_one,
    tells="A micro-batch in which nothing counts has the mean 0 / 0 = NaN, and "
    "NaN times a share of 0 is NaN again: one such micro-batch spoils all "
    'weights. Use `reduction="sum"`, or leave that micro-batch out.',
)
def window_nan_times_zero(model, micro_batches, weight=None, ignore_index=-100):
    def share(y):
        kept = y[y != ignore_index]
        return len(kept) if weight is None else weight[kept].sum().item()

    whole = sum(share(y) for _, y in micro_batches)
    if not whole:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss * share(y) / whole
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.nothing_counts_in_one,
    tells="You leave out micro-batches in which all labels are ignored, but not "
    "those whose labels all have the weight 0. Their mean is 0 / 0 = NaN too. "
    'Use `reduction="sum"`.',
)
def window_skips_ignored_only(
    model, micro_batches, weight=None, ignore_index=-100
):
    def share(y):
        kept = y[y != ignore_index]
        return len(kept) if weight is None else weight[kept].sum().item()

    whole = sum(share(y) for _, y in micro_batches)
    if not whole:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        if not (y != ignore_index).any():
            continue
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        loss = loss * share(y) / whole
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ignored_labels,
    tells="You look for labels of -100, whatever `ignore_index` is. Compare with "
    "`ignore_index`, and pass it on to the loss.",
)
def window_with_a_fixed_index(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != -100]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.weights_and_ignored_labels,
    tells="With class weights, your denominator counts ignored labels as well: "
    "`weight[y]` must see the labels that are not ignored, and no others.",
)
def window_weights_of_ignored(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        if weight is None:
            counted += (y != ignore_index).sum().item()
        else:
            counted += weight[y.clamp(min=0)].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts anywhere you divide by zero. As Python numbers that "
    "is a `ZeroDivisionError`. Say what holds then: the loss is NaN, and there "
    "is no gradient.",
)
def window_divides_by_zero(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    scale = 1.0 / counted
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        (loss * scale).backward()
        total += loss.item() * scale
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts anywhere you go backward on 0 / 0. All gradients are "
    "then NaN, and one step later all weights. Return NaN as the loss and leave "
    "the gradients alone.",
)
def window_backward_on_nan(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = torch.zeros((), dtype=torch.float64)
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum()
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts anywhere you return a number as if there were a loss. "
    "The mean of nothing is NaN, and that is what this exercise asks for.",
)
def window_returns_zero(model, micro_batches, weight=None, ignore_index=-100):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / (counted or 1.0)
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=[hidden_tests.weighted_classes, hidden_tests.nothing_counts_at_all],
    tells="You force the denominator to be at least 1. The sum of class weights "
    "may be any positive number, and a mean over small weights comes out too "
    "small. Use it as it is, and treat 0 by itself.",
)
def window_clamps_the_denominator(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    counted = max(counted, 1.0)
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ignored_labels,
    tells="You count with `ignore_index` and do not pass it on to the loss, which "
    "then ignores -100 and nothing else.",
)
def window_does_not_pass_the_index(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(model(x), y, weight=weight, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.small_windows,
    tells="You put the micro-batches together and run them through the model at "
    "once. The numbers are right, and the memory is what accumulation was to "
    "save. Give the model one micro-batch at a time.",
)
def window_joined(model, micro_batches, weight=None, ignore_index=-100):
    x = torch.cat([x for x, _ in micro_batches])
    y = torch.cat([y for _, y in micro_batches])
    loss = F.cross_entropy(
        model(x), y, weight=weight, ignore_index=ignore_index
    )
    if not torch.isnan(loss):
        loss.backward()
    return loss.item()


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.graphs_of_a_window,
    tells="You add the losses up and go backward once. Until then the graphs of "
    "all micro-batches are kept. Find the denominator first, from the labels "
    "alone; then each micro-batch can go backward by itself.",
)
def window_backward_once(model, micro_batches, weight=None, ignore_index=-100):
    total, counted = 0.0, 0.0
    for x, y in micro_batches:
        total = total + F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    mean = total / counted
    mean.backward()
    return mean.item()


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.graphs_of_a_window,
    tells="You add the losses up and go backward once. Until then the graphs of "
    "all micro-batches are kept. Find the denominator first, from the labels "
    "alone; then each micro-batch can go backward by itself.",
)
def window_of_joined_logits(
    model, micro_batches, weight=None, ignore_index=-100
):
    logits = torch.cat([model(x) for x, _ in micro_batches])
    y = torch.cat([y for _, y in micro_batches])
    loss = F.cross_entropy(logits, y, weight=weight, ignore_index=ignore_index)
    if not torch.isnan(loss):
        loss.backward()
    return loss.item()


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.loss_of_the_window,
    tells="The gradients are right. The loss you return is the mean of the "
    "micro-batches' means, in which a sample of a small micro-batch counts too "
    "much. Add up what you went backward on.",
)
def window_reports_mean_of_means(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    means = []
    for x, y in micro_batches:
        logits = model(x)
        options = {"weight": weight, "ignore_index": ignore_index}
        loss = F.cross_entropy(logits, y, reduction="sum", **options)
        (loss / counted).backward()
        means.append(F.cross_entropy(logits.detach(), y, **options).item())
    means = [m for m in means if not math.isnan(m)]
    return sum(means) / len(means)


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.loss_of_the_window,
    tells="The gradients are right. The loss you return is a tensor; return a "
    "Python float, with `.item()`.",
)
def window_returns_a_tensor(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return torch.tensor(math.nan, dtype=torch.float64)
    total = torch.zeros((), dtype=torch.float64)
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        (loss / counted).backward()
        total += loss.detach() / counted
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.no_gradient_for_some,
    tells="You divide the gradient of every parameter at the end, and some have "
    "none: their `.grad` is `None`. Leave these out, or divide the loss "
    "instead.",
)
def window_rescaling_none(model, micro_batches, weight=None, ignore_index=-100):
    total, counted = 0.0, 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss.backward()
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
        total += loss.item()
    if counted == 0:
        model.zero_grad()
        return math.nan
    for p in model.parameters():
        p.grad /= counted
    return total / counted


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.leaves_labels_alone,
    tells="You overwrite the ignored labels in place, to be able to index with "
    "them. The caller's labels are then wrong, and in the next epoch nothing is "
    "ignored. Work on a copy, or index with the labels that count.",
)
def window_overwrites_labels(
    model, micro_batches, weight=None, ignore_index=-100
):
    masks, counted = [], 0.0
    for _, y in micro_batches:
        mask = y != ignore_index
        y[~mask] = 0
        w = torch.ones(len(y)).double() if weight is None else weight[y]
        masks.append(w * mask)
        counted += masks[-1].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for (x, y), mask in zip(micro_batches, masks):
        losses = F.cross_entropy(model(x), y, reduction="none")
        loss = (losses * mask).sum() / counted
        loss.backward()
        total += loss.item()
    return total


@accepted("accumulate_gradients")
def window_as_a_running_mean(
    model, micro_batches, weight=None, ignore_index=-100
):
    mean, share = 0.0, 0.0
    for x, y in micro_batches:
        kept = y[y != ignore_index]
        new = float(len(kept) if weight is None else weight[kept].sum())
        if new == 0:
            continue
        for p in model.parameters():
            if p.grad is not None:
                p.grad *= share / (share + new)
        loss = F.cross_entropy(
            model(x), y, weight=weight, ignore_index=ignore_index
        )
        (loss * new / (share + new)).backward()
        mean = (mean * share + loss.item() * new) / (share + new)
        share += new
    return mean if share else math.nan


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.weighted_classes,
    tells="You divide by the sum of the class weights. The mean's denominator is "
    "the sum over the *labels*, each with the weight of its class: "
    "`weight[labels].sum()`.",
)
def window_by_sum_of_class_weights(
    model, micro_batches, weight=None, ignore_index=-100
):
    counted = sum((y != ignore_index).sum().item() for _, y in micro_batches)
    if weight is not None and counted:
        counted = weight.sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ragged_micro_batches,
    tells="You clear the gradients before each micro-batch, so that of the last "
    "one is all that is left. They are `None` at the start: clear nothing.",
)
def window_zeroes_each(model, micro_batches, weight=None, ignore_index=-100):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        model.zero_grad()
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.graphs_of_a_window,
    tells="You keep each graph with `retain_graph=True`, so the next forward pass "
    "comes on top of it. A graph is needed for one backward pass only: leave "
    "the argument out.",
)
def window_retains_graphs(model, micro_batches, weight=None, ignore_index=-100):
    counted = 0.0
    for _, y in micro_batches:
        kept = y[y != ignore_index]
        counted += len(kept) if weight is None else weight[kept].sum().item()
    if counted == 0:
        return math.nan
    losses = []
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x),
            y,
            weight=weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        losses.append(loss / counted)
        losses[-1].backward(retain_graph=True)
    return sum(one.item() for one in losses)


@accepted("accumulate_gradients")
def window_of_all_labels_joined(
    model, micro_batches, weight=None, ignore_index=-100
):
    labels = torch.cat([y for _, y in micro_batches])
    labels = labels[labels.ne(ignore_index)]
    size = len(labels) if weight is None else weight[labels].sum().item()
    losses = [] if size else [math.nan]
    for x, y in micro_batches if size else ():
        log_probs = F.log_softmax(model(x), dim=-1)
        part = F.nll_loss(
            log_probs, y, weight, ignore_index=ignore_index, reduction="sum"
        )
        part.div(size).backward()
        losses.append(part.item() / size)
    return math.fsum(losses)


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You call `model.train()`. Whoever froze batch norms, or "
    "fine-tunes in eval, loses that without a word. The mode is the caller's: "
    "leave it.",
)
def window_in_training_mode(
    model, micro_batches, weight=None, ignore_index=-100
):
    model.train()
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You go through the model in eval, and switch back at the end. "
    "Dropout and batch norm then do something else than the caller asked for. "
    "Leave the mode alone.",
)
def window_in_eval_for_a_while(
    model, micro_batches, weight=None, ignore_index=-100
):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    for m, mode in modes.items():
        m.training = mode
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You call `model.forward(x)`. It passes by the hooks that others "
    "hang on the model, DistributedDataParallel and `torch.compile` among "
    "them. Call `model(x)`.",
)
def window_calls_forward(model, micro_batches, weight=None, ignore_index=-100):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model.forward(x),
            y,
            weight,
            ignore_index=ignore_index,
            reduction="sum",
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.small_windows,
    tells="You leave the rows with ignored labels out of the forward pass. "
    "Layers that look at the whole micro-batch then see another one. Give the "
    "model the micro-batch as you got it; the loss ignores the labels.",
)
def window_leaves_rows_out(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        keep = y != ignore_index
        if not keep.any():
            continue
        x, y = x[keep], y[keep]
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You take the micro-batches out of the caller's list: afterwards "
    "it is empty. Go through it with `for`, or work on a copy.",
)
def window_empties_the_list(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in [micro_batches.pop(0) for _ in range(len(micro_batches))]:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ignored_labels,
    tells="`ignore_index or -100` takes an `ignore_index` of 0 for none. 0 "
    "is a class like others, and may be the one to ignore.",
)
def window_takes_zero_for_none(
    model, micro_batches, weight=None, ignore_index=-100
):
    ignore_index = ignore_index or -100
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.weighted_classes,
    tells="You take a small denominator for none. Class weights may be as "
    "small as they like: only their ratios matter. Nothing counts if the sum "
    "is 0, and not before.",
)
def window_takes_little_for_nothing(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator < 1e-3:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ragged_micro_batches,
    tells="You leave out a pair that has come before, though you count its "
    "labels. A pair may come twice, and counts twice then.",
)
def window_uses_a_pair_once(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    done = set()
    for x, y in micro_batches:
        if id(x) in done:
            continue
        done.add(id(x))
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.window_leaves_the_rest,
    tells="You switch on `requires_grad` of the inputs you were given. "
    "Autograd then computes and keeps gradients for them that nobody uses. "
    "Parameters alone need one.",
)
def window_with_gradients_of_inputs(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y != ignore_index]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        x.requires_grad_()
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


@wrong(
    "accumulate_gradients",
    breaks=hidden_tests.ignored_labels,
    tells="You count the labels that are not negative. `ignore_index` may be "
    "a class, or a number such as 255. Compare with `ignore_index`.",
)
def window_counts_what_is_not_negative(
    model, micro_batches, weight=None, ignore_index=-100
):
    denominator = 0.0
    for _, y in micro_batches:
        labels = y[y >= 0]
        each = torch.ones(len(labels)) if weight is None else weight[labels]
        denominator += each.sum().item()
    if denominator == 0:
        return math.nan
    total = 0.0
    for x, y in micro_batches:
        loss = F.cross_entropy(
            model(x), y, weight, ignore_index=ignore_index, reduction="sum"
        )
        loss = loss / denominator
        loss.backward()
        total += loss.item()
    return total


# train_epoch


@accepted("train_epoch")
def epoch_with_final_rescale(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total = seen = in_window = parts = 0

    def finish():
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= in_window
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()

    for x, y in loader:
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        total += loss.item()
        seen += len(y)
        in_window += len(y)
        parts += 1
        if parts == accumulation_steps:
            finish()
            in_window = parts = 0
    if parts:
        finish()
    return total / seen if seen else float("nan")


@accepted("train_epoch")
def epoch_with_lookahead(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    end = object()
    batches = iter(loader)
    window, total, count = [], 0.0, 0
    current = next(batches, end)
    while current is not end:
        following = next(batches, end)
        window.append(current)
        if len(window) == accumulation_steps or following is end:
            n = sum(x.shape[0] for x, _ in window)
            optimizer.zero_grad(set_to_none=False)
            for x, y in window:
                loss = F.cross_entropy(model(x), y) * (len(y) / n)
                loss.backward()
                total += loss.item() * n
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler:
                scheduler.step()
            count += n
            window = []
        current = following
    optimizer.zero_grad()
    return total / count if count else math.nan


@accepted("train_epoch")
def epoch_by_groupby(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    def number(pair):
        return pair[0] // accumulation_steps

    losses = []
    for _, group in itertools.groupby(enumerate(loader), key=number):
        window = [pair for _, pair in group]
        n = sum(y.numel() for _, y in window)
        optimizer.zero_grad()
        for x, y in window:
            each = F.cross_entropy(model(x), y, reduction="none")
            (each.sum() / n).backward()
            losses += each.detach().tolist()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
    return sum(losses) / len(losses) if losses else math.nan


@accepted("train_epoch")
def epoch_with_clipping_by_hand(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches, sums, count = iter(loader), 0.0, 0
    while True:
        window = []
        for _ in range(accumulation_steps):
            try:
                window.append(next(batches))
            except StopIteration:
                break
        if not window:
            break
        n = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum") / n
            loss.backward()
            sums += float(loss) * n
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if max_norm is not None:
            norm = torch.stack([g.norm() for g in grads]).norm()
            for g in grads:
                g.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
        optimizer.step()
        scheduler and scheduler.step()
        model.zero_grad()
        count += n
        if len(window) < accumulation_steps:
            break
    return sums / max(count, 1) if count else math.nan


@accepted("train_epoch", body=True)
def epoch_with_a_function_of_its_own():
    def end_of_window(model, optimizer, scheduler, max_norm, size):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = None if p.grad is None else p.grad / size
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()

    def train_epoch(
        model,
        optimizer,
        loader,
        accumulation_steps,
        scheduler=None,
        max_norm=None,
    ):
        last = model, optimizer, scheduler, max_norm
        loss_sum, samples, size = torch.zeros(()).double(), 0, 0
        for i, (x, y) in enumerate(loader, start=1):
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
            loss_sum += loss.detach()
            samples, size = samples + len(x), size + len(x)
            if i % accumulation_steps == 0:
                end_of_window(*last, size)
                size = 0
        if size:
            end_of_window(*last, size)
        return (loss_sum / samples).item()


@wrong(
    "train_epoch",
    breaks=hidden_tests.full_windows,
    tells="You added the mean losses of a window without dividing: the update "
    "is too large by the number of micro-batches in it. Divide each "
    "micro-batch's sum by the window's samples.",
)
def epoch_undivided(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            total += loss.item() * len(y)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.short_last_window,
    tells="You divide by `accumulation_steps` in the last window too, where "
    "there are fewer micro-batches: that update is too small. Divide by "
    "what is in *that* window.",
)
def epoch_divides_the_last_by_k(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y)
            (loss / accumulation_steps).backward()
            total += loss.item() * len(y)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.short_last_micro_batch,
    tells="In each window you take the mean of the micro-batches' means. With "
    "micro-batches of unequal size, samples of a small one count too "
    "much. Divide sums by the number of samples in the window.",
)
def epoch_mean_of_means(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y)
            (loss / len(window)).backward()
            total += loss.item() * len(y)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.short_last_window,
    tells="You divide every window's sums by the size of the first window. "
    "The last window is often smaller; divide by its own number of "
    "samples.",
)
def epoch_full_size_throughout(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    first = None
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        first = first or size
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / first).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=[hidden_tests.short_last_window, hidden_tests.one_step_per_window],
    tells="What does not fill a window at the end of the epoch is dropped: "
    "these samples never train. Step once more after the last "
    "micro-batch, with the denominator of that shorter window.",
)
def epoch_drops_the_rest(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        if len(window) < accumulation_steps:
            for x, y in window:
                total += F.cross_entropy(model(x), y).item() * len(y)
                seen += len(y)
            break
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=[hidden_tests.clean_at_the_end, hidden_tests.short_last_window],
    tells="The gradients of the last, shorter window are computed and never "
    "stepped on. They stay in `.grad` and enter the first step of the "
    "next epoch. Step and clear after the last micro-batch as well.",
)
def epoch_leaks_the_rest(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen = 0.0, 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        (loss / accumulation_steps).backward()
        total += loss.item() * len(y)
        seen += len(y)
        if (i + 1) % accumulation_steps == 0:
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=[hidden_tests.clean_at_the_end, hidden_tests.full_windows],
    tells="This is the loop of the posts. Nothing is divided, so updates are "
    "`accumulation_steps` times too large, and what does not fill a "
    "window stays in `.grad` for the next epoch. Divide by the window's "
    "samples, and step after the last micro-batch too.",
)
def epoch_leaks_undivided(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen = 0.0, 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        total += loss.item() * len(y)
        seen += len(y)
        if (i + 1) % accumulation_steps == 0:
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=[hidden_tests.one_step_per_window, hidden_tests.full_windows],
    tells="`i % accumulation_steps == 0` is true for the *first* micro-batch "
    "of a window: your windows begin one too late. Use `(i + 1) % "
    "accumulation_steps == 0`.",
)
def epoch_steps_at_the_first(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen, size = 0.0, 0, 0
    batches = list(loader)
    for i, (x, y) in enumerate(batches):
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        total += loss.item()
        seen += len(y)
        size += len(y)
        if i % accumulation_steps == 0 or i == len(batches) - 1:
            for p in model.parameters():
                p.grad /= size
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
            size = 0
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_step_per_window,
    tells="You step once more after the loop even if the last window was "
    "full. That step has no gradient of its own, but it counts: "
    "momentum and weight decay act again, and the scheduler moves on. "
    "Step only if something is waiting.",
)
def epoch_steps_twice_at_the_end(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad(set_to_none=False)
        seen += sum(len(y) for _, y in window)
    if seen:
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_step_per_window,
    tells="You step after every micro-batch: that is plain training on small "
    "batches. Step once per window.",
)
def epoch_steps_each_time(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        if scheduler is not None:
            scheduler.step()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.full_windows,
    tells="You clear the gradients before every micro-batch, so each step "
    "uses the last micro-batch of its window alone. Clear after the "
    "step.",
)
def epoch_zeroes_each_time(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=[hidden_tests.full_windows, hidden_tests.clean_at_the_end],
    tells="You never clear the gradients: each step uses all windows so far. "
    "Clear them after each step.",
)
def epoch_never_zeroes(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="You clip after every micro-batch, on what has been added up so "
    "far. Clip once per window, after its last `backward()`.",
)
def epoch_clips_each_time(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="The gradient that is stepped on has not been clipped, though "
    "`max_norm` is given: you do not clip, or you clip after the step, when it "
    "is too late. Clip right before it.",
)
def epoch_never_clips(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="The gradient that is stepped on has not been clipped, though "
    "`max_norm` is given: you do not clip, or you clip after the step, when it "
    "is too late. Clip right before it.",
)
def epoch_clips_after_the_step(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        optimizer.step()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="You clip each number of the gradient by itself, with "
    "`clip_grad_value_`. That changes its direction. `max_norm` is a "
    "bound on the total norm: `clip_grad_norm_`.",
)
def epoch_clips_values(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_value_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="You clip each parameter's gradient by its own norm. `max_norm` "
    "bounds the norm of all gradients together: give `clip_grad_norm_` "
    "all parameters at once.",
)
def epoch_clips_each_parameter(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            for p in model.parameters():
                nn.utils.clip_grad_norm_([p], max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="You clip the gradient of the summed losses and divide it "
    "afterwards, so it ends far below `max_norm`. Clip last, right "
    "before the step.",
)
def epoch_clips_before_dividing(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        for p in model.parameters():
            p.grad /= size
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps once per micro-batch, so the rate falls "
    "`accumulation_steps` times too fast. It steps once per optimizer "
    "step.",
)
def epoch_schedules_each_micro_batch(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            for _ in window:
                scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps once, at the end of the epoch. Here it is to "
    "step after each optimizer step.",
)
def epoch_schedules_once(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    if scheduler is not None and seen:
        scheduler.step()
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps before the optimizer: the first rate is never "
    "used, and PyTorch warns. Step the optimizer first.",
)
def epoch_schedules_first(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if scheduler is not None:
            scheduler.step()
        optimizer.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler never steps. Step it once after each optimizer step.",
)
def epoch_never_schedules(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.loss_of_the_epoch,
    tells="The training is right. The loss you return is a mean of the "
    "micro-batches' means, in which samples of small micro-batches "
    "count too much. Add up sums and divide once, by the number of "
    "samples.",
)
def epoch_reports_mean_of_means(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    parts = 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item() / len(y)
            parts += 1
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / parts if parts else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.loss_of_the_epoch,
    tells="The loss you return is a mean over steps: you added up the losses "
    "as they were scaled for the backward pass. In the epoch's mean "
    "each *sample* counts the same.",
)
def epoch_reports_scaled(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    steps = 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item() / size
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        steps += 1
        seen += sum(len(y) for _, y in window)
    return total / steps if steps else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You return the loss of the last micro-batch. Return the mean over "
    "all samples of the epoch.",
)
def epoch_reports_the_last(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total = loss.item() / len(y)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You return a tensor, not a float. Use `.item()`, or return NaN as "
    "a float where there is nothing.",
)
def epoch_reports_a_tensor(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    total = torch.zeros((), dtype=torch.float64)
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.detach()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen


@wrong(
    "train_epoch",
    breaks=hidden_tests.nothing_to_train_on,
    tells="With a loader that yields nothing you divide by zero. The mean of "
    "nothing is NaN: treat this case by itself.",
)
def epoch_fails_when_empty(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen


@wrong(
    "train_epoch",
    breaks=hidden_tests.nothing_to_train_on,
    tells="With a loader that yields nothing you return a number as if there "
    "were a loss. A loss of 0 looks like perfect training; the mean of "
    "nothing is NaN.",
)
def epoch_zero_when_empty(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / max(seen, 1)


@wrong(
    "train_epoch",
    breaks=hidden_tests.loader_without_a_length,
    tells="You ask the loader for its length. A generator has none, nor has a "
    "loader over a stream. Take windows with `itertools.islice`, or "
    "look at what is waiting after the loop.",
)
def epoch_wants_a_length(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    total, seen, size = 0.0, 0, 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        total += loss.item()
        seen += len(y)
        size += len(y)
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            for p in model.parameters():
                p.grad /= size
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
            size = 0
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.loader_without_a_length,
    tells="You read the whole loader into a list before the first step. All "
    "data of the epoch is then in memory at once, and loading no longer "
    "runs beside training. Take one window at a time.",
)
def epoch_reads_everything_first(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(list(loader))
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.small_in_the_loop,
    tells="You put a window's micro-batches together and run them through the "
    "model at once. The numbers are right, and nothing is saved. One "
    "forward and one backward pass for each micro-batch.",
)
def epoch_joins_the_window(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        x = torch.cat([x for x, _ in window])
        y = torch.cat([y for _, y in window])
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        total += loss.item() * len(y)
        seen += len(y)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.graphs_in_the_loop,
    tells="You add a window's losses up and go backward once at its end. "
    "Until then all its graphs are kept. Go backward on each "
    "micro-batch.",
)
def epoch_backward_once_per_window(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size, kept = sum(len(y) for _, y in window), 0.0
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            kept = kept + loss / size
            total += loss.item()
        kept.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.graphs_in_the_loop,
    tells="You keep each graph with `retain_graph=True`, so the next forward "
    "pass comes on top of it. Leave the argument out.",
)
def epoch_retains_graphs(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward(retain_graph=True)
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += sum(len(y) for _, y in window)
    return total / seen if seen else math.nan


@accepted("train_epoch", body=True)
def epoch_from_a_generator_of_windows():
    def windows(loader, k):
        window = []
        for pair in loader:
            window.append(pair)
            if len(window) == k:
                yield window
                window = []
        if window:
            yield window

    def train_epoch(
        model,
        optimizer,
        loader,
        accumulation_steps,
        scheduler=None,
        max_norm=None,
    ):
        losses, sizes = [], []
        for window in windows(loader, accumulation_steps):
            y_all = torch.cat([y for _, y in window])
            mean = 0.0
            for x, y in window:
                loss = nn.CrossEntropyLoss(reduction="sum")(model(x), y)
                loss = loss / y_all.numel()
                loss.backward()
                mean += loss.item()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(mean)
            sizes.append(len(y_all))
        if not losses:
            return math.nan
        return sum(a * b for a, b in zip(losses, sizes)) / sum(sizes)


@wrong(
    "train_epoch",
    breaks=hidden_tests.full_windows,
    tells="Your count of samples is never set back, so each window is divided by "
    "all samples so far and the updates get smaller and smaller. Begin to "
    "count anew after each step.",
)
def epoch_never_recounts(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        seen += sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / seen).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_scheduler_step,
    tells="The scheduler steps after full windows, but not after the last, shorter "
    "one. It steps after each optimizer step.",
)
def epoch_schedules_full_windows_only(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None and len(window) == accumulation_steps:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=[hidden_tests.small_in_the_loop, hidden_tests.loss_of_the_epoch],
    tells="You take the epoch's loss from another pass over the data, after the "
    "training. It costs a forward pass for every sample and is the loss of "
    "another model. Add up the losses of the passes that you make anyway.",
)
def epoch_measures_afterwards(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    kept = []
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        kept += window
    total = 0.0
    with torch.no_grad():
        for x, y in kept:
            total += F.cross_entropy(model(x), y, reduction="sum").item()
    seen = sum(len(y) for _, y in kept)
    return total / seen if seen else math.nan


@accepted("train_epoch")
def epoch_of_running_means(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    def finish():
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()

    inside = total = seen = 0
    for i, (x, y) in enumerate(loader, start=1):
        size = len(y)
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(inside / (inside + size))
        mean = F.cross_entropy(model(x), y)
        inside += size
        (mean * (size / inside)).backward()
        total += mean.item() * size
        seen += size
        if i % accumulation_steps == 0:
            finish()
            inside = 0
    if inside:
        finish()
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="`if max_norm:` takes a `max_norm` of 0 for none, and steps on the "
    "whole gradient where nothing was to move. Ask whether it `is not None`.",
)
def epoch_takes_zero_for_none(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="You never let the norm exceed 1, whatever `max_norm` is. The "
    "caller's number counts.",
)
def epoch_caps_the_norm(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), min(max_norm, 1.0))
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.clipped_once,
    tells="You clip the parameters of the optimizer's first group alone. The "
    "total norm is that over all parameters.",
)
def epoch_clips_the_first_group(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(
                optimizer.param_groups[0]["params"], max_norm
            )
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.one_scheduler_step,
    tells="Where you clip you do not step the scheduler. The two options may "
    "come together.",
)
def epoch_clips_or_schedules(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None and max_norm is None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.epoch_without_some_gradients,
    tells="You fill the gradients with zeros before each window. A parameter "
    "that is not used has no gradient, and the optimizer skips it; with zeros "
    "it does not, and weight decay moves it. Use `optimizer.zero_grad()`.",
)
def epoch_fills_zeros_in(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        for p in model.parameters():
            if p.requires_grad:
                p.grad = torch.zeros_like(p)
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You call `model.train()`. Whoever froze batch norms, or "
    "fine-tunes in eval, loses that without a word. The mode is the caller's "
    "here: leave it.",
)
def epoch_in_training_mode(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    model.train()
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You switch to training for the epoch and back at the end. Batch "
    "norms that the caller froze move their statistics meanwhile. The mode is "
    "the caller's here: leave it.",
)
def epoch_in_training_mode_for_a_while(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    modes = {m: m.training for m in model.modules()}
    model.train()
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    for m, mode in modes.items():
        m.training = mode
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.epoch_leaves_the_rest,
    tells="You call `model.forward(x)`. It passes by the hooks that others "
    "hang on the model, DistributedDataParallel and `torch.compile` among "
    "them. Call `model(x)`.",
)
def epoch_calls_forward(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model.forward(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += size
    return total / seen if seen else math.nan


@wrong(
    "train_epoch",
    breaks=hidden_tests.loss_of_the_epoch,
    tells="You count samples as micro-batches times the size of a window's "
    "first one. The last micro-batch may be shorter: count with `len(y)`.",
)
def epoch_counts_by_the_first(
    model, optimizer, loader, accumulation_steps, scheduler=None, max_norm=None
):
    batches = iter(loader)
    total, seen = 0.0, 0
    while window := list(itertools.islice(batches, accumulation_steps)):
        size = sum(len(y) for _, y in window)
        for x, y in window:
            loss = F.cross_entropy(model(x), y, reduction="sum")
            (loss / size).backward()
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad()
        seen += len(window) * len(window[0][1])
    return total / seen if seen else math.nan


# accumulation_gap


@accepted("accumulation_gap")
def gap_by_autograd_grad(model, X, y, num_micro):
    params = [p for p in model.parameters() if p.requires_grad]
    names = [n for n, p in model.named_parameters() if p.requires_grad]

    def grads(x, t):
        twin = copy.deepcopy(model)
        chosen = [dict(twin.named_parameters())[n] for n in names]
        loss = F.cross_entropy(twin(x), t)
        return torch.autograd.grad(loss, chosen, allow_unused=True)

    full = grads(X, y)
    sums = [None if g is None else torch.zeros_like(g) for g in full]
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        for s, g in zip(sums, grads(x, t)):
            if s is not None:
                s += g / num_micro
    above = sum(
        (s - g).square().sum() for s, g in zip(sums, full) if g is not None
    )
    below = sum(g.square().sum() for g in full if g is not None)
    return (above / below).sqrt().item()


@accepted("accumulation_gap")
def gap_with_saved_state(model, X, y, num_micro):
    state = {k: v.clone() for k, v in model.state_dict().items()}
    kept = [p.grad for p in model.parameters()]

    def measure(parts):
        for p in model.parameters():
            p.grad = None
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            loss = F.cross_entropy(model(x), t, reduction="sum")
            (loss / len(X)).backward()
        vector = [
            p.grad.reshape(-1) for p in model.parameters() if p.grad is not None
        ]
        return torch.cat(vector)

    try:
        full, parts = measure(1), measure(num_micro)
    finally:
        model.load_state_dict(state)
        for p, g in zip(model.parameters(), kept):
            p.grad = g
    return float(torch.linalg.vector_norm(parts - full) / full.norm())


@accepted("accumulation_gap")
def gap_by_functional_call(model, X, y, num_micro):
    params = {
        n: p.detach().clone().requires_grad_(p.requires_grad)
        for n, p in model.named_parameters()
    }
    leaves = [p for p in params.values() if p.requires_grad]

    def gradient(parts):
        buffers = {n: b.clone() for n, b in model.named_buffers()}
        total = torch.zeros(sum(p.numel() for p in leaves), dtype=X.dtype)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            out = torch.func.functional_call(model, (params, buffers), (x,))
            loss = F.cross_entropy(out, t) / parts
            found = torch.autograd.grad(loss, leaves, allow_unused=True)
            total += torch.cat(
                [
                    torch.zeros(p.numel(), dtype=X.dtype)
                    if g is None
                    else g.flatten()
                    for p, g in zip(leaves, found)
                ]
            )
        return total

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@accepted("accumulation_gap")
def gap_on_two_copies(model, X, y, num_micro):
    one, many = copy.deepcopy(model), copy.deepcopy(model)
    one.zero_grad(set_to_none=True)
    many.zero_grad(set_to_none=True)
    size = len(X) // num_micro
    F.cross_entropy(one(X), y).backward()
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        (F.cross_entropy(many(X[part]), y[part]) * size / len(X)).backward()
    above = below = 0.0
    for p, q in zip(one.parameters(), many.parameters()):
        if p.grad is not None:
            above += ((p.grad - q.grad) ** 2).sum().item()
            below += (p.grad**2).sum().item()
    return math.sqrt(above) / math.sqrt(below)


@accepted("accumulation_gap")
def gap_with_zeros_for_none(model, X, y, num_micro):
    twins = []
    for parts in (1, num_micro):
        twin = copy.deepcopy(model)
        for p in twin.parameters():
            p.grad = torch.zeros_like(p)
        for i in range(parts):
            rows = range(i * len(X) // parts, (i + 1) * len(X) // parts)
            loss = nn.CrossEntropyLoss()(twin(X[list(rows)]), y[list(rows)])
            (loss / parts).backward()
        twins.append(
            nn.utils.parameters_to_vector([p.grad for p in twin.parameters()])
        )
    return (torch.dist(*twins) / twins[0].norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.model_as_it_was,
    tells="You measure on the model itself. Its running statistics have "
    "moved, its counter has counted, and its gradients are yours. "
    "Measure on `copy.deepcopy(model)`.",
)
def gap_on_the_model_itself(model, X, y, num_micro):
    def gradient(num_parts):
        twin = model
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.model_as_it_was,
    tells="You measure on a copy, and clear the gradients of the model you "
    "were given. They may be somebody's half window. Clear those of the "
    "copy.",
)
def gap_leaves_gradients_cleared(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        model.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=[
        hidden_tests.gap_of_batch_norm,
        hidden_tests.no_gap_without_the_batch,
    ],
    tells="Both gradients land in the same `.grad`: you never clear between "
    "them, so the second holds the first as well. Use a copy for each, "
    "or clear in between.",
)
def gap_on_one_copy(model, X, y, num_micro):
    twin = copy.deepcopy(model)
    twin.zero_grad()
    vectors = []
    for parts in (1, num_micro):
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        vectors.append(torch.cat([g.flatten() for g in grads]))
    return ((vectors[1] - vectors[0]).norm() / vectors[0].norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You kept the gradient tensors themselves, not copies of them. The "
    "second measurement writes into the same tensors, so you compare "
    "them with themselves: always 0. Clone them, or use two models.",
)
def gap_between_aliases(model, X, y, num_micro):
    twin = copy.deepcopy(model)
    twin.zero_grad()
    kept = []
    for parts in (1, num_micro):
        twin.zero_grad(set_to_none=False)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        kept.append([p.grad for p in twin.parameters() if p.grad is not None])
    full, seen = (torch.cat([g.flatten() for g in one]) for one in kept)
    return ((seen - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=[
        hidden_tests.no_gap_without_the_batch,
        hidden_tests.gap_of_batch_norm,
    ],
    tells="You do not divide the micro-batches' losses, so you measure that "
    "mistake: a gap of about `num_micro` - 1 for any model. Divide each "
    "loss by `num_micro`.",
)
def gap_undivided(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            F.cross_entropy(twin(x), t).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You switch the model to eval, where batch norm uses fixed "
    "statistics and there is no gap to show. Measure in the mode the "
    "model is in.",
)
def gap_in_eval(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model).eval()
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.no_gap_without_the_batch,
    tells="You switch the model to train. In eval batch norm has fixed "
    "statistics and no gap. Measure in the mode the model is in.",
)
def gap_in_train(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model).train()
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You return the norm of the difference. Without dividing by the "
    "norm of the full gradient nobody can say whether that is much.",
)
def gap_absolute(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return (gradient(num_micro) - full).norm().item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You divide by the norm of the accumulated gradient. The one that "
    "is right here is the full batch's: divide by its norm.",
)
def gap_relative_to_the_other(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    seen = gradient(num_micro)
    return ((seen - full).norm() / seen.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You compare the *norms* of the two gradients. Two gradients of the "
    "same length may point anywhere. Take the norm of their difference.",
)
def gap_of_norms(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return (
        (gradient(num_micro).norm() - full.norm()).abs() / full.norm()
    ).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You take the largest difference of one element. The exercise asks "
    "for Euclidean norms, over all elements together.",
)
def gap_largest_element(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).abs().max() / full.abs().max()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You average the relative errors of single parameters. A bias that "
    "hardly matters then counts as much as the largest weight, and a "
    "bias before batch norm, whose gradient is 0, gives nonsense. Take "
    "all parameters together, as one long vector.",
)
def gap_mean_over_parameters(model, X, y, num_micro):
    def gradients(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        return [p.grad for p in twin.parameters() if p.grad is not None]

    full, seen = gradients(1), gradients(num_micro)
    errors = [(s - g).norm() / g.norm() for s, g in zip(seen, full)]
    return (sum(errors) / len(errors)).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You forgot the root: you return the square of the relative error, "
    "which makes small gaps look like none.",
)
def gap_of_squares(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return (
        (gradient(num_micro) - full).square().sum() / full.square().sum()
    ).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You compare the losses. Losses may agree closely where gradients "
    "do not; it is the gradients that train.",
)
def gap_of_losses(model, X, y, num_micro):
    def mean(parts):
        twin = copy.deepcopy(model)
        losses = [
            F.cross_entropy(twin(x), t) / parts
            for x, t in zip(X.chunk(parts), y.chunk(parts))
        ]
        return sum(losses)

    return ((mean(num_micro) - mean(1)).abs() / mean(1)).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You leave out the biases. All parameters that get a gradient take "
    "part.",
)
def gap_of_weights_only(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        found = [
            p.grad.flatten()
            for n, p in twin.named_parameters()
            if p.grad is not None and n.endswith("weight")
        ]
        return torch.cat(found)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_with_frozen_layers,
    tells="You take `.grad` of every parameter, and frozen or unused ones "
    "have none. Leave out those that are `None`.",
)
def gap_fails_on_none(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        return torch.cat([p.grad.flatten() for p in twin.parameters()])

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_with_frozen_layers,
    tells="You make frozen parameters trainable in your copy, so they take "
    "part. They get no gradient in training; leave them frozen.",
)
def gap_unfreezes(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.requires_grad_(True)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_beside_old_gradients,
    tells="You measure on the model itself and put it back as it was. But the "
    "gradients that were there before are part of your first measurement: "
    "clear them before it, or measure on a copy.",
)
def gap_beside_what_was_there(model, X, y, num_micro):
    state = copy.deepcopy(model.state_dict())
    before = [
        None if p.grad is None else p.grad.clone() for p in model.parameters()
    ]
    vectors = []
    for parts in (1, num_micro):
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(model(x), t) / parts).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        vectors.append(torch.cat([g.flatten() for g in grads]))
        model.zero_grad()
    model.load_state_dict(state)
    for p, g in zip(model.parameters(), before):
        p.grad = g
    return ((vectors[1] - vectors[0]).norm() / vectors[0].norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You return a tensor. Return a Python float, with `.item()`.",
)
def gap_as_a_tensor(model, X, y, num_micro):
    def gradient(num_parts):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        for x, t in zip(X.chunk(num_parts), y.chunk(num_parts)):
            (F.cross_entropy(twin(x), t) / num_parts).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(1)
    return (gradient(num_micro) - full).norm() / full.norm()


@wrong(
    "accumulation_gap",
    breaks=[
        hidden_tests.gap_of_batch_norm,
        hidden_tests.no_gap_without_the_batch,
    ],
    tells="You compare the full gradient with that of the first micro-batch "
    "alone. Add up all of them, each divided by `num_micro`.",
)
def gap_of_the_first_part(model, X, y, num_micro):
    def gradient(x, t):
        twin = copy.deepcopy(model)
        twin.zero_grad()
        F.cross_entropy(twin(x), t).backward()
        grads = [
            p.grad.flatten() for p in twin.parameters() if p.grad is not None
        ]
        return torch.cat(grads)

    full = gradient(X, y)
    size = len(X) // num_micro
    return ((gradient(X[:size], y[:size]) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You decide from the kind of layers that there is a gap and do not "
    "measure it. How large it is depends on the data, and other layers "
    "may mix samples too.",
)
def gap_as_known_from_books(model, X, y, num_micro):
    bad = any(
        "BatchNorm" in type(m).__name__ and m.training for m in model.modules()
    )
    return 0.3 if bad else 0.0


@accepted("accumulation_gap")
def gap_with_the_state_put_back(model, X, y, num_micro):
    state = copy.deepcopy(model.state_dict())
    before = [p.grad for p in model.parameters()]
    vectors = []
    for parts in (num_micro, 1):
        model.zero_grad(set_to_none=True)
        for x, t in zip(X.tensor_split(parts), y.tensor_split(parts)):
            loss = F.cross_entropy(model(x), t)
            loss.backward(torch.tensor(1 / parts, dtype=loss.dtype))
        vectors.append(
            torch.cat(
                [
                    p.grad.view(-1)
                    for p in model.parameters()
                    if p.grad is not None
                ]
            )
        )
        model.load_state_dict(state)
    for p, g in zip(model.parameters(), before):
        p.grad = g
    difference = vectors[0] - vectors[1]
    return math.sqrt(difference @ difference / (vectors[1] @ vectors[1]))


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="Your micro-batches are every k-th row. With batch norm it matters which "
    "rows are together: take consecutive ones, as a loop over `X.chunk` does.",
)
def gap_of_strided_parts(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        for i in range(parts):
            loss = F.cross_entropy(twin(X[i::parts]), y[i::parts])
            (loss / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.no_gap_without_the_batch,
    tells="You measure in float32. Rounding then looks like a gap of 1e-7, and you "
    "can no longer tell it from a small real one. Keep the model's dtype.",
)
def gap_in_float32(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model).float()
        for x, t in zip(X.float().chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_of_batch_norm,
    tells="`X.split(num_micro)` makes parts of `num_micro` rows, not `num_micro` "
    "parts. Use `X.chunk(num_micro)`.",
)
def gap_of_split(model, X, y, num_micro):
    def gradient(size):
        twin = copy.deepcopy(model)
        for x, t in zip(X.split(size), y.split(size)):
            (F.cross_entropy(twin(x), t) * len(x) / len(X)).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full = gradient(len(X))
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@accepted("accumulation_gap")
def gap_of_sums(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            F.cross_entropy(twin(x), t, reduction="sum").backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / full.norm()).item()
    return gap


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.gap_in_the_models_mode,
    tells="You give every layer the mode of the outermost one. A batch norm "
    "may be in eval inside a model that trains: that is how one freezes it. "
    "Leave the modes as they are.",
)
def gap_in_the_mode_of_the_root(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        twin.train(model.training)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / full.norm()).item()
    return gap


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.model_as_it_was,
    tells="`model.train(model.training)` at the end gives every layer the "
    "mode of the outermost one. A batch norm that was in eval is in training "
    "afterwards. Leave the modes alone.",
)
def gap_levels_the_modes(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / full.norm()).item()
    model.train(model.training)
    return gap


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.small_gaps,
    tells="You round the result. What is left of a small gap is nothing, or "
    "wrong in its second digit. Return it as it is.",
)
def gap_rounded(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / full.norm()).item()
    return round(gap, 8)


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.small_gaps,
    tells="You call small gaps none. In float64 rounding gives 1e-16; what "
    "is far above it is a gap, and whoever asks can judge it. Return it as it "
    "is.",
)
def gap_with_a_threshold(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / full.norm()).item()
    return gap if gap > 1e-6 else 0.0


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.small_gaps,
    tells="You add a small number to the denominator. Where the gradient "
    "itself is small, as late in training, the gap then looks small too. "
    "Divide by the norm alone.",
)
def gap_with_an_epsilon(model, X, y, num_micro):
    def gradient(parts):
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / (full.norm() + 1e-8)).item()
    return gap


@wrong(
    "accumulation_gap",
    breaks=hidden_tests.model_as_it_was,
    tells="You seed the global generator. Measuring a model must not change "
    "what is drawn after it, and nothing here draws.",
)
def gap_seeded(model, X, y, num_micro):
    torch.manual_seed(0)

    def gradient(parts):
        twin = copy.deepcopy(model)
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(twin(x), t) / parts).backward()
        grads = [p.grad for p in twin.parameters() if p.grad is not None]
        return torch.cat([g.flatten() for g in grads])

    full, accumulated = gradient(1), gradient(num_micro)
    gap = ((accumulated - full).norm() / full.norm()).item()
    return gap


# without_batch_norm


@accepted("without_batch_norm")
def repair_by_names(model):
    model = copy.deepcopy(model)
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)

    def group_norm(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    if isinstance(model, kinds):
        return group_norm(model)
    for name, layer in list(model.named_modules()):
        if isinstance(layer, kinds):
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, group_norm(layer))
    return model


@accepted("without_batch_norm")
def repair_with_two_groups_if_they_fit(model):
    if isinstance(model, nn.modules.batchnorm._BatchNorm):
        groups = 2 if model.num_features % 2 == 0 else 1
        new = nn.GroupNorm(groups, model.num_features, affine=model.affine)
        if model.affine:
            new = new.to(model.weight)
            with torch.no_grad():
                new.weight.copy_(model.weight)
                new.bias.copy_(model.bias)
        return new
    model = copy.deepcopy(model)
    for name, child in model.named_children():
        model._modules[name] = repair_with_two_groups_if_they_fit(child)
    return model


@accepted("without_batch_norm", body=True)
def repair_with_a_layer_of_its_own():
    class SampleNorm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.eps = bn.eps
            self.weight = copy.deepcopy(bn.weight)
            self.bias = copy.deepcopy(bn.bias)

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            x = (x - mean) / (var + self.eps).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def without_batch_norm(model):
        kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        if isinstance(model, kinds):
            return SampleNorm(model)
        model = copy.deepcopy(model)
        for name, child in list(model.named_children()):
            setattr(model, name, without_batch_norm(child))
        return model


@accepted("without_batch_norm", body=True)
def repair_with_instance_norm_for_images():
    def new_layer(bn):
        if isinstance(bn, nn.BatchNorm1d):
            new = nn.LayerNorm(bn.num_features, elementwise_affine=bn.affine)
        elif isinstance(bn, nn.BatchNorm2d):
            new = nn.InstanceNorm2d(bn.num_features, affine=bn.affine)
        else:
            new = nn.InstanceNorm3d(bn.num_features, affine=bn.affine)
        if bn.affine:
            new.to(bn.weight.dtype).load_state_dict(
                {
                    k: v
                    for k, v in bn.state_dict().items()
                    if k in ("weight", "bias")
                }
            )
        return new

    def without_batch_norm(model):
        wrapped = nn.Sequential(copy.deepcopy(model))
        for parent in list(wrapped.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, nn.modules.batchnorm._BatchNorm):
                    setattr(parent, name, new_layer(child))
        return wrapped[0]


@accepted("without_batch_norm")
def repair_with_apply(model):
    new = nn.ModuleList([copy.deepcopy(model)])

    def visit(parent):
        for name, child in parent.named_children():
            if type(child).__name__ in (
                "BatchNorm1d",
                "BatchNorm2d",
                "BatchNorm3d",
            ):
                c = child.num_features
                layer = nn.GroupNorm(
                    num_groups=1,
                    num_channels=c,
                    eps=child.eps,
                    affine=child.affine,
                )
                if child.affine:
                    layer.weight = nn.Parameter(child.weight.detach().clone())
                    layer.bias = nn.Parameter(child.bias.detach().clone())
                setattr(parent, name, layer)

    new.apply(visit)
    return new[0]


@wrong(
    "without_batch_norm",
    breaks=[hidden_tests.still_normalizes, hidden_tests.equality_holds],
    tells="You replaced batch norm by nothing. The gradients agree, and the "
    "normalization that made the model trainable is gone. Replace it by "
    "one that looks at each sample alone, such as `nn.GroupNorm(1, C)`.",
)
def repair_by_identity(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        return nn.Identity()

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="You took the batch norms out. The layers behind them have moved up "
    "and got other names, and nothing normalizes any more. Put a "
    "per-sample normalization in each one's place.",
)
def repair_by_deleting(model):
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                if isinstance(parent, nn.Sequential):
                    kept = [c for c in parent if c is not child]
                    parent._modules.clear()
                    for i, one in enumerate(kept):
                        parent.add_module(str(i), one)
                else:
                    setattr(parent, name, nn.Identity())
    return model


@wrong(
    "without_batch_norm",
    breaks=[hidden_tests.still_normalizes, hidden_tests.equality_holds],
    tells="You put the batch norms into eval. The next `model.train()` undoes "
    "it, and until then the statistics of a new model, 0 and 1, "
    "normalize nothing. Replace the layers.",
)
def repair_by_eval(model):
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eval()
        return model


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="You froze the running statistics for good. Those of a new model "
    "are 0 and 1: gradients agree because nothing is normalized. "
    "Compute mean and variance from each sample.",
)
def repair_by_frozen_statistics(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        class Frozen(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = bn.weight, bn.bias

            def forward(self, x):
                return F.batch_norm(
                    x, bn.running_mean, bn.running_var, self.weight, self.bias
                )

        return Frozen()

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.equality_holds,
    tells="You switched off the running statistics. In training batch norm "
    "never used them: it normalizes by the mean and variance of the "
    "micro-batch, as before. Replace the layer.",
)
def repair_without_tracking(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = copy.deepcopy(bn)
        new.track_running_stats = False
        new.running_mean = new.running_var = new.num_batches_tracked = None
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.equality_holds,
    tells="You set the momentum of the running statistics. In training batch "
    "norm does not use them: it normalizes by the mean and variance of "
    "the micro-batch, as before. Replace the layer.",
)
def repair_without_momentum(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        bn.momentum = 0.0
        return bn

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.equality_holds,
    tells="You return a copy with its batch norms in it. In training each "
    "normalizes by its micro-batch, and no weighting of the losses "
    "repairs that. Replace them.",
)
def repair_nothing(model):
    return copy.deepcopy(model)


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="You gave each channel a group of its own. After a linear layer "
    "such a group is one number, and one number minus its mean is 0: "
    "your layer wipes out its input. Use one group, or few.",
)
def repair_one_group_per_channel(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(bn.num_features, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.any_number_of_channels,
    tells="Your groups do not divide every number of channels: "
    "`nn.GroupNorm(4, 7)` raises. With one group it always fits.",
)
def repair_with_four_groups(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(4, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="`nn.GroupNorm(32, C)` wants a multiple of 32 channels and raises "
    "for any other. One group always fits.",
)
def repair_with_the_usual_32_groups(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(32, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=[hidden_tests.dtype_is_kept, hidden_tests.equality_holds],
    tells="Your new layers are float32, whatever the model is. Give them the "
    "dtype of the weight that they replace, or copy the parameters "
    "themselves.",
)
def repair_in_float32(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            with torch.no_grad():
                new.weight.copy_(bn.weight)
                new.bias.copy_(bn.bias)
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.weight_and_bias,
    tells="Your new layers start with weight 1 and bias 0. The batch norms "
    "had values of their own, which a fresh layer forgets: copy them.",
)
def repair_with_fresh_weights(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        return new.to(bn.weight.dtype) if bn.affine else new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.weight_and_bias,
    tells="Your new layers have no weight and no bias. The batch norms had, "
    "and could learn a scale for each channel: keep them, unless the "
    "batch norm has `affine=False`.",
)
def repair_without_weights(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        return nn.GroupNorm(1, bn.num_features, affine=False)

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.weight_and_bias,
    tells="Your new layers have a weight and a bias also where the batch norm "
    "had none (`affine=False`). Pass `affine` on.",
)
def repair_always_affine(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.weight_and_bias,
    tells="A batch norm with `affine=False` has no weight to copy: its "
    "`weight` is `None`, and your code does not expect it.",
)
def repair_forgets_affine(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features).to(bn.weight.dtype)
        with torch.no_grad():
            new.weight.copy_(bn.weight)
            new.bias.copy_(bn.bias)
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.weight_and_bias,
    tells="The weights you copied cannot be trained: they are buffers, or do "
    "not require a gradient. Make them `nn.Parameter`s.",
)
def repair_freezes_weights(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight = nn.Parameter(
                bn.weight.detach().clone(), requires_grad=False
            )
            new.bias = nn.Parameter(
                bn.bias.detach().clone(), requires_grad=False
            )
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.original_left_alone,
    tells="You replaced the layers in the model you were given. Whoever still "
    "holds it has lost the batch norms. Work on `copy.deepcopy(model)`.",
)
def repair_in_place(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(model)


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.original_left_alone,
    tells="`copy.copy` copies the outermost module only; what is in it "
    "belongs to both models. Use `copy.deepcopy`.",
)
def repair_in_a_shallow_copy(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = copy.copy(model)
    new._modules = dict(model._modules)
    return visit(new)


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.equality_holds,
    tells="You look at the layers right below the model. Batch norms inside a "
    "block stay as they are. Go through the children of children too.",
)
def repair_top_level_only(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = copy.deepcopy(model)
    if isinstance(new, kinds):
        return repaired(new)
    for name, child in new.named_children():
        if isinstance(child, kinds):
            setattr(new, name, repaired(child))
    return new


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.equality_holds,
    tells="You replace `BatchNorm2d` and leave the others. `BatchNorm1d` and "
    "`BatchNorm3d` mix samples in just the same way.",
)
def repair_images_only(model):
    kinds = nn.BatchNorm2d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.model_is_a_batch_norm,
    tells="If the model is itself a batch norm you return it as it was: it is "
    "no child of anything. Look at the model before its children.",
)
def repair_not_the_root(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = copy.deepcopy(model)
    for name, child in new.named_children():
        setattr(new, name, visit(child))
    return new


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.others_are_kept,
    tells="You replace other normalizations too. Instance norm looks at each "
    "sample alone already. Replace the batch norms and nothing else.",
)
def repair_replaces_every_norm(model):
    kinds = nn.modules.batchnorm._NormBase

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.others_are_kept,
    tells="You reset the parameters of the other layers. The copy is to "
    "differ from the model in its batch norms alone.",
)
def repair_resets_the_model(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = visit(copy.deepcopy(model))
    for layer in new.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.Conv3d):
            layer.reset_parameters()
    return new


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="`nn.LayerNorm(C)` normalizes the *last* dimension. In images that "
    "is the width, not the channels. `nn.GroupNorm(1, C)` takes "
    "channels and positions of any input.",
)
def repair_last_dimension(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.LayerNorm(bn.num_features, elementwise_affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.equality_holds,
    tells="Your layer takes mean and variance over the batch as well. What a "
    "sample becomes then still depends on what is beside it. Leave "
    "dimension 0 out of the mean.",
)
def repair_per_micro_batch(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = bn.weight, bn.bias

            def forward(self, x):
                x = (x - x.mean()) / (x.var(correction=0) + bn.eps).sqrt()
                if self.weight is None:
                    return x
                shape = [1, -1] + [1] * (x.dim() - 2)
                return x * self.weight.view(shape) + self.bias.view(shape)

        return Norm()

    return visit(copy.deepcopy(model))


@accepted("without_batch_norm")
def repair_with_groups_that_divide(model):
    new = copy.deepcopy(nn.Sequential(model))
    for name, layer in list(new.named_modules()):
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            groups = math.gcd(4, layer.num_features)
            norm = nn.GroupNorm(
                groups, layer.num_features, layer.eps, layer.affine
            )
            norm.weight, norm.bias = layer.weight, layer.bias
            parent, _, child = name.rpartition(".")
            setattr(new.get_submodule(parent), child, norm)
    return new[0]


@accepted("without_batch_norm")
def repair_with_channels_at_each_position(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    class Norm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.weight, self.bias = bn.weight, bn.bias

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            x = F.layer_norm(x.movedim(1, -1), x.shape[1:2]).movedim(-1, 1)
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def visit(layer):
        if isinstance(layer, kinds):
            return Norm(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="Your layer divides by the root mean square and leaves the mean in. The "
    "exercise asks for mean 0 and variance 1: subtract each sample's mean first.",
)
def repair_by_root_mean_square(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    class Norm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.weight, self.bias = bn.weight, bn.bias

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            x = x / (x.square().mean(dims, keepdim=True) + 1e-5).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def visit(layer):
        if isinstance(layer, kinds):
            return Norm(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="Your layer divides by the variance, not by its root. The output then has "
    "the variance 1 / σ², not 1.",
)
def repair_dividing_by_the_variance(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    class Norm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.weight, self.bias = bn.weight, bn.bias

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            x = (x - mean) / (var + 1e-5)
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def visit(layer):
        if isinstance(layer, kinds):
            return Norm(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.weight_and_bias,
    tells="Weight and bias have changed places: your layer multiplies by the bias "
    "and adds the weight.",
)
def repair_swapping_weight_and_bias(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    class Norm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.weight, self.bias = bn.weight, bn.bias

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            x = (x - mean) / (var + 1e-5).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.bias.view(shape) + self.weight.view(shape)

    def visit(layer):
        if isinstance(layer, kinds):
            return Norm(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    return visit(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.original_left_alone,
    tells="The copy's weights and biases are parameters of their own that "
    "look at the memory of the given model's: training one trains the other. "
    "Clone the values, or use `copy_`.",
)
def repair_shares_memory(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def new_layer(bn):
        new = nn.GroupNorm(1, bn.num_features, eps=bn.eps, affine=bn.affine)
        if bn.affine:
            new.weight.data, new.bias.data = bn.weight.data, bn.bias.data
        return new

    twin = nn.ModuleList([copy.deepcopy(model)])
    for name, layer in nn.ModuleList([model]).named_modules():
        if isinstance(layer, kinds):
            path, _, last = name.rpartition(".")
            setattr(twin.get_submodule(path), last, new_layer(layer))
    return twin[0]


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="Your `eps` is so large that inputs of small variance are not "
    "normalized. Take over the batch norm's, or leave the default.",
)
def repair_with_a_large_eps(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=0.01, affine=layer.affine
            )
            if layer.affine:
                new.to(layer.weight.dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
            return new
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.dtype_is_kept,
    tells="You take the dtype of the model's first parameter for all new "
    "layers. A model may hold several: each replacement has that of the layer "
    "it stands for.",
)
def repair_in_the_first_dtype(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=layer.eps, affine=layer.affine
            )
            if layer.affine:
                new.to(next(model.parameters()).dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
            return new
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.others_are_kept,
    tells="You replace layer norms by new ones, and their values are lost. "
    "Replace the batch norms and nothing else.",
)
def repair_renews_layer_norms(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=layer.eps, affine=layer.affine
            )
            if layer.affine:
                new.to(layer.weight.dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
            return new
        if isinstance(layer, nn.LayerNorm):
            new = nn.LayerNorm(layer.normalized_shape, eps=layer.eps)
            return new.to(layer.weight.dtype).train(layer.training)
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.others_are_kept,
    tells="You build every `nn.Sequential` anew, and its layers lose their "
    "names: a checkpoint of the model no longer fits. Replace layers in their "
    "place, with `setattr`.",
)
def repair_rebuilds_sequentials(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=layer.eps, affine=layer.affine
            )
            if layer.affine:
                new.to(layer.weight.dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
            return new
        if isinstance(layer, nn.Sequential):
            new = nn.Sequential(*[replaced(child) for child in layer])
            new.training = layer.training
            return new
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model))


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.others_are_kept,
    tells="You set the whole copy to training. Parts of the model may be in "
    "eval for a reason. Everything else in it is kept, the modes as well.",
)
def repair_switches_to_training(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=layer.eps, affine=layer.affine
            )
            if layer.affine:
                new.to(layer.weight.dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
            return new
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model)).train()


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.others_are_kept,
    tells="You switch on `requires_grad` everywhere in the copy. What was "
    "frozen in the model trains in your copy. Everything else in it is kept.",
)
def repair_unfreezes(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=layer.eps, affine=layer.affine
            )
            if layer.affine:
                new.to(layer.weight.dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
            return new
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model)).requires_grad_()


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="Your layer normalizes in training alone, and gives back its input "
    "in eval. Batch norm has other statistics in eval; a normalization of "
    "single samples needs none, and is the same in both.",
    body=True,
)
def repair_in_training_only():
    class SampleNorm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.eps = bn.eps
            self.weight = copy.deepcopy(bn.weight)
            self.bias = copy.deepcopy(bn.bias)

        def forward(self, x):
            if not self.training:
                return x
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            x = (x - mean) / (var + self.eps).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def without_batch_norm(model):
        kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        if isinstance(model, kinds):
            return SampleNorm(model)
        model = copy.deepcopy(model)
        for name, child in list(model.named_children()):
            setattr(model, name, without_batch_norm(child))
        return model


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.still_normalizes,
    tells="You detach mean and variance, so the backward pass takes them for "
    "constants. The output is right, and the gradient is that of another "
    "function. Leave them in the graph.",
    body=True,
)
def repair_with_detached_statistics():
    class SampleNorm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.eps = bn.eps
            self.weight = copy.deepcopy(bn.weight)
            self.bias = copy.deepcopy(bn.bias)

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            var, mean = var.detach(), mean.detach()
            x = (x - mean) / (var + self.eps).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def without_batch_norm(model):
        kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        if isinstance(model, kinds):
            return SampleNorm(model)
        model = copy.deepcopy(model)
        for name, child in list(model.named_children()):
            setattr(model, name, without_batch_norm(child))
        return model


@wrong(
    "without_batch_norm",
    breaks=hidden_tests.dtype_is_kept,
    tells="You compute in float32, whatever the model is: digits are lost, "
    "and without weights the output is float32 as well. Keep the input's "
    "dtype.",
    body=True,
)
def repair_computes_in_float32():
    class SampleNorm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.eps = bn.eps
            self.weight = copy.deepcopy(bn.weight)
            self.bias = copy.deepcopy(bn.bias)

        def forward(self, x):
            x = x.float()
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            x = (x - mean) / (var + self.eps).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def without_batch_norm(model):
        kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        if isinstance(model, kinds):
            return SampleNorm(model)
        model = copy.deepcopy(model)
        for name, child in list(model.named_children()):
            setattr(model, name, without_batch_norm(child))
        return model
