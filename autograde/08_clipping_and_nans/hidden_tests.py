"""What is checked in chapter 08: clipping and NaNs."""

import math

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    Result,
    Rule,
    check,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
    same_form,
)
from course_grader.judge.compare import Tolerance, difference

from . import probes

FLOAT, DOUBLE, HALF = torch.float32, torch.float64, torch.float16
CLOSE = {"rtol": 1e-9, "atol": 1e-12}
NAN, INF = math.nan, math.inf
ALONE = (leaves_inputs_alone, leaves_rng_alone, leaves_state_alone)


def same(seen: object, expected: object, rtol: float = 1e-9) -> bool:
    """Equal in structure, dtypes and shapes, and in values to rounding."""
    if isinstance(expected, Tensor):
        return (
            isinstance(seen, Tensor)
            and seen.dtype == expected.dtype
            and seen.shape == expected.shape
            and torch.allclose(
                seen.to(DOUBLE),
                expected.to(DOUBLE),
                rtol=rtol,
                atol=1e-12,
                equal_nan=True,
            )
        )
    if isinstance(expected, dict):
        return (
            isinstance(seen, dict)
            and seen.keys() == expected.keys()
            and all(same(seen[key], expected[key], rtol) for key in expected)
        )
    if isinstance(expected, list | tuple):
        return (
            type(seen) is type(expected)
            and len(seen) == len(expected)
            and all(
                same(one, other, rtol)
                for one, other in zip(seen, expected, strict=True)
            )
        )
    if isinstance(expected, float):
        return isinstance(seen, float) and math.isclose(
            seen, expected, rel_tol=rtol, abs_tol=1e-12
        )
    return type(seen) is type(expected) and seen == expected


# clip_gradients


def joint_norm(gradients: list[Tensor | None], p: float) -> float:
    there = [g.to(DOUBLE).flatten() for g in gradients if g is not None]
    return float(torch.linalg.vector_norm(torch.cat(there), p))


def clipping(
    draw: Draw,
    *,
    norm: float | None = None,
    max_norm: float = 1.0,
    shapes: tuple[tuple[int, ...], ...] = ((3, 4), (5,), (2, 3, 2)),
    dtypes: tuple[torch.dtype, ...] = (FLOAT,),
    missing: tuple[int, ...] = (),
    frozen: tuple[int, ...] = (),
    given_as: str = "list",
    memory: str = "own",
    may_raise: bool = False,
    **options: object,
) -> Case:
    """Tensors of these shapes, with gradients of that joint norm (if it is
    given); the dtypes come in turn."""
    gradients: list[Tensor | None] = [
        draw.normal(*shape, std=1.0 + i, dtype=DOUBLE)
        for i, shape in enumerate(shapes)
    ]
    if norm is not None:
        p = float(options.get("norm_type", 2.0))  # type: ignore[arg-type]
        kept = [g for i, g in enumerate(gradients) if i not in missing]
        factor = norm / joint_norm(kept, p)
        gradients = [factor * g for g in gradients if g is not None]
    turns = [dtypes[i % len(dtypes)] for i in range(len(shapes))]
    gradients = [
        None if i in missing or g is None else g.to(dtype)
        for i, (g, dtype) in enumerate(zip(gradients, turns, strict=True))
    ]
    return {
        "gradients": gradients,
        "values": [
            draw.normal(*shape, dtype=dtype)
            for shape, dtype in zip(shapes, turns, strict=True)
        ],
        "max_norm": max_norm,
        "frozen": list(frozen),
        "given_as": given_as,
        "memory": memory,
        "may_raise": may_raise,
        "options": options,
    }


def with_entries(case: Case, *places: tuple[int, int, float]) -> Case:
    """The case with (tensor, entry, value) written into its gradients."""
    gradients = [g if g is None else g.clone() for g in case["gradients"]]
    for which, entry, value in places:
        flat = gradients[which].view(-1)
        flat[entry % flat.numel()] = value
    return {**case, "gradients": gradients}


def with_zeros(case: Case, which: int) -> Case:
    """The case with a gradient of zeros."""
    gradients = list(case["gradients"])
    gradients[which] = torch.zeros_like(gradients[which])
    return {**case, "gradients": gradients}


def all_negative(case: Case) -> Case:
    """The case with every gradient below zero."""
    return {**case, "gradients": [-g.abs() for g in case["gradients"]]}


@check(
    "clip_gradients",
    probe=probes.clipped,
    weight=2,
    on=("norm",),
    rtol=1e-5,
    says="returned is the norm before clipping, of all gradients together",
    corners=[
        "a tensor without dimensions: float64 if any gradient is float64, "
        "otherwise float32; a gradient without elements need not count"
    ],
)
def norm_before_clipping(draw: Draw) -> list[Case]:
    return [
        clipping(draw, norm=5.0, max_norm=1.0),
        clipping(draw, norm=draw.integer(3, 9) + 0.5, max_norm=0.5),
        clipping(draw, norm=2.0, max_norm=50.0),
        clipping(draw, max_norm=1.0, dtypes=(DOUBLE,)),
        clipping(draw, shapes=((7,),), max_norm=0.1),
    ]


def clipped_to(case: Case, seen: Result, expected: Result) -> str | None:
    gradients, right = seen.data["gradients"], expected.data["gradients"]
    if same(gradients, right, rtol=1e-5):
        return None
    if not all(isinstance(g, Tensor) for g in gradients):
        return "A gradient is gone."
    length = joint_norm(gradients, 2.0)
    wanted = joint_norm(right, 2.0)
    cosine = float(
        sum(
            (one.to(DOUBLE) * other.to(DOUBLE)).sum()
            for one, other in zip(gradients, right, strict=True)
        )
        / max(length * wanted, 1e-300)
    )
    if wanted > 0 and cosine < 1 - 1e-6:
        return "After clipping the gradient points in another direction."
    return "The direction is right, but not the norm after clipping."


@check(
    "clip_gradients",
    probe=probes.clipped,
    weight=3,
    rule=clipped_to,
    says="large gradients: the joint norm becomes `max_norm`, the direction "
    "stays",
    corners=[
        "to a relative 1e-5, and no norm that is clipped is below 1: with "
        "PyTorch's 1e-6 beside the norm and without are both right",
        "`max_norm` may be 0",
    ],
)
def one_common_factor(draw: Draw) -> list[Case]:
    norm = draw.integer(20, 90) / 10
    return [
        clipping(draw, norm=5.0, max_norm=1.0),
        clipping(draw, norm=300.0, max_norm=draw.integer(2, 9) + 0.5),
        clipping(draw, norm=1e6, max_norm=1e-2, dtypes=(DOUBLE,)),
        clipping(draw, norm=norm, max_norm=norm * 0.999),
        clipping(draw, norm=norm, max_norm=norm, dtypes=(DOUBLE,)),
        clipping(draw, norm=4.0, max_norm=0.0),
        clipping(draw, shapes=((4,), (4,)), norm=3.0, max_norm=2.5),
    ]


def untouched(case: Case, seen: Result, expected: Result) -> str | None:
    for one, other in zip(
        seen.data["gradients"], case["gradients"], strict=True
    ):
        if not (isinstance(one, Tensor) and torch.equal(one, other)):
            return "A gradient whose norm was small enough has changed."
    return None


@check(
    "clip_gradients",
    probe=probes.clipped,
    weight=2,
    rule=untouched,
    says="gradients with a smaller norm stay as they are, bit for bit",
)
def small_gradients_stay(draw: Draw) -> list[Case]:
    return [
        clipping(draw, norm=5.0, max_norm=100.0),
        clipping(draw, norm=5.0, max_norm=5.01),
        clipping(draw, norm=draw.integer(2, 9) * 1.0, max_norm=9.0001),
        clipping(draw, norm=5.0, max_norm=5.0005),
        clipping(draw, norm=draw.integer(1, 9) * 1.0, max_norm=1e6),
        clipping(draw, norm=0.5, max_norm=INF, dtypes=(DOUBLE,)),
        clipping(draw, norm=2.0, max_norm=2.02, norm_type=1.0),
        # smaller than what is added to the norm; and its square is 0
        clipping(draw, norm=draw.integer(1, 9) * 1e-8),
        clipping(draw, norm=1e-200, dtypes=(DOUBLE,)),
    ]


@check(
    "clip_gradients",
    probe=probes.clipped,
    on=("norm", "gradients"),
    rtol=1e-5,
    says="any `norm_type`: 1, 3, one half, infinity",
)
def other_norms(draw: Draw) -> list[Case]:
    double = (DOUBLE,)
    return [
        clipping(draw, norm=6.0, norm_type=1.0, dtypes=double),
        clipping(draw, norm=6.0, norm_type=3.0, dtypes=double),
        clipping(draw, norm=9.0, norm_type=0.5, dtypes=double),
        clipping(draw, norm=4.0, max_norm=2.0, norm_type=INF),
        clipping(draw, norm=7.0, max_norm=2.0, norm_type=1),
        clipping(draw, norm=7.0, max_norm=9.0, norm_type=INF),
        all_negative(clipping(draw, norm=4.0, norm_type=INF)),
        all_negative(clipping(draw, norm=5.0, norm_type=3.0)),
    ]


@check(
    "clip_gradients",
    probe=probes.clipped,
    on=("norm", "gradients"),
    rtol=1e-5,
    says="tensors without gradient or without elements; no gradient at all, or "
    "zeros: the norm is 0",
    corners=[
        "a `.grad` that is `None` stays `None`; gradients of zeros stay "
        "zeros, also where `max_norm` is 0"
    ],
)
def gradients_that_are_missing(draw: Draw) -> list[Case]:
    empty = ((3,), (0, 4), (2, 2))
    zeros = clipping(draw)
    zeros["gradients"] = [torch.zeros_like(g) for g in zeros["gradients"]]
    return [
        {**zeros, "max_norm": 0.0},
        clipping(draw, norm=5.0, shapes=empty, norm_type=INF),
        clipping(draw, norm=5.0, missing=(draw.integer(0, 3),)),
        clipping(draw, norm=5.0, missing=(0, 2), max_norm=2.0),
        clipping(draw, norm=5.0, shapes=empty),
        clipping(draw, norm=5.0, shapes=((), (3,), (1, 1))),
        clipping(draw, missing=(0, 1, 2)),
        clipping(draw, shapes=()),
        zeros,
    ]


