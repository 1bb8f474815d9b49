"""What a learner meets: every chapter's notebook in a real Jupyter kernel.

Each notebook runs once, untouched, and then the solutions and their checks in the
same kernel. A cell that ends in an error shows a claim or a statement of the chapter
to be false on the installed torch. `notebooks_that_ran.json` holds a digest of the
chapter, `course_utils`, Python and the packages with which one ran to its end:
`make test` runs two notebooks, and all that differ from that, `make test-all` every
one. Whole runs of solved notebooks, a second time, and under *Validate* belong to
`make test-all`, but for one chapter.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from commands import run_nbgrader, without_ports
from nbclient import NotebookClient
from nbformat import NotebookNode
from packaging.requirements import Requirement

from course_grader.chapter.notebook import (
    INSTALL_CELL_ID,
    visible_check_id,
    with_solution_folds,
)
from course_grader.chapter.source import Exercise, read_chapter
from course_grader.chapter.statements import read_statements
from course_grader.course import Course
from course_grader.grading.repair import repair

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = Course(ROOT).chapters()
ALWAYS = "03"
"""The chapter that runs in every `make test`."""
RAN = Path(__file__).with_name("notebooks_that_ran.json")
WHOLE = [
    one if one.startswith("03") else pytest.param(one, marks=pytest.mark.slow)
    for one in CHAPTERS
]


@pytest.fixture
def clean(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner's kernel: no settings of nbgrader's, drawings inline."""
    for name in ("NBGRADER_EXECUTION", "MPLBACKEND", "PYTHONWARNINGS"):
        monkeypatch.delenv(name, raising=False)


def untouched(course: Course, chapter: str) -> NotebookNode:
    return nbformat.read(course.notebook_of(chapter), as_version=4)


def solved(course: Course, chapter: str) -> NotebookNode:
    """The learner's notebook with the author's solutions written into it."""
    notebook = untouched(course, chapter)
    for one in exercises(course, chapter):
        cell_of(notebook, one.id).source = one.source
    return notebook


def exercises(course: Course, chapter: str) -> tuple[Exercise, ...]:
    return read_chapter(course.source_of(chapter)).exercises


def cell_of(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    (cell,) = (
        one
        for one in notebook.cells
        if one.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    )
    return cell


def run_all(
    notebook: NotebookNode,
    folder: Path,
    times: int = 1,
    ran: Callable[[], None] = lambda: None,
    again: Callable[[NotebookClient], None] | None = None,
) -> None:
    """*Run All*, as often as told, in one kernel; the outputs are the last
    ones, and what is wrong with any of them fails the test, after whoever wants
    to know has been told that all `ran`. What comes `again` uses the kernel after
    that."""
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=None,
        allow_errors=True,
        config=without_ports(),
        resources={"metadata": {"path": str(folder)}},
    )
    with client.setup_kernel():
        for _ in range(times):
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
            ran()
            assert not list(complaints(notebook))
        if again is not None:
            again(client)


def complaints(notebook: NotebookNode) -> Iterator[str]:
    """What a learner must not see: errors and warnings."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = text_of(output)
            if output.output_type == "error" or re.search(
                r"Traceback \(most recent|\w*Warning:", text
            ):
                yield f"{cell.source[:200]}\n---\n{text[-2000:]}"


def false_statements(
    course: Course, chapter: str, notebook: NotebookNode
) -> list[str]:
    """What the chapter says and a cell that ended in an error was to show."""
    failed = {
        cell.id
        for cell in notebook.cells
        if any(one.output_type == "error" for one in cell.get("outputs", []))
    }
    names = {
        one.name
        for one in read_chapter(course.source_of(chapter)).cells
        if one.id in failed
    }
    return [
        one.says
        for one in read_statements(course, chapter)
        if one.shown_by == "cell" and one.where in names
    ]


def text_of(output: NotebookNode) -> str:
    if output.output_type == "error":
        return "\n".join(output.traceback)
    if output.output_type == "stream":
        return output.text
    return str(output.data.get("text/plain", ""))


def passes(heard: str, exercise: str) -> bool:
    """Whether that is what a visible check says of a right answer."""
    return (
        re.fullmatch(
            rf"{exercise}: (the visible check passes|(\d+) of \2 visible checks "
            r"pass); hidden ones count\n",
            heard,
        )
        is not None
    )


def said(notebook: NotebookNode, exercise: str) -> str:
    """All that an exercise's visible check put out."""
    cell = cell_of(notebook, visible_check_id(exercise))
    return "".join(map(text_of, cell.outputs))


def what_runs(course: Course, chapter: str) -> str:
    """A digest of all that a chapter's cells depend on: its text, `course_utils` with
    its figures, Python, and the packages that `course_utils` needs."""
    needed = importlib.metadata.requires("pytorch-training-tricks") or []
    versions = {
        one.name: importlib.metadata.version(one.name)
        for one in map(Requirement, needed)
        if one.marker is None  # what cells import is no extra
    }
    digest = hashlib.sha256(f"{sys.version_info[:2]} {versions}".encode())
    data = (ROOT / "src" / "course_utils").rglob("*.*")
    files = sorted(one for one in data if one.suffix in (".py", ".json"))
    for path in [course.source_of(chapter), *files]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.fixture
