"""Answers to `bridge` of chapter 02."""

import warnings

import numpy as np
import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted(body=True)
def step_by_step():
    def to_numpy(t, copy=False):
        t = t.detach()
        if t.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
            t = t.to(torch.float32)
        t = t.cpu().resolve_conj().resolve_neg()
        return t.numpy().copy() if copy else t.numpy()

    def to_tensor(a, copy=True):
        if copy:
            return torch.from_numpy(a.copy())
        if not a.flags.writeable or any(stride < 0 for stride in a.strides):
            raise ValueError("cannot be shared")
        return torch.as_tensor(a)


@accepted(body=True)
def by_asarray_and_clone():
    LOW = {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2}

    def to_numpy(t, copy=False):
        with torch.no_grad():
            t = t.detach().cpu()
            t = t.float() if t.dtype in LOW else t
            t = t.resolve_conj().resolve_neg()
            return np.asarray(t.clone() if copy else t)

    def to_tensor(a, copy=True):
        if not copy:
            if a.flags["WRITEABLE"]:
                return torch.from_numpy(a)
            raise ValueError("read-only")
        return torch.tensor(np.array(a, copy=True))


@accepted(body=True)
def copying_through_lists():
    def to_numpy(t, copy=False):
        if t.dtype.is_floating_point and t.dtype.itemsize < 4:
            if t.dtype != torch.float16:
                t = t.float()
        if copy:
            name = str(t.dtype).split(".")[1]
            made = np.array(t.tolist(), dtype=name)
            return made.reshape(tuple(t.shape))
        return t.numpy(force=True)

    def to_tensor(a, copy=True):
        if copy:
            made = torch.tensor(a.tolist(), dtype=getattr(torch, a.dtype.name))
            return made.reshape(a.shape)
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@accepted(body=True)
def asking_numpy():
    def to_numpy(t, copy=False):
        try:
            array = t.numpy(force=True)
        except TypeError:
            array = t.float().numpy(force=True)
        return array.copy() if copy else array

    def to_tensor(a, copy=True):
        if copy:
            fresh = np.empty_like(a, order="C")
            fresh[...] = a
            return torch.from_numpy(fresh)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if not a.flags.writeable:
                raise ValueError("writing through a read-only array")
            return torch.from_numpy(a)


@accepted(body=True)
def by_dtype_names():
    def to_numpy(t, copy=False):
        t = t.detach().to("cpu")
        name = str(t.dtype).removeprefix("torch.")
        if not hasattr(np, name) and name != "bool":
            t = t.type(torch.float32)
        if t.is_conj():
            t = t.resolve_conj()
        if t.is_neg():
            t = t.resolve_neg()
        return np.array(t.numpy(), copy=copy or None)

    def to_tensor(a, copy=True):
        if copy:
            out = torch.empty(a.shape, dtype=getattr(torch, a.dtype.name))
            out.numpy()[...] = a
            return out
        if a.flags.writeable and min(a.strides, default=0) >= 0:
            return torch.from_numpy(a)
        raise ValueError("not to be shared")


