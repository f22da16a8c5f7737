import dataclasses
import json

import pytest

from nlsf.errors import ConfigError, DataError
from nlsf.tables.spec.experiment import Cell
from nlsf.tables.spec.spec_file import experiment_names, find_experiment, read_experiment
from nlsf.tables.tune.space import Space, space_of
from nlsf.tables.tune.trials import Tuning
from nlsf.train.run.job import Job
from nlsf.train.settings.models import MODELS
from tables.spec_texts import DATA, GCN, TUNING, VALUE, experiment

TOP = 'title = "T"'


def read(tmp_path, text):
    path = tmp_path / "small.toml"
    path.write_text(text)
    return read_experiment(path)


def test_an_experiment_is_read(tmp_path):
    top = (
        'title = "A table"\npaper = "node-main"\nmetric = "macro_f1"\nspread = "deviation"\n'
        'seeds = 3\nnote = "Small."'
    )
    data = '[[data]]\nname = "DIGITS"\nprotocol = "sparse"\npaper = "Digits"\ntraining = {lr = 1}'
    method = VALUE + 'paper = "NLSF"\nsettings = {training = {epochs = 9}}\n'
    found = read(tmp_path, experiment(TUNING, data, DATA, method, GCN, top=top))
    assert (found.name, found.title, found.paper) == ("small", "A table", "node-main")
    assert (found.metric, found.spread, found.seeds) == ("macro_f1", "deviation", 3)
    assert found.tuning == Tuning(2, 2, {"epochs": 3})
    digits, csbm = found.columns
    assert (digits.label, digits.protocol, digits.paper) == ("digits", "sparse", "Digits")
    assert digits.settings == {"training": {"lr": 1}}
    assert csbm.data == {"name": "csbm", "num_nodes": 100}
    assert (csbm.protocol, csbm.paper, csbm.settings) == ("60-20-20", None, {})
    value, gcn = found.methods
    assert (value.label, value.model, value.paper) == ("Value NLSF", "value", "NLSF")
    assert (value.ours, gcn.ours) == (True, False)
    assert [(m.label, c.label) for m, c, _ in found.cells()] == [
        ("Value NLSF", "digits"),
        ("Value NLSF", "csbm"),
        ("GCN", "digits"),
        ("GCN", "csbm"),
    ]
    cell = found.cell(value, digits)
    assert cell.settings == {"training": {"lr": 1, "epochs": 9}}
    assert cell.space == space_of("value", "node").without(cell.settings)
    assert "training.lr" not in cell.space.choices


