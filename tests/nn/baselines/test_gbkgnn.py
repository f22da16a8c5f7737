import torch

from nlsf.nn.baselines.gbkgnn import GBKGNN, GBKGNNConfig
from nn.baselines.spatial import C, F, made, small_graph


def transcribed(layer, h, A):
    gate = torch.sigmoid(layer.receiver(h) + layer.sender(h).T)
    share = A / A.sum(1, keepdim=True).clamp(min=1)
    similar, different = layer.similar(h), layer.different(h)
    return layer.own(h) + (share * gate) @ similar + (share * (1 - gate)) @ different


def test_gbkgnn_is_its_formula():
    graph, x, A = small_graph()
    model = made(GBKGNN, GBKGNNConfig(F, C, 5))
    expected = transcribed(model.layers[1], transcribed(model.layers[0], x, A).relu(), A)
    torch.testing.assert_close(model(x, graph), expected)
