"""What the publishers' files hold, against the counts that the paper prints (Tab. 5 and 6)."""

import zipfile

import pytest
import torch
from torch_geometric.io import read_planetoid_data, read_tu_data
from torch_geometric.utils import coalesce, contains_self_loops, is_undirected, remove_self_loops

from nlsf.data.catalogue import load

pytestmark = pytest.mark.data

# Nodes, undirected edges, features, classes.
NODE_LEVEL = {
    "Cora": (2708, 5278, 1433, 7),
    "Citeseer": (3327, 4552, 3703, 6),
    "Pubmed": (19717, 44324, 500, 3),
    "Chameleon": (2277, 31371, 2325, 5),
    "Squirrel": (5201, 198353, 2089, 5),
    "Actor": (7600, 26659, 932, 5),
    "Chameleon-filtered": (890, 8854, 2325, 5),
    "Squirrel-filtered": (2223, 46998, 2089, 5),
    "Cornell5": (18660, 790777, 4735, 2),
    "Johns Hopkins55": (5180, 186586, 2406, 2),
}
# Graphs, average nodes, features, classes.
GRAPH_LEVEL = {
    "MUTAG": (188, 17.93, 7, 2),
    "PTC_MR": (344, 14.29, 18, 2),
    "ENZYMES": (600, 32.63, 18, 6),
    "PROTEINS": (1113, 39.06, 4, 2),
    "PROTEINS_full": (1113, 39.06, 29, 2),
    "NCI1": (4110, 29.87, 37, 2),
    "IMDB-BINARY": (1000, 19.77, 0, 2),
    "IMDB-MULTI": (1500, 13.00, 0, 3),
}


