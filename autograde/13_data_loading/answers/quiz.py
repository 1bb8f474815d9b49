"""Answers to `quiz` of chapter 13."""

from torch.utils.data import (
    DataLoader,
)

from course_grader.bank import accepted


@accepted()
def as_a_literal():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@accepted()
def in_capital_letters():
    return dict(
        message="C", cure="D", lone="A", dropped="B", pinned="C", started="B"
    )


@accepted()
def from_a_string():
    questions = "message cure lone dropped pinned started".split()
    return dict(zip(questions, "cdabcb"))


@accepted()
def with_one_answer_worked_out():
    letters = {"message": "c", "cure": "d", "lone": "a", "pinned": "c"}
    loader = DataLoader(range(30), batch_size=32, drop_last=True)
    letters["dropped"] = "b" if len(list(loader)) == 0 else "a"
    return {**letters, "started": "b"}


@accepted()
def with_blanks_around():
    letters = {"started": " b", "pinned": "c ", "dropped": " B "}
    return letters | {"lone": "a", "cure": "d", "message": "C"}
