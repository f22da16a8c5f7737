import numpy as np
import pytest
import torch
from scipy import sparse

from cases import GRAPHS
from nlsf.errors import GraphError
from nlsf.spectral import csr, laplacian


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_tensor_is_the_matrix(graph):
    matrix = laplacian(GRAPHS[graph]).matrix
    torch.testing.assert_close(
        csr.csr_tensor(matrix).to_dense(), torch.from_numpy(matrix.toarray()), rtol=0, atol=0
    )


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loops", [False, True])
def test_the_places_of_the_diagonal(graph, loops):
    matrix = laplacian(GRAPHS[graph], normalization="sym", self_loops=loops).matrix
    places = csr.diagonal_places(matrix)
    diagonal = matrix.diagonal()
    np.testing.assert_array_equal(matrix.data[places], diagonal[diagonal != 0])


def test_entries_that_indices_cannot_count_are_refused(monkeypatch):
    monkeypatch.setattr(csr, "LARGEST", 3)
    csr.csr_tensor(sparse.eye_array(3, format="csr"))
    with pytest.raises(GraphError, match="4 entries"):
        csr.csr_tensor(sparse.eye_array(4, format="csr"))
