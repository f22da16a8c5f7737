import pytest
from torch import nn

from nlsf.errors import ConfigError
from nlsf.peers import PEERS, PeerModel
from nlsf.train.settings.models import MODELS, find_model
from nlsf.train.settings.presets import default_model

NODES = ["att-node", "index", "value", "linear-node"]
GRAPHS = ["graph", "pooling", "linear-pooling"]
SIGNALS = ["signal", "linear-signal"]
FITTING = {
    level: [name for name, kind in MODELS.items() if level in kind.levels]
    for level in ("node", "graph", "signal")
}


def test_names():
    ours = [*NODES, *GRAPHS, *SIGNALS]
    assert list(MODELS)[: len(ours)] == ours
    assert set(PEERS) <= set(MODELS)
    assert FITTING["node"][:4] == NODES
    assert FITTING["graph"][:3] == GRAPHS
    assert FITTING["signal"][:5] == [*GRAPHS, *SIGNALS]
    assert all(kind.name == name and kind.summary for name, kind in MODELS.items())


@pytest.mark.parametrize("level", FITTING)
def test_a_model_is_found_where_it_fits(level):
    for name in FITTING[level]:
        assert find_model(name, level) is MODELS[name]
    for name in set(MODELS) - set(FITTING[level]):
        with pytest.raises(ConfigError) as caught:
            find_model(name, level)
        said = f"examples are {level}s: use {', '.join(FITTING[level])}."
        assert str(caught.value).endswith(said), name


@pytest.mark.parametrize("level", FITTING)
def test_the_default_fits(level):
    assert default_model(level) in FITTING[level]


def test_an_unknown_model():
    with pytest.raises(ConfigError, match=r"no model 'att_node'. Did you mean 'att-node'?"):
        find_model("att_node", "node")


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
def test_defaults_build_what_the_name_says(kind):
    table = kind.resolve({})
    assert list(table) == kind.keys
    model = kind.build(table, 5, 3, kind.levels[0], 4)
    assert isinstance(model.body if isinstance(model, PeerModel) else model, kind.module)
    assert isinstance(model, nn.Module)
    assert (model.config.in_channels, model.config.out_channels) == (5, 3)
    assert {key: getattr(model.config, key) for key in kind.fixed} == dict(kind.fixed)
    assert kind.resolve(table) == table, "all settings are settled"


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
def test_what_name_or_data_decide_cannot_be_set(kind):
    for key, value in kind.fixed.items():
        assert key not in kind.keys
        with pytest.raises(ConfigError, match=f"model.{key} .* by the model '{kind.name}'"):
            kind.resolve({key: "other"})
        assert kind.resolve({key: value}) == kind.resolve({}), "what the name says may be said"
    for key in ("in_channels", "out_channels"):
        assert key not in kind.keys
        with pytest.raises(ConfigError, match=f"model.{key} .* decided by the data"):
            kind.resolve({key: 3})


def test_keys_that_cannot_be_set_are_not_offered():
    with pytest.raises(ConfigError, match=r"no key in \[model\] 'index_bands'") as error:
        MODELS["mlp"].resolve({"index_bands": {}})
    assert "in_channels" not in str(error.value)


def test_only_what_the_name_leaves_open_differs():
    assert "branches" in MODELS["graph"].keys
    assert "level" not in MODELS["graph"].keys
    assert MODELS["pooling"].resolve({"branches": "value"})["branches"] == "value"


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("value", {"hidden_channels": 0}, "model.hidden_channels must be at least 1, not 0"),
        ("value", {"psi_hidden": -3}, "model.psi_hidden must be at least 1, not -3"),
        ("graph", {"head": [64, 0]}, "model.head must be at least 1, not 0"),
        ("graph", {"channels": 0}, "model.channels must be at least 1"),
        ("value", {"hidden_channel": 8}, "Did you mean 'hidden_channels'?"),
        ("value", {"dropout": "much"}, "model.dropout must be a number, not 'much'"),
    ],
)
def test_wrong_settings_name_their_key(name, settings, says):
    with pytest.raises(ConfigError, match=says):
        MODELS[name].resolve(settings)


def test_no_layer_between_is_none():
    assert MODELS["graph"].resolve({"channels": "none"})["channels"] is None
