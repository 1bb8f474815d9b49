"""Grades one submission: notebook bytes and a seed in, graded notebook and
report out. No gradebook, no files: what comes out depends on nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import dataclass, replace
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_grader.chapter.build import build_chapter
from course_grader.chapter.grading import Grading
from course_grader.chapter.notebook import grade_cell_id
from course_grader.course import Course
from course_grader.grading.repair import Repaired, repair
from course_grader.judge.judging import (
    Expectations,
    Prober,
    draw_cases,
    judge_exercise,
)
from course_grader.judge.kernels import Died, Kernel
from course_grader.judge.misconceptions import Misconceptions
from course_grader.judge.reference import (
    PreparedKernels,
    Reference,
    bank_process,
)
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    SubmissionReport,
    Verdict,
)
from course_grader.judge.signatures import read_signatures, signatures_file
from course_grader.judge.warming import WarmProcess


@dataclass(frozen=True)
class Prepared:
    """A chapter made ready for grading on one seed.

    Attributes:
        grading: what the author wrote.
        released: the learner notebook that submissions are matched with.
        reference: what the reference gives, as far as it was asked for.
        expected: cases, and the same results.
        kernels: where answers of the bank run.
        misconceptions: the wrong answers' behaviour on the same cases.
    """

    grading: Grading
    released: NotebookNode
    reference: Reference
    expected: Expectations
    kernels: PreparedKernels
    misconceptions: Misconceptions

    def work_out(self) -> None:
        """Asks the reference for everything, so that no submission waits for
        it, and keeps no process or thread: after this one may fork.

        Raises:
            CourseError: the reference does not run or breaks its own checks.
        """
        try:
            ids = [one.id for one in self.grading.chapter.exercises]
            self.reference.begin(ids)
            for one in ids:
                self.reference.of(one)
        finally:
            self.close()

    def close(self) -> None:
        """Ends the processes it has started."""
        self.reference.rest()
        self.kernels.close()


@dataclass(frozen=True)
class Graded:
    """What grading one submission gives.

    Attributes:
        report: verdicts, points and words for the learner.
        notebook: the repaired notebook with the outputs of this run; its grade
            cells end in their points, as nbgrader reads them.
    """

    report: SubmissionReport
    notebook: NotebookNode


def prepare(
    course: Course, warm: WarmProcess, chapter: str, seed: int
) -> Prepared:
    """Makes a chapter ready for grading.

    Raises:
        CourseError: the chapter is refused.
    """
    grading, _, released = build_chapter(course, chapter)
    reference = Reference(warm, grading, seed)
    expected = Expectations(seed, draw_cases(grading, seed), reference)
    kernels = PreparedKernels(warm, grading)
    signatures = functools.cache(
        functools.partial(
            read_signatures, signatures_file(course, chapter), grading
        )
    )
    return Prepared(
        grading,
        released,
        reference,
        expected,
        kernels,
        Misconceptions(
            grading,
            signatures,
            functools.partial(bank_process, kernels, grading, expected),
        ),
    )


def grade_submission(
    warm: WarmProcess,
    prepared: Prepared,
    submitted: bytes,
    all_cells: bool = False,
) -> Graded:
    """Grades one submission.

    Args:
        warm: where learner processes are forked from.
        prepared: the chapter.
        submitted: the notebook file as it was handed in.
        all_cells: run untouched reading cells and visible checks too.

    Raises:
        CourseError: the reference does not run or breaks its own checks.
        GraderBroken: the machinery failed; nobody's work is to blame.
    """
    repaired = repair(submitted, prepared.released)
    if repaired.notebook is None:
        return _refused(prepared, repaired)
    prepared.reference.begin(_handed_in(repaired.notebook, prepared.released))
    run = _Run(warm, repaired, all_cells)
    try:
        run.cells()
        report = run.judge(prepared)
    finally:
        run.close()
        prepared.reference.rest()
    notebook = repaired.notebook
    _write_scores(notebook, report)
    return Graded(report, notebook)


def _handed_in(notebook: NotebookNode, released: NotebookNode) -> list[str]:
    """Ids of the exercises whose cell is not as it was released."""
    stubs = {_exercise_id(cell): cell.source for cell in released.cells}
    return [
        found
        for cell in notebook.cells
        if (found := _exercise_id(cell)) and cell.source != stubs.get(found)
    ]


class _Run:
    """One learner's process, replaced when it dies."""

    def __init__(
        self, warm: WarmProcess, repaired: Repaired, all_cells: bool
    ) -> None:
        assert repaired.notebook is not None
        self.warm = warm
        self.cells_to_run = [
            cell
            for cell in repaired.notebook.cells
            if _runs(cell, repaired.changed, all_cells)
        ]
        self.all_cells = list(self.cells_to_run)
        self.notes = list(repaired.notes)
        self.dead: dict[str, Died] = {}
        self.stopped: dict[str, str] = {}
        self.kernel: Kernel | None = None
        self.deadline = time.monotonic() + warm.limits.submission_s
        for cell in repaired.notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None

    def cells(self) -> None:
        """Runs the cells in order. A cell that ends its process is left out
        and those before it run again in a fresh one, their outputs unchanged."""
        done: list[NotebookNode] = []
        for cell in self.cells_to_run:
            died, outputs, ok = self._run(cell, done)
            if died is not None:
                self.dead[cell.id] = died
                cell.outputs = [_stopped_output(died)]
                if not _exercise_id(cell):
                    self.notes.append(
                        f"A cell that you added or changed was left out: "
                        f"{died.why}"
                    )
                continue
            done.append(cell)
            cell.outputs = [nbformat.from_dict(one) for one in outputs]
            if not ok:
                self.stopped[cell.id] = _error_words(outputs)
        self.cells_to_run = done

    def _run(
        self, cell: NotebookNode, before: list[NotebookNode]
    ) -> tuple[Died | None, list[dict[str, Any]], bool]:
        left = self.deadline - time.monotonic()
        if left <= 0:
            return _out_of_time(self.warm.limits.submission_s), [], False
        self._ensure(before)
        assert self.kernel is not None
        run = self.kernel.run_cell(cell.source, cell.id, left)
        return run.died, run.outputs, run.ok

    def _ensure(self, before: list[NotebookNode]) -> None:
        """A living process that has run the cells before."""
        if self.kernel is not None and self.kernel.died is None:
            return
        self.kernel = Kernel(self.warm)
        for cell in before:
            left = max(self.deadline - time.monotonic(), 1.0)
            again = self.kernel.run_cell(cell.source, cell.id, left)
            if again.died is not None:
                # it ran once and dies now: what it defines stays undefined
                self.kernel = Kernel(self.warm)

    def judge(self, prepared: Prepared) -> SubmissionReport:
        grading = prepared.grading
        by_exercise = {_exercise_id(cell): cell for cell in self.all_cells}
        sources = {cell.id: cell.source for cell in self.cells_to_run}
        exercises = []
        for exercise in grading.chapter.exercises:
            cell = by_exercise.get(exercise.id)
            died = self.dead.get(cell.id) if cell is not None else None
            with contextlib.ExitStack() as stack:

                def prober(stack: contextlib.ExitStack = stack) -> Prober:
                    self._ensure(self.cells_to_run)
                    assert self.kernel is not None
                    probing = stack.enter_context(
                        self.kernel.probing(grading.probes_source)
                    )
                    if self.kernel.died is None:
                        return probing
                    # it had ended with the probe before, sandbox and all
                    self._ensure(self.cells_to_run)
                    return stack.enter_context(
                        self.kernel.probing(grading.probes_source)
                    )

                report = judge_exercise(
                    grading,
                    exercise.id,
                    prepared.expected,
                    prober,
                    prepared.misconceptions.recognise,
                    lambda cell_id, line: _line(sources, cell_id, line),
                    died,
                )
            if cell is not None and cell.id in self.stopped:
                report = _with_cell_error(report, self.stopped[cell.id])
            exercises.append(report)
        return SubmissionReport(
            chapter=grading.chapter.name,
            title=grading.chapter.title,
            seed=prepared.expected.seed,
            exercises=tuple(exercises),
            notes=tuple(self.notes),
        )

    def close(self) -> None:
        if self.kernel is not None:
            self.kernel.close()


def _runs(cell: NotebookNode, changed: Any, all_cells: bool) -> bool:
    if cell.cell_type != "code":
        return False
    nbgrader = cell.metadata.get("nbgrader", {})
    if nbgrader.get("grade") and nbgrader.get("points"):
        return False
    if nbgrader.get("grade"):
        return all_cells
    return all_cells or bool(nbgrader) or cell.id in changed


def _exercise_id(cell: NotebookNode) -> str:
    nbgrader = cell.metadata.get("nbgrader", {})
    return str(nbgrader["grade_id"]) if nbgrader.get("solution") else ""


def _out_of_time(submission_s: float) -> Died:
    return Died(
        Verdict.TIMED_OUT,
        f"The notebook used up its {submission_s:g} seconds before this cell.",
    )


def _stopped_output(died: Died) -> NotebookNode:
    return nbformat.from_dict(
        {"output_type": "stream", "name": "stderr", "text": died.why + "\n"}
    )


def _error_words(outputs: list[dict[str, Any]]) -> str:
    for one in outputs:
        if one["output_type"] == "error":
            return str(one["ename"])
    return "an error"


def _with_cell_error(report: ExerciseReport, ename: str) -> ExerciseReport:
    """Names the error that stopped the cell where it left nothing to judge."""
    return replace(
        report,
        checks=tuple(
            replace(
                one,
                verdict=Verdict.ERROR,
                message=f"Your cell stopped with {ename} before it defined "
                "what the exercise asks for.",
            )
            if one.verdict is Verdict.NOT_ATTEMPTED
            else one
            for one in report.checks
        ),
    )


