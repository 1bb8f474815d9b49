"""What a failed check shows: its smallest case as a learner would write it, in
the exercise's words, never one that every run has, and nothing in an exam."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_grader.bank import Answer
from course_grader.chapter.build import build_chapter
from course_grader.chapter.grading import Grading, load_grading
from course_grader.checks import Result
from course_grader.course import Course, CourseError
from course_grader.feedback import page
from course_grader.feedback.learner import _first_open
from course_grader.grading.submission import grade_submission, prepare
from course_grader.judge.compare import (
    Difference,
    Tolerance,
    difference,
    noted,
)
from course_grader.judge.failing import (
    Failure,
    Shows,
    _match,
    _returned,
    _returned_by,
    failing_case,
    subject_of,
)
from course_grader.judge.judging import (
    _agreeing,
    _kind,
    _of_one_fault,
    judge_exercise,
)
from course_grader.judge.kernels import ProbeRun, Traced
from course_grader.judge.patterns import pattern
from course_grader.judge.reference import (
    judge_answer,
    prepared_kernel,
    reference_expectations,
)
from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    FailingCase,
    SubmissionReport,
    Verdict,
    half_points,
)
from course_grader.judge.warming import WarmProcess
from course_grader.judge.written import (
    Call,
    described,
    literal,
    pair,
    summary,
)
from course_grader.kernel.plain import Unknown


def judged(
    course: Course, warm: WarmProcess, exercise: str, source: str
) -> ExerciseReport:
    """What a learner is told who writes this cell."""
    grading = load_grading(course, "03_mini")
    expected = reference_expectations(warm, grading, 4, [exercise])
    answer = Answer("mine", exercise, source, None, ("doubles",))
    with prepared_kernel(warm, grading) as kernel:
        return judge_answer(kernel, grading, answer, expected)


def named(report: ExerciseReport, name: str) -> CheckReport:
    (found,) = [one for one in report.checks if one.name == name]
    return found


DOUBLE = """\
def double(x, times=1):
    if times < 0:
        raise ValueError("negative")
    return {}
