# %% [markdown] reading_minutes=25 builds_on="chapter 00, *devices*"
r"""
# 02 · Tensors

A tensor is a block of memory and five facts about it: shape, strides, storage offset, dtype, device.
Nearly everything that goes silently wrong before the first training step is one of these facts
taken for granted.

**After this chapter you can**

- turn an image file into a batch a model accepts, and see at a glance when axes, channels or
  scale are wrong;
- add and drop axes without losing the batch axis;
- say what a number becomes in float32, float16, bfloat16 and float8, and cast to integers
  without wrapping around;
- carry arrays over to NumPy and back, knowing when memory is shared;
- reorder axes by name, now that named tensors are gone.
"""

# %% setup="imports"
import contextlib
import math
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from course_utils import expect, visible_check

# %% [markdown]
r"""
The cell above is all that the exercises need. The cells that you only read use a few
things more.
"""

# %%
from matplotlib.patches import Rectangle
from sklearn.datasets import load_sample_image
from torch import nn

from course_utils import (
    PALETTE,
    bar_chart,
    beside_reference,
    explore,
    line_chart,
    measure_time,
    new_figure,
    pick_device,
)

device = pick_device()
print("torch", torch.__version__, "on", device)

# %% [markdown]
r"""
## 1 · The problem, seen going wrong

Three mistakes. None of them raises an error.

### A picture in the wrong order

A photograph that ships with scikit-learn, as an array of bytes: height, width, channels,
and the channels are red, green, blue.
"""

# %%
photo = load_sample_image("china.jpg")[20:380:4, 100:580:4]
print(photo.shape, photo.dtype)

# %% [markdown]
r"""
A convolution wants the channels first. Here is that done rightly, and three near misses:
`view` where the axes must be permuted, the channels in OpenCV's order (blue first), and
brightness added while the numbers are still bytes. Each has the right shape and dtype.
"""

# %% cell="four_pictures"
bytes_hwc = torch.tensor(photo)
pictures = {
    "permute: right": bytes_hwc.permute(2, 0, 1) / 255,
    "view: scrambled": bytes_hwc.view(3, *photo.shape[:2]) / 255,
    "blue taken for red": bytes_hwc.flip(2).permute(2, 0, 1) / 255,
    "bytes + 80: wrapped": (bytes_hwc + 80).permute(2, 0, 1) / 255,
}
shapes = {tuple(picture.shape) for picture in pictures.values()}
print(shapes, {picture.dtype for picture in pictures.values()})
assert len(shapes) == 1

# %%
figure, places = new_figure(2, 2, figsize=(7, 5.6))
for axes, (name, picture) in zip(places.flat, pictures.items(), strict=True):
    axes.imshow(picture.permute(1, 2, 0))
    axes.set_title(name)
    axes.set_axis_off()
figure

# %% [markdown]
r"""
A network takes all four without complaint. **Look at the tensor that goes in, not at the
file.**
"""

# %% [markdown]
r"""
### The squeeze that eats the batch axis

A network ends in pooled features of shape (N, C, 1, 1). `squeeze()` drops the two last axes,
and we average the features over the data set, batch by batch. Nine samples in batches of four
leave one for the last batch.
"""


# %% cell="squeeze_eats_the_batch"
def mean_of_features(features, squeezed):
    total = torch.zeros(features.shape[1])
    for batch in features.split(4):
        total += squeezed(batch).mean(0) * len(batch)
    return total / len(features)


torch.manual_seed(0)
pooled = torch.randn(9, 3, 1, 1)
bare = mean_of_features(pooled, lambda batch: batch.squeeze())
named = mean_of_features(pooled, lambda batch: batch.squeeze((2, 3)))
print("squeeze():       ", bare)
print("squeeze((2, 3)): ", named)
print("the last batch becomes", tuple(pooled[8:].squeeze().shape))
assert not torch.allclose(bare, named)

# %% [markdown]
r"""
For a batch of one, the batch axis has size 1 too, and the bare `squeeze` takes it. `mean(0)` then
averages over the channels, and the single number broadcasts into all three sums. With eight
samples the two agree.
"""

# %% [markdown]
r"""
### A count that stops

We add 1, again and again, in four dtypes.
"""

# %% cell="count_stops"
dtypes = (torch.float32, torch.float16, torch.bfloat16, torch.uint8)
counts = [torch.zeros((), dtype=dtype) for dtype in dtypes]
history = {str(dtype).removeprefix("torch."): [] for dtype in dtypes}
for _ in range(3000):
    for count, seen in zip(counts, history.values(), strict=True):
        count += 1
        seen.append(count.item())
assert history["float16"][-1] == 2048
assert history["bfloat16"][-1] == 256

# %%
line_chart(
    history,
    title="float16 stops at 2048, bfloat16 at 256, uint8 starts over",
    xlabel="times 1 was added",
    ylabel="the count",
)

# %% [markdown]
r"""
At 2048 the next float16 number is 2050. 2049 lies in the middle, and ties go to the even
neighbour: back to 2048. The same happens to a running average in bfloat16 whose steps are small
beside its value. Keep what grows step by step in float32. That too has an end: counting by ones stops at
16,777,216.
"""

# %% [markdown]
r"""
## 2 · The trick, in its shortest correct form

An image as OpenCV's `imread` gives it, (H, W, blue-green-red, bytes), to a batch; axes dropped by
number; a cast that rounds and stays in range; the bridge to NumPy, shared and copied.
"""

# %% cell="shortest_form"
bgr = np.array([[[255, 0, 0], [0, 128, 255]]], dtype=np.uint8)  # (1, 2, 3)
rgb = torch.from_numpy(bgr).flip(2)
one_batch = rgb.permute(2, 0, 1)[None].float() / 255
print("batch:", tuple(one_batch.shape), "red:", one_batch[0, 0].tolist())

scores = torch.zeros(1, 10, 1, 1).squeeze((2, 3))
print("dropped by number:", tuple(scores.shape))

