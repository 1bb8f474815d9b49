"""The feedback page of one learner.

It prints what the report holds, what the instructor set by hand, and the
learner's own code with what that code printed and drew. Nothing else is within
its reach: no line of test code, and no case but those that the report shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_grader.feedback import content
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    SubmissionReport,
    Verdict,
)
from course_home import frame
from course_home.progress import Standing

MOST_OUTPUTS = 30
"""Outputs of one exercise that are shown."""
MOST_PICTURES = 8
"""Pictures of one exercise that are shown."""
MOST_CELLS = 30
"""Cells of one exercise that are shown."""


@dataclass(frozen=True)
class Mark:
    """What the gradebook holds for one exercise.

    Attributes:
        exercise: its id, or the `grade_id` of a cell the report does not know.
        points: what the learner gets; None if the report's points stand.
        max_points: what the chapter gives for it; needed only where the report
            does not know the exercise.
        comment: the instructor's words; `code` in backticks.
    """

    exercise: str
    points: float | None = None
    max_points: float = 0.0
    comment: str = ""


@dataclass(frozen=True)
class OwnCell:
    """A code cell of the learner: highlighted lines, and what it gave."""

    lines: tuple[Markup, ...]
    outputs: tuple[content.Output, ...]


@dataclass(frozen=True)
class ExerciseView:
    """One exercise as the page shows it."""

    report: ExerciseReport
    standing: Standing
    points: float
    by_hand: bool
    comment: str
    next_step: str
    cells: tuple[OwnCell, ...]
    visible_check: str
    found: bool

    @property
    def missing(self) -> float:
        return self.report.max_points - self.points

    @property
    def faults(self) -> Sequence[CheckReport]:
        """The checks that failed, each for a fault of its own."""
        return [
            one
            for one in self.report.checks
            if one.verdict is not Verdict.PASSED and not one.follows
        ]

    @property
    def passed(self) -> Sequence[CheckReport]:
        return [
            one for one in self.report.checks if one.verdict is Verdict.PASSED
        ]

    @property
    def following(self) -> Sequence[CheckReport]:
        """The checks whose fault is told at another one."""
        return [one for one in self.report.checks if one.follows]

    @property
    def bar(self) -> Sequence[CheckReport | Mark]:
        """What its bar is split into: the checks, unless points were set by
        hand."""
        if self.by_hand or not self.report.checks:
            whole = self.report.max_points
            return (Mark(self.report.exercise, self.points, whole),)
        return self.report.checks


_ADVICE = {
    Verdict.FAILED: (
        "Run your code by hand on a small input of that kind, and compare what "
        "comes out with what the exercise asks for."
    ),
    Verdict.ERROR: (
        "Restart the kernel and run the notebook from the top: code that leans "
        "on something an older cell left behind stops there as well."
    ),
    Verdict.TIMED_OUT: (
        "Look for a loop that never ends, or for work that grows with every "
        "step of a loop."
    ),
    Verdict.OUT_OF_MEMORY: (
        "Print the shape of the largest tensor your code makes; broadcasting "
        "often makes one far larger than was meant."
    ),
    Verdict.EXITED: (
        "Something in your code ends Python: look for `exit()`, `quit()` or "
        "`input()`, and for an index that only compiled code notices."
    ),
}


def page(
    report: SubmissionReport,
    notebook: NotebookNode | None,
    *,
    student: str,
    manual: Sequence[Mark] = (),
    late_penalty: float = 0.0,
    submitted: str = "",
    due: str = "",
    counts: str = "",
) -> str:
    """The feedback page of one submission: one HTML file that needs no other, runs
    no script and may be opened anywhere.

    Args:
        report: what judging gave.
        notebook: the notebook as it was run, with outputs; it need not have been
            sanitised. None if there is none that can be read.
        student: the learner's name or id.
        manual: what the gradebook holds. Points that equal the report's are not
            shown as set by hand.
        late_penalty: points that the gradebook takes off.
        submitted: when, in the words to be shown; empty if not known.
        due: when it was due for this learner, likewise.
        counts: which of several attempts counts; empty if there is nothing to say.
    """
    marks = {mark.exercise: mark for mark in manual}
    views = [
        _exercise(one, notebook, marks.pop(one.exercise, Mark(one.exercise)))
        for one in report.exercises
    ]
    if report.refused:
        # Nothing was judged; what a person did all the same is shown.
        views = [view for view in views if view.by_hand or view.comment]
        notebook = None
    others = list(marks.values())
    return frame.render(
        Path(__file__).with_name("learner.html.jinja"),
        report=report,
        exercises=views,
        others=others,
        extra_cells=_extra_cells(notebook, report),
        start=_start(views),
        student=content.plain(student, 200) or "?",
        submitted=content.plain(submitted, 80),
        due=content.plain(due, 80),
        counts=content.plain(counts, 200),
        late_penalty=late_penalty,
        points=sum(view.points for view in views)
        + sum(mark.points or 0.0 for mark in others)
        - late_penalty,
        max_points=report.max_points + sum(one.max_points for one in others),
        standings=[
            (standing, count)
            for standing in Standing
            if (count := sum(view.standing is standing for view in views))
        ],
    )


def below_a_cell(report: SubmissionReport) -> str:
    """What a notebook shows below a visible check: one exercise's verdict, the
    first fault with its case, and all checks, folded.

    Args:
        report: of that exercise alone.
    """
    if not report.exercises:
        return ""
    (one,) = report.exercises
    failed = [c for c in one.checks if c.verdict is not Verdict.PASSED]
    return frame.render(
        Path(__file__).with_name("notebook.html.jinja"),
        report=one,
        notes=report.notes,
        failed=failed,
        first=_first_open(one.checks),
        passed=[c for c in one.checks if c.verdict is Verdict.PASSED],
        notebook_style=_notebook_style(),
    )


def below_a_cell_so_far(
    title: str, judged: Sequence[CheckReport], waiting: Sequence[str]
) -> str:
    """What a notebook shows while an exercise is judged.

    Args:
        title: of the exercise.
        judged: its checks that have been judged.
        waiting: what the others say.
    """
    return frame.render(
        Path(__file__).with_name("running.html.jinja"),
        title=title,
        judged=judged,
        waiting=waiting,
        first=_first_open(judged),
        notebook_style=_notebook_style(),
    )


def page_without_report(
    chapter: str,
    notebook: NotebookNode,
    *,
    student: str,
    marks: Sequence[Mark],
    late_penalty: float = 0.0,
    submitted: str = "",
    due: str = "",
    counts: str = "",
) -> str:
    """The page of a submission that was graded without our judge: the gradebook's
    points and comments, and the learner's code without its outputs, for what runs
    in one process with hidden tests may have printed them."""
    cells = {
        mark.exercise: tuple(
            OwnCell(_highlighted(cell), ())
            for cell in _cells_of(notebook, mark.exercise)
        )
        for mark in marks
    }
    return frame.render(
        Path(__file__).with_name("marks.html.jinja"),
        chapter=chapter,
        marks=marks,
        cells=cells,
        student=content.plain(student, 200) or "?",
        submitted=content.plain(submitted, 80),
        due=content.plain(due, 80),
        counts=content.plain(counts, 200),
        late_penalty=late_penalty,
        points=sum(mark.points or 0.0 for mark in marks) - late_penalty,
        max_points=sum(mark.max_points for mark in marks),
    )


def _exercise(
    report: ExerciseReport, notebook: NotebookNode | None, mark: Mark
) -> ExerciseView:
    points = report.points if mark.points is None else mark.points
    by_hand = abs(points - report.points) > 1e-6
    cells = list(_cells_of(notebook, report.exercise))
    return ExerciseView(
        report=report,
        standing=standing(report, points),
        points=points,
        by_hand=by_hand,
        comment=mark.comment,
        next_step=_next_step(report),
        cells=_own_cells(cells),
        visible_check=_visible_check(notebook, report.exercise),
        found=bool(cells) or notebook is None,
    )


def standing(report: ExerciseReport, points: float) -> Standing:
    """How an exercise ended, given the points that count."""
    if points > 0 and points >= report.max_points - 1e-9:
        return Standing.SOLVED
    if points > 0:
        return Standing.PARTLY
    verdicts = {check.verdict for check in report.checks}
    if verdicts == {Verdict.NOT_ATTEMPTED}:
        return Standing.NOT_ATTEMPTED
    return Standing.NOT_SOLVED


def _next_step(report: ExerciseReport) -> str:
    """What to look at next; empty where every check passed."""
    first = _first_open(report.checks)
    if first is None:
        return ""
    if first.verdict is Verdict.NOT_ATTEMPTED:
        return (
            "Replace `raise NotImplementedError()` by your answer. The hints "
            "below the task fold open one by one."
        )
    if report.misconception:
        return f"Change that first. The check that shows it: “{first.says}”."
    return f"Start with “{first.says}”. {_ADVICE[first.verdict]}"


def _first_open(checks: Sequence[CheckReport]) -> CheckReport | None:
    """The first check that was tried and not passed, else one not attempted; none
    whose fault is told at another."""
    open_ones = [
        c for c in checks if c.verdict is not Verdict.PASSED and not c.follows
    ]
    tried = [c for c in open_ones if c.verdict is not Verdict.NOT_ATTEMPTED]
    return next(iter(tried or open_ones), None)


def _start(views: Sequence[ExerciseView]) -> ExerciseView | None:
    """The exercise to look at first: one whose misconception is known, else the
    one with the most points to gain; None if none is open or only one exists."""
    unsolved = [v for v in views if v.standing is not Standing.SOLVED]
    if len(views) < 2 or not unsolved:
        return None
    known = [v for v in unsolved if v.report.misconception]
    tried = [v for v in unsolved if v.standing is not Standing.NOT_ATTEMPTED]
    return max(known or tried or unsolved, key=lambda view: view.missing)


# The learner's own cells.


def _code_cells(notebook: NotebookNode | None) -> Iterator[Mapping[str, Any]]:
    cells = None if notebook is None else notebook.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, Mapping) and cell.get("cell_type") == "code":
            yield cell


def _metadata(cell: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    metadata = cell.get("metadata")
    found = metadata.get(key) if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _cells_of(
    notebook: NotebookNode | None, exercise: str
) -> Iterator[Mapping[str, Any]]:
    """The exercise cell, and the cells that the learner put between it and the
    next cell of nbgrader that is not the visible check. Never a grade cell."""
    inside = False
    for cell in _code_cells(notebook):
        marked = _metadata(cell, "nbgrader")
        grade_id = marked.get("grade_id")
        if marked.get("solution") and grade_id == exercise:
            inside = True
        elif grade_id is not None and grade_id != f"{exercise}_visible":
            inside = False
        if inside and (grade_id == exercise or not marked):
            yield cell


def _extra_cells(
    notebook: NotebookNode | None, report: SubmissionReport
) -> tuple[OwnCell, ...]:
    """The cells elsewhere that gave something. Cells of the chapter that the
    learner left alone are not run, so these are the learner's own."""
    shown = [
        cell
        for one in report.exercises
        for cell in _cells_of(notebook, one.exercise)
    ]
    return _own_cells(
        [
            cell
            for cell in _code_cells(notebook)
            if cell.get("outputs")
            and not _metadata(cell, "nbgrader")
            and not any(cell is one for one in shown)
        ]
    )


