"""One page of studies: `write_gallery`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from nlsf.lab.study import Outcome
from nlsf.report.charts import DataTable, Tiles
from nlsf.report.numbers import plural, seconds
from nlsf.report.page import Page
from nlsf.report.write import write_page


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
    page = Page(
        "The theory of nonlinear spectral filters, measured",
        f"{plural(len(findings), 'claim')} of the paper, of which {held} held on what was sampled. "
        f"Computed in {duration}.",
    )
    if len(findings) > 1:
        text = "Each study has a section below, with what was measured and how."
        page.section("Overview", text, _overview(findings))
    for outcome in findings:
        _section(page, outcome)
    return page


def _overview(findings: Sequence[Outcome]) -> Tiles:
    return Tiles(
        [
            (o.study.title, "holds" if o.finding.holds else "does not hold", o.finding.conclusion)
            for o in findings
        ]
    )


def _section(page: Page, outcome: Outcome) -> None:
    study, finding = outcome.study, outcome.finding
    tiles = Tiles(
        [
            ("Claim held", _verdict(outcome), "on everything that was sampled"),
            ("Time", seconds(outcome.seconds), f"nlsf lab run {study.name}"),
        ]
    )
    text = f"Claim: {study.claim}\n\nFound: {finding.conclusion}"
    page.section(study.title, text, tiles, *finding.charts, _settings(outcome))


def _settings(outcome: Outcome) -> DataTable:
    rows = [
        [field.name, _text(getattr(outcome.settings, field.name)), field.metadata["text"]]
        for field in dataclasses.fields(outcome.settings)
    ]
    return DataTable(
        "Settings",
        f"To change one: nlsf lab run {outcome.study.name} --set name=value",
        ["Name", "Value", "Meaning"],
        rows,
    )


def _verdict(outcome: Outcome) -> str:
    return "yes" if outcome.finding.holds else "no"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
