"""Answers to `diagnose` of chapter 08."""

import copy
import math
import re
import warnings

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


@accepted()
def diagnose_with_an_optimizer(model, loss_function, batches, lr):
    def good(t):
        return torch.isfinite(t).all().item()

    def follow(rate, last):
        copied = copy.deepcopy(model)
        sgd = torch.optim.SGD(copied.parameters(), lr=rate)
        first = []
        handles = [
            m.register_forward_hook(
                lambda m, i, o, n=n: (
                    first.append(n) if good(i[0]) and not good(o) else None
                )
            )
            for n, m in copied.named_modules()
        ]
        for i, (x, y) in enumerate(batches):
            if i > last:
                break
            for what, t in zip("xy", (x, y)):
                if not good(t):
                    return ("data", i, what)
            first.clear()
            out = copied(x)
            if not good(out):
                return ("layer", i, first[0])
            loss = loss_function(out, y)
            if not good(loss):
                return ("loss", i, "")
            sgd.zero_grad()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss.backward(retain_graph=True)
                grads = [p.grad for p in copied.parameters()]
                if not all(g is None or good(g) for g in grads):
                    name = ""
                    try:
                        with torch.autograd.detect_anomaly():
                            loss.backward()
                    except RuntimeError as error:
                        name = str(error).split("'")[1]
                    return ("gradient", i, name)
            sgd.step()
        for handle in handles:
            handle.remove()
        return None

    for name, value in model.state_dict().items():
        if not good(value):
            return ("state", 0, name)
    result = follow(lr, len(batches))
    if result is not None and result[0] in ("layer", "loss", "gradient"):
        if follow(lr / 100, result[1]) is None:
            return ("learning rate", result[1], "")
    return result


@accepted()
def diagnose_by_autograd_grad(model, loss_function, batches, lr):
    def bad(t):
        return not torch.isfinite(t).all()

    def run_it(pairs, rate):
        m = copy.deepcopy(model)
        names = {module: name for name, module in m.named_modules()}
        seen = []

        def hook(module, inputs, output):
            if bad(output) and not any(bad(i) for i in inputs):
                seen.append(names[module])

        for module in names:
            module.register_forward_hook(hook)
        wanted = [p for p in m.parameters() if p.requires_grad]
        for i, (x, y) in enumerate(pairs):
            if bad(x):
                return "data", i, "x"
            if bad(y):
                return "data", i, "y"
            del seen[:]
            output = m(x)
            if bad(output):
                return "layer", i, seen[0]
            loss = loss_function(output, y)
            if bad(loss):
                return "loss", i, ""
            grads = torch.autograd.grad(
                loss, wanted, retain_graph=True, allow_unused=True
            )
            if any(g is not None and bad(g) for g in grads):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    text = str(error)
                    start = text.index("'") + 1
                    return "gradient", i, text[start : text.index("'", start)]
                return "gradient", i, ""
            with torch.no_grad():
                for p, g in zip(wanted, grads):
                    if g is not None:
                        p.sub_(g, alpha=rate)

    entries = model.state_dict()
    for name in entries:
        if bad(entries[name]):
            return "state", 0, name
    found = run_it(batches, lr)
    if found and found[0] != "data":
        if not run_it(batches[: found[1] + 1], lr / 100):
            found = "learning rate", found[1], ""
    return found


@accepted()
def diagnose_and_restore(model, loss_function, batches, lr):
    def ok(*tensors):
        return all(bool(t.isfinite().all()) for t in tensors)

    state = copy.deepcopy(model.state_dict())
    old = [p.grad for p in model.parameters()]

    def attempt(count, rate):
        model.load_state_dict(state)
        for step in range(count):
            x, y = batches[step]
            if not ok(x):
                return "data", step, "x"
            if not ok(y):
                return "data", step, "y"
            broken.clear()
            output = model(x)
            if not ok(output):
                return "layer", step, broken[0]
            loss = loss_function(output, y)
            if not ok(loss):
                return "loss", step, ""
            model.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in model.parameters() if p.grad is not None]
            if not ok(*(p.grad for p in moved)):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    words = re.match(r"Function '([^']*)'", str(error))
                    return "gradient", step, words[1]
                return "gradient", step, ""
            for p in moved:
                p.data = p.data - rate * p.grad
        return None

    for name, value in state.items():
        if not ok(value):
            return "state", 0, name
    broken, hooks = [], []
    for name, module in model.named_modules():

        def hook(module, inputs, output, name=name):
            if ok(*inputs) and not ok(output):
                broken.append(name)

        hooks.append(module.register_forward_hook(hook))
    try:
        fault = attempt(len(batches), lr)
        if fault is not None and fault[0] != "data":
            if attempt(fault[1] + 1, lr / 100) is None:
                fault = "learning rate", fault[1], ""
        return fault
    finally:
        for one in hooks:
            one.remove()
        model.load_state_dict(state)
        for p, g in zip(model.parameters(), old):
            p.grad = g


