"""Answers to `safe_gradients` of chapter 08."""

import math

import torch
import torch.nn.functional as F

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


root_by_one_where = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": "return torch.where(x > 0, x.sqrt(), torch.zeros_like(x))",
    },
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` chooses after the fact: `torch.where(x > 0, x.sqrt(), 0)` still "
    "takes the root everywhere, and in the backward pass 0 times its "
    "infinite slope is NaN. Make the input safe before the root, then "
    "choose.",
)

root_with_epsilon_inside = edit(
    root_behind_a_relu,
    {"return x.relu().sqrt()": "return (x.clamp(min=0) + 1e-12).sqrt()"},
    breaks=[hidden_tests.root_and_its_slope, hidden_tests.root_of_extremes],
    tells="An epsilon inside the root of `root` makes the gradient finite and the "
    "values wrong: sqrt(1e-12) is 1e-6, not 0, and small numbers are "
    "changed a lot. Choose by `torch.where`, before and after the root.",
)

root_with_epsilon_after = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": "return torch.maximum(x, torch.zeros_like(x)).sqrt() + 1e-12",
    },
    breaks=hidden_tests.root_and_its_slope,
    tells="You add an epsilon after the root of `root`. The slope of the root at "
    "0 is as infinite as before. What must be safe is the input of the "
    "root.",
)

ROOT_OF_ZERO = (
    "`root` takes the root of 0 itself, as after a maximum with 0, or where "
    "`x >= 0`: the value is right, the slope at 0 is infinite. Put another number "
    "than 0 in its place wherever `x > 0` does not hold."
)

root_of_the_maximum = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": "return torch.maximum(x, torch.zeros_like(x)).sqrt()",
    },
    breaks=hidden_tests.root_and_its_slope,
    tells=ROOT_OF_ZERO,
)

root_of_what_is_not_negative = edit(
    SOLUTION,
    {"positive = x > 0": "positive = x >= 0"},
    breaks=hidden_tests.root_and_its_slope,
    tells=ROOT_OF_ZERO,
)

root_clamped_at_a_small_number = edit(
    root_behind_a_relu,
    {"return x.relu().sqrt()": "return x.clamp(min=1e-8).sqrt()"},
    breaks=[hidden_tests.root_and_its_slope, hidden_tests.root_of_extremes],
    tells="You clamp at a small number and take the root of that, so `root` of 0 "
    "is not 0, and numbers below it have no gradient. Clamp low enough and "
    "set the rest to 0, or choose by `torch.where`.",
)

root_of_sizes = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        size = torch.where(x == 0, torch.ones_like(x), x.abs())
        return torch.where(x == 0, torch.zeros_like(x), size.sqrt())
        """,
    },
    breaks=hidden_tests.root_and_its_slope,
    tells="Below 0, `root` should be 0. You take the root of |x|.",
)

root_without_graph = edit(
    root_behind_a_relu,
    {"return x.relu().sqrt()": "return torch.nan_to_num(x.sqrt())"},
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` repairs the result by `nan_to_num`, which changes the value and "
    "not the gradient: the slope at 0 is infinite or NaN as before.",
)

