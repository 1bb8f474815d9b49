"""A learner's folder `work/`: a copy of every chapter, and what becomes of a copy
when the course has a newer edition of its chapter."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from course_grader.chapter.notebook import with_solution_folds, write
from course_grader.chapter.source import read_chapter
from course_grader.classroom.private import private_folder, write_private
from course_grader.course import Course, CourseError
from course_home.progress import OWN

COPIES = "copies.json"
"""In work/.course: which edition each copy was made from."""


@dataclass
class Filled:
    """What `fill_work` did, as names of chapters.

    Attributes:
        new: they were not there.
        renewed: nobody had written into them; they are the newer edition now.
        beside: the newer edition stands beside the learner's own, whose names
            are the files'.
    """

    new: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)


def fill_work(course: Course) -> Filled:
    """Copies chapters into work/, and newer editions of those that are there. What
    a learner has changed is never touched.

    Whoever works here has the solutions on this machine and learns alone, so
    each exercise's text ends in its solution, folded. A class gets its
    notebooks from the exchange or the kit, without.

    Raises:
        CourseError: a chapter was never built.
    """
    done = Filled()
    copies = _read(course)
    for chapter in course.chapters():
        text = _text_of(course, chapter)
        digest = _digest(text)
        folder = course.work / chapter
        target = folder / f"{chapter}.ipynb"
        # a link that leads nowhere is a learner's too
        if not os.path.lexists(target):
            folder.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            copies[target.name] = digest
            done.new.append(chapter)
            continue
        if copies.get(target.name) == digest:
            continue  # made from this edition
        found = _digest_of(target)
        if found == digest:
            copies[target.name] = digest
        elif found is not None and found == copies.get(target.name):
            _replace(target, text)
            copies[target.name] = digest
            done.renewed.append(chapter)
        else:
            beside = _beside(folder, chapter, digest)
            if not beside.exists():
                beside.write_text(text, encoding="utf-8")
                done.beside[chapter] = beside.name
    _write(course, copies)
    return done


def newer_editions(course: Course) -> dict[str, str]:
    """The files beside learners' own that hold a newer edition, by chapter."""
    found = {}
    for chapter in course.chapters():
        folder = course.work / chapter
        # first by name: to tell which edition is the newest, all must be read
        if not any(folder.glob(_beside(folder, chapter, "*").name)):
            continue
        beside = _beside(folder, chapter, _digest(_text_of(course, chapter)))
        if beside.exists():
            found[chapter] = beside.name
    return found


def _beside(folder: Path, chapter: str, digest: str) -> Path:
    """Where a newer edition stands whose place is taken: each has its own."""
    return folder / f"{chapter}-newer-{digest[:6]}.ipynb"


def _text_of(course: Course, chapter: str) -> str:
    notebook = course.notebook_of(chapter)
    if not notebook.exists():
        raise CourseError(
            f"{notebook.relative_to(course.root)} is missing: run `course build`."
        )
    return write(
        with_solution_folds(
            nbformat.read(notebook, as_version=4),
            read_chapter(course.source_of(chapter)),
        )
    )


def _digest(text: str) -> str:
    """Of the cells that a person reads or writes: running a notebook, which fills
    in outputs, changes nothing."""
    cells = [
        [cell.get("id"), cell["cell_type"], _source(cell)]
        for cell in json.loads(text)["cells"]
    ]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _digest_of(path: Path) -> str | None:
    try:
        return _digest(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # whatever it is, it is the learner's


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def _read(course: Course) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        tree = json.loads((course.work / OWN / COPIES).read_text("utf-8"))
        if isinstance(tree, dict):
            return tree
    return {}


def _write(course: Course, copies: dict[str, str]) -> None:
    folder = private_folder(course.work / OWN)
    text = json.dumps(copies, indent=1, sort_keys=True)
    write_private(folder / COPIES, text + "\n")
