"""Collecting from a real nbgrader exchange, by its command line and its API."""

import base64
import os
import shutil
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest
from commands import nbgrader_says
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config.loader import PyFileConfigLoader

from course_grader.classroom.collect_names import Student
from course_grader.classroom.collect_versions import MOST_ATTEMPTS
from course_grader.classroom.collect_zip import collect_zip
from course_grader.classroom.over_http import Collect

CHAPTER = "03_one_hot_and_losses"
NOTEBOOK = f"{CHAPTER}.ipynb"
CANARY = "the instructor's private file"
CONFIG = """
from pathlib import Path
c = get_config()
here = Path(__file__).resolve().parent
c.CourseDirectory.root = str(here)
c.CourseDirectory.course_id = "tricks"
c.Exchange.root = str(here / "exchange")
c.Exchange.assignment_dir = str(here / "work")
c.ExchangeFactory.collect = "course_grader.classroom.collect.SafeCollect"
c.ExchangeFactory.release_feedback = (
    "course_grader.classroom.release_feedback.ReleaseFeedback"
)
"""
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make folders of another account"
)


def isolated(home: Path) -> dict[str, str]:
    """An environment in which nbgrader sees no settings but the course's."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("JUPYTER", "IPYTHON", "XDG"))
    }
    # nbgrader calls `alembic` by name
    path = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
    return kept | {
        "PATH": path,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }


def nbgrader(course: Path, *args: str) -> str:
    """Runs the real command line; its output."""
    return nbgrader_says(course, isolated(course / "home"), *args)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A course with one chapter released, and handed in by alice."""
    course = tmp_path_factory.mktemp("released") / "course"
    for folder in ("home", f"source/{CHAPTER}", "exchange", "work"):
        (course / folder).mkdir(parents=True)
    (course / "exchange").chmod(0o777)
    (course / "nbgrader_config.py").write_text(CONFIG)
    grade = {
        "grade": True,
        "solution": False,
        "locked": True,
        "points": 1,
        "grade_id": "one_hot",
        "schema_version": 3,
        "cell_type": "code",
        "task": False,
    }
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# One-hot", id="title"),
            new_code_cell("x = 1", id="work"),
            new_code_cell(
                "assert x == 1", id="grade", metadata={"nbgrader": grade}
            ),
        ]
    )
    nbformat.write(notebook, course / "source" / CHAPTER / NOTEBOOK)
    nbgrader(course, "generate_assignment", CHAPTER)
    nbgrader(course, "release_assignment", CHAPTER)
    shutil.copytree(course / "release" / CHAPTER, course / "work" / CHAPTER)
    nbgrader(course, "submit", CHAPTER, "--student=alice")
    return course


@pytest.fixture
def course(released, tmp_path, monkeypatch):
    copied = tmp_path / "course"
    shutil.copytree(released, copied)
    for key, value in isolated(copied / "home").items():
        monkeypatch.setenv(key, value)
    return copied


def inbound(course: Path) -> Path:
    return course / "exchange" / "tricks" / "inbound"


def hand_in(
    course: Path,
    student: str,
    time: str = "2026-03-01 12:00:00.000000 UTC",
    content: bytes = b"{}",
    random: str = "abcdefghij_-",
) -> Path:
    """What nbgrader's submit leaves in the exchange, made by hand so that it
    can be spoilt."""
    folder = inbound(course) / f"{student}+{CHAPTER}+{time}+{random}"
    folder.mkdir()
    (folder / NOTEBOOK).write_bytes(content)
    (folder / "timestamp.txt").write_text(time)
    (folder / "submission_secret.txt").write_text("0" * 128)
    return folder


def submitted(course: Path, student: str) -> Path:
    return course / "submitted" / student / CHAPTER


def snapshot(folder: Path) -> dict[str, object]:
    """Everything about a tree but access times, without following links."""
    seen: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        seen[str(path.relative_to(folder))] = (
            status.st_mode,
            status.st_mtime_ns,
            content,
        )
    return seen


def api_of(course: Path) -> NbGraderAPI:
    """What formgrader's buttons call."""
    loader = PyFileConfigLoader("nbgrader_config.py", path=str(course))
    return NbGraderAPI(config=loader.load_config())


def collect(course: Path, **settings: object) -> dict[str, list[str]]:
    """Collects in this process; what is said, by student."""
    api = api_of(course)
    api.coursedir.assignment_id = CHAPTER
    collecting = api.exchange.Collect(
        coursedir=api.coursedir, authenticator=api.authenticator, parent=api
    )
    for name, value in settings.items():
        setattr(collecting, name, value)
    collecting.start()
    said: dict[str, list[str]] = {}
    for one in collecting.outcomes:
        said.setdefault(one.student, []).append(one.message)
    return said


def test_a_class_with_every_attack_is_collected_by_the_command_line(course):
    secret = course / "secret"
    secret.mkdir()
    (secret / "answers.txt").write_text(CANARY)
    (secret / NOTEBOOK).write_text(CANARY)
    (secret / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")

    pipe = hand_in(course, "pipe")
    (pipe / NOTEBOOK).unlink()
    os.mkfifo(pipe / NOTEBOOK)
    link = hand_in(course, "link")
    (link / NOTEBOOK).unlink()
    (link / NOTEBOOK).symlink_to(secret / NOTEBOOK)
    extra = hand_in(course, "extra", content=b'{"mine": 1}')
    (extra / "data.txt").symlink_to(secret / "answers.txt")
    (extra / "folder").symlink_to(secret)
    os.mkfifo(extra / "more")
    (extra / "notes.txt").write_text("kept")
    times = hand_in(course, "times", content=b'{"mine": 2}')
    (times / "timestamp.txt").unlink()
    os.mkfifo(times / "timestamp.txt")
    (times / "submission_secret.txt").write_bytes(b"\xff\xfe")
    (inbound(course) / f"whole+{CHAPTER}+2026-03-01 12:00:00 UTC+x").symlink_to(
        secret
    )
    (inbound(course) / f"file+{CHAPTER}+2026-03-01 12:00:00 UTC+x").touch()
    hand_in(course, "when", time="yesterday")
    hand_in(course, "..")  # would be submitted/../CHAPTER
    hand_in(course, "s*")
    hand_in(course, "a\n[INFO] forged line: all is well")
    hand_in(course, "zoe", content=b"not even JSON \xff\x00")
    before = snapshot(inbound(course))

    output = nbgrader(course, "collect", CHAPTER)

    # the honest ones, byte for byte
    alice = submitted(course, "alice")
    assert (alice / NOTEBOOK).read_bytes() == (
        course / "work" / CHAPTER / NOTEBOOK
    ).read_bytes()
    assert (alice / "timestamp.txt").is_file()
    assert (alice / "submission_secret.txt").is_file()
    zoe = submitted(course, "zoe") / NOTEBOOK
    assert zoe.read_bytes() == b"not even JSON \xff\x00"
    # the rest, as far as it can be graded
    assert {p.name for p in (course / "submitted").iterdir()} == {
        "alice",
        "zoe",
        "extra",
        "times",
    }
    assert {p.name for p in submitted(course, "extra").iterdir()} == {
        NOTEBOOK,
        "notes.txt",
        "timestamp.txt",
        "submission_secret.txt",
    }
    stamp = submitted(course, "times") / "timestamp.txt"
    assert stamp.read_text() == "2026-03-01 12:00:00.000000 UTC"
    replaced = submitted(course, "times") / "submission_secret.txt"
    assert len(replaced.read_text()) == 128
    assert not (course / CHAPTER).exists()
    # nothing of the instructor's reached a folder that is graded
    for folder in ("submitted", "versions"):
        for path in (course / folder).rglob("*"):
            assert not path.is_symlink()
            assert path.is_file() or path.is_dir()
            if path.is_file():
                assert CANARY.encode() not in path.read_bytes()
    # nothing handed in was changed, and each trouble is one line
    assert snapshot(inbound(course)) == before
    lines = output.splitlines()
    for student, word in [
        ("pipe", "FIFO"),
        ("link", "symbolic link"),
        ("extra", "symbolic link"),
        ("times", "timestamp.txt"),
        ("whole", "symbolic link"),
        ("file", "no folder"),
        ("when", "no time"),
        ("s*", "no folder should have"),
    ]:
        told = [line for line in lines if f" {student}: " in line]
        assert len(told) == 1, (student, output)
        assert word in told[0]
    assert not [line for line in lines if line.startswith("[INFO] forged")]
    assert "Traceback" not in output


def test_formgraders_collect_grades_nobody_less_for_a_neighbour(course):
    """formgrader's button calls this; its log is what the button shows."""
    link = hand_in(course, "link")
    (link / NOTEBOOK).unlink()
    (link / NOTEBOOK).symlink_to("/etc/passwd")
    answer = api_of(course).collect(CHAPTER)
    assert answer["success"], answer
    assert "link: There is no readable" in answer["log"]
    assert submitted(course, "alice").is_dir()
    assert not submitted(course, "link").exists()
    # formgrader's list reads every timestamp.txt
    students = api_of(course).get_submitted_students(CHAPTER)
    assert students == {"alice"}


def test_every_update_keeps_the_version_before(course):
    for day in (1, 2, 3):
        hand_in(
            course,
            "bob",
            time=f"2026-03-0{day} 12:00:00.500000 UTC",
            content=b"version %d" % day,
        )
        if day == 2:
            said = collect(course)
            assert said["bob"] == [
                "Already collected. A newer submission waits: use --update."
            ]
            bob = submitted(course, "bob") / NOTEBOOK
            assert bob.read_bytes() == b"version 1"
        output = nbgrader(course, "collect", CHAPTER, "--update")
        bob = submitted(course, "bob") / NOTEBOOK
        assert bob.read_bytes() == b"version %d" % day
    assert "bob: Updated; the older version is kept in versions/bob" in output
    versions = course / "versions" / "bob" / CHAPTER
    kept = {path.name: path for path in versions.iterdir()}
    assert set(kept) == {
        "2026-03-01T12-00-00.500000Z",
        "2026-03-02T12-00-00.500000Z",
    }
    first = kept["2026-03-01T12-00-00.500000Z"]
    assert (first / NOTEBOOK).read_bytes() == b"version 1"
    assert (first / "timestamp.txt").read_text() == (
        "2026-03-01 12:00:00.500000 UTC"
    )
    # and nothing happens where nothing is new
    before = snapshot(course / "submitted"), snapshot(versions)
    assert collect(course, update=True)["bob"] == ["Already collected."]
    assert before == (snapshot(course / "submitted"), snapshot(versions))


def test_versions_of_one_time_are_both_kept(course):
    """What an instructor put there by hand, without a time, is kept too."""
    folder = submitted(course, "bob")
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(b"by hand")
    os.utime(folder, (1_700_000_000, 1_700_000_000))
    versions = course / "versions" / "bob" / CHAPTER
    taken = versions / "2023-11-14T22-13-20.000000Z"
    taken.mkdir(parents=True)
    (taken / NOTEBOOK).write_bytes(b"another")
    hand_in(course, "bob", content=b"new")
    collect(course, update=True)
    assert (folder / NOTEBOOK).read_bytes() == b"new"
    assert (taken / NOTEBOOK).read_bytes() == b"another"
    second = versions / "2023-11-14T22-13-20.000000Z-2"
    assert (second / NOTEBOOK).read_bytes() == b"by hand"


def test_a_submission_without_a_notebook_is_kept_and_not_graded(course):
    folder = hand_in(course, "bob")
    (folder / NOTEBOOK).rename(folder / "essay.txt")
    (folder / f"{CHAPTER}.pdf").write_bytes(b"%PDF")
    for _ in range(2):
        (said,) = collect(course, update=True)["bob"]
        assert said.startswith(f"There is no readable {NOTEBOOK}")
    assert not submitted(course, "bob").exists()
    (kept,) = (course / "versions" / "bob" / CHAPTER).iterdir()
    assert (kept / "essay.txt").read_bytes() == b"{}"


@pytest.mark.parametrize("collected_before", [False, True])
def test_a_newer_one_without_the_notebook_replaces_none(
    course, collected_before
):
    hand_in(course, "bob", content=b"good")
    if collected_before:
        collect(course)
    newer = hand_in(course, "bob", time="2026-03-02 12:00:00.000000 UTC")
    (newer / NOTEBOOK).unlink()
    (newer / NOTEBOOK).symlink_to("/etc/passwd")
    passed_over, said = collect(course, update=True)["bob"]
    assert "passed over, because it holds no" in passed_over
    assert said == ("Already collected." if collected_before else "Collected.")
    assert (submitted(course, "bob") / NOTEBOOK).read_bytes() == b"good"
    assert (newer / NOTEBOOK).is_symlink()


def test_a_notebook_that_cannot_be_copied_replaces_none(course):
    hand_in(course, "bob", content=b"good")
    collect(course)
    hand_in(
        course,
        "bob",
        time="2026-03-02 12:00:00.000000 UTC",
        content=b"x" * 3000,
    )
    with (course / "nbgrader_config.py").open("a") as file:
        file.write("c.CourseDirectory.max_file_size = 2\n")
    (said,) = collect(course, update=True)["bob"]
    assert "larger than 0.002 MB" in said
    assert (submitted(course, "bob") / NOTEBOOK).read_bytes() == b"good"


def test_a_renamed_notebook_is_recognised(course):
    folder = hand_in(course, "bob", content=b"mine")
    (folder / NOTEBOOK).rename(folder / f"Copy of {CHAPTER} (1).ipynb")
    (said,) = collect(course)["bob"]
    assert f"Taken as {NOTEBOOK}: Copy of {CHAPTER} (1).ipynb." in said
    assert (submitted(course, "bob") / NOTEBOOK).read_bytes() == b"mine"


def test_the_time_in_the_exchange_goes_before_the_one_in_the_file(course):
    """Late, but timestamp.txt says early: nbgrader's penalty reads the file."""
    folder = hand_in(course, "bob", time="2026-03-09 12:00:00.000000 UTC")
    (folder / "timestamp.txt").write_text("2026-03-01 12:00:00.000000 UTC")
    (said,) = collect(course)["bob"]
    assert "replaced: timestamp.txt" in said
    stamp = submitted(course, "bob") / "timestamp.txt"
    assert stamp.read_text() == "2026-03-09 12:00:00.000000 UTC"


def test_nbgraders_own_settings_hold(course):
    folder = hand_in(course, "bob")
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / NOTEBOOK).touch()
    (folder / "big.bin").write_bytes(b"x" * 3000)
    with (course / "nbgrader_config.py").open("a") as file:
        file.write("c.CourseDirectory.max_file_size = 2\n")
        file.write("c.CourseDirectory.groupshared = True\n")
    (said,) = collect(course)["bob"]
    assert "big.bin (larger than 0.002 MB)" in said
    assert ".ipynb_checkpoints" not in said
    bob = submitted(course, "bob")
    assert not (bob / ".ipynb_checkpoints").exists()
    assert bob.stat().st_mode & 0o2770 == 0o2770
    assert (bob / NOTEBOOK).stat().st_mode & 0o660 == 0o660


