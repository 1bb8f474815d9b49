"""Grades one submission: notebook bytes and a seed in, graded notebook and
report out. No gradebook, no files: what comes out depends on nothing else.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_grader.chapter.built import built_notebook
from course_grader.chapter.grading import Grading, load_grading
from course_grader.chapter.notebook import grade_cell_id
from course_grader.checks import Case
from course_grader.course import Course, CourseError
from course_grader.grading.reaching import (
    MOST_SHOWN,
    reaches,
    without_reaching,
)
from course_grader.grading.repair import Repaired, repair
from course_grader.judge.beside import Beside
from course_grader.judge.failing import LONGEST_TEXT, Shows
from course_grader.judge.judging import (
    Expectations,
    Prober,
    draw_cases,
    judge_exercise,
)
from course_grader.judge.kernels import (
    Died,
    Exchanged,
    Kernel,
    ProbeRun,
    Probing,
    Traced,
    out_of_time,
)
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
from course_grader.judge.warming import GraderBroken, WarmProcess
from course_grader.judge.written import one_line

REFERENCE_PROCESSES = 2
"""Processes that the reference runs in while all submissions of a class wait for it."""
JUDGE_TRIES = 2
"""How often an exercise is judged before the judge's own failure counts."""
LONG_CELL_S = 1.0
"""Seconds from which a cell that answers no exercise is not run a second time for
what feedback shows."""


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
        shows: which cases feedback may show; None in an exam.
    """

    grading: Grading
    released: NotebookNode
    reference: Reference
    expected: Expectations
    kernels: PreparedKernels
    misconceptions: Misconceptions
    shows: Shows | None

    def work_out(self, many: bool = True) -> None:
        """Asks the reference for everything, so that no submission waits for
        it, and keeps no process or thread: after this one may fork. Where `many`
        submissions come, the warm process imports what any of them may need
        meanwhile.

        Raises:
            CourseError: the reference does not run or breaks its own checks.
        """
        try:
            ids = [one.id for one in self.grading.chapter.exercises]
            # importing, the warm process starts nothing
            self.reference.start(REFERENCE_PROCESSES)
            self.reference.begin(ids)
            if many:
                self.reference.warm.import_rest(self.grading.large)
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
    grading = load_grading(course, chapter)
    released = built_notebook(course, grading)
    if released is None:
        # here, for it imports nbgrader
        from course_grader.chapter.build import build_chapter

        grading, _, released = build_chapter(course, chapter)
    cases, exchanged = draw_cases(grading, seed), Exchanged()
    reference = Reference(warm, grading, cases, exchanged)
    expected = Expectations(seed, cases, reference, exchanged)
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
            reference,
        ),
        None if chapter in course.exams else Shows(grading, seed),
    )


def grade_submission(
    warm: WarmProcess,
    prepared: Prepared,
    submitted: bytes,
    all_cells: bool = False,
    tell: Callable[[ExerciseReport], None] = lambda _: None,
    only: str | None = None,
    running: Callable[[Sequence[CheckReport]], None] | None = None,
) -> Graded:
    """Grades one submission.

    Args:
        warm: where learner processes are forked from.
        prepared: the chapter.
        submitted: the notebook file as it was handed in.
        all_cells: run untouched reading cells and visible checks too.
        tell: is told of each exercise as it has been judged.
        only: the one exercise that is judged, with the cells that it needs; all
            if None.
        running: is told of the checks of an exercise that have been judged, after
            each of them.

    Raises:
        CourseError: the reference does not run or breaks its own checks.
        GraderBroken: the machinery failed; nobody's work is to blame.
    """
    repaired = repair(submitted, prepared.released)
    if repaired.notebook is None:
        return _refused(prepared, repaired)
    for cell in repaired.notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    begun = _handed_in(repaired.notebook, prepared.released)
    prepared.reference.begin(one for one in begun if only in (None, one))
    run = _Run(warm, repaired, all_cells, only)
    try:
        if only is not None:
            run.begin_beside(prepared, only)
        run.cells()
        report = run.judge(prepared, tell, running)
    finally:
        run.close()
        prepared.reference.rest()
    reaching = _reaching(run.all_cells)
    if reaching and report.points > 0 and only is None:
        reaching += _without_reaching(prepared, run, report)
    report = replace(report, needs_human=(*report.needs_human, *reaching))
    notebook = repaired.notebook
    write_scores(notebook, report)
    return Graded(report, notebook)


def _handed_in(notebook: NotebookNode, released: NotebookNode) -> list[str]:
    """Ids of the exercises whose cell is not as it was released."""
    stubs = {_exercise_id(cell): cell.source for cell in released.cells}
    return [
        found
        for cell in notebook.cells
        if (found := _exercise_id(cell)) and cell.source != stubs.get(found)
    ]


def _reaching(cells: Sequence[NotebookNode]) -> list[str]:
    """What of a submission reaches for the grader, as sentences for a human."""
    found = [
        f"The cell {cell.id} reaches for the grader, in line {one.number}: "
        f"`{one.line}`"
        for cell in cells
        for one in reaches(cell.source)
    ]
    more = len(found) - MOST_SHOWN
    return found[:MOST_SHOWN] + (
        [f"So do {more} more lines."] if more > 0 else []
    )


def _without_reaching(
    prepared: Prepared, first: _Run, report: SubmissionReport
) -> list[str]:
    """What the same work gets in a fresh process in which those lines do not run."""
    prepared = replace(prepared, shows=None)
    run = _Run(first.warm, replace(first.repaired, notes=()), first.every_cell)
    run.deadline = first.deadline
    cells = [copy.copy(cell) for cell in run.cells_to_run]
    for cell in cells:
        cell.source = without_reaching(cell.source)
    run.cells_to_run = run.all_cells = cells
    try:
        run.cells()
        points = run.judge(prepared, lambda _: None).points
    finally:
        run.close()
        prepared.reference.rest()
    if points == report.points:
        return ["Its points are the same without those lines."]
    return [
        f"Without those lines it gets {points:g} points in place of "
        f"{report.points:g}. Nothing was taken off."
    ]


class _Run:
    """One learner's process, replaced when it dies."""

    def __init__(
        self,
        warm: WarmProcess,
        repaired: Repaired,
        all_cells: bool,
        only: str | None = None,
    ) -> None:
        assert repaired.notebook is not None
        self.warm, self.repaired, self.every_cell = warm, repaired, all_cells
        self.only = only
        self.cells_to_run = [
            cell
            for cell in repaired.notebook.cells
            if _runs(cell, repaired.changed, all_cells)
            and (only is None or _exercise_id(cell) in ("", only))
        ]
        self.all_cells = list(self.cells_to_run)
        self.notes = list(repaired.notes)
        self.needs_human = list(repaired.needs_human)
        self.dead: dict[str, Died] = {}
        self.stopped: dict[str, tuple[str, str]] = {}
        self.kernel: Kernel | None = None
        self.untouched: Kernel | None = None
        self.beside: Beside | None = None
        self.probing: Probing | None = None
        self.took_s: dict[str, float] = {}
        self.deadline = time.monotonic() + warm.limits.submission_s
        self.chars_left = warm.limits.notebook_chars

    def begin_beside(self, prepared: Prepared, exercise_id: str) -> None:
        """Starts a second process that answers some of the exercise's checks."""
        self.beside = Beside(
            self._second(prepared, list(self.cells_to_run)),
            prepared.grading.checks_of(exercise_id),
            prepared.expected.cases,
        )

    @contextlib.contextmanager
    def _second(
        self, prepared: Prepared, cells: Sequence[NotebookNode]
    ) -> Iterator[Prober | None]:
        """A process in a room of its own that has run the same cells; None if it
        ended in one."""
        with Kernel(self.warm, self.deadline) as kernel:
            for cell in cells:
                if kernel.run_cell(cell.source, cell.id).died is not None:
                    yield None
                    return
            with kernel.probing(
                prepared.grading.probes_source, prepared.expected.exchanged
            ) as probing:
                yield probing

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
            cell.outputs = [
                nbformat.from_dict(one) for one in self._affordable(outputs)
            ]
            if not ok:
                self.stopped[cell.id] = _error_of(outputs)
        self.cells_to_run = done

    def _run(
        self, cell: NotebookNode, before: list[NotebookNode]
    ) -> tuple[Died | None, list[dict[str, Any]], bool]:
        if self._late():
            return self._out_of_time(), [], False
        self._ensure(before)
        assert self.kernel is not None
        started = time.monotonic()
        run = self.kernel.run_cell(cell.source, cell.id)
        self.took_s[cell.id] = time.monotonic() - started
        return run.died, run.outputs, run.ok

    def _late(self) -> bool:
        return time.monotonic() >= self.deadline

    def _out_of_time(self) -> Died:
        return Died(Verdict.TIMED_OUT, out_of_time(self.warm.limits))

    def _affordable(
        self, outputs: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Those outputs that the notebook still has room for."""
        kept = []
        for one in outputs:
            self.chars_left -= _chars(one)
            if self.chars_left >= 0:
                kept.append(one)
        if len(kept) < len(outputs):
            kept.append(_text_output(_OUTPUTS_LEFT_OUT))
        return kept

    def _ensure(self, before: list[NotebookNode]) -> None:
        """A living process that has run the cells before."""
        if self.kernel is not None and self.kernel.died is None:
            return
        self.kernel = Kernel(self.warm, self.deadline)
        for cell in before:
            if self._late():
                return
            again = self.kernel.run_cell(cell.source, cell.id)
            if again.died is not None:
                # it ran once and dies now: what it defines stays undefined
                self.kernel = Kernel(self.warm, self.deadline)

    def judge(
        self,
        prepared: Prepared,
        tell: Callable[[ExerciseReport], None],
        running: Callable[[Sequence[CheckReport]], None] | None = None,
    ) -> SubmissionReport:
        grading = prepared.grading
        by_exercise = {_exercise_id(cell): cell for cell in self.all_cells}
        sources = {cell.id: cell.source for cell in self.cells_to_run}
        exercises = []
        for exercise in grading.chapter.exercises:
            if self.only not in (None, exercise.id):
                continue
            cell = by_exercise.get(exercise.id)
            report = self._judged(prepared, exercise.id, cell, sources, running)
            if cell is not None and cell.id in self.stopped:
                name, said = self.stopped[cell.id]
                if said and prepared.shows is not None:
                    name = f"{name} ({said})"
                report = _with_cell_error(report, name)
            tell(report)
            exercises.append(report)
        return SubmissionReport(
            chapter=grading.chapter.name,
            title=grading.chapter.title,
            seed=prepared.expected.seed,
            exercises=tuple(exercises),
            notes=tuple(self.notes),
            needs_human=tuple(self.needs_human),
        )

    def _judged(
        self,
        prepared: Prepared,
        exercise_id: str,
        cell: NotebookNode | None,
        sources: dict[str, str],
        running: Callable[[Sequence[CheckReport]], None] | None,
    ) -> ExerciseReport:
        """Judges one exercise. Where the judge itself breaks on what came back,
        it tries once more, then says so, and the others are judged."""
        cell_id = "" if cell is None else cell.id
        for _ in range(JUDGE_TRIES):
            with contextlib.ExitStack() as stack:
                try:
                    self.probing = None
                    report = judge_exercise(
                        prepared.grading,
                        exercise_id,
                        prepared.expected,
                        functools.partial(self._prober, prepared, stack),
                        prepared.misconceptions.recognise,
                        lambda cell, line: (
                            _line(sources, cell, line)
                            if cell == cell_id and prepared.shows
                            else ""
                        ),
                        self.dead.get(cell_id),
                        prepared.shows,
                        functools.partial(self._untouched, prepared, stack),
                        running,
                        None if self.beside is None else self.beside.answered,
                    )
                    self._ask_what_was_replaced(report)
                    return report
                except (CourseError, GraderBroken):
                    raise
                except MemoryError:
                    verdict = Verdict.OUT_OF_MEMORY
                    why = "What your code gave back took too much memory to judge."
                except Exception as error:
                    verdict = Verdict.ERROR
                    why = (
                        "The grader itself broke on what your code gave back. "
                        "Somebody looks at it."
                    )
                    raised = type(error).__name__
        if verdict is Verdict.ERROR:
            self.needs_human.append(
                f"Exercise {exercise_id} was not judged: the grader broke on it "
                f"({raised})."
            )
        return unjudged(prepared.grading, exercise_id, verdict, why)

    def _ask_what_was_replaced(self, report: ExerciseReport) -> None:
        """Tells a human where facts were measured with what is the learner's."""
        if self.probing is None or report.points == 0:
            return
        names = self.probing.replaced()
        if names is None:
            found = "its process does not say what it has replaced"
        elif names:
            said = ", ".join(f"`{one_line(one, 80)}`" for one in names)
            found = f"when it was judged, this was not as it had been: {said}"
        else:
            return
        self.needs_human.append(
            f"Exercise {report.exercise} measures with functions of the learner's "
            f"process, and {found}. Nothing was taken off."
        )

    def _prober(
        self, prepared: Prepared, stack: contextlib.ExitStack
    ) -> Prober:
        probing: Prober = _TooLate(self._out_of_time())
        for _ in range(2):
            if self._late():
                break
            self._ensure(self.cells_to_run)
            assert self.kernel is not None
            probing = self.probing = stack.enter_context(
                self.kernel.probing(
                    prepared.grading.probes_source, prepared.expected.exchanged
                )
            )
            if self.kernel.died is None:
                break
            # it had ended with the probe before, sandbox and all
        return probing

    def _untouched(
        self, prepared: Prepared, stack: contextlib.ExitStack
    ) -> Prober:
        """A process in a room of its own, in which no case has been but those that
        are shown: files, processes and memory of the other room may hold any."""
        nothing = _TooLate(self._out_of_time())
        if self.untouched is None:
            if self._late():
                return nothing
            self.untouched = Kernel(self.warm, self.deadline)
            for cell in self.cells_to_run:
                if _exercise_id(cell) or self.took_s[cell.id] < LONG_CELL_S:
                    self.untouched.run_cell(cell.source, cell.id)
        if self.untouched.died is not None:
            return nothing
        return stack.enter_context(
            self.untouched.probing(prepared.grading.probes_source)
        )

    def close(self) -> None:
        if self.beside is not None:
            self.beside.close()
        for kernel in (self.kernel, self.untouched):
            if kernel is not None:
                kernel.close()


@dataclass(frozen=True)
class _TooLate:
    """Answers probes for a notebook that has used up its time."""

    died: Died

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        yield ProbeRun(None, died=self.died)

    def trace(
        self, probe: str, case: Case, timeout_s: float, enter_only: bool
    ) -> Traced | None:
        return None


def unjudged(
    grading: Grading, exercise_id: str, verdict: Verdict, why: str
) -> ExerciseReport:
    """The report on an exercise that was not judged: no points, and why.

    Args:
        grading: the chapter's grading.
        exercise_id: the exercise.
        verdict: of each of its checks.
        why: one sentence for the learner.
    """
    exercise = grading.chapter.exercise(exercise_id)
    return ExerciseReport(
        exercise=exercise.id,
        title=exercise.title,
        points=0.0,
        max_points=exercise.points,
        checks=tuple(
            CheckReport(
                one.name, one.says, verdict, 0.0, grading.points_of(one), why
            )
            for one in grading.checks_of(exercise.id)
        ),
    )


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


_OUTPUTS_LEFT_OUT = "[outputs left out here: the notebook shows too much]"


def _chars(output: dict[str, Any]) -> int:
    """Characters of an output, wherever it keeps them."""
    texts = [output.get("text", ""), output.get("evalue", "")]
    texts += output.get("traceback", [])
    texts += output.get("data", {}).values()
    return sum(map(len, texts))


def _text_output(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stderr", "text": text + "\n"}


def _stopped_output(died: Died) -> NotebookNode:
    return nbformat.from_dict(_text_output(died.why))


def _error_of(outputs: list[dict[str, Any]]) -> tuple[str, str]:
    """The type of the error that stopped a cell, and what it says."""
    for one in outputs:
        if one["output_type"] == "error":
            name = one_line(str(one["ename"]), 80)
            said = re.sub(r"<ipython-input-[^>]*>", "your cell", one["evalue"])
            return name, one_line(said, LONGEST_TEXT)
    return "an error", ""


def _with_cell_error(report: ExerciseReport, ename: str) -> ExerciseReport:
    """Names the error that stopped the cell where it left nothing to judge."""
    untried = [
        one.name
        for one in report.checks
        if one.verdict is Verdict.NOT_ATTEMPTED
    ]
    return replace(
        report,
        checks=tuple(
            replace(
                one,
                verdict=Verdict.ERROR,
                message=f"Your cell stopped with {ename} before it defined "
                "what the exercise asks for.",
                follows="" if one.name == untried[0] else untried[0],
            )
            if one.name in untried
            else one
            for one in report.checks
        ),
    )


def _line(sources: dict[str, str], cell_id: str, line: int) -> str:
    lines = sources.get(cell_id, "").splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _refused(prepared: Prepared, repaired: Repaired) -> Graded:
    grading = prepared.grading
    report = SubmissionReport(
        chapter=grading.chapter.name,
        title=grading.chapter.title,
        seed=prepared.expected.seed,
        exercises=tuple(
            unjudged(grading, one.id, Verdict.NOT_ATTEMPTED, "")
            for one in grading.chapter.exercises
        ),
        notes=tuple(repaired.notes),
        refused=repaired.refused,
        needs_human=("The file could not be graded.",),
    )
    notebook = nbformat.from_dict(prepared.released)
    write_scores(notebook, report)
    return Graded(report, notebook)


def write_scores(notebook: NotebookNode, report: SubmissionReport) -> None:
    """Grade cells end in their points; the report travels in the metadata."""
    by_cell = {grade_cell_id(one.exercise): one for one in report.exercises}
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in by_cell:
            exercise = by_cell[grade_id]
            table = "\n".join(
                f"{one.verdict:14} {one.says}"
                + (f"\n    {one.message}" if one.message else "")
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
