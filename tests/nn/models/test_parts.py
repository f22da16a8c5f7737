import pytest
import torch

from nlsf.nn import GraphClassifier, NodeClassifier, NodeNLSF, parameter_groups


def groups(kind, **fields):
    """The parameter names of each group that is not empty."""
    model = kind(in_channels=4, out_channels=3, hidden_channels=5, **fields)
    found = parameter_groups(model)
    assert list(found) == [name for name, _ in model.named_parameters()]
    return {g: {n for n, group in found.items() if group == g} for g in sorted(set(found.values()))}


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_node_models(branches, score):
    found = groups(NodeClassifier, branches=branches, score=score, response="full", num_layers=2)
    assert set(found) == {"encoder", "psi", "gain", "decoder"}
    assert all(name.endswith(".response.network.biases.1") for name in found["gain"])
    assert all(name.startswith("encoder.") for name in found["encoder"])
    assert all(".response." in name or "score" in name for name in found["psi"])
    assert all(
        name.startswith("decoder.") or ".lin." in name or ".norms." in name
        for name in found["decoder"]
    )
    assert any("score" in name for name in found["psi"]) == (branches == "attention")
    assert any(".lin." in name for name in found["decoder"])


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
def test_graph_models(branches):
    found = groups(GraphClassifier, branches=branches)
    assert all(name.endswith(".lin.weight") for name in found["encoder"])
    assert found.get("psi", set()) == ({"filter.scores"} if branches == "attention" else set())
    assert any(".network." in name for name in found["decoder"])
    assert any(name.startswith("head.") for name in found["decoder"])
    assert any(".standard." in name for name in found["decoder"])


def test_pooling_models():
    found = groups(GraphClassifier, level="pooling")
    assert "encoder" not in found
    assert all(".node.response." in name or name == "filter.scores" for name in found["psi"])
    assert len(found["gain"]) == 2  # one a branch
    assert any(".node.lin." in name for name in found["decoder"])


def test_a_layer_by_itself():
    layer = NodeNLSF(4, 3)
    found = parameter_groups(layer)
    assert found.pop("lin.weight") == "decoder"
    assert found.pop("response.network.biases.1") == "gain"
    assert set(found.values()) == {"psi"}


@pytest.mark.parametrize("response", ["diagonal", "bandwise", "full", "constant"])
@pytest.mark.parametrize("depth", [1, 3])
def test_gains_alone_are_a_linear_filter(response, depth):
    layer = NodeNLSF(3, 2, response=response, a=0.0, depth=depth)
    gain = {name for name, group in parameter_groups(layer).items() if group == "gain"}
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in layer.response.named_parameters(prefix="response"):
            parameter.zero_() if name not in gain else parameter.normal_()
    x, y = torch.randn(2, 12, 3)
    edges = torch.stack([torch.arange(12), torch.arange(12).roll(1)])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    torch.testing.assert_close(
        layer(2 * x + y, edges), 2 * layer(x, edges) + layer(y, edges), atol=1e-4, rtol=1e-4
    )
    start = NodeNLSF(3, 2, response=response, a=0.0, depth=depth)
    start.load_state_dict({**start.state_dict(), **_without(layer.state_dict(), gain)})
    assert not torch.allclose(layer(x, edges), start(x, edges))


def _without(state, names):
    return {name: value for name, value in state.items() if name not in names}
