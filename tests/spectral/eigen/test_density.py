import numpy as np
import pytest
import torch

from cases import GRAPHS, OPERATORS
from nlsf.spectral import laplacian
from nlsf.spectral.eigen.density import STEPS, SpectralMeasure
from nlsf.spectral.kernels import chebyshev
from nlsf.spectral.kernels.chebyshev import ScaledOperator, chebyshev_traces
from nlsf.testing.graphs import torus


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_measure_has_the_moments_of_its_vector(graph, operator):
    shift = OPERATORS[operator](GRAPHS[graph])
    if shift.num_nodes == 0:
        pytest.skip("no vector")
    measure = SpectralMeasure.of(shift.matrix, shift.scale, seed=5)
    kind = torch.complex64 if shift.is_complex else torch.float32
    z = torch.randn(shift.num_nodes, generator=torch.Generator().manual_seed(5), dtype=kind)
    z = (z / z.norm()).to(torch.complex128).numpy()
    values, vectors = np.linalg.eigh(shift.to_dense().numpy())
    weights = abs(vectors.conj().T @ z) ** 2
    angle = np.arccos(np.clip(values / shift.scale, -1, 1))
    order = min(40, measure.degree)
    expected = np.cos(np.arange(order + 1)[:, None] * angle) @ weights
    np.testing.assert_allclose(measure.chebyshev(0.0, shift.scale, order), expected, atol=1e-3)
    assert measure.weights.sum() == pytest.approx(1.0)


def test_moments_of_a_large_operator_stand_for_a_random_vector(monkeypatch):
    shift = laplacian(torus(50, 51), normalization="sym", self_loops=True)
    monkeypatch.setattr(chebyshev, "SHARP", 0)
    operator = ScaledOperator.of(shift)
    assert operator.moments is not None
    exact = chebyshev_traces(operator, 6, exact=10_000)
    for order in (6, STEPS):  # of more terms than the moments tell, too
        estimated = chebyshev_traces(operator, order)
        assert estimated[0] == pytest.approx(2550)
        # Five standard deviations: the variance of one vector is at most 2 N.
        torch.testing.assert_close(estimated[:13], exact, atol=5 * (2 * 2550 / 32) ** 0.5, rtol=0)
    alone = 2550 * operator.moments[:13]
    torch.testing.assert_close(alone, exact, atol=5 * (2 * 2550) ** 0.5, rtol=0)


def test_a_spectrum_of_two_values_is_exhausted_at_once():
    matrix = laplacian(torch.ones(9, 9) - torch.eye(9), normalization="sym").matrix
    measure = SpectralMeasure.of(matrix, 2.0, seed=0)
    np.testing.assert_allclose(measure.points, [0, 9 / 8], atol=1e-6)
    assert measure.degree == np.inf
