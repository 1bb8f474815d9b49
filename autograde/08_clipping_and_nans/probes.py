"""Drives what the exercises of chapter 08 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. A case says in plain data what a gradient, a batch, a
model or a run is like; the objects are made here.
"""

import builtins
import math
from collections import OrderedDict, defaultdict, namedtuple

import torch
from torch import nn

SEED = 20261108  # not one that anybody writes

# Gradients.


def with_gradients(case):
    """Leaf tensors with the case's gradients, as views of one buffer where the
    case asks for it."""
    tensors, buffers = [], []
    if case["memory"] == "bucket":  # one buffer for all, as DDP has it
        there = [g for g in case["gradients"] if g is not None]
        bucket = torch.cat([g.flatten() for g in there])
        parts = iter(bucket.split([g.numel() for g in there]))
        buffers.append(bucket)
    for i, gradient in enumerate(case["gradients"]):
        like = case["values"][i]
        tensor = like.clone().requires_grad_(i not in case["frozen"])
        if gradient is not None and case["memory"] == "strided":
            wide = torch.zeros(*gradient.shape, 2, dtype=gradient.dtype)
            wide[..., 0] = gradient
            tensor.grad = wide[..., 0]
            buffers.append(wide)
        elif gradient is not None and case["memory"] == "buffer":
            flat = torch.cat([gradient.flatten(), gradient.flatten()])
            tensor.grad = flat[: gradient.numel()].view_as(gradient)
            buffers.append(flat)
        elif gradient is not None and case["memory"] == "bucket":
            tensor.grad = next(parts).view_as(gradient)
        elif gradient is not None and case["memory"] == "turned":
            # no view of one dimension holds its entries
            turned = gradient.movedim(0, -1).contiguous()
            tensor.grad = turned.movedim(-1, 0)
        elif gradient is not None and case["memory"] == "of_a_graph":
            tensor.grad = 1 * gradient.clone().requires_grad_()
        elif gradient is not None:
            tensor.grad = gradient.clone()
        tensors.append(tensor)
    return tensors, buffers


def handed_over(tensors, kind):
    """The tensors as one of the things that the exercise allows."""
    return {
        "list": lambda: tensors,
        "generator": lambda: (one for one in tensors),
        "values": lambda: {str(i): t for i, t in enumerate(tensors)}.values(),
        "set": lambda: frozenset(tensors),
        "iterator": lambda: iter(tensors),
        "tensor": lambda: tensors[0],
    }[kind]()


def clipped(clip_gradients, case):
    tensors, buffers = with_gradients(case)
    before = [tensor.grad for tensor in tensors]
    given = handed_over(tensors, case["given_as"])
    options = dict(case["options"])
    if options.get("norm_type") == math.inf:
        options["norm_type"] = float("inf")  # equal to math.inf, another object
    torch.default_generator.manual_seed(SEED)
    norm, raised = None, ""
    try:
        norm = clip_gradients(given, case["max_norm"], **options)
    except RuntimeError as error:
        if type(error) is not RuntimeError or not case["may_raise"]:
            raise
        raised = "RuntimeError"
    return {
        "norm": norm,
        "raised": raised,
        "gradients": [
            None if tensor.grad is None else tensor.grad.detach().clone()
            for tensor in tensors
        ],
        "same": [
            tensor.grad is old
            for tensor, old in zip(tensors, before, strict=True)
        ],
        "buffers": buffers,
        "values": [tensor.detach().clone() for tensor in tensors],
        "frozen": [not tensor.requires_grad for tensor in tensors],
        "unseeded": torch.initial_seed() == SEED,
        "detached": not (torch.is_tensor(norm) and norm.requires_grad),
        "list_kept": case["given_as"] != "list" or len(given) == len(before),
    }


# Trees of tensors.


Pair = namedtuple("Pair", ["one", "other"])


