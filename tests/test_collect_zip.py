"""Collecting what a learning management system lets one download."""

import os
import stat
import struct
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc

from course_grader.classroom.collect_names import Student, roster
from course_grader.classroom.collect_times import Times, parse_handed_in
from course_grader.classroom.collect_versions import read_receipt
from course_grader.classroom.collect_zip import ArchiveLimits, collect_zip
from course_grader.course import CourseError

CHAPTER = "03_one_hot_and_losses"
NOTEBOOK = f"{CHAPTER}.ipynb"
CHAPTERS = [CHAPTER, "05_normalization"]
ROSTER = [
    Student("alice", "Alice", "Liddell", lms_user_id="4711"),
    Student("bob", "Bob", "Builder"),
    Student("eve", "Eve", "Moneypenny"),
]
NOON = (2026, 3, 1, 12, 0, 0)
# What a learner may hand in: never looked at, so never valid on purpose.
ALICES = b"\xff\xfe\x00 alice's, no JSON \r\n"
BOBS = b'{"cells": "bob\'s"}'


@pytest.fixture
def coursedir(tmp_path):
    root = tmp_path / "autograde"
    root.mkdir()
    return CourseDirectory(root=str(root), course_id="tricks")


@pytest.fixture
def download(tmp_path):
    """Writes an archive of (name, content) or (ZipInfo, content)."""

    def make(*entries, name="download.zip"):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in entries:
                archive.writestr(dated(entry), content)
        return path

    return make


def dated(entry, when=NOON):
    if isinstance(entry, zipfile.ZipInfo):
        return entry
    info = zipfile.ZipInfo(entry, when)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def collect(paths, coursedir, **options):
    """As `--handed-in zip` does, unless `times` says something else."""
    zone = options.pop("timezone", UTC)
    options.setdefault("times", Times(zone, of_entries=True))
    students = options.pop("students", ROSTER)
    return collect_zip(paths, coursedir, CHAPTERS, students, **options)


def submitted(coursedir, student, chapter=CHAPTER):
    return Path(coursedir.root) / "submitted" / student / chapter


def read(coursedir, student, chapter=CHAPTER):
    path = submitted(coursedir, student, chapter) / f"{chapter}.ipynb"
    return path.read_bytes() if path.exists() else None


def tree(coursedir):
    """All files of the course but nbgrader's own, by content."""
    root = Path(coursedir.root)
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in ("timestamp.txt", "receipt.json")
    }


@pytest.mark.parametrize(
    ("alices", "bobs"),
    [
        (
            "Alice Liddell_101_assignsubmission_file_/Copy of 03_one_hot_and_"
            "losses (1).ipynb",
            "Bob Builder_102_assignsubmission_file_/03 one hot and losses.ipynb",
        ),
        (
            f"Alice Liddell_101_assignsubmission_file_{NOTEBOOK}",
            "Bob Builder_102_assignsubmission_file_03.ipynb",
        ),
        (
            f"liddellalice_4711_67890_{CHAPTER}-1.ipynb",
            f"builderbob_LATE_12346_67891_{NOTEBOOK}",
        ),
        (f"alice/{NOTEBOOK}", f"bob/Copy_of_{CHAPTER}-2.ipynb"),
        (f"submissions/alice/{NOTEBOOK}", f"submissions/bob/{NOTEBOOK}"),
        (f"submitted/alice/{CHAPTER}/{NOTEBOOK}", "submitted/bob/03.ipynb"),
        (f"alice_{NOTEBOOK}", f"bob__{NOTEBOOK}"),
        (f"alice\\{NOTEBOOK}", f"bob\\{NOTEBOOK}"),
    ],
)
def test_downloads_of_all_kinds(coursedir, download, alices, bobs):
    path = download((alices, ALICES), (bobs, BOBS))
    before = path.read_bytes()
    outcomes = collect(path, coursedir)
    assert [(one.student, one.chapter) for one in outcomes] == [
        ("alice", CHAPTER),
        ("bob", CHAPTER),
    ]
    assert not any(one.needs_human for one in outcomes)
    assert outcomes[0].path == submitted(coursedir, "alice") / NOTEBOOK
    assert outcomes[0].path.read_bytes() == ALICES
    assert outcomes[1].path.read_bytes() == BOBS
    assert ("late" in outcomes[1].message) == ("LATE" in bobs)
    stamp = (submitted(coursedir, "alice") / "timestamp.txt").read_text()
    assert stamp == "2026-03-01 12:00:00.000000 UTC"
    assert parse_utc(stamp) == datetime(2026, 3, 1, 12)
    assert path.read_bytes() == before
    # collecting the same again changes nothing
    files = tree(coursedir)
    again = collect(path, coursedir)
    assert all(one.message.startswith("Already") for one in again)
    assert tree(coursedir) == files