METHOD = '[[method]]\nmodel = "gcn"\n'
WRONG = [
    (experiment(DATA, GCN, top='titel = "T"'), "no key 'titel'. Did you mean 'title'?"),
    (experiment(DATA, GCN, top="seeds = 2"), "title is missing"),
    (experiment(DATA, GCN, top="title = 3"), "title must be a text, not 3"),
    (experiment(DATA, GCN, top=f"{TOP}\nseeds = 0"), "seeds must be from 1 to 1000, not 0"),
    (experiment(DATA, GCN, top=f'{TOP}\nseeds = "two"'), "seeds must be a whole number"),
    (experiment(DATA, GCN, top=f"{TOP}\nseeds = true"), "seeds must be a whole number"),
    (experiment(DATA, GCN, top=f'{TOP}\nspread = "range"'), "spread must be one of interval"),
    (experiment(DATA, GCN, top=f'{TOP}\nmetric = "acuracy"'), "Did you mean 'accuracy'?"),
    (experiment(GCN), "no [[data]]"),
    (experiment(DATA), "no [[method]]"),
    (experiment(GCN, top=f'{TOP}\ndata = "csbm"'), "data must be a list of tables"),
    (experiment(GCN, top=f'{TOP}\ndata = ["csbm"]'), "data[1] must be a table, not 'csbm'"),
    (experiment(DATA, GCN, "[tuning]\ntrails = 3"), "key in [tuning] 'trails'. Did you mean"),
    (experiment(DATA, GCN, "[tuning]\ntrials = 0"), "tuning.trials must be a number from 1"),
    (experiment(DATA, GCN, '[tuning]\nsplits = "3"'), "tuning.splits must be a number from 1"),
    (experiment(DATA, GCN, "[tuning]\ntraining = {epoch = 3}"), "Did you mean 'epochs'?"),
    (experiment(DATA, GCN, "[tuning]\ntraining = 3"), "tuning.training must be a table"),
    (experiment(DATA, GCN, "[training]\nepoch = 3"), "for all columns: There is no key in"),
    (experiment(DATA, GCN, top=f"{TOP}\ntuning = 3"), "tuning must be a table, not 3"),
    (experiment('[[data]]\nlabel = "x"', GCN), "data[1].name is missing"),
    (experiment('[[data]]\nname = "csbn"', GCN), "data[1].name: There is no data set 'csbn'. Did"),
    (experiment(DATA + "trials = 2", GCN), "no key in data[1] 'trials'"),
    (experiment(DATA + "tuning = {trails = 2}", GCN), "data[1]: There is no key in [tuning]"),
    (experiment(DATA + "tuning = {trials = 0}", GCN), "data[1]: tuning.trials must be a number"),
    (
        experiment(DATA + "tuning = {trials = 2}", GCN, top=f'{TOP}\nmeasure = "time"'),
        "csbm has a tuning, in a table of times",
    ),
    (
        experiment(DATA + "exceptions = {GNC = {model = {dropout = 0.1}}}", GCN),
        "data[1].exceptions: There is no method 'GNC'. Did you mean 'GCN'?",
    ),
    (
        experiment(DATA + "exceptions = {GCN = {modle = {dropout = 0.1}}}", GCN),
        "data[1].exceptions.GCN: There is no key 'modle'. Did you mean 'model'?",
    ),
    (experiment(DATA + "exceptions = {GCN = 3}", GCN), "exceptions.GCN must be a table, not 3"),
    (experiment(DATA + "exceptions = {GCN = {model = {dropuot = 0.1}}}", GCN), "on csbm: "),
    (experiment(DATA + "seeds = 0", GCN), "data[1].seeds must be from 1 to 1000, not 0"),
    (experiment(DATA, GCN, top=f'{TOP}\nmeasure = "speed"'), "measure must be"),
    (experiment(DATA + 'protocol = "randon"', GCN), "data[1].protocol: There is no protocol"),
    (experiment(DATA + 'protocol = "A-B-C"', GCN), "data[1].protocol: There is no protocol"),
    (experiment(DATA + "protocol = 60", GCN), "data[1].protocol must be a text, not 60"),
    (experiment(DATA + 'preset = "homophile"', GCN), "data[1]: There is no preset 'homophile'"),
    (experiment(DATA + "features = 3", GCN), "data[1].features must be a table, not 3"),
    (experiment(DATA + "features = {zscor = true}", GCN), "key in [features] 'zscor'. Did you"),
    (experiment(DATA + "training = {lr = -1}", GCN), "data[1]: training.lr must be a number from"),
    (experiment(DATA + "model = {J = 3}", GCN), "data[1].model: There is no key of any method"),
    (experiment('[[data]]\nname = "csbm"\noptions = {nodes = 3}', GCN), "data[1].options: There"),
    (experiment('[[data]]\nname = "csbm"\noptions = {root = "/"}', GCN), "option of csbm 'root'"),
    (experiment('[[data]]\nname = "cora"\noptions = {x = 3}', GCN), "data[1].options: "),
    (experiment(DATA, DATA, GCN), "data[2] has the label of data[1], 'csbm'"),
    (experiment(DATA, GCN, GCN), "method[2] has the label of method[1], 'GCN'"),
    (experiment(DATA, '[[method]]\nlabel = "x"'), "method[1].model is missing"),
    (experiment(DATA, '[[method]]\nmodel = "gnc"'), "method[1].model: There is no model 'gnc'"),
    (experiment(DATA, METHOD + 'modle = "x"'), "no key in method[1] 'modle'. Did you mean"),
    (experiment(DATA, METHOD + "ours = 1"), "method[1].ours must be true or false, not 1"),
    (experiment(DATA, METHOD + "settings = {lr = 3}"), "method[1].settings: There is no key 'lr'"),
    (experiment(DATA, METHOD + "settings = {data = {}}"), "method[1].settings: There is no key"),
    (experiment(DATA, METHOD + "settings = {model = 3}"), "method[1].settings: model must be"),
    (
        experiment(DATA, METHOD + 'settings = {model = {name = "mlp"}}'),
        "method[1] (gcn) on csbm: There is no key in [model] 'name'",
    ),
    (
        experiment(DATA, METHOD + "settings = {model = {hidden_chanels = 3}}"),
        "method[1] (gcn) on csbm: There is no key in [model] 'hidden_chanels'. Did you mean",
    ),
    (
        experiment(DATA, VALUE + 'settings = {model = {branches = "index"}}'),
        "method[1] (Value NLSF) on csbm: model.branches cannot be set",
    ),
    (
        experiment(DATA, METHOD + 'settings = {model = {dropout = "much"}}'),
        "method[1] (gcn) on csbm: model.dropout must be a number",
    ),
    (experiment(DATA, METHOD + "space = 3"), "method[1].space must be a table, not 3"),
    (experiment(DATA, METHOD + "space = {training.lr = [3]}"), "write keys in quotes"),
    (experiment(DATA, METHOD + 'space = {"lr" = [3]}'), "begins with training., model. or"),
    (experiment(DATA, METHOD + 'space = {"training.lr" = 3}'), "must be a list of choices"),
    (
        experiment(DATA, METHOD + 'space = {"training.rl" = [3]}'),
        "method[1] (gcn) on csbm: There is no key in the space 'training.rl'",
    ),
    (
        experiment(DATA, METHOD + 'space = {"model.index_bands" = [3]}'),
        "method[1] (gcn) on csbm: There is no key of gcn in the space 'model.index_bands'",
    ),
    (
        experiment(DATA, METHOD + 'space = {"training.lr" = ["fast"]}'),
        "method[1] (gcn) on csbm: training.lr must be a number",
    ),
    (
        experiment(DATA, METHOD + 'space = {"training.epochs" = []}'),
        "method[1] (gcn) on csbm: There is no key in the space to remove 'training.epochs'",
    ),
    (
        experiment(DATA, METHOD + 'tuned = false\nspace = {"training.lr" = [0.1]}'),
        "method[1].space has choices, but tuned = false",
    ),
    (
        experiment(
            DATA,
            METHOD + 'settings = {training = {lr = 1}}\nspace = {"training.lr" = [0.1]}',
        ),
        "method[1].space has choices for training.lr, which its settings fix",
    ),
    (
        experiment(DATA, METHOD, '[[data]]\nname = "digits-graphs"', VALUE),
        "method[2] (Value NLSF) on digits-graphs: The model 'value' does not fit",
    ),
    ("title = ", "is not a TOML file"),
]


