"""Says whose work a file is and of which chapter, from its name alone.

Learning management systems and browsers rename what learners hand in: folders
and files get the learner's name and numbers, "Copy of" comes in front, "(1)"
behind, blanks for underscores. What a system put there is believed before what
the learner may have chosen: the outermost folder, the beginning of the name.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # imported late: who grades one file needs no gradebook, which takes a second
    from nbgrader.coursedir import CourseDirectory

# "First Last_123456_assignsubmission_file_", a folder or the beginning of a
# file's name; the number belongs to the participant in this assignment only.
_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)", re.S
)
# "lastfirst_LATE_12345_67890_name.ipynb": the user's and the upload's number.
_CANVAS = re.compile(
    r"(?P<name>[^_]+)_(?:(?P<late>LATE)_)?(?P<user>\d+)_\d{3,}_(?P<file>.+)",
    re.S,
)
# "anon_a1B2c_67890_name.ipynb": who it is, Canvas alone knows.
_CANVAS_ANONYMOUS = re.compile(
    r"(?P<name>anon_[A-Za-z0-9]{5})_(?:(?P<late>LATE)_)?\d{3,}_(?P<file>.+)",
    re.S,
)
# Brightspace: "12345-67890 - First Last - Nov 22, 2026 605 PM", a folder or the
# beginning of a file's name.
_BRIGHTSPACE = re.compile(
    r"(?P<number>\d+)-\d+ ?- ?(?P<name>.+?) ?- ?"
    r"(?P<when>[A-Z][a-z]{2,8} \d{1,2}, \d{4} \d{3,4} [AP]M)"
    r"(?: ?- ?(?P<file>.+))?",
    re.S,
)
# Blackboard: "Homework 3_jdoe_attempt_2026-11-22-18-05-33_name.ipynb".
_BLACKBOARD = re.compile(
    r"(?P<before>.+?)_attempt_(?P<when>\d{4}(?:-\d\d){5})_(?P<file>.+)",
    re.S,
)
# Teams keeps what was turned in before: ".../First Last/Homework/Version 2/".
_TEAMS_VERSION = re.compile(r"Version (\d{1,4})")
_NOTEBOOK = re.compile(r"(?P<stem>.*)\.ipynb(?:\.txt|\.json)?", re.S | re.I)
# How Google Drive begins the name of a copy, in some of its languages.
_COPY_OF = frozenset(
    [
        ("copy", "of"),
        ("kopie", "von"),
        ("kopie", "van"),
        ("copie", "de"),
        ("copia", "de"),
        ("copia", "di"),
        ("cópia", "de"),
    ]
)


@dataclass(frozen=True)
class Student:
    """One line of the roster, as nbgrader's gradebook has it.

    Attributes:
        id: what names the student's folder in `submitted/`.
        first_name, last_name, email: empty if not known.
        lms_user_id: the number or name in the learning management system;
            empty if not known.
    """

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""


@dataclass(frozen=True)
class Owner:
    """Whose work a file is, as far as its name says.

    Attributes:
        ids: the students of the roster that may be meant; sure if it is one.
        claimed: what the name says; empty if it names nobody.
        number: what tells two people of that name apart, if the name says it.
        file_name: the name without what was put before it.
        late: marked as late by the learning management system.
        when: when it was handed in, on the system's clock, without its time
            zone; None if the name does not say.
        version: counts what one learner turned in for one task.
    """

    ids: tuple[str, ...]
    claimed: str
    number: str
    file_name: str
    late: bool = False
    when: datetime | None = None
    version: int = 0


@dataclass(frozen=True)
class Customs:
    """What the names of an archive show together, and none of them alone: a learner
    chooses the end of one name, never all of them.

    Attributes:
        groups: what stands before learners' names in Moodle's folders, hyphen
            included: the name of a group.
        blackboard: Blackboard made it.
    """

    groups: frozenset[str] = frozenset()
    blackboard: bool = False


NO_CUSTOMS = Customs()


def customs_of(notebooks: Sequence[tuple[str, ...]]) -> Customs:
    """What an archive's names show together.

    Args:
        notebooks: the paths of all its notebooks, from the top down, less outer
            folders that hold everything.
    """
    people: dict[str, set[str]] = {}
    for path in notebooks:
        moodle = _MOODLE.fullmatch(path[0])
        # Moodle itself leaves no underscore in what it puts before the number
        if moodle and "_" not in moodle["name"]:
            name = moodle["name"]
            for hyphen in re.finditer("-", name):
                people.setdefault(name[: hyphen.end()], set()).add(name)
    blackboard = bool(notebooks) and all(
        len(path) == 1
        and _BLACKBOARD.fullmatch(path[0])
        and not _CANVAS.fullmatch(path[0])
        for path in notebooks
    )
    return Customs(
        # one alone may be half of a first name
        frozenset(group for group, of in people.items() if len(of) > 1),
        blackboard,
    )


def roster(coursedir: CourseDirectory) -> list[Student]:
    """The students of the course's gradebook; none if it has no gradebook."""
    sqlite = re.fullmatch(r"sqlite:///(.+)", coursedir.db_url)
    if sqlite and not Path(sqlite[1]).is_file():
        return []  # opening it would make one
    from nbgrader.api import Gradebook

    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return [
            Student(
                id=one.id,
                first_name=one.first_name or "",
                last_name=one.last_name or "",
                email=one.email or "",
                lms_user_id=one.lms_user_id or "",
            )
            for one in gradebook.students
        ]


