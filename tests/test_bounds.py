"""Each step of what the grader does for one submission has a bound that is kept from
outside of it: one that spins, waits or swells there costs that submission alone."""

from __future__ import annotations

import dataclasses
import importlib
import os
import socket
import time
from collections.abc import Callable, Iterator

import nbformat
import pytest
import torch

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course
from course_grader.grading import watched
from course_grader.grading.submission import Prepared, prepare
from course_grader.judge.report import SubmissionReport, Verdict
from course_grader.judge.warming import WarmProcess

KEY = ("03_mini", 4)
WRONG = {
    "double": "import sys\nsys._getframe()\ndef double(x, times=1):\n"
    "    return x.mul_(2)\n",
    "mean": "def mean(x):\n    print('hello')\n    return float(x.sum())\n",
}
RIGHT = {
    "double": "def double(x, times=1):\n    if times < 0:\n"
    "        raise ValueError\n    return x * 2**times\n",
    "mean": "def mean(x):\n    return float(x.mean())\n",
}
JUDGING = (
    "grading.submission.repair",
    "kernel.plain.decode",
    "judge.judging.complaint_of",  # comparing and rules
    "judge.judging.failing_case",
    "judge.kernels._outputs",  # receiving
    "kernel.channel.Channel.send_frames",
)
AFTER = (
    "grading.submission.reaches",
    "grading.submission.write_scores",
    "grading.watched.page",  # highlighting
    "grading.watched.sanitise",
)
HERE = os.getpid()


def spins(*_: object, **__: object) -> None:
    while True:
        pass


def waits(*_: object, **__: object) -> None:
    while True:
        time.sleep(60)


def swells(*_: object, **__: object) -> None:
    held = []
    while True:
        held.append(bytearray(20_000_000))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    from mini_course import write_mini

    return write_mini(tmp_path_factory.mktemp("bounds"))


@pytest.fixture(scope="module")
def chapter(course: Course, warm: WarmProcess) -> Prepared:
    torch.set_num_threads(1)  # forks have no others
    made = prepare(course, warm, *KEY)
    made.work_out()
    return made


@pytest.fixture
def grade(
    course: Course, warm: WarmProcess, chapter: Prepared
) -> Iterator[Callable[..., SubmissionReport]]:
    """Grades answers; the grader may take so much of either time."""
    mine, theirs = socket.socketpair()
    grading, _, released = build_chapter(course, KEY[0])
    watch = watched.Watch(theirs, warm, {KEY: chapter})

    def grade(
        cells: dict[str, str], page_for: str | None, **limits: float
    ) -> SubmissionReport:
        text = nbformat.writes(answered(grading, released, cells))
        with pytest.MonkeyPatch.context() as patch:
            less = dataclasses.replace(warm.limits, **limits)
            patch.setattr(warm, "limits", less)
            report, shown = watch.grade(KEY, text.encode(), False, page_for)
            watch.close()
        assert shown
        return report

    yield grade
    mine.close()
    theirs.close()


def put(
    monkeypatch: pytest.MonkeyPatch, step: str, instead: Callable[..., object]
) -> None:
    """Lets a step do something else, in whatever is forked from here."""
    *modules, name = f"course_grader.{step}".split(".")
    owner: object
    try:
        owner = importlib.import_module(".".join(modules))
    except ModuleNotFoundError:
        owner = importlib.import_module(".".join(modules[:-1]))
        owner = getattr(owner, modules[-1])
    real = getattr(owner, name)

    def step_of(*given: object, **named: object) -> object:
        here = os.getpid() == HERE
        return (real if here else instead)(*given, **named)

    monkeypatch.setattr(owner, name, step_of)


TRIED = [
    *((step, spins, 60.0) for step in (*JUDGING, *AFTER)),
    *((step, waits, 1.0) for step in JUDGING[:3]),
    *((step, swells, 60.0) for step in JUDGING[:3]),
]


@pytest.mark.parametrize(("step", "instead", "submission_s"), TRIED)
def test_a_step_that_does_not_end_is_ended(
    grade: Callable[..., SubmissionReport],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    instead: Callable[..., object],
    submission_s: float,
) -> None:
    page_for = None if step.endswith("sanitise") else "mallory"
    monkeypatch.setattr(watched, "SHOW_S", 1)
    with monkeypatch.context() as patch:
        put(patch, step, instead)
        report = grade(
            WRONG,
            page_for,
            submission_s=submission_s,
            grader_cpu_s=1,
            grader_bytes=400_000_000,
        )

    # every exercise has a verdict; what was judged by then counts
    assert [one.exercise for one in report.exercises] == ["double", "mean"]
    verdicts = {one.verdict for one in report.exercises[-1].checks}
    if instead is swells:
        assert verdicts == {Verdict.OUT_OF_MEMORY}
    elif instead is spins and step in AFTER:
        assert verdicts == {Verdict.FAILED}
    elif step in JUDGING:
        assert verdicts == {Verdict.TIMED_OUT}

    honest = grade(RIGHT, page_for)
    assert honest.points == honest.max_points == 5
