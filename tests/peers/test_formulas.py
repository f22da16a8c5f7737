"""Every peer against its formula, transcribed densely on a graph with an isolated node."""

import math

import numpy as np
import pytest
import torch
from scipy.special import eval_chebyt, eval_jacobi
from torch_geometric.nn import GATConv

from nlsf.data.generators import block_model
from nlsf.errors import ModelError
from nlsf.peers import Neighbourhood
from nlsf.peers.attention import GAT, GATConfig
from nlsf.peers.base import PeerConfig
from nlsf.peers.convolutions import GCN, GIN, MLP, SAGE, GINConfig, LayersConfig
from nlsf.peers.polynomials import (
    GPRGNN,
    BernNet,
    BernNetConfig,
    ChebNet,
    ChebNetConfig,
    ChebNetII,
    ChebNetIIConfig,
    GPRGNNConfig,
    JacobiConv,
    JacobiConvConfig,
)
from nlsf.peers.rational import APPNP, ARMA, APPNPConfig, ARMAConfig
from nlsf.testing.graphs import star

N, F, C = 13, 4, 3
F64 = torch.float64


@pytest.fixture(scope="module")
def graph():
    edges = block_model(N, 3, 4.0, seed=2).edge_index
    return Neighbourhood(edges[:, (edges != N - 1).all(0)], N, dtype=F64)


@pytest.fixture(scope="module")
def x():
    return torch.randn(N, F, dtype=F64, generator=torch.Generator().manual_seed(0))


def made(method, config):
    torch.manual_seed(1)
    model = method(config).to(F64).eval()
    with torch.no_grad():  # no value of the start hides a mistake
        for p in model.parameters():
            p += 0.3 * torch.rand(p.shape, dtype=F64, generator=torch.Generator().manual_seed(3))
    return model


def dense(graph, loops=False):
    A = np.zeros((N, N))
    A[graph.edge_index[0], graph.edge_index[1]] = 1
    if loops:
        A += np.eye(N)
    d = A.sum(1)
    root = np.where(d > 0, np.where(d > 0, d, 1) ** -0.5, 0)
    return root[:, None] * A * root


def filtered(S, g, h):
    """V g(lam) V^T H, the definition of a filter of a symmetric matrix."""
    values, vectors = np.linalg.eigh(S)
    return torch.from_numpy(vectors * g(values) @ vectors.T) @ h


def test_appnp(graph, x):
    model = made(APPNP, APPNPConfig(F, C, 5, K=4, alpha=0.2))

    def g(p):
        z = np.ones_like(p)
        for _ in range(4):
            z = 0.8 * p * z + 0.2
        return z

    expected = filtered(dense(graph, loops=True), g, model.scores(x))
    torch.testing.assert_close(model(x, graph), expected)


def test_gprgnn(graph, x):
    model = made(GPRGNN, GPRGNNConfig(F, C, 5, K=5))
    gamma = model.coefficients.detach().numpy()
    expected = filtered(
        dense(graph, loops=True), lambda p: np.polyval(gamma[::-1], p), model.scores(x)
    )
    torch.testing.assert_close(model(x, graph), expected)
    start = GPRGNN(GPRGNNConfig(F, C, K=3, alpha=0.1)).coefficients.detach()
    torch.testing.assert_close(start, torch.tensor([0.1, 0.09, 0.081, 0.729]))
    assert float(start.sum()) == pytest.approx(1)


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_chebnet(graph, x, K):
    model = made(ChebNet, ChebNetConfig(F, C, 5, K=K, num_layers=1))
    lins = model.layers[0].lins
    terms = [
        filtered(-dense(graph), lambda t, k=k: eval_chebyt(k, t), lins[k](x)) for k in range(K)
    ]
    # The bias belongs to the sum, not to the filtered signal; T_0 leaves it where it is.
    torch.testing.assert_close(model(x, graph), torch.stack(terms).sum(0))


@pytest.mark.parametrize("K", [1, 4, 10])
def test_chebnetii_interpolates(graph, x, K):
    model = made(ChebNetII, ChebNetIIConfig(F, C, 5, K=K))
    w = model.weights().detach().numpy()

    def g(t):
        return sum(w[k] * eval_chebyt(k, t) for k in range(K + 1))

    nodes = np.cos((np.arange(K + 1) + 0.5) * math.pi / (K + 1))
    np.testing.assert_allclose(g(nodes), model.coefficients.detach().relu().numpy(), atol=1e-12)
    torch.testing.assert_close(model(x, graph), filtered(-dense(graph), g, model.scores(x)))


