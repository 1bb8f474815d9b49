"""When work was handed in that came by a learning management system's archive.

Canvas and Moodle write the moment of the download as the date of every entry, so
those dates say nothing. The time is unknown unless the instructor says where it
stands: in a CSV file of the system's, in the archive itself, or that all of it was
handed in by one moment.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from dateutil import parser

from course_grader.classroom.collect_names import Owner, Student, ids_by_name
from course_grader.classroom.named_files import read_csv
from course_grader.course import CourseError

_WHO = (
    "student",
    "id",
    "id number",
    "email address",
    "email",
    "sis login id",
    "username",
    "full name",
    "name",
)
_WHEN = (
    "handed_in",
    "last modified (submission)",
    "submitted_at",
    "submitted at",
    "submission time",
    "timestamp",
)
_PARTICIPANT = re.compile(r"\D+(\d+)")  # Moodle's "Participant 17"


@dataclass(frozen=True)
class Times:
    """Where hand-in times come from.

    Attributes:
        zone: of every time that names none.
        of_entries: the archive's own dates are believed.
        of_all: the moment by which everything was handed in; None if each has
            its own.
        by_student: from a file, in UTC; by the student's id.
        by_number: the same, by Moodle's number of the participant.
        strangers: whom the file names, and nobody on the roster is called so.
    """

    zone: tzinfo | None = None
    of_entries: bool = False
    of_all: datetime | None = None
    by_student: dict[str, datetime] | None = None
    by_number: dict[str, datetime] | None = None
    strangers: tuple[str, ...] = ()

    def handed_in(
        self, owner: Owner, student: str, entry: datetime
    ) -> datetime | None:
        """When one file was handed in, in UTC without a time zone; None if
        nothing says so.

        Args:
            owner: what the file's name says.
            student: whose it is.
            entry: the date of the archive's entry, in UTC without a zone.
        """
        in_file = self.in_file(owner, student)
        if in_file is not None:
            return in_file
        if self.of_all is not None:
            return self.of_all
        if owner.when is not None:
            return self.in_utc(owner.when)
        return entry if self.of_entries else None

    def in_file(self, owner: Owner, student: str) -> datetime | None:
        """When a file of times says that it was handed in, as `handed_in`."""
        for known, key in (
            (self.by_number, owner.number),
            (self.by_student, student),
        ):
            if known and key in known:
                return known[key]
        return None

    def said(self, moment: datetime) -> str:
        """A moment in UTC as people read it: in the course's time zone."""
        local = moment.replace(tzinfo=UTC).astimezone(self.zone)
        return f"{local:%Y-%m-%d %H:%M:%S %Z}"

    def in_utc(self, moment: datetime) -> datetime:
        """A moment in UTC, without a time zone."""
        if moment.tzinfo is None and self.zone is not None:
            moment = moment.replace(tzinfo=self.zone)
        return moment.astimezone(UTC).replace(tzinfo=None)


def parse_handed_in(
    said: str | None, students: Sequence[Student], zone: tzinfo | None
) -> Times:
    """What `--handed-in` says: "zip", a CSV file, or a moment.

    A CSV file has one column that names the student (such as `student`, `ID
    number`, `Email address` or `Full name`, or `Identifier`, as Moodle's grading
    worksheet) and one with the time (`handed_in`, `submitted_at`, or `Last
    modified (submission)`).

    Args:
        said: the option; None if it was not given.
        students: the roster.
        zone: of times that name none.

    Raises:
        CourseError: it is none of the three, or the file cannot be used.
    """
    times = Times(zone)
    if said is None:
        return times
    if said == "zip":
        return Times(zone, of_entries=True)
    if said.lower().endswith(".csv") or Path(said).is_file():
        return _from_csv(Path(said), students, times)
    try:
        return Times(zone, of_all=times.in_utc(datetime.fromisoformat(said)))
    except ValueError:
        raise CourseError(
            f"--handed-in {said}: write zip, the name of a CSV file, or a "
            'moment such as "2026-12-01 18:00".'
        ) from None


def _from_csv(path: Path, students: Sequence[Student], times: Times) -> Times:
    text = read_csv(path)
    # a worksheet has a column for what learners wrote, of any length
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    rows = csv.DictReader(io.StringIO(text))
    columns = {name.strip().casefold(): name for name in rows.fieldnames or ()}
    when = _first(columns, _WHEN)
    who = _first(columns, _WHO)
    number = columns.get("identifier")
    if when is None or (who is None and number is None):
        raise CourseError(
            f"{path} needs a column that names the student ({', '.join(_WHO)} "
            f"or identifier) and one with the time ({', '.join(_WHEN)})."
        )
    by_student: dict[str, datetime] = {}
    by_number: dict[str, datetime] = {}
    strangers = []
    for line, row in enumerate(rows, start=2):
        written = (row[when] or "").strip()
        if written in ("", "-"):  # handed nothing in
            continue
        moment = times.in_utc(_moment(written, path, line))
        participant = _PARTICIPANT.fullmatch((number and row[number]) or "")
        if participant:
            by_number[participant[1]] = moment
        ids = ids_by_name(row[who] or "", students) if who else ()
        if len(ids) == 1:
            by_student[ids[0]] = moment
        elif not participant:
            strangers.append((row[who] if who else "") or f"in line {line}")
    return Times(
        times.zone,
        by_student=by_student,
        by_number=by_number,
        strangers=tuple(strangers),
    )


def _moment(written: str, path: Path, line: int) -> datetime:
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        pass
    try:
        # what is missing, or can be read in two ways, makes a difference
        readings = {
            parser.parse(written, default=default, dayfirst=day_first)
            for default in (datetime(2001, 1, 1), datetime(2002, 2, 2))
            for day_first in (False, True)
        }
    except (ValueError, OverflowError):
        readings = set()
    if len(readings) == 1:
        return readings.pop()
    raise CourseError(
        f"{path}, line {line}: {written!r} is no time that is understood here. "
        'Write such as "2026-12-01 18:00" (in Moodle, download the worksheet '
        "in English)."
    )


def _first(columns: dict[str, str], wanted: Sequence[str]) -> str | None:
    return next((columns[one] for one in wanted if one in columns), None)