@accepted()
def diagnose_with_two_passes(model, loss_function, batches, lr):
    """Hooks only once a forward pass has gone wrong."""

    def broken(t):
        return bool((t - t != 0).any())

    def blamed(m, x):
        found = []
        for name, module in m.named_modules():
            module.register_forward_hook(
                lambda _, i, o, name=name: found.append((name, i[0], o))
            )
        m(x)
        for name, given, made in found:
            if broken(made) and not broken(given):
                return name

    def simulate(rate, stop):
        m = copy.deepcopy(model)
        for step, (x, y) in enumerate(batches[:stop]):
            if broken(x) or broken(y):
                return ("data", step, "x" if broken(x) else "y")
            before = copy.deepcopy(m)
            out = m(x)
            if broken(out):
                return ("layer", step, blamed(before, x))
            loss = loss_function(out, y)
            if broken(loss):
                return ("loss", step, "")
            m.zero_grad()
            loss.backward()
            grads = [p.grad for p in m.parameters() if p.grad is not None]
            if any(broken(g) for g in grads):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss_function(before(x), y).backward()
                except RuntimeError as error:
                    return ("gradient", step, str(error).split("'")[1])
                return ("gradient", step, "")
            with torch.no_grad():
                for p in m.parameters():
                    if p.grad is not None:
                        p.add_(p.grad, alpha=-rate)

    for name, entry in model.state_dict().items():
        if broken(entry):
            return ("state", 0, name)
    fault = simulate(lr, None)
    causes = "layer", "loss", "gradient"
    if fault and fault[0] in causes and not simulate(lr / 100, fault[1] + 1):
        return ("learning rate", fault[1], "")
    return fault


@accepted()
def diagnose_with_pre_hooks(model, loss_function, batches, lr):
    def all_finite(t):
        return math.isfinite(float((t.detach().double() * 0).sum()))

    def one_run(rate, num_steps):
        m, clean, guilty = copy.deepcopy(model), {}, []

        def before(name):
            def hook(module, args):
                clean[name] = all_finite(args[0])

            return hook

        def after(name):
            def hook(module, args, out):
                if clean[name] and not all_finite(out):
                    guilty.append(name)

            return hook

        for name, module in m.named_modules():
            module.register_forward_pre_hook(before(name))
            module.register_forward_hook(after(name))
        for step in range(num_steps):
            x, y = batches[step]
            which = [n for n, t in (("x", x), ("y", y)) if not all_finite(t)]
            if which:
                return "data", step, which[0]
            guilty.clear()
            out = m(x)
            if not all_finite(out):
                return "layer", step, guilty[0]
            loss = loss_function(out, y)
            if not all_finite(loss):
                return "loss", step, ""
            for p in m.parameters():
                p.grad = None
            loss.backward(retain_graph=True)
            where = ""
            for p in m.parameters():
                if p.grad is not None and not all_finite(p.grad):
                    try:
                        with torch.autograd.set_detect_anomaly(True):
                            loss.backward()
                    except RuntimeError as error:
                        where = re.findall(r"'(.*?)'", str(error))[0]
                    return "gradient", step, where
            for p in m.parameters():
                if p.grad is not None:
                    p.data.sub_(rate * p.grad)

    bad = [k for k, v in model.state_dict().items() if not all_finite(v)]
    if bad:
        return "state", 0, bad[0]
    fault = one_run(lr, len(batches))
    if fault is None or fault[0] == "data":
        return fault
    if one_run(lr / 100, fault[1] + 1) is None:
        return "learning rate", fault[1], ""
    return fault


@accepted()
def diagnose_with_global_hooks(model, loss_function, batches, lr):
    def fine(t):
        return bool(torch.isfinite(t).all())

    def run(rate, count):
        m = copy.deepcopy(model)
        names = {id(module): name for name, module in m.named_modules()}
        found = []

        def look(module, args, out):
            if id(module) in names and fine(args[0]) and not fine(out):
                found.append(names[id(module)])

        hook = nn.modules.module.register_module_forward_hook(look)
        try:
            for step in range(count):
                x, y = batches[step]
                if not (fine(x) and fine(y)):
                    return "data", step, "xy"[fine(x)]
                found.clear()
                out = m(x)
                if not fine(out):
                    return "layer", step, found[0]
                loss = loss_function(out, y)
                if not fine(loss):
                    return "loss", step, ""
                m.zero_grad()
                loss.backward(retain_graph=True)
                grads = [p.grad for p in m.parameters()]
                if not all(g is None or fine(g) for g in grads):
                    told = "''"
                    try:
                        with torch.autograd.set_detect_anomaly(True):
                            loss.backward()
                    except RuntimeError as e:
                        told = e.args[0].split()[1]
                    return "gradient", step, told.strip("'")
                with torch.no_grad():
                    for p, g in zip(m.parameters(), grads):
                        if g is not None:
                            p.copy_(p - rate * g)
        finally:
            hook.remove()

    for name, value in model.state_dict().items():
        if not fine(value):
            return "state", 0, name
    fault = run(lr, len(batches))
    if fault and fault[0] in ("layer", "loss", "gradient"):
        if run(lr / 100, fault[1] + 1) is None:
            return "learning rate", fault[1], ""
    return fault


