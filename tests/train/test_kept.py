import dataclasses

import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.train import train
from nlsf.train.job import Job
from nlsf.train.kept import check_kept
from nlsf.train.run_folder import RunFolder
from nlsf.train.tables import merged
from train.small import NODE_MODEL, node_data

TABLE = {
    "data": {"name": "csbm", "num_nodes": 60},
    "model": {"name": "gcn", "hidden_channels": 4},
    "seeds": 2,
    "training": {"epochs": 2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    return train("csbm", TABLE, output=path, cache=False).folder


def test_the_same_again_is_welcome(folder):
    check_kept(folder, Job.of(TABLE))


def test_where_data_lie_and_how_they_are_spelled_does_not_matter(folder, tmp_path):
    elsewhere = {"data": {"name": "CSBM", "root": str(tmp_path), "offline": True}}
    check_kept(folder, Job.of(merged(TABLE, elsewhere)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": 3}, r"seeds = \[0, 1\], but now \[0, 1, 2\] is asked for:"),
        ({"protocol": "80-10-10"}, "protocol = '60-20-20', but now '80-10-10'"),
        ({"metric": "macro_f1"}, "metric = 'accuracy', but now 'macro_f1'"),
        ({"data": {"num_nodes": 61}}, "data.num_nodes = 60, but now 61"),
        ({"data": {"homophily": 0.3}}, "data.homophily = its default, but now 0.3"),
        ({"data": {"homophily": 0.3}, "seeds": 1}, r"now 0.3 is asked for \(and so on, 1 more\)"),
        ({"training": {"epochs": 3}}, "training.epochs = 2, but now 3"),
        ({"features": {"row_normalize": True}}, "features.row_normalize = False, but now True"),
        ({"model": {"hidden_channels": 5}}, "model.hidden_channels = 4, but now 5"),
    ],
)
def test_another_setting_is_named(folder, change, says):
    with pytest.raises(ConfigError, match=says) as error:
        check_kept(folder, Job.of(merged(TABLE, change)))
    assert "--output" in str(error.value)


NODES = {"model": NODE_MODEL, "seeds": 1, "training": {"epochs": 1}}


def test_other_features_under_the_same_name_are_noticed(tmp_path):
    folder = train(node_data(), NODES, output=tmp_path / "run", cache=False).folder
    check_kept(folder, Job.of(NODES, node_data()))
    other = node_data()
    other.graphs[0].x[0, 0] += 1
    with pytest.raises(ConfigError, match="before its graph, features, labels or splits changed"):
        check_kept(folder, Job.of(NODES, other))


@pytest.mark.parametrize("labels", [[-1] * 6, [2, 1, 0] * 2], ids=["missing", "permuted"])
def test_other_labels_under_the_same_name_are_noticed(tmp_path, labels):
    # A split is drawn among labelled nodes: where none is missing, only the labels differ.
    folder = train(node_data(), NODES, output=tmp_path / "run", cache=False).folder
    y = node_data().y.clone()
    y[:6] = torch.tensor(labels)
    assert not torch.equal(y, node_data().y)
    with pytest.raises(ConfigError, match="splits changed"):
        check_kept(folder, Job.of(NODES, dataclasses.replace(node_data(), y=y)))


def test_a_run_that_has_only_begun_is_known_by_its_settings(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run")
    folder.write_config(Job.of(TABLE).config.to_toml())
    check_kept(folder, Job.of(TABLE))
    with pytest.raises(ConfigError, match="seeds"):
        check_kept(folder, Job.of(merged(TABLE, {"seeds": 1})))
