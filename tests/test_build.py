"""One source: notebooks are built from it, leak nothing, and are never stale."""

from __future__ import annotations

import doctest
import importlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
import pytest
from commands import run_nbgrader
from mini_course import MINI_SOURCE, ROOT

from course_grader.chapter.build import (
    build_chapter,
    built_files,
    stale_diff,
)
from course_grader.chapter.built import built_notebook
from course_grader.chapter.edits import edited, read_edits
from course_grader.chapter.grading import load_grading
from course_grader.chapter.source import Level, Role, read_chapter
from course_grader.chapter.task import example_of
from course_grader.course import Course, CourseError

COURSE = Course(ROOT)
# One chapter in `make test`, the others in `make test-all`.
SOME = [
    pytest.param(one, marks=[] if one.startswith("03") else pytest.mark.slow)
    for one in COURSE.chapters()
]


def change(course: Course, old: str, new: str, file: str = "") -> None:
    path = course.root / (file or "solutions/03_mini/03_mini.py")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.slow  # `make test` runs `course build --check` before the tests
def test_what_is_committed_is_what_is_built(course: Course) -> None:
    for path, built in built_files(course, course.chapters()).items():
        assert stale_diff(course, path, built) == ""


@pytest.mark.parametrize("chapter", SOME)
def test_committed_notebooks_equal_nbgraders_release_step(
    course: Course, tmp_path: Path, chapter: str
) -> None:
    """By the real command line."""
    root = tmp_path / "nbgrader"
    _, source, _ = build_chapter(course, chapter)
    folder = root / "source" / chapter
    folder.mkdir(parents=True)
    nbformat.write(source, folder / f"{chapter}.ipynb")
    done = run_nbgrader(
        root,
        "generate_assignment",
        chapter,
        f"--CourseDirectory.root={root}",
    )
    assert done.returncode == 0, done.stdout
    released = root / "release" / chapter / f"{chapter}.ipynb"
    committed = course.notebook_of(chapter)
    assert json.loads(released.read_text()) == json.loads(committed.read_text())


@pytest.mark.parametrize("chapter", SOME)
def test_what_is_built_is_read_and_not_built_again(
    course: Course, chapter: str
) -> None:
    read = built_notebook(course, load_grading(course, chapter))
    assert read == build_chapter(course, chapter)[2]


@pytest.mark.parametrize(
    ("old", "new", "file"),
    [
        ("# 03 · Mini", "# 03 · Small", ""),
        ("two = 2", "two = 3", ""),
        ("points=3", "points=4", ""),
        ("times: int = 1)", "times: int = 2)", ""),
        ('"""Doubles x, `times` times."""', '"""Doubles x."""', ""),
        ('says="values are doubled"', 'says="twice"', "hidden_tests.py"),
    ],
)
def test_a_notebook_that_its_source_would_not_give_is_not_read(
    mini: Course, old: str, new: str, file: str
) -> None:
    grading, _, released = build_chapter(mini, "03_mini")
    assert built_notebook(mini, grading) is None
    path = mini.notebook_of("03_mini")
    path.parent.mkdir(parents=True)
    nbformat.write(released, path)
    assert built_notebook(mini, grading) == released

    change(mini, old, new, file and f"autograde/03_mini/{file}")
    assert built_notebook(mini, load_grading(mini, "03_mini")) is None

    path.write_text("no notebook")
    assert built_notebook(mini, grading) is None


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
        "draw.normal(7)}",
        'draw.normal(7), "canary": 1}',
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
        (" minutes=6", "", "does not say minutes="),
        (" reading_minutes=1", "", "does not say reading_minutes="),
        (
            'reading_minutes=1 builds_on="nothing"',
            'reading_minutes=1 builds_on="chapter 02"',
            "there is no chapter 02",
        ),
        (' level="core"', "", "double does not say level="),
        ('level="core"', 'level="easy"', "levels are core, more, hard"),
        (
            'setup="imports"',
            'setup="imports" figure="one"',
            "is no reading cell of code",
        ),
        # the text of an exercise
        (" minutes=6", " minutes=9", "one point is about two minutes"),
        ("times` times.", "times`. Times!", "goal of more than one sentence"),
        (">>> double", "double", "an example in a python block"),
        (
            "```python\n>>> mean(torch.tensor([1.0, 2.0]))\n1.5\n```\n",
            "",
            "an example in a python block",
        ),
        ("- A negative", "- A.\n" * 5 + "- A negative", "has 6 rules"),
        (
            "`ValueError`.\n",
            "`ValueError`.\n\nAnd more.\n",
            "between its rules",
        ),
        (
            "`ValueError`.\n",
            "`ValueError`.\n\n**`one`** Which? (a) This.\n\nAnd more.\n",
            "between its questions",
        ),
        ("return float(x.sum() / x.numel())", "return two", "uses 'two'"),
        ("two = 2", "for double in range(2):\n    pass", "gives 'double' to"),
        ("two = 2", "Tensor = list", "gives 'Tensor' to something else"),
        ("two = 2", "def mean(x):\n    pass", "gives 'mean' to something"),
        ("two = 2", "import torch", None),
        (
            '# %% check="mean"\n',
            '# %%\nprint(two)\n\n# %% check="mean"\ntwo = 3\n',
            "gives 'two' to something else",
        ),
        ('# %% check="mean"\n', '# %% check="mean"\ntwo = 3\n', None),
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
        (
            "hidden_tests.py",
            '@check("mean"',
            '@check("men"',
            "no such exercise",
        ),
        ("answers/mean.py", "from c", "x = y\nfrom c", "does not load"),
        # the first would be lost, and nobody would know
        (
            "answers/double.py",
            "def in_place",
            "def by_addition",
            "two answers are called by_addition",
        ),
    ],
)
def test_a_broken_bank_is_refused_with_a_sentence(
    mini: Course, file: str, old: str, new: str, says: str
) -> None:
    change(mini, old, new, f"autograde/03_mini/{file}")

    with pytest.raises(CourseError) as refused:
        build_chapter(mini, "03_mini")
    assert says in str(refused.value)


