"""Collects notebooks from what a learning management system lets one download.

That is how learners on Colab hand in. An archive is read entry by entry: no
name in it ever becomes a path on this machine, and no number in it is believed
before the bytes are there. The archive itself is never changed.
"""

from __future__ import annotations

import errno
import io
import itertools
import re
import secrets
import stat
import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from types import MappingProxyType

import yaml
from nbgrader.coursedir import CourseDirectory

from course_grader.classroom.collect_names import (
    Owner,
    Student,
    chapter_of,
    customs_of,
    ids_by_name,
    is_notebook,
    new_student_id,
    num_wrapping_folders,
    owner_of,
)
from course_grader.classroom.collect_times import Times
from course_grader.classroom.collect_tree import (
    LeftOut,
    Limits,
    SafeFile,
    copy_out,
    left_out_sentence,
    printable,
    safe_files,
)
from course_grader.classroom.collect_versions import (
    UNKNOWN,
    Outcome,
    Receipt,
    bad_student_id,
    digest,
    keep_version,
    known_by,
    mark_from_lms,
    put_in_place,
    read_receipt,
    read_timestamp,
    staging,
    submitted_folder,
    versions_folder,
)

_CHUNK_BYTES = 1 << 20
_ENCRYPTED = 0x1
_UTF8_NAME = 0x800
_NO_NOTEBOOK = "not a notebook"
_GRADESCOPE = "submission_metadata.yml"
_SUBMISSION = re.compile(r"submission_\d+")  # one of its folders
# What `zipfile` raises on an entry that is not as it should be.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    RuntimeError,
)


@dataclass(frozen=True)
class ArchiveLimits:
    """How much of one archive, or of one folder, is read.

    Attributes:
        max_entries: an archive with more is not read at all.
        max_file_bytes: unpacked size of one notebook.
        max_total_bytes: unpacked size of all notebooks of an archive.
        max_ratio: unpacked to packed size of a notebook of over 10 MB.
        max_index_bytes: an archive's list of entries, read into memory.
    """

    max_entries: int = 20_000
    max_file_bytes: int = 100_000_000
    max_total_bytes: int = 4_000_000_000
    max_ratio: int = 200
    max_index_bytes: int = 8_000_000


_DEFAULT_LIMITS = ArchiveLimits()
_UNKNOWN_TIMES = Times()


class UnreadableArchive(Exception):
    """An archive or folder that cannot be read at all; says why."""


@dataclass(frozen=True)
class _Found:
    """One file of an archive or folder.

    Attributes:
        parts: its path there, from the top down.
        timestamp: its date there, in UTC without a time zone.
        copy: its content, in the staging folder; None if it was left out.
        why: why it was left out.
    """

    parts: tuple[str, ...]
    timestamp: datetime
    copy: Path | None
    why: str = ""


@dataclass(frozen=True)
class _HandedIn:
    """A notebook whose student is known.

    Attributes:
        timestamp: when it was handed in, in UTC without a time zone; None if
            that is not known.
        version, number: which of two that are not apart in time is newer: what
            the system counts, then the order in which they were found.
        name: the name it was handed in under.
        copy: its content, in the staging folder.
        receipt: how it came.
        certain: a file of times names the time, which a person has asked for.
    """

    timestamp: datetime | None
    version: int
    number: int
    name: str
    copy: Path
    receipt: Receipt
    certain: bool

    @property
    def known_by(self) -> datetime:
        """By when it was handed in."""
        return self.timestamp or self.receipt.as_of

    @property
    def order(self) -> tuple[datetime, int, int]:
        return self.known_by, self.version, self.number