# %%
numbers = torch.tensor([-1.0, 2.5, 2.7, 300.0])
print("to uint8:", numbers.round().clamp(0, 255).to(torch.uint8).tolist())

weights = torch.ones(2, requires_grad=True)
shared = weights.detach().numpy()  # the same memory
apart = weights.detach().cpu().numpy().copy()  # memory of its own
shared[0] = 7
print("the tensor:", weights.tolist(), "the copy:", apart.tolist())

# %% [markdown]
r"""
**Which operations look, which copy.** A *view* is a new shape, new strides and a new offset over the same memory. The *offset*
says where in the memory it begins: `x[2:]` and `x[:2]` of four numbers differ in nothing else.

| operation | result |
|---|---|
| `permute`, `transpose`, `movedim`, `unsqueeze`, `squeeze`, `expand`, slicing, `detach` | a view |
| `view` | a view, or an error where strides do not allow one |
| `reshape`, `flatten` | a view (or the tensor itself) if possible, else a copy: do not rely on either |
| `flip`, indexing with a tensor that has an axis, `clone`, `torch.tensor(...)` | a copy |
| `to`, `float`, `cpu`, `long`, `contiguous` | the *same object* if nothing changes, else a copy |
"""

# %% cell="views_and_copies"
x = torch.zeros(2, 3)
assert x.T.data_ptr() == x.unsqueeze(0).data_ptr() == x.data_ptr()
assert x.reshape(3, 2).data_ptr() == x.data_ptr()
assert x.T.reshape(6).data_ptr() != x.data_ptr()
assert x.float() is x
assert x.contiguous() is x
print("strides of x:", x.stride(), "of x.T:", x.T.stride())

four = torch.arange(4)
print("offsets:", four[:2].storage_offset(), four[2:].storage_offset())
assert four[:2].stride() == four[2:].stride()

# %% [markdown]
r"""
**The same shape, another order in memory.** Convolutions are often faster where the channels of a pixel lie side by side. In
PyTorch that is a matter of strides alone: `memory_format=torch.channels_last` keeps the shape (N, C, H, W). Give it to
model and images: convolutions and most layers beside them pass it on. (`nn.GroupNorm` may lose digits with it: chapter 05.) `view` may then refuse what it took before: use `reshape`. A batch of images
that you permute from (N, H, W, C) has these strides already.
"""

# %% cell="channels_last"
plain = torch.zeros(2, 3, 4, 5)
pixelwise = plain.to(memory_format=torch.channels_last)
print("shape", tuple(pixelwise.shape), "both times; strides:")
print(plain.stride(), "and", pixelwise.stride())

permuted = torch.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
assert pixelwise.shape == plain.shape
assert permuted.stride() == pixelwise.stride()
layer = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
assert layer(plain).is_contiguous(memory_format=torch.channels_last)

# %% [markdown]
r"""
## 3 · See it

### Why `view` scrambles

The memory of a 2 × 3 image: red, green, blue of the first pixel, then of the second, and so on.
`permute` picks every third number for a channel. `view` cuts the same line into three pieces.
"""


# %% cell="scramble_figure"
def scramble_figure(how="view(3, H, W)", height=2, width=3):
    pixels = torch.arange(height * width * 3).reshape(height, width, 3)
    planes = pixels.permute(2, 0, 1)
    if how == "view(3, H, W)":
        planes = pixels.view(3, height, width)
    figure, axes = new_figure(figsize=(7, 2.2))
    for row, plane in enumerate(planes):
        for column, place in enumerate(plane.flatten().tolist()):
            color = (PALETTE[1], PALETTE[2], PALETTE[0])[place % 3]
            corner = (column - 0.46, row - 0.42)
            axes.add_patch(Rectangle(corner, 0.92, 0.84, color=color))
            letter = f"{'RGB'[place % 3]}{place // 3}"
            axes.text(column, row, letter, color="w", ha="center", va="center")
    axes.set(xlim=(-0.6, height * width - 0.4), ylim=(2.6, -0.6))
    axes.set_xticks(range(height * width))
    axes.set_yticks(range(3), [f"channel {row}" for row in range(3)])
    axes.set_xlabel("pixel of the result, row by row")
    mixed = len({int(place) % 3 for place in planes[0].flatten()}) > 1
    fate = "mixes the colours" if mixed else "one colour per channel"
    axes.set_title(f"{how}: {fate} (letter: colour, number: pixel)")
    return figure


explore(
    scramble_figure,
    how=["view(3, H, W)", "permute(2, 0, 1)"],
    height=range(1, 4),
    width=range(1, 5),
)

# %% [markdown]
r"""
### The map of the floating-point dtypes

A dtype has a *range*, set by its exponent bits, and a *precision*, set by its mantissa bits. On one
map: how large the number is runs to the right, how large its rounding error *may* be runs upwards.
Within its range a dtype is a level line: no number's error is larger, and most are smaller. Towards 0 the line rises
(subnormal numbers have fewer bits), and at both ends it stops. Dial a number: the dots show the error it really has (at the
bottom: none), the legend what each dtype makes of it.
"""

# %%
FLOATS = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}


def stored(number, dtype):
    """What is left of a Python float after a stay in `dtype`."""
    return torch.tensor(number, dtype=torch.float64).to(dtype).double().item()


for name, dtype in FLOATS.items():
    facts = torch.finfo(dtype)
    print(f"{name:14} {facts.bits:2} bits, largest {facts.max:8.2g}", end="")
    print(f", smallest normal {facts.tiny:.2g}, 1 is followed by", end="")
    print(f" 1 + {facts.eps:.2g}")


# %% [markdown]
r"""
`finfo` prints the same as a table. `eps` is the gap after 1. Between `tiny` and `max` a rounding error is at most half of it, times the number.
"""


# %% cell="dtype_map"
def dtype_map(digits=7.0, power=4):
    number = digits * 10.0**power
    figure, axes = new_figure(figsize=(7.5, 3.8))
    lost, dashes = [], ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)))
    for i, (name, dtype) in enumerate(FLOATS.items()):
        facts, kept = torch.finfo(dtype), stored(number, dtype)
        smallest = facts.tiny * facts.eps
        sizes = [smallest, facts.tiny, facts.max]
        errors = [0.5, facts.eps / 2, facts.eps / 2]
        off = abs(kept - number) / number
        label = f"{name}: {kept:.7g}"
        axes.plot(sizes, errors, ls=dashes[i], color=PALETTE[i], label=label)
        if off <= (facts.eps / 2 if number >= facts.tiny else 0.5):
            axes.plot(number, max(off, 2e-9), "o", color=PALETTE[i])
        else:
            lost.append(name)
    axes.axvline(number, color="0.6", linewidth=1, zorder=0)
    axes.set(xscale="log", yscale="log", xlim=(1e-46, 1e42), ylim=(1e-9, 2))
    axes.set_xlabel("size of the number")
    axes.set_ylabel("largest relative rounding error")
    axes.set_xticks([10.0**power for power in range(-40, 41, 10)])
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    fate = f"out of range in {', '.join(lost)}" if lost else "kept by all"
    axes.set_title(f"{digits:.2f}e{power:+d}: {fate}")
    return figure


explore(dtype_map, digits=(1.0, 9.99, 0.01), power=range(-44, 39))

# %% [markdown]
r"""
- **float16** has finer steps than bfloat16, near 0 coarser ones, and ends at 65504. **bfloat16** reaches as far as float32, with two
  to three digits. Gradients need the range, so bfloat16 needs no loss scaling (chapter 10).
- The two **float8** are for storing, and for matrix products with a scale beside them. On a CPU,
  uncompiled, `x + x` raises. The newest cards take blocks of numbers with a scale each: 32 of 8 or 4 bits (MXFP8, MXFP4), 16 of 4 bits (NVFP4).
  `torch.float8_e8m0fnu` is the scale of the first two, a power of 2; `torch.float4_e2m1fn_x2` is a byte of two numbers.
- Past the end a number becomes `inf`, but for what still rounds to the largest number: 65519 is 65504 in float16. float8_e4m3fn
  has no `inf`; there the result is its largest number or NaN, depending on version and device.

Type any number but 0 here:
"""

# %% cell="what_becomes_of_it"
number = 0.1
for name, dtype in FLOATS.items():
    kept = stored(number, dtype)
    print(f"{name:14} {kept:<22.17g} off by {abs(kept / number - 1):.1e}")

assert stored(70000.0, torch.float16) == math.inf
assert stored(70000.0, torch.bfloat16) == 70144.0
assert stored(1 + 2**-9, torch.bfloat16) == 1.0
assert stored(1 + 2**-9, torch.float16) == 1 + 2**-9

# %% [markdown]
r"""
## 4 · Measure it on this machine

The same matrix product in four dtypes. What it costs depends on what the chip has been built for; on
the CPU the small dtypes may be emulated, and slower than float32.
"""

# %% cell="measure_dtypes"
size = 2048 if device.type == "cuda" else 384
milliseconds = {}
for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
    if device.type == "mps" and dtype == torch.float64:
        continue  # Apple GPUs have none
    torch.manual_seed(0)
    matrix = torch.randn(size, size).to(device, dtype)
    timing = measure_time(lambda m=matrix: m @ m, repeats=7)
    milliseconds[str(dtype).removeprefix("torch.")] = 1e3 * timing.median_s
    print(f"{dtype}: {timing}, {matrix.nbytes / 2**20:.2f} MiB")

# %%
fastest = min(milliseconds, key=milliseconds.get)
bar_chart(
    milliseconds,
    title=f"Here, {fastest} multiplies fastest",
    xlabel=f"a {size} × {size} product on {device.type} (ms)",
)

# %% cell="measure_beside_reference"
for name, mine in milliseconds.items():
    recorded_as = f"02_tensors/matmul_{name}_ms"
    beside_reference(recorded_as, mine, unit="ms")

# %% [markdown]
r"""
The matrices are 2048 × 2048 where there is CUDA and 384 × 384 elsewhere. On a GPU for data centres the same cell gave:
"""

# %% cell="recorded_on_a_gpu"
from course_utils import show_recorded

show_recorded(
    {
        name: f"02_tensors/matmul_{name}_ms"
        for name in ("float64", "float32", "bfloat16", "float16")
    },
    unit="ms",
    device="cuda",
)

# %% [markdown]
r"""
## 5 · Folklore check

Popular claims about tensors, run against the PyTorch that is installed here. Each cell ends in an
assertion. If a later version changes the answer, the cell fails, and you know.

`attempt` calls a function and returns what came of it: a result or an error, and the warnings.
"""


# %%
def attempt(function):
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else some warnings come once per process
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except Exception as error:
            result = error
    torch.set_warn_always(always)
    return result, [str(one.message) for one in caught]


# %% [markdown]
r"""
> **"Training uses batches of four dimensions, so a single test image needs a batch axis."**
> *Half the story.*

Not every layer asks for it: `Conv2d` takes (C, H, W), `BatchNorm2d` does not. Add it always, and mind
what comes first: the *order* of the axes.
"""

# %% cell="claim_000_09"
image = torch.rand(3, 8, 6)
convolved, _ = attempt(lambda: nn.Conv2d(3, 4, 3)(image))
normed, _ = attempt(lambda: nn.BatchNorm2d(3).eval()(image))
print("Conv2d:", tuple(convolved.shape), "BatchNorm2d:", normed)

assert convolved.shape == (4, 6, 4)
assert isinstance(normed, ValueError)

# %% [markdown]
r"""
> **"Read it with OpenCV, `torch.tensor(image)`, then `view(1, *image.shape)`."**
> *Half the story.*

The shape is as claimed, and no network takes it. The bytes stop a convolution; as floats, the height is
taken for the channels. Were the image three pixels high, nothing would stop it. The channels are in the
order blue, green, red; and for a path that it cannot read, `cv2.imread` returns `None`.
"""