@pytest.mark.parametrize(("text", "says"), WRONG, ids=[says for _, says in WRONG])
def test_what_is_wrong_is_named_with_its_file(tmp_path, text, says):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    message = str(error.value)
    assert says in message
    assert message.startswith(str(tmp_path / "small.toml"))
    assert message.count("small.toml") == 1


def test_settings_of_a_column_go_to_the_models_that_have_them(tmp_path):
    bands = '{kind = "uniform", S = 4}'
    data = DATA + f"model = {{value_bands = {bands}, hidden_channels = 8}}\n"
    method = VALUE + "settings = {model = {hidden_channels = 16}}\n"
    found = read(tmp_path, experiment(data, method, GCN))
    value, gcn = (cell for _, _, cell in found.cells())
    uniform = {"kind": "uniform", "S": 4}
    assert value.settings == {"model": {"value_bands": uniform, "hidden_channels": 16}}
    assert gcn.settings == {"model": {"hidden_channels": 8}}
    assert not {"model.value_bands", "model.hidden_channels"} & {*value.space.choices}
    assert "model.hidden_channels" not in gcn.space.choices
    resolved = Job.of(value.table({}, [0])).config.model["value_bands"]
    assert (resolved["kind"], resolved["S"]) == ("uniform", 4)


def test_a_model_without_epochs_takes_no_training_of_its_column(tmp_path):
    data = '[[data]]\nname = "MUTAG"\ntraining = {epochs = 7}\n'
    found = read(tmp_path, experiment(data, '[[method]]\nmodel = "wl"\n', GCN))
    kernel, gcn = (cell for _, _, cell in found.cells())
    assert kernel.settings == {}
    assert gcn.settings == {"training": {"epochs": 7}}


def test_a_method_changes_its_space(tmp_path):
    change = (
        'space = {"training.lr" = [0.5], "training.weight_decay" = [], "training.epochs" = [5]}'
    )
    found = read(tmp_path, experiment(DATA, GCN + change, GCN.replace("GCN", "plain")))
    changed, plain = (cell.space.choices for _, _, cell in found.cells())
    assert changed["training.lr"] == (0.5,)
    assert changed["training.epochs"] == (5,)
    assert {*plain} - {*changed} == {"training.weight_decay"}
    assert plain == space_of("gcn", "node").choices