@check(
    "clip_gradients",
    probe=probes.clipped,
    on=("norm", "gradients"),
    rtol=1e-5,
    says="`parameters` may be a generator, a view of a dict, a set or one "
    "tensor",
    corners=["no tensor comes twice"],
)
def any_iterable(draw: Draw) -> list[Case]:
    kinds = ("generator", "values", "set", "iterator", "generator")
    return [
        *(
            clipping(draw, norm=draw.integer(3, 9) * 1.0, given_as=kind)
            for kind in kinds
        ),
        clipping(draw, norm=3.0, shapes=((4, 2),), given_as="tensor"),
        clipping(draw, norm=3.0, shapes=((1,),), given_as="tensor"),
    ]


def in_place(case: Case, seen: Result, expected: Result) -> str | None:
    if not all(seen.data["same"]):
        return (
            "A `.grad` is another tensor than before, not multiplied in place."
        )
    if HALF in [g.dtype for g in case["gradients"] if g is not None]:
        return None  # the numbers are the matter of another check
    if not same(seen.data["buffers"], expected.data["buffers"], rtol=1e-5):
        return (
            "The memory that the gradients share with a larger buffer, or that "
            "lies between their entries, does not hold what it should."
        )
    if not same(seen.data["gradients"], expected.data["gradients"], rtol=1e-5):
        return "Gradients in memory that is not contiguous are wrong."
    return None


@check(
    "clip_gradients",
    probe=probes.clipped,
    rule=in_place,
    says="gradients are multiplied in place, in whatever memory they lie",
    corners=[
        "each `.grad` is the same tensor as before, also if it is not "
        "contiguous or shares its memory with a larger buffer"
    ],
)
def multiplied_in_place(draw: Draw) -> list[Case]:
    return [
        clipping(draw, norm=5.0, memory="own"),
        clipping(draw, norm=5.0, memory="buffer"),
        clipping(draw, norm=5.0, memory="strided"),
        clipping(draw, norm=5.0, memory="turned"),
        clipping(draw, norm=5.0, max_norm=9.0, memory="buffer"),
        clipping(draw, norm=5.0, memory="bucket"),
        clipping(draw, norm=5.0, memory="bucket", missing=(1,)),
        clipping(draw, norm=5.0, dtypes=(HALF, torch.bfloat16)),
    ]


@check(
    "clip_gradients",
    probe=probes.clipped,
    on=("norm", "gradients"),
    rtol=1e-5,
    says="float32 and float64 together: one norm, in float64, and each keeps "
    "its dtype",
)
def mixed_dtypes(draw: Draw) -> list[Case]:
    return [
        clipping(draw, norm=5.0, dtypes=(FLOAT, DOUBLE)),
        clipping(draw, norm=5.0, dtypes=(DOUBLE, FLOAT), missing=(0,)),
        clipping(draw, norm=5.0, dtypes=(FLOAT, DOUBLE), missing=(1,)),
        clipping(draw, norm=5.0, dtypes=(DOUBLE,)),
        clipping(draw, norm=5e60, max_norm=3e60, dtypes=(DOUBLE,)),
    ]


def half_clipped(case: Case, seen: Result, expected: Result) -> str | None:
    norm, right = seen.data["norm"], expected.data["norm"]
    if not isinstance(norm, Tensor):
        return "What is returned is no tensor."
    if norm.dtype != right.dtype:
        if right.dtype == DOUBLE:
            return "The norm of float16 and float64 together is not float64."
        return "The norm of half precision gradients is not float32."
    if not norm.isfinite().all():
        return (
            "The norm of half precision gradients is infinite or NaN, and the "
            "gradients are not: something was computed in float16."
        )
    found = difference({"norm": norm}, {"norm": right}, Tolerance(1e-4, 1e-12))
    if found:
        return found
    for one, other in zip(
        seen.data["gradients"], expected.data["gradients"], strict=True
    ):
        if not isinstance(one, Tensor) or one.dtype != other.dtype:
            return "A gradient in half precision changed its dtype."
        rtol = 5e-3 if one.dtype == HALF else 2e-2
        if not torch.allclose(one.double(), other.double(), rtol, 1e-5):
            return "A gradient in half precision is wrong after clipping."
    return None


@check(
    "clip_gradients",
    probe=probes.clipped,
    weight=2,
    rule=half_clipped,
    says="half precision: the norm is float32, also where float16 overflows",
    corners=["the factor, too, may be too small for float16"],
)
def half_precision(draw: Draw) -> list[Case]:
    half, brain = (HALF,), (torch.bfloat16,)
    # so many entries that none of them overflows
    large = {"shapes": ((10, 10), (60,), (10, 16))}
    return [
        clipping(draw, norm=1.5e5, max_norm=1e3, dtypes=half, **large),
        clipping(
            draw, norm=8e4, max_norm=2e3, dtypes=half, norm_type=1.0, **large
        ),
        clipping(draw, norm=5.0, dtypes=half),
        clipping(draw, norm=50.0, dtypes=brain),
        clipping(draw, norm=9e4, max_norm=1e3, dtypes=(HALF, DOUBLE), **large),
        # a factor of 9e-8, between two numbers of float16
        clipping(draw, norm=1.5e5, max_norm=0.0135, dtypes=half, **large),
        with_entries(
            clipping(draw, max_norm=1e-4, dtypes=half, norm_type=INF),
            (1, draw.integer(0, 5), 6e4),
        ),
    ]


