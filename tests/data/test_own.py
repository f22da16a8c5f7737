import shutil
import zipfile

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.io import savemat
from torch_geometric.data import Data

from nlsf.data.catalogue import load
from nlsf.data.own import from_networkx, from_pyg, open_dataset
from nlsf.errors import DataError, FormatError

EDGES = [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (3, 0)]
ONE_WAY = np.array([[0, 1], [2, 1], [3, 0], [0, 3], [2, 2]])
X = np.arange(8.0).reshape(4, 2)


def pairs(data, k=0):
    return list(map(tuple, data.graphs[k].edge_index.T.tolist()))


def parts(split):
    return [part.tolist() for part in split.parts]


class TestNpz:
    @pytest.mark.parametrize("names", [("edges", "node_features", "node_labels"), ("", "x", "y")])
    def test_both_ways_to_name_arrays(self, tmp_path, names):
        edges, x, y = names
        arrays = {edges or "edge_index": ONE_WAY if edges else ONE_WAY.T, x: X, y: [2, 0, -1, 1]}
        np.savez(tmp_path / "mine.npz", **arrays)
        data = open_dataset(tmp_path / "mine.npz")
        assert (data.name, data.level, data.metric) == ("mine", "node", "accuracy")
        assert pairs(data) == EDGES
        assert data.graphs[0].x.tolist() == X.tolist()
        assert data.y.tolist() == [2, 0, -1, 1]
        assert data.classes == ("0", "1", "2")
        assert data.labelled.tolist() == [0, 1, 3]
        assert data.given == {}

    @pytest.mark.data
    def test_it_reads_a_file_of_the_catalogue(self, root):
        same = load("Actor", root, offline=True)
        data = open_dataset(root / "heterophilous/actor.npz")
        assert torch.equal(data.y, same.y)
        assert torch.equal(data.graphs[0].edge_index, same.graphs[0].edge_index)
        assert [parts(s) for s in data.given["given"]] == [parts(s) for s in same.given["dense"]]

    @pytest.mark.parametrize("plural", [True, False])
    def test_masks(self, tmp_path, plural):
        masks = np.eye(4, dtype=bool)[:3]
        ending = "_masks" if plural else "_mask"
        named = {
            f"{part}{ending}": mask[None] if plural else mask
            for part, mask in zip(("train", "val", "test"), masks, strict=True)
        }
        np.savez(tmp_path / "mine.npz", edges=ONE_WAY, y=[0, 1, 0, 1], **named)
        (split,) = open_dataset(tmp_path / "mine.npz").given["given"]
        assert parts(split) == [[0], [1], [2]]
        assert split.protocol == "given"

    def test_floats_are_a_regression(self, tmp_path):
        y = np.array([[0.5, 1], [1, 2], [np.nan, 3], [4, 5]])
        np.savez(tmp_path / "mine.npz", edges=ONE_WAY, y=y)
        data = open_dataset(tmp_path / "mine.npz")
        assert (data.is_regression, data.num_outputs, data.metric) == (True, 2, "rmse")
        assert data.labelled.tolist() == [0, 1, 3]

    def test_text_names_classes(self, tmp_path):
        np.savez(tmp_path / "mine.npz", edges=ONE_WAY, y=np.array(["oak", "elm", "", "oak"]))
        data = open_dataset(tmp_path / "mine.npz")
        assert data.classes == ("elm", "oak")
        assert data.y.tolist() == [1, 0, -1, 1]

    def test_weights(self, tmp_path):
        weight = np.array([2.0, 3.0, 4.0, 4.0, 9.0])
        np.savez(tmp_path / "mine.npz", edges=ONE_WAY, x=X, edge_weight=weight)
        data = open_dataset(tmp_path / "mine.npz")
        assert pairs(data) == EDGES
        assert data.graphs[0].edge_weight.tolist() == [2, 4, 2, 3, 3, 4]

    def test_without_labels(self, tmp_path):
        np.savez(tmp_path / "mine.npz", edges=ONE_WAY, num_nodes=6)
        data = open_dataset(tmp_path / "mine.npz")
        assert data.graphs[0].num_nodes == 6
        assert (data.y.tolist(), data.classes, data.num_features) == ([-1] * 6, (), 0)


