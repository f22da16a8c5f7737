"""Signals get the coefficients that are wanted, in every norm."""

import pytest
import torch

from nlsf.lab.prescribed import with_coefficients
from nlsf.spectral import IndexBands, Projector, analyze, laplacian, partial_eigh
from nlsf.testing.graphs import torus


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_the_coefficients_are_those_that_are_wanted(p, normalize):
    P = Projector(partial_eigh(laplacian(torus(3, 4))), IndexBands(3))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 12, 2, dtype=torch.float64, generator=generator)
    wanted = torch.rand(5, 4, 2, dtype=torch.float64, generator=generator)
    y = with_coefficients(x, P, wanted, p=p, normalize=normalize)
    assert torch.allclose(analyze(y, P, p=p, normalize=normalize), wanted)


def test_an_empty_band_stays_empty():
    spectrum = partial_eigh(laplacian(torus(3, 4)))
    P = Projector(spectrum, IndexBands(spectrum.num_eigenspaces))
    x = torch.ones(12, 1, dtype=torch.float64)
    y = with_coefficients(x, P, torch.zeros(P.n_bands, 1, dtype=torch.float64))
    assert torch.equal(y, torch.zeros_like(y))
