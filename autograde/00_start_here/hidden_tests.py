"""What is checked in chapter 00: GPUs, devices, moves and reports."""

import math
import re

import torch
from torch import Tensor

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
from course_grader.judge.compare import Tolerance, difference

from . import probes


def with_form(case: Case, sentence: str) -> str:
    """The sentence, with the words of the case's `form` behind it."""
    if "form" not in case:
        return sentence
    return f"{sentence.rstrip('.')}, with {case['form']}."


def compared(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison; says which form of input it was."""
    found = difference(seen.data, expected.data, Tolerance())
    return with_form(case, found) if found else None


# quiz


def asked(draw: Draw, question: str) -> list[Case]:
    return [{"question": question, "ticket": draw.integer(0, 10**9)}]


READ = {
    "current": 'section 6, the claim about `torch.device("cuda")`',
    "numbers": "section 4, and move the menu of its figure",
    "assigned": "section 2, the move that goes nowhere",
    "left_behind": "section 2, the layers that stay behind",
    "busy": "what section 6 says about nvidia-smi",
    "versions": "the end of section 3",
}


def right_letter(case: Case, seen: Result, expected: Result) -> str | None:
    """Says where to read, not which letter is right."""
    if seen.data == expected.data:
        return None
    if seen.data["form"] == "no dict":
        return (
            "`quiz()` returns a dict with the names of the questions as keys."
        )
    if seen.data["form"] == "no answer":
        return f"Your dict has no key `{case['question']}`."
    if seen.data["form"] == "no letter":
        return "The answer is one of the letters a, b, c and d, and no more."
    return f"Not that one. Read again: {READ[case['question']]}."


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says='`current`: the index of `torch.device("cuda")`',
)
def which_index(draw: Draw) -> list[Case]:
    return asked(draw, "current")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`numbers`: what the program calls the card",
)
def which_number(draw: Draw) -> list[Case]:
    return asked(draw, "numbers")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`assigned`: the line whose result has to be kept",
)
def what_to_keep(draw: Draw) -> list[Case]:
    return asked(draw, "assigned")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`left_behind`: what a move does not reach",
)
def what_stays(draw: Draw) -> list[Case]:
    return asked(draw, "left_behind")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`busy`: what a utilisation of 100 % says",
)
def what_utilisation_is(draw: Draw) -> list[Case]:
    return asked(draw, "busy")


@check(
    "quiz",
    probe=probes.answer,
    rule=right_letter,
    says="`versions`: whose version `torch.version.cuda` is",
)
def whose_version(draw: Draw) -> list[Case]:
    return asked(draw, "versions")


# choose_gpus


def chosen(
    draw: Draw,
    gpus: list[int | str] | tuple[int | str, ...],
    environ: dict[str, str] | None = None,
    **options: object,
) -> Case:
    """GPUs for a process, and an environment that nobody can guess."""
    tag = f"tag-{draw.integer(0, 10**6)}"
    return {"gpus": gpus, "environ": environ or {}, "tag": tag, **options}


def some_gpus(draw: Draw, many: int, below: int = 64) -> list[int]:
    """Different numbers, the first larger than the second."""
    drawn = draw.permutation(below)[:many].tolist()
    drawn[:2] = sorted(drawn[:2], reverse=True)
    return drawn


@check(
    "choose_gpus",
    probe=probes.environment,
    weight=2,
    on=("variable",),
    rule=lambda case, seen, expected: text_of_variable(case, seen, expected),
    says="`env_for`: the GPUs as text, in the order given, between commas and "
    "without blanks",
    corners=["`gpus` is a list, a tuple or a range"],
)
def named_in_order(draw: Draw) -> list[Case]:
    return [
        chosen(draw, some_gpus(draw, 2)),
        chosen(draw, some_gpus(draw, 1)),
        chosen(draw, tuple(some_gpus(draw, 4))),
        # the text of the last number is within that of the one before
        chosen(draw, [9, draw.integer(11, 17), 1]),
        chosen(draw, [1, 4], as_range=True, form="a range"),
    ]


def text_of_variable(case: Case, seen: Result, expected: Result) -> str | None:
    got, wanted = seen.data["variable"], expected.data["variable"]
    if got is None:
        return with_form(case, "`CUDA_VISIBLE_DEVICES` is not set.")
    if not isinstance(got, str):
        return with_form(case, "`CUDA_VISIBLE_DEVICES` is no string.")
    if got == wanted:
        return None
    if got.replace(" ", "") == wanted:
        return with_form(case, "`CUDA_VISIBLE_DEVICES` has blanks in it.")
    if in_some_order(got) == in_some_order(wanted):
        return "The GPUs are in another order."
    return with_form(case, "`CUDA_VISIBLE_DEVICES` has another text.")


def in_some_order(text: str) -> list[str]:
    return sorted(text.split(","))


def gpus_of_variable(case: Case, seen: Result, expected: Result) -> str | None:
    """As `text_of_variable`; their order is the matter of another check."""
    got, wanted = seen.data["variable"], expected.data["variable"]
    if isinstance(got, str) and in_some_order(got) == in_some_order(wanted):
        return None
    return text_of_variable(case, seen, expected)


@check(
    "choose_gpus",
    probe=probes.environment,
    rule=gpus_of_variable,
    says='`env_for`: no GPUs give `""`',
)
def no_gpu_is_an_empty_text(draw: Draw) -> list[Case]:
    found = {"CUDA_VISIBLE_DEVICES": str(draw.integer(0, 8))}
    return [
        chosen(draw, [], form="an empty list"),
        chosen(draw, (), found, form="an empty tuple, and a value there"),
        chosen(draw, some_gpus(draw, 3)),
    ]


@check(
    "choose_gpus",
    probe=probes.environment,
    rule=text_of_variable,
    says="`env_for`: UUIDs such as `GPU-6a1f`, alone and beside numbers (as text: "
    "PyTorch's own reader ends the list where the kind changes)",
)
def uuids_as_they_are(draw: Draw) -> list[Case]:
    one = f"GPU-{draw.integer(10**6, 10**7):x}-b"
    other = f"GPU-{draw.integer(10**6, 10**7):x}-a"
    return [
        chosen(draw, [one, other], form="UUIDs"),
        chosen(draw, (one,), form="a tuple of one UUID"),
        chosen(draw, [other, draw.integer(0, 9)], form="a UUID and a number"),
        chosen(draw, [draw.integer(0, 9), other], form="a number and a UUID"),
    ]


def whole_environment(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["rest"] != expected.data["rest"]:
        sentence = "Besides your two, the entries are not those of `environ`."
        return with_form(case, sentence)
    got, wanted = seen.data["order"], expected.data["order"]
    if got != wanted:
        there = "CUDA_DEVICE_ORDER" in case["environ"]
        about = "already had one" if there else "had none"
        return f"`CUDA_DEVICE_ORDER` is not right where `environ` {about}."
    return None


@check(
    "choose_gpus",
    probe=probes.environment,
    rule=whole_environment,
    says="`env_for`: all other entries of `environ` are there, and "
    "`CUDA_DEVICE_ORDER`",
    corners=[
        "a `CUDA_DEVICE_ORDER` that `environ` has stays, even if it is empty"
    ],
)
def rest_of_the_environment(draw: Draw) -> list[Case]:
    rest = {"HOME": f"/home/{draw.integer(0, 10**6)}", "EMPTY": ""}
    fastest = {**rest, "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    found = {**rest, "CUDA_VISIBLE_DEVICES": "5"}
    gpus = some_gpus(draw, 2)
    return [
        chosen(draw, gpus, rest),
        chosen(draw, gpus, {}, form="an empty `environ`"),
        chosen(draw, gpus, fastest),
        chosen(draw, gpus, {**fastest, "CUDA_DEVICE_ORDER": ""}),
        chosen(draw, gpus, found, override=False),
        chosen(draw, gpus, fastest, override=False),
        chosen(draw, [], rest),
    ]


@check(
    "choose_gpus",
    probe=probes.environment,
    rule=gpus_of_variable,
    says="`env_for`: a `CUDA_VISIBLE_DEVICES` that is there is replaced, or "
    "stays with `override=False`",
    corners=['with `override=False` a `""` that is there stays, too'],
)
def override_or_not(draw: Draw) -> list[Case]:
    there = {"CUDA_VISIBLE_DEVICES": f"{draw.integer(12, 20)}"}
    empty = {"CUDA_VISIBLE_DEVICES": ""}
    gpus = some_gpus(draw, 2)
    kept, replaced = "override=False", "override=True"
    return [
        chosen(draw, gpus, there, form="a value there"),
        chosen(draw, gpus, there, override=True, form=f"{replaced}, a value"),
        chosen(draw, gpus, empty, override=True, form=f'{replaced}, ""'),
        chosen(draw, gpus, there, override=False, form=f"{kept}, a value"),
        chosen(draw, gpus, empty, override=False, form=f'{kept}, ""'),
        chosen(draw, gpus, override=False, form=f"{kept}, no value"),
    ]


def untouched(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["environ"] != expected.data["environ"]:
        return with_form(case, "You changed the `environ` you were given.")
    if seen.data["os.environ"] != expected.data["os.environ"]:
        return with_form(case, "You changed `os.environ` of this process.")
    if not seen.data["gpus stayed"]:
        return with_form(case, "You changed the `gpus` you were given.")
    if not seen.data["is another"]:
        return with_form(case, "You returned the mapping you were given.")
    if not seen.data["is a dict"]:
        return with_form(case, "What you returned is no dict.")
    return None


@check(
    "choose_gpus",
    probe=probes.environment,
    rule=untouched,
    says="`env_for` returns a new dict; `gpus`, `environ` and `os.environ` "
    "stay as they were",
    corners=["`environ` may be `os.environ`"],
)
def environments_untouched(draw: Draw) -> list[Case]:
    rest = {"HOME": f"/home/{draw.integer(0, 10**6)}"}
    there = {**rest, "CUDA_VISIBLE_DEVICES": "7", "CUDA_DEVICE_ORDER": "X"}
    gpus = some_gpus(draw, 2, 9)
    process = {"of_process": True, "form": "os.environ"}
    return [
        chosen(draw, gpus, rest),
        chosen(draw, gpus, there),
        chosen(draw, gpus, there, override=False),
        chosen(draw, gpus, rest, **process),
        chosen(draw, gpus, there, **process),
        chosen(draw, gpus, there, override=False, **process),
    ]


def refused_as_well(rule: Rule) -> Rule:
    """What the reference refuses is refused; all else is the matter of `rule`."""

    def both(case: Case, seen: Result, expected: Result) -> str | None:
        if "refused" in expected.data:
            if "refused" in seen.data:
                return None
            return f"Your code took {case['form']} and raised no ValueError."
        if "refused" in seen.data:
            return with_form(case, "Your code raised a ValueError.")
        return rule(case, seen, expected)

    return both


@check(
    "choose_gpus",
    probe=probes.refusal,
    rule=refused_as_well(gpus_of_variable),
    says="`env_for`: a negative number or a GPU named twice raises a "
    "`ValueError`",
    corners=[
        "with either `override`",
        "a UUID named twice, and a negative number beside a UUID, too",
    ],
)
def bad_gpus_raise(draw: Draw) -> list[Case]:
    gpu, other, third = some_gpus(draw, 3)
    there = {"CUDA_VISIBLE_DEVICES": "1"}
    bad: list[tuple[str, list[int | str] | tuple[int, ...]]] = [
        ("a negative number", [gpu, -1]),
        ("a negative number alone", (-3,)),
        ("a GPU named twice, with another between", [gpu, other, gpu]),
        ("a GPU named twice", [gpu, gpu]),
        ("a UUID named twice", ["GPU-1a", other, "GPU-1a"]),
        ("a negative number behind a UUID", ["GPU-1a", -1]),
        ("a negative number before a UUID", [-1, "GPU-1a"]),
    ]
    kept = "with override=False"
    return [
        chosen(draw, [gpu, other, third], form="three GPUs"),
        *(chosen(draw, gpus, form=form) for form, gpus in bad),
        chosen(
            draw,
            [other, other],
            there,
            override=False,
            form=f"a GPU named twice, {kept}",
        ),
        chosen(
            draw,
            [-1, other],
            there,
            override=False,
            form=f"a negative number, {kept}",
        ),
    ]


def visible(text: str | None, num_gpus: int, form: str | None = None) -> Case:
    case: Case = {"visible": text, "num_gpus": num_gpus}
    return case if form is None else {**case, "form": form}


def joined(gpus: list[int]) -> str:
    return ",".join(map(str, gpus))


@check(
    "choose_gpus",
    probe=probes.seen_cards,
    weight=2,
    rule=compared,
    says="`physical_ids`: a list of the GPUs that `visible` names, in its order",
    corners=[
        "blanks around an entry do not matter",
        "each call returns a list of its own: who changes one changes no other",
    ],
)
def in_the_order_of_the_list(draw: Draw) -> list[Case]:
    again = "a second call: the first list has been written into"
    return [
        visible(joined(some_gpus(draw, 2, 4)), 4),
        visible(joined(some_gpus(draw, 3, 8)), 8),
        visible(joined(some_gpus(draw, 8, 8)), 8),
        {**visible(str(draw.integer(1, 4)), 4, again), "again": True},
        {**visible(None, 4, f"None, and {again}"), "again": True},
        visible(joined(some_gpus(draw, 9)), 64, "numbers of two digits"),
        visible(f" {draw.integer(1, 4)} , 0", 4, "blanks around the entries"),
    ]


@check(
    "choose_gpus",
    probe=probes.seen_cards,
    rule=compared,
    says="`physical_ids`: None shows all, an empty text none",
)
def not_set_and_empty(draw: Draw) -> list[Case]:
    return [
        visible(None, draw.integer(2, 9), "None"),
        visible(None, draw.integer(9, 99), "None, and many GPUs"),
        visible(None, draw.integer(99, 999), "None, and very many GPUs"),
        visible(None, 0, "None, and no GPU in the machine"),
        visible("", draw.integer(2, 9), "an empty text"),
        visible("", 1, "an empty text, and one GPU in the machine"),
    ]


@check(
    "choose_gpus",
    probe=probes.seen_cards,
    weight=2,
    rule=compared,
    says="`physical_ids`: the list stops before the first entry that is none "
    "of the numbers 0 to `num_gpus - 1`",
    corners=[
        "negative, too large or empty entries, and what is not digits alone: "
        "`x`, `²`, `0.5`, `1 2` (PyTorch's own reader takes the last two for 0 and 1); "
        "`+1` and `1_0` are not tried"
    ],
)
def stops_at_the_first_invalid(draw: Draw) -> list[Case]:
    many = draw.integer(20, 64)
    gpu, other, third = some_gpus(draw, 3, many)
    large = draw.integer(many + 1, 10 * many)
    return [
        visible("2,0,-1,1", 4, "a negative number"),
        visible(f"{gpu},{other},-1,{third}", many, "a negative number"),
        visible(f"-1,{gpu}", many, "a negative number at the front"),
        visible(f"{gpu},{many},{other}", many, "the number of GPUs"),
        visible(f"{third},{large},{other}", many, "a large number"),
        visible(f"{gpu},,{other}", many, "an empty entry"),
        visible(f",{other}", many, "a comma at the front"),
        visible(f"{gpu},{other},", many, "a comma at the end"),
        visible(f"{other},x,{third}", many, "letters"),
        visible(
            f"{other},,{third},", many, "an empty entry, a comma at the end"
        ),
        visible(f"{gpu},1 2,{other}", many, "a blank within an entry"),
        visible(f"{other},0.5,{gpu}", many, "a number with a point"),
        visible(f"{other}, ,{gpu}", many, "an entry of a blank"),
        visible(f"{gpu},²,{other}", many, "a raised digit"),
        visible("0", 0, "no GPU in the machine"),
        visible("1", 1, "the number 1, and one GPU in the machine"),
        visible("-1,0", 1, "a negative number, and one GPU in the machine"),
    ]


@check(
    "choose_gpus",
    probe=probes.seen_cards,
    rule=compared,
    says="`physical_ids`: a GPU named twice leaves none: `[]`",
    corners=[
        "a second time behind the place where the list stops does not count",
        "no number begins with a 0, but for 0 itself",
    ],
)
def twice_leaves_none(draw: Draw) -> list[Case]:
    many = draw.integer(5, 64)
    gpu, other, third = some_gpus(draw, 3, many)
    digit = draw.integer(0, 10)
    late = "a second time only after the list has stopped"
    return [
        visible(f"{gpu},{gpu}", many, "a GPU named twice"),
        visible(f"{gpu},{other},{gpu}", many, "a GPU named twice"),
        visible(f"{gpu},{gpu},{other}", many, "a GPU named twice"),
        visible(f"{gpu}, {gpu}", many, "a GPU named twice, with a blank"),
        visible(f"{other},{gpu},{gpu},-1", many, "a GPU named twice, then -1"),
        visible(f"{gpu},{third},-1,{gpu}", many, late),
        visible(f"{gpu},{other},{third},-1,{gpu}", many, late),
        visible(f"{other},{many},{many}", many, "a number twice, and no GPU"),
        visible(f"2{digit},{digit}", 64, "no GPU named twice"),
    ]


@check(
    "choose_gpus",
    probe=probes.name_of_card,
    weight=2,
    rule=refused_as_well(compared),
    says="`cuda_name`: the place in the list, as text; a GPU that the program "
    "does not see raises a `ValueError`",
)
def name_after_renumbering(draw: Draw) -> list[Case]:
    gpus = draw.permutation(64).tolist()
    hidden, gpus = gpus[0], gpus[1 : draw.integer(20, 60)]
    setting = visible(joined(gpus), 64)
    places = draw.permutation(len(gpus))[:4].tolist()
    alone = visible(str(draw.integer(1, 4)), 4, "one visible GPU")
    many = draw.integer(5, 64)
    unset = visible(None, many, "the variable not set")
    one, other = some_gpus(draw, 2, many)
    blanks = visible(f" {one} , {other}", many, "blanks around the entries")
    return [
        *(
            {**setting, "gpu": gpus[place], "form": "a list of many GPUs"}
            for place in (0, *places)
        ),
        {**alone, "gpu": int(alone["visible"])},
        {**unset, "gpu": draw.integer(0, many)},
        {**blanks, "gpu": one},
        {**blanks, "gpu": other},
        {**setting, "gpu": hidden, "form": "a hidden GPU"},
        {**visible("2,0,-1,1", 4, "a GPU after an invalid entry"), "gpu": 1},
        {**visible("1,7,0", 4, "a GPU after a large number"), "gpu": 0},
        {**visible("1,7,0", 4, "a number that is no GPU"), "gpu": 7},
        {**visible("", 4, "an empty list"), "gpu": 0},
        {**visible("-1", 1, "a negative number, and one GPU"), "gpu": 0},
        {**visible(None, many, "a GPU that the machine lacks"), "gpu": many},
        {**visible(None, 4, "the number -1"), "gpu": -1},
        {**visible("2,2", 4, "a GPU named twice"), "gpu": 2},
    ]


# to_device


def batch(
    draw: Draw, form: str, device: str = "meta", **options: object
) -> Case:
    """Three tensors of different shapes and dtypes, in a batch of this form."""
    rows, columns = draw.integer(2, 9), draw.integer(2, 99)
    tensors = [
        draw.normal(rows, columns),
        draw.integers(1, 9, draw.integer(2, 99)),
        draw.normal(columns, 1, rows, dtype=torch.float64),
    ]
    return {
        "batch": form,
        "form": form,
        "device": device,
        "tensors": tensors,
        "needs_gradient": [False, False, False],
        "key": f"k{draw.integer(0, 10**6)}",
        "number": draw.integer(300, 10**6),
        **options,
    }


WORDS = {
    "device": "A tensor is not on the device that was asked for.",
    "dtype": "A tensor has another dtype than before.",
    "shape": "A tensor has another shape than before.",
    "needs a gradient": "A tensor has lost, or got, its `requires_grad`.",
    "values": "A tensor has other values than before.",
}


def what_differs(
    seen: object, expected: object, facts: tuple[str, ...]
) -> str | None:
    """What differs first between two descriptions of a batch, of whose tensors
    these facts count."""
    if seen == expected:
        return None
    if not isinstance(seen, dict) or not isinstance(expected, dict):
        return "The structure is another one."
    if seen.get("is") != expected.get("is"):
        if expected.get("is") in ("Pair", "OrderedDict", "a tensor"):
            kind = {"Pair": "named tuple"}.get(expected["is"], expected["is"])
            return f"Where {kind} stood there is something else.".replace(
                "Where named", "Where a named"
            ).replace("Where OrderedDict", "Where an OrderedDict")
        return "A container or an object has another type than before."
    if expected["is"] == "a tensor":
        wrong = [
            key
            for key in facts
            if not as_it_was(seen.get(key), expected.get(key))
        ]
        return WORDS[wrong[0]] if wrong else None
    if "same object" in expected:
        return (
            "An object that is neither tensor nor container is another "
            "object than before."
        )
    if seen["same type"] != expected["same type"]:
        return "A container has another type than before, of the same name."
    if seen.get("keys") != expected.get("keys"):
        return "A dict has other keys, or has them in another order."
    theirs, ours = seen["items"], expected["items"]
    if len(theirs) != len(ours):
        return "A container has another number of items."
    for one, other in zip(theirs, ours, strict=True):
        found = what_differs(one, other, facts)
        if found:
            return found
    return None


def same(*facts: str) -> Rule:
    """The same structure, and tensors that agree in these facts."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        found = what_differs(seen.data["moved"], expected.data["moved"], facts)
        return with_form(case, found) if found else None

    return rule


def as_it_was(got: object, wanted: object) -> bool:
    """Whether a fact is the expected one, where NaN equals NaN."""
    return got == wanted or str(got) == str(wanted)


same_structure = same("device", "shape")
same_tensors = same("device", "dtype", "shape", "values")


def batch_stayed(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["the caller's batch stayed"]:
        return with_form(case, "The batch you were given has changed.")
    return same_structure(case, seen, expected)


@check(
    "to_device",
    probe=probes.moved,
    rule=same_tensors,
    says="a tensor by itself: on the device, with its dtype, shape and values",
    corners=[
        "an `nn.Parameter` is a tensor, too",
        "a tensor that is on the device already may come back as it is",
        "NaN and infinities stay what they are",
    ],
)
def tensor_alone(draw: Draw) -> list[Case]:
    odd = "a tensor with NaN and an infinity"
    not_finite = {**batch(draw, "a tensor", "cpu"), "form": odd}
    not_finite["tensors"][0][0, :2] = torch.tensor([math.nan, -math.inf])
    cases = [batch(draw, "a tensor"), not_finite]
    somewhere = draw.choice(["meta", "cpu"])
    dtypes = torch.bfloat16, torch.bool, torch.int32, torch.int16
    for dtype in (*dtypes, torch.complex64):
        # left on the CPU, which a move to it would not show
        rare = dtype in (torch.int16, torch.complex64)
        case = batch(draw, "a tensor", "meta" if rare else somewhere)
        case["tensors"][0] = (case["tensors"][0] * 9).to(dtype)
        cases.append(case)
    none_at_all, single = batch(draw, "a tensor"), batch(draw, "a tensor")
    none_at_all["tensors"][0] = draw.normal(0, draw.integer(2, 7))
    single["tensors"][0] = draw.normal(1)[0]
    return [*cases, none_at_all, single, batch(draw, "an nn.Parameter")]


@check(
    "to_device",
    probe=probes.moved,
    weight=2,
    rule=same_structure,
    says="dicts, lists and tuples: every tensor in them is moved",
    corners=[
        "dicts keep their keys, of any type, and the order of these; a key that "
        "is a tensor is not moved"
    ],
)
def plain_containers(draw: Draw) -> list[Case]:
    return [
        batch(draw, "a list"),
        batch(draw, "a tuple"),
        batch(draw, "a tuple of one"),
        batch(draw, "a list that begins with text"),
        batch(draw, "a tuple that begins with a number"),
        batch(draw, "a dict"),
        batch(draw, "a dict with numbers and tuples as keys"),
        batch(draw, "a dict with a tensor as key"),
        batch(draw, "a list with an nn.Parameter"),
    ]


@check(
    "to_device",
    probe=probes.moved,
    weight=2,
    rule=same_structure,
    says="containers in containers, as deep as they are",
)
def nested_containers(draw: Draw) -> list[Case]:
    return [
        batch(draw, "a list of dicts"),
        batch(draw, "a dict of lists and tuples"),
        batch(draw, "five levels"),
    ]


@check(
    "to_device",
    probe=probes.moved,
    weight=2,
    rule=same_structure,
    says="named tuples and `OrderedDict`s keep their type",
)
def types_of_containers(draw: Draw) -> list[Case]:
    return [
        batch(draw, "a named tuple"),
        batch(draw, "an OrderedDict"),
        batch(draw, "named tuples in named tuples"),
        batch(draw, "a list of named tuples"),
        batch(draw, "an OrderedDict in a tuple"),
    ]


@check(
    "to_device",
    probe=probes.moved,
    rule=same_structure,
    says="what is neither a tensor nor one of these containers comes back as "
    "the same object",
    corners=[
        "None, text, bytes and `bytearray`s, numbers, NumPy arrays, sets, "
        "ranges, iterators, a `UserDict` or another mapping that is no dict",
        "objects of a class or a dataclass, an `nn.Module`, even if they have "
        "a `.to`",
        "a `deque`, a `defaultdict`, a `PackedSequence` and other classes made "
        "of containers are not tried",
    ],
)
def other_objects(draw: Draw) -> list[Case]:
    return [
        batch(draw, "objects of other kinds"),
        batch(draw, "None"),
        batch(draw, "text"),
        batch(draw, "a number"),
        batch(draw, "an object of a class"),
        batch(draw, "an object of a dataclass"),
        batch(draw, "an object with _fields"),
        batch(draw, "an nn.Module"),
        batch(draw, "a NumPy array"),
        batch(draw, "a set"),
        batch(draw, "a range"),
        batch(draw, "an iterator"),
        batch(draw, "a UserDict"),
        batch(draw, "a bytearray"),
        batch(draw, "a mapping that is no dict"),
    ]


@check(
    "to_device",
    probe=probes.moved,
    rule=same_structure,
    says="empty containers come back empty",
    corners=["they may be the caller's own"],
)
def nothing_in_it(draw: Draw) -> list[Case]:
    return [
        batch(draw, "an empty list"),
        batch(draw, "an empty dict"),
        batch(draw, "an empty tuple"),
        batch(draw, "empty containers"),
    ]


@check(
    "to_device",
    probe=probes.moved,
    weight=2,
    rule=batch_stayed,
    also=[leaves_inputs_alone, leaves_rng_alone, leaves_state_alone],
    says="the batch that was given stays as it was: no container and no "
    "tensor of it changes",
    corners=["the random state and global settings stay, too"],
)
def callers_batch_stays(draw: Draw) -> list[Case]:
    forms = (
        "a list",
        "a dict",
        "an OrderedDict",
        "a list of dicts",
        "a dict of lists and tuples",
        "five levels",
        "an object of a class",
        "an nn.Module",
    )
    return [
        *(batch(draw, form) for form in forms),
        batch(draw, "a tensor", needs_gradient=[True, False, False]),
        batch(draw, "a dict", "cpu", needs_gradient=[True, False, True]),
    ]


@check(
    "to_device",
    probe=probes.moved,
    rule=same_tensors,
    says='any device, as text or as a `torch.device`: `"meta"` and `"cpu"` are '
    "tried",
)
def any_device(draw: Draw) -> list[Case]:
    forms = ("a dict", "a list of dicts", "a named tuple", "a tensor")
    return [
        batch(draw, form, device, as_object=as_object)
        for form in forms
        for device in ("cpu", "meta")
        for as_object in (False, True)
    ]


@check(
    "to_device",
    probe=probes.moved_strided,
    rule=compared,
    says="strided and transposed tensors keep shape, values and dtype",
)
def strided_tensors(draw: Draw) -> list[Case]:
    return [
        {"table": draw.normal(4, 3)},
        {"table": draw.normal(3, 3, dtype=torch.float16)},
        {"table": draw.integers(0, 99, 5, 2).to(torch.uint8)},
    ]


@check(
    "to_device",
    probe=probes.moved,
    rule=same("device", "needs a gradient"),
    also=[gives_no_warning],
    says="`requires_grad` is kept, whatever it is, and nothing warns",
    corners=["under `torch.no_grad()` this is not tried"],
)
def keeps_requires_grad(draw: Draw) -> list[Case]:
    both = {"needs_gradient": [True, False, True]}
    return [
        batch(draw, "a dict", **both),
        batch(draw, "a list of dicts", "cpu", **both),
        batch(draw, "a list"),
        batch(draw, "a named tuple", "cpu"),
        batch(draw, "a tensor", needs_gradient=[True, False, False]),
        batch(draw, "a frozen nn.Parameter"),
    ]


def gradient_arrives(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["gradient"] is None:
        return "No gradient finds its way back through the move."
    if not seen.data["arrives from meta"]:
        return "No gradient finds its way back from another device."
    if seen.data["gradient of an nn.Parameter"] is None:
        return "No gradient finds its way back to an `nn.Parameter`."
    return compared(case, seen, expected)


@check(
    "to_device",
    probe=probes.gradient_through_the_move,
    rule=gradient_arrives,
    says="a gradient finds its way back through the move",
    corners=["to an `nn.Parameter` of the batch, too"],
)
def gradient_comes_back(draw: Draw) -> list[Case]:
    return [{"x": draw.normal(3, 2), "scale": draw.normal(3, 2)}]


# token_rnn


def network(
    draw: Draw,
    num_tokens: int,
    width: int,
    num_layers: int,
    **options: object,
) -> Case:
    """A network with weights of its own, in float32."""
    state: dict[str, Tensor] = {"embed.weight": draw.normal(num_tokens, width)}
    for i in range(num_layers):
        weight = draw.normal(width, width, std=0.7)
        state[f"layers.{i}.weight"] = weight
        state[f"layers.{i}.bias"] = draw.normal(width, std=0.3)
    return {
        "num_tokens": num_tokens,
        "width": width,
        "num_layers": num_layers,
        "state": state,
        **options,
    }


def reading(
    draw: Draw,
    sizes: tuple[int, int, int],
    rows: int,
    length: int,
    **options: object,
) -> Case:
    """A network of these sizes and tokens of shape (rows, length) for it."""
    case = network(draw, *sizes, **options)
    return {**case, "tokens": draw.integers(0, sizes[0], rows, length)}


def has_the_weights(rule: Rule, known: bool = False) -> Rule:
    """First asks whether every weight of the case had a place; with `known`, one
    of which the module knows, too."""

    def both(case: Case, seen: Result, expected: Result) -> str | None:
        lacks = seen.data["absent"]
        if known:
            lacks = sorted([*lacks, *seen.data["hidden"]])
        if lacks:
            name = lacks[0]
            return (
                f"The module has no `{name}` in its `state_dict()`: it does "
                "not know that part as its own."
            )
        return rule(case, seen, expected)

    return both


def compared_loosely(case: Case, seen: Result, expected: Result) -> str | None:
    """Outputs of tanh, summed up in another order perhaps."""
    changed = leaves_inputs_alone(case, seen, expected)
    if changed:
        return changed
    theirs = {**seen.data, "hidden": expected.data["hidden"]}
    found = difference(theirs, expected.data, Tolerance(1e-4, 1e-5))
    return with_form(case, found) if found else None


@check(
    "token_rnn",
    probe=probes.outputs,
    weight=3,
    rule=has_the_weights(compared_loosely),
    says="the last layer's state after the last token",
    corners=[
        "any number of rows, none among them, and a width of 1, too",
        "a weight that is NaN shows in it",
    ],
)
def reads_the_tokens(draw: Draw) -> list[Case]:
    ill = "one layer, one token, and a bias that is NaN"
    spoilt = reading(draw, (7, 4, 1), 3, 1, form=ill)
    spoilt["state"]["layers.0.bias"][draw.integer(0, 4)] = math.nan
    return [
        spoilt,
        reading(draw, (7, 4, 1), 3, 5, form="one layer"),
        reading(draw, (5, 6, 2), 4, 3, form="two layers"),
        reading(draw, (9, 3, 3), 2, 7, form="three layers"),
        reading(draw, (6, 3, 3), 3, 3, form="sizes that are all equal"),
        reading(draw, (6, 5, 2), 1, 4, form="one row"),
        reading(draw, (6, 5, 2), 1, 1, form="one row, one token"),
        reading(draw, (6, 1, 2), 3, 4, form="a width of 1"),
        reading(draw, (6, 5, 2), 0, 4, form="no row"),
    ]


def owns_it_all(case: Case, seen: Result, expected: Result) -> str | None:
    theirs, ours = seen.data, expected.data
    extra = set(theirs["parameters"]) - set(ours["parameters"])
    if "decay" in extra and not theirs["decay needs a gradient"]:
        return (
            "`decay` is a parameter, though a frozen one. There are no other "
            "parameters than those of embed and layers."
        )
    if "decay" in extra:
        return "`decay` is a parameter: an optimizer would train it."
    if extra:
        return "There are other parameters than those of embed and layers."
    if theirs["parameters"] != ours["parameters"]:
        return "A parameter is missing or has another shape."
    if theirs["decay"] is None:
        return "`decay` is no tensor."
    if theirs["decay needs a gradient"]:
        return "`decay` needs a gradient: it is not to be trained."
    if not theirs["embed is an nn.Embedding"]:
        return "`embed` is no `nn.Embedding`."
    for option in theirs["options of embed"]:
        return (
            f"`embed` is made with `{option}`: a plain `nn.Embedding("
            "num_tokens, width)` is asked for."
        )
    if theirs["further entries"]:
        return "There are entries in `state_dict()` that nobody asked for."
    if not theirs["trained"]:
        return "A weight is frozen: `requires_grad` is False."
    return compared_loosely({}, seen, expected)


@check(
    "token_rnn",
    probe=probes.parts,
    rule=has_the_weights(owns_it_all, known=True),
    says="the parameters under the right names, and `decay`, which is none",
    corners=[
        "`decay` may be in the `state_dict()` or not; nothing else is added "
        "there",
        "`embed` is an `nn.Embedding` without options, and every weight is "
        "trained",
    ],
)
def owns_its_parts(draw: Draw) -> list[Case]:
    return [
        network(draw, draw.integer(3, 40), draw.integer(3, 20), num_layers)
        for num_layers in (1, 3)
    ]


def builds_quietly(case: Case, seen: Result, expected: Result) -> str | None:
    theirs = seen.data
    if not theirs["models differ"] or not theirs["seed stays"]:
        return (
            "The first weights do not come from the random state that the "
            "caller has set. Leave seeds to the caller."
        )
    if not theirs["layers differ"]:
        return (
            "Two layers begin with the same weights. Draw those of each layer: "
            "copies would make the same first steps."
        )
    for what in ("dtype", "device"):
        if not theirs[f"default {what} stays"]:
            return f"Your constructor changes the default {what}."
    for name, shape in expected.data["shapes"].items():
        if name not in theirs["shapes"]:
            return f"There is no parameter `{name}`."
        if theirs["shapes"][name] != shape:
            return f"The parameter `{name}` has another shape."
    for name, got, wanted in zip(
        ("`embed`", "`layers`"),
        theirs["spread"],
        expected.data["spread"],
        strict=True,
    ):
        if not 0.8 * wanted < got < 1.25 * wanted:
            return (
                f"The first weights of {name} are not spread as PyTorch draws "
                "them. Leave them as `nn.Embedding` and `nn.Linear` made them."
            )
    return None


@check(
    "token_rnn",
    probe=probes.construction,
    rule=builds_quietly,
    says="a new model has weights as PyTorch draws them, from the caller's "
    "random state",
    corners=[
        "the constructor sets no seed and changes neither the default dtype "
        "nor the default device"
    ],
)
def built_quietly(draw: Draw) -> list[Case]:
    seeds = [draw.integer(0, 10**6), draw.integer(10**6, 10**7)]
    return [
        {
            "num_tokens": draw.integer(60, 200),
            "width": draw.integer(30, 80),
            "num_layers": num_layers,
            "seeds": seeds,
        }
        for num_layers in (1, 2)
    ]


def all_there(case: Case, seen: Result, expected: Result) -> str | None:
    """Every part of the module has the device and dtype of the others."""
    theirs, ours = seen.data["places"], expected.data["places"]
    for name in ours:
        if name not in theirs:
            return f"`{name}` is missing."
        got, wanted = theirs[name], ours[name]
        if got[0] != wanted[0]:
            return with_form(case, f"`{name}` stayed on {got[0]}.")
        if got[1] != wanted[1]:
            kind = got[1].removeprefix("torch.")
            return with_form(case, f"`{name}` stayed {kind}.")
        if got[2] != wanted[2]:
            return with_form(case, f"`{name}` has another shape.")
    return None


MOVES = {
    "a move": ["meta"],
    "`.double()`": ["double"],
    "`.to(torch.bfloat16)`": ["to bfloat16"],
    "a cast, then a move": ["bfloat16", "meta"],
    "a cast there and back": ["double", "float"],
}


def after(
    draw: Draw,
    moves: list[str],
    inside: bool,
    form: str,
    called_before: bool = False,
) -> Case:
    form = f"{form} of a module around it" if inside else form
    form = f"{form} after a first call" if called_before else form
    options = {
        "moves": moves,
        "inside": inside,
        "form": form,
        "called_before": called_before,
    }
    sizes = draw.integer(3, 9), draw.integer(3, 20), 2
    return reading(draw, sizes, draw.integer(1, 20), 4, **options)


@check(
    "token_rnn",
    probe=probes.places,
    weight=2,
    rule=has_the_weights(all_there, known=True),
    says="everything moves and is cast with the module, `decay` too",
)
def moves_as_a_whole(draw: Draw) -> list[Case]:
    return [after(draw, moves, False, form) for form, moves in MOVES.items()]


@check(
    "token_rnn",
    probe=probes.places,
    rule=has_the_weights(all_there, known=True),
    says="everything moves and is cast with a larger module that holds this one",
)
def moves_as_a_part(draw: Draw) -> list[Case]:
    return [after(draw, moves, True, form) for form, moves in MOVES.items()]


def works_there(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["ran"]:
        return with_form(
            case,
            f"Your `forward` mixes tensors of two {seen.data['mixed']}",
        )
    if "dtype" not in seen.data:
        return "Your `forward` does not return a tensor."
    got, wanted = seen.data, expected.data
    if not got["default device stays"]:
        return with_form(case, "Your `forward` changed the default device.")
    if got["device"] != wanted["device"]:
        return with_form(case, f"The result is on {got['device']}.")
    if got["dtype"] != wanted["dtype"]:
        kind = got["dtype"].removeprefix("torch.")
        return with_form(case, f"The result is {kind}.")
    if got["shape"] != wanted["shape"]:
        return with_form(case, "The result has another shape.")
    if got.get("needs a gradient") != wanted.get("needs a gradient"):
        needs = "needs a" if got["needs a gradient"] else "needs no"
        return with_form(case, f"The result {needs} gradient.")
    if "out" not in wanted:
        return None
    # bfloat16 keeps 8 bits, float16 11: sums in another order differ by that
    loose = {"torch.bfloat16": 0.05, "torch.float16": 0.01}
    tolerance = Tolerance(1e-4, loose.get(wanted["dtype"], 1e-5))
    if case.get("exact"):
        tolerance = Tolerance(1e-10, 1e-12)
    found = difference(got["out"], wanted["out"], tolerance, "the result")
    return with_form(case, found) if found else None


@check(
    "token_rnn",
    probe=probes.after_moves,
    weight=2,
    rule=has_the_weights(works_there, known=True),
    says="`forward` works on another device, for tokens there, and its result "
    "is there",
    corners=[
        "after a first call elsewhere, too",
        "the default device stays as it was, whichever that is",
    ],
)
def works_on_another_device(draw: Draw) -> list[Case]:
    return [
        after(draw, ["meta"], False, "the model moved"),
        after(draw, ["meta"], True, "a move"),
        {
            **after(draw, ["bfloat16", "meta"], False, ""),
            "form": "the model cast and moved, and meta as the default device",
            "default_device": "meta",
        },
        after(draw, ["meta"], False, "the model moved", called_before=True),
    ]


@check(
    "token_rnn",
    probe=probes.after_moves,
    weight=2,
    rule=has_the_weights(works_there, known=True),
    also=[leaves_state_alone],
    says="`forward` works in every dtype of the weights, and its result has it",
    corners=[
        "in float64 the result is as exact as `decay` allows, which may have the digits "
        "of a narrower dtype that it was in",
        "`forward` may read `decay`, or make its numbers anew: nobody changes them",
        "after a cast there and back, and after a first call in another "
        "dtype, too",
    ],
)
def works_in_another_dtype(draw: Draw) -> list[Case]:
    cases = [
        after(draw, ["bfloat16"], False, "weights in bfloat16"),
        after(draw, ["to float16"], False, "weights in float16"),
        after(draw, ["double"], False, "weights in float64"),
        after(draw, ["double", "float"], False, "weights cast there and back"),
        after(draw, ["bfloat16"], True, "a cast"),
        after(draw, ["double"], False, "weights cast", called_before=True),
        after(draw, ["bfloat16"], False, "weights cast", called_before=True),
    ]
    for case in cases:  # small weights do not enlarge what rounding does
        for name, one in case["state"].items():
            if name.startswith("layers"):
                case["state"][name] = one / case["width"]
    # with a single token no state, and so no `decay`, has a part in the result
    one_token = after(draw, ["double"], False, "float64 and a single token")
    first = one_token["tokens"][:, :1]
    return [*cases, {**one_token, "tokens": first, "exact": True}]


@check(
    "token_rnn",
    probe=probes.after_moves,
    rule=has_the_weights(works_there),
    says="without any token: zeros of the weights' device and dtype, which "
    "need no gradient",
)
def no_token_at_all(draw: Draw) -> list[Case]:
    cases = [
        after(draw, moves, False, f"no token, {form}")
        for form, moves in (
            ("as it is", []),
            ("cast to bfloat16", ["bfloat16"]),
            ("cast to float64", ["double"]),
            ("moved", ["meta"]),
        )
    ]
    empty = torch.zeros(draw.integer(2, 20), 0, dtype=torch.int64)
    return [{**case, "tokens": empty} for case in cases]


@check(
    "token_rnn",
    probe=probes.outputs,
    rule=has_the_weights(compared_loosely),
    also=[leaves_inputs_alone, leaves_state_alone, gives_no_warning],
    says="tokens of int32 and int64, strided too, which stay as they were",
    corners=["global settings stay as they were, and nothing warns"],
)
def kinds_of_tokens(draw: Draw) -> list[Case]:
    sizes = 8, 4, 2
    cases = []
    for form in ("int32", "int32 transposed", "a strided view", "int64"):
        case = network(draw, *sizes)
        ids = draw.integers(1, 8, 3, 6)
        if form.startswith("int32"):
            ids = ids.to(torch.int32)
        if form == "int32 transposed":
            ids = ids.T
        if form == "a strided view":
            ids = ids[:, ::2]
        cases.append({**case, "tokens": ids, "form": f"tokens: {form}"})
    return cases


@check(
    "token_rnn",
    probe=probes.called_twice,
    rule=has_the_weights(compared_loosely),
    also=[leaves_inputs_alone, leaves_rng_alone],
    says="each call begins anew, with other rows too, and draws no random "
    "numbers",
)
def begins_anew(draw: Draw) -> list[Case]:
    cases = []
    for rows in (3, 5):
        case = reading(draw, (7, 4, 2), 3, 4, form="a call before it")
        other = draw.integers(0, 7, rows, 6)
        cases.append({**case, "other_tokens": other})
    return cases


def gradients_arrive(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["gradients"] is None:
        mode = "" if case["training"] else " in eval mode"
        return f"No gradient reaches the weights{mode}."
    theirs = seen.data["gradients"]
    for name, wanted in expected.data["gradients"].items():
        if name not in theirs:
            return f"There is no parameter `{name}`."
        found = difference(
            theirs[name], wanted, Tolerance(1e-3, 1e-5), f"gradient of {name}"
        )
        if found:
            return with_form(case, found)
    return None


@check(
    "token_rnn",
    probe=probes.gradients,
    rule=has_the_weights(gradients_arrive),
    says="gradients reach every weight that was used, through all tokens",
    corners=["in both modes"],
)
def gradients_reach_the_weights(draw: Draw) -> list[Case]:
    cases = []
    for num_layers, length in ((1, 3), (2, 12), (2, 4)):
        case = reading(draw, (5, 4, num_layers), 3, length)
        case["tokens"][0, 0] = 0  # each end of the table is read
        case["tokens"][1, 0] = 4
        scale, training = draw.normal(3, 4), length != 4
        cases.append({**case, "scale": scale, "training": training})
    return cases


# know_your_gpus


NAMES = (
    "NVIDIA A100-SXM4-40GB",
    "Tesla T4",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA H200",
    "Quadro RTX 6000 (rev: B)",
    "NVIDIA Graphics: Device",
)


DRAWN = re.compile(r"2\.[2-6]\d\.\d(\+cu130)?")
"""The versions of PyTorch that the cases make up."""


def machine(draw: Draw, num_gpus: int, **options: object) -> Case:
    """A machine with these many GPUs, on which everything works."""
    order = draw.permutation(max(num_gpus, len(NAMES)))[:num_gpus]
    names = [NAMES[i % len(NAMES)] for i in order]
    return {
        "version": f"2.{draw.integer(20, 60)}.{draw.integer(0, 9)}+cu130",
        "cuda": f"{draw.integer(12, 19)}.{draw.integer(0, 9)}",
        "hip": None,
        "cudnn": draw.integer(90100, 99999),
        "cudnn_raises": False,
        "names": names,
        "works": True,
        "environ": {},
        **options,
    }


def report_agrees(case: Case, seen: Result, expected: Result) -> str | None:
    theirs, ours = seen.data["report"], expected.data["report"]
    if set(theirs) != set(ours):
        return "The report has not just the keys torch, cuda, cudnn and gpus."
    for key, wanted in ours.items():
        got = theirs[key]
        if type(got) is not type(wanted):
            found = difference({key: got}, {key: wanted}, Tolerance())
            return with_form(case, found or f"`{key}` has another type.")
        if got != wanted and key == "gpus":
            if len(got) != len(wanted):
                sentence = "`gpus` has another number of GPUs."
            else:
                sentence = "`gpus` has other names, or another order."
            return with_form(case, sentence)
        if got != wanted and key == "torch" and DRAWN.fullmatch(got):
            return (
                "The report is that of an earlier call: every call looks anew."
            )
        if got != wanted:
            return with_form(case, f"`{key}` is wrong.")
    return None


def machine_stays(case: Case, seen: Result, expected: Result) -> str | None:
    """The report changes nothing of the machine that it is about."""
    if not seen.data["the current GPU stays"]:
        return "Your code left another GPU the current one."
    if not seen.data["the environment stays"]:
        return "Your code changed a variable of the environment."
    return None


def first_report_stays(
    case: Case, seen: Result, expected: Result
) -> str | None:
    if seen.data["the first report stays"]:
        return None
    return (
        "A report that was returned earlier changes with the next call: make a "
        "new list in each call."
    )


@check(
    "know_your_gpus",
    probe=probes.report_here,
    weight=2,
    rule=report_agrees,
    also=[gives_no_warning, leaves_state_alone],
    says="`machine_report`: this machine, without a GPU: four keys and no more",
    corners=["nothing warns, and global settings stay as they were"],
)
def this_machine(draw: Draw) -> list[Case]:
    return [{"version": f"2.{draw.integer(20, 60)}.{draw.integer(0, 9)}"}]


@check(
    "know_your_gpus",
    probe=probes.report_there,
    weight=2,
    rule=report_agrees,
    also=[machine_stays],
    says="`machine_report`: the names of all GPUs that `torch.cuda` sees, in "
    "the order of their numbers",
    corners=[
        "for names there are `torch.cuda.get_device_name`, "
        "`torch.cuda.get_device_properties` and `torch.cuda.device`; the current "
        "GPU stays the current one, and the environment as it was",
        "`CUDA_VISIBLE_DEVICES` does not say how many there are, nor is there "
        "a bound to it",
        "a build for AMD's ROCm has no version of CUDA, only one of ROCm "
        "(`torch.version.hip`), and `torch.cuda` sees its GPUs all the same",
    ],
)
def machines_with_gpus(draw: Draw) -> list[Case]:
    two_alike = machine(draw, 2)
    two_alike["names"] = two_alike["names"][::-1] + two_alike["names"][:1]
    return [
        machine(draw, 1, form="one GPU"),
        machine(draw, 2, form="two GPUs"),
        machine(draw, 10, form="ten GPUs"),
        machine(
            draw,
            2,
            cuda=None,
            hip=f"{draw.integer(6, 9)}.{draw.integer(0, 9)}.26015",
            form="two GPUs under ROCm",
        ),
        {**two_alike, "form": "two cards of the same kind"},
        machine(
            draw,
            2,
            environ={"CUDA_VISIBLE_DEVICES": "5,2,7"},
            form="two GPUs of a list whose last entry is none",
        ),
    ]


@check(
    "know_your_gpus",
    probe=probes.report_there,
    rule=report_agrees,
    says="`machine_report`: CUDA without a usable GPU gives an empty list, and "
    "raises nothing",
    corners=[
        "with a driver that is too old, cards can be counted and nothing else"
    ],
)
def nothing_usable(draw: Draw) -> list[Case]:
    old = "a driver that is too old"
    return [
        machine(draw, 0, form="a build with CUDA and no GPU"),
        machine(draw, 2, works=False, form=old),
        machine(draw, 1, works=False, cudnn=None, form=old),
    ]


@check(
    "know_your_gpus",
    probe=probes.report_there,
    rule=report_agrees,
    says="`machine_report`: `cudnn` is None where its version raises a "
    "`RuntimeError` or is None",
)
def cudnn_that_raises(draw: Draw) -> list[Case]:
    return [
        machine(draw, 2, cudnn_raises=True, form="cuDNN that does not fit"),
        machine(draw, 1, cudnn=None, form="no cuDNN"),
        machine(draw, 1, form="cuDNN that fits"),
    ]


@check(
    "know_your_gpus",
    probe=probes.report_twice,
    rule=report_agrees,
    also=[first_report_stays],
    says="`machine_report`: every call looks anew, at everything",
    corners=["a report that was returned earlier stays as it was"],
)
def looks_anew(draw: Draw) -> list[Case]:
    one, other = machine(draw, 2), machine(draw, 3)
    unusable = machine(draw, 2, works=False)
    form = "another machine before it"
    return [
        {**one, "before": other, "form": form},
        {**one, "before": unusable, "form": f"{form}, of no use"},
        {**unusable, "before": other, "form": f"{form}, now of no use"},
    ]


def listing(
    draw: Draw, indices: list[int], names: list[str] | None = None
) -> list[str]:
    """The lines that `nvidia-smi -L` prints for GPUs of these numbers."""
    lines = []
    for place, index in enumerate(indices):
        name = names[place] if names else draw.choice(NAMES[:4])
        uuid = f"GPU-{draw.integer(0, 16**8):08x}-{draw.integer(0, 16**4):04x}"
        lines.append(f"GPU {index}: {name} (UUID: {uuid})")
    return lines


def read(lines: list[str], form: str, end: str = "\n") -> Case:
    text = "".join(f"{line}{end}" for line in lines)
    return {"listing": text, "form": form}


@check(
    "know_your_gpus",
    probe=probes.listed,
    weight=2,
    rule=compared,
    says="`list_gpus`: index, name and UUID of one and of several GPUs",
)
def lists_gpus(draw: Draw) -> list[Case]:
    one = listing(draw, [0])
    return [
        read(one, "one GPU"),
        {"listing": one[0], "form": "one GPU and no end of the line"},
        read(listing(draw, [0, 1, 2, 3], list(NAMES[:4])), "four GPUs"),
        read(
            [f"GPU 3: {NAMES[1]} (UUID: GPU-{draw.integer(1, 99)}f)"],
            "a short UUID",
        ),
    ]


@check(
    "know_your_gpus",
    probe=probes.listed,
    weight=2,
    rule=compared,
    says="`list_gpus`: indices of several digits, in the order of the lines",
)
def indices_of_several_digits(draw: Draw) -> list[Case]:
    return [
        read(listing(draw, [0, 9, 10, 11]), "indices 9, 10 and 11"),
        read(listing(draw, list(range(12))), "twelve GPUs"),
        read(listing(draw, [draw.integer(100, 200), 3]), "three digits"),
    ]


@check(
    "know_your_gpus",
    probe=probes.listed,
    rule=compared,
    says="`list_gpus`: names with blanks, colons and parentheses",
    corners=[
        "a name may look like an index or a UUID; a blank is neither its first nor "
        "its last character"
    ],
)
def names_of_all_kinds(draw: Draw) -> list[Case]:
    pcie = f"NVIDIA A{draw.integer(10, 99)} (PCIe)"
    colons = f"Card: {draw.integer(1, 9)}: Ti"
    return [
        read(listing(draw, [0], [NAMES[2]]), "blanks in a name"),
        read(listing(draw, [0, 1], [colons, NAMES[5]]), "colons in a name"),
        read(listing(draw, [0, 1], [pcie, NAMES[4]]), "parentheses in a name"),
        read(listing(draw, [0], ["GPU 7"]), "a name that looks like an index"),
        read(listing(draw, [4], ["T4"]), "a short name"),
        read(listing(draw, [1], ["T4 (UUID: no)"]), "a name with a UUID in it"),
        read(listing(draw, [2], ["Tesla  T4"]), "two blanks in a row"),
    ]


@check(
    "know_your_gpus",
    probe=probes.listed,
    rule=compared,
    says="`list_gpus`: lines that do not begin with `GPU ` are left out",
    corners=[
        "indented lines for the slices of a card, empty lines, a warning that "
        "names a GPU, `No devices found.`",
        "an empty text gives an empty list",
    ],
)
def lines_that_do_not_count(draw: Draw) -> list[Case]:
    cards = listing(draw, [0, 1])
    piece = f"MIG-{draw.integer(0, 16**8):08x}"
    slices = [
        f"  MIG 3g.20gb     Device  0: (UUID: {piece})",
        f"  MIG 4g.20gb     Device  1: (UUID: {piece}1)",
    ]
    warning = "WARNING: infoROM is corrupted at gpu 0000:00:1E.0"
    (lost,) = listing(draw, [7])
    return [
        read(cards, "nothing but GPUs"),
        {"listing": "", "form": "an empty text"},
        read([], "no lines"),
        read(["No devices found."], "no devices"),
        read([cards[0], *slices, cards[1]], "slices of a card"),
        read([warning, "", cards[0], "", cards[1], ""], "other lines"),
        read([cards[0], f"WARNING: {lost}"], "a warning that names a GPU"),
        read([cards[0], f"  {lost}"], "an indented line"),
        read(["GPUs: 2", *cards], "a line that begins with GPUs"),
    ]


@check(
    "know_your_gpus",
    probe=probes.listed,
    rule=compared,
    says="`list_gpus`: lines that end in blanks, or as on Windows, or both",
    corners=["on Windows lines end in `\\r\\n`"],
)
def ends_of_lines(draw: Draw) -> list[Case]:
    return [
        read(listing(draw, [0, 1]), "line ends as on Windows", "\r\n"),
        read(listing(draw, [0, 1]), "blanks at the ends of lines", "  \n"),
        read(listing(draw, [0, 1]), "blanks before \\r\\n", "  \r\n"),
    ]
