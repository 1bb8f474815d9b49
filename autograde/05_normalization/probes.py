"""Drives what the exercises of chapter 05 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. Layers are built by the learner's classes and then given
the dtype, the parameters and the buffers of the case.
"""

import torch
from torch import nn

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


# batch_norm


def normalize(batch_norm, case):
    arguments = case["x"], case["weight"], case["bias"]
    options = {"eps": case["eps"]} if "eps" in case else {}
    return {"out": batch_norm(*arguments, **options)}


def normalize_and_gradients(batch_norm, case):
    leaves = [
        case[name].clone().requires_grad_() for name in ("x", "weight", "bias")
    ]
    out = batch_norm(*leaves)
    gradients = torch.autograd.grad((out * case["upstream"]).sum(), leaves)
    return {
        "out": out.detach(),
        "gradient_of_x": gradients[0],
        "gradient_of_weight": gradients[1],
        "gradient_of_bias": gradients[2],
    }


# RunningStats


def observe(RunningStats, case):
    """The buffers after training batches."""
    stats = RunningStats(case["x"][0].shape[1], momentum=case["momentum"])
    stats.to(case["x"][0].dtype).train()
    for x in case["x"]:
        stats(x)
    return buffers_of(stats)


def observe_with_default_momentum(RunningStats, case):
    stats = RunningStats(case["x"][0].shape[1]).to(case["x"][0].dtype)
    for x in case["x"]:
        stats(x)
    return buffers_of(stats)


def observe_in_modes(RunningStats, case):
    """The buffers after each batch, where each says its mode and grad mode."""
    stats = RunningStats(case["x"][0].shape[1], momentum=case["momentum"])
    stats.to(case["x"][0].dtype)
    after = []
    for x, mode, grad in zip(
        case["x"], case["training"], case["grad"], strict=True
    ):
        stats.train(mode)
        with torch.set_grad_enabled(grad):
            stats(x)
        after.append(buffers_of(stats))
    return {"after": after}


def observe_with_gradient(RunningStats, case):
    """What comes out, the gradient that passes, and graphs in the buffers."""
    stats = RunningStats(case["x"].shape[1], momentum=case["momentum"])
    stats.to(case["x"].dtype)
    x = case["x"].clone().requires_grad_()
    graphs = []
    for _ in range(2):
        out = stats(x)
        (gradient,) = torch.autograd.grad((out * case["upstream"]).sum(), x)
        held = [getattr(stats, name) for name in BUFFERS]
        graphs.append(any(torch.is_tensor(b) and b.requires_grad for b in held))
    return {
        "out": out.detach(),
        "gradient": gradient,
        "graph_kept": graphs,
        **buffers_of(stats),
    }


def observe_the_state(RunningStats, case):
    """What a new module holds, and whether it knows it for buffers."""
    fresh = RunningStats(case["channels"])
    state = state_of(fresh)
    return {
        "keys": sorted(state),
        "buffers": sorted(name for name, _ in fresh.named_buffers()),
        "parameters": sorted(name for name, _ in fresh.named_parameters()),
        "values": [state.get(name) for name in BUFFERS],
    }


def observe_from_a_state(RunningStats, case):
    """Where a loaded state leads."""
    stats = RunningStats(case["x"].shape[1], momentum=case["momentum"])
    stats.to(case["x"].dtype).load_state_dict(case["state"])
    stats(case["x"])
    return buffers_of(stats)


def buffers_of(module):
    values = {name: getattr(module, name) for name in BUFFERS}
    return {
        name: value.detach().clone() if torch.is_tensor(value) else value
        for name, value in values.items()
    }


def state_of(module):
    return {name: v.clone() for name, v in module.state_dict().items()}


# BatchNorm


def batch_norm_layer(BatchNorm, case):
    """A layer with the options, the parameters and the buffers of the case."""
    options = {
        name: case[name]
        for name in ("eps", "momentum", "track_running_stats")
        if name in case
    }
    layer = BatchNorm(case["weight"].shape[0], **options)
    layer.to(case["weight"].dtype)
    with torch.no_grad():
        layer.weight.copy_(case["weight"])
        layer.bias.copy_(case["bias"])
        if "running_mean" in case:
            layer.running_mean.copy_(case["running_mean"])
            layer.running_var.copy_(case["running_var"])
    return layer


def run_in_modes(BatchNorm, case):
    """Outputs and buffers for batches that each say mode and grad mode."""
    layer = batch_norm_layer(BatchNorm, case)
    outs, after = [], []
    for x, mode, grad in zip(
        case["x"], case["training"], case["grad"], strict=True
    ):
        layer.train(mode)
        with torch.set_grad_enabled(grad):
            outs.append(layer(x).detach())
        after.append(buffers_of(layer))
    return {"outs": outs, "after": after}


def run_rows_in_eval(BatchNorm, case):
    """The outputs for a batch, and for each of its rows alone."""
    layer = batch_norm_layer(BatchNorm, case).eval()
    x = case["x"][0]
    rows = [layer(x[i : i + 1]).detach() for i in range(len(x))]
    return {"batch": layer(x).detach(), "rows": torch.cat(rows)}


def run_backward(BatchNorm, case):
    """The gradients of several batches, one after the other."""
    layer = batch_norm_layer(BatchNorm, case)
    gradients, graphs = [], []
    for x, mode in zip(case["x"], case["training"], strict=True):
        layer.train(mode)
        leaves = [x.clone().requires_grad_(), layer.weight, layer.bias]
        for leaf in leaves:
            leaf.grad = None
        (layer(leaves[0]) * case["upstream"]).sum().backward()
        gradients.append([leaf.grad.clone() for leaf in leaves])
        held = [getattr(layer, name) for name in BUFFERS]
        graphs.append(any(torch.is_tensor(b) and b.requires_grad for b in held))
    return {"gradients": gradients, "graph_kept": graphs}


