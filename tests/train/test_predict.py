import csv
import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.catalogue import load
from nlsf.data.dataset import Split
from nlsf.data.protocols import write_split
from nlsf.display.progress import Progress
from nlsf.errors import ConfigError, DataError
from nlsf.train import predict, resume, train
from nlsf.train.run.folder import RunFolder
from nlsf.train.settings.models import MODELS
from train.small import NODE_MODEL, given, graph_data, node_data, regression_data, signal_data

QUICK = {"training": {"epochs": 25}, "seeds": [3, 8]}
NODES = {**QUICK, "model": NODE_MODEL}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def trained(folder, dataset, settings):
    result = train(dataset, settings, runs=folder, cache=False)
    return result.folder.path, {row["seed"]: row for row in result.rows}


@pytest.fixture(scope="module")
def nodes(folder):
    return trained(folder, node_data(), NODES)


@pytest.fixture(scope="module")
def numbers(folder):
    return trained(folder, regression_data(), NODES)


def applied(run, dataset, **options):
    return predict(run, dataset, cache=False, **options)


@pytest.mark.parametrize("seed", [3, 8])
@pytest.mark.parametrize("data", [node_data, graph_data, signal_data, regression_data])
def test_on_the_data_of_the_training_the_numbers_are_those_of_the_run(folder, data, seed):
    settings = NODES if data in (node_data, regression_data) else QUICK
    settings = {**settings, "training": {"epochs": 5, "warmup": 0}}
    path, rows = trained(folder, data(), settings)
    found = applied(path, data(), seed=seed)
    assert found.seed == seed
    assert found.measured == rows[seed]["sizes"][2]
    assert found.measured_on == "test examples of the training data"
    assert set(found.metrics) <= {"accuracy", "macro_f1", "rmse", "mae"}
    for name, value in found.metrics.items():
        assert value == pytest.approx(rows[seed][f"test_{name}"], abs=1e-6)


def test_the_model_that_did_best_on_validation_is_taken(nodes, numbers):
    for (path, rows), data, name, sign in (
        (nodes, node_data(), "val_accuracy", -1),
        (numbers, regression_data(), "val_rmse", 1),
    ):
        best = min(rows, key=lambda seed: sign * rows[seed][name])
        assert applied(path, data).seed == best


def test_a_model_that_failed_is_not_taken(folder):
    path, rows = trained(folder, node_data(), {**NODES, "training": {"epochs": 2}})
    best = applied(path, node_data()).seed
    failed = [{**row, "val_accuracy": None} if seed == best else row for seed, row in rows.items()]
    RunFolder(path).write_results(failed)
    assert {best, applied(path, node_data()).seed} == {3, 8}


def test_a_filter_is_applied_to_a_larger_graph(folder):
    model = {**NODE_MODEL, "input_dropout": 0.0, "dropout": 0.2}
    settings = {"model": model, "training": {"epochs": 40, "lr": 0.05}, "seeds": [3]}
    path, rows = trained(folder, load("csbm", num_nodes=200), settings)
    assert rows[3]["test_accuracy"] > 0.8
    larger = load("csbm", num_nodes=500, seed=1)
    found = applied(path, larger)
    assert found.measured == 500
    assert found.measured_on == "examples with a known label"
    assert found.metrics["accuracy"] > 0.8
    assert found.metrics["accuracy"] == pytest.approx(
        float((found.output.argmax(1) == larger.y).double().mean())
    )


def test_missing_labels_are_not_measured(nodes):
    path, _ = nodes
    dataset = node_data()
    none = dataclasses.replace(dataset, y=torch.full_like(dataset.y, -1), classes=())
    found = applied(path, none, seed=3)
    assert (found.metrics, found.measured) == ({}, 0)
    assert torch.equal(found.output, applied(path, dataset, seed=3).output)
    larger = node_data(80)
    y = larger.y.clone()
    y[10:] = -1
    some = applied(path, dataclasses.replace(larger, y=y))
    assert some.measured == 10
    assert some.metrics["accuracy"] == pytest.approx(
        float((some.output[:10].argmax(1) == larger.y[:10]).double().mean())
    )


