"""The chapters' statements of fact: each quoted word for word, each shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from course_grader.chapter.statements import statements_page
from course_grader.course import Course, CourseError

STATEMENTS = '''\
BY_CELL = {"sum": ["One and one is two."]}
BY_SOURCE = {"https://example.org/": ["The | card is fast."]}


def test_three():
    """Two and one
    is three.

    So is one and two.
    """
    assert 2 + 1 == 3


@pytest.mark.gpu
def test_fast():
    """The | card is fast."""
'''


@pytest.fixture
def stated(mini: Course) -> Path:
    """The statements of the small course, whose chapter says them."""
    source = mini.source_of("03_mini")
    source.write_text(
        source.read_text().replace(
            "# %%\ntwo = 2\n",
            '# %%\ntwo = 2\n\n# %% cell="sum"\nassert 1 + 1 == 2\n\n'
            '# %% cell="shows"\nprint(1 + 1)\n\n# %% [markdown]\nr"""\n'
            "## 1 · Sums\n\n> One and\n> one is two. The | card is fast.\n\n"
            "## 2 · More\n\n**Two** Two and one is three. So is one and two.\n"
            '"""\n',
        )
    )
    path = mini.root / "tests" / "statements" / "test_03_mini.py"
    path.parent.mkdir(parents=True)
    path.write_text(STATEMENTS)
    return path


def test_the_page_counts_and_links_them(mini: Course, stated: Path) -> None:
    page = statements_page(mini)

    assert "| 03 · Mini | 4 | 1 | 2 | 1 | 1 |" in page
    notebook = "../notebooks/03_mini/03_mini.ipynb"
    assert (
        f"| [1 · Sums]({notebook}#1-%C2%B7-Sums) | One and one is two. | "
        "cell `sum` |" in page
    )
    assert (
        "| The \\| card is fast. | source: <https://example.org/>; "
        "on a GPU test `test_fast` |" in page
    )
    assert (
        f"| [2 · More]({notebook}#2-%C2%B7-More) | Two and one is three. | "
        "test `test_three` |" in page
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("is three", "is four", "does not say “Two and one is four.”"),
        ('"sum"', '"gone"', "which 03_mini does not have"),
        ('"sum"', '"shows"', "asserts nothing"),
        ("One and one", "So is one", "does not say"),
        ("One and one is two.", "So is one and two.", "stands twice"),
        ('"""', "#", "quotes no sentence"),
        ('{"https://example.org/": ["The | card is fast."]}', "{}", "alone"),
    ],
)
def test_one_that_is_not_said_or_not_shown_is_refused(
    mini: Course, stated: Path, old: str, new: str, says: str
) -> None:
    text = stated.read_text()
    if old == '"""':
        text = text.partition('    """')[0] + "    assert 2 + 1 == 3\n"
    stated.write_text(text.replace(old, new))

    with pytest.raises(CourseError, match=says):
        statements_page(mini)


def test_a_chapter_without_statements_has_no_page(mini: Course) -> None:
    assert statements_page(mini) == ""
