"""Reads `answers/EXERCISE.diff`: answers that differ from another in a few places.

    with_inferred_classes from by_the_library: ones_at_labels
    # You took the number of classes from the largest label. ...
    -return F.one_hot(labels.long(), num_classes).to(dtype)
    +return F.one_hot(labels.long()).to(dtype)

The first line has the answer's name, the right answer that it starts from (the
solution where none is named) and the checks that it must lose; without checks
it is right, too. Below stand the words that its learner hears, and what is
changed, as in a patch: lines of the start that stay (a blank in front), go (-)
and come (+); `@@` between two places. The lines of a place stand exactly once
in the start. Their common indentation does not count.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_grader.course import CourseError

_HEAD = re.compile(
    r"(?P<name>\w+)(?: from (?P<start>\w+))?"
    r"(?:: (?P<breaks>\w+(?:, \w+)*)(?P<ends>; ends the process)?)?"
)
_WORDS_OF = re.compile(r"as (\w+)")


@dataclass(frozen=True)
class Place:
    """Where an answer differs from the one it starts from.

    Attributes:
        was: the lines that stand there.
        now: those in their place. Both without their common indentation.
    """

    was: tuple[str, ...]
    now: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """An answer that differs from another in a few places.

    Attributes:
        name: the answer's name.
        start: the right answer it starts from; None for the solution.
        places: what is changed, in any order.
        breaks: names of the checks that it must fail; none if it is right, too.
        tells: what a learner who answers like this hears.
        words_of: the answer that `tells` is taken from, where they share it.
        ends_process: it hangs, exits or crashes.
        line: where it begins in the file, from 1.
    """

    name: str
    start: str | None
    places: tuple[Place, ...]
    breaks: tuple[str, ...]
    tells: str
    words_of: str | None
    ends_process: bool
    line: int


def read_edits(file: Path) -> Iterator[Edit]:
    """The answers of a file, in order; none where there is no file.

    Raises:
        CourseError: a line is none of those that the format has.
    """
    if not file.exists():
        return
    lines = file.read_text(encoding="utf-8").split("\n")
    heads = [n for n, line in enumerate(lines) if re.match(r"\w", line)]
    if any(line for line in lines[: heads[0] if heads else None]):
        raise CourseError(
            f"{file.name}, line 1: the file begins with an answer's name."
        )
    for begin, end in itertools.pairwise([*heads, len(lines)]):
        try:
            yield _edit(lines[begin:end], begin + 1)
        except CourseError as error:
            raise CourseError(
                f"{file.name}, line {begin + 1}: {error}"
            ) from None


def edited(
    text: str, places: Sequence[Place], start: str = "the answer"
) -> str:
    """Code with some of its places replaced.

    Args:
        text: the code.
        places: what is replaced, all found in `text` as it is given.
        start: what the code is called in messages.

    Raises:
        CourseError: a place is not there, or there more than once; two
            overlap; the code stays as it is or is no Python.
    """
    lines = text.split("\n")
    found = sorted(
        (*_stands_at(lines, one, start), one.now, one) for one in places
    )
    for (begin, *_, one), (after, *_) in itertools.pairwise(found):
        if after < begin + len(one.was):
            raise CourseError(
                f"two edits of {start} overlap at `{lines[after].strip()}`."
            )
    for begin, indent, now, one in reversed(found):
        lines[begin : begin + len(one.was)] = [
            indent + line if line else "" for line in now
        ]
    made = "\n".join(lines)
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


def _edit(lines: Sequence[str], line: int) -> Edit:
    head = _HEAD.fullmatch(lines[0])
    if head is None:
        raise CourseError(
            f"`{lines[0]}` is not of the form `NAME from START: CHECK, CHECK`."
        )
    words = list(itertools.takewhile(lambda one: one[:1] == "#", lines[1:]))
    tells = " ".join(one.removeprefix("#").strip() for one in words)
    breaks = tuple((head["breaks"] or "").split(", ")) if head["breaks"] else ()
    if bool(tells) != bool(breaks):
        raise CourseError(
            f"{head['name']} is right and has words for its learner."
            if tells
            else f"{head['name']} is wrong and tells its learner nothing."
        )
    shared = _WORDS_OF.fullmatch(tells)
    return Edit(
        name=head["name"],
        start=head["start"],
        places=tuple(_places(head["name"], lines[1 + len(words) :])),
        breaks=breaks,
        tells="" if shared else tells,
        words_of=shared[1] if shared else None,
        ends_process=head["ends"] is not None,
        line=line,
    )


def _places(name: str, lines: Sequence[str]) -> Iterator[Place]:
    """An empty line inside a place is an empty line of the start."""
    for between, group in itertools.groupby(lines, lambda one: one == "@@"):
        if between:
            continue
        part = "\n".join(group).strip("\n").split("\n")
        for one in part:
            if one[:1] not in ("", " ", "+", "-"):
                raise CourseError(
                    f"{name}: a line of a change begins with a blank, + or -, "
                    f"and `{one}` does not."
                )
        bare = textwrap.dedent("\n".join(one[1:] for one in part)).split("\n")
        marked = [(one[:1], line) for one, line in zip(part, bare, strict=True)]
        was = tuple(line for mark, line in marked if mark != "+")
        now = tuple(line for mark, line in marked if mark != "-")
        if was == now or not any(was):
            raise CourseError(
                f"{name}: a change takes lines away (-) or puts some (+) beside "
                "a line that stays (a blank in front)."
            )
        yield Place(was, now)


def _stands_at(
    lines: Sequence[str], place: Place, start: str
) -> tuple[int, str]:
    """The index of a place's first line, and the indentation it has there."""
    found = []
    key = next(n for n, line in enumerate(place.was) if line)
    for begin in range(len(lines) - len(place.was) + 1):
        there = lines[begin : begin + len(place.was)]
        if not there[key].endswith(place.was[key]):
            continue
        indent = there[key].removesuffix(place.was[key])
        if not indent.strip(" ") and all(
            one == (indent + line if line else "")
            for one, line in zip(there, place.was, strict=True)
        ):
            found.append((begin, indent))
    if len(found) != 1:
        often = "nowhere" if not found else f"{len(found)} times"
        shown = "\n".join(place.was)
        raise CourseError(
            f"what is changed stands {often} in {start}: `{shown}`. It must "
            "stand there once."
        )
    return found[0]
