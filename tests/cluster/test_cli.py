"""``nlsf spectrum --cluster`` on a running cluster."""

import os

import pytest
from typer.testing import CliRunner

from nlsf.cli import app, main
from nlsf.cluster import connection
from nlsf.data import load
from nlsf.spectral import SpectrumCache, batched_eigh

MUTAG = ["spectrum", "MUTAG", "--offline", "--graph", "187"]


@pytest.mark.data
def test_all_graphs_go_to_the_cache_and_one_is_shown(client, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path / "cluster"))
    options = ["--data-root", str(root), "--cluster", client.scheduler.address]
    done = CliRunner().invoke(app, [*MUTAG, *options])
    assert done.exit_code == 0, done.output
    assert "188 graphs, 3,371 nodes, on " in done.output
    assert "Spectra of N" in done.output
    assert f"Spectra: {tmp_path / 'cluster'}" in done.output
    assert "MUTAG: 16 nodes" in done.output

    assert len(os.listdir(tmp_path / "cluster")) > 188
    for normalization in (None, "sym"):
        graphs = load("MUTAG", root=root, offline=True).graphs[:10]
        batched_eigh(graphs, normalization=normalization, cache=tmp_path / "one")
    for name in os.listdir(tmp_path / "one"):
        key = name.removesuffix(".safetensors")
        found, expected = (SpectrumCache(tmp_path / f).load(key) for f in ("cluster", "one"))
        assert found.vectors.equal(expected.vectors)


@pytest.mark.data
def test_an_address_where_nobody_answers_is_one_sentence(root, tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed", reason="needs Dask: nlsf[cluster]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connection, "_CONNECT", 0.2)
    options = ["--data-root", str(root), "--cluster", "tcp://127.0.0.1:9"]
    monkeypatch.setattr("sys.argv", ["nlsf", *MUTAG, *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("nlsf: No Dask scheduler answers at 'tcp://127.0.0.1:9'.")
    assert len(said) == 1
    assert os.listdir(tmp_path) == []
