"""Recognising wrong answers: from signatures, as if the whole bank had run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading, load_grading
from course_grader.checks import Check
from course_grader.course import Course
from course_grader.judge.judging import (
    Behaviour,
    Expectations,
    losses,
    signature,
)
from course_grader.judge.misconceptions import (
    Misconceptions,
    RunAnswer,
    Steps,
)
from course_grader.judge.reference import reference_expectations
from course_grader.judge.signatures import (
    keep_signatures,
    read_signatures,
    signatures_file,
)
from course_grader.judge.trial import bank_behaviours, bank_reports
from course_grader.judge.warming import WarmProcess

CHAPTER = "03_mini"


class Bank:
    """Plays wrong answers' behaviours back and notes who was asked, how far."""

    def __init__(self, behaviours: dict[str, Behaviour]) -> None:
        self.behaviours = behaviours
        self.cases_run: dict[str, int] = {}

    @contextmanager
    def lend(self) -> Iterator[RunAnswer]:
        def run(answer: Answer, checks: Sequence[Check]) -> Steps:
            names = {one.name for one in checks}
            for key, result in self.behaviours[answer.name].items():
                if key[0] in names:
                    self.cases_run[answer.name] = (
                        self.cases_run.get(answer.name, 0) + 1
                    )
                    yield key, result

        yield run


@pytest.fixture
def ran(
    mini: Course, warm: WarmProcess
) -> tuple[Grading, Expectations, dict[str, Behaviour], dict[str, str]]:
    """The small course's bank: how its wrong answers behave, what they lose."""
    grading = load_grading(mini, CHAPTER)
    expected = reference_expectations(warm, grading, 1)
    behaviours = bank_behaviours(warm, grading, expected, grading.answers)
    reports = bank_reports(warm, grading, expected, grading.answers, behaviours)
    lost = {name: losses(reports[name].checks) for name in behaviours}
    return grading, expected, behaviours, lost


def test_losses_name_the_checks(ran: tuple) -> None:
    assert ran[3] == {
        "in_place": ".f.",
        "once": "f..",
        "never_refuses": "..f",
        "the_sum": "f",
    }


def test_only_answers_with_the_same_losses_run(ran: tuple) -> None:
    _, _, behaviours, lost = ran
    bank = Bank(behaviours)
    misconceptions = Misconceptions(
        ran[0], lambda _: lost, bank.lend, ran[1].reference
    )

    told = misconceptions.recognise("double", behaviours["once"], lost["once"])

    assert told == "You ignored times."
    assert list(bank.cases_run) == ["once"]


def test_where_the_seed_decides_of_a_check_the_answer_runs(ran: tuple) -> None:
    _, _, behaviours, lost = ran
    bank = Bank(behaviours)
    known = {**lost, "once": "?.?"}
    misconceptions = Misconceptions(
        ran[0], lambda _: known, bank.lend, ran[1].reference
    )

    told = misconceptions.recognise("double", behaviours["once"], lost["once"])

    assert told == "You ignored times."


def test_where_the_seed_decides_unforeseen_the_answer_runs_all_the_same(
    ran: tuple,
) -> None:
    _, _, behaviours, lost = ran
    bank = Bank(behaviours)
    known = {**lost, "once": "f.f", "in_place": "fff"}
    misconceptions = Misconceptions(
        ran[0], lambda _: known, bank.lend, ran[1].reference
    )

    told = misconceptions.recognise("double", behaviours["once"], lost["once"])

    assert told == "You ignored times."
    assert list(bank.cases_run) == ["once"]


def test_where_an_answer_does_what_the_reference_does_it_does_not_run(
    ran: tuple,
) -> None:
    _, expected, behaviours, lost = ran
    bank = Bank(behaviours)
    known = {**lost, "once": "f=."}
    misconceptions = Misconceptions(
        ran[0], lambda _: known, bank.lend, expected.reference
    )
    checks = ran[0].checks_of("double")
    cases = [len(expected.cases[one.name]) for one in checks]

    told = misconceptions.recognise("double", behaviours["once"], lost["once"])

    assert told == "You ignored times."
    # the third is passed by both, and only the submission passes as the reference
    assert bank.cases_run == {"once": cases[0] + cases[2]}


def test_what_both_pass_in_their_own_way_tells_different_texts_apart(
    ran: tuple,
) -> None:
    grading, expected, behaviours, lost = ran
    second = grading.checks_of("double")[1].name
    once, other = (
        next(one for one in grading.answers if one.name == name)
        for name in ("once", "in_place")
    )
    played = {
        "once": {
            key: replace(result, data=7) if key[0] == second else result
            for key, result in behaviours["once"].items()
        },
        "in_place": {
            key: replace(result, data=8) if key[0] == second else result
            for key, result in behaviours["once"].items()
        },
    }
    bank = Bank(played)

    def told(signatures: dict[str, str], seen: str) -> str:
        bank.cases_run.clear()
        return Misconceptions(
            grading, lambda _: signatures, bank.lend, expected.reference
        ).recognise("double", played[seen], lost["once"])

    alone = {"once": "f.=", "in_place": "=ff", "never_refuses": "==f"}
    both = {"once": "f.=", "in_place": "f.=", "never_refuses": "==f"}
    assert told(alone, "once") == once.tells
    (of_the_lost,) = bank.cases_run.values()
    assert told(both, "once") == once.tells
    assert told(both, "in_place") == other.tells
    assert bank.cases_run["in_place"] > of_the_lost