class TestMat:
    A = sparse.csc_matrix((np.ones(5), ONE_WAY.T), shape=(4, 4))

    @pytest.mark.parametrize("names", [("A", "X", "y"), ("adj", "features", "labels")])
    def test_both_ways_to_name_variables(self, tmp_path, names):
        a, x, y = names
        mask = np.array([1.0, 0, 0, 0])
        masks = {f"{p}_mask": np.roll(mask, k) for k, p in enumerate(("train", "val", "test"))}
        savemat(tmp_path / "mine.mat", {a: self.A, x: X, y: [1.0, 2.0, 3.0, -1.0], **masks})
        data = open_dataset(tmp_path / "mine.mat")
        assert pairs(data) == EDGES
        assert "edge_weight" not in data.graphs[0]
        # Classes that are counted from 1.
        assert (data.y.tolist(), data.classes) == ([0, 1, 2, -1], ("1", "2", "3"))
        assert parts(data.given["given"][0]) == [[0], [1], [2]]

    def test_sparse_features_stay_sparse(self, tmp_path):
        savemat(tmp_path / "mine.mat", {"A": self.A, "X": sparse.csc_matrix(X)})
        x = open_dataset(tmp_path / "mine.mat").graphs[0].x
        assert x.layout == torch.sparse_csr
        assert x.to_dense().tolist() == X.tolist()

    def test_entries_other_than_one_are_weights(self, tmp_path):
        A = self.A * 2.5
        savemat(tmp_path / "mine.mat", {"A": A, "y": [0.5, 1, 2, 3]})
        data = open_dataset(tmp_path / "mine.mat")
        assert set(data.graphs[0].edge_weight.tolist()) == {2.5}
        assert data.is_regression

    @pytest.mark.data
    def test_facebook_networks_are_known(self, root):
        data = open_dataset(root / "fb100/Johns Hopkins55.mat")
        assert (data.name, data.graphs[0].num_nodes) == ("Johns Hopkins55", 5180)


FEATURES = """id,age,label,split,size
ann,31,cat,train,1.5
bob,4,dog,val,2
cid,12,,,-1e-1
dee,7,cat,test,0
"""


class TestCsv:
    @pytest.fixture
    def folder(self, tmp_path):
        folder = tmp_path / "pets"
        folder.mkdir()
        (folder / "features.csv").write_text(FEATURES)
        (folder / "edges.csv").write_text("ann,bob\ncid,bob\ndee,ann\nann,dee\ncid,cid\n")
        return folder

    def test_the_folder_and_the_file(self, folder):
        for path in (folder, folder / "edges.csv", str(folder)):
            data = open_dataset(path)
            assert data.name == "pets"
            assert pairs(data) == EDGES
            assert (data.classes, data.y.tolist()) == (("cat", "dog"), [0, 1, -1, 0])
            assert data.graphs[0].x[:3].tolist() == [[31, 1.5], [4, 2], [12, pytest.approx(-0.1)]]
            assert parts(data.given["given"][0]) == [[0], [1], [3]]

    def test_other_places(self, folder):
        (folder / "features.csv").rename(folder / "pet_features.csv")
        (folder / "edges.csv").rename(folder / "pet_edges.csv")
        assert open_dataset(folder / "pet_edges.csv").name == "pet_edges"
        (folder / "pet_features.csv").rename(folder / "people.csv")
        data = open_dataset(folder / "pet_edges.csv", features=folder / "people.csv")
        assert pairs(data) == EDGES

    def test_header_and_weights(self, folder):
        edges = "Source,Target,Weight\nann,bob,2\ncid,bob,3\ndee,ann,4.5\n"
        (folder / "edges.csv").write_text(edges, encoding="utf-8-sig")
        data = open_dataset(folder)
        assert pairs(data) == EDGES
        assert data.graphs[0].edge_weight.tolist() == [2, 4.5, 2, 3, 3, 4.5]

    @pytest.mark.parametrize(
        ("column", "values", "y", "classes"),
        [
            ("class", "0,2,,1", [0, 2, -1, 1], ("0", "1", "2")),
            ("y", "1,2,-1,1", [0, 1, -1, 0], ("1", "2")),
            ("Label", "1,x,,1", [0, 1, -1, 0], ("1", "x")),
            ("y", "1,2.5,,1", [[1], [2.5], [None], [1]], ()),
            ("target", "1,2,,1", [[1], [2], [None], [1]], ()),
        ],
    )
    def test_what_is_learned(self, folder, column, values, y, classes):
        rows = [f"{k},{value}" for k, value in enumerate(values.split(","))]
        (folder / "features.csv").write_text("\n".join([f"id,{column}", *rows]))
        (folder / "edges.csv").write_text("0,1\n")
        data = open_dataset(folder)
        found = data.y.tolist()
        if data.is_regression:
            found = [[None if np.isnan(v) else v for v in row] for row in found]
        assert (found, data.classes, data.num_features) == (y, classes, 0)


