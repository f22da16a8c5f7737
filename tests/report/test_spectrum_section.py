import pytest
import torch

from nlsf.data.generators import torus
from nlsf.report.charts import BarChart, DataTable, LineChart
from nlsf.report.spectrum_section import (
    dense,
    label_signal,
    set_charts,
    spectral_charts,
    staircase,
)
from nlsf.spectral import (
    AtomBands,
    DyadicBands,
    IndexBands,
    Spectrum,
    UniformBands,
    laplacian,
    partial_eigh,
)
from train.small import graph_data, node_data, random, regression_data


def spectrum_of(data, bands=None, normalization="sym"):
    return partial_eigh(laplacian(data, normalization=normalization), bands=bands)


FAMILIES = [
    DyadicBands(0.5, 4),
    DyadicBands(0.5, 4, 2),
    IndexBands(3),
    UniformBands(5),
    AtomBands(UniformBands(3), 2),
]


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("bands", FAMILIES, ids=str)
def test_what_the_bands_hold_sums_to_everything(bands, partial):
    data = node_data()
    graph = data.graphs[0]
    spectrum = spectrum_of(graph, bands if partial else None)
    shares = spectral_charts(spectrum, bands, graph.x, data.y, data.classes)[-1]
    assert isinstance(shares, BarChart)
    assert len(shares.series) == 3
    for _, values in shares.series:
        assert sum(values) == pytest.approx(1, abs=1e-5)


def test_the_energy_of_labels_is_that_of_their_projections():
    data = node_data()
    bands = UniformBands(4)
    spectrum = spectrum_of(data.graphs[0])
    shares = spectral_charts(spectrum, bands, None, data.y, data.classes)[-1]
    signal = torch.nn.functional.one_hot(data.y, 3).double()
    energy = (spectrum.vectors.T @ signal).square().sum(1)
    band = bands.assign(spectrum)
    expected = torch.stack([energy[band == j].sum() for j in range(4)]) / energy.sum()
    assert dict(shares.series)["of the labels' energy"] == pytest.approx(expected.tolist())


def test_unknown_labels_have_no_energy():
    y = torch.tensor([0, -1, 2])
    assert label_signal(y, 3).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    targets = torch.tensor([[1.5], [torch.nan]])
    assert label_signal(targets, 0).tolist() == [[1.5], [0.0]]


def test_targets_of_a_regression_are_called_so():
    data = regression_data()
    spectrum = spectrum_of(data.graphs[0])
    shares = spectral_charts(spectrum, UniformBands(2), data.graphs[0].x, data.y)[-1]
    assert shares.series[2][0] == "of the targets' energy"


def test_the_stairs_are_the_eigenvalues_and_bands_are_stretches_of_them():
    spectrum = spectrum_of(node_data().graphs[0])
    bands = UniformBands(3)
    chart = staircase(spectrum, bands)
    assert chart.series[0].x == [i + 1 for i in range(60)]
    assert chart.series[0].y == pytest.approx(spectrum.values.tolist())
    assert chart.regions[0].start == 0.5
    assert chart.regions[-1].end == 60.5
    held = [region.end - region.start for region in chart.regions]
    assert held == torch.bincount(bands.assign(spectrum)).tolist()
    assert "computed" not in chart.caption


def test_a_partial_spectrum_says_what_is_missing():
    bands = IndexBands(3)
    spectrum = spectrum_of(node_data().graphs[0], bands)
    assert not spectrum.is_complete
    caption = staircase(spectrum, bands).caption
    assert f"Only the {spectrum.num_pairs} leading ones of 60" in caption


def test_repeated_eigenvalues_are_listed():
    spectrum = spectrum_of(torus(4, 4), normalization=None)
    table = next(c for c in spectral_charts(spectrum, IndexBands(2)) if isinstance(c, DataTable))
    # 4 x 4 torus: the sums of two of 0, 2, 2, 4.
    assert table.rows == [
        ["4", "6", "37.50 %"],
        ["2", "4", "25.00 %"],
        ["6", "4", "25.00 %"],
    ]


def test_the_density_counts_every_eigenvalue():
    spectrum = spectrum_of(node_data().graphs[0])
    density = spectral_charts(spectrum, UniformBands(2))[1]
    assert isinstance(density, LineChart)
    line = density.series[0]
    assert sum(line.y[1:-1:2]) == 60
    assert (line.y[0], line.y[-1]) == (0, 0)


def test_a_large_spectrum_is_thinned():
    nodes, pairs = 100_000, 3_000
    values = torch.linspace(0, 1, pairs, dtype=torch.float64)
    vectors = torch.zeros(1, 1).expand(nodes, pairs)  # only their number counts here
    spectrum = Spectrum(values, vectors, values * 0, 2.0, 1.0, 1e-9, float(nodes))
    line = staircase(spectrum, IndexBands(8)).series[0]
    assert len(line.x) == 2_000
    assert (line.x[0], line.x[-1]) == (1, pairs)


def test_sparse_features_are_read_as_dense_ones():
    sparse = node_data(sparse=True).graphs[0].x
    assert torch.equal(dense(sparse), sparse.to_dense())


def test_of_very_wide_features_some_channels_are_chosen(monkeypatch):
    monkeypatch.setattr("nlsf.report.spectrum_section._ENTRIES", 60 * 10)
    sparse = node_data(sparse=True).graphs[0].x
    some = dense(sparse)
    assert some.shape == (60, 10)
    assert torch.equal(some, dense(sparse.to_dense()))
    assert torch.equal(some[:, 0], sparse.to_dense()[:, 0])


def test_a_set_of_graphs_is_averaged():
    data = graph_data(10)
    bands = DyadicBands(0.5, 3)
    spectra = [spectrum_of(graph) for graph in data.graphs]
    stairs, density, shares = set_charts(spectra, bands, [g.x for g in data.graphs])
    assert len(stairs.series[0].x) == 6  # sizes are 4 to 8
    assert sum(density.series[0].y[1:-1:2]) == sum(g.num_nodes for g in data.graphs)
    for _, values in shares.series:
        assert sum(values) == pytest.approx(1, abs=1e-5)


def test_a_graph_without_edges_has_charts():
    empty = torch.zeros(2, 0, dtype=torch.int64)
    spectrum = partial_eigh(laplacian(empty, num_nodes=3))
    charts = spectral_charts(spectrum, IndexBands(1), random(3, 2), torch.tensor([0, 1, -1]), "ab")
    assert charts[-1].series[0][1][0] == 1
