"""`course publish`: the learner kit, all that a learner needs and nothing more."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

from course_grader.chapter.build import build_chapter
from course_grader.chapter.notebook import write
from course_grader.course import Course, CourseError

_ADDRESS = re.compile(r"(https?|file)://[^\s\"'\\\\]+")
"""It becomes part of a line of Python, and of what pip is given."""

_PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "course_utils"
version = "{version}"
description = "What the notebooks of the course '{title}' share"
requires-python = "{python}"
# A floor on torch and no pins: a Colab machine keeps its own.
dependencies = [
{dependencies}
]

[tool.setuptools]
packages = ["course_utils"]
package-dir = {{ "" = "src" }}

[tool.setuptools.package-data]
course_utils = ["py.typed", "data/*"]
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
      - .
"""

_README = """\
# {title}

{count} chapters, each a notebook: why a trick works, the trick on your own
machine (GPU if there is one, CPU otherwise), and exercises that you can check
as you go.

## Start

With Python {python} in a folder of its own:

    python3 -m venv .venv
    .venv/bin/pip install jupyterlab .
    .venv/bin/jupyter lab notebooks

On Windows write `.venv\\Scripts\\` for `.venv/bin/`. With conda:
`conda env create -f environment.yml`. In Colab nothing has to be installed: a
chapter's first cell brings what is missing.

## Work

Run a chapter from top to bottom, write your answers where a cell says `YOUR CODE
HERE`, and run the cell below: it says *not attempted*, *try again* or *looks
right*. Leave the other cells of an exercise where they are. In a class, hand in
the notebook itself, under its own name.

## Chapters

{chapters}
"""


def publish(course: Course, folder: Path, kit: str | None = None) -> list[str]:
    """Writes the learner kit.

    Args:
        course: the course.
        folder: where to; must be empty or an earlier kit.
        kit: the address it will have, if not the course's own: a repository,
            a wheel, or file:// and the folder itself.

    Returns:
        The chapters in it.

    Raises:
        CourseError: the folder holds something else, a chapter is refused, or
            the address is none.
    """
    if kit is not None and not _ADDRESS.fullmatch(kit):
        raise CourseError(
            f"{kit} is no address of a kit: give one that begins with "
            "https:// or, for a folder of this machine, with file://."
        )
    if folder.exists() and any(folder.iterdir()):
        if not (folder / "src" / "course_utils").is_dir():
            raise CourseError(
                f"{folder} holds something that is no kit. Name an empty "
                "folder."
            )
        for name in ("src", "notebooks"):
            shutil.rmtree(folder / name, ignore_errors=True)
    with (course.root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    built = {
        name: build_chapter(course, name, kit) for name in course.chapters()
    }
    for name, (_, _, released) in built.items():
        path = folder / "notebooks" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(released), encoding="utf-8")
    shutil.copytree(
        course.root / "src" / "course_utils",
        folder / "src" / "course_utils",
        ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
    )
    shutil.copyfile(course.root / "LICENSE", folder / "LICENSE")
    titles = [
        f"- [{grading.chapter.title}](notebooks/{name}/{name}.ipynb)"
        for name, (grading, _, _) in built.items()
    ]
    for name, text in _texts(project, titles).items():
        (folder / name).write_text(text, encoding="utf-8")
    return list(built)


def _texts(project: dict[str, Any], titles: list[str]) -> dict[str, str]:
    python = project["requires-python"]
    return {
        "pyproject.toml": _PYPROJECT.format(
            version=project["version"],
            title=project["description"],
            python=python,
            dependencies="\n".join(
                f'    "{one}",' for one in project["dependencies"]
            ),
        ),
        "environment.yml": _ENVIRONMENT,
        "README.md": _README.format(
            title=project["description"],
            count=len(titles),
            python=python.removeprefix(">=") + " or newer",
            chapters="\n".join(titles),
        ),
    }
