"""What a learner's Jupyter knows of nbgrader's exchange: due dates, what is released,
what was handed in."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jupyter_core.paths import jupyter_config_path
from nbgrader.apps import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import Exchange
from traitlets.config import Config

from course_exchange.share import DUE_FILE


@dataclass(frozen=True)
class Known:
    """What is known of the exchange; nothing where nobody teaches.

    Attributes:
        due: when each chapter is due for all; an extension is not in it.
        released: the chapters that can be fetched.
        handed_in: when a chapter was handed in last, from here.
    """

    due: dict[str, datetime]
    released: frozenset[str]
    handed_in: dict[str, datetime]


def known_of_exchange() -> Known:
    """Asks nbgrader's settings where the exchange is, and looks there."""
    config = _settings()
    due: dict[str, datetime] = {}
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        tree = json.loads(due_file(config).read_text(encoding="utf-8"))
        due = {
            name: datetime.fromisoformat(moment)
            for name, moment in tree.items()
        }
    released = _names(due_file(config).parent / "outbound")
    handed_in: dict[str, datetime] = {}
    for name in _names(Path(Exchange(config=config).cache, _course_id(config))):
        # LEARNER+CHAPTER+TIME, which nbgrader writes in UTC
        parts = name.rsplit("+", 2)
        with contextlib.suppress(ValueError, IndexError):
            moment = datetime.fromisoformat(
                parts[2].removesuffix(" UTC")
            ).replace(tzinfo=UTC)
            chapter = parts[1]
            handed_in[chapter] = max(handed_in.get(chapter, moment), moment)
    return Known(due, frozenset(released), handed_in)


def due_file(config: Config) -> Path:
    """Where due dates stand in the exchange that these settings name."""
    return Path(Exchange(config=config).root) / _course_id(config) / DUE_FILE


def _settings() -> Config:
    app = NbGrader()
    app.config_file_paths.append(jupyter_config_path())
    # settings that cannot be read are none
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        app.load_config_file()
    return app.config


def _course_id(config: Config) -> str:
    return str(CourseDirectory(config=config).course_id)


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [one.name for one in folder.iterdir() if one.is_dir()]
    return []
