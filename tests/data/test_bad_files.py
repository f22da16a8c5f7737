"""Files that are wrong, damaged or malicious: each an error of one sentence or two, no more."""

import gzip
import pickle
import re
import stat
import struct
import zipfile
from collections import defaultdict

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.io import savemat

from nlsf.data.catalogue import find
from nlsf.data.own import open_dataset
from nlsf.data.readers import facebook, genius, heterophilous, mnist, planetoid, tu, wiki
from nlsf.errors import ConfigError, DataError, FormatError

EDGES = np.array([[0, 1], [1, 2], [2, 3]])
X = np.ones((4, 2))
Y = np.array([0, 1, 0, 1])
ONE = np.eye(4, dtype=bool)
MASKS = {f"{part}_masks": ONE[k : k + 1] for k, part in enumerate(("train", "val", "test"))}
CASES = []


def case(kind, message, names=None):
    """Registers a function that fills a folder and returns what must fail."""

    def register(build):
        CASES.append(pytest.param(build, kind, message, names, id=build.__name__))
        return build

    return register


def npz(folder, **change):
    arrays = {"edges": EDGES, "node_features": X, "node_labels": Y, **MASKS, **change}
    path = folder / "graph.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return lambda: open_dataset(path)


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


# NumPy archives.


@case(FormatError, "not a whole .npz archive")
def npz_cut_short(folder):
    npz(folder)
    path = folder / "graph.npz"
    path.write_bytes(path.read_bytes()[:-200])
    return lambda: open_dataset(path)


@case(FormatError, "not a whole .npz archive (reading 'node_features')")
def npz_with_a_flipped_byte(folder):
    run = npz(folder)
    path = folder / "graph.npz"
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("node_features.npy")
    content[member.header_offset + 200] ^= 255
    path.write_bytes(content)
    return run


@case(FormatError, "not a whole .npz archive")
def npz_that_is_text(folder):
    (folder / "graph.npz").write_text("edges")
    return lambda: open_dataset(folder / "graph.npz")


@case(FormatError, "'edges' holds Python objects")
def npz_of_objects(folder):
    return npz(folder, edges=np.array([Evil()], dtype=object))


@case(FormatError, "bytes of arrays; at most 8 GiB are read")
def npz_bomb(folder):
    path = folder / "graph.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.npy", b"\x93NUMPY")
    content = path.read_bytes()
    entry_at, end_at = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    entry, end = bytearray(content[entry_at:end_at]), bytearray(content[end_at:])
    # The directory of the archive has three entries, each of which declares 4 GiB.
    entry[24:28] = struct.pack("<I", 2**32 - 2)
    end[8:16] = struct.pack("<HHI", 3, 3, 3 * len(entry))
    path.write_bytes(content[:entry_at] + 3 * entry + end)
    return lambda: open_dataset(path)


@case(FormatError, "has no 'edges'")
def npz_without_edges(folder):
    return npz(folder, edges=None)


@case(FormatError, "has both 'node_features' and 'x'")
def npz_with_two_features(folder):
    return npz(folder, x=X)


@case(FormatError, "'edges' has the shape (3, 3); expected (E, 2)")
def npz_edges_of_wrong_shape(folder):
    return npz(folder, edges=np.zeros((3, 3), dtype=int))


@case(FormatError, "edge 1 of 'edges' joins 1 and 4, but nodes are numbered 0 to 3")
def npz_edge_out_of_range(folder):
    return npz(folder, edges=np.array([[0, 1], [1, 4]]))


@case(FormatError, "edge 0 of 'edges' joins -1 and 1")
def npz_negative_node(folder):
    return npz(folder, edges=np.array([[-1, 1], [1, 2]]))


@case(FormatError, "'edges' holds float64 values; expected whole numbers")
def npz_edges_of_floats(folder):
    return npz(folder, edges=EDGES + 0.5)


@case(FormatError, "feature 1 of node 2 in 'node_features' is nan")
def npz_nan_feature(folder):
    x = X.copy()
    x[2, 1] = np.nan
    return npz(folder, node_features=x)


@case(FormatError, "feature 0 of node 3 in 'node_features' is 1e+300")
def npz_feature_beyond_float32(folder):
    x = X.copy()
    x[3, 0] = 1e300
    return npz(folder, node_features=x)


@case(FormatError, "'node_features' holds <U1 values; expected numbers")
def npz_features_of_text(folder):
    return npz(folder, node_features=np.full((4, 2), "a"))


@case(FormatError, "'node_features' has the shape (4, 2, 1); expected (nodes, F)")
def npz_features_of_three_dimensions(folder):
    return npz(folder, node_features=X[..., None])


