import errno
import json
import os
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.catalogue import load
from nlsf.data.dataset import Dataset, Split
from nlsf.data.protocols import draw
from nlsf.data.split_file import digest, read_split, write_split
from nlsf.errors import DataError, FormatError

GOLDEN = json.loads(Path(__file__).with_name("golden_splits.json").read_text())


def dataset(y, name="toy"):
    y = torch.as_tensor(y)
    graph = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=len(y))
    classes = () if y.is_floating_point() else ("a", "b")
    return Dataset(name, "node", (graph,), y, classes=classes)


TOY = dataset([0, 1, 0, 1, 0, 1, -1])
SPLIT = Split([4, 0], [1, 2], [3], protocol="mine", seed=7)


@pytest.fixture
def path(tmp_path):
    write_split(tmp_path / "split.json", SPLIT, TOY)
    return tmp_path / "split.json"


def test_round_trip(path):
    split = read_split(path, TOY)
    assert digest(split) == digest(SPLIT)
    assert [part.tolist() for part in split.parts] == [[0, 4], [1, 2], [3]]
    assert (split.protocol, split.seed) == ("mine", 7)
    assert [file.name for file in path.parent.iterdir()] == ["split.json"]


def test_the_file_is_made_for_diffs(path):
    lines = path.read_text().splitlines()
    assert lines[0] == "{"
    assert lines[-1] == "}"
    assert lines[1] == '"data": "toy",'
    assert '"train": [0,4],' in lines
    assert lines[1:-1] == sorted(lines[1:-1])
    before = path.read_bytes()
    write_split(path, read_split(path, TOY), TOY)
    assert path.read_bytes() == before


def test_others_may_read_the_file_as_they_may_any(path):
    (path.parent / "plain").write_text("")
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode


def test_regressions_with_unknown_targets(tmp_path):
    y = torch.tensor([[1.0], [torch.nan], [3.0], [4.0]])
    write_split(tmp_path / "s.json", Split([0], [2], [3]), dataset(y))
    # Another NaN, bit by bit, means the same.
    y[1] = torch.tensor(0x7FC00001, dtype=torch.int32).view(torch.float32)
    assert read_split(tmp_path / "s.json", dataset(y)).test.tolist() == [3]
    y[0] = 1.5
    with pytest.raises(FormatError, match="other data"):
        read_split(tmp_path / "s.json", dataset(y))


def test_digests_tell_splits_apart():
    splits = [
        SPLIT,
        Split([0], [1, 2], [3, 4]),
        Split([0, 4], [1, 2, 3], []),
        Split([0, 4], [1], [2, 3]),
        Split([0, 4], [1, 2], [5]),
    ]
    assert len({digest(split) for split in splits}) == len(splits)
    assert digest(Split([0, 4], [2, 1], [3])) == digest(SPLIT), "order and origin do not matter"


