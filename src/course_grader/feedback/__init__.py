"""What people read after grading: the learner's page, the class at a glance, and
notebooks that are safe to open.

What a learner hands in is hostile until shown otherwise. Nothing of it reaches a
browser but escaped text, pictures that were looked at, and plain tables.
"""

from typing import TYPE_CHECKING, Any

from course_grader.feedback.autograded import sanitise
from course_grader.feedback.classpage import class_report
from course_grader.feedback.learner import (
    Mark,
    below_a_cell,
    below_a_cell_so_far,
    page,
    page_without_report,
)

if TYPE_CHECKING:
    from course_grader.feedback.exporter import FeedbackExporter

__all__ = [
    "FeedbackExporter",
    "Mark",
    "below_a_cell",
    "below_a_cell_so_far",
    "class_report",
    "page",
    "page_without_report",
    "sanitise",
]


def __getattr__(name: str) -> Any:
    # Only nbgrader asks for it, and nbconvert takes a second to import.
    if name == "FeedbackExporter":
        from course_grader.feedback.exporter import FeedbackExporter

        return FeedbackExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
