"""nbgrader's own `nbgrader generate_feedback` writes our page."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
import pytest
from commands import nbgrader_says
from feedback_samples import (
    CANARY,
    CHAPTER,
    display,
    exercise_cells,
    image,
    mixed,
    notebook,
    read,
    stream,
)
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook

from course_grader.classroom import nbgrader_api
from course_grader.course import Course
from course_grader.feedback import Mark, page, sanitise
from course_grader.feedback.answers_first import AnswersFirst
from course_grader.feedback.exporter import FeedbackExporter
from course_grader.judge.report import SubmissionReport

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "course"
c.GenerateFeedback.exporter_class = "course_grader.feedback.FeedbackExporter"
"""


def graded(report: SubmissionReport | None) -> NotebookNode:
    """An autograded notebook of the three exercises."""
    made = sanitise(
        notebook(
            [
                *exercise_cells(
                    "one_hot",
                    "def one_hot(): ...",
                    [stream("it ran\n"), display({"image/png": image()})],
                ),
                *exercise_cells("cross_entropy", "x = 1", points=3.0),
                *exercise_cells("mean_loss", "y = 2", points=1.0),
            ]
        )
    )
    if report is not None:
        made.metadata["course"] = {"report": report.to_json()}
    return made


def unreadable() -> dict[str, object]:
    """Reports that no page can be made of, by student."""
    tree = mixed().to_json()
    return {
        "short": {"chapter": CHAPTER},
        "shallow": {**tree, "exercises": [{"exercise": "one_hot"}]},
        "number": {**tree, "notes": 3},
        "words": {
            **tree,
            "exercises": [
                {**one, "points": "<b>", "max_points": None}
                for one in tree["exercises"]
            ],
        },
        "text": "a report",
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Student → page, of a course in which `nbgrader generate_feedback` ran."""
    root = tmp_path_factory.mktemp("nbgrader") / "course"
    root.mkdir()
    (root / "nbgrader_config.py").write_text(CONFIG)
    notebooks = {"ada": graded(mixed()), "bob": graded(None)}
    for student, report in unreadable().items():
        notebooks[student] = graded(None)
        tree = nbformat.from_dict({"report": report})
        notebooks[student].metadata["course"] = tree
    with pytest.MonkeyPatch.context() as patch:
        # nbgrader calls `alembic` by its name
        scripts = Path(sys.executable).parent
        patch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
        with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
            for student, made in notebooks.items():
                folder = root / "autograded" / student / CHAPTER
                folder.mkdir(parents=True)
                nbformat.write(made, folder / f"{CHAPTER}.ipynb")
                stamp = "2026-03-02 14:05:59.12 UTC\n"
                (folder / "timestamp.txt").write_text(stamp)
                fill(gradebook, student)
        run_nbgrader(root, "generate_feedback", CHAPTER)
    feedback = root / "feedback"
    return {
        student: (feedback / student / CHAPTER / f"{CHAPTER}.html").read_text(
            encoding="utf-8"
        )
        for student in notebooks
    }


def fill(gradebook: Gradebook, student: str) -> None:
    gradebook.update_or_create_assignment(CHAPTER)
    gradebook.update_or_create_notebook(CHAPTER, CHAPTER)
    gradebook.update_or_create_student(student)
    for name, points in (
        ("one_hot", 4.0),
        ("cross_entropy", 3.0),
        ("mean_loss", 1.0),
    ):
        place = (CHAPTER, CHAPTER)
        gradebook.update_or_create_solution_cell(name, *place)
        for grade_id, worth in ((name, points), (name, 0.0)):
            suffix = "_hidden" if worth else "_visible"
            gradebook.update_or_create_grade_cell(
                grade_id + suffix, *place, max_score=worth, cell_type="code"
            )
    gradebook.update_or_create_submission(CHAPTER, student)
    for name, points in (("one_hot", 2.0), ("cross_entropy", 0.0)):
        grade = gradebook.find_grade(
            f"{name}_hidden", CHAPTER, CHAPTER, student
        )
        grade.auto_score = points
    gradebook.find_grade(
        "cross_entropy_hidden", CHAPTER, CHAPTER, student
    ).manual_score = 1.5
    comment = gradebook.find_comment("one_hot", CHAPTER, CHAPTER, student)
    comment.manual_comment = "See `unsqueeze`."
    comment = gradebook.find_comment("mean_loss", CHAPTER, CHAPTER, student)
    comment.auto_comment = "No response."
    submitted = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student)
    submitted.late_submission_penalty = 0.5
    gradebook.db.commit()


def run_nbgrader(root: Path, *arguments: str) -> None:
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    apart = {"HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_CONFIG_PATH"}
    environment = {
        name: value for name, value in os.environ.items() if name not in apart
    }
    nbgrader_says(root, environment | {"HOME": str(home)}, *arguments)


def test_it_is_the_page_that_the_course_makes(pages: dict[str, str]) -> None:
    written = pages["ada"]
    assert written == page(
        mixed(),
        graded(mixed()),
        student="ada",
        manual=[
            Mark("one_hot", 2.0, 4.0, "See `unsqueeze`."),
            Mark("cross_entropy", 1.5, 3.0),
            Mark("mean_loss", 0.0, 1.0),
        ],
        late_penalty=0.5,
        submitted="2026-03-02 14:05 UTC",
    )
    words = read(written).words
    assert "3 of 8 points 0.5 taken off for a late submission" in words
    assert "points set by your instructor; the checks gave 0" in words
    assert "See unsqueeze." in words
    assert "No response." not in words
    assert "it ran" in words
    assert len(read(written).all("img")) == 1
    assert CANARY not in written


@pytest.mark.parametrize("student", ["bob", *unreadable()])
def test_without_a_readable_report_it_shows_the_gradebook(
    student: str, pages: dict[str, str]
) -> None:
    words = read(pages[student]).words
    assert "3 of 8 points" in words
    assert "There are no details" in words
    assert "cross_entropy 1.5 / 3" in words
    assert "See unsqueeze." in words
    assert "_visible" not in words
    assert "def one_hot" in words
    assert "it ran" not in words
    assert CANARY not in pages[student]


def test_in_formgrader_the_answers_stand_first(mini: Course) -> None:
    made = graded(mixed())
    made.cells.insert(0, new_markdown_cell("What one reads first."))
    config = nbgrader_api.open_classroom(mini).config
    # as formgrader makes it
    shown, _ = HTMLExporter(config=config).from_notebook_node(made)
    answer, rest = (
        shown.index(one)
        for one in ("visible_one_hot", "The rest of the notebook")
    )
    assert answer < shown.index("visible_mean_loss") < rest
    assert rest < shown.index("What one reads first.")

    # a notebook that was not graded here is as it was
    other = graded(None)
    assert AnswersFirst().preprocess(other, {})[0].cells == other.cells
    # and the learner's page is our own
    feedback, _ = FeedbackExporter(config=config).from_notebook_node(
        graded(mixed()), {"metadata": {"name": CHAPTER, "path": ""}}
    )
    assert "The rest of the notebook" not in feedback
