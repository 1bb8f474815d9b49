"""What an author writes in `answers/EXERCISE.py`: the answer bank of an exercise.

Every exercise carries right answers of different kinds (all must get full
marks) and wrong ones (each must lose the check that it breaks and hear why).
The wrong ones serve twice: a submission that behaves like exactly one of them
on every case hears what it tells.

A right answer, and a wrong one that is a way of thinking of its own, is written
out below `accepted` or `wrong`. Any other wrong answer is an `edit`: the answer
it starts from, what is replaced by what, the check it breaks and what its
learner hears.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

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


@dataclass(frozen=True)
class Edit:
    """An answer that differs from another in a few places. Made by `edit`."""

    start: Written | Edit | Solution
    swaps: tuple[tuple[str, str], ...]
    breaks: tuple[str, ...]
    tells: str
    ends_process: bool


@dataclass(frozen=True)
class Solution:
    """The solution cell of the chapter, as what an edit starts from."""


SOLUTION = Solution()


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


def edit(
    start: Written | Edit | Solution,
    swaps: Mapping[str, str],
    *,
    breaks: Check | Sequence[Check] = (),
    tells: str = "",
    ends_process: bool = False,
) -> Edit:
    """An answer that is another one with a few places replaced.

    Args:
        start: the answer it starts from: `SOLUTION` or a right answer of the
            file.
        swaps: what is replaced, by what. What is replaced stands exactly once
            in `start`: a piece of one line, or whole lines, in a string of
            several lines whose common indentation and first and last line
            break do not count. Nothing in its place takes the lines away.
        breaks: the check or checks that the answer must fail; none if it is
            right, too.
        tells: what a learner who answers like this hears.
        ends_process: it hangs, exits or crashes.

    Raises:
        CourseError: it starts from something else.
    """
    if not isinstance(start, Written | Edit | Solution) or (
        not isinstance(start, Solution) and start.breaks
    ):
        raise CourseError(
            "an edit starts from SOLUTION or from a right answer of its file."
        )
    return Edit(
        start=start,
        swaps=tuple((_plain(was), _plain(now)) for was, now in swaps.items()),
        breaks=_names(breaks),
        tells=tells,
        ends_process=ends_process,
    )


def answers_of(module: ModuleType, exercise: Exercise) -> Iterator[Answer]:
    """The answers that a file of the bank holds, whole, in order.

    Args:
        module: the file, imported.
        exercise: what they answer.

    Raises:
        CourseError: an edit does not fit what it starts from, or two answers
            have one name.
    """
    names: dict[int, str] = {}
    for name, value in vars(module).items():
        if not isinstance(value, Written | Edit):
            continue
        names[id(value)] = name
        try:
            source, binds = _whole(value, exercise, names)
        except CourseError as error:
            raise CourseError(f"The answer {name}: {error}") from None
        yield Answer(
            name=name,
            exercise=exercise.id,
            source=source,
            binds=binds,
            breaks=value.breaks,
            tells=value.tells,
            ends_process=value.ends_process,
        )
    assert module.__file__ is not None
    _refuse_repeated_names(Path(module.__file__))


def solution_cell(exercise: Exercise) -> str:
    """The solution cell without the two lines that mark its region."""
    marks = (BEGIN_SOLUTION, END_SOLUTION)
    lines = exercise.source.split("\n")
    return "\n".join(one for one in lines if one.strip() not in marks)


def _whole(
    answer: Written | Edit | Solution,
    exercise: Exercise,
    names: Mapping[int, str],
) -> tuple[str, str | None]:
    """An answer's code and the name that it is to be bound by."""
    match answer:
        case Solution():
            return solution_cell(exercise), None
        case Written():
            return answer.source, answer.binds
        case Edit():
            source, binds = _whole(answer.start, exercise, names)
            start = names.get(id(answer.start), "the solution")
            return edited(source, answer.swaps, start), binds


def edited(
    text: str, swaps: Sequence[tuple[str, str]], start: str = "the answer"
) -> str:
    """Code with some of its places replaced, as `edit` describes.

    Args:
        text: the code.
        swaps: (was, now), all places found in `text` as it is given.
        start: what the code is called in messages.

    Raises:
        CourseError: a place is not there, or there more than once; two
            overlap; the code stays as it is or is no Python.
    """
    places = sorted((*_place(text, was, start), now) for was, now in swaps)
    for (_, end, _), (begin, _, _) in itertools.pairwise(places):
        if begin < end:
            raise CourseError(
                f"two edits of {start} overlap at `{text[begin:end]}`."
            )
    made = text
    for begin, end, now in reversed(places):
        made = made[:begin] + _indented(text, begin, now) + made[end:]
        if not now:
            made = _without_blank_line(made, begin)
    try:
        if ast.dump(ast.parse(made)) == _dumped(text):
            raise CourseError(f"the edits of {start} change nothing.")
    except SyntaxError as error:
        raise CourseError(
            f"edited, {start} is no Python: {error.msg}, line {error.lineno}."
        ) from None
    return made


@functools.lru_cache(maxsize=16)  # most edits of an exercise have one start
def _dumped(text: str) -> str:
    return ast.dump(ast.parse(text))


def _place(text: str, was: str, start: str) -> tuple[int, int]:
    """Where `was` stands."""
    first, *others = was.split("\n")
    pattern = re.escape(first)
    if others:
        # whole lines, with the indentation that the first one has
        pattern = rf"^(?P<indent>[ ]*)(?P<all>{pattern}"
        for line in others:
            inside = rf"(?P=indent){re.escape(line)}" if line else "[ ]*"
            pattern += rf"\n{inside}"
        pattern += ")"
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if len(found) != 1:
        often = "nowhere" if not found else f"{len(found)} times"
        raise CourseError(
            f"what is replaced stands {often} in {start}: `{was}`. It must "
            "stand there once."
        )
    return found[0].span("all" if others else 0)


def _indented(text: str, begin: int, now: str) -> str:
    """The new lines, indented as the line that they begin in."""
    line = text[text.rfind("\n", 0, begin) + 1 :]
    indent = line[: len(line) - len(line.lstrip(" "))]
    first, *others = now.split("\n")
    return "\n".join([first, *(indent + one if one else "" for one in others)])


def _without_blank_line(text: str, place: int) -> str:
    """Takes the line away if nothing but blanks is left of it."""
    begin = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place) + 1 or len(text)
    return text if text[begin:end].strip() else text[:begin] + text[end:]


def _plain(given: str) -> str:
    """A piece of code as it stands in a bank's string of several lines."""
    if "\n" not in given:
        return given
    return textwrap.dedent(given).strip("\n").rstrip(" ")


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
