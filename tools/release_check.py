"""What is run once per release and not per change: every Python and both ends of
torch's range, then all slow tests.

Each pair of a Python on PATH (`python3.11`, ...) and a torch gets an environment
of its own in build/release/ and all that `make test` runs in it. The slow tests,
Colab's package set, pages and widgets in a browser among them, run in `.venv`.
What cannot be had on this machine is named and is no failure.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
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


def environment(python: str, torch: str) -> Path | None:
    """The Python of an environment with this torch; None if it cannot be made."""
    folder = ROOT / "build" / "release" / f"python{python}-torch{torch}"
    mine = folder / "bin" / "python"
    made = subprocess.run([f"python{python}", "-m", "venv", "--clear", folder])
    if made.returncode:
        return None
    pins = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("torch==")
    ]
    constraints = folder / "constraints.txt"
    constraints.write_text(
        "\n".join(
            [*pins, f"torch=={torch}{'.*' if torch.count('.') < 2 else ''}"]
        )
        + "\n"
    )
    pip = [mine, "-m", "pip", "install", "--quiet", "--constraint"]
    done = subprocess.run([*pip, constraints, "-e", FOR_TESTS], cwd=ROOT)
    return None if done.returncode else mine


def checked(python: Path, *arguments: str) -> str:
    """Runs the checks with a Python; what became of them."""
    command = [python, ROOT / "tools" / "run_checks.py", *arguments]
    code = subprocess.run(command, cwd=ROOT).returncode
    return "failed" if code else "passed"


def main() -> int:
    rows: list[tuple[str, str]] = []
    for python in PYTHONS:
        for torch in (floor_of_torch(), pinned_torch()):
            name = f"Python {python}, torch {torch}"
            print(f"\n{name}", flush=True)
            if shutil.which(f"python{python}") is None:
                rows.append((name, f"not run: no python{python} on PATH"))
                continue
            mine = environment(python, torch)
            if mine is None:
                rows.append((name, "not run: pip's message above says why"))
                continue
            rows.append((name, checked(mine)))
    print("\nSlow tests", flush=True)
    rows.append(("slow tests", checked(Path(sys.executable), "--slow")))
    print()
    for name, became in rows:
        print(f"{name:28} {became}")
    return 1 if any(became == "failed" for _, became in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
