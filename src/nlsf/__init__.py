"""Nonlinear spectral filters on graphs.

A graph shift operator (a Laplacian, say) has eigenspaces. Unitary maps that commute with it are the
graph's translations, its *functional shifts*. Pointwise activations break that symmetry; a
nonlinear spectral filter keeps it, because it acts on the norms of the signal's projections:

    analysis   c_j = ||P_j X||                          invariant numbers
    response   R   = Psi(c)                             any function of them
    synthesis  Y   = [P_j X / (||P_j X||^a + e)]_j R    equivariant again

Where things are:

- ``nlsf.spectral``: shift operators, spectra, bands, projections, analysis, synthesis, functional
  shifts. The mathematics, without trainable parameters.
- ``nlsf.nn``: the filters as PyTorch layers, called as those of PyTorch Geometric.
- ``nlsf.peers``: the methods that filters are compared with.
- ``nlsf.cluster``: spectra of many graphs, and one huge graph, on Dask.
- ``nlsf.transforms``: spectra as a PyTorch Geometric transform.
- ``nlsf.data``: embedded, generated and real graphs, and your own.
- ``nlsf.train``: from data to a trained and measured model.
- ``nlsf.report``: pages that show what a model learned; ``nlsf.report(run)`` writes one.
- ``nlsf.lab``: the paper's claims as studies that run; ``nlsf lab all`` writes a gallery.
- ``nlsf.testing``: assertions for your own layers, and graphs on which layers tend to break.
- ``nlsf.errors``: everything that this package raises on purpose.

The subpackages import on first use, so that ``import nlsf`` and ``nlsf --help`` stay quick.
"""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

_SUBMODULES = (
    "cluster",
    "data",
    "errors",
    "lab",
    "nn",
    "peers",
    "report",
    "spectral",
    "testing",
    "train",
    "transforms",
)

__all__ = ["__version__", *_SUBMODULES]


def __getattr__(name: str) -> str | _ModuleType:
    if name == "__version__":
        from importlib.metadata import version  # half the time of the import, and seldom asked

        return version("nlsf")
    if name in _SUBMODULES:
        return _import_module(f"nlsf.{name}")
    raise AttributeError(f"module 'nlsf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
