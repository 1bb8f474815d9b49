"""Where the time of a right submission goes: what `course try --profile` shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from course_grader.chapter.grading import Grading
from course_grader.judge.judging import draw_cases, run_cells
from course_grader.judge.kernels import Kernel
from course_grader.judge.warming import WarmProcess


@dataclass(frozen=True)
class Cost:
    """What one part of grading a right submission cost.

    Attributes:
        exercise: its id; empty for what comes before the exercises.
        part: a check's name, or what was done in words.
        calls: of the check's probe.
        wall_s: as the judge waited for it.
        cpu_s: processor time of the process that answers probes.
        children_cpu_s: of those that it started and that have ended.
    """

    exercise: str
    part: str
    calls: int
    wall_s: float
    cpu_s: float = 0.0
    children_cpu_s: float = 0.0


def profile(warm: WarmProcess, grading: Grading, seed: int) -> Iterator[Cost]:
    """Runs the solutions as a submission and says what each part costs."""
    warm.import_rest(grading.large)
    cases = draw_cases(grading, seed)
    started = time.perf_counter()

    def lap() -> float:
        nonlocal started
        before, started = started, time.perf_counter()
        return started - before

    with Kernel(warm) as kernel:
        yield Cost("", "a room and a process in it", 0, lap())
        run_cells(kernel, grading.chapter.setup_source, grading.chapter.name)
        yield Cost("", "set-up cells", 0, lap())
        for exercise in grading.chapter.exercises:
            run_cells(
                kernel,
                [(exercise.id, exercise.source)],
                grading.chapter.name,
            )
            with kernel.probing(grading.probes_source) as probing:
                before = probing.cpu_seconds()
                yield Cost(
                    exercise.id, "its cell, a fork, the probes", 0, lap()
                )
                for check in grading.checks_of(exercise.id):
                    drawn = cases[check.name]
                    for _ in probing.probe_all(
                        check.probe, drawn, 4 * check.timeout_s
                    ):
                        pass
                    after = probing.cpu_seconds()
                    yield Cost(
                        exercise.id,
                        check.name,
                        len(drawn),
                        lap(),
                        after[0] - before[0],
                        after[1] - before[1],
                    )
                    before = after
                    lap()
