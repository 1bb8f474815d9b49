"""What is checked in chapter 02: tensors, dtypes, axes, the bridge to NumPy."""

import math
import string
from dataclasses import replace

import torch
from torch import Tensor

from course_grader.checks import (
    Case,
    Draw,
    Result,
    check,
    gives_no_warning,
    leaves_inputs_alone,
    leaves_rng_alone,
    leaves_state_alone,
)
from course_grader.judge.compare import Tolerance, difference

from . import probes


def same(case: Case, seen: Result, expected: Result) -> str | None:
    """The default comparison, with the words of the case's `form` behind the
    complaint."""
    form = case["form"]
    if "raised" in seen.data:
        return f"Your code raised {seen.data['raised']}, with {form}."
    found = difference(seen.data, expected.data, Tolerance())
    return f"{found.rstrip('.')}, with {form}." if found else None


def taken_or_refused(case: Case, seen: Result, expected: Result) -> str | None:
    """The same inputs refused and left as they were, and the others taken: their
    results are compared by other checks, and here by their sizes alone."""
    form, errors = case["form"], " or ".join(case["errors"])
    refused = seen.data.get("refused")
    if "refused" in expected.data:
        if refused:
            sides = seen.data.get("given"), expected.data.get("given")
            if difference(*sides, Tolerance()):
                return f"Your code changed what it was given, with {form}."
            return None
        if refused is False:
            return (
                f"Your code refused {form} with an error other than {errors}."
            )
        return f"Your code accepted {form}, which must raise {errors}."
    if refused is not None:
        return f"Your code refused {form}, which it must take."
    for key, wanted in expected.data.items():
        if not isinstance(wanted, Tensor):
            continue
        got = seen.data.get(key)
        if not isinstance(got, Tensor):
            return f"You return no tensor, with {form}."
        if got.numel() != wanted.numel():
            return f"The result has the wrong shape, with {form}."
    return None


# image_to_batch


def pixels_of(draw: Draw, *shape: int) -> Tensor:
    """Bytes, all different where there are no more than 256 of them."""
    count = math.prod(shape)
    if count <= 256:
        return draw.permutation(256)[:count].to(torch.uint8).reshape(shape)
    return draw.integers(0, 256, *shape, dtype=torch.uint8)


def grays(draw: Draw, height: int, width: int) -> Tensor:
    """A gray image in three channels: their order does not show."""
    pixels = pixels_of(draw, height, width, 1)
    return pixels.expand(height, width, 3).contiguous()


def image(pixels: Tensor, layout: str = "plain", form: str = "") -> Case:
    if not form:
        form = "a gray image" if pixels.dim() == 2 else "a colour image"
        height, width = pixels.shape[:2]
        sides = {1: "one pixel", 3: "three pixels"}
        if height in sides or width in sides:
            tall, wide = sides.get(height, "some"), sides.get(width, "some")
            form += f" ({tall} high, {wide} wide)"
        elif height == width:
            form += " (square)"
        form += "" if layout == "plain" else f" that is {layout}"
    return {"pixels": pixels, "layout": layout, "form": form}


def scaled_to_one(value: Tensor) -> Tensor:
    wide = value.double()
    return wide / wide.abs().max().clamp(min=1e-9)


MOVED = "Pixels have changed their places"


def in_place(case: Case, seen: Result, expected: Result) -> str | None:
    """Shape and places of the numbers, whatever their scale and dtype."""
    if "raised" in seen.data:
        return same(case, seen, expected)
    got, wanted = seen.data["batch"], expected.data["batch"]
    if not isinstance(got, Tensor):
        return "What you return is no tensor."
    if got.shape != wanted.shape:
        return f"The batch has the wrong shape, with {case['form']}."
    found = torch.allclose(
        scaled_to_one(got), scaled_to_one(wanted), atol=2e-3, rtol=0
    )
    wrong = case.get("wrong", "The numbers are not where they should be")
    flat = got.flatten(2)
    if case.get("one colour") and not bool((flat == flat[..., :1]).all()):
        wrong = MOVED
    return None if found else f"{wrong}, with {case['form']}."


@check(
    "image_to_batch",
    probe=probes.image,
    weight=2,
    rule=in_place,
    says="each pixel is at its height and width; the shape is (1, 3, H, W)",
)
def pixels_at_their_places(draw: Draw) -> list[Case]:
    sizes = ((5, 7), (2, 9), (6, 4))
    return [{**image(grays(draw, *size)), "wrong": MOVED} for size in sizes]


LAYOUTS = (
    *("flipped", "channels reversed", "cropped", "turned"),
    *("in Fortran order", "read-only"),
)


@check(
    "image_to_batch",
    probe=probes.image,
    weight=2,
    rule=in_place,
    says="the channels are in the order red, green, blue",
)
def red_first(draw: Draw) -> list[Case]:
    cases = []
    sizes = (((1, 1), "plain"), ((3, 2), "plain"), ((4, 4), "plain"))
    for size, layout in (*sizes, *(((4, 5), layout) for layout in LAYOUTS)):
        # One colour everywhere: only the order of the channels shows.
        colour = 20 + 75 * draw.permutation(3) + draw.integers(0, 30, 3)
        pixels = colour.to(torch.uint8).expand(*size, 3).contiguous()
        wrong = "The channels are not in the order red, green, blue"
        case = {**image(pixels, layout), "wrong": wrong}
        cases.append({**case, "one colour": True})
    return cases


def bytes_over_255(case: Case, seen: Result, expected: Result) -> str | None:
    """dtype and numbers, wherever they are."""
    if seen.data.get("default_kept") is False:
        return "Your code left the default dtype changed."
    if "raised" in seen.data:
        return same(case, seen, expected)
    got, wanted = seen.data["batch"], expected.data["batch"]
    if not isinstance(got, Tensor):
        return "What you return is no tensor."
    if got.dtype != wanted.dtype:
        name = str(got.dtype).removeprefix("torch.")
        default = str(case.get("default", "")).removeprefix("torch.")
        where = f" where the default dtype is {default}" if default else ""
        return (
            f"The batch has the dtype {name}{where}, but it should be float32."
        )
    if got.numel() != wanted.numel():
        return f"The batch has the wrong shape, with {case['form']}."
    sorted_got = got.flatten().sort().values
    if torch.allclose(sorted_got, wanted.flatten().sort().values, atol=1e-6):
        return None
    return "The numbers are not the bytes, each divided by 255."


@check(
    "image_to_batch",
    probe=probes.image,
    weight=2,
    rule=bytes_over_255,
    says="float32, from 0.0 for byte 0 to 1.0 for byte 255",
)
def float32_from_0_to_1(draw: Draw) -> list[Case]:
    # Dark and bright images: neither reaches both ends.
    dark = draw.integers(0, 90, 4, 5, 3, dtype=torch.uint8)
    bright = draw.integers(120, 230, 4, 5, 3, dtype=torch.uint8)
    whole = pixels_of(draw, 8, 10, 3)
    whole[0, 0], whole[1, 1] = 0, 255
    colours = [image(one) for one in (dark, bright, whole)]
    grays_too = [image(one[..., 0].clone()) for one in (dark, bright, whole)]
    locked = (
        image(bright, "read-only"),
        image(dark[..., 1].clone(), "read-only"),
    )
    # Masks of 0 and 1 are bytes as well.
    mask = draw.integers(0, 2, 4, 5, 3, dtype=torch.uint8)
    masks = image(mask), image(mask[..., 0].clone()), image(0 * mask)
    return [*colours, *grays_too, image(dark[:1, :1]), *locked, *masks]


@check(
    "image_to_batch",
    probe=probes.image,
    rule=bytes_over_255,
    says="float32 whatever the default dtype is",
    corners=["a quotient of bytes has the default dtype; the default stays"],
)
def float32_by_any_default(draw: Draw) -> list[Case]:
    pixels = pixels_of(draw, 4, 5, 3)
    low = draw.choice([torch.float16, torch.bfloat16])
    return [
        {**image(one), "default": default}
        for one in (pixels, pixels[..., 0].clone())
        for default in (torch.float64, low)
    ]


@check(
    "image_to_batch",
    probe=probes.image,
    rule=in_place,
    says="gray images (H, W) become (1, 1, H, W)",
)
def gray_images(draw: Draw) -> list[Case]:
    shapes = ((5, 7), (6, 3), (3, 6), (4, 4), (1, 1), (3, 3), (2, 1))
    return [image(pixels_of(draw, *shape)) for shape in shapes]


@check(
    "image_to_batch",
    probe=probes.image,
    rule=in_place,
    says="small and square images: nothing depends on H or W",
)
def small_and_square_images(draw: Draw) -> list[Case]:
    sides = ((3, 3), (1, 1), (3, 5), (5, 3), (1, 3), (1, 6), (6, 1), (4, 4))
    return [image(grays(draw, *side)) for side in sides]