def test_one_student_and_the_last_before_the_due_date(course):
    for day in (1, 2, 3):
        for student in ("bob", "eve"):
            hand_in(
                course,
                student,
                time=f"2026-03-0{day} 12:00:00.000000 UTC",
                content=b"version %d" % day,
            )
    with api_of(course).gradebook as gradebook:
        gradebook.update_or_create_assignment(
            CHAPTER, duedate="2026-03-02 13:00:00 UTC"
        )
    output = nbgrader(
        course, "collect", CHAPTER, "--student=bob", "--before-duedate"
    )
    assert "bob: Collected." in output
    assert (submitted(course, "bob") / NOTEBOOK).read_bytes() == b"version 2"
    assert not submitted(course, "eve").exists()


def test_who_is_on_no_roster_is_named(course):
    hand_in(course, "bob")
    with api_of(course).gradebook as gradebook:
        gradebook.add_student("bob")
    said = collect(course)
    assert said["bob"] == ["Collected."]
    assert said["alice"] == [
        "Collected. alice is on no roster: grading takes them in."
    ]


def test_a_time_zone_other_than_utc_is_understood(course):
    hand_in(course, "bob", time="2026-03-01 12:00:00.000000 CET")
    hand_in(course, "eve", time="2026-03-01 12:00:00.000000 UTC")
    collect(course)
    stamp = submitted(course, "bob") / "timestamp.txt"
    # nbgrader reads this text again: it stays as nbgrader wrote it
    assert stamp.read_text() == "2026-03-01 12:00:00.000000 CET"


