import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.browser import ARGUMENTS, chromium

# A shell that starts the tests in the background has them, and their children, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The data root, or a skip that says how to get one."""
    folder = os.environ.get("NLSF_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set NLSF_DATA to a data root")
    return Path(folder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium, or a skip that says how to get one."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: nlsf[browser]")
    path = chromium()
    if path is None:
        pytest.skip("needs Chromium: install it or set NLSF_CHROMIUM to its path")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """No test reads or writes the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLSF_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield
