"""nbgrader's API for this course, and its answers as sentences."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sqlite3
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any

from dateutil.tz import gettz
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.utils import capture_log, temp_attrs
from traitlets import TraitError
from traitlets.config import Config, Configurable
from traitlets.config.loader import PyFileConfigLoader

from course_grader.classroom.collect_versions import Outcome
from course_grader.classroom.private import shut
from course_grader.course import Course, CourseError
from course_grader.needs import NO_SPACE
from course_grader.settings import misplaced

_FAILED = re.compile(r"error processing assignment '.*?' for student '(.*?)'")
"""What nbgrader says of work that it could not turn into a page."""
# nbgrader logs a gradebook's errors with their tracebacks, and raises them too
logging.getLogger("tornado.application").addFilter(
    lambda record: "Rolling back session" not in record.getMessage()
)


@dataclass(frozen=True)
class Classroom:
    """One course as nbgrader sees it.

    Attributes:
        course: the course.
        config: what `autograde/nbgrader_config.py` sets.
        api: nbgrader's API with that configuration.
    """

    course: Course
    config: Config
    api: NbGraderAPI

    @property
    def coursedir(self) -> CourseDirectory:
        return self.api.coursedir

    @property
    def zone(self) -> tzinfo | None:
        """The time zone in which everything is said; None is this machine's."""
        return gettz(self.api.timezone)

    def folder(self, step: str, student: str, chapter: str) -> Path:
        """nbgrader's folder of a student's chapter in a step such as
        "submitted" or "autograded"."""
        directory = getattr(self.coursedir, f"{step}_directory")
        return Path(self.coursedir.format_path(directory, student, chapter))


def open_classroom(course: Course) -> Classroom:
    """Opens the course's gradebook and exchange through nbgrader.

    Raises:
        CourseError: `autograde/nbgrader_config.py` is missing, or `course.toml`
            says what no setting is.
    """
    path = course.autograde / "nbgrader_config.py"
    if not path.exists():
        raise CourseError(
            "autograde/nbgrader_config.py is missing: nbgrader's settings "
            "stand there. `git checkout autograde/nbgrader_config.py` brings "
            "it back."
        )
    _put_on_path(Path(sys.executable).parent)
    # first, for it says in a sentence what is wrong with course.toml
    _refuse_strange_traits(course.settings.get("nbgrader", {}))
    course.people.mkdir(mode=0o755, exist_ok=True)
    config = PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
    quiet = logging.getLogger("course.nbgrader")
    quiet.propagate = False
    quiet.addHandler(logging.NullHandler())
    try:
        api = NbGraderAPI(config=config)
    except TraitError as error:
        raise CourseError(f"course.toml, [nbgrader]: {error}") from error
    if api.coursedir.groupshared:
        os.umask(0o007)  # those who teach together read and write alike
    else:
        _shut_people_in(course, api.coursedir)
    _begin_gradebook(api.coursedir)
    return Classroom(course, config, api)


def _refuse_strange_traits(given: Mapping[str, Any]) -> None:
    """Looks whether `[nbgrader]` in `course.toml` names classes and traits that
    there are. Traitlets passes over all others in silence.

    Raises:
        CourseError: it does not.
    """
    if not given:
        return
    # loaded by now are nbgrader's and nbconvert's; these are our own
    import course_grader.classroom.collect
    import course_grader.classroom.over_http
    import course_grader.classroom.release_feedback
    import course_grader.feedback  # noqa: F401

    known: dict[str, set[str]] = {}
    every: list[type[Configurable]] = [Configurable]
    for one in every:
        every += one.__subclasses__()
        known.setdefault(one.__name__, set()).update(
            one.class_trait_names(config=True)
        )
    for name, traits in given.items():
        section = f"[nbgrader.{name}]"
        if name not in known or not isinstance(traits, dict):
            raise CourseError(
                f"course.toml: {section} is no class of nbgrader's with "
                "settings: write [nbgrader.CLASS], and trait = value below it."
            )
        for trait in traits:
            for said in misplaced(trait, section):
                raise CourseError(f"course.toml: {said}")
            if trait not in known[name]:
                raise CourseError(
                    f"course.toml: {section} knows "
                    f"{', '.join(sorted(known[name]))}, not {trait}."
                )


def _shut_people_in(course: Course, coursedir: CourseDirectory) -> None:
    """Leaves people's work and marks to the owner of the course alone: nbgrader's
    own commands make theirs readable for everybody."""
    for step in ("submitted", "autograded", "feedback"):
        folder = getattr(coursedir, f"{step}_directory")
        shut(Path(coursedir.root) / folder)
    for folder in ("versions", "attempts"):
        shut(Path(coursedir.root) / folder)
    gradebook = _gradebook_file(coursedir)
    if gradebook is not None:
        if gradebook.parent.is_dir() and not gradebook.exists():
            gradebook.touch(mode=0o600)  # formgrader's own would be everybody's
        shut(gradebook)


def _gradebook_file(coursedir: CourseDirectory) -> Path | None:
    """The file that the gradebook is; None if it is none."""
    file = coursedir.db_url.removeprefix("sqlite:///")
    return None if file == coursedir.db_url else Path(file)


