"""The answer bank of chapter 04: inspecting models."""

import torch
from graphviz import Digraph
from torch import Tensor, nn
from tqdm import tqdm

from course_grader.bank import accepted, wrong

from . import hidden_tests

# count_parameters


@accepted("count_parameters")
def in_one_loop(model):
    total = trainable = size = 0
    for parameter in model.parameters():
        total += parameter.numel()
        trainable += parameter.numel() if parameter.requires_grad else 0
        size += parameter.nbytes
    return {"total": total, "trainable": trainable, "bytes": size}


@accepted("count_parameters")
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


@accepted("count_parameters")
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


@accepted("count_parameters")
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


@accepted("count_parameters")
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


@accepted("count_parameters")
def in_a_counter(model):
    from collections import Counter

    found = Counter(total=0, trainable=0, bytes=0)
    for p in model.parameters():
        found["bytes"] += p.numel() * p.element_size()
        found["total"] += p.numel()
        found["trainable"] += p.numel() * int(p.requires_grad)
    return found


@wrong(
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
    breaks=hidden_tests.counts_without_values,
    tells="You know shared parameters by their address in memory. On the meta device "
    "every address is 0, so all count as one. The tensor object itself, `id(p)`, "
    "tells them apart; `parameters()` does it for you.",
)
def shared_by_address(model):
    parameters = {p.data_ptr(): p for p in model.parameters()}.values()
    [p.numel() for p in model.parameters()]
    return {
        "total": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in parameters),
    }


