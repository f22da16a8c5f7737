"""The model for many signals on one graph."""

import numpy as np
import pytest
import torch
from torch.func import functional_call, vmap

from nlsf.data.readers.images import pixel_grid
from nlsf.errors import ModelError, SignalError
from nlsf.nn.models import SignalClassifier, signal_classifier
from nlsf.nn.models.signal_classifier import Pyramid, halved
from nlsf.spectral import UniformBands, laplacian
from nlsf.store.memory import Memory
from nlsf.testing.graphs import path, star, weighted
from nn.layers import signal

GRID = pixel_grid(4, 5, 0.1)
SMALL = {"in_channels": 1, "out_channels": 3, "num_nodes": 20, "bands": UniformBands(3)}


def model_of(seed=0, **options):
    """A model whose responses are not zero."""
    torch.manual_seed(seed)
    model = SignalClassifier(**{**SMALL, "widths": (5, 6), "head": (7,), **options}).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def pyramid(model):
    return model.pyramid(GRID.edge_index, GRID.edge_weight, cache=False, dtype=torch.float64)


def test_a_batch_is_its_signals_one_by_one():
    model = model_of().eval()
    P, x = pyramid(model), signal(2, 3, 20, 1)
    each = [torch.stack([model(one, spectrum=P) for one in some]) for some in x]
    torch.testing.assert_close(model(x, spectrum=P), torch.stack(each))


def test_a_graph_and_its_pyramid_give_the_same():
    model = model_of().eval()
    x = signal(4, 20, 1)
    given = model(x, GRID.edge_index, GRID.edge_weight)
    torch.testing.assert_close(given, model(x, spectrum=pyramid(model)))
    with pytest.raises(ModelError, match="needs the graph"):
        model(x)


def test_the_pyramid_of_a_graph_is_built_once_and_kept_in_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path))
    monkeypatch.setattr(signal_classifier, "_pyramids", Memory())
    graphs = {"grid": GRID, "other": pixel_grid(5, 4, 0.1)}
    models = {halvings: model_of(halvings=halvings).eval() for halvings in (1, 2)}
    x, built = signal(4, 20, 1), []
    calls = [("grid", 1), ("grid", 1), ("other", 1), ("grid", 1), ("grid", 2), ("other", 1)]
    wanted = {}
    for name, halvings in set(calls):
        edges, weight = graphs[name].edge_index, graphs[name].edge_weight
        model = models[halvings]
        P = model.pyramid(edges, weight, cache=False, dtype=torch.float64)
        wanted[name, halvings] = model(x, spectrum=P)
    of = Pyramid.of
    monkeypatch.setattr(Pyramid, "of", lambda *a, **k: built.append(1) or of(*a, **k))
    for name, halvings in calls:
        edges, weight = graphs[name].edge_index.clone(), graphs[name].edge_weight.clone()
        found = models[halvings](x, edges, weight)
        torch.testing.assert_close(found, wanted[name, halvings])
    assert len(built) == len(set(calls))
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("nodes", [19, 21])
def test_a_signal_has_one_row_a_node(nodes):
    model = model_of().eval()
    for graph in ({"edge_index": GRID.edge_index}, {"spectrum": pyramid(model)}):
        with pytest.raises(SignalError, match=rf"20, channels\), not \(4, {nodes}, 1\)"):
            model(signal(4, nodes, 1), **graph)


