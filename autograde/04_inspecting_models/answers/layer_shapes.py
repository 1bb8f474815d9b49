"""Answers to `layer_shapes` of chapter 04."""

import torch
from torch import Tensor

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def mended_with_the_last_name(model, *inputs):
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
            module.training = mode
    return calls


@wrong(
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
    breaks=hidden_tests.puts_back_after_an_error,
    tells="When the model raises, your hooks stay and the model stays in eval. What "
    "must happen in any case belongs in `finally`.",
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
