"""What the tests of feedback share: reports, notebooks, and a reader of pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbgrader
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode, from_dict
from PIL import Image
from traitlets.config import Config

from course_grader.judge.report import (
    CheckReport,
    ExerciseReport,
    SubmissionReport,
    Verdict,
)

CHAPTER = "03_one_hot_and_losses"
CANARY = "canary_b1f7"
"""Stands in every cell of hidden tests, and may stand in no page."""


def image(kind: str = "PNG", size: tuple[int, int] = (30, 20)) -> str:
    """A picture in base64."""
    buffer = io.BytesIO()
    Image.new("RGB", size, (10, 90, 160)).save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def check(
    says: str, verdict: Verdict, max_points: float = 1.0, message: str = ""
) -> CheckReport:
    points = max_points if verdict is Verdict.PASSED else 0.0
    name = says.replace(" ", "_")
    return CheckReport(name, says, verdict, points, max_points, message)


def exercise(
    name: str, checks: Sequence[CheckReport], misconception: str = ""
) -> ExerciseReport:
    return ExerciseReport(
        exercise=name,
        title=name.replace("_", " ").capitalize(),
        points=sum(one.points for one in checks),
        max_points=sum(one.max_points for one in checks),
        checks=tuple(checks),
        misconception=misconception,
    )


def solved() -> SubmissionReport:
    return SubmissionReport(
        CHAPTER,
        seed=1,
        exercises=(
            exercise("one_hot", [check("ones at labels", Verdict.PASSED, 4.0)]),
            exercise("mean_loss", [check("equals one pass", Verdict.PASSED)]),
        ),
    )


def mixed() -> SubmissionReport:
    """One misconception, one time-out, one exercise not attempted."""
    return SubmissionReport(
        CHAPTER,
        seed=1,
        exercises=(
            exercise(
                "one_hot",
                [
                    check("ones at labels", Verdict.PASSED, 2.0),
                    check(
                        "labels left alone",
                        Verdict.FAILED,
                        2.0,
                        "Your code changed its input `labels` in place.",
                    ),
                ],
                "You resized the caller's labels. Use `unsqueeze`.",
            ),
            exercise(
                "cross_entropy",
                [check("finite", Verdict.TIMED_OUT, 3.0, "It took too long.")],
            ),
            exercise(
                "mean_loss", [check("equals one pass", Verdict.NOT_ATTEMPTED)]
            ),
        ),
        notes=("The cell of `one_hot` stood twice.",),
    )


def code_cell(
    source: Any,
    outputs: Sequence[Any] = (),
    *,
    nbgrader: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    metadata = {} if nbgrader is None else {"nbgrader": nbgrader}
    return {
        "cell_type": "code",
        "id": f"id-{abs(hash(str(source))) % 10**9}",
        "execution_count": 1,
        "metadata": metadata,
        "outputs": list(outputs),
        "source": source,
    } | more


def stream(text: Any, name: Any = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(data: Any, **metadata: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def solution(exercise: str) -> dict[str, Any]:
    return {
        "grade_id": exercise,
        "solution": True,
        "grade": False,
        "locked": False,
        "task": False,
        "schema_version": 3,
        "cell_type": "code",
    }


def locked(grade_id: str, points: float) -> dict[str, Any]:
    return {
        "grade_id": grade_id,
        "solution": False,
        "grade": True,
        "locked": True,
        "task": False,
        "points": points,
        "schema_version": 3,
        "cell_type": "code",
    }


def exercise_cells(
    name: str, source: Any, outputs: Sequence[Any] = (), points: float = 4.0
) -> list[dict[str, Any]]:
    """Solution cell, visible check, and a grade cell full of canaries."""
    return [
        code_cell(source, outputs, nbgrader=solution(name)),
        code_cell(
            f"visible_{name}",
            [stream(f"{name}: try again · the shape is (3,)\n")],
            nbgrader=locked(f"{name}_visible", 0),
        ),
        code_cell(
            f"{CANARY}_{name}",
            [stream(CANARY), display({"text/plain": CANARY})],
            nbgrader=locked(f"{name}_hidden", points),
        ),
    ]


def notebook(
    cells: Sequence[dict[str, Any]], metadata: dict[str, Any] | None = None
) -> NotebookNode:
    return from_dict(
        {
            "cells": list(cells),
            "metadata": metadata or {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


@cache
def _formgrader() -> HTMLExporter:
    root = Path(nbgrader.__file__).parent
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [
        str(root / "server_extensions" / "formgrader" / "templates")
    ]
    return HTMLExporter(config=config)


def in_formgrader(notebook: NotebookNode) -> str:
    """The page that formgrader shows an instructor."""
    resources = {
        "metadata": {"name": CHAPTER},
        "base_url": "",
        "index": 0,
        "total": 1,
        **dict.fromkeys(
            ("student", "first_name", "last_name", "notebook_path"), ""
        ),
        **dict.fromkeys(("submission_id", "assignment_id", "notebook_id"), "1"),
    }
    html, _ = _formgrader().from_notebook_node(notebook, resources)
    return html


@dataclass
class Read(HTMLParser):
    """A page as a parser sees it."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    styles: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._inside = ""

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._inside = tag
        if tag in ("br", "li", "p", "td", "th", "tr"):
            self.text += " "
        if tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.styles[-1] += data
        elif self._inside != "script":
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())


def read(page: str) -> Read:
    reader = Read()
    reader.feed(page)
    reader.close()
    return reader
