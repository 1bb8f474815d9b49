"""The class server where a disk is full, the exchange's or a learner's own: a small file
system in the hub's own mount namespace."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

ADA, BOB = "tt-ada", "tt-bob"
NOTEBOOK = f"{CHAPTER}/{CHAPTER}.ipynb"
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


def submit(person: Person) -> dict[str, Any]:
    """Presses *Submit*; what the page is told."""
    said = {"course_id": COURSE_ID, "assignment_id": CHAPTER}
    return dict(person.post("assignments/submit", data=said).json())


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    made = start_hub(folder, [ADA, BOB], "grade = 0\n")
    made.as_grader("release")
    yield made
    end_everything(made)


def inbound_of(hub: Hub) -> Path:
    """Where what was handed in lies, on the hub's side."""
    return hub.course / "class" / "exchange" / COURSE_ID / "inbound"


def delete(person: Person, path: str) -> None:
    """*Delete* in JupyterLab's list of files."""
    xsrf = {"X-XSRFToken": person.cookie(f"/user/{person.name}/")}
    gone = person.session.delete(
        f"{person.home}api/contents/{path}", headers=xsrf, timeout=60
    )
    assert gone.status_code == 204, gone.text


def small_home(hub: Hub, name: str) -> None:
    """Lets a learner's home, whose server is stopped, hold 8 MiB and no more."""
    home = hub.course / "hub" / "homes" / name
    kept = hub.folder / "kept"
    subprocess.run(["cp", "-a", home, kept], check=True)
    mount(hub, home, "size=8m")
    subprocess.run(
        [
            *("nsenter", "--mount", f"--target={hub.pid}"),
            *("cp", "-a", f"{kept}/.", home),
        ],
        check=True,
    )


def test_a_full_exchange_takes_nothing_half(hub: Hub) -> None:
    ada = hub.person(ADA).start()
    ada.write(RIGHT)
    inbound = f"/srv/exchange/{COURSE_ID}/inbound"
    stop_server(hub, ADA)
    place = inbound_of(hub)
    mount(hub, place, "size=256k")
    ada = hub.person(ADA).start()
    assert "No space" in ada.run(FILL.format(path=f"{inbound}/full"))
    said = submit(ada)
    assert not said["success"]
    assert "the exchange is full. Tell your instructor." in said["value"]
    assert [one["status"] for one in ada.assignments()] == ["fetched"]
    ada.run(f"import os; os.remove('{inbound}/full')")
    there = Path(f"/proc/{hub.pid}/root{place}")
    assert os.listdir(there) == []
    assert submit(ada)["success"]
    hub.as_grader("collect", CHAPTER)
    hub.as_grader("grade", CHAPTER)
    assert hub.points()[ADA] == 5.0


def test_in_a_full_home_work_opens_and_its_owner_makes_room(hub: Hub) -> None:
    bob = hub.person(BOB).start()
    bob.write({"double": RIGHT["double"]})
    before = bob.get(f"api/contents/{NOTEBOOK}").json()["content"]
    stop_server(hub, BOB)
    small_home(hub, BOB)
    bob = hub.person(BOB).start()
    assert "The disk is full" not in bob.get("course").text
    bob.run(FILL.format(path="large"))

    for server in ("the one that runs", "the next one"):
        opened = bob.get(f"api/contents/{NOTEBOOK}")
        assert opened.status_code == 200, server
        assert opened.json()["content"] == before
        assert "The disk is full" in bob.get("course").text
        assert bob.run("print(1 + 1)") == "2\n"
        with pytest.raises(AssertionError, match="No space left on device"):
            bob.write(RIGHT)
        said = submit(bob)
        assert "your home is full" in said["value"]
        if server == "the one that runs":
            stop_server(hub, BOB)
            bob = hub.person(BOB).start()

    delete(bob, "large")
    assert "The disk is full" not in bob.get("course").text
    bob.write(RIGHT)
    assert submit(bob)["success"]
    hub.as_grader("collect", CHAPTER)
    hub.as_grader("grade", CHAPTER)
    assert hub.points()[BOB] == 5.0


def test_a_chapter_comes_whole_or_not_at_all(hub: Hub) -> None:
    """When a server starts, into a home that is full."""
    bob = hub.person(BOB).start()
    bob.run(f"import os; os.rename('{CHAPTER}', 'mine')")
    bob.run(FILL.format(path="large"))
    stop_server(hub, BOB)
    bob = hub.person(BOB).start()
    listed = bob.run("import os; print(os.listdir('.'))")
    assert "mine" in listed
    assert CHAPTER not in listed
    delete(bob, "large")
    stop_server(hub, BOB)
    bob = hub.person(BOB).start()
    assert bob.get(f"api/contents/{NOTEBOOK}").ok
    assert bob.run(
        "import filecmp; print(filecmp.dircmp("
        f"'{CHAPTER}', '/srv/exchange/{COURSE_ID}/outbound/{CHAPTER}').left_only)"
    ) in ("[]\n", "['.ipynb_checkpoints']\n")
