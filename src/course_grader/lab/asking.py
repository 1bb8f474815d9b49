"""The kernel's side: after a visible check has run, all hidden checks of that
exercise are asked for and shown below the cell.

Loaded as an IPython extension by `course lab`'s own kernel specification, nowhere
else. It never stops a cell and changes nothing of the learner's.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from course_grader.kernel.channel import (
    Channel,
    ChannelClosed,
    DeadlinePassed,
)

ADDRESS = "COURSE_CHECKS"
"""The environment variable that holds the path of the service's socket."""
LONGEST_WAIT_S = 90.0
"""The first check of a chapter may have to wait until the process is warm."""
AT_ONCE_S = 0.5
"""What comes later than this is announced, so that nobody wonders whether the hidden
checks run."""
LONGEST_CELL = 200_000
"""Characters of a cell that are sent."""
MOST_CELLS = 500

_VISIBLE = re.compile(r"^with visible_check\(\"(\w+)\"\)", re.MULTILINE)


class Asking:
    """Notes the cells that run, and asks after visible checks."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.cells: dict[str, str] = {}

    def before(self, info: Any) -> None:
        """Keeps the latest text of each cell, in the order in which they ran."""
        source = str(info.raw_cell)
        cell_id = str(
            getattr(info, "cell_id", None) or f"own-{len(self.cells)}"
        )
        self.cells.pop(cell_id, None)
        if len(source) <= LONGEST_CELL:
            self.cells[cell_id] = source

    def after(self, result: Any) -> None:
        """Asks if the cell was a visible check that ran to its end."""
        found = _VISIBLE.search(str(result.info.raw_cell))
        if found is None or result.error_before_exec or result.error_in_exec:
            return
        below = _Below()
        try:
            answer = self.ask(
                {"op": "check", "exercise": found[1], "cells": self._latest()},
                lambda html: below.show("The hidden checks are running…", html),
            )
        except KeyboardInterrupt:
            below.show("The hidden checks were not waited for.")
            return
        except DeadlinePassed:
            below.show(
                "The hidden checks took too long and were not waited for. Run "
                "this cell again."
            )
            return
        except (ChannelClosed, OSError):
            below.show(
                "The hidden checks cannot be reached: save your work, and start "
                "`course lab` again. Until then the visible checks are what "
                "there is."
            )
            return
        below.show(str(answer.get("text", "")), str(answer.get("html", "")))

    def _latest(self) -> list[list[str]]:
        return [list(one) for one in self.cells.items()][-MOST_CELLS:]

    def ask(
        self,
        request: dict[str, Any],
        waiting: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Any]:
        """One request to the service.

        Args:
            request: what is asked.
            waiting: is called if the answer does not come at once, and again
                after each check, with the HTML of what was judged so far.

        Raises:
            OSError, ChannelClosed: nobody is there.
            DeadlinePassed: it takes too long.
        """
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(self.address)
            channel = Channel(sock)
            path = os.environ.get("JPY_SESSION_NAME", "")
            channel.send({**request, "notebook": path}, timeout_s=5)
            asked, announced, so_far = time.monotonic(), False, ""
            while True:
                passed = time.monotonic() - asked
                left = max(AT_ONCE_S - passed, 0.0)
                if not (announced or select.select([sock], [], [], left)[0]):
                    announced = True
                    waiting(so_far)
                answer, _ = channel.receive(max(LONGEST_WAIT_S - passed, 0.0))
                if "running" not in answer:
                    return answer
                so_far = str(answer.get("html", ""))
                if announced:
                    waiting(so_far)


class _Below:
    """The place below the cell, in which what is shown replaces what was shown."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, text: str, html: str = "") -> None:
        """Shows a text, or the same as HTML where that can be shown. Nothing is
        shown for no text, if nothing was before."""
        from IPython.display import DisplayHandle

        data = {"text/plain": text}
        if html:
            data["text/html"] = html
        if self.handle is not None:
            self.handle.update(data, raw=True)
        elif text or html:
            self.handle = DisplayHandle()
            self.handle.display(data, raw=True)


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython when a kernel starts."""
    address = os.environ.get(ADDRESS, "")
    if not address or os.environ.get("NBGRADER_EXECUTION"):
        return
    asking = Asking(address)
    shell.events.register("pre_run_cell", asking.before)
    shell.events.register("post_run_cell", asking.after)
    try:
        asking.ask({"op": "hello"})  # so that the chapter is made ready
    except (OSError, ChannelClosed, DeadlinePassed):
        return
