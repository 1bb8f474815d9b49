"""The Jupyter server's extension: serves the learner's home, starts the service of
hidden checks and tells kernels where it is."""

from __future__ import annotations

import atexit
import os
import socket
from typing import Any

from course_grader.course import find_course
from course_grader.lab.asking import ADDRESS
from course_grader.lab.home import home_of
from course_home.server import HOME, add_home

_WELCOME = """\
Address: http://localhost:{port}/{home}?token={token}
The page lists the chapters. Open one, run it from the top, answer, run the cell \
below the answer.
To stop, press Ctrl-C twice. Your work stays in work/."""


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "course_grader.lab.extension"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Called by Jupyter when the server starts; kernels inherit the address."""
    course = find_course()
    add_home(app.web_app, home_of(course))
    if not hasattr(socket, "AF_UNIX"):
        return  # on Windows; the visible checks are what there is
    from course_grader.lab.service import Service

    service = Service(course)
    os.environ[ADDRESS] = service.address
    atexit.register(service.close)


async def _start_jupyter_server_extension(app: Any) -> None:
    """Called by Jupyter once the server listens: who follows the address finds it."""
    token = os.environ["JUPYTER_TOKEN"]
    print(_WELCOME.format(port=app.port, home=HOME, token=token), flush=True)
