"""Answers to `layer_shapes` of chapter 04."""

import torch
from torch import Tensor

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


with_the_last_name = edit(
    mended_with_the_last_name,
    {
        """
        def hook(m, i, o, name=name):
            calls.append((name, type(m).__name__, told(o)))

        handles.append(module.register_forward_hook(hook))
        """: """
        handles.append(
            module.register_forward_hook(
                lambda m, i, o: calls.append(
                    (name, type(m).__name__, told(o))
                )
            )
        )
        """,
    },
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_calls],
    tells="All your hooks share one variable `name` and look it up when they run, so "
    "all say the last one. Bind it when the hook is made: `name=name`, or "
    "`functools.partial`.",
)


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


by_forward = edit(
    mended_with_the_last_name,
    {"model(*inputs)": "model.forward(*inputs)"},
    breaks=[hidden_tests.lists_a_lone_leaf, hidden_tests.removes_its_hooks],
    tells="You call `model.forward(...)`, which skips the hooks of the model itself, "
    "yours and those of others. Call `model(...)`.",
)

without_eval = edit(
    mended_with_the_last_name,
    {
        "modes = [(module, module.training) for module in model.modules()]": "",
        "model.eval()": "",
        """
        for module, mode in modes:
            module.training = mode
        """: "",
    },
    breaks=[hidden_tests.looks_quietly, hidden_tests.puts_the_model_back],
    tells="You run the model in the mode it is in. In training mode your look moves "
    "running statistics and draws random numbers. Switch to eval first.",
)

training_afterwards = edit(
    mended_with_the_last_name,
    {
        "modes = [(module, module.training) for module in model.modules()]": "",
        """
        for module, mode in modes:
            module.training = mode
        """: "model.train()",
    },
    breaks=hidden_tests.puts_the_model_back,
    tells="You end with `model.train()`. It puts every module into training mode, "
    "also those that were in eval on purpose. Note the mode of each and put it back.",
)

one_mode_for_all = edit(
    mended_with_the_last_name,
    {
        "modes = [(module, module.training) for module in model.modules()]": "mode = model.training",
        """
        for module, mode in modes:
            module.training = mode
        """: "model.train(mode)",
    },
    breaks=hidden_tests.puts_the_model_back,
    tells="You note the mode of the model and put it back with `model.train(mode)`. "
    "That sets all submodules alike; those that were in another mode than the model "
    "lose theirs.",
)

always_a_shape = edit(
    mended_with_the_last_name,
    {
        """
        def told(value):
            if isinstance(value, Tensor):
                return tuple(value.shape)
            if isinstance(value, tuple | list):
                return [told(one) for one in value]
            return None
        """: "",
        "calls.append((name, type(m).__name__, told(o)))": "calls.append((name, type(m).__name__, tuple(o.shape)))",
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="You ask every output for its `.shape`. Some layers return tuples or lists, "
    "an LSTM for one: look at the type first.",
)

of_the_first_member = edit(
    mended_with_the_last_name,
    {
        """
        if isinstance(value, Tensor):
            return tuple(value.shape)
        if isinstance(value, tuple | list):
            return [told(one) for one in value]
        return None
        """: """
        while isinstance(value, tuple | list):
            value = value[0]
        return tuple(value.shape) if isinstance(value, Tensor) else None
        """,
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="Of a tuple or list you take the first member only. All members were asked "
    "for, in a list, nested as they are.",
)

in_a_dict = edit(
    mended_with_the_last_name,
    {
        "calls, handles = [], []": "calls, handles = {}, []",
        "calls.append((name, type(m).__name__, told(o)))": "calls[name] = (name, type(m).__name__, told(o))",
        "return calls": "return list(calls.values())",
    },
    breaks=hidden_tests.lists_calls,
    tells="You keep one entry for each name, so of a layer that is called again you have "
    "one call alone. Append to a list in each call.",
)

with_minus_one = edit(
    mended_with_the_last_name,
    {"return tuple(value.shape)": "return (-1, *value.shape[1:])"},
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_nested_outputs],
    tells="You write -1 for the batch axis, as torchsummary did. The shapes that were "
    "seen are asked for.",
)

containers_too = edit(
    mended_with_the_last_name,
    {
        """
        if not list(module.children()):

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            handles.append(module.register_forward_hook(hook))
        """: """
        def hook(m, i, o, name=name):
            calls.append((name, type(m).__name__, told(o)))

        handles.append(module.register_forward_hook(hook))
        """,
    },
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_calls],
    tells="You list every module, the containers too. Asked for are the leaves: modules "
    "without submodules.",
)

