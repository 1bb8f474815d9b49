"""Attempts: all that a learner handed in for a chapter, and what each of them got.

nbgrader's gradebook knows one submission of a learner, the newest. What an older one
got stands in `attempts/STUDENT/CHAPTER/`, in a file that is named by the digest of
its notebook; the notebooks themselves lie in `versions/`. With `attempts = "best"` in
`course.toml` every attempt is graded, and the best counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nbgrader.coursedir import CourseDirectory

from course_grader.classroom.audit import note
from course_grader.classroom.collect_versions import (
    MOST_ATTEMPTS,
    digest,
    known_by,
    submitted_folder,
    versions_folder,
)
from course_grader.classroom.private import private_folder, write_private
from course_grader.course import CourseError
from course_grader.judge.report import SubmissionReport

FOLDER = "attempts"


@dataclass(frozen=True)
class Attempt:
    """One thing that a learner handed in, and that is not the newest.

    Attributes:
        student: whose it is.
        chapter: its chapter.
        path: the notebook file among the versions.
        number: the first is 1.
        digest: of the notebook.
        graded: what it got is known.
    """

    student: str
    chapter: str
    path: Path
    number: int
    digest: str
    graded: bool


@dataclass(frozen=True)
class Got:
    """What one attempt got.

    Attributes:
        automatic: points by exercise that the grader gave.
        by_hand: points by exercise that a person set in their place.
        extra: points by exercise that a person added.
        report: the grader's report as a JSON tree; None if another grader was at
            work.
    """

    automatic: dict[str, float]
    by_hand: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    report: dict[str, Any] | None = None

    @property
    def by_exercise(self) -> dict[str, float]:
        """What counts, by exercise."""
        return {
            name: self.by_hand.get(name, points) + self.extra.get(name, 0.0)
            for name, points in self.automatic.items()
        }

    @property
    def refused(self) -> bool:
        """The grader refused it, and nobody marked it by hand."""
        report = self.report or {}
        return bool(report.get("refused")) and not self.by_hand

    @property
    def look(self) -> str:
        """Why somebody should look at it."""
        report = self.report or {}
        said = [report.get("refused", ""), *report.get("needs_human", ())]
        return " ".join(filter(None, said))


def older(
    coursedir: CourseDirectory, chapter: str, student: str
) -> list[Attempt]:
    """What a learner handed in before the newest, oldest first; things without a
    notebook are no attempts."""
    folders = [
        folder
        for folder in versions_folder(coursedir, student, chapter).glob("*")
        if _is_file(folder / f"{chapter}.ipynb")
    ]
    found = []
    for number, folder in enumerate(sorted(folders, key=known_by), start=1):
        path = folder / f"{chapter}.ipynb"
        content = digest(path)
        graded = _record(coursedir, chapter, student, content).is_file()
        found.append(Attempt(student, chapter, path, number, content, graded))
    return found


def newest_digest(
    coursedir: CourseDirectory, chapter: str, student: str
) -> str:
    """The digest of what is collected; empty if nothing is."""
    path = submitted_folder(coursedir, student, chapter) / f"{chapter}.ipynb"
    return digest(path) if _is_file(path) else ""


def to_grade(
    coursedir: CourseDirectory, chapter: str, students: list[str]
) -> Iterator[Attempt]:
    """The older attempts of these students, each notebook once, and none that is
    the newest one's; of each student the last `MOST_ATTEMPTS` of them."""
    for student in students:
        yield from _different(coursedir, chapter, student)[-MOST_ATTEMPTS:]


def num_passed_over(
    coursedir: CourseDirectory, chapter: str, student: str
) -> int:
    """How many attempts are kept and never graded, for there are too many."""
    before = _different(coursedir, chapter, student)[:-MOST_ATTEMPTS]
    return sum(not one.graded for one in before)


def _different(
    coursedir: CourseDirectory, chapter: str, student: str
) -> list[Attempt]:
    seen = {newest_digest(coursedir, chapter, student)}
    found = []
    for one in older(coursedir, chapter, student):
        if one.digest not in seen:
            seen.add(one.digest)
            found.append(one)
    return found


def read(
    coursedir: CourseDirectory, chapter: str, student: str, content: str
) -> Got | None:
    """What an attempt got; None if it is not graded.

    Raises:
        CourseError: the file was edited and is not as it should be.
    """
    path = _record(coursedir, chapter, student, content)
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return Got(**tree)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise CourseError(
            f"{path} cannot be read: remove it, and grade the chapter again."
        ) from error


def write(
    coursedir: CourseDirectory,
    chapter: str,
    student: str,
    content: str,
    got: Got,
) -> None:
    """Keeps what an attempt got. What changes leaves a line in the trail.

    Args:
        coursedir: the class.
        chapter: its chapter.
        student: whose it is.
        content: the digest of its notebook.
        got: what it got.
    """
    path = _record(coursedir, chapter, student, content)
    before = read(coursedir, chapter, student, content)
    private_folder(path.parents[2])
    private_folder(path.parents[1])
    private_folder(path.parent)
    write_private(path, json.dumps(asdict(got), ensure_ascii=False) + "\n")
    old = None if before is None else sum(before.by_exercise.values())
    new = sum(got.by_exercise.values())
    if old != new:
        note(
            Path(coursedir.root),
            student=student,
            chapter=chapter,
            cell="",
            what=f"attempt {content[:12]}",
            before=old,
            after=new,
        )


def write_graded(
    coursedir: CourseDirectory, attempt: Attempt, report: SubmissionReport
) -> None:
    """Keeps what the grader gave an attempt; what people gave it stays."""
    known = read(
        coursedir, attempt.chapter, attempt.student, attempt.digest
    ) or Got({})
    automatic = {one.exercise: one.points for one in report.exercises}
    if report.refused:
        automatic = dict.fromkeys(known.automatic, 0.0)
    got = replace(known, automatic=automatic, report=report.to_json())
    write(coursedir, attempt.chapter, attempt.student, attempt.digest, got)


def put_aside(
    coursedir: CourseDirectory,
    chapter: str,
    student: str,
    content: str,
    grades: Iterable[Any],
    report: Mapping[str, Any] | None,
) -> None:
    """Keeps what the gradebook holds of an attempt, before a newer one takes its
    place there.

    Args:
        coursedir: the class.
        chapter: its chapter.
        student: whose it is.
        content: the digest of its notebook.
        grades: nbgrader's grades of it.
        report: the grader's report, if it wrote one.
    """
    automatic, by_hand, extra = {}, {}, {}
    for grade in grades:
        if not grade.max_score:
            continue
        name = grade.name.removesuffix("_hidden")
        automatic[name] = grade.auto_score or 0.0
        if grade.manual_score is not None:
            by_hand[name] = grade.manual_score
        if grade.extra_credit:
            extra[name] = grade.extra_credit
    tree = None if report is None else dict(report)
    write(
        coursedir,
        chapter,
        student,
        content,
        Got(automatic, by_hand, extra, tree),
    )


def _record(
    coursedir: CourseDirectory, chapter: str, student: str, content: str
) -> Path:
    return Path(coursedir.root) / FOLDER / student / chapter / f"{content}.json"


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
