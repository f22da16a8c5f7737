import pytest
import torch

from nlsf.nn.baselines.edge_attention import edge_attention
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.testing.graphs import hostile_graphs, star

F64 = torch.float64


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