def test_a_method_that_is_not_tuned_has_no_space_and_no_tuning(tmp_path):
    untuned = GCN + "tuned = false\n"
    found = read(tmp_path, experiment(TUNING, DATA, untuned))
    other = read(tmp_path, experiment(DATA, untuned))
    (cell,), (same,) = ([cell for _, _, cell in one.cells()] for one in (found, other))
    assert not cell.space
    assert cell.id == same.id


def test_a_large_graph_is_tuned_over_bands_that_it_can_have(tmp_path):
    found = read(tmp_path, experiment('[[data]]\nname = "pubmed"', DATA, VALUE))
    large, small = (cell.space.choices["model.value_bands"] for _, _, cell in found.cells())
    assert {bands["kind"] for bands in large} == {"index", "polynomial"}
    assert "dyadic" in {bands["kind"] for bands in small}


CELL = Cell(
    {"name": "csbm", "num_nodes": 100},
    "60-20-20",
    "value",
    {"training": {"epochs": 5, "lr": 0.1}, "preset": "homophilous"},
    Space({"model.dropout": (0.0, 0.5), "model.start": ({"name": "ppr", "t": 9.0}, None)}),
    Tuning(3, 2, {"patience": 5}),
    "accuracy",
)


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"name": "csbm", "num_nodes": 101}},
        {"data": {"name": "digits", "num_nodes": 100}},
        {"protocol": "50-25-25"},
        {"model": "index"},
        {"settings": {"training": {"epochs": 5, "lr": 0.2}, "preset": "homophilous"}},
        {"settings": {"training": {"epochs": 5, "lr": 0.1}}},
        {"settings": {}},
        {"space": Space({"model.dropout": (0.0, 0.5)})},
        {"space": Space({"model.dropout": (0.0, 0.6), "model.start": ({"name": "ppr"},)})},
        {"space": Space()},
        {"tuning": Tuning(4, 2, {"patience": 5})},
        {"tuning": Tuning(3, 3, {"patience": 5})},
        {"tuning": Tuning(3, 2, {"patience": 6})},
        {"metric": "macro_f1"},
    ],
)
def test_the_id_changes_with_all_that_matters(change):
    other = dataclasses.replace(CELL, **change)
    assert other.id != CELL.id
    assert other.stem != CELL.stem


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"num_nodes": 100, "name": "csbm"}},
        {"data": {**CELL.data, "root": "/somewhere", "offline": True}},
        {"settings": {"preset": "homophilous", "training": {"lr": 0.1, "epochs": 5}}},
        {"space": Space(dict(reversed(CELL.space.choices.items())))},
    ],
)
def test_the_id_does_not_change_with_the_rest(change):
    assert dataclasses.replace(CELL, **change).id == CELL.id


def test_the_id_does_not_change_with_labels_seeds_and_the_place_of_data(tmp_path):
    one = read(tmp_path, experiment(DATA + 'paper = "Cora"', GCN, VALUE))
    text = experiment(
        VALUE, DATA + 'label = "x"', GCN.replace('"GCN"', '"y"'), top=f"{TOP}\nseeds=9"
    )
    two = read(tmp_path, text).at(tmp_path, True)
    ids = [[cell.id for _, _, cell in found.cells()] for found in (one, two)]
    assert ids[0] == ids[1][::-1]
    assert two.columns[0].data["root"] == str(tmp_path)


def test_the_id_stays_what_it_is():
    # Results that are kept are found by it: a change of how it is made loses them.
    assert CELL.id.startswith("88b8e1dcde9e284e")


def test_a_cell_is_written_and_read_again(tmp_path):
    text = CELL.to_toml()
    again = Cell.from_toml(text, tmp_path / "cell.toml")
    assert again.id == CELL.id
    assert again.to_toml() == text
    assert again.space.choices == CELL.space.choices
    assert "root" not in dataclasses.replace(CELL, data={**CELL.data, "root": "/r"}).to_toml()


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_default_cells_of_all_models_are_written_and_read_again(model, tmp_path):
    level = MODELS[model].levels[0]
    name = {"node": "csbm", "graph": "digits-graphs", "signal": "digits-grid"}[level]
    cell = Cell({"name": name}, "60-20-20", model, {}, space_of(model, level))
    again = Cell.from_toml(cell.to_toml(), tmp_path)
    assert again.id == cell.id
    assert json.dumps(again.space.to_table()) == json.dumps(cell.space.to_table())


