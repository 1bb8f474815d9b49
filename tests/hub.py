"""A class server for tests: the real hub and proxy, with Unix accounts that exist in
a mount namespace of its own and nowhere else on the machine."""

from __future__ import annotations

import csv
import fcntl
import functools
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import websocket
from commands import SCRIPTS, environment
from mini_course import write_mini

ROOT = Path(__file__).resolve().parent.parent
COURSE_ID = "pytorch_training_tricks"
CHAPTER = "03_mini"
PATIENCE_S = 120.0
RIGHT = {
    "double": "def double(x, times=1):\n    if times < 0:\n"
    "        raise ValueError('times')\n    return x * 2**times",
    "mean": "def mean(x):\n    return x.mean().item()",
}


def until(
    what: Callable[[], Any],
    why: str,
    patience_s: float = PATIENCE_S,
    every_s: float = 0.5,
) -> Any:
    """What a question gives once it gives something; fails when it never does."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(every_s)
    raise AssertionError(why)


def free_ports(number: int) -> int:
    """The first of so many free ports in a row."""
    start = 20000 + os.getpid() % 4000 * 10
    for first in range(start, 65000, number):
        try:
            with_sockets = []
            for port in range(first, first + number):
                one = socket.socket()
                with_sockets.append(one)
                one.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for one in with_sockets:
                one.close()
    raise AssertionError("no free ports")


def namespace(folder: Path) -> list[str]:
    """The command before one that has `/etc` to itself, accounts included, and whose
    accounts reach this Python, wherever it lies."""
    etc = folder / "etc"
    shutil.copytree("/etc", etc, symlinks=True)
    lines = ["set -e", "mount --make-rprivate /"]
    closed: dict[Path, list[Path]] = {}
    for path in (Path(sys.base_prefix), Path(sys.prefix), ROOT):
        for above in reversed(path.resolve().parents):
            if not above.stat().st_mode & 0o001:
                closed.setdefault(above, []).append(path.resolve())
                break
    for above, paths in closed.items():
        staged = []
        for path in dict.fromkeys(paths):
            stage = folder / f"stage{len(lines)}"
            stage.mkdir()
            lines.append(f"mount --bind {shlex.quote(str(path))} {stage}")
            staged.append((stage, shlex.quote(str(path))))
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {above}")
        for stage, there in staged:
            lines += [f"mkdir -p {there}", f"mount --move {stage} {there}"]
    lines += [f"mount --bind {etc} /etc", 'exec "$@"']
    script = folder / "namespace.sh"
    script.write_text("\n".join(lines) + "\n")
    return ["unshare", "--mount", "sh", str(script)]


@dataclass
class Person:
    """Somebody with a browser, less the browser: cookies and a kernel."""

    hub: Hub
    name: str
    session: requests.Session = field(default_factory=requests.Session)
    kernel: str = ""

    @property
    def home(self) -> str:
        return f"{self.hub.address}/user/{self.name}/"

    def cookie(self, path: str) -> str:
        """The token against forged requests below a path."""
        found = [
            one.value
            for one in self.session.cookies
            if one.name == "_xsrf" and one.path == path
        ]
        return found[-1] or "" if found else ""

    def login(self, password: str | None = None) -> requests.Response:
        """Types name and password; the answer, without what it leads to."""
        page = f"{self.hub.address}/hub/login"
        self.session.get(page, timeout=PATIENCE_S)
        form = {
            "username": self.name,
            "password": password or self.hub.passwords[self.name],
            "_xsrf": self.cookie("/hub/"),
        }
        return self.session.post(
            page, data=form, allow_redirects=False, timeout=PATIENCE_S
        )

    def start(self) -> Person:
        """Starts this person's server and waits until its page is there."""
        begun = self.session.get(
            f"{self.hub.address}/hub/spawn", timeout=PATIENCE_S
        )
        assert begun.ok, self.hub.log
        page = f"{self.home}lab"
        until(
            lambda: (
                (answer := self.session.get(page, timeout=PATIENCE_S)).ok
                and answer.url.startswith(page)
            ),
            f"the server of {self.name} does not start",
        )
        return self

    def get(self, path: str) -> requests.Response:
        """From this person's own server."""
        return self.session.get(self.home + path, timeout=PATIENCE_S)

    def post(self, path: str, **form: Any) -> requests.Response:
        """To this person's own server, as its page would."""
        return self.session.post(
            self.home + path,
            headers={"X-XSRFToken": self.cookie(f"/user/{self.name}/")},
            timeout=PATIENCE_S,
            **form,
        )

    def assignments(self, action: str = "", chapter: str = CHAPTER) -> Any:
        """What Assignment List shows; after one of its buttons if named."""
        said = {"course_id": COURSE_ID, "assignment_id": chapter}
        answer = (
            self.post(f"assignments/{action}", data=said)
            if action
            else self.get(f"assignments?course_id={COURSE_ID}")
        ).json()
        assert answer["success"], answer
        return answer["value"]

    def write(self, answers: dict[str, str], chapter: str = CHAPTER) -> None:
        """Types answers into the chapter and saves it."""
        path = f"api/contents/{chapter}/{chapter}.ipynb"
        model = self.get(path).json()
        for cell in model["content"]["cells"]:
            grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
            if grade_id in answers and cell["cell_type"] == "code":
                cell["source"] = answers[grade_id]
        saved = self.session.put(
            self.home + path,
            json={
                "type": "notebook",
                "format": "json",
                "content": model["content"],
            },
            headers={"X-XSRFToken": self.cookie(f"/user/{self.name}/")},
            timeout=PATIENCE_S,
        )
        assert saved.ok, saved.text

    def has_feedback(self, chapter: str = CHAPTER) -> bool:
        """Presses *Fetch Feedback*; whether there is some."""
        return any(
            one["assignment_id"] == chapter
            and any(two["has_local_feedback"] for two in one["submissions"])
            for one in self.assignments("fetch_feedback")
            if one["status"] == "submitted"
        )

    def run(self, code: str) -> str:
        """What a cell with this code prints in this person's own kernel."""
        if not self.kernel:
            self.kernel = self.post("api/kernels", json={}).json()["id"]
        cookies = "; ".join(
            f"{one.name}={one.value}"
            for one in self.session.cookies
            if self.home.endswith(one.path) or one.path == "/"
        )
        # one for each cell: the server closes those that answer no ping
        channels = websocket.create_connection(
            f"ws{self.home.removeprefix('http')}"
            f"api/kernels/{self.kernel}/channels",
            header={"Cookie": cookies},
            # as good as a tester's own certificate
            sslopt={"cert_reqs": ssl.CERT_NONE},
            timeout=PATIENCE_S,
        )
        message = uuid.uuid4().hex
        request = {
            "header": {
                "msg_id": message,
                "msg_type": "execute_request",
                "username": "",
                "session": message,
                "version": "5.3",
            },
            "parent_header": {},
            "metadata": {},
            "content": {"code": code, "silent": False, "store_history": False},
            "channel": "shell",
        }
        channels.send(json.dumps(request))
        said = ""
        while True:
            text = channels.recv()
            if not isinstance(text, str):
                continue
            answer = json.loads(text)
            if answer["parent_header"].get("msg_id") != message:
                continue
            content = answer["content"]
            if answer["msg_type"] == "stream":
                said += content["text"]
            elif answer["msg_type"] == "error":
                said += f"{content['ename']}: {content['evalue']}\n"
            elif (
                answer["msg_type"] == "status"
                and content["execution_state"] == "idle"
            ):
                channels.close()
                return said


