"""Answers to `nonfinite_entries` of chapter 08."""

import math

import torch
from torch import Tensor

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def entries_by_a_generator(data, name="batch"):
    def walk(node, path):
        if isinstance(node, dict):
            for key in node:
                yield from walk(node[key], path + "." + key)
        elif isinstance(node, (list, tuple)):
            for i, item in enumerate(node):
                yield from walk(item, path + f"[{i}]")
        elif torch.is_tensor(node):
            if (node.isnan() | node.isinf()).any():
                yield path
        elif isinstance(node, float) and (
            node != node or abs(node) == math.inf
        ):
            yield path

    return list(walk(data, name))


@accepted()
def entries_by_a_stack(data, name="batch"):
    found, waiting = [], [(name, data)]
    while waiting:
        path, node = waiting.pop()
        inside = []
        if isinstance(node, dict):
            inside = [(f"{path}.{key}", one) for key, one in node.items()]
        elif isinstance(node, list | tuple):
            inside = [(f"{path}[{i}]", one) for i, one in enumerate(node)]
        elif isinstance(node, Tensor) and node.numel() > 0:
            if not node.detach().isfinite().min():
                found.append(path)
        elif isinstance(node, float) and not math.isfinite(node):
            found.append(path)
        waiting += inside[::-1]
    return found


@accepted()
def entries_by_subtraction(data, name="batch"):
    # x - x is 0 for what is finite and NaN for all else
    if isinstance(data, torch.Tensor):
        if not (data.is_floating_point() or data.is_complex()):
            return []
        zero = (data - data).detach()
        return [] if (zero == 0).all() else [name]
    if isinstance(data, dict):
        parts = [
            entries_by_subtraction(v, f"{name}.{k}") for k, v in data.items()
        ]
        return sum(parts, [])
    if isinstance(data, (tuple, list)):
        parts = [
            entries_by_subtraction(v, f"{name}[{i}]")
            for i, v in enumerate(data)
        ]
        return sum(parts, [])
    if isinstance(data, float):
        return [] if data - data == 0 else [name]
    return []


@accepted()
def entries_by_the_sum_of_zeros(data, name="batch"):
    # 0 * x is 0 for what is finite and NaN for all else; zeros do not overflow
    names = []

    def look(node, path):
        if isinstance(node, Tensor):
            if bool((node.detach() * 0).sum().isnan()):
                names.append(path)
        elif isinstance(node, dict):
            for key, one in node.items():
                look(one, f"{path}.{key}")
        elif isinstance(node, (list, tuple)):
            for i in range(len(node)):
                look(node[i], f"{path}[{i}]")
        elif isinstance(node, float):
            look(torch.tensor(node, dtype=torch.float64), path)

    look(data, name)
    return names


@accepted()
def entries_by_python_numbers(data, name="batch"):
    if isinstance(data, Tensor):
        import cmath

        values = data.detach().flatten().tolist()
        return [] if all(map(cmath.isfinite, values)) else [name]
    names = []
    if isinstance(data, dict):
        for key, value in data.items():
            names.extend(entries_by_python_numbers(value, f"{name}.{key}"))
    if isinstance(data, list | tuple):
        for i, value in enumerate(data):
            names.extend(entries_by_python_numbers(value, f"{name}[{i}]"))
    if isinstance(data, float) and not math.isfinite(data):
        names.append(name)
    return names


@accepted()
def entries_by_real_and_imaginary(data, name="batch"):
    def leaf(t):
        t = t.detach()
        parts = [t.real, t.imag] if t.is_complex() else [t]
        return any(
            bool(
                (p.float() if p.element_size() < 4 else p).isinf().any()
                | (p != p).any()
            )
            for p in parts
        )

    match data:
        case dict():
            pairs = [(f"{name}.{k}", v) for k, v in data.items()]
        case list() | tuple():
            pairs = [(f"{name}[{i}]", v) for i, v in enumerate(data)]
        case Tensor():
            return [name] * leaf(data)
        case float():
            return [name] * (not math.isfinite(data))
        case _:
            return []
    names = []
    for path, value in pairs:
        names += entries_by_real_and_imaginary(value, path)
    return names