@pytest.mark.slow
def test_a_zip_goes_all_the_way_to_released_feedback(course):
    """nbgrader's own release stops for a whole class at the first submission
    that did not come through the exchange."""
    path = course / "download.zip"
    notebook = course / "work" / CHAPTER / NOTEBOOK
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(notebook, f"bob/Copy of {CHAPTER} (1).ipynb")
    api = api_of(course)
    (outcome,) = collect_zip(path, api.coursedir, [CHAPTER], [Student("bob")])
    assert outcome.path is not None
    nbgrader(course, "collect", CHAPTER)
    nbgrader(course, "autograde", CHAPTER)
    nbgrader(course, "generate_feedback", CHAPTER)
    nbgrader(course, "release_feedback", CHAPTER)
    released = course / "exchange" / "tricks" / "feedback"
    assert len(list(released.iterdir())) == 1  # alice's: she can fetch it
    assert (course / "feedback" / "bob" / CHAPTER / f"{CHAPTER}.html").is_file()
    with api.gradebook as gradebook:
        scores = {
            one.student.id: one.score
            for one in gradebook.assignment_submissions(CHAPTER)
        }
    assert scores == {"alice": 1, "bob": 1}


@as_root
def test_nobody_can_hand_in_for_a_student_who_handed_in(course):
    """The exchange lets everybody add a folder in anybody's name. `daemon` and
    `nobody` stand for two students' accounts."""
    import pwd

    own = hand_in(course, "daemon", content=b"own")
    forged = hand_in(
        course,
        "daemon",
        time="2099-01-01 12:00:00.000000 UTC",
        content=b"forged",
    )
    os.chown(own, pwd.getpwnam("daemon").pw_uid, -1)
    os.chown(forged, pwd.getpwnam("nobody").pw_uid, -1)
    said = collect(course)["daemon"]
    assert any("passed over" in one for one in said)
    assert (submitted(course, "daemon") / NOTEBOOK).read_bytes() == b"own"


