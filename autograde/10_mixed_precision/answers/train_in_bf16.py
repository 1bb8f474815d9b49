"""Answers to `train_in_bf16` of chapter 10."""

import itertools

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

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

DOUBLE_CAST = (
    "You convert the inputs yourself. Autocast does that for the layers that want "
    "it, and keeps float32 for those that do not. Give the model `x` as it came."
)

NOT_LOW = (
    "Nothing computes in bfloat16: autocast is not on in the forward pass. Put "
    'the call of the model into `with torch.autocast("cpu", torch.bfloat16):`.'
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


@wrong(breaks=hidden_tests.float32_weights, tells=CONVERTED)
def bf16_converted_under_autocast(
    model, optimizer, loss_fn, batches, enabled=True
):
    if enabled:
        model.bfloat16()
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


@wrong(
    breaks=[hidden_tests.float32_weights, hidden_tests.layers_in_bf16],
    tells="You convert the model to float16. It is not bfloat16, its weights are "
    "16 bit too, and without a scaler its gradients underflow. Leave the model "
    "alone and use `torch.autocast` with `torch.bfloat16`.",
)
def bf16_half_model(model, optimizer, loss_fn, batches, enabled=True):
    if enabled:
        model.half()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.half() if enabled else x).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
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


bf16_not_at_all = edit(
    SOLUTION,
    {
        """
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        """: "loss = loss_fn(model(x), y)",
    },
    breaks=hidden_tests.layers_in_bf16,
    tells=NOT_LOW,
)

bf16_for_the_loss_alone = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        optimizer.zero_grad()
        logits = model(x)
        """,
        "loss = loss_fn(model(x), y)": "loss = loss_fn(logits, y)",
    },
    breaks=hidden_tests.layers_in_bf16,
    tells=NOT_LOW,
)

bf16_of_another_device = edit(
    SOLUTION,
    {
        'with torch.autocast("cpu", torch.bfloat16, enabled=enabled):': 'with torch.autocast("cuda", torch.bfloat16, enabled=enabled):',
    },
    breaks=hidden_tests.layers_in_bf16,
    tells='`torch.autocast("cuda")` is for the operations of a GPU. On the CPU it '
    "does nothing, and warns where there is no GPU. The first argument is the "
    'type of the device that computes: here "cpu", in general `x.device.type`.',
)

bf16_in_float16 = edit(
    SOLUTION,
    {
        'with torch.autocast("cpu", torch.bfloat16, enabled=enabled):': 'with torch.autocast("cpu", torch.float16, enabled=enabled):',
    },
    breaks=hidden_tests.layers_in_bf16,
    tells="Your autocast dtype is float16. Its range is small: it needs a scaler, "
    "which bfloat16 does not. The dtype asked for is `torch.bfloat16`.",
)

bf16_loss_outside = edit(
    bf16_loss_outside_in_float,
    {"loss = loss_fn(logits.float(), y)": "loss = loss_fn(logits, y)"},
    breaks=hidden_tests.loss_in_float32,
    tells="The loss is computed after the autocast block, from bfloat16 logits: it "
    "is bfloat16 itself, with two to three digits. Compute it inside the block, where "
    "losses are float32.",
)

bf16_inputs_converted = edit(
    SOLUTION,
    {
        "loss = loss_fn(model(x), y)": "loss = loss_fn(model(x.bfloat16() if enabled else x), y)",
    },
    breaks=hidden_tests.layers_in_bf16,
    tells=DOUBLE_CAST,
)


@wrong(
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You open autocast by hand and never close it: whatever runs afterwards "
    "computes in 16 bit, with old copies of the weights. Use `with`.",
)
def bf16_never_closed(model, optimizer, loss_fn, batches, enabled=True):
    torch.autocast("cpu", torch.bfloat16, enabled=enabled).__enter__()
    losses = []
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


bf16_by_the_old_name = edit(
    SOLUTION,
    {
        'with torch.autocast("cpu", torch.bfloat16, enabled=enabled):': "with torch.cpu.amp.autocast(dtype=torch.bfloat16, enabled=enabled):",
    },
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="`torch.cpu.amp.autocast` and `torch.cuda.amp.autocast` are deprecated "
    'and warn. The name for all devices is `torch.autocast("cpu", ...)`.',
)

bf16_always_on = edit(
    SOLUTION,
    {
        'with torch.autocast("cpu", torch.bfloat16, enabled=enabled):': 'with torch.autocast("cpu", torch.bfloat16):',
    },
    breaks=hidden_tests.bf16_disabled,
    tells="Your code ignores `enabled`: it computes in bfloat16 in any case. Hand "
    "it on: `torch.autocast(..., enabled=enabled)`.",
)

bf16_without_zero_grad = edit(
    SOLUTION,
    {"optimizer.zero_grad()": ""},
    breaks=hidden_tests.bf16_updates,
    tells="The gradients are never cleared, so each step uses those of all batches "
    "before it. Call `optimizer.zero_grad()` for each batch.",
)

bf16_zero_grad_afterwards = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": "",
        "optimizer.step()": """
        optimizer.step()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.bf16_old_gradients,
    tells="You clear the gradients after each step. Those that were there before "
    "the first one are used. Clear them before `backward()`.",
)

bf16_tensors_returned = edit(
    SOLUTION,
    {"losses.append(loss.item())": "losses.append(loss.detach())"},
    breaks=hidden_tests.bf16_losses,
    tells="You return tensors. A tensor with a graph keeps all of its graph alive. "
    "`.item()` makes a Python float.",
)

bf16_mean_returned = edit(
    SOLUTION,
    {"return losses": "return sum(losses) / max(1, len(losses))"},
    breaks=hidden_tests.bf16_losses,
    tells="You return one number. Asked for is a list with the loss of each batch.",
)

bf16_loss_after_the_step = edit(
    SOLUTION,
    {
        "losses.append(loss.item())": """
        with torch.no_grad():
            losses.append(loss_fn(model(x), y).item())
        """,
    },
    breaks=hidden_tests.bf16_losses,
    tells="The losses you return are those after the step, from a second forward "
    "pass. Return the loss that you went backward on.",
)


@wrong(
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You call `model.train()`. Layers that were in eval mode, as frozen batch "
    "norms are, are not any more. The mode is not yours to change here.",
)
def bf16_train_mode(model, optimizer, loss_fn, batches, enabled=True):
    model.train()
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
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You seed PyTorch's global generator. What the caller draws afterwards is "
    "drawn again and again. Nothing here needs a seed.",
)
def bf16_seeded(model, optimizer, loss_fn, batches, enabled=True):
    torch.manual_seed(0)
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
    breaks=hidden_tests.bf16_losses,
    tells="Your code makes one step too many or stops at an empty input: with no "
    "batch there is nothing to do, and the list is empty.",
)
def bf16_stops_at_nothing(model, optimizer, loss_fn, batches, enabled=True):
    pairs = iter(batches)
    x, y = next(pairs)
    losses = []
    for x, y in itertools.chain([(x, y)], pairs):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


bf16_scaled = edit(
    SOLUTION,
    {"loss.backward()": "(loss * (1024.0 if enabled else 1.0)).backward()"},
    breaks=hidden_tests.bf16_updates,
    tells="You scale the loss and never take the scale out of the gradients again, "
    "so each step is larger by that factor. bfloat16 needs no scaling at all.",
)

bf16_losses_rounded = edit(
    SOLUTION,
    {"losses.append(loss.item())": "losses.append(round(loss.item(), 3))"},
    breaks=hidden_tests.bf16_losses,
    tells="You round the losses that you return. Return them as they are; round "
    "where you print.",
)

bf16_in_forward = edit(
    SOLUTION,
    {"loss = loss_fn(model(x), y)": "loss = loss_fn(model.forward(x), y)"},
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You call `model.forward(x)`. Hooks of the model do not run then, and DDP "
    "does not work. Call `model(x)`.",
)

