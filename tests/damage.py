"""Makes damaged but honest notebooks: what editors, Colab, tools, downloads and
learners themselves do to a solved chapter.

`damaged` takes a solved notebook and the released one and applies one to three
kinds of damage, drawn from a seed. None of them takes any of the learner's work
away, so a grader should find all of it.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import nbformat
from nbformat import NotebookNode

RawCell = dict[str, Any]


class Notebook:
    """A notebook as plain JSON while it is being damaged.

    Cells remember under `"was"` which released cell they were, so that a second
    kind of damage finds them after a first one took their marks away.
    """

    def __init__(self, solved: NotebookNode, released: NotebookNode) -> None:
        self.top: dict[str, Any] = json.loads(nbformat.writes(solved))
        self.cells: list[RawCell] = self.top.pop("cells")
        self.stubs: dict[str, str] = {}
        for cell, plain in zip(self.cells, released.cells, strict=True):
            cell["source"] = "".join(cell["source"])
            cell["was"] = name(cell) or cell["id"]
            self.stubs[cell["was"]] = plain.source
        self.exercises = [
            one["was"] for one in self.cells if marks(one).get("solution")
        ]
        self.setup = [
            one["was"]
            for one in self.cells
            if marks(one).get("locked") and not marks(one).get("grade")
        ]
        self.reading = [one["was"] for one in self.cells if not marks(one)]

    def index(self, was: str) -> int:
        """Where the last cell stands that was this one; -1 if none is left."""
        found = [i for i, one in enumerate(self.cells) if one["was"] == was]
        return found[-1] if found else -1

    def first(self, was: str) -> int:
        """Where the first cell stands that was this one."""
        return [one["was"] for one in self.cells].index(was)

    def cell(self, was: str) -> RawCell | None:
        at = self.index(was)
        return None if at < 0 else self.cells[at]

    def data(self) -> bytes:
        cells = [
            {key: value for key, value in one.items() if key != "was"}
            for one in self.cells
        ]
        tree = {"cells": cells, **self.top}
        return json.dumps(tree, indent=1, ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )


def marks(cell: RawCell) -> dict[str, Any]:
    metadata = cell.get("metadata") or {}
    return metadata.get("nbgrader") or {}


def name(cell: RawCell) -> str:
    return str(marks(cell).get("grade_id", ""))


def code(source: str, metadata: dict[str, Any] | None = None) -> RawCell:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata or {},
        "outputs": [],
        "source": source,
        "was": "",
    }


def markdown(source: str) -> RawCell:
    return {
        "cell_type": "markdown",
        "metadata": {},
        "source": source,
        "was": "",
    }


def an_exercise(rng: random.Random, notebook: Notebook) -> str:
    left = [one for one in notebook.exercises if notebook.index(one) >= 0]
    return rng.choice(left)


# Cells.


def split_with_marks(rng: random.Random, notebook: Notebook) -> None:
    """JupyterLab: both parts keep the metadata."""
    _split(rng, notebook, keep_marks=True)


def split_without_marks(rng: random.Random, notebook: Notebook) -> None:
    """Colab and others: the second part has no metadata."""
    _split(rng, notebook, keep_marks=False)


def _split(rng: random.Random, notebook: Notebook, keep_marks: bool) -> None:
    at = notebook.index(an_exercise(rng, notebook))
    cell = notebook.cells[at]
    lines = cell["source"].split("\n")
    if len(lines) < 2:
        return
    where = rng.randrange(1, len(lines))
    second = copy.deepcopy(cell)
    second.pop("id", None)
    if not keep_marks:
        second["metadata"] = {}
        second["was"] = ""
    cell["source"] = "\n".join(lines[:where]).strip("\n")
    second["source"] = "\n".join(lines[where:]).strip("\n")
    notebook.cells.insert(at + 1, second)


def duplicated_exercise(rng: random.Random, notebook: Notebook) -> None:
    """Copied and pasted, solved."""
    at = notebook.index(an_exercise(rng, notebook))
    twin = copy.deepcopy(notebook.cells[at])
    notebook.cells.insert(at + rng.randint(0, 1), twin)


def kept_the_stub(rng: random.Random, notebook: Notebook) -> None:
    """A copy of the untouched cell kept above or below the solved one."""
    was = an_exercise(rng, notebook)
    at = notebook.index(was)
    twin = copy.deepcopy(notebook.cells[at])
    twin["source"] = notebook.stubs[was]
    if rng.random() < 0.5:
        twin["metadata"], twin["was"] = {}, ""
        twin.pop("id", None)
        notebook.cells.insert(at + rng.randint(0, 1), twin)
    else:
        notebook.cells.insert(at, twin)


def kept_an_attempt(rng: random.Random, notebook: Notebook) -> None:
    """An earlier, wrong attempt with the same id above the right one."""
    was = an_exercise(rng, notebook)
    at = notebook.first(was)
    twin = copy.deepcopy(notebook.cells[at])
    stub = notebook.stubs[was]
    twin["source"] = stub.replace("raise NotImplementedError()", "return 0")
    notebook.cells.insert(at, twin)


def duplicated_other(rng: random.Random, notebook: Notebook) -> None:
    """A cell of the course copied: a check, a set-up cell, a text."""
    others = [
        one
        for one in notebook.cells
        if one["was"] and one["was"] not in notebook.exercises
    ]
    at = notebook.cells.index(rng.choice(others))
    notebook.cells.insert(at + 1, copy.deepcopy(notebook.cells[at]))


def deleted_other(rng: random.Random, notebook: Notebook) -> None:
    """Up to five cells of the course deleted, but none with an exercise."""
    for _ in range(rng.randint(1, 5)):
        others = [
            one
            for one in notebook.cells
            if one["was"] and one["was"] not in notebook.exercises
        ]
        if len(others) > 3:
            notebook.cells.remove(rng.choice(others))


def retyped_exercise(rng: random.Random, notebook: Notebook) -> None:
    """Turned into text by a keystroke."""
    cell = notebook.cell(an_exercise(rng, notebook))
    assert cell is not None
    cell["cell_type"] = rng.choice(["markdown", "raw"])
    cell.pop("outputs", None)
    cell.pop("execution_count", None)


def retyped_other(rng: random.Random, notebook: Notebook) -> None:
    others = [
        one for one in notebook.cells if one["was"] not in notebook.exercises
    ]
    cell = rng.choice(others)
    cell["cell_type"] = rng.choice(["markdown", "raw", "code", "Code"])


def moved(rng: random.Random, notebook: Notebook) -> None:
    """A few cells dragged elsewhere, an exercise among them."""
    for _ in range(rng.randint(1, 3)):
        cell = notebook.cells.pop(rng.randrange(len(notebook.cells)))
        notebook.cells.insert(rng.randint(0, len(notebook.cells)), cell)
    at = notebook.index(an_exercise(rng, notebook))
    cell = notebook.cells.pop(at)
    notebook.cells.insert(rng.randint(0, len(notebook.cells)), cell)


def shuffled(rng: random.Random, notebook: Notebook) -> None:
    """The exercises of the chapter in another order."""
    places = [notebook.index(one) for one in notebook.exercises]
    places = [one for one in places if one >= 0]
    cells = [notebook.cells[one] for one in places]
    rng.shuffle(cells)
    for place, cell in zip(places, cells, strict=True):
        notebook.cells[place] = cell


def merged_with_check(rng: random.Random, notebook: Notebook) -> None:
    """Exercise and visible check in one cell, under either one's metadata."""
    was = an_exercise(rng, notebook)
    _merge(rng, notebook, was, f"{was}_visible")


