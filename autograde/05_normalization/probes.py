"""Drives what the exercises of chapter 05 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. Layers are built by the learner's classes and then given
the dtype, the parameters and the buffers of the case. Where a layer has not what
it is to be given, or no gradient reaches a tensor, that is returned as a fact.
"""

import contextlib
import copy

import torch
from torch import nn

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


def gradients_of(out, upstream, leaves):
    """The gradient of each leaf, and the names of those that none reaches."""
    asked = {name: t for name, t in leaves.items() if t.requires_grad}
    found = dict.fromkeys(leaves)
    if out.requires_grad and asked:
        gradients = torch.autograd.grad(
            (out * upstream).sum(), list(asked.values()), allow_unused=True
        )
        found.update(zip(asked, gradients, strict=True))
    unreached = [name for name, gradient in found.items() if gradient is None]
    gradients = {
        name: torch.zeros_like(leaves[name]) if gradient is None else gradient
        for name, gradient in found.items()
    }
    return {"unreached": unreached, "gradients": gradients}


def unfit(layer, given):
    """What of the given tensors the layer cannot take, in words; "" if none."""
    for name, value in given.items():
        own = getattr(layer, name, None)
        if not torch.is_tensor(own):
            return f"has no tensor `{name}`"
        if own.shape != value.shape:
            return f"has a `{name}` of another shape"
    return ""


# batch_norm


def normalize(batch_norm, case):
    by_place = [
        case[one] for one in ("x", "weight", "bias", "eps") if one in case
    ]
    by_name = {}
    if case.get("by_name"):
        by_name = {one: case[one] for one in ("weight", "bias", "eps")}
        by_place = by_place[:1]
    grad = contextlib.nullcontext()
    if "grad" in case:
        grad = torch.set_grad_enabled(case["grad"])
    with grad:
        return {"out": batch_norm(*by_place, **by_name)}


def normalize_and_gradients(batch_norm, case):
    """The gradients of those arguments that the case wants to learn."""
    leaves = {
        name: case[name].clone().requires_grad_() for name in case["learn"]
    }
    names = ("x", "weight", "bias")
    out = batch_norm(*(leaves.get(name, case[name]) for name in names))
    found = gradients_of(out, case["upstream"], leaves)
    return {"out": out.detach(), **found}


def normalize_and_look_back(batch_norm, case):
    """The result in the grad mode of the case, and what became of the arguments
    and of that mode."""
    arguments = case["x"], case["weight"], case["bias"]
    with torch.set_grad_enabled(case["grad"]):
        out = batch_norm(*arguments)
        grad_mode = torch.is_grad_enabled()
    return {
        "out": out.detach(),
        "asks_for_a_gradient": [one.requires_grad for one in arguments],
        "grad_mode": grad_mode,
    }


def normalize_under_no_grad(batch_norm, case):
    """Whether a graph comes along where arguments that learn meet `no_grad`."""
    names = ("x", "weight", "bias")
    leaves = [case[name].clone().requires_grad_() for name in names]
    with torch.no_grad():
        out = batch_norm(*leaves)
    return {"out": out.detach(), "carries_a_graph": out.requires_grad}


# RunningStats


def observer(RunningStats, case, x):
    """A new module for batches such as x."""
    options = {"momentum": case["momentum"]} if "momentum" in case else {}
    if case.get("by_place"):
        return RunningStats(x.shape[1], *options.values()).to(x.dtype)
    return RunningStats(num_features=x.shape[1], **options).to(x.dtype)


def observe(RunningStats, case):
    """The buffers after training batches."""
    stats = observer(RunningStats, case, case["x"][0]).train()
    for x in case["x"]:
        stats(x)
    return buffers_of(stats)


def observe_what_is_spoiled(RunningStats, case):
    """The buffers, where an infinity is as good as a NaN: `var_mean` gives the
    one and `mean` the other; and what came out in both modes."""
    stats = observer(RunningStats, case, case["x"][0]).train()
    outs = [stats(x).detach() for x in case["x"]]
    stats.eval()
    outs += [stats(x).detach() for x in case["x"]]
    buffers = {
        name: torch.where(value.isfinite(), value, torch.nan)
        if torch.is_tensor(value) and value.is_floating_point()
        else value
        for name, value in buffers_of(stats).items()
    }
    return {**buffers, "outs": outs}


