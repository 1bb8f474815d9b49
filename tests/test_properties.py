"""A check that is named after a property (an argument left alone, a bad input refused,
a dtype kept) is not lost by wrong arithmetic: with other numbers in all that a probe
returned for the reference, it still passes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from course_grader.chapter.grading import load_grading
from course_grader.course import Course
from course_grader.judge.judging import complaint_of
from course_grader.judge.reference import reference_expectations
from course_grader.judge.warming import WarmProcess

COURSE = Course(Path(__file__).resolve().parent.parent)
CHAPTERS = [
    one if one.startswith("03") else pytest.param(one, marks=pytest.mark.slow)
    for one in COURSE.chapters()
]
PROPERTY = re.compile(
    r"^(leaves_(?!others_out|the_head|only_the_check)|puts_(\w+_)?back|hands_off|only_the_rest$)"
    r"|left_alone$|_leaves_the_rest$|raises?$|refuse|keeps_the_dtype$"
    r"|dtype_is_kept|dtype_of_the|^bad_targets|^nothing_to_restore$"
)
ITS_OWN = {
    "01": ("refuses_other_seeds",),
    "02": (
        *("other_images_raise", "larger_axes_raise", "integer_defaults_raise"),
        *("bad_orders_raise", "bad_sums_raise"),
    ),
    "05": ("leaves_the_state", "puts_modes_back_after_an_error"),
    "06": ("leaves_the_others",),
    "07": (
        *("leaves_the_rest_alone", "refuses_unknown_prefixes"),
        "leaves_the_file_alone",
    ),
    "08": ("nonfinite_is_refused", "the_rest_is_left_alone"),
    "10": ("misuse_raises",),
    "11": ("evaluation_leaves_the_rest", "training_leaves_the_rest"),
    "12": ("leaves_the_dict_alone", "everything_else_raises", "only_the_rest"),
}
"""Checks whose property is a matter of numbers: what must be as before, or is compared
with itself."""


def other_numbers(data: Any) -> Any:
    if isinstance(data, Tensor):
        number = data.is_floating_point() and data.device.type != "meta"
        return data + 1 if number and data.dtype.itemsize > 1 else data
    if isinstance(data, float):
        return data + 1.0
    if isinstance(data, list | tuple):
        return type(data)(other_numbers(one) for one in data)
    if isinstance(data, dict):
        return {key: other_numbers(one) for key, one in data.items()}
    return data


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_wrong_arithmetic_loses_no_check_of_a_property(chapter: str) -> None:
    grading = load_grading(COURSE, chapter)
    with WarmProcess(COURSE.limits) as warm:
        expected = reference_expectations(warm, grading, 1)
    found = {}
    for check in grading.checks:
        if not PROPERTY.search(check.name):
            continue
        for number, case in enumerate(expected.cases[check.name]):
            right = expected.reference[check.name, number]
            wrong = replace(right, data=other_numbers(right.data))
            complaint = complaint_of(check, case, wrong, right)
            if complaint:
                found[check.name] = complaint

    assert set(found) == set(ITS_OWN.get(chapter[:2], ())), found