@case(FormatError, "'node_labels' has the shape (3,); expected (4,)")
def npz_too_few_labels(folder):
    return npz(folder, node_labels=Y[:3])


@case(FormatError, "label 1 of 'node_labels' is -3")
def npz_negative_label(folder):
    return npz(folder, node_labels=np.array([0, -3, 0, 1]))


@case(FormatError, "label 2 of 'node_labels' is 100000")
def npz_label_beyond_the_nodes(folder):
    return npz(folder, node_labels=np.array([0, 1, 100_000, 1]))


@case(FormatError, "are -1 and 1, but -1 is for labels that are not known")
def npz_labels_plus_and_minus(folder):
    return npz(folder, node_labels=np.array([-1, 1, -1, 1]))


@case(FormatError, "the masks of split 0 overlap: node 0 is in two of them")
def npz_masks_that_overlap(folder):
    return npz(folder, val_masks=ONE[0:1])


@case(FormatError, "'train_masks' of split 0 is empty")
def npz_empty_training_mask(folder):
    return npz(folder, train_masks=np.zeros((1, 4), dtype=bool))


@case(FormatError, "'val_masks' has the shape (5, 1); expected (splits, 4)")
def npz_mask_of_wrong_shape(folder):
    return npz(folder, val_masks=np.zeros((1, 5), dtype=bool))


@case(FormatError, "'train_masks' of split 0 has node 0, whose label is not known")
def npz_training_without_label(folder):
    return npz(folder, node_labels=np.array([-1, 1, 0, 1]))


@case(FormatError, "the weight of edge 2 is nan; weights must be positive")
def npz_nan_weight(folder):
    return npz(folder, edge_weight=np.array([1, 1, np.nan]))


@case(FormatError, "has the weights 1 and 2; an undirected edge has one")
def npz_weights_that_disagree(folder):
    edges = np.array([[0, 1], [1, 0]])
    return npz(folder, edges=edges, edge_weight=np.array([1.0, 2.0]))


@case(FormatError, "has no 'train_masks'")
def published_npz_without_masks(folder):
    npz(folder, train_masks=None)
    return lambda: heterophilous.read(find("Actor"), [folder / "graph.npz"])


@case(ConfigError, "Actor has no file with directed links", names="Actor")
def directed_links_that_are_not_there(folder):
    npz(folder)
    return lambda: heterophilous.read(find("Actor"), [folder / "graph.npz"], directed=True)


# MATLAB files.


def mat(folder, **variables):
    savemat(folder / "graph.mat", variables)
    return lambda: open_dataset(folder / "graph.mat")


@case(FormatError, "has no 'A'")
def mat_without_a(folder):
    return mat(folder, X=X)


@case(FormatError, "'A' has the shape (3, 4); expected a square matrix")
def mat_not_square(folder):
    return mat(folder, A=sparse.csc_matrix(np.ones((3, 4))))


@case(FormatError, "'X' has 3 rows; expected one for each of the 4 nodes")
def mat_with_too_few_features(folder):
    return mat(folder, A=np.ones((4, 4)), X=X[:3])


@case(FormatError, "not a whole MATLAB file")
def mat_cut_short(folder):
    run = mat(folder, A=np.ones((40, 40)))
    path = folder / "graph.mat"
    path.write_bytes(path.read_bytes()[:-100])
    return run


@case(FormatError, "(variable 'A': a row index lies outside its 99 rows)")
def mat_with_indices_beyond_its_shape(folder):
    run = mat(folder, A=sparse.csc_matrix((np.ones(2), ([77, 78], [0, 1])), shape=(99, 99)))
    path = folder / "graph.mat"
    row = struct.pack("<ii", 77, 78)
    content = path.read_bytes()
    assert content.count(row) == 1
    path.write_bytes(content.replace(row, struct.pack("<ii", 77, 2**30)))
    return run


@case(FormatError, "(variable 'A': its values have the type 65289)")
def mat_with_a_type_that_does_not_exist(folder):
    run = mat(folder, A=np.ones((40, 40)))
    path = folder / "graph.mat"
    tag = struct.pack("<II", 9, 8 * 1600)
    content = path.read_bytes()
    assert content.count(tag) == 1
    path.write_bytes(content.replace(tag, struct.pack("<II", 0xFF09, 8 * 1600)))
    return run


@case(FormatError, "is a MATLAB 7.3 file")
def mat_of_a_newer_version(folder):
    header = b"MATLAB 7.3 MAT-file".ljust(124, b" ") + b"\x00\x02IM"
    (folder / "graph.mat").write_bytes(header + bytes(512))
    return lambda: open_dataset(folder / "graph.mat")