def observe_in_turn(RunningStats, case):
    """The buffers of two modules that are fed in turn."""
    first = observer(RunningStats, case, case["x"][0])
    if case.get("copied"):
        second = copy.deepcopy(first)
    else:
        second = observer(RunningStats, case, case["x"][0])
    if "loaded" in case:
        first.load_state_dict(case["loaded"])
    for i, x in enumerate(case["x"]):
        (second if i % 2 else first)(x)
    return {"first": buffers_of(first), "second": buffers_of(second)}


def observe_in_modes(RunningStats, case):
    """The buffers after each batch, where each says its mode and grad mode."""
    stats = observer(RunningStats, case, case["x"][0])
    after = []
    for x, mode, grad in zip(
        case["x"], case["training"], case["grad"], strict=True
    ):
        if case.get("by_attribute"):
            stats.training = mode
        elif mode:
            stats.train()
        else:
            stats.eval()
        with torch.set_grad_enabled(grad):
            stats(x)
        after.append(buffers_of(stats))
    return {"after": after}


def observe_and_let_through(RunningStats, case):
    """What comes out in both modes, and whether x asks for a gradient."""
    x = case["x"]
    stats = observer(RunningStats, case, x)
    outs, grad_mode = [], []
    for training, grad in (
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ):
        with torch.set_grad_enabled(grad):
            outs.append(stats.train(training)(x))
            grad_mode.append(torch.is_grad_enabled())
    return {
        "outs": [out.detach() for out in outs],
        "grad_mode": grad_mode,
        "asks_for_a_gradient": [x.requires_grad],
        **buffers_of(stats),
    }


def observe_with_gradient(RunningStats, case):
    """What comes out, the gradient that passes, and graphs in the buffers."""
    stats = observer(RunningStats, case, case["x"])
    x = case["x"].clone().requires_grad_()
    graphs, gradients, unreached = [], [], []
    for mode in case["training"]:
        stats.train(mode)
        out = stats(x)
        found = gradients_of(out, case["upstream"], {"x": x})
        gradients.append(found["gradients"]["x"])
        unreached += found["unreached"]
        held = [getattr(stats, name) for name in BUFFERS]
        graphs.append(any(torch.is_tensor(b) and b.requires_grad for b in held))
    return {
        "out": out.detach(),
        "gradients": gradients,
        "unreached": unreached,
        "graph_kept": graphs,
        **buffers_of(stats),
    }


def observe_the_state(RunningStats, case):
    """What a new module holds, and whether it knows it for buffers."""
    fresh = RunningStats(case["channels"])
    state = state_of(fresh)
    return {
        "keys": sorted(state),
        "buffers": sorted(
            name for name, _ in fresh.named_buffers() if name in state
        ),
        "parameters": sorted(name for name, _ in fresh.named_parameters()),
        "values": [state.get(name) for name in BUFFERS],
    }


def observe_from_a_state(RunningStats, case):
    """Where a state leads that is loaded into a module which has seen a batch,
    and one in another dtype before."""
    x = case["x"]
    stats = RunningStats(x.shape[1], momentum=case["momentum"])
    stats(x.float())
    stats.to(x.dtype)(x)
    # a copy: where it is assigned, buffers that move are not the case's
    state = {name: value.clone() for name, value in case["state"].items()}
    stats.load_state_dict(state, assign=case["assign"])
    stats(x)
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
    """A layer with the options, the parameters and the buffers of the case, and
    words for what it cannot take."""
    options = {
        name: case[name]
        for name in ("eps", "momentum", "track_running_stats")
        if name in case
    }
    channels = case["weight"].shape[0]
    if case.get("by_place"):
        layer = BatchNorm(channels, *options.values())
    else:
        layer = BatchNorm(num_features=channels, **options)
    layer.to(case["weight"].dtype)
    if case.get("frozen"):
        layer.requires_grad_(False)
    names = ("weight", "bias", "running_mean", "running_var")
    given = {name: case[name] for name in names if name in case}
    complaint = unfit(layer, given)
    for name in BUFFERS:
        if not complaint and not hasattr(layer, name):
            complaint = f"has no attribute `{name}`"
    with torch.no_grad():
        for name, value in given.items():
            if not complaint:
                getattr(layer, name).copy_(value)
    return layer, complaint


