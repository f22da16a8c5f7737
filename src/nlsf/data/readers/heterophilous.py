"""Chameleon, Squirrel, their filtered versions and Actor, as NumPy archives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.edges import undirected
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import need, read_npz
from nlsf.data.sparse_rows import sparse_csr
from nlsf.errors import ConfigError

if TYPE_CHECKING:
    from nlsf.data.entry import Entry

_MASKS = tuple(f"{part}_masks" for part in checks.PARTS)
_FIELDS = ("node_features", "node_labels", "edges", *_MASKS)


def read(entry: Entry, paths: Sequence[Path], *, directed: bool = False) -> Dataset:
    """One network, with the ten splits ``"dense"`` (48/32/20 %) of its file.

    Args:
        entry: names the data set.
        paths: ``NAME.npz``, and ``NAME_directed.npz`` where there is one.
        directed: read the file that keeps the direction of links. The graph has both directions of
            every link all the same, as spectra need; the matrix of the links as they were,
            ``torch.sparse_csr`` (N, N) with row = start, is its attribute ``adj_out``.

    Raises:
        ConfigError: ``directed``, but there is no such file.
    """
    fitting = [path for path in paths if path.stem.endswith("_directed") == directed]
    if not fitting:
        raise ConfigError(f"{entry.name} has no file with directed links: leave out 'directed'.")
    path = fitting[0]
    arrays = read_npz(path, _FIELDS)
    need(path, arrays, _FIELDS)
    source = str(path)
    x = checks.features(source, "node_features", arrays["node_features"])
    num_nodes = x.shape[0]
    y, classes = checks.classes(source, "node_labels", arrays["node_labels"], num_nodes)
    start, end = checks.pairs(source, "edges", arrays["edges"], num_nodes)
    graph = Data(x=x, edge_index=undirected(start, end, num_nodes), num_nodes=num_nodes)
    if directed:
        ones = np.ones(len(start), dtype=np.float32)
        out = sparse.csr_array((ones, (start, end)), shape=(num_nodes, num_nodes))
        out.sum_duplicates()
        out.data[:] = 1.0
        graph.adj_out = sparse_csr(out)
    masks = {field: arrays[field] for field in _MASKS}
    return Dataset(
        name=entry.name,
        level="node",
        graphs=(graph,),
        y=y,
        classes=classes,
        metric=entry.metric,
        given={"dense": checks.splits(source, masks, y, "dense")},
    )
