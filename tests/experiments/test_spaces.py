"""What a model is tuned over changes the model."""

import networkx as nx
import pytest
import torch
from torch_geometric.utils import from_networkx

from nlsf.experiments.spaces import choices_of
from nlsf.train.settings.models import MODELS

EDGES = from_networkx(nx.lollipop_graph(6, 7)).edge_index
NODES = 13
X = torch.randn(NODES, 5, generator=torch.manual_seed(1)).relu()

EXCEPTIONS = {
    ("graph", "model.a"),  # without effect, but cells with rows have it in their spaces
    ("diffpool", "model.side_losses"),  # of the loss, not of the outputs
}


def output(name, level, settings):
    """What a model in training gives, with parameters far from a start where much is zero."""
    torch.manual_seed(0)
    model = MODELS[name].build(settings, X.shape[1], 3, level, num_nodes=NODES).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    torch.manual_seed(0)
    if level == "node":
        return model(X, EDGES)
    x, edges = torch.cat([X, X.flip(0)]), torch.cat([EDGES, EDGES + NODES], dim=1)
    return model(x, edges, None, torch.arange(2).repeat_interleave(NODES))


CASES = [
    (name, level, key)
    for name, kind in MODELS.items()
    for level in kind.levels
    if level != "signal"
    for key, values in choices_of(name, level).items()
    if key.startswith("model.") and len(values) > 1 and (name, key) not in EXCEPTIONS
]


@pytest.mark.parametrize(("name", "level", "key"), CASES)
def test_a_choice_changes_the_model(name, level, key):
    values = choices_of(name, level)[key]
    first, last = (
        output(name, level, {key.removeprefix("model."): value})
        for value in (values[0], values[-1])
    )
    assert not torch.equal(first, last)


@pytest.mark.parametrize(
    ("name", "level"), [(name, level) for name, kind in MODELS.items() for level in kind.levels]
)
def test_what_the_name_decides_is_no_choice(name, level):
    assert not {f"model.{key}" for key in MODELS[name].fixed} & set(choices_of(name, level))


@pytest.mark.parametrize(("name", "level"), [("linear-node", "node"), ("linear-signal", "signal")])
def test_filters_of_the_linear_controls_are_linear_wherever_they_are_tuned(name, level):
    """All choices at their last values, but for one layer: two have a normalisation between."""
    choices = choices_of(name, level)
    point = {
        key.removeprefix("model."): values[-1]
        for key, values in choices.items()
        if key.startswith("model.")
    }
    point |= {"num_layers": 1} if level == "node" else {}
    torch.manual_seed(0)
    model = MODELS[name].build(point, X.shape[1], 3, level, num_nodes=NODES).double()
    layer = model.filters if level == "node" else model.filters[0]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter))
    width = point["hidden_channels"] if level == "node" else X.shape[1]
    x, y = torch.randn(2, NODES, width, dtype=torch.float64)
    expected = 3 * layer(x, EDGES) - layer(y, EDGES)
    torch.testing.assert_close(layer(3 * x - y, EDGES), expected)
    assert expected.norm() > 0.1