def run_in_modes(BatchNorm, case):
    """Outputs and buffers for batches that each say mode and grad mode."""
    layer, complaint = batch_norm_layer(BatchNorm, case)
    if complaint:
        return {"unfit": complaint}
    outs, after, graphs = [], [], []
    for x, mode, grad in zip(
        case["x"], case["training"], case["grad"], strict=True
    ):
        if case.get("by_attribute"):
            layer.training = mode
        else:
            layer.train(mode)
        with torch.set_grad_enabled(grad):
            out = layer(x)
        outs.append(out.detach())
        graphs.append(out.requires_grad)
        after.append(buffers_of(layer))
    return {"outs": outs, "after": after, "carries_a_graph": graphs}


def run_rows_in_eval(BatchNorm, case):
    """The outputs for a batch, and for each of its rows alone."""
    layer, complaint = batch_norm_layer(BatchNorm, case)
    if complaint:
        return {"unfit": complaint}
    layer.eval()
    x = case["x"][0]
    rows = [layer(x[i : i + 1]).detach() for i in range(len(x))]
    return {
        "output for the whole batch": layer(x).detach(),
        "outputs for single rows": torch.cat(rows),
    }


def run_in_turn(BatchNorm, case):
    """Two layers, of which the first alone sees the training batch."""
    outs, layers = [], []
    for i in range(2):
        layer, complaint = batch_norm_layer(BatchNorm, case)
        if complaint:
            return {"unfit": complaint}
        if i and case.get("copied"):
            layer = copy.deepcopy(layers[0])
        layers.append(layer)
        outs.append(layer.eval()(case["x"][0]).detach())
    layers[0].train()(case["x"][1])
    outs += [layer.eval()(case["x"][0]).detach() for layer in layers]
    return {"outs": outs}


def run_with_a_state_loaded_in_eval(BatchNorm, case):
    """The outputs in eval before and after another state is loaded, after its
    each of its tensors has grown, and after others have taken their place;
    then the count after a batch in training. Whether eval counts is seen
    elsewhere."""
    layer, complaint = batch_norm_layer(BatchNorm, case)
    if complaint:
        return {"unfit": complaint}
    layer.eval()
    with torch.set_grad_enabled(case["grad"]):
        before = layer(case["x"]).detach()
        layer.load_state_dict(case["state"])
        outs = [layer(case["x"]).detach()]
        for name in ("running_var", "running_mean", "weight", "bias"):
            with torch.no_grad():  # one alone, as a step of an optimizer does
                getattr(layer, name).mul_(4)
            outs.append(layer(case["x"]).detach())
        for factor in (1, 9):
            state = {n: factor * value for n, value in case["state"].items()}
            layer.load_state_dict(state, assign=True)
            loaded = layer.num_batches_tracked.clone()
            outs.append(layer(case["x"]).detach())
    in_eval = layer.num_batches_tracked - loaded
    layer.train()(case["x"])
    count = layer.num_batches_tracked - in_eval
    return {
        "output before loading": before,
        "outputs after loading": outs,
        "num_batches_tracked": count,
    }


def run_backward(BatchNorm, case):
    """The gradients of several batches, one after the other."""
    layer, complaint = batch_norm_layer(BatchNorm, case)
    if complaint:
        return {"unfit": complaint}
    still = case.get("frozen_one")
    if still:
        getattr(layer, still).requires_grad_(False)
    gradients, graphs, unreached = [], [], []
    for x, mode in zip(case["x"], case["training"], strict=True):
        layer.train(mode)
        leaves = {
            "x": x.clone().requires_grad_(),
            "weight": layer.weight,
            "bias": layer.bias,
        }
        leaves.pop(still, None)
        found = gradients_of(layer(leaves["x"]), case["upstream"], leaves)
        gradients.append(found["gradients"])
        unreached += found["unreached"]
        held = [getattr(layer, name) for name in BUFFERS]
        graphs.append(any(torch.is_tensor(b) and b.requires_grad for b in held))
    return {
        "gradients": gradients,
        "unreached": unreached,
        "graph_kept": graphs,
    }


def run_from_a_state(BatchNorm, case):
    """The state in which it begins, and what one that is loaded after a batch
    gives in eval."""
    channels = case["x"].shape[1]
    fresh = BatchNorm(channels, track_running_stats=case["track_running_stats"])
    begins = state_of(fresh)
    fresh.to(case["x"].dtype)(case["x"])
    fresh.load_state_dict(case["state"])
    loaded = state_of(fresh)
    parameters = sorted(name for name, _ in fresh.named_parameters())
    return {
        "first_values": {name: begins[name] for name in sorted(begins)},
        "loaded_values": {name: loaded[name] for name in sorted(loaded)},
        "parameters": parameters,
        **{f"{n}_is_None": getattr(fresh, n, 0) is None for n in BUFFERS},
        "out": fresh.eval()(case["x"]).detach(),
    }


