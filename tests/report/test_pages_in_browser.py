"""The pages of real runs in headless Chromium: sound at every width, in both schemes."""

import dataclasses

import pytest

from nlsf.data import load
from nlsf.report.compare import comparison_page
from nlsf.report.run_page import run_page
from nlsf.report.spectrum_page import spectrum_page
from nlsf.spectral import DyadicBands, laplacian, partial_eigh
from nlsf.train import train
from report.browser import HOSTILE, assert_sound, marks, shown
from report.small_runs import page_of, trained_folder, without
from train.small import graph_data, node_data, regression_data, signal_data


def digits(folder):
    result = train("digits", {"training": {"epochs": 3}}, output=folder / "run", cache=False)
    return run_page(result.folder, cache=False)


def several_seeds(folder):
    return page_of(node_data(), folder / "run", seeds=3)


def unfinished(folder):
    run = trained_folder(node_data(), folder / "run")
    return run_page(without(run, folder / "cut", "results.jsonl", "model.safetensors"))


def hostile(folder):
    classes = tuple(f"{HOSTILE} {i}" for i in range(3))
    return page_of(dataclasses.replace(node_data(), name=HOSTILE, classes=classes), folder / "run")


def comparison(folder):
    first = trained_folder(node_data(), folder / "a", seeds=3)
    second = trained_folder(node_data(), folder / "b", seeds=3, training={"lr": 0.01})
    return comparison_page([first, second])


def spectrum(folder):
    dataset, bands = load("csbm", num_nodes=200), DyadicBands()
    shifts = [laplacian(dataset.graphs[0], normalization=n) for n in (None, "sym")]
    return spectrum_page(dataset, [partial_eigh(shift) for shift in shifts], bands)


PAGES = {
    "digits": digits,
    "several seeds": several_seeds,
    "unfinished": unfinished,
    "hostile names": hostile,
    "regression": lambda folder: page_of(regression_data(), folder / "run"),
    "graphs": lambda folder: page_of(graph_data(), folder / "run"),
    "signals": lambda folder: page_of(signal_data(), folder / "run"),
    "comparison": comparison,
    "spectrum": spectrum,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_sound_at_every_width(browser, tmp_path, name):
    path = PAGES[name](tmp_path).write(tmp_path / "page.html")
    assert path.stat().st_size < 3_000_000
    for width, scheme in ((390, "light"), (1440, "dark")):
        with shown(browser, path, width, color_scheme=scheme) as page:
            assert_sound(page)
            assert len(marks(page)) > 0
            assert page.locator("[role=img]:not([aria-label])").count() == 0
            if name == "hostile names":
                assert page.locator("h1").inner_text() == HOSTILE
