"""Proposition 1: what the layers promise about functional shifts, and what breaks it."""

import functools
import itertools

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from nlsf.nn import (
    GraphNLSF,
    InvariantNorm,
    LaplacianAttention,
    NLSFStack,
    NodeNLSF,
    PoolingNLSF,
    Readout,
    Start,
)
from nlsf.spectral import (
    AtomBands,
    DyadicBands,
    FunctionalShift,
    IndexBands,
    Lens,
    ShiftOperator,
    UniformBands,
    equivariance_error,
    laplacian,
    partial_eigh,
    sample_shift,
)
from nlsf.testing import (
    assert_basis_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    assert_shift_equivariant,
    assert_shift_invariant,
)
from nlsf.testing.graphs import disjoint, star, torus, weighted
from nn.layers import LAYERS, NODE_LEVEL, layer_of, randomised, signal, spectrum_of
from pairs import every_pair

GRAPHS = {
    "torus": torus(4, 5),
    "weighted": weighted(8),
    "components": disjoint(torus(3, 3), 2),
    "star": star(6),
}
BANDS = {
    "index": IndexBands(4),
    "dyadic": DyadicBands(r=0.6, S=5, K=4),
    "uniform": UniformBands(S=5),
    "atoms": AtomBands(UniformBands(S=4, K=3), atoms=2, share=0.1),
}
RESPONSES = {
    "full": {"response": "full"},
    **{
        f"{response}, {sharing}, {mode}": {"response": response, "sharing": sharing, "mode": mode}
        for response in ("diagonal", "bandwise")
        for sharing in ("shared", "channelwise", "mixing")
        for mode in ("multiplicative", "additive")
    },
}
STARTS = ["all-pass", "heat", "ppr", "high-pass", "walk", "random"]
every_bands = pytest.mark.parametrize("bands", BANDS)
every_graph = pytest.mark.parametrize("graph", GRAPHS)


@functools.cache
def lens(graph, bands, normalization="sym", complement=True):
    spectrum = spectrum_of(GRAPHS[graph], normalization, BANDS[bands])
    return Lens.of(spectrum, BANDS[bands], complement=complement)


@every_bands
@pytest.mark.parametrize("response", RESPONSES)
def test_node_level_filters_commute_with_functional_shifts(bands, response):
    """Prop. 1. Each case takes a seventh of the other options' combinations; graphs take turns.

    Every seventh of them has every value of every option, and fourteen cases in a row have all,
    with either operator.
    """
    case = list(RESPONSES).index(response) + list(BANDS).index(bands)
    normalization = (None, "sym")[case % 2]
    spaces = {
        (graph, complement): lens(graph, bands, normalization, complement)
        for graph in GRAPHS
        for complement in (True, False)
    }
    graphs = itertools.cycle(GRAPHS)
    options = list(itertools.product((True, False), (True, False), (0.0, 0.5, 1.0), STARTS))
    for seed, (relative, complement, a, start) in enumerate(options[case % 7 :: 7]):
        P = spaces[next(graphs), complement]
        layer = NodeNLSF(
            3,
            2 + seed % 2,
            BANDS[bands],
            normalization,
            complement=complement,
            a=a,
            start=start,
            relative=relative,
            hidden=4,
            **RESPONSES[response],
        )
        layer = randomised(layer, seed)
        for space in (P, P.spectrum):
            assert_shift_equivariant(
                lambda x, layer=layer, P=P: layer(x, spectrum=P), space, samples=1, seed=seed
            )


@every_pair(bands=list(BANDS), normalization={"L": None, "N": "sym"}, graph=list(GRAPHS))
def test_graph_level_filters_ignore_functional_shifts(bands, normalization, graph):
    for complement, channels, normalize in itertools.product((True, False), (None, 5), (True, 0)):
        P = lens(graph, bands, normalization, complement)
        layer = GraphNLSF(
            3,
            2,
            BANDS[bands],
            normalization,
            complement,
            norm_per_node=bool(normalize),
            channels=channels,
            hidden=8,
        )
        layer = randomised(layer)
        for space in (P, P.spectrum):
            assert_shift_invariant(lambda x, P=P, f=layer: f(x, spectrum=P), space)


