"""The page of a spectrum: what it says of labels must be right for graphs that we know."""

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.generators import torus
from nlsf.report.charts import BarChart, Tiles
from nlsf.report.spectrum_page import (
    centred,
    lower_half,
    mean_frequency,
    size_classes,
    spectrum_page,
    verdict,
)
from nlsf.spectral import DyadicBands, IndexBands, laplacian, partial_eigh
from nlsf.testing.graphs import complete
from train.small import graph_data, node_data, random, regression_data, signal_data

BANDS = DyadicBands(0.5, 3)


def spectra_of(graph, bands=None):
    shifts = [laplacian(graph), laplacian(graph, normalization="sym")]
    return [partial_eigh(shift, bands=bands) for shift in shifts]


def page_of(dataset, bands=BANDS, *, partial=False, graph=0):
    spectra = spectra_of(dataset.graphs[graph], bands if partial else None)
    return spectrum_page(dataset, spectra, bands, graph=graph)


def charts(page, kind):
    return [c for _, _, some in page._sections for c in some if isinstance(c, kind)]


def torus_data(label, rows=8):
    """Labels on a torus with an even side, by a function of row and column."""
    data = torus(rows, rows)
    row, column = torch.arange(rows * rows) // rows, torch.arange(rows * rows) % rows
    graph = Data(edge_index=data.edge_index, num_nodes=rows * rows)
    return Dataset("torus", "node", (graph,), label(row, column), classes=("a", "b"))


HALVES = torus_data(lambda row, column: (row >= 4).long())
CHESS = torus_data(lambda row, column: (row + column) % 2)


def test_halves_are_smooth_and_a_chessboard_is_rough():
    smooth = page_of(HALVES)._sections[0][1]
    rough = page_of(CHESS)._sections[0][1]
    assert "The labels are smooth: neighbours tend to agree" in smooth
    assert "densest in band 1" in smooth
    assert "holds 0.00 % of the labels' energy" in rough
    assert "The labels are rough: neighbours tend to differ" in rough
    assert "densest in band 3" in rough


def test_no_band_is_dense_where_labels_are_random():
    page = page_of(torus_data(lambda row, column: (random(64) > 0).long()), DyadicBands(0.5, 2))
    assert "densest" not in page._sections[0][1]
    assert page._sections[0][1].endswith(".")


def test_a_large_graph_is_judged_without_its_eigenpairs():
    text = page_of(CHESS, IndexBands(2), partial=True)._sections[0][1]
    # A chessboard is the eigenvector of the largest eigenvalue, which is twice the mean.
    assert text.startswith("The labels are rough")
    assert "Their mean frequency is 2.00 times that of random labels" in text
    page = page_of(HALVES, IndexBands(2), partial=True)
    assert "smooth" in page._sections[0][1]
    assert "of 64 eigenvalues" in page._sections[1][1]


@pytest.mark.parametrize("normalization", [None, "sym"])
def test_random_signals_have_half_their_energy_below(normalization):
    shift = laplacian(node_data().graphs[0], normalization=normalization)
    spectrum = partial_eigh(shift)
    share = lower_half(spectrum, random(60, 2_000))
    assert share == pytest.approx(0.5, abs=0.02)
    assert mean_frequency(shift, random(60, 2_000)) == pytest.approx(1, abs=0.05)


def test_the_share_does_not_depend_on_the_basis():
    spectrum = partial_eigh(laplacian(complete(7)))  # one eigenspace of 6 dimensions
    x = random(7, 3).double()
    x = x - x.mean(0)
    below = (7 / 2 - 1) / 6
    assert lower_half(spectrum, x) == pytest.approx(below)
    assert lower_half(spectrum, torch.ones(7, 1)) == pytest.approx(1)


def test_a_signal_without_energy_has_no_share():
    shift = laplacian(complete(4))
    assert lower_half(partial_eigh(shift), torch.zeros(4, 2)) is None
    assert mean_frequency(shift, torch.zeros(4, 2)) is None


def test_what_is_not_known_has_no_part_in_the_mean():
    known = torch.tensor([True, True, False])
    x = centred(torch.tensor([[1.0], [3.0], [100.0]]), known)
    assert x.tolist() == [[-1.0], [1.0], [0.0]]


@pytest.mark.parametrize(
    ("share", "word"), [(0.9, "smooth"), (0.1, "rough"), (0.5, "neither"), (0.55, "neither")]
)
def test_verdicts(share, word):
    assert verdict(share).startswith(word)


def test_components_are_counted():
    edges = torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]])
    y = torch.tensor([0, 1, 0, 1, 1])
    data = Dataset("pairs", "node", (Data(edge_index=edges, num_nodes=5),), y, classes=("a", "b"))
    page = page_of(data)
    (sizes,) = [c for c in charts(page, BarChart) if c.title == "Sizes of the components"]
    assert list(sizes.categories) == ["1", "2"]
    assert list(sizes.series[0][1]) == [1, 2]
    (tiles,) = charts(page, Tiles)
    assert ("Components", "3") in [item[:2] for item in tiles.items]


def test_a_connected_graph_has_no_chart_of_components():
    assert all(c.title != "Sizes of the components" for c in charts(page_of(HALVES), BarChart))


def test_every_size_is_counted_once():
    sizes = list(range(1, 100))
    names, counts = size_classes(sizes)
    assert sum(counts) == 99
    for name, count in zip(names, counts, strict=True):
        low, _, high = name.partition(" to ")
        assert count == min(int(high or low), 99) - int(low) + 1


@pytest.mark.parametrize("data", [node_data, regression_data, graph_data, signal_data])
def test_every_kind_of_data_gives_a_page(data):
    dataset = data()
    html = page_of(dataset).html()
    assert dataset.name in html
    assert len(html) < 400_000
    text = page_of(dataset)._sections[0][1]
    assert ("Labels belong to whole" in text) == (dataset.level != "node")


def test_sparse_features():
    titles = [c.title for c in charts(page_of(node_data(sparse=True)), BarChart)]
    assert "What each band of N holds" in titles


def test_labels_that_do_not_vary():
    one_class = torus_data(lambda row, column: torch.zeros_like(row))
    assert page_of(one_class)._sections[0][1].startswith("No labels that vary")
    unknown = torus_data(lambda row, column: torch.full_like(row, -1))
    assert page_of(unknown)._sections[0][1].startswith("No labels that vary")


def test_one_graph_of_a_set():
    page = page_of(graph_data(), graph=3)
    assert page.title == "Spectrum of shapes, graph 3"


def test_names_are_shown_not_run():
    named = Dataset(
        "<script>alert(1)</script>", "node", HALVES.graphs, HALVES.y, classes=("<b>", "b")
    )
    html = page_of(named).html()
    assert "<script>alert(1)" not in html
    assert "Spectrum of &lt;script&gt;alert(1)" in html