# one_reshape


def run_group_norm(GroupNorm, case):
    arguments = case["num_groups"], case["num_channels"]
    by_place = case.get("by_place", ())
    layer = GroupNorm(*arguments, *by_place, **case.get("options", {}))
    return run_layer(layer, case)


def construct_group_norm(GroupNorm, case):
    """That the constructor takes the numbers; the layer is not called, and its
    parameters are the matter of other checks."""
    numbers = [case["num_groups"], case["num_channels"]]
    GroupNorm(*numbers)
    return {"numbers that are taken": numbers}


def run_instance_norm(InstanceNorm, case):
    arguments = case["num_channels"], *case.get("by_place", ())
    layer = InstanceNorm(*arguments, **case.get("options", {}))
    return run_layer(layer, case)


def run_layer_norm(LayerNorm, case):
    arguments = case["normalized_shape"], *case.get("by_place", ())
    layer = LayerNorm(*arguments, **case.get("options", {}))
    return run_layer(layer, case)


def run_layer(layer, case):
    """The output in the mode of the case, with its parameters if it has any."""
    layer.to(case["x"].dtype).requires_grad_(not case.get("frozen"))
    given = {name: case[name] for name in ("weight", "bias") if name in case}
    complaint = unfit(layer, given)
    if complaint:
        return {"unfit": complaint}
    with torch.no_grad():
        for name, value in given.items():
            getattr(layer, name).copy_(value)
    layer.train(case.get("training", True))
    return {"out": layer(case["x"]).detach()}


def layers_of_all(GroupNorm, InstanceNorm, LayerNorm, case):
    channels, width = case["x"].shape[1], case["x"].shape[3]
    layers = {
        "group norm": GroupNorm(2, channels),
        "instance norm": InstanceNorm(channels, affine=True),
        "layer norm": LayerNorm([width]),
    }
    return {name: layer.to(case["x"].dtype) for name, layer in layers.items()}


def run_all(GroupNorm, InstanceNorm, LayerNorm, case):
    """The outputs of the three layers for the same x, in the mode of the case."""
    layers = layers_of_all(GroupNorm, InstanceNorm, LayerNorm, case)
    mode = case.get("training", True)
    return {
        name: layer.train(mode)(case["x"]).detach()
        for name, layer in layers.items()
    }


def run_all_again(GroupNorm, InstanceNorm, LayerNorm, case):
    """The outputs of the three layers for x, and whether more calls gave the
    same."""
    layers = layers_of_all(GroupNorm, InstanceNorm, LayerNorm, case)
    without = GroupNorm(2, case["x"].shape[1], affine=False)
    layers["group norm without affine"] = without.to(case["x"].dtype)
    outs, alike = {}, True
    for name, layer in layers.items():
        first = layer(case["x"]).detach().clone()
        for _ in range(case["calls"] - 1):
            out = layer(case["x"]).detach()
            alike = alike and torch.allclose(out, first, rtol=1e-4, atol=1e-4)
        outs[name] = first
    return {"outs": outs, "alike": alike}


def run_all_after_training(GroupNorm, InstanceNorm, LayerNorm, case):
    """The three layers for x in eval and in training, without gradients, after
    a call in training with other data, of fewer dimensions where that may be; and
    whether a graph comes along."""
    outs, graphs = {}, []
    images = case["earlier"]
    earlier = {
        "group norm": images.flatten(2),
        "instance norm": images,
        "layer norm": images.flatten(0, 2),
    }
    for name, layer in layers_of_all(
        GroupNorm, InstanceNorm, LayerNorm, case
    ).items():
        layer.train()(earlier[name])
        with torch.no_grad():
            pair = [layer.train(mode)(case["x"]) for mode in (False, True)]
        for mode, out in zip(("eval", "training"), pair, strict=True):
            outs[f"{name} in {mode}"] = out.detach()
        graphs += [out.requires_grad for out in pair]
    return {**outs, "carries_a_graph": graphs}


