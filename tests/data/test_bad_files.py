"""Pickles, images and places that are wrong, damaged or malicious."""

import gzip
import pickle
import struct
from collections import defaultdict

import numpy as np
import pytest
import torch
from scipy import sparse

from data.bad_files import Cases, Evil
from nlsf.data.catalogue.lookup import find
from nlsf.data.own.datasets import open_dataset
from nlsf.data.readers import heterophilous, mnist, planetoid
from nlsf.errors import ConfigError, DataError, FormatError

CASES = Cases()


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


@CASES.case(FormatError, "ind.cora.graph asks for __builtin__.print")
def malicious_pickle(folder):
    return planetoid_files(folder, graph={0: Evil()})


@CASES.case(FormatError, "edge 1 of 'edge_index' joins 1 and 505")
def planetoid_neighbour_out_of_range(folder):
    return planetoid_files(folder, graph={0: [1], 1: [505]})


@CASES.case(FormatError, "ind.cora.graph does not hold a dictionary of neighbour lists")
def planetoid_graph_of_another_kind(folder):
    return planetoid_files(folder, graph=[[1], [0]])


@CASES.case(FormatError, "ind.cora.tx has 3 rows, but there are 2 test nodes")
def planetoid_features_that_do_not_fit(folder):
    return planetoid_files(folder, tx=sparse.csr_matrix(np.ones((3, 3))))


@CASES.case(FormatError, "ind.cora.allx holds a matrix of shape (2, 1073741824), too large to read")
def planetoid_matrix_that_fills_the_memory(folder):
    return planetoid_files(folder, allx=sparse.csr_matrix((2, 2**30), dtype=np.float32))


@CASES.case(FormatError, "ind.cora.test.index does not hold one node number a line")
def planetoid_test_index_of_text(folder):
    run = planetoid_files(folder)
    (folder / "ind.cora.test.index").write_text("first\n")
    return run


@CASES.case(DataError, "No file whose name ends with '.graph' was given", names="graph")
def planetoid_without_graph(folder):
    planetoid_files(folder)
    (folder / "ind.cora.graph").unlink()
    return lambda: planetoid.read(find("Cora"), sorted(folder.iterdir()))


@CASES.case(FormatError, "wiki_views2M.pt does not hold a tensor alone")
def malicious_tensor_file(folder):
    for kind in ("features", "edges"):
        torch.save(torch.zeros(2, 2, dtype=torch.int64), folder / f"wiki_{kind}2M.pt")
    torch.save(Evil(), folder / "wiki_views2M.pt")
    return lambda: heterophilous.read_wiki(find("Wiki"), sorted(folder.iterdir()))


# Images.


def images(folder, magic=b"\x00\x00\x08\x03", shape=(12, 2, 2), pixels=48, digit=3):
    for part in ("train", "t10k"):
        content = magic + struct.pack(">III", *shape) + bytes(pixels)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
        content = b"\x00\x00\x08\x01" + struct.pack(">I", 12) + bytes([digit] * 12)
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content))
    return lambda: mnist.read(find("MNIST"), sorted(folder.iterdir()))


@CASES.case(FormatError, "train-images-idx3-ubyte.gz does not start as an idx file")
def idx_wrong_magic(folder):
    return images(folder, magic=b"\x00\x00\x0d\x03")


@CASES.case(FormatError, "announces 4,000,000 values of shape (1000000, 2, 2), but holds 48")
def idx_wrong_count(folder):
    return images(folder, shape=(1_000_000, 2, 2))


@CASES.case(FormatError, "has 12 labels for 11 images")
def idx_labels_that_do_not_fit(folder):
    return images(folder, shape=(11, 2, 2), pixels=44)


@CASES.case(FormatError, "label 0 is 77, not a digit")
def idx_label_out_of_range(folder):
    return images(folder, digit=77)


@CASES.case(FormatError, "holds more than its limit")
def gzip_bomb(folder):
    run = images(folder)
    bomb = gzip.compress(bytes(64 << 20))
    (folder / "train-images-idx3-ubyte.gz").write_bytes(bomb)
    return run


@CASES.case(FormatError, "not a whole gzip file")
def gzip_cut_short(folder):
    run = images(folder)
    path = folder / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    return run


def some_images(folder, subset):
    images(folder)
    return lambda: mnist.read(find("MNIST"), sorted(folder.iterdir()), subset=subset)


@CASES.case(ConfigError, "subset must be from 10 to 12, not 3", names="subset")
def subset_too_small(folder):
    return some_images(folder, 3)


@CASES.case(ConfigError, "subset must be from 10 to 12, not 13", names="subset")
def subset_of_more_images_than_there_are(folder):
    return some_images(folder, 13)


@CASES.case(ConfigError, "subset must be a whole number, not 'abc'", names="subset")
def subset_that_is_no_number(folder):
    return some_images(folder, "abc")


# Places.


@CASES.case(DataError, "There is no file or folder")
def missing_file(folder):
    return lambda: open_dataset(folder / "graph.npz")


@CASES.case(DataError, "There is no file or folder")
def file_where_a_folder_should_be(folder):
    (folder / "pets").write_text("not a folder")
    return lambda: open_dataset(folder / "pets" / "edges.csv")


@CASES.case(DataError, "graph.npz is missing")
def folder_where_a_file_should_be(folder):
    (folder / "graph.npz").mkdir()
    return lambda: heterophilous.read(find("Actor"), [folder / "graph.npz"])


@CASES.case(FormatError, "is not of a kind that can be read")
def unknown_suffix(folder):
    (folder / "graph.gexf").touch()
    return lambda: open_dataset(folder / "graph.gexf")


def test_there_are_enough():
    assert len(CASES) >= 19


@pytest.mark.parametrize(("build", "kind", "message", "names"), CASES)
def test_bad_file(assert_refused, build, kind, message, names):
    assert_refused(build, kind, message, names)