def test_bernnet(graph, x):
    K = 6
    model = made(BernNet, BernNetConfig(F, C, 5, K=K))
    theta = model.coefficients.detach().numpy()

    def g(p):
        lam = 1 - p
        return sum(
            theta[k] * math.comb(K, k) / 2**K * (2 - lam) ** (K - k) * lam**k for k in range(K + 1)
        )

    torch.testing.assert_close(model(x, graph), filtered(dense(graph), g, model.scores(x)))


def test_bernnet_starts_as_an_all_pass(graph, x):
    model = BernNet(BernNetConfig(F, C, 5)).to(F64).eval()
    torch.testing.assert_close(model(x, graph), model.scores(x))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.0, 0.5), (-0.5, 2.0)])
def test_jacobiconv(graph, x, a, b):
    K = 6
    model = made(JacobiConv, JacobiConvConfig(F, C, K=K, a=a, b=b))
    w, h = model.weights().detach(), model.lin(x)
    terms = [
        w[k] * filtered(dense(graph), lambda p, k=k: eval_jacobi(k, a, b, p), h)
        for k in range(K + 1)
    ]
    torch.testing.assert_close(model(x, graph), torch.stack(terms).sum(0))


def test_jacobi_coefficients_decay_at_the_start():
    model = JacobiConv(JacobiConvConfig(F, C, K=4))
    expected = 0.5 ** torch.arange(5.0)
    torch.testing.assert_close(model.weights()[:, 0], expected, rtol=1e-4, atol=0)


def test_arma(graph, x):
    model = made(ARMA, ARMAConfig(F, C, 5, stacks=2, iterations=3))
    P = torch.from_numpy(dense(graph))

    def layer(part, h, activation):
        each = []
        for s in part.stacks:
            z = P @ s.first(h) + s.skip(h)
            for _ in range(2):
                z = P @ s.again(z.relu()) + s.skip(h)
            each.append(activation(z))
        return sum(each) / 2

    expected = layer(model.last, layer(model.first, x, torch.relu), lambda z: z)
    torch.testing.assert_close(model(x, graph), expected)


def test_sage(graph, x):
    model = made(SAGE, LayersConfig(F, C, 5))
    A = (torch.from_numpy(dense(graph)) > 0).to(F64)
    mean = A / A.sum(1, keepdim=True).clamp(min=1)
    h = (model.own[0](x) + mean @ model.near[0](x)).relu()
    torch.testing.assert_close(model(x, graph), model.own[1](h) + mean @ model.near[1](h))


def test_gin(graph, x):
    model = made(GIN, GINConfig(F, C, 5, num_layers=2))
    A = (torch.from_numpy(dense(graph)) > 0).to(F64)
    h = x
    for i in range(2):
        summed = (1 + model.eps[i]) * h + A @ h
        h = model.second[i](model.norms[i](model.first[i](summed)).relu()).relu()
    torch.testing.assert_close(model(x, graph), model.last(h))


def test_gat_computes_what_pytorch_geometric_does(graph, x, monkeypatch):
    model = made(GAT, GATConfig(F, C, 8, heads=4, slope=0.3))
    assert isinstance(model.first, GATConv)
    assert (model.first.heads, model.first.out_channels, model.first.negative_slope) == (4, 2, 0.3)
    assert (model.last.heads, model.last.out_channels) == (1, C)
    h = torch.nn.functional.elu(model.first(model.encoder(x), graph.edge_index))
    wanted = model.last(h, graph.edge_index)
    torch.testing.assert_close(model(x, graph), wanted)
    monkeypatch.setattr("nlsf.peers.attention._MANY", 0)
    torch.testing.assert_close(model(x, graph), wanted)


def test_an_mlp_does_not_see_the_graph(graph, x):
    model = made(MLP, PeerConfig(F, C, 5))
    empty = Neighbourhood(torch.zeros(2, 0, dtype=torch.int64), N, dtype=F64)
    assert torch.equal(model(x, graph), model(x, empty))
    h = model.scores.first(x).relu()
    torch.testing.assert_close(model(x, graph), model.scores.last(h))


@pytest.mark.parametrize("fields", [{"K": 0}, {"alpha": 0.0}, {"alpha": 1.5}])
def test_impossible_settings_are_refused(fields):
    with pytest.raises(ModelError, match="APPNP needs"):
        APPNPConfig(F, C, **fields)


def test_a_layer_of_gcn_is_a_filter_of_the_normalised_adjacency():
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
