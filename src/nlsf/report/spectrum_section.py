"""The spectrum of a graph and its bands: `spectral_charts`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from nlsf.report.charts import BarChart, Chart, DataTable, LineChart, Region, Series
from nlsf.report.numbers import evenly_chosen, histogram, percent, plural
from nlsf.report.trained import Branch, TrainedRun
from nlsf.spectral import Bands, IndexBands, Spectrum
from nlsf.spectral.lens.summary import summarize

_REPEATED = 10
"""Eigenvalues in the table of those that repeat most."""

_ENTRIES = 2**26
"""Entries of a signal that are looked at: 256 MB in single precision."""

_GRAPHS = 256
"""Graphs of a set whose spectra are put together."""


def spectrum_charts(run: TrainedRun, branch: Branch) -> list[Chart]:
    """What one branch of a model sees of its graph, or of its graphs."""
    bands = branch.bands
    if run.dataset.level == "graph":
        features = [run.dataset.graphs[i].x for i in run.predicted[:_GRAPHS]]
        return set_charts(branch.spectra[:_GRAPHS], bands, features)
    spectrum = branch.spectra[0]
    if run.dataset.signals is not None:
        signals = run.dataset.signals[run.split.test[:_GRAPHS]]
        return spectral_charts(spectrum, bands, signals.movedim(0, 1).flatten(1))
    return spectral_charts(
        spectrum, bands, run.dataset.graphs[0].x, run.dataset.y, run.dataset.classes
    )


def spectral_charts(
    spectrum: Spectrum,
    bands: Bands,
    x: Tensor | None = None,
    y: Tensor | None = None,
    classes: Sequence[str] = (),
) -> list[Chart]:
    """The spectrum of one graph: staircase, density, repetitions, and what bands hold.

    Args:
        spectrum: all eigenpairs, or as many as the bands need.
        bands: the partition.
        x: (N, F), dense or ``torch.sparse_csr``: features; ``None`` for none.
        y: (N,) the class of each node, -1 where not known; or (N, T) targets, NaN where not known;
            ``None`` where labels do not belong to nodes.
        classes: the names of the classes.
    """
    charts: list[Chart] = [staircase(spectrum, bands)]
    if spectrum.num_pairs > 2:
        regions = _regions(spectrum, bands)
        partial = "" if spectrum.is_complete else f", the {spectrum.num_pairs:,} that were computed"
        charts.append(_density(spectrum.frequencies, regions, spectrum.name, partial=partial))
    return [*charts, *_repeated(spectrum), _shares(spectrum, bands, x, y, classes)]


def set_charts(spectra: Sequence[Spectrum], bands: Bands, x: Sequence[Tensor]) -> list[Chart]:
    """The spectra of many graphs: one staircase, all eigenvalues, and what bands hold on average.

    Args:
        spectra: one a graph.
        bands: the partition, the same family for all.
        x: features (N_g, F) of each graph.
    """
    sizes = torch.tensor([one.num_nodes for one in spectra])
    typical = spectra[int(sizes.argsort(stable=True)[(len(sizes) - 1) // 2])]
    summaries = [summarize(s, bands, dense(f)) for s, f in zip(spectra, x, strict=True)]
    held = torch.tensor([[row.dimension for row in rows] for rows in summaries]).double()
    energy = torch.tensor([[row.energy for row in rows] for rows in summaries]).double()
    share = (held / held.sum(1, keepdim=True).clamp(min=1)).mean(0)
    every = torch.cat([one.frequencies for one in spectra])
    return [
        staircase(typical, bands, " of a graph of median size"),
        _density(every, [], typical.name, f" of {plural(len(spectra), 'test graph')}"),
        BarChart(
            "What each band holds, on average",
            f"Mean over {plural(len(spectra), 'test graph')}. {_ENERGY}",
            "band, from the lowest frequency",
            "share",
            band_names(bands, held.shape[1]),
            [
                ("of the eigenvalues", share.tolist()),
                ("of the features' energy", energy.mean(0).tolist()),
            ],
            percent=True,
        ),
    ]


def staircase(spectrum: Spectrum, bands: Bands, of: str = "") -> LineChart:
    """The eigenvalues in their order, with the bands as stretches of it."""
    chosen = evenly_chosen(spectrum.num_pairs)
    missing = spectrum.num_nodes - spectrum.num_pairs
    partial = (
        f" Only the {spectrum.num_pairs:,} leading ones of {spectrum.num_nodes:,} were computed, "
        f"because no band needs more; the others reach up to {spectrum.bandwidth:.4g}."
        if missing
        else ""
    )
    names = band_names(bands, bands.n_bands + 1)
    stretches = _stretches(bands.assign(spectrum).tolist())
    return LineChart(
        f"Eigenvalues of {spectrum.name}{of}",
        "An eigenvalue is a frequency of the graph: low ones belong to patterns that vary slowly "
        "from neighbour to neighbour, high ones to patterns that jump. Flat steps are eigenvalues "
        f"that repeat. Shaded: the bands in which the filter groups them.{partial}",
        "number of the eigenvalue",
        "eigenvalue",
        [Series(spectrum.name, (chosen + 1.0).tolist(), spectrum.values[chosen].tolist())],
        regions=[Region(first + 0.5, last + 1.5, names[band]) for first, last, band in stretches],
        log_x=spectrum.num_pairs > 200,
    )


def band_names(bands: Bands, count: int) -> list[str]:
    """Names of ``count`` bands, of which those beyond the family's own are what it leaves out."""
    return [f"band {j + 1}" if j < bands.n_bands else "the rest" for j in range(count)]


