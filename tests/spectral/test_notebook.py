"""What notebooks show: well-formed, self-contained, small, and true to the numbers."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from cases import BANDS, GRAPHS
from nlsf.spectral import (
    AffineGeometricBands,
    AtomBands,
    DyadicBands,
    IndexBands,
    IntervalBands,
    UniformBands,
    laplacian,
    partial_eigh,
)
from nlsf.spectral.notebook import bars
from nlsf.testing.graphs import star

SVG = "{http://www.w3.org/2000/svg}"


def parsed(html):
    """The tree; fails where a tag is not closed or a text not escaped."""
    assert len(html) < 20_000
    assert "<script" not in html
    assert not re.findall(r"(?:src|href)=|url\(", html)
    return ElementTree.fromstring(html)


def facts(tree):
    return {row.find("th").text: row.find("td").text for row in tree.iter("tr")}


def boxes(tree):
    return [
        (float(box.get("x")), float(box.get("width")), box.find(f"{SVG}title").text)
        for box in tree.iter(f"{SVG}rect")
    ]


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_spectrum_counts_all_its_eigenvalues(graph):
    spectrum = partial_eigh(laplacian(GRAPHS[graph]))
    tree = parsed(spectrum._repr_html_())
    counted = [int(text.rsplit(": ")[-1].replace(",", "")) for *_, text in boxes(tree)]
    assert sum(counted) == spectrum.num_nodes
    assert facts(tree).get("eigenspaces", "0") == str(spectrum.num_eigenspaces)


def test_a_heavy_eigenvalue_is_named():
    spectrum = partial_eigh(laplacian(star(6), normalization="sym"))
    assert facts(parsed(spectrum._repr_html_()))["heaviest eigenvalue"] == "1, 5 times"


def test_a_partial_spectrum_says_how_much_is_there():
    bands = IndexBands(2)
    spectrum = partial_eigh(laplacian(GRAPHS["torus"]), bands=bands)
    shown = facts(parsed(spectrum._repr_html_()))["eigenpairs"]
    assert shown == f"{spectrum.num_pairs} of {spectrum.num_nodes}"


def test_names_are_shown_not_run():
    spectrum = partial_eigh(laplacian(GRAPHS["torus"]))
    html = replace(spectrum, name="</strong><script>alert(1)</script>")._repr_html_()
    assert parsed(html).find("strong").text == "Spectrum of </strong><script>alert(1)</script>"


@pytest.mark.parametrize("name", BANDS)
def test_every_family_has_a_box_a_band(name):
    bands = BANDS[name]
    tree = parsed(bands._repr_html_())
    drawn = bands.base.n_bands if isinstance(bands, AtomBands) else bands.n_bands
    assert len(boxes(tree)) == drawn
    assert facts(tree)["bands"] == str(bands.n_bands)


@pytest.mark.parametrize(
    ("bands", "wide"),
    [
        (UniformBands(4), [0.25, 0.25, 0.25, 0.25]),
        (DyadicBands(0.5, 3), [0.25, 0.25, 0.5]),
        (DyadicBands(0.5, 4, 2), [0.5, 0.5]),
        (IntervalBands([(0, 1), (3, 4)]), [0.25, 0.25]),
        (AffineGeometricBands(2.0, 2, a=1.0, b=1.0), [1 / 3, 2 / 3]),
    ],
)
def test_boxes_are_as_wide_as_bands(bands, wide):
    found = boxes(parsed(bands._repr_html_()))
    assert [width + 1 for _, width, _ in found] == pytest.approx([480 * w for w in wide], abs=0.11)


def test_thousands_of_bands_stay_small():
    html = IndexBands(5_000)._repr_html_()
    assert len(boxes(parsed(html))) < 100
    assert "of 5,000 bands" in html


def test_an_interval_without_end():
    html = IntervalBands([(0, 2), (2, math.inf)])._repr_html_()
    assert "inf" not in html.split("<svg")[1]
    assert len(boxes(parsed(html))) == 2


def test_bars_show_numbers_and_leave_out_what_is_none():
    tree = ElementTree.fromstring(bars([1.5, math.nan, 0.5], "gain", line=1.0))
    assert [text for *_, text in boxes(tree)] == ["1: 1.5", "3: 0.5"]
    up, down = tree.iter(f"{SVG}rect")
    assert float(up.get("y")) + float(up.get("height")) == pytest.approx(float(down.get("y")))
