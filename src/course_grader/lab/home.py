"""The page that `course lab` opens: served by the Jupyter server, behind its
login, made anew at each visit."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from course_grader.chapter.source import Chapter, read_chapter
from course_grader.classroom.due_dates import announced
from course_grader.course import CHAPTER_NAME, Course
from course_grader.feedback import homepage
from course_grader.lab.progress import newest_report, progress
from course_grader.lab.work import newer_editions

HOME = "course"
"""Its place on the server."""


def home_page(course: Course, base_url: str) -> str:
    """The learner's home.

    Args:
        course: the course.
        base_url: of the Jupyter server, with a slash at its end.
    """
    newer = newer_editions(course)
    due = announced()
    views = []
    for name in course.chapters():
        chapter = _chapter(course, name, course.source_of(name).stat().st_mtime)
        tried = progress(course, name)
        report = newest_report(course, name)
        views.append(
            homepage.chapter_view(
                chapter,
                {exercise: one.best for exercise, one in tried.items()},
                base_url=base_url,
                tried=max((one.at for one in tried.values()), default=None),
                report=f"{base_url}{HOME}/reports/{name}" if report else "",
                newer=newer.get(name, ""),
                due=due.get(name),
            )
        )
    return homepage.page(views)


@lru_cache(maxsize=64)
def _chapter(course: Course, name: str, _changed: float) -> Chapter:
    return read_chapter(course.source_of(name))


class _Page(JupyterHandler):  # type: ignore[misc]
    def initialize(self, course: Course) -> None:
        self.course = course

    @property
    def content_security_policy(self) -> str:
        # a report is a file, and whatever stands in it stays a page to read
        return (
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )

    async def send(self, text: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        await self.finish(text)


class HomeHandler(_Page):
    """The home."""

    @web.authenticated
    async def get(self) -> None:
        await self.send(
            await asyncio.to_thread(home_page, self.course, self.base_url)
        )


class ReportHandler(_Page):
    """A chapter's newest report."""

    @web.authenticated
    async def get(self, chapter: str) -> None:
        if not CHAPTER_NAME.fullmatch(chapter):
            raise web.HTTPError(404)
        found = newest_report(self.course, chapter)
        if found is None:
            raise web.HTTPError(404, "There is no report of this chapter yet.")
        await self.send(found.read_text(encoding="utf-8"))


def add_home(app: Any, course: Course) -> None:
    """Adds the pages to a Jupyter server."""
    here = url_path_join(app.settings["base_url"], HOME)
    known = {"course": course}
    app.add_handlers(
        ".*$",
        [
            (f"{here}/?", HomeHandler, known),
            (f"{here}/reports/([^/]+)", ReportHandler, known),
        ],
    )
