"""The pieces that keep the block method orthonormal."""

import numpy as np
import pytest

from nlsf.spectral.eigen.basis import orthonormal_eigh, orthonormalise, project_out


@pytest.mark.parametrize("complex_", [False, True])
def test_vectors_that_lapack_leaves_skew_are_made_orthonormal(monkeypatch, complex_):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((3, 12, 12)) + (1j * rng.standard_normal((3, 12, 12)) * complex_)
    matrix = matrix + matrix.conj().swapaxes(-1, -2)
    values, vectors = np.linalg.eigh(matrix)
    skew = vectors + 1e-10 * rng.standard_normal(vectors.shape)
    monkeypatch.setattr(np.linalg, "eigh", lambda _: (values, skew))
    _, mended = orthonormal_eigh(matrix)
    gram = mended.conj().swapaxes(-1, -2) @ mended
    assert np.abs(gram - np.eye(12)).max() < 1e-14
    assert np.abs(mended - vectors).max() < 1e-8


def test_a_block_is_made_orthonormal_outside_of_the_bases():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((40, 5)))[0]
    block = rng.standard_normal((40, 6))
    block[:, 3] = block[:, 2]  # a direction that vanishes
    block[:, 4] = basis[:, 0]  # and one inside the basis
    found = orthonormalise(block, basis)
    assert found.shape == (40, 4)
    assert np.abs(found.T @ found - np.eye(4)).max() < 1e-14
    assert np.abs(basis.T @ found).max() < 1e-14
    project_out(block, basis)
    assert np.abs(basis.T @ block).max() < 1e-13
