"""The answer bank of chapter 02: tensors."""

import contextlib
import math
import warnings

import numpy as np
import torch

from course_grader.bank import accepted, wrong

from . import hidden_tests

# image_to_batch


@accepted("image_to_batch")
def by_the_idiom(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[:, :, None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    rgb = np.ascontiguousarray(image[..., ::-1])
    return torch.from_numpy(rgb).permute(2, 0, 1).unsqueeze(0).float().div(255)


@accepted("image_to_batch")
def all_in_numpy(image):
    if image is None:
        raise ValueError("None")
    gray, colour = image.ndim == 2, image.ndim == 3 and image.shape[-1] == 3
    if image.dtype != "uint8" or not (gray or colour):
        raise ValueError(f"{image.dtype} {image.shape}")
    scaled = image.astype(np.float32) / np.float32(255)
    if gray:
        return torch.tensor(scaled[np.newaxis, np.newaxis])
    planes = scaled.transpose(2, 0, 1)[[2, 1, 0]]
    return torch.tensor(np.expand_dims(planes, 0))


@accepted("image_to_batch")
def channel_by_channel(image):
    match image:
        case np.ndarray(dtype=np.uint8, ndim=2):
            planes = [image]
        case np.ndarray(dtype=np.uint8, ndim=3, shape=(_, _, 3)):
            planes = [image[:, :, c] for c in (2, 1, 0)]
        case _:
            raise ValueError("neither gray nor blue, green, red")
    floats = [torch.tensor(plane.copy()).double() / 255 for plane in planes]
    return torch.stack(floats)[None].float()


@accepted("image_to_batch")
def by_two_transposes(image):
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        raise ValueError("bytes are wanted")
    if image.ndim not in (2, 3) or (image.ndim == 3 and len(image.T) != 3):
        raise ValueError("the wrong shape")
    x = torch.from_numpy(image.copy()).to(torch.float32).mul(1 / 255)
    if image.ndim == 2:
        return x.expand(1, 1, *x.shape)
    return x[..., [2, 1, 0]].transpose(0, 2).transpose(1, 2)[None]


@accepted("image_to_batch")
def by_index_select(image):
    if image is None:
        raise ValueError("cv2 could not read the file")
    bad_type = image.dtype != np.uint8
    bad_shape = image.ndim != 2 and image.shape[2:] != (3,)
    if bad_type or bad_shape:
        raise ValueError("not what cv2.imread returns")
    x = torch.as_tensor(image.tolist(), dtype=torch.float32)
    if x.dim() == 2:
        return x.reshape(1, 1, *x.shape) / 255
    x = torch.index_select(x, 2, torch.tensor([2, 1, 0]))
    return (
        torch.einsum("hwc->chw", x).contiguous().view(1, 3, *x.shape[:2]) / 255
    )


@wrong(
    "image_to_batch",
    breaks=[
        hidden_tests.pixels_at_their_places,
        hidden_tests.small_and_square_images,
    ],
    tells="You gave the bytes the shape (3, H, W) with `view` or `reshape`. That moves no "
    "axis: it cuts the memory, which goes pixel by pixel, into three pieces. Move the "
    "channel axis with `permute(2, 0, 1)`.",
)
def by_view(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] != 3):
        raise ValueError("no image")
    height, width = image.shape[:2]
    if image.ndim == 3:
        image = image[..., ::-1]
    x = torch.tensor(image.copy()).view(1, -1, height, width)
    return x.float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.pixels_at_their_places,
    tells="You swapped the first axis and the last: the result has the shape "
    "(1, C, W, H), and the image lies on its side. Use `permute(2, 0, 1)` instead of one "
    "`transpose(0, 2)`.",
)
def by_one_transpose(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        return torch.tensor(image.copy())[None, None].float() / 255
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).transpose(0, 2)
    return x[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.red_first,
    tells="Your channels are still blue, green, red. OpenCV delivers them in that order. "
    "Reverse the channel axis.",
)
def blue_first(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    return torch.tensor(image.copy()).permute(2, 0, 1)[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.pixels_at_their_places,
    tells="`image[::-1]` reverses the first axis: your image stands on its head, and the "
    "channels are as they were. The channels are the last axis: `image[..., ::-1]`.",
)
def upside_down(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        return torch.tensor(image.copy())[None, None].float() / 255
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[::-1].copy()).permute(2, 0, 1)
    return x[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.gray_images,
    tells="You reverse the last axis of gray images too. Theirs is the width: they come "
    "out mirrored. Reverse channels only where there are channels.",
)
def gray_mirrored(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] != 3):
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).float() / 255
    return x[None, None] if x.dim() == 2 else x.permute(2, 0, 1)[None]


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="Your numbers run from 0 to 255. Networks are trained on 0 to 1: divide by 255, "
    "after the cast to float.",
)
def not_divided(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    return torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="You divided the bytes as integers: everything below 255 is 0. Cast to float32 "
    "first, then divide.",
)
def divided_as_bytes(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor((image // 255)[..., ::-1].copy())
    return x.permute(2, 0, 1)[None].float()


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="Your result is float64: NumPy divided bytes by a Python number. Models are "
    "float32. Cast with `.astype(np.float32)` or `.float()`.",
)
def in_float64(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    return torch.tensor((image / 255)[..., ::-1].copy()).permute(2, 0, 1)[None]


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="You divided by the largest byte of this image. Then a dark image becomes as "
    "bright as any other. Byte 255 is 1.0, whatever is in the image.",
)
def divided_by_the_maximum(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
    return x / x.max().clamp(min=1)


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="You divided by 256. Byte 255 is to be 1.0: divide by 255.",
)
def divided_by_256(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
    return x / 256


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="You divide colour images by 255 and gray ones not. Both are bytes: treat both alike.",
)
def gray_not_divided(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        return torch.tensor(image.copy())[None, None].float()
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)
    return x[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.pixels_at_their_places,
    tells="The batch axis is the last of your result. It comes first: `unsqueeze(0)`.",
)
def batch_axis_last(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1).float() / 255
    return x.unsqueeze(-1)


@wrong(
    "image_to_batch",
    breaks=[hidden_tests.gray_images, hidden_tests.pixels_at_their_places],
    tells="Your result has no batch axis. Add one in front with `unsqueeze(0)` or `[None]`: the "
    "result is (1, C, H, W).",
)
def without_a_batch_axis(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    return torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1).float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.batch_of_its_own,
    tells="You swapped blue and red inside the caller's array. After your function the "
    "image is another, or, if it is read-only, your function fails. Reverse a copy: "
    "`image[..., ::-1].copy()`.",
)
def swapped_in_the_array(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        return torch.tensor(image.copy())[None, None].float() / 255
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    image[..., [0, 2]] = image[..., [2, 0]]
    return torch.tensor(image.copy()).permute(2, 0, 1)[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.batch_of_its_own,
    tells="You keep a buffer from call to call and return it. The next image overwrites the "
    "batch that the caller still holds. Return a new tensor.",
)
def from_a_buffer(image, _buffers={}):  # noqa: B006
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = (
        torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
        / 255
    )
    return _buffers.setdefault(x.shape, torch.empty_like(x)).copy_(x)


@wrong(
    "image_to_batch",
    breaks=hidden_tests.images_in_any_layout,
    tells="You handed PyTorch an array with a negative stride, which it does not take: a gray "
    "image that is flipped. Make a copy first, for gray images too.",
)
def gray_flipped_refused(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        return torch.from_numpy(image)[None, None].float() / 255
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.from_numpy(image[..., ::-1].copy()).permute(2, 0, 1)
    return x[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.other_images_raise,
    tells="You do not look for `None`, and what then fails is an AttributeError somewhere. "
    "`cv2.imread` returns None for a path that it cannot read: raise a ValueError that "
    "says so.",
)
def none_unhandled(image):
    if image.dtype != np.uint8:
        raise ValueError("no bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    return (
        torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
        / 255
    )


@wrong(
    "image_to_batch",
    breaks=hidden_tests.other_images_raise,
    tells="You take images of any dtype. Floats from 0 to 1 are then divided by 255 once more. Ask "
    "for uint8 and raise a ValueError otherwise.",
)
def any_dtype(image):
    if image is None:
        raise ValueError("None")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    return (
        torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
        / 255
    )


@wrong(
    "image_to_batch",
    breaks=hidden_tests.other_images_raise,
    tells="You take images with any number of channels. Reversed, four channels have the alpha in "
    "front. Ask for (H, W) or (H, W, 3) and raise a ValueError otherwise.",
)
def any_channels(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3:
        raise ValueError("no image")
    return (
        torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
        / 255
    )


@wrong(
    "image_to_batch",
    breaks=hidden_tests.small_and_square_images,
    tells="You take an image for channels-first when its height is 3. It says (H, W, 3), and "
    "H may be 3: do not guess the layout from the sizes.",
)
def guesses_the_layout(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    if image.shape[0] == 3:
        return torch.tensor(image[::-1].copy())[None].float() / 255
    return (
        torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None].float()
        / 255
    )


@wrong(
    "image_to_batch",
    breaks=[hidden_tests.gray_images, hidden_tests.small_and_square_images],
    tells="You dropped axes of size 1 with a bare `squeeze()`: images one pixel high or wide, and "
    "the gray channel, lose an axis. Add and drop axes by number.",
)
def squeezed_first(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)
    return x.squeeze()[None].float() / 255


@accepted("image_to_batch")
def channels_last_in_memory(image):
    if image is None or image.dtype.name != "uint8":
        raise ValueError("no image of bytes")
    if image.shape[2:] not in ((), (3,)) or len(image.shape) < 2:
        raise ValueError(f"no image has the shape {image.shape}")
    image = np.atleast_3d(image).astype("float32")[None, ..., ::-1] / 255
    batch = torch.from_numpy(image.transpose(0, 3, 1, 2).copy("C"))
    return batch.to(memory_format=torch.channels_last)


@wrong(
    "image_to_batch",
    breaks=hidden_tests.red_first,
    tells="You take an array whose last stride is negative for red, green, blue already, and leave "
    "its channels. A stride says how the numbers lie in memory, not what they mean: the first "
    "channel is blue in every array.",
)
def guesses_by_the_stride(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    if image.strides[-1] > 0:
        image = image[..., ::-1]
    return torch.tensor(image.copy()).permute(2, 0, 1)[None].float() / 255


@wrong(
    "image_to_batch",
    breaks=hidden_tests.batch_of_its_own,
    tells="You keep the batches that you have made and hand out the same tensor for the same image. "
    "What one caller writes to it the next one reads. Return a new tensor, or a clone.",
)
def from_a_cache(image, _made={}):  # noqa: B006
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    key = image.shape, image.tobytes()
    if image.ndim == 2:
        image = image[..., None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)[None]
    return _made.setdefault(key, x.float() / 255)


# axes_of_one


@accepted("axes_of_one", body=True)
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


@accepted("axes_of_one", body=True)
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


@accepted("axes_of_one", body=True)
def with_numpys_axes():
    import numpy as np

    def add_axes(x, dims):
        shape = np.expand_dims(np.empty(tuple(x.shape)), dims).shape
        return x.view(shape) if x.is_contiguous() else x.reshape(shape)

    def drop_axes(x, dims):
        shape = np.squeeze(np.empty(tuple(x.shape)), dims).shape
        return x.reshape(shape)


@accepted("axes_of_one", body=True)
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


@accepted("axes_of_one", body=True)
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


@wrong(
    "axes_of_one",
    breaks=hidden_tests.only_the_named_axes,
    body=True,
    tells="Your drop_axes uses a bare `squeeze()`. It drops every axis of size 1: the batch "
    "axis of a batch of one too. Give it the dims.",
)
def bare_squeeze():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if x.squeeze(tuple(dims)).dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return x.squeeze() if dims else x


@wrong(
    "axes_of_one",
    breaks=hidden_tests.larger_axes_raise,
    body=True,
    tells="`squeeze(dim)` does nothing to an axis that is not of size 1, and says nothing. "
    "Look at `x.shape[dim]` yourself and raise a ValueError.",
)
def squeeze_says_nothing():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        return x.squeeze(tuple(dims))


@wrong(
    "axes_of_one",
    breaks=hidden_tests.larger_axes_raise,
    body=True,
    tells="You take the first slice of the axes to be dropped without looking at their size. "
    "Of an axis of size 4 three quarters are then lost. Raise a ValueError unless it is 1.",
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
    "axes_of_one",
    breaks=hidden_tests.several_axes_added,
    body=True,
    tells="You call `unsqueeze` in the order in which dims are given. Each call shifts what "
    "comes after it. Turn the entries into places of the result and sort them first.",
)
def unsorted():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for dim in dims:
            place = dim % ndim
            x = x.unsqueeze(min(place, x.dim()))
        return x

    def drop_axes(x, dims):
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@wrong(
    "axes_of_one",
    breaks=[hidden_tests.one_axis_added, hidden_tests.several_axes_added],
    body=True,
    tells="You counted negative entries from the end of x, not of the result: -1 puts the "
    "axis in front of the last one. The result has len(dims) axes more.",
)
def negative_of_x():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        places = [dim if dim >= 0 else max(dim + x.dim(), 0) for dim in dims]
        for place in sorted(places):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@wrong(
    "axes_of_one",
    breaks=hidden_tests.several_axes_added,
    body=True,
    tells="Your add_axes takes the entries as places in x, not in the result: for x of shape "
    "(5, 7) the entry 2 goes behind the 7. Count in the result.",
)
def places_in_x():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        if len(dims) == 1:
            return x.unsqueeze(dims[0])
        for place in sorted((dim % ndim for dim in dims), reverse=True):
            x = x.unsqueeze(min(place, x.dim()))
        return x

    def drop_axes(x, dims):
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@wrong(
    "axes_of_one",
    breaks=hidden_tests.only_the_named_axes,
    body=True,
    tells="Your drop_axes drops the axes one after the other, from the front. After the first "
    "the others have other numbers. Give `squeeze` all of them in one tuple, or begin at the "
    "back.",
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
    "axes_of_one",
    breaks=[
        hidden_tests.added_out_of_range,
        hidden_tests.dropped_out_of_range,
    ],
    body=True,
    tells="You take every entry modulo the number of axes, without looking at the range first. "
    "An entry that is too large then means some other axis. Raise an IndexError.",
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
    "axes_of_one",
    breaks=[hidden_tests.added_twice, hidden_tests.dropped_twice],
    body=True,
    tells="You look for repeated entries among those given. 0 and -4 are two numbers and may be "
    "one axis: turn them into places first, then look for duplicates.",
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
    "axes_of_one",
    breaks=[hidden_tests.added_twice, hidden_tests.dropped_twice],
    body=True,
    tells="You collect the places in a set, and an axis that is named twice goes unnoticed. "
    "Compare the size of the set with the number of entries and raise a ValueError.",
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
    "axes_of_one",
    breaks=hidden_tests.views_of_x,
    body=True,
    tells="You return a copy: `contiguous()` copies what has other strides. No copy is needed: "
    "`unsqueeze`, `squeeze` and indexing give views of any x.",
)
def contiguous_first():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        x = x.contiguous()
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        out = x.contiguous().squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@wrong(
    "axes_of_one",
    breaks=hidden_tests.views_of_x,
    body=True,
    tells="You return a copy. Axes of size 1 cost no memory: return a view of x.",
)
def copies():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x.clone()

    def drop_axes(x, dims):
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out.clone()


@wrong(
    "axes_of_one",
    breaks=hidden_tests.views_of_x,
    body=True,
    tells="You change the shape of x itself, with `unsqueeze_` or `squeeze_`. After your "
    "function the caller's tensor has other axes. Use the ones without the underscore.",
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


@wrong(
    "axes_of_one",
    breaks=[
        hidden_tests.added_out_of_range,
        hidden_tests.dropped_out_of_range,
    ],
    body=True,
    tells="An entry out of range raises a ValueError in your code. Python and PyTorch say "
    "IndexError when a place does not exist; so does the text.",
)
def value_error_for_the_range():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise ValueError("out of range")
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if any(not -x.dim() <= dim < x.dim() for dim in dims):
            raise ValueError("out of range")
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@accepted("axes_of_one", body=True)
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


@wrong(
    "axes_of_one",
    breaks=hidden_tests.gradients_through_axes,
    body=True,
    tells="You return a view of `x.detach()` or `x.data`: it shares the numbers, and no gradient "
    "passes. Take the view of x itself.",
)
def views_of_the_data():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        x = x.detach()
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        out = x.detach().squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@wrong(
    "axes_of_one",
    breaks=hidden_tests.only_the_named_axes,
    body=True,
    tells="For an empty tuple your drop_axes drops every axis of size 1. `()` names no axis: "
    "nothing is dropped.",
)
def none_means_all():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        if not dims:
            return x.squeeze()
        out = x.squeeze(tuple(dims))
        if out.dim() != x.dim() - len(dims):
            raise ValueError("an axis is not of size 1")
        return out


@wrong(
    "axes_of_one",
    breaks=hidden_tests.larger_axes_raise,
    body=True,
    tells="Your drop_axes raises a ValueError only where it can drop none of the axes. Each axis that "
    "is named must be of size 1: look at all of them.",
)
def any_instead_of_all():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        x.new_empty([1] * ndim).squeeze(dims)
        for place in sorted(dim % ndim for dim in dims):
            x = x.unsqueeze(place)
        return x

    def drop_axes(x, dims):
        out = x.squeeze(tuple(dims))
        if dims and out.dim() == x.dim():
            raise ValueError("no axis is of size 1")
        return out


# casts


@accepted("casts", body=True)
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


@accepted("casts", body=True)
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


@accepted("casts", body=True)
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


@accepted("casts", body=True)
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


@accepted("casts", body=True)
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


@wrong(
    "casts",
    breaks=[
        hidden_tests.default_within_the_block,
        hidden_tests.default_of_before,
    ],
    body=True,
    tells="`torch.set_default_tensor_type` is deprecated since 2.1, and warns. Use "
    "`torch.set_default_dtype`.",
)
def by_the_tensor_type():
    @contextlib.contextmanager
    def default_dtype(dtype):
        if not dtype.is_floating_point:
            raise TypeError("no floating-point dtype")
        before = torch.get_default_dtype()
        torch.set_default_tensor_type(torch.empty(0, dtype=dtype).type())
        try:
            yield
        finally:
            torch.set_default_tensor_type(torch.empty(0, dtype=before).type())

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_within_the_block,
    body=True,
    tells="Your default_dtype never puts the default back. What follows the block is "
    "computed in another dtype. Note `torch.get_default_dtype()` first, and set it again in "
    "a `finally`.",
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
    "casts",
    breaks=hidden_tests.default_after_an_error,
    body=True,
    tells="When the block raises, your default stays changed: what stands after a bare `yield` "
    "is then not run. Put it into a `finally`.",
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


@wrong(
    "casts",
    breaks=hidden_tests.default_after_an_error,
    body=True,
    tells="You put the default back on `except Exception`. Ctrl-C is a KeyboardInterrupt and no "
    "Exception: after it, the default stays changed. `finally` catches every way out.",
)
def not_after_an_interrupt():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        except Exception:
            torch.set_default_dtype(before)
            raise
        torch.set_default_dtype(before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_after_an_error,
    body=True,
    tells="Your default_dtype swallows errors of the block: the caller never hears of them. An "
    "`except` in a context manager raises again, an `__exit__` returns False.",
)
def swallows_errors():
    class default_dtype:
        def __init__(self, dtype):
            self.dtype = dtype

        def __enter__(self):
            self.before = torch.get_default_dtype()
            torch.set_default_dtype(self.dtype)

        def __exit__(self, *error):
            torch.set_default_dtype(self.before)
            return True

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_of_before,
    body=True,
    tells="Afterwards your default is always float32. It is to be what it was before, which "
    "need not be float32: in a nested block, for example.",
)
def back_to_float32():
    @contextlib.contextmanager
    def default_dtype(dtype):
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_from_the_with_line,
    body=True,
    tells="Your default changes when the manager is made, not at the `with` line. Set it in "
    "`__enter__`, not in `__init__`.",
)
def set_when_made():
    class default_dtype:
        def __init__(self, dtype):
            self.before = torch.get_default_dtype()
            torch.set_default_dtype(dtype)

        def __enter__(self):
            pass

        def __exit__(self, *error):
            torch.set_default_dtype(self.before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_from_the_with_line,
    body=True,
    tells="You note the default when the manager is made. What counts is the default at the "
    "`with` line: note it in `__enter__`.",
)
def noted_when_made():
    class default_dtype:
        def __init__(self, dtype):
            self.dtype, self.before = dtype, torch.get_default_dtype()

        def __enter__(self):
            torch.set_default_dtype(self.dtype)

        def __exit__(self, *error):
            torch.set_default_dtype(self.before)

    def to_integers(x, dtype):
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.integer_defaults_raise,
    body=True,
    tells="You pass over integer dtypes: the block runs in the default of before, and nobody "
    "is told. `torch.set_default_dtype` raises the TypeError by itself: let it through.",
)
def integer_default_ignored():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        if dtype.is_floating_point:
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


@wrong(
    "casts",
    breaks=hidden_tests.nearest_integers,
    body=True,
    tells="You cast without rounding. A cast to integers truncates towards 0: 2.7 becomes 2. "
    "Call `round()` first.",
)
def truncates():
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
        wide = wide.nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.nearest_integers,
    body=True,
    tells="You add one half and take the floor. From the middle that always goes up: 2.5 "
    "becomes 3. `torch.round` goes to the even neighbour.",
)
def half_up():
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
        if not x.is_floating_point():
            return x.long().clamp(info.min, info.max).to(dtype)
        wide = (x.double() + 0.5).floor().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.ends_of_the_range,
    body=True,
    tells="You do not clamp. Past the range, integers wrap around (−1 becomes 255 in uint8), and "
    "for floats the result is undefined. Clamp before the cast.",
)
def wraps():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        # By way of int64, so that it wraps in the same way everywhere.
        return wide.clamp(-(2**52), 2**52).long().clone().to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.ends_of_the_range,
    body=True,
    tells="You clamp to 0 and 255 whatever the dtype. Ask `torch.iinfo(dtype)` for the ends of "
    "the range.",
)
def always_to_bytes():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(0, 255).long().to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.ends_of_the_range,
    body=True,
    tells="You replace infinities by 0, as you do NaN. An infinity lies beyond the range: it goes to "
    "the end of it. `nan_to_num(nan=0.0)` leaves them large, and the clamp does the rest.",
)
def infinities_to_zero():
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
        wide = wide.round().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.nan_is_zero,
    body=True,
    tells="You let NaN go to the lower end of the range. For uint8 that is 0 by luck; the text "
    "asks for 0 always. Replace NaN before the clamp.",
)
def nan_to_the_lower_end():
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
        if x.is_floating_point():
            wide = wide.round().nan_to_num(nan=float("-inf"))
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.ends_between_the_floats,
    body=True,
    tells="You clamp in x's own dtype. 2147483647 is no float32 and 32767 no float16: the bound is "
    "rounded up, and what is clamped to it falls out of the range in the cast. Clamp in "
    "float64.",
)
def clamped_in_its_own_dtype():
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
        wide = x if x.is_floating_point() else x.long()
        if x.is_floating_point():
            wide = wide.round().nan_to_num(nan=0.0)
        # By way of int64, so that it falls out in the same way everywhere.
        return wide.clamp(info.min, info.max).long().clone().to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.exact_integers,
    body=True,
    tells="You go by way of float32. It holds integers up to 16777216; above, they change. Take "
    "float64 for floats and int64 for integers.",
)
def by_way_of_float32():
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
        wide = x.float().round().nan_to_num(nan=0.0).double()
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.exact_integers,
    body=True,
    tells="You clamp integers in their own dtype. A bound that this dtype does not hold wraps around "
    "itself: −128 is 128 in uint8. Clamp in int64.",
)
def bounds_wrap():
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
        if x.is_floating_point():
            wide = x.double().round().nan_to_num(nan=0.0)
            return wide.clamp(info.min, info.max).to(dtype)
        own = torch.iinfo(x.dtype)
        low = info.min if own.bits > 32 else torch.tensor(info.min).to(x.dtype)
        high = info.max if own.bits > 32 else torch.tensor(info.max).to(x.dtype)
        return x.clamp(low, high).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.integers_of_their_own,
    body=True,
    tells="Where x has the dtype already, you return x itself. The caller asked for a new tensor: "
    "what is written to the result then changes x. `clone()` it.",
)
def the_same_object():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        if x.dtype == dtype:
            return x
        info = torch.iinfo(dtype)
        wide = x.double() if x.is_floating_point() else x.long()
        wide = wide.round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.integers_of_their_own,
    body=True,
    tells="You change x in place: `x.double()` and `x.long()` return x itself if it has that dtype "
    "already, and then `clamp_` or `x[...] = 0` writes to the caller's tensor. Use the forms "
    "without the underscore.",
)
def in_place_where_wide():
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
        wide[wide.isnan()] = 0
        return wide.round_().clamp_(info.min, info.max).to(dtype)


