"""Graders are themselves tested: every answer of every bank gets what it must.

Right answers of every kind get full marks; each wrong one loses the check it
breaks and hears why; both judges agree.

On one seed, every `make test` runs right answers as learners' work is run, and wrong
ones as far as it takes to lose what they break: of those that `course try` has seen
get what they must as they are now every 24th right one and every 48th wrong one,
at least one of each, and all others. In one exercise of each
chapter both judges see a right and a wrong one. One exercise, and in `make test-all`
every one on five seeds, runs whole: then what each wrong answer hears is compared
with the whole bank's behaviour, and both judges see everything.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from test_properties import PROPERTY

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading, load_grading
from course_grader.chapter.source import read_chapter
from course_grader.checks import (
    Check,
    Result,
    Rule,
    leaves_rng_alone,
    leaves_state_alone,
)
from course_grader.course import Course
from course_grader.judge.compare import Tolerance, difference
from course_grader.judge.judging import Expectations, left_to_run, losses
from course_grader.judge.misconceptions import (
    Misconceptions,
    RunAnswer,
    Steps,
)
from course_grader.judge.reference import (
    PreparedKernels,
    bank_process,
    prepared_kernel,
    reference_expectations,
)
from course_grader.judge.signatures import (
    exercise_text,
    read_signatures,
    signatures_file,
)
from course_grader.judge.trial import (
    Trial,
    behave_alike,
    refused_by_visible_checks,
    replayed_checks,
    try_bank,
    unbroken,
)
from course_grader.judge.warming import WarmProcess
from course_grader.kernel import plain

COURSE = Course(Path(__file__).resolve().parent.parent)
EXERCISES = [
    (chapter, exercise.id)
    for chapter in COURSE.chapters()
    for exercise in read_chapter(COURSE.source_of(chapter)).exercises
]
ALWAYS_WHOLE = ("03_one_hot_and_losses", "class_mse")
FIRST = dict(reversed(EXERCISES))
"""The exercise of each chapter in which both judges are compared, and recorded
answers played back, in every `make test`."""
FEW = 2
EVERY_RIGHT, EVERY_WRONG = 24, 48
"""Of answers that `course try` has seen, every so many run again."""
WHOLE = [
    pytest.param(
        chapter,
        exercise,
        seed,
        marks=[]
        if seed == 1 and (chapter, exercise) == ALWAYS_WHOLE
        else pytest.mark.slow,
    )
    for chapter, exercise in EXERCISES
    for seed in (1, 2, 3, 4, 5)
]


@functools.cache
def grading_of(chapter: str) -> Grading:
    return load_grading(COURSE, chapter)


@pytest.fixture(scope="module")
def patient() -> WarmProcess:
    """A warm process with the course's own limits."""
    with WarmProcess(COURSE.limits) as process:
        yield process