@wrong(
    "count_parameters",
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
    "count_parameters",
    breaks=hidden_tests.counts_all,
    tells="You look into the innermost modules alone. A module with submodules may "
    "have parameters of its own.",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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
    "count_parameters",
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


# layer_shapes


@accepted("layer_shapes")
def with_partial_hooks(model, *inputs):
    import functools

    calls = []

    def told(value):
        if torch.is_tensor(value):
            return tuple(value.size())
        if isinstance(value, (tuple, list)):
            return [told(one) for one in value]
        return None

    def hook(name, module, args, output):
        calls.append((name, module.__class__.__name__, told(output)))

    was = [(module, module.training) for module in model.modules()]
    handles = [
        module.register_forward_hook(functools.partial(hook, name))
        for name, module in model.named_modules()
        if next(module.children(), None) is None
    ]
    try:
        with torch.no_grad():
            model.eval()(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in was:
            module.training = mode
    return calls


@accepted("layer_shapes")
def on_a_copy(model, *inputs):
    import copy

    twin = copy.deepcopy(model).eval()
    calls, names = [], {}
    for name, module in twin.named_modules():
        names[module] = name

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        return (
            list(map(told, value)) if isinstance(value, tuple | list) else None
        )

    def hook(module, args, output):
        kind = type(module).__name__
        calls.append((names[module], kind, told(output)))

    for module in names:
        if not len(list(module.children())):
            module.register_forward_hook(hook)
    with torch.inference_mode():
        twin(*inputs)
    return calls


@accepted("layer_shapes")
def with_a_global_hook(model, *inputs):
    from torch.nn.modules.module import register_module_forward_hook

    names = {module: name for name, module in model.named_modules()}
    calls = []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(int(n) for n in value.shape)
        if isinstance(value, tuple) or isinstance(value, list):
            return [told(one) for one in value]

    def hook(module, args, output):
        if module in names and not [*module.children()]:
            calls.append((names[module], type(module).__name__, told(output)))

    modes = {module: module.training for module in names}
    handle = register_module_forward_hook(hook)
    try:
        for module in names:
            module.training = False
        with torch.no_grad():
            model(*inputs)
    finally:
        handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return calls


@accepted("layer_shapes")
def with_an_exit_stack(model, *inputs):
    import contextlib

    calls = []

    def told(value):
        match value:
            case Tensor():
                return tuple(value.shape)
            case tuple() | list():
                return [told(one) for one in value]
            case _:
                return None

    with contextlib.ExitStack() as stack:
        for name, module in model.named_modules():
            stack.callback(setattr, module, "training", module.training)
            if not any(True for _ in module.children()):

                def hook(m, _, out, name=name):
                    calls.append((name, type(m).__name__, told(out)))

                stack.callback(module.register_forward_hook(hook).remove)
        model.eval()
        stack.enter_context(torch.no_grad())
        model(*inputs)
    return calls


@accepted("layer_shapes")
def with_hooks_that_know_arguments(model, *inputs):
    calls = []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    def maker(name):
        return lambda module, args, kwargs, output: calls.append(
            (name, type(module).__name__, told(output))
        )

    flags = {n: m.training for n, m in model.named_modules()}
    handles = []
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles += [
                    module.register_forward_hook(maker(name), with_kwargs=True)
                ]
        model.eval()
        previous = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        try:
            model(*inputs)
        finally:
            torch.set_grad_enabled(previous)
    finally:
        [handle.remove() for handle in handles]
        for name, module in model.named_modules():
            module.training = flags[name]
    return calls


@accepted("layer_shapes")
def by_wrapping_forward(model, *inputs):
    calls, wrapped = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, (list, tuple)):
            return [told(one) for one in value]
        return None

    def wrap(name, module):
        original = module.forward

        def forward(*args, **kwargs):
            output = original(*args, **kwargs)
            calls.append((name, type(module).__name__, told(output)))
            return output

        module.forward = forward
        wrapped.append(module)

    modes = {name: module.training for name, module in model.named_modules()}
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                wrap(name, module)
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for module in wrapped:
            del module.forward
        for name, module in model.named_modules():
            module.training = modes[name]
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_calls],
    tells="All your hooks share one variable `name` and look it up when they run, so "
    "all say the last one. Bind it when the hook is made: `name=name`, or "
    "`functools.partial`.",
)
def with_the_last_name(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(
                    module.register_forward_hook(
                        lambda m, i, o: calls.append(
                            (name, type(m).__name__, told(o))
                        )
                    )
                )
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.removes_its_hooks,
    tells="Your hooks stay on the model. Every later call runs them, and your list "
    "grows. Keep the handles and remove them in `finally`.",
)
def leaving_the_hooks(model, *inputs):
    calls = []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            module.register_forward_hook(hook)
    try:
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_back_after_an_error,
    tells="When the model raises, your hooks stay and the model stays in eval. What "
    "must happen in any case belongs into `finally`.",
)
def without_finally(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            handles.append(module.register_forward_hook(hook))
    model.eval()
    with torch.no_grad():
        model(*inputs)
    for handle in handles:
        handle.remove()
    for module, mode in modes:
        module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_back_after_an_error,
    tells="You swallow the model's exception. Whoever called you must hear of it: use "
    "`finally` without `except`.",
)
def swallowing_the_error(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            handles.append(module.register_forward_hook(hook))
    model.eval()
    try:
        with torch.no_grad():
            model(*inputs)
    except Exception:
        pass
    for handle in handles:
        handle.remove()
    for module, mode in modes:
        module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_a_lone_leaf, hidden_tests.removes_its_hooks],
    tells="You call `model.forward(...)`, which skips the hooks of the model itself, "
    "yours and those of others. Call `model(...)`.",
)
def by_forward(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model.forward(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.looks_quietly, hidden_tests.puts_the_model_back],
    tells="You run the model in the mode it is in. In training mode your look moves "
    "running statistics and draws random numbers. Switch to eval first.",
)
def without_eval(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You end with `model.train()`. It puts every module into training mode, "
    "also those that were in eval on purpose. Note the mode of each and put it back.",
)
def training_afterwards(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        model.train()
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You note the mode of the model and put it back with `model.train(mode)`. "
    "That sets all submodules alike; those that were in another mode than the model "
    "lose theirs.",
)
def one_mode_for_all(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    mode = model.training
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        model.train(mode)
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You ask every output for its `.shape`. Some layers return tuples or lists, "
    "an LSTM for one: look at the type first.",
)
def always_a_shape(model, *inputs):
    calls, handles = [], []
    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, tuple(o.shape)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="Of a tuple or list you take the first member only. All members were asked "
    "for, in a list, nested as they are.",
)
def of_the_first_member(model, *inputs):
    calls, handles = [], []

    def told(value):
        while isinstance(value, tuple | list):
            value = value[0]
        return tuple(value.shape) if isinstance(value, Tensor) else None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_calls,
    tells="You keep one entry for each name, so a layer that is called again "
    "overwrites the first. Append to a list.",
)
def in_a_dict(model, *inputs):
    calls, handles = {}, []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls[name] = (name, type(m).__name__, told(o))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return list(calls.values())


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_nested_outputs],
    tells="You write -1 for the batch axis, as torchsummary did. The shapes that were "
    "seen are asked for.",
)
def with_minus_one(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return (-1, *value.shape[1:])
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_calls],
    tells="You list every module, the containers too. Asked for are the leaves: modules "
    "without submodules.",
)
def containers_too(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_calls, hidden_tests.looks_quietly],
    tells="You go through the children of the model alone. Layers may stand deeper, "
    "and the model may be a leaf itself: use `named_modules()`.",
)
def children_alone(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_children():

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.looks_quietly,
    tells="You run the model with gradients switched on. That builds a graph nobody "
    "needs. Use `torch.no_grad()`.",
)
def with_gradients(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.enable_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[
        hidden_tests.looks_quietly,
        hidden_tests.puts_back_after_an_error,
    ],
    tells="You switch gradients off with `set_grad_enabled(False)` and on again at the "
    "end. They may have been off before, and after an error they stay off. Use "
    "`with torch.no_grad():`.",
)
def with_a_switch(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        torch.set_grad_enabled(False)
        model(*inputs)
        torch.set_grad_enabled(True)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.removes_its_hooks,
    tells="You clear all hooks of the modules, those of others too. Remove your own by "
    "the handles that `register_forward_hook` returns.",
)
def clearing_all_hooks(model, *inputs):
    calls = []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                module.register_forward_hook(hook)
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for module, mode in modes:
            module._forward_hooks.clear()
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.gives_new_lists,
    tells="Your list is made once, as a default argument or a global, and every call "
    "adds to the same one. Make a new list in each call.",
    body=True,
)
def into_one_list():
    calls = []

    def layer_shapes(model, *inputs):
        handles = []
        calls.clear()

        def told(value):
            if isinstance(value, Tensor):
                return tuple(value.shape)
            if isinstance(value, tuple | list):
                return [told(one) for one in value]
            return None

        modes = [(module, module.training) for module in model.modules()]
        try:
            for name, module in model.named_modules():
                if not list(module.children()):

                    def hook(m, i, o, name=name):
                        calls.append((name, type(m).__name__, told(o)))

                    handles.append(module.register_forward_hook(hook))
            model.eval()
            with torch.no_grad():
                model(*inputs)
        finally:
            for handle in handles:
                handle.remove()
            for module, mode in modes:
                module.training = mode
        return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.looks_quietly, hidden_tests.removes_its_hooks],
    tells="You call the model twice. A call may be costly, and hooks of others run "
    "each time. Once was asked for.",
)
def calling_twice(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            model(*inputs)
            for name, module in model.named_modules():
                if not list(module.children()):

                    def hook(m, i, o, name=name):
                        calls.append((name, type(m).__name__, told(o)))

                    handles.append(module.register_forward_hook(hook))
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_calls, hidden_tests.looks_quietly],
    tells="You list the modules in the order in which they are registered, once each. "
    "The order of the calls was asked for, and every call.",
)
def in_registered_order(model, *inputs):
    shapes, handles = {}, []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    leaves = [
        (name, module)
        for name, module in model.named_modules()
        if not list(module.children())
    ]
    try:
        for _, module in leaves:
            handles.append(
                module.register_forward_hook(
                    lambda m, i, o: shapes.update({m: told(o)})
                )
            )
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return [(n, type(m).__name__, shapes.get(m)) for n, m in leaves]


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You freeze the parameters with `requires_grad_(False)` and leave them "
    "frozen: the model will not learn any more. `torch.no_grad()` is enough.",
)
def freezing_the_model(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval().requires_grad_(False)
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_calls,
    tells="You go through `named_modules(remove_duplicate=False)`, so a "
    "module with two names gets two hooks, and each call two entries. "
    "By default it stands there once.",
)
def with_both_names(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules(remove_duplicate=False):
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You return tuples where layers return several tensors. Lists were "
    "asked for, so that a shape and a group of shapes can be told "
    "apart.",
)
def tuples_of_shapes(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return tuple(told(one) for one in value)
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You look into dicts. For anything but tensors, tuples and lists "
    "None was asked for.",
)
def looking_into_dicts(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        if isinstance(value, dict):
            return {key: told(one) for key, one in value.items()}
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="A tensor without dimensions has the shape `()`. You say None.",
)
def none_for_a_number(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape) or None
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_calls],
    tells="You note the shape of what goes in. The shape of what the layer "
    "returned was asked for: the third argument of the hook.",
)
def shapes_of_inputs(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(i[0])))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.looks_quietly],
    tells="You set `training` of the model itself. Its submodules stay in "
    "training mode; `model.eval()` reaches all.",
)
def eval_of_the_model_alone(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.training = False
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.looks_quietly,
    tells="You seed the global random state. In eval mode nothing is drawn, "
    "and your caller's random numbers are others now.",
)
def seeding_first(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        torch.manual_seed(0)
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_a_lone_leaf],
    tells="You take PyTorch's own classes for the leaves. A leaf is a module "
    "without submodules, whoever wrote it; `nn.Sequential` is PyTorch's "
    "and has some.",
)
def classes_of_the_library(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if type(module).__module__.startswith("torch.nn"):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You overwrite the caller's inputs. Use them as they are.",
)
def zeroing_the_inputs(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*[one.zero_() for one in inputs])
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You write the name onto each module and leave it there. It goes into every "
    "pickle and copy of the model. Keep names in a dict of your own.",
)
def names_as_attributes(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    def hook(m, i, o):
        calls.append((m.full_name, type(m).__name__, told(o)))

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            module.full_name = name
            if not list(module.children()):
                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.looks_quietly,
    tells="You switch the leaves to eval and not the modules around them, which may look at "
    "`self.training` as well. `model.eval()` reaches all.",
)
def eval_of_the_leaves(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        for module in model.modules():
            if not list(module.children()):
                module.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You put the modes back with `module.train(mode)`. That sets all submodules too, "
    "so a module that two parents share gets the mode of the later one. Set "
    "`module.training`.",
)
def modes_by_train(model, *inputs):
    calls, handles = [], []

    def told(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None

    modes = [(module, module.training) for module in model.modules()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.train(mode)
    return calls


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_back_after_an_error,
    tells="You put things back after an `Exception`. An interrupt, as by the stop "
    "button, is none, and leaves your hooks and eval mode behind. Use "
    "`finally`.",
)
def putting_back_after_errors_alone(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    except Exception as error:
        failed = error
    else:
        failed = None
    if True:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    if failed is not None:
        raise failed
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You take a module for a leaf when nothing is registered in it, not "
    "even None. A shortcut that is switched off is registered as None, and "
    "is no submodule: ask `module.children()`.",
)
def leaves_by_registered_names(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not module._modules:
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You ask for the exact type: `type(value) is Tensor`. A parameter is a "
    "tensor too, and a named tuple a tuple. Use `isinstance`.",
)
def tensors_of_one_class(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if type(value) is Tensor:
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You ask for the exact type: `type(value) in (tuple, list)`. A named "
    "tuple is a tuple too. Use `isinstance`.",
)
def plain_tuples_alone(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if type(value) in (tuple, list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="You list whatever has a `.shape`, NumPy arrays too. A shape is given "
    "for tensors; anything else is None.",
)
def whatever_has_a_shape(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if hasattr(value, "shape"):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="The type is the name of the module's class: `type(module).__name__`. "
    "`_get_name()` may be overridden, and `__qualname__` has the "
    "surrounding class in it.",
)
def names_for_repr(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, module._get_name(), shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.lists_nested_outputs,
    tells="The type is the name of the module's class: `type(module).__name__`. "
    "`_get_name()` may be overridden, and `__qualname__` has the "
    "surrounding class in it.",
)
def qualified_names(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__qualname__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.looks_quietly,
    tells="You convert the inputs to float32. A model of float64 then refuses "
    "them. Give them to the model as they are.",
)
def in_single_precision(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*(x.float() if x.is_floating_point() else x for x in inputs))
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.gives_new_lists,
    tells="You keep the outputs and read their shapes at the end. Until then a "
    "later layer may have turned one in place; and all of them lie in "
    "memory. Note the shape in the hook.",
)
def shapes_at_the_end(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, output))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return [(name, kind, shape_of(one)) for name, kind, one in seen]


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You clear the gradients. Those that the model had belong to a step "
    "that is still to come, and without gradients your call makes none.",
)
def clearing_gradients_after_a_look(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    model.zero_grad()
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You detach the inputs in place: they do not require a gradient any "
    "more. Under `torch.no_grad()` there is nothing to detach.",
)
def detaching_the_inputs(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*(x.detach_() for x in inputs))
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


