"""Checks see what is missing, altered, unknown, or counts differently."""

import dataclasses
import os
import shutil
from collections import Counter

import pytest

from nlsf.data import entries
from nlsf.data.catalogue import CATALOGUE, load
from nlsf.data.check import check, statistics
from nlsf.errors import ConfigError

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
    monkeypatch.setattr("nlsf.data.check.find", lambda name: wrong)
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