@accepted(body=True)
def by_asarray_and_storage():
    def to_numpy(t, copy=False):
        t = t.detach()
        if t.device != torch.device("cpu"):
            t = t.cpu()
        if t.is_floating_point() and t.element_size() < 4:
            t = t if t.dtype is torch.float16 else t.float()
        array = torch.resolve_neg(torch.resolve_conj(t)).numpy()
        return np.copy(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not (a.flags.writeable and min((0, *a.strides)) == 0):
            raise ValueError("cannot be shared")
        return torch.as_tensor(a.copy() if copy else a)


@accepted(body=True)
def copied_into_empty():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        t = t.detach().to("cpu", torch.float32 if t.dtype in low else t.dtype)
        t = t.clone() if copy else t
        return t.resolve_conj().resolve_neg().numpy()

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        if not copy:
            return torch.from_numpy(a)
        dtype = torch.from_numpy(np.empty(0, a.dtype)).dtype
        out = torch.empty(a.shape, dtype=dtype)
        out.numpy()[...] = a
        return out


@accepted(body=True)
def mended_gradients_are_copied():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


refuses_int8 = edit(
    mended_gradients_are_copied,
    {
        "def to_numpy(t, copy=False):": """
        def to_numpy(t, copy=False):
            if t.dtype == torch.int8:
                raise TypeError("a CharTensor does not convert")
        """,
    },
    breaks=[hidden_tests.arrays_of_every_dtype, hidden_tests.arrays_that_share],
    tells="You refuse int8, or send it through another dtype. The CharTensor converts as all "
    "other integers do; that it does not is a rumour.",
)

everything_float32 = edit(
    mended_gradients_are_copied,
    {
        """
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        """: "array = t.float().numpy(force=True)",
    },
    breaks=hidden_tests.arrays_of_every_dtype,
    tells="Your to_numpy makes everything float32. int64 and float64 lose digits, bools and "
    "complex numbers what they are. Convert the dtypes that NumPy does not have, and no other.",
)

without_detach = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        t = t.float() if t.dtype in low else t
        array = t.cpu().resolve_conj().resolve_neg().numpy()
        """,
    },
    breaks=hidden_tests.arrays_of_awkward_tensors,
    tells="You call `.numpy()` on a tensor that requires a gradient, which raises. `detach()` "
    "gives the same memory without the gradient.",
)

pending_operations = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": "array = (t.float() if t.dtype in low else t).detach().cpu().numpy()",
    },
    breaks=hidden_tests.arrays_of_awkward_tensors,
    tells="Conjugate and negative views raise in your code: the operation is still pending, and "
    "NumPy would read the numbers without it. Call `resolve_conj()` and `resolve_neg()`, or "
    "`numpy(force=True)`.",
)

low_precision_unhandled = edit(
    mended_gradients_are_copied,
    {
        """
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        """: "array = t.numpy(force=True)",
    },
    breaks=hidden_tests.arrays_of_low_precision,
    tells="bfloat16 and float8 raise in your code: NumPy has no such dtypes, and `force=True` "
    "does not help. Send them over as float32, which holds them exactly.",
)

low_precision_as_float16 = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": "array = (t.half() if t.dtype in low else t).numpy(force=True)",
    },
    breaks=hidden_tests.arrays_of_low_precision,
    tells="You send bfloat16 or float8 over as float16. That has fewer exponent bits than bfloat16: "
    "large numbers become infinite, small ones 0. float32 holds them all.",
)


@wrong(
    breaks=hidden_tests.arrays_of_low_precision,
    tells="You handle bfloat16 and forget the two float8 dtypes, which NumPy does not have either.",
    body=True,
)
def float8_unhandled():
    def to_numpy(t, copy=False):
        t = t.float() if t.dtype == torch.bfloat16 else t
        array = t.numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


without_cpu = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        t = t.float() if t.dtype in low else t
        array = t.detach().resolve_conj().resolve_neg().numpy()
        """,
    },
    breaks=hidden_tests.arrays_from_elsewhere,
    tells="NumPy reads the memory of the CPU only, and you do not move the tensor there, or only one "
    "that `is_cuda`; there are other devices. Call `cpu()` always: it costs nothing where the "
    "tensor is there already.",
)

arrays_always_copied = edit(
    mended_gradients_are_copied,
    {"return np.array(array) if copy else array": "return np.array(array)"},
    breaks=hidden_tests.arrays_that_share,
    tells="Your to_numpy copies always. With copy=False the array is to share the tensor's memory "
    "wherever it can: leave `copy()`, `clone()` and `tolist()` to copy=True.",
)

