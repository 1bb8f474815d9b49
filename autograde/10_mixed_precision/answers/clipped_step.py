"""Answers to `clipped_step` of chapter 10."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def clip_with_two_calls(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(grads)
    nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)
    scaler.step(optimizer)
    scaler.update()
    return float(loss.detach()), float(norm)


@accepted()
def clip_with_a_scaled_threshold(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaled_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm * scale)
    norm = scaled_norm / scale
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted()
def clip_by_hand(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.stack([g.double().norm() for g in grads]).norm()
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm.item())
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted()
def clip_with_scaled_first_gradient(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    if dtype is None:
        loss = F.cross_entropy(model(x), y)
    else:
        with torch.amp.autocast(x.device.type, dtype=dtype):
            loss = F.cross_entropy(model(x), y)
    loss.backward(scaler.scale(torch.ones_like(loss)))
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted()
def clip_without_foreach(model, optimizer, scaler, x, y, max_norm, dtype=None):
    model.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(
        list(model.parameters()), max_norm, norm_type=2.0, foreach=False
    )
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted()
def clip_with_autograd_grad(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    parameters = [p for p in model.parameters() if p.requires_grad]
    scaled = scaler.scale(loss)
    grads = torch.autograd.grad(scaled, parameters, allow_unused=True)
    optimizer.zero_grad()
    for p, grad in zip(parameters, grads):
        # two parameters that are added up get one tensor
        p.grad = None if grad is None else grad.clone()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted()
def clip_through_the_groups(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    held = [p for group in optimizer.param_groups for p in group["params"]]
    norm = nn.utils.clip_grad_norm_(held, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


clip_with_plain_floats = edit(
    SOLUTION,
    {"return loss.item(), norm.item()": "return float(loss), float(norm)"},
)


@accepted()
def clip_asking_the_scaler(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    if scaler.is_enabled():
        scaler.unscale_(optimizer)
    held = [p for p in model.parameters() if p.grad is not None]
    norm = nn.utils.clip_grad_norm_(held, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@accepted()
def clip_in_a_step_hook(model, optimizer, scaler, x, y, max_norm, dtype=None):
    def clip(*_):
        nn.utils.clip_grads_with_norm_(kept, max_norm, norm)

    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    kept = [p for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm([p.grad for p in kept])
    handle = optimizer.register_step_pre_hook(clip)
    scaler.step(optimizer)
    handle.remove()
    scaler.update()
    return loss.item(), norm.item()


clip_scaled_gradients = edit(
    SOLUTION,
    {"scaler.unscale_(optimizer)": ""},
    breaks=[hidden_tests.update_is_clipped, hidden_tests.norm_returned],
    tells="You clip the scaled gradients: they are clipped to `max_norm` and "
    "then divided by the scale, so the update is far too small. Call "
    "`scaler.unscale_(optimizer)` before clipping.",
)

clip_unscaled_twice = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        scaler.unscale_(optimizer)
        scaler.unscale_(optimizer)
        """,
    },
    breaks=hidden_tests.update_is_clipped,
    tells="`unscale_` is called twice for one step, which raises. Once is "
    "enough, and `scaler.step` knows about it.",
)

clip_unscaled_by_hand_too = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        scaler.scale(loss).backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= scaler.get_scale()
        """,
    },
    breaks=hidden_tests.update_is_clipped,
    tells="You divide the gradients by the scale by hand, and the scaler does "
    "it once more. Leave it to `scaler.unscale_`.",
)

clip_divides_by_hand = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= scaler.get_scale()
        """,
    },
    breaks=hidden_tests.update_is_clipped,
    tells="You divide the gradients by the scale by hand. `scaler.step` does "
    "not know that and divides again. Use `scaler.unscale_(optimizer)`, "
    "which it knows of.",
)


