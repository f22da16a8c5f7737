import dataclasses

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from nlsf.nn import GraphClassifier, NodeClassifier, Start
from nlsf.nn.layers.spectral_layer import spectral_branches
from nlsf.nn.models import SignalClassifier
from nlsf.nn.plans import Signals, WholeGraph, plan_of
from nlsf.nn.plans.plan import GraphBatches
from nlsf.nn.plans.spectral import LabelledRows, PreparedSet, SpectralBatches
from nlsf.spectral import DyadicBands, IndexBands, PolynomialBands, SparseSignal, UniformBands
from nlsf.train.loop.fit import evaluate
from nlsf.train.settings.models import MODELS
from train.small import BANDS, graph_data, node_data, signal_data

F64 = torch.float64


def model_of(kind, dataset, **fields):
    torch.manual_seed(0)
    sizes = {"in_channels": dataset.num_features, "out_channels": dataset.num_outputs}
    model = kind(**sizes, hidden_channels=6, **BANDS, **fields)
    for parameter in model.parameters():  # away from the zeros of the start
        nn.init.normal_(parameter, std=0.3)
    return model.to(F64).eval()


def prepared(model, dataset, rows=None):
    return plan_of(model, dataset, rows, cache=False, dtype=F64)


def assert_outputs(plan, model, plain, rtol=1e-9):
    """The same numbers in any order, a part at a time, and with examples that repeat."""
    rows = torch.tensor([7, 3, 3, 11, 0])
    torch.testing.assert_close(plan(model, rows), plain[rows], rtol=rtol, atol=rtol)
    every = torch.arange(len(plain))
    torch.testing.assert_close(evaluate(model, plan, every), plain, rtol=rtol, atol=rtol)
    assert plain.std(0).max() > 1e-3


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"encoder": "mlp"}, WholeGraph),
        ({"encoder": "linear"}, WholeGraph),  # because of its input dropout
        ({"encoder": "linear", "input_dropout": 0.0}, LabelledRows),
        ({"encoder": "none", "place": "hidden", "input_dropout": 0.0}, LabelledRows),
        ({"encoder": "linear", "input_dropout": 0.0, "residual": True}, WholeGraph),
        ({"encoder": "linear", "input_dropout": 0.0, "num_layers": 2}, WholeGraph),
    ],
)
def test_nodes(branches, fields, kind):
    dataset = node_data()
    model = model_of(NodeClassifier, dataset, branches=branches, **fields)
    plan = prepared(model, dataset)
    assert type(plan) is kind
    graph = dataset.graphs[0]
    assert_outputs(plan, model, model(graph.x.to(F64), graph.edge_index))


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
def test_rows_of_sparse_features_that_come_again_are_prepared_further(branches, monkeypatch):
    monkeypatch.setattr("nlsf.nn.plans.spectral._REMEMBERED", 2)
    dataset = node_data()
    graph = dataset.graphs[0]
    graph.x = torch.where(graph.x > graph.x.quantile(0.8), graph.x, 0.0)
    fields = {"encoder": "none", "place": "hidden", "input_dropout": 0.0}
    model = model_of(NodeClassifier, dataset, branches=branches, **fields)
    plan = prepared(model, dataset)
    assert not plan.together
    plain = model(graph.x.to(F64), graph.edge_index)
    rows = torch.tensor([7, 3, 3, 11, 0])
    for number in range(4):
        chosen = plan.select(rows.clone())
        assert isinstance(chosen, torch.Tensor) == (number == 0)
        assert number < 2 or chosen is plan.select(rows)
        found = plan.apply(model, chosen)
        torch.testing.assert_close(found, plain[rows], rtol=1e-9, atol=1e-9)
    for number in range(2):  # others take its place
        assert isinstance(plan.select(torch.tensor([number])), torch.Tensor)
    assert isinstance(plan.select(rows), torch.Tensor)


OPERATORS = [
    {"index_operator": index, "value_operator": value, "complement": complement}
    for index in "LN"
    for value in "LN"
    for complement in (True, False)
]
every_operator = pytest.mark.parametrize(
    "operators", OPERATORS, ids=lambda fields: "-".join(map(str, fields.values()))
)


