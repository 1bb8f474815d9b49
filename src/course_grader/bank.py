"""What an author writes in `answers.py`: the answer bank of a chapter.

Every exercise carries right answers of different kinds (all must get full
marks) and wrong ones (each must lose the check that it breaks and hear why).
The wrong ones serve twice: a submission that behaves like exactly one of them
on every case hears what it tells.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_grader.checks import Check


@dataclass(frozen=True)
class Answer:
    """One answer of the bank. Made by `accepted` and `wrong`, not by hand.

    Attributes:
        name: the name of the decorated function or class; unique in the chapter.
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

    Raises:
        ValueError: two have one name.
    """
    text = Path(file).read_text(encoding="utf-8")
    found: dict[str, ast.FunctionDef | ast.ClassDef] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name in found:
                raise ValueError(f"two answers are called {node.name}")
            found[node.name] = node
    return text.split("\n"), found


def accepted(
    exercise: str, *, body: bool = False
) -> Callable[[Callable[..., Any]], Answer]:
    """Marks a right answer.

    Args:
        exercise: id of the exercise.
        body: the body of the decorated function is the exercise cell itself,
            for exercises that ask for several definitions or for values.
    """

    def make(made: Callable[..., Any]) -> Answer:
        return Answer(
            name=made.__name__,
            exercise=exercise,
            source=_source_of(made, body),
            binds=None if body else made.__name__,
        )

    return make


def wrong(
    exercise: str,
    *,
    breaks: Check | Sequence[Check],
    tells: str,
    body: bool = False,
    ends_process: bool = False,
) -> Callable[[Callable[..., Any]], Answer]:
    """Marks a wrong answer, the check or checks it must fail, and the message
    for a learner who answers like this. Answers that cannot be told apart by
    behaviour share one text.
    """
    broken = (breaks,) if isinstance(breaks, Check) else tuple(breaks)

    def make(made: Callable[..., Any]) -> Answer:
        return Answer(
            name=made.__name__,
            exercise=exercise,
            source=_source_of(made, body),
            binds=None if body else made.__name__,
            breaks=tuple(one.name for one in broken),
            tells=tells,
            ends_process=ends_process,
        )

    return make