@wrong(
    breaks=hidden_tests.norm_returned,
    tells="You clip the scaled gradient to `max_norm` times the scale, which is "
    "right, and report the scaled norm, which is not. Divide it by the "
    "scale.",
)
def clip_threshold_scaled_alone(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(
        model.parameters(), max_norm * scaler.get_scale()
    )
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


clip_discards_the_scaled_loss = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        scaler.scale(loss)
        loss.backward()
        """,
    },
    breaks=[hidden_tests.tiny_gradients_arrive, hidden_tests.update_is_clipped],
    tells="The scaled loss is thrown away: `backward()` runs on the loss "
    "itself. The scaler then divides gradients by a scale that was never "
    "in them. Write `scaler.scale(loss).backward()`.",
)


@wrong(
    breaks=[hidden_tests.one_step_one_update],
    tells="The scaled loss is thrown away, and the optimizer steps twice: by "
    "itself and through the scaler. Three calls are right: "
    "`scaler.scale(loss).backward()`, `scaler.step(optimizer)`, "
    "`scaler.update()`.",
)
def clip_as_in_the_post(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    breaks=[hidden_tests.scale_history, hidden_tests.one_step_one_update],
    tells="`optimizer.step()` is called directly, on gradients that are still "
    "scaled, and nothing looks for an overflow. `scaler.step(optimizer)` "
    "does both.",
)
def clip_steps_by_itself(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), norm.item()


clip_unscales_and_steps_by_itself = edit(
    SOLUTION,
    {"scaler.step(optimizer)": "optimizer.step()"},
    breaks=hidden_tests.overflow_is_left_out,
    tells="After `unscale_` you call `optimizer.step()` yourself, so it steps "
    "after an overflow too. `scaler.step(optimizer)` leaves that step "
    "out.",
)

clip_steps_twice = edit(
    SOLUTION,
    {
        "scaler.update()": """
        scaler.update()
        optimizer.step()
        """,
    },
    breaks=hidden_tests.one_step_one_update,
    tells="The optimizer steps twice: `scaler.step(optimizer)` has made the "
    "step already. Remove `optimizer.step()`.",
)

clip_never_updates = edit(
    SOLUTION,
    {"scaler.update()": ""},
    breaks=[hidden_tests.one_step_one_update, hidden_tests.scale_history],
    tells="`scaler.update()` is missing. The scale never changes, and at the "
    "next call the scaler takes this step for unfinished and raises.",
)


@wrong(
    breaks=[hidden_tests.overflow_is_left_out],
    tells="You update the scaler only after a step that was made. But it is "
    "after an overflow that the scale must fall, or the next step "
    "overflows as well. Update it always.",
)
def clip_updates_good_steps_alone(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if math.isfinite(norm):
        scaler.step(optimizer)
        scaler.update()
    return loss.item(), norm.item()


clip_updates_first = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.update()
        """,
        "scaler.update()": "",
    },
    breaks=hidden_tests.update_is_clipped,
    tells="`scaler.update()` comes before `scaler.step(optimizer)`. It ends the "
    "iteration: what is unscaled by then is forgotten, and divided again. "
    "Step first.",
)

clip_with_a_new_scaler = edit(
    clip_without_foreach,
    {
        "model.zero_grad()": """
        scaler = torch.amp.GradScaler("cpu", init_scale=scaler.get_scale())
        optimizer.zero_grad()
        """,
        "list(model.parameters()), max_norm, norm_type=2.0, foreach=False": "model.parameters(), max_norm",
    },
    breaks=[hidden_tests.scale_history, hidden_tests.overflow_is_left_out],
    tells="You make a new scaler in each call. Its scale never adapts: after an "
    "overflow the next call starts from the same scale again. Use the one "
    "that you get.",
)

clip_scaled_loss_returned = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        loss = scaler.scale(loss)
        loss.backward()
        """,
    },
    breaks=hidden_tests.clipped_loss,
    tells="You return the scaled loss. What is logged must not depend on the "
    "scale: keep `loss`, and scale a copy.",
)

clip_after_the_step = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        """,
        "scaler.step(optimizer)": "",
    },
    breaks=hidden_tests.update_is_clipped,
    tells="You clip after the step, when the gradient has been used already. "
    "Clip before it.",
)

