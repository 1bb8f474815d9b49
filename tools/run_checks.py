"""Runs everything that CI runs and says which part took how long.

`make test` and `make test-all` call this with the Python of `.venv`. Every
part runs, whatever the others found; the exit code is pytest's where pytest
found something, else that of the first part that failed.

`make check` is the short form for a day's work: of all that, what belongs to the
files that differ from the last commit.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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

# What a change is most likely to break, of the quick tests: `make check` runs
# those beside the first entry that fits. A chapter's files have tests by its name.
BELONGS = (
    ("src/course_utils/", ["course_utils_*"]),
    ("src/course_exchange/", ["hub_share"]),
    ("src/course_home/", ["home", "feedback_pages"]),
    ("src/course_grader/bank.py", ["build", "misconceptions"]),
    ("src/course_grader/checks.py", ["judging"]),
    ("src/course_grader/cli.py", ["course_command"]),
    ("src/course_grader/commands/", ["course_command"]),
    ("src/course_grader/chapter/kit.py", ["kit"]),
    ("src/course_grader/chapter/edition.py", ["kit"]),
    ("src/course_grader/chapter/claims.py", ["claims"]),
    ("src/course_grader/chapter/statements.py", ["statements"]),
    ("src/course_grader/chapter/", ["build"]),
    ("src/course_grader/judge/written.py", ["failing_cases"]),
    ("src/course_grader/judge/patterns.py", ["failing_cases"]),
    ("src/course_grader/judge/failing.py", ["failing_cases"]),
    ("src/course_grader/judge/", ["judging", "kernels", "misconceptions"]),
    ("src/course_grader/lab/", ["lab"]),
    ("src/course_grader/kernel/", ["kernels", "plain"]),
    ("src/course_grader/grading/repair.py", ["repair"]),
    ("src/course_grader/grading/", ["folder"]),
    ("src/course_grader/classroom/collect_zip.py", ["collect_zip"]),
    ("src/course_grader/classroom/collect", ["collect_names", "collect_tree"]),
    ("src/course_grader/classroom/over_http.py", ["hub_share"]),
    ("src/course_grader/classroom/", ["gradebook", "folder"]),
    ("src/course_grader/feedback/", ["feedback_pages", "feedback_sanitise"]),
    ("deploy/share/", ["hub_share"]),
    ("deploy/kubernetes/", ["kubernetes"]),
    ("deploy/", ["hub"]),
    ("docs/claims.json", ["claims"]),
    ("pyproject.toml", ["environment"]),
    ("constraints.txt", ["environment"]),
    ("tools/site/", ["site"]),
    ("tools/release.py", ["release"]),
    ("tools/", ["environment"]),
)
# Before each sentence of a chapter that the installed torch shows to be false.
FALSE = "  no longer true:"
CHAPTER_FILE = re.compile(r"(solutions|autograde|notebooks)/(\d\d_\w+)/")
# Changes of an exercise's bank ask for this exercise alone.
BANK_FILE = re.compile(r"autograde/(\d\d_\w+)/answers/(\w+)\.(?:py|diff)")
BESIDE_BANKS = ("signatures.json", "equivalents.toml")


def run(command: list[str]) -> tuple[int, float]:
    """The exit code of a program of `.venv`, and the seconds it took."""
    print(f"\n$ {' '.join(command)}", flush=True)
    done, took = started(command)
    return done.returncode, took


def side_by_side(
    parts: list[tuple[str, list[str]]],
) -> Iterator[tuple[str, int, float]]:
    """Runs programs two at a time; each says what it has to say when it has ended,
    in order."""
    with ThreadPoolExecutor(2) as two:
        commands = [command for _, command in parts]
        ended = two.map(functools.partial(started, quiet=True), commands)
        for (part, command), (done, took) in zip(parts, ended, strict=True):
            print(f"\n$ {' '.join(command)}\n{done.stdout}", end="", flush=True)
            yield part, done.returncode, took


def started(
    command: list[str], quiet: bool = False
) -> tuple[subprocess.CompletedProcess[str], float]:
    """A program of `.venv` that has ended, and the seconds it took."""
    program, *arguments = command
    environment = os.environ | {
        # What the tests start by name comes from this .venv too.
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        # Each worker starts kernels of its own: with a thread per core in
        # every one of them they would only get in each other's way.
        "OMP_NUM_THREADS": "1",
    }
    begun = time.monotonic()
    done = subprocess.run(
        [BIN / program, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
    )
    return done, time.monotonic() - begun


def pytest_command(slow: bool, junit: Path) -> list[str]:
    """pytest, a worker more than there are cores: many tests wait for servers.
    At most four."""
    workers = min(4, (os.cpu_count() or 1) + 1)
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


def false_sentences(junit: Path) -> list[str]:
    """What the chapters say and a failed test or cell was to show."""
    if not junit.exists():
        return []
    cases = ET.parse(junit).iter("testcase")
    failed = [
        case
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    sentences = (
        one.get("value", "")
        for case in failed
        for one in case.iter("property")
        if one.get("name") == "says"
    )
    return list(dict.fromkeys(sentences))


def changed_files() -> list[str]:
    """Files that differ from the last commit, new ones included."""
    status = subprocess.run(
        ["git", "status", "--porcelain", "-z", "--untracked-files=all"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    entries = (one for one in status.split("\0") if one)
    return [one[3:] for one in entries if (ROOT / one[3:]).is_file()]


def checks_of(changed: list[str], junit: Path) -> list[tuple[str, list[str]]]:
    """What is to be run for changed files; empty if there is nothing."""
    python = [one for one in changed if one.endswith(".py")]
    chapters, banks, notebooks = set(), set(), set()
    for one in changed:
        if found := CHAPTER_FILE.match(one):
            room, chapter = found.groups()
            chapters.add(chapter)
            if bank := BANK_FILE.match(one):
                banks.add("-".join(bank.groups()))
            elif not one.endswith(BESIDE_BANKS):
                banks.add(f"{chapter}-")
            if room != "autograde":
                notebooks.add(chapter)
    names: set[str] = set()
    for one in changed:
        fitting = (tests for start, tests in BELONGS if one.startswith(start))
        names.update(next(fitting, []))
    tests = {
        one
        for one in changed
        if re.match(r"tests/(statements/)?test_\w+\.py", one)
    }
    for name in notebooks:
        statements = f"tests/statements/test_{name}.py"
        if (ROOT / statements).exists():
            tests.add(statements)
    for name in names:
        tests |= {
            path.relative_to(ROOT).as_posix()
            for path in ROOT.glob(f"tests/test_{name}.py")
        }
    parts: list[tuple[str, list[str]]] = []
    if python:
        parts.append(("ruff check", ["ruff", "check", *python]))
        parts.append(("ruff format", ["ruff", "format", "--check", *python]))
    if any(one.startswith("src/") for one in python):
        parts.append(("mypy", ["mypy"]))
    if chapters:
        build = ["course", "build", "--check", *sorted(chapters)]
        parts.append(("course build", build))
    pytest = pytest_command(False, junit)
    if tests:
        parts.append(("pytest", [*pytest, *sorted(tests)]))
    if banks:
        which = " or ".join(sorted(banks))
        trials = [*pytest, "tests/test_answer_bank.py", "-k", which]
        parts.append(("the chapters' banks", trials))
    if notebooks:
        once = f"untouched_notebook_runs and ({' or '.join(sorted(notebooks))})"
        runs = [*pytest, "tests/test_learner.py", "-k", once]
        parts.append(("the chapters' notebooks", runs))
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true", help="slow tests too")
    parser.add_argument(
        "--changed",
        action="store_true",
        help="what belongs to the files changed since the last commit",
    )
    arguments = parser.parse_args()

    rows: list[tuple[str, int, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "junit.xml"
        if arguments.changed:
            parts = checks_of(changed_files(), junit)
            if not parts:
                print("Nothing that is tested differs from the last commit.")
                return 0
        else:
            pytest = pytest_command(arguments.slow, junit)
            parts = [*CHECKS, ("pytest", pytest)]
        others = [one for one in parts if one[1][0] != "pytest"]
        rows += side_by_side(others)
        rows += [
            (part, *run(command))
            for part, command in parts
            if command[0] == "pytest"
        ]
        per_file = seconds_per_file(junit)
        false = false_sentences(junit)

    print("\nWhich part took how long")
    for part, code, took in rows:
        failed = "  failed" if code else ""
        print(f"  {took:7.1f} s  {part}{failed}")
    for name in sorted(per_file, key=per_file.__getitem__, reverse=True):
        print(f"  {per_file[name]:7.1f} s    {name}")
    if false:
        print("\nWhat the chapters say and this torch does not")
    for sentence in false:
        print(f"{FALSE} {sentence}")
    # pytest's exit code, the last, before the others'.
    return next((code for _, code, _ in [rows[-1], *rows] if code), 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
