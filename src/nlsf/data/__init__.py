"""Graphs as ``torch_geometric.data.Data``: embedded, generated, and read from raw files."""

from nlsf.data.digits import digits
from nlsf.data.generators import block_model, preferential_attachment, random_geometric, torus
from nlsf.data.raw import data_root, raw_graph

__all__ = [
    "block_model",
    "data_root",
    "digits",
    "preferential_attachment",
    "random_geometric",
    "raw_graph",
    "torus",
]
