"""What an author writes in `answers.py`: the answer bank of a chapter.

Every exercise carries right answers of different kinds (all must get full
marks) and wrong ones (each must lose the check that it breaks and hear why).
The wrong ones serve twice: a submission that behaves like exactly one of them
on every case hears what it tells.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    text = textwrap.dedent(inspect.getsource(made))
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    lines = text.splitlines()
    if not body:
        own = node.decorator_list[1:]  # the first is the bank's
        start = min([node.lineno, *(one.lineno for one in own)])
        return "\n".join(lines[start - 1 :]) + "\n"
    statements = node.body
    if ast.get_docstring(node) is not None:
        statements = statements[1:]
    first = statements[0]
    decorators = getattr(first, "decorator_list", [])
    start = min([first.lineno, *(d.lineno for d in decorators)])
    return textwrap.dedent("\n".join(lines[start - 1 :])) + "\n"


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