@accepted()
def mended_diagnose_without_the_rate(model, loss_function, batches, lr):
    def finite(tensor):
        return bool(tensor.isfinite().all())

    def first_fault(steps, rate):
        twin, blamed = copy.deepcopy(model), []

        def watch(name):
            def hook(module, inputs, output):
                if finite(inputs[0]) and not finite(output):
                    blamed.append(name)

            return hook

        for name, module in twin.named_modules():
            module.register_forward_hook(watch(name))
        for step, (x, y) in enumerate(batches[:steps]):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
            blamed.clear()
            output = twin(x)
            if not finite(output):
                return "layer", step, blamed[0]
            loss = loss_function(output, y)
            if not finite(loss):
                return "loss", step, ""
            twin.zero_grad()
            loss.backward(retain_graph=True)
            moved = [p for p in twin.parameters() if p.grad is not None]
            if not all(finite(p.grad) for p in moved):
                try:
                    with torch.autograd.set_detect_anomaly(True):
                        loss.backward()
                except RuntimeError as error:
                    operation = re.search(r"'(\w+)'", str(error)).group(1)
                    return "gradient", step, operation
                return "gradient", step, ""
            with torch.no_grad():
                for p in moved:
                    p -= rate * p.grad
        return None

    for name, entry in model.state_dict().items():
        if not finite(entry):
            return "state", 0, name
    fault = first_fault(len(batches), lr)
    if fault is None or fault[0] == "data":
        return fault
    step = fault[1]
    slow = first_fault(step + 1, lr / 100)
    return ("learning rate", step, "") if slow is None else fault


diagnose_without_the_rate = edit(
    mended_diagnose_without_the_rate,
    {
        """
        if fault is None or fault[0] == "data":
            return fault
        step = fault[1]
        slow = first_fault(step + 1, lr / 100)
        return ("learning rate", step, "") if slow is None else fault
        """: "return fault",
    },
    breaks=hidden_tests.rates_too_large,
    tells="You report where the run broke and never try a smaller learning rate. "
    "When weights explode, some layer or the loss is always the first to "
    "overflow; the cause is the rate. Repeat the run with `lr / 100`.",
)

diagnose_repeats_the_whole_run = edit(
    mended_diagnose_without_the_rate,
    {
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(len(batches), lr / 100)",
    },
    breaks=hidden_tests.rates_too_large,
    tells="You repeat the run with `lr / 100` to its end. What breaks there later "
    "is another fault. Repeat it up to the step of the fault that you "
    "found.",
)

diagnose_repeats_too_short = edit(
    mended_diagnose_without_the_rate,
    {
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(step, lr / 100)",
    },
    breaks=[hidden_tests.broken_layers, hidden_tests.broken_losses],
    tells="Every fault in a layer, the loss or a gradient is laid to the learning "
    "rate. Find out whether it is: repeat the run with `lr / 100`, up to "
    "and *with* the step of the fault (`batches[: step + 1]`), and blame "
    "the rate only if the fault is gone.",
)

diagnose_blames_the_rate_always = edit(
    mended_diagnose_without_the_rate,
    {
        """
        slow = first_fault(step + 1, lr / 100)
        return ("learning rate", step, "") if slow is None else fault
        """: 'return "learning rate", step, ""',
    },
    breaks=[
        hidden_tests.broken_layers,
        hidden_tests.broken_losses,
        hidden_tests.broken_gradients,
    ],
    tells="Every fault in a layer, the loss or a gradient is laid to the learning "
    "rate. Find out whether it is: repeat the run with `lr / 100`, up to "
    "and *with* the step of the fault (`batches[: step + 1]`), and blame "
    "the rate only if the fault is gone.",
)

diagnose_tries_a_tenth = edit(
    mended_diagnose_without_the_rate,
    {
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(step + 1, lr / 10)",
    },
    breaks=hidden_tests.followed_step_by_step,
    tells="You repeat the run with another learning rate than `lr / 100`. What "
    "counts as a small enough rate is for the text to say.",
)

diagnose_tries_a_thousandth = edit(
    mended_diagnose_without_the_rate,
    {
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(step + 1, lr / 1000)",
    },
    breaks=hidden_tests.followed_step_by_step,
    tells="You repeat the run with another learning rate than `lr / 100`. What "
    "counts as a small enough rate is for the text to say.",
)

diagnose_never_clears = edit(
    mended_diagnose_without_the_rate,
    {"twin.zero_grad()": ""},
    breaks=hidden_tests.followed_step_by_step,
    tells="You never clear the gradients, so each step is made with the sum of "
    "all so far. That is another run. Clear them before each backward pass.",
)

diagnose_with_momentum = edit(
    mended_diagnose_without_the_rate,
    {
        "twin, blamed = copy.deepcopy(model), []": """
        twin, blamed = copy.deepcopy(model), []
        sgd = torch.optim.SGD(twin.parameters(), lr=rate, momentum=0.9)
        """,
        """
        with torch.no_grad():
            for p in moved:
                p -= rate * p.grad
        """: "sgd.step()",
    },
    breaks=hidden_tests.followed_step_by_step,
    tells="You train with momentum. The run is plain gradient descent: `p -= lr * "
    "p.grad`.",
)

diagnose_with_clipping = edit(
    mended_diagnose_without_the_rate,
    {
        "with torch.no_grad():": """
        nn.utils.clip_grad_norm_(moved, 1.0)
        with torch.no_grad():
        """,
    },
    breaks=hidden_tests.followed_step_by_step,
    tells="You clip the gradients on the way. That is another run, and one that "
    "may never break. Follow the run as it was.",
)

diagnose_does_not_train = edit(
    mended_diagnose_without_the_rate,
    {
        """
        with torch.no_grad():
            for p in moved:
                p -= rate * p.grad
        """: "",
    },
    breaks=hidden_tests.rates_too_large,
    tells="You look at each batch with the weights as they were at the beginning. "
    "A run that diverges does so because of its own steps: make them.",
)

