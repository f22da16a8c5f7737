import torch

from nlsf.nn.baselines.fagcn import FAGCN, FAGCNConfig
from nn.baselines.spatial import C, F, made, small_graph


def test_fagcn_is_its_formula():
    graph, x, A = small_graph()
    model = made(FAGCN, FAGCNConfig(F, C, 5, num_layers=3, eps=0.4))
    with torch.no_grad():
        model.receivers[0].bias -= 1  # some scores are negative
    degree = A.sum(1)
    norm = A / (degree[:, None] * degree[None]).sqrt().clamp(min=1)
    first = model.encoder(x).relu()
    h = first
    for receiver, sender in zip(model.receivers, model.senders, strict=True):
        scores = torch.tanh(receiver(h) + sender(h).T)
        h = 0.4 * first + (scores * norm) @ h
    torch.testing.assert_close(model(x, graph), model.last(h))
