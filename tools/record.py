"""`make record`: runs every chapter here and records its figures.

    .venv/bin/python tools/record.py [CHAPTER ...]

The figures go to src/course_utils/data/cpu or data/cuda, each with device, date
and versions, and stand beside the learner's own from then on. On a machine with a
GPU the right answers of the banks are then judged in a process that has used it, as
learners' visible checks are, and every one that loses something is named.

Run it on a machine that does nothing else: step times are wall-clock times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from course_grader.chapter.grading import load_grading
from course_grader.course import Course, find_course
from course_grader.judge.inprocess import (
    answer_namespace,
    judge_namespace,
    local_expectations,
)
from course_grader.judge.report import Verdict

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="*")
    wanted = parser.parse_args().chapters
    course = find_course(ROOT)
    names = [course.chapter(one) for one in wanted] or course.chapters()
    data = ROOT / "src" / "course_utils" / "data"
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    if busy > 0.5:
        print(
            f"This machine is busy ({busy:.1f} of it): step times will be too long."
        )
    failed = []
    for name in names:
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(course.source_of(name))],
            env={
                **os.environ,
                "COURSE_UTILS_RECORD": str(data),
                "MPLBACKEND": "agg",
            },
            capture_output=True,
            text=True,
        )
        took = time.perf_counter() - started
        if done.returncode:
            failed.append(name)
            print(f"{name}: does not run\n{done.stderr[-2000:]}")
        else:
            print(f"{name}: {took:.0f} s")
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"The figures are in {data / kind}.")
    if kind == "cuda":
        try_right_answers(course, names)
    if failed:
        sys.exit(f"Not recorded: {', '.join(failed)}.")


def try_right_answers(course: Course, names: list[str]) -> None:
    """Judges right answers where learners' visible checks run, in a process that has
    used the GPU, and says which lose something there."""
    torch.set_num_threads(1)  # as in the sandbox
    torch.ones(1, device="cuda")
    for name in names:
        grading = load_grading(course, name)
        right, lost = 0, []
        for exercise in grading.chapter.exercises:
            expected = local_expectations(grading, 1, exercise.id)
            for answer in grading.answers_of(exercise.id):
                if not answer.right:
                    continue
                right += 1
                namespace = answer_namespace(grading, answer)
                report = judge_namespace(
                    grading, exercise.id, namespace, expected
                )
                lost += [
                    f"{exercise.id} {answer.name}: {one.name}, {one.message}"
                    for one in report.checks
                    if one.verdict is not Verdict.PASSED
                ]
        print(f"{name}: {right} right answers, {len(lost)} checks lost")
        for one in lost:
            print(f"    {one}")


if __name__ == "__main__":
    main()
