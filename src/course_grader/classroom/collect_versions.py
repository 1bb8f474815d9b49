"""Where collected work lies, and how a newer version replaces an older one.

What graders read is `submitted/STUDENT/CHAPTER/`. Before a newer version takes
that place, the older one is moved to `versions/STUDENT/CHAPTER/TIME/`, beside
`submitted/` in the course's folder; a version is never overwritten and never
deleted. Work of nobody on the roster lies under `versions/_unknown/`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc

UNKNOWN = "_unknown"
TIMESTAMP_FILE = "timestamp.txt"
MOST_ATTEMPTS = 30
"""Attempts before the newest that are collected and graded: who hands in thousands
must not keep the class waiting."""
SECRET_FILE = "submission_secret.txt"
RECEIPT_FILE = "receipt.json"
"""How work came from a learning management system; no learner can hand it in."""


@dataclass(frozen=True)
class Receipt:
    """How work came that a learning management system let one download.

    Attributes:
        path: the notebook's path in the archive, from the top down: the names
            under which the system takes feedback back.
        as_of: when the archive was made, in UTC without a time zone: it was
            handed in by then.
        late: the system marks it as late.
    """

    path: tuple[str, ...]
    as_of: datetime
    late: bool

    def write(self, folder: Path) -> None:
        """Lays it beside the notebook."""
        tree = {
            "path": self.path,
            "as_of": format_timestamp(self.as_of),
            "late": self.late,
        }
        text = json.dumps(tree, ensure_ascii=False, indent=1)
        (folder / RECEIPT_FILE).write_text(text, encoding="utf-8")


def read_receipt(folder: Path) -> Receipt | None:
    """A submission's receipt; None if it came another way."""
    try:
        tree = json.loads((folder / RECEIPT_FILE).read_text(encoding="utf-8"))
        as_of = parse_timestamp(tree["as_of"])
        assert as_of is not None
        return Receipt(tuple(map(str, tree["path"])), as_of, bool(tree["late"]))
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        return None


@dataclass(frozen=True)
class Outcome:
    """What became of one thing that was handed in.

    Attributes:
        student: the student's id, or what a file's name says if nobody on the
            roster is meant; empty if nothing can be said.
        chapter: its chapter; empty if that is not known.
        path: the notebook that will be graded; None if there is none.
        message: one or two sentences for the instructor.
        needs_human: somebody should read the message.
        failed: what was given could not be read at all.
    """

    student: str
    chapter: str
    path: Path | None
    message: str
    needs_human: bool = False
    failed: bool = False


def submitted_folder(
    coursedir: CourseDirectory, student: str, chapter: str
) -> Path:
    """Where nbgrader looks for a student's submission."""
    step = coursedir.submitted_directory
    return Path(coursedir.format_path(step, student, chapter))


def versions_folder(
    coursedir: CourseDirectory, student: str, chapter: str
) -> Path:
    """Where the versions that are not graded lie."""
    return Path(coursedir.root) / "versions" / student / chapter


def bad_student_id(student: str) -> str:
    """Why the text cannot be a student's id; empty if it can.

    An id becomes the name of a folder, and nbgrader uses it as a pattern.
    """
    if not student or student != student.strip():
        return "the student's id is empty or has blanks around it"
    if len(student) > 100:
        return "the student's id is longer than 100 characters"
    if student.startswith((".", UNKNOWN)):
        return f"the student's id begins with {student[0]}"
    if any(c in '/\\:*?"<>|[]' or not c.isprintable() for c in student):
        return "the student's id holds a character that no folder should have"
    return ""


def read_timestamp(folder: Path) -> datetime | None:
    """When a collected submission was handed in, in UTC and without a time
    zone, as nbgrader keeps it; None if its timestamp.txt does not say."""
    try:
        with (folder / TIMESTAMP_FILE).open("rb") as file:
            return parse_timestamp(file.read(200).decode("utf-8"))
    except (OSError, ValueError):
        return None


def parse_timestamp(text: str) -> datetime | None:
    """The time in UTC, without a time zone; None if the text is no time."""
    text = text.strip()
    # No slash: the time zone is looked up as a file by that name.
    if not re.fullmatch(r"[\w :.,+-]{8,60}", text, re.ASCII):
        return None
    try:
        parsed: datetime = parse_utc(text)
    except (ValueError, ArithmeticError, TypeError):
        return None
    return parsed


