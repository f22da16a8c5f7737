"""Every layer against the paper's equations, written out in NumPy with dense projections.

Nothing of the package computes the expected values: the operator comes from the definition of L or
N, the projections from its dense eigenvectors, and only the weights are read from the layer.
"""

import itertools

import numpy as np
import pytest
import torch

from nlsf.nn import GraphNLSF, LaplacianAttention, NLSFStack, NodeNLSF, PoolingNLSF, Readout, Start
from nlsf.spectral import DyadicBands, IndexBands
from nlsf.testing.graphs import star, torus, weighted
from nn.layers import randomised, signal, spectrum_of
from pairs import every_pair

GRAPHS = {"torus": torus(4, 5), "weighted": weighted(8), "star": star(6)}
DEPTHS = {"index": IndexBands(3), "dyadic": DyadicBands(r=0.6, S=4, K=3)}
T, FLOOR = 2.0, 0.05


def operator(graph, normalization):
    """L = D - A, N = D^(-1/2) L D^(-1/2), dense."""
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    weight = 1.0 if graph.edge_weight is None else graph.edge_weight.numpy()
    np.add.at(A, tuple(graph.edge_index.numpy()), weight)
    degree = A.sum(1)
    L = np.diag(degree) - A
    return L if normalization is None else L / np.sqrt(np.outer(degree, degree))


def projections(graph, normalization, kind, complement):
    """The projections of the bands and the mean eigenvalue of each."""
    Delta = operator(graph, normalization)
    values, vectors = np.linalg.eigh(Delta)
    groups = np.concatenate([[0], np.cumsum(np.diff(values) > 1e-8)])
    spaces = [
        (values[groups == g].mean(), vectors[:, groups == g] @ vectors[:, groups == g].T)
        for g in range(groups[-1] + 1)
    ]
    if kind == "index":
        parts = [P for _, P in spaces[:3]]
    else:
        edges = [-1.0, *(values[-1] * 0.6**k for k in (3, 2, 1))]
        zero = np.zeros_like(Delta)
        parts = [
            sum((P for lam, P in spaces if low + 1e-9 < lam <= high + 1e-9), zero)
            for low, high in itertools.pairwise(edges)
        ]
    if complement:
        parts.append(np.eye(len(Delta)) - sum(parts))
    trace = [round(np.trace(P)) for P in parts]
    means = [np.trace(P @ Delta) / t if t else 0.0 for P, t in zip(parts, trace, strict=True)]
    return parts, np.array(means)


def gains(name, lam):
    """The linear filter h_0 that the response starts from."""
    formulas = {
        "all-pass": np.ones_like(lam),
        "heat": np.exp(-T * lam),
        "ppr": 1 / (1 + T * lam),
        "high-pass": T * lam / (1 + T * lam),
        "walk": np.minimum(abs(1 - lam), 1) ** T,
    }
    return np.zeros_like(lam) if name == "random" else np.maximum(formulas[name], FLOOR)


def mlp(network, x, group=0, activation=np.tanh):
    """One of the networks of a `GroupedMLP`."""
    layers = list(zip(network.weights, network.biases, strict=True))
    for i, (W, b) in enumerate(layers):
        x = x @ W[group].detach().numpy() + b[group].detach().numpy()
        x = activation(x) if i < len(layers) - 1 else x
    return x


def norm(y, p, normalize):
    """The signal norm of every channel."""
    total = (np.abs(y) ** p).sum(0)
    return (total / len(y) if normalize else total) ** (1 / p)


def psi(layer, c):
    """The network of a response in its three forms and three ways to share weights."""
    r = layer.response
    B, d = c.shape
    if r.relative:
        energy = np.sqrt((c**2).sum(0))
        c = c / np.where(energy > 0, energy, 1.0)
    if r.name == "full":
        return mlp(r.network, c.reshape(B * d)).reshape(B * d, B * r.out_channels)
    out = np.zeros((B, d))
    if r.name == "diagonal" and r.sharing == "mixing":
        return mlp(r.network, c.reshape(B * d)).reshape(B, d)
    if r.name == "bandwise" and r.sharing == "mixing":
        return np.stack([mlp(r.network, c[j], j) for j in range(B)])
    for j, k in itertools.product(range(B), range(d)):
        if r.name == "diagonal":
            out[j, k] = mlp(r.network, c[:, k], 0 if r.sharing == "shared" else k)[j]
        else:
            group = j if r.sharing == "shared" else j * d + k
            out[j, k] = mlp(r.network, c[j, k : k + 1], group)[0]
    return out