@check(
    "image_to_batch",
    probe=probes.image,
    rule=in_place,
    says="images that are flipped (negative strides), cropped, turned, in "
    "Fortran order, read-only",
    corners=["the flipped axis may have size 1"],
)
def images_in_any_layout(draw: Draw) -> list[Case]:
    cases = [image(grays(draw, 5, 6), layout) for layout in LAYOUTS]
    cases += [
        image(pixels_of(draw, 5, 6), layout)
        for layout in LAYOUTS
        if layout != "channels reversed"
    ]
    # NumPy takes them for contiguous, though a stride is negative.
    thin = (((1, 6), "upside down"), ((6, 1), "mirrored"))
    cases += [image(grays(draw, *size), layout) for size, layout in thin]
    return cases + [
        image(pixels_of(draw, *size), layout) for size, layout in thin
    ]


def of_its_own(case: Case, seen: Result, expected: Result) -> str | None:
    facts, form = seen.data, case["form"]
    if not isinstance(facts["batch"], Tensor):
        return "What you return is no tensor."
    if not facts.get("can be written to", True):
        return (
            "The batch cannot be written to in place: it requires a gradient, or "
            f"several of its elements are one place in memory, with {form}."
        )
    if not facts.get("the flag is as it was", True):
        return f"You changed whether the array may be written to, with {form}."
    arrays = facts["array"], expected.data["array"]
    as_it_was = facts["the array is as it was"]
    if not as_it_was or difference(*arrays, Tolerance()):
        return f"The array has changed, with {form}."
    if facts["changed by a later call"]:
        return "A later call changes the batch that an earlier one returned."
    if not facts["the same again"]:
        return "Writing to a batch changes what a later call returns."
    if facts["changed with the array"]:
        return f"Writing to the array changes the batch, with {form}."
    if facts["batch"].numel() != expected.data["batch"].numel():
        return f"The batch has the wrong shape, with {form}."
    return None


