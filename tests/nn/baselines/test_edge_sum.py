import torch

from nlsf.nn.baselines.edge_sum import edge_sum
from nn.baselines.spatial import F64, small_graph


def test_a_weight_belongs_to_the_pair_that_its_edge_is():
    graph, x, A = small_graph()
    weights = torch.randn(graph.edge_index.shape[1], dtype=F64)
    W = torch.zeros_like(A)
    W[graph.edge_index[0], graph.edge_index[1]] = weights
    torch.testing.assert_close(edge_sum(weights, x, graph), W @ x)


def test_both_factors_have_a_gradient():
    graph, x, _ = small_graph()
    weights = torch.randn(graph.edge_index.shape[1], dtype=F64, requires_grad=True)
    h = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda w, h: edge_sum(w, h, graph), (weights, h))