def collect_zip(
    paths: Path | Iterable[Path],
    coursedir: CourseDirectory,
    chapters: Sequence[str],
    students: Iterable[Student],
    *,
    times: Times = _UNKNOWN_TIMES,
    assigned: Mapping[str, str] = MappingProxyType({}),
    add_students: bool = False,
    limits: ArchiveLimits = _DEFAULT_LIMITS,
) -> list[Outcome]:
    """Puts the notebooks of downloaded archives where nbgrader grades them.

    A student's newest notebook of a chapter becomes
    `submitted/STUDENT/CHAPTER/CHAPTER.ipynb`, byte for byte, unless what lies
    there is as new; all others are kept under `versions/`. Contents are not
    looked at. Known forms of names: those of Moodle, Canvas, Brightspace,
    Blackboard, Teams and Gradescope, and `STUDENT/name.ipynb`,
    `STUDENT_name.ipynb`, `STUDENT__name.ipynb`, `CHAPTER_STUDENT.ipynb`.

    Args:
        paths: archives; folders with archives only; folders as unpacked.
        coursedir: the course.
        chapters: all chapters of the course.
        students: the roster, as `collect_names.roster` reads it.
        times: where hand-in times come from.
        assigned: whose a file is whose name does not say it: a student's id by
            the file's name, or by what the name claims. Later downloads of the
            same file are theirs without being told again.
        add_students: also collect for those who are not on the roster, under
            an id made of their name; nbgrader adds them when it grades.
        limits: how much to read.

    Returns:
        One outcome per student and chapter, one more per student of whom
        something was left out, and one per archive that cannot be read.
    """
    given = [paths] if isinstance(paths, Path) else list(paths)
    with staging(coursedir) as work:
        work.mkdir()
        collector = _Collector(
            coursedir,
            list(chapters),
            list(students),
            times,
            assigned,
            add_students,
            work,
        )
        for path in itertools.chain.from_iterable(map(_archives_in, given)):
            try:
                if path.is_dir():
                    found = list(_read_folder(path, work, limits))
                else:
                    found = list(_read_archive(path, work, times.zone, limits))
            except UnreadableArchive as error:
                message = f"{printable(path.name)} is not collected: {error}."
                collector.outcomes.append(
                    Outcome("", "", None, message, True, True)
                )
                continue
            collector.sort_out(found)
        return collector.finish()


