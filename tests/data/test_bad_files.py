"""Published files, tensors and places that are wrong, damaged or malicious."""

import gzip
import pickle

import pytest
import torch

from data.bad_files import Cases, Evil
from fuzz_files import known, mnist_idx
from nlsf.data.catalogue import find
from nlsf.data.own import open_dataset
from nlsf.data.readers import heterophilous, images, planetoid
from nlsf.errors import ConfigError, DataError, FormatError

CASES = Cases()


# Published files, pickles and tensors.


def planetoid_files(folder):
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps({0: Evil()}, protocol=2))
    return lambda: planetoid.read(find("Cora"), sorted(folder.iterdir()))


@CASES.case(FormatError, "ind.cora.test.index is not the published file of Cora: its SHA-256 is")
def malicious_pickle(folder):
    return planetoid_files(folder)


@CASES.case(DataError, "No file whose name ends with '.test.index' was given", names="test.index")
def planetoid_without_index(folder):
    planetoid_files(folder)
    (folder / "ind.cora.test.index").unlink()
    return lambda: planetoid.read(find("Cora"), sorted(folder.iterdir()))


@CASES.case(FormatError, "images-idx3-ubyte.gz is not the published file of MNIST")
def gzip_bomb(folder):
    for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (folder / f"{part}-ubyte.gz").write_bytes(gzip.compress(bytes(8 << 20)))
    return lambda: images.read_mnist(find("MNIST"), sorted(folder.iterdir()))


@CASES.case(FormatError, "wiki_views2M.pt does not hold a tensor alone")
def malicious_tensor_file(folder):
    for kind in ("features", "edges"):
        torch.save(torch.zeros(2, 2, dtype=torch.int64), folder / f"wiki_{kind}2M.pt")
    torch.save(Evil(), folder / "wiki_views2M.pt")
    return lambda: heterophilous.read_wiki(find("Wiki"), sorted(folder.iterdir()))


def some_images(folder, subset):
    mnist_idx(folder)
    entry = known("MNIST", folder)
    return lambda: images.read_mnist(entry, sorted(folder.iterdir()), subset=subset)


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
    assert len(CASES) >= 11


@pytest.mark.parametrize(("build", "kind", "message", "names"), CASES)
def test_bad_file(assert_refused, build, kind, message, names):
    assert_refused(build, kind, message, names)
