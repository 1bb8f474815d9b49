"""What chapter 02 states about tensors, dtypes and NumPy, run."""

import contextlib
import math
import shutil
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

BY_CELL = {
    "four_pictures": [
        "`view` where the axes must be permuted, the channels in OpenCV's order (blue first), and brightness added while the numbers are still bytes. Each has the right shape and dtype.",
    ],
    "squeeze_eats_the_batch": [
        "For a batch of one, the batch axis has size 1 too, and the bare `squeeze` takes it.",
    ],
    "views_and_copies": [
        "A *view* is a new shape, new strides and a new offset over the same memory.",
    ],
    "channels_last": [
        "In PyTorch that is a matter of strides alone: `memory_format=torch.channels_last` keeps the shape (N, C, H, W).",
    ],
    "claim_000_09": [
        "Not every layer asks for it: `Conv2d` takes (C, H, W), `BatchNorm2d` does not."
    ],
    "claim_000_10": [
        "The bytes stop a convolution; as floats, the height is taken for the channels.",
    ],
    "claim_000_11_12_13": [
        "*Correct.* The size then prints as `torch.Size([6, 7, 3])`.",
        "*Correct*: `np.newaxis` is `None`, and works on tensors too.",
        "*Correct*, for `dim` from −ndim − 1 to ndim.",
    ],
    "claim_000_14": [
        "*Correct*, and the second half is the danger of section 1. Several dims go in a tuple.",
        "where NumPy raises, PyTorch is silent, and the wrong number of axes travels on.",
    ],
    "claim_002_28_29": [
        "the rows listed are right, the newer dtypes have no class.",
    ],
    "claim_002_31_32": [
        "Named tensors never left the prototype stage and are gone since 2.13. Older versions still have them, with a warning; the cell holds on both.",
    ],
    "claim_002_34": [
        "It warns; use `torch.set_default_dtype` and `torch.set_default_device`.",
    ],
    "claim_002_35": [
        "A cast to an integer dtype truncates towards 0. Integers out of range wrap around.",
        "And where nothing is to be done, you get the same object back.",
    ],
    "claim_002_36": [
        "int8, the CharTensor, converts and shares its memory.",
        "`numpy(force=True)` resolves the latter three, and moves to the CPU (not from *meta*, which has no numbers). It refuses bfloat16 (call `.float()` first) and sparse tensors (`.to_dense()`).",
    ],
    "from_numpy_refuses": [
        "an array with a negative stride (as after a flip) is refused by `from_numpy` *and* by `torch.tensor`.",
    ],
    "claim_002_30": [
        "*Correct*: as a string with dtype and device in one.",
    ],
}

