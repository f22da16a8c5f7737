import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path

from nlsf.nn.baselines.h2gcn import H2GCN, H2GCNConfig, two_steps
from nn.baselines.spatial import C, F, made, small_graph


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
