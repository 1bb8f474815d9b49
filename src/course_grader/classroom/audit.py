"""Who changed which mark: a line for each change, in a file beside the gradebook.

SQLAlchemy tells of every change before it is written, whoever makes it: `course
grade`, `nbgrader autograde` or a person in formgrader. nbgrader's settings, which
all of them read, ask for it.
"""

from __future__ import annotations

import getpass
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Comment, Grade, SubmittedNotebook
from sqlalchemy import event, inspect
from sqlalchemy.orm import Session

from course_grader.classroom.private import write_private

FILE = "marks.jsonl"
_WATCHED = {
    Grade: ("auto_score", "manual_score", "extra_credit"),
    Comment: ("manual_comment",),
    SubmittedNotebook: ("late_submission_penalty",),
}
_kept: set[Path] = set()


def keep_trail(folder: Path) -> None:
    """Writes every change of a mark, from now on in this process, to
    `marks.jsonl`: when, who, by which account, and the value before and after.

    Args:
        folder: the class's.
    """
    if folder in _kept:
        return
    _kept.add(folder)

    def changed(session: Session, *more: Any) -> None:
        lines = [line for thing in session.dirty for line in _lines(thing)]
        if lines and folder.is_dir():
            _append(folder, lines)

    event.listen(Session, "before_flush", changed)


def note(folder: Path, **change: Any) -> None:
    """Writes a change of a mark that is in no row of the gradebook.

    Args:
        folder: the class's.
        change: student, chapter, cell, what, before and after.
    """
    _append(folder, [{**_who_and_when(), **change}])


def _append(folder: Path, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    opened = os.open(folder / FILE, flags, 0o600)
    # a person's comment may hold any characters, half ones too
    with open(opened, "a", encoding="utf-8", errors="replace") as trail:
        trail.write(text)


def _who_and_when() -> dict[str, str]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "account": _who(),
    }


def has_trail(folder: Path, student: str) -> bool:
    """Whether there are lines of one learner's."""
    file = folder / FILE
    return file.exists() and any(
        _student_of(line) == student
        for line in file.read_text(encoding="utf-8").splitlines()
    )


def forget_trail(folder: Path, student: str) -> None:
    """Deletes one learner's lines."""
    file = folder / FILE
    if file.exists():
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [one for one in lines if _student_of(one) != student]
        write_private(file, "".join(kept))


def _student_of(line: str) -> str:
    """Whose a line is; nobody's if it was cut off."""
    try:
        return str(json.loads(line)["student"])
    except (KeyError, TypeError, ValueError):
        return ""


def _who() -> str:
    """The account; where several share one, as instructors do in a class server's
    formgrader, the person that the hub has let in."""
    if "JUPYTERHUB_SERVICE_NAME" in os.environ:
        from jupyter_server import CallContext

        handler = CallContext.get(CallContext.JUPYTER_HANDLER)
        person = getattr(handler, "current_user", None)
        if person is not None:
            return str(person.username)
    return os.environ.get("JUPYTERHUB_USER") or getpass.getuser()


def _lines(thing: Any) -> list[dict[str, Any]]:
    """What changes in one row of the gradebook."""
    made = []
    for attribute in _WATCHED.get(type(thing), ()):
        history = inspect(thing).attrs[attribute].history
        if not history.has_changes():
            continue
        before = history.deleted[0] if history.deleted else None
        after = history.added[0] if history.added else None
        if before == after:
            continue
        notebook = thing if isinstance(thing, SubmittedNotebook) else None
        notebook = notebook or thing.notebook
        made.append(
            {
                **_who_and_when(),
                "student": notebook.assignment.student.id,
                "chapter": notebook.assignment.name,
                "cell": "" if notebook is thing else thing.name,
                "what": attribute,
                "before": before,
                "after": after,
            }
        )
    return made
