"""Plain data: what may travel between the judge and a learner's process.

A value is written as a JSON tree beside the raw bytes of the tensor storages it
refers to. Reading executes nothing: there are no pickles, no class is looked up
by name, and every size is checked before memory is taken. Tensors keep dtype,
device, shape, strides, requires_grad and which of them share memory; a value
of another type becomes its type's name.

The tree: null, booleans, strings, integers and finite floats stand for
themselves; everything else is a list that opens with a tag.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

MAX_DEPTH = 40
"""Nesting allowed in a value: deeper data is no answer to any probe."""
MAX_TENSOR_BYTES = 256 * 2**20
"""Bytes a tensor may take once it is read (a view may be larger than its storage)."""
MAX_NODES = 200_000
"""Values allowed in one tree: reading stays within seconds whatever is sent."""
MAX_ODD_KEYS = 1_000
"""Members of sets and keys of dicts that are no texts, in one tree. Python's hashes
of numbers and tuples can be made to collide; those of texts are keyed by process."""
MAX_INTEGER_BITS = 64
"""Of an integer that stands for itself, and of one in a key: longer ones all hash
alike if one wants it so."""
MAX_LONG_BITS = 1_024
"""Of any integer."""
MAX_DIMENSIONS = 64
"""Dimensions of a tensor."""

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("uint16", "uint32", "uint64", "float16", "bfloat16", "float32"),
        *("float64", "complex32", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e5m2"),
    )
}


class NotPlain(ValueError):
    """What was sent is no well-formed plain data."""


@dataclass(frozen=True)
class Unknown:
    """Stands for a value of a type that does not travel.

    Attributes:
        type_name: name of its type.
    """

    type_name: str


def encode(value: Any) -> tuple[Any, bytes]:
    """Writes a value.

    Returns:
        (tree, blob): a JSON-serialisable tree and the bytes of its tensors.
    """
    writer = _Writer()
    tree = writer.node(value, 0)
    layout = [["storages", writer.sizes], ["root", tree]]
    return layout, b"".join(writer.chunks)


def decode(layout: Any, blob: bytes) -> Any:
    """Reads what `encode` wrote, trusting nothing of it.

    Raises:
        NotPlain: malformed, oversized or inconsistent data.
    """
    try:
        (_, sizes), (_, tree) = layout
        return _Reader(sizes, blob).node(tree, 0)
    except NotPlain:
        raise
    except Exception as error:
        raise NotPlain(
            f"malformed plain data ({type(error).__name__})"
        ) from error


class _Writer:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.chunks: list[bytes] = []
        self.storages: dict[tuple[str, int], int] = {}
        self.keep: list[Any] = []
        self.nodes = 0

    def node(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if depth >= MAX_DEPTH or self.nodes >= MAX_NODES:
            return ["unknown", "nested too deep or too large"]
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            if value.bit_length() > MAX_LONG_BITS:
                return ["unknown", "a very long int"]
            if value.bit_length() > MAX_INTEGER_BITS:
                return ["int", hex(value)]
            return value
        if kind is float:
            return value if math.isfinite(value) else ["float", repr(value)]
        if kind is complex:
            return ["complex", repr(value.real), repr(value.imag)]
        if kind is bytes:
            return ["bytes", base64.b64encode(value).decode()]
        if kind is list:
            return ["list", [self.node(one, depth + 1) for one in value]]
        if kind is tuple or kind is torch.Size:
            return ["tuple", [self.node(one, depth + 1) for one in value]]
        if isinstance(value, dict):
            return [
                "dict",
                [self._pair(*pair, depth) for pair in value.items()],
            ]
        if kind in (set, frozenset):
            members = [self.node(one, depth + 1) for one in value]
            return ["set", sorted(members, key=repr)]
        if kind is torch.dtype:
            return ["dtype", str(value).removeprefix("torch.")]
        if kind is torch.device:
            return ["device", str(value)]
        try:
            if isinstance(value, torch.Tensor):
                return self._tensor(value)
            if kind is np.ndarray or isinstance(value, np.generic):
                return self._array(value)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            pass  # sparse, quantised, string arrays, ...: described below
        return ["unknown", kind.__name__]

    def _pair(self, key: Any, value: Any, depth: int) -> list[Any]:
        return [self.node(key, depth + 1), self.node(value, depth + 1)]

    def _array(self, value: Any) -> Any:
        array = np.asarray(value)
        tag = "array" if type(value) is np.ndarray else "scalar"
        return [tag, self._tensor(torch.from_numpy(np.array(array)))]

    def _tensor(self, value: torch.Tensor) -> Any:
        tensor = value.detach()
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return ["unknown", f"{tensor.layout} tensor"]
        facts = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": str(tensor.device),
            "shape": list(tensor.shape),
            "grad": bool(value.requires_grad),
        }
        if facts["dtype"] not in DTYPES:
            return ["unknown", f"{tensor.dtype} tensor"]
        if tensor.device.type == "meta":
            return ["tensor", {**facts, "storage": None}]
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        if tensor.device.type != "cpu":
            tensor = tensor.cpu()
        storage = tensor.untyped_storage()
        used = tensor.numel() * tensor.element_size()
        if storage.nbytes() > max(4 * used, 65536):
            tensor = tensor.contiguous().clone()
            storage = tensor.untyped_storage()
        self.keep.append(tensor)  # so that no data_ptr is used twice
        key = (str(tensor.device), storage.data_ptr())
        if storage.nbytes() == 0 or key not in self.storages:
            raw = torch.empty(0, dtype=torch.uint8).set_(storage)
            self.storages[key] = len(self.sizes)
            self.sizes.append(storage.nbytes())
            self.chunks.append(raw.numpy().tobytes())
        facts["storage"] = self.storages[key]
        facts["stride"] = list(tensor.stride())
        facts["offset"] = int(tensor.storage_offset())
        return ["tensor", facts]


class _Reader:
    def __init__(self, sizes: Any, blob: bytes) -> None:
        if not isinstance(sizes, list) or len(sizes) > MAX_NODES:
            raise NotPlain("malformed list of storages")
        self.raw: list[torch.Tensor] = []
        start = 0
        for size in sizes:
            if type(size) is not int or not 0 <= size <= len(blob) - start:
                raise NotPlain("a storage lies outside of what was sent")
            piece = bytearray(blob[start : start + size])
            self.raw.append(
                torch.frombuffer(piece, dtype=torch.uint8)
                if size
                else torch.empty(0, dtype=torch.uint8)
            )
            start += size
        if start != len(blob):
            raise NotPlain("more bytes were sent than the storages hold")
        self.nodes = 0
        self.bytes = 0
        self.odd_keys = 0
        self.no_keys = 0

    def node(self, tree: Any, depth: int) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise NotPlain("nested too deep or too large")
        if tree is None or type(tree) in (bool, str, float):
            return tree
        if type(tree) is int:
            if tree.bit_length() > MAX_INTEGER_BITS:
                raise NotPlain("an integer of more than 64 bits")
            return tree
        if type(tree) is not list or not tree or type(tree[0]) is not str:
            raise NotPlain("a value without a tag")
        tag, body = tree[0], tree[1]
        match tag:
            case "int":
                self.no_keys += 1
                if type(body) is not str or len(body) > MAX_LONG_BITS // 4 + 3:
                    raise NotPlain("an integer that is too long")
                return int(body, 16)
            case "float":
                if body not in ("nan", "inf", "-inf"):
                    raise NotPlain("a float that stands for itself")
                return float(body)  # as computed: `is math.nan` is no test
            case "complex":
                return complex(float(body), float(tree[2]))
            case "bytes":
                return base64.b64decode(body)
            case "list":
                return [self.node(one, depth + 1) for one in body]
            case "tuple":
                return tuple(self.node(one, depth + 1) for one in body)
            case "dict":
                return {
                    self._key(key, depth): self.node(value, depth + 1)
                    for key, value in body
                }
            case "set":
                return {self._key(one, depth) for one in body}
            case "dtype":
                return DTYPES[body]
            case "device":
                return torch.device(body)
            case "tensor":
                return self._tensor(body)
            case "array":
                return self._tensor(body[1]).numpy()
            case "scalar":
                return self._tensor(body[1]).numpy()[()]
            case "unknown":
                return Unknown(str(body)[:80])
        raise NotPlain("an unknown tag")

    def _key(self, tree: Any, depth: int) -> Any:
        """A member of a set or a key of a dict. Tensors are none: whether two are
        equal has no answer."""
        if type(tree) is not str:
            self.odd_keys += 1
            if self.odd_keys > MAX_ODD_KEYS:
                raise NotPlain("too many keys that are no texts")
        no_keys = self.no_keys
        key = self.node(tree, depth + 1)
        if self.no_keys > no_keys:
            raise NotPlain("a tensor or a long integer in a key")
        return key

    def _tensor(self, facts: Any) -> torch.Tensor:
        self.no_keys += 1
        dtype = DTYPES[facts["dtype"]]
        shape = self._sizes(facts["shape"])
        if facts["storage"] is None:
            tensor = torch.empty(shape, dtype=dtype, device="meta")
        else:
            tensor = self._view(facts, dtype, shape)
        if facts["grad"] is True and (
            dtype.is_floating_point or dtype.is_complex
        ):
            tensor.requires_grad_()
        return tensor

    def _view(
        self, facts: Any, dtype: torch.dtype, shape: list[int]
    ) -> torch.Tensor:
        stride, offset = self._sizes(facts["stride"]), facts["offset"]
        if type(offset) is not int or offset < 0 or len(stride) != len(shape):
            raise NotPlain("malformed strides")
        storage = facts["storage"]
        if type(storage) is not int or not 0 <= storage < len(self.raw):
            raise NotPlain("a tensor names a storage that was not sent")
        raw = self.raw[storage]
        numel = math.prod(shape)
        self.bytes += numel * dtype.itemsize
        if self.bytes > MAX_TENSOR_BYTES:
            raise NotPlain("the tensors are too large")
        last = offset + sum(
            (n - 1) * s for n, s in zip(shape, stride, strict=True)
        )
        if numel and (last + 1) * dtype.itemsize > raw.numel():
            raise NotPlain("a tensor reaches beyond its storage")
        if numel == 0:
            return torch.empty(shape, dtype=dtype)
        whole = torch.empty(0, dtype=dtype).set_(raw.untyped_storage())
        return whole.as_strided(shape, stride, offset)

    def _sizes(self, sizes: Any) -> list[int]:
        if not isinstance(sizes, list) or len(sizes) > MAX_DIMENSIONS:
            raise NotPlain("malformed shape")
        if any(type(n) is not int or not 0 <= n < 2**48 for n in sizes):
            raise NotPlain("malformed shape")
        return sizes
