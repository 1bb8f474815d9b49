"""The learner kit: what is in it, and that it works on a machine without us."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from commands import SCRIPTS, course_says, environment

from course_grader.chapter.notebook import INSTALL_CELL_ID
from course_grader.course import Course

ROOT = Path(__file__).resolve().parent.parent
SECRET = re.compile(
    r"BEGIN SOLUTION|END SOLUTION|BEGIN HIDDEN|hidden_tests|course_grader"
    r"|@accepted|@wrong|probes\.py"
)
IMPORT = """\
import sys
import course_utils
assert "torch" not in sys.modules, "importing it loads torch"
print(course_utils.__file__)
"""


def files(folder: Path) -> dict[str, str]:
    """Digest by path."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit of this course, for an address on this machine."""
    folder = tmp_path_factory.mktemp("a folder") / "the kit"
    said = course_says(ROOT, "publish", folder, "--address", folder.as_uri())
    assert "chapters is in" in said
    return folder


def test_it_holds_what_learners_need_and_nothing_else(
    kit: Path, course: Course
) -> None:
    found = set(files(kit))

    chapters = {f"notebooks/{one}/{one}.ipynb" for one in course.chapters()}
    package = {
        f"src/course_utils/{path.relative_to(ROOT / 'src/course_utils')}"
        for path in (ROOT / "src" / "course_utils").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    others = {"README.md", "LICENSE", "pyproject.toml", "environment.yml"}
    assert found == chapters | package | others
    for name in found:
        text = (kit / name).read_bytes().decode("utf-8", "replace")
        assert not SECRET.search(text), name
        assert str(ROOT) not in text, name


def test_a_canary_in_every_secret_place_stays_out(mini: Course) -> None:
    """In a solution, the checks, the bank and the probes of a small course."""
    for path, old in {
        "solutions/03_mini/03_mini.py": "    return x * 2**times\n",
        "autograde/03_mini/probes.py": "def average(mean, case):\n",
        "autograde/03_mini/hidden_tests.py": "def doubles(draw):\n",
        "autograde/03_mini/answers.py": "def by_method(x):\n",
    }.items():
        file = mini.root / path
        text = file.read_text()
        assert old in text
        indent = "    "
        canary = f"{indent}_ = 'canary-{file.stem}'\n"
        new = canary + old if old.startswith(" ") else old + canary
        file.write_text(text.replace(old, new))
    for folder in ("src/course_utils", "autograde/submitted/ada/03_mini"):
        (mini.root / folder).mkdir(parents=True)
    (mini.root / "src/course_utils/__init__.py").write_text("")
    (mini.root / "autograde/submitted/ada/03_mini/x.ipynb").write_text("canary")

    course_says(mini.root, "publish", "kit")

    kit = mini.root / "kit"
    assert (kit / "notebooks" / "03_mini" / "03_mini.ipynb").is_file()
    for name in files(kit):
        assert b"canary" not in (kit / name).read_bytes(), name


def test_publishing_again_and_over_something_else(
    mini: Course, tmp_path: Path
) -> None:
    (mini.root / "src/course_utils").mkdir(parents=True)
    (mini.root / "src/course_utils/__init__.py").write_text("")
    course_says(mini.root, "publish", "kit")
    kit = mini.root / "kit"
    first = files(kit)
    (kit / "notebooks" / "04_gone").mkdir()
    (kit / "notebooks" / "04_gone" / "04_gone.ipynb").write_text("{}")
    (kit / ".git").mkdir()
    (kit / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    course_says(mini.root, "publish", "kit")

    again = files(kit)
    assert again.pop(".git/HEAD")
    assert again == first

    (tmp_path / "thesis.txt").write_text("mine")
    said = course_says(mini.root, "publish", tmp_path, code=2)
    assert "holds something that is no kit" in said
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment in which torch and the like are installed,
    this project is not, and nothing can be downloaded.

    What is installed are this project's own packages, pip and setuptools with
    them, seen through a path file: Python does not follow the path files behind
    a path file, so our editable installation stays out of sight.
    """
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    create = [sys.executable, "-m", "venv", "--without-pip", folder]
    subprocess.run(create, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    shared = next(one for one in sys.path if one.endswith("site-packages"))
    (packages / "shared.pth").write_text(shared + "\n")
    return folder


def python(
    venv: Path, *arguments: str, home: Path
) -> subprocess.CompletedProcess[str]:
    """Runs the environment's Python in a folder of its own, without a network:
    pip may use no index and build with the setuptools that is there."""
    settings = environment(home) | {
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say that it is off
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    settings.pop("PYTHONPATH", None)
    return subprocess.run(
        [venv / "bin" / "python", *arguments],
        cwd=home,
        env=settings,
        capture_output=True,
        text=True,
    )


def install_cell(notebook: Path) -> str:
    read = nbformat.read(notebook, as_version=4)
    (cell,) = (one for one in read.cells if one.id == INSTALL_CELL_ID)
    assert read.cells.index(cell) == 1  # below the title, above all code
    return str(cell.source)


def test_a_fresh_environment_gets_course_utils_alone(
    kit: Path, venv: Path, course: Course, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    torch = SCRIPTS.parent.glob("lib/python*/site-packages/torch/version.py")
    (torch_version,) = torch
    before = torch_version.stat()
    (packages,) = venv.glob("lib/python*/site-packages")
    installed = {path.name for path in packages.iterdir()}
    done = python(venv, "-c", IMPORT, home=home)
    assert "No module named 'course_utils'" in done.stderr

    # the README's way
    done = python(venv, "-m", "pip", "install", str(kit), home=home)

    assert done.returncode == 0, done.stderr
    assert "Successfully installed course_utils" in done.stdout.replace(
        "course-utils", "course_utils"
    )
    new = {path.name for path in packages.iterdir()} - installed
    assert {re.sub(r"-.*", "", one) for one in new} == {"course_utils"}
    assert torch_version.stat() == before
    done = python(venv, "-c", IMPORT, home=home)
    assert done.stdout.startswith(str(packages)), done.stderr
    every = "from course_utils import *"
    assert python(venv, "-c", every, home=home).returncode == 0

    # a chapter's first cell has nothing to do, and says nothing
    for chapter in course.chapters():
        cell = install_cell(kit / "notebooks" / chapter / f"{chapter}.ipynb")
        # pip would fail here: nothing may be looked up
        done = python(venv, "-c", f"{cell}\n{cell}", home=home)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    # and where the package is missing, as on Colab, it brings it, once
    gone = python(
        venv, *["-m", "pip", "uninstall", "--yes", "course_utils"], home=home
    )
    assert gone.returncode == 0, gone.stderr
    code = f"{cell}\n{IMPORT}"
    done = python(venv, "-c", code, home=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(packages))
    written = files(next(packages.glob("course_utils")))
    done = python(venv, "-c", code, home=home)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert files(next(packages.glob("course_utils"))).keys() >= written.keys()
    assert torch_version.stat() == before


def test_the_kits_address_is_where_colab_and_pip_look(mini: Course) -> None:
    (mini.root / "src/course_utils").mkdir(parents=True)
    (mini.root / "src/course_utils/__init__.py").write_text("")
    address = "https://github.com/somebody/else"

    course_says(mini.root, "publish", "kit", "--address", address)

    path = mini.root / "kit" / "notebooks" / "03_mini" / "03_mini.ipynb"
    assert f'"course_utils @ {address}/archive/HEAD.zip"' in install_cell(path)
    title = nbformat.read(path, as_version=4).cells[0].source
    assert (
        "https://colab.research.google.com/github/somebody/else/blob/HEAD/"
        "notebooks/03_mini/03_mini.ipynb" in title
    )


@pytest.mark.parametrize("address", ["somewhere", 'https://x.org/"; import os'])
def test_an_address_that_is_none_is_refused(mini: Course, address: str) -> None:
    said = course_says(
        mini.root, "publish", "kit", "--address", address, code=2
    )

    assert "address" in said
    assert not (mini.root / "kit").exists()
