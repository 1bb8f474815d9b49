"""Reasons to refuse a chapter before learners see it."""

from __future__ import annotations

import builtins
import re
import symtable
from collections.abc import Iterator

from nbformat import NotebookNode

from course_grader.chapter.grading import Grading
from course_grader.chapter.source import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    Cell,
    Chapter,
    Role,
)
from course_grader.course import Course, CourseError

TELLING_CHARS = 24
"""A line this long (blanks squeezed) says something; shorter ones, such as
`return loss`, occur anywhere."""

FORBIDDEN = (BEGIN_SOLUTION, "### BEGIN HIDDEN TESTS", "course_grader")


def refuse_leaks(
    course: Course, grading: Grading, released: NotebookNode
) -> None:
    """Refuses a learner notebook that holds a solution line or a hidden test.

    Raises:
        CourseError: naming the line and the cell.
    """
    telling: dict[str, str] = {}
    for exercise in grading.chapter.exercises:
        given = {_squeezed(line) for line in _outside_solution(exercise.source)}
        for line in _inside_solution(exercise.source):
            if _squeezed(line) not in given:
                telling[_squeezed(line)] = f"the solution of {exercise.id}"
    shared = _shared_with_solutions(grading.chapter)
    hidden = course.autograde / grading.chapter.name / "hidden_tests.py"
    for line in hidden.read_text(encoding="utf-8").splitlines():
        if _squeezed(line) not in shared:
            telling.setdefault(_squeezed(line), "hidden_tests.py")
    for cell in released.cells:
        for word in FORBIDDEN:
            if word in cell.source:
                raise CourseError(
                    f"{grading.chapter.name}: the cell {cell.id} would show "
                    f"learners {word!r}."
                )
        for line in cell.source.splitlines():
            origin = telling.get(_squeezed(line))
            if origin is not None and len(_squeezed(line)) >= TELLING_CHARS:
                raise CourseError(
                    f"{grading.chapter.name}: the cell {cell.id} would show "
                    f"learners a line of {origin}: {line.strip()!r}. Write "
                    "it differently in one of the two places."
                )


def refuse_unknown_names(grading: Grading) -> None:
    """Refuses a solution or an answer that uses what no set-up cell defines,
    such as what only a reading cell does.

    Raises:
        CourseError: naming the exercise or the answer, and the name.
    """
    chapter = grading.chapter
    known = set(dir(builtins)) | {"__name__"}
    for cell in chapter.cells:
        if cell.role is Role.SETUP:
            known |= _bound(cell.source)
    sources = [
        *(
            (f"the solution of {one.id}", one.source)
            for one in chapter.exercises
        ),
        *(
            (f"the answer {one.name}", grading.answer_cell(one))
            for one in grading.answers
        ),
    ]
    for what, source in sources:
        for name in sorted(_used(source) - _bound(source) - known):
            raise CourseError(
                f"{chapter.name}: {what} uses {name!r}, which no set-up cell "
                "defines. Define it in a set-up cell or in the code itself."
            )


def refuse_taken_names(chapter: Chapter) -> None:
    """Refuses a cell after which another one does not run again as before, for it has
    given a name of that one to something else: no cell may do so with a function, a
    class, an import or what a set-up cell makes, and no visible check with what a
    cell of the text takes from the cells above it. Whoever solves an exercise goes
    back to the section that it builds on.

    Raises:
        CourseError: naming both cells and the name.
    """
    code = [one for one in chapter.cells if not one.markdown]
    owner: dict[str, Cell] = {}
    for cell in code:
        whole = cell.role is Role.SETUP
        for name in _bound(cell.source) if whole else _defined(cell.source):
            owner.setdefault(name, cell)
    taken, made = dict(owner), set(owner)
    for cell in code:
        mine = _bound(cell.source)
        if cell.role is Role.READING:
            for name in _used(cell.source) & made - mine:
                taken.setdefault(name, cell)
        made |= mine
    for cell in code:
        of = taken if cell.role is Role.CHECK else owner
        for name in sorted(_bound(cell.source)):
            other = of.get(name, cell)
            again = _imported(cell.source) & _imported(other.source)
            if other is not cell and name not in again:
                raise CourseError(
                    f"{chapter.name}: the cell {cell.id} gives {name!r} to "
                    f"something else, and the cell {other.id} would not run "
                    "again. Take another name."
                )


def _squeezed(line: str) -> str:
    return re.sub(r"\s+", "", line)


def _inside_solution(source: str) -> Iterator[str]:
    inside = False
    for line in source.splitlines():
        if BEGIN_SOLUTION in line:
            inside = True
        elif END_SOLUTION in line:
            inside = False
        elif inside:
            yield line


def _outside_solution(source: str) -> Iterator[str]:
    hidden = list(_inside_solution(source))
    for line in source.splitlines():
        if line not in hidden:
            yield line


def _shared_with_solutions(chapter: Chapter) -> set[str]:
    return {
        _squeezed(line)
        for cell in chapter.cells
        if cell.role in (Role.EXERCISE, Role.SETUP)
        for line in cell.source.splitlines()
    }


def _bound(source: str) -> set[str]:
    """Names that a cell binds at its top level."""
    return {
        one.get_name()
        for one in _top_level(source)
        if one.is_assigned() or one.is_imported()
    }


def _defined(source: str) -> set[str]:
    """Names of functions, classes and imports of a cell's top level."""
    top = _top_level(source)
    made = {one.get_name() for one in top if one.is_namespace()}
    return made | _imported(source)


def _imported(source: str) -> set[str]:
    return {one.get_name() for one in _top_level(source) if one.is_imported()}


def _top_level(source: str) -> list[symtable.Symbol]:
    return symtable.symtable(source, "cell", "exec").get_symbols()


def _used(source: str) -> set[str]:
    """Global names that a cell reads, in whatever scope.

    Annotations count too: they run when the function is defined.
    """
    names: set[str] = set()
    tables = [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            if symbol.is_referenced() and (top or symbol.is_global()):
                names.add(symbol.get_name())
    return names
