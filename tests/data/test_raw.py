import pickle
from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from nlsf.data import data_root, raw_graph
from nlsf.errors import DataError, GraphError

COUNTS = {
    "cora": (2708, 5278),
    "citeseer": (3327, 4552),
    "pubmed": (19717, 44324),
    "chameleon": (2277, 31371),
    "squirrel": (5201, 198353),
    "actor": (7600, 26659),
    "cornell5": (18660, 790777),
}


@pytest.mark.data
@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_those_of_the_paper(root, name):
    graph = raw_graph(name, root)
    assert (graph.num_nodes, graph.num_edges // 2) == COUNTS[name]


@pytest.fixture
def folder(tmp_path):
    for name in ("planetoid", "heterophilous", "fb100"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_the_three_formats(folder):
    lists = defaultdict(list, {0: [1, 1], 1: [0, 2], 2: [1, 2]})
    (folder / "planetoid/ind.cora.graph").write_bytes(pickle.dumps(lists))
    np.savez(folder / "heterophilous/actor.npz", edges=[[0, 1], [1, 2]], node_labels=[0, 1, 0])
    A = sparse.csc_matrix(([1.0] * 4, ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    savemat(folder / "fb100/Cornell5.mat", {"A": A})
    for name in ("cora", "actor", "cornell5"):
        graph = raw_graph(name, folder)
        assert graph.num_nodes == 3
        assert sorted(map(tuple, graph.edge_index.T.tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1)]


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


def test_a_malicious_pickle_is_not_run(folder, capsys):
    (folder / "planetoid/ind.cora.graph").write_bytes(pickle.dumps({0: Evil()}))
    with pytest.raises(GraphError, match=r"builtins\.print, which a graph does not need"):
        raw_graph("cora", folder)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps([1, 2])])
def test_other_files_are_refused(folder, content):
    (folder / "planetoid/ind.cora.graph").write_bytes(content)
    with pytest.raises(GraphError, match=r"ind\.cora\.graph does not hold a graph"):
        raw_graph("cora", folder)


def test_objects_in_npz_are_refused(folder):
    edges = np.array([Evil()], dtype=object)
    np.savez(folder / "heterophilous/actor.npz", edges=edges, node_labels=[0])
    with pytest.raises(GraphError, match=r"actor\.npz"):
        raw_graph("actor", folder)


def test_missing_files_are_named(folder, monkeypatch):
    with pytest.raises(DataError, match=r"squirrel\.npz is missing"):
        raw_graph("squirrel", folder)
    with pytest.raises(DataError, match="no raw graph 'core'"):
        raw_graph("core", folder)
    monkeypatch.delenv("NLSF_DATA", raising=False)
    with pytest.raises(DataError, match="set NLSF_DATA"):
        data_root()