@as_root
def test_a_folder_of_another_account_is_collected_with_a_warning(course):
    import pwd

    forged = hand_in(course, "daemon", content=b"forged")
    os.chown(forged, pwd.getpwnam("nobody").pw_uid, -1)
    (said,) = collect(course)["daemon"]
    assert "It belongs to the account nobody" in said


def test_a_full_disk_for_one_student_stops_nobody_else(course, monkeypatch):
    from course_grader.classroom import collect as collecting

    hand_in(course, "bob")
    hand_in(course, "zoe")
    copy = collecting.copy_tree

    def full(source, *args, **kwargs):
        if source.name.startswith("bob+"):
            raise OSError(28, "No space left on device")
        return copy(source, *args, **kwargs)

    monkeypatch.setattr(collecting, "copy_tree", full)
    said = collect(course)
    assert said["bob"] == [
        "The submission cannot be collected: No space left on device."
    ]
    assert said["zoe"] == ["Collected."]
    assert not submitted(course, "bob").exists()
    assert not list((course / "versions").glob(".collecting*"))


def test_an_empty_exchange_says_so(course):
    shutil.rmtree(next(inbound(course).iterdir()))
    answer = api_of(course).collect(CHAPTER)
    assert answer["success"]
    assert f"The exchange has no submissions of {CHAPTER}." in answer["log"]


