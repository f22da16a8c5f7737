"""The page of all studies in headless Chromium: sound at every width, in both schemes."""

import dataclasses

import pytest

from nlsf.lab import STUDIES, perform, write_gallery
from report.browser import assert_sound, marks, shown

QUICK = {
    "activations": {"samples": 2},
    "approximation": {"widths": (2, 64), "graphs": 6},
    "attention": {"uneven": (0.0, 0.8), "graphs": 3, "repeats": 1, "steps": 5},
    "bands": {"data": ("digits-grid", "digits-graphs"), "graphs": 5},
    "complexity": {"nodes": (100, 200), "channels": (2, 4, 8)},
    "cut-norm": {"nodes": (40, 50)},
    "grids": {"seeds": 1, "epochs": 1},
    "inverse": {"num_nodes": 25, "signals": 1},
    "perturbation": {"side": 9, "noise": (0.0, 0.1), "draws": 1, "images": 2},
    "pooling": {"pairs": 3},
    "transfer": {"spaces": ("circle",), "nodes": (60, 90), "graphs": 3, "steps": 5},
    "translation": {"side": 15, "times": (0, 3, 5)},
}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    outcomes = [
        perform(study, dataclasses.replace(study.settings(), **QUICK.get(name, {})))
        for name, study in STUDIES.items()
    ]
    return write_gallery(outcomes, tmp_path_factory.mktemp("lab") / "gallery.html")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (768, "dark"), (1440, "light")])
def test_the_gallery_is_sound(browser, gallery, width, scheme):
    assert gallery.stat().st_size < 3_000_000
    with shown(browser, gallery, width, color_scheme=scheme) as page:
        assert_sound(page)
        assert len(marks(page)) >= len(STUDIES)
        assert page.locator("main section").count() == len(STUDIES) + (len(STUDIES) > 1)
        assert page.locator("[role=img]:not([aria-label])").count() == 0
