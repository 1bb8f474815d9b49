"""The home of who learns on this machine: all chapters lie in work/."""

from __future__ import annotations

from course_grader.chapter.contents import contents
from course_grader.course import Course
from course_grader.lab.work import newer_editions
from course_home.server import Home


def home_of(course: Course) -> Home:
    """The course's own."""
    return Home(
        course.work,
        contents=lambda: contents(course),
        newer=lambda: newer_editions(course),
    )