BY_SOURCE = {
    "https://github.com/pytorch/pytorch/pull/169937": [
        "For a *float* out of range, and for NaN, the result is undefined: it depends on the processor, and on whether the loop was vectorised.",
    ],
    "https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/": [
        "The newest cards take blocks of numbers with a scale each: 32 of 8 or 4 bits (MXFP8, MXFP4), 16 of 4 bits (NVFP4).",
    ],
    "https://docs.opencv.org/4.x/d4/da8/group__imgcodecs.html": [
        "The channels are in the order blue, green, red; and for a path that it cannot read, `cv2.imread` returns `None`.",
    ],
    "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html": [
        "Convolutions are often faster where the channels of a pixel lie side by side.",
    ],
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions": [
        "The factor is large on those GPUs that have few units for float64, as most have.",
    ],
    "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf": [
        "On those that are built for scientific computing it is about two, and for matrix products often about one (without TF32).",
    ],
}

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def sum_with(threads, x):
    """The sum that so many CPU threads make."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return x.sum()
    finally:
        torch.set_num_threads(before)


def shares(a, b):
    a, b = a.untyped_storage(), b.untyped_storage()
    return a.data_ptr() == b.data_ptr()


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8])
def test_views_and_copies(dtype):
    """| `permute`, `transpose`, `movedim`, `unsqueeze`, `squeeze`, `expand`, slicing, `detach` | a view |

    | `view` | a view, or an error where strides do not allow one |

    | `reshape`, `flatten` | a view (or the tensor itself) if possible, else a copy: do not rely on either |

    | `flip`, indexing with a tensor that has an axis, `clone`, `torch.tensor(...)` | a copy |

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
    assert shares(x[torch.tensor(0)], x)  # no axis: as x[0]
    assert not shares(x[torch.tensor([True])], x)
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
    """Give it to model and images: convolutions and most layers beside them pass it on. (`nn.GroupNorm` may lose digits with it: chapter 05.) `view` may then refuse what it took before: use `reshape`. A batch of images that you permute from (N, H, W, C) has these strides already."""
    plain = torch.randn(2, 3, 4, 5)
    x = plain.to(memory_format=torch.channels_last)
    assert x.shape == plain.shape
    assert torch.equal(x, plain)
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
    net = nn.Sequential(*layers, nn.MaxPool2d(2))
    net = net.to(memory_format=torch.channels_last)
    assert net(x).is_contiguous(memory_format=torch.channels_last)
    other = nn.InstanceNorm2d(3)(x)
    assert not other.is_contiguous(memory_format=torch.channels_last)
    plain.view(2, -1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.view(2, -1)
    assert torch.equal(x.reshape(2, -1), plain.view(2, -1))
    permuted = torch.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert permuted.stride() == x.stride()
    assert permuted.is_contiguous(memory_format=torch.channels_last)
    far = 1000 + torch.randn(4, 64, 8, 8)
    exact = F.group_norm(far.double(), 8)
    order = far.contiguous(memory_format=torch.channels_last)
    assert (F.group_norm(far, 8) - exact).abs().max() < 1e-3
    assert (F.group_norm(order, 8) - exact).abs().max() > 0.1


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

    (`x.sum()` of a bfloat16 tensor adds in float32 by itself, and rounds at the end; on a CPU a large sum is rounded once per thread, too.)
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
    many = torch.zeros(2**16)
    many[:1387] = 1
    many = many[torch.randperm(2**16)].to(dtype)
    sums = {threads: sum_with(threads, many) for threads in (1, 2)}
    assert sums[1] == torch.tensor(1387.0).to(dtype)
    assert abs(sums[2] - 1387) <= 3 * torch.finfo(dtype).eps / 2 * 1387


def test_range_and_precision():
    """**float16** has finer steps than bfloat16, near 0 coarser ones, and ends at 65504. **bfloat16** reaches as far as float32, with two to three digits.

    `eps` is the gap after 1. Between `tiny` and `max` a rounding error is at most half of it, times the number.

    float16 has precision and ends at 65504, bfloat16 has the range of float32 and 8 bits.
    """
    assert torch.finfo(torch.float16).eps < torch.finfo(torch.bfloat16).eps
    assert torch.finfo(torch.float16).max == 65504
    ratio = torch.finfo(torch.float32).max / torch.finfo(torch.bfloat16).max
    assert 1 <= ratio < 1.01
    for dtype in FLOATS[:3]:
        eps, ends = torch.finfo(dtype).eps, torch.finfo(dtype)
        low, high = math.log2(ends.tiny), math.log2(ends.max)
        powers = low + (high - low) * torch.rand(2000, dtype=torch.float64)
        numbers = 2**powers
        one = torch.ones((), dtype=dtype)
        assert (torch.nextafter(one, 2 * one) - one).item() == eps
        off = (numbers.to(dtype).double() - numbers).abs() / numbers
        assert off.max() <= eps / 2
    worst = {}
    for place in (1.0, 1e-6):
        numbers = place * (1 + torch.rand(2000, dtype=torch.float64))
        worst[place] = [
            ((numbers.to(dtype).double() - numbers).abs() / place).max().item()
            for dtype in (torch.float16, torch.bfloat16)
        ]
    assert worst[1.0][0] < 0.2 * worst[1.0][1]
    assert worst[1e-6][0] > 3 * worst[1e-6][1]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8(dtype):
    """The two **float8** are for storing, and for matrix products with a scale beside them. On a CPU, uncompiled, `x + x` raises.

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


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no compiler")
def test_float8_compiled(python):
    """On a CPU, uncompiled, `x + x` raises."""
    said = python(
        "import torch\n"
        "x = torch.ones(2).to(torch.float8_e5m2)\n"
        "print(torch.compile(lambda x: x + x)(x).float().tolist())\n"
        "x + x"
    )
    assert said.startswith("[2.0, 2.0]")
    assert "not implemented" in said


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
    """The default is what *Python* floats become (a `DataLoader` makes them float64).

    An array's float64 stays whatever the default dtype is, but for `torch.Tensor(array)`, `x.new_tensor(array)` and their like.

    An array from NumPy keeps its float64, whatever the default (but in the old `torch.Tensor(array)` and `torch.FloatTensor(array)`, and in `x.new_tensor(array)`, which takes the dtype of `x`), and then meets float32 weights.
    """
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(default)
        assert torch.tensor([1.5]).dtype == torch.zeros(1).dtype == default
        assert torch.tensor([1]).dtype == torch.int64
        (batch,) = DataLoader([1.0, 0.5], batch_size=2)
        assert batch.dtype == torch.float64
        assert torch.tensor(np.ones(1)).dtype == torch.float64
        assert torch.from_numpy(np.ones(1)).dtype == torch.float64
        assert torch.Tensor(np.ones(1)).dtype == default
        assert torch.FloatTensor(np.ones(1)).dtype == torch.float32
        for other in (torch.int32, torch.float16):
            of_other = torch.ones(1, dtype=other)
            assert of_other.new_tensor(np.ones(1)).dtype == other
        line, array = torch.nn.Linear(1, 1).float(), torch.tensor(np.ones(1))
        with pytest.raises(RuntimeError, match="dtype"):
            line(array)
    finally:
        torch.set_default_dtype(before)


def test_devices_are_compared_by_their_type():
    """`.dtype` and `.device.type` compare better: the *device* `cuda` is not equal to `cuda:0`."""
    assert torch.zeros(2).dtype == torch.float32
    assert torch.zeros(2).device.type == "cpu"
    assert torch.zeros(2).device != "cpu"
    assert torch.device("cuda") != torch.device("cuda:0")
    assert torch.device("cuda").type == torch.device("cuda:0").type


def test_who_shares_with_numpy():
    """`torch.tensor` and `np.array` copy; `from_numpy` and `numpy()` share, and so does `as_tensor` where dtype and device stay."""
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
        a[0] = 0
        wide = torch.complex128 if a.dtype.kind == "c" else torch.float32
        for apart in (
            torch.as_tensor(a, dtype=wide),
            torch.as_tensor(torch.from_numpy(a), dtype=wide),
        ):
            a[0] = 5
            assert apart[0] == 0
            a[0] = 0
        assert torch.as_tensor(a, device="meta").is_meta
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
    """What does not convert is what NumPy does not have, such as bfloat16 and float8, sparse, nested and masked tensors; and tensors that say more than numbers: those that require a gradient (outside of `no_grad`) and those with a pending conjugation or negation."""
    turned = torch.tensor([1 + 2j]).conj()
    for tensor in (
        torch.ones(1, dtype=torch.bfloat16),
        torch.ones(1).to(torch.float8_e4m3fn),
        torch.eye(2).to_sparse(),
        torch.nested.nested_tensor([torch.ones(2)]),
        torch.masked.masked_tensor(torch.ones(1), torch.tensor([True])),
        torch.ones(1, requires_grad=True),
        turned,
        turned.imag,
    ):
        with pytest.raises((TypeError, RuntimeError)):
            tensor.numpy()
    with torch.no_grad():
        torch.ones(1, requires_grad=True).numpy()
    for dtype in (torch.float16, torch.uint16, torch.bool, torch.int8):
        torch.ones(1).to(dtype).numpy()


@pytest.mark.filterwarnings("ignore:.*not writable")
def test_a_read_only_array():
    """A read-only array `torch.tensor` copies. `from_numpy` takes it with a warning that comes once per process; writing to the tensor then writes where it must not."""
    locked = np.arange(3)
    locked.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            copied = torch.tensor(locked)
        finally:
            torch.set_warn_always(before)
    copied[0] = 9
    assert locked[0] == 0
    torch.from_numpy(locked)[0] = 9
    assert locked[0] == 9
    # the first one has been told above
    for always, number in ((False, 0), (True, 1)):
        before = torch.is_warn_always_enabled()
        torch.set_warn_always(always)
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                torch.from_numpy(locked)
        finally:
            torch.set_warn_always(before)
        assert len(told) == number


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
    """`image[..., ::-1]` reverses the channels and has a negative stride, which PyTorch does not take. `.copy()` afterwards helps.

    (`np.ascontiguousarray` does not where the reversed axis has size 1.)

    But 2147483647 is no float32 and 32767 no float16: clamped there, it is rounded *up* and falls out of the range. float64 holds them all.

    `clamp` on uint8 with a bound of −128 would wrap the bound.

    `np.array(a)` copies always. `np.ascontiguousarray(a)` copies only where it must, and gives an array without dimensions one.

    `x.sum(())` sums over *every* axis.

    `einsum` finds only some: it sums over a letter that `target` lacks, and takes the diagonal of one that is twice in `axes`.
    """
    image = np.zeros((2, 2, 3), np.uint8)
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(image[..., ::-1])
    torch.from_numpy(image[..., ::-1].copy())
    torch.from_numpy(np.ascontiguousarray(image[..., ::-1]))
    row = image[:1]
    torch.from_numpy(row[::-1].copy())
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.ascontiguousarray(row[::-1]))
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
    for found in ("ab->abc", "ab->aab"):
        with pytest.raises(RuntimeError, match="output subscript"):
            torch.einsum(found, square)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_a_block_of_memory_and_five_facts(dtype):
    """A tensor is a block of memory and five facts about it: shape, strides, storage offset, dtype, device."""
    whole = torch.arange(24).to(dtype).reshape(2, 3, 4)
    for x in (whole, whole[1:, :, ::2], whole.permute(2, 0, 1), whole[0, 1, 2]):
        again = torch.empty(0, dtype=x.dtype, device=x.device)
        again.set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride())
        assert torch.equal(again, x)
        assert again.data_ptr() == x.data_ptr()


def test_a_network_takes_all_four():
    """A network takes all four without complaint.

    A convolution wants the channels first.

    Were the image three pixels high, nothing would stop it.
    """
    conv = nn.Conv2d(3, 4, 3)
    image = torch.randint(0, 200, (6, 7, 3), dtype=torch.uint8)
    right = image.permute(2, 0, 1) / 255
    others = (
        image.view(3, 6, 7) / 255,
        image.flip(2).permute(2, 0, 1) / 255,
        (image + 80).permute(2, 0, 1) / 255,
    )
    with torch.no_grad():
        for one in others:
            assert conv(one).shape == conv(right).shape
            assert not torch.allclose(conv(one), conv(right))
        with pytest.raises(RuntimeError):
            conv(image.float())
        assert conv(image[:3].float()).shape == (4, 5, 1)


def test_the_two_last_axes():
    """`squeeze()` drops the two last axes, and we average the features over the data set, batch by batch. Nine samples in batches of four leave one for the last batch."""
    pooled = torch.zeros(9, 3, 1, 1)
    batches = [batch.squeeze() for batch in pooled.split(4)]
    assert [one.shape for one in batches] == [(4, 3), (4, 3), (3,)]
    loader = torch.utils.data.DataLoader(pooled, batch_size=4)
    assert [len(one) for one in loader] == [4, 4, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_running_average(dtype):
    """The same happens to a running average in bfloat16 whose steps are small beside its value. Keep what grows step by step in float32."""
    average = torch.full((), 10.0, dtype=dtype)
    for _ in range(3000):
        average += 0.001 * (20 - average)  # towards 20
    assert (average == 10) == (dtype == torch.bfloat16)
    assert (average > 19) == (dtype == torch.float32)


def test_shared_and_copied():
    """An image as OpenCV's `imread` gives it, (H, W, blue-green-red, bytes), to a batch; axes dropped by number; a cast that rounds and stays in range; the bridge to NumPy, shared and copied."""
    bgr = np.array([[[255, 0, 0], [0, 128, 255]]], dtype=np.uint8)
    batch = torch.from_numpy(bgr).flip(2).permute(2, 0, 1)[None].float() / 255
    assert batch.shape == (1, 3, 1, 2)
    assert batch[0, :, 0, 0].tolist() == [0, 0, 1]  # blue is last
    assert torch.zeros(1, 10, 1, 1).squeeze((2, 3)).shape == (1, 10)
    numbers = torch.tensor([-1.0, 2.5, 2.7, 300.0])
    cast = numbers.round().clamp(0, 255).to(torch.uint8)
    assert cast.tolist() == [0, 2, 3, 255]
    weights = torch.ones(2, requires_grad=True)
    shared = weights.detach().numpy()
    apart = weights.detach().cpu().numpy().copy()
    shared[0] = 7
    assert weights.tolist() == [7, 1]
    assert apart.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "exponent", "mantissa"),
    [
        (torch.float64, 11, 52),
        (torch.float32, 8, 23),
        (torch.bfloat16, 8, 7),
        (torch.float16, 5, 10),
        (torch.float8_e5m2, 5, 2),
        (torch.float8_e4m3fn, 4, 3),
    ],
)
def test_bits_of_a_dtype(dtype, exponent, mantissa):
    """A dtype has a *range*, set by its exponent bits, and a *precision*, set by its mantissa bits.

    Within its range a dtype is a level line: no number's error is larger, and most are smaller. Towards 0 the line rises (subnormal numbers have fewer bits), and at both ends it stops.
    """
    facts = torch.finfo(dtype)
    assert facts.bits == 1 + exponent + mantissa
    assert facts.eps == 2.0**-mantissa
    assert math.log2(facts.tiny) == 2 - 2 ** (exponent - 1)
    assert int(math.log2(facts.max)) in (  # e4m3fn spends no exponent on inf
        2 ** (exponent - 1) - 1,
        2 ** (exponent - 1),
    )
    if dtype == torch.float64:
        return

    def errors(sizes):
        exact = sizes * (1 + torch.rand(2000, dtype=torch.float64))
        kept = exact.to(dtype).double()
        return ((kept - exact) / exact).abs()

    for size in (facts.tiny, 1.0, facts.max / 4):
        assert facts.eps / 8 < errors(size).max() <= facts.eps / 2
        assert (errors(size) < facts.eps / 2).float().mean() > 0.9
    assert errors(facts.tiny / 4).max() > facts.eps / 2
    assert errors(facts.tiny * facts.eps / 16).min() == 1  # 0


