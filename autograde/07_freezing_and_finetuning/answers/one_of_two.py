"""Answers to `one_of_two` of chapter 07."""

import torch
import torch.nn.functional as F

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


detached_after_b = edit(
    mended_b_cleared_before,
    {
        "loss = F.mse_loss(b(features.clone()), y)": "loss = F.mse_loss(b(features.clone()).detach(), y)",
    },
    breaks=hidden_tests.gradients_for_b,
    tells=NO_USABLE_GRAPH,
)


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


not_detached = edit(
    mended_b_cleared_before,
    {
        "features = a(x).detach()": "features = a(x)",
        "return loss.item(), features": "return loss.item(), features.detach()",
    },
    breaks=hidden_tests.gradients_for_b,
    tells="You cut nothing: a gets gradients too. Detach what a gives before b sees it.",
)

shared_by_detach = edit(
    mended_b_cleared_before,
    {
        "loss = F.mse_loss(b(features.clone()), y)": "loss = F.mse_loss(b(features), y)",
    },
    breaks=hidden_tests.features_survive_in_place,
    tells=SHARED_MEMORY,
)


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


@wrong(
    breaks=hidden_tests.features_survive_in_place,
    tells=SHARED_MEMORY,
    body=True,
)
def shared_under_no_grad():
    def backward_into_b(a, b, x, y):
        with torch.no_grad():
            features = a(x)
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


@wrong(
    breaks=hidden_tests.returns_loss_and_features,
    tells="You return the loss as a tensor, with its graph. A Python `float` was asked for: `loss.item()`.",
    body=True,
)
def loss_as_a_tensor():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss, features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss


features_computed_again = edit(
    mended_b_cleared_before,
    {"return loss.item(), features": "return loss.item(), a(x).detach()"},
    breaks=hidden_tests.once_in_their_modes_b,
    tells="You run a twice. In training mode its statistics move twice and its dropout draws twice, so that the features are others than b saw. Keep the first ones.",
)

features_in_eval_mode = edit(
    mended_b_cleared_before,
    {
        "features = a(x).detach()": """
        was = a.training
        features = a.eval()(x).detach()
        a.train(was)
        """,
    },
    breaks=hidden_tests.once_in_their_modes_b,
    tells="You switch a to eval mode for the features. It was to run in the mode that it has: not training a model and its mode are two things.",
)

gradients_of_a_cleared = edit(
    mended_b_cleared_before,
    {
        "features = a(x).detach()": "features = a(x)",
        "return loss.item(), features": """
        a.zero_grad()
        return loss.item(), features.detach()
        """,
    },
    breaks=hidden_tests.adds_for_b,
    tells="You let gradients into both models and then clear those of a. What was there from earlier steps is lost. Let none in.",
)

b_cleared_before = edit(
    mended_b_cleared_before,
    {
        "loss = F.mse_loss(b(features.clone()), y)": """
        loss = F.mse_loss(b(features.clone()), y)
        b.zero_grad()
        """,
    },
    breaks=hidden_tests.adds_for_b,
    tells="You clear the gradients of b before the backward pass. It was to *add* to what is there, as `backward` does; the caller says when to clear.",
)


@wrong(
    breaks=hidden_tests.gradients_for_a,
    tells="You detach what a gives also on the way to a. That cuts the only way that its gradient can take. To train a through b, freeze the parameters of b.",
    body=True,
)
def detached_on_the_way_to_a():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x).detach()), y)
        loss.backward()
        return loss.item()


b_under_no_grad = edit(
    mended_b_cleared_before,
    {
        "loss = F.mse_loss(b(a(x)), y)": """
        hidden = a(x)
        with torch.no_grad():
            out = b(hidden)
        loss = F.mse_loss(out, y)
        """,
    },
    breaks=hidden_tests.gradients_for_a,
    tells="You run b under `no_grad`. The gradient of a must come back through the operations of b: they belong on the graph, with the parameters of b frozen.",
)

both_get_gradients = edit(
    mended_b_cleared_before,
    {"loss.backward(inputs=chosen)": "loss.backward()"},
    breaks=hidden_tests.gradients_for_a,
    tells="Plain `backward` fills the gradients of b as well. Freeze the parameters of b for the time of the call, or say `inputs=`.",
)

b_in_eval_mode = edit(
    SOLUTION,
    {
        "wanted = [q for q in a.parameters() if q.requires_grad]": """
        chosen = [p for p in a.parameters() if p.requires_grad]
        b.eval()
        """,
        "loss.backward(inputs=wanted)": "loss.backward()",
    },
    breaks=hidden_tests.gradients_for_a,
    tells="You put b into eval mode. That changes how it computes and freezes nothing: its parameters still get gradients.",
)

gradients_of_b_cleared = edit(
    mended_b_cleared_before,
    {
        "loss.backward(inputs=chosen)": """
        loss.backward()
        b.zero_grad()
        """,
    },
    breaks=hidden_tests.adds_for_a,
    tells="You let gradients into both models and then clear those of b. What was there from earlier steps is lost. Let none in.",
)