def made_tree(node, leaves):
    """The tree that a case describes, with its tensors in a list besides."""
    kind, content = node
    if kind == "dict":
        return {key: made_tree(one, leaves) for key, one in content}
    if kind == "default":
        made = defaultdict(list)
        made.update((key, made_tree(one, leaves)) for key, one in content)
        return made
    if kind == "ordered":
        pairs = [(key, made_tree(one, leaves)) for key, one in content]
        return OrderedDict(pairs)
    if kind == "pair":
        return Pair(*(made_tree(one, leaves) for one in content))
    if kind == "list":
        return [made_tree(one, leaves) for one in content]
    if kind == "tuple":
        return tuple(made_tree(one, leaves) for one in content)
    if kind == "integer":
        return int(content)
    if kind == "twice":  # one container at two places
        return [made_tree(content, leaves)] * 2
    if kind == "again":  # the tensor that came last, once more
        return leaves[-1]
    if kind != "tensor":
        return content
    tensor, form = content
    tensor = tensor.clone()
    if form == "strided":
        tensor = torch.stack([tensor, tensor], -1)[..., 0]
    if form == "turned":
        tensor = torch.stack([tensor, tensor], -1).transpose(0, 1)[..., 0]
    if form == "parameter":
        tensor = nn.Parameter(tensor)
    if form == "requires_grad":
        tensor.requires_grad_()
    if form == "of_a_graph":
        tensor = tensor.requires_grad_() * 1
    leaves.append(tensor)
    return tensor


def signature(tree):
    """What a tree is made of, its tensors by identity."""
    if isinstance(tree, dict):
        return {key: signature(one) for key, one in tree.items()}
    if isinstance(tree, list | tuple):
        return [type(tree).__name__, *map(signature, tree)]
    return f"{type(tree).__name__} {id(tree)}"


def named(nonfinite_entries, case):
    leaves = []
    tree = made_tree(case["tree"], leaves)
    before = signature(tree)
    values = [leaf.detach().clone() for leaf in leaves]
    versions = [leaf._version for leaf in leaves]
    graphs = [leaf.requires_grad for leaf in leaves]
    torch.default_generator.manual_seed(SEED)
    arguments = () if case["name"] is None else (case["name"],)
    names = nonfinite_entries(tree, *arguments)
    first = list(names) if isinstance(names, list) else names
    nonfinite_entries([])  # which changes no list that came before
    kept = names == first
    same = before == signature(tree)
    for leaf, value, version, graph in zip(
        leaves, values, versions, graphs, strict=True
    ):
        same &= leaf._version == version and leaf.grad is None
        same &= torch.equal(leaf.isnan(), value.isnan())
        same &= leaf.requires_grad == graph
    return {
        "names": first,
        "kept": kept,
        "same": same,
        "unseeded": torch.initial_seed() == SEED,
        "values": values,
    }


# An epoch.


