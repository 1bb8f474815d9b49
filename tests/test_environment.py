"""Every way to install the course brings the same packages, and whole.

The set-up of `make` is run for real, by its own script, on a stand-in course
that needs no network: it is its own build backend and requires nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# What conda-forge calls a package of PyPI where the names differ.
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
# What conda brings beside the packages: the interpreter, what installs the
# course, and the program that pip cannot bring.
CONDA_ALONE = {"python", "pip", "graphviz"}


def floors(lines: list[str]) -> dict[str, str]:
    """Canonical package name → its version specifier, "" where it has none."""
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): str(r.specifier) for r in requirements}


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return floors([line for line in lines if not line.startswith("#")])


@pytest.fixture(scope="module")
def conda() -> dict[str, list[str]]:
    """What environment.yml asks of conda and of pip."""
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())[
        "dependencies"
    ]
    return {
        "conda": [entry for entry in entries if isinstance(entry, str)],
        "pip": next(e["pip"] for e in entries if isinstance(e, dict)),
    }


def test_conda_users_get_the_requirements_of_pyproject(conda):
    extras = PROJECT["optional-dependencies"]
    asked = floors(PROJECT["dependencies"] + extras["instructor"])
    by_conda = {
        CONDA_NAMES.get(name, name): floor
        for name, floor in floors(conda["conda"]).items()
        if name not in CONDA_ALONE
    }
    by_pip = floors([e for e in conda["pip"] if not e.startswith("-e ")])
    assert by_conda | by_pip == asked


def test_conda_users_get_the_course_its_python_and_dot(conda):
    assert "-e .[instructor]" in conda["pip"]
    assert floors(conda["conda"])["python"] == PROJECT["requires-python"]
    assert floors(conda["conda"]).keys() >= CONDA_ALONE


def test_constraints_pin_one_version_each_for_any_index():
    for name, pin in pinned().items():
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", pin), f"{name}{pin}"


def test_constraints_meet_the_floors_of_pyproject():
    pins = pinned()
    asked = [PROJECT["dependencies"]]
    asked += PROJECT["optional-dependencies"].values()
    for line in chain.from_iterable(asked):
        requirement = Requirement(line)
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.removeprefix("==")), line


def brought() -> set[str]:
    """Every package that the course brings with all its extras, in the end."""

    def brought_by(requirement: Requirement) -> None:
        name = canonicalize_name(requirement.name)
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            contexts = [{"extra": e} for e in (*requirement.extras, "")]
            if needed.marker and not any(map(needed.marker.evaluate, contexts)):
                continue
            key = (canonicalize_name(needed.name), *sorted(needed.extras))
            if key not in seen:
                seen.add(key)
                brought_by(needed)

    seen: set[tuple[str, ...]] = set()
    brought_by(Requirement(f"{PROJECT['name']}[instructor,dev]"))
    return {name for name, *_ in seen}


@pytest.mark.skipif(
    sys.platform != "linux" or not metadata.version("torch").endswith("+cpu"),
    reason="constraints.txt pins what CI runs: Linux and torch without CUDA",
)
def test_constraints_pin_everything_that_the_course_brings():
    assert {"torch", "tornado"} <= brought(), "torch at once, tornado in turn"
    assert brought() - set(pinned()) == set()


def test_the_oldest_python_that_we_admit_can_install_it_all():
    # Debian 12 stays at Python 3.11.2; packages have asked for 3.11.5.
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    refusing = {
        name: asked
        for name in brought()
        if (asked := metadata.metadata(name)["Requires-Python"])
        and not SpecifierSet(asked).contains(oldest)
    }
    assert refusing == {}


# --- The set-up of `make` -------------------------------------------------

BACKEND = '''
"""A build backend for an empty course: writes the wheel, needs nothing."""
import os
import pathlib
import signal
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    if pathlib.Path("cut-short").exists():
        os.kill(os.getppid(), signal.SIGKILL)
    info = "course-1.dist-info"
    with zipfile.ZipFile(f"{folder}/course-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\n"
                       "Name: course\\nVersion: 1\\n"
                       "Provides-Extra: instructor\\nProvides-Extra: dev\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\n"
                       "Root-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return "course-1-py3-none-any.whl"
'''

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
requires-python = ">=3.11"
"""


