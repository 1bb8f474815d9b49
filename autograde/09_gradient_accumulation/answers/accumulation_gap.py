"""Answers to `accumulation_gap` of chapter 09."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


gap_on_the_model_itself = edit(
    mended_gap_on_the_model_itself,
    {"twin = copy.deepcopy(model)": "twin = model"},
    breaks=hidden_tests.model_as_it_was,
    tells="You measure on the model itself. Its running statistics have "
    "moved, its counter has counted, and its gradients are yours. "
    "Measure on `copy.deepcopy(model)`.",
)

gap_leaves_gradients_cleared = edit(
    mended_gap_on_the_model_itself,
    {
        "twin.zero_grad()": """
        twin.zero_grad()
        model.zero_grad()
        """,
    },
    breaks=hidden_tests.model_as_it_was,
    tells="Afterwards the model you were given has lost the gradients that it "
    "had. They may be somebody's half window. Measure on a "
    "copy, and clear its gradients alone.",
)


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


gap_undivided = edit(
    mended_gap_on_the_model_itself,
    {
        "(F.cross_entropy(twin(x), t) / num_parts).backward()": "F.cross_entropy(twin(x), t).backward()",
    },
    breaks=[
        hidden_tests.no_gap_without_the_batch,
        hidden_tests.gap_of_batch_norm,
    ],
    tells="You do not divide the micro-batches' losses, so you measure that "
    "mistake: a gap of about `num_micro` - 1 for any model. Divide each "
    "loss by `num_micro`.",
)

gap_in_eval = edit(
    mended_gap_on_the_model_itself,
    {"twin = copy.deepcopy(model)": "twin = copy.deepcopy(model).eval()"},
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You switch the model to eval, where batch norm uses fixed "
    "statistics and there is no gap to show. Measure in the mode the "
    "model is in.",
)

gap_in_train = edit(
    mended_gap_on_the_model_itself,
    {"twin = copy.deepcopy(model)": "twin = copy.deepcopy(model).train()"},
    breaks=hidden_tests.no_gap_without_the_batch,
    tells="You switch the model to train. In eval batch norm has fixed "
    "statistics and no gap. Measure in the mode the model is in.",
)

gap_absolute = edit(
    mended_gap_on_the_model_itself,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": "return (gradient(num_micro) - full).norm().item()",
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You return the norm of the difference. Without dividing by the "
    "norm of the full gradient nobody can say whether that is much.",
)

gap_relative_to_the_other = edit(
    mended_gap_on_the_model_itself,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": """
        seen = gradient(num_micro)
        return ((seen - full).norm() / seen.norm()).item()
        """,
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You divide by the norm of the accumulated gradient. The one that "
    "is right here is the full batch's: divide by its norm.",
)

gap_of_norms = edit(
    mended_gap_on_the_model_itself,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": """
        return (
            (gradient(num_micro).norm() - full.norm()).abs() / full.norm()
        ).item()
        """,
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You compare the *norms* of the two gradients. Two gradients of the "
    "same length may point anywhere. Take the norm of their difference.",
)

gap_largest_element = edit(
    mended_gap_on_the_model_itself,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": "return ((gradient(num_micro) - full).abs().max() / full.abs().max()).item()",
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You take the largest difference of one element. The exercise asks "
    "for Euclidean norms, over all elements together.",
)


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


gap_of_squares = edit(
    mended_gap_on_the_model_itself,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": """
        return (
            (gradient(num_micro) - full).square().sum() / full.square().sum()
        ).item()
        """,
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You forgot the root: you return the square of the relative error, "
    "which makes small gaps look like none.",
)


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


gap_unfreezes = edit(
    mended_gap_on_the_model_itself,
    {
        "twin = copy.deepcopy(model)": """
        twin = copy.deepcopy(model)
        twin.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.gap_with_frozen_layers,
    tells="You make frozen parameters trainable in your copy, so they take "
    "part. They get no gradient in training; leave them frozen.",
)


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


gap_as_a_tensor = edit(
    mended_gap_on_the_model_itself,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": "return (gradient(num_micro) - full).norm() / full.norm()",
    },
    breaks=hidden_tests.gap_as_a_float,
    tells="You return a tensor. Return a Python float, with `.item()`.",
)


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


gap_in_the_mode_of_the_root = edit(
    gap_of_sums,
    {
        "twin = copy.deepcopy(model)": """
        twin = copy.deepcopy(model)
        twin.train(model.training)
        """,
        'F.cross_entropy(twin(x), t, reduction="sum").backward()': "(F.cross_entropy(twin(x), t) / parts).backward()",
    },
    breaks=hidden_tests.gap_in_the_models_mode,
    tells="You give every layer the mode of the outermost one. A batch norm "
    "may be in eval inside a model that trains: that is how one freezes it. "
    "Leave the modes as they are.",
)

