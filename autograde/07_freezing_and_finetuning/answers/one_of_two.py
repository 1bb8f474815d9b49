"""Answers to `one_of_two` of chapter 07."""

import torch
import torch.nn.functional as F

from course_grader.bank import accepted, wrong

from .. import hidden_tests

NO_USABLE_GRAPH = (
    "`backward_into_b` raises. If the error says that no tensor requires a gradient, you "
    "cut behind b: detach what a gives, not what b gives. If it speaks of inference tensors, "
    "use `no_grad` or `detach`: tensors made under `inference_mode` cannot be saved for a "
    "backward pass."
)

SHARED_MEMORY = (
    "What b gets shares its memory with the features that you return (`detach`, `.data` and "
    "`no_grad` copy nothing). Where b works in place, they are changed. Give b a clone."
)


@accepted(body=True)
def by_no_grad_and_flags():
    def backward_into_b(a, b, x, y):
        with torch.no_grad():
            features = a(x)
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        thawed = [p for p in b.parameters() if p.requires_grad]
        for p in thawed:
            p.requires_grad_(False)
        try:
            loss = F.mse_loss(b(a(x)), y)
            loss.backward()
        finally:
            for p in thawed:
                p.requires_grad_(True)
        return float(loss)


@accepted(body=True)
def by_functional_calls():
    from torch.func import functional_call

    def backward_into_b(a, b, x, y):
        fixed = {name: p.detach() for name, p in a.named_parameters()}
        features = functional_call(a, fixed, (x,))
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        fixed = {name: p.detach() for name, p in b.named_parameters()}
        loss = F.mse_loss(functional_call(b, fixed, (a(x),)), y)
        loss.backward()
        return loss.item()


@accepted(body=True)
def by_autograd_grad():
    def add_gradients(model, loss):
        chosen = [p for p in model.parameters() if p.requires_grad]
        found = torch.autograd.grad(loss, chosen, allow_unused=True)
        for p, gradient in zip(chosen, found, strict=True):
            if gradient is not None:
                p.grad = gradient if p.grad is None else p.grad + gradient
        return loss.item()

    def backward_into_b(a, b, x, y):
        out = a(x)
        features = out.detach().clone()
        return add_gradients(b, F.mse_loss(b(out.detach()), y)), features

    def backward_into_a(a, b, x, y):
        return add_gradients(a, F.mse_loss(b(a(x)), y))


@accepted(body=True)
def by_gradients_put_back():
    def put_back(model, kept):
        for p, gradient in zip(model.parameters(), kept, strict=True):
            p.grad = gradient

    def set_aside(model):
        return [
            None if p.grad is None else p.grad.clone()
            for p in model.parameters()
        ]

    def backward_into_b(a, b, x, y):
        kept = set_aside(a)
        out = a(x)
        loss = F.mse_loss(b(1 * out), y)
        loss.backward()
        put_back(a, kept)
        return loss.item(), out.detach()

    def backward_into_a(a, b, x, y):
        kept = set_aside(b)
        loss = F.mse_loss(b(a(x)), y)
        loss.backward()
        put_back(b, kept)
        return loss.item()


@accepted(body=True)
def by_chain_rule_at_the_joint():
    def backward_into_b(a, b, x, y):
        flags = [p.requires_grad for p in a.parameters()]
        a.requires_grad_(False)
        features = a(x)
        for p, flag in zip(a.parameters(), flags, strict=True):
            p.requires_grad = flag
        loss = F.mse_loss(b(features.detach().clone()), y)
        loss.backward()
        return loss.item(), features.detach()

    def backward_into_a(a, b, x, y):
        out = a(x)
        joint = out.detach().requires_grad_()
        loss = F.mse_loss(b(joint.clone()), y)
        (at_joint,) = torch.autograd.grad(loss, joint)
        out.backward(at_joint)
        return loss.item()


@accepted(body=True)
def by_gradients_set_aside():
    def backward_into_b(a, b, x, y):
        out = a(x)
        seen = out.detach().clone()
        loss = F.mse_loss(b(out.detach()), y)
        loss.backward()
        return float(loss), seen

    def backward_into_a(a, b, x, y):
        aside = [p.grad for p in b.parameters()]
        b.zero_grad(set_to_none=True)
        loss = F.mse_loss(b(a(x)), y)
        loss.backward()
        for p, grad in zip(b.parameters(), aside, strict=True):
            p.grad = grad
        return float(loss)


@accepted(body=True)
def mended_b_cleared_before():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(breaks=hidden_tests.gradients_for_b, tells=NO_USABLE_GRAPH, body=True)
def features_under_inference_mode():
    def backward_into_b(a, b, x, y):
        with torch.inference_mode():
            features = a(x)
        loss = F.mse_loss(b(features), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    breaks=hidden_tests.features_survive_in_place,
    tells=SHARED_MEMORY,
    body=True,
)
def shared_by_data():
    def backward_into_b(a, b, x, y):
        features = a(x).data
        loss = F.mse_loss(b(features), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


FEATURES_THAT_ASK = (
    "The features that you return ask for a gradient: they hang on the graph of a and "
    "keep it alive, or you have called `requires_grad_()` on them. Return them detached, "
    "and leave the flag off."
)


@wrong(
    breaks=hidden_tests.returns_loss_and_features,
    tells=FEATURES_THAT_ASK,
    body=True,
)
def features_on_the_graph():
    def backward_into_b(a, b, x, y):
        features = a(x)
        loss = F.mse_loss(b(features.detach().clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()