diagnose_climbs = edit(
    mended_diagnose_without_the_rate,
    {"p -= rate * p.grad": "p += rate * p.grad"},
    breaks=hidden_tests.rates_too_large,
    tells="You add the gradient instead of subtracting it: `p -= lr * p.grad`.",
)

diagnose_blames_the_last_layer = edit(
    mended_diagnose_without_the_rate,
    {'return "layer", step, blamed[0]': 'return "layer", step, blamed[-1]'},
    breaks=hidden_tests.broken_layers,
    tells="You blame the layer that noticed it last. NaN goes on through all "
    "layers that follow: the first in the list is the cause.",
)

diagnose_blames_who_gets_nan = edit(
    mended_diagnose_without_the_rate,
    {"if finite(inputs[0]) and not finite(output):": "if not finite(output):"},
    breaks=hidden_tests.broken_containers,
    tells="You look at the outputs alone. A layer that gets a NaN gives one; the "
    "one to blame has an input that is finite.",
)

diagnose_leaves_alone = edit(
    mended_diagnose_without_the_rate,
    {
        "module.register_forward_hook(watch(name))": """
        if not list(module.children()):
            module.register_forward_hook(watch(name))
        """,
        'return "layer", step, blamed[0]': 'return "layer", step, blamed[0] if blamed else "?"',
    },
    breaks=hidden_tests.broken_containers,
    tells="You watch only modules without children. A container may compute "
    "something in its own `forward`, and so may the model itself: watch all "
    "of `named_modules()`.",
)

diagnose_in_order_of_registration = edit(
    mended_diagnose_without_the_rate,
    {
        "if finite(inputs[0]) and not finite(output):": "if not finite(output):",
        'return "layer", step, blamed[0]': """
        leaves = [n for n, m in twin.named_modules() if not m._modules]
        bad = [name for name in leaves if name in blamed]
        return "layer", step, bad[0] if bad else blamed[-1]
        """,
    },
    breaks=hidden_tests.broken_layers,
    tells="You go through the layers in the order of `named_modules()`. That is "
    "the order in which they were registered; they run in the order that "
    "`forward` has. Let the hooks write down who finished first.",
)

diagnose_calls_a_mask_a_fault = edit(
    mended_diagnose_without_the_rate,
    {"if not finite(output):": "if blamed:"},
    breaks=hidden_tests.healthy_runs,
    tells="You call every value that is not finite a fault. A score of -inf "
    "before a softmax is there on purpose: as long as the model's output is "
    "finite, nothing is broken.",
)

diagnose_looks_for_nan_alone = edit(
    mended_diagnose_without_the_rate,
    {
        "return bool(tensor.isfinite().all())": "return not tensor.isnan().any()",
        'return "layer", step, blamed[0]': 'return "layer", step, blamed[0] if blamed else "?"',
    },
    breaks=[hidden_tests.broken_data, hidden_tests.broken_state],
    tells="You look for NaN alone. An infinity is a fault as well: "
    "`torch.isfinite`.",
)

diagnose_without_targets = edit(
    mended_diagnose_without_the_rate,
    {
        """
        if not finite(x) or not finite(y):
            return "data", step, "y" if finite(x) else "x"
        """: """
        if not finite(x):
            return "data", step, "x"
        """,
    },
    breaks=hidden_tests.broken_data,
    tells="You look at `x` and not at `y`. A target that is not finite makes the "
    "loss so, and the loss is blamed.",
)

diagnose_parameters_alone = edit(
    mended_diagnose_without_the_rate,
    {
        "for name, entry in model.state_dict().items():": "for name, entry in model.named_parameters():",
    },
    breaks=hidden_tests.broken_state,
    tells="Before the first step you look at the parameters alone. The buffers "
    "are part of the state: one NaN in a running variance is enough. Go "
    "through `state_dict()`.",
)

diagnose_looks_at_all_data_first = edit(
    mended_diagnose_without_the_rate,
    {
        "for name, entry in model.state_dict().items():": """
        for step, (x, y) in enumerate(batches):
            if not finite(x) or not finite(y):
                return "data", step, "y" if finite(x) else "x"
        for name, entry in model.state_dict().items():
        """,
    },
    breaks=hidden_tests.first_of_several,
    tells="You look through all batches before you train. A bad batch that comes "
    "after the run has broken is not what broke it: go step by step.",
)

diagnose_forgets_the_state = edit(
    mended_diagnose_without_the_rate,
    {
        'return "layer", step, blamed[0]': 'return "layer", step, blamed[0] if blamed else ""',
        """
        for name, entry in model.state_dict().items():
            if not finite(entry):
                return "state", 0, name
        """: "",
    },
    breaks=hidden_tests.broken_state,
    tells="You never look at the state before the first step. A NaN in a "
    "checkpoint then looks like a fault of the first layer that uses it.",
)

diagnose_counts_from_one = edit(
    mended_diagnose_without_the_rate,
    {
        "fault = first_fault(len(batches), lr)": """
        fault = first_fault(len(batches), lr)
        if fault:
            fault = fault[0], fault[1] + 1, fault[2]
        """,
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(step, lr / 100)",
    },
    breaks=[hidden_tests.broken_data, hidden_tests.broken_layers],
    tells="Your steps count from 1. The first batch is step 0.",
)