def _line(sources: dict[str, str], cell_id: str, line: int) -> str:
    lines = sources.get(cell_id, "").splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _refused(prepared: Prepared, repaired: Repaired) -> Graded:
    chapter = prepared.grading.chapter
    report = SubmissionReport(
        chapter=chapter.name,
        title=chapter.title,
        seed=prepared.expected.seed,
        exercises=tuple(
            ExerciseReport(
                exercise=one.id,
                title=one.title,
                points=0.0,
                max_points=one.points,
                checks=tuple(
                    CheckReport(
                        check.name,
                        check.says,
                        Verdict.NOT_ATTEMPTED,
                        0.0,
                        prepared.grading.points_of(check),
                    )
                    for check in prepared.grading.checks_of(one.id)
                ),
            )
            for one in chapter.exercises
        ),
        notes=tuple(repaired.notes),
        refused=repaired.refused,
        needs_human=("The file could not be graded.",),
    )
    notebook = nbformat.from_dict(prepared.released)
    _write_scores(notebook, report)
    return Graded(report, notebook)


def _write_scores(notebook: NotebookNode, report: SubmissionReport) -> None:
    """Grade cells end in their points; the report travels in the metadata."""
    by_cell = {grade_cell_id(one.exercise): one for one in report.exercises}
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in by_cell:
            exercise = by_cell[grade_id]
            table = "\n".join(
                f"{one.verdict:14} {one.points:5.2f} of {one.max_points:.2f}  "
                f"{one.says}" + (f"\n    {one.message}" if one.message else "")
                for one in exercise.checks
            )
            cell.outputs = [
                nbformat.from_dict(
                    {
                        "output_type": "stream",
                        "name": "stdout",
                        "text": table + "\n",
                    }
                ),
                nbformat.from_dict(
                    {
                        "output_type": "execute_result",
                        "execution_count": None,
                        "data": {"text/plain": repr(exercise.points)},
                        "metadata": {},
                    }
                ),
            ]
    notebook.metadata["course"] = {"report": report.to_json()}
