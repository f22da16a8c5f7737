"""The catalogue is consistent, its names are found, and its data sets load."""

import importlib
import inspect
from pathlib import Path

import pytest

from nlsf.data.catalogue import CATALOGUE, find, load, options
from nlsf.data.protocols import draw
from nlsf.errors import ConfigError, DataError

EMBEDDED = [entry.name for entry in CATALOGUE.values() if not entry.files]
DOCS = Path(__file__).parents[2] / "docs" / "data.md"


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=list(CATALOGUE))
def test_entries_are_complete(entry):
    assert entry.source
    assert entry.licence
    assert entry.protocol
    module, _, function = entry.reader.partition(":")
    reader = getattr(importlib.import_module(module), function)
    assert list(inspect.signature(reader).parameters)[:2] == ["entry", "paths"]
    for file in entry.all_files:
        assert not Path(file.path).is_absolute()
        assert file.page.startswith("https://")
        assert file.url is None or (file.url.startswith("https://") and " " not in file.url)
        assert (file.sha256 is None) == (file.size is None)


def test_names_and_files_are_unique():
    from nlsf.data.catalogue import _key

    keys = [_key(name) for e in CATALOGUE.values() for name in (e.name, *e.aliases)]
    assert len(set(keys)) == len(keys)
    paths = [file.path for entry in CATALOGUE.values() for file in entry.all_files]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize(
    ("name", "nodes", "classes", "edges", "features"),
    [
        ("Cora", 2708, 7, 5278, 1433),
        ("Citeseer", 3327, 6, 4552, 3703),
        ("Pubmed", 19717, 3, 44324, 500),  # the paper prints 5 classes
        ("Chameleon", 2277, 5, 31371, 2325),
        ("Squirrel", 5201, 5, 198353, 2089),
        ("Actor", 7600, 5, 26659, 932),
    ],
)
def test_counts_of_the_papers_table_5(name, nodes, classes, edges, features):
    counts = CATALOGUE[name].statistics
    assert (counts.nodes, counts.classes, counts.edges) == (nodes, classes, edges)
    assert counts.features == features


@pytest.mark.parametrize(
    ("name", "graphs", "classes", "least", "most", "average", "features"),
    [
        ("MUTAG", 188, 2, 10, 28, 17.93, 7),
        ("PTC", 344, 2, 2, 64, 14.29, 18),
        ("ENZYMES", 600, 6, 2, 126, 32.63, 18),
        ("PROTEINS_full", 1113, 2, 4, 620, 39.06, 29),  # the paper calls it PROTEINS
        ("NCI1", 4110, 2, 3, 111, 29.87, 37),
        ("IMDB-B", 1000, 2, 12, 136, 19.77, 0),
        ("IMDB-M", 1500, 3, 7, 89, 13.00, 0),
        ("COLLAB", 5000, 3, 32, 492, 74.49, 0),  # the paper prints 74.50
    ],
)
def test_counts_of_the_papers_table_6(name, graphs, classes, least, most, average, features):
    counts = find(name).statistics
    assert (counts.examples, counts.classes, counts.features) == (graphs, classes, features)
    assert (counts.min_nodes, counts.max_nodes, counts.average_nodes) == (least, most, average)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("cora", "Cora"),
        ("CHAMELEON_FILTERED", "Chameleon-filtered"),
        ("johnshopkins55", "Johns Hopkins55"),
        ("johns-hopkins55", "Johns Hopkins55"),
        ("ptc", "PTC_MR"),
        ("imdb-b", "IMDB-BINARY"),
        ("IMDB-M", "IMDB-MULTI"),
        ("proteins full", "PROTEINS_full"),
        ("twitch-gamers", "Twitch-Gamers"),
        ("Digits-Grid", "digits-grid"),
    ],
)
def test_find(written, name):
    assert find(written).name == name


def test_an_unknown_name_has_a_nearest_one():
    with pytest.raises(ConfigError, match=r"no data set 'coraa'\. Did you mean 'Cora'\?"):
        find("coraa")


def test_options():
    assert options(find("digits")) == {"neighbors": 10}
    assert load("digits", neighbors=3).graphs[0].num_edges < load("digits").graphs[0].num_edges
    with pytest.raises(ConfigError, match=r"'neighbours'\. Did you mean 'neighbors'\?"):
        load("digits", neighbours=3)
    with pytest.raises(ConfigError, match="digits-graphs has no options, so not 'size'"):
        load("digits-graphs", size=3)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(DataError) as caught:
        load("Cora", tmp_path, offline=True)
    assert str(tmp_path / "planetoid" / "ind.cora.test.index") in str(caught.value)
    assert "https://github.com/kimiyoung/planetoid" in str(caught.value)
    with pytest.raises(DataError, match=r"pokec\.mat is missing.*Non-Homophily"):
        load("Pokec", tmp_path)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_load_and_divide_by_their_own_protocol(name, tmp_path):
    entry = find(name)
    dataset = load(name, tmp_path)
    assert (dataset.name, dataset.level, dataset.metric) == (entry.name, entry.level, entry.metric)
    assert dataset.is_regression == (entry.task == "regression")
    assert all(part.numel() for part in draw(dataset, entry.protocol, 0).parts)


@pytest.mark.data
@pytest.mark.parametrize("name", ["Cora", "Chameleon", "Squirrel-filtered", "Cornell5", "MUTAG"])
def test_real_sets_load_and_divide_by_their_own_protocol(root, name):
    entry = find(name)
    dataset = load(name, root, offline=True)
    assert (dataset.name, dataset.level, dataset.metric) == (entry.name, entry.level, entry.metric)
    assert all(part.numel() for part in draw(dataset, entry.protocol, 0).parts)


@pytest.mark.data
def test_directed_links_are_an_option(root):
    dataset = load("Chameleon-filtered", root, directed=True)
    assert dataset.graphs[0].num_edges == 2 * 8854
    assert dataset.graphs[0].adj_out.values().numel() == 13584
    with pytest.raises(ConfigError, match="Actor has no file with directed links"):
        load("Actor", root, directed=True)


def test_the_documentation_names_every_data_set():
    text = DOCS.read_text()
    for name in CATALOGUE:
        assert f"| {name} |" in text
