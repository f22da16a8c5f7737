"""A graph seen through its spectrum, without any model: `spectrum_page`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.report.charts import BarChart, Chart, Tiles
from nlsf.report.numbers import percent, plural
from nlsf.report.page import Page
from nlsf.report.spectrum_section import label_signal, spectral_charts
from nlsf.spectral import Bands, Spectrum, laplacian
from nlsf.spectral.lens.summary import summarize
from nlsf.spectral.operators.csr import connected_components
from nlsf.spectral.operators.shift import ShiftOperator

_SIGNALS = 256
"""Signals of a set whose energy is shown."""

_NOTICED = 0.05
"""The share of energy from which on a band counts."""

_DENSE = 1.5
"""How many times the energy of random labels a band must hold to be called dense."""

_CLEAR = 0.1
"""How far from a half a share must lie to be called smooth or rough."""

_NAMES = {"L": "the Laplacian L", "N": "the normalised Laplacian N"}


def spectrum_page(
    dataset: Dataset, spectra: Sequence[Spectrum], bands: Bands, *, graph: int = 0
) -> Page:
    """What the frequencies of a graph are, and where its features and labels lie among them.

    Args:
        dataset: the data.
        spectra: of the graph's L and N: whole, or as much as the bands need.
        bands: the bands to show.
        graph: which graph of a set of graphs.
    """
    one = dataset.graphs[graph]
    which = f", graph {graph}" if len(dataset.graphs) > 1 else ""
    edges = int(one.num_edges) // 2
    title = f"Spectrum of {dataset.name}{which}"
    page = Page(title, f"{plural(int(one.num_nodes), 'node')}, {plural(edges, 'edge')}")
    shifts = [laplacian(one), laplacian(one, normalization="sym")]
    labels = _labels(dataset)
    sentences = [_sentence(*pair, bands, labels) for pair in zip(spectra, shifts, strict=True)]
    sizes = [len(nodes) for nodes in connected_components(shifts[0].matrix)]
    page.section(
        "Overview", _overview_text(dataset, sentences), _tiles(one, sizes, spectra), *_pieces(sizes)
    )
    x = _features(dataset, one)
    y = dataset.y if dataset.level == "node" else None
    for spectrum, sentence in zip(spectra, sentences, strict=True):
        charts = spectral_charts(spectrum, bands, x, y, dataset.classes)
        name = _NAMES.get(spectrum.name, spectrum.name)
        page.section(f"Spectrum of {name}", f"{_partial(spectrum)}{sentence}".strip(), *charts)
    return page


def centred(signal: Tensor, known: Tensor) -> Tensor:
    """The signal (N, C) in float64 minus its mean over known rows; 0 where it is not known.

    The mean says how frequent a class is, and nothing of where on the graph it lies.
    """
    rows = signal[known].to(torch.float64)
    result = torch.zeros(signal.shape, dtype=torch.float64)
    result[known] = rows - rows.mean(0, keepdim=True)
    return result


def lower_half(spectrum: Spectrum, signal: Tensor) -> float | None:
    """The share of a signal's energy in the lower half of the eigenvalues.

    A random signal has a half of its energy there, whatever the graph. An eigenspace that reaches
    over the middle counts by the part of its dimensions that lies below.

    Args:
        spectrum: complete.
        signal: (N, C).

    Returns:
        0 to 1; ``None`` for a signal without energy.
    """
    vectors = spectrum.vectors.to(torch.promote_types(spectrum.vectors.dtype, torch.float64))
    energy = (vectors.mH @ signal.to(vectors.dtype)).abs().square().sum(-1)
    total = float(energy.sum())
    if not total > 0:
        return None
    count = spectrum.multiplicities.to(torch.float64)
    by_space = torch.zeros_like(count).index_add(0, spectrum.eigenspaces, energy)
    before = count.cumsum(0) - count
    below = ((spectrum.num_nodes / 2 - before) / count).clamp(0, 1)
    return float((by_space * below).sum()) / total


def mean_frequency(shift: ShiftOperator, signal: Tensor) -> float | None:
    """The mean frequency of a signal over that of a random one; needs no eigenpairs.

    It is the Rayleigh quotient of the signal divided by the mean of all eigenvalues.

    Args:
        shift: a Laplacian.
        signal: (N, C).

    Returns:
        1 for a random signal, less for a smoother one; ``None`` without energy or edges.
    """
    x = signal.numpy().astype(np.float64)
    energy = float(np.square(x).sum())
    mean = float(shift.matrix.diagonal().real.mean()) if shift.num_nodes else 0.0
    if not energy > 0 or not mean > 0:
        return None
    return float((x * (shift.matrix @ x)).real.sum()) / energy / mean


def verdict(share: float) -> str:
    """What a share of energy at low frequencies says, with a half for a random signal."""
    if share >= 0.5 + _CLEAR:
        return "smooth: neighbours tend to agree, homophilic in the spectral sense"
    if share <= 0.5 - _CLEAR:
        return "rough: neighbours tend to differ, heterophilic in the spectral sense"
    return "neither smooth nor rough: divided over low and high frequencies as by chance"


def _features(dataset: Dataset, graph: Data) -> Tensor | None:
    """(N, F): the features of the nodes, or signals side by side."""
    if dataset.signals is not None:
        return dataset.signals[:_SIGNALS].movedim(0, 1).flatten(1)
    x: Tensor | None = graph.x
    return x


def _labels(dataset: Dataset) -> Tensor | None:
    """Labels of nodes as a signal (N, C) without its mean; ``None`` where nodes have none."""
    if dataset.level != "node" or not len(dataset.labelled):
        return None
    known = torch.zeros(dataset.num_examples, dtype=torch.bool)
    known[dataset.labelled] = True
    return centred(label_signal(dataset.y, len(dataset.classes)), known)


def _sentence(spectrum: Spectrum, shift: ShiftOperator, bands: Bands, labels: Tensor | None) -> str:
    """What the labels look like to this operator; empty where that cannot be said."""
    if labels is None:
        return ""
    if spectrum.is_complete:
        share = lower_half(spectrum, labels)
        if share is None:
            return ""
        return (
            f"The labels are {verdict(share)}. The lower half of the frequencies of "
            f"{spectrum.name} holds {percent(share)} of the labels' energy; of random labels it "
            f"would hold 50 %. {_densest(spectrum, bands, labels)}".rstrip()
        )
    ratio = mean_frequency(shift, labels)
    if ratio is None:
        return ""
    return (
        f"The labels are {verdict(1 - ratio / 2)}. Their mean frequency is {ratio:.2f} times that "
        f"of random labels, measured with {spectrum.name} itself."
    )


def _densest(spectrum: Spectrum, bands: Bands, labels: Tensor) -> str:
    """The band with most of the labels' energy for its number of eigenvalues, if that is much."""
    rows = summarize(spectrum, bands, labels)
    number, row = max(
        ((j, row) for j, row in enumerate(rows, start=1) if row.energy >= _NOTICED),
        key=lambda pair: pair[1].energy / max(pair[1].dimension, 1),
        default=(0, None),
    )
    if row is None or row.energy * spectrum.num_nodes < _DENSE * row.dimension:
        return ""
    return (
        f"They are densest in band {number} ({row.label}), with {percent(row.energy)} of the "
        f"energy in {percent(row.dimension / spectrum.num_nodes)} of the eigenvalues: make bands "
        "narrow there."
    )


