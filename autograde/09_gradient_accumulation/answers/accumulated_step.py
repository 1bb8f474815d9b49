"""Answers to `accumulated_step` of chapter 09."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


step_undivided = edit(
    mended_step_and_loss_undivided,
    {
        "loss = F.cross_entropy(model(x), t) / num_micro": "loss = F.cross_entropy(model(x), t)",
        "total += loss.item()": "total += loss.item() / num_micro",
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="Your update is too large by exactly the number of micro-batches: you "
    "added their mean losses. Divide each by `num_micro` before `backward()`.",
)

step_and_loss_undivided = edit(
    mended_step_and_loss_undivided,
    {
        "loss = F.cross_entropy(model(x), t) / num_micro": "loss = F.cross_entropy(model(x), t)",
    },
    breaks=[hidden_tests.update_of_the_full_batch, hidden_tests.returned_loss],
    tells="You added the mean losses of the micro-batches, for the gradient and "
    "for the loss you return. Both are too large by the number of "
    "micro-batches: divide each loss by `num_micro` before `backward()`.",
)


@wrong(
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
def step_backward_once(model, optimizer, X, y, num_micro):
    optimizer.zero_grad()
    total = 0.0
    for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):
        total = total + F.cross_entropy(model(x), t) / num_micro
    total.backward()
    optimizer.step()
    return total.item()


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


step_with_retained_graphs = edit(
    mended_step_and_loss_undivided,
    {"loss.backward()": "loss.backward(retain_graph=True)"},
    breaks=hidden_tests.graphs_are_freed,
    tells="You keep each graph with `retain_graph=True`, so the next forward pass "
    "comes on top of it. A graph is needed for one backward pass only: leave "
    "the argument out.",
)

step_never_cleared = edit(
    mended_step_and_loss_undivided,
    {"optimizer.zero_grad()": ""},
    breaks=hidden_tests.old_gradients_do_not_count,
    tells="You never clear the gradients: each batch is stepped on together with "
    "all that came before it. Call `optimizer.zero_grad()` before the first "
    "micro-batch.",
)


@wrong(
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


step_returns_a_tensor = edit(
    mended_step_and_loss_undivided,
    {
        "total = 0.0": "total = torch.zeros((), dtype=X.dtype)",
        "total += loss.item()": "total = total + loss.detach()",
    },
    breaks=hidden_tests.returned_loss,
    tells="You return a tensor. Whoever adds such losses up over an epoch carries "
    "tensors along, perhaps with their graphs. Return a float: `.item()`.",
)

step_returns_the_last_scaled = edit(
    mended_step_and_loss_undivided,
    {
        "total = 0.0": "",
        "total += loss.item()": "",
        "return total": "return loss.item()",
    },
    breaks=hidden_tests.returned_loss,
    tells="You return the last micro-batch's loss, divided for the backward pass. "
    "Add these up over all micro-batches: their sum is the batch's mean.",
)


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


step_returns_divided_twice = edit(
    mended_step_and_loss_undivided,
    {"return total": "return total / num_micro"},
    breaks=hidden_tests.returned_loss,
    tells="The loss you return has been divided twice: losses that were divided "
    "for the backward pass already add up to the mean.",
)


@wrong(
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


step_with_zeros_filled_in = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.zero_grad()": """
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        """,
    },
    breaks=hidden_tests.parameters_without_gradient,
    tells="You fill the gradients of all parameters with zeros. A parameter that "
    "is not used has no gradient, and the optimizer skips it; with zeros it "
    "does not, and weight decay moves it. Use `optimizer.zero_grad()`.",
)


@wrong(
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


step_missing = edit(
    mended_step_and_loss_undivided,
    {"optimizer.step()": ""},
    breaks=hidden_tests.one_step_per_batch,
    tells="The gradients are right, and nobody uses them: `optimizer.step()` is "
    "missing after the loop.",
)

step_on_split = edit(
    mended_step_and_loss_undivided,
    {
        "for x, t in zip(X.chunk(num_micro), y.chunk(num_micro)):": "for x, t in zip(X.split(num_micro), y.split(num_micro)):",
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="`X.split(num_micro)` and `X.chunk(num_micro)` are not the same: split "
    "takes the *size* of a part, chunk the *number* of parts. Your parts have "
    "`num_micro` rows each.",
)


@wrong(
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


step_in_training_mode = edit(
    mended_step_and_loss_undivided,
    {
        "def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):": """
        def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):
            model.train()
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You call `model.train()`. Whoever froze batch norms, or "
    "fine-tunes in eval, loses that without a word. The mode is the caller's: "
    "leave it.",
)


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


