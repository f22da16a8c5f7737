"""What must hold for every reader: whole files are read, others are read or refused in a sentence.

A new reader is an entry of `READERS`: a function that writes small whole files into a folder and
returns what reads them.
"""

import random
import re

import numpy as np
import pytest
import torch
from scipy.io import loadmat, savemat

from fuzz_damage import damaged
from fuzz_files import KINDS
from fuzz_readers import fault
from nlsf.data.dataset import Dataset
from nlsf.errors import NLSFError

OTHER_FORMATS = ("split .json", "checkpoint", "cached spectrum", "run .toml", "experiment .toml")
READERS = {name: write for name, write in KINDS.items() if name not in OTHER_FORMATS}

WRONG_BYTES = {
    "empty": lambda content: b"",
    "a byte short": lambda content: content[:-1],
    "half of it": lambda content: content[: len(content) // 2],
    "twice": lambda content: 2 * content,
    "text": lambda content: b"something else\n",
    "zeros": lambda content: bytes(len(content)),
    "noise": lambda content: random.Random(0).randbytes(len(content)),
}
WRONG_ARRAYS = {
    "text": lambda a: np.full(a.shape, "a"),
    "complex": lambda a: a + 1j,
    "not numbers": lambda a: np.full(a.shape, np.nan),
    "negative": lambda a: -1.0 * a - 7,
    "huge": lambda a: 1e300 * (a.astype(float) + 1),
    "nothing": lambda a: a[:0],
    "one less": lambda a: a[:-1],
    "one dimension more": lambda a: a[..., None, None],
    "one number": lambda a: a.reshape(-1)[0],
}


def outcome(read, path):
    """The data set, or ``None`` where it is refused in a sentence or two that name the file."""
    try:
        found = read()
    except NLSFError as error:
        text = str(error)
        endings = re.findall(r"ends with '(.+?)'", text)
        assert str(path.parent) in text or path.name.endswith(tuple(endings)), text
        assert "\n" not in text
        assert re.fullmatch(r".*[.?]", text)
        return None
    assert isinstance(found, Dataset)
    assert fault(found) is None
    return found


def arrays_of(path):
    """The arrays in a file by name, and what writes them again."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return dict(archive), lambda arrays: np.savez(path, **arrays)
    if path.suffix == ".mat":
        found = {name: value for name, value in loadmat(path).items() if name[0] != "_"}
        full = {
            name: np.asarray(getattr(v, "todense", lambda v=v: v)()) for name, v in found.items()
        }
        return full, lambda arrays: savemat(path, arrays)
    if path.suffix == ".pt":
        whole = {"": torch.load(path).numpy()}
        return whole, lambda arrays: torch.save(torch.from_numpy(arrays[""]), path)
    return {}, None


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd):
    yield
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", READERS)
def test_whole_files_are_a_valid_data_set_each_time(name, folder):
    read = READERS[name](folder)
    found, again = outcome(read, folder), outcome(read, folder)
    assert torch.equal(found.y.nan_to_num(), again.y.nan_to_num())
    assert found.num_examples == len(found.y) > 0
    for graph, twin in zip(found.graphs, again.graphs, strict=True):
        ends = graph.edge_index
        assert torch.equal(ends, twin.edge_index)
        assert (ends.dtype, ends.shape[0]) == (torch.int64, 2)
        # Both directions of every edge, each once and in order, and no self loops.
        number = ends[0] * graph.num_nodes + ends[1]
        assert (number.diff() > 0).all()
        assert torch.equal(number, (ends[1] * graph.num_nodes + ends[0]).sort().values)
        assert (ends[0] != ends[1]).all()
        if graph.x is not None:
            assert (graph.x.dtype, len(graph.x)) == (torch.float32, graph.num_nodes)
    if found.signals is not None:
        assert found.signals.shape[:2] == (found.num_examples, found.graphs[0].num_nodes)
    for split in (split for splits in found.given.values() for split in splits):
        assert torch.isin(torch.cat(split.parts), found.labelled).all()


@pytest.mark.parametrize("name", READERS)
def test_other_bytes_are_read_or_refused(name, folder):
    read = READERS[name](folder)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for kind, change in WRONG_BYTES.items():
            path.write_bytes(change(content))
            before = sorted(folder.rglob("*"))
            found = outcome(read, path)
            assert found is None or kind not in ("zeros", "noise"), kind
            assert sorted(folder.rglob("*")) == before
        rng = random.Random(name)
        for _ in range(10):
            path.write_bytes(damaged(content, rng))
            outcome(read, path)
        path.write_bytes(content)
    assert outcome(read, folder) is not None


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_not_there_is_named(name, folder):
    read = READERS[name](folder)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        path.unlink()
        outcome(read, path)
        path.mkdir()
        outcome(read, path)
        path.rmdir()
        path.write_bytes(content)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of making the wrong arrays
@pytest.mark.parametrize("name", READERS)
def test_arrays_of_another_kind_or_shape_are_read_or_refused(name, folder):
    read = READERS[name](folder)
    for path in sorted(folder.iterdir()):
        arrays, write = arrays_of(path)
        for field, array in arrays.items():
            for kind, change in WRONG_ARRAYS.items():
                if not (path.suffix == ".pt" and kind == "text"):
                    write({**arrays, field: np.asarray(change(array))})
                    outcome(read, path)
            if field:
                write({other: value for other, value in arrays.items() if other != field})
                outcome(read, path)
        if arrays:
            write(arrays)
