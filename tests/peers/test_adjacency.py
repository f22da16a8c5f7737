import pytest
import torch

from nlsf.errors import ModelError
from nlsf.peers import Neighbourhood
from nlsf.peers.adjacency import LINK, LINKX, GloGNN, GloGNNConfig, LINKConfig, LINKXConfig
from nlsf.testing.graphs import star


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def normalised(A):
    degree = A.sum(1)
    root = torch.where(degree > 0, degree, torch.inf).rsqrt()
    return root[:, None] * A * root


def drawn(**settings):
    torch.manual_seed(0)
    graph, A = small_graph()
    model = GloGNN(GloGNNConfig(4, 3, 6, num_nodes=12, **settings)).double().eval()
    with torch.no_grad():
        model.coefficients.normal_()
    return model, graph, normalised(A + torch.eye(12))


def near(model, P):
    powers = [torch.linalg.matrix_power(P, k + 1) for k in range(model.config.K)]
    return sum(c * p for c, p in zip(model.coefficients.detach(), powers, strict=True))


def objective(Z, h, start, R, config):
    rest = h - (1 - config.gamma) * Z @ h - config.gamma * start
    return (
        rest.square().sum()
        + config.beta1 * Z.square().sum()
        + config.beta2 * (Z - R).square().sum()
    )


def best(h, start, R, config):
    """The coefficients by their normal equations, N x N and all."""
    c = 1 - config.gamma
    left = c * c * h @ h.T + (config.beta1 + config.beta2) * torch.eye(len(h))
    right = c * (h - config.gamma * start) @ h.T + config.beta2 * R
    return torch.linalg.solve(left, right, left=False)


def test_the_dense_coefficients_are_where_the_objective_is_least():
    model, _, P = drawn(beta1=0.7, beta2=1.3, gamma=0.4)
    h, start = torch.randn(2, 12, 3, dtype=torch.float64)
    R = near(model, P)
    Z = best(h, start, R, model.config).requires_grad_()
    (gradient,) = torch.autograd.grad(objective(Z, h, start, R, model.config), Z)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-10)


@pytest.mark.parametrize("betas", [(0.7, 1.3), (0.0, 10.0), (2.0, 0.0)])
def test_all_layers_are_those_of_the_dense_coefficients(betas):
    model, graph, P = drawn(beta1=betas[0], beta2=betas[1], gamma=0.4, alpha=0.6, K=3)
    x = torch.randn(12, 4, dtype=torch.float64)
    mixed = 0.6 * model.of_features(x) + 0.4 * model.of_edges(P)
    start = model.last(mixed.clamp(min=0))
    h = start
    for _ in range(model.config.num_layers):
        h = 0.6 * best(h, start, near(model, P), model.config) @ h + 0.4 * start
    torch.testing.assert_close(model(x, graph), h)


def test_an_objective_without_a_least_place_is_refused():
    with pytest.raises(ModelError, match="not both zero"):
        GloGNNConfig(4, 3, beta1=0.0, beta2=0.0)


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