clip_before_backward = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.scale(loss).backward()
        """,
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": "",
    },
    breaks=[hidden_tests.update_is_clipped, hidden_tests.norm_returned],
    tells="You clip before `backward()`, when there is no gradient yet. Clip "
    "after it, and after unscaling.",
)

clip_each_tensor = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        kept = [p for p in model.parameters() if p.grad is not None]
        norms = [nn.utils.clip_grad_norm_([p], max_norm) for p in kept]
        norm = torch.stack(norms).norm()
        """,
    },
    breaks=[hidden_tests.update_is_clipped],
    tells="You clip each parameter's gradient by itself. The direction of the "
    "whole changes, and its norm may be larger than `max_norm`. Clip all "
    "together.",
)

clip_the_first_group = edit(
    clip_through_the_groups,
    {
        '[p for group in optimizer.param_groups for p in group["params"]': 'optimizer.param_groups[0]["params"',
    },
    breaks=hidden_tests.clipped_old_gradients,
    tells="You clip the first group of parameters alone. The norm is that of "
    "all parameters together.",
)

clip_values = edit(
    clip_with_two_calls,
    {
        "nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)": "nn.utils.clip_grad_value_(model.parameters(), max_norm)",
        "return float(loss.detach()), float(norm)": "return loss.item(), norm.item()",
    },
    breaks=[hidden_tests.update_is_clipped],
    tells="You clip each number of the gradient to `max_norm`. That changes its "
    "direction, and its norm is another. Use `clip_grad_norm_`.",
)

clip_always = edit(
    clip_with_two_calls,
    {
        "nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)": """
        for g in grads:
            g.mul_(max_norm / norm)
        """,
        "return float(loss.detach()), float(norm)": "return loss.item(), norm.item()",
    },
    breaks=hidden_tests.short_gradients_stay,
    tells="You give every gradient the norm `max_norm`, short ones too. A "
    "gradient that is shorter stays as it is.",
)

clip_norm_afterwards = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        kept = [p.grad for p in model.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(kept)
        """,
    },
    breaks=hidden_tests.norm_returned,
    tells="You return the norm after clipping. It is never more than `max_norm` "
    "and tells nothing. `clip_grad_norm_` returns the one before.",
)

clip_largest_entry = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm, math.inf)",
    },
    breaks=[hidden_tests.update_is_clipped, hidden_tests.norm_returned],
    tells="You clip by the largest entry (`norm_type=inf`). Asked for is the "
    "ordinary norm, the root of the sum of squares.",
)


@wrong(
    breaks=hidden_tests.clipped_backward_outside,
    tells="The backward pass runs inside the autocast block. End the block "
    "after the loss.",
)
def clip_backward_inside(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    breaks=hidden_tests.clipped_backward_outside,
    tells="The whole step is inside the autocast block. Only the forward pass "
    "and the loss belong there.",
)
def clip_all_inside(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
    return loss.item(), norm.item()


clip_without_autocast = edit(
    SOLUTION,
    {
        """
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y)
        """: "loss = F.cross_entropy(model(x), y)",
    },
    breaks=[hidden_tests.step_in_autocast],
    tells="Your code ignores `dtype`: nothing computes in 16 bit. A scaler "
    "converts nothing. Put forward pass and loss under `torch.autocast`.",
)

clip_always_bf16 = edit(
    SOLUTION,
    {
        'with torch.autocast("cpu", dtype, enabled=dtype is not None):': 'with torch.autocast("cpu", enabled=dtype is not None):',
    },
    breaks=[hidden_tests.step_in_autocast],
    tells="Your autocast is always to bfloat16. Hand `dtype` on.",
)


@wrong(
    breaks=hidden_tests.step_in_autocast,
    tells="The loss is computed after the autocast block, from 16-bit logits, "
    "and is 16 bit itself: scaled, it overflows at once. Compute it "
    "inside the block.",
)
def clip_loss_outside(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        logits = model(x)
    loss = F.cross_entropy(logits, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


@wrong(
    breaks=[hidden_tests.step_in_autocast],
    tells="You convert the model to 16 bit. Its weights and gradients are 16 "
    "bit then, and the scaler refuses float16 gradients. Leave the model "
    "alone: autocast makes copies.",
)
def clip_half_model(model, optimizer, scaler, x, y, max_norm, dtype=None):
    optimizer.zero_grad()
    if dtype is not None:
        model.to(dtype)
        x = x.to(dtype)
    loss = F.cross_entropy(model(x).float(), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), norm.item()


clip_without_zero_grad = edit(
    SOLUTION,
    {"optimizer.zero_grad()": ""},
    breaks=[hidden_tests.update_is_clipped],
    tells="The gradients are never cleared: those of the last call are in this "
    "step too. Call `optimizer.zero_grad()` first.",
)

clip_zero_grad_afterwards = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": "",
        "scaler.update()": """
        scaler.update()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.clipped_old_gradients,
    tells="You clear the gradients after the step. Those that were there before "
    "the first call are used. Clear them before `backward()`.",
)

