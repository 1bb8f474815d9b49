"""Answers to `count_parameters` of chapter 04."""

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def in_one_loop(model):
    total = trainable = size = 0
    for parameter in model.parameters():
        total += parameter.numel()
        trainable += parameter.numel() if parameter.requires_grad else 0
        size += parameter.nbytes
    return {"total": total, "trainable": trainable, "bytes": size}


@accepted()
def by_recursion_with_a_set(model):
    seen, found = set(), []

    def visit(module):
        for parameter in module._parameters.values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                found.append(parameter)
        for child in module.children():
            visit(child)

    visit(model)
    learning = [p for p in found if p.requires_grad]
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in learning),
        "bytes": sum(p.numel() * p.dtype.itemsize for p in found),
    }


@accepted()
def by_shapes(model):
    import math

    sizes = {
        name: (math.prod(p.shape), p.element_size(), p.requires_grad)
        for name, p in model.named_parameters()
        if p.numel() or True
    }
    return dict(
        bytes=sum(n * size for n, size, _ in sizes.values()),
        trainable=sum(n for n, _, learns in sizes.values() if learns),
        total=sum(n for n, _, _ in sizes.values()),
    )


@accepted()
def with_an_error_of_its_own(model):
    for name, parameter in model.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise ValueError(f"{name} has no size yet: run a batch first")
    frozen = [p.numel() for p in model.parameters() if not p.requires_grad]
    total = sum(p.nelement() for p in model.parameters())
    return {
        "total": total,
        "trainable": total - sum(frozen),
        "bytes": sum(p.nelement() * p.itemsize for p in model.parameters()),
    }


@accepted()
def by_the_live_state_dict(model):
    live = model.state_dict(keep_vars=True).values()
    parameters = {id(p): p for p in live if isinstance(p, nn.Parameter)}
    return {
        "total": sum(p.numel() for p in parameters.values()),
        "trainable": sum(
            p.numel() for p in parameters.values() if p.requires_grad
        ),
        "bytes": sum(p.numel() * p.itemsize for p in parameters.values()),
    }


@accepted()
def in_a_counter(model):
    from collections import Counter

    found = Counter(total=0, trainable=0, bytes=0)
    for p in model.parameters():
        found["bytes"] += p.numel() * p.element_size()
        found["total"] += p.numel()
        found["trainable"] += p.numel() * int(p.requires_grad)
    return found


@wrong(
    breaks=[
        hidden_tests.counts_shared_once,
        hidden_tests.leaves_buffers_out,
    ],
    tells="You add up `state_dict()`. It lists a shared parameter under each of its "
    "names, and buffers such as running statistics too. Add up "
    "`model.parameters()`.",
)
def by_the_state_dict(model):
    live = dict(model.state_dict(keep_vars=True)).values()
    return {
        "total": sum(p.numel() for p in live),
        "trainable": sum(p.numel() for p in live if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in live),
    }


@wrong(
    breaks=[hidden_tests.counts_all, hidden_tests.tells_frozen_ones],
    tells="You count the tensors. A parameter holds `p.numel()` numbers.",
)
def counting_tensors(model):
    parameters = list(model.parameters())
    [p.numel() for p in parameters]
    return {
        "total": len(parameters),
        "trainable": len([p for p in parameters if p.requires_grad]),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.counts_all,
    tells="You count what is called weight. Biases and whatever else is registered "
    "are parameters too, under any name.",
)
def weights_alone(model):
    named = model.named_parameters()
    parameters = [p for name, p in named if "weight" in name]
    [p.numel() for p in model.parameters()]
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.tells_frozen_ones,
    tells="Frozen and trainable are mixed up: what you call trainable is what does "
    "not require a gradient.",
)
def frozen_as_trainable(model):
    parameters = list(model.parameters())
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if not p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.tells_frozen_ones,
    tells="Your total leaves the frozen parameters out. They are parameters too, and "
    "take memory.",
)
def total_without_frozen(model):
    [p.numel() for p in model.parameters()]
    parameters = [p for p in model.parameters() if p.requires_grad]
    total = sum(p.numel() for p in parameters)
    return {
        "total": total,
        "trainable": total,
        "bytes": sum(p.numel() * p.element_size() for p in model.parameters()),
    }


