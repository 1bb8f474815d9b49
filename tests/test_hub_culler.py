"""The class server's idle culler, waited for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hub import end_everything, needed, start_hub, until

pytestmark = pytest.mark.slow


def test_an_idle_server_ends_with_all_that_runs_in_it() -> None:
    """And the files stay, and the next start is as the first."""
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    hub = start_hub(folder, ["tt-ada"], "idle_minutes = 0.25\n")
    try:
        ada = hub.person("tt-ada").start()
        ada.run(
            "import subprocess\n"
            "subprocess.Popen(['setsid', 'nohup', 'sleep', '98763'])\n"
            "open('kept.txt', 'w').write('mine')"
        )
        home = hub.course / "hub" / "homes" / "tt-ada"
        owner = home.stat().st_uid
        until(lambda: processes(owner), "nothing runs")
        until(
            lambda: not processes(owner), f"it is not culled: {hub.log[-2000:]}"
        )
        assert (home / "work" / "kept.txt").read_text() == "mine"
        ada.kernel = ""
        assert ada.start().run("print(open('kept.txt').read())") == "mine\n"
    finally:
        end_everything(hub)


def processes(owner: int) -> list[str]:
    """What runs under an account."""
    found = []
    for one in os.listdir("/proc"):
        try:
            if one.isdigit() and os.stat(f"/proc/{one}").st_uid == owner:
                found.append(one)
        except OSError:
            continue
    return found
