"""What a reader of a solved chapter sees: nothing wider than the window, figures
that say what they show, colours that stay apart for everybody."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from course_grader.chapter.build import build_chapter
from course_grader.chapter.notebook import solved_notebook
from course_grader.course import Course

COURSE = Course(Path(__file__).resolve().parent.parent)
CHAPTERS = COURSE.chapters()
WIDTH = 1280

COLOUR_ARGUMENTS = {"color", "c", "facecolor", "edgecolor", "ecolor"}
GREY = re.compile(r"0?\.\d+|black|white|none|k|w")
MAPS = {"Blues", "cividis", "viridis", "gray", "binary"}
"""Each runs from light to dark, so it can be read without its hues."""


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_fits_the_window_and_its_figures_have_words(
    browser: Any, chapter: str, tmp_path: Path
) -> None:
    _, source, _ = build_chapter(COURSE, chapter)
    notebook = solved_notebook(source)
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": tmp_path}},
    ).execute()
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert pictures
    for one in pictures:
        words = one.metadata.get("image/png", {}).get("alt", "")
        assert words.startswith("Figure: ")
        assert "without a title" not in words

    page = tmp_path / "page.html"
    page.write_text(
        HTMLExporter(embed_images=True).from_notebook_node(notebook)[0]
    )
    view = browser.new_page(viewport={"width": WIDTH, "height": 900})
    view.goto(page.as_uri(), wait_until="load")
    too_wide = view.evaluate(
        """width => [...document.querySelectorAll(
               '.jp-Cell img, .jp-Cell table, .jp-Cell svg, .jp-Cell p')]
           .filter(one => one.getBoundingClientRect().right > width)
           .map(one => one.tagName + ' ' + (one.alt || one.textContent)
               .slice(0, 80))""",
        WIDTH,
    )
    view.close()
    assert too_wide == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_figures_keep_to_colours_that_all_readers_tell_apart(
    chapter: str,
) -> None:
    tree = ast.parse(COURSE.source_of(chapter).read_text())

    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        for argument in call.keywords:
            value = argument.value
            if not isinstance(value, ast.Constant) or value.value is None:
                continue
            where = f"{chapter}, line {value.lineno}"
            if argument.arg in COLOUR_ARGUMENTS and isinstance(
                value.value, str
            ):
                assert GREY.fullmatch(value.value), (
                    f"{where}: take colours from course_utils.PALETTE"
                )
            if argument.arg == "cmap":
                assert value.value in MAPS, where