@dataclass
class Hub:
    """A running class server.

    Attributes:
        folder: holds its course and everything that it made.
        port: of its proxy.
        first: what it printed before JupyterHub's own words.
        pid: of the hub.
    """

    folder: Path
    port: int
    first: str
    pid: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def course(self) -> Path:
        return self.folder / "mini"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def passwords(self) -> dict[str, str]:
        path = self.course / "hub" / "private" / "passwords.csv"
        with path.open() as file:
            return {row["id"]: row["password"] for row in csv.DictReader(file)}

    def person(self, name: str) -> Person:
        """Somebody who has logged in."""
        one = Person(self, name)
        answer = one.login()
        assert answer.status_code == 302, f"{name} is not let in"
        return one

    def as_grader(self, *arguments: str) -> str:
        """What a `course` command prints that an instructor types."""
        owner = os.lstat(self.course / "class")
        done = subprocess.run(
            [
                *("nsenter", "--mount", f"--target={self.pid}"),
                *("setpriv", f"--reuid={owner.st_uid}"),
                *(f"--regid={owner.st_gid}", "--clear-groups"),
                *(str(SCRIPTS / "course"), *arguments),
            ],
            cwd=self.course,
            env=environment()
            | {
                "HOME": str(self.course / "hub" / "grader"),
                "COURSE_ROOT": str(self.course),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode in (0, 3), done.stdout + done.stderr
        return done.stdout

    def points(self) -> dict[str, float]:
        """The points of `course export`, by learner."""
        said = self.as_grader("export", CHAPTER)
        rows = csv.DictReader(io.StringIO(said))
        return {
            row["student"]: float(row["points"])
            for row in rows
            if row["points"]
        }


PEOPLE = """\
instructors = ["tt-grace", "tt-alan"]
roster = "class/roster.csv"
"""
SETTINGS = """\
[hub]
memory_gib = 1.5
processors = 1
processes = 200
grading_account = "tt-grader"
address = "127.0.0.1"
port = {port}
"""


def start_hub(
    folder: Path, names: list[str], more: str = "", passwords: bool = True
) -> Hub:
    """Starts a class server with these learners.

    Args:
        folder: an empty one that everybody may pass through.
        names: the learners'.
        more: lines of `[hub]`.
        passwords: people have some; else nobody is on the roster.
    """
    start_folder(folder, names, more, passwords)
    return resume_hub(folder)


def start_folder(
    folder: Path, names: list[str], more: str = "", passwords: bool = True
) -> None:
    """Makes the course of a class server, and a namespace; see `start_hub`."""
    folder.chmod(0o755)
    course = write_mini(folder / "mini")
    port = free_ports(5)
    with course.settings_file.open("a") as file:
        people = PEOPLE if passwords else ""
        file.write(SETTINGS.format(port=port) + people + more)
    course.people.mkdir()
    if passwords:
        roster = "".join(f"{one}\n" for one in names)
        (course.people / "roster.csv").write_text(f"id\n{roster}")
    command = namespace(folder)
    (folder / "command.json").write_text(json.dumps([port, *command]))


def resume_hub(folder: Path) -> Hub:
    """Starts the hub of such a folder, again or for the first time."""
    port, *command = json.loads((folder / "command.json").read_text())
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, sys.executable, str(ROOT / "deploy" / "start.py")],
            cwd=folder / "mini",
            env=environment() | {"COURSE_ROOT": str(folder / "mini")},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until(
            lambda: (
                "JupyterHub is now running" in log.read_text(errors="replace")
                or process.poll() is not None
            ),
            "the hub does not start",
        )
        assert process.poll() is None, log.read_text()
    except AssertionError:
        process.terminate()
        raise
    first = log.read_text(errors="replace").partition("[I ")[0]
    return Hub(folder, port, first, process.pid)


def stop_hub(hub: Hub) -> None:
    """Stops the hub as systemd would, and waits for it."""
    os.kill(hub.pid, signal.SIGTERM)

    def gone() -> bool:
        try:
            return os.waitpid(hub.pid, os.WNOHANG)[0] == hub.pid
        except ChildProcessError:  # another worker's, which will see to it
            state = Path(f"/proc/{hub.pid}/stat")
            return not state.exists() or ") Z " in state.read_text()

    until(gone, "the hub does not stop")


def end_everything(hub: Hub) -> None:
    """Stops the hub, learners' servers and everything else of its folder."""
    names = os.listdir(hub.course / "hub" / "rooms")
    with ThreadPoolExecutor(len(names) or 1) as together:
        list(together.map(functools.partial(stop_server, hub), names))
    stop_hub(hub)
    shutil.rmtree(hub.folder, ignore_errors=True)


def stop_server(hub: Hub, name: str) -> None:
    """Has the hub stop a learner's server, as the culler does."""
    admin = hub.person("tt-grace")
    answer = admin.session.delete(
        f"{hub.address}/hub/api/users/{name}/server",
        headers={"X-XSRFToken": admin.cookie("/hub/")},
        timeout=PATIENCE_S,
    )
    assert answer.status_code in (202, 204, 400, 404), answer.text
    until(
        lambda: (
            not admin.session.get(
                f"{hub.address}/hub/api/users/{name}", timeout=PATIENCE_S
            ).json()["servers"]
        ),
        f"the server of {name} does not stop",
    )


def needed(more: str = "") -> None:
    """Skips where a class server with accounts cannot be had, and says why.

    Args:
        more: lines of `[hub]`.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can give learners accounts of their own")
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    install = "import start; start.install_proxy()"
    if "ngshare" in more:
        install += "; start.install_share()"
    done = subprocess.run(
        [sys.executable, "-c", install],
        cwd=ROOT / "deploy",
        env=environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(done.stderr.strip().splitlines()[-1])


@contextmanager
def shared_hub(
    base: Path,
    names: list[str],
    prepare: Callable[[Hub], None],
    more: str = "",
) -> Iterator[Hub]:
    """One hub for all workers of a run: the first starts it, the last stops it.

    Args:
        base: a folder that all workers have, for this hub alone.
        names: the learners'.
        prepare: what happens before the first test.
        more: lines of `[hub]`.
    """
    base.mkdir(exist_ok=True)
    state, lock_file = base / "hub.json", base / "hub.lock"
    with lock_file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        needed(more)
        known = json.loads(state.read_text()) if state.exists() else None
        if known is None:
            folder = Path(tempfile.mkdtemp(prefix="class-server-"))
            hub = start_hub(folder, names, more)
            try:
                prepare(hub)
            except BaseException:
                end_everything(hub)
                raise
            known = [str(folder), hub.port, hub.first, hub.pid, 0]
        known[-1] += 1
        state.write_text(json.dumps(known))
    hub = Hub(Path(known[0]), *known[1:4])
    try:
        yield hub
    finally:
        with lock_file.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = json.loads(state.read_text())
            known[-1] -= 1
            state.write_text(json.dumps(known))
            if known[-1] == 0:
                state.unlink()
                end_everything(hub)


def hand_in(*answers: tuple[Person, dict[str, str]]) -> None:
    """Learners whose servers run submit; all have feedback when it returns."""
    for one, cells in answers:
        one.write(cells)
        one.assignments("submit")
    for one, _ in answers:
        until(one.has_feedback, f"{one.name} gets no feedback: {one.hub.log}")


def submitted_name(folder: Path, student: str) -> str:
    """The name of a learner's submission in the exchange, its random part too."""
    inbound = folder / "mini" / "class" / "exchange" / COURSE_ID / "inbound"
    found = [
        one for one in os.listdir(inbound) if one.startswith(f"{student}+")
    ]
    own = [one for one in found if not re.search(r"\+2099-", one)]
    return own[0]