"""


def test_a_wrong_value_shows_the_call_both_values_and_their_ratio(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(
        mini, warm, "mean", "def mean(x):\n    return float(x.sum())\n"
    )

    (check,) = report.checks
    assert check.message == "What `mean` returns is wrong."
    assert check.case is not None
    numbers = re.fullmatch(
        r"mean\(torch\.tensor\(\[(.*)\]\)\)", check.case.call
    )
    assert numbers is not None
    written = torch.tensor([float(one) for one in numbers[1].split(",")])
    assert len(written) == 7
    assert float(check.case.yours) == pytest.approx(
        float(written.sum()), abs=1e-2
    )
    assert float(check.case.right) == pytest.approx(
        float(written.mean()), abs=1e-2
    )
    assert check.case.differs == "Yours is 7 times what is right."


def test_what_an_earlier_call_left_is_named(
    mini: Course, warm: WarmProcess
) -> None:
    source = "seen = []\n\n\n" + DOUBLE.format(
        "x * 2**times + 0 * sum(one - x for one in seen + (seen.append(x) or []))"
    )
    report = judged(mini, warm, "double", source)

    check = named(report, "doubles")
    assert check.case is None
    assert check.message.endswith(
        "Called alone it raises nothing: an earlier call has left something, "
        "or chance decides."
    )


def test_the_smallest_of_the_failing_cases_is_shown(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(mini, warm, "double", DOUBLE.format("x + times"))

    case = named(report, "doubles").case
    assert case is not None
    # five numbers once, not the view of six that is doubled several times
    assert case.call.endswith(", 1)")
    assert case.call.count(",") == 5


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (
            "torch.set_grad_enabled(False)",
            "left a setting changed: grad mode",
        ),
        ("x.mul_(2)", "changed its input x in place"),
    ],
)
def test_what_a_refusal_leaves_behind_is_told(
    mini: Course, warm: WarmProcess, does: str, told: str
) -> None:
    report = judged(
        mini,
        warm,
        "double",
        "import torch\n"
        "def double(x, times=1):\n"
        "    if times < 0:\n"
        f"        {does}\n"
        "        raise ValueError\n"
        "    return x * 2**times",
    )

    assert [one.name for one in report.checks if one.points == 0] == ["refuses"]
    assert named(report, "refuses").message == (
        f"Your code {told}, when it refused a bad input."
    )


def test_a_refusal_that_did_not_come_names_the_input(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(
        mini, warm, "double", "def double(x, times=1):\n    return x * 2**times"
    )

    check = named(report, "refuses")
    assert check.message == (
        "Your code raised nothing where it must raise ValueError."
    )
    assert check.case is not None
    assert check.case.call.endswith(", -1)")
    assert check.case.right == "raises ValueError"
    assert check.case.yours.startswith("returns tensor([")


def test_an_exception_is_told_with_its_own_text_and_line(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(mini, warm, "double", DOUBLE.format("x @ x.reshape(1, 5)"))

    check = named(report, "doubles")
    assert check.message.startswith(
        "Your code raised RuntimeError at your line "
        "`return x @ x.reshape(1, 5)`: "
    )
    assert "1x5 and 1x5" in check.message.partition("`: ")[2]
    # the same exception in the same line is one fault
    assert named(report, "keeps").follows == "doubles"
    assert named(report, "keeps").case is None


def test_a_text_that_is_another_at_each_call_is_told(
    mini: Course, warm: WarmProcess
) -> None:
    """As a process id in a name: what is told is of the process that has seen no
    other case."""
    source = "import time\n\n" + DOUBLE.format(
        'open(f"/gone/{time.time_ns()}")'
    )
    report = judged(mini, warm, "double", source)

    check = named(report, "doubles")
    assert "FileNotFoundError" in check.message
    assert "No such file or directory: '/gone/" in check.message
    assert check.case is not None


def test_a_fault_is_one_whatever_the_input_is_called() -> None:
    def kind(what: str, form: str) -> str:
        return _kind(f"The {what} is wrong, with {form}.", None, {"form": form})

    assert kind("shape", "a gray image") == kind("shape", "a list of three")
    assert kind("shape", "a gray image") != kind("dtype", "a gray image")


def test_wrong_values_accuse_once(mini: Course, warm: WarmProcess) -> None:
    """A check that asks whether the input is kept does not say that it was
    not."""
    report = judged(mini, warm, "double", DOUBLE.format("x * 3**times"))

    assert [one.follows for one in report.checks] == [
        "",
        "doubles",
        "doubles",
    ]
    text = page(SubmissionReport("03_mini", 1, (report,)), None, student="Ada")
    assert text.count("has wrong values") == 1
    assert "2 more checks fail" in text


@pytest.mark.parametrize("running", [False, True])
def test_a_known_mistake_accuses_once(
    mini: Course, warm: WarmProcess, running: bool
) -> None:
    """It is one mistake, in however many ways its checks fail; whether these are
    told at once or in the end."""
    source = "def double(x, times=1):\n    return x.mul_(2**times)"

    def follows(tells: str) -> list[str]:
        grading = load_grading(mini, "03_mini")
        expected = reference_expectations(warm, grading, 4, ["double"])
        with (
            prepared_kernel(warm, grading) as kernel,
            kernel.probing(grading.probes_source) as probing,
        ):
            probing.run_cell(source, "double")
            report = judge_exercise(
                grading,
                "double",
                expected,
                lambda: probing,
                lambda *_: tells,
                shows=Shows(grading, 4),
                tell=(lambda _: None) if running else None,
            )
        assert report.misconception == tells
        lost = [one for one in report.checks if one.message]
        assert [one.name for one in lost] == ["keeps", "refuses"]
        for one in lost:
            assert (one.case is None) == bool(one.follows)
        return [one.follows for one in report.checks]

    assert follows("You wrote `mul_` alone.") == ["", "", "keeps"]
    assert follows("") == ["", "", ""]


def test_of_one_mistake_the_check_that_shows_a_case_leads() -> None:
    whole = CheckReport("whole", "it is whole", Verdict.PASSED, 1, 1)
    lost = replace(whole, name="lost", verdict=Verdict.FAILED, points=0)
    shown = replace(lost, name="shown", case=FailingCase("double(1)"))
    other = replace(shown, name="other")

    def follows(*reports: CheckReport) -> list[str]:
        return [one.follows for one in _of_one_fault(reports)]

    assert follows(lost, whole, shown, other) == ["shown", "", "", "shown"]
    assert follows(whole, lost) == ["", ""]
    first = _first_open(_of_one_fault([lost, whole, shown]))
    assert first is not None
    assert first.name == "shown"


def test_what_was_changed_in_place_is_told_with_its_call(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(mini, warm, "double", DOUBLE.format("x.mul_(2**times)"))

    check = named(report, "keeps")
    assert check.message == "Your code changed its input x in place."
    assert check.case is not None
    assert check.case.call.startswith("double(torch.tensor([")


def test_code_that_ends_the_process_is_shown_its_call(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(
        mini, warm, "double", "import os\n" + DOUBLE.format("os._exit(0)")
    )

    check = named(report, "doubles")
    assert check.message == "Your code ended the whole process."
    assert check.case is not None
    assert check.case.call.startswith("double(torch.tensor([")
    assert check.case.yours == ""


def test_a_case_that_every_run_has_is_never_shown(
    mini: Course, warm: WarmProcess
) -> None:
    tests = mini.autograde / "03_mini" / "hidden_tests.py"
    tests.write_text(
        tests.read_text().replace(
            '[{"x": draw.normal(7)}]',
            '[{"x": __import__("torch").arange(7.0)}, {"x": draw.normal(9)}]',
        )
    )
    nowhere_right = "def mean(x):\n    return float(x.sum()) + 1\n"
    right_elsewhere = (
        "def mean(x):\n    return 0.0 if len(x) == 7 else x.mean().item()\n"
    )

    drawn = judged(mini, warm, "mean", nowhere_right).checks[0]
    fixed = judged(mini, warm, "mean", right_elsewhere).checks[0]

    assert drawn.case is not None
    assert drawn.case.call.count(",") == 8
    assert fixed.message == "What your code gives is wrong."
    assert fixed.case is None


@pytest.mark.slow
def test_no_quiz_tells_the_right_letter(
    course: Course, warm: WarmProcess
) -> None:
    """Its question comes again in every run, whatever else a case holds."""
    asked = 0
    for chapter in course.chapters():
        grading = load_grading(course, chapter)
        if "quiz" not in [one.id for one in grading.chapter.exercises]:
            continue
        expected = reference_expectations(warm, grading, 4, ["quiz"])
        with prepared_kernel(warm, grading) as kernel:
            for answer in grading.answers_of("quiz"):
                if answer.right or answer.ends_process:
                    continue
                report = judge_answer(kernel, grading, answer, expected)
                lost = [one for one in report.checks if one.message]
                assert lost, answer.name
                assert [one.case for one in lost] == [None] * len(lost)
                asked += 1
    assert asked > 20


def test_an_error_in_no_line_of_the_learner_is_not_their_codes(
    mini: Course, warm: WarmProcess
) -> None:
    probes = mini.autograde / "03_mini" / "probes.py"
    text = probes.read_text()
    probes.write_text(text.replace("return mean(", "return 1.0 * mean("))

    told = judged(
        mini, warm, "mean", "def mean(x):\n    return str(x.mean())\n"
    ).checks[0]

    assert told.message.startswith(
        "Using what your cell defines raised TypeError"
    )


def test_an_exam_shows_no_case_no_text_and_no_line(
    mini: Course, warm: WarmProcess
) -> None:
    _, _, notebook = build_chapter(mini, "03_mini")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "double":
            cell.source = DOUBLE.format("1 / 0")
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "mean":
            cell.source = "def mean(x):\n    return float(x.sum())\n"
    submitted = nbformat.writes(notebook).encode()

    def report() -> SubmissionReport:
        prepared = prepare(Course(mini.root), warm, "03_mini", 7)
        try:
            return grade_submission(warm, prepared, submitted).report
        finally:
            prepared.close()

    practice = report()
    settings = mini.settings_file
    settings.write_text('exams = ["03"]\n' + settings.read_text())
    exam = report()

    assert "division by zero" in str(practice.to_json())
    assert all(one.checks[0].case for one in practice.exercises)
    assert [one.points for one in exam.exercises] == [
        one.points for one in practice.exercises
    ]
    told = str(exam.to_json())
    assert "division by zero" not in told
    assert "1 / 0" not in told
    assert all(
        one.case is None for each in exam.exercises for one in each.checks
    )


def test_a_setting_that_names_no_chapter_is_refused(mini: Course) -> None:
    mini.settings_file.write_text('exams = ["77"]\n')
    with pytest.raises(CourseError, match="no chapter '77'"):
        _ = Course(mini.root).exams


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.zeros(0), "torch.tensor([])"),
        (
            torch.zeros(0, dtype=torch.int64),
            "torch.tensor([], dtype=torch.int64)",
        ),
        (
            torch.zeros(5, 0, dtype=torch.int64),
            "torch.empty((5, 0), dtype=torch.int64)",
        ),
        (torch.tensor([3]), "torch.tensor([3])"),
    ],
)
def test_a_tensor_without_numbers_says_its_dtype(
    value: torch.Tensor, text: str
) -> None:
    assert literal(value, module="torch.") == text


# Hostile data: what a learner's process sends of its calls may be anything.

ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from(
        [
            torch.zeros(3),
            torch.zeros(2, 0),
            torch.ones(50, 60, dtype=torch.int8),
            torch.empty(4, device="meta"),
            torch.tensor(float("nan")),
            torch.zeros(1, dtype=torch.complex64),
            "x" * 100_000,
            "\u202eevil`</pre><script>",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=10), inner, max_size=5)
    ),
    max_leaves=12,
)
CALL = st.fixed_dictionaries(
    {"call": ODD},
    optional=dict.fromkeys(
        (
            *("names", "args", "kwargs", "state", "around"),
            *("returned", "raised"),
        ),
        ODD,
    ),
)


class Sends:
    """A process that says anything of its calls."""

    def __init__(self, seen: Result, calls: Any) -> None:
        self.traced = Traced(ProbeRun(seen), {"calls": calls})

    def trace(self, *_: Any) -> Traced:
        return self.traced


@settings(deadline=None)
@given(st.lists(CALL, max_size=60) | ODD, ODD, ODD)
def test_whatever_is_sent_gives_a_short_harmless_case(
    mini_check: Any, calls: Any, seen: Any, expected: Any
) -> None:
    with noted() as notes:
        try:
            difference({"out": seen}, {"out": expected}, Tolerance())
        except Exception:
            notes.clear()
    failure = Failure(
        mini_check,
        {"x": 1},
        ProbeRun(Result(data={"out": seen})),
        Result(data={"out": expected}),
        notes[-1] if notes else None,
        True,
    )

    case, subject = failing_case(
        failure, Sends(Result(data={"out": seen}), calls), "words"
    )

    assert len(subject) < 400
    if case is not None:
        report = CheckReport("c", "it holds", "failed", 0.0, 1.0, subject, case)
        assert len(str(report)) < 12_000
        assert "\u202e" not in str(report)
        text = page(
            SubmissionReport(
                "03_mini",
                1,
                (ExerciseReport("e", "E", 0.0, 1.0, (report,)),),
            ),
            None,
            student="Ada",
        )
        assert "<script>" not in text


@pytest.fixture(scope="module")
def mini_check(course: Course) -> Any:
    return load_grading(course, "03_one_hot_and_losses").checks[0]


T = torch.tensor


@pytest.mark.parametrize(
    ("seen", "expected", "said"),
    [
        (T([[1.0, 2], [3, 4]]), T([[1.0, 3], [2, 4]]), "the transpose of"),
        (T([[1.0, 2, 3]]), T([[1.0], [2], [3]]), "in their order."),
        (T([2.0, 4, 6]), T([1.0, 2, 3]), "Yours is 2 times what is right"),
        (T([1.0, 2, 3]), T([3.0, 6, 9]), "Yours is 1/3 times what is right"),
        (T([-1.0, 2]), T([1.0, -2]), "Yours has the other sign."),
        (T([3.0, 4, 6]), T([1.0, 2, 4]), "larger by the same number"),
        (T([1.0, 2, 9]), T([1.0, 2, 3]), "Only the last entry differs."),
        (T([3.0, 2, 1.5]), T([1.5, 2, 3]), "reverse order"),
        (T([2.0, 1, 3]), T([1.0, 3, 2]), "their places are not"),
        (T([1.0, 2]), T([1.0, 2, 3]), "1 entry missing at the end"),
        (T([1.0, 2]), T([1, 2]), "dtype is float32; it should be int64."),
        (T([0.0, 0]), T([1.0, 2]), "Yours is 0 there."),
        ([1, 2], [1, 2, 3], "The last one is missing."),
        ([2, 3], [1, 2, 3], "The first is missing."),
        (["b", "a"], ["a", "b"], "their order is not"),
        (
            ["a", "x"],
            ["a", "b", "c"],
            "Missing: `b`, `c`. Too many: `x`.",
        ),
        ({"a": 1}, {"a": 1, "b": 2}, "Missing: `b`."),
        (6.0, 3.0, "Yours is 2 times what is right."),
        (3.1, 3.0, ""),
        (float("nan"), 3.0, "Yours is NaN."),
        (None, T([1.0]), "Yours is None, right is a tensor."),
    ],
)
def test_how_values_differ_is_said_in_words(
    seen: Any, expected: Any, said: str
) -> None:
    found = pattern(seen, expected, Tolerance())
    assert (said in found) if said else not found


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        (("out",), "What your code gives"),
        (("outs", 3), "What your code gives, number 4,"),
        (("gradients", "x"), "The gradients of `x`"),
        (("labels_after",), "`labels` after the call"),
        (("running_mean",), "`running_mean`"),
        (("graph_kept", 0), "The graph kept, number 1,"),
        (
            ("after", "running_mean", 1),
            "`running_mean` after the call, number 2,",
        ),
    ],
)
def test_a_probes_own_names_are_no_code(
    path: tuple[Any, ...], subject: str
) -> None:
    words = "Return `running_mean` for `labels`."
    assert subject_of(path, words) == subject


def of(path: tuple[Any, ...], seen: Any) -> Difference:
    return Difference(path, "values", seen, None, "It is wrong.")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.123456, 0.9], "tensor([0.1235, 0.9])"),
        ([-9989.123456, -9990.9], "tensor([-9989.123, -9990.9])"),
        ([1000.25, math.inf, 1001.5], "tensor([1000.25, inf, 1001.5])"),
        ([5.0, 5.0], "tensor([5.0, 5.0])"),
        ([1e8, 1.0], "tensor([1e+08, 1.0])"),
        ([math.nan], "tensor([nan])"),
    ],
)
def test_numbers_show_the_digits_that_tell_them_apart(
    values: list[float], shown: str
) -> None:
    text = literal(torch.tensor(values, dtype=torch.float64))
    assert text.replace(", dtype=float64", "") == shown


@pytest.mark.parametrize(
    ("found", "place"),
    [
        # a letter, a flag or a small number stands in many a result
        (of(("numbers",), "c"), (0, ("numbers",))),
        (of(("letter",), "c"), None),
        (of(("carries_graph",), True), None),
        (of(("out",), True), (1, ())),
        (of(("count",), 3), None),
        (of(("out", "steps"), 3), (0, ("steps",))),
        # other values are found where they stand alone
        (of(("norm",), 2.5), (0, ("length",))),
        (of(("norm",), 7.25), None),
        (of(("scale",), 200.0), (2, ())),
        (of((), 7.25), None),
        # a NaN may come from anywhere
        (of(("left",), math.nan), None),
        (of(("out",), math.nan), (3, ())),
    ],
)
def test_a_value_is_found_where_it_was_compared(
    found: Difference, place: Any
) -> None:
    calls = [
        {
            "call": "f",
            "returned": {
                "numbers": "c",
                "order": "c",
                "steps": 3,
                "length": 2.5,
                "first": 7.25,
                "last": 7.25,
                "factor": 200.0,
            },
        },
        {"call": "g", "returned": True},
        {"call": "h", "returned": 200.0},
        {"call": "i", "returned": math.nan},
    ]
    assert _match(found, calls) == place


@pytest.mark.parametrize(
    ("points", "whole", "shown"),
    [
        (5.0, True, 5.0),
        (4.9, False, 4.5),
        (4.736842, False, 4.5),
        (0.263158, False, 0.5),
        (0.2, False, 0.0),
        (2.24, False, 2.0),
    ],
)
def test_points_are_whole_or_half_ones(
    points: float, whole: bool, shown: float
) -> None:
    assert half_points(points, 5.0, whole) == shown


@pytest.mark.parametrize(
    "chapter",
    [
        pytest.param(
            path.name,
            marks=[] if path.name.startswith("03") else [pytest.mark.slow],
        )
        for path in sorted(
            (Path(__file__).parent.parent / "solutions").iterdir()
        )
        if (path / f"{path.name}.py").exists()
    ],
)
def test_wrong_answers_hear_no_word_of_a_probe(
    course: Course, chapter: str, warm: WarmProcess
) -> None:
    """What a comparison says is in words of the exercise: nothing in backticks
    that neither its text nor the answer nor PyTorch has."""
    grading = load_grading(course, chapter)
    exercises = [one.id for one in grading.chapter.exercises]
    expected = reference_expectations(warm, grading, 3, exercises)
    with prepared_kernel(warm, grading) as kernel:
        for exercise in exercises:
            wrong = [
                one
                for one in grading.answers_of(exercise)
                if not one.right and not one.ends_process
            ]
            for answer in wrong[:: max(1, len(wrong) // 4)]:
                report = judge_answer(kernel, grading, answer, expected)
                for check in report.checks:
                    if "at your line" in check.message:
                        continue
                    keys = {
                        str(key)
                        for (name, _), one in expected.reference.items()
                        if name == check.name and isinstance(one.data, dict)
                        for key in one.data
                    }
                    for word in re.findall(r"`([^`]+)`", check.message):
                        name = re.split(r"[\[.(]", word)[0]
                        known = name in code_of(grading, exercise)
                        assert known or name not in keys, (
                            answer.name,
                            check.message,
                        )


def code_of(grading: Grading, exercise: str) -> str:
    """What of an exercise's text and cell is code."""
    cells = [
        one.source for one in grading.chapter.cells if one.name == exercise
    ]
    text = "\n".join(cells)
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.S)) + (
        grading.chapter.exercise(exercise).source
    )