clip_raises_on_overflow = edit(
    clip_without_foreach,
    {
        "model.zero_grad()": "optimizer.zero_grad()",
        "list(model.parameters()), max_norm, norm_type=2.0, foreach=False": "model.parameters(), max_norm, error_if_nonfinite=True",
    },
    breaks=[hidden_tests.overflow_is_left_out],
    tells="Your code raises when the gradient overflows. With a scaler that "
    "happens now and then, by design: the step is left out, and the scale "
    "falls.",
)

clip_cleans_up = edit(
    SOLUTION,
    {
        "scaler.unscale_(optimizer)": """
        scaler.unscale_(optimizer)
        for p in model.parameters():
            if p.grad is not None:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
        """,
    },
    breaks=[hidden_tests.norm_returned],
    tells="You replace inf and NaN in the gradients before the norm is taken, "
    "so an overflow looks like a gradient of 0. Leave them: the scaler "
    "skips the step.",
)

clip_returns_tensors = edit(
    SOLUTION,
    {"return loss.item(), norm.item()": "return loss, norm"},
    breaks=[hidden_tests.norm_returned, hidden_tests.clipped_loss],
    tells="You return tensors. The loss carries its whole graph with it. "
    "`.item()` makes Python floats.",
)

clip_returns_the_loss_alone = edit(
    SOLUTION,
    {"return loss.item(), norm.item()": "return loss.item()"},
    breaks=[hidden_tests.norm_returned, hidden_tests.clipped_loss],
    tells="You return one thing. Asked for are two: the loss, and the norm "
    "before clipping.",
)

clip_norm_is_a_tensor = edit(
    SOLUTION,
    {"return loss.item(), norm.item()": "return loss.item(), norm"},
    breaks=hidden_tests.norm_returned,
    tells="The norm you return is a tensor. `.item()` makes a Python float.",
)

clip_in_train_mode = edit(
    clip_without_foreach,
    {
        "model.zero_grad()": """
        model.train()
        optimizer.zero_grad()
        """,
        "list(model.parameters()), max_norm, norm_type=2.0, foreach=False": "model.parameters(), max_norm",
    },
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You call `model.train()`. Layers that were in eval mode are not any "
    "more. The mode is not yours to change here.",
)


@wrong(
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="After your function autocast is still on. What is switched on by "
    "hand stays on, for all of PyTorch. Use `with torch.autocast(...)`.",
)
def clip_leaves_autocast_on(
    model, optimizer, scaler, x, y, max_norm, dtype=None
):
    optimizer.zero_grad()
    if dtype is not None:
        torch.set_autocast_dtype("cpu", dtype)
        torch.set_autocast_enabled("cpu", True)
    loss = F.cross_entropy(model(x), y)
    torch.set_autocast_enabled("cpu", False)
    torch.clear_autocast_cache()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    torch.set_autocast_enabled("cpu", dtype is not None)
    return loss.item(), norm.item()


clip_needs_a_scale = edit(
    clip_without_foreach,
    {
        "model.zero_grad()": """
        if not scaler.is_enabled():
            raise ValueError("the scaler is disabled")
        optimizer.zero_grad()
        """,
        "list(model.parameters()), max_norm, norm_type=2.0, foreach=False": "model.parameters(), max_norm",
    },
    breaks=[hidden_tests.clipped_disabled],
    tells="You take for granted that the scaler is enabled. A disabled one has "
    "a scale of 1 and just steps; the same calls serve both.",
)

