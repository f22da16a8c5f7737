"""What every layer shares: batches, gradients, copies, compilers."""

import copy
import pickle

import pytest
import torch
from torch.func import functional_call

from nlsf.errors import ModelError, SignalError
from nlsf.nn import GraphNLSF, NodeNLSF
from nlsf.nn.layers.spectral_layer import SpectralLayer
from nlsf.spectral import DyadicBands, IndexBands, Lens
from nlsf.testing.graphs import path, ring, torus, weighted
from nn.layers import (
    F64,
    LAYERS,
    MIXED,
    NODE_LEVEL,
    batch_of,
    layer_of,
    randomised,
    signal,
    spectrum_of,
    weighted_graphs,
)

every_layer = pytest.mark.parametrize("name", LAYERS)


def call(layer, data, batch=True):
    index = data.batch if batch else None
    return layer(data.x, data.edge_index, data.edge_weight, index)


@every_layer
@pytest.mark.parametrize("graphs", [MIXED, weighted_graphs()], ids=["mixed", "weighted"])
def test_a_batch_is_its_graphs_one_by_one(name, graphs):
    layer = layer_of(name)
    batch = batch_of(graphs)
    one_by_one = torch.cat([call(layer, data, batch=False) for data in batch.to_data_list()])
    found = call(layer, batch)
    torch.testing.assert_close(found, one_by_one, atol=1e-9, rtol=1e-9)
    assert found.shape[0] == (batch.num_nodes if name in NODE_LEVEL else len(graphs))


@every_layer
def test_a_list_of_spectra_is_a_batch_too(name):
    """Stacks normalise each graph by itself, also when no ``batch`` says which is which."""
    layer = layer_of(name)
    batch = batch_of(MIXED)
    batch.x[:20] *= 50
    spectra = {n: [spectrum_of(g, n) for g in MIXED] for n in (None, "sym")}
    if name == "stack of attention":
        # Its layers differ in their operators, so that no single pair of spectra fits them all.
        layer.layers[1].first.normalization = None
    if "attention" in name:
        given = spectra[None], spectra["sym"]
        one_by_one = zip(*given, strict=True)
    else:
        given = spectra[getattr(layer, "normalization", "sym")]
        one_by_one = given
    items = batch.to_data_list()
    expected = [layer(d.x, spectrum=s) for d, s in zip(items, one_by_one, strict=True)]
    found = layer(batch.x, spectrum=given)
    torch.testing.assert_close(found, torch.cat(expected), atol=1e-9, rtol=1e-9)


@every_layer
def test_many_signals_on_one_graph_are_signals_one_by_one(name):
    layer = layer_of(name)
    g = weighted(8)
    x = signal(2, 3, 8, 2)
    many = layer(x, g.edge_index, g.edge_weight)
    for i in range(2):
        for j in range(3):
            one = layer(x[i, j], g.edge_index, g.edge_weight)
            one = one if name in NODE_LEVEL else one.squeeze(0)
            torch.testing.assert_close(many[i, j], one, atol=1e-9, rtol=1e-9)


@every_layer
def test_gradients(name):
    layer = layer_of(name)
    g = weighted(8)
    names = [n for n, _ in layer.named_parameters()]
    x = signal(8, 2).requires_grad_()

    def f(x, *parameters):
        given = dict(zip(names, parameters, strict=True))
        return functional_call(layer, given, (x, g.edge_index, g.edge_weight))

    inputs = (x, *(p.detach().clone().requires_grad_() for p in layer.parameters()))
    assert torch.autograd.gradcheck(f, inputs, fast_mode=True)


@every_layer
@pytest.mark.parametrize("graphs", [[torus(4, 5)], MIXED], ids=["one", "batch"])
def test_the_gradient_reaches_every_parameter_and_the_signal(name, graphs):
    layer = layer_of(name)
    batch = batch_of(graphs)
    batch.x.requires_grad_()
    y = call(layer, batch)
    (y * signal(*y.shape, seed=9)).sum().backward()
    for parameter_name, parameter in layer.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.any(), parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
    assert batch.x.grad.any(-1).all()