diagnose_without_anomaly_mode = edit(
    mended_diagnose_without_the_rate,
    {
        "loss.backward(retain_graph=True)": "loss.backward()",
        r"""
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
            operation = re.search(r"'(\w+)'", str(error)).group(1)
            return "gradient", step, operation
        """: "",
    },
    breaks=hidden_tests.broken_gradients,
    tells="The gradient is found, but not the operation. Go backward in anomaly "
    "mode and read its error: it names the function whose gradient was NaN.",
)

diagnose_names_the_last_node = edit(
    mended_diagnose_without_the_rate,
    {
        "operation = re.search(r\"'(\\w+)'\", str(error)).group(1)": "operation = type(loss.grad_fn).__name__",
    },
    breaks=hidden_tests.broken_gradients,
    tells="You name the function that made the loss (`loss.grad_fn`). The NaN "
    "arises somewhere on the way back from it: anomaly mode names where.",
)

diagnose_trusts_anomaly_mode = edit(
    mended_diagnose_without_the_rate,
    {
        "loss.backward(retain_graph=True)": r"""
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
            operation = re.search(r"'(\w+)'", str(error)).group(1)
            return "gradient", step, operation
        """,
        r"""
        if not all(finite(p.grad) for p in moved):
            try:
                with torch.autograd.set_detect_anomaly(True):
                    loss.backward()
            except RuntimeError as error:
                operation = re.search(r"'(\w+)'", str(error)).group(1)
                return "gradient", step, operation
            return "gradient", step, ""
        """: "",
    },
    breaks=hidden_tests.infinite_gradients,
    tells="You rely on anomaly mode alone. It looks for NaN; an infinite gradient "
    "passes. Look at the gradients as well.",
)


diagnose_trains_the_model = edit(
    mended_diagnose_without_the_rate,
    {
        "copy.deepcopy(model)": "model",
        """
        for name, entry in model.state_dict().items():
            if not finite(entry):
                return "state", 0, name
        fault = first_fault(len(batches), lr)
        """: """
        for name, entry in model.state_dict().items():
            if not finite(entry):
                return "state", 0, name
        start = copy.deepcopy(model)
        fault = first_fault(len(batches), lr)
        trained, model = model, start
        """,
    },
    breaks=hidden_tests.run_left_alone,
    tells="You train the model you were given. Who asks for a diagnosis wants the "
    "model as it was: work on `copy.deepcopy(model)`.",
)


diagnose_repeats_from_where_it_broke = edit(
    mended_diagnose_without_the_rate,
    {"twin, blamed = copy.deepcopy(model), []": "twin, blamed = model, []"},
    breaks=[hidden_tests.rates_too_large, hidden_tests.run_left_alone],
    tells="You repeat the run from the weights that the first one left, which are "
    "broken. Begin both with the weights of the start: a copy for each.",
)

diagnose_restores_parameters_alone = edit(
    mended_diagnose_without_the_rate,
    {
        "twin, blamed = copy.deepcopy(model), []": """
        twin, blamed = copy.deepcopy(model), []
        for old, new in zip(model.buffers(), twin.buffers()):
            new.data = old.data
        """,
    },
    breaks=hidden_tests.run_left_alone,
    tells="You train the model you were given and put back its parameters, but "
    "not its buffers: batch norm has counted your steps. Work on a copy, or "
    "put back the whole `state_dict()`.",
)

diagnose_asks_the_loss_first = edit(
    mended_diagnose_without_the_rate,
    {
        """
        if not finite(output):
            return "layer", step, blamed[0]
        """: "",
    },
    breaks=hidden_tests.broken_layers,
    tells="You call everything a fault of the loss as soon as the loss is not "
    "finite. Look at the model's output first: if that is not finite, a "
    "layer is to blame.",
)

diagnose_stops_at_the_first_step = edit(
    mended_diagnose_without_the_rate,
    {"fault = first_fault(len(batches), lr)": "fault = first_fault(1, lr)"},
    breaks=[hidden_tests.broken_layers, hidden_tests.rates_too_large],
    tells="You look at the first batch only. Most runs break later: go through "
    "all batches, with a step for each.",
)

diagnose_leaves_anomaly_mode_on = edit(
    mended_diagnose_without_the_rate,
    {
        "loss.backward(retain_graph=True)": r"""
        try:
            torch.autograd.set_detect_anomaly(True)
            loss.backward()
        except RuntimeError as error:
            operation = re.search(r"'(\w+)'", str(error)).group(1)
            return "gradient", step, operation
        """,
        r"""
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
            operation = re.search(r"'(\w+)'", str(error)).group(1)
            return "gradient", step, operation
        """: "",
    },
    breaks=hidden_tests.run_left_alone,
    tells="You leave anomaly detection on. It is a switch for all of PyTorch, and "
    "every backward pass after yours is slower. Use it as a `with` block.",
)

diagnose_in_training_mode = edit(
    mended_diagnose_without_the_rate,
    {
        "twin, blamed = copy.deepcopy(model), []": "twin, blamed = copy.deepcopy(model).train(), []",
    },
    breaks=hidden_tests.broken_layers,
    tells="You call `train()`. Batch norm then uses the batch instead of its "
    "running statistics, and the run you follow is another one. Follow it "
    "in the mode in which the model is.",
)

