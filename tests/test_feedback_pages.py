"""What learners and instructors read: the feedback page and the class report."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from feedback_samples import (
    CANARY,
    CHAPTER,
    check,
    code_cell,
    display,
    exercise,
    exercise_cells,
    image,
    mixed,
    notebook,
    read,
    solution,
    solved,
    stream,
)
from nbformat import NotebookNode

from course_grader.classroom import gradebook
from course_grader.feedback import (
    Mark,
    class_report,
    page,
    page_without_report,
)
from course_grader.judge.report import SubmissionReport, Verdict

ONE_HOT = "def one_hot(labels):\n    return labels < 3 & 'a'  # <b>"


def submission(*outputs: Any, source: str = ONE_HOT) -> NotebookNode:
    return notebook(
        [
            *exercise_cells("one_hot", source, outputs),
            *exercise_cells("mean_loss", "raise NotImplementedError()"),
        ]
    )


def section(text: str, title: str) -> str:
    """The part of a page that is about one exercise."""
    found = re.search(
        rf'<section class="exercise"[^>]*>\s*<div class="heading">\s*'
        rf"<h2[^>]*>{title}</h2>.*?</section>",
        text,
        re.S,
    )
    assert found is not None
    return found[0]


# The learner's page.


def test_a_solved_chapter_says_so() -> None:
    words = read(page(solved(), submission(), student="Ada")).words
    assert "Feedback for Ada" in words
    assert "03 · One hot and losses" in words
    assert "5 of 5 points" in words
    assert "Everything is solved." in words
    assert "ones at labels passed" in words
    assert "Next:" not in words


def test_a_failed_check_is_told_with_its_message_and_points() -> None:
    text = page(mixed(), submission(), student="Ada")
    one_hot = read(section(text, "One hot")).words
    assert "2 / 4 partly solved" in one_hot
    assert "ones at labels passed" in one_hot
    assert (
        "labels left alone failed Your code changed its input labels in place. "
        "ones at labels passed" in one_hot
    )
    cross_entropy = read(section(text, "Cross entropy")).words
    assert "finite timed out It took too long." in cross_entropy
    assert "a loop that never ends" in cross_entropy
    mean_loss = read(section(text, "Mean loss")).words
    assert "not attempted" in mean_loss
    assert "Replace raise NotImplementedError() by your answer." in mean_loss
    assert "The cell of one_hot stood twice." in read(text).words


def test_the_misconception_comes_before_the_checks_and_is_where_to_start() -> (
    None
):
    text = page(mixed(), submission(), student="Ada")
    words = read(section(text, "One hot")).words
    told = words.index("You resized the caller's labels. Use unsqueeze.")
    assert told < words.index("ones at labels")
    assert "Change that first. The check that shows it: “labels left" in words
    assert "Where to start: One hot, where it is known" in read(text).words


def test_without_a_misconception_most_points_to_gain_come_first() -> None:
    report = mixed()
    report = replace(
        report,
        exercises=tuple(
            replace(one, misconception="") for one in report.exercises
        ),
    )
    words = read(page(report, None, student="Ada")).words
    assert "Where to start: Cross entropy, with 3 points to gain." in words


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_a_word_and_a_shape(verdict: Verdict) -> None:
    report = SubmissionReport(
        CHAPTER, 1, (exercise("one_hot", [check("it holds", verdict)]),)
    )
    text = page(report, None, student="Ada")
    (item,) = re.findall(r"<li class=.*?</li>", text, re.S)
    assert f"it holds {verdict}" in read(item).words
    (icon,) = re.findall(r"<svg.*?</svg>", item, re.S)
    shapes = {re.sub("<svg[^>]*>", "", drawing_of(other)) for other in Verdict}
    assert len(shapes) == len(Verdict)
    assert re.sub("<svg[^>]*>", "", icon) in shapes


def drawing_of(verdict: Verdict) -> str:
    report = SubmissionReport(
        CHAPTER, 1, (exercise("one_hot", [check("it holds", verdict)]),)
    )
    text = page(report, None, student="Ada")
    (item,) = re.findall(r"<li class=.*?</li>", text, re.S)
    (icon,) = re.findall(r"<svg.*?</svg>", item, re.S)
    return icon


def test_a_refused_file_gets_the_one_sentence() -> None:
    refused = replace(mixed(), refused="The file is empty.", notes=())
    text = page(refused, submission(stream("printed")), student="Ada")
    words = read(text).words
    assert "This file could not be graded The file is empty." in words
    for absent in ("points", "labels", "not attempted", "printed"):
        assert absent not in words


def test_why_a_person_should_look_is_not_told_to_the_learner() -> None:
    report = replace(solved(), needs_human=("It opened 3 sockets.",))
    words = read(page(report, None, student="Ada")).words
    assert "Somebody will look at this submission in person" in words
    assert "sockets" not in words


def test_marks_set_by_hand_count_and_are_told() -> None:
    marks = [
        Mark("one_hot", 3.5, 4.0, "Nice `gather`.\n\nSee <you> soon."),
        Mark("cross_entropy", 0.0, 3.0),
        Mark("essay", 2.0, 5.0, "Read it with pleasure."),
    ]
    text = page(mixed(), None, student="Ada", manual=marks, late_penalty=0.25)
    words = read(text).words
    assert "5.25 of 13 points 0.25 taken off for a late submission" in words
    one_hot = section(text, "One hot")
    assert "<code>gather</code>" in one_hot
    assert (
        "points set by your instructor; the checks gave 2"
        in read(one_hot).words
    )
    assert "See <you> soon." in read(one_hot).words
    assert (
        "set by your instructor"
        not in read(section(text, "Cross entropy")).words
    )
    assert "essay 2 / 5 Read it with pleasure." in words


def test_the_learners_code_and_outputs_are_shown_as_they_are() -> None:
    png, jpeg = image("PNG", (64, 48)), image("JPEG", (80, 60))
    text = page(
        mixed(),
        submission(
            stream("loss 1 < 2\n"),
            stream("beware\n", "stderr"),
            display({"image/png": png, "text/plain": "<Figure>"}),
            display({"image/jpeg": [jpeg[:70] + "\n", jpeg[70:] + "\n"]}),
            display(
                {
                    "text/html": "<table border=1><tr><td onclick=x>3.5</td>"
                    "</tr></table><style>p{}</style>",
                    "text/plain": "   a\n0  3.5",
                }
            ),
        ),
        student="Ada",
    )
    one_hot = read(section(text, "One hot"))
    assert ONE_HOT in one_hot.text
    assert "loss 1 < 2" in one_hot.words
    assert "beware" in one_hot.words
    images = one_hot.all("img")
    assert [one["src"] for one in images] == [
        f"data:image/png;base64,{png}",
        f"data:image/jpeg;base64,{jpeg}",
    ]
    assert [one["width"] for one in images] == ["64", "80"]
    assert "<Figure>" not in one_hot.text
    assert one_hot.all("td") == [{}]
    assert "3.5" in one_hot.text
    assert "try again · the shape is (3,)" in one_hot.words


def test_cells_that_the_learner_added_are_shown_with_their_exercise() -> None:
    cells = exercise_cells("one_hot", ONE_HOT)
    cells.insert(1, code_cell("probe = 1", [stream("added below\n")]))
    cells.append(code_cell("mine = 2", [stream("added at the end\n")]))
    cells.append(code_cell("untouched = 3"))
    text = page(solved(), notebook(cells), student="Ada")
    assert "added below" in section(text, "One hot")
    assert "added at the end" in section(text, "Other cells that were run")
    assert "untouched" not in text


def test_no_grade_cell_is_ever_shown() -> None:
    """Not even where the learner renames or marks one as a solution."""
    cells = [
        *submission().cells,
        code_cell(CANARY, [stream(CANARY)], nbgrader={"grade_id": "one_hot"}),
        code_cell(
            CANARY,
            [stream(CANARY)],
            nbgrader={"grade_id": "one_hot_hidden", "solution": True},
        ),
    ]
    hostile = notebook(cells)
    assert CANARY in json.dumps(hostile)
    for text in (
        page(mixed(), hostile, student="Ada"),
        page_without_report(CHAPTER, hostile, student="Ada", marks=[MARK]),
    ):
        assert CANARY not in text


MARK = Mark("one_hot", 3.0, 4.0, "Good.")


def test_a_page_without_report_shows_points_comments_and_code() -> None:
    """Outputs are left out: in stock nbgrader they may hold hidden tests."""
    text = page_without_report(
        CHAPTER,
        submission(stream(CANARY)),
        student="Ada",
        marks=[MARK, Mark("mean_loss", 0.0, 1.0)],
        late_penalty=0.5,
    )
    words = read(text).words
    assert "2.5 of 5 points" in words
    assert "one_hot 3 / 4 From your instructor Good." in words
    assert "There are no details" in words
    assert "def one_hot" in words
    assert CANARY not in text


def test_terminal_sequences_and_overwritten_lines_are_gone() -> None:
    text = page(
        solved(),
        submission(
            stream(
                "\x1b[1;31mred\x1b[0m \x1b]8;;https://e.org\x07link\x1b]8;;\x07"
            ),
            stream("  0%|    |\r 50%|##  |\r100%|####|\n"),
            {
                "output_type": "error",
                "ename": "ValueError",
                "evalue": "no",
                "traceback": ["\x1b[0;31mValueError\x1b[0m: no", "line 2"],
            },
        ),
        student="Ada",
    )
    words = read(text).words
    assert "red link" in words
    assert "100%|####|" in words
    assert "50%" not in words
    assert "ValueError: no line 2" in words
    assert "\x1b" not in text
    assert "e.org" not in text


@pytest.mark.parametrize(
    ("mime", "value"),
    [
        ("image/png", "not base64!"),
        ("image/png", base64.b64encode(b"GIF89a" + b"\0" * 40).decode()),
        ("image/png", image("GIF")),
        ("image/png", image("JPEG")),
        ("image/jpeg", image("PNG")),
        ("image/png", image("PNG")[:20]),
        ("image/png", image("PNG", (9000, 2))),
        ("image/png", "A" * 8_000_000),
        ("image/png", {"a": 1}),
        ("image/png", f'{image("PNG")}" onload="x'),
        ("image/gif", image("GIF")),
        ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
    ],
)
def test_what_is_no_good_picture_is_dropped(mime: str, value: Any) -> None:
    hostile = submission(display({mime: value, "text/plain": "instead"}))
    seen = read(page(solved(), hostile, student="Ada"))
    assert seen.all("img") == []
    assert "instead" in seen.words


def test_the_page_stays_small_whatever_was_printed() -> None:
    outputs = [
        stream("x" * 3_000_000),
        *(display({"image/png": image()}) for _ in range(100)),
        *(stream(f"{'y' * 1000} {n}\n") for n in range(1000)),
    ]
    text = page(
        solved(),
        submission(*outputs, source="z = 0\n" * 100_000),
        student="n" * 10_000,
    )
    assert len(text) < 500_000
    assert "characters left out" in text
    assert 0 < len(read(text).all("img")) <= 10


@pytest.mark.parametrize(
    "cells",
    [
        None,
        "cells",
        [None, 3, "text", []],
        [{"cell_type": "code"}],
        [{"cell_type": "code", "metadata": "x", "source": 3, "outputs": 4}],
        [
            {
                "cell_type": "code",
                "metadata": {"nbgrader": []},
                "source": ["a", 1],
            }
        ],
        [
            code_cell(None, [None, 1, [], {}], nbgrader=solution("one_hot")),
            code_cell("a", [{"output_type": []}], nbgrader=solution("one_hot")),
            code_cell(
                "a",
                [{"output_type": "error", "traceback": [1, None]}],
                nbgrader=solution("one_hot") | {"grade_id": ["one_hot"]},
            ),
        ],
    ],
)
def test_a_notebook_of_any_shape_gives_a_page(cells: Any) -> None:
    broken = notebook([])
    broken["cells"] = cells
    words = read(page(mixed(), broken, student="Ada")).words
    assert "labels left alone failed" in words


def test_the_policy_allows_the_style_and_nothing_else() -> None:
    for text in (
        page(mixed(), submission(), student="Ada"),
        page_without_report(CHAPTER, submission(), student="a", marks=[MARK]),
        class_report(CHAPTER, {"ada": mixed()}),
    ):
        seen = read(text)
        digest = hashlib.sha256(seen.styles[0].encode()).digest()
        (policy,) = (
            one["content"] for one in seen.all("meta") if "http-equiv" in one
        )
        assert policy.split("; ") == [
            "default-src 'none'",
            f"style-src 'sha256-{base64.b64encode(digest).decode()}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
        assert not any("style" in names for _, names in seen.tags)


def test_a_report_that_went_through_json_gives_the_same_page() -> None:
    for report in (solved(), mixed(), replace(mixed(), refused="No.")):
        again = SubmissionReport.from_json(
            json.loads(json.dumps(report.to_json()))
        )
        for one in (report, again):
            assert page(one, submission(), student="Ada") == page(
                report, submission(), student="Ada"
            )


# The class at a glance.


def the_class() -> dict[str, SubmissionReport]:
    return {
        "ada": solved(),
        "bob": mixed(),
        "cy": mixed(),
        "dan": replace(solved(), needs_human=("It opened 3 sockets.",)),
        "eve": replace(mixed(), refused="The file is empty."),
    }


def test_the_class_report_counts_right() -> None:
    words = read(class_report(CHAPTER, the_class())).words
    assert "5 submissions" in words
    # 5, 2, 2, 5 points of 8: what the largest chapter version gives
    assert "3.5 of 8 points is the median" in words
    assert "3.5 points is the mean" in words
    assert "1 could not be graded" in words
    assert "2 to look at in person" in words
    assert "eve Not graded: The file is empty." in words
    assert "dan It opened 3 sockets." in words
    assert "Half of the class has 3.5 of 8 points or more" in words


def test_the_class_report_says_who_is_late_and_who_is_missing() -> None:
    marks = [
        replace(
            gradebook.Mark(student, name, CHAPTER, 5, 8, submitted=True), **more
        )
        for student, name, more in (
            ("ada", "Ada Lovelace", {"days_late": 2}),
            ("bob", "", {"said_late": True}),
            ("flo", "Florence", {"submitted": False, "points": None}),
        )
    ]
    words = read(class_report(CHAPTER, the_class(), marks)).words
    assert "2 late" in words
    assert "1 handed nothing in" in words
    assert "Ada Lovelace ada 2 days late 5 / 5" in words
    assert "bob late 2 / 8" in words
    assert "Florence flo – nothing handed in" in words


def test_the_class_report_tells_what_fails_most_and_why() -> None:
    reports = the_class() | {"flo": one_finite()}
    words = read(class_report(CHAPTER, reports)).words
    # labels left alone: 2 of 2; finite: 2 of 3
    assert "Failed most: labels left alone" in words
    assert words.index("2 of 2") < words.index("2 of 3")
    assert "2 timed out" in words
    assert (
        "2 students · One hot You resized the caller's labels. Use unsqueeze. "
        "bob, cy" in words
    )


def one_finite() -> SubmissionReport:
    passed = exercise("cross_entropy", [check("finite", Verdict.PASSED, 3.0)])
    return SubmissionReport(CHAPTER, 1, (passed,))


def test_every_student_has_a_row_with_points() -> None:
    text = class_report(CHAPTER, the_class())
    table = text[text.index("Student by student") :]
    rows = [
        read(row).words
        for row in re.findall(r"<tr><th scope=\"row\".*?</tr>", table, re.S)
    ]
    assert rows == [
        "ada 5 / 5 4 / 4 1 / 1 –",
        "bob 2 / 8 2 / 4 0 / 1 0 / 3",
        "cy 2 / 8 2 / 4 0 / 1 0 / 3",
        "dan 5 / 5 4 / 4 1 / 1 –",
        "eve – not graded",
    ]


@pytest.mark.parametrize("top", [0.5, 1, 3, 7, 12, 40, 100, 999])
def test_the_histogram_holds_every_graded_submission(top: float) -> None:
    points = [0.0, top / 3, top / 2, top * 0.999, top, top]
    reports = {
        f"s{n}": SubmissionReport(
            CHAPTER,
            1,
            (
                replace(
                    exercise("one_hot", [check("it", Verdict.PASSED, top)]),
                    points=one,
                ),
            ),
        )
        for n, one in enumerate(points)
    }
    text = class_report(CHAPTER, reports)
    (label,) = re.findall(r'aria-label="Histogram of points: ([^"]*)"', text)
    bars = re.findall(r"([\d.]+) to ([\d.]+) points: (\d+)", label)
    assert sum(int(count) for _, _, count in bars) == len(points)
    assert 1 <= len(bars) <= 12
    assert float(bars[0][0]) == 0.0
    assert float(bars[-1][1]) == pytest.approx(top, abs=0.01)
    assert int(bars[0][2]) >= 1
    assert int(bars[-1][2]) >= 3


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        ({}, "There is no submission yet."),
        ({"ada": solved()}, "Everybody passed every check they tried"),
        (
            {"eve": replace(mixed(), refused="The file is empty.")},
            "eve – not graded",
        ),
        ({"ada": SubmissionReport(CHAPTER, 1)}, "1 submission"),
    ],
)
def test_a_class_of_any_size_gives_a_report(
    reports: dict[str, SubmissionReport], says: str
) -> None:
    assert says in read(class_report(CHAPTER, reports)).words


def test_names_of_students_are_text() -> None:
    name = "<i>O'Neil</i> & co"
    text = class_report(CHAPTER, {name: mixed()})
    assert name in read(text).text
    assert html.escape(name, quote=False).replace("'", "&#39;") in text
