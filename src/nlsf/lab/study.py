"""What a study is, and how one is run: `Study`, `Finding`, `Outcome`, `perform`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nlsf.errors import ConfigError
from nlsf.report.charts import Chart, DataTable

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """What a study measured, and what follows from it.

    Attributes:
        data: the measured numbers and arrays, by name.
        charts: pictures of them, each with a caption for somebody who has not read the paper.
        conclusion: one sentence, with the number behind it.
        holds: whether the claim held on everything that was sampled.
    """

    data: Mapping[str, Any]
    charts: Sequence[Chart]
    conclusion: str
    holds: bool


@dataclass(frozen=True)
class Study:
    """A claim of the paper that can be computed.

    Attributes:
        name: what it is called on the command line.
        title: a heading.
        claim: what the paper says, in a sentence or two, and where.
        settings: a frozen dataclass whose fields are made by `setting`; all have defaults.
        run: from settings to what was found.
    """

    name: str
    title: str
    claim: str
    settings: type[Any]
    run: Callable[[Any], Finding]


@dataclass(frozen=True)
class Outcome:
    """A study that was run: with which settings, what it found, and how many seconds it took."""

    study: Study
    settings: Any
    finding: Finding
    seconds: float


def setting(default: Any, text: str) -> Any:
    """A field of a study's settings: its default, and what it means."""
    return dataclasses.field(default=default, metadata={"text": text})


def read_settings(study: Study, texts: Sequence[str] = ()) -> Any:
    """The settings of a study with ``key=value`` texts of the command line on top.

    Raises:
        ConfigError: a key that the study does not have, or a value that the key cannot have.
    """
    from nlsf.train.settings.toml import from_table, parse_setting

    table = {}
    for text in texts:
        path, value = parse_setting(text)
        table[".".join(path)] = value
    return from_table(study.settings, table)


def perform(study: Study, settings: Any = None) -> Outcome:
    """Runs a study, by default with its own settings, and takes the time."""
    settings = study.settings() if settings is None else settings
    start = time.perf_counter()
    finding = study.run(settings)
    return Outcome(study, settings, finding, time.perf_counter() - start)


def at_least(low: float, **values: float) -> None:
    """Raises unless each of the named settings is at least ``low``."""
    for name, value in values.items():
        if not value >= low:
            raise ConfigError(f"{name} must be at least {low:g}, not {value!r}.")


def remarks(*rows: tuple[str, str]) -> DataTable:
    """Where the paper's text needs a word: pairs of what it says and what was measured."""
    return DataTable(
        "The text and the numbers",
        "Details in which the text of the paper is not exact, with what was measured instead. None "
        "of them touches the claim unless the conclusion above says so.",
        ["The text", "Measured"],
        [list(row) for row in rows],
    )
