import torch

from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.linkx import LINKX, LINKXConfig


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def test_the_layer_is_its_formula():
    torch.manual_seed(0)
    graph, A = small_graph()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = LINKX(LINKXConfig(4, 3, 6, num_nodes=12)).double().eval()
    h_A = A @ model.of_edges.weight.T + model.of_edges.bias
    h_X = x @ model.of_features.weight.T + model.of_features.bias
    W = torch.cat([model.mix_edges.weight, model.mix_features.weight], dim=1)
    mixed = torch.cat([h_A, h_X], dim=1) @ W.T + model.mix_edges.bias + h_A + h_X
    first, last = model.last.lins
    expected = last(first(mixed.clamp(min=0)).clamp(min=0))
    torch.testing.assert_close(model(x, graph), expected)


def test_one_layer_at_the_end_is_linear():
    model = LINKX(LINKXConfig(4, 3, 6, num_nodes=12, num_layers=1))
    assert [tuple(lin.weight.shape) for lin in model.last.lins] == [(3, 6)]