bf16_clipped = edit(
    SOLUTION,
    {
        "loss.backward()": """
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
    },
    breaks=hidden_tests.bf16_updates,
    tells="You clip the gradients. Nobody asked for it: where they are large, the "
    "update is another.",
)


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


@wrong(
    breaks=hidden_tests.bf16_step_outside,
    tells="You read all batches inside an autocast block. What the loader computes "
    "then, as an augmentation, is 16 bit without your knowing. Read them outside.",
)
def bf16_batches_read_inside(model, optimizer, loss_fn, batches, enabled=True):
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        pairs = list(batches)
    losses = []
    for x, y in pairs:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


bf16_clipped_at_100 = edit(
    SOLUTION,
    {
        "loss.backward()": """
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        """,
    },
    breaks=hidden_tests.bf16_updates,
    tells="You clip the gradients. Nobody asked for it: where they are large, the "
    "update is another.",
)

bf16_scaled_and_unscaled = edit(
    SOLUTION,
    {
        "loss.backward()": """
        (1024.0 * loss).backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= 1024.0
        """,
    },
    breaks=hidden_tests.bf16_updates,
    tells="You scale the loss, as for float16. bfloat16 has the range of float32: "
    "nothing is gained, and a large gradient overflows.",
)

bf16_inputs_made_float32 = edit(
    SOLUTION,
    {"loss = loss_fn(model(x), y)": "loss = loss_fn(model(x.float()), y)"},
    breaks=hidden_tests.layers_in_bf16,
    tells="You make the inputs float32. Ids of tokens are whole numbers, and a "
    "model that looks them up wants them so. Give the model `x` as it came.",
)

bf16_gradients_as_zeros = edit(
    SOLUTION,
    {"optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)"},
    breaks=hidden_tests.bf16_old_gradients,
    tells="You make old gradients zero and keep them. A layer that this batch "
    "does not use then has a gradient of zeros, and momentum and weight decay "
    "move it. `optimizer.zero_grad()` alone makes them `None`.",
)

bf16_gradients_rounded = edit(
    SOLUTION,
    {
        "loss.backward()": """
        loss.backward()
        for p in model.parameters():
            if p.grad is not None and enabled:
                p.grad = p.grad.bfloat16().float()
        """,
    },
    breaks=hidden_tests.float32_weights,
    tells="You round the gradients to bfloat16. Where autocast computes in "
    "float32, as in a norm, they have more digits: leave them as they are.",
)

bf16_without_empty_batches = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        if not len(x):
            continue
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.bf16_losses,
    tells="You leave empty batches out, so your list has fewer losses than there "
    "were batches. The mean loss of no samples is NaN.",
)

bf16_batches_read_first = edit(
    SOLUTION,
    {"for x, y in batches:": "for x, y in list(batches):"},
    breaks=hidden_tests.bf16_step_outside,
    tells="You read all batches before the first step. A loader can be larger than "
    "the memory. Read each batch when its turn comes.",
)

bf16_rounded_weights = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        optimizer.step()
        with torch.no_grad():
            for p in model.parameters():
                if enabled:
                    p.copy_(p.bfloat16())
        """,
    },
    breaks=hidden_tests.bf16_updates,
    tells="You round the gradients to bfloat16 before the step, or the weights "
    "after it. They are float32 so that small updates are not lost.",
)


@wrong(
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="You leave a hook on the optimizer. It runs at every later step, "
    "and each call adds another. Take it off with the `remove()` of its"
    " handle.",
)
def bf16_leaves_a_hook(model, optimizer, loss_fn, batches, enabled=True):
    made = []
    optimizer.register_step_post_hook(lambda *_: made.append(1))
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


bf16_leaving_out_bad_batches = edit(
    bf16_by_amp_autocast,
    {
        "optimizer.step()": """
        if loss.isfinite():
            optimizer.step()
        """,
    },
    breaks=hidden_tests.bf16_losses,
    tells="You leave the step out where the loss is not finite. Each batch makes one "
    "step: a NaN shows in the losses after it, and somebody looks.",
)

