"""Drives what the exercises of chapter 07 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. All models are small and, but for the last exercise, in
float64, so that what must be equal is equal to the last bits.
"""

import copy
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

SGD = {"momentum": 0.9, "weight_decay": 0.1}


def fill(model, values):
    """Gives every parameter and every running statistic numbers of the case."""
    at = 0
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(taken(values, at, parameter))
            at += parameter.numel()
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(5 + taken(values, at, buffer))
            elif name.endswith("running_var"):
                buffer.copy_(2 + taken(values, at, buffer).abs())
            elif name.endswith("num_batches_tracked"):
                buffer.fill_(3)
            at += buffer.numel()
    return model


def taken(values, at, like):
    places = (at + torch.arange(like.numel())) % len(values)
    return values[places].reshape(like.shape)


def copied(named):
    return {
        name: None if value is None else value.detach().clone()
        for name, value in named
    }


def named(model):
    """All names of all parameters: one that is shared has several."""
    return list(model.named_parameters(remove_duplicate=False))


def gradients(model):
    return copied((name, p.grad) for name, p in named(model))


def flags(model):
    return {name: p.requires_grad for name, p in named(model)}


def modes(model):
    return {name: one.training for name, one in model.named_modules()}


def settings_of_layers(model):
    """Numbers and words that the layers hold, as a BatchNorm's momentum."""
    plain = (bool, int, float, str, type(None))
    return {
        f"{name}.{key}": value
        for name, one in model.named_modules()
        for key, value in vars(one).items()
        if isinstance(value, plain) and key != "training"
    }


def sequence(**layers):
    return nn.Sequential(OrderedDict(layers))


class Scale(nn.Module):
    """A layer whose parameter is called neither weight nor bias."""

    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * self.scale


class Scaled(nn.Module):
    """A layer, and beside it a parameter that lies in no layer."""

    def __init__(self, features, out):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.layer = nn.Linear(features, out)

    def forward(self, x):
        return self.layer(x * self.scale)


class Hollow(nn.Module):
    """A layer whose two parameters hold no numbers, and do nothing."""

    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.zeros(0))
        self.two = nn.Parameter(torch.zeros(0))

    def forward(self, x):
        return x


# freeze, unfreeze, trainable_sgd


def flat():
    return sequence(
        layer1=nn.Linear(3, 4),
        layer10=nn.Linear(4, 4),
        act=nn.Tanh(),
        layer2=nn.Linear(4, 4),
        head=nn.Linear(4, 2),
    )


def nested():
    return sequence(
        encoder=sequence(
            layer1=nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh()),
            layer11=nn.Linear(4, 4),
            gain=Scaled(4, 4),
            act=nn.Tanh(),
        ),
        layer1=nn.Linear(4, 4),
        encoder_head=nn.Linear(4, 3),
        head=nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)),
    )


def shared():
    model = sequence(
        first=nn.Linear(3, 3), middle=nn.Linear(3, 3), last=nn.Linear(3, 3)
    )
    model.last.weight = model.first.weight
    return model


def tied():
    body = sequence(one=nn.Linear(3, 3), two=nn.Linear(3, 3))
    body.two.weight = body.one.weight
    return sequence(body=body, head=nn.Linear(3, 3))


def normed():
    return sequence(
        body=sequence(one=nn.Linear(3, 4), norm=nn.BatchNorm1d(4)),
        drop=nn.Dropout(0.25),
        head=nn.Linear(4, 2),
    )


def wrapped():
    return sequence(
        module=sequence(layer1=nn.Linear(3, 4)),
        layer1=nn.Linear(4, 4),
        hollow=Hollow(),
        head=nn.Linear(4, 2),
    )


MODELS = {
    "flat": flat,
    "nested": nested,
    "shared": shared,
    "tied": tied,
    "normed": normed,
    "wrapped": wrapped,
}


def a_model(case):
    model = fill(MODELS[case["model"]]().double(), case["values"])
    for name, parameter in named(model):
        if name in case.get("frozen", ()):
            parameter.requires_grad_(False)
    return model