@pytest.mark.parametrize(
    ("dtype", "largest", "step"),
    [
        (torch.float16, 65504, 32),
        (torch.float8_e5m2, 57344, 8192),
        (torch.bfloat16, None, None),
        (torch.float32, None, None),
    ],
)
def test_past_the_end(dtype, largest, step):
    """Past the end a number becomes `inf`, but for what still rounds to the largest number: 65519 is 65504 in float16."""
    largest = largest or torch.finfo(dtype).max
    step = step or 2.0**127 * torch.finfo(dtype).eps
    just, past = torch.tensor(
        [largest + 0.49 * step, largest + 0.51 * step], dtype=torch.float64
    )
    assert just > largest
    assert just.to(dtype).double() == largest
    assert past.to(dtype).double() == math.inf
    assert torch.tensor(65519.0).half() == 65504


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int8, torch.bool, torch.float8_e5m2]
)
def test_one_class(dtype):
    """There is one class, `Tensor`, with a dtype and a device. `torch.FloatTensor` and its like are left for old code."""
    x = torch.ones(2).to(dtype)
    assert type(x) is torch.Tensor
    assert type(x.to("meta")) is torch.Tensor
    assert isinstance(x, torch.FloatTensor) == (dtype == torch.float32)
    assert type(torch.FloatTensor([1.0])) is torch.Tensor