WORDS = "# That is the sum.\n"
WAS = "-return x.mean().item()\n"
NOW = "+return x.sum().item()\n"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            f": averages\n{WORDS}",
            "\n",
            "no answer bank: autograde/03_mini/answers/mean.py needs right",
        ),
        (
            "averages",
            "keeps",
            "the_sum breaks keeps, which is no check of mean",
        ),
        (
            "from by_method",
            "from nobody",
            "the_sum starts from nobody. An edit",
        ),
        (
            NOW,
            f"{NOW}\nagain from the_sum: averages\n{WORDS}{WAS}+return 1\n",
            "again starts from the_sum. An edit starts from the solution or",
        ),
        ("the_sum", "in_place", "two answers are called in_place"),
        ("the_sum", "by_method", "two answers are called by_method"),
        (
            "the_sum",
            "x\nthe_sum",
            "x: the edits of the solution change nothing",
        ),
        (
            "the_sum from",
            "the_sum of",
            "`the_sum of by_method: averages` is not",
        ),
        ("the_sum", "# Mean\nthe_sum", "the file begins with an answer's name"),
        (WORDS, "", "the_sum is wrong and tells its learner nothing"),
        (": averages", "", "the_sum is right and has words for its learner"),
        (WORDS, "# as nobody\n", "the_sum has the words of nobody, and no"),
        (NOW, "/return 1\n", "begins with a blank, + or -, and `/return 1`"),
        (WAS, "", "a change takes lines away (-) or puts some (+) beside"),
        (NOW, "@@\n-return x\n", "stands nowhere in by_method: `return x`"),
        (
            "item()\n+",
            "means()\n+",
            "the_sum: what is changed stands nowhere in by_method",
        ),
        (
            "x.sum()",
            "(x).mean()",
            "the_sum: the edits of by_method change nothing",
        ),
        ("x.sum()", "x.sum(", "the_sum: edited, by_method is no Python"),
        (
            NOW,
            f"{NOW}@@\n{WAS}+return 1\n",
            "the_sum: two edits of by_method overlap at `return x.mean().item()`",
        ),
    ],
)
def test_a_broken_edit_is_refused_with_a_sentence(
    mini: Course, old: str, new: str, says: str
) -> None:
    change(mini, old, new, "autograde/03_mini/answers/mean.diff")

    with pytest.raises(CourseError) as refused:
        build_chapter(mini, "03_mini")
    assert says in str(refused.value)


def test_lines_that_stand_twice_are_no_place_for_an_edit(mini: Course) -> None:
    bank = "autograde/03_mini/answers/mean"
    change(
        mini,
        "    return",
        "    float(x[0])\n    float(x[0])\n    return",
        f"{bank}.py",
    )
    change(mini, WAS + NOW, "-float(x[0])\n+float(x[1])\n", f"{bank}.diff")

    with pytest.raises(CourseError, match="stands 2 times in by_method"):
        build_chapter(mini, "03_mini")