def train(model, optimizer, x, steps, set_to_none=True):
    for step in range(steps):
        optimizer.zero_grad(set_to_none=set_to_none)
        model(x + step).square().mean().backward()
        optimizer.step()


def flags_after(freeze, case):
    """Freezes, one prefix after the other, a model that has gradients."""
    model = a_model(case)
    model.train(case.get("training", True))
    for number, (_, parameter) in enumerate(named(model)):
        parameter.grad = parameter.detach() + number
    before, objects = modes(model), [id(p) for _, p in named(model)]
    settings = settings_of_layers(model)
    returned = [freeze(model, prefix) for prefix in case["prefixes"]]
    return {
        "flags": flags(model),
        "names": returned,
        "gradients": gradients(model),
        "values": copied(named(model)),
        "the_modes_stayed": before == modes(model),
        "the_layers'_settings_stayed": settings == settings_of_layers(model),
        "the_parameters_are_the_same_objects": objects
        == [id(p) for _, p in named(model)],
    }


def trained_after_freezing(freeze, case):
    """Trains with an optimizer that holds everything, freezes, and goes on."""
    model = a_model(case)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, **SGD)
    train(model, optimizer, case["x"], case["steps_before"])
    freeze(model, case["prefix"])
    before = copied(named(model))
    train(model, optimizer, case["x"], 3, case["set_to_none"])
    after = copied(named(model))
    under = [one for one in before if one.startswith(case["prefix"] + ".")]
    return {
        "a_frozen_parameter_moved": any(
            not before[n].equal(after[n]) for n in under
        ),
        "a_frozen_parameter_has_a_gradient_or_asks_for_one": any(
            parameter.grad is not None
            for name, parameter in named(model)
            if name in under
        ),
        "values": after,
    }


def held_by(optimizer, model):
    """The settings of every parameter in the optimizer, by its first name, and
    whether one is held twice."""
    first_name = {}
    for name, parameter in named(model):
        first_name.setdefault(id(parameter), name)
    held, ids = {}, []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            ids.append(id(parameter))
            name = first_name.get(id(parameter), "not of the model")
            held[name] = [
                float(group.get(one, 0.0))
                for one in ("lr", "momentum", "weight_decay")
            ]
    return {
        "settings of what the optimizer holds": held,
        "how often parameters are held": len(ids) != len(set(ids)),
        "empty groups": sum(
            not one["params"] for one in optimizer.param_groups
        ),
    }


def optimizer_made(trainable_sgd, case):
    model = a_model(case)
    settings = {one: case[one] for one in ("lr", "momentum", "weight_decay")}
    if case.get("by_place"):
        optimizer = trainable_sgd(model, *settings.values())
    else:
        optimizer = trainable_sgd(model, **settings)
    data = held_by(optimizer, model)
    if any(p.requires_grad for p in model.parameters()):
        train(model, optimizer, case["x"], 3)
    values = copied(named(model))
    # as `unfreeze` does: an optimizer of pairs takes no plain parameter
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    return {
        **data,
        "is_sgd": isinstance(optimizer, torch.optim.SGD),
        "values": values,
    }


def trained_after_unfreezing(unfreeze, case):
    """Trains with a part frozen, unfreezes, and goes on with one optimizer."""
    model = a_model(case)
    model.train(case.get("training", True))
    known = [p for name, p in named(model) if name in case["held"]]
    # the first parameter and the last have settings of their own
    groups = [
        {"params": known[:1], "lr": 0.01},
        {"params": known[1:-1]},
        {"params": known[-1:], "lr": 0.02, "momentum": 0.5},
    ]
    groups = [group for group in groups if group["params"]]
    if case.get("adam"):
        settings = {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.2}
        optimizer = torch.optim.AdamW(groups, lr=case["lr"], **settings)
    else:
        settings = {**SGD, "nesterov": True}
        optimizer = torch.optim.SGD(groups, lr=case["lr"], **settings)
    train(model, optimizer, case["x"], 2)
    for name, parameter in named(model):
        if name in case.get("frozen_later", ()):
            parameter.requires_grad_(False)
        if not parameter.requires_grad:
            # a frozen parameter may have a gradient from earlier
            earlier = torch.ones_like(parameter)
            parameter.grad = earlier if case.get("earlier", True) else None
    if "alike" in case:
        one, other = (model.get_parameter(name) for name in case["alike"])
        with torch.no_grad():
            one.copy_(other)
    before, settings = modes(model), settings_of_layers(model)
    values = copied(named(model))
    names = unfreeze(model, case["prefix"], optimizer=optimizer)
    untouched = all(values[name].equal(p) for name, p in named(model))
    data = held_by(optimizer, model)
    flags_then, gradients_then = flags(model), gradients(model)
    train(model, optimizer, case["x"], 3)
    return {
        **data,
        "names": names,
        "flags": flags_then,
        "gradients": gradients_then,
        "values": copied(named(model)),
        "the_modes_stayed": before == modes(model),
        "unfreezing_left_the_values_as_they_were": untouched,
        "the_layers'_settings_stayed": settings == settings_of_layers(model),
    }