def test_an_unpacked_download_and_a_folder_of_downloads(
    coursedir, download, tmp_path
):
    unpacked = tmp_path / "unpacked"
    folder = unpacked / "Alice Liddell_101_assignsubmission_file_"
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(ALICES)
    os.utime(folder / NOTEBOOK, (1_772_366_400, 1_772_366_400))
    (unpacked / f"bob_{NOTEBOOK}").symlink_to(folder / NOTEBOOK)
    os.mkfifo(unpacked / f"eve_{NOTEBOOK}")
    outcomes = collect(unpacked, coursedir)
    said = {one.student: one for one in outcomes}
    assert read(coursedir, "alice") == ALICES
    stamp = submitted(coursedir, "alice") / "timestamp.txt"
    assert stamp.read_text() == "2026-03-01 12:00:00.000000 UTC"
    assert "a symbolic link" in said["bob"].message
    assert "a FIFO" in said["eve"].message
    assert read(coursedir, "bob") is None

    both = tmp_path / "both"
    both.mkdir()
    download((f"bob/{NOTEBOOK}", BOBS)).rename(both / "a.zip")
    download(("eve/05.ipynb", b"eve's")).rename(both / "b.ZIP")
    collect(both, coursedir)
    assert read(coursedir, "bob") == BOBS
    assert read(coursedir, "eve", "05_normalization") == b"eve's"


def test_an_archive_that_a_learner_handed_in_is_not_opened(
    coursedir, download, tmp_path
):
    """Else bob's archive could hold a file that passes for alice's."""
    inner = download((f"alice/{NOTEBOOK}", b"forged"), name="inner.zip")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    inner.rename(unpacked / "builderbob_123_45678_work.zip")
    (unpacked / f"eve_{NOTEBOOK}").write_bytes(b"eve's")
    packed = download(
        (
            "builderbob_123_45678_work.zip",
            (unpacked / "builderbob_123_45678_work.zip").read_bytes(),
        )
    )
    for given in (unpacked, packed):
        outcomes = collect(given, coursedir)
        said = {one.student: one.message for one in outcomes}
        assert "an archive by itself" in said["bob"]
    assert read(coursedir, "alice") is None
    assert read(coursedir, "eve") == b"eve's"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_newest_is_graded_and_all_are_kept(coursedir, download):
    def version(day, content, name=NOTEBOOK):
        return dated(f"alice/{name}", (2026, 3, day, 12, 0, 0)), content

    first = download(
        version(2, b"two", f"{CHAPTER} (1).ipynb"),
        version(3, b"three", f"Copy of {NOTEBOOK}"),
        version(1, b"one"),
    )
    (outcome,) = collect(first, coursedir)
    assert read(coursedir, "alice") == b"three"
    assert "Older versions are kept in versions/alice" in outcome.message
    second = download(
        version(4, b"four"), version(3, b"three"), name="second.zip"
    )
    collect(second, coursedir)
    assert read(coursedir, "alice") == b"four"
    collect([first, second], coursedir)
    versions = Path(coursedir.root) / "versions" / "alice" / CHAPTER
    assert {
        path.name: (path / NOTEBOOK).read_bytes() for path in versions.iterdir()
    } == {
        "2026-03-01T12-00-00.000000Z": b"one",
        "2026-03-02T12-00-00.000000Z": b"two",
        "2026-03-03T12-00-00.000000Z": b"three",
    }


def test_an_older_download_does_not_replace_newer_work(coursedir, download):
    collect(download((f"alice/{NOTEBOOK}", b"new")), coursedir)
    older = dated(f"alice/{NOTEBOOK}", (2026, 2, 1, 12, 0, 0))
    (outcome,) = collect(download((older, b"old")), coursedir)
    assert read(coursedir, "alice") == b"new"
    assert outcome.needs_human
    assert "not graded, but kept in versions/alice" in outcome.message
    assert b"old" in tree(coursedir).values()
    # known by now, so nobody needs to look again
    (outcome,) = collect(download((older, b"old")), coursedir)
    assert not outcome.needs_human


def test_the_same_file_handed_in_again_keeps_its_time(coursedir, download):
    """Downloading anew, or uploading the same twice, makes nobody late."""
    collect(download((f"alice/{NOTEBOOK}", b"same")), coursedir)
    later = dated(f"alice/{NOTEBOOK}", (2026, 4, 1, 12, 0, 0))
    collect(download((later, b"same")), coursedir)
    stamp = submitted(coursedir, "alice") / "timestamp.txt"
    assert stamp.read_text() == "2026-03-01 12:00:00.000000 UTC"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_both_kept(coursedir, download):
    path = download(
        (f"alice/{NOTEBOOK}", b"first"), (f"alice/{NOTEBOOK}", b"second")
    )
    collect(path, coursedir)
    assert read(coursedir, "alice") == b"second"
    assert b"first" in tree(coursedir).values()


def test_times_of_entries(coursedir, download):
    """An entry's time is local, without saying where, unless Unix wrote it."""
    unix = dated(f"bob/{NOTEBOOK}", (2001, 1, 1, 0, 0, 0))
    unix.extra = struct.pack("<HHBi", 0x5455, 5, 1, 1_772_366_400)
    undated = dated(f"eve/{NOTEBOOK}", (1980, 1, 1, 0, 0, 0))
    path = download((f"alice/{NOTEBOOK}", b"a"), (unix, b"b"), (undated, b"e"))
    os.utime(path, (1_772_373_600, 1_772_373_600))
    collect(path, coursedir, timezone=timezone(timedelta(hours=-5)))
    stamps = {
        student: (submitted(coursedir, student) / "timestamp.txt").read_text()
        for student in ("alice", "bob", "eve")
    }
    assert stamps == {
        "alice": "2026-03-01 17:00:00.000000 UTC",
        "bob": "2026-03-01 12:00:00.000000 UTC",
        "eve": "2026-03-01 14:00:00.000000 UTC",
    }


def test_without_a_time_zone_the_machines_is_meant(
    coursedir, download, monkeypatch
):
    path = download((f"alice/{NOTEBOOK}", b"a"))
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from nbgrader.coursedir import CourseDirectory\n"
        "from course_grader.classroom.collect_names import Student\n"
        "from course_grader.classroom.collect_zip import collect_zip\n"
        "from course_grader.classroom.collect_times import Times\n"
        "collect_zip(Path(sys.argv[1]), CourseDirectory(root=sys.argv[2]),\n"
        f"            [{CHAPTER!r}], [Student('alice')],\n"
        "            times=Times(of_entries=True))\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(path), coursedir.root],
        env=os.environ | {"TZ": "Asia/Tokyo"},
        check=True,
    )
    stamp = submitted(coursedir, "alice") / "timestamp.txt"
    assert stamp.read_text() == "2026-03-01 03:00:00.000000 UTC"


def times_of(coursedir, *students):
    return {
        student: (submitted(coursedir, student) / "timestamp.txt").read_text()
        if (submitted(coursedir, student) / "timestamp.txt").exists()
        else None
        for student in students
    }


def test_a_download_says_nothing_of_when_work_was_handed_in(
    coursedir, download
):
    """Canvas and Moodle write the time of the download into every entry."""
    path = download(
        (f"liddellalice_4711_67890_{NOTEBOOK}", ALICES),
        (f"builderbob_LATE_12346_67891_{NOTEBOOK}", BOBS),
    )
    outcomes = collect(path, coursedir, times=Times(UTC))
    assert times_of(coursedir, "alice", "bob") == {"alice": None, "bob": None}
    assert all("at an unknown time" in one.message for one in outcomes)
    assert not any(one.needs_human for one in outcomes)
    receipts = [
        read_receipt(submitted(coursedir, student))
        for student in ("alice", "bob")
    ]
    assert [one.late for one in receipts] == [False, True]
    assert receipts[0].path == (f"liddellalice_4711_67890_{NOTEBOOK}",)
    # the exchange has no way back to them
    assert not list(Path(coursedir.root).rglob("submission_secret.txt"))


def test_a_later_download_is_newer_though_its_times_are_unknown(
    coursedir, download
):
    def of(day, content):
        entry = dated(f"alice/{NOTEBOOK}", (2026, 3, day, 12, 0, 0))
        return download((entry, content), name=f"{day}.zip")

    unknown = Times(UTC)
    collect(of(1, b"one"), coursedir, times=unknown)
    collect(of(3, b"three"), coursedir, times=unknown)
    (outcome,) = collect(of(2, b"two"), coursedir, times=unknown)
    assert read(coursedir, "alice") == b"three"
    assert outcome.needs_human
    assert {b"one", b"two"} <= set(tree(coursedir).values())


