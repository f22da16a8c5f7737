import torch
from torch.nn.functional import gelu

from nlsf.nn.baselines.gt import GT, GTConfig
from nn.baselines.spatial import F64, C, F, N, dot_product_attention, made, small_graph


def test_gt_is_its_formula():
    graph, x, A = small_graph()
    model = made(GT, GTConfig(F, C, 8, heads=2))
    loops = A + torch.eye(N, dtype=F64)
    h = gelu(model.encoder(x))
    for i in range(0, 4, 2):
        attention, network = model.parts[i], model.parts[i + 1]
        h = h + attention.lin(dot_product_attention(attention.conv, model.norms[i](h), loops))
        h = h + network.second(gelu(network.first(model.norms[i + 1](h))))
    torch.testing.assert_close(model(x, graph), model.last(model.last_norm(h)))


def test_the_heads_reach_pytorch_geometric():
    conv = GT(GTConfig(F, C, 12, heads=3)).parts[0].conv
    assert (conv.heads, conv.out_channels, conv.root_weight) == (3, 4, False)