def _begin_gradebook(coursedir: CourseDirectory) -> None:
    """Writes into a gradebook file that is still empty which version of nbgrader's
    tables it holds. nbgrader makes them when it is opened, and starts Alembic's
    program, for seconds, to ask for that version where none stands there yet."""
    gradebook = _gradebook_file(coursedir)
    if gradebook is None or not gradebook.parent.is_dir():
        return
    if gradebook.exists() and gradebook.stat().st_size:
        return
    # late: this happens once in a gradebook's life
    from alembic.script import ScriptDirectory

    head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    with contextlib.closing(sqlite3.connect(gradebook)) as opened, opened:
        # another command may be at it, too
        opened.execute("BEGIN EXCLUSIVE")
        (tables,) = opened.execute(
            "SELECT count(*) FROM sqlite_master"
        ).fetchone()
        if not tables:
            opened.execute(
                "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"
            )
            opened.execute("INSERT INTO alembic_version VALUES (?)", (head,))


def _put_on_path(scripts: Path) -> None:
    """nbgrader calls `alembic` by its name, and a `course` that was started by
    its path has no activated environment."""
    known = os.environ.get("PATH", os.defpath)
    if str(scripts) not in known.split(os.pathsep):
        os.environ["PATH"] = f"{scripts}{os.pathsep}{known}"


def succeed(answer: dict[str, Any], doing: str) -> None:
    """Does nothing if nbgrader succeeded.

    Raises:
        CourseError: what nbgrader said went wrong.
    """
    if answer["success"]:
        return
    said = str(answer.get("error") or answer.get("log") or "").strip()
    last = said.splitlines()[-1] if said else "no reason given"
    raise CourseError(f"nbgrader failed when {doing}: {last}")


def release(classroom: Classroom, chapter: str) -> None:
    """Releases a chapter to the exchange, where Assignment List shows it.

    Raises:
        CourseError: the chapter is refused, or nbgrader fails.
    """
    # here, for they import torch, and most commands need neither
    from course_grader.chapter.build import build_chapter
    from course_grader.chapter.edition import edition_of_class
    from course_grader.chapter.notebook import write
    from course_grader.classroom.gradebook import unlike_graded

    course = classroom.course
    _, source, _ = build_chapter(course, chapter, edition_of_class(course))
    for sentence in unlike_graded(classroom, {chapter: source}):
        raise CourseError(f"Nothing is released: {sentence}")
    path = classroom.folder("source", ".", chapter) / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write(source), encoding="utf-8")
    exchange = Path(classroom.config.Exchange.root)
    exchange.mkdir(parents=True, exist_ok=True)
    # nbgrader insists that every account of the machine may write here; with the
    # sticky bit nobody renames or removes what is another's
    exchange.chmod(0o1777)
    succeed(
        classroom.api.generate_assignment(chapter, force=True, create=True),
        f"making the release version of {chapter}",
    )
    released = exchange / classroom.coursedir.course_id / "outbound" / chapter
    if released.exists():
        succeed(classroom.api.unrelease(chapter), f"replacing {chapter}")
    succeed(classroom.api.release_assignment(chapter), f"releasing {chapter}")
    inbound = exchange / classroom.coursedir.course_id / "inbound"
    inbound.chmod(inbound.stat().st_mode | stat.S_ISVTX)


def collect(classroom: Classroom, chapter: str) -> list[Outcome]:
    """Collects submissions from the exchange; what became of each.

    Raises:
        CourseError: nbgrader fails.
    """
    api = classroom.api
    # nbgrader's own `collect` gives its log alone
    with temp_attrs(api.coursedir, assignment_id=chapter):
        step = api.exchange.Collect(
            coursedir=api.coursedir, authenticator=api.authenticator, parent=api
        )
        step.update = True
        answer = capture_log(step)
    inbound = Path(step.root) / step.coursedir.course_id / "inbound"
    if not answer["success"] and not inbound.is_dir():
        raise CourseError(
            "Nothing was released yet, so nobody can have submitted to the "
            f"exchange: `course release {chapter}` comes first. What learners "
            "handed in elsewhere is collected with --zip."
        )
    succeed(answer, f"collecting {chapter}")
    return list(step.outcomes)


def feedback(classroom: Classroom, chapter: str) -> Path:
    """Writes every graded learner's page, and puts the pages of those who handed
    in through the exchange into it.

    Returns:
        The folder in which the pages lie, by student.

    Raises:
        CourseError: nbgrader fails; for some learners, if it names them: all others
            have their pages then.
    """
    # here, for it imports this
    from course_grader.classroom.term import settle

    settle(classroom, [chapter])
    api = classroom.api
    written = api.generate_feedback(chapter, force=True)
    without = _FAILED.findall(str(written.get("log")))
    if not without:
        succeed(written, f"writing feedback for {chapter}")
    succeed(api.release_feedback(chapter), f"releasing feedback for {chapter}")
    if without and os.strerror(errno.ENOSPC) in str(written.get("log")):
        raise CourseError(NO_SPACE)
    if without:
        raise CourseError(
            f"No page could be written for {', '.join(sorted(set(without)))}, but "
            "for all others. Remove the graded notebook, grade the chapter again, "
            "then repeat this."
        )
    directory = classroom.coursedir.feedback_directory
    return Path(classroom.coursedir.root) / directory