def prefix_given(freeze, unfreeze, case):
    """Calls one of the two with a prefix under which there may be nothing."""
    model = a_model(case)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    was_refused = False
    try:
        if case["call"] == "freeze":
            freeze(model, case["prefix"])
        else:
            unfreeze(model, case["prefix"], optimizer)
    except (ValueError, KeyError, AttributeError):
        was_refused = True
    seen = {"refused": was_refused, "values": copied(named(model))}
    # of what is refused it is open whether something was changed before
    return seen if was_refused else {**seen, "flags": flags(model)}


# PartlyFrozen


def row_block(features):
    return nn.Sequential(nn.Linear(features, 4), nn.BatchNorm1d(4), nn.Tanh())


def rows():
    return sequence(
        block1=row_block(3),
        block10=row_block(4),
        block2=row_block(4),
        head=nn.Linear(4, 2),
    )


def single_norms():
    return sequence(
        first=nn.Linear(3, 4),
        norm=nn.BatchNorm1d(4),
        second=nn.Linear(4, 4),
        norm2=nn.BatchNorm1d(4),
        head=nn.Linear(4, 2),
    )


def with_dropout():
    return sequence(
        block1=nn.Sequential(row_block(3), nn.Dropout(0.5)),
        block2=nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5)),
        head=nn.Linear(6, 2),
    )


def images():
    return sequence(
        stem=sequence(
            conv=nn.Conv2d(2, 3, 3),
            inner=nn.Sequential(nn.BatchNorm2d(3), nn.Tanh()),
        ),
        body=nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh()),
        flat=nn.Flatten(),
        head=nn.Linear(16, 2),
    )


def instances():
    norms = [
        nn.InstanceNorm2d(n, affine=True, track_running_stats=True)
        for n in (3, 4)
    ]
    return sequence(
        stem=nn.Sequential(nn.Conv2d(2, 3, 3), norms[0]),
        body=nn.Sequential(nn.Conv2d(3, 4, 3), norms[1]),
        flat=nn.Flatten(),
        head=nn.Linear(16, 2),
    )


class Shifted(nn.Module):
    """A layer of one's own that looks at its mode, and has a part."""

    def __init__(self):
        super().__init__()
        self.part = nn.Identity()

    def forward(self, x):
        return x + 1 if self.training else x


def with_own_layers():
    return sequence(
        block1=nn.Sequential(nn.Linear(3, 4), nn.Sequential(Shifted())),
        block2=nn.Sequential(nn.Linear(4, 4), Shifted()),
        head=nn.Linear(4, 2),
    )


class Kept(nn.BatchNorm1d):
    """A norm that stays in eval, by a `train` of its own."""

    def train(self, mode=True):
        return super().train(False)


def with_own_modes():
    return sequence(block1=nn.Linear(3, 4), norm=Kept(4), head=nn.Linear(4, 2))


def namesakes():
    return sequence(
        norm=nn.BatchNorm1d(3),
        body=sequence(one=nn.Linear(3, 4), norm=nn.BatchNorm1d(4)),
        head=nn.Linear(4, 2),
    )