def is_notebook(file_name: str) -> bool:
    """Whether the name is a notebook's; browsers add .txt or .json."""
    return _NOTEBOOK.fullmatch(file_name) is not None


def chapter_of(file_name: str, chapters: Iterable[str]) -> str | None:
    """The chapter whose notebook has this name; None if none has or several.

    The name must hold the chapter's number and words in order ("Copy of 03
    one-hot and losses (1).ipynb"), or be its words alone or its number alone,
    less what marks a copy.
    """
    words = _words(_stem(file_name))
    bare = _without_copy_marks(words)
    found = []
    for chapter in chapters:
        title = _words(chapter)
        starts = range(len(words) - len(title) + 1)
        if any(_same(words[i : i + len(title)], title) for i in starts):
            found.append((len(title), chapter))
        elif (bare and bare == title[1:]) or _same(bare, title[:1]):
            found.append((0, chapter))
    longest = max((length for length, _ in found), default=0)
    matches = [chapter for length, chapter in found if length == longest]
    return matches[0] if len(matches) == 1 else None


def num_wrapping_folders(
    notebooks: Sequence[tuple[str, ...]],
    students: Iterable[Student],
    chapters: Sequence[str],
) -> int:
    """How many outer folders hold everything and say nothing of a student.

    Args:
        notebooks: the paths of all notebooks of an archive, from the top down.
    """
    known = list(students)
    number = 0
    while notebooks:
        outer = {path[0] for path in notebooks if len(path) > 1}
        if len(outer) != 1 or any(len(path) == 1 for path in notebooks):
            break
        name = outer.pop()
        inner = [path[1:] for path in notebooks]
        if (
            _MOODLE.fullmatch(name)
            or ids_by_name(name, known)
            or not all(
                owner_of(path[:-1], path[-1], known, chapters).claimed
                for path in inner
            )
        ):
            break
        notebooks = inner
        number += 1
    return number


def owner_of(
    folders: Sequence[str],
    file_name: str,
    students: Iterable[Student],
    chapters: Sequence[str],
    customs: Customs = NO_CUSTOMS,
) -> Owner:
    """Whose work a file is.

    Args:
        folders: those that the file lies in, outermost first, less any that
            everything lies in.
        file_name: its name.
        students: the roster.
        chapters: the chapters of the course.
        customs: of the archive that it comes from.
    """
    known = list(students)
    while folders and chapter_of(folders[0], chapters):
        folders = folders[1:]
    outermost = folders[0] if folders else file_name
    inside = file_name if folders else None
    moodle = _MOODLE.fullmatch(outermost)
    if moodle:
        return _moodle_owner(moodle, inside or moodle["file"], known, customs)
    brightspace = _BRIGHTSPACE.fullmatch(outermost)
    if brightspace and (inside or brightspace["file"]):
        return _brightspace_owner(
            brightspace, inside or brightspace["file"], known
        )
    blackboard = _BLACKBOARD.fullmatch(file_name)
    if blackboard and customs.blackboard:
        return _blackboard_owner(blackboard, known)
    if folders:
        ids = ids_by_name(folders[0], known)
        turned_in = [
            int(found[1])
            for found in map(_TEAMS_VERSION.fullmatch, folders[1:])
            if found
        ]
        return Owner(
            ids, folders[0], "", file_name, version=max(turned_in, default=0)
        )
    anonymous = _CANVAS_ANONYMOUS.fullmatch(file_name)
    if anonymous:
        name = anonymous["name"]
        ids = ids_by_name(name, known)
        late = anonymous["late"] is not None
        return Owner(ids, name, name, anonymous["file"], late)
    canvas = _CANVAS.fullmatch(file_name)
    if canvas:
        return _canvas_owner(canvas, known)
    return _plain_owner(file_name, known, chapters)


