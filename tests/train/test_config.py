import inspect
import tomllib

import pytest

from nlsf.cli.train import _table as command_line
from nlsf.cli.train import train as command
from nlsf.data.catalogue import load
from nlsf.data.features import FeatureConfig
from nlsf.errors import ConfigError
from nlsf.train.run.job import Job
from nlsf.train.settings.config import (
    DataConfig,
    RunConfig,
    TrainingConfig,
    apply_settings,
    check_keys,
    resolve,
    user_path,
    without_later,
)
from nlsf.train.settings.models import MODELS
from nlsf.train.settings.presets import PRESETS
from nlsf.train.settings.toml import to_table, write_toml

DATA = {
    "csbm": {"num_nodes": 60},
    "digits-graphs": {},
    "digits-grid": {},
    "geometric": {"num_nodes": 60},
    "torus": {},
}


@pytest.fixture(scope="module")
def datasets():
    return {name: load(name, **options) for name, options in DATA.items()}


def resolved(datasets, name, **table):
    table = {"data": {"name": name, **DATA[name]}, **table}
    return resolve(table, datasets[name], "60-20-20")


CASES = [
    ("csbm", {}),
    ("csbm", {"preset": "heterophilous"}),
    ("csbm", {"model": {"name": "index"}, "seeds": [4, 2]}),
    ("csbm", {"model": {"name": "value", "value_bands": {"kind": "atom"}}}),
    ("csbm", {"model": {"value_bands": {"kind": "quantile", "of": "energy"}}}),
    ("csbm", {"training": {"batch_size": 16, "psi_lr": 0.5}, "metric": "macro_f1"}),
    ("csbm", {"data": {"name": "csbm", "num_nodes": 60, "homophily": 0.25, "root": "a b"}}),
    ("geometric", {"metric": "mae"}),
    ("digits-graphs", {}),
    ("digits-graphs", {"model": {"name": "graph", "channels": "none", "head": [8]}}),
    ("digits-graphs", {"features": {"degree": "one-hot", "max_degree": 4}}),
    ("digits-grid", {}),
    ("digits-grid", {"model": {"name": "pooling"}}),
]


@pytest.mark.parametrize(("name", "table"), CASES)
def test_a_resolved_configuration_is_a_fixed_point(datasets, name, table):
    config = resolved(datasets, name, **table)
    back = tomllib.loads(config.to_toml())
    again = resolve(back, datasets[name], "another protocol", homophilous=False)
    assert again == config
    assert again.to_toml() == config.to_toml()


def test_what_the_user_sets_stands_over_preset_and_default(datasets):
    config = resolved(datasets, "csbm", training={"lr": 0.5}, model={"value_bands": {"S": 3}})
    assert config.training.lr == 0.5
    bands = PRESETS["homophilous"]["model"]["value_bands"]
    assert config.model["value_bands"]["S"] == 3
    assert config.model["value_bands"]["kind"] == bands["kind"]
    assert config.protocol == "60-20-20"
    assert config.seeds == (0,)
    assert config.metric == "accuracy"
    other = resolved(datasets, "csbm", model={"value_bands": {"kind": "index", "J": 2}})
    assert other.model["value_bands"] == {"kind": "index", "J": 2}


def test_a_part_of_bands_that_no_preset_names_can_be_set(datasets):
    assert resolved(datasets, "csbm", model={"index_bands": {"J": 4}}).model["index_bands"] == {
        "kind": "index",
        "J": 4,
    }


@pytest.mark.parametrize(
    ("given", "seeds"),
    [(1, (0,)), (3, (0, 1, 2)), ([7], (7,)), ((5, 2), (5, 2)), ([2**31 - 1], (2**31 - 1,))],
)
def test_seeds(datasets, given, seeds):
    assert resolved(datasets, "csbm", seeds=given).seeds == seeds


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (0, "at least one seed"),
        (-1, "at least one seed"),
        ([], "at least one seed"),
        ([1, 1], "none twice"),
        ([-1], "a list of seeds"),
        ([2**31], "a list of seeds"),
        ([True], "a list of seeds"),
        (True, "a list of seeds"),
        ("3", "a list of seeds"),
        (1.0, "a list of seeds"),
        (10**15, "seeds must be at most 10000"),
    ],
)
def test_wrong_seeds(datasets, given, says):
    with pytest.raises(ConfigError, match=says):
        resolved(datasets, "csbm", seeds=given)


