"""The ``.mat`` files of the LINKX collection that hold a list of edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.edges import undirected
from nlsf.data.readers import checks
from nlsf.data.readers.mat import read_mat
from nlsf.data.readers.raw_files import ending, need

if TYPE_CHECKING:
    from nlsf.data.entry import Entry

_FIELDS = ("edge_index", "node_feat", "label")


def read_edge_list(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """``edge_index`` (2, E), directed, ``node_feat`` (N, F) and ``label`` (1, N), -1 if not known.

    The graph has both directions of every edge.
    """
    path = ending(paths, ".mat")
    found = read_mat(path, _FIELDS)
    need(path, found, _FIELDS)
    source = str(path)
    x = checks.features(source, "node_feat", found["node_feat"])
    num_nodes = x.shape[0]
    y, classes = checks.classes(source, "label", np.asarray(found["label"]), num_nodes)
    start, end = checks.pairs(source, "edge_index", np.asarray(found["edge_index"]), num_nodes)
    graph = Data(x=x, edge_index=undirected(start, end, num_nodes), num_nodes=num_nodes)
    return Dataset(
        name=entry.name, level="node", graphs=(graph,), y=y, classes=classes, metric=entry.metric
    )