@pytest.mark.parametrize("options", [{}, {"response": "constant"}, {"standardize": False}])
def test_every_parameter_has_a_gradient(options):
    model = model_of(dropout=0.0, **options)
    model(signal(6, 20, 1), spectrum=pyramid(model)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert bool((parameter.grad != 0).any()), name


def test_together_is_alone():
    models = [model_of(seed).eval() for seed in range(3)]
    P, x = pyramid(models[0]), signal(4, 20, 1)
    alone = torch.stack([model(x, spectrum=P) for model in models])
    states = [model.state_dict() for model in models]
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    together = vmap(lambda state: functional_call(models[0], state, (x,), {"spectrum": P}))(stacked)
    torch.testing.assert_close(together, alone)


def test_it_sees_where_things_are():
    """A signal and its mirror image have the same invariants, and different outputs."""
    model = model_of().eval()
    x = signal(20, 1)
    mirrored = x.reshape(4, 5, 1).flip(1).reshape(20, 1)
    clean = pixel_grid(4, 5)
    assert not torch.allclose(model(x, clean.edge_index), model(mirrored, clean.edge_index))


def test_dropout_acts_in_training_only():
    model = model_of(dropout=0.5, standardize=False)
    P, x = pyramid(model), signal(4, 20, 1)
    assert not torch.equal(model(x, spectrum=P), model(x, spectrum=P))
    model.eval()
    assert torch.equal(model(x, spectrum=P), model(x, spectrum=P))


def test_reset_draws_all_parameters_anew():
    model = SignalClassifier(**SMALL, widths=(5, 6))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.reset_parameters()
    assert all(bool((parameter != 7).all()) for parameter in model.parameters())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"widths": ()}, "at least one filter"),
        ({"halvings": 0}, "halvings must be 1 to 16, not 0"),
        ({"halvings": 17}, "halvings must be 1 to 16"),
    ],
)
def test_what_no_model_can_be_is_refused(options, says):
    with pytest.raises(ModelError, match=says):
        SignalClassifier(**{**SMALL, **options})


BANDS = UniformBands(3)


def pyramid_of_coarsening(graph, levels=2, halvings=1):
    return Pyramid.of(
        graph.edge_index,
        graph.edge_weight,
        graph.num_nodes,
        bands=BANDS,
        levels=levels,
        halvings=halvings,
        cache=False,
        dtype=torch.float64,
    )


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_grid_is_cut_into_squares(noise):
    P = pyramid_of_coarsening(pixel_grid(8, 12, noise), levels=3, halvings=2)
    row, column = P.order // 12, P.order % 12
    for size, side in ((4, 2), (16, 4)):
        for place in (row, column):
            blocks = place.unflatten(0, (-1, size)) // side
            assert bool((blocks == blocks[:, :1]).all())
    # Every square has its nodes in the same order, so that a map of them sees directions.
    assert row.unflatten(0, (-1, 4)).remainder(2).unique(dim=0).tolist() == [[0, 0, 1, 1]]
    assert column.unflatten(0, (-1, 4)).remainder(2).unique(dim=0).tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize("graph", [path(7), path(8), star(6), weighted(8), path(1)], ids=str)
@pytest.mark.parametrize("halvings", [1, 2])
def test_any_graph_has_as_many_nodes_as_halving_leaves(graph, halvings):
    P = pyramid_of_coarsening(graph, levels=3, halvings=halvings)
    assert sorted(P.order.tolist()) == list(range(graph.num_nodes))
    sizes = [lens.num_nodes for lens in P.lenses]
    assert sizes == [halved(graph.num_nodes, level * halvings) for level in range(3)]


@pytest.mark.parametrize("graph", [path(7), weighted(8), star(6)], ids=str)
def test_an_edge_of_a_coarse_graph_weighs_what_is_between_its_clusters(graph):
    """Seen by the quadratic form of a signal that is constant on clusters, with the degrees."""
    P = pyramid_of_coarsening(graph)
    L = laplacian(graph.edge_index, graph.edge_weight, graph.num_nodes).to_dense()
    L = torch.as_tensor(L)[P.order][:, P.order]
    n = graph.num_nodes
    S = torch.zeros(n, halved(n, 1), dtype=torch.float64)
    S[torch.arange(n), torch.arange(n) // 2] = 1
    coarse = S.T @ L @ S
    degree = coarse.diagonal().clamp(min=1e-300)
    scale = torch.where(coarse.diagonal() > 0, degree.rsqrt(), 0.0)
    expected = np.sort(np.linalg.eigvalsh((scale[:, None] * coarse * scale).numpy()))
    found = np.sort(P.lenses[1].spectrum.values.numpy())
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_clusters_stand_side_by_side_and_what_is_missing_is_zero():
    P = pyramid_of_coarsening(path(5))
    x = torch.arange(10.0).reshape(5, 2) + 1
    expected = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]]
    assert P.gather(x).tolist() == expected
    assert P.gather(x.expand(3, 5, 2)).tolist() == [expected] * 3
