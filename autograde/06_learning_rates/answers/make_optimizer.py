"""Answers to `make_optimizer` of chapter 06."""

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


groups_refusing_all_paths = edit(
    groups_added_later,
    {"if not set(rates) <= known:": "if not set(rates) < known:"},
    breaks=hidden_tests.unknown_paths,
    tells="You refuse paths that are all there are: between sets, `<` asks for "
    "fewer. Ask for `<=`, or look at each path by itself.",
)

groups_by_substring = edit(
    mended_groups_with_a_misspelt_key,
    {
        'paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]': "paths = [path for path in rates if path in name]",
    },
    breaks=[hidden_tests.rates_by_path, hidden_tests.unknown_paths],
    tells="You take a parameter to belong to a path if its name contains the "
    "path anywhere: `conv1` then also fits `conv10`. Compare the beginning, up "
    'to a dot: `(name + ".").startswith(path + ".")`.',
)

groups_without_the_dot = edit(
    mended_groups_with_a_misspelt_key,
    {
        'paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]': "paths = [path for path in rates if name.startswith(path)]",
    },
    breaks=[hidden_tests.rates_by_path, hidden_tests.unknown_paths],
    tells="`name.startswith(path)` without a dot: `conv1` then also fits "
    "`conv10.weight`, and half a word fits as well. Put a dot behind both.",
)

groups_of_modules_only = edit(
    mended_groups_with_a_misspelt_key,
    {
        'paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]': 'paths = [path for path in rates if name.startswith(path + ".")]',
    },
    breaks=hidden_tests.rates_by_path,
    tells="With the dot alone, a path that is a parameter's whole name fits "
    "nothing. Put a dot behind the name as well, or compare for equality too.",
)

groups_without_the_rest = edit(
    mended_groups_with_a_misspelt_key,
    {
        """
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
        """: """
        if p.requires_grad and paths:
            rate = rates[max(paths, key=len)]
        """,
    },
    breaks=[hidden_tests.rates_by_path, hidden_tests.each_parameter_once],
    tells="Parameters that no path fits are in no group: they are never trained, "
    "and nothing says so. Give the rest a group with the rate `lr`.",
)


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


groups_by_the_first_path = edit(
    mended_groups_with_a_misspelt_key,
    {
        "rate = rates[max(paths, key=len)] if paths else lr": "rate = rates[paths[0]] if paths else lr",
    },
    breaks=hidden_tests.longest_path,
    tells="Where several paths fit, you take the first in the dict. The longest "
    "one decides.",
)


