"""The settings of a class, where an instructor begins."""

from __future__ import annotations

from course_grader.course import Course

SETTINGS = """\
# What you set for your class. Nothing else of the course need be edited, and no
# newer edition touches this file. docs/instructors.md says what each line does.

# timezone = "Europe/Berlin"
# exams = ["03"]
# attempts = "best"

# [late]
# percent_per_day = 10
# at_most_percent = 50
# free_days = 3

# [weights]
# "03" = 2

# [limits]
# cell_s = 60

# nbgrader's own settings, by class and trait:
# [nbgrader.Exchange]
# root = "/srv/nbgrader/exchange"
"""


def write_settings(course: Course) -> bool:
    """Writes a `course.toml` that sets nothing, where there is none.

    Returns:
        Whether it was written.
    """
    if course.settings_file.exists():
        return False
    course.settings_file.write_text(SETTINGS, encoding="utf-8")
    return True
