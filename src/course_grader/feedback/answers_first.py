"""In formgrader the answers stand first.

In `nbgrader_config.py`, since formgrader's pages come from nbconvert's HTMLExporter:

    c.HTMLExporter.preprocessors = ["course_grader.feedback.answers_first.AnswersFirst"]
"""

from __future__ import annotations

from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

REST = "# The rest of the notebook"


class AnswersFirst(Preprocessor):
    """Moves what is graded, each answer with its checks, before what is only
    read. A notebook that was not graded here stays as it is."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if "course" not in nb.metadata:
            return nb, resources
        graded = [cell for cell in nb.cells if _is_graded(cell)]
        rest = [cell for cell in nb.cells if not _is_graded(cell)]
        nb.cells = [*graded, new_markdown_cell(REST), *rest]
        return nb, resources


def _is_graded(cell: NotebookNode) -> bool:
    nbgrader = cell.metadata.get("nbgrader", {})
    return any(nbgrader.get(key) for key in ("grade", "solution", "task"))