def spread(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["raised"]:
        return "An error was raised although `error_if_nonfinite` is False."
    if not same(seen.data["norm"], expected.data["norm"], rtol=1e-5):
        return "The norm that was returned is wrong; it may be NaN or infinite."
    if not same(seen.data["gradients"], expected.data["gradients"], rtol=1e-5):
        return (
            "After a norm that is not finite the gradients are not what "
            "multiplying by `max_norm / norm` makes of them."
        )
    return None


@check(
    "clip_gradients",
    probe=probes.clipped,
    rule=spread,
    says="NaN and infinity are not hidden: the gradients are multiplied as "
    "usual",
    corners=[
        "after a NaN norm each gradient is NaN, also if `max_norm` is infinite; "
        "after an infinite one, with a finite `max_norm`, the infinite entries "
        "are NaN and all others 0",
        "no case has finite entries whose squares (or other powers), added up, a "
        "float32 does not hold",
    ],
)
def nonfinite_spreads(draw: Draw) -> list[Case]:
    def place(value: float) -> tuple[int, int, float]:
        return draw.integer(0, 3), draw.integer(0, 100), value

    return [
        with_entries(clipping(draw, norm=5.0), place(NAN)),
        with_entries(clipping(draw, norm=5.0), place(INF)),
        with_entries(clipping(draw, norm=5.0), place(-INF)),
        with_entries(clipping(draw, norm=0.5), place(NAN), place(INF)),
        with_entries(clipping(draw, norm=0.5, max_norm=INF), place(NAN)),
        *(
            with_entries(
                clipping(draw, norm=3.0, norm_type=INF), (which, 0, NAN)
            )
            for which in range(3)
        ),
        with_entries(clipping(draw, norm=3.0, max_norm=0.0), place(NAN)),
        with_entries(
            with_zeros(clipping(draw, norm=3.0), 0), (1, 3, NAN), (2, 1, 0.0)
        ),
        clipping(draw, norm=3.0),
        with_entries(
            clipping(draw, norm=5.0, dtypes=(HALF, torch.bfloat16)), place(NAN)
        ),
    ]


def refused(case: Case, seen: Result, expected: Result) -> str | None:
    if bool(seen.data["raised"]) != bool(expected.data["raised"]):
        if expected.data["raised"]:
            return "With `error_if_nonfinite` no RuntimeError was raised."
        return "With `error_if_nonfinite` finite gradients were refused."
    if not same(seen.data["gradients"], expected.data["gradients"], rtol=1e-5):
        if expected.data["raised"]:
            return (
                "With `error_if_nonfinite` gradients changed before it raised."
            )
        return (
            "With `error_if_nonfinite` finite gradients are not clipped right."
        )
    return None


@check(
    "clip_gradients",
    probe=probes.clipped,
    rule=refused,
    says="`error_if_nonfinite`: a `RuntimeError`, and no gradient is touched",
    corners=[
        "also if `max_norm` is infinite, and in half precision; a norm that "
        "float64 holds is finite"
    ],
)
def nonfinite_is_refused(draw: Draw) -> list[Case]:
    cases = []
    for value, max_norm, options in (
        (NAN, 1.0, {}),
        (INF, INF, {}),
        (-INF, 1.0, {"norm_type": INF}),
        (NAN, 1.0, {"dtypes": (HALF,)}),
    ):
        case = clipping(
            draw,
            norm=5.0,
            max_norm=max_norm,
            error_if_nonfinite=True,
            may_raise=True,
            **options,
        )
        place = draw.integer(0, 3), draw.integer(0, 100), value
        cases.append(with_entries(case, place))
    finite = {"error_if_nonfinite": True, "dtypes": (DOUBLE,)}
    return [*cases, clipping(draw, norm=5e60, max_norm=3e60, **finite)]


def only_gradients(case: Case, seen: Result, expected: Result) -> str | None:
    if not same(seen.data["values"], expected.data["values"]):
        return "The parameters themselves have changed."
    if seen.data["frozen"] != expected.data["frozen"]:
        return "A parameter's `requires_grad` has changed."
    if not seen.data["detached"]:
        return "The norm that was returned has a graph."
    if not seen.data["unseeded"]:
        return "PyTorch's global generator was seeded."
    if not seen.data["list_kept"]:
        return "The list that was given to you is not as it was."
    if not same(seen.data["gradients"], expected.data["gradients"], rtol=1e-5):
        return "The gradients are wrong."
    return None


@check(
    "clip_gradients",
    probe=probes.clipped,
    rule=only_gradients,
    also=ALONE,
    says="nothing changes but the gradients, and the norm returned has no graph",
    corners=[
        "a gradient may have a graph",
        "PyTorch's settings and its random seed are not yours to change",
    ],
)
def nothing_else_changes(draw: Draw) -> list[Case]:
    return [
        clipping(draw, norm=5.0),
        clipping(draw, norm=5.0, frozen=(1,), missing=(2,)),
        clipping(draw, norm=5.0, max_norm=20.0, given_as="generator"),
        clipping(draw, norm=5.0, memory="of_a_graph"),
    ]


# nonfinite_entries

KEYS = (
    "image",
    "label",
    "mask",
    "weight",
    "boxes",
    "scale",
    "depth",
    "audio",
    "time",
    "a",
    "z",
    "x",
)
Node = list[object]  # [kind, content]


def tensor_leaf(
    draw: Draw,
    value: complex | None = None,
    dtype: torch.dtype = FLOAT,
    form: str = "plain",
    shape: tuple[int, ...] = (2, 3),
) -> Node:
    """A tensor; if there is a value, it stands somewhere in it."""
    tensor = draw.normal(*shape, dtype=DOUBLE)
    if dtype == torch.bool or not (dtype.is_floating_point or dtype.is_complex):
        tensor = (tensor * 3).abs()
    tensor = tensor.to(dtype)
    if value is not None:
        tensor.view(-1)[draw.integer(0, tensor.numel())] = value
    return ["tensor", [tensor, form]]


def dict_of(draw: Draw, *nodes: Node) -> Node:
    """The nodes in this order under keys that are drawn."""
    order = draw.permutation(len(KEYS)).tolist()
    pairs = zip(order, nodes, strict=False)
    return ["dict", [[KEYS[index], node] for index, node in pairs]]


def shuffled(draw: Draw, *nodes: Node) -> Node:
    """A dict of the nodes in an order that is drawn."""
    order = draw.permutation(len(nodes)).tolist()
    return dict_of(draw, *(nodes[index] for index in order))


def tree(draw: Draw, node: Node, name: str | None = None) -> Case:
    return {"tree": node, "name": name}


def number(value: object) -> Node:
    return ["number", value]


NAMES = {"on": ("names",)}


# An infinity that is not seen costs this check and those of dtypes and of large
# numbers: the others have NaN alone.
@check(
    "nonfinite_entries",
    probe=probes.named,
    weight=6,
    **NAMES,
    says="NaN, infinity and negative infinity in the tensors of a dict",
)
def nan_and_infinities(draw: Draw) -> list[Case]:
    good = [tensor_leaf(draw) for _ in range(3)]
    bad = [tensor_leaf(draw, value) for value in (NAN, INF, -INF)]
    return [
        tree(draw, shuffled(draw, *good, *bad)),
        tree(draw, shuffled(draw, *good, bad[0])),
        tree(draw, shuffled(draw, *good, bad[1])),
        tree(draw, shuffled(draw, *good, bad[2])),
        tree(draw, shuffled(draw, *good)),
    ]


def nested(draw: Draw, depth: int) -> Node:
    """A tree of this depth with good and bad leaves."""
    if depth == 0:
        value = draw.choice([None, None, NAN])
        return tensor_leaf(draw, value, shape=(draw.integer(1, 4),))
    inner = [nested(draw, depth - 1) for _ in range(draw.integer(2, 4))]
    leaf = [tensor_leaf(draw, NAN, shape=(2,))]
    kind = draw.choice(["dict", "list", "tuple"])
    if kind == "dict":
        return dict_of(draw, *inner, *leaf)
    return [kind, inner + leaf]


@check(
    "nonfinite_entries",
    probe=probes.named,
    weight=2,
    **NAMES,
    says="dicts, lists and tuples to any depth: names, in the order of the data",
    corners=[
        "one name for each; two entries may have the same one",
        "a tensor or a container that stands at two places is named at both",
    ],
)
def names_of_nested_entries(draw: Draw) -> list[Case]:
    deep: Node = tensor_leaf(draw, NAN)
    for _ in range(6):
        filler = [tensor_leaf(draw) for _ in range(draw.integer(1, 4))]
        kind = draw.choice(["dict", "list", "tuple"])
        inside = [*filler, deep]
        deep = dict_of(draw, *inside) if kind == "dict" else [kind, inside]
    return [
        tree(draw, dict_of(draw, nested(draw, 1), nested(draw, 2))),
        tree(draw, nested(draw, 2)),
        tree(draw, nested(draw, 3)),
        tree(draw, dict_of(draw, nested(draw, 1), tensor_leaf(draw, NAN))),
        tree(draw, dict_of(draw, deep)),
        tree(draw, ["list", [["list", []], ["dict", []], nested(draw, 1)]]),
        tree(
            draw,
            dict_of(draw, tensor_leaf(draw, NAN), *[["again", None]] * 2),
        ),
        tree(draw, ["twice", dict_of(draw, tensor_leaf(draw, NAN))]),
    ]


@check(
    "nonfinite_entries",
    probe=probes.named,
    **NAMES,
    says="the outermost has the name that is given, or `batch`",
)
def name_of_the_outermost(draw: Draw) -> list[Case]:
    bad = tensor_leaf(draw, NAN)
    return [
        tree(draw, bad, draw.choice(KEYS)),
        tree(draw, number(INF), draw.choice(KEYS)),
        tree(draw, ["tuple", [tensor_leaf(draw), bad]], draw.choice(KEYS)),
        tree(draw, dict_of(draw, bad), draw.choice(KEYS)),
        tree(draw, bad),
        tree(draw, dict_of(draw, bad)),
        tree(draw, tensor_leaf(draw), draw.choice(KEYS)),
    ]


FLOATS = (HALF, torch.bfloat16, FLOAT, DOUBLE)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
)


@check(
    "nonfinite_entries",
    probe=probes.named,
    weight=2,
    **NAMES,
    says="every dtype, half precision, complex and integers among them",
)
def every_dtype(draw: Draw) -> list[Case]:
    wide = FLOATS + COMPLEX
    imaginary = [
        tensor_leaf(draw, complex(1, value), dtype)
        for value in (NAN, INF)
        for dtype in COMPLEX
    ]
    return [
        tree(draw, shuffled(draw, *imaginary, tensor_leaf(draw))),
        tree(draw, shuffled(draw, *(tensor_leaf(draw, NAN, d) for d in wide))),
        tree(draw, shuffled(draw, *(tensor_leaf(draw, INF, d) for d in wide))),
        tree(
            draw,
            shuffled(
                draw,
                *(tensor_leaf(draw, None, d) for d in INTEGERS + wide),
                tensor_leaf(draw, -INF, draw.choice(FLOATS)),
            ),
        ),
        tree(
            draw,
            shuffled(
                draw,
                *(tensor_leaf(draw, draw.choice([None, NAN]), d) for d in wide),
                *(tensor_leaf(draw, None, d) for d in INTEGERS),
            ),
        ),
    ]


def largest(draw: Draw, dtype: torch.dtype, sign: float = 1.0) -> Node:
    """A finite tensor of the largest numbers: its sum is infinite."""
    shape = draw.integer(2, 5), draw.integer(2, 5)
    tensor = torch.full(shape, sign * torch.finfo(dtype).max, dtype=dtype)
    return ["tensor", [tensor, "plain"]]


@check(
    "nonfinite_entries",
    probe=probes.named,
    **NAMES,
    says="the largest finite numbers are finite, also where their sum is not",
)
def large_numbers_are_finite(draw: Draw) -> list[Case]:
    big = [largest(draw, dtype) for dtype in FLOATS]
    low = [largest(draw, dtype, -1.0) for dtype in FLOATS]
    bad = [tensor_leaf(draw, INF, dtype) for dtype in FLOATS]
    top, most = torch.finfo(FLOAT).max, torch.finfo(DOUBLE).max
    wide = torch.full((2, 3), complex(top, -top), dtype=torch.complex64)
    widest = torch.full((2, 3), 1e308 - 1e308j, dtype=torch.complex128)
    return [
        tree(draw, shuffled(draw, ["tensor", [wide, "plain"]], bad[1])),
        tree(draw, shuffled(draw, ["tensor", [widest, "plain"]], bad[3])),
        tree(draw, shuffled(draw, *big, bad[0], bad[3])),
        tree(draw, shuffled(draw, *low, *bad)),
        tree(draw, shuffled(draw, number(most), bad[1], number(-most))),
    ]


@check(
    "nonfinite_entries",
    probe=probes.named,
    weight=2,
    **NAMES,
    says="tensors that need a gradient, are empty, strided or have no dimensions",
)
def every_kind_of_tensor(draw: Draw) -> list[Case]:
    def leaves(value: float | None) -> list[Node]:
        forms = ("requires_grad", "of_a_graph", "strided", "turned")
        return [
            *(tensor_leaf(draw, value, form=form) for form in forms),
            tensor_leaf(draw, value, shape=()),
            tensor_leaf(draw, value, form="requires_grad", shape=()),
            tensor_leaf(
                draw, value, dtype=torch.bfloat16, form="requires_grad"
            ),
        ]

    empty = [tensor_leaf(draw, shape=(0, 3)), tensor_leaf(draw, shape=(0,))]
    return [
        tree(draw, shuffled(draw, *leaves(NAN), *empty)),
        tree(draw, shuffled(draw, *leaves(None), *empty, *leaves(NAN)[:1])),
    ]


@check(
    "nonfinite_entries",
    probe=probes.named,
    **NAMES,
    says="an `OrderedDict`, a `defaultdict`, a named tuple, an `nn.Parameter`; "
    "keys with dots",
    corners=["keys and names may be empty"],
)
def relatives_of_the_types(draw: Draw) -> list[Case]:
    def leaf(form: str = "plain") -> Node:
        value = draw.choice([None, NAN])
        return tensor_leaf(draw, value, form=form, shape=(3,))

    def keys(*nodes: Node) -> list[object]:
        order = draw.permutation(len(nodes)).tolist()
        return [[f"{i}.{draw.choice(KEYS)}", nodes[i]] for i in order]

    bad = tensor_leaf(draw, NAN)
    one, other = KEYS[draw.integer(0, 5)], KEYS[draw.integer(5, 12)]
    twice: Node = [
        "dict",
        [
            [f"{one}.{other}", bad],
            [f" {other} ", bad],
            [one, ["dict", [[other, bad]]]],
        ],
    ]
    parameters = [leaf("parameter") for _ in range(4)]
    parameters += [tensor_leaf(draw, NAN, form="parameter")]
    return [
        tree(draw, ["ordered", keys(*parameters)]),
        tree(draw, ["ordered", keys(leaf(), bad, leaf(), leaf())]),
        tree(draw, ["list", [leaf(), ["pair", [leaf(), bad]], leaf()]]),
        tree(draw, ["default", keys(leaf(), bad, leaf())]),
        tree(draw, ["dict", [["", bad], [one, leaf()]]]),
        tree(draw, ["list", [leaf(), bad]], ""),
        tree(draw, ["dict", [[one, bad], ["", ["dict", [[other, bad]]]]]], ""),
        tree(draw, twice),
    ]