lengths_by_hand = edit(
    SOLUTION,
    {
        "return torch.linalg.vector_norm(X, dim=-1)": "return X.pow(2).sum(-1).sqrt()",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.lengths_and_gradients,
    tells="The value of `lengths` is right, its gradient at a row of zeros is "
    "NaN: the root of the sum of squares has an infinite slope there, also "
    "where `torch.where` chooses something else afterwards. Make the sum "
    "safe before the root, or use `torch.linalg.vector_norm`, which knows "
    "the gradient.",
)

lengths_by_one_where = edit(
    SOLUTION,
    {
        "return torch.linalg.vector_norm(X, dim=-1)": """
        squares = X.pow(2).sum(-1)
        return torch.where(
            squares > 0, squares.sqrt(), torch.zeros_like(squares)
        )
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.lengths_and_gradients,
    tells="The value of `lengths` is right, its gradient at a row of zeros is "
    "NaN: the root of the sum of squares has an infinite slope there, also "
    "where `torch.where` chooses something else afterwards. Make the sum "
    "safe before the root, or use `torch.linalg.vector_norm`, which knows "
    "the gradient.",
)

lengths_with_epsilon = edit(
    SOLUTION,
    {
        "return torch.linalg.vector_norm(X, dim=-1)": "return (X.pow(2).sum(-1) + 1e-12).sqrt()",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=[
        hidden_tests.lengths_and_gradients,
        hidden_tests.lengths_of_extremes,
    ],
    tells="An epsilon inside the root of `lengths` changes the values: a row of "
    "zeros gets a length, and short rows get a wrong one.",
)

lengths_by_hypot = edit(
    SOLUTION,
    {
        "return torch.linalg.vector_norm(X, dim=-1)": """
        total = torch.zeros_like(X[..., 0])
        for column in X.unbind(-1):
            total = torch.hypot(total, column)
        return total
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.lengths_and_gradients,
    tells="The value of `lengths` is right, its gradient at a row of zeros is "
    "NaN: the root of the sum of squares has an infinite slope there, also "
    "where `torch.where` chooses something else afterwards. Make the sum "
    "safe before the root, or use `torch.linalg.vector_norm`, which knows "
    "the gradient.",
)

lengths_keep_the_dimension = edit(
    SOLUTION,
    {
        "return torch.linalg.vector_norm(X, dim=-1)": "return X.norm(dim=-1, keepdim=True)",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.lengths_and_gradients,
    tells="`lengths` keeps the last dimension, with one entry. It should go away.",
)

entropy_by_exp_and_sum = edit(
    SOLUTION,
    {
        """
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: """
        p = logits.exp() / logits.exp().sum(-1, keepdim=True)
        return -torch.where(p > 0, p * p.clamp(min=1e-300).log(), 0.0).sum(-1)
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_and_gradients,
    tells="`entropy` takes exp of the logits as they are: exp(10000) is infinite, "
    "and inf / inf is NaN. `F.log_softmax` subtracts the largest first.",
)

entropy_by_log_of_softmax = edit(
    SOLUTION,
    {
        """
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: """
        p = logits.softmax(-1)
        return -(p * p.log()).sum(-1)
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=[
        hidden_tests.entropy_and_gradients,
        hidden_tests.entropy_with_ruled_out_classes,
    ],
    tells="`entropy` takes the log of the softmax. Where a probability is 0 that "
    "is 0 times minus infinity: NaN. Make such entries safe before you take "
    "the log or multiply.",
)

entropy_by_log_softmax_alone = edit(
    SOLUTION,
    {
        """
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: "return -(log_p.exp() * log_p).sum(-1)",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="`F.log_softmax` in `entropy` is right for large logits. For a class "
    "that is ruled out it is -inf, and times its probability 0 that is NaN. "
    "Put 0 there before you multiply.",
)

entropy_by_one_where = edit(
    SOLUTION,
    {
        """
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: """
        p = log_p.exp()
        return -torch.where(p > 0, p * log_p, torch.zeros_like(p)).sum(-1)
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="`entropy` chooses the 0 after multiplying: the value is right, and the "
    "gradient of the product that is not chosen is NaN. Make log p safe "
    "before it is multiplied.",
)

entropy_by_xlogy = edit(
    SOLUTION,
    {
        """
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: "return torch.special.entr(logits.softmax(-1)).sum(-1)",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=[
        hidden_tests.entropy_and_gradients,
        hidden_tests.entropy_with_ruled_out_classes,
    ],
    tells="The value of `entropy` is right where p = 0, its gradient is NaN: the "
    "log has an infinite slope there, whether it stands inside of `entr` "
    "and `xlogy` or before a clamp. Make p, or log p, safe before it is "
    "used.",
)

entropy_with_epsilon = edit(
    SOLUTION,
    {
        """
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: """
        p = logits.softmax(-1)
        return -(p * (p + 1e-9).log()).sum(-1)
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_of_sure_classes,
    tells="Small probabilities are not what they are in your `entropy`: an epsilon "
    "inside the log makes them larger, a threshold drops them. They count, in "
    "the value and in the gradient.",
)

entropy_by_clamp_after_log = edit(
    SOLUTION,
    {
        """
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: """
        p = logits.softmax(-1)
        return -(p * p.log().clamp(min=-1e4)).sum(-1)
        """,
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="The value of `entropy` is right where p = 0, its gradient is NaN: the "
    "log has an infinite slope there, whether it stands inside of `entr` "
    "and `xlogy` or before a clamp. Make p, or log p, safe before it is "
    "used.",
)

entropy_in_bits = edit(
    SOLUTION,
    {
        "return -(log_p.exp() * finite).sum(-1)": "return -(log_p.exp() * finite).sum(-1) / math.log(2)",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_and_gradients,
    tells="`entropy` is asked for with the natural logarithm (nats); you take the "
    "one to base 2.",
)

mse_by_one_where = edit(
    SOLUTION,
    {
        """
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        return error.pow(2).sum() / known.sum().clamp(min=1)
        """: """
        squares = (prediction - target).pow(2)
        squares = torch.where(known, squares, torch.zeros_like(squares))
        return squares.sum() / known.sum().clamp(min=1)
        """,
    },
    breaks=hidden_tests.error_of_known_targets,
    tells="The value of `known_mse` is right, the gradient of an unknown entry is "
    "NaN: the squares are computed with the NaN in them, and choosing 0 "
    "afterwards (`torch.where`, `nansum`) multiplies it by 0. Put a number "
    "in the place of an unknown target before you subtract.",
)

mse_by_nansum = edit(
    SOLUTION,
    {
        """
        known = ~target.isnan()
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        return error.pow(2).sum() / known.sum().clamp(min=1)
        """: """
        squares = (prediction - target).pow(2)
        return squares.nansum() / (~target.isnan()).sum().clamp(min=1)
        """,
    },
    breaks=hidden_tests.error_of_known_targets,
    tells="The value of `known_mse` is right, the gradient of an unknown entry is "
    "NaN: the squares are computed with the NaN in them, and choosing 0 "
    "afterwards (`torch.where`, `nansum`) multiplies it by 0. Put a number "
    "in the place of an unknown target before you subtract.",
)

mse_over_all = edit(
    SOLUTION,
    {
        """
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        return error.pow(2).sum() / known.sum().clamp(min=1)
        """: """
        filled = torch.where(known, target, prediction.detach())
        return (prediction - filled).pow(2).sum() / max(1, known.numel())
        """,
    },
    breaks=hidden_tests.error_of_known_targets,
    tells="`known_mse` divides by the number of all entries. The mean is over "
    "those whose target is known.",
)

mse_towards_zero = edit(
    SOLUTION,
    {
        "torch.where(known, prediction - target, torch.zeros_like(target)": "prediction - torch.nan_to_num(target",
    },
    breaks=hidden_tests.error_of_known_targets,
    tells="`known_mse` takes an unknown target for 0, and pulls the prediction "
    "there. An unknown entry must not count, in value and gradient.",
)

mse_of_nothing = edit(
    SOLUTION,
    {
        """
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        return error.pow(2).sum() / known.sum().clamp(min=1)
        """: "return (prediction[known] - target[known]).pow(2).mean()",
    },
    breaks=hidden_tests.error_without_targets,
    tells="Without a known target `known_mse` divides 0 by 0. The sum divided by "
    "the number of known ones, but at least by 1, is 0.",
)

mse_of_nothing_without_graph = edit(
    SOLUTION,
    {
        """
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        return error.pow(2).sum() / known.sum().clamp(min=1)
        """: """
        if not known.any():
            return torch.zeros((), dtype=prediction.dtype)
        return (prediction[known] - target[known]).pow(2).mean()
        """,
    },
    breaks=hidden_tests.error_without_targets,
    tells="Without a known target `known_mse` returns a new 0, which has no "
    "graph: `backward()` raises. Return a 0 that comes from the prediction.",
)

mse_writes_into_the_target = edit(
    SOLUTION,
    {
        "error = torch.where(known, prediction - target, torch.zeros_like(target))": """
        target[~known] = 0.0
        error = (prediction - target) * known
        """,
    },
    breaks=hidden_tests.target_left_alone,
    tells="`known_mse` writes into the target. The caller's NaNs, which say what "
    "is unknown, are gone after the first call.",
)

all_in_float64 = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        x = x.double()
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))
        """,
        "return torch.linalg.vector_norm(X, dim=-1)": "return torch.linalg.vector_norm(X.double(), dim=-1)",
        "log_p = F.log_softmax(logits, dim=-1)": "log_p = F.log_softmax(logits.double(), dim=-1)",
        "def known_mse(prediction, target):": """
        def known_mse(prediction, target):
            prediction, target = prediction.double(), target.double()
        """,
    },
    breaks=[
        hidden_tests.forms_of_root,
        hidden_tests.forms_of_lengths,
        hidden_tests.forms_of_entropy,
        hidden_tests.forms_of_known_mse,
    ],
    tells="You compute in float64 and return that. The results should have the "
    "dtype of the input.",
)

root_leaves_anomaly_mode_on = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        torch.autograd.set_detect_anomaly(True)
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))
        """,
    },
    breaks=hidden_tests.inputs_left_alone,
    tells="You leave anomaly detection on. It is a switch for all of PyTorch, "
    "finds faults and prevents none, and makes every backward pass after "
    "yours slower.",
)

root_guarded_at_zero_alone = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        zero = x == 0
        safe = torch.where(zero, torch.ones_like(x), x)
        return torch.where(zero, torch.zeros_like(x), safe.sqrt())
        """,
    },
    breaks=hidden_tests.root_and_its_slope,
    tells="`root` guards 0 alone: below 0 the root is NaN, and 0 is asked for.",
)

entropy_of_all_rows = edit(
    SOLUTION,
    {
        "return -(log_p.exp() * finite).sum(-1)": "return -(log_p.exp() * finite).sum()",
        "torch.zeros_like(target)": "0.0",
    },
    breaks=hidden_tests.entropy_and_gradients,
    tells="`entropy` gives one number for all rows. Sum over the last dimension "
    "alone.",
)

mse_as_a_sum = edit(
    SOLUTION,
    {
        """
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        return error.pow(2).sum() / known.sum().clamp(min=1)
        """: "return torch.where(known, prediction - target, 0.0).pow(2).sum()",
    },
    breaks=hidden_tests.error_of_known_targets,
    tells="`known_mse` returns the sum of the squares. The mean is asked for: "
    "divide by the number of known targets.",
)

root_in_float32 = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x)).float()
        return torch.where(positive, safe.sqrt().to(x.dtype), 0.0)
        """,
    },
    breaks=hidden_tests.root_of_extremes,
    tells="You take the root in float32 and convert it back. A float64 "
    "loses half of its digits by that, and 1e-60 becomes 0. Stay in "
    "the dtype of the input.",
)

root_with_a_hook = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        if x.requires_grad:
            x.register_hook(lambda grad: grad.nan_to_num(0.0, 0.0, 0.0))
        return x.clamp(min=0).sqrt()
        """,
    },
    breaks=hidden_tests.no_hook_is_left,
    tells="You repair the gradient by a hook on the input. The hook stays "
    "there and hides NaN and infinity of every other formula that "
    "uses this tensor. Make the formula itself safe.",
)