@wrong(
    breaks=hidden_tests.counts_bytes,
    tells="You take four bytes for each number. That is float32; bfloat16 has two, "
    "float64 and complex64 have eight. `p.element_size()` knows.",
)
def four_bytes_each(model):
    parameters = list(model.parameters())
    total = sum(p.numel() for p in parameters)
    return {
        "total": total,
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": 4 * total,
    }


@wrong(
    breaks=hidden_tests.counts_bytes,
    tells="You take the bytes of a number from the first parameter. A model may have "
    "several dtypes.",
)
def bytes_of_the_first(model):
    parameters = list(model.parameters())
    total = sum(p.numel() for p in parameters)
    return {
        "total": total,
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": total * parameters[0].element_size() if parameters else 0,
    }


@wrong(
    breaks=hidden_tests.counts_bytes,
    tells="You ask the storage how large it is. A parameter may look at a part of "
    "its storage, or at one number many times: numbers times bytes per number was "
    "asked for.",
)
def bytes_of_the_storage(model):
    parameters = list(model.parameters())
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.untyped_storage().nbytes() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.counts_shared_once,
    tells="You go from module to module and count a parameter again wherever it "
    "is registered. A shared one is one parameter.",
)
def module_by_module(model):
    parameters = [
        p
        for module in model.modules()
        for p in module.parameters(recurse=False)
    ]
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.counts_all,
    tells="You leave out parameters that a module with submodules has of its own: "
    "those of the innermost modules are not all.",
)
def leaves_alone(model):
    found = {
        id(p): p
        for module in model.modules()
        if not list(module.children())
        for p in module.parameters()
    }.values()
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }


@wrong(
    breaks=hidden_tests.counts_shared_once,
    tells="torchinfo counts a tensor that two layers share twice. `model.parameters()` "
    "gives it once.",
)
def by_torchinfo(model):
    import torchinfo

    [p.numel() for p in model.parameters()]
    table = torchinfo.summary(model, verbose=0)
    return {
        "total": table.total_params,
        "trainable": table.trainable_params,
        "bytes": sum(p.numel() * p.element_size() for p in model.parameters()),
    }


@wrong(
    breaks=hidden_tests.refuses_lazy_ones,
    tells="You leave out lazy parameters that have no size yet. The count is then "
    "wrong and nobody hears of it: raise a ValueError.",
)
def skipping_lazy_ones(model):
    parameters = [
        p
        for p in model.parameters()
        if not isinstance(p, nn.parameter.UninitializedParameter)
    ]
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.leaves_the_counted_model,
    tells="You freeze or wake parameters while you count. Counting only reads.",
)
def waking_to_count(model):
    parameters = list(model.parameters())
    trainable = sum(p.numel() for p in parameters if p.requires_grad)
    for p in parameters:
        p.requires_grad_(p.is_floating_point())
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": trainable,
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=[hidden_tests.counts_all, hidden_tests.counts_bytes],
    tells="You return tensors. Python ints were asked for: `numel()` gives "
    "them.",
)
def as_tensors(model):
    parameters = list(model.parameters())
    learning = [p.numel() for p in parameters if p.requires_grad]
    sizes = [p.numel() * p.element_size() for p in parameters]
    return {
        "total": torch.tensor([p.numel() for p in parameters]).sum(),
        "trainable": torch.tensor(learning).sum(),
        "bytes": torch.tensor(sizes).sum(),
    }