@accepted("casts", body=True)
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


@wrong(
    "casts",
    breaks=hidden_tests.exact_integers,
    body=True,
    tells="You cast integers without a look at the range: only your floats are clamped. 300 becomes "
    "44 in uint8. Clamp both.",
)
def integers_not_clamped():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        if not x.is_floating_point():
            return x.clone().to(dtype)
        info = torch.iinfo(dtype)
        wide = x.double().round().nan_to_num(nan=0.0)
        return wide.clamp(info.min, info.max).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.exact_integers,
    body=True,
    tells="You send integers through float64 and clamp to one more than the range holds, or you lose "
    "what lies beyond 2**53. Integers go by way of int64, without any float.",
)
def one_too_many():
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
        if x.is_floating_point():
            wide = x.double().round().nan_to_num(nan=0.0)
            return wide.clamp(info.min, info.max).to(dtype)
        return x.double().clamp(info.min, info.max + 1).long().to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_within_the_block,
    body=True,
    tells="Your default_dtype changes nothing within the block: `torch.get_default_dtype` reads the "
    "default, `torch.set_default_dtype` sets it.",
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


# bridge


@accepted("bridge", body=True)
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


@accepted("bridge", body=True)
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


@accepted("bridge", body=True)
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


@accepted("bridge", body=True)
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


