import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from nlsf.data.readers.array_files import read_mat
from nlsf.errors import FormatError

VARIABLES = {
    "A": sparse.csc_matrix(np.diag([1.0, 0.0, 3.0])),
    "logical": sparse.csc_matrix(np.eye(3, dtype=bool)),
    "none": sparse.csc_matrix((4, 2)),
    "x": np.arange(6.0).reshape(2, 3),
    "cube": np.arange(24, dtype=np.int16).reshape(2, 3, 4),
    "tiny": np.array([[7]], dtype=np.uint8),
    "large": np.array([[2**40, -1]]),
    "single": np.array([[0.5]], dtype=np.float32),
    "mask": np.array([True, False]),
    "empty": np.zeros((0, 3)),
    "a_name_of_thirty_one_characters": np.ones((1, 1)),
}


def same(ours, theirs):
    if sparse.issparse(theirs):
        return ours.shape == theirs.shape and np.array_equal(ours.toarray(), theirs.toarray())
    return np.array_equal(ours, theirs)


@pytest.mark.parametrize("compressed", [False, True])
def test_it_reads_what_scipy_reads(tmp_path, compressed):
    path = tmp_path / "all.mat"
    savemat(path, {**VARIABLES, "text": "hello"}, do_compression=compressed)
    theirs = loadmat(path)
    ours = read_mat(path, VARIABLES)
    assert ours.keys() == VARIABLES.keys()
    for name in VARIABLES:
        assert same(ours[name], theirs[name]), name


@pytest.mark.data
@pytest.mark.parametrize("name", ["Cornell5", "Johns Hopkins55"])
def test_published_files(root, name):
    path = root / f"fb100/{name}.mat"
    theirs = loadmat(path)
    ours = read_mat(path, ("A", "local_info"))
    assert (ours["A"] != sparse.csc_array(theirs["A"])).nnz == 0
    assert same(ours["local_info"], theirs["local_info"])


@pytest.mark.parametrize("value", ["text", np.array([[1j]]), {"field": 1.0}])
def test_other_variables_are_refused_if_asked_for(tmp_path, value):
    path = tmp_path / "other.mat"
    savemat(path, {"A": value, "x": [1.0]})
    assert read_mat(path, ("x",))["x"].tolist() == [[1.0]]
    with pytest.raises(FormatError, match="variable 'A': it is not a matrix of real numbers"):
        read_mat(path, ("A",))


def outcome(path):
    """The sums of what is read, or the message of the error."""
    try:
        return [float(value.sum()) for value in read_mat(path, ("A", "x")).values()]
    except FormatError as error:
        return str(error)


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_never_does_more_than_an_error(tmp_path, compressed):
    path = tmp_path / "all.mat"
    savemat(path, {"A": VARIABLES["A"], "x": VARIABLES["x"]}, do_compression=compressed)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    with np.errstate(all="ignore"):
        for _ in range(150):
            damaged = bytearray(content)
            damaged[rng.integers(128, len(content))] ^= rng.integers(1, 256)
            path.write_bytes(damaged[: rng.integers(128, 2 * len(content))])
            found = outcome(path)
            refused += isinstance(found, str) and "all.mat" in found
    assert refused > 90
    # zlib's checksum finds the rest.
    assert not compressed or refused > 135
