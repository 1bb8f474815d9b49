"""Answers kernels: a socket that this account alone can open, and one thread that
keeps a grading process warm.

What a kernel sends becomes a notebook of the chapter and is judged as one that
was handed in, in the same sandbox, for one exercise alone.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import json
import queue
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_grader.course import Course, CourseError
from course_grader.grading.process import GradingFailed, GradingProcess
from course_grader.judge import sandbox
from course_grader.kernel.channel import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
)

IDLE_S = 3.0
"""After so long without a question, cases of a chapter that showed some are drawn
anew: what one has seen helps nobody to pass."""
TRIES = 2
"""How often a question is put to a grading process that dies of it."""


@dataclass(frozen=True)
class _Question:
    """What a kernel asks, and where the answer goes."""

    request: dict[str, Any]
    channel: Channel


class Service:
    """The hidden checks of a course, at once. Started on construction.

    Attributes:
        address: the path of the socket.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        self.folder = Path(tempfile.mkdtemp(prefix="course-checks-"))  # 0700
        self.address = str(self.folder / "socket")
        self.questions: queue.SimpleQueue[_Question | None] = (
            queue.SimpleQueue()
        )
        self.process: GradingProcess | None = None
        self.seeds: dict[str, int] = {}
        self.stale: set[str] = set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen(16)
        for work in (self._listen, self._work):
            threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        """Ends the process and takes the socket away."""
        self.questions.put(None)
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.process is not None:
            self.process.close()

    def _listen(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._read, args=(Channel(sock),), daemon=True
            ).start()

    def _read(self, channel: Channel) -> None:
        try:
            request, _ = channel.receive(5)
            if request.get("op") == "hello":
                channel.send({})  # nobody waits while a chapter is made ready
            self.questions.put(_Question(request, channel))
        except (ChannelClosed, DeadlinePassed):
            channel.close()

    def _work(self) -> None:
        while True:
            try:
                question = self.questions.get(timeout=IDLE_S)
            except queue.Empty:
                self._renew()
                continue
            if question is None:
                return
            tell = functools.partial(self._tell, question.channel)
            try:
                answer = self._answered(question.request, tell)
            except CourseError as error:
                answer = {"text": str(error)}
            except Exception as error:
                answer = {
                    "text": "The hidden checks broke on this "
                    f"({type(error).__name__}: {error}). Your work is as it was."
                }
            with contextlib.suppress(ChannelClosed, DeadlinePassed):
                question.channel.send(answer, timeout_s=5)
            question.channel.close()

    def _tell(self, channel: Channel, html: str) -> None:
        """Shows how far it is, to whoever still waits."""
        with contextlib.suppress(ChannelClosed, DeadlinePassed):
            channel.send({"running": True, "html": html}, timeout_s=5)

    def _renew(self) -> None:
        """Draws new cases for a chapter, while nobody asks."""
        if self.stale:
            chapter = self.stale.pop()
            with contextlib.suppress(CourseError, GradingFailed):
                self._prepared(chapter, secrets.randbelow(2**31))

    def _prepared(self, chapter: str, seed: int) -> GradingProcess:
        """A living process that has the chapter ready on the seed."""
        if self.process is None:
            self.process = GradingProcess(
                self.course, sandbox.missing() is None
            )
            self.seeds.clear()
        if self.seeds.get(chapter) != seed:
            try:
                self.process.prepare(chapter, seed)
            except GradingFailed:
                self._end()
                raise
            self.seeds[chapter] = seed
        return self.process

    def _end(self) -> None:
        if self.process is not None:
            self.process.close()
        self.process = None
        self.seeds.clear()

    def _answered(
        self, request: Mapping[str, Any], tell: Callable[[str], None]
    ) -> dict[str, Any]:
        cells = _cells(request.get("cells"))
        chapter = self._chapter(str(request.get("notebook", "")), cells)
        if chapter is None:
            return {"text": ""}  # no notebook of the course
        if request.get("op") == "hello":
            self._prepared(chapter, self._seed(chapter))
            return {}
        exercise = str(request.get("exercise", ""))
        released = nbformat.read(self.course.notebook_of(chapter), as_version=4)
        answer = answer_cell(released, exercise)
        if answer is None or dict(cells).get(answer.id) in (
            None,
            answer.source,
        ):
            return {"text": ""}  # nothing was answered yet
        submitted = nbformat.writes(
            as_notebook(released, cells, exercise)
        ).encode()
        for left in reversed(range(TRIES)):
            try:
                process = self._prepared(chapter, self._seed(chapter))
                report, html = process.check(
                    chapter, self.seeds[chapter], submitted, exercise, tell
                )
                break
            except GradingFailed:
                self._end()
                if not left:
                    raise
        self.stale.add(chapter)
        if not report.exercises:
            return {"text": report.refused}
        from course_grader.feedback.text import as_text
        from course_grader.lab.progress import keep_progress

        keep_progress(self.course, chapter, report.exercises[0])
        return {"text": as_text(report.exercises[0]), "html": html}

    def _seed(self, chapter: str) -> int:
        return self.seeds.get(chapter) or secrets.randbelow(2**31 - 1) + 1

    def _chapter(
        self, notebook: str, cells: Sequence[tuple[str, str]]
    ) -> str | None:
        """The chapter that a notebook is of, by its name or, if that was changed,
        by its cells."""
        stem = Path(notebook).stem
        chapters = self.course.chapters()
        if stem in chapters:
            return stem
        ids = {cell_id for cell_id, _ in cells}
        found = {
            chapter: len(ids & _ids(self.course.notebook_of(chapter)))
            for chapter in chapters
        }
        best = max(found, key=lambda one: found[one], default=None)
        return best if best is not None and found[best] >= 2 else None