class TestTu:
    @pytest.mark.data
    def test_folder_and_archive_are_the_same(self, root, tmp_path):
        archive = root / "tu/MUTAG.zip"
        with zipfile.ZipFile(archive) as file:
            file.extractall(tmp_path)
        one, two = open_dataset(archive), open_dataset(tmp_path / "MUTAG")
        assert one.name == two.name == "MUTAG"
        assert torch.equal(one.y, two.y)
        for a, b in zip(one.graphs, two.graphs, strict=True):
            assert torch.equal(a.edge_index, b.edge_index)
            assert torch.equal(a.x, b.x)

    @pytest.fixture
    def folder(self, tmp_path):
        def write(kind, text):
            (tmp_path / f"TOY_{kind}.txt").write_text(text)

        write("A", "1, 2\n2, 1\n2, 1\n3, 3\n4, 5\n")
        write("graph_indicator", "1\n1\n1\n2\n2\n")
        write("graph_labels", "7\n-1\n")
        write("node_labels", "4, 0\n9, 1\n4, 0\n4, 1\n5, 0\n")
        write("node_attributes", "0.5\n1\n2\n3\n4\n")
        return tmp_path

    def test_a_small_collection(self, folder):
        data = open_dataset(folder)
        assert (data.name, data.classes, data.y.tolist()) == ("TOY", ("-1", "7"), [1, 0])
        assert pairs(data, 0) == pairs(data, 1) == [(0, 1), (1, 0)]
        assert [graph.num_nodes for graph in data.graphs] == [3, 2]
        # The attribute, labels 4, 5, 9, and labels 0, 1.
        assert data.graphs[1].x.tolist() == [[3, 1, 0, 0, 0, 1], [4, 0, 1, 0, 1, 0]]

    def test_targets_of_graphs(self, folder):
        (folder / "TOY_graph_labels.txt").unlink()
        (folder / "TOY_graph_attributes.txt").write_text("0.5, 2\n1, 3\n")
        data = open_dataset(folder)
        assert data.y.tolist() == [[0.5, 2], [1, 3]]
        assert (data.metric, data.classes) == ("rmse", ())


