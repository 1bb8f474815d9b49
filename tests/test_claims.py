"""The claims ledger: every verdict is confirmed by the torch that is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from course_grader.chapter.build import build_chapter
from course_grader.chapter.claims import claims_page, read_claims
from course_grader.chapter.source import read_chapter
from course_grader.chapter.statements import read_statements
from course_grader.course import Course, CourseError
from course_grader.judge.kernels import Kernel
from course_grader.judge.warming import WarmProcess

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted(
    {one.chapter for one in read_claims(Course(ROOT))}
    | {
        name
        for name in Course(ROOT).chapters()
        if any(
            one.shown_by == "cell"
            for one in read_statements(Course(ROOT), name)
        )
    }
)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_verdict_holds_on_the_installed_torch(
    course: Course,
    chapter: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Runs the solved chapter; the assertions of the named cells must hold."""
    cells = read_chapter(course.source_of(chapter)).cells
    failed = {}
    with WarmProcess(course.limits) as warm, Kernel(warm) as kernel:
        for cell in cells:
            if not cell.markdown:
                run = kernel.run_cell(cell.source, cell.id)
                if not run.ok:
                    failed[cell.name] = run.outputs or run.died
    for statement in read_statements(course, chapter):
        if statement.shown_by == "cell" and statement.where in failed:
            record_property("says", statement.says)

    assert not failed
    claims = [one for one in read_claims(course) if one.chapter == chapter]
    names = {cell.name for cell in cells}
    for one in claims:
        assert set(one.cells) <= names


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
