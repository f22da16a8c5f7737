from pathlib import Path

import platformdirs

from nlsf.data.root import data_root


def test_argument_then_variable_then_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NLSF_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root() == tmp_path / "variable"
    for nothing in ("", None):
        if nothing is None:
            monkeypatch.delenv("NLSF_DATA")
        else:
            monkeypatch.setenv("NLSF_DATA", nothing)
        assert data_root() == Path(platformdirs.user_data_dir("nlsf"))


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root("~/raw") == tmp_path / "raw"
