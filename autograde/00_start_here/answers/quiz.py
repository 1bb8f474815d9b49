"""Answers to `quiz` of chapter 00."""

import torch

from course_grader.bank import accepted


@accepted()
def as_a_literal():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@accepted()
def in_capital_letters():
    return dict(
        current="B",
        numbers="C",
        assigned="B",
        left_behind="D",
        busy="C",
        versions="B",
    )


@accepted()
def from_a_string():
    names = "current numbers assigned left_behind busy versions".split()
    return dict(zip(names, "bcbdcb"))


@accepted()
def with_answers_worked_out():
    index = torch.device("cuda").index
    current = "b" if index is None else "a"
    numbers = "abc"[2 - [3, 1].index(3)]
    x = torch.ones(1)
    x.to("meta")
    assigned = "b" if x.device.type == "cpu" else "d"
    letters = {"current": current, "numbers": numbers, "assigned": assigned}
    return {**letters, "left_behind": "d", "busy": "c", "versions": "b"}


@accepted()
def with_blanks_around():
    letters = {"versions": " b", "busy": "C ", "left_behind": "d"}
    letters |= {"assigned": "B", "numbers": " c ", "current": "b"}
    return letters
