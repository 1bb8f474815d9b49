"""The claims ledger: every verdict stands where a learner's kernel confirms it."""

from __future__ import annotations

import json

import nbformat
import pytest

from course_grader.chapter.build import build_chapter
from course_grader.chapter.claims import claims_page, read_claims
from course_grader.chapter.source import read_chapter
from course_grader.course import Course, CourseError


def test_the_cells_of_every_claim_are_in_the_notebook(course: Course) -> None:
    """There `test_learner.py` runs them, and their assertions must hold."""
    claims = read_claims(course)
    for chapter in sorted({one.chapter for one in claims}):
        named = {
            cell
            for one in claims
            if one.chapter == chapter
            for cell in one.cells
        }
        cells = read_chapter(course.source_of(chapter)).cells
        assert named <= {cell.name for cell in cells}
        notebook = nbformat.read(course.notebook_of(chapter), as_version=4)
        sources = {cell.id: cell.source for cell in notebook.cells}
        for cell in cells:
            if cell.name in named:
                assert cell.source in sources[cell.id]


def test_the_page_shows_every_claim_once(course: Course) -> None:
    claims = read_claims(course)
    page = claims_page(claims)

    for one in claims:
        assert page.count(f"| {one.id} |") == 1
    assert f"{len(claims)} claims" in page


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cells": ["gone"]}, "which 03_mini does not have"),
        ({"cells": []}, "names no cell"),
        ({"cells": ["two"]}, "asserts anything"),
        ({"verdict": "maybe"}, "one of the verdicts"),
        ({"id": "1"}, "an id like"),
    ],
)
def test_a_claim_without_its_cell_is_refused(
    mini: Course, change: dict[str, object], says: str
) -> None:
    source = mini.source_of("03_mini")
    text = source.read_text().replace("# %%\ntwo", '# %% cell="two"\ntwo')
    source.write_text(
        text.replace(
            "two = 2\n", 'two = 2\n\n# %% cell="sum"\nassert 1 + 1 == 2\n'
        )
    )
    claim = {
        "id": "000-01",
        "chapter": "03_mini",
        "claim": "One and one is two.",
        "verdict": "correct",
        "note": "It is.",
        "cells": ["sum"],
        "runs_on_cpu": True,
    }
    ledger = mini.root / "docs" / "claims.json"
    ledger.parent.mkdir()
    ledger.write_text(json.dumps([claim]))
    build_chapter(mini, "03_mini")

    ledger.write_text(json.dumps([{**claim, **change}]))

    with pytest.raises(CourseError, match=says):
        build_chapter(mini, "03_mini")
