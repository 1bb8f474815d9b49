"""Drives what the exercises of chapter 02 ask for.

Runs in the learner's process, on the reference and on the learner's code alike:
nothing here is secret.
"""

import builtins
import contextlib
import warnings

import numpy as np
import torch
from torch.utils._pytree import tree_map

# image_to_batch


def image(image_to_batch, case):
    given = _array_of(case)
    with _default(case.get("default", torch.float32)):
        before = torch.get_default_dtype()
        found = _told(case, lambda: {"batch": image_to_batch(given)}, given)
        return {**found, "default_kept": torch.get_default_dtype() == before}


def image_twice(image_to_batch, case):
    """The first batch after a second call, after the array was written to; and the
    arrays after the batches were."""
    first, second = (
        _array_of(case),
        _array_of({**case, "pixels": case["other"]}),
    )
    kept, writeable = (first.copy(), second.copy()), first.flags.writeable
    one = image_to_batch(first)
    if not isinstance(one, torch.Tensor):
        return {"batch": None}
    as_made = one.clone()
    two = image_to_batch(second)
    found = {"batch": as_made, "array": torch.from_numpy(first.copy())}
    if first.flags.writeable != writeable:
        return {**found, "the flag is as it was": False}
    first.flags.writeable = True
    by_a_call = torch.equal(one, as_made)
    first[...] = 255 - first
    by_the_array = torch.equal(one, as_made)
    first[...] = kept[0]
    try:
        one.sub_(2)
        two.sub_(2)
        again = image_to_batch(first)
        same_again = torch.equal(again, as_made)
        again.sub_(2)
    except RuntimeError:
        return {**found, "can be written to": False}
    # Twice in a row, for those who remember the last array only.
    at_once = torch.equal(image_to_batch(first), as_made)
    return {
        **found,
        "the same again": same_again and at_once,
        "changed by a later call": not by_a_call,
        "changed with the array": not by_the_array,
        "the array is as it was": np.array_equal(first, kept[0])
        and np.array_equal(second, kept[1]),
    }


def _array_of(case):
    """The image of the case, lying in memory as its layout says."""
    if "pixels" not in case:
        return None
    pixels = np.array(case["pixels"].numpy())
    layout = case.get("layout", "plain")
    if layout == "flipped":
        return pixels[::-1, ::-1]
    if layout == "channels reversed":
        return pixels[..., ::-1]
    if layout == "upside down":
        return pixels[::-1]
    if layout == "mirrored":
        return pixels[:, ::-1]
    if layout == "cropped":
        return pixels[1:-1, 1:-1]
    if layout == "in Fortran order":
        return np.asfortranarray(pixels)
    if layout == "turned":
        return pixels.swapaxes(0, 1)
    if layout == "read-only":
        pixels.flags.writeable = False
    return pixels


# axes_of_one


def added(add_axes, case):
    x = case["x"]
    return _told(case, lambda: {"out": add_axes(x, case["dims"])}, x)


def dropped(drop_axes, case):
    x = case["x"]
    return _told(case, lambda: {"out": drop_axes(x, case["dims"])}, x)


def views_of_axes(add_axes, drop_axes, case):
    """What a write through the results changes in x, and the shape x has."""
    base = case["x"].clone(memory_format=torch.preserve_format)
    x = _with_strides(base, case["layout"])
    shape, numbers, before = tuple(x.shape), x.clone(), base.clone()
    wide = add_axes(x, case["dims"])
    narrow = drop_axes(x, case["ones"])
    if tuple(x.shape) != shape:
        return {"x keeps its shape": False}
    found = {"x is as it was": bool(torch.equal(x, numbers)), "x": numbers}
    for name, out in (("added", wide), ("dropped", narrow)):
        found[name] = out
        if not isinstance(out, torch.Tensor):
            continue
        # Elements that share one place cannot be filled: there, the other way.
        written, read = (out, x) if 0 not in x.stride() else (base, out)
        written.fill_(case["value"])
        there = bool((read == case["value"]).all())
        found[f"written through ({name})"] = there
        base.copy_(before)
    return found


