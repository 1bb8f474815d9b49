"""Lines of a submission that reach for the grader are found by reading, whatever
they call things; honest ones are not."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from course_grader.chapter.grading import load_grading
from course_grader.course import Course
from course_grader.grading.reaching import reaches, without_reaching

COURSE = Course(Path(__file__).resolve().parent.parent)

REACHING = {
    "its modules": "from course_grader.kernel import serve",
    "its modules, among others": "import os, course_grader.kernel.serve as s",
    "sys.modules": "import sys\nsys.modules['a']",
    "sys by another name": "import sys as s\ns.modules['a']",
    "sys by assignment": "import sys\ns = sys\nfor m in s.modules: pass",
    "modules of sys": "from sys import modules as m",
    "modules by getattr": "import sys\ngetattr(sys, 'modules')",
    "modules by a name put together": "import sys\ngetattr(sys, 'mod' + x)",
    "modules by vars": "import sys\nvars(sys)['modules']",
    "modules by the dictionary": "import sys\nsys.__dict__['modules']",
    "a frame": "import sys\nsys._getframe(1).f_back",
    "a frame by getattr": "getattr(frame, 'f_globals')",
    "frames of inspect": "import inspect as i\ni.stack()[1]",
    "frames of an error": "try:\n    1 / 0\nexcept Exception as e:\n"
    "    e.__traceback__.tb_frame",
    "globals of a function": "print.__init__.__globals__",
    "all objects": "import gc\ngc.get_objects()",
    "ctypes": "from ctypes import pythonapi",
    "a replaced function": "import torch\ntorch.equal = lambda *_: True",
    "a replaced method": "from torch import Tensor\nTensor.clone = f",
    "a method of a class by a name": "T = torch.Tensor\nT.clone = f",
    "a method in a loop": "for one in (torch, np):\n    one.equal = f",
    "by annotation": "torch.equal: object = f",
    "among several": "a, torch.equal = 1, f",
    "by with": "with open('a') as torch.equal:\n    pass",
    "by for": "for torch.equal in [f]:\n    pass",
    "by del": "del torch.Tensor.clone",
    "by setattr": "setattr(torch, name, f)",
    "by the type's setattr": "type.__setattr__(torch.Tensor, 'clone', f)",
    "by the dictionary": "torch.__dict__['equal'] = f",
    "by vars": "vars(torch).update(equal=f)",
    "by getattr": "getattr(torch, 'Tensor').clone = f",
    "code": "f.__code__ = g.__code__",
    "text that is run": "exec('import ' + name)",
    "text, by another name": "run = exec\nrun(text)",
    "text, by builtins": "import builtins as b\nb.eval(text)",
    "an import put together": "from importlib import import_module as im\n"
    "im('course_' + 'grader')",
    "a name of builtins put together": "getattr(builtins, 'ex' + 'ec')(text)",
    "a file that is run": "import runpy\nrunpy.run_path('a.py')",
    "IPython's shell": "get_ipython().run_cell(text)",
    "a magic": "%run a.py",
    "a cell that is written": "%%writefile a.py\nimport course_grader",
    "below a magic": "%%time\nimport course_grader",
    "prompts that IPython takes away": ">>> import course_grader",
    "a function that IPython calls": "x = 1\n/print x\nimport course_grader",
}
HONEST = [
    "import torch\nfrom torch import nn\nmodel = nn.Linear(2, 2)\n"
    "model.bias = None\nfor one in model.modules():\n    one.eval()",
    "torch.backends.cudnn.benchmark = flag\n"
    "from torch.backends import cudnn\ncudnn.deterministic = flag",
    "import copy\nimport re\nre.compile(pattern)\nfast = torch.compile(model)",
    "make = getattr(nn.init, name)\nvars(module)\n{**vars(args)}",
    "import matplotlib.pyplot as plt\nplt.rcParams['a'] = value",
    "%matplotlib inline\n%time model(x)\n!ls",
    "copy = torch.utils.data.TensorDataset(x)\ncopy.rng = rng()",
    "import inspect, sys, warnings\nprint(sys.version, inspect.signature(f))\n"
    "stacked = torch.stack(rows)\nwarnings.warn('a')",
    "def f(x:\n",
]


@pytest.mark.parametrize("source", REACHING.values(), ids=REACHING)
def test_a_line_that_reaches_is_found_and_can_be_cut(source: str) -> None:
    found = reaches(source)
    assert found
    for one in found:
        assert one.line in source.split("\n")[one.number - 1]
    if not source.startswith("%"):
        assert "course_grader" not in without_reaching(source)


@pytest.mark.parametrize("source", HONEST)
def test_an_honest_line_is_not(source: str) -> None:
    assert reaches(source) == []
    assert without_reaching(source) == source


def test_no_answer_of_the_bank_is_named() -> None:
    """Nor would be an exercise's cell that is as it was released."""
    named = []
    for chapter in COURSE.chapters():
        grading = load_grading(COURSE, chapter)
        named += [
            f"{chapter} {answer.name}: {found}"
            for exercise in grading.chapter.exercises
            for answer in grading.answers_of(exercise.id)
            if (found := reaches(grading.answer_cell(answer)))
        ]
        released = nbformat.read(COURSE.notebook_of(chapter), as_version=4)
        named += [
            f"{chapter} {cell.id}: {found}"
            for cell in released.cells
            if cell.metadata.get("nbgrader", {}).get("solution")
            and (found := reaches(cell.source))
        ]
    assert named == []


def test_a_line_is_shown_without_what_would_change_the_page() -> None:
    """Escape codes of a terminal, text that turns its direction, and backticks,
    which would end the code."""
    source = "import course_grader  # \x1b[2J\u202e`x`\x07\r"
    ast.parse(source)
    (found,) = reaches(source)
    assert found.line == "import course_grader # 'x'"


def test_a_cell_without_those_lines_still_runs() -> None:
    source = (
        "import sys\nheld = sys.modules\nprobing = held['a']\n"
        "probing.f = 1\ndef double(x):\n    return 2 * x\n"
    )
    space: dict[str, object] = {}
    exec(without_reaching(source), space)
    assert "double" in space
    assert "held" not in space