READOUTS = {"rms": "rms", "L_2": Readout("lp", 2.0), "mean L_2": Readout("lp", 2.0, True)}


@every_pair(graph=list(GRAPHS), readout=list(READOUTS), response=["diagonal", "bandwise", "full"])
def test_pooling_by_a_norm_and_without_activation_ignores_functional_shifts(
    graph, readout, response
):
    P = lens(graph, "dyadic")
    options = {"response": response, "readout": READOUTS[readout], "activation": None}
    layer = randomised(PoolingNLSF(3, 2, P.bands, hidden_channels=4, hidden=8, **options))
    for space in (P, P.spectrum):
        assert_shift_invariant(lambda x: layer(x, spectrum=P), space)


@pytest.mark.parametrize(
    ("readout", "activation"),
    [("rms", "relu"), ("mean", None), ("max", None), ("sum", None), (Readout("lp", 3.0), None)],
)
def test_an_activation_or_another_readout_breaks_the_invariance_of_pooling(readout, activation):
    P = lens("torus", "dyadic")
    options = {"readout": readout, "activation": activation}
    layer = PoolingNLSF(3, 2, P.bands, hidden_channels=4, **options)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_shift_invariant(lambda x: randomised(layer)(x, spectrum=P), P)


PAIRINGS = list(itertools.product(("index", "uniform"), (None, "sym"), repeat=2))


@every_pair(pairing=PAIRINGS, score=["scalar", "spectral"], level=["node", "graph", "pooling"])
def test_attention_keeps_the_symmetry_of_its_branches(pairing, score, level):
    """On a regular graph N = L / 4 has the eigenspaces of L: one shift commutes with both."""
    graph = GRAPHS["torus"]
    kinds = {
        "node": lambda **o: NodeNLSF(3, 4, **o),
        "graph": lambda **o: GraphNLSF(3, 4, channels=5, **o),
        "pooling": lambda **o: PoolingNLSF(
            3, 4, hidden_channels=5, readout="rms", activation=None, **o
        ),
    }
    first, second = (
        kinds[level](bands=BANDS[bands], normalization=normalization, hidden=8)
        for bands, normalization in (pairing[:2], pairing[2:])
    )
    layer = randomised(LaplacianAttention(first, second, score, hidden=4))
    check = assert_shift_equivariant if level == "node" else assert_shift_invariant
    check(lambda x: layer(x, graph.edge_index), spectrum_of(graph, None))
    assert 0 < float(layer.alpha) < 1


@pytest.mark.parametrize("score", ["scalar", "spectral"])
@every_graph
def test_attention_between_two_partitions_of_one_operator_keeps_the_strict_group(score, graph):
    g = GRAPHS[graph]
    branches = [NodeNLSF(3, 4, BANDS[b], hidden=8) for b in ("index", "dyadic")]
    layer = randomised(LaplacianAttention(*branches, score, hidden=4))
    assert_shift_equivariant(lambda x: layer(x, g.edge_index, g.edge_weight), spectrum_of(g))


def test_attention_over_two_operators_breaks_where_their_eigenspaces_differ():
    g = GRAPHS["star"]
    branches = NodeNLSF(3, 4, IndexBands(2), None), NodeNLSF(3, 4, BANDS["uniform"], "sym")
    layer = randomised(LaplacianAttention(*branches))
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_shift_equivariant(lambda x: layer(x, g.edge_index), spectrum_of(g, None))


@every_graph
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", [True, False])
def test_a_stack_commutes_with_functional_shifts(graph, residual, norm):
    P = lens(graph, "dyadic")
    layers = [
        NodeNLSF(3, 4, BANDS["dyadic"], hidden=8, response="full"),
        NodeNLSF(4, 4, BANDS["dyadic"], hidden=8, start="heat"),
        NodeNLSF(4, 4, BANDS["dyadic"], hidden=8, response="bandwise"),
    ]
    stack = randomised(NLSFStack(layers, residual, norm))
    for space in (P, P.spectrum):
        assert_shift_equivariant(lambda x: stack(x, spectrum=P), space)


