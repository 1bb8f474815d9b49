"""What a learner reads below an exercise, and what nbgrader sees instead."""

import contextlib
import io
import linecache
import os
import textwrap

import nbclient
import nbformat
import numpy as np
import pytest
import torch
from commands import without_ports

from course_utils import expect, summary, visible_check, visible_checks


class Notebook:
    """Cells that share a namespace, named as IPython names them."""

    def __init__(self):
        self.names = {"torch": torch}
        exec("from course_utils import expect, visible_check", self.names)
        self.cells = 0

    def run(self, source):
        """Runs one cell and returns what it printed."""
        source = textwrap.dedent(source).strip("\n") + "\n"
        self.cells += 1
        path = f"/tmp/ipykernel_77/{self.cells}.py"
        lines = source.splitlines(keepends=True)
        linecache.cache[path] = (len(source), None, lines, path)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, path, "exec"), self.names)
        return printed.getvalue()


CHECK = """
with visible_check("one_hot"):
    got = one_hot(torch.tensor([2, 0]), 3)
    expect("the shape", tuple(got.shape), (2, 3))
    expect("row 0", got[0].tolist(), [0.0, 0.0, 1.0])
"""

RIGHT = """
def one_hot(labels, num_classes):
    return torch.eye(num_classes)[labels]
"""


PASSES = "one_hot: 2 of 2 visible checks pass; hidden ones count\n"


def heard(exercise, check=CHECK):
    notebook = Notebook()
    notebook.run(exercise)
    return notebook.run(check)


@pytest.fixture(autouse=True)
def _learner(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def test_right_answer():
    assert heard(RIGHT) == PASSES


def test_untouched_exercise():
    said = heard("""
        def one_hot(labels, num_classes):
            # YOUR CODE HERE
            raise NotImplementedError()
    """)
    assert said == "one_hot: not attempted\n"


def test_cell_not_run():
    assert Notebook().run(CHECK) == "one_hot: not attempted\n"


@pytest.mark.parametrize(
    "opening",
    ["with torch.no_grad():", "for _ in range(2):", "try:", "if True:"],
)
def test_untouched_exercise_in_a_block_that_is_given(opening):
    closing = "    finally:\n        pass\n" if opening == "try:" else ""
    said = heard(
        "@torch.no_grad()\n"
        "def one_hot(labels, num_classes):\n"
        f"    {opening}\n"
        "        raise NotImplementedError()\n" + closing
    )
    assert said == "one_hot: not attempted\n"


def test_untouched_generator():
    said = heard(
        "def batches(n):\n    raise NotImplementedError()\n    yield 1",
        'with visible_check("batches"):\n    expect("it", list(batches(3)), [])',
    )
    assert said == "batches: not attempted\n"


def test_untouched_method_called_by_torch():
    said = heard(
        """
        class Doubled(torch.nn.Module):
            def forward(self, x):
                raise NotImplementedError()
        """,
        """
        with visible_check("Doubled"):
            expect("it", Doubled()(torch.ones(2)), torch.ones(2))
        """,
    )
    assert said == "Doubled: not attempted\n"


def test_untouched_backward_called_by_the_engine():
    said = heard(
        """
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return 2 * x

            @staticmethod
            def backward(ctx, grad):
                raise NotImplementedError()
        """,
        """
        with visible_check("Doubled"):
            x = torch.ones(2, requires_grad=True)
            Doubled.apply(x).sum().backward()
        """,
    )
    assert said == "Doubled: not attempted\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # An operator that has no kernel, raised in C++.
        ("return torch.empty(2, device='meta').tolist()", "line 2"),
        # A module without forward, raised in torch's own Python.
        ("return torch.nn.Module()(labels)", "line 2"),
    ],
)
def test_not_implemented_of_torch_is_an_error(body, reason):
    said = heard(f"def one_hot(labels, num_classes):\n    {body}")
    assert said.startswith("one_hot: try again · your code raised NotImpl")
    assert said.endswith(f"({reason} of your cell)\n")


def test_untouched_function_in_a_loader_worker():
    from torch.utils.data import DataLoader

    def untouched(batch):
        raise NotImplementedError()

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), visible_check("collate"):
        next(iter(DataLoader([1, 2], collate_fn=untouched, num_workers=1)))
    assert printed.getvalue() == "collate: not attempted\n"


def test_failed_expect():
    said = heard("""
        def one_hot(labels, num_classes):
            return torch.zeros(4, 1)
    """)
    assert said == (
        "one_hot: try again · the shape is (4, 1), expected (2, 3)\n"
    )