# --- the exchange over HTTP, without a server ---------------------------------

FILES = [{"path": NOTEBOOK, "content": base64.b64encode(b"{}").decode()}]
MOMENT = datetime(2026, 11, 24, 12, 0, 0, 5, tzinfo=UTC)


class FakeShare:
    """What the grading account sees of ngshare."""

    def __init__(
        self, handed_in: dict[str, list[list[dict[str, object]]]]
    ) -> None:
        self.handed_in = handed_in

    def submissions(self, chapter: str) -> list[tuple[str, datetime]]:
        return [
            (student, MOMENT + timedelta(minutes=number))
            for student, all_of_it in self.handed_in.items()
            for number, _ in enumerate(all_of_it)
        ]

    def submission(
        self, chapter: str, student: str, moment: datetime
    ) -> list[dict[str, object]]:
        number = (moment - MOMENT) // timedelta(minutes=1)
        return self.handed_in[student][number]


def brought(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: FakeShare,
    every_attempt: bool = False,
) -> dict[str, list[Path]]:
    """What is brought into a folder, by student, oldest first."""
    folder.mkdir()
    monkeypatch.setattr(Collect, "share", lambda *_: share)
    app = Collect(
        coursedir=CourseDirectory(course_id="tricks", assignment_id=CHAPTER)
    )
    app.every_attempt = every_attempt
    app._bring(folder)
    found: dict[str, list[Path]] = {}
    for place in sorted(folder.iterdir()):
        found.setdefault(place.name.partition("+")[0], []).append(place)
    return found


@pytest.mark.parametrize(
    "harm",
    [
        [{"path": "a/" * 1500 + "b", "content": ""}],
        [{"path": "timestamp.txt/a", "content": ""}],
        [{"path": "./timestamp.txt", "content": "MTk5OQ=="}],
        [{"path": "a", "content": 2}, {"path": 1, "content": ""}],
        [{"content": ""}, "text"],
        [{"path": "a\0b", "content": ""}],
    ],
    ids=("deep", "folder", "own hour", "numbers", "no path", "NUL"),
)
def test_nothing_that_is_handed_in_stops_what_others_handed_in(
    harm: list[dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    share = FakeShare({"mallory": [harm], "zoe": [FILES]})

    found = brought(tmp_path / "inbound", monkeypatch, share)

    (zoe,) = found["zoe"]
    assert (zoe / NOTEBOOK).read_bytes() == b"{}"
    (mallory,) = found["mallory"]
    hour = "2026-11-24 12:00:00.000005 UTC"
    assert (mallory / "timestamp.txt").read_text() == hour


def test_of_thousands_of_attempts_the_last_ones_are_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = FakeShare({"mallory": [FILES] * 2000, "zoe": [FILES] * 2})

    found = brought(tmp_path / "inbound", monkeypatch, share, True)

    assert len(found["mallory"]) == 1 + MOST_ATTEMPTS
    assert found["mallory"][-1].name.endswith("+2026-11-25 21:19:00.000005 UTC")
    assert len(found["zoe"]) == 2