def gradients_of_axes(add_axes, drop_axes, case):
    """Gradients of weighted sums of both results."""
    found = {}
    for name, function in (("add_axes", add_axes), ("drop_axes", drop_axes)):
        x = case["x"].clone().requires_grad_()
        given = x if case["leaf"] else 1 * x
        out = function(given, case["dims" if name == "add_axes" else "ones"])
        found[name] = None
        if isinstance(out, torch.Tensor) and out.requires_grad:
            loss = (out.flatten() * case["weights"]).sum()
            (found[name],) = torch.autograd.grad(loss, x)
    return found


def _with_strides(x, layout):
    if layout == "turned":
        return x.mT
    if layout == "every second":
        return x[..., ::2]
    if layout == "a later part":
        return x[1:]
    if layout == "expanded":
        return x[..., :1].expand(x.shape)
    if layout == "a conjugate view":
        return x.conj()
    return x


# casts


def default_in_blocks(default_dtype, case):
    """New tensors within nested blocks and after each of them."""
    within, after = [], []

    def enter(dtypes):
        if dtypes:
            with default_dtype(dtypes[0]):
                within.append(torch.tensor(case["numbers"]))
                enter(dtypes[1:])
            after.append(torch.tensor(case["numbers"]))

    with _default(case["outside"]):
        enter(case["dtypes"])
    return {"within": within, "after": after}


def default_after_error(default_dtype, case):
    kind = getattr(builtins, case["error"])
    raised = kind(case["text"])
    with _default(case["outside"]):
        try:
            with default_dtype(case["dtype"]):
                within = torch.tensor(case["numbers"])
                raise raised
        except kind as error:
            arrived = str(error) if error is raised else "another error"
        else:
            arrived = "no error"
        after = torch.tensor(case["numbers"])
    return {"within": within, "arrived": arrived, "after": after}


def default_made_early(default_dtype, case):
    """A manager that is made under one default and entered under another."""
    with _default(case["outside"]):
        block = default_dtype(case["dtype"])
        made = torch.tensor(case["numbers"])
        torch.set_default_dtype(case["between"])
        with block:
            within = torch.tensor(case["numbers"])
            torch.set_default_dtype(case.get("set within", case["dtype"]))
        after = torch.tensor(case["numbers"])
    return {"made": made, "within": within, "after": after}


def default_refused(default_dtype, case):
    with _default(case["outside"]):

        def enter():
            with default_dtype(case["dtype"]):
                return {"within": torch.tensor(case["numbers"])}

        found = _told(case, enter)
        return {**found, "after": torch.tensor(case["numbers"])}


