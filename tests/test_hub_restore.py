"""A class server from a backup, on a machine where accounts have other numbers."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hub import (
    CHAPTER,
    RIGHT,
    Hub,
    end_everything,
    needed,
    start_hub,
    stop_server,
)

pytestmark = pytest.mark.slow

ADA = "tt-ada"


def inside(hub: Hub, *command: str) -> str:
    """Runs a command among the accounts of this hub."""
    return subprocess.run(
        ["nsenter", "--mount", f"--target={hub.pid}", *command],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_a_home_is_given_to_the_account_that_is_made_again() -> None:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    hub = start_hub(folder, [ADA], "grade = 0\n")
    try:
        hub.as_grader("release")
        ada = hub.person(ADA).start()
        ada.write(RIGHT)
        ada.run("import os; os.symlink('/etc/passwd', 'link')")
        stop_server(hub, ADA)
        before = inside(hub, "id", "-u", ADA)
        owner = Path("/etc/passwd").stat().st_uid
        inside(hub, "userdel", ADA)
        inside(hub, "useradd", "tt-somebody")  # takes the number

        ada = hub.person(ADA).start()
        assert inside(hub, "id", "-u", ADA) != before
        assert inside(hub, "id", "-u", "tt-somebody") == before
        ada.write({"double": "def double(x, times=1):\n    return 2 * x"})
        assert ada.assignments("submit")
        home = hub.course / "hub" / "homes" / ADA
        (mine,) = {one.lstat().st_uid for one in [home, *home.rglob("*")]}
        assert f"{mine}\n" == inside(hub, "id", "-u", ADA)
        assert Path("/etc/passwd").stat().st_uid == owner
        hub.as_grader("collect", CHAPTER)
        hub.as_grader("grade", CHAPTER)
        assert ADA in hub.points()
    finally:
        end_everything(hub)
