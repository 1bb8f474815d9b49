"""Answers to `quiz` of chapter 11."""

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def as_a_literal():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@accepted()
def in_capital_letters():
    return dict(cache="B", live="D", gain="B", start="C", first="A", stuck="C")


@accepted()
def from_a_string():
    return dict(zip("cache live gain start first stuck".split(), "bdbcac"))


@accepted()
def with_blanks_around():
    letters = {"stuck": " c", "first": "a ", "start": " C "}
    letters |= {"gain": "b", "live": "d", "cache": "\tB"}
    return letters


@accepted()
def letter_by_letter():
    answers = {}
    for letter, questions in (
        ("a", ["first"]),
        ("b", ["cache", "gain"]),
        ("c", ["start", "stuck"]),
        ("d", ["live"]),
    ):
        answers.update({question: letter for question in questions})
    return answers


@wrong(
    breaks=[hidden_tests.what_the_cache_is, hidden_tests.what_lives_stays],
    tells="You return the letters without the names of their questions. A dict "
    "with the names as keys is asked for.",
)
def letters_in_a_list():
    return list("bdbcac")
