"""One source: notebooks are built from it, leak nothing, and are never stale."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import MINI_SOURCE

from course_grader.chapter.build import (
    build_chapter,
    built_files,
    stale_diff,
)
from course_grader.chapter.source import Role, read_chapter
from course_grader.course import Course, CourseError


def change(course: Course, old: str, new: str, file: str = "") -> None:
    path = course.root / (file or "solutions/03_mini/03_mini.py")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_is_committed_is_what_is_built(course: Course) -> None:
    for path, built in built_files(course, course.chapters()).items():
        assert stale_diff(course, path, built) == ""


def test_committed_notebooks_equal_nbgraders_release_step(
    course: Course, tmp_path: Path, alone: Path
) -> None:
    """The real command line, on all chapters at once."""
    root = tmp_path / "nbgrader"
    for chapter in course.chapters():
        _, source, _ = build_chapter(course, chapter)
        folder = root / "source" / chapter
        folder.mkdir(parents=True)
        nbformat.write(source, folder / f"{chapter}.ipynb")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "nbgrader",
                "generate_assignment",
                chapter,
                f"--CourseDirectory.root={root}",
            ],
            check=True,
            capture_output=True,
        )
        released = root / "release" / chapter / f"{chapter}.ipynb"
        committed = course.notebook_of(chapter)
        assert json.loads(released.read_text()) == json.loads(
            committed.read_text()
        )


def test_no_solution_or_hidden_test_reaches_learners(course: Course) -> None:
    """A canary in every solution and every hidden test, searched for."""
    for chapter in course.chapters():
        text = course.notebook_of(chapter).read_text()
        for word in (
            "BEGIN SOLUTION",
            "END SOLUTION",
            "HIDDEN TESTS",
            "course_grader",
            "hidden_tests",
        ):
            assert word not in text


def test_a_canary_in_each_place_stays_out(mini: Course) -> None:
    change(mini, "return x * 2**times", "canary = 1\n    return x * 2**times")
    change(
        mini,
        "values are doubled",
        "canary",
        "autograde/03_mini/hidden_tests.py",
    )
    _, source, released = build_chapter(mini, "03_mini")

    assert "canary" in nbformat.writes(source)
    assert "canary" not in nbformat.writes(released)


def test_cells_carry_full_nbgrader_metadata(mini: Course) -> None:
    _, _, released = build_chapter(mini, "03_mini")
    by_id = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in released.cells
        if "nbgrader" in cell.metadata
    }

    assert list(by_id) == [
        "setup_imports",
        "double",
        "double_visible",
        "double_hidden",
        "mean",
        "mean_visible",
        "mean_hidden",
    ]
    solution = by_id["double"].metadata.nbgrader
    assert (solution.solution, solution.grade, solution.locked) == (
        True,
        False,
        False,
    )
    assert by_id["double_visible"].metadata.nbgrader.points == 0
    assert by_id["double_hidden"].metadata.nbgrader.points == 3
    assert "raise NotImplementedError()" in by_id["double"].source
    assert "2**times" not in by_id["double"].source


def test_ids_survive_a_change_elsewhere(mini: Course) -> None:
    before = [cell.id for cell in read_chapter(mini.source_of("03_mini")).cells]
    change(mini, "# %%\ntwo = 2\n", "# %%\nzero = 0\n\n# %%\ntwo = 2\n")
    after = [cell.id for cell in read_chapter(mini.source_of("03_mini")).cells]

    assert [one for one in after if one in before] == before
    assert len(after) == len(before) + 1


def test_a_stale_notebook_is_shown_as_a_diff(mini: Course) -> None:
    ((path, built),) = built_files(mini, ["03_mini"]).items()
    path.parent.mkdir(parents=True)
    path.write_text(built)
    assert stale_diff(mini, path, built) == ""

    change(mini, "Return the mean.", "Return the arithmetic mean.")
    ((path, built),) = built_files(mini, ["03_mini"]).items()

    assert "+Return the arithmetic mean." in stale_diff(
        mini, path, built
    ).replace('    "', "")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("two = 2", "x * 2**times  # a line of the solution", None),
        (
            "two = 2",
            'raise ValueError("times must not be negative")',
            "a line of the solution of double",
        ),
        ("two = 2", "import course_grader", "'course_grader'"),
        ('check="mean"', 'cell="mean"', "no check cell"),
        ('grade="mean" points=2', 'cell="mean"', "no grade cell"),
        ('exercise="mean"', 'cell="mean"', "no exercise"),
        ('check="mean"', 'check="double"', "occurs twice"),
        ('grade="mean"', 'grade="double"', "occurs twice"),
        ('exercise="mean"', 'exercise="double"', "occurs twice"),
        ("# %%\ntwo = 2", '# %% setup="imports"\ntwo = 2', "occurs twice"),
        ('setup="imports"', 'setup="Imports!"', "is no id"),
        (" points=3", "", "does not say points="),
        (" minutes=2", "", "does not say minutes="),
        ("return float(x.sum() / x.numel())", "return two", "uses 'two'"),
        ("# 03 · Mini", "Mini", "open with '# '"),
        ("def mean(x: Tensor)", "def mean(x: Tensor", "not plain Python"),
        (
            '# %% grade="mean" points=2\n',
            '# %% grade="mean" points=2\nprint(1)\n',
            "must be empty",
        ),
        (
            '# %% setup="imports"',
            '# %% setup="imports" exercise="x"',
            "marked both",
        ),
    ],
)
def test_a_broken_chapter_is_refused_with_a_sentence(
    mini: Course, old: str, new: str, says: str | None
) -> None:
    change(mini, old, new)

    if says is None:  # short lines of a solution may stand anywhere
        build_chapter(mini, "03_mini")
        return
    with pytest.raises(CourseError) as refused:
        build_chapter(mini, "03_mini")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("hidden_tests", '@check("mean"', '@check("men"', "no such exercise"),
        ("answers", '@accepted("mean")', "@staticmethod", "no answer bank"),
        ("answers", "from . import", "x = y\nfrom . import", "does not load"),
        (
            "answers",
            "breaks=hidden_tests.averages",
            "breaks=hidden_tests.keeps",
            "no check of mean",
        ),
        # the first would be lost, and nobody would know
        (
            "answers",
            "def the_sum(x)",
            "def in_place(x)",
            "two answers are called in_place",
        ),
    ],
)
def test_a_broken_bank_is_refused_with_a_sentence(
    mini: Course, file: str, old: str, new: str, says: str | None
) -> None:
    change(mini, old, new, f"autograde/03_mini/{file}.py")

    with pytest.raises(CourseError) as refused:
        build_chapter(mini, "03_mini")
    assert says in str(refused.value)


def test_an_answer_that_cannot_run_is_refused(mini: Course) -> None:
    change(
        mini,
        "return x.mean().item()",
        "return two",
        "autograde/03_mini/answers.py",
    )

    with pytest.raises(CourseError, match="by_method uses 'two'"):
        build_chapter(mini, "03_mini")


def test_an_exercise_without_checks_is_refused(mini: Course) -> None:
    path = mini.root / "autograde/03_mini/hidden_tests.py"
    path.write_text(path.read_text().partition('@check("mean"')[0])
    change(
        mini,
        "breaks=hidden_tests.averages",
        "breaks=hidden_tests.keeps",
        "autograde/03_mini/answers.py",
    )

    with pytest.raises(CourseError, match="grade cell of mean has no checks"):
        build_chapter(mini, "03_mini")


def test_the_source_runs_as_a_script(course: Course, tmp_path: Path) -> None:
    """On the plain interpreter, as on a machine without Jupyter."""
    path = tmp_path / "03_mini.py"
    path.write_text(MINI_SOURCE)

    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=True
    )

    assert done.stdout.count("looks right") == 2


def test_every_exercise_says_minutes_and_what_it_builds_on(
    course: Course,
) -> None:
    for name in course.chapters():
        chapter = read_chapter(course.source_of(name))
        for exercise in chapter.exercises:
            assert 1 <= exercise.minutes <= 60
            assert exercise.builds_on
        tasks = [c for c in chapter.cells if c.role is Role.TASK]
        for task in tasks:
            assert task.source.count("<details>") >= 2, task.name
            assert task.source.count("<details>") == task.source.count(
                "</details>"
            )