@every_operator
@pytest.mark.parametrize("input_dropout", [0.5, 0.0], ids=["whole", "rows"])
@pytest.mark.parametrize("response", ["diagonal", "full"])
def test_nodes_seen_through_every_operator(operators, input_dropout, response):
    dataset = node_data()
    fields = {"encoder": "linear", "input_dropout": input_dropout, "response": response}
    model = model_of(NodeClassifier, dataset, **operators, **fields)
    plan = prepared(model, dataset)
    assert type(plan) is (WholeGraph if input_dropout else LabelledRows)
    graph = dataset.graphs[0]
    assert_outputs(plan, model, model(graph.x.to(F64), graph.edge_index))


@every_operator
@pytest.mark.parametrize("level", ["graph", "pooling"])
def test_graphs_and_signals_seen_through_every_operator(operators, level):
    dataset = graph_data()
    model = model_of(GraphClassifier, dataset, level=level, **operators)
    batch = Batch.from_data_list(list(dataset.graphs))
    plain = model(batch.x.to(F64), batch.edge_index, None, batch.batch)
    assert_outputs(prepared(model, dataset), model, plain)
    dataset = signal_data()
    model = model_of(GraphClassifier, dataset, level=level, **operators)
    plain = model(dataset.signals.to(F64), dataset.graphs[0].edge_index)
    assert_outputs(prepared(model, dataset), model, plain)


@pytest.mark.parametrize("operator", ["L", "N"])
@pytest.mark.parametrize("complement", [True, False])
@pytest.mark.parametrize(
    ("bands", "whole"),
    [
        (UniformBands(20), True),  # all but the last twentieth: nearly every pair
        (DyadicBands(0.5, 6, 2), False),
        (IndexBands(8), False),
    ],
    ids=["many", "few", "index"],
)
def test_the_largest_band_is_implicit_where_nearly_all_pairs_are_needed(
    operator, complement, bands, whole
):
    dataset = node_data()
    fields = {"branches": "value", "value_operator": operator, "complement": complement}
    torch.manual_seed(0)
    model = NodeClassifier(
        in_channels=8, out_channels=3, value_bands=bands, start=Start("heat", 0.7), **fields
    )
    model = model.to(F64).eval()
    plan = prepared(model, dataset)
    lens = plan.graph["spectrum"]
    assert lens.spectrum.is_complete is whole
    if whole:
        assert lens.rest == int(lens.dimension.argmax())
        assert lens.vectors.shape[1] == 60 - int(lens.dimension.max())
    graph = dataset.graphs[0]
    assert_outputs(plan, model, model(graph.x.to(F64), graph.edge_index))


def test_only_the_rows_that_are_asked_for_are_prepared():
    dataset = node_data()
    model = model_of(NodeClassifier, dataset, encoder="linear", input_dropout=0.0)
    rows = torch.tensor([40, 3, 8, 3, 59])
    plan = prepared(model, dataset, rows)
    assert {p.signal.shape[0] for p in plan.prepared} == {4}
    graph = dataset.graphs[0]
    plain = model(graph.x.to(F64), graph.edge_index)
    torch.testing.assert_close(plan(model, rows), plain[rows], rtol=1e-9, atol=1e-9)
    with pytest.raises(IndexError, match="out of bounds"):
        plan(model, torch.tensor([40, 4]))


@pytest.mark.parametrize("encoder", ["mlp", "linear"])
def test_sparse_features_stay_sparse(encoder):
    dataset = node_data(sparse=True)
    model = model_of(NodeClassifier, dataset, encoder=encoder)
    graph = dataset.graphs[0]
    plain = model(graph.x.to_dense().to(F64), graph.edge_index)
    # The same whether they came as a sparse matrix or as a dense one that is mostly zero.
    for x in (graph.x, graph.x.to_dense()):
        data = Data(x=x, edge_index=graph.edge_index, num_nodes=60)
        plan = prepared(model, dataclasses.replace(dataset, graphs=(data,)))
        assert isinstance(plan, WholeGraph)
        assert isinstance(plan.x, SparseSignal)
        assert plan.x.values.dtype == F64
        assert_outputs(plan, model, plain)


