import torch

from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.link import LINK, LINKConfig
from nlsf.testing.graphs import star


def test_scores_are_the_sums_of_the_weights_of_neighbours():
    torch.manual_seed(0)
    model = LINK(LINKConfig(3, 2, num_nodes=5)).double().eval()
    edges = star(4).edge_index
    out = model(torch.zeros(5, 3), Neighbourhood(edges, 5, dtype=torch.float64))
    for node in range(5):
        neighbours = edges[1][edges[0] == node]
        expected = model.lin.weight[:, neighbours].sum(1) + model.lin.bias
        torch.testing.assert_close(out[node], expected)


def test_features_are_not_looked_at():
    model = LINK(LINKConfig(3, 2, num_nodes=5)).eval()
    graph = Neighbourhood(star(4).edge_index, 5)
    assert torch.equal(model(torch.zeros(5, 3), graph), model(torch.randn(5, 3), graph))