b_stays_frozen = edit(
    mended_b_cleared_before,
    {
        "chosen = [p for p in a.parameters() if p.requires_grad]": """
        chosen = [p for p in a.parameters() if p.requires_grad]
        b.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.flags_as_they_were,
    tells="You froze b and left it frozen: the next step that is to train it has nothing to train. Put the flags back.",
)


@wrong(
    breaks=hidden_tests.flags_as_they_were,
    tells="After the call you set *all* flags of b to True, also of parameters that were frozen before. Remember which they were.",
    body=True,
)
def all_of_b_thawed():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        b.requires_grad_(False)
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        b.requires_grad_(True)
        return loss.item()


all_of_a_thawed = edit(
    mended_b_cleared_before,
    {
        "features = a(x).detach()": """
        a.requires_grad_(False)
        features = a(x)
        a.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.flags_as_they_were,
    tells="After the call you set *all* flags of a to True, also of parameters that were frozen before. Remember which they were, or detach instead.",
)

through_a_copy_of_b = edit(
    mended_b_cleared_before,
    {
        "loss = F.mse_loss(b(a(x)), y)": """
        other = copy.deepcopy(b).requires_grad_(False)
        loss = F.mse_loss(other(a(x)), y)
        """,
    },
    breaks=hidden_tests.once_in_their_modes_a,
    tells="You run a copy of b. Its running statistics move, and those of b do not. Run b itself.",
)

unused_parameters_raise = edit(
    mended_b_cleared_before,
    {
        "loss.backward(inputs=chosen)": """
        found = torch.autograd.grad(loss, chosen)
        for p, g in zip(chosen, found, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        """,
    },
    breaks=hidden_tests.frozen_and_unused_a,
    tells="`torch.autograd.grad` refuses parameters that took no part in the forward pass. Pass `allow_unused=True`, and leave the `grad` of those alone.",
)

unused_get_zeros = edit(
    mended_b_cleared_before,
    {
        "loss.backward(inputs=chosen)": """
        found = torch.autograd.grad(loss, chosen, materialize_grads=True)
        for p, g in zip(chosen, found, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        """,
    },
    breaks=hidden_tests.frozen_and_unused_a,
    tells="You give unused parameters a gradient of zeros. To an optimizer that is a gradient: momentum and weight decay move them. `None` stays `None`.",
)

frozen_parameters_asked = edit(
    mended_b_cleared_before,
    {
        "chosen = [p for p in a.parameters() if p.requires_grad]": "chosen = [p for p in a.parameters()]",
    },
    breaks=hidden_tests.frozen_and_unused_a,
    tells="You ask for the gradients of all parameters of a, also of frozen ones, which `backward` refuses. Leave those out.",
)

gradients_replaced = edit(
    mended_b_cleared_before,
    {
        "loss.backward(inputs=chosen)": """
        found = torch.autograd.grad(loss, chosen, allow_unused=True)
        for p, g in zip(chosen, found, strict=True):
            if g is not None:
                p.grad = g
        """,
    },
    breaks=hidden_tests.adds_for_a,
    tells="You put the new gradients in the place of the earlier ones. `backward` adds to what is there, and so should you.",
)

flag_of_x_left_on = edit(
    SOLUTION,
    {
        "wanted = [q for q in a.parameters() if q.requires_grad]": "x.requires_grad_(True)",
        "loss.backward(inputs=wanted)": "loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])",
    },
    breaks=hidden_tests.flags_as_they_were,
    tells="You switch `requires_grad` of x on and leave it so: x gets a gradient in "
    "every later step. No flag was to change.",
)

features_flattened = edit(
    SOLUTION,
    {
        "return loss.item(), features": "return loss.item(), features.flatten(1)",
        "wanted = [q for q in a.parameters() if q.requires_grad]": "",
        "loss.backward(inputs=wanted)": "loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])",
    },
    breaks=hidden_tests.returns_loss_and_features,
    tells="You flatten the features. What `a(x)` gave was asked for, in its shape.",
)

features_of_single_precision = edit(
    SOLUTION,
    {
        "return loss.item(), features": "return loss.item(), features.float()",
        "wanted = [q for q in a.parameters() if q.requires_grad]": "",
        "loss.backward(inputs=wanted)": "loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])",
    },
    breaks=hidden_tests.returns_loss_and_features,
    tells="You turn the features into float32. What `a(x)` gave was asked for, in its "
    "dtype.",
)

earlier_gradients_kept_by_reference = edit(
    SOLUTION,
    {
        "wanted = [q for q in a.parameters() if q.requires_grad]": "kept = [p.grad for p in b.parameters()]",
        "loss.backward(inputs=wanted)": """
        loss.backward()
        for p, grad in zip(b.parameters(), kept, strict=True):
            p.grad = grad
        """,
    },
    breaks=hidden_tests.adds_for_a,
    tells="You keep the gradients of b and put them back, but the same tensors, into "
    "which `backward` has added meanwhile. Keep clones, or let no gradient in.",
)


@wrong(
    breaks=hidden_tests.into_a_in_place,
    tells="You give b a leaf that wants a gradient. Where b works in place in its first "
    "layer, PyTorch refuses: a leaf cannot be changed. Give b a clone of it.",
    body=True,
)
def a_leaf_at_the_joint():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        out = a(x)
        joint = out.detach().requires_grad_()
        loss = F.mse_loss(b(joint), y)
        loss.backward(inputs=[joint])
        out.backward(joint.grad)
        return loss.item()


@wrong(
    breaks=hidden_tests.once_in_their_modes_a,
    tells="You run b in eval mode on the way to a. Each model was to run in the mode "
    "that it has.",
    body=True,
)
def b_through_eval_into_a():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        was = b.training
        loss = F.mse_loss(b.eval()(a(x)), y)
        b.train(was)
        loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])
        return loss.item()


