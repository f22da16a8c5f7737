"""Wrong settings and split files: one sentence or two on stderr, and nothing half written."""

import json

import pytest

from cli.bad_input import Cases

CASES = Cases()
CASES.plain("unknown_data", "train coda", "There is no data set 'coda'. Did you mean 'Cora'?")
CASES.plain("unknown_model", "train csbm -m valu", "Did you mean 'value'?")
CASES.plain("unknown_protocol", "train csbm -p randon", "Did you mean 'random'?")
CASES.plain("unknown_key", "train csbm --set epoch=3", "Did you mean 'epochs'?")
CASES.plain("unknown_option", "train csbm --set data.homophil=1", "Did you mean 'homophily'?")
CASES.plain("unknown_preset", "train csbm --set preset=graph", "Did you mean 'graphs'?")
CASES.plain("unknown_metric", "train csbm --set metric=acc", "metric must be one of accuracy")
CASES.plain("wrong_level", "train csbm -m graph", "use att-node, index, value")
CASES.plain("wrong_type", "train csbm --set epochs=many", "training.epochs must be a whole number")
CASES.plain("wrong_table", "train csbm --set data=3", "data must be a table")
CASES.plain("wrong_name", "train csbm --set model.name.x=3", "model.name must be a text")
CASES.plain("wrong_option", "train csbm --set data.num_nodes=x", "num_nodes must be a whole number")
CASES.plain(
    "wrong_width", "train csbm --set hidden_channels=-1", "model.hidden_channels must be at"
)
CASES.plain("wrong_depth", "train csbm --set num_layers=99", "1 to 10 layers")
CASES.plain("wrong_dropout", "train csbm --set dropout=2", "dropout must be")
CASES.plain("no_equals_sign", "train csbm --set epochs", "--set expects key=value")
CASES.plain("decided_by_name", "train csbm --set model.branches=index", "decided by the model")
CASES.plain("negative_rate", "train csbm --set lr=-1", "training.lr must be a number from 0 on")
CASES.plain("no_patience", "train csbm --set patience=0", "training.patience must be at least 1")
CASES.plain("no_seeds", "train csbm --seeds 0", "at least one seed")
CASES.plain("too_many_seeds", "train csbm --seeds 999999999999", "seeds must be at most")
CASES.plain("all_warmup", "train csbm --set epochs=3 --set warmup=3", "leaves none of the 3 epochs")
CASES.plain("wrong_percentages", "train csbm -p 60-20-30", "sum to 100")
CASES.plain("no_given_split", "train csbm -p public", "comes without 'public' splits")
CASES.plain("no_data", "train", "which data?", 2)
CASES.plain("both_seeds", "train csbm --seed 1 --seeds 2", "exclude each other", 2)
CASES.plain("no_config", "train -c nowhere.toml", "nowhere.toml")
CASES.plain("spectrum_data", "spectrum digit", "Did you mean 'digits'?")
CASES.plain("spectrum_rate", "spectrum digits -r 2", "decay rate r must lie between 0 and 1")
CASES.plain("spectrum_graph", "spectrum csbm --graph 3", "csbm has no graph 3")
CASES.plain("spectrum_key", "spectrum csbm --set lr=3", "Only data.KEY can be set here")
CASES.plain("spectrum_picture", "spectrum csbm -o x.doc", "not the name of a picture", 2)
CASES.plain("cluster_of_one_graph", "spectrum csbm --cluster local", "csbm is one graph")
CASES.plain(
    "cluster_without_cache", "spectrum csbm --cluster local --no-cache", "fills the cache", 2
)
CASES.plain("workers_without_cluster", "spectrum csbm --workers 2", "with --cluster local", 2)


@CASES.case("run.toml is not a TOML file")
def config_that_is_not_toml(folder):
    (folder / "run.toml").write_text("seeds = = 3\n")
    return ["train", "csbm", "-c", "run.toml"]


@CASES.case("data must be a table")
def config_of_wrong_tables(folder):
    (folder / "run.toml").write_text('data = "csbm"\n')
    return ["train", "-c", "run.toml"]


@CASES.case("Is a directory")
def config_that_is_a_folder(folder):
    (folder / "run.toml").mkdir()
    return ["train", "-c", "run.toml"]


# Split files.


@CASES.case("line 1: not JSON")
def split_that_is_not_json(folder):
    (folder / "s.json").write_text("{train")
    return ["train", "csbm", "-p", "s.json"]


@CASES.case("the split is of other data")
def split_of_other_data(folder):
    fields = {"format": "nlsf-split 1", "data": "x", "examples": 7, "labels": "", "protocol": ""}
    parts = {"seed": 0, "train": [0], "val": [1], "test": [2]}
    (folder / "s.json").write_text(json.dumps(fields | parts))
    return ["train", "csbm", "-p", "s.json"]


@CASES.case("put the split file there")
def split_missing(folder):
    return ["train", "csbm", "-p", "s-{seed}.json"]


@pytest.mark.parametrize(("build", "says", "code"), CASES)
def test_bad_input(assert_refused, here, build, says, code):
    assert_refused(build(here), says, code)


def test_the_cases_are_many():
    assert len(CASES) >= 38