@wrong(
    "layer_shapes",
    breaks=hidden_tests.puts_the_model_back,
    tells="You put copies in the place of buffers or parameters. Whoever holds "
    "the old ones, such as an optimizer, has lost them.",
)
def with_buffers_replaced(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    kept = [(m, n, b) for m in modes for n, b in m._buffers.items()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    for module, name, buffer in kept:
        module._buffers[name] = buffer.clone()
    return seen


@accepted("layer_shapes")
def with_all_values_put_back(model, *inputs):
    seen, handles = [], []
    modes = {module: module.training for module in model.modules()}

    def shape_of(value):
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [shape_of(one) for one in value]
        return None

    def watch(name):
        def hook(module, args, output):
            seen.append((name, type(module).__name__, shape_of(output)))

        return hook

    state = torch.get_rng_state()
    buffers = [(b, b.clone()) for b in model.buffers()]
    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(watch(name)))
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        torch.set_rng_state(state)
        for buffer, old in buffers:
            buffer.copy_(old)
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return seen


# trainable_report


@accepted("trainable_report", body=True)
def with_a_parameter_list():
    def trainable_report(model):
        return {
            name: (
                tuple(p.size()),
                None if p.grad is None else float(torch.norm(p.grad)),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.rows = [nn.Linear(width, width) for _ in range(depth)]
            self.known = nn.ParameterList(
                p for row in self.rows for p in row.parameters()
            )

        def forward(self, x):
            for row in self.rows[:-1]:
                x = torch.relu(row(x))
            return self.rows[-1](x)


@accepted("trainable_report", body=True)
def with_a_sequential():
    def trainable_report(model):
        found = {}
        for name, p in model.named_parameters():
            if not p.requires_grad:
                continue
            norm = None
            if p.grad is not None:
                norm = p.grad.double().square().sum().sqrt().item()
            found[name] = tuple(p.shape), norm
        return found

    class Stack(nn.Sequential):
        def __init__(self, width, depth):
            layers = [nn.Linear(width, width)]
            for _ in range(depth - 1):
                layers += [nn.ReLU(), nn.Linear(width, width)]
            super().__init__(*layers)


@accepted("trainable_report", body=True)
def with_add_module():
    def trainable_report(model):
        live = dict(model.named_parameters(remove_duplicate=True))
        rows = ((n, p, p.grad) for n, p in live.items() if p.requires_grad)
        return {
            n: (
                tuple(p.shape),
                g if g is None else torch.linalg.vector_norm(g).item(),
            )
            for n, p, g in rows
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.depth = depth
            for i in range(depth):
                self.add_module(f"linear{i}", nn.Linear(width, width))

        def forward(self, x):
            for i in range(self.depth):
                x = getattr(self, f"linear{i}")(x)
                if i < self.depth - 1:
                    x = nn.functional.relu(x)
            return x


@accepted("trainable_report", body=True)
def with_bare_parameters():
    def trainable_report(model):
        import math

        def norm(g):
            flat = g.flatten().tolist()
            return math.sqrt(math.fsum(one * one for one in flat))

        return {
            name: (tuple(p.shape), p.grad if p.grad is None else norm(p.grad))
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.weights = nn.ParameterList(
                nn.init.xavier_uniform_(torch.empty(width, width))
                for _ in range(depth)
            )
            self.biases = nn.ParameterList(
                torch.zeros(width) for _ in range(depth)
            )

        def forward(self, x):
            pairs = list(zip(self.weights, self.biases))
            for weight, bias in pairs[:-1]:
                x = (x @ weight.T + bias).clamp(min=0)
            weight, bias = pairs[-1]
            return nn.functional.linear(x, weight, bias)


@accepted("trainable_report", body=True)
def with_a_module_dict():
    def trainable_report(model):
        report = {}
        for name in dict(model.named_parameters()):
            parameter = model.get_parameter(name)
            if parameter.requires_grad:
                report[name] = (tuple(parameter.shape), None)
                if parameter.grad is not None:
                    length = parameter.grad.detach().norm(2).item()
                    report[name] = (tuple(parameter.shape), length)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = {str(i): nn.Linear(width, width) for i in range(depth)}
            self.layers = nn.ModuleDict(layers)

        def forward(self, x):
            *first, last = self.layers.values()
            for layer in first:
                x = layer(x).relu()
            return last(x)


@wrong(
    "trainable_report",
    breaks=[hidden_tests.lists_trainable_ones, hidden_tests.tells_gradients],
    tells="You filter `state_dict()` by `requires_grad`. Its values never require a "
    "gradient, so your report is empty. Use `named_parameters()`.",
    body=True,
)
def from_the_state_dict():
    def trainable_report(model):
        return {
            name: (
                tuple(v.shape),
                None if v.grad is None else v.grad.norm().item(),
            )
            for name, v in model.state_dict().items()
            if v.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.leaves_others_out,
    tells="You list all of `state_dict()`: buffers and frozen parameters are in it "
    "too. Trainable is what `named_parameters()` gives with `requires_grad`.",
    body=True,
)
def all_of_the_state_dict():
    def trainable_report(model):
        live = model.state_dict(keep_vars=True)
        return {
            name: (
                tuple(v.shape),
                None if v.grad is None else v.grad.norm().item(),
            )
            for name, v in live.items()
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.leaves_others_out,
    tells="`named_parameters()` gives frozen parameters too. Ask each for "
    "`requires_grad`.",
    body=True,
)
def with_frozen_ones():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.leaves_others_out,
    tells="A parameter with two names is listed twice. `named_parameters()` lists it "
    "once, unless told otherwise; so would the optimizer.",
    body=True,
)
def with_all_names():
    def trainable_report(model):
        named = model.named_parameters(remove_duplicate=False)
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in named
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=[hidden_tests.lists_trainable_ones, hidden_tests.tells_gradients],
    tells="You ask every parameter for its gradient's norm. Before `backward()` the "
    "gradient is None, and a parameter that took no part keeps None.",
    body=True,
)
def reading_what_is_not_there():
    def trainable_report(model):
        return {
            name: (tuple(p.shape), p.grad.norm().item())
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=[hidden_tests.lists_trainable_ones, hidden_tests.tells_gradients],
    tells="You list a parameter only once its gradient has arrived. That is when the "
    "list is wanted most: for those that get none.",
    body=True,
)
def those_with_gradients():
    def trainable_report(model):
        return {
            name: (tuple(p.shape), p.grad.norm().item())
            for name, p in model.named_parameters()
            if p.requires_grad and p.grad is not None
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=[hidden_tests.lists_trainable_ones, hidden_tests.tells_gradients],
    tells="You say 0.0 where no gradient has arrived. None and zero are two "
    "findings: the one says that the parameter took no part.",
    body=True,
)
def zero_for_none():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                0.0 if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="A gradient of zeros counts as none with you. Ask `p.grad is None`; the truth "
    "value of a norm, or of a sum, is another thing.",
    body=True,
)
def none_for_zero():
    def trainable_report(model):
        found = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = p.grad.norm().item() if p.grad is not None else None
                found[name] = (tuple(p.shape), norm or None)
        return found

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="You take the norm of the parameter, not of its gradient.",
    body=True,
)
def norm_of_the_values():
    def trainable_report(model):
        return {
            name: (tuple(p.shape), None if p.grad is None else p.norm().item())
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="The norm is a tensor. A Python float was asked for: `.item()`.",
    body=True,
)
def norm_as_a_tensor():
    def trainable_report(model):
        return {
            name: (tuple(p.shape), None if p.grad is None else p.grad.norm())
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="You take the largest entry of the gradient. The Euclidean norm is the root "
    "of the sum of squares.",
    body=True,
)
def largest_entry():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.abs().max().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.only_reads,
    tells="You clear the gradients after reading them. The optimizer's step that "
    "follows has nothing left to go by.",
    body=True,
)
def clearing_gradients():
    def trainable_report(model):
        report = {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }
        model.zero_grad()
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.lists_trainable_ones,
    tells="Your names are numbers in the list of parameters. They change with every "
    "layer that is added. `named_parameters()` gives names.",
    body=True,
)
def by_position():
    def trainable_report(model):
        return {
            str(i): (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for i, p in enumerate(model.parameters())
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.lists_trainable_ones,
    tells="You go through the submodules and miss parameters that the model itself "
    "holds. `model.named_parameters()` has all.",
    body=True,
)
def of_the_children():
    def trainable_report(model):
        return {
            f"{child}.{name}": (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for child, module in model.named_children()
            for name, p in module.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=[hidden_tests.registers_all, hidden_tests.trains_a_stack],
    tells="Your Stack keeps its layers in a Python list. A module does not look into "
    "lists: the layers are never trained, moved or saved. Use `nn.ModuleList`.",
    body=True,
)
def a_list_of_layers():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = [nn.Linear(width, width) for _ in range(depth)]

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=[hidden_tests.registers_all, hidden_tests.trains_a_stack],
    tells="`[layer] * depth` is one layer, `depth` times: all places share a weight. "
    "Make a new layer for each.",
    body=True,
)
def one_layer_many_times():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(width, width)] * depth)

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="Your Stack ends with a ReLU: it cannot give a negative number. The ReLU "
    "stands between the layers only.",
    body=True,
)
def relu_at_the_end():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="Your Stack has no ReLU between its layers. Linear layers in a row are one "
    "linear layer.",
    body=True,
)
def without_relu():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Sequential):
        def __init__(self, width, depth):
            super().__init__(*[nn.Linear(width, width) for _ in range(depth)])


