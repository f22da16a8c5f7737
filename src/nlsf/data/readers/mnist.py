"""MNIST: images as signals on the grid of their pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from nlsf.data.dataset import Dataset, Split
from nlsf.data.generators import check_whole, pixel_grid
from nlsf.data.readers.raw_files import ending, gunzip
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.data.catalogue.entry import Entry

_CLASSES = 10
_MAX_BYTES = 1 << 27


def read(
    entry: Entry,
    paths: Sequence[Path],
    *,
    subset: int | None = None,
    noise: float = 0.0,
    noise_seed: int = 0,
) -> Dataset:
    """Grey values in [0, 1] of n images, (n, 784, 1), on the 28 x 28 grid.

    The examples are the training images, then the test images. The split ``"public"`` tests on the
    latter and validates on the last sixth of the training images (10,000 of 60,000).

    Args:
        entry: names the data set.
        paths: the four ``*-ubyte.gz`` files, in any order.
        subset: take the first so many training images and a sixth as many test images.
        noise: of the grid's edges; see `nlsf.data.generators.pixel_grid`.
        noise_seed: of that noise.
    """
    train, train_y = _images(paths, "train")
    test, test_y = _images(paths, "t10k")
    if subset is not None:
        check_whole("subset", subset, _CLASSES, len(train))
        train, train_y = train[:subset], train_y[:subset]
        test, test_y = test[: subset // 6], test_y[: subset // 6]
    if train.shape[1:] != test.shape[1:]:
        raise FormatError(
            f"{ending(paths, 't10k-images-idx3-ubyte.gz')} has images of {test.shape[1:]} pixels, "
            f"but the training images have {train.shape[1:]}."
        )
    rows, columns = train.shape[1:]
    images = np.concatenate([train, test]).reshape(-1, rows * columns, 1)
    number = torch.arange(len(images))
    last = len(train) - len(train) // 6
    split = Split(number[:last], number[last : len(train)], number[len(train) :], "public")
    graph = pixel_grid(rows, columns, noise, noise_seed)
    return Dataset(
        name=entry.name,
        level="signal",
        graphs=(graph,),
        y=torch.from_numpy(np.concatenate([train_y, test_y]).astype(np.int64)),
        classes=tuple(str(digit) for digit in range(_CLASSES)),
        signals=torch.from_numpy(images.astype(np.float32) / np.float32(255)),
        metric=entry.metric,
        given={"public": (split,)},
    )


def _images(paths: Sequence[Path], part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The images (n, rows, columns) of a part, and their labels (n,)."""
    path, labelled = (
        ending(paths, f"{part}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")
    )
    images, labels = _idx(path, 3), _idx(labelled, 1)
    if len(images) != len(labels):
        raise FormatError(f"{labelled} has {len(labels)} labels for {len(images)} images.")
    if labels.size and labels.max() >= _CLASSES:
        raise FormatError(f"{labelled}: label {labels.argmax()} is {labels.max()}, not a digit.")
    return images, labels


def _idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """The bytes of an idx file: 0, 0, 8 (unsigned bytes), ndim, then ndim sizes of 32 bits."""
    content = gunzip(path, max_bytes=_MAX_BYTES)
    header = 4 + 4 * ndim
    if len(content) < header or content[:4] != bytes([0, 0, 8, ndim]):
        raise FormatError(
            f"{path} does not start as an idx file of unsigned bytes in {ndim} dimensions."
        )
    shape = tuple(int(n) for n in np.frombuffer(content, dtype=">u4", count=ndim, offset=4))
    if math.prod(shape) != len(content) - header:
        raise FormatError(
            f"{path} announces {math.prod(shape):,} values of shape {shape}, but holds "
            f"{len(content) - header:,}."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)
