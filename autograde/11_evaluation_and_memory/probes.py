"""Drives what the exercises of chapter 11 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret. The models here write down what happens to them: which
rows came, in which mode, with or without gradients, and how much of earlier
batches was still there.
"""

import math
import warnings
import weakref

import numpy as np
import torch
from torch import nn

from course_utils import saved_tensor_bytes

WIDTH = 6
BROKEN = "The model broke down."


class Settings:
    """Notes which settings a call leaves changed, and sets them back.

    Those that the judge looks at by itself are not among them.
    """

    def __enter__(self):
        self.before, self.filters = self.now(), list(warnings.filters)
        self.changed = []
        return self

    def __exit__(self, *error):
        now = self.now()
        self.changed = [one for one in now if now[one] != self.before[one]]
        silenced = [one for one in warnings.filters if one[0] == "ignore"]
        if not ({*silenced} <= {*self.filters} <= {*warnings.filters}):
            self.changed.append("warnings")
            warnings.filters[:] = self.filters
        np.seterr(**self.before["NumPy's error handling"])

    @staticmethod
    def now():
        return {
            "NumPy's error handling": np.geterr(),
            # the judge's look comes after a `no_grad` around the call
            "the gradient mode": torch.is_grad_enabled(),
        }


def strided(tensor):
    """The same numbers in memory that no view of one dimension covers."""
    if tensor.dim() == 1:
        return torch.stack([tensor, tensor], -1)[..., 0]
    return tensor.movedim(0, -1).contiguous().movedim(-1, 0)


def hooks_of(model, optimizer):
    """How many hooks stand on the optimizer and on the parameters. Those on
    layers are the judge's to see."""
    return (
        len(optimizer._optimizer_step_pre_hooks)
        + sum(
            len(p._backward_hooks or {})
            + len(p._post_accumulate_grad_hooks or {})
            for p in model.parameters()
        )
        + len(optimizer._optimizer_step_post_hooks)
    )


def settings_of(optimizer):
    """All settings of the optimizer's groups and its defaults."""
    groups = [*optimizer.param_groups, optimizer.defaults]
    return {
        (i, name): value
        for i, group in enumerate(groups)
        for name, value in group.items()
        if name != "params"
    }


def changed_names(before, after):
    """Names of settings that are new, gone or of another value."""
    return sorted(
        {
            key[1]
            for key in {*before, *after}
            if key not in before
            or key not in after
            or before[key] != after[key]
        }
    )


def momenta_of(model, optimizer):
    """The momentum of each parameter of the model; empty where there is none."""
    states = [optimizer.state.get(one, {}) for one in model.parameters()]
    momenta = [one.get("momentum_buffer") for one in states]
    return [
        torch.empty(0) if one is None else one.detach().clone()
        for one in momenta
    ]


def attributes_of(model):
    """Names of all attributes, and the values of those that are plain."""
    return [
        (sorted(vars(layer)), plain_values(layer)) for layer in model.modules()
    ]


def plain_values(layer):
    return {
        name: value
        for name, value in vars(layer).items()
        if isinstance(value, int | float | str)
        and name not in ("training", "num_calls")
    }


class Shifted(nn.Module):
    """A layer of no known kind that looks at the whole batch in training."""

    def forward(self, x):
        return x - x.mean(0) if self.training else 2 * x