@check(
    "nonfinite_entries",
    probe=probes.named,
    **NAMES,
    says="Python numbers: floats may not be finite, whole numbers of any size are",
    corners=["NumPy's numbers and Python's `complex` are not tried"],
)
def python_numbers(draw: Draw) -> list[Case]:
    huge: list[Node] = [
        ["integer", str(10 ** draw.integer(310, 500))],
        ["integer", str(-(10 ** draw.integer(310, 500)))],
        ["integer", "0"],
    ]
    bad = [number(NAN), number(INF), number(-INF)]
    good = [number(draw.integer(0, 99) / 7), number(True), number(-0.0)]
    return [
        tree(draw, shuffled(draw, *bad, *good)),
        tree(draw, shuffled(draw, *huge, *good, bad[0])),
        tree(draw, ["list", [*good, *huge, bad[1], *good, bad[2]]]),
    ]


@check(
    "nonfinite_entries",
    probe=probes.named,
    **NAMES,
    says="strings and None are nothing to name",
)
def texts_and_none(draw: Draw) -> list[Case]:
    texts = [["text", one] for one in ("nan", "inf", "-inf", "", "cat")]
    none: Node = ["none", None]
    return [
        tree(draw, shuffled(draw, *texts, none, number(NAN))),
        tree(draw, shuffled(draw, none, none, tensor_leaf(draw, NAN))),
        tree(draw, ["list", [*texts, none, tensor_leaf(draw, NAN), none]]),
    ]


def left_alone(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["same"]:
        return (
            "The data you were given is not as it was: its structure, its "
            "values, its gradients or `requires_grad`."
        )
    if not seen.data["kept"]:
        return "A later call changes the list that this one returned."
    if not seen.data["unseeded"]:
        return "PyTorch's global generator was seeded."
    if not same(seen.data["names"], expected.data["names"]):
        return "The names are wrong."
    return None


@check(
    "nonfinite_entries",
    probe=probes.named,
    rule=left_alone,
    also=ALONE,
    says="the data, its tensors and their gradients are left alone",
    corners=["PyTorch's settings and its random seed are not yours to change"],
)
def data_left_alone(draw: Draw) -> list[Case]:
    forms = ("plain", "requires_grad", "of_a_graph", "strided")
    bad = [tensor_leaf(draw, NAN, form=form) for form in forms]
    good = [tensor_leaf(draw, form=form) for form in forms]
    return [
        tree(draw, dict_of(draw, *bad, *good)),
        tree(draw, dict_of(draw, ["list", bad], ["list", good])),
    ]


# guarded_epoch


def batches(
    draw: Draw,
    num_batches: int,
    *,
    max_norm: float = 0.5,
    loss: str = "squares",
    scale: float = 1.0,
    mode: str = "train",
    adam: bool = False,
    old_gradients: bool = False,
    as_generator: bool = False,
    num_epochs: int = 1,
    extra: str = "",
    held: str = "all",
    stale_gradients: bool = False,
    **options: float,
) -> Case:
    """Good batches, and what model and optimizer are like."""
    num_features, num_outputs = draw.integer(4, 7), draw.integer(2, 4)
    return {
        "batches": [
            [
                draw.normal(6, num_features, std=2.0, dtype=DOUBLE),
                draw.normal(6, num_outputs, mean=3.0, dtype=DOUBLE).abs() + 1,
            ]
            for _ in range(num_batches)
        ],
        "num_features": num_features,
        "num_outputs": num_outputs,
        "width": draw.integer(5, 8),
        "start": draw.normal(600, dtype=DOUBLE),
        "max_norm": max_norm,
        "loss": loss,
        "scale": scale,
        "mode": mode,
        "adam": adam,
        "old_gradients": old_gradients,
        "as_generator": as_generator,
        "num_epochs": num_epochs,
        "extra": extra,
        "held": held,
        "stale_gradients": stale_gradients,
        "options": {"lr": 0.1, **options},
    }


def spoilt(draw: Draw, case: Case, *faults: tuple[int, str, float]) -> Case:
    """The case with faults (position, where, value) in its batches: in an entry
    of "x" or "y" or of the "second" feature, in all of the "target", of the "row" or
    of the second "feature". An entry is in no first and no last row, and in x not
    in the first column."""
    pairs = [[x.clone(), y.clone()] for x, y in case["batches"]]
    for position, where, value in faults:
        x, y = pairs[position]
        row = draw.integer(1, len(x) - 1)
        if where == "x":
            x[row, draw.integer(1, x.shape[1])] = value
        elif where == "y":
            y[row, position % y.shape[1]] = value
        elif where == "target":
            y[:] = value
        elif where == "second":
            x[row, 1] = value
        elif where == "feature":
            x[:, 1] = value
        else:
            x[row] = value
    return {**case, "batches": pairs}


def with_one_row(case: Case) -> Case:
    """The case with a single row in its second batch."""
    first, (x, y) = case["batches"]
    return {**case, "batches": [first, [x[:1], y[:1]]]}


def updates(*keys: str) -> Rule:
    """A rule: as many steps as there are good batches, and these keys equal."""

    def rule(case: Case, seen: Result, expected: Result) -> str | None:
        made, right = seen.data["num_steps"], expected.data["num_steps"]
        if made != right:
            return (
                f"The number of calls of `optimizer.step()` is {made}, and it "
                f"should be {right}."
            )
        return difference(
            {key: seen.data[key] for key in keys},
            {key: expected.data[key] for key in keys},
            Tolerance(**CLOSE),
        )

    return rule


# Epochs that several checks ask about.


def with_bad_inputs(draw: Draw) -> Case:
    return spoilt(draw, batches(draw, 4), (1, "x", NAN), (2, "y", INF))


def with_a_bad_loss(draw: Draw) -> Case:
    return spoilt(draw, batches(draw, 4, loss="ratio"), (1, "y", 0.0))


def with_an_infinite_loss(draw: Draw) -> Case:
    return spoilt(draw, batches(draw, 3), (2, "target", 1e200))


def with_a_bad_gradient(draw: Draw) -> Case:
    return spoilt(draw, batches(draw, 4), (1, "row", 0.0))


def with_a_huge_norm(draw: Draw) -> Case:
    return spoilt(draw, batches(draw, 3, loss="huge"), (1, "y", 60.0))


@check(
    "guarded_epoch",
    probe=probes.epoch,
    weight=3,
    rule=updates("weights"),
    says="each step uses the gradient of its batch, clipped to `max_norm`",
    corners=[
        "the model may add two parameters up, which have one gradient",
        "large is not bad: a loss of 1e60 in float64 is good; `max_norm` may be "
        "0 or 1e-9",
    ],
)
def clipped_updates(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 3, max_norm=0.3, extra="gained"),
        # at this rate one sees a step of so small a gradient
        batches(draw, 3, max_norm=1e-9, lr=1e6, scale=1e30),
        draw.once(batches, 2, max_norm=1e9),
        batches(draw, 2, max_norm=0.0, weight_decay=0.2),
        batches(draw, 2, max_norm=0.2, scale=1e60),
        # a gradient of exactly 0 is good, and a step on it decays
        draw.once(batches, 2, scale=0.0, weight_decay=0.2),
        # so is a loss below 0
        batches(draw, 2, scale=-1.0, max_norm=1.5),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    weight=2,
    on=("norms", "losses"),
    rtol=1e-6,
    atol=1e-12,
    says="norms (before clipping) and losses of the good batches, as floats",
    corners=["`skipped` has the positions of the others, 0 for the first"],
)
def reported_norms(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 3, max_norm=0.3, extra="gained"),
        draw.once(batches, 2, max_norm=1e9),
        draw.once(with_bad_inputs),
        draw.once(with_a_bad_gradient),
        spoilt(draw, batches(draw, 1), (0, "x", NAN)),
        draw.once(batches, 2, scale=0.0, weight_decay=0.2),
    ]


ERRORS = ("FloatingPointError", "OverflowError", "ZeroDivisionError")


@check(
    "guarded_epoch",
    probe=probes.epoch,
    weight=2,
    rule=updates("weights", "skipped"),
    says="a NaN or an infinity in `x` or `y`: no step, and training goes on",
)
def bad_inputs(draw: Draw) -> list[Case]:
    return [
        draw.once(with_bad_inputs),
        spoilt(draw, batches(draw, 4), (0, "y", NAN), (2, "x", INF)),
        spoilt(draw, batches(draw, 3, mode="eval"), (2, "y", INF)),
        spoilt(draw, batches(draw, 2), (0, "x", -INF), (1, "x", NAN)),
        spoilt(draw, batches(draw, 3), (1, "x", 1e7), (2, "x", NAN)),
        spoilt(
            draw,
            batches(draw, 3, loss="bounded"),
            (1, "y", INF),
            (2, "y", -INF),
        ),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    raises=("RuntimeError", "ValueError", *ERRORS),
    rule=updates("weights", "skipped"),
    says="an error of the model, as for a batch of the wrong shape, reaches "
    "the caller: it is no bad batch",
    corners=["the batches before it have been trained on"],
)
def errors_reach_the_caller(draw: Draw) -> list[Case]:
    wrong_shape = batches(draw, 3)
    x, y = wrong_shape["batches"][1]
    wrong_shape["batches"][1] = (torch.cat([x, x], 1), y)
    # batch norm raises a ValueError for one row, these models another error
    return [
        draw.once(batches, 3),
        wrong_shape,
        *(with_one_row(batches(draw, 2, extra=one)) for one in ("", *ERRORS)),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "skipped"),
    says="good inputs, but a loss that is not finite",
)
def bad_losses(draw: Draw) -> list[Case]:
    ratio = {"loss": "ratio"}
    return [
        draw.once(with_a_bad_loss),
        spoilt(draw, batches(draw, 3, **ratio), (0, "y", 0.0), (2, "y", 0.0)),
        draw.once(with_an_infinite_loss),
        spoilt(draw, batches(draw, 3, loss="penalty"), (1, "y", 800.0)),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    weight=2,
    rule=updates("weights", "skipped"),
    says="a finite loss whose gradient is not finite",
)
def bad_gradients(draw: Draw) -> list[Case]:
    return [
        draw.once(with_a_bad_gradient),
        spoilt(draw, batches(draw, 3), (0, "row", 0.0), (2, "row", 0.0)),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "skipped"),
    says="finite gradients whose total norm overflows",
)
def overflowing_norms(draw: Draw) -> list[Case]:
    huge = {"loss": "huge"}
    return [
        draw.once(with_a_huge_norm),
        spoilt(
            draw,
            batches(draw, 3, weight_decay=0.2, **huge),
            (draw.integer(0, 3), "y", 70.0),
        ),
        # in float32, where float64 would not overflow
        spoilt(draw, batches(draw, 1, extra="single", **huge), (0, "y", 60.0)),
    ]


