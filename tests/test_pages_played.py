"""docs/term.md and docs/instructors.md, typed line by line: every block of commands and
of settings, from top to bottom, in a course that nobody has used. What cannot be played
here has a comment `not played` above it in the page's source."""

from __future__ import annotations

import re
import shutil
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

CHAPTER = "03_mini"
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
def fresh(mini: Course) -> Course:
    """Files that the pages name, and a course in which nothing was ever typed."""
    root = mini.root
    mini.settings_file.unlink()
    (root / "roster.csv").write_text(
        "id,first_name,last_name,email,lms_user_id\n"
        "ada,Ada,Lovelace,ada@example.org,1815\n"
        "bob,Bob,Noyce,bob@example.org,1927\n"
    )
    (root / "extensions.csv").write_text("student,chapter,days\nbob,03,1\n")
    (root / "worksheet.csv").write_text(
        "Identifier,Full name,Last modified (submission)\n"
        'Participant 1,Ada Lovelace,"Friday, 20 November 2026, 6:05 PM"\n'
    )
    grading, _, released = build_chapter(mini, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    work = nbformat.writes(answered(grading, released, right))
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
    for folder in (root / "handed_in" / "ada", submitted(mini, "bob")):
        folder.mkdir(parents=True)
        (folder / NOTEBOOK).write_text(work)
    return mini


def submitted(course: Course, student: str) -> Path:
    """Where a collected submission lies."""
    return course.people / "submitted" / student / CHAPTER


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
            typed.append(line)
    return typed


def add_settings(course: Course, text: str) -> None:
    """As the pages say: what has no table of its own stands above the first."""
    path = course.settings_file
    known = path.read_text() if path.exists() else ""
    path.write_text(known + text if TABLE.match(text) else text + known)


def test_a_term_as_its_page_has_it(fresh: Course) -> None:
    shutil.rmtree(fresh.people)
    typed = play(fresh, "term.md")
    commands = {line.split()[1] for line in typed if line.startswith("course")}
    assert {"roster", "due", "extend", "collect", "grade", "total"} <= commands
    # what the page promises for the end is there
    with zipfile.ZipFile(fresh.root / "back.zip") as back:
        (of_ada, *_) = [one for one in back.namelist() if "Ada" in one]
        assert of_ada.endswith(".html")
    assert list((fresh.root / "solved").rglob("*.ipynb"))
    archive = fresh.root / "archive" / "2026-autumn"
    assert (archive / "submitted" / "bob").is_dir()
    assert not (archive / "submitted" / "ada").exists()


def test_the_instructors_page_as_it_is(fresh: Course) -> None:
    play(fresh, "instructors.md")
    results = fresh.people / "results" / CHAPTER
    assert (results / "feedback" / "ada" / f"{CHAPTER}.html").is_file()
    assert "bob" in (fresh.people / "marks.csv").read_text()
    assert "course grade" not in (fresh.people / "cron.log").read_text()


@pytest.mark.parametrize("page", ["term.md", "instructors.md"])
def test_what_is_not_played_is_little(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert len(NOT_PLAYED.findall(text)) < len(blocks(page)) / 2