def test_times_that_are_said_later_are_learned(coursedir, download, tmp_path):
    """As a teacher collects first, and finds the worksheet afterwards."""
    path = download(
        (f"Alice Liddell_101_assignsubmission_file_/{NOTEBOOK}", ALICES),
        (f"Bob Builder_102_assignsubmission_file_/{NOTEBOOK}", BOBS),
    )
    collect(path, coursedir, times=Times(UTC))
    worksheet = tmp_path / "Grades-03.csv"
    worksheet.write_text(
        "Identifier,Full name,Last modified (submission)\n"
        'Participant 101,Alice Liddell,"Friday, 20 November 2026, 6:05 PM"\n'
        "Participant 102,Bob Builder,-\n",
        encoding="utf-8-sig",
    )
    zone = timezone(timedelta(hours=1))
    times = parse_handed_in(str(worksheet), ROSTER, zone)
    said = [one.message for one in collect(path, coursedir, times=times)]
    assert "Its time is known now: handed in 2026-11-20 18:05:00" in said[0]
    assert said[1] == f"Already collected: {NOTEBOOK}."
    assert times_of(coursedir, "alice", "bob") == {
        "alice": "2026-11-20 17:05:00.000000 UTC",
        "bob": None,
    }
    # and stay, whatever the next download brings
    collect(path, coursedir, times=Times(UTC))
    assert times_of(coursedir, "alice")["alice"].startswith("2026-11-20 17:05")
    times = parse_handed_in("2026-11-21 18:00", ROSTER, UTC)
    said = [one.message for one in collect(path, coursedir, times=times)]
    assert "Its time stays 2026-11-20 17:05:00 UTC" in said[0]
    # but for a file of times, which also names somebody who is not here
    corrected = tmp_path / "times.csv"
    corrected.write_text(
        "student,handed_in\nalice,2026-11-20 16:00\nzorro,2026-11-20 16:00\n"
    )
    times = parse_handed_in(str(corrected), ROSTER, UTC)
    assert times.strangers == ("zorro",)
    said = [one.message for one in collect(path, coursedir, times=times)]
    assert "Its time is corrected now: handed in 2026-11-20 16:00" in said[0]
    assert times_of(coursedir, "alice")["alice"].startswith("2026-11-20 16:00")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            f"77-88 - Alice Liddell - Nov 20, 2026 605 PM/{NOTEBOOK}",
            "2026-11-20 18:05:00",
        ),
        (
            f"Chapter_3_alice_attempt_2026-11-20-18-05-33_{NOTEBOOK}",
            "2026-11-20 18:05:33",
        ),
        (f"Submitted files/Alice Liddell/Chapter 3/Version 1/{NOTEBOOK}", None),
        (f"Group A-Alice Liddell_1_assignsubmission_file_/{NOTEBOOK}", None),
        (f"{CHAPTER}_alice.ipynb", None),
    ],
)
def test_other_systems_and_the_times_in_their_names(
    coursedir, download, name, expected
):
    other = name.replace("Alice Liddell", "Bob Builder").replace("alice", "bob")
    other = other.replace("77-", "78-").replace("_1_assign", "_2_assign")
    path = download((name, ALICES), (other, BOBS))
    collect(path, coursedir, times=Times(UTC))
    assert read(coursedir, "alice") == ALICES
    assert read(coursedir, "bob") == BOBS
    stamp = times_of(coursedir, "alice")["alice"]
    assert stamp == (expected and f"{expected}.000000 UTC")


@pytest.mark.parametrize(
    ("honest", "forged"),
    [
        # as Blackboard would write it, and as Moodle's groups
        (
            f"moneypennyeve_55_67890_{NOTEBOOK}",
            "builderbob_66_67891_x_alice_attempt_2026-11-20-18-05-33_03.ipynb",
        ),
        (
            f"eve_{NOTEBOOK}",
            "bob_x_alice_attempt_2026-11-20-18-05-33_03.ipynb",
        ),
        (
            f"moneypennyeve_55_67890_{NOTEBOOK}",
            "builderbob_66_67891_x-Alice Liddell_1_assignsubmission_file_03"
            ".ipynb",
        ),
        (
            f"Eve Moneypenny_55_assignsubmission_file_/{NOTEBOOK}",
            f"Bob-Alice Liddell_66_assignsubmission_file_/{NOTEBOOK}",
        ),
    ],
)
def test_the_end_of_a_name_makes_nobody_another(
    coursedir, download, honest, forged
):
    path = download((honest, b"eve's"), (forged, b"forged"))
    collect(path, coursedir, times=Times(UTC))
    assert read(coursedir, "eve") == b"eve's"
    assert read(coursedir, "alice") is None


def test_a_learners_own_list_of_submitters_is_not_read(coursedir, download):
    listed = "alice:\n  :submitters:\n  - :name: Bob Builder\n"
    path = download(
        (f"alice/{NOTEBOOK}", ALICES),
        (f"bob/{NOTEBOOK}", BOBS),
        ("bob/submission_metadata.yml", listed),
        ("submission_metadata.yml", listed),
    )
    collect(path, coursedir, times=Times(UTC))
    assert read(coursedir, "alice") == ALICES
    assert read(coursedir, "bob") == BOBS


def test_teams_counts_versions(coursedir, download):
    folder = "Alice Liddell/Chapter 3"
    path = download(
        (f"{folder}/Version 10/{NOTEBOOK}", b"ten"),
        (f"{folder}/Version 9/{NOTEBOOK}", b"nine"),
        (f"Bob Builder/Chapter 3/Version 1/{NOTEBOOK}", BOBS),
    )
    collect(path, coursedir, times=Times(UTC))
    assert read(coursedir, "alice") == b"ten"
    assert b"nine" in tree(coursedir).values()