class Recorded(nn.Module):
    """A model that writes down how it was called.

    Its parts are three levels deep, and each treats rows alone in eval. Of inputs
    with more than two dimensions it treats the last. `fails_at` is the number of
    the batch at which it raises `failure`. A `shared` one has one dropout in two
    places; a `flat` one gives a number for each row.
    """

    def __init__(
        self,
        num_features,
        num_outputs,
        fails_at=None,
        failure=ZeroDivisionError,
        shared=False,
        flat=False,
    ):
        super().__init__()
        self.first = nn.Linear(num_features, WIDTH)
        self.drop = nn.Dropout(0.5)
        inner = nn.ModuleDict(
            {"norm": nn.BatchNorm1d(WIDTH), "gate": Shifted()}
        )
        again = self.drop if shared else nn.Dropout(0.3)
        self.block = nn.ModuleDict({"inner": inner, "drop": again})
        self.last = nn.Linear(WIDTH, num_outputs)
        self.fails_at, self.error = fails_at, None
        self.failure, self.flat, self.reads_ids = failure, flat, False
        self.num_calls, self.reader = 0, None
        self.modes, self.grad_modes, self.rows = [], [], []
        self.samples, self.read_ahead = [], []

    def __call__(self, *arguments, **options):
        self.num_calls += 1
        return super().__call__(*arguments, **options)

    def forward(self, x):
        if len(self.rows) == self.fails_at:
            self.error = self.failure(BROKEN)
            raise self.error
        if self.reads_ids and x.is_floating_point():
            raise TypeError("this model reads whole numbers")
        self.modes.append(modes_of(self))
        self.grad_modes.append(torch.is_grad_enabled())
        self.rows.append(len(x))
        self.samples += x.detach().flatten(1).sum(1).tolist()
        if self.reader is not None:
            self.read_ahead.append(self.reader.num_read - len(self.rows))
        x = x.to(self.last.weight.dtype) if self.reads_ids else x
        hidden = self.drop(self.first(x).tanh())
        flat = hidden.reshape(-1, WIDTH)
        inner = self.block["inner"]
        hidden = inner["gate"](inner["norm"](flat)).reshape(hidden.shape)
        out = self.last(self.block["drop"](hidden))
        return out[:, 0] if self.flat else out


class Reader:
    """Yields what it is given, knows how far it has been read, and may fail: at
    the batch with the number `fails_at`, or when it is started, if that is -1."""

    def __init__(self, batches, fails_at=None, failure=OSError):
        self.batches, self.fails_at = batches, fails_at
        self.failure = failure
        self.num_read, self.error = 0, None

    def fail(self):
        self.error = self.failure("The disk broke down.")
        raise self.error

    def __iter__(self):
        if self.fails_at == -1:
            self.fail()
        return self.read()

    def read(self):
        for i, batch in enumerate(self.batches):
            if i == self.fails_at:
                self.fail()
            self.num_read += 1
            yield batch


def modes_of(model):
    return [layer.training for layer in model.modules()]


def fill(model, start):
    """Gives parameters and running statistics values from `start`."""
    with torch.no_grad():
        at = 0
        for parameter in model.parameters():
            size = parameter.numel()
            parameter.copy_(start[at : at + size].view_as(parameter))
            at += size
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm1d):
                layer.running_mean.copy_(start[:WIDTH] / 3)
                layer.running_var.copy_(start[WIDTH : 2 * WIDTH].abs() + 0.3)


def made(case, num_features):
    """The case's model: its weights, its dtype, its modes layer by layer."""
    with torch.random.fork_rng(devices=[]):
        model = Recorded(
            num_features,
            case["num_outputs"],
            case["fails_at"],
            KeyboardInterrupt if case["interrupted"] else ZeroDivisionError,
            case["shared"],
            case["flat"],
        )
    fill(model, case["start"])
    model = model.to(getattr(torch, case["dtype"]))
    modes = case["modes"]
    for i, layer in enumerate(model.modules()):
        layer.training = modes[i % len(modes)]
    model.first.weight.requires_grad_(not case["frozen"])
    for name in ("last", "first"):
        weight = getattr(model, name).weight
        if case["old_gradients"] and weight.requires_grad:
            weight.grad = torch.full_like(weight, 0.5)
    if case["bare"]:
        for layer in (model.first, model.block["inner"]["norm"], model.last):
            for name, weight in list(layer.named_parameters()):
                delattr(layer, name)
                layer.register_buffer(name, weight.detach())
    return model