OWN = {
    "training": to_table(TrainingConfig()),
    "features": to_table(FeatureConfig()),
    "model": {k: v for kind in MODELS.values() for k, v in kind.resolve({}).items()},
}


@pytest.mark.parametrize(("table", "key"), [(t, key) for t in OWN for key in OWN[t]])
def test_a_bare_key_finds_its_table(table, key):
    value = "none" if OWN[table][key] is None else "1"
    if table == "model":
        assert apply_settings({}, [f"{key}={value}"]) == apply_settings(
            {}, [f"model.{key}={value}"]
        )
        return
    plain = OWN[table][key]
    text = str(plain).lower() if isinstance(plain, bool) else str(plain).replace("None", "none")
    text = "[]" if plain == () else text
    assert list(apply_settings({}, [f"{key}={text}"])) == [table]
    assert list(apply_settings({}, [f"{key}={text}"])[table]) == [key]


def test_a_key_of_two_tables_must_say_which(monkeypatch):
    kind = MODELS["value"]
    monkeypatch.setattr(type(kind), "keys", property(lambda self: ["lr"]))
    with pytest.raises(ConfigError, match=r"lr could mean training.lr or model.lr: say which"):
        apply_settings({}, ["lr=0.1"])
    assert apply_settings({}, ["training.lr=0.1"]) == {"training": {"lr": 0.1}}


def test_later_settings_win_and_tables_are_merged():
    table = apply_settings({"training": {"lr": 1.0, "epochs": 5}}, ["lr=2", "lr=3", "seeds=4"])
    assert table == {"training": {"lr": 3, "epochs": 5}, "seeds": 4}


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("epoch=3", "'epoch'. Did you mean 'epochs'?"),
        ("protocoll=random", "Did you mean 'protocol'?"),
        ("training.epoch=3", r"key in \[training\] 'epoch'. Did you mean 'epochs'?"),
        ("features.degre=none", "Did you mean 'degree'?"),
        ("data=3", r"data must be a table, \[data\], not 3"),
        ("model=value", r"model must be a table, \[model\], not 'value'"),
        ("model.name.x=3", "model.name must be a text"),
        ("model.name=valu", "no model 'valu'. Did you mean 'value'?"),
        ("data.name=5", "data.name must be a text, not 5"),
        ("preset=5", "preset must be a text, not 5"),
        ("protocol=60", "protocol must be a text, not 60"),
        ("epochs=many", "training.epochs must be a whole number, not 'many'"),
        ("monitor=test", "training.monitor must be one of metric, loss"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(setting, says):
    with pytest.raises(ConfigError, match=says):
        apply_settings({"data": {"name": "csbm"}}, [setting])


def test_unknown_tables():
    with pytest.raises(ConfigError, match=r"There is no key 'trainig'. Did you mean 'training'?"):
        check_keys({"trainig": {}})


AS_KEYS = {
    "data": ("digits", {"data": {"name": "digits"}}),
    "model": ("value", {"data": {}, "model": {"name": "value"}}),
    "protocol": ("random", {"data": {}, "protocol": "random"}),
    "seeds": (3, {"data": {}, "seeds": 3}),
    "seed": (3, {"data": {}, "seeds": [3]}),
    "settings": (["lr=1"], {"data": {}, "training": {"lr": 1}}),
    "data_root": ("x", {"data": {"root": "x"}}),
    "offline": (True, {"data": {"offline": True}}),
}
NO_NUMBERS = {
    *(
        "config",
        "memory",
        "output",
        "resume",
        "cache",
        "checkpoint_seconds",
        "tensorboard",
        "quiet",
        "report",
    ),
}


def test_every_option_that_changes_numbers_is_a_key():
    assert set(inspect.signature(command).parameters) == AS_KEYS.keys() | NO_NUMBERS
    names = ["data", "model", "protocol", "seeds", "seed", "settings", "config", "data_root"]
    for option, (value, table) in AS_KEYS.items():
        said = dict.fromkeys(names) | {"offline": False, option: value}
        assert command_line(*said.values()) == table
        check_keys(table)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "roc_auc", "rmse", "mae", "acc", 3])
@pytest.mark.parametrize("name", ["csbm", "geometric"])
def test_the_metric_fits_the_task(datasets, metric, name):
    fits = ("rmse", "mae") if name == "geometric" else ("accuracy", "macro_f1", "roc_auc")
    if metric in fits:
        assert resolved(datasets, name, metric=metric).metric == metric
        return
    with pytest.raises(ConfigError, match=f"metric must be one of {', '.join(fits)}"):
        resolved(datasets, name, metric=metric)


