"""Planetoid pickles: real ones are read exactly, hostile ones are refused and do nothing."""

import os
import pickle
import resource
import struct
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from nlsf.data.readers.planetoid import restricted_load
from nlsf.errors import FormatError

MATRIX = sparse.csr_matrix(np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 3.0]], dtype=np.float32))


@pytest.fixture
def store(tmp_path):
    def store(content, protocol=2):
        raw = content if isinstance(content, bytes) else pickle.dumps(content, protocol)
        path = tmp_path / "ind.test.x"
        path.write_bytes(raw)
        return path

    return store


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("dtype", [">f8", "<f4", "i4", "u1", "?"])
def test_arrays_keep_values_dtype_and_shape(store, protocol, dtype):
    for array in (np.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4).T, np.zeros((0, 5))):
        array = array.astype(dtype)
        found = restricted_load(store(array, protocol))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
        found[...] = 0
        assert found.base is None, "it owns its memory"


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_matrices(store, protocol):
    found = restricted_load(store(MATRIX, protocol))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.toarray(), MATRIX.toarray())


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_neighbour_lists_are_a_plain_dictionary(store, protocol):
    found = restricted_load(store(defaultdict(list, {0: [1, 2], 1: [0], 2: [0]}), protocol))
    assert type(found) is dict
    assert found == {0: [1, 2], 1: [0], 2: [0]}


def test_scalars(store):
    assert restricted_load(store(np.float64(2.5))) == 2.5


class Calls:
    def __init__(self, function, *arguments):
        self.how = function, arguments

    def __reduce__(self):
        return self.how


class WithState(Calls):
    def __init__(self, function, arguments, state):
        self.how = function, arguments, state


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    ("function", "arguments", "asked"),
    [
        (os.system, ("touch hacked",), "system"),
        (eval, ("1 + 1",), "eval"),
        (getattr, ({}, "keys"), "getattr"),
        (np.fromfile, ("/etc/hostname",), "fromfile"),
        (bytearray, (1 << 40,), "bytearray"),
        (OrderedDict, (), "OrderedDict"),
    ],
)
def test_nothing_is_called_that_is_not_on_the_list(
    store, monkeypatch, tmp_path, protocol, function, arguments, asked
):
    monkeypatch.chdir(tmp_path)
    path = store(Calls(function, *arguments), protocol)
    with pytest.raises(FormatError, match=asked) as caught:
        restricted_load(path)
    assert str(path) in str(caught.value)
    assert not (tmp_path / "hacked").exists()


def test_arrays_of_objects_are_refused(store):
    with pytest.raises(FormatError, match="dtype 'O8'"):
        restricted_load(store(np.array([1, "a"], dtype=object)))


def test_structured_and_text_arrays_are_refused(store):
    for array in (np.zeros(2, dtype=[("a", "f4")]), np.array(["a", "b"])):
        with pytest.raises(FormatError, match="dtype"):
            restricted_load(store(array))


def broken(**changes):
    matrix = MATRIX.copy()
    for name, value in changes.items():
        vars(matrix)[name] = value
    return matrix


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"indices": np.array([1, 0, 10**6], dtype=np.int32)}, "outside its 3 columns"),
        ({"indices": np.array([1, 0, -1], dtype=np.int32)}, "outside its 3 columns"),
        ({"indices": np.array([1, 0], dtype=np.int32)}, "number of entries"),
        ({"indices": np.array([1.0, 0.0, 2.0])}, "dtype float64"),
        ({"indptr": np.array([0, 1, 10**9], dtype=np.int32)}, "number of entries"),
        ({"indptr": np.array([0, 4, 3], dtype=np.int32)}, "2 rows"),
        ({"indptr": np.array([-1, 1, 3], dtype=np.int32)}, "2 rows"),
        ({"indptr": np.array([], dtype=np.int32)}, "2 rows"),
        ({"data": np.ones((3, 1))}, "not a vector"),
        ({"data": [1, 2, 3]}, "not a vector"),
        ({"_shape": (2, -3)}, "shape"),
        ({"_shape": (2,)}, "shape"),
        ({"_shape": "ab"}, "shape"),
    ],
)
def test_a_matrix_whose_parts_disagree_is_refused(store, changes, words):
    with pytest.raises(FormatError, match=words):
        restricted_load(store(broken(**changes)))


def test_an_array_shorter_than_its_shape_is_refused(store):
    raw = pickle.dumps(np.zeros(4, dtype=np.int32), 2)
    path = store(raw.replace(b"K\x04\x85", b"K\x05\x85"))
    with pytest.raises(FormatError, match="16 bytes"):
        restricted_load(path)


def test_a_state_cannot_change_the_reader(store):
    """BUILD on a class or on a dictionary would set attributes that outlive the file."""
    build_on_class = b"\x80\x02ccollections\ndefaultdict\nN}q\x00U\x08__init__K\x01s\x86b."
    with pytest.raises(FormatError):
        restricted_load(store(build_on_class))
    with pytest.raises(FormatError):
        restricted_load(store(WithState(defaultdict, (list,), {"keys": 1})))
    assert restricted_load(store(defaultdict(list, {0: [1]}))) == {0: [1]}


@pytest.mark.parametrize("length", [0, 1, 2, 10, 60, -1])
def test_a_truncated_file_is_refused(store, length):
    raw = pickle.dumps(MATRIX, 2)
    with pytest.raises(FormatError, match=r"ind\.test\.x"):
        restricted_load(store(raw[:length]))


def test_noise_is_refused(store):
    rng = np.random.default_rng(0)
    for _ in range(200):
        raw = bytearray(pickle.dumps(MATRIX, 2))
        for place in rng.integers(0, len(raw), 3):
            raw[place] = rng.integers(256)
        try:
            found = restricted_load(store(bytes(raw)))
        except FormatError:
            continue
        if sparse.issparse(found):
            found.check_format(full_check=True)


def test_a_small_file_cannot_fill_the_memory(store):
    huge = struct.pack("<I", 2**32 - 1)
    path = store(b"\x80\x02N" + b"r" + huge + b".")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert restricted_load(path) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kilobytes"


def test_a_large_file_is_refused_before_it_is_read(store):
    path = store(MATRIX)
    with pytest.raises(FormatError, match="may have 100"):
        restricted_load(path, max_bytes=100)


def test_a_missing_file_stays_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        restricted_load(tmp_path / "ind.none.x")


@pytest.mark.data
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_real_files(root: Path, name):
    def part(suffix):
        return restricted_load(root / "planetoid" / f"ind.{name}.{suffix}")

    allx, ally, tx, ty, graph = map(part, ("allx", "ally", "tx", "ty", "graph"))
    assert allx.shape[0] == ally.shape[0]
    assert tx.shape == (1000, allx.shape[1])
    assert (ally.sum(1) <= 1).all()
    assert (ty.sum(1) == 1).all()
    assert sorted(graph) == list(range(len(graph)))
    np.testing.assert_array_equal(part("x").toarray(), allx[: len(part("y"))].toarray())