@accepted("bridge", body=True)
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


@wrong(
    "bridge",
    breaks=[hidden_tests.arrays_of_every_dtype, hidden_tests.arrays_that_share],
    body=True,
    tells="You refuse int8, or send it through another dtype. The CharTensor converts as all "
    "other integers do; that it does not is a rumour.",
)
def refuses_int8():
    def to_numpy(t, copy=False):
        if t.dtype == torch.int8:
            raise TypeError("a CharTensor does not convert")
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_every_dtype,
    body=True,
    tells="Your to_numpy makes everything float32. int64 and float64 lose digits, bools and "
    "complex numbers what they are. Convert the dtypes that NumPy does not have, and no other.",
)
def everything_float32():
    def to_numpy(t, copy=False):
        array = t.float().numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_awkward_tensors,
    body=True,
    tells="You call `.numpy()` on a tensor that requires a gradient, which raises. `detach()` "
    "gives the same memory without the gradient.",
)
def without_detach():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        t = t.float() if t.dtype in low else t
        array = t.cpu().resolve_conj().resolve_neg().numpy()
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_awkward_tensors,
    body=True,
    tells="Conjugate and negative views raise in your code: the operation is still pending, and "
    "NumPy would read the numbers without it. Call `resolve_conj()` and `resolve_neg()`, or "
    "`numpy(force=True)`.",
)
def pending_operations():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).detach().cpu().numpy()
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_low_precision,
    body=True,
    tells="bfloat16 and float8 raise in your code: NumPy has no such dtypes, and `force=True` "
    "does not help. Send them over as float32, which holds them exactly.",
)
def low_precision_unhandled():
    def to_numpy(t, copy=False):
        array = t.numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_low_precision,
    body=True,
    tells="You send bfloat16 or float8 over as float16. That has fewer exponent bits than bfloat16: "
    "large numbers become infinite, small ones 0. float32 holds them all.",
)
def low_precision_as_float16():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.half() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_low_precision,
    body=True,
    tells="You handle bfloat16 and forget the two float8 dtypes, which NumPy does not have either.",
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


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_from_elsewhere,
    body=True,
    tells="NumPy reads the memory of the CPU only, and you do not move the tensor there, or only one "
    "that `is_cuda`; there are other devices. Call `cpu()` always: it costs nothing where the "
    "tensor is there already.",
)
def without_cpu():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        t = t.float() if t.dtype in low else t
        array = t.detach().resolve_conj().resolve_neg().numpy()
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_that_share,
    body=True,
    tells="Your to_numpy copies always. With copy=False the array is to share the tensor's memory "
    "wherever it can: leave `copy()`, `clone()` and `tolist()` to copy=True.",
)
def arrays_always_copied():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array)

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_that_share,
    body=True,
    tells="`contiguous()` copies a turned or strided tensor, and the array no longer shares its "
    "memory. NumPy knows strides as well: leave it out.",
)
def made_contiguous():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        t = (t.float() if t.dtype in low else t).contiguous()
        array = t.numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_their_own,
    body=True,
    tells="With copy=True your array still shares the tensor's memory: `numpy()`, `detach()`, "
    "`np.asarray` and `force=True` copy nothing where nothing has to be done. End with "
    "`.copy()`.",
)
def arrays_never_copied():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        return (t.float() if t.dtype in low else t).numpy(force=True)

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_their_own,
    body=True,
    tells="`np.ascontiguousarray` copies only what has other strides. An ordinary tensor and its "
    "array then still share memory. `np.array` or `.copy()` copies always.",
)
def copied_if_strided():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        if copy and array.ndim:
            return np.ascontiguousarray(array)
        return array.copy() if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.memory_of_awkward_tensors,
    body=True,
    tells="You switch the gradient off on the caller's own tensor, with `requires_grad_(False)` or "
    "`detach_()`. It is then trained no more. `detach()` gives another tensor on the same "
    "memory.",
)
def gradient_switched_off():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        t = t.detach_() if t.is_leaf else t.detach()
        t = (t.float() if t.dtype in low else t).cpu()
        array = t.resolve_conj().resolve_neg().numpy()
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_every_dtype,
    body=True,
    tells="Your to_tensor makes float32 of everything, with `.float()` or `torch.Tensor(a)`. It is "
    "to keep the array's dtype: float64 stays float64, integers stay integers.",
)
def tensors_of_float32():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a).float()


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_every_dtype,
    body=True,
    tells="Your to_tensor gives floats the default dtype. float64 from NumPy then loses half its "
    "digits. The text asks for the array's own dtype.",
)
def floats_of_the_default():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        made = torch.from_numpy(np.array(a) if copy else a)
        if made.dtype == torch.float64:
            return made.to(torch.get_default_dtype())
        return made


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_every_dtype,
    body=True,
    tells="With copy=True your tensor shares the array's memory: `from_numpy` and `as_tensor` copy "
    "nothing. Use `np.array(a)` first, or `torch.tensor`.",
)
def tensors_always_shared():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        if min(a.strides, default=0) < 0 or not a.flags.writeable:
            return torch.from_numpy(np.array(a))
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_any_array,
    body=True,
    tells="An array with a negative stride raises in your code: `torch.tensor` does not take it any "
    "more than `from_numpy`. Copy in NumPy first.",
)
def flipped_refused():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if copy:
            return torch.tensor(a)
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_any_array,
    body=True,
    tells="`np.ascontiguousarray` gives an array without dimensions one of size 1. Use `np.array` or "
    "`.copy()`, which also copies where the strides are in order.",
)
def one_dimension_too_many():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if copy:
            return torch.tensor(np.ascontiguousarray(a))
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_any_array,
    body=True,
    tells="Copying a read-only array warns in your code: `from_numpy` comes first and the copy after. "
    "Copy in NumPy, then call `from_numpy`.",
)
def copied_too_late():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if min(a.strides, default=0) < 0 and copy:
            return torch.from_numpy(a.copy())
        if copy:
            return torch.from_numpy(a).clone()
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_that_share,
    body=True,
    tells="With copy=False you share a read-only array. What is written to the tensor then changes "
    "numbers that were locked, or ends the process. Look at `a.flags.writeable` and raise a "
    "ValueError.",
)
def shares_the_read_only():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_that_share,
    body=True,
    tells="Where the array cannot be shared, you copy without a word. The caller, who asked for "
    "shared memory, writes to it and nothing happens. Raise a ValueError.",
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


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_that_share,
    body=True,
    tells="Your to_tensor copies always. With copy=False the tensor is to share the array's memory: "
    "`torch.from_numpy`.",
)
def tensors_always_copied():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        if not copy and min(a.strides, default=0) < 0:
            raise ValueError("a negative stride")
        return torch.from_numpy(np.array(a))


