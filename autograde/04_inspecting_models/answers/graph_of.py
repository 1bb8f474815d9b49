"""Answers to `graph_of` of chapter 04."""

import torch
from graphviz import Digraph

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def with_attributes(model, x):
    import torchviz

    with torch.enable_grad():
        loss = model(x).mean()
        names = {n: p for n, p in model.named_parameters() if p.requires_grad}
        return torchviz.make_dot(loss, params=names, show_attrs=True)


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def mended_with_backward(model, x):
    from torchviz import make_dot

    with torch.enable_grad():
        loss = model(x).mean()
    return make_dot(loss, params=dict(model.named_parameters()))


@wrong(
    breaks=hidden_tests.as_before_after_an_error,
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
