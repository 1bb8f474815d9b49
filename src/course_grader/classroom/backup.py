"""Backs a class up into one file, and puts it back.

The file holds the gradebook's rows, from whatever database they are in, as an
SQLite database, and the folders in which nbgrader keeps people's work. So a class can
also move from SQLite to PostgreSQL, or back.
"""

from __future__ import annotations

import lzma
import re
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path

from nbgrader.api import Base, Gradebook
from sqlalchemy import Engine, create_engine, func, insert, select

from course_grader.classroom import attempts, audit, term
from course_grader.classroom.lms_exchange import SENT
from course_grader.classroom.named_files import writing
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.private import (
    open_private,
    private_folder,
    write_private,
)
from course_grader.course import CourseError
from course_grader.needs import disk_is_full

ROWS = "gradebook.db"
_DAMAGE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)
"""What reading an archive raises that is none, or not whole."""
STEPS = ("source", "release", "submitted", "autograded", "feedback")
"""nbgrader's folders; `versions` has what was handed in before."""


def backup(classroom: Classroom, to: Path) -> int:
    """Writes the class into one file.

    Returns:
        How many submissions it holds.

    Raises:
        CourseError: the file exists already, or its folder does not.
    """
    if to.exists():
        raise CourseError(f"{to} exists already: name a file that does not.")
    coursedir = classroom.coursedir
    with writing(to), tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / ROWS
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            number = sum(one.num_submissions for one in gradebook.assignments)
            made = create_engine(f"sqlite:///{rows}")
            Base.metadata.create_all(made)
            _copy_rows(gradebook.db.get_bind(), made)
            made.dispose()
        # under another name until it is whole
        part = to.with_name(f"{to.name}.part")
        part.unlink(missing_ok=True)
        with (
            open_private(part) as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            archive.add(rows, ROWS)
            for name, path in _folders(classroom).items():
                if path.is_dir():
                    archive.add(path, name)
            for beside in _files(classroom):
                if beside.is_file():
                    archive.add(beside, beside.name)
        part.replace(to)
    return number


def restore(classroom: Classroom, source: Path) -> int:
    """Puts a backup into a course that has no class yet.

    Returns:
        How many submissions the gradebook holds now.

    Raises:
        CourseError: it is no backup, or there is a class already.
    """
    coursedir = classroom.coursedir
    try:
        archive = tarfile.open(source)  # noqa: SIM115
    except OSError as error:
        why = error.strerror or str(error)
        raise CourseError(f"{source} cannot be read: {why}.") from error
    except _DAMAGE as error:
        raise CourseError(
            f"{source} is no backup of a class, or damaged: give a file that "
            "`course backup` wrote."
        ) from error
    with archive, tempfile.TemporaryDirectory() as folder:
        try:
            archive.extractall(folder, filter="data")
        except (*_DAMAGE, OSError) as error:
            if disk_is_full(error):
                raise
            raise CourseError(
                f"{source} is damaged, perhaps cut short when it was copied: "
                "nothing was restored. Copy it once more, or take another "
                "backup."
            ) from error
        rows = Path(folder) / ROWS
        if not rows.is_file():
            raise CourseError(f"{source} is no backup of a class.")
        places = {
            name: path
            for name, path in _folders(classroom).items()
            if (Path(folder) / name).is_dir()
        }
        for path in places.values():
            if path.exists() and any(path.iterdir()):
                raise CourseError(
                    f"{path} holds something already: a backup goes into a "
                    "course without a class. Move it away first."
                )
        with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
            engine = gradebook.db.get_bind()
            if gradebook.students or gradebook.assignments:
                raise CourseError(
                    "The gradebook holds a class already: a backup goes into "
                    "an empty one."
                )
            gradebook.db.rollback()
            kept = create_engine(f"sqlite:///{rows}")
            _copy_rows(kept, engine)
            kept.dispose()
            number = sum(one.num_submissions for one in gradebook.assignments)
        for name, path in places.items():
            private_folder(path)
            shutil.copytree(Path(folder) / name, path, dirs_exist_ok=True)
            if name == "inbound":
                path.chmod(0o733)  # nbgrader's own: all write, nobody lists
        for file in _files(classroom):
            kept_file = Path(folder) / file.name
            if kept_file.is_file():
                write_private(file, kept_file.read_text(encoding="utf-8"))
    return number


def _folders(classroom: Classroom) -> dict[str, Path]:
    """Where people's work lies, by name."""
    coursedir = classroom.coursedir
    found = {
        step: Path(coursedir.root) / getattr(coursedir, f"{step}_directory")
        for step in STEPS
    }
    return {
        **found,
        "versions": Path(coursedir.root) / "versions",
        "attempts": Path(coursedir.root) / attempts.FOLDER,
        # what was handed in and not collected yet
        "inbound": inbound(classroom),
    }


def _files(classroom: Classroom) -> list[Path]:
    """What stands beside the gradebook: extensions, who changed which mark, what
    an LMS has."""
    root = Path(classroom.coursedir.root)
    return [root / term.EXTENSIONS, root / audit.FILE, root / SENT]


def new_term(classroom: Classroom, name: str) -> Path:
    """Puts the class away and begins an empty one. Nothing is deleted.

    Args:
        classroom: the class that ends.
        name: of its folder in `archive/`.

    Returns:
        Where the class is now.

    Raises:
        CourseError: the name is taken or no folder's, or the gradebook is not a
            file of the class's folder.
    """
    course = classroom.course
    if not re.fullmatch(r"\w[\w. -]{0,60}", name):
        raise CourseError(f"{name!r} is no name for a folder.")
    kept = course.root / "archive" / name
    if kept.exists():
        raise CourseError(f"{kept} exists already: take another name.")
    url = classroom.coursedir.db_url
    if not url.startswith("sqlite:///"):
        raise CourseError(
            "The gradebook is in a database of its own: `course backup` the "
            "class, name an empty database in course.toml, then move "
            f"{course.people} to {kept}."
        )
    private_folder(kept.parent)
    course.people.rename(kept)
    return kept


def inbound(classroom: Classroom) -> Path:
    """Where the exchange keeps what learners submit."""
    root = Path(classroom.config.Exchange.root)
    return root / classroom.coursedir.course_id / "inbound"


def _copy_rows(source: Engine, target: Engine) -> None:
    """Every row of every table, in an order in which references hold. Rows that
    nbgrader makes in an empty gradebook give way."""
    with source.connect() as read, target.begin() as write:
        tables = Base.metadata.sorted_tables
        for table in reversed(tables):
            if write.scalar(select(func.count()).select_from(table)):
                write.execute(table.delete())
        for table in tables:
            rows = [dict(row) for row in read.execute(select(table)).mappings()]
            if rows:
                write.execute(insert(table), rows)
