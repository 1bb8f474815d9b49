"""nbgrader's own *generate feedback*, with our page.

In `nbgrader_config.py`:

    c.GenerateFeedback.exporter_class = "course_grader.feedback.FeedbackExporter"
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dateutil.tz import gettz
from nbconvert.exporters import Exporter, HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from traitlets import Unicode

from course_grader.classroom.collect_versions import (
    TIMESTAMP_FILE,
    read_timestamp,
)
from course_grader.feedback.learner import Mark, page, page_without_report
from course_grader.judge.report import SubmissionReport

if TYPE_CHECKING:
    from course_grader.classroom.nbgrader_api import Classroom

NO_RESPONSE = "No response."
"""The comment that nbgrader itself gives to an untouched cell."""


class FeedbackExporter(HTMLExporter):
    """Makes the learner's page of an autograded notebook.

    The report is taken from `metadata["course"]["report"]` of the notebook, points
    and comments from what nbgrader's GetGrades read in the gradebook. Without a
    report (nbgrader's own Execute writes none) the page shows these alone.
    """

    best_of = Unicode(
        "",
        help="The course's folder, if the best of a learner's attempts counts.",
    ).tag(config=True)

    def from_notebook_node(  # type: ignore[override]
        self,
        nb: NotebookNode,
        resources: dict[str, Any] | None = None,
        **kw: Any,
    ) -> tuple[str, dict[str, Any]]:
        # HTMLExporter's own would render its template; only the preprocessors
        # and `output_extension`, without which no file is written, are wanted.
        notebook, resources = Exporter.from_notebook_node(
            self, nb, resources, **kw
        )
        graded = resources.get("nbgrader", {})
        marks = gradebook_marks(notebook)
        zone = self.config.NbGraderAPI.get("timezone", "UTC")
        known: dict[str, Any] = {
            "student": graded.get("student", ""),
            "late_penalty": graded.get("late_penalty", 0.0),
            "submitted": _submitted(
                Path(resources["metadata"].get("path", "")), zone
            ),
            "due": _due(graded, zone),
            "counts": _counts(self.best_of, graded, zone),
        }
        course = notebook.metadata.get("course")
        if isinstance(course, dict) and "report" in course:
            try:
                report = SubmissionReport.from_json(course["report"])
                shown = page(report, notebook, manual=marks, **known)
                return shown, resources
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                self.log.warning(
                    "The report in the notebook of %s cannot be read (%s: %s); "
                    "its feedback shows the gradebook's points alone. Grade the "
                    "submission again to get the details.",
                    known["student"],
                    type(error).__name__,
                    error,
                )
        chapter = graded.get("assignment") or resources["metadata"]["name"]
        shown = page_without_report(chapter, notebook, marks=marks, **known)
        return shown, resources


def gradebook_marks(notebook: NotebookNode) -> list[Mark]:
    """What GetGrades wrote into the cells, one mark for each exercise (whose
    comment stands on its solution cell, points on its grade cell) and for each
    other graded cell, in the order of the notebook."""
    marks: dict[str, Mark] = {}
    for cell in notebook.cells:
        nbgrader = cell.metadata.get("nbgrader", {})
        # A visible check is a grade cell worth nothing.
        graded = nbgrader.get("score") or nbgrader.get("points")
        comment = nbgrader.get("comment") or ""
        if not graded and not comment:
            continue
        name = nbgrader["grade_id"].removesuffix("_hidden")
        mark = marks.get(name, Mark(name))
        if graded:
            mark = replace(
                mark,
                points=nbgrader.get("score"),
                max_points=nbgrader.get("points") or 0.0,
            )
        if comment and comment != NO_RESPONSE:
            mark = replace(mark, comment=comment)
        marks[name] = mark
    return list(marks.values())


def _submitted(folder: Path, zone: str) -> str:
    """When nbgrader says it was submitted, to the minute and in the course's time
    zone; empty if it does not."""
    if (folder / TIMESTAMP_FILE).is_symlink():
        return ""
    moment = read_timestamp(folder)
    return "" if moment is None else _said(moment, zone)


def _due(graded: dict[str, Any], zone: str) -> str:
    """When it was due for this learner, extension included; empty if never."""
    if "db_url" not in graded:
        return ""
    with Gradebook(graded["db_url"]) as gradebook:
        try:
            moment = gradebook.find_submission(
                graded["assignment"], graded["student"]
            ).duedate
        except MissingEntry:
            return ""
    return "" if moment is None else _said(moment, zone)


def _counts(root: str, graded: dict[str, Any], zone: str) -> str:
    """Which of several attempts counts, with what; empty if there is only one, or
    if the newest counts anyway."""
    if not root or "assignment" not in graded:
        return ""
    # late: it imports what imports this
    from course_grader.classroom import gradebook

    found = gradebook.marks(
        _classroom(root), [graded["assignment"]], graded["student"]
    )
    if len(found) != 1 or found[0].attempts < 2:
        return ""
    (mark,) = found
    which = f"attempt {mark.attempt} of {mark.attempts}"
    if mark.attempt == mark.attempts:
        return f"This is {which}, and the one that counts."
    when = (
        ""
        if mark.handed_in is None
        else f" of {_said(mark.handed_in.replace(tzinfo=None), zone)}"
    )
    return (
        f"This is your newest attempt. What counts is {which}{when}, with "
        f"{mark.points or 0.0:g} points."
    )


@lru_cache(maxsize=1)
def _classroom(root: str) -> Classroom:
    from course_grader.classroom.nbgrader_api import open_classroom
    from course_grader.course import Course

    return open_classroom(Course(Path(root)))


def _said(moment: datetime, zone: str) -> str:
    """A moment of nbgrader's, which is in UTC, in the course's time zone."""
    local = moment.replace(tzinfo=UTC).astimezone(gettz(zone))
    return f"{local:%Y-%m-%d %H:%M %Z}"
