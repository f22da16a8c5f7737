import numpy as np
import torch

from nlsf.peers import Neighbourhood
from nlsf.peers.base import LayersConfig
from nlsf.peers.convolutions import GCN
from nlsf.testing.graphs import star


def test_a_layer_is_a_filter_of_the_normalised_adjacency():
    edges, count = star(6).edge_index, 7
    A = np.zeros((count, count))
    A[edges[0], edges[1]] = 1
    A += np.eye(count)
    root = np.diag(A.sum(1) ** -0.5)
    values, vectors = np.linalg.eigh(root @ A @ root)
    torch.manual_seed(0)
    model = GCN(LayersConfig(3, 2, 4)).double().eval()
    x = torch.randn(count, 3, dtype=torch.float64)
    P = torch.from_numpy(vectors * values @ vectors.T)
    first, last = model.lins
    expected = P @ last((P @ first(x)).relu())
    graph = Neighbourhood(edges, count, dtype=torch.float64)
    torch.testing.assert_close(model(x, graph), expected)
