"""The ends of a spectrum, without its eigenvectors: `range_of`."""

from __future__ import annotations

import numpy as np

from nlsf.spectral.demand import Demand
from nlsf.spectral.eigensolve import DENSE_LIMIT
from nlsf.spectral.request import EigenRequest
from nlsf.spectral.shift import ShiftOperator
from nlsf.spectral.spectrum_end import spectrum_end


def ends_request(shift: ShiftOperator, gap_tol: float = 1e-9, seed: int = 0) -> EigenRequest:
    """A request for the ends of a spectrum alone; arguments as in `partial_eigh`."""
    return EigenRequest(shift, Demand(pairs=0), gap_tol, 1e-10, DENSE_LIMIT, None, seed)


def range_of(request: EigenRequest) -> tuple[float, float]:
    """Where the frequency axis of an operator begins and ends, without its eigenvectors.

    Returns:
        The eigenvalue of frequency 0 and the one of the largest frequency: `Spectrum.origin` and
        `Spectrum.far`, of the negative operator where the largest eigenvalues lead. From 50,000
        nodes on, bounds a few hundredths outside of them.
    """
    size = request.shift.num_nodes
    if size == 0:
        return 0.0, 0.0
    if size <= DENSE_LIMIT:
        values = np.linalg.eigvalsh(request.low.toarray())
        lowest, far = float(values[0]), float(values[-1])
    else:
        far = spectrum_end(request, "LA")
        lowest = 0.0 if request.bounds[0] >= 0 else spectrum_end(request, "SA")
    return request.origin(lowest), far
