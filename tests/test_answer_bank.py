"""Graders are themselves tested: every answer of every bank gets what it must.

Right answers of every kind get full marks; each wrong one loses the check it
breaks and hears why; both judges agree. Over five seeds, of which one runs in
every `make test` and the others in `make test-all`: an answer costs tens of
milliseconds to a second, and there are hundreds.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from course_grader.chapter.grading import Grading, load_grading
from course_grader.chapter.source import read_chapter
from course_grader.course import Course
from course_grader.judge.reference import reference_expectations
from course_grader.judge.trial import replayed_checks, try_bank
from course_grader.judge.warming import WarmProcess

COURSE = Course(Path(__file__).resolve().parent.parent)
SEEDS = [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4, 5))]
EXERCISES = [
    (chapter, exercise.id)
    for chapter in COURSE.chapters()
    for exercise in read_chapter(COURSE.source_of(chapter)).exercises
]


@functools.cache
def grading_of(chapter: str) -> Grading:
    return load_grading(COURSE, chapter)


@pytest.fixture(scope="module")
def patient() -> WarmProcess:
    """A warm process with the course's own limits."""
    with WarmProcess(COURSE.limits) as process:
        yield process


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_every_answer_gets_what_it_must(
    patient: WarmProcess, chapter: str, exercise: str, seed: int
) -> None:
    grading = grading_of(chapter)
    trials = list(
        try_bank(patient, grading, [seed], [exercise], both_judges=True)
    )

    complaints = [
        f"{one.answer.name} {complaint}"
        for one in trials
        for complaint in one.complaints
    ]
    assert not complaints, "\n".join(complaints)
    assert len(trials) == len(grading.answers_of(exercise))
    lost = {
        check.name
        for one in trials
        if not one.answer.right
        for check in one.report.checks
        if check.points == 0
    }
    assert lost == {one.name for one in grading.checks_of(exercise)}


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_banks_are_large_enough(chapter: str, exercise: str) -> None:
    answers = grading_of(chapter).answers_of(exercise)

    assert sum(one.right for one in answers) >= 5
    assert sum(not one.right for one in answers) >= 10


@pytest.mark.parametrize("chapter", COURSE.chapters())
def test_answers_recorded_on_one_seed_pass_on_no_other(
    patient: WarmProcess, chapter: str
) -> None:
    grading = grading_of(chapter)
    recorded = reference_expectations(patient, grading, 1)
    expected = reference_expectations(patient, grading, 2)

    assert replayed_checks(grading, recorded, expected) == []
    # and it can tell: on its own seed every check passes
    assert set(replayed_checks(grading, recorded, recorded)) == {
        one.name for one in grading.checks
    }