def run_from_a_state(BatchNorm, case):
    """The state in which it begins, and what a loaded one gives in eval."""
    channels = case["x"].shape[1]
    fresh = BatchNorm(channels, track_running_stats=case["track_running_stats"])
    begins = state_of(fresh)
    fresh.to(case["x"].dtype).load_state_dict(case["state"])
    parameters = sorted(name for name, _ in fresh.named_parameters())
    return {
        "begins": {name: begins[name] for name in sorted(begins)},
        "parameters": parameters,
        "buffers_are_none": [getattr(fresh, n) is None for n in BUFFERS],
        "out": fresh.eval()(case["x"]).detach(),
    }


# one_reshape


def run_group_norm(GroupNorm, case):
    arguments = case["num_groups"], case["num_channels"]
    layer = GroupNorm(*arguments, **case.get("options", {}))
    return run_layer(layer, case)


def construct_group_norm(GroupNorm, case):
    """What the constructor makes; the layer is not called."""
    layer = GroupNorm(case["num_groups"], case["num_channels"])
    return {"weight": layer.weight.detach().clone()}


def run_instance_norm(InstanceNorm, case):
    layer = InstanceNorm(case["num_channels"], **case.get("options", {}))
    return run_layer(layer, case)


def run_layer_norm(LayerNorm, case):
    layer = LayerNorm(case["normalized_shape"], **case.get("options", {}))
    return run_layer(layer, case)


def run_layer(layer, case):
    """The output in the mode of the case, with its parameters if it has any."""
    layer.to(case["x"].dtype)
    with torch.no_grad():
        if "weight" in case:
            layer.weight.copy_(case["weight"])
            layer.bias.copy_(case["bias"])
    layer.train(case.get("training", True))
    return {"out": layer(case["x"]).detach()}


def gradients_of_all(GroupNorm, InstanceNorm, LayerNorm, case):
    """Gradients of the three layers with respect to x and their parameters."""
    channels, width = case["x"].shape[1], case["x"].shape[3]
    layers = {
        "group": GroupNorm(2, channels),
        "instance": InstanceNorm(channels, affine=True),
        "layer": LayerNorm([width]),
    }
    found = {}
    for name, layer in layers.items():
        layer.to(case["x"].dtype)
        x = case["x"].clone().requires_grad_()
        leaves = [x, *layer.parameters()]
        loss = (layer(x) * case["upstream"]).sum()
        found[name] = list(torch.autograd.grad(loss, leaves))
    return found


def states_of_all(GroupNorm, InstanceNorm, LayerNorm, case):
    """The parameters with which the layers begin, with and without affine."""
    groups, channels = case["num_groups"], case["num_channels"]
    layers = {
        "group": GroupNorm(groups, channels),
        "group without": GroupNorm(groups, channels, affine=False),
        "instance": InstanceNorm(channels),
        "instance with": InstanceNorm(channels, affine=True),
        "layer": LayerNorm(case["normalized_shape"]),
    }
    return {
        name: {
            key: value.detach().clone()
            for key, value in sorted(layer.named_parameters())
        }
        for name, layer in layers.items()
    } | {
        f"keys of {name}": sorted(layer.state_dict())
        for name, layer in layers.items()
    }


# predict_one


class Fails(nn.Module):
    """Raises at its call, as a layer does that is given the wrong shape."""

    def forward(self, x):
        raise LookupError("this layer always fails")


def model_of(case):
    """A trained model: the parameters and buffers come with the case."""
    if case["kind"] == "mlp":
        layers = [nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU()]
        layers += [nn.Dropout(0.5), nn.Linear(5, case["outputs"])]
    else:
        layers = [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5)]
        layers += [nn.Linear(4, case["outputs"])]
    model = nn.Sequential(*layers).to(case["x"].dtype)
    model.load_state_dict(case["state"])
    model.train(case["training"])
    for place in case["frozen"]:
        model[place].eval()
    return model


def predict(predict_one, case):
    model = model_of(case)
    out = predict_one(model, case["x"])
    return {
        "out": out.detach(),
        "carries_a_graph": out.requires_grad,
        "modes": [module.training for module in model.modules()],
        # The text of a module names its options, such as p and momentum.
        "options": [repr(module) for module in model.modules()],
        "learns": [p.requires_grad for p in model.parameters()],
        "state": state_of(model),
    }


def predict_twice(predict_one, case):
    """A second answer must not depend on the first."""
    model = model_of(case)
    first, second = (predict_one(model, case["x"]) for _ in range(2))
    return {"first": first.detach(), "second": second.detach()}


def predict_and_fail(predict_one, case):
    """The state of a model whose last layer raises, and what was raised."""
    model = model_of(case)
    before = predict_one(model, case["x"]).detach()
    model.append(Fails())
    modes = [module.training for module in model.modules()]
    reaches = "nothing"
    try:
        predict_one(model, case["x"])
    except LookupError:
        reaches = "its exception"
    return {
        "before": before,
        "reaches": reaches,
        "modes": modes == [module.training for module in model.modules()],
        "state": state_of(model),
    }


# quiz


def answer(quiz, case):
    """The letter for the question of the case, in small letters.

    The ticket comes with the case: what is recorded of one call is of no use
    in another.
    """
    letter = str(quiz()[case["question"]]).strip().lower()
    return {"letter": letter, "ticket": case["ticket"]}
