import numpy as np
import pytest

from nlsf.data import block_model, random_geometric
from nlsf.spectral import laplacian
from nlsf.spectral.density import estimate_count


@pytest.mark.parametrize("graph", [random_geometric(800), block_model(800)], ids=["geo", "block"])
@pytest.mark.parametrize("cut", [0.3, 0.7, 1.0, 1.3])
def test_the_estimate_is_near_the_count(graph, cut):
    shift = laplacian(graph, normalization="sym")
    values = np.linalg.eigvalsh(shift.matrix.toarray())
    found = estimate_count(shift.matrix, shift.bounds, cut)
    assert found == pytest.approx((values <= cut).sum(), abs=0.04 * 800)


def test_outside_the_spectrum():
    shift = laplacian(random_geometric(50))
    assert estimate_count(shift.matrix, shift.bounds, -1.0) == 0
    assert estimate_count(shift.matrix, shift.bounds, 1e3) == 50
