"""Feedback as the one archive that a learning management system takes back.

Moodle ("Upload multiple feedback files in a zip") and Canvas ("Upload submissions")
find the learner in the names that they gave when the work was downloaded, so a page
goes back under the name its notebook came with.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from course_grader.classroom.collect_versions import read_receipt
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.private import open_private

# Canvas's numbers of the user and of the upload, or its name for somebody unnamed.
_CANVAS = re.compile(
    r"(?:anon_[A-Za-z0-9]{5}|[^_]+)_(?:LATE_)?(?:\d+_)?\d{3,}_", re.S
)
_MOODLE_FLAT = re.compile(r".+?_\d+_assignsubmission_[a-z]+_", re.S)


@dataclass(frozen=True)
class Packed:
    """What went into the archive.

    Attributes:
        inside: students whose page is in it.
        left_out: those whose work did not come by an archive.
    """

    inside: tuple[str, ...]
    left_out: tuple[str, ...]


def pack_feedback(classroom: Classroom, chapter: str, to: Path) -> Packed:
    """Writes the archive of a chapter's pages.

    Args:
        classroom: the class; its pages are written already.
        chapter: the chapter.
        to: the file to write; one that exists is replaced.
    """
    pages = classroom.folder("feedback", "*", chapter)
    inside, left_out = [], []
    part = to.with_name(f"{to.name}.part")
    part.unlink(missing_ok=True)
    with (
        open_private(part) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for folder in sorted(pages.parent.parent.glob(f"*/{chapter}")):
            student = folder.parent.name
            receipt = read_receipt(
                classroom.folder("submitted", student, chapter)
            )
            page = folder / f"{chapter}.html"
            if receipt is None or not page.is_file():
                left_out.append(student)
                continue
            archive.write(page, name_for(receipt.path, chapter))
            inside.append(student)
    part.replace(to)
    return Packed(tuple(inside), tuple(left_out))


def name_for(path: tuple[str, ...], chapter: str) -> str:
    """The name under which a page goes back to whoever handed in `path`.

    Args:
        path: of the notebook in the archive that it came in.
        chapter: names the page.
    """
    *folders, name = path
    page = f"{chapter}_feedback.html"
    for prefix in (_MOODLE_FLAT, _CANVAS):
        found = prefix.match(name)
        if found and not folders:
            return found[0] + page
    if not folders:
        stem = re.sub(r"\.ipynb(\.txt|\.json)?$", "", name, flags=re.I)
        return f"{stem}_feedback.html"
    return "/".join([*folders, page])
