"""The static site: whole, closed, without secrets, usable by everybody."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from commands import course_says, environment

from course_grader.chapter.grading import load_grading
from course_grader.chapter.refusals import TELLING_CHARS
from course_grader.chapter.source import BEGIN_SOLUTION, END_SOLUTION, Role
from course_grader.course import Course

ROOT = Path(__file__).resolve().parent.parent
WIDGET = '''
# %% cell="waves" figure="A line of every slope"
from course_utils import explore, line_chart


def slope_figure(slope=1, dashed=False):
    return line_chart(
        {"a line": [0, slope]},
        title=f"Slope {slope}, dashed: {dashed}",
        xlabel="x",
        ylabel="y",
    )


explore(slope_figure, slope=range(0, 4), dashed=False)

# %% cell="sum"
assert 1 + 1 == 2

# %% [markdown]
r"""
One and one is two. A formula, $x^2$, and one on a line of its own:

$$\\sum_n x_n$$
"""

# %% [markdown] task="double"'''


STATEMENTS = 'BY_CELL = {"sum": ["One and one is two."]}\n'


def make_site(course: Course) -> Path:
    made = subprocess.run(
        [
            *(sys.executable, ROOT / "tools" / "site" / "build.py"),
            *("--course", course.root, "--workers", "2"),
        ],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return course.root / "build" / "site" / "html"


@pytest.fixture
def small(mini: Course) -> Path:
    """The site of a small course with a widget, a formula, a claim and a
    statement."""
    source = mini.source_of("03_mini")
    text = source.read_text()
    begin = '# %% [markdown] task="double"'
    assert begin in text
    source.write_text(text.replace(begin, WIDGET.strip("\n")))
    (mini.root / "docs").mkdir()
    (mini.root / "docs" / "claims.json").write_text(
        '[{"id": "000-01", "chapter": "03_mini", "claim": "Two is two.", '
        '"verdict": "correct", "note": "It is.", "cells": ["waves"], '
        '"runs_on_cpu": false}]'
    )
    (mini.root / "tests" / "statements").mkdir(parents=True)
    stated = mini.root / "tests" / "statements" / "test_03_mini.py"
    stated.write_text(STATEMENTS)
    course_says(mini.root, "build")
    return make_site(mini)


class Page(HTMLParser):
    """Links, anchors, pictures and words of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.pictures: list[tuple[str, str | None]] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if tag in ("link", "script"):
            self.links += filter(None, [given.get("href"), given.get("src")])
        if tag == "img":
            self.pictures.append((str(given.get("src")), given.get("alt")))


def crawl(site: Path) -> dict[Path, Page]:
    """All pages; every link inside leads somewhere, and what a page is made of
    is beside it."""
    pages = {path: Page(path) for path in site.glob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in ("https", "http", "mailto"), link
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            target = path if not parts.path else target
            assert target.is_file(), f"{path.name} leads to {link}"
            if parts.fragment and target.suffix == ".html":
                anchors = pages[target].anchors
                assert parts.fragment in anchors, f"{path.name}: {link}"
        for source, alt in page.pictures:
            assert (path.parent / source).is_file(), f"{path.name}: {source}"
            assert alt, f"{path.name}: {source} has no words"
        # nothing that a page needs comes from elsewhere
        assert not re.search(
            r'<(?:script|link|img)[^>]*(?:src|href)="https?://', page.text
        ), path.name
    return pages


def refuse_secrets(course: Course, site: Path) -> None:
    """No page, and nothing that search finds, holds a solution or a test."""
    texts = {
        path: re.sub(r"\s+", "", path.read_text(encoding="utf-8"))
        for path in site.rglob("*")
        if path.suffix in (".html", ".js", ".json", ".txt")
    }
    for name in course.chapters():
        grading = load_grading(course, name)
        elsewhere = re.sub(
            r"\s+",
            "",
            "".join(
                cell.source
                for cell in grading.chapter.cells
                if cell.role is not Role.EXERCISE
            ),
        )
        for exercise in grading.chapter.exercises:
            given, _, rest = exercise.source.partition(BEGIN_SOLUTION)
            solution = rest.partition(END_SOLUTION)[0]
            for line in solution.splitlines():
                squeezed = re.sub(r"\s+", "", line)
                known = elsewhere + re.sub(r"\s+", "", given)
                if len(squeezed) < TELLING_CHARS or squeezed in known:
                    continue
                for path, text in texts.items():
                    if path.stem == name:
                        assert squeezed not in text, (path.name, line)
    for path, text in texts.items():
        for word in ("BEGINSOLUTION", "hidden_tests", "course_grader"):
            assert word not in text, (path.name, word)


def serious(page: Any) -> list[tuple[str, list[str]]]:
    """What axe-core calls serious or worse on a page, and where."""
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def check_with_axe(page: Any, address: str) -> None:
    """axe-core finds nothing serious, in light and in dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto(address)
        assert not serious(page), (address, scheme)


BROKEN_WORDS = """() => {
  const broken = [], range = document.createRange();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.parentElement.checkVisibility()) continue;
    for (const word of text.data.matchAll(/(?<!\\S)\\w{1,12}(?!\\S)/g)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = [...range.getClientRects()].map((one) => one.top);
      if (new Set(lines).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


def check_on_a_telephone(browser: Any, address: str) -> None:
    """Nothing is wider than the screen, no short word is broken over lines, and
    what is scrolled is reached by keyboard."""
    phone = browser.new_page(viewport={"width": 390, "height": 800})
    phone.goto(address)
    width = phone.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, (address, width)
    assert phone.evaluate(BROKEN_WORDS) == [], address
    assert not serious(phone), address
    phone.close()


def test_a_small_course_as_a_site(
    small: Path, mini: Course, browser: Any
) -> None:
    pages = crawl(small)
    names = {path.name for path in pages}
    listed = ("index.html", "03_mini.html", "claims.html", "statements.html")
    assert set(listed) <= names
    refuse_secrets(mini, small)
    chapter = pages[small / "03_mini.html"].text
    assert "not attempted" in chapter
    assert "All that is checked" in chapter
    assert "<math" in chapter
    assert "03_mini.html#cell-waves" in pages[small / "claims.html"].links
    stated = pages[small / "statements.html"]
    assert "03_mini.html#cell-sum" in stated.links
    (says,) = (one for one in stated.links if "#says-" in one)
    before, found, after = chapter.partition(f'id="{says.partition("#")[2]}"')
    assert found
    assert "One and one is two." in after
    assert "One and one is two." not in before

    page = browser.new_page()
    for name in listed:
        check_with_axe(page, (small / name).as_uri())

    # the sliders choose among pictures, by keyboard, where no kernel is
    page.goto((small / "03_mini.html").as_uri())
    picture = page.locator("figure.frames img")
    assert "Slope 1, dashed: False" in picture.get_attribute("alt")
    before = picture.get_attribute("src")
    slope = page.get_by_label("slope")
    slope.press("ArrowRight")
    assert slope.get_attribute("aria-valuetext") == "2"
    assert "Slope 2, dashed: False" in picture.get_attribute("alt")
    page.get_by_label("dashed").press("Space")
    assert "Slope 2, dashed: True" in picture.get_attribute("alt")
    assert picture.get_attribute("src") != before
    page.close()

    for name in listed:
        check_on_a_telephone(browser, (small / name).as_uri())

    # without JavaScript the text, the figures and the folds are there
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto((small / "03_mini.html").as_uri())
    assert plain.get_by_text("Return twice the tensor").is_visible()
    assert plain.locator("figure.frames img").is_visible()
    assert not plain.locator("figure.frames .controls").is_visible()
    plain.get_by_text("Hint 1").click()
    assert plain.get_by_text("is a power of two").is_visible()
    plain.close()


@pytest.mark.slow
def test_the_course_as_a_site(course: Course, browser: Any) -> None:
    site = make_site(course)

    pages = crawl(site)
    assert {f"{one}.html" for one in course.chapters()} <= {
        path.name for path in pages
    }
    refuse_secrets(course, site)
    for path, page in pages.items():
        assert "not recorded yet" not in page.text, path.name
        assert "Traceback" not in page.text, path.name
    for path in sorted(pages):
        page = browser.new_page()
        check_with_axe(page, path.as_uri())
        page.close()
        check_on_a_telephone(browser, path.as_uri())