def rows_alone():
    return sequence(block1=row_block(3), head=nn.Linear(4, 2))


def in_two_places():
    """A norm that stands twice, and a weight of two layers."""
    norm = nn.BatchNorm1d(3)
    model = sequence(
        one=norm,
        middle=nn.Linear(3, 3),
        two=nn.Sequential(norm, nn.Tanh()),
        last=nn.Linear(3, 3),
    )
    model.last.weight = model.middle.weight
    return model


def own_parameters():
    return sequence(
        block1=Scaled(3, 4),
        block2=nn.Sequential(Scale(4), nn.BatchNorm1d(4)),
        head=nn.Linear(4, 2),
    )


NETS = {
    "own parameters": own_parameters,
    "in two places": in_two_places,
    "rows": rows,
    "single norms": single_norms,
    "dropout": with_dropout,
    "images": images,
    "instances": instances,
    "rows alone": rows_alone,
    "own layers": with_own_layers,
    "own modes": with_own_modes,
    "namesakes": namesakes,
}


def a_net(case):
    return fill(NETS[case["net"]]().double(), case["values"])


def is_under(name, prefixes):
    return any(name.startswith(prefix + ".") for prefix in prefixes)


def put_into(net, mode):
    """Whether the call returned the net."""
    return {
        "train": lambda: net.train(),
        "train(True)": lambda: net.train(True),
        "train(False)": lambda: net.train(False),
        "eval": lambda: net.eval(),
        "head.eval": lambda: net.model.head.eval() and net,
    }[mode]() is net


MODES_OF_THE_REST = "`training` of the net and of the rest"


def modes_of_the_rest(net, model, prefixes):
    """`training` of the net, of the model and of its layers that are not frozen."""
    return {
        "net": net.training,
        **{
            f"net.model.{name}".rstrip("."): one.training
            for name, one in model.named_modules()
            if name not in prefixes and not is_under(name, prefixes)
        },
    }


def trained_partly(PartlyFrozen, case):
    """Trains all parameters that there are, with momentum and weight decay."""
    model = a_net(case)
    for name, parameter in model.named_parameters():
        if name in case.get("frozen_before", ()):
            parameter.requires_grad_(False)
    before = copied(model.state_dict().items())
    net = PartlyFrozen(model, prefixes=case["prefixes"])
    if case.get("copied"):
        net = copy.deepcopy(net)
        model = net.model
    for mode in case["modes"]:
        put_into(net, mode)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, **SGD)
    outs = []
    for step in range(3):
        optimizer.zero_grad()
        out = net(case["x"] + step)
        outs.append(out.detach().clone())
        out.square().mean().backward()
        optimizer.step()
    state = net.state_dict()
    after = copied((key, state.get("model." + key)) for key in before)
    weights = [name for name, _ in named(model)]
    parts = {"frozen_buffers": {}, "frozen_weights": {}}
    parts |= {"rest_buffers": {}, "rest_weights": {}}
    for key, value in after.items():
        part = "frozen" if is_under(key, case["prefixes"]) else "rest"
        kind = "weights" if key in weights else "buffers"
        parts[f"{part}_{kind}"][key] = value
    parameters = net.named_parameters()
    return {
        **parts,
        "outs": outs,
        "a_frozen_parameter_has_a_gradient_or_asks_for_one": any(
            p.grad is not None or p.requires_grad
            for name, p in parameters
            if is_under(name.removeprefix("model."), case["prefixes"])
        ),
        "the_rest_was_trained": any(
            value is not None and not value.equal(before[key])
            for key, value in after.items()
            if not is_under(key, case["prefixes"])
        ),
    }


def output_of_part(PartlyFrozen, case):
    """What the frozen part, the first of the model, makes of a batch, of the
    first samples of it, and of one alone, after some steps in training mode."""
    net = PartlyFrozen(a_net(case), case["prefixes"])
    if case["modes"]:
        put_into(net, case["modes"][0])
    seen = []
    part = net.model.get_submodule(case["prefixes"][0])
    part.register_forward_hook(
        lambda module, given, out: seen.append(out.detach().clone())
    )
    with torch.no_grad():
        for samples in (case["x"], case["x"][:3], case["x"][:1], case["x"]):
            net(samples)
    return {"outs": seen}


