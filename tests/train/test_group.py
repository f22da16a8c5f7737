import json
import os
import signal
import subprocess
import sys
import time

import pytest

from nlsf.errors import ConfigError
from nlsf.nn import GraphClassifier, NodeClassifier
from nlsf.nn.plans import sees_whole_graph
from nlsf.train import Group, resume, train
from nlsf.train.run.folder import RunFolder
from nlsf.train.settings.models import MODELS
from nn import test_plans
from train import small
from train.processes import Processes

TRAINING = {"epochs": 4, "patience": 2, "lr": 0.05, "warmup": 0, "dtype": "float64"}
GRAPH = {"name": "graph", "hidden_channels": 6, "head": [5], "dropout": 0.3}
POOLING = {**GRAPH, "name": "pooling", "branches": "value"}
PEER = {"hidden_channels": 6, "dropout": 0.3, "input_dropout": 0.2}
ROWS = {**small.NODE_MODEL, "encoder": "linear", "input_dropout": 0.0, "dropout": 0.3}
# The data, the model, the batch size (of 24 graphs or 36 nodes) and the number of processes.
CASES = {
    "graph": ("graph_data", GRAPH, 5, 2),  # batches of 5 and of 4: shares of 3 and 2, or 2 and 2
    "graph, one batch": ("graph_data", {**GRAPH, "branches": "value"}, None, 3),
    "pooling": ("graph_data", POOLING, 9, 2),
    "gin": ("graph_data", {**PEER, "name": "gin"}, 9, 2),  # statistics and masks of nodes
    "diffpool": ("graph_data", {**PEER, "name": "diffpool"}, 8, 2),
    "rows of nodes": ("node_data", ROWS, 13, 2),
}


@pytest.fixture(scope="module")
def processes():
    with Processes() as started:
        yield started


def settings_of(model, batch_size, seeds=2):
    batch = {} if batch_size is None else {"batch_size": batch_size}
    return {"model": model, "training": {**TRAINING, **batch}, "seeds": seeds}


def assert_close(rows, expected):
    """Equal to rounding, and exactly equal in all that is not a loss or a time."""
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        for name, value in wanted.items():
            if name.endswith("_loss"):
                assert row[name] == pytest.approx(value, rel=1e-8, abs=1e-10), name
            elif not name.endswith(("seconds", "memory")):
                assert row[name] == value, name


@pytest.mark.parametrize("case", CASES)
def test_a_group_has_the_numbers_of_one_process(processes, tmp_path, case):
    data, model, batch_size, size = CASES[case]
    settings = settings_of(model, batch_size)
    train(getattr(small, data)(), settings, output=tmp_path / "one", cache=False)
    arguments = [data, settings, str(tmp_path / "many")]
    codes, printed = processes.run(size, tmp_path, "train", arguments)
    assert codes == [0] * size, printed
    one, many = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "many")
    assert_close(many.metrics(), one.metrics())
    assert_close(many.results(), one.results())
    assert all(row["processes"] == size for row in many.results())
    assert [json.loads(text) for text in printed] == [many.results()] * size
    assert many.read_config() == one.read_config()


def test_shares_cover_a_batch():
    for size in range(1, 6):
        for count in range(size, 13):
            group = [Group(rank, size) for rank in range(size)]
            parts = [list(range(count))[one.share(count)] for one in group]
            assert [i for part in parts for i in part] == list(range(count))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1
            assert sum(one.weight(count) for one in group) == pytest.approx(size)
    with pytest.raises(ConfigError, match=r"2 example\(s\) cannot be shared by 3 processes"):
        Group(0, 3).share(2)


def test_a_batch_that_is_too_small_is_refused(processes, tmp_path):
    arguments = ["node_data", settings_of(ROWS, 1), str(tmp_path / "run")]
    codes, printed = processes.run(2, tmp_path, "train", arguments)
    assert codes == [1, 1]
    assert all("raise training.batch_size" in text for text in printed)


def test_processes_with_different_settings_are_refused(processes, tmp_path):
    both = [settings_of(GRAPH, 5), settings_of(GRAPH, 6)]
    arguments = ["graph_data", both, str(tmp_path / "run")]
    codes, printed = processes.run(2, tmp_path, "train", arguments)
    assert codes == [1, 1]
    assert all("do not have the same settings" in text for text in printed)
    assert not (tmp_path / "run").exists()


def test_what_fails_in_one_process_is_told_by_the_first(processes, tmp_path):
    lacking = {**settings_of(GRAPH, 5), "protocol": "no such file"}
    arguments = ["graph_data", [settings_of(GRAPH, 5), lacking], str(tmp_path / "run")]
    codes, printed = processes.run(2, tmp_path, "train", arguments)
    assert codes == [1, 1]
    assert "Process 1: " in printed[0]
    assert "no such file" in printed[0]