clip_not_if_disabled = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        scaler.scale(loss).backward()
        limit = max_norm if scaler.is_enabled() else math.inf
        """,
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": "norm = nn.utils.clip_grad_norm_(model.parameters(), limit)",
    },
    breaks=[hidden_tests.clipped_disabled],
    tells="With a disabled scaler you do not clip. Clipping does not depend on "
    "the scaler: it is wanted with bfloat16 and float32, too.",
)

clip_not_at_zero = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        limit = max_norm or math.inf
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
        """,
    },
    breaks=hidden_tests.update_is_clipped,
    tells="With `max_norm=0.0` you do not clip: 0 counts as false in Python. A "
    "threshold of 0 means no step at all.",
)

clip_autocast_without_a_dtype = edit(
    SOLUTION,
    {
        'with torch.autocast("cpu", dtype, enabled=dtype is not None):': 'with torch.autocast("cpu", dtype):',
    },
    breaks=hidden_tests.step_in_autocast,
    tells="With `dtype=None` autocast is on all the same: without a dtype it "
    "takes the default of the device. Switch it off with `enabled=dtype "
    "is not None`.",
)

clip_loss_rounded = edit(
    SOLUTION,
    {
        "return loss.item(), norm.item()": "return round(loss.item(), 3), norm.item()",
    },
    breaks=hidden_tests.clipped_loss,
    tells="You round the loss that you return. Return it as it is; round where "
    "you print.",
)

clip_in_forward = edit(
    SOLUTION,
    {
        "loss = F.cross_entropy(model(x), y)": "loss = F.cross_entropy(model.forward(x), y)",
    },
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You call `model.forward(x)`. Hooks of the model do not run then, and "
    "DDP does not work. Call `model(x)`.",
)

clip_swapped = edit(
    SOLUTION,
    {"return loss.item(), norm.item()": "return norm.item(), loss.item()"},
    breaks=[hidden_tests.clipped_loss, hidden_tests.norm_returned],
    tells="You return the norm first. Asked for is the loss, then the norm.",
)

