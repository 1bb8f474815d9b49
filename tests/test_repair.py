"""Whatever is submitted becomes a notebook that nbgrader grades, with all of
the learner's work in it, or is refused with a sentence that says what to do."""

from __future__ import annotations

import ast
import copy
import io
import json
import logging
import os
import random
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import nbformat
import pytest
from damage import ON_BYTES, ON_CELLS, damaged, damaged_by
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader import preprocessors as nbgrader_steps
from nbgrader.api import Gradebook

from course_grader.grading import notebook_file
from course_grader.grading.repair import Repaired, repair

CHAPTER = "03_small"

# A small chapter: two set-up cells, three exercises (one of two names), texts.

SETUP_IMPORTS = "import math\nfrom collections import Counter"
SETUP_DATA = "labels = [2, 0, 1, 2]\nlosses = [0.5, 1.5, 4.0]"

ONE_HOT = '''\
def one_hot(labels, num_classes):
    """One-hot rows of the labels.

    Args:
        labels: class numbers, 0 to num_classes − 1.
    Returns:
        a list of len(labels) × num_classes.
    """
'''
ONE_HOT_SOLVED = (
    ONE_HOT
    + """\
    rows = []
    for label in labels:
        row = [0.0] * num_classes
        row[label] = 1.0

        rows.append(row)
    return rows"""
)

METER = '''\
class LossMeter:
    """Keeps the mean of what it was given."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
'''
METER_MIDDLE = '''

def merged(one, other):
    """One meter that saw what both saw."""
'''
METER_SOLVED = (
    METER
    + """\
        self.total += value * n
        self.count += n

    @property
    def mean(self):
        return self.total / self.count
"""
    + METER_MIDDLE
    + """\
    both = LossMeter()
    both.total = one.total + other.total
    both.count = one.count + other.count
    return both"""
)

CROSS_ENTROPY = '''\
def cross_entropy(logits, label):
    """Minus the log-probability of the label, café included."""
'''
CROSS_ENTROPY_SOLVED = (
    CROSS_ENTROPY
    + """\
    largest = max(logits)
    total = sum(math.exp(one - largest) for one in logits)
    # the label's own logit, shifted like the others
    return math.log(total) - (logits[label] - largest)"""
)
TODO = "# YOUR CODE HERE\n{indent}raise NotImplementedError()"


def stub(head: str, indent: str = "    ") -> str:
    return head + indent + TODO.format(indent=indent)


EXERCISES: dict[str, tuple[str, str, float]] = {
    "one_hot": (stub(ONE_HOT), ONE_HOT_SOLVED, 3),
    "loss_meter": (
        stub(METER, " " * 8) + "\n" + stub(METER_MIDDLE),
        METER_SOLVED,
        4,
    ),
    "cross_entropy": (stub(CROSS_ENTROPY), CROSS_ENTROPY_SOLVED, 2.5),
}


