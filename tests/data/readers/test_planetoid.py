"""Planetoid files: those of the release are read, and no other pickle is opened."""

import pickle

import pytest

from data.bad_files import Evil
from fuzz_files import known, planetoid_pickles
from nlsf.data.readers import planetoid
from nlsf.errors import FormatError


def test_rows_stand_where_the_index_says(tmp_path):
    data = planetoid_pickles(tmp_path)()
    (graph,) = data.graphs
    assert (graph.num_nodes, data.num_features, data.classes) == (505, 3, ("0", "1"))
    # The index is 504, 503: the first row of tx and ty is that of the last node.
    assert graph.x[[503, 504]].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert data.y[[0, 1, 2, 503, 504]].tolist() == [0, 1, 0, 1, 0]
    assert graph.edge_index[:, graph.edge_index[0] < 8].T.tolist() == [
        *([0, 1], [1, 0], [1, 504], [3, 7], [4, 7], [7, 3], [7, 4])
    ]
    (split,) = data.given["public"]
    assert [part[[0, -1]].tolist() for part in split.parts] == [[0, 1], [2, 501], [503, 504]]


@pytest.mark.parametrize("part", ["x", "graph", "test.index"])
def test_other_content_is_not_looked_at(tmp_path, part, capsys):
    planetoid_pickles(tmp_path)
    entry = known("Cora", tmp_path)
    path = tmp_path / f"ind.cora.{part}"
    path.write_bytes(pickle.dumps({0: Evil()}))
    with pytest.raises(FormatError, match=r"is not the published file of Cora.*SHA-256"):
        planetoid.read(entry, sorted(tmp_path.iterdir()))
    assert capsys.readouterr().out == ""
