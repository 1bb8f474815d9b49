"""What is checked in chapter 13: data loading."""

import functools
import string
from typing import Any

import torch

from course_grader.checks import (
    Case,
    Draw,
    Result,
    Rule,
    check,
    gives_no_warning,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
)

from . import probes

DOUBLE = torch.float64


def readable(rule: Rule) -> Rule:
    """The rule, for which data of another form than a probe gives are wrong."""

    @functools.wraps(rule)
    def judged(case: Case, seen: Result, expected: Result) -> str | None:
        try:
            return rule(case, seen, expected)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return "What came back does not have the form it should have."

    return judged


def a_seed(draw: Draw) -> int:
    return draw.integer(1, 2**31)


# make_loaders


def sets(
    draw: Draw,
    num_train: int,
    batch_size: int,
    tail: str | None = "drop",
    *,
    num_validation: int | None = None,
    form: str = "value",
    num_epochs: int = 2,
    train_first: bool = False,
    seed: int | None = None,
) -> Case:
    """Two datasets of drawn, distinct values, and what is asked for them."""
    if num_validation is None:
        num_validation = draw.integer(3, 9)
    values = draw.normal(num_train + num_validation, dtype=DOUBLE)
    return {
        "train": values[:num_train].contiguous(),
        "validation": values[num_train:].contiguous(),
        "batch_size": batch_size,
        "seed": a_seed(draw) if seed is None else seed,
        "other_seed": a_seed(draw),
        "global_seed": a_seed(draw),
        "tail": tail,
        "form": form,
        "num_epochs": num_epochs,
        "train_first": train_first,
    }


def some(draw: Draw, remainder: int, tail: str | None, **options: Any) -> Case:
    """Batches of a drawn size, and so many samples that `remainder` are left."""
    batch_size = draw.integer(max(remainder, 2) + 1, 12)
    num_batches = draw.integer(2, 7)
    num_train = num_batches * batch_size + remainder
    return sets(draw, num_train, batch_size, tail, **options)