def gradients_of_all(GroupNorm, InstanceNorm, LayerNorm, case):
    """Gradients of the three layers with respect to x and their parameters."""
    layers = layers_of_all(GroupNorm, InstanceNorm, LayerNorm, case)
    channels = case["x"].shape[1]
    bare = {
        "group norm without affine": GroupNorm(2, channels, affine=False),
        "instance norm without affine": InstanceNorm(channels),
    }
    if case["x_learns"]:
        layers |= {name: one.to(case["x"].dtype) for name, one in bare.items()}
    found, unreached = {}, []
    for name, layer in layers.items():
        layer.train(case["training"])
        x = case["x"].clone().requires_grad_(case["x_learns"])
        leaves = {"x": x} if case["x_learns"] else {}
        leaves |= dict(layer.named_parameters())
        one = gradients_of(layer(x), case["upstream"], leaves)
        for leaf, gradient in one["gradients"].items():
            found[f"gradient of {leaf} of {name}"] = gradient
        unreached += [f"{leaf} of {name}" for leaf in one["unreached"]]
    return {"unreached": unreached, **found}


def states_of_all(GroupNorm, InstanceNorm, LayerNorm, case):
    """The parameters with which the layers begin, with and without affine, and
    the list that was given."""
    groups, channels = case["num_groups"], case["num_channels"]
    shape = list(case["normalized_shape"])
    layers = {
        "group norm": GroupNorm(num_groups=groups, num_channels=channels),
        "group norm without affine": GroupNorm(groups, channels, affine=False),
        "instance norm": InstanceNorm(num_features=channels),
        "instance norm with affine": InstanceNorm(channels, affine=True),
        "layer norm": LayerNorm(normalized_shape=shape),
    }
    begins = {"normalized_shape_after": shape}
    for name, layer in layers.items():
        parameters = dict(layer.named_parameters())
        begins[f"parameters of {name}"] = sorted(parameters)
        for key in ("weight", "bias"):
            value = parameters.get(key)
            begins[f"{key} of {name}"] = (
                None if value is None else value.detach().clone()
            )
        begins[f"state of {name}"] = sorted(layer.state_dict())
    return begins


# predict_one