@wrong(
    breaks=hidden_tests.longest_path,
    tells="Where several paths fit, you take the last in the dict. The longest "
    "one decides.",
)
def groups_by_the_last_path(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        rate = lr
        for path, own in rates.items():
            if f"{name}.".startswith(f"{path}."):
                used.add(path)
                rate = own
        if p.requires_grad:
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


groups_by_the_shortest_path = edit(
    mended_groups_with_a_misspelt_key,
    {
        "rate = rates[max(paths, key=len)] if paths else lr": "rate = rates[min(paths, key=len)] if paths else lr",
    },
    breaks=hidden_tests.longest_path,
    tells="Where several paths fit, you take the shortest. The longest one "
    "decides: it is the most special.",
)


@wrong(
    breaks=hidden_tests.each_parameter_once,
    tells="Frozen parameters are in the optimizer. Leave out those whose "
    "`requires_grad` is False.",
)
def groups_with_frozen_ones(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
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


groups_with_a_misspelt_key = edit(
    mended_groups_with_a_misspelt_key,
    {
        'groups.append({"params": [p], "lr": rate, "weight_decay": decay})': 'groups.append({"params": [p], "Lr": rate, "weight_decay": decay})',
    },
    breaks=hidden_tests.rates_by_path,
    tells='Your groups have a key that no optimizer knows, such as "Lr". It is '
    "kept and never read, so all of them train at `lr`. The key is "
    '"lr".',
)


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


groups_for_any_path = edit(
    mended_groups_with_a_misspelt_key,
    {
        "groups, used = [], set()": "groups = []",
        "used |= set(paths)": "",
        """
        if used != set(rates):
            raise ValueError("a path fits nothing")
        """: "",
    },
    breaks=hidden_tests.unknown_paths,
    tells="A path that fits no parameter passes unnoticed: a misspelt layer then "
    "trains at the rate of the rest. Count what each path fits, and raise a "
    "`ValueError` if it is nothing.",
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


groups_refusing_covered_paths = edit(
    mended_groups_with_a_misspelt_key,
    {
        "used |= set(paths)": """
        rate = lr
        if paths:
            best = max(paths, key=len)
            used.add(best)
            rate = rates[best]
        """,
        "rate = rates[max(paths, key=len)] if paths else lr": "",
    },
    breaks=hidden_tests.unknown_paths,
    tells="You refuse a path whose parameters all went to longer paths. It fits "
    "parameters all the same: note what each path fits, not what it is left "
    "with.",
)

groups_of_a_copy = edit(
    mended_groups_with_a_misspelt_key,
    {
        "for name, p in model.named_parameters():": "for name, p in copy.deepcopy(model).named_parameters():",
    },
    breaks=[hidden_tests.each_parameter_once, hidden_tests.it_trains],
    tells="Your optimizer holds other tensors than the model's parameters: "
    "copies, or what `state_dict()` gives. It changes what the model never "
    "reads, or never gets a gradient. Take them from `named_parameters()`.",
)


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


groups_that_all_decay = edit(
    mended_groups_with_a_misspelt_key,
    {
        """
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
        """: 'groups.append({"params": [p], "lr": rate})',
        "return torch.optim.SGD(groups, lr=lr, momentum=momentum)": """
        return torch.optim.SGD(
            groups, lr=lr, momentum=momentum, weight_decay=weight_decay
        )
        """,
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="All your groups decay. With `decay_all=False` parameters with fewer "
    "than two dimensions get a group with `weight_decay` 0.",
)

groups_by_the_name_bias = edit(
    mended_groups_with_a_misspelt_key,
    {
        "decay = weight_decay if decay_all or p.dim() > 1 else 0.0": """
        is_bias = name.endswith("bias") and not decay_all
        decay = 0.0 if is_bias else weight_decay
        """,
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="You keep the decay off biases by their name. The weights of norms and "
    "other parameters with fewer than two dimensions are decayed: ask for "
    "`parameter.dim()`.",
)

groups_forgetting_scalars = edit(
    mended_groups_with_a_misspelt_key,
    {
        "decay = weight_decay if decay_all or p.dim() > 1 else 0.0": """
        spared = p.dim() == 1 and not decay_all
        decay = 0.0 if spared else weight_decay
        """,
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="`dim() == 1` leaves out parameters without dimensions: a scalar is "
    "decayed. Ask for fewer than two.",
)

groups_without_decay_all = edit(
    mended_groups_with_a_misspelt_key,
    {
        "decay = weight_decay if decay_all or p.dim() > 1 else 0.0": "decay = weight_decay if p.dim() > 1 else 0.0",
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="`decay_all` has no effect: parameters with fewer than two dimensions "
    "never decay. With `decay_all=True` they do.",
)

groups_decaying_special_vectors = edit(
    mended_groups_with_a_misspelt_key,
    {
        "decay = weight_decay if decay_all or p.dim() > 1 else 0.0": """
        spared = p.dim() < 2 and not decay_all and not paths
        decay = 0.0 if spared else weight_decay
        """,
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="Only parameters that no path fits keep the decay off their vectors. "
    "The rate and the decay are two decisions: make both for each parameter.",
)

groups_without_momentum = edit(
    mended_groups_with_a_misspelt_key,
    {
        "return torch.optim.SGD(groups, lr=lr, momentum=momentum)": "return torch.optim.SGD(groups, lr=lr)",
    },
    breaks=hidden_tests.it_trains,
    tells="`momentum` is not handed on. What all groups share goes outside, as an "
    "argument of the optimizer.",
)

groups_of_adamw = edit(
    mended_groups_with_a_misspelt_key,
    {
        "return torch.optim.SGD(groups, lr=lr, momentum=momentum)": "return torch.optim.AdamW(groups, lr=lr)",
    },
    breaks=hidden_tests.it_trains,
    tells="You return another optimizer than `torch.optim.SGD`, so the steps are "
    "other ones.",
)

groups_with_nesterov = edit(
    mended_groups_with_a_misspelt_key,
    {
        "return torch.optim.SGD(groups, lr=lr, momentum=momentum)": """
        return torch.optim.SGD(
            groups, lr=lr, momentum=momentum, nesterov=momentum > 0
        )
        """,
    },
    breaks=hidden_tests.it_trains,
    tells="You switched on Nesterov momentum, which nobody asked for. All other "
    "settings are SGD's defaults.",
)


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
    breaks=hidden_tests.each_parameter_once,
    tells="You set `requires_grad` on all parameters, so frozen ones come back "
    "into training. The model stays as it is: leave frozen parameters out.",
)
def groups_that_thaw(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if f"{name}.".startswith(f"{q}.")]
        used |= set(paths)
        p.requires_grad_(True)
        rate = rates[max(paths, key=len)] if paths else lr
        decay = weight_decay if decay_all or p.dim() > 1 else 0.0
        groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


groups_without_an_optimizer = edit(
    mended_groups_with_a_misspelt_key,
    {
        "return torch.optim.SGD(groups, lr=lr, momentum=momentum)": "return groups",
    },
    breaks=hidden_tests.rates_by_path,
    tells="You return the list of groups. The optimizer made of it is asked for.",
)

groups_without_a_zero_rate = edit(
    mended_groups_with_a_misspelt_key,
    {
        "rate = rates[max(paths, key=len)] if paths else lr": "rate = rates.get(max(paths, key=len, default=None)) or lr",
    },
    breaks=hidden_tests.rates_by_path,
    tells="`rate or lr` takes a rate of 0 for no rate. Ask whether a path fits, "
    "not whether its rate is true.",
)

groups_decaying_matrices_only = edit(
    mended_groups_with_a_misspelt_key,
    {
        "decay = weight_decay if decay_all or p.dim() > 1 else 0.0": "decay = weight_decay if decay_all or p.dim() == 2 else 0.0",
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="`dim() == 2` decays matrices only: the weights of convolutions have "
    "four dimensions. Fewer than two are spared, all others decay.",
)


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


@wrong(
    breaks=hidden_tests.rates_by_path,
    tells="In a regular expression the dot of a path stands for any character. "
    "Escape the path with `re.escape`, or compare strings.",
)
def groups_by_regular_expression(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    import re

    groups, used = [], set()
    for name, p in model.named_parameters():
        paths = [q for q in rates if re.match(rf"{q}(\.|$)", name)]
        used |= set(paths)
        if p.requires_grad:
            rate = rates[max(paths, key=len)] if paths else lr
            decay = weight_decay if decay_all or p.dim() > 1 else 0.0
            groups.append({"params": [p], "lr": rate, "weight_decay": decay})
    if used != set(rates):
        raise ValueError("a path fits nothing")
    return torch.optim.SGD(groups, lr=lr, momentum=momentum)


@wrong(
    breaks=hidden_tests.hands_off,
    tells="You seed the global random state. Nothing random is asked for here, and "
    "whoever draws afterwards gets other numbers than expected: leave it alone.",
)
def groups_with_a_seed(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    torch.manual_seed(0)
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


groups_of_the_empty_path = edit(
    mended_groups_of_the_empty_path,
    {
        '(n + ".").startswith': 'path == "" or (n + ".").startswith',
    },
    breaks=hidden_tests.unknown_paths,
    tells="You take the empty path for the whole model. It fits no parameter "
    "and is refused.",
)

groups_stripping_dots = edit(
    mended_groups_of_the_empty_path,
    {
        'startswith(path + ".")': 'startswith(path.rstrip(".") + ".")',
        'fits = [q for q in rates if (name + ".").startswith(q + ".")]': """
        fits = [
            q for q in rates if (name + ".").startswith(q.rstrip(".") + ".")
        ]
        """,
    },
    breaks=hidden_tests.unknown_paths,
    tells="You strip a dot at the end of a path. `head.` fits no parameter "
    "and is refused.",
)

groups_checked_by_expression = edit(
    mended_groups_of_the_empty_path,
    {
        """
        def mended_groups_of_the_empty_path(
            model, rates, lr, weight_decay, momentum=0.0, decay_all=False
        ):
        """: """
        def mended_groups_of_the_empty_path(
            model, rates, lr, weight_decay, momentum=0.0, decay_all=False
        ):
            import re
        """,
        '(n + ".").startswith(path + "."': r're.match(path + r"(\.|$)", n',
    },
    breaks=hidden_tests.unknown_paths,
    tells="You look for unknown paths with a regular expression, in which a "
    "dot stands for any character.",
)


@wrong(
    breaks=hidden_tests.unknown_paths,
    tells="You accept the path of every module, also of one without "
    "parameters. It fits no parameter.",
)
def groups_of_known_modules(
    model, rates, lr, weight_decay, momentum=0.0, decay_all=False
):
    known = {n for n, _ in model.named_modules()} | {
        n for n, _ in model.named_parameters()
    }
    for path in rates:
        if path not in known:
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


groups_by_second_names = edit(
    mended_groups_of_the_empty_path,
    {
        "_ in model.named_parameters()": "_ in model.named_parameters(remove_duplicate=False)",
    },
    breaks=hidden_tests.unknown_paths,
    tells="You accept the second name of a shared parameter. It goes by the "
    "name that `named_parameters()` gives it.",
)

groups_two_parts_deep = edit(
    mended_groups_of_the_empty_path,
    {
        'fits = [q for q in rates if (name + ".").startswith(q + ".")]': """
        parts = name.split(".")
        fits = [q for q in rates if q in (name, parts[0], ".".join(parts[:2]))]
        """,
    },
    breaks=hidden_tests.rates_by_path,
    tells="You look at paths of one or two parts and at full names. A path "
    "may be of any length.",
)

groups_with_foreach = edit(
    mended_groups_of_the_empty_path,
    {
        "return torch.optim.SGD(groups, lr=lr, momentum=momentum)": "return torch.optim.SGD(groups, lr=lr, momentum=momentum, foreach=True)",
    },
    breaks=hidden_tests.it_trains,
    tells="You set `foreach`. All settings that nobody mentions are SGD's "
    "defaults.",
)

groups_of_rounded_rates = edit(
    mended_groups_of_the_empty_path,
    {'"lr": r, "weight_decay"': '"lr": round(r, 5), "weight_decay"'},
    breaks=hidden_tests.rates_by_path,
    tells="You round the rates. Pass them on as they are.",
)

groups_sorting_the_dict = edit(
    mended_groups_of_the_empty_path,
    {
        "kinds = {}": """
        for q in sorted(rates):
            rates[q] = rates.pop(q)
        kinds = {}
        """,
    },
    breaks=hidden_tests.hands_off,
    tells="You bring the dict of rates into another order. It belongs to the "
    "caller: sort a copy.",
)

groups_freezing_zero_rates = edit(
    mended_groups_of_the_empty_path,
    {
        "rate = rates[max(fits, key=len)] if fits else lr": """
        rate = rates[max(fits, key=len)] if fits else lr
        if rate == 0:
            p.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.hands_off,
    tells="You freeze what has a rate of 0. The model stays as it is.",
)

groups_clearing_gradients = edit(
    mended_groups_of_the_empty_path,
    {
        "kinds.setdefault((rate, decay), []).append(p)": """
        kinds.setdefault((rate, decay), []).append(p)
        p.grad = None
        """,
    },
    breaks=hidden_tests.hands_off,
    tells="You clear gradients of the model. Making an optimizer leaves them "
    "alone.",
)

groups_short_without_decay = edit(
    mended_groups_of_the_empty_path,
    {
        """
        groups = [
            {"params": ps, "lr": r, "weight_decay": d}
            for (r, d), ps in kinds.items()
        ]
        """: """
        if weight_decay == 0:
            return torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
        groups = [
            {"params": ps, "lr": r, "weight_decay": d}
            for (r, d), ps in kinds.items()
        ]
        """,
    },
    breaks=hidden_tests.each_parameter_once,
    tells="Without decay you hand over all parameters of the model, frozen "
    "ones and paths included.",
)

groups_short_without_paths = edit(
    mended_groups_of_the_empty_path,
    {
        "kinds = {}": """
        if not rates and decay_all:
            return torch.optim.SGD(
                model.parameters(),
                lr=lr,
                momentum=momentum,
                weight_decay=weight_decay,
            )
        kinds = {}
        """,
    },
    breaks=hidden_tests.each_parameter_once,
    tells="Without paths you hand over all parameters of the model, frozen "
    "ones included.",
)

groups_counting_elements = edit(
    mended_groups_of_the_empty_path,
    {
        "decay = weight_decay if decay_all or p.dim() > 1 else 0.0": """
        decay = (
            weight_decay
            if decay_all
            or p.dim() > 1
            and p.dtype.is_floating_point
            and p.numel() > 1
            else 0.0
        )
        """,
    },
    breaks=hidden_tests.decay_by_dimensions,
    tells="You spare a matrix of one element. It has two dimensions, so it "
    "decays.",
)

groups_without_equal_values = edit(
    mended_groups_with_a_misspelt_key,
    {
        "groups, used = [], set()": "groups, used, held = [], set(), []",
        "if p.requires_grad:": """
        same = any(p.shape == q.shape and torch.equal(p, q) for q in held)
        if p.requires_grad and not same:
            held.append(p)
        """,
    },
    breaks=hidden_tests.each_parameter_once,
    tells="You look for shared parameters by their values. Two new norms of one "
    "width have equal weights, and two new biases are both zero: the second "
    "is left out. Compare `id(p)`.",
)

groups_by_patterns = edit(
    SOLUTION,
    {
        'if f"{full}.".startswith(f"{one}.")': 'if fnmatch.fnmatch(f"{full}.", f"{one}.*")',
        "grouped: dict": "import fnmatch\n\ngrouped: dict",
    },
    breaks=hidden_tests.unknown_paths,
    tells="Your paths are patterns: `*` fits every parameter. A path is text, and `*` is "
    "the beginning of no name.",
)

groups_in_any_case = edit(
    SOLUTION,
    {
        'f"{full}.".startswith(f"{one}.")': 'f"{full}.".lower().startswith(f"{one}.".lower())'
    },
    breaks=hidden_tests.unknown_paths,
    tells="`HEAD` is not `head`: names in Python tell capitals from small letters, and a "
    "model may have both.",
)

without_empty_ones = edit(
    SOLUTION,
    {"if p.requires_grad:": "if p.requires_grad and p.numel():"},
    breaks=hidden_tests.each_parameter_once,
    tells="You leave out a parameter without entries. It is trainable: it stands in the "
    "optimizer and in its state like each other.",
)

paths_that_are_tidied = edit(
    SOLUTION,
    {
        'paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]': """
        tidy = {one: one.strip(" .").removesuffix(".*") for one in rates}
        paths = [k for k, v in tidy.items() if f"{full}.".startswith(f"{v}.")]
        """
    },
    breaks=hidden_tests.unknown_paths,
    tells="You take away blanks, dots or `.*` around a path before you compare it. "
    "A path that is written wrongly fits no parameter, and must be refused.",
)

paths_in_another_spelling = edit(
    SOLUTION,
    {
        'paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]': """
        dots = str.maketrans("/[", "..", "]")
        tidy = {one: one.translate(dots) for one in rates}
        paths = [k for k, v in tidy.items() if f"{full}.".startswith(f"{v}.")]
        """
    },
    breaks=hidden_tests.unknown_paths,
    tells="You accept `backbone/0` or `backbone[0]`. A path is written as in "
    "`named_parameters()`, with dots; another spelling fits no parameter.",
)

A_WRAPPERS_NAME = (
    "You take `module.` or `model.` away from a path. This model has no part "
    "of that name, so the path fits no parameter."
)

paths_without_a_wrapper = edit(
    SOLUTION,
    {
        'paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]': """
        paths = []
        for one in rates:
            inner = one.removeprefix("module.").removeprefix("model.")
            if f"{full}.".startswith(f"{inner}."):
                paths.append(one)
        """
    },
    breaks=hidden_tests.unknown_paths,
    tells=A_WRAPPERS_NAME,
)

paths_without_module = edit(
    SOLUTION,
    {
        'paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]': """
        rates = {k.removeprefix("module."): v for k, v in rates.items()}
        unseen = {one.removeprefix("module.") for one in unseen}
        paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]
        """
    },
    breaks=hidden_tests.unknown_paths,
    tells=A_WRAPPERS_NAME,
)

paths_without_model = edit(
    SOLUTION,
    {
        'paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]': """
        rates = {k.removeprefix("model."): v for k, v in rates.items()}
        unseen = {one.removeprefix("model.") for one in unseen}
        paths = [one for one in rates if f"{full}.".startswith(f"{one}.")]
        """
    },
    breaks=hidden_tests.unknown_paths,
    tells=A_WRAPPERS_NAME,
)
