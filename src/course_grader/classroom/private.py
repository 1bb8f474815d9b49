"""Files with people's work or marks: readable by their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def private_folder(path: Path) -> Path:
    """Makes a folder that its owner alone may enter, with those above it; one that
    exists stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def open_private(path: Path) -> BinaryIO:
    """A file that its owner alone may read, open for writing; a new one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    return open(os.open(path, flags, 0o600), "wb")


def write_private(path: Path, text: str) -> None:
    """Writes a text file that its owner alone may read, all of it or nothing."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with open_private(part) as file:
        file.write(text.encode())
    part.replace(path)


def shut(path: Path) -> None:
    """Takes others' rights to a file or folder away, if it exists and is one's
    own."""
    if os.name != "posix" or not path.exists():
        return
    found = path.stat()
    if found.st_uid == os.getuid() and found.st_mode & 0o077:
        path.chmod(stat.S_IMODE(found.st_mode) & 0o7700)
