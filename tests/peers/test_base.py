import pytest
import torch
from torch import nn

from nlsf.errors import ConfigError, ModelError
from nlsf.peers import Neighbourhood
from nlsf.peers.adjacency import LINK, LINKConfig
from nlsf.peers.convolutions import Convolutions, LayersConfig
from nlsf.testing.graphs import star
from nlsf.train.settings.models import MODELS
from peers.spatial import C, F, small_graph


class Mean(nn.Module):
    """A layer that notes its widths."""

    def __init__(self, a, b):
        super().__init__()
        self.widths = a, b
        self.lin = nn.Linear(a, b)

    def forward(self, h, graph):
        return graph.matrix("row") @ self.lin(h)


class Stack(Convolutions):
    def __init__(self, config):
        super().__init__(config, config.num_layers)
        self.layers = self.for_each(Mean)


def stack(num_layers, **fields):
    torch.manual_seed(0)
    return Stack(LayersConfig(F, C, 5, num_layers=num_layers, **fields)).double()


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


OF_ONE_GRAPH = ["glognn", "link", "linkx", "resnet-adj"]


def test_a_graph_of_another_size_is_refused():
    model = LINK(LINKConfig(3, 2, num_nodes=7))
    other = Neighbourhood(star(4).edge_index, 5)
    with pytest.raises(ModelError, match=r"each of 7 nodes.* graph of 5"):
        model(torch.ones(5, 3), other)


@pytest.mark.parametrize("name", OF_ONE_GRAPH)
def test_the_data_decide_the_number_of_nodes(name):
    kind = MODELS[name]
    assert kind.of_one_graph
    assert kind.levels == ("node",)
    assert kind.build({}, 3, 2, "node", 9).config.num_nodes == 9
    with pytest.raises(ConfigError, match="decided by the data"):
        kind.resolve({"num_nodes": 4})
    assert "num_nodes" not in kind.resolve({})


def test_other_models_do_not_ask_for_it():
    assert not MODELS["gcn"].of_one_graph
    assert not MODELS["att-node"].of_one_graph
