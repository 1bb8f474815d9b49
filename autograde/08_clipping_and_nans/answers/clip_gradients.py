"""Answers to `clip_gradients` of chapter 08."""

import math

import torch
from torch import Tensor, nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
@torch.no_grad()
def clip_by_pytorch_parts(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if torch.is_tensor(parameters):
        parameters = [parameters]
    there = [p for p in parameters if p.grad is not None and p.grad.numel()]
    halves = torch.float16, torch.bfloat16
    wide = [p.grad.float() if p.grad.dtype in halves else p.grad for p in there]
    norm = nn.utils.get_total_norm(wide, norm_type, error_if_nonfinite)
    nn.utils.clip_grads_with_norm_(there, max_norm, norm)
    return norm


@accepted()
def clip_by_sums_of_powers(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    given = [parameters] if torch.is_tensor(parameters) else list(parameters)
    grads = [p.grad.detach() for p in given if p.grad is not None]
    double = any(g.dtype == torch.float64 for g in grads)
    sizes = [g.double().abs().flatten() for g in grads]
    flat = torch.cat(sizes) if sizes else torch.zeros(1)
    if norm_type == math.inf:
        norm = flat.max()
    else:
        norm = flat.pow(norm_type).sum().pow(1 / norm_type)
    if error_if_nonfinite and not math.isfinite(norm):
        raise RuntimeError("not finite")
    factor = min(1.0, max_norm / norm.item()) if norm != 0 else 1.0
    if norm.isnan():
        factor = math.nan
    for g in grads:
        g *= factor
    return norm.to(torch.float64 if double else torch.float32)


@accepted()
@torch.no_grad()
def clip_without_epsilon(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    given = [parameters] if isinstance(parameters, Tensor) else [*parameters]
    grads = [p.grad for p in given if p.grad is not None]
    if not grads:
        return torch.zeros(())
    dtype = torch.float32
    for g in grads:
        dtype = torch.promote_types(dtype, g.dtype)
    flat = torch.cat([g.reshape(-1).to(dtype) for g in grads])
    norm = torch.linalg.norm(flat, norm_type)
    if not torch.isfinite(norm) and error_if_nonfinite:
        raise RuntimeError
    if not norm <= max_norm:
        for g in grads:
            g.copy_(g * (max_norm / norm))
    return norm


@accepted()
@torch.no_grad()
def clip_by_foreach(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, torch.Tensor):
        parameters = (parameters,)
    grads = [p.grad for p in parameters if p.grad is not None]
    grads = [g for g in grads if g.numel() > 0]
    total = torch.zeros((), dtype=torch.float64)
    for g in grads:
        one = g.double().norm(norm_type)
        if norm_type == math.inf:
            total = torch.maximum(total, one)
        else:
            total = total + one**norm_type
    if norm_type != math.inf:
        total = total ** (1 / norm_type)
    if error_if_nonfinite and (total.isnan() or total.isinf()):
        raise RuntimeError("The total norm is not finite.")
    factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    if grads:
        torch._foreach_mul_(grads, factor)
    double = any(g.dtype == torch.float64 for g in grads)
    return total if double else total.float()


@accepted()
def clip_with_pytorch_where_it_is_right(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if torch.is_tensor(parameters):
        parameters = [parameters]
    kept = [p for p in parameters if p.grad is not None and p.grad.numel() > 0]
    narrow = [
        p for p in kept if p.grad.dtype in (torch.float16, torch.bfloat16)
    ]
    stand_ins = []
    for p in kept:
        twin = torch.zeros_like(p.grad, dtype=torch.float32)
        twin.grad = p.grad.float()
        stand_ins.append(twin if any(p is n for n in narrow) else p)
    norm = nn.utils.clip_grad_norm_(
        stand_ins, max_norm, norm_type, error_if_nonfinite
    )
    for p, twin in zip(kept, stand_ins):
        if twin is not p:
            p.grad.copy_(twin.grad)
    return norm


@accepted()
@torch.no_grad()
def clip_with_two_loops(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    norms = []
    for g in grads:
        wide = g if g.dtype == torch.float64 else g.float()
        norms += [wide.norm(norm_type)] if g.numel() else []
    dtypes = {g.dtype for g in grads}
    dtype = torch.float64 if torch.float64 in dtypes else torch.float32
    norm = torch.tensor([float(n) for n in norms] or [0.0], dtype=dtype)
    norm = norm.norm(norm_type)
    if error_if_nonfinite and not math.isfinite(float(norm)):
        raise RuntimeError("not finite")
    scale = torch.minimum(max_norm / (norm + 1e-6), torch.ones_like(norm))
    for g in grads:
        g.mul_(scale)
    return norm


@accepted()
@torch.no_grad()
def clip_a_flat_copy(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    tensors = [parameters] if torch.is_tensor(parameters) else parameters
    grads = []
    for tensor in tensors:
        if tensor.grad is not None:
            grads.append(tensor.grad)
    wide = torch.float32
    if torch.float64 in [g.dtype for g in grads]:
        wide = torch.float64
    flat = torch.zeros(1, dtype=wide)
    for g in grads:
        flat = torch.cat((flat, g.flatten().to(wide)))
    norm = flat.norm(p=norm_type)
    if error_if_nonfinite and not norm.isfinite().item():
        raise RuntimeError(f"norm {norm}")
    flat = flat * torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    at = 1
    for g in grads:
        if norm > max_norm or not norm.isfinite():
            g.copy_(flat[at : at + g.numel()].view_as(g))
        at += g.numel()
    return norm


@accepted()
@torch.no_grad()
def clip_where_the_norm_is_large(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    double = any(g.dtype == torch.float64 for g in grads)
    dtype = torch.float64 if double else torch.float32
    norms = [
        torch.linalg.vector_norm(g, norm_type, dtype=dtype)
        for g in grads
        if g.numel() > 0
    ]
    if not norms:
        return torch.zeros((), dtype=dtype)
    joint = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError("not finite")
    if not joint <= max_norm:
        for g in grads:
            g /= joint / max_norm
    return joint


@accepted()
@torch.no_grad()
def mended_clip_skips_frozen(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    norms = [
        g.to(torch.promote_types(g.dtype, torch.float32)).norm(norm_type)
        for g in grads
        if g.numel()
    ]
    if not norms:
        return torch.tensor(0.0)
    if any(g.dtype == torch.float64 for g in grads):
        norms = [norm.double() for norm in norms]
    joint = torch.stack(norms).norm(norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    breaks=hidden_tests.half_precision,
    tells="You handed in PyTorch's own function. It is right, but for half "
    "precision: it takes the norm in the dtype of the gradients, which overflows "
    "in float16 and then multiplies every gradient by 0. Take the norm in "
    "float32.",
)
def clip_by_pytorch(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    kept = [p for p in parameters if p.grad is None or p.grad.numel() > 0]
    return nn.utils.clip_grad_norm_(
        kept, max_norm, norm_type, error_if_nonfinite
    )


@wrong(
    breaks=hidden_tests.any_iterable,
    tells="You go through the parameters twice, once for the norm and once to "
    "multiply. A generator is empty the second time, and nothing is clipped. Make "
    "a list of the gradients first.",
)
@torch.no_grad()
def clip_exhausts_the_generator(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    norms, double = [], False
    for p in parameters:
        if p.grad is not None and p.grad.numel():
            wide = torch.promote_types(p.grad.dtype, torch.float32)
            norms.append(p.grad.to(wide).norm(norm_type))
            double |= p.grad.dtype == torch.float64
    if not norms:
        return torch.tensor(0.0)
    if double:
        norms = [norm.double() for norm in norms]
    joint = torch.stack(norms).norm(norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for p in parameters:
        if p.grad is not None:
            p.grad.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    breaks=hidden_tests.norm_before_clipping,
    tells="You take the norm of the parameters, not of their gradients "
    "(`p.grad`).",
)
@torch.no_grad()
def clip_by_the_norm_of_weights(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    given = [p for p in parameters if p.grad is not None]
    norms = [
        p.to(torch.promote_types(p.dtype, torch.float32)).norm(norm_type)
        for p in given
        if p.numel()
    ]
    if not norms:
        return torch.tensor(0.0)
    if any(p.dtype == torch.float64 for p in given):
        norms = [norm.double() for norm in norms]
    joint = torch.stack(norms).norm(norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for p in given:
        p.grad.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint
