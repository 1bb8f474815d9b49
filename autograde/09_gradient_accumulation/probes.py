"""Drives what the exercises of chapter 09 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. The models here write down what happens to them: which
rows went forward, which came backward, how many micro-batches' worth of
memory waited for a backward pass, how many graphs outlived theirs, and what
each optimizer step found.
"""

import copy
import functools
import weakref
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import saved_tensor_bytes

WIDTH = 16
SEED = 20241016  # not one that anybody writes


class Unfilled(nn.Linear):
    """A layer that is given its values: drawing some would take longer than all else
    about it."""

    def reset_parameters(self):
        pass


linear = functools.partial(Unfilled, dtype=torch.float64)


class Classifier(nn.Module):
    """A classifier of rows that writes down its rows.

    Its middle layer shares its weights with the one behind it, and a batch norm
    is never used: only its mode counts. With `own` it has a parameter beside its
    layers, or two that it adds up (`"sum"`), or one whose gradient is NaN while the
    loss is none (`"nan"`), or finite while the loss is NaN (`"apart"`). If `traps`, its first layer is frozen and
    one layer is never used. Of samples with a third dimension it takes the mean
    over that; if it `reads_ids`, it takes whole numbers alone. `loudness`
    multiplies its logits, and so all gradients.
    """

    def __init__(self, num_features, num_classes, traps, loudness, own):
        super().__init__()
        self.loudness, self.num_calls, self.modes = loudness, 0, []
        self.settings = []
        self.first = linear(num_features, WIDTH)
        self.middle = linear(WIDTH, WIDTH)
        self.again = linear(WIDTH, WIDTH)
        self.again.weight = self.middle.weight
        self.again.bias = self.middle.bias
        self.norm = nn.BatchNorm1d(WIDTH, affine=False, dtype=torch.float64)
        self.reads_ids = False
        self.last = linear(WIDTH, num_classes)
        ones = torch.ones(num_classes, dtype=torch.float64)
        self.scale = nn.Parameter(ones) if own else None
        if own == "sum":
            self.more = nn.Parameter(ones.clone())
        self.own = own
        if traps:
            self.unused = linear(3, 2)
            self.first.requires_grad_(False)
        self.rows, self.forward_samples, self.backward_samples = [], [], []
        self.graphs, self.num_graphs = weakref.WeakSet(), []
        self.frozen, self.attributes = [], []

    def __call__(self, *arguments, **options):
        self.num_calls += 1
        return super().__call__(*arguments, **options)

    def forward(self, x):
        self.modes.append(modes_of(self))
        self.settings.append(settings())
        if self.reads_ids:
            if x.is_floating_point():
                raise TypeError("this model reads whole numbers")
            x = x.double()
        x = x.mean(2) if x.dim() == 3 else x
        x = x[:, None] if x.dim() == 1 else x
        rows = x.detach().reshape(-1, x.shape[-1])
        self.num_graphs.append(len(self.graphs))
        self.rows.append(len(rows))
        self.forward_samples += rows.sum(1).tolist()
        hidden = self.first(x).tanh()
        hidden = self.middle(hidden).tanh()
        logits = self.last(self.again(hidden).tanh())
        if self.own == "sum":
            logits = logits * (self.scale + self.more)
        elif self.own == "apart":  # of the rows without a NaN alone
            finite = logits.isfinite()
            logits = logits + torch.where(finite, self.scale, 0.0)
        elif self.own == "nan":
            logits = logits + 0 * (self.scale - self.scale.detach()).sqrt()
        elif self.own:
            logits = logits * (1 + self.scale)
        logits = logits * self.loudness
        if logits.requires_grad:
            logits.register_hook(self._came_back(rows))
        return logits

    def _came_back(self, rows):
        def hook(gradient):
            self.backward_samples.extend(rows.sum(1).tolist())
            self.settings.append(settings())

        self.graphs.add(hook)  # which the graph holds, as long as it is there
        return hook

    def what_it_saw(self):
        sort = torch.sort
        forward = torch.tensor(self.forward_samples, dtype=torch.float64)
        backward = torch.tensor(self.backward_samples, dtype=torch.float64)
        return {
            "rows": sorted(self.rows),
            # that of the loss before may be, and need not
            "earlier graphs still there": max([1, *self.num_graphs]),
            "forward": sort(forward).values,
            "backward": sort(backward).values,
        }


def made(case, num_features):
    """The case's model, with the case's weights."""
    options = case["traps"], case["loudness"], case.get("own", False)
    model = Classifier(num_features, case["num_classes"], *options)
    model.train(case["mode"] == "train")
    if case["mode"] == "mixed":
        model.middle.train()
        model.norm.train()
    model.reads_ids = case.get("ids", False)
    model.frozen = frozen_in(model)
    model.attributes = attributes_of(model)
    start = case["start"]
    with torch.no_grad():
        at = 0
        for parameter in model.parameters():
            size = parameter.numel()
            values = start[at : at + size].view_as(parameter)
            parameter.copy_(values / max(1, parameter.shape[-1]) ** 0.5)
            at += size
    return model


def settings():
    """PyTorch's settings that a loop might change for a while."""
    return [
        torch.is_anomaly_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_autocast_enabled("cpu"),
        str(torch.get_default_dtype()),
        torch.get_num_threads(),
    ]


def modes_of(model):
    return [layer.training for layer in model.modules()]


def frozen_in(model):
    return [not parameter.requires_grad for parameter in model.parameters()]


USUAL = vars(nn.Module()).keys()


def attributes_of(model):
    """The names of what each layer holds beside its parameters and the like."""
    return [sorted(vars(layer).keys() - USUAL) for layer in model.modules()]


def use_of(model, modes, tensors):
    """How model, global generator and tensors were treated."""
    afterwards = settings()
    torch.autograd.set_detect_anomaly(False)
    found, wanted = [*model.settings, afterwards], settings()
    return {
        "unseeded": torch.initial_seed() == SEED,
        "settings_kept": all(one == wanted for one in found),
        "parameters_kept": frozen_in(model) == model.frozen
        and not any(p._backward_hooks for p in model.parameters()),
        "nothing_added": attributes_of(model) == model.attributes,
        "called": model.num_calls == len(model.rows),
        "modes_kept": all(one == modes for one in model.modes),
        "tensors_plain": not any(
            one.requires_grad or one.grad is not None for one in tensors
        ),
    }


def weights_of(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def gradients_of(model):
    """All gradients as one vector, with zeros where there is none. Large ones
    are divided by the loudness: rounding is then as small as elsewhere."""
    gradients = torch.cat(
        [
            torch.zeros(parameter.numel(), dtype=torch.float64)
            if parameter.grad is None
            else parameter.grad.detach().flatten().clone()
            for parameter in model.parameters()
        ]
    )
    return gradients / max(1.0, model.loudness)


def groups_of(model, case):
    """The parameters as an optimizer takes them."""
    if not case.get("two_groups"):
        return [{"params": list(model.parameters())}]
    return [
        {"params": [p for p in model.parameters() if p.dim() == dims]}
        for dims in (1, 2)
    ]


def bytes_of_one(model, x, y):
    """What one forward pass over these rows keeps for its backward pass.

    The labels may be any that are ignored, so others take their place.
    """
    y = torch.zeros_like(y)
    with saved_tensor_bytes([*model.parameters(), x, y]) as saved:
        loss = F.cross_entropy(model(x), y)
    del loss
    model.rows.clear()
    model.num_graphs.clear()
    model.graphs.clear()
    model.forward_samples.clear()
    model.modes.clear()
    model.settings.clear()
    model.num_calls = 0
    return saved.peak_bytes


def watched(optimizer, model):
    """Counts steps, and notes the gradient of each. It does so afterwards: a
    closure makes the gradient within the step."""
    found = []
    optimizer.register_step_post_hook(
        lambda *_: found.append(gradients_of(model))
    )
    return found


def step_in_micro_batches(accumulated_step, case):
    """Some batches, one after another."""
    batches, num_micro = case["batches"], case["num_micro"]
    x = batches[0][0]
    model = made(case, 1 if x.dim() == 1 else x.shape[1])
    optimizer = torch.optim.SGD(groups_of(model, case), **case["sgd"])
    size = len(batches[0][0]) // num_micro
    one = bytes_of_one(model, *(part[:size] for part in batches[0]))
    found, losses, graphs = watched(optimizer, model), [], []
    if case["old_gradients"]:
        # also on what was frozen since
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    modes = modes_of(model)
    torch.default_generator.manual_seed(SEED)
    for X, y in batches:
        inputs = [*model.parameters(), X, y]
        with saved_tensor_bytes(inputs) as saved:
            losses.append(accumulated_step(model, optimizer, X, y, num_micro))
        graphs.append(round(saved.peak_bytes / one))
    names = ("lr", "momentum", "weight_decay")
    return {
        "weights": weights_of(model),
        "losses": losses,
        "steps": len(found),
        "gradients": found,
        "graphs": graphs,
        "settings": [
            group[name] for group in optimizer.param_groups for name in names
        ],
        **use_of(model, modes, [one for pair in batches for one in pair]),
        **model.what_it_saw(),
    }


def gradients_of_a_window(accumulate_gradients, case):
    micro_batches = list(case["micro_batches"])
    if case["first_again"]:
        micro_batches.append(micro_batches[0])
    given = list(micro_batches)
    x = micro_batches[0][0]
    model = made(case, 1 if x.dim() == 1 else x.shape[1])
    modes = modes_of(model)
    torch.default_generator.manual_seed(SEED)
    before = weights_of(model).clone()
    largest = max(micro_batches, key=lambda pair: len(pair[0]))
    one = bytes_of_one(model, *largest)
    options = {
        name: case[name] for name in ("weight", "ignore_index") if name in case
    }
    inputs = [tensor for pair in given for tensor in pair]
    inputs += [tensor for tensor in options.values() if torch.is_tensor(tensor)]
    with saved_tensor_bytes([*model.parameters(), *inputs]) as saved:
        loss = accumulate_gradients(model, micro_batches, **options)
    return {
        "gradients": gradients_of(model),
        "loss": loss,
        "graphs": [round(saved.peak_bytes / one)],
        "moved": not torch.equal(before, weights_of(model)),
        "list_kept": len(micro_batches) == len(given)
        and all(
            pair is other
            for pair, other in zip(micro_batches, given, strict=True)
        ),
        **use_of(model, modes, inputs),
        **model.what_it_saw(),
    }


class Unread(OSError, RuntimeError):
    """What a loader raises in the middle, of a kind that many catch."""


class Recorder:
    """Yields micro-batches as a `DataLoader` does, in lists, and knows how far it
    has been read. Its data set is larger, as where the last batch is dropped. Its length
    may be one that is not told, as that of a stream; if it `breaks`, it raises where the
    others end."""

    def __init__(self, micro_batches, told, breaks):
        self.micro_batches, self.num_read, self.told = micro_batches, 0, told
        self.breaks = breaks
        self.dataset = range(3 + sum(len(y) for _, y in micro_batches))

    def __len__(self):
        if not self.told:
            raise TypeError("this loader has no length")
        return len(self.micro_batches)

    def __iter__(self):
        for x, y in self.micro_batches:
            self.num_read += 1
            yield [x, y]
        if self.breaks:
            raise Unread("the next file cannot be read")


class Scheduler(torch.optim.lr_scheduler.LambdaLR):
    """Lowers the rate at every step, and counts its steps."""

    def __init__(self, optimizer):
        self.num_steps = -1  # the first one is its own
        super().__init__(optimizer, lambda step: 0.8**step)

    def step(self, *arguments):
        self.num_steps += 1
        super().step(*arguments)


def some_epochs(train_epoch, case):
    """Some epochs over the same micro-batches; or, if the loader breaks, whether its
    error comes out."""
    micro_batches, k = case["micro_batches"], case["accumulation_steps"]
    if case.get("first_again"):
        micro_batches = [*micro_batches, micro_batches[0]]
    alone = bool(micro_batches) and micro_batches[0][0].dim() == 1
    model = made(case, 1 if alone else case["num_features"])
    modes = modes_of(model)
    torch.default_generator.manual_seed(SEED)
    optimizer = torch.optim.SGD(groups_of(model, case), **case["sgd"])
    options = {}
    if case["scheduled"]:
        options["scheduler"] = scheduler = Scheduler(optimizer)
    if case["max_norm"] is not None:
        options["max_norm"] = case["max_norm"]
    sizes = [len(x) for x, _ in micro_batches]
    one = 1
    if sizes:
        largest = micro_batches[sizes.index(max(sizes))]
        one = bytes_of_one(model, *largest)
    tensors = [tensor for pair in micro_batches for tensor in pair]
    found, read_ahead, reader = watched(optimizer, model), [], None

    def note_reading(*_):
        steps = len(found) - 1 - steps_before
        due = min(len(micro_batches), (steps + 1) * k)
        read_ahead.append(reader.num_read - due)

    optimizer.register_step_post_hook(note_reading)
    losses, graphs, left = [], [], []
    for epoch in range(case["num_epochs"]):
        if epoch and case.get("freezes"):
            model.middle.requires_grad_(False)
            model.frozen = frozen_in(model)
        steps_before = len(found)
        told, breaks = case["sized"] != "not told", case.get("breaks", False)
        reader = Recorder(micro_batches, told, breaks)
        loader = reader if case["sized"] else iter(reader)
        loader = micro_batches if case["as_list"] else loader
        with saved_tensor_bytes([*model.parameters(), *tensors]) as saved:
            try:
                loss = train_epoch(model, optimizer, loader, k, **options)
            except Unread:
                if not breaks:
                    raise
                return {"came_out": True, "steps": len(found)}
        if breaks:
            return {"came_out": False}
        losses.append(loss)
        graphs.append(round(saved.peak_bytes / one))
        left.append(gradients_of(model).norm().item())
    return {
        "weights": weights_of(model),
        "losses": losses,
        "steps": len(found),
        "gradients": found,
        "scheduler_steps": scheduler.num_steps if case["scheduled"] else 0,
        "rate": optimizer.param_groups[0]["lr"],
        "graphs": graphs,
        "left": left,
        # one micro-batch may be, and need not
        "read_ahead": 1 if case["as_list"] else max([1, *read_ahead]),
        **use_of(model, modes, tensors),
        **model.what_it_saw(),
    }


# Models with and without batch normalization.


class Faint(nn.Module):
    """Its input, and a small share of its batch norm."""

    def __init__(self, norm, share):
        super().__init__()
        self.norm, self.share = norm, share

    def forward(self, x):
        return x + self.share * self.norm(x)


FAINT = {"faint": 1e-7, "fainter": 1e-12, "single": 2e-6}


class Loud(nn.Module):
    """Its input, made as loud as the case asks for. It has one weight, a single
    number."""

    def __init__(self, loudness):
        super().__init__()
        self.loudness = loudness
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.loudness * self.gain * x


class TooLarge(nn.Module):
    """Raises as where memory is short, on more rows than a few."""

    def forward(self, x):
        if len(x) > 10:
            raise torch.OutOfMemoryError("too many rows at once")
        return x


class ReadsIds(nn.Sequential):
    """Takes whole numbers alone."""

    def forward(self, x):
        if x.is_floating_point():
            raise TypeError("this model reads whole numbers")
        return super().forward(x.double())


class SumOfTwo(nn.Linear):
    """Its weight is a sum of two parameters, which get one gradient."""

    def __init__(self, num_features, num_classes):
        super().__init__(num_features, num_classes)
        self.more = nn.Parameter(torch.zeros(num_classes, num_features))

    def forward(self, x):
        return F.linear(x, self.weight + self.more, self.bias)


class Centred(nn.Module):
    """Its input less the mean of the batch: no batch norm, and each sample
    depends on the others."""

    def forward(self, x):
        return x - x.mean(0)


def plain_network(case):
    """The network that a case describes, of any normalization, in float64."""
    norm, width = case["norm"], case["width"]
    images = case["X"].dim() == 4
    channels = case["X"].shape[1]

    def layer(kind, before):
        if kind == "linear" and images:
            return nn.Conv2d(before, width, 3, padding=1)
        if kind == "linear":
            return nn.Linear(before, width)
        if kind == "tanh":
            return nn.Tanh()
        if norm == "none":
            return nn.Identity()
        if norm == "group":
            return nn.GroupNorm(1, width)
        if norm == "centred":
            return Centred()
        if norm == "instance":
            return nn.InstanceNorm2d(width, track_running_stats=True)
        if norm == "no statistics":
            kind = nn.BatchNorm2d if images else nn.BatchNorm1d
            return kind(width, track_running_stats=False)
        if norm in FAINT:
            kind = nn.BatchNorm2d if images else nn.BatchNorm1d
            return Faint(kind(width, affine=False), FAINT[norm])
        return nn.BatchNorm2d(width) if images else nn.BatchNorm1d(width)

    layers = []
    for kind, before in (
        ("linear", channels),
        ("norm", width),
        ("tanh", width),
        ("linear", width),
        ("norm", width),
        ("tanh", width),
    ):
        layers.append(layer(kind, before))
    if images:
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    last = SumOfTwo if case["sum_of_two"] else nn.Linear
    layers.append(last(width, case["num_classes"]))
    if case["raises"] == "too large":
        layers.append(TooLarge())
    if case["loudness"] != 1:
        layers.append(Loud(case["loudness"]))
    kind = ReadsIds if case["ids"] else nn.Sequential
    model = kind(*layers).double()
    fill(model, case["start"])
    if case["traps"]:
        model[0].requires_grad_(False)
        model[1].extra = nn.Linear(2, 2).double()
    if case["two_names"]:
        model[1].extra = copy.copy(model[3])  # another layer, the same weights
    if case["X"].dtype == torch.float32:
        model.float()
    if norm == "batch":  # as after some training
        for layer in (model[1], model[4]):
            layer.running_mean.copy_(case["start"][:width])
            layer.running_var.copy_(0.5 + case["start"][:width].abs())
    model.train(case["train"])
    if case["other_mode"]:
        model[1].train(not case["train"])
    return model


def fill(model, start):
    """Gives the layers with weights those of `start`; norms stay as they are."""
    with torch.no_grad():
        at = 0
        for layer in model.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d | nn.Conv3d):
                size = layer.weight.numel()
                values = start[at : at + size].view_as(layer.weight)
                layer.weight.copy_(values / layer.weight[0].numel() ** 0.5)
                layer.bias.copy_(start[at : at + len(layer.bias)])
                at += size


def state_of(model):
    """All that a measurement may leave changed."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            state[f"{name}.grad"] = parameter.grad.clone()
    state["training"] = [layer.training for layer in model.modules()]
    state["attributes"] = attributes_of(model)
    state["settings"] = [layer.extra_repr() for layer in model.modules()]
    return state


def measured_gap(accumulation_gap, case):
    model = plain_network(case)
    if case["old_gradients"]:
        model[3].weight.grad = torch.ones_like(model[3].weight)
        model[0].weight.grad = torch.ones_like(model[0].weight)
    torch.default_generator.manual_seed(SEED)
    before = list(model.parameters())
    raised = False
    try:
        gap = accumulation_gap(model, case["X"], case["y"], case["num_micro"])
    except (ValueError, torch.OutOfMemoryError):
        # That of batch norm, which trains on no single row, or of too many rows.
        if not case["raises"]:
            raise
        gap, raised = 0.0, True
    pairs = zip(before, model.parameters(), strict=True)
    unseeded = torch.initial_seed() == SEED
    state = state_of(model)
    for name, _ in model.named_parameters():
        state.setdefault(f"{name}.grad", None)
    return {
        "gap": float(gap),
        "is_float": isinstance(gap, float),
        "your_code_raised": raised,
        "state": state,
        "unseeded": unseeded,
        "the_parameters_are_the_same_objects": all(
            one is other for one, other in pairs
        ),
    }


# Repaired models.


class Block(nn.Module):
    """Batch norms two levels deep, beside other normalizations."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        norms = nn.ModuleList([nn.BatchNorm2d(channels)])
        self.norms = nn.ModuleDict({"bn": norms})
        self.register_buffer("offset", torch.full((2,), 0.1))
        self.instance = nn.InstanceNorm2d(channels, affine=True)
        self.group = nn.GroupNorm(channels, channels)
        self.layer = nn.LayerNorm(4)
        self.drop = nn.Dropout(0.125)
        self.drop.register_forward_hook(lambda layer, given, output: given[0])
        for norm in (self.instance, self.group, self.layer):
            nn.init.constant_(norm.weight, 1.5)
            nn.init.constant_(norm.bias, 0.5)

    def forward(self, x):
        new = self.instance(self.norms["bn"][0](self.conv(x)))
        return x + self.drop(self.layer(self.group(new)))


def network(kind, channels, affine):
    """A new model, the shape of its input, and the names of its batch norms."""
    if kind == "mlp":
        norms = [nn.BatchNorm1d(channels, affine=affine) for _ in range(2)]
        layers = [nn.Linear(5, channels), norms[0], nn.Tanh()]
        layers += [nn.Linear(channels, channels), norms[1], nn.Tanh()]
        return nn.Sequential(*layers, nn.Linear(channels, 3)), (5,)
    if kind == "convnet":
        first, second = (
            nn.Conv2d(before, channels, 3, padding=1)
            for before in (2, channels)
        )
        norms = [nn.BatchNorm2d(channels, affine=affine) for _ in range(2)]
        layers = [first, norms[0], nn.Tanh(), second, norms[1], nn.Tanh()]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(channels, 3)), (2, 4, 4)
    if kind == "volumes":
        layers = [nn.Conv3d(2, channels, 1)]
        layers += [nn.BatchNorm3d(channels, affine=affine), nn.Tanh()]
        layers += [nn.AdaptiveAvgPool3d(1), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(channels, 3)), (2, 3, 2, 2)
    if kind == "nested":
        layers = OrderedDict(stem=nn.Conv2d(2, channels, 1))
        layers["blocks"] = nn.Sequential(Block(channels), Block(channels))
        layers["pool"] = nn.AdaptiveAvgPool2d(1)
        layers["flatten"] = nn.Flatten()
        layers["head"] = nn.Linear(channels, 3)
        model = nn.Sequential(layers)
        model.register_forward_hook(lambda layer, given, output: None)
        return model, (2, 4, 4)
    return nn.BatchNorm1d(channels, affine=affine), (channels,)


BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def repaired(without_batch_norm, case):
    """The repaired model's layers, gradients and kept values, of which some are
    looked at only where the case says so."""
    looks_at = case["looks_at"]
    model, shape = network(case["kind"], case["channels"], case["affine"])
    fill(model, case["start"])
    places = {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, BATCH_NORMS)
    }
    last = list(places.values())[-1]
    # With mixed dtypes: float64, but for the last batch norm.
    mixed = case["dtype"] == "mixed"
    model = model.to(torch.float64 if mixed else getattr(torch, case["dtype"]))
    if mixed:
        last.float()
    if case["all_frozen"]:
        model.requires_grad_(False)
    if case["frozen"]:
        model.eval().stem.requires_grad_(False)
        model.blocks.train()
    with torch.no_grad():
        for layer in places.values():
            if case["trained"]:
                layer.weight.copy_(case["scale"])
                layer.bias.copy_(case["shift"])
    for layer in places.values():
        layer.eps = case["eps"]
        if not case["statistics"]:
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = None
            layer.num_batches_tracked = None
    last.train(last.training and not case["norm_in_eval"])
    for name in case["frozen_norm"]:
        getattr(last, name).requires_grad_(False)
    before = state_of(model) if "original" in looks_at else None
    new = without_batch_norm(model)
    left = [
        [one.training, one.track_running_stats, one.momentum]
        for one in new.modules()
        if isinstance(one, BATCH_NORMS)
    ]
    original = original_beside(new, model, before, len(places))
    others = others_of(new, places) if "others" in looks_at else {}
    outputs, pulls = {}, {}
    for name, norm in places.items():
        inputs = in_dtype_of(norm, case["inputs"])
        if case["channels_last"]:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        for mode in ("eval", "training"):
            new.train(mode == "training")
            place = name if mode == "eval" else f"{name} in training"
            outputs[place] = output_of(new, name, inputs)
            if "gradients" in looks_at:
                pulls[place] = pull_of(new, name, inputs)
        if case["two_sizes"]:
            # What lies there twice has the mean and variance that it had.
            wide = output_of(new, name, torch.cat([inputs, inputs], -1))
            if wide is not None:
                wide = wide[..., : inputs.shape[-1]]
            outputs[f"{name} on wide images"] = wide
    return {
        "outputs": outputs,
        "pulls": pulls,
        "left": left,
        "others": others,
        "dtypes": {name: dtypes_of(new, name) for name in places},
        "num_parameters": sum(p.numel() for p in new.parameters()),
        "values": {name: values_of(new, name) for name in places},
        "num_trained": {name: num_trained(new, name) for name in places},
        **original,
        "gaps": gaps_of(new.double(), case, shape)
        if "gaps" in looks_at
        else [],
    }