class _Collector:
    """What has been found so far, by student."""

    def __init__(
        self,
        coursedir: CourseDirectory,
        chapters: list[str],
        students: list[Student],
        times: Times,
        assigned: Mapping[str, str],
        add_students: bool,
        work: Path,
    ) -> None:
        self.coursedir = coursedir
        self.chapters = chapters
        self.students = students
        self.times = times
        self.assigned = assigned
        self.not_needed = set(assigned)
        self.collected_before = _students_by_path(coursedir)
        self.add_students = add_students
        self.work = work
        self.outcomes: list[Outcome] = []
        self.handed_in: dict[tuple[str, str], list[_HandedIn]]
        self.handed_in = defaultdict(list)
        self.left_out: dict[str, list[LeftOut]] = defaultdict(list)
        self.number = itertools.count()

    def sort_out(self, found: list[_Found]) -> None:
        """Says whose each file of one archive is, and of which chapter."""
        found, named = _gradescope(found)
        wrapping = num_wrapping_folders(
            [one.parts for one in found if one.copy is not None],
            self.students,
            self.chapters,
        )
        customs = customs_of(
            [
                one.parts[wrapping:] or one.parts
                for one in found
                if one.copy is not None
            ]
        )
        owned = []
        for one in found:
            *folders, name = one.parts[wrapping:] or one.parts
            owner = owner_of(
                folders, name, self.students, self.chapters, customs
            )
            if folders and folders[0] in named:
                submitter = named[folders[0]]
                ids = next(
                    filter(
                        None,
                        (
                            ids_by_name(n, self.students)
                            for n in submitter.names
                        ),
                    ),
                    (),
                )
                owner = replace(
                    owner,
                    ids=ids,
                    claimed=submitter.names[-1],
                    when=submitter.when,
                )
            owned.append((one, owner, *self.student_of(owner, one.parts)))

        # Two people whose names fit one student: one may pass for the other.
        people: dict[str, set[str]] = defaultdict(set)
        for _, owner, student, _ in owned:
            if owner.number or not owner.ids:
                people[student].add(owner.number or owner.claimed)
        for one, owner, student, why in owned:
            if student and len(people[student]) > 1:
                why = f"fits {student}, but so does somebody else in there"
                student = ""
            self.sort_in(one, owner, student, why)

    def student_of(
        self, owner: Owner, parts: tuple[str, ...]
    ) -> tuple[str, str]:
        """The student's id, or "" and why nobody is meant for sure."""
        if len(owner.ids) == 1:
            return owner.ids[0], ""
        for known in (parts[-1], owner.claimed):
            if known in self.assigned:
                self.not_needed.discard(known)
                return self.assigned[known], ""
        before = self.collected_before.get(parts, set())
        if len(before) == 1:
            return next(iter(before)), ""
        if owner.ids:
            return "", f"fits several students: {', '.join(owner.ids)}"
        if not owner.claimed:
            return "", "does not say whose it is"
        if not self.add_students:
            return "", "is nobody on the roster"
        student = new_student_id(owner.claimed)
        why = bad_student_id(student)
        if why:
            return "", f"is nobody on the roster and cannot be added: {why}"
        return student, ""

    def sort_in(
        self, one: _Found, owner: Owner, student: str, why: str
    ) -> None:
        if one.copy is None:
            self.left_out[student or printable(owner.claimed)].append(
                LeftOut(one.parts, one.why)
            )
            return
        chapter = chapter_of(owner.file_name, self.chapters)
        if student and chapter:
            self.handed_in[student, chapter].append(
                _HandedIn(
                    self.times.handed_in(owner, student, one.timestamp),
                    owner.version,
                    next(self.number),
                    printable(owner.file_name),
                    one.copy,
                    Receipt(one.parts, one.timestamp, owner.late),
                    self.times.in_file(owner, student) is not None,
                )
            )
            return
        self.keep_unknown(one, owner, student, chapter, why)

    def keep_unknown(
        self,
        one: _Found,
        owner: Owner,
        student: str,
        chapter: str | None,
        why: str,
    ) -> None:
        """Keeps a notebook that cannot be graded, and says so."""
        assert one.copy is not None
        name = printable(owner.file_name)
        if student:
            example = f"{self.chapters[0]}.ipynb"
            versions = versions_folder(self.coursedir, student, UNKNOWN)
            said = (
                f"{name} has the name of no chapter of this course (unpack the "
                f"archive, name the file like its chapter, as {example}, and "
                "collect that folder)"
            )
        else:
            claimed = new_student_id(owner.claimed) or UNKNOWN
            versions = versions_folder(self.coursedir, UNKNOWN, claimed)
            subject = printable(owner.claimed) or name
            said = f"{subject} {why}"
        folder = self.new_folder()
        stem = new_student_id(Path(owner.file_name).stem) or "notebook"
        one.copy.rename(folder / f"{stem}.ipynb")
        kept = keep_version(folder, versions, one.timestamp)
        where = kept.relative_to(self.coursedir.root)
        who = student or printable(owner.claimed)
        message = f"{said}; not graded, but kept in {where}."
        self.outcomes.append(Outcome(who, chapter or "", None, message, True))

    def new_folder(self) -> Path:
        folder = self.work / f"folder-{next(self.number)}"
        folder.mkdir()
        return folder

    def finish(self) -> list[Outcome]:
        """Puts everything in its place; returns what became of it."""
        for name in self.not_needed:
            message = (
                f"--assign {name}: no file has this name, or it says already "
                "whose it is."
            )
            self.outcomes.append(Outcome("", "", None, message, True))
        for (student, chapter), handed_in in self.handed_in.items():
            try:
                outcome = self.place(student, chapter, handed_in)
            except OSError as error:
                why = error.strerror or str(error)
                message = f"The submission cannot be stored: {why}."
                outcome = Outcome(student, chapter, None, message, True)
            self.outcomes.append(outcome)
        collected = {one.student for one in self.outcomes if one.path}
        for student, left_out in self.left_out.items():
            message = left_out_sentence(left_out)
            harmless = student in collected and all(
                one.why == _NO_NOTEBOOK for one in left_out
            )
            self.outcomes.append(
                Outcome(student, "", None, message, not harmless)
            )
        return sorted(self.outcomes, key=lambda o: (o.student, o.chapter))

    def place(
        self, student: str, chapter: str, handed_in: list[_HandedIn]
    ) -> Outcome:
        """Puts a student's newest notebook of a chapter where it is graded."""
        versions = versions_folder(self.coursedir, student, chapter)
        submitted = submitted_folder(self.coursedir, student, chapter)
        notebook = submitted / f"{chapter}.ipynb"
        known = {digest(path) for path in versions.glob("*/*.ipynb")}
        existing = digest(notebook) if notebook.is_file() else ""

        *older, newest = sorted(handed_in, key=lambda one: one.order)
        newest_digest = digest(newest.copy)
        num_kept = 0
        for one in older:
            content = digest(one.copy)
            if content not in known | {existing, newest_digest}:
                self.keep(one, chapter, versions)
                known.add(content)
                num_kept += 1

        when = "at an unknown time"
        if newest.timestamp is not None:
            when = self.times.said(newest.timestamp)
        remark = (
            " The learning management system marks it as late."
            if newest.receipt.late
            else ""
        )
        if newest_digest == existing:
            said = f"Already collected: {newest.name}."
            before = read_timestamp(submitted)
            if self.learn(submitted, newest):
                news = "known" if before is None else "corrected"
                said += f" Its time is {news} now: handed in {when}."
            elif before is not None and self.times.of_all not in (None, before):
                said += (
                    f" Its time stays {self.times.said(before)}: a CSV file with "
                    "--handed-in corrects it."
                )
            return Outcome(student, chapter, notebook, said + remark)
        if existing and newest.known_by <= known_by(submitted):
            if newest_digest in known:
                message = f"Already kept as an older version: {newest.name}."
                return Outcome(student, chapter, notebook, message + remark)
            kept = self.keep(newest, chapter, versions)
            where = kept.relative_to(self.coursedir.root)
            message = (
                f"{newest.name}, handed in {when}, is not newer than what is "
                f"already collected; not graded, but kept in {where}."
            )
            return Outcome(student, chapter, notebook, message + remark, True)

        replaced = put_in_place(
            self.as_submission(newest, chapter), submitted, versions
        )
        message = f"Collected {newest.name}, handed in {when}."
        num_kept += replaced is not None
        if num_kept:
            where = versions.relative_to(self.coursedir.root)
            message += f" Older versions are kept in {where}."
        return Outcome(student, chapter, notebook, message + remark)

    def learn(self, submitted: Path, again: _HandedIn) -> bool:
        """Notes what a later download says about work that lies there already:
        a time that was not known, or that a file of times corrects; names under
        which feedback goes back. Whether there is another time now."""
        receipt, timestamp = read_receipt(submitted), read_timestamp(submitted)
        if receipt is None and timestamp is not None:
            return False  # it came through the exchange, which knows its time
        newly = again.timestamp not in (None, timestamp) and (
            timestamp is None or again.certain
        )
        if newly or receipt is None:
            mark_from_lms(submitted, again.timestamp, again.receipt)
        return newly

    def as_submission(self, one: _HandedIn, chapter: str) -> Path:
        folder = self.new_folder()
        one.copy.rename(folder / f"{chapter}.ipynb")
        mark_from_lms(folder, one.timestamp, one.receipt)
        return folder

    def keep(self, one: _HandedIn, chapter: str, versions: Path) -> Path:
        made = self.as_submission(one, chapter)
        return keep_version(made, versions, one.known_by)


