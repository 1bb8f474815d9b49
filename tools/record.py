"""`make record`: runs every chapter here and records its figures.

    .venv/bin/python tools/record.py [CHAPTER ...]

The figures go to src/course_utils/data/cpu or data/cuda, each with device, date
and versions, and stand beside the learner's own from then on. On a machine with a
GPU the answer banks then run with the GPU let into the sandbox, and every answer
that is not judged as it must be is named.

Run it on a machine that does nothing else: step times are wall-clock times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from course_grader.chapter.grading import load_grading
from course_grader.course import Course, find_course
from course_grader.judge import sandbox
from course_grader.judge.trial import try_bank
from course_grader.judge.warming import WarmProcess

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
        try_banks(course, names)
    if failed:
        sys.exit(f"Not recorded: {', '.join(failed)}.")


def try_banks(course: Course, names: list[str]) -> None:
    """Runs the answer banks with a GPU and says what differs."""
    limits = replace(course.limits, gpu=True)
    with WarmProcess(limits, sandbox.missing() is None) as warm:
        for name in names:
            trials = list(try_bank(warm, load_grading(course, name), (1,)))
            differ = [one for one in trials if one.complaints]
            print(f"{name}: {len(trials)} answers, {len(differ)} differ")
            for one in differ:
                what = "; ".join(one.complaints)
                print(f"    {one.answer.exercise} {one.answer.name}: {what}")


if __name__ == "__main__":
    main()
