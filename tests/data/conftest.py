import re

import pytest


def snapshot(folder):
    return {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def assert_refused(tmp_path, monkeypatch, capsys):
    """Asserts that a case fails in one sentence or two, prints nothing and leaves all as it was."""

    def check(build, kind, message, names):
        folder = tmp_path / "data"
        folder.mkdir()
        run = build(folder)
        before = snapshot(tmp_path)
        monkeypatch.chdir(folder)
        with pytest.raises(kind) as raised:
            run()
        text = str(raised.value)
        assert message in text
        assert (str(folder) if names is None else names) in text
        assert "\n" not in text
        assert "Traceback" not in text
        assert text[-1] in ".?"
        assert 1 <= len(re.findall(r"[.?!](?=\s|$)", text)) <= 2
        assert snapshot(tmp_path) == before
        assert capsys.readouterr() == ("", "")

    return check