gap_levels_the_modes = edit(
    gap_of_sums,
    {
        'F.cross_entropy(twin(x), t, reduction="sum").backward()': "(F.cross_entropy(twin(x), t) / parts).backward()",
        "gap = ((accumulated - full).norm() / full.norm()).item()": """
        gap = ((accumulated - full).norm() / full.norm()).item()
        model.train(model.training)
        """,
    },
    breaks=hidden_tests.model_as_it_was,
    tells="`model.train(model.training)` at the end gives every layer the "
    "mode of the outermost one. A batch norm that was in eval is in training "
    "afterwards. Leave the modes alone.",
)

gap_rounded = edit(
    gap_of_sums,
    {
        'F.cross_entropy(twin(x), t, reduction="sum").backward()': "(F.cross_entropy(twin(x), t) / parts).backward()",
        "return gap": "return round(gap, 8)",
    },
    breaks=hidden_tests.small_gaps,
    tells="You round the result. What is left of a small gap is nothing, or "
    "wrong in its second digit. Return it as it is.",
)

gap_rounded_to_twelve_digits = edit(
    gap_of_sums,
    {"return gap": "return round(gap, 12)"},
    breaks=hidden_tests.fainter_gaps,
    tells="You round the result, to many digits, and still a small gap is "
    "nothing then, or wrong in its second digit. Return it as it is.",
)

gap_with_a_threshold = edit(
    gap_of_sums,
    {
        'F.cross_entropy(twin(x), t, reduction="sum").backward()': "(F.cross_entropy(twin(x), t) / parts).backward()",
        "return gap": "return gap if gap > 1e-6 else 0.0",
    },
    breaks=hidden_tests.small_gaps,
    tells="You call small gaps none. In float64 rounding gives 1e-16; what "
    "is far above it is a gap, and whoever asks can judge it. Return it as it "
    "is.",
)

gap_with_an_epsilon = edit(
    gap_of_sums,
    {
        'F.cross_entropy(twin(x), t, reduction="sum").backward()': "(F.cross_entropy(twin(x), t) / parts).backward()",
        "gap = ((accumulated - full).norm() / full.norm()).item()": "gap = ((accumulated - full).norm() / (full.norm() + 1e-8)).item()",
    },
    breaks=hidden_tests.small_gaps,
    tells="You add a small number to the denominator. Where the gradient "
    "itself is small, as late in training, the gap then looks small too. "
    "Divide by the norm alone.",
)

gap_seeded = edit(
    gap_of_sums,
    {
        "def gap_of_sums(model, X, y, num_micro):": """
        def gap_of_sums(model, X, y, num_micro):
            torch.manual_seed(0)
        """,
        'F.cross_entropy(twin(x), t, reduction="sum").backward()': "(F.cross_entropy(twin(x), t) / parts).backward()",
    },
    breaks=hidden_tests.model_as_it_was,
    tells="You seed the global generator. Measuring a model must not change "
    "what is drawn after it, and nothing here draws.",
)