def _students_by_path(
    coursedir: CourseDirectory,
) -> dict[tuple[str, ...], set[str]]:
    """Whose work came from which path of an archive."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    pattern = submitted_folder(coursedir, "*", "*")
    for folder in pattern.parent.parent.glob("*/*"):
        if (receipt := read_receipt(folder)) is not None:
            found[receipt.path].add(folder.parent.name)
    return found


@dataclass(frozen=True)
class _Submitter:
    """Whose a folder of a Gradescope export is.

    Attributes:
        names: the student number, e-mail address and name; those it has.
        when: when it was handed in.
    """

    names: tuple[str, ...]
    when: datetime | None


def _gradescope(
    found: list[_Found],
) -> tuple[list[_Found], dict[str, _Submitter]]:
    """Splits Gradescope's list of submitters off: its folders are numbers, and
    one YAML file beside them says whose they are."""
    lists = [one for one in found if one.parts[-1] == _GRADESCOPE]
    rest = [one for one in found if one.parts[-1] != _GRADESCOPE]
    named: dict[str, _Submitter] = {}
    for one in lists:
        # beside all submissions: a learner's file of that name lies in one
        beside = one.parts[:-1]
        if one.copy is None or not all(
            other.parts[: len(beside)] == beside
            and _SUBMISSION.fullmatch(other.parts[len(beside)])
            for other in rest
        ):
            continue
        try:
            tree = yaml.safe_load(one.copy.read_text(encoding="utf-8"))
            for folder, entry in tree.items():
                who = entry[":submitters"][0]
                names = tuple(
                    str(who[key])
                    for key in (":sid", ":email", ":name")
                    if isinstance(who.get(key), (str, int)) and who[key]
                )
                when = entry.get(":created_at")
                if names:
                    named[str(folder)] = _Submitter(
                        names, when if isinstance(when, datetime) else None
                    )
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            continue  # no YAML
        except (AttributeError, LookupError, TypeError):
            continue  # not of Gradescope's form
    return rest, named


def _archives_in(path: Path) -> list[Path]:
    """The archives of a folder that holds nothing else; else the path."""
    if not path.is_dir():
        return [path]
    inside = sorted(p for p in path.iterdir() if not _is_junk((p.name,)))
    archives = [
        p
        for p in inside
        if p.suffix.lower() == ".zip" and p.is_file() and not p.is_symlink()
    ]
    return archives if archives and archives == inside else [path]


def _read_folder(
    folder: Path, work: Path, limits: ArchiveLimits
) -> Iterator[_Found]:
    """The files of a folder, as somebody unpacked an archive."""
    most = Limits(
        max_file_bytes=limits.max_file_bytes,
        max_total_bytes=limits.max_total_bytes,
        max_files=limits.max_entries,
    )
    try:
        for one in safe_files(folder.resolve(), most):
            if _is_junk(one.parts):
                continue
            if isinstance(one, LeftOut):
                yield _Found(one.parts, datetime.min, None, one.why)
                continue
            yield _from_folder(one, work)
    except OSError as error:
        raise UnreadableArchive(error.strerror) from error


def _from_folder(one: SafeFile, work: Path) -> _Found:
    latest_s = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
    changed_s = min(max(one.modified_ns / 1e9, 0), latest_s)
    changed = datetime.fromtimestamp(changed_s, UTC)
    timestamp = changed.replace(tzinfo=None)
    why = _objection_to_name(one.parts[-1])
    if why:
        return _Found(one.parts, timestamp, None, why)
    copy = _new_file(work)
    try:
        copy_out(one, copy)
    except OSError as error:
        why = f"cannot be copied: {error.strerror}"
        return _Found(one.parts, timestamp, None, why)
    return _Found(one.parts, timestamp, copy)


def _read_archive(
    path: Path, work: Path, timezone: tzinfo | None, limits: ArchiveLimits
) -> Iterator[_Found]:
    """The files of an archive."""
    try:
        file = _Archive(path, limits.max_index_bytes)
    except OSError as error:
        raise UnreadableArchive(error.strerror) from error
    with file:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        try:
            archive = zipfile.ZipFile(file)
        except UnicodeDecodeError:
            why = (
                "a name in it is not the UTF-8 that it says it is; unpack it "
                "and collect the folder"
            )
            raise UnreadableArchive(why) from None
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            why = (
                f"it is no zip archive, or damaged ({error}); download it again"
            )
            raise UnreadableArchive(why) from error
        except (OSError, struct.error) as error:
            why = "it is damaged; download it again"
            raise UnreadableArchive(why) from error
        with archive:
            entries = archive.infolist()
            if len(entries) > limits.max_entries:
                why = f"it has more than {limits.max_entries} entries"
                raise UnreadableArchive(why)
            promised = file.num_promised()
            if promised != len(entries) % 2**16:
                why = f"holds {len(entries)} entries, but should {promised}"
                yield _Found((path.name,), datetime.min, None, why)
            total_bytes = 0
            for entry in entries:
                parts, why = _parts_of(entry)
                if _is_junk(parts) or entry.is_dir():
                    continue
                timestamp = _entry_time(entry, timezone, changed)
                why = why or _objection(entry, parts[-1], limits)
                if not why and (
                    total_bytes + entry.file_size > limits.max_total_bytes
                ):
                    why = "the archive unpacks to too much"
                if why:
                    yield _Found(parts, timestamp, None, why)
                    continue
                copy = _new_file(work)
                why = _unpack(archive, entry, copy)
                if why:
                    yield _Found(parts, timestamp, None, why)
                    continue
                total_bytes += entry.file_size
                yield _Found(parts, timestamp, copy)


class _Archive(io.BufferedReader):
    """An archive's bytes; refuses to read very many at once.

    `zipfile` reads the list of entries in one piece, of a length that the
    archive names.
    """

    def __init__(self, path: Path, max_read_bytes: int) -> None:
        super().__init__(io.FileIO(path))
        self.max_read_bytes = max_read_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = self.max_read_bytes
        if size > self.max_read_bytes:
            raise UnreadableArchive("its list of entries is too long")
        return super().read(size)

    def num_promised(self) -> int:
        """The number of entries, modulo 2^16, that the archive's end names.

        `zipfile` does not compare: one damaged byte can hide entries.
        """
        end = min(self.seek(0, io.SEEK_END), 22 + 2**16)
        self.seek(-end, io.SEEK_END)
        tail = self.read(end)
        record = tail[tail.rfind(b"PK\5\6") :]
        return int.from_bytes(record[10:12], "little")


def _parts_of(entry: zipfile.ZipInfo) -> tuple[tuple[str, ...], str]:
    """An entry's path from the top down, and why it is left out, if it is."""
    name = entry.orig_filename
    if not entry.flag_bits & _UTF8_NAME:
        # Many programs write UTF-8 without saying so; `zipfile` took it for
        # the code page of the first PCs.
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = entry.orig_filename
    path = name.replace("\\", "/")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or path[1:2] == ":":
        return (name,), "an absolute path"
    if ".." in parts:
        return (name,), "a path that climbs out of the archive"
    if "\0" in name or not parts or max(map(len, parts)) > 255:
        return (name,), "a name that no file has"
    return parts, ""


