"""The exchange over HTTP, as the grading account has it: nbgrader's own steps on a copy
in `class/exchange`, and each of them brings from ngshare or sends to it.

A learner's server has the other side, `course_exchange`. docs/server.md says when a
class needs this.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nbgrader.exchange.default import (
    ExchangeReleaseAssignment,
    ExchangeReleaseFeedback,
)
from nbgrader.utils import notebook_hash
from traitlets import Unicode
from traitlets.config import Configurable

from course_exchange.share import (
    DUE,
    DUE_FILE,
    Share,
    ShareError,
    lay,
    write_time,
)
from course_grader.classroom.collect import SafeCollect
from course_grader.classroom.collect_tree import printable
from course_grader.classroom.collect_versions import (
    MOST_ATTEMPTS,
    SECRET_FILE,
    TIMESTAMP_FILE,
    bad_student_id,
    read_timestamp,
)
from course_grader.course import CourseError

if TYPE_CHECKING:
    from course_grader.classroom.nbgrader_api import Classroom


class OverHTTP(Configurable):  # type: ignore[misc]
    """Knows the way to ngshare.

    The file holds `url` and `token`; the class server writes it for the grading
    account alone.
    """

    share_file = Unicode("", help="Where ngshare is; none if empty.").tag(
        config=True
    )

    def share(self, course: str) -> Share | None:
        """A course's; None where the exchange is a folder.

        Raises:
            ShareError: the class server has not been started yet.
        """
        if not self.share_file:
            return None
        try:
            said = json.loads(Path(self.share_file).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ShareError(
                "The exchange is ngshare, which `make hub` starts: start that "
                "first."
            ) from None
        except PermissionError:
            raise ShareError(
                "This account may not grade: the grading account and root alone "
                f"may read {self.share_file}."
            ) from None
        return Share(said["url"], said["token"], course)


def of_class(classroom: Classroom) -> Share | None:
    """A class's; None where the exchange is a folder."""
    found = OverHTTP(config=classroom.config)
    return found.share(classroom.coursedir.course_id)


def handed_in(classroom: Classroom) -> dict[str, frozenset[str]]:
    """What lies in ngshare now, by chapter.

    Raises:
        ShareError: ngshare does not answer.
    """
    share = of_class(classroom)
    if share is None:
        return {}
    found = {
        chapter: frozenset(
            f"{student}+{moment}"
            for student, moment in share.submissions(chapter)
        )
        for chapter in share.chapters()
        if chapter != DUE
    }
    return {chapter: names for chapter, names in found.items() if names}


def announce_due(classroom: Classroom, file: Path) -> None:
    """Sends `due.json` to where learners find it, if there is such a place.

    Raises:
        CourseError: it cannot be sent.
    """
    folder = file.with_name(DUE)
    try:
        share = of_class(classroom)
        if share is not None:
            folder.mkdir(exist_ok=True)
            shutil.copy(file, folder / DUE_FILE)
            share.release(DUE, folder)
    except ShareError as error:
        raise CourseError(str(error)) from None


class ReleaseAssignment(OverHTTP, ExchangeReleaseAssignment):  # type: ignore[misc]
    """Releases into the copy, and sends that."""

    def copy_files(self) -> None:
        """Copies, then sends; what cannot be sent counts as not released."""
        super().copy_files()
        try:
            share = self.share(self.coursedir.course_id)
            assert share is not None
            share.release(self.coursedir.assignment_id, Path(self.dest_path))
        except ShareError as error:
            shutil.rmtree(self.dest_path)
            self.fail(str(error))


class Collect(OverHTTP, SafeCollect):
    """Brings every learner's newest submission into the copy, all of them where the
    best attempt counts, and collects from there as always: with the same limits, and
    nobody's work in another's way."""

    def init_src(self) -> None:
        """Brings, then looks at what is there."""
        folder = Path(self.root, self.coursedir.course_id, "inbound")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._bring(folder)
        except ShareError as error:
            self.fail(str(error))
        super().init_src()

    def _bring(self, folder: Path) -> None:
        share = self.share(self.coursedir.course_id)
        assert share is not None
        chapter = self.coursedir.assignment_id
        handed_in = sorted(share.submissions(chapter), key=lambda one: one[1])
        wanted = 1 + (MOST_ATTEMPTS if self.every_attempt else 0)
        of_each: defaultdict[str, list[datetime]] = defaultdict(list)
        for student, moment in handed_in:
            of_each[student].append(moment)
        for student, moment in (
            (student, moment)
            for student, moments in of_each.items()
            for moment in moments[-wanted:]
        ):
            when = f"{write_time(moment)} UTC"
            place = folder / f"{student}+{chapter}+{when}"
            why = bad_student_id(student) or ("+" in student and "a plus")
            if why or place.exists():
                continue
            try:
                said = lay(share.submission(chapter, student, moment), place)
                # the hour is ngshare's, whatever the learner's clock says
                stamp = place / TIMESTAMP_FILE
                if stamp.is_dir():
                    shutil.rmtree(stamp)
                stamp.write_text(when, encoding="utf-8")
            except (ShareError, OSError) as error:
                self.log.warning(
                    "%s: %s", printable(student), printable(str(error))
                )
                continue
            for sentence in said:
                self.log.warning(
                    "%s: %s", printable(student), printable(sentence)
                )


class ReleaseFeedback(OverHTTP, ExchangeReleaseFeedback):  # type: ignore[misc]
    """Sends the pages that are new; the copy holds what was sent."""

    def copy_files(self) -> None:
        """Sends learner by learner; one that fails keeps nobody else's back."""
        share = self.share(self.coursedir.course_id)
        assert share is not None
        chapter = self.coursedir.assignment_id
        pattern = Path(self.coursedir.feedback_directory, "*", chapter)
        excluded = self.coursedir.student_id_exclude.split(",")
        failed = []
        for folder in sorted(Path(self.coursedir.root).glob(str(pattern))):
            student = folder.parent.name
            if student in excluded:
                continue
            moment = read_timestamp(folder)
            pages = sorted(folder.glob("*.html"))
            if moment is None or not (folder / SECRET_FILE).is_file():
                continue  # did not come through the exchange
            secret = (folder / SECRET_FILE).read_text(encoding="utf-8")
            sent = {
                page: Path(
                    self.dest_path,
                    notebook_hash(secret=secret, notebook_id=page.stem)
                    + ".html",
                )
                for page in pages
            }
            if all(_same(page, there) for page, there in sent.items()):
                continue
            try:
                share.hand_back(
                    chapter, student, moment.replace(tzinfo=UTC), pages
                )
            except ShareError as error:
                if error.status == 404:
                    continue  # came another way, or has left the course
                failed.append(f"{printable(student)}: {error}")
                continue
            for page, there in sent.items():
                shutil.copy(page, there)
        if failed:
            self.fail(
                "Feedback could not be sent to "
                f"{len(failed)} learners, but to all others. {failed[0]}"
            )


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