def test_the_table_of_a_run_has_the_point_on_top():
    point = {"model.dropout": 0.5, "model.start": {"name": "heat", "t": 5.0}}
    table = CELL.table(point, [3, 4])
    config = Job.of(table).config
    assert config.seeds == (3, 4)
    assert config.protocol == "60-20-20"
    assert config.training.epochs == 5
    assert config.model["dropout"] == 0.5
    assert (config.model["start"]["name"], config.model["start"]["t"]) == ("heat", 5.0)
    assert config.data.options == {"num_nodes": 100}
    assert "dropout" not in CELL.table({}, [0])["model"]


def test_stems_name_files():
    cell = dataclasses.replace(CELL, protocol="folder/my split-{seed}.json", data={"name": "Cora"})
    assert cell.stem == f"cora-my-split-seed-value-{cell.id[:8]}"
    assert CELL.stem == f"csbm-60-20-20-value-{CELL.id[:8]}"


def test_rows_and_columns_are_selected_by_label_model_and_data(tmp_path):
    found = read(tmp_path, experiment(DATA, '[[data]]\nname = "digits"', GCN, VALUE))
    assert [m.label for m in found.select(["value", "gcn"]).methods] == ["GCN", "Value NLSF"]
    assert [m.label for m in found.select(["Value nlsf"]).methods] == ["Value NLSF"]
    assert [c.label for c in found.select(None, ["Digits"]).columns] == ["digits"]
    assert found.select() == found
    with pytest.raises(ConfigError, match=r"no method in small 'gnc'\. Did you mean 'gcn'"):
        found.select(["gnc"])
    with pytest.raises(ConfigError, match=r"no data set in small 'cora'"):
        found.select(None, ["cora"])


def test_experiments_are_found_by_name(tmp_path):
    with pytest.raises(DataError, match="There are no experiments"):
        find_experiment("small", tmp_path)
    read(tmp_path, experiment(DATA, GCN))
    assert experiment_names(tmp_path) == ["small"]
    assert find_experiment("small", tmp_path).name == "small"
    with pytest.raises(ConfigError, match=r"no experiment 'smal'\. Did you mean 'small'"):
        find_experiment("smal", tmp_path)
    with pytest.raises(ConfigError, match="no experiment"):
        find_experiment("../small", tmp_path)


def test_training_for_all_columns_but_for_what_they_say(tmp_path):
    common = "[training]\nepochs = 7\npatience = 3\n"
    other = DATA + 'label = "few"\ntraining = {epochs = 2}\n'
    found = read(tmp_path, experiment(DATA + other, GCN, common))
    trainings = [cell.settings["training"] for _, _, cell in found.cells()]
    assert trainings == [{"epochs": 7, "patience": 3}, {"epochs": 2, "patience": 3}]


def test_a_column_may_change_the_tuning_of_all_methods(tmp_path):
    other = DATA + 'label = "few"\ntuning = {splits = 1}\n'
    found = read(tmp_path, experiment(TUNING, DATA, other, GCN, VALUE))
    tunings = [cell.tuning for _, _, cell in found.cells()]
    assert tunings == [Tuning(2, 2, {"epochs": 3}), Tuning(2, 1, {"epochs": 3})] * 2
    assert len({cell.id for _, _, cell in found.cells()}) == 4


def test_a_column_may_make_an_exception_for_one_method(tmp_path):
    bands = 'settings = {model = {value_bands = {kind = "uniform", S = 5}, dropout = 0.2}}\n'
    soft = '{kind = "polynomial", base = {kind = "uniform", S = 5}, order = 8}'
    other = DATA + f'label = "soft"\nexceptions."Value NLSF".model.value_bands = {soft}\n'
    found = read(tmp_path, experiment(DATA, other, GCN, VALUE + bands))
    models = [cell.settings.get("model", {}) for _, _, cell in found.cells()]
    assert models[:2] == [{}, {}]
    assert models[2] == {"value_bands": {"kind": "uniform", "S": 5}, "dropout": 0.2}
    base = {"kind": "uniform", "S": 5}
    polynomial = {"kind": "polynomial", "base": base, "order": 8}
    assert models[3] == {"value_bands": polynomial, "dropout": 0.2}


def test_a_column_may_have_its_own_number_of_seeds(tmp_path):
    other = DATA + 'label = "few"\nseeds = 1\n'
    path = tmp_path / "small.toml"
    path.write_text(experiment(DATA, other, GCN, top=f"{TOP}\nseeds = 4"))
    found = read_experiment(path)
    assert [found.seeds_of(column) for column in found.columns] == [4, 1]
    ids = {cell.id for _, _, cell in found.cells()}
    assert len(ids) == 1  # as for the seeds of the experiment