def machinery() -> str:
    """A digest of what judges: our packages, these tests, Python and torch."""
    digest = hashlib.sha256(f"{sys.version} {torch.__version__}".encode())
    for path in [*sorted((COURSE.root / "src").rglob("*.py")), Path(__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.fixture
def passed_before(
    request: pytest.FixtureRequest, chapter: str, exercise: str
) -> Iterator[bool]:
    """Whether the test has passed here with the same judge and the same texts of
    the exercise. What that was is noted when it passes, so that nothing is run
    twice for nothing; a fresh clone has no notes."""
    cache = request.config.cache
    assert cache is not None
    grading = grading_of(chapter)
    texts = [machinery(), exercise_text(grading, exercise)]
    for answer in grading.answers_of(exercise):
        texts += [repr(answer), grading.answer_cell(answer)]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    test = request.node.originalname
    key = f"answer_bank/{test}/{chapter}/{exercise}"
    failed = request.session.testsfailed
    before = cache.get(key, None) == digest
    yield before
    if not before and request.session.testsfailed == failed:
        cache.set(key, digest)


def complaints(trials: Sequence[Trial]) -> str:
    return "\n".join(
        f"{one.answer.name} {complaint}"
        for one in trials
        for complaint in one.complaints
    )


@pytest.mark.parametrize("chapter", COURSE.chapters())
def test_visible_checks_accept_every_right_answer(
    patient: WarmProcess, chapter: str
) -> None:
    grading = grading_of(chapter)
    answers = [
        answer
        for one in grading.chapter.exercises
        for answer in grading.answers_of(one.id)
    ]
    assert not refused_by_visible_checks(patient, grading, answers)


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_right_answers_get_full_marks_and_wrong_ones_lose_what_they_break(
    patient: WarmProcess, chapter: str, exercise: str, passed_before: bool
) -> None:
    if passed_before:
        return
    grading = grading_of(chapter)
    answers = grading.answers_of(exercise)
    right = [one for one in answers if one.right]
    wrong = [one for one in answers if not (one.right or one.ends_process)]
    by_both = [right[0], wrong[0]] if exercise == FIRST[chapter] else []
    seen = read_signatures(signatures_file(COURSE, chapter), grading, exercise)
    checks = [one.name for one in grading.checks_of(exercise)]
    left_out = set()
    for some, every in ((right, EVERY_RIGHT), (wrong, EVERY_WRONG)):
        known = [
            one.name
            for one in some
            if one not in by_both and as_it_must(one, seen, checks)
        ]
        del known[::every]
        left_out.update(known)

    expected = reference_expectations(patient, grading, 1, [exercise])
    before = written(expected)
    trials = list(
        try_bank(
            patient,
            grading,
            [1],
            [exercise],
            known=[expected],
            among=lambda answer: (
                answer in by_both
                or (answer.right and answer.name not in left_out)
            ),
            in_process=lambda answer: answer in by_both,
        )
    )
    passed = list(
        unbroken(
            patient,
            grading,
            expected,
            exercise,
            among=lambda answer: answer.name not in left_out,
        )
    )

    ran = {one.answer.name for one in trials}
    assert {one.name for one in [*right, *by_both]} - left_out <= ran
    assert not complaints(trials)
    assert not passed, "\n".join(
        f"{answer.name} is wrong but passed {name}" for answer, name in passed
    )
    # the next submission is judged by the same objects
    assert written(expected) == before, "a rule changes what it judges"


def written(expected: Expectations) -> list[object]:
    """Cases and the reference's results, as bytes."""
    return [
        *map(plain.encode, expected.cases.values()),
        *(plain.encode(one.data) for one in expected.reference.values()),
    ]


def as_it_must(
    answer: Answer, seen: Mapping[str, str], checks: Sequence[str]
) -> bool:
    """Whether `course try` has seen the answer, as it is now, get what it must."""
    if answer.name not in seen:
        return False
    if answer.right:
        return set(seen[answer.name]) == {"."}
    return set(answer.breaks) <= lost_in(seen[answer.name], checks)


def lost_in(signature: str, checks: Sequence[str]) -> set[str]:
    """The checks that an answer with the signature has lost."""
    return {
        name
        for name, letter in zip(checks, signature, strict=True)
        if letter in "ef"
    }


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_every_check_is_lost_by_somebody(chapter: str, exercise: str) -> None:
    grading = grading_of(chapter)
    lost = {
        name
        for answer in grading.answers_of(exercise)
        for name in answer.breaks
    }
    checks = [one.name for one in grading.checks_of(exercise)]
    signatures = read_signatures(
        signatures_file(COURSE, chapter), grading, exercise
    )
    for signature in signatures.values():
        lost |= lost_in(signature, checks)

    assert lost == set(checks)


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_wrong_answers_that_lose_the_same_checks_are_told_apart(
    patient: WarmProcess, chapter: str, exercise: str, passed_before: bool
) -> None:
    """Two that behave alike would leave both learners without a word. Each runs as
    far as a submission with its signature lets it run; those for which that is more
    than FEW checks run whole, in `make test-all`."""
    if passed_before:
        return
    grading = grading_of(chapter)
    signatures = read_signatures(
        signatures_file(COURSE, chapter), grading, exercise
    )
    groups: dict[str, list[Answer]] = {}
    for answer in grading.answers_of(exercise):
        if not answer.right and answer.name in signatures:
            groups.setdefault(signatures[answer.name], []).append(answer)
    groups = {
        signature: answers
        for signature, answers in groups.items()
        if len({one.tells for one in answers}) > 1
        and 0 < len(left_to_run(grading.checks_of(exercise), signature)) <= FEW
    }
    if not groups:
        return
    expected = reference_expectations(patient, grading, 1, [exercise])
    with PreparedKernels(patient, grading) as kernels:
        for signature, answers in groups.items():
            left = left_to_run(grading.checks_of(exercise), signature)
            behaviours = {}
            for answer in answers:
                with bank_process(kernels, grading, expected) as run:
                    behaviours[answer.name] = {
                        key: result
                        for key, result in run(answer, left)
                        if result is not None
                    }
            for one, other in itertools.combinations(answers, 2):
                assert one.tells == other.tells or not behave_alike(
                    grading,
                    behaviours[one.name],
                    behaviours[other.name],
                    expected.reference,
                ), f"{one.name} and {other.name} behave alike"


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_signatures_are_fresh(chapter: str, exercise: str) -> None:
    """With stale ones all wrong answers run when work is graded: a class of 40 took
    88 s and not 54 in chapter 09, and nothing said so."""
    pinned = (COURSE.root / "constraints.txt").read_text().split()
    if f"torch=={torch.__version__.partition('+')[0]}" not in pinned:
        pytest.skip("signatures hold for the torch of the constraints")
    grading = grading_of(chapter)
    held = read_signatures(signatures_file(COURSE, chapter), grading, exercise)

    stale = [
        one.name
        for one in grading.answers_of(exercise)
        if not one.ends_process and one.name not in held
    ]

    assert not stale, (
        f"`course try {chapter[:2]} {exercise}` writes what these lose: "
        f"{', '.join(stale)}"
    )


@pytest.mark.parametrize(("chapter", "exercise", "seed"), WHOLE)
def test_every_answer_gets_what_it_must(
    patient: WarmProcess, chapter: str, exercise: str, seed: int
) -> None:
    grading = grading_of(chapter)
    expected = reference_expectations(patient, grading, seed, [exercise])
    trials = list(
        try_bank(
            patient,
            grading,
            [seed],
            [exercise],
            in_process=lambda answer: True,
            known=[expected],
        )
    )

    assert not complaints(trials)
    assert len(trials) == len(grading.answers_of(exercise))
    lost = {
        check.name
        for one in trials
        if not one.answer.right
        for check in one.report.checks
        if check.points == 0
    }
    assert lost == {one.name for one in grading.checks_of(exercise)}
    told = told_from_signatures(grading, trials, expected.reference)
    assert told == told_by_all(grading, trials, expected.reference)


def told_by_all(
    grading: Grading,
    trials: Sequence[Trial],
    reference: Mapping[tuple[str, int], Result],
) -> dict[str, str]:
    """What each wrong answer hears, by the behaviour of the whole bank."""
    ran = [one for one in trials if one.behaviour is not None]
    told = {}
    for one in ran:
        tells = {
            other.answer.tells
            for other in ran
            if behave_alike(grading, one.behaviour, other.behaviour, reference)
        }
        told[one.answer.name] = tells.pop() if len(tells) == 1 else ""
    return told


def told_from_signatures(
    grading: Grading,
    trials: Sequence[Trial],
    reference: Mapping[tuple[str, int], Result],
) -> dict[str, str]:
    """What each wrong answer hears when it is handed in."""
    ran = {one.answer.name: one for one in trials if one.behaviour is not None}

    @contextmanager
    def bank() -> Iterator[RunAnswer]:
        def run(answer: Answer, checks: Sequence[Check]) -> Steps:
            one = ran.get(answer.name)
            if one is None:
                yield ("", 0), None
            else:
                names = {check.name for check in checks}
                for key, result in one.behaviour.items():
                    if key[0] in names:
                        yield key, result

        yield run

    file = signatures_file(COURSE, grading.chapter.name)
    misconceptions = Misconceptions(
        grading,
        functools.partial(read_signatures, file, grading),
        bank,
        reference,
    )
    return {
        name: misconceptions.recognise(
            one.answer.exercise, one.behaviour, losses(one.report.checks)
        )
        for name, one in ran.items()
    }


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_banks_are_large_enough(chapter: str, exercise: str) -> None:
    answers = grading_of(chapter).answers_of(exercise)

    right = sum(one.right for one in answers)
    wrong = len(answers) - right
    assert (right >= 5, wrong >= 10) == (True, True), (
        f"autograde/{chapter}/answers/{exercise}.py has {right} right and {wrong} "
        "wrong answers: write at least 5 and 10, docs/authors.md"
    )


# Where the seeds or the settings are the exercise itself, and where no code of
# the learner's runs on tensors.
OF_THEIR_OWN = {
    (leaves_rng_alone, "set_seed"),
    (leaves_rng_alone, "make_loader"),  # compares what is drawn afterwards
    (leaves_rng_alone, "make_loaders"),  # a loader may draw its base seed
    (leaves_rng_alone, "fitting_loader"),
    (leaves_rng_alone, "train"),  # compares what is drawn afterwards
    (leaves_rng_alone, "trainable_report"),  # the learner's class draws weights
    (leaves_rng_alone, "partly_frozen"),  # the learner's class draws weights
    *itertools.product(  # their probes make models
        [leaves_rng_alone],
        (
            "graph_of",
            "without_batch_norm",
            "load_across_versions",
            "best_weights",
        ),
    ),
    *itertools.product(  # their probes run what draws
        [leaves_rng_alone], ("set_up", "train_step")
    ),
    (leaves_rng_alone, "fit"),
    (leaves_state_alone, "reproducible"),
    *itertools.product(
        (leaves_rng_alone, leaves_state_alone),
        ("quiz", "choose_gpus", "know_your_gpus"),
    ),
}


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
@pytest.mark.parametrize("rule", [leaves_rng_alone, leaves_state_alone])
def test_a_seed_or_a_setting_that_is_left_behind_is_seen(
    chapter: str, exercise: str, rule: Rule
) -> None:
    checks = grading_of(chapter).checks_of(exercise)

    seen = any(rule in one.also for one in checks)
    assert seen or (rule, exercise) in OF_THEIR_OWN, (
        f"no check of {exercise} in autograde/{chapter}/hidden_tests.py has "
        f"{rule.__name__} in its also=[...]: write it there, or "
        f"({rule.__name__}, {exercise!r}) into OF_THEIR_OWN with the reason"
    )


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_answers_recorded_on_one_seed_pass_on_no_other(
    request: pytest.FixtureRequest,
    patient: WarmProcess,
    chapter: str,
    exercise: str,
) -> None:
    """But for checks of a property, for which any numbers of the right form do.
    `make test` looks at the first exercise of each chapter, and at those that differ
    from what `course try` has seen."""
    grading = grading_of(chapter)
    seen = read_signatures(signatures_file(COURSE, chapter), grading, exercise)
    if (
        exercise != FIRST[chapter]
        and "not slow" in request.config.option.markexpr
        and all(
            one.name in seen or one.ends_process
            for one in grading.answers_of(exercise)
        )
    ):
        return
    recorded = reference_expectations(patient, grading, 1, [exercise])
    expected = reference_expectations(patient, grading, 2, [exercise])

    passed = replayed_checks(grading, recorded, expected)
    assert [one for one in passed if not PROPERTY.search(one)] == []
    # and it can tell: on its own seed every check passes
    assert set(replayed_checks(grading, recorded, recorded)) == {
        one.name for one in grading.checks_of(exercise)
    }


def test_the_reference_goes_on_as_a_run_that_was_never_stopped(
    patient: WarmProcess,
) -> None:
    """12 `train` compares with what the reference gives."""
    grading = grading_of("12_checkpoints")
    expected = reference_expectations(patient, grading, 1, ["train"])
    with (
        prepared_kernel(patient, grading) as kernel,
        kernel.probing(grading.probes_source) as probing,
    ):
        for (name, number), resumed in expected.reference.items():
            case = expected.cases[name][number]
            if "perturb" in case:
                continue
            (whole,) = probing.probe_all("never_stopped", [case], 20)
            assert whole.result is not None
            there, here = whole.result.data, resumed.data
            steps_here = len(here["batches"])
            for one in ("rates", "scales", "draws", "batches"):
                there[one] = there[one][len(there[one]) - steps_here :]
            there["steps"] = steps_here
            if not steps_here:  # nobody has seen its scaler
                there["scaler"] = None
            as_there = {one: here[one] for one in there}
            assert difference(there, as_there, Tolerance(0, 0)) is None, name
