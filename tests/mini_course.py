"""A small course that tests write into a folder: one chapter, two exercises."""

from __future__ import annotations

import shutil
from pathlib import Path

from course_grader.course import Course
from course_grader.kernel.limits import Limits

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Limits(cell_s=5.0, memory_bytes=2 * 10**9)

MINI_SOURCE = '''\
# %% [markdown] reading_minutes=1 builds_on="nothing"
r"""
# 03 · Mini
"""

# %% setup="imports"
import torch
from torch import Tensor

from course_utils import expect, visible_check

# %%
two = 2

# %% [markdown] task="double" title="Double" level="core" minutes=6 builds_on="nothing"
r"""
Return twice the tensor, and that `times` times.

```python
>>> double(torch.ones(2), times=2)
tensor([4., 4.])
```

- A negative `times` is refused with a `ValueError`.

<details><summary>Hint 1</summary>

Twice `times` times is a power of two.
</details>
"""


# %% exercise="double"
def double(x: Tensor, times: int = 1) -> Tensor:
    """Doubles x, `times` times."""
    ### BEGIN SOLUTION
    if times < 0:
        raise ValueError("times must not be negative")
    return x * 2**times
    ### END SOLUTION


# %% check="double"
with visible_check("double"):
    expect("double of 1", double(torch.ones(2)).tolist(), [2.0, 2.0])

# %% grade="double" points=3

# %% [markdown] task="mean" title="Mean" level="more" minutes=4 builds_on="nothing"
r"""
Return the mean.

```python
>>> mean(torch.tensor([1.0, 2.0]))
1.5
```
"""


# %% exercise="mean"
def mean(x: Tensor) -> float:
    """Mean of x as a Python float."""
    ### BEGIN SOLUTION
    return float(x.sum() / x.numel())
    ### END SOLUTION


# %% check="mean"
with visible_check("mean"):
    expect("the mean", mean(torch.ones(2)), 1.0)

# %% grade="mean" points=2
'''

MINI_PROBES = """\
def call(double, case):
    return {"out": double(case["x"], case["times"])}


def average(mean, case):
    return mean(case["x"])
"""

MINI_TESTS = """\
from course_grader.checks import check, leaves_inputs_alone

from . import probes


@check("double", probe=probes.call, weight=2, says="values are doubled")
def doubles(draw):
    return [
        {"x": draw.normal(5), "times": 1},
        {"x": draw.normal(5, 6)[::2], "times": draw.integer(2, 5)},
    ]


@check(
    "double",
    probe=probes.call,
    says="the input is kept",
    corners=["a view of it, too"],
    also=[leaves_inputs_alone],
)
def keeps(draw):
    return [{"x": draw.normal(5), "times": 1}]


@check("double", probe=probes.call, says="negative times", raises=["ValueError"])
def refuses(draw):
    return [{"x": draw.normal(5), "times": 1}, {"x": draw.normal(5), "times": -1}]


@check("mean", probe=probes.average, says="the mean")
def averages(draw):
    return [{"x": draw.normal(7)}]
"""

MINI_DOUBLE = """\
from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_addition(x, times=1):
    if times < 0:
        raise ValueError("negative")
    for _ in range(times):
        x = x + x
    return x


@wrong(breaks=hidden_tests.keeps, tells="You changed x in place.")
def in_place(x, times=1):
    if times < 0:
        raise ValueError
    return x.mul_(2**times)
"""

MINI_DOUBLE_EDITS = """\
once from by_addition: doubles
# You ignored times.
-for _ in range(times):
-    x = x + x
-return x
+return x + x

never_refuses: refuses
# You never
# refuse.
-if times < 0:
-    raise ValueError("times must not be negative")
"""

MINI_MEAN = """\
from course_grader.bank import accepted


@accepted()
def by_method(x):
    return x.mean().item()
"""

MINI_MEAN_EDITS = """\
the_sum from by_method: averages
# That is the sum.
-return x.mean().item()
+return x.sum().item()
"""


def write_mini(root: Path) -> Course:
    """A course of one chapter with two exercises, and quick limits."""
    for path, text in {
        "solutions/03_mini/03_mini.py": MINI_SOURCE,
        "autograde/03_mini/probes.py": MINI_PROBES,
        "autograde/03_mini/hidden_tests.py": MINI_TESTS,
        "autograde/03_mini/answers/double.py": MINI_DOUBLE,
        "autograde/03_mini/answers/double.diff": MINI_DOUBLE_EDITS,
        "autograde/03_mini/answers/mean.py": MINI_MEAN,
        "autograde/03_mini/answers/mean.diff": MINI_MEAN_EDITS,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    shutil.copyfile(
        ROOT / "autograde" / "nbgrader_config.py",
        root / "autograde" / "nbgrader_config.py",
    )
    (root / "pyproject.toml").write_text(
        (ROOT / "pyproject.toml")
        .read_text(encoding="utf-8")
        .partition("[tool.ruff]")[0],
        encoding="utf-8",
    )
    (root / "course.toml").write_text(
        "[limits]\n"
        f"cell_s = {LIMITS.cell_s}\nmemory_bytes = {LIMITS.memory_bytes}\n"
    )
    shutil.copyfile(ROOT / "LICENSE", root / "LICENSE")
    return Course(root)
