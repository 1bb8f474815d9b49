"""Results of a reference machine, shown beside the learner's own.

They lie in `data/` of this package as JSON, a GPU's apart from a CPU's, and are
written by `record` on the machine that measured them, never by hand: `make
record` runs every chapter with COURSE_UTILS_RECORD set to that folder.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch

from .devices import describe_machine, pick_device

_SHIPPED = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Recorded:
    """A result, and where it comes from.

    Attributes:
        value: a number, a text, or lists and dicts of these.
        device: name of the device that measured it.
        date: day of the measurement, as "2026-01-31".
        versions: of `python`, `torch` and, on CUDA, `cuda`.
    """

    value: Any
    device: str
    date: str
    versions: Mapping[str, str]

    @property
    def source(self) -> str:
        """Device, date and version of PyTorch, in a few words."""
        return f"{self.device}, {self.date}, torch {self.versions['torch']}"


def recorded(name: str, device: torch.device | str) -> Recorded | None:
    """The recorded result of this name on the same kind of device; None where
    none is recorded yet. Chapters take other sizes on a GPU, so one kind says
    nothing about the other."""
    path = _file(_SHIPPED, torch.device(device).type, name)
    if not path.exists():
        return None
    entries = json.loads(path.read_text(encoding="utf-8"))
    return Recorded(**entries[name]) if name in entries else None


def _file(folder: Path, kind: str, name: str) -> Path:
    chapter = name.partition("/")[0]
    return folder / kind / f"{chapter}.json"


def record(
    name: str, value: Any, folder: str | Path, device: torch.device | str
) -> Recorded:
    """Writes a result of this machine, where it replaces an earlier one of the
    same name and kind of device.

    Args:
        name: of the chapter and the result: "10_mixed_precision/step_s".
        value: a finite number, a text, or lists and dicts of these.
        folder: the files lie there as `cuda/10_mixed_precision.json`.
        device: where it was measured.

    Returns:
        What was written.

    Raises:
        ValueError: the value cannot be written as JSON; nothing was written.
    """
    machine = describe_machine()
    kind = torch.device(device).type
    path = _file(Path(folder), kind, name)
    result = Recorded(
        value=value,
        device=_device_name(kind),
        date=date.today().isoformat(),
        versions={
            key: str(machine[key])
            for key in ("python", "torch", "cuda")
            if machine[key] is not None
        },
    )
    entries = {}
    if path.exists():
        entries = json.loads(path.read_text(encoding="utf-8"))
    entries[name] = {
        "value": result.value,
        "device": result.device,
        "date": result.date,
        "versions": dict(result.versions),
    }
    try:
        text = json.dumps(entries, indent=1, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be recorded: {error}. Give finite numbers, texts, "
            "lists and dicts; take a tensor's numbers with .item() or .tolist()."
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    return result


def beside_reference(
    name: str,
    mine: float,
    *,
    unit: str = "",
    device: torch.device | str | None = None,
) -> None:
    """Prints the learner's number beside the recorded one.

    Args:
        name: of the recorded result.
        mine: the learner's number.
        unit: of both.
        device: where it was measured; by default that of `pick_device`.
    """
    device = pick_device() if device is None else torch.device(device)
    what = name.rpartition("/")[2].replace("_", " ")
    here = os.environ.get("COURSE_UTILS_RECORD")
    if here:
        record(name, mine, here, device)
    reference = recorded(name, device)
    said = (
        f"{what}: yours {_with_unit(mine, unit)} ({_device_name(device.type)})"
    )
    if reference is not None:
        number = _with_unit(reference.value, unit)
        said += f", reference {number} ({reference.source})"
    print(said)


def show_recorded(
    names: Mapping[str, str], *, unit: str = "", device: torch.device | str
) -> None:
    """Prints recorded results of a kind of device that the learner may not have.

    Args:
        names: what a line says, and the name of its recorded result.
        unit: of all of them.
        device: as "cuda".

    Raises:
        ValueError: one is not recorded there.
    """
    width = max(map(len, names))
    source = ""
    for says, name in names.items():
        found = recorded(name, device)
        if found is None:
            raise ValueError(f"{name} is not recorded for {device} yet.")
        if found.source != source:
            source = found.source
            print(f"{source}:")
        print(f"  {says:{width}}  {_with_unit(found.value, unit)}")


def _with_unit(number: float, unit: str) -> str:
    return f"{number:.4g} {unit}".strip()


def _device_name(kind: str) -> str:
    machine = describe_machine()
    if kind == "cpu":
        return f"{_processor()}, {machine['threads']} threads"
    return str(machine["devices"][0])


def _processor() -> str:
    """The processor by its maker's name, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()
