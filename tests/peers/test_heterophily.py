import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path

from nlsf.peers import Neighbourhood
from nlsf.peers.heterophily import (
    CPGNN,
    FSGNN,
    H2GCN,
    CPGNNConfig,
    FSGNNConfig,
    H2GCNConfig,
    two_steps,
)
from peers.spatial import F64, C, F, made, small_graph


def normalised_at(A, distance):
    """Pairs at a distance, from the lengths of shortest paths."""
    pairs = torch.from_numpy(shortest_path(A.numpy(), unweighted=True) == distance).to(A)
    degree = pairs.sum(1)
    return pairs / (degree[:, None] * degree[None]).sqrt().clamp(min=1)


def test_two_steps_are_pairs_at_distance_two():
    graph, _, A = small_graph()
    expected = normalised_at(A, 2)
    assert np.count_nonzero(expected) > 0
    eye = torch.eye(len(A), dtype=A.dtype)
    torch.testing.assert_close(two_steps(graph) @ eye, expected)


def test_two_steps_are_computed_once():
    graph, _, _ = small_graph()
    other, _, _ = small_graph()
    assert graph.derived(two_steps) is graph.derived(two_steps)
    assert graph.derived(two_steps) is not other.derived(two_steps)


def test_h2gcn_is_its_formula():
    graph, x, A = small_graph()
    model = made(H2GCN, H2GCNConfig(F, C, 5, rounds=2))
    one, two = normalised_at(A, 1), normalised_at(A, 2)
    r0 = model.encoder(x).relu()
    r1 = torch.cat([one @ r0, two @ r0], dim=1)
    r2 = torch.cat([one @ r1, two @ r1], dim=1)
    torch.testing.assert_close(model(x, graph), model.last(torch.cat([r0, r1, r2], dim=1)))


def small_graph_of_fsgnn(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def normalised(A):
    degree = A.sum(1)
    root = torch.where(degree > 0, degree, torch.inf).rsqrt()
    return root[:, None] * A * root


@pytest.mark.parametrize("normalize", [False, True])
def test_the_scores_are_their_formula(normalize):
    torch.manual_seed(0)
    graph, A = small_graph_of_fsgnn()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = FSGNN(FSGNNConfig(4, 3, 6, hops=2, normalize=normalize)).double().eval()
    with torch.no_grad():
        model.coefficients.normal_()
        model.biases.normal_()
    P, looped = normalised(A), normalised(A + torch.eye(12))
    hops = [x, P @ x, P @ P @ x, looped @ x, looped @ looped @ x]
    weights = model.coefficients.exp() / model.coefficients.exp().sum()
    parts = []
    for hop, lin, bias, weight in zip(hops, model.lins, model.biases, weights, strict=True):
        part = hop @ lin.weight.T + bias
        if normalize:
            part = part / part.square().sum(1, keepdim=True).sqrt()
        parts.append(weight * part)
    expected = model.last(torch.cat(parts, dim=1).clamp(min=0))
    torch.testing.assert_close(model(x, graph), expected)


def test_cpgnn_is_its_formula():
    graph, x, A = small_graph()
    model = made(CPGNN, CPGNNConfig(F, C, 5, rounds=2))
    H = model.coefficients @ (torch.eye(C, dtype=F64) - 1 / C)
    prior = model.last(model.encoder(x).relu()).softmax(1) - 1 / C
    expected = prior + A @ prior @ H + A @ A @ prior @ H @ H
    torch.testing.assert_close(model(x, graph), expected)


def test_classes_are_next_to_their_own_at_the_start():
    start = CPGNN(CPGNNConfig(F, C)).compatibility()
    torch.testing.assert_close(start, torch.eye(C) - 1 / C)


def test_beliefs_stay_centred():
    graph, x, _ = small_graph()
    model = made(CPGNN, CPGNNConfig(F, C, 5, rounds=2))
    sums = model(x, graph).sum(1)
    torch.testing.assert_close(sums, torch.zeros_like(sums))
