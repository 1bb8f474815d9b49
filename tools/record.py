"""`make record`: runs every chapter here and records its figures.

    .venv/bin/python tools/record.py [CHAPTER ...]

The figures go to src/course_utils/data/cpu or data/cuda, each with device, date
and versions, and stand beside the learner's own from then on.

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

from course_grader.course import find_course

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
    if failed:
        sys.exit(f"Not recorded: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
