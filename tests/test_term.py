"""A term: due dates, extensions, what being late costs, marks for an LMS, solutions
after the deadline."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import nbformat
import pytest
from commands import (
    course_says,
    environment,
    exported,
    points,
    run_course,
    run_nbgrader,
    without_ports,
)
from nbclient import NotebookClient

from course_grader.chapter.build import build_chapter
from course_grader.classroom.collect_names import Student
from course_grader.classroom.demo import answered
from course_grader.classroom.gradebook import Mark
from course_grader.classroom.marks_files import (
    CANVAS_LOOK,
    as_moodle,
    unknown_to_moodle,
)
from course_grader.course import Course
from course_grader.lab.home import home_of
from course_home.server import home_page

CHAPTER = "03_mini"
ROSTER = (
    "id,first_name,last_name,email,lms_user_id\n"
    "ada,Ada,Lovelace,ada@example.org,1815\n"
    'bob,=Bob,"O\'Hara, Jr",bob@example.org,1900\n'
)


@pytest.fixture
def term(released: Course, tmp_path: Path) -> Course:
    """A released chapter, a roster, and three who hand in: on the 1st of December at
    noon, 20 hours later, and three days later."""
    mini = released
    limits = mini.settings_file.read_text()
    mini.settings_file.write_text(
        'timezone = "Europe/Berlin"\n'
        "[late]\npercent_per_day = 10\nfree_days = 1\n" + limits
    )
    roster = tmp_path / "roster.csv"
    roster.write_text(ROSTER)
    said = course_says(mini.root, "roster", roster)
    assert "2 learners are on the roster." in said
    grading, _, released = build_chapter(mini, CHAPTER)
    right = {one.id: one.source for one in grading.chapter.exercises}
    for student, when in (
        ("ada", "2026-12-01 12:00:00"),
        ("bob", "2026-12-02 08:00:00"),
        ("cleo", "2026-12-04 13:00:00"),
    ):
        folder = mini.people / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        nbformat.write(
            answered(grading, released, right), folder / f"{CHAPTER}.ipynb"
        )
        (folder / "timestamp.txt").write_text(f"{when}.000000 UTC")
    return mini


@pytest.mark.slow
def test_late_work_loses_a_share_for_every_day(term: Course) -> None:
    root = term.root
    assert "03_mini: no due date" in course_says(root, "due", "03")
    course_says(root, "grade", "03")
    assert points(root, "03") == {"ada": 5, "bob": 5, "cleo": 5}

    # set after grading: nobody need be graded again
    said = course_says(root, "due", "03", "2026-12-01T13:00+01:00")
    assert "03_mini: due" in said
    assert points(root, "03") == {"ada": 5, "bob": 4.5, "cleo": 3.0}
    course_says(root, "extend", "2.5", "cleo", "--chapter", "03")
    assert points(root, "03") == {"ada": 5, "bob": 4.5, "cleo": 4.5}
    course_says(root, "grade", "03", "--again", "--yes")
    assert points(root, "03") == {"ada": 5, "bob": 4.5, "cleo": 4.5}

    # what a day costs may change at any time, too, and pages follow
    settings = term.settings_file.read_text()
    none = settings.replace("percent_per_day = 10", "")
    page = term.people / "feedback" / "cleo" / CHAPTER / f"{CHAPTER}.html"
    term.settings_file.write_text(settings.replace("day = 10", "day = 20"))
    assert points(root, "03")["cleo"] == 4
    term.settings_file.write_text(none)
    course_says(root, "feedback", "03")
    assert "for a late submission" not in page.read_text()
    assert points(root, "03")["cleo"] == 5
    term.settings_file.write_text(settings)
    course_says(root, "feedback", "03")
    assert "for a late submission" in page.read_text()

    assert "is no date" in course_says(root, "due", "03", "soon", code=2)
    said = course_says(root, "extend", "1", "dan", code=2)
    assert "On no roster: dan" in said

    # one of everybody's late days is free, and so each total says
    totals = json.loads(course_says(root, "total", "--json"))
    assert {one["student"]: one["percent"] for one in totals} == {
        "ada": 100,
        "bob": 100,
        "cleo": 100,
    }
    assert [one["late_days"] for one in totals] == [0, 1, 1]

    # every change of a mark left a line: the penalties that came and went
    trail = [
        json.loads(line)
        for line in (term.people / "marks.jsonl").read_text().splitlines()
    ]
    assert [
        (one["student"], one["before"], one["after"])
        for one in trail
        if one["what"] == "late_submission_penalty" and one["student"] == "cleo"
    ][:3] == [("cleo", None, 2.0), ("cleo", 2.0, None), ("cleo", None, 0.5)]


def test_an_lms_gets_marks_with_its_own_ids(term: Course) -> None:
    root = term.root
    course_says(root, "grade", "03")
    canvas = list(
        csv.reader(
            io.StringIO(course_says(root, "export", "--format", "canvas"))
        )
    )
    assert canvas == [
        [
            *("Student", "ID", "SIS User ID", "SIS Login ID", "Section"),
            *(CHAPTER, CANVAS_LOOK),
        ],
        ["    Points Possible", "", "", "", "", "5", ""],
        ["Lovelace, Ada", "1815", "", "ada", "", "5", ""],
        ["O'Hara, Jr, =Bob", "1900", "", "bob", "", "5", ""],
        ["cleo", "", "", "cleo", "", "5", ""],
    ]
    # Moodle would give cleo's points, without an ID or an address, to Bob
    done = run_course(root, "export", "--format", "moodle")
    assert done.returncode == 3
    assert "cleo is not in it" in done.stderr
    moodle = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(moodle) == 2
    assert moodle[0] == {
        "First name": "Ada",
        "Last name": "Lovelace",
        "ID number": "1815",
        "Email address": "ada@example.org",
        CHAPTER: "5",
        "Look at": "",
    }
    assert moodle[1]["First name"] == "'=Bob"  # no formula for a spreadsheet


@pytest.mark.parametrize(
    ("known", "keys", "left_out"),
    [
        (
            {"ada": {"email": "a@b"}, "bob": {"email": "b@b"}},
            "Email address",
            [],
        ),
        ({"ada": {"email": "a@b"}, "bob": {}}, "Email address", ["bob"]),
        (
            {
                "ada": {"email": "a@b", "lms_user_id": "1"},
                "bob": {"email": "b@b"},
            },
            "Email address",
            [],
        ),
        ({"ada": {}, "bob": {}}, "Username", []),
    ],
)
def test_no_row_for_moodle_has_an_empty_key(
    known: dict[str, dict[str, str]], keys: str, left_out: list[str]
) -> None:
    """Moodle's import would give its marks to the learner above."""
    roster = {one: Student(id=one, **more) for one, more in known.items()}
    marks = [Mark(one, "", CHAPTER, 3.0, 5.0) for one in known]
    rows = list(csv.DictReader(io.StringIO(as_moodle(marks, roster, None))))
    assert unknown_to_moodle(marks, roster) == left_out
    assert len(rows) == len(known) - len(left_out)
    assert list(rows[0])[2:-2] == [keys]
    assert all(row[keys] for row in rows)


def test_solutions_come_after_the_deadline(
    term: Course, tmp_path: Path
) -> None:
    root, to = term.root, tmp_path / "solved"
    refused = course_says(root, "solutions", "03", "--to", to, code=2)
    assert "no due date that has passed" in refused
    assert not to.exists()
    course_says(root, "due", "03", "2999-01-01")
    course_says(root, "solutions", "03", "--to", to, code=2)
    said = course_says(root, "due", "03", "2020-01-01")
    assert "due 2020-01-01 23:59" in said  # the end of that day
    course_says(root, "solutions", "03", "--to", to)

    solved = nbformat.read(to / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    nbformat.validate(solved)
    text = nbformat.writes(solved)
    for word in ("SOLUTION", "HIDDEN", "nbgrader", "course_grader"):
        assert word not in text
    assert "return x * 2**times" in text
    NotebookClient(solved, timeout=120, config=without_ports()).execute()
    printed = "".join(
        one.get("text", "")
        for cell in solved.cells
        for one in cell.get("outputs", [])
    )
    assert printed.count("visible checks pass; hidden ones count") == 2


def notebooks_of(term: Course) -> bytes:
    folder = term.people / "submitted" / "ada" / CHAPTER
    return (folder / f"{CHAPTER}.ipynb").read_bytes()


def test_an_lms_there_and_back(term: Course, tmp_path: Path) -> None:
    """Zips as Canvas and Moodle make them, after the deadline: nobody who was in
    time is late, and the pages go back under the names that were given."""
    root = term.root
    solved = notebooks_of(term)
    for student in ("ada", "bob", "cleo"):
        shutil.rmtree(term.people / "submitted" / student)
    course_says(root, "due", "03", "2026-11-20 18:00")
    download = tmp_path / "submissions.zip"
    with zipfile.ZipFile(download, "w") as archive:
        # written now, as both systems do
        archive.writestr(f"lovelaceada_1815_90001_{CHAPTER}.ipynb", solved)
        archive.writestr(f"hara_LATE_1900_90002_{CHAPTER}-1.ipynb", solved)
        archive.writestr("zed_77_90003_04_other.ipynb", b"{}")
    said = course_says(root, "collect", "--zip", download, code=3)
    assert said.count("at an unknown time") == 2
    assert "zed_77 is nobody on the roster" in said
    course_says(root, "grade", "03")
    # late by Canvas's word, for a day at least; who is not is not
    found = exported(root, "03")
    assert found["ada"]["points"] == "5"
    assert found["ada"]["handed_in"] == "unknown"
    assert found["bob"]["points"] == "4.5"
    assert found["bob"]["days_late"] == "unknown"

    status = json.loads(course_says(root, "status", "--json"))
    assert status[0]["handed_in"] == 2
    assert status[0]["late"] == 1
    assert status[0]["due"] == "2026-11-20T17:00:00+00:00"  # Berlin's 18:00

    # the times are found after all
    times = tmp_path / "times.csv"
    times.write_text(
        "student,handed_in\nada,2026-11-20 17:59\nbob,2026-11-21 18:30\n"
    )
    said = course_says(
        root, "collect", "--zip", download, "--handed-in", times, code=3
    )
    assert "handed in 2026-11-20 17:59:00 CET" in said
    found = exported(root, "03")
    assert found["ada"]["points"] == "5"
    assert found["bob"]["points"] == "4"
    assert found["bob"]["days_late"] == "2"

    back = tmp_path / "back.zip"
    course_says(root, "feedback", "03", "--zip", back)
    with zipfile.ZipFile(back) as archive:
        assert sorted(archive.namelist()) == [
            f"hara_LATE_1900_90002_{CHAPTER}_feedback.html",
            f"lovelaceada_1815_90001_{CHAPTER}_feedback.html",
        ]
        assert b"5" in archive.read(archive.namelist()[0])


def test_an_extension_is_given_before_anything_is_handed_in(
    term: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = term.root
    shutil.rmtree(term.people / "submitted" / "cleo")
    course_says(root, "due", "03", "2026-12-01 12:00")
    given = tmp_path / "extensions.csv"
    given.write_text("student,chapter,days\nbob,3,1\nada,,7\n")
    said = course_says(root, "extend", "--from", given)
    assert "bob has 1 day more for 03_mini." in said
    course_says(root, "grade", "03")
    found = exported(root, "03")
    assert {who: row["points"] for who, row in found.items()} == {
        "ada": "5",
        "bob": "5",  # 20 hours late, and a day more
    }
    # each page says its learner's own due date, the home what all may know
    course_says(root, "feedback", "03")
    for student, due in (("ada", "2026-12-08"), ("bob", "2026-12-02")):
        page = term.people / "feedback" / student / CHAPTER / f"{CHAPTER}.html"
        assert f"due {due} 12:00 CET" in page.read_text()
    course_says(root, "build")
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(term.autograde))
    assert "due 2026-12-01" in home_page(home_of(term), "/")
    run_nbgrader(root, "db", "student", "add", "cleo")
    found = exported(root, "03")
    assert found["cleo"]["points"] == ""  # has a row, and nothing in it
    assert "bob: 1 day more" in course_says(root, "due", "03")


def test_who_needs_a_human_gets_no_zero_in_an_lms(term: Course) -> None:
    root = term.root
    notebook = term.people / "submitted" / "bob" / CHAPTER / f"{CHAPTER}.ipynb"
    notebook.write_text("not a notebook")
    assert "bob: " in course_says(root, "grade", "03", code=3)
    done = run_course(root, "export", "--format", "canvas")
    assert done.returncode == 3
    assert "Look at bob" in done.stderr
    rows = {row[3]: row for row in csv.reader(io.StringIO(done.stdout))}
    assert rows["ada"][5:] == ["5", ""]
    assert rows["bob"][5] == ""
    assert f"{CHAPTER}: The file is no notebook" in rows["bob"][6]
    status = json.loads(course_says(root, "status", "--json"))
    assert status[0]["look"] == 1
    narrow = environment(activated=False) | {"COLUMNS": "80"}
    shown = run_course(root, "status", env=narrow).stdout
    assert CHAPTER in shown
    assert "…" not in shown


def test_a_term_ends_and_another_begins(term: Course, tmp_path: Path) -> None:
    root = term.root
    course_says(root, "grade", "03")
    nowhere, taken = tmp_path / "nowhere" / "a.csv", tmp_path / "a.csv"
    taken.mkdir()
    for typed in (("export", "--to"), ("total", "--to"), ("backup",)):
        said = course_says(root, *typed, nowhere, code=2)
        assert f"cannot be written: there is no folder {nowhere.parent}" in said
    said = course_says(root, "export", "--to", taken, code=2)
    assert "cannot be written: Is a directory" in said
    course_says(root, "report")
    page = (term.people / "feedback" / "term.html").read_text()
    assert "Ada Lovelace" in page
    course_says(root, "total", "--to", term.people / "total.csv")
    course_says(root, "similar", "03")
    page = (term.people / "feedback" / f"{CHAPTER}_similar.html").read_text()
    assert "not who copied" in page

    inbound = term.people / "exchange" / "pytorch_training_tricks" / "inbound"
    (inbound / f"cleo+{CHAPTER}+2026-12-04 14:00:00 UTC").mkdir()
    assert "Nothing was deleted" in course_says(root, "forget", "cleo")
    # what was graded without a gradebook is forgotten, too
    submitted = term.people / "submitted" / "ada" / CHAPTER
    for student in ("ada", "cleo"):
        shutil.copytree(submitted, tmp_path / "alone" / student)
    course_says(root, "grade", "03", "--from", tmp_path / "alone")
    results = term.people / "results" / CHAPTER
    assert "cleo" in (results / "details.json").read_text()
    assert str(results / "feedback" / "cleo") in course_says(
        root, "forget", "cleo"
    )
    course_says(root, "forget", "cleo", "--yes")
    for name in ("scores.json", "details.json"):
        assert set(json.loads((results / name).read_text())) == {"ada"}
    left = [path.name for path in term.people.rglob("*cleo*")]
    assert left == []
    for page in term.people.rglob("*.html"):
        assert "cleo" not in page.read_text(), page
    assert not (term.people / "total.csv").exists()
    assert set(points(root, "03")) == {"ada", "bob"}
    assert "is nobody" in course_says(root, "forget", "..", code=2)
    for typed in (("cleo", "--yes"), ("nobody",)):
        said = course_says(root, "forget", *typed, code=2)
        assert f"nothing of anybody called '{typed[0]}'" in said
    said = course_says(root, "forget", "ADA", code=2)
    assert "On the roster is ada." in said

    course_says(root, "new-term", "2026 autumn")
    kept = root / "archive" / "2026 autumn"
    assert (kept / "gradebook.db").is_file()
    assert (kept / "submitted" / "ada" / CHAPTER).is_dir()
    status = json.loads(course_says(root, "status", "--json"))
    assert status[0]["handed_in"] == 0
    assert "exists already" in course_says(
        root, "new-term", "2026 autumn", code=2
    )


def test_work_that_was_unmatched_is_forgotten_with_its_learner(
    released: Course, tmp_path: Path
) -> None:
    root = released.root
    roster, download = tmp_path / "roster.csv", tmp_path / "moodle.zip"
    roster.write_text(ROSTER)
    course_says(root, "roster", roster)
    with zipfile.ZipFile(download, "w") as archive:
        for number in (17, 18):
            name = f"Participant {number}_{number}_assignsubmission_file_"
            archive.writestr(f"{name}/{CHAPTER}.ipynb", f"{number}'s")
    collect = ("collect", "--zip", download)
    course_says(root, *collect, code=3)
    course_says(root, *collect, "--assign", "Participant 17", "bob", code=3)
    course_says(root, "forget", "bob", "--yes")
    unmatched = released.people / "versions" / "_unknown"
    (left,) = unmatched.rglob("*.ipynb")
    assert left.read_text() == "18's"


def test_a_roster_as_a_spreadsheet_writes_it(
    mini: Course, tmp_path: Path
) -> None:
    """Onto a course in which nothing has been done yet."""
    root, file = mini.root, tmp_path / "roster.csv"
    file.write_text(
        "id;first_name;last_name;email;lms_user_id\nada;Ada;Ó Lovelace;;1815\n",
        encoding="utf-8-sig",
    )
    assert "1 learners" in course_says(root, "roster", file)
    (one,) = json.loads(course_says(root, "roster", "--json"))
    assert (one["id"], one["last_name"]) == ("ada", "Ó Lovelace")
    # what a later file does not say stays
    file.write_text("id,email\nada,ada@example.org\nbob,\n")
    course_says(root, "roster", file)
    ada, bob = json.loads(course_says(root, "roster", "--json"))
    assert (ada["lms_user_id"], ada["email"]) == ("1815", "ada@example.org")
    assert bob["id"] == "bob"
    file.write_text("id,email\na.lovelace,Ada@example.org\n")
    said = run_course(root, "roster", file)
    assert said.returncode == 3
    assert "a.lovelace and ada have the same e-mail address" in said.stderr
    for text, said in (
        ("name\nada\n", "needs a first line"),
        ("id\nada\nada\n", "line 3: ada stands above already"),
        ("id\n../x\n", "line 2: the student's id"),
    ):
        file.write_text(text)
        assert said in course_says(root, "roster", file, code=2).replace(
            "\n", " "
        )
    assert "cannot be read" in course_says(root, "roster", "no.csv", code=2)
    for code in ("utf-16", "latin-1"):
        file.write_text("id,last_name\nzoe,Zoë\n", encoding=code)
        said = course_says(root, "roster", file, code=2)
        assert 'Save it once more as "CSV UTF-8"' in said


def test_who_is_taken_in_is_on_the_roster(mini: Course, tmp_path: Path) -> None:
    """Also before anything is graded, so that the same archive can be collected
    once more, with its times."""
    root = mini.root
    course_says(root, "release")
    download = tmp_path / "submissions.zip"
    with zipfile.ZipFile(download, "w") as archive:
        archive.writestr("zed/03_mini.ipynb", b"{}")
    take = ("collect", "--zip", download)
    assert "nobody on the roster" in course_says(root, *take, code=3)
    course_says(root, *take, "--add-students")
    said = course_says(root, *take, "--handed-in", "2026-12-01 18:00")
    assert "zed: Already collected" in said
    (one,) = json.loads(course_says(root, *take, "--json"))
    assert (one["student"], one["needs_human"]) == ("zed", False)
    (date,) = json.loads(course_says(root, "due", "--json"))
    assert date == {"chapter": CHAPTER, "due": None, "days_more": {}}