def _own_cells(cells: Sequence[Mapping[str, Any]]) -> tuple[OwnCell, ...]:
    made = []
    outputs_left, pictures_left = MOST_OUTPUTS, MOST_PICTURES
    for cell in cells[:MOST_CELLS]:
        kept = []
        for output in content.outputs_of(cell):
            pictures_left -= output.kind == "picture"
            outputs_left -= 1
            if outputs_left < 0 or pictures_left < 0:
                break
            kept.append(output)
        made.append(OwnCell(_highlighted(cell), tuple(kept)))
    return tuple(made)


def _visible_check(notebook: NotebookNode | None, exercise: str) -> str:
    """What the visible check said, in one line; empty if it said nothing."""
    for cell in _code_cells(notebook):
        if _metadata(cell, "nbgrader").get("grade_id") != f"{exercise}_visible":
            continue
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            if not isinstance(output, Mapping):
                continue
            said = output.get("evalue" if "evalue" in output else "text")
            line = content.plain(said, 400).strip()
            if line.startswith(f"{exercise}:"):
                return line.splitlines()[0].removeprefix(f"{exercise}:").strip()
    return ""


class _LinearLexer(PythonLexer):  # type: ignore[misc]
    """Pygments' lexer, but a docstring is looked for behind the blanks of its own
    line: behind all blank lines, the time grows with the square of their number."""

    tokens = {  # noqa: RUF012  (Pygments' own way of saying it)
        **PythonLexer.tokens,
        "root": [
            (rule[0].replace(r"^(\s*)", r"^([^\S\n]*)"), *rule[1:])
            if type(rule) is tuple and isinstance(rule[0], str)
            else rule
            for rule in PythonLexer.tokens["root"]
        ],
    }


@cache
def _lexer_and_formatter() -> tuple[PythonLexer, HtmlFormatter[str]]:
    return _LinearLexer(), HtmlFormatter(nowrap=True, classprefix="py-")


def _highlighted(cell: Mapping[str, Any]) -> tuple[Markup, ...]:
    """The lines of a cell's source, escaped and highlighted."""
    source = content.code(cell.get("source")).strip("\n")
    marked_up = highlight(source, *_lexer_and_formatter())
    return tuple(Markup(line) for line in marked_up.rstrip("\n").split("\n"))


@cache
def _notebook_style() -> Markup:
    """The style of what is shown within a notebook."""
    path = Path(__file__).with_name("notebook.css")
    return Markup(path.read_text(encoding="utf-8"))
