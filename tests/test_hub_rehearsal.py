"""The class server started by somebody who is not root: a rehearsal on one account. Here
that is the account called nobody, in a namespace of the test's own."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest
from hub import RIGHT, needed, resume_hub, start_folder, stop_hub, until

pytestmark = pytest.mark.slow


def test_an_ordinary_account_rehearses_a_class() -> None:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    start_folder(folder, ["tt-ada"])
    account = pwd.getpwnam("nobody")
    for path, _, files in os.walk(folder):
        for one in (path, *(os.path.join(path, file) for file in files)):
            os.chown(one, account.pw_uid, account.pw_gid, follow_symlinks=False)
    command = folder / "command.json"
    become = [
        "setpriv",
        f"--reuid={account.pw_uid}",
        f"--regid={account.pw_gid}",
    ]
    command.write_text(
        json.dumps(
            [*json.loads(command.read_text()), *become, "--clear-groups"]
        )
    )
    hub = resume_hub(folder)
    try:
        *_, said = hub.first.splitlines()
        assert said.startswith("This is a rehearsal: everybody runs on your")
        hub.as_grader("release")
        ada = hub.person("tt-ada").start()
        ada.write(RIGHT)
        ada.assignments("submit")
        until(ada.has_feedback, "there is no feedback")
        assert hub.points() == {"tt-ada": 5.0}
    finally:
        stop_hub(hub)
        shutil.rmtree(folder, ignore_errors=True)