class Course:
    """A stand-in for the course: the real set-up script, nothing to fetch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / ".venv/bin/python"
        (folder / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools/setup.sh", folder / "tools")
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "constraints.txt").write_text("")
        (folder / "backend.py").write_text(BACKEND)

    def set_up(
        self, extras: str = "instructor", **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "tools/setup.sh", extras],
            cwd=self.folder,
            env=os.environ
            | {"PYTHON": sys.executable, "PIP_NO_INDEX": "1"}
            | env,
            capture_output=True,
            text=True,
        )

    def info(self) -> Path:
        """The folder where pip keeps what it knows of the installed course."""
        (info,) = self.folder.glob(".venv/lib/*/site-packages/course-1*")
        return info


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path / "a course")


def test_a_second_set_up_installs_nothing_until_a_requirement_changes(course):
    first = course.set_up()
    assert first.returncode == 0, first.stderr
    assert "Installing" in first.stdout
    assert course.info().is_dir()
    assert course.set_up().stdout == ""

    assert "[instructor,dev]" in course.set_up("instructor,dev").stdout
    assert course.set_up("instructor").stdout == "", "dev brings it along"

    (course.folder / "constraints.txt").write_text("torch==2.13.0\n")
    assert "Installing" in course.set_up().stdout
    assert course.set_up().stdout == ""


@pytest.mark.slow
def test_an_install_that_was_cut_short_is_done_again(course):
    mark = course.folder / "cut-short"
    mark.touch()
    cut = course.set_up()
    assert cut.returncode != 0
    assert "Run the same command again" in cut.stderr
    mark.unlink()
    assert course.set_up().returncode == 0
    assert course.info().is_dir()

    # Cut between two files of a package: pip takes it for installed.
    (course.folder / "constraints.txt").write_text("torch==2.13.0\n")
    (course.info() / "INSTALLER").unlink()
    again = course.set_up()
    assert again.returncode == 0, again.stderr
    assert "Making .venv" in again.stdout
    assert (course.info() / "INSTALLER").exists()


@pytest.mark.slow
def test_a_change_taken_back_after_a_failed_install_is_installed_again(course):
    assert course.set_up().returncode == 0
    (course.folder / "constraints.txt").write_text("torch==2.13.0\n")
    (course.folder / "cut-short").touch()
    assert course.set_up().returncode != 0
    (course.folder / "cut-short").unlink()
    (course.folder / "constraints.txt").write_text("")
    assert "Installing" in course.set_up().stdout


@pytest.mark.slow
def test_a_moved_course_gets_a_venv_whose_programs_run(course, tmp_path):
    assert course.set_up().returncode == 0
    course.folder = course.folder.rename(tmp_path / "moved")
    assert course.set_up().returncode == 0
    # A program in .venv/bin names the Python it runs on by its full path.
    pip = course.folder / ".venv/bin/pip"
    assert subprocess.run([pip, "--version"]).returncode == 0


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    path.chmod(0o755)


def test_an_old_python_is_told_in_one_sentence(course, tmp_path):
    old = tmp_path / "bin"
    program(
        old,
        "python3",
        """
        if [ "$1" = --version ]; then echo Python 3.9.2; fi
        exit 1
        """,
    )
    program(old, "apt-get", "exit 1")
    said = course.set_up(PYTHON=str(old / "python3"), PATH=f"{old}:/usr/bin")
    assert said.returncode != 0
    assert len(said.stderr.splitlines()) == 1
    assert "needs Python 3.11 or newer and found Python 3.9.2" in said.stderr
    assert "apt-get install python3" in said.stderr
    assert not course.python.exists()


def test_a_python_without_venv_is_told_in_one_sentence(course, tmp_path):
    bare = tmp_path / "bin"
    program(
        bare,
        "python3",
        f"""
        case "$2" in *ensurepip*) exit 1 ;; esac
        exec {sys.executable} "$@"
        """,
    )
    program(bare, "apt-get", "exit 1")
    said = course.set_up(PYTHON=str(bare / "python3"), PATH=f"{bare}:/usr/bin")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert said.returncode != 0
    assert len(said.stderr.splitlines()) == 1
    assert f"apt-get install python{version}-venv" in said.stderr
    assert not course.python.exists()


# --- `make test` ----------------------------------------------------------

PYTEST = """
for argument; do
    case $argument in --junitxml=*) junit=${argument#*=} ;; esac
done
echo '<testsuites><testsuite>
<testcase file="tests/test_a.py" time="1.5"/>
<testcase file="tests/test_a.py" time="2.0"/>
</testsuite></testsuites>' >"$junit"
echo "$@"
echo "== 2 passed in 3.50s =="
"""


def run_checks(folder: Path, *args: str, **exit_codes: int):
    """`make test` where each part only ends with the exit code given to it."""
    (folder / "python").symlink_to(sys.executable)
    for name in ("ruff", "mypy", "course", "pytest"):
        says = PYTEST if name == "pytest" else ""
        program(folder, name, f"{says}\nexit {exit_codes.get(name, 0)}")
    return subprocess.run(
        [folder / "python", ROOT / "tools/run_checks.py", *args],
        capture_output=True,
        text=True,
    )


def test_make_test_says_what_pytest_said_and_which_part_took_how_long(tmp_path):
    run = run_checks(tmp_path)
    assert run.returncode == 0, run.stderr
    assert "-m not slow" in run.stdout
    _, table = run.stdout.split("== 2 passed in 3.50s ==\n")
    assert "3.5 s    tests/test_a.py" in table
    assert "course build" in table
    assert "failed" not in table


def test_make_test_all_leaves_no_test_out(tmp_path):
    assert "not slow" not in run_checks(tmp_path, "--slow").stdout


def test_make_test_fails_as_pytest_does_and_for_any_other_part(tmp_path):
    run = run_checks(tmp_path, mypy=3, pytest=2)
    assert run.returncode == 2
    assert re.search(r"mypy +failed", run.stdout)
    assert re.search(r"pytest +failed", run.stdout)


def test_make_test_fails_where_only_the_notebooks_are_stale(tmp_path):
    run = run_checks(tmp_path, course=3)
    assert run.returncode == 3
    assert "== 2 passed in 3.50s ==" in run.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A committed copy of what `make check` reads, programs beside it."""
    root = tmp_path / "copy"
    for name in (
        "tools/run_checks.py",
        "src/course_grader/judge/compare.py",
        "src/course_grader/feedback/content.py",
        "autograde/03_one_hot_and_losses/probes.py",
        "tests/test_judging.py",
        "tests/test_kernels.py",
        "tests/test_misconceptions.py",
        "tests/test_plain.py",
        "README.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    author = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        [*author, "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def check(root: Path, folder: Path) -> list[list[str]]:
    """What `make check` runs there."""
    (folder / "python").symlink_to(sys.executable)
    for name in ("ruff", "mypy", "course", "pytest"):
        program(folder, name, "exit 0")
    run = subprocess.run(
        [folder / "python", root / "tools/run_checks.py", "--changed"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return [
        line[2:].split()
        for line in run.stdout.splitlines()
        if line.startswith("$ ")
    ]


def test_make_check_runs_what_belongs_to_a_changed_module(repository, tmp_path):
    changed = "src/course_grader/judge/compare.py"
    (repository / changed).write_text("# changed\n")

    ruff, formatted, mypy, pytest_run = check(repository, tmp_path)

    assert ruff == ["ruff", "check", changed]
    assert formatted == ["ruff", "format", "--check", changed]
    assert mypy == ["mypy"]
    assert [one for one in pytest_run if one.startswith("tests/")] == [
        "tests/test_judging.py",
        "tests/test_kernels.py",
        "tests/test_misconceptions.py",
    ]


@pytest.mark.parametrize(
    ("changed", "banks", "notebook"),
    [
        (["solutions/{0}/{0}.py"], "{0}-", True),
        (["autograde/{0}/probes.py"], "{0}-", False),
        (
            ["autograde/{0}/answers/a.diff", "autograde/{0}/signatures.json"],
            "{0}-a",
            False,
        ),
        (
            ["autograde/{0}/answers/a.py", "autograde/{0}/answers/b.diff"],
            "{0}-a or {0}-b",
            False,
        ),
    ],
)
def test_make_check_runs_what_belongs_to_a_changed_chapter(
    repository, tmp_path, changed, banks, notebook
):
    chapter = "03_one_hot_and_losses"
    for one in changed:
        path = repository / one.format(chapter)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# changed\n")

    commands = check(repository, tmp_path)

    assert ["course", "build", "--check", chapter] in commands
    said = [" ".join(one) for one in commands]
    (of_banks,) = [one for one in said if "tests/test_answer_bank.py" in one]
    assert of_banks.endswith(f" -k {banks.format(chapter)}")
    assert "-m not slow" in of_banks
    once = f" -k untouched_notebook_runs and ({chapter})"
    assert [one.endswith(once) for one in said if "test_learner" in one] == [
        True
    ] * notebook


def test_make_check_runs_a_new_test_and_nothing_for_prose(repository, tmp_path):
    (repository / "README.md").write_text("Other words.\n")
    assert check(repository, tmp_path) == []

    new = "tests/test_new.py"
    (repository / new).write_text("def test_nothing():\n    pass\n")
    (tmp_path / "again").mkdir()
    assert check(repository, tmp_path / "again")[-1][-1] == new
