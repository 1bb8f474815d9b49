"""Copying a folder that somebody else wrote."""

import os
import socket
import stat
from pathlib import Path

import pytest

from course_grader.classroom.collect_tree import (
    Limits,
    copy_tree,
    left_out_sentence,
    printable,
)

NOTEBOOK = "03_one_hot_and_losses.ipynb"
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make files of another owner"
)


@pytest.fixture
def handed_in(tmp_path):
    folder = tmp_path / "handed_in"
    folder.mkdir()
    (folder / NOTEBOOK).write_bytes(b"\xff\x00 any bytes \r\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def copy(handed_in, tmp_path, **limits):
    copied = tmp_path / "copied"
    left_out = copy_tree(handed_in, copied, Limits(**limits), first=NOTEBOOK)
    return contents(copied), {"/".join(o.parts): o.why for o in left_out}


def test_bytes_and_times_are_kept_and_permissions_are_not(handed_in, tmp_path):
    (handed_in / "data").mkdir()
    (handed_in / "data" / "points.csv").write_text("1,2\n")
    large = bytes(range(256)) * 10_000 + b"end"  # of several reads
    (handed_in / "data" / "large.bin").write_bytes(large)
    os.utime(handed_in / NOTEBOOK, ns=(5, 1_700_000_000_123_456_789))
    (handed_in / NOTEBOOK).chmod(0o4777)
    before = contents(handed_in)
    files, left_out = copy(handed_in, tmp_path)
    assert files == before == contents(handed_in)
    assert not left_out
    seen = (tmp_path / "copied" / NOTEBOOK).stat()
    assert seen.st_mtime_ns == 1_700_000_000_123_456_789
    assert not seen.st_mode & (stat.S_ISUID | stat.S_IXUSR)


def test_only_regular_files_are_read(handed_in, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "solution.txt").write_text("canary")
    (handed_in / "link").symlink_to(secret / "solution.txt")
    (handed_in / "folder_link").symlink_to(secret)
    (handed_in / "dangling").symlink_to(tmp_path / "nowhere")
    (handed_in / "loop").symlink_to(handed_in)
    os.mkfifo(handed_in / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(handed_in)  # a socket's path must be short
        try:
            listening.bind("plug")
        finally:
            os.chdir(here)
    files, left_out = copy(handed_in, tmp_path)
    assert list(files) == [NOTEBOOK]
    assert left_out == {
        "link": "a symbolic link",
        "folder_link": "a symbolic link",
        "dangling": "a symbolic link",
        "loop": "a symbolic link",
        "pipe": "a FIFO",
        "plug": "a socket",
    }


def test_a_device_is_not_read(handed_in, tmp_path):
    try:
        os.mknod(handed_in / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device")
    files, left_out = copy(handed_in, tmp_path)
    assert list(files) == [NOTEBOOK]
    assert left_out == {"zero": "a device"}


@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_what_is_swapped_after_the_first_look_is_not_read(
    handed_in, tmp_path, monkeypatch, kind
):
    """The look says regular file, the opening finds something else. Without
    O_NONBLOCK this test would wait for a writer for ever."""
    (tmp_path / "secret.txt").write_text("canary")
    regular = os.stat(handed_in / NOTEBOOK)
    if kind == "link":
        (handed_in / "swapped").symlink_to(tmp_path / "secret.txt")
    else:
        os.mkfifo(handed_in / "swapped")
    look = os.stat

    def deceived(path, *args, **kwargs):
        if path == "swapped":
            return regular
        return look(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", deceived)
    files, left_out = copy(handed_in, tmp_path)
    assert list(files) == [NOTEBOOK]
    assert list(left_out) == ["swapped"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_the_folder_itself_must_be_one(handed_in, tmp_path, kind):
    other = tmp_path / "other"
    if kind == "link":
        other.symlink_to(handed_in)
    else:
        other.write_text("no folder")
    with pytest.raises(NotADirectoryError, match="no folder, or a symbolic"):
        copy_tree(other, tmp_path / "copied", Limits())


@as_root
def test_a_hard_link_to_anothers_file_is_not_read(handed_in, tmp_path):
    """Where the kernel does not protect hard links, a learner can link a file
    that only the collector can read."""
    os.chown(handed_in, 12345, 12345)
    os.chown(handed_in / NOTEBOOK, 12345, 12345)
    os.link(handed_in / NOTEBOOK, handed_in / "own_link")
    private = tmp_path / "private.txt"
    private.write_text("canary")
    os.link(private, handed_in / "stolen")
    files, left_out = copy(handed_in, tmp_path)
    assert set(files) == {NOTEBOOK, "own_link"}
    assert left_out == {"stolen": "a hard link to a file of another owner"}


def test_an_unreadable_file_costs_only_itself(handed_in, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root can read every file, so this would prove nothing")
    (handed_in / "locked.txt").write_text("x")
    (handed_in / "locked.txt").chmod(0)
    (handed_in / "closed").mkdir(mode=0)
    files, left_out = copy(handed_in, tmp_path)
    assert list(files) == [NOTEBOOK]
    assert set(left_out) == {"locked.txt", "closed"}


def test_caps_never_cost_the_notebook(handed_in, tmp_path):
    (handed_in / "aaa.bin").write_bytes(b"a" * 600)
    (handed_in / "bbb.bin").write_bytes(b"b" * 600)
    (handed_in / "huge.bin").write_bytes(b"c" * 2000)
    files, left_out = copy(
        handed_in, tmp_path, max_file_bytes=1000, max_total_bytes=1000
    )
    assert set(files) == {NOTEBOOK, "aaa.bin"}
    assert left_out["huge.bin"] == "larger than 0.001 MB"
    assert left_out["bbb.bin"] == "the submission is larger than 0.001 MB"


def test_a_hole_of_a_terabyte_is_not_copied(handed_in, tmp_path):
    with (handed_in / "hole.bin").open("wb") as file:
        file.truncate(2**40)
    files, left_out = copy(handed_in, tmp_path)
    assert list(files) == [NOTEBOOK]
    assert left_out == {"hole.bin": "larger than 100 MB"}


def test_thousands_of_files_end_at_the_cap_after_the_notebook(
    handed_in, tmp_path
):
    for number in range(300):
        (handed_in / f"0_{number:04d}.ipynb").touch()
    files, left_out = copy(handed_in, tmp_path, max_files=20)
    assert NOTEBOOK in files
    assert len(files) == 20
    assert left_out == {"": "more than 20 files and folders"}


def test_links_and_folders_count_too(handed_in, tmp_path):
    for number in range(50):
        (handed_in / f"{number}").symlink_to("/")
        (handed_in / f"f{number}").mkdir()
    _, left_out = copy(handed_in, tmp_path, max_files=20)
    assert len(left_out) <= 20
    assert left_out[""] == "more than 20 files and folders"


def test_nested_folders_end_at_the_cap(handed_in, tmp_path):
    deep = handed_in
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
        (deep / "x").touch()
    files, left_out = copy(handed_in, tmp_path, max_depth=3)
    assert set(files) == {NOTEBOOK, "d/x", "d/d/x", "d/d/d/x"}
    assert left_out == {"d/d/d/d": "more than 3 folders deep"}


def test_names_that_cannot_be_shown_are_left_out(handed_in, tmp_path):
    (handed_in / "two\nlines.txt").touch()
    (handed_in / "\x1b[31mred.txt").touch()
    with open(os.path.join(os.fsencode(handed_in), b"\xe9.txt"), "wb"):
        pass
    (handed_in / "größe 表.txt").touch()
    files, left_out = copy(handed_in, tmp_path)
    assert set(files) == {NOTEBOOK, "größe 表.txt"}
    assert sorted(left_out.values()) == [
        "its name holds a control character",
        "its name holds a control character",
        "its name is not valid UTF-8",
    ]


def test_a_folder_in_the_notebooks_place_is_no_notebook(handed_in, tmp_path):
    (handed_in / NOTEBOOK).unlink()
    (handed_in / NOTEBOOK).mkdir()
    (handed_in / NOTEBOOK / "x").touch()
    files, left_out = copy(handed_in, tmp_path)
    assert list(files) == [f"{NOTEBOOK}/x"]
    assert not left_out


def test_no_descriptor_stays_open(handed_in, tmp_path):
    (handed_in / "sub").mkdir()
    (handed_in / "sub" / "x").touch()
    os.mkfifo(handed_in / "pipe")
    before = len(os.listdir("/dev/fd"))
    copy(handed_in, tmp_path)
    assert len(os.listdir("/dev/fd")) == before


def test_the_sentence_is_one_line_of_printable_text(handed_in, tmp_path):
    for number in range(9):
        (handed_in / f"evil\n\x1b]0;title\x07{number}").symlink_to("/")
    left_out = copy_tree(handed_in, tmp_path / "copied", Limits())
    sentence = left_out_sentence(left_out)
    assert sentence.isprintable()
    assert sentence.startswith("Left out: evil\\n\\x1b")
    assert sentence.endswith("4 more.")
    assert left_out_sentence([]) == ""
    assert len(printable("x" * 5000)) < 130