def _moodle_owner(
    match: re.Match[str],
    file_name: str,
    students: list[Student],
    customs: Customs,
) -> Owner:
    name = match["name"]
    ids = ids_by_name(name, students)
    for group in () if ids else customs.groups:
        if name.startswith(group):
            rest = name.removeprefix(group)
            ids = ids_by_name(rest, students)
            name = rest if ids else name
    return Owner(ids, name, match["number"], file_name)


def _brightspace_owner(
    match: re.Match[str], file_name: str, students: list[Student]
) -> Owner:
    day, clock, half = match["when"].rsplit(" ", 2)
    when = None
    for month in ("%b", "%B"):
        with contextlib.suppress(ValueError):
            when = datetime.strptime(
                f"{day} {clock:0>4} {half}", f"{month} %d, %Y %I%M %p"
            )
    number = match["number"]
    ids = tuple(one.id for one in students if one.lms_user_id == number)
    ids = ids or ids_by_name(match["name"], students)
    return Owner(ids, match["name"], number, file_name, when=when)


def _blackboard_owner(match: re.Match[str], students: list[Student]) -> Owner:
    file_name = match["file"]
    when = None
    with contextlib.suppress(ValueError):
        when = datetime.strptime(match["when"], "%Y-%m-%d-%H-%M-%S")
    # The task's name and the learner's may both hold underscores.
    parts = match["before"].split("_")
    names = [
        "_".join(parts[i:]) for i in range(max(1, len(parts) - 5), len(parts))
    ]
    for name in names:
        ids = ids_by_name(name, students)
        if ids:
            return Owner(ids, name, name, file_name, when=when)
    return Owner((), parts[-1], parts[-1], file_name, when=when)


def _not_of_another_number(
    ids: tuple[str, ...], number: str, students: list[Student]
) -> tuple[str, ...]:
    """Without those whom the roster knows under another number: somebody of the
    same name is somebody else."""
    others = {
        one.id
        for one in students
        if one.lms_user_id.isdigit() and one.lms_user_id != number
    }
    return tuple(one for one in ids if one not in others)


def _canvas_owner(match: re.Match[str], students: list[Student]) -> Owner:
    user, name = match["user"], match["name"].casefold()
    ids = [one.id for one in students if one.lms_user_id == user]
    if not ids:
        ids = [
            one.id
            for one in students
            if one.id.casefold() in (user, name, f"{name}_{user}")
            or name in _run_together(one)
        ]
        ids = list(_not_of_another_number(tuple(ids), user, students))
    late = match["late"] is not None
    claimed = f"{match['name']}_{user}"
    return Owner(tuple(ids), claimed, user, match["file"], late)


