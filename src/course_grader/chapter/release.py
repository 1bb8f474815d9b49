"""nbgrader's own steps from the instructor's notebook to the learners'."""

from __future__ import annotations

import logging
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.nbgraderformat import SCHEMA_VERSION
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)

_LOG = logging.getLogger("course_grader.build")
_LOG.setLevel(logging.ERROR)


def for_nbgrader(source: NotebookNode) -> NotebookNode:
    """The instructor's notebook as the nbgrader that is installed reads it."""
    notebook = nbformat.from_dict(source)
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["schema_version"] = SCHEMA_VERSION
    return notebook


def released_notebook(source: NotebookNode) -> NotebookNode:
    """What learners get: nbgrader's own release step, without a gradebook."""
    notebook = nbformat.from_dict(source)
    resources: dict[str, Any] = {"nbgrader": {}}
    for step in (
        LockCells,
        ClearSolutions,
        ClearOutput,
        CheckCellMetadata,
        ComputeChecksums,
        ClearHiddenTests,
        ClearMarkScheme,
        ComputeChecksums,
        CheckCellMetadata,
    ):
        # a log of its own: the default one is the running application's
        notebook, resources = step(log=_LOG).preprocess(notebook, resources)
    return notebook
