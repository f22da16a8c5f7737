import pytest
import torch

from cases import BANDS, GRAPHS
from nlsf.spectral import DyadicBands, IndexBands, laplacian, partial_eigh
from nlsf.spectral.lens.summary import summarize


@pytest.mark.parametrize("name", BANDS)
@pytest.mark.parametrize("graph", ["torus", "weighted", "isolated nodes"])
def test_shares_sum_to_one(name, graph):
    spectrum = partial_eigh(laplacian(GRAPHS[graph]), bands=BANDS[name])
    rows = summarize(spectrum, BANDS[name], torch.randn(spectrum.num_nodes, 3))
    assert sum(row.energy for row in rows) == pytest.approx(1)
    assert sum(row.dimension for row in rows) == spectrum.num_nodes
    assert len(rows) == BANDS[name].n_bands + (not BANDS[name].covers_all)


def test_labels_tell_the_range():
    spectrum = partial_eigh(laplacian(GRAPHS["torus"]))
    rows = summarize(spectrum, DyadicBands(0.5, 3), torch.ones(16, 1))
    assert [row.label for row in rows] == ["0 to 2", "4", "6 to 8"]
    assert rows[0].energy == pytest.approx(1)
    rows = summarize(spectrum, IndexBands(2), torch.ones(16, 1))
    assert [row.label for row in rows] == ["eigenspace 1", "eigenspace 2", "complement"]