children_alone = edit(
    mended_with_the_last_name,
    {
        """
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        """: """
        for name, module in model.named_children():

            def hook(m, i, o, name=name):
                calls.append((name, type(m).__name__, told(o)))

            handles.append(module.register_forward_hook(hook))
        """,
    },
    breaks=[hidden_tests.lists_calls, hidden_tests.looks_quietly],
    tells="You go through the children of the model alone. Layers may stand deeper, "
    "and the model may be a leaf itself: use `named_modules()`.",
)

with_gradients = edit(
    mended_with_the_last_name,
    {"with torch.no_grad():": "with torch.enable_grad():"},
    breaks=hidden_tests.looks_quietly,
    tells="You run the model with gradients switched on. That builds a graph nobody "
    "needs. Use `torch.no_grad()`.",
)

with_a_switch = edit(
    mended_with_the_last_name,
    {
        """
        with torch.no_grad():
            model(*inputs)
        """: """
        torch.set_grad_enabled(False)
        model(*inputs)
        torch.set_grad_enabled(True)
        """,
    },
    breaks=[
        hidden_tests.looks_quietly,
        hidden_tests.puts_back_after_an_error,
    ],
    tells="You switch gradients off with `set_grad_enabled(False)` and on again at the "
    "end. They may have been off before, and after an error they stay off. Use "
    "`with torch.no_grad():`.",
)

clearing_all_hooks = edit(
    mended_with_the_last_name,
    {
        "calls, handles = [], []": "calls = []",
        "handles.append(module.register_forward_hook(hook))": "module.register_forward_hook(hook)",
        """
        for handle in handles:
            handle.remove()
        """: "",
        "for module, mode in modes:": """
        for module, mode in modes:
            module._forward_hooks.clear()
        """,
    },
    breaks=hidden_tests.removes_its_hooks,
    tells="You clear all hooks of the modules, those of others too. Remove your own by "
    "the handles that `register_forward_hook` returns.",
)

into_one_list = edit(
    mended_with_the_last_name,
    {
        "def mended_with_the_last_name(model, *inputs):": """
        calls = []

        def mended_with_the_last_name(model, *inputs):
        """,
        "calls, handles = [], []": """
        handles = []
        calls.clear()
        """,
    },
    breaks=hidden_tests.gives_new_lists,
    tells="Your list is made once, as a default argument or a global, and every call "
    "adds to the same one. Make a new list in each call.",
)


calling_twice = edit(
    mended_with_the_last_name,
    {
        """
        for name, module in model.named_modules():
            if not list(module.children()):

                def hook(m, i, o, name=name):
                    calls.append((name, type(m).__name__, told(o)))

                handles.append(module.register_forward_hook(hook))
        """: "",
        "with torch.no_grad():": """
        with torch.no_grad():
            model(*inputs)
            for name, module in model.named_modules():
                if not list(module.children()):

                    def hook(m, i, o, name=name):
                        calls.append((name, type(m).__name__, told(o)))

                    handles.append(module.register_forward_hook(hook))
        """,
    },
    breaks=[hidden_tests.looks_quietly, hidden_tests.removes_its_hooks],
    tells="You call the model twice. A call may be costly, and hooks of others run "
    "each time. Once was asked for.",
)


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


freezing_the_model = edit(
    mended_with_the_last_name,
    {"model.eval()": "model.eval().requires_grad_(False)"},
    breaks=hidden_tests.puts_the_model_back,
    tells="You freeze the parameters with `requires_grad_(False)` and leave them "
    "frozen: the model will not learn any more. `torch.no_grad()` is enough.",
)

with_both_names = edit(
    mended_with_the_last_name,
    {
        "for name, module in model.named_modules():": "for name, module in model.named_modules(remove_duplicate=False):",
    },
    breaks=hidden_tests.lists_calls,
    tells="You go through `named_modules(remove_duplicate=False)`, so a "
    "module with two names gets two hooks, and each call two entries. "
    "By default it stands there once.",
)