# %% cell="claim_000_10"
as_read = np.zeros((6, 7, 3), dtype=np.uint8)  # what cv2.imread gives
posted = torch.tensor(as_read).view(1, *as_read.shape)
conv = nn.Conv2d(3, 4, 3)
as_bytes, _ = attempt(lambda: conv(posted))
as_floats, _ = attempt(lambda: conv(posted.float()))
unread, _ = attempt(lambda: torch.tensor(None))
for refusal in (as_bytes, as_floats, unread):
    print(str(refusal).splitlines()[0][:76])

assert posted.shape == (1, 6, 7, 3)
assert all(
    isinstance(one, RuntimeError) for one in (as_bytes, as_floats, unread)
)

# %% [markdown]
r"""
> **"Or add the axis by indexing with `np.newaxis`."** *Correct*: `np.newaxis` is `None`, and works on tensors
> too.

> **"Or `unsqueeze(dim=0)`, and back with `squeeze(dim=0)`."** *Correct.* The size then prints as
> `torch.Size([6, 7, 3])`.

> **"`unsqueeze(dim)` puts the new axis at `dim`."** *Correct*, for `dim` from −ndim − 1 to ndim.
"""

# %% cell="claim_000_11_12_13"
image = torch.rand(6, 7, 3)
assert image.numpy()[np.newaxis].shape == image[None].shape == (1, 6, 7, 3)

there = image.unsqueeze(dim=0)
assert there.squeeze(dim=0).shape == image.shape
assert str(there.squeeze(dim=0).size()) == "torch.Size([6, 7, 3])"

new_places = [image.unsqueeze(dim).shape.index(1) for dim in range(-4, 4)]
outside, _ = attempt(lambda: image.unsqueeze(4))
print("dims -4 to 3 put it at", new_places, "and 4:", outside)
assert new_places == [0, 1, 2, 3] * 2
assert isinstance(outside, IndexError)

# %% [markdown]
r"""
> **"`squeeze(dim)` drops an axis of size 1 and does nothing to another; without `dim` it drops all."**
> *Correct*, and the second half is the danger of section 1. Several dims go in a tuple.

"Does nothing" is a danger as well: where NumPy raises, PyTorch is silent, and the wrong number of axes
travels on.
"""

# %% cell="claim_000_14"
x = torch.zeros(1, 1, 4, 5)
assert x.squeeze(2).shape == (1, 1, 4, 5)
assert x.squeeze().shape == (4, 5)
assert x.squeeze((1, 2)).shape == (1, 4, 5)
numpys, _ = attempt(lambda: np.squeeze(x.numpy(), 2))
print("NumPy:", numpys)
assert isinstance(numpys, ValueError)

# %% [markdown]
r"""
> **"PyTorch has nine CPU tensor types and nine GPU tensor types."** *Outdated.*

> **"Each dtype has its class: `torch.float32` is `torch.FloatTensor`, ..."** *Half the story*: the rows listed
> are right, the newer dtypes have no class.

There is one class, `Tensor`, with a dtype and a device. `torch.FloatTensor` and its like are left for old
code.
"""

# %% cell="claim_002_28_29"
all_dtypes = {one for one in vars(torch).values() if type(one) is torch.dtype}
print(len(all_dtypes), "dtypes:", end=" ")
print(*sorted(str(one).removeprefix("torch.") for one in all_dtypes)[:8], "…")

assert len(all_dtypes) > 30
assert torch.zeros(1).type() == "torch.FloatTensor"
assert torch.LongTensor([1]).dtype == torch.int64
assert torch.BFloat16Tensor([1]).dtype == torch.bfloat16
assert not hasattr(torch, "Float8_e4m3fnTensor")

# %% [markdown]
r"""
> **"`tensor.type()` shows the type."** *Correct*: as a string with dtype and device in one. `.dtype` and
> `.device.type` compare better: the *device* `cuda` is not equal to `cuda:0`.
"""

# %% cell="claim_002_30"
x = torch.zeros(2)
print(x.type(), x.dtype, x.device)
assert x.type() == "torch.FloatTensor"
assert x.dtype is torch.float32

# %% [markdown]
r"""
> **"Give dimensions names with `names=`, then `sum("C")`, `select("C", 0)`."** *Outdated.*

> **"`align_to("N", "C", "H", "W")` puts them in order."** *Outdated.*

Named tensors never left the prototype stage and are gone since 2.13. Older versions still have them, with a
warning; the cell holds on both. What remains: comments, `einsum`, and thin functions of your own
(exercise 5).
"""

# %% cell="claim_002_31_32"
named, told = attempt(lambda: torch.zeros(2, 3, names=("N", "C")))
if isinstance(named, TypeError):
    gone = [hasattr(torch.Tensor, name) for name in ("align_to", "rename")]
    summed, _ = attempt(lambda: torch.zeros(2, 3).sum("C"))
    print("gone:", named)
    assert not any(gone)
    assert isinstance(summed, TypeError)
else:
    summed, _ = attempt(lambda: named.sum("C").names)
    turned, _ = attempt(lambda: named.align_to("C", "N").shape)
    print("still here:", named.names, told[:1])
    assert summed == ("N",)
    assert turned == (3, 2)

# %% [markdown]
r"""
> **"float32 is far faster than float64."**
> *Half the story.*

The factor is large on those GPUs that have few units for float64, as most have. On those that are built for scientific computing it is about two, and for matrix products
often about one (without TF32). On a CPU about two is usual: twice the
bytes, and half as many numbers in a vector register. The cell prints it for yours; a busy machine may hide it.
"""

# %% cell="claim_002_33"
torch.manual_seed(33)
single = torch.randn(512, 512)
double = single.double()
rounds = {"single": [], "double": []}
for _ in range(5):  # in turn, so that a busy machine hits both
    for name, matrix in (("single", single), ("double", double)):
        timing = measure_time(
            lambda m=matrix: m @ m, warmup=1, repeats=3, device="cpu"
        )
        rounds[name].append(timing.median_s)
