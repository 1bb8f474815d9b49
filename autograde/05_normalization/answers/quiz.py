"""Answers to `quiz` of chapter 05."""

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def as_a_literal():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@accepted()
def in_capital_letters():
    return dict(
        motive="B",
        shift="C",
        momentum="A",
        tracking="D",
        two_variances="D",
        alone="C",
    )


@accepted()
def from_a_string():
    questions = "motive shift momentum tracking two_variances alone".split()
    return dict(zip(questions, "bcaddc"))


@accepted()
def with_one_answer_worked_out():
    layers = {
        "a": (nn.LayerNorm(8), (1, 8)),
        "b": (nn.BatchNorm2d(8), (1, 8, 4, 4)),
        "c": (nn.BatchNorm1d(8), (1, 8)),
        "d": (nn.GroupNorm(2, 8), (1, 8, 1, 1)),
    }
    raising = []
    for letter, (layer, shape) in layers.items():
        try:
            layer(torch.zeros(shape))
        except ValueError:
            raising.append(letter)
    answers = dict(motive="b", shift="c", momentum="a", tracking="d")
    return {**answers, "two_variances": "d", "alone": raising[0]}


@accepted()
def with_blanks_around():
    letters = {"alone": " c", "two_variances": "d ", "tracking": "D"}
    letters |= {"momentum": "a", "shift": " C ", "motive": "b"}
    return letters


@accepted()
def letter_by_letter():
    answers = {}
    for question, place in [
        ("alone", 2),
        ("motive", 1),
        ("shift", 2),
        ("two_variances", 3),
        ("tracking", 3),
        ("momentum", 0),
    ]:
        answers[question] = "abcd"[place]
    return answers


@wrong(
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="Your keys are not those of the questions. Use motive, shift, momentum, "
    "tracking, two_variances and alone.",
)
def with_numbers_for_keys():
    return dict(enumerate("bcaddc", start=1))


@wrong(
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="You return the letters without their questions. `quiz()` returns a"
    " dict with motive, shift, momentum, tracking, two_variances and "
    "alone as keys.",
)
def as_a_list():
    return ["b", "c", "a", "d", "d", "c"]


@wrong(
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="Each answer is one letter, a, b, c or d, and not several of them, "
    "nor a letter in parentheses.",
)
def with_all_letters():
    return dict.fromkeys(
        ("motive", "shift", "momentum", "tracking", "two_variances", "alone"),
        "abcd",
    )
