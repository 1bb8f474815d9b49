"""Bounds of the grader's own work on one submission, kept from outside of it: what
breaks, hangs or swells there costs that submission alone, and what was judged by
then counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from mini_course import write_mini

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course
from course_grader.grading.process import GradingProcess
from course_grader.judge import sandbox
from course_grader.judge.report import SubmissionReport, Verdict

pytestmark = pytest.mark.skipif(
    sandbox.missing() is not None, reason="no sandbox on this machine"
)

RULES = '''

import os

from course_grader.checks import check

held = []


def odd(case, seen, expected):
    """Stands for a judge that some answer makes busy, large or broken."""
    match seen.data:
        case "busy":
            while True:
                pass
        case "large":
            while True:
                held.append(bytearray(50_000_000))
        case "gone":
            os._exit(3)
        case "crash":
            os.abort()
        case "quit":
            raise SystemExit
    return None if abs(seen.data - expected.data) < 1e-5 else "It is wrong."


@check("mean", probe=probes.average, says="an odd rule", rule=odd)
def odd_average(draw):
    return [{"x": draw.normal(7)}]
'''
RIGHT = {
    "double": "def double(x, times=1):\n"
    "    if times < 0:\n        raise ValueError\n"
    "    return x * 2**times\n",
    "mean": "def mean(x):\n    return float(x.mean())\n",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = write_mini(tmp_path_factory.mktemp("watched"))
    tests = course.autograde / "03_mini" / "hidden_tests.py"
    tests.write_text(tests.read_text() + RULES)
    settings = course.settings_file
    settings.write_text(
        settings.read_text()
        + "submission_s = 20\ngrader_cpu_s = 3\ngrader_bytes = 1_000_000_000\n"
    )
    return Course(course.root)


@pytest.fixture(scope="module")
def process(course: Course) -> Iterator[GradingProcess]:
    with GradingProcess(course) as process:
        process.prepare("03_mini", 5)
        yield process


def submitted(course: Course, **cells: str) -> bytes:
    grading, _, released = build_chapter(course, "03_mini")
    text: str = nbformat.writes(answered(grading, released, RIGHT | cells))
    return text.encode()


def points(report: SubmissionReport) -> dict[str, float]:
    return {one.exercise: one.points for one in report.exercises}


@pytest.mark.parametrize(
    ("answer", "verdict", "word"),
    [
        ("busy", Verdict.TIMED_OUT, "processor time"),
        ("large", Verdict.OUT_OF_MEMORY, "memory"),
        ("gone", Verdict.ERROR, "grader itself broke"),
        ("crash", Verdict.ERROR, "grader itself broke"),
        ("quit", Verdict.ERROR, "grader itself broke"),
    ],
)
@pytest.mark.parametrize("page_for", [None, "mallory"])
def test_a_judge_that_does_not_come_back_costs_one_exercise(
    course: Course,
    process: GradingProcess,
    answer: str,
    verdict: Verdict,
    word: str,
    page_for: str | None,
) -> None:
    work = submitted(course, mean=f"def mean(x):\n    return {answer!r}\n")

    report, shown = process.grade("03_mini", 5, work, page_for=page_for)
    honest, _ = process.grade("03_mini", 5, submitted(course))

    assert points(report) == {"double": 3, "mean": 0}
    checks = report.exercises[1].checks
    assert {one.verdict for one in checks} == {verdict}
    assert all(word in one.message for one in checks)
    assert all(one.message.endswith(".") for one in checks)
    # what the learner wrote is shown all the same
    assert repr(answer).strip("'") in shown
    assert points(honest) == {"double": 3, "mean": 2}
    assert honest.needs_human == ()


def test_somebody_is_told_of_what_the_grader_broke_on(
    course: Course, process: GradingProcess
) -> None:
    work = submitted(course, mean="def mean(x):\n    return 'gone'\n")

    report, _ = process.grade("03_mini", 5, work)

    assert len(report.needs_human) == 1
    assert "not graded to its end" in report.needs_human[0]


def test_a_repair_that_breaks_leaves_the_exercises(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from course_grader.grading import repair

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(repair, "match", broken)
    released = build_chapter(course, "03_mini")[2]

    repaired = repair.repair(submitted(course), released)

    assert repaired.notebook is not None
    sources = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in repaired.notebook.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    assert {key: sources[key] for key in RIGHT} == RIGHT
    assert "ZeroDivisionError" in repaired.needs_human[0]


def test_a_page_that_breaks_leaves_the_marks(
    course: Course, process: GradingProcess
) -> None:
    """Half a character in the name breaks no page; a report without notebook
    makes one, too."""
    report, shown = process.grade(
        "03_mini", 5, submitted(course), page_for="z\udce9"
    )

    assert points(report) == {"double": 3, "mean": 2}
    assert "2 of 2" in shown or "5 of 5" in shown or "solved" in shown


def test_whoever_hangs_up_ends_the_work(course: Course) -> None:
    """A coordinator that is killed leaves nothing running."""
    slow = "import time\ntime.sleep(15)\n" + RIGHT["double"]
    with GradingProcess(course) as process:
        process.prepare("03_mini", 5)
        worker = process.fork("03_mini", 5)
        worker.channel.send(
            {
                "op": "grade",
                "chapter": "03_mini",
                "seed": 5,
                "all_cells": False,
                "page_for": None,
            },
            submitted(course, double=slow),
        )
        worker.close()
        # another one is at work at once, and the first process ends in time
        report, _ = process.fork("03_mini", 5).grade(
            "03_mini", 5, submitted(course)
        )
    assert points(report) == {"double": 3, "mean": 2}
    assert process.process.returncode == 0


def test_reaching_for_the_grader_is_shown_and_costs_nothing(
    course: Course, process: GradingProcess
) -> None:
    """The forged effect is found by judging once more without those lines."""
    forged = (
        "def double(x, times=1):\n"
        "    if times < 0:\n        raise ValueError\n"
        "    return x.mul_(2**times)\n"
        "from course_grader.kernel import serve\n"
        "real = serve.run_probe\n"
        "def probe(*given):\n"
        "    record = real(*given)\n"
        "    record['effects']['inputs_changed'] = []\n"
        "    return record\n"
        "serve.run_probe = probe\n"
    )

    report, _ = process.grade("03_mini", 5, submitted(course, double=forged))

    assert points(report) == {"double": 3, "mean": 2}
    told = "\n".join(report.needs_human)
    assert "line 5: `from course_grader.kernel import serve`" in told
    assert "4 points in place of 5" in told
    assert "Nothing was taken off." in told


def test_an_honest_line_is_not_taken_for_reaching(
    course: Course, process: GradingProcess
) -> None:
    honest = (
        "import gc, inspect, sys\n"
        "import torch\n"
        "from torch import nn\n"
        "gc.collect()\n"
        "print(inspect.signature(len), sys.version)\n"
        "torch.backends.cudnn.benchmark = False\n"
        "model = nn.Linear(2, 2)\n"
        "model.bias = None\n"
        "for module in model.modules():\n    module.eval()\n"
        "fast = torch.compile\n" + RIGHT["double"]
    )

    report, _ = process.grade("03_mini", 5, submitted(course, double=honest))

    assert points(report) == {"double": 3, "mean": 2}
    assert report.needs_human == ()


def test_reports_travel_whole(course: Course, process: GradingProcess) -> None:
    report, _ = process.grade("03_mini", 5, submitted(course))

    assert SubmissionReport.from_json(report.to_json()) == report
    assert dataclasses.replace(report, notes=("a",)) != report
