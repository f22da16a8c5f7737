import dataclasses
import json
import random as python_random
import tomllib

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.protocols import draw
from nlsf.errors import ConfigError, DataError
from nlsf.peers import SOLVERS
from nlsf.report.run_page import run_page
from nlsf.train import resume, train
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.run.predict import predict
from nlsf.train.settings.models import MODELS
from train.runs import QUICK, assert_same, metrics, quick, settings_for, untimed, weights
from train.small import NODE_MODEL, given, graph_data, node_data, regression_data, signal_data


@pytest.mark.parametrize("data", [node_data, regression_data, graph_data, signal_data])
def test_the_same_run_twice(tmp_path, data):
    for name, torch_seed in (("a", 1), ("b", 2)):
        torch.manual_seed(torch_seed)
        np.random.seed(torch_seed)  # noqa: NPY002
        before = (
            torch.get_rng_state().tolist(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            python_random.getstate(),
        )
        quick(data(), tmp_path / name, settings_for(data()))
        assert before == (
            torch.get_rng_state().tolist(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            python_random.getstate(),
        )
    assert_same(tmp_path / "a", tmp_path / "b")


def test_another_seed_gives_other_numbers(tmp_path):
    first = quick(node_data(), tmp_path / "a", {**QUICK, "seeds": [0]})
    second = quick(node_data(), tmp_path / "b", {**QUICK, "seeds": [1]})
    assert first.rows[0]["test_loss"] != second.rows[0]["test_loss"]
    assert first.rows[0]["split"] != second.rows[0]["split"]
    # On one fixed split the start of the model still differs.
    dataset = node_data(given=given(60, (20, 20)))
    fixed = quick(dataset, tmp_path / "c", {**QUICK, "seeds": 2})
    assert fixed.rows[0]["split"] == fixed.rows[1]["split"]
    assert fixed.rows[0]["test_loss"] != fixed.rows[1]["test_loss"]


def test_seeds_do_not_depend_on_their_company(tmp_path):
    many = quick(node_data(), tmp_path / "many", {**QUICK, "seeds": [4, 1, 9]})
    alone = quick(node_data(), tmp_path / "alone", {**QUICK, "seeds": [9]})
    (row,), wanted = alone.rows, many.rows[2]
    assert row["seed"] == wanted["seed"] == 9
    assert row["best_epoch"] == wanted["best_epoch"]
    for name in ("train_loss", "val_loss", "test_loss"):
        assert row[name] == pytest.approx(wanted[name], rel=1e-8)


@pytest.mark.parametrize("data", [node_data, regression_data, graph_data, signal_data])
def test_test_labels_are_out_of_reach(tmp_path, data):
    dataset = data()
    settings = {**settings_for(dataset), "seeds": [2], "protocol": "60-20-20"}
    straight = quick(dataset, tmp_path / "a", settings)
    rows = draw(dataset, "60-20-20", 2).test
    y = dataset.y.clone()
    y[rows] = y[rows] + 100.0 if dataset.is_regression else (y[rows] + 1) % dataset.num_outputs
    spoiled = quick(dataclasses.replace(dataset, y=y), tmp_path / "b", settings)
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    expected = weights(tmp_path / "a")
    assert all(torch.equal(v, expected[name]) for name, v in weights(tmp_path / "b").items())
    (found,), (wanted,) = untimed(spoiled.rows), untimed(straight.rows)
    different = {name for name in wanted if found[name] != wanted[name]}
    assert f"test_{straight.metric}" in different
    assert all(name.startswith("test_") for name in different)


def test_results_are_those_of_the_selected_epoch(tmp_path):
    result = quick(node_data(), tmp_path / "run")
    logged = RunFolder(tmp_path / "run").metrics()
    assert [row["seed"] for row in result.rows] == [0, 1, 2]
    for row in result.rows:
        own = [line for line in logged if line["seed"] == row["seed"]]
        best = max(own, key=lambda line: (line["val_accuracy"], -line["val_loss"]))
        assert (row["best_epoch"], row["epochs"]) == (best["epoch"], own[-1]["epoch"])
        assert row["val_accuracy"] == best["val_accuracy"]
        assert row["val_loss"] == pytest.approx(best["val_loss"], rel=1e-8)
        assert row["sizes"] == [36, 12, 12]
        assert row["together"] == 3
        assert 0 <= row["test_accuracy"] <= 1
    mean, half = result.summary()
    assert mean == pytest.approx(np.mean([row["test_accuracy"] for row in result.rows]))
    assert half >= 0
    assert result.summary("val", "macro_f1")[0] == pytest.approx(
        np.mean([row["val_macro_f1"] for row in result.rows])
    )


def test_the_configuration_of_a_run_repeats_it(tmp_path):
    quick(node_data(), tmp_path / "a", {**QUICK, "seeds": 2})
    table = tomllib.loads((tmp_path / "a" / "config.toml").read_text())
    quick(node_data(), tmp_path / "b", table)
    assert_same(tmp_path / "a", tmp_path / "b")


def test_a_finished_run_is_not_trained_again(tmp_path):
    result = quick(node_data(), tmp_path / "run")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "run").iterdir()}
    again = resume(tmp_path / "run", dataset=node_data(), cache=False)
    assert again.rows == RunFolder(tmp_path / "run").results()
    assert untimed(again.rows) == untimed(json.loads(json.dumps(result.rows)))
    assert again.metric == result.metric
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "run").iterdir()} == before


def test_a_folder_is_not_overwritten(tmp_path):
    quick(node_data(), tmp_path / "run")
    with pytest.raises(ConfigError, match="holds a run already"):
        quick(node_data(), tmp_path / "run")
    with pytest.raises(DataError, match="no run folder"):
        resume(tmp_path / "none")


OPERATORS = [
    {"index_operator": "N", "value_operator": "L", "complement": False},
    {"index_operator": "N", "value_operator": "N", "complement": True},
]


@pytest.mark.parametrize("data", [node_data, graph_data, signal_data])
@pytest.mark.parametrize("operators", OPERATORS, ids=lambda o: "-".join(map(str, o.values())))
def test_operators_and_complement_are_settings_of_a_run(tmp_path, data, operators):
    base = settings_for(data())
    settings = {**base, "model": {**base["model"], **operators}, "seeds": 2}
    result = quick(data(), tmp_path / "run", settings)
    written = tomllib.loads((tmp_path / "run" / "config.toml").read_text())["model"]
    assert {key: written[key] for key in operators} == operators
    assert all(0 <= row["test_accuracy"] <= 1 for row in result.rows)
    # Trained together or alone, a seed has the same numbers.
    alone = quick(data(), tmp_path / "alone", {**settings, "seeds": [1]})
    for name in ("train_loss", "val_loss", "test_loss"):
        assert alone.rows[0][name] == pytest.approx(result.rows[1][name], rel=1e-8)


def test_an_unknown_operator_is_named(tmp_path):
    settings = {**QUICK, "model": {**NODE_MODEL, "value_operator": "A"}}
    with pytest.raises(ConfigError, match=r"model\.value_operator must be one of L, N, not 'A'"):
        quick(node_data(), tmp_path / "run", settings)


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
def test_solution_test_labels_are_out_of_reach(tmp_path, data, name):
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
    job.solved(0)
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
