"""Two small networks for the 8 x 8 digits, with the normalization one chooses."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from torch import nn

Norm = Literal["none", "batch", "layer", "group"]

_GROUPS = 4


def digit_mlp(
    *, width: int = 64, depth: int = 2, norm: Norm = "none"
) -> nn.Sequential:
    """A multilayer perceptron with `depth` hidden layers of `width` units.

    Args:
        width: units of a hidden layer; a multiple of 4 for `norm="group"`.
        depth: how many hidden layers.
        norm: what stands between each linear layer and its ReLU.

    Returns:
        A model from images (n, 1, 8, 8) to logits (n, 10). Layers are named
        `linear1`, `norm1`, `relu1`, ..., `head`.

    Raises:
        ValueError: an unknown norm, or a width that its groups do not divide.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    features = 64
    for i in range(1, depth + 1):
        layers[f"linear{i}"] = nn.Linear(features, width)
        if norm != "none":
            layers[f"norm{i}"] = _norm_layer(norm, width, of_images=False)
        layers[f"relu{i}"] = nn.ReLU()
        features = width
    layers["head"] = nn.Linear(features, 10)
    return nn.Sequential(layers)


def digit_convnet(*, width: int = 16, norm: Norm = "none") -> nn.Sequential:
    """A convolutional network with two 3 x 3 convolutions.

    Args:
        width: channels of the first convolution, half of those of the second; a
            multiple of 4 for `norm="group"`.
        norm: what stands between each convolution and its ReLU. "layer"
            normalizes over channels, height and width together.

    Returns:
        A model from images (n, 1, 8, 8) to logits (n, 10). Layers are named
        `conv1`, `norm1`, `relu1`, `pool1`, ..., `head`.

    Raises:
        ValueError: an unknown norm, or a width that its groups do not divide.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    channels = 1
    for i, out in enumerate((width, 2 * width), start=1):
        layers[f"conv{i}"] = nn.Conv2d(channels, out, 3, padding=1)
        if norm != "none":
            layers[f"norm{i}"] = _norm_layer(norm, out, of_images=True)
        layers[f"relu{i}"] = nn.ReLU()
        layers[f"pool{i}"] = nn.MaxPool2d(2)
        channels = out
    layers["flatten"] = nn.Flatten()
    layers["head"] = nn.Linear(channels * 2 * 2, 10)
    return nn.Sequential(layers)


def _norm_layer(norm: Norm, size: int, *, of_images: bool) -> nn.Module:
    if norm == "batch":
        return nn.BatchNorm2d(size) if of_images else nn.BatchNorm1d(size)
    if norm == "layer":
        return nn.GroupNorm(1, size) if of_images else nn.LayerNorm(size)
    if norm == "group":
        if size % _GROUPS:
            raise ValueError(
                f"A group norm has {_GROUPS} groups here, so the width must be "
                f"a multiple of {_GROUPS}, not {size}."
            )
        return nn.GroupNorm(_GROUPS, size)
    raise ValueError(
        f'The norm is "none", "batch", "layer" or "group", not {norm!r}.'
    )