def buffers_kept(case: Case, seen: Result, expected: Result) -> str | None:
    if same(seen.data["buffers"], expected.data["buffers"]):
        return None
    found = seen.data["buffers"]
    if any(not bool(one.isfinite().all()) for one in found.values()):
        return "A buffer holds NaN or infinity after the epoch."
    return "The buffers are not those of the good batches alone."


@check(
    "guarded_epoch",
    probe=probes.epoch,
    weight=3,
    rule=buffers_kept,
    says="buffers: running statistics and counter know the good batches alone",
    corners=[
        "bit for bit, whatever was bad: the input, the loss or the gradient"
    ],
)
def buffers_as_before(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 3),
        draw.once(with_bad_inputs),
        draw.once(with_a_bad_loss),
        draw.once(with_a_bad_gradient),
        spoilt(draw, batches(draw, 3), (1, "row", 1e200)),
        spoilt(draw, batches(draw, 3, mode="mixed"), (1, "row", 0.0)),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "optimizer", "settings"),
    says="momentum, weight decay and Adam's state know nothing of bad batches",
)
def optimizer_as_before(draw: Draw) -> list[Case]:
    decay = {"weight_decay": 0.1}
    return [
        spoilt(draw, batches(draw, 4, momentum=0.9, **decay), (2, "x", NAN)),
        spoilt(
            draw,
            batches(draw, 4, adam=True, num_epochs=2, **decay),
            (1, "row", 0.0),
        ),
        spoilt(
            draw,
            batches(draw, 3, momentum=0.9, loss="ratio"),
            (draw.integer(1, 3), "y", 0.0),
        ),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "skipped"),
    says="what counts is `x` itself: a NaN that the model does not look at is "
    "bad, large finite numbers are not",
)
def inputs_that_do_not_show(draw: Draw) -> list[Case]:
    blind = {"extra": "blind"}
    place = draw.integer(0, 3)
    return [
        spoilt(draw, batches(draw, 3, **blind), (place, "second", NAN)),
        spoilt(draw, batches(draw, 3, **blind), (1, "second", -INF)),
        spoilt(draw, batches(draw, 3, **blind), (1, "feature", 1.5e308)),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=buffers_kept,
    says="every buffer, also one that is in no `state_dict`, and at both places "
    "if it stands at two",
    corners=[
        "a layer may put another tensor in a buffer's place, but for one that "
        "stands at two"
    ],
)
def buffers_of_any_layer(draw: Draw) -> list[Case]:
    counts = {"extra": "counts"}
    return [
        spoilt(draw, batches(draw, 3, **counts), (1, "row", 0.0)),
        spoilt(draw, batches(draw, 2, mode="eval", **counts), (1, "row", 0.0)),
        spoilt(draw, batches(draw, 3, extra="assigns"), (1, "row", 0.0)),
        spoilt(draw, batches(draw, 3, extra="shares"), (1, "row", 0.0)),
        spoilt(
            draw,
            batches(draw, 3, loss="ratio", extra="assigns"),
            (draw.integer(0, 3), "y", 0.0),
        ),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "norms"),
    says="an optimizer that holds only some of the model's parameters",
    corners=[
        "the norm is that of all parameters of the model; it holds no others"
    ],
)
def optimizer_of_a_part(draw: Draw) -> list[Case]:
    return [
        batches(draw, 3, held="head", max_norm=0.3),
        batches(draw, 2, held="head", max_norm=1e9, old_gradients=True),
        spoilt(draw, batches(draw, 4, held="head"), (1, "row", 0.0)),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "norms"),
    says="old gradients of frozen and unused parameters move nothing",
)
def stale_gradients(draw: Draw) -> list[Case]:
    decay = {"weight_decay": 0.2, "stale_gradients": True}
    return [
        batches(draw, 2, **decay),
        batches(draw, 3, momentum=0.5, old_gradients=True, **decay),
        spoilt(draw, batches(draw, 3, **decay), (0, "x", NAN)),
    ]


def no_gradient_left(case: Case, seen: Result, expected: Result) -> str | None:
    if any(seen.data["left"]):
        return "After the epoch a `.grad` is neither None nor zero."
    if not same(seen.data["weights"], expected.data["weights"]):
        return (
            "The weights are not those of steps on each batch's own gradient, "
            "clipped by the norm of all parameters. Did a gradient from elsewhere "
            "take part, in a step or in a norm?"
        )
    return None


@check(
    "guarded_epoch",
    probe=probes.epoch,
    weight=2,
    rule=no_gradient_left,
    says="only a batch's own gradient counts, and none is left at the end",
    corners=["also of a parameter that stands beside the model's layers"],
)
def gradients_are_cleared(draw: Draw) -> list[Case]:
    return [
        spoilt(draw, batches(draw, 3, max_norm=1e9), (2, "row", 0.0)),
        draw.once(with_a_bad_gradient),
        spoilt(
            draw,
            batches(draw, 2, old_gradients=True, momentum=0.5),
            (0, "x", NAN),
        ),
        batches(draw, 2, held="head"),
        batches(draw, 0, old_gradients=True),
        batches(draw, 2, extra="gained", old_gradients=True, max_norm=1e9),
    ]


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=updates("weights", "skipped"),
    says="the loader may be a generator; batches may hold whole numbers, and "
    "three dimensions",
    corners=["the model gets `x`, and the loss function `y`, as they are"],
)
def other_loaders(draw: Draw) -> list[Case]:
    whole = batches(draw, 3)
    whole["batches"] = [
        [
            torch.stack([(3 * x).round().long(), x.long()], 2),
            (3 * y).round().to(torch.int32),
        ]
        for x, y in whole["batches"]
    ]
    return [
        batches(draw, 3, as_generator=True),
        spoilt(draw, batches(draw, 4, as_generator=True), (1, "x", NAN)),
        {**whole, "as_generator": True},
        batches(draw, 0),
    ]


def used_once(case: Case, seen: Result, expected: Result) -> str | None:
    data, right = seen.data, expected.data
    if not data["called"]:
        return "`model.forward` was called, and not `model(...)`."
    limit = case["num_epochs"] * len(case["batches"])
    if len(data["rows"]) > limit or data["losses_taken"] > limit:
        return "A batch went through the model or the loss more than once."
    found = [one for one in data["rows"] if math.isfinite(one)]
    wanted = [one for one in right["rows"] if math.isfinite(one)]
    if not same(found, wanted):
        return "Not every good batch went through the model, in order."
    if not data["modes_kept"]:
        return "A layer was in another mode (train or eval) than before."
    if not data["frozen_kept"]:
        return "A parameter's `requires_grad` has changed."
    if not data["unseeded"]:
        return "PyTorch's global generator was seeded."
    if data["hooks"]:
        return "A hook was left on the model."
    if not data["plain"]:
        return "A tensor of a batch requires a gradient now."
    return None


@check(
    "guarded_epoch",
    probe=probes.epoch,
    rule=used_once,
    also=ALONE,
    says="each batch passes once; modes, batches and settings are left alone",
    corners=[
        "a bad batch passes at most once; call `model(x)`",
        "the mode of each layer, what is frozen, hooks and the random seed "
        "stay",
    ],
)
def the_rest_is_left_alone(draw: Draw) -> list[Case]:
    return [
        draw.once(batches, 3),
        *(batches(draw, 3, mode=mode) for mode in ("eval", "mixed")),
        spoilt(draw, batches(draw, 3, num_epochs=2), (1, "x", NAN)),
        draw.once(with_a_bad_gradient),
        draw.once(with_a_bad_loss),
        draw.once(with_an_infinite_loss),
        draw.once(with_a_huge_norm),
    ]


# safe_gradients

SAFE = {"on": ("value", "gradient", "graph", "written")}


def numbers(
    draw: Draw, *shape: int, dtype: torch.dtype = DOUBLE, strided: bool = False
) -> Case:
    return {"x": draw.normal(*shape, std=3.0, dtype=dtype), "strided": strided}


def at(case: Case, *places: tuple[object, object]) -> Case:
    """The case with values written into its x."""
    x = case["x"].clone()
    for index, value in places:
        x[index] = value
    return {**case, "x": x}


@check(
    "safe_gradients",
    probe=probes.of_root,
    weight=2,
    **SAFE,
    says="`root`: values and gradients at positive numbers, at 0 and below",
    corners=["`x` holds no NaN and no infinity"],
)
def root_and_its_slope(draw: Draw) -> list[Case]:
    return [
        at(numbers(draw, 9), (draw.integer(0, 9), 0.0), (4, 1.0)),
        {"x": draw.uniform(3, 4, low=0.1, high=9.0, dtype=DOUBLE)},
        at(numbers(draw, 5), (slice(0, 3), 0.0)),
        {"x": torch.tensor([0.0, 1.0, 4.0, -1.0], dtype=DOUBLE)},
    ]


@check(
    "safe_gradients",
    probe=probes.of_root,
    rtol=1e-11,
    atol=0.0,
    **SAFE,
    says="`root`: tiny numbers and very large ones",
    corners=["1e-12 is a number like others; no subnormal number is tried"],
)
def root_of_extremes(draw: Draw) -> list[Case]:
    sizes = [1e-60, 1e-30, 1e-20, 1e-12, 1e-6, 1e12, 1e30, 1e60]
    sizes = torch.tensor(sizes, dtype=DOUBLE)
    factors = draw.uniform(len(sizes), low=1.0, high=9.0, dtype=DOUBLE)
    return [{"x": sizes * factors}, {"x": -sizes * factors}]


