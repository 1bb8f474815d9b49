"""The learner kit: what is in it, and that it works on a machine without us."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from commands import SCRIPTS, course_says, environment

from course_grader.chapter.edition import edition_at, wheel_name
from course_grader.chapter.notebook import INSTALL_CELL_ID
from course_grader.course import Course, CourseError

ROOT = Path(__file__).resolve().parent.parent
SECRET = re.compile(
    r"BEGIN SOLUTION|END SOLUTION|BEGIN HIDDEN|hidden_tests|course_grader"
    r"|@accepted|@wrong|probes\.py"
)
WHEEL = Path(wheel_name(Course(ROOT)))
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
    """The kit of this course, as an edition at an address on this machine."""
    folder = tmp_path_factory.mktemp("a folder") / "the kit"
    said = course_says(
        ROOT,
        "publish",
        folder,
        *("--address", folder.as_uri(), "--edition", "autumn"),
    )
    assert "chapters is in" in said
    return folder / "autumn"


def test_it_holds_what_learners_need_and_nothing_else(
    kit: Path, course: Course
) -> None:
    found = set(files(kit))

    chapters = {f"notebooks/{one}/{one}.ipynb" for one in course.chapters()}
    wheel = WHEEL.name
    others = {"README.md", "LICENSE", "environment.yml", wheel}
    assert found == chapters | others
    for name in found - {wheel}:
        text = (kit / name).read_bytes().decode("utf-8", "replace")
        assert not SECRET.search(text), name
        assert str(ROOT) not in text, name
    package = {
        path.relative_to(ROOT / "src").as_posix(): path.read_bytes()
        for path in (ROOT / "src" / "course_utils").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(kit / wheel) as packed:
        names = set(packed.namelist())
        metadata = {one for one in names if ".dist-info/" in one}
        assert names - metadata == set(package)
        for name, content in package.items():
            assert packed.read(name) == content


def test_a_canary_in_every_secret_place_stays_out(mini: Course) -> None:
    """In a solution, the checks, the bank and the probes of a small course."""
    for path, old in {
        "solutions/03_mini/03_mini.py": "    return x * 2**times\n",
        "autograde/03_mini/probes.py": "def average(mean, case):\n",
        "autograde/03_mini/hidden_tests.py": "def doubles(draw):\n",
        "autograde/03_mini/answers/mean.py": "def by_method(x):\n",
    }.items():
        file = mini.root / path
        text = file.read_text()
        assert old in text
        indent = "    "
        canary = f"{indent}_ = 'canary-{file.stem}'\n"
        new = canary + old if old.startswith(" ") else old + canary
        file.write_text(text.replace(old, new))
    for folder in ("src/course_utils", "class/submitted/ada/03_mini"):
        (mini.root / folder).mkdir(parents=True)
    (mini.root / "src/course_utils/__init__.py").write_text("")
    (mini.root / "class/submitted/ada/03_mini/x.ipynb").write_text("canary")

    course_says(mini.root, "publish", "kit")

    kit = mini.root / "kit"
    shutil.unpack_archive(kit / WHEEL, kit / "wheel", "zip")
    assert (kit / "notebooks" / "03_mini" / "03_mini.ipynb").is_file()
    for name in files(kit):
        assert b"canary" not in (kit / name).read_bytes(), name


@pytest.fixture
def small(mini: Course) -> Course:
    """A course of one chapter with a package to publish."""
    (mini.root / "src/course_utils").mkdir(parents=True)
    (mini.root / "src/course_utils/__init__.py").write_text("")
    return mini


def test_publishing_again_and_over_something_else(
    small: Course, tmp_path: Path
) -> None:
    course_says(small.root, "publish", "kit")
    kit = small.root / "kit"
    first = files(kit)
    (kit / "notebooks" / "04_gone").mkdir()
    (kit / "notebooks" / "04_gone" / "04_gone.ipynb").write_text("{}")
    (kit / "course_utils-0.0.1-py3-none-any.whl").write_text("older")
    (kit / ".git").mkdir()
    (kit / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    course_says(small.root, "publish", "kit")

    again = files(kit)
    assert again.pop(".git/HEAD")
    assert again == first

    (tmp_path / "thesis.txt").write_text("mine")
    said = course_says(small.root, "publish", tmp_path, code=2)
    assert "which is part of no kit" in said
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", folder, *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_an_edition_is_tagged_and_never_changes(
    small: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    to = ("publish", "my kit", "--address", "https://github.com/ada/course")
    said = course_says(small.root, *to, "--edition", "autumn")
    push = "push https://github.com/ada/course HEAD:main autumn"
    assert f"git -C 'my kit' {push}" in said
    kit = small.root / "my kit"
    published = git(kit, "rev-parse", "autumn^{commit}")
    path = "notebooks/03_mini/03_mini.ipynb"
    before = git(kit, "show", f"autumn:{path}")
    assert "/blob/autumn/" in before
    assert "HEAD" not in before

    source = small.source_of("03_mini")
    source.write_text(source.read_text().replace("the mean.", "a mean."))
    said = course_says(small.root, *to, "--edition", "autumn", code=2)
    assert "autumn is published already" in said
    assert git(kit, "status", "--porcelain") == ""

    course_says(small.root, *to, "--edition", "autumn-2")

    assert git(kit, "rev-parse", "autumn^{commit}") == published
    assert git(kit, "show", f"autumn:{path}") == before
    assert "/blob/autumn-2/" in git(kit, "show", f"autumn-2:{path}")
    assert git(kit, "tag").split() == ["autumn", "autumn-2"]


def test_editions_lie_side_by_side_on_a_web_server(small: Course) -> None:
    to = ("publish", "kit", "--address", "https://example.org/course/")
    course_says(small.root, *to, "--edition", "one")
    first = files(small.root / "kit" / "one")

    said = course_says(small.root, *to, "--edition", "one", code=2)
    assert "one is published already" in said
    course_says(small.root, *to, "--edition", "two")

    assert files(small.root / "kit" / "one") == first
    path = small.root / "kit/two/notebooks/03_mini/03_mini.ipynb"
    wheel = f"https://example.org/course/two/{WHEEL}"
    assert f"wheels.append({wheel!r})" in install_cell(path)


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
    wheel = kit / WHEEL
    done = python(venv, "-m", "pip", "install", str(wheel), home=home)

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


def test_the_first_cell_finds_the_wheel_or_says_what_to_do(
    kit: Path, venv: Path, course: Course, tmp_path: Path
) -> None:
    """As handed out without an address: nothing is looked up anywhere."""
    cell = install_cell(course.notebook_of("03_one_hot_and_losses"))
    assert "http" not in cell
    python(venv, "-m", "pip", "uninstall", "-y", "course_utils", home=tmp_path)
    shown = (  # what a notebook shows of an error
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"InteractiveShell.instance().run_cell({cell!r})"
    )

    done = python(venv, "-c", shown, home=tmp_path / "empty")
    (sentence,) = done.stdout.splitlines()
    assert "put the file course_utils-….whl" in sentence
    assert "Traceback" not in done.stdout + done.stderr

    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / WHEEL).write_text("half a download")
    done = python(venv, "-c", shown, home=broken)
    (sentence,) = done.stdout.splitlines()
    assert f"pip could not install {broken / WHEEL}" in sentence
    assert "Traceback" not in done.stdout + done.stderr

    # two folders up, as the notebooks of a kit lie
    beside = tmp_path / "kit" / "notebooks" / "03"
    beside.mkdir(parents=True)
    shutil.copyfile(kit / WHEEL, tmp_path / "kit" / WHEEL)
    done = python(venv, "-c", f"{cell}\n{IMPORT}", home=beside)
    assert done.returncode == 0, done.stderr
    (packages,) = venv.glob("lib/python*/site-packages")
    assert done.stdout.startswith(str(packages))


@pytest.mark.parametrize(
    ("address", "host", "wheel", "colab"),
    [
        (
            "https://github.com/ada/course.git",
            None,
            f"https://github.com/ada/course/raw/v1/{WHEEL}",
            "https://colab.research.google.com/github/ada/course/blob/v1/n.ipynb",
        ),
        (
            "https://gitlab.com/group/sub/course/",
            None,
            f"https://gitlab.com/group/sub/course/-/raw/v1/{WHEEL}",
            None,
        ),
        (
            "https://git.example.edu/course",
            "gitlab",
            f"https://git.example.edu/course/-/raw/v1/{WHEEL}",
            None,
        ),
        (
            "https://example.edu/~ada",
            None,
            f"https://example.edu/~ada/v1/{WHEEL}",
            None,
        ),
    ],
)
def test_links_point_to_the_edition(
    address: str, host: str | None, wheel: str, colab: str | None
) -> None:
    edition = edition_at(address, "v1", str(WHEEL), host)

    assert edition.wheel_url == wheel
    assert edition.colab("n.ipynb") == colab


@pytest.mark.parametrize("name", ["", "a b", "../up", "'"])
def test_an_edition_without_a_proper_name_is_refused(name: str) -> None:
    with pytest.raises(CourseError, match="no name of an edition"):
        edition_at("https://example.edu", name, str(WHEEL))


@pytest.mark.parametrize("address", ["somewhere", 'https://x.org/"; import os'])
def test_an_address_that_is_none_is_refused(mini: Course, address: str) -> None:
    said = course_says(
        mini.root, "publish", "kit", "--address", address, code=2
    )

    assert "address" in said
    assert not (mini.root / "kit").exists()


def test_nothing_points_to_an_address_that_nobody_set(course: Course) -> None:
    for chapter in course.chapters():
        text = course.notebook_of(chapter).read_text()
        assert "colab.research.google.com" not in text
        assert "pytorch-training-tricks" not in text


def test_what_a_class_is_given_points_to_the_edition_that_it_names(
    small: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kit at an address and the released chapter agree; without the setting
    nothing that is released points anywhere."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    root = small.root
    address = ("--address", "https://github.com/you/course")
    said = course_says(
        root, "publish", tmp_path / "kit", *address, "--edition", "autumn"
    )
    released = small.people / "release" / "03_mini" / "03_mini.ipynb"
    course_says(root, "release", "03")
    assert "github.com/you" not in released.read_text()
    settings = said[said.index("[edition]") :]
    with small.settings_file.open("a") as file:
        file.write(settings)
    course_says(root, "release", "03")
    exchanged = (
        small.people
        / "exchange/pytorch_training_tricks/outbound/03_mini/03_mini.ipynb"
    )
    kit = tmp_path / "kit" / "notebooks" / "03_mini" / "03_mini.ipynb"
    for one in (released, exchanged):
        ours, theirs = (
            nbformat.read(path, as_version=4).cells[:2] for path in (one, kit)
        )
        assert [c.source for c in ours] == [c.source for c in theirs]
        assert "blob/autumn/notebooks/03_mini/03_mini.ipynb" in ours[0].source
    small.settings_file.write_text('[edition]\nname = "autumn"\n')
    assert "lacks address" in course_says(root, "release", "03", code=2)
