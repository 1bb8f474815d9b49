"""Releases feedback to those who handed in through the exchange.

nbgrader's own step stops for the whole class at the first submission that came
another way, for want of a file. `ReleaseFeedback` takes its place in `nbgrader
release_feedback` and in formgrader:

    c.ExchangeFactory.release_feedback = (
        "course_grader.classroom.release_feedback.ReleaseFeedback"
    )
"""

from __future__ import annotations

from glob import glob
from pathlib import Path

from nbgrader.exchange.default.release_feedback import ExchangeReleaseFeedback

from course_grader.classroom.collect_versions import (
    SECRET_FILE,
    TIMESTAMP_FILE,
)


class ReleaseFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """nbgrader's step, less those who have no way back through the exchange: their
    pages stay in the feedback folder, for the system they came from."""

    def copy_files(self) -> None:
        """Copies the pages of those who handed in through the exchange."""
        coursedir = self.coursedir
        said = coursedir.student_id_exclude
        pattern = coursedir.format_path(
            coursedir.feedback_directory, "*", coursedir.assignment_id
        )
        others = [
            Path(folder).parent.name
            for folder in glob(pattern)
            if not all(
                Path(folder, name).is_file()
                for name in (SECRET_FILE, TIMESTAMP_FILE)
            )
        ]
        coursedir.student_id_exclude = ",".join(filter(None, [said, *others]))
        try:
            super().copy_files()
        finally:
            coursedir.student_id_exclude = said