ratio = min(rounds["double"]) / min(rounds["single"])
print(f"float64 takes {ratio:.1f} times as long and twice the memory")

assert double.nbytes == 2 * single.nbytes

# %% [markdown]
r"""
> **"`torch.set_default_tensor_type(torch.FloatTensor)` sets the default."**
> *Outdated.*

It warns; use `torch.set_default_dtype` and `torch.set_default_device`. The default is what *Python* floats
become (a `DataLoader` makes them float64). An array from NumPy keeps its float64, whatever the default (but in the old `torch.Tensor(array)` and
`torch.FloatTensor(array)`, and in `x.new_tensor(array)`, which takes the dtype of `x`), and then meets float32 weights.
"""

# %% cell="claim_002_34"
before = torch.get_default_dtype()
_, told = attempt(lambda: torch.set_default_tensor_type(torch.FloatTensor))
print(told[0].split(", ")[0])
from_python = torch.tensor([1.0]).dtype
from_numpy = torch.tensor(np.ones(1)).dtype
met, _ = attempt(lambda: nn.Linear(2, 1)(torch.tensor(np.ones((1, 2)))))
print("Python:", from_python, "NumPy:", from_numpy, "met:", met)

assert "deprecated" in told[0]
assert torch.get_default_dtype() == before == from_python
assert from_numpy == torch.float64
assert isinstance(met, RuntimeError)

# %% [markdown]
r"""
> **"Convert with `.cuda()`, `.cpu()`, `.float()`, `.long()`."**
> *Correct*, with small print.

A cast to an integer dtype truncates towards 0. Integers out of range wrap around. For a *float* out of
range, and for NaN, the result is undefined: it depends on the processor, and on whether the loop was
vectorised. And where nothing is to be done, you get the same object back.
"""

# %% cell="claim_002_35"
halves = torch.tensor([2.5, -1.9, 2.7])
wrapped = torch.tensor([-1, 300]).to(torch.uint8)
print("long():", halves.long().tolist(), "wrapped:", wrapped.tolist())

assert halves.long().tolist() == [2, -1, 2]
assert wrapped.tolist() == [255, 44]
assert halves.float() is halves

# %% [markdown]
r"""
> **"Every CPU tensor but the CharTensor converts to NumPy and back."**
> *Wrong.*

int8, the CharTensor, converts and shares its memory. What does not convert is what NumPy does not have, such as
bfloat16 and float8, sparse, nested and masked tensors; and tensors that say more than numbers: those that require a gradient
(outside of `no_grad`) and those with a pending conjugation or negation. `numpy(force=True)` resolves the latter three, and moves to the
CPU (not from *meta*, which has no numbers). It refuses bfloat16 (call `.float()` first) and sparse tensors (`.to_dense()`).
"""

# %% cell="claim_002_36"
signed = torch.tensor([1, -2], dtype=torch.int8)
signed.numpy()[0] = 9
assert signed.tolist() == [9, -2]

turned = torch.tensor([1 + 2j]).conj()
awkward = {
    "bfloat16": torch.ones(1, dtype=torch.bfloat16),
    "float8": torch.ones(1).to(torch.float8_e5m2),
    "a sparse one": torch.eye(2).to_sparse(),
    "requires grad": torch.ones(1, requires_grad=True),
    "conjugate view": turned,
    "negative view": turned.imag,
}
for name, tensor in awkward.items():
    plain, _ = attempt(tensor.numpy)
    forced, _ = attempt(lambda t=tensor: t.numpy(force=True))
    print(f"{name:15} {type(plain).__name__:13} forced: {forced}")
    assert isinstance(plain, Exception)
    refused = name in ("bfloat16", "float8", "a sparse one")
    assert isinstance(forced, Exception) == refused

# %% [markdown]
r"""
And from NumPy back: an array with a negative stride (as after a flip) is refused by `from_numpy` *and* by
`torch.tensor`. A read-only array `torch.tensor` copies. `from_numpy` takes it with a warning that comes once per process;
writing to the tensor then writes where it must not.
"""

# %% cell="from_numpy_refuses"
flipped, _ = attempt(lambda: torch.tensor(np.arange(3)[::-1]))
locked = np.arange(3)
locked.flags.writeable = False
_, told = attempt(lambda: torch.from_numpy(locked))
print("flipped:", str(flipped)[:58], "…")
print("read-only:", told[0][:38], "…")

assert isinstance(flipped, ValueError)
assert "not writable" in told[0]

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or how many pass. These visible checks are few. When your notebook is
graded, hidden ones look at everything that folds open under *All that is checked*.

Each exercise is judged separately. Keep the names and the order of the arguments. Where you
know a library function that does it all, you may call it for full marks. None of the functions
changes its arguments.
"""

# %% [markdown] task="image_to_batch" title="One image to a batch" level="core" minutes=16 builds_on="sections 1 and 2"
r"""
Write `image_to_batch(image)`, which turns what `cv2.imread` returns into a batch of one that a network can take.

```python
>>> blue_then_red = np.array([[[255, 0, 0], [0, 0, 255]]], dtype=np.uint8)
>>> batch = image_to_batch(blue_then_red)
>>> batch.shape, batch[0, 0]
(torch.Size([1, 3, 1, 2]), tensor([[0., 1.]]))
```

- `image` is a NumPy array of uint8 and shape (H, W, 3), channels in the order **blue, green, red**; or of
  shape (H, W), gray.
- The result is float32 of shape (1, 3, H, W), channels in the order **red, green, blue**; or of shape
  (1, 1, H, W). Byte 0 is 0.0, byte 255 is 1.0.
- The array may be a crop, flipped (negative strides), in Fortran order or read-only.
- The result has memory of its own, and `image` stays as it was.
- `None` (a path that could not be read), another dtype and another shape raise a `ValueError`.

<details><summary>Hint 1: which step where</summary>

