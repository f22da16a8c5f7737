import torch
from torch.nn.functional import gelu

from nlsf.nn.baselines.gtsep import GTSep, GTSepConfig
from nn.baselines.spatial import C, F, dot_product_attention, made, small_graph


def test_gt_sep_is_its_formula():
    graph, x, A = small_graph()
    model = made(GTSep, GTSepConfig(F, C, 8, heads=2))
    h = gelu(model.encoder(x))
    for i in range(0, 4, 2):
        attention, network = model.parts[i], model.parts[i + 1]
        n = model.norms[i](h)
        h = h + attention.lin(torch.cat([n, dot_product_attention(attention.conv, n, A)], dim=1))
        h = h + network.second(gelu(network.first(model.norms[i + 1](h))))
    torch.testing.assert_close(model(x, graph), model.last(model.last_norm(h)))