step_levels_the_modes = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.step()": """
        optimizer.step()
        model.train(model.training)
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="`model.train(model.training)` looks harmless and gives every "
    "layer the mode of the outermost one. A batch norm that was in eval is in "
    "training afterwards. Leave the modes alone.",
)

step_calls_forward = edit(
    mended_step_and_loss_undivided,
    {
        "loss = F.cross_entropy(model(x), t) / num_micro": "loss = F.cross_entropy(model.forward(x), t) / num_micro",
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You call `model.forward(x)`. It passes by the hooks that others "
    "hang on the model, DistributedDataParallel and `torch.compile` among "
    "them. Call `model(x)`.",
)

step_of_flat_samples = edit(
    mended_step_and_loss_undivided,
    {
        "loss = F.cross_entropy(model(x), t) / num_micro": "loss = F.cross_entropy(model(x.flatten(1)), t) / num_micro",
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You flatten the samples before the model gets them. A model for "
    "images needs their shape. Cut `X` along its first dimension and leave the "
    "others alone.",
)

step_alone_returns_a_tensor = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.zero_grad()": """
        optimizer.zero_grad()
        if num_micro == 1:
            loss = F.cross_entropy(model(X), y)
            loss.backward()
            optimizer.step()
            return loss.detach()
        """,
    },
    breaks=hidden_tests.one_micro_batch,
    tells="With one micro-batch you return a tensor, with several a float. "
    "Return a Python float always: `.item()`.",
)

step_clips = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.step()": """
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        """,
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You clip the gradient, which nobody asked for here: where it is "
    "large, the update is no longer that of the full batch.",
)

step_seeds = edit(
    mended_step_and_loss_undivided,
    {
        "def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):": """
        def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):
            torch.manual_seed(0)
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You seed the global generator. Every dropout mask and every "
    "shuffle after your step is then the same, step after step. Seed "
    "nothing.",
)

step_looks_for_anomalies = edit(
    mended_step_and_loss_undivided,
    {
        "total = 0.0": """
        total = 0.0
        torch.autograd.set_detect_anomaly(True)
        """,
        "optimizer.step()": """
        torch.autograd.set_detect_anomaly(False)
        optimizer.step()
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You switch anomaly detection on, for a while or for good. It is for a "
    "search: each operation then records where it was called, and training is "
    "several times slower. Leave PyTorch's settings as they are.",
)

step_with_gradients_of_inputs = edit(
    mended_step_and_loss_undivided,
    {
        "def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):": """
        def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):
            X.requires_grad_()
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You switch on `requires_grad` of the batch you were given. "
    "Autograd then computes and keeps a gradient for it that nobody uses. "
    "Parameters alone need one.",
)

step_by_hand = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.step()": """
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p -= group["lr"] * p.grad
        """,
    },
    breaks=hidden_tests.one_step_per_batch,
    tells="You change the parameters yourself. The optimizer does not know "
    "of it: its momentum, its other settings and whatever counts its steps are "
    "passed by. Call `optimizer.step()`.",
)

step_freezes_what_is_unused = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.step()": """
        optimizer.step()
        for p in model.parameters():
            p.requires_grad_(p.grad is not None)
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You change `requires_grad` of the model's parameters. What the "
    "caller froze, or has not used yet, is then frozen or trained from here "
    "on. It is not yours to decide.",
)