Check, make the strides positive, reorder the channels, move the channel axis, add the batch axis, float,
divide. In bytes nothing may be computed.
</details>
<details><summary>Hint 2: negative strides</summary>

`image[..., ::-1]` reverses the channels and has a negative stride, which PyTorch does not take.
`.copy()` afterwards helps. (`np.ascontiguousarray` does not where the reversed axis has size 1.)
</details>
<details><summary>Hint 3: gray</summary>

Give it a third axis of size 1. What then follows is the same for both, and reversing one channel
changes nothing.
</details>
"""


# %% exercise="image_to_batch"
def image_to_batch(
    image: np.ndarray | None,  # (H, W, 3) blue, green, red; or (H, W)
) -> Tensor:  # (1, 3, H, W) red, green, blue; or (1, 1, H, W)
    """A batch of one image, float32 from 0 to 1.

    Raises:
        ValueError: `image` is no uint8 array of shape (H, W, 3) or (H, W).
    """
    ### BEGIN SOLUTION
    if image is None:
        raise ValueError("there is no image: could the file be read?")
    if image.dtype != np.uint8:
        raise ValueError(f"bytes are wanted, not {image.dtype}")
    colour = image.ndim == 3 and image.shape[2] == 3
    if not colour and image.ndim != 2:
        raise ValueError(f"no image has shape {image.shape}")
    height, width = image.shape[:2]
    channels_last = np.array(image).reshape(height, width, -1)
    planes = torch.from_numpy(channels_last).flip(-1).movedim(-1, 0)
    return planes.unsqueeze(0).to(torch.float32) / 255
    ### END SOLUTION


# %% check="image_to_batch"
with visible_check("image_to_batch"):
    blue_then_red = np.array([[[255, 0, 0], [0, 0, 255]]], dtype=np.uint8)
    got = image_to_batch(blue_then_red)
    expect("the shape", tuple(got.shape), (1, 3, 1, 2))
    expect("the dtype", got.dtype, torch.float32)
    expect("the red channel", got[0, 0], torch.tensor([[0.0, 1.0]]))

# %% grade="image_to_batch" points=8

# %% [markdown] task="axes_of_one" title="Adding and dropping axes" level="more" minutes=16 builds_on="section 1, and section 5 on squeeze"
r"""
Write `add_axes(x, dims)` and `drop_axes(x, dims)`, which take several axes of size 1 at once and refuse what
`squeeze` passes over in silence.

```python
>>> add_axes(torch.zeros(5, 7), (0, 2)).shape
torch.Size([1, 5, 1, 7])
>>> drop_axes(torch.zeros(1, 5, 1, 1), (2, 3)).shape
torch.Size([1, 5])
```

- `add_axes` adds an axis for each entry of the tuple `dims`. The entries say where these axes are **in the result**, as
  in `np.expand_dims`; negative ones count from its end.
- `drop_axes` drops the axes of x that `dims` names, and no other. Negative entries count from the end of x. An
  axis whose size is not 1 raises a `ValueError`.
- The order of the entries does not matter. For `()` nothing is added or dropped.
- An entry out of range raises an `IndexError`; an axis named twice raises a `ValueError` or a `RuntimeError`.
- The result shares its memory with x, and gradients pass. x keeps its own shape.

<details><summary>Hint 1: one kind of number first</summary>

Turn negative entries into places: `dim % ndim`, after the range has been checked. For `add_axes`, ndim is
that of the result. Duplicates show in a set.
</details>
<details><summary>Hint 2: adding in which order</summary>

Sorted upwards: each place is then right at the moment its turn comes.
</details>
<details><summary>Hint 3: dropping</summary>

`x.squeeze(tuple)` drops several at once. Look at the sizes before.
</details>
"""


# %% exercise="axes_of_one"
def add_axes(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """A view of x with axes of size 1 at these places of the result.

    Raises:
        IndexError: a place is out of range.
        ValueError or RuntimeError: a place is named twice.
    """
    ### BEGIN SOLUTION
    ndim = x.dim() + len(dims)
    if any(dim not in range(-ndim, ndim) for dim in dims):
        raise IndexError(f"{dims} leave the range of {ndim} axes")
    places = sorted({dim % ndim for dim in dims})
    if len(places) < len(dims):
        raise ValueError(f"{dims} name a place twice")
    for place in places:
        x = x.unsqueeze(place)
    return x
    ### END SOLUTION


def drop_axes(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """A view of x without these axes.

    Raises:
        IndexError: an axis is out of range.
        ValueError or RuntimeError: an axis is named twice.
        ValueError: an axis is not of size 1.
    """
    ### BEGIN SOLUTION
    if any(dim not in range(-x.dim(), x.dim()) for dim in dims):
        raise IndexError(f"{dims} leave the range of {x.dim()} axes")
    dropped = {dim % x.dim() for dim in dims}
    if len(dropped) < len(dims):
        raise ValueError(f"{dims} name an axis twice")
    if any(x.shape[dim] != 1 for dim in dropped):
        raise ValueError(f"not all of {dims} have size 1 in {x.shape}")
    return x.squeeze(tuple(dropped))
    ### END SOLUTION


# %% check="axes_of_one"
with visible_check("axes_of_one"):
    got = add_axes(torch.zeros(5, 7), (0, 2))
    expect("add_axes(x, (0, 2))", tuple(got.shape), (1, 5, 1, 7))
    got = drop_axes(torch.zeros(1, 5, 1, 1), (2, 3))
    expect("drop_axes(x, (2, 3))", tuple(got.shape), (1, 5))

# %% grade="axes_of_one" points=8

# %% [markdown] task="casts" title="A default that comes back, a cast that is safe" level="more" minutes=20 builds_on="sections 1 to 3, and section 5 on defaults and casts"
r"""
Write `default_dtype(dtype)`, a context manager whose dtype new float tensors have inside, and `to_integers(x, dtype)`, a cast
that does not truncate, wrap or overflow.

