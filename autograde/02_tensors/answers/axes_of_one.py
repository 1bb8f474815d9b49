"""Answers to `axes_of_one` of chapter 02."""

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def with_reshape():
    def _places(dims, ndim):
        places = []
        for dim in dims:
            if dim < -ndim or dim >= ndim:
                raise IndexError("out of range")
            place = dim + ndim if dim < 0 else dim
            if place in places:
                raise ValueError("twice")
            places.append(place)
        return places

    def add_axes(x, dims):
        places = _places(dims, x.dim() + len(dims))
        sizes = iter(x.shape)
        whole = range(x.dim() + len(dims))
        return x.reshape([1 if i in places else next(sizes) for i in whole])

    def drop_axes(x, dims):
        places = _places(dims, x.dim())
        if any(x.shape[i] != 1 for i in places):
            raise ValueError("not 1")
        return x.reshape([s for i, s in enumerate(x.shape) if i not in places])


@accepted(body=True)
def with_indexing():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        key = [slice(None)] * ndim
        for dim in dims:
            if key[dim] is None:
                raise RuntimeError("twice")
            key[dim] = None
        return x[tuple(key)]

    def drop_axes(x, dims):
        key = [slice(None)] * x.dim()
        for dim in dims:
            if key[dim] == 0:
                raise RuntimeError("twice")
            key[dim] = 0
            if x.shape[dim] != 1:
                raise ValueError("this axis is not of size 1")
        return x[tuple(key)]


@accepted(body=True)
def with_numpys_axes():
    import numpy as np

    def add_axes(x, dims):
        shape = np.expand_dims(np.empty(tuple(x.shape)), dims).shape
        return x.view(shape) if x.is_contiguous() else x.reshape(shape)

    def drop_axes(x, dims):
        shape = np.squeeze(np.empty(tuple(x.shape)), dims).shape
        return x.reshape(shape)


@accepted(body=True)
def with_the_librarys_squeeze():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)  # range and repetition
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@accepted(body=True)
def from_the_back():
    def _check(dims, ndim):
        if not all(-ndim <= dim < ndim for dim in dims):
            raise IndexError(dims)
        if len({dim % ndim for dim in dims}) != len(dims):
            raise ValueError(dims)

    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        _check(dims, ndim)
        for place in sorted(dim % ndim for dim in dims):
            x = torch.unsqueeze(x, place)
        return x

    def drop_axes(x, dims):
        _check(dims, x.dim())
        for place in sorted((dim % x.dim() for dim in dims), reverse=True):
            if x.size(place) != 1:
                raise ValueError(f"axis {place} is of size {x.size(place)}")
            x = x.select(place, 0)
        return x


@accepted(body=True)
def by_strides_alone():
    def _in(dims, ndim):
        places = []
        for dim in dims:
            places.append(range(ndim)[dim])  # IndexError out of range
        if len(places) != len(set(places)):
            raise ValueError("the same axis twice")
        return places

    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        places, old = _in(dims, ndim), iter(zip(x.shape, x.stride()))
        new = [(1, 1) if i in places else next(old) for i in range(ndim)]
        return x.as_strided([size for size, _ in new], [s for _, s in new])

    def drop_axes(x, dims):
        places = _in(dims, x.dim())
        if {x.shape[i] for i in places} - {1}:
            raise ValueError("an axis is not of size 1")
        kept = [i for i in range(x.dim()) if i not in places]
        return (
            x.permute(*kept, *places).flatten(len(kept)).select(-1, 0)
            if places
            else x[...]
        )


@accepted(body=True)
def by_indexing_with_none():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        taken = [False] * ndim
        for dim in dims:
            if taken[dim]:
                raise ValueError("twice")
            taken[dim] = True
        return x[tuple(None if new else slice(None) for new in taken)]

    def drop_axes(x, dims):
        sizes = list(x.shape)
        for dim in dims:
            if sizes[dim] != 1:
                raise ValueError("twice, or not of size 1")
            sizes[dim] = None
        return x[tuple(0 if one is None else slice(None) for one in sizes)]