@readable
def right_sizes(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if not data["is a DataLoader"]:
        return "The training loader is no `DataLoader`."
    if not data["collated"]:
        return "The batches are not what PyTorch's own collating makes."
    if data["twice"]:
        return "Within one epoch a sample comes twice."
    if data["foreign"]:
        return "The training loader holds what is not in the training set."
    for found, wanted in zip(data["sizes"], right["sizes"], strict=True):
        if found == wanted:
            continue
        if not found:
            return "The training loader gives no batch at all."
        if sum(found) < sum(wanted):
            return "Samples are missing that should be in the epoch."
        if 1 in found:
            return "A training batch holds a single sample."
        if sum(found) > sum(wanted):
            return "There are samples in the epoch that should be left out."
        return (
            "All samples are there, but they are cut into other batches than "
            "the text asks for."
        )
    if data["batches"] != right["batches"]:
        return "`len()` of the training loader is not its number of batches."
    if data["num_seen"] != right["num_seen"]:
        return "Not as many different samples as there should be."
    return None


@check(
    "make_loaders",
    probe=probes.training_epochs,
    weight=2,
    rule=right_sizes,
    says='`tail="drop"`: all batches are full, N mod `batch_size` samples are '
    "left out",
    corners=[
        "this is what is done if no `tail` is given",
        "no sample comes twice in an epoch; `len` of the loader is its number "
        "of batches",
    ],
)
def drops_the_tail(draw: Draw) -> list[Case]:
    return [
        some(draw, 1, "drop"),
        some(draw, draw.integer(2, 6), "drop"),
        some(draw, 0, "drop"),
        *(
            sets(draw, n, b, "drop")
            for n, b in ((16, 16), (17, 16), (5, 4), (18, 4), (3, 2), (2, 2))
        ),
        some(draw, 1, None),
    ]


@check(
    "make_loaders",
    probe=probes.training_epochs,
    weight=2,
    rule=right_sizes,
    says='`tail="merge"`: a lone last sample joins the batch before it, which '
    "then has `batch_size` + 1",
    corners=["`len` of the loader is its number of batches"],
)
def merges_a_lone_sample(draw: Draw) -> list[Case]:
    return [
        some(draw, 1, "merge"),
        some(draw, 1, "merge", num_epochs=3),
        *(
            sets(draw, n, b, "merge")
            for n, b in ((17, 16), (5, 4), (17, 4), (3, 2), (5, 2))
        ),
    ]


@check(
    "make_loaders",
    probe=probes.training_epochs,
    rule=right_sizes,
    says='`tail="merge"`: any other last batch stays as it is, even where it is '
    "the only one",
)
def keeps_other_tails(draw: Draw) -> list[Case]:
    return [
        some(draw, draw.integer(2, 6), "merge"),
        some(draw, 2, "merge"),
        some(draw, 0, "merge"),
        *(
            sets(draw, n, b, "merge")
            for n, b in ((2, 16), (3, 4), (5, 16), (18, 16), (16, 4), (4, 2))
        ),
    ]


@readable
def about_refusals(case: Case, seen: Result, expected: Result) -> str | None:
    when, wanted = seen.data["when"], expected.data["when"]
    size, count = case["batch_size"], len(case["train"])
    if wanted == "at once" and when != "at once":
        if size < 2:
            which = "A batch size of less than 2"
        elif count < 2:
            which = "A training set of one sample, or of none,"
        else:
            which = 'tail="drop" with fewer samples than a batch'
        if when == "later":
            return (
                f"{which} raises only when the loader is gone through. "
                "`make_loaders` itself must raise."
            )
        return f"{which} is accepted; it must raise a ValueError."
    if wanted == "never" and when != "never":
        return "A training set that can be trained on is refused."
    if seen.data["sizes"] != expected.data["sizes"]:
        return "What is accepted is not cut into the right batches."
    return None


@check(
    "make_loaders",
    probe=probes.refused_or_not,
    weight=2,
    rule=about_refusals,
    says="where training cannot work `make_loaders` raises a `ValueError`, at "
    "once, and never where it can",
    corners=[
        'a `batch_size` of less than 2, one sample or none, `tail="drop"` '
        "with fewer samples than a batch"
    ],
)
def refuses_the_impossible(draw: Draw) -> list[Case]:
    enough = draw.integer(3, 20)
    return [
        *(sets(draw, n, 1, tail) for n in (1, 2, 17) for tail in TAILS),
        *(
            sets(draw, n, b, tail)
            for n, b in ((1, 4), (0, 4))
            for tail in TAILS
        ),
        *(sets(draw, n, b, "drop") for n, b in ((3, 4), (5, 16), (15, 16))),
        sets(draw, enough, 0, draw.choice(TAILS)),
        sets(draw, enough, -draw.integer(1, 9), draw.choice(TAILS)),
        sets(draw, enough, enough + 1, "drop"),
        # and what can be trained on
        *(sets(draw, n, b, "merge") for n, b in ((3, 4), (2, 4), (2, 2))),
        *(sets(draw, n, b, "drop") for n, b in ((4, 4), (2, 2), (18, 4))),
        sets(draw, enough, enough, "drop"),
        sets(draw, enough, enough - 1, "drop"),
        sets(draw, enough + 1, enough + 9, "merge"),
    ]


TAILS = ("drop", "merge")


@readable
def about_words(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data == expected.data:
        return None
    if case["tail"] not in TAILS:
        return "Another word for `tail` does not raise a ValueError at once."
    # what is done then is the business of other checks
    if seen.data["when"] != "never":
        return "A word that is known is refused, or its loader raises an error."
    if not seen.data["sizes"]:
        return "With a word that is known there is no batch."
    return None


@check(
    "make_loaders",
    probe=probes.refused_or_not,
    rule=about_words,
    says='any `tail` but `"drop"` and `"merge"` raises a `ValueError`',
)
def refuses_other_words(draw: Draw) -> list[Case]:
    letters = string.ascii_lowercase
    drawn = "".join(draw.choice(letters) for _ in range(6))
    words = ("Drop", "keep", "", drawn, "merged", " drop", "merge\n")
    good = draw.integer(3, 9)
    return [
        *(sets(draw, 8, 4, word) for word in words),
        sets(draw, 4 * good, good, "drop"),
        sets(draw, 4 * good + 2, good, "merge"),
    ]


@readable
def validates_all(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if not data["is a DataLoader"]:
        return "The validation loader is no `DataLoader`."
    if not data["collated"]:
        return "The batches are not what PyTorch's own collating makes."
    for found, wanted in zip(data["values"], right["values"], strict=True):
        if found == wanted:
            continue
        if sorted(found) == sorted(wanted):
            return "The validation samples come in another order."
        if len(found) < len(wanted):
            return "Validation leaves samples out."
        return "Validation does not give every sample exactly once."
    if data["sizes"] != right["sizes"]:
        return "The validation batches are of other sizes."
    if data["batches"] != right["batches"]:
        return "`len()` of the validation loader is not its number of batches."
    return None


@check(
    "make_loaders",
    probe=probes.validation_epochs,
    weight=2,
    rule=validates_all,
    says="validation gives every sample once and in order, in batches of "
    "`batch_size`, a lone one too",
    corners=[
        "there is at least one sample; `len` of the loader is its number of "
        "batches"
    ],
)
def validation_is_whole(draw: Draw) -> list[Case]:
    size = draw.integer(3, 8)
    return [
        sets(draw, 17, 4, "drop", num_validation=17),
        sets(draw, 17, 4, "merge", num_validation=17),
        sets(draw, 8, 4, "drop", num_validation=1),
        sets(draw, 8, 4, "merge", num_validation=3),
        sets(draw, 8, 4, "drop", num_validation=2, form="dict"),
        sets(draw, 16, 16, "merge", num_validation=18, train_first=True),
        sets(draw, 2 * size, size, "drop", num_validation=3 * size + 1),
        sets(draw, 2 * size, size, "merge", num_validation=2 * size),
        sets(draw, size - 1, size, "merge", num_validation=size + 1),
    ]


@readable
def about_the_network(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if data["failed"] == "train":
        return "The network raised a ValueError in training."
    if data["failed"]:
        return "The network raised a ValueError in validation."
    if data["steps"] != right["steps"] or data["rows"] != right["rows"]:
        return "The network was not trained or validated on the right rows."
    return None


@check(
    "make_loaders",
    probe=probes.network_trained,
    rule=about_the_network,
    says="a network with batch normalization trains and validates for an epoch",
)
def trains_a_network(draw: Draw) -> list[Case]:
    return [
        *(
            sets(draw, n, b, tail, num_validation=v)
            for n, b, v in ((17, 4, 5), (5, 2, 1), (17, 16, 17), (4, 4, 3))
            for tail in TAILS
        ),
        some(draw, 1, "merge"),
        some(draw, 1, "drop"),
    ]


@readable
def about_the_order(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    known = set(case["train"].tolist())
    if not known.issuperset(data["seen"]) or (
        len(data["seen"]) < len(expected.data["seen"]) - 1
    ):
        return "An epoch does not hold the samples of the training set."
    for fact, words in (
        ("shuffled", "The training samples are not shuffled."),
        ("spread", "Neighbours in the dataset stay neighbours in an epoch."),
        ("epochs differ", "Two epochs have the same order."),
        (
            "neighbours change",
            "The same samples follow each other in every epoch: each is the "
            "one before, rolled or turned round.",
        ),
        ("again", "The same seed does not give the same order again."),
        ("other global seed", "The order depends on the global generators."),
        ("others draw", "The order changes when others draw random numbers."),
        (
            "with validation",
            "The order changes when the validation loader is gone through "
            "between the epochs.",
        ),
        (
            "measured",
            "The order changes when somebody asks for `len()` of the loader.",
        ),
        (
            "beside others",
            "The order changes when other loaders, made later, are gone through "
            "between the epochs.",
        ),
        ("seeds differ", "Another `seed` gives the same order."),
        (
            "a large one differs",
            f"The seeds 0 and {probes.LARGE_SEED} give the same order.",
        ),
        ("batch size", "The order depends on `batch_size`."),
        (
            "others left out",
            "The same samples are left out in every epoch. They never train "
            "the network: shuffle all samples, then drop the rest.",
        ),
        (
            "places change",
            "One place of the epoch always holds the same sample. All samples "
            "are to be shuffled.",
        ),
    ):
        if data[fact] is not True:
            return words
    return None


@check(
    "make_loaders",
    probe=probes.order_of_training,
    weight=2,
    rule=about_the_order,
    also=[leaves_state_alone],
    says="the training order is shuffled anew in each epoch, and hangs on "
    "`seed` and the epochs before alone",
    corners=[
        "not on the global generators, on `batch_size`, on `len` of the loader "
        "or on whether the validation loader, or another pair, is gone through",
        "each epoch leaves out other samples",
        "`seed` may be 0",
        "a dataset may look its index up in a dict, or make a file's name of "
        "it: indices are integers, and no tensors",
        "whether an epoch that somebody breaks off counts as one that came "
        "before is up to you",
        "no setting of PyTorch is changed",
    ],
)
def order_hangs_on_the_seed(draw: Draw) -> list[Case]:
    size = draw.integer(4, 9)
    return [
        sets(draw, 40 + size, size, "drop", num_epochs=3),
        sets(draw, 6 * size + 1, size, "merge", num_epochs=3),
        sets(draw, 36 + size, size, "merge", num_epochs=3),
        sets(draw, 8 * size, size, "drop", form="pair"),
        sets(draw, 4 * size + 2, size, "merge", num_epochs=12),
        sets(draw, 4 * size + 1, size, "merge", num_epochs=12),
        sets(draw, 4 * size + 2, size, "drop", num_epochs=12),
        sets(draw, 40 + size, size, draw.choice(TAILS), seed=0),
    ]


@readable
def about_seeding(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["torch"] is not True:
        return "PyTorch's global generator has been seeded."
    if seen.data["others"] is not True:
        return "The global generators of Python or NumPy have been touched."
    if seen.data.get("in workers"):
        return (
            "In a worker the global generator of Python or NumPy has been "
            "seeded. PyTorch has done that, with a seed for each worker."
        )
    if seen.data["put back"] is not False:
        return (
            "A global generator is seeded for a moment and then put back. Draw "
            "from a generator of your own."
        )
    # what becomes of the last batch is the business of other checks
    size = case["batch_size"]
    found, wanted = seen.data.get("sizes"), expected.data.get("sizes")
    if wanted and abs(sum(found) - sum(wanted)) > size:
        return "An epoch does not hold what it should."
    found, wanted = seen.data.get("samples"), expected.data.get("samples")
    if wanted and not nearly_all(found, wanted, size):
        return "An epoch does not hold what it should."
    return None


def nearly_all(found: list[float], wanted: list[float], size: int) -> bool:
    """Whether these are the samples, but for a last batch at most."""
    missing = len(wanted) - len(found)
    return {*found} <= {*wanted} and abs(missing) <= size


@check(
    "make_loaders",
    probe=probes.seed_left_alone,
    rule=about_seeding,
    says="the global generators of PyTorch, NumPy and Python are not seeded: "
    "no `torch.manual_seed`",
    corners=["nor for a moment, with their state put back at once"],
)
def global_seed_is_kept(draw: Draw) -> list[Case]:
    return [some(draw, 2, "drop"), some(draw, 1, "merge"), some(draw, 3, None)]


@check(
    "make_loaders",
    probe=probes.training_epochs,
    rule=right_sizes,
    says="samples may be pairs or dicts; batches are what PyTorch's own "
    "collating makes of them",
)
def collates_as_usual(draw: Draw) -> list[Case]:
    return [
        some(draw, 2, "merge", form="pair"),
        some(draw, 2, "merge", form="dict"),
        some(draw, 0, "drop", form="pair"),
        some(draw, 0, "drop", form="dict"),
        some(draw, 1, "merge", form="looked up"),
        some(draw, 3, "merge", form="looked up"),
        some(draw, 1, "drop", form="looked up"),
    ]


@readable
def about_reading(case: Case, seen: Result, expected: Result) -> str | None:
    read, right = seen.data["read"], expected.data["read"]
    if seen.data["handed out"] != expected.data["handed out"]:
        return "The epochs hold more or fewer samples than they should."
    if read[0] != right[0]:
        return "Samples are read while the loader is made."
    last = read[-1] if isinstance(read[-1], list) else [read[-1]]
    wanted_last = right[-1] if isinstance(right[-1], list) else [right[-1]]
    if 0 in last:
        return (
            "No sample is read in this process: your loader starts workers "
            "that nobody asked for."
        )
    for found, wanted in zip(
        seen.data["at first"], expected.data["at first"], strict=True
    ):
        if found > wanted + case["batch_size"]:
            return (
                "When the first batch comes, many more samples than its own "
                "have been read. Read each when its turn comes."
            )
    if any(a > b for a, b in zip(last, wanted_last, strict=True)):
        return "More samples are read than are handed out."
    if read != right:
        return (
            "Not every sample of an epoch is read, once, when its turn comes: "
            "a dataset that augments its samples would not get to do so."
        )
    return None


@check(
    "make_loaders",
    probe=probes.reading,
    rule=about_reading,
    says="samples are read in each epoch anew, when their turn comes, and none "
    "before",
    corners=["in this process: there are no workers"],
)
def reads_in_turn(draw: Draw) -> list[Case]:
    return [
        some(draw, 2, "merge", num_epochs=3),
        some(draw, 0, "drop"),
        some(draw, draw.integer(1, 5), "drop"),
        some(draw, 0, "merge", form="pair"),
        sets(draw, 40 + draw.integer(0, 9), 4, "merge", num_validation=41),
    ]


# bytes_ahead

DTYPES = (
    "uint8",
    "bool",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def batches(
    draw: Draw, sample: Any, num_workers: int | None = None, **given: Any
) -> Case:
    """Drawn sizes for a sample; a node of `probes.sample_of`."""
    workers = draw.integer(1, 6) if num_workers is None else num_workers
    case = {
        "sample": sample,
        "batch_size": draw.integer(2, 99),
        "num_workers": workers,
        "prefetch_factor": draw.integer(2, 9),
    }
    return {**case, **given}


def empty(draw: Draw, dtype: str, num_dims: int = 3) -> tuple[str, Any]:
    """A tensor of a drawn shape."""
    shape = [draw.integer(2, 9) for _ in range(num_dims)]
    return "empty", (shape, dtype)


def number(draw: Draw, kind: str) -> tuple[str, Any]:
    """A Python number."""
    return "number", {
        "int": draw.integer(300, 10**6),
        "float": float(draw.uniform(1)),
        "bool": draw.integer(0, 2) == 1,
    }[kind]


@readable
def right_bytes(case: Case, seen: Result, expected: Result) -> str | None:
    given, right = seen.data["bytes"], expected.data["bytes"]
    if type(given) is not int:
        return "What is returned is no Python int."
    if given == right:
        return None
    each = case["batch_size"] * case["num_workers"]
    what = FORMS.get(case["sample"][0], "a sample of this form")
    if case["sample"][0] in VIEWS:
        return f"The number of bytes is wrong for {what}."
    if right == 0:
        return "Something is counted that takes no shared memory."
    if given == 0:
        return "Nothing is counted."
    # a number of half the size would look the same
    ahead = case.get("prefetch_factor") or 2
    if given * ahead == right and case["sample"][0] != "number":
        return "The batches that each worker keeps ahead are not all counted."
    if (
        given
        == right
        + right
        // (each * (case.get("prefetch_factor") or 2))
        * (case["batch_size"])
    ):
        return "One batch too many is counted: only those ahead count."
    return f"The number of bytes is wrong for {what}."


FORMS = {
    "tensor": "a tensor",
    "empty": "a tensor",
    "twice": "a sample that holds the same thing twice",
    "expanded": "an expanded tensor",
    "slice": "a slice of a tensor",
    "strided": "a view that is not contiguous",
    "array": "a NumPy array",
    "array view": "a view of a NumPy array",
    "scalar": "a NumPy scalar",
    "number": "a Python number",
    "list": "a list",
    "tuple": "a tuple",
    "named": "a named tuple",
    "dict": "a dict",
    "numbered": "a dict whose keys are numbers",
    "ordered": "an OrderedDict",
}
VIEWS = ("expanded", "slice", "strided", "array view")


@readable
def keeps_the_sample(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["kept"] is not True:
        return "The sample is not what it was before: you changed it."
    return None


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    weight=2,
    rule=right_bytes,
    says="a tensor of any shape and dtype: workers · prefetch · batch · "
    "bytes, as a Python int",
)
def counts_tensors(draw: Draw) -> list[Case]:
    return [
        *(batches(draw, empty(draw, dtype, 2)) for dtype in DTYPES),
        *(batches(draw, empty(draw, "float32", n)) for n in (0, 1, 4)),
        batches(draw, ("empty", ([0, 3], "float32"))),
        batches(draw, empty(draw, "float32"), batch_size=1),
        batches(draw, empty(draw, "float32"), prefetch_factor=1),
        batches(draw, empty(draw, "float32"), num_workers=1),
        batches(
            draw, empty(draw, "float32"), num_workers=draw.integer(65, 300)
        ),
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    rule=right_bytes,
    says="a view counts with what it shows, not with the memory behind it",
    corners=[
        "an expanded tensor counts in full, a slice of a large one as a slice"
    ],
)
def counts_what_a_view_shows(draw: Draw) -> list[Case]:
    a = draw.integer(4, 9)
    return [
        batches(draw, ("expanded", (draw.normal(a), draw.integer(3, 9)))),
        batches(draw, ("slice", (draw.normal(5 * a, 3), draw.integer(1, 4)))),
        batches(draw, ("strided", draw.normal(6, a))),
        batches(draw, ("array view", draw.normal(2 * a, 3))),
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    rule=right_bytes,
    says="Python numbers: int and float 8 bytes, bool 1",
    corners=["a member of an `IntEnum` is an int"],
)
def counts_numbers(draw: Draw) -> list[Case]:
    return [batches(draw, number(draw, kind)) for kind in ("int", "float")] + [
        batches(draw, ("number", True)),
        batches(draw, ("number", False)),
        batches(draw, ("number", draw.integer(-9, 9))),
        batches(draw, ("tuple", [number(draw, "bool"), number(draw, "int")])),
        batches(draw, ("dict", {"label": number(draw, "int")})),
        batches(draw, ("dict", {"label": ("member", draw.integer(0, 2))})),
        batches(draw, ("list", [number(draw, "float") for _ in range(3)])),
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    rule=right_bytes,
    says="NumPy arrays and NumPy scalars, with their dtype",
)
def counts_numpy(draw: Draw) -> list[Case]:
    small = draw.integer(0, 9)
    return [
        batches(draw, ("array", draw.normal(3, draw.integer(2, 9)))),
        batches(draw, ("array", draw.integers(0, 9, 5, dtype=torch.int16))),
        batches(draw, ("array", draw.normal(4, dtype=DOUBLE))),
        batches(draw, ("array", draw.normal())),
        batches(draw, ("array", draw.integers(0, 9, dtype=torch.int16))),
        *(
            batches(draw, ("scalar", (small, dtype)))
            for dtype in (
                "float32",
                "float64",
                "float16",
                "int64",
                "uint8",
                "bool_",
            )
        ),
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    rule=right_bytes,
    says="strings count nothing, beside tensors and alone",
    corners=["no case has NumPy's strings"],
)
def strings_count_nothing(draw: Draw) -> list[Case]:
    word = "".join(draw.choice("abcdef") for _ in range(draw.integer(3, 20)))
    image = empty(draw, "uint8")
    return [
        batches(draw, ("string", word)),
        batches(draw, ("tuple", [image, ("string", word)])),
        batches(draw, ("dict", {"x": image, "path": ("string", word)})),
        batches(draw, ("list", [("string", word), ("string", "cat"), image])),
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    weight=2,
    rule=right_bytes,
    says="dicts, lists, tuples and named tuples, nested",
    corners=["the same tensor at two places counts twice"],
)
def counts_nested_samples(draw: Draw) -> list[Case]:
    def one(dims: int = 1) -> tuple[str, Any]:
        return empty(draw, draw.choice(("uint8", "float32", "int64")), dims)

    same = empty(draw, "float32", 2)
    deep = ("dict", {"a": ("list", [one(), one()]), "b": ("tuple", [one()])})
    return [
        batches(draw, ("tuple", [one(3), one()])),
        batches(draw, ("list", [same, same, same])),
        batches(draw, ("twice", same)),
        batches(draw, ("twice", ("array", draw.normal(draw.integer(2, 9))))),
        batches(draw, ("numbered", [one(), one(2)])),
        batches(draw, ("ordered", {"x": one(2), "y": one()})),
        batches(draw, ("list", [("tuple", [("list", [deep, one()])])])),
        batches(draw, ("dict", {"one": same, "two": same})),
        batches(draw, ("list", [one(), one(), one()])),
        batches(draw, ("dict", {"x": one(2), "y": one()})),
        batches(draw, ("named", [one(2), one()])),
        batches(draw, deep),
        batches(draw, ("tuple", [one(), ("dict", {"again": deep})])),
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    rule=right_bytes,
    says="without workers nothing; `prefetch_factor=None`, or left out, is 2",
)
def workers_and_prefetch(draw: Draw) -> list[Case]:
    unsaid = batches(draw, empty(draw, "float32"))
    del unsaid["prefetch_factor"]
    return [
        batches(draw, empty(draw, "float32"), num_workers=0),
        batches(
            draw, empty(draw, "uint8"), num_workers=0, prefetch_factor=None
        ),
        batches(draw, empty(draw, "float32"), prefetch_factor=None),
        unsaid,
    ]


@check(
    "bytes_ahead",
    probe=probes.bytes_of_batches,
    rule=right_bytes,
    also=[
        leaves_rng_alone,
        leaves_state_alone,
        leaves_inputs_alone,
        keeps_the_sample,
    ],
    says="huge batches: at once, to the byte; and the sample stays as it is",
    corners=[
        "the pages to which the system rounds up, and the batch that the "
        "training loop holds, are left out",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def huge_batches(draw: Draw) -> list[Case]:
    def odd() -> int:
        return 2 * draw.integer(5 * 10**7, 10**8) + 1

    return [
        batches(draw, ("tensor", draw.normal(3, 5, 7)), batch_size=odd()),
        batches(draw, empty(draw, "bool"), batch_size=odd() * 10**9 + 1),
        batches(draw, ("array", draw.normal(11, 9)), batch_size=odd()),
        batches(draw, number(draw, "float"), batch_size=odd()),
        batches(draw, ("strided", draw.normal(6, 5)), batch_size=odd()),
        *(
            batches(draw, sample, batch_size=odd())
            for sample in (
                ("dict", {"x": empty(draw, "uint8"), "y": ("number", 7)}),
                ("list", [empty(draw, "uint8"), ("list", [("number", 7)])]),
            )
        ),
    ]


# fitting_loader


def budget(
    draw: Draw,
    num_workers: int | None,
    prefetch_factor: int | None,
    batches_with_room: int,
    *,
    device: str = "cpu",
    short: bool = False,
    exactly: bool = False,
    form: str = "value",
    num_samples: int | None = None,
    num_epochs: int = 2,
    batch_bytes: int | None = None,
    seed: int | None = None,
) -> Case:
    """Shared memory in which so many batches have room; if `exactly`, not a byte
    more, and if `short`, one byte less."""
    if batch_bytes is None:
        batch_bytes = draw.integer(100, 10**6)
    left_over = 0 if exactly or short else draw.integer(0, batch_bytes)
    free_bytes = batches_with_room * batch_bytes + left_over - short
    batch_size = draw.integer(3, 8)
    if num_samples is None:
        num_samples = batch_size * draw.integer(3, 6) + draw.integer(1, 3)
    return {
        "values": draw.normal(num_samples, dtype=DOUBLE),
        "batch_size": batch_size,
        "batch_bytes": batch_bytes,
        "free_bytes": max(free_bytes, 0),
        "device": device,
        "seed": a_seed(draw) if seed is None else seed,
        "other_seed": a_seed(draw),
        "num_workers": num_workers,
        "prefetch_factor": prefetch_factor,
        "form": form,
        "num_epochs": num_epochs,
    }


def wrong_workers(workers: int, wanted: int) -> str:
    if workers > wanted:
        return (
            "There are more workers than fit into the shared memory, or than "
            "were asked for."
        )
    return "There are fewer workers than fit into the shared memory."


def prefetch_for(case: Case, workers: int) -> int:
    """The largest prefetch factor that fits with so many workers; 0 for none."""
    asked = case["prefetch_factor"]
    ahead = case["free_bytes"] // case["batch_bytes"] - 1
    return max(0, min(2 if asked is None else asked, ahead // workers))


def about_the_choice(*keys: str) -> Rule:
    """A rule about these settings. The batch size, which is drawn, always
    counts."""
    words = {
        "batch_size": "The loader has another batch size than it was given.",
        "prefetch": "The prefetch factor is not the largest that fits.",
        "stay": "Workers stay from epoch to epoch if there are some, and only "
        "then: the loader is set otherwise.",
        "pinned": "Memory is pinned for a CUDA device, and for no other: the "
        "loader is set otherwise.",
        "left to PyTorch": "The loader is told how to start its workers. That "
        "was to be left to PyTorch: give no `multiprocessing_context`.",
        "functions of a module": "The loader has a lambda, or a function "
        "within a function, for its workers. Where they are started afresh "
        "it has to be pickled, and cannot be.",
        "program kept": "You set how the whole program starts its processes. "
        "That was to be left to PyTorch.",
    }

    @readable
    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        data, right = seen.data, expected.data
        if not data["is a DataLoader"]:
            return "What is returned is no `DataLoader`."
        workers, wanted = data["workers"], right["workers"]
        if "workers" in keys and workers != wanted:
            return wrong_workers(workers, wanted)
        for key in ("batch_size", *keys):
            if key in ("stay", "prefetch") and workers != wanted:
                # Their number is the matter of another check: here it is
                # whether the setting is right for those that there are.
                if not workers or (key == "prefetch" and not wanted):
                    return wrong_workers(workers, wanted)
                best = {
                    "stay": True,
                    "prefetch": prefetch_for(case, workers),
                }[key]
                if data[key] != best:
                    return words[key]
            elif data[key] != right[key]:
                return words[key]
        return None

    return rule


@check(
    "fitting_loader",
    probe=probes.chosen,
    weight=2,
    rule=about_the_choice("workers"),
    says="as many workers as fit with one batch ahead each and one more, "
    "`num_workers` at most",
    corners=[
        "2 at most if `num_workers` is not given",
        "`batch_bytes` is 1 or more",
    ],
)
def workers_that_fit(draw: Draw) -> list[Case]:
    n = draw.integer(2, 6)
    return [
        budget(draw, n, 2, 2 * n + 5),
        budget(draw, n + 1, 3, n + 1),
        budget(draw, n, 4, n + 1, exactly=True),
        budget(draw, n, 4, n + 1, short=True),
        budget(draw, 8, 1, draw.integer(4, 8)),
        budget(draw, 1, 5, 3),
        budget(draw, None, 2, 9),
        # one batch more would fit with fewer workers
        *(budget(draw, n, 4, n + 2, exactly=True) for n in (3, 5)),
        budget(draw, n, 2, n + 1, batch_bytes=draw.integer(1, 3)),
        budget(draw, n, 2, 2 * n + 1, batch_bytes=10**13 + n),
        budget(draw, draw.integer(10, 20), 1, 99),
    ]


@check(
    "fitting_loader",
    probe=probes.chosen,
    weight=2,
    rule=about_the_choice("prefetch"),
    says="then the largest prefetch factor that fits, `prefetch_factor` at most",
    corners=["2 at most if `prefetch_factor` is not given"],
)
def prefetch_that_fits(draw: Draw) -> list[Case]:
    n, p = draw.integer(2, 5), draw.integer(3, 6)
    return [
        budget(draw, n, p, n * p + 9),
        budget(draw, n, p, n * p + 1, exactly=True),
        budget(draw, n, p, n * p + 1, short=True),
        budget(draw, n, p + 3, n * p + n // 2 + 1),
        budget(draw, n, 1, 99),
        budget(draw, 1, draw.integer(20, 90), 99),
        budget(draw, n, None, 99),
        budget(draw, n + 1, p, n + 2, exactly=True),
        budget(draw, 1, p, p),
    ]


@check(
    "fitting_loader",
    probe=probes.chosen,
    rule=about_the_choice("workers", "prefetch"),
    says="no workers where not even one fits, and where none were asked for",
)
def no_room_for_workers(draw: Draw) -> list[Case]:
    return [
        budget(draw, 2, 2, 2, short=True),
        budget(draw, 2, 2, 1),
        budget(draw, 4, 3, 0),
        budget(draw, 3, 2, 0, exactly=True),
        budget(draw, 0, 2, 50),
        budget(draw, 0, 2, 0, exactly=True),
        budget(draw, 2, 2, 2, exactly=True),
    ]


@check(
    "fitting_loader",
    probe=probes.chosen,
    rule=about_the_choice("stay"),
    says="workers stay alive from epoch to epoch, where there are some",
)
def workers_stay(draw: Draw) -> list[Case]:
    return [
        budget(draw, 2, 2, 9),
        budget(draw, 3, 2, 2),
        budget(draw, 1, 1, 5),
        budget(draw, 0, 2, 9),
        budget(draw, 2, 2, 1),
    ]


@check(
    "fitting_loader",
    probe=probes.ways_of_starting,
    rule=about_the_choice(
        "left to PyTorch", "program kept", "functions of a module"
    ),
    says="how workers are started is left to PyTorch: no start method is named",
    corners=[
        "nor does the loader hold what could not be sent to workers that are "
        "started afresh: no lambda, and no function within a function"
    ],
)
def starting_is_left_to_pytorch(draw: Draw) -> list[Case]:
    return [
        budget(draw, 2, 2, 9),
        budget(draw, draw.integer(1, 6), 3, 4),
        budget(draw, 0, 2, 9),
    ]


@check(
    "fitting_loader",
    probe=probes.chosen,
    rule=about_the_choice("pinned"),
    says="memory is pinned for CUDA devices and for no others, with workers "
    "and without",
)
def pinned_for_cuda(draw: Draw) -> list[Case]:
    devices = ("cuda", "cuda:1", "cpu", "mps", "meta")
    return [
        *(budget(draw, 2, 2, 9, device=device) for device in devices),
        budget(draw, 0, 2, 9, device="cuda"),
        budget(draw, 2, 2, 1, device="cuda:0"),
        budget(draw, 0, 2, 9),
    ]


@readable
def about_epochs(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if not data["is a DataLoader"]:
        return "What is returned is no `DataLoader`."
    if not data["collated"]:
        return "The batches are not what PyTorch's own collating makes."
    if data["twice"] or data["foreign"]:
        return (
            "Within one epoch a sample comes twice, or one that is not there."
        )
    if data["num_seen"] != right["num_seen"]:
        return "Samples are missing in an epoch."
    if data["sizes"] != right["sizes"]:
        return "The batches are not of the size that was asked for."
    for fact, words in (
        ("shuffled", "The samples are not shuffled."),
        ("spread", "Neighbours in the dataset stay neighbours in an epoch."),
        ("epochs differ", "Two epochs have the same order."),
        (
            "again",
            "The same seed does not give the same order again when others "
            "use the global generator, or go through another such loader "
            "between the epochs.",
        ),
        ("seeds differ", "Another `seed` gives the same order."),
        (
            "a large one differs",
            f"The seeds 0 and {probes.LARGE_SEED} give the same order.",
        ),
        ("cut otherwise", "The order changes with the batch size."),
        (
            "more room",
            "The order changes with the memory, or with what is prefetched.",
        ),
    ):
        if data[fact] is not True:
            return words
    return None


@check(
    "fitting_loader",
    probe=probes.epochs_without_workers,
    weight=2,
    timeout_s=60.0,
    rule=about_epochs,
    also=[leaves_state_alone, gives_no_warning],
    says="every epoch has each sample once, in an order that hangs on `seed` "
    "and the epochs before alone; without workers nothing warns",
    corners=[
        "in batches of `batch_size`, as PyTorch's own collating makes them; "
        "the last may be smaller",
        "not on the batch size, the memory, the global generators or other loaders "
        "that are gone through",
        "`seed` may be 0",
        "a dataset may look its index up in a dict, or make a file's name of "
        "it: indices are integers, and no tensors",
        "whether an epoch that somebody breaks off counts as one that came "
        "before is up to you",
        "no setting of PyTorch is changed",
    ],
)
def each_sample_once(draw: Draw) -> list[Case]:
    def samples() -> int:
        return draw.integer(25, 40)

    return [
        budget(
            draw,
            0,
            2,
            9,
            form="looked up",
            num_samples=samples(),
            num_epochs=3,
        ),
        budget(draw, 2, 2, 1, num_samples=samples(), num_epochs=12),
        budget(draw, 0, 2, 9, form="pair", num_samples=samples()),
        budget(draw, 0, 2, 0, form="dict", num_samples=samples()),
        budget(draw, 0, 2, 9, num_samples=samples(), seed=0),
    ]


@check(
    "fitting_loader",
    probe=probes.reading_alone,
    timeout_s=60.0,
    rule=about_reading,
    says="samples are read in each epoch anew, when their turn comes, and none "
    "before",
)
def loader_reads_in_turn(draw: Draw) -> list[Case]:
    return [
        budget(draw, 0, 2, 9, num_samples=draw.integer(20, 90), num_epochs=3),
        budget(draw, 0, 2, 9, form="pair", num_samples=draw.integer(20, 90)),
    ]


@readable
def alike_for_workers(case: Case, seen: Result, expected: Result) -> str | None:
    data = seen.data
    wanted = expected.data["samples"]
    if not nearly_all(data["samples"], wanted, case["batch_size"]):
        return "An epoch does not hold every sample once."
    if not all(data["shuffled"]):
        return "With workers, or without, the samples are not shuffled."
    if not data["in order"]:
        return "The loader may hand batches out in another order than asked."
    if not data["first epoch alike"]:
        return "With another number of workers the batches are others."
    if not data["alike"]:
        return (
            "The first epoch is the same with and without workers, a later "
            "one is not."
        )
    if data["workers"] != expected.data["workers"]:
        return "The number of workers is not the one that fits."
    return None


@check(
    "fitting_loader",
    probe=probes.batches_by_workers,
    weight=3,
    rule=alike_for_workers,
    timeout_s=60.0,
    says="each batch has the same samples with any number of workers, in every "
    "epoch",
)
def same_batches_with_workers(draw: Draw) -> list[Case]:
    return [
        {
            **budget(draw, 0, 2, 20, num_samples=draw.integer(20, 30)),
            "numbers_of_workers": numbers,
            "num_epochs": 3,
        }
        for numbers in ([0, 2], [1, 0])
    ]


@check(
    "fitting_loader",
    probe=probes.loader_seed_left_alone,
    timeout_s=60.0,
    rule=about_seeding,
    says="the global generators of PyTorch, NumPy and Python are not seeded: "
    "no `torch.manual_seed`",
    corners=[
        "in workers neither: there PyTorch has seeded them, as each worker starts",
        "nor for a moment, with their state put back at once",
    ],
)
def loader_keeps_the_global_seed(draw: Draw) -> list[Case]:
    return [budget(draw, 0, 2, 9), budget(draw, 1, 1, 3)]


# time_split


def epoch(
    draw: Draw,
    num_batches: int,
    *,
    start: bool = False,
    end: bool = False,
    synchronized: bool = False,
    fails: list[Any] | None = None,
    error: str = "Stopped",
    result: Any = None,
    late: bool = False,
    strange: bool = False,
    kind: str = "loader",
    clock: bool = True,
    unit: float = 1.0,
) -> Case:
    """What each part of an epoch takes, in multiples of unit / 64 s, which a float
    adds up exactly. If `late`, the clock has run for years; if `strange`, some batches
    are `None` and the like, pairs, or equal to everything; without `clock`, the
    learner's function is to take its own."""

    def seconds(*shape: int) -> Any:
        return (draw.integers(1, 6400, *shape).double() * unit / 64).tolist()

    return {
        "unit": unit,
        "now": seconds(1)[0] + (2**30 if late else 0),
        "start": seconds(1)[0] if start else 0.0,
        "end": seconds(1)[0] if end else 0.0,
        "loading": seconds(num_batches),
        "steps": seconds(num_batches),
        "waits": seconds(max(num_batches, 1)),
        "batches": (STRANGE if strange else [])
        + draw.normal(num_batches - len(STRANGE) * strange).tolist(),
        "synchronized": synchronized,
        "kind": kind,
        "clock": clock,
        "fails": fails,
        "error": error,
        "result": result,
    }


STRANGE = [
    *(None, 0, "", False, [], "done", "end", "stop"),
    # by name: see `probes.batch_of`
    *("an ellipsis", "equal to all", "an array", "a pair", "a dict"),
]


@readable
def right_times(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if data["type"] != "tuple" or data["types"] != ["float", "float"]:
        return "What is returned is no tuple of two floats."
    if not case["clock"]:
        if data["sensible"] is not True:
            return "Without a `clock` of the caller's the times make no sense."
        if data["own_clock"] not in (None, "perf_counter"):
            return f"Without a `clock` you read `time.{data['own_clock']}`."
        return about_the_log(data["log"], right["log"])
    waiting, working = data["times"]
    wanted_waiting, wanted_working = right["times"]
    log_tells = about_the_log(data["log"], right["log"])
    if log_tells:
        return log_tells
    if waiting != working and [working, waiting] == right["times"]:
        return "The two times are in the wrong places."
    for name, found, wanted in (
        ("waiting", waiting, wanted_waiting),
        ("working", working, wanted_working),
    ):
        if abs(found - wanted) > 1e-6 * case["unit"]:
            if any(found == round(wanted, digits) != 0 for digits in range(9)):
                return f"The time of {name} is rounded."
            if found == 0:
                return f"The time of {name} is 0, and some has passed, however little."
            more = "long" if found > wanted else "short"
            return f"The time of {name} is too {more}."
    return None


@readable
def right_times_in_peace(
    case: Case, seen: Result, expected: Result
) -> str | None:
    """The same, and the step finds what it would find without being timed."""
    wrong = right_times(case, seen, expected)
    if not wrong and seen.data["could_train"] is not True:
        return "`step` runs with gradients switched off: it could not train."
    if not wrong and seen.data["collector_kept"] is not True:
        return "In a step or afterwards the garbage collector is switched otherwise."
    return wrong


def about_the_log(found: list[str], right: list[str]) -> str | None:
    if found == right:
        return None

    def only(words: list[str], kind: str) -> list[str]:
        return [word for word in words if word.startswith(kind)]

    if only(found, "step") != only(right, "step"):
        return "`step` does not get each batch once, in order, as it came."
    if len(only(found, "iter")) != 1:
        return "The loader is not gone through exactly once."
    if len(only(found, "sync")) != len(only(right, "sync")):
        return "`synchronize` is not called once after each step."
    if only(found, "next") != only(right, "next"):
        return "Not exactly the batches of one epoch are taken."
    if "end" not in found and "end" in right:
        return "The loader was not asked to its end."
    if "end again" in found:
        return "You ask the loader for more after it has ended."
    return (
        "Things happen in another order: take a batch, step, synchronize, and "
        "only then take the next."
    )


@check(
    "time_split",
    probe=probes.epoch_timed,
    weight=2,
    rule=right_times_in_peace,
    also=[leaves_rng_alone, leaves_state_alone],
    says="the time in each `next()` is waiting, the time in each step is work",
    corners=[
        "however short it is: nothing is rounded",
        "a step may train: gradients are on in it",
        "the garbage collector is as it was, within a step and afterwards",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def times_of_the_parts(draw: Draw) -> list[Case]:
    return [
        epoch(draw, draw.integer(3, 9)),
        epoch(draw, draw.integer(3, 9)),
        epoch(draw, 1),
        epoch(draw, draw.integer(3, 6), late=True),
        epoch(draw, draw.integer(2, 5), result=draw.integer(0, 2) == 1),
        epoch(draw, draw.integer(2, 5), unit=2.0**-36),
    ]


@check(
    "time_split",
    probe=probes.epoch_timed,
    weight=2,
    rule=right_times,
    says="starting the loader is waiting, and so is finding its end",
)
def start_and_end(draw: Draw) -> list[Case]:
    return [
        epoch(draw, 3, start=True),
        epoch(draw, 4, end=True),
        epoch(draw, draw.integer(2, 6), start=True, end=True),
        epoch(draw, 0, start=True, end=True),
    ]


@check(
    "time_split",
    probe=probes.epoch_timed,
    weight=2,
    rule=right_times,
    says="`synchronize` runs once after each step, and its time is work",
    corners=[
        "in no case is `synchronize` an object that `bool()` makes `False`"
    ],
)
def synchronizes(draw: Draw) -> list[Case]:
    return [
        epoch(draw, draw.integer(3, 7), synchronized=True),
        epoch(draw, 1, synchronized=True),
        epoch(draw, 0, synchronized=True, end=True),
    ]


@check(
    "time_split",
    probe=probes.epoch_timed,
    rule=right_times,
    says="any loader that a `for` loop can go through; batches are taken one "
    "at a time, and each goes to `step` once",
    corners=[
        "a generator, an empty loader, one whose length is missing or an "
        "estimate",
        "a batch may be anything, `None` included",
        "`time.perf_counter` is the clock if none is given",
    ],
)
def takes_what_comes(draw: Draw) -> list[Case]:
    return [
        epoch(draw, draw.integer(3, 7), kind="generator"),
        epoch(draw, draw.integer(3, 7), kind="generator", start=True, end=True),
        epoch(draw, 0, kind="generator", end=True),
        epoch(draw, draw.integer(3, 7), kind="sequence"),
        epoch(draw, draw.integer(14, 18), strange=True),
        epoch(draw, draw.integer(4, 8), kind="vague"),
        epoch(draw, 2, kind="vague"),  # it says that it has none
        epoch(draw, draw.integer(3, 7), clock=False),
        epoch(draw, 0),
        epoch(draw, draw.integer(3, 7), result=0),
    ]


@readable
def lets_it_through(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if data["reached"] != right["reached"]:
        what_failed, number = case["fails"]
        called = {
            "iter": data["log"].count("iter") > 0,
            "loader": f"next {number}" in data["log"],
            "step": f"step {number}" in data["log"],
            "synchronize": data["log"].count("synchronize") > number,
        }
        if not called[what_failed]:  # what would have raised
            return about_the_log(data["log"], right["log"])
        place = {"step": "a step", "synchronize": "`synchronize`"}.get(
            case["fails"][0], "the loader"
        )
        stop = case["error"] == "StopIteration"
        what = "A StopIteration" if stop else "An exception"
        return f"{what} of {place} does not reach the caller as it is."
    if data["log"] != right["log"]:
        return "After an exception, or before it, something else happens."
    if data["elapsed"] != right["elapsed"]:
        return "What happened up to the exception took another time."
    return None


@check(
    "time_split",
    probe=probes.epoch_timed,
    rule=lets_it_through,
    says="exceptions of the loader, of the step, of `synchronize` reach the "
    "caller as they are",
    corners=[
        "a `StopIteration` raised by `step` or `synchronize`, too",
        "one of `step` or the loader even if `synchronize` would raise, too, as "
        "CUDA does after an error",
    ],
)
def exceptions_pass(draw: Draw) -> list[Case]:
    def fails(place: str, error: str, synchronized: bool = False) -> Case:
        number_of_batches = draw.integer(4, 8)
        at = draw.integer(1, number_of_batches)
        return epoch(
            draw,
            number_of_batches,
            fails=[place, at],
            error=error,
            synchronized=synchronized or place == "synchronize",
        )

    return [
        fails("step", "Stopped"),
        fails("loader", "Stopped"),
        fails("step", "StopIteration"),
        fails("step", "KeyError"),
        fails("loader", "RuntimeError"),
        epoch(draw, 2, fails=["step", 0], error="StopIteration"),
        fails("synchronize", "Stopped"),
        fails("synchronize", "StopIteration"),
        fails("step", "KeyboardInterrupt"),
        epoch(draw, 3, start=True, fails=["iter", 0]),
        fails("step", "Stopped", synchronized=True),
        fails("loader", "Stopped", synchronized=True),
    ]


# quiz


def asked(draw: Draw, question: str) -> list[Case]:
    return [{"question": question, "ticket": draw.integer(0, 10**9)}]


READ = {
    "message": "section 1, where the workers run out of memory",
    "cure": "section 5, the claims about shared memory",
    "lone": "section 5, the claim about the check beforehand: a last batch of one row",
    "dropped": "section 5, the claim about the check beforehand: what `drop_last` leaves",
    "pinned": "section 2, what pinned memory is",
    "started": "section 2, how workers are started",
}


@readable
def right_letter(case: Case, seen: Result, expected: Result) -> str | None:
    """Says where to read, not which letter is right."""
    if seen.data == expected.data:
        return None
    if seen.data["form"] == "no dict":
        return (
            "`quiz()` gives a dict whose keys are the names of the questions."
        )
    if seen.data["form"] == "no answer":
        return f"Your dict has no key `{case['question']}`."
    if seen.data["form"] == "no letter":
        return "The answer is one letter, a, b, c or d."
    return f"Not that one. Read again: {READ[case['question']]}."


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`message`: what is full",
)
def what_is_full(draw: Draw) -> list[Case]:
    return asked(draw, "message")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`cure`: what keeps workers, prefetching and batch size",
)
def which_cure(draw: Draw) -> list[Case]:
    return asked(draw, "cure")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`lone`: when training with batch normalization fails",
)
def when_it_fails(draw: Draw) -> list[Case]:
    return asked(draw, "lone")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`dropped`: what `drop_last` does with too few samples",
)
def what_is_dropped(draw: Draw) -> list[Case]:
    return asked(draw, "dropped")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`pinned`: what pinned memory is good for",
)
def what_pinning_is_for(draw: Draw) -> list[Case]:
    return asked(draw, "pinned")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`started`: why a lambda fails",
)
def how_workers_start(draw: Draw) -> list[Case]:
    return asked(draw, "started")
