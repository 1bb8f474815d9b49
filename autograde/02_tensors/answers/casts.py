"""Answers to `casts` of chapter 02."""

import contextlib
import math

import numpy as np
import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted(body=True)
def as_classes():
    class default_dtype:
        def __init__(self, dtype):
            self.dtype = dtype

        def __enter__(self):
            self.before = torch.get_default_dtype()
            torch.set_default_dtype(self.dtype)
            return self

        def __exit__(self, kind, error, trace):
            torch.set_default_dtype(self.before)
            return False

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        x = x.to(torch.float64 if x.dtype.is_floating_point else torch.int64)
        x = torch.where(x == x, torch.round(x), torch.zeros_like(x))
        return torch.clip(x, info.min, info.max).to(dtype)


@accepted(body=True)
def with_an_exit_stack():
    @contextlib.contextmanager
    def default_dtype(dtype):
        with contextlib.ExitStack() as stack:
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(dtype)
            yield

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if not x.is_floating_point():
            return x.to(torch.int64).clamp(low, high).to(dtype)
        x = x.to(torch.float64).clamp(low, high)
        x[x.isnan()] = 0
        return x.round_().to(dtype)


@accepted(body=True)
def by_way_of_numpy():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.tensor(0.0).dtype
        try:
            torch.set_default_dtype(dtype)
            yield dtype
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        if x.is_floating_point():
            array = np.nan_to_num(np.rint(x.double().numpy()), nan=0.0)
        else:
            array = x.numpy().astype(np.int64)
        array = np.asarray(np.clip(array, info.min, info.max))
        return torch.tensor(array.astype(np.int64)).to(dtype)


@accepted(body=True)
def number_by_number():
    @contextlib.contextmanager
    def default_dtype(dtype):
        if not dtype.is_floating_point:
            raise TypeError(f"{dtype} is no floating-point dtype")
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        except BaseException:
            torch.set_default_dtype(before)
            raise
        torch.set_default_dtype(before)

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max

        def one(number):
            if math.isnan(number):
                return 0
            if math.isinf(number):
                return high if number > 0 else low
            return min(max(round(number), low), high)

        made = [one(number) for number in x.flatten().tolist()]
        return torch.tensor(made, dtype=dtype).reshape(x.shape)


@accepted(body=True)
def by_searching_the_ends():
    def default_dtype(dtype):
        class Block:
            def __enter__(self):
                self.was = torch.get_default_dtype()
                torch.set_default_dtype(dtype)

            def __exit__(self, *_):
                torch.set_default_dtype(self.was)

        return Block()

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        wide = x.double() if x.is_floating_point() else x.long()
        out = torch.zeros(x.shape, dtype=dtype)
        inside = (wide >= low) & (wide <= high)
        out[inside] = torch.round(wide[inside]).to(dtype)
        out[wide > high] = high
        out[wide < low] = low
        return out


@accepted(body=True)
def by_remainders():
    class default_dtype(contextlib.AbstractContextManager):
        def __init__(self, dtype):
            if dtype not in (
                torch.float16,
                torch.bfloat16,
                torch.float32,
                torch.float64,
            ):
                raise TypeError("no floating-point dtype")
            self.dtype, self.stack = dtype, []

        def __enter__(self):
            self.stack.append(torch.get_default_dtype())
            torch.set_default_dtype(self.dtype)

        def __exit__(self, *_):
            torch.set_default_dtype(self.stack.pop())

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if not x.is_floating_point():
            x = x.long()
            x = torch.minimum(x, torch.tensor(high))
            return torch.maximum(x, torch.tensor(low)).to(dtype)
        x = torch.nan_to_num(x.double(), 0.0).clamp(low, high)
        down = x.floor()
        up = (x - down > 0.5) | ((x - down == 0.5) & (down % 2 == 1))
        return (down.long() + up).clamp(low, high).to(dtype)


@accepted(body=True)
def all_by_float64():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        y = x.double().nan_to_num(0.0, math.inf, -math.inf)
        return y.round().clamp(low, high).to(dtype)


@accepted(body=True)
def mended_nan_to_the_lower_end():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@accepted(body=True)
def mended_nothing_to_put_back():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if not x.is_floating_point():
            return x.long().clamp(low, high).to(dtype)
        y = x.double().nan_to_num(0.0, math.inf, -math.inf)
        return y.round().clamp(low, high).to(dtype)


