import dataclasses

import pytest
import torch

from nlsf.errors import DataError
from nlsf.report.record import RunRecord
from nlsf.report.trained import TrainedRun
from nlsf.train.predict import predict
from report.small_runs import trained_folder, trained_run
from train.small import graph_data, node_data, regression_data, signal_data


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        (node_data(), {}),
        (node_data(sparse=True), {}),
        (node_data(), {"model": {"encoder": "linear", "input_dropout": 0.0}}),
        (regression_data(), {"training": {"dtype": "float64"}}),
        (graph_data(), {"model": {"name": "graph"}}),
        (graph_data(), {"model": {"name": "pooling"}}),
        (signal_data(), {"model": {"name": "graph"}}),
        (signal_data(), {"model": {"name": "pooling"}}),
    ],
    ids=["mlp", "sparse", "linear", "numbers", "graph", "pooling", "signals", "pooled signals"],
)
def test_outputs_are_those_of_the_model(tmp_path, data, changes):
    run = trained_run(data, tmp_path / "run", **changes)
    said = predict(tmp_path / "run", data, cache=False).output
    own = run.output if data.is_regression else run.output.softmax(-1)
    torch.testing.assert_close(own, said[run.rows], rtol=1e-4, atol=1e-5)
    assert len(run.test_output) == len(run.test_labels) == len(run.split.test)
    assert len(run.branches) == 2


def test_branches_are_named(tmp_path):
    run = trained_run(node_data(), tmp_path / "run")
    assert [branch.title for branch in run.branches] == [
        "index filter on L",
        "value filter on N+loops",
    ]
    assert run.channels == ["a", "b", "c"]


def test_hidden_channels_are_numbered(tmp_path):
    run = trained_run(node_data(), tmp_path / "run", model={"place": "hidden"})
    assert run.channels == [f"channel {i + 1}" for i in range(8)]


def test_only_predicted_graphs_are_decomposed(tmp_path):
    run = trained_run(graph_data(), tmp_path / "run")
    for branch in run.branches:
        sizes = [spectrum.num_nodes for spectrum in branch.spectra]
        assert sizes == [run.dataset.graphs[i].num_nodes for i in run.split.test]


def test_other_labels_that_give_other_splits_are_refused(tmp_path):
    data = node_data()
    folder = trained_folder(data, tmp_path / "run")
    fewer = data.y.clone()
    fewer[:10] = -1
    with pytest.raises(DataError, match="small is not what"):
        TrainedRun.of(RunRecord.read(folder), dataclasses.replace(data, y=fewer), cache=False)