@accepted("bridge", body=True)
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


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_that_share,
    body=True,
    tells="You share arrays with dimensions only: `torch.asarray` takes an array without dimensions "
    "for a number, and copies it. `torch.from_numpy` shares it too.",
)
def by_asarray():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.asarray(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_any_array,
    body=True,
    tells="You unlock a read-only array by setting `a.flags.writeable = True` on the caller's own array. "
    "It stays unlocked after your function. A copy is free to be written to: `np.array(a)`.",
)
def unlocks_the_array():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        if copy:
            a.flags.writeable = True
            return torch.from_numpy(np.array(a))
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_from_elsewhere,
    body=True,
    tells="NumPy reads the memory of the CPU only, and you do not move the tensor there, or only one "
    "that `is_cuda`; there are other devices. Call `cpu()` always: it costs nothing where the "
    "tensor is there already.",
)
def cpu_if_cuda():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        t = (t.float() if t.dtype in low else t).detach()
        t = t.cpu() if t.is_cuda else t
        array = t.resolve_conj().resolve_neg().numpy()
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


@wrong(
    "bridge",
    breaks=hidden_tests.memory_of_awkward_tensors,
    body=True,
    tells="You copy tensors that require a gradient, although copy=False. `detach()` copies nothing: "
    "their memory can be shared like any other's.",
)
def gradients_are_copied():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        copy = copy or t.requires_grad
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return np.array(array) if copy else array

    def to_tensor(a, copy=True):
        if not copy and not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(np.array(a) if copy else a)


