"""Answers to `image_to_batch` of chapter 02."""

import numpy as np
import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_the_idiom(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        image = image[:, :, None]
    elif image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    rgb = image[..., ::-1].copy()
    return torch.from_numpy(rgb).permute(2, 0, 1).unsqueeze(0).float().div(255)


@accepted()
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


@accepted()
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


@accepted()
def by_two_transposes(image):
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        raise ValueError("bytes are wanted")
    if image.ndim not in (2, 3) or (image.ndim == 3 and len(image.T) != 3):
        raise ValueError("the wrong shape")
    x = torch.from_numpy(image.copy()).to(torch.float32).mul(1 / 255)
    if image.ndim == 2:
        return x.expand(1, 1, *x.shape)
    return x[..., [2, 1, 0]].transpose(0, 2).transpose(1, 2)[None]


@accepted()
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


@accepted()
def channels_last_in_memory(image):
    if image is None or image.dtype.name != "uint8":
        raise ValueError("no image of bytes")
    if image.shape[2:] not in ((), (3,)) or len(image.shape) < 2:
        raise ValueError(f"no image has the shape {image.shape}")
    image = np.atleast_3d(image).astype("float32")[None, ..., ::-1] / 255
    batch = torch.from_numpy(image.transpose(0, 3, 1, 2).copy("C"))
    return batch.to(memory_format=torch.channels_last)


@accepted()
def mended_by_one_transpose(image):
    if image is None or image.dtype != np.uint8:
        raise ValueError("no image of bytes")
    if image.ndim == 2:
        return torch.tensor(image.copy())[None, None].float() / 255
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("no image")
    x = torch.tensor(image[..., ::-1].copy()).permute(2, 0, 1)
    return x[None].float() / 255


@wrong(
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


@wrong(
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