def works(exercise: str, names: dict[str, Any]) -> bool:
    """Whether what was defined behaves like the solution."""
    try:
        match exercise:
            case "one_hot":
                rows = names["one_hot"]([1, 0], 3)
                return bool(rows == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
            case "loss_meter":
                one, other = names["LossMeter"](), names["LossMeter"]()
                one.update(2.0, n=3)
                other.update(6.0)
                return bool(names["merged"](one, other).mean == 3.0)
            case _:
                loss = names["cross_entropy"]([0.0, 0.0], 1)
                return abs(loss - 0.6931471805599453) < 1e-12
    except Exception:
        return False


def role(
    grade_id: str,
    *,
    grade: bool = False,
    solution: bool = False,
    locked: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    marks: dict[str, Any] = {
        "cell_type": "code",
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        marks["points"] = points
    return {"nbgrader": marks}


def chapter(*, solved: bool) -> NotebookNode:
    cells = [
        new_markdown_cell("# 03 · A small chapter\n\nWhat it is about."),
        new_code_cell("import course_utils", id="setup-course-utils"),
        new_code_cell(
            SETUP_IMPORTS, metadata=role("setup_imports", locked=True)
        ),
        new_markdown_cell(
            "## The problem\n\nLabels are numbers, losses are not."
        ),
        new_code_cell("for label in labels:\n    print(label * 2.5)"),
        new_code_cell(SETUP_DATA, metadata=role("setup_data", locked=True)),
    ]
    for number, (name, (todo, answer, points)) in enumerate(EXERCISES.items()):
        cells += [
            new_markdown_cell(
                f"### Exercise {number + 1} · {name}\n\n"
                f"*{points} points · about 10 minutes*\n\n"
                "Fill in what is missing."
            ),
            new_code_cell(
                answer if solved else todo, metadata=role(name, solution=True)
            ),
            new_code_cell(
                f'with visible_check("{name}"):\n'
                f'    got = call("{name}", {number})\n'
                f'    expect("the result", got, "{name} {number}")',
                metadata=role(
                    f"{name}_visible", grade=True, locked=True, points=0
                ),
            ),
            new_code_cell(
                "# Graded by hidden checks after you submit.",
                metadata=role(
                    f"{name}_hidden", grade=True, locked=True, points=points
                ),
            ),
            new_code_cell(f"history = [{number}] * 3\nprint(history)"),
        ]
    cells.append(new_markdown_cell("## Summary\n\nWhat you can do now."))
    for number, cell in enumerate(cells):
        if cell.id != "setup-course-utils":
            cell.id = f"cell-of-the-chapter-{number:02d}"
    spec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": spec})
    notebook, _ = quiet(nbgrader_steps.LockCells).preprocess(notebook, {})
    notebook, _ = quiet(nbgrader_steps.ComputeChecksums).preprocess(
        notebook, {}
    )
    return notebook


def quiet(step: Callable[..., Any]) -> Any:
    made = step()
    made.log.setLevel(logging.CRITICAL)
    return made


RELEASED = chapter(solved=False)
SOLVED = chapter(solved=True)


def raw(notebook: NotebookNode = SOLVED) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(nbformat.writes(notebook))
    for cell in tree["cells"]:
        cell["source"] = "".join(cell["source"])
    return tree


def as_bytes(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def with_id(tree: dict[str, Any], grade_id: str) -> dict[str, Any]:
    found: dict[str, Any]
    for found in tree["cells"]:
        marks = found["metadata"].get("nbgrader", {})
        if marks.get("grade_id") == grade_id:
            return found
    raise KeyError(grade_id)


def place(tree: dict[str, Any], grade_id: str) -> int:
    at: int = tree["cells"].index(with_id(tree, grade_id))
    return at


def added(source: str, cell_type: str = "code") -> dict[str, Any]:
    cell = {"cell_type": cell_type, "metadata": {}, "source": source}
    if cell_type == "code":
        cell |= {"outputs": [], "execution_count": None}
    return cell


def runs(cell: NotebookNode, changed: tuple[str, ...]) -> bool:
    marks = cell.metadata.get("nbgrader", {})
    course = bool(marks) and not marks["grade"]
    return cell.cell_type == "code" and (course or cell.id in changed)


def executed(repaired: Repaired) -> dict[str, Any]:
    """What the names of the notebook are after what must run has run."""
    assert repaired.notebook is not None
    names: dict[str, Any] = {}
    for cell in repaired.notebook.cells:
        if runs(cell, repaired.changed):
            with (
                warnings.catch_warnings(),
                redirect_stdout(io.StringIO()),
                redirect_stderr(io.StringIO()),
            ):
                warnings.simplefilter("ignore")
                try:
                    exec(cell.source, names)
                except Exception:
                    continue
    return names


def lost(repaired: Repaired) -> list[str]:
    """The exercises whose answer is not in the repaired notebook."""
    names = executed(repaired)
    return [one for one in EXERCISES if not works(one, names)]


def source(repaired: Repaired, grade_id: str) -> str:
    assert repaired.notebook is not None
    for cell in repaired.notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id:
            return str(cell.source)
    raise KeyError(grade_id)


def assert_sound(repaired: Repaired) -> None:
    """The release, with nothing but text of the learner's in it."""
    notebook = repaired.notebook
    assert notebook is not None
    assert not repaired.refused
    assert all(note.endswith(".") for note in repaired.notes)
    nbformat.validate(notebook)
    json.dumps(notebook, ensure_ascii=False).encode("utf-8")
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids))
    by_id = {cell.id: cell for cell in notebook.cells}
    release = [one for one in notebook.cells if not one.id.startswith("added-")]
    assert [one.id for one in release] == [one.id for one in RELEASED.cells]
    for cell in RELEASED.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks:
            assert by_id[cell.id].metadata == cell.metadata
            assert by_id[cell.id].cell_type == cell.cell_type
        if marks and not marks["solution"]:
            assert by_id[cell.id].source == cell.source
    for cell in notebook.cells:
        assert cell.get("outputs", []) == []
        if cell.id.startswith("added-"):
            assert cell.metadata == {}
    assert set(repaired.changed) <= set(ids)
    assert notebook.metadata == RELEASED.metadata


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a gradebook that knows the chapter."""
    url = f"sqlite:///{tmp_path_factory.mktemp('gradebook') / 'gradebook.db'}"
    with pytest.MonkeyPatch.context() as patch:
        # A new gradebook calls alembic by its name.
        beside_python = Path(sys.executable).parent
        patch.setenv("PATH", str(beside_python), prepend=os.pathsep)
        with Gradebook(url) as book:
            book.add_assignment(CHAPTER)
    resources = {
        "nbgrader": {
            "notebook": CHAPTER,
            "assignment": CHAPTER,
            "db_url": url,
        }
    }
    quiet(nbgrader_steps.SaveCells).preprocess(
        copy.deepcopy(RELEASED), resources
    )
    with Gradebook(url) as book:
        book.add_student("ada")
        book.add_submission(CHAPTER, "ada")
    return url


def through_nbgrader(repaired: Repaired, url: str) -> NotebookNode:
    """The notebook after nbgrader's own steps before and after execution."""
    assert repaired.notebook is not None
    text = nbformat.writes(repaired.notebook)
    notebook = nbformat.reads(text, as_version=4)
    resources = {
        "nbgrader": {
            "notebook": CHAPTER,
            "assignment": CHAPTER,
            "student": "ada",
            "db_url": url,
        }
    }
    for step in (
        nbgrader_steps.ClearOutput,
        nbgrader_steps.DeduplicateIds,
        nbgrader_steps.OverwriteKernelspec,
        nbgrader_steps.OverwriteCells,
        nbgrader_steps.CheckCellMetadata,
        nbgrader_steps.SaveAutoGrades,
        nbgrader_steps.CheckCellMetadata,
    ):
        notebook, resources = quiet(step).preprocess(notebook, resources)
    return notebook


def said(repaired: Repaired, *words: str) -> bool:
    """Whether one note holds all these words."""
    return any(all(word in note for word in words) for note in repaired.notes)


# Whole notebooks.


def test_a_solved_notebook_comes_back_as_it_is() -> None:
    repaired = repair(nbformat.writes(SOLVED).encode(), RELEASED)
    assert_sound(repaired)
    assert repaired.notebook is not None
    assert [(cell.id, cell.source) for cell in repaired.notebook.cells] == [
        (cell.id, cell.source) for cell in SOLVED.cells
    ]
    assert repaired.notes == repaired.changed == ()


def test_an_untouched_notebook_comes_back_as_it_is() -> None:
    repaired = repair(nbformat.writes(RELEASED).encode(), RELEASED)
    assert repaired.notebook == RELEASED
    assert repaired.notes == repaired.changed == ()


def test_repairing_again_changes_nothing_more() -> None:
    data, _ = damaged(SOLVED, RELEASED, seed=12)
    once = repair(data, RELEASED)
    again = repair(nbformat.writes(once.notebook).encode(), RELEASED)
    assert again.notebook is not None
    sources = [
        [(cell.cell_type, cell.source) for cell in one.notebook.cells]
        for one in (once, again)
        if one.notebook is not None
    ]
    assert sources[0] == sources[1]


def test_the_same_bytes_always_give_the_same_result() -> None:
    before = copy.deepcopy(RELEASED)
    for seed in range(20):
        data, what = damaged(SOLVED, RELEASED, seed)
        assert repair(data, RELEASED) == repair(data, RELEASED), what
    assert before == RELEASED


@pytest.mark.parametrize("kind", [*ON_CELLS, *ON_BYTES])
def test_each_kind_of_damage_is_repaired(kind: str, gradebook: str) -> None:
    for seed in range(6):
        data, _ = damaged_by(SOLVED, RELEASED, [kind], random.Random(seed))
        repaired = repair(data, RELEASED)
        assert_sound(repaired)
        assert lost(repaired) == [], repaired.notes
    graded = through_nbgrader(repaired, gradebook)
    assert [cell.source for cell in graded.cells] == [
        cell.source for cell in repaired.notebook.cells
    ]


@pytest.mark.parametrize(
    "seeds",
    [range(200), pytest.param(range(200, 500), marks=pytest.mark.slow)],
)
def test_damage_of_several_kinds_is_repaired_nearly_always(
    seeds: range,
) -> None:
    incomplete = []
    for seed in seeds:
        data, what = damaged(SOLVED, RELEASED, seed)
        repaired = repair(data, RELEASED)
        assert_sound(repaired)
        missed = lost(repaired)
        if missed:
            incomplete.append((seed, what, missed))
            for exercise in missed:
                assert said(repaired, exercise), (seed, what)
    assert len(incomplete) <= 0.005 * len(seeds), incomplete


# What is refused.


def other_chapter() -> bytes:
    tree = raw()
    for cell in tree["cells"]:
        marks = cell["metadata"].get("nbgrader")
        if marks and not marks["grade_id"].startswith("setup_"):
            marks["grade_id"] = "other_" + marks["grade_id"]
        cell["source"] = cell["source"].replace("one_hot", "clip")
        cell["source"] = cell["source"].replace("cross_entropy", "scale")
        cell["source"] = cell["source"].replace("LossMeter", "Scaler")
        cell["source"] = cell["source"].replace("merged", "unscaled")
        cell["id"] += "-x"
    return as_bytes(tree)


def zipped() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("03.ipynb", nbformat.writes(SOLVED))
    return archive.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\0\0", "empty"),
        (zipped(), "zip archive"),
        (b"\x1f\x8b\x08rest", "gzip"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"<!DOCTYPE html><html>{}</html>", "web page"),
        (b"import torch\nprint(torch.ones(3))\n", "no notebook"),
        (b'{"answer": 42}', "no notebook"),
        (b"[1, 2, 3]", "no notebook"),
        (b"null", "no notebook"),
        (b'"text"', "no notebook"),
        (b'{"cells": "none"}', "no notebook"),
        (b"\xff\xfe\x00", "no notebook"),
        (b'{"cells": []}', "A small chapter"),
        (as_bytes({"cells": [added("print(1)")]}), "A small chapter"),
        (other_chapter(), "another chapter"),
        (nbformat.writes(SOLVED).encode()[:900], "breaks off"),
    ],
)
def test_what_is_no_notebook_of_the_chapter_is_refused(
    data: bytes, words: str
) -> None:
    repaired = repair(data, RELEASED)
    assert repaired.notebook is None
    assert words in repaired.refused
    assert repaired.refused.endswith(".")
    assert "\n" not in repaired.refused