# named_axes


@accepted("named_axes", body=True)
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


@accepted("named_axes", body=True)
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


@accepted("named_axes", body=True)
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


@accepted("named_axes", body=True)
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


@accepted("named_axes", body=True)
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


@wrong(
    "named_axes",
    breaks=hidden_tests.axes_in_the_order,
    body=True,
    tells="Named tensors are gone since PyTorch 2.13: `align_to`, `rename` and `names=` raise. Find "
    "the places with `axes.index` and use `permute`.",
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


@wrong(
    "named_axes",
    breaks=[hidden_tests.axes_in_the_order, hidden_tests.any_letters],
    body=True,
    tells="You gave x the new shape with `reshape`. That moves no axis, it cuts the same line of "
    "numbers into other pieces. Use `permute`.",
)
def by_reshape():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.reshape([x.shape[axes.index(one)] for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=[hidden_tests.axes_in_the_order, hidden_tests.any_letters],
    body=True,
    tells="You gave `permute` the inverse: where each axis of x goes. It wants, for each axis of the "
    "result, where it comes from: `axes.index(letter)` for each letter of the target.",
)
def inverse_permutation():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.permute([target.index(one) for one in axes])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.any_letters,
    body=True,
    tells="You know NCHW and NHWC and nothing else. The letters are the caller's: find their places "
    "with `axes.index`.",
)
def only_images():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        if set(axes) <= set("NCHW"):
            return x.permute([axes.index(one) for one in target])
        return x.movedim(-1, 1) if x.dim() > 1 else x

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.any_letters,
    body=True,
    tells="You make all letters capitals. c and C are two axes: leave the letters as they are.",
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


@wrong(
    "named_axes",
    breaks=hidden_tests.reorder_gives_a_view,
    body=True,
    tells="You return a copy of x: `contiguous()` or `clone()`. `permute` alone is a view and costs "
    "nothing.",
)
def reordered_copy():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.permute([axes.index(one) for one in target]).clone()

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.nothing_to_sum,
    body=True,
    tells='For over="" you return the sum of everything: `x.sum(())` and `x.sum([])` sum over every '
    "axis. Return x where there is nothing to sum.",
)
def empty_sums_all():
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
        return x.sum([axes.index(one) for one in over])


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="You sum over one axis after the other by their places in x. After the first sum the others "
    "have moved up. Give `sum` all places at once.",
)
def one_after_the_other():
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
        for one in over:
            x = x.sum(min(axes.index(one), x.dim() - 1))
        return x


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="You keep the summed axes, with size 1. They are to be gone: no `keepdim`.",
)
def keeps_the_axes():
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
        return x.sum(dims, keepdim=True) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="You take the mean. The text asks for the sum.",
)
def the_mean():
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
        return x.mean(dims) if dims else x


