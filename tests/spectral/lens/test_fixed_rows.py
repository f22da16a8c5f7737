"""Rows of a prepared signal: norms by Pythagoras from a sparse signal, while that is accurate."""

import pytest
import torch

from nlsf.errors import SignalError
from nlsf.spectral import DyadicBands, IndexBands, Lens, UniformBands, laplacian, partial_eigh
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.testing.graphs import complete, disjoint, path, star, torus
from pairs import every_pair

F64 = torch.float64
ROWS = torch.tensor([3, 0])
GRAPHS = {"path": path(12), "star": star(9), "complete": complete(6), "torus": torus(4, 5)}
GRAPHS["disjoint"] = disjoint(path(5), 2)


def words(nodes, channels=7):
    generator = torch.Generator().manual_seed(nodes)
    x = torch.rand(nodes, channels, generator=generator, dtype=F64)
    return torch.where(x > 0.6, x, 0.0)


@pytest.mark.parametrize("bands", [IndexBands(3), DyadicBands(S=4), UniformBands(S=5)], ids=str)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_sparse_signal_has_the_norms_and_gradients_of_the_dense_one(graph, bands):
    lens = Lens.of(laplacian(graph, normalization="sym"), bands, dtype=F64)
    x = words(graph.num_nodes)
    weight = torch.randn(7, 3, dtype=F64, requires_grad=True)
    both = [lens.fix_rows(x, ROWS, sparse=sparse) for sparse in (None, SparseSignal.of(x))]
    values, slopes = [], []
    for prepared in both:
        parts = prepared.map(weight)
        norms = parts.norms()
        filtered = parts.weighted(norms.cos())
        values.append((norms, filtered))
        slopes.append(torch.autograd.grad((filtered.sin().sum() + norms.sum()), weight)[0])
    for dense, sparse in zip(*values, strict=True):
        torch.testing.assert_close(sparse, dense, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(slopes[1], slopes[0], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(("share", "subtracted"), [(1.0, True), (1e-6, False), (0.0, False)])
def test_what_is_nearly_nothing_is_not_found_by_subtraction(share, subtracted):
    shift = laplacian(torus(4, 5), normalization="sym")
    lens = Lens.of(shift, IndexBands(3), dtype=F64)
    vectors = partial_eigh(shift).vectors
    x = vectors[:, :2] + share * vectors[:, -2:]
    parts = lens.fix_rows(x, ROWS, sparse=SparseSignal.of(x)).map(torch.eye(2, dtype=F64))
    assert (parts.known_remainder is None) == subtracted
    norms = parts.norms()[lens.rest]
    torch.testing.assert_close(norms, torch.full((2,), share, dtype=F64), rtol=1e-8, atol=1e-13)


def test_many_maps_at_once_are_each_of_them_alone():
    lens = Lens.of(laplacian(path(12)), IndexBands(3), dtype=F64)
    x = words(12)
    prepared = lens.fix_rows(x, torch.arange(12), sparse=SparseSignal.of(x))
    weights, rows = torch.randn(4, 7, 2, dtype=F64), torch.randint(12, (4, 5))

    def filtered(weight, index):
        parts = prepared[index].map(weight)
        return parts.weighted(parts.norms())

    together = torch.func.vmap(filtered)(weights, rows)
    alone = torch.stack([filtered(*one) for one in zip(weights, rows, strict=True)])
    torch.testing.assert_close(together, alone)


@every_pair(
    graph=GRAPHS,
    more=[-1, 0, 1],
    bands=[IndexBands(3), UniformBands(S=5, K=2)],
    complement=[True, False],
)
def test_as_many_channels_as_nodes_or_one_more_or_less(graph, more, bands, complement):
    """The Gram matrix and the rows it is made of have one shape for as many channels as nodes."""
    shift = laplacian(graph, normalization="sym")
    lens = Lens.of(shift, bands, dtype=F64, complement=complement)
    x = torch.randn(graph.num_nodes, graph.num_nodes + more, dtype=F64)
    prepared = lens.fix_rows(x, ROWS)
    for weight in (None, torch.randn(x.shape[1], 2, dtype=F64)):
        mapped = x if weight is None else x @ weight
        parts = prepared.map(weight)
        torch.testing.assert_close(parts.norms(), lens(mapped).norms())
        torch.testing.assert_close(parts.signal, mapped[ROWS])


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("complement", [True, False])
def test_other_norms_of_all_nodes_are_not_taken_for_those_of_some(complement, sparse):
    shift = laplacian(path(12))
    lens = Lens.of(shift, IndexBands(3), dtype=F64, complement=complement)
    assert (lens.rest is None) != complement
    x = words(12)
    prepared = lens.fix_rows(x, ROWS, sparse=SparseSignal.of(x) if sparse else None)
    for weight in (None, torch.eye(7, dtype=F64)):
        with pytest.raises(SignalError, match="L_2 norms only"):
            prepared.map(weight).norms(p=1.0)