bf16_switched_by_hand = edit(
    bf16_by_amp_autocast,
    {
        """
        with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = loss_fn(model(x), y)
        """: """
        torch.set_autocast_dtype("cpu", torch.bfloat16)
        torch.set_autocast_enabled("cpu", enabled)
        loss = loss_fn(model(x), y)
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
        """,
    },
    breaks=hidden_tests.bf16_leaves_the_rest,
    tells="If the model or the loss raises, autocast stays on for the rest of the "
    "program. A `with` block ends it whatever happens.",
)


bf16_with_a_second_look = edit(
    SOLUTION,
    {
        """
        loss = loss_fn(model(x), y)
        """: """
        loss = loss_fn(model(x), y)
        if not loss.isfinite():
            loss = loss_fn(model(x), y)
        """
    },
    breaks=hidden_tests.loss_in_float32,
    tells="Where a loss is not finite, you call the model once more. It is called "
    "once for each batch, whatever comes of it: the loss is the same again.",
)


bf16_with_a_second_forward = edit(
    SOLUTION,
    {
        """
        loss.backward()
        """: """
        if not loss.isfinite():
            with torch.no_grad():
                model(x)
        loss.backward()
        """
    },
    breaks=hidden_tests.loss_in_float32,
    tells="Where a loss is not finite, you call the model once more. It is called "
    "once for each batch, whatever comes of it: the loss is the same again.",
)

old_gradients_of_what_is_trained = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for p in model.parameters():
            if p.requires_grad:
                p.grad = None
        """,
    },
    breaks=hidden_tests.bf16_old_gradients,
    tells="You clear the gradients of trainable parameters alone. A frozen one may "
    "have an old gradient, and the optimizer moves it: `optimizer.zero_grad()`.",
)

inputs_made_float_without_autocast = edit(
    SOLUTION,
    {"model(x)": "model(x if enabled else x.float())"},
    breaks=hidden_tests.layers_in_bf16,
    tells="With `enabled=False` you make x float32. Token ids are whole numbers, "
    "and an embedding refuses others: x goes into the model as it came.",
)

no_step_for_an_empty_batch = edit(
    SOLUTION,
    {
        "loss.backward()": """
        if not len(x):
            losses.append(loss.item())
            continue
        loss.backward()
        """,
    },
    breaks=hidden_tests.bf16_updates,
    tells="You make no step for an empty batch. Momentum and weight decay move the "
    "weights there, too: each batch makes one step.",
)

no_step_where_the_loss_is_zero = edit(
    SOLUTION,
    {
        "optimizer.step()": """
        if loss.item() != 0:
            optimizer.step()
        """
    },
    breaks=hidden_tests.bf16_updates,
    tells="You leave out the step where the loss is 0. It is a step like others: momentum and weight "
    "decay go on.",
)

bf16_through_a_scaler = edit(
    SOLUTION,
    {
        "losses = []": """
        losses = []
        scaler = torch.amp.GradScaler("cpu", enabled=enabled)
        """,
        "loss.backward()": "scaler.scale(loss).backward()",
        "optimizer.step()": """
        scaler.step(optimizer)
        scaler.update()
        """,
    },
    breaks=hidden_tests.bf16_losses,
    tells="You train through a `GradScaler`. bfloat16 has the range of float32 and needs "
    "none, and a scaler leaves the step out where a gradient is not finite. Each batch makes "
    "one step: call `loss.backward()` and `optimizer.step()`.",
)

bf16_going_on_without_bad_batches = edit(
    SOLUTION,
    {
        "loss.backward()": """
        if not loss.isfinite():
            losses.append(loss.item())
            continue
        loss.backward()
        """,
    },
    breaks=hidden_tests.bf16_losses,
    tells="You leave the step out where the loss is not finite. Each batch makes one "
    "step: a NaN shows in the losses after it, and somebody looks.",
)
