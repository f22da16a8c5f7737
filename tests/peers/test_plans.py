"""Peers on many graphs: together as alone, and as on a batch of PyTorch Geometric."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from nlsf.data.dataset import Dataset, Lesson
from nlsf.errors import SignalError
from nlsf.nn.plans import plan_of
from nlsf.peers import PEERS
from nlsf.peers.base import GraphUnion
from nlsf.testing.graphs import hostile_graphs
from nlsf.train.loop.fit import Fit, evaluate
from nlsf.train.loop.model_batch import ModelBatch
from nlsf.train.settings.config import TrainingConfig
from nlsf.train.settings.models import MODELS
from train.small import given, graph_data, random

F64 = torch.float64
EXACT = {"rtol": 1e-10, "atol": 1e-10}
NAMES = [name for name, peer in PEERS.items() if "graph" in peer.for_levels]
TOGETHER = [name for name in NAMES if PEERS[name].together]
FEATURES, CLASSES = 3, 2
# Graphs of other sizes in each row, so that two of the rows are padded.
ROWS = torch.tensor([[9, 1, 7, 2, 6], [3, 1, 5, 4, 2], [10, 7, 8, 1, 7]])


def hostile_data():
    """Graphs of one node, without edges, with isolated nodes, in pieces; number 0 has no nodes."""
    graphs = []
    for i, (edge_index, nodes, _) in enumerate(hostile_graphs().values()):
        x = random(nodes, FEATURES, seed=i)
        graphs.append(Data(x=x, edge_index=edge_index, num_nodes=nodes))
    y = torch.arange(len(graphs)) % CLASSES
    return Dataset("hostile", "graph", tuple(graphs), y, classes=("a", "b"))


def model_of(name, seed=0, **fields):
    kind = MODELS[name]
    settings = {"hidden_channels": 8, "dropout": 0.4, "input_dropout": 0.3, **fields}
    settings = {key: value for key, value in settings.items() if key in kind.keys}
    torch.manual_seed(seed)
    return kind.build(settings, FEATURES, CLASSES, "graph", 0).to(F64)


def models_of(name, **fields):
    return [model_of(name, seed, **fields) for seed in range(len(ROWS))]


def union_of(name, dataset):
    inputs = plan_of(model_of(name), dataset, cache=False, dtype=F64)
    assert type(inputs) is GraphUnion
    return inputs


def assert_as_a_batch_of_graphs(name, rows, training):
    dataset = hostile_data()
    models = models_of(name, dropout=0.0, input_dropout=0.0)
    batch = ModelBatch(models, union_of(name, dataset), [0, 1, 2])
    out = batch.outputs(rows, training=training)
    weight = random(*out.shape).to(F64)
    (out.square() * weight).sum().backward()
    for m, model in enumerate(models):
        plain = Batch.from_data_list([dataset.graphs[i] for i in rows[m].tolist()])
        expected = model.train(training)(plain.x.to(F64), plain.edge_index, batch=plain.batch)
        torch.testing.assert_close(out[m], expected, **EXACT)
        (expected.square() * weight[m]).sum().backward()
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(batch.params[key].grad[m], parameter.grad, **EXACT)
        # Running statistics: padding would show in them.
        for key, buffer in model.named_buffers():
            torch.testing.assert_close(batch.buffers[key][m], buffer, **EXACT)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_gradients_are_those_of_a_batch_of_graphs(name, training):
    assert_as_a_batch_of_graphs(name, ROWS, training)


@pytest.mark.parametrize("name", TOGETHER)
def test_a_graph_may_have_no_nodes(name):
    assert_as_a_batch_of_graphs(name, torch.cat([torch.zeros(3, 1).long(), ROWS], dim=1), True)


@pytest.mark.parametrize("readout", ["mean", "sum", "max", "rms"])
def test_no_readout_sees_padding(readout):
    batch = ModelBatch(models_of("gcn", readout=readout), union_of("gcn", hostile_data()), [0] * 3)
    out = batch.outputs(ROWS, training=False)
    for m, model in enumerate(batch.models):
        torch.testing.assert_close(out[m], batch.plan(model.eval(), ROWS[m]), **EXACT)


def test_rows_are_padded():
    graphs, node, place = union_of("gcn", hostile_data()).union.batches(ROWS)
    assert min(graphs.rows) < max(graphs.rows) == node.shape[1]
    assert [(one < ROWS.shape[1]).sum() for one in place] == graphs.rows
    # Single nodes: as many as graphs, but for one place more.
    _, node, _ = union_of("gcn", hostile_data()).union.batches(torch.tensor([[1, 1, 1]]))
    assert node.shape == (1, 4)


@pytest.mark.parametrize("name", TOGETHER)
def test_dropout_is_what_each_model_draws_when_it_is_called(name):
    inputs = union_of(name, hostile_data())
    together = ModelBatch(models_of(name), inputs, [3, 4, 5])
    one_by_one = ModelBatch(models_of(name), union_of(name, hostile_data()), [3, 4, 5])
    one_by_one.plan.together = False
    for rows in (ROWS, ROWS[:, :3], ROWS):
        out = together.outputs(rows, training=True)
        torch.testing.assert_close(out, one_by_one.outputs(rows, training=True), **EXACT)
        assert torch.equal(together.generator_states(), one_by_one.generator_states())
    assert not torch.equal(out, together.outputs(ROWS, training=True))


@pytest.mark.parametrize("name", ["gcn", "gin", "gat"])
def test_a_training_together_is_three_trainings_alone(name):
    dataset = graph_data()
    settings = TrainingConfig(epochs=4, batch_size=7, lr=0.05, patience=4, dtype="float64")
    (lessons,) = (
        [Lesson(s.train, dataset.y[s.train], s.val, dataset.y[s.val]) for s in splits]
        for splits in given(30, *[(17, 8)] * 3).values()
    )
    inputs = union_of(name, dataset)

    def curves(numbers):
        models = [model_of(name, n) for n in numbers]
        chosen = [lessons[n] for n in numbers]
        count = len(numbers)
        fit = Fit(models, inputs, chosen, [settings] * count, numbers, "accuracy")
        rows = [row for _ in range(4) for row in fit.step()]
        found = [[row["train_loss"], row["val_loss"]] for row in rows]
        return torch.tensor(found, dtype=F64).reshape(4, count, 2), fit.batch.weights()

    together, weights = curves([0, 1, 2])
    assert (together[0] - together[-1]).abs().min() > 1e-4
    for n in range(3):
        alone, own = curves([n])
        torch.testing.assert_close(together[:, n], alone[:, 0], rtol=1e-8, atol=1e-8)
        for key, value in own.items():
            torch.testing.assert_close(weights[key][n], value[0], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["gin", "gat"])
@pytest.mark.parametrize("most", [1, 20, 60, 10_000])
def test_evaluation_in_parts(monkeypatch, name, most):
    monkeypatch.setattr("nlsf.nn.plans.plan._NODES", most)
    inputs, model = union_of(name, hostile_data()), model_of(name).eval()
    rows = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    parts = inputs.in_parts(rows)
    assert torch.equal(torch.cat(tuple(parts)), rows)
    sizes = [int(inputs.union.nodes[part].sum()) for part in parts]
    assert all(size <= most or len(part) == 1 for size, part in zip(sizes, parts, strict=True))
    torch.testing.assert_close(evaluate(model, inputs, rows), inputs(model, rows), **EXACT)
    both = inputs.in_parts(torch.stack([rows, rows.flip(0)]))
    assert torch.equal(torch.cat(tuple(both), dim=1)[1], rows.flip(0))
    assert [part.shape for part in inputs.in_parts(rows[:0])] == [(0,)]


def test_a_model_with_a_single_node_is_refused_as_alone():
    batch = ModelBatch(models_of("gin"), union_of("gin", hostile_data()), [0, 1, 2])
    with pytest.raises(SignalError, match="more than one node"):
        batch.outputs(torch.tensor([[7, 8], [0, 1], [5, 6]]), training=True)