@wrong(
    "named_axes",
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    body=True,
    tells="`einsum` does not mind letters that are missing or stand twice: it sums over the first "
    "and takes the diagonal of the second. Compare the letters first and raise a ValueError.",
)
def einsum_unchecked():
    def reorder(x, axes, target):
        return torch.einsum(f"{axes}->{target}", x)

    def sum_over(x, axes, over):
        kept = "".join(one for one in axes if one not in over)
        return torch.einsum(f"{axes}->{kept}", x)


@wrong(
    "named_axes",
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    body=True,
    tells="You compare sets of letters. A set does not know that a letter stands twice. Compare "
    "lengths too, or sorted letters.",
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
    "named_axes",
    breaks=hidden_tests.bad_sums_raise,
    body=True,
    tells="You pass over letters that x does not have. A slip of the pen then sums over nothing, and "
    "nobody is told. Raise a ValueError.",
)
def unknown_letters_ignored():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.permute([axes.index(one) for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over):
            raise ValueError("over")
        dims = [i for i, one in enumerate(axes) if one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=[hidden_tests.bad_orders_raise, hidden_tests.bad_sums_raise],
    body=True,
    tells="You never compare `axes` with x. With a letter too few or too many, the names belong to "
    "other axes than the caller thinks. Raise a ValueError unless there is one letter for each.",
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


@wrong(
    "named_axes",
    breaks=hidden_tests.gradients_through_names,
    body=True,
    tells="No gradient passes: you detach x, or compute on its numbers alone (`x.data`, NumPy, "
    "`no_grad`). `permute` and `sum` on x itself carry the gradient.",
)
def detached():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return x.data.permute([axes.index(one) for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.detach().sum(dims) if dims else x.detach()


@accepted("named_axes", body=True)
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


@wrong(
    "named_axes",
    breaks=[hidden_tests.axes_in_the_order, hidden_tests.any_letters],
    body=True,
    tells="You swap two axes with one `transpose`. NHWC to NCHW moves three: swapped, height and "
    "width have changed places. Use `permute`.",
)
def one_swap():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        for place, letter in enumerate(target):
            if axes[place] != letter:
                return x.transpose(place, axes.index(letter))
        return x

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="Your sum_over sums over the letters that are NOT in `over`. It is the named ones that "
    "go.",
)
def sums_over_the_others():
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
        dims = [i for i, one in enumerate(axes) if one not in over]
        return x.sum(dims) if dims and over else x


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="Your sum_over returns float32 whatever x is. A sum in float64 has the digits it has for a "
    "reason: keep the dtype.",
)
def sums_in_float32():
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
        return x.float().sum(dims) if dims else x


# Attacks of a newcomer


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_from_0_to_1,
    tells="You divide by 255 only where you see a byte above 1. An image of 0s and 1s is made "
    "of bytes too: always divide.",
)
def divided_if_above_one(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] != 3):
        raise ValueError("no image")
    x = torch.tensor(np.atleast_3d(image)[..., ::-1].copy()).permute(2, 0, 1)
    x = x[None].float()
    x = x / 255 if x.max() > 1 else x
    return x


