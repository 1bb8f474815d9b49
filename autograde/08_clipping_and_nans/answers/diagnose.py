"""Answers to `diagnose` of chapter 08."""

import copy
import math
import re
import warnings

import torch
from torch import nn

from course_grader.bank import accepted


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
