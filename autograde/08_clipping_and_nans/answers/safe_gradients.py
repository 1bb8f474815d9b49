"""Answers to `safe_gradients` of chapter 08."""

import math

import torch
import torch.nn.functional as F

from course_grader.bank import accepted


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
