"""What a learner and an instructor do in a browser, done by a browser, against the
server that `course lab` starts. Pictures of the main moments go to build/browser/."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from commands import (
    SCRIPTS,
    course_says,
    environment,
    exported,
    points,
    put,
)

from course_grader.chapter.build import build_chapter
from course_grader.classroom.demo import answered, copy_course
from course_grader.course import Course
from course_grader.needs import free_port

sync_api = pytest.importorskip("playwright.sync_api")
Page, expect = sync_api.Page, sync_api.expect

COURSE = Course(Path(__file__).resolve().parent.parent)
PICTURES = COURSE.root / "build" / "browser"
PATIENCE_MS = 90_000
"""A loaded machine starts a kernel slowly; an idle one is done in seconds."""

pytestmark = pytest.mark.slow

DOUBLE = "def double(x, times=1):\n    return x * 2**times"
MEAN = "def mean(x):\n    return x.mean().item()"


@contextmanager
def server(course: Course, command: str) -> Iterator[str]:
    """The address of the Jupyter server that a command of `course` starts."""
    port = free_port(18900)
    running = subprocess.Popen(
        [SCRIPTS / "course", command, "--no-browser", f"--port={port}"],
        cwd=course.root,
        env=environment(activated=False) | {"JUPYTER_TOKEN": "letmein"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(port, running)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait()


@pytest.fixture
def lab(mini: Course) -> Iterator[str]:
    """What a learner starts, in a course that was released."""
    course_says(mini.root, "build")
    course_says(mini.root, "release")
    with server(mini, "lab") as address:
        yield address


@pytest.fixture
def instructors_lab(mini: Course) -> Iterator[str]:
    """What an instructor starts."""
    course_says(mini.root, "release")
    with server(mini, "teach") as address:
        yield address


def wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        assert running.poll() is None, "course lab ended"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5)
            return
        except (TimeoutError, urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise AssertionError("course lab does not answer")


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    """A page of a browser."""
    one = browser.new_page(viewport={"width": 1280, "height": 900})
    one.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield one
    one.close()


def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(PICTURES / f"{name}.png"))


def menu(page: Page, name: str, entry: str) -> None:
    page.locator(".lm-MenuBar-item", has_text=name).first.click()
    page.locator(".lm-Menu-item", has_text=entry).first.click()


def open_chapter(page: Page, lab: str) -> None:
    # what is run before the page talks to a kernel is not run at all
    with page.expect_websocket(lambda one: "/channels" in one.url):
        page.goto(f"{lab}/lab/tree/03_mini/03_mini.ipynb?token=letmein")
    expect(page.locator(".jp-Notebook")).to_be_visible()
    # the kernel is there when it says that it waits
    expect(page.locator("[data-status='idle']").first).to_be_visible()


def test_the_home_leads_to_the_next_exercise_and_knows_what_is_solved(
    page: Page, lab: str, mini: Course
) -> None:
    page.goto(f"{lab}/course?token=letmein")
    expect(page.locator(".standings")).to_contain_text("0 of 2")
    picture(page, "home-new")
    # by keyboard
    page.locator(".start a").focus()
    with page.expect_websocket(lambda one: "/channels" in one.url):
        page.keyboard.press("Enter")
    expect(page.locator("[data-status='idle']").first).to_be_visible()
    active = page.locator(".jp-Cell.jp-mod-active")
    expect(active).to_contain_text("Exercise 1 · Double")
    menu(page, "Run", "Run All Cells")
    attempted = page.locator(".jp-OutputArea-output", has_text="not attempted")
    expect(attempted).to_have_count(3)  # with the summary

    answer(page, "def double", DOUBLE)
    told = page.locator(".course-checks", has_text="Double")
    expect(told).to_be_visible()
    page.keyboard.press("Control+s")
    menu(page, "View", "Course Home")

    expect(page.locator(".start")).to_contain_text("Go on with")
    expect(page.locator(".tasks")).to_contain_text("partly solved")
    picture(page, "home-begun")


def answer(page: Page, head: str, code: str) -> None:
    """Writes an answer and runs it and the visible check below."""
    cell = page.locator(".jp-CodeCell", has_text=head).first
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")


def test_a_learner_reads_solves_validates_and_submits(
    page: Page, lab: str, mini: Course
) -> None:
    open_chapter(page, lab)
    outputs = page.locator(".jp-OutputArea-output")
    menu(page, "Run", "Run All Cells")
    # the visible checks, and the summary
    expect(outputs.filter(has_text="not attempted")).to_have_count(3)
    picture(page, "learner-untouched")

    answer(page, "def double", DOUBLE)
    expect(outputs.filter(has_text="checks pass; hidden")).to_have_count(1)
    # all hidden checks at once: this answer refuses nothing
    told = page.locator(".course-checks", has_text="Double: 2 of 3 checks")
    expect(told).to_contain_text("You never refuse.")
    expect(told).to_contain_text("raises ValueError")
    picture(page, "learner-hidden-checks")
    expect(told.locator("table tr")).to_have_count(3)
    # folded and unfolded by keyboard
    told.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(told.locator("table")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(told.locator("table")).to_be_visible()
    answer(page, "def mean", "def mean(x):\n    return x.sum().item()")
    expect(outputs.filter(has_text="try again")).to_have_count(1)
    picture(page, "learner-try-again")
    answer(page, "def mean", MEAN)
    expect(outputs.filter(has_text="checks pass; hidden")).to_have_count(2)
    right = page.locator(".course-checks", has_text="Mean looks right")
    expect(right).to_contain_text("1 check passes")
    picture(page, "learner-looks-right")

    page.keyboard.press("Control+s")
    # Validate saves too, and two saves at once ask which one is meant
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    page.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("Success")
    picture(page, "learner-validate")
    dialog.get_by_role("button").last.click()

    menu(page, "Nbgrader", "Assignment List")
    listed = page.locator(".list_item", has_text="03_mini")
    expect(listed.first).to_be_visible()
    picture(page, "learner-assignment-list")
    page.get_by_role("button", name="Submit").first.click()
    expect(page.locator("#submitted_assignments_list")).to_contain_text(
        "03_mini"
    )
    picture(page, "learner-submitted")

    # what arrived is what was written, and it gets full marks
    course_says(mini.root, "collect", "03")
    (handed_in,) = mini.people.glob("submitted/*/03_mini/03_mini.ipynb")
    sources = [
        cell.source for cell in nbformat.read(handed_in, as_version=4).cells
    ]
    assert DOUBLE in sources
    assert MEAN in sources
    course_says(mini.root, "grade", "03")
    (mark,) = points(mini.root, "03").values()
    assert mark == 4.0

    # and the page that comes back is read in the same browser
    course_says(mini.root, "feedback", "03")
    page.get_by_role("button", name="Fetch Feedback").click()
    view = page.get_by_text("view feedback")
    expect(view.first).to_be_visible()
    picture(page, "learner-feedback-there")
    (fetched,) = mini.work.glob("03_mini/feedback/*/03_mini.html")
    page.goto(fetched.as_uri())
    expect(page.locator("body")).to_contain_text("4")
    expect(page.locator("body")).to_contain_text("You never refuse.")
    picture(page, "learner-feedback")


def test_a_widget_is_moved_by_keyboard_and_its_figure_changes(
    page: Page, tmp_path: Path
) -> None:
    ours = copy_course(COURSE, tmp_path / "course")
    shutil.copytree(COURSE.notebooks, ours.notebooks)
    lab = "labconfig"
    shutil.copytree(COURSE.autograde / lab, ours.autograde / lab)
    chapter = ours.chapter("03")
    with server(ours, "lab") as address:
        page.goto(f"{address}/lab/tree/{chapter}/{chapter}.ipynb?token=letmein")
        expect(page.locator("[data-status='idle']").first).to_be_visible()
        menu(page, "Run", "Run All Cells")
        running = page.locator(".jp-InputPrompt", has_text="[*]")
        expect(running.first).to_be_visible()
        expect(running).to_have_count(0)
        slider = page.locator(".widget-slider [role='slider']").first
        slider.scroll_into_view_if_needed()
        figure = page.locator(
            "//*[contains(@class, 'widget-slider')]"
            "/following::*[contains(@class, 'jp-RenderedImage')]//img"
        ).first
        before = figure.get_attribute("src")
        picture(page, "learner-widget")

        slider.focus()
        page.keyboard.press("ArrowRight")

        expect(page.locator(".widget-readout").first).to_have_text("0.150")
        expect(figure).not_to_have_attribute("src", before or "")
        figure.scroll_into_view_if_needed()
        picture(page, "learner-widget-moved")


HOSTILE = """\
from IPython.display import HTML, SVG, Javascript, display
display(HTML("<script>window.stolen = 1</script>"))
display(HTML("<img src=x onerror='window.stolen = 1'>"))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" onload="stolen = 1"/>'))
display(Javascript("window.stolen = 1"))
"""


def hand_in(course: Course, student: str, **chosen: str) -> None:
    """Lays a submission where `course collect` puts it."""
    grading, _, released = build_chapter(course, "03_mini")
    notebook = answered(grading, released, chosen)
    notebook.cells.append(nbformat.v4.new_code_cell(HOSTILE))
    notebook.cells.append(
        nbformat.v4.new_markdown_cell("<script>window.stolen = 1</script>")
    )
    put(course.root, student, notebook)


def test_an_instructor_grades_in_formgrader(
    page: Page, instructors_lab: str, mini: Course
) -> None:
    lab = instructors_lab
    hand_in(mini, "mallory", double=DOUBLE, mean=MEAN)
    page.goto(f"{lab}/formgrader?token=letmein")
    row = page.locator("tr", has_text="03_mini").first
    expect(row).to_be_visible()
    picture(page, "instructor-assignments")
    page.goto(f"{lab}/formgrader/manage_submissions/03_mini")
    row = page.locator("tr", has_text="mallory").first
    expect(row).to_contain_text("needs autograding")
    row.locator("td.autograde a").click()
    expect(page.locator(".modal-content")).to_contain_text("Success")
    picture(page, "instructor-autograded")
    assert points(mini.root, "03") == {"mallory": 4.0}

    # the submission, as formgrader shows it, runs no script
    page.goto(f"{lab}/formgrader/gradebook/03_mini/03_mini")
    page.locator("td a", has_text="Submission #1").click()
    expect(page.locator("input.score").first).to_be_visible()
    first = page.locator("#notebook-container .cell").first
    expect(first).to_contain_text("def double")
    assert page.evaluate("window.stolen") is None
    mark = page.locator("input.score#double_hidden")
    expect(mark).to_have_attribute("placeholder", "2")  # it is wired up
    comment = page.locator("textarea.comment").first
    expect(comment).to_have_attribute("placeholder", re.compile("comments"))
    with page.expect_response(lambda one: "/api/grade/" in one.url):
        mark.fill("2")
        page.keyboard.press("Tab")
    with page.expect_response(lambda one: "/api/comment/" in one.url):
        comment.fill("Refuse negative times.")
        page.keyboard.press("Tab")
    picture(page, "instructor-manual-mark")
    page.reload()
    expect(mark).to_have_value("2")
    assert points(mini.root, "03") == {"mallory": 4}

    # graded anew, a mark by hand stays and is to be set again; formgrader saves
    # what changes
    course_says(mini.root, "grade", "03", "--again", "--yes")
    assert "still hold" in exported(mini.root, "03")["mallory"]["look_at"]
    page.reload()
    for points_now in ("1", "2"):
        with page.expect_response(lambda one: "/api/grade/" in one.url):
            mark.fill(points_now)
            page.keyboard.press("Tab")
    found = exported(mini.root, "03")["mallory"]
    assert (found["points"], found["look_at"]) == ("4", "")

    course_says(mini.root, "feedback", "03")
    (written,) = mini.people.glob("feedback/mallory/03_mini/03_mini.html")
    page.goto(written.as_uri())
    expect(page.locator("body")).to_contain_text("Refuse negative times.")
    assert page.evaluate("window.stolen") is None
    picture(page, "instructor-feedback")