def _plain_owner(
    file_name: str, students: list[Student], chapters: Sequence[str]
) -> Owner:
    """From "STUDENT_name.ipynb" or "STUDENT__name.ipynb"."""
    begins = {
        one.id: file_name[len(one.id) :].lstrip("_- .")
        for one in students
        if file_name[: len(one.id)].casefold() == one.id.casefold()
        and not file_name[len(one.id) : len(one.id) + 1].isalnum()
    }
    of_a_chapter = {
        student: rest
        for student, rest in begins.items()
        if chapter_of(rest, chapters)
    }
    if _is_exactly_a_chapter(file_name, chapters):
        return Owner((), "", "", file_name)
    for found in (of_a_chapter, begins):
        if found:
            student = max(found, key=len)
            return Owner((student,), student, "", found[student])
    for match in islice(re.finditer("_+", file_name), 20):
        claimed, rest = file_name[: match.start()], file_name[match.end() :]
        if claimed and _is_exactly_a_chapter(rest, chapters):
            return Owner(ids_by_name(claimed, students), claimed, "", rest)
    claimed, double, rest = file_name.partition("__")
    if claimed and double:
        return Owner(ids_by_name(claimed, students), claimed, "", rest)
    claimed = _behind_a_chapter(_stem(file_name), chapters)
    if claimed:
        return Owner(ids_by_name(claimed, students), claimed, "", file_name)
    return Owner((), "", "", file_name)


def _behind_a_chapter(stem: str, chapters: Sequence[str]) -> str:
    """The learner in "03_one_hot_jdoe", the name that many teachers ask for."""
    found = ""
    for chapter in chapters:
        number, *title = _words(chapter)
        begins = re.match(
            r"[\W_]*0*"
            + r"[\W_]+".join(
                map(re.escape, [number.lstrip("0") or "0", *title])
            )
            + r"[\W_]+",
            stem,
            re.I,
        )
        if begins:
            rest = re.sub(r"\s*\(\d+\)$", "", stem[begins.end() :]).strip()
            found = min(found or rest, rest, key=len)
    return "" if found.isdigit() else found


def new_student_id(claimed: str) -> str:
    """The id that somebody of this name gets who is on no roster yet."""
    name = unicodedata.normalize("NFKC", claimed)
    return re.sub(r"[^\w.@-]+", "_", name).strip("_. ")[:60]


def ids_by_name(name: str, students: Sequence[Student]) -> tuple[str, ...]:
    """Ids of those of this id, e-mail address or full name."""
    key = _name_key(name)
    ids = tuple(
        one.id
        for one in students
        if one.id in (name, new_student_id(name))
        or name == one.lms_user_id
        or (name.casefold() == one.email.casefold())
        or (key and key == _name_key(f"{one.first_name} {one.last_name}"))
    )
    folded = name.casefold()
    return ids or tuple(
        one.id for one in students if one.id.casefold() == folded
    )


def _name_key(name: str) -> tuple[str, ...]:
    """The same for "Zoë Müller" and "MULLER, Zoe"; empty if it has no words."""
    return tuple(sorted(_words(_without_accents(name))))


def _run_together(student: Student) -> set[str]:
    """The student's name as Canvas writes it: "doejane"."""
    first = "".join(_words(student.first_name))
    last = "".join(_words(student.last_name))
    if not first + last:
        return set()
    plain = {last + first, first + last}
    return plain | {_without_accents(name) for name in plain}


def _without_accents(text: str) -> str:
    return "".join(
        c
        for c in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(c)
    )


def _words(text: str) -> list[str]:
    """Runs of letters and digits, in small letters."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.findall(r"[^\W_]+", text)


def _without_copy_marks(words: list[str]) -> list[str]:
    while tuple(words[:2]) in _COPY_OF:
        words = words[2:]
    while len(words) > 1 and re.fullmatch(r"\d+|copy\d*", words[-1]):
        words = words[:-1]
    return words


def _stem(file_name: str) -> str:
    match = _NOTEBOOK.fullmatch(file_name)
    return match["stem"] if match else file_name


def _same(words: list[str], title: list[str]) -> bool:
    """Whether the words are a chapter's; its number may lack the zero."""
    if not words or len(words) != len(title) or words[1:] != title[1:]:
        return False
    number, wanted = words[0], title[0]
    if re.fullmatch(r"[0-9]{1,4}", number) and re.fullmatch("[0-9]+", wanted):
        return int(number) == int(wanted)
    return number == wanted


def _is_exactly_a_chapter(file_name: str, chapters: Sequence[str]) -> bool:
    """Whether the name is that of a chapter and marks of a copy, no more."""
    bare = _without_copy_marks(_words(_stem(file_name)))
    return any(_same(bare, _words(chapter)) for chapter in chapters)