def test_who_passes_otherwise_than_the_reference_is_another(ran: tuple) -> None:
    _, expected, behaviours, lost = ran
    bank = Bank(behaviours)
    known = {**lost, "once": "f=."}
    misconceptions = Misconceptions(
        ran[0], lambda _: known, bank.lend, expected.reference
    )
    second = ran[0].checks_of("double")[1].name
    seen = {
        key: replace(result, data=None) if key[0] == second else result
        for key, result in behaviours["once"].items()
    }

    assert misconceptions.recognise("double", seen, lost["once"]) == ""
    assert bank.cases_run == {}


def test_a_signature_says_where_the_reference_does_the_same(ran: tuple) -> None:
    grading, expected, behaviours, lost = ran
    checks = grading.checks_of("double")

    written = {
        name: signature(
            checks, lost[name], behaviours[name], expected.reference
        )
        for name in ("in_place", "once", "never_refuses")
    }

    assert written == {"in_place": ".f.", "once": "f==", "never_refuses": "==f"}


def test_without_signatures_each_answer_runs_to_its_first_difference(
    ran: tuple,
) -> None:
    _, _, behaviours, lost = ran
    bank = Bank(behaviours)
    misconceptions = Misconceptions(
        ran[0], lambda _: {}, bank.lend, ran[1].reference
    )

    told = misconceptions.recognise("double", behaviours["once"], lost["once"])

    assert told == "You ignored times."
    whole = len(behaviours["once"])
    assert bank.cases_run["once"] == whole
    assert bank.cases_run["in_place"] < whole
    assert bank.cases_run["never_refuses"] < whole


def test_what_is_known_of_an_answer_runs_once(ran: tuple) -> None:
    _, _, behaviours, lost = ran
    bank = Bank(behaviours)
    misconceptions = Misconceptions(
        ran[0], lambda _: {}, bank.lend, ran[1].reference
    )
    for name in ("once", "in_place", "never_refuses"):
        misconceptions.recognise("double", behaviours[name], lost[name])
    bank.cases_run.clear()

    told = [
        misconceptions.recognise("double", behaviours[name], lost[name])
        for name in ("once", "in_place", "never_refuses")
    ]

    assert told == [
        "You ignored times.",
        "You changed x in place.",
        "You never refuse.",
    ]
    assert bank.cases_run == {}


def test_a_signature_holds_for_what_it_was_made_of(
    mini: Course, ran: tuple
) -> None:
    grading, _, _, lost = ran
    file = signatures_file(mini, CHAPTER)
    for exercise in ("double", "mean"):
        keep_signatures(
            file,
            grading,
            exercise,
            [
                (one, lost[one.name])
                for one in grading.answers_of(exercise)
                if not one.right
            ],
        )

    def still_held() -> set[str]:
        now = load_grading(mini, CHAPTER)
        return {
            name
            for exercise in ("double", "mean")
            for name in read_signatures(file, now, exercise)
        }

    def changes(path: Path, old: str, new: str) -> set[str]:
        """Which entries a change makes worthless."""
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        gone = set(lost) - still_held()
        path.write_text(text)
        return gone

    folder = mini.autograde / CHAPTER
    source = mini.source_of(CHAPTER)
    double = {"in_place", "once", "never_refuses"}

    assert still_held() == set(lost)
    assert changes(
        folder / "answers" / "double.diff", "return x + x", "return x + 2 * x"
    ) == {"once"}
    assert changes(folder / "hidden_tests.py", "normal(7)", "normal(8)") == {
        "the_sum"
    }
    assert (
        changes(folder / "hidden_tests.py", "normal(5)", "normal(6)") == double
    )
    assert (
        changes(folder / "probes.py", '{"out": double(', '{"o": double(')
        == double
    )
    assert (
        changes(source, "return x * 2**times", "return x * 4**times") == double
    )
    assert changes(source, "import torch\n", "import torch, math\n") == set(
        lost
    )
    # words and remarks decide nothing
    assert changes(folder / "probes.py", "\n\n", "\n\n# a remark\n") == set()
    assert changes(source, "Return the mean.", "Return its mean.") == set()


def test_what_two_seeds_give_is_kept_as_open(mini: Course, ran: tuple) -> None:
    grading = ran[0]
    file = signatures_file(mini, CHAPTER)
    (once,) = [one for one in grading.answers if one.name == "once"]

    keep_signatures(file, grading, "double", [(once, "f.==")])
    keep_signatures(file, grading, "double", [(once, "fe.=")])

    assert read_signatures(file, grading, "double") == {"once": "f?.="}

    # and when the checks have changed, too: one seed may not show it again
    tests = mini.autograde / CHAPTER / "hidden_tests.py"
    tests.write_text(tests.read_text().replace("normal(5)", "normal(6)", 1))
    changed = load_grading(mini, CHAPTER)
    assert read_signatures(file, changed, "double") == {}

    keep_signatures(file, changed, "double", [(once, "fe.=")])

    assert read_signatures(file, changed, "double") == {"once": "f?.="}
