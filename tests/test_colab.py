"""Learners on Colab: its package set runs every chapter, and what it makes of a
notebook is graded like any other."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
from commands import course_says, environment, points
from nbformat import NotebookNode

from course_grader.chapter.build import build_chapter
from course_grader.chapter.notebook import (
    INSTALL_CELL_ID,
    solved_notebook,
    write,
)
from course_grader.classroom.demo import answered
from course_grader.course import Course

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = Path(__file__).with_name("colab.txt")
WIDGET = "application/vnd.jupyter.widget-view+json"

# On Colab this module is there before the first cell.
PRETEND = (
    "import sys, types; sys.modules['google.colab'] = types.ModuleType('c')"
)
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""


def torch_of_the_constraints() -> str:
    pinned = re.search(
        r"^torch==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
    assert pinned is not None
    return pinned[0]


@pytest.fixture(scope="module")
def colab() -> Path:
    """A Python with Colab's packages. Making it costs minutes and a gigabyte, so
    it stays in build/ until the set changes."""
    wanted = f"{PACKAGES.read_text()}{torch_of_the_constraints()}\n"
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    folder = ROOT / "build" / f"colab-{digest}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        (folder / "set.txt").write_text(wanted)
        pip = [python, "-m", "pip", "install", "--quiet", "-r"]
        subprocess.run([*pip, folder / "set.txt"], check=True)
        (folder / "complete").touch()
    return python


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit of this course."""
    folder = tmp_path_factory.mktemp("published") / "kit"
    course_says(ROOT, "publish", folder)
    return folder


def run(python: Path, notebook: NotebookNode, path: Path) -> NotebookNode:
    """The notebook with the outputs that this Python's kernel gives."""
    path.write_text(write(notebook))
    done = subprocess.run(
        [python, "-c", RUN, path],
        cwd=path.parent,
        env=environment(path.parent / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return nbformat.read(path, as_version=4)


@pytest.mark.slow
@pytest.mark.parametrize("chapter", Course(ROOT).chapters())
def test_a_solved_chapter_runs_with_colabs_packages(
    colab: Path, kit: Path, chapter: str, tmp_path: Path
) -> None:
    _, source, released = build_chapter(Course(ROOT), chapter)
    solved = solved_notebook(source)
    of_a_learner = kit / "notebooks" / chapter / f"{chapter}.ipynb"
    first = [
        next(one for one in made.cells if one.id == INSTALL_CELL_ID).source
        for made in (solved, released, nbformat.read(of_a_learner, 4))
    ]
    assert first[0] == first[1] == first[2]
    # uploaded in the file pane, it lies beside the notebook
    (wheel,) = kit.glob("*.whl")
    shutil.copyfile(wheel, tmp_path / wheel.name)
    # each chapter has to bring the package by itself
    subprocess.run(
        [colab, "-m", "pip", "uninstall", "-qy", "course_utils"], check=True
    )
    solved.cells.insert(0, nbformat.v4.new_code_cell(PRETEND))

    done = run(colab, solved, tmp_path / f"{chapter}.ipynb")

    outputs = [
        output
        for cell in done.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    assert not [one for one in outputs if one.output_type == "error"]
    shown = [one.data for one in outputs if "data" in one]
    widgets = [one for one in shown if WIDGET in one]
    if any("explore(" in cell.source for cell in solved.cells):
        # a reader without widgets sees the picture in the same output
        assert widgets
        assert all("image/png" in one for one in widgets)


def as_colab_saves(notebook: NotebookNode) -> str:
    """The file that *Download .ipynb* gives: ids moved into the metadata, marks
    of the last run, the state of widgets, an older format."""
    notebook = nbformat.from_dict(notebook)
    notebook.nbformat_minor = 0
    notebook.metadata = {
        "accelerator": "GPU",
        "colab": {"provenance": [], "gpuType": "T4", "toc_visible": True},
        "kernelspec": {"display_name": "Python 3", "name": "python3"},
        "language_info": {"name": "python"},
        "widgets": {
            "application/vnd.jupyter.widget-state+json": {
                "5f2c": {
                    "model_module": "@jupyter-widgets/controls",
                    "model_name": "IntSliderModel",
                    "model_module_version": "1.5.0",
                    "state": {"value": 3},
                }
            }
        },
    }
    for number, cell in enumerate(notebook.cells):
        own_id = cell.pop("id", "")
        cell.metadata |= {"id": own_id}
        if cell.cell_type == "code":
            cell.execution_count = number + 1
            cell.metadata |= {
                "colab": {"base_uri": "https://localhost:8080/", "height": 35},
                "outputId": f"{number:08x}-77aa-4c5e-9d50-6d7a3c1b2e11",
                "executionInfo": {
                    "status": "ok",
                    "timestamp": 1790000000000 + number,
                    "user_tz": -120,
                    "elapsed": 41,
                    "user": {"displayName": "Ada L", "userId": "0123456789"},
                },
            }
    # nbformat would refuse to write what Colab writes
    return nbformat.v4.nbjson.JSONWriter().writes(notebook) + "\n"


def test_a_notebook_from_colab_comes_by_an_lms_and_is_graded(
    mini: Course, tmp_path: Path
) -> None:
    course_says(mini.root, "release")
    grading, _, released = build_chapter(mini, "03_mini")
    right = {one.id: one.source for one in grading.chapter.exercises}
    full = sum(one.points for one in grading.chapter.exercises)
    learner = answered(grading, released, right)
    wrong = answered(grading, released, right | {next(iter(right)): "pass"})
    archive = tmp_path / "submissions.zip"
    with zipfile.ZipFile(archive, "w") as submissions:
        for name, notebook in (
            ("lovelaceada_1815_90125_03_mini.ipynb", learner),
            ("oharabob_1900_90126_Copy of 03_mini.ipynb", wrong),
        ):
            submissions.writestr(name, as_colab_saves(notebook))

    said = course_says(mini.root, "collect", "--zip", archive, "--add-students")
    assert "lovelaceada" in said
    assert "oharabob" in said
    course_says(mini.root, "grade", "03")

    worse, best = sorted(points(mini.root, "03").values())
    assert 0 < worse < best == full
