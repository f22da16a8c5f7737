import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.catalogue import load
from nlsf.data.dataset import Dataset, Split
from nlsf.data.protocols import PROTOCOLS, digest, draw, read_split, write_split
from nlsf.errors import ConfigError, DataError, FormatError


def nodes(y, classes=None, given=None):
    """A data set of which only the labels matter."""
    y = torch.as_tensor(y)
    graph = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=len(y))
    names = () if y.is_floating_point() else tuple(map(str, range(classes or int(y.max()) + 1)))
    return Dataset("toy", "node", (graph,), y, classes=names, given=given or {})


def uneven(sizes, unknown=0, seed=0):
    """Classes of these sizes in a random order, and examples whose label is not known."""
    y = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(unknown, -1)])
    return nodes(np.random.default_rng(seed).permutation(y), len(sizes))


LARGE = uneven([1500, 700, 300], unknown=400)
DRAWN = ["random", "sparse", "60-20-20", "48-32-20", "80-10-10", "50-25-25"]


def sizes(split):
    return tuple(part.numel() for part in split.parts)


@pytest.mark.parametrize("protocol", DRAWN)
def test_laws_of_every_drawn_split(protocol):
    split = draw(LARGE, protocol, 3)
    together = torch.cat(split.parts)
    assert together.unique().numel() == together.numel(), "disjoint"
    assert (LARGE.y[together] >= 0).all(), "unknown labels are never drawn"
    assert all(part.equal(part.sort().values) and part.dtype == torch.int64 for part in split.parts)
    assert (split.protocol, split.seed) == (protocol, 3)
    again, other = draw(LARGE, protocol, 3), draw(LARGE, protocol, 4)
    assert all(a.equal(b) for a, b in zip(split.parts, again.parts, strict=True))
    assert not any(a.equal(b) for a, b in zip(split.parts, other.parts, strict=True))


@pytest.mark.parametrize("protocol", DRAWN)
def test_global_random_numbers_are_neither_used_nor_moved(protocol):
    first = draw(LARGE, protocol, 0)
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    second = draw(LARGE, protocol, 0)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert torch.get_rng_state().equal(before[1])
    assert first.train.equal(second.train)


def test_random_sizes():
    split = draw(LARGE, "random", 0)
    assert sizes(split) == (60, 500, 1000)
    assert LARGE.y[split.train].bincount().tolist() == [20, 20, 20]


@pytest.mark.parametrize("counts", [[1500, 700, 300], [800, 777, 400, 300], [1000, 10]])
def test_sparse_sizes(counts):
    dataset = uneven(counts, unknown=33)
    n = sum(counts)
    each = round(0.025 * n / len(counts))
    split = draw(dataset, "sparse", 0)
    taken = [min(each, count) for count in counts]
    assert dataset.y[split.train].bincount().tolist() == taken
    assert sizes(split)[1:] == (round(0.025 * n), n - sum(taken) - round(0.025 * n))


@pytest.mark.parametrize("n", [10, 188, 1001])
@pytest.mark.parametrize("shares", [(60, 20, 20), (48, 32, 20), (29, 58, 13)])
def test_percentages_cut_down(n, shares):
    split = draw(nodes(torch.arange(n) % 2), "-".join(map(str, shares)), 0)
    a, b = n * shares[0] // 100, n * shares[1] // 100
    assert sizes(split) == (a, b, n - a - b)


def test_validation_is_as_mixed_as_what_training_leaves():
    """A class that gives up most of its examples must not be rarer in validation than in test."""
    dataset = uneven([3000, 40])
    rare = sum(int((dataset.y[draw(dataset, "random", s).val] == 1).sum()) for s in range(60))
    assert rare / 60 == pytest.approx(500 * 20 / 3000, abs=0.8)


def test_every_example_comes_to_training():
    dataset = nodes(torch.arange(30) % 2)
    seen = torch.cat([draw(dataset, "60-20-20", seed).train for seed in range(40)]).bincount()
    assert seen.min() > 10
    assert seen.max() < 38