def test_plain_assert_with_its_message():
    said = heard(
        RIGHT,
        """
        with visible_check("one_hot"):
            assert one_hot(torch.tensor([0]), 2).sum() == 2, "rows sum to 2"
        """,
    )
    assert said == "one_hot: try again · rows sum to 2\n"


def test_plain_assert_without_message_shows_its_source():
    said = heard(
        RIGHT,
        """
        with visible_check("one_hot"):
            out = one_hot(torch.tensor([0]), 2)
            assert out.sum() == sum([1,
                1]), ""
        """,
    )
    assert said == (
        "one_hot: try again · this does not hold: out.sum() == sum([1, 1])\n"
    )


def test_other_exception_names_the_line_of_the_learner():
    said = heard("""
        def one_hot(labels, num_classes):
            out = torch.zeros(len(labels), num_classes)
            return out.scatter(1, labels, 1.0)
    """)
    assert said.startswith("one_hot: try again · your code raised RuntimeError")
    assert said.endswith("(line 3 of your cell)\n")
    assert said.count("\n") == 1


def test_the_line_is_that_of_the_exercise_and_not_of_a_set_up_helper():
    notebook = Notebook()
    notebook.run("""
        # set-up
        #
        #
        def halve(number):
            return 1 / number
    """)
    notebook.run("def one_hot(labels, num_classes):\n    return halve(0)")
    assert notebook.run(CHECK) == (
        "one_hot: try again · your code raised ZeroDivisionError: division by "
        "zero (line 2 of your cell)\n"
    )


def test_exercise_of_several_names_tells_which_cell():
    said = heard(
        "def save_it():\n    pass\n\n\nclass Loader:\n"
        "    def load(self):\n        return {}['a']",
        'with visible_check("save_and_load"):\n    Loader().load()',
    )
    assert said == (
        "save_and_load: try again · your code raised KeyError: 'a' "
        "(line 7 of the cell with Loader.load)\n"
    )


@pytest.mark.parametrize("decorator", ["", "@staticmethod"])
def test_the_line_in_a_class_that_is_the_exercise(decorator):
    said = heard(
        f"class Meter:\n    {decorator}\n    def update(*values):\n"
        "        return values[7]",
        'with visible_check("Meter"):\n    Meter.update(1)',
    )
    assert said == (
        "Meter: try again · your code raised IndexError: tuple index out of "
        "range (line 4 of your cell)\n"
    )


def test_an_assert_of_the_learner_is_the_learners_error():
    said = heard("""
        def one_hot(labels, num_classes):
            assert labels.dim() == 2
    """)
    assert said == (
        "one_hot: try again · your code raised AssertionError "
        "(line 2 of your cell)\n"
    )


def test_a_missing_return_shows_where_the_check_stopped():
    said = heard("def one_hot(labels, num_classes):\n    labels + 1")
    assert said == (
        "one_hot: try again · got.shape raised AttributeError: 'NoneType' "
        "object has no attribute 'shape'\n"
    )


def test_set_up_not_run():
    said = heard(
        RIGHT, 'with visible_check("one_hot"):\n    one_hot(labels, 2)'
    )
    assert said == (
        "one_hot: try again · the name labels is not defined: "
        "run the cells above\n"
    )


def test_exit_in_the_learners_code_does_not_stop_the_notebook():
    said = heard("""
        def one_hot(labels, num_classes):
            raise SystemExit(3)
    """)
    assert said == (
        "one_hot: try again · your code raised SystemExit: 3 "
        "(line 2 of your cell)\n"
    )


def test_interrupt_passes_through():
    with pytest.raises(KeyboardInterrupt), visible_check("one_hot"):
        raise KeyboardInterrupt


def test_an_exception_that_cannot_be_printed():
    said = heard("""
        class Odd(Exception):
            def __str__(self):
                raise ValueError

        def one_hot(labels, num_classes):
            raise Odd
    """)
    assert said == (
        "one_hot: try again · your code raised Odd (line 6 of your cell)\n"
    )


def test_long_messages_stay_one_line():
    said = heard("""
        def one_hot(labels, num_classes):
            raise ValueError("a line\\n" * 100)
    """)
    assert said.count("\n") == 1
    assert len(said) < 300