def test_a_file_that_is_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = nbformat.writes(SOLVED).encode()
    monkeypatch.setattr(notebook_file, "MAX_FILE_BYTES", len(data) - 1)
    assert "clear the outputs" in repair(data, RELEASED).refused
    monkeypatch.setattr(notebook_file, "MAX_FILE_BYTES", len(data))
    assert repair(data, RELEASED).refused == ""


def test_one_pasted_cell_of_another_chapter_refuses_nothing() -> None:
    tree = raw()
    cell = added("def clip(): ...")
    cell["metadata"] = role("clip", solution=True)
    tree["cells"].append(cell)
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []


def test_a_chapter_without_its_exercises_is_graded_as_not_attempted() -> None:
    tree = raw()
    tree["cells"] = [
        cell for cell in tree["cells"] if "nbgrader" not in cell["metadata"]
    ]
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == list(EXERCISES)
    for exercise in EXERCISES:
        assert said(repaired, exercise, "not attempted")
        assert source(repaired, exercise) == EXERCISES[exercise][0]


# Damaged files.


def test_what_stands_before_the_break_of_a_file_is_graded() -> None:
    data = nbformat.writes(SOLVED).encode()
    inside_the_last_answer = data.index(b"largest = max")
    repaired = repair(data[:inside_the_last_answer], RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == ["cross_entropy"]
    assert said(repaired, "breaks off inside cell 18")
    assert said(repaired, "cross_entropy", "not attempted")
    # half an answer is no answer
    assert source(repaired, "cross_entropy") == EXERCISES["cross_entropy"][0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-be", "cp1252"])
def test_a_file_in_another_encoding_is_read(encoding: str) -> None:
    tree = raw()
    with_id(tree, "one_hot")["source"] += "\n# naïve, but it works"
    text = json.dumps(tree, ensure_ascii=False).replace("−", "-")
    repaired = repair(text.encode(encoding), RELEASED)
    assert "naïve" in source(repaired, "one_hot")
    assert said(repaired, "read as")


def test_a_few_broken_bytes_do_not_change_the_encoding() -> None:
    data = json.dumps(raw(), ensure_ascii=False).encode()
    data = data.replace(b"Summary", b"Summary \xff")
    repaired = repair(data, RELEASED)
    assert "café" in source(repaired, "cross_entropy")
    assert said(repaired, "1 characters", "UTF-8")


def test_a_character_cut_in_two_at_the_end_is_no_other_encoding() -> None:
    tree = raw()
    tree["cells"][-1]["source"] = "Ende gut, alles gut: ü"
    data = json.dumps(tree, ensure_ascii=False).encode()
    end = data.rindex("ü".encode()) + 1
    repaired = repair(data[:end], RELEASED)
    assert lost(repaired) == []
    assert "café" in source(repaired, "cross_entropy")
    assert not said(repaired, "read as")


def test_a_byte_that_windows_does_not_know_stops_nothing() -> None:
    text = json.dumps(raw(), ensure_ascii=False).replace("−", "-")
    data = text.encode("latin-1").replace(b"\xe9", b"\xe9\x81")
    assert lost(repair(data, RELEASED)) == []


def test_reading_a_damaged_file_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_file, "MAX_TOKENS", 2000)
    data = as_bytes(raw())[:-1] + b', "x": [' + b"?," * 5000
    repaired = repair(data, RELEASED)
    assert lost(repaired) == []
    assert said(repaired, "breaks off after cell 22")


def version_1() -> dict[str, Any]:
    cells = []
    for cell in raw()["cells"]:
        kind = "code" if cell["cell_type"] == "code" else "text"
        cells.append({"cell_type": kind, kind: cell["source"]})
    return {"cells": cells}


def version_3() -> dict[str, Any]:
    tree = raw()
    for cell in tree["cells"]:
        del cell["id"]
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source").splitlines(keepends=True)
    sheets = [{"cells": tree["cells"][:9]}, {"cells": tree["cells"][9:]}]
    return {"nbformat": 3, "metadata": {}, "worksheets": sheets}


@pytest.mark.parametrize(
    ("tree", "note"),
    [
        (version_1(), ""),
        (version_3(), "old format 3"),
        ({**raw(), "nbformat": 5}, "format 5"),
        ({**raw(), "nbformat": True, "nbformat_minor": "x"}, ""),
        ({"cells": dict(enumerate(raw()["cells"]))}, ""),
        (raw()["cells"], ""),
    ],
)
def test_notebooks_of_all_formats_are_read(tree: Any, note: str) -> None:
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []
    assert not note or said(repaired, note)


def test_odd_characters_do_not_reach_the_graded_notebook() -> None:
    tree = raw()
    with_id(tree, "one_hot")["source"] += "\r\n# \ud83d \0 done\r"
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert source(repaired, "one_hot").endswith("\n# \ufffd  done")
    assert lost(repaired) == []


HOSTILE = {
    "nesting": b'{"cells": ' + b"[" * 200_000,
    "nested metadata": as_bytes(raw()).replace(
        b'"metadata": {}', b'"metadata": ' + b'{"a":' * 50_000 + b"}" * 50_000
    ),
    "a long number": as_bytes(raw()).replace(
        b'"nbformat": 4', b'"nbformat": ' + b"9" * 100_000
    ),
    "brackets": as_bytes(raw())[:-1] + b', "x": [' + b"[]," * 600_000 + b"[]]}",
    "text between": as_bytes(raw()).replace(b'"id"', b'<<< HEAD\n"id"'),
    "bad escapes": as_bytes(raw()).replace(
        b"What it is about", b"\\q \\\\q \\u12 \\u00e9"
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_json_neither_stops_nor_fools_the_reader(kind: str) -> None:
    repaired = repair(HOSTILE[kind], RELEASED)
    if kind == "nesting":
        assert repaired.refused
    else:
        assert_sound(repaired)
        assert lost(repaired) == []


@pytest.mark.parametrize(
    "code",
    [
        "(" * 5000,
        "-" * 50_000 + "1",
        "x" + ".y" * 50_000,
        "if 1: pass\n" + "elif 1: pass\n" * 5000,
        "x = " + "9" * 5000,
        "def one_hot(",
    ],
)
def test_code_that_cannot_be_read_is_kept_as_it_is(code: str) -> None:
    tree = raw()
    with_id(tree, "one_hot")["source"] = code
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert source(repaired, "one_hot") == code.rstrip()
    assert lost(repaired) == ["one_hot"]


def test_what_is_beyond_the_limits_is_left_out_with_a_note() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    tree["cells"][at]["source"] = "x = '" + "9" * 300_000 + "'"
    tree["cells"] += [added(f"print({number})") for number in range(2500)]
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == ["one_hot"]
    assert said(repaired, f"Cell {at + 1} was left out")
    assert said(repaired, "exercise one_hot was empty", "not attempted")
    assert said(repaired, "2,522 cells", "2,000")
    assert said(repaired, "1,978 cells", "500")
    assert len(repaired.changed) == 500


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["code", "one_hot", "source", "metadata", "nbgrader"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "cells",
                    "worksheets",
                    "source",
                    "input",
                    "metadata",
                    "nbgrader",
                    "grade_id",
                    "cell_type",
                    "id",
                    "outputs",
                    "nbformat",
                    "points",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)
QUICK = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def assert_an_answer(repaired: Repaired) -> None:
    """Either a sound notebook or one sentence."""
    if repaired.notebook is None:
        assert repaired.refused.endswith(".")
    else:
        assert_sound(repaired)


@QUICK
@given(JSON)
def test_any_json_gets_an_answer(tree: Any) -> None:
    assert_an_answer(repair(as_bytes(tree), RELEASED))


@QUICK
@given(st.binary(max_size=200), st.integers(0, 20_000), st.booleans())
def test_any_bytes_get_an_answer(junk: bytes, at: int, over: bool) -> None:
    assert_an_answer(repair(junk, RELEASED))
    data = as_bytes(raw())
    data = data[:at] + junk + data[at + over * len(junk) :]
    assert_an_answer(repair(data, RELEASED))


@QUICK
@given(st.lists(st.tuples(st.integers(0, 10**6), JSON), max_size=4))
def test_any_value_anywhere_in_a_notebook_gets_an_answer(
    changes: list[tuple[int, Any]],
) -> None:
    tree = raw()
    for where, value in changes:
        slots: list[tuple[Any, Any]] = []
        waiting: list[Any] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict | list):
                keys = (
                    list(node) if isinstance(node, dict) else range(len(node))
                )
                slots += [(node, key) for key in keys]
                waiting += [node[key] for key in keys]
        if slots:
            node, key = slots[where % len(slots)]
            node[key] = value
    assert_an_answer(repair(as_bytes(tree), RELEASED))


# Exercise cells.


def test_a_split_exercise_is_put_together() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    head, _, tail = ONE_HOT_SOLVED.partition("    for label")
    tree["cells"][at]["source"] = head.rstrip("\n")
    second = copy.deepcopy(tree["cells"][at])
    second["source"] = "    for label" + tail
    tree["cells"].insert(at + 1, second)
    for metadata in (second["metadata"], {}):
        second["metadata"] = metadata
        repaired = repair(as_bytes(tree), RELEASED)
        assert source(repaired, "one_hot") == ONE_HOT_SOLVED
        assert repaired.changed == ()
        assert said(repaired, "one_hot", "split")


def test_an_exercise_split_within_a_line_is_put_together() -> None:
    tree = raw()
    at = place(tree, "cross_entropy")
    head, tail = CROSS_ENTROPY_SOLVED.split("largest = m", 1)
    second = copy.deepcopy(tree["cells"][at])
    tree["cells"][at]["source"] = head + "largest = m"
    second["source"] = tail
    tree["cells"].insert(at + 1, second)
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "cross_entropy") == CROSS_ENTROPY_SOLVED


def test_of_two_cells_with_one_id_the_untouched_one_does_not_count() -> None:
    for side in (0, 1):
        tree = raw()
        at = place(tree, "one_hot")
        twin = copy.deepcopy(tree["cells"][at])
        twin["source"] = "# kept\n" + EXERCISES["one_hot"][0]
        tree["cells"].insert(at + side, twin)
        repaired = repair(as_bytes(tree), RELEASED)
        assert source(repaired, "one_hot") == ONE_HOT_SOLVED
        assert repaired.changed == ()


def test_of_two_answers_with_one_id_the_last_complete_one_counts() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    first = copy.deepcopy(tree["cells"][at])
    first["source"] = "def one_hot(labels, num_classes):\n    return labels"
    broken = copy.deepcopy(first)
    broken["source"] = "def one_hot(labels, num_classes:"
    tree["cells"].insert(at, first)
    tree["cells"].insert(at + 2, broken)
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED
    assert said(repaired, "one_hot", f"cell {at + 2}, is graded")


def test_a_cell_that_was_copied_for_another_exercise_answers_that_one() -> None:
    tree = raw()
    answer = copy.deepcopy(with_id(tree, "one_hot"))
    answer["source"] = CROSS_ENTROPY_SOLVED
    todo = with_id(tree, "cross_entropy")
    todo["source"] = EXERCISES["cross_entropy"][0]
    tree["cells"].append(answer)
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED
    assert source(repaired, "cross_entropy") == CROSS_ENTROPY_SOLVED
    assert said(repaired, "graded as cross_entropy")


@pytest.mark.parametrize("cell_type", ["markdown", "raw", "heading", "Code", 3])
def test_a_retyped_exercise_is_code_again(cell_type: Any) -> None:
    tree = raw()
    cell = with_id(tree, "one_hot")
    cell["cell_type"] = cell_type
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED
    became_text = cell_type in ("markdown", "raw", "heading")
    assert said(repaired, "one_hot", "graded as code") == became_text


def test_two_exercises_merged_into_one_cell_are_parted() -> None:
    tree = raw()
    gone = tree["cells"].pop(place(tree, "cross_entropy"))
    kept = with_id(tree, "one_hot")
    kept["source"] += "\n\n\n# and the next\n" + gone["source"]
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot").strip() == ONE_HOT_SOLVED
    assert source(repaired, "cross_entropy").strip() == (
        "# and the next\n" + CROSS_ENTROPY_SOLVED
    )
    assert said(repaired, "cross_entropy", "cell of exercise one_hot")


def test_a_check_merged_into_its_exercise_is_taken_out() -> None:
    tree = raw()
    check = tree["cells"].pop(place(tree, "one_hot_visible"))
    with_id(tree, "one_hot")["source"] += "\n\n" + check["source"]
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED
    assert said(repaired, "visible check of exercise one_hot", "put back")


def test_a_note_in_an_exercise_cell_does_not_undo_the_answer() -> None:
    tree = raw()
    cell = with_id(tree, "one_hot")
    cell["source"] = f"This one was hard!\n\n{ONE_HOT_SOLVED}\n\nWas it?"
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == []
    assert said(repaired, "one_hot", "no Python", "left out")


def test_cells_without_any_mark_are_recognised_by_their_text() -> None:
    tree = raw()
    random.Random(3).shuffle(tree["cells"])
    for cell in tree["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    with_renamed = "# my own\n" + ONE_HOT_SOLVED
    for cell in tree["cells"]:
        if cell["source"] == ONE_HOT_SOLVED:
            cell["source"] = with_renamed
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == with_renamed
    assert source(repaired, "loss_meter") == METER_SOLVED
    assert repaired.changed == ()
    assert said(repaired, "recognised by their text")
    assert said(repaired, "order")


def test_an_unmarked_exercise_with_a_wrong_name_is_still_its_answer() -> None:
    tree = raw()
    wrong_name = ONE_HOT_SOLVED.replace("def one_hot", "def onehot")
    cell = with_id(tree, "one_hot")
    cell["source"], cell["metadata"] = wrong_name, {}
    del cell["id"]
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == wrong_name


def test_a_helper_in_a_part_of_its_own_still_runs() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    helper, use = copy.deepcopy(tree["cells"][at]), tree["cells"][at]
    helper["source"] = "def checked(made):\n    return made"
    use["source"] = "@checked\n" + ONE_HOT_SOLVED
    tree["cells"].insert(at, helper)
    trial = copy.deepcopy(helper)
    trial["source"] = "print(one_hot([0], 2))"
    tree["cells"].insert(at + 2, trial)
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []
    assert len(repaired.changed) == 2


def test_exercises_that_cannot_be_parted_run_as_a_whole() -> None:
    tree = raw()
    del tree["cells"][place(tree, "cross_entropy")]
    both = with_id(tree, "one_hot")
    both["source"] = (
        f"if True:\n    pass\n{ONE_HOT_SOLVED}\n\n{CROSS_ENTROPY_SOLVED}\n\n"
        "one_hot, cross_entropy = one_hot, cross_entropy"
    ).replace("def one_hot", "one_hot = cross_entropy = None\ndef one_hot")
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []


def test_a_name_that_two_exercises_ask_for_tells_nothing() -> None:
    released, solved = copy.deepcopy(RELEASED), copy.deepcopy(SOLVED)
    for notebook in (released, solved):
        cell = next(c for c in notebook.cells if "def cross_ent" in c.source)
        todo, _, _ = EXERCISES["cross_entropy"]
        cell.source = todo.replace("cross_entropy", "one_hot")
    repaired = repair(nbformat.writes(solved).encode(), released)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED
    assert "NotImplementedError" in source(repaired, "cross_entropy")


# The course's own cells.


def test_points_flags_and_checks_are_the_releases_own() -> None:
    tree = raw()
    for cell in tree["cells"]:
        marks = cell["metadata"].get("nbgrader")
        if marks:
            marks |= {"points": 100, "locked": False, "schema_version": 99}
            marks |= {"solution": True, "grade": True, "task": True}
            cell["metadata"]["tags"] = ["skip-execution"]
    with_id(tree, "one_hot_visible")["source"] = "print('all right')"
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []
    assert said(repaired, "settings", "the grade cell of exercise one_hot")
    assert said(repaired, "The visible check of exercise one_hot", "put back")
    assert repaired.changed == ()


def test_missing_cells_of_the_course_come_back() -> None:
    tree = raw()
    for gone in ("setup_imports", "one_hot_visible", "one_hot_hidden"):
        tree["cells"].pop(place(tree, gone))
    tree["cells"].pop(0)
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []
    assert said(repaired, "missing", "set-up cell imports", "check of exercise")


def test_the_learners_version_of_a_setup_cell_runs_after_the_original() -> None:
    tree = raw()
    setup = with_id(tree, "setup_imports")
    setup["source"] = "import math\nimport statistics"
    with_id(tree, "one_hot")["source"] = "statistics.mean\n" + ONE_HOT_SOLVED
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert lost(repaired) == []
    assert repaired.notebook is not None
    after = repaired.notebook.cells[3]
    assert after.source == "import math\nimport statistics"
    assert repaired.changed == (after.id,)
    assert said(repaired, "set-up cell imports", "original runs first")


def test_only_what_was_added_below_a_setup_cell_runs_again() -> None:
    tree = raw()
    with_id(tree, "setup_imports")["source"] += "\nimport statistics"
    repaired = repair(as_bytes(tree), RELEASED)
    assert repaired.notebook is not None
    assert repaired.notebook.cells[3].source == "import statistics"


def test_layout_and_comments_change_nothing() -> None:
    tree = raw()
    with_id(tree, "setup_data")["source"] = (
        "# my data\nlabels = [ 2,0,1,2 ]\nlosses = [\n  0.5, 1.5, 4.0\n]\n"
    )
    repaired = repair(as_bytes(tree), RELEASED)
    assert repaired.changed == repaired.notes == ()


def test_changed_reading_cells_run_and_untouched_ones_do_not() -> None:
    tree = raw()
    reading = tree["cells"][4]
    reading["source"] = reading["source"].replace("2.5", "4.0")
    tree["cells"].insert(6, copy.deepcopy(tree["cells"][-2]))
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert repaired.changed == (reading["id"],)


# The learner's own cells.


def test_added_cells_stay_between_their_neighbours_in_order() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    before, after = added("first = 1"), added("%timeit first")
    before["metadata"] = role("one_hot_hidden_2", grade=True, points=50)
    tree["cells"][at:at] = [before, added("", "raw"), added("note", "markdown")]
    tree["cells"][at + 4 : at + 4] = [after, added("")]
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert repaired.notebook is not None
    around = repaired.notebook.cells[at : at + 4]
    assert [cell.source for cell in around] == [
        "first = 1",
        "note",
        ONE_HOT_SOLVED,
        "%timeit first",
    ]
    assert repaired.changed == (around[0].id, around[3].id)


def test_an_answer_in_an_own_cell_moves_into_its_exercise() -> None:
    for side in (0, 1):
        tree = raw()
        at = place(tree, "one_hot")
        tree["cells"][at]["source"] = EXERCISES["one_hot"][0]
        tree["cells"].insert(at + side, added(ONE_HOT_SOLVED))
        repaired = repair(as_bytes(tree), RELEASED)
        assert source(repaired, "one_hot") == ONE_HOT_SOLVED
        assert repaired.changed == ()
        assert said(repaired, "one_hot", "outside", f"cell {at + side + 1}")


def test_an_answer_that_needs_what_runs_before_it_stays_where_it_is() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    tree["cells"][at]["source"] = EXERCISES["one_hot"][0]
    answer = "@checked\n" + ONE_HOT_SOLVED
    tree["cells"].insert(at + 1, added("def checked(made):\n    return made"))
    tree["cells"].insert(at + 2, added(answer))
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == []
    assert source(repaired, "one_hot") == EXERCISES["one_hot"][0]
    assert len(repaired.changed) == 2


def test_an_answer_below_a_changed_reading_cell_stays_where_it_is() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    tree["cells"][at]["source"] = EXERCISES["one_hot"][0]
    reading = tree["cells"][at + 3]
    reading["source"] = "def checked(made):\n    return made"
    tree["cells"].insert(at + 4, added("@checked\n" + ONE_HOT_SOLVED))
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == []
    assert repaired.changed == (reading["id"], f"added-{at + 5}")


def test_an_answer_above_its_untouched_cell_is_not_undone_by_it() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    tree["cells"][at]["source"] = EXERCISES["one_hot"][0]
    tree["cells"].insert(at, added(ONE_HOT_SOLVED))
    tree["cells"].insert(at + 1, added("print(one_hot([0], 2))"))
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == []


def test_an_answer_in_the_visible_check_counts() -> None:
    tree = raw()
    with_id(tree, "one_hot")["source"] = EXERCISES["one_hot"][0]
    check = with_id(tree, "one_hot_visible")
    check["source"] = ONE_HOT_SOLVED + "\n\n\n" + check["source"]
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED
    assert repaired.changed == ()
    assert said(repaired, "one_hot", "outside its cell")


def test_an_answer_in_the_grade_cell_counts() -> None:
    tree = raw()
    with_id(tree, "one_hot")["source"] = EXERCISES["one_hot"][0]
    with_id(tree, "one_hot_hidden")["source"] = ONE_HOT_SOLVED
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert source(repaired, "one_hot") == ONE_HOT_SOLVED


def test_an_answer_in_a_reading_cell_counts() -> None:
    tree = raw()
    with_id(tree, "cross_entropy")["source"] = EXERCISES["cross_entropy"][0]
    reading = tree["cells"][4]
    reading["source"] = "print(labels)\n" + CROSS_ENTROPY_SOLVED
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == []
    assert said(repaired, "cross_entropy", "outside its cell", "cell 5")


@pytest.mark.parametrize(
    "binding",
    [
        "one_hot, other = solved, 1",
        "[*one_hot] = [solved]\n(one_hot,) = one_hot",
        "one_hot: object = solved",
        "if True:\n    one_hot = solved",
        "try:\n    import no_such\nexcept ImportError:\n    one_hot = solved",
        "other = 1; one_hot = solved",
        "%matplotlib inline\none_hot = solved",
        "%%time\none_hot = solved",
    ],
)
def test_an_answer_is_found_however_it_is_bound(binding: str) -> None:
    tree = raw()
    at = place(tree, "one_hot")
    tree["cells"][at]["source"] = EXERCISES["one_hot"][0]
    tree["cells"].insert(at, added(binding))
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == binding


def test_a_cell_in_another_language_answers_nothing() -> None:
    tree = raw()
    at = place(tree, "one_hot")
    tree["cells"][at]["source"] = EXERCISES["one_hot"][0]
    tree["cells"].insert(at, added("%%bash\none_hot=1"))
    repaired = repair(as_bytes(tree), RELEASED)
    assert source(repaired, "one_hot") == EXERCISES["one_hot"][0]


def test_half_an_answer_above_its_untouched_cell_counts() -> None:
    tree = raw()
    at = place(tree, "loss_meter")
    tree["cells"][at]["source"] = EXERCISES["loss_meter"][0]
    half = METER_SOLVED.partition("\n\n\ndef merged")[0]
    tree["cells"].insert(at, added(half))
    names = executed(repair(as_bytes(tree), RELEASED))
    meter = names["LossMeter"]()
    meter.update(2.0)
    assert meter.mean == 2.0
    with pytest.raises(NotImplementedError):
        names["merged"](meter, meter)


def test_what_needs_a_lost_setup_cell_runs_after_it() -> None:
    tree = raw()
    del tree["cells"][place(tree, "setup_imports")]
    tree["cells"].insert(2, added("root = math.sqrt(2.0)"))
    with_id(tree, "one_hot")["source"] = "root\n" + ONE_HOT_SOLVED
    assert lost(repair(as_bytes(tree), RELEASED)) == []


def test_a_moved_cell_stays_with_the_exercise_that_uses_it() -> None:
    tree = raw()
    answer = tree["cells"].pop(place(tree, "one_hot"))
    answer["source"] = "@checked\n" + answer["source"]
    helper = added("def checked(made):\n    return made")
    tree["cells"] += [helper, answer]
    assert lost(repair(as_bytes(tree), RELEASED)) == []


def test_copies_of_a_changed_reading_cell_run_where_they_stand() -> None:
    tree = raw()
    reading = tree["cells"][4]
    reading["source"] = "print(1)"
    twin = copy.deepcopy(reading)
    twin["source"] = "print(2)"
    tree["cells"].insert(5, twin)
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert repaired.changed == (reading["id"], "added-6")


def test_a_cell_without_a_readable_source_is_left_out_with_a_note() -> None:
    tree = raw()
    tree["cells"][3]["source"] = [1, {"a": 2}]
    repaired = repair(as_bytes(tree), RELEASED)
    assert_sound(repaired)
    assert said(repaired, "Cell 4 could not be read")


def test_a_later_definition_is_graded_and_said() -> None:
    tree = raw()
    tree["cells"].append(added("def one_hot(labels, num_classes): ..."))
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == ["one_hot"]
    assert said(repaired, "one_hot", "once more", "cell 23")


def test_a_helper_that_was_left_behind_runs_before_the_exercise() -> None:
    tree = raw()
    at = place(tree, "cross_entropy")
    cell = tree["cells"].pop(at)
    cell["source"] = "@checked\n" + cell["source"]
    tree["cells"].insert(at, added("def checked(made):\n    return made"))
    tree["cells"].insert(3, cell)
    repaired = repair(as_bytes(tree), RELEASED)
    assert lost(repaired) == []


# nbgrader.


def test_nbgrader_sees_who_did_not_answer(gradebook: str) -> None:
    tree = raw()
    with_id(tree, "one_hot")["source"] = EXERCISES["one_hot"][0]
    through_nbgrader(repair(as_bytes(tree), RELEASED), gradebook)
    with Gradebook(gradebook) as book:
        comments = {
            exercise: book.find_comment(
                exercise, CHAPTER, CHAPTER, "ada"
            ).auto_comment
            for exercise in EXERCISES
        }
    assert comments == {
        "one_hot": "No response.",
        "loss_meter": None,
        "cross_entropy": None,
    }


# ------------------------------------------------------- the effort it takes

PIECES = (
    *(" \n", "def f(:\n", "(", "def f(x):\n    return x\n", "a = 1\n", "a;"),
    *('"""\n', "%x\n", "a?\n", "\\\n", "@a\n", "\tx\n", "x%d\n", "if a:\n "),
    *("!ls\n", "0x" + "f" * 5_000 + "\n", "[", "lambda:", "not ", "-", ".a"),
    *("'a' ", "f'{a}'\n", "a\u2028", "a\x0c", "# %%\n", "one_hot = 1\n"),
)


@settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.lists(
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join),
        min_size=1,
        max_size=3,
    ),
    st.integers(500, 20_000),
    st.integers(1, 12),
)
def test_repair_takes_no_longer_than_the_size_allows(
    pieces: list[str], chars: int, copies: int
) -> None:
    """In units of a measured one, what Python takes now to parse 20,000 characters
    of assignments: so much for the chapter, so much for each character."""
    hostile = copy.deepcopy(RELEASED)
    for _ in range(copies):
        for piece in pieces:
            source = (piece * (chars // len(piece) + 1))[:chars]
            hostile.cells.append(nbformat.v4.new_code_cell(source))
    submitted = nbformat.writes(hostile).encode()

    def seconds(work: Callable[[], object]) -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    unit = min(seconds(lambda: ast.parse("a = 1\n" * 3_333)) for _ in range(5))
    taken = seconds(lambda: repair(submitted, RELEASED)) / unit

    assert taken < 200 + 100 * len(pieces) * copies * chars / 20_000