def test_training_data_with_other_labels_are_not_taken_for_a_test(nodes):
    # A split is drawn among labelled examples: with fewer labels it would be another one.
    path, _ = nodes
    dataset = node_data()
    y = dataset.y.clone()
    y[::2] = -1
    found = applied(path, dataclasses.replace(dataset, y=y), seed=3)
    assert found.measured == 30
    assert found.measured_on == "examples with a known label, some of them trained on"


def test_given_test_examples_without_label_are_left_out(folder):
    dataset = node_data(given=given(60, (30, 10), (30, 10)))
    path, _ = trained(folder, dataset, {**NODES, "seeds": [1]})
    y = dataset.y.clone()
    y[dataset.given["given"][1].test[:5]] = -1
    found = applied(path, dataclasses.replace(dataset, y=y))
    assert found.measured == 15
    assert found.measured_on == "test examples of the training data"


def test_a_split_file_that_does_not_fit_other_labels_is_no_obstacle(folder, tmp_path):
    dataset = node_data()
    split = Split(torch.arange(30), torch.arange(30, 45), torch.arange(45, 60))
    write_split(tmp_path / "split.json", split, dataset)
    settings = {**NODES, "seeds": 1, "protocol": str(tmp_path / "split.json")}
    path, rows = trained(folder, dataset, settings)
    assert applied(path, dataset).metrics["accuracy"] == rows[0]["test_accuracy"]
    y = dataset.y.clone()
    y[0] = -1
    assert applied(path, dataclasses.replace(dataset, y=y)).measured == 59


def test_classes_are_matched_by_their_names(nodes):
    path, _ = nodes
    larger = node_data(90)
    plain = applied(path, larger, seed=3)
    # The same labels under other numbers, and one class that the model has never seen.
    renumbered = torch.tensor([2, 0, 3])[larger.y]
    renumbered[:6] = 1
    other = dataclasses.replace(larger, y=renumbered, classes=("b", "new", "a", "c"))
    found = applied(path, other, seed=3)
    assert found.classes == ("a", "b", "c")
    assert torch.equal(found.output, plain.output)
    assert found.measured == 84
    assert found.metrics["accuracy"] == pytest.approx(
        float((plain.output[6:].argmax(1) == larger.y[6:]).double().mean())
    )


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_probabilities_as_csv(nodes, tmp_path):
    path, _ = nodes
    found = applied(path, node_data(70))
    found.write_csv(tmp_path / "new" / "out.csv")
    header, *rows = read(tmp_path / "new" / "out.csv")
    assert header == ["example", "label", "p(a)", "p(b)", "p(c)"]
    assert [int(row[0]) for row in rows] == list(range(70))
    values = torch.tensor([[float(v) for v in row[2:]] for row in rows], dtype=torch.float64)
    torch.testing.assert_close(
        values.sum(1), torch.ones(70, dtype=torch.float64), atol=1e-5, rtol=0
    )
    assert ["abc"[i] for i in values.argmax(1).tolist()] == [row[1] for row in rows]
    assert (values >= 0).all()


def test_names_of_classes_with_commas_stay_whole(folder, tmp_path):
    names = ("red, or so", 'a "b"', "λ")
    path, _ = trained(folder, node_data(classes=names), {**NODES, "training": {"epochs": 1}})
    applied(path, node_data(classes=names)).write_csv(tmp_path / "out.csv")
    header, *rows = read(tmp_path / "out.csv")
    assert header[2:] == [f"p({name})" for name in names]
    assert {row[1] for row in rows} <= set(names)


def test_targets_as_csv(numbers, tmp_path):
    path, rows = numbers
    found = applied(path, regression_data(), seed=8)
    assert found.classes == ()
    assert found.metrics["rmse"] == pytest.approx(rows[8]["test_rmse"], rel=1e-5)
    found.write_csv(tmp_path / "out.csv")
    header, *lines = read(tmp_path / "out.csv")
    assert header == ["example", "target 0", "target 1"]
    values = torch.tensor([[float(v) for v in line[1:]] for line in lines])
    torch.testing.assert_close(values, found.output, rtol=1e-5, atol=1e-5)


def test_a_regression_is_not_measured_on_other_targets(numbers, nodes):
    path, _ = numbers
    dataset = regression_data()
    one = dataclasses.replace(dataset, y=dataset.y[:, :1])
    assert applied(path, one).metrics == {}
    assert applied(path, node_data(), seed=3).metrics == {}
    assert applied(nodes[0], regression_data(), seed=3).metrics == {}