def gradients_before_part(PartlyFrozen, case):
    """The gradients of what lies before a frozen part, and of the input."""
    model = a_net(case)
    net = PartlyFrozen(model, case["prefixes"])
    modes_seen = []
    for mode in case["modes"]:
        put_into(net, mode)
        modes_seen.append(modes_of_the_rest(net, model, case["prefixes"]))
    x = case["x"].clone().requires_grad_()
    net(x).square().mean().backward()
    first = next(iter(model.children()))
    return {
        MODES_OF_THE_REST: modes_seen,
        "gradients": copied((n, p.grad) for n, p in first.named_parameters()),
        "of_the_input": x.grad,
    }


def outputs_in_modes(PartlyFrozen, case):
    """The outputs after each change of mode, and the state in the end."""
    model = a_net(case)
    settings = settings_of_layers(model)
    if case.get("hooked"):
        model.register_forward_hook(lambda layer, given, out: 2 * out)
    net = PartlyFrozen(model, case["prefixes"])
    outs, returned, modes_seen = [], [], []
    with torch.no_grad():
        for mode in case["modes"]:
            returned.append(put_into(net, mode))
            modes_seen.append(modes_of_the_rest(net, model, case["prefixes"]))
            outs.append(net(case["x"]).clone())
    state = net.state_dict()
    return {
        "outs": outs,
        "the_net_was_returned": returned,
        MODES_OF_THE_REST: modes_seen,
        "the_layers'_settings_stayed": settings == settings_of_layers(model),
        "state": copied(
            (key, state.get("model." + key)) for key in model.state_dict()
        ),
    }


def made_of(PartlyFrozen, case):
    """What the class is made of: the model and its names."""
    model = a_net(case)
    names = list(model.state_dict())
    net = PartlyFrozen(model, case["prefixes"])
    state = net.state_dict()
    return {
        "`net.model is model`": net.model is model,
        "missing": [n for n in names if "model." + n not in state],
        "too_many": len(state) - len(names),
        "weights": [p.detach().clone() for p in net.parameters()],
        "values": copied((n, state.get("model." + n)) for n in names),
    }


# backward_into_b, backward_into_a


class WithSpare(nn.Module):
    """A layer whose bias is frozen, and one that the forward pass never uses."""

    def __init__(self, features, out):
        super().__init__()
        self.used = nn.Linear(features, out)
        self.used.bias.requires_grad_(False)
        self.spare = nn.Linear(features, out)

    def forward(self, x):
        return torch.tanh(self.used(x))


def with_a_frozen_bias(layer):
    layer.bias.requires_grad_(False)
    return layer


def with_own_names():
    model = Scaled(4, 2)
    model.layer = nn.Sequential(Scale(4), nn.Linear(4, 2))
    return model


FIRST = {
    "plain": lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh()),
    "sigmoid": lambda: nn.Sequential(nn.Linear(3, 4), nn.Sigmoid()),
    "norm": lambda: nn.Sequential(
        nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Dropout(0.4), nn.Linear(6, 4)
    ),
    "spare": lambda: WithSpare(3, 4),
    "frozen": lambda: with_a_frozen_bias(nn.Linear(3, 4)),
}
SECOND = {
    "plain": lambda: nn.Sequential(nn.Linear(4, 2)),
    "in place": lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2)),
    "leaky in place": lambda: nn.Sequential(
        nn.LeakyReLU(0.1, inplace=True), nn.Linear(4, 2)
    ),
    "norm": lambda: nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.4), nn.Linear(5, 2)
    ),
    "spare": lambda: nn.Sequential(WithSpare(4, 4), nn.Linear(4, 2)),
    "own names": with_own_names,
}


