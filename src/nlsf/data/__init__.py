"""Data sets as ``torch_geometric.data.Data``: embedded ones, and generated ones of any size."""

from nlsf.data.digits import digits
from nlsf.data.generators import block_model, preferential_attachment, random_geometric, torus

__all__ = ["block_model", "digits", "preferential_attachment", "random_geometric", "torus"]
