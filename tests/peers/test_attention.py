import pytest
import torch
from torch.nn.functional import elu

from nlsf.peers.attention import (
    FAGCN,
    GAT,
    GBKGNN,
    FAGCNConfig,
    GATConfig,
    edge_attention,
    edge_sum,
)
from nlsf.peers.convolutions import LayersConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.testing.graphs import hostile_graphs, star
from peers.spatial import F64, C, F, N, additive_attention, made, small_graph


def graph_of(case):
    return Neighbourhood(case.edge_index, case.num_nodes, dtype=F64)


def drawn(n, heads=3, channels=2):
    rng = torch.Generator().manual_seed(n)
    sizes = (n, heads), (n, heads), (n, heads, channels)
    return [torch.randn(*s, generator=rng, dtype=F64, requires_grad=True) for s in sizes]


@pytest.mark.parametrize("case", hostile_graphs().values(), ids=hostile_graphs().keys())
def test_it_is_the_softmax_of_the_scores_and_so_are_its_gradients(case):
    graph = graph_of(case)
    own, other, h = drawn(graph.num_nodes)
    linked = graph.matrix("gcn").dense() != 0
    scores = torch.nn.functional.leaky_relu(own[:, None] + other, 0.3)
    alpha = scores.masked_fill(~linked[..., None], -torch.inf).softmax(1)
    expected = torch.einsum("ijh,jhc->ihc", alpha, h)
    torch.testing.assert_close(edge_attention(own, other, h, graph, 0.3), expected)
    assert torch.autograd.gradcheck(
        lambda *given: edge_attention(*given, graph, 0.3), (own, other, h), fast_mode=True
    )


def test_scores_of_any_size_overflow_nowhere():
    graph = graph_of(star(7))
    own, other, h = (x.detach() for x in drawn(graph.num_nodes))
    y = edge_attention(1e4 * own, 1e4 * other, h, graph)
    # A mean lies between the smallest and the largest value.
    assert (y >= h.amin(0)).all()
    assert (y <= h.amax(0)).all()


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


def test_gat_is_its_formula():
    graph, x, A = small_graph()
    model = made(GAT, GATConfig(F, C, 8, heads=2, slope=0.3))
    loops = A + torch.eye(N, dtype=F64)
    h = elu(additive_attention(model.first, model.encoder(x), loops) + model.first.bias)
    expected = additive_attention(model.last, model.last.lin(h), loops) + model.last.bias
    torch.testing.assert_close(model(x, graph), expected)


def test_fagcn_is_its_formula():
    graph, x, A = small_graph()
    model = made(FAGCN, FAGCNConfig(F, C, 5, num_layers=3, eps=0.4))
    with torch.no_grad():
        model.receivers[0].bias -= 1  # some scores are negative
    degree = A.sum(1)
    norm = A / (degree[:, None] * degree[None]).sqrt().clamp(min=1)
    first = model.encoder(x).relu()
    h = first
    for receiver, sender in zip(model.receivers, model.senders, strict=True):
        scores = torch.tanh(receiver(h) + sender(h).T)
        h = 0.4 * first + (scores * norm) @ h
    torch.testing.assert_close(model(x, graph), model.last(h))


def transcribed(layer, h, A):
    gate = torch.sigmoid(layer.receiver(h) + layer.sender(h).T)
    share = A / A.sum(1, keepdim=True).clamp(min=1)
    similar, different = layer.similar(h), layer.different(h)
    return layer.own(h) + (share * gate) @ similar + (share * (1 - gate)) @ different


def test_gbkgnn_is_its_formula():
    graph, x, A = small_graph()
    model = made(GBKGNN, LayersConfig(F, C, 5))
    expected = transcribed(model.layers[1], transcribed(model.layers[0], x, A).relu(), A)
    torch.testing.assert_close(model(x, graph), expected)
