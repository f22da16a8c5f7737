import os
import pickle
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from cases import GRAPHS
from cluster.deadly import DeadlyBands
from nlsf.cluster import cluster_eigh, collection, fill_cache
from nlsf.cluster.worker import Job, solve_chunk
from nlsf.data import load
from nlsf.display.progress import Progress
from nlsf.errors import (
    BandError,
    CacheWarning,
    ClusterError,
    GraphError,
    MemoryBudgetError,
    NotSymmetricError,
    SpectrumError,
)
from nlsf.spectral import IndexBands, SpectrumCache, adjacency, batched_eigh, partial_eigh

DATA = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in GRAPHS.values()]
FIELDS = ("far", "reach", "gap_tol", "trace", "nullity", "name", "order", "solver")


class Watch(Progress):
    """Remembers how many graphs were finished, out of how many."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def advanced(self, phase):
        self.seen.append((phase.done, phase.total))


def assert_same_bits(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for name in ("values", "vectors", "residuals"):
            assert getattr(one, name).equal(getattr(other, name))
        assert [getattr(one, f) for f in FIELDS] == [getattr(other, f) for f in FIELDS]


def assert_same_files(folder, other):
    names = sorted(os.listdir(folder))
    assert names == sorted(os.listdir(other))
    keys = [name.removesuffix(".safetensors") for name in names]
    cached = [[SpectrumCache(place).load(key) for key in keys] for place in (folder, other)]
    assert_same_bits(*cached)


@pytest.mark.data
def test_real_graphs_have_the_bits_of_one_process(client, root):
    graphs = load("ENZYMES", root=root, offline=True).graphs[::3]
    watch = Watch()
    found = cluster_eigh(graphs, normalization="sym", cluster=client, progress=watch)
    assert_same_bits(found, batched_eigh(graphs, normalization="sym"))
    assert len(watch.seen) > 8
    assert watch.seen == sorted(watch.seen)
    assert watch.seen[-1] == (200, 200)


@pytest.mark.parametrize("request_", [{}, {"k": 3, "seed": 2}, {"bands": IndexBands(5)}], ids=repr)
def test_hostile_graphs_have_the_bits_of_one_process(client, request_):
    found = cluster_eigh(DATA, cluster=client, **request_)
    assert_same_bits(found, batched_eigh(DATA, **request_))


def test_every_kind_of_collection(client):
    mixed = [nx.path_graph(4), adjacency(nx.path_graph(3)), np.ones((2, 2)) - np.eye(2)]
    for graphs in (mixed, iter(DATA[:5]), Batch.from_data_list(DATA[:5]), []):
        again = mixed if graphs is mixed else DATA[:5] if graphs != [] else []
        assert_same_bits(cluster_eigh(graphs, k=2, cluster=client), batched_eigh(again, k=2))


def test_a_worker_that_is_killed_costs_no_result(client, tmp_path):
    deadly = DeadlyBands(4, marker=str(tmp_path / "dead"), spared=os.getpid())
    found = cluster_eigh(DATA * 4, bands=deadly, cluster=client)
    assert (tmp_path / "dead").exists()
    assert_same_bits(found, batched_eigh(DATA * 4, bands=IndexBands(4)))


def test_the_cache_gets_the_files_of_one_process(client, tmp_path):
    options = {"bands": IndexBands(3), "normalization": "sym"}
    watch = Watch()
    count = fill_cache(DATA, cluster=client, cache=tmp_path / "c", progress=watch, **options)
    assert watch.seen[-1] == (count, count)
    assert count == len(DATA)
    batched_eigh(DATA, cache=tmp_path / "one", **options)
    assert_same_files(tmp_path / "c", tmp_path / "one")
    assert_same_bits(
        cluster_eigh(DATA, cluster=client, cache=tmp_path / "c", **options),
        batched_eigh(DATA, **options),
    )


def test_what_workers_cannot_write_this_process_writes(client, tmp_path, monkeypatch):
    @contextmanager
    def elsewhere(store):
        yield store.root / "not" / "there", "token"

    monkeypatch.setattr(collection, "_shared", elsewhere)
    fill_cache(DATA, cluster=client, cache=tmp_path / "c")
    batched_eigh(DATA, cache=tmp_path / "one")
    assert_same_files(tmp_path / "c", tmp_path / "one")


def test_a_cache_that_cannot_be_written_costs_a_warning(client, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(CacheWarning, match="could not be kept"):
        found = cluster_eigh(DATA[:3], cluster=client, cache=tmp_path / "file")
    assert_same_bits(found, batched_eigh(DATA[:3]))


def test_errors_are_ours_and_name_the_graph(client):
    one_way = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(NotSymmetricError, match=r"^Graph 2: The matrix is not symmetric"):
        cluster_eigh([DATA[0], DATA[1], one_way], cluster=client)
    with pytest.raises(GraphError, match=r"^Graph 1: Cannot read"):
        cluster_eigh([DATA[0], "graph"], cluster=client)
    sizes = [nx.path_graph(5), nx.path_graph(90), nx.path_graph(6)]
    with pytest.raises(MemoryBudgetError, match=r"^Graph 1: The dense eigendec") as caught:
        cluster_eigh(sizes, cluster=client, memory_limit=50_000)
    assert caught.value.limit == 50_000
    with pytest.raises(BandError, match=r"^k must be at least 1"):
        cluster_eigh(sizes, k=0, cluster=client)
    with pytest.raises(ClusterError, match=r"^Graph \d: TypeError: .*unknown"):
        cluster_eigh(sizes, cluster=client, unknown=1)


def test_the_same_errors_in_one_process():
    with pytest.raises(MemoryBudgetError, match=r"^Graph 1: The dense eigendec"):
        batched_eigh([nx.path_graph(5), nx.path_graph(90)], memory_limit=50_000)


def test_errors_survive_the_journey():
    error = SpectrumError("no", values=np.ones(2), residuals=np.zeros(2))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.values.tolist(), again.residuals.tolist()) == ("no", [1, 1], [0, 0])
    again = pickle.loads(pickle.dumps(MemoryBudgetError("no", needed=2, limit=1)))
    assert (str(again), again.needed, again.limit) == ("no", 2, 1)


def test_other_versions_are_refused():
    job = Job(None, None, None, None, {}, wanted=True, versions=("nlsf 9.9", "numpy 9"))
    refused = solve_chunk(0, [], job)
    assert isinstance(refused, ClusterError)
    assert "this process has nlsf 9.9, numpy 9: results would differ" in str(refused)
    job = Job(None, None, None, None, {}, wanted=True)
    (solved,) = solve_chunk(7, [adjacency(nx.path_graph(3))], job)
    assert solved.spectrum.values.equal(partial_eigh(adjacency(nx.path_graph(3))).values)