def theta(layer, graph, kind, x, mode="multiplicative"):
    """Eq. 4 and 5, App. C.1, C.2 and F.6, and the linear map after them."""
    parts, lam = projections(graph, layer.normalization, kind, layer.complement)
    h = gains(layer.start.name, lam)
    c = np.stack([norm(P @ x, layer.norm_p, layer.norm_per_node) for P in parts])
    basis = [P @ x / (cj**layer.a + layer.eps) for P, cj in zip(parts, c, strict=True)]
    B, d = c.shape
    if layer.response.name == "full":
        out = layer.out_channels
        R = psi(layer, c)
        for j, k in itertools.product(range(B), range(min(d, out))):
            R[j * d + k, j * out + k] += h[j]
        y = np.concatenate(basis, axis=1) @ R
    else:
        random = layer.start.name == "random"
        factor = 1 + psi(layer, c) if mode == "multiplicative" and not random else psi(layer, c)
        r = h[:, None] * factor if mode == "multiplicative" and not random else h[:, None] + factor
        y = sum(r[j] * basis[j] for j in range(B))
    if isinstance(layer.lin, torch.nn.Linear):
        y = y @ layer.lin.weight.detach().numpy().T
    return y


every_graph = pytest.mark.parametrize("graph", GRAPHS)
COMMON = {
    "graph": list(GRAPHS),
    "kind": list(DEPTHS),
    "normalization": {"L": None, "N": "sym"},
}
LEAD = {"complement": {"complement": True, "lead": False}}
RELATIVE = {"relative": {"relative": True, "norms": False}}


def check(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-9, rtol=1e-9)


@every_pair(**COMMON, **LEAD, **RELATIVE)
def test_the_full_form_is_equation_4_and_5(graph, kind, normalization, complement, relative):
    g = GRAPHS[graph]
    for start, (a, p, normalize), depth in (
        ("all-pass", (1.0, 2.0, False), 2),
        ("heat", (0.5, 2.0, True), 3),
        ("random", (0.0, 1.0, True), 1),
        ("ppr", (0.7, 3.0, False), 2),
    ):
        layer = NodeNLSF(
            2,
            3,
            DEPTHS[kind],
            normalization,
            "full",
            complement,
            a=a,
            eps=1e-2,
            norm_p=p,
            norm_per_node=normalize,
            start=Start(start, T, FLOOR),
            relative=relative,
            hidden=5,
            depth=depth,
            activation="tanh",
        )
        layer = randomised(layer)
        x = signal(g.num_nodes, 2)
        expected = theta(layer, g, kind, x.numpy())
        check(layer(x, spectrum=spectrum_of(g, normalization)), expected)


@every_pair(**COMMON, **LEAD, **RELATIVE, response=["diagonal", "bandwise"])
def test_the_diagonal_and_bandwise_forms_are_those_of_the_appendix(
    graph, kind, normalization, complement, relative, response
):
    """App. C.1 and F.6, with the complement; App. C.2 without (lead, lead-diag)."""
    g = GRAPHS[graph]
    settings = itertools.cycle(
        [(1.0, 2.0, False), (0.5, 2.0, True), (0.0, 2.0, False), (1.0, 1.0, True), (0.7, 3.0, 0)]
    )
    starts = itertools.cycle(["all-pass", "heat", "ppr", "high-pass", "random", "walk"])
    for sharing, mode in itertools.product(
        ("shared", "channelwise", "mixing"), ("multiplicative", "additive")
    ):
        a, p, normalize = next(settings)
        layer = NodeNLSF(
            2,
            3 if mode == "additive" else 2,
            DEPTHS[kind],
            normalization,
            response,
            complement,
            a=a,
            eps=1e-2,
            norm_p=p,
            norm_per_node=bool(normalize),
            start=Start(next(starts), T, FLOOR),
            relative=relative,
            hidden=5,
            activation="tanh",
            sharing=sharing,
            mode=mode,
        )
        layer = randomised(layer)
        x = signal(g.num_nodes, 2)
        expected = theta(layer, g, kind, x.numpy(), mode)
        check(layer(x, spectrum=spectrum_of(g, normalization)), expected)


@every_pair(**COMMON, **LEAD, channels=[None, 4])
def test_the_graph_level_filter_is_a_network_on_the_norms(
    graph, kind, normalization, complement, channels
):
    """Eq. 6."""
    g = GRAPHS[graph]
    parts, _ = projections(g, normalization, kind, complement)
    x = signal(g.num_nodes, 2)
    for p, normalize in ((2.0, False), (2.0, True), (1.0, True)):
        layer = GraphNLSF(
            2,
            3,
            DEPTHS[kind],
            normalization,
            complement,
            norm_p=p,
            norm_per_node=normalize,
            channels=channels,
            hidden=5,
            activation="tanh",
        )
        layer = randomised(layer)
        y = x.numpy() if channels is None else x.numpy() @ layer.lin.weight.detach().numpy().T
        c = np.stack([norm(P @ y, p, normalize) for P in parts])
        expected = mlp(layer.network, c.reshape(-1))[None]
        check(layer(x, spectrum=spectrum_of(g, normalization)), expected)


READOUTS = {
    "mean": (Readout("mean"), lambda y: y.mean(0)),
    "sum": (Readout("sum"), lambda y: y.sum(0)),
    "max": (Readout("max"), lambda y: y.max(0)),
    "L_3": (Readout("lp", 3.0), lambda y: norm(y, 3.0, False)),
    "rms": (Readout("rms"), lambda y: norm(y, 2.0, True)),
}


