"""Answers to `trainable_report` of chapter 04."""

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted(body=True)
def with_a_parameter_list():
    def trainable_report(model):
        return {
            name: (
                tuple(p.size()),
                None if p.grad is None else float(torch.norm(p.grad.double())),
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


@accepted(body=True)
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


@accepted(body=True)
def with_add_module():
    def trainable_report(model):
        live = dict(model.named_parameters(remove_duplicate=True))
        rows = ((n, p, p.grad) for n, p in live.items() if p.requires_grad)
        return {
            n: (
                tuple(p.shape),
                g
                if g is None
                else torch.linalg.vector_norm(g, dtype=torch.float64).item(),
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


@accepted(body=True)
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


@accepted(body=True)
def with_a_module_dict():
    def trainable_report(model):
        report = {}
        for name in dict(model.named_parameters()):
            parameter = model.get_parameter(name)
            if parameter.requires_grad:
                report[name] = (tuple(parameter.shape), None)
                if parameter.grad is not None:
                    length = parameter.grad.detach().double().norm(2).item()
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


@accepted(body=True)
def with_a_buffer_beside():
    def trainable_report(model):
        report = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                norm = None if p.grad is None else p.grad.double().norm().item()
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


@wrong(
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
                None if v.grad is None else v.grad.double().norm().item(),
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
                None if v.grad is None else v.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
    breaks=[hidden_tests.lists_trainable_ones, hidden_tests.tells_gradients],
    tells="You ask every parameter for its gradient's norm. Before `backward()` the "
    "gradient is None, and a parameter that took no part keeps None.",
    body=True,
)
def reading_what_is_not_there():
    def trainable_report(model):
        return {
            name: (tuple(p.shape), p.grad.double().norm().item())
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
    breaks=[hidden_tests.lists_trainable_ones, hidden_tests.tells_gradients],
    tells="You list a parameter only once its gradient has arrived. That is when the "
    "list is wanted most: for those that get none.",
    body=True,
)
def those_with_gradients():
    def trainable_report(model):
        return {
            name: (tuple(p.shape), p.grad.double().norm().item())
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
                0.0 if p.grad is None else p.grad.double().norm().item(),
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
                norm = (
                    p.grad.double().norm().item()
                    if p.grad is not None
                    else None
                )
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
    breaks=hidden_tests.tells_gradients,
    tells="The norm is a tensor. A Python float was asked for: `.item()`.",
    body=True,
)
def norm_as_a_tensor():
    def trainable_report(model):
        return {
            name: (
                tuple(p.shape),
                None if p.grad is None else p.grad.double().norm(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
            )
            for name, p in model.named_parameters()
            if p.requires_grad
        }

    class Stack(nn.Sequential):
        def __init__(self, width, depth):
            super().__init__(*[nn.Linear(width, width) for _ in range(depth)])


@wrong(
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
    breaks=hidden_tests.lists_trainable_ones,
    tells="The shapes are lists. Tuples were asked for.",
    body=True,
)
def shapes_as_lists():
    def trainable_report(model):
        return {
            name: (
                list(p.shape),
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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
                None if p.grad is None else p.grad.double().norm().item(),
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


norm_in_single_precision = edit(
    with_a_buffer_beside,
    {
        "norm = None if p.grad is None else p.grad.double().norm().item()": "norm = None if p.grad is None else p.grad.float().norm().item()",
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.tells_gradients,
    tells="You convert the gradient to float32. Small numbers of float64 become "
    "zero there, large ones infinite. Take the norm in float64: "
    "`p.grad.double().norm()`.",
)

squares_in_half_precision = edit(
    with_a_buffer_beside,
    {
        "norm = None if p.grad is None else p.grad.double().norm().item()": """
        norm = (
            None
            if p.grad is None
            else p.grad.pow(2).sum().sqrt().item()
        )
        """,
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.tells_gradients,
    tells="You work in the dtype of the gradient. In float16 a norm above 65504 "
    "becomes infinite. In float32 the squares of large numbers become infinite, those "
    "of small ones 0. Take it in float64: `p.grad.double().norm()`.",
)

nan_taken_out = edit(
    with_a_buffer_beside,
    {
        "norm = None if p.grad is None else p.grad.double().norm().item()": """
        norm = (
            None
            if p.grad is None
            else p.grad.nan_to_num().double().norm().item()
        )
        """,
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.tells_gradients,
    tells="You take NaN out of the gradient before its norm. That hides the "
    "finding that matters most.",
)

frozen_with_an_old_gradient = edit(
    with_a_buffer_beside,
    {
        "if p.requires_grad:": "if p.requires_grad or p.grad is not None:",
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.leaves_others_out,
    tells="A frozen parameter may keep a gradient from before. What will be "
    "trained is told by `requires_grad`, not by the gradient.",
)

tidying_frozen_ones = edit(
    with_a_buffer_beside,
    {
        "if p.requires_grad:": """
        if not p.requires_grad:
            p.grad = None
        else:
        """,
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.only_reads,
    tells="You take the gradients of frozen parameters away. The report only "
    "reads.",
)

report_kept_from_the_first_call = edit(
    with_a_buffer_beside,
    {
        "def trainable_report(model):": """
        import functools

        @functools.cache
        def trainable_report(model):
        """,
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.reports_anew,
    tells="You keep the report of a model that was seen before. Its gradients and "
    "flags have changed: make it anew in each call.",
)

capped_at_six = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "x = layer(x.relu() if place else x)": "x = layer(nn.functional.relu6(x) if place else x)",
    },
    breaks=hidden_tests.computes_a_stack,
    tells="Your activation is cut off at 6. A ReLU lets every positive number "
    "through.",
)

relu_in_training_alone = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "x = layer(x.relu() if place else x)": "x = layer(x.relu() if place and self.training else x)",
    },
    breaks=hidden_tests.computes_a_stack,
    tells="In eval mode your Stack computes something else. A ReLU is the same in "
    "both modes.",
)

squeezed = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "return x": "return x.squeeze()",
    },
    breaks=hidden_tests.computes_a_stack,
    tells="You squeeze the result. A batch of one row, or a width of 1, then "
    "loses an axis.",
)

squeezed_rows = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "return x": "return x.squeeze(0)",
    },
    breaks=hidden_tests.computes_a_stack,
    tells="You squeeze the result. A batch of one row, or a width of 1, then "
    "loses an axis.",
)

input_detached = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "def forward(self, x):": """
        def forward(self, x):
            x = x.detach()
        """,
    },
    breaks=hidden_tests.trains_a_stack,
    tells="You detach the input. A Stack may stand behind other layers, and no "
    "gradient reaches them any more.",
)


norm_in_the_gradients_own_dtype = edit(
    with_a_buffer_beside,
    {
        "norm = None if p.grad is None else p.grad.double().norm().item()": "norm = None if p.grad is None else p.grad.norm().item()",
        'self.register_buffer("depth", torch.tensor(depth))': "",
    },
    breaks=hidden_tests.tells_gradients,
    tells="You work in the dtype of the gradient. In float16 a norm above 65504 "
    "becomes infinite. In float32 the squares of large numbers become infinite, those "
    "of small ones 0. Take it in float64: `p.grad.double().norm()`.",
)

report_by_views = edit(
    SOLUTION,
    {
        "norm = gradient.double().norm().item()": "norm = gradient.double().view(-1).norm().item()"
    },
    breaks=hidden_tests.tells_gradients,
    tells="`view(-1)` refuses a gradient that is not contiguous, as one of a "
    "`channels_last` convolution. `norm` takes any shape.",
)

report_without_bare_parameters_of_parts = edit(
    SOLUTION,
    {
        "if parameter.requires_grad:": 'if parameter.requires_grad and ("." not in name or name.rpartition(".")[2] in ("weight", "bias")):'
    },
    breaks=hidden_tests.lists_trainable_ones,
    tells="You look for `weight` and `bias` in the parts of the model. A part may have "
    "parameters of its own, as an LSTM's `weight_ih_l0`.",
)

layers_sorted_as_text = edit(
    with_a_module_dict,
    {
        "*first, last = self.layers.values()": "*first, last = [self.layers[k] for k in sorted(self.layers)]"
    },
    breaks=hidden_tests.computes_a_stack,
    tells="You sort the layers' names as text: `10` comes before `2`. Take them in the "
    "order in which they were registered.",
)

nan_becomes_zero = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "x = layer(x.relu() if place else x)": "x = layer(torch.where(x > 0, x, 0.0) if place else x)",
    },
    breaks=hidden_tests.computes_a_stack,
    tells="Your ReLU makes a 0 of a NaN and hides it: `x > 0` is False for it, and `torch.fmax` "
    "prefers the number. `x.relu()` keeps a NaN.",
)

capped_at_ten_thousand = edit(
    with_a_buffer_beside,
    {
        'self.register_buffer("depth", torch.tensor(depth))': "",
        "x = layer(x.relu() if place else x)": "x = layer(x.clamp(0, 1e4) if place else x)",
    },
    breaks=hidden_tests.computes_a_stack,
    tells="Your activation is cut off at 10,000. A ReLU lets every positive number "
    "through.",
)

empty_gradient_as_none = edit(
    SOLUTION,
    {
        "if gradient is not None:": "if gradient is not None and gradient.numel():"
    },
    breaks=hidden_tests.tells_gradients,
    tells="You say None for a gradient without entries. It has arrived: its norm is "
    "0.0.",
)

truth_of_the_gradient = edit(
    with_a_sequential,
    {"if p.grad is not None:": "if p.grad:"},
    breaks=hidden_tests.tells_gradients,
    tells="`if p.grad:` asks for the truth value of a tensor. With more than one "
    "entry it has none and raises; with one, a gradient of 0 counts as "
    "none. Ask `p.grad is not None`.",
)

a_setting_left_by_trainable_report = edit(
    SOLUTION,
    {
        "report = {}": """
        torch.set_num_threads(2)
        report = {}
        """,
    },
    breaks=hidden_tests.only_reads,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

several_parameters_of_one_tensor = edit(
    with_bare_parameters,
    {
        """
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(width, width))
            for _ in range(depth)
        )
        """: """
        weight = nn.init.xavier_uniform_(torch.empty(width, width))
        self.weights = nn.ParameterList(
            nn.Parameter(weight) for _ in range(depth)
        )
        """,
    },
    breaks=hidden_tests.registers_all,
    tells="You make several parameters of one tensor. `nn.Parameter(tensor)` copies "
    "nothing, and no more does `.data =`: they share their numbers, and a step on one "
    "moves all. Make a tensor for each layer.",
)

nan_hidden_in_eval = edit(
    SOLUTION,
    {"return x": "return x if self.training else x.nan_to_num()"},
    breaks=hidden_tests.computes_a_stack,
    tells="In eval mode your Stack puts a 0 in the place of NaN and hides it. NaN goes "
    "through, in both modes.",
)

layers_without_children_alone = edit(
    SOLUTION,
    {
        """
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                gradient = parameter.grad
                norm = None
                if gradient is not None:
                    norm = gradient.double().norm().item()
                report[name] = (tuple(parameter.shape), norm)
        """: """
        for path, layer in model.named_modules():
            if list(layer.children()):
                continue
            for name, parameter in layer.named_parameters():
                if parameter.requires_grad:
                    gradient = parameter.grad
                    norm = None
                    if gradient is not None:
                        norm = gradient.double().norm().item()
                    whole = f"{path}.{name}" if path else name
                    report[whole] = (tuple(parameter.shape), norm)
        """,
    },
    breaks=hidden_tests.lists_trainable_ones,
    tells="You leave out modules that have children. They may have parameters of their "
    "own, and one that two layers share comes twice. `model.named_parameters()` "
    "gives each once, with its full name.",
)

result_cut_off_in_eval = edit(
    SOLUTION,
    {"return x": "return x if self.training else x.detach()"},
    breaks=hidden_tests.trains_a_stack,
    tells="In eval mode your `Stack` returns its result without a graph. Eval mode is not "
    "`no_grad`: both modes compute the same, and gradients reach every layer.",
)
