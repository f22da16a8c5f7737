"""The catalogue is consistent, its names are found, and its data sets load."""

import dataclasses
import importlib
import inspect
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from nlsf.data.catalogue import check, entries, find, load, options, statistics
from nlsf.data.catalogue.entries import CATALOGUE
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


def test_every_name_is_found_in_any_case():
    for entry in CATALOGUE.values():
        for name in (entry.name, *entry.aliases):
            assert find(name) is find(name.lower()) is find(name.upper()) is entry


def test_what_is_read_by_its_checksum_has_one():
    for name in ("Cora", "Citeseer", "Pubmed", "MNIST"):
        assert all(file.sha256 for file in find(name).files)


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


QUICK = ["Cora", "Chameleon-filtered", "Johns Hopkins55", "MUTAG", "ENZYMES", "IMDB-BINARY"]


def states(rows):
    return Counter(row.state for row in rows)


@pytest.mark.data
def test_every_file_of_the_data_root_is_the_publishers(root):
    rows = list(check(root, loading=False))
    assert not [row for row in rows if row.state == "wrong"]
    known = {file.path for entry in CATALOGUE.values() for file in entry.all_files}
    verified = {row.item for row in rows if row.state == "ok"}
    assert verified == {path for path in known if (root / path).is_file()}


@pytest.mark.data
def test_counts_are_those_of_the_catalogue(root):
    rows = list(check(root, QUICK))
    assert states(rows)["wrong"] == states(rows)["missing"] == 0
    counted = {row.name for row in rows if row.item == "statistics" and row.state == "ok"}
    assert counted == set(QUICK)


def test_counts_of_embedded_sets(tmp_path):
    rows = list(check(tmp_path))
    counted = {row.name for row in rows if row.item == "statistics"}
    assert counted == {entry.name for entry in CATALOGUE.values() if not entry.files}
    assert states(rows)["wrong"] == 0
    assert states(rows)["missing"] == sum(len(entry.all_files) for entry in CATALOGUE.values())


@pytest.mark.data
def test_an_altered_file(root, tmp_path):
    (tmp_path / "tu").mkdir()
    path = tmp_path / "tu" / "MUTAG.zip"
    shutil.copyfile(root / "tu" / "MUTAG.zip", path)
    os.chmod(path, 0o644)
    assert states(check(tmp_path, ["MUTAG"])) == {"ok": 2}
    raw = bytearray(path.read_bytes())
    raw[1000] ^= 1
    path.write_bytes(raw)
    rows = list(check(tmp_path, ["MUTAG"]))
    assert states(rows) == {"wrong": 1}, "what is wrong is not loaded"
    assert CATALOGUE["MUTAG"].files[0].sha256 in rows[0].detail
    path.write_bytes(raw[:-1])
    assert "24,436 bytes, expected 24,437" in next(check(tmp_path, ["MUTAG"])).detail


def test_counts_that_differ(tmp_path, monkeypatch):
    entry = CATALOGUE["torus"]
    wrong = dataclasses.replace(
        entry, statistics=dataclasses.replace(entry.statistics, edges=2047, features=2)
    )
    monkeypatch.setattr("nlsf.data.catalogue.find", lambda name: wrong)
    (row,) = check(tmp_path, ["torus"])
    assert (row.state, row.item) == ("wrong", "statistics")
    assert row.detail == "2048 edges, expected 2047; 1 features, expected 2"


def test_files_that_nobody_knows(tmp_path):
    (tmp_path / "fb100").mkdir()
    (tmp_path / "elsewhere").mkdir()
    for path in ("notes.txt", "fb100/Yale4.mat", "elsewhere/x", "fb100/Penn94.mat"):
        (tmp_path / path).write_text("x")
    rows = list(check(tmp_path, loading=False))
    assert {row.item for row in rows if row.state == "unknown"} == {"notes.txt", "fb100/Yale4.mat"}
    assert [row.item for row in rows if row.state == "no checksum known"] == ["fb100/Penn94.mat"]


def test_a_file_that_does_not_load_is_wrong(tmp_path):
    (tmp_path / "fb100").mkdir()
    (tmp_path / "fb100" / "Penn94.mat").write_text("x")
    rows = list(check(tmp_path, ["Penn94"]))
    assert [row.state for row in rows] == ["no checksum known", "wrong"]
    assert "Penn94.mat is not a whole MATLAB file" in rows[1].detail


def test_unknown_names_are_refused_before_work(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'MUTAG'"):
        check(tmp_path, ["Cora", "mutak"])


def test_statistics_of_each_level():
    grid = statistics(load("digits-grid"))
    assert (grid.nodes, grid.edges, grid.features, grid.examples) == (64, 112, 1, 1797)
    assert grid.average_nodes is None
    graphs = statistics(load("digits-graphs"))
    assert graphs.nodes is None
    assert graphs.min_nodes <= graphs.average_nodes <= graphs.max_nodes
    assert entries.CATALOGUE["torus"].statistics == statistics(load("torus"))