@wrong(
    "trainable_report",
    breaks=hidden_tests.registers_all,
    tells="The layers of your Stack have no bias. Each has a weight and a "
    "bias.",
    body=True,
)
def without_bias():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width, bias=False) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.trains_a_stack,
    tells="The parameters of your Stack are known, but what it computes with are "
    "copies or detached values: training changes one and not the other.",
    body=True,
)
def computing_detached():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).detach().relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.lists_trainable_ones,
    tells="You sort by name. The order of `named_parameters()` was asked for: "
    "that of registration.",
    body=True,
)
def sorted_by_name():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in sorted(model.named_parameters())
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.lists_trainable_ones,
    tells="The shapes are lists. Tuples were asked for.",
    body=True,
)
def shapes_as_lists():
    def trainable_report(model):
        return {
            name: (
                list(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="You forget the root: the Euclidean norm is the root of the sum of "
    "squares.",
    body=True,
)
def square_of_the_norm():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.square().sum().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="Your Stack applies a ReLU to its input. It stands between the "
    "layers only, also where there is one layer.",
    body=True,
)
def relu_at_the_start():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            for layer in self.layers[:-1]:
                x = layer(x.relu())
            return self.layers[-1](x.relu())


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="Your Stack changes its input in place. The caller may still need "
    "it.",
    body=True,
)
def writing_into_the_input():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Linear(width, width) for _ in range(depth)
            )

        def forward(self, x):
            x.mul_(2).div_(2)
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="You convert the gradient to float32. Small numbers of float64 become "
    "zero there. Take the norm in the gradient's own dtype, or in float64.",
    body=True,
)
def norm_in_single_precision():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.float().norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="Your squares overflow where the gradient is in float16: 300 times 300 "
    "is more than it can hold. `p.grad.norm()` adds up in float32.",
    body=True,
)
def squares_in_half_precision():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = (
                    None
                    if p.grad is None
                    else p.grad.pow(2).sum().sqrt().item()
                )
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.tells_gradients,
    tells="You take NaN out of the gradient before its norm. That hides the "
    "finding that matters most.",
    body=True,
)
def nan_taken_out():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = (
                    None
                    if p.grad is None
                    else p.grad.nan_to_num().norm().item()
                )
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.leaves_others_out,
    tells="A frozen parameter may keep a gradient from before. What will be "
    "trained is told by `requires_grad`, not by the gradient.",
    body=True,
)
def frozen_with_an_old_gradient():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad or p.grad is not None:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.only_reads,
    tells="You take the gradients of frozen parameters away. The report only "
    "reads.",
    body=True,
)
def tidying_frozen_ones():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if not p.requires_grad:
                p.grad = None
            else:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.reports_anew,
    tells="You keep the report of a model that was seen before. Its gradients and "
    "flags have changed: make it anew in each call.",
    body=True,
)
def report_kept_from_the_first_call():
    import functools

    @functools.cache
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="Your activation is cut off at 6. A ReLU lets every positive number "
    "through.",
    body=True,
)
def capped_at_six():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(nn.functional.relu6(x) if place else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="In eval mode your Stack computes something else. A ReLU is the same in "
    "both modes.",
    body=True,
)
def relu_in_training_alone():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place and self.training else x)
            return x


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="You squeeze the result. A batch of one row, or a width of 1, then "
    "loses an axis.",
    body=True,
)
def squeezed():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x.squeeze()