diagnose_in_eval = edit(
    mended_diagnose_without_the_rate,
    {
        "twin, blamed = copy.deepcopy(model), []": "twin, blamed = copy.deepcopy(model).eval(), []",
    },
    breaks=hidden_tests.healthy_runs,
    tells="You call `eval()`. Batch norm then uses its running statistics instead "
    "of the batch, and the run you follow is another one. Follow it in the "
    "mode in which the model is.",
)

diagnose_moves_frozen = edit(
    mended_diagnose_without_the_rate,
    {
        "moved = [p for p in twin.parameters() if p.grad is not None]": "moved = list(twin.parameters())",
    },
    breaks=hidden_tests.healthy_runs,
    tells="You step on every parameter. A frozen or unused one has no gradient: "
    "`.grad` is None. Leave those out.",
)

diagnose_returns_a_list = edit(
    mended_diagnose_without_the_rate,
    {
        "return fault": "return fault and list(fault)",
        'return ("learning rate", step, "") if slow is None else fault': 'return ["learning rate", step, ""] if slow is None else list(fault)',
    },
    breaks=[hidden_tests.broken_data, hidden_tests.broken_layers],
    tells="You return a list. A tuple is asked for: `(cause, step, where)`.",
)

diagnose_parameters_before_buffers = edit(
    mended_diagnose_without_the_rate,
    {
        "for name, entry in model.state_dict().items():": """
        for name, entry in (
            *model.named_parameters(),
            *model.named_buffers(),
        ):
        """,
    },
    breaks=hidden_tests.broken_state,
    tells="You look at all parameters before all buffers. The first entry "
    "is asked for in the order of `state_dict()`, which goes from "
    "layer to layer.",
)

diagnose_buffers_before_parameters = edit(
    mended_diagnose_without_the_rate,
    {
        "for name, entry in model.state_dict().items():": """
        for name, entry in (
            *model.named_buffers(),
            *model.named_parameters(),
        ):
        """,
    },
    breaks=hidden_tests.broken_state,
    tells="You look at all buffers before all parameters. The first entry "
    "is asked for in the order of `state_dict()`, which goes from "
    "layer to layer.",
)

diagnose_by_anomaly_mode = edit(
    mended_diagnose_without_the_rate,
    {
        "loss.backward(retain_graph=True)": r"""
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
            operation = re.search(r"'(\w+)'", str(error)).group(1)
            return "gradient", step, operation
        """,
        r"""
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
            operation = re.search(r"'(\w+)'", str(error)).group(1)
            return "gradient", step, operation
        """: "",
    },
    breaks=hidden_tests.nans_that_are_masked,
    tells="You take anomaly mode's word for it. It complains of every NaN "
    "on the way back, also of one that a mask throws away before it "
    "reaches a parameter. Go back without it first, and look at the "
    "gradients.",
)

diagnose_returns_the_second_fault = edit(
    mended_diagnose_without_the_rate,
    {
        'return ("learning rate", step, "") if slow is None else fault': 'return ("learning rate", step, "") if slow is None else slow',
    },
    breaks=hidden_tests.first_of_several,
    tells="The repeated run has another fault, and you return that one. It "
    "only tells that the rate is not to blame: the answer is the "
    "fault of the first run.",
)

diagnose_outputs_that_are_nan = edit(
    mended_diagnose_without_the_rate,
    {"if not finite(output):": "if output.isnan().any():"},
    breaks=hidden_tests.broken_containers,
    tells="You ask whether the model's output is NaN. An infinite output "
    "is not finite either, and it is the layer that made it so, not "
    "the loss.",
)

diagnose_by_sums = edit(
    mended_diagnose_without_the_rate,
    {
        "return bool(tensor.isfinite().all())": "return math.isfinite(float(tensor.detach().sum()))",
    },
    breaks=hidden_tests.healthy_runs,
    tells="You ask whether the sum is finite. A sum of large finite "
    "numbers overflows. Ask every entry: `isfinite().all()`.",
)

diagnose_with_gradients_of_data = edit(
    mended_diagnose_without_the_rate,
    {
        "blamed.clear()": """
        blamed.clear()
        x.requires_grad_()
        """,
    },
    breaks=hidden_tests.run_left_alone,
    tells="You switch on `requires_grad` of the batches, and they keep it. "
    "The batches are the caller's: nothing of a gradient is needed "
    "there.",
)

diagnose_looks_behind_the_last_step = edit(
    mended_diagnose_without_the_rate,
    {
        """
        with torch.no_grad():
            for p in moved:
                p -= rate * p.grad
        """: """
        with torch.no_grad():
            for p in moved:
                p -= rate * p.grad
        if not all(finite(p) for p in twin.parameters()):
            return "gradient", step, ""
        """,
    },
    breaks=hidden_tests.healthy_runs,
    tells="You look at the parameters after the step. The text does not: "
    "they count when they make something of a later step infinite, "
    "and a run that ends there is not broken.",
)

diagnose_keeps_what_earlier_batches_blamed = edit(
    SOLUTION,
    {"blamed.clear()": ""},
    breaks=hidden_tests.first_of_several,
    tells="Your list of modules still holds those of earlier batches. A `-inf` on purpose "
    "in one of them is blamed for a later fault: empty the list before each batch.",
)

targets_of_one_dimension_unseen = edit(
    SOLUTION,
    {
        "if not finite(x) or not finite(y):": """
        if y.dim() < 2 and finite(x):
            pass
        elif not finite(x) or not finite(y):
        """
    },
    breaks=hidden_tests.broken_data,
    tells="You do not look at a `y` of one dimension. Targets often have just one.",
)

