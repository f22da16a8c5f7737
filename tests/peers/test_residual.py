import numpy as np
import torch
from torch.nn.functional import gelu

from nlsf.peers import Neighbourhood
from nlsf.peers.residual import (
    GT,
    AttentionConfig,
    GATSep,
    GTSep,
    ResNet,
    ResNetAdj,
    ResNetAdjConfig,
    ResNetConfig,
    ResNetSGC,
    ResNetSGCConfig,
)
from peers.spatial import F64, C, F, N, additive_attention, dot_product_attention, made, small_graph


def standardised(h, norm):
    centred = h - h.mean(1, keepdim=True)
    scale = (centred.square().mean(1, keepdim=True) + norm.eps).sqrt()
    return centred / scale * norm.weight + norm.bias


def test_layers_add_to_what_they_get():
    torch.manual_seed(0)
    model = ResNet(ResNetConfig(4, 3, 6, num_layers=3)).double().eval()
    x = torch.randn(5, 4, dtype=torch.float64)
    gelu = torch.nn.functional.gelu
    h = gelu(model.first(x))
    for layer in model.layers:
        h = h + layer.last(gelu(layer.first(standardised(h, layer.norm))))
    expected = model.last(standardised(h, model.norm))
    graph = Neighbourhood(torch.zeros(2, 0, dtype=torch.int64), 5, dtype=torch.float64)
    torch.testing.assert_close(model(x, graph), expected)


def test_edges_do_not_matter():
    model = ResNet(ResNetConfig(4, 3, 6)).eval()
    x = torch.randn(2, 4)
    apart = model(x, Neighbourhood(torch.zeros(2, 0, dtype=torch.int64), 2))
    assert torch.equal(model(x, Neighbourhood(torch.tensor([[0, 1], [1, 0]]), 2)), apart)


def random_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def test_edges_are_features():
    torch.manual_seed(0)
    graph, A = random_graph()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = ResNetAdj(ResNetAdjConfig(4, 3, 6, num_nodes=12)).double().eval()
    W = torch.cat([model.first.weight, model.of_edges.weight], dim=1)
    expected = torch.cat([x, A], dim=1) @ W.T + model.first.bias
    torch.testing.assert_close(model.embedding(x, graph), expected)


def test_the_further_features_are_a_low_pass_of_the_features():
    torch.manual_seed(0)
    graph, A = random_graph()
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


def test_gat_sep_is_its_formula():
    graph, x, A = small_graph()
    model = made(GATSep, AttentionConfig(F, C, 8, heads=2))
    h = gelu(model.encoder(x))
    for norm, part in zip(model.norms, model.parts, strict=True):
        n = norm(h)
        both = torch.cat([n, additive_attention(part.conv, part.conv.lin(n), A)], dim=1)
        h = h + part.network.second(gelu(part.network.first(both)))
    torch.testing.assert_close(model(x, graph), model.last(model.last_norm(h)))


def test_a_node_does_not_attend_to_itself():
    graph, _, _ = small_graph()
    layer = made(GATSep, AttentionConfig(F, C, 8, heads=2)).parts[0]
    h = torch.randn(N, 8, dtype=F64)
    assert not layer.conv(h, graph.edge_index)[N - 1].any()


def test_the_heads_reach_pytorch_geometric():
    conv = GATSep(AttentionConfig(F, C, 12, heads=3)).parts[0].conv
    assert (conv.heads, conv.out_channels, conv.add_self_loops) == (3, 4, False)


def test_gt_is_its_formula():
    graph, x, A = small_graph()
    model = made(GT, AttentionConfig(F, C, 8, heads=2))
    loops = A + torch.eye(N, dtype=F64)
    h = gelu(model.encoder(x))
    for i in range(0, 4, 2):
        attention, network = model.parts[i], model.parts[i + 1]
        h = h + attention.lin(dot_product_attention(attention.conv, model.norms[i](h), loops))
        h = h + network.second(gelu(network.first(model.norms[i + 1](h))))
    torch.testing.assert_close(model(x, graph), model.last(model.last_norm(h)))


def test_gt_the_heads_reach_pytorch_geometric():
    conv = GT(AttentionConfig(F, C, 12, heads=3)).parts[0].conv
    assert (conv.heads, conv.out_channels, conv.root_weight) == (3, 4, False)


def test_gt_sep_is_its_formula():
    graph, x, A = small_graph()
    model = made(GTSep, AttentionConfig(F, C, 8, heads=2))
    h = gelu(model.encoder(x))
    for i in range(0, 4, 2):
        attention, network = model.parts[i], model.parts[i + 1]
        n = model.norms[i](h)
        h = h + attention.lin(torch.cat([n, dot_product_attention(attention.conv, n, A)], dim=1))
        h = h + network.second(gelu(network.first(model.norms[i + 1](h))))
    torch.testing.assert_close(model(x, graph), model.last(model.last_norm(h)))
