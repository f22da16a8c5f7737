import dataclasses

import pytest
import torch

from nlsf.errors import DataError
from nlsf.report.run_page import run_page
from nlsf.report.runs import RunRecord
from nlsf.report.trained import TrainedRun
from nlsf.train.run.predict import predict
from report.small_runs import page_of, sections, trained_folder, trained_run
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
    torch.testing.assert_close(own, said[run.predicted], rtol=1e-4, atol=1e-5)
    assert len(run.test_output) == len(run.test_labels) == len(run.split.test)
    assert len(run.branches) == 2


def test_branches_are_named(tmp_path):
    run = trained_run(node_data(), tmp_path / "run")
    assert [branch.title for branch in run.branches] == [
        "index filter on L",
        "value filter on N+loops",
    ]
    assert run.channels == ["a", "b", "c"]


# Each pair of values stands in some case.
OPERATORS = [
    (node_data, "L", "L", True),
    (node_data, "N", "N", False),
    (graph_data, "L", "N", True),
    (graph_data, "N", "L", False),
    (signal_data, "L", "N", False),
    (signal_data, "N", "L", True),
]


@pytest.mark.parametrize(("data", "index", "value", "complement"), OPERATORS)
def test_the_page_names_the_operators(tmp_path, data, index, value, complement):
    dataset = data()
    operators = {"index_operator": index, "value_operator": value, "complement": complement}
    run = trained_run(dataset, tmp_path / "run", model=operators)
    n = "N+loops" if dataset.level == "node" else "N"
    names = {"L": "L", "N": n}
    index, value = (names[operators[f"{kind}_operator"]] for kind in ("index", "value"))
    assert [b.title for b in run.branches] == [
        f"index filter on {index}",
        f"value filter on {value}",
    ]
    said = predict(tmp_path / "run", dataset, cache=False).output[run.predicted]
    torch.testing.assert_close(run.output.softmax(-1), said, rtol=1e-4, atol=1e-5)
    page = run_page(run.record.folder, dataset=dataset, cache=False)
    shown = sections(page)
    for kind, name in (("index", index), ("value", value)):
        first, *_ = shown[f"Spectrum: {kind} filter on {name}"]
        assert first.title.split(" of a graph")[0] == f"Eigenvalues of {name}"
    assert "NaN" not in page.html()


def test_two_filters_of_one_kind_have_different_names(tmp_path):
    model = {"index_operator": "N", "value_bands": {"kind": "index", "J": 4}}
    page = page_of(node_data(), tmp_path / "run", model=model)
    assert [name for name in sections(page) if name.startswith("Spectrum")] == [
        "Spectrum: index filter on N+loops, branch 1",
        "Spectrum: index filter on N+loops, branch 2",
    ]


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