@check(
    "safe_gradients",
    probe=probes.of_lengths,
    weight=2,
    **SAFE,
    says="`lengths`: values and gradients, rows of zeros among others",
    corners=["`X` holds no NaN and no infinity"],
)
def lengths_and_gradients(draw: Draw) -> list[Case]:
    return [
        at(numbers(draw, 5, 3), (draw.integer(0, 5), 0.0)),
        numbers(draw, 4, 6),
        at(numbers(draw, 4, 2), ((slice(None), 0), 0.0), (1, 0.0)),
        at(numbers(draw, 3, 4), (slice(None), 0.0)),
    ]


@check(
    "safe_gradients",
    probe=probes.of_lengths,
    rtol=1e-11,
    atol=0.0,
    **SAFE,
    says="`lengths`: tiny rows and large ones",
    corners=["1e-12 is a number like others; no square overflows or vanishes"],
)
def lengths_of_extremes(draw: Draw) -> list[Case]:
    sizes = torch.tensor([1e-140, 1e-20, 1e-12, 1e-5, 1e140], dtype=DOUBLE)
    return [{"x": sizes[:, None] * draw.normal(5, 3, dtype=DOUBLE)}]


@check(
    "safe_gradients",
    probe=probes.of_entropy,
    weight=2,
    **SAFE,
    says="`entropy`: values and gradients, of logits that are far apart, too",
    corners=["no logit is NaN or `inf`"],
)
def entropy_and_gradients(draw: Draw) -> list[Case]:
    far = [0.0] * 4
    far[draw.integer(0, 4)] = 1e4
    return [
        numbers(draw, 4, 5),
        at(numbers(draw, 3, 4), (1, torch.tensor(far, dtype=DOUBLE))),
        {"x": draw.normal(3, 4, std=2000.0, dtype=DOUBLE)},
        {"x": draw.normal(2, 4, mean=-9990.0, dtype=DOUBLE)},
        {"x": draw.normal(2, 3, mean=40.0, dtype=DOUBLE)},
    ]


@check(
    "safe_gradients",
    probe=probes.of_entropy,
    weight=2,
    **SAFE,
    says="`entropy`: classes that are ruled out by `-inf`",
    corners=[
        "each row has at least one finite logit, and all of these may be as low "
        "as -10000"
    ],
)
def entropy_with_ruled_out_classes(draw: Draw) -> list[Case]:
    column = draw.integer(0, 5)
    return [
        at(numbers(draw, 4, 5), ((slice(None), column), -INF)),
        at(numbers(draw, 4, 5), ((1, slice(0, 3)), -INF)),
        at(numbers(draw, 3, 4), ((0, slice(1, 4)), -INF)),
        at(
            {"x": draw.normal(2, 5, mean=-9990.0, dtype=DOUBLE)},
            ((slice(None), column), -INF),
        ),
    ]


def small_ones_count(case: Case, seen: Result, expected: Result) -> str | None:
    keys = ("value", "gradient", "graph")
    return difference(
        {key: seen.data[key] for key in keys},
        {key: expected.data[key] for key in keys},
        Tolerance(case["rtol"], case["atol"]),
    )


@check(
    "safe_gradients",
    probe=probes.of_entropy,
    rule=small_ones_count,
    says="`entropy`: small probabilities count as well",
    corners=[
        "1e-17 is one, and so is 1e-260: beside larger ones its share of the value "
        "is lost, its gradient is not"
    ],
)
def entropy_of_sure_classes(draw: Draw) -> list[Case]:
    sure = draw.normal(3, 4, dtype=DOUBLE)
    sure[:, 1] += 12.0
    surer = draw.normal(3, 4, dtype=DOUBLE)
    surer[:, 2] += 20.0
    # of the sum of all probabilities float64 keeps three digits of the others
    surest = draw.normal(3, 4, std=0.5, dtype=DOUBLE)
    surest[:, 3] += 30.0
    # smaller in each row than one epsilon or another
    rare = draw.normal(3, 4, dtype=DOUBLE)
    rare[:, 0] -= torch.tensor([39.0, 120.0, 600.0], dtype=DOUBLE)
    return [
        {"x": rare, "rtol": 1e-6, "atol": 0.0},
        {"x": sure, "rtol": 1e-6, "atol": 1e-18},
        {"x": surer, "rtol": 1e-6, "atol": 1e-18},
        {"x": surest, "rtol": 0.02, "atol": 1e-18},
    ]


def predictions(
    draw: Draw,
    *shape: int,
    unknown: float = 0.4,
    dtype: torch.dtype = DOUBLE,
    strided: bool = False,
) -> Case:
    target = draw.normal(*shape, std=2.0, dtype=dtype)
    gone = draw.uniform(*shape) < unknown
    return {
        "x": draw.normal(*shape, std=2.0, dtype=dtype),
        "target": torch.where(gone, torch.full_like(target, NAN), target),
        "strided": strided,
    }


@check(
    "safe_gradients",
    probe=probes.of_known_mse,
    weight=2,
    **SAFE,
    says="`known_mse`: the mean over known targets, and its gradient",
    corners=[
        "a tensor without dimensions; `prediction` and `target` have one "
        "shape and dtype, and `target` needs no gradient"
    ],
)
def error_of_known_targets(draw: Draw) -> list[Case]:
    return [
        predictions(draw, 12),
        predictions(draw, 5, 4, unknown=0.7),
        predictions(draw, 6, unknown=0.0),
        predictions(draw, 3, 2, 4),
    ]


@check(
    "safe_gradients",
    probe=probes.of_known_mse,
    **SAFE,
    says="`known_mse`: no known target gives 0, and gradients of 0",
)
def error_without_targets(draw: Draw) -> list[Case]:
    return [
        predictions(draw, 6, unknown=2.0),
        predictions(draw, 3, 4, unknown=2.0),
        predictions(draw, 1, unknown=-1.0),
        predictions(draw, 0, unknown=2.0),
    ]


def exactly(case: Case, seen: Result, expected: Result) -> str | None:
    for key in ("value", "gradient"):
        if not same(seen.data[key], expected.data[key], rtol=1e-9):
            return (
                f"The {key} is not what it should be where a prediction or a "
                "target is infinite or NaN."
            )
    return None


@check(
    "safe_gradients",
    probe=probes.of_known_mse,
    rule=exactly,
    says="`known_mse`: predictions that are not finite, infinite targets",
    corners=[
        "a prediction that is NaN or infinite does no harm where the target "
        "is unknown, and shows where it is known; an infinite target is a "
        "known one"
    ],
)
def predictions_that_are_not_finite(draw: Draw) -> list[Case]:
    def spoilt_at(
        prediction: float, target: float | None, unknown: float = 0.4
    ) -> Case:
        case = predictions(draw, 9, unknown=unknown)
        place = draw.integer(0, 9)
        case["x"][place] = prediction
        if target is not None:
            case["target"][place] = target
        return case

    return [
        spoilt_at(INF, NAN),
        spoilt_at(NAN, NAN),
        spoilt_at(NAN, 1.0),
        spoilt_at(-INF, 1.0),
        spoilt_at(1.0, INF),
        spoilt_at(INF, INF),
        spoilt_at(INF, None, unknown=2.0),
        spoilt_at(NAN, None, unknown=2.0),
    ]


@check(
    "safe_gradients",
    probe=probes.of_root,
    **SAFE,
    says="`root`: float32, no dimensions, several, none at all, strided",
    corners=[
        "the result has the dtype of the input, and a graph to it, whatever "
        "its values"
    ],
)
def forms_of_root(draw: Draw) -> list[Case]:
    return [
        at(numbers(draw, 6, dtype=FLOAT), (0, 0.0)),
        {"x": draw.uniform(low=1.0, high=9.0, dtype=DOUBLE)},
        numbers(draw, 0, draw.integer(2, 40)),
        numbers(draw, 2, 3, 4),
        numbers(draw, 3, 4, strided=True),
    ]


@check(
    "safe_gradients",
    probe=probes.of_lengths,
    **SAFE,
    says="`lengths`: float32, one row, several dimensions, no row, strided",
)
def forms_of_lengths(draw: Draw) -> list[Case]:
    return [
        at(numbers(draw, 4, 3, dtype=FLOAT), (1, 0.0)),
        numbers(draw, 5),
        at(numbers(draw, 2, 3, 4), ((0, 1), 0.0)),
        numbers(draw, 0, draw.integer(2, 40)),
        numbers(draw, 3, 1),
        numbers(draw, 3, 4, strided=True),
    ]


@check(
    "safe_gradients",
    probe=probes.of_entropy,
    **SAFE,
    says="`entropy`: float32, one row, several dimensions, no row, strided",
    corners=["in float32 no logit is far from 0"],
)
def forms_of_entropy(draw: Draw) -> list[Case]:
    return [
        numbers(draw, 4, 3, dtype=FLOAT),
        numbers(draw, 5),
        numbers(draw, 2, 3, 4),
        numbers(draw, 0, draw.integer(2, 40)),
        numbers(draw, 3, 4, strided=True),
    ]


@check(
    "safe_gradients",
    probe=probes.of_known_mse,
    **SAFE,
    says="`known_mse`: float32, no dimensions, strided",
)
def forms_of_known_mse(draw: Draw) -> list[Case]:
    return [
        predictions(draw, 12, dtype=FLOAT),
        predictions(draw, unknown=0.0),
        predictions(draw, 3, 4, strided=True),
    ]


