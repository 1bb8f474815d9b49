"""Data that needs no network: real digits, and clusters of any size."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Split(NamedTuple):
    """Images and labels, for training and for testing."""

    X_train: Tensor
    y_train: Tensor
    X_test: Tensor
    y_test: Tensor


def digits(*, test_fraction: float = 0.2, seed: int = 0) -> Split:
    """The 1797 handwritten digits of 8 x 8 pixels that ship with scikit-learn.

    Every digit has the same share of the training and of the test set.

    Args:
        test_fraction: share of the images held out.
        seed: which images these are; global random state is not touched.

    Returns:
        Images, float32 in [0, 1] of shape (n, 1, 8, 8), and labels, int64 of
        shape (n,).

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits,
    UCI Machine Learning Repository, 1998.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    pixels_train, pixels_test, labels_train, labels_test = train_test_split(
        pixels,
        labels,
        test_size=test_fraction,
        random_state=seed,
        stratify=labels,
    )
    return Split(
        X_train=_as_images(pixels_train),
        y_train=torch.as_tensor(labels_train, dtype=torch.int64),
        X_test=_as_images(pixels_test),
        y_test=torch.as_tensor(labels_test, dtype=torch.int64),
    )


def _as_images(pixels: object) -> Tensor:
    images = torch.as_tensor(pixels, dtype=torch.float32)
    return images.reshape(-1, 1, 8, 8) / 16  # scikit-learn counts 0 to 16


def gaussian_clusters(
    num_samples: int,
    shape: tuple[int, ...] = (64,),
    num_classes: int = 10,
    *,
    distance: float = 6.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Classes that are round clouds of points: as much data as a GPU can take.

    The points are drawn on `device`, so the numbers of one seed differ between
    a CPU and a GPU. Global random state is not touched.

    Args:
        num_samples: how many points.
        shape: of one point, (features,) or (channels, height, width).
        num_classes: how many clouds.
        distance: typical distance between two centres, in standard deviations
            of a cloud; below 3, neighbours overlap.
        seed: of centres, labels and points.
        device: where the tensors are made.

    Returns:
        Points, float32 of shape (num_samples, *shape), and labels, int64 of
        shape (num_samples,).
    """
    device = torch.device(device)
    generator = torch.Generator(device).manual_seed(seed)
    # Two normal points in d dimensions are sqrt(2 d) apart.
    scale = distance / math.sqrt(2 * math.prod(shape))
    centres = scale * torch.randn(
        num_classes, *shape, generator=generator, device=device
    )
    y = torch.randint(
        num_classes, (num_samples,), generator=generator, device=device
    )
    X = torch.randn(num_samples, *shape, generator=generator, device=device)
    return X.add_(centres[y]), y
