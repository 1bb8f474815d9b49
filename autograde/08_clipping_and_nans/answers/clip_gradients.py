"""Answers to `clip_gradients` of chapter 08."""

import math

import torch
from torch import Tensor, nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


clip_each_by_itself = edit(
    mended_clip_skips_frozen,
    {
        """
        for g in grads:
            g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
        """: """
        for g, norm in zip([g for g in grads if g.numel()], norms):
            g.mul_((max_norm / (norm + 1e-6)).clamp(max=1.0))
        """,
    },
    breaks=hidden_tests.one_common_factor,
    tells="You clip each gradient to a norm of its own. Large ones then shrink, "
    "small ones do not, and the direction of the whole changes. Take one norm of "
    "all and one factor for all.",
)

clip_by_value = edit(
    mended_clip_skips_frozen,
    {
        "g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))": "g.clamp_(-max_norm, max_norm)",
    },
    breaks=hidden_tests.one_common_factor,
    tells="You clip each entry (clipping by value). That changes the direction of "
    "the step. Clipping by norm multiplies all entries by one factor.",
)

clip_enlarges = edit(
    mended_clip_skips_frozen,
    {
        "g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))": "g.mul_(max_norm / (joint + 1e-6))",
    },
    breaks=hidden_tests.small_gradients_stay,
    tells="You always multiply by `max_norm / norm`. A gradient that is smaller "
    "than `max_norm` then grows. The factor is at most 1.",
)

clip_returns_the_norm_after = edit(
    mended_clip_skips_frozen,
    {
        "for g in grads:": """
        factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
        for g in grads:
        """,
        "g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))": "g.mul_(factor)",
        "return joint": "return joint * factor",
    },
    breaks=hidden_tests.norm_before_clipping,
    tells="You return the norm after clipping. That is never more than "
    "`max_norm`, and tells nothing in a log: return the norm as it was before.",
)

