"""The page of a run, `run_page`, and what writes it or a comparison of runs, `report`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from nlsf.data.dataset import Dataset
from nlsf.errors import ConfigError, NLSFError
from nlsf.nn.layers.spectral_layer import spectral_branches
from nlsf.report.compare import comparison_page
from nlsf.report.filter_section import filter_charts, symmetry_charts
from nlsf.report.numbers import plural
from nlsf.report.page import Page, check_name, write_page
from nlsf.report.predictions_section import error_charts, graph_charts
from nlsf.report.results_section import (
    learning_curves,
    overview_charts,
    overview_text,
    settings_charts,
    timing_charts,
)
from nlsf.report.runs import RunRecord
from nlsf.report.spectrum_section import spectrum_charts
from nlsf.report.trained import TrainedRun
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.train import RunResult

Run: TypeAlias = str | Path | RunFolder | RunResult
"""A run: its folder, or what `nlsf.train.train` returned."""


def report(
    run: Run | Sequence[Run],
    output: str | Path | None = None,
    *,
    seed: int | None = None,
    dataset: Dataset | None = None,
    cache: bool = True,
    open: bool = False,
) -> Path:
    """Writes the page of a run, or one that compares several runs.

    Args:
        run: a run, finished or not; or a list of two or more.
        output: the file to write; by default ``report.html`` in the run's folder, or
            ``comparison.html`` in the folder that all runs lie in.
        seed: which model of a run to show; by default the one that did best on validation.
        dataset: the data, where the run was started with a `Dataset` rather than a name.
        cache: keep spectra on disk for the next time.
        open: show the page in the browser.

    Returns:
        The file.
    """
    runs = [run] if isinstance(run, str | Path | RunFolder | RunResult) else run
    folders = [_folder(one) for one in runs]
    if output is not None:
        check_name(Path(output))  # before the work
    if not folders:
        raise ConfigError("Which run? Name at least one run folder.")
    if len(folders) == 1:
        page = run_page(folders[0], seed=seed, dataset=dataset, cache=cache)
        path = folders[0].path / "report.html"
    elif seed is not None or dataset is not None:
        raise ConfigError("seed and dataset belong to the page of one run, not to a comparison.")
    else:
        page = comparison_page(folders)
        path = common_parent([folder.path for folder in folders]) / "comparison.html"
    return write_page(page, Path(output) if output is not None else path, open=open)


def run_page(
    folder: RunFolder,
    *,
    seed: int | None = None,
    dataset: Dataset | None = None,
    cache: bool = True,
) -> Page:
    """What a run has learned, as a page.

    An unfinished run has its learning curves so far. Where the data are not at hand, what needs
    them is left out, and the page says why.

    Args:
        folder: the run.
        seed: the model that is shown in detail; by default the one that did best on validation.
        dataset: the data, before features are made, where the run was started with a `Dataset`.
        cache: keep spectra on disk.

    Raises:
        ConfigError: the run has no such seed.
        DataError: ``dataset`` is not what the run was trained on.
    """
    record = RunRecord.read(folder, seed)
    state = plural(len(record.results), "seed") if record.finished else "unfinished"
    page = Page(
        record.name, f"model {record.model}, protocol {record.settings['protocol']}, {state}"
    )
    if record.finished:
        page.section("Overview", overview_text(record), *overview_charts(record))
    else:
        page.section("Unfinished", _unfinished(record))
    curves = learning_curves(record)
    text = "One epoch is one pass over the training examples."
    page.section(
        "Learning curves", text if curves else f"Seed {record.seed} has no epochs to show.", *curves
    )
    if record.finished:
        try:
            run = TrainedRun.of(record, dataset, cache=cache)
        except NLSFError as error:
            if dataset is not None:
                raise
            page.section("The model", f"What needs the data or the model is left out. {error}")
        else:
            _model(page, run)
        page.section("Time", "", *timing_charts(record))
    page.section("Settings and versions", "", *settings_charts(record))
    return page


def _folder(run: Run) -> RunFolder:
    if isinstance(run, RunResult):
        return run.folder
    return run if isinstance(run, RunFolder) else RunFolder.open(Path(run))


def common_parent(paths: Sequence[Path]) -> Path:
    """The innermost folder that all of these folders lie in, as the user wrote it if it can be."""
    if len({path.parent for path in paths}) == 1:
        return paths[0].parent
    return Path(os.path.commonpath([path.resolve().parent for path in paths]))


def _unfinished(record: RunRecord) -> str:
    count = len({row["seed"] for row in record.metrics})
    so_far = "No epoch is finished yet"
    if count:
        so_far = f"{plural(count, 'seed')} of {len(record.seeds)} trained for at least one epoch"
    return (
        f"This run has no results yet: it is still training, or was interrupted. {so_far}. Go on "
        f"with: nlsf train --resume {record.folder.path}"
    )


def _model(page: Page, run: TrainedRun) -> None:
    """The sections that look into the model."""
    shown = f" All of it is about seed {run.record.seed}." if len(run.record.seeds) > 1 else ""
    what = {"node": "nodes", "graph": "graphs", "signal": "signals"}[run.dataset.level]
    page.section(
        "Predictions",
        f"What the model says of the test {what}, which it was not trained on.{shown}",
        *error_charts(run),
    )
    drawing = graph_charts(run)
    page.section("The graph", "" if drawing else "The graphs are too large to be drawn.", *drawing)
    if not run.branches:
        page.section("Spectrum and filters", f"The model {run.record.model} {_not_shown(run)}")
        return
    for branch in run.branches:
        page.section(
            f"Spectrum: {branch.title}",
            "A filter sees a graph through the eigenvalues of its Laplacian, grouped in bands.",
            *spectrum_charts(run, branch),
        )
    page.section(
        "What the filters learned",
        "A filter measures how much of each channel lies in each band, and from these numbers "
        "decides how strongly each band passes.",
        *filter_charts(run),
    )
    page.section(
        "Symmetry",
        "The filters are built to respect the graph's own translations; here that is measured.",
        *symmetry_charts(run),
    )


def _not_shown(run: TrainedRun) -> str:
    if any(spectral_branches(part) for part in run.model.modules()):
        # They see one coarsened graph after the other, which no single spectrum describes.
        return "has spectral filters, but this page cannot show the filters of this model yet."
    return "has no spectral filters: there are no bands, gains or symmetries to show."
