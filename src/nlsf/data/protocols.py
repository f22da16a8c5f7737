"""How examples are divided into training, validation and test: `draw`.

A drawn split depends on the labels, the protocol and the seed, and on nothing else. `write_split`
and `read_split` keep splits as small JSON files that can be committed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nlsf.data.dataset import Dataset, Split
from nlsf.errors import ConfigError, DataError, FormatError, unknown_name
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
    values = y.astype("<f4" if dataset.is_regression else "<i8")
    if dataset.is_regression:
        # There are many NaNs; one stands for all.
        values[np.isnan(values)] = np.nan
    return hashlib.sha256(header.encode() + values.tobytes()).hexdigest()


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


PROTOCOLS: Mapping[str, str] = MappingProxyType(
    {
        "public": "the split that the publisher of the data set made",
        "dense": "the 48/32/20 % splits that come with the files; the seed is the split's number",
        "given": "the splits in a file of your own; the seed is the split's number",
        "random": "20 examples a class for training, 500 for validation, 1000 for test",
        "sparse": "2.5 % for training, balanced over classes; 2.5 % for validation; 95 % for test",
        "A-B-C": "percentages of a random order, such as 60-20-20",
        "FILE.json": "a split file; {seed} in its name stands for the seed",
    }
)

_GIVEN = ("public", "dense", "given")
_PERCENTAGES = re.compile(r"(\d+)-(\d+)-(\d+)")
# Part of every seed, so that a split shares no random numbers with a model of the same seed.
_STREAM = 0x5B117


def draw(dataset: Dataset, protocol: str, seed: int) -> Split:
    """Divides the labelled examples of a data set.

    With n labelled examples in C classes, ``"random"`` takes 20 a class, then 500 and 1000 of the
    others. ``"sparse"`` does as GPRGNN and ChebNetII: it takes round(0.025 n / C) a class (all of a
    smaller class), validates on round(0.025 n) of the others, and tests on what remains.
    ``"A-B-C"`` cuts one random order at floor(n A / 100) and floor(n B / 100) further on.

    Args:
        dataset: what is divided.
        protocol: a key of `PROTOCOLS`, three percentages, or the path of a split file.
        seed: of the draw, at least 0; for given splits, the number of the split.

    Raises:
        ConfigError: there is no such protocol, or the data set cannot be divided by it.
    """
    if seed < 0:
        raise ConfigError(f"A split needs a seed of 0 or more, not {seed}.")
    if protocol.endswith(".json"):
        return read_split(protocol.replace("{seed}", str(seed)), dataset)
    if protocol in _GIVEN or protocol in dataset.given:
        return _given(dataset, protocol, seed)
    rng = np.random.default_rng([seed, _STREAM])
    if protocol in ("random", "sparse"):
        parts = _by_class(dataset, protocol, rng)
    elif _PERCENTAGES.fullmatch(protocol):
        parts = _by_percentage(dataset, protocol, rng)
    else:
        raise ConfigError(unknown_name("protocol", protocol, PROTOCOLS))
    train, val, test = map(torch.from_numpy, parts)
    return Split(train, val, test, protocol=protocol, seed=seed)


def _given(dataset: Dataset, protocol: str, seed: int) -> Split:
    splits = dataset.given.get(protocol, ())
    if not splits:
        others = [name for name in dataset.given if dataset.given[name]]
        choices = ", ".join(repr(name) for name in [*others, "60-20-20"])
        raise ConfigError(f"{dataset.name} comes without {protocol!r} splits; choose {choices}.")
    # One fixed split: other seeds vary the start of the model only.
    number = 0 if len(splits) == 1 else seed
    if number >= len(splits):
        raise ConfigError(
            f"{dataset.name} comes with {len(splits)} {protocol!r} splits, numbered from 0: there "
            f"is no number {seed}."
        )
    return replace(splits[number], protocol=protocol, seed=seed)


_Parts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _by_class(dataset: Dataset, protocol: str, rng: np.random.Generator) -> _Parts:
    """As many training examples in every class; the others in one random order."""
    if dataset.is_regression:
        raise ConfigError(
            f"{dataset.name} has no classes, which {protocol!r} splits need; "
            "use percentages such as '60-20-20'."
        )
    known = dataset.labelled.numpy()
    label = dataset.y.numpy()[known]
    counts = np.bincount(label, minlength=dataset.num_outputs)
    if protocol == "random":
        per_class, num_val, num_test = 20, 500, 1000
        needed = per_class * counts.size + num_val + num_test
        if counts.min(initial=per_class) < per_class or known.size < needed:
            raise ConfigError(
                f"'random' splits need {per_class} examples in every class and {needed} in all, "
                f"but {dataset.name} has {counts.min(initial=known.size)} in its smallest class "
                f"and {known.size} in all; use percentages such as '60-20-20'."
            )
    else:
        per_class = round(0.025 * known.size / max(counts.size, 1))
        num_val = round(0.025 * known.size)
        num_test = known.size
    order = rng.permutation(known.size)
    chosen = np.zeros(known.size, dtype=bool)
    for c in range(counts.size):
        chosen[order[label[order] == c][:per_class]] = True
    # A new order: in the old one, what is left of a large class comes early.
    rest = rng.permutation(known[~chosen])
    parts = known[chosen], rest[:num_val], rest[num_val : num_val + num_test]
    return _not_empty(parts, dataset, protocol)


def _by_percentage(dataset: Dataset, protocol: str, rng: np.random.Generator) -> _Parts:
    match = _PERCENTAGES.fullmatch(protocol)
    shares = [int(share) for share in match.groups()] if match else []
    if sum(shares) != 100 or min(shares) == 0:
        raise ConfigError(
            f"The protocol {protocol!r} must be three percentages above 0 that sum to 100, "
            "such as '60-20-20'."
        )
    order = rng.permutation(dataset.labelled.numpy())
    # Whole numbers: a float share could lose an example to rounding.
    a = order.size * shares[0] // 100
    b = a + order.size * shares[1] // 100
    return _not_empty((order[:a], order[a:b], order[b:]), dataset, protocol)


def _not_empty(parts: _Parts, dataset: Dataset, protocol: str) -> _Parts:
    for name, part in zip(("training", "validation", "test"), parts, strict=True):
        if part.size == 0:
            if not dataset.labelled.numel():
                raise ConfigError(
                    f"No example of {dataset.name} has a label: there is none to split."
                )
            raise ConfigError(
                f"The protocol {protocol!r} leaves no {name} examples of the "
                f"{dataset.labelled.numel()} labelled ones of {dataset.name}: "
                "label more of them, or choose other percentages."
            )
    return parts