@wrong(
    breaks=hidden_tests.nan_and_infinities,
    tells="You look for NaN by `==` or `is`. NaN equals nothing, itself included, and no "
    "entry of a tensor is the object `math.nan`: nothing is found. Use "
    "`torch.isfinite` and `math.isfinite`.",
)
def entries_equal_to_nan(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [name] if bool((data == math.nan).any()) else []
    else:
        return [name] if data == math.nan else []
    return [one for n, v in inside for one in entries_equal_to_nan(v, n)]


@wrong(
    breaks=hidden_tests.nan_and_infinities,
    tells="You compare with `== math.inf`, which misses negative infinity. Use "
    "`torch.isfinite` and `math.isfinite`.",
)
def entries_without_negative_infinity(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        bad = data.isnan() | (data == math.inf)
        return [name] if bool(bad.any()) else []
    elif isinstance(data, float):
        return [name] if math.isnan(data) or data == math.inf else []
    else:
        return []
    return [
        one
        for n, v in inside
        for one in entries_without_negative_infinity(v, n)
    ]


@wrong(
    breaks=[hidden_tests.every_dtype, hidden_tests.every_kind_of_tensor],
    tells="You go through NumPy: it knows no bfloat16, and a tensor that requires "
    "a gradient refuses `.numpy()`. Stay with `torch.isfinite`, which also works "
    "where the tensor is.",
)
def entries_by_numpy(data, name="batch"):
    import numpy as np

    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if np.isfinite(data.cpu().numpy()).all() else [name]
    elif isinstance(data, float):
        return [] if np.isfinite(data) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_by_numpy(v, n)]


@wrong(
    breaks=hidden_tests.names_of_nested_entries,
    tells="You look at one level only. What stands in a dict within a dict, or in "
    "a list, is never looked at. Let the function call itself.",
)
def entries_of_one_level(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    else:
        inside = [(name, data)]
    found = []
    for path, value in inside:
        if isinstance(value, Tensor) and not value.isfinite().all():
            found.append(path)
        if isinstance(value, float) and not math.isfinite(value):
            found.append(path)
    return found


@wrong(
    breaks=hidden_tests.python_numbers,
    tells="You look at tensors only. A Python float, such as a loss that went "
    "through `.item()`, may be NaN as well: `math.isfinite`.",
)
def entries_of_tensors_alone(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    else:
        return []
    return [one for n, v in inside for one in entries_of_tensors_alone(v, n)]


@wrong(
    breaks=hidden_tests.texts_and_none,
    tells='You make a float of everything: `float("nan")` makes a NaN of the '
    "string, and None raises. Strings and None are nothing to name.",
)
def entries_of_texts(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    elif isinstance(data, Tensor):
        return [] if bool(data.isfinite().all()) else [name]
    elif isinstance(data, int) or data is None:
        return []
    else:
        try:
            return [] if math.isfinite(float(data)) else [name]
        except ValueError:
            return []
    return [one for n, v in inside for one in entries_of_texts(v, n)]


@wrong(
    breaks=hidden_tests.name_of_the_outermost,
    tells="You leave the name of the outermost out when you go inside. It is the "
    "beginning of every name.",
)
def entries_without_the_outermost(data, name="batch"):
    def walk(node, path):
        if isinstance(node, dict):
            inside = [
                (f"{path}.{key}" if path else key, value)
                for key, value in node.items()
            ]
        elif isinstance(node, list | tuple):
            inside = [(f"{path}[{i}]", one) for i, one in enumerate(node)]
        elif isinstance(node, Tensor):
            return [] if bool(node.isfinite().all()) else [path or name]
        elif isinstance(node, float):
            return [] if math.isfinite(node) else [path or name]
        else:
            return []
        return [one for p, value in inside for one in walk(value, p)]

    return walk(data, "")


@wrong(
    breaks=hidden_tests.names_of_nested_entries,
    tells="You name a tensor once, although it stands at several places. Each "
    "place is an entry with a name of its own.",
)
def entries_seen_once(data, name="batch"):
    seen = set()

    def walk(node, path):
        if isinstance(node, dict):
            inside = [(f"{path}.{key}", one) for key, one in node.items()]
        elif isinstance(node, list | tuple):
            inside = [(f"{path}[{i}]", one) for i, one in enumerate(node)]
        elif isinstance(node, Tensor):
            if id(node) in seen or bool(node.isfinite().all()):
                return []
            seen.add(id(node))
            return [path]
        elif isinstance(node, float):
            return [] if math.isfinite(node) else [path]
        else:
            return []
        return [one for p, value in inside for one in walk(value, p)]

    return walk(data, name)


@wrong(
    breaks=hidden_tests.nan_and_infinities,
    tells="You look for NaN by `==` or `is`. NaN equals nothing, itself included, and no "
    "entry of a tensor is the object `math.nan`: nothing is found. Use "
    "`torch.isfinite` and `math.isfinite`.",
)
def entries_that_are_the_object_nan(data, name="batch"):
    if isinstance(data, dict):
        inside = [(f"{name}.{key}", value) for key, value in data.items()]
    elif isinstance(data, list | tuple):
        inside = [(f"{name}[{i}]", value) for i, value in enumerate(data)]
    else:
        bad = math.nan, math.inf, -math.inf
        numbers = [data]
        if isinstance(data, Tensor):
            numbers = data.flatten().tolist()
        found = any(one is b for one in numbers for b in bad)
        return [name] if found else []
    return [
        one for n, v in inside for one in entries_that_are_the_object_nan(v, n)
    ]


@wrong(
    breaks=hidden_tests.names_of_nested_entries,
    tells="You look into each container once. One that stands at two places has two names, "
    "and its entries are named at both.",
)
def containers_once(data, name="batch"):
    names, seen = [], set()

    def look(part, where):
        if isinstance(part, dict | list | tuple):
            if id(part) in seen:
                return
            seen.add(id(part))
        if isinstance(part, Tensor):
            if not torch.isfinite(part).all():
                names.append(where)
        elif isinstance(part, float):
            if not math.isfinite(part):
                names.append(where)
        elif isinstance(part, dict):
            for key, value in part.items():
                look(value, f"{where}.{key}")
        elif isinstance(part, list | tuple):
            for i, value in enumerate(part):
                look(value, f"{where}[{i}]")

    look(data, name)
    return names


@wrong(
    breaks=hidden_tests.relatives_of_the_types,
    tells="You keep the entries in a dict, by their names. Two entries may have one name, as "
    "the key `a.b` and a `b` within `a`: the later one takes the place of the other. Keep a "
    "list.",
)
def entries_by_their_names(data, name="batch"):
    flat = {}

    def flatten(value, where):
        if isinstance(value, dict):
            for key, item in value.items():
                flatten(item, f"{where}.{key}")
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                flatten(item, f"{where}[{i}]")
        elif isinstance(value, Tensor | float):
            flat[where] = value

    flatten(data, name)
    return [
        where
        for where, value in flat.items()
        if not torch.isfinite(torch.as_tensor(value)).all()
    ]
