"""What a study is, how one is run, and the page of what studies found.

A `Study` has a claim, settings, and a function from settings to a `Finding`. `perform` runs it,
`write_gallery` writes the page. At the end stands what several studies measure with.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nlsf.errors import ConfigError
from nlsf.report.charts import Chart, DataTable, Series, Tiles
from nlsf.report.numbers import plural, seconds
from nlsf.report.page import Page, write_page
from nlsf.spectral import Lens
from nlsf.train.settings.toml import from_table, parse_setting

Floats: TypeAlias = NDArray[np.float64]

_TINY = 1e-300


@dataclass(frozen=True)
class Finding:
    """What a study measured, and what follows from it.

    Attributes:
        data: the measured numbers and arrays, by name.
        charts: pictures of them, each with a caption for somebody who has not read the paper.
        conclusion: at most three sentences, each with the number behind it.
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


def at_least(low: float, **values: float) -> None:
    """Raises unless each of the named settings is at least ``low``."""
    for name, value in values.items():
        if not value >= low:
            raise ConfigError(f"{name} must be at least {low:g}, not {value!r}.")


def read_settings(study: Study, texts: Sequence[str] = ()) -> Any:
    """The settings of a study with ``key=value`` texts of the command line on top.

    Raises:
        ConfigError: a key that the study does not have, or a value that the key cannot have.
    """
    parsed = (parse_setting(text) for text in texts)
    return from_table(study.settings, {".".join(path): value for path, value in parsed})


def perform(study: Study, settings: Any = None) -> Outcome:
    """Runs a study, by default with its own settings, and takes the time."""
    settings = study.settings() if settings is None else settings
    start = time.perf_counter()
    finding = study.run(settings)
    return Outcome(study, settings, finding, time.perf_counter() - start)


def write_gallery(findings: Sequence[Outcome], path: Path) -> Path:
    """Writes a self-contained page (.html) with a section a study, and returns its path.

    Raises:
        ConfigError: the path does not end in .html.
        OSError: the file cannot be written.
    """
    return write_page(gallery_page(findings), path)


def gallery_page(findings: Sequence[Outcome]) -> Page:
    """The page: an overview where there are several studies, then a section a study."""
    held = sum(outcome.finding.holds for outcome in findings)
    duration = seconds(sum(outcome.seconds for outcome in findings))
    result = f"{plural(len(findings), 'claim')} of the paper, of which {held} held"
    if len(findings) == 1:
        result = "The claim held" if held else "The claim did not hold"
    page = Page(
        "The theory of nonlinear spectral filters, measured",
        f"{result} on what was sampled. Computed in {duration}.",
    )
    if len(findings) > 1:
        tiles = [
            (o.study.title, "holds" if o.finding.holds else "does not hold", o.finding.conclusion)
            for o in findings
        ]
        failed = [o.study.title for o in findings if not o.finding.holds]
        text = f"Not all claims held: {'; '.join(failed)}." if failed else "Every claim held."
        text += " Each study has a section below, with what was measured and how."
        page.section("Overview", text, Tiles(tiles))
    for outcome in findings:
        _section(page, outcome)
    return page


def _section(page: Page, outcome: Outcome) -> None:
    study, finding = outcome.study, outcome.finding
    held = "yes" if finding.holds else "no"
    tiles = Tiles(
        [
            ("Claim held", held, "on everything that was sampled"),
            ("Time", seconds(outcome.seconds), f"nlsf lab run {study.name}"),
        ]
    )
    table = DataTable(
        "Settings",
        f"To change one: nlsf lab run {study.name} --set name=value",
        ["Name", "Value", "Meaning"],
        [
            [field.name, _text(getattr(outcome.settings, field.name)), field.metadata["text"]]
            for field in dataclasses.fields(outcome.settings)
        ],
    )
    text = f"Found: {finding.conclusion}\n\nClaim: {study.claim}"
    page.section(study.title, text, tiles, *finding.charts, table)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def remarks(*rows: tuple[str, str]) -> DataTable:
    """Where the paper's text needs a word: pairs of what it says and what was measured."""
    return DataTable(
        "The text and the numbers",
        "Details in which the text of the paper is not exact, with what was measured instead. None "
        "of them touches the claim unless the conclusion above says so.",
        ["The text", "Measured"],
        [list(row) for row in rows],
    )


def lines(x: ArrayLike, named: Mapping[str, ArrayLike], **how: bool) -> list[Series]:
    """Series over the same x, by their names; ``points`` and ``faint`` as in `Series`."""
    along = np.asarray(x).tolist()
    return [Series(name, along, np.asarray(y).tolist(), **how) for name, y in named.items()]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """PyTorch's random numbers of this seed inside; those outside go on as if nothing had been."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def relative_error(found: Tensor | Floats, expected: Tensor | Floats) -> float:
    """How far one array is from another, relative to that one."""
    norm: Any = torch.linalg.vector_norm if isinstance(found, Tensor) else np.linalg.norm
    return float(norm(found - expected) / norm(expected))


def fitted_power(x: ArrayLike, y: ArrayLike) -> float:
    """The exponent p for which y is nearest to a multiple of x^p, on logarithmic axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def with_coefficients(
    x: Tensor, lens: Lens, wanted: Tensor, *, p: float = 2.0, normalize: bool = False
) -> Tensor:
    """The signal with the directions of x in every band, and these norms there.

    Args:
        x: (..., N, d), not zero in any band where something is wanted.
        lens: the bands.
        wanted: (..., B, d), what `analyze` is to give for the result.
        p: of the norm.
        normalize: of the norm.
    """
    norms = lens(x).norms(p=p, normalize=normalize)
    scale = wanted / norms.clamp(min=_TINY)
    parts = torch.stack(list(lens(x).parts()), dim=-3)
    return (scale.unsqueeze(-2) * parts).sum(-3)