def test_gradescope_names_its_submitters_in_a_list(coursedir, download):
    listed = """\
submission_11:
  :submitters:
  - :name: Alice Liddell
    :sid: '4711'
    :email: alice@example.org
  :created_at: 2026-11-20 18:05:00.5 +01:00
submission_12:
  :submitters:
  - :name: Bob Builder
    :email: bob@example.org
  :created_at: 2026-11-20 17:05:00 Z
"""
    path = download(
        ("assignment_1_export/submission_metadata.yml", listed),
        (f"assignment_1_export/submission_11/{NOTEBOOK}", ALICES),
        (f"assignment_1_export/submission_12/{NOTEBOOK}", BOBS),
        # a learner's own file of that name says nothing
        (
            "assignment_1_export/submission_12/submission_metadata.yml",
            listed.replace("submission_12", "x").replace("_11", "_12"),
        ),
    )
    collect(path, coursedir, times=Times(UTC))
    assert read(coursedir, "alice") == ALICES
    assert read(coursedir, "bob") == BOBS
    assert times_of(coursedir, "alice", "bob") == {
        "alice": "2026-11-20 17:05:00.500000 UTC",
        "bob": "2026-11-20 17:05:00.000000 UTC",
    }


def test_a_number_that_contradicts_a_name_is_heeded(coursedir, download):
    """Somebody else of alice's name, whose number the roster does not have."""
    path = download((f"liddellalice_5555_67890_{NOTEBOOK}", ALICES))
    (outcome,) = collect(path, coursedir)
    assert "is nobody on the roster" in outcome.message
    assert read(coursedir, "alice") is None


def test_a_person_says_whose_a_file_is(coursedir, download):
    path = download(
        (f"Participant 17_17_assignsubmission_file_/{NOTEBOOK}", ALICES),
        ("mine/03.ipynb", BOBS),
    )
    collect(path, coursedir, assigned={"Participant 17": "alice"})
    assert read(coursedir, "alice") == ALICES
    collect(path, coursedir, assigned={"03.ipynb": "bob"})
    assert read(coursedir, "bob") == BOBS
    # who was told once need not be told again, and is nobody new
    again = collect(path, coursedir, add_students=True)
    assert {one.student for one in again} == {"alice", "bob"}
    # whoever is known by name stays so, whatever the file is called
    known = download((f"eve/{NOTEBOOK}", b"eve's"), name="known.zip")
    said, _ = collect(known, coursedir, assigned={NOTEBOOK: "bob"})
    assert f"--assign {NOTEBOOK}" in said.message
    assert said.needs_human
    assert read(coursedir, "eve") == b"eve's"
    assert read(coursedir, "bob") == BOBS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("student,handed_in\nalice,01/02/2026 18:00\n", "line 2"),
        ("student,handed_in\nalice,18:00\n", "line 2"),
        ("student,handed_in\nalice,vendredi 20 novembre\n", "no time"),
        ("name,points\nalice,3\n", "needs a column"),
        ("", "needs a column"),
    ],
)
def test_a_file_of_times_that_cannot_be_trusted(tmp_path, text, words):
    path = tmp_path / "times.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=words):
        parse_handed_in(str(path), ROSTER, UTC)


def test_what_is_no_time_at_all():
    with pytest.raises(CourseError, match="write zip"):
        parse_handed_in("soon", ROSTER, UTC)


def test_an_unknown_student_is_reported_and_the_file_kept(coursedir, download):
    path = download(
        ("Zed Zorn_9_assignsubmission_file_/03.ipynb", b"zed's"),
        (f"Alice Liddell_1_assignsubmission_file_/{NOTEBOOK}", ALICES),
    )
    outcomes = {one.student: one for one in collect(path, coursedir)}
    assert read(coursedir, "alice") == ALICES
    zed = outcomes["Zed Zorn"]
    assert zed.needs_human
    assert zed.path is None
    assert zed.message.startswith("Zed Zorn is nobody on the roster")
    where = zed.message.split("kept in ")[1].rstrip(".")
    assert where.startswith("versions/_unknown/Zed_Zorn")
    kept = Path(coursedir.root) / where / "03.ipynb"
    assert kept.read_bytes() == b"zed's"

    outcomes = collect(path, coursedir, add_students=True)
    assert read(coursedir, "Zed_Zorn") == b"zed's"
    assert not any(one.needs_human for one in outcomes)


