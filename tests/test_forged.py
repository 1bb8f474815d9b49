"""What a learner's process says of itself can be forged, and who forges it is shown.

Each forgery goes with an answer that changes its input, against the text. What is
measured with functions that were noted before any cell ran cannot be talked away by
replacing those of torch; what still gains is declared here, and a human is told of
every one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from mini_course import write_mini
from test_watched import points, submitted

from course_grader.course import Course
from course_grader.grading.process import GradingProcess
from course_grader.judge import sandbox
from course_grader.kernel.replaced import replaced

pytestmark = pytest.mark.skipif(
    sandbox.missing() is not None, reason="no sandbox on this machine"
)

IN_PLACE = """
def double(x, times=1):
    if times < 0:
        raise ValueError
    return x.data.mul_(2**times)
"""
"""It changes x where torch does not count it."""


class Forgery(NamedTuple):
    """One try.

    Attributes:
        name: of it.
        cell: what stands above the answer, or is the whole of it.
        gains: it keeps the points of the check that the answer loses.
        whole: the cell is the whole answer.
    """

    name: str
    cell: str
    gains: bool = False
    whole: bool = False


FORGERIES = [
    Forgery("equality", "torch.equal = lambda *_: True"),
    Forgery("a copy that is none", "torch.Tensor.clone = lambda one: one"),
    Forgery(
        "a copy that is none, by setattr",
        "setattr(torch.Tensor, 'cl' + 'one', lambda one, **_: one)",
    ),
    Forgery("bytes", "torch.Tensor.view = lambda one, *_: torch.zeros(1)"),
    Forgery(
        "a flat copy",
        "torch.Tensor.reshape = lambda one, *_: torch.zeros(one.numel())",
    ),
    Forgery("an empty tensor", "torch.empty = lambda *_, **__: torch.zeros(0)"),
    Forgery(
        "pairs",
        "import builtins\n"
        "real = zip\n"
        "builtins.zip = lambda *of, **how: real() if how else real(*of)",
    ),
    Forgery(
        "a mode that is left on",
        "from torch.overrides import TorchFunctionMode\n"
        "class Same(TorchFunctionMode):\n"
        "    def __torch_function__(self, what, kinds, given=(), named=None):\n"
        "        if what is torch.equal:\n"
        "            return True\n"
        "        return what(*given, **(named or {}))\n"
        "Same().__enter__()",
    ),
    Forgery(
        "a class of the input",
        """
class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, what, kinds, given=(), named=None):
        if what is torch.equal:
            return True
        return super().__torch_function__(what, kinds, given, named or {})

def double(x, times=1):
    if times < 0:
        raise ValueError
    torch.Tensor.data.__get__(x).mul_(2**times)
    out = x.clone()
    x.__class__ = Same
    return out
""",
        whole=True,
    ),
    Forgery(
        "the grader's function",
        "import sys\n"
        "probing = sys.modules['course_grader.kernel.probing']\n"
        "probing._changed = lambda *_: None",
        gains=True,
    ),
    Forgery(
        "the code of the grader's function",
        "from course_grader.kernel import probing\n"
        "def same(value, copy):\n    return None\n"
        "probing._changed.__code__ = same.__code__",
        gains=True,
    ),
    Forgery(
        "a method of the grader's class",
        "from course_grader.kernel import probing\n"
        "probing._Before._inputs_changed = lambda _: []",
        gains=True,
    ),
    Forgery(
        "the question itself",
        "from course_grader.kernel import probing, serve\n"
        "probing._changed = lambda *_: None\n"
        "serve.replaced = lambda: []",
        gains=True,
    ),
    Forgery(
        "a question without an answer",
        "from course_grader.kernel import probing, serve\n"
        "probing._changed = lambda *_: None\n"
        "def gone():\n    import os\n    os._exit(0)\n"
        "serve.replaced = gone",
        gains=True,
    ),
]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return write_mini(tmp_path_factory.mktemp("forged"))


@pytest.fixture(scope="module")
def process(course: Course) -> Iterator[GradingProcess]:
    with GradingProcess(course) as process:
        process.prepare("03_mini", 5)
        yield process


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.name)
def test_who_forges_a_fact_is_shown_to_a_human(
    course: Course, process: GradingProcess, forgery: Forgery
) -> None:
    cell = forgery.cell if forgery.whole else forgery.cell + IN_PLACE

    report, _ = process.grade("03_mini", 5, submitted(course, double=cell))

    assert points(report)["double"] == (3 if forgery.gains else 2)
    if forgery.gains or not forgery.whole:
        assert report.needs_human, "nobody is told"


def test_an_honest_answer_is_not_shown(
    course: Course, process: GradingProcess
) -> None:
    """Settings, subclasses, hooks and what is put back again replace nothing."""
    honest = """
import warnings
import torch
from torch import nn

class Mine(nn.Linear):
    def train(self, mode=True):
        return super().train(mode)

Mine(2, 2).register_forward_hook(lambda *_: None)
torch.optim.Adam(Mine(2, 2).parameters()).step()
torch.set_default_device("cpu")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")

def double(x, times=1):
    if times < 0:
        raise ValueError
    return x * 2**times
"""

    report, _ = process.grade("03_mini", 5, submitted(course, double=honest))

    assert points(report)["double"] == 3
    assert report.needs_human == ()


def test_names_say_what_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    before = replaced()  # pytest catches warnings
    monkeypatch.setattr(torch, "equal", lambda *_: True)
    monkeypatch.setattr(torch.nn.Module, "train", lambda one, _: one)
    assert [one for one in replaced() if one not in before] == [
        "torch.equal",
        "torch.nn.modules.module.Module.train",
    ]


def test_what_torch_replaces_itself_is_not_named() -> None:
    """To compile, to profile, to count operations, to load with workers."""
    done = subprocess.run(
        [sys.executable, "-c", HONEST_TOOLS],
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


HONEST_TOOLS = """
from course_grader.kernel.replaced import replaced
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.profiler import profile
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

x, layer = torch.ones(1, 2), nn.Linear(2, 2)
torch.compile(layer, backend="eager")(x)
torch.optim.SGD(layer.parameters()).step()
vmap(grad(lambda one: (one**2).sum()))(x)
functional_call(layer, dict(layer.named_parameters()), (x,))
with FlopCounterMode(display=False), profile():
    layer(x)
list(DataLoader(range(4), num_workers=1))
torch.set_default_device("cpu")
print(replaced())
"""


def test_the_page_counts_the_forgeries() -> None:
    page = Path(__file__).parent.parent / "docs" / "sandbox.md"
    won = sum(one.gains for one in FORGERIES)
    assert (
        f"Of {len(FORGERIES)} forgeries in `tests/test_forged.py` {won} still "
        "gain" in " ".join(page.read_text().split())
    )