@check(
    "image_to_batch",
    probe=probes.image_twice,
    rule=of_its_own,
    also=[leaves_rng_alone, leaves_state_alone],
    says="the array stays as it was, and the batch has memory of its own",
    corners=[
        "it can be written to, which changes neither the array nor what a "
        "later call returns",
        "an array that is read-only stays so",
        "whether it is contiguous does not matter",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def batch_of_its_own(draw: Draw) -> list[Case]:
    def two(*shape: int, layout: str = "plain") -> Case:
        first = pixels_of(draw, *shape)
        return {**image(first, layout), "other": 255 - first}

    def one_colour(*shape: int) -> Case:
        level = draw.integers(1, 255, 1, dtype=torch.uint8)
        level = level.expand(shape).contiguous()
        words = image(level)["form"]
        found = image(level, form=f"{words}, all of one byte")
        return {**found, "other": 255 - level}

    return [
        two(4, 5, 3),
        two(4, 5),
        two(1, 1, 3, layout="read-only"),
        two(5, 6, 3, layout="cropped"),
        two(3, 3, 3, layout="flipped"),
        two(4, 5, layout="flipped"),
        two(4, 3, layout="in Fortran order"),
        one_colour(4, 5, 3),
        one_colour(4, 5),
    ]


@check(
    "image_to_batch",
    probe=probes.image,
    rule=taken_or_refused,
    says="`None`, other dtypes and other shapes raise a `ValueError`",
    corners=[
        "uint16 and bool, too",
        "(H, W, 1), (H, W, 4), (3, H, W) and (1, H, W, 3), too",
    ],
)
def other_images_raise(draw: Draw) -> list[Case]:
    colour = pixels_of(draw, 4, 5, 3)
    forms = [
        (colour, "a colour image of uint8"),
        (colour[..., 0], "a gray image of uint8"),
        (colour / 255, "a float32 array"),
        (colour.double(), "a float64 array"),
        (colour.to(torch.int64), "an int64 array"),
        (colour.to(torch.int8), "an int8 array"),
        ((colour.int() * 257).to(torch.uint16), "a uint16 array"),
        (colour[..., 0].to(torch.uint16), "a gray uint16 array"),
        (colour.to(torch.uint32), "a uint32 array"),
        (colour > 99, "an array of bools"),
        (colour[..., 0].int(), "a gray int32 array"),
        (pixels_of(draw, 4, 5, 4), "shape (H, W, 4)"),
        (pixels_of(draw, 4, 5, 1), "shape (H, W, 1)"),
        (pixels_of(draw, 4, 5, 2), "shape (H, W, 2)"),
        (pixels_of(draw, 3, 4, 5), "shape (3, H, W)"),
        (pixels_of(draw, 1, 4, 5, 3), "shape (1, H, W, 3)"),
        (pixels_of(draw, 4, 5, 3, 1), "shape (H, W, 3, 1)"),
        (pixels_of(draw, 4, 5, 1, 1), "shape (H, W, 1, 1)"),
        (pixels_of(draw, 15), "an array of one axis"),
        (pixels_of(draw, 1)[0], "an array without axes"),
    ]
    cases = [image(pixels, form=form) for pixels, form in forms]
    cases.append({"form": "None"})
    return [{**case, "errors": ["ValueError"]} for case in cases]


# axes_of_one


def kind_of(dims: tuple[int, ...]) -> str:
    if len(dims) < 2:
        form = "one entry" if dims else "no entries"
        return "one negative entry" if min(dims, default=0) < 0 else form
    signs = {dim < 0 for dim in dims}
    form = "negative entries" if signs == {True} else "several entries"
    form = "entries of both signs" if len(signs) == 2 else form
    return form + ("" if list(dims) == sorted(dims) else " out of order")


def axes(
    x: Tensor, *dims: int, errors: tuple[str, ...] = (), form: str = ""
) -> Case:
    """x and dims, and words for what kind of dims these are."""
    form = form or kind_of(dims)
    form += " and an x without axes" if x.dim() == 0 else ""
    case: Case = {"x": x, "dims": tuple(dims), "form": form}
    return {**case, "errors": list(errors)} if errors else case


@check(
    "axes_of_one",
    probe=probes.added,
    rule=same,
    also=[leaves_rng_alone, leaves_state_alone, leaves_inputs_alone],
    says="`add_axes` adds one axis, from the first place to the last",
    corners=["no seed is set, and no setting of PyTorch is changed"],
)
def one_axis_added(draw: Draw) -> list[Case]:
    matrix, number = draw.normal(2, 3), draw.normal(1)[0]
    cases = [axes(matrix, dim) for dim in range(-3, 3)]
    batch = draw.normal(1, 3, 1)
    cases += [axes(batch, dim) for dim in range(-4, 4)]
    return [*cases, axes(number, 0), axes(number, -1)]


@check(
    "axes_of_one",
    probe=probes.added,
    rule=same,
    also=[leaves_inputs_alone],
    says="`add_axes` adds several; the places are those of the result",
    corners=[
        "negative places count from the end of the result, and the order of "
        "the entries does not matter"
    ],
)
def several_axes_added(draw: Draw) -> list[Case]:
    x, line = draw.normal(5, 7), draw.integers(0, 9, 4)
    many = ((0, 2), (2, 0), (0, -2), (-1, 0), (3, 1), (-2, -1), (-4, -1), ())
    return [
        *(axes(x, *dims) for dims in many),
        *(axes(line, *dims) for dims in ((0, 1), (1, 2), (-1, 0), (3, 0, 2))),
        axes(draw.normal(1)[0], 1, 0, 2),
        axes(draw.normal(0, 3), 1, -1),
        axes(draw.normal(2, 3, 2), 6, 0, 2, 4),
        axes(line, -1, 1, -3, 4, 2),
        axes(draw.normal(3, 4)[1:], 0, 2),
        # A set of small numbers comes sorted, one with an 8 does not.
        axes(draw.normal(2, 1, 1, 2, 1, 1, 3), 1, 8),
    ]


@check(
    "axes_of_one",
    probe=probes.dropped,
    rule=same,
    also=[leaves_rng_alone, leaves_state_alone, leaves_inputs_alone],
    weight=2,
    says="`drop_axes` drops what is named and nothing else: a batch of one "
    "stays",
    corners=[
        "the other axes stay, of size 1 or not",
        "negative entries count from the end of x; `()` drops nothing",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def only_the_named_axes(draw: Draw) -> list[Case]:
    cases = []
    for n in (1, 3):
        for channels in (1, 3):
            x = draw.normal(n, channels, 1, 1)
            for dims in ((2, 3), (-1, -2), (3, -2), (3,), (-2,)):
                cases.append(axes(x, *dims))
    return [
        *cases,
        axes(draw.normal(1, 1, 4, 5), 1),
        axes(draw.normal(1, 1, 4, 5), -3),
        axes(draw.normal(1, 1, 4, 5), 0, 1),
        axes(draw.normal(1, 2, 1, 3, 1), 4, 0),
        axes(draw.normal(1, 2, 1, 3, 1), 4, 0, 2),
        axes(draw.normal(1, 1, 2, 1, 1, 3, 1), -1, 0, 3, -6),
        axes(draw.normal(1), 0),
        axes(draw.normal(1, 1), -1, 0),
        axes(draw.normal(1, 1, 1), 2, 1),
        axes(draw.integers(0, 9, 1, 4, 1), 2),
        axes(draw.normal(1, 4, 1)),
        axes(draw.normal(1, 0, 1), 0),
        axes(draw.normal(1)[0]),
    ]


@check(
    "axes_of_one",
    probe=probes.dropped,
    rule=taken_or_refused,
    says="`drop_axes`: an axis whose size is not 1 raises a `ValueError`",
    corners=["one of size 0, too"],
)
def larger_axes_raise(draw: Draw) -> list[Case]:
    x = draw.normal(1, draw.integer(3, 7), 1, draw.integer(2, 5))
    told = {"errors": ("ValueError",)}
    empty = draw.normal(1, 0)
    larger = {"form": "an axis larger than 1", **told}
    return [
        axes(x, 0, **told),
        axes(x, 1, **larger),
        axes(x, -1, **larger),
        axes(x, 0, 3, **larger),
        axes(x, 1, 2, **larger),
        axes(x, 2, -4, **told),
        axes(empty, 1, form="an axis of size 0", **told),
    ]


def beyond(*dims: int) -> str:
    """Words for dims that are out of range; of negative ones, these are it."""
    where = "before the first" if min(dims) < 0 else "behind the last"
    beside = ", beside one in range" if len(dims) > 1 else ""
    return f"an entry for a place {where}{beside}"


@check(
    "axes_of_one",
    probe=probes.added,
    rule=taken_or_refused,
    says="`add_axes`: a place out of range raises an `IndexError`",
)
def added_out_of_range(draw: Draw) -> list[Case]:
    x, number = draw.normal(2, draw.integer(3, 7)), draw.normal(1)[0]
    told = {"errors": ("IndexError",)}
    good = ((2,), (-3,), (0, 3), (-4, 1))
    bad = ((3,), (-4,), (0, 4), (4, 0), (-5, 0), (1, -5), (9,))
    return [
        *(axes(x, *dims, **told) for dims in good),
        *(axes(x, *dims, form=beyond(*dims), **told) for dims in bad),
        *(axes(number, dim, **told) for dim in (0, 1, -1, -2)),
    ]


@check(
    "axes_of_one",
    probe=probes.dropped,
    rule=taken_or_refused,
    says="`drop_axes`: an axis out of range raises an `IndexError`",
    corners=[
        "for an x without axes, 0 and -1 may raise a `ValueError` instead"
    ],
)
def dropped_out_of_range(draw: Draw) -> list[Case]:
    x = draw.normal(1, draw.integer(3, 7), 1)
    good = ((2,), (-3,))
    bad = ((3,), (-4,), (0, 3), (-4, 2), (8,))
    told = {"errors": ("IndexError",)}
    # `squeeze` takes 0 and -1 where there is no axis at all: whoever sees it
    # by the count of axes may call it a wrong size.
    number = draw.normal(1)[0]
    seen_by_count = {"errors": ("IndexError", "ValueError")}
    none = [axes(number, *some, **seen_by_count) for some in ((0,), (-1,))]
    none += [axes(number, *some, **told) for some in ((), (1,))]
    return [
        *(axes(x, *some, **told) for some in good),
        *(axes(x, *some, form=beyond(*some), **told) for some in bad),
        *none,
    ]


TWICE = ("ValueError", "RuntimeError")


@check(
    "axes_of_one",
    probe=probes.added,
    rule=taken_or_refused,
    says="`add_axes`: a place named twice raises a `ValueError` or a "
    "`RuntimeError`",
    corners=["once from the front and once from the end, too"],
)
def added_twice(draw: Draw) -> list[Case]:
    x = draw.normal(draw.integer(3, 7), 7)
    dims = ((0, 2), (0, 0), (1, -3), (-1, 3), (2, 0, 2), (-2, -2))
    return [axes(x, *some, errors=TWICE) for some in dims]


@check(
    "axes_of_one",
    probe=probes.dropped,
    rule=taken_or_refused,
    says="`drop_axes`: an axis named twice raises a `ValueError` or a "
    "`RuntimeError`",
    corners=["once from the front and once from the end, too"],
)
def dropped_twice(draw: Draw) -> list[Case]:
    x = draw.normal(1, draw.integer(3, 7), 1)
    dims = ((0, 2), (0, 0), (0, -3), (-1, 2), (2, 0, 2), (-1, -1))
    return [axes(x, *some, errors=TWICE) for some in dims]


def gradients_pass(case: Case, seen: Result, expected: Result) -> str | None:
    for name, wanted in expected.data.items():
        got = seen.data[name]
        if got is None:
            return f"No gradient reaches x through {name}."
        if name == "sum_over":
            continue
        # Wherever the numbers are: the order has checks of its own.
        sides = got.flatten().sort().values, wanted.flatten().sort().values
        if difference(*sides, Tolerance()):
            return f"The gradient through {name} is wrong."
    return None


def looks_into_x(case: Case, seen: Result, expected: Result) -> str | None:
    form = f"with x {case['layout']}"
    if "x keeps its shape" in seen.data:
        return f"x has another shape afterwards, {form}."
    for name, function in (("added", "add_axes"), ("dropped", "drop_axes")):
        if not isinstance(seen.data[name], Tensor):
            return f"{function} returns no tensor."
        if not seen.data[f"written through ({name})"]:
            return (
                f"What is written into what {function} returns does not arrive in "
                f"x, {form}."
            )
    if not seen.data["x is as it was"]:
        return f"x has changed, {form}."
    for name in ("added", "dropped"):
        if seen.data[name].numel() != expected.data[name].numel():
            return f"What you return has the wrong shape, {form}."
    return difference(seen.data["x"], expected.data["x"], Tolerance())


@check(
    "axes_of_one",
    probe=probes.views_of_axes,
    rule=looks_into_x,
    says="both results share memory with x, whatever its strides, and x keeps "
    "its shape",
)
def views_of_x(draw: Draw) -> list[Case]:
    def viewed(x: Tensor, layout: str, dims: list[int], ones: list[int]):
        return {
            "x": x,
            "layout": layout,
            "dims": tuple(dims),
            "ones": tuple(ones),
            "value": 10.0 + draw.integer(0, 50),
        }

    pairs = torch.complex(draw.normal(1, 3), draw.normal(1, 3))
    return [
        viewed(draw.normal(1, 3, 4), "plain", [0], [0]),
        viewed(draw.normal(1, 3, 4), "turned", [1, -1], [0]),
        viewed(draw.normal(3, 1, 4), "turned", [0, 1], [2]),
        viewed(draw.normal(3, 1, 6), "every second", [3], [1]),
        viewed(draw.normal(3, 4), "turned", [], []),
        viewed(draw.normal(3, 1), "plain", [1], [-1]),
        viewed(draw.normal(1, 1), "plain", [1], [0, 1]),
        viewed(draw.normal(1)[0], "without axes", [0, 1], []),
        viewed(draw.normal(4, 1, 3), "a later part", [0, 3], [1]),
        viewed(draw.normal(3, 1, 4), "expanded", [2], [1]),
        viewed(draw.normal(1, 4), "expanded", [], []),
        viewed(pairs, "a conjugate view", [1], [0]),
    ]


@check(
    "axes_of_one",
    probe=probes.gradients_of_axes,
    rule=gradients_pass,
    says="gradients pass through `add_axes` and `drop_axes`",
)
def gradients_through_axes(draw: Draw) -> list[Case]:
    one_number = {
        "x": draw.normal(1, 1),
        "weights": draw.normal(1),
        "dims": (0,),
        "ones": (0, 1),
        "leaf": False,
    }
    return [
        one_number,
        *(
            {
                "x": draw.normal(3, 1, 4, 1),
                "weights": draw.normal(12),
                "dims": dims,
                "ones": ones,
                "leaf": leaf,
            }
            for dims, ones in (((0, 2), (1,)), ((-1,), (3, 1)), ((), ()))
            for leaf in (True, False)
        ),
    ]


# casts

HALVES = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32, torch.float64, *HALVES)
TARGETS = (torch.uint8, torch.int8, torch.int16, torch.int32)


def with_numbers(draw: Draw, cases: list[Case]) -> list[Case]:
    """The cases with numbers that new tensors are made of."""
    return [{**case, "numbers": draw.normal(3).tolist()} for case in cases]


def differ(seen: Result, expected: Result, name: str) -> bool:
    """Whether new tensors have another dtype (or hold other numbers)."""
    sides = seen.data[name], expected.data[name]
    return difference(*sides, Tolerance()) is not None


def blocks(case: Case, seen: Result, expected: Result) -> str | None:
    if differ(seen, expected, "within"):
        return "Within the block, new tensors do not have the dtype given."
    if differ(seen, expected, "after"):
        return "After the block, the default is not what it was before."
    return None


@check(
    "casts",
    probe=probes.default_in_blocks,
    rule=blocks,
    also=[leaves_rng_alone, leaves_state_alone, gives_no_warning],
    says="`default_dtype` holds within the block and ends with it, and nothing "
    "warns",
    corners=["no seed is set"],
)
def default_within_the_block(draw: Draw) -> list[Case]:
    cases = [
        {"outside": torch.float32, "dtypes": [dtype]}
        for dtype in (
            torch.float64,
            torch.float16,
            torch.bfloat16,
            torch.float32,
        )
    ]
    return with_numbers(draw, cases)


@check(
    "casts",
    probe=probes.default_in_blocks,
    rule=blocks,
    also=[leaves_state_alone, gives_no_warning],
    says="`default_dtype`: afterwards the default is what it was, whatever it "
    "was; blocks can be nested",
)
def default_of_before(draw: Draw) -> list[Case]:
    other = draw.choice([torch.float16, torch.bfloat16])
    cases = [
        {"outside": torch.float64, "dtypes": [torch.float32]},
        {"outside": other, "dtypes": [torch.float64]},
        {"outside": torch.float32, "dtypes": [torch.float64, other]},
        {"outside": torch.float64, "dtypes": [other, torch.float32, other]},
    ]
    return with_numbers(draw, cases)


def error_passes(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["arrived"] != expected.data["arrived"]:
        return "An error raised in the block does not reach the caller."
    if differ(seen, expected, "after"):
        return "After an error in the block, the default is another."
    return difference(seen.data, expected.data, Tolerance())


@check(
    "casts",
    probe=probes.default_after_error,
    rule=error_passes,
    also=[leaves_state_alone],
    says="`default_dtype`: also after an error in the block, which reaches the "
    "caller",
    corners=["an interrupt (Ctrl-C), `sys.exit()` and a `StopIteration`, too"],
)
def default_after_an_error(draw: Draw) -> list[Case]:
    names = ("ValueError", "StopIteration", "SystemExit", "KeyboardInterrupt")
    cases = [
        {
            "outside": outside,
            "dtype": dtype,
            "error": name,
            "text": f"number {draw.integer(0, 1000)}",
        }
        for name in names
        for outside, dtype in (
            (torch.float32, torch.float64),
            (torch.float64, torch.bfloat16),
        )
    ]
    return with_numbers(draw, cases)


def at_the_with_line(case: Case, seen: Result, expected: Result) -> str | None:
    if differ(seen, expected, "made"):
        return "The default changes before the `with` line."
    if differ(seen, expected, "after"):
        return "Afterwards the default is not what it was at the `with` line."
    return difference(seen.data, expected.data, Tolerance())


def put_back(case: Case, seen: Result, expected: Result) -> str | None:
    if differ(seen, expected, "after"):
        return (
            "Where the block sets a default of its own, the one of the `with` "
            "line does not come back afterwards."
        )
    return None


@check(
    "casts",
    probe=probes.default_made_early,
    rule=put_back,
    also=[leaves_state_alone],
    says="`default_dtype`: also where the block sets a default of its own",
)
def default_set_within(draw: Draw) -> list[Case]:
    low = draw.choice(HALVES)
    cases = [
        {"outside": one, "between": one, "dtype": other, "set within": within}
        for one, other, within in (
            (torch.float32, torch.float64, low),
            (torch.float64, torch.float32, low),
            (torch.float32, torch.float32, torch.float64),
        )
    ]
    return with_numbers(draw, cases)


@check(
    "casts",
    probe=probes.default_made_early,
    rule=at_the_with_line,
    says="`default_dtype`: the default changes at the `with` line, not before",
)
def default_from_the_with_line(draw: Draw) -> list[Case]:
    low = draw.choice(HALVES)
    cases = [
        {
            "outside": torch.float32,
            "between": torch.float64,
            "dtype": low,
        },
        {
            "outside": torch.float64,
            "between": low,
            "dtype": torch.float32,
        },
        {
            "outside": torch.float32,
            "between": torch.float32,
            "dtype": torch.float64,
        },
    ]
    return with_numbers(draw, cases)


def refused_and_put_back(
    case: Case, seen: Result, expected: Result
) -> str | None:
    complaint = taken_or_refused(case, seen, expected)
    if complaint or "refused" not in expected.data:
        return complaint
    if differ(seen, expected, "after"):
        return f"The default is another after {case['form']} was refused."
    return None


@check(
    "casts",
    probe=probes.default_refused,
    rule=refused_and_put_back,
    says="`default_dtype`: an integer, bool or complex dtype raises a "
    "`TypeError`, and the default stays",
    corners=["at the `with` line or before it"],
)
def integer_defaults_raise(draw: Draw) -> list[Case]:
    whole = (torch.int64, torch.int32, torch.uint8)
    dtypes = (torch.float64, *whole, torch.bool, torch.complex64)
    cases = [
        {
            "outside": outside,
            "dtype": dtype,
            "form": str(dtype).removeprefix("torch."),
            "errors": ["TypeError"],
        }
        for outside in (torch.float32, torch.float64)
        for dtype in dtypes
    ]
    return with_numbers(draw, cases)


def cast(x: Tensor, dtype: torch.dtype, what: str = "") -> Case:
    source = str(x.dtype).removeprefix("torch.")
    target = str(dtype).removeprefix("torch.")
    form = f"{what or 'a tensor'} of {source}, to {target}"
    return {"x": x, "dtype": dtype, "form": form}


def shuffled(draw: Draw, x: Tensor) -> Tensor:
    return x[draw.permutation(len(x))]


@check(
    "casts",
    probe=probes.integers,
    rule=same,
    weight=2,
    says="`to_integers` goes to the nearest integer, from the middle to the "
    "even one",
    corners=[
        "of any floating-point dtype from float16 and bfloat16 to float64, "
        "and of any shape"
    ],
)
def nearest_integers(draw: Draw) -> list[Case]:
    halves = torch.arange(0, 60) / 2 + 0.5
    signed = torch.arange(-60, 60) / 4
    cases = []
    for dtype in (torch.float32, torch.float64):
        cases.append(cast(shuffled(draw, halves).to(dtype), torch.uint8))
        for target in (torch.int8, torch.int16, torch.int32):
            cases.append(cast(shuffled(draw, signed).to(dtype), target))
    for dtype in HALVES:
        cases.append(cast(shuffled(draw, halves).to(dtype), torch.uint8))
        for target in (torch.int8, torch.int16, torch.int32):
            cases.append(cast(shuffled(draw, signed).to(dtype), target))
    # Beside the middle, by less than a float32 can tell.
    middle = draw.integers(1, 100, 8).double() + 0.5
    beside = torch.cat([middle + 1e-9, middle - 1e-9])
    what = "numbers close to the middle"
    cases += [cast(shuffled(draw, beside), one, what) for one in TARGETS]
    low = draw.normal(3, 4, std=20.0, dtype=torch.float16)
    return [
        *cases,
        cast(torch.tensor([-0.25, 0.75, 254.75, 255.25, 255.5]), torch.uint8),
        cast(torch.tensor([-128.5, -127.5, 126.5, 127.5]), torch.int8),
        cast(draw.uniform(40, low=0.0, high=250.0), torch.uint8),
        cast(low, torch.int8),
        cast(shuffled(draw, signed).bfloat16(), torch.int16),
        cast(draw.normal(0), torch.int16, "no numbers"),
        cast(draw.normal(1, std=9.0)[0], torch.int32, "one number"),
        cast(draw.normal(1, 1, std=9.0), torch.int16, "one number in two axes"),
        cast(draw.normal(3, 0), torch.int8, "no numbers in two axes"),
    ]


@check(
    "casts",
    probe=probes.integers,
    rule=same,
    weight=2,
    says="`to_integers`: what is beyond the range goes to its end, infinities "
    "too",
)
def ends_of_the_range(draw: Draw) -> list[Case]:
    cases = []
    for target in TARGETS:
        low, high = torch.iinfo(target).min, torch.iinfo(target).max
        ends = [low - 1.0, low, low + 1.0, high - 1.0, high, high + 1.0]
        ends += [3.0 * high, -3.0 * high, 1e30, -1e30, 1e300, -1e300]
        ends += [math.inf, -math.inf, draw.integer(1, 100)]
        beyond = torch.tensor(ends, dtype=torch.float64)
        cases.append(cast(shuffled(draw, beyond), target, "large numbers"))
    for target in (torch.uint8, torch.int8):
        wide = draw.normal(30, std=300.0).round()
        cases.append(cast(wide, target, "large numbers"))
    far = torch.tensor(math.inf), torch.tensor(1000)
    return [
        *cases,
        *(cast(x, torch.uint8, "one large number without axes") for x in far),
    ]


@check(
    "casts",
    probe=probes.integers,
    rule=same,
    says="`to_integers`: also where the end of the range is no number of x's "
    "dtype",
    corners=[
        "2147483647 is no float32, and 32767 no float16",
        "an infinity of float16 goes to the end of int32, not to 65504",
    ],
)
def ends_between_the_floats(draw: Draw) -> list[Case]:
    far = torch.tensor([1e10, -1e10, math.inf, -math.inf, draw.integer(1, 99)])
    near = far.clamp(-6e4, 6e4)
    endless = [
        cast(shuffled(draw, far).half(), target, "infinities")
        for target in TARGETS
    ]
    return [
        *endless,
        cast(shuffled(draw, far), torch.int32, "large numbers"),
        cast(shuffled(draw, near).half(), torch.int16, "large numbers"),
        cast(shuffled(draw, far).bfloat16(), torch.int16, "large numbers"),
        cast(shuffled(draw, far).bfloat16(), torch.int32, "large numbers"),
        cast(shuffled(draw, near).half(), torch.int32, "large numbers"),
        cast(shuffled(draw, near).half(), torch.uint8, "large numbers"),
        cast(shuffled(draw, near).half(), torch.int8, "large numbers"),
    ]


@check(
    "casts",
    probe=probes.integers,
    rule=same,
    says="`to_integers`: NaN becomes 0",
)
def nan_is_zero(draw: Draw) -> list[Case]:
    cases = []
    for dtype in FLOATS:
        for target in TARGETS:
            x = draw.integers(1, 90, 40).to(dtype)
            x[draw.permutation(40)[: draw.integer(3, 20)]] = math.nan
            cases.append(cast(x, target, "NaNs"))
    nan = torch.tensor(math.nan)
    return [*cases, cast(nan, torch.int16, "a NaN without axes")]


@check(
    "casts",
    probe=probes.integers,
    rule=same,
    weight=2,
    says="`to_integers`: large numbers stay exact; integers go to the end of "
    "the range, too",
    corners=["x may be of uint8, int8, int16, int32 or int64"],
)
def exact_integers(draw: Draw) -> list[Case]:
    odd = 2 * draw.integers(2**23, 2**29, 12) + 1
    huge = torch.tensor([2**62, -(2**62), 2**63 - 1, -(2**63), 2**31, -5, 7])
    edges = torch.tensor([-40000, -32769, -32768, -129, -128, -1, 0, 127, 128])
    edges = torch.cat([edges, edges.neg() - 1, draw.integers(-300, 300, 8)])
    bytes_ = torch.tensor([0, 1, 127, 128, 200, 255, draw.integer(129, 255)])
    cases = [
        cast(odd.int(), torch.int32, "large integers"),
        cast(odd, torch.int32, "large integers"),
        cast(odd.double(), torch.int32, "large numbers"),
        cast(odd.double() + 0.25, torch.int32, "large numbers"),
        cast(odd.float(), torch.int32, "large numbers"),
        cast(odd.bfloat16(), torch.int32, "large numbers"),
        cast(odd[:1], torch.int32, "one large integer in an axis"),
    ]
    for target in TARGETS:
        cases.append(cast(shuffled(draw, huge), target, "huge integers"))
        cases.append(cast(shuffled(draw, edges), target, "integers"))
        cases.append(cast(shuffled(draw, edges).int(), target, "integers"))
        short = shuffled(draw, edges).clamp(-(2**15), 2**15 - 1).short()
        cases.append(cast(short, target, "integers"))
        cases.append(cast(shuffled(draw, bytes_).byte(), target, "integers"))
        signed = bytes_.byte().view(torch.int8)
        cases.append(cast(shuffled(draw, signed), target, "integers"))
    return cases


def new_and_x_alone(case: Case, seen: Result, expected: Result) -> str | None:
    if seen.data["by a call"]:
        return "A later call changes the result of an earlier one."
    if not seen.data.get("can be written to", True):
        return (
            "The result cannot be written to: several of its elements are one "
            f"place in memory, with {case['form']}."
        )
    if seen.data["shared"]:
        return f"Writing to the result changes x, with {case['form']}."
    return same(case, seen, expected)


@check(
    "casts",
    probe=probes.integers_of_its_own,
    rule=new_and_x_alone,
    also=[leaves_rng_alone, leaves_inputs_alone],
    says="`to_integers`: the result is a new tensor, and x stays as it was",
    corners=["of any strides; the result can be written to", "no seed is set"],
)
def integers_of_their_own(draw: Draw) -> list[Case]:
    cases = []
    for target in TARGETS:
        x = draw.integers(1, 100, 3, 4).to(target)
        cases.append(cast(x, target))
        cases.append(cast(x.T, target, "a turned tensor"))
        cases.append(cast(x[:, ::2].double(), target))
        cases.append(cast(x.view(1, 3, 1, 4), target, "axes of size 1"))
        cases.append(cast(x.long(), target))
        for one in (x, x.double()):
            wide = cast(one[:1].clone(), target, "an expanded tensor")
            cases.append({**wide, "shape": (3, 4)})
    bad = draw.normal(4, 6, std=400.0).round()
    bad[0, 0], bad[1, 1] = math.nan, math.inf
    cases.append(cast(bad, torch.uint8, "NaNs and large numbers"))
    cases.append(cast(bad[:, ::2], torch.int8, "a strided tensor"))
    cases.append(cast(bad.double(), torch.int16, "NaNs and large numbers"))
    cases.append(cast(bad.double().T, torch.int16, "a turned tensor"))
    cases.append(cast(bad.half(), torch.int8, "NaNs and large numbers"))
    cases.append(cast(bad.T.bfloat16(), torch.int8, "a turned tensor"))
    wide = 1000 * draw.integers(-90, 90, 4, 6)
    cases.append(cast(wide, torch.uint8, "large integers"))
    cases.append(cast(wide[:, ::3], torch.int16, "strided integers"))
    return [{**case, "value": draw.integer(101, 127)} for case in cases]


# bridge

INTEGERS = (
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
)
INEXACT = (
    *(torch.float16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128),
)
LOW = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)

EXACT = Tolerance(0.0, 0.0)
"""The default tolerance for float64 lets digits of float32 pass."""


def numbers(draw: Draw, dtype: torch.dtype, *shape: int) -> Tensor:
    """Numbers that only this dtype, or a wider one, holds."""
    if dtype is torch.bool:
        return draw.integers(0, 2, *shape).bool()
    if dtype.is_complex:
        real = torch.float32 if dtype == torch.complex64 else torch.float64
        parts = [draw.normal(*shape, dtype=real) for _ in range(2)]
        return torch.complex(*parts)
    if dtype.is_floating_point:
        return draw.normal(*shape, std=3.0, dtype=dtype)
    facts = torch.iinfo(dtype)
    high = min(facts.max, 2**62)
    drawn = draw.integers(high // 2, high, *shape)
    if facts.min:
        drawn = drawn * (1 - 2 * draw.integers(0, 2, *shape))
    return drawn.to(dtype)


def special(draw: Draw, dtype: torch.dtype) -> Tensor:
    """Infinities and NaN among the numbers."""
    few = torch.tensor([math.inf, -math.inf, math.nan, draw.integer(1, 9)])
    return few[draw.permutation(4)].to(dtype)


def crossing(
    given: Tensor, kind: str = "plain", words: str | None = None, **options
) -> Case:
    name = str(given.dtype).removeprefix("torch.")
    made = {"numbers": given, "form_of_tensor": kind, "options": options}
    return {**made, "form": words or f"a tensor of {name}"}


def arrays_equal(case: Case, seen: Result, expected: Result) -> str | None:
    """What kind of thing came back, its dtype, its numbers."""
    form = case["form"]
    if "raised" in seen.data:
        return same(case, seen, expected)
    if seen.data["kind"] != expected.data["kind"]:
        return f"You return {seen.data['kind']}, with {form}."
    if seen.data["dtype"] != expected.data["dtype"]:
        return f"The array has the dtype {seen.data['dtype']}, with {form}."
    found = difference(
        seen.data["numbers"], expected.data["numbers"], EXACT, "the array"
    )
    return f"{found.rstrip('.')}, with {form}." if found else None


@check(
    "bridge",
    probe=probes.array_of_tensor,
    rule=arrays_equal,
    weight=2,
    also=[leaves_rng_alone, leaves_state_alone],
    says="`to_numpy` keeps every dtype that NumPy has: bool, uint8 to uint64, "
    "int8 to int64, float16 to float64, complex64, complex128",
    corners=[
        "all digits stay, and infinities and NaN",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def arrays_of_every_dtype(draw: Draw) -> list[Case]:
    dtypes = (*INTEGERS, *INEXACT)
    cases = [
        crossing(numbers(draw, dtype, 3, 4), **options)
        for dtype in dtypes
        for options in ({}, {"copy": True})
    ]
    for dtype in INEXACT:
        name = str(dtype).removeprefix("torch.")
        words = f"infinities and NaN of {name}"
        cases.append(crossing(special(draw, dtype), words=words))
        cases.append(crossing(special(draw, dtype), words=words, copy=True))
    return cases


@check(
    "bridge",
    probe=probes.array_of_tensor,
    rule=arrays_equal,
    says="`to_numpy`: bfloat16, float8_e4m3fn and float8_e5m2 become float32",
    corners=["infinities and NaN stay what they are"],
)
def arrays_of_low_precision(draw: Draw) -> list[Case]:
    cases = []
    for dtype in LOW:
        name = str(dtype).removeprefix("torch.")
        drawn = draw.normal(3, 4, std=3.0).to(dtype)
        cases.append(crossing(drawn, words=f"a tensor of {name}"))
        cases.append(crossing(drawn, words=f"a copy of {name}", copy=True))
        cases.append(crossing(drawn.T, words=f"a turned tensor of {name}"))
    wide = torch.tensor([math.inf, -math.inf, math.nan, 1e30, -0.0, 1e-30])
    wide = wide[draw.permutation(6)].bfloat16()
    # float8_e4m3fn has no infinity, and ends at 448
    low = torch.tensor([math.nan, 448.0, -448.0, draw.integer(1, 9)])
    low = low[draw.permutation(4)].to(torch.float8_e4m3fn)
    far = torch.cat([special(draw, torch.float32), torch.tensor([57344.0])])
    return [
        *cases,
        crossing(wide, words="infinities and NaN of bfloat16"),
        crossing(low, words="NaN and the ends of float8_e4m3fn"),
        crossing(
            far.to(torch.float8_e5m2), words="infinities and NaN of float8_e5m2"
        ),
        crossing(draw.normal(1).bfloat16()[0], words="one number of bfloat16"),
    ]


FORMS = {
    "leaf": "a tensor that requires a gradient",
    "computed": "the result of a computation with a gradient",
    "conjugate": "a conjugate view",
    "negative": "a negative view",
    "conjugate leaf": "a conjugate view that requires a gradient",
}


def in_every_form(draw: Draw, **options) -> list[Case]:
    cases = []
    for kind, words in FORMS.items():
        complex_ = kind in ("conjugate", "negative", "conjugate leaf")
        for wide in (False, True):
            dtypes = (torch.complex64, torch.complex128)
            if not complex_:
                dtypes = (torch.float32, torch.float64)
            drawn = numbers(draw, dtypes[wide], 3, 2)
            cases.append(crossing(drawn, kind, words, **options))
    return cases


def in_every_layout(draw: Draw, **options) -> list[Case]:
    square = draw.normal(3, 3)
    return [
        crossing(draw.normal(3, 4), "turned", "a turned tensor", **options),
        crossing(square, "turned", "a turned square", **options),
        crossing(
            draw.normal(3, 6), "every second", "a strided tensor", **options
        ),
        crossing(
            draw.normal(6),
            "every second",
            "a strided vector",
            **options,
        ),
        crossing(draw.normal(6), words="a vector", **options),
        crossing(draw.normal(2, 3, 2), words="three axes", **options),
        crossing(draw.normal(3, 4), "expanded", "an expanded one", **options),
    ]


@check(
    "bridge",
    probe=probes.array_of_tensor,
    rule=arrays_equal,
    says="`to_numpy`: tensors that need a gradient or come from a computation "
    "that does, with a pending conjugation or negation",
)
def arrays_of_awkward_tensors(draw: Draw) -> list[Case]:
    low = draw.normal(4).bfloat16()
    words = "a bfloat16 tensor that requires a gradient"
    return [
        *in_every_form(draw),
        *in_every_form(draw, copy=True),
        crossing(low, "leaf", words),
        crossing(low, "leaf", words, copy=True),
    ]


@check(
    "bridge",
    probe=probes.array_of_tensor,
    rule=arrays_equal,
    says="`to_numpy`: any strides, no dimensions, no elements",
)
def arrays_of_any_shape(draw: Draw) -> list[Case]:
    cases = [*in_every_layout(draw), *in_every_layout(draw, copy=True)]
    for options in ({}, {"copy": True}):
        one = draw.normal(1, dtype=torch.float64)[0]
        none = draw.integers(0, 9, 0, 3)
        cases.append(crossing(one, words="no dimensions", **options))
        cases.append(crossing(none, words="no elements", **options))
    return cases


@check(
    "bridge",
    probe=probes.array_from_elsewhere,
    rule=arrays_equal,
    says="`to_numpy`: tensors on another device",
)
def arrays_from_elsewhere(draw: Draw) -> list[Case]:
    where = "a tensor on another device"
    low = draw.normal(5).bfloat16()
    return [
        crossing(draw.normal(3, 4), "leaf", words=where),
        crossing(numbers(draw, torch.float64, 4), words=where, copy=True),
        crossing(draw.integers(0, 99, 4), words=where),
        crossing(low, words=f"{where}, bfloat16"),
    ]


def shared_or_not(case: Case, seen: Result, expected: Result) -> str | None:
    """Whose memory it is, whatever the dtype and the numbers."""
    form = case["form"]
    if "raised" in seen.data:
        return same(case, seen, expected)
    if seen.data["kind"] != expected.data["kind"]:
        return f"You return {seen.data['kind']}, with {form}."
    if seen.data["shared"] and not expected.data["shared"]:
        return f"The array shares memory with t, with {form}."
    if seen.data.get("by a call"):
        return f"A later call changes the array of an earlier one, with {form}."
    if expected.data["shared"] and not seen.data["shared"]:
        return f"The array has memory of its own, with {form}."
    t = seen.data["t"], expected.data["t"]
    if not seen.data["as it was"] or difference(*t, Tolerance()):
        return f"t is not as it was, with {form}."
    if seen.data["numbers"].shape != expected.data["numbers"].shape:
        return f"The array has the wrong shape, with {form}."
    return None


@check(
    "bridge",
    probe=probes.array_and_tensor,
    rule=shared_or_not,
    weight=2,
    says="`to_numpy` with `copy=False`: memory is shared on the CPU, in a "
    "dtype that NumPy has, with nothing pending",
)
def arrays_that_share(draw: Draw) -> list[Case]:
    dtypes = (*INTEGERS, *INEXACT)
    plain = [
        crossing(numbers(draw, dtype, 2, 3), copy=False) for dtype in dtypes
    ]
    one = crossing(draw.normal(1)[0], words="no dimensions", copy=False)
    return [*plain, *in_every_layout(draw, copy=False), one]


@check(
    "bridge",
    probe=probes.array_and_tensor,
    rule=shared_or_not,
    weight=2,
    says="`to_numpy` with `copy=True`: the array has memory of its own",
)
def arrays_of_their_own(draw: Draw) -> list[Case]:
    dtypes = (*INTEGERS, *INEXACT)
    plain = [
        crossing(numbers(draw, dtype, 2, 3), copy=True) for dtype in dtypes
    ]
    one = crossing(draw.normal(1)[0], words="no dimensions", copy=True)
    low = crossing(draw.normal(2, 3).bfloat16(), copy=True)
    return [*plain, *in_every_layout(draw, copy=True), one, low]


@check(
    "bridge",
    probe=probes.array_and_tensor,
    rule=shared_or_not,
    says="`to_numpy`: with gradients and pending operations memory is shared "
    "or not, as asked, and `t` stays as it was",
)
def memory_of_awkward_tensors(draw: Draw) -> list[Case]:
    return [
        *in_every_form(draw, copy=False),
        *in_every_form(draw, copy=True),
        *in_every_form(draw),
    ]


def array(given: Tensor, layout: str = "plain", **options) -> Case:
    name = str(given.dtype).removeprefix("torch.")
    form = f"an array of {name}"
    if layout != "plain":
        form = f"an array that is {layout}"
    made = {"numbers": given, "layout": layout, "options": options}
    return {**made, "form": form}


def tensors_equal(case: Case, seen: Result, expected: Result) -> str | None:
    form = case["form"]
    if "raised" in seen.data:
        return same(case, seen, expected)
    if seen.data.get("refused") is not None or expected.data.get("refused"):
        return taken_or_refused(case, seen, expected)
    if not isinstance(seen.data["tensor"], Tensor):
        return f"What you return is no tensor, with {form}."
    if seen.data.get("by a call") and not expected.data.get("by a call"):
        return (
            f"A later call changes the tensor of an earlier one, with {form}."
        )
    for fact in ("follows the array", "writes to the array"):
        if seen.data.get(fact) and not expected.data.get(fact):
            return f"The tensor shares memory with the array, with {form}."
        if expected.data.get(fact) and not seen.data.get(fact):
            return f"The tensor has memory of its own, with {form}."
    if not seen.data["as it was"]:
        return f"The array is not as it was, with {form}."
    found = difference(seen.data, expected.data, EXACT)
    return f"{found.rstrip('.')}, with {form}." if found else None


def shares_or_refuses(case: Case, seen: Result, expected: Result) -> str | None:
    """As `tensors_equal`, whatever the dtype and the numbers."""
    got, wanted = seen.data.get("tensor"), expected.data.get("tensor")
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        return tensors_equal(case, seen, expected)
    if got.shape != wanted.shape:
        return f"The tensor has the wrong shape, with {case['form']}."
    alike = {**seen.data, "tensor": wanted}
    return tensors_equal(case, replace(seen, data=alike), expected)


@check(
    "bridge",
    probe=probes.tensor_of_array,
    rule=tensors_equal,
    weight=2,
    says="`to_tensor`: every dtype is kept, and the memory is the tensor's own "
    "unless `copy=False`",
    corners=[
        "those that PyTorch has too, in native byte order",
        "all digits stay, and infinities and NaN",
    ],
)
def tensors_of_every_dtype(draw: Draw) -> list[Case]:
    cases = []
    for dtype in INEXACT:
        name = str(dtype).removeprefix("torch.")
        made = array(special(draw, dtype))
        cases.append({**made, "form": f"infinities and NaN of {name}"})
    for dtype in (*INTEGERS, *INEXACT):
        cases.append(array(numbers(draw, dtype, 2, 3)))
        cases.append(array(numbers(draw, dtype, 4), copy=True))
    nothing = array(draw.normal(0, 3, dtype=torch.float64), copy=False)
    return [*cases, {**nothing, "form": "no elements, copy=False"}]


@check(
    "bridge",
    probe=probes.tensor_of_array,
    rule=tensors_equal,
    also=[leaves_rng_alone, leaves_state_alone, gives_no_warning],
    weight=2,
    says="`to_tensor` with `copy=True`: any strides, negative ones too, "
    "read-only, no dimensions, no elements; nothing warns",
    corners=[
        "one field of an array of records, too",
        "the axis with the negative stride may have size 1",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def tensors_of_any_array(draw: Draw) -> list[Case]:
    table = draw.normal(4, 6, dtype=torch.float64)
    layouts = (
        *("flipped", "flipped along the last axis", "turned"),
        *("every second", "in Fortran order", "read-only"),
        "a field of records",
    )
    none, one = draw.normal(0, 3), draw.normal(1, dtype=torch.float64)[0]
    whole = draw.integers(0, 99, 5)
    cases = [array(table, layout) for layout in layouts]
    cases += [array(table, layout, copy=True) for layout in layouts]
    cases += [array(whole, "flipped"), array(whole, "read-only")]
    return [
        *cases,
        {**array(one), "form": "no dimensions"},
        {**array(one, "read-only", copy=True), "form": "no dimensions"},
        {**array(none), "form": "no elements"},
        array(draw.normal(1, 6), "flipped"),
        array(draw.normal(6, 1), "flipped along the last axis"),
    ]


@check(
    "bridge",
    probe=probes.tensor_of_array,
    rule=shares_or_refuses,
    weight=2,
    says="`to_tensor` with `copy=False` shares memory, or raises a `ValueError`",
    corners=[
        "it raises for a negative stride and for a read-only array, also for a "
        "later one of the process, of which PyTorch no longer warns",
    ],
)
def tensors_that_share(draw: Draw) -> list[Case]:
    table = draw.normal(4, 6, dtype=torch.float64)
    cases = [
        array(numbers(draw, dtype, 2, 3), copy=False)
        for dtype in (*INTEGERS, *INEXACT)
    ]
    for layout in ("turned", "every second", "in Fortran order", "read-only"):
        cases.append(array(table, layout, copy=False))
    # NumPy gives a new axis a stride of 0
    cases.append(array(table, "one with a new axis", copy=False))
    for layout in ("flipped", "flipped along the last axis"):
        cases.append(array(table, layout, copy=False))
    line = draw.integers(0, 99, 5)
    cases += [array(line, one, copy=False) for one in ("flipped", "read-only")]
    nothing = array(draw.normal(0, 3), "read-only", copy=False)
    cases.append({**nothing, "form": "a read-only array without elements"})
    later = array(draw.normal(3), "read-only", copy=False)
    form = "a read-only array after PyTorch has warned of one"
    cases.append({**later, "told before": True, "form": form})
    one = {**array(draw.normal(1)[0], copy=False), "form": "no dimensions"}
    return [{**case, "errors": ["ValueError"]} for case in [*cases, one]]


# named_axes


def named(x: Tensor, axes: str, target: str, form: str = "") -> Case:
    form = form or _count(x)
    return {"x": x, "axes": axes, "target": target, "form": form}


def summing(x: Tensor, axes: str, over: str, form: str = "") -> Case:
    kinds = {0: "none of them", 1: "one of them", x.dim(): "all of them"}
    form = form or f"{_count(x)}, {kinds.get(len(over), 'several')} summed"
    return {"x": x, "axes": axes, "over": over, "form": form}


NINE = (1, 2, 1, 3, 1, 2, 2, 1, 2)
LETTERS = string.ascii_letters[:47] + "αßΓ"
MANY = (*(1 for _ in LETTERS[1:]), 2)


def _count(x: Tensor) -> str:
    words = ("no axes", "one axis", "two axes", "three axes", "four axes")
    count = words[x.dim()] if x.dim() < len(words) else "many axes"
    return f"{count} of one size" if len(set(x.shape)) == 1 < x.dim() else count


@check(
    "named_axes",
    probe=probes.reordered,
    rule=same,
    weight=2,
    also=[leaves_rng_alone, leaves_state_alone, leaves_inputs_alone],
    says="`reorder` moves each axis to its place, there and back",
    corners=["no seed is set, and no setting of PyTorch is changed"],
)
def axes_in_the_order(draw: Draw) -> list[Case]:
    x = draw.normal(2, 3, 5, 7)
    return [
        named(x, "NHWC", "NCHW"),
        named(x, "NCHW", "NHWC"),
        named(x, "NCHW", "NCHW"),
        named(x, "NCHW", "WHCN"),
        named(x, "NCHW", "CWNH"),
        named(draw.normal(3, 3, 3), "HWC", "CHW"),
        named(draw.normal(4, 4, 4, 4), "NHWC", "NCHW"),
    ]


@check(
    "named_axes",
    probe=probes.reordered,
    rule=same,
    says="`reorder`: any letters, Greek ones too, and up to 50 axes",
)
def any_letters(draw: Draw) -> list[Case]:
    return [
        named(draw.normal(2, 3, 4), "xyz", "zxy"),
        named(draw.normal(2, 3, 4), "cCk", "kcC"),
        named(draw.integers(0, 9, 2, 3), "TB", "BT"),
        named(draw.normal(2, 1, 3, 2, 4), "abcde", "daebc"),
        named(draw.normal(5), "L", "L"),
        named(draw.normal(1)[0], "", ""),
        named(draw.normal(2, 3, 4, 2, 1, 3), "zyxwvu", "uzvywx"),
        named(draw.normal(2, 3, 4), "αßΓ", "Γαß", "letters such as α"),
        named(draw.normal(*NINE), "abcdefghi", "ihgabcdef"),
        named(draw.normal(*MANY), LETTERS, LETTERS[::-1]),
    ]


def a_view(case: Case, seen: Result, expected: Result) -> str | None:
    got, wanted = seen.data["out"], expected.data["out"]
    if not isinstance(got, Tensor) or got.numel() != wanted.numel():
        return f"The result has the wrong shape, with {case['form']}."
    if not seen.data["shared"]:
        return f"The result has memory of its own, with {case['form']}."
    return difference(seen.data["x"], expected.data["x"], Tolerance())


@check(
    "named_axes",
    probe=probes.reordered_view,
    rule=a_view,
    says="the result of `reorder` is a view of x",
)
def reorder_gives_a_view(draw: Draw) -> list[Case]:
    cases = [
        (named(draw.normal(2, 3, 4, 5), "NHWC", "NCHW"), "plain"),
        (named(draw.normal(2, 3, 4, 5), "NCHW", "NCHW"), "plain"),
        (named(draw.normal(2, 3, 4), "HWC", "CHW"), "turned"),
        (named(draw.normal(2, 3), "ab", "ba"), "turned"),
        (named(draw.integers(0, 9, 2, 3), "ab", "ba"), "plain"),
        (named(draw.normal(2, 3, 8), "abc", "cab"), "every second"),
        (named(draw.normal(2, 1, 3, 2, 4), "abcde", "daebc"), "plain"),
    ]
    return [
        {**case, "layout": layout, "value": 10.0 + draw.integer(0, 50)}
        for case, layout in cases
    ]


@check(
    "named_axes",
    probe=probes.summed,
    rule=same,
    weight=2,
    also=[leaves_rng_alone, leaves_state_alone, leaves_inputs_alone],
    says="`sum_over` sums over the named axes and keeps the others in order",
    corners=[
        "any letters, and up to 50 axes, here too",
        "as `x.sum` gives it: in float16 and bfloat16 it does not stop as the "
        "count of section 1 did",
        "x stays as it was",
        "no seed is set, and no setting of PyTorch is changed",
    ],
)
def sums_over_names(draw: Draw) -> list[Case]:
    def numbers_of(*shape: int) -> Tensor:
        return draw.integers(-50, 50, *shape).double()

    x = numbers_of(2, 3, 5, 7)
    cases = [
        summing(x, "NCHW", over)
        for over in ("C", "N", "W", "HW", "WH", "CN", "NC", "CH", "NWH")
    ]
    large = draw.integers(2**30, 2**31, 4, 1).double()
    cancels = torch.cat([large, numbers_of(4, 1) - large], 1)
    gaps = numbers_of(3, 4)
    gaps[0, 1], gaps[1, 2] = math.nan, math.inf
    return [
        *cases,
        summing(cancels, "ab", "b", "float64 numbers that cancel"),
        summing(gaps, "ab", "b", "NaN and infinity"),
        summing(torch.ones(64, 64).half(), "ab", "ab", "4096 ones of float16"),
        summing(
            torch.ones(2, 4000).bfloat16(), "ab", "b", "4000 ones of bfloat16"
        ),
        summing(numbers_of(0, 3), "ab", "a", "no numbers"),
        summing(numbers_of(2, 0), "ab", "a", "no numbers"),
        summing(numbers_of(2, 3, 4), "αßΓ", "ßΓ", "letters such as α"),
        summing(numbers_of(*NINE), "abcdefghi", "hdbi"),
        summing(numbers_of(*MANY), LETTERS, LETTERS[1:]),
        summing(x, "NCHW", "NCHW"),
        summing(x, "NCHW", "WHCN"),
        summing(numbers_of(4, 4, 4), "CHW", "H"),
        summing(numbers_of(4, 4, 4), "hHw", "H"),
        summing(numbers_of(3), "k", "k"),
        summing(numbers_of(2, 1, 3).float(), "abc", "b"),
        summing(numbers_of(2, 3, 4).mT, "xyz", "y"),
    ]


@check(
    "named_axes",
    probe=probes.summed,
    rule=same,
    says='`sum_over`: `over=""` sums nothing: the shape and the numbers of x',
)
def nothing_to_sum(draw: Draw) -> list[Case]:
    return [
        summing(draw.normal(2, 3).half(), "ab", ""),
        summing(draw.normal(2, 1, 4, 3), "NCHW", ""),
        summing(draw.normal(1)[0], "", ""),
        summing(draw.normal(0, 2), "ab", "", "no numbers"),
        summing(torch.tensor([math.inf, math.nan]), "a", "", "infinity, NaN"),
    ]


Words = tuple[str, str, str]


def with_letters(draw: Draw, forms: list[Words]) -> list[Words]:
    """Other letters in the place of a, b, c and d, capitals of them too."""
    small = "".join(chr(97 + int(n)) for n in draw.permutation(26)[:4])
    table = str.maketrans("abcdABCD", small + small.upper())
    return [
        (axes.translate(table), others.translate(table), form)
        for axes, others, form in forms
    ]


@check(
    "named_axes",
    probe=probes.reordered,
    rule=taken_or_refused,
    says="`reorder`: letters that do not fit raise a `ValueError`",
    corners=[
        "`axes` needs one letter for each axis of x, none of them twice",
        "`target` needs all of these, and no other",
    ],
)
def bad_orders_raise(draw: Draw) -> list[Case]:
    size = draw.integer(2, 6)
    x = draw.normal(size, size, size)
    forms = [
        ("abc", "cab", "letters that fit"),
        ("abc", "ab", "a target without one of the letters"),
        ("abc", "", "an empty target"),
        ("abc", "abcd", "a target with a letter too many"),
        ("abc", "abd", "a target with an unknown letter"),
        ("abc", "Abc", "a target with a capital that axes has not"),
        ("abc", "abcc", "a target with all letters and one twice"),
        ("abc", "abb", "a target with one letter twice, another missing"),
        ("ab", "ba", "axes with a letter too few"),
        ("ab", "ab", "axes with a letter too few"),
        ("abcd", "dcba", "axes with a letter too many"),
        ("abb", "bba", "a letter twice in axes and target"),
        ("abb", "abb", "a letter twice in axes and target"),
        ("abb", "ab", "a letter twice in axes"),
        ("", "", "axes without letters"),
    ]
    missing = "a target without the letter of an axis of size 1"
    cases = [named(x, *words) for words in with_letters(draw, forms)]
    for words in with_letters(draw, [("abc", "ca", missing)]):
        cases.append(named(draw.normal(3, 1, 3), *words))
    alone = draw.normal(1)[0]
    cases.append(named(alone, "k", "k", "a letter for x without axes"))
    return [{**case, "errors": ["ValueError"]} for case in cases]


@check(
    "named_axes",
    probe=probes.summed,
    rule=taken_or_refused,
    says="`sum_over`: letters that do not fit raise a `ValueError`",
    corners=[
        "`axes` needs one letter for each axis of x, none of them twice",
        "`over` has only letters of `axes`, none of them twice",
    ],
)
def bad_sums_raise(draw: Draw) -> list[Case]:
    size = draw.integer(2, 6)
    x = draw.normal(size, size, size)
    forms = [
        ("abc", "b", "letters that fit"),
        ("abc", "d", "an unknown letter in over"),
        ("abc", "B", "a capital in over that axes has not"),
        ("abc", "ad", "a known and an unknown letter in over"),
        ("abc", "bb", "a letter twice in over"),
        ("abc", "cac", "a letter twice in over"),
        ("ab", "a", "axes with a letter too few"),
        ("ab", "", "axes with a letter too few, nothing summed"),
        ("abcd", "a", "axes with a letter too many"),
        ("abcd", "d", "axes with a letter too many"),
        ("abcd", "", "axes with a letter too many, nothing summed"),
        ("abb", "a", "a letter twice in axes"),
        ("abb", "b", "a letter twice in axes"),
        ("abb", "", "a letter twice in axes, nothing summed"),
        ("", "", "axes without letters"),
    ]
    cases = [summing(x, *words) for words in with_letters(draw, forms)]
    capitals = ("ABC", "b", "a small letter in over where axes has capitals")
    cases.append(summing(x, *capitals))
    alone = draw.normal(1)[0]
    for over in ("", "k"):
        cases.append(summing(alone, "k", over, "a letter for x without axes"))
    return [{**case, "errors": ["ValueError"]} for case in cases]


@check(
    "named_axes",
    probe=probes.gradients_by_name,
    rule=gradients_pass,
    says="gradients pass through `reorder` and `sum_over`, also where all "
    "axes are summed",
)
def gradients_through_names(draw: Draw) -> list[Case]:
    cases = [
        ("NHWC", "NCHW", "HW"),
        ("NCHW", "WCNH", "N"),
        ("NCHW", "NCHW", ""),
        ("NCHW", "WHCN", "NCHW"),
    ]
    return [
        {
            "x": draw.normal(2, 3, 2, 4, dtype=dtype),
            "weights": draw.normal(48, dtype=dtype),
            "axes": axes,
            "target": target,
            "over": over,
            "leaf": dtype is torch.float32,
        }
        for axes, target, over in cases
        for dtype in (torch.float32, torch.float64)
    ]
