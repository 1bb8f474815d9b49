"""A sanitised notebook is still the learner's, and formgrader can open it."""

from __future__ import annotations

import copy
from typing import Any

import nbformat
import pytest
from feedback_samples import (
    CHAPTER,
    code_cell,
    display,
    exercise_cells,
    image,
    in_formgrader,
    locked,
    mixed,
    notebook,
    solution,
    stream,
)
from nbconvert.exporters import HTMLExporter
from nbgrader.nbgraderformat import MetadataValidator

from course_grader.feedback import page, sanitise
from course_grader.feedback.autograded import UNSHOWN
from course_grader.judge.report import SubmissionReport


def markdown(source: Any, **more: Any) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": "text",
        "metadata": {},
        "source": source,
    } | more


def of_markdown(source: str, **more: Any) -> str:
    return sanitise(notebook([markdown(source, **more)])).cells[0].source


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\r\nprint('\x1b[31m')\t\n\n",
        "\n\n  # <script>alert(1)</script>\n",
        "s = '\u202e \u2066 é 漢 🙂 \x00'",
        "%%html\n<b onclick=x>",
        "",
    ],
)
def test_the_source_of_code_is_kept_to_the_byte(source: str) -> None:
    made = sanitise(notebook(exercise_cells("one_hot", source)))
    assert made.cells[0].source == source
    written = nbformat.reads(nbformat.writes(made), as_version=4)
    assert written.cells[0].source == source


@pytest.mark.parametrize(
    "source",
    [
        "# Title\n\nSome *text*, `a < b`, and [a page](https://e.org/a?b=1#c).",
        "Inline $a_i < b^2$ and\n\n$$\\frac{1}{N}\\sum_i x_i$$\n",
        "\\begin{align} a &= b \\\\ c &< d \\end{align}",
        "```python\nx: dict[str, int] = {}\nif a < b: pass\n```",
        "<details><summary>Hint 1</summary>\n\nThink.\n\n</details>",
        "| a | b |\n|---|---|\n| 1 < 2 | 3 > 2 |",
        "- [ ] open\n- [x] done\n\n> quoted\n\n1. one",
        "A line<br>and another, H<sub>2</sub>O & more",
        "[mail](mailto:a@e.org), [above](#title), <b>bold</b>",
        "![figure](attachment:fig.png)",
        "2 < 3, a<b, x <- y, <3",
    ],
)
def test_honest_markdown_is_left_as_it_is(source: str) -> None:
    pictures = {"fig.png": {"image/png": image()}}
    made = of_markdown(source, attachments=pictures)
    assert made.replace("<\u2060b,", "<b,") == source


def test_what_is_not_allowed_reads_as_before() -> None:
    source = "<img src=x> [x](javascript:y) ![a](https://e.org/a.png)"
    made = of_markdown(source)
    assert made != source
    assert made.replace("\u2060", "") == source


@pytest.mark.parametrize("size", [40, 4_000])
def test_markdown_that_no_renderer_survives_is_replaced(size: int) -> None:
    made = of_markdown("> - " * size)
    html, _ = HTMLExporter(template_name="basic").from_notebook_node(
        notebook([markdown(made)])
    )
    assert html
    assert made == UNSHOWN or made.startswith("> - > -")


def test_markdown_beyond_any_honest_length_is_not_shown() -> None:
    cells = [markdown("x" * 14_000, id=f"c{n}") for n in range(30)]
    sources = [cell.source for cell in sanitise(notebook(cells)).cells]
    assert sources[0] == "x" * 14_000
    assert sources[-1] == UNSHOWN


def test_pictures_and_text_survive_and_the_rest_does_not() -> None:
    png, jpeg = image("PNG"), image("JPEG")
    outputs = [
        stream("\x1b[32mok\x1b[0m\n"),
        display(
            {
                "image/png": png + "\n",
                "image/svg+xml": "<svg/>",
                "text/plain": "<Figure>",
            },
            **{"image/png": {"width": 300, "height": "x"}, "isolated": True},
        ),
        display({"image/jpeg": jpeg}),
        display({"text/html": "<table><tr><td>1</td></tr></table><script>x"}),
        display({"application/javascript": "alert(1)"}),
        display(
            {
                "application/vnd.jupyter.widget-view+json": {"model_id": "a"},
                "text/plain": "IntSlider()",
            }
        ),
    ]
    made = sanitise(notebook([code_cell("1", outputs)]))
    nbformat.validate(made)
    kept = made.cells[0].outputs
    assert kept[0].text == "ok\n"
    assert kept[1].data == {"image/png": png, "text/plain": "<Figure>"}
    assert kept[1].metadata == {"image/png": {"width": 300}}
    assert kept[2].data == {"image/jpeg": jpeg}
    assert kept[3].data["text/html"].startswith("<table>")
    assert "script" not in kept[3].data["text/html"]
    assert kept[4].data == {"text/plain": "[not shown: application/javascript]"}
    assert kept[5].data == {"text/plain": "IntSlider()"}


