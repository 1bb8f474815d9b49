"""Runs everything that CI runs and says which part took how long.

`make test` and `make test-all` call this with the Python of `.venv`. Every
part runs, whatever the others found; the exit code is pytest's where pytest
found something, else that of the first part that failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

# The shortest first: a slip of the pen shows before the long part begins.
CHECKS = (
    ("ruff check", ["ruff", "check"]),
    ("ruff format", ["ruff", "format", "--check"]),
    ("mypy", ["mypy"]),
    ("course build", ["course", "build", "--check"]),
)


def run(command: list[str]) -> tuple[int, float]:
    """The exit code of a program of `.venv`, and the seconds it took."""
    print(f"\n$ {' '.join(command)}", flush=True)
    program, *arguments = command
    environment = os.environ | {
        # What the tests start by name comes from this .venv too.
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        # Each worker starts kernels of its own: with a thread per core in
        # every one of them they would only get in each other's way.
        "OMP_NUM_THREADS": "1",
    }
    started = time.monotonic()
    code = subprocess.run(
        [BIN / program, *arguments], cwd=ROOT, env=environment
    ).returncode
    return code, time.monotonic() - started


def pytest_command(slow: bool, junit: Path) -> list[str]:
    """pytest over as many workers as there are cores, at most four."""
    workers = min(4, os.cpu_count() or 1)
    command = ["pytest", f"--numprocesses={workers}", "--dist=worksteal"]
    command += ["--durations=15", "--durations-min=1"]
    command += [f"--junitxml={junit}", "--override-ini=junit_family=xunit1"]
    return command if slow else [*command, "-m", "not slow"]


def seconds_per_file(junit: Path) -> dict[str, float]:
    """Seconds that the tests of each file took, added up over the workers."""
    seconds: dict[str, float] = defaultdict(float)
    if junit.exists():
        for case in ET.parse(junit).iter("testcase"):
            name = case.get("file") or case.get("classname") or "?"
            seconds[name] += float(case.get("time", 0))
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true", help="slow tests too")
    slow = parser.parse_args().slow

    rows: list[tuple[str, int, float]] = []
    for part, command in CHECKS:
        rows.append((part, *run(command)))
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "junit.xml"
        rows.append(("pytest", *run(pytest_command(slow, junit))))
        per_file = seconds_per_file(junit)

    print("\nWhich part took how long")
    for part, code, took in rows:
        failed = "  failed" if code else ""
        print(f"  {took:7.1f} s  {part}{failed}")
    for name in sorted(per_file, key=per_file.__getitem__, reverse=True):
        print(f"  {per_file[name]:7.1f} s    {name}")
    # pytest's exit code, the last, before the others'.
    return next((code for _, code, _ in [rows[-1], *rows] if code), 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