def state_of(model):
    """All that an evaluation may leave changed, but for the modes."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            state[f"{name}.grad"] = parameter.grad.clone()
    return state


def flags_of(model):
    hooks = sum(
        len(layer._forward_hooks) + len(layer._forward_pre_hooks)
        for layer in model.modules()
    )
    hooks += sum(len(p._backward_hooks or {}) for p in model.parameters())
    return {
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "hooks": hooks,
        "attributes": [sorted(vars(layer)) for layer in model.modules()],
        "values": [plain_values(layer) for layer in model.modules()],
    }


def predicted(predict, case):
    """One evaluation, or one that an error ends, or two with weights between."""
    batches = case["batches"]
    if case["inputs_with_gradient"]:
        batches = [batch.clone().requires_grad_() for batch in batches]
    model = made(case, batches[0].shape[-1])
    model.reads_ids = case["ids"]
    failure = KeyboardInterrupt if case["interrupted"] else OSError
    reader = Reader(batches, case["loader_fails_at"], failure)
    if case["twice"]:
        predict(model, reader.read())
        with torch.no_grad():
            model.last.weight.neg_()
    model.reader = reader
    modes, before, flags = modes_of(model), state_of(model), flags_of(model)
    given = batches if case["as_list"] else reader.read()
    if case["loader_fails_at"] == -1:
        given = reader
    if case["as_list"]:
        model.reader = None
    grad_before = not case["under_no_grad"]
    out, raised = None, "nothing"
    torch.set_grad_enabled(grad_before)
    ignored = [*model.parameters(), *model.buffers(), *batches]
    with saved_tensor_bytes(ignored) as saved, Settings() as settings:
        try:
            out = predict(model, given)
        except (ZeroDivisionError, OSError, KeyboardInterrupt) as error:
            raised = "the error"
            if error is not model.error and error is not reader.error:
                raised = (
                    "another error"  # else an interrupt would end the judge
                )
                if str(error) == BROKEN:
                    raised = "the error of a copy"
                elif not isinstance(error, KeyboardInterrupt):
                    raise
    grad_after = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    is_tensor = isinstance(out, torch.Tensor)
    after = state_of(model)
    return {
        "raised": raised,
        "arose": model.error is not None or reader.error is not None,
        "kind": "a tensor" if is_tensor else type(out).__name__,
        "out": out.detach().clone() if is_tensor else None,
        "requires_grad": is_tensor and out.requires_grad,
        "kept_bytes": saved.peak_bytes,
        "modes": model.modes,
        "modes_kept": modes_of(model) == modes,
        "root_kept": model.training is modes[0],
        "grad_modes": model.grad_modes,
        "grad_mode_kept": grad_after is grad_before,
        "calls": [model.num_calls, len(model.rows)],
        "rows": model.rows,
        "samples": torch.tensor(model.samples, dtype=torch.float64),
        "read_ahead": max([1, *model.read_ahead]),
        "changed": sorted(
            {*before, *after}
            - {
                name
                for name in {*before} & {*after}
                if torch.equal(before[name], after[name])
            }
        ),
        "state": after,
        "flags_changed": [
            name for name, now in flags_of(model).items() if now != flags[name]
        ],
        "inputs_kept": all(
            batch.requires_grad == case["inputs_with_gradient"]
            for batch in batches
        ),
        "settings_changed": settings.changed,
    }


# mean_metrics


def type_of(value):
    return type(value).__name__


def number(value):
    """A number that a dict may hold, for a comparison that is not about types."""
    one = isinstance(value, torch.Tensor) and value.numel() == 1
    if one or isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    return float(value)


def averaged(mean_metrics, case):
    pairs = case["pairs"]
    tensors = [tensor for pair in pairs for tensor in pair]
    if case["with_graph"]:
        pairs = [(x.clone().requires_grad_() * 1, y) for x, y in pairs]
    if case["strided"]:
        pairs = [(strided(x), strided(y)) for x, y in pairs]
        tensors = [tensor for pair in pairs for tensor in pair]
    before = [tensor.clone() for tensor in tensors]
    options = {}
    if "ignore_index" in case:
        options["ignore_index"] = case["ignore_index"]
    given = pairs if case["as_list"] else Reader([*map(list, pairs)]).read()
    with (
        torch.set_grad_enabled(not case.get("no_grad", False)),
        Settings() as settings,
    ):
        metrics = mean_metrics(given, **options)
    kept = all(
        torch.equal(one, other)
        for one, other in zip(before, tensors, strict=True)
    )
    facts = {
        "ticket": case["ticket"],
        "tensors_kept": kept,
        "list_kept": len(case["pairs"]) == case["length"],
        "settings_changed": settings.changed,
    }
    if not isinstance(metrics, dict):
        return {"keys": f"a {type_of(metrics)}, not a dict", **facts}
    return {
        "keys": sorted(str(key) for key in metrics),
        "types": {str(key): type_of(value) for key, value in metrics.items()},
        "loss": number(metrics.get("loss")),
        "accuracy": number(metrics.get("accuracy")),
        "count": number(metrics.get("count")),
        **facts,
    }


# train_and_log


class Trace:
    """Lives as long as the graph that it was put into."""


class Traced(torch.autograd.Function):
    """The identity, with a trace in its node."""

    @staticmethod
    def forward(ctx, logits, trace):
        ctx.trace = trace
        return logits.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Watcher(nn.Module):
    """A classifier that looks, at each batch, what is left of earlier ones. It takes
    inputs as the loader gives them: of that dtype, with as many dimensions."""

    def __init__(self, num_features, num_classes, loudness):
        super().__init__()
        self.loudness, self.takes = loudness, None
        self.first = nn.Linear(num_features, WIDTH)
        self.middle = nn.Identity()
        self.last = nn.Linear(WIDTH, num_classes)
        self.num_calls, self.modes, self.samples = 0, [], []
        self.traces, self.inputs, self.logits = [], [], []
        self.left_over = {"graphs": [], "inputs": [], "logits": []}

    def __call__(self, *arguments, **options):
        self.num_calls += 1
        return super().__call__(*arguments, **options)

    def look(self):
        """How many graphs, inputs and logits of earlier batches exist."""
        return {
            "graphs": sum(one() is not None for one in self.traces),
            "inputs": sum(one() is not None for one in self.inputs),
            "logits": sum(one() is not None for one in self.logits),
        }

    def forward(self, x):
        if (x.dtype, x.dim()) != self.takes:
            raise TypeError("the model takes inputs of another dtype or shape")
        for name, count in self.look().items():
            # one may be: whether a loop forgets its last batch is its business
            self.left_over[name].append(max(1, count))
        self.modes.append(modes_of(self))
        self.samples += x.detach().flatten(1).sum(1).tolist()
        self.inputs.append(weakref.ref(x.untyped_storage()))
        flat = x.flatten(1).to(self.last.weight.dtype)
        logits = self.last(self.middle(self.first(flat).tanh()))
        logits = self.loudness * logits
        trace = Trace()
        self.traces.append(weakref.ref(trace))
        if logits.requires_grad:
            logits = Traced.apply(logits, trace)
        self.logits.append(weakref.ref(logits.untyped_storage()))
        return logits


def fresh(pairs, seen):
    """Pairs of tensors that nobody else holds."""
    for x, y in pairs:
        seen.append(len(y))
        yield [x.clone(), y.clone()]  # a list, as a `DataLoader` gives it


def as_numbers(value):
    """Losses as one float64 tensor; None if they are of another form."""
    if isinstance(value, torch.Tensor):
        fits = value.dim() == 1 and value.is_floating_point()
        return value.detach().double().clone() if fits else None
    if not isinstance(value, list):
        return None
    found = []
    for one in value:
        one = as_one_number(one)
        if one is None:
            return None
        found.append(one)
    return torch.tensor(found, dtype=torch.float64)


def as_one_number(value):
    if isinstance(value, torch.Tensor):
        fits = value.dim() == 0 and value.is_floating_point()
        return value.item() if fits else None
    return value if type(value) is float else None


def has_graph(value):
    if isinstance(value, torch.Tensor):
        return value.requires_grad or value.grad_fn is not None
    if isinstance(value, dict):
        return any(has_graph(one) for one in value.values())
    if isinstance(value, list | tuple):
        return any(has_graph(one) for one in value)
    return False


def entries_with_graph(log):
    """Names of what was returned with a graph behind it."""
    if not isinstance(log, dict):
        return ["the result"] if has_graph(log) else []
    return sorted(str(key) for key, value in log.items() if has_graph(value))


def trained(train_and_log, case):
    """An epoch over tensors that nobody else holds."""
    pairs = case["pairs"]
    with torch.random.fork_rng(devices=[]):
        model = Watcher(
            case["num_features"], case["num_classes"], case["loudness"]
        )
    with torch.no_grad():
        at = 0
        for parameter in model.parameters():
            size = parameter.numel()
            parameter.copy_(case["start"][at : at + size].view_as(parameter))
            at += size
    model = model.to(getattr(torch, case["dtype"]))
    for x, _ in pairs[:1]:
        model.takes = x.dtype, x.dim()
    model.train(case["train"])
    model.middle.train(not case["train"])
    model.first.weight.requires_grad_(not case["frozen"])
    # a parameter of the optimizer that is not the model's
    loose = nn.Parameter(case["start"][-3:].clone())
    parameters = [*model.parameters(), *([loose] if case["loose"] else [])]
    if case["old_gradients"]:
        for parameter in parameters:
            if parameter.requires_grad:
                parameter.grad = torch.ones_like(parameter)
    groups = [{"params": parameters}]
    if case["loose"]:  # the last layer stands in the second group, too
        groups = [{"params": parameters[:-3]}, {"params": parameters[-3:]}]
    optimizer = torch.optim.SGD(groups, lr=0.3, momentum=0.5)
    if case["old_momentum"]:
        for parameter in model.parameters():
            if parameter.requires_grad:
                optimizer.state[parameter]["momentum_buffer"] = torch.full_like(
                    parameter, 0.2
                )
    num_steps, seen = [], []
    optimizer.register_step_post_hook(lambda *_: num_steps.append(1))
    modes, attributes = modes_of(model), attributes_of(model)
    trainable = [one.requires_grad for one in model.parameters()]
    hooks, optimizer_settings = (
        hooks_of(model, optimizer),
        settings_of(optimizer),
    )
    given = pairs if case["as_list"] else fresh(pairs, seen)
    grad_before = torch.is_grad_enabled()
    with Settings() as settings:
        log = train_and_log(model, optimizer, given)
    left = model.look()
    if case["as_list"]:  # then the caller holds the inputs
        left["inputs"] = 0
        model.left_over["inputs"] = [1] * len(model.left_over["inputs"])
    facts = {
        "ticket": case["ticket"],
        "weights": nn.utils.parameters_to_vector(model.parameters()).detach(),
        "steps": len(num_steps),
        "calls": model.num_calls,
        "samples": torch.tensor(model.samples, dtype=torch.float64),
        "modes_kept": all(one == modes for one in model.modes)
        and modes_of(model) == modes,
        "grad_mode_kept": torch.is_grad_enabled() is grad_before,
        "attributes_kept": attributes == attributes_of(model),
        "frozen_kept": trainable
        == [one.requires_grad for one in model.parameters()],
        "settings_changed": settings.changed,
        "parameter_outside_the_model": loose.detach(),
        "optimizer_settings_changed": changed_names(
            optimizer_settings, settings_of(optimizer)
        ),
        "hooks_kept": hooks_of(model, optimizer) == hooks,
        "momenta": momenta_of(model, optimizer),
        "left_over": model.left_over,
        "left": left,
        "graph": entries_with_graph(log),
    }
    if not isinstance(log, dict):
        return {"keys": f"a {type_of(log)}, not a dict", **facts}
    predictions = log.get("predictions")
    is_tensor = isinstance(predictions, torch.Tensor)
    return {
        "keys": sorted(str(key) for key in log),
        "losses": as_numbers(log.get("losses")),
        "mean_loss": as_one_number(log.get("mean_loss")),
        "predictions": predictions.detach().clone() if is_tensor else None,
        **facts,
    }


# class_report


def reported(class_report, case):
    pairs = case["pairs"]
    if case["with_graph"]:
        pairs = [(x.clone().requires_grad_() * 1, y) for x, y in pairs]
    if case["strided"]:
        pairs = [(strided(x), y) for x, y in pairs]
    given = pairs if case["as_list"] else Reader([*map(list, pairs)]).read()
    with (
        torch.set_grad_enabled(not case["no_grad"]),
        Settings() as settings,
    ):
        report = class_report(given, case["num_classes"])
    facts = {
        "ticket": case["ticket"],
        "list_kept": len(case["pairs"]) == case["length"],
        "settings_changed": settings.changed,
    }
    if not isinstance(report, dict):
        return {"keys": f"a {type_of(report)}, not a dict", **facts}
    found = {}
    types = {}
    for key in ("precision", "recall", "f1", "support"):
        values = report.get(key)
        types[key] = type_of(values)
        if isinstance(values, torch.Tensor) or hasattr(values, "tolist"):
            values = values.tolist()
        if not isinstance(values, list | tuple):
            found[key] = "no list"
            continue
        types[key] = [types[key], *sorted({type_of(one) for one in values})]
        found[key] = [number(one) for one in values]
    for key in ("accuracy", "macro_f1", "weighted_f1"):
        types[key] = type_of(report.get(key))
        found[key] = number(report.get(key))
    return {
        "keys": sorted(str(key) for key in report),
        "types": types,
        **found,
        **facts,
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
