import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The data root, or a skip that says how to get one."""
    folder = os.environ.get("NLSF_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set NLSF_DATA to a data root")
    return Path(folder)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
