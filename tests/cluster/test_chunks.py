import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nlsf.cluster.chunks import _NUMBERS, _OVERHEAD, bare, cut
from nlsf.errors import GraphError
from nlsf.spectral import laplacian


def of_size(n):
    edges = torch.zeros((2, 0), dtype=torch.long)
    return bare(0, Data(edge_index=edges, num_nodes=n))


@pytest.mark.parametrize("workers", [1, 2, 7, 100])
def test_chunks_cover_all_graphs_in_order_at_similar_cost(workers):
    sizes = np.random.default_rng(0).integers(2, 400, 500)
    chunks = cut([of_size(int(n)) for n in sizes], workers)
    assert [position for chunk in chunks for position in chunk] == list(range(500))
    costs = [sum(int(n) ** 3 + _OVERHEAD for n in sizes[chunk]) for chunk in chunks]
    share = sum(costs) / workers / 8
    assert all(cost <= share or len(chunk) == 1 for cost, chunk in zip(costs, chunks, strict=True))
    neighbours = [a + b for a, b in itertools.pairwise(costs)]
    assert all(both > share for both in neighbours), "no two could have been one"


def test_a_chunk_stays_small_enough_to_be_sent():
    chunks = cut([of_size(2000)] * 10, 1)
    assert all(len(chunk) * 2000**2 <= _NUMBERS for chunk in chunks)
    assert cut([of_size(5000), of_size(1)], 1) == [range(1), range(1, 2)]
    assert cut([], 3) == []


def test_a_graph_travels_without_what_nobody_reads():
    data = Data(x=torch.ones(3, 9), edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    edges = bare(0, data)
    assert set(vars(edges)) == {"edge_index", "edge_weight", "num_nodes"}
    assert isinstance(edges.edge_index, np.ndarray)
    for graph in (data, nx.path_graph(4), np.ones((3, 3)) - np.eye(3), [[0, 1], [1, 0]]):
        assert (laplacian(bare(0, graph)).matrix != laplacian(graph).matrix).nnz == 0
    operator = laplacian(data)
    assert bare(0, operator) is operator
    with pytest.raises(GraphError, match="Graph 5: Cannot read a graph from str"):
        bare(5, "graph")
