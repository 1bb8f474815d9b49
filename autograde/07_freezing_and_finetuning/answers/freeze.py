"""Answers to `freeze` of chapter 07."""

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests

NOBODY_READS = (
    "You set an attribute that nobody reads: `requires_grad` on a module, or a "
    "misspelt name on a parameter. Python accepts both in silence. Use "
    "`module.requires_grad_(False)`, or `requires_grad` of each parameter."
)


@accepted(body=True)
def by_submodule():
    def the_part(model, prefix):
        part = model.get_submodule(prefix)
        names = [name for name, _ in part.named_parameters(prefix=prefix)]
        if not names:
            raise ValueError(prefix)
        return part, names

    def freeze(model, prefix):
        part, names = the_part(model, prefix)
        part.requires_grad_(False)
        part.zero_grad(set_to_none=True)
        return names

    def unfreeze(model, prefix, optimizer):
        part, names = the_part(model, prefix)
        part.requires_grad_(True)
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        added = [p for p in part.parameters() if id(p) not in held]
        if added:
            optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            list(filter(lambda p: p.requires_grad, model.parameters())),
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@accepted(body=True)
def by_modules_and_their_own_parameters():
    def under(model, prefix):
        found = {}
        for path, module in model.named_modules(remove_duplicate=False):
            if path == prefix or path.startswith(f"{prefix}."):
                for name, p in module.named_parameters(recurse=False):
                    found[f"{path}.{name}"] = p
        if not found:
            raise KeyError(prefix)
        return found

    def freeze(model, prefix):
        found = under(model, prefix)
        for p in found.values():
            p.requires_grad = False
            p.grad = None
        return list(found)

    def unfreeze(model, prefix, optimizer):
        found = under(model, prefix)
        for p in found.values():
            p.requires_grad = True
            groups = optimizer.param_groups
            if not any(p is q for g in groups for q in g["params"]):
                # one group per parameter
                optimizer.add_param_group({"params": [p]})
        return list(found)

    def trainable_sgd(model, lr, momentum, weight_decay):
        groups = [
            {"params": [p]} for p in model.parameters() if p.requires_grad
        ]
        return torch.optim.SGD(groups, lr, momentum, weight_decay=weight_decay)


@accepted(body=True)
def by_a_regular_expression():
    import re

    def matching(model, prefix):
        pattern = re.compile(re.escape(prefix) + r"\..+")
        everything = model.named_parameters(remove_duplicate=False)
        return {name: p for name, p in everything if pattern.fullmatch(name)}

    def freeze(model, prefix):
        found = matching(model, prefix)
        assert_some(found, prefix)
        for p in found.values():
            p.requires_grad_(False).grad = None
        return [*found]

    def assert_some(found, prefix):
        if not found:
            raise ValueError(f"nothing under {prefix}")

    def unfreeze(model, prefix, optimizer):
        found = matching(model, prefix)
        assert_some(found, prefix)
        held = set()
        for group in optimizer.param_groups:
            held.update(map(id, group["params"]))
        added = {}
        for p in found.values():
            p.requires_grad_()
            if id(p) not in held:
                added[id(p)] = p
        if added:
            settings = dict(optimizer.defaults)
            optimizer.add_param_group({"params": [*added.values()], **settings})
        return [*found]

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        if len(chosen) == 0:
            raise ValueError("nothing to train")
        return torch.optim.SGD(
            [{"params": chosen, "lr": lr, "weight_decay": weight_decay}],
            momentum=momentum,
        )


@accepted(body=True)
def by_parts_of_the_names():
    def lies_under(name, prefix):
        parts, wanted = name.split("."), prefix.split(".")
        return len(parts) > len(wanted) and parts[: len(wanted)] == wanted

    def freeze(model, prefix):
        frozen = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if lies_under(name, prefix):
                p.grad, p.requires_grad = None, False
                frozen.append(name)
        if frozen:
            return frozen
        raise ValueError("no such part")

    def unfreeze(model, prefix, optimizer):
        thawed = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if lies_under(name, prefix):
                p.requires_grad = True
                thawed.append(name)
                try:
                    optimizer.add_param_group({"params": [p]})
                except ValueError:
                    pass  # held already
        if thawed:
            return thawed
        raise AttributeError("no such part")

    def trainable_sgd(model, lr, momentum, weight_decay):
        optimizer = None
        for p in model.parameters():
            if not p.requires_grad:
                continue
            if optimizer is None:
                optimizer = torch.optim.SGD(
                    [p], lr=lr, momentum=momentum, weight_decay=weight_decay
                )
            else:
                optimizer.param_groups[0]["params"].append(p)
        if optimizer is None:
            raise ValueError("all is frozen")
        return optimizer