def test_what_finfo_prints():
    """`finfo` prints the same as a table."""
    for dtype in FLOATS:
        facts, text = torch.finfo(dtype), str(torch.finfo(dtype))
        for name in ("eps", "max", "tiny"):
            said = float(text.split(f"{name}=")[1].split(",")[0])
            assert said == pytest.approx(getattr(facts, name), rel=1e-4)


def test_a_block_in_a_context_manager():
    """In a function under `@contextlib.contextmanager` the block runs where the `yield` stands, and what it raises comes out there."""
    seen = []

    @contextlib.contextmanager
    def around():
        seen.append("before")
        try:
            yield
        except KeyError:
            seen.append("raised")
            raise
        finally:
            seen.append("after")

    @around()
    def fails():
        seen.append("block")
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert seen == ["before", "block", "raised", "after"]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_integers_in_float64(dtype):
    """float64 holds every number of `dtype`. An int64 that it rounds lies far beyond them, and is clamped anyway. (For integers int64 does as well.)"""
    ends = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.tensor([*ends, 2**53 + 1, -(2**53) - 1, 2**63 - 1])
    assert x.double().long()[2] != x[2]
    for wide in (x.double(), x):
        cast = wide.clamp(*ends).to(dtype).tolist()
        assert cast == [*ends, ends[1], ends[0], ends[1]]