def _objection(entry: zipfile.ZipInfo, name: str, limits: ArchiveLimits) -> str:
    """Why an entry is not unpacked; empty if it is."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "a symbolic link"
    if kind not in (0, stat.S_IFREG):
        return "not a regular file"
    why = _objection_to_name(name)
    if why:
        return why
    if entry.flag_bits & _ENCRYPTED:
        return "encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "packed in a way that is not read here"
    most = limits.max_file_bytes
    if name == _GRADESCOPE:
        most = min(most, 2_000_000)
    if entry.file_size > most:
        return f"unpacks to more than {most / 1e6:g} MB"
    ratio = entry.file_size / max(entry.compress_size, 1)
    if entry.file_size > 10_000_000 and ratio > limits.max_ratio:
        return f"unpacks to more than {limits.max_ratio} times its size"
    return ""


def _objection_to_name(name: str) -> str:
    if is_notebook(name) or name == _GRADESCOPE:
        return ""
    if name.lower().endswith((".zip", ".7z", ".rar", ".tar", ".gz", ".tgz")):
        return "an archive by itself"
    return _NO_NOTEBOOK


def _unpack(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, copy: Path
) -> str:
    """Writes an entry's content; returns why it cannot be had, or "".

    `zipfile` reads no more than the size that the entry names; the check sum
    at the end shows whether that was all.
    """
    why = ""
    try:
        with archive.open(entry) as packed, open(copy, "xb") as out:
            while chunk := packed.read(_CHUNK_BYTES):
                out.write(chunk)
    except OSError as error:
        why = "damaged"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = f"cannot be stored: {error.strerror}"
    except _DAMAGE:
        why = "damaged"
    if why:
        copy.unlink(missing_ok=True)
    return why


def _entry_time(
    entry: zipfile.ZipInfo, timezone: tzinfo | None, fallback: datetime
) -> datetime:
    """When an entry was last changed, in UTC without a time zone.

    Archives made on Unix hold it in UTC (Info-ZIP's extended timestamp,
    appnote 4.5.7 field 0x5455); else it is in the maker's time zone, which is
    not named, to two seconds. An entry without a date has the fallback's.
    """
    extra = entry.extra
    while len(extra) >= 4:
        field, length = struct.unpack("<HH", extra[:4])
        body, extra = extra[4 : 4 + length], extra[4 + length :]
        if field == 0x5455 and len(body) >= 5 and body[0] & 1:
            (seconds,) = struct.unpack("<i", body[1:5])
            if seconds > 0:
                at = datetime.fromtimestamp(seconds, UTC)
                return at.replace(tzinfo=None)
    try:
        local = datetime(*entry.date_time)
    except ValueError:
        local = datetime.min
    if local <= datetime(1980, 1, 1):  # what programs write that know no date
        return fallback.replace(tzinfo=None)
    if timezone is not None:
        local = local.replace(tzinfo=timezone)
    return local.astimezone(UTC).replace(tzinfo=None)


def _is_junk(parts: tuple[str, ...]) -> bool:
    """Whether an operating system or Jupyter put it there, not a learner."""
    return (
        "__MACOSX" in parts
        or ".ipynb_checkpoints" in parts
        or parts[-1:] in ((".DS_Store",), ("Thumbs.db",), ("desktop.ini",))
        or any(part.startswith("._") for part in parts[-1:])
    )


def _new_file(work: Path) -> Path:
    """A path in the staging folder that is not taken."""
    return work / f"file-{secrets.token_hex(8)}"