def test_a_model_of_whole_graphs_is_refused_once(processes, tmp_path):
    codes, printed = processes.run(2, tmp_path, "cli", ["train", "csbm"])
    assert codes == [1, 1]
    assert "sees all of csbm in every step, so 2 processes" in printed[0]
    assert printed[1] == ""
    assert not (tmp_path / "runs").exists()


QUIET = ["--no-cache", "--no-report", "--checkpoint-seconds", "0", "-q"]
COMMAND = "train csbm --seeds 2 --protocol 40-30-30 --set data.num_nodes=100 --set batch_size=21"
ROWS_ONLY = "--set encoder=linear --set input_dropout=0 --set hidden_channels=8"
LONG = "--set epochs=30 --set patience=30 --set dtype=float64"
TRAIN = [*COMMAND.split(), *ROWS_ONLY.split(), *LONG.split(), *QUIET]


@pytest.fixture(scope="module")
def undisturbed(processes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("group")
    codes, printed = processes.run(2, folder, "cli", [*TRAIN, "--output", "run"])
    assert codes == [0, 0], printed
    assert "Test accuracy" in printed[0]
    assert printed[1] == ""
    return RunFolder(folder / "run")


def wait_for_metrics(folder):
    """Until a training has begun."""
    metrics, end = folder / "run" / "metrics.jsonl", time.monotonic() + 60
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < 6:
        assert time.monotonic() < end, "the training does not go on"
        time.sleep(0.002)


def interrupted(processes, folder, how):
    """The exit codes and words of a group that gets a signal in the middle of its training."""
    group = processes.start(2, folder, "cli", [*TRAIN, "--output", "run"])
    wait_for_metrics(folder)
    group.send(how)
    codes, printed = group.end()
    assert not RunFolder(folder / "run").finished
    return codes, printed


def test_a_killed_group_goes_on_to_the_same_bytes(processes, undisturbed, tmp_path):
    codes, _ = interrupted(processes, tmp_path, signal.SIGKILL)
    assert codes == [-signal.SIGKILL] * 2
    codes, printed = processes.run(2, tmp_path, "cli", ["train", "--resume", "run", *QUIET])
    assert codes == [0, 0], printed
    path = undisturbed.path / "metrics.jsonl"
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == path.read_bytes()
    assert_close(RunFolder(tmp_path / "run").results(), undisturbed.results())


def test_a_killed_process_ends_the_others(processes, tmp_path):
    # Batch normalisation: the others may notice it in the middle of a backward pass.
    settings = settings_of({**GRAPH, "branches": "value"}, 6)
    settings["training"] |= {"epochs": 10_000, "patience": 10_000}
    group = processes.start(3, tmp_path, "train", ["graph_data", settings, str(tmp_path / "run")])
    wait_for_metrics(tmp_path)
    os.kill(group.pids[1], signal.SIGKILL)
    codes, printed = group.end()
    assert codes == [1, -signal.SIGKILL, 1]
    assert all(
        "GroupError: Another process of the training has ended" in printed[k] for k in (0, 2)
    )


def test_an_interrupted_group_can_go_on_as_one_process(processes, undisturbed, tmp_path):
    codes, printed = interrupted(processes, tmp_path, signal.SIGINT)
    assert codes == [1, 1]
    assert "Stopped. Go on with nlsf train --resume run" in printed[0]
    assert printed[1] == ""
    resume(tmp_path / "run", cache=False)
    run = RunFolder(tmp_path / "run")
    assert_close(run.metrics(), undisturbed.metrics())
    losses = [{k: v for k, v in row.items() if k != "processes"} for row in undisturbed.results()]
    assert_close(run.results(), losses)


def test_python_m_nlsf():
    done = subprocess.run(
        [sys.executable, "-m", "nlsf", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("nlsf 0.")


def test_whether_a_step_needs_the_whole_graph_is_known_before():
    nodes, graphs = small.node_data(), small.graph_data()
    for model in (
        test_plans.Linear(nodes.num_features),
        test_plans.model_of(NodeClassifier, nodes),
        test_plans.model_of(NodeClassifier, nodes, encoder="linear", input_dropout=0.0),
        MODELS["gcn"].build({}, nodes.num_features, nodes.num_outputs).double(),
    ):
        assert sees_whole_graph(model, nodes) is test_plans.prepared(model, nodes).whole
    for model in (
        test_plans.Linear(graphs.num_features),
        test_plans.model_of(GraphClassifier, graphs),
        MODELS["gcn"].build({}, graphs.num_features, graphs.num_outputs, "graph").double(),
    ):
        assert sees_whole_graph(model, graphs) is test_plans.prepared(model, graphs).whole is False
    own = test_plans.Linear(nodes.num_features)
    own.plan = lambda dataset, rows, **options: None
    assert not sees_whole_graph(own, nodes), "its plan says so later"
