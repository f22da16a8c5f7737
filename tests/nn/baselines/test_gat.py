import torch
from torch.nn.functional import elu

from nlsf.nn.baselines.gat import GAT, GATConfig
from nn.baselines.spatial import F64, C, F, N, additive_attention, made, small_graph


def test_gat_is_its_formula():
    graph, x, A = small_graph()
    model = made(GAT, GATConfig(F, C, 8, heads=2, slope=0.3))
    loops = A + torch.eye(N, dtype=F64)
    h = elu(additive_attention(model.first, model.encoder(x), loops) + model.first.bias)
    expected = additive_attention(model.last, model.last.lin(h), loops) + model.last.bias
    torch.testing.assert_close(model(x, graph), expected)