```python
>>> with default_dtype(torch.float64):
...     torch.ones(1).dtype
torch.float64
>>> to_integers(torch.tensor([-1.0, 2.5, 2.7, 300.0, math.nan]), torch.uint8)
tensor([  0,   2,   3, 255,   0], dtype=torch.uint8)
```

- After the block the default is what it was at the `with` line, whatever the block has set, and also if it raises; the
  exception then reaches the caller. A dtype that is not floating-point raises a `TypeError`.
- `to_integers` takes an `x` of any floating-point dtype from float16 and bfloat16 to float64, or of uint8, int8, int16,
  int32, int64; it lies on the CPU and needs no gradient. `dtype` is uint8, int8, int16 or int32.
- Each number goes to the nearest integer, and from the middle to the **even** one: 0.5 → 0, 1.5 → 2, 2.5 → 2, −0.5 → 0.
- What lies beyond the range of `dtype` goes to the end of the range, infinities too. NaN becomes 0. This is exact:
  16777217 in int32 stays 16777217; 1e10 in float32 becomes 2147483647 in int32.
- The result is a new tensor, also where nothing is to be cast, and `x` stays as it was.

<details><summary>Hint 1: whatever happens</summary>

In a function under `@contextlib.contextmanager` the block runs where the `yield` stands, and what it raises
comes out there. `try: yield`, then `finally:`.
</details>
<details><summary>Hint 2: the end of the range</summary>

`torch.iinfo(dtype).max`. But 2147483647 is no float32 and 32767 no float16: clamped there, it is rounded *up* and
falls out of the range. float64 holds them all.
</details>
<details><summary>Hint 3: integers</summary>

float64 holds every number of `dtype`. An int64 that it rounds lies far beyond them, and is clamped anyway. (For
integers int64 does as well.) `clamp` on uint8 with a bound of −128 would wrap the bound.
</details>
"""


# %% exercise="casts"
@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Within the block, `dtype` is the default of float tensors.

    Raises:
        TypeError: `dtype` is no floating-point dtype.
    """
    ### BEGIN SOLUTION
    outside = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(outside)
    ### END SOLUTION


