"""What chapter 02 states about tensors, dtypes and NumPy, run."""

import math

import numpy as np
import pytest
import torch
from torch import nn

BY_CELL = {
    "four_pictures": [
        "`view` where the axes must be permuted, the channels in OpenCV's order (blue first), and brightness added while the numbers are still bytes. Each has the right shape and dtype.",
    ],
    "squeeze_eats_the_batch": [
        "For a batch of one, the batch axis has size 1 too, and the bare `squeeze` takes it.",
    ],
    "claim_000_09": ["`Conv2d` takes (C, H, W), `BatchNorm2d` does not."],
    "claim_000_10": [
        "The bytes stop a convolution; as floats, the height is taken for the channels.",
    ],
    "claim_000_11_12_13": [
        "*Correct*: `np.newaxis` is `None`, and works on tensors too.",
        "*Correct*, for `dim` from −ndim − 1 to ndim.",
    ],
    "claim_000_14": ["where NumPy raises, PyTorch is silent"],
    "claim_002_28_29": [
        "the rows listed are right, the newer dtypes have no class.",
    ],
    "claim_002_31_32": [
        "Named tensors never left the prototype stage and are gone since 2.13. Older versions still have them, with a warning; the cell holds on both.",
    ],
    "claim_002_34": [
        "An array from NumPy keeps its float64, whatever the default, and then meets float32 weights.",
    ],
    "claim_002_35": [
        "A cast to an integer dtype truncates towards 0. Integers out of range wrap around.",
    ],
    "claim_002_36": [
        "int8, the CharTensor, converts and shares its memory.",
        "`numpy(force=True)` resolves the latter three, and moves to the CPU. It refuses bfloat16 (call `.float()` first) and sparse tensors (`.to_dense()`).",
    ],
    "from_numpy_refuses": [
        "an array with a negative stride (anything flipped) is refused by `from_numpy` *and* by `torch.tensor`.",
    ],
    "what_becomes_of_it": ["Past the end a number becomes `inf`."],
}

BY_SOURCE = {
    "https://github.com/pytorch/pytorch/pull/169937": [
        "For a *float* out of range, and for NaN, the result is undefined: it depends on the processor, and on whether the loop was vectorised.",
    ],
    "https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/": [
        "The newest cards take blocks of numbers with a scale each: 32 of 8 or 4 bits (MXFP8, MXFP4), 16 of 4 bits (NVFP4).",
    ],
    "https://docs.pytorch.org/vision/stable/generated/torchvision.io.decode_image.html": [
        "`torchvision.io.decode_image` gives bytes of shape (C, H, W), red first, and raises.",
    ],
}

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def shares(a, b):
    a, b = a.untyped_storage(), b.untyped_storage()
    return a.data_ptr() == b.data_ptr()


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8])
def test_views_and_copies(dtype):
    """A *view* is a new shape, new strides and a new offset over the same memory.

    | `permute`, `transpose`, `movedim`, `unsqueeze`, `squeeze`, `expand`, slicing, `detach` | a view |

    | `view` | a view, or an error where strides do not allow one |

    | `reshape`, `flatten` | a view (or the tensor itself) if possible, else a copy: do not rely on either |

    | `flip`, indexing with a tensor, `clone`, `torch.tensor(...)` | a copy |

    | `to`, `float`, `cpu`, `long`, `contiguous` | the *same object* if nothing changes, else a copy |
    """
    x = torch.arange(12).to(dtype).reshape(1, 3, 4)
    for view in (
        x.permute(2, 0, 1),
        x.transpose(0, 1),
        x.movedim(0, 2),
        x.unsqueeze(0),
        x.squeeze(0),
        x.expand(5, 3, 4),
        x[:, 1:],
        x.detach(),
        x.view(3, 4),
        x.reshape(4, 3),
        x.flatten(),
    ):
        assert shares(view, x)
        assert view is not x
    assert x[0, 0].flatten() is not None
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.transpose(1, 2).view(12)
    for copy in (
        x.flip(0),
        x[torch.tensor([0])],
        x.clone(),
        torch.tensor(x.tolist(), dtype=dtype),
        x.transpose(1, 2).reshape(12),
        x.transpose(1, 2).flatten(),
        x.transpose(1, 2).contiguous(),
        x.to(torch.complex64),
    ):
        assert not shares(copy, x)
    assert x.to(dtype) is x.cpu() is x.contiguous() is x
    assert (x.float() is x) == (dtype == torch.float32)
    assert (x.long() is x) == (dtype == torch.int64)


def test_the_offset():
    """The *offset* says where in the memory it begins: `x[2:]` and `x[:2]` of four numbers differ in nothing else."""
    x = torch.arange(4.0)
    late, early = x[2:], x[:2]
    assert (late.storage_offset(), early.storage_offset()) == (2, 0)
    for fact in ("shape", "dtype", "device"):
        assert getattr(late, fact) == getattr(early, fact)
    assert late.stride() == early.stride()
    assert shares(late, early)


