"""ngshare as this class server runs it: nbgrader's exchange over HTTP, where no disk
is shared.

ngshare trusts every token of the hub, listens on all of the machine's addresses,
answers in a browser with a cookie that any server on the same address may read, and
has a page that shows its database. So here it hears this machine alone, takes tokens
alone, and of those the ones that the hub gave for it; and there is the interface of the
exchange, and no page. Its own code stays as it is.

    python serve.py FOLDER SERVICE BYTES

keeps everything in the folder, takes what the hub's service of that name does as the
course's, and bodies of at most so many bytes. It runs in a Python of its own, so nothing
here is shared with the rest of the course.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ngshare import dbutil
from ngshare.ngshare import (
    HealthCheckHandler,
    HomePage,
    InitDatabase,
    MyApplication,
    MyRequestHandler,
    NotFoundHandler,
    Static,
)
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

PAGES = (HomePage, InitDatabase, Static)
REMEMBER_S = 30
"""How long what the hub said of a token counts."""


class _Guard(MyRequestHandler):
    """Who asks, before anything is answered."""

    def get_current_token(self) -> str | None:
        """Of the header alone: a cookie comes along with what others link to."""
        kind, _, token = self.request.headers.get(
            "Authorization", ""
        ).partition(" ")
        return token if kind.lower() == "token" else None

    def user_for_token(self, token: str) -> dict[str, Any] | None:
        """Whom the hub gave it to, if it is for ngshare. Services have a name that
        nobody can log in under."""
        self.hub_auth.cache_max_age = REMEMBER_S
        model = self.hub_auth.user_for_token(token)
        if not model or not self.hub_auth.check_scopes(self.hub_scopes, model):
            return None
        if model["kind"] == "service":
            return model | {"name": service_name(model["name"])}
        return model

    def find_student_submission(
        self, assignment: Any, student: Any, timestamp: Any
    ) -> Any:
        """Also where ngshare hands on the words of the request, which its database
        takes for no moment: it has failed for all but the newest submission."""
        if isinstance(timestamp, str):
            timestamp = self.strptime(timestamp)
        return super().find_student_submission(assignment, student, timestamp)

    def prepare(self) -> None:
        """Nobody unknown gets any further."""
        super().prepare()
        if self.user is None:
            self.json_error(401, "This token is not for the exchange")


def service_name(name: str) -> str:
    """What a service of the hub is called here."""
    return f"service:{name}"


@cache
def guarded(handler: type[Any]) -> type[Any]:
    """ngshare's handler behind the guard; none where it would be a page."""
    if handler is HealthCheckHandler:
        return handler
    if not issubclass(handler, MyRequestHandler) or handler in PAGES:
        return NotFoundHandler
    return type(handler.__name__, (_Guard, handler), {})


class Exchange(MyApplication):  # type: ignore[misc]
    """ngshare, every handler of it behind the guard."""

    def get_handler_delegate(
        self,
        request: Any,
        target_class: Any,
        target_kwargs: Any = None,
        path_args: Any = None,
        path_kwargs: Any = None,
    ) -> Any:
        """Where tornado asks who answers."""
        handler = guarded(target_class)
        if handler is NotFoundHandler:
            path_args = path_kwargs = None
        return super().get_handler_delegate(
            request, handler, target_kwargs, path_args, path_kwargs
        )


def main() -> None:
    """Serves until it is stopped."""
    folder, keeper, max_bytes = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.umask(0o077)
    database = f"sqlite:///{folder}/ngshare.db"
    storage = str(folder / "files")
    options = namedtuple("Options", ["x"])(["data=true", f"storage={storage}"])
    dbutil.upgrade(database, cmd_opts=options)
    app = Exchange(
        os.environ["JUPYTERHUB_SERVICE_PREFIX"],
        database,
        storage,
        admin=[service_name(keeper)],
        autoreload=False,
    )
    url = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    server = HTTPServer(app, max_body_size=int(max_bytes))
    server.listen(url.port, url.hostname)
    IOLoop.current().start()


if __name__ == "__main__":
    main()