def to_integers(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x rounded (half to even), clamped to the range of `dtype`, NaN as 0."""
    ### BEGIN SOLUTION
    bounds = torch.iinfo(dtype)
    if x.is_floating_point():
        exact = x.double().round().nan_to_num(nan=0.0)
    else:
        exact = x.long()
    return exact.clamp(bounds.min, bounds.max).to(dtype)
    ### END SOLUTION


# %% check="casts"
with visible_check("casts"):
    with default_dtype(torch.float64):
        expect("dtype inside", torch.ones(1).dtype, torch.float64)
    expect("dtype afterwards", torch.ones(1).dtype, torch.float32)
    got = to_integers(torch.tensor([-1.0, 2.5, 2.7, 300.0]), torch.uint8)
    expect("to uint8", got, torch.tensor([0, 2, 3, 255], dtype=torch.uint8))

# %% grade="casts" points=10

# %% [markdown] task="bridge" title="To NumPy and back" level="more" minutes=20 builds_on="section 2, and section 5 on NumPy"
r"""
Write `to_numpy(t, copy)` and `to_tensor(a, copy)`, which take any tensor to NumPy and any array back, and share memory or not
as they are told.

```python
>>> t = torch.ones(2, requires_grad=True)
>>> shared = to_numpy(t)
>>> shared[0] = 5
>>> t.detach(), to_tensor(shared)
(tensor([5., 1.]), tensor([5., 1.]))
```

- `to_numpy` keeps every dtype that NumPy has too; bfloat16, float8_e4m3fn and float8_e5m2 become float32. The tensor may need
  a gradient, have a pending conjugation or negation and be on any device but *meta*. It is not sparse.
- `copy=False` (the default): the array shares its memory with `t` wherever NumPy can read that memory as it is. `copy=True`: it
  has memory of its own, always.
- `to_tensor` returns a CPU tensor with the shape, the numbers and the dtype of the array: float64 stays float64.
- `copy=True` (the default): the tensor has memory of its own, whatever the array is like. `copy=False`: it shares the array's
  memory, or raises a `ValueError` where it cannot (a negative stride) or must not (a read-only array).
- `t` and `a` stay as they were.

<details><summary>Hint 1: what detach, cpu and resolve do</summary>

`t.numpy(force=True)` stands for `t.detach().cpu().resolve_conj().resolve_neg().numpy()`. Each of these steps returns
a view or the tensor itself where there is nothing to do. The dtypes that NumPy does not have are left to you.
</details>
<details><summary>Hint 2: whose memory?</summary>

`force=True` has copied in some cases and not in others. Where a copy is asked for, make one at the end,
whatever came before.
</details>
<details><summary>Hint 3: copying an array</summary>

`np.array(a)` copies always. `np.ascontiguousarray(a)` copies only where it must, and gives an array
without dimensions one. `a.flags.writeable` says whether it is read-only.
</details>
"""


# %% exercise="bridge"
def to_numpy(t: Tensor, copy: bool = False) -> np.ndarray:
    """The numbers of a tensor as an array; low precision as float32."""
    ### BEGIN SOLUTION
    low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
    array = (t.float() if t.dtype in low else t).numpy(force=True)
    return np.array(array) if copy else array
    ### END SOLUTION


def to_tensor(a: np.ndarray, copy: bool = True) -> Tensor:
    """The numbers of an array as a CPU tensor of the same dtype.

    Raises:
        ValueError: without a copy, for a negative stride or a read-only array.
    """
    ### BEGIN SOLUTION
    if copy:
        return torch.from_numpy(np.array(a))
    if not a.flags.writeable:
        raise ValueError("a read-only array cannot be shared")
    return torch.from_numpy(a)
    ### END SOLUTION


# %% check="bridge"
with visible_check("bridge"):
    tensor = torch.ones(2, requires_grad=True)
    array = to_numpy(tensor)
    expect("the array", array, np.ones(2, dtype=np.float32))
    array[0] = 5
    expect("the tensor, sharing", tensor.detach(), torch.tensor([5.0, 1.0]))
    back = to_tensor(array)
    array[0] = 8
    expect("a copy", back, torch.tensor([5.0, 1.0]))

# %% grade="bridge" points=10

# %% [markdown] task="named_axes" title="Axes by name" level="more" minutes=16 builds_on="section 5 on named tensors"
r"""
Write `reorder(x, axes, target)` and `sum_over(x, axes, over)`, which take one letter per axis, as in `"NCHW"`: all that remains of
named tensors.

```python
>>> x = torch.ones(1, 2, 3, 4)
>>> reorder(x, "NHWC", "NCHW").shape
torch.Size([1, 4, 2, 3])
>>> sum_over(x, "NHWC", "HW")
tensor([[6., 6., 6., 6.]])
```

- `axes` names the axes of x in their order. `reorder` gives a view of x with the axes in the order of `target`.
- `sum_over` sums over the axes whose letters are in `over`, in any order; the others stay in their order. For `over=""` nothing is
  summed.
- x has a floating-point dtype in `sum_over`, and the result keeps it. It is the sum that `x.sum` gives, but
  for rounding; in no case is a sum on the way beyond the dtype's range.
- Any letters, Greek ones too, for up to 50 axes; "c" and "C" are two.
- Letters that do not fit x or each other raise a `ValueError`. Gradients pass through both.

<details><summary>Hint 1: the permutation and its inverse</summary>

`permute` wants, for each axis of the result, its place in x: `axes.index(letter)`, letter by letter of the target.
Swapping only two axes does not tell that from its inverse; NHWC to NCHW does.
</details>
<details><summary>Hint 2: no axis at all</summary>

`x.sum(())` sums over *every* axis. That case is yours.
</details>
<details><summary>Hint 3: letters</summary>

`sorted(target) != sorted(axes)` finds missing, unknown and repeated letters at once, but for one that is twice in both:
that `len(set(axes))` tells. `einsum` finds only some: it sums over a letter that `target` lacks, and takes the diagonal of one that is twice in `axes`.
</details>
"""


# %% exercise="named_axes"
def reorder(x: Tensor, axes: str, target: str) -> Tensor:
    """A view of x with its axes in the order `target`.

    Raises:
        ValueError: the letters do not fit x or each other.
    """
    ### BEGIN SOLUTION
    if len(axes) != x.dim() or len(set(axes)) != len(axes):
        raise ValueError(f"{axes!r} does not name {x.dim()} axes")
    if sorted(target) != sorted(axes):
        raise ValueError(f"{target!r} is no order of {axes!r}")
    return x.permute([axes.index(letter) for letter in target])
    ### END SOLUTION


def sum_over(x: Tensor, axes: str, over: str) -> Tensor:
    """The sum of x over the axes named in `over`.

    Raises:
        ValueError: the letters do not fit x or each other.
    """
    ### BEGIN SOLUTION
    if x.dim() != len(axes) or len(axes) != len(set(axes)):
        raise ValueError(f"{x.dim()} axes cannot be called {axes!r}")
    if len(set(over)) < len(over) or not set(over) <= set(axes):
        raise ValueError(f"{over!r} must pick letters of {axes!r}")
    dims = [place for place, name in enumerate(axes) if name in over]
    return x.sum(dims) if dims else x
    ### END SOLUTION


# %% check="named_axes"
with visible_check("named_axes"):
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    got = reorder(x, "NHWC", "NCHW")
    expect("NHWC to NCHW", tuple(got.shape), (1, 4, 2, 3))
    got = sum_over(x, "NHWC", "HW")
    expect("the sum over HW", got, x.sum((1, 2)))

# %% grade="named_axes" points=8

# %% [markdown]
r"""
## 7 · Recap

- An image arrives as (H, W, C) bytes, from OpenCV in the order blue, green, red. `permute` moves axes, `view` only
  cuts memory anew; float before arithmetic; then look at the tensor.
- `squeeze` always with its dims. Bare, it takes the batch axis of a batch of one.
- Range and precision are two things: float16 has precision and ends at 65504, bfloat16 has the range of float32 and
  8 bits. Keep averages and sums that grow step by step in float32 or wider, counts as integers. (`x.sum()` of a bfloat16 tensor adds in float32 by itself,
  and rounds at the end; on a CPU a large sum is rounded once per thread, too.)
- A cast to integers truncates, wraps, and is undefined for NaN and for floats past the range. Replace NaN, round, clamp, then cast, with a
  clamp in a dtype that holds the bounds.
- `torch.tensor` and `np.array` copy; `from_numpy` and `numpy()` share, and so does `as_tensor` where dtype and device stay. An array's float64
  stays whatever the default dtype is, but for `torch.Tensor(array)`, `x.new_tensor(array)` and their like.
- Named tensors are gone. A letter per axis and `permute` do it.

**Primary sources**

- PyTorch:
  [tensor views](https://docs.pytorch.org/docs/stable/tensor_view.html),
  [dtypes and devices](https://docs.pytorch.org/docs/stable/tensor_attributes.html),
  [squeeze](https://docs.pytorch.org/docs/stable/generated/torch.squeeze.html),
  [Tensor.numpy](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html),
  [from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html),
  [set_default_dtype](https://docs.pytorch.org/docs/stable/generated/torch.set_default_dtype.html),
  [Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html).
- Removal of named tensors: [pytorch/pytorch #173895](https://github.com/pytorch/pytorch/pull/173895).
- Undefined casts of floats to uint8: [pytorch/pytorch #169937](https://github.com/pytorch/pytorch/pull/169937).
- float8: P. Micikevicius and others, [FP8 Formats for Deep Learning](https://arxiv.org/abs/2209.05433), 2022. bfloat16: D. Kalamkar
  and others, [A Study of BFLOAT16 for Deep Learning Training](https://arxiv.org/abs/1905.12322), 2019.
"""
