"""Answers to `train_in_bf16` of chapter 10."""

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests

CONVERTED = (
    "You convert the model to 16 bit. Its weights are then 16 bit as well, and "
    "a small update to them is rounded away. Leave the model alone: inside "
    "`torch.autocast` the layers make 16-bit copies by themselves."
)

BACKWARD_INSIDE = (
    "The backward pass runs inside the autocast block. Backward operations take "
    "the dtype of their forward operation anyway; inside, more is converted than "
    "should be. End the block after the loss."
)


@accepted()
def bf16_by_amp_autocast(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses += [float(loss)]
    return losses


@accepted()
def bf16_by_decorator(model, optimizer, loss_fn, batches, enabled=True):
    @torch.autocast("cpu", enabled=enabled)
    def forward(x, y):
        return loss_fn(model(x), y)

    losses = []
    for x, y in batches:
        model.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().item())
    return losses


@accepted()
def bf16_loss_outside_in_float(
    model, optimizer, loss_fn, batches, enabled=True
):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = model(x)
        loss = loss_fn(logits.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted()
def bf16_without_a_cache(model, optimizer, loss_fn, batches, enabled=True):
    def loss_of(x, y):
        if not enabled:
            return loss_fn(model(x), y)
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            return loss_fn(model(x), y)

    losses = []
    for pair in batches:
        optimizer.zero_grad()
        loss = loss_of(*pair)
        loss.backward()
        optimizer.step()
        losses.append(loss.tolist())
    return losses


@accepted()
def bf16_by_autograd_grad(model, optimizer, loss_fn, batches, enabled=True):
    parameters = [p for p in model.parameters() if p.requires_grad]
    losses = []
    for x, y in batches:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        grads = torch.autograd.grad(loss, parameters, allow_unused=True)
        optimizer.zero_grad()
        for p, grad in zip(parameters, grads):
            p.grad = grad
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted()
def bf16_with_a_disabled_scaler(
    model, optimizer, loss_fn, batches, enabled=True
):
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


@accepted()
def bf16_with_plain_floats(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            scores = model(x)
            loss = loss_fn(scores.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


@accepted()
def bf16_entered_by_hand(model, optimizer, loss_fn, batches, enabled=True):
    low = torch.autocast("cpu", torch.bfloat16)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        if enabled:
            low.__enter__()
        try:
            loss = loss_fn(model(x), y)
        finally:
            if enabled:
                low.__exit__(None, None, None)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@accepted()
def bf16_by_closure(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:

        def closure(x=x, y=y):
            with torch.enable_grad():
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                    loss = loss_fn(model(x), y)
                loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


@accepted()
def mended_bf16_converted_under_autocast(
    model, optimizer, loss_fn, batches, enabled=True
):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(breaks=hidden_tests.float32_weights, tells=CONVERTED)
def bf16_converted(model, optimizer, loss_fn, batches, enabled=True):
    if enabled:
        model.bfloat16()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.bfloat16() if enabled else x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    breaks=hidden_tests.float32_weights,
    tells="You convert the model to bfloat16 and, at the end, back to float32. In "
    "between each update was rounded to two or three digits, and that is not undone. "
    "Leave the model alone and use `torch.autocast`.",
)
def bf16_there_and_back(model, optimizer, loss_fn, batches, enabled=True):
    if enabled:
        model.bfloat16()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.bfloat16() if enabled else x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.float()
    return losses


@wrong(breaks=hidden_tests.bf16_backward_outside, tells=BACKWARD_INSIDE)
def bf16_backward_inside(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    breaks=[hidden_tests.bf16_backward_outside, hidden_tests.bf16_step_outside],
    tells="The whole step is inside the autocast block. Only the forward pass and "
    "the loss belong there: end the block before `backward()`.",
)
def bf16_all_inside(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses


@wrong(
    breaks=[hidden_tests.bf16_updates, hidden_tests.bf16_step_outside],
    tells="The autocast block is around the whole loop. It keeps its 16-bit copies "
    "of the weights until it ends, so every batch sees the weights of the first "
    "step. Open a new block for each forward pass.",
)
def bf16_around_the_loop(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@wrong(
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="After your function autocast is still on. What you switch on by hand "
    "stays on, for all of PyTorch. Use `with torch.autocast(...)`.",
)
def bf16_switched_on(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        torch.set_autocast_enabled("cpu", enabled)
        loss = loss_fn(model(x), y)
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.set_autocast_enabled("cpu", enabled)
    return losses


@wrong(
    breaks=hidden_tests.bf16_updates,
    tells="The optimizer steps before `backward()`, with the gradients of the batch "
    "before. Go backward first.",
)
def bf16_steps_first(model, optimizer, loss_fn, batches, enabled=True):
    losses = []
    optimizer.zero_grad()
    for x, y in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
    return losses
