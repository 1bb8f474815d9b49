"""Learner processes: cells mean what they mean in Jupyter; none outlives its work."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_grader.checks import Case, Result, SharedCase
from course_grader.judge import sandbox
from course_grader.judge.kernels import (
    KEPT_ANSWERS,
    Exchanged,
    Kernel,
    ProbeRun,
    Probing,
)
from course_grader.judge.report import Verdict
from course_grader.judge.warming import GraderBroken, WarmProcess

ECHO = "def echo(f, case):\n    return f(case['x'])\n"


def one(probing: Probing, probe: str, case: Case, timeout_s: float) -> ProbeRun:
    (answer,) = probing.probe_all(probe, [case], timeout_s)
    return answer


def run(warm: WarmProcess, *cells: str) -> list[list[dict[str, object]]]:
    with Kernel(warm) as kernel:
        return [
            kernel.run_cell(cell, f"c{i}").outputs
            for i, cell in enumerate(cells)
        ]


def test_prints_results_displays_and_figures_are_kept(
    warm: WarmProcess,
) -> None:
    outputs = run(
        warm,
        "print('a')\nimport sys\nprint('b', file=sys.stderr)\n1 + 1",
        "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    )

    assert [one["output_type"] for one in outputs[0]] == [
        "stream",
        "stream",
        "execute_result",
    ]
    assert outputs[0][2]["data"] == {"text/plain": "2"}
    assert outputs[1][0]["data"]["text/html"] == "<b>x</b>"
    assert any("image/png" in one.get("data", {}) for one in outputs[2])


def test_magics_await_and_errors_work(warm: WarmProcess) -> None:
    outputs = run(
        warm,
        "%timeit -n1 -r1 pass",
        "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
        "1 / 0",
        "def f(:",
    )

    assert "loop" in outputs[0][0]["text"]
    assert outputs[1][0]["data"]["text/plain"] == "'awaited'"
    assert outputs[2][0]["ename"] == "ZeroDivisionError"
    assert outputs[3][0]["ename"] == "SyntaxError"


def test_sys_exit_and_input_end_the_cell_only(warm: WarmProcess) -> None:
    outputs = run(warm, "import sys\nsys.exit(3)", "input()", "print('alive')")

    assert outputs[1][0]["ename"] == "EOFError"
    assert outputs[2][0]["text"] == "alive\n"


def test_nothing_of_one_process_reaches_the_next(warm: WarmProcess) -> None:
    run(
        warm,
        "import torch, builtins\ntorch.relu = None\nbuiltins.len = None\nx = 1\n"
        "open('left', 'w').write('x')",
    )

    outputs = run(
        warm,
        "import torch, os\n[torch.relu is None, len([1]), 'x' in globals(), "
        "os.listdir()]",
    )

    assert outputs[0][0]["data"]["text/plain"] == "[False, 1, False, []]"


def test_probes_run_in_forks_of_the_process(warm: WarmProcess) -> None:
    with Kernel(warm) as kernel:
        kernel.run_cell(
            "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n", "a"
        )
        for _ in range(2):
            with kernel.probing(ECHO) as probing:
                assert one(probing, "echo", {"x": 1}, 5).result.data == 1


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("import os; os._exit(0)", Verdict.EXITED),
        ("import os; os.kill(os.getpid(), 9)", Verdict.EXITED),
        ("import ctypes; ctypes.string_at(0)", Verdict.EXITED),
        ("while True: pass", Verdict.TIMED_OUT),
        (
            "import signal, time\n    signal.signal(2, signal.SIG_IGN)\n"
            "    signal.signal(15, signal.SIG_IGN)\n    time.sleep(1000)",
            Verdict.TIMED_OUT,
        ),
    ],
)
def test_a_dead_fork_leaves_the_process_alive(
    warm: WarmProcess, body: str, verdict: Verdict
) -> None:
    with Kernel(warm) as kernel:
        kernel.run_cell(
            f"def f(x):\n    if x:\n        return x\n    {body}", "a"
        )
        with kernel.probing(ECHO) as probing:
            died = one(probing, "echo", {"x": 0}, 1).died
        with kernel.probing(ECHO) as probing:
            alive = one(probing, "echo", {"x": 7}, 5)

    assert died is not None
    assert died.verdict is verdict
    assert alive.result is not None
    assert alive.result.data == 7


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts the waiting")
def test_time_in_which_others_have_the_processor_is_not_the_learners(
    warm: WarmProcess,
) -> None:
    processor = min(os.sched_getaffinity(0))
    busy = (
        f"import os; os.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            other = subprocess.Popen(
                [sys.executable, "-c", busy], start_new_session=True
            )
            stack.callback(other.wait)
            stack.callback(other.kill)
        kernel = stack.enter_context(Kernel(warm))
        kernel.run_cell(
            f"import os, time\nos.sched_setaffinity(0, {{{processor}}})\n"
            "def f(x):\n    while time.process_time() < x:\n        pass\n"
            "    return x",
            "a",
        )
        with kernel.probing(ECHO) as probing:
            late = one(probing, "echo", {"x": 0.5}, 2)
        with kernel.probing(ECHO) as probing:
            never = one(probing, "echo", {"x": 1e9}, 0.5)

    assert late.died is None
    assert never.died is not None
    assert never.died.verdict is Verdict.TIMED_OUT


def test_too_much_memory_is_named(warm: WarmProcess) -> None:
    with Kernel(warm) as kernel:
        kernel.run_cell(
            "import torch\ndef f(x):\n    return torch.zeros(10**12) + x", "a"
        )
        with kernel.probing(ECHO) as probing:
            answer = one(probing, "echo", {"x": 1}, 5)

    assert answer.out_of_memory


@pytest.mark.parametrize(
    ("line", "untouched"),
    [
        ("raise NotImplementedError()", True),
        ("torch.zeros(2, device='meta').tolist()", False),
    ],
)
def test_what_pytorch_has_not_implemented_was_attempted(
    warm: WarmProcess, line: str, untouched: bool
) -> None:
    with Kernel(warm) as kernel:
        kernel.run_cell(f"import torch\ndef f(x):\n    {line}", "a")
        with kernel.probing(ECHO) as probing:
            answer = one(probing, "echo", {"x": 1}, 5)

    assert answer.result is not None
    assert answer.result.raised[0] == "NotImplementedError"
    assert answer.result.not_attempted is untouched


@pytest.mark.parametrize("body", ["while True: pass", "import os; os._exit(1)"])
def test_a_cell_that_ends_the_process_is_told(
    warm: WarmProcess, body: str
) -> None:
    with Kernel(warm) as kernel:
        cell = kernel.run_cell(body, "a", 1)

        assert cell.died is not None
        assert kernel.died is cell.died
        with kernel.probing(ECHO) as probing:
            assert one(probing, "echo", {"x": 1}, 1).died is not None


def test_effects_are_recorded_unasked(warm: WarmProcess) -> None:
    source = (
        "import torch, random, warnings\nimport numpy as np\n"
        "def f(x):\n"
        "    x.add_(1)\n    torch.rand(1)\n    random.random()\n"
        "    np.random.rand()\n    torch.set_grad_enabled(False)\n"
        "    torch.set_default_dtype(torch.float64)\n    warnings.warn('w')\n"
        "    torch.set_default_device('meta')\n"
        "    torch.backends.cudnn.benchmark = True\n"
        "    torch.set_float32_matmul_precision('medium')\n"
        "    torch.set_num_threads(3)\n"
        "    torch.autograd.set_detect_anomaly(True)\n"
        "    torch.backends.mkldnn.deterministic = True\n"
        "    import gc, os\n    gc.disable()\n"
        "    torch.set_printoptions(precision=2)\n    np.seterr(all='raise')\n"
        "    warnings.simplefilter('ignore')\n"
        "    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':16:8'\n    return x\n"
        "def g(x):\n    return x + torch.ones(2)\n"
    )
    with Kernel(warm) as kernel:
        kernel.run_cell(source, "a")
        with kernel.probing(
            ECHO + ECHO.replace("echo(f", "other(g").replace("f(case", "g(case")
        ) as probing:
            dirty = one(probing, "echo", {"x": torch.zeros(2)}, 5)
            clean = one(probing, "other", {"x": torch.zeros(2)}, 5)

    assert dirty.result.effects.inputs_changed == ("x",)
    assert dirty.result.effects.rng_changed == ("torch", "numpy", "random")
    assert dirty.result.effects.state_changed == (
        "grad mode",
        "default dtype",
        "default device",
        "cuDNN",
        "matmul precision",
        "number of threads",
        "anomaly detection",
        "oneDNN",
        "garbage collector",
        "print options",
        "NumPy's error handling",
        "CUBLAS_WORKSPACE_CONFIG",
        "warning filters",
    )
    assert dirty.result.effects.warnings == ("UserWarning",)
    assert clean.result.effects.inputs_changed == ()
    assert clean.result.effects.rng_changed == ()
    assert clean.result.effects.state_changed == ()
    assert clean.result.data.dtype is torch.float32


def test_cases_wait_in_line_without_anybody_waiting_for_the_other(
    warm: WarmProcess,
) -> None:
    small = [{"x": number} for number in range(200)]
    large = [{"x": torch.zeros(300_000) + number} for number in range(6)]
    with Kernel(warm) as kernel:
        kernel.run_cell("def f(x):\n    return x", "a")
        with kernel.probing(ECHO) as probing:
            for cases in (small, large, small):
                runs = list(probing.probe_all("echo", cases, 5))
                assert len(runs) == len(cases)
                for case, answer in zip(cases, runs, strict=True):
                    assert answer.result is not None
                    assert torch.equal(
                        torch.as_tensor(answer.result.data),
                        torch.as_tensor(case["x"]),
                    )


def test_a_shared_case_runs_once_and_any_other_as_often_as_it_is_asked(
    warm: WarmProcess,
) -> None:
    shared, mine = SharedCase(x=0), {"x": 0}
    with Kernel(warm) as kernel:
        kernel.run_cell("calls = []\ndef f(x):\n    calls.append(x)", "a")
        source = "def count(f, calls, case):\n    f(case['x'])\n    return len(calls)\n"
        with kernel.probing(source + source.replace("count", "again")) as one:
            asked = [
                one.probe_all("count", cases, 5)
                for cases in ([mine, shared], [shared, mine], [mine, shared])
            ]
            counts = [
                [run.result.data for run in runs if run.result]
                for runs in asked
            ]
            # another probe asks something else, another case is another one
            asked = [
                one.probe_all(probe, [case], 5)
                for probe, case in (
                    ("again", shared),
                    ("count", SharedCase(x=0)),
                )
            ]
            others = [run.result.data for (run,) in asked if run.result]

    assert counts == [[1, 2], [2, 3], [4, 2]]
    assert others == [5, 6]


def test_the_cases_after_the_one_that_kills_are_not_answered(
    warm: WarmProcess,
) -> None:
    with Kernel(warm) as kernel:
        kernel.run_cell(
            "import os\ndef f(x):\n    return x if x < 2 else os._exit(0)", "a"
        )
        with kernel.probing(ECHO) as probing:
            answers = probing.probe_all("echo", [{"x": n} for n in range(9)], 5)
            runs = [next(answers)]
            # what it had answered before it ended is taken still
            ended = select.poll()
            ended.register(probing.channel.socket, select.POLLHUP)
            ended.poll()
            runs += answers
    assert [one.died is None for one in runs] == [True, True, False]


def test_an_answer_that_came_before_is_not_read_again(
    warm: WarmProcess,
) -> None:
    case, twin, large = {"x": 1}, {"x": 1}, {"x": torch.arange(2**13)}
    exchanged = Exchanged()

    def given(cell: str) -> list[Result | None]:
        with Kernel(warm) as kernel:
            kernel.run_cell(cell, "a")
            with kernel.probing(ECHO, exchanged) as probing:
                runs = probing.probe_all("echo", [case, twin, large], 5)
                return [run.result for run in runs]

    first = given("def f(x):\n    return [x, 'a']")
    other = given("def f(x):\n    return [x, 'b']")
    again = given("def f(x, *more):\n    return [x, 'a']")

    assert again[0] is first[0]
    assert again[1] is first[1]
    assert first[0] is not first[1]  # of another case
    assert again[2] is not first[2]  # too large to be kept
    assert [one and one.data for one in other[:2]] == [[1, "b"]] * 2


def test_few_answers_to_a_question_are_kept(warm: WarmProcess) -> None:
    exchanged = Exchanged()
    case = {"x": 1}
    with Kernel(warm) as kernel:
        kernel.run_cell(
            "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n", "a"
        )
        with kernel.probing(ECHO, exchanged) as probing:
            for _ in range(2 * KEPT_ANSWERS):
                one(probing, "echo", case, 5)
            kernel.run_cell("def f(x):\n    return 'x' * 9000", "b")
        with kernel.probing(ECHO, exchanged) as probing:
            one(probing, "echo", case, 5)

    (kept,) = exchanged.answers.values()
    assert [one[2].result and one[2].result.data for one in kept] == [
        *range(2 * KEPT_ANSWERS - len(kept) + 1, 2 * KEPT_ANSWERS + 1)
    ]
    assert len(kept) == KEPT_ANSWERS


def test_changes_of_unusual_tensors_are_seen(warm: WarmProcess) -> None:
    one = torch.tensor(3.0).expand(1).clone()
    assert one.stride() == (0,)
    with Kernel(warm) as kernel:
        kernel.run_cell(
            "import torch\n"
            "def keep(x):\n    return 1\n"
            "def spoil(x):\n    x.data.add_(1)\n    return 1\n"
            "def want(x):\n    x.requires_grad_(not x.requires_grad)\n    return 1\n"
            "def hook(x):\n    x.register_hook(torch.nan_to_num)\n    return 1\n"
            "def tidy(x):\n    x.register_hook(torch.neg).remove()\n    return 1",
            "a",
        )
        wanting = one.clone().requires_grad_()
        for name, x, changed in (
            ("keep", one, ()),
            ("spoil", one, ("x",)),
            ("want", one, ("x.requires_grad",)),
            ("want", wanting, ("x.requires_grad",)),
            ("hook", wanting, ("x.hooks",)),
            ("tidy", wanting, ()),
        ):
            with kernel.probing(
                ECHO.replace("f(", f"{name}(").replace("(f,", f"({name},")
            ) as probing:
                (answer,) = probing.probe_all("echo", [{"x": x}], 5)
            assert answer.died is None
            assert answer.result.effects.inputs_changed == changed


def test_modules_keep_mode_and_hooks_or_it_shows(warm: WarmProcess) -> None:
    probes = (
        "import torch\n"
        "def call(f, case):\n    m = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"
        "    f(m)\n    return case['x']\n"
    )
    for body, changed in (
        ("m.eval()", ("training",)),
        ("m[0].register_forward_hook(lambda *a: None)", ("hooks",)),
        ("m[0].note = 1", ("attributes",)),
        ("m[0].training = True", ()),
        ("pass", ()),
    ):
        with Kernel(warm) as kernel:
            kernel.run_cell(f"def f(m):\n    {body}", "a")
            with kernel.probing(probes) as probing:
                answer = one(probing, "call", {"x": 1}, 5)
        assert answer.result.effects.modules_changed == changed


def test_the_environment_holds_nothing_of_the_graders(
    warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = run(warm, "import os\nprint(sorted(os.environ), os.getcwd())")

    text = str(outputs[0][0]["text"])
    assert "TOKEN" not in text
    assert str(Path.cwd()) not in text
    assert "NBGRADER_EXECUTION" in text


def test_a_process_that_does_not_start_says_why(monkeypatch):
    said = "raise SystemExit('KeyError: nobody is here')"
    monkeypatch.setattr(
        sandbox, "plain_command", lambda _: [sys.executable, "-c", said]
    )
    with (
        WarmProcess(sandboxed=False) as broken,
        pytest.raises(GraderBroken, match=r"start .KeyError: nobody is here.:"),
    ):
        broken.start()