DAMAGE = {
    "not the format": ("format", "nlsf-split 9", "'format' must be 'nlsf-split 1', not 'nlsf-spl"),
    "format of another type": ("format", 1, "'format' must be a text"),
    "name of another type": ("data", None, "'data' must be a text"),
    "other count": ("examples", 8, "'examples' says 8, but toy has 7"),
    "count as true": ("examples", True, "'examples' must be a whole number"),
    "other labels": ("labels", "0" * 64, r"'labels' does not fit .* other data \('toy'\)"),
    "labels of another type": ("labels", ["0"], "'labels' must be a text"),
    "protocol of another type": ("protocol", {}, "'protocol' must be a text"),
    "seed of another type": ("seed", 0.5, "'seed' must be a whole number"),
    "part of another type": ("train", "0,4", "'train' must be a list"),
    "float id": ("train", [0, 4.0], r"'train' must hold whole numbers from 0 to 6, not 4\.0"),
    "true as id": ("train", [True], "'train' must hold whole numbers .*, not True"),
    "text as id": ("val", ["1"], "'val' must hold whole numbers"),
    "negative id": ("val", [-1], "from 0 to 6, not -1"),
    "id out of range": ("test", [7], "from 0 to 6, not 7"),
    "huge id": ("test", [10**30], "from 0 to 6, not 1000"),
    "id without label": ("test", [6], "'test' holds example 6, which has no label"),
    "empty part": ("val", [], "'val' holds no examples"),
    "twice in one part": ("train", [0, 0], "name an example twice"),
    "twice in two parts": ("train", [0, 1], "name an example twice"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_wrong_fields_are_named(path, case):
    field, value, message = DAMAGE[case]
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(FormatError, match=rf"split\.json.*{message}"):
        read_split(path, TOY)


@pytest.mark.parametrize("field", ["format", "labels", "examples", "seed", "train", "val", "test"])
def test_missing_fields_are_named(path, field):
    fields = json.loads(path.read_text())
    del fields[field]
    path.write_text(json.dumps(fields))
    with pytest.raises(FormatError, match=f"the field '{field}' is missing"):
        read_split(path, TOY)


CONTENT = {
    "empty": (b"", "line 1: not JSON"),
    "truncated": (b'{\n"data": "toy",\n"exam', "line 3: not JSON"),
    "not text": (b"\xff\xfe\x00\xd8", "not a JSON text"),
    "a list": (b"[1, 2]", "must be a JSON object"),
    "deep": (b"[" * 60_000, "JSON"),
    "long number": (b'{"seed": ' + b"9" * 10_000 + b"}", "not a JSON text"),
    "too large": (b" " * 70_000, "too large for a split of 7 examples"),
}


@pytest.mark.parametrize("case", CONTENT)
def test_other_content_is_refused(path, case):
    content, message = CONTENT[case]
    path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"split\.json.*{message}"):
        read_split(path, TOY)


def test_a_split_of_other_data_is_refused(path):
    with pytest.raises(FormatError, match="'examples' says 7, but more has 8"):
        read_split(path, dataset([0, 1, 0, 1, 0, 1, 0, 1], "more"))
    with pytest.raises(FormatError, match="labels of other: the split is of other data"):
        read_split(path, dataset([0, 1, 0, 1, 1, 1, -1], "other"))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none\.json is missing"):
        read_split(tmp_path / "none.json", TOY)
    with pytest.raises(DataError, match="cannot be read"):
        read_split(tmp_path, TOY)
    with pytest.raises(DataError, match=r"split\.json cannot be written: No such file"):
        write_split(tmp_path / "no" / "split.json", SPLIT, TOY)


def test_only_splits_that_can_be_read_are_written(tmp_path):
    for split in (Split([0], [1], [6]), Split([0], [1], [9]), Split([0], [], [1])):
        with pytest.raises(FormatError, match=r"split\.json: the field"):
            write_split(tmp_path / "split.json", split, TOY)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(path, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, call, full)
    with pytest.raises(DataError, match=r"cannot be written: No space left on device\."):
        write_split(path, Split([5], [1], [2]), TOY)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["split.json"]


def drawn(name, root=None):
    """The digests of all splits of a line of golden_splits.json, "Cora random" for example.

    The file was written once, from label vectors that were read without this package's readers. If
    the protocols ever change on purpose, write it again:

        golden = {name: drawn(name, root) for name in GOLDEN}
        path.write_text(json.dumps(golden, indent=1) + "\\n")
    """
    source, protocol = name.split()
    members = load(source, root)
    return [digest(draw(members, protocol, seed)) for seed in range(len(GOLDEN[name]))]


def test_golden_splits_of_embedded_data():
    assert drawn("digits random") == GOLDEN["digits random"]


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in GOLDEN if name != "digits random"])
def test_golden_splits_of_real_data(root, name):
    assert drawn(name, root) == GOLDEN[name]


def test_golden_splits_differ_by_seed():
    assert len(GOLDEN) == 7
    for digests in GOLDEN.values():
        assert len(set(digests)) == len(digests) > 0