@accepted(body=True)
def by_detaching_in_place():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name[: len(prefix) + 1] == prefix + ".":
                p.detach_()
                p.grad = None
                names += [name]
        if names == []:
            raise ValueError
        return names

    def unfreeze(model, prefix, optimizer):
        known = [p for g in optimizer.param_groups for p in g["params"]]
        part = model.get_submodule(prefix)
        unknown = [
            p for p in part.parameters() if all(p is not q for q in known)
        ]
        if not any(True for _ in part.parameters()):
            raise ValueError
        part.requires_grad_()
        if unknown:
            optimizer.add_param_group(dict(params=unknown))
        return [prefix + "." + name for name, _ in part.named_parameters()]

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = {id(p): p for p in model.parameters() if p.requires_grad}
        return torch.optim.SGD(
            list(chosen.values()), lr, momentum, 0, weight_decay
        )


@accepted(body=True)
def by_the_tensors_of_the_state_dict():
    def parameters_under(model, prefix):
        tensors = model.state_dict(keep_vars=True)
        found = {
            name: tensor
            for name, tensor in tensors.items()
            if name.startswith(prefix + ".")
            and isinstance(tensor, nn.Parameter)
        }
        if not found:
            raise KeyError(prefix)
        return found

    def freeze(model, prefix):
        found = parameters_under(model, prefix)
        for p in found.values():
            p.requires_grad, p.grad = False, None
        return list(found)

    def unfreeze(model, prefix, optimizer):
        found = parameters_under(model, prefix)
        groups = optimizer.param_groups
        for p in found.values():
            p.requires_grad = True
            if all(p is not q for g in groups for q in g["params"]):
                optimizer.add_param_group({"params": p, **optimizer.defaults})
        return list(found)

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        settings = {"momentum": momentum, "weight_decay": weight_decay}
        return torch.optim.SGD(chosen, lr=lr, **settings)


@accepted(body=True)
def mended_shared_added_twice():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        return names

    def unfreeze(model, prefix, optimizer):
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        names, added = [], []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
                    held.add(id(p))
        if not names:
            raise ValueError
        if added:
            optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