tuples_of_shapes = edit(
    mended_with_the_last_name,
    {
        "return [told(one) for one in value]": "return tuple(told(one) for one in value)",
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="You return tuples where layers return several tensors. Lists were "
    "asked for, so that a shape and a group of shapes can be told "
    "apart.",
)

looking_into_dicts = edit(
    mended_with_the_last_name,
    {
        "return None": """
        if isinstance(value, dict):
            return {key: told(one) for key, one in value.items()}
        return None
        """,
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="You look into dicts. For anything but tensors, tuples and lists "
    "None was asked for.",
)

none_for_a_number = edit(
    mended_with_the_last_name,
    {"return tuple(value.shape)": "return tuple(value.shape) or None"},
    breaks=hidden_tests.lists_nested_outputs,
    tells="A tensor without dimensions has the shape `()`. You say None.",
)

shapes_of_inputs = edit(
    mended_with_the_last_name,
    {
        "calls.append((name, type(m).__name__, told(o)))": "calls.append((name, type(m).__name__, told(i[0])))",
    },
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_calls],
    tells="You note the shape of what goes in. The shape of what the layer "
    "returned was asked for: the third argument of the hook.",
)

eval_of_the_model_alone = edit(
    mended_with_the_last_name,
    {"model.eval()": "model.training = False"},
    breaks=[hidden_tests.looks_quietly],
    tells="You set `training` of the model itself. Its submodules stay in "
    "training mode; `model.eval()` reaches all.",
)

seeding_in_layer_shapes = edit(
    mended_with_the_last_name,
    {
        "model.eval()": """
        model.eval()
        torch.manual_seed(0)
        """,
    },
    breaks=hidden_tests.looks_quietly,
    tells="You seed the global random state. Your caller's random numbers "
    "are others now: leave seeds to the caller.",
)

classes_of_the_library = edit(
    mended_with_the_last_name,
    {
        "if not list(module.children()):": 'if type(module).__module__.startswith("torch.nn"):',
    },
    breaks=[hidden_tests.lists_leaves, hidden_tests.lists_a_lone_leaf],
    tells="You take PyTorch's own classes for the leaves. A leaf is a module "
    "without submodules, whoever wrote it; `nn.Sequential` is PyTorch's "
    "and has some.",
)

zeroing_the_inputs = edit(
    mended_with_the_last_name,
    {"model(*inputs)": "model(*[one.zero_() for one in inputs])"},
    breaks=hidden_tests.puts_the_model_back,
    tells="You overwrite the caller's inputs. Use them as they are.",
)

names_as_attributes = edit(
    mended_with_the_last_name,
    {
        "modes = [(module, module.training) for module in model.modules()]": """
        def hook(m, i, o):
            calls.append((m.full_name, type(m).__name__, told(o)))

        modes = [(module, module.training) for module in model.modules()]
        """,
        "for name, module in model.named_modules():": """
        for name, module in model.named_modules():
            module.full_name = name
        """,
        """
        def hook(m, i, o, name=name):
            calls.append((name, type(m).__name__, told(o)))
        """: "",
    },
    breaks=hidden_tests.puts_the_model_back,
    tells="You write the name onto each module and leave it there. It goes into every "
    "pickle and copy of the model. Keep names in a dict of your own.",
)

eval_of_the_leaves = edit(
    mended_with_the_last_name,
    {
        "model.eval()": """
        for module in model.modules():
            if not list(module.children()):
                module.eval()
        """,
    },
    breaks=hidden_tests.looks_quietly,
    tells="You switch the leaves to eval and not the modules around them, which may look at "
    "`self.training` as well. `model.eval()` reaches all.",
)

modes_by_train = edit(
    mended_with_the_last_name,
    {"module.training = mode": "module.train(mode)"},
    breaks=hidden_tests.puts_the_model_back,
    tells="You put the modes back with `module.train(mode)`. That sets all submodules too, "
    "so a module that two parents share gets the mode of the later one. Set "
    "`module.training`.",
)

putting_back_after_errors_alone = edit(
    SOLUTION,
    {
        "finally:": """
        except Exception as error:
            failed = error
        else:
            failed = None
        if True:
        """,
        "return seen": """
        if failed is not None:
            raise failed
        return seen
        """,
    },
    breaks=hidden_tests.puts_back_after_an_error,
    tells="You put things back after an `Exception`. An interrupt, as by the stop "
    "button, is none, and leaves your hooks and eval mode behind. Use "
    "`finally`.",
)

leaves_by_registered_names = edit(
    SOLUTION,
    {"if not list(module.children()):": "if not module._modules:"},
    breaks=hidden_tests.lists_nested_outputs,
    tells="You take a module for a leaf when nothing is registered in it, not "
    "even None. A shortcut that is switched off is registered as None, and "
    "is no submodule: ask `module.children()`.",
)

tensors_of_one_class = edit(
    SOLUTION,
    {"if isinstance(value, Tensor):": "if type(value) is Tensor:"},
    breaks=hidden_tests.lists_nested_outputs,
    tells="You ask for the exact type: `type(value) is Tensor`. A parameter is a "
    "tensor too, and a named tuple a tuple. Use `isinstance`.",
)

plain_tuples_alone = edit(
    SOLUTION,
    {
        "if isinstance(value, tuple | list):": "if type(value) in (tuple, list):",
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="You ask for the exact type: `type(value) in (tuple, list)`. A named "
    "tuple is a tuple too. Use `isinstance`.",
)

whatever_has_a_shape = edit(
    SOLUTION,
    {"if isinstance(value, Tensor):": 'if hasattr(value, "shape"):'},
    breaks=hidden_tests.lists_nested_outputs,
    tells="You list whatever has a `.shape`, NumPy arrays too. A shape is given "
    "for tensors; anything else is None.",
)

names_for_repr = edit(
    SOLUTION,
    {
        "seen.append((name, type(module).__name__, shape_of(output)))": "seen.append((name, module._get_name(), shape_of(output)))",
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="The type is the name of the module's class: `type(module).__name__`. "
    "`_get_name()` may be overridden, and `__qualname__` has the "
    "surrounding class in it.",
)

qualified_names = edit(
    SOLUTION,
    {
        "seen.append((name, type(module).__name__, shape_of(output)))": "seen.append((name, type(module).__qualname__, shape_of(output)))",
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="The type is the name of the module's class: `type(module).__name__`. "
    "`_get_name()` may be overridden, and `__qualname__` has the "
    "surrounding class in it.",
)

in_single_precision = edit(
    SOLUTION,
    {
        "model(*inputs)": "model(*(x.float() if x.is_floating_point() else x for x in inputs))",
    },
    breaks=hidden_tests.looks_quietly,
    tells="You convert the inputs to float32. A model of float64 then refuses "
    "them. Give them to the model as they are.",
)

shapes_at_the_end = edit(
    SOLUTION,
    {
        "seen.append((name, type(module).__name__, shape_of(output)))": "seen.append((name, type(module).__name__, output))",
        "return seen": "return [(name, kind, shape_of(one)) for name, kind, one in seen]",
    },
    breaks=hidden_tests.gives_new_lists,
    tells="You keep the outputs and read their shapes at the end. Until then a "
    "later layer may have turned one in place; and all of them lie in "
    "memory. Note the shape in the hook.",
)

clearing_gradients_after_a_look = edit(
    SOLUTION,
    {
        "return seen": """
        model.zero_grad()
        return seen
        """,
    },
    breaks=hidden_tests.puts_the_model_back,
    tells="You clear the gradients. Those that the model had belong to a step "
    "that is still to come, and without gradients your call makes none.",
)

detaching_the_inputs = edit(
    SOLUTION,
    {"model(*inputs)": "model(*(x.detach_() for x in inputs))"},
    breaks=hidden_tests.puts_the_model_back,
    tells="You detach the inputs in place: they do not require a gradient any "
    "more. Under `torch.no_grad()` there is nothing to detach.",
)

with_buffers_replaced = edit(
    SOLUTION,
    {
        "try:": """
        kept = [(m, n, b) for m in modes for n, b in m._buffers.items()]
        try:
        """,
        "return seen": """
        for module, name, buffer in kept:
            module._buffers[name] = buffer.clone()
        return seen
        """,
    },
    breaks=hidden_tests.puts_the_model_back,
    tells="You put copies in the place of buffers or parameters. Whoever holds "
    "the old ones, such as an optimizer, has lost them.",
)

taking_the_empty_for_a_shape = edit(
    with_partial_hooks,
    {
        "if isinstance(value, (tuple, list)):": """
        if isinstance(value, (tuple, list)):
            if not value:
                return ()
        """,
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="An empty list or tuple gives `()`, which is the shape of a tensor without "
    "dimensions. For a list or tuple the entry is a list: `[]`.",
)

a_setting_left_by_layer_shapes = edit(
    SOLUTION,
    {
        "seen, handles = [], []": """
        torch.set_num_threads(2)
        seen, handles = [], []
        """,
    },
    breaks=hidden_tests.looks_quietly,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

a_tuple_of_one_unwrapped = edit(
    SOLUTION,
    {
        "seen.append((name, type(module).__name__, shape_of(output)))": """
        if isinstance(output, tuple) and len(output) == 1:
            output = output[0]
        seen.append((name, type(module).__name__, shape_of(output)))
        """,
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="You take the tensor out of a tuple of one. A tuple gives a list, however "
    "long it is: `[(4, 3)]`.",
)

a_list_of_one_unwrapped = edit(
    SOLUTION,
    {
        "seen.append((name, type(module).__name__, shape_of(output)))": """
        if isinstance(output, list) and len(output) == 1:
            output = output[0]
        seen.append((name, type(module).__name__, shape_of(output)))
        """,
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="You take the tensor out of a list of one. A list gives a list, however "
    "long it is: `[(4, 3)]`.",
)

an_empty_tuple_for_nothing = edit(
    SOLUTION,
    {
        "seen.append((name, type(module).__name__, shape_of(output)))": """
        shape = shape_of(output) if output != () else None
        seen.append((name, type(module).__name__, shape))
        """,
    },
    breaks=hidden_tests.lists_nested_outputs,
    tells="A layer that returns an empty tuple has the entry None with you. A tuple "
    "gives a list of what its members give: here `[]`.",
)