def test_adding_and_dropping_axes():
    """Turn negative entries into places: `dim % ndim`, after the range has been checked. For `add_axes`, ndim is that of the result. Duplicates show in a set.

    Sorted upwards: each place is then right at the moment its turn comes.

    `x.squeeze(tuple)` drops several at once.
    """
    x = torch.zeros(5, 7)
    for dims in ((0, 2), (2, 0), (-1, 1), (0, 1, -1)):
        ndim = 2 + len(dims)
        found = {}
        for name, order in (("up", sorted), ("as given", list)):
            y = x
            for place in order({dim % ndim: 0 for dim in dims}):
                with contextlib.suppress(IndexError):
                    y = y.unsqueeze(place)
            found[name] = y.shape
        assert found["up"] == np.expand_dims(x.numpy(), dims).shape
        if dims == (2, 0):
            assert found["as given"] != found["up"]
        places = tuple(dim % ndim for dim in dims)
        assert x.reshape(found["up"]).squeeze(places).shape == x.shape


@pytest.mark.parametrize("axes", ["NHWC", "NCHW", "NCWH"])
def test_the_permutation_and_its_inverse(axes):
    """`permute` wants, for each axis of the result, its place in x: `axes.index(letter)`, letter by letter of the target. Swapping only two axes does not tell that from its inverse; NHWC to NCHW does.

    Named tensors are gone. A letter per axis and `permute` do it.
    """
    sizes = dict(zip("NCHW", (2, 3, 4, 5), strict=True))
    x = torch.zeros([sizes[letter] for letter in axes])
    right = x.permute([axes.index(letter) for letter in "NCHW"])
    assert list(right.shape) == [2, 3, 4, 5]
    inverse = x.permute(["NCHW".index(letter) for letter in axes])
    assert (inverse.shape == right.shape) == (axes != "NHWC")