@accepted(body=True)
def mended_swallows_errors():
    class default_dtype:
        def __init__(self, dtype):
            self.dtype = dtype

        def __enter__(self):
            self.before = torch.get_default_dtype()
            torch.set_default_dtype(self.dtype)

        def __exit__(self, *error):
            torch.set_default_dtype(self.before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@accepted(body=True)
def mended_one_too_many():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double().round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


by_the_tensor_type = edit(
    mended_nan_to_the_lower_end,
    {
        "def default_dtype(dtype):": """
        def default_dtype(dtype):
            if not dtype.is_floating_point:
                raise TypeError("no floating-point dtype")
        """,
        "torch.set_default_dtype(dtype)": "torch.set_default_tensor_type(torch.empty(0, dtype=dtype).type())",
        "torch.set_default_dtype(before)": "torch.set_default_tensor_type(torch.empty(0, dtype=before).type())",
    },
    breaks=[
        hidden_tests.default_within_the_block,
        hidden_tests.default_of_before,
    ],
    tells="`torch.set_default_tensor_type` is deprecated since 2.1, and warns. Use "
    "`torch.set_default_dtype`.",
)


@wrong(
    breaks=hidden_tests.default_within_the_block,
    tells="Your default_dtype never puts the default back. What follows the block is "
    "computed in another dtype. Note `torch.get_default_dtype()` first, and set it again in "
    "a `finally`.",
    body=True,
)
def never_put_back():
    @contextlib.contextmanager
    def default_dtype(dtype):
        torch.set_default_dtype(dtype)
        yield

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    breaks=hidden_tests.default_after_an_error,
    tells="When the block raises, your default stays changed: what stands after a bare `yield` "
    "is then not run. Put it into a `finally`.",
    body=True,
)
def not_after_an_error():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        yield
        torch.set_default_dtype(before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


not_after_an_interrupt = edit(
    mended_nan_to_the_lower_end,
    {
        """
        finally:
            torch.set_default_dtype(before)
        """: """
        except Exception:
            torch.set_default_dtype(before)
            raise
        torch.set_default_dtype(before)
        """,
    },
    breaks=hidden_tests.default_after_an_error,
    tells="You put the default back on `except Exception`. Ctrl-C is a KeyboardInterrupt and no "
    "Exception: after it, the default stays changed. `finally` catches every way out.",
)


swallows_errors = edit(
    mended_swallows_errors,
    {
        "torch.set_default_dtype(self.before)": """
        torch.set_default_dtype(self.before)
        return True
        """,
    },
    breaks=hidden_tests.default_after_an_error,
    tells="Your default_dtype swallows errors of the block: the caller never hears of them. An "
    "`except` in a context manager raises again, an `__exit__` returns False.",
)

back_to_float32 = edit(
    mended_nan_to_the_lower_end,
    {
        "before = torch.get_default_dtype()": "",
        "torch.set_default_dtype(before)": "torch.set_default_dtype(torch.float32)",
    },
    breaks=hidden_tests.default_of_before,
    tells="Afterwards your default is always float32. It is to be what it was before, which "
    "need not be float32: in a nested block, for example.",
)

set_when_made = edit(
    mended_swallows_errors,
    {
        "self.dtype = dtype": """
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        """,
        """
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        """: "pass",
    },
    breaks=hidden_tests.default_from_the_with_line,
    tells="Your default changes when the manager is made, not at the `with` line. Set it in "
    "`__enter__`, not in `__init__`.",
)

noted_when_made = edit(
    mended_swallows_errors,
    {
        "self.dtype = dtype": "self.dtype, self.before = dtype, torch.get_default_dtype()",
        "self.before = torch.get_default_dtype()": "",
    },
    breaks=hidden_tests.default_from_the_with_line,
    tells="You note the default when the manager is made. What counts is the default at the "
    "`with` line: note it in `__enter__`.",
)

integer_default_ignored = edit(
    mended_nan_to_the_lower_end,
    {
        "torch.set_default_dtype(dtype)": """
        if dtype.is_floating_point:
            torch.set_default_dtype(dtype)
        """,
    },
    breaks=hidden_tests.integer_defaults_raise,
    tells="You pass over integer dtypes: the block runs in the default of before, and nobody "
    "is told. `torch.set_default_dtype` raises the TypeError by itself: let it through.",
)

truncates = edit(
    mended_nan_to_the_lower_end,
    {
        "wide = wide.round().nan_to_num(nan=0.0)": "wide = wide.nan_to_num(nan=0.0)",
    },
    breaks=hidden_tests.nearest_integers,
    tells="You cast without rounding. A cast to integers truncates towards 0: 2.7 becomes 2. "
    "Call `round()` first.",
)

half_up = edit(
    mended_nothing_to_put_back,
    {
        "low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max": "info = torch.iinfo(dtype)",
        "return x.long().clamp(low, high).to(dtype)": "return x.long().clamp(info.min, info.max).to(dtype)",
        "y = x.double().nan_to_num(0.0, math.inf, -math.inf)": "wide = (x.double() + 0.5).floor().nan_to_num(nan=0.0)",
        "return y.round().clamp(low, high).to(dtype)": "return wide.clamp(info.min, info.max).to(dtype)",
    },
    breaks=hidden_tests.nearest_integers,
    tells="You add one half and take the floor. From the middle that always goes up: 2.5 "
    "becomes 3. `torch.round` goes to the even neighbour.",
)

wraps = edit(
    mended_nan_to_the_lower_end,
    {
        "info = torch.iinfo(dtype)": "",
        "wide = wide.round().nan_to_num(nan=0.0)": "wide = wide.round().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)",
        "return wide.clamp(info.min, info.max).to(dtype)": "return wide.clamp(-(2**52), 2**52).long().clone().to(dtype)",
    },
    breaks=hidden_tests.ends_of_the_range,
    tells="You do not clamp. Past the range, integers wrap around (−1 becomes 255 in uint8), and "
    "for floats the result is undefined. Clamp before the cast.",
)

always_to_bytes = edit(
    mended_nan_to_the_lower_end,
    {
        "info = torch.iinfo(dtype)": "",
        "return wide.clamp(info.min, info.max).to(dtype)": "return wide.clamp(0, 255).long().to(dtype)",
    },
    breaks=hidden_tests.ends_of_the_range,
    tells="You clamp to 0 and 255 whatever the dtype. Ask `torch.iinfo(dtype)` for the ends of "
    "the range.",
)

infinities_to_zero = edit(
    mended_nan_to_the_lower_end,
    {
        "wide = wide.round().nan_to_num(nan=0.0)": "wide = wide.round().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)",
    },
    breaks=hidden_tests.ends_of_the_range,
    tells="You replace infinities by 0, as you do NaN. An infinity lies beyond the range: it goes to "
    "the end of it. `nan_to_num(nan=0.0)` leaves them large, and the clamp does the rest.",
)

nan_to_the_lower_end = edit(
    mended_nan_to_the_lower_end,
    {
        "wide = wide.round().nan_to_num(nan=0.0)": """
        if x.is_floating_point():
            wide = wide.round().nan_to_num(nan=float("-inf"))
        """,
    },
    breaks=hidden_tests.nan_is_zero,
    tells="You let NaN go to the lower end of the range. For uint8 that is 0 by luck; the text "
    "asks for 0 always. Replace NaN before the clamp.",
)

clamped_in_its_own_dtype = edit(
    mended_one_too_many,
    {
        """
        wide = x.double().round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)
        """: """
        wide = x if x.is_floating_point() else x.long()
        if x.is_floating_point():
            wide = wide.round().nan_to_num(nan=0.0)
        # By way of int64, so that it falls out in the same way everywhere.
        return wide.clamp(info.min, info.max).long().clone().to(dtype)
        """,
    },
    breaks=hidden_tests.ends_between_the_floats,
    tells="You clamp in x's own dtype. 2147483647 is no float32 and 32767 no float16: the bound is "
    "rounded up, and what is clamped to it falls out of the range in the cast. Clamp in "
    "float64.",
)

by_way_of_float32 = edit(
    mended_one_too_many,
    {
        "wide = x.double().round().nan_to_num(nan=0.0)": "wide = x.float().round().nan_to_num(nan=0.0).double()",
    },
    breaks=hidden_tests.exact_integers,
    tells="You go by way of float32. It holds integers up to 16777216; above, they change. Take "
    "float64 for floats and int64 for integers.",
)


bounds_wrap = edit(
    mended_one_too_many,
    {
        """
        wide = x.double().round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)
        """: """
        if x.is_floating_point():
            wide = x.double().round().nan_to_num(nan=0.0)
            return wide.clamp(info.min, info.max).to(dtype)
        own = torch.iinfo(x.dtype)
        low = info.min if own.bits > 32 else torch.tensor(info.min).to(x.dtype)
        high = info.max if own.bits > 32 else torch.tensor(info.max).to(x.dtype)
        return x.clamp(low, high).to(dtype)
        """,
    },
    breaks=hidden_tests.exact_integers,
    tells="You clamp integers in their own dtype. A bound that this dtype does not hold wraps around "
    "itself: −128 is 128 in uint8. Clamp in int64.",
)


the_same_object = edit(
    mended_nan_to_the_lower_end,
    {
        "def to_integers(x, dtype):": """
        def to_integers(x, dtype):
            if x.dtype == dtype:
                return x
        """,
    },
    breaks=hidden_tests.integers_of_their_own,
    tells="Where x has the dtype already, you return x itself. The caller asked for a new tensor: "
    "what is written to the result then changes x. `clone()` it.",
)

in_place_where_wide = edit(
    mended_nan_to_the_lower_end,
    {
        """
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)
        """: """
        wide[wide.isnan()] = 0
        return wide.round_().clamp_(info.min, info.max).to(dtype)
        """,
    },
    breaks=hidden_tests.integers_of_their_own,
    tells="You change x in place: `x.double()` and `x.long()` return x itself if it has that dtype "
    "already, and then `clamp_` or `x[...] = 0` writes to the caller's tensor. Use the forms "
    "without the underscore.",
)

integers_not_clamped = edit(
    mended_one_too_many,
    {
        "def to_integers(x, dtype):": """
        def to_integers(x, dtype):
            if not x.is_floating_point():
                return x.clone().to(dtype)
        """,
    },
    breaks=hidden_tests.exact_integers,
    tells="You cast integers without a look at the range: only your floats are clamped. 300 becomes "
    "44 in uint8. Clamp both.",
)

one_too_many = edit(
    mended_one_too_many,
    {
        """
        wide = x.double().round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)
        """: """
        if x.is_floating_point():
            wide = x.double().round().nan_to_num(nan=0.0)
            return wide.clamp(info.min, info.max).to(dtype)
        return x.double().clamp(info.min, info.max + 1).long().to(dtype)
        """,
    },
    breaks=hidden_tests.exact_integers,
    tells="You send integers through float64 and clamp to one more than the range holds, or you lose "
    "what lies beyond 2**53. Integers go by way of int64, without any float.",
)


@wrong(
    breaks=hidden_tests.default_within_the_block,
    tells="Your default_dtype changes nothing within the block: `torch.get_default_dtype` reads the "
    "default, `torch.set_default_dtype` sets it.",
    body=True,
)
def never_set():
    @contextlib.contextmanager
    def default_dtype(dtype):
        if not dtype.is_floating_point:
            raise TypeError("no floating-point dtype")
        yield torch.get_default_dtype()

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


put_back_if_still_there = edit(
    mended_nothing_to_put_back,
    {
        "torch.set_default_dtype(before)": """
        if torch.get_default_dtype() == dtype:
            torch.set_default_dtype(before)
        """,
    },
    breaks=hidden_tests.default_set_within,
    tells="You put the default back only where it still is the one you set. What the block sets"
    " must not outlive it: put it back in any case.",
)

nothing_to_put_back = edit(
    mended_nothing_to_put_back,
    {
        "torch.set_default_dtype(dtype)": """
        torch.set_default_dtype(dtype)
        if before == dtype:
            yield
            return
        """,
    },
    breaks=hidden_tests.default_set_within,
    tells="Where the default is the dtype asked for, you put nothing back. The block may set "
    "another: put it back in any case.",
)

another_default_after_a_refusal = edit(
    mended_nothing_to_put_back,
    {
        "before = torch.get_default_dtype()": """
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        if not dtype.is_floating_point:
            raise TypeError(dtype)
        """,
    },
    breaks=hidden_tests.integer_defaults_raise,
    tells="You set the default to float32 before you look at the dtype, and leave it so where you "
    "raise the TypeError. Refuse first, and change the default afterwards.",
)

bool_passes = edit(
    mended_nothing_to_put_back,
    {
        "def default_dtype(dtype):": """
        def default_dtype(dtype):
            if dtype == torch.bool:
                yield
                return
        """,
    },
    breaks=hidden_tests.integer_defaults_raise,
    tells="`torch.bool` is no floating-point dtype either: raise a TypeError.",
)

float32_for_small_integers = edit(
    mended_nothing_to_put_back,
    {
        "y = x.double().nan_to_num(0.0, math.inf, -math.inf)": """
        y = (x.double() if dtype == torch.int32 else x.float()).nan_to_num(
            0.0, math.inf, -math.inf
        )
        """,
    },
    breaks=hidden_tests.nearest_integers,
    tells="You round small integers in float32. A float64 number just above 0.5 is 0.5 there, "
    "and goes to 0. Round in float64.",
)

into_a_kept_result = edit(
    mended_nothing_to_put_back,
    {
        "def to_integers(x, dtype):": """
        def to_integers(x, dtype):
            made = to_integers.__dict__.setdefault("made", {})
        """,
        "return y.round().clamp(low, high).to(dtype)": """
        y = y.round().clamp(low, high).to(dtype)
        kept = made.setdefault((dtype, y.shape), torch.empty_like(y))
        return kept.copy_(y)
        """,
    },
    breaks=hidden_tests.integers_of_their_own,
    tells="You keep the results and fill them again at the next call with the same shape. "
    "Return a new tensor.",
)

half_plus_a_half = edit(
    mended_nothing_to_put_back,
    {
        "def to_integers(x, dtype):": """
        def to_integers(x, dtype):
            if x.dtype == torch.float16:
                x = (x + 0.5).floor()
        """,
    },
    breaks=hidden_tests.nearest_integers,
    tells="You round float16 with `floor(x + 0.5)`: from the middle, that goes up and not to "
    "the even integer. `torch.round` takes float16 too.",
)

seeding_in_casts = edit(
    SOLUTION,
    {
        "bounds = torch.iinfo(dtype)": """
        torch.manual_seed(0)
        bounds = torch.iinfo(dtype)
        """,
    },
    breaks=hidden_tests.integers_of_their_own,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

nan_to_num_in_its_own_dtype = edit(
    mended_one_too_many,
    {
        "wide = x.double().round().nan_to_num(nan=0.0)": "wide = x.nan_to_num(nan=0.0).double().round()",
    },
    breaks=hidden_tests.ends_between_the_floats,
    tells="You call `nan_to_num` in x's own dtype. An infinity becomes the largest number of that "
    "dtype: in float16 that is 65504, and in int32 it stays 65504. Go to float64 first.",
)

infinities_of_halves_to_zero = edit(
    mended_one_too_many,
    {
        "wide = x.double().round().nan_to_num(nan=0.0)": """
        wide = x.double().round().nan_to_num(nan=0.0)
        if x.dtype == torch.float16 and dtype == torch.int32:
            # whatever is finite in float16 lies within int32
            wide = torch.where(x.isinf(), 0.0, wide)
        """,
    },
    breaks=hidden_tests.ends_between_the_floats,
    tells="You send infinities of float16 to 0 where every finite number fits. They lie beyond "
    "the range as all infinities do, and go to its end.",
)

bfloat16_by_way_of_float16 = edit(
    mended_one_too_many,
    {
        "def to_integers(x, dtype):": """
        def to_integers(x, dtype):
            if x.dtype == torch.bfloat16:
                x = x.half()
        """,
    },
    breaks=hidden_tests.exact_integers,
    tells="You go by way of float16, which ends at 65504. bfloat16 has the range of float32, and "
    "int32 holds most of its large numbers. Take float64.",
)

one_number_squeezed = edit(
    mended_one_too_many,
    {
        "return wide.clamp(info.min, info.max).to(dtype)": """
        wide = wide.clamp(info.min, info.max).to(dtype)
        return wide.squeeze() if x.numel() == 1 else wide
        """,
    },
    breaks=hidden_tests.nearest_integers,
    tells="You take the dimensions off a single number. The result has the shape of x, "
    "also (1, 1): leave the `squeeze` out.",
)
