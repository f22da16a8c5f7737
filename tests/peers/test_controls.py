import numpy as np
import pytest
import torch

from nlsf.data.dataset import Lesson
from nlsf.peers import Neighbourhood
from nlsf.peers.base import SolverConfig
from nlsf.peers.controls import (
    ResNet,
    ResNetAdj,
    ResNetAdjConfig,
    ResNetConfig,
    ResNetSGC,
    ResNetSGCConfig,
    majority,
)
from train.small import node_data, regression_data


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


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def test_edges_are_features():
    torch.manual_seed(0)
    graph, A = small_graph()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = ResNetAdj(ResNetAdjConfig(4, 3, 6, num_nodes=12)).double().eval()
    W = torch.cat([model.first.weight, model.of_edges.weight], dim=1)
    expected = torch.cat([x, A], dim=1) @ W.T + model.first.bias
    torch.testing.assert_close(model.embedding(x, graph), expected)


def test_the_further_features_are_a_low_pass_of_the_features():
    torch.manual_seed(0)
    graph, A = small_graph()
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


def lesson(y):
    rows = torch.arange(len(y))
    return Lesson(rows, y, rows[:0], y[:0])


def test_the_most_frequent_class_of_the_training():
    y = torch.tensor([2, 0, 2, 2, 0])
    out = majority(node_data(), lesson(y), SolverConfig(8, 3), 0)
    assert out.shape == (60, 3)
    assert out.softmax(-1)[7].tolist() == pytest.approx([3 / 8, 1 / 8, 4 / 8])
    assert set(out.argmax(-1).tolist()) == {2}


def test_the_mean_of_the_training_targets():
    y = torch.tensor([[1.0, 5.0], [3.0, -1.0]])
    out = majority(regression_data(), lesson(y), SolverConfig(8, 2), 0)
    assert torch.equal(out, torch.tensor([[2.0, 2.0]]).repeat(60, 1))