def merged_with_next_exercise(rng: random.Random, notebook: Notebook) -> None:
    first = rng.randrange(len(notebook.exercises) - 1)
    _merge(rng, notebook, *notebook.exercises[first : first + 2])


def merged_with_text(rng: random.Random, notebook: Notebook) -> None:
    """Exercise and the text above it in one cell, of either type."""
    at = notebook.index(an_exercise(rng, notebook))
    if at > 0 and notebook.cells[at - 1]["was"] in notebook.reading:
        was = notebook.cells[at]["was"]
        _merge(rng, notebook, notebook.cells[at - 1]["was"], was)


def _merge(
    rng: random.Random, notebook: Notebook, upper: str, lower: str
) -> None:
    one, other = notebook.cell(upper), notebook.cell(lower)
    if one is None or other is None:
        return
    kept, gone = (one, other) if rng.random() < 0.5 else (other, one)
    if notebook.cells.index(one) > notebook.cells.index(other):
        one, other = other, one
    kept["source"] = one["source"] + "\n\n" + other["source"]
    notebook.cells.remove(gone)
    if gone["was"] in notebook.exercises:
        kept["was"] = gone["was"]


def extra_cells(rng: random.Random, notebook: Notebook) -> None:
    """Trials, notes, magics and empty cells in between."""
    samples = [
        code(""),
        code("print('trial')"),
        code("%timeit sum(range(10))"),
        code("!pip list"),
        code("1 / 0"),
        code("def unfinished(:"),
        code("x = 3\nx?"),
        markdown("My notes"),
        markdown(""),
    ]
    for _ in range(rng.randint(1, 6)):
        cell = copy.deepcopy(rng.choice(samples))
        notebook.cells.insert(rng.randint(0, len(notebook.cells)), cell)