clip_unscaled_with_a_scaled_threshold = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        limit = max_norm * scaler.get_scale()
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
        """,
    },
    breaks=hidden_tests.update_is_clipped,
    tells="You unscale the gradients and multiply the threshold by the scale. "
    "One of the two is enough: after `unscale_` the threshold is "
    "`max_norm`.",
)

clip_updates_twice = edit(
    SOLUTION,
    {
        "scaler.update()": """
        scaler.update()
        scaler.update()
        """,
    },
    breaks=[hidden_tests.one_step_one_update],
    tells="You call `scaler.update()` twice. The second call finds no step and "
    "raises.",
)

clip_clears_after_backward = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": "",
        "scaler.scale(loss).backward()": """
        scaler.scale(loss).backward()
        optimizer.zero_grad(set_to_none=False)
        """,
    },
    breaks=[hidden_tests.update_is_clipped],
    tells="You clear the gradients after `backward()`: nothing is left to clip "
    "and to step on. Clear them before.",
)

clip_leaves_a_hook = edit(
    clip_without_foreach,
    {
        "model.zero_grad()": """
        optimizer.register_step_post_hook(lambda *_: None)
        optimizer.zero_grad()
        """,
        "list(model.parameters()), max_norm, norm_type=2.0, foreach=False": "model.parameters(), max_norm",
    },
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You leave a hook on the optimizer. It runs at every later step, "
    "and each call adds another. Take it off with the `remove()` of its"
    " handle.",
)

clip_by_log_softmax = edit(
    SOLUTION,
    {
        "loss = F.cross_entropy(model(x), y)": """
        logs = model(x).log_softmax(1)
        loss = -logs.gather(1, y[:, None]).mean()
        """,
    },
    breaks=hidden_tests.step_in_autocast,
    tells="You take the cross-entropy apart. On a CPU `log_softmax` is not on"
    " the float32 list, so the loss is 16 bit, although it is computed "
    "inside the block. Use `F.cross_entropy`.",
)


clip_dividing_by_the_norm = edit(
    clip_by_hand,
    {
        """
        if norm > max_norm:
            for g in grads:
                g.mul_(max_norm / norm.item())
        """: """
        factor = min(1.0, max_norm / norm.item())
        for g in grads:
            g.mul_(factor)
        """,
    },
    breaks=hidden_tests.short_gradients_stay,
    tells="You divide by the norm, which is 0 where the gradient is. A gradient of 0 "
    "is short and stays: ask whether the norm is above `max_norm`, or add a "
    "little to it, as PyTorch does.",
)

clip_also_where_they_are_equal = edit(
    clip_by_hand,
    {"if norm > max_norm:": "if norm >= max_norm:"},
    breaks=hidden_tests.short_gradients_stay,
    tells="You divide by the norm where it equals `max_norm`. Both may be 0: clip only "
    "where the norm is above `max_norm`, or add a little to it, as PyTorch does.",
)

clip_each_group_by_itself = edit(
    clip_with_two_calls,
    {
        "nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)": """
        for group in optimizer.param_groups:
            nn.utils.clip_grad_norm_(group["params"], max_norm)
        """,
    },
    breaks=hidden_tests.update_is_clipped,
    tells="You clip each group of the optimizer by itself. `max_norm` limits the norm "
    "of all gradients together: one call with all parameters.",
)

clip_and_step_where_the_norm_is_finite = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": "if norm.isfinite():\n    scaler.step(optimizer)"
    },
    breaks=hidden_tests.clipped_disabled,
    tells="You leave the step out yourself. An enabled scaler does that; a disabled one "
    "leaves none out. `scaler.step(optimizer)` knows which it is.",
)

clip_and_step_where_the_loss_is_finite = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": "if loss.isfinite():\n    scaler.step(optimizer)"
    },
    breaks=hidden_tests.clipped_disabled,
    tells="You leave the step out yourself. An enabled scaler does that; a disabled one "
    "leaves none out. `scaler.step(optimizer)` knows which it is.",
)

clip_to_zero_and_do_not_step = edit(
    SOLUTION,
    {"scaler.step(optimizer)": "if max_norm > 0:\n    scaler.step(optimizer)"},
    breaks=hidden_tests.update_is_clipped,
    tells="With `max_norm` 0 you make no step. A step with gradients of zeros is one all "
    "the same: weight decay and momentum go on.",
)

clip_and_cap_the_scale = edit(
    SOLUTION,
    {
        "scaler.update()": "scaler.update()\n"
        "if scaler.is_enabled() and scaler.get_scale() > 65536:\n"
        "    scaler.update(65536.0)"
    },
    breaks=hidden_tests.scale_history,
    tells="You hold the scale below 65536. It may be any: it falls by itself when "
    "gradients overflow.",
)

clip_and_keep_the_scale_above_one = edit(
    SOLUTION,
    {
        "scaler.update()": "scaler.update()\n"
        "if scaler.is_enabled() and scaler.get_scale() < 1:\n"
        "    scaler.update(1.0)"
    },
    breaks=hidden_tests.scale_history,
    tells="You hold the scale above 1. It may be any: where gradients are large, a scale "
    "below 1 is right.",
)

clip_what_was_nan = edit(
    SOLUTION,
    {
        "norm = nn.utils": "for p in model.parameters():\n"
        "    if p.grad is not None:\n"
        "        p.grad.nan_to_num_()\n"
        "norm = nn.utils"
    },
    breaks=hidden_tests.norm_returned,
    tells="`nan_to_num_` hides a NaN, and the norm that you return is finite. Where the "
    "gradient holds a NaN, the norm is NaN.",
)

clip_a_loss_of_float32 = edit(
    SOLUTION,
    {"F.cross_entropy(model(x), y)": "F.cross_entropy(model(x).float(), y)"},
    breaks=hidden_tests.step_in_autocast,
    tells="Under autocast the loss is float32 by itself. Without `dtype` the loss of a "
    "float64 model is float64, and `.float()` rounds it.",
)

loss_in_sixteen_bits = edit(
    SOLUTION,
    {
        "return loss.item(), norm.item()": "return loss.to(dtype or loss.dtype).item(), norm.item()"
    },
    breaks=hidden_tests.clipped_loss,
    tells="You round the loss to 16 bits. Autocast takes the cross-entropy in float32: "
    "return it as it came.",
)

clip_with_gradients_as_zeros = edit(
    SOLUTION,
    {"optimizer.zero_grad()": "optimizer.zero_grad(set_to_none=False)"},
    breaks=hidden_tests.clipped_old_gradients,
    tells="You make old gradients zero and keep them. A layer that this batch "
    "does not use then has a gradient of zeros, and momentum and weight decay "
    "move it. `optimizer.zero_grad()` alone makes them `None`.",
)

seeding_in_clipped_step = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        torch.manual_seed(0)
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.clipped_leaves_the_rest,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

loss_by_the_next_scale = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        loss = scaler.scale(loss)
        loss.backward()
        """,
        "return loss.item(), norm.item()": "return loss.item() / scaler.get_scale(), norm.item()",
    },
    breaks=hidden_tests.clipped_loss,
    tells="You divide the scaled loss by the scale after `update()`, which may have "
    "changed it. Keep the loss before it is scaled.",
)


