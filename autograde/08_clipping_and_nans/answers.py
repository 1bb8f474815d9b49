"""The answer bank of chapter 08: clipping and NaNs."""

import copy
import math
import re
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# clip_gradients


@accepted("clip_gradients")
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


@accepted("clip_gradients")
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


@accepted("clip_gradients")
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


@accepted("clip_gradients")
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


@accepted("clip_gradients")
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


@accepted("clip_gradients")
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


@wrong(
    "clip_gradients",
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
    "clip_gradients",
    breaks=hidden_tests.one_common_factor,
    tells="You clip each gradient to a norm of its own. Large ones then shrink, "
    "small ones do not, and the direction of the whole changes. Take one norm of "
    "all and one factor for all.",
)
@torch.no_grad()
def clip_each_by_itself(
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
    for g, norm in zip([g for g in grads if g.numel()], norms):
        g.mul_((max_norm / (norm + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.one_common_factor,
    tells="You clip each entry (clipping by value). That changes the direction of "
    "the step. Clipping by norm multiplies all entries by one factor.",
)
@torch.no_grad()
def clip_by_value(
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
        g.clamp_(-max_norm, max_norm)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.small_gradients_stay,
    tells="You always multiply by `max_norm / norm`. A gradient that is smaller "
    "than `max_norm` then grows. The factor is at most 1.",
)
@torch.no_grad()
def clip_enlarges(
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
        g.mul_(max_norm / (joint + 1e-6))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.norm_before_clipping,
    tells="You return the norm after clipping. That is never more than "
    "`max_norm`, and tells nothing in a log: return the norm as it was before.",
)
@torch.no_grad()
def clip_returns_the_norm_after(
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return joint * factor


@wrong(
    "clip_gradients",
    breaks=hidden_tests.gradients_that_are_missing,
    tells="A parameter that took no part has `.grad` None, and yours stumbles "
    "over it. Leave those out.",
)
@torch.no_grad()
def clip_stumbles_over_none(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters]
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
    "clip_gradients",
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
    "clip_gradients",
    breaks=hidden_tests.nonfinite_spreads,
    tells="`if norm > max_norm` is False for NaN, so gradients with a NaN among "
    "them go on to the optimizer as they are, and no one hears of it. Multiply "
    "in that case too: the NaN then shows in every gradient.",
)
@torch.no_grad()
def clip_lets_nan_pass(
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
    if joint > max_norm:
        for g in grads:
            g.mul_(max_norm / (joint + 1e-6))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.nonfinite_spreads,
    tells="You replace NaN and infinity in the gradients by numbers. The step is "
    "then made with a gradient that nobody computed. Hiding a fault is not what "
    "clipping is for.",
)
@torch.no_grad()
def clip_hides_nan(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    if not error_if_nonfinite:
        for g in grads:
            if not g.isfinite().all():
                g.nan_to_num_(0.0, 0.0, 0.0)
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
    "clip_gradients",
    breaks=hidden_tests.nonfinite_is_refused,
    tells="You take no notice of `error_if_nonfinite`. With it, a norm that is "
    "NaN or infinite is a RuntimeError.",
)
@torch.no_grad()
def clip_never_refuses(
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
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.nonfinite_is_refused,
    tells="You raise the error after you have multiplied the gradients, so "
    "whoever catches it finds them spoilt. Test the norm first.",
)
@torch.no_grad()
def clip_refuses_too_late(
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
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.nonfinite_is_refused,
    tells="With `error_if_nonfinite` you look for NaN alone. An infinite norm "
    "makes every gradient 0 or NaN just as well: test `isfinite`.",
)
@torch.no_grad()
def clip_refuses_nan_alone(
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
    if error_if_nonfinite and joint.isnan():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.other_norms,
    tells="You take the Euclidean norm whatever `norm_type` says.",
)
@torch.no_grad()
def clip_by_the_euclidean_norm(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    norms = [
        g.to(torch.promote_types(g.dtype, torch.float32)).norm()
        for g in grads
        if g.numel()
    ]
    if not norms:
        return torch.tensor(0.0)
    if any(g.dtype == torch.float64 for g in grads):
        norms = [norm.double() for norm in norms]
    joint = torch.stack(norms).norm()
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.norm_before_clipping,
    tells="You add the norms of the gradients up. Norms do not add: take the norm "
    "of the norms, with the same p.",
)
@torch.no_grad()
def clip_by_the_sum_of_norms(
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
    joint = torch.stack(norms).sum()
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.multiplied_in_place,
    tells="You put new tensors into `.grad`. Whoever else looks at the old ones, "
    "such as a bucket of DistributedDataParallel, does not see the clipping. "
    "Multiply in place: `mul_`.",
)
@torch.no_grad()
def clip_replaces_gradients(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    given = [p for p in parameters if p.grad is not None]
    grads = [p.grad for p in given]
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for p in given:
        p.grad = (p.grad * factor).to(p.grad.dtype)
    return joint


@wrong(
    "clip_gradients",
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


@wrong(
    "clip_gradients",
    breaks=hidden_tests.norm_before_clipping,
    tells="You return a Python float. `.item()` makes a GPU wait at every step; "
    "return the tensor, and let the caller take the number when it is needed.",
)
@torch.no_grad()
def clip_returns_a_float(
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
        return 0.0
    if any(g.dtype == torch.float64 for g in grads):
        norms = [norm.double() for norm in norms]
    joint = torch.stack(norms).norm(norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint.item()


@wrong(
    "clip_gradients",
    breaks=hidden_tests.gradients_that_are_missing,
    tells="You give parameters without a gradient one of zeros. The optimizer "
    "skips a `.grad` of None; zeros it steps on, and weight decay moves what was "
    "never used. Leave None as it is.",
)
@torch.no_grad()
def clip_fills_in_zeros(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    given = list(parameters)
    for p in given:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    grads = [p.grad for p in given]
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
    "clip_gradients",
    breaks=hidden_tests.gradients_that_are_missing,
    tells="Gradients of zeros have the norm 0, and 0 / 0 is NaN. Add 1e-6 to the "
    "norm before you divide by it, or divide only where the norm is too large.",
)
@torch.no_grad()
def clip_divides_by_zero(
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
        g.div_(joint).mul_(joint.clamp(max=max_norm))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.nothing_else_changes,
    tells="You skip parameters that do not require a gradient. One that was "
    "frozen after the backward pass still has its `.grad`, which counts: ask "
    "whether `.grad` is None.",
)
@torch.no_grad()
def clip_skips_frozen(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    given = [p for p in parameters if p.requires_grad]
    grads = [p.grad for p in given if p.grad is not None]
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
    "clip_gradients",
    breaks=hidden_tests.mixed_dtypes,
    tells="You take the norm in float32 whatever the gradients are. With a float64 "
    "gradient among them it should be float64.",
)
@torch.no_grad()
def clip_in_float32(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    norms = [g.float().norm(norm_type) for g in grads if g.numel()]
    if not norms:
        return torch.tensor(0.0)
    joint = torch.stack(norms).norm(norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@accepted("clip_gradients")
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


@wrong(
    "clip_gradients",
    breaks=hidden_tests.norm_before_clipping,
    tells="You return the square of the norm: the root of the sum of squares is "
    "missing.",
)
@torch.no_grad()
def clip_by_the_square(
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
    joint = torch.stack(norms).norm(norm_type).pow(2)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError
    for g in grads:
        g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.one_common_factor,
    tells="You divide every gradient by the norm, so that the norm becomes 1 "
    "whatever `max_norm` is. The factor is `max_norm / norm`, at most 1.",
)
@torch.no_grad()
def clip_to_one(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
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
        g.mul_((1 / (joint + 1e-6)).clamp(max=1.0))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.nonfinite_spreads,
    tells="You raise an error for a norm that is not finite without being asked. "
    "`error_if_nonfinite` is False unless the caller says otherwise.",
)
@torch.no_grad()
def clip_always_refuses(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=True
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
    "clip_gradients",
    breaks=hidden_tests.multiplied_in_place,
    tells="`reshape(-1)` of a gradient that is not contiguous is a copy. "
    "You multiply the copy, and the gradient stays as it is. "
    "Multiply `g` itself: it may have any shape.",
)
@torch.no_grad()
def clip_a_reshaped_copy(
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.reshape(-1).mul_(factor)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.multiplied_in_place,
    tells="`view(-1)` raises an error for a gradient that lies in memory "
    "in another order, a transposed one. Multiply `g` itself: it may "
    "have any shape.",
)
@torch.no_grad()
def clip_views_flat(
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.view(-1).mul_(factor)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.gradients_that_are_missing,
    tells="With `max_norm` 0 and gradients of zeros you divide 0 by 0: "
    "zeros become NaN. Multiply only where the norm is not small "
    "enough, or add a little to it before you divide.",
)
@torch.no_grad()
def clip_zero_over_zero(
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
    factor = (max_norm / joint).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.small_gradients_stay,
    tells="You multiply gradients whose norm is a little below `max_norm`. "
    "They are to stay as they are, bit for bit: the factor is at "
    "most 1.",
)
@torch.no_grad()
def clip_a_little_early(
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
    if joint < 0.999 * max_norm:
        return joint
    factor = max_norm / (joint + 1e-6)
    for g in grads:
        g.mul_(factor)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.mixed_dtypes,
    tells="You take the norm of float64 gradients in float32 and convert "
    "the result. Beyond 3e38 it overflows. Take the norm in float64 "
    "from the beginning.",
)
@torch.no_grad()
def clip_double_in_float32(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    double = any(g.dtype == torch.float64 for g in grads)
    dtype = torch.float64 if double else torch.float32
    norms = [
        torch.linalg.vector_norm(g.float(), norm_type).to(dtype)
        for g in grads
        if g.numel() > 0
    ]
    if not norms:
        return torch.zeros((), dtype=dtype)
    joint = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError("not finite")
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.gradients_that_are_missing,
    tells="The largest entry of a tensor without elements does not exist: "
    "with `norm_type=math.inf` PyTorch raises an error there. Leave "
    "such tensors out.",
)
@torch.no_grad()
def clip_with_empty_tensors(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False
):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    double = any(g.dtype == torch.float64 for g in grads)
    dtype = torch.float64 if double else torch.float32
    norms = [torch.linalg.vector_norm(g, norm_type, dtype=dtype) for g in grads]
    if not norms:
        return torch.zeros((), dtype=dtype)
    joint = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and not joint.isfinite():
        raise RuntimeError("not finite")
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.half_precision,
    tells="You round the factor to the gradient's dtype; so does `_foreach_mul_` with "
    "a Python number. In float16 a factor such as 1e-7 is wrong by a third, and below "
    "3e-8 it is 0. Multiply by the float32 tensor.",
)
@torch.no_grad()
def clip_by_a_half_factor(
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor.to(g.dtype))
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.half_precision,
    tells="You round the factor to the gradient's dtype; so does `_foreach_mul_` with "
    "a Python number. In float16 a factor such as 1e-7 is wrong by a third, and below "
    "3e-8 it is 0. Multiply by the float32 tensor.",
)
@torch.no_grad()
def clip_by_foreach_and_a_number(
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(grads, factor.item())
    return joint


@wrong(
    "clip_gradients",
    breaks=hidden_tests.nothing_else_changes,
    tells="A gradient may have a graph (`create_graph=True`), and then the "
    "norm that you return has one, too. Work under "
    "`torch.no_grad()`.",
)
def clip_with_a_graph(
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
    factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor)
    return joint


@accepted("clip_gradients")
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


# nonfinite_entries


@accepted("nonfinite_entries")
def entries_by_a_generator(data, name="batch"):
    def walk(node, path):
        if isinstance(node, dict):
            for key in node:
                yield from walk(node[key], path + "." + key)
        elif isinstance(node, (list, tuple)):
            for i, item in enumerate(node):
                yield from walk(item, path + f"[{i}]")
        elif torch.is_tensor(node):
            if (node.isnan() | node.isinf()).any():
                yield path
        elif isinstance(node, float) and (
            node != node or abs(node) == math.inf
        ):
            yield path

    return list(walk(data, name))


@accepted("nonfinite_entries")
def entries_by_a_stack(data, name="batch"):
    found, waiting = [], [(name, data)]
    while waiting:
        path, node = waiting.pop()
        inside = []
        if isinstance(node, dict):
            inside = [(f"{path}.{key}", one) for key, one in node.items()]
        elif isinstance(node, list | tuple):
            inside = [(f"{path}[{i}]", one) for i, one in enumerate(node)]
        elif isinstance(node, Tensor) and node.numel() > 0:
            if not node.detach().isfinite().min():
                found.append(path)
        elif isinstance(node, float) and not math.isfinite(node):
            found.append(path)
        waiting += inside[::-1]
    return found


@accepted("nonfinite_entries")
def entries_by_subtraction(data, name="batch"):
    # x - x is 0 for what is finite and NaN for all else
    if isinstance(data, torch.Tensor):
        if not (data.is_floating_point() or data.is_complex()):
            return []
        zero = (data - data).detach()
        return [] if (zero == 0).all() else [name]
    if isinstance(data, dict):
        parts = [
            entries_by_subtraction(v, f"{name}.{k}") for k, v in data.items()
        ]
        return sum(parts, [])
    if isinstance(data, (tuple, list)):
        parts = [
            entries_by_subtraction(v, f"{name}[{i}]")
            for i, v in enumerate(data)
        ]
        return sum(parts, [])
    if isinstance(data, float):
        return [] if data - data == 0 else [name]
    return []


@accepted("nonfinite_entries")
def entries_by_the_sum_of_zeros(data, name="batch"):
    # 0 * x is 0 for what is finite and NaN for all else; zeros do not overflow
    names = []

    def look(node, path):
        if isinstance(node, Tensor):
            if bool((node.detach() * 0).sum().isnan()):
                names.append(path)
        elif isinstance(node, dict):
            for key, one in node.items():
                look(one, f"{path}.{key}")
        elif isinstance(node, (list, tuple)):
            for i in range(len(node)):
                look(node[i], f"{path}[{i}]")
        elif isinstance(node, float):
            look(torch.tensor(node, dtype=torch.float64), path)

    look(data, name)
    return names


@accepted("nonfinite_entries")
def entries_by_python_numbers(data, name="batch"):
    if isinstance(data, Tensor):
        import cmath

        values = data.detach().flatten().tolist()
        return [] if all(map(cmath.isfinite, values)) else [name]
    names = []
    if isinstance(data, dict):
        for key, value in data.items():
            names.extend(entries_by_python_numbers(value, f"{name}.{key}"))
    if isinstance(data, list | tuple):
        for i, value in enumerate(data):
            names.extend(entries_by_python_numbers(value, f"{name}[{i}]"))
    if isinstance(data, float) and not math.isfinite(data):
        names.append(name)
    return names


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.nan_and_infinities,
    tells="You compare with NaN by `==`. NaN equals nothing, itself included, so "
    "nothing is ever found. Use `torch.isfinite`.",
)
def entries_equal_to_nan(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [name] if bool((data == math.nan).any()) else []
    else:
        return [name] if data == math.nan else []
    return [one for n, v in inside for one in entries_equal_to_nan(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.nan_and_infinities,
    tells="You look for NaN alone. An infinity is what most NaNs begin as, and "
    "`isnan(inf)` is False. Use `torch.isfinite` and `math.isfinite`.",
)
def entries_that_are_nan(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [name] if bool(data.isnan().any()) else []
    elif isinstance(data, float):
        return [name] if math.isnan(data) else []
    else:
        return []
    return [one for n, v in inside for one in entries_that_are_nan(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.nan_and_infinities,
    tells="You compare with `== math.inf`, which misses negative infinity. Use "
    "`torch.isfinite` and `math.isfinite`.",
)
def entries_without_negative_infinity(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        bad = data.isnan() | (data == math.inf)
        return [name] if bool(bad.any()) else []
    elif isinstance(data, float):
        return [name] if math.isnan(data) or data == math.inf else []
    else:
        return []
    return [
        one
        for n, v in inside
        for one in entries_without_negative_infinity(v, n)
    ]


@wrong(
    "nonfinite_entries",
    breaks=[hidden_tests.every_dtype, hidden_tests.every_kind_of_tensor],
    tells="You go through NumPy: it knows no bfloat16, and a tensor that requires "
    "a gradient refuses `.numpy()`. Stay with `torch.isfinite`, which also works "
    "where the tensor is.",
)
def entries_by_numpy(data, name="batch"):
    import numpy as np

    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if np.isfinite(data.cpu().numpy()).all() else [name]
    elif isinstance(data, float):
        return [] if np.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_by_numpy(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.large_numbers_are_finite,
    tells="You ask whether the sum is finite. A sum of large finite numbers "
    "overflows, and a good tensor is called bad. Ask every entry: "
    "`torch.isfinite(t).all()`.",
)
def entries_by_the_sum(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.sum().isfinite()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_by_the_sum(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You look at one level only. What stands in a dict within a dict, or in "
    "a list, is never looked at. Let the function call itself.",
)
def entries_of_one_level(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    else:
        inside = [(name, data)]
    found = []
    for path, value in inside:
        if isinstance(value, Tensor) and not value.isfinite().all():
            found.append(path)
        if isinstance(value, float) and not math.isfinite(value):
            found.append(path)
    return found


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You go into lists and dicts, and not into tuples. A batch is very often "
    "a tuple.",
)
def entries_without_tuples(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_without_tuples(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You name the key alone and not the way to it. In nested data `x` "
    "may stand in many places: put the name of what holds it before it.",
)
def entries_by_their_last_key(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    found = [one for n, v in inside for one in entries_by_their_last_key(v, n)]
    return [one.rpartition(".")[2] for one in found]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You name the containers too. Only tensors and numbers are named: who "
    "reads the list wants to know where the fault is, not what it stands in.",
)
def entries_and_their_containers(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    found = [
        one for n, v in inside for one in entries_and_their_containers(v, n)
    ]
    return [name, *found] if found else []


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You return the names sorted. They should come in the order in which "
    "the entries stand in the data.",
)
def entries_sorted(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    found = [one for n, v in inside for one in entries_sorted(v, n)]
    return sorted(found)


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You return the first name and stop. There may be more than one fault: "
    "return all names.",
)
def entries_the_first_alone(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    found = [one for n, v in inside for one in entries_the_first_alone(v, n)]
    return found[:1]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.python_numbers,
    tells="`math.isfinite` of an int that is too large for a float raises "
    "OverflowError. An int is always finite: ask floats only.",
)
def entries_with_huge_integers(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, int | float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_with_huge_integers(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.python_numbers,
    tells="You look at tensors only. A Python float, such as a loss that went "
    "through `.item()`, may be NaN as well: `math.isfinite`.",
)
def entries_of_tensors_alone(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_of_tensors_alone(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.texts_and_none,
    tells='You make a float of everything: `float("nan")` makes a NaN of the '
    "string, and None raises. Strings and None are nothing to name.",
)
def entries_of_texts(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, int) or data is None:
        return []
    else:
        try:
            return [] if math.isfinite(float(data)) else [name]
        except ValueError:
            return []
    return [one for n, v in inside for one in entries_of_texts(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.every_kind_of_tensor,
    tells="You ask the smallest and the largest entry. An empty tensor has "
    "neither, and raises. `torch.isfinite(t).all()` is True for it.",
)
def entries_by_the_extremes(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        sizes = data.abs() if data.dtype != torch.bool else data
        return [] if bool(sizes.max().isfinite()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_by_the_extremes(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.every_dtype,
    tells="You leave complex tensors out (`is_floating_point` is False for them). "
    "`torch.isfinite` takes every dtype, so there is no need to ask.",
)
def entries_without_complex(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        if not data.is_floating_point():
            return []
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_without_complex(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.data_left_alone,
    tells="You clean the data while you look: `nan_to_num_` writes into the "
    "caller's tensors. Name the fault and leave it where it is.",
)
def entries_repaired(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        if bool(data.isfinite().all()):
            return []
        data.detach().nan_to_num_()
        return [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_repaired(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.name_of_the_outermost,
    tells="You leave the name of the outermost out when you go inside. It is the "
    "beginning of every name.",
)
def entries_without_the_outermost(data, name="batch"):
    def walk(node, path):
        if isinstance(node, dict):
            inside = [
                (f"{path}.{key}" if path else key, value)
                for key, value in node.items()
            ]
        elif isinstance(node, list | tuple):
            inside = [(f"{path}[{i}]", one) for i, one in enumerate(node)]
        elif isinstance(node, Tensor):
            return [] if bool(node.isfinite().all()) else [path or name]
        elif isinstance(node, float):
            return [] if math.isfinite(node) else [path or name]
        else:
            return []
        return [one for p, value in inside for one in walk(value, p)]

    return walk(data, "")


@accepted("nonfinite_entries")
def entries_by_real_and_imaginary(data, name="batch"):
    def leaf(t):
        t = t.detach()
        parts = [t.real, t.imag] if t.is_complex() else [t]
        return any(
            bool(
                (p.float() if p.element_size() < 4 else p).isinf().any()
                | (p != p).any()
            )
            for p in parts
        )

    match data:
        case dict():
            pairs = [(f"{name}.{k}", v) for k, v in data.items()]
        case list() | tuple():
            pairs = [(f"{name}[{i}]", v) for i, v in enumerate(data)]
        case Tensor():
            return [name] * leaf(data)
        case float():
            return [name] * (not math.isfinite(data))
        case _:
            return []
    names = []
    for path, value in pairs:
        names += entries_by_real_and_imaginary(value, path)
    return names


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.every_dtype,
    tells="Of complex tensors you look at the real part alone. The NaN may stand "
    "in the imaginary part; `torch.isfinite` looks at both.",
)
def entries_of_real_parts(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.real.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_of_real_parts(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You name a tensor once, although it stands at several places. Each "
    "place is an entry with a name of its own.",
)
def entries_seen_once(data, name="batch"):
    seen = set()

    def walk(node, path):
        if isinstance(node, dict):
            inside = [(f"{path}.{key}", one) for key, one in node.items()]
        elif isinstance(node, list | tuple):
            inside = [(f"{path}[{i}]", one) for i, one in enumerate(node)]
        elif isinstance(node, Tensor):
            if id(node) in seen or bool(node.isfinite().all()):
                return []
            seen.add(id(node))
            return [path]
        elif isinstance(node, float):
            return [] if math.isfinite(node) else [path]
        else:
            return []
        return [one for p, value in inside for one in walk(value, p)]

    return walk(data, name)


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You join all names by a dot. Items of lists and tuples are named "
    "`name[2]`, keys of dicts `name.key`.",
)
def entries_joined_by_dots(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}.{i}", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_joined_by_dots(v, n)]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.relatives_of_the_types,
    tells="You ask for the exact type of a tensor. An `nn.Parameter` is a tensor as "
    "well: ask `isinstance(data, Tensor)`.",
)
def entries_of_plain_tensors(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif type(data) is Tensor:
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one for n, value in inside for one in entries_of_plain_tensors(value, n)
    ]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.relatives_of_the_types,
    tells="You ask for the exact type of a dict. A `state_dict` is an "
    "`OrderedDict`, which is a dict as well: ask `isinstance(data, "
    "dict)`.",
)
def entries_of_plain_dicts(data, name="batch"):
    if type(data) is dict:
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one for n, value in inside for one in entries_of_plain_dicts(value, n)
    ]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.relatives_of_the_types,
    tells="You ask for the exact type of lists and tuples. A named tuple "
    "is a tuple as well: ask `isinstance`.",
)
def entries_of_plain_lists(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif type(data) in (list, tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one for n, value in inside for one in entries_of_plain_lists(value, n)
    ]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.names_of_nested_entries,
    tells="You name what stands directly in a dict before you go into what is "
    "nested. The order asked for is that of the data: go into each value where it "
    "stands.",
)
def entries_nested_ones_last(data, name="batch"):
    if isinstance(data, dict):
        containers = dict, list, tuple
        pairs = sorted(
            data.items(), key=lambda pair: isinstance(pair[1], containers)
        )
        inside = [(f"{name}.{key}", value) for key, value in pairs]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one for n, value in inside for one in entries_nested_ones_last(value, n)
    ]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.relatives_of_the_types,
    tells="You drop a name that came before. Keys may contain dots, so two "
    "entries can have one name, and each is named.",
)
def entries_without_doubles(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    found = [
        one for n, value in inside for one in entries_without_doubles(value, n)
    ]
    return list(dict.fromkeys(found))


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.every_kind_of_tensor,
    tells="`view(-1)` raises an error for a tensor that is not contiguous. "
    "`torch.isfinite` takes any shape: do not flatten.",
)
def entries_by_a_flat_view(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.view(-1).isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one for n, value in inside for one in entries_by_a_flat_view(value, n)
    ]


@wrong(
    "nonfinite_entries",
    breaks=hidden_tests.large_numbers_are_finite,
    tells="The absolute value of a large complex number overflows although "
    "both of its parts are finite. `torch.isfinite` takes complex "
    "numbers as they are.",
)
def entries_by_absolute_values(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        sizes = data.abs() if data.is_complex() else data
        return [] if bool(sizes.isfinite().all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one
        for n, value in inside
        for one in entries_by_absolute_values(value, n)
    ]


@accepted("nonfinite_entries")
def entries_by_times_zero(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool((data.detach() * 0 == 0).all()) else [name]
    elif isinstance(data, float):
        return [] if math.isfinite(data) else [name]
    else:
        return []
    return [
        one for n, value in inside for one in entries_by_times_zero(value, n)
    ]


# guarded_epoch


@accepted("guarded_epoch")
def epoch_with_a_snapshot(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        model.zero_grad()
        before = {k: b.detach().clone() for k, b in model.named_buffers()}
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        inputs = torch.isfinite(x).all() and torch.isfinite(y).all()
        if inputs and loss.isfinite() and norm.isfinite():
            optimizer.step()
            norms.append(float(norm))
            losses.append(float(loss.detach()))
        else:
            skipped.append(i)
            for k, b in model.named_buffers():
                b.data.copy_(before[k])
    optimizer.zero_grad()
    model.zero_grad()
    return dict(norms=norms, losses=losses, skipped=skipped)


@accepted("guarded_epoch")
def epoch_with_copied_buffers(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"losses": [], "skipped": [], "norms": []}
    parameters = list(model.parameters())
    for p in parameters:
        p.grad = None
    position = -1
    for x, y in loader:
        position += 1
        if not math.isfinite(float((x * 0.0).sum() + (y * 0.0).sum())):
            report["skipped"].append(position)
            continue
        saved = copy.deepcopy(dict(model.named_buffers()))
        loss = loss_function(model(x), y)
        good = bool(torch.isfinite(loss))
        if good:
            loss.backward()
            grads = [p.grad for p in parameters if p.grad is not None]
            norm = nn.utils.get_total_norm(grads)
            good = bool(torch.isfinite(norm))
        if good:
            nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
            optimizer.step()
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            for name, value in saved.items():
                model.get_buffer(name).set_(value)
            report["skipped"].append(position)
        for p in parameters:
            p.grad = None
    return report


@accepted("guarded_epoch")
def epoch_by_autograd_grad(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    wanted = [p for p in model.parameters() if p.requires_grad]
    model.zero_grad()
    for i, (x, y) in enumerate(loader):
        finite = bool(x.isfinite().all()) and bool(y.isfinite().all())
        kept = [b.clone() for b in model.buffers()]
        norm = torch.tensor(math.nan)
        if finite:
            loss = loss_function(model(x), y)
            finite = math.isfinite(loss.item())
        if finite:
            grads = torch.autograd.grad(loss, wanted, allow_unused=True)
            for p, g in zip(wanted, grads):
                p.grad = g
            norm = torch.cat([g.flatten() for g in grads if g is not None])
            norm = torch.linalg.vector_norm(norm)
        if finite and math.isfinite(norm.item()):
            if norm > max_norm:
                for g in grads:
                    if g is not None:
                        g.mul_(max_norm / (norm + 1e-6))
            optimizer.step()
            norms.append(norm.item())
            losses.append(loss.item())
        else:
            skipped.append(i)
            with torch.no_grad():
                for b, old in zip(model.buffers(), kept):
                    b.copy_(old)
        for p in wanted:
            p.grad = None
    return {"norms": norms, "losses": losses, "skipped": skipped}


@accepted("guarded_epoch")
def epoch_with_errors(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def must_be_finite(tensor):
        if not torch.isfinite(tensor).all():
            raise ArithmeticError

    for i, (x, y) in enumerate(loader):
        model.zero_grad(set_to_none=True)
        kept = [buffer.clone() for buffer in model.buffers()]
        try:
            must_be_finite(x)
            must_be_finite(y)
            loss = loss_function(model(x), y)
            must_be_finite(loss)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(
                model.parameters(), max_norm, error_if_nonfinite=True
            )
        except (ArithmeticError, RuntimeError):
            for buffer, old in zip(model.buffers(), kept):
                buffer.copy_(old)
            report["skipped"] += [i]
        else:
            optimizer.step()
            report["norms"] += [norm.item()]
            report["losses"] += [loss.item()]
    model.zero_grad(set_to_none=True)
    return report


@accepted("guarded_epoch")
def epoch_filling_zeros(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for i, (x, y) in enumerate(loader):
        state = {k: v.clone() for k, v in model.named_buffers()}
        good = all(bool(t.isfinite().all()) for t in (x, y))
        if good:
            loss = loss_function(model(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            good = bool(loss.isfinite() & norm.isfinite())
        if good:
            optimizer.step()
            report["norms"].append(norm.detach().item())
            report["losses"].append(loss.detach().item())
        else:
            with torch.no_grad():
                for k, v in model.named_buffers():
                    v.copy_(state[k])
            report["skipped"].append(i)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=[hidden_tests.clipped_updates, hidden_tests.reported_norms],
    tells="You clip before the backward pass. At that moment there is no gradient "
    "of this batch: the step is made unclipped, and the norm is 0. The order is "
    "backward, clip, step.",
)
def epoch_clips_before_backward(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        clipped = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not nn.utils.get_total_norm(grads).isfinite():
            return False
        optimizer.step()
        report["norms"].append(clipped.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.clipped_updates,
    tells="You clip after the step, when the gradient has done its work. The "
    "norms look right and nothing is clipped. The order is backward, clip, step.",
)
def epoch_clips_after_the_step(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not nn.utils.get_total_norm(grads).isfinite():
            return False
        optimizer.step()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.clipped_updates,
    tells="You clip by value, entry by entry, and the direction of the step "
    "changes. Clip the total norm: `clip_grad_norm_`.",
)
def epoch_clips_by_value(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(grads)
        if not norm.isfinite():
            return False
        nn.utils.clip_grad_value_(model.parameters(), max_norm)
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.clipped_updates,
    tells="You clip each parameter by itself. The total norm is that of all "
    "gradients together: give `clip_grad_norm_` all parameters at once.",
)
def epoch_clips_each_parameter(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(grads)
        if not norm.isfinite():
            return False
        for p in model.parameters():
            nn.utils.clip_grad_norm_([p], max_norm)
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_gradients,
    tells="You test inputs and loss, and not the gradient. A finite loss can have "
    "a gradient of NaN (the root of 0), and one step with it spoils every weight. "
    "Test the norm that `clip_grad_norm_` returns.",
)
def epoch_without_a_look_at_gradients(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.overflowing_norms,
    tells="You test each gradient, and not their total norm. It can overflow "
    "although each entry is finite; the clipped gradient is then 0, and weight "
    "decay makes a step of its own. Test the norm.",
)
def epoch_testing_each_gradient(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not all(g.isfinite().all() for g in grads):
            return False
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.overflowing_norms,
    tells="You look for NaN alone, by `isnan`. An infinite loss or norm is as bad, "
    "and `isnan(inf)` is False. Use `isfinite`.",
)
def epoch_testing_isnan(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if x.isnan().any() or y.isnan().any():
            return False
        loss = loss_function(model(x), y)
        if loss.isnan():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isnan():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.buffers_as_before,
    tells="The step is skipped, but the forward pass of the bad batch has already "
    "written its statistics into batch norm. One NaN there stays for good, and "
    "the model fails in eval. Put the buffers back.",
)
def epoch_with_poisoned_buffers(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}
    for position, (x, y) in enumerate(loader):
        model.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        good = x.isfinite().all() and y.isfinite().all()
        if good and loss.isfinite() and norm.isfinite():
            optimizer.step()
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            report["skipped"].append(position)
    model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.buffers_as_before,
    tells="You keep bad inputs away from the model, which is right, but a batch "
    "whose loss or gradient is bad has gone through it, and batch norm has "
    "counted it. Put the buffers back in that case.",
)
def epoch_with_buffers_of_bad_losses(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        if not takes_step(x, y):
            report["skipped"].append(position)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.buffers_as_before,
    tells="You put back the running statistics and not the counter "
    "`num_batches_tracked`. With `momentum=None` batch norm divides by it. Put "
    "back all of `model.buffers()`.",
)
def epoch_with_the_counter_left(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        floats = [b for b in model.buffers() if b.is_floating_point()]
        kept = [buffer.clone() for buffer in floats]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(floats, kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.optimizer_as_before,
    tells="For a bad batch you clear the gradients to zeros and step all the same. "
    "Momentum and weight decay move the weights in that step, and Adam counts it. "
    "Do not call `step()`.",
)
def epoch_steps_with_zeros(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        good = x.isfinite().all() and y.isfinite().all()
        if good and loss.isfinite() and norm.isfinite():
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            report["skipped"].append(position)
            model.zero_grad(set_to_none=False)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        optimizer.step()
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_inputs,
    tells="You replace NaN and infinity by numbers (`nan_to_num`) and train on "
    "what nobody measured. The batch is bad: skip it.",
)
def epoch_with_nan_to_num(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        x, y = (t.nan_to_num(0.0, 0.0, 0.0) for t in (x, y))
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_gradients,
    tells="You set the NaN entries of the gradient to 0 and step with the rest. "
    "That rest comes from a fault, too: what the step does, nobody knows. Skip "
    "the batch.",
)
def epoch_with_repaired_gradients(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_inputs,
    tells="You end the epoch at the first bad batch. The batches after it are "
    "good: skip one and go on (`continue`, not `break`).",
)
def epoch_ends_at_the_first(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        good = takes_step(x, y)
        if not good:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
        if not good:
            break
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.gradients_are_cleared,
    tells="After a bad batch its gradient stays in `.grad`, and the next batch's "
    "is added to it: NaN from then on, or a wrong step. Clear the gradients when "
    "you skip, too.",
)
def epoch_keeps_bad_gradients(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        good = x.isfinite().all() and y.isfinite().all()
        if good:
            loss = loss_function(model(x), y)
            good = loss.isfinite()
        if good:
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            good = norm.isfinite()
        if not good:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
            continue
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.gradients_are_cleared,
    tells="You never clear the gradients: each step uses the sum of all batches so "
    "far. Clear them before each backward pass.",
)
def epoch_never_cleared(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.gradients_are_cleared,
    tells="You clear the gradients after each batch alone. What was in `.grad` "
    "before the epoch is then part of its first step. Clear before the first "
    "backward pass as well.",
)
def epoch_cleared_afterwards(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if takes_step(x, y):
            model.zero_grad()
        else:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
            model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.reported_norms,
    tells="You report the norm after clipping: `max_norm`, step after step. The "
    "norm before clipping is what tells of trouble, and `clip_grad_norm_` "
    "returns it.",
)
def epoch_reports_the_norm_after(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(min(norm.item(), max_norm))
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.reported_norms,
    tells="You collect tensors where floats are asked for. A list of losses as "
    "tensors holds the graph of every batch. Take `.item()`.",
)
def epoch_reports_tensors(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm)
        report["losses"].append(loss)
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_inputs,
    tells="You look at the input and not at the target. A NaN in `y` mostly shows in "
    "the loss, but a loss that clips its target hides an infinity. Test both.",
)
def epoch_without_a_look_at_targets(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not x.isfinite().all():
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.the_rest_is_left_alone,
    tells="You try the batch first, in a forward pass of its own, and train in a "
    "second one. Each batch may pass once: keep the buffers and put them back.",
)
def epoch_tries_first(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        trial = copy.deepcopy(model)
        if not loss_function(trial(x), y).isfinite():
            return False
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.the_rest_is_left_alone,
    tells="You call `model.train()`. A layer that somebody put in eval, such as a "
    "frozen batch norm, is in training from then on. The mode is the caller's.",
)
def epoch_in_training_mode(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.train()
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.other_loaders,
    tells="You ask for `len(loader)` or an item of it. A generator has neither: go "
    "through it once, with `enumerate`.",
)
def epoch_over_a_list(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position in range(len(loader)):
        x, y = loader[position]
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_losses,
    tells="You test inputs and gradients, and not the loss. It can be infinite "
    "where its gradient is finite.",
)
def epoch_without_a_look_at_the_loss(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@accepted("guarded_epoch")
def epoch_on_buffers_by_name(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    names = [name for name, _ in model.named_buffers()]
    number = 0
    model.zero_grad()
    for x, y in loader:
        everything = torch.stack([(t.double() * 0).sum() for t in (x, y)])
        fine = not everything.isnan().any()
        if fine:
            old = [model.get_buffer(name).clone() for name in names]
            loss = loss_function(model(x), y)
            loss.backward()
            total = nn.utils.clip_grad_norm_(
                model.parameters(), max_norm, foreach=False
            )
            fine = math.isfinite(loss.item()) and math.isfinite(total.item())
            if fine:
                optimizer.step()
                norms.append(total.item())
                losses.append(loss.item())
            else:
                for name, value in zip(names, old):
                    model.get_buffer(name).copy_(value)
            model.zero_grad()
        if not fine:
            skipped.append(number)
        number += 1
    return {"skipped": skipped, "losses": losses, "norms": norms}


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.buffers_as_before,
    tells="You put the buffers back to what they were at the beginning of the "
    "epoch. What the good batches before had added is lost. Keep a copy before "
    "each batch.",
)
def epoch_restores_the_start(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    kept = [buffer.clone() for buffer in model.buffers()]
    for position, (x, y) in enumerate(loader):
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.reported_norms,
    tells="You report the losses of the bad batches with the others, NaN among "
    "them. The lists are of good batches: add to them after the step.",
)
def epoch_reports_all_losses(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        loss = loss_function(model(x), y)
        report["losses"].append(loss.item())
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.bad_inputs,
    tells="You count the bad batches. `skipped` is the list of their positions, 0 "
    "for the first: with a number nobody finds the batch.",
)
def epoch_counts_the_skipped(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": 0}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"] += 1
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.clipped_updates,
    tells="You call a batch bad because its loss or its norm is large. Large is "
    "what clipping is for; bad is NaN or infinity.",
)
def epoch_skips_what_is_large(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss < 1e6:
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.optimizer_of_a_part,
    tells="`optimizer.zero_grad()` clears the parameters that the "
    "optimizer holds. The gradients of the others pile up from batch "
    "to batch, and they count in the norm. Use `model.zero_grad()`.",
)
def epoch_clears_by_the_optimizer(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    optimizer.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        optimizer.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.optimizer_of_a_part,
    tells="You clip the parameters that the optimizer holds. The total "
    "norm is that of all parameters of the model.",
)
def epoch_clips_what_is_optimized(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(
            [p for g in optimizer.param_groups for p in g["params"]], max_norm
        )
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put back the buffers of batch norm, or what stands in a `state_dict`, "
    "which leaves out those registered with `persistent=False`. Put back all of "
    "`model.buffers()`.",
)
def epoch_restores_the_state_dict(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = copy.deepcopy(model.state_dict())
        if not takes_step(x, y):
            report["skipped"].append(position)
            model.load_state_dict(kept)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put back the buffers of batch norm, or what stands in a `state_dict`, "
    "which leaves out those registered with `persistent=False`. Put back all of "
    "`model.buffers()`.",
)
def epoch_restores_batch_norms(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        norms = [m for m in model.modules() if hasattr(m, "running_mean")]
        touched = [buffer for m in norms for buffer in m.buffers()]
        kept = [buffer.clone() for buffer in touched]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(touched, kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.inputs_that_do_not_show,
    tells="You do not look at `x`. Mostly a NaN there shows in the loss, "
    "but a model need not look at every entry. The text calls the "
    "batch bad all the same: test `x`.",
)
def epoch_without_a_look_at_inputs(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not y.isfinite().all():
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.inputs_that_do_not_show,
    tells="You ask whether the sum of a batch is finite. A sum of large "
    "finite numbers overflows, and a good batch is skipped. Ask "
    "every entry: `isfinite(x).all()`.",
)
def epoch_testing_sums(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.sum().isfinite() and y.sum().isfinite()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.stale_gradients,
    tells="You set old gradients to zero. For the optimizer a zero is a "
    "gradient, and weight decay moves frozen and unused parameters. "
    "Set them to None, as `model.zero_grad()` does.",
)
def epoch_with_zeros_for_none(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad(set_to_none=False)
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad(set_to_none=False)
    return report


@wrong(
    "guarded_epoch",
    breaks=hidden_tests.stale_gradients,
    tells="You clear the gradients of parameters that require one. A "
    "frozen parameter may have an old gradient, and the optimizer "
    "then moves it. Clear all.",
)
def epoch_clears_what_is_trained(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.grad = None
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        for p in trained:
            p.grad = None
    return report


# safe_gradients


@accepted("safe_gradients", body=True)
def safe_by_masked_indexing():
    def root(x):
        out = x * 0
        positive = x > 0
        out[positive] = x[positive].sqrt()
        return out

    def lengths(X):
        squares = X.pow(2).sum(-1)
        safe = squares.masked_fill(squares == 0, 1.0).sqrt()
        return safe * (squares != 0)

    def entropy(logits):
        p = logits.softmax(-1)
        log_p = logits.log_softmax(-1)
        return -torch.where(p > 0, p * log_p.clamp(min=-1e30), 0.0).sum(-1)

    def known_mse(prediction, target):
        known = ~torch.isnan(target)
        difference = prediction[known] - target[known]
        if difference.numel() == 0:
            return difference.sum()
        return difference.pow(2).mean()


@accepted("safe_gradients", body=True)
def safe_by_pytorch():
    def root(x):
        return F.relu(x).sqrt()

    def lengths(X):
        return X.norm(dim=-1)

    def entropy(logits):
        return torch.distributions.Categorical(
            logits=logits, validate_args=False
        ).entropy()

    def known_mse(prediction, target):
        guess = torch.where(
            target.isnan(), torch.zeros_like(target), prediction
        )
        total = F.mse_loss(
            guess, target.nan_to_num(0.0, math.inf, -math.inf), reduction="sum"
        )
        return total / max(1, int((target == target).sum()))


@accepted("safe_gradients", body=True)
def safe_by_autograd_functions():
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = torch.where(x > 0, x, torch.zeros_like(x)).sqrt()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, grad):
            (out,) = ctx.saved_tensors
            slope = 0.5 / torch.where(out > 0, out, torch.ones_like(out))
            return grad * slope * (out > 0)

    def root(x):
        return Root.apply(x)

    def lengths(X):
        largest = X.detach().abs().amax(-1, keepdim=True)
        scale = torch.where(largest > 0, largest, torch.ones_like(largest))
        squares = (X / scale).square().sum(-1)
        return Root.apply(squares) * scale.squeeze(-1)

    def entropy(logits):
        kept = logits != -torch.inf
        safe = torch.where(kept, logits, torch.zeros_like(logits))
        safe = safe.masked_fill(~kept, torch.finfo(logits.dtype).min / 4)
        log_p = F.log_softmax(safe, -1)
        return -(log_p.exp() * log_p).sum(-1)

    def known_mse(prediction, target):
        known = target.isnan().logical_not()
        error = (prediction - target).masked_fill(~known, 0.0)
        return (error * error).sum() / known.sum().clamp(1)


@accepted("safe_gradients", body=True)
def safe_by_entr():
    def root(x):
        ok = x.gt(0)
        return x.where(ok, x.new_ones(())).pow(0.5).where(ok, x.new_zeros(()))

    def lengths(X):
        return torch.linalg.norm(X, dim=-1)

    def entropy(logits):
        p = torch.softmax(logits, dim=-1)
        some = p > 0
        return torch.special.entr(torch.where(some, p, 1.0)).sum(-1)

    def known_mse(prediction, target):
        known = target == target
        pairs = prediction.masked_select(known), target.masked_select(known)
        if not known.any():
            return pairs[0].sum()
        return F.mse_loss(*pairs)


@accepted("safe_gradients", body=True)
def safe_by_clamp_before():
    def root(x):
        positive = x > 0
        tiny = torch.finfo(x.dtype).tiny
        return x.clamp(min=tiny).sqrt() * positive

    def lengths(X):
        zero = (X == 0).all(-1, keepdim=True)
        safe = torch.where(zero, torch.ones_like(X), X)
        return safe.pow(2).sum(-1).sqrt() * ~zero.squeeze(-1)

    def entropy(logits):
        p = F.softmax(logits, dim=-1)
        return -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(-1)

    def known_mse(prediction, target):
        unknown = target.isnan()
        guess = prediction.masked_fill(unknown, 0)
        squares = (guess - target.masked_fill(unknown, 0)) ** 2
        return squares.sum() / (~unknown).sum().clamp(min=1)


@accepted("safe_gradients", body=True)
def safe_by_nonzero_rows():
    def root(x):
        positive = (x > 0).detach()
        flat = x.reshape(-1)
        where = positive.reshape(-1).nonzero().squeeze(-1)
        zeros = torch.zeros_like(flat)
        out = zeros.index_put((where,), flat[where].sqrt()) + 0 * flat
        return out.reshape(x.shape)

    def lengths(X):
        largest = X.abs().amax(-1, keepdim=True).detach()
        largest = largest.masked_fill(largest == 0, 1.0)
        scaled = X / largest
        squares = (scaled * scaled).sum(-1)
        return root(squares) * largest.squeeze(-1)

    def entropy(logits):
        shifted = logits - logits.amax(-1, keepdim=True).detach()
        dead = shifted == -math.inf
        shifted = torch.where(dead, torch.zeros_like(shifted), shifted)
        weights = torch.where(dead, torch.zeros_like(shifted), shifted.exp())
        total = weights.sum(-1, keepdim=True)
        p = weights / total
        return total.squeeze(-1).log() - (p * shifted).sum(-1)

    def known_mse(prediction, target):
        seen = target.isnan().logical_not()
        squares = torch.zeros_like(prediction)
        squares[seen] = (prediction[seen] - target[seen]) ** 2
        return squares.sum() / max(float(seen.sum()), 1.0)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` chooses after the fact: `torch.where(x > 0, x.sqrt(), 0)` still "
    "takes the root everywhere, and in the backward pass 0 times its "
    "infinite slope is NaN. Make the input safe before the root, then "
    "choose.",
    body=True,
)
def root_by_one_where():
    def root(x):
        return torch.where(x > 0, x.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=[hidden_tests.root_and_its_slope, hidden_tests.root_of_extremes],
    tells="An epsilon inside the root of `root` makes the gradient finite and the "
    "values wrong: sqrt(1e-12) is 1e-6, not 0, and small numbers are "
    "changed a lot. Choose by `torch.where`, before and after the root.",
    body=True,
)
def root_with_epsilon_inside():
    def root(x):
        return (x.clamp(min=0) + 1e-12).sqrt()

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_and_its_slope,
    tells="You add an epsilon after the root of `root`. The slope of the root at "
    "0 is as infinite as before. What must be safe is the input of the "
    "root.",
    body=True,
)
def root_with_epsilon_after():
    def root(x):
        return torch.maximum(x, torch.zeros_like(x)).sqrt() + 1e-12

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` takes the maximum with 0 and the root of that: the value is "
    "right, the slope at 0 is infinite. At a tie `maximum` lets half of the "
    "gradient through. Put another number than 0 in its place.",
    body=True,
)
def root_of_the_maximum():
    def root(x):
        return torch.maximum(x, torch.zeros_like(x)).sqrt()

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=[hidden_tests.root_and_its_slope, hidden_tests.root_of_extremes],
    tells="You clamp at a small number and take the root of that, so `root` of 0 "
    "is not 0, and numbers below it have no gradient. Clamp low enough and "
    "set the rest to 0, or choose by `torch.where`.",
    body=True,
)
def root_clamped_at_a_small_number():
    def root(x):
        return x.clamp(min=1e-8).sqrt()

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_and_its_slope,
    tells="Below 0, `root` should be 0. You take the root of |x|.",
    body=True,
)
def root_of_sizes():
    def root(x):
        size = torch.where(x == 0, torch.ones_like(x), x.abs())
        return torch.where(x == 0, torch.zeros_like(x), size.sqrt())

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` repairs the result by `nan_to_num`, which changes the value and "
    "not the gradient: the slope at 0 is infinite or NaN as before.",
    body=True,
)
def root_without_graph():
    def root(x):
        return torch.nan_to_num(x.sqrt())

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.lengths_and_gradients,
    tells="The value of `lengths` is right, its gradient at a row of zeros is "
    "NaN: the root of the sum of squares has an infinite slope there, also "
    "where `torch.where` chooses something else afterwards. Make the sum "
    "safe before the root, or use `torch.linalg.vector_norm`, which knows "
    "the gradient.",
    body=True,
)
def lengths_by_hand():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return X.pow(2).sum(-1).sqrt()

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.lengths_and_gradients,
    tells="The value of `lengths` is right, its gradient at a row of zeros is "
    "NaN: the root of the sum of squares has an infinite slope there, also "
    "where `torch.where` chooses something else afterwards. Make the sum "
    "safe before the root, or use `torch.linalg.vector_norm`, which knows "
    "the gradient.",
    body=True,
)
def lengths_by_one_where():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        squares = X.pow(2).sum(-1)
        return torch.where(
            squares > 0, squares.sqrt(), torch.zeros_like(squares)
        )

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=[
        hidden_tests.lengths_and_gradients,
        hidden_tests.lengths_of_extremes,
    ],
    tells="An epsilon inside the root of `lengths` changes the values: a row of "
    "zeros gets a length, and short rows get a wrong one.",
    body=True,
)
def lengths_with_epsilon():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return (X.pow(2).sum(-1) + 1e-12).sqrt()

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.lengths_and_gradients,
    tells="The value of `lengths` is right, its gradient at a row of zeros is "
    "NaN: the root of the sum of squares has an infinite slope there, also "
    "where `torch.where` chooses something else afterwards. Make the sum "
    "safe before the root, or use `torch.linalg.vector_norm`, which knows "
    "the gradient.",
    body=True,
)
def lengths_by_hypot():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        total = torch.zeros_like(X[..., 0])
        for column in X.unbind(-1):
            total = torch.hypot(total, column)
        return total

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.lengths_and_gradients,
    tells="`lengths` keeps the last dimension, with one entry. It should go away.",
    body=True,
)
def lengths_keep_the_dimension():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return X.norm(dim=-1, keepdim=True)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_and_gradients,
    tells="`entropy` takes exp of the logits as they are: exp(10000) is infinite, "
    "and inf / inf is NaN. `F.log_softmax` subtracts the largest first.",
    body=True,
)
def entropy_by_exp_and_sum():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        p = logits.exp() / logits.exp().sum(-1, keepdim=True)
        return -torch.where(p > 0, p * p.clamp(min=1e-300).log(), 0.0).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=[
        hidden_tests.entropy_and_gradients,
        hidden_tests.entropy_with_ruled_out_classes,
    ],
    tells="`entropy` takes the log of the softmax. Where a probability is 0 that "
    "is 0 times minus infinity: NaN. Make such entries safe before you take "
    "the log or multiply.",
    body=True,
)
def entropy_by_log_of_softmax():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        p = logits.softmax(-1)
        return -(p * p.log()).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="`F.log_softmax` in `entropy` is right for large logits. For a class "
    "that is ruled out it is -inf, and times its probability 0 that is NaN. "
    "Put 0 there before you multiply.",
    body=True,
)
def entropy_by_log_softmax_alone():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        return -(log_p.exp() * log_p).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="`entropy` chooses the 0 after multiplying: the value is right, and the "
    "gradient of the product that is not chosen is NaN. Make log p safe "
    "before it is multiplied.",
    body=True,
)
def entropy_by_one_where():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        p = log_p.exp()
        return -torch.where(p > 0, p * log_p, torch.zeros_like(p)).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=[
        hidden_tests.entropy_and_gradients,
        hidden_tests.entropy_with_ruled_out_classes,
    ],
    tells="The value of `entropy` is right where p = 0, its gradient is NaN: the "
    "log has an infinite slope there, whether it stands inside of `entr` "
    "and `xlogy` or before a clamp. Make p, or log p, safe before it is "
    "used.",
    body=True,
)
def entropy_by_xlogy():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        return torch.special.entr(logits.softmax(-1)).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_of_sure_classes,
    tells="An epsilon inside the log of `entropy` makes small probabilities "
    "larger than they are: the entropy of a sure prediction comes out "
    "wrong.",
    body=True,
)
def entropy_with_epsilon():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        p = logits.softmax(-1)
        return -(p * (p + 1e-9).log()).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="The value of `entropy` is right where p = 0, its gradient is NaN: the "
    "log has an infinite slope there, whether it stands inside of `entr` "
    "and `xlogy` or before a clamp. Make p, or log p, safe before it is "
    "used.",
    body=True,
)
def entropy_by_clamp_after_log():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        p = logits.softmax(-1)
        return -(p * p.log().clamp(min=-1e4)).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_and_gradients,
    tells="`entropy` is asked for with the natural logarithm (nats); you take the "
    "one to base 2.",
    body=True,
)
def entropy_in_bits():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1) / math.log(2)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_of_known_targets,
    tells="The value of `known_mse` is right, the gradient of an unknown entry is "
    "NaN: the squares are computed with the NaN in them, and choosing 0 "
    "afterwards (`torch.where`, `nansum`) multiplies it by 0. Put a number "
    "in the place of an unknown target before you subtract.",
    body=True,
)
def mse_by_one_where():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        squares = (prediction - target).pow(2)
        squares = torch.where(known, squares, torch.zeros_like(squares))
        return squares.sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_of_known_targets,
    tells="The value of `known_mse` is right, the gradient of an unknown entry is "
    "NaN: the squares are computed with the NaN in them, and choosing 0 "
    "afterwards (`torch.where`, `nansum`) multiplies it by 0. Put a number "
    "in the place of an unknown target before you subtract.",
    body=True,
)
def mse_by_nansum():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        squares = (prediction - target).pow(2)
        return squares.nansum() / (~target.isnan()).sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_of_known_targets,
    tells="`known_mse` divides by the number of all entries. The mean is over "
    "those whose target is known.",
    body=True,
)
def mse_over_all():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        filled = torch.where(known, target, prediction.detach())
        return (prediction - filled).pow(2).sum() / max(1, known.numel())


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_of_known_targets,
    tells="`known_mse` takes an unknown target for 0, and pulls the prediction "
    "there. An unknown entry must not count, in value and gradient.",
    body=True,
)
def mse_towards_zero():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = prediction - torch.nan_to_num(target)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_without_targets,
    tells="Without a known target `known_mse` divides 0 by 0. The sum divided by "
    "the number of known ones, but at least by 1, is 0.",
    body=True,
)
def mse_of_nothing():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        return (prediction[known] - target[known]).pow(2).mean()


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_without_targets,
    tells="Without a known target `known_mse` returns a new 0, which has no "
    "graph: `backward()` raises. Return a 0 that comes from the prediction.",
    body=True,
)
def mse_of_nothing_without_graph():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        if not known.any():
            return torch.zeros((), dtype=prediction.dtype)
        return (prediction[known] - target[known]).pow(2).mean()


@wrong(
    "safe_gradients",
    breaks=hidden_tests.target_left_alone,
    tells="`known_mse` writes into the target. The caller's NaNs, which say what "
    "is unknown, are gone after the first call.",
    body=True,
)
def mse_writes_into_the_target():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        target[~known] = 0.0
        error = (prediction - target) * known
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=[
        hidden_tests.forms_of_root,
        hidden_tests.forms_of_lengths,
        hidden_tests.forms_of_entropy,
        hidden_tests.forms_of_known_mse,
    ],
    tells="You compute in float64 and return that. The results should have the "
    "dtype of the input.",
    body=True,
)
def all_in_float64():
    def root(x):
        x = x.double()
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X.double(), dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits.double(), dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        prediction, target = prediction.double(), target.double()
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.inputs_left_alone,
    tells="You leave anomaly detection on. It is a switch for all of PyTorch, "
    "finds faults and prevents none, and makes every backward pass after "
    "yours slower.",
    body=True,
)
def root_leaves_anomaly_mode_on():
    def root(x):
        torch.autograd.set_detect_anomaly(True)
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` guards 0 alone: below 0 the root is NaN, and 0 is asked for.",
    body=True,
)
def root_guarded_at_zero_alone():
    def root(x):
        zero = x == 0
        safe = torch.where(zero, torch.ones_like(x), x)
        return torch.where(zero, torch.zeros_like(x), safe.sqrt())

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.entropy_and_gradients,
    tells="`entropy` gives one number for all rows. Sum over the last dimension "
    "alone.",
    body=True,
)
def entropy_of_all_rows():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum()

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.error_of_known_targets,
    tells="`known_mse` returns the sum of the squares. The mean is asked for: "
    "divide by the number of known targets.",
    body=True,
)
def mse_as_a_sum():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        return torch.where(known, prediction - target, 0.0).pow(2).sum()


@wrong(
    "safe_gradients",
    breaks=hidden_tests.root_of_extremes,
    tells="You take the root in float32 and convert it back. A float64 "
    "loses half of its digits by that, and 1e-60 becomes 0. Stay in "
    "the dtype of the input.",
    body=True,
)
def root_in_float32():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x)).float()
        return torch.where(positive, safe.sqrt().to(x.dtype), 0.0)

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.no_hook_is_left,
    tells="You repair the gradient by a hook on the input. The hook stays "
    "there and hides NaN and infinity of every other formula that "
    "uses this tensor. Make the formula itself safe.",
    body=True,
)
def root_with_a_hook():
    def root(x):
        if x.requires_grad:
            x.register_hook(lambda grad: grad.nan_to_num(0.0, 0.0, 0.0))
        return x.clamp(min=0).sqrt()

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="You leave out every entry whose difference is NaN. A prediction "
    "that is NaN where the target is known is a fault of the model, "
    "and this hides it. Ask the target alone.",
    body=True,
)
def mse_hides_bad_predictions():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        error = prediction - target
        known = ~error.isnan()
        error = torch.where(known, error, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="`nan_to_num` on the difference hides a prediction that is NaN "
    "or infinite, and an infinite target. Ask for the unknown "
    "targets, `target.isnan()`, and leave the rest as it is.",
    body=True,
)
def mse_repairs_differences():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = (prediction - target).nan_to_num(0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="You multiply by a mask. An infinite prediction times 0 is NaN, "
    "although its target is unknown. Choose by `torch.where` or by "
    "indexing.",
    body=True,
)
def mse_times_a_mask():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = (prediction - target.nan_to_num()) * known
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="Without a known target you return 0 times the prediction. That "
    "is NaN if the prediction is infinite. An empty sum, "
    "`prediction[known].sum()`, is 0 and has a graph.",
    body=True,
)
def mse_times_zero_if_unknown():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        if not known.any():
            return (prediction * 0).sum()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@wrong(
    "safe_gradients",
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="You take an infinite target for an unknown one. Unknown is NaN "
    "alone; an infinite target is a fault of the data, and the value "
    "has to show it.",
    body=True,
)
def mse_of_finite_targets():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = target.isfinite()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@accepted("safe_gradients", body=True)
def root_behind_a_relu():
    def root(x):
        return x.relu().sqrt()  # the ReLU's backward pass masks the infinity

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)

    def known_mse(prediction, target):
        known = ~target.isnan()
        error = torch.where(known, prediction - target, 0.0)
        return error.pow(2).sum() / known.sum().clamp(min=1)


@accepted("safe_gradients", body=True)
def entropy_by_logsumexp():
    def root(x):
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))

    def lengths(X):
        return torch.linalg.vector_norm(X, dim=-1)

    def entropy(logits):
        top = logits.detach().amax(-1, keepdim=True)
        shifted = logits - top
        finite = torch.where(shifted > -math.inf, shifted, 0.0)
        mean = (shifted.softmax(-1) * finite).sum(-1)
        return shifted.logsumexp(-1) - mean

    def known_mse(prediction, target):
        known = ~target.isnan()
        found, wanted = prediction[known], target[known]
        return F.mse_loss(found, wanted) if known.any() else found.sum()


# diagnose


@accepted("diagnose")
def diagnose_with_an_optimizer(model, loss_function, batches, lr):
    def good(t):
        return torch.isfinite(t).all().item()

    def follow(rate, last):
        copied = copy.deepcopy(model)
        sgd = torch.optim.SGD(copied.parameters(), lr=rate)
        first = []
        handles = [
            m.register_forward_hook(
                lambda m, i, o, n=n: (
                    first.append(n) if good(i[0]) and not good(o) else None
                )
            )
            for n, m in copied.named_modules()
        ]
        for i, (x, y) in enumerate(batches):
            if i > last:
                break
            for what, t in zip("xy", (x, y)):
                if not good(t):
                    return ("data", i, what)
            first.clear()
            out = copied(x)
            if not good(out):
                return ("layer", i, first[0])
            loss = loss_function(out, y)
            if not good(loss):
                return ("loss", i, "")
            sgd.zero_grad()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss.backward(retain_graph=True)
                grads = [p.grad for p in copied.parameters()]
                if not all(g is None or good(g) for g in grads):
                    name = ""
                    try:
                        with torch.autograd.detect_anomaly():
                            loss.backward()
                    except RuntimeError as error:
                        name = str(error).split("'")[1]
                    return ("gradient", i, name)
            sgd.step()
        for handle in handles:
            handle.remove()
        return None

    for name, value in model.state_dict().items():
        if not good(value):
            return ("state", 0, name)
    result = follow(lr, len(batches))
    if result is not None and result[0] in ("layer", "loss", "gradient"):
        if follow(lr / 100, result[1]) is None:
            return ("learning rate", result[1], "")
    return result


@accepted("diagnose")
def diagnose_by_autograd_grad(model, loss_function, batches, lr):
    def bad(t):
        return not torch.isfinite(t).all()

    def run_it(pairs, rate):
        m = copy.deepcopy(model)
        names = {module: name for name, module in m.named_modules()}
        seen = []

        def hook(module, inputs, output):
            if bad(output) and not any(bad(i) for i in inputs):
                seen.append(names[module])

        for module in names:
            module.register_forward_hook(hook)
        wanted = [p for p in m.parameters() if p.requires_grad]
        for i, (x, y) in enumerate(pairs):
            if bad(x):
                return "data", i, "x"
            if bad(y):
                return "data", i, "y"
            del seen[:]
            output = m(x)
            if bad(output):
                return "layer", i, seen[0]
            loss = loss_function(output, y)
            if bad(loss):
                return "loss", i, ""
            grads = torch.autograd.grad(
                loss, wanted, retain_graph=True, allow_unused=True
            )
            if any(g is not None and bad(g) for g in grads):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    text = str(error)
                    start = text.index("'") + 1
                    return "gradient", i, text[start : text.index("'", start)]
                return "gradient", i, ""
            with torch.no_grad():
                for p, g in zip(wanted, grads):
                    if g is not None:
                        p.sub_(g, alpha=rate)

    entries = model.state_dict()
    for name in entries:
        if bad(entries[name]):
            return "state", 0, name
    found = run_it(batches, lr)
    if found and found[0] != "data":
        if not run_it(batches[: found[1] + 1], lr / 100):
            found = "learning rate", found[1], ""
    return found


@accepted("diagnose")
def diagnose_and_restore(model, loss_function, batches, lr):
    def ok(*tensors):
        return all(bool(t.isfinite().all()) for t in tensors)

    state = copy.deepcopy(model.state_dict())
    old = [p.grad for p in model.parameters()]

    def attempt(count, rate):
        model.load_state_dict(state)
        for step in range(count):
            x, y = batches[step]
            if not ok(x):
                return "data", step, "x"
            if not ok(y):
                return "data", step, "y"
            broken.clear()
            output = model(x)
            if not ok(output):
                return "layer", step, broken[0]
            loss = loss_function(output, y)
            if not ok(loss):
                return "loss", step, ""
            model.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in model.parameters() if p.grad is not None]
            if not ok(*(p.grad for p in moved)):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    words = re.match(r"Function '([^']*)'", str(error))
                    return "gradient", step, words[1]
                return "gradient", step, ""
            for p in moved:
                p.data = p.data - rate * p.grad
        return None

    for name, value in state.items():
        if not ok(value):
            return "state", 0, name
    broken, hooks = [], []
    for name, module in model.named_modules():

        def hook(module, inputs, output, name=name):
            if ok(*inputs) and not ok(output):
                broken.append(name)

        hooks.append(module.register_forward_hook(hook))
    try:
        fault = attempt(len(batches), lr)
        if fault is not None and fault[0] != "data":
            if attempt(fault[1] + 1, lr / 100) is None:
                fault = "learning rate", fault[1], ""
        return fault
    finally:
        for one in hooks:
            one.remove()
        model.load_state_dict(state)
        for p, g in zip(model.parameters(), old):
            p.grad = g


@accepted("diagnose")
def diagnose_with_two_passes(model, loss_function, batches, lr):
    """Hooks only once a forward pass has gone wrong."""

    def broken(t):
        return bool((t - t != 0).any())

    def blamed(m, x):
        found = []
        for name, module in m.named_modules():
            module.register_forward_hook(
                lambda _, i, o, name=name: found.append((name, i[0], o))
            )
        m(x)
        for name, given, made in found:
            if broken(made) and not broken(given):
                return name

    def simulate(rate, stop):
        m = copy.deepcopy(model)
        for step, (x, y) in enumerate(batches[:stop]):
            if broken(x) or broken(y):
                return ("data", step, "x" if broken(x) else "y")
            before = copy.deepcopy(m)
            out = m(x)
            if broken(out):
                return ("layer", step, blamed(before, x))
            loss = loss_function(out, y)
            if broken(loss):
                return ("loss", step, "")
            m.zero_grad()
            loss.backward()
            grads = [p.grad for p in m.parameters() if p.grad is not None]
            if any(broken(g) for g in grads):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss_function(before(x), y).backward()
                except RuntimeError as error:
                    return ("gradient", step, str(error).split("'")[1])
                return ("gradient", step, "")
            with torch.no_grad():
                for p in m.parameters():
                    if p.grad is not None:
                        p.add_(p.grad, alpha=-rate)

    for name, entry in model.state_dict().items():
        if broken(entry):
            return ("state", 0, name)
    fault = simulate(lr, None)
    causes = "layer", "loss", "gradient"
    if fault and fault[0] in causes and not simulate(lr / 100, fault[1] + 1):
        return ("learning rate", fault[1], "")
    return fault


@accepted("diagnose")
def diagnose_with_pre_hooks(model, loss_function, batches, lr):
    def all_finite(t):
        return math.isfinite(float((t.detach().double() * 0).sum()))

    def one_run(rate, num_steps):
        m, clean, guilty = copy.deepcopy(model), {}, []

        def before(name):
            def hook(module, args):
                clean[name] = all_finite(args[0])

            return hook

        def after(name):
            def hook(module, args, out):
                if clean[name] and not all_finite(out):
                    guilty.append(name)

            return hook

        for name, module in m.named_modules():
            module.register_forward_pre_hook(before(name))
            module.register_forward_hook(after(name))
        for step in range(num_steps):
            x, y = batches[step]
            which = [n for n, t in (("x", x), ("y", y)) if not all_finite(t)]
            if which:
                return "data", step, which[0]
            guilty.clear()
            out = m(x)
            if not all_finite(out):
                return "layer", step, guilty[0]
            loss = loss_function(out, y)
            if not all_finite(loss):
                return "loss", step, ""
            for p in m.parameters():
                p.grad = None
            loss.backward(retain_graph=True)
            where = ""
            for p in m.parameters():
                if p.grad is not None and not all_finite(p.grad):
                    try:
                        with torch.autograd.set_detect_anomaly(True):
                            loss.backward()
                    except RuntimeError as error:
                        where = re.findall(r"'(.*?)'", str(error))[0]
                    return "gradient", step, where
            for p in m.parameters():
                if p.grad is not None:
                    p.data.sub_(rate * p.grad)

    bad = [k for k, v in model.state_dict().items() if not all_finite(v)]
    if bad:
        return "state", 0, bad[0]
    fault = one_run(lr, len(batches))
    if fault is None or fault[0] == "data":
        return fault
    if one_run(lr / 100, fault[1] + 1) is None:
        return "learning rate", fault[1], ""
    return fault


@accepted("diagnose")
def diagnose_with_global_hooks(model, loss_function, batches, lr):
    def fine(t):
        return bool(torch.isfinite(t).all())

    def run(rate, count):
        m = copy.deepcopy(model)
        names = {id(module): name for name, module in m.named_modules()}
        found = []

        def look(module, args, out):
            if id(module) in names and fine(args[0]) and not fine(out):
                found.append(names[id(module)])

        hook = nn.modules.module.register_module_forward_hook(look)
        try:
            for step in range(count):
                x, y = batches[step]
                if not (fine(x) and fine(y)):
                    return "data", step, "xy"[fine(x)]
                found.clear()
                out = m(x)
                if not fine(out):
                    return "layer", step, found[0]
                loss = loss_function(out, y)
                if not fine(loss):
                    return "loss", step, ""
                m.zero_grad()
                loss.backward(retain_graph=True)
                grads = [p.grad for p in m.parameters()]
                if not all(g is None or fine(g) for g in grads):
                    told = "''"
                    try:
                        with torch.autograd.set_detect_anomaly(True):
                            loss.backward()
                    except RuntimeError as e:
                        told = e.args[0].split()[1]
                    return "gradient", step, told.strip("'")
                with torch.no_grad():
                    for p, g in zip(m.parameters(), grads):
                        if g is not None:
                            p.copy_(p - rate * g)
        finally:
            hook.remove()

    for name, value in model.state_dict().items():
        if not fine(value):
            return "state", 0, name
    fault = run(lr, len(batches))
    if fault and fault[0] in ("layer", "loss", "gradient"):
        if run(lr / 100, fault[1] + 1) is None:
            return "learning rate", fault[1], ""
    return fault


@wrong(
    "diagnose",
    breaks=hidden_tests.rates_too_large,
    tells="You report where the run broke and never try a smaller learning rate. "
    "When weights explode, some layer or the loss is always the first to "
    "overflow; the cause is the rate. Repeat the run with `lr / 100`.",
)
def diagnose_without_the_rate(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    return fault


@wrong(
    "diagnose",
    breaks=hidden_tests.rates_too_large,
    tells="You repeat the run with `lr / 100` to its end. What breaks there later "
    "is another fault. Repeat it up to the step of the fault that you "
    "found.",
)
def diagnose_repeats_the_whole_run(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(len(batches), lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[hidden_tests.broken_layers, hidden_tests.broken_losses],
    tells="Every fault in a layer, the loss or a gradient is laid to the learning "
    "rate. Find out whether it is: repeat the run with `lr / 100`, up to "
    "and *with* the step of the fault (`batches[: step + 1]`), and blame "
    "the rate only if the fault is gone.",
)
def diagnose_repeats_too_short(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[
        hidden_tests.broken_layers,
        hidden_tests.broken_losses,
        hidden_tests.broken_gradients,
    ],
    tells="Every fault in a layer, the loss or a gradient is laid to the learning "
    "rate. Find out whether it is: repeat the run with `lr / 100`, up to "
    "and *with* the step of the fault (`batches[: step + 1]`), and blame "
    "the rate only if the fault is gone.",
)
def diagnose_blames_the_rate_always(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    return "learning rate", step, ""


@wrong(
    "diagnose",
    breaks=hidden_tests.followed_step_by_step,
    tells="You repeat the run with another learning rate than `lr / 100`. What "
    "counts as a small enough rate is for the text to say.",
)
def diagnose_tries_a_tenth(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 10)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.followed_step_by_step,
    tells="You repeat the run with another learning rate than `lr / 100`. What "
    "counts as a small enough rate is for the text to say.",
)
def diagnose_tries_a_thousandth(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 1000)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.followed_step_by_step,
    tells="You never clear the gradients, so each step is made with the sum of "
    "all so far. That is another run. Clear them before each backward pass.",
)
def diagnose_never_clears(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.followed_step_by_step,
    tells="You train with momentum. The run is plain gradient descent: `p -= lr * "
    "p.grad`.",
)
def diagnose_with_momentum(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []
        sgd = torch.optim.SGD(twin.parameters(), lr=rate, momentum=0.9)

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            sgd.step()
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.followed_step_by_step,
    tells="You clip the gradients on the way. That is another run, and one that "
    "may never break. Follow the run as it was.",
)
def diagnose_with_clipping(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            nn.utils.clip_grad_norm_(moved, 1.0)
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.rates_too_large,
    tells="You look at each batch with the weights as they were at the beginning. "
    "A run that diverges does so because of its own steps: make them.",
)
def diagnose_does_not_train(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.rates_too_large,
    tells="You add the gradient instead of subtracting it: `p -= lr * p.grad`.",
)
def diagnose_climbs(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p += rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_layers,
    tells="You blame the layer that noticed it last. NaN goes on through all "
    "layers that follow: the first in the list is the cause.",
)
def diagnose_blames_the_last_layer(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[-1]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_containers,
    tells="You look at the outputs alone. A layer that gets a NaN gives one; the "
    "one to blame has an input that is finite.",
)
def diagnose_blames_who_gets_nan(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_containers,
    tells="You watch only modules without children. A container may compute "
    "something in its own `forward`, and so may the model itself: watch all "
    "of `named_modules()`.",
)
def diagnose_leaves_alone(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            if not list(module.children()):
                module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0] if blamed else "?"
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_layers,
    tells="You go through the layers in the order of `named_modules()`. That is "
    "the order in which they were registered; they run in the order that "
    "`forward` has. Let the hooks write down who finished first.",
)
def diagnose_in_order_of_registration(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                leaves = [n for n, m in twin.named_modules() if not m._modules]
                bad = [name for name in leaves if name in blamed]
                return "layer", step, bad[0] if bad else blamed[-1]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.healthy_runs,
    tells="You call every value that is not finite a fault. A score of -inf "
    "before a softmax is there on purpose: as long as the model's output is "
    "finite, nothing is broken.",
)
def diagnose_calls_a_mask_a_fault(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if blamed:
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[hidden_tests.broken_data, hidden_tests.broken_state],
    tells="You look for NaN alone. An infinity is a fault as well: "
    "`torch.isfinite`.",
)
def diagnose_looks_for_nan_alone(model, loss_function, batches, lr):
    def finite(tensor):
        return not tensor.isnan().any()

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0] if blamed else "?"
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_data,
    tells="You look at `x` and not at `y`. A target that is not finite makes the "
    "loss so, and the loss is blamed.",
)
def diagnose_without_targets(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x):
                return "data", step, "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_state,
    tells="Before the first step you look at the parameters alone. The buffers "
    "are part of the state: one NaN in a running variance is enough. Go "
    "through `state_dict()`.",
)
def diagnose_parameters_alone(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.named_parameters():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.first_of_several,
    tells="You look through all batches before you train. A bad batch that comes "
    "after the run has broken is not what broke it: go step by step.",
)
def diagnose_looks_at_all_data_first(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for step, (x, y) in enumerate(batches):
        if not finite(x) or not finite(y):
            return "data", step, "y" if finite(x) else "x"
    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_state,
    tells="You never look at the state before the first step. A NaN in a "
    "checkpoint then looks like a fault of the first layer that uses it.",
)
def diagnose_forgets_the_state(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0] if blamed else ""
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[hidden_tests.broken_data, hidden_tests.broken_layers],
    tells="Your steps count from 1. The first batch is step 0.",
)
def diagnose_counts_from_one(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault:
        fault = fault[0], fault[1] + 1, fault[2]
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_gradients,
    tells="The gradient is found, but not the operation. Go backward in anomaly "
    "mode and read its error: it names the function whose gradient was NaN.",
)
def diagnose_without_anomaly_mode(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward()
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_gradients,
    tells="You name the function that made the loss (`loss.grad_fn`). The NaN "
    "arises somewhere on the way back from it: anomaly mode names where.",
)
def diagnose_names_the_last_node(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = type(loss.grad_fn).__name__
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.infinite_gradients,
    tells="You rely on anomaly mode alone. It looks for NaN; an infinite gradient "
    "passes. Look at the gradients as well.",
)
def diagnose_trusts_anomaly_mode(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            try:
                with torch.autograd.set_detect_anomaly(True):
                    loss.backward()
            except RuntimeError as error:
                operation = re.search(r"'(\w+)'", str(error)).group(1)
                return "gradient", step, operation
            moved = [p for p in twin.parameters() if p.grad is not None]
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.run_left_alone,
    tells="You train the model you were given. Who asks for a diagnosis wants the "
    "model as it was: work on `copy.deepcopy(model)`.",
)
def diagnose_trains_the_model(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = model, []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    start = copy.deepcopy(model)
    fault = first_fault(len(batches), lr)
    trained, model = model, start
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[hidden_tests.rates_too_large, hidden_tests.run_left_alone],
    tells="You repeat the run from the weights that the first one left, which are "
    "broken. Begin both with the weights of the start: a copy for each.",
)
def diagnose_repeats_from_where_it_broke(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = model, []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.run_left_alone,
    tells="You train the model you were given and put back its parameters, but "
    "not its buffers: batch norm has counted your steps. Work on a copy, or "
    "put back the whole `state_dict()`.",
)
def diagnose_restores_parameters_alone(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []
        for old, new in zip(model.buffers(), twin.buffers()):
            new.data = old.data

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_layers,
    tells="You call everything a fault of the loss as soon as the loss is not "
    "finite. Look at the model's output first: if that is not finite, a "
    "layer is to blame.",
)
def diagnose_asks_the_loss_first(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[hidden_tests.broken_layers, hidden_tests.rates_too_large],
    tells="You look at the first batch only. Most runs break later: go through "
    "all batches, with a step for each.",
)
def diagnose_stops_at_the_first_step(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(1, lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.run_left_alone,
    tells="You leave anomaly detection on. It is a switch for all of PyTorch, and "
    "every backward pass after yours is slower. Use it as a `with` block.",
)
def diagnose_leaves_anomaly_mode_on(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            try:
                torch.autograd.set_detect_anomaly(True)
                loss.backward()
            except RuntimeError as error:
                operation = re.search(r"'(\w+)'", str(error)).group(1)
                return "gradient", step, operation
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_layers,
    tells="You call `train()`. Batch norm then uses the batch instead of its "
    "running statistics, and the run you follow is another one. Follow it "
    "in the mode in which the model is.",
)
def diagnose_in_training_mode(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model).train(), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.healthy_runs,
    tells="You call `eval()`. Batch norm then uses its running statistics instead "
    "of the batch, and the run you follow is another one. Follow it in the "
    "mode in which the model is.",
)
def diagnose_in_eval(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model).eval(), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.healthy_runs,
    tells="You step on every parameter. A frozen or unused one has no gradient: "
    "`.grad` is None. Leave those out.",
)
def diagnose_moves_frozen(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = list(twin.parameters())
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=[hidden_tests.broken_data, hidden_tests.broken_layers],
    tells="You return a list. A tuple is asked for: `(cause, step, where)`.",
)
def diagnose_returns_a_list(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault and list(fault)
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ["learning rate", step, ""] if slow is None else list(fault)


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_state,
    tells="You look at all parameters before all buffers. The first entry "
    "is asked for in the order of `state_dict()`, which goes from "
    "layer to layer.",
)
def diagnose_parameters_before_buffers(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in (
        *model.named_parameters(),
        *model.named_buffers(),
    ):
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_state,
    tells="You look at all buffers before all parameters. The first entry "
    "is asked for in the order of `state_dict()`, which goes from "
    "layer to layer.",
)
def diagnose_buffers_before_parameters(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in (
        *model.named_buffers(),
        *model.named_parameters(),
    ):
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.nans_that_are_masked,
    tells="You take anomaly mode's word for it. It complains of every NaN "
    "on the way back, also of one that a mask throws away before it "
    "reaches a parameter. Go back without it first, and look at the "
    "gradients.",
)
def diagnose_by_anomaly_mode(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            try:
                with torch.autograd.set_detect_anomaly(True):
                    loss.backward()
            except RuntimeError as error:
                operation = re.search(r"'(\w+)'", str(error)).group(1)
                return "gradient", step, operation
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.first_of_several,
    tells="The repeated run has another fault, and you return that one. It "
    "only tells that the rate is not to blame: the answer is the "
    "fault of the first run.",
)
def diagnose_returns_the_second_fault(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else slow


@wrong(
    "diagnose",
    breaks=hidden_tests.broken_containers,
    tells="You ask whether the model's output is NaN. An infinite output "
    "is not finite either, and it is the layer that made it so, not "
    "the loss.",
)
def diagnose_outputs_that_are_nan(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if output.isnan().any():
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.healthy_runs,
    tells="You ask whether the sum is finite. A sum of large finite "
    "numbers overflows. Ask every entry: `isfinite().all()`.",
)
def diagnose_by_sums(model, loss_function, batches, lr):
    def finite(tensor):
        return math.isfinite(float(tensor.detach().sum()))

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.run_left_alone,
    tells="You switch on `requires_grad` of the batches, and they keep it. "
    "The batches are the caller's: nothing of a gradient is needed "
    "there.",
)
def diagnose_with_gradients_of_data(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            x.requires_grad_()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


@wrong(
    "diagnose",
    breaks=hidden_tests.healthy_runs,
    tells="You look at the parameters after the step. The text does not: "
    "they count when they make something of a later step infinite, "
    "and a run that ends there is not broken.",
)
def diagnose_looks_behind_the_last_step(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
            if not all(finite(p) for p in twin.parameters()):
                return "gradient", step, ""
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault
