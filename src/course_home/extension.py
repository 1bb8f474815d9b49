"""The home on a learner's server of a class: an extension of the Jupyter server, which
deploy/desk switches on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course_home.contents import ChapterEntry, read_contents
from course_home.server import Home, add_home
from course_home.signatures import Signatures

CONTENTS = "COURSE_CONTENTS"
"""The environment variable that names the file of chapters."""


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "course_home.extension"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Called by Jupyter when the server starts."""
    path = Path(os.environ[CONTENTS])

    def contents() -> Sequence[ChapterEntry]:
        return read_contents(path)  # a newer edition may have come

    notary = app.contents_manager.notary
    notary.store = Signatures(notary.db_file, parent=notary)
    home = Home(Path(app.root_dir), contents, class_server=True)
    add_home(app.web_app, home)
