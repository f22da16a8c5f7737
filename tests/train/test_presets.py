import dataclasses
import itertools

import pytest
from torch_geometric.data import Data

from nlsf.data.catalogue import load
from nlsf.data.features import adjacency_rows
from nlsf.errors import ConfigError
from nlsf.train.settings.config import check_keys, resolve
from nlsf.train.settings.models import MODELS
from nlsf.train.settings.presets import PRESETS, default_model, preset

SMALL = {
    "node": ("csbm", {"num_nodes": 60}),
    "graph": ("digits-graphs", {}),
    "signal": ("digits-grid", {}),
    "regression": ("geometric", {"num_nodes": 60}),
}


@pytest.fixture(scope="module")
def datasets():
    found = {level: load(name, **options) for level, (name, options) in SMALL.items()}
    some = found["graph"].graphs[:3]
    for name, x in (("indicators", lambda g: (g.x > 0.5).float()), ("bare", lambda g: None)):
        changed = [Data(x=x(g), edge_index=g.edge_index, num_nodes=g.num_nodes) for g in some]
        y = found["graph"].y[:3]
        found[name] = dataclasses.replace(found["graph"], graphs=tuple(changed), y=y)
    one = found["node"].graphs[0]
    for name, x in (("words", (one.x > 0).float()), ("links", adjacency_rows(one))):
        graph = Data(x=x, edge_index=one.edge_index, num_nodes=one.num_nodes)
        found[name] = dataclasses.replace(found["node"], graphs=(graph,))
    found["large"] = load("csbm", num_nodes=9000)
    found["millions"] = dataclasses.replace(found["node"], y=found["node"].y[:1].repeat(100_001))
    return found


@pytest.mark.parametrize("model", MODELS)
def test_every_preset_fits_every_model_and_level(datasets, model):
    kind = MODELS[model]
    for name, level in itertools.product(PRESETS, kind.levels):
        table = preset(name, datasets[level], kind, None)
        assert set(table["model"]) <= set(kind.keys)
        check_keys({key: value for key, value in table.items() if key != "model"})
        given = {"preset": name, "data": {"name": "x"}, "model": {"name": model}}
        config = resolve(given, datasets[level], "60-20-20")
        for key, value in table.get("training", {}).items():
            assert getattr(config.training, key) == value


def test_every_key_of_a_preset_is_one_of_some_model():
    keys = {key for kind in MODELS.values() for key in kind.keys}
    for table in PRESETS.values():
        assert set(table.get("model", {})) <= keys


@pytest.mark.parametrize(
    ("level", "homophilous", "name"),
    [
        ("node", None, "homophilous"),
        ("node", True, "homophilous"),
        ("node", False, "heterophilous"),
        ("words", True, "documents"),
        ("links", True, "documents"),
        ("words", False, "heterophilous"),
        ("graph", None, "attributed"),
        ("indicators", None, "graphs"),
        ("bare", None, "unattributed"),
        ("large", True, "large"),
        ("large", None, "large"),
        ("large", False, "heterophilous-large"),
        ("millions", True, "millions"),
        ("signal", None, "signals"),
        ("regression", None, "regression"),
    ],
)
def test_the_preset_that_fits(datasets, level, homophilous, name):
    dataset = datasets[level]
    kind = MODELS[default_model(dataset.level)]
    found = preset(None, dataset, kind, homophilous)
    assert found == preset(name, dataset, kind, homophilous)


def test_asking_changes_nothing(datasets):
    before = repr(PRESETS)
    preset("homophilous", datasets["node"], MODELS["value"], None)["model"].clear()
    assert repr(PRESETS) == before


def test_an_unknown_preset(datasets):
    with pytest.raises(ConfigError, match=r"no preset 'graph'. Did you mean 'graphs'?"):
        preset("graph", datasets["graph"], MODELS["graph"], None)


def test_signals_keep_their_schedule_and_get_the_rates_of_the_model(datasets):
    usual = preset(None, datasets["signal"], MODELS["graph"], None)["training"]
    own = preset(None, datasets["signal"], MODELS["signal"], None)["training"]
    assert own["lr"] == 1e-3
    assert own["epochs"] == usual["epochs"]
    assert own.keys() > usual.keys()


def test_responses_on_graphs_decay_and_their_gains_do_not(datasets):
    def decays(model):
        training = preset(None, datasets["graph"], MODELS[model], None)["training"]
        return training.get("psi_weight_decay", 0), training.get("gain_weight_decay")

    assert decays("pooling") == (0.03, 0.0)
    assert decays("graph") == (0.03, None)
    # Free numbers in the place of a network, and the filters of peers, do not overfit so.
    assert decays("linear-pooling") == decays("chebnetii") == (0, None)
