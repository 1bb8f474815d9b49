"""Files that a person names on the command line: what is wrong is said in a
sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from course_grader.course import CourseError
from course_grader.needs import disk_is_full


def read_csv(path: Path) -> str:
    """The text of a CSV file.

    Raises:
        CourseError: it cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CourseError(
            f"{path} cannot be read: it is no UTF-8 text. Save it once more "
            'as "CSV UTF-8" (in Excel a type of file, in LibreOffice the '
            "character set UTF-8)."
        ) from error
    except OSError as error:
        raise CourseError(
            f"{path} cannot be read: {error.strerror}."
        ) from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around what writes a file or into a folder.

    Raises:
        CourseError: it cannot be written there.
    """
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise
        target, why = path.absolute(), error.strerror
        failed = Path(error.filename or path).absolute()
        # it, what becomes it, what is in it, or a folder that it is in
        if target.parent != failed.parent and not (
            target in failed.parents or failed in target.parents
        ):
            raise CourseError(f"{failed}: {why}.") from error
        if not target.parent.exists():
            why = f"there is no folder {target.parent}"
        raise CourseError(f"{path} cannot be written: {why}.") from error
