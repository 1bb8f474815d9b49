"""Answers to `quiz` of chapter 11."""

from course_grader.bank import SOLUTION, accepted, edit, wrong

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


calling_the_cache_a_leak = edit(
    SOLUTION,
    {'"cache": "b",': '"cache": "a",'},
    breaks=hidden_tests.what_the_cache_is,
    tells="What is reserved and not allocated holds no tensor: PyTorch keeps "
    "it for the next request. A leak shows in `memory_allocated()`.",
)

giving_the_cache_to_others = edit(
    SOLUTION,
    {'"cache": "b",': '"cache": "c",'},
    breaks=hidden_tests.what_the_cache_is,
    tells="`memory_reserved()` counts what this process has taken from the "
    "driver. Other programs' memory is not in it.",
)

filling_the_cache_with_graphs = edit(
    SOLUTION,
    {'"cache": "b",': '"cache": "d",'},
    breaks=hidden_tests.what_the_cache_is,
    tells="Graphs hold tensors, and tensors that live are allocated. The "
    "difference between reserved and allocated holds none.",
)

freeing_what_lives = edit(
    SOLUTION,
    {'"live": "d",': '"live": "a",'},
    breaks=hidden_tests.what_lives_stays,
    tells="Nothing frees a tensor that somebody still holds. `empty_cache()` "
    "gives back blocks in which none lives.",
)

moving_to_the_cpu = edit(
    SOLUTION,
    {'"live": "d",': '"live": "b",'},
    breaks=hidden_tests.what_lives_stays,
    tells="`empty_cache()` moves nothing. A tensor goes to the CPU by "
    "`.cpu()`, and its old memory is free when the last name for it is "
    "gone.",
)

freeing_without_gradients = edit(
    SOLUTION,
    {'"live": "d",': '"live": "c",'},
    breaks=hidden_tests.what_lives_stays,
    tells="Whether a tensor requires a gradient makes no difference. It lives "
    "as long as somebody holds it.",
)

gaining_what_was_given_back = edit(
    SOLUTION,
    {'"gain": "b",': '"gain": "a",'},
    breaks=hidden_tests.who_gains,
    tells="Your process could have used these blocks anyhow: they were kept "
    "for it. Only other programs gain, and at most some fragments are "
    "mended.",
)

gaining_twice = edit(
    SOLUTION,
    {'"gain": "b",': '"gain": "c",'},
    breaks=hidden_tests.who_gains,
    tells="Nothing is doubled. The blocks that were given back were yours to "
    "use before.",
)

gaining_from_others = edit(
    SOLUTION,
    {'"gain": "b",': '"gain": "d",'},
    breaks=hidden_tests.who_gains,
    tells="`empty_cache()` has no say over other programs.",
)

taking_a_share = edit(
    SOLUTION,
    {'"start": "c",': '"start": "a",'},
    breaks=hidden_tests.what_is_taken_first,
    tells="PyTorch takes no fixed share in advance; other frameworks do. It "
    "asks for blocks as tensors need them.",
)

taking_everything = edit(
    SOLUTION,
    {'"start": "c",': '"start": "b",'},
    breaks=hidden_tests.what_is_taken_first,
    tells="PyTorch asks for blocks as tensors need them. Programs that take "
    "all memory at the start are others.",
)

taking_nothing = edit(
    SOLUTION,
    {'"start": "c",': '"start": "d",'},
    breaks=hidden_tests.what_is_taken_first,
    tells="The first use makes a CUDA context, hundreds of MiB, backward pass "
    "or not. `nvidia-smi` shows it, `memory_allocated()` does not.",
)

emptying_first = edit(
    SOLUTION,
    {'"first": "a",': '"first": "b",'},
    breaks=hidden_tests.what_comes_first,
    tells="While a name holds the tensor, `empty_cache()` can do nothing "
    "about it. Let go of it first; then its memory can be used again "
    "without any call.",
)

collecting_first = edit(
    SOLUTION,
    {'"first": "a",': '"first": "c",'},
    breaks=hidden_tests.what_comes_first,
    tells="`gc.collect()` finds cycles. A tensor without one is freed the "
    "moment its last name goes, and while there is a name the collector "
    "leaves it alone.",
)

resetting_first = edit(
    SOLUTION,
    {'"first": "a",': '"first": "d",'},
    breaks=hidden_tests.what_comes_first,
    tells="A reset is for broken devices, needs root and an idle card, and "
    "would end your own run. Let go of the tensor.",
)

resetting_the_card = edit(
    SOLUTION,
    {'"stuck": "c",': '"stuck": "a",'},
    breaks=hidden_tests.whose_memory_it_is,
    tells="A reset needs root and a card that nobody uses, and would end "
    "everybody's work. The memory belongs to a process: end that one.",
)

emptying_from_outside = edit(
    SOLUTION,
    {'"stuck": "c",': '"stuck": "b",'},
    breaks=hidden_tests.whose_memory_it_is,
    tells="`empty_cache()` gives back blocks of its own process. It cannot "
    "reach into another.",
)

waiting_for_the_collector = edit(
    SOLUTION,
    {'"stuck": "c",': '"stuck": "d",'},
    breaks=hidden_tests.whose_memory_it_is,
    tells="The collector belongs to the process that hangs. As long as that "
    "exists, it keeps its memory: find it and end it.",
)


@wrong(
    breaks=[hidden_tests.what_the_cache_is, hidden_tests.what_lives_stays],
    tells="Your letters stand in parentheses. A letter alone is asked for: "
    '`"b"`, not `"(b)"`.',
)
def letters_in_parentheses():
    return {
        "cache": "(b)",
        "live": "(d)",
        "gain": "(b)",
        "start": "(c)",
        "first": "(a)",
        "stuck": "(c)",
    }


@wrong(
    breaks=[hidden_tests.what_the_cache_is, hidden_tests.what_lives_stays],
    tells="You return the letters without the names of their questions. A dict "
    "with the names as keys is asked for.",
)
def letters_in_a_list():
    return list("bdbcac")