@wrong(
    "image_to_batch",
    breaks=hidden_tests.float32_by_any_default,
    tells="A quotient of bytes has the default dtype, which need not be float32. Call `float()`"
    " before you divide.",
)
def divided_as_bytes_by_default(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] != 3):
        raise ValueError("no image")
    x = torch.tensor(np.atleast_3d(image)[..., ::-1].copy()).permute(2, 0, 1)
    x = x[None] / 255
    return x


@wrong(
    "image_to_batch",
    breaks=hidden_tests.batch_of_its_own,
    tells="Where all bytes are the same you return an expanded view of one number. It cannot be"
    " written to: `clone()` it.",
)
def expands_one_byte(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] != 3):
        raise ValueError("no image")
    x = torch.tensor(np.atleast_3d(image)[..., ::-1].copy()).permute(2, 0, 1)
    x = x[None].float() / 255
    if bool((x == x[:, :, :1, :1]).all()):
        x = x[:, :, :1, :1].expand(x.shape)
    return x


@wrong(
    "image_to_batch",
    breaks=hidden_tests.batch_of_its_own,
    tells="You keep the batches that you have made and hand out the same tensor for the same "
    "image. What one caller writes to it the next one reads. Return a new tensor, or a "
    "clone.",
)
def remembers_the_last_array(image, _last={}):  # noqa: B006
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] != 3):
        raise ValueError("no image")
    x = torch.tensor(np.atleast_3d(image)[..., ::-1].copy()).permute(2, 0, 1)
    x = x[None].float() / 255
    last = _last.get("made", (None, None))
    _last["made"] = image, last[1] if last[0] is image else x
    return _last["made"][1]


@wrong(
    "axes_of_one",
    breaks=hidden_tests.dropped_out_of_range,
    body=True,
    tells="A tensor without axes has no axis 0 to drop, and `squeeze` takes 0 and -1 there "
    "without a word. Raise an IndexError.",
)
def squeezes_where_there_is_no_axis():
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
        if x.dim() == 0:
            return x.squeeze(dims)
        if any(not -x.dim() <= dim < x.dim() for dim in dims):
            raise IndexError("out of range")
        places = tuple({dim % x.dim() for dim in dims})
        if len(places) < len(dims):
            raise ValueError("twice")
        if any(x.shape[place] != 1 for place in places):
            raise ValueError("not of size 1")
        return x.squeeze(places)


@wrong(
    "axes_of_one",
    breaks=hidden_tests.views_of_x,
    body=True,
    tells="`as_strided` with an offset of 0 looks at the start of the memory. A slice of a "
    "tensor begins later: leave the offset out.",
)
def forgets_the_offset():
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
        return out.as_strided(out.shape, out.stride(), 0)

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
    "axes_of_one",
    breaks=hidden_tests.only_the_named_axes,
    body=True,
    tells="You drop two axes at most. `dims` may name any number.",
)
def drops_two_at_most():
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
        return x.squeeze(places[:2])


@wrong(
    "axes_of_one",
    breaks=hidden_tests.several_axes_added,
    body=True,
    tells="You add three axes at most. `dims` may name any number.",
)
def adds_three_at_most():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise IndexError("out of range")
        places = sorted(dim % ndim for dim in dims)
        if len(set(places)) < len(dims):
            raise ValueError("twice")
        out = x
        for place in places[:3]:
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
    "axes_of_one",
    breaks=hidden_tests.views_of_x,
    body=True,
    tells="You copy an expanded tensor first. The result must share its memory, whatever "
    "strides x has.",
)
def copies_the_expanded():
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
        x = x.clone() if 0 in x.stride() else x
        if any(not -x.dim() <= dim < x.dim() for dim in dims):
            raise IndexError("out of range")
        places = tuple({dim % x.dim() for dim in dims})
        if len(places) < len(dims):
            raise ValueError("twice")
        if any(x.shape[place] != 1 for place in places):
            raise ValueError("not of size 1")
        return x.squeeze(places)


@wrong(
    "axes_of_one",
    breaks=hidden_tests.views_of_x,
    body=True,
    tells="`resolve_conj` copies where a conjugation is pending. `unsqueeze` needs no such "
    "step: leave it out.",
)
def resolves_the_conjugate():
    def add_axes(x, dims):
        ndim = x.dim() + len(dims)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise IndexError("out of range")
        places = sorted(dim % ndim for dim in dims)
        if len(set(places)) < len(dims):
            raise ValueError("twice")
        out = x.resolve_conj()
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
    "casts",
    breaks=hidden_tests.default_set_within,
    body=True,
    tells="You put the default back only where it still is the one you set. What the block sets"
    " must not outlive it: put it back in any case.",
)
def put_back_if_still_there():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            if torch.get_default_dtype() == dtype:
                torch.set_default_dtype(before)

    def to_integers(x, dtype):
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if not x.is_floating_point():
            return x.long().clamp(low, high).to(dtype)
        y = x.double().nan_to_num(0.0, math.inf, -math.inf)
        return y.round().clamp(low, high).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.default_set_within,
    body=True,
    tells="Where the default is the dtype asked for, you put nothing back. The block may set "
    "another: put it back in any case.",
)
def nothing_to_put_back():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        if before == dtype:
            yield
            return
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


@wrong(
    "casts",
    breaks=hidden_tests.integer_defaults_raise,
    body=True,
    tells="You set the default to float32 before you look at the dtype, and leave it so where you "
    "raise the TypeError. Refuse first, and change the default afterwards.",
)
def another_default_after_a_refusal():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        if not dtype.is_floating_point:
            raise TypeError(dtype)
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


@wrong(
    "casts",
    breaks=hidden_tests.integer_defaults_raise,
    body=True,
    tells="`torch.bool` is no floating-point dtype either: raise a TypeError.",
)
def bool_passes():
    @contextlib.contextmanager
    def default_dtype(dtype):
        if dtype == torch.bool:
            yield
            return
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


