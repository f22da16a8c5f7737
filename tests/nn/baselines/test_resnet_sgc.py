import numpy as np
import torch

from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.resnet_sgc import ResNetSGC, ResNetSGCConfig


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def test_the_further_features_are_a_low_pass_of_the_features():
    torch.manual_seed(0)
    graph, A = small_graph()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = ResNetSGC(ResNetSGCConfig(4, 3, 6, K=3)).double().eval()
    looped = A.numpy() + np.eye(12)
    root = np.diag(looped.sum(1) ** -0.5)
    values, vectors = np.linalg.eigh(root @ looped @ root)
    smooth = torch.from_numpy(vectors * values**3 @ vectors.T) @ x
    W = torch.cat([model.first.weight, model.smooth.weight], dim=1)
    expected = torch.cat([x, smooth], dim=1) @ W.T + model.first.bias
    torch.testing.assert_close(model.embedding(x, graph), expected)
    no_edges = Neighbourhood(graph.edge_index[:, :0], 12, dtype=torch.float64)
    assert not torch.allclose(model(x, graph), model(x, no_edges))
