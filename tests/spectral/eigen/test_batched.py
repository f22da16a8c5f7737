import networkx as nx
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits
from torch_geometric.data import Batch, Data

from cases import GRAPHS
from nlsf.errors import GraphError, NotSymmetricError
from nlsf.spectral import DyadicBands, IndexBands, adjacency, batched_eigh, laplacian, partial_eigh
from nlsf.spectral.eigen.eigensolve import one_blas_thread

DATA = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in GRAPHS.values()]


@pytest.mark.parametrize("normalization", [None, "sym"])
@pytest.mark.parametrize(
    "request_", [{}, {"k": 3}, {"bands": IndexBands(5)}, {"bands": DyadicBands()}], ids=repr
)
def test_a_collection_equals_its_graphs_one_by_one(normalization, request_):
    alone = [partial_eigh(laplacian(d, normalization=normalization), **request_) for d in DATA]
    for n_jobs, times in ((1, 1), (2, 4)):
        many = batched_eigh(DATA * times, normalization=normalization, n_jobs=n_jobs, **request_)
        for one, found in zip(alone * times, many, strict=True):
            assert found.values.equal(one.values)
            assert found.vectors.equal(one.vectors)


def test_every_kind_of_collection():
    expected = [laplacian(d) for d in DATA]
    for graphs in (Batch.from_data_list(DATA), iter(DATA), expected, tuple(DATA)):
        found = batched_eigh(graphs, k=2)
        assert [s.num_nodes for s in found] == [d.num_nodes for d in DATA]
    mixed = batched_eigh([nx.path_graph(4), adjacency(nx.path_graph(3))])
    assert [s.name for s in mixed] == ["L", "A"]
    assert batched_eigh([]) == []


def test_the_bad_graph_is_named():
    bad = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(NotSymmetricError, match="Graph 2: The matrix is not symmetric"):
        batched_eigh([DATA[0], DATA[1], bad])
    with pytest.raises(GraphError, match="Graph 0"):
        batched_eigh([Data(edge_index=torch.tensor([[0], [9]]), num_nodes=2)])


def threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_one_thread_inside_and_as_many_as_before_outside():
    laplacian(nx.path_graph(3))  # SciPy's library is loaded
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert threads() == {1}
            with one_blas_thread():
                assert threads() == {1}
            assert threads() == {1}, "the limit ends with the last that leaves"
        assert threads() == {2}


def test_the_bits_of_a_collection_do_not_depend_on_the_threads():
    graphs = [nx.gnp_random_graph(150, 0.1, seed=seed) for seed in range(4)]
    expected = batched_eigh(graphs)
    with threadpool_limits(2, user_api="blas"):
        found = batched_eigh(graphs)
        assert threads() == {2}
    assert all(a.vectors.equal(b.vectors) for a, b in zip(found, expected, strict=True))