def _overview_text(dataset: Dataset, sentences: Sequence[str]) -> str:
    if any(sentences):
        return sentences[-1]
    if dataset.level != "node":
        return (
            f"Labels belong to whole {dataset.level}s here, so they have no place among the "
            "frequencies; only features are shown."
        )
    return "No labels that vary are known here; only features are shown."


def _tiles(graph: Data, sizes: Sequence[int], spectra: Sequence[Spectrum]) -> Tiles:
    nodes, edges = int(graph.num_nodes), int(graph.num_edges) // 2
    items = [
        ("Nodes", f"{nodes:,}", f"with {2 * edges / max(nodes, 1):.1f} neighbours on average"),
        ("Edges", f"{edges:,}", "each counted once"),
        (
            "Components",
            f"{len(sizes):,}",
            f"pieces without an edge between them; the largest has {max(sizes, default=0):,} nodes",
        ),
    ]
    for spectrum in spectra:
        items.append(
            (
                f"Largest frequency of {spectrum.name}",
                f"{spectrum.lam_max:.4g}",
                f"{spectrum.num_eigenspaces:,} different eigenvalues among "
                f"{spectrum.num_pairs:,} that were computed",
            )
        )
    return Tiles(items)


def _pieces(sizes: Sequence[int]) -> list[Chart]:
    """How many components of which size; nothing for a connected graph."""
    if len(sizes) < 2:
        return []
    names, counts = size_classes(sizes)
    return [
        BarChart(
            "Sizes of the components",
            "How many pieces of the graph have so many nodes. Every piece adds an eigenvalue 0, "
            "and no filter moves anything from one piece to another.",
            "nodes in a component",
            "components",
            names,
            [("components", counts)],
            log_y=max(counts) > 100,
        )
    ]


def size_classes(sizes: Sequence[int]) -> tuple[list[str], list[float]]:
    """Sizes counted in classes that double in width: 1, 2, 3 to 4, 5 to 8; without empty ones.

    Example:
        >>> size_classes([1, 1, 2, 7])
        (['1', '2', '5 to 8'], [2.0, 1.0, 1.0])
    """
    power, counts = np.unique([(size - 1).bit_length() for size in sizes], return_counts=True)
    names = []
    for high in (2 ** int(k) for k in power):
        low = high // 2 + 1
        names.append(f"{high:,}" if low >= high else f"{low:,} to {high:,}")
    return names, [float(count) for count in counts]


def _partial(spectrum: Spectrum) -> str:
    if spectrum.is_complete:
        return ""
    return (
        f"The graph is large, so it is shown by its leading eigenspaces: {spectrum.num_pairs:,} of "
        f"{spectrum.num_nodes:,} eigenvalues. "
    )
