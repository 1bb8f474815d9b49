"""Drives what the exercises of chapter 03 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

OPTIONS = ("weight", "ignore_index", "reduction", "label_smoothing")


def encode(one_hot, case):
    labels = case["labels"]
    out = one_hot(labels, case["num_classes"], case["dtype"])
    return {"out": out, "labels_after": labels.clone()}


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


def loss_and_gradient(cross_entropy, case):
    options = {name: case[name] for name in OPTIONS if name in case}
    logits = case["logits"].clone().requires_grad_()
    value = cross_entropy(logits, case["target"], **options)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return {"loss": value.detach(), "gradient": gradient}


def squared_error(class_mse, case):
    return {"loss": class_mse(case["scores"], case["target"])}


def squared_error_and_gradient(class_mse, case):
    scores = case["scores"].clone().requires_grad_()
    value = class_mse(scores, case["target"])
    (gradient,) = torch.autograd.grad(value, scores)
    return {"loss": value.detach(), "gradient": gradient}


def mean_of_list(mean_loss, case):
    return {"mean": float(mean_loss(case["batches"]))}


def mean_of_generator(mean_loss, case):
    batches = ((logits, labels) for logits, labels in case["batches"])
    return {"mean": float(mean_loss(batches))}


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
        if func is torch.Tensor.new_tensor and _is_there(args[0]):
            kwargs = {"dtype": args[0].dtype, "device": "meta", **kwargs}
            func, args = torch.tensor, args[1:]
        if func in FROM_NUMBERS and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        return func(*args, **kwargs)


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
