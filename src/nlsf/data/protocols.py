"""How examples are divided into training, validation and test: `draw`.

A drawn split depends on the labels, the protocol and the seed, and on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray

from nlsf.data.dataset import Dataset, Split
from nlsf.data.split_file import read_split
from nlsf.errors import ConfigError, unknown_name

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
    others. ``"sparse"`` takes round(0.025 n / C) a class (all of a smaller class), then
    round(0.025 n) of the others for validation, and tests on what remains, as GPRGNN and ChebNetII
    do. ``"A-B-C"`` cuts one random order at floor(n A / 100) and floor(n B / 100) further on.

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
            raise ConfigError(
                f"The protocol {protocol!r} leaves no {name} examples of the "
                f"{dataset.labelled.numel()} labelled ones of {dataset.name}; "
                "use percentages such as '60-20-20'."
            )
    return parts
