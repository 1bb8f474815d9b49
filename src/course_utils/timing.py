"""How long something takes, on a device that works behind Python's back."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from .devices import pick_device, synchronize


@dataclass(frozen=True)
class Timing:
    """How long one call took.

    Attributes:
        median_s: the median over the repeats, in seconds.
        spread_s: the range that the middle half of the repeats covers, in
            seconds (the interquartile range).
        device: where it ran, as "cuda".
    """

    median_s: float
    spread_s: float
    device: str

    def __str__(self) -> str:
        unit, factor = next(
            (unit, factor)
            for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
            if self.median_s * factor >= 1 or unit == "µs"
        )
        # rounded, and then written without an exponent
        median = float(f"{self.median_s * factor:.3g}")
        spread = float(f"{self.spread_s * factor:.2g}")
        return f"{median:g} {unit} (spread {spread:g} {unit}, {self.device})"


def measure_time(
    function: Callable[[], Any],
    *,
    warmup: int = 3,
    repeats: int = 11,
    device: torch.device | str | None = None,
) -> Timing:
    """Times `function()`, waiting for the device before each look at the clock.

    A GPU returns to Python before it has done its work; without waiting one
    measures how long it takes to ask.

    Args:
        function: what is timed, called without arguments.
        warmup: calls before the first that counts: the first ones load kernels
            and fill caches.
        repeats: calls that count; at least 2.
        device: which device to wait for; by default that of `pick_device`.

    Raises:
        ValueError: fewer than 2 repeats.
    """
    if repeats < 2:
        raise ValueError(f"A spread needs 2 repeats or more, not {repeats}.")
    device = pick_device() if device is None else torch.device(device)
    for _ in range(warmup):
        function()
    seconds = []
    for _ in range(repeats):
        synchronize(device)
        start = perf_counter()
        function()
        synchronize(device)
        seconds.append(perf_counter() - start)
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Timing(median_s=median, spread_s=high - low, device=device.type)
