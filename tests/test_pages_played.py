"""docs/term.md and docs/instructors.md, typed line by line: every block of commands and
of settings, from top to bottom, on a fresh clone of the whole course. What cannot be
played here has a comment `not played` above it in the page's source."""

from __future__ import annotations

import re
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from commands import environment
from mini_course import ROOT

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered
from course_grader.course import Course

pytestmark = pytest.mark.slow

CHAPTER = "03_one_hot_and_losses"
NOTEBOOK = f"{CHAPTER}.ipynb"
BLOCK = re.compile(
    r"^(?P<above>[^\n]*)\n```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NOT_PLAYED = re.compile(r"<!-- not played: .+ -->")
TABLE = re.compile(r"^\[.*\]$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: what it is, and what stands in it."""

    kind: str
    text: str


def blocks(page: str) -> list[Block]:
    """What a page would have somebody type."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = []
    # every fence of the page is the begin or the end of one of them
    assert text.count("\n```") == 2 * len(BLOCK.findall(text))
    for one in BLOCK.finditer(text):
        if one["kind"] == "text" or NOT_PLAYED.fullmatch(one["above"]):
            continue
        assert one["kind"] in ("", "toml", "crontab"), one["kind"]
        found.append(Block(one["kind"], one["text"]))
    return found


@pytest.fixture
def fresh(tmp_path: Path) -> Course:
    """A clone of what is committed, and the files that the pages name."""
    root = tmp_path / "clone"
    cloning = ["git", "clone", "--quiet", str(ROOT), str(root)]
    if subprocess.run(cloning).returncode:
        pytest.skip("this course lies in no git repository")
    (root / "roster.csv").write_text(
        "id,first_name,last_name,email,lms_user_id\n"
        "ada,Ada,Lovelace,ada@example.org,1815\n"
        "bob,Bob,Noyce,bob@example.org,1927\n"
    )
    (root / "extensions.csv").write_text("student,chapter,days\nbob,03,1\n")
    (root / "worksheet.csv").write_text(
        "Identifier,Full name,Last modified (submission)\n"
        'Participant 101,Ada Lovelace,"Friday, 20 November 2026, 6:05 PM"\n'
        'Participant 102,Participant 17,"Friday, 4 December 2026, 6:05 PM"\n'
    )
    course = Course(root)
    work = nbformat.writes(handed_in(course))
    moodle = [
        f"{who}_{number}_assignsubmission_file_/{NOTEBOOK}"
        for number, who in enumerate(
            ("Ada Lovelace", "Participant 17", "Eve Moneypenny"), 101
        )
    ]
    for archive, names in (
        ("moodle.zip", moodle),
        ("by_hand.zip", [f"ada/{NOTEBOOK}"]),
    ):
        with zipfile.ZipFile(root / archive, "w") as made:
            for name in names:
                made.writestr(name, work)
    return course


def handed_in(course: Course) -> nbformat.NotebookNode:
    """The chapter with the course's own answers."""
    grading, _, released = build_chapter(course, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    return answered(grading, released, right)


def play(course: Course, page: str) -> list[str]:
    """Types a page; the lines that were typed."""
    typed = []
    for block in blocks(page):
        if block.kind == "toml":
            add_settings(course, block.text)
            continue
        for line in block.text.splitlines():
            if block.kind == "crontab":
                line = line.split(maxsplit=5)[5].replace(
                    "cd /srv/course", f"cd {course.root}"
                )
                line = line.replace(".venv/bin/course", "course")
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=course.root,
                env=environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            said = f"{page}: {line}\n{done.stdout}{done.stderr}"
            assert done.returncode in (0, 3), said
            assert "Traceback" not in said, said
            assert "Warning" not in said, said
            typed.append(line)
    return typed


def add_settings(course: Course, text: str) -> None:
    """As the pages say: what has no table of its own stands above the first."""
    path = course.settings_file
    known = path.read_text() if path.exists() else ""
    path.write_text(known + text if TABLE.match(text) else text + known)


def not_in_gits_sight(course: Course) -> None:
    """Nothing that was typed left anything that `git add --all` would take."""
    status = ["git", "status", "--porcelain"]
    assert subprocess.check_output(status, cwd=course.root, text=True) == ""


def test_a_term_as_its_page_has_it(fresh: Course) -> None:
    typed = play(fresh, "term.md")
    commands = {line.split()[1] for line in typed if line.startswith("course")}
    assert {"roster", "due", "extend", "collect", "grade", "total"} <= commands
    # what the page promises for the end is there
    with zipfile.ZipFile(fresh.root / "back.zip") as back:
        assert sorted(name.partition("_")[0] for name in back.namelist()) == [
            "Ada Lovelace",
            "Eve Moneypenny",
            "Participant 17",
        ]
    assert list((fresh.root / "build" / "solved").rglob("*.ipynb"))
    archive = fresh.root / "archive" / "2026-autumn"
    students = {path.name for path in (archive / "submitted").iterdir()}
    assert students == {"bob", "Eve_Moneypenny"}  # ada is forgotten
    for table in archive.glob("*.csv"):
        assert "ada" not in table.read_text()
    not_in_gits_sight(fresh)


def test_the_instructors_page_as_it_is(fresh: Course) -> None:
    for folder in (
        fresh.people / "handed_in" / "ada",
        fresh.people / "submitted" / "bob" / CHAPTER,
    ):
        folder.mkdir(parents=True)
        nbformat.write(handed_in(fresh), folder / NOTEBOOK)
    play(fresh, "instructors.md")
    results = fresh.people / "results" / CHAPTER
    assert (results / "feedback" / "ada" / f"{CHAPTER}.html").is_file()
    assert "bob" in (fresh.people / "marks.csv").read_text()
    assert "course grade" not in (fresh.people / "cron.log").read_text()
    not_in_gits_sight(fresh)


@pytest.mark.parametrize("page", ["term.md", "instructors.md"])
def test_what_is_not_played_is_little(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert len(NOT_PLAYED.findall(text)) < len(blocks(page)) / 2