@pytest.mark.parametrize(
    ("axes", "target"),
    [
        ("CHW", "HW"),
        ("CHW", "HWN"),
        ("CHW", "HWX"),
        ("CHW", "HHW"),
        ("CHH", "CHW"),
        ("CHH", "CHH"),
        ("CHH", "HCH"),
        ("CHW", "WHC"),
    ],
)
def test_letters_that_do_not_fit(axes, target):
    """`sorted(target) != sorted(axes)` finds missing, unknown and repeated letters at once, but for one that is twice in both: that `len(set(axes))` tells."""
    found = sorted(target) != sorted(axes)
    twice_in_both = axes == "CHH" and target in ("CHH", "HCH")
    assert found == (target != "WHC" and not twice_in_both)
    assert (len(set(axes)) < len(axes)) == (axes == "CHH")


def test_whose_memory():
    """`force=True` has copied in some cases and not in others.

    `a.flags.writeable` says whether it is read-only.
    """
    plain, turned = torch.ones(2), torch.tensor([1 + 2j]).conj()
    kept = plain.numpy(force=True)
    kept[0] = 5
    assert plain[0] == 5
    turned.numpy(force=True)[0] = 9
    assert turned[0] == 1 - 2j
    a = np.ones(2)
    assert a.flags.writeable
    assert not np.broadcast_to(a, (3, 2)).flags.writeable


def test_reversing_one_channel():
    """Give it a third axis of size 1. What then follows is the same for both, and reversing one channel changes nothing."""
    gray = torch.rand(3, 4)[..., None]
    assert torch.equal(gray.flip(-1), gray)
    assert gray.flip(-1).movedim(-1, 0)[None].shape == (1, 1, 3, 4)
