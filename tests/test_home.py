"""The learner's home: what it shows, and what becomes of copies in work/."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from commands import course_says

from course_grader.chapter.contents import contents
from course_grader.course import Course
from course_grader.feedback import learner
from course_grader.judge.report import ExerciseReport, SubmissionReport
from course_grader.lab.home import home_of
from course_grader.lab.progress import keep_progress
from course_grader.lab.work import fill_work
from course_home import server
from course_home.contents import read_contents, write_contents
from course_home.progress import newest_report
from course_utils import expect, visible_check

NAME = "03_mini"


@pytest.fixture
def built(mini: Course) -> Course:
    course_says(mini.root, "build")
    return mini


STARTS = """\
import sys
import course_grader.cli, course_grader.lab.extension, course_grader.lab.work
assert "torch" not in sys.modules, "torch is imported before the page is there"
"""


def test_the_page_does_not_wait_for_torch() -> None:
    subprocess.run([sys.executable, "-c", STARTS], check=True)


def home_page(course: Course, base_url: str) -> str:
    return server.home_page(home_of(course), base_url)


def got(exercise: str, points: float) -> ExerciseReport:
    return ExerciseReport(exercise, exercise.title(), points, points, ())


def next_link(page: str) -> str:
    return page.partition('class="start"')[2].partition("</p>")[0]


def test_it_leads_to_the_first_exercise_that_is_not_solved(
    built: Course,
) -> None:
    page = home_page(built, "/")
    assert "0 of 2 exercises solved" in page
    assert "<b>Start with:</b>" in next_link(page)
    link = f"/lab/tree/{NAME}/{NAME}.ipynb#cell-id=task-double"
    assert f'href="{link}"' in next_link(page)

    keep_progress(built, NAME, got("double", 3.0))
    keep_progress(built, NAME, got("mean", 1.0))
    keep_progress(built, NAME, got("mean", 0.5))  # the best counts

    page = home_page(built, "/user/ada/")
    assert "1 of 2 exercises solved" in page
    assert "<b>Go on with:</b>" in next_link(page)
    assert f"/user/ada/lab/tree/{NAME}/{NAME}.ipynb#cell-id=task-mean" in page
    assert "<b>4</b> <span>of 5 points</span>" in page
    assert "partly solved" in page

    keep_progress(built, NAME, got("mean", 2.0))
    assert "Everything is solved." in home_page(built, "/")


def test_every_link_to_an_exercise_names_a_cell_of_its_notebook(
    built: Course,
) -> None:
    ids = {
        cell.id
        for cell in nbformat.read(built.notebook_of(NAME), as_version=4).cells
    }
    for part in home_page(built, "/").split("#cell-id=")[1:]:
        assert part.partition('"')[0] in ids


def test_fetched_feedback_counts_and_is_the_newest_report(
    built: Course,
) -> None:
    assert newest_report(built.work, NAME) is None
    report = SubmissionReport(NAME, 1, (got("double", 3.0), got("mean", 0.0)))
    folder = built.work / NAME / "feedback" / "2026-11-22 10:00:00 UTC"
    folder.mkdir(parents=True)
    page = folder / f"{NAME}.html"
    page.write_text(learner.page(report, None, student="ada"))

    assert newest_report(built.work, NAME) == page
    home = home_page(built, "/")
    assert "1 of 2 exercises solved" in home
    assert f'href="/course/reports/{NAME}"' in home


@pytest.mark.parametrize(
    "broken", ["", "[]", '{"03_mini": 3}', '{"03_mini": {"mean": {}}}']
)
def test_a_spoilt_file_of_progress_is_no_progress(
    built: Course, broken: str
) -> None:
    folder = built.work / ".course"
    folder.mkdir(parents=True)
    (folder / "progress.json").write_text(broken)

    assert "0 of 2 exercises solved" in home_page(built, "/")
    keep_progress(built, NAME, got("mean", 2.0))
    assert "1 of 2 exercises solved" in home_page(built, "/")


def saved_with(course: Course, said: dict[str, str]) -> None:
    """A learner's saved notebook whose visible checks said this."""
    notebook = nbformat.read(course.notebook_of(NAME), as_version=4)
    for cell in notebook.cells:
        for exercise, line in said.items():
            if f'visible_check("{exercise}")' in cell.source:
                output = nbformat.v4.new_output("stream", text=line)
                cell.outputs = [output]
    path = course.work / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def line_of(capsys: pytest.CaptureFixture[str], answer: object) -> str:
    """What a visible check prints about an answer that should be 1."""
    capsys.readouterr()
    with visible_check("double"):
        expect("it", answer, 1)
    return capsys.readouterr().out


def test_on_a_class_server_the_saved_notebook_says_what_passes(
    built: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    file = built.root / "contents.json"
    write_contents(file, contents(built))
    home = server.Home(
        built.work, lambda: read_contents(file), class_server=True
    )
    page = server.home_page(home, "/user/ada/")
    assert "Not released yet." in page
    assert "Nothing is open here." in page
    assert "/lab/tree/" not in page

    passes = line_of(capsys, 1)
    saved_with(built, {"double": passes, "mean": "mean: not attempted\n"})
    page = server.home_page(home, "/user/ada/")
    assert "1 more with visible checks that pass" in page
    assert "0 of 2 exercises solved" in page
    assert "<b>Go on with:</b>" in next_link(page)
    assert "#cell-id=task-mean" in next_link(page)
    shutil.rmtree(built.work)

    saved_with(built, {"double": line_of(capsys, 2)})
    page = server.home_page(home, "/user/ada/")
    assert "visible checks that pass" not in page
    assert "not solved yet" in page


def test_on_a_class_server_it_tells_answered_from_handed_in(
    built: Course,
    capsys: pytest.CaptureFixture[str],
    alone: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(built.autograde))
    home = server.Home(built.work, lambda: contents(built), class_server=True)
    passes = line_of(capsys, 1)
    saved_with(
        built, {"double": passes, "mean": passes.replace("double", "mean")}
    )
    os.utime(mine(built), (1e9, 1e9))
    page = server.home_page(home, "/")
    assert "Everything here is answered.</b> Hand it in" in page

    # as nbgrader keeps it when a learner hands in
    kept = alone / ".local/share/jupyter/nbgrader_cache/pytorch_training_tricks"
    (kept / f"ada+{NAME}+2026-11-20 10:00:00.000000 UTC").mkdir(parents=True)
    page = server.home_page(home, "/")
    assert "Everything here is answered and handed in." in page
    assert "saved again" not in page

    os.utime(mine(built))
    page = server.home_page(home, "/")
    assert "Everything here is answered.</b> Hand it in" in page
    assert ", saved again since" in page


def newer_edition(course: Course) -> None:
    """A correction of the chapter, built."""
    source = course.source_of(NAME)
    source.write_text(source.read_text().replace("# 03 · ", "# 03 · New: "))
    course_says(course.root, "build")


def mine(course: Course) -> Path:
    return course.work / NAME / f"{NAME}.ipynb"


def test_an_untouched_copy_becomes_the_newer_edition(built: Course) -> None:
    fill_work(built)
    # run, but not written into
    notebook = nbformat.read(mine(built), as_version=4)
    cell = next(one for one in notebook.cells if one.cell_type == "code")
    cell.outputs = [nbformat.v4.new_output("stream", text="seen")]
    nbformat.write(notebook, mine(built))
    newer_edition(built)

    done = fill_work(built)

    assert (done.new, done.renewed, done.beside) == ([], [NAME], {})
    assert "03 · New: " in mine(built).read_text()
    assert fill_work(built).renewed == []


def test_beside_a_touched_copy_stands_the_newer_edition(built: Course) -> None:
    fill_work(built)
    tree = json.loads(mine(built).read_text())
    tree["cells"][-2]["source"] = "# a note of mine"
    mine(built).write_text(json.dumps(tree))
    before = mine(built).read_bytes()
    assert "newer edition" not in home_page(built, "/")
    newer_edition(built)

    done = fill_work(built)

    assert mine(built).read_bytes() == before
    name = done.beside[NAME]
    beside = mine(built).with_name(name)
    assert "03 · New: " in beside.read_text()
    assert f"/lab/tree/{NAME}/{name}" in home_page(built, "/")
    # that one is the learner's too, from now on
    beside.write_text("written into")
    assert fill_work(built).beside == {}
    assert beside.read_text() == "written into"