class Fails(nn.Module):
    """Raises at its call, as a layer does that is given the wrong shape, or as
    any layer does when somebody presses the stop button."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


class ByMode(nn.Module):
    """Asks for its own mode, as layers do that PyTorch does not know, and has
    parts, the last of which lies deep."""

    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(nn.Sequential(nn.Identity()))

    def forward(self, x):
        return 3 * x + 1 if self.training else x


class DoublesInTraining(nn.Module):
    """Asks for its own mode, and has no parts."""

    def forward(self, x):
        return 2 * x if self.training else x


class WakesAPart(nn.Module):
    """Puts a part of its own into training at each call, as a model does that
    wants its dropout in evaluation, too."""

    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(nn.Identity())

    def forward(self, x):
        self.part.train()
        return self.part(x)


def layers_of(case):
    """The layers of a model, those of "deep" in two levels."""
    outputs = case["outputs"]
    if case["kind"] == "bare":
        return [nn.Dropout(0.5), ByMode(), DoublesInTraining()]
    if case["kind"] == "tokens":
        embedded = [nn.Embedding(9, 2), nn.Dropout(0.5), nn.Flatten()]
        return [*embedded, nn.Linear(12, outputs)]
    if case["kind"] == "twice":
        norm = nn.BatchNorm1d(6, affine=False)
        return [norm, nn.Sequential(norm, nn.Dropout(0.5))]
    if case["kind"] == "mlp":
        layers = [nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU()]
        return [*layers, nn.Dropout(0.5, inplace=True), nn.Linear(5, outputs)]
    if case["kind"] == "rows":
        return [nn.Linear(6, outputs), nn.Dropout(0.5)]
    channels = case["x"].shape[0]
    layers = [nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU()]
    if case["kind"] == "dense":
        return [*layers, nn.Dropout(0.5), nn.Conv2d(4, outputs, 3)]
    pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if case["kind"] == "deep":
        inner = nn.Sequential(
            nn.BatchNorm2d(4, affine=False), nn.Dropout2d(0.5)
        )
        blocks = nn.Sequential(*layers, inner), nn.Sequential(*pool, ByMode())
        return [*blocks, nn.Linear(4, outputs)]
    return [*layers, *pool, nn.Dropout(0.5), nn.Linear(4, outputs)]


def model_of(case):
    """A trained model: the parameters and buffers come with the case."""
    # A model need not be a container: one layer, or one that asks itself.
    lone = {"single": lambda: nn.BatchNorm1d(6), "asking": ByMode}
    layers = lone.get(case["kind"], lambda: nn.Sequential(*layers_of(case)))
    model = layers().to(torch.float64)
    model.load_state_dict(case["state"])
    model.train(case["training"])
    for place in case["frozen"]:
        model.get_submodule(place).eval()
    for place in case.get("awake", []):
        model.get_submodule(place).train()
    for name, parameter in model.named_parameters():
        parameter.grad = torch.full_like(parameter, 0.25)
        parameter.requires_grad_(name not in case.get("fixed", []))
    if case.get("flat"):
        model.append(nn.Flatten(0))
    if case.get("wakes"):
        model.append(WakesAPart().train(case["training"]))
    if case.get("hooked_back"):
        model.register_full_backward_hook(lambda model, given, out: None)
    if case.get("hooked"):
        model.register_forward_hook(lambda layer, given, out: 2 * out + 1)
    return model


def by_module(model, attribute):
    """What the function gives for each module of the model, by its place."""
    return {
        ".".join(["model", *name.split(".")]).rstrip("."): attribute(module)
        for name, module in model.named_modules()
    }


def modes_of(model):
    return by_module(model, lambda module: module.training)


def number_of_hooks(module):
    kinds = "_forward_pre_hooks", "_forward_hooks", "_backward_hooks"
    return sum(len(getattr(module, kind)) for kind in kinds)


def gradients_kept(model):
    named = model.named_parameters()
    return {name: p.grad for name, p in named}


def predict(predict_one, case):
    model, x = model_of(case), case["x"]
    if case.get("x_learns"):
        x = x.clone().requires_grad_()
    passes = []
    model.register_forward_pre_hook(
        lambda model, given: passes.append(
            sum(one.numel() for one in given) // x.numel()
        )
    )
    random_state = torch.get_rng_state()
    out = predict_one(model, x)
    draws = not torch.equal(random_state, torch.get_rng_state())
    return {
        "out": out.detach(),
        "number_of_passes": len(passes),
        "number_of_samples": sum(passes),
        "carries_a_graph": out.requires_grad,
        "draws": draws,
        "x": (x.detach(), x.requires_grad),
        "training": modes_of(model),
        "hooks": by_module(model, number_of_hooks),
        # The text of a module names its options, such as p and momentum.
        "options": by_module(model, repr),
        "requires_grad": {
            name: p.requires_grad for name, p in model.named_parameters()
        },
        "gradients": gradients_kept(model),
        "state": state_of(model),
    }


def predict_without_gradients(predict_one, case):
    """The answer under `no_grad`, and whether that is still on afterwards."""
    model = model_of(case)
    with torch.no_grad():
        out = predict_one(model, case["x"])
        grad_mode = torch.is_grad_enabled()
    return {"out": out.detach(), "grad_mode": grad_mode}


def predict_twice(predict_one, case):
    """A second answer must not depend on the first, nor the modes afterwards."""
    model = model_of(case)
    first = predict_one(model, case["x"])
    model.train(not case["training"])
    second = predict_one(model=model, x=case["x"])
    return {
        "first": first.detach(),
        "second": second.detach(),
        "training": modes_of(model),
    }


ERRORS = {
    one.__name__: one for one in (LookupError, KeyboardInterrupt, SystemExit)
}


def predict_and_fail(predict_one, case):
    """The state of a model whose last layer raises, and what was raised."""
    model = model_of(case)
    before = predict_one(model, case["x"]).detach()
    model.append(Fails(ERRORS[case.get("error", "LookupError")]("it fails")))
    reaches = "nothing"
    try:
        predict_one(model, case["x"])
    except tuple(ERRORS.values()) as caught:
        reaches = type(caught).__name__
    return {
        "before": before,
        "error that the caller hears": reaches,
        "grad_mode": torch.is_grad_enabled(),
        "training": modes_of(model),
        "gradients": gradients_kept(model),
        "state": state_of(model),
    }


# quiz


def answer(quiz, case):
    """The letter for the question of the case, in small letters.

    The ticket comes with the case: what is recorded of one call is of no use
    in another.
    """
    given, form, letter = quiz(), "a letter", ""
    if not isinstance(given, dict):
        form = "no dict"
    elif case["question"] not in given:
        form = "no answer"
    else:
        letter = str(given[case["question"]]).strip().lower()
        if letter not in ("a", "b", "c", "d"):
            form, letter = "no letter", ""
    return {"letter": letter, "form": form, "ticket": case["ticket"]}