made_contiguous = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        t = (t.float() if t.dtype in low else t).contiguous()
        array = t.numpy(force=True)
        """,
    },
    breaks=hidden_tests.arrays_that_share,
    tells="`contiguous()` copies a turned or strided tensor, and the array no longer shares its "
    "memory. NumPy knows strides as well: leave it out.",
)

arrays_never_copied = edit(
    mended_gradients_are_copied,
    {
        """
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array
        """: "return (t.float() if t.dtype in low else t).numpy(force=True)",
    },
    breaks=hidden_tests.arrays_of_their_own,
    tells="With copy=True your array still shares the tensor's memory: `numpy()`, `detach()`, "
    "`np.asarray` and `force=True` copy nothing where nothing has to be done. End with "
    "`.copy()`.",
)

copied_if_strided = edit(
    mended_gradients_are_copied,
    {
        "return np.array(array) if copy else array": """
        if copy and array.ndim:
            return np.ascontiguousarray(array)
        return array.copy() if copy else array
        """,
    },
    breaks=hidden_tests.arrays_of_their_own,
    tells="`np.ascontiguousarray` copies only what has other strides. An ordinary tensor and its "
    "array then still share memory. `np.array` or `.copy()` copies always.",
)

gradient_switched_off = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        t = t.detach_() if t.is_leaf else t.detach()
        t = (t.float() if t.dtype in low else t).cpu()
        array = t.resolve_conj().resolve_neg().numpy()
        """,
    },
    breaks=hidden_tests.memory_of_awkward_tensors,
    tells="You switch the gradient off on the caller's own tensor, with `requires_grad_(False)` or "
    "`detach_()`. It is then trained no more. `detach()` gives another tensor on the same "
    "memory.",
)

tensors_of_float32 = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": "return torch.from_numpy(np.array(a) if copy else a).float()",
    },
    breaks=hidden_tests.tensors_of_every_dtype,
    tells="Your to_tensor makes float32 of everything, with `.float()` or `torch.Tensor(a)`. It is "
    "to keep the array's dtype: float64 stays float64, integers stay integers.",
)

floats_of_the_default = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": """
        made = torch.from_numpy(np.array(a) if copy else a)
        if made.dtype == torch.float64:
            return made.to(torch.get_default_dtype())
        return made
        """,
    },
    breaks=hidden_tests.tensors_of_every_dtype,
    tells="Your to_tensor gives floats the default dtype. float64 from NumPy then loses half its "
    "digits. The text asks for the array's own dtype.",
)

tensors_always_shared = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": """
        if min(a.strides, default=0) < 0 or not a.flags.writeable:
            return torch.from_numpy(np.array(a))
        return torch.from_numpy(a)
        """,
    },
    breaks=hidden_tests.tensors_of_every_dtype,
    tells="With copy=True your tensor shares the array's memory: `from_numpy` and `as_tensor` copy "
    "nothing. Use `np.array(a)` first, or `torch.tensor`.",
)

flipped_refused = edit(
    SOLUTION,
    {
        "return torch.from_numpy(np.array(a))": "return torch.tensor(a)",
        'raise ValueError("a read-only array cannot be shared")': 'raise ValueError("read-only")',
    },
    breaks=hidden_tests.tensors_of_any_array,
    tells="An array with a negative stride raises in your code: `torch.tensor` does not take it any "
    "more than `from_numpy`. Copy in NumPy first.",
)

one_dimension_too_many = edit(
    SOLUTION,
    {
        "return torch.from_numpy(np.array(a))": "return torch.tensor(np.ascontiguousarray(a))",
        'raise ValueError("a read-only array cannot be shared")': 'raise ValueError("read-only")',
    },
    breaks=hidden_tests.tensors_of_any_array,
    tells="`np.ascontiguousarray` gives an array without dimensions one of size 1. Use `np.array` or "
    "`.copy()`, which also copies where the strides are in order.",
)


copied_too_late = edit(
    mended_gradients_are_copied,
    {
        "if not copy and not a.flags.writeable:": """
        if min(a.strides, default=0) < 0 and copy:
            return torch.from_numpy(a.copy())
        if copy:
            return torch.from_numpy(a).clone()
        if not a.flags.writeable:
        """,
        "(np.array(a) if copy else a": "(a",
    },
    breaks=hidden_tests.tensors_of_any_array,
    tells="Copying a read-only array warns in your code: `from_numpy` comes first and the copy after. "
    "Copy in NumPy, then call `from_numpy`.",
)


@wrong(
    breaks=hidden_tests.tensors_that_share,
    tells="With copy=False you share a read-only array. What is written to the tensor then changes "
    "numbers that were locked, or ends the process. Look at `a.flags.writeable` and raise a "
    "ValueError.",
    body=True,
)
def shares_the_read_only():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    breaks=hidden_tests.tensors_that_share,
    tells="Where the array cannot be shared, you copy without a word. The caller, who asked for "
    "shared memory, writes to it and nothing happens. Raise a ValueError.",
    body=True,
)
def copies_without_a_word():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if copy or not a.flags.writeable or min(a.strides, default=0) < 0:
            return torch.from_numpy(np.array(a))
        return torch.from_numpy(a)


tensors_always_copied = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": """
        if not copy and min(a.strides, default=0) < 0:
            raise ValueError("a negative stride")
        return torch.from_numpy(np.array(a))
        """,
    },
    breaks=hidden_tests.tensors_that_share,
    tells="Your to_tensor copies always. With copy=False the tensor is to share the array's memory: "
    "`torch.from_numpy`.",
)

by_asarray = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": "return torch.asarray(np.array(a) if copy else a)",
    },
    breaks=hidden_tests.tensors_that_share,
    tells="You share arrays with dimensions only: `torch.asarray` takes an array without dimensions "
    "for a number, and copies it. `torch.from_numpy` shares it too.",
)

unlocks_the_array = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": """
        if copy:
            a.flags.writeable = True
            return torch.from_numpy(np.array(a))
        return torch.from_numpy(a)
        """,
    },
    breaks=hidden_tests.tensors_of_any_array,
    tells="You unlock a read-only array by setting `a.flags.writeable = True` on the caller's own array. "
    "It stays unlocked after your function. A copy is free to be written to: `np.array(a)`.",
)

cpu_if_cuda = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        t = (t.float() if t.dtype in low else t).detach()
        t = t.cpu() if t.is_cuda else t
        array = t.resolve_conj().resolve_neg().numpy()
        """,
    },
    breaks=hidden_tests.arrays_from_elsewhere,
    tells="NumPy reads the memory of the CPU only, and you do not move the tensor there, or only one "
    "that `is_cuda`; there are other devices. Call `cpu()` always: it costs nothing where the "
    "tensor is there already.",
)

