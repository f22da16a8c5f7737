import pytest
import torch

from cases import GRAPHS
from nlsf.spectral import adjacency, laplacian, magnetic_laplacian, partial_eigh
from nlsf.spectral.eigen.spectrum import eigenspace_ids


def test_eigenspaces_start_after_a_gap():
    values = torch.tensor([0.0, 0.0, 1e-12, 0.5, 0.5 + 1e-10, 0.5 + 2e-10, 2.0])
    assert eigenspace_ids(values, 1e-9).tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert eigenspace_ids(values.flip(0), 1e-9).tolist() == [0, 1, 1, 1, 2, 2, 2]


def test_the_kernel_is_never_merged():
    values = torch.tensor([0.0, 0.0, 1e-12, 0.5])
    assert eigenspace_ids(values, 1e-9, nullity=2).tolist() == [0, 0, 1, 2]
    shift = laplacian(GRAPHS["nearly disconnected"])
    assert partial_eigh(shift).multiplicities[:2].tolist() == [1, 1]


def test_frequencies_start_at_the_smooth_end():
    ring = GRAPHS["ring"]
    L, A = partial_eigh(laplacian(ring)), partial_eigh(adjacency(ring))
    # On a regular graph L = 2 I - A: the same frequencies from both.
    torch.testing.assert_close(L.frequencies, A.frequencies)
    assert L.frequencies[0] == A.frequencies[0] == 0
    assert A.lam_max == pytest.approx(2)
    assert A.lam_min == pytest.approx(2 - L.lam_max)
    assert A.bandwidth == pytest.approx(L.bandwidth)


def test_a_partial_spectrum_knows_the_other_end():
    shift = laplacian(GRAPHS["weighted"])
    every, some = partial_eigh(shift), partial_eigh(shift, k=3)
    assert some.num_pairs == 3
    assert not some.is_complete
    assert some.lam_max == pytest.approx(every.lam_max)
    assert every.reach == float("inf")
    assert some.reach == pytest.approx(float(every.values[2]), abs=1e-6)


def test_precision_changes_vectors_not_values():
    spectrum = partial_eigh(magnetic_laplacian(GRAPHS["ring"]))
    small = spectrum.to(torch.float32)
    assert small.vectors.dtype == torch.complex64
    assert small.values.dtype == torch.float64
    assert small.eigenspaces.equal(spectrum.eigenspaces)


def test_repr_says_what_matters():
    text = repr(partial_eigh(laplacian(GRAPHS["torus"]), k=4))
    assert "num_nodes=16" in text
    assert "num_pairs=5" in text
    assert "num_eigenspaces=2" in text
