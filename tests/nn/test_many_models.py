"""Many models in one `torch.func.vmap` have the numbers that they have one by one."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch_geometric.data import Batch, Data

from cases import GRAPHS
from nlsf.nn import GraphClassifier, LaplacianAttention, NodeClassifier
from nlsf.nn.dropout import draw_masks, dropout_shapes
from nlsf.spectral import DyadicBands, IndexBands, Lens, SparseSignal, laplacian, partial_eigh
from nlsf.spectral.kernels import dense as products
from nlsf.spectral.lens import FixedNorms
from nlsf.testing.graphs import torus

F64 = torch.float64
MODELS = 3
GRAPH = torus(4, 5)
BANDS = {"index_bands": IndexBands(4), "value_bands": DyadicBands(0.5, 4, 3)}
CHOSEN = torch.tensor([[0, 1, 7, 2], [7, 3, 4, 1], [5, 2, 6, 0]])  # examples of each model
EXACT = {"rtol": 1e-10, "atol": 1e-10}


class Applied(nn.Module):
    """A model and the way to call it, so that parameters can be swapped for any of its methods."""

    def __init__(self, model, call):
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs):
        return self.call(self.model, *inputs)


def spectrum(branches, dtype=F64):
    pair = [
        Lens.of(partial_eigh(laplacian(GRAPH, normalization=n)).to(dtype=dtype), b)
        for n, b in ((None, BANDS["index_bands"]), ("sym", BANDS["value_bands"]))
    ]
    return {"attention": tuple(pair), "index": pair[0], "value": pair[1]}[branches]


def random(*shape, dtype=F64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=F64).to(dtype)


def models_of(kind, dtype=F64, **fields):
    torch.manual_seed(0)
    made = [
        kind(in_channels=6, out_channels=3, hidden_channels=5, **BANDS, **fields)
        for _ in range(MODELS)
    ]
    for model in made:
        for parameter in model.parameters():  # away from the zeros of the start
            nn.init.normal_(parameter, std=0.3)
        model.to(dtype)
    return made


def assert_same_at(index, models, prepared):
    """The same at prepared graphs, each model at its own."""
    first, second = (p[index] for p in prepared)

    def call(model, rows, place, others, other_place):
        pair = (
            replace(first, rows=rows, place=place),
            replace(second, rows=others, place=other_place),
        )
        return model.forward_prepared(pair)

    assert_same(models, call, first.rows, first.place, second.rows, second.place)


def assert_same(models, call, *batched, training=True, tolerance=EXACT):
    """Outputs, gradients and running statistics, all at once and one at a time.

    ``call`` is called with a model and its member of every tensor of ``batched``.
    """
    applied = [Applied(model, call).train(training) for model in models]
    shapes = dropout_shapes(applied[0], lambda: applied[0](*(b[0] for b in batched)))
    generators = [torch.Generator().manual_seed(seed) for seed in range(MODELS)]
    masks = [draw_masks(a, shapes, g) for a, g in zip(applied, generators, strict=True)]
    params, buffers = stack_module_state(applied)
    params = {name: value.detach().requires_grad_() for name, value in params.items()}
    stacked = {name: torch.stack([m[name] for m in masks]) for name in masks[0]}

    def one(state, *inputs):
        return functional_call(applied[0], state, inputs)

    out = vmap(one)({**params, **buffers, **stacked}, *batched)
    grads = torch.autograd.grad(out.sin().sum(), list(params.values()))
    for m, each in enumerate(applied):
        alone = functional_call(each, masks[m], tuple(b[m] for b in batched))
        torch.testing.assert_close(out[m], alone, **tolerance)
        wanted = torch.autograd.grad(alone.sin().sum(), list(each.parameters()))
        for name, found, expected in zip(params, grads, wanted, strict=True):
            note = f"{name} of model {m}: {{}}".format
            torch.testing.assert_close(found[m], expected, **tolerance, msg=note)
        for name, value in each.named_buffers():
            torch.testing.assert_close(buffers[name][m], value, **tolerance)
    assert len({tuple(o.flatten().tolist()) for o in out}) == MODELS
    return shapes


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("encoder", ["mlp", "linear"])
@pytest.mark.parametrize("place", ["hidden", "scores"])
@pytest.mark.parametrize("form", [torch.clone, SparseSignal.of])
def test_node_models(branches, encoder, place, form):
    made = models_of(
        NodeClassifier, branches=branches, encoder=encoder, place=place, psi_dropout=0.2
    )
    x, graph = form(random(20, 6)), spectrum(branches)
    shapes = assert_same(made, lambda model: model(x, spectrum=graph))
    names = {"model.input_dropout", "model.encoder.2", "model.output_dropout"}
    names -= {"model.encoder.2"} if encoder == "linear" else set()
    names -= {"model.output_dropout"} if place == "scores" else set()
    assert {name for name in shapes if "response" not in name} == names
    assert any("response" in name for name in shapes)
    assert_same(made, lambda model: model(x, spectrum=graph), training=False)


@pytest.mark.parametrize("score", ["scalar", "spectral"])
@pytest.mark.parametrize("response", ["diagonal", "bandwise", "full"])
@pytest.mark.parametrize("sharing", ["shared", "channelwise", "mixing"])
def test_every_response_and_score(score, response, sharing):
    made = models_of(NodeClassifier, score=score, response=response, sharing=sharing, a=0.5)
    x, graph = random(20, 6), spectrum("attention")
    assert_same(made, lambda model: model(x, spectrum=graph))


@pytest.mark.parametrize("response", ["diagonal", "full"])
@pytest.mark.parametrize("form", [torch.clone, SparseSignal.of])
def test_products_with_large_matrices(monkeypatch, response, form):
    monkeypatch.setattr(products, "_LARGE", 1)
    made = models_of(NodeClassifier, response=response)
    x, graph = form(random(20, 6)), spectrum("attention")
    assert_same(made, lambda model: model(x, spectrum=graph))
    pooled = models_of(GraphClassifier, level="pooling", response=response)
    signals, index = random(9, 20, 6), torch.tensor([[0, 1, 7], [7, 3, 4], [5, 2, 6]])
    assert_same(pooled, lambda model, rows: model(signals[rows], spectrum=graph), index)


def test_layers_in_a_row():
    made = models_of(NodeClassifier, num_layers=3, residual=True, place="hidden")
    x, graph = random(20, 6), spectrum("attention")
    assert_same(made, lambda model: model(x, spectrum=graph))


def test_an_edge_index_serves_as_well():
    made, x = models_of(NodeClassifier), random(20, 6)
    assert_same(made, lambda model: model(x, GRAPH.edge_index))


def test_in_single_precision():
    made = models_of(NodeClassifier, torch.float32, place="hidden")
    x, graph = random(20, 6, dtype=torch.float32), spectrum("attention", torch.float32)
    tolerance = {"rtol": 1e-3, "atol": 1e-5}
    assert_same(made, lambda model: model(x, spectrum=graph), tolerance=tolerance)


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("encoder", ["linear", "none"])
@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_rows_of_each_model_its_own(branches, encoder, score):
    made = models_of(
        NodeClassifier,
        branches=branches,
        encoder=encoder,
        place="hidden",
        score=score,
        input_dropout=0.0,
    )
    x, rows = random(20, 6), torch.tensor([2, 3, 5, 7, 11, 13, 17, 19])
    prepared = made[0].prepare(rows, x, spectrum=spectrum(branches))

    def call(model, index):
        return model.forward_rows(tuple(p[index] for p in prepared))

    index = torch.tensor([[0, 1, 7], [7, 3, 4], [5, 5, 6]])
    assert_same(made, call, index)
    assert_same(made, lambda model: model.forward_rows(prepared))
    made[0].eval()
    plain = made[0](x, spectrum=spectrum(branches))
    torch.testing.assert_close(call(made[0], index[1]), plain[rows[index[1]]], **EXACT)


@pytest.mark.parametrize("score", ["scalar", "spectral"])
@pytest.mark.parametrize("channels", [None, 5])
def test_prepared_graphs_of_each_model_its_own(score, channels):
    made = models_of(GraphClassifier, score=score, channels=channels, dropout=0.3)
    batch = Batch.from_data_list(
        [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in GRAPHS.values()]
    )
    prepared = made[0].prepare(random(batch.num_nodes, 6), batch.edge_index, None, batch.batch)
    assert_same_at(CHOSEN, made, prepared)
    shapes = assert_same(made, lambda model: model.forward_prepared(prepared))
    assert sum("head" in name for name in shapes) == 3


@pytest.mark.parametrize("readout", ["mean", "sum", "max", "lp", "rms"])
def test_batches_of_graphs_by_pooling(readout):
    graphs = list(GRAPHS.values())[:5]
    nodes = sum(g.num_nodes for g in graphs)
    pair = []
    for normalization, bands in ((None, BANDS["index_bands"]), ("sym", BANDS["value_bands"])):
        spectra = [
            partial_eigh(
                laplacian(g.edge_index, num_nodes=g.num_nodes, normalization=normalization)
            )
            for g in graphs
        ]
        pair.append(Lens.of(spectra, bands))
    made = models_of(GraphClassifier, level="pooling", readout=readout, p=3.0, dropout=0.3)
    x = random(nodes, 6)
    assert_same(made, lambda model: model(x, spectrum=pair))


@pytest.mark.parametrize("level", ["graph", "pooling"])
@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_signals_on_one_graph(level, branches, score):
    made = models_of(GraphClassifier, level=level, branches=branches, score=score, dropout=0.3)
    x, graph = random(9, 20, 6), spectrum(branches)
    assert_same(made, lambda model: model(x, spectrum=graph))
    assert_same(made, lambda model, rows: model(x[rows], spectrum=graph), CHOSEN)


def test_prepared_signals_of_each_model_its_own():
    made = models_of(GraphClassifier)
    prepared = made[0].prepare(random(9, 20, 6), spectrum=spectrum("attention"))
    assert all(isinstance(p, FixedNorms) for p in prepared)
    assert_same_at(CHOSEN, made, prepared)


def test_a_signal_without_remainder_is_exact_among_others():
    """The norm of the implicit band must not be the difference of two equal energies."""
    lens = Lens.of(partial_eigh(laplacian(GRAPH, normalization=None)), IndexBands(4))
    x = random(3, 20, 2)
    x[1] = 1.0  # in the kernel of L: nothing is left for the implicit band

    def norms(signal):
        return lens(signal, check_finite=False).norms()

    found = vmap(norms)(x)
    torch.testing.assert_close(found, torch.stack([norms(s) for s in x]))
    assert (found[1, lens.rest] < 1e-13).all()
    nested = vmap(vmap(norms))(x.expand(2, 3, 20, 2))
    torch.testing.assert_close(nested[1], found)


def test_attention_keeps_nothing_of_a_batch_of_models():
    made = models_of(NodeClassifier, input_dropout=0.0, dropout=0.0)
    x, graph = random(20, 6), spectrum("attention")
    (layer,) = (part for part in made[0].modules() if isinstance(part, LaplacianAttention))
    made[0](x, spectrum=graph)
    assert layer.alpha.shape == ()
    params, _ = stack_module_state(made)
    vmap(lambda p: functional_call(made[0], p, (x,), {"spectrum": graph}))(params)
    assert layer.alpha is None