step_leaves_anomaly_detection_on = edit(
    mended_step_and_loss_undivided,
    {
        "def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):": """
        def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):
            torch.autograd.set_detect_anomaly(True)
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You switch anomaly detection on, for a while or for good. It is for a "
    "search: each operation then records where it was called, and training is "
    "several times slower. Leave PyTorch's settings as they are.",
)

step_in_eight_parts_at_most = edit(
    mended_step_and_loss_undivided,
    {
        "def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):": """
        def mended_step_and_loss_undivided(model, optimizer, X, y, num_micro):
            while num_micro > 8 and num_micro % 2 == 0:
                num_micro //= 2
        """,
    },
    breaks=hidden_tests.small_micro_batches,
    tells="You never cut the batch into more than eight parts. The caller "
    "chose `num_micro` so that a part fits: take it as it is.",
)

step_clears_what_is_trained_alone = edit(
    mended_step_and_loss_undivided,
    {
        "optimizer.zero_grad()": """
        for p in model.parameters():
            if p.requires_grad:
                p.grad = None
        """,
    },
    breaks=hidden_tests.parameters_without_gradient,
    tells="A parameter that was frozen after a step keeps its old gradient, and the "
    "optimizer goes on with it. Clear the gradients of all parameters.",
)

step_clears_to_zeros = edit(
    mended_step_and_loss_undivided,
    {"optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)"},
    breaks=hidden_tests.parameters_without_gradient,
    tells="You clear gradients to zeros, not to `None`. A zero is a gradient: weight "
    "decay moves a frozen parameter that has one.",
)


norms_frozen_for_a_while = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        norms = [
            layer
            for layer in model.modules()
            if isinstance(layer, nn.BatchNorm1d) and layer.training
        ]
        for layer in norms:
            layer.eval()
        optimizer.zero_grad()
        """,
        "optimizer.step()": """
        optimizer.step()
        for layer in norms:
            layer.train()
        """,
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You measure and train in eval, and switch back at the end. "
    "Dropout and batch norm then do something else than the caller asked for. "
    "Leave the mode alone.",
)

shared_weights_divided_twice = edit(
    SOLUTION,
    {
        "loss = F.cross_entropy(model(X_micro), y_micro) / num_micro": "loss = F.cross_entropy(model(X_micro), y_micro)",
        "total += loss.item()": "total += loss.item() / num_micro",
        "optimizer.step()": """
        for layer in model.modules():
            for parameter in layer.parameters(recurse=False):
                if parameter.grad is not None:
                    parameter.grad /= num_micro
        optimizer.step()
        """,
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You divide the gradients layer by layer. A weight that two layers share "
    "is divided twice. `model.parameters()` names each once; better divide the "
    "loss.",
)

first_group_divided = edit(
    SOLUTION,
    {
        "loss = F.cross_entropy(model(X_micro), y_micro) / num_micro": "loss = F.cross_entropy(model(X_micro), y_micro)",
        "total += loss.item()": "total += loss.item() / num_micro",
        "optimizer.step()": """
        for parameter in optimizer.param_groups[0]["params"]:
            if parameter.grad is not None:
                parameter.grad /= num_micro
        optimizer.step()
        """,
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You divide the gradients of the optimizer's first group alone. Many "
    "optimizers have two, one without weight decay. Divide the loss.",
)

no_step_on_nan = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        if math.isfinite(total):
            optimizer.step()
        """
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You leave out the step if the loss is NaN. One step on the whole batch "
    "is made, and shows it; nobody asked for a guard here.",
)

inputs_cast_to_the_weights = edit(
    SOLUTION,
    {"model(X_micro)": "model(X_micro.to(next(model.parameters()).dtype))"},
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You bring the inputs to the dtype of the weights. A model that reads "
    "token ids takes whole numbers: hand samples on as you got them.",
)

step_clips_at_a_thousand = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        nn.utils.clip_grad_norm_(model.parameters(), 1e3)
        optimizer.step()
        """
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You clip the gradient, at a bound that is rarely reached. With plain SGD "
    "a clipped step is another step: nobody asked for it here.",
)

step_with_gradients_of_every_input = edit(
    SOLUTION,
    {"model(X_micro)": "model(X_micro.detach().requires_grad_())"},
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You ask for gradients of the inputs. Whole numbers, such as token ids, have "
    "none, and PyTorch raises. Hand samples on as you got them.",
)

step_without_a_nan = edit(
    SOLUTION,
    {
        "loss.backward()": """
        loss = loss.nan_to_num()
        loss.backward()
        """
    },
    breaks=hidden_tests.returned_loss,
    tells="You make 0 of a loss that is NaN. The gradients are NaN all the same, and "
    "the loss that you return hides it. Leave it as it is.",
)


step_with_a_second_look = edit(
    SOLUTION,
    {
        """
        loss.backward()
        """: """
        if not loss.isfinite():
            loss = F.cross_entropy(model(X_micro), y_micro) / num_micro
        loss.backward()
        """
    },
    breaks=hidden_tests.small_micro_batches,
    tells="Where a loss is not finite, its micro-batch goes through the model once "
    "more. Each sample goes through once, whatever comes of it: nothing gets better by a "
    "second pass.",
)

first_group_cleared = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad = None
        """,
    },
    breaks=hidden_tests.old_gradients_do_not_count,
    tells="You clear the gradients of the optimizer's first group alone. Many "
    "optimizers have two, and the old gradients of the second count then. "
    "`optimizer.zero_grad()` clears all.",
)

no_step_for_a_loss_of_zero = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        if total:
            optimizer.step()
        """
    },
    breaks=hidden_tests.momentum_and_decay,
    tells="You leave out the step where the loss is 0. It is a step: momentum and weight decay go "
    "on.",
)

