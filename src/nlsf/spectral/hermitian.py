"""Whether a matrix is symmetric or Hermitian, found out fast: `check_hermitian`."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nlsf.errors import NotSymmetricError
from nlsf.spectral.edge_order import MOST_NODES, is_mirrored


def check_hermitian(matrix: sparse.csr_array, *, hint: str) -> None:
    """Raises unless a matrix equals its conjugate transpose up to rounding.

    Args:
        matrix: (N, N), in canonical form.
        hint: what to do about it, for the message.

    Raises:
        NotSymmetricError: names the worst entry.
    """
    # Most graphs have no weights: then the places of the entries tell, in a third of the time.
    values = matrix.data
    equal = values.dtype.kind == "f" and values.size > 0 and values.min() == values.max()
    if equal and matrix.shape[0] <= MOST_NODES and is_mirrored(matrix):
        return
    other = matrix.conj().T.tocsr()
    same_pattern = all(
        np.array_equal(getattr(matrix, name), getattr(other, name))
        for name in ("indptr", "indices")
    )
    # Nearly always: two passes over the entries, where a difference takes many.
    if same_pattern and np.array_equal(matrix.data, other.data):
        return
    difference = abs(matrix - other).tocoo()
    if difference.nnz == 0:
        return
    worst = int(np.argmax(difference.data))
    if difference.data[worst] <= 1e-12 * abs(matrix.data).max():
        return
    i, j = int(difference.row[worst]), int(difference.col[worst])
    raise NotSymmetricError(
        f"The matrix is not symmetric: entry ({i}, {j}) is {matrix[i, j]:g} and entry ({j}, {i}) "
        f"is {matrix[j, i]:g}; {hint}"
    )