def test_channels_last():
    """`memory_format=torch.channels_last` keeps the shape (N, C, H, W). Give it to model and images; what comes out has it too. `view` may then refuse what it took before: use `reshape`. A batch of images that you permute from (N, H, W, C) has these strides already."""
    plain = torch.randn(2, 3, 4, 5)
    x = plain.to(memory_format=torch.channels_last)
    assert x.shape == plain.shape
    assert torch.equal(x, plain)
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
    net = nn.Sequential(*layers, nn.MaxPool2d(2))
    net = net.to(memory_format=torch.channels_last)
    assert net(x).is_contiguous(memory_format=torch.channels_last)
    plain.view(2, -1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.view(2, -1)
    assert torch.equal(x.reshape(2, -1), plain.view(2, -1))
    permuted = torch.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert permuted.stride() == x.stride()
    assert permuted.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("n", [8, 9])
def test_the_squeeze_that_eats_the_batch_axis(n):
    """`mean(0)` then averages over the channels, and the single number broadcasts into all three sums. With eight samples the two agree.

    `squeeze` always with its dims. Bare, it takes the batch axis of a batch of one.
    """
    pooled = torch.randn(n, 3, 1, 1)
    totals = [torch.zeros(3), torch.zeros(3)]
    for batch in pooled.split(4):
        totals[0] += batch.squeeze().mean(0) * len(batch)
        totals[1] += batch.squeeze((2, 3)).mean(0) * len(batch)
    assert torch.allclose(*totals) == (n == 8)
    assert pooled[:1].squeeze().shape == (3,)


@pytest.mark.parametrize(
    ("dtype", "end"),
    [(torch.float16, 2048), (torch.bfloat16, 256), (torch.float32, 2**24)],
)
def test_a_count_that_stops(dtype, end):
    """At 2048 the next float16 number is 2050. 2049 lies in the middle, and ties go to the even neighbour: back to 2048.

    That too has an end: counting by ones stops at 16,777,216.

    (`x.sum()` of a bfloat16 tensor does so by itself, and rounds once, at the end.)
    """
    one = torch.ones((), dtype=dtype)
    stop = torch.tensor(end, dtype=dtype)
    assert stop + one == stop
    assert stop - one + one == stop
    assert stop - one - one + one == stop - one
    if dtype == torch.float16:
        assert torch.nextafter(stop, 2 * stop) == 2050
        assert torch.tensor(2049.0).half() == 2048
        assert torch.tensor(2051.0).half() == 2052
    for n in (3000, 5000):
        whole = torch.ones(n, dtype=dtype).sum()
        assert whole == torch.tensor(float(n)).to(dtype)


def test_range_and_precision():
    """**float16** has the finer steps and ends at 65504. **bfloat16** reaches as far as float32, with two to three digits.

    `eps` is the gap after 1; a rounding error is at most half of it.

    float16 has precision and ends at 65504, bfloat16 has the range of float32 and 8 bits.
    """
    assert torch.finfo(torch.float16).eps < torch.finfo(torch.bfloat16).eps
    assert torch.finfo(torch.float16).max == 65504
    ratio = torch.finfo(torch.float32).max / torch.finfo(torch.bfloat16).max
    assert 1 <= ratio < 1.01
    numbers = torch.rand(2000, dtype=torch.float64) * 100 + 1
    for dtype in FLOATS[:3]:
        eps = torch.finfo(dtype).eps
        one = torch.ones((), dtype=dtype)
        assert (torch.nextafter(one, 2 * one) - one).item() == eps
        off = (numbers.to(dtype).double() - numbers).abs() / numbers
        assert off.max() <= eps / 2


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8(dtype):
    """The two **float8** are for storing, and for matrix products with a scale beside them. On a CPU, `x + x` raises.

    float8_e4m3fn has no `inf`; there the result is its largest number or NaN, depending on version and device.
    """
    x = torch.ones(2).to(dtype)
    with pytest.raises((RuntimeError, NotImplementedError)):
        x + x
    over = torch.tensor(1e6).to(dtype).float()
    if dtype == torch.float8_e4m3fn:
        assert over.isnan() or over == torch.finfo(dtype).max
        assert (
            not torch.arange(256, dtype=torch.uint8)
            .view(dtype)
            .float()
            .isinf()
            .any()
        )
    else:
        assert over == math.inf


def test_small_formats():
    """`torch.float8_e8m0fnu` is the scale of the first two, a power of 2; `torch.float4_e2m1fn_x2` is a byte of two numbers."""
    for name in ("float8_e8m0fnu", "float4_e2m1fn_x2"):
        assert getattr(torch, name).itemsize == 1
    scales = torch.arange(100, 140, dtype=torch.uint8).view(
        torch.float8_e8m0fnu
    )
    assert (scales.float().log2() % 1 == 0).all()


@pytest.mark.parametrize(
    "default", [torch.float32, torch.float64, torch.float16]
)
def test_the_default_dtype(default):
    """The default is what *Python* floats become.

    float64 comes from NumPy whatever the default dtype is.
    """
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(default)
        assert torch.tensor([1.5]).dtype == torch.zeros(1).dtype == default
        assert torch.tensor([1]).dtype == torch.int64
        assert torch.tensor(np.ones(1)).dtype == torch.float64
        assert torch.from_numpy(np.ones(1)).dtype == torch.float64
    finally:
        torch.set_default_dtype(before)


def test_who_shares_with_numpy():
    """`torch.tensor` and `np.array` copy; `from_numpy`, `as_tensor` and `numpy()` share."""
    for dtype in (np.float64, np.int8, np.complex64):
        a = np.zeros(3, dtype)
        for make, shared in (
            (torch.tensor, False),
            (torch.from_numpy, True),
            (torch.as_tensor, True),
        ):
            a[0] = 0
            t = make(a)
            a[0] = 5
            assert (t[0] == 5) == shared
        t = torch.from_numpy(a)
        for make, shared in (
            (np.array, False),
            (torch.Tensor.numpy, True),
            (lambda t: np.asarray(t.numpy()), True),
        ):
            t[1] = 0
            got = make(t)
            t[1] = 7
            assert (got[1] == 7) == shared


def test_what_numpy_does_not_have():
    """What does not convert is what NumPy does not have: bfloat16, float8, and other small formats; sparse tensors; and tensors that say more than numbers: those that require a gradient and those with a pending conjugation or negation."""
    turned = torch.tensor([1 + 2j]).conj()
    for tensor in (
        torch.ones(1, dtype=torch.bfloat16),
        torch.ones(1).to(torch.float8_e4m3fn),
        torch.eye(2).to_sparse(),
        torch.ones(1, requires_grad=True),
        turned,
        turned.imag,
    ):
        with pytest.raises((TypeError, RuntimeError)):
            tensor.numpy()
    for dtype in (torch.float16, torch.uint16, torch.bool, torch.int8):
        torch.ones(1).to(dtype).numpy()


@pytest.mark.filterwarnings("ignore:.*not writable")
def test_a_read_only_array():
    """writing to the tensor then writes where it must not."""
    locked = np.arange(3)
    locked.flags.writeable = False
    torch.from_numpy(locked)[0] = 9
    assert locked[0] == 9


def test_permute_and_view():
    """`permute` picks every third number for a channel. `view` cuts the same line into three pieces.

    `permute` moves axes, `view` only cuts memory anew
    """
    image = torch.arange(18).reshape(2, 3, 3)
    line = image.flatten()
    for channel in range(3):
        moved = image.permute(2, 0, 1)[channel].flatten()
        assert torch.equal(moved, line[channel::3])
        cut = image.view(3, 2, 3)[channel].flatten()
        assert torch.equal(cut, line[6 * channel : 6 * channel + 6])


def test_hints_of_the_exercises():
    """`image[..., ::-1]` reverses the channels and has a negative stride, which PyTorch does not take. `np.ascontiguousarray` or `.copy()` afterwards helps

    But 2147483647 is no float32 and 32767 no float16: clamped there, it is rounded *up* and falls out of the range. float64 holds them all.

    `clamp` on uint8 with a bound of −128 would wrap the bound.

    `np.array(a)` copies always. `np.ascontiguousarray(a)` copies only where it must, and gives an array without dimensions one.

    `x.sum(())` sums over *every* axis.

    `einsum` finds none of them: it sums over what is missing, and takes the diagonal of what is twice.
    """
    image = np.zeros((2, 2, 3), np.uint8)
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(image[..., ::-1])
    for copied in (
        np.ascontiguousarray(image[..., ::-1]),
        image[..., ::-1].copy(),
    ):
        torch.from_numpy(copied)
    assert torch.tensor(2147483647, dtype=torch.float32).item() == 2147483648
    assert torch.tensor(32767, dtype=torch.float16).item() == 32768
    assert torch.tensor(2147483647, dtype=torch.float64).item() == 2147483647
    small = torch.tensor([1, 200], dtype=torch.uint8)
    assert small.clamp(min=-128).tolist() != [1, 200]
    a = np.ones(3)
    assert not np.shares_memory(np.array(a), a)
    assert np.shares_memory(np.ascontiguousarray(a), a)
    assert np.ascontiguousarray(np.array(1.0)).shape == (1,)
    x = torch.ones(2, 3)
    assert x.sum(()).shape == ()
    square = torch.arange(9.0).reshape(3, 3)
    assert torch.equal(torch.einsum("ab->a", square), square.sum(1))
    assert torch.equal(torch.einsum("aa->a", square), square.diagonal())


def test_force():
    """`t.numpy(force=True)` stands for `t.detach().cpu().resolve_conj().resolve_neg().numpy()`. Each of these steps returns a view or the tensor itself where there is nothing to do."""
    t = torch.ones(2, requires_grad=True)
    assert np.shares_memory(t.numpy(force=True), t.detach().numpy())
    turned = torch.tensor([1 + 2j]).conj()
    for one in (turned, turned.imag):
        by_hand = one.detach().cpu().resolve_conj().resolve_neg().numpy()
        assert np.array_equal(one.numpy(force=True), by_hand)
    plain = torch.ones(2)
    assert plain.cpu() is plain
    assert plain.resolve_conj().data_ptr() == plain.data_ptr()
