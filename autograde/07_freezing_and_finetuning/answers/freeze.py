"""Answers to `freeze` of chapter 07."""

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


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
