"""``nlsf data``, called as from the shell."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from nlsf.cli.data import data_app
from nlsf.data.catalogue.entries import CATALOGUE
from nlsf.errors import ConfigError, DataError


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("NLSF_DATA", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments, fails=None):
        done = CliRunner().invoke(data_app, list(arguments))
        if fails is not None:
            assert isinstance(done.exception, fails), done.exception
            return str(done.exception)
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_list_names_every_set_and_where_it_is(run, tmp_path):
    (tmp_path / "root" / "planetoid").mkdir(parents=True)
    (tmp_path / "root" / "planetoid" / "ind.cora.x").write_text("")
    lines = run("list").splitlines()
    rows = {line.split("  ")[0]: line for line in lines[2:-1]}
    assert set(rows) == set(CATALOGUE)
    assert "1 of 8" in rows["Cora"]
    assert "missing" in rows["Penn94"]
    assert "embedded" in rows["digits"]
    assert "12,286,079" in rows["COLLAB"]
    assert lines[-1] == f"Data root: {tmp_path / 'root'}"


@pytest.mark.parametrize("name", CATALOGUE)
def test_info_tells_everything(run, name, tmp_path):
    entry = CATALOGUE[name]
    output = run("info", name, "--data-root", str(tmp_path))
    for text in (entry.source, entry.licence, entry.note, entry.protocol, entry.metric):
        assert text in output
    for file in entry.all_files:
        assert f"missing       {tmp_path / file.path}" in output


def test_info_shows_options(run):
    assert "homophily = 0.8" in run("info", "csbm")


def test_an_unknown_name(run):
    assert "Did you mean 'Cora'?" in run("info", "cora1", fails=ConfigError)
    assert "Did you mean 'Cora'?" in run("check", "cora1", fails=ConfigError)


def test_check_of_nothing(run, tmp_path):
    output = run("check", "--no-load")
    assert "missing           linkx/pokec.mat" in output
    assert output.splitlines()[-1].endswith("56 missing.")


def test_a_named_set_must_be_here(run):
    done = CliRunner().invoke(data_app, ["check", "MUTAG"])
    assert done.exit_code == 1
    assert "missing           tu/MUTAG.zip" in done.output
    assert "ok                digits, statistics: 1,797 nodes" in run("check", "digits")


@pytest.mark.data
def test_check_finds_an_altered_file(root, run, tmp_path):
    copy = tmp_path / "root" / "tu"
    copy.mkdir(parents=True)
    shutil.copyfile(root / "tu" / "MUTAG.zip", copy / "MUTAG.zip")
    assert "ok                MUTAG, statistics: 3,721 edges" in run("check", "MUTAG")
    (copy / "MUTAG.zip").write_bytes(b"other")
    done = CliRunner().invoke(data_app, ["check", "--no-load"])
    assert done.exit_code == 1
    assert "wrong             tu/MUTAG.zip: 5 bytes, expected 24,437" in done.output


def test_split_writes_files_that_repeat(run, tmp_path):
    run("split", "digits", "--seeds", "2", "-o", "a/b")
    run("split", "digits", "--seeds", "2", "--protocol", "random", "-o", "c")
    assert sorted(os.listdir("a/b")) == ["digits-random-0.json", "digits-random-1.json"]
    first, second = ((tmp_path / "a/b" / name).read_text() for name in sorted(os.listdir("a/b")))
    assert first != second
    assert (tmp_path / "c" / "digits-random-0.json").read_text() == first
    assert len(json.loads(first)["train"]) == 200


def test_split_has_ten_seeds_by_default(run):
    assert len(run("split", "csbm", "-o", "x").splitlines()) == 10
    assert sorted(os.listdir("x")) == [f"csbm-60-20-20-{seed}.json" for seed in range(10)]


@pytest.mark.data
def test_split_takes_all_that_come_with_the_files(root, run):
    output = run("split", "Chameleon-filtered", "-o", "x", "--data-root", str(root))
    assert len(os.listdir("x")) == 10
    assert output.startswith("x/Chameleon-filtered-dense-0.json: ")


def test_split_failures_write_nothing(run):
    assert "60-20-2" in run("split", "csbm", "--protocol", "60-20-2", fails=ConfigError)
    assert "is missing" in run("split", "MUTAG", "--offline", fails=DataError)
    assert CliRunner().invoke(data_app, ["split", "csbm", "--protocol", "a.json"]).exit_code == 2
    assert CliRunner().invoke(data_app, ["split", "csbm", "--seeds", "0"]).exit_code == 2
    assert not os.path.exists("splits")


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from nlsf.cli.data import data_app\n"
        "try: data_app(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'scipy', 'sklearn'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