def test_a_report_with_a_case_travels_as_json(
    mini: Course, warm: WarmProcess
) -> None:
    report = judged(
        mini, warm, "mean", "def mean(x):\n    return float(x.sum())\n"
    )

    again = ExerciseReport.from_json(report.to_json())

    assert again == replace(report)
    assert again.checks[0].case == report.checks[0].case


def test_objects_and_several_things_agree_with_their_words() -> None:
    assert described(Unknown("enumerate")) == "an enumerate"
    assert described(Unknown("Sample")) == "a Sample"
    said = _agreeing("The gradients of `a`", "is None, but it should be 1.")
    assert said == "The gradients of `a` are None, but they should be 1."
    assert _agreeing("The layer", "has no axis.") == "The layer has no axis."


def test_a_long_list_of_the_same_is_written_once() -> None:
    assert pair([1] * 900, [2] * 450) == (
        "a list of 900: each 1",
        "a list of 450: each 2",
    )


def test_two_values_show_as_many_digits_as_matter() -> None:
    assert pair(0.5, 0.7) == ("0.5", "0.7")
    # not by the last digit alone
    assert pair(0.88544, 0.88451) == ("0.88544", "0.88451")
    assert pair(1.0, 1.0 + 2**-52) == ("1.0", "1.0000000000000002")
    # where what differs is not shown, more digits tell nothing
    log = [{"loss": 0.1 + i} for i in range(60)]
    for text in pair(log, log[:-1]):
        assert text.startswith("[{'loss': 0.1}")


