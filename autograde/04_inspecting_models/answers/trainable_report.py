"""Answers to `trainable_report` of chapter 04."""

import torch
from torch import nn

from course_grader.bank import accepted, wrong

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