mse_hides_bad_predictions = edit(
    SOLUTION,
    {
        """
        known = ~target.isnan()
        error = torch.where(known, prediction - target, torch.zeros_like(target))
        """: """
        error = prediction - target
        known = ~error.isnan()
        error = torch.where(known, error, 0.0)
        """,
    },
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="You leave out every entry whose difference is NaN. A prediction "
    "that is NaN where the target is known is a fault of the model, "
    "and this hides it. Ask the target alone.",
)

mse_repairs_differences = edit(
    SOLUTION,
    {
        "torch.where(known, prediction - target, torch.zeros_like(target)": "(prediction - target).nan_to_num(0.0",
    },
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="`nan_to_num` on the difference hides a prediction that is NaN "
    "or infinite, and an infinite target. Ask for the unknown "
    "targets, `target.isnan()`, and leave the rest as it is.",
)

mse_times_a_mask = edit(
    SOLUTION,
    {
        "torch.where(known, prediction - target, torch.zeros_like(target))": "(prediction - target.nan_to_num()) * known",
    },
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="Where a target is unknown, `known_mse` still computes with the "
    "prediction. If that is infinite, times 0 or minus itself it gives NaN. "
    "Choose the known entries by `torch.where` or by indexing.",
)

mse_times_zero_if_unknown = edit(
    SOLUTION,
    {
        "error = torch.where(known, prediction - target, torch.zeros_like(target))": """
        if not known.any():
            return (prediction * 0).sum()
        error = torch.where(known, prediction - target, 0.0)
        """,
    },
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="Without a known target you return 0 times the prediction. That "
    "is NaN if the prediction is infinite. An empty sum, "
    "`prediction[known].sum()`, is 0 and has a graph.",
)

