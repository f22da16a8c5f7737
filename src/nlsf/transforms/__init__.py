"""Transforms for PyTorch Geometric data: `AddSpectrum` keeps spectra as an attribute of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias

import torch
from torch_geometric.data import Batch
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from nlsf.errors import GraphError
from nlsf.spectral import Bands, ShiftOperator, Spectrum, laplacian, partial_eigh
from nlsf.spectral.eigen.cache import CacheArgument
from nlsf.spectral.operators.shift import Normalization, Symmetrize

__all__ = ["AddSpectrum"]

Operator: TypeAlias = Callable[[Any], ShiftOperator]

_TAKEN = {"adj", "adj_t", "batch", "num_nodes", "ptr", "x", "y", "pos"}
_TAKEN |= {"edge_index", "edge_attr", "edge_weight"}
"""Attributes that PyTorch Geometric reads as something else."""

_NAMELESS = ("<lambda>", " at 0x")


@functional_transform("add_spectrum")
class AddSpectrum(BaseTransform):  # type: ignore[misc]  # torch_geometric is not typed
    r"""Keeps the spectrum of a graph with the graph (functional name: ``add_spectrum``).

    A layer that is called with ``edge_index`` computes spectra at the first call. As a
    ``pre_transform`` this does so once for a data set, which is then stored with it, and every
    layer takes them as ``spectrum=``:

    .. code-block:: python

        bands = DyadicBands(r=0.5, S=6)
        dataset = TUDataset(root, "MUTAG", pre_transform=AddSpectrum(bands))
        layer = GraphNLSF(dataset.num_features, 2, bands)
        for batch in DataLoader(dataset, batch_size=32):
            y = layer(batch.x, spectrum=batch.spectrum)

    In a ``Batch`` the attribute is the list of the spectra, one a graph: the layers read off which
    node belongs to which graph, and need no ``batch.batch``. For a `LaplacianAttention` between two
    Laplacians, keep two of them:

    .. code-block:: python

        pre_transform = T.Compose([
            AddSpectrum(index, normalization=None, attr="spectrum_l"),
            AddSpectrum(dyadic, normalization="sym", attr="spectrum_n"),
        ])
        attention = LaplacianAttention(
            NodeNLSF(d, d, index, normalization=None), NodeNLSF(d, d, dyadic)
        )
        y = attention(batch.x, spectrum=(batch.spectrum_l, batch.spectrum_n))

    The spectrum is that of the graph at this moment: put transforms that change edges before this
    one, and do not take a ``subgraph`` after it. ``data.clone()`` shares it, since it is never
    changed in place. Stored data sets load with ``weights_only=True``, as PyTorch Geometric does by
    default, once this module is imported; a whole ``Data`` in a file needs ``weights_only=False``,
    with a spectrum or without.

    Args:
        bands: those of the layers; computes what they need. Bands that need less may read the same
            spectrum.
        k: or at least this many eigenpairs. Without both: all of them.
        normalization: ``"sym"`` for N, ``None`` for L; the layers have the same default.
        self_loops: as in `nlsf.spectral.laplacian`.
        symmetrize: as in `nlsf.spectral.laplacian`, for graphs with one-way edges.
        attr: the attribute's name.
        operator: builds a `ShiftOperator` of the data in place of the Laplacian, for example
            `nlsf.spectral.adjacency`: a function with a name, or a ``functools.partial`` of one.
            PyTorch Geometric knows a stored data set by the name and the arguments, so an operator
            that does something else needs another name.
        cache: keep spectra on disk too, as in `nlsf.spectral.partial_eigh`.

    Raises:
        BandError: both ``k`` and ``bands``, or k < 1; raised at once, as are all wrong arguments.
        GraphError: an unknown ``normalization`` or ``symmetrize``, options of the Laplacian next to
            an ``operator``, one without a name, or a malformed graph.
        NotSymmetricError: one-way edges and no ``symmetrize``.

    Shapes:
        - input: a ``Data`` of N nodes, or a ``Batch``
        - output: the same with a `Spectrum` of vectors (N, k), or with one a graph

    Example:
        >>> import torch
        >>> from torch_geometric.data import Batch, Data
        >>> from nlsf.nn import NodeNLSF
        >>> from nlsf.spectral import DyadicBands
        >>> bands, edges = DyadicBands(S=4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> path = AddSpectrum(bands)(Data(x=torch.eye(3), edge_index=edges))
        >>> batch, layer = Batch.from_data_list([path, path]), NodeNLSF(3, 3, bands, start="ppr")
        >>> y = layer(batch.x, spectrum=batch.spectrum)
        >>> torch.allclose(y, layer(batch.x, batch.edge_index, batch=batch.batch))
        True
    """

    def __init__(
        self,
        bands: Bands | None = None,
        k: int | None = None,
        normalization: Normalization = "sym",
        *,
        self_loops: bool = False,
        symmetrize: Symmetrize = None,
        attr: str = "spectrum",
        operator: Operator | None = None,
        cache: CacheArgument = None,
    ) -> None:
        self.bands, self.k = bands, k
        self.normalization: Normalization = normalization
        self.self_loops = self_loops
        self.symmetrize: Symmetrize = symmetrize
        self.attr, self.operator, self.cache = attr, operator, cache
        if not attr.isidentifier() or attr in _TAKEN:
            raise GraphError(f"attr must be a name of its own, such as 'spectrum', not {attr!r}.")
        if operator is not None and (normalization, self_loops, symmetrize) != ("sym", False, None):
            raise GraphError(
                "normalization, self_loops and symmetrize are for the Laplacian: with an operator, "
                "give them to it, as in operator=functools.partial(adjacency, symmetrize='max')."
            )
        if operator is not None and any(mark in _described(operator) for mark in _NAMELESS):
            raise GraphError(
                f"The operator {_described(operator)} has no name by which a stored data set could "
                "be told from that of another: define a function, or use functools.partial."
            )
        # Tried on one node: a wrong argument shows here, not in the middle of a data set.
        partial_eigh(laplacian([[], []], None, 1, **self._laplacian_options), k, bands)

    def forward(self, data: Any) -> Any:
        """The data with its spectrum; of a ``Batch``, with one a graph."""
        if isinstance(data, Batch):
            data[self.attr] = [self._spectrum(graph) for graph in data.to_data_list()]
        else:
            data[self.attr] = self._spectrum(data)
        return data

    def _spectrum(self, data: Any) -> Spectrum:
        if self.operator is None:
            shift = laplacian(data, **self._laplacian_options)
        else:
            shift = self.operator(data)
            if not isinstance(shift, ShiftOperator):
                raise GraphError(
                    f"The operator must give a ShiftOperator, not {type(shift).__name__}: wrap a "
                    "matrix in ShiftOperator.from_matrix."
                )
        return partial_eigh(shift, self.k, self.bands, cache=self.cache)

    @property
    def _laplacian_options(self) -> dict[str, Any]:
        return {
            "normalization": self.normalization,
            "self_loops": self.self_loops,
            "symmetrize": self.symmetrize,
        }

    def __repr__(self) -> str:
        # PyTorch Geometric compares it to tell whether a stored data set is up to date: everything
        # that changes the spectrum belongs in it, and no address.
        if self.operator is None:
            options = self._laplacian_options
        else:
            options = {"operator": _described(self.operator)}
        options = {"bands": self.bands, "k": self.k, **options, "attr": self.attr}
        listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return f"{type(self).__name__}({listed})"


def _described(operator: Any) -> str:
    """The name of a function, with what ``functools.partial`` gives it; else the repr."""
    if isinstance(operator, partial):
        named = (f"{name}={value!r}" for name, value in operator.keywords.items())
        values = [_described(operator.func), *map(repr, operator.args), *named]
        return f"partial({', '.join(values)})"
    if isinstance(operator, FunctionType | BuiltinFunctionType | type):
        return operator.__qualname__
    return repr(operator)


def _by_value(spectrum: Spectrum) -> tuple[Any, ...]:
    return pickle.loads, (pickle.dumps(spectrum),)


# A plain dataclass of tensors, numbers and strings: to load one runs no code. Without this,
# InMemoryDataset warns and falls back to an unsafe load.
torch.serialization.add_safe_globals([Spectrum])

# Workers of a DataLoader hand over every tensor as an open file, three a graph: a batch of some
# hundred graphs would hit the usual limit of 1,024.
ForkingPickler.register(Spectrum, _by_value)
