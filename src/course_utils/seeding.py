"""One seed for every global source of random numbers."""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seeds `random`, NumPy's global generator and PyTorch on every device.

    Generators of your own (`np.random.default_rng`, `torch.Generator`) and
    processes that already run keep their state.

    Args:
        seed: 0 to 2**32 - 1, the range that NumPy allows.

    Raises:
        ValueError: the seed is outside that range; nothing was seeded.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"A seed is between 0 and 2**32 - 1, not {seed}.")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
