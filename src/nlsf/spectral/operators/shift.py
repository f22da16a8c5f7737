"""Graph shift operators: the Hermitian matrices whose eigenspaces the filters act on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nlsf.errors import GraphError, SelfLoopWarning
from nlsf.spectral.operators.csr import check_hermitian, diagonal_places
from nlsf.spectral.operators.graph_input import Graph, Reduce, adjacency_matrix

Normalization: TypeAlias = Literal["sym"] | None
Symmetrize: TypeAlias = Literal["sum", "mean", "max"] | None
Order: TypeAlias = Literal["ascending", "descending"]

_BLOCK = 1 << 16
"""Entries that are scaled at a time: their factors stay in the cache."""


@dataclass(frozen=True, eq=False)
class ShiftOperator:
    r"""A Hermitian matrix :math:`\Delta` on the nodes of a graph, with what is known about it.

    Its eigenspaces are numbered from the smooth end. On the *frequency* axis, where all bands live,
    that end is 0: for a Laplacian the frequency is the eigenvalue, for an adjacency matrix it is
    :math:`\lambda_{\max} - \lambda`.

    Attributes:
        matrix: (N, N) CSR, float64 or complex128.
        name: what it is, for people: ``"L"``, ``"N"``, ``"N+loops"``, ``"A"``, ...
        bounds: an interval that encloses the spectrum.
        order: whether the leading eigenvalues are the smallest or the largest ones.
        null_vector: (N,), positive. Its restriction to a connected component spans the kernel of
            that component. ``None`` where the kernel is not known in advance.
    """

    matrix: sparse.csr_array
    name: str
    bounds: tuple[float, float]
    order: Order = "ascending"
    null_vector: NDArray[np.float64] | None = None

    @property
    def num_nodes(self) -> int:
        """The number N of nodes."""
        return int(self.matrix.shape[0])

    @property
    def is_complex(self) -> bool:
        """Whether the matrix is complex Hermitian rather than real symmetric."""
        return bool(self.matrix.dtype.kind == "c")

    @property
    def scale(self) -> float:
        """A bound on the spectral norm; tolerances are relative to it. 1 for a zero matrix."""
        return max(abs(self.bounds[0]), abs(self.bounds[1])) or 1.0

    def __repr__(self) -> str:
        return f"ShiftOperator({self.name}, num_nodes={self.num_nodes}, nnz={self.matrix.nnz})"

    def to_dense(self) -> Tensor:
        """The matrix as a dense tensor, shape (N, N)."""
        return torch.from_numpy(self.matrix.toarray())

    def permute(self, permutation: Tensor) -> ShiftOperator:
        """The operator of the graph whose node i is this one's node ``permutation[i]``."""
        index = permutation.numpy()
        null = None if self.null_vector is None else self.null_vector[index]
        matrix = self.matrix[index][:, index].tocsr()
        matrix.sort_indices()
        return ShiftOperator(matrix, self.name, self.bounds, self.order, null)

    @classmethod
    def from_matrix(
        cls, matrix: Any, *, name: str = "custom", order: Order = "ascending"
    ) -> ShiftOperator:
        """Any symmetric or Hermitian matrix as a shift operator.

        Args:
            matrix: (N, N), real or complex: SciPy sparse, array or tensor.
            name: what to call it.
            order: which end of the spectrum leads.

        Raises:
            GraphError: if it is not square, or an entry is not finite.
            NotSymmetricError: if it is not Hermitian; names the worst entry.
        """
        if not sparse.issparse(matrix):
            matrix = matrix.detach().cpu().numpy() if isinstance(matrix, Tensor) else matrix
            matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"A shift operator must be square, not {tuple(matrix.shape)}.")
        csr = sparse.csr_array(matrix)
        csr = csr.astype(np.complex128 if csr.dtype.kind == "c" else np.float64)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        csr.sort_indices()
        if not np.isfinite(csr.data).all():
            coo = csr.tocoo()
            e = int(np.flatnonzero(~np.isfinite(coo.data))[0])
            raise GraphError(f"Entry ({coo.row[e]}, {coo.col[e]}) of the matrix is {coo.data[e]}.")
        check_hermitian(csr, hint="a shift operator must equal its conjugate transpose.")
        return cls(csr, name, _gershgorin(csr), order)


