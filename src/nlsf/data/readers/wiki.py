"""Wiki: pages of the English Wikipedia and the links between them."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.edges import undirected
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import ending
from nlsf.errors import FormatError

if TYPE_CHECKING:
    from nlsf.data.entry import Entry


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """The network, both directions of every link; a page's class is how often it is viewed.

    Args:
        entry: names the data set.
        paths: ``wiki_features2M.pt`` (N, 600), ``wiki_edges2M.pt`` (E, 2) and ``wiki_views2M.pt``
            (N,), the class; in any order.
    """
    of_features, of_edges, of_views = (
        ending(paths, f"wiki_{kind}2M.pt") for kind in ("features", "edges", "views")
    )
    x = checks.features(str(of_features), "features", _tensor(of_features).numpy())
    num_nodes = x.shape[0]
    y, classes = checks.classes(str(of_views), "views", _tensor(of_views).numpy(), num_nodes)
    start, end = checks.pairs(str(of_edges), "edges", _tensor(of_edges).numpy(), num_nodes)
    graph = Data(x=x, edge_index=undirected(start, end, num_nodes), num_nodes=num_nodes)
    return Dataset(
        name=entry.name, level="node", graphs=(graph,), y=y, classes=classes, metric=entry.metric
    )


def _tensor(path: Path) -> Tensor:
    """A tensor from a file of ``torch.save``; mapped where the format allows it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what no writer of tensors writes
            found = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    # A damaged file makes the reader stumble in any way; a malicious one is refused by it.
    except Exception as error:
        raise FormatError(f"{path} does not hold a tensor alone, or is damaged.") from error
    if not isinstance(found, Tensor) or found.layout != torch.strided:
        raise FormatError(f"{path} does not hold a dense tensor.")
    return found.detach()
