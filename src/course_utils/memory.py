"""How much memory something needs: by the allocator on CUDA, elsewhere by what
autograd keeps for the backward pass.

PyTorch's CPU allocator keeps no count, but most of what training needs beyond
the weights is the tensors saved in the forward pass, and these can be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .devices import pick_device

_Address = tuple[torch.device, int]


@dataclass(frozen=True)
class PeakMemory:
    """The most memory that a call held at once.

    Attributes:
        peak_bytes: on CUDA, what the allocator gave out beyond what was there
            before; elsewhere, the tensors saved for the backward pass.
        counted: "allocator" or "saved tensors". The two are not comparable.
        device: where it ran, as "cuda".
    """

    peak_bytes: int
    counted: str
    device: str


class SavedTensors:
    """Counts the tensors that autograd keeps; made by `saved_tensor_bytes`.

    Attributes:
        live_bytes: kept now.
        peak_bytes: the most that was kept at once.
    """

    def __init__(self, ignore: Iterable[Tensor]) -> None:
        self.live_bytes = 0
        self.peak_bytes = 0
        # Held, so that no other storage can come to lie at the same address.
        self._ignored = {
            _address(tensor.untyped_storage()): tensor for tensor in ignore
        }
        self._uses: dict[_Address, _Use] = {}

    def _keep(self, tensor: Tensor) -> _Kept:
        storage = tensor.untyped_storage()
        address = _address(storage)
        if address in self._ignored:
            return _Kept(tensor, None)
        use = self._uses.get(address)
        if use is None:
            use = self._uses[address] = _Use(self, address, storage.nbytes())
        use.number += 1
        return _Kept(tensor, use)


class _Use:
    """How often a storage is kept."""

    __slots__ = ("address", "count", "nbytes", "number")

    def __init__(
        self, count: SavedTensors, address: _Address, nbytes: int
    ) -> None:
        self.count, self.address, self.nbytes = count, address, nbytes
        self.number = 0
        count.live_bytes += nbytes
        count.peak_bytes = max(count.peak_bytes, count.live_bytes)

    def drop(self) -> None:
        self.number -= 1
        if self.number == 0:
            del self.count._uses[self.address]
            self.count.live_bytes -= self.nbytes


class _Kept:
    """Stands in the graph for a saved tensor and tells when it is let go."""

    __slots__ = ("tensor", "use", "version")

    def __init__(self, tensor: Tensor, use: _Use | None) -> None:
        # An output saved by its own operation would keep itself alive.
        self.tensor = tensor.detach()
        self.version = tensor._version
        self.use = use

    def give_back(self) -> Tensor:
        # Autograd leaves this check to the hooks where there are some.
        if self.tensor._version != self.version:
            raise RuntimeError(
                "A tensor that the backward pass needs, of shape "
                f"{tuple(self.tensor.shape)}, was modified by an inplace "
                "operation after the forward pass had saved it."
            )
        return self.tensor

    def __del__(self) -> None:
        if self.use is not None:
            self.use.drop()


def _address(storage: torch.UntypedStorage) -> _Address:
    return storage.device, storage.data_ptr()


@contextmanager
def saved_tensor_bytes(
    ignore: Iterable[Tensor] = (),
) -> Iterator[SavedTensors]:
    """Counts the bytes that autograd saves for the backward pass in this block.

    Each storage counts once, however many tensors look at it, and counts no
    more once the backward pass has let it go, also after the block. What
    `torch.utils.checkpoint` hides from the graph is not counted.

    Args:
        ignore: tensors that count as there anyway: `model.parameters()`.

    Yields:
        The counter, with `live_bytes` and `peak_bytes`.

    Source: torch.autograd.graph.saved_tensors_hooks.
    """
    count = SavedTensors(ignore)
    with torch.autograd.graph.saved_tensors_hooks(count._keep, _Kept.give_back):
        yield count


def peak_memory(
    function: Callable[[], Any],
    *,
    device: torch.device | str | None = None,
    ignore: Iterable[Tensor] = (),
) -> PeakMemory:
    """The most memory that one call of `function` needs.

    Args:
        function: what is measured, called without arguments; on CUDA twice, as
            libraries make workspaces at first use and keep them.
        device: where it runs; by default that of `pick_device`.
        ignore: off CUDA, tensors that do not count (see `saved_tensor_bytes`).
            On CUDA whatever existed before the call does not count.
    """
    device = pick_device() if device is None else torch.device(device)
    if device.type != "cuda":
        with saved_tensor_bytes(ignore) as saved:
            function()
        return PeakMemory(saved.peak_bytes, "saved tensors", device.type)
    function()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    function()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    return PeakMemory(peak, "allocator", device.type)
