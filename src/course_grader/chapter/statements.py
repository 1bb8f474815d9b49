"""The chapters' own statements of fact, and what shows each.

`tests/statements/test_NN_name.py` is the list for a chapter: the docstring of
each test quotes the sentences that the test runs, a paragraph each; `BY_CELL`
and `BY_SOURCE` there hold those that a cell of the chapter asserts and those that
no CPU can show. What has a source may be run by a test with the mark `gpu` as well.
`docs/statements.md` is made from it for readers.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from course_grader.chapter.claims import asserts
from course_grader.chapter.source import Chapter, Role, read_chapter
from course_grader.course import Course, CourseError

KINDS = ("cell", "test", "source")

_HEAD = """\
# What the chapters state, and what shows it

Sentences of the chapters that say something about PyTorch, Python, NumPy or
hardware, word for word. Each is shown by a *cell* of its chapter that ends in an
assertion, by a *test* in `tests/statements/`, or, where no CPU can show it, by a
primary *source*; many of the last are run as well, where there is a GPU
([release.md](release.md) says when they were). `make release-check` runs cells and tests on other releases of
PyTorch and names the sentences that have become false. `course build` makes this page
and refuses a quotation that its chapter no longer has. Popular claims have
[a list of their own](claims.md).
"""


@dataclass(frozen=True)
class Statement:
    """One sentence of a chapter.

    Attributes:
        chapter: the chapter's name.
        says: the sentence as it stands there, white space aside.
        shown_by: one of `KINDS`.
        where: name of the cell, name of the test, or address of the source.
        on_gpu: name of the test that runs it on a GPU, or nothing.
    """

    chapter: str
    says: str
    shown_by: str
    where: str
    on_gpu: str = ""


def file_of_statements(course: Course, chapter: str) -> Path:
    """Where a chapter's statements stand; it may not exist."""
    return course.root / "tests" / "statements" / f"test_{chapter}.py"


def read_statements(course: Course, chapter: str) -> list[Statement]:
    """The statements of a chapter, as its file lists them.

    Raises:
        CourseError: a test quotes nothing, a sentence stands twice, or nothing but
            a test on a GPU shows it.
    """
    path = file_of_statements(course, chapter)
    if not path.exists():
        return []
    found = []
    on_gpu: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            words = ast.get_docstring(node)
            if not words:
                raise CourseError(
                    f"{path.name}: {node.name} quotes no sentence of the "
                    "chapter in its docstring."
                )
            quoted = [_plain(one) for one in re.split(r"\n\s*\n", words)]
            marks = [ast.unparse(one) for one in node.decorator_list]
            if "pytest.mark.gpu" in marks:
                on_gpu |= dict.fromkeys(quoted, node.name)
            else:
                found += [
                    Statement(chapter, one, "test", node.name) for one in quoted
                ]
        elif isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
            if name not in ("BY_CELL", "BY_SOURCE"):
                continue
            kind = name.removeprefix("BY_").lower()
            for where, sentences in ast.literal_eval(node.value).items():
                found += [
                    Statement(chapter, _plain(one), kind, where)
                    for one in sentences
                ]
    counts = Counter(one.says for one in found)
    twice = [says for says, times in counts.items() if times > 1]
    if twice:
        raise CourseError(f"{path.name}: “{twice[0]}” stands twice.")
    sourced = {one.says for one in found if one.shown_by == "source"}
    for says, test in on_gpu.items():
        if says not in sourced:
            raise CourseError(
                f"{path.name}: {test} runs on a GPU alone. Name a source in "
                f"BY_SOURCE that shows “{says}” to everybody else."
            )
    return [replace(one, on_gpu=on_gpu.get(one.says, "")) for one in found]


@dataclass(frozen=True)
class Place:
    """Where a chapter says something.

    Attributes:
        heading: the one above it.
        cell_id: of the cell that says it.
    """

    heading: str
    cell_id: str