@wrong(
    "casts",
    breaks=hidden_tests.nearest_integers,
    body=True,
    tells="You round small integers in float32. A float64 number just above 0.5 is 0.5 there, "
    "and goes to 0. Round in float64.",
)
def float32_for_small_integers():
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
        y = (x.double() if dtype == torch.int32 else x.float()).nan_to_num(
            0.0, math.inf, -math.inf
        )
        return y.round().clamp(low, high).to(dtype)


@wrong(
    "casts",
    breaks=hidden_tests.integers_of_their_own,
    body=True,
    tells="You keep the results and fill them again at the next call with the same shape. "
    "Return a new tensor.",
)
def into_a_kept_result():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        made = to_integers.__dict__.setdefault("made", {})
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if not x.is_floating_point():
            return x.long().clamp(low, high).to(dtype)
        y = x.double().nan_to_num(0.0, math.inf, -math.inf)
        y = y.round().clamp(low, high).to(dtype)
        kept = made.setdefault((dtype, y.shape), torch.empty_like(y))
        return kept.copy_(y)


@wrong(
    "casts",
    breaks=hidden_tests.nearest_integers,
    body=True,
    tells="You round float16 with `floor(x + 0.5)`: from the middle, that goes up and not to "
    "the even integer. `torch.round` takes float16 too.",
)
def half_plus_a_half():
    @contextlib.contextmanager
    def default_dtype(dtype):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    def to_integers(x, dtype):
        if x.dtype == torch.float16:
            x = (x + 0.5).floor()
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if not x.is_floating_point():
            return x.long().clamp(low, high).to(dtype)
        y = x.double().nan_to_num(0.0, math.inf, -math.inf)
        return y.round().clamp(low, high).to(dtype)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_their_own,
    body=True,
    tells="With three axes and more your `copy=True` shares its memory with the tensor. Copy "
    "whatever the shape is.",
)
def copies_two_axes_at_most():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        return array.copy() if copy and array.ndim < 3 else array

    def to_tensor(a, copy=True):
        if copy:
            return torch.from_numpy(np.array(a))
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_that_share,
    body=True,
    tells="You copy an expanded tensor. NumPy can read a stride of 0 as it is: share the "
    "memory.",
)
def copies_the_expanded_tensor():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        copy = copy or 0 in t.stride()
        return array.copy() if copy else array

    def to_tensor(a, copy=True):
        if copy:
            return torch.from_numpy(np.array(a))
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.arrays_of_their_own,
    body=True,
    tells="You keep the arrays and fill them again at the next call with the same shape. The "
    "array of an earlier call then changes: make a new one.",
)
def into_a_kept_array():
    def to_numpy(t, copy=False):
        low = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
        array = (t.float() if t.dtype in low else t).numpy(force=True)
        if not copy:
            return array
        made = to_numpy.__dict__.setdefault("made", {})
        kept = made.setdefault((array.shape, str(array.dtype)), array.copy())
        kept[...] = array
        return kept

    def to_tensor(a, copy=True):
        if copy:
            return torch.from_numpy(np.array(a))
        if not a.flags.writeable:
            raise ValueError("read-only")
        return torch.from_numpy(a)


@wrong(
    "bridge",
    breaks=hidden_tests.tensors_of_any_array,
    body=True,
    tells="You copy negative strides only. The strides of one field of an array of records are "
    "no multiples of its numbers, and `from_numpy` refuses them too. Copy every array "
    "with `np.array`.",
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
    "bridge",
    breaks=hidden_tests.tensors_that_share,
    body=True,
    tells="A read-only array without elements is read-only all the same: raise a ValueError.",
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


@wrong(
    "named_axes",
    breaks=hidden_tests.any_letters,
    body=True,
    tells="`einsum` takes the letters from a to z only, and `axes` may have any. Give it "
    "numbers, or use `permute`.",
)
def einsum_of_letters_a_to_z():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        return torch.einsum(f"{axes}->{target}", x)

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="`einsum` takes the letters from a to z only, and `axes` may have any. Give `sum` the"
    " places of the letters.",
)
def sum_by_einsum_of_letters():
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
        kept = "".join(one for one in axes if one not in over)
        return torch.einsum(f"{axes}->{kept}", x)


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="You add in float32 and cast back. The digits of float64 are lost on the way: let "
    "`sum` keep the dtype.",
)
def float64_added_in_float32():
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
        return x.sum(dims, dtype=torch.float32).to(x.dtype) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="You add slice by slice in the dtype of x. In bfloat16 that stops at 256, in float16 "
    "at 2048, as the count of section 1 did. `x.sum` adds in float32.",
)
def adds_row_by_row():
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


@wrong(
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="`nansum` leaves NaN out. The sum of NaN and a number is NaN: use `sum`.",
)
def leaves_nan_out():
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
        return x.nansum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.nothing_to_sum,
    body=True,
    tells='Zero times infinity is NaN: your result for `over=""` has not the numbers of x. '
    "Return x.",
)
def adds_zero_times_x():
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
        return x.sum(dims) if dims else x + 0 * x


@wrong(
    "named_axes",
    breaks=hidden_tests.gradients_through_names,
    body=True,
    tells="Your reorder detaches what is not float32. Gradients pass in every floating-point "
    "dtype.",
)
def gradient_in_float32_only():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if sorted(axes) != sorted(target):
            raise ValueError("target")
        x = x if x.dtype == torch.float32 else x.detach()
        return x.permute([axes.index(one) for one in target])

    def sum_over(x, axes, over):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        if len(set(over)) < len(over) or not set(over) <= set(axes):
            raise ValueError("over")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@wrong(
    "named_axes",
    breaks=hidden_tests.any_letters,
    body=True,
    tells="You refuse more than eight axes. Any number of letters will do.",
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


@wrong(
    "named_axes",
    breaks=hidden_tests.bad_orders_raise,
    body=True,
    tells="A letter that is missing in the target must raise a ValueError, also where its axis "
    "has size 1.",
)
def drops_ones_not_named():
    def reorder(x, axes, target):
        if len(axes) != x.dim() or len(set(axes)) < len(axes):
            raise ValueError("axes")
        ones = [one for one in axes if x.shape[axes.index(one)] == 1]
        gone = [one for one in ones if one not in target]
        for one in gone:
            x, axes = x.squeeze(axes.index(one)), axes.replace(one, "")
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
    "named_axes",
    breaks=hidden_tests.sums_over_names,
    body=True,
    tells="You refuse a tensor without elements. Its sum is 0.",
)
def refuses_empty_tensors():
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
        if not x.numel():
            raise ValueError("nothing to sum")
        dims = [axes.index(one) for one in over]
        return x.sum(dims) if dims else x


@accepted("axes_of_one", body=True)
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


@accepted("casts", body=True)
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


@accepted("bridge", body=True)
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