def laplacian(
    edge_index: Graph,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    normalization: Normalization = None,
    *,
    self_loops: bool = False,
    symmetrize: Symmetrize = None,
    reduce: Reduce = "sum",
) -> ShiftOperator:
    r"""The graph Laplacian, with the arguments of ``torch_geometric.utils.get_laplacian``.

    .. math::
        L = D - A, \qquad N = D^{-1/2} L D^{-1/2}, \qquad D = \mathrm{diag}(A \mathbf{1})

    An isolated node has a zero row in both, so it is a component of its own with eigenvalue 0.
    (PyTorch Geometric puts a 1 on the diagonal there.)

    Args:
        edge_index: the graph; see `adjacency_matrix` for the forms it may take.
        edge_weight: E weights, finite and not negative; 1 each by default.
        num_nodes: number of nodes; by default the largest index plus one.
        normalization: ``None`` for L, ``"sym"`` for N.
        self_loops: add a loop of weight 1 to every node first (only matters for N):
            :math:`I - (D + I)^{-1/2} (A + I) (D + I)^{-1/2}`.
        symmetrize: for a graph with one-way edges: replace A by ``"sum"`` :math:`A + A^T`,
            ``"mean"`` :math:`(A + A^T)/2`, or ``"max"`` :math:`\max(A, A^T)`.
        reduce: what becomes of an edge that is listed twice: ``"sum"`` or ``"max"``.

    Raises:
        GraphError: malformed edges or weights.
        NotSymmetricError: one-way edges and no ``symmetrize``.

    Warns:
        SelfLoopWarning: loops in the input were dropped.

    Example:
        >>> import torch
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> laplacian(path).to_dense().sum().item()  # constants are in the kernel
        0.0
    """
    A = _undirected(adjacency_matrix(edge_index, edge_weight, num_nodes, reduce=reduce), symmetrize)
    A = _without_loops(A)
    if normalization is None:
        degree = A.sum(axis=1)
        L = _minus_adjacency(degree, A)
        return ShiftOperator(L, "L", (0.0, _edge_bound(A, degree)), null_vector=np.ones(A.shape[0]))
    if normalization != "sym":
        raise GraphError(f"normalization must be None or 'sym', not {normalization!r}.")
    if self_loops:
        A = (A + sparse.eye_array(A.shape[0], format="csr")).tocsr()
    degree = A.sum(axis=1)
    N = _minus_adjacency((degree > 0).astype(np.float64), _scale(A, degree))
    root = np.where(degree > 0, np.sqrt(degree), 1.0)
    return ShiftOperator(N, "N+loops" if self_loops else "N", (0.0, 2.0), null_vector=root)


def adjacency(
    edge_index: Graph,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    *,
    symmetrize: Symmetrize = None,
    reduce: Reduce = "sum",
) -> ShiftOperator:
    """The adjacency matrix as a shift operator; its largest eigenvalues, the smooth end, lead.

    Self loops are kept. Arguments and errors are those of `laplacian`.
    """
    A = _undirected(adjacency_matrix(edge_index, edge_weight, num_nodes, reduce=reduce), symmetrize)
    return ShiftOperator(A, "A", _gershgorin(A), order="descending")


