"""nbgrader's own autograder, through our repair and our grading process.

`autograde/nbgrader_config.py` names these classes, so that `nbgrader
autograde` and formgrader's *Autograde* give the marks that `course grade` gives:

    c.Autograde.exporter_class = "course_grader.grading.nbgrader_route.RepairingExporter"
    c.Autograde.autograde_preprocessors = [..., ExecuteOutOfProcess, ...]
"""

from __future__ import annotations

import atexit
import os
import secrets
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Integer

from course_grader.chapter.build import build_chapter
from course_grader.course import find_course
from course_grader.grading.process import GradingProcess
from course_grader.grading.repair import repair
from course_grader.judge.sandbox import require_sandbox

_processes: dict[int, GradingProcess] = {}
_SEED = secrets.randbelow(2**31)
"""One for all submissions that this process grades: fair, and prepared once."""


def grading_process(sandboxed: bool) -> GradingProcess:
    """The grading process of this process, started on first need.

    Raises:
        CourseError: sandboxed, but there can be no sandbox here.
    """
    mine = os.getpid()
    if mine not in _processes:
        _processes.clear()  # a fork's parent keeps its own
        if sandboxed:
            require_sandbox("`c.ExecuteOutOfProcess.unsandboxed = True`")
        _processes[mine] = GradingProcess(find_course(), sandboxed)
        atexit.register(close_grading_process)
    return _processes[mine]


def close_grading_process() -> None:
    """Ends the grading process of this process, if there is one."""
    process = _processes.pop(os.getpid(), None)
    if process is not None:
        process.close()


class RepairingExporter(NotebookExporter):
    """Reads submitted files of any shape, so that one strange notebook stops
    neither nbgrader nor its preprocessors."""

    def from_filename(
        self, filename: Any, resources: Any = None, **kw: Any
    ) -> Any:
        path = Path(filename)
        coursedir = CourseDirectory(parent=self)
        graded = Path(coursedir.root) / coursedir.autograded_directory
        if path.resolve().is_relative_to(graded.resolve()):
            # the second pass reads what the first has written
            return super().from_filename(filename, resources, **kw)
        submitted = path.read_bytes()
        notebook = submitted_notebook(path.stem, submitted)
        notebook.metadata["course"] = {"submitted": submitted.hex()}
        return self.from_notebook_node(notebook, resources, **kw)


def submitted_notebook(chapter: str, submitted: bytes) -> NotebookNode:
    """A submission as nbgrader's preprocessors accept it; the untouched
    notebook where the file cannot be used at all."""
    _, _, released = build_chapter(find_course(), chapter)
    return repair(submitted, released).notebook or released


class ExecuteOutOfProcess(NbGraderPreprocessor):  # type: ignore[misc]
    """Replaces nbgrader's Execute: runs and judges the notebook in processes
    that the learner's code cannot reach out of."""

    seed = Integer(
        None,
        allow_none=True,
        help="Seed of the hidden cases; one drawn at random if None.",
    ).tag(config=True)
    all_cells = Bool(
        False, help="Run untouched reading cells and visible checks too."
    ).tag(config=True)
    unsandboxed = Bool(
        False,
        help="Run submissions as you, with your files and your network within "
        "their reach: only for people whom you trust with your account.",
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict
    ) -> tuple[NotebookNode, ResourcesDict]:
        chapter = resources["nbgrader"]["notebook"]
        kept = nb.metadata.get("course", {}).get("submitted")
        submitted = (
            bytes.fromhex(kept)
            if kept
            else nbformat.writes(nb, version=4).encode()
        )
        seed = _SEED if self.seed is None else self.seed
        report, text = grading_process(not self.unsandboxed).grade(
            chapter, seed, submitted, self.all_cells
        )
        if report.refused:
            student = resources["nbgrader"]["student"]
            self.log.warning("%s: %s", student, report.refused)
        return nbformat.reads(text, as_version=4), resources