def test_dense_features_stay_dense():
    dataset = node_data()
    plan = prepared(model_of(NodeClassifier, dataset), dataset)
    assert isinstance(plan.x, torch.Tensor)
    assert plan.x.dtype == F64


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"level": "graph"}, PreparedSet),
        ({"level": "graph", "channels": None}, PreparedSet),
        ({"level": "graph", "norm": 1.0}, SpectralBatches),
        ({"level": "pooling"}, PreparedSet),
        ({"level": "pooling", "norm": 1.0, "a": 0.5, "readout": "max"}, PreparedSet),
        ({"level": "pooling", "response": "bandwise", "complement": False}, PreparedSet),
        ({"level": "pooling", "response": "full"}, SpectralBatches),
    ],
)
def test_graphs(monkeypatch, branches, fields, kind):
    # Graphs are prepared in several parts, of unequal width.
    monkeypatch.setattr("nlsf.nn.models.graph_classifier._CHUNK", 7)
    dataset = graph_data()
    model = model_of(GraphClassifier, dataset, branches=branches, **fields)
    plan = prepared(model, dataset)
    assert type(plan) is kind
    assert plan.together is (kind is not SpectralBatches)
    batch = Batch.from_data_list(list(dataset.graphs))
    assert_outputs(plan, model, model(batch.x.to(F64), batch.edge_index, None, batch.batch))


def test_projections_that_are_too_many_are_not_kept(monkeypatch):
    monkeypatch.setattr("nlsf.nn.models.graph_classifier._PROJECTIONS", 10)
    dataset = graph_data()
    model = model_of(GraphClassifier, dataset, level="pooling")
    assert type(prepared(model, dataset)) is SpectralBatches


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"level": "graph"}, PreparedSet),
        ({"level": "graph", "norm": 1.0}, Signals),
        ({"level": "pooling"}, Signals),
    ],
)
def test_signals(branches, fields, kind):
    dataset = signal_data()
    model = model_of(GraphClassifier, dataset, branches=branches, **fields)
    plan = prepared(model, dataset)
    assert type(plan) is kind
    plain = model(dataset.signals.to(F64), dataset.graphs[0].edge_index)
    assert_outputs(plan, model, plain)


class Linear(nn.Module):
    """A model that knows nothing of spectra, but takes what graph networks take."""

    def __init__(self, channels):
        super().__init__()
        self.lin = nn.Linear(channels, 2, dtype=F64)

    def forward(self, x, edge_index, batch=None):
        start, end = edge_index
        x = self.lin(x).index_add(-2, start, self.lin(x).index_select(-2, end))
        if batch is None:
            return x if x.ndim == 2 else x.mean(-2)
        return torch.zeros(int(batch.max()) + 1, 2, dtype=F64).index_add(0, batch, x)


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [(node_data(), WholeGraph), (graph_data(), GraphBatches), (signal_data(), Signals)],
)
def test_other_models_get_edges(dataset, kind):
    model = Linear(dataset.num_features)
    assert spectral_branches(model) == []
    plan = prepared(model, dataset)
    assert type(plan) is kind
    if dataset.level == "graph":
        parts = Batch.from_data_list(list(dataset.graphs))
        plain = model(parts.x.to(F64), parts.edge_index, parts.batch)
    else:
        graph = dataset.graphs[0]
        x = graph.x if dataset.signals is None else dataset.signals
        plain = model(x.to(F64), graph.edge_index)
    assert_outputs(plan, model, plain)


def weighted(dataset):
    """The same with a weight for every edge, which depends on its ends."""
    graphs = []
    for graph in dataset.graphs:
        made = graph.clone()
        made.edge_weight = 1.0 + (graph.edge_index.sum(0) % 4)
        graphs.append(made)
    return dataclasses.replace(dataset, graphs=tuple(graphs))