@accepted(body=True)
def mended_squeezes_where_there_is_no_axis():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise IndexError("out of range")
        places = sorted(dim % ndim for dim in dims)
        if len(set(places)) < len(dims):
            raise ValueError("twice")
        out = x
        for place in places:
            out = out.unsqueeze(place)
        return out

    def drop_axes(x, dims):
        if any(not -x.dim() <= dim < x.dim() for dim in dims):
            raise IndexError("out of range")
        places = tuple({dim % x.dim() for dim in dims})
        if len(places) < len(dims):
            raise ValueError("twice")
        if any(x.shape[place] != 1 for place in places):
            raise ValueError("not of size 1")
        return x.squeeze(places)


@wrong(
    breaks=hidden_tests.larger_axes_raise,
    tells="You take the first slice of the axes to be dropped without looking at their size. "
    "Of an axis of size 4 three quarters are then lost. Raise a ValueError unless it is 1.",
    body=True,
)
def first_slice():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        x.squeeze(tuple(dims))
        for place in sorted((dim % x.dim() for dim in dims), reverse=True):
            x = x.select(place, 0)
        return x


@wrong(
    breaks=hidden_tests.only_the_named_axes,
    tells="Your drop_axes drops the axes one after the other, from the front. After the first "
    "the others have other numbers. Give `squeeze` all of them in one tuple, or begin at the "
    "back.",
    body=True,
)
def dropped_from_the_front():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if x.squeeze(tuple(dims)).dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        for place in sorted(dim % x.dim() for dim in dims):
            if place < x.dim():
                x = x.squeeze(place)
        return x


@wrong(
    breaks=[
        hidden_tests.added_out_of_range,
        hidden_tests.dropped_out_of_range,
    ],
    tells="You take every entry modulo the number of axes, without looking at the range first. "
    "An entry that is too large then means some other axis. Raise an IndexError.",
    body=True,
)
def modulo_without_a_range():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        places = sorted({dim % ndim for dim in dims})
        if len(places) < len(dims):
            raise ValueError("twice")
        for place in places:
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if x.dim() == 0:
            return x
        places = {dim % x.dim() for dim in dims}
        if len(places) < len(dims) or any(x.shape[i] != 1 for i in places):
            raise ValueError("twice, or not of size 1")
        return x.squeeze(tuple(places))


@wrong(
    breaks=[hidden_tests.added_twice, hidden_tests.dropped_twice],
    tells="You look for repeated entries among those given. 0 and -4 are two numbers and may be "
    "one axis: turn them into places first, then look for duplicates.",
    body=True,
)
def twice_by_number():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise IndexError("out of range")
        if len(set(dims)) < len(dims):
            raise ValueError("twice")
        places = {dim % ndim for dim in dims}
        for place in sorted(places):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if any(not -x.dim() <= dim < x.dim() for dim in dims):
            raise IndexError("out of range")
        if len(set(dims)) < len(dims):
            raise ValueError("twice")
        places = {dim % x.dim() for dim in dims}
        if any(x.shape[i] != 1 for i in places):
            raise ValueError("not of size 1")
        return x.squeeze(tuple(places))


@wrong(
    breaks=[hidden_tests.added_twice, hidden_tests.dropped_twice],
    tells="You collect the places in a set, and an axis that is named twice goes unnoticed. "
    "Compare the size of the set with the number of entries and raise a ValueError.",
    body=True,
)
def a_set_swallows():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise IndexError("out of range")
        for place in sorted({dim % ndim for dim in dims}):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if any(not -x.dim() <= dim < x.dim() for dim in dims):
            raise IndexError("out of range")
        places = {dim % x.dim() for dim in dims}
        if any(x.shape[i] != 1 for i in places):
            raise ValueError("not of size 1")
        return x.squeeze(tuple(places))


@wrong(
    breaks=hidden_tests.views_of_x,
    tells="You change the shape of x itself, with `unsqueeze_` or `squeeze_`. After your "
    "function the caller's tensor has other axes. Use the ones without the underscore.",
    body=True,
)
def in_place():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze_(place)
        return x

    def drop_axes(x, dims):
        if x.squeeze(tuple(dims)).dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        for place in sorted((dim % x.dim() for dim in dims), reverse=True):
            x = x.squeeze_(place)
        return x
