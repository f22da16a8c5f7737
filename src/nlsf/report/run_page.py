"""The page of a run: `run_page`."""

from __future__ import annotations

from nlsf.data.dataset import Dataset
from nlsf.errors import NLSFError
from nlsf.nn.layers.spectral_layer import spectral_branches
from nlsf.report.charts import Chart
from nlsf.report.errors_section import error_charts
from nlsf.report.filter_section import filter_charts
from nlsf.report.graph_section import graph_charts
from nlsf.report.page import Page
from nlsf.report.record import RunRecord
from nlsf.report.results_section import learning_curves, overview_charts, timing_charts
from nlsf.report.settings_section import settings_charts
from nlsf.report.spectrum_section import spectrum_charts
from nlsf.report.symmetry_section import symmetry_charts
from nlsf.report.trained import TrainedRun
from nlsf.report.wording import plural
from nlsf.train.run.folder import RunFolder


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
    model = f"model {record.model}, protocol {record.table['protocol']}"
    if not record.finished:
        page = Page(record.name, f"{model}, unfinished")
        _unfinished(page, record)
        return page
    page = Page(record.name, f"{model}, {plural(len(record.results), 'seed')}")
    page.section("Overview", "", *overview_charts(record))
    _curves(page, record)
    try:
        run = TrainedRun.of(record, dataset, cache=cache)
    except NLSFError as error:
        if dataset is not None:
            raise
        page.section("The model", f"What needs the data or the model is left out. {error}")
    else:
        _model(page, run)
    page.section("Time", "", *timing_charts(record))
    _settings(page, record)
    return page


def _unfinished(page: Page, record: RunRecord) -> None:
    count = len({row["seed"] for row in record.metrics})
    so_far = (
        f"{plural(count, 'seed')} of {len(record.seeds)} trained for at least one epoch"
        if count
        else "No epoch is finished yet"
    )
    page.section(
        "Unfinished",
        f"This run has no results yet: it is still training, or was interrupted. {so_far}. Go on "
        f"with: nlsf train --resume {record.folder.path}",
    )
    _curves(page, record)
    _settings(page, record)


def _curves(page: Page, record: RunRecord) -> None:
    charts = learning_curves(record)
    text = "One epoch is one pass over the training examples."
    if not charts:
        text = f"Seed {record.seed} has no epochs to show."
    page.section("Learning curves", text, *charts)


def _settings(page: Page, record: RunRecord) -> None:
    page.section("Settings and versions", "", *settings_charts(record))


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
    text = "" if drawing else "The graphs are too large to be drawn."
    page.section("The graph", text, *drawing)
    if run.branches:
        _spectral(page, run)
    else:
        page.section("Spectrum and filters", f"The model {run.record.model} {_not_shown(run)}")


def _not_shown(run: TrainedRun) -> str:
    if any(spectral_branches(part) for part in run.model.modules()):
        # They see one coarsened graph after the other, which no single spectrum describes.
        return "has spectral filters, but this page cannot show the filters of this model yet."
    return "has no spectral filters: there are no bands, gains or symmetries to show."


def _spectral(page: Page, run: TrainedRun) -> None:
    for branch in run.branches:
        page.section(
            f"Spectrum: {branch.title}",
            "A filter sees a graph through the eigenvalues of its Laplacian, grouped in bands.",
            *spectrum_charts(run, branch),
        )
    filters: list[Chart] = filter_charts(run)
    page.section(
        "What the filters learned",
        "A filter measures how much of each channel lies in each band, and from these numbers "
        "decides how strongly each band passes.",
        *filters,
    )
    page.section(
        "Symmetry",
        "The filters are built to respect the graph's own translations; here that is measured.",
        *symmetry_charts(run),
    )
