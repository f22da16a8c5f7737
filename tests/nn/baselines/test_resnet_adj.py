import torch

from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.resnet_adj import ResNetAdj, ResNetAdjConfig


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def test_edges_are_features():
    torch.manual_seed(0)
    graph, A = small_graph()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = ResNetAdj(ResNetAdjConfig(4, 3, 6, num_nodes=12)).double().eval()
    W = torch.cat([model.first.weight, model.of_edges.weight], dim=1)
    expected = torch.cat([x, A], dim=1) @ W.T + model.first.bias
    torch.testing.assert_close(model.embedding(x, graph), expected)