def test_who_has_no_name_or_a_name_for_several_is_nobody(coursedir, download):
    twins = [
        Student("ann", "Ann", "Lee"),
        Student("lee", "Lee", "Ann"),
    ]
    path = download(
        (f"Ann Lee_1_assignsubmission_file_/{NOTEBOOK}", b"whose"),
        name="twins.zip",
    )
    (outcome,) = collect(path, coursedir, students=twins, add_students=True)
    assert "several students: ann, lee" in outcome.message
    path = download((NOTEBOOK, b"nobody's"))
    (outcome,) = collect(path, coursedir, add_students=True)
    assert "does not say whose it is" in outcome.message
    assert not (Path(coursedir.root) / "submitted").exists()
    assert set(tree(coursedir).values()) == {b"whose", b"nobody's"}


@pytest.mark.parametrize("add_students", [False, True])
@pytest.mark.parametrize("name", ["Alice Liddell", "Nora New"])
def test_two_people_of_one_name_are_not_mixed(
    coursedir, download, name, add_students
):
    """Where learners choose the name that the system shows."""
    path = download(
        (f"{name}_1_assignsubmission_file_/{NOTEBOOK}", b"one's"),
        (f"{name}_2_assignsubmission_file_/{NOTEBOOK}", b"another's"),
        (f"Bob Builder_3_assignsubmission_file_/{NOTEBOOK}", BOBS),
    )
    outcomes = collect(path, coursedir, add_students=add_students)
    assert read(coursedir, "bob") == BOBS
    assert [one.student for one in outcomes if one.needs_human] == [name, name]
    assert list((Path(coursedir.root) / "submitted").iterdir()) == [
        submitted(coursedir, "bob").parent
    ]
    assert {b"one's", b"another's"} <= set(tree(coursedir).values())


def test_an_unknown_chapter_is_reported_and_the_file_kept(coursedir, download):
    path = download(("alice/Untitled.ipynb", ALICES))
    (outcome,) = collect(path, coursedir)
    assert outcome.student == "alice"
    assert outcome.needs_human
    assert "Untitled.ipynb has the name of no chapter" in outcome.message
    (kept,) = tree(coursedir)
    assert kept.startswith("versions/alice/_unknown/")


def test_other_files_are_left_out_in_one_sentence(coursedir, download):
    path = download(
        (f"alice/{NOTEBOOK}", ALICES),
        ("alice/report.pdf", b"%PDF"),
        ("alice/data.csv", b"1"),
        ("bob/report.pdf", b"%PDF"),
    )
    outcomes = collect(path, coursedir)
    alices = [one for one in outcomes if one.student == "alice"]
    assert len(alices) == 2
    assert not any(one.needs_human for one in alices)
    (bobs,) = [one for one in outcomes if one.student == "bob"]
    assert bobs.needs_human
    assert bobs.message == "Left out: bob/report.pdf (not a notebook)."


def test_what_systems_add_is_passed_over_in_silence(coursedir, download):
    path = download(
        (f"alice/{NOTEBOOK}", ALICES),
        (f"__MACOSX/alice/._{NOTEBOOK}", b"junk"),
        (f"alice/._{NOTEBOOK}", b"junk"),
        ("alice/.DS_Store", b"junk"),
        (f"alice/.ipynb_checkpoints/{CHAPTER}-checkpoint.ipynb", b"older"),
        ("alice/", b""),
    )
    (outcome,) = collect(path, coursedir)
    assert outcome.student == "alice"
    assert list(tree(coursedir).values()) == [ALICES]


def symlink(name):
    info = dated(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def fifo(name):
    info = dated(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFIFO | 0o666) << 16
    return info


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (f"../bob/{NOTEBOOK}", "climbs out"),
        (f"bob/../../../{NOTEBOOK}", "climbs out"),
        (f"..\\..\\bob\\{NOTEBOOK}", "climbs out"),
        (f"/bob/{NOTEBOOK}", "absolute"),
        (f"\\\\server\\share\\{NOTEBOOK}", "absolute"),
        (f"C:\\bob\\{NOTEBOOK}", "absolute"),
        (f"c:bob_{NOTEBOOK}", "absolute"),
        ("bob/" + "x" * 300 + ".ipynb", "no file has"),
        (symlink(f"bob/{NOTEBOOK}"), "symbolic link"),
        (fifo(f"bob/{NOTEBOOK}"), "not a regular file"),
        ("bob/work.zip", "an archive by itself"),
        ("bob/work.tar.gz", "an archive by itself"),
    ],
)
def test_dangerous_entries_cost_only_themselves(
    coursedir, download, tmp_path, entry, why
):
    before = set(tmp_path.iterdir())
    path = download((entry, b"/etc/passwd"), (f"alice/{NOTEBOOK}", ALICES))
    outcomes = collect(path, coursedir)
    (told,) = [one for one in outcomes if why in one.message]
    assert told.needs_human
    assert told.path is None
    assert tree(coursedir) == {f"submitted/alice/{CHAPTER}/{NOTEBOOK}": ALICES}
    assert set(tmp_path.iterdir()) == before | {path}


