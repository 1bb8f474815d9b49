"""Where a course keeps its things, and what its chapters are called."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from course_grader.kernel.limits import Limits
from course_grader.settings import objection

CHAPTER_NAME = re.compile(r"\d\d_[a-z0-9_]+")


class CourseError(Exception):
    """Something a person has to put right; the message says what and how."""


@dataclass(frozen=True)
class Course:
    """The folders of one course.

    Attributes:
        root: the project's top folder, the one with pyproject.toml.
    """

    root: Path

    @property
    def solutions(self) -> Path:
        return self.root / "solutions"

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    @property
    def autograde(self) -> Path:
        """Hidden tests, answers, and nbgrader's settings."""
        return self.root / "autograde"

    @property
    def people(self) -> Path:
        """nbgrader's course root: everything about the people of a class."""
        return self.root / "class"

    @property
    def work(self) -> Path:
        """Where a learner on this machine works."""
        return self.root / "work"

    @property
    def settings_file(self) -> Path:
        """What an instructor sets; no file of the project, so that a newer
        edition never touches it."""
        return self.root / "course.toml"

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What `course.toml` says; docs/instructors.md names what it may hold.

        Raises:
            CourseError: the file cannot be read, or says what no setting is.
        """
        try:
            text = self.settings_file.read_text(encoding="utf-8")
            tree = tomllib.loads(text)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise CourseError(
                f"course.toml cannot be read: {error}."
            ) from error
        if wrong := objection(tree, self.no_chapter):
            raise CourseError(wrong)
        return tree

    @cached_property
    def limits(self) -> Limits:
        """What one submission may take, from `[limits]` in `course.toml`."""
        return Limits(**self.settings.get("limits", {}))

    @cached_property
    def exams(self) -> frozenset[str]:
        """Chapters whose feedback shows no case and no text of an exception, from
        `exams` in `course.toml`: names or numbers, or "all"."""
        given = self.settings.get("exams", [])
        if "all" in given:
            return frozenset(self.chapters())
        return frozenset(self.chapter(str(one)) for one in given)

    @property
    def best_attempt_counts(self) -> bool:
        """Whether the best of a learner's attempts counts, not the newest:
        `attempts` in `course.toml`."""
        return bool(self.settings.get("attempts", "last") == "best")

    def settings_of_grading(self) -> str:
        """A `course.toml` that holds what grading reads, and nothing that is
        between the instructor and this machine."""
        return f"exams = {json.dumps(sorted(self.exams))}\n" + (
            self.limits.as_toml()
        )

    def source_of(self, chapter: str) -> Path:
        """The one source of a chapter."""
        return self.solutions / chapter / f"{chapter}.py"

    def notebook_of(self, chapter: str) -> Path:
        """The committed learner notebook of a chapter."""
        return self.notebooks / chapter / f"{chapter}.ipynb"

    def chapters(self) -> list[str]:
        """Names of all chapters, in order."""
        return sorted(
            path.name
            for path in self.solutions.glob("*")
            if CHAPTER_NAME.fullmatch(path.name)
            and self.source_of(path.name).exists()
        )

    def chapter(self, name: str) -> str:
        """The chapter called `name`: its full name, or its number.

        Raises:
            CourseError: there is none or more than one.
        """
        if why := self.no_chapter(name):
            raise CourseError(why)
        return self._named(name)[0]

    def no_chapter(self, name: str) -> str:
        """Why a name is no chapter's, in a sentence; empty if it is one's."""
        if len(self._named(name)) == 1:
            return ""
        return (
            f"There is no chapter {name!r}. The chapters are: "
            + ", ".join(self.chapters())
            + "."
        )

    def _named(self, name: str) -> list[str]:
        if re.fullmatch(r"\d", name):
            name = f"0{name}"
        return [
            one
            for one in self.chapters()
            if one == name
            or one.startswith(name + "_")
            or one == Path(name).stem
        ]


def find_course(start: Path | None = None) -> Course:
    """The innermost course that `start` lies in and that is nobody's work.

    If it is None, the environment variable COURSE_ROOT says where, so that a
    kernel started anywhere finds its course; else it is the current folder.

    Raises:
        CourseError: there is none.
    """
    if start is not None and not start.is_dir():
        raise CourseError(f"There is no folder {start}.")
    first = start or Path(os.environ.get("COURSE_ROOT") or Path.cwd())
    courses = [
        Course(folder)
        for folder in [first.resolve(), *first.resolve().parents]
        if (folder / "pyproject.toml").exists()
        and (folder / "solutions").is_dir()
    ]
    for course in courses:
        # what learners handed in is no course, whatever it looks like
        if not any(
            course.root.is_relative_to(one.people)
            for one in courses
            if one is not course
        ):
            return course
    raise CourseError(
        f"No course was found in {first} or above it. Run this inside the "
        "course's folder, the one that holds solutions/ and pyproject.toml."
    )
