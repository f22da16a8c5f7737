"""What commutes with functional shifts is a linear filter; smaller groups leave more operators."""

import numpy as np
import torch

from nlsf.lab.commuting import CommutingSettings, commutant, random_shift, run
from nlsf.spectral import Spectrum, laplacian, partial_eigh, sample_shift
from nlsf.spectral.symmetry import random_unitary
from nlsf.testing.graphs import ring


def test_the_claim_holds():
    finding = run(CommutingSettings(seed=1, samples=20))
    assert finding.holds
    assert finding.data["gap"].min() > 1e-3, "zero singular values are told apart from others"
    assert finding.data["mixing_defect"] > 0.01


def test_shifts_of_a_smaller_group_are_noticed():
    def eigenspaces_only(space, generator):
        spectrum = space if isinstance(space, Spectrum) else space.spectrum
        return random_shift(spectrum, generator)

    finding = run(CommutingSettings(samples=20), eigenspaces_only)
    assert not finding.holds
    assert (finding.data["dimension"] >= finding.data["expected"]).all()


def test_maps_that_are_no_functional_shifts_are_noticed():
    def any_rotation(space, generator):
        return random_unitary(space.num_nodes, torch.float64, generator).numpy()

    finding = run(CommutingSettings(samples=4), any_rotation)
    assert not finding.holds
    assert finding.data["dimension"].max() == 4, "only multiples of the identity, d x d"


def test_too_few_shifts_leave_too_many_operators():
    # One shift commutes with all its powers: the commutant of a 12 x 12 matrix has dimension 12.
    assert not run(CommutingSettings(samples=1)).holds


def test_the_dimensions_agree_with_the_eigenspaces_of_a_ring():
    spectrum = partial_eigh(laplacian(ring(8)))  # 1, 2, 2, 2, 1
    generator = torch.Generator().manual_seed(0)
    shifts = [sample_shift(spectrum, generator=generator).matrix().numpy() for _ in range(16)]
    _, null = commutant(shifts, 1)
    assert len(null) == 5
    L = laplacian(ring(8)).to_dense().numpy()
    basis = np.array([np.linalg.matrix_power(L, k).ravel() for k in range(5)])
    # Five different eigenvalues: the filters are the polynomials of degree 4.
    assert np.linalg.matrix_rank(np.concatenate([basis, null.reshape(5, -1)])) == 5