def format_timestamp(timestamp: datetime) -> str:
    """The text that nbgrader writes into timestamp.txt."""
    return timestamp.strftime("%Y-%m-%d %H:%M:%S.%f UTC")


def mark_from_lms(
    folder: Path, timestamp: datetime | None, receipt: Receipt
) -> None:
    """Sees to what lies beside a notebook that came by an archive: its receipt,
    its time if that is known, and no secret, for the exchange has no way back
    to whoever did not hand in there."""
    receipt.write(folder)
    (folder / TIMESTAMP_FILE).unlink(missing_ok=True)
    if timestamp is not None:
        text = format_timestamp(timestamp)
        (folder / TIMESTAMP_FILE).write_text(text, encoding="utf-8")


def mark(folder: Path, timestamp: datetime) -> str:
    """Sees to the two files that nbgrader wants in a submission.

    nbgrader reads both without care: one that is damaged or missing stops
    formgrader's list, or the release of feedback, for the whole class. Files
    that are as nbgrader writes them, and agree with `timestamp`, stay.

    Returns:
        A sentence if a file that was handed in had to be replaced, else "".
    """
    replaced = []
    stamp, secret = folder / TIMESTAMP_FILE, folder / SECRET_FILE
    if read_timestamp(folder) != timestamp:
        if _remove(stamp):
            replaced.append(TIMESTAMP_FILE)
        stamp.write_text(format_timestamp(timestamp), encoding="utf-8")
    if not _is_secret(secret):
        if _remove(secret):
            replaced.append(SECRET_FILE)
        secret.write_text(secrets.token_hex(64), encoding="utf-8")
    if not replaced:
        return ""
    return f"Not as nbgrader writes it, so replaced: {', '.join(replaced)}."


def _is_secret(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            text = file.read(200)
    except OSError:
        return False
    return re.fullmatch(rb"[0-9a-f]{128}", text) is not None


def _remove(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    else:
        return False
    return True


@contextmanager
def staging(coursedir: CourseDirectory) -> Iterator[Path]:
    """The path of a folder in the making, in the course's `versions/`.

    It is the caller's to make; what is still there at the end is removed.
    """
    versions = Path(coursedir.root) / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    place = versions / f".collecting-{secrets.token_hex(8)}"
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def put_in_place(made: Path, submitted: Path, versions: Path) -> Path | None:
    """Moves a finished folder where graders look.

    Returns:
        Where the version that lay there before is now; None if there was none.
    """
    older = None
    if submitted.exists():
        older = keep_version(submitted, versions, known_by(submitted))
    submitted.parent.mkdir(parents=True, exist_ok=True)
    _move(made, submitted)
    return older


def known_by(folder: Path) -> datetime:
    """By when a submission was handed in, in UTC without a time zone: at its
    time, or else by when its archive was made, or its folder."""
    timestamp = read_timestamp(folder)
    if timestamp is None and (receipt := read_receipt(folder)) is not None:
        timestamp = receipt.as_of
    if timestamp is None:
        changed = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
        timestamp = changed.replace(tzinfo=None)
    return timestamp


def keep_version(folder: Path, versions: Path, timestamp: datetime) -> Path:
    """Moves a folder among the versions, under its time.

    A version of that time with other content stays, and the folder gets a
    number; one with the same content stands for both.

    Returns:
        Where the version lies.
    """
    versions.mkdir(parents=True, exist_ok=True)
    name = timestamp.strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    place = versions / name
    number = 1
    while place.exists():
        if same_content(place, folder):
            shutil.rmtree(folder)
            return place
        number += 1
        place = versions / f"{name}-{number}"
    _move(folder, place)
    return place


def _move(folder: Path, place: Path) -> None:
    """Moves a folder; fails if another collector was faster."""
    try:
        folder.rename(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.move(folder, place)  # `submitted/` on another disk


def same_content(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files, nbgrader's secret and our receipt
    aside."""
    ours, theirs = _digests(one), _digests(other)
    return ours is not None and ours == theirs


def _digests(folder: Path) -> dict[str, str] | None:
    """Digest by path; None if there is something other than files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            return None
        if path.is_file() and path.name not in (SECRET_FILE, RECEIPT_FILE):
            name = path.relative_to(folder).as_posix()
            found[name] = digest(path)
    return found


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
