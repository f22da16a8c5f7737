import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Split
from nlsf.data.protocols import PROTOCOLS, draw
from nlsf.data.split_file import write_split
from nlsf.errors import ConfigError, DataError


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
@pytest.mark.parametrize("n", [0, 1, 4])
def test_no_part_is_empty(protocol, n):
    with pytest.raises(ConfigError, match=r"leaves no (training|validation) examples of the \d"):
        draw(nodes(torch.arange(n) % 2, 2), protocol, 0)


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
