"""Which checks ask for facts that a learner's process says of itself.

Writes the table of `docs/sandbox.md`: by chapter, how many checks there are, how
many compare a field that is the same on three seeds (a count, a mode, a dtype:
a constant can be forged), and which watch side effects. A check is named in the
last column if all that it compares is constant; there must be none.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from course_grader.chapter.grading import load_grading
from course_grader.checks import Check
from course_grader.course import Course, find_course
from course_grader.judge.judging import Expectations
from course_grader.judge.reference import reference_expectations
from course_grader.judge.warming import WarmProcess

SEEDS = (1, 2, 3)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The values within plain data, by where they stand."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from leaves(one, f"{path}[{index}]")
    elif isinstance(value, torch.Tensor):
        numbers = [] if value.device.type == "meta" else value.tolist()
        yield path, f"{value.dtype} {tuple(value.shape)} {numbers}"
    elif isinstance(value, np.ndarray):
        yield path, f"{value.dtype} {value.shape} {value.tolist()}"
    else:
        yield path, repr(value)


def constant_fields(check: Check, drawn: list[Expectations]) -> tuple[int, int]:
    """(fields, those of them that are the same on every case of every seed)."""
    found: dict[str, set[str]] = {}
    for one in drawn:
        for number in range(len(one.cases[check.name])):
            data = one.reference[check.name, number].data
            if check.on and isinstance(data, dict):
                data = {key: data.get(key) for key in check.on}
            for path, value in leaves(data):
                found.setdefault(path, set()).add(value)
    return len(found), sum(len(values) == 1 for values in found.values())


def row(warm: WarmProcess, course: Course, chapter: str) -> str:
    grading = load_grading(course, chapter)
    drawn = [reference_expectations(warm, grading, seed) for seed in SEEDS]
    counted = {one.name: constant_fields(one, drawn) for one in grading.checks}
    some = sum(constant > 0 for _, constant in counted.values())
    bare = [name for name, (all_, same) in counted.items() if all_ == same]
    watching = [f"`{one.name}`" for one in grading.checks if one.also]
    return (
        f"| {chapter[:2]} | {len(counted)} | {some} | "
        f"{', '.join(watching)} | {', '.join(bare)} |"
    )


def main() -> None:
    course = find_course()
    print(
        "| chapter | checks | with a constant field | that watch side effects | "
        "nothing but constants |\n|---|---|---|---|---|"
    )
    with WarmProcess(course.limits) as warm:
        for chapter in sys.argv[1:] or course.chapters():
            print(row(warm, course, course.chapter(chapter)), flush=True)


if __name__ == "__main__":
    main()
