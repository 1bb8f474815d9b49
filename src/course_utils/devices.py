"""Which device a chapter runs on, and what this machine is."""

from __future__ import annotations

import platform
from typing import Any

import torch


def pick_device() -> torch.device:
    """The best device of this machine: cuda, else mps, else cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def synchronize(device: torch.device) -> None:
    """Waits until the device has done all the work it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def describe_machine() -> dict[str, Any]:
    """What the results of this session depend on, as plain data.

    Never raises, whatever build of PyTorch is installed.

    Returns:
        `python`, `torch`, `system`; `cuda`, the version PyTorch was built with,
        and `cudnn`, the one it runs with, or None; `devices`, the names of the
        accelerators, empty without one; `threads`, how many a CPU operator may
        use.
    """
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "system": f"{platform.system()} {platform.machine()}",
        "cuda": torch.version.cuda,
        "cudnn": _cudnn_version(),
        "devices": _accelerator_names(),
        "threads": torch.get_num_threads(),
    }


def _cudnn_version() -> int | None:
    try:
        version: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    except Exception:  # built with one cuDNN, run with another
        return None
    return version


def _accelerator_names() -> list[str]:
    try:
        names = [
            torch.cuda.get_device_name(index)
            for index in range(torch.cuda.device_count())
        ]
    except Exception:  # a driver too old for this build of PyTorch
        names = []
    if torch.backends.mps.is_available():
        names.append("Apple GPU")
    return names