layers_cleared_alone = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for layer in model.children():
            layer.zero_grad()
        """
    },
    breaks=hidden_tests.old_gradients_do_not_count,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `optimizer.zero_grad()` clears all.",
)

rows_of_two_dimensions = edit(
    SOLUTION,
    {
        "loss = F.cross_entropy(model(X_micro), y_micro) / num_micro": """
        X_micro = X_micro[:, :]
        loss = F.cross_entropy(model(X_micro), y_micro) / num_micro
        """
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You index `X` by two dimensions. It may have one alone, as ids of tokens have: slice "
    "the first and leave the others.",
)

step_one_gradient_of_two_parameters = edit(
    SOLUTION,
    {
        "loss.backward()": """
        parameters = [p for p in model.parameters() if p.requires_grad]
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        for p, g in zip(parameters, found):
            if g is not None and p.grad is None:
                p.grad = g
            elif g is not None:
                p.grad += g
        """
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="`torch.autograd.grad` may give one tensor for two parameters, as for the terms of a sum. "
    "You keep it and add to it in place, so each later gradient counts twice. Add out of place, or call "
    "`backward()`.",
)

step_losses_of_samples_kept = edit(
    SOLUTION,
    {
        "total = 0.0": "losses = []",
        "loss = F.cross_entropy(model(X_micro), y_micro) / num_micro": """
        each = F.cross_entropy(model(X_micro), y_micro, reduction="none")
        loss = each.sum() / len(X)
        """,
        "total += loss.item()": "losses.append(each)",
        "return total": "return torch.cat(losses).mean().item()",
    },
    breaks=hidden_tests.graphs_are_freed,
    tells="You keep logits or losses that still hang on their graphs. What `backward()` does not free, "
    "as hooks and what they hold, stays until the end, for all micro-batches. Keep numbers: `.item()`, or "
    "`.detach()`.",
)

step_losses_with_their_graphs = edit(
    SOLUTION,
    {
        "total += loss.item()": "total += loss",
        "return total": "return float(total)",
    },
    breaks=hidden_tests.graphs_are_freed,
    tells="You keep logits or losses that still hang on their graphs. What `backward()` does not free, "
    "as hooks and what they hold, stays until the end, for all micro-batches. Keep numbers: `.item()`, or "
    "`.detach()`.",
)

step_loss_on_the_model = edit(
    SOLUTION,
    {
        "total += loss.item()": """
        total += loss.item()
        model.loss = loss
        """
    },
    breaks=hidden_tests.step_leaves_the_rest,
    tells="You leave an attribute on the model: it holds the last graph, and goes into every copy and "
    "pickle. Use a local variable.",
)

step_clips_to_one = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        """,
    },
    breaks=hidden_tests.update_of_the_full_batch,
    tells="You clip the gradient, which nobody asked for here: where it is "
    "large, the update is no longer that of the full batch.",
)
