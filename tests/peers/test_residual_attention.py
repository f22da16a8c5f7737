import torch
from torch.nn.functional import gelu

from nlsf.peers.residual_attention import GT, AttentionConfig, GATSep, GTSep
from peers.spatial import F64, C, F, N, additive_attention, dot_product_attention, made, small_graph


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
