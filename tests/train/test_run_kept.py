import dataclasses
import platform
import runpy
import shutil
import subprocess

import numpy
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.train import train
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.run.run import Run, head_commit, versions
from nlsf.train.settings.toml import merged
from train.small import NODE_MODEL, node_data


def test_versions_are_those_in_use():
    found = versions()
    assert found["torch"] == torch.__version__
    assert found["numpy"] == numpy.__version__
    assert found["python"] == platform.python_version()
    assert found["threads"] == str(torch.get_num_threads())
    assert {"nlsf", "torch_geometric", "scipy", "platform"} <= set(found)
    assert all(isinstance(value, str) for value in found.values())


def test_an_installed_copy_has_no_commit(tmp_path):
    # In the site-packages of an environment that lies inside somebody's own checkout.
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("0" * 40 + "\n")
    place = tmp_path / "site-packages" / "nlsf" / "train" / "run"
    place.mkdir(parents=True)
    shutil.copy(versions.__code__.co_filename, place)
    copy = runpy.run_path(str(place / "run.py"))
    assert "commit" not in copy["versions"]()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


@needs_git
def test_the_commit_is_what_git_says(checkout, tmp_path):
    assert head_commit(checkout) is None
    git(checkout, "commit", "-q", "--allow-empty", "-m", "one")
    first = git(checkout, "rev-parse", "HEAD")
    assert head_commit(checkout) == first

    git(checkout, "pack-refs", "--all")
    assert head_commit(checkout) == first

    linked = tmp_path / "linked"
    git(checkout, "worktree", "add", "-q", "-b", "other/name", str(linked))
    git(linked, "commit", "-q", "--allow-empty", "-m", "two")
    assert head_commit(linked) == git(linked, "rev-parse", "HEAD") != first
    assert head_commit(checkout) == first

    git(linked, "checkout", "-q", "--detach", first)
    assert head_commit(linked) == first


def test_a_folder_without_git_has_no_commit(tmp_path):
    assert head_commit(tmp_path) is None
    (tmp_path / ".git").write_bytes(b"\xff\xfe")
    assert head_commit(tmp_path) is None


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
    Run(folder).check_asked(Job.of(TABLE))


def test_where_data_lie_and_how_they_are_spelled_does_not_matter(folder, tmp_path):
    elsewhere = {"data": {"name": "CSBM", "root": str(tmp_path), "offline": True}}
    Run(folder).check_asked(Job.of(merged(TABLE, elsewhere)))


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
        Run(folder).check_asked(Job.of(merged(TABLE, change)))
    assert "--output" in str(error.value)


NODES = {"model": NODE_MODEL, "seeds": 1, "training": {"epochs": 1}}


def test_other_features_under_the_same_name_are_noticed(tmp_path):
    folder = train(node_data(), NODES, output=tmp_path / "run", cache=False).folder
    Run(folder).check_asked(Job.of(NODES, node_data()))
    other = node_data()
    other.graphs[0].x[0, 0] += 1
    with pytest.raises(ConfigError, match="before its graph, features, labels or splits changed"):
        Run(folder).check_asked(Job.of(NODES, other))


@pytest.mark.parametrize("labels", [[-1] * 6, [2, 1, 0] * 2], ids=["missing", "permuted"])
def test_other_labels_under_the_same_name_are_noticed(tmp_path, labels):
    # A split is drawn among labelled nodes: where none is missing, only the labels differ.
    folder = train(node_data(), NODES, output=tmp_path / "run", cache=False).folder
    y = node_data().y.clone()
    y[:6] = torch.tensor(labels)
    assert not torch.equal(y, node_data().y)
    with pytest.raises(ConfigError, match="splits changed"):
        Run(folder).check_asked(Job.of(NODES, dataclasses.replace(node_data(), y=y)))


def test_a_run_that_has_only_begun_is_known_by_its_settings(tmp_path):
    folder = RunFolder.create_at(tmp_path / "run")
    folder.write_config(Job.of(TABLE).config.to_toml())
    Run(folder).check_asked(Job.of(TABLE))
    with pytest.raises(ConfigError, match="seeds"):
        Run(folder).check_asked(Job.of(merged(TABLE, {"seeds": 1})))
