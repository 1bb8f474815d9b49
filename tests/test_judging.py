"""Judging: cases hang on the seed and on the check alone; words hold no values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from unittest import mock

import pytest
import torch

from course_grader.chapter.grading import load_grading
from course_grader.checks import (
    Case,
    Draw,
    Effects,
    Result,
    SharedCases,
    gives_no_warning,
)
from course_grader.course import Course, CourseError
from course_grader.judge.inprocess import grade
from course_grader.judge.judging import (
    Expectations,
    alike,
    draw_cases,
    judge_exercise,
)
from course_grader.judge.kernels import Died, ProbeRun
from course_grader.judge.reference import reference_expectations
from course_grader.judge.report import Verdict
from course_grader.judge.trial import replayed_checks, try_bank
from course_grader.judge.warming import WarmProcess


def test_every_seed_draws_other_cases(mini: Course) -> None:
    grading = load_grading(mini, "03_mini")
    drawn = [draw_cases(grading, seed) for seed in (0, 1, 2, 2**31 - 1)]

    for name in drawn[0]:
        first = [cases[name][0]["x"] for cases in drawn]
        for i, one in enumerate(first):
            assert not any(torch.equal(one, other) for other in first[:i])


def test_another_error_is_the_same_fault_only_where_one_is_asked_for(
    mini: Course,
) -> None:
    check = load_grading(mini, "03_mini").checks_of("double")[0]
    one = Result(raised=("TypeError", "Exception"))
    other = Result(raised=("RuntimeError", "Exception"))
    refuses = Result(raised=("ValueError", "Exception"))

    assert {"TypeError", "RuntimeError"} <= set(check.raises)
    assert alike(check, one, other, refuses)
    assert not alike(check, one, other, Result(data=1))
    assert not alike(check, one, Result(raised=("KeyError",)), refuses)


def test_a_good_input_that_is_refused_is_one_fault_whatever_is_raised(
    mini: Course,
) -> None:
    check = load_grading(mini, "03_mini").checks_of("double")[0]
    right = Result(data=1)
    one, other = (
        Result(raised=(name, "Exception"), refused=True)
        for name in ("ValueError", "KeyError")
    )
    by_an_operation = Result(raised=("KeyError", "Exception"))

    assert alike(check, one, other, right)
    assert not alike(check, one, by_an_operation, right)
    # where a refusal is asked for, its kind counts
    assert not alike(check, one, other, Result(raised=("ValueError",)))


def test_a_warning_alone_is_another_behaviour_only_where_none_may_be(
    mini: Course,
) -> None:
    check = load_grading(mini, "03_mini").checks_of("double")[0]
    right = Result(data=1)
    warns = Result(data=1, effects=Effects(warnings=("UserWarning",)))
    draws = Result(data=1, effects=Effects(rng_changed=("torch",)))

    assert alike(check, warns, right, right)
    assert not alike(check, draws, right, right)
    strict = replace(check, also=(gives_no_warning,))
    assert not alike(strict, warns, right, right)


def test_cases_stay_when_another_check_goes(mini: Course) -> None:
    before = draw_cases(load_grading(mini, "03_mini"), 5)["averages"]
    path = mini.autograde / "03_mini" / "hidden_tests.py"
    path.write_text(path.read_text().replace("def keeps", "def renamed"))
    answers = mini.autograde / "03_mini" / "answers" / "double.py"
    answers.write_text(answers.read_text().replace(".keeps", ".renamed"))

    after = draw_cases(load_grading(mini, "03_mini"), 5)["averages"]

    assert torch.equal(before[0]["x"], after[0]["x"])


def test_checks_of_one_run_share_the_case_that_is_asked_for_once(
    mini: Course,
) -> None:
    tests = mini.autograde / "03_mini" / "hidden_tests.py"
    text = tests.read_text()
    own = '{"x": draw.normal(5), "times": 1}'
    assert text.count(own) == 3
    text = text.replace(own, "draw.once(five)", 2)
    tests.write_text(f"{text}\n\ndef five(draw):\n    return {own}\n")
    grading = load_grading(mini, "03_mini")

    first, second = draw_cases(grading, 1), draw_cases(grading, 2)
    alone = draw_cases(grading, 1, ["double"])

    assert first["doubles"][0] is first["keeps"][0]
    assert first["doubles"][0]["x"].tolist() != second["keeps"][0]["x"].tolist()
    assert alone["keeps"][0]["x"].tolist() == first["keeps"][0]["x"].tolist()


def test_checks_share_what_they_ask_for_in_the_same_words() -> None:
    kept: SharedCases = {}
    one, other = Draw(1, "one", kept), Draw(1, "other", kept)

    def of_size(draw: Draw, size: int, *, std: float = 1.0) -> Case:
        return {"x": draw.normal(size, std=std)}

    case = one.once(of_size, 3)

    assert other.once(of_size, 3) is case
    assert other.once(of_size, 3, std=1.0) is not case
    assert len(one.once(of_size, 4)["x"]) == 4
    elsewhere = Draw(1, "third").once(of_size, 3)
    assert torch.equal(elsewhere["x"], case["x"])
    assert not torch.equal(Draw(2, "one").once(of_size, 3)["x"], case["x"])


def test_the_bank_of_the_small_course_is_judged_as_it_must_be(
    mini: Course, warm: WarmProcess
) -> None:
    trials = list(
        try_bank(
            warm,
            load_grading(mini, "03_mini"),
            (1, 2),
            in_process=lambda answer: True,
        )
    )

    assert len(trials) == 12
    assert [one.complaints for one in trials] == [()] * 12


def test_what_is_refused_does_not_depend_on_the_seed(
    mini: Course, warm: WarmProcess
) -> None:
    path = mini.autograde / "03_mini" / "hidden_tests.py"
    tests = path.read_text()
    by_chance = tests.replace(
        '"times": -1}', '"times": -1 if draw.uniform().item() < 0.5 else 1}'
    )
    assert by_chance != tests
    path.write_text(by_chance)

    with pytest.raises(CourseError, match="case 1 of `refuses`"):
        list(
            try_bank(
                warm, load_grading(mini, "03_mini"), range(1, 9), ["double"]
            )
        )


def test_a_bank_that_is_wrong_about_itself_is_told(
    mini: Course, warm: WarmProcess
) -> None:
    """The bank test can fail: right answers called wrong, wrong called right."""
    for kind in ("py", "diff"):
        path = mini.autograde / "03_mini" / "answers" / f"mean.{kind}"
        swapped = path.read_text().replace("x.mean", "x.other")
        swapped = swapped.replace("x.sum", "x.mean").replace("other", "sum")
        path.write_text(swapped)

    trials = list(try_bank(warm, load_grading(mini, "03_mini"), (1,), ["mean"]))

    assert [bool(one.complaints) for one in trials] == [True, True]


def test_recorded_answers_pass_on_their_own_seed_only(
    mini: Course, warm: WarmProcess
) -> None:
    grading = load_grading(mini, "03_mini")
    one = reference_expectations(warm, grading, 1)
    two = reference_expectations(warm, grading, 2)

    assert replayed_checks(grading, one, two) == []
    assert len(replayed_checks(grading, one, one)) == len(grading.checks)


def test_an_answers_own_decorators_travel_with_it(mini: Course) -> None:
    path = mini.autograde / "03_mini" / "answers" / "mean.py"
    path.write_text(
        path.read_text()
        .replace("@accepted", "import torch\n\n\n@accepted", 1)
        .replace(
            "@accepted()\n",
            "@accepted()\n@torch.inference_mode()\n@torch.no_grad()\n",
        )
    )
    grading = load_grading(mini, "03_mini")
    (answer,) = [one for one in grading.answers if one.name == "by_method"]

    cell = grading.answer_cell(answer)

    assert cell.startswith("@torch.inference_mode()\n@torch.no_grad()\ndef ")


def test_a_rule_that_cannot_read_an_answer_fails_that_check_alone(
    mini: Course, warm: WarmProcess
) -> None:
    tests = mini.autograde / "03_mini" / "hidden_tests.py"
    tests.write_text(
        tests.read_text().replace(
            'says="the mean")',
            'says="the mean",\n'
            "    rule=lambda case, seen, expected: "
            "None if seen.data + 1 == expected.data + 1 else 'Not the mean.')",
        )
    )
    edits = mini.autograde / "03_mini" / "answers" / "mean.diff"
    edits.write_text(
        edits.read_text()
        .replace("That is the sum.", "That is text.")
        .replace("return x.sum().item()", "return 'lie'")
    )

    trials = list(try_bank(warm, load_grading(mini, "03_mini"), (1,), ["mean"]))

    assert [one.complaints for one in trials] == [(), ()]
    (check,) = trials[1].report.checks
    assert check.message == (
        "What came back is not of the form that the check reads."
    )


@pytest.mark.parametrize(
    ("crashes", "verdict"), [(1, Verdict.PASSED), (2, Verdict.EXITED)]
)
def test_a_process_that_ends_once_costs_no_points(
    mini: Course, crashes: int, verdict: Verdict
) -> None:
    grading = load_grading(mini, "03_mini")
    exercise = grading.chapter.exercises[0].id
    expected = Expectations(
        1,
        cases := draw_cases(grading, 1, [exercise]),
        {
            (name, number): Result(data={"number": 1.0})
            for name in cases
            for number in range(len(cases[name]))
        },
    )
    probers = iter([Crashes()] * crashes + [Crashes(False)] * 9)

    report = judge_exercise(
        grading, exercise, expected, lambda: next(probers), None
    )

    assert report.checks[0].verdict is verdict
    assert {one.verdict for one in report.checks[1:]} <= {Verdict.PASSED}


@dataclass
class Crashes:
    """A process that ends at its first case, or gives the reference's answer."""

    at_once: bool = True

    def probe_all(
        self, probe: str, cases: Sequence[Case], timeout_s: float
    ) -> Iterator[ProbeRun]:
        for _ in cases:
            if self.at_once:
                died = Died(Verdict.EXITED, "Your code ended the process.")
                yield ProbeRun(None, died=died)
                return
            yield ProbeRun(Result(data={"number": 1.0}))


def test_a_key_that_the_reference_lacks_is_refused(
    mini: Course, warm: WarmProcess
) -> None:
    tests = mini.autograde / "03_mini" / "hidden_tests.py"
    tests.write_text(
        tests.read_text().replace(
            'says="the input is kept",',
            'says="the input is kept", on=["outt"],',
        )
    )

    with pytest.raises(CourseError, match=r"keeps compares 'outt'.*'out'\."):
        reference_expectations(warm, load_grading(mini, "03_mini"), 1)


def test_a_string_as_keys_is_refused(mini: Course) -> None:
    tests = mini.autograde / "03_mini" / "hidden_tests.py"
    tests.write_text(
        tests.read_text().replace(
            'says="the input is kept",', 'says="the input is kept", on="out",'
        )
    )

    with pytest.raises(CourseError, match=r"write on=\['out'\], not on='out'"):
        load_grading(mini, "03_mini")


def test_the_stock_route_asks_for_the_gpu_to_be_hidden() -> None:
    with (
        mock.patch.object(torch.cuda, "is_available", return_value=True),
        pytest.raises(CourseError, match="CUDA_VISIBLE_DEVICES to nothing"),
    ):
        grade("03_mini", "double", {})
