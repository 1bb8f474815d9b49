"""Files with people's work or marks: readable by their owner alone."""

from __future__ import annotations

import os
from pathlib import Path


def private_folder(path: Path) -> Path:
    """Makes a folder that its owner alone may enter, with those above it; one that
    exists stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, text: str) -> None:
    """Writes a text file that its owner alone may read, all of it or nothing."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)


def shut(path: Path) -> None:
    """Takes others' rights to a file or folder away, if it is one's own."""
    if path.exists() and path.stat().st_uid == os.getuid():
        mode = path.stat().st_mode & 0o7777
        if mode & 0o077:
            path.chmod(mode & 0o7700)
