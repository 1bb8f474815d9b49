"""Disguised copies among honest answers of the bank."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from itertools import pairwise

import pytest
from mini_course import ROOT

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading, load_grading
from course_grader.classroom.similar import Pair, features, similar
from course_grader.course import Course


def disguise(cell: str, rng: random.Random) -> str:
    """A copy as copyists make them: other names, another order of two statements,
    no comments, other layout, code that does nothing."""
    tree = ast.parse(cell)
    kept = {one.name for one in tree.body if hasattr(one, "name")}
    kept |= {
        keyword.arg
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
        for keyword in one.keywords
        if keyword.arg
    }
    own = sorted(
        {
            one.id
            for one in ast.walk(tree)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        - kept
    )
    words = ("tmp", "val", "res", "buf", "thing")
    names = {one: f"{rng.choice(words)}{i}" for i, one in enumerate(own)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Name):
            one.id = names.get(one.id, one.id)
        elif isinstance(one, ast.FunctionDef):
            if ast.get_docstring(one) and len(one.body) > 1:
                del one.body[0]
            _swap(one.body)
            dead = rng.choice(
                ["unused = 0", "if False:\n    print()", "debug = None"]
            )
            one.body[:0] = ast.parse(dead).body
    return "# all my own work\n" + ast.unparse(ast.fix_missing_locations(tree))


def _swap(body: list[ast.stmt]) -> None:
    """Swaps the first two assignments side by side that allow it."""
    for i, (one, other) in enumerate(pairwise(body)):
        if isinstance(one, ast.Assign) and isinstance(other, ast.Assign):
            made = {
                n.id
                for t in one.targets
                for n in ast.walk(t)
                if isinstance(n, ast.Name)
            }
            used = {
                n.id for n in ast.walk(other.value) if isinstance(n, ast.Name)
            }
            if not made & used:
                body[i], body[i + 1] = other, one
                return


@pytest.fixture(scope="module")
def honest() -> list[tuple[Grading, Answer]]:
    """All right answers of exercises that have many answers."""
    course = Course(ROOT)
    found = []
    for chapter in course.chapters():
        grading = load_grading(course, chapter)
        for exercise in grading.chapter.exercises:
            answers = grading.answers_of(exercise.id)
            if len(answers) >= 45:
                found += [(grading, one) for one in answers if one.right]
    return found


@pytest.mark.slow
def test_twenty_copies_among_two_hundred_answers_stand_in_the_first_rows(
    honest: list[tuple[Grading, Answer]],
) -> None:
    """In eight classes that are drawn from the bank. The bank has right answers of
    one line: nobody can tell who copied one of these."""
    found = [_in_the_first_rows(honest, seed) for seed in range(8)]
    assert sum(found) >= 158, found


def _in_the_first_rows(honest: list[tuple[Grading, Answer]], seed: int) -> int:
    rng = random.Random(seed)
    classes: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    gradings = {}
    chosen = rng.sample(honest, 200)
    for grading, one in chosen:
        key = grading.chapter.name, one.exercise
        gradings[key] = grading
        classes[key][one.name] = grading.answer_cell(one)
    copies = set()
    for grading, one in rng.sample(chosen, 20):
        key = grading.chapter.name, one.exercise
        classes[key][f"{one.name}~"] = disguise(classes[key][one.name], rng)
        copies.add((one.exercise, one.name))
    pairs: list[Pair] = []
    for (chapter, exercise), answers in classes.items():
        grading = gradings[chapter, exercise]
        others = [
            grading.answer_cell(one)
            for one in grading.answers_of(exercise)
            if one.right and one.name not in answers
        ]
        solution = grading.chapter.exercise(exercise).source
        pairs += similar(exercise, answers, [solution, *others])
    pairs.sort(key=lambda one: -one.rank)
    found = {
        (one.exercise, one.first)
        for one in pairs[:25]
        if one.second == f"{one.first}~"
    }
    assert found <= copies
    return len(found)


def test_three_copies_stand_above_what_most_of_a_class_writes(
    honest: list[tuple[Grading, Answer]],
) -> None:
    """A class of forty in one exercise: half of them write the solution, ten have
    left the cell as it was."""
    cell = "def f(x):\n    raise NotImplementedError()\n"
    by_exercise: dict[str, list[tuple[Grading, Answer]]] = defaultdict(list)
    for grading, one in honest:
        by_exercise[one.exercise].append((grading, one))
    for exercise, ones in sorted(by_exercise.items()):
        if len(ones) < 10:
            continue
        rng = random.Random(exercise)
        grading = ones[0][0]
        solution = grading.chapter.exercise(exercise).source
        answers = {f"usual{i}": disguise(solution, rng) for i in range(20)}
        answers |= {f"open{i}": cell for i in range(10)}
        drawn = rng.sample(ones, 7)
        answers |= {one.name: grading.answer_cell(one) for _, one in drawn}
        for _, one in drawn[:3]:
            answers[f"{one.name}~"] = disguise(answers[one.name], rng)
        pairs = similar(exercise, answers, [solution], cell)
        assert not any("open" in one.first + one.second for one in pairs)
        first = {one.first for one in pairs[:6] if one.second[-1] == "~"}
        assert {one.name for _, one in drawn[:3]} <= first, exercise


def test_what_a_copyist_changes_does_not_count() -> None:
    one = (
        "def total(xs: list) -> float:\n"
        '    """Adds them."""\n'
        "    first = 1.5\n    second = [2 * x for x in xs]\n"
        "    return sum(second) + first\n"
    )
    other = (
        "def total(values):\n"
        "    b = [2 * v for v in values]  # mine\n    a = 1.5\n"
        "    print(a)\n    left_over = 3\n    if True:\n"
        "        return a + sum(b)\n    print('never')\n"
    )
    assert features(one) == features(other)
    module = (
        "class A:\n    def __init__(self):\n        self.{0} = self.{1}()\n"
    )
    module += "    def {1}(self):\n        return 7\n"
    assert features(module.format("b", "_c")) == features(
        module.format("x", "helper")
    )


@pytest.mark.parametrize(
    "cell", ["", "x = ", "(" * 500, "a = 1\n" * 50_000, "\0", "x = '\ud800'"]
)
def test_any_cell_gets_an_answer(cell: str) -> None:
    assert similar("e", {"a": cell, "b": cell}, [cell]) == []


def test_what_everybody_writes_is_no_agreement() -> None:
    cell = "def f(x):\n    y = x.sum(dim=1)\n    return y / y.max()\n"
    many = {str(number): cell for number in range(10)}
    rare = "def f(x):\n    z = [float(v) for v in x.flatten()]\n    return max(z)\n"
    pairs = similar("e", {**many, "u": rare, "v": rare}, [cell])
    assert (pairs[0].first, pairs[0].second) == ("u", "v")
