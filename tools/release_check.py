"""What is run once per release and not per change: every Python with one end of
torch's range or the pin between them, the oldest and the newest of all other
packages, then all slow tests.

Each Python on PATH (`python3.11`, ...) gets an environment of its own in
build/release/ and all that `make test` runs in it. `oldest` has of each package
that pyproject.toml names the version that it gives as its floor, `newest` what pip
finds without constraints.txt; both have the pinned torch and this Python. The slow
tests, Colab's package set, pages and widgets in a browser among them, run in
`.venv`. It takes hours, so parts can be named:
`python tools/release_check.py oldest slow`. What cannot be had on
this machine is named and is no failure. The sentences of the chapters that have become
false with a torch stand below its line.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from run_checks import FALSE

ROOT = Path(__file__).resolve().parent.parent
FOR_TESTS = ".[instructor,dev]"
ENDS = ("oldest", "newest")
# What the packages of others bear on: not the banks and the statements, which are
# torch's, and not the pins themselves.
NOT_FOR_ENDS = (
    "tests/statements",
    "tests/test_answer_bank.py",
    "tests/test_environment.py",
    "tests/test_mutation.py",
)


def floors() -> dict[str, str]:
    """The oldest version of each package that pyproject.toml allows; where extras
    differ, the newer. The tools of authors are not among them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    found: dict[str, str] = {}
    for line in project["dependencies"] + [
        line
        for name in sorted(extras)
        if name != "dev"
        for line in extras[name]
    ]:
        needed = Requirement(line)
        oldest = [one for one in needed.specifier if one.operator == ">="]
        if not oldest:
            sys.exit(f"pyproject.toml names no oldest {needed.name}.")
        found[canonicalize_name(needed.name)] = oldest[0].version
    return found


def pinned_torch() -> str:
    """The newest torch that the course was tested with."""
    constraints = (ROOT / "constraints.txt").read_text()
    found = re.search(r"^torch==([\d.]+)", constraints, re.MULTILINE)
    if found is None:
        sys.exit("constraints.txt pins no torch.")
    return found[1]


def environments() -> dict[str, str]:
    """Python versions and what pip is told of torch for each."""
    return {
        "3.11": f"torch=={floors()['torch']}.*",
        "3.12": f"torch=={pinned_torch()}",
        "3.13": f"torch>={pinned_torch()}",  # the newest there is
    }


def with_torch(torch: str) -> list[str]:
    """The pins of constraints.txt, but for torch."""
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    return [*(pin for pin in pins if not pin.startswith("torch==")), torch]


def constraints_of(end: str) -> list[str]:
    """What holds the packages at one end of what pyproject.toml allows: torch and
    the tools of authors are pinned."""
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, mark, pin = line.partition("==")
        if mark:
            pins[canonicalize_name(name)] = pin
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    tools = {canonicalize_name(Requirement(one).name) for one in extras["dev"]}
    oldest = floors()
    held = {name: pins[name] for name in (tools - set(oldest)) | {"torch"}}
    if end == "oldest":
        held = oldest | held
    return [f"{name}=={version}" for name, version in held.items()]


def environment(python: str, name: str, constraining: list[str]) -> Path | None:
    """The Python of a fresh environment; None if it cannot be made."""
    folder = ROOT / "build" / "release" / name
    mine = folder / "bin" / "python"
    made = subprocess.run([python, "-m", "venv", "--clear", folder])
    if made.returncode:
        return None
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(constraining) + "\n")
    pip = [mine, "-m", "pip", "install", "--quiet", "--constraint"]
    done = subprocess.run([*pip, constraints, "-e", FOR_TESTS], cwd=ROOT)
    return None if done.returncode else mine


def torch_of(python: Path) -> str:
    """The version of torch that a Python has."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def tested(python: Path) -> str:
    """Runs the tests that the packages of others bear on."""
    command = [python, "-m", "pytest", "-m", "not slow", "--quiet"]
    command += ["--numprocesses=2", "--dist=worksteal"]
    command += [f"--ignore={one}" for one in NOT_FOR_ENDS]
    paths = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    settings = os.environ | {"PATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=settings)
    return "failed" if done.returncode else "passed"


def checked(python: Path, *arguments: str) -> tuple[str, list[str]]:
    """Runs the checks with a Python; what became of them, and the sentences of
    the chapters that they found false."""
    command = [python, ROOT / "tools" / "run_checks.py", *arguments]
    false = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            if line.startswith(FALSE):
                false.append(line.removeprefix(FALSE).strip())
    return ("failed" if running.returncode else "passed"), false


def main() -> int:
    torch_for = environments()
    known = [*torch_for, *ENDS, "slow"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(known)}; all of them if none is named",
    )
    parts = parser.parse_args().parts or known
    if unknown := set(parts) - set(known):
        parser.error(
            f"no part is named {', '.join(sorted(unknown))}; there are "
            f"{', '.join(known)}"
        )
    rows: list[tuple[str, str, list[str]]] = []
    for python in (one for one in parts if one in torch_for):
        name = f"Python {python}"
        print(f"\n{name}, {torch_for[python]}", flush=True)
        if shutil.which(f"python{python}") is None:
            rows.append((name, f"not run: no python{python} on PATH", []))
            continue
        mine = environment(
            f"python{python}", f"python{python}", with_torch(torch_for[python])
        )
        if mine is None:
            rows.append((name, "not run: pip's message above says why", []))
            continue
        rows.append((f"{name}, torch {torch_of(mine)}", *checked(mine)))
    for end in (one for one in parts if one in ENDS):
        print(f"\nThe {end} of all packages", flush=True)
        mine = environment(sys.executable, end, constraints_of(end))
        became = (
            "not run: pip's message above says why"
            if mine is None
            else tested(mine)
        )
        rows.append((f"{end} packages", became, []))
    if "slow" in parts:
        print("\nSlow tests", flush=True)
        rows.append(("slow tests", *checked(Path(sys.executable), "--slow")))
    print()
    for name, became, false in rows:
        print(f"{name:32} {became}")
        for sentence in false:
            print(f"{FALSE} {sentence}")
    return 1 if any(became == "failed" for _, became, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