@pytest.mark.parametrize("name", NODE_LEVEL)
def test_node_level(root, name):
    data = load(name, root, offline=True)
    (graph,) = data.graphs
    found = (graph.num_nodes, graph.num_edges // 2, data.num_features, len(data.classes))
    assert found == NODE_LEVEL[name]
    assert (data.name, data.level, data.y.dtype) == (name, "node", torch.int64)
    assert graph.x.dtype == torch.float32
    assert graph.y is None
    assert is_undirected(graph.edge_index, num_nodes=graph.num_nodes)
    assert not contains_self_loops(graph.edge_index)
    assert set(data.y.tolist()) - {-1} == set(range(len(data.classes)))


@pytest.mark.parametrize("name", GRAPH_LEVEL)
def test_graph_level(root, name):
    data = load(name, root, offline=True)
    sizes = torch.tensor([float(graph.num_nodes) for graph in data.graphs])
    found = (len(data.graphs), round(sizes.mean().item(), 2), data.num_features, len(data.classes))
    assert found == GRAPH_LEVEL[name]
    assert data.level == "graph"
    for graph in data.graphs[::50]:
        assert is_undirected(graph.edge_index, num_nodes=graph.num_nodes)
        assert graph.edge_index.numel() == 0 or graph.edge_index.max() < graph.num_nodes
        assert graph.x is None or len(graph.x) == graph.num_nodes


def test_collab(root):
    data = load("COLLAB", root, offline=True)
    assert (len(data.graphs), len(data.classes)) == (5000, 3)
    assert sum(graph.num_edges for graph in data.graphs) == 24_572_158
    assert sum(graph.num_nodes for graph in data.graphs) == 372_474


@pytest.mark.parametrize(("name", "train"), [("Cora", 140), ("Citeseer", 120), ("Pubmed", 60)])
def test_the_public_split(root, name, train):
    data = load(name, root, offline=True)
    (split,) = data.given["public"]
    assert [len(part) for part in split.parts] == [train, 500, 1000]
    assert data.y[split.train].bincount().tolist() == [20] * len(data.classes)
    assert (data.y[torch.cat(split.parts)] >= 0).all()


def test_nodes_that_citeseer_leaves_out(root):
    data = load("Citeseer", root, offline=True)
    missing = (data.y == -1).nonzero().squeeze(-1)
    assert len(missing) == 15
    assert not data.graphs[0].x[missing].any()


@pytest.mark.parametrize("name", ["Chameleon", "Squirrel", "Actor", "Chameleon-filtered"])
def test_the_ten_dense_splits(root, name):
    splits = load(name, root, offline=True).given["dense"]
    assert [split.seed for split in splits] == list(range(10))
    for split in splits:
        total = sum(len(part) for part in split.parts)
        shares = [round(len(part) / total, 1) for part in split.parts]
        assert shares == [0.5, 0.3, 0.2]


def test_directed_links(root):
    (graph,) = load("Chameleon", root, offline=True, directed=True).graphs
    links = graph.adj_out.to_sparse_coo().indices()
    assert links.shape[1] == 36101
    assert graph.num_edges // 2 == 31371
    assert not is_undirected(links, num_nodes=graph.num_nodes)


@pytest.mark.parametrize(
    ("name", "nodes", "features"),
    [("ENZYMES", "labels", 3), ("ENZYMES", "both", 21), ("PROTEINS", "attributes", 1)],
)
def test_choice_of_node_features(root, name, nodes, features):
    assert load(name, root, offline=True, nodes=nodes).num_features == features


def test_facebook_features_are_one_hot(root):
    data = load("Johns Hopkins55", root, offline=True)
    x = data.graphs[0].x
    assert x.layout == torch.sparse_csr
    assert (x.values() == 1).all()
    assert (x.crow_indices().diff() == 6).all()
    assert 0 < (data.y == -1).sum() < len(data.y)


def test_mnist(root):
    data = load("MNIST", root, offline=True, subset=600)
    assert (data.level, tuple(data.signals.shape)) == ("signal", (700, 784, 1))
    assert (data.signals.min(), data.signals.max()) == (0.0, 1.0)
    # The first labels of both published files.
    assert data.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.y[600:605].tolist() == [7, 2, 1, 0, 4]
    (split,) = data.given["public"]
    assert [len(part) for part in split.parts] == [500, 100, 100]
    degrees = data.graphs[0].edge_index[0].bincount()
    assert degrees.bincount().tolist() == [0, 0, 4, 4 * 26, 26 * 26]
    # The border does not wrap around.
    assert (data.graphs[0].edge_index.diff(dim=0).abs().unique().tolist()) == [1, 28]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["Cora", "Citeseer", "Pubmed"])
def test_planetoid_against_pyg(root, name):
    theirs = read_planetoid_data(str(root / "planetoid"), name.lower())
    ours = load(name, root, offline=True)
    (graph,) = ours.graphs
    assert torch.equal(graph.x, theirs.x)
    known = ours.y >= 0
    assert torch.equal(ours.y[known], theirs.y[known])
    edges, _ = remove_self_loops(theirs.edge_index)
    assert torch.equal(graph.edge_index, coalesce(edges))
    (split,) = ours.given["public"]
    for part, mask in zip(
        split.parts, (theirs.train_mask, theirs.val_mask, theirs.test_mask), strict=True
    ):
        assert torch.equal(part, mask.nonzero().squeeze(-1))


@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES", "IMDB-BINARY"])
def test_collections_against_pyg(root, tmp_path, name):
    with zipfile.ZipFile(root / f"tu/{name}.zip") as archive:
        archive.extractall(tmp_path)
    together, slices, _ = read_tu_data(str(tmp_path / name), name)
    ours = load(name, root, offline=True)
    assert torch.equal(ours.y, together.y)
    for k in (0, len(ours.graphs) // 2, len(ours.graphs) - 1):
        ends = together.edge_index[:, slices["edge_index"][k] : slices["edge_index"][k + 1]]
        assert torch.equal(ours.graphs[k].edge_index, coalesce(ends))
        if ours.graphs[k].x is not None:
            x = together.x[slices["x"][k] : slices["x"][k + 1], : ours.num_features]
            assert torch.equal(ours.graphs[k].x, x)