def test_a_stack_of_attention_commutes_with_shifts_of_a_regular_graph():
    graph = GRAPHS["torus"]
    stack = layer_of("stack of attention")
    assert_shift_equivariant(lambda x: stack(x[:, :2], graph.edge_index), spectrum_of(graph, None))


@every_graph
def test_invariant_norm_commutes_with_every_unitary_map(graph):
    norm = randomised(InvariantNorm(3))
    P = lens(graph, "index")
    assert_shift_equivariant(norm, P)
    assert_shift_equivariant(norm, P.spectrum)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_other_norms_keep_permutations_only(p):
    P = lens("torus", "dyadic")
    node = randomised(NodeNLSF(3, 3, BANDS["dyadic"], norm_p=p))
    graph = randomised(GraphNLSF(3, 3, BANDS["dyadic"], norm_p=p))
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_shift_equivariant(lambda x: node(x, spectrum=P), P)
    with pytest.raises(AssertionError, match="not invariant"):
        assert_shift_invariant(lambda x: graph(x, spectrum=P), P)

    def on(layer):
        return lambda x, shift: layer(x, spectrum=partial_eigh(shift, bands=layer.bands))

    shift = laplacian(GRAPHS["torus"], normalization="sym")
    assert_permutation_equivariant(on(node), shift, signal(20, 3))
    assert_permutation_invariant(on(graph), shift, signal(20, 3))


def test_a_bias_after_the_filter_would_break_the_symmetry():
    """Why `lin` has none."""
    P = lens("weighted", "dyadic")
    layer = randomised(NodeNLSF(3, 4, BANDS["dyadic"]))
    assert layer.lin.bias is None
    with pytest.raises(AssertionError):
        assert_shift_equivariant(lambda x: layer(x, spectrum=P) + 1.0, P)


def test_a_convolution_with_relu_is_not_equivariant():
    graph = GRAPHS["torus"]
    conv = randomised(GCNConv(3, 4, bias=False))
    spectrum = spectrum_of(graph)
    # The linear part alone commutes: on a regular graph it is a function of N.
    assert_shift_equivariant(lambda x: conv(x, graph.edge_index), spectrum)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_shift_equivariant(lambda x: conv(x, graph.edge_index).relu(), spectrum)


def test_relu_breaks_the_symmetry_on_the_circle_and_a_filter_does_not():
    """App. A: a shift of two frequencies that equals a translation, until ReLU adds others."""
    n = np.arange(100)
    ahead = np.roll(np.eye(100), 1, axis=1)
    difference = ShiftOperator.from_matrix(1j * (ahead - ahead.T) / 2)
    mode = {f: np.exp(1j * np.pi * f * n / 100) for f in (10, 20)}
    S = np.eye(100, dtype=complex)
    for f, factor in ((10, -1j), (20, -1)):
        S += (factor - 1) * np.outer(mode[f], mode[f].conj()) / 100
    D = np.roll(np.eye(100), 5, axis=0).astype(complex)
    S, D = (FunctionalShift.from_matrix(torch.from_numpy(m), difference) for m in (S, D))
    x = torch.from_numpy(mode[10] + mode[20])[:, None]

    def relu(x):
        return x.real.relu().to(torch.complex128)

    torch.testing.assert_close(S(x), D(x))
    torch.testing.assert_close(relu(S(x)), D(relu(x)))
    assert equivariance_error(relu, x, S) > 0.1
    assert equivariance_error(relu, x, D) < 1e-12

    spectrum = partial_eigh(difference)
    noise = torch.complex(signal(100, 1, seed=1), signal(100, 1, seed=2))
    for bands in (IndexBands(12), UniformBands(8), DyadicBands()):
        for response in ("diagonal", "bandwise"):
            # x is zero up to rounding in most bands; a tiny epsilon would blow that up.
            layer = randomised(NodeNLSF(1, 1, bands, response=response, eps=1e-3))
            for shift in (S, D, sample_shift(spectrum), S.inverse):
                for y in (x, noise, x + noise):
                    error = equivariance_error(lambda y, f=layer: f(y, spectrum=spectrum), y, shift)
                    assert error < 1e-9