def foreign_cells(rng: random.Random, notebook: Notebook) -> None:
    """Cells of another chapter pasted in."""
    nbgrader = {
        "grade": False,
        "grade_id": "clip_by_norm",
        "locked": False,
        "schema_version": 3,
        "solution": True,
    }
    cell = code("def clip_by_norm(grads): ...", {"nbgrader": nbgrader})
    notebook.cells.insert(rng.randint(0, len(notebook.cells)), cell)


def helper_in_own_cell(rng: random.Random, notebook: Notebook) -> None:
    """A helper in a cell above, which the exercise needs when it is defined."""
    was = an_exercise(rng, notebook)
    at = notebook.first(was)
    cell = notebook.cells[at]
    helper = f"checked_{was}"
    cell["source"] = f"{helper}(0)\n\n{cell['source']}"
    notebook.cells.insert(at, code(f"def {helper}(value):\n    return value"))


def import_in_setup(rng: random.Random, notebook: Notebook) -> None:
    """An import added to a locked set-up cell; the exercise needs it."""
    setup = notebook.cell(rng.choice(notebook.setup))
    if setup is None:
        return
    cell = notebook.cells[notebook.first(an_exercise(rng, notebook))]
    setup["was"] = ""
    setup["source"] += "\nfrom itertools import chain as joined_up"
    cell["source"] = f"joined_up()\n\n{cell['source']}"


def answered_below(rng: random.Random, notebook: Notebook) -> None:
    """The stub left alone, the answer in an added cell."""
    was = an_exercise(rng, notebook)
    at = notebook.index(was)
    stub = copy.deepcopy(notebook.cells[at])
    stub["source"], stub["was"] = notebook.stubs[was], ""
    notebook.cells[at]["metadata"] = {}
    notebook.cells[at].pop("id", None)
    notebook.cells.insert(at + rng.randint(0, 1), stub)


def answered_in_check(rng: random.Random, notebook: Notebook) -> None:
    """The stub left alone, the answer in the visible check cell."""
    was = an_exercise(rng, notebook)
    cell, check = notebook.cell(was), notebook.cell(f"{was}_visible")
    if cell is None or check is None:
        return
    check["source"] = f"{cell['source']}\n\n\n{check['source']}"
    if rng.random() < 0.5:
        check["source"] = check["source"].replace("expect(", "print(")
    cell["source"] = notebook.stubs[was]
    check["was"], cell["was"] = was, ""


def changed_checks(rng: random.Random, notebook: Notebook) -> None:
    """Visible checks edited, emptied or commented out."""
    for was in notebook.exercises:
        check = notebook.cell(f"{was}_visible")
        if check is not None:
            edited = check["source"].replace("expect(", "print(")
            commented = "# " + check["source"].replace("\n", "\n# ")
            check["source"] = rng.choice(["", "pass", edited, commented])


def changed_reading(rng: random.Random, notebook: Notebook) -> None:
    """Settings of reading cells played with, notes written into texts."""
    for was in rng.sample(notebook.reading, 2):
        cell = notebook.cell(was)
        if cell is not None and cell["cell_type"] == "code":
            cell["source"] += "\nprint('and now with mine')"
        elif cell is not None:
            cell["source"] += "\n\nNote to self: read again."


# Metadata.


def lost_ids(rng: random.Random, notebook: Notebook) -> None:
    for cell in notebook.cells:
        cell.pop("id", None)
    notebook.top["nbformat_minor"] = 4


def lost_marks(rng: random.Random, notebook: Notebook) -> None:
    """A tool dropped nbgrader's metadata, of all cells or of some."""
    share = rng.choice([0.5, 1.0])
    for cell in notebook.cells:
        if rng.random() < share:
            cell["metadata"] = {}


def lost_everything(rng: random.Random, notebook: Notebook) -> None:
    """Ids and metadata gone, as after a conversion to a script and back."""
    for cell in notebook.cells:
        cell["metadata"] = {}
        cell.pop("id", None)
    notebook.top["metadata"] = {}


