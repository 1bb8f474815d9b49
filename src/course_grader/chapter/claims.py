"""The claims ledger: popular claims about training tricks, and what the
installed torch says to each. `docs/claims.json` is the list, `docs/claims.md`
the table that is made from it for readers.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from dataclasses import dataclass

from course_grader.chapter.source import Cell, Chapter
from course_grader.course import Course, CourseError

VERDICTS = ("correct", "incomplete", "wrong", "outdated")
CLAIM_ID = re.compile(r"\d{3}-\d{2}")

_HEAD = """\
# Popular claims, and what torch says

Each claim stands in widely read posts on training tricks. The cell beside it
runs it against the torch that is installed and ends in an assertion; claims
that need a GPU, or that no program can settle, say so. *Correct* holds as it
stands; *incomplete* only with a condition that the claim leaves out; *outdated*
held once. `docs/claims.json` is the list this page is made from, by `course
build`.
"""


@dataclass(frozen=True)
class Claim:
    """One popular claim.

    Attributes:
        id: number of the post and of the claim in it.
        chapter: the chapter that deals with it.
        claim: what is claimed, in our words.
        verdict: one of `VERDICTS`.
        note: the correction or the condition, in one sentence or two.
        cells: the named cells of the chapter that show it.
        runs_on_cpu: the cells' own assertions confirm the verdict on a CPU;
            else it rests on documentation or needs a GPU.
    """

    id: str
    chapter: str
    claim: str
    verdict: str
    note: str
    cells: tuple[str, ...]
    runs_on_cpu: bool


def read_claims(course: Course) -> list[Claim]:
    """The ledger.

    Raises:
        CourseError: an entry is malformed or stands twice.
    """
    path = course.root / "docs" / "claims.json"
    if not path.exists():
        return []
    try:
        claims = [
            Claim(**{**one, "cells": tuple(one["cells"])})
            for one in json.loads(path.read_text(encoding="utf-8"))
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise CourseError(f"docs/claims.json is malformed: {error}") from error
    for one in claims:
        if one.verdict not in VERDICTS or not CLAIM_ID.fullmatch(one.id):
            raise CourseError(
                f"docs/claims.json: {one.id} needs an id like 000-01 and one "
                f"of the verdicts {', '.join(VERDICTS)}."
            )
    twice = [i for i, n in Counter(one.id for one in claims).items() if n > 1]
    if twice:
        raise CourseError(f"docs/claims.json: {twice[0]} stands twice.")
    return claims


def refuse_unshown_claims(claims: list[Claim], chapter: Chapter) -> None:
    """Refuses a claim of the chapter whose cell is missing, or that is said to
    run but whose cells assert nothing.

    Raises:
        CourseError: naming the claim and the cell.
    """
    by_name = {cell.name: cell for cell in chapter.cells if cell.name}
    for one in claims:
        if one.chapter != chapter.name:
            continue
        if not one.cells:
            raise CourseError(f"The claim {one.id} names no cell.")
        for name in one.cells:
            if name not in by_name:
                raise CourseError(
                    f"The claim {one.id} names the cell {name}, which "
                    f"{chapter.name} does not have."
                )
        if one.runs_on_cpu and not any(
            asserts(by_name[name]) for name in one.cells
        ):
            raise CourseError(
                f"The claim {one.id} is said to run on a CPU, but none of its "
                "cells asserts anything."
            )


def asserts(cell: Cell) -> bool:
    """Whether it holds an `assert`, or a call such as torch's `assert_close`."""
    return not cell.markdown and any(
        isinstance(node, ast.Assert)
        or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2].startswith("assert_")
        )
        for node in ast.walk(ast.parse(cell.source))
    )


def claims_page(claims: list[Claim]) -> str:
    """The table for readers, as markdown."""
    lines = [_HEAD]
    counts = Counter(one.verdict for one in claims)
    lines.append(
        f"{len(claims)} claims: "
        + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
        + ".\n"
    )
    for chapter in sorted({one.chapter for one in claims}):
        lines.append(f"\n## {chapter}\n")
        lines.append("| id | claim | verdict | what holds | shown by |")
        lines.append("|---|---|---|---|---|")
        for one in sorted(claims, key=lambda c: c.id):
            if one.chapter == chapter:
                cells = ", ".join(f"`{name}`" for name in one.cells)
                shown = cells if one.runs_on_cpu else f"{cells} (not run)"
                lines.append(
                    f"| {one.id} | {one.claim} | {one.verdict} | {one.note} | "
                    f"{shown} |"
                )
    return "\n".join(lines) + "\n"
