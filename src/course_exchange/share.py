"""ngshare's interface over HTTP: https://ngshare.readthedocs.io, *API*.

ngshare throws a chapter's submissions away when the chapter is released again, for
it can only remove and make anew. So two of its courses make one of ours: what is
released lies in `COURSE.released`, what is handed in and its feedback in `COURSE`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import requests

MAX_BYTES = 16 * 2**20
"""Of all files of one submission."""
MAX_BODY_BYTES = MAX_BYTES * 3 // 2
"""Of one request: files travel in base64, with their names."""
MAX_FILES = 1000
"""Of one submission."""
MAX_DEPTH = 16
"""Folders within folders of one submission; fewer of them are graded."""
DUE = "due"
"""What is released under this name is `due.json`, and no chapter."""
DUE_FILE = "due.json"
"""Beside the released chapters: due dates, which nbgrader keeps in the gradebook,
where no learner may look. It holds no more than everybody may know."""
_TIME = "%Y-%m-%d %H:%M:%S.%f"


class ShareError(Exception):
    """ngshare said no, or nothing; the message says which.

    Attributes:
        status: of HTTP; 0 where no answer came.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Share:
    """One course on an ngshare.

    Attributes:
        url: of ngshare, without a slash at its end.
        token: of the hub, that says who asks.
        course: nbgrader's id of the course.
        timeout_s: for one answer.
    """

    url: str
    token: str = field(repr=False)
    course: str
    timeout_s: float = 60

    @property
    def released(self) -> str:
        """ngshare's course of what is released."""
        return f"{self.course}.released"

    def ask(
        self,
        method: str,
        *path: str,
        form: dict[str, str] | None = None,
        **query: str,
    ) -> Any:
        """One question; the answer as ngshare gives it.

        Args:
            method: of HTTP.
            path: its parts, not yet quoted.
            form: what is sent along.
            query: behind the question mark.

        Raises:
            ShareError: no answer, or a no.
        """
        address = "/".join([self.url, *(quote(one, safe="") for one in path)])
        try:
            answer = requests.request(
                method,
                address,
                params=query,
                # in parts, for a form's own way makes three of most characters
                files={
                    name: (None, value) for name, value in (form or {}).items()
                }
                or None,
                headers={"Authorization": f"token {self.token}"},
                timeout=self.timeout_s,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise ShareError(
                f"The exchange does not answer ({type(error).__name__}): try "
                "again in a minute."
            ) from None
        try:
            said = answer.json()
        except ValueError:
            said = {}
        if not said.get("success"):
            raise ShareError(
                f"The exchange refuses: {said.get('message', answer.reason)}.",
                answer.status_code,
            )
        return said

    def chapters(self) -> list[str]:
        """What is released; `DUE` may be among it."""
        return list(
            self.ask("GET", "assignments", self.released)["assignments"]
        )

    def fetch(self, chapter: str, folder: Path) -> None:
        """Makes a folder hold what is released, and nothing else; one that does
        already stays as it is."""
        path = ("assignment", self.released, chapter)
        listed = self.ask("GET", *path, list_only="true")["files"]
        if folder.is_dir() and _sums(folder) == {
            one["path"]: one["checksum"] for one in listed
        }:
            return
        lay(self.ask("GET", *path)["files"], folder)

    def hand_in(self, chapter: str, folder: Path) -> datetime:
        """Hands a folder in.

        Returns:
            When, as ngshare's clock has it.

        Raises:
            ShareError: it was not handed in.
        """
        form = {"files": pack(folder)}
        said = self.ask("POST", "submission", self.course, chapter, form=form)
        return read_time(said["timestamp"])

    def feedback(
        self, chapter: str, student: str, moment: datetime
    ) -> list[dict[str, str]]:
        """The pages of one submission, as files; none if there are none yet."""
        path = ("feedback", self.course, chapter, student)
        try:
            return list(
                self.ask("GET", *path, timestamp=write_time(moment))["files"]
            )
        except ShareError as error:
            if error.status == 404:  # handed in some other way
                return []
            raise

    # What the grading account does

    def submissions(self, chapter: str) -> list[tuple[str, datetime]]:
        """Who handed a chapter in, and when."""
        try:
            said = self.ask("GET", "submissions", self.course, chapter)
        except ShareError as error:
            if error.status == 404:  # never released
                return []
            raise
        return [
            (one["student_id"], read_time(one["timestamp"]))
            for one in said["submissions"]
        ]

    def submission(
        self, chapter: str, student: str, moment: datetime
    ) -> list[dict[str, str]]:
        """The files that a learner handed in at that moment."""
        said = self.ask(
            *("GET", "submission", self.course, chapter, student),
            timestamp=write_time(moment),
        )
        return list(said["files"])

    def release(self, chapter: str, folder: Path) -> None:
        """Releases a folder, in place of what was released under that name."""
        files = pack(folder)
        self.make_courses()
        path = ("assignment", self.released, chapter)
        if chapter in self.chapters():
            self.ask("DELETE", *path)
        self.ask("POST", *path, form={"files": files})
        if chapter != DUE:
            self._once("assignment", self.course, chapter, files="[]")

    def hand_back(
        self, chapter: str, student: str, moment: datetime, pages: list[Path]
    ) -> None:
        """Puts pages beside a submission, in place of those that were there."""
        files = [
            {"path": one.name, "content": _encoded(one.read_bytes())}
            for one in pages
        ]
        self.ask(
            "POST",
            *("feedback", self.course, chapter, student),
            form={"timestamp": write_time(moment), "files": json.dumps(files)},
        )

    def make_courses(self) -> None:
        """Makes both courses, where they are not there."""
        for course in (self.course, self.released):
            self._once("course", course)

    def enrol(self, student: str) -> None:
        """Lets a learner see what is released, and hand in."""
        self.make_courses()
        nothing = {"first_name": "", "last_name": "", "email": ""}
        for course in (self.course, self.released):
            self.ask("POST", "student", course, student, form=nothing)

    def _once(self, *path: str, **form: str) -> None:
        try:
            self.ask("POST", *path, form=form)
        except ShareError as error:
            if error.status != 409:  # there it is
                raise


def own_share(course: str) -> Share:
    """A learner's, from the environment of their server.

    Raises:
        KeyError: this server's exchange is a folder.
    """
    return Share(
        os.environ["COURSE_SHARE"], os.environ["JUPYTERHUB_API_TOKEN"], course
    )


def pack(folder: Path) -> str:
    """The files of a folder as ngshare takes them. Links and whatever else is no
    file stay behind.

    Raises:
        ShareError: they are too large or too many.
    """
    files: list[dict[str, str]] = []
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        size += path.stat().st_size
        if size > MAX_BYTES or len(files) == MAX_FILES:
            raise ShareError(
                f"{folder.name} holds more than can be handed in: at most "
                f"{MAX_FILES} files of {MAX_BYTES // 2**20} MiB together. Move "
                "what you do not hand in out of the chapter's folder."
            )
        name = path.relative_to(folder).as_posix()
        files.append({"path": name, "content": _encoded(path.read_bytes())})
    return json.dumps(files)


def lay(files: list[dict[str, str]], folder: Path) -> list[str]:
    """Lays files into a folder, which appears whole or not at all.

    Args:
        files: as ngshare gives them; what they say is not trusted.
        folder: what was there is replaced.

    Returns:
        A sentence for each file that cannot be laid.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    said = []
    with tempfile.TemporaryDirectory(
        dir=folder.parent, prefix=".coming-"
    ) as place:
        made = Path(place, "made")
        made.mkdir()
        if len(files) > MAX_FILES:
            said.append(f"It holds more than {MAX_FILES} files.")
        for one in files[:MAX_FILES]:
            try:
                path = made / _inside(one["path"])
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as out:
                    out.write(base64.b64decode(one["content"]))
            except (OSError, ValueError, TypeError, LookupError) as error:
                name = one.get("path") if isinstance(one, dict) else one
                said.append(f"{str(name)[:80]!r} is left out: {error}.")
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    return said


def _inside(name: str) -> PurePosixPath:
    """A file's name as a path that stays within.

    Raises:
        ValueError: it does not.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError("no path within a folder")
    if len(path.parts) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} folders deep")
    return path


def _sums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.md5(
            path.read_bytes(), usedforsecurity=False
        ).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def read_time(text: str) -> datetime:
    """A moment of ngshare's, which is UTC without saying so."""
    return datetime.strptime(text.removesuffix(" UTC"), _TIME).replace(
        tzinfo=UTC
    )


def write_time(moment: datetime) -> str:
    """A moment as ngshare reads it."""
    return moment.astimezone(UTC).strftime(_TIME)