def original_beside(new, model, before, num_norms):
    """Whether the model that was given is as it was before, and shares nothing with the
    new one; nothing if it was not looked at."""
    if before is None:
        return {}
    after = state_of(model)
    told = "training", "attributes", "settings"
    spoilt = any(before.pop(name) != after.pop(name) for name in told) or any(
        not torch.equal(after.get(name, torch.zeros(0)), before[name])
        for name in before
    )
    kept = [one for one in model.modules() if isinstance(one, BATCH_NORMS)]
    own = {
        one.untyped_storage().data_ptr()
        for one in (*model.parameters(), *model.buffers())
    }
    return {
        "spoilt": spoilt or len(kept) < num_norms,
        "shared_hooks": any(
            one._forward_hooks is other._forward_hooks
            for one in new.modules()
            for other in model.modules()
        ),
        "shared": any(
            one.untyped_storage().data_ptr() in own
            for one in (*new.parameters(), *new.buffers())
        ),
    }


def output_of(model, name, inputs):
    """What the layer of this name makes of the case's inputs, in its own dtype;
    None without it."""
    try:
        layer = model.get_submodule(name)
    except AttributeError:
        return None
    return layer(in_dtype_of(layer, inputs)).detach()


def in_dtype_of(layer, inputs):
    """A layer of a wrong dtype is told so by its dtype alone."""
    own = [one.dtype for one in layer.parameters() if one.is_floating_point()]
    return inputs.to(own[0] if own else inputs.dtype)


def pull_of(model, name, inputs):
    """How much of the output's gradient reaches the input along a shift and along
    a stretch of each sample: nothing, if it goes through mean and variance."""
    try:
        layer = model.get_submodule(name)
    except AttributeError:
        return None
    inputs = in_dtype_of(layer, inputs)
    x = inputs.clone().requires_grad_()
    output = layer(x)
    if output.shape != x.shape or not output.requires_grad:
        return None
    slope = torch.linspace(0.5, 1.5, x[0].numel(), dtype=x.dtype)
    wave = (slope * (output + output.cos()).flatten(1)).sum()
    given, came = torch.autograd.grad(wave, (x, output), allow_unused=True)
    if given is None:
        return None
    given, came = given.flatten(1), came.flatten(1).norm(dim=1)
    centered = inputs.flatten(1) - inputs.flatten(1).mean(1, keepdim=True)
    scale = centered.std(1) / came
    along = F.normalize(torch.ones_like(centered)), F.normalize(centered)
    return [
        ((given * one).sum(1).abs() * scale).median().item() for one in along
    ]


def dtypes_of(model, name):
    """Of the parameters, buffers and outputs of the layer of this name."""
    try:
        layer = model.get_submodule(name)
    except AttributeError:
        return []
    tensors = [*layer.parameters(), *layer.buffers()]
    return sorted({str(t.dtype) for t in tensors if t.is_floating_point()})


def values_of(model, name):
    """All numbers in the parameters of the layer of this name, sorted: a layer may
    hold them in any form."""
    try:
        layer = model.get_submodule(name)
    except AttributeError:
        return None
    numbers = [p.detach().double().flatten() for p in layer.parameters()]
    return torch.cat([torch.zeros(0).double(), *numbers]).sort().values


def num_trained(model, name):
    """How many numbers of the layer of this name are trained."""
    try:
        layer = model.get_submodule(name)
    except AttributeError:
        return 0
    return sum(p.numel() for p in layer.parameters() if p.requires_grad)


def others_of(model, places):
    """Kinds and values of all layers but the batch norms' replacements."""
    others = {}
    for name, layer in model.named_modules():
        inside = any(
            name == place or (name + ".").startswith(place + ".")
            for place in places
        )
        if inside or "" in places:
            continue
        kind = f"{type(layer).__name__}({layer.extra_repr()})"
        others[name] = [kind, layer.training, len(layer._forward_hooks) == 0]
        for parameter in layer.parameters(recurse=False):
            others[name].append(parameter.requires_grad)
        for key, value in layer.state_dict().items():
            if "." not in key:
                others[name].append(value.clone())
    return others


def gaps_of(model, case, shape):
    """Relative errors of accumulated gradients, by number of micro-batches."""
    X, y = case["X"].reshape(-1, *shape), case["y"]
    gradients = {}
    for parts in (1, 2, len(X)):
        model.zero_grad()
        for x, t in zip(X.chunk(parts), y.chunk(parts), strict=True):
            (F.cross_entropy(model(x), t) / parts).backward()
        gradients[parts] = torch.cat(
            [p.grad.flatten() for p in model.parameters() if p.grad is not None]
            or [torch.zeros(1)]
        )
    full = gradients.pop(1)
    return [
        ((g - full).norm() / full.norm()).item() for g in gradients.values()
    ]