@wrong(
    "trainable_report",
    breaks=hidden_tests.computes_a_stack,
    tells="You squeeze the result. A batch of one row, or a width of 1, then "
    "loses an axis.",
    body=True,
)
def squeezed_rows():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x.squeeze(0)


@wrong(
    "trainable_report",
    breaks=hidden_tests.trains_a_stack,
    tells="You detach the input. A Stack may stand behind other layers, and no "
    "gradient reaches them any more.",
    body=True,
)
def input_detached():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            x = x.detach()
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


@accepted("trainable_report", body=True)
def with_a_buffer_beside():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.norm().item()
                report[name] = (tuple(p.shape), norm)
        return report

    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            layers = [nn.Linear(width, width) for _ in range(depth)]
            self.register_buffer("depth", torch.tensor(depth))
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for place, layer in enumerate(self.layers):
                x = layer(x.relu() if place else x)
            return x


# graph_of


@accepted("graph_of")
def with_attributes(model, x):
    import torchviz

    with torch.enable_grad():
        loss = model(x).mean()
        names = {n: p for n, p in model.named_parameters() if p.requires_grad}
        return torchviz.make_dot(loss, params=names, show_attrs=True)


@accepted("graph_of")
def with_saved_tensors(model, x):
    from torchviz import make_dot

    before = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    try:
        out = torch.mean(model(x))
    finally:
        torch.set_grad_enabled(before)
    named = dict(model.named_parameters())
    return make_dot(out, params=named, show_saved=True)


@accepted("graph_of")
def by_walking(model, x):
    with torch.enable_grad():
        out = model(x).mean()
    names = {id(p): n for n, p in model.named_parameters()}
    graph = Digraph()
    seen, waiting = set(), [out.grad_fn]
    while waiting:
        fn = waiting.pop()
        if fn in seen:
            continue
        seen.add(fn)
        graph.node(str(id(fn)), type(fn).__name__)
        for upstream, _ in fn.next_functions:
            if upstream is None:
                continue
            if hasattr(upstream, "variable"):
                name = names[id(upstream.variable)]
                graph.node(name, shape="box")
                graph.edge(name, str(id(fn)))
            else:
                graph.edge(str(id(upstream)), str(id(fn)))
                waiting.append(upstream)
    graph.seen = seen  # the ids stay unique while these live
    return graph


@accepted("graph_of")
def with_the_mean_by_hand(model, x):
    from torchviz import make_dot

    calls = []
    handle = model.register_forward_hook(lambda m, i, o: calls.append(o))
    try:
        with torch.enable_grad():
            model(x)
            loss = calls[0].mean()
    finally:
        handle.remove()
    trainable = [pair for pair in model.named_parameters()]
    return make_dot((loss,), params=dict(trainable))


@accepted("graph_of")
def written_by_hand(model, x):
    with torch.enable_grad():
        root = model(x).mean().grad_fn
    names = {p: n for n, p in model.named_parameters()}
    numbers, lines = {}, ["digraph {"]

    def visit(fn):
        if fn in numbers:
            return numbers[fn]
        numbers[fn] = f"n{len(numbers)}"
        label = type(fn).__name__
        if label == "AccumulateGrad":
            label = f"{names[fn.variable]}\\n{tuple(fn.variable.shape)}"
        lines.append(f'  {numbers[fn]} [label="{label}", shape=box];')
        for upstream, _ in fn.next_functions:
            if upstream is not None:
                lines.append(f"  {visit(upstream)} -> {numbers[fn]};")
        return numbers[fn]

    visit(root)

    class Written:
        source = "\n".join([*lines, "}"])

    return Written()