class Pair:
    """Two models of a case, and what is to be seen of them afterwards."""

    def __init__(self, case):
        self.models = {}
        self.calls = {"a": 0, "b": 0}
        for name, makers in (("a", FIRST), ("b", SECOND)):
            model = fill(makers[case[name]]().double(), case["values"])
            model.train(case["training"][name])
            if name in case["inner_eval"]:
                model[1].eval()
            if case["earlier"]:
                for parameter in model.parameters():
                    parameter.grad = 0.5 + parameter.detach().cos()
            model.register_forward_pre_hook(self.counts(name))
            self.models[name] = model

    def counts(self, name):
        def count(model, given):
            self.calls[name] += 1

        return count

    def seen(self):
        data = {"number_of_calls": dict(self.calls)}
        for name, model in self.models.items():
            data[f"gradients_of_{name}"] = gradients(model)
            data[f"flags_of_requires_grad_in_{name}"] = flags(model)
            data[f"flags_of_training_in_{name}"] = modes(model)
            data[f"state_of_{name}"] = copied(model.state_dict().items())
        return data


def into_b(backward_into_b, case):
    pair = Pair(case)
    returned = backward_into_b(
        pair.models["a"], pair.models["b"], case["x"], case["y"]
    )
    loss, features = returned
    asks = isinstance(features, torch.Tensor) and features.requires_grad
    for_inference = isinstance(features, torch.Tensor) and (
        features.is_inference()
    )
    if isinstance(features, torch.Tensor):
        features = features.detach().clone()
    return {
        "loss": loss,
        "features": features,
        "the_features_ask_for_a_gradient": asks,
        "no_model_can_be_trained_on_the_features": for_inference,
        **pair.seen(),
    }


def into_a(backward_into_a, case):
    pair = Pair(case)
    loss = backward_into_a(
        pair.models["a"], pair.models["b"], case["x"], case["y"]
    )
    return {"loss": loss, **pair.seen()}


def both_ways(backward_into_b, backward_into_a, case):
    """The two functions in turn on one pair, gradients added up, as a training
    loop of two losses does before its two steps."""
    pair = Pair(case)
    given = pair.models["a"], pair.models["b"], case["x"], case["y"]
    losses = [
        backward_into_b(*given)[0],
        backward_into_a(*given),
        backward_into_b(*given)[0],
    ]
    check = F.mse_loss(pair.models["b"](pair.models["a"](case["x"])), case["y"])
    return {
        "losses": losses,
        "check": check.item(),
        "`x.requires_grad`": case["x"].requires_grad,
        **pair.seen(),
    }


# load_matching


def a_target(tied):
    model = sequence(
        encoder=nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)),
        encoder2=nn.Linear(4, 4),
        head=nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)),
        head2=nn.Linear(2, 2),
        subhead=nn.Linear(2, 2),
        trunk=sequence(head=nn.Linear(2, 2), gain=Scale(2), none=Scale(0)),
    )
    # a buffer that the state dict leaves out
    model.encoder2.register_buffer("scale", torch.ones(4), persistent=False)
    if tied:
        model.subhead.weight = model.head2.weight
    return model


def loaded(load_matching, case):
    """Loads a file into a model, and trains the model on."""
    model = fill(a_target(case.get("tied", False)), case["values"])
    model.to(getattr(torch, case["model_dtype"]))
    model.encoder2.requires_grad_(False)
    model.train(case["training"])
    file, names = case["file"], list(case["file"])
    objects = [id(one) for one in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    flags_before, modes_before = flags(model), modes(model)
    if case["prefix"] is None:
        done, left = load_matching(model, file, case["head"])
    else:
        options = {"head": case["head"], "prefix": case["prefix"]}
        done, left = load_matching(model, file, **options)
    state = copied(model.state_dict().items())
    gradients_then = gradients(model)
    same = objects == [id(one) for one in model.parameters()]
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.add_(1)
    return {
        "loaded": sorted(done),
        "skipped": sorted(left),
        "types": [type(done).__name__, type(left).__name__],
        "state": state,
        "gradients": gradients_then,
        "the_parameters_are_the_same_objects": same,
        "the_flags_stayed": flags_before == flags(model),
        "the_modes_stayed": modes_before == modes(model),
        "the_file's_keys_stayed": names == list(file),
        "file_after": dict(file),
    }
