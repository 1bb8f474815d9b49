"""A class graded on a Dask cluster: real scheduler, real workers, one of them lost."""

from __future__ import annotations

import io
import re
import shutil
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, make_certificates
from commands import SCRIPTS, course_says, environment, put, run_course

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course
from course_grader.grading.cluster import packed_course
from course_grader.judge import sandbox

RIGHT = "def mean(x):\n    return x.mean().item()\n"
SLOW_RIGHT = "import time\ntime.sleep(1)\n" + RIGHT

pytestmark = pytest.mark.skipif(
    sandbox.missing() is not None, reason="no sandbox on this machine"
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def cluster(
    certificates: dict[str, str], free_port: int, tmp_path: Path
) -> Iterator[Cluster]:
    logs = tmp_path / "logs"
    logs.mkdir()
    one = Cluster(free_port, certificates, logs)
    yield one
    one.close()


def hand_in(course: Course, students: list[str], mean: str) -> None:
    """Lays submissions where `course collect` puts them."""
    grading, _, released = build_chapter(course, "03_mini")
    notebook = answered(grading, released, {"mean": mean})
    for student in students:
        put(course.root, student, notebook)


def test_a_worker_builds_a_chapter_from_what_it_is_sent(
    course: Course, mini: Course, tmp_path: Path
) -> None:
    """Also one that builds on chapters whose files stay at home, in a course with an
    exam in another one."""
    mini.settings_file.write_text('exams = ["02"]\n')
    for room in ("solutions", "autograde"):
        shutil.copytree(
            course.root / room, mini.root / room, dirs_exist_ok=True
        )
    shutil.rmtree(mini.solutions / "03_mini")
    sent, name = Course(mini.root), "03_one_hot_and_losses"
    with tarfile.open(fileobj=io.BytesIO(packed_course(sent, name))) as packed:
        packed.extractall(tmp_path / "worker", filter="data")
    there = Course(tmp_path / "worker")
    grading, _, released = build_chapter(there, name)
    assert grading.chapter.name == name
    assert released == build_chapter(sent, name)[2]
    assert there.exams == sent.exams == {"02_tensors"}
    hidden = [one.parent.name for one in there.root.rglob("hidden_tests.py")]
    assert hidden == [name]


@pytest.mark.slow
def test_a_lost_worker_costs_no_submission(
    mini: Course, cluster: Cluster
) -> None:
    course_says(mini.root, "release")
    students = [f"student{n}" for n in range(12)]
    hand_in(mini, students, SLOW_RIGHT)
    with subprocess.Popen(
        [
            *(SCRIPTS / "course", "grade", "03"),
            *("--scheduler", cluster.address),
        ],
        cwd=mini.root,
        env=cluster.settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            said.append(line)
            if sum(" of 5 points" in one for one in said) == 3:
                cluster.workers[0].send_signal(signal.SIGKILL)
    text = "".join(said)
    assert running.returncode == 0, text
    assert cluster.workers[0].wait() == -signal.SIGKILL
    graded = re.findall(r"^(student\d+): 2 of 5 points$", text, re.MULTILINE)
    assert sorted(graded) == sorted(students), text
    again = course_says(mini.root, "grade", "03")
    assert "12 submissions, 12 of them graded already" in again


def test_what_is_wrong_with_a_cluster_is_said(
    mini: Course, certificates: dict[str, str], free_port: int
) -> None:
    course_says(mini.root, "release")
    hand_in(mini, ["ada"], RIGHT)

    def says(address: str) -> str:
        done = run_course(
            mini.root,
            *("grade", "03", "--scheduler", address),
            env=environment(activated=False)
            | certificates
            | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"},
        )
        assert done.returncode == 2
        return " ".join((done.stdout + (done.stderr or "")).split())

    assert "is not a tls:// address" in says("tcp://127.0.0.1:8786")
    assert "No scheduler answers at" in says(f"tls://127.0.0.1:{free_port}")
