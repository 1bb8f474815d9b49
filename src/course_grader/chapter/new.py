"""`course new`: the smallest whole chapter, for an author to write over."""

from __future__ import annotations

import re
from pathlib import Path

from course_grader.course import CHAPTER_NAME, Course, CourseError

_SOURCE = '''\
# %% [markdown] reading_minutes=5 builds_on="Python and a first training loop in PyTorch"
r"""
# {title}

What goes wrong without the trick, in two sentences.

**After this chapter you can**

- say what the trick is for, and write it.
"""

# %% setup="imports"
import torch
from torch import Tensor

from course_utils import expect, visible_check

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

Show it in a cell that anybody can run.
"""

# %%
pixels = torch.tensor([3.0, 4.0, 5.0])
print("mean before:", pixels.mean().item())

# %% [markdown]
r"""
## 2 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it.
"""

# %% [markdown] task="center" title="Numbers around zero" level="core" minutes=4 builds_on="section 1"
r"""
Write `center(x)`, which takes the mean off every number, so that what follows sees
differences alone.

```python
>>> center(torch.tensor([3.0, 4.0, 5.0]))
tensor([-1.,  0.,  1.])
```

- `x` stays as it was.

<details><summary>Hint 1</summary>

A tensor minus a number takes it off each element.
</details>
<details><summary>Hint 2</summary>

`x.mean()` is a tensor without dimensions, and is subtracted like a number.
</details>
"""


# %% exercise="center"
def center(x: Tensor) -> Tensor:  # (n,) to (n,)
    """The numbers less their mean."""
    ### BEGIN SOLUTION
    return x - x.mean()
    ### END SOLUTION


# %% check="center"
with visible_check("center"):
    got = center(torch.tensor([3.0, 5.0]))
    expect("3 and 5 around zero", got, torch.tensor([-1.0, 1.0]))

# %% grade="center" points=2
'''

_PROBES = '''\
"""Drives what the exercises of chapter {number} ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret.
"""


def centered(center, case):
    return {{"out": center(case["x"])}}
'''

_TESTS = '''\
"""What is checked in chapter {number}."""

from course_grader.checks import (
    Case,
    Draw,
    check,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
)

from . import probes


@check(
    "center",
    probe=probes.centered,
    on=("out",),
    also=[leaves_inputs_alone, leaves_rng_alone, leaves_state_alone],
    says="the mean is taken off each number, and the numbers given stay",
    corners=["a single number, which becomes 0"],
)
def takes_the_mean_off(draw: Draw) -> list[Case]:
    return [{{"x": draw.normal(n, mean=3.0)}} for n in (7, 1, draw.integer(2, 6))]
'''

_ANSWERS = '''\
"""Answers to `center` of chapter {number}."""

from course_grader.bank import accepted


@accepted()
def by_sum_and_count(x):
    return x - x.sum() / x.numel()
'''

_EDITS = """\
forgot_the_mean: takes_the_mean_off
# You give the numbers back as they were. Take their mean off each.
-return x - x.mean()
+return x.clone()
"""


def new_chapter(course: Course, name: str) -> list[Path]:
    """Writes a chapter with one exercise, one check and two answers.

    Args:
        course: the course.
        name: as `16_name`.

    Returns:
        The files it wrote.

    Raises:
        CourseError: the name is none, or its number is taken.
    """
    if not CHAPTER_NAME.fullmatch(name):
        raise CourseError(
            f"{name!r} is no chapter's name: write two digits, an underscore "
            "and small letters, as in 16_distillation."
        )
    number, _, words = name.partition("_")
    taken = [
        path.name
        for room in (course.solutions, course.autograde)
        for path in room.glob(f"{number}_*")
    ]
    if taken:
        raise CourseError(f"The number {number} is taken by {taken[0]}.")
    told = re.sub("_+", " ", words).strip().capitalize() or number
    texts = {
        course.source_of(name): _SOURCE.format(title=f"{number} · {told}"),
        course.autograde / name / "probes.py": _PROBES.format(number=number),
        course.autograde / name / "hidden_tests.py": _TESTS.format(
            number=number
        ),
        course.autograde / name / "answers" / "center.py": _ANSWERS.format(
            number=number
        ),
        course.autograde / name / "answers" / "center.diff": _EDITS,
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)
