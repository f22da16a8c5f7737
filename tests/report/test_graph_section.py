import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.generators import block_model
from nlsf.report.graph_section import graph_charts, quantiles
from report.small_runs import trained_run
from train.small import graph_data, node_data, random, regression_data, signal_data


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
    sizes = [run.dataset.graphs[i].num_nodes for i in run.rows[:12]]
    assert len(drawing.positions) == sum(sizes)
    edges = [run.dataset.graphs[i].num_edges // 2 for i in run.rows[:12]]
    assert len(drawing.edges) == sum(edges)
    wrong = run.output.argmax(-1) != run.test_labels
    expected = [bool(w) for w, n in zip(wrong[:12], sizes, strict=True) for _ in range(n)]
    assert drawing.wrong == expected
    assert "12 test graphs of 40" in drawing.caption


def test_graphs_that_are_too_large_are_not_drawn(tmp_path, monkeypatch):
    run = trained_run(graph_data(), tmp_path / "run")
    monkeypatch.setattr("nlsf.report.graph_section._NODES", 3)
    assert graph_charts(run) == []


def test_signals_are_drawn_on_the_graph(tmp_path):
    run = trained_run(signal_data(), tmp_path / "run")
    (drawing,) = graph_charts(run)
    count = min(6, len(run.rows))
    assert len(drawing.positions) == 20 * count
    assert len(drawing.edges) == 40 * count
    assert drawing.texts[25].startswith(f"signal {int(run.rows[1])}: label")
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
