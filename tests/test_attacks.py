"""Every attack costs its author alone: no marks, no loot, and whoever is graded
next gets what they deserve. The table of `docs/attacks.md` says what stock
nbgrader does on the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from attacks import ATTACKS, HONEST, ON_OURS, Attack, hand_in
from mini_course import write_mini
from nbformat import NotebookNode

from course_grader.chapter.build import build_chapter
from course_grader.classroom.folder import details_of, jobs_in
from course_grader.course import Course
from course_grader.feedback import page, sanitise
from course_grader.grading.process import GradingProcess
from course_grader.judge import sandbox

pytestmark = pytest.mark.skipif(
    sandbox.missing() is not None, reason="no sandbox on this machine"
)


@dataclass
class Listeners:
    """Services of this machine that a submission must not reach."""

    heard: list[bytes] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    def listen(self, family: int, kind: int, address: object) -> socket.socket:
        one = socket.socket(family, kind)
        one.bind(address)
        if kind == socket.SOCK_STREAM:
            one.listen(8)
        self.sockets.append(one)
        threading.Thread(
            target=self._hear, args=(one, kind), daemon=True
        ).start()
        return one

    def _hear(self, one: socket.socket, kind: int) -> None:
        while True:
            try:
                if kind == socket.SOCK_STREAM:
                    connection, _ = one.accept()
                    self.heard.append(b"connected")
                    connection.close()
                else:
                    content, sender = one.recvfrom(100)
                    self.heard.append(content)
                    one.sendto(b"answer", sender)
            except OSError:
                return

    def close(self) -> None:
        for one in self.sockets:
            one.close()


@dataclass
class Grader:
    """A grading process with neighbours."""

    course: Course
    process: GradingProcess
    released: NotebookNode
    words: dict[str, str]
    listeners: Listeners
    guarded: list[Path]


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    folder = tmp_path_factory.mktemp("attacked")
    course = write_mini(folder / "mini")
    text = course.settings_file
    text.write_text(text.read_text() + "submission_s = 8\ngrader_cpu_s = 16\n")
    course = Course(course.root)
    secret = folder / "secret.txt"
    secret.write_text("the instructor's own")
    gradebook = course.people / "gradebook.db"
    gradebook.parent.mkdir()
    gradebook.write_bytes(b"SQLite format 3\0 marks of all")
    shm = Path("/dev/shm") / f"course-{secrets.token_hex(6)}"
    shm.write_text("shared by the instructor's processes")
    name = f"COURSE_SECRET_{secrets.token_hex(4)}".upper()
    listeners = Listeners()
    tcp = listeners.listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    listeners.listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port))
    unix = str(folder / "service")
    listeners.listen(socket.AF_UNIX, socket.SOCK_STREAM, unix)
    listeners.listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}")
    words = {
        "SECRET_FILE": str(secret),
        "SECRET_ENV": name,
        "PORT": str(port),
        "UNIX": unix,
        "ABSTRACT": name,
        "SHM": shm.name,
    }
    os.environ[name] = "hunter2"
    try:
        with GradingProcess(course) as process:
            process.prepare("03_mini", 11)
            _, _, released = build_chapter(course, "03_mini")
            yield Grader(
                course,
                process,
                released,
                words,
                listeners,
                [secret, gradebook, shm, *course.root.rglob("*.py")],
            )
    finally:
        listeners.close()
        shm.unlink()
        del os.environ[name]


def digests(paths: list[Path]) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file() and not path.is_symlink()
    }


def seen_by_anybody(text: str, report_json: str, html: str) -> str:
    """All that a learner or an instructor gets of a graded submission, but for
    the code that the learner wrote."""
    notebook = sanitise(nbformat.reads(text, as_version=4))
    shown = [html, report_json, json.dumps(notebook.metadata)]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shown += [json.dumps(one) for one in cell.outputs]
        else:
            shown.append(cell.source)
    return "\n".join(shown)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            attack,
            id=attack.name,
            marks=[pytest.mark.slow] if attack.slow else [],
        )
        for attack in (*ATTACKS, *ON_OURS)
    ],
)
def test_an_attack_costs_its_author_alone(
    grader: Grader, attack: Attack, tmp_path: Path
) -> None:
    handed_in = tmp_path / "submissions"
    attackers = ["mallory", "mallory-2"] if attack.twice else ["mallory"]
    for student in attackers:
        hand_in(attack, grader.released, handed_in / student, grader.words)
    hand_in(HONEST, grader.released, handed_in / "zoe", grader.words)
    before = digests([*grader.guarded, *handed_in.rglob("*.ipynb")])
    pid = grader.process.process.pid

    jobs, refused = jobs_in(handed_in)
    assert [job.student for job in jobs][-1] == "zoe"
    for job in jobs:
        report, text = grader.process.grade("03_mini", 11, job.submitted)
        graded = nbformat.reads(text, as_version=4)
        html = page(report, graded, student=job.student)
        if job.student == "zoe":
            assert report.points == report.max_points == 5
            assert all(one.misconception == "" for one in report.exercises)
            continue
        assert report.points == 0, details_of(report)
        assert report.max_points == 5
        seen = seen_by_anybody(text, json.dumps(report.to_json()), html)
        harm = re.search(attack.harm, seen)
        assert harm is None, seen[max(0, harm.start() - 200) : harm.end() + 200]
    for student, why in refused.items():
        assert student in attackers
        assert why.endswith(".")
    assert digests([*grader.guarded, *handed_in.rglob("*.ipynb")]) == before
    assert grader.listeners.heard == []
    assert grader.process.process.pid == pid
    assert grader.process.process.poll() is None


def test_the_services_do_answer_whoever_reaches_them(grader: Grader) -> None:
    """Else the attacks on them would show nothing."""
    port = int(grader.words["PORT"])
    with socket.create_connection(("127.0.0.1", port), 5) as one:
        assert one.recv(1) == b""  # closed, so it has been heard
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(5)
        one.sendto(b"hello", ("127.0.0.1", port))
        assert one.recv(10) == b"answer"
    assert grader.listeners.heard == [b"connected", b"hello"]
    grader.listeners.heard.clear()


def test_there_are_attacks_of_every_kind() -> None:
    names = [attack.name for attack in (*ATTACKS, *ON_OURS)]
    assert len(names) == len(set(names))
    assert len(ON_OURS) >= 60
    kinds = [attack.kind for attack in ATTACKS]
    assert len(kinds) >= 80
    for kind in ("forging", "exfiltration", "exhaustion", "bad input"):
        assert kinds.count(kind) >= 15
