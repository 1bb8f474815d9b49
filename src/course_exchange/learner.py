"""A learner's side: nbgrader's own Fetch, Submit, List and Fetch Feedback, on a copy of
the exchange that their server keeps for itself. Each first brings what has come, and
Submit sends."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import (
    Exchange,
    ExchangeFetchAssignment,
    ExchangeFetchFeedback,
    ExchangeList,
)
from nbgrader.utils import notebook_hash

from course_exchange import folder
from course_exchange.share import (
    DUE,
    DUE_FILE,
    Share,
    ShareError,
    lay,
    own_share,
    write_time,
)

_SECRET = "submission_secret.txt"
_TIMESTAMP = "timestamp.txt"


def bring(share: Share, place: Path, again: bool) -> None:
    """Brings what is released.

    Args:
        share: where from.
        place: the course's, in the copy of the exchange.
        again: also what is here, if there is a newer edition of it.
    """
    for name in ("inbound", "outbound", "feedback"):
        (place / name).mkdir(parents=True, exist_ok=True)
    released = share.chapters()
    for chapter in released:
        there = place / "outbound" / chapter
        if chapter == DUE:
            share.fetch(DUE, place / DUE)
            shutil.copy(place / DUE / DUE_FILE, place / DUE_FILE)
        elif again or not there.exists():
            share.fetch(chapter, there)
    for one in (place / "outbound").iterdir():
        if one.name not in released:  # no longer
            shutil.rmtree(one)


class _Copy(Exchange):  # type: ignore[misc]
    """What all four have in common."""

    def _share(self) -> Share:
        return own_share(self.coursedir.course_id)

    def _folder(self) -> Path:
        return Path(self.root) / self.coursedir.course_id

    def start(self) -> Any:
        """As nbgrader has it; what ngshare says is said as nbgrader says it."""
        try:
            return super().start()
        except ShareError as error:
            self.fail(str(error))

    def _bring_feedback(self, chapter: str, all_of_it: bool) -> None:
        """Brings the pages of what was handed in from here.

        Args:
            chapter: nbgrader's pattern of its name.
            all_of_it: also of what is not the newest of its chapter.
        """
        newest_first = sorted(
            (Path(self.cache) / self.coursedir.course_id).glob(
                f"*+{chapter}+*"
            ),
            key=lambda one: one.name.rpartition("+")[2],
            reverse=True,
        )
        seen: set[str] = set()
        for handed_in in newest_first:
            student, name, moment = handed_in.name.rsplit("+", 2)
            if name in seen and not all_of_it:
                continue
            seen.add(name)
            with suppress(OSError, ValueError):
                secret = (handed_in / _SECRET).read_text()
                when = datetime.fromisoformat(moment.removesuffix(" UTC"))
                self._lay_pages(
                    self._share().feedback(
                        name, student, when.replace(tzinfo=UTC)
                    ),
                    secret,
                )

    def _lay_pages(self, pages: list[dict[str, str]], secret: str) -> None:
        place = self._folder() / "feedback"
        coming = place / ".coming"
        lay(pages, coming)
        for page in coming.glob("*.html"):
            name = notebook_hash(secret=secret, notebook_id=page.stem)
            os.replace(page, place / f"{name}.html")
        shutil.rmtree(coming)


class FetchAssignment(_Copy, ExchangeFetchAssignment):  # type: ignore[misc]
    """Fetches the newest edition."""

    def init_src(self) -> None:
        """Brings it first."""
        chapter = self.coursedir.assignment_id
        self._share().fetch(chapter, self._folder() / "outbound" / chapter)
        super().init_src()


class List(_Copy, ExchangeList):  # type: ignore[misc]
    """Lists what is released, and what was handed in from here."""

    def init_dest(self) -> None:
        """Brings what is new first."""
        if self.cached:
            self._bring_feedback(self.coursedir.assignment_id or "*", False)
        else:
            bring(self._share(), self._folder(), again=False)
        super().init_dest()


class FetchFeedback(_Copy, ExchangeFetchFeedback):  # type: ignore[misc]
    """Fetches the pages of a chapter."""

    def init_src(self) -> None:
        """Brings them first."""
        self._bring_feedback(self.coursedir.assignment_id or "*", True)
        super().init_src()


class Submit(_Copy, folder.Submit):  # type: ignore[misc]
    """Hands in; the hour is ngshare's."""

    def copy_files(self) -> None:
        """Packs as nbgrader does, sends, and keeps what was sent."""
        super().copy_files()
        packed = Path(self.inbound_path, self.assignment_filename)
        name = re.sub(r"\+[^+]*$", "", self.assignment_filename)
        kept = Path(self.cache_path, name)
        try:
            moment = self._share().hand_in(self.coursedir.assignment_id, packed)
        except ShareError:
            shutil.rmtree(kept)  # or Assignment List would show it
            raise
        finally:
            shutil.rmtree(packed)
        self.timestamp = f"{write_time(moment)} UTC"
        (kept / _TIMESTAMP).write_text(self.timestamp)
        student, chapter, _ = name.rsplit("+", 2)
        kept.rename(kept.with_name(f"{student}+{chapter}+{self.timestamp}"))
