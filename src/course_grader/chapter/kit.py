"""`course publish`: the learner kit, all that a learner needs and nothing more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from course_grader.chapter.build import build_chapter
from course_grader.chapter.edition import Edition, Host, edition_at, wheel_name
from course_grader.chapter.notebook import write
from course_grader.chapter.readme import table_of_chapters
from course_grader.course import Course, CourseError

_PACKAGE = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "course_utils"
version = "{version}"
description = "What the notebooks of a course share: {title}"
requires-python = "{python}"
# A floor on torch and no pins: a Colab machine keeps its own.
dependencies = [
{dependencies}
]

[tool.setuptools]
packages = ["course_utils"]

[tool.setuptools.package-data]
course_utils = ["py.typed", "data/*/*.json"]
"""

_BUILD = """\
import sys
from setuptools import build_meta

build_meta.build_wheel(sys.argv[1])
"""

_ENVIRONMENT = """\
# conda env create -f environment.yml
name: pytorch-training-tricks
channels: [conda-forge]
dependencies:
  - python>=3.11
  - pip
  - pip:
      - jupyterlab
      - ./{wheel}
"""

_README = """\
# {title}

{count} chapters, each a notebook: why a trick works, the trick on your own
machine (GPU if there is one, CPU otherwise), and exercises that you can check
as you go.

## Start

With Python {python} in a folder of its own:

    python3 -m venv .venv
    .venv/bin/pip install jupyterlab {wheel}
    .venv/bin/jupyter lab notebooks

On Windows write `.venv\\Scripts\\` for `.venv/bin/`. With conda:
`conda env create -f environment.yml`. Elsewhere (Colab, Kaggle, VS Code) a
chapter's first cell brings what is missing, or says in one sentence what to do.

## Work

Run a chapter from top to bottom, write your answers where a cell says `YOUR CODE
HERE`, and run the cell below: it says *not attempted*, *try again*, or that your
answer passes the visible checks; in a class, hidden ones count. Leave the other cells of an exercise where they are. On Colab, *File →
Save a copy in Drive* first, or your answers are lost when the tab closes. In a
class, hand in the notebook itself, under its own name.

## Chapters

{chapters}
{colophon}
"""


def publish(
    course: Course,
    folder: Path,
    address: str | None = None,
    name: str | None = None,
    host: str | None = None,
) -> tuple[Path, Edition | None]:
    """Writes the learner kit.

    Without an address it is for handing out as it is. With one it becomes an
    edition: links and first cells point there. For a repository it is committed
    and tagged; for a web server it lies in a folder of its own.

    Args:
        course: the course.
        folder: where to; must be empty or hold earlier kits.
        address: of the public repository or the folder on a web server.
        name: of the edition; `v` and the course's version if None.
        host: `github`, `gitlab` or `web`; guessed from the address if None.

    Returns:
        Where the kit lies, and the edition that it is, if any.

    Raises:
        CourseError: the folder holds something else, a chapter is refused, the
            address is none, or the edition was published already.
    """
    with (course.root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    wheel = wheel_name(course)
    edition = None
    if address is not None:
        name = name or f"v{project['version']}"
        edition = edition_at(address, name, wheel, host)
    elif name or host:
        raise CourseError("An edition has an address: give it as --address.")
    _refuse_folder(folder)
    where, tags = folder, False
    if edition is not None and edition.host is Host.WEB:
        where = folder / edition.name
        known = where.exists()
    elif edition is not None:
        tags = True
        known = edition.name in _tags(folder)
    else:
        known = False
    if edition is not None and known:
        raise CourseError(
            f"The edition {edition.name} is published already, and what points "
            "to it must not change: give the new one a name, as in --edition "
            f"{edition.name}-1."
        )
    built = {
        one: build_chapter(course, one, edition) for one in course.chapters()
    }
    where.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(where / "notebooks", ignore_errors=True)
    for old in where.glob("course_utils-*.whl"):
        old.unlink()
    for one, (_, _, released) in built.items():
        path = where / "notebooks" / one / f"{one}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(write(released), encoding="utf-8")
    _build_wheel(course, project, where)
    shutil.copyfile(course.root / "LICENSE", where / "LICENSE")
    texts = _texts(course, project, wheel, edition)
    for file_name, text in texts.items():
        (where / file_name).write_text(text, encoding="utf-8")
    if edition is not None and tags:
        _commit(folder, edition)
    return where, edition


def _refuse_folder(folder: Path) -> None:
    """Kits alone may lie there, and a repository's own files."""
    if not folder.exists():
        return
    kit = {"notebooks", "README.md", "LICENSE", "environment.yml"}
    for one in folder.iterdir():
        is_edition = (one / "notebooks").is_dir()
        is_wheel = one.match("course_utils-*.whl")
        if not (one.name in kit or one.name[0] == "." or is_edition | is_wheel):
            raise CourseError(
                f"{folder} holds {one.name}, which is part of no kit. Name an "
                "empty folder."
            )


def _build_wheel(course: Course, project: dict[str, Any], to: Path) -> None:
    """`course_utils` as learners install it; the same bytes from the same files."""
    with tempfile.TemporaryDirectory() as made:
        source = Path(made)
        shutil.copytree(
            course.root / "src" / "course_utils",
            source / "course_utils",
            ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
        )
        text = _PACKAGE.format(
            version=project["version"],
            title=project["description"],
            python=project["requires-python"],
            dependencies="\n".join(
                f'    "{one}",' for one in project["dependencies"]
            ),
        )
        (source / "pyproject.toml").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _BUILD, str(to.resolve())],
            cwd=source,
            env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise CourseError(f"course_utils could not be packed: {done.stderr}")


def _texts(
    course: Course,
    project: dict[str, Any],
    wheel: str,
    edition: Edition | None,
) -> dict[str, str]:
    colophon = ""
    if edition is not None:
        colophon = (
            f"\nThis is the edition {edition.name} of {edition.address}.\n"
        )
    return {
        "environment.yml": _ENVIRONMENT.format(wheel=wheel),
        "README.md": _README.format(
            title=project["description"].partition(" as ")[0],
            count=len(course.chapters()),
            python=project["requires-python"].removeprefix(">=") + " or newer",
            wheel=wheel,
            chapters=table_of_chapters(course),
            colophon=colophon,
        ),
    }


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise CourseError(
            "git is not installed, so no edition can be tagged: install it, or "
            "publish without --address."
        ) from None
    if done.returncode:
        raise CourseError(
            f"`git {' '.join(arguments)}` failed in {folder}: "
            f"{done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout


def _tags(folder: Path) -> list[str]:
    """The editions that a repository has; none where it is none."""
    if not (folder / ".git").exists():
        return []
    return _git(folder, "tag", "--list").split()


def _commit(folder: Path, edition: Edition) -> None:
    """Commits the kit and tags it with the edition's name."""
    if not (folder / ".git").exists():
        _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", f"--message=Edition {edition.name}")
    _git(folder, "tag", "--annotate", f"--message={edition.name}", edition.name)