def test_a_name_with_a_zero_byte_is_not_cut_short(
    coursedir, download, tmp_path
):
    path = download((f"bob/{CHAPTER}.ipynb?.exe", BOBS))
    path.write_bytes(path.read_bytes().replace(b"?", b"\0"))
    (outcome,) = collect(path, coursedir)
    assert "a name that no file has" in outcome.message
    assert not tree(coursedir)


def test_names_in_utf8_that_do_not_say_so(coursedir, tmp_path):
    """`zipfile` sets the flag for such names; here it is taken away."""
    path = tmp_path / "unflagged.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(dated(f"Zoë Größe/{NOTEBOOK}"), BOBS)
        archive.writestr(dated(f"alice/{NOTEBOOK}"), ALICES)
    data = path.read_bytes()
    name = f"Zoë Größe/{NOTEBOOK}".encode()
    for signature, flags, start in ((b"PK\3\4", 6, 30), (b"PK\1\2", 8, 46)):
        at = data.index(signature)
        assert data[at + start : at + start + len(name)] == name
        flag = data[at + flags + 1]
        assert flag & 0x08
        data = (
            data[: at + flags + 1] + bytes([flag & ~8]) + data[at + flags + 2 :]
        )
    path.write_bytes(data)
    students = [*ROSTER, Student("zoe", "Zoë", "Größe")]
    collect(path, coursedir, students=students)
    assert read(coursedir, "zoe") == BOBS
    assert read(coursedir, "alice") == ALICES


def test_names_in_no_known_code(coursedir, download):
    path = download(("z?d/03.ipynb", BOBS), (f"alice/{NOTEBOOK}", ALICES))
    path.write_bytes(path.read_bytes().replace(b"z?d", b"z\xebd"))
    outcomes = collect(path, coursedir)
    assert read(coursedir, "alice") == ALICES
    assert BOBS in tree(coursedir).values()
    assert all(one.message.isprintable() for one in outcomes)


def test_a_name_that_lies_about_its_code(coursedir, download, tmp_path):
    """Python's `zipfile` reads nothing of such an archive."""
    path = download((f"zë/{NOTEBOOK}", BOBS), (f"alice/{NOTEBOOK}", ALICES))
    path.write_bytes(path.read_bytes().replace("zë".encode(), b"z\xff\xff"))
    (outcome,) = collect(path, coursedir)
    assert outcome.needs_human
    assert "unpack it and collect the folder" in outcome.message


def test_an_encrypted_entry(coursedir, download):
    path = download((f"bob/{NOTEBOOK}", BOBS), (f"alice/{NOTEBOOK}", ALICES))
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flags of bob's entry, in both places
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    outcomes = {one.student: one for one in collect(path, coursedir)}
    assert "(encrypted)" in outcomes["bob"].message
    assert read(coursedir, "alice") == ALICES


def test_a_way_of_packing_whose_reader_takes_what_memory_it_is_told(
    coursedir, tmp_path
):
    path = tmp_path / "lzma.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(f"bob/{NOTEBOOK}", BOBS)
    (outcome,) = collect(path, coursedir)
    assert "packed in a way" in outcome.message
    assert read(coursedir, "bob") is None


def bomb(size):
    return b"\0" * size


@pytest.mark.parametrize(
    ("size", "limits", "why"),
    [
        (2_000, {"max_file_bytes": 1_000}, "more than 0.001 MB"),
        (11_000_000, {}, "more than 200 times"),
    ],
)
def test_a_bomb_that_says_its_size(coursedir, download, size, limits, why):
    path = download(
        (f"bob/{NOTEBOOK}", bomb(size)), (f"alice/{NOTEBOOK}", ALICES)
    )
    outcomes = collect(path, coursedir, limits=ArchiveLimits(**limits))
    said = {one.student: one.message for one in outcomes}
    assert why in said["bob"]
    assert tree(coursedir) == {f"submitted/alice/{CHAPTER}/{NOTEBOOK}": ALICES}


def test_a_bomb_that_lies_about_its_size(coursedir, download, tmp_path):
    """It says 11 bytes and unpacks to 50 MB; no more than 11 are written."""
    path = download(
        (f"bob/{NOTEBOOK}", bomb(50_000_000)), (f"alice/{NOTEBOOK}", ALICES)
    )
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 22, 11)
    struct.pack_into("<I", data, data.index(b"PK\1\2") + 24, 11)
    path.write_bytes(data)
    outcomes = collect(path, coursedir)
    said = {one.student: one.message for one in outcomes}
    assert "(damaged)" in said["bob"]
    assert tree(coursedir) == {f"submitted/alice/{CHAPTER}/{NOTEBOOK}": ALICES}


