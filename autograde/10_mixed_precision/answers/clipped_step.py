"""Answers to `clipped_step` of chapter 10."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

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