clip_with_a_second_look = edit(
    SOLUTION,
    {
        """
        loss = F.cross_entropy(model(x), y)
        """: """
        loss = F.cross_entropy(model(x), y)
        if not loss.isfinite():
            loss = F.cross_entropy(model(x), y)
        """
    },
    breaks=hidden_tests.one_step_one_update,
    tells="Where a loss is not finite, you call the model once more. It is called "
    "once for each batch, whatever comes of it: the loss is the same again.",
)

no_scaler_for_bfloat16 = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        if dtype == torch.bfloat16:
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            return loss.item(), norm.item()
        scaler.scale(loss).backward()
        """,
    },
    breaks=hidden_tests.one_step_one_update,
    tells="With bfloat16 you leave the scaler out. Whether there is scaling is for "
    "the scaler that was given to say: who wants none gives a disabled one.",
)

no_update_of_a_small_scale = edit(
    SOLUTION,
    {
        "scaler.update()": """
        if norm.isfinite() or scaler.get_scale() > 1:
            scaler.update()
        """,
    },
    breaks=hidden_tests.one_step_one_update,
    tells="After an overflow you update the scaler only while its scale is above 1. "
    "Without `update()` the next `unscale_` raises: call it always.",
)

no_clipped_step_of_a_loss_of_zero = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        if loss.item() != 0:
            scaler.step(optimizer)
        """
    },
    breaks=hidden_tests.short_gradients_stay,
    tells="You leave out the step where the loss is 0. It is a step like others: momentum and weight "
    "decay go on.",
)

layers_cleared_before_the_clip = edit(
    SOLUTION,
    {
        "optimizer.zero_grad()": """
        for layer in model.children():
            layer.zero_grad()
        """
    },
    breaks=hidden_tests.clipped_old_gradients,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `optimizer.zero_grad()` clears all.",
)


clip_one_tensor_for_two_gradients = edit(
    clip_with_autograd_grad,
    {"p.grad = None if grad is None else grad.clone()": "p.grad = grad"},
    breaks=hidden_tests.clipped_old_gradients,
    tells="What `torch.autograd.grad` gives may be one tensor for two parameters, where the "
    "model adds them up. What is done to it in place then happens twice. Put a `clone()` there.",
)

clip_loss_divided_again = edit(
    SOLUTION,
    {
        "scaler.scale(loss).backward()": """
        loss = scaler.scale(loss)
        loss.backward()
        mean = loss.item() / scaler.get_scale()
        """,
        "return loss.item(), norm.item()": "return mean, norm.item()",
    },
    breaks=hidden_tests.clipped_loss,
    tells="You scale the loss and divide it by the scale again. Under a large scale the product is "
    "infinite, though the loss is not. Take the loss before it is scaled.",
)

THROWN_AWAY = (
    "You throw a gradient away, or mend it, where it is not finite. An enabled scaler "
    "leaves the step out by itself. A disabled one steps on the gradient as it is, and "
    "the NaN shows in the weights: yours hide it."
)

clip_throws_away_what_overflows = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        if not norm.isfinite():
            optimizer.zero_grad()
        scaler.step(optimizer)
        """,
    },
    breaks=hidden_tests.clipped_disabled,
    tells=THROWN_AWAY,
)

clip_mends_what_overflows = edit(
    SOLUTION,
    {
        "scaler.step(optimizer)": """
        for p in model.parameters():
            if p.grad is not None:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
        scaler.step(optimizer)
        """,
    },
    breaks=hidden_tests.clipped_disabled,
    tells=THROWN_AWAY,
)