def test_many_files_that_are_too_much_together(coursedir, download):
    path = download(
        *((f"{name}/{NOTEBOOK}", bomb(900)) for name in ("alice", "bob", "eve"))
    )
    limits = ArchiveLimits(max_total_bytes=2_000)
    outcomes = collect(path, coursedir, limits=limits)
    assert [one.student for one in outcomes if one.path] == ["alice", "bob"]
    said = {one.student: one.message for one in outcomes}
    assert "the archive unpacks to too much" in said["eve"]


def test_thousands_of_entries(coursedir, download):
    path = download(
        *((f"bob/{number}.txt", b"") for number in range(3_000)),
        (f"alice/{NOTEBOOK}", ALICES),
    )
    outcomes = collect(path, coursedir)
    assert read(coursedir, "alice") == ALICES
    (bobs,) = [one for one in outcomes if one.student == "bob"]
    assert bobs.message.endswith("2995 more.")
    (refused,) = collect(path, coursedir, limits=ArchiveLimits(max_entries=99))
    assert "more than 99 entries" in refused.message


def test_a_list_of_entries_that_would_fill_the_memory(coursedir, download):
    path = download(*((f"{n}" * 50, b"") for n in range(200)))
    limits = ArchiveLimits(max_index_bytes=10_000)
    (refused,) = collect(path, coursedir, limits=limits)
    assert "its list of entries is too long" in refused.message


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no zip archive, or damaged"),
        (b"<html>Please log in</html>", "no zip archive, or damaged"),
        (b"PK\3\4 and no more", "no zip archive, or damaged"),
        (None, "No such file or directory"),
    ],
)
def test_what_is_no_archive_is_said_and_the_others_collected(
    coursedir, download, tmp_path, content, why
):
    bad = tmp_path / "bad.zip"
    if content is not None:
        bad.write_bytes(content)
    good = download((f"alice/{NOTEBOOK}", ALICES))
    outcomes = collect([bad, good], coursedir)
    (told,) = [one for one in outcomes if one.needs_human]
    assert told.message.startswith("bad.zip is not collected: ")
    assert why in told.message
    assert read(coursedir, "alice") == ALICES


def test_a_truncated_archive_never_gives_half_a_notebook(
    coursedir, download, tmp_path
):
    path = download((f"alice/{NOTEBOOK}", ALICES), (f"bob/{NOTEBOOK}", BOBS))
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        outcomes = collect(path, coursedir)
        assert outcomes
        assert all(one.needs_human for one in outcomes), length
    assert not tree(coursedir)


def test_a_damaged_byte_never_gives_wrong_bytes(download, tmp_path):
    """Wherever it is: a notebook is as it was handed in, or it is refused."""
    path = download((f"alice/{NOTEBOOK}", ALICES), (f"bob/{NOTEBOOK}", BOBS))
    data = path.read_bytes()
    unhurt = 0
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        root = tmp_path / f"course-{at}"
        root.mkdir()
        coursedir = CourseDirectory(root=str(root))
        outcomes = collect(path, coursedir)
        assert outcomes, at
        files = tree(coursedir)
        assert set(files.values()) <= {ALICES, BOBS}, at
        if len(files) < 2:
            assert any(one.needs_human for one in outcomes), at
        unhurt += read(coursedir, "bob") == BOBS
    assert unhurt > len(data) / 3


def test_one_students_trouble_is_not_anothers(coursedir, download):
    """Where bob's folder should be lies a file."""
    (Path(coursedir.root) / "submitted").mkdir()
    (Path(coursedir.root) / "submitted" / "bob").touch()
    path = download((f"alice/{NOTEBOOK}", ALICES), (f"bob/{NOTEBOOK}", BOBS))
    outcomes = {one.student: one for one in collect(path, coursedir)}
    assert outcomes["alice"].path is not None
    assert outcomes["bob"].needs_human
    assert outcomes["bob"].path is None
    assert read(coursedir, "alice") == ALICES


def test_nothing_is_left_behind(coursedir, download):
    collect(download((f"alice/{NOTEBOOK}", ALICES)), coursedir)
    versions = Path(coursedir.root) / "versions"
    assert list(versions.iterdir()) == []


def test_the_roster_is_the_gradebooks(coursedir, monkeypatch):
    assert roster(coursedir) == []
    assert not (Path(coursedir.root) / "gradebook.db").exists()
    # nbgrader calls `alembic` by name
    here = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([here, os.environ["PATH"]]))
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        gradebook.add_student(
            "alice", first_name="Alice", last_name="Liddell", email="a@b.org"
        )
        gradebook.add_student("bob", lms_user_id="12")
    assert set(roster(coursedir)) == {
        Student("alice", "Alice", "Liddell", "a@b.org"),
        Student("bob", lms_user_id="12"),
    }
