"""Plain data between the judge and learner code: exact both ways, harmless."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_grader.judge.compare import Tolerance, difference
from course_grader.kernel import plain


def there_and_back(value: Any) -> Any:
    layout, blob = plain.encode(value)
    return plain.decode(json.loads(json.dumps(layout)), blob)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64) + 1, 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.complex_numbers(allow_nan=False)
    | st.binary()
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=200)
@given(trees)
def test_values_come_back_equal_and_of_the_same_type(value: Any) -> None:
    back = there_and_back(value)

    assert repr(back) == repr(value)


def test_nan_and_infinities_travel() -> None:
    back = there_and_back([math.nan, math.inf, -math.inf])

    assert math.isnan(back[0])
    assert back[0] is not math.nan, "NaNs that are computed are other objects"
    assert back[1:] == [math.inf, -math.inf]


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("dtype", plain.DTYPES.values(), ids=str)
def test_every_dtype_keeps_its_bits(dtype: torch.dtype) -> None:
    raw = torch.arange(64, dtype=torch.uint8) % 2
    tensor = raw.view(dtype) if dtype is not torch.bool else raw.bool()

    back = there_and_back(tensor)

    assert back.dtype is dtype
    assert torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


def test_strides_and_shared_memory_travel() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    case = {"all": base, "every_second": base[:, ::2], "turned": base.T}

    back = there_and_back(case)

    assert back["every_second"].stride() == (4, 2)
    assert back["turned"].stride() == (1, 4)
    back["all"].zero_()
    assert back["every_second"].sum() == 0


def test_a_view_of_something_huge_travels_alone() -> None:
    huge = torch.zeros(1_000_000)

    layout, blob = plain.encode(huge[5:7])

    assert len(blob) == 8
    assert torch.equal(plain.decode(layout, blob), torch.zeros(2))


def test_meta_grad_conj_and_empty_tensors_travel() -> None:
    back = there_and_back(
        [
            torch.empty(2, 3, device="meta"),
            torch.ones(2, requires_grad=True) * 2,
            torch.tensor([1 + 2j]).conj(),
            torch.empty(0, 5),
        ]
    )

    assert back[0].device.type == "meta"
    assert back[0].shape == (2, 3)
    assert back[1].requires_grad
    assert back[2].tolist() == [1 - 2j]
    assert back[3].shape == (0, 5)


def test_numpy_arrays_and_scalars_are_told_from_tensors() -> None:
    back = there_and_back([np.arange(3), np.float32(1.5)])

    assert type(back[0]) is np.ndarray
    assert type(back[1]) is np.float32


def test_unknown_objects_become_their_types_name() -> None:
    class Liar:
        def __eq__(self, other: object) -> bool:
            return True

        def __reduce__(self) -> Any:
            raise AssertionError("nothing is pickled")

    assert there_and_back([Liar()]) == [plain.Unknown("Liar")]


def test_a_cycle_and_a_deep_nest_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)

    layout, blob = plain.encode(cycle)

    assert "nested too deep" in json.dumps(layout)
    plain.decode(layout, blob)


def tensor_tree(**changes: Any) -> Any:
    facts = {
        "dtype": "float32",
        "device": "cpu",
        "shape": [2],
        "grad": False,
        "storage": 0,
        "stride": [1],
        "offset": 0,
    }
    return [["storages", [8]], ["root", ["tensor", {**facts, **changes}]]]


@pytest.mark.parametrize(
    "layout",
    [
        None,
        [],
        [["storages", [8]]],
        [["storages", [-1]], ["root", None]],
        [["storages", [9]], ["root", None]],
        [["storages", []], ["root", None]],
        [["storages", [8]], ["root", ["pickle", "x"]]],
        [["storages", [8]], ["root", {"a": 1}]],
        tensor_tree(shape=[3]),
        tensor_tree(offset=1),
        tensor_tree(offset=-1),
        tensor_tree(offset=1.0),
        tensor_tree(stride=[-1]),
        tensor_tree(stride=[1, 1]),
        tensor_tree(shape=[2**60]),
        tensor_tree(shape=[2**40], stride=[0]),
        tensor_tree(shape=[True]),
        tensor_tree(shape=[1] * 65, stride=[1] * 65),
        tensor_tree(dtype="quint8"),
        tensor_tree(dtype="__class__"),
        tensor_tree(storage=1),
        tensor_tree(storage="0"),
    ],
)
def test_malformed_data_is_refused(layout: Any) -> None:
    with pytest.raises(plain.NotPlain):
        plain.decode(layout, bytes(8))


def test_deep_hostile_trees_are_refused() -> None:
    tree: Any = None
    for _ in range(200):
        tree = ["list", [tree]]

    with pytest.raises(plain.NotPlain):
        plain.decode([["storages", []], ["root", tree]], b"")


@settings(deadline=None, max_examples=300)
@given(
    st.recursive(
        st.none()
        | st.integers(-(2**64) + 1, 2**64 - 1)
        | st.text(max_size=8)
        | st.sampled_from(["tensor", "dict", "array", "float", "dtype", "set"]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=6), inner, max_size=3)
        ),
        max_leaves=20,
    ),
    st.binary(max_size=16),
)
def test_rubbish_is_read_or_refused_never_more(tree: Any, blob: bytes) -> None:
    with contextlib.suppress(plain.NotPlain):
        plain.decode([["storages", [len(blob)]], ["root", tree]], blob)


# ---------------------------------------------------------- hostile trees


numbers = (
    st.integers()
    | st.integers(-(2**70), 2**70)
    | st.integers(0, 400).map(lambda k: k * (2**61 - 1))
    | st.floats()
)
tags = st.sampled_from(
    (
        *("int", "float", "complex", "bytes", "list", "tuple", "dict", "set"),
        *("dtype", "device", "tensor", "array", "scalar", "unknown", "?"),
    )
)
facts = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(("float32", "int64", "bool", "?")),
        "device": st.sampled_from(("cpu", "meta", "cuda:0", "?")),
        "shape": st.lists(st.integers(-1, 2**50), max_size=4) | st.none(),
        "grad": st.booleans(),
        "storage": st.integers(-1, 2) | st.none(),
        "stride": st.lists(st.integers(-1, 2**50), max_size=4),
        "offset": st.integers(-1, 2**50),
    }
)
hostile = st.recursive(
    st.none() | st.booleans() | numbers | st.text() | facts,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(tags, inner).map(list)
        | st.tuples(tags, st.lists(inner, max_size=6)).map(list)
        | st.tuples(tags, inner, inner).map(list)
        | st.tuples(
            st.just("dict"),
            st.lists(st.tuples(inner, inner).map(list), max_size=5),
        ).map(list)
    ),
    max_leaves=40,
)


@settings(deadline=None, max_examples=600)
@given(hostile, st.lists(st.integers(-1, 9), max_size=3), st.binary(max_size=9))
def test_whatever_is_sent_is_read_or_refused(
    tree: Any, sizes: list[int], blob: bytes
) -> None:
    """And what was read can be compared with anything that was read."""
    layout = [["storages", sizes], ["root", tree]]
    try:
        value = plain.decode(layout, blob)
    except plain.NotPlain:
        return
    for other in (
        value,
        [value],
        {"out": value},
        {value: 1} if _is_key(value) else 0,
    ):
        said = difference(value, other, Tolerance())
        assert said is None or said.endswith(".")


def _is_key(value: Any) -> bool:
    try:
        return hash(value) is not None and bool(value == value)
    except (RuntimeError, TypeError):
        return False


def effort(work: Callable[[], object]) -> float:
    """Processor time of something, in units of a measured one: how long this
    machine takes now to fill a dict with 20,000 texts. Python's collector
    of garbage walks over everything that a whole run of tests has left
    behind, so it waits, as in `timeit`."""

    def seconds(one: Callable[[], object]) -> float:
        gc.disable()
        try:
            started = time.process_time()
            one()
            return time.process_time() - started
        finally:
            gc.enable()

    texts = [f"key {number}" for number in range(20_000)]
    # in turn: a processor that is shared slows down for both, or for neither; what is
    # short more often, for one disturbance is much of it
    rounds: list[tuple[float, float]] = []
    while len(rounds) < 5 or (len(rounds) < 50 and sum(map(sum, rounds)) < 0.2):
        rounds.append((seconds(work), seconds(lambda: dict.fromkeys(texts))))
    works, units = zip(*rounds, strict=True)
    return min(works) / min(units)


def read(root: Any) -> Any:
    with contextlib.suppress(plain.NotPlain):
        return plain.decode([["storages", []], ["root", root]], b"")
    return None


P = 2**61 - 1
FLOODS: dict[str, Callable[[int], Any]] = {
    "integers": lambda n: ["set", [k * P for k in range(n)]],
    "small integers": lambda n: ["set", [k % 8 * P + k for k in range(n)]],
    "equal low bits": lambda n: ["set", [k << 43 for k in range(n)]],
    "keys": lambda n: ["dict", [[k * P, 0] for k in range(n // 2)]],
    "floats": lambda n: [
        "set",
        [m * 2.0 ** (61 * j) for m in range(1, n // 15 + 1) for j in range(15)],
    ],
    "pairs": lambda n: ["set", [["tuple", [k, -k]] for k in range(n // 3)]],
    "complex numbers": lambda n: [
        "set",
        [["complex", str(-1000003 * k), str(k)] for k in range(n)],
    ],
    "sets of few": lambda n: [
        "list",
        [["set", [k * P for k in range(8)]] for _ in range(n // 9)],
    ],
    "texts": lambda n: ["set", [f"{k:x}" for k in range(n)]],
    "one key": lambda n: ["dict", [["out", 0]] * (n // 2)],
    "lists": lambda n: ["list", [["list", []]] * (n - 1)],
    "nothing": lambda n: ["list", [None] * n],
    "long texts": lambda n: ["set", [f"{'x' * 50}{k}" for k in range(n)]],
}
"""Trees of a size that a learner's process may send."""