class TestUnderNbgrader:
    @pytest.fixture(autouse=True, params=["validate", "autograde"])
    def _graded(self, _learner, monkeypatch, request):
        monkeypatch.setenv("NBGRADER_EXECUTION", request.param)

    def test_right_answer(self):
        assert heard(RIGHT) == PASSES

    def test_untouched(self):
        with pytest.raises(NotImplementedError):
            heard("def one_hot(a, b):\n    raise NotImplementedError()")

    def test_cell_not_run(self):
        with pytest.raises(NotImplementedError, match="one_hot: not attempted"):
            Notebook().run(CHECK)

    @pytest.mark.parametrize(
        ("body", "sentence"),
        [
            (
                "return torch.zeros(4, 1)",
                "one_hot: try again · the shape is (4, 1), expected (2, 3)",
            ),
            (
                "return 1 / 0",
                "one_hot: try again · your code raised ZeroDivisionError: "
                "division by zero (line 2 of your cell)",
            ),
            (
                "raise SystemExit",
                "one_hot: try again · your code raised SystemExit "
                "(line 2 of your cell)",
            ),
        ],
    )
    def test_failed(self, body, sentence):
        with pytest.raises(AssertionError) as caught:
            heard(f"def one_hot(labels, num_classes):\n    {body}")
        assert str(caught.value) == sentence