def test_unknown_protocols_and_presets():
    table = {"data": {"name": "csbm", "num_nodes": 60}}
    with pytest.raises(ConfigError, match=r"no protocol 'randon'. Did you mean 'random'?"):
        Job.of({**table, "protocol": "randon"})
    with pytest.raises(ConfigError, match=r"no preset 'homophilus'. Did you mean 'homophilous'?"):
        Job.of({**table, "preset": "homophilus"})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"epochs": 0}, "training.epochs must be at least 1, not 0"),
        ({"patience": 0}, "training.patience must be at least 1, not 0"),
        ({"warmup": -1}, "training.warmup must be at least 0"),
        ({"batch_size": 0}, "training.batch_size must be at least 1"),
        ({"lr": -0.1}, "training.lr must be a number from 0 on, not -0.1"),
        ({"psi_lr": float("inf")}, "training.psi_lr must be a number from 0 on"),
        ({"weight_decay": -1.0}, "training.weight_decay must be"),
        ({"decoder_weight_decay": float("nan")}, "training.decoder_weight_decay must be"),
        ({"gain_weight_decay": -1.0}, "training.gain_weight_decay must be"),
        ({"average": -0.1}, "training.average must be from 0 to 1, not -0.1"),
        ({"average": float("nan")}, "training.average must be from 0 to 1"),
        ({"epochs": 5, "warmup": 5}, r"training.warmup \(5\) leaves none of the 5 epochs"),
    ],
)
def test_training_settings_that_cannot_be(settings, says):
    with pytest.raises(ConfigError, match=says):
        TrainingConfig(**settings)


def test_rates_and_decays_of_groups():
    plain = TrainingConfig(lr=0.1, weight_decay=0.2, psi_weight_decay=0.3)
    groups = ("encoder", "psi", "gain", "decoder")
    assert [plain.learning_rate(g) for g in groups] == [0.1, 0.1, 0.1, 0.1]
    assert [plain.decay(g) for g in groups] == [0.2, 0.3, 0.3, 0.2]
    own = TrainingConfig(
        lr=0.1, psi_lr=0.0, weight_decay=0.2, gain_weight_decay=0.4, decoder_weight_decay=0.0
    )
    assert [own.learning_rate(g) for g in groups] == [0.1, 0.0, 0.0, 0.1]
    assert [own.decay(g) for g in groups] == [0.2, 0.0, 0.4, 0.0]


def test_other_keys_of_the_data_are_options():
    table = {"name": "csbm", "root": "none", "offline": True, "homophily": 0.1}
    config = DataConfig.from_table(table)
    assert config == DataConfig("csbm", None, True, {"homophily": 0.1})
    assert DataConfig.from_table(config.to_table()) == config
    with pytest.raises(ConfigError, match=r"data.name is missing"):
        DataConfig.from_table({"offline": True})
    with pytest.raises(ConfigError, match=r"data.homophily cannot be set for a/graph.npz"):
        DataConfig.from_table({"name": "a/graph.npz", "homophily": 0.1})
    with pytest.raises(ConfigError, match=r"data.features must be the path of a file"):
        DataConfig.from_table({"name": "edges.csv", "features": 3})


def test_names_and_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not user_path("cora")
    assert user_path("./cora")
    assert user_path("graph.npz")


def test_all_keys_of_a_run_are_known(datasets):
    config = resolved(datasets, "csbm")
    assert isinstance(config, RunConfig)
    check_keys(config.to_table())


def test_a_whole_file_of_before_means_what_was_done_then(datasets):
    given = {"data": {"name": "digits-graphs"}, "model": {"name": "pooling"}}
    now = resolve(given, datasets["digits-graphs"], "80-10-10")
    assert (now.training.average, now.model["node_norm"]) == (0.1, True)
    assert now.training.gain_weight_decay == 0.0
    before = now.to_table()
    del before["training"]["average"], before["model"]["node_norm"]
    del before["training"]["gain_weight_decay"]
    then = resolve(before, datasets["digits-graphs"], "80-10-10")
    assert (then.training.average, then.model["node_norm"]) == (0.0, False)
    assert then.training.gain_weight_decay is None
    assert without_later(then.to_table()) == before
    assert without_later(tomllib.loads(then.to_toml())) == tomllib.loads(write_toml(before))
    assert without_later(now.to_table()) == now.to_table()
    # What is not whole was not written by a run.
    del before["training"]["lr"]
    assert resolve(before, datasets["digits-graphs"], "80-10-10").training.average == 0.1
