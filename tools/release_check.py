"""What is run once per release and not per change: every Python with one end of
torch's range or the pin between them, then all slow tests.

Each Python on PATH (`python3.11`, ...) gets an environment of its own in
build/release/ and all that `make test` runs in it. The slow tests, Colab's package
set, pages and widgets in a browser among them, run in `.venv`. It takes hours, so
parts can be named: `python tools/release_check.py 3.12 slow`. What cannot be had on
this machine is named and is no failure. The sentences of the chapters that have become
false with a torch stand below its line.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from run_checks import FALSE

ROOT = Path(__file__).resolve().parent.parent
FOR_TESTS = ".[instructor,dev]"


def floor_of_torch() -> str:
    """The oldest torch that pyproject.toml allows."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    found = re.search(r"torch>=([\d.]+)", " ".join(needed))
    if found is None:
        sys.exit("pyproject.toml declares no floor of torch.")
    return found[1]


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
        "3.11": f"torch=={floor_of_torch()}.*",
        "3.12": f"torch=={pinned_torch()}",
        "3.13": f"torch>={pinned_torch()}",  # the newest there is
    }


def environment(python: str, torch: str) -> Path | None:
    """The Python of a fresh environment; None if it cannot be made."""
    folder = ROOT / "build" / "release" / f"python{python}"
    mine = folder / "bin" / "python"
    made = subprocess.run([f"python{python}", "-m", "venv", "--clear", folder])
    if made.returncode:
        return None
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    constraints = folder / "constraints.txt"
    constraints.write_text(
        "\n".join(
            [*(pin for pin in pins if not pin.startswith("torch==")), torch]
        )
        + "\n"
    )
    pip = [mine, "-m", "pip", "install", "--quiet", "--constraint"]
    done = subprocess.run([*pip, constraints, "-e", FOR_TESTS], cwd=ROOT)
    return None if done.returncode else mine


def torch_of(python: Path) -> str:
    """The version of torch that a Python has."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


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
    known = [*torch_for, "slow"]
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
        mine = environment(python, torch_for[python])
        if mine is None:
            rows.append((name, "not run: pip's message above says why", []))
            continue
        rows.append((f"{name}, torch {torch_of(mine)}", *checked(mine)))
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
