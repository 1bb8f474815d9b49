"""What the process imports from which tests fork commands (`commands.py`)."""

from course_grader.startup import import_fast

import_fast()  # before all of these

import alembic.script  # noqa: E402, F401
import nbgrader.apps.nbgraderapp  # noqa: E402, F401
import quick_gradebooks  # noqa: E402, F401
import quick_processes  # noqa: E402, F401

import course_grader.chapter.build  # noqa: E402
import course_grader.classroom.gradebook  # noqa: E402
import course_grader.cli  # noqa: E402
import course_grader.grading.watched  # noqa: E402, F401