mse_of_finite_targets = edit(
    root_behind_a_relu,
    {
        "return x.relu().sqrt()": """
        positive = x > 0
        safe = torch.where(positive, x, torch.ones_like(x))
        return torch.where(positive, safe.sqrt(), torch.zeros_like(x))
        """,
        "known = ~target.isnan()": "known = target.isfinite()",
    },
    breaks=hidden_tests.predictions_that_are_not_finite,
    tells="You take an infinite target for an unknown one. Unknown is NaN "
    "alone; an infinite target is a fault of the data, and the value "
    "has to show it.",
)

lengths_by_the_largest_of_all = edit(
    SOLUTION,
    {
        "return torch.linalg.vector_norm(X, dim=-1)": """
        size = X.detach().abs().max() if X.numel() else torch.ones(())
        if size == 0:
            size = torch.ones_like(size)
        return torch.linalg.vector_norm(X / size, dim=-1) * size
        """
    },
    breaks=hidden_tests.lengths_of_extremes,
    tells="You divide all rows by the largest entry of the whole tensor. Beside a very "
    "large row a tiny one becomes 0.",
)

small_probabilities_dropped = edit(
    SOLUTION,
    {
        "finite = log_p.masked_fill(log_p == -math.inf, 0.0)": "finite = log_p.masked_fill(log_p.exp() < 1e-12, 0.0)"
    },
    breaks=hidden_tests.entropy_of_sure_classes,
    tells="Small probabilities are not what they are in your `entropy`: an epsilon "
    "inside the log makes them larger, a threshold drops them. They count, in "
    "the value and in the gradient.",
)