@pytest.mark.parametrize(
    ("name", "data"),
    [("gcn", node_data), ("gcn", graph_data), ("value", node_data), ("pooling", graph_data)],
)
def test_weights_of_edges_reach_every_model(name, data):
    dataset = weighted(data())
    torch.manual_seed(0)
    sizes = (dataset.num_features, dataset.num_outputs, dataset.level)
    model = MODELS[name].build({}, *sizes).to(F64).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    batch = Batch.from_data_list(list(dataset.graphs))
    x, more = batch.x.to(F64), {} if dataset.level == "node" else {"batch": batch.batch}
    with_weights = model(x, batch.edge_index, batch.edge_weight, **more)
    assert (with_weights - model(x, batch.edge_index, **more)).abs().max() > 1e-3
    assert_outputs(prepared(model, dataset), model, with_weights)


def test_branches_in_the_order_of_the_spectra():
    dataset = node_data()
    both = spectral_branches(model_of(NodeClassifier, dataset))
    assert [b.bands for b in both] == [BANDS["index_bands"], BANDS["value_bands"]]
    (one,) = spectral_branches(model_of(NodeClassifier, dataset, branches="value"))
    assert one.bands == BANDS["value_bands"]


def test_weighted_edges_count():
    dataset = node_data()
    graph = dataset.graphs[0]
    start, end = graph.edge_index
    weight = 1.0 + ((start + end) % 5).to(F64)
    heavy = Data(x=graph.x, edge_index=graph.edge_index, edge_weight=weight, num_nodes=60)
    model = model_of(NodeClassifier, dataset)
    plan = prepared(model, dataclasses.replace(dataset, graphs=(heavy,)))
    assert_outputs(plan, model, model(graph.x.to(F64), graph.edge_index, weight))


def test_progress_is_told():
    told = []
    dataset = node_data()
    model = model_of(NodeClassifier, dataset)
    plan_of(model, dataset, cache=False, progress=told.append)
    assert len(told) == 3
    assert all("60 nodes" in text for text in told[:2])


def test_signals_of_a_model_with_pooling():
    dataset = signal_data()
    graph = dataset.graphs[0]
    torch.manual_seed(0)
    model = SignalClassifier(
        in_channels=dataset.num_features,
        out_channels=dataset.num_outputs,
        num_nodes=graph.num_nodes,
        widths=(5, 6),
        halvings=1,
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    model = model.to(F64).eval()
    plan = prepared(model, dataset)
    assert isinstance(plan, Signals)
    assert spectral_branches(model) == []
    plain = model(dataset.signals.to(F64), graph.edge_index, graph.get("edge_weight"))
    assert_outputs(plan, model, plain)


SMOOTH = PolynomialBands(DyadicBands(S=4), order=6)


@pytest.mark.parametrize("branches", ["attention", "value"])
@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_polynomial_bands_see_the_whole_graph_or_its_rows(branches, encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path))
    dataset = node_data()
    fields = {"encoder": encoder, "input_dropout": 0.0, "branches": branches}
    model = NodeClassifier(
        in_channels=dataset.num_features,
        out_channels=dataset.num_outputs,
        value_bands=SMOOTH,
        **fields,
    )
    model = model.to(F64).eval()
    told = []
    graph = dataset.graphs[0]
    for memory in (None, 1):
        plan = plan_of(model, dataset, dtype=F64, progress=told.append, memory=memory)
        assert type(plan) is (LabelledRows if encoder == "linear" else WholeGraph)
        assert any(text.startswith("Polynomial bands of N+loops") for text in told)
        assert_outputs(plan, model, model(graph.x.to(F64), graph.edge_index))
    assert (tmp_path / "projections").exists() == (encoder == "linear")


@pytest.mark.parametrize(
    ("level", "kind"),
    [("graph", SpectralBatches), ("pooling", PreparedSet)],
    ids=["graph", "pooling"],
)
def test_polynomial_bands_of_many_graphs(level, kind):
    dataset = graph_data()
    sizes = {"in_channels": dataset.num_features, "out_channels": dataset.num_outputs}
    model = GraphClassifier(**sizes, level=level, value_bands=SMOOTH).to(F64).eval()
    told = []
    plan = plan_of(model, dataset, cache=False, dtype=F64, progress=told.append)
    assert isinstance(plan, kind)
    assert any(text.startswith("Polynomial bands of") for text in told)
    batch = Batch.from_data_list(list(dataset.graphs))
    assert_outputs(plan, model, model(batch.x.to(F64), batch.edge_index, batch=batch.batch))
