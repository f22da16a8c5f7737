from __future__ import annotations

from pathlib import Path

import pytest

from report.demo import demo_page


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_page().write(tmp_path_factory.mktemp("page") / "demo.html")