def _cells(given: Any) -> list[tuple[str, str]]:
    """(id, source) of the cells that a kernel ran, in order."""
    return [
        (one[0], one[1])
        for one in (given if isinstance(given, list) else [])
        if isinstance(one, list)
        and len(one) == 2
        and all(isinstance(part, str) for part in one)
    ]


def _ids(path: Path) -> set[str]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {str(cell.get("id")) for cell in tree["cells"]}


def as_notebook(
    released: NotebookNode, cells: Sequence[tuple[str, str]], exercise: str
) -> NotebookNode:
    """The learner's notebook as far as one exercise needs it.

    Args:
        released: the chapter's notebook.
        cells: what has run in the kernel, in order.
        exercise: its id. Of the learner's own cells those come along that make
            names which its cell, or one of those, uses.
    """
    notebook = nbformat.from_dict(json.loads(json.dumps(released)))
    known = {cell.id: cell for cell in notebook.cells}
    answer = answer_cell(notebook, exercise)
    assert answer is not None, "the chapter has the exercise"
    own = []
    for cell_id, source in reversed(cells):
        cell = known.get(cell_id)
        if cell is not None and cell is answer:
            cell.source = source
            break
    wanted = _used(answer.source)
    for cell_id, source in reversed(cells):
        cell = known.get(cell_id)
        if cell is not None and cell.metadata.get("nbgrader"):
            if not cell.metadata.nbgrader.get("grade"):
                cell.source = source
            continue
        if cell is not None and cell.source == source:
            continue
        if _made(source) & wanted:
            wanted |= _used(source)
            own.append(source)
    place = notebook.cells.index(answer)
    for source in own:
        notebook.cells.insert(place, nbformat.v4.new_code_cell(source))
    return notebook


def answer_cell(notebook: NotebookNode, exercise: str) -> NotebookNode | None:
    """The cell that an exercise is answered in; None if there is none."""
    for cell in notebook.cells:
        nbgrader = cell.metadata.get("nbgrader", {})
        if nbgrader.get("solution") and nbgrader.get("grade_id") == exercise:
            return cell
    return None


def _names(source: str) -> Iterator[tuple[str, bool]]:
    """Names of a cell, and whether they are made there."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=context):
                yield name, not isinstance(context, ast.Load)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, True
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for one in names:
                    yield (one.asname or one.name).partition(".")[0], True


def _made(source: str) -> set[str]:
    return {name for name, made in _names(source) if made}


def _used(source: str) -> set[str]:
    used = {name for name, made in _names(source) if not made}
    return used - set(dir(builtins))