@pytest.mark.parametrize("kind", ["py", "diff"])
def test_a_bank_for_no_exercise_is_refused(mini: Course, kind: str) -> None:
    folder = mini.autograde / "03_mini" / "answers"
    (folder / f"mean.{kind}").rename(folder / f"men.{kind}")

    with pytest.raises(CourseError, match="there is no such exercise"):
        build_chapter(mini, "03_mini")


def test_an_edit_is_the_answer_it_starts_from_but_for_its_places(
    tmp_path: Path,
) -> None:
    start = (
        "def f(x):\n    if x:\n        y = x\n        g(y)\n\n    return y\n"
    )
    file = tmp_path / "f.diff"
    file.write_text(
        "a\n-    g(y)\n\n return y\n\n"
        "b from a: c, d; ends the process\n# Say\n# so.\n"
        "-y = x\n-g(y)\n+y = 1\n+\n+if y:\n+    g(1)\n\n"
        "e: c\n# as b\n-if x:\n+if y:\n@@\n+h()\n-return y\n+return x\n"
    )

    a, b, e = read_edits(file)

    assert edited(start, a.places) == (
        "def f(x):\n    if x:\n        y = x\n\n    return y\n"
    )
    assert edited(start, b.places) == (
        "def f(x):\n    if x:\n        y = 1\n\n        if y:\n"
        "            g(1)\n\n    return y\n"
    )
    assert edited(start, e.places) == (
        "def f(x):\n    if y:\n        y = x\n        g(y)\n\n"
        "    h()\n    return x\n"
    )
    assert (a.start, a.breaks, a.tells) == (None, (), "")
    assert (b.start, b.breaks, b.tells) == ("a", ("c", "d"), "Say so.")
    assert (b.ends_process, e.ends_process, e.words_of) == (True, False, "b")
    assert list(read_edits(tmp_path / "none.diff")) == []


def test_an_answer_that_cannot_run_is_refused(mini: Course) -> None:
    change(
        mini,
        "return x.mul_(2**times)",
        "return x.mul_(two)",
        "autograde/03_mini/answers/double.py",
    )

    with pytest.raises(CourseError, match="in_place uses 'two'"):
        build_chapter(mini, "03_mini")


def test_an_exercise_without_checks_is_refused(mini: Course) -> None:
    path = mini.root / "autograde/03_mini/hidden_tests.py"
    path.write_text(path.read_text().partition('@check("mean"')[0])
    (mini.root / "autograde/03_mini/answers/mean.py").unlink()

    with pytest.raises(CourseError, match="grade cell of mean has no checks"):
        build_chapter(mini, "03_mini")


def test_the_source_runs_as_a_script(course: Course, tmp_path: Path) -> None:
    """On the plain interpreter, as on a machine without Jupyter."""
    path = tmp_path / "03_mini.py"
    path.write_text(MINI_SOURCE)

    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=True
    )

    assert done.stdout.count("visible checks pass; hidden ones count") == 2


def folded(task: str, summary: str) -> str:
    """What folds open below this summary in an exercise's text."""
    _, _, rest = task.partition(f"<summary>{summary}</summary>\n\n")
    return rest.partition("</details>")[0]


def task_cells(course: Course, chapter: str) -> dict[str, str]:
    """The texts of a chapter's exercises, as learners get them."""
    notebook = nbformat.read(course.notebook_of(chapter), as_version=4)
    by_id = {cell.id: cell.source for cell in notebook.cells}
    return {
        cell.name: by_id[cell.id]
        for cell in read_chapter(course.source_of(chapter)).cells
        if cell.role is Role.TASK
    }


