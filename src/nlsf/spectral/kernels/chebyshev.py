"""A sparse operator made ready for Chebyshev polynomials: `ScaledOperator`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from scipy import sparse
from torch import Tensor

from nlsf.spectral.eigen.density import STEPS
from nlsf.spectral.eigen.request import SHARP, ends_request, range_of
from nlsf.spectral.operators.csr import csr_tensor, diagonal_places
from nlsf.spectral.operators.shift import ShiftOperator

_MARGIN = 1e-6
"""By how much the axis is longer than the spectrum: more than the ends and float32 are off."""

_ENTRIES = 1 << 20
"""Random signs, all probes together, beyond which more of them tell nothing new."""

_DEGREE = 2 * STEPS - 1
"""Of the moments that the search for the ends of a large spectrum leaves behind."""

_ONE_BY_ONE = 2
"""Random vectors up to which each has a product of its own, which reads memory in order."""


@dataclass(frozen=True, eq=False)
class ScaledOperator:
    r"""A shift operator on the frequency axis, scaled so that its spectrum lies in [-1, 1].

    .. math::
        \tilde\Delta = (F - c) / h, \qquad F = |\Delta - \text{origin}|

    Attributes:
        matrix: (N, N), :math:`\tilde\Delta` as a sparse CSR tensor.
        bandwidth: the largest frequency.
        centre: the c of the formula, half of the bandwidth.
        half: the h, about the same; 1 for an operator with one eigenvalue.
        gap: distance below which two frequencies count as equal.
        moments: :math:`\langle z, T_k(\tilde\Delta) z \rangle` of a random unit vector z, float64,
            for k up to some degree; known for a large operator, from the search for its ends.
    """

    matrix: Tensor
    bandwidth: float
    centre: float
    half: float
    gap: float
    moments: Tensor | None = None

    @classmethod
    def of(cls, shift: ShiftOperator, *, gap_tol: float = 1e-9) -> ScaledOperator:
        """Finds the ends of the spectrum, and scales; in double precision.

        Args:
            shift: the operator.
            gap_tol: as in `partial_eigh`, relative to ``shift.scale``.
        """
        request = ends_request(shift, gap_tol)
        origin, far = range_of(request)
        gap, bandwidth = gap_tol * shift.scale, far - origin
        centre = bandwidth / 2
        half = centre * (1 + _MARGIN) if bandwidth > gap else 1.0
        matrix = _moved(request.low, origin + centre, half)
        moments = None
        if shift.num_nodes > SHARP and request.measure.degree >= _DEGREE:  # there for the bound
            moments = torch.from_numpy(request.measure.chebyshev(origin + centre, half, _DEGREE))
        return cls(matrix, bandwidth, centre, half, gap, moments)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.matrix.shape[0]

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> ScaledOperator:
        """The same operator in another precision or on another device."""
        return replace(self, matrix=self.matrix.to(dtype=dtype, device=device))

    def __deepcopy__(self, memo: dict[int, object]) -> ScaledOperator:
        # PyTorch cannot: the tensor is sparse.
        return replace(self, matrix=self.matrix.clone())

    def apply(self, x: Tensor) -> Tensor:
        r""":math:`\tilde\Delta X`, (N, D), or of one vector (N,)."""
        # The kernel does not take a matrix without rows.
        return self.matrix @ x if x.numel() else x.clone()

    def advance(self, previous: Tensor, current: Tensor, out: Tensor) -> None:
        r"""Writes :math:`2 \tilde\Delta \, current - previous` to ``out``, all (N, D) or (N,)."""
        if current.numel():
            add = torch.addmv if current.ndim == 1 else torch.addmm
            add(previous, self.matrix, current, beta=-1, alpha=2, out=out)


def _moved(matrix: sparse.csr_array, centre: float, half: float) -> Tensor:
    """(matrix - centre I) / half; entries keep their places where the diagonal has them."""
    places = diagonal_places(matrix)
    if len(places) == matrix.shape[0]:
        values = matrix.data / half
        values[places] = (matrix.data[places] - centre) / half
        return csr_tensor(matrix, values)
    diagonal = sparse.eye_array(matrix.shape[0], format="csr") * centre
    moved = sparse.csr_array((matrix - diagonal) / half)
    moved.sort_indices()
    return csr_tensor(moved)


@torch.no_grad()
def chebyshev_traces(
    operator: ScaledOperator,
    order: int,
    *,
    probes: int | None = None,
    exact: int = 512,
    seed: int = 0,
) -> Tensor:
    r"""The traces of :math:`T_0(\tilde\Delta), \dots, T_{2K}(\tilde\Delta)`, by K products.

    Two neighbours in the recurrence give two traces,

    .. math::
        2 \langle T_k z, T_k z \rangle = \langle z, T_{2k} z \rangle + \langle z, z \rangle, \quad
        2 \langle T_k z, T_{k+1} z \rangle
            = \langle z, T_{2k+1} z \rangle + \langle z, T_1 z \rangle .

    Args:
        operator: the operator, in double precision.
        order: K, at least 1.
        probes: random sign vectors z, whose mean estimates a trace (Hutchinson). The relative
            error falls with the root of N times their number: 32 by default, and fewer from
            32,768 nodes on, down to two. By default too, the moments of the operator stand for
            one of them.
        exact: up to so many nodes, all unit vectors are taken instead, and the traces are exact.
        seed: of the random signs.

    Returns:
        (2 K + 1,), float64; the first is N always.
    """
    n, dtype = operator.num_nodes, operator.matrix.dtype
    if n <= exact:
        return _traces(operator, torch.eye(n, dtype=dtype), order)
    count = max(2, min(32, _ENTRIES // n)) if probes is None else probes
    known = []
    if probes is None and operator.moments is not None and 2 * order < len(operator.moments):
        known = [n * operator.moments[: 2 * order + 1]]
    if n > SHARP:  # the digits of float32 are more than a few signs can tell
        operator = operator.to(dtype=torch.complex64 if dtype.is_complex else torch.float32)
    # Of a seed of its own, so that it has nothing to do with the vector of the moments.
    generator = torch.Generator().manual_seed(seed + len(known))
    signs = torch.randint(2, (n, count - len(known)), generator=generator)
    z = 2.0 * signs.to(operator.matrix.dtype) - 1
    blocks = list(z.T.contiguous()) if z.shape[1] <= _ONE_BY_ONE else [z]
    estimated = [_traces(operator, block, order) for block in blocks]
    return torch.stack([*known, *estimated]).sum(0) / count


def _traces(operator: ScaledOperator, z: Tensor, order: int) -> Tensor:
    """What `chebyshev_traces` returns, of the columns of z together."""
    previous, current = z, operator.apply(z)
    traces = [_inner(z, z), _inner(z, current)]
    for k in range(1, order + 1):
        traces.append(2 * _inner(current, current) - traces[0])
        if k < order:
            following = torch.empty_like(current)
            operator.advance(previous, current, following)
            previous, current = current, following
            traces.append(2 * _inner(previous, current) - traces[1])
    return torch.stack(traces).to(torch.float64)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """The real part of the inner product of all entries."""
    return (a.conj() * b).real.sum() if a.is_complex() else (a * b).sum()
