"""Reads a folder that somebody else wrote, without trusting it.

Only regular files are opened, each by its name inside a directory that is
already open, so that no symbolic link is ever followed, not even one that is
put in place while the copy runs. A FIFO, a socket or a device is never opened.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1 << 20
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a file swapped for a FIFO between the look and the opening must
# not make the collector wait for a writer.
_OPEN_FILE = (
    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
)


@dataclass(frozen=True)
class Limits:
    """How much of one folder is read.

    Attributes:
        max_file_bytes: a larger file is left out.
        max_total_bytes: files are left out once the sum would pass this.
        max_files: entries looked at, folders and refused ones included.
        max_depth: folders within folders.
    """

    max_file_bytes: int = 100_000_000
    max_total_bytes: int = 100_000_000
    max_files: int = 1_000
    max_depth: int = 8


@dataclass(frozen=True)
class SafeFile:
    """A regular file, open for reading until the next one is asked for.

    Attributes:
        parts: its path inside the folder, from the top down.
        file: its content; reads of more than `size_bytes` are the caller's
            to avoid, the file may grow.
        size_bytes: its size when it was opened.
        modified_ns: when it was last changed, in ns since 1970.
    """

    parts: tuple[str, ...]
    file: BinaryIO
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True)
class LeftOut:
    """Something that was not read, and why.

    Attributes:
        parts: its path inside the folder, from the top down, as it was found:
            any characters.
        why: a phrase, as "a symbolic link".
    """

    parts: tuple[str, ...]
    why: str


def printable(name: str) -> str:
    """The name on one line, without control characters, at most 120 long.

    Names are the submitter's: a raw one could forge lines of a log or
    colour a terminal.
    """
    shown = "".join(
        c
        if c.isprintable()
        else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in name
    )
    return shown if len(shown) <= 120 else shown[:80] + "…" + shown[-36:]


def left_out_sentence(left_out: Sequence[LeftOut]) -> str:
    """One sentence that names what was left out; empty if nothing was."""
    if not left_out:
        return ""
    shown = [
        f"{printable('/'.join(one.parts)) or 'the rest'} ({one.why})"
        for one in left_out[:5]
    ]
    more = len(left_out) - len(shown)
    if more:
        shown.append(f"{more} more")
    return "Left out: " + ", ".join(shown) + "."


def safe_files(
    folder: Path,
    limits: Limits,
    *,
    first: str = "",
    skip: Callable[[str, bool], bool] = lambda name, is_folder: False,
) -> Iterator[SafeFile | LeftOut]:
    """The regular files of a folder, and a note on everything else in it.

    In every folder notebooks come before other files, files before folders,
    each by name, so what the limits cut is the least needed; of a single
    folder with more entries than `max_files`, any may be cut.

    Args:
        folder: where to read. What leads to it is trusted, itself it is not.
        limits: how much to read.
        first: name of a file directly in the folder that is looked at before
            all others, however many they are.
        skip: (name, whether it is a folder) -> whether to pass it over
            without a note.

    Raises:
        OSError: the folder is a symbolic link, no folder, or unreadable.
    """
    try:
        root = os.open(folder, _OPEN_FOLDER)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            why = "it is no folder, or a symbolic link to one"
            raise NotADirectoryError(error.errno, why) from None
        raise
    try:
        walk = _Walk(limits, skip, owner=os.fstat(root).st_uid)
        if first:
            yield from walk.one(root, (first,), missing_ok=True)
        yield from walk.entries(root, (), but=first)
    finally:
        os.close(root)


class _Walk:
    """One reading of a folder: what it has looked at so far."""

    def __init__(
        self, limits: Limits, skip: Callable[[str, bool], bool], owner: int
    ) -> None:
        self.limits = limits
        self.skip = skip
        self.owner = owner
        self.num_seen = 0
        self.total_bytes = 0

    def entries(
        self, folder: int, above: tuple[str, ...], but: str = ""
    ) -> Iterator[SafeFile | LeftOut]:
        room = self.limits.max_files - self.num_seen
        try:
            with os.scandir(folder) as listing:
                found = [
                    (entry.is_dir(follow_symlinks=False), entry.name)
                    for entry in islice(listing, room + 2)
                ]
        except OSError as error:
            yield LeftOut(above, f"cannot be listed: {error.strerror}")
            return
        found.sort(key=lambda e: (e[0], not e[1].endswith(".ipynb"), e[1]))
        for is_folder, name in found:
            if name == but or self.skip(name, is_folder):
                continue
            if self.num_seen >= self.limits.max_files:
                yield LeftOut(
                    above,
                    f"more than {self.limits.max_files} files and folders",
                )
                return
            yield from self.one(folder, (*above, name))

    def one(
        self, folder: int, parts: tuple[str, ...], missing_ok: bool = False
    ) -> Iterator[SafeFile | LeftOut]:
        self.num_seen += 1
        why = _bad_name(parts[-1])
        if why:
            yield LeftOut(parts, why)
            return
        try:
            seen = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if not missing_ok or not isinstance(error, FileNotFoundError):
                yield LeftOut(parts, _unreadable(error))
            return
        if stat.S_ISDIR(seen.st_mode):
            yield from self.folder(folder, parts)
            return
        why = self.objection(seen)
        if why:
            yield LeftOut(parts, why)
            return
        try:
            opened = os.open(parts[-1], _OPEN_FILE, dir_fd=folder)
        except OSError as error:
            yield LeftOut(parts, _unreadable(error))
            return
        with os.fdopen(opened, "rb") as file:
            seen = os.fstat(opened)
            why = self.objection(seen)  # it may have been swapped since
            if why:
                yield LeftOut(parts, why)
                return
            self.total_bytes += seen.st_size
            yield SafeFile(parts, file, seen.st_size, seen.st_mtime_ns)

    def folder(
        self, above: int, parts: tuple[str, ...]
    ) -> Iterator[SafeFile | LeftOut]:
        if len(parts) > self.limits.max_depth:
            why = f"more than {self.limits.max_depth} folders deep"
            yield LeftOut(parts, why)
            return
        try:
            opened = os.open(parts[-1], _OPEN_FOLDER, dir_fd=above)
        except OSError as error:
            yield LeftOut(parts, _unreadable(error))
            return
        try:
            yield from self.entries(opened, parts)
        finally:
            os.close(opened)

    def objection(self, seen: os.stat_result) -> str:
        """Why a file is not read; empty if it is."""
        mode = seen.st_mode
        if stat.S_ISLNK(mode):
            return "a symbolic link"
        if stat.S_ISFIFO(mode):
            return "a FIFO"
        if stat.S_ISSOCK(mode):
            return "a socket"
        if not stat.S_ISREG(mode):
            return "a device"
        if seen.st_nlink > 1 and seen.st_uid != self.owner:
            # The submitter may link a file that he cannot read; the collector
            # could read it, and feedback would show it to him.
            return "a hard link to a file of another owner"
        if seen.st_size > self.limits.max_file_bytes:
            return f"larger than {_megabytes(self.limits.max_file_bytes)}"
        if self.total_bytes + seen.st_size > self.limits.max_total_bytes:
            most = _megabytes(self.limits.max_total_bytes)
            return f"the submission is larger than {most}"
        return ""


def copy_out(found: SafeFile, target: Path) -> None:
    """Writes the file's bytes, as many as it had when opened, to a new file.

    Raises:
        OSError: reading or writing failed, or `target` exists; what was
            written by then is removed.
    """
    with open(target, "xb") as out:
        try:
            left = found.size_bytes
            while left > 0:
                chunk = found.file.read(min(left, _CHUNK_BYTES))
                if not chunk:
                    break
                out.write(chunk)
                left -= len(chunk)
            out.flush()
            os.utime(out.fileno(), ns=(found.modified_ns, found.modified_ns))
        except OSError:
            target.unlink()
            raise


def copy_tree(
    source: Path,
    destination: Path,
    limits: Limits,
    *,
    first: str = "",
    skip: Callable[[str, bool], bool] = lambda name, is_folder: False,
) -> tuple[LeftOut, ...]:
    """Copies the regular files of a folder into a new one.

    Contents and times of change are kept; permissions are those of any new
    file. The arguments are those of `safe_files`.

    Args:
        destination: is made; nobody else may write where it lies.

    Returns:
        What was left out.

    Raises:
        OSError: `source` is no readable folder, or `destination` exists.
    """
    destination.mkdir()
    left_out: list[LeftOut] = []
    for found in safe_files(source, limits, first=first, skip=skip):
        if isinstance(found, LeftOut):
            left_out.append(found)
            continue
        target = destination.joinpath(*found.parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_out(found, target)
        except FileExistsError:
            why = "another name differs from it in capitals only"
            left_out.append(LeftOut(found.parts, why))
        except OSError as error:
            why = f"cannot be copied: {error.strerror}"
            left_out.append(LeftOut(found.parts, why))
    return tuple(left_out)


def _bad_name(name: str) -> str:
    kinds = {unicodedata.category(c) for c in name}
    if "Cs" in kinds:
        return "its name is not valid UTF-8"
    if "Cc" in kinds:
        return "its name holds a control character"
    return ""


def _unreadable(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:g} MB"