def through_colab(rng: random.Random, notebook: Notebook) -> None:
    notebook.top["nbformat_minor"] = 0
    notebook.top["metadata"] = {
        "colab": {"provenance": [], "toc_visible": True},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "accelerator": "GPU",
    }
    for cell in notebook.cells:
        own_id = cell.pop("id", None) or f"{rng.getrandbits(48):012x}"
        cell["metadata"] = {
            **(cell["metadata"] or {}),
            "id": own_id if rng.random() < 0.5 else f"{rng.getrandbits(48):x}",
            "colab": {"base_uri": "https://localhost:8080/"},
            "outputId": f"{rng.getrandbits(48):x}",
            "executionInfo": {"status": "ok", "elapsed": 12},
        }


def through_vscode(rng: random.Random, notebook: Notebook) -> None:
    """New ids, a language on every cell, code formatted on saving."""
    for cell in notebook.cells:
        cell["id"] = f"{rng.getrandbits(32):08x}"
        cell["metadata"] = {
            **(cell["metadata"] or {}),
            "vscode": {"languageId": "python"},
        }
        if cell["cell_type"] == "code":
            cell["source"] = cell["source"].replace("'", '"') + "\n"


def changed_marks(rng: random.Random, notebook: Notebook) -> None:
    """Points, flags and types in the metadata changed."""
    for cell in notebook.cells:
        mark = marks(cell)
        if mark and rng.random() < 0.5:
            mark["points"] = rng.choice([100, "2", None, -1])
            mark["locked"] = not mark.get("locked", False)
            mark["checksum"] = "0"


def other_schema(rng: random.Random, notebook: Notebook) -> None:
    """nbgrader's metadata of another version."""
    version = rng.choice([0, 1, 2, 4, 99, "3", None])
    for cell in notebook.cells:
        if marks(cell):
            marks(cell)["schema_version"] = version


def tagged(rng: random.Random, notebook: Notebook) -> None:
    """Tags that make tools skip cells."""
    for cell in notebook.cells:
        if isinstance(cell["metadata"], dict):
            cell["metadata"]["tags"] = ["skip-execution", "remove-cell"]


def huge_outputs(rng: random.Random, notebook: Notebook) -> None:
    text = ["0.693147 0.693147 0.693147\n"] * 5_000
    for cell in rng.sample(notebook.cells, 2):
        if cell["cell_type"] == "code":
            output = {"output_type": "stream", "name": "stdout", "text": text}
            cell["outputs"] = [output]


# The JSON.


def null_metadata(rng: random.Random, notebook: Notebook) -> None:
    for cell in notebook.cells:
        if not marks(cell):
            cell["metadata"] = rng.choice([None, [], "none"])
    notebook.top["metadata"] = None


def rubbish_outputs(rng: random.Random, notebook: Notebook) -> None:
    for cell in notebook.cells:
        cell["outputs"] = rng.choice([None, {}, [None], [3], "text", [{}]])
        cell["execution_count"] = rng.choice(["*", -1, 1.5, None])


def sources_as_lines(rng: random.Random, notebook: Notebook) -> None:
    """Sources as lists of lines, with or without their ends, or with CRLF."""
    kind = rng.randrange(3)
    for cell in notebook.cells:
        if kind == 0:
            cell["source"] = cell["source"].splitlines(keepends=True)
        elif kind == 1:
            cell["source"] = cell["source"].splitlines()
        else:
            cell["source"] = cell["source"].replace("\n", "\r\n")


def odd_characters(rng: random.Random, notebook: Notebook) -> None:
    """A lone surrogate and a NUL in comments, as broken emoji leave them."""
    cell = notebook.cell(an_exercise(rng, notebook))
    assert cell is not None
    cell["source"] += "\n# done \ud83d \x00"


def rubbish_cells(rng: random.Random, notebook: Notebook) -> None:
    for junk in (None, 3, "cell", [], {}, {"cell_type": "code"}):
        at = rng.randint(0, len(notebook.cells))
        notebook.cells.insert(at, {"was": "", "junk": junk})


def other_format(rng: random.Random, notebook: Notebook) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        notebook.top.pop("nbformat", None)
        notebook.top.pop("nbformat_minor", None)
    elif kind == 1:
        notebook.top["nbformat"], notebook.top["nbformat_minor"] = 5, 1
    elif kind == 2:
        notebook.top["nbformat_minor"] = 99
    else:
        notebook.top["nbformat"] = "4"


def format_3(rng: random.Random, data: bytes) -> bytes:
    tree = json.loads(data)
    cells = tree.pop("cells")
    for cell in cells:
        cell.pop("id", None)
        if cell.get("cell_type") == "code":
            cell["input"] = cell.pop("source", "")
            cell["prompt_number"] = cell.pop("execution_count", None)
            cell["language"] = "python"
    tree["nbformat"], tree["nbformat_minor"] = 3, 0
    tree["worksheets"] = [{"cells": cells, "metadata": {}}]
    return json.dumps(tree).encode()