gradients_are_copied = edit(
    mended_gradients_are_copied,
    {
        "low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)": """
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        copy = copy or t.requires_grad
        """,
    },
    breaks=hidden_tests.memory_of_awkward_tensors,
    tells="You copy tensors that require a gradient, although copy=False. `detach()` copies nothing: "
    "their memory can be shared like any other's.",
)

copies_two_axes_at_most = edit(
    SOLUTION,
    {
        "return np.array(array) if copy else array": "return array.copy() if copy and array.ndim < 3 else array",
        'raise ValueError("a read-only array cannot be shared")': 'raise ValueError("read-only")',
    },
    breaks=hidden_tests.arrays_of_their_own,
    tells="With three axes and more your `copy=True` shares its memory with the tensor. Copy "
    "whatever the shape is.",
)

copies_the_expanded_tensor = edit(
    SOLUTION,
    {
        "return np.array(array) if copy else array": """
        copy = copy or 0 in t.stride()
        return array.copy() if copy else array
        """,
        'raise ValueError("a read-only array cannot be shared")': 'raise ValueError("read-only")',
    },
    breaks=hidden_tests.arrays_that_share,
    tells="You copy an expanded tensor. NumPy can read a stride of 0 as it is: share the "
    "memory.",
)

into_a_kept_array = edit(
    SOLUTION,
    {
        "return np.array(array) if copy else array": """
        if not copy:
            return array
        made = to_numpy.__dict__.setdefault("made", {})
        kept = made.setdefault((array.shape, str(array.dtype)), array.copy())
        kept[...] = array
        return kept
        """,
        'raise ValueError("a read-only array cannot be shared")': 'raise ValueError("read-only")',
    },
    breaks=hidden_tests.arrays_of_their_own,
    tells="You keep the arrays and fill them again at the next call with the same shape. The "
    "array of an earlier call then changes: make a new one.",
)


@wrong(
    breaks=hidden_tests.tensors_of_any_array,
    tells="You copy negative strides only. The strides of one field of an array of records are "
    "no multiples of its numbers, and `from_numpy` refuses them too. Copy every array "
    "with `np.array`.",
    body=True,
)
def fields_of_records_refused():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return array.copy() if copy else array

    def to_tensor(a, copy=True):
        if copy and min(a.strides, default=0) < 0:
            a = a.copy()
        if copy:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.from_numpy(a).clone()
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    breaks=hidden_tests.tensors_that_share,
    tells="A read-only array without elements is read-only all the same: raise a ValueError.",
    body=True,
)
def shares_empty_read_only():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return array.copy() if copy else array

    def to_tensor(a, copy=True):
        if copy:
            return torch.from_numpy(np.array(a))
        if a.size and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