class TestPyg:
    def graph(self, **more):
        x = torch.from_numpy(X)
        return Data(x=x, edge_index=torch.from_numpy(ONE_WAY.T), **more)

    def test_one_graph(self):
        y = torch.tensor([0, 1, 1, 0])
        masks = {
            f"{p}_mask": torch.eye(4, dtype=torch.bool)[:, k : k + 2]
            for k, p in enumerate(("train", "val", "test"))
        }
        for given in (self.graph(y=y, **masks), [self.graph(y=y, **masks)]):
            data = from_pyg(given, "mine")
            assert (data.name, data.level, data.y.tolist()) == ("mine", "node", y.tolist())
            assert pairs(data) == EDGES
            assert data.graphs[0].x.dtype == torch.float32
            assert [parts(s) for s in data.given["given"]] == [[[0], [1], [2]], [[1], [2], [3]]]

    def test_the_input_is_left_alone(self):
        given = self.graph(y=torch.tensor([0, 1, 1, 0]))
        data = from_pyg(given)
        data.graphs[0].x.zero_()
        assert given.x.abs().sum() == X.sum()
        assert given.num_edges == len(ONE_WAY)
        assert data.graphs[0].y is None

    def test_many_graphs(self):
        graphs = [self.graph(y=torch.tensor([k % 2])) for k in range(5)]
        data = from_pyg(graphs)
        assert (data.level, data.y.tolist(), data.classes) == ("graph", [0, 1, 0, 1, 0], ("0", "1"))
        assert pairs(data, 4) == EDGES
        targets = from_pyg([self.graph(y=torch.tensor([[0.5, k]])) for k in range(3)])
        assert targets.y.tolist() == [[0.5, 0], [0.5, 1], [0.5, 2]]

    def test_weights_of_many_graphs(self):
        weight = torch.from_numpy(1.0 + ONE_WAY.sum(1))
        graphs = [self.graph(y=torch.tensor([k]), edge_weight=weight + k) for k in range(2)]
        data = from_pyg(graphs)
        one = from_pyg(self.graph(y=torch.tensor([0, 1, 1, 0]), edge_weight=weight)).graphs[0]
        for k, graph in enumerate(data.graphs):
            assert torch.equal(graph.edge_index, one.edge_index)
            assert torch.equal(graph.edge_weight, one.edge_weight + k)
        del graphs[1].edge_weight
        with pytest.raises(FormatError, match="graph 1 has no 'edge_weight', others have"):
            from_pyg(graphs)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"y": torch.tensor([0, 1])}, r"'y' has the shape \(2,\); expected \(4,\)"),
            ({"y": torch.tensor([0, -7, 0, 1])}, "label 1 of 'y' is -7"),
            ({"x": torch.full((4, 2), torch.nan)}, "feature 0 of node 0 in 'x' is nan"),
            ({"edge_index": torch.tensor([[0], [4]])}, "edge 0 of 'edge_index' joins 0 and 4"),
            ({"edge_index": None}, "no 'edge_index'"),
            ({"train_mask": torch.ones(4)}, "has 'train_mask', but no 'val_mask'"),
        ],
    )
    def test_what_does_not_fit_is_named(self, change, message):
        given = self.graph(y=torch.tensor([0, 1, 1, 0]))
        for name, value in change.items():
            given[name] = value
        with pytest.raises(FormatError, match=message):
            from_pyg(given)

    def test_graphs_with_different_features(self):
        graphs = [self.graph(y=torch.tensor([0])), self.graph(y=torch.tensor([1]))]
        graphs[1].x = graphs[1].x[:, :1]
        with pytest.raises(FormatError, match="different numbers of features"):
            from_pyg(graphs)


class TestNetworkx:
    def test_karate(self):
        graph = networkx.karate_club_graph()
        for node, attributes in graph.nodes(data=True):
            attributes["x"] = [1.0, float(node)]
        data = from_networkx(graph, label="club")
        assert data.graphs[0].num_nodes == 34
        assert data.graphs[0].num_edges == 2 * graph.number_of_edges()
        assert data.classes == ("Mr. Hi", "Officer")
        assert data.graphs[0].x[:, 1].tolist() == list(range(34))
        # Its edges have weights.
        sums = torch.zeros(34).index_add_(
            0, data.graphs[0].edge_index[0], data.graphs[0].edge_weight
        )
        assert sums.tolist() == [degree for _, degree in graph.degree(weight="weight")]

    def test_a_directed_graph_without_attributes(self):
        data = from_networkx(networkx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")]))
        assert pairs(data) == [(0, 1), (1, 0), (1, 2), (2, 1)]
        assert (data.num_features, data.y.tolist()) == (0, [-1, -1, -1])

    def test_a_node_without_features_is_named(self):
        graph = networkx.path_graph(3)
        graph.nodes[0]["x"] = 1.0
        with pytest.raises(FormatError, match="node 1 has no 'x'"):
            from_networkx(graph)


def test_missing_and_unknown_files(tmp_path):
    with pytest.raises(DataError, match=r"There is no file or folder .*none\.npz"):
        open_dataset(tmp_path / "none.npz")
    (tmp_path / "graph.gml").touch()
    with pytest.raises(FormatError, match=r"graph\.gml is not of a kind .*\.npz or \.mat"):
        open_dataset(tmp_path / "graph.gml")
    with pytest.raises(FormatError, match="is not of a kind that can be read"):
        open_dataset(tmp_path)


def test_the_features_alone(tmp_path):
    (tmp_path / "features.csv").write_text(FEATURES)
    with pytest.raises(FormatError, match="give that of the edges"):
        open_dataset(tmp_path / "features.csv")
    shutil.copy(tmp_path / "features.csv", tmp_path / "edges.csv")
    (tmp_path / "features.csv").unlink()
    with pytest.raises(DataError, match=r"features\.csv is missing"):
        open_dataset(tmp_path)
