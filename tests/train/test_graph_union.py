"""Peers on many graphs: together as alone, and as on a batch of PyTorch Geometric."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from nlsf.data.dataset import Dataset
from nlsf.nn.baselines import PEERS
from nlsf.testing.graphs import hostile_graphs
from nlsf.train.config import TrainingConfig
from nlsf.train.fit import Fit, Lesson, evaluate
from nlsf.train.graph_union import GraphUnion
from nlsf.train.inputs_for import inputs_for
from nlsf.train.model_batch import ModelBatch
from nlsf.train.models import MODELS
from train.small import random

F64 = torch.float64
EXACT = {"rtol": 1e-10, "atol": 1e-10}
NAMES = [name for name, peer in PEERS.items() if "graph" in peer.levels]
TOGETHER = [name for name in NAMES if PEERS[name].method.together]
FEATURES, CLASSES = 3, 2
# Each row has graphs of other sizes: the second and the last are padded. Some have no edges.
ROWS = torch.tensor([[9, 1, 6, 2, 5], [0, 1, 4, 3, 2], [6, 6, 8, 0, 7]])


def hostile_data():
    """Graphs without edges, of one node, with isolated nodes, in pieces, and a small torus."""
    made = [graph for name, graph in hostile_graphs().items() if name != "empty"]
    graphs = [
        Data(x=random(g.num_nodes, FEATURES, seed=i), edge_index=g.edge_index, num_nodes=g.num_nodes)
        for i, g in enumerate(made)
    ]
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
    inputs = inputs_for(model_of(name), dataset, cache=False, dtype=F64)
    assert type(inputs) is GraphUnion
    return inputs


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_gradients_are_those_of_a_batch_of_graphs(name, training):
    dataset = hostile_data()
    models = models_of(name, dropout=0.0, input_dropout=0.0)
    batch = ModelBatch(models, union_of(name, dataset), [0, 1, 2])
    out = batch.outputs(ROWS, training=training)
    weight = random(*out.shape).to(F64)
    (out.square() * weight).sum().backward()
    for m, model in enumerate(models):
        plain = Batch.from_data_list([dataset.graphs[i] for i in ROWS[m].tolist()])
        expected = model.train(training)(plain.x.to(F64), plain.edge_index, batch=plain.batch)
        torch.testing.assert_close(out[m], expected, **EXACT)
        (expected.square() * weight[m]).sum().backward()
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(batch.params[key].grad[m], parameter.grad, **EXACT)
        for key, buffer in model.named_buffers():
            torch.testing.assert_close(batch.buffers[key][m], buffer, **EXACT)
