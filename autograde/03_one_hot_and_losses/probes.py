"""Drives what the exercises of chapter 03 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret.
"""

import contextlib
import warnings
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    return_and_correct_aliasing,
)
from torch.utils._pytree import tree_leaves, tree_map

OPTIONS = ("weight", "ignore_index", "reduction", "label_smoothing")


def encode(one_hot, case):
    labels = case["labels"]
    asked = {"dtype": case["dtype"]} if "dtype" in case else {}
    if "refused" in case:  # what it leaves behind is nothing to the next call
        with contextlib.suppress(Exception):
            one_hot(case["refused"], case["num_classes"], **asked)
    default = torch.get_default_dtype()
    if "default" in case:
        torch.set_default_dtype(case["default"])
    grad = contextlib.nullcontext()
    if "grad" in case:
        grad = torch.set_grad_enabled(case["grad"])
    try:
        with grad:
            out = one_hot(labels, case["num_classes"], **asked)
            grad_mode = torch.is_grad_enabled()
    finally:
        if "default" in case:
            torch.set_default_dtype(default)
    return {
        "out": out,
        "labels_after": labels.clone(),
        "grad_mode": grad_mode,
    }


def encode_twice(one_hot, case):
    """The first result, looked at after a second call has been made; its other
    rows after its owner has written over the first; and what the same labels give
    after the owner has written over them all."""
    arguments = case["num_classes"], case["dtype"]
    first = one_hot(case["labels"], *arguments)
    second = one_hot(case["other_labels"], *arguments)
    seen = first.clone()
    row, *rows = first
    row.add_(5)
    other_rows = first[1:].clone()
    for row in rows:
        row.add_(5)
    again = one_hot(case["labels"], *arguments)
    return {
        "first": seen,
        "second": second,
        "other_rows": other_rows,
        "again": again,
    }


def encode_elsewhere(one_hot, case):
    """Encodes labels that lie on a second device, which every machine has."""
    labels, arguments = case["labels"], (case["num_classes"], case["dtype"])
    with SecondDevice(), ValuesKept():
        out = one_hot(labels.to("meta"), *arguments)
    if _is_there(out):
        return {"device": "that of the labels", "out": out.values}
    return {"device": "another", "out": out}


def loss(cross_entropy, case):
    """The loss, with only those options set that the case names."""
    options = {name: case[name] for name in OPTIONS if name in case}
    return {"loss": cross_entropy(case["logits"], case["target"], **options)}


def loss_in_grad_mode(cross_entropy, case):
    """The loss in the grad mode of the case, and that mode afterwards."""
    with torch.set_grad_enabled(case["grad"]):
        value = loss(cross_entropy, case)["loss"]
        grad_mode = torch.is_grad_enabled()
    if isinstance(value, torch.Tensor):
        value = value.detach()
    return {"loss": value, "grad_mode": grad_mode}


def gradient(cross_entropy, case):
    options = {name: case[name] for name in OPTIONS if name in case}
    logits = case["logits"].clone().requires_grad_()
    value = cross_entropy(logits, case["target"], **options)
    return _gradient(value, logits, case["factor"])


def squared_error(class_mse, case):
    """The error as float64 with its dtype beside it, or that the target was
    refused."""
    try:
        value = class_mse(case["scores"], case["target"])
    except ValueError:
        return {"refused": True}
    if not isinstance(value, torch.Tensor):
        return {"loss": value}
    return {"loss": value.detach().double(), "dtype": str(value.dtype)}


def squared_error_in_grad_mode(class_mse, case):
    """The error in the grad mode of the case, and that mode afterwards."""
    with torch.set_grad_enabled(case["grad"]):
        found = squared_error(class_mse, case)
        return {**found, "grad_mode": torch.is_grad_enabled()}


def squared_error_of_classes(class_mse, case):
    value = class_mse(case["scores"], case["target"])
    if not isinstance(value, torch.Tensor):
        return {"loss": value}
    return {"loss": value.detach().double()}


def gradient_of_squared_error(class_mse, case):
    scores = case["scores"].clone().requires_grad_()
    value = class_mse(scores, case["target"])
    return _gradient(value, scores, case["factor"])


def _gradient(value, scores, factor):
    """The gradient of the sum of `value`, and what `factor` times that sum has;
    None where none reaches the scores."""
    found, scaled = None, None
    if isinstance(value, torch.Tensor) and value.requires_grad:
        options = {"allow_unused": True, "retain_graph": True}
        (found,) = torch.autograd.grad(value.sum(), scores, **options)
        total = factor * value.sum()
        (scaled,) = torch.autograd.grad(total, scores, **options)
    return {"gradient": found, "multiple": _multiple(found, scaled, factor)}


def _multiple(found, scaled, factor):
    """What the gradient of `factor` times the loss is, beside that of the loss."""
    if found is None or scaled is None:
        return "none"
    for kind, wanted in (
        ("the same multiple", factor),
        ("the gradient itself", 1),
        ("the opposite", -factor),
    ):
        # what is rounded away beside a 1 counts for as little in the multiple
        bounds = {"rtol": 1e-4, "atol": 1e-6 * abs(wanted), "equal_nan": True}
        if torch.allclose(scaled, wanted * found, **bounds):
            return kind
    return "another"


