import networkx as nx
from threadpoolctl import threadpool_info, threadpool_limits

from nlsf.spectral import batched_eigh, laplacian
from nlsf.spectral.blas import one_blas_thread


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