def magnetic_laplacian(
    edge_index: Graph,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    normalization: Normalization = None,
    *,
    q: float = 0.25,
    reduce: Reduce = "sum",
) -> ShiftOperator:
    r"""The magnetic Laplacian of a directed graph: complex Hermitian, direction kept as a phase.

    .. math::
        L_q = D_s - A_s \odot \exp(2 \pi i q (A - A^T)), \qquad A_s = (A + A^T) / 2,

    and :math:`D_s^{-1/2} L_q D_s^{-1/2}` for ``normalization="sym"``. For a graph without one-way
    edges, or q = 0, it equals the ordinary Laplacian of :math:`A_s`.

    Args:
        edge_index: the directed graph; see `adjacency_matrix`.
        edge_weight: E weights, finite and not negative.
        num_nodes: number of nodes.
        normalization: ``None`` or ``"sym"``.
        q: the charge, how strongly direction turns the phase; 0.25 makes a one-way edge of weight 1
            imaginary.
        reduce: what becomes of an edge that is listed twice.

    Raises:
        GraphError: malformed edges or weights, or a charge that is not finite.
    """
    if not np.isfinite(q):
        raise GraphError(f"The charge q must be a finite number, not {q}.")
    A = _without_loops(adjacency_matrix(edge_index, edge_weight, num_nodes, reduce=reduce))
    # Strength in the real part, direction in the imaginary one: one matrix holds both patterns.
    H = ((A + A.T) / 2 + 1j * (A - A.T)).tocsr()
    S = H.real
    H.data = H.data.real * np.exp(2j * np.pi * q * H.data.imag)
    degree = S.sum(axis=1)
    if normalization is None:
        bound = _edge_bound(S, degree)
        return ShiftOperator(_minus_adjacency(degree, H), "magnetic L", (0.0, bound))
    if normalization != "sym":
        raise GraphError(f"normalization must be None or 'sym', not {normalization!r}.")
    N = _minus_adjacency((degree > 0).astype(np.float64), _scale(H, degree))
    return ShiftOperator(N, "magnetic N", (0.0, 2.0))


def _undirected(A: sparse.csr_array, symmetrize: Symmetrize) -> sparse.csr_array:
    if symmetrize is None:
        check_hermitian(
            A,
            hint="pass symmetrize='sum', 'mean' or 'max' to make it undirected, "
            "or keep the direction with magnetic_laplacian.",
        )
        return A
    if symmetrize == "sum":
        return (A + A.T).tocsr()
    if symmetrize == "mean":
        return ((A + A.T) / 2).tocsr()
    if symmetrize == "max":
        return A.maximum(A.T).tocsr()
    raise GraphError(f"symmetrize must be None, 'sum', 'mean' or 'max', not {symmetrize!r}.")


def _without_loops(A: sparse.csr_array) -> sparse.csr_array:
    loops = A.diagonal()
    if not loops.any():
        return A
    warnings.warn(
        f"{np.count_nonzero(loops)} self loops were dropped: a Laplacian does not see them.",
        SelfLoopWarning,
        stacklevel=3,
    )
    A = A.copy()
    A.setdiag(0)
    A.eliminate_zeros()
    return A


def _scale(A: sparse.csr_array, degree: NDArray[np.float64]) -> sparse.csr_array:
    """D^(-1/2) A D^(-1/2), with 0 where the degree is 0."""
    inverse_root = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=inverse_root, where=degree > 0)
    # The product of the two factors first: it rounds alike for (i, j) and (j, i).
    scaled = np.repeat(inverse_root.astype(A.dtype), np.diff(A.indptr))
    for start in range(0, A.nnz, _BLOCK):
        some = slice(start, start + _BLOCK)
        scaled[some] *= inverse_root[A.indices[some]]
        scaled[some] *= A.data[some]
    return sparse.csr_array((scaled, A.indices, A.indptr), shape=A.shape)


def _minus_adjacency(diagonal: NDArray[np.float64], A: sparse.csr_array) -> sparse.csr_array:
    places = diagonal_places(A)
    if len(places) == A.shape[0]:  # with a loop everywhere, no entry needs a new place
        values = -A.data
        values[places] += diagonal
        matrix = sparse.csr_array((values, A.indices, A.indptr), shape=A.shape)
        if values.all():
            return matrix
        matrix = matrix.copy()
    else:
        matrix = (sparse.diags_array(diagonal, format="csr") - A).tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _edge_bound(A: sparse.csr_array, degree: NDArray[np.float64]) -> float:
    """Anderson and Morley: lam_max of L is at most the largest sum of degrees along an edge."""
    coo = A.tocoo()
    return float((degree[coo.row] + degree[coo.col]).max(initial=0.0))


def _gershgorin(matrix: sparse.csr_array) -> tuple[float, float]:
    if matrix.shape[0] == 0:
        return 0.0, 0.0
    centre = matrix.diagonal().real
    radius = abs(matrix).sum(axis=1) - abs(centre)
    return float((centre - radius).min()), float((centre + radius).max())
