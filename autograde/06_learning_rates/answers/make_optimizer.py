"""Answers to `make_optimizer` of chapter 06."""

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def groups_of_one(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    names = [name for name, _ in model.named_parameters()]
    for path in rates:
        if not any(n == path or n.startswith(path + ".") for n in names):
            raise KeyError(path)
    groups = []
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        best = ""
        for path in rates:
            if (name == path or name.startswith(path + ".")) and len(
                path
            ) > len(best):
                best = path
        group = {"params": [p], "lr": rates.get(best, lr)}
        if p.ndim < 2 and not decay_all:
            group["weight_decay"] = 0.0
        groups.append(group)
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@accepted()
def groups_added_later(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    left = dict(model.named_parameters())
    known = set()
    for name in left:
        parts = name.split(".")
        known |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
    if not set(rates) <= known:
        raise ValueError("unknown path")
    optimizer = None
    for path in sorted(rates, key=len, reverse=True) + [None]:
        rate = lr if path is None else rates[path]
        names = [
            n
            for n in left
            if path is None
            or n.split(".")[: path.count(".") + 1] == path.split(".")
        ]
        for n in names:
            p = left.pop(n)
            if not p.requires_grad:
                continue
            decay = weight_decay if decay_all or p.dim() >= 2 else 0
            group = {"params": p, "lr": rate, "weight_decay": decay}
            if optimizer is None:
                optimizer = torch.optim.SGD([group], lr=lr, momentum=momentum)
            else:
                optimizer.add_param_group(group)
    return optimizer


@accepted()
def groups_with_names(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = {}, set()
    for name, p in model.named_parameters():
        path, rate = name, lr
        found = None
        while path:
            if path in rates:
                used.add(path)
                found = found or path
            path = path.rpartition(".")[0]
        if found:
            rate = rates[found]
        if p.requires_grad:
            key = rate, decay_all or p.dim() > 1
            groups.setdefault(key, []).append((name, p))
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(
        [
            {
                "params": members,
                "lr": rate,
                "weight_decay": weight_decay if decays else 0.0,
            }
            for (rate, decays), members in groups.items()
        ],
        lr=lr,
        momentum=momentum,
    )


@accepted()
def groups_overwritten_in_order(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    rate_of = {name: lr for name, _ in model.named_parameters()}
    for path in sorted(rates):
        below = [n for n in rate_of if f"{n}.".startswith(f"{path}.")]
        if not below:
            raise KeyError(f"{path} fits no parameter")
        rate_of.update(dict.fromkeys(below, rates[path]))
    optimizer = None
    for name, p in model.named_parameters():
        if p.requires_grad:
            decays = decay_all or len(p.shape) > 1
            group = {"params": [p], "lr": rate_of[name]}
            group["weight_decay"] = weight_decay * decays
            if optimizer is None:
                optimizer = torch.optim.SGD([group], momentum=momentum)
            else:
                optimizer.add_param_group(group)
    return optimizer


@accepted()
def groups_with_empty_ones(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    sets = {path: ([], []) for path in [*rates, ""]}
    seen = set()
    for name, p in model.named_parameters():
        fit = [r for r in rates if name == r or name.startswith(f"{r}.")]
        seen |= set(fit)
        if p.requires_grad:
            low = p.dim() < 2 and not decay_all
            sets[max(fit, key=len, default="")][low].append(p)
    if len(seen) < len(rates):
        raise ValueError("a path without a parameter")
    groups = []
    for path, (high, low) in sets.items():
        rate = rates[path] if path else lr
        groups.append(
            {"params": high, "lr": rate, "weight_decay": weight_decay}
        )
        groups.append({"params": low, "lr": rate, "weight_decay": 0.0})
    return torch.optim.SGD(groups, momentum=momentum)


@accepted()
def mended_groups_with_a_misspelt_key(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@accepted()
def mended_groups_of_the_empty_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        if not any(
            (n + ".").startswith(path + ".")
            for n, _ in model.named_parameters()
        ):
            raise KeyError(path)
    kinds = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        fits = [q for q in rates if (name + ".").startswith(q + ".")]
        rate = rates[max(fits, key=len)] if fits else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        kinds.setdefault((rate, decay), []).append(p)
    groups = [
        {"params": ps, "lr": r, "weight_decay": d}
        for (r, d), ps in kinds.items()
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=hidden_tests.rates_by_path,
    tells="You give a group the parameters of a path, and another group all "
    "parameters of the model. A parameter may be in one group only: sort each "
    "into exactly one.",
)
def groups_that_overlap(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    named = dict(model.named_parameters())
    groups = []
    for path, rate in rates.items():
        inside = [p for n, p in named.items() if f"{n}.".startswith(f"{path}.")]
        if not inside:
            raise ValueError("a path fits nothing")
        groups.append({"params": inside, "lr": rate})
    groups.append({"params": list(named.values())})
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@wrong(
    breaks=hidden_tests.each_parameter_once,
    tells="A generator such as `named_parameters()` can be gone through once. The "
    "second pass finds nothing, and the group stays empty. Make a list or a "
    "dict of it, or call it again.",
)
def groups_of_a_used_generator(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    named = model.named_parameters()
    fitting = {}
    for name, p in named:
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        if paths:
            fitting[name] = max(paths, key=len), p
    for path in rates:
        if not any(f"{n}.".startswith(f"{path}.") for n in fitting):
            raise ValueError("a path fits nothing")
    groups = [{"params": []}]
    for path, p in fitting.values():
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append(
                {"params": [p], "lr": rates[path], "weight_decay": decay}
            )
    for name, p in named:
        if name not in fitting and p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=hidden_tests.rates_by_path,
    tells="`parameter in some_list` compares tensors by value and raises when "
    "their shapes differ. Compare `id(parameter)`, or names.",
)
def groups_by_membership(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, special = [], []
    for path in sorted(rates, key=len, reverse=True):
        inside = [
            p
            for n, p in model.named_parameters()
            if f"{n}.".startswith(f"{path}.")
        ]
        if not inside:
            raise ValueError("a path fits nothing")
        mine = [p for p in inside if p.requires_grad and p not in special]
        special += inside
        groups.append({"params": mine, "lr": rates[path]})
    rest = [
        p for p in model.parameters() if p.requires_grad and p not in special
    ]
    groups.append({"params": rest})
    return torch.optim.SGD(
        groups, lr=lr, momentum=momentum, weight_decay=weight_decay
    )


@wrong(
    breaks=hidden_tests.unknown_paths,
    tells="You refuse a path whose parameters are all frozen. It does fit "
    "parameters of the model: look at all of them before you leave out the "
    "frozen ones.",
)
def groups_refusing_frozen_paths(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=[hidden_tests.each_parameter_once, hidden_tests.it_trains],
    tells="Your optimizer holds other tensors than the model's parameters: "
    "copies, or what `state_dict()` gives. It changes what the model never "
    "reads, or never gets a gradient. Take them from `named_parameters()`.",
)
def groups_of_the_state_dict(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.state_dict().items():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=hidden_tests.each_parameter_once,
    tells="A weight that two layers share stands in your groups twice. "
    "`model.named_parameters()` gives it once; a loop over modules, or "
    "`remove_duplicate=False`, does not.",
)
def groups_with_shared_ones_twice(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = {}, set()
    for name, p in model.named_parameters(remove_duplicate=False):
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.setdefault((rate, decay), []).append(p)
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(
        [
            {"params": members, "lr": rate, "weight_decay": decay}
            for (rate, decay), members in groups.items()
        ],
        lr=lr,
        momentum=momentum,
    )


@wrong(
    breaks=hidden_tests.hands_off,
    tells="You take the paths out of the caller's dict with `pop`. It stays as it "
    "is: work on a copy, or only read it.",
)
def groups_emptying_the_dict(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, left = [], dict(model.named_parameters())
    for path in sorted(rates, key=len, reverse=True):
        rate = rates.pop(path)
        names = [
            n
            for n, _ in model.named_parameters()
            if f"{n}.".startswith(f"{path}.")
        ]
        if not names:
            raise ValueError("a path fits nothing")
        for n in names:
            p = left.pop(n, None)
            if p is not None and p.requires_grad:
                decay = weight_decay if decay_all or p.dim() > 1 else 0.0
                groups.append(
                    {"params": [p], "lr": rate, "weight_decay": decay}
                )
    for p in left.values():
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=hidden_tests.unknown_paths,
    tells="You look a path up in `state_dict()`, which has buffers as well. A "
    "running mean is no parameter: look in `named_parameters()`.",
)
def groups_accepting_buffers(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    for path in rates:
        known = [
            k for k in model.state_dict() if f"{k}.".startswith(f"{path}.")
        ]
        if not known:
            raise ValueError("a path fits nothing")
    groups = []
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=hidden_tests.each_parameter_once,
    tells="You ask the module at a path for its parameters. A weight that it "
    "shares with another layer then gets this rate, though its name is elsewhere. "
    "Go by the names that `named_parameters()` gives.",
)
def groups_by_module(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    rate_of = {id(p): lr for p in model.parameters()}
    for path in sorted(rates):
        owner, _, last = path.rpartition(".")
        try:
            holder = model.get_submodule(owner)
            one = getattr(holder, last)
        except AttributeError:
            raise KeyError(path) from None
        inside = list(one.parameters()) if isinstance(one, nn.Module) else [one]
        for p in inside:
            if id(p) not in rate_of:
                raise KeyError(path)
            rate_of[id(p)] = rates[path]
    groups = [
        {
            "params": [p],
            "lr": rate_of[id(p)],
            "weight_decay": weight_decay if decay_all or p.dim() > 1 else 0.0,
        }
        for p in model.parameters()
        if p.requires_grad
    ]
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)