# The bytes.


def byte_order_mark(rng: random.Random, data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def utf_16(rng: random.Random, data: bytes) -> bytes:
    encoding = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    text = data.decode("utf-8", "replace")
    return text.encode(encoding)


def latin_1(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(["cp1252", "latin-1"]), "replace")


def crlf(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def not_a_number(rng: random.Random, data: bytes) -> bytes:
    value = rng.choice([b"NaN", b"-Infinity", b"1" * 5000, b"undefined"])
    return data.replace(b'"metadata"', b'"loss": ' + value + b', "metadata"', 1)


def text_behind(rng: random.Random, data: bytes) -> bytes:
    return data + rng.choice([b"}", b"\n{}", b"\0" * 512, b"EOF"])


def cut_at_the_end(rng: random.Random, data: bytes) -> bytes:
    """An upload that broke off, after the last of the work."""
    return data[: -rng.randint(1, 12)]


def deep_nesting(rng: random.Random, data: bytes) -> bytes:
    deep = b"[" * 20_000 + b"]" * 20_000
    return data.replace(b'"metadata"', b'"state": ' + deep + b', "metadata"', 1)


def repeated_keys(rng: random.Random, data: bytes) -> bytes:
    return data.replace(
        b'"source"', b'"source": null, "metadata_": 1, "source"'
    )


def conflict_marks(rng: random.Random, data: bytes) -> bytes:
    """git's marks left around a part of the file that was the same."""
    first, _, rest = data.partition(b'"metadata"')
    return first + b'\n<<<<<<< HEAD\n"metadata"' + rest + b"\n>>>>>>> mine\n"


ON_CELLS: dict[str, Callable[[random.Random, Notebook], None]] = {
    kind.__name__: kind
    for kind in (
        split_with_marks,
        split_without_marks,
        duplicated_exercise,
        kept_the_stub,
        kept_an_attempt,
        duplicated_other,
        deleted_other,
        retyped_exercise,
        retyped_other,
        moved,
        shuffled,
        merged_with_check,
        merged_with_next_exercise,
        merged_with_text,
        extra_cells,
        foreign_cells,
        helper_in_own_cell,
        import_in_setup,
        answered_below,
        answered_in_check,
        changed_checks,
        changed_reading,
        lost_ids,
        lost_marks,
        lost_everything,
        through_colab,
        through_vscode,
        changed_marks,
        other_schema,
        tagged,
        huge_outputs,
        null_metadata,
        rubbish_outputs,
        sources_as_lines,
        odd_characters,
        rubbish_cells,
        other_format,
    )
}
ON_BYTES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    kind.__name__: kind
    for kind in (
        format_3,
        byte_order_mark,
        utf_16,
        latin_1,
        crlf,
        not_a_number,
        text_behind,
        cut_at_the_end,
        deep_nesting,
        repeated_keys,
        conflict_marks,
    )
}
LAST_ON_CELLS = (
    "kept_an_attempt",
    "null_metadata",
    "sources_as_lines",
    "rubbish_cells",
)
"""Kinds that come last, in this order: an earlier attempt that was moved below
the answer would count as the answer, and after the others the rest no longer
find their way in the cells."""


def damaged(
    solved: NotebookNode, released: NotebookNode, seed: int
) -> tuple[bytes, str]:
    """A damaged copy of a solved notebook, and the kinds of damage done.

    Args:
        solved: the released notebook with answers in its exercise cells.
        released: the same without.
        seed: draws one to three kinds, and how each is done.
    """
    rng = random.Random(seed)
    kinds = rng.sample([*ON_CELLS, *ON_BYTES], rng.randint(1, 3))
    return damaged_by(solved, released, kinds, rng)


def damaged_by(
    solved: NotebookNode,
    released: NotebookNode,
    kinds: list[str],
    rng: random.Random,
) -> tuple[bytes, str]:
    """A copy of a solved notebook damaged by these kinds, and their names in
    the order they were applied. Of those on the bytes only the first is."""
    notebook = Notebook(solved, released)
    on_cells = [kind for kind in kinds if kind in ON_CELLS]
    on_cells.sort(
        key=lambda kind: ("", *LAST_ON_CELLS).index(
            kind if kind in LAST_ON_CELLS else ""
        )
    )
    on_bytes = [kind for kind in kinds if kind in ON_BYTES][:1]
    for kind in on_cells:
        ON_CELLS[kind](rng, notebook)
    data = notebook.data()
    for kind in on_bytes:
        data = ON_BYTES[kind](rng, data)
    return data, " + ".join([*on_cells, *on_bytes])
