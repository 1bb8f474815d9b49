"""Answers to `accumulation_gap` of chapter 09."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted()
def gap_by_functional_call(model, X, y, num_micro):
    params = {
        n: p.detach().clone().requires_grad_(p.requires_grad)
        for n, p in model.named_parameters()
    }
    leaves = [p for p in params.values() if p.requires_grad]

    def gradient(parts):
        buffers = {n: b.clone() for n, b in model.named_buffers()}
        total = torch.zeros(sum(p.numel() for p in leaves)).to(leaves[0])
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            out = torch.func.functional_call(model, (params, buffers), (x,))
            loss = F.cross_entropy(out, t) / parts
            found = torch.autograd.grad(loss, leaves, allow_unused=True)
            total += torch.cat(
                [
                    torch.zeros_like(p).flatten() if g is None else g.flatten()
                    for p, g in zip(leaves, found)
                ]
            )
        return total

    full = gradient(1)
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@accepted()
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


@accepted()
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


@accepted()
def gap_with_the_state_put_back(model, X, y, num_micro):
    state = copy.deepcopy(model.state_dict())
    before = [p.grad for p in model.parameters()]

    def vector(parts):
        model.zero_grad(set_to_none=True)
        for x, t in zip(X.tensor_split(parts), y.tensor_split(parts)):
            loss = F.cross_entropy(model(x), t)
            loss.backward(torch.tensor(1 / parts, dtype=loss.dtype))
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        return torch.cat([grad.view(-1) for grad in grads])

    vectors = []
    for parts in (num_micro, 1):
        try:
            vectors.append(vector(parts))
        finally:
            model.load_state_dict(state)
            for p, g in zip(model.parameters(), before):
                p.grad = g
    difference = vectors[0] - vectors[1]
    return math.sqrt(difference @ difference / (vectors[1] @ vectors[1]))


@accepted()
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


@accepted()
def mended_gap_on_the_model_itself(model, X, y, num_micro):
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
    return ((gradient(num_micro) - full).norm() / full.norm()).item()


@wrong(
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


@wrong(
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


@accepted()
def put_back_in_place(model, X, y, num_micro):
    before = copy.deepcopy(model.state_dict())
    kept = [(p, p.grad) for p in model.parameters()]

    def gradient(parts):
        for p, _ in kept:
            p.grad = None
        for x, t in parts:
            (F.cross_entropy(model(x), t) / len(parts)).backward()
        found = [p.grad.flatten() for p, _ in kept if p.grad is not None]
        return torch.cat(found)

    parts = list(zip(X.chunk(num_micro), y.chunk(num_micro), strict=True))
    try:
        full = gradient([(X, y)])
        gap = (gradient(parts) - full).norm() / full.norm()
    finally:
        model.load_state_dict(before)
        for p, grad in kept:
            p.grad = grad
    return gap.item()


@wrong(
    breaks=hidden_tests.model_as_it_was,
    tells="You switch `track_running_stats` off on the model itself. An instance norm moves its "
    "statistics all the same, and where the model raises, it stays off. Measure on a copy.",
)
def tracking_off_for_a_while(model, X, y, num_micro):
    norms = [m for m in model.modules() if m.training]
    norms = [m for m in norms if getattr(m, "track_running_stats", False)]
    for norm in norms:
        norm.track_running_stats = False
    params = [p for p in model.parameters() if p.requires_grad]

    def gradient(parts):
        total = [torch.zeros_like(p) for p in params]
        for x, t in zip(X.chunk(parts), y.chunk(parts)):
            loss = F.cross_entropy(model(x), t) / parts
            grads = torch.autograd.grad(loss, params, allow_unused=True)
            for one, grad in zip(total, grads):
                if grad is not None:
                    one += grad
        return torch.cat([one.flatten() for one in total])

    full, many = gradient(1), gradient(num_micro)
    for norm in norms:
        norm.track_running_stats = True
    return ((many - full).norm() / full.norm()).item()