@wrong(
    breaks=hidden_tests.counts_bytes,
    tells="You leave out parameters of integer dtypes, as quantised weights "
    "are. They are parameters and take memory.",
)
def without_integers(model):
    parameters = [
        p
        for p in model.parameters()
        if p.numel() == 0 or p.is_floating_point() or p.is_complex()
    ]
    total = sum(p.numel() for p in parameters)
    return {
        "total": total,
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.tells_frozen_ones,
    tells="Your bytes are those of the trainable parameters. Frozen ones take "
    "memory too; all were asked for.",
)
def bytes_of_trainable_ones(model):
    parameters = list(model.parameters())
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(
            p.numel() * p.element_size() for p in parameters if p.requires_grad
        ),
    }


@wrong(
    breaks=[hidden_tests.counts_bytes],
    tells="You convert the model before you count, so all its numbers take "
    "four bytes, and it is another model afterwards. Counting only "
    "reads.",
)
def converting_first(model):
    [p.numel() for p in model.parameters()]
    model.to(torch.float32)
    parameters = list(model.parameters())
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    breaks=hidden_tests.counts_shared_once,
    tells="You tell parameters apart by the address of their memory. Two of them "
    "may look at the same memory: they are two, as for an optimizer. "
    "Compare the objects: `id(p)`, or what `model.parameters()` gives.",
)
def by_address_where_there_is_one(model):
    by_address = {}
    for p in model.parameters():
        p.numel()
        on_meta = p.device.type == "meta"
        by_address[id(p) if on_meta else p.data_ptr()] = p
    found = by_address.values()
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }


@wrong(
    breaks=hidden_tests.counts_shared_once,
    tells="You count parameters of equal values once. Two layers that begin alike "
    "are still two: only the same object is shared.",
)
def by_values(model):
    found = []
    for p in model.parameters():
        p.numel()
        alike = (
            q.shape == p.shape and q.dtype == p.dtype and torch.equal(q, p)
            for q in found
            if not p.is_meta
        )
        if not any(alike):
            found.append(p)
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }


@wrong(
    breaks=hidden_tests.counts_anew,
    tells="You keep the counts of a model that was seen before. A model changes: "
    "it is frozen, or a layer is added. Count anew in each call.",
    body=True,
)
def kept_from_the_first_call():
    import functools

    @functools.cache
    def count_parameters(model):
        found = list(model.parameters())
        return {
            "total": sum(p.numel() for p in found),
            "trainable": sum(p.numel() for p in found if p.requires_grad),
            "bytes": sum(p.numel() * p.element_size() for p in found),
        }


@wrong(
    breaks=hidden_tests.refuses_lazy_ones,
    tells="You ask whether a layer is lazy or a buffer has no size. Only "
    "parameters without a size are refused: a lazy batch norm without "
    "weights has none.",
)
def lazy_by_the_class(model):
    from torch.nn.modules.lazy import LazyModuleMixin

    if any(isinstance(one, LazyModuleMixin) for one in model.modules()):
        raise ValueError("a lazy layer has not seen a batch")
    found = list(model.parameters())
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }


@wrong(
    breaks=hidden_tests.refuses_lazy_ones,
    tells="You ask whether a layer is lazy or a buffer has no size. Only "
    "parameters without a size are refused: a lazy batch norm without "
    "weights has none.",
)
def lazy_by_the_buffers(model):
    everything = [*model.parameters(), *model.buffers()]
    if any(nn.parameter.is_lazy(one) for one in everything):
        raise ValueError("something has no size yet")
    found = list(model.parameters())
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }


@wrong(
    breaks=hidden_tests.leaves_the_counted_model,
    tells="You clear the gradients. Counting is reading: the step that follows "
    "would have nothing to go by.",
)
def clearing_gradients_to_count(model):
    model.zero_grad()
    found = list(model.parameters())
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }


@wrong(
    breaks=hidden_tests.leaves_the_counted_model,
    tells="You switch gradients on or off for the whole program and leave it so. "
    "To count, no switch is needed.",
)
def switching_gradients_on(model):
    torch.set_grad_enabled(True)
    found = list(model.parameters())
    return {
        "total": sum(p.numel() for p in found),
        "trainable": sum(p.numel() for p in found if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in found),
    }
