import os
import signal

import numpy as np
import pytest
import torch

from cases import GRAPHS, OPERATORS
from cases import signal as random_signal
from nlsf.cluster import BlockLens
from nlsf.cluster.block_rows import block_rows, tensor
from nlsf.errors import ClusterError, SignalError
from nlsf.spectral import DyadicBands, Lens, PolynomialBands, UniformBands
from nlsf.testing.graphs import torus


def lens(operator="L", graph="weighted", order=3, pairs=0, base=None, complement=True):
    bands = PolynomialBands(base or UniformBands(S=4, K=3), order, pairs)
    return Lens.of(OPERATORS[operator](GRAPHS[graph]), bands, complement=complement)


def assert_equal_projections(blocks, P, x):
    """All bands in one go: each with a map of its own that tells it from the others."""
    found, expected = blocks(x), P(x)
    close = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(found.energies(), expected.energies(), **close)
    each = torch.eye(P.n_bands, dtype=P.dtype).unsqueeze(1)
    maps = each.expand(-1, x.shape[-1], -1)
    torch.testing.assert_close(found.mixed(maps), expected.mixed(maps), **close)


@pytest.mark.parametrize("graph", GRAPHS)
def test_hostile_graphs_in_blocks(client, graph):
    P = lens(graph=graph)
    assert_equal_projections(BlockLens(P, client, blocks=2), P, random_signal(P, 1))


@pytest.mark.parametrize(
    ("operator", "pairs", "order", "blocks"),
    [("N", 2, 1, 1), ("A", 0, 2, 2), ("magnetic N", 3, 4, 5)],
)
def test_operators_exact_ends_and_many_signals(client, operator, pairs, order, blocks):
    P = lens(operator, pairs=pairs, order=order, base=DyadicBands(S=3, K=2), complement=False)
    x = random_signal(P, leading=(2,))
    parts = BlockLens(P, client, blocks=blocks)(x)
    torch.testing.assert_close(parts.energies(), P(x).energies(), rtol=1e-12, atol=1e-12)
    for j in range(P.n_bands):
        torch.testing.assert_close(parts.part(j), P(x).part(j), rtol=1e-12, atol=1e-12)


def test_analysis_and_synthesis_run_on_blocks(client):
    P = lens("N", "fifty triangles", pairs=3)
    blocks = BlockLens(P, client)
    assert len(blocks.rows) == len(client.nthreads())
    x = random_signal(P, leading=(2,))
    norms = P(x).norms()
    torch.testing.assert_close(blocks(x).norms(), norms, rtol=1e-12, atol=1e-12)
    for response in (norms.tanh(), norms[0].tanh(), norms.tanh()[:, None]):
        torch.testing.assert_close(
            blocks(x).synthesize(response), P(x).synthesize(response), rtol=1e-11, atol=1e-11
        )


def test_single_precision(client):
    P = lens().to(torch.float32)
    x = random_signal(P)
    found, expected = BlockLens(P, client)(x), P(x)
    assert found.part(0).dtype == torch.float32
    torch.testing.assert_close(found.part(0), expected.part(0), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.energies(), expected.energies(), rtol=1e-5, atol=1e-5)


def test_a_killed_worker_costs_no_result(client):
    P = lens(graph="fifty triangles")
    x = random_signal(P)
    parts = BlockLens(P, client)(x)
    torch.testing.assert_close(parts.part(0), P(x).part(0), rtol=1e-12, atol=1e-12)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    for j in range(P.n_bands):
        torch.testing.assert_close(parts.part(j), P(x).part(j), rtol=1e-12, atol=1e-12)


def test_blocks_receive_only_what_they_have_edges_to(client):
    shift = OPERATORS["L"](torus(12, 4))
    P = Lens.of(shift, PolynomialBands(UniformBands(S=2), 2))
    blocks = BlockLens(P, client, blocks=4)
    assert [len(row.rows) for row in blocks.rows] == [12, 12, 12, 12]
    assert [row.sources for row in blocks.rows] == [(0, 1, 3), (0, 1, 2), (1, 2, 3), (0, 2, 3)]
    assert blocks.traffic(5) == 4 * 2 * 12 * 5 * 8
    assert BlockLens(P, client, blocks=1).traffic(5) == 0


def test_arrays_that_arrive_at_odd_addresses():
    buffer = np.zeros(16 * 10 + 8, dtype=np.uint8)
    array = buffer[8 - buffer.ctypes.data % 16 :][:160].view(np.complex128)
    assert array.ctypes.data % 16 == 8
    assert tensor(array).data_ptr() % 16 == 0


def test_block_rows_share_the_entries():
    operator = lens(graph="star").operator
    for count in (1, 2, 5, 1000):
        rows = block_rows(operator, count)
        assert 1 <= len(rows) <= count
        assert [i for row in rows for i in row.rows] == list(range(operator.num_nodes))
        entries = sum(matrix.nnz for row in rows for matrix in row.matrices)
        assert entries == operator.matrix.values().numel()


def test_what_cannot_be(client):
    P = lens()
    with pytest.raises(ClusterError, match="at least 1 block of rows, not 0"):
        BlockLens(P, client, blocks=0)
    blocks = BlockLens(P, client, blocks=2)
    assert "blocks=2" in repr(blocks)
    with pytest.raises(SignalError, match=r"no gradients: pass x.detach\(\)"):
        blocks(random_signal(P).requires_grad_())
    with pytest.raises(SignalError):
        blocks(torch.full((P.num_nodes, 1), torch.nan, dtype=P.dtype))
