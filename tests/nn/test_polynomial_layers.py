"""Layers and models take polynomial bands where they take exact ones."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from nlsf.errors import ModelError
from nlsf.nn import (
    GraphClassifier,
    GraphNLSF,
    LaplacianAttention,
    NLSFStack,
    NodeClassifier,
    NodeNLSF,
    PoolingNLSF,
)
from nlsf.nn.layers.node import MixingNLSF
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    IntervalBands,
    Lens,
    PolynomialBands,
    laplacian,
    partial_eigh,
)
from nlsf.testing import assert_shift_equivariant
from nlsf.testing.graphs import torus
from nn.layers import MIXED, batch_of, randomised, signal

GRAPH = torus(4, 5)
SHIFT = laplacian(GRAPH, normalization="sym")
SMOOTH = PolynomialBands(DyadicBands(S=4), order=10)
F64 = torch.float64


def attention(score="scalar"):
    exact = NodeNLSF(2, 2, IndexBands(3), normalization=None, hidden=3)
    return LaplacianAttention(exact, NodeNLSF(2, 2, SMOOTH, start="ppr", hidden=3), score)


LAYERS = {
    "diagonal": lambda: NodeNLSF(2, 2, SMOOTH, hidden=3, start="ppr"),
    "bandwise": lambda: NodeNLSF(2, 3, SMOOTH, response="bandwise", hidden=3),
    "full": lambda: NodeNLSF(2, 3, SMOOTH, response="full", hidden=3),
    "lead": lambda: NodeNLSF(
        2, 2, PolynomialBands(DyadicBands(S=4, K=2), 6), complement=False, hidden=3
    ),
    "L_1": lambda: NodeNLSF(2, 2, SMOOTH, norm_p=1.0, hidden=3),
    "attention": attention,
    "attention, spectral": lambda: attention("spectral"),
    "stack": lambda: NLSFStack([NodeNLSF(2, 2, SMOOTH, hidden=3) for _ in range(2)]),
    "mixing": lambda: MixingNLSF(2, 20, SMOOTH, hidden=3),
    "graph": lambda: GraphNLSF(2, 3, SMOOTH, hidden=3),
    "pooling": lambda: PoolingNLSF(2, 3, SMOOTH, hidden_channels=4),
}


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_trains_a_step(name):
    layer = randomised(LAYERS[name]())
    x = signal(GRAPH.num_nodes, 2)
    target = layer(x, GRAPH.edge_index).detach() + 1
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-4)

    def loss():
        return (layer(x, GRAPH.edge_index) - target).square().mean()

    before = loss()
    before.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    optimizer.step()
    assert loss() < before


@pytest.mark.parametrize("name", ["diagonal", "bandwise", "full", "lead", "stack", "mixing"])
def test_filters_commute_with_functional_shifts(name):
    layer = randomised(LAYERS[name]())
    x = signal(GRAPH.num_nodes, 2)
    assert_shift_equivariant(lambda x: layer(x, GRAPH.edge_index), partial_eigh(SHIFT), x)


@pytest.mark.parametrize("name", ["diagonal", "bandwise", "full"])
def test_with_a_high_order_a_layer_has_the_numbers_of_exact_bands(name):
    frequency = partial_eigh(SHIFT).eigenspace_frequencies
    edges = ((frequency[1:] + frequency[:-1]) / 2)[frequency.diff() > 0.2].tolist()
    base = IntervalBands([(0, edges[0]), (edges[0], edges[-1])])
    outputs = []
    for bands in (base, PolynomialBands(base, 300)):
        layer = NodeNLSF(2, 2, bands, response=name, hidden=3, a=0.0)
        outputs.append(randomised(layer)(signal(GRAPH.num_nodes, 2), GRAPH.edge_index))
    torch.testing.assert_close(outputs[0], outputs[1], atol=1e-2, rtol=1e-2)


def test_a_lens_can_be_given_and_must_fit():
    layer = randomised(LAYERS["diagonal"]())
    x = signal(GRAPH.num_nodes, 2)
    P = Lens.of(SHIFT, SMOOTH, complement=False)
    torch.testing.assert_close(layer(x, spectrum=P), layer(x, GRAPH.edge_index))
    with pytest.raises(ModelError, match="order=3"):
        layer(x, spectrum=Lens.of(SHIFT, PolynomialBands(DyadicBands(S=4), 3)))
    with pytest.raises(ModelError, match=r"pass edge_index, or spectrum=Lens\.of"):
        layer(x, spectrum=partial_eigh(SHIFT))


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "mixing"])
def test_a_batch_equals_its_graphs_one_by_one(name):
    layer = randomised(LAYERS[name]())
    batch = batch_of(MIXED)
    found = layer(batch.x, batch.edge_index, batch=batch.batch)
    each = [layer(one.x, one.edge_index) for one in batch.to_data_list()]
    torch.testing.assert_close(found, torch.cat(each), atol=1e-7, rtol=1e-7)


def test_the_lens_of_a_batch_can_be_given():
    layer = randomised(LAYERS["pooling"]())
    batch = batch_of(MIXED)
    shifts = [laplacian(one, normalization="sym") for one in MIXED]
    P = Lens.of(shifts, SMOOTH, complement=False)
    expected = layer(batch.x, batch.edge_index, batch=batch.batch)
    torch.testing.assert_close(layer(batch.x, spectrum=P), expected)


def test_single_precision_and_many_signals():
    layer = LAYERS["diagonal"]()
    x = signal(3, GRAPH.num_nodes, 2).float()
    y = layer(x, GRAPH.edge_index)
    assert y.dtype == torch.float32
    expected = torch.stack([layer(one, GRAPH.edge_index) for one in x])
    torch.testing.assert_close(y, expected)


def classifier(**fields):
    bands = {"index_bands": IndexBands(4), "value_bands": SMOOTH}
    return NodeClassifier(in_channels=6, out_channels=3, hidden_channels=5, **bands, **fields)


@pytest.mark.parametrize("branches", ["attention", "value"])
@pytest.mark.parametrize("place", ["hidden", "scores"])
def test_many_classifiers_in_one_call_train_as_each_alone(branches, place):
    torch.manual_seed(0)
    models = [classifier(branches=branches, place=place).double().eval() for _ in range(3)]
    for model in models:
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.3)
    x = signal(GRAPH.num_nodes, 6)
    params, buffers = stack_module_state(models)

    def loss(params, buffers):
        y = functional_call(models[0], (params, buffers), (x, GRAPH.edge_index))
        return y.square().mean()

    found = vmap(loss)(params, buffers)
    found.sum().backward()
    for i, model in enumerate(models):
        alone = model(x, GRAPH.edge_index).square().mean()
        alone.backward()
        torch.testing.assert_close(found[i], alone)
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(params[name].grad[i], parameter.grad)


@pytest.mark.parametrize("branches", ["attention", "value", "index"])
@pytest.mark.parametrize("place", ["scores", "hidden"])
def test_the_fast_path_of_nodes(branches, place):
    model = classifier(encoder="linear", input_dropout=0.0, branches=branches, place=place).eval()
    assert model.can_prepare
    x, rows = torch.randn(GRAPH.num_nodes, 6), torch.tensor([4, 0, 7])
    prepared = model.prepare(rows, x, GRAPH.edge_index)
    plain = model(x, GRAPH.edge_index)[rows]
    torch.testing.assert_close(model.forward_rows(prepared), plain, atol=1e-5, rtol=1e-4)


def test_the_fast_path_of_pooling():
    sizes = {"in_channels": 2, "out_channels": 3, "index_bands": IndexBands(4)}
    model = randomised(GraphClassifier(**sizes, level="pooling", value_bands=SMOOTH)).eval()
    batch = batch_of(MIXED)
    graph = {"edge_index": batch.edge_index, "batch": batch.batch}
    prepared = model.prepare(batch.x, **graph)
    index = torch.arange(len(MIXED))
    found = model.forward_prepared([one[index] for one in prepared])
    torch.testing.assert_close(found, model(batch.x, **graph), atol=1e-7, rtol=1e-7)


def test_the_fast_path_of_graphs_is_closed_and_says_why():
    graphs = GraphClassifier(
        in_channels=2, out_channels=2, level="graph", branches="value", value_bands=SMOOTH
    )
    with pytest.raises(ModelError, match="not polynomial"):
        graphs.prepare(torch.randn(4, GRAPH.num_nodes, 2), GRAPH.edge_index)
