import pytest

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
    assert set(found) == {"encoder", "psi", "decoder"}
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
    assert any(".node.lin." in name for name in found["decoder"])


def test_a_layer_by_itself():
    layer = NodeNLSF(4, 3)
    found = parameter_groups(layer)
    assert found.pop("lin.weight") == "decoder"
    assert set(found.values()) == {"psi"}