def wrote_nothing(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["written"] or seen.data.get("target_written"):
        return "Your code writes into its input."
    return same_form("value")(case, seen, expected)


@check(
    "safe_gradients",
    probe=probes.of_known_mse,
    rule=wrote_nothing,
    says="`known_mse` writes nothing into `prediction` and `target`",
)
def target_left_alone(draw: Draw) -> list[Case]:
    return [predictions(draw, 8), predictions(draw, 3, 4)]


def plain_use(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["unseeded"]:
        return "PyTorch's global generator was seeded."
    if not seen.data["plain"]:
        return "A tensor that was given to you requires a gradient now."
    return same_form("results")(case, seen, expected)


def steep_cases(draw: Draw) -> list[Case]:
    cases = [predictions(draw, 3, 4), predictions(draw, 6)]
    for case in cases:
        case["steep"] = draw.normal(*case["x"].shape, dtype=DOUBLE)
        case["steep"].view(-1)[draw.integer(0, 6)] = INF
    return cases


@check(
    "safe_gradients",
    probe=probes.of_all,
    on=("later_gradient",),
    says="a formula that uses the same tensor later has its own gradient: no "
    "hook is left",
)
def no_hook_is_left(draw: Draw) -> list[Case]:
    return steep_cases(draw)


@check(
    "safe_gradients",
    probe=probes.of_all,
    rule=plain_use,
    also=ALONE,
    says="inputs and settings are left alone",
    corners=["PyTorch's settings and its random seed are not yours to change"],
)
def inputs_left_alone(draw: Draw) -> list[Case]:
    return steep_cases(draw)


# diagnose

NAMES_OF_LAYERS = (
    "first",
    "second",
    "mix",
    "squash",
    "gate",
    "scale",
    "embed",
    "project",
    "encode",
    "decode",
    "stem",
    "body",
    "tail",
    "neck",
)


def run(
    draw: Draw,
    *special: tuple[int, str],
    num_steps: int = 4,
    lr: float = 0.05,
    kinds: tuple[str, str, str] = ("plain", "plain", "plain"),
    loss: str = "squares",
    loudness: float = 1.0,
    train: bool | str = True,
    old_gradients: bool = False,
    activation: str = "tanh",
    anomaly_mode: bool = False,
) -> Case:
    """A healthy run of two chains of layers. Each of `special` is (chain, kind):
    a layer of that kind stands second in that chain. `train` may be "mixed": all
    is in training but the batch norms of the first chain."""
    names = [
        NAMES_OF_LAYERS[i]
        for i in draw.permutation(len(NAMES_OF_LAYERS)).tolist()
    ]
    width = draw.integer(4, 7)
    chains = []
    for index in range(2):
        layers = [[names.pop(), "linear"]]
        layers += [[names.pop(), kind] for at, kind in special if at == index]
        layers += [[names.pop(), activation], [names.pop(), "linear"]]
        chains.append(
            {
                "name": names.pop(),
                "layers": layers,
                "registered": draw.permutation(len(layers)).tolist(),
                "kind": kinds[index],
            }
        )
    return {
        "chains": chains,
        "registered": draw.permutation(2).tolist(),
        "kind": kinds[2],
        "width": width,
        "start": draw.normal(600, dtype=DOUBLE),
        "loudness": loudness,
        "spoilt": [],
        "train": train,
        "old_gradients": old_gradients,
        "anomaly_mode": anomaly_mode,
        "loss": loss,
        "lr": lr,
        "batches": [
            [
                draw.normal(5, width, dtype=DOUBLE),
                draw.normal(5, width, dtype=DOUBLE),
            ]
            for _ in range(num_steps)
        ],
    }


def with_faults(
    draw: Draw, case: Case, *faults: tuple[int, str, float]
) -> Case:
    """The run with faults (step, where, value): in an entry of "x" or "y", or
    in a whole row of "x" ("row") or "y" ("target")."""
    pairs = [[x.clone(), y.clone()] for x, y in case["batches"]]
    for step, where, value in faults:
        x, y = pairs[step]
        # no first and no last one
        row = draw.integer(1, len(x) - 1)
        column = draw.integer(1, x.shape[1] - 1)
        if where == "x":
            x[row, column] = value
        elif where == "y":
            y[row, column] = value
        elif where == "row":
            x[row] = value
        else:
            y[row] = value
    return {**case, "batches": pairs}


def zero_row(draw: Draw, case: Case, first: int = 1) -> Case:
    """The run with a row of zeros in a batch that is drawn, from `first` on."""
    step = draw.integer(first, len(case["batches"]) - 1)
    return with_faults(draw, case, (step, "row", 0.0))


def spoilt_entry(
    draw: Draw, case: Case, chain: int, layer: int, entry: str, value: float
) -> Case:
    name = ".".join(
        [
            case["chains"][chain]["name"],
            case["chains"][chain]["layers"][layer][0],
            entry,
        ]
    )
    place = [name, draw.integer(0, 50), value]
    return {**case, "spoilt": [*case["spoilt"], place]}


def overflowing(draw: Draw, case: Case) -> Case:
    """The run with a rate at which the first step, and with a hundredth of it
    no step, makes an entry of the first layer's weight infinite."""
    pairs = [[x, 1000 * y] for x, y in case["batches"]]
    model = probes.made_model(case)
    loss_function, _ = probes.loss_function_of(case["loss"])
    x, y = pairs[0]
    loss_function(model(x), y).backward()
    first = case["chains"][0]
    layer = model.get_submodule(f"{first['name']}.{first['layers'][0][0]}")
    steepest = float(layer.weight.grad.abs().max())
    return {**case, "batches": pairs, "lr": 4.0 * (1e308 / max(steepest, 4.0))}


def overflowing_at_last(case: Case) -> Case:
    """The run of two steps whose second batch is so large that with `lr` the
    output overflows, and with `lr / 100` the loss alone."""
    (x, y), (later, target) = case["batches"]
    sizes = []
    for rate in (case["lr"], case["lr"] / 100):
        model = probes.made_model(case)
        loss_function, _ = probes.loss_function_of(case["loss"])
        loss_function(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= rate * p.grad
            sizes.append(float(model(later).abs().max()))
    factor = 1e308 / math.sqrt(math.prod(sizes))
    return {**case, "batches": [[x, y], [factor * later, target]]}


# Runs that several checks ask about.


def with_a_nan(draw: Draw) -> Case:
    return with_faults(draw, run(draw), (draw.integer(1, 4), "x", NAN))


def with_a_ratio(draw: Draw) -> Case:
    return zero_row(draw, run(draw, (1, "ratio"), old_gradients=True))


def with_an_infinite_gradient(draw: Draw) -> Case:
    return run(draw, (1, "scale by a weight"), lr=0.3, anomaly_mode=True)


def with_a_length(draw: Draw) -> Case:
    case = run(draw, (0, "length"), (1, "idle"), lr=0.5)
    return zero_row(draw, case, first=2)


def spoilt_behind_the_fault(draw: Draw, case: Case) -> Case:
    """The run with a NaN in the batch that comes after its first fault."""
    model = probes.made_model(case)
    loss_function, _ = probes.loss_function_of(case["loss"])
    broken = 0
    for x, y in case["batches"]:
        loss = loss_function(model(x), y)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        if not all(bool(g.isfinite().all()) for g in (loss, *gradients)):
            break
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients, strict=True):
                p -= case["lr"] * g
        broken += 1
    last = len(case["batches"]) - 1
    return with_faults(draw, case, (min(broken + 1, last), "x", NAN))


def found_right(case: Case, seen: Result, expected: Result) -> str | None:
    found, right = seen.data["found"], expected.data["found"]
    if same(found, right):
        return None
    if right is None:
        return "A healthy run is called broken."
    if found is None:
        return "A broken run is called healthy."
    if not isinstance(found, tuple) or len(found) != 3:
        return "What is returned is no tuple of three."
    if found[0] != right[0]:
        return "The cause is wrong."
    if found[1] != right[1]:
        return "The cause is right, but not the step."
    if not same(found[1], right[1]):
        return "The step is no int."
    return "Cause and step are right, but not the third entry."


def trained_for_real(case: Case, seen: Result, expected: Result) -> str | None:
    given = seen.data["outputs"]
    for output in expected.data["outputs"]:
        if not any(
            isinstance(one, float)
            and math.isclose(one, output, rel_tol=1e-6, abs_tol=1e-9)
            for one in given
        ):
            return (
                "The losses on the way are not those of the run, with `lr` "
                "or, where the text asks for it, with `lr / 100`."
            )
    return found_right(case, seen, expected)


HUNT = {"probe": probes.diagnosed, "rule": found_right}


@check(
    "diagnose",
    **HUNT,
    says="state: a parameter or a buffer that is not finite from the start",
    corners=["the first such entry in the order of `model.state_dict()`"],
)
def broken_state(draw: Draw) -> list[Case]:
    value = draw.choice([NAN, INF, -INF])
    first = run(draw)
    with_norm = run(draw, (1, "norm"), train=False)
    # In each chain a norm's buffer comes before a weight, or after it.
    mixed = []
    for order in ([1, 0], [0, 1]):
        case = run(draw, (0, "norm"), (1, "norm"))
        for index, chain in enumerate(case["chains"]):
            chain["registered"] = [*order, *range(2, len(chain["layers"]))]
            entry = draw.choice(["running_mean", "running_var"])
            case = spoilt_entry(draw, case, index, 1, entry, value)
            case = spoilt_entry(draw, case, index, 0, "weight", value)
        mixed.append(case)
    both = spoilt_entry(draw, run(draw, (0, "norm")), 0, 1, "running_var", NAN)
    return [
        spoilt_entry(draw, first, draw.integer(0, 2), 2, "weight", value),
        spoilt_entry(draw, with_norm, 1, 1, "running_var", INF),
        spoilt_entry(draw, both, 1, 0, "weight", NAN),
        *mixed,
        with_faults(
            draw,
            spoilt_entry(draw, first, 0, 0, "weight", -INF),
            (0, "x", NAN),
        ),
    ]


@check(
    "diagnose",
    **HUNT,
    says="data: a batch that is not finite, and whether it is `x` or `y`; `x` "
    "if both",
)
def broken_data(draw: Draw) -> list[Case]:
    last = draw.integer(1, 4)
    plain = run(draw)
    plain["batches"] = [[x, y[0]] for x, y in plain["batches"]]
    plain["batches"][last][1][0] = NAN
    return [
        plain,
        draw.once(with_a_nan),
        with_faults(draw, run(draw), (draw.integer(0, 4), "x", -INF)),
        with_faults(draw, run(draw), (draw.integer(0, 4), "y", INF)),
        with_faults(draw, run(draw), (3, "y", NAN), (3, "x", INF)),
        with_faults(draw, run(draw), (0, "y", -INF), (last, "x", NAN)),
    ]


def twice_broken(draw: Draw) -> Case:
    """A -inf on purpose, which a softmax takes away, and behind it a fault in a
    layer that stands deeper and is registered later."""
    special = (0, "scores"), (0, "softmax"), (0, "inner log")
    case = run(draw, *special, num_steps=2, activation="leaky")
    first = case["chains"][0]
    first["registered"] = list(range(len(first["layers"])))
    return case


@check(
    "diagnose",
    **HUNT,
    weight=2,
    says="layer: the first one that makes something not finite out of finite",
    corners=[
        "a module may be called twice, and several may have a fault",
        "layers take one tensor, by position, and return one, and do not write "
        "into the one they take; the model draws no random numbers, and each "
        "layer runs in the mode in which it is",
    ],
)
def broken_layers(draw: Draw) -> list[Case]:
    return [
        # the loss is finite all the same
        zero_row(draw, run(draw, (1, "ratio"), loss="forgiving", num_steps=3)),
        draw.once(with_a_ratio),
        zero_row(draw, run(draw, (0, "log"), activation="leaky")),
        zero_row(
            draw,
            run(
                draw,
                (0, "ratio"),
                (1, "log"),
                kinds=("again", "plain", "plain"),
            ),
        ),
        twice_broken(draw),
        with_faults(
            draw,
            run(draw, (0, "norm"), (0, "ratio"), train="mixed"),
            (0, "row", 0.0),
        ),
        zero_row(draw, run(draw, (1, "ratio"), (1, "log"), train=False)),
    ]


@check(
    "diagnose",
    **HUNT,
    says="layer: a fault in the own `forward` of a container; the whole model "
    'is `""`',
)
def broken_containers(draw: Draw) -> list[Case]:
    fine = "plain"
    return [
        zero_row(draw, run(draw, kinds=("ratio", fine, fine))),
        zero_row(draw, run(draw, kinds=(fine, "inverse", fine))),
        zero_row(draw, run(draw, kinds=(fine, "ratio after", fine))),
        zero_row(draw, run(draw, kinds=(fine, fine, "ratio"))),
        zero_row(draw, run(draw, kinds=(fine, fine, "ratio after"))),
        # infinite without a NaN
        zero_row(draw, run(draw, kinds=(fine, fine, "inverse after"))),
    ]


@check(
    "diagnose",
    **HUNT,
    says="loss: the model's output is finite, and the loss is not",
)
def broken_losses(draw: Draw) -> list[Case]:
    def bad(value: float) -> tuple[int, str, float]:
        return draw.integer(0, 4), "target", value

    return [
        with_faults(draw, run(draw, loss="relative"), bad(0.0)),
        # and a -inf on purpose in every batch
        with_faults(draw, run(draw, (1, "masked"), loss="relative"), bad(0.0)),
        with_faults(draw, run(draw), bad(1e200)),
    ]


@check(
    "diagnose",
    **HUNT,
    weight=2,
    says="gradient: the loss is finite, a gradient is NaN; the operation",
    corners=[
        "the gradient is that of this batch alone",
        "the operation may be an `autograd.Function` of one's own, whose name "
        "has no number at its end",
    ],
)
def broken_gradients(draw: Draw) -> list[Case]:
    return [
        draw.once(with_a_length),
        # and a -inf on purpose in every batch
        zero_row(draw, run(draw, (0, "length"), (1, "masked"))),
        zero_row(draw, run(draw, (draw.integer(0, 2), "choice"))),
        zero_row(draw, run(draw, (draw.integer(0, 2), "roots"))),
        zero_row(draw, run(draw, (draw.integer(0, 2), "log"))),
        # in the last step, too
        with_faults(
            draw, run(draw, (0, "own roots"), num_steps=3), (2, "row", 0.0)
        ),
    ]


@check(
    "diagnose",
    probe=probes.diagnosed,
    rule=trained_for_real,
    says="gradient: infinite, with no NaN on the way back, so anomaly mode names "
    "no operation",
    corners=['the operation is `""` then'],
)
def infinite_gradients(draw: Draw) -> list[Case]:
    return [
        draw.once(run, (0, "scale")),
        draw.once(with_an_infinite_gradient),
        draw.once(with_a_length),
    ]


@check(
    "diagnose",
    probe=probes.diagnosed,
    rule=found_right,
    also=[trained_for_real],
    says="no fault: a NaN on the way back that reaches no parameter",
    corners=["anomaly mode complains of it all the same"],
)
def nans_that_are_masked(draw: Draw) -> list[Case]:
    roots = draw.integer(0, 2), "masked roots"
    ratio = run(draw, (0, "masked roots"), (1, "ratio"), loudness=0.5)
    return [run(draw, roots), zero_row(draw, ratio)]


STEEP = {"activation": "leaky", "num_steps": 16}


@check(
    "diagnose",
    **HUNT,
    weight=3,
    says="learning rate: with a hundredth of it the fault is gone",
    corners=[
        "otherwise it is the fault of the first run, also if the second has "
        "another"
    ],
)
def rates_too_large(draw: Draw) -> list[Case]:
    return [
        draw.once(run, lr=20.0, **STEEP),
        run(draw, lr=10.0, train=False, **STEEP),
        with_faults(draw, run(draw, lr=20.0, **STEEP), (15, "x", NAN)),
        zero_row(draw, run(draw, (1, "ratio"), lr=2.0)),
        # a descent stands this one, a climb does not
        run(draw, lr=0.4, **STEEP),
        spoilt_behind_the_fault(draw, run(draw, lr=30.0, **STEEP)),
        overflowing_at_last(run(draw, lr=1e6, activation="leaky", num_steps=2)),
    ]


@check(
    "diagnose",
    **HUNT,
    weight=2,
    says="a healthy run is `None`, also with `-inf` before a softmax, and with "
    "frozen layers",
    corners=[
        "a value inside that is not finite on purpose is no fault as long as "
        "the model's output is finite",
        "parameters that overflow in the very last step are none: nobody "
        "looks at them, nor at a buffer after the first step",
        "a buffer that `state_dict()` leaves out may hold `-inf`",
    ],
)
def healthy_runs(draw: Draw) -> list[Case]:
    return [
        draw.once(run, lr=0.5),
        run(draw, (0, "masked by a buffer")),
        run(draw, (1, "remembered"), (0, "idle"), num_steps=3),
        draw.once(run, (0, "norm"), (1, "idle"), lr=0.5, old_gradients=True),
        with_faults(
            draw, run(draw, (0, "norm"), (0, "ratio")), (0, "row", 0.0)
        ),
        zero_row(draw, run(draw, (draw.integer(0, 2), "ratio"))),
        zero_row(draw, run(draw, (0, "loud"), (1, "ratio"))),
        overflowing(draw, run(draw, num_steps=1)),
        with_faults(
            draw, run(draw, (0, "masked")), (draw.integer(2, 4), "x", NAN)
        ),
    ]


@check(
    "diagnose",
    **HUNT,
    weight=2,
    says="of several faults the one that comes first, after real training",
)
def first_of_several(draw: Draw) -> list[Case]:
    ratio = run(draw, (0, "ratio"), (1, "idle"))
    early = draw.integer(0, 2)
    return [
        overflowing(draw, run(draw, (0, "length"), num_steps=3)),
        # a -inf on purpose in every batch, and a layer's fault in one
        zero_row(draw, run(draw, (0, "ratio"), (1, "masked"))),
        with_faults(draw, ratio, (early, "row", 0.0), (early + 2, "x", NAN)),
        with_faults(draw, ratio, (early, "y", NAN), (early + 2, "row", 0.0)),
        with_faults(draw, ratio, (early, "y", NAN), (early, "row", 0.0)),
        with_faults(
            draw,
            run(draw, (1, "length"), loss="relative"),
            (early, "row", 0.0),
            (early + 2, "target", 0.0),
        ),
        with_faults(
            draw,
            run(draw, (1, "length"), loss="relative", old_gradients=True),
            (early, "target", 0.0),
            (early, "row", 0.0),
        ),
    ]


def in_three_dimensions(case: Case) -> Case:
    """The run with batches of three dimensions, and whole numbers in `y`."""
    pairs = [
        [torch.stack([x, 2 * x], 1), torch.stack([4 * y, 9 * y], 1).long()]
        for x, y in case["batches"]
    ]
    return {**case, "batches": pairs}


@check(
    "diagnose",
    probe=probes.diagnosed,
    rule=trained_for_real,
    weight=2,
    says="the run is followed step by step, with its learning rate and lr / 100",
    corners=[
        "batches may have three dimensions, and `y` may hold whole numbers"
    ],
)
def followed_step_by_step(draw: Draw) -> list[Case]:
    return [
        draw.once(run, lr=0.5),
        draw.once(run, (0, "norm"), (1, "idle"), lr=0.5, old_gradients=True),
        run(draw, (0, "norm"), lr=0.5, train=False),
        in_three_dimensions(run(draw, lr=0.5, num_steps=3)),
        draw.once(run, lr=20.0, **STEEP),
        draw.once(with_a_length),
    ]


def kept(case: Case, seen: Result, expected: Result) -> str | None:
    if not seen.data["model_kept"]:
        return (
            "The model is not as it was: parameters, buffers, gradients, "
            "modes or hooks."
        )
    if not seen.data["anomaly_mode_kept"]:
        return "Anomaly detection was on before the call, and is off after it."
    if not seen.data["unseeded"]:
        return "PyTorch's global generator was seeded."
    if not seen.data["batches_kept"]:
        return "The list of batches is not as it was."
    if not seen.data["batches_plain"]:
        return "A tensor of a batch requires a gradient now, or has one."
    # Who has run the model is judged by what is left, whatever cause was found.
    first = expected.data["outputs"][:1]
    given = [one for one in seen.data["outputs"] if isinstance(one, float)]
    if first and any(
        math.isclose(first[0], one, rel_tol=1e-6) for one in given
    ):
        return None
    return found_right(case, seen, expected)


@check(
    "diagnose",
    probe=probes.diagnosed,
    rule=kept,
    weight=2,
    also=ALONE,
    says="model, batches and settings are afterwards as they were",
    corners=[
        "what a model keeps from one batch to the next is in its `state_dict()`",
        "anomaly mode stays on where it was on; no gradient is NaN in such a run",
        "no seed is set",
    ],
)
def run_left_alone(draw: Draw) -> list[Case]:
    norms = (0, "norm"), (1, "norm"), (1, "idle")
    return [
        draw.once(with_a_nan),
        run(draw, *norms, lr=0.5, old_gradients=True, train="mixed"),
        draw.once(with_a_ratio),
        draw.once(with_a_length),
        draw.once(run, (0, "scale")),
        draw.once(with_an_infinite_gradient),
        draw.once(run, lr=20.0, **STEEP),
    ]