seeding_in_safe_gradients = edit(
    SOLUTION,
    {
        "positive = x > 0": """
        torch.manual_seed(0)
        positive = x > 0
        """,
    },
    breaks=hidden_tests.inputs_left_alone,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

entropy_with_a_low_logit = edit(
    SOLUTION,
    {
        "log_p = F.log_softmax(logits, dim=-1)": """
        logits = logits.masked_fill(logits == -math.inf, -1e4)
        log_p = F.log_softmax(logits, dim=-1)
        """
    },
    breaks=hidden_tests.entropy_with_ruled_out_classes,
    tells="`entropy` puts -10000 in the place of `-inf`. Beside logits that are as low "
    "themselves, such a class counts. Leave the logits as they are, and put a number "
    "in the place of its log p alone.",
)

logarithm_of_what_is_above_epsilon = edit(
    SOLUTION,
    {
        """
        log_p = F.log_softmax(logits, dim=-1)
        finite = log_p.masked_fill(log_p == -math.inf, 0.0)
        return -(log_p.exp() * finite).sum(-1)
        """: """
        p = logits.softmax(-1)
        return -(p * p.clamp(min=torch.finfo(p.dtype).eps).log()).sum(-1)
        """
    },
    breaks=hidden_tests.entropy_of_sure_classes,
    tells="Small probabilities are not what they are in your `entropy`: an epsilon "
    "inside the log makes them larger, a threshold drops them. They count, in "
    "the value and in the gradient.",
)