class _default:
    """The default dtype of the block, whatever the learner's code does to it."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *error):
        torch.set_default_dtype(self.before)


def integers(to_integers, case):
    return {"out": to_integers(case["x"], case["dtype"])}


def integers_of_its_own(to_integers, case):
    """The result, and whether a write to it shows in x."""
    x = case["x"].expand(case.get("shape", case["x"].shape))
    out = to_integers(x, case["dtype"])
    kept, numbers = out.clone(), x.clone()
    to_integers(torch.zeros_like(x), case["dtype"])
    found = {"out": kept, "by a call": not torch.equal(out, kept)}
    try:
        out.fill_(case["value"])
    except RuntimeError:
        return {**found, "shared": False, "can be written to": False}
    same = torch.equal(x.nan_to_num(), numbers.nan_to_num())
    return {**found, "shared": not same}


# bridge


def array_of_tensor(to_numpy, case):
    given = _tensor_of(case)
    options = case.get("options", {})
    return _told(case, lambda: _described(to_numpy(given, **options)))


def array_and_tensor(to_numpy, case):
    """Whether a write to the array shows in the tensor; the tensor afterwards."""
    given = _tensor_of(case)
    before = _facts(given)

    def cross():
        array = to_numpy(given, **case["options"])
        found = _described(array)
        found["as it was"] = before == _facts(given)
        if case["options"].get("copy"):
            kept = np.array(array)
            to_numpy(torch.zeros_like(given).detach(), copy=True)
            found["by a call"] = not np.array_equal(array, kept)
        numbers = given.detach().clone()
        found["t"] = numbers.resolve_conj().resolve_neg()
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = _other(array)
        found["shared"] = not torch.equal(given.detach(), numbers)
        return found

    return _told(case, cross)


def array_from_elsewhere(to_numpy, case):
    given, options = OnSecondDevice(_tensor_of(case)), case.get("options", {})
    return _told(case, lambda: _described(to_numpy(given, **options)))


def tensor_of_array(to_tensor, case):
    """The tensor, whether a write to it shows in the array and the reverse."""
    given = _numpy_of(case)
    kept, before = given.copy(), _state(given)

    def make():
        out = to_tensor(given, **case.get("options", {}))
        if not isinstance(out, torch.Tensor):
            return {"tensor": out}
        found = {"tensor": out.clone(), "form": str(out.layout)}
        found["as it was"] = _state(given) == before
        found["array"] = torch.from_numpy(np.array(given))
        to_tensor(np.zeros_like(kept), **case.get("options", {}))
        found["by a call"] = _bits(out) != _bits(found["tensor"])
        if given.flags.writeable:
            given[...] = _other(given)
            found["follows the array"] = _bits(out) != _bits(found["tensor"])
            given[...] = kept
        if out.shape == kept.shape:  # else it would be this line that raises
            out.copy_(torch.from_numpy(np.array(_other(kept))))
        found["writes to the array"] = given.tobytes() != kept.tobytes()
        return found

    if case.get("told before"):
        with _told_of_a_read_only_array():
            return _told(case, make, given)
    return _told(case, make, given)


@contextlib.contextmanager
def _told_of_a_read_only_array():
    """As later in a process: PyTorch has warned of a read-only array, and does so
    once."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(False)
    locked = np.zeros(1)
    locked.flags.writeable = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.from_numpy(locked)
        yield
    finally:
        torch.set_warn_always(always)


def there_and_back(to_numpy, to_tensor, case):
    given = _tensor_of(case)
    return {"tensor": to_tensor(to_numpy(given))}


def _tensor_of(case):
    """The tensor of the case in its form."""
    numbers, form = case["numbers"], case.get("form_of_tensor", "plain")
    numbers = numbers.detach().clone(memory_format=torch.preserve_format)
    if form == "leaf":
        return numbers.requires_grad_()
    if form == "computed":
        return numbers.requires_grad_() * 2
    if form == "conjugate":
        return numbers.conj()
    if form == "negative":
        return numbers.conj().imag
    if form == "conjugate leaf":
        return numbers.requires_grad_().conj()
    if form == "turned":
        return numbers.mT
    if form == "every second":
        return numbers[..., ::2]
    if form == "expanded":
        return numbers[:1].expand(numbers.shape)
    return numbers


def _state(array):
    form = array.shape, array.strides, array.flags.writeable
    return form, array.dtype, array.tobytes()


def _numpy_of(case):
    """The array of the case, lying in memory as its layout says."""
    array, layout = np.array(case["numbers"].numpy()), case.get("layout")
    if layout == "flipped":
        return array[::-1]
    if layout == "flipped along the last axis":
        return array[..., ::-1]
    if layout == "turned":
        return array.T
    if layout == "every second":
        return array[..., ::2]
    if layout == "one with a new axis":
        return array[:, np.newaxis]
    if layout == "in Fortran order":
        return np.asfortranarray(array)
    if layout == "a field of records":
        records = np.zeros(array.shape, [("flag", "u1"), ("x", array.dtype)])
        records["x"] = array
        return records["x"]
    if layout == "read-only":
        array.flags.writeable = False
    return array