@every_pair(**COMMON, readout=list(READOUTS))
def test_the_pooling_filter_is_filter_activation_readout_network(
    graph, kind, normalization, readout
):
    g = GRAPHS[graph]
    module, formula = READOUTS[readout]
    x = signal(g.num_nodes, 2)
    for activation, rho in ((None, lambda y: y), ("relu", lambda y: np.maximum(y, 0))):
        options = {"start": Start("ppr", T, FLOOR), "eps": 1e-2}
        layer = PoolingNLSF(
            2,
            3,
            DEPTHS[kind],
            normalization,
            hidden_channels=4,
            readout=module,
            activation=activation,
            hidden=5,
            **options,
        )
        layer = randomised(layer)
        layer.node.response.network.activation = torch.nn.Tanh()
        y = formula(rho(theta(layer.node, g, kind, x.numpy())))
        expected = mlp(layer.network, y, activation=lambda v: np.maximum(v, 0))[None]
        check(layer(x, spectrum=spectrum_of(g, normalization)), expected)


@every_graph
@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_attention_is_a_softmax_between_index_on_L_and_value_on_N(graph, score):  # noqa: N802
    """Sec. 3.5."""
    g = GRAPHS[graph]
    options = {"a": 1.0, "eps": 1e-2, "activation": "tanh", "start": Start("heat", T, FLOOR)}
    first = NodeNLSF(2, 3, DEPTHS["index"], None, **options)
    second = NodeNLSF(2, 2, DEPTHS["dyadic"], "sym", **options)
    layer = randomised(LaplacianAttention(first, second, score, hidden=4))
    x = signal(g.num_nodes, 2)
    kinds = ((first, "index"), (second, "dyadic"))
    if score == "scalar":
        scores = layer.scores.detach().numpy()
    else:
        scores = []
        for (branch, kind), network in zip(
            kinds, (layer.first_score, layer.second_score), strict=True
        ):
            parts, _ = projections(g, branch.normalization, kind, True)
            c = np.stack([norm(P @ x.numpy(), 2.0, False) for P in parts])
            c = (c / np.sqrt((c**2).sum(0))).mean(1)
            scores.append(mlp(network, c, activation=lambda v: np.maximum(v, 0))[0])
    alpha = np.exp(scores[0]) / (np.exp(scores[0]) + np.exp(scores[1]))
    a, b = (theta(branch, g, kind, x.numpy()) for branch, kind in kinds)
    expected = np.concatenate([alpha * a, (1 - alpha) * b], axis=1)
    found = layer(x, spectrum=(spectrum_of(g, None), spectrum_of(g, "sym")))
    check(found, expected)
    check(layer.alpha, alpha)


@every_graph
@pytest.mark.parametrize("residual", [True, False])
def test_a_stack_is_filter_residual_normalisation(graph, residual):
    g = GRAPHS[graph]
    options = {"a": 1.0, "eps": 1e-2, "activation": "tanh", "start": Start("ppr", T, FLOOR)}
    layers = [NodeNLSF(*size, DEPTHS["dyadic"], **options) for size in ((2, 3), (3, 3), (3, 3))]
    stack = randomised(NLSFStack(layers, residual))
    y = signal(g.num_nodes, 2).numpy()
    for i, layer in enumerate(layers):
        z = theta(layer, g, "dyadic", y)
        y = z + y if residual and z.shape == y.shape else z
        if i < 2:
            w = stack.norms[i].weight.detach().numpy()
            y = w * y / (norm(y, 2.0, True) + 1e-5)
    check(stack(signal(g.num_nodes, 2), spectrum=spectrum_of(g)), y)


def test_pooling_separates_what_the_graph_level_cannot():
    """App. D.2.4, with the paper's two graphs and signals."""
    two = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[2.0], [0.0]], dtype=torch.float64)
    three = (
        torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        torch.tensor([[2.5], [1.0], [-0.5]], dtype=torch.float64),
    )
    options = {
        "bands": IndexBands(2),
        "normalization": None,
        "complement": False,
        "norm_p": 1.0,
        "norm_per_node": True,
    }
    graph = randomised(GraphNLSF(1, 3, **options))
    for edges, x in (two, three):
        seen = graph.norms(graph.view(x, edges))
        check(seen, np.ones((2, 1)))
    check(graph(two[1], two[0]), graph(three[1], three[0]).detach().numpy())

    readout = Readout("lp", 1.0, normalize=True)
    identity = PoolingNLSF(
        1, 1, readout=readout, depth=0, activation=None, a=0.0, eps=1e-14, **options
    ).double()
    for (edges, x), expected in ((two, 1.0), (three, 4 / 3)):
        check(identity.node(x, edges), x.numpy())
        assert identity(x, edges).item() == pytest.approx(expected, abs=1e-12)
