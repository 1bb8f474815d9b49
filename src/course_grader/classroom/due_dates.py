"""Due dates, where learners' servers can read them."""

from __future__ import annotations

import json
import os
from datetime import UTC

from nbgrader.api import Gradebook

from course_exchange.known import due_file
from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.over_http import announce_due


def announce(classroom: Classroom) -> None:
    """Writes when each chapter is due, where an exchange is a folder that has the
    course."""
    path = due_file(classroom.config)
    if not path.parent.is_dir():
        return
    coursedir = classroom.coursedir
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        # nbgrader keeps UTC without saying so
        dates = {
            one.name: one.duedate.replace(tzinfo=UTC).isoformat()
            for one in gradebook.assignments
            if one.duedate is not None
        }
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(dates, indent=1) + "\n", encoding="utf-8")
    part.chmod(0o644)
    os.replace(part, path)
    announce_due(classroom, path)
