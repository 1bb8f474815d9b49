"""Due dates, where learners can read them: nbgrader keeps them in the gradebook,
which no learner may open. `due.json` lies beside the released chapters in the
exchange, and holds no more than everybody may know."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from jupyter_core.paths import jupyter_config_path
from nbgrader.api import Gradebook
from nbgrader.apps import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import Exchange
from traitlets.config import Config

from course_grader.classroom.nbgrader_api import Classroom
from course_grader.classroom.over_http import announce_due

FILE = "due.json"


def announce(classroom: Classroom) -> None:
    """Writes when each chapter is due, where an exchange is a folder that has the
    course."""
    path = _file(classroom.config)
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
    part = path.with_name(f".{FILE}.part")
    part.write_text(json.dumps(dates, indent=1) + "\n", encoding="utf-8")
    part.chmod(0o644)
    os.replace(part, path)
    announce_due(classroom, path)


def announced() -> dict[str, datetime]:
    """When each chapter is due, for a learner whose Jupyter knows the exchange; an
    extension is not in it. Empty where nobody teaches."""
    app = NbGrader()
    app.config_file_paths.append(jupyter_config_path())
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        app.load_config_file()
        tree = json.loads(_file(app.config).read_text(encoding="utf-8"))
        return {
            name: datetime.fromisoformat(moment)
            for name, moment in tree.items()
        }
    return {}


def _file(config: Config) -> Path:
    course = CourseDirectory(config=config).course_id
    return Path(Exchange(config=config).root) / course / FILE