@pytest.mark.parametrize("name", LAYERS)
def test_the_basis_inside_an_eigenspace_does_not_matter(name):
    """Through the public way in, a spectrum; the branches of attention get one each."""
    layer = layer_of(name)
    attention = "attention" in name
    for graph in GRAPHS.values():

        def call(x, s):
            return layer(x, spectrum=(s, s) if attention else s)

        assert_basis_invariant(call, spectrum_of(graph), signal(graph.num_nodes, 2))


@pytest.mark.parametrize("name", LAYERS)
@every_graph
def test_numbering_the_nodes_otherwise_renumbers_the_output(name, graph):
    g = GRAPHS[graph]
    layer = layer_of(name)
    x = signal(g.num_nodes, 2)
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(g.num_nodes, generator=generator)
    edges = torch.randperm(g.edge_index.shape[1], generator=generator)
    renumbered = torch.argsort(order)[g.edge_index][:, edges]
    weight = None if g.edge_weight is None else g.edge_weight[edges]
    expected = layer(x, g.edge_index, g.edge_weight)
    expected = expected[order] if name in NODE_LEVEL else expected
    found = layer(x[order], renumbered, weight)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


def linear(bands, normalization, start, **options):
    """A filter whose response is constant: no training yet, a = 0, and next to no epsilon."""
    options |= {"a": 0.0, "eps": 1e-14, "start": start, "complement": True}
    layer = NodeNLSF(1, 1, bands, normalization, **options)
    return layer.double()


def matrix_of(layer, P):
    """The columns are the images of the unit vectors, which go in as many signals at once."""
    eye = torch.eye(P.num_nodes, dtype=torch.float64)
    with torch.no_grad():
        return layer(eye.unsqueeze(-1), spectrum=P).squeeze(-1).T


def dense_parts(P):
    return [part.clone() for part in P(torch.eye(P.num_nodes, dtype=torch.float64)).parts()]


@every_pair(
    bands=list(BANDS),
    normalization={"L": None, "N": "sym"},
    start=STARTS[:-1],
    response=["diagonal", "bandwise"],
)
def test_a_constant_response_is_a_linear_operator_with_the_gains_of_the_start(
    bands, normalization, start, response
):
    """Lemma 1, one direction."""
    for graph in GRAPHS:
        P = lens(graph, bands, normalization)
        layer = linear(BANDS[bands], normalization, Start(start, 2.0), response=response)
        M = matrix_of(layer, P)
        x = signal(P.num_nodes, 1)
        torch.testing.assert_close(layer(x, spectrum=P), M @ x, atol=1e-10, rtol=0)
        for seed, space in enumerate((P, P.spectrum)):
            U = sample_shift(space, seed=seed).matrix()
            torch.testing.assert_close(M @ U, U @ M, atol=1e-10, rtol=0)
        expected = Start(start, 2.0).gains(P.frequencies)
        for j, part in enumerate(dense_parts(P)):
            if P.dimension[j]:
                gain = (part @ M).trace() / part.trace()
                torch.testing.assert_close(gain, expected[j], atol=1e-10, rtol=0)


@every_pair(
    bands=list(BANDS),
    normalization={"L": None, "N": "sym"},
    response=["diagonal", "bandwise", "full"],
    start=["random", "heat"],
)
def test_every_linear_operator_that_commutes_is_a_filter(bands, normalization, response, start):
    """Lemma 1, the other direction: the last biases alone set the gains."""
    for graph in GRAPHS:
        P = lens(graph, bands, normalization)
        gains = signal(P.n_bands, seed=3)
        expected = sum(g * part for g, part in zip(gains, dense_parts(P), strict=True))
        layer = linear(BANDS[bands], normalization, start, response=response)
        h = layer.start.gains(P.frequencies)
        with torch.no_grad():
            network = layer.response.network
            network.weights[-1].zero_()
            if response == "full":
                network.biases[-1].copy_(torch.diag(gains - h).flatten())
                layer.lin.weight.fill_(1.0)
            else:
                bias = gains / h - 1 if start == "heat" else gains
                network.biases[-1].copy_(bias.reshape(network.biases[-1].shape))
        torch.testing.assert_close(matrix_of(layer, P), expected, atol=1e-9, rtol=0)