clip_stumbles_over_none = edit(
    mended_clip_skips_frozen,
    {
        "grads = [p.grad for p in parameters if p.grad is not None]": "grads = [p.grad for p in parameters]",
    },
    breaks=hidden_tests.gradients_that_are_missing,
    tells="A parameter that took no part has `.grad` None, and yours stumbles "
    "over it. Leave those out.",
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


clip_lets_nan_pass = edit(
    mended_clip_skips_frozen,
    {
        """
        for g in grads:
            g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
        """: """
        if joint > max_norm:
            for g in grads:
                g.mul_(max_norm / (joint + 1e-6))
        """,
    },
    breaks=hidden_tests.nonfinite_spreads,
    tells="`if norm > max_norm` is False for NaN, so gradients with a NaN among "
    "them go on to the optimizer as they are, and no one hears of it. Multiply "
    "in that case too: the NaN then shows in every gradient.",
)

clip_hides_nan = edit(
    mended_clip_skips_frozen,
    {
        "grads = [p.grad for p in parameters if p.grad is not None]": """
        grads = [p.grad for p in parameters if p.grad is not None]
        if not error_if_nonfinite:
            for g in grads:
                if not g.isfinite().all():
                    g.nan_to_num_(0.0, 0.0, 0.0)
        """,
    },
    breaks=hidden_tests.nonfinite_spreads,
    tells="You replace NaN and infinity in the gradients by numbers. The step is "
    "then made with a gradient that nobody computed. Hiding a fault is not what "
    "clipping is for.",
)

clip_never_refuses = edit(
    mended_clip_skips_frozen,
    {
        """
        if error_if_nonfinite and not joint.isfinite():
            raise RuntimeError
        """: "",
    },
    breaks=hidden_tests.nonfinite_is_refused,
    tells="You take no notice of `error_if_nonfinite`. With it, a norm that is "
    "NaN or infinite is a RuntimeError.",
)

clip_refuses_too_late = edit(
    mended_clip_skips_frozen,
    {
        "joint = torch.stack(norms).norm(norm_type)": """
        joint = torch.stack(norms).norm(norm_type)
        for g in grads:
            g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
        """,
        """
        for g in grads:
            g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
        """: "",
    },
    breaks=hidden_tests.nonfinite_is_refused,
    tells="You raise the error after you have multiplied the gradients, so "
    "whoever catches it finds them spoilt. Test the norm first.",
)

clip_refuses_nan_alone = edit(
    mended_clip_skips_frozen,
    {
        "if error_if_nonfinite and not joint.isfinite():": "if error_if_nonfinite and joint.isnan():",
    },
    breaks=hidden_tests.nonfinite_is_refused,
    tells="With `error_if_nonfinite` you look for NaN alone. An infinite norm "
    "makes every gradient 0 or NaN just as well: test `isfinite`.",
)

clip_by_the_euclidean_norm = edit(
    mended_clip_skips_frozen,
    {
        ")).norm(norm_type)": ")).norm()",
        "joint = torch.stack(norms).norm(norm_type)": "joint = torch.stack(norms).norm()",
    },
    breaks=hidden_tests.other_norms,
    tells="You take the Euclidean norm whatever `norm_type` says.",
)

clip_by_the_sum_of_norms = edit(
    mended_clip_skips_frozen,
    {
        "joint = torch.stack(norms).norm(norm_type)": "joint = torch.stack(norms).sum()",
    },
    breaks=hidden_tests.norm_before_clipping,
    tells="You add the norms of the gradients up. Norms do not add: take the norm "
    "of the norms, with the same p.",
)

clip_replaces_gradients = edit(
    mended_clip_skips_frozen,
    {
        "grads = [p.grad for p in parameters if p.grad is not None]": """
        given = [p for p in parameters if p.grad is not None]
        grads = [p.grad for p in given]
        """,
        """
        for g in grads:
            g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))
        """: """
        factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
        for p in given:
            p.grad = (p.grad * factor).to(p.grad.dtype)
        """,
    },
    breaks=hidden_tests.multiplied_in_place,
    tells="You put new tensors into `.grad`. Whoever else looks at the old ones, "
    "such as a bucket of DistributedDataParallel, does not see the clipping. "
    "Multiply in place: `mul_`.",
)


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


clip_returns_a_float = edit(
    mended_clip_skips_frozen,
    {
        "return torch.tensor(0.0)": "return 0.0",
        "return joint": "return joint.item()",
    },
    breaks=hidden_tests.norm_before_clipping,
    tells="You return a Python float. `.item()` waits for a GPU at every step; "
    "return the tensor, and let the caller take the number when it is needed.",
)

clip_fills_in_zeros = edit(
    mended_clip_skips_frozen,
    {
        "grads = [p.grad for p in parameters if p.grad is not None]": """
        given = list(parameters)
        for p in given:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        grads = [p.grad for p in given]
        """,
    },
    breaks=hidden_tests.gradients_that_are_missing,
    tells="You give parameters without a gradient one of zeros. The optimizer "
    "skips a `.grad` of None; zeros it steps on, and weight decay moves what was "
    "never used. Leave None as it is.",
)

clip_divides_by_zero = edit(
    mended_clip_skips_frozen,
    {
        "g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))": "g.div_(joint).mul_(joint.clamp(max=max_norm))",
    },
    breaks=hidden_tests.gradients_that_are_missing,
    tells="Gradients of zeros have the norm 0, and 0 / 0 is NaN. Add 1e-6 to the "
    "norm before you divide by it, or divide only where the norm is too large.",
)

clip_skips_frozen = edit(
    mended_clip_skips_frozen,
    {
        "grads = [p.grad for p in parameters if p.grad is not None]": """
        given = [p for p in parameters if p.requires_grad]
        grads = [p.grad for p in given if p.grad is not None]
        """,
    },
    breaks=hidden_tests.nothing_else_changes,
    tells="You skip parameters that do not require a gradient. One that was "
    "frozen after the backward pass still has its `.grad`, which counts: ask "
    "whether `.grad` is None.",
)

clip_in_float32 = edit(
    mended_clip_skips_frozen,
    {
        "to(torch.promote_types(g.dtype, torch.float32)": "float(",
        """
        if any(g.dtype == torch.float64 for g in grads):
            norms = [norm.double() for norm in norms]
        """: "",
    },
    breaks=hidden_tests.mixed_dtypes,
    tells="You take the norm in float32 whatever the gradients are. With a float64 "
    "gradient among them it should be float64.",
)

clip_by_the_square = edit(
    mended_clip_skips_frozen,
    {
        "joint = torch.stack(norms).norm(norm_type)": "joint = torch.stack(norms).norm(norm_type).pow(2)",
    },
    breaks=hidden_tests.norm_before_clipping,
    tells="You return the square of the norm: the root of the sum of squares is "
    "missing.",
)

clip_to_one = edit(
    mended_clip_skips_frozen,
    {
        "g.mul_((max_norm / (joint + 1e-6)).clamp(max=1.0))": "g.mul_((1 / (joint + 1e-6)).clamp(max=1.0))",
    },
    breaks=hidden_tests.one_common_factor,
    tells="You divide every gradient by the norm, so that the norm becomes 1 "
    "whatever `max_norm` is. The factor is `max_norm / norm`, at most 1.",
)

clip_always_refuses = edit(
    mended_clip_skips_frozen,
    {"error_if_nonfinite=False": "error_if_nonfinite=True"},
    breaks=hidden_tests.nonfinite_spreads,
    tells="You raise an error for a norm that is not finite without being asked. "
    "`error_if_nonfinite` is False unless the caller says otherwise.",
)

clip_a_reshaped_copy = edit(
    SOLUTION,
    {
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
        "g.mul_(factor)": "g.reshape(-1).mul_(factor)",
    },
    breaks=hidden_tests.multiplied_in_place,
    tells="`reshape(-1)` of a gradient that is not contiguous is a copy. "
    "You multiply the copy, and the gradient stays as it is. "
    "Multiply `g` itself: it may have any shape.",
)

clip_views_flat = edit(
    SOLUTION,
    {
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
        "g.mul_(factor)": "g.view(-1).mul_(factor)",
    },
    breaks=hidden_tests.multiplied_in_place,
    tells="`view(-1)` raises an error for a gradient that lies in memory "
    "in another order, a transposed one. Multiply `g` itself: it may "
    "have any shape.",
)

clip_zero_over_zero = edit(
    SOLUTION,
    {
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
        "factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)": "factor = (max_norm / joint).clamp(max=1.0)",
    },
    breaks=hidden_tests.gradients_that_are_missing,
    tells="With `max_norm` 0 and gradients of zeros you divide 0 by 0: "
    "zeros become NaN. Multiply only where the norm is not small "
    "enough, or add a little to it before you divide.",
)

clip_a_little_early = edit(
    SOLUTION,
    {
        """
        if error_if_nonfinite and not joint.isfinite():
            raise RuntimeError("The norm of the gradients is not finite.")
        factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)
        """: """
        if error_if_nonfinite and not joint.isfinite():
            raise RuntimeError("not finite")
        if joint < 0.999 * max_norm:
            return joint
        factor = max_norm / (joint + 1e-6)
        """,
    },
    breaks=hidden_tests.small_gradients_stay,
    tells="You multiply gradients whose norm is a little below `max_norm`. "
    "They are to stay as they are, bit for bit: the factor is at "
    "most 1.",
)

clip_double_in_float32 = edit(
    SOLUTION,
    {
        ", norm_type, dtype=": ".float(), norm_type).to(",
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
    },
    breaks=hidden_tests.mixed_dtypes,
    tells="You take the norm of float64 gradients in float32 and convert "
    "the result. Beyond 3e38 it overflows. Take the norm in float64 "
    "from the beginning.",
)

clip_with_empty_tensors = edit(
    SOLUTION,
    {
        """
        norms = [
            torch.linalg.vector_norm(g, norm_type, dtype=dtype)
            for g in grads
            if g.numel() > 0
        ]
        """: "norms = [torch.linalg.vector_norm(g, norm_type, dtype=dtype) for g in grads]",
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
    },
    breaks=hidden_tests.gradients_that_are_missing,
    tells="The largest entry of a tensor without elements does not exist: "
    "with `norm_type=math.inf` PyTorch raises an error there. Leave "
    "such tensors out.",
)

clip_by_a_half_factor = edit(
    SOLUTION,
    {
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
        "g.mul_(factor)": "g.mul_(factor.to(g.dtype))",
    },
    breaks=hidden_tests.half_precision,
    tells="You round the factor to the gradient's dtype; so does `_foreach_mul_` with "
    "a Python number. In float16 a factor such as 1e-7 is wrong by a fifth, and below "
    "3e-8 it is 0. Multiply by the float32 tensor.",
)

clip_by_foreach_and_a_number = edit(
    SOLUTION,
    {
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
        """
        for g in grads:
            g.mul_(factor)
        """: "torch._foreach_mul_(grads, factor.item())",
    },
    breaks=hidden_tests.half_precision,
    tells="You round the factor to the gradient's dtype; so does `_foreach_mul_` with "
    "a Python number. In float16 a factor such as 1e-7 is wrong by a fifth, and below "
    "3e-8 it is 0. Multiply by the float32 tensor.",
)

clip_with_a_graph = edit(
    SOLUTION,
    {
        "@torch.no_grad()": "",
        'raise RuntimeError("The norm of the gradients is not finite.")': 'raise RuntimeError("not finite")',
    },
    breaks=hidden_tests.nothing_else_changes,
    tells="A gradient may have a graph (`create_graph=True`), and then the "
    "norm that you return has one, too. Work under "
    "`torch.no_grad()`.",
)

clip_by_the_largest_entry = edit(
    SOLUTION,
    {
        "torch.linalg.vector_norm(g, norm_type, dtype=dtype)": "torch.linalg.vector_norm(g, norm_type, dtype=dtype) "
        "if norm_type != math.inf else g.max().to(dtype)"
    },
    breaks=hidden_tests.other_norms,
    tells="The infinity norm is the largest *absolute* value: -5 counts as 5.",
)

clip_by_pythons_max = edit(
    SOLUTION,
    {
        "joint = torch.linalg.vector_norm(torch.stack(norms), norm_type)": "joint = max(norms) if norm_type == math.inf else torch.linalg.vector_norm(torch.stack(norms), norm_type)"
    },
    breaks=hidden_tests.nonfinite_spreads,
    tells="Python's `max` compares, and every comparison with NaN is False: it hides a "
    "NaN that does not come first. `torch.stack(...).max()` keeps it.",
)

clip_by_the_object_inf = edit(
    SOLUTION,
    {
        "torch.linalg.vector_norm(g, norm_type, dtype=dtype)": "g.to(dtype).abs().max() if norm_type is math.inf "
        "else g.to(dtype).abs().pow(norm_type).sum().pow(1 / norm_type)",
        "torch.linalg.vector_norm(torch.stack(norms), norm_type)": "torch.stack(norms).max() if norm_type is math.inf "
        "else torch.stack(norms).pow(norm_type).sum().pow(1 / norm_type)",
    },
    breaks=hidden_tests.other_norms,
    tells='`is` asks for the same object. `float("inf")` and what NumPy gives are equal to '
    "`math.inf`, but other objects: compare with `==`.",
)

clip_half_by_its_own_maximum = edit(
    SOLUTION,
    {
        "torch.linalg.vector_norm(g, norm_type, dtype=dtype)": "g.abs().max() if norm_type == math.inf "
        "else torch.linalg.vector_norm(g, norm_type, dtype=dtype)"
    },
    breaks=hidden_tests.half_precision,
    tells="The largest value of a float16 gradient is a float16 number. So is the factor "
    "that you divide out of it, and a small one becomes 0. Go to float32 first.",
)

clip_each_memory_once = edit(
    SOLUTION,
    {
        "grads = [p.grad for p in parameters if p.grad is not None]": "grads = [p.grad for p in parameters if p.grad is not None]\n"
        "grads = list({g.untyped_storage().data_ptr(): g for g in grads}.values())"
    },
    breaks=hidden_tests.multiplied_in_place,
    tells="Several gradients may lie in one buffer, as DDP's do. They share the storage, "
    "and are different gradients all the same.",
)

clip_leaves_zeros_alone = edit(
    SOLUTION,
    {
        "if p.grad is not None]": "if p.grad is not None and p.grad.any()]",
    },
    breaks=hidden_tests.nonfinite_spreads,
    tells="You leave out gradients that are all zero. After a NaN norm they, too, have "
    "to be NaN: 0 times NaN is NaN.",
)

clip_to_nothing_by_zeros = edit(
    SOLUTION,
    {
        "factor = (max_norm / (joint + 1e-6)).clamp(max=1.0)": "factor = (max_norm / (joint + 1e-6)).clamp(max=1.0) if max_norm else torch.zeros(())",
        "g.mul_(factor)": "g.mul_(factor) if max_norm else g.zero_()",
    },
    breaks=hidden_tests.nonfinite_spreads,
    tells="With `max_norm` 0 you write zeros, whatever the norm is. That hides a NaN: "
    "multiply by `max_norm / norm`.",
)

seeding_in_clip_gradients = edit(
    SOLUTION,
    {
        "if isinstance(parameters, Tensor):": """
        torch.manual_seed(0)
        if isinstance(parameters, Tensor):
        """,
    },
    breaks=hidden_tests.nothing_else_changes,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

clip_takes_a_little_from_the_norm = edit(
    SOLUTION,
    {"(joint + 1e-6)": "(joint - 1e-6)"},
    breaks=hidden_tests.small_gradients_stay,
    tells="You subtract 1e-6 from the norm before you divide. Of a norm smaller "
    "than that a negative number is left, and the gradients are "
    "multiplied by it. PyTorch adds 1e-6.",
)

clip_to_zero_where_the_norm_is_zero = edit(
    clip_by_sums_of_powers,
    {"if norm != 0 else 1.0": "if norm != 0 else 0.0"},
    breaks=hidden_tests.small_gradients_stay,
    tells="Where the norm is 0 you multiply by 0. The squares of very small "
    "numbers round to 0, and so does their norm: such gradients are to "
    "stay as they are. Multiply by 1.",
)
