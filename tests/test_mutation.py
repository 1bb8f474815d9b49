"""Mutants: made where a change could matter, judged, and excused with a reason."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from commands import course_says

from course_grader.chapter.grading import load_grading
from course_grader.course import Course, CourseError
from course_grader.judge.warming import WarmProcess
from course_grader.mutation.operators import mutants_of
from course_grader.mutation.score import (
    chosen_mutants,
    difference_of,
    digest_of,
    score_exercise,
)
from course_grader.mutation.table import keep_score, page, read_scores

STEP = '''\
import torch


@torch.no_grad()
def step(model, batches, lr: float = 0.1) -> float:
    """One step."""
    total = 0.0
    with torch.enable_grad():
        for x, y in batches:
            loss = (model(x) - y).pow(2).mean(dim=1, keepdim=True).sum()
            loss.backward()
            total += loss.detach().item()
    for p in model.parameters():
        if p.grad is None:
            raise ValueError("no gradient")
        p.sub_(p.grad, alpha=lr)
    return total
'''


def test_every_kind_of_slip_is_made() -> None:
    made = [one.source for one in mutants_of(STEP)]

    for slip in (
        "\ndef step(",  # without the decorator
        "    if True:\n        for x, y",  # without the context
        "        pass\n    return total",  # without the step
        "            pass\n            total +=",  # without backward
        "if False:\n            raise",
        ".mean(dim=-1, keepdim=True)",
        ".mean(dim=1, keepdim=False)",
        ".mean(dim=1, ).sum()",
        ".mean(dim=1, keepdim=True).mean()",
        "total -= loss",
        "total = loss",
        "total += loss.detach()\n",
        "total += loss.item()",
        "p.sub(p.grad, alpha=lr)",
        "p.sub_(p.grad, )",
        "p.sub_(None, alpha=lr)",
        "(model(x) + y)",
        "model.buffers()",
        "lr: float = 1.1",
        "            break\n    for p",
        "for x, y in ():",
    ):
        assert any(slip in one for one in made), slip


def test_no_mutant_repeats_another_or_changes_what_nobody_asks_for() -> None:
    mutants = mutants_of(STEP)
    trees = [ast.dump(ast.parse(one.source)) for one in mutants]

    assert len(set(trees)) == len(trees)
    assert ast.dump(ast.parse(STEP)) not in trees
    for one in mutants:
        assert '"""One step."""' in one.source
        assert "-> float" in one.source
        if "raise ValueError" in one.source:
            assert "no gradient" in one.source
        assert one.source.startswith("import torch")


def test_a_difference_stands_once_in_what_it_changes() -> None:
    for mutant in mutants_of(STEP):
        was, now = difference_of(STEP, mutant.source)

        assert STEP.count(was) == 1
        assert STEP.replace(was, now) == mutant.source


def test_mutants_are_killed_by_the_checks_or_named(
    mini: Course, warm: WarmProcess
) -> None:
    grading = load_grading(mini, "03_mini")

    score = score_exercise(warm, grading, mini, "double", seeds=(1, 2))

    assert score.mutants == len(chosen_mutants(grading, "double"))
    assert score.mutants == (
        score.killed + score.timed_out + len(score.survivors)
    )
    # no case leaves `times` out, so nobody sees the default
    (default,) = (one for one in score.survivors if "int = 2" in one.now)
    assert default.of == "solution"
    assert "def double(x: Tensor, times: int = 1)" in default.was
    # and what a check looks at is seen
    assert not any("x / 2**times" in one.now for one in score.survivors)

    keep_score(mini, "03_mini", score)
    assert read_scores(mini) == {"03_mini": {"double": score}}
    assert f"| 03 | double | {score.mutants} |" in page(read_scores(mini))

    # the page is the same whichever score came first
    keep_score(mini, "03_mini", replace(score, exercise="before_it"))
    written = (mini.root / "docs" / "mutation.md").read_text(encoding="utf-8")
    assert written == page(read_scores(mini))


def test_a_survivor_is_excused_by_a_reason_alone(
    mini: Course, warm: WarmProcess
) -> None:
    grading = load_grading(mini, "03_mini")
    file = mini.autograde / "03_mini" / "equivalents.toml"
    entry = (
        "[[double]]\n"
        'of = "solution"\n'
        "was = 'times: int = 1)'\n"
        "now = 'times: int = 2)'\n"
        'because = "{}"\n'
    )

    file.write_text(entry.format(""))
    with pytest.raises(CourseError, match="does not say `because`"):
        score_exercise(warm, grading, mini, "double", seeds=(1,))

    file.write_text(entry.format("The text gives no default."))
    score = score_exercise(warm, grading, mini, "double", seeds=(1,))
    assert score.equivalent == 1
    assert not any("int = 2" in one.now for one in score.survivors)

    file.write_text(entry.format("So it is.").replace("= 2)", "= 1.0)"))
    with pytest.raises(CourseError, match="is no mutant that survives"):
        score_exercise(warm, grading, mini, "double", seeds=(1,))

    file.write_text(entry.format("So it is.").replace("int = 1)", "two)"))
    with pytest.raises(CourseError, match="does not stand once"):
        score_exercise(warm, grading, mini, "double", seeds=(1,))


@pytest.mark.slow
def test_the_command_goes_on_where_it_was(mini: Course) -> None:
    said = course_says(mini.root, "mutate", "03", "double", code=1)
    assert "03 double:" in said
    assert "[[double]]" in said

    again = course_says(mini.root, "mutate", "03", "double", code=1)
    assert "not run again" in again
    assert "[[double]]" in again

    # what is shown can be pasted, with a reason; no run is needed for that
    parts = [one for one in said.split("\n\n") if "[[double]]" in one]
    assert parts
    pasted = "\n".join(parts).replace('because = ""', 'because = "So it is."')
    file = mini.autograde / "03_mini" / "equivalents.toml"
    file.write_text(pasted)
    excused = course_says(mini.root, "mutate", "03", "double")
    assert "0 survived" in excused
    assert "not run again" in excused

    # an entry that was there and is not any more: only a run tells
    file.unlink()
    said = course_says(mini.root, "mutate", "03", "double", code=1)
    assert "not run again" not in said
    assert "[[double]]" in said


def test_an_answer_is_shown_with_the_case_that_it_loses(mini: Course) -> None:
    said = course_says(mini.root, "try", "03", "mean", "--show", "the_sum")

    assert "x.sum().item()" in said
    assert "averages, case 0:" in said
    assert "answer: " in said
    assert "reference: " in said
    assert "That is the sum." in said

    said = course_says(
        mini.root, "try", "03", "mean", "--show", "nobody", code=2
    )
    assert "has no answer 'nobody'. It has: by_method, the_sum." in said


@pytest.mark.slow
def test_the_table_is_of_todays_checks_and_answers(course: Course) -> None:
    old = []
    for chapter, scores in read_scores(course).items():
        grading = load_grading(course, chapter)
        old += [
            f"{chapter} {exercise}"
            for exercise, score in scores.items()
            if score.digest != digest_of(grading, exercise)
        ]

    assert not old, f"`course mutate` runs them again: {', '.join(old)}"
