import re
import sys

import pytest

from nlsf import cli


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with a data root that is not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NLSF_DATA", str(tmp_path / "root"))
    return tmp_path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def assert_refused(here, monkeypatch, capsys):
    """Asserts that a command fails in one sentence or two and leaves nothing half written."""

    def check(words, says, code):
        before = files(here)
        monkeypatch.setattr(sys, "argv", ["nlsf", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        output, errors = capsys.readouterr()
        assert end.value.code == code, errors
        assert "Traceback" not in errors
        assert says in " ".join(re.sub("[│╭╰─╮╯]", " ", errors).split())
        assert "this must not run" not in output + errors
        if code == 1:
            assert errors.startswith("nlsf: ")
            assert len(errors.splitlines()) == 1
            assert len(re.findall(r"[.?](?=\s+[A-Z]|\s*$)", errors)) <= 2, "two sentences at most"
        assert files(here) == before, "nothing is left behind"

    return check