@pytest.mark.parametrize("name", FLOODS)
def test_reading_takes_no_longer_than_the_size_allows(name: str) -> None:
    """At the largest size that is read, and at each below: a tree of n values
    costs at most what 60 texts in a dict cost, for each value."""
    for size in (2_000, 20_000, plain.MAX_NODES - 2):
        tree = FLOODS[name](size)
        assert effort(lambda tree=tree: read(tree)) < 60 * size / 20_000 + 5


@pytest.mark.parametrize("name", FLOODS)
def test_comparing_takes_no_longer_than_the_size_allows(name: str) -> None:
    for size in (2_000, 20_000, plain.MAX_NODES - 2):
        value, other = read(FLOODS[name](size)), read(FLOODS[name](size))
        taken = effort(
            lambda one=value, two=other: difference(one, two, Tolerance())
        )
        assert taken < 60 * size / 20_000 + 5


@pytest.mark.parametrize(
    "key",
    [
        ["tensor", {"dtype": "bool", "shape": [], "storage": None, "grad": 0}],
        [
            "tuple",
            [
                1,
                [
                    "tensor",
                    {"dtype": "bool", "shape": [], "storage": None, "grad": 0},
                ],
            ],
        ],
        ["list", []],
        ["set", []],
        2**64,
        -(2**64),
        ["int", hex(2**64)],
        ["tuple", [1, ["int", "-0x1"]]],
    ],
    ids=str,
)
def test_what_is_no_key_is_refused(key: Any) -> None:
    for root in (["dict", [[key, 1]]], ["set", [key]]):
        with pytest.raises(plain.NotPlain):
            plain.decode([["storages", []], ["root", root]], b"")


def test_long_integers_travel_but_are_no_keys() -> None:
    for one in (2**64 - 1, 2**64, -(2**1000), 2**1024 - 1):
        assert there_and_back(one) == one
    assert there_and_back(2**1024) == plain.Unknown("a very long int")
    for root in (2**64, ["int", "f" * 300], ["int", 2**70], ["int", "x"]):
        with pytest.raises(plain.NotPlain):
            plain.decode([["storages", []], ["root", root]], b"")
    assert there_and_back({1: "one", (2, "two"): {3, 4}}) == {
        1: "one",
        (2, "two"): {3, 4},
    }
