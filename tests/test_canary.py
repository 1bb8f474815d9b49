"""Nothing of a hidden check reaches a learner: a word that stands in every check,
as code and in every case, is in no file that a learner gets."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from course_grader.chapter.grading import load_grading
from course_grader.chapter.kit import publish
from course_grader.classroom import nbgrader_api
from course_grader.classroom.demo import copy_course, synthetic_class
from course_grader.classroom.folder import details_of, write_page
from course_grader.course import Course
from course_grader.grading.pool import Job, Outcome
from course_grader.grading.process import GradingProcess
from course_grader.judge import sandbox
from course_grader.judge.signatures import (
    keep_signatures,
    read_signatures,
    signatures_file,
)

IN_CODE, IN_CASES = "canary_in_code", "canary in a case"
CHAPTERS = sorted(
    path.name
    for path in (Path(__file__).parent.parent / "solutions").iterdir()
    if (path / f"{path.name}.py").exists()
)


class Plant(ast.NodeTransformer):
    """Puts both words into every check."""

    planted = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if not any(
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id == "check"
            for one in node.decorator_list
        ):
            return node
        self.generic_visit(node)
        node.body.insert(0, ast.parse(f"{IN_CODE} = 1  # and this").body[0])
        self.planted += 1
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:
        cases = ast.unparse(node.value) if node.value else "[]"
        (made,) = ast.parse(
            f"[{{**case, 'canary': {IN_CASES!r}}} for case in {cases}]"
        ).body
        assert isinstance(made, ast.Expr)
        node.value = made.value
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


def planted(course: Course, chapter: str) -> int:
    """How many checks carry the words now."""
    path = course.autograde / chapter / "hidden_tests.py"
    lost = signatures_of(course, chapter)
    plant = Plant()
    tree = plant.visit(ast.parse(path.read_text(encoding="utf-8")))
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
    # the words change nothing, so what wrong answers lose need not be found anew
    grading = load_grading(course, chapter)
    for exercise, signatures in lost.items():
        keep_signatures(
            signatures_file(course, chapter),
            grading,
            exercise,
            [
                (answer, signatures[answer.name])
                for answer in grading.answers_of(exercise)
                if answer.name in signatures
            ],
        )
    return plant.planted


def signatures_of(course: Course, chapter: str) -> dict[str, dict[str, str]]:
    """By exercise and wrong answer."""
    grading = load_grading(course, chapter)
    file = signatures_file(course, chapter)
    return {
        one.id: read_signatures(file, grading, one.id)
        for one in grading.chapter.exercises
    }


@pytest.mark.parametrize(
    "chapter",
    [
        pytest.param(
            name, marks=[] if name.startswith("03") else [pytest.mark.slow]
        )
        for name in CHAPTERS
    ],
)
def test_no_word_of_a_hidden_check_is_in_what_learners_get(
    course: Course, chapter: str, tmp_path: Path
) -> None:
    copy = copy_course(course, tmp_path / "course")
    for other in set(copy.chapters()) - {chapter}:
        shutil.rmtree(copy.source_of(other).parent)
    source = copy.source_of(chapter)
    alone = re.sub(
        r"chapter \d\d", f"chapter {chapter[:2]}", source.read_text()
    )
    source.write_text(alone)  # no other is there to point to
    # what a kit is made of besides the chapters
    (copy.root / "LICENSE").write_bytes((course.root / "LICENSE").read_bytes())
    shutil.copytree(
        course.root / "src" / "course_utils", copy.root / "src" / "course_utils"
    )
    assert planted(copy, chapter) >= 4
    gets = tmp_path / "gets"
    with GradingProcess(copy, sandbox.missing() is None) as process:
        # of those who lose marks some, and who ends the process
        some = list(synthetic_class(copy, chapter).items())[5:14]
        for student, notebook in some:
            submitted = nbformat.writes(notebook).encode()
            report, text = process.grade(
                chapter, 5, submitted, page_for=student
            )
            outcome = Outcome(Job(student, b""), report, text)
            write_page(gets / "feedback" / student, outcome)
            # the sanitised notebook goes back through nbgrader's feedback
            report, text = process.grade(chapter, 5, submitted)
            graded = gets / "feedback" / student / "graded.ipynb"
            graded.write_text(text, encoding="utf-8")
            (gets / "feedback" / student / "details.json").write_text(
                json.dumps(details_of(report))
            )
    publish(copy, gets / "kit")
    (wheel,) = (gets / "kit").glob("*.whl")
    shutil.unpack_archive(wheel, gets / "wheel", "zip")
    classroom = nbgrader_api.open_classroom(copy)
    nbgrader_api.release(classroom, chapter)
    exchange = Path(classroom.config.Exchange.root)

    files = [
        path
        for folder in (gets, exchange)
        for path in folder.rglob("*")
        if path.is_file()
    ]
    assert len(files) > 50
    for path in files:
        content = path.read_bytes()
        for word in (IN_CODE, IN_CASES):
            assert word.encode() not in content, path
