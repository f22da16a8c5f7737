import torch

from nlsf.nn.baselines.cpgnn import CPGNN, CPGNNConfig
from nn.baselines.spatial import F64, C, F, made, small_graph


def test_cpgnn_is_its_formula():
    graph, x, A = small_graph()
    model = made(CPGNN, CPGNNConfig(F, C, 5, rounds=2))
    H = model.coefficients @ (torch.eye(C, dtype=F64) - 1 / C)
    prior = model.last(model.encoder(x).relu()).softmax(1) - 1 / C
    expected = prior + A @ prior @ H + A @ A @ prior @ H @ H
    torch.testing.assert_close(model(x, graph), expected)


def test_classes_are_next_to_their_own_at_the_start():
    start = CPGNN(CPGNNConfig(F, C)).compatibility()
    torch.testing.assert_close(start, torch.eye(C) - 1 / C)


def test_beliefs_stay_centred():
    graph, x, _ = small_graph()
    model = made(CPGNN, CPGNNConfig(F, C, 5, rounds=2))
    sums = model(x, graph).sum(1)
    torch.testing.assert_close(sums, torch.zeros_like(sums))