@every_layer
def test_a_zero_signal_has_finite_outputs_and_gradients(name):
    layer = layer_of(name)
    g = torus(4, 5)
    x = torch.zeros(20, 2, dtype=F64, requires_grad=True)
    y = layer(x, g.edge_index)
    y.sum().backward()
    assert y.isfinite().all()
    assert x.grad.isfinite().all()
    if name in NODE_LEVEL:
        assert not y.any()


@every_layer
def test_no_graphs_give_no_outputs(name):
    layer = LAYERS[name]()
    none = torch.zeros(0, dtype=torch.int64)
    y = layer(torch.zeros(0, 2), none.reshape(1, 0).repeat(2, 1), None, none)
    assert y.shape[0] == 0
    assert y.ndim == 2


def test_no_graphs_give_no_outputs_in_double_precision():
    none = torch.zeros(0, dtype=torch.int64)
    layer = layer_of("node")
    layer(torch.zeros(0, 2, dtype=F64), none.reshape(1, 0).repeat(2, 1), None, none)


@every_layer
def test_a_graph_without_nodes_and_one_with_a_single_node(name):
    layer = layer_of(name)
    none = torch.zeros(2, 0, dtype=torch.int64)
    for n in (0, 1):
        y = layer(signal(n, 2), none)
        assert y.shape[0] == (n if name in NODE_LEVEL else 1)
        assert y.isfinite().all()


@every_layer
def test_a_graph_without_nodes_inside_a_batch(name):
    """PyTorch Geometric numbers it, and no node has its number."""
    layer = layer_of(name)
    edges = torch.cat([path(3).edge_index, path(2).edge_index + 3], dim=1)
    x = signal(5, 2)
    y = layer(x, edges, None, torch.tensor([0, 0, 0, 2, 2]))
    last = layer(x[3:], path(2).edge_index)
    assert y.isfinite().all()
    torch.testing.assert_close(y[-len(last) :], last, atol=1e-9, rtol=1e-9)
    if name not in NODE_LEVEL:
        torch.testing.assert_close(y[1:2], layer(x[:0], edges[:, :0]), atol=1e-9, rtol=1e-9)


@every_layer
def test_weights_load_across_graphs_of_any_size(name):
    trained, other = layer_of(name, 1), layer_of(name, 2)
    small, large = path(4), ring(23)
    before = {key: value.shape for key, value in trained.state_dict().items()}
    trained(signal(23, 2), large.edge_index)
    assert {key: value.shape for key, value in trained.state_dict().items()} == before
    other.load_state_dict(trained.state_dict())
    for g in (small, large):
        x = signal(g.num_nodes, 2)
        assert torch.equal(other(x, g.edge_index), trained(x, g.edge_index))


@every_layer
def test_copies_and_pickles_are_the_same_layer(name):
    layer = layer_of(name)
    g = torus(4, 5)
    x = signal(20, 2)
    expected = layer(x, g.edge_index)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x, g.edge_index), expected)
        assert repr(twin) == repr(layer)
        with torch.no_grad():
            next(twin.parameters()).add_(1.0)
        assert torch.equal(layer(x, g.edge_index), expected), "a copy shares nothing"


@every_layer
def test_a_reset_layer_is_a_new_layer(name):
    torch.manual_seed(5)
    new = LAYERS[name]()
    used = LAYERS[name]()
    randomised(used).float()
    torch.manual_seed(6)
    used.reset_parameters()
    drawn = 0
    for (key, a), b in zip(new.named_parameters(), used.parameters(), strict=True):
        # A constant start (zeros of a last layer, ones of a norm) returns; the rest is drawn anew.
        constant = bool((a == a.flatten()[0]).all()) and (a.numel() > 1 or a.item() in (0, 1))
        assert torch.equal(a, b) if constant else not torch.equal(a, b), key
        assert b.abs().max() <= 1.0, key
        drawn += not constant
    assert drawn


@every_layer
def test_single_precision_is_close_to_double(name):
    layer = layer_of(name)
    batch = batch_of(MIXED)
    exact = call(layer, batch)
    batch.x = batch.x.float()
    rounded = call(layer.float(), batch)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.double(), exact, atol=1e-2, rtol=1e-2)