b_frozen_by_names = edit(
    by_no_grad_and_flags,
    {
        "thawed = [p for p in b.parameters() if p.requires_grad]": """
        thawed = [
            p
            for name, p in b.named_parameters()
            if p.requires_grad and name.endswith(("weight", "bias"))
        ]
        """,
    },
    breaks=hidden_tests.gradients_for_a,
    tells="You freeze what is called `weight` or `bias` in b. A parameter of another name gets a gradient. Take all of `b.parameters()`.",
)

into_b_puts_one_mode_back = edit(
    SOLUTION,
    {
        "features = a(x).detach()": """
        was = a.training
        features = a(x).detach()
        a.train(was)
        """
    },
    breaks=hidden_tests.once_in_their_modes_b,
    tells="`a.train(was)` sets the mode of every layer inside, and wakes one that was in "
    "eval mode, as a frozen BatchNorm is. Do not touch the modes.",
)

into_b_under_inference_mode = edit(
    SOLUTION,
    {
        "features = a(x).detach()": """
        with torch.inference_mode():
            features = a(x)
        """
    },
    breaks=hidden_tests.returns_loss_and_features,
    tells="Features that were made under `inference_mode` can never be saved for a "
    "backward pass, so nobody can train on them. `no_grad` or `detach` is enough.",
)

seeding_in_one_of_two = edit(
    SOLUTION,
    {
        "features = a(x).detach()": """
        torch.manual_seed(0)
        features = a(x).detach()
        """,
    },
    breaks=hidden_tests.once_in_their_modes_b,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)


SECOND_LOOK = (
    "Where a number is not finite you call a model once more. Each runs once, whatever "
    "comes of it: a second pass moves running statistics again, and the loss is no better."
)

second_look_at_b = edit(
    by_no_grad_and_flags,
    {
        """
        loss = F.mse_loss(b(features.clone()), y)
        """: """
        loss = F.mse_loss(b(features.clone()), y)
        if not loss.isfinite():
            loss = F.mse_loss(b(features.clone()), y)
        """
    },
    breaks=hidden_tests.once_in_their_modes_b,
    tells=SECOND_LOOK,
)

second_look_at_the_features = edit(
    by_no_grad_and_flags,
    {
        """
        features = a(x)
        """: """
        features = a(x)
        if not features.isfinite().all():
            features = a(x)
        """
    },
    breaks=hidden_tests.once_in_their_modes_b,
    tells=SECOND_LOOK,
)

second_look_at_both = edit(
    by_no_grad_and_flags,
    {
        """
        loss = F.mse_loss(b(a(x)), y)
        """: """
        loss = F.mse_loss(b(a(x)), y)
        if not loss.isfinite():
            loss = F.mse_loss(b(a(x)), y)
        """
    },
    breaks=hidden_tests.once_in_their_modes_a,
    tells=SECOND_LOOK,
)

b_frozen_by_layers = edit(
    by_no_grad_and_flags,
    {
        "thawed = [p for p in b.parameters() if p.requires_grad]": """
        thawed = [
            p
            for layer in b.modules()
            if not list(layer.children())
            for p in layer.parameters()
            if p.requires_grad
        ]
        """,
        "return float(loss)": "return loss.item()",
    },
    breaks=hidden_tests.gradients_for_a,
    tells="You freeze the layers inside b. A parameter that b, or a part with layers in it, "
    "holds itself gets a gradient. Take all of `b.parameters()`.",
)

both_clear_before = edit(
    SOLUTION,
    {
        "features = a(x).detach()": """
        b.zero_grad()
        features = a(x).detach()
        """,
        "wanted = [q for q in a.parameters() if q.requires_grad]": """
        a.zero_grad()
        wanted = [q for q in a.parameters() if q.requires_grad]
        """,
    },
    breaks=[hidden_tests.adds_for_a, hidden_tests.adds_for_b],
    tells="You clear the gradients of the model that is trained. They were to be *added* to, "
    "as `backward` does; the caller says when to clear.",
)

features_that_are_a_leaf = edit(
    SOLUTION,
    {"features = a(x).detach()": "features = a(x).detach().requires_grad_()"},
    breaks=hidden_tests.returns_loss_and_features,
    tells=FEATURES_THAT_ASK,
)