diagnose_children_alone = edit(
    mended_diagnose_without_the_rate,
    {
        "for name, module in twin.named_modules():": "for name, module in twin.named_children():",
        'return "layer", step, blamed[0]': 'return "layer", step, blamed[0] if blamed else "?"',
    },
    breaks=hidden_tests.broken_layers,
    tells="You watch the children of the model. What stands deeper is never "
    "looked at, and the block around it is blamed. Put a hook on each of "
    "`named_modules()`.",
)

seeding_in_diagnose = edit(
    SOLUTION,
    {
        "return bool(tensor.isfinite().all())": """
        torch.manual_seed(0)
        return bool(tensor.isfinite().all())
        """,
    },
    breaks=hidden_tests.run_left_alone,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

diagnose_repeats_a_step_too_many = edit(
    mended_diagnose_without_the_rate,
    {
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(step + 2, lr / 100)",
    },
    breaks=hidden_tests.rates_too_large,
    tells="You repeat the run with `lr / 100` one step too far. What breaks in "
    "the step behind the fault is another fault. Repeat it up to and with "
    "the step of the fault: `batches[: step + 1]`.",
)

diagnose_leaves_anomaly_mode_on_without_a_nan = edit(
    SOLUTION,
    {
        """
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
        """: """
        try:
            torch.autograd.set_detect_anomaly(True)
            loss.backward()
        except RuntimeError as error:
            torch.autograd.set_detect_anomaly(False)
        """
    },
    breaks=hidden_tests.run_left_alone,
    tells="You switch anomaly detection off only where it raises. An infinite gradient "
    "without a NaN leaves it on. Use it as a `with` block.",
)

diagnose_wants_the_same_fault_twice = edit(
    SOLUTION,
    {
        'return ("learning rate", step, "") if slow is None else fault': """
        if slow is None or slow[0] != fault[0]:
            return "learning rate", step, ""
        return fault
        """
    },
    breaks=hidden_tests.rates_too_large,
    tells="Where the repeated run has a fault of another cause, you blame the learning "
    "rate. Only a run without a fault does that: else the answer is the fault of the "
    "first run.",
)

diagnose_by_names_in_a_dict = edit(
    SOLUTION,
    {
        "twin, blamed = copy.deepcopy(model), []": "twin, blamed = copy.deepcopy(model), {}",
        """
        if finite(inputs[0]) and not finite(output):
            blamed.append(name)
        """: "blamed[name] = finite(inputs[0]) and not finite(output)",
        'return "layer", step, blamed[0]': 'return "layer", step, next((n for n, bad in blamed.items() if bad), "")',
    },
    breaks=hidden_tests.broken_layers,
    tells="You keep one verdict for each name. A module that is called again writes over "
    "its first one. Put each call into a list.",
)

NOT_THE_FIRST = (
    "Several modules may make something not finite, and you take the deepest of them or "
    "the last in `named_modules()`. The one that finishes first is asked for."
)

diagnose_blames_the_deepest = edit(
    SOLUTION,
    {
        'return "layer", step, blamed[0]': """
        deepest = max(blamed, key=lambda n: n.count(".") + bool(n))
        return "layer", step, deepest
        """
    },
    breaks=hidden_tests.broken_layers,
    tells=NOT_THE_FIRST,
)

diagnose_blames_the_last_registered = edit(
    SOLUTION,
    {
        'return "layer", step, blamed[0]': """
        registered = [n for n, _ in twin.named_modules() if n in blamed]
        return "layer", step, registered[-1]
        """
    },
    breaks=hidden_tests.broken_layers,
    tells=NOT_THE_FIRST,
)

diagnose_takes_an_infinite_input_for_good = edit(
    SOLUTION,
    {
        "if finite(inputs[0]) and not finite(output):": "if not inputs[0].isnan().any() and not finite(output):"
    },
    breaks=hidden_tests.broken_containers,
    tells="Of a module's input you ask only whether it is NaN. An infinite input is not "
    "finite either: it is not this module that is to blame.",
)

diagnose_wants_a_number_in_the_name = edit(
    SOLUTION,
    {
        "return re.search(r\"Function '([^']+)'\", str(error)).group(1)": r"return re.search(r'\w+Backward\d', str(error))[0]"
    },
    breaks=hidden_tests.broken_gradients,
    tells="You look for a name that ends in `Backward` and a number. That of an "
    "`autograd.Function` of one's own has no number. Take what stands between the quotes.",
)

diagnose_by_anomaly_mode_in_silence = edit(
    SOLUTION,
    {
        "loss.backward(retain_graph=True)": """
        operation = operation_behind(loss)
        if operation:
            return "gradient", step, operation
        """,
        'return "gradient", step, operation_behind(loss)': 'return "gradient", step, ""',
    },
    breaks=hidden_tests.nans_that_are_masked,
    tells="You take anomaly mode's word for it. It complains of every NaN "
    "on the way back, also of one that a mask throws away before it "
    "reaches a parameter. Go back without it first, and look at the "
    "gradients.",
)

diagnose_repeats_all_of_the_run = edit(
    SOLUTION,
    {
        "slow = first_fault(step + 1, lr / 100)": "slow = first_fault(len(batches), lr / 100)",
    },
    breaks=hidden_tests.rates_too_large,
    tells="You repeat the run with `lr / 100` to its end. What breaks there later "
    "is another fault. Repeat it up to the step of the fault that you "
    "found.",
)

diagnose_takes_a_mask_for_a_fault = edit(
    SOLUTION,
    {"if not finite(output):": "if blamed:"},
    breaks=hidden_tests.healthy_runs,
    tells="You call every value that is not finite a fault. A score of -inf "
    "before a softmax is there on purpose: as long as the model's output is "
    "finite, nothing is broken.",
)

diagnose_gradients_that_are_nan = edit(
    SOLUTION,
    {
        "if not all(finite(p.grad) for p in moved):": "if any(p.grad.isnan().any() for p in moved):",
    },
    breaks=hidden_tests.infinite_gradients,
    tells="Of a gradient you ask only whether it is NaN. An infinite one is a fault as "
    'well; its operation is `""`.',
)

diagnose_asks_the_output_of_a_bad_loss = edit(
    mended_diagnose_without_the_rate,
    {
        """
        if not finite(output):
            return "layer", step, blamed[0]
        loss = loss_function(output, y)
        if not finite(loss):
            return "loss", step, ""
        """: """
        loss = loss_function(output, y)
        if not finite(loss):
            if not finite(output):
                return "layer", step, blamed[0]
            return "loss", step, ""
        """,
    },
    breaks=hidden_tests.broken_layers,
    tells="You look at the model's output only where the loss is not finite. A loss "
    "that leaves out what is not finite is finite itself. Look at the output "
    "before you compute the loss.",
)

diagnose_blames_a_layer_for_a_bad_loss = edit(
    mended_diagnose_without_the_rate,
    {
        'return "loss", step, ""': """
        if blamed:
            return "layer", step, blamed[0]
        return "loss", step, ""
        """,
    },
    breaks=hidden_tests.broken_losses,
    tells="Where the loss is not finite, you blame a layer that gave such a value "
    "inside. A score of -inf before a softmax is there on purpose. As long as the "
    "model's output is finite, it is the loss.",
)

diagnose_looks_inside_for_a_bad_loss = edit(
    mended_diagnose_without_the_rate,
    {
        """
        if not finite(output):
            return "layer", step, blamed[0]
        """: "",
        'return "loss", step, ""': """
        if blamed:
            return "layer", step, blamed[0]
        return "loss", step, ""
        """,
    },
    breaks=[hidden_tests.broken_layers, hidden_tests.broken_losses],
    tells="You look at the loss first, and at the layers only where it is not "
    "finite; then any value inside that is not finite counts. What decides is the "
    "model's output: look at it before the loss. If it is finite, no layer is to "
    "blame.",
)

diagnose_blames_a_layer_for_a_bad_gradient = edit(
    mended_diagnose_without_the_rate,
    {
        "if not all(finite(p.grad) for p in moved):": """
        if not all(finite(p.grad) for p in moved):
            if blamed:
                return "layer", step, blamed[0]
        """,
    },
    breaks=hidden_tests.broken_gradients,
    tells="Where a gradient is not finite, you blame a layer that gave such a value "
    "inside. A score of -inf before a softmax is there on purpose. As long as "
    "output and loss are finite, it is the gradient.",
)

diagnose_without_gradients_of_biases = edit(
    mended_diagnose_without_the_rate,
    {
        "if not all(finite(p.grad) for p in moved):": """
        weights = [
            p.grad
            for name, p in twin.named_parameters()
            if p.grad is not None and "bias" not in name
        ]
        if not all(finite(gradient) for gradient in weights):
        """,
    },
    breaks=hidden_tests.infinite_gradients,
    tells="You look at the gradients of the weights, and not at those of the biases. "
    "One of them can be the only one that is not finite. Go through all "
    "parameters.",
)

diagnose_looks_at_the_buffers_in_each_step = edit(
    mended_diagnose_without_the_rate,
    {
        "blamed.clear()": """
        for name, entry in twin.named_buffers():
            if not finite(entry):
                return "state", step, name
        blamed.clear()
        """,
    },
    breaks=hidden_tests.healthy_runs,
    tells="You look at the buffers in every step. A buffer that a batch has made "
    "infinite is no fault, as long as output, loss and gradients are finite. Look at "
    "the state once, before the first step.",
)

diagnose_switches_anomaly_mode_off = edit(
    SOLUTION,
    {
        """
        try:
            with torch.autograd.set_detect_anomaly(True):
                loss.backward()
        except RuntimeError as error:
            return re.search(r"Function '([^']+)'", str(error)).group(1)
        """: """
        torch.autograd.set_detect_anomaly(True)
        try:
            loss.backward()
        except RuntimeError as error:
            return re.search(r"Function '([^']+)'", str(error)).group(1)
        finally:
            torch.autograd.set_detect_anomaly(False)
        """
    },
    breaks=hidden_tests.run_left_alone,
    tells="You switch anomaly detection off at the end, also where it was on before "
    "the call. Use it as a `with` block: that puts back what was there.",
)

diagnose_by_the_largest_target = edit(
    mended_diagnose_without_the_rate,
    {
        "if not finite(x) or not finite(y):": "if not finite(x) or not finite(y.max()):",
    },
    breaks=hidden_tests.broken_data,
    tells="A -inf in `y` goes unseen: it is never the largest entry, nor equal to inf. "
    "Test each entry: `y.isfinite().all()`.",
)
