"""Results of a reference GPU, shown beside the learner's own.

They lie in `data/` of this package as JSON and are written by `record` on the
machine that measured them, never by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

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


def recorded(name: str) -> Recorded | None:
    """The recorded result of this name; None where none is recorded yet."""
    for path in sorted(_SHIPPED.glob("*.json")):
        entries = json.loads(path.read_text(encoding="utf-8"))
        if name in entries:
            return Recorded(**entries[name])
    return None


def record(name: str, value: Any, path: str | Path) -> Recorded:
    """Writes a result of this machine into a JSON file, where it replaces an
    earlier one of the same name.

    Args:
        name: unique in the course: "10_mixed_precision/step_s".
        value: a finite number, a text, or lists and dicts of these.
        path: the file, one per chapter in `src/course_utils/data`; made if it is
            not there.

    Returns:
        What was written.

    Raises:
        ValueError: the value cannot be written as JSON; nothing was written.
    """
    from .devices import describe_machine

    machine = describe_machine()
    result = Recorded(
        value=value,
        device=_device_name(),
        date=date.today().isoformat(),
        versions={
            key: str(machine[key])
            for key in ("python", "torch", "cuda")
            if machine[key] is not None
        },
    )
    path = Path(path)
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


def beside_reference(name: str, mine: float, *, unit: str = "") -> None:
    """Prints the learner's number beside the recorded one.

    Args:
        name: of the recorded result.
        mine: the learner's number.
        unit: of both.
    """
    reference = recorded(name)
    what = name.rpartition("/")[2].replace("_", " ")
    print(
        f"{what}: yours {_with_unit(mine, unit)} ({_device_name()}),", end=" "
    )
    if reference is None:
        print("reference not recorded yet")
    else:
        number = _with_unit(reference.value, unit)
        print(f"reference {number} ({reference.source})")


def _with_unit(number: float, unit: str) -> str:
    return f"{number:.4g} {unit}".strip()


def _device_name() -> str:
    from .devices import describe_machine, pick_device

    on_cpu = pick_device().type == "cpu"
    return "CPU" if on_cpu else str(describe_machine()["devices"][0])
