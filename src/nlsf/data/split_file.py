"""Splits as small JSON files that can be committed: `write_split`, `read_split`, `digest`.

One field a line, sorted by name::

    {
    "data": "Cora",
    "examples": 2708,
    "format": "nlsf-split 1",
    "labels": "<sha256 of the labels>",
    "protocol": "random",
    "seed": 0,
    "test": [5,8,...],
    "train": [...],
    "val": [...]
    }

The checksum of the labels ties a split to its data: read for other data, it is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlsf.data.dataset import Dataset, Split
from nlsf.errors import DataError, FormatError
from nlsf.store.files import write_text

_FORMAT = "nlsf-split 1"
_PARTS = ("train", "val", "test")
_TYPES: dict[str, type] = {
    "format": str,
    "data": str,
    "examples": int,
    "labels": str,
    "protocol": str,
    "seed": int,
    "train": list,
    "val": list,
    "test": list,
}
_IN_WORDS = {str: "a text", int: "a whole number", list: "a list of whole numbers"}


def write_split(path: str | os.PathLike[str], split: Split, dataset: Dataset) -> None:
    """Writes a split of a data set: all of it or nothing.

    Raises:
        FormatError: the split names examples that the data set does not have.
        DataError: the file cannot be written there.
    """
    path = Path(path)
    for name, part in zip(_PARTS, split.parts, strict=True):
        _check_examples(path, name, part, dataset)
    fields = {
        "format": _FORMAT,
        "data": dataset.name,
        "examples": dataset.num_examples,
        "labels": label_digest(dataset),
        "protocol": split.protocol,
        "seed": split.seed,
        **{name: part.tolist() for name, part in zip(_PARTS, split.parts, strict=True)},
    }
    lines = [
        f"{json.dumps(name)}: {json.dumps(fields[name], separators=(',', ':'))}"
        for name in sorted(fields)
    ]
    try:
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error


def read_split(path: str | os.PathLike[str], dataset: Dataset) -> Split:
    """Reads a split that was written for this data set; the file is not trusted.

    Raises:
        DataError: there is no such file, or it cannot be read.
        FormatError: it is not a split file, or not one of this data set; names the field.
    """
    path = Path(path)
    fields = _load(path, dataset.num_examples)
    for name, kind in _TYPES.items():
        if name not in fields:
            raise FormatError(f"{path}: the field {name!r} is missing.")
        # Not isinstance: true is an int, too.
        if type(fields[name]) is not kind:
            raise FormatError(f"{path}: the field {name!r} must be {_IN_WORDS[kind]}.")
    if fields["format"] != _FORMAT:
        raise FormatError(
            f"{path}: the field 'format' must be {_FORMAT!r}, not {fields['format'][:40]!r}."
        )
    if fields["examples"] != dataset.num_examples:
        raise FormatError(
            f"{path}: the field 'examples' says {fields['examples']}, but {dataset.name} has "
            f"{dataset.num_examples}: the split is of other data."
        )
    if fields["labels"] != label_digest(dataset):
        raise FormatError(
            f"{path}: the field 'labels' does not fit the labels of {dataset.name}: the split is "
            f"of other data ({fields['data'][:40]!r})."
        )
    train, val, test = (_part(path, name, fields[name], dataset) for name in _PARTS)
    try:
        return Split(train, val, test, protocol=fields["protocol"], seed=fields["seed"])
    except FormatError as error:
        raise FormatError(
            f"{path}: the fields 'train', 'val' and 'test' name an example twice."
        ) from error


def digest(split: Split) -> str:
    """The sha256 of the three parts of a split: equal exactly for equal splits."""
    total = hashlib.sha256()
    for name, part in zip(_PARTS, split.parts, strict=True):
        total.update(f"{name} {part.numel()}\n".encode())
        total.update(part.numpy().astype("<i8").tobytes())
    return total.hexdigest()


def label_digest(dataset: Dataset) -> str:
    """The sha256 of the labels: equal exactly for equal ones."""
    y = dataset.y.numpy()
    header = f"{'regression' if dataset.is_regression else 'classes'} {y.shape}\n"
    kept = y.astype("<f4" if dataset.is_regression else "<i8")
    if dataset.is_regression:
        # There are many NaNs; one stands for all.
        kept[np.isnan(kept)] = np.nan
    return hashlib.sha256(header.encode() + kept.tobytes()).hexdigest()


def _load(path: Path, num_examples: int) -> dict[str, Any]:
    # No id of an example needs more than its digits, a comma and an indented line.
    limit = 65_536 + 32 * num_examples
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing: put the split file there.") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if len(content) > limit:
        raise FormatError(f"{path} is too large for a split of {num_examples} examples.")
    try:
        fields = json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not a JSON text in UTF-8.") from error
    if not isinstance(fields, dict):
        raise FormatError(f"{path} must be a JSON object with the fields {', '.join(_TYPES)}.")
    return fields


def _part(path: Path, name: str, values: list[Any], dataset: Dataset) -> Tensor:
    for value in values:
        if type(value) is not int or not 0 <= value < dataset.num_examples:
            raise FormatError(
                f"{path}: the field {name!r} must hold whole numbers from 0 to "
                f"{dataset.num_examples - 1}, not {str(value)[:40]}."
            )
    part = torch.tensor(values, dtype=torch.int64)
    _check_examples(path, name, part, dataset)
    return part


def _check_examples(path: Path, name: str, part: Tensor, dataset: Dataset) -> None:
    """Refuses an empty part and examples without a label."""
    if part.numel() == 0:
        raise FormatError(f"{path}: the field {name!r} holds no examples.")
    unknown = part[~torch.isin(part, dataset.labelled)]
    if unknown.numel():
        raise FormatError(
            f"{path}: the field {name!r} holds example {int(unknown[0])}, which has no label."
        )