def mean_of_list(mean_loss, case):
    if "refused" in case:  # the next epoch begins anew
        with contextlib.suppress(Exception):
            mean_loss(case["refused"])
    return _mean(mean_loss(case["batches"]))


def mean_and_list(mean_loss, case):
    """The mean in the grad mode of the case, and that mode and the list
    afterwards."""
    with torch.set_grad_enabled(case["grad"]):
        mean = _mean(mean_loss(case["batches"]))
        grad_mode = torch.is_grad_enabled()
    return {
        **mean,
        "number_of_batches": len(case["batches"]),
        "grad_mode": grad_mode,
    }


def mean_of_generator(mean_loss, case):
    """The mean, and whether padding counts as in a list, rightly or not."""
    mean = _mean(mean_loss(pair for pair in case["batches"]))
    padded = [
        (logits.clone(), labels.clone()) for logits, labels in case["padded"]
    ]
    once, listed = (
        _mean(mean_loss(batches))["mean"]
        for batches in ((pair for pair in padded), case["padded"])
    )
    numbers = isinstance(once, float) and isinstance(listed, float)
    apart = numbers and abs(once - listed) > 1e-5  # not where one is NaN
    return {**mean, "as_from_a_list": not apart}


def mean_and_warnings(mean_loss, case):
    """The mean, and how often Python was told to warn: a filter may hide it."""
    with mock.patch.object(warnings, "warn", wraps=warnings.warn) as warn:
        mean = _mean(mean_loss(case["batches"]))
    return {**mean, "number_of_warnings": warn.call_count}


def _mean(value):
    """What was returned as a number, and what it was."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return {"mean": float(value.detach()), "type": "a tensor"}
    if isinstance(value, np.ndarray | np.generic | int) and np.size(value) == 1:
        kind = "a Python float" if isinstance(value, float) else "no float"
        return {"mean": float(value), "type": kind}
    return {"mean": value, "type": "a Python float"}


# A second device for machines that have only a CPU. Tensors on it say that they
# are on "meta", and hold values nevertheless. As on a GPU, one operation cannot
# mix tensors of both devices, apart from tensors without dimensions, copies, and
# CPU indices into a tensor over there.


class OnSecondDevice(torch.Tensor):
    """A tensor on the second device; `values` are its values, on the CPU."""

    @staticmethod
    def __new__(cls, values):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=torch.device("meta"),
        )

    def __init__(self, values):
        self.values = values

    def __repr__(self):
        return f"{self.values!r} on a second device"

    def tolist(self):
        return self.values.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


class SecondDevice(TorchDispatchMode):
    """While it is active, device="meta" means the second device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


class ValuesKept(TorchFunctionMode):
    """Makes tensors of Python numbers on the CPU and sends them over: PyTorch
    itself would make them on "meta" and forget the numbers."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in INDEXING:
            args = (args[0], _with_tensors(args[1]), *args[2:])
        if func is torch.Tensor.new_tensor and _is_there(args[0]):
            kwargs = {"dtype": args[0].dtype, "device": "meta", **kwargs}
            func, args = torch.tensor, args[1:]
        if func in FROM_NUMBERS and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        return func(*args, **kwargs)


INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


def _with_tensors(index):
    """An index whose lists and ranges are tensors on the CPU."""
    if isinstance(index, tuple):
        return tuple(_with_tensors(one) for one in index)
    if isinstance(index, list | range):
        numbers = torch.tensor(list(index), device="cpu")
        return numbers if len(index) else numbers.long()
    return index


FROM_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray)


def _run(func, args, kwargs):
    name = func.overloadpacket.__name__
    tensors = [
        leaf
        for leaf in tree_leaves((args, kwargs))
        if isinstance(leaf, torch.Tensor)
    ]
    there = [_is_there(tensor) for tensor in tensors]
    indexing = name.startswith("index") and name not in INDEX_BY_DIMENSION
    if any(there) and not name.endswith("copy") and name != "copy_":
        for tensor, is_there in zip(tensors, there, strict=True):
            index_from_here = indexing and there[0]
            if not is_there and tensor.dim() and not index_from_here:
                raise RuntimeError("the tensors are on two devices")
    goes_there = any(there)
    if kwargs.get("device") is not None:
        goes_there = torch.device(kwargs["device"]).type == "meta"
        kwargs = {**kwargs, "device": torch.device("cpu")}
    result = func(*tree_map(_values, args), **tree_map(_values, kwargs))
    if name.endswith("_") and not name.endswith("__"):
        if torch.Tag.inplace_view in func.tags:
            # its shape is another, as that of its values is
            return return_and_correct_aliasing(func, args, kwargs, args[0])
        return args[0]
    return tree_map(_sent_there, result) if goes_there else result


INDEX_BY_DIMENSION = ("index_select", "index_fill", "index_add", "index_copy")


def _is_there(leaf):
    return isinstance(leaf, OnSecondDevice)


def _values(leaf):
    return leaf.values if _is_there(leaf) else leaf


def _sent_there(leaf):
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return OnSecondDevice(leaf.to_dense() if leaf.is_sparse else leaf)
