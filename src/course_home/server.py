"""The home on a Jupyter server: behind its login, made anew at each visit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from course_exchange.disk import has_space
from course_exchange.known import known_of_exchange
from course_home.contents import ChapterEntry
from course_home.page import chapter_view, page
from course_home.progress import (
    newest_report,
    progress,
    visible_checks,
    written,
)

HOME = "course"
"""Its place on the server."""
_NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class Home:
    """Whose home it is.

    Attributes:
        work: the learner's folder.
        contents: gives the chapters as they are now.
        newer: gives the files that hold a newer edition, by chapter.
        class_server: chapters are released, handed in and given back here;
            else all of them lie in work/.
    """

    work: Path
    contents: Callable[[], Sequence[ChapterEntry]]
    newer: Callable[[], Mapping[str, str]] = dict
    class_server: bool = False


def home_page(home: Home, base_url: str) -> str:
    """The page as it is now.

    Args:
        home: whose.
        base_url: of the Jupyter server, with a slash at its end.
    """
    known = known_of_exchange()
    newer = home.newer()
    views = []
    for entry in home.contents():
        name = entry.name
        tried = progress(home.work, name)
        report = newest_report(home.work, name)
        notebook = home.work / name / f"{name}.ipynb"
        views.append(
            chapter_view(
                entry,
                {exercise: one.best for exercise, one in tried.items()},
                base_url=base_url,
                here=not home.class_server or notebook.is_file(),
                released=name in known.released,
                visible=(
                    visible_checks(home.work, name) if home.class_server else {}
                ),
                tried=max((one.at for one in tried.values()), default=None),
                handed_in=known.handed_in.get(name),
                saved=written(notebook) if notebook.is_file() else None,
                report=f"{base_url}{HOME}/reports/{name}" if report else "",
                newer=newer.get(name, ""),
                due=known.due.get(name),
            )
        )
    return page(
        views, class_server=home.class_server, full=not has_space(home.work)
    )


class _Page(JupyterHandler):  # type: ignore[misc]
    def initialize(self, home: Home) -> None:
        self.home = home

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
            await asyncio.to_thread(home_page, self.home, self.base_url)
        )


class ReportHandler(_Page):
    """A chapter's newest report."""

    @web.authenticated
    async def get(self, chapter: str) -> None:
        if not _NAME.fullmatch(chapter):
            raise web.HTTPError(404)
        found = newest_report(self.home.work, chapter)
        if found is None:
            raise web.HTTPError(404, "There is no report of this chapter yet.")
        await self.send(found.read_text(encoding="utf-8"))


def add_home(app: Any, home: Home) -> None:
    """Adds the pages to a Jupyter server's web application."""
    here = url_path_join(app.settings["base_url"], HOME)
    known = {"home": home}
    app.add_handlers(
        ".*$",
        [
            (f"{here}/?", HomeHandler, known),
            (f"{here}/reports/([^/]+)", ReportHandler, known),
        ],
    )