class Watched(nn.Module):
    """A network with batch norms and two traps: a row whose marked features are
    all 0 has a finite loss and a gradient of NaN, and a frozen and an unused
    layer have no gradient at all. It writes down what goes through it.

    A "blind" one does not look at the second feature. One that "counts" has a
    buffer of its own that no `state_dict` holds, and writes into it, in eval, too; one that
    "assigns" puts another tensor into its place. One that "shares" is one that
    "counts", and has that buffer a second time, in one of its layers. A "single"
    one is in float32. One that is called as an error raises it for one row. One that
    is "gained" has two parameters beside its layers, which it adds up: they get one
    gradient."""

    def __init__(self, num_features, width, num_outputs, extra):
        super().__init__()
        self.extra = extra
        if extra in ("counts", "assigns", "shares"):
            total = torch.zeros(num_features)
            self.register_buffer("total", total, persistent=False)
        self.embed = nn.Linear(num_features, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.inner = nn.Sequential(
            nn.Linear(width, width, bias=False), nn.BatchNorm1d(width)
        )
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.unused = nn.Linear(3, 2)
        self.head = nn.Linear(width + 1, num_outputs)
        if extra == "gained":
            self.gain = nn.Parameter(torch.ones(num_outputs))
            self.more = nn.Parameter(torch.zeros(num_outputs))
        self.rows, self.modes, self.num_calls = [], [], 0

    def __call__(self, *arguments, **options):
        self.num_calls += 1
        return super().__call__(*arguments, **options)

    def forward(self, x):
        self.modes.append([layer.training for layer in self.modules()])
        if not x.is_floating_point():  # so that a cast or a flat view shows
            x = x.sum(2) // 2
        x = x.to(self.head.weight.dtype)
        self.rows.append(x.detach().sum().item())
        if self.extra.endswith("Error") and len(x) == 1:
            raise getattr(builtins, self.extra)("one row")
        if self.extra == "blind":
            x = torch.cat([x[:, :1], torch.ones_like(x[:, :1]), x[:, 2:]], 1)
        if self.extra in ("counts", "shares"):
            with torch.no_grad():
                self.total += x.sum(0)
        if self.extra == "assigns" and self.training:
            self.total = self.total + x.detach().sum(0)
        hidden = self.embed(x)
        length = hidden.pow(2).sum(1, keepdim=True).sqrt()
        hidden = self.inner(self.norm(hidden).tanh())
        hidden = self.frozen(hidden.tanh())
        out = self.head(torch.cat([hidden.tanh(), length], 1))
        if self.extra == "gained":
            out = out * (self.gain + self.more)
        return out


def fill(model, start):
    """Gives the parameters the values of `start`, scaled by their width."""
    at = 0
    with torch.no_grad():
        for parameter in model.parameters():
            size = parameter.numel()
            values = start[at : at + size].view_as(parameter)
            parameter.copy_(values / max(1, parameter.shape[-1]) ** 0.5)
            at += size


def loss_of(kind, scale):
    """A loss function; `counts` holds how often it was called."""
    counts = []

    def loss_function(output, y):
        counts.append(1)
        if kind == "ratio":  # infinite where a target is 0
            return scale * ((output - y) / y).pow(2).mean()
        if kind == "penalty":  # infinite for large targets, its gradient not
            return (output - y).pow(2).mean() + y.abs().max().exp()
        if kind == "bounded":  # finite for whatever target
            return (output - y.clamp(-20, 20)).pow(2).mean()
        if kind == "huge":  # finite, of a gradient whose norm is not
            large = 1e200 if output.dtype == torch.float64 else 1e30
            factor = large if y.abs().max() > 50 else 1.0
            return (output.clamp(-10, 10).sum() + output.sum()) * factor
        if not y.is_floating_point():  # so that a cast shows
            y = (y // 2).to(output.dtype)
        return scale * (output - y).pow(2).mean()

    return loss_function, counts


def tensors_in(state):
    return {
        f"{index}.{key}": value.detach().clone()
        for index, entries in state["state"].items()
        for key, value in entries.items()
        if torch.is_tensor(value)
    }


def epoch(guarded_epoch, case):
    """One epoch, or two, over the case's batches."""
    batches = case["batches"]
    with torch.random.fork_rng(devices=[]):
        model = Watched(
            case["num_features"],
            case["width"],
            case["num_outputs"],
            case["extra"],
        )
    model = model.float() if case["extra"] == "single" else model.double()
    if case["extra"] == "shares":
        model.inner.register_buffer("total", model.total, persistent=False)
    fill(model, case["start"])
    model.train(case["mode"] != "eval")
    if case["mode"] == "mixed":
        model.norm.eval()
    kind = torch.optim.AdamW if case["adam"] else torch.optim.SGD
    held = [model.head] if case["held"] == "head" else [model]
    held = [p for layer in held for p in layer.parameters()]
    optimizer = kind(held, **case["options"])
    loss_function, counts = loss_of(case["loss"], case["scale"])
    if case["old_gradients"]:
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.ones_like(parameter)
        model.unused.zero_grad()
    if case["stale_gradients"]:
        for layer in (model.frozen, model.unused):
            for parameter in layer.parameters():
                parameter.grad = torch.full_like(parameter, 2.0)
    steps = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    modes = [layer.training for layer in model.modules()]
    frozen = [not p.requires_grad for p in model.parameters()]
    torch.default_generator.manual_seed(SEED)
    reports = []
    for _ in range(case["num_epochs"]):
        loader = batches
        if case["as_generator"]:
            loader = ((x, y) for x, y in batches)
        arguments = (model, optimizer, loss_function, loader)
        reports.append(guarded_epoch(*arguments, case["max_norm"]))
    (group,) = optimizer.param_groups
    return {
        "reports": reports,
        "norms": [entry(one, "norms") for one in reports],
        "losses": [entry(one, "losses") for one in reports],
        "skipped": [entry(one, "skipped") for one in reports],
        "weights": {
            name: p.detach().clone() for name, p in model.named_parameters()
        },
        "buffers": {
            name: b.clone()
            for name, b in model.named_buffers(remove_duplicate=False)
        },
        "optimizer": tensors_in(optimizer.state_dict()),
        "settings": [
            value for _, value in sorted(group.items()) if is_number(value)
        ],
        "num_steps": len(steps),
        "left": [
            p.grad is not None and bool((p.grad != 0).any())
            for p in model.parameters()
        ],
        "rows": model.rows,
        "called": model.num_calls == len(model.rows),
        "losses_taken": len(counts),
        "modes_kept": all(one == modes for one in model.modes)
        and modes == [layer.training for layer in model.modules()],
        "frozen_kept": frozen
        == [not p.requires_grad for p in model.parameters()],
        "unseeded": torch.initial_seed() == SEED,
        "hooks": sum(
            len(layer._forward_hooks) + len(layer._forward_pre_hooks)
            for layer in model.modules()
        )
        + sum(len(p._backward_hooks or ()) for p in model.parameters()),
        "plain": not any(
            one.requires_grad or one.grad is not None
            for pair in batches
            for one in pair
        ),
    }


def entry(report, key):
    return report.get(key) if isinstance(report, dict) else None


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


# Functions with safe gradients.


def value_and_gradient(function, x, *others):
    """The function's value, and the gradient of its weighted sum. The weights
    are the case's, so that every entry's gradient shows. A second call comes
    before the gradient of the first."""
    leaf = x.clone().requires_grad_()
    before = leaf.detach().clone()
    out = function(leaf, *others)
    function(before + 1, *others)
    fact = {
        "value": out.detach().clone() if torch.is_tensor(out) else out,
        "written": not torch.equal(leaf.detach(), before),
        "graph": torch.is_tensor(out) and out.requires_grad,
        "gradient": None,
    }
    if fact["graph"]:
        counts = torch.arange(1, out.numel() + 1, dtype=out.dtype)
        weights = (counts / out.numel()).reshape(out.shape)
        (fact["gradient"],) = torch.autograd.grad(
            out, leaf, weights, allow_unused=True
        )
    return fact


def of_root(root, lengths, entropy, known_mse, case):
    return value_and_gradient(root, strided(case["x"], case))


def of_lengths(root, lengths, entropy, known_mse, case):
    return value_and_gradient(lengths, strided(case["x"], case))


def of_entropy(root, lengths, entropy, known_mse, case):
    return value_and_gradient(entropy, strided(case["x"], case))


def of_known_mse(root, lengths, entropy, known_mse, case):
    target = case["target"].clone()
    if case.get("strided"):  # no view of one dimension holds its entries
        target = target.mT.contiguous().mT
    fact = value_and_gradient(known_mse, strided(case["x"], case), target)
    same = torch.equal(target.isnan(), case["target"].isnan())
    return {**fact, "target_written": target._version > 0 or not same}


def strided(x, case):
    if case.get("strided"):
        return torch.stack([x, x + 1], -1)[..., 0]
    return x


def of_all(root, lengths, entropy, known_mse, case):
    """What the four do to the tensors themselves and to PyTorch."""
    x, target = case["x"], case["target"]
    torch.default_generator.manual_seed(SEED)
    results = [root(x), lengths(x), entropy(x), known_mse(x, target)]
    leaf = x.clone().requires_grad_()
    for function in (root, lengths, entropy):
        function(leaf)
    known_mse(leaf, target)
    # a hook that one of them left would change this infinite gradient, too
    steep = (leaf * case["steep"]).sum()
    (after,) = torch.autograd.grad(steep, leaf)
    return {
        "results": results,
        "unseeded": torch.initial_seed() == SEED,
        "plain": not (x.requires_grad or target.requires_grad),
        "later_gradient": after,
    }


# Broken runs.


class Chain(nn.Module):
    """Layers one after another, registered in an order of their own. Of kind
    "ratio" it divides its input by the sum of sizes of each row first, of kind
    "ratio after" its output; "inverse" and "inverse after" add one over that sum.
    Of kind "again" it calls its second layer once more at the end."""

    def __init__(self, layers, registered, kind):
        super().__init__()
        self.kind = kind
        self.order = list(layers)
        names = list(layers)
        for index in registered:
            self.add_module(names[index], layers[names[index]])

    def forward(self, x):
        if self.kind == "ratio":
            x = x / x.abs().sum(1, keepdim=True)
        if self.kind == "inverse":
            x = x + 1 / x.abs().sum(1, keepdim=True)
        for name in self.order:
            x = getattr(self, name)(x)
        if self.kind == "again":
            x = getattr(self, self.order[1])(x)
        if self.kind == "ratio after":
            x = x / x.abs().sum(1, keepdim=True)
        if self.kind == "inverse after":
            x = x + 1 / x.abs().sum(1, keepdim=True)
        return x


class Ratio(nn.Module):
    def forward(self, x):
        return x / x.abs().sum(1, keepdim=True)


class Log(nn.Module):
    def forward(self, x):
        return x + x.abs().log()


class Length(nn.Module):
    """Each row times its length. At a row of zeros the value is 0 and the
    gradient NaN."""

    def forward(self, x):
        return x + x.pow(2).sum(1, keepdim=True).sqrt()


class Choice(nn.Module):
    """The square root of what is not 0, by one `where`."""

    def forward(self, x):
        return torch.where(x != 0, x.abs().sqrt(), x)


class MaskedRoots(nn.Module):
    """Square roots of what is positive. Of a 0 the root's gradient is NaN, and the
    ReLU before it throws that away."""

    def forward(self, x):
        x = x.relu()
        return torch.where(x > 0, x.sqrt(), x)


class Loud(nn.Module):
    """Numbers close to the largest, none of them infinite."""

    def forward(self, x):
        return 1.5e308 * x.tanh().abs()


class Roots(nn.Module):
    """Square roots of sizes."""

    def forward(self, x):
        return x.abs().sqrt()


class OwnRoot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs().sqrt()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x.sign() / (2 * x.abs().sqrt())


class OwnRoots(nn.Module):
    """Square roots of sizes, by a function of one's own."""

    def forward(self, x):
        return OwnRoot.apply(x)


class Scale(nn.Module):
    """Adds the square root of a parameter that is 0: its gradient is inf."""

    def __init__(self, name="bias"):
        super().__init__()
        self.name = name
        self.register_parameter(name, nn.Parameter(torch.zeros(())))

    def forward(self, x):
        return x + getattr(self, self.name).sqrt()


class Masked(nn.Module):
    """Attention weights of which the first is ruled out by a score of -inf."""

    def __init__(self, in_a_buffer=False):
        super().__init__()
        self.scores = Scores(in_a_buffer)

    def forward(self, x):
        return self.scores(x).softmax(1)


class Scores(nn.Module):
    def __init__(self, in_a_buffer=False):
        super().__init__()
        if in_a_buffer:  # one that no `state_dict` holds
            low = torch.tensor(-math.inf)
            self.register_buffer("low", low, persistent=False)
        else:
            self.low = -math.inf

    def forward(self, x):
        ruled_out = torch.zeros_like(x, dtype=torch.bool)
        ruled_out[:, 0] = True
        return x.masked_fill(ruled_out, self.low)


class Remembered(Masked):
    """Keeps the lowest of its scores in a buffer: -inf after the first batch."""

    def __init__(self):
        super().__init__()
        self.register_buffer("lowest", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            self.lowest.copy_(self.scores(x).min())
        return super().forward(x)


class Idle(nn.Module):
    """Has parameters that are frozen, and some that are never used."""

    def __init__(self, width):
        super().__init__()
        self.fixed = nn.Linear(width, width, bias=False).requires_grad_(False)
        self.idle = nn.Linear(2, 2)

    def forward(self, x):
        return self.fixed(x)


SPECIAL = {
    "ratio": Ratio,
    "log": Log,
    "length": Length,
    "choice": Choice,
    "roots": Roots,
    "masked roots": MaskedRoots,
    "loud": Loud,
    "scale": Scale,
    "scale by a weight": lambda: Scale("weight"),
    "own roots": OwnRoots,
    "masked": Masked,
    "masked by a buffer": lambda: Masked(in_a_buffer=True),
    "remembered": Remembered,
    "scores": Scores,
    "softmax": lambda: nn.Softmax(1),
    "inner log": lambda: nn.Sequential(Log()),
    "tanh": nn.Tanh,
    "leaky": nn.LeakyReLU,
    "relu": nn.ReLU,
}


def made_layer(kind, width):
    if kind == "linear":
        return nn.Linear(width, width, bias=False)
    if kind == "norm":
        return nn.BatchNorm1d(width)
    if kind == "idle":
        return Idle(width)
    return SPECIAL[kind]()


def made_model(case):
    """Two chains in a chain; names and kinds of all layers are the case's."""
    width = case["width"]
    chains = {}
    with torch.random.fork_rng(devices=[]):
        for chain in case["chains"]:
            layers = {
                name: made_layer(kind, width) for name, kind in chain["layers"]
            }
            chains[chain["name"]] = Chain(
                layers, chain["registered"], chain["kind"]
            )
        model = Chain(chains, case["registered"], case["kind"]).double()
    fill_plain(model, case["start"], case["loudness"])
    for name, index, value in case["spoilt"]:
        flat = model.state_dict()[name].view(-1)
        flat[index % flat.numel()] = value
    model.train(case["train"] is not False)
    if case["train"] == "mixed":
        for layer in chains[case["chains"][0]["name"]].modules():
            if isinstance(layer, nn.BatchNorm1d):
                layer.eval()
    return model


def fill_plain(model, start, loudness):
    at = 0
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                size = layer.weight.numel()
                values = start[at : at + size].view_as(layer.weight)
                width = layer.weight.shape[1]
                layer.weight.copy_(loudness * values / width**0.5)
                at += size


def loss_function_of(kind):
    """A loss function, and the sums of the outputs that it was given."""
    outputs = []

    def loss_function(output, y):
        outputs.append(float(output.detach().sum()))
        if kind == "relative":
            return ((output - y) / y.abs().amax(1, keepdim=True)).pow(2).mean()
        if kind == "forgiving":  # finite for whatever output
            finite = output.isfinite()
            return torch.where(finite, output - y, 0.0).pow(2).mean()
        if not y.is_floating_point():  # so that a cast shows
            y = 9 - y
        return (output - y).pow(2).mean()

    return loss_function, outputs


def what_a_run_may_change(model):
    state = {name: value.clone() for name, value in model.state_dict().items()}
    state["gradients"] = [
        None if p.grad is None else p.grad.clone() for p in model.parameters()
    ]
    state["needed"] = [p.requires_grad for p in model.parameters()]
    state["training"] = [layer.training for layer in model.modules()]
    state["hooks"] = sum(
        len(layer._forward_hooks)
        + len(layer._forward_pre_hooks)
        + len(layer._backward_hooks)
        + len(layer._backward_pre_hooks)
        for layer in model.modules()
    ) + sum(len(p._backward_hooks or ()) for p in model.parameters())
    return state


def diagnosed(diagnose, case):
    model = made_model(case)
    if case["old_gradients"]:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 7.0)
    before = what_a_run_may_change(model)
    batches = [(x, y) for x, y in case["batches"]]
    given = list(batches)
    torch.default_generator.manual_seed(SEED)
    loss_function, outputs = loss_function_of(case["loss"])
    if case["anomaly_mode"]:
        torch.autograd.set_detect_anomaly(True)
    try:
        found = diagnose(model, loss_function, batches, case["lr"])
        left_on = torch.is_anomaly_enabled()
    finally:
        if case["anomaly_mode"]:
            torch.autograd.set_detect_anomaly(False)
    after = what_a_run_may_change(model)
    return {
        "found": found,
        "outputs": outputs,
        "model_kept": all(alike(after[key], before[key]) for key in before),
        "anomaly_mode_kept": left_on or not case["anomaly_mode"],
        "unseeded": torch.initial_seed() == SEED,
        "batches_kept": len(batches) == len(given)
        and all(
            one is other for one, other in zip(batches, given, strict=True)
        ),
        "batches_plain": not any(
            one.requires_grad or one.grad is not None
            for pair in batches
            for one in pair
        ),
    }


def alike(one, other):
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if torch.is_tensor(one) and torch.is_tensor(other):
        return bool(torch.allclose(one, other, rtol=0, atol=0, equal_nan=True))
    return one is other or (type(one) is type(other) and one == other)