@pytest.mark.parametrize("chapter", COURSE.chapters())
def test_a_text_says_all_that_is_checked_in_the_order_of_the_checks(
    course: Course, chapter: str
) -> None:
    grading = load_grading(course, chapter)
    for exercise, text in task_cells(course, chapter).items():
        shown = [
            re.sub(r"\\(.)", r"\1", line.removeprefix("- "))
            for line in folded(text, "All that is checked").splitlines()
            if line.startswith("- ")
        ]
        assert shown == [one.says for one in grading.checks_of(exercise)]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A process that has imported what takes seconds and done nothing else: what
    tests before left switched on in this one is not there."""
    with ProcessPoolExecutor(
        1,
        multiprocessing.get_context("spawn"),
        importlib.import_module,
        ("torch._dynamo",),
    ) as executor:
        executor.submit(importlib.import_module, "matplotlib.pyplot")
        yield executor


def told_in_a_fork(source: Path, folder: Path) -> list[str]:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(told_by_examples, (source, folder))


def told_by_examples(source: Path, folder: Path) -> list[str]:
    """What doctest says of the examples in this chapter's exercises, run in
    `folder`; nothing if they give what they show."""
    os.chdir(folder)
    read = read_chapter(source)
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in read.cells:
        if cell.role in (Role.SETUP, Role.EXERCISE):
            exec(compile(cell.source, cell.id, "exec"), names)
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    told: list[str] = []
    for cell in read.cells:
        if cell.role is Role.TASK:
            parsed = doctest.DocTestParser().get_doctest(
                example_of(cell.source), dict(names), cell.name, None, 0
            )
            if not parsed.examples:
                told.append(f"{cell.name} shows no example")
            runner.run(parsed, out=told.append)
    return told


@pytest.mark.parametrize("chapter", COURSE.chapters())
def test_examples_of_the_texts_give_what_they_show(
    course: Course,
    chapter: str,
    tmp_path: Path,
    elsewhere: ProcessPoolExecutor,
) -> None:
    told = elsewhere.submit(
        told_in_a_fork, course.source_of(chapter), tmp_path
    ).result()
    assert not told, "".join(told)


def test_the_core_of_the_course_takes_at_most_twelve_hours(
    course: Course,
) -> None:
    minutes = 0
    for name in course.chapters():
        chapter = read_chapter(course.source_of(name))
        core = chapter.minutes(Level.CORE)
        assert core, f"{name} has no core exercise"
        minutes += chapter.reading_minutes + core
    assert minutes <= 12 * 60


def test_chapters_lead_to_the_previous_and_the_next(course: Course) -> None:
    chapters = course.chapters()
    for place, name in enumerate(chapters):
        cells = nbformat.read(course.notebook_of(name), as_version=4).cells
        assert cells[-1].source in cells[0].source
        links = re.findall(r"\(\.\./(\w+)/\1\.ipynb\)", cells[-1].source)
        beside = chapters[max(place - 1, 0) : place + 2]
        assert links == [one for one in beside if one != name]


@pytest.mark.parametrize(
    ("option", "begins"), [("figure", "Figure: "), ("folded", "")]
)
def test_a_cell_that_is_folded_keeps_its_name(
    mini: Course, option: str, begins: str
) -> None:
    change(mini, "# %%\ntwo", f'# %% cell="x" {option}="Two, drawn"\ntwo')
    _, _, released = build_chapter(mini, "03_mini")

    (cell,) = (one for one in released.cells if one.id == "reading-x")
    assert cell.source == f"#@title {begins}Two, drawn\ntwo = 2"
    assert cell.metadata == {
        "jupyter": {"source_hidden": True},
        "cellView": "form",
    }


def test_words_of_a_check_stay_words(mini: Course) -> None:
    change(
        mini,
        "values are doubled",
        "a *b* <i> `c_*` [d](e) f_g",
        "autograde/03_mini/hidden_tests.py",
    )
    _, _, released = build_chapter(mini, "03_mini")

    (task,) = (one for one in released.cells if one.id == "task-double")
    shown = folded(task.source, "All that is checked").splitlines()
    assert shown == [
        r"- a \*b\* \<i\> `c_*` \[d\](e) f\_g",
        "- the input is kept",
        "  - a view of it, too",
        "- negative times",
    ]


def test_readmes_table_is_built(mini: Course) -> None:
    readme = mini.root / "README.md"
    marks = (
        "<!-- table of chapters: `course build` writes it -->\n",
        "<!-- end of the table -->\n",
    )
    readme.write_text(f"# Mini\n\n{marks[0]}old\n{marks[1]}\nmore\n")

    built = built_files(mini, [])[readme]

    row = (
        "| [03 · Mini](notebooks/03_mini/03_mini.ipynb) | Double · Mean "
        "| 11 | 7 | 5 |\n"
    )
    assert row in built
    assert built.startswith(f"# Mini\n\n{marks[0]}|")
    assert built.endswith(f"|\n{marks[1]}\nmore\n")

    settings = mini.root / "pyproject.toml"
    site = '\n[tool.course]\nsite = "https://example.org/tricks/"\n'
    settings.write_text(settings.read_text() + site)
    built = built_files(mini, [])[readme]
    assert "| [03 · Mini](https://example.org/tricks/03_mini.html) |" in built


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