def test_what_does_not_fit_is_refused(nodes):
    path, _ = nodes
    with pytest.raises(DataError, match=r"examples that are nodes, but those of shapes are graphs"):
        applied(path, graph_data())
    with pytest.raises(DataError, match=r"trained on 8 features, but csbm has 5"):
        applied(path, load("csbm", num_nodes=30, num_features=5))
    with pytest.raises(ConfigError, match=r"has no seed 4: it has 3, 8"):
        applied(path, node_data(), seed=4)


ONE_GRAPH = [name for name, kind in MODELS.items() if kind.of_one_graph]


def test_the_models_of_one_graph_are_known():
    assert ONE_GRAPH == ["signal", "linear-signal", "glognn", "resnet-adj", "link", "linkx"]


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_model_of_one_graph_is_applied_to_that_graph_only(folder, name):
    data = node_data if "node" in MODELS[name].levels else signal_data
    settings = {"model": {"name": name}, "training": {"epochs": 3}, "seeds": [3]}
    path, rows = trained(folder, data(), settings)
    found = applied(path, data())
    assert found.measured == rows[3]["sizes"][2]
    assert found.metrics["accuracy"] == pytest.approx(rows[3]["test_accuracy"])
    unlabelled = dataclasses.replace(data(), y=torch.full_like(data().y, -1), classes=())
    assert torch.equal(applied(path, unlabelled).output, found.output)
    rewired = data()
    rewired.graphs[0].edge_index = rewired.graphs[0].edge_index[:, 2:]  # of the same size
    others = (rewired, data(61)) if data is node_data else (rewired,)
    for other in others:
        with pytest.raises(DataError, match=f"{name}.* parameters for every node .* another graph"):
            applied(path, other)


def test_a_model_of_one_grid_is_applied_to_other_signals_on_it(folder):
    settings = {"model": {"name": "signal"}, "training": {"epochs": 2}, "seeds": [3]}
    path, _ = trained(folder, signal_data(), settings)
    whole = applied(path, signal_data())
    few = signal_data()
    few = dataclasses.replace(few, signals=few.signals[:5], y=few.y[:5], given={})
    torch.testing.assert_close(applied(path, few).output, whole.output[:5])


def test_a_model_without_epochs_is_applied_to_its_examples_only(folder):
    path, rows = trained(folder, node_data(), {"model": {"name": "majority"}, "seeds": [3]})
    found = applied(path, node_data())
    assert found.metrics["accuracy"] == pytest.approx(rows[3]["test_accuracy"])
    with pytest.raises(DataError, match="knows the examples that it was made with, and no others"):
        applied(path, node_data(61))


class Broken(Progress):
    def advanced(self, phase):
        raise RuntimeError("broken")


def test_a_run_must_be_finished(tmp_path):
    with pytest.raises(RuntimeError, match="broken"):
        train(node_data(), NODES, output=tmp_path / "run", display=Broken(), cache=False)
    with pytest.raises(DataError, match="finish it with --resume"):
        applied(tmp_path / "run", node_data())
    resume(tmp_path / "run", dataset=node_data(), cache=False)
    assert applied(tmp_path / "run", node_data()).measured == 12


def test_features_are_made_as_in_the_training(folder):
    bare = graph_data()
    graphs = tuple(Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in bare.graphs)
    bare = dataclasses.replace(bare, graphs=graphs)
    path, _ = trained(folder, bare, {**QUICK, "training": {"epochs": 2, "warmup": 0}})
    # A star has a larger degree than any graph of the training: it counts as their largest.
    star = torch.stack([torch.zeros(6, dtype=torch.int64), torch.arange(1, 7)])
    edges = torch.cat([star, star.flip(0)], dim=1)
    new = (*graphs[:3], Data(edge_index=edges, num_nodes=7))
    other = dataclasses.replace(bare, graphs=new, y=torch.tensor([0, 1, 0, -1]))
    found = applied(path, other)
    assert found.output.shape == (4, 2)
    assert found.measured == 3
    torch.testing.assert_close(found.output[:3], applied(path, bare).output[:3])
