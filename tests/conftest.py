"""What tests of the grader share: the real course, a small one, warm processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from course_grader.startup import import_fast

import_fast()  # before all of these

import quick_gradebooks  # noqa: E402, F401
from commands import course_says, fork_grading  # noqa: E402
from mini_course import ROOT, write_mini  # noqa: E402
from quick_processes import warm_process  # noqa: E402

from course_grader.course import Course  # noqa: E402
from course_grader.judge.warming import WarmProcess  # noqa: E402

fork_grading()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of the class server come first: a worker takes its share from the
    front, so that one alone sets the server up, and nobody waits for it at the
    end."""
    items.sort(key=lambda one: not one.path.name.startswith("test_hub"))


@pytest.fixture
def mini(tmp_path: Path) -> Course:
    """A small course of its own for one test."""
    return write_mini(tmp_path / "mini")


@pytest.fixture(scope="session")
def released_once(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The small course, its chapter released; not to be changed."""
    course = write_mini(tmp_path_factory.mktemp("released") / "mini")
    course_says(course.root, "release")
    return course


@pytest.fixture
def released(released_once: Course, tmp_path: Path) -> Course:
    """A small course of its own for one test, its chapter released."""
    shutil.copytree(released_once.root, tmp_path / "mini", symlinks=True)
    return Course(tmp_path / "mini")


@pytest.fixture(scope="module")  # Playwright's event loop is in others' way
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as play:
        one = play.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield one
        one.close()


@pytest.fixture(scope="session")
def course() -> Course:
    """This course."""
    return Course(ROOT)


@pytest.fixture(scope="session")
def warm() -> WarmProcess:
    """One warm process for all tests of a test process."""
    return warm_process()


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without anybody's Jupyter or nbgrader settings."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_CONFIG_DIR", "COURSE_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    return home
