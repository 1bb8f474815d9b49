"""A day of a term on the class server, in browsers: two learners and two instructors, and
the hub is started again in the middle. Pictures of the main moments go to build/browser/."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub import (
    CHAPTER,
    COURSE_ID,
    RIGHT,
    ROOT,
    Hub,
    end_everything,
    needed,
    resume_hub,
    start_hub,
    stop_hub,
    until,
)

sync_api = pytest.importorskip("playwright.sync_api")
Page, expect = sync_api.Page, sync_api.expect

pytestmark = pytest.mark.slow

PICTURES = ROOT / "build" / "browser"
PATIENCE_MS = 120_000
ADA, BOB = "tt-ada", "tt-bob"


@pytest.fixture
def hub() -> Iterator[Hub]:
    needed()
    folder = Path(tempfile.mkdtemp(prefix="class-server-"))
    made = start_hub(folder, [ADA, BOB])
    yield made
    end_everything(made)


def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(PICTURES / f"hub-{name}.png"))


def log_in(browser: Any, hub: Hub, name: str, path: str = "/hub/") -> Page:
    """A browser of its own whose person has typed name and password."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    # what JupyterLab says while the hub is away, and what a person answers
    away = page.locator(".jp-Dialog", has_text="Server unavailable")
    page.add_locator_handler(
        away, lambda: away.get_by_role("button", name="Dismiss").click()
    )
    page.goto(hub.address + path)
    page.locator("#username_input").fill(name)
    page.locator("#password_input").fill(hub.passwords[name])
    page.locator("#login_submit").click()
    return page


def menu(page: Page, name: str, entry: str) -> None:
    page.locator(".lm-MenuBar-item", has_text=name).first.click()
    page.locator(".lm-Menu-item", has_text=entry).first.click()


def answer(page: Page, head: str, code: str) -> None:
    """Writes an answer and runs it and the visible check below."""
    cell = page.locator(".jp-CodeCell", has_text=head).first
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")


def open_chapter(page: Page, hub: Hub, name: str) -> None:
    """From the course's home to the chapter, whose kernel is ready."""
    chapter = page.locator("h2 a", has_text="03 · Mini")
    expect(chapter).to_be_visible()
    picture(page, f"{name}-lands")
    with page.expect_websocket(lambda one: "/channels" in one.url):
        chapter.click()
    expect(page.locator(".jp-Notebook")).to_be_visible()
    expect(page.locator("[data-status='idle']").first).to_be_visible()


def show_assignments(page: Page) -> None:
    """Puts Assignment List in front; a page that is still being restored puts
    another tab there once more."""
    tab = page.locator(".lm-TabBar-tab", has_text="Assignments").first
    chapter = page.locator(".list_item", has_text=CHAPTER).first

    def in_front() -> bool:
        tab.click()
        return chapter.is_visible()

    until(in_front, "Assignment List does not open", every_s=2)


def hand_in(page: Page, name: str) -> None:
    expect(page.locator("[data-status='idle']").first).to_be_visible()
    menu(page, "File", "Save Notebook")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    menu(page, "Nbgrader", "Assignment List")
    show_assignments(page)
    page.get_by_role("button", name="Submit").first.click()
    expect(page.locator("#submitted_assignments_list")).to_contain_text(CHAPTER)
    picture(page, f"{name}-submitted")


def test_a_day_of_the_term(browser: Any, hub: Hub) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    hub.as_grader("release")
    ada, bob = (log_in(browser, hub, name) for name in (ADA, BOB))
    outputs = ada.locator(".jp-OutputArea-output")
    passed = outputs.filter(has_text="checks pass; hidden")

    # two learners begin; one has all right
    open_chapter(ada, hub, "ada")
    menu(ada, "Run", "Run All Cells")
    expect(outputs.filter(has_text="not attempted")).not_to_have_count(0)
    answer(ada, "def double", RIGHT["double"])
    expect(passed).to_have_count(1)
    open_chapter(bob, hub, "bob")
    menu(bob, "Run", "Run All Cells")
    answer(bob, "def mean", RIGHT["mean"])
    expect(
        bob.locator(".jp-OutputArea-output", has_text="checks pass; hidden")
    ).to_have_count(1)

    # the hub is started again: the kernel keeps what it had, nobody logs in anew
    stop_hub(hub)
    again = resume_hub(hub.folder)
    hub.pid = again.pid
    expect(ada.locator("[data-status='idle']").first).to_be_visible()
    answer(ada, "def mean", RIGHT["mean"])
    expect(passed).to_have_count(2)
    picture(ada, "ada-after-the-restart")
    ada.keyboard.press("Control+s")
    expect(ada.locator(".jp-mod-dirty")).to_have_count(0)
    ada.reload()
    expect(ada.locator(".jp-Notebook")).to_be_visible()
    expect(ada.locator(".jp-CodeCell", has_text="x.mean()")).not_to_have_count(
        0
    )

    # the home knows what the saved notebook shows
    home = ada.context.new_page()
    home.goto(f"{hub.address}/user/{ADA}/course")
    expect(home.locator("main")).to_contain_text("2 more with visible checks")
    picture(home, "ada-home-answered")

    hand_in(ada, "ada")
    hand_in(bob, "bob")
    log = hub.course / "class" / "grading.log"
    until(
        lambda: "course feedback" in log.read_text() and len(hub.points()) == 2,
        "nothing is graded",
    )
    assert hub.points() == {ADA: 5.0, BOB: 2.0}

    # two instructors in formgrader at the same time
    formgrader = f"/services/{COURSE_ID}/formgrader"
    gradebook = f"{formgrader}/gradebook/{CHAPTER}/{CHAPTER}"
    teaching = [
        log_in(browser, hub, name, gradebook)
        for name in ("tt-grace", "tt-alan")
    ]
    marked = []
    for page, name in zip(teaching, (ADA, BOB), strict=True):
        page.wait_for_url(f"**{gradebook}")
        listed = page.request.get(
            f"{hub.address}{formgrader}/api/submitted_notebooks/{CHAPTER}/{CHAPTER}"
        ).json()
        (theirs,) = [one for one in listed if one["student"] == name]
        page.goto(f"{hub.address}{formgrader}/submissions/{theirs['id']}")
        score = page.locator("input.score#double_hidden")
        expect(score).to_be_visible()
        marked.append(score)
    picture(teaching[0], "grace-marks")
    for number, (page, score) in enumerate(zip(teaching, marked, strict=True)):
        expect(score).to_have_attribute(
            "placeholder", "3" if number == 0 else "0"
        )
        comment = page.locator("textarea.comment").first
        with page.expect_response(lambda one: "/api/comment/" in one.url):
            comment.fill(f"Seen by instructor {number}.")
            page.keyboard.press("Tab")
    with teaching[1].expect_response(lambda one: "/api/grade/" in one.url):
        marked[1].fill("1")
        teaching[1].keyboard.press("Tab")
    until(lambda: hub.points() == {ADA: 5.0, BOB: 3.0}, "the mark is not there")
    hub.as_grader("feedback", CHAPTER)

    # feedback is read in the same browsers
    for number, (page, name) in enumerate(((ada, ADA), (bob, BOB))):
        show_assignments(page)
        page.get_by_role("button", name="Fetch Feedback").first.click()
        handed_in = page.locator("#submitted_assignments_list")
        expect(handed_in.get_by_text("view feedback").first).to_be_visible()
        picture(page, f"{name}-feedback")
        files = f"{hub.address}/user/{name}/api/contents/{CHAPTER}/feedback"
        (when,) = page.request.get(files).json()["content"]
        text = page.request.get(
            f"{files}/{when['name']}/{CHAPTER}.html"
        ).json()["content"]
        assert f"Seen by instructor {number}." in text

    # and the home has its marks
    home.reload()
    expect(home.locator("main")).to_contain_text("2 of 2 exercises solved")
    expect(home.locator("main")).to_contain_text("handed in")
    picture(home, "ada-home-marked")
    menu(bob, "View", "Course Home")
    expect(bob.locator("main")).to_contain_text("3 of 5 points")
    picture(bob, "bob-home")
