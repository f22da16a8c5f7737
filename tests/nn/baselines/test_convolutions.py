import torch
from torch import nn

from nlsf.nn.baselines.base import PeerConfig
from nlsf.nn.baselines.convolutions import Convolutions
from nn.baselines.spatial import C, F, small_graph


class Mean(nn.Module):
    """A layer that notes its widths."""

    def __init__(self, a, b):
        super().__init__()
        self.widths = a, b
        self.lin = nn.Linear(a, b)

    def forward(self, h, graph):
        return graph.matrix("row") @ self.lin(h)


def stack(num_layers, **fields):
    torch.manual_seed(0)
    return Convolutions(PeerConfig(F, C, 5, **fields), num_layers, Mean).double()


def test_widths_go_from_features_to_outputs():
    assert [layer.widths for layer in stack(3).layers] == [(F, 5), (5, 5), (5, C)]
    assert [layer.widths for layer in stack(1).layers] == [(F, C)]


def test_relu_stands_between_layers_and_not_at_the_end():
    graph, x, _ = small_graph()
    model = stack(2).eval()
    first, last = model.layers
    expected = last(first(x, graph).relu(), graph)
    assert (expected < 0).any()
    torch.testing.assert_close(model(x, graph), expected)


def test_dropout_stands_before_every_layer():
    graph, x, _ = small_graph()
    model = stack(2, input_dropout=0.3, dropout=0.6).train()
    assert (model.input_dropout.p, [one.p for one in model.dropouts]) == (0.3, [0.6])
    first, last = model.layers
    model.input_dropout.mask, model.dropouts[0].mask = torch.zeros(12, F), torch.ones(12, 5)
    expected = last(first(0 * x, graph).relu(), graph)
    torch.testing.assert_close(model(x, graph), expected)
    model.input_dropout.mask, model.dropouts[0].mask = torch.ones(12, F), torch.zeros(12, 5)
    torch.testing.assert_close(model(x, graph), last(torch.zeros(12, 5).double(), graph))