@case(FormatError, "'local_info' has the shape (3, 7); expected (4, 7)")
def facebook_with_too_few_rows(folder):
    mat(folder, A=np.ones((4, 4)), local_info=np.ones((3, 7)))
    return lambda: facebook.read(find("Penn94"), [folder / "graph.mat"])


@case(FormatError, "the gender of node 1 in 'local_info' is 5")
def facebook_with_a_strange_gender(folder):
    info = np.ones((4, 7))
    info[1, 1] = 5
    return mat(folder, A=np.ones((4, 4)), local_info=info)


@case(FormatError, "edge 0 of 'edge_index' joins 0 and 9")
def genius_edge_out_of_range(folder):
    mat(folder, edge_index=[[0], [9]], node_feat=X, label=Y)
    return lambda: genius.read(find("Genius"), [folder / "graph.mat"])


# Tables.


def tables(folder, features="id,age,label\na,1,x\nb,2,y\n", edges="a,b\n"):
    for name, text in (("features.csv", features), ("edges.csv", edges)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return lambda: open_dataset(folder / "edges.csv")


@case(FormatError, "features.csv, line 3, column 'age': 'abc' is not a number")
def csv_text_in_a_numeric_column(folder):
    return tables(folder, "id,age,label\na,1,x\nb,abc,y\n")


@case(FormatError, "features.csv, line 3, column 'age': 'inf' is not a number")
def csv_infinite_number(folder):
    return tables(folder, "id,age,label\na,1,x\nb,inf,y\n")


@case(FormatError, "features.csv, line 2, column 'age': '' is not a number")
def csv_empty_cell(folder):
    return tables(folder, "id,age,label\na,,x\nb,1,y\n")


@case(FormatError, "features.csv, line 3 has 2 cells; expected 3")
def csv_short_line(folder):
    return tables(folder, "id,age,label\na,1,x\nb,2\n")


@case(FormatError, "features.csv, line 3: the node 'a' is there twice")
def csv_node_twice(folder):
    return tables(folder, "id,age,label\na,1,x\na,2,y\n")


@case(FormatError, "features.csv, line 1 must name the columns")
def csv_without_header(folder):
    return tables(folder, "0,1,2\n1,3,4\n", "0,1\n")


@case(FormatError, "features.csv, line 3, column 'split': 'dev' is not train, val, test")
def csv_unknown_part(folder):
    return tables(folder, "id,label,split\na,x,train\nb,y,dev\n")


@case(FormatError, "features.csv, line 3, column 'label': -4 is not the number of a class")
def csv_negative_label(folder):
    return tables(folder, "id,label\na,0\nb,-4\n")


@case(FormatError, "features.csv, line 3, column 'target': 'high' is not a number")
def csv_text_as_target(folder):
    return tables(folder, "id,target\na,0\nb,high\n")


@case(FormatError, "edges.csv, line 3: the node 'zed' is not in")
def csv_unknown_id(folder):
    return tables(folder, edges="from,to\na,b\na,zed\n")


@case(FormatError, "edges.csv, line 1 has 4 cells; expected 2 or 3")
def csv_edges_with_four_columns(folder):
    return tables(folder, edges="a,b,1,2\n")


@case(FormatError, "edges.csv, line 1: the weight -2 is not positive")
def csv_negative_weight(folder):
    return tables(folder, edges="a,b,-2\n")


@case(FormatError, "features.csv is not a comma-separated table in UTF-8")
def csv_of_another_encoding(folder):
    return tables(folder, b"id,label\n\xff\xfe,1\n")


@case(DataError, "features.csv is missing")
def csv_without_features(folder):
    (folder / "edges.csv").write_text("a,b\n")
    return lambda: open_dataset(folder / "edges.csv")


# Collections of graphs.

TOY = {
    "A": "1, 2\n2, 1\n3, 4\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "0\n1\n",
    "node_attributes": "0.5\n1\n2\n3\n",
}


def collection(folder, **change):
    for kind, text in {**TOY, **change}.items():
        if text is not None:
            (folder / f"TOY_{kind}.txt").write_text(text)
    return lambda: open_dataset(folder)


@case(FormatError, "TOY_A.txt, line 3 names node 4, but graph_indicator has nodes 1 to 3")
def tu_indicator_too_short(folder):
    return collection(folder, graph_indicator="1\n1\n2\n", node_attributes=None)


@case(FormatError, "TOY_A.txt, line 2 names node 0")
def tu_edge_out_of_range(folder):
    return collection(folder, A="1, 2\n0, 1\n")


@case(FormatError, "TOY_A.txt, line 2 joins nodes 2 and 3 of two different graphs")
def tu_edge_between_graphs(folder):
    return collection(folder, A="1, 2\n2, 3\n")


@case(FormatError, "TOY_A.txt, line 2: 'two' is not a whole number")
def tu_edge_of_text(folder):
    return collection(folder, A="1, 2\n2, two\n")


@case(FormatError, "TOY_graph_indicator.txt, line 3: graphs must be numbered from 1, in order")
def tu_graphs_out_of_order(folder):
    return collection(folder, graph_indicator="1\n1\n3\n2\n")


@case(FormatError, "TOY_graph_labels.txt has 3 lines, but there are 2 graphs")
def tu_too_many_labels(folder):
    return collection(folder, graph_labels="0\n1\n1\n")


@case(FormatError, "has no TOY_graph_labels.txt")
def tu_without_labels(folder):
    return collection(folder, graph_labels=None)


@case(FormatError, "TOY_node_attributes.txt: feature 0 of node 1 in 'node_attributes' is nan")
def tu_nan_attribute(folder):
    return collection(folder, node_attributes="0.5\nnan\n2\n3\n")


@case(ConfigError, "TOY has no node labels", names="TOY")
def tu_features_that_are_not_there(folder):
    collection(folder)
    return lambda: tu.read_collection(folder, nodes="labels")


@case(ConfigError, "There is no choice of node features 'label'. Did you mean 'labels'?", names="")
def tu_unknown_choice(folder):
    collection(folder)
    return lambda: tu.read_collection(folder, nodes="label")


# Archives.


def archive(folder, *extra, content=b"1"):
    path = folder / "TOY.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for kind, text in TOY.items():
            file.writestr(f"TOY/TOY_{kind}.txt", text)
        for name in extra:
            file.writestr(name, content)
    return lambda: open_dataset(path)


@case(FormatError, "would lie outside its folder")
def zip_slip(folder):
    return archive(folder, "../../evil.txt")


@case(FormatError, "would lie outside its folder")
def zip_with_an_absolute_name(folder):
    return archive(folder, "/tmp/evil.txt")


@case(FormatError, "bytes of content")
def zip_bomb(folder):
    return archive(folder, "TOY/TOY_node_labels.txt", content=bytes(32 << 20))


@case(FormatError, "is a link or a device")
def zip_with_a_symlink(folder):
    link = zipfile.ZipInfo("TOY/TOY_node_labels.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return archive(folder, link, content=b"/etc/passwd")


@case(FormatError, "is encrypted")
def zip_encrypted(folder):
    run = archive(folder)
    path = folder / "TOY.zip"
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    return run


@case(FormatError, "not a whole zip archive")
def zip_cut_short(folder):
    run = archive(folder)
    path = folder / "TOY.zip"
    path.write_bytes(path.read_bytes()[:-30])
    return run


@case(FormatError, "has no NAME_A.txt")
def zip_of_something_else(folder):
    with zipfile.ZipFile(folder / "TOY.zip", "w") as file:
        file.writestr("readme.txt", "hello")
    return lambda: open_dataset(folder / "TOY.zip")


# Pickles and tensors.


def planetoid_files(folder, **change):
    rows = sparse.csr_matrix(np.eye(503, 3, dtype=np.float32))
    labels = np.eye(503, 2, dtype=np.int32)
    content = {
        "x": rows[:2],
        "tx": rows[:2],
        "allx": rows,
        "y": labels[:2],
        "ty": labels[:2],
        "ally": labels,
        "graph": defaultdict(list, {0: [1], 1: [0, 504]}),
        **change,
    }
    for kind, value in content.items():
        (folder / f"ind.cora.{kind}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / "ind.cora.test.index").write_text("504\n503\n")
    return lambda: planetoid.read(find("Cora"), sorted(folder.iterdir()))


@case(FormatError, "ind.cora.graph asks for __builtin__.print")
def malicious_pickle(folder):
    return planetoid_files(folder, graph={0: Evil()})


@case(FormatError, "edge 1 of 'edge_index' joins 1 and 505")
def planetoid_neighbour_out_of_range(folder):
    return planetoid_files(folder, graph={0: [1], 1: [505]})


@case(FormatError, "ind.cora.graph does not hold a dictionary of neighbour lists")
def planetoid_graph_of_another_kind(folder):
    return planetoid_files(folder, graph=[[1], [0]])


@case(FormatError, "ind.cora.tx has 3 rows, but there are 2 test nodes")
def planetoid_features_that_do_not_fit(folder):
    return planetoid_files(folder, tx=sparse.csr_matrix(np.ones((3, 3))))


@case(FormatError, "ind.cora.allx holds a matrix of shape (2, 1073741824), too large to read")
def planetoid_matrix_that_fills_the_memory(folder):
    return planetoid_files(folder, allx=sparse.csr_matrix((2, 2**30), dtype=np.float32))


@case(FormatError, "ind.cora.test.index does not hold one node number a line")
def planetoid_test_index_of_text(folder):
    run = planetoid_files(folder)
    (folder / "ind.cora.test.index").write_text("first\n")
    return run


@case(DataError, "No file whose name ends with '.graph' was given", names="graph")
def planetoid_without_graph(folder):
    planetoid_files(folder)
    (folder / "ind.cora.graph").unlink()
    return lambda: planetoid.read(find("Cora"), sorted(folder.iterdir()))


@case(FormatError, "wiki_views2M.pt does not hold a tensor alone")
def malicious_tensor_file(folder):
    for kind in ("features", "edges"):
        torch.save(torch.zeros(2, 2, dtype=torch.int64), folder / f"wiki_{kind}2M.pt")
    torch.save(Evil(), folder / "wiki_views2M.pt")
    return lambda: wiki.read(find("Wiki"), sorted(folder.iterdir()))


# Images.


def images(folder, magic=b"\x00\x00\x08\x03", shape=(12, 2, 2), pixels=48, digit=3):
    for part in ("train", "t10k"):
        content = magic + struct.pack(">III", *shape) + bytes(pixels)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
        content = b"\x00\x00\x08\x01" + struct.pack(">I", 12) + bytes([digit] * 12)
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content))
    return lambda: mnist.read(find("MNIST"), sorted(folder.iterdir()))


@case(FormatError, "train-images-idx3-ubyte.gz does not start as an idx file")
def idx_wrong_magic(folder):
    return images(folder, magic=b"\x00\x00\x0d\x03")


@case(FormatError, "announces 4,000,000 values of shape (1000000, 2, 2), but holds 48")
def idx_wrong_count(folder):
    return images(folder, shape=(1_000_000, 2, 2))


@case(FormatError, "has 12 labels for 11 images")
def idx_labels_that_do_not_fit(folder):
    return images(folder, shape=(11, 2, 2), pixels=44)


@case(FormatError, "label 0 is 77, not a digit")
def idx_label_out_of_range(folder):
    return images(folder, digit=77)


@case(FormatError, "holds more than its limit")
def gzip_bomb(folder):
    run = images(folder)
    bomb = gzip.compress(bytes(64 << 20))
    (folder / "train-images-idx3-ubyte.gz").write_bytes(bomb)
    return run


@case(FormatError, "not a whole gzip file")
def gzip_cut_short(folder):
    run = images(folder)
    path = folder / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    return run


@case(ConfigError, "'subset' is 3; take at least 10 images", names="subset")
def subset_too_small(folder):
    images(folder)
    return lambda: mnist.read(find("MNIST"), sorted(folder.iterdir()), subset=3)


# Places.


@case(DataError, "There is no file or folder")
def missing_file(folder):
    return lambda: open_dataset(folder / "graph.npz")


@case(DataError, "There is no file or folder")
def file_where_a_folder_should_be(folder):
    (folder / "pets").write_text("not a folder")
    return lambda: open_dataset(folder / "pets" / "edges.csv")


@case(DataError, "graph.npz is missing")
def folder_where_a_file_should_be(folder):
    (folder / "graph.npz").mkdir()
    return lambda: heterophilous.read(find("Actor"), [folder / "graph.npz"])


@case(FormatError, "is not of a kind that can be read")
def unknown_suffix(folder):
    (folder / "graph.gexf").touch()
    return lambda: open_dataset(folder / "graph.gexf")


def snapshot(folder):
    return {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


def test_there_are_enough():
    assert len(CASES) >= 25


@pytest.mark.parametrize(("build", "kind", "message", "names"), CASES)
def test_bad_file(tmp_path, monkeypatch, capsys, build, kind, message, names):
    folder = tmp_path / "data"
    folder.mkdir()
    run = build(folder)
    before = snapshot(tmp_path)
    monkeypatch.chdir(folder)
    with pytest.raises(kind) as raised:
        run()
    text = str(raised.value)
    assert message in text
    assert (str(folder) if names is None else names) in text
    assert "\n" not in text
    assert "Traceback" not in text
    assert text[-1] in ".?"
    assert 1 <= len(re.findall(r"[.?!](?=\s|$)", text)) <= 2
    assert snapshot(tmp_path) == before
    assert capsys.readouterr() == ("", "")
