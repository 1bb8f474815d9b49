"""The class server where the exchange's disk is full: a small file system in the hub's
own mount namespace."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hub import (
    CHAPTER,
    COURSE_ID,
    RIGHT,
    Hub,
    Person,
    end_everything,
    needed,
    start_hub,
    stop_server,
)

pytestmark = pytest.mark.slow

ADA = "tt-ada"
FILL = """
import os
try:
    with open({path!r}, "wb") as file:
        while True:
            file.write(os.urandom(2**16)); file.flush()
except OSError as error:
    print(error.strerror)
"""


def mount(hub: Hub, place: Path, *options: str) -> None:
    """A small file system in the hub's namespace, with the owner of what it hides."""
    known = place.stat()
    said = [
        *options,
        f"uid={known.st_uid},gid={known.st_gid},mode={known.st_mode & 0o7777:o}",
    ]
    subprocess.run(
        [
            *("nsenter", "--mount", f"--target={hub.pid}"),
            *("mount", "-t", "tmpfs", "-o", ",".join(said), "tmpfs", place),
        ],
        check=True,
    )


def submit(person: Person) -> bool:
    """Presses *Submit*; whether it says that all went well."""
    said = {"course_id": COURSE_ID, "assignment_id": CHAPTER}
    return bool(person.post("assignments/submit", data=said).json()["success"])


def test_a_full_exchange_takes_nothing_half() -> None:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    hub = start_hub(folder, [ADA], "grade = 0\n")
    try:
        hub.as_grader("release")
        ada = hub.person(ADA).start()
        ada.write(RIGHT)
        inbound = f"/srv/exchange/{COURSE_ID}/inbound"
        stop_server(hub, ADA)
        place = hub.course / "class" / "exchange" / COURSE_ID / "inbound"
        mount(hub, place, "size=256k")
        ada = hub.person(ADA).start()
        assert "No space" in ada.run(FILL.format(path=f"{inbound}/full"))
        assert not submit(ada)
        assert [one["status"] for one in ada.assignments()] == ["fetched"]
        ada.run(f"import os; os.remove('{inbound}/full')")
        there = Path(f"/proc/{hub.pid}/root{place}")
        assert os.listdir(there) == []
        assert submit(ada)
        hub.as_grader("collect", CHAPTER)
        hub.as_grader("grade", CHAPTER)
        assert hub.points() == {ADA: 5.0}
    finally:
        end_everything(hub)
