import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.protocols import draw
from nlsf.errors import ConfigError, DataError
from nlsf.peers import SOLVERS
from nlsf.report.run_page import run_page
from nlsf.train import resume, train
from nlsf.train.job import Job
from nlsf.train.models import MODELS
from nlsf.train.predict import predict
from nlsf.train.run_folder import RunFolder
from train.small import graph_data, node_data, regression_data, signal_data

CASES = [
    (data, name)
    for data in (node_data, regression_data, graph_data, signal_data)
    for name, solver in SOLVERS.items()
    if data().level in solver.levels
]


def solve(dataset, path, name, **settings):
    table = {"model": {"name": name}, "seeds": 3, "protocol": "60-20-20", **settings}
    return train(dataset, table, output=path, cache=False)


@pytest.mark.parametrize(("data", "name"), CASES)
def test_a_run_without_epochs(tmp_path, data, name):
    dataset = data()
    result = solve(dataset, tmp_path / "a", name)
    assert [(row["best_epoch"], row["epochs"], row["together"]) for row in result.rows] == [
        (0, 0, 1)
    ] * 3
    assert all(row["cpu_seconds"] >= 0 and row["peak_memory"] > 2**20 for row in result.rows)
    assert result.folder.metrics() == []
    tensors, _ = result.folder.load_model()
    assert {key: tuple(value.shape) for key, value in tensors.items()} == {
        f"{i}.outputs": (dataset.num_examples, dataset.num_outputs) for i in range(3)
    }
    assert resume(tmp_path / "a", dataset=dataset).rows == result.rows


@pytest.mark.parametrize(("data", "name"), CASES)
def test_test_labels_are_out_of_reach(tmp_path, data, name):
    dataset = data()
    straight = solve(dataset, tmp_path / "a", name, seeds=[2])
    rows = draw(dataset, "60-20-20", 2).test
    y = dataset.y.clone()
    y[rows] = y[rows] + 100.0 if dataset.is_regression else (y[rows] + 1) % dataset.num_outputs
    spoiled = solve(dataclasses.replace(dataset, y=y), tmp_path / "b", name, seeds=[2])
    expected, found = (RunFolder(tmp_path / p).load_model()[0]["0.outputs"] for p in "ab")
    assert torch.equal(found, expected)
    key = f"test_{straight.metric}"
    assert straight.rows[0][key] != spoiled.rows[0][key]


@pytest.mark.parametrize(("data", "name"), CASES)
def test_a_solver_is_given_no_labels_but_those_of_its_lesson(monkeypatch, data, name):
    seen = []

    def spy(dataset, lesson, settings, seed):
        seen.append((dataset, lesson, seed))
        return torch.zeros(dataset.num_examples, settings.out_channels)

    monkeypatch.setitem(MODELS, name, dataclasses.replace(MODELS[name], solve=spy))
    job = Job.of({"model": {"name": name}, "seeds": [4], "protocol": "60-20-20"}, data())
    job.solution(0)
    ((dataset, lesson, seed),) = seen
    assert seed == 4
    assert len(dataset.labelled) == 0
    assert not dataset.given
    assert torch.equal(lesson.val, job.splits[0].val)


@pytest.mark.parametrize(("data", "name"), CASES)
def test_the_page(tmp_path, data, name):
    page = run_page(solve(data(), tmp_path / "a", name).folder, dataset=data(), cache=False)
    html = page.html()
    assert f"The model {name} has no spectral filters" in html
    assert "has no epochs to show" in html


@pytest.mark.parametrize(("data", "name"), CASES)
def test_it_speaks_of_its_own_examples_only(tmp_path, data, name):
    dataset = data()
    result = solve(dataset, tmp_path / "a", name)
    found = predict(tmp_path / "a", dataset, cache=False)
    row = next(row for row in result.rows if row["seed"] == found.seed)
    assert found.metrics[result.metric] == pytest.approx(row[f"test_{result.metric}"])
    with pytest.raises(DataError, match=f"'{name}' .* knows the examples that it was made with"):
        predict(tmp_path / "a", data(40), cache=False)


def test_weisfeiler_lehman_tells_rings_from_paths(tmp_path):
    assert solve(graph_data(40), tmp_path / "a", "wl").summary()[0] == 1.0


def test_features_are_left_as_they_are_but_where_there_are_none():
    table = {"model": {"name": "wl"}}
    assert Job.of(table, graph_data()).dataset.num_features == 3
    bare = tuple(Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in graph_data().graphs)
    job = Job.of(table, dataclasses.replace(graph_data(), graphs=bare))
    assert job.config.features.degree == "one-hot"


def test_graphlets_of_four_nodes_are_drawn_by_the_seed(tmp_path):
    model = {"name": "gk", "size": 4, "samples": 20}
    results = [solve(graph_data(), tmp_path / p, "gk", model=model) for p in "ab"]
    one, other = (r.folder.load_model()[0] for r in results)
    assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"name": "gk", "size": 5}, r"model\.size must be one of 3, 4, not 5"),
        ({"name": "wl", "iterations": 0}, r"model\.iterations must be at least 1"),
        ({"name": "wl", "costs": [0.0]}, r"model\.costs must be numbers above 0"),
        ({"name": "majority", "size": 3}, r"no key in \[model\] 'size'"),
    ],
)
def test_wrong_settings(model, says):
    with pytest.raises(ConfigError, match=says):
        Job.of({"model": model}, graph_data())


def test_kernels_are_for_graphs():
    with pytest.raises(ConfigError, match="'wl' does not fit data whose examples are nodes"):
        Job.of({"model": {"name": "wl"}}, node_data())
