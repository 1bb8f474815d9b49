"""Answers to `named_axes` of chapter 02."""

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def by_movedim():
    def _check(x, axes, others, all_of_them):
        if x.ndim != len(axes) or any(axes.count(one) > 1 for one in axes):
            raise ValueError("the names do not fit")
        if any(one not in axes or others.count(one) > 1 for one in others):
            raise ValueError("an unknown or repeated letter")
        if all_of_them and len(others) != len(axes):
            raise ValueError("a letter is missing")

    def reorder(x, axes, target):
        _check(x, axes, target, True)
        there = tuple(target.index(one) for one in axes)
        return torch.movedim(x, tuple(range(x.ndim)), there)

    def sum_over(x, axes, over):
        _check(x, axes, over, False)
        for one in over:
            x = x.sum(axes.index(one))
            axes = axes.replace(one, "")
        return x


@accepted(body=True)
def by_einsum():
    def _numbers(x, axes, others):
        if len(set(axes)) != len(axes) or len(axes) != x.dim():
            raise ValueError("axes")
        if len(set(others)) != len(others) or set(others) - set(axes):
            raise ValueError("others")
        return list(range(len(axes))), [axes.find(one) for one in others]

    def reorder(x, axes, target):
        here, there = _numbers(x, axes, target)
        if len(there) < len(here):
            raise ValueError("missing")
        return torch.einsum(x, here, there)

    def sum_over(x, axes, over):
        here, gone = _numbers(x, axes, over)
        return torch.einsum(x, here, [dim for dim in here if dim not in gone])


@accepted(body=True)
def by_swapping():
    def reorder(x, axes, target):
        names = list(axes)
        if len(names) != x.dim() or len(set(names)) != len(names):
            raise ValueError("axes")
        if len(target) != len(names) or set(target) != set(names):
            raise ValueError("target")
        for place, letter in enumerate(target):
            other = names.index(letter)
            x = x.transpose(place, other)
            names[place], names[other] = names[other], names[place]
        return x

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) != len(axes):
            raise ValueError("axes")
        if len(set(over)) != len(over) or not all(one in axes for one in over):
            raise ValueError("over")
        kept = "".join(one for one in axes if one not in over)
        x = reorder(x, axes, kept + over)
        return x.flatten(len(kept)).sum(-1) if over else x.clone()


@accepted(body=True)
def by_a_dict():
    def _places(x, axes):
        places = dict(zip(axes, range(x.dim()), strict=True))
        if len(places) != x.dim():
            raise ValueError("a letter twice")
        return places

    def reorder(x, axes, target):
        places = _places(x, axes)
        if sorted(places) != sorted(target):
            raise ValueError("another set of letters")
        return torch.permute(x, tuple(map(places.get, target)))

    def sum_over(x, axes, over):
        places = _places(x, axes)
        try:
            gone = [places.pop(one) for one in over]
        except KeyError as error:
            raise ValueError(f"no axis is called {error}") from error
        return torch.sum(x, gone) if gone else x * 1


@accepted(body=True)
def by_strides():
    def _fit(x, axes):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")

    def reorder(x, axes, target):
        _fit(x, axes)
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        dims = [axes.index(one) for one in target]
        shape = [x.shape[dim] for dim in dims]
        return x.as_strided(shape, [x.stride(dim) for dim in dims])

    def sum_over(x, axes, over):
        _fit(x, axes)
        if len(over) > len(set(over)):
            raise ValueError("over")
        dims = sorted(map(axes.index, over), reverse=True)
        for dim in dims:
            x = x.sum(dim)
        return x


@accepted(body=True)
def by_ellipsis():
    def reorder(x, axes, target):
        if [len(axes), len(set(axes))] != 2 * [x.ndim]:
            raise ValueError("axes")
        if len(target) != x.ndim or set(target) != set(axes):
            raise ValueError("target")
        for letter in target:  # each in its turn to the end
            x = x.moveaxis(axes.index(letter), -1)
            axes = axes.replace(letter, "") + letter
        return x

    def sum_over(x, axes, over):
        if [len(axes), len(set(axes))] != 2 * [x.ndim]:
            raise ValueError("axes")
        if set(over) - set(axes) or len(over) != len(set(over)):
            raise ValueError("over")
        for place in range(x.ndim - 1, -1, -1):
            if axes[place] in over:
                x = x.moveaxis(place, -1).sum(-1)
        return x


@accepted(body=True)
def mended_gradient_in_float32_only():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.permute([axes.index(one) for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    tells="`einsum` does not mind letters that are missing or stand twice: it sums over the first "
    "and takes the diagonal of the second. Compare the letters first and raise a ValueError.",
    body=True,
)
def einsum_unchecked():
    def reorder(x, axes, target):
        return torch.einsum(f"{axes}->{target}", x)

    def sum_over(x, axes, over):
        kept = "".join(one for one in axes if one not in over)
        return torch.einsum(f"{axes}->{kept}", x)


@wrong(
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    tells="You compare sets of letters. A set does not know that a letter stands twice. Compare "
    "lengths too, or sorted letters.",
    body=True,
)
def compares_sets():
    def reorder(x, axes, target):
        if len(axes) != x.dim():
            raise ValueError("axes")
        if set(axes) != set(target):
            raise ValueError("target")
        places = [axes.index(one) for one in dict.fromkeys(target)]
        return x.permute(
            places + [i for i in range(x.dim()) if i not in places]
        )

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or not set(over) <= set(axes):
            raise ValueError("axes or over")
        dims = sorted({axes.index(one) for one in over})
        return x.sum(dims) if dims else x


@wrong(
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    tells="You never compare `axes` with x. With a letter too few or too many, the names belong to "
    "other axes than the caller thinks. Raise a ValueError unless there is one letter for each.",
    body=True,
)
def axes_not_counted():
    def reorder(x, axes, target):
        if sorted(axes) != sorted(target) or len(set(axes)) < len(axes):
            raise ValueError("target")
        dims = [axes.index(one) for one in target if axes.index(one) < x.dim()]
        return x.permute(dims + list(range(len(dims), x.dim())))

    def sum_over(x, axes, over):
        if len(set(axes)) < len(axes) or len(set(over)) < len(over):
            raise ValueError("axes")
        dims = [axes.index(one) for one in over]
        dims = [dim for dim in dims if dim < x.dim()]
        return x.sum(dims) if dims else x