def executed(*cells, **environment):
    """The cells of a notebook run by a kernel that goes on after errors."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells]
    )
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        allow_errors=True,
        config=without_ports(),
    )
    client.execute(env={**os.environ, **environment})
    return [cell.outputs for cell in notebook.cells]


NOTEBOOK = (
    "import torch\nfrom course_utils import expect, visible_check",
    "def one_hot(labels, num_classes):\n    return torch.zeros(2)[num_classes]",
    CHECK.strip(),
)


def test_in_a_kernel_a_failed_check_prints_one_line():
    (said,) = executed(*NOTEBOOK)[-1]
    assert said.output_type == "stream"
    assert said.text.startswith(
        "one_hot: try again · your code raised IndexError: index 3"
    )
    assert said.text.endswith("(line 2 of your cell)\n")
    assert said.text.count("\n") == 1


def test_in_a_kernel_of_nbgrader_a_failed_check_is_an_error():
    (said,) = executed(*NOTEBOOK, NBGRADER_EXECUTION="validate")[-1]
    assert said.output_type == "error"
    assert said.ename == "AssertionError"
    assert said.evalue.startswith("one_hot: try again · your code raised")


nan = float("nan")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (2, 2.0),
        (0.1 + 0.2, 0.3),
        (nan, nan),
        (float("inf"), float("inf")),
        (1 + 2j, 1 + 2j),
        (np.float32(0.5), 0.5),
        ("mean", "mean"),
        (None, None),
        (torch.float16, torch.float16),
        (torch.Size([2, 3]), (2, 3)),
        ([1, (2.0, nan)], [1, (2.0, nan)]),
        ({"b": 1, "a": [2.0]}, {"a": [2.0], "b": 1}),
        ({1, 2}, {2, 1}),
        (np.arange(3), np.arange(3)),
        (np.array(["a", "b"]), np.array(["a", "b"])),
        (torch.tensor([1.0, nan]), torch.tensor([1.0, nan])),
        (torch.tensor([1.0]) + 1e-7, torch.tensor([1.0])),
        (torch.tensor([True, False]), torch.tensor([True, False])),
        (torch.tensor([1j]), torch.tensor([1j])),
        (torch.nn.Parameter(torch.ones(2)), torch.ones(2)),
        (torch.ones(2, device="meta"), torch.zeros(2, device="meta")),
        (torch.eye(3).to_sparse(), torch.eye(3)),
        (torch.empty(0, 3), torch.empty(0, 3)),
        (torch.tensor([2.0]).to(torch.float8_e5m2),) * 2,
    ],
    ids=repr,
)
def test_expect_holds(seen, expected):
    expect("it", seen, expected)


long = list(range(40))


@pytest.mark.parametrize(
    ("seen", "expected", "sentence"),
    [
        (1, 2, "it is 1, expected 2"),
        (1.0, 1.01, "it is 1, expected 1.01"),
        (0.3333, 0.33331, "it is 0.3333, expected 0.33331"),
        (1e-4, 1.05e-4, "it is 0.0001, expected 0.000105"),
        (nan, 1.0, "it is nan, expected 1"),
        (float("inf"), 1.0, "it is inf, expected 1"),
        (1.0, float("inf"), "it is 1, expected inf"),
        (1, True, "it is 1, expected True"),
        (True, 1, "it is a bool, expected a number"),
        (None, 0.5, "it is None, expected a number"),
        ("1", 1, "it is a str, expected a number"),
        ("sum", "mean", "it is 'sum', expected 'mean'"),
        (torch.tensor(1), "mean", "it is a tensor, expected 'mean'"),
        (torch.tensor(0.5), 0.5, "it is a tensor, expected a number"),
        (
            torch.float32,
            torch.float64,
            "it is torch.float32, expected torch.float64",
        ),
        ((4, 1), (2, 3), "it is (4, 1), expected (2, 3)"),
        ((2,), (2, 3), "it is (2,), expected (2, 3)"),
        ([2, 3], (2, 3), "it is a list, expected a tuple"),
        ((2, 3), [2, 3], "it is a tuple, expected a list"),
        (long[:9], long, "it has 9 items, expected 40"),
        ([*long[:39], 7], long, "it at [39] is 7, expected 39"),
        ({"a": 1}, {"b": 1}, "it has no key 'b'"),
        (
            {"a": 1, "b": 2},
            {"a": 1},
            "it has the key 'b', expected none such",
        ),
        ({"a": [1]}, {"a": [2]}, "it at 'a' is [1], expected [2]"),
        (
            np.arange(3),
            np.arange(3.0),
            "it has dtype int64, expected float64",
        ),
        (np.zeros(2), [0.0, 0.0], "it is a NumPy array, expected a list"),
        ([0.0], torch.zeros(1), "it is a list, expected a tensor"),
        (
            torch.zeros(2),
            torch.zeros(2).long(),
            "it has dtype float32, expected int64",
        ),
        (
            torch.zeros(4, 1),
            torch.zeros(2, 3),
            "it has shape (4, 1), expected (2, 3)",
        ),
        (
            torch.tensor([0.0, 1.0]),
            torch.tensor([1.0, 0.0]),
            "it is [0, 1], expected [1, 0]",
        ),
        (
            torch.tensor([True]),
            torch.tensor([False]),
            "it is [True], expected [False]",
        ),
        (
            torch.tensor(1.00002),
            torch.tensor(1.0),
            "it is 1.00002, expected 1",
        ),
        (
            torch.tensor([1.0, 1.00002]),
            torch.tensor([1.0, 1.0]),
            "it differs at 1 of 2 places; at [1] it is 1.00002, expected 1",
        ),
        (
            torch.eye(9),
            torch.ones(9, 9),
            "it differs at 72 of 81 places; at [0, 1] it is 0, expected 1",
        ),
        (
            torch.ones(1, device="meta"),
            torch.ones(1),
            "it is on meta, expected cpu",
        ),
        (
            [torch.ones(1)],
            [torch.zeros(1)],
            "it at [0] is [1], expected [0]",
        ),
    ],
    ids=repr,
)
def test_expect_says_what_differs(seen, expected, sentence):
    with pytest.raises(AssertionError) as caught:
        expect("it", seen, expected)
    assert str(caught.value) == sentence


def test_tolerances_widen_and_narrow():
    expect("it", 1.0, 1.1, atol=0.2)
    expect("it", torch.ones(2), torch.full((2,), 1.1), rtol=0.2)
    with pytest.raises(AssertionError, match=r"it is 1, expected 1\.00000001"):
        expect("it", 1.0, 1.00000001, rtol=0.0, atol=0.0)


def test_an_object_that_cannot_be_compared_or_printed():
    class Odd:
        def __eq__(self, other):
            raise ValueError

        def __repr__(self):
            raise ValueError

    with pytest.raises(AssertionError, match="it is an Odd, expected 'mean'"):
        expect("it", Odd(), "mean")


def test_the_summary_says_what_is_answered_and_what_is_open(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(visible_checks, "_ENDED", {})
    with visible_check("right"):
        expect("the sum", 2, 2)
    with visible_check("wrong"):
        expect("the sum", 2, 3)
    with visible_check("stub"):
        raise NotImplementedError()
    capsys.readouterr()

    summary("right", "wrong", "stub", "later")

    assert capsys.readouterr().out.splitlines() == [
        "right  1 of 1 visible checks pass",
        "wrong  try again",
        "stub   not attempted",
        "later  not run yet",
        "Answered: 2 of 4. Open: stub, later, wrong.",
    ]
    with visible_check("wrong"):
        expect("the sum", 3, 3)
    capsys.readouterr()
    summary("right", "wrong")
    assert capsys.readouterr().out.endswith("Answered: 2 of 2. None is open.\n")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    summary("right")
    assert capsys.readouterr().out == ""