flag_on_the_module = edit(
    mended_shared_added_twice,
    {
        "p.requires_grad_(False)": "",
        """
        if not names:
            raise ValueError
        return names
        """: """
        if not names:
            raise ValueError
        model.get_submodule(prefix).requires_grad = False
        return names
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells=NOBODY_READS,
)

flag_misspelt = edit(
    mended_shared_added_twice,
    {
        "p.requires_grad_(False)": "p.require_grad = False",
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells=NOBODY_READS,
)

weights_without_biases = edit(
    mended_shared_added_twice,
    {
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(False)
        """: """
        if name.startswith(prefix + ".") and "weight" in name:
            p.requires_grad_(False)
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells="You froze the weights and left the biases trainable. A part is frozen when all of its parameters are: ask for the prefix alone, not for `weight`.",
)

prefix_without_the_dot = edit(
    mended_shared_added_twice,
    {
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(False)
        """: """
        if name.startswith(prefix):
            p.requires_grad_(False)
        """,
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(True)
        """: """
        if name.startswith(prefix):
            p.requires_grad_(True)
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells='Your prefix has no dot at its end, so that `layer1` also catches `layer10`. Compare with `prefix + "."`.',
)

prefix_anywhere = edit(
    mended_shared_added_twice,
    {
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(False)
        """: """
        if prefix + "." in name:
            p.requires_grad_(False)
        """,
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(True)
        """: """
        if prefix + "." in name:
            p.requires_grad_(True)
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells="You look for the prefix anywhere in the name. `layer1` then also catches `encoder.layer1`, which is another part. A name lies under the prefix if it begins with it and a dot.",
)

gradients_stay = edit(
    mended_shared_added_twice,
    {
        "p.grad = None": "",
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.stays_if_frozen_later,
    tells="Your frozen parameters keep their gradient. An optimizer that holds them goes on moving them by it, and by momentum and weight decay. Set `grad` to `None`: the optimizer skips those.",
)

gradients_of_zeros = edit(
    mended_shared_added_twice,
    {
        "p.grad = None": """
        if p.grad is not None:
            p.grad.zero_()
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.stays_if_frozen_later,
    tells="You fill the gradient with zeros. To the optimizer that is a gradient: momentum and weight decay still move the parameter. Only `None` is skipped.",
)


the_rest_is_unfrozen = edit(
    mended_shared_added_twice,
    {
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(False)
            p.grad = None
            names.append(name)
        """: """
        if name.startswith(prefix + "."):
            p.grad = None
            names.append(name)
        p.requires_grad_(name not in names)
        """,
        "held.add(id(p))": "",
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You set the flag of *every* parameter, so what was frozen before is trainable again. Change the flag of those under the prefix alone.",
)


all_gradients_cleared = edit(
    mended_shared_added_twice,
    {
        """
        if not names:
            raise ValueError
        return names
        """: """
        if not names:
            raise ValueError
        model.zero_grad()
        return names
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You cleared the gradients of the whole model. Only those of the frozen parameters become `None`; the others may be in the middle of an accumulation.",
)

also_in_eval_mode = edit(
    mended_shared_added_twice,
    {
        """
        if not names:
            raise ValueError
        return names
        """: """
        if not names:
            raise ValueError
        model.get_submodule(prefix).eval()
        return names
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You also switched the part to eval mode. That is for the next exercise; here the modes stay as they are.",
)

optimizer_not_told = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: "",
    },
    breaks=hidden_tests.moves_again,
    tells="You unfreeze, and the optimizer never hears of it: a parameter that it does not hold does not move. Add those with `optimizer.add_param_group`.",
)

added_once_more = edit(
    mended_shared_added_twice,
    {
        'held = {id(p) for g in optimizer.param_groups for p in g["params"]}': "",
        """
        if id(p) not in held:
            added.append(p)
            held.add(id(p))
        """: "added.append(p)",
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.moves_again,
    tells="You add every parameter, also those that the optimizer holds already, which it refuses. Compare `id(p)` with those in its groups first.",
)

added_if_none_is_held = edit(
    mended_shared_added_twice,
    {"if added:": "if len(added) == len(names):"},
    breaks=hidden_tests.moves_again,
    tells="You look at the first parameter of the part and conclude for all. The optimizer may hold some of them: ask for each.",
)

into_the_first_group = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.param_groups[0]["params"].extend(added)',
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="The new parameters get the learning rate of an existing group. `add_param_group` with the parameters alone gives them the settings that the optimizer was made with.",
)

filter_used_twice = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
        "def trainable_sgd(model, lr, momentum, weight_decay):": """
        def trainable_sgd(model, lr, momentum, weight_decay):
            chosen = filter(lambda p: p.requires_grad, model.parameters())
            if not any(True for _ in chosen):
                raise ValueError
            groups = [{"params": chosen}]
        """,
        "[p for p in model.parameters() if p.requires_grad]": "groups",
    },
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="A `filter` object is empty after its first use: you looked whether there is something in it, and gave the empty rest to the optimizer. Make a list of it.",
)

optimizer_of_everything = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
        "[p for p in model.parameters() if p.requires_grad]": "list(model.parameters())",
    },
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="Your optimizer holds the frozen parameters too. Give it those with `requires_grad=True`.",
)

settings_forgotten = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
        "weight_decay=weight_decay,": "",
    },
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="Your optimizer does not have all the settings that it was asked for. SGD has no weight decay unless it is told.",
)

unknown_prefix_ignored = edit(
    mended_shared_added_twice,
    {
        """
        if not names:
            raise ValueError
        return names
        """: "return names",
        """
        if not names:
            raise ValueError
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.refuses_unknown_prefixes,
    tells="A prefix under which there is nothing passes in silence: a typing mistake, and nothing is frozen. Raise an error if no name was found.",
)

only_what_is_new = edit(
    mended_shared_added_twice,
    {
        "p.requires_grad_(False)": """
        names.append((name, p.requires_grad))
        p.requires_grad_(False)
        """,
        """
        p.grad = None
        names.append(name)
        """: "p.grad = None",
        """
        if not names:
            raise ValueError
        return names
        """: """
        if not names:
            raise ValueError
        return [name for name, changed in names if changed]
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.returns_the_names,
    tells="You return the parameters whose flag has changed. All names under the prefix were asked for, also of those that were frozen before.",
)

shared_by_its_first_name = edit(
    mended_shared_added_twice,
    {
        """
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
        """: """
        names = []
        for name, p in model.named_parameters():
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.freezes_shared_parameters,
    tells="`named_parameters` gives a shared parameter once, by its first name, so under its other name you miss it. Pass `remove_duplicate=False`, or look into the submodule.",
)

shared_held_twice = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
        "p in model.parameters(": "_, p in model.named_parameters(remove_duplicate=False",
    },
    breaks=hidden_tests.holds_shared_parameters_once,
    tells="Your optimizer holds a shared parameter once for each of its names, and so moves it twice. `model.parameters()` gives it once.",
)

shared_not_unfrozen = edit(
    mended_shared_added_twice,
    {
        """
        names, added = [], []
        for name, p in model.named_parameters(remove_duplicate=False):
        """: """
        names, added = [], []
        for name, p in model.named_parameters():
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.unfreezes_shared_parameters,
    tells="`unfreeze` misses a shared parameter under its second name: `named_parameters` gives it once, by its first. Pass `remove_duplicate=False`.",
)

no_optimizer_without_parameters = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
        "def trainable_sgd(model, lr, momentum, weight_decay):": """
        def trainable_sgd(model, lr, momentum, weight_decay):
            chosen = [p for p in model.parameters() if p.requires_grad]
        """,
        "[p for p in model.parameters() if p.requires_grad": "chosen or [torch.zeros(1)",
    },
    breaks=hidden_tests.refuses_nothing_to_train,
    tells="With everything frozen you return an optimizer that trains nothing. That is a mistake of the caller, who should hear of it: raise a `ValueError`.",
)

a_tuple_of_names = edit(
    mended_shared_added_twice,
    {
        """
        if not names:
            raise ValueError
        return names
        """: """
        if not names:
            raise ValueError
        return tuple(names)
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.returns_the_names,
    tells="A list of names was asked for, and you return something else.",
)

sorted_names = edit(
    mended_shared_added_twice,
    {
        """
        if not names:
            raise ValueError
        return names
        """: """
        if not names:
            raise ValueError
        return sorted(names)
        """,
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.returns_the_names,
    tells="You sorted the names. They were asked for in the model's order, in which a weight comes before its bias.",
)


@wrong(
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You drop the gradient of those parameters alone that were trainable. One "
    "that was frozen before may still have a gradient, and its optimizer goes on "
    "with it: set the `grad` of every parameter under the prefix to `None`.",
    body=True,
)
def only_new_gradients_dropped():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                if p.requires_grad:
                    p.requires_grad_(False)
                    p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        return names

    def unfreeze(model, prefix, optimizer):
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added[id(p)] = p
        if not names:
            raise ValueError
        if added:
            optimizer.add_param_group({"params": list(added.values())})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


@wrong(
    breaks=hidden_tests.refuses_unknown_prefixes,
    tells="You use the prefix as a regular expression, in which a dot is any character: "
    "`encoder.head` then matches `encoder_head`. Compare with `startswith`, or "
    "use `re.escape`.",
    body=True,
)
def prefix_as_a_pattern():
    import re

    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if re.match(prefix + r"\.", name):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        return names

    def unfreeze(model, prefix, optimizer):
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if re.match(prefix + r"\.", name):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added[id(p)] = p
        if not names:
            raise ValueError
        if added:
            optimizer.add_param_group({"params": list(added.values())})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


settings_of_the_last_group = edit(
    mended_shared_added_twice,
    {
        "names, added = [], []": "names, added = [], {}",
        "added.append(p)": "added[id(p)] = p",
        'optimizer.add_param_group({"params": added})': """
        settings = optimizer.param_groups[-1]
        optimizer.add_param_group(
            {**settings, "params": list(added.values())}
        )
        """,
        """
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        """: """
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)
        """,
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="New parameters get the settings of another group. Those that the optimizer "
    "was made with are its `defaults`, which `add_param_group` fills in.",
)

gradients_dropped_when_unfrozen = edit(
    mended_shared_added_twice,
    {
        "names, added = [], []": "names, added = [], {}",
        "p.requires_grad_(True)": """
        p.requires_grad_(True)
        p.grad = None
        """,
        "added.append(p)": "added[id(p)] = p",
        'optimizer.add_param_group({"params": added})': 'optimizer.add_param_group({"params": list(added.values())})',
        """
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        """: """
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)
        """,
    },
    breaks=hidden_tests.moves_again,
    tells="Your `unfreeze` clears gradients. It was to change nothing but the flags and "
    "what the optimizer holds.",
)

all_gradients_cleared_when_unfrozen = edit(
    mended_shared_added_twice,
    {
        "names, added = [], []": "names, added = [], {}",
        "added.append(p)": "added[id(p)] = p",
        "if added:": """
        optimizer.zero_grad()
        if added:
        """,
        'optimizer.add_param_group({"params": added})': 'optimizer.add_param_group({"params": list(added.values())})',
        """
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        """: """
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)
        """,
    },
    breaks=hidden_tests.moves_again,
    tells="Your `unfreeze` clears the gradients of all that the optimizer holds. They "
    "may be in the middle of an accumulation: leave them.",
)


@wrong(
    breaks=hidden_tests.moves_again,
    tells="You compare the numbers of the parameters. Two parameters may have the same "
    "numbers, as two new biases of zeros; whether the optimizer holds one is a "
    "question of the object: compare `id(p)`, or with `is`.",
    body=True,
)
def held_if_equal_numbers():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        return names

    def unfreeze(model, prefix, optimizer):
        held = [p for g in optimizer.param_groups for p in g["params"]]
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if not any(torch.equal(p, q) for q in held):
                    added[id(p)] = p
        if not names:
            raise ValueError
        if added:
            optimizer.add_param_group({"params": list(added.values())})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


shared_added_twice = edit(
    mended_shared_added_twice,
    {
        "held.add(id(p))": "",
        """
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        """: """
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)
        """,
    },
    breaks=hidden_tests.moves_again,
    tells="A parameter that has two names under the prefix is added to the optimizer "
    "twice. Add it once.",
)

all_that_is_held_thawed = edit(
    mended_shared_added_twice,
    {
        "names, added = [], []": "names, added = [], {}",
        "added.append(p)": "added[id(p)] = p",
        "if added:": """
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.requires_grad_(True)
        if added:
        """,
        'optimizer.add_param_group({"params": added})': 'optimizer.add_param_group({"params": list(added.values())})',
        """
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        """: """
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)
        """,
    },
    breaks=hidden_tests.moves_again,
    tells="You unfreeze everything that the optimizer holds. Other frozen parts stay "
    "frozen: set the flags of the parameters under the prefix.",
)

momentum_thrown_away = edit(
    mended_shared_added_twice,
    {
        "names, added = [], []": "names, added = [], {}",
        "if id(p) not in held:": """
        optimizer.state.pop(p, None)
        if id(p) not in held:
        """,
        "added.append(p)": "added[id(p)] = p",
        'optimizer.add_param_group({"params": added})': 'optimizer.add_param_group({"params": list(added.values())})',
        """
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )
        """: """
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)
        """,
    },
    breaks=hidden_tests.moves_again,
    tells="You drop what the optimizer remembers of the parameters, their momentum. "
    "`unfreeze` changes flags and adds what is missing, nothing else.",
)

all_that_is_missing_added = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: """
        for p in model.parameters():
            if p.requires_grad and id(p) not in held:
                added.append(p)
                held.add(id(p))
        if added:
            optimizer.add_param_group({"params": added})
        """,
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="You add every trainable parameter that the optimizer lacks. What does not lie under the prefix may belong to another optimizer, and is then stepped twice. Add those under the prefix.",
)

empty_group_added = edit(
    mended_shared_added_twice,
    {
        """
        if added:
            optimizer.add_param_group({"params": added})
        """: 'optimizer.add_param_group({"params": added})',
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="Where nothing is missing you add an empty group. A scheduler that was made before has rates for the groups of then. Add a group only if there is something to add.",
)

weights_and_biases_alone = edit(
    mended_shared_added_twice,
    {
        """
        if name.startswith(prefix + "."):
            p.requires_grad_(False)
            p.grad = None
            names.append(name)
        """: """
        if name.startswith(prefix + "."):
            if name.endswith(("weight", "bias")):
                p.requires_grad_(False)
                p.grad = None
            names.append(name)
        """,
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells="You freeze what is called `weight` or `bias`. An LSTM has `weight_ih_l0`, attention has `in_proj_weight`, and a layer of one's own any name. Take every parameter under the prefix.",
)

sgd_of_names_and_parameters = edit(
    SOLUTION,
    {
        "[q for q in model.parameters() if q.requires_grad]": "[(n, q) for n, q in model.named_parameters() if q.requires_grad]"
    },
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="Your optimizer is made of pairs of name and parameter. It takes nothing but "
    "pairs from then on, and `unfreeze` adds parameters to it.",
)

freeze_stops_the_statistics = edit(
    SOLUTION,
    {
        "parameter.grad = None": """
        parameter.grad = None
        layer = model.get_submodule(name.rpartition(".")[0])
        if hasattr(layer, "running_mean"):
            layer.momentum = 0.0
        """
    },
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You change what a BatchNorm was made with. `freeze` freezes parameters; the "
    "running statistics are a matter of `eval()`.",
)

unfreeze_wakes_the_statistics = edit(
    SOLUTION,
    {
        "parameter.requires_grad_(True)": """
        parameter.requires_grad_(True)
        layer = model.get_submodule(name.rpartition(".")[0])
        if hasattr(layer, "running_mean"):
            layer.momentum = 0.5
        """
    },
    breaks=hidden_tests.moves_again,
    tells="You change what a BatchNorm was made with. `unfreeze` wakes parameters; its "
    "momentum is not yours.",
)

unfreezing_weights_and_biases = edit(
    SOLUTION,
    {
        "parameter.requires_grad_(True)": 'parameter.requires_grad_(name.endswith(("weight", "bias")))'
    },
    breaks=hidden_tests.moves_again,
    tells="You wake what is called `weight` or `bias`. A layer of one's own, an LSTM or "
    "attention has parameters of other names. Take every one under the prefix.",
)

frozen_behind_a_wrapper = edit(
    SOLUTION,
    {
        """
        if name.startswith(prefix + "."):
            parameter.requires_grad_(False)
        """: """
        if name.removeprefix("module.").startswith(prefix + "."):
            parameter.requires_grad_(False)
        """
    },
    breaks=hidden_tests.freezes_what_lies_under,
    tells="You freeze what lies under the prefix behind `module.`, too. A part may "
    "be called so: a name lies under the prefix only if it begins with it.",
)

held_by_their_memory = edit(
    SOLUTION,
    {
        'held = {id(q) for g in optimizer.param_groups for q in g["params"]}': 'held = {q.data_ptr() for g in optimizer.param_groups for q in g["params"]}',
        "if id(parameter) not in held:": "if parameter.data_ptr() not in held:",
        "held.add(id(parameter))  # it may have another name here": "held.add(parameter.data_ptr())",
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="You tell parameters apart by their address in memory. Two that hold no "
    "numbers have the same one: compare `id(p)`.",
)

held_if_they_hold_numbers = edit(
    SOLUTION,
    {
        "trainable = [q for q in model.parameters() if q.requires_grad]": "trainable = [q for q in model.parameters() if q.requires_grad and q.numel()]"
    },
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="You leave out parameters that hold no numbers. The optimizer is to hold "
    "each one with `requires_grad=True`.",
)

held_asked_by_in = edit(
    by_submodule,
    {
        'held = {id(p) for g in optimizer.param_groups for p in g["params"]}': 'held = [p for g in optimizer.param_groups for p in g["params"]]',
        "added = [p for p in part.parameters() if id(p) not in held]": "added = [p for p in part.parameters() if p not in held]",
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="You ask `p not in` a list of parameters. That compares their numbers, "
    "and fails where the shapes differ. Compare `id(p)`.",
)

joining_if_they_hold_numbers = edit(
    SOLUTION,
    {
        "if id(parameter) not in held:": "if id(parameter) not in held and parameter.numel():"
    },
    breaks=hidden_tests.joins_with_the_settings,
    tells="In `unfreeze` you leave out parameters that hold no numbers. They join as all "
    "others do.",
)

zeros_for_what_is_unfrozen = edit(
    SOLUTION,
    {
        "parameter.requires_grad_(True)": """
        parameter.requires_grad_(True)
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        """
    },
    breaks=hidden_tests.moves_again,
    tells="You give what is unfrozen a gradient of zeros. To an optimizer that is a "
    "gradient: momentum and weight decay move what takes no part. `None` stays `None`.",
)

A_SETTING_OF_ZERO = (
    "You write `weight_decay or 0.01`, or the same of another setting. A setting of 0 is "
    "one, and is replaced by yours. Hand it on as it came."
)

lr_of_zero_replaced = edit(
    SOLUTION,
    {"lr=lr": "lr=lr or 0.1"},
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells=A_SETTING_OF_ZERO,
)

momentum_of_zero_replaced = edit(
    SOLUTION,
    {"momentum=momentum": "momentum=momentum or 0.9"},
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells=A_SETTING_OF_ZERO,
)

weight_decay_of_zero_replaced = edit(
    SOLUTION,
    {"weight_decay=weight_decay": "weight_decay=weight_decay or 0.01"},
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells=A_SETTING_OF_ZERO,
)
