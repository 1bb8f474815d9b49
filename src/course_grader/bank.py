"""What an author writes in `answers/`: the answer bank of an exercise.

Every exercise carries right answers of different kinds (all must get full
marks) and wrong ones (each must lose the check that it breaks and hear why).
The wrong ones serve twice: a submission that behaves like exactly one of them
on every case hears what it tells.

A right answer, and a wrong one that is a way of thinking of its own, is written
out in `EXERCISE.py` below `accepted` or `wrong`. Any other stands in
`EXERCISE.diff`: what it changes in one of these (see `chapter.edits`).
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from course_grader.chapter.edits import edited, read_edits
from course_grader.chapter.source import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    Exercise,
)
from course_grader.checks import Check
from course_grader.course import CourseError


@dataclass(frozen=True)
class Answer:
    """One answer of the bank, whole.

    Attributes:
        name: the name it has in the file; unique in the chapter.
        exercise: id of the exercise that it answers.
        source: the code that replaces the exercise cell, less the final binding
            of the exercise's name (see `cell`).
        binds: the answer's own name if it is to be bound to the exercise's
            name; None if `source` itself defines what the exercise asks for.
        breaks: names of the checks that it must fail; empty for a right answer.
        tells: what a learner who answers like this hears.
        ends_process: it hangs, exits or crashes, so only the out-of-process
            judge can grade it.
    """

    name: str
    exercise: str
    source: str
    binds: str | None
    breaks: tuple[str, ...] = ()
    tells: str = ""
    ends_process: bool = False

    @property
    def right(self) -> bool:
        return not self.breaks

    def cell(self, exercise_name: str) -> str:
        """The exercise cell of a learner who answers like this.

        Args:
            exercise_name: the name that the exercise defines.
        """
        if self.binds is None or self.binds == exercise_name:
            return self.source
        return f"{self.source}\n\n{exercise_name} = {self.binds}\n"


@dataclass(frozen=True)
class Written:
    """An answer that is written out. Made by `accepted` and `wrong`."""

    source: str
    binds: str | None
    breaks: tuple[str, ...] = ()
    tells: str = ""
    ends_process: bool = False


def accepted(*, body: bool = False) -> Callable[[Callable[..., Any]], Written]:
    """Marks a right answer.

    Args:
        body: the body of the decorated function is the exercise cell itself,
            for exercises that ask for several definitions or for values.
    """

    def make(made: Callable[..., Any]) -> Written:
        return Written(
            source=_source_of(made, body),
            binds=None if body else made.__name__,
        )

    return make


def wrong(
    *,
    breaks: Check | Sequence[Check],
    tells: str,
    body: bool = False,
    ends_process: bool = False,
) -> Callable[[Callable[..., Any]], Written]:
    """Marks a wrong answer, the check or checks it must fail, and the message
    for a learner who answers like this. Answers that cannot be told apart by
    behaviour share one text.
    """

    def make(made: Callable[..., Any]) -> Written:
        return Written(
            source=_source_of(made, body),
            binds=None if body else made.__name__,
            breaks=_names(breaks),
            tells=tells,
            ends_process=ends_process,
        )

    return make


def answers_of(
    module: ModuleType, edits: Path, exercise: Exercise
) -> Iterator[Answer]:
    """The answers of an exercise, whole: those written out, then the edits.

    Args:
        module: `answers/EXERCISE.py`, imported.
        edits: `answers/EXERCISE.diff`.
        exercise: what they answer.

    Raises:
        CourseError: an edit does not fit what it starts from, or two answers
            have one name.
    """
    assert module.__file__ is not None
    _refuse_repeated_names(Path(module.__file__))
    known = {
        name: Answer(
            name=name,
            exercise=exercise.id,
            source=value.source,
            binds=value.binds,
            breaks=value.breaks,
            tells=value.tells,
            ends_process=value.ends_process,
        )
        for name, value in vars(module).items()
        if isinstance(value, Written)
    }
    yield from known.values()
    solution = Answer(
        "the solution", exercise.id, solution_cell(exercise), None
    )
    for one in read_edits(edits):
        where = f"{edits.name}, line {one.line}"
        if one.name in known:
            raise CourseError(f"{where}: two answers are called {one.name}.")
        start = solution if one.start is None else known.get(one.start)
        if start is None or not start.right:
            raise CourseError(
                f"{where}: {one.name} starts from {one.start}. An edit starts from the "
                "solution or from a right answer that stands above it or in "
                f"{Path(module.__file__).name}."
            )
        if one.words_of is not None and one.words_of not in known:
            raise CourseError(
                f"{where}: {one.name} has the words of {one.words_of}, and no "
                "answer above it has this name."
            )
        try:
            source = edited(start.source, one.places, start.name)
        except CourseError as error:
            raise CourseError(f"{where}: {one.name}: {error}") from None
        known[one.name] = Answer(
            name=one.name,
            exercise=exercise.id,
            source=source,
            binds=start.binds,
            breaks=one.breaks,
            tells=known[one.words_of].tells if one.words_of else one.tells,
            ends_process=one.ends_process,
        )
        yield known[one.name]


def solution_cell(exercise: Exercise) -> str:
    """The solution cell without the two lines that mark its region."""
    marks = (BEGIN_SOLUTION, END_SOLUTION)
    lines = exercise.source.split("\n")
    return "\n".join(one for one in lines if one.strip() not in marks)


def _names(checks: Check | Sequence[Check]) -> tuple[str, ...]:
    return tuple(
        one.name for one in ((checks,) if isinstance(checks, Check) else checks)
    )


def _source_of(made: Callable[..., Any], body: bool) -> str:
    file = inspect.getsourcefile(inspect.unwrap(made))
    assert file is not None
    lines, definitions = _definitions(file, os.stat(file).st_mtime_ns)
    node = definitions[made.__name__]
    if not body:
        own = node.decorator_list[1:]  # the first is the bank's
        start = min([node.lineno, *(one.lineno for one in own)])
    else:
        statements = node.body
        if ast.get_docstring(node) is not None:
            statements = statements[1:]
        first = statements[0]
        decorators = getattr(first, "decorator_list", [])
        start = min([first.lineno, *(d.lineno for d in decorators)])
    return textwrap.dedent("\n".join(lines[start - 1 : node.end_lineno])) + "\n"


@functools.lru_cache(maxsize=2)
def _definitions(
    file: str, changed_ns: int
) -> tuple[list[str], dict[str, ast.FunctionDef | ast.ClassDef]]:
    """A file's lines and its functions and classes by name.

    `inspect.getsource` would parse the whole file again for each class: minutes
    for the banks of a course.
    """
    text = Path(file).read_text(encoding="utf-8")
    return text.split("\n"), {
        node.name: node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def _refuse_repeated_names(file: Path) -> None:
    """A second answer of a name would silently take the place of the first."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case _:
                continue
        if name in found:
            raise CourseError(f"{file.name}: two answers are called {name}.")
        found.add(name)
