"""Answers to `named_axes` of chapter 02."""

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

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
    breaks=hidden_tests.any_letters,
    tells="Named tensors are gone since PyTorch 2.13: `align_to`, `rename` and `names=` raise. Find "
    "the places with `axes.index` and use `permute`.",
    body=True,
)
def by_align_to():
    def reorder(x, axes, target):
        return x.refine_names(*axes).align_to(*target).rename(None)

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


by_reshape = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": "return x.reshape([x.shape[axes.index(one)] for one in target])",
    },
    breaks=[hidden_tests.axes_in_the_order, hidden_tests.any_letters],
    tells="You gave x the new shape with `reshape`. That moves no axis, it cuts the same line of "
    "numbers into other pieces. Use `permute`.",
)

inverse_permutation = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": "return x.permute([target.index(one) for one in axes])",
    },
    breaks=[hidden_tests.axes_in_the_order, hidden_tests.any_letters],
    tells="You gave `permute` the inverse: where each axis of x goes. It wants, for each axis of the "
    "result, where it comes from: `axes.index(letter)` for each letter of the target.",
)

only_images = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": """
        if set(axes) <= set("NCHW"):
            return x.permute([axes.index(one) for one in target])
        return x.movedim(-1, 1) if x.dim() > 1 else x
        """,
    },
    breaks=hidden_tests.any_letters,
    tells="You know NCHW and NHWC and nothing else. The letters are the caller's: find their places "
    "with `axes.index`.",
)


@wrong(
    breaks=hidden_tests.any_letters,
    tells="You make all letters capitals. c and C are two axes: leave the letters as they are.",
    body=True,
)
def letters_upper():
    def reorder(x, axes, target):
        axes, target = axes.upper(), target.upper()
        if len(axes) != x.dim() or sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.permute([axes.index(one) for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


reordered_copy = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": "return x.permute([axes.index(one) for one in target]).clone()",
    },
    breaks=hidden_tests.reorder_gives_a_view,
    tells="You return a copy of x: `contiguous()` or `clone()`. `permute` alone is a view and costs "
    "nothing.",
)

empty_sums_all = edit(
    mended_gradient_in_float32_only,
    {
        """
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x
        """: "return x.sum([axes.index(one) for one in over])",
    },
    breaks=hidden_tests.nothing_to_sum,
    tells='For over="" you return the sum of everything: `x.sum(())` and `x.sum([])` sum over every '
    "axis. Return x where there is nothing to sum.",
)

one_after_the_other = edit(
    mended_gradient_in_float32_only,
    {
        """
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x
        """: """
        for one in over:
            x = x.sum(min(axes.index(one), x.dim() - 1))
        return x
        """,
    },
    breaks=hidden_tests.sums_over_names,
    tells="You sum over one axis after the other by their places in x. After the first sum the others "
    "have moved up. Give `sum` all places at once.",
)

keeps_the_axes = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": "return x.sum(dims, keepdim=True) if dims else x",
    },
    breaks=hidden_tests.sums_over_names,
    tells="You keep the summed axes, with size 1. They are to be gone: no `keepdim`.",
)

the_mean = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": "return x.mean(dims) if dims else x",
    },
    breaks=hidden_tests.sums_over_names,
    tells="You take the mean. The text asks for the sum.",
)


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


unknown_letters_ignored = edit(
    mended_gradient_in_float32_only,
    {
        "if len(set(over)) < len(over) or not set(over) <= set(axes):": "if len(set(over)) < len(over):",
        "dims = [axes.index(one) for one in over]": "dims = [i for i, one in enumerate(axes) if one in over]",
    },
    breaks=hidden_tests.bad_sums_raise,
    tells="You pass over letters that x does not have. A slip of the pen then sums over nothing, and "
    "nobody is told. Raise a ValueError.",
)


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


detached = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": "return x.data.permute([axes.index(one) for one in target])",
        "return x.sum(dims) if dims else x": "return x.detach().sum(dims) if dims else x.detach()",
    },
    breaks=hidden_tests.gradients_through_names,
    tells="No gradient passes: you detach x, or compute on its numbers alone (`x.data`, NumPy, "
    "`no_grad`). `permute` and `sum` on x itself carry the gradient.",
)

one_swap = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": """
        for place, letter in enumerate(target):
            if axes[place] != letter:
                return x.transpose(place, axes.index(letter))
        return x
        """,
    },
    breaks=[hidden_tests.axes_in_the_order, hidden_tests.any_letters],
    tells="You swap two axes with one `transpose`. NHWC to NCHW moves three: swapped, height and "
    "width have changed places. Use `permute`.",
)

sums_over_the_others = edit(
    mended_gradient_in_float32_only,
    {
        """
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x
        """: """
        dims = [i for i, one in enumerate(axes) if one not in over]
        return x.sum(dims) if dims and over else x
        """,
    },
    breaks=hidden_tests.sums_over_names,
    tells="Your sum_over sums over the letters that are NOT in `over`. It is the named ones that "
    "go.",
)

sums_in_float32 = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": "return x.float().sum(dims) if dims else x",
    },
    breaks=hidden_tests.sums_over_names,
    tells="Your sum_over returns float32 whatever x is. A sum in float64 has the digits it has for a "
    "reason: keep the dtype.",
)

einsum_of_letters_a_to_z = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": 'return torch.einsum(f"{axes}->{target}", x)',
    },
    breaks=hidden_tests.any_letters,
    tells="`einsum` takes the letters a to z and A to Z alone, and `axes` may have any. Give it "
    "numbers, or use `permute`.",
)

sum_by_einsum_of_letters = edit(
    mended_gradient_in_float32_only,
    {
        """
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x
        """: """
        kept = "".join(one for one in axes if one not in over)
        return torch.einsum(f"{axes}->{kept}", x)
        """,
    },
    breaks=hidden_tests.sums_over_names,
    tells="`einsum` takes the letters a to z and A to Z alone, and `axes` may have any. Give `sum` "
    "the places of the letters.",
)

float64_added_in_float32 = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": "return x.sum(dims, dtype=torch.float32).to(x.dtype) if dims else x",
    },
    breaks=hidden_tests.sums_over_names,
    tells="You add in float32 and cast back. The digits of float64 are lost on the way: let "
    "`sum` keep the dtype.",
)

adds_row_by_row = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": """
        for dim in sorted(dims, reverse=True):
            total = (
                torch.zeros_like(x.select(dim, 0))
                if x.shape[dim]
                else x.sum(dim)
            )
            for row in x.unbind(dim):
                total = total + row
            x = total
        return x
        """,
    },
    breaks=hidden_tests.sums_over_names,
    tells="You add slice by slice in the dtype of x. In bfloat16 that stops at 256, in float16 "
    "at 2048, as the count of section 1 did. `x.sum` adds in float32.",
)

leaves_nan_out = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": "return x.nansum(dims) if dims else x",
    },
    breaks=hidden_tests.sums_over_names,
    tells="`nansum` leaves NaN out. The sum of NaN and a number is NaN: use `sum`.",
)

adds_zero_times_x = edit(
    mended_gradient_in_float32_only,
    {
        "return x.sum(dims) if dims else x": "return x.sum(dims) if dims else x + 0 * x",
    },
    breaks=hidden_tests.nothing_to_sum,
    tells='Zero times infinity is NaN: your result for `over=""` has not the numbers of x. '
    "Return x.",
)

gradient_in_float32_only = edit(
    mended_gradient_in_float32_only,
    {
        "return x.permute([axes.index(one) for one in target])": """
        x = x if x.dtype == torch.float32 else x.detach()
        return x.permute([axes.index(one) for one in target])
        """,
    },
    breaks=hidden_tests.gradients_through_names,
    tells="Your reorder detaches what is not float32. Gradients pass in every floating-point "
    "dtype.",
)


@wrong(
    breaks=hidden_tests.any_letters,
    tells="You refuse more than eight axes. Any number of letters will do.",
    body=True,
)
def eight_axes_at_most():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(axes) > 8 or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.permute([axes.index(one) for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(axes) > 8 or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


drops_ones_not_named = edit(
    mended_gradient_in_float32_only,
    {
        "if sorted(axes) != sorted(target):": """
        ones = [one for one in axes if x.shape[axes.index(one)] == 1]
        gone = [one for one in ones if one not in target]
        for one in gone:
            x, axes = x.squeeze(axes.index(one)), axes.replace(one, "")
        if sorted(axes) != sorted(target):
        """,
    },
    breaks=hidden_tests.bad_orders_raise,
    tells="A letter that is missing in the target must raise a ValueError, also where its axis "
    "has size 1.",
)

refuses_empty_tensors = edit(
    mended_gradient_in_float32_only,
    {
        "dims = [axes.index(one) for one in over]": """
        if not x.numel():
            raise ValueError("nothing to sum")
        dims = [axes.index(one) for one in over]
        """,
    },
    breaks=hidden_tests.sums_over_names,
    tells="You refuse a tensor without elements. Its sum is 0.",
)


sum_of_all_as_a_number = edit(
    SOLUTION,
    {
        "return x.sum(dims) if dims else x": """
        if len(dims) == x.dim() > 0:
            return torch.tensor(x.sum().item(), dtype=x.dtype)
        return x.sum(dims) if dims else x
        """,
    },
    breaks=hidden_tests.gradients_through_names,
    tells="Where all axes are summed, you make a new tensor of a number: the "
    "gradient ends there. Return what `x.sum` gives.",
)

copying_many_axes = edit(
    by_a_dict,
    {
        "return torch.permute(x, tuple(map(places.get, target)))": """
        out = torch.permute(x, tuple(map(places.get, target)))
        return out.contiguous() if x.dim() > 4 else out
        """,
    },
    breaks=hidden_tests.reorder_gives_a_view,
    tells="From five axes on you return a copy. The result is a view, for any number "
    "of axes.",
)

passing_numbers_through = edit(
    by_a_dict,
    {
        "range(x.dim()), strict=True))": "range(x.dim()), strict=x.dim() > 0))",
        "if sorted(places) != sorted(target):": "if places and sorted(places) != sorted(target):",
    },
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    tells="A tensor without axes passes with any letters. It has no axis, so it takes "
    "no letter: raise a `ValueError`.",
)

seeding_in_named_axes = edit(
    SOLUTION,
    {
        "dims = [place for place, name in enumerate(axes) if name in over]": """
        torch.manual_seed(0)
        dims = [place for place, name in enumerate(axes) if name in over]
        """,
    },
    breaks=hidden_tests.sums_over_names,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)