def dense(x: Tensor) -> Tensor:
    """A signal (N, F) as a dense tensor; of a very wide one, evenly chosen channels."""
    nodes, channels = x.shape
    wanted = min(channels, max(_ENTRIES // max(nodes, 1), 1))
    chosen = torch.from_numpy(evenly_chosen(channels, limit=max(wanted, 2)))
    if x.layout == torch.strided:
        return x if len(chosen) == channels else x[:, chosen]
    if len(chosen) == channels:
        return x.to_dense()
    from scipy.sparse import csr_matrix

    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return torch.from_numpy(csr_matrix(parts, shape=tuple(x.shape))[:, chosen.numpy()].toarray())


def label_signal(y: Tensor, num_classes: int) -> Tensor:
    """Labels as a signal (N, C), one-hot, or (N, T); zero where a label is not known."""
    if y.is_floating_point():
        return y.nan_to_num(0.0)
    known = (y >= 0).unsqueeze(1)
    return one_hot(y.clamp(min=0), max(num_classes, int(y.max()) + 1)) * known


_ENERGY = (
    "Energy is the sum of squares: a band with much energy and few eigenvalues is where the signal "
    "lives. Features or labels that sit in the lowest bands change little between neighbours."
)


def _shares(
    spectrum: Spectrum, bands: Bands, x: Tensor | None, y: Tensor | None, classes: Sequence[str]
) -> BarChart:
    constant = torch.ones(spectrum.num_nodes, 1)
    features = summarize(spectrum, bands, constant if x is None else dense(x))
    held = [row.dimension / max(spectrum.num_nodes, 1) for row in features]
    series: list[tuple[str, list[float]]] = [("of the eigenvalues", held)]
    if x is not None:
        series.append(("of the features' energy", [row.energy for row in features]))
    note = ""
    if y is not None:
        labels = summarize(spectrum, bands, label_signal(y, len(classes)))
        what = "targets" if y.is_floating_point() else "labels"
        series.append((f"of the {what}' energy", [row.energy for row in labels]))
        note = (
            f" The {what} are all that are known, those of test nodes included: this is about the "
            "data, and nothing was chosen by it."
        )
    return BarChart(
        f"What each band of {spectrum.name} holds",
        _ENERGY + note,
        "band, from the lowest frequency",
        "share",
        _band_ends(spectrum, bands, len(features)),
        series,
        percent=True,
    )


def _band_ends(spectrum: Spectrum, bands: Bands, count: int) -> list[str]:
    """Short names of ``count`` bands: their number and, of value bands, where they end."""
    rest = ["rest"] * (count - bands.n_bands)
    if isinstance(bands, IndexBands):
        return [*(str(j + 1) for j in range(bands.n_bands)), *rest]
    assigned = bands.assign(spectrum)
    names = []
    for j in range(bands.n_bands):
        inside = spectrum.frequencies[assigned == j]
        end = f"to {float(inside.max()):.2g}" if len(inside) else f"above {spectrum.reach:.2g}"
        names.append(f"{j + 1}: {'empty' if spectrum.is_complete and not len(inside) else end}")
    return [*names, *rest]


def _density(
    frequencies: Tensor, regions: list[Region], name: str, of: str = "", partial: str = ""
) -> LineChart:
    edges, counts = histogram(frequencies, bins=80)
    x = [edge for edge in edges for _ in range(2)]
    y = [0.0, *(float(count) for count in counts for _ in range(2)), 0.0]
    return LineChart(
        f"Where the eigenvalues of {name}{of} lie",
        f"How many eigenvalues fall on each stretch of the frequency axis{partial}. A tall spike "
        "is an eigenvalue that repeats very often, as nodes with the same neighbours cause.",
        "eigenvalue",
        "eigenvalues",
        [Series("eigenvalues", x, y)],
        regions=regions,
    )


def _regions(spectrum: Spectrum, bands: Bands) -> list[Region]:
    """The bands on the frequency axis, each from where the one before ends."""
    assigned = bands.assign(spectrum).tolist()
    frequency = spectrum.frequencies.tolist()
    regions, end = [], 0.0
    for _, last, band in _stretches(assigned):
        start, end = end, frequency[last]
        if end > start and band < bands.n_bands:
            regions.append(Region(start, end, f"band {band + 1}"))
    return regions


def _stretches(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Stretches of equal numbers: first and last place, and the number."""
    found, first = [], 0
    for number, same in groupby(numbers):
        last = first + len(list(same)) - 1
        found.append((first, last, number))
        first = last + 1
    return found


def _repeated(spectrum: Spectrum) -> list[Chart]:
    """A table of the eigenvalues that repeat most; nothing where none does."""
    count = spectrum.multiplicities
    order = torch.sort(count, descending=True, stable=True).indices
    order = order[count[order] > 1][:_REPEATED]
    if not len(order):
        return []
    values = spectrum.values[torch.searchsorted(spectrum.eigenspaces, order)].tolist()
    rows = [
        [f"{value:.6g}", f"{times:,}", percent(times / spectrum.num_nodes)]
        for value, times in zip(values, count[order].tolist(), strict=True)
    ]
    return [
        DataTable(
            f"Eigenvalues of {spectrum.name} that repeat most",
            "An eigenvalue that repeats is an eigenspace of several dimensions; no direction "
            "inside it is preferred, so the filter treats it as one. The eigenvalue 0 repeats once "
            "a component.",
            ["eigenvalue", "times", "share of all"],
            rows,
        )
    ]