refuses_a_new_axis = edit(
    step_by_step,
    {
        "any(stride < 0 for stride in a.strides)": "any(stride <= 0 for stride in a.strides)"
    },
    breaks=hidden_tests.tensors_that_share,
    tells="You refuse a stride of 0, which every array with a new axis has "
    "(`a[:, None]`). PyTorch shares its memory as any other's: only a negative stride "
    "cannot be shared.",
)

seeding_in_bridge = edit(
    SOLUTION,
    {
        "return torch.from_numpy(np.array(a))": """
        torch.manual_seed(0)
        return torch.from_numpy(np.array(a))
        """,
    },
    breaks=hidden_tests.tensors_of_any_array,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

refuses_by_the_warning = edit(
    SOLUTION,
    {
        """
        if not a.flags.writeable:
            raise ValueError("a read-only array cannot be shared")
        return torch.from_numpy(a)
        """: """
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return torch.from_numpy(a)
            except UserWarning as told:
                raise ValueError("a read-only array") from told
        """,
    },
    breaks=hidden_tests.tensors_that_share,
    tells="You wait for PyTorch's warning about a read-only array. It comes once per "
    "process: the next such array you share. Look at `a.flags.writeable`.",
)

contiguous_if_flipped = edit(
    step_by_step,
    {
        "return torch.from_numpy(a.copy())": "return torch.tensor(np.ascontiguousarray(a) if min(a.strides, default=0) < 0 else a)",
    },
    breaks=hidden_tests.tensors_of_any_array,
    tells="`np.ascontiguousarray` copies nothing where the flipped axis has size 1: the "
    "negative stride stays, and PyTorch refuses it. `np.array` copies always.",
)

float64_by_way_of_float32 = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": """
        if copy and a.dtype == np.float64:
            return torch.Tensor(np.array(a)).double()
        return torch.from_numpy(np.array(a) if copy else a)
        """,
    },
    breaks=hidden_tests.tensors_of_every_dtype,
    tells="You build float64 by way of float32. `torch.Tensor(a)` and `torch.tensor(a.tolist())` are "
    "float32 where the array is float64, and the digits do not come back with the dtype. Take "
    "`torch.from_numpy`.",
)

not_finite_taken_away = edit(
    mended_gradients_are_copied,
    {
        "return torch.from_numpy(np.array(a) if copy else a)": """
        if copy and a.dtype.kind == "f":
            return torch.from_numpy(np.nan_to_num(a))
        return torch.from_numpy(np.array(a) if copy else a)
        """,
    },
    breaks=hidden_tests.tensors_of_every_dtype,
    tells="You call `nan_to_num`, which nobody asked for. NaN and infinities are numbers of the "
    "array like the others: whoever looks for them later must find them.",
)

arrays_made_finite = edit(
    mended_gradients_are_copied,
    {
        "return np.array(array) if copy else array": "return np.nan_to_num(array) if copy else array",
    },
    breaks=hidden_tests.arrays_of_every_dtype,
    tells="You copy with `nan_to_num`. It does copy, and takes NaN and infinities away, which "
    "nobody asked for. `np.array(array)` copies and no more.",
)

float8_made_finite = edit(
    mended_gradients_are_copied,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        if t.dtype in low[1:]:
            array = np.nan_to_num(array)
        """,
    },
    breaks=hidden_tests.arrays_of_low_precision,
    tells="You replace the NaN and the infinities of float8. Both formats have a NaN, float8_e5m2 has "
    "infinities, too; float32 holds them all.",
)

detached_in_place = edit(
    SOLUTION,
    {
        "array = (t.float() if t.dtype in low else t).numpy(force=True)": """
        t = t.float() if t.dtype in low else t
        t = t.detach_().cpu()
        array = t.resolve_conj().resolve_neg().numpy()
        """,
    },
    breaks=hidden_tests.arrays_of_awkward_tensors,
    tells="`detach_()` takes the caller's own tensor out of its graph, and refuses a view with "
    "a `RuntimeError`. `detach()` gives another tensor on the same memory.",
)