def test_splits_do_not_depend_on_how_classes_are_numbered():
    renamed = nodes(torch.tensor([2, 0, 1, -1])[LARGE.y], 3)
    for protocol in DRAWN:
        assert draw(LARGE, protocol, 1).val.equal(draw(renamed, protocol, 1).val)


def test_regression_is_split_by_percentages_only():
    y = torch.arange(50.0).unsqueeze(1)
    y[7] = torch.nan
    dataset = nodes(y)
    split = draw(dataset, "60-20-20", 0)
    assert sizes(split) == (29, 9, 11)
    assert 7 not in torch.cat(split.parts)
    for protocol in ("random", "sparse"):
        with pytest.raises(ConfigError, match=r"no classes.*use percentages such as '60-20-20'"):
            draw(dataset, protocol, 0)


def test_given_splits_are_found_by_number():
    dense = tuple(Split([i], [i + 1], [i + 2]) for i in range(3))
    dataset = nodes([0, 1, 0, 1, 0], given={"dense": dense, "folds": dense[:1]})
    split = draw(dataset, "dense", 2)
    assert [part.tolist() for part in split.parts] == [[2], [3], [4]]
    assert (split.protocol, split.seed) == ("dense", 2)
    for seed in (0, 7):  # a single split serves every seed
        assert draw(dataset, "folds", seed).train.tolist() == [0]
    with pytest.raises(ConfigError, match=r"toy comes with 3 'dense' splits.* no number 3"):
        draw(dataset, "dense", 3)
    with pytest.raises(ConfigError, match="without 'public' splits; choose 'dense', 'folds', '60"):
        draw(dataset, "public", 0)


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([1000, 540 - 1], "1540 in all.*539 in its smallest class and 1539 in all"),
        ([3000, 19], "19"),
    ],
)
def test_random_refuses_small_sets(counts, found):
    with pytest.raises(ConfigError, match=f"{found}.*'60-20-20'"):
        draw(uneven(counts), "random", 0)
    assert sizes(draw(uneven([1000, 540]), "random", 0)) == (40, 500, 1000)


@pytest.mark.parametrize("protocol", ["sparse", "60-20-20"])
@pytest.mark.parametrize("n", [1, 4])
def test_no_part_is_empty(protocol, n):
    with pytest.raises(ConfigError, match=r"leaves no (training|validation) examples of the \d"):
        draw(nodes(torch.arange(n) % 2, 2), protocol, 0)


@pytest.mark.parametrize("protocol", ["sparse", "60-20-20"])
def test_data_without_labels_are_not_blamed_on_the_protocol(protocol):
    with pytest.raises(ConfigError, match=r"^No example of toy has a label"):
        draw(nodes(torch.full((4,), -1), 2), protocol, 0)


@pytest.mark.parametrize("protocol", ["80-10-5", "80-20-0", "0-50-50", "60-60-80"])
def test_percentages_must_sum(protocol):
    with pytest.raises(ConfigError, match=f"'{protocol}' must be three percentages above 0"):
        draw(LARGE, protocol, 0)


@pytest.mark.parametrize(("wrong", "right"), [("randon", "random"), ("Sparse", "sparse")])
def test_unknown_protocols(wrong, right):
    with pytest.raises(ConfigError, match=f"no protocol '{wrong}'. Did you mean '{right}'"):
        draw(LARGE, wrong, 0)
    assert all(text and "\n" not in text for text in PROTOCOLS.values())


def test_negative_seeds_are_refused():
    with pytest.raises(ConfigError, match="0 or more, not -1"):
        draw(LARGE, "random", -1)


def test_split_files_by_seed(tmp_path):
    for seed in range(2):
        write_split(tmp_path / f"toy-{seed}.json", draw(LARGE, "sparse", seed), LARGE)
    for seed in range(2):
        split = draw(LARGE, str(tmp_path / "toy-{seed}.json"), seed)
        assert split.train.equal(draw(LARGE, "sparse", seed).train)
        assert (split.protocol, split.seed) == ("sparse", seed)
        assert draw(LARGE, str(tmp_path / "toy-0.json"), seed).seed == 0
    with pytest.raises(DataError, match=r"toy-2\.json is missing"):
        draw(LARGE, str(tmp_path / "toy-{seed}.json"), 2)


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
