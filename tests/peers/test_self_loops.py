"""Graphs that come with self loops: peers give the numbers of PyTorch Geometric's layers."""

import pytest
import torch
from torch_geometric.nn import ChebConv, GATConv, GCNConv, GINConv, SAGEConv

from nlsf.peers import Neighbourhood, attention
from nlsf.peers.attention import GAT, GATConfig
from nlsf.peers.convolutions import GCN, SAGE, LayersConfig
from nlsf.peers.polynomials import ChebNet, ChebNetConfig
from nlsf.peers.residual import AttentionConfig, GraphAttention
from nlsf.spectral import laplacian
from nlsf.testing.graphs import path, star, torus

F64 = torch.float64
GRAPHS = {"path": path(6), "star": star(5), "torus": torus(3, 4)}
LOOPS = {"none": [], "one": [2], "some": [0, 3, 4], "all": None}

every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
every_loops = pytest.mark.parametrize("loops", LOOPS.values(), ids=LOOPS)


def looped(graph, loops):
    """The edges with loops at these nodes, one more node that has nothing else, and a signal."""
    n = graph.num_nodes + 1
    nodes = torch.arange(n) if loops is None else torch.tensor([*loops, n - 1], dtype=torch.int64)
    edges = torch.cat([nodes.expand(2, -1), graph.edge_index], dim=1)
    x = torch.randn(n, 3, dtype=F64, generator=torch.Generator().manual_seed(n))
    return edges, n, x


def symmetric_weights(edges):
    return 0.5 + torch.cos(edges.sum(0).to(F64)) ** 2


def copied(target, source):
    with torch.no_grad():
        target.copy_(source)


@every_graph
@every_loops
@pytest.mark.parametrize("weighted", [True, False])
def test_gcn(graph, loops, weighted):
    edges, n, x = looped(graph, loops)
    weight = symmetric_weights(edges) if weighted else None
    model, conv = GCN(LayersConfig(3, 2, num_layers=1)).to(F64).eval(), GCNConv(3, 2).to(F64)
    copied(conv.lin.weight, model.lins[0].weight)
    copied(conv.bias, 0 * conv.bias)
    # A bias of ours goes through the graph, where that of PyTorch Geometric is added behind it.
    copied(model.lins[0].bias, 0 * model.lins[0].bias)
    found = model(x, Neighbourhood(edges, n, weight, F64))
    torch.testing.assert_close(found, conv(x, edges, weight))


@every_graph
@every_loops
@pytest.mark.parametrize("many", [0, 20_000])
def test_gat(graph, loops, many, monkeypatch):
    monkeypatch.setattr(attention, "_MANY", many)
    edges, n, x = looped(graph, loops)
    model = GAT(GATConfig(3, 2, 4, heads=2)).to(F64).eval()
    first, last = GATConv(4, 2, heads=2).to(F64), GATConv(4, 2).to(F64)
    last.load_state_dict(model.last.state_dict())
    first.lin = torch.nn.Identity()
    first.load_state_dict(model.first.state_dict())
    h = torch.nn.functional.elu(first(model.encoder(x), edges))
    torch.testing.assert_close(model(x, Neighbourhood(edges, n, dtype=F64)), last(h, edges))


@every_graph
@every_loops
def test_sage(graph, loops):
    edges, n, x = looped(graph, loops)
    model = SAGE(LayersConfig(3, 2, num_layers=1)).to(F64).eval()
    conv = SAGEConv(3, 2).to(F64)
    copied(conv.lin_l.weight, model.near[0].weight)
    copied(conv.lin_r.weight, model.own[0].weight)
    copied(conv.lin_l.bias, model.own[0].bias)
    torch.testing.assert_close(model(x, Neighbourhood(edges, n, dtype=F64)), conv(x, edges))


@every_graph
@every_loops
@pytest.mark.parametrize("weighted", [True, False])
def test_chebnet(graph, loops, weighted):
    edges, n, x = looped(graph, loops)
    weight = symmetric_weights(edges) if weighted else None
    model = ChebNet(ChebNetConfig(3, 2, K=3, num_layers=1)).to(F64).eval()
    conv = ChebConv(3, 2, K=3).to(F64)
    for ours, theirs in zip(model.layers[0].lins, conv.lins, strict=True):
        copied(theirs.weight, ours.weight)
    copied(conv.bias, model.layers[0].lins[0].bias)
    found = model(x, Neighbourhood(edges, n, weight, F64))
    torch.testing.assert_close(found, conv(x, edges, weight))


@every_graph
@every_loops
def test_sums_over_neighbours(graph, loops):
    edges, n, x = looped(graph, loops)
    conv = GINConv(torch.nn.Identity(), eps=-1.0)
    matrix = Neighbourhood(edges, n, dtype=F64).matrix("adjacency")
    torch.testing.assert_close(matrix @ x, conv(x, edges))


@every_graph
@every_loops
@pytest.mark.filterwarnings("ignore:.*self loops were dropped")
def test_the_matrix_of_the_laplacian_is_that_of_this_package(graph, loops):
    edges, n, _ = looped(graph, loops)
    weight = symmetric_weights(edges)
    N = laplacian(edges, weight, n, "sym").to_dense()
    has_edges = (edges[:, edges[0] != edges[1]][0].bincount(minlength=n) > 0).to(F64)
    P = Neighbourhood(edges, n, weight, F64).matrix("sym").dense()
    torch.testing.assert_close(has_edges.diag() - P, N)


@every_graph
def test_a_loop_counts_once_in_a_transformer(graph):
    edges, _, x = looped(graph, [0, 3])
    layer = GraphAttention(AttentionConfig(3, 2, 4, heads=2), separate=False).to(F64).eval()
    h = torch.cat([x, x[:, :1]], dim=1)
    torch.testing.assert_close(layer(h, edges), layer(h, graph.edge_index))
