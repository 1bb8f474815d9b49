"""Answers to `bridge` of chapter 02."""

import warnings

import numpy as np
import torch

from course_grader.bank import accepted, wrong

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