gap_of_known_layers_alone = edit(
    SOLUTION,
    {
        "full = gradient(1)": """
        known = nn.modules.batchnorm._BatchNorm
        if not any(isinstance(one, known) for one in model.modules()):
            return 0.0
        full = gradient(1)
        """
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="Without a batch norm you say 0 and measure nothing. Other layers mix samples, "
    "too: measure every model.",
)

gap_with_two_names = edit(
    SOLUTION,
    {
        "grads = [p.grad for p in twin.parameters() if p.grad is not None]": """
        named = twin.named_parameters(remove_duplicate=False)
        grads = [p.grad for _, p in named if p.grad is not None]
        """
    },
    breaks=hidden_tests.gap_with_frozen_layers,
    tells="A parameter with two names stands twice in your long vector. `parameters()` "
    "gives it once.",
)

gap_with_a_small_denominator = edit(
    SOLUTION,
    {
        "- full).norm() / full.norm()).item()": "- full).norm() / (full.norm() + 1e-16)).item()"
    },
    breaks=hidden_tests.small_gaps,
    tells="You add a small number to the denominator. Where the gradient is as small, the gap "
    "seems to be none.",
)

gap_by_layers = edit(
    SOLUTION,
    {
        "grads = [p.grad for p in twin.parameters() if p.grad is not None]": """
        layers = twin.modules()
        own = [p for one in layers for p in one.parameters(recurse=False)]
        grads = [p.grad for p in own if p.grad is not None]
        """
    },
    breaks=hidden_tests.gap_with_frozen_layers,
    tells="A parameter with two names stands twice in your long vector. `parameters()` "
    "gives it once.",
)

gap_of_nan_is_zero = edit(
    SOLUTION,
    {
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": """
        gap = (gradient(num_micro) - full).norm() / full.norm()
        return gap.nan_to_num().item()
        """
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You make 0 of NaN, by `nan_to_num` or by a threshold that NaN does not pass. A model whose "
    "gradients are NaN then seems to have no gap. Return what you measure.",
)

gap_of_clamped_logits = edit(
    SOLUTION,
    {
        "F.cross_entropy(twin(x), t)": "F.cross_entropy(twin(x).clamp(-30, 30), t)"
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You clamp the logits, and a logit at the bound has no gradient. "
    "`F.cross_entropy` takes logits of any size.",
)

gap_of_inputs_cast = edit(
    SOLUTION,
    {"twin(x)": "twin(x.to(next(twin.parameters()).dtype))"},
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You bring the inputs to the dtype of the weights. A model that reads "
    "token ids takes whole numbers: hand `X` on as you got it.",
)

gap_above_many_roundings = edit(
    gap_of_sums,
    {
        "return gap": "return 0.0 if gap < 100 * torch.finfo(full.dtype).eps else gap"
    },
    breaks=hidden_tests.fainter_gaps,
    tells="You call a gap of less than a hundred roundings none. In float32 that is 1e-5, "
    "and a layer may well make such a gap. Return what you measure.",
)

gap_without_single_rows = edit(
    SOLUTION,
    {
        "full = gradient(1)": """
        num_micro = min(num_micro, len(X) // 2)
        full = gradient(1)
        """
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You make the micro-batches no smaller than two rows. With `num_micro` equal to "
    "`len(X)` each has one row: measure what was asked for.",
)

gap_leaves_new_gradients = edit(
    gap_with_the_state_put_back,
    {"p.grad = g": "p.grad = p.grad if g is None else g"},
    breaks=hidden_tests.model_as_it_was,
    tells="A parameter that had no gradient has one afterwards: yours. The next step of the "
    "optimizer would use it. Put back `None`, too, or measure on a copy.",
)


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


other_parameters_put_back = edit(
    put_back_in_place,
    {
        """
        model.load_state_dict(before)
        for p, grad in kept:
            p.grad = grad
        """: """
        model.load_state_dict(before, assign=True)
        for p, (_, grad) in zip(model.parameters(), kept, strict=True):
            p.grad = grad
        """
    },
    breaks=hidden_tests.model_as_it_was,
    tells="You put the state back with `assign=True`, and the model has new parameters. An optimizer "
    "that was made before holds the old ones: copy the values back.",
)

statistics_of_batch_norms_alone = edit(
    put_back_in_place,
    {
        "model.load_state_dict(before)": """
        norms = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        for name, layer in model.named_modules():
            for key, held in layer.named_buffers(recurse=False):
                if isinstance(layer, norms):
                    held.copy_(before[f"{name}.{key}"])
        """
    },
    breaks=hidden_tests.model_as_it_was,
    tells="Batch norms have their statistics as before, and other layers do not. An instance norm may "
    "keep some, too: all buffers are to be as they were.",
)

statistics_forgotten_before = edit(
    SOLUTION,
    {
        "twin = copy.deepcopy(model)": """
        twin = copy.deepcopy(model)
        for layer in twin.modules():
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.reset_running_stats()
        """
    },
    breaks=hidden_tests.gap_in_the_models_mode,
    tells="You reset the running statistics. A batch norm in eval is measured with those that it "
    "has.",
)

gap_of_sums_in_place = edit(
    gap_by_autograd_grad,
    {
        "sums = [None if g is None else torch.zeros_like(g) for g in full]": "sums = [None] * len(full)",
        """
        for s, g in zip(sums, grads(x, t)):
            if s is not None:
                s += g / num_micro
        """: """
        for i, g in enumerate(grads(x, t)):
            if g is not None and sums[i] is None:
                sums[i] = g.div_(num_micro)
            elif g is not None:
                sums[i] += g / num_micro
        """,
    },
    breaks=hidden_tests.no_gap_without_the_batch,
    tells="`torch.autograd.grad` may give one tensor for two parameters, as for the terms of a sum. "
    "You change it in place, and so both gradients twice. Add out of place.",
)

put_back_but_after_an_error = edit(
    gap_with_saved_state,
    {
        """
        try:
            full, parts = measure(1), measure(num_micro)
        finally:
            model.load_state_dict(state)
            for p, g in zip(model.parameters(), kept):
                p.grad = g
        """: """
        full, parts = measure(1), measure(num_micro)
        model.load_state_dict(state)
        for p, g in zip(model.parameters(), kept):
            p.grad = g
        """
    },
    breaks=hidden_tests.model_as_it_was,
    tells="Where the model raises, as batch norm does on single rows, you put nothing back: statistics "
    "and gradients are those of the measurement. Put back in a `finally`, or measure on a copy.",
)


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


gap_of_each_parameter_added = edit(
    SOLUTION,
    {
        "return torch.cat([grad.flatten() for grad in grads])": "return grads",
        "return ((gradient(num_micro) - full).norm() / full.norm()).item()": """
        pairs = zip(gradient(num_micro), full, strict=True)
        off = sum((one - other).norm() for one, other in pairs)
        return (off / sum(one.norm() for one in full)).item()
        """,
    },
    breaks=hidden_tests.gap_of_batch_norm,
    tells="You add up the norms of the parameters one by one. The gradient is one long vector: take "
    "the norm of all of them together.",
)
