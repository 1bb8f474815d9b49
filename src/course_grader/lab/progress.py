"""Notes how far a learner is, for their home."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from course_grader.classroom.private import private_folder, write_private
from course_grader.course import Course
from course_grader.judge.report import ExerciseReport
from course_home.progress import OWN, PROGRESS, read_progress


def keep_progress(course: Course, chapter: str, report: ExerciseReport) -> None:
    """Notes what an exercise got just now."""
    known = read_progress(course.work)
    entry = known.setdefault(chapter, {}).setdefault(report.exercise, {})
    entry["latest"] = report.points
    entry["best"] = max(report.points, entry.get("best", 0.0))
    entry["at"] = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps(known, indent=1, sort_keys=True)
    write_private(private_folder(course.work / OWN) / PROGRESS, text + "\n")
