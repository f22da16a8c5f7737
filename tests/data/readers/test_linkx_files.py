"""The readers whose real files are large: on small files in the same formats."""

import zipfile

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.io import savemat

from nlsf.data.catalogue import find
from nlsf.data.readers import heterophilous
from nlsf.errors import FormatError

EDGES = [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (3, 0)]


def pairs(data):
    return list(map(tuple, data.graphs[0].edge_index.T.tolist()))


@pytest.mark.parametrize(
    ("name", "read"),
    [("Genius", heterophilous.read_edge_list), ("Pokec", heterophilous.read_edge_list)],
)
def test_edge_lists(tmp_path, name, read):
    path = tmp_path / f"{name.lower()}.mat"
    x = np.arange(12.0).reshape(4, 3)
    edges = np.array([[0, 2, 0, 1, 3], [1, 1, 3, 0, 3]])
    savemat(path, {"edge_index": edges, "node_feat": x, "label": np.array([[0, 1, -1, 1]])})
    data = heterophilous.read_edge_list(find(name), [path])
    assert pairs(data) == EDGES
    assert data.y.tolist() == [0, 1, -1, 1]
    assert data.classes == ("0", "1")
    assert data.metric == ("roc_auc" if name == "Genius" else "accuracy")
    assert torch.equal(data.graphs[0].x, torch.from_numpy(x).float())


def test_facebook(tmp_path):
    A = sparse.csc_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float))
    info = np.array([[1, 2, 7, 0], [1, 0, 9, 0], [2, 1, 8, 5]], dtype=np.uint16)
    savemat(tmp_path / "Penn94.mat", {"A": A, "local_info": info})
    data = heterophilous.read_facebook(find("Penn94"), [tmp_path / "Penn94.mat"])
    assert data.y.tolist() == [1, -1, 0]
    # Status 1, 2; major 7, 8, 9; second major 0, 5.
    assert data.graphs[0].x.to_dense().tolist() == [
        [1, 0, 1, 0, 0, 1, 0],
        [1, 0, 0, 0, 1, 1, 0],
        [0, 1, 0, 1, 0, 0, 1],
    ]


TWITCH = """views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate
7879,1,969,2016-02-16,2018-10-12,0,0,EN,1
500,0,2699,2011-05-19,2018-10-08,2,0,FR,1
382502,1,3149,2010-02-27,2018-10-12,1,1,EN,0
20,0,100,2010-02-27,2018-10-12,3,1,DE,0
"""


@pytest.fixture
def streamers(tmp_path):
    (tmp_path / "twitch-gamer_feat.csv").write_text(TWITCH)
    edges = "numeric_id_1,numeric_id_2\n0,1\n2,1\n3,0\n3,3\n"
    (tmp_path / "twitch-gamer_edges.csv").write_text(edges)
    return sorted(tmp_path.iterdir())


def test_twitch(streamers):
    data = heterophilous.read_twitch(find("Twitch-Gamers"), streamers)
    assert pairs(data) == EDGES
    # Rows stand where their ids say.
    assert data.y.tolist() == [1, 1, 0, 0]
    x = data.graphs[0].x.double()
    assert x.shape == (4, 7)
    torch.testing.assert_close(x.mean(0), torch.zeros(7).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(x.std(0), torch.ones(7).double(), atol=1e-6, rtol=0)
    views = torch.tensor([7879.0, 382502.0, 500.0, 20.0]).double()
    torch.testing.assert_close(x[:, 0], (views - views.mean()) / views.std(), atol=1e-6, rtol=0)
    # Languages EN, EN, FR, DE are 0, 0, 1, 2.
    assert x[:, 5].argsort(stable=True).tolist() == [0, 1, 2, 3]


def test_twitch_names_line_and_column(streamers):
    features, edges = streamers[1], streamers[0]
    features.write_text(TWITCH.replace("2011-05-19", "19.5.2011"))
    message = r"line 3, column 'created_at': '19\.5\.2011' is not a date"
    with pytest.raises(FormatError, match=message):
        heterophilous.read_twitch(find("Twitch-Gamers"), streamers)
    features.write_text(TWITCH)
    edges.write_text("numeric_id_1,numeric_id_2\n0,1\n0,x\n")
    with pytest.raises(FormatError, match=r"edges\.csv, line 3: 'x' is not a whole number"):
        heterophilous.read_twitch(find("Twitch-Gamers"), streamers)
    edges.write_text("numeric_id_1,numeric_id_2\n0,1\n0,4\n")
    with pytest.raises(FormatError, match=r"edges\.csv, line 3 names a node outside 0 to 3"):
        heterophilous.read_twitch(find("Twitch-Gamers"), streamers)


@pytest.fixture
def pages(tmp_path):
    torch.save(torch.randn(4, 6), tmp_path / "wiki_features2M.pt")
    torch.save(torch.tensor([[0, 1], [2, 1], [3, 0]]), tmp_path / "wiki_edges2M.pt")
    torch.save(torch.tensor([3, 0, 4, 1]), tmp_path / "wiki_views2M.pt")
    return sorted(tmp_path.iterdir())


def test_wiki(pages):
    data = heterophilous.read_wiki(find("Wiki"), pages)
    assert pairs(data) == EDGES
    assert (data.num_features, data.y.tolist(), len(data.classes)) == (6, [3, 0, 4, 1], 5)


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


def test_wiki_runs_nothing(pages, capsys):
    torch.save(Evil(), pages[0])
    with pytest.raises(FormatError, match=r"wiki_edges2M\.pt does not hold a tensor alone"):
        heterophilous.read_wiki(find("Wiki"), pages)
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("default")
def test_wiki_refuses_what_only_makes_its_reader_warn(pages):
    with zipfile.ZipFile(pages[0]) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (name,) = [name for name in members if name.endswith("data.pkl")]
    assert members[name][:2] == b"\x80\x02"
    members[name] = b"\x80\x1a" + members[name][2:]
    with zipfile.ZipFile(pages[0], "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    with pytest.raises(FormatError, match="does not hold a tensor alone, or is damaged"):
        heterophilous.read_wiki(find("Wiki"), pages)