def places_of_statements(
    statements: list[Statement], chapter: Chapter
) -> list[Place]:
    """Where each statement stands in its chapter.

    Raises:
        CourseError: the chapter does not say it, or the cell that is to show
            it is missing or asserts nothing.
    """
    by_name = {cell.name: cell for cell in chapter.cells if cell.name}
    pieces = _pieces(chapter)
    places = []
    for one in statements:
        file = f"tests/statements/test_{one.chapter}.py"
        if one.shown_by == "cell":
            if one.where not in by_name:
                raise CourseError(
                    f"{file} names the cell {one.where}, which "
                    f"{one.chapter} does not have."
                )
            if not asserts(by_name[one.where]):
                raise CourseError(
                    f"{file}: the cell {one.where} asserts nothing, so it "
                    f"does not show “{one.says}”."
                )
        place = next((at for at, text in pieces if one.says in text), None)
        if place is None:
            raise CourseError(
                f"{one.chapter} does not say “{one.says}” any more. Quote the new "
                f"sentence in {file} and look whether what stands there "
                "still shows it."
            )
        places.append(place)
    return places


def in_reading_order(
    statements: list[Statement], chapter: Chapter
) -> list[tuple[Place, Statement]]:
    """The statements with their places, as a reader meets them.

    Raises:
        CourseError: as `places_of_statements`.
    """
    order = [place for place, _ in _pieces(chapter)]
    places = places_of_statements(statements, chapter)
    pairs = zip(places, statements, strict=True)
    return sorted(pairs, key=lambda pair: order.index(pair[0]))


def statements_page(course: Course) -> str:
    """The tables for readers, as markdown; empty if nothing is listed.

    Raises:
        CourseError: as `places_of_statements`.
    """
    tables: list[str] = []
    rows = []
    total: Counter[str] = Counter()
    for name in course.chapters():
        statements = read_statements(course, name)
        if not statements:
            continue
        chapter = read_chapter(course.source_of(name))
        notebook = f"../notebooks/{name}/{name}.ipynb"
        counts = Counter(one.shown_by for one in statements)
        total += counts
        gpu = sum(bool(one.on_gpu) for one in statements)
        total["gpu"] += gpu
        numbers = " | ".join(str(counts[kind]) for kind in KINDS)
        rows.append(
            f"| {chapter.title} | {len(statements)} | {numbers} | {gpu} |"
        )
        tables += ["", f"## {chapter.title}", ""]
        tables += ["| section | statement | shown by |", "|---|---|---|"]
        for place, one in in_reading_order(statements, chapter):
            anchor = quote(place.heading.replace(" ", "-"))
            says = one.says.replace("|", "\\|")
            shown = (
                f"source: <{one.where}>"
                if one.shown_by == "source"
                else f"{one.shown_by} `{one.where}`"
            )
            if one.on_gpu:
                shown += f"; on a GPU test `{one.on_gpu}`"
            tables.append(
                f"| [{place.heading}]({notebook}#{anchor}) | {says} | {shown} |"
            )
    if not rows:
        return ""
    numbers = " | ".join(str(total[kind]) for kind in KINDS)
    everything = sum(total[kind] for kind in KINDS)
    rows.append(f"| **all** | {everything} | {numbers} | {total['gpu']} |")
    head = "| chapter | statements | by cell | by test | by source | run on a GPU |"
    line = "|---|--:|--:|--:|--:|--:|"
    return "\n".join([_HEAD, head, line, *rows, *tables, ""])


def _pieces(chapter: Chapter) -> list[tuple[Place, str]]:
    """The texts of a chapter, in order; each cell and each heading begins one."""
    titles = {
        one.id: f"Exercise {number} · {one.title}"
        for number, one in enumerate(chapter.exercises, 1)
    }
    heading = chapter.title
    pieces = []
    for cell in chapter.cells:
        if cell.role is Role.TASK:
            heading = titles[cell.name]
        lines: list[str] = []
        for line in cell.source.splitlines():
            found = re.match(r"#{1,4} (.*)", line) if cell.markdown else None
            if found:
                text = _plain("\n".join(lines))
                pieces.append((Place(heading, cell.id), text))
                heading, lines = found[1], []
            else:
                lines.append(line)
        text = _plain("\n".join(lines))
        pieces.append((Place(heading, cell.id), text))
    return pieces


def _plain(text: str) -> str:
    """The words in one line, without the marks of quotations and comments."""
    lines = inspect.cleandoc(text).splitlines()
    return " ".join(
        " ".join(
            re.sub(r"^\s*(?:[>#]\s|[>#]$)", "", one) for one in lines
        ).split()
    )
