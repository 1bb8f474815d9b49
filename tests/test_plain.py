"""Plain data between the judge and learner code: exact both ways, harmless."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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
        tensor_tree(shape=[1] * 50, stride=[1] * 50),
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