def _described(array):
    """An array as plain data: its numbers, its dtype, what it is."""
    if not isinstance(array, np.ndarray):
        return {"kind": type(array).__name__, "numbers": None, "dtype": ""}
    numbers = np.array(array)
    writeable = array.flags.writeable
    return {
        "kind": "a NumPy array" if writeable else "a read-only NumPy array",
        "numbers": torch.from_numpy(numbers),
        "dtype": str(numbers.dtype),
    }


def _facts(tensor):
    return (
        str(tensor.dtype),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.detach().flatten()[:64].tolist(),
    )


def _other(array):
    """Numbers that differ from those of the array everywhere."""
    if array.dtype == bool:
        return ~array
    finite = np.where(np.isfinite(array), array, 0).astype(array.dtype)
    return (finite + np.ones((), array.dtype)).astype(array.dtype)


def _bits(tensor):
    """The numbers as they lie in memory: a NaN equals itself."""
    plain = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
    return plain.contiguous().view(torch.uint8).tolist()


class OnSecondDevice(torch.Tensor):
    """A tensor on a second device, which every machine has.

    It says that it is on "meta", and holds values nevertheless. As a tensor on a
    GPU, it has to be moved to the CPU before NumPy can read it.
    """

    @staticmethod
    def __new__(cls, values):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=torch.device("meta"),
            requires_grad=values.requires_grad,
        )

    def __init__(self, values):
        self.values = values.detach()

    def __repr__(self):
        return f"{self.values!r} on a second device"

    def numpy(self, *, force=False):
        if force:
            return self.detach().cpu().numpy(force=True)
        raise TypeError("NumPy cannot read the memory of a second device.")

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def tolist(self):
        return self.values.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        comes_here = device is not None and torch.device(device).type == "cpu"
        if device is not None and not comes_here:
            kwargs["device"] = torch.device("cpu")
        result = func(*tree_map(_values, args), **tree_map(_values, kwargs))
        return result if comes_here else tree_map(_sent_there, result)


def _values(leaf):
    return leaf.values if isinstance(leaf, OnSecondDevice) else leaf


def _sent_there(leaf):
    return OnSecondDevice(leaf) if isinstance(leaf, torch.Tensor) else leaf


# named_axes


def reordered(reorder, case):
    x, names = case["x"], (case["axes"], case["target"])
    return _told(case, lambda: {"out": reorder(x, *names)}, x)


def reordered_view(reorder, case):
    """What a write through the result changes in x."""
    x = _with_strides(case["x"].clone(), case["layout"])
    numbers = x.clone()
    out = reorder(x, case["axes"], case["target"])
    kept = out.clone()
    out.fill_(case["value"])
    shared = bool((x == case["value"]).all())
    return {"out": kept, "x": numbers, "shared": shared}


def summed(sum_over, case):
    x, names = case["x"], (case["axes"], case["over"])
    return _told(case, lambda: {"out": sum_over(x, *names)}, x)


def gradients_by_name(reorder, sum_over, case):
    """Gradients of weighted sums of both results."""
    found = {}
    for name in ("reorder", "sum_over"):
        x = case["x"].clone().requires_grad_()
        given = x if case["leaf"] else 1 * x
        if name == "reorder":
            out = reorder(given, case["axes"], case["target"])
        else:
            out = sum_over(given, case["axes"], case["over"])
        found[name] = None
        if isinstance(out, torch.Tensor) and out.requires_grad:
            loss = (out * case["weights"][: out.numel()].view(out.shape)).sum()
            (found[name],) = torch.autograd.grad(loss, x)
    return found


# For all


def _told(case, call, given=None):
    """What the call gives; or that it refused, whether with one of the errors
    that are right for the case, and what it was given, as it is afterwards; or,
    where it must not refuse, what it raised."""
    kinds = tuple(getattr(builtins, name) for name in case.get("errors", ()))
    try:
        return call()
    except NotImplementedError:
        raise
    except kinds:
        if isinstance(given, np.ndarray):
            given = torch.from_numpy(np.array(given))
        return {"refused": True, "given": given}
    except Exception as error:
        if kinds:
            return {"refused": False}
        name = type(error).__name__
        return {"raised": name if hasattr(builtins, name) else "an error"}
