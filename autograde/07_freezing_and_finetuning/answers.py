"""The answer bank of chapter 07: freezing and fine-tuning."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# freeze


@accepted("freeze", body=True)
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
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            list(filter(lambda p: p.requires_grad, model.parameters())),
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@accepted("freeze", body=True)
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


@accepted("freeze", body=True)
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


@accepted("freeze", body=True)
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


@accepted("freeze", body=True)
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


NOBODY_READS = (
    "You set an attribute that nobody reads: `requires_grad` on a module, or a "
    "misspelt name on a parameter. Python accepts both in silence. Use "
    "`module.requires_grad_(False)`, or `requires_grad` of each parameter."
)


@wrong(
    "freeze",
    breaks=hidden_tests.freezes_what_lies_under,
    tells=NOBODY_READS,
    body=True,
)
def flag_on_the_module():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        model.get_submodule(prefix).requires_grad = False
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.freezes_what_lies_under,
    tells=NOBODY_READS,
    body=True,
)
def flag_misspelt():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.require_grad = False
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.freezes_what_lies_under,
    tells="You froze the weights and left the biases trainable. A part is frozen when all of its parameters are: ask for the prefix alone, not for `weight`.",
    body=True,
)
def weights_without_biases():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + ".") and "weight" in name:
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.freezes_what_lies_under,
    tells='Your prefix has no dot at its end, so that `layer1` also catches `layer10`. Compare with `prefix + "."`.',
    body=True,
)
def prefix_without_the_dot():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix):
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
            if name.startswith(prefix):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.freezes_what_lies_under,
    tells="You look for the prefix anywhere in the name. `layer1` then also catches `encoder.layer1`, which is another part. A name lies under the prefix if it begins with it and a dot.",
    body=True,
)
def prefix_anywhere():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if prefix + "." in name:
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
            if prefix + "." in name:
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.stays_if_frozen_later,
    tells="Your frozen parameters keep their gradient. An optimizer that holds them goes on moving them by it, and by momentum and weight decay. Set `grad` to `None`: the optimizer skips those.",
    body=True,
)
def gradients_stay():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.stays_if_frozen_later,
    tells="You fill the gradient with zeros. To the optimizer that is a gradient: momentum and weight decay still move the parameter. Only `None` is skipped.",
    body=True,
)
def gradients_of_zeros():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                if p.grad is not None:
                    p.grad.zero_()
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You set the flag of *every* parameter, so what was frozen before is trainable again. Change the flag of those under the prefix alone.",
    body=True,
)
def the_rest_is_unfrozen():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.grad = None
                names.append(name)
            p.requires_grad_(name not in names)
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You cleared the gradients of the whole model. Only those of the frozen parameters become `None`; the others may be in the middle of an accumulation.",
    body=True,
)
def all_gradients_cleared():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        model.zero_grad()
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.leaves_the_rest_alone,
    tells="You also switched the part to eval mode. That is for the next exercise; here the modes stay as they are.",
    body=True,
)
def also_in_eval_mode():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        model.get_submodule(prefix).eval()
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="You unfreeze, and the optimizer never hears of it: a parameter that it does not hold does not move. Add those with `optimizer.add_param_group`.",
    body=True,
)
def optimizer_not_told():
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
        if not names:
            raise ValueError
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="You add every parameter, also those that the optimizer holds already, which it refuses. Compare `id(p)` with those in its groups first.",
    body=True,
)
def added_once_more():
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
        names, added = [], []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="You look at the first parameter of the part and conclude for all. The optimizer may hold some of them: ask for each.",
    body=True,
)
def added_if_none_is_held():
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
        if not names:
            raise ValueError
        if len(added) == len(names):
            optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.joins_with_the_settings,
    tells="You put the new parameters into an existing group, with its learning rate. `add_param_group` gives them the settings that the optimizer was made with.",
    body=True,
)
def into_the_first_group():
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
        if not names:
            raise ValueError
        optimizer.param_groups[0]["params"].extend(added)
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="A `filter` object is empty after its first use: you looked whether there is something in it, and gave the empty rest to the optimizer. Make a list of it.",
    body=True,
)
def filter_used_twice():
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = filter(lambda p: p.requires_grad, model.parameters())
        if not any(True for _ in chosen):
            raise ValueError
        groups = [{"params": chosen}]
        return torch.optim.SGD(
            groups,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="Your optimizer holds the frozen parameters too. Give it those with `requires_grad=True`.",
    body=True,
)
def optimizer_of_everything():
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            list(model.parameters()),
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.optimizer_of_the_trainable,
    tells="Your optimizer does not have all the settings that it was asked for. SGD has no weight decay unless it is told.",
    body=True,
)
def settings_forgotten():
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.refuses_unknown_prefixes,
    tells="A prefix under which there is nothing passes in silence: a typing mistake, and nothing is frozen. Raise an error if no name was found.",
    body=True,
)
def unknown_prefix_ignored():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
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
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.returns_the_names,
    tells="You return the parameters whose flag has changed. All names under the prefix were asked for, also of those that were frozen before.",
    body=True,
)
def only_what_is_new():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                names.append((name, p.requires_grad))
                p.requires_grad_(False)
                p.grad = None
        if not names:
            raise ValueError
        return [name for name, changed in names if changed]

    def unfreeze(model, prefix, optimizer):
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        names, added = [], []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.freezes_shared_parameters,
    tells="`named_parameters` gives a shared parameter once, by its first name, so under its other name you miss it. Pass `remove_duplicate=False`, or look into the submodule.",
    body=True,
)
def shared_by_its_first_name():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters():
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.holds_shared_parameters_once,
    tells="Your optimizer holds a shared parameter once for each of its names, and so moves it twice. `model.parameters()` gives it once.",
    body=True,
)
def shared_held_twice():
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [
                p
                for _, p in model.named_parameters(remove_duplicate=False)
                if p.requires_grad
            ],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.unfreezes_shared_parameters,
    tells="`unfreeze` misses a shared parameter under its second name: `named_parameters` gives it once, by its first. Pass `remove_duplicate=False`.",
    body=True,
)
def shared_not_unfrozen():
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
        for name, p in model.named_parameters():
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.refuses_nothing_to_train,
    tells="With everything frozen you return an optimizer that trains nothing. That is a mistake of the caller, who should hear of it: raise a `ValueError`.",
    body=True,
)
def no_optimizer_without_parameters():
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
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(
            chosen or [torch.zeros(1)],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.returns_the_names,
    tells="A list of names was asked for, and you return something else.",
    body=True,
)
def a_tuple_of_names():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        return tuple(names)

    def unfreeze(model, prefix, optimizer):
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        names, added = [], []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
    breaks=hidden_tests.returns_the_names,
    tells="You sorted the names. They were asked for in the model's order, in which a weight comes before its bias.",
    body=True,
)
def sorted_names():
    def freeze(model, prefix):
        names = []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(False)
                p.grad = None
                names.append(name)
        if not names:
            raise ValueError
        return sorted(names)

    def unfreeze(model, prefix, optimizer):
        held = {id(p) for g in optimizer.param_groups for p in g["params"]}
        names, added = [], []
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added.append(p)
        if not names:
            raise ValueError
        optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        return torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
        )


@wrong(
    "freeze",
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
    "freeze",
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


@wrong(
    "freeze",
    breaks=hidden_tests.joins_with_the_settings,
    tells="New parameters get the settings of another group. Those that the optimizer "
    "was made with are its `defaults`, which `add_param_group` fills in.",
    body=True,
)
def settings_of_the_last_group():
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
            settings = optimizer.param_groups[-1]
            optimizer.add_param_group(
                {**settings, "params": list(added.values())}
            )
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="Your `unfreeze` clears gradients. It was to change nothing but the flags and "
    "what the optimizer holds.",
    body=True,
)
def gradients_dropped_when_unfrozen():
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
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                p.grad = None
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
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="Your `unfreeze` clears the gradients of all that the optimizer holds. They "
    "may be in the middle of an accumulation: leave them.",
    body=True,
)
def all_gradients_cleared_when_unfrozen():
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
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added[id(p)] = p
        if not names:
            raise ValueError
        optimizer.zero_grad()
        if added:
            optimizer.add_param_group({"params": list(added.values())})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


@wrong(
    "freeze",
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


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="A parameter that has two names under the prefix is added to the optimizer "
    "twice. Add it once.",
    body=True,
)
def shared_added_twice():
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
        if not names:
            raise ValueError
        if added:
            optimizer.add_param_group({"params": added})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="You unfreeze everything that the optimizer holds. Other frozen parts stay "
    "frozen: set the flags of the parameters under the prefix.",
    body=True,
)
def all_that_is_held_thawed():
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
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                if id(p) not in held:
                    added[id(p)] = p
        if not names:
            raise ValueError
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.requires_grad_(True)
        if added:
            optimizer.add_param_group({"params": list(added.values())})
        return names

    def trainable_sgd(model, lr, momentum, weight_decay):
        chosen = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.SGD(chosen, lr, momentum, weight_decay=weight_decay)


@wrong(
    "freeze",
    breaks=hidden_tests.moves_again,
    tells="You drop what the optimizer remembers of the parameters, their momentum. "
    "`unfreeze` changes flags and adds what is missing, nothing else.",
    body=True,
)
def momentum_thrown_away():
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
        names, added = [], {}
        for name, p in model.named_parameters(remove_duplicate=False):
            if name.startswith(prefix + "."):
                p.requires_grad_(True)
                names.append(name)
                optimizer.state.pop(p, None)
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


@accepted("freeze", body=True)
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
        chosen = [
            (n, p) for n, p in model.named_parameters() if p.requires_grad
        ]
        settings = {"momentum": momentum, "weight_decay": weight_decay}
        return torch.optim.SGD(chosen, lr=lr, **settings)


# partly_frozen


@accepted("partly_frozen")
class ByNamesOfModules(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        for prefix in prefixes:
            for p in model.get_submodule(prefix).parameters():
                p.requires_grad = False
        self.model, self.prefixes = model, tuple(prefixes)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for prefix in self.prefixes:
            self.model.get_submodule(prefix).train(False)
        return self


@accepted("partly_frozen")
class ByPatchedTrain(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix)
            part.requires_grad_(False)
            part.eval()
            part.train = lambda mode=True, part=part: part

    def forward(self, x):
        return self.model(x)


@accepted("partly_frozen")
class ByHooks(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix).requires_grad_(False)
            part.register_forward_pre_hook(
                lambda part, given: part.eval() and None
            )

    def forward(self, x):
        return self.model(x)


@accepted("partly_frozen")
class ByPatchedForward(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            for layer in model.get_submodule(prefix).modules():
                layer.requires_grad_(False)
                if not list(layer.children()):
                    layer.forward = self.in_eval_mode(layer)

    @staticmethod
    def in_eval_mode(layer):
        usual = layer.forward

        def forward(x):
            layer.training = False
            return usual(x)

        return forward

    def forward(self, x):
        return self.model(x)


@accepted("partly_frozen")
class ByFrozenClasses(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix)
            part.requires_grad_(False)
            for layer in part.modules():
                usual = type(layer)
                stays = {
                    "train": lambda self, mode=True, t=usual: t.train(
                        self, False
                    )
                }
                layer.__class__ = type(
                    "Frozen" + usual.__name__, (usual,), stays
                )
            part.eval()

    def forward(self, *inputs):
        return self.model(*inputs)


@accepted("partly_frozen")
class ByEvalInForward(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = {name: model.get_submodule(name) for name in prefixes}
        for part in self.parts.values():
            part.requires_grad_(False)

    def forward(self, x):
        for part in self.parts.values():
            part.eval()
        return self.model(x)


@wrong(
    "partly_frozen",
    breaks=hidden_tests.statistics_stay,
    tells="You froze the parameters alone. Running statistics are buffers, without "
    "`requires_grad`: every forward pass in training mode moves them. The part has to be "
    "in eval mode.",
)
class FlagsOnly(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix).requires_grad_(False)

    def forward(self, x):
        return self.model(x)


@wrong(
    "partly_frozen",
    breaks=hidden_tests.statistics_stay,
    tells="You put the part into eval mode once, and the next `net.train()` undid it: that "
    "sets every module. Override `train`, so that it puts the part back each time.",
)
class UndoneByTrain(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix).requires_grad_(False).eval()

    def forward(self, x):
        return self.model(x)


@wrong(
    "partly_frozen",
    breaks=hidden_tests.weights_stay,
    tells="Your part is in eval mode and still trained: eval says how a layer computes, not "
    "whether it learns. Set `requires_grad` of its parameters to `False` too.",
)
class EvalOnly(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.independent_of_the_batch,
    tells="With momentum 0 mean and variance stay, but in training mode the layer still "
    "normalizes by the batch, and counts. Put it into eval mode: then it normalizes by its "
    "statistics.",
)
class MomentumZero(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix).requires_grad_(False)
            for layer in part.modules():
                if hasattr(layer, "momentum"):
                    layer.momentum = 0.0

    def forward(self, x):
        return self.model(x)


@wrong(
    "partly_frozen",
    breaks=hidden_tests.independent_of_the_batch,
    tells="You stopped the tracking. The statistics stay, but in training mode the layer "
    "still normalizes by the batch. Put it into eval mode.",
)
class TrackingOff(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix).requires_grad_(False)
            for layer in part.modules():
                if hasattr(layer, "track_running_stats"):
                    layer.track_running_stats = False

    def forward(self, x):
        return self.model(x)


@wrong(
    "partly_frozen",
    breaks=hidden_tests.frozen_from_the_beginning,
    tells="Your `train` does it right, but nobody has called it when the class has just "
    "been made: a new module is in training mode. Call `self.train()` at the end of "
    "`__init__`.",
)
class NotFromTheBeginning(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.follows_the_modes,
    tells="Your `train` returns nothing. `nn.Module.train` returns the module, and "
    "`net = net.train()` is usual. Return `self`.",
)
class TrainReturnsNothing(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()


@wrong(
    "partly_frozen",
    breaks=hidden_tests.follows_the_modes,
    tells="Your `train` takes no notice of `mode` for the rest: `net.eval()`, which calls "
    "`train(False)`, leaves it in training mode. Call `super().train(mode)` first, with "
    "the mode, and then put the parts back.",
)
class ModeForgotten(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train()
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.follows_the_modes,
    tells="Your `train` takes no notice of `mode` for the rest: `net.eval()`, which calls "
    "`train(False)`, leaves it in training mode. Call `super().train(mode)` first, with "
    "the mode, and then put the parts back.",
)
class RestForgotten(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.statistics_stay,
    tells="You look for `BatchNorm2d` alone. There are other layers with running "
    "statistics: put the whole part into eval mode, whatever is in it.",
)
class BatchNorm2dAlone(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            for layer in part.modules():
                if isinstance(layer, nn.BatchNorm2d):
                    layer.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.parts_of_any_kind,
    tells="You go through the children of a part. A part may be a single layer, without "
    "children, and its children may have children. Call `eval()` on the part itself.",
)
class ChildrenAlone(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            for child in part.children():
                child.training = False
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.dropout_of_the_part_is_off,
    tells="You put the normalizations into eval mode and left the part's dropout on. The "
    "whole part computes as in eval mode: call `eval()` on the part.",
)
class NormsAlone(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            for layer in part.modules():
                if hasattr(layer, "running_mean"):
                    layer.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.gradients_pass_through,
    tells="You run the part without a graph. Then no gradient reaches what lies before it. "
    "`requires_grad=False` on its parameters is enough, and lets gradients through.",
)
class PartsUnderNoGrad(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
            part.forward = torch.no_grad()(part.forward)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.made_of_the_model,
    tells="You keep the parts in an `nn.ModuleList` or as attributes: they are children of "
    "the net a second time, and its state dict has every frozen tensor twice. A plain list "
    "does not register them.",
)
class PartsTwice(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        parts = [model.get_submodule(prefix) for prefix in prefixes]
        self.parts = nn.ModuleList(parts)
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.made_of_the_model,
    tells="You wrapped a copy. `net.model` is to be the model that was given: its caller "
    "has it in hand, and trains it through the net.",
)
class WrapsACopy(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = copy.deepcopy(model)
        self.parts = [self.model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.the_rest_is_trained,
    tells="You froze every layer whose name begins with a prefix, `block10` with `block1`. "
    "`get_submodule` finds the one that was asked for.",
)
class PrefixWithoutADot(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix)
        self.parts = [
            layer
            for name, layer in model.named_modules()
            if name.startswith(tuple(prefixes))
        ]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.the_rest_is_trained,
    tells="Your whole model stays in eval mode. Only the frozen parts do; the rest goes "
    "into training mode with `net.train()`, its normalizations and its dropout too.",
)
class EverythingInEval(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix).requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        return super().train(False)


@wrong(
    "partly_frozen",
    breaks=hidden_tests.refuses_unknown_names,
    tells="A name that the model does not have passes in silence: a typing mistake, and "
    "nothing is frozen. `get_submodule` raises by itself.",
)
class UnknownNamesIgnored(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [m for n, m in model.named_modules() if n in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.statistics_stay,
    tells="You froze the first of the parts. `prefixes` is a list, and all of its parts are "
    "to stay.",
)
class FirstPartAlone(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes][:1]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.dropout_of_the_part_is_off,
    tells="You put the kinds of layers into eval mode that you thought of. A part may "
    "hold others, layers of one's own too, that look at `training`: call `eval()` "
    "of the whole part.",
)
class LayersOfAList(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.kinds = (
            nn.BatchNorm1d,
            nn.BatchNorm2d,
            nn.InstanceNorm2d,
            nn.Dropout,
        )
        self.parts = [model.get_submodule(one) for one in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
            for layer in part.modules():
                if isinstance(layer, self.kinds):
                    layer.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            for layer in part.modules():
                if isinstance(layer, self.kinds):
                    layer.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.the_rest_is_trained,
    tells="You look for the name anywhere in the model, so that `norm` also catches "
    "`body.norm`, another part. A dotted name is counted from the model itself: "
    "`get_submodule`.",
)
class NamesakesToo(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [
            part
            for name, part in model.named_modules()
            if f".{name}".endswith(tuple(f".{one}" for one in prefixes))
        ]
        for one in prefixes:
            model.get_submodule(one)
        for part in self.parts:
            part.requires_grad_(False)
            part.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.follows_the_modes,
    tells="`net.training` does not follow `train` and `eval`. `was = net.training; "
    "net.eval(); ...; net.train(was)` is usual, and then goes wrong. Call "
    "`super().train(mode)`, which sets the net's own flag too.",
)
class FlagOfTheNetForgotten(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(one) for one in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
            part.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        self.model.train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.the_rest_is_trained,
    tells="You switch the flags of the rest on. What was frozen there before stays "
    "frozen: set the flags of the parts alone.",
)
class RestThawed(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(one) for one in prefixes]
        model.requires_grad_(True)
        for part in self.parts:
            part.requires_grad_(False)
            part.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.refuses_unknown_names,
    tells="You follow the attributes, and a parameter is one too: `head.weight` passes, "
    "and is no part. `get_submodule` refuses it.",
)
class AttributesFollowed(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = []
        for one in prefixes:
            part = model
            for name in one.split("."):
                part = getattr(part, name)
            part.requires_grad_(False)
            if isinstance(part, nn.Module):
                self.parts.append(part)
        for part in self.parts:
            part.requires_grad_(False)
            part.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    "partly_frozen",
    breaks=hidden_tests.follows_the_modes,
    tells="You set `training` of the innermost layers alone. Containers have the flag "
    "too, and a layer of one's own may look at it: let `super().train(mode)` set "
    "the rest.",
)
class InnermostLayersOnly(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(one) for one in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
            part.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        self.training = mode
        for layer in self.model.modules():
            if not list(layer.children()):
                layer.training = mode
        for part in self.parts:
            part.eval()
        return self


@accepted("partly_frozen")
class ByEvalForTheTimeOfForward(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self._parts = tuple(map(model.get_submodule, prefixes))
        for part in self._parts:
            part.requires_grad_(False)

    def forward(self, *inputs, **options):
        layers = [one for part in self._parts for one in part.modules()]
        for layer in layers:
            layer.training = False
        out = self.model(*inputs, **options)
        for layer in layers:
            layer.training = self.training
        return out


# one_of_two


@accepted("one_of_two", body=True)
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


@accepted("one_of_two", body=True)
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


@accepted("one_of_two", body=True)
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


@accepted("one_of_two", body=True)
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


@accepted("one_of_two", body=True)
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


NO_USABLE_GRAPH = (
    "In `backward_into_b` the backward pass finds no graph that it can use. Cut between the "
    "two models: detach what a gives, not what b gives. And tensors made under "
    "`inference_mode` cannot be saved for a backward pass; `no_grad` or `detach` can."
)
SHARED_MEMORY = (
    "What b gets shares its memory with the features that you return (`detach`, `.data` and "
    "`no_grad` copy nothing). Where b works in place, they are changed. Give b a clone."
)


@wrong(
    "one_of_two",
    breaks=hidden_tests.gradients_for_b,
    tells=NO_USABLE_GRAPH,
    body=True,
)
def detached_after_b():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()).detach(), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.gradients_for_b,
    tells=NO_USABLE_GRAPH,
    body=True,
)
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


@wrong(
    "one_of_two",
    breaks=hidden_tests.gradients_for_b,
    tells="You cut nothing: a gets gradients too. Detach what a gives before b sees it.",
    body=True,
)
def not_detached():
    def backward_into_b(a, b, x, y):
        features = a(x)
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features.detach()

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.features_survive_in_place,
    tells=SHARED_MEMORY,
    body=True,
)
def shared_by_detach():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
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
    "one_of_two",
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


@wrong(
    "one_of_two",
    breaks=hidden_tests.returns_loss_and_features,
    tells="The features that you return still hang on the graph of a, and keep it alive. Return them detached.",
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
    "one_of_two",
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


@wrong(
    "one_of_two",
    breaks=hidden_tests.once_in_their_modes_b,
    tells="You run a twice. In training mode its statistics move twice and its dropout draws twice, so that the features are others than b saw. Keep the first ones.",
    body=True,
)
def features_computed_again():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), a(x).detach()

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.once_in_their_modes_b,
    tells="You switch a to eval mode for the features. It was to run in the mode that it has: not training a model and its mode are two things.",
    body=True,
)
def features_in_eval_mode():
    def backward_into_b(a, b, x, y):
        was = a.training
        features = a.eval()(x).detach()
        a.train(was)
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.adds_for_b,
    tells="You let gradients into both models and then clear those of a. What was there from earlier steps is lost. Let none in.",
    body=True,
)
def gradients_of_a_cleared():
    def backward_into_b(a, b, x, y):
        features = a(x)
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        a.zero_grad()
        return loss.item(), features.detach()

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.adds_for_b,
    tells="You clear the gradients of b before the backward pass. It was to *add* to what is there, as `backward` does; the caller says when to clear.",
    body=True,
)
def b_cleared_before():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        b.zero_grad()
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
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


@wrong(
    "one_of_two",
    breaks=hidden_tests.gradients_for_a,
    tells="You run b under `no_grad`. The gradient of a must come back through the operations of b: they belong on the graph, with the parameters of b frozen.",
    body=True,
)
def b_under_no_grad():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        hidden = a(x)
        with torch.no_grad():
            out = b(hidden)
        loss = F.mse_loss(out, y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.gradients_for_a,
    tells="Plain `backward` fills the gradients of b as well. Freeze the parameters of b for the time of the call, or say `inputs=`.",
    body=True,
)
def both_get_gradients():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward()
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.gradients_for_a,
    tells="You put b into eval mode. That changes how it computes and freezes nothing: its parameters still get gradients.",
    body=True,
)
def b_in_eval_mode():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        b.eval()
        loss = F.mse_loss(b(a(x)), y)
        loss.backward()
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.adds_for_a,
    tells="You let gradients into both models and then clear those of b. What was there from earlier steps is lost. Let none in.",
    body=True,
)
def gradients_of_b_cleared():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward()
        b.zero_grad()
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.flags_as_they_were,
    tells="You froze b and left it frozen: the next step that is to train it has nothing to train. Put the flags back.",
    body=True,
)
def b_stays_frozen():
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
        return loss.item()


@wrong(
    "one_of_two",
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


@wrong(
    "one_of_two",
    breaks=hidden_tests.flags_as_they_were,
    tells="After the call you set *all* flags of a to True, also of parameters that were frozen before. Remember which they were, or detach instead.",
    body=True,
)
def all_of_a_thawed():
    def backward_into_b(a, b, x, y):
        a.requires_grad_(False)
        features = a(x)
        a.requires_grad_(True)
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.once_in_their_modes_a,
    tells="You run a copy of b. Its running statistics move, and those of b do not. Run b itself.",
    body=True,
)
def through_a_copy_of_b():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        other = copy.deepcopy(b).requires_grad_(False)
        loss = F.mse_loss(other(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.frozen_and_unused_a,
    tells="`torch.autograd.grad` refuses parameters that took no part in the forward pass. Pass `allow_unused=True`, and leave the `grad` of those alone.",
    body=True,
)
def unused_parameters_raise():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        found = torch.autograd.grad(loss, chosen)
        for p, g in zip(chosen, found, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.frozen_and_unused_a,
    tells="You give unused parameters a gradient of zeros. To an optimizer that is a gradient: momentum and weight decay move them. `None` stays `None`.",
    body=True,
)
def unused_get_zeros():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        found = torch.autograd.grad(loss, chosen, materialize_grads=True)
        for p, g in zip(chosen, found, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.frozen_and_unused_a,
    tells="You ask for the gradients of all parameters of a, also of frozen ones, which `backward` refuses. Leave those out.",
    body=True,
)
def frozen_parameters_asked():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters()]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=chosen)
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.adds_for_a,
    tells="You put the new gradients in the place of the earlier ones. `backward` adds to what is there, and so should you.",
    body=True,
)
def gradients_replaced():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        chosen = [p for p in a.parameters() if p.requires_grad]
        loss = F.mse_loss(b(a(x)), y)
        found = torch.autograd.grad(loss, chosen, allow_unused=True)
        for p, g in zip(chosen, found, strict=True):
            if g is not None:
                p.grad = g
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.flags_as_they_were,
    tells="You switch `requires_grad` of x on and leave it so: x gets a gradient in "
    "every later step. No flag was to change.",
    body=True,
)
def flag_of_x_left_on():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        x.requires_grad_(True)
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.returns_loss_and_features,
    tells="You flatten the features. What `a(x)` gave was asked for, in its shape.",
    body=True,
)
def features_flattened():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features.flatten(1)

    def backward_into_a(a, b, x, y):
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.returns_loss_and_features,
    tells="You turn the features into float32. What `a(x)` gave was asked for, in its "
    "dtype.",
    body=True,
)
def features_of_single_precision():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features.float()

    def backward_into_a(a, b, x, y):
        loss = F.mse_loss(b(a(x)), y)
        loss.backward(inputs=[p for p in a.parameters() if p.requires_grad])
        return loss.item()


@wrong(
    "one_of_two",
    breaks=hidden_tests.adds_for_a,
    tells="You keep the gradients of b and put them back, but the same tensors, into "
    "which `backward` has added meanwhile. Keep clones, or let no gradient in.",
    body=True,
)
def earlier_gradients_kept_by_reference():
    def backward_into_b(a, b, x, y):
        features = a(x).detach()
        loss = F.mse_loss(b(features.clone()), y)
        loss.backward()
        return loss.item(), features

    def backward_into_a(a, b, x, y):
        kept = [p.grad for p in b.parameters()]
        loss = F.mse_loss(b(a(x)), y)
        loss.backward()
        for p, grad in zip(b.parameters(), kept, strict=True):
            p.grad = grad
        return loss.item()


@wrong(
    "one_of_two",
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
    "one_of_two",
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


@accepted("one_of_two", body=True)
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


# load_matching


@accepted("load_matching")
def by_copying_in_place(model, state_dict, head, prefix=""):
    own = model.state_dict()
    loaded, skipped = [], []
    with torch.no_grad():
        for key, value in state_dict.items():
            name = key[len(prefix) :]
            if (
                not key.startswith(prefix)
                or name.startswith(f"{head}.")
                or name not in own
                or own[name].shape != value.shape
            ):
                skipped.append(key)
                continue
            own[name].copy_(value)
            loaded.append(name)
    if not loaded:
        raise ValueError("nothing fits")
    return loaded, skipped


@accepted("load_matching")
def by_a_whole_state_dict(model, state_dict, head, prefix=""):
    whole = dict(model.state_dict())
    taken = {}
    for name, value in whole.items():
        in_file = state_dict.get(prefix + name)
        in_head = name.split(".")[: head.count(".") + 1] == head.split(".")
        if in_file is not None and in_file.shape == value.shape and not in_head:
            taken[prefix + name] = name
            whole[name] = in_file
    if not taken:
        raise ValueError("nothing fits")
    model.load_state_dict(whole, strict=True)
    return list(taken.values()), [k for k in state_dict if k not in taken]


@accepted("load_matching")
def by_named_tensors(model, state_dict, head, prefix=""):
    in_head = set(model.get_submodule(head).state_dict(prefix=head + "."))
    tensors = model.state_dict(keep_vars=True)
    wanted = {
        prefix + name: name
        for name, tensor in tensors.items()
        if name not in in_head
        and prefix + name in state_dict
        and state_dict[prefix + name].size() == tensor.size()
    }
    if len(wanted) == 0:
        raise ValueError
    for key, name in wanted.items():
        tensors[name].data.copy_(state_dict[key])
    return sorted(wanted.values()), sorted(state_dict.keys() - wanted.keys())


@accepted("load_matching")
def by_loading_copies(model, state_dict, head, prefix=""):
    own = model.state_dict()
    stripped = {
        key[len(prefix) :]: value.clone()
        for key, value in state_dict.items()
        if key.startswith(prefix)
    }
    chosen = {
        name: value.to(own[name].dtype)
        for name, value in stripped.items()
        if name in own
        and list(value.shape) == list(own[name].shape)
        and not name.startswith(head + ".")
    }
    if not chosen:
        raise ValueError("no key of the file fits")
    report = model.load_state_dict(chosen, strict=False)
    assert not report.unexpected_keys
    loaded = [name for name in own if name in chosen]
    done = {prefix + name for name in loaded}
    return loaded, [key for key in state_dict if key not in done]


@accepted("load_matching")
def by_set_operations(model, state_dict, head, prefix=""):
    own = model.state_dict()
    candidates = {prefix + name for name in own} & set(state_dict)
    loaded = set()
    for key in candidates:
        name = key[len(prefix) :]
        if name.startswith(head + "."):
            continue
        if own[name].shape == state_dict[key].shape:
            own[name].data[...] = state_dict[key]
            loaded.add(key)
    if not loaded:
        raise ValueError
    return [k[len(prefix) :] for k in loaded], list(set(state_dict) - loaded)


@wrong(
    "load_matching",
    breaks=hidden_tests.skips_other_shapes,
    tells="You leave the shapes to `strict=False`, which forgives missing and unexpected keys and no shapes: it raises. Compare the shapes yourself.",
)
def strict_false_alone(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.skips_other_shapes,
    tells="You compare the number of elements and reshape. Twelve numbers in another shape are not the same weights: compare `shape`.",
)
def by_number_of_elements(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.numel() == own[name].numel()
        ):
            fits[name] = value.reshape(own[name].shape)
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.skips_other_shapes,
    tells="You let a tensor that broadcasts fill the model's. `copy_` and `expand_as` do that without a word; compare the shapes first.",
)
def by_broadcasting(model, state_dict, head, prefix=""):
    def broadcasts(value, like):
        try:
            value.expand_as(like)
        except RuntimeError:
            return False
        return True

    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and broadcasts(value, own[name])
        ):
            fits[name] = value.expand_as(own[name]).clone()
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.skips_other_shapes,
    tells="You compare the number of dimensions, or the first of them. The whole shape has to agree.",
)
def by_number_of_dimensions(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.dim() == own[name].dim()
            and value.shape[:1] == own[name].shape[:1]
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    for name, value in fits.items():
        own[name].copy_(value)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.leaves_the_head,
    tells="You load the head as well. Where the old one has the shape of the new one, the shape does not keep it out: leave it out by its name.",
)
def head_loaded_too(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.leaves_the_head,
    tells='Without a dot `head` also keeps out `head2`, another part. Compare with `head + "."`.',
)
def head_without_the_dot(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head)
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.leaves_the_head,
    tells="You look for the head's name anywhere in the name. What lies under `head` begins with `head.`",
)
def head_anywhere(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and head not in name
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.prefix_and_head,
    tells="You look for the head in the *file's* key, with its prefix. `head` is the model's name for it: take the prefix off first.",
)
def head_in_the_files_names(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not key.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.takes_the_prefix_off,
    tells="You do not take the prefix off, so nothing of a wrapped file fits.",
)
def prefix_ignored(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key
        if (
            name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.takes_the_prefix_off,
    tells="`replace` takes the prefix off wherever it stands, twice or in the middle. `removeprefix` takes it off once, at the beginning.",
)
def prefix_taken_off_everywhere(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.replace(prefix, "")
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.takes_the_prefix_off,
    tells="You also load keys that do not begin with the prefix. They belong to something else in the file: skip them.",
)
def prefix_not_required(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.takes_the_prefix_off,
    tells="`lstrip` takes off *characters*, as many as it finds of them, and so eats into the names. Use `removeprefix`.",
)
def prefix_as_characters(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.lstrip(prefix or " ")
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.reports_both,
    tells="You return nothing. A load that may skip things has to say which: return the two lists.",
)
def nothing_returned(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)


@wrong(
    "load_matching",
    breaks=hidden_tests.reports_both,
    tells="Your second list holds names of the model that the file did not have. The *file's keys* that were skipped were asked for.",
)
def missing_names_reported(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), [name for name in own if name not in fits]


@wrong(
    "load_matching",
    breaks=hidden_tests.reports_both,
    tells="You return sets. Two lists were asked for.",
)
def sets_returned(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return set(fits), set(skipped)


@wrong(
    "load_matching",
    breaks=hidden_tests.takes_the_prefix_off,
    tells="Your second list has the keys without their prefix. They were asked for as the state dict has them.",
)
def stripped_keys_reported(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(name)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.loads_what_fits,
    tells="You load parameters and forget the buffers. BatchNorm's running statistics belong to what was learned: `state_dict` has both.",
)
def parameters_alone(model, state_dict, head, prefix=""):
    own = dict(model.named_parameters())
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.refuses_what_does_not_fit,
    tells="If nothing fits you return as if all were well. A wrong prefix then trains from scratch and nobody hears of it: raise a `ValueError`.",
)
def nothing_fits_in_silence(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.refuses_what_does_not_fit,
    tells="You raise another error than the `ValueError` that was asked for.",
)
def another_error(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise RuntimeError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.refuses_what_does_not_fit,
    tells="An empty state dict passes in silence. Nothing is loaded from it, so it is refused like the others.",
)
def empty_file_accepted(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits and state_dict:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You take what is loaded out of the caller's state dict. Make a new dict instead.",
)
def popped_from_the_file(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    for name in fits:
        del state_dict[prefix + name]
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.leaves_the_file_alone,
    tells="You put the file's tensors themselves into the model. They share memory from now on: training changes the file, and the dtype is the file's. Copy the values.",
)
def assigned_storage(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, value in fits.items():
        tensors[name].data = value
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.same_parameters,
    tells="`assign=True` puts new tensors into the model: an optimizer that was made before no longer knows its parameters, frozen ones are frozen no more, and the memory is shared with the file.",
)
def by_assign(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False, assign=True)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.keeps_the_dtypes,
    tells="You give the model copies with the dtype of the file. The model keeps its own: `copy_` and `load_state_dict` round to it.",
)
def dtype_of_the_file(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, value in fits.items():
        tensors[name].data = value.clone()
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.keeps_the_dtypes,
    tells="You skip tensors of another dtype. They fit by name and shape, and are rounded to the model's dtype.",
)
def other_dtypes_skipped(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
            and value.dtype == own[name].dtype
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.same_parameters,
    tells="After loading you changed flags or modes of the model. Loading copies numbers; frozen parameters stay frozen.",
)
def all_thawed(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    model.requires_grad_(True)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.same_parameters,
    tells="After loading you changed flags or modes of the model. Loading copies numbers; the mode is the caller's.",
)
def left_in_eval_mode(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, value in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and value.shape == own[name].shape
        ):
            fits[name] = value
        else:
            skipped.append(key)
    if not fits:
        raise ValueError
    model.load_state_dict(fits, strict=False)
    model.eval()
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.leaves_the_head,
    tells="You look for the head's name anywhere in the name. What lies under `head` "
    "begins with `head.`",
)
def head_between_dots(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and f".{head}." not in f".{name}"
            and tensor.shape == own[name].shape
        ):
            fits[name] = tensor
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.reports_both,
    tells="You also load buffers that the model's state dict does not have "
    "(`persistent=False`). Its names are those of `model.state_dict()`.",
)
def all_named_buffers(model, state_dict, head, prefix=""):
    own = dict(model.named_parameters(remove_duplicate=False))
    own |= dict(model.named_buffers())
    fits, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and tensor.shape == own[name].shape
        ):
            fits[name] = tensor
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    for name, tensor in fits.items():
        own[name].data.copy_(tensor)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.loads_what_fits,
    tells="You miss the second name of a shared parameter: `named_parameters` gives it "
    "once. The names of the model are those of its `state_dict()`.",
)
def second_names_missed(model, state_dict, head, prefix=""):
    own = dict(model.named_parameters())
    in_state = model.state_dict()
    own |= {n: b for n, b in model.named_buffers() if n in in_state}
    fits, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and tensor.shape == own[name].shape
        ):
            fits[name] = tensor
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.reports_both,
    tells="You skip what the model has already. It fits, so it counts as loaded.",
)
def equal_tensors_skipped(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and tensor.shape == own[name].shape
            and not torch.equal(tensor, own[name])
        ):
            fits[name] = tensor
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.same_parameters,
    tells="You clear the gradients. Loading was to leave the rest of the model as it "
    "is.",
)
def gradients_cleared(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, tensor in state_dict.items():
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and tensor.shape == own[name].shape
        ):
            fits[name] = tensor
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    model.load_state_dict(fits, strict=False)
    model.zero_grad()
    return list(fits), skipped


@wrong(
    "load_matching",
    breaks=hidden_tests.keeps_the_dtypes,
    tells="You round the tensors in the caller's state dict. It was to stay as it was, "
    "also its dtypes.",
)
def file_rounded(model, state_dict, head, prefix=""):
    own = model.state_dict()
    fits, skipped = {}, []
    for key, tensor in list(state_dict.items()):
        name = key.removeprefix(prefix)
        if (
            key.startswith(prefix)
            and name in own
            and not name.startswith(head + ".")
            and tensor.shape == own[name].shape
        ):
            state_dict[key] = fits[name] = tensor.to(own[name].dtype)
        else:
            skipped.append(key)
    if not fits:
        raise ValueError("nothing fits")
    model.load_state_dict(fits, strict=False)
    return list(fits), skipped
