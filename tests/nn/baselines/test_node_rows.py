import pytest
import torch

from nlsf.errors import ConfigError, ModelError
from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.link import LINK, LINKConfig
from nlsf.testing.graphs import star
from nlsf.train.models import MODELS

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