@wrong(
    "graph_of",
    breaks=hidden_tests.boxes_for_parameters,
    tells="Your leaves do not carry their names. `params=` wants a dict from names to "
    "the tensors themselves: `dict(model.named_parameters())`. Numbers are no names, and "
    "the values of `state_dict()` are other tensors than the leaves of the graph.",
)
def named_by_numbers(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    return make_dot(loss, params=dict(enumerate(model.parameters())))


@wrong(
    "graph_of",
    breaks=hidden_tests.boxes_for_parameters,
    tells="Your leaves do not carry their names. `params=` wants a dict from names to "
    "the tensors themselves: `dict(model.named_parameters())`. Numbers are no names, and "
    "the values of `state_dict()` are other tensors than the leaves of the graph.",
)
def without_names(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    return make_dot(loss)


@wrong(
    "graph_of",
    breaks=hidden_tests.boxes_for_parameters,
    tells="Your leaves do not carry their names. `params=` wants a dict from names to "
    "the tensors themselves: `dict(model.named_parameters())`. Numbers are no names, and "
    "the values of `state_dict()` are other tensors than the leaves of the graph.",
)
def named_by_the_state_dict(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    return make_dot(loss, params=dict(model.state_dict()))


@wrong(
    "graph_of",
    breaks=[
        hidden_tests.boxes_for_operations,
        hidden_tests.boxes_for_parameters,
    ],
    tells="You run the model under `no_grad`: nothing is recorded, and the picture is "
    "one lonely box.",
)
def of_nothing(model, x):
    from torchviz import make_dot

    with torch.no_grad():
        loss = model(x).mean()
    return make_dot(loss, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.under_no_grad,
    tells="Where the caller has switched gradients off, your graph is empty. Switch "
    "them on for your call: `with torch.enable_grad():`.",
)
def where_gradients_are_on(model, x):
    from torchviz import make_dot

    loss = model(x).mean()
    return make_dot(loss, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.under_no_grad,
    tells="You switch gradients on and leave them on. Use `with torch.enable_grad():`, "
    "which puts back what was.",
)
def leaving_gradients_on(model, x):
    from torchviz import make_dot

    torch.set_grad_enabled(True)
    loss = model(x).mean()
    return make_dot(loss, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.boxes_for_operations,
    tells="You draw the graph of the model's output. That of its mean was asked for: "
    "one operation is missing.",
)
def of_the_output(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        out = model(x)
    return make_dot(out, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.in_its_own_mode,
    tells="You switch the model to eval. It is to run in the mode it is in: in "
    "training dropout is part of the graph.",
)
def in_eval(model, x):
    from torchviz import make_dot

    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.enable_grad():
        loss = model(x).mean()
    for module, mode in modes.items():
        module.training = mode
    return make_dot(loss, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.in_its_own_mode,
    tells="You call `backward()`. The graph is there without it, and your call leaves "
    "gradients that the next step will add to.",
)
def with_backward(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    graph = make_dot(loss, params=dict(model.named_parameters()))
    loss.backward()
    return graph


@wrong(
    "graph_of",
    breaks=hidden_tests.in_its_own_mode,
    tells="You call the model more than once, for a warm-up or a look. A call can "
    "be costly and has effects: once was asked for.",
)
def after_a_warm_up(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        model(x)
        loss = model(x).mean()
    return make_dot(loss, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.writes_no_file,
    tells="You save or render the graph. It was to be returned only; whoever wants a "
    "file calls `.render()`.",
)
def saving_it(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    graph = make_dot(loss, params=dict(model.named_parameters()))
    graph.save("graph.gv")
    return graph


@wrong(
    "graph_of",
    breaks=[hidden_tests.boxes_for_operations, hidden_tests.edges_forward],
    tells="Your boxes are named by the kind of operation, so all of one kind fall "
    "into one box. Give each its own node: `str(id(fn))`, with a label.",
)
def one_box_for_each_kind(model, x):
    with torch.enable_grad():
        out = model(x).mean()
    names = {id(p): n for n, p in model.named_parameters()}
    graph = Digraph()
    seen, waiting = set(), [out.grad_fn]
    while waiting:
        fn = waiting.pop()
        if fn in seen:
            continue
        seen.add(fn)
        graph.node(type(fn).__name__)
        for upstream, _ in fn.next_functions:
            if upstream is None:
                continue
            if hasattr(upstream, "variable"):
                graph.edge(names[id(upstream.variable)], type(fn).__name__)
            else:
                graph.edge(type(upstream).__name__, type(fn).__name__)
                waiting.append(upstream)
    return graph


@wrong(
    "graph_of",
    breaks=hidden_tests.edges_forward,
    tells="Your edges go the way of the backward pass. They were asked for from what "
    "goes in to what comes out.",
)
def with_edges_backwards(model, x):
    with torch.enable_grad():
        out = model(x).mean()
    names = {id(p): n for n, p in model.named_parameters()}
    graph = Digraph()
    seen, waiting = set(), [out.grad_fn]
    while waiting:
        fn = waiting.pop()
        if fn in seen:
            continue
        seen.add(fn)
        graph.node(str(id(fn)), type(fn).__name__)
        for upstream, _ in fn.next_functions:
            if upstream is None:
                continue
            if hasattr(upstream, "variable"):
                graph.edge(str(id(fn)), names[id(upstream.variable)])
            else:
                graph.edge(str(id(fn)), str(id(upstream)))
                waiting.append(upstream)
    graph.seen = seen
    return graph


@wrong(
    "graph_of",
    breaks=[hidden_tests.boxes_for_parameters, hidden_tests.writes_no_file],
    tells="You draw a box for every parameter of the model. Frozen ones and those that "
    "took no part are not in the graph; that is what the picture is for.",
)
def with_all_parameters(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    graph = make_dot(loss)
    for name, _ in model.named_parameters():
        graph.node(name, name)
    return graph


@wrong(
    "graph_of",
    breaks=[hidden_tests.boxes_for_operations, hidden_tests.edges_forward],
    tells="You return the picture of the modules or a text, not a graph with the "
    "text `.source`.",
)
def as_a_text(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    return make_dot(loss, params=dict(model.named_parameters())).source


@wrong(
    "graph_of",
    breaks=hidden_tests.boxes_for_operations,
    tells="You draw the graph of the sum. That of the mean was asked for.",
)
def of_the_sum(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        out = model(x).sum()
    return make_dot(out, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.in_its_own_mode,
    tells="You let `x` require a gradient, and it does so after your call. "
    "Only parameters were to be leaves of the graph.",
)
def asking_x_for_a_gradient(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        out = model(x.requires_grad_()).mean()
    return make_dot(out, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.boxes_for_parameters,
    tells="You let all parameters require a gradient. Frozen ones are not to "
    "be in the graph, and are to stay frozen.",
)
def waking_frozen_ones(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        out = model.requires_grad_(True)(x).mean()
    return make_dot(out, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.keeps_the_mode_after_an_error,
    tells="You put the grad mode back by a line of its own. It is not reached "
    "when the model raises. Use `with torch.enable_grad():`.",
)
def switching_without_finally(model, x):
    from torchviz import make_dot

    was = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    output = model(x).mean()
    torch.set_grad_enabled(was)
    return make_dot(output, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.in_its_own_mode,
    tells="You clear the gradients, maybe those of a backward pass of yours. The "
    "ones that were there before are lost. No backward pass is needed.",
)
def with_backward_and_cleared(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        output = model(x).mean()
    output.backward(retain_graph=True)
    model.zero_grad()
    return make_dot(output, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.in_its_own_mode,
    tells="You leave hooks on the parameters. They run in every later backward "
    "pass.",
)
def leaving_hooks_on_parameters(model, x):
    from torchviz import make_dot

    for p in model.parameters():
        if p.requires_grad:
            p.register_hook(lambda gradient: None)
    with torch.enable_grad():
        output = model(x).mean()
    return make_dot(output, params=dict(model.named_parameters()))


@wrong(
    "graph_of",
    breaks=hidden_tests.edges_forward,
    tells="You draw no edge from a box that you have met before. What goes into "
    "several operations has an edge to each.",
)
def one_edge_for_each_box(model, x):
    names = {p: name for name, p in model.named_parameters()}
    dot = Digraph()
    with torch.enable_grad():
        waiting = [model(x).mean().grad_fn]
    seen = set()
    while waiting:
        fn = waiting.pop()
        if fn in seen:
            continue
        seen.add(fn)
        leaf = hasattr(fn, "variable")
        dot.node(str(id(fn)), names[fn.variable] if leaf else type(fn).__name__)
        for before, _ in fn.next_functions:
            if before is not None and before not in seen:
                dot.edge(str(id(before)), str(id(fn)))
                waiting.append(before)
    return dot


@accepted("graph_of")
def asking_the_name(model, x):
    names = {p: name for name, p in model.named_parameters()}
    dot = Digraph()
    with torch.enable_grad():
        waiting = [model(x).mean().grad_fn]
    seen = set()
    while waiting:
        fn = waiting.pop()
        if fn in seen:
            continue
        seen.add(fn)
        leaf = hasattr(fn, "variable")
        dot.node(str(id(fn)), names[fn.variable] if leaf else fn.name())
        for before, _ in fn.next_functions:
            if before is not None:
                dot.edge(str(id(before)), str(id(fn)))
                waiting.append(before)
    return dot


# progress


@accepted("progress", body=True)
def with_a_total():
    import re

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        yield from tqdm(
            enumerate(loader), total=total, file=file, position=0, leave=True
        )

    def seconds_for(num_batches, rate):
        number, unit = re.fullmatch(r"\s*([\d.?]+)(\S+)\s*", rate).groups()
        if number == "?":
            return None
        per_batch = unit.startswith("s/")
        each = float(number)
        return num_batches * each if per_batch else num_batches / each


@accepted("progress", body=True)
def printed_by_hand():
    import operator

    def progress(loader, file):
        try:
            total = operator.index(len(loader))
        except TypeError:
            total = None
        done = 0
        for done, batch in enumerate(loader, start=1):
            yield done - 1, batch
            of = "" if total is None else f"/{total}"
            print(f"\r{done}{of} batches", end="", file=file, flush=True)
        print(file=file)

    def seconds_for(num_batches, rate):
        first, second = rate.split("/")
        if "?" in first:
            return None
        if second.strip() == "s":
            number = first.strip()
            while number[-1].isalpha():
                number = number[:-1]
            return float(num_batches) / float(number)
        return float(num_batches) * float(first.strip().rstrip("s"))


@accepted("progress", body=True)
def as_a_class():
    class Bar:
        def __init__(self, loader, file):
            self.loader, self.file = loader, file
            self.total = None
            try:
                self.total = len(loader)
            except TypeError:
                pass

        def __iter__(self):
            count = 0
            for batch in self.loader:
                yield count, batch
                count += 1
                known = f"{count}/{self.total}" if self.total else f"{count}"
                self.file.write(known + "\n")

    def progress(loader, file):
        return Bar(loader, file)

    def seconds_for(num_batches, rate):
        rate = rate.strip()
        inverse = not rate.endswith("/s")
        number = ""
        for character in rate:
            if not (character.isdigit() or character == "."):
                break
            number += character
        if number == "":
            return None
        value = float(number)
        return num_batches * value if inverse else num_batches / value


@accepted("progress", body=True)
def with_manual_updates():
    def progress(loader, file):
        with tqdm(file=file, mininterval=0) as bar:
            try:
                bar.total = len(loader)
            except TypeError:
                bar.total = None
            for i, batch in enumerate(loader):
                yield i, batch
                bar.update()

    def seconds_for(num_batches, rate):
        import re

        found = re.search(r"(\d+\.?\d*)", rate)
        if found is None:
            return None
        number = float(found.group(1))
        per_second = rate.rstrip().endswith("/s")
        return num_batches * (1 / number if per_second else number)


@accepted("progress", body=True)
def zipped_with_a_counter():
    import itertools
    import string

    def progress(loader, file):
        bar = tqdm(loader, file=file, ascii=True, ncols=60, unit=" batches")
        return zip(itertools.count(), bar)

    def seconds_for(num_batches, rate):
        amount, per = (part.strip() for part in rate.split("/"))
        if amount.startswith("?"):
            return None
        number = float(amount.rstrip(string.ascii_letters))
        if per == "s":
            number = 1.0 / number
        return number * num_batches


@wrong(
    "progress",
    breaks=hidden_tests.knows_the_total,
    tells="`enumerate` has no length, so your bar does not know the total: it only "
    "counts. Give `total=`, or put the bar inside: `enumerate(tqdm(loader))`.",
    body=True,
)
def without_a_total():
    def progress(loader, file):
        return tqdm(enumerate(loader), file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.without_a_length,
    tells="You ask every loader for its length. A generator has none, and the loader "
    "of an IterableDataset raises a TypeError: catch it.",
    body=True,
)
def always_asking_for_the_length():
    def progress(loader, file):
        return tqdm(enumerate(loader), total=len(loader), file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.without_a_length,
    tells="`hasattr(loader, '__len__')` is True for every DataLoader, also where `len` "
    "raises a TypeError. Try `len` and catch it.",
    body=True,
)
def by_hasattr():
    def progress(loader, file):
        total = len(loader) if hasattr(loader, "__len__") else None
        return tqdm(enumerate(loader), total=total, file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=[hidden_tests.takes_as_asked],
    tells="You read the whole loader into a list to know its length. Nothing is given "
    "out before all is read, and all of it lies in memory.",
    body=True,
)
def read_into_a_list():
    def progress(loader, file):
        batches = list(loader)
        return enumerate(tqdm(batches, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=[hidden_tests.takes_as_asked, hidden_tests.without_a_length],
    tells="You go through the loader once to count its batches and again to give them "
    "out. That loads everything twice, and a generator is empty the second time.",
    body=True,
)
def counted_first():
    def progress(loader, file):
        total = sum(1 for _ in loader)
        return tqdm(enumerate(loader), total=total, file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.knows_the_total,
    tells="Your total is the number of samples. The bar counts batches: "
    "`len(loader)`.",
    body=True,
)
def counting_samples():
    def progress(loader, file):
        try:
            total = len(getattr(loader, "dataset", loader))
        except TypeError:
            total = None
        return tqdm(enumerate(loader), total=total, file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.writes_to_its_stream,
    tells="Your bar goes to the screen, where tqdm writes by default. Pass "
    "`file=file`.",
    body=True,
)
def on_the_screen():
    def progress(loader, file):
        return enumerate(tqdm(loader))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=[hidden_tests.gives_pairs, hidden_tests.knows_the_total],
    tells="You number the batches from 1. The first one has the number 0.",
    body=True,
)
def numbered_from_one():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file), start=1)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.takes_as_asked,
    tells="You take a batch ahead of the one that was asked for. Whoever stops early "
    "has lost it, and two batches are in memory.",
    body=True,
)
def one_batch_ahead():
    def progress(loader, file):
        def ahead():
            batches = iter(loader)
            try:
                held = next(batches)
            except StopIteration:
                return
            for following in batches:
                yield held
                held = following
            yield held

        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(ahead(), total=total, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.knows_the_total,
    tells="Your bar says n/n from the beginning. It is to say so when all batches "
    "have been given out.",
    body=True,
)
def complete_at_once():
    def progress(loader, file):
        try:
            file.write(f"{len(loader)}/{len(loader)}\n")
        except TypeError:
            file.write("on the way\n")
        yield from enumerate(loader)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.takes_as_asked,
    tells="You swallow exceptions of the loader. The epoch then ends early and nobody "
    "hears of it.",
    body=True,
)
def swallowing_errors():
    def progress(loader, file):
        try:
            yield from enumerate(tqdm(loader, file=file))
        except Exception:
            return

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.gives_the_same_objects,
    tells="You give out copies of the batches. The loader's own were asked for; a "
    "copy costs time and memory.",
    body=True,
)
def giving_copies():
    import copy

    def progress(loader, file):
        for i, batch in enumerate(tqdm(loader, file=file)):
            yield i, copy.deepcopy(batch)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.reads_batches_per_second,
    tells="You read `it/s` as the time of a batch. It is batches per second: at 1.54it/s "
    "a batch takes 1 / 1.54 = 0.65 s. Divide.",
    body=True,
)
def rate_as_a_time():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        number = rate.strip().split("/")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        return None if number == "?" else num_batches * float(number)


@wrong(
    "progress",
    breaks=hidden_tests.reads_seconds_per_batch,
    tells="You divide by `s/it` too. Below one batch per second tqdm turns the number "
    "over: then it is the time of a batch. Multiply.",
    body=True,
)
def always_dividing():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        number = rate.strip().split("/")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        return None if number == "?" else num_batches / float(number)


@wrong(
    "progress",
    breaks=hidden_tests.reads_other_units,
    tells="You look for `s/` anywhere in the text. `12samples/s` has it too, and is a "
    "rate per second. Look at what stands after the slash.",
    body=True,
)
def looking_for_s_and_slash():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        number = rate.strip().split("/")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        if "s/" in rate:
            return num_batches * float(number)
        return num_batches / float(number)


@wrong(
    "progress",
    breaks=hidden_tests.reads_other_units,
    tells="You know the unit `it` only. tqdm writes whatever `unit=` was given, as "
    "`batch` or `samples`.",
    body=True,
)
def for_it_alone():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        rate = rate.strip()
        if rate == "?it/s":
            return None
        if rate.endswith("it/s"):
            return num_batches / float(rate.removesuffix("it/s"))
        return num_batches * float(rate.removesuffix("s/it"))


@wrong(
    "progress",
    breaks=hidden_tests.reads_other_units,
    tells="A rate that is not known yet, `?it/s`, gives 0 or infinity with you. None was "
    "asked for: no time can be told.",
    body=True,
)
def infinite_when_unknown():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return float("inf")
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.reads_batches_per_second,
    tells="You round to whole seconds. A float was asked for.",
    body=True,
)
def whole_seconds():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        number = float(number)
        return round(
            num_batches / number if below == "s" else num_batches * number
        )


@wrong(
    "progress",
    breaks=hidden_tests.writes_to_its_stream,
    tells="You close the stream. It belongs to the caller, who may want to "
    "write on or read it.",
    body=True,
)
def closing_the_stream():
    def progress(loader, file):
        yield from enumerate(tqdm(loader, file=file))
        file.close()

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=[hidden_tests.knows_the_total, hidden_tests.without_a_length],
    tells="Your total is a number of your own. The loader knows how many "
    "batches it has, or nobody does.",
    body=True,
)
def with_an_invented_total():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file, total=1000))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=[hidden_tests.knows_the_total, hidden_tests.writes_to_its_stream],
    tells="There is no bar at all: nothing is written to `file`.",
    body=True,
)
def without_a_bar():
    def progress(loader, file):
        return enumerate(loader)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    "progress",
    breaks=hidden_tests.knows_the_total,
    tells="Your bar is written at the end, when nobody needs it any more. Write as "
    "the batches go.",
    body=True,
)
def only_at_the_end():
    def progress(loader, file):
        done = 0
        for i, batch in enumerate(loader):
            yield i, batch
            done += 1
        try:
            file.write(f"{done}/{len(loader)}\n")
        except TypeError:
            file.write(f"{done}\n")

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.without_a_length,
    tells="Where `len` fails you take a guess for the total, as of "
    "`operator.length_hint`. A guess may be wrong; such a bar shows no "
    "total.",
    body=True,
)
def with_a_guessed_length():
    import operator
    import string

    def progress(loader, file):
        total = operator.length_hint(loader) or None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.takes_as_asked,
    tells="You swallow an exception of the loader: the loop ends as if all "
    "batches had been there. Catch a TypeError around `len(loader)` alone.",
    body=True,
)
def stopping_at_a_value_error():
    import string

    def progress(loader, file):
        try:
            yield from enumerate(tqdm(loader, file=file))
        except ValueError:
            return

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.takes_as_asked,
    tells="You swallow an exception of the loader: the loop ends as if all "
    "batches had been there. Catch a TypeError around `len(loader)` alone.",
    body=True,
)
def stopping_at_a_type_error():
    import string

    def progress(loader, file):
        try:
            yield from enumerate(tqdm(loader, file=file))
        except TypeError:
            return

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.takes_as_asked,
    tells="Your `try` has the whole loop in it. A TypeError of the loader itself "
    "then starts it once more, from the first batch. Put `len(loader)` "
    "alone into the `try`.",
    body=True,
)
def beginning_again():
    import string

    def progress(loader, file):
        try:
            bar = tqdm(enumerate(loader), total=len(loader), file=file)
            yield from bar
        except TypeError:
            yield from tqdm(enumerate(loader), file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.gives_pairs,
    tells="You take `loader[i]`. What a loader gives when it is gone through need "
    "not be what it gives by number, and many have no numbers. Go through "
    "it with `for`.",
    body=True,
)
def by_number():
    import string

    def progress(loader, file):
        if not hasattr(loader, "__getitem__"):
            yield from enumerate(tqdm(loader, file=file))
            return
        for i in tqdm(range(len(loader)), file=file):
            yield i, loader[i]

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.writes_to_its_stream,
    tells="You put `file` in the place of `sys.stderr` and leave it there: all "
    "later errors land in it. `tqdm` takes `file=`.",
    body=True,
)
def with_another_stderr():
    import string
    import sys

    def progress(loader, file):
        sys.stderr = file
        return enumerate(tqdm(loader))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.reads_other_units,
    tells="You look for units that you know. The unit may be any word. What "
    "stands after the slash decides.",
    body=True,
)
def for_known_words():
    import re

    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        if "?" in rate:
            return None
        number = float(re.match(r"[0-9.]+", rate.strip())[0])
        known = ("it/s", "batch/s", "samples/s")
        if any(word in rate for word in known):
            return num_batches / number
        return num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.reads_batches_per_second,
    tells="You read one digit before the point. A rate may be `41.25it/s`.",
    body=True,
)
def one_digit_before_the_point():
    import re

    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        found = re.match(r"[0-9][.][0-9]+|[0-9]+", above)
        if found is None:
            return None
        number = float(found[0])
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    "progress",
    breaks=hidden_tests.reads_batches_per_second,
    tells="For 0 batches you say None. They take 0.0 seconds; None means that the "
    "rate is not known.",
    body=True,
)
def none_for_no_batches():
    import string

    def progress(loader, file):
        return enumerate(tqdm(loader, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?" or not num_batches:
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@accepted("progress", body=True)
def updated_before_the_last_yield():
    import string

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        with tqdm(total=total, file=file, mininterval=0) as bar:
            for i, batch in enumerate(loader):
                bar.update()
                yield i, batch

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number