def test_what_one_call_of_several_returned_is_found_by_its_turn() -> None:
    answers = [True, True, False]
    calls = [{"call": "best = Best", "returned": {"is": "an object"}}]
    calls += [{"call": "best.update", "returned": one} for one in answers]

    # all that the probe collected are of one function: its second call
    found = Difference(("out", 1), "values", True, False, "It is wrong.")

    assert _match(found, calls) == (2, ())


def test_a_float_that_is_almost_another_is_shown_in_full() -> None:
    call = Call()
    for value in (0.5, 0.5 + 2**-53, 0.123456789):
        call.add({"call": "update", "args": [value]})

    assert call.lines == [
        "update(0.5)",
        "update(0.5000000000000001)",
        "update(0.1235)",
    ]


def test_a_tensor_far_from_zero_does_not_read_as_if_it_were_one_number() -> (
    None
):
    far = torch.linspace(0, 1, 40, dtype=torch.float64) + 1e6

    assert summary(far).endswith("1000000.0 to 1000001.0")
    assert summary(torch.full((40,), 2.5)).endswith("all 2.5")


def test_what_is_made_is_no_answer() -> None:
    assert _returned({"call": "net = Net", "returned": None}) == ""
    assert _returned({"call": "f", "returned": None}) == "returns None"


def test_an_object_is_called_after_its_class() -> None:
    calls = [{"call": "batch_norm = BatchNorm"}, {"call": "batch_norm"}]

    words = _returned_by(calls, 1, ())

    assert words == "What your `BatchNorm` returns"
