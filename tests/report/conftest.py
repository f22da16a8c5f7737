from collections.abc import Iterator
from typing import Any

import pytest

from report.browser import ARGUMENTS, chromium


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