def test_what_nbgrader_needs_is_kept() -> None:
    cells = exercise_cells("one_hot", "x = 1", points=2.5)
    cells[0]["metadata"]["nbgrader"]["checksum"] = "0123abcd" * 4
    before = notebook(copy.deepcopy(cells))
    after = sanitise(before)
    assert [c.metadata.nbgrader for c in after.cells] == [
        c.metadata.nbgrader for c in before.cells
    ]
    MetadataValidator().validate_nb(after)
    assert before.cells == notebook(cells).cells


def test_the_points_that_a_grade_cell_ends_in_are_kept() -> None:
    """nbgrader's SaveAutoGrades reads them there."""
    result = {
        "output_type": "execute_result",
        "execution_count": None,
        "data": {"text/plain": "2.5"},
        "metadata": {},
    }
    cell = code_cell("", [result], nbgrader=locked("one_hot_hidden", 4))
    assert sanitise(notebook([cell])).cells[0].outputs == [result]


def test_the_report_is_kept_and_other_metadata_is_not() -> None:
    metadata = {
        "course": {"report": mixed().to_json(), "more": 1},
        "widgets": {"state": {}},
        "title": "x",
    }
    made = sanitise(notebook([], metadata))
    assert set(made.metadata) == {"course", "kernelspec", "language_info"}
    assert set(made.metadata["course"]) == {"report"}
    report = SubmissionReport.from_json(made.metadata["course"]["report"])
    assert report == mixed()
    assert page(report, made, student="a") == page(mixed(), made, student="a")


@pytest.mark.parametrize("report", [None, 3, [], {}, {"chapter": CHAPTER}])
def test_what_is_no_report_is_dropped(report: Any) -> None:
    made = sanitise(notebook([], {"course": {"report": report}}))
    assert "course" not in made.metadata


@pytest.mark.parametrize(
    "nbgrader",
    [
        "text",
        ["list"],
        {},
        {"grade_id": 3},
        {"grade_id": "a b"},
        {"grade_id": "one_hot", "grade": True},
        {"grade_id": "one_hot", "grade": True, "points": "<b>"},
        {"grade_id": "one_hot", "grade": True, "points": float("nan")},
        {"grade_id": "one_hot", "grade": True, "points": -1},
        {"grade_id": "one_hot", "grade": True, "schema_version": 99},
        {"grade_id": "one_hot", "checksum": "short", "cell_type": "x"},
    ],
)
def test_formgrader_opens_a_notebook_with_broken_marks(nbgrader: Any) -> None:
    cell = code_cell("1", nbgrader=solution("one_hot"))
    cell["metadata"]["nbgrader"] = nbgrader
    made = sanitise(notebook([cell]))
    MetadataValidator().validate_nb(made)
    assert "code_cell" in in_formgrader(made)


def test_ids_are_valid_and_occur_once() -> None:
    ids = ["a", "a", None, 3, "<b>", "x" * 65, "cell-2-0", "a", "cell-3-0"]
    cells = [code_cell(str(n), id=one) for n, one in enumerate(ids)]
    made = sanitise(notebook(cells))
    nbformat.validate(made)
    assert len({cell.id for cell in made.cells}) == len(ids)
    assert made.cells[0].id == "a"
    again = sanitise(notebook(cells))
    assert [c.id for c in again.cells] == [c.id for c in made.cells]


def test_sanitising_twice_changes_nothing_more() -> None:
    cells = [
        markdown(
            "<img src=x> [x](javascript:y) \\href{a}{b}\n\n```mermaid\n```"
        ),
        code_cell("1", [display({"text/html": "<b onclick=x>a &lt; b</b>"})]),
    ]
    once = sanitise(notebook(cells))
    assert sanitise(once) == once