@every_layer
@pytest.mark.parametrize("graphs", [[torus(4, 5)], MIXED], ids=["one", "batch"])
def test_autocast_runs_and_is_close(name, graphs):
    """The decomposition stays in the precision of the signal; networks and products do not."""
    layer = layer_of(name, 3).float()
    batch = batch_of(graphs)
    batch.x = batch.x.float().requires_grad_()
    exact = call(layer, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = call(layer, batch)
    half.float().sum().backward()
    assert batch.x.grad.isfinite().all()
    assert (half.float() - exact).norm() <= 0.03 * exact.norm()


# Where the graph breaks, at the eigensolver, the tracer looks at gradients that it does not use.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", ["pooling", "attention"])
def test_a_compiled_layer_gives_the_same_numbers(name):
    """Without generating code, which takes a minute for what tracing can get wrong already."""
    torch._dynamo.reset()
    layer = layer_of(name)
    compiled = torch.compile(layer, backend="eager")
    g = torus(4, 5)
    for seed in (0, 1):
        x = signal(20, 2, seed=seed)
        torch.testing.assert_close(compiled(x, g.edge_index), layer(x, g.edge_index))


@every_layer
def test_evaluating_before_training_does_no_harm(name):
    """What inference mode computes and remembers must serve a training step later."""
    layer = layer_of(name)
    batch = batch_of([ring(11), path(6)])
    for with_batch in (True, False):
        with torch.inference_mode():
            copied = batch.clone()
            seen = call(layer, copied, with_batch)
            call(layer, batch, with_batch)
        trained = call(layer, batch, with_batch)
        trained.sum().backward()
        torch.testing.assert_close(seen.clone(), trained.detach(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("x", [torch.ones(20, 2, dtype=torch.int64), torch.ones(20)], ids=str)
def test_signals_that_no_layer_can_filter_are_refused(x):
    g = torus(4, 5)
    for layer in (NodeNLSF(2, 2), GraphNLSF(2, 2)):
        with pytest.raises(SignalError, match="floating point"):
            layer(x, g.edge_index)
    with pytest.raises(SignalError, match=r"\(\.\.\., 20, channels\)"):
        NodeNLSF(2, 2)(torch.ones(3, 2), spectrum=spectrum_of(g))


def test_the_norms_of_a_layer_are_those_of_its_bands():
    layer = SpectralLayer()
    assert layer.bands == DyadicBands()
    assert layer.n_bands == 6
    assert SpectralLayer(complement=True).n_bands == 7
    assert SpectralLayer(IndexBands(5)).n_bands == 6
    assert SpectralLayer(DyadicBands(S=6, K=4)).n_bands == 5
    assert SpectralLayer(IndexBands(5), complement=False).n_bands == 5
    x = signal(20, 2)
    norms = layer.norms(layer.view(x, torus(4, 5).edge_index))
    assert norms.shape == (6, 2)
    torch.testing.assert_close(norms.square().sum(0), x.square().sum(0))


def test_the_graph_of_each_node():
    spectra = [spectrum_of(g) for g in (path(2), path(3))]
    assert Lens.of(spectra[0], DyadicBands()).graph_of_nodes is None
    assert Lens.of(spectra, DyadicBands()).graph_of_nodes.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (NodeNLSF(2, 2, a=1.0, complement=True), NodeNLSF(2, 2), r"complement=True, a=1\.0"),
        (NodeNLSF(2, 2, IndexBands(3), a=1.0), NodeNLSF(2, 2, IndexBands(3)), r"with a=1\.0"),
        (GraphNLSF(2, 2, complement=True), GraphNLSF(2, 2), "with complement=True"),
    ],
)
def test_weights_of_version_0_1_are_not_taken_for_those_of_other_defaults(old, new, says):
    weights = old.state_dict()
    weights._metadata[""]["version"] = 1  # as version 0.1 wrote it
    with pytest.raises(ModelError, match=says):
        new.load_state_dict(weights)
    old.load_state_dict(weights)
    new.load_state_dict(new.state_dict())
    new.load_state_dict(dict(new.state_dict()))


def test_the_size_of_an_output_does_not_depend_on_the_number_of_nodes():
    """By default the layer starts as the linear filter that it names."""
    for n in (20, 200):
        x = signal(n, 3)
        y = NodeNLSF(3, 3).double()(x, ring(n).edge_index)
        torch.testing.assert_close(y, x, rtol=1e-5, atol=0)