def ran_before(
    request: pytest.FixtureRequest, course: Course, chapter: str
) -> Iterator[bool]:
    """Whether the notebook need not run: it has, as it is. If it runs to its end
    here, that is noted; the note is committed with what was changed."""
    now = what_runs(course, chapter)
    held = json.loads(RAN.read_text(encoding="utf-8"))
    if (
        held.get(chapter) == now
        and not chapter.startswith(ALWAYS)
        and "not slow" in request.config.option.markexpr
    ):
        yield True
        return
    failed = request.session.testsfailed
    yield False
    if request.session.testsfailed == failed and held.get(chapter) != now:
        with RAN.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # test processes run side by side
            held = {**json.load(file), chapter: now}
            file.seek(0)
            file.truncate()
            json.dump(held, file, indent=2, sort_keys=True)
            file.write("\n")


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_untouched_notebook_runs_to_its_end_and_takes_solutions(
    course: Course,
    chapter: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    ran_before: bool,
) -> None:
    if ran_before:
        return
    notebook = untouched(course, chapter)
    asked = exercises(course, chapter)

    def note() -> None:
        for says in false_statements(course, chapter, notebook):
            record_property("says", says)

    def solve(client: NotebookClient) -> None:
        for one in asked:
            assert said(notebook, one.id) == f"{one.id}: not attempted\n"
            cell_of(notebook, one.id).source = one.source
            for grade_id in (one.id, visible_check_id(one.id)):
                cell = cell_of(notebook, grade_id)
                client.execute_cell(cell, notebook.cells.index(cell))

    run_all(notebook, tmp_path, ran=note, again=solve)

    assert not list(complaints(notebook))
    for one in asked:
        assert passes(said(notebook, one.id), one.id)
    (install,) = (one for one in notebook.cells if one.id == INSTALL_CELL_ID)
    assert install.outputs == []


def test_a_cell_that_ends_in_an_error_names_what_the_chapter_says(
    course: Course,
) -> None:
    chapter = course.chapter("03")
    shown = [
        one
        for one in read_statements(course, chapter)
        if one.shown_by == "cell"
    ]
    name = shown[0].where
    (cell_id,) = (
        one.id
        for one in read_chapter(course.source_of(chapter)).cells
        if one.name == name
    )
    notebook = untouched(course, chapter)
    assert false_statements(course, chapter, notebook) == []
    (cell,) = (one for one in notebook.cells if one.id == cell_id)
    cell.outputs = [nbformat.v4.new_output("error", ename="AssertionError")]

    assert false_statements(course, chapter, notebook) == [
        one.says for one in shown if one.where == name
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("chapter", WHOLE)
def test_a_solved_notebook_runs_clean_twice(
    course: Course, chapter: str, tmp_path: Path
) -> None:
    notebook = solved(course, chapter)

    run_all(notebook, tmp_path, times=2)

    for exercise in exercises(course, chapter):
        assert passes(said(notebook, exercise.id), exercise.id)


@pytest.mark.slow
@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("chapter", WHOLE)
def test_validate_agrees_with_the_visible_checks(
    course: Course, chapter: str, tmp_path: Path
) -> None:
    answers = {}
    for name, made in (("untouched", untouched), ("solved", solved)):
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(made(course, chapter), path)
        sockets = (
            f"--KernelManager.{trait}={value}"
            for trait, value in without_ports().KernelManager.items()
        )
        done = run_nbgrader(
            course.root, "validate", *sockets, str(path), cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout
        answers[name] = done.stdout

    assert "Success! Your notebook passes all the tests." in answers["solved"]
    asked = exercises(course, chapter)
    failed = f"VALIDATION FAILED ON {len(asked)} CELL(S)"
    assert failed in answers["untouched"]
    for exercise in asked:
        assert f'visible_check("{exercise.id}")' in answers["untouched"]
    assert "NotImplementedError" in answers["untouched"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_hints_fold_open_one_by_one(course: Course, chapter: str) -> None:
    found = 0
    for cell in untouched(course, chapter).cells:
        if cell.cell_type != "markdown":
            assert "<details" not in cell.source
            continue
        text = cell.source
        hints = re.findall(
            # the blank line lets Jupyter render what is inside as markdown
            r"<details>\s*<summary>Hint (\d+)[^<]*</summary>\n\n.+?</details>",
            text,
            re.DOTALL,
        )
        assert hints == [str(n + 1) for n in range(len(hints))], text
        assert text.count("<summary>Hint") == len(hints), text
        assert text.count("<details>") == text.count("</details>"), text
        found += bool(hints)

    assert found >= len(exercises(course, chapter))


def test_a_notebook_of_work_that_nobody_touched_has_no_answers(
    course: Course,
) -> None:
    """Its texts end in the solutions, folded: these are not the learner's."""
    for chapter in course.chapters():
        source = read_chapter(course.source_of(chapter))
        released = nbformat.read(course.notebook_of(chapter), as_version=4)
        folded = with_solution_folds(released, source)
        repaired = repair(nbformat.writes(folded).encode(), released)
        assert repaired.notes == ()
        assert repaired.notebook is not None
        for mine, theirs in zip(
            repaired.notebook.cells, released.cells, strict=True
        ):
            assert mine.source == theirs.source
        texts = "\n".join(cell.source for cell in folded.cells)
        solution = source.exercises[0].solution
        assert "BEGIN SOLUTION" not in solution
        assert f"```python\n{solution}\n```\n</details>" in texts
