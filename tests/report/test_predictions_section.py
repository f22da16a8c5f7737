"""Where a model is wrong, and its predictions drawn."""

import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.generators import block_model
from nlsf.report.predictions_section import (
    confusion,
    confusion_charts,
    graph_charts,
    quantiles,
    regression_charts,
)
from report.small_runs import trained_run
from train.small import graph_data, node_data, random, regression_data, signal_data


def labels(count, classes, seed):
    return torch.randint(classes, (count,), generator=torch.Generator().manual_seed(seed))


def test_rows_of_the_confusion_count_the_classes():
    y, predicted = labels(500, 4, 0), labels(500, 4, 1)
    counts = confusion(predicted, y, 4)
    assert torch.equal(counts.sum(1), torch.bincount(y, minlength=4))
    assert torch.equal(counts.sum(0), torch.bincount(predicted, minlength=4))
    assert int(counts.trace()) == int((y == predicted).sum())
    assert int(counts[2, 3]) == int(((y == 2) & (predicted == 3)).sum())


def test_shares_of_a_class_sum_to_one():
    heat, bars = confusion_charts(labels(300, 3, 0), labels(300, 3, 1), ("a", "b", "c"))
    assert [sum(row) for row in heat.values] == pytest.approx([1, 1, 1])
    recall = dict(bars.series)["found (recall)"]
    assert recall == pytest.approx([heat.values[i][i] for i in range(3)])


def test_classes_that_are_missing_or_never_predicted_have_no_share():
    y, predicted = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    heat, bars = confusion_charts(predicted, y, ("a", "b", "c"))
    assert heat.rows == ["a (2)", "b (1)", "c (0)"]
    assert heat.values[2] == [None] * 3
    assert dict(bars.series)["found (recall)"] == [0.5, 1.0, None]
    assert dict(bars.series)["right (precision)"] == [1.0, 0.5, None]


def test_residuals_are_all_counted():
    y = torch.randn(5000, 1, generator=torch.Generator().manual_seed(0))
    scatter, bars = regression_charts(y * 0.5, y)
    assert sum(bars.series[0][1]) == 5000
    assert len(scatter.series[0].x) == 2000
    assert "2,000 of 5,000" in scatter.caption
    assert scatter.series[0].y == pytest.approx([0.5 * x for x in scatter.series[0].x])
    assert list(scatter.series[1].x) == list(scatter.series[1].y)


def test_every_target_has_its_charts_up_to_six():
    y = torch.randn(20, 9, generator=torch.Generator().manual_seed(0))
    charts = regression_charts(y, y)
    assert len(charts) == 12
    assert charts[0].title == "Predicted and true values of target 1"
    assert sum(charts[1].series[0][1]) == 20  # all errors are 0: one bin


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained_run(node_data(), tmp_path_factory.mktemp("runs") / "run")


def test_every_node_is_drawn_with_its_prediction(run):
    (drawing,) = graph_charts(run)
    said = run.output.argmax(-1)
    assert drawing.group == said.tolist()
    assert drawing.wrong == (said != run.dataset.y).tolist()
    assert drawing.groups == ["a", "b", "c"]
    assert len(drawing.edges) == run.dataset.graphs[0].num_edges // 2
    number = int(run.split.test[0])
    sure = 100 * float(run.output[number].softmax(-1).max())
    label, name = (run.dataset.classes[int(i)] for i in (run.dataset.y[number], said[number]))
    assert drawing.texts[number] == (
        f"test node {number}: label {label}, predicted {name} with probability {sure:.2f} %"
    )


def test_unknown_labels_are_not_wrong(tmp_path):
    data = node_data()
    y = data.y.clone()
    y[:7] = -1
    (drawing,) = graph_charts(trained_run(dataclasses.replace(data, y=y), tmp_path / "run"))
    assert not any(drawing.wrong[:7])
    assert "label not known" in drawing.texts[3]


def test_a_dense_graph_is_drawn_in_part(tmp_path):
    made = block_model(900, 3, 60.0, 0.9, seed=0)
    graph = Data(x=random(900, 4), edge_index=made.edge_index, num_nodes=900)
    data = dataclasses.replace(node_data(), graphs=(graph,), y=made.y)
    (drawing,) = graph_charts(trained_run(data, tmp_path / "run", training={"epochs": 1}))
    assert len(drawing.positions) == 600
    assert len(drawing.edges) == 3000
    assert "600 of 900 nodes" in drawing.caption
    assert "3,000 of the" in drawing.caption


def test_known_positions_are_used(tmp_path):
    data = node_data()
    graph = data.graphs[0].clone()
    graph.pos = random(60, 3)
    (drawing,) = graph_charts(
        trained_run(dataclasses.replace(data, graphs=(graph,)), tmp_path / "run")
    )
    torch.testing.assert_close(torch.tensor(drawing.positions), graph.pos[:, :2], rtol=0, atol=1e-4)


def test_numbers_are_drawn_in_fifths(tmp_path):
    (drawing,) = graph_charts(trained_run(regression_data(), tmp_path / "run"))
    assert torch.bincount(torch.tensor(drawing.group)).tolist() == [12] * 5
    assert not any(drawing.wrong)


def test_test_graphs_stand_side_by_side(tmp_path):
    run = trained_run(graph_data(200), tmp_path / "run", protocol="60-20-20")
    (drawing,) = graph_charts(run)
    sizes = [run.dataset.graphs[i].num_nodes for i in run.predicted[:12]]
    assert len(drawing.positions) == sum(sizes)
    edges = [run.dataset.graphs[i].num_edges // 2 for i in run.predicted[:12]]
    assert len(drawing.edges) == sum(edges)
    wrong = run.output.argmax(-1) != run.test_labels
    expected = [bool(w) for w, n in zip(wrong[:12], sizes, strict=True) for _ in range(n)]
    assert drawing.wrong == expected
    assert "12 test graphs of 40" in drawing.caption


def test_graphs_that_are_too_large_are_not_drawn(tmp_path, monkeypatch):
    run = trained_run(graph_data(), tmp_path / "run")
    monkeypatch.setattr("nlsf.report.predictions_section._NODES", 3)
    assert graph_charts(run) == []


def test_signals_are_drawn_on_the_graph(tmp_path):
    run = trained_run(signal_data(), tmp_path / "run")
    (drawing,) = graph_charts(run)
    count = min(6, len(run.predicted))
    assert len(drawing.positions) == 20 * count
    assert len(drawing.edges) == 40 * count
    assert drawing.texts[25].startswith(f"signal {int(run.predicted[1])}: label")
    assert "node 5, value" in drawing.texts[25]


def test_quantiles_of_equal_numbers_are_one_group():
    group, names = quantiles(torch.ones(9))
    assert len(set(group)) == 1
    assert max(group) < len(names)


def test_quantiles_are_named_by_their_range():
    group, names = quantiles(torch.arange(10.0), 2)
    assert group == [0] * 5 + [1] * 5
    assert names == ["0 to 4", "5 to 9"]
    assert quantiles(torch.tensor([0.0, 0.0, 3.0]), 2)[1] == ["0", "3"]
