"""What notebooks show of layers: their settings, and what they learned."""

import re
from xml.etree import ElementTree

import pytest
import torch

from nlsf.nn import GraphNLSF, LaplacianAttention, NodeNLSF, PoolingNLSF
from nlsf.spectral import DyadicBands, IndexBands
from nlsf.testing.graphs import torus
from nn.layers import signal, spectrum_of

BANDS = DyadicBands(0.5, 3)


def parsed(layer):
    html = layer._repr_html_()
    assert len(html) < 20_000
    assert "<script" not in html
    return ElementTree.fromstring(html)


def facts(tree):
    rows = tree.find("table").iter("tr")
    return {row.find("th").text: row.find("td").text for row in rows}


def numbers(tree, caption):
    """The numbers of the drawing with this caption."""
    for figure in tree.iter("figure"):
        if caption in figure.find("figcaption").text:
            titles = [t.text for t in figure.iter("{http://www.w3.org/2000/svg}title")]
            return [float(re.fullmatch(r"\d+: (.*)", text)[1]) for text in titles]
    raise AssertionError(f"no drawing of {caption}")


def trained(layer, factor=2.0):
    """A response that multiplies every band by the same factor."""
    with torch.no_grad():
        layer.response.network.biases[-1].fill_(factor - 1)
    return layer


def test_a_new_filter_shows_its_start():
    tree = parsed(NodeNLSF(3, 2, BANDS))
    assert facts(tree)["channels"] == "3 to 2"
    assert facts(tree)["operator"] == "N, the normalised Laplacian"
    assert numbers(tree, "factor on the start's gain") == [1, 1, 1]


@pytest.mark.parametrize("sharing", ["shared", "channelwise", "mixing"])
@pytest.mark.parametrize("response", ["diagonal", "bandwise"])
def test_a_trained_filter_shows_its_factors(response, sharing):
    layer = trained(NodeNLSF(3, 3, BANDS, response=response, sharing=sharing))
    assert numbers(parsed(layer), "factor on the start's gain") == [2, 2, 2]
    additive = trained(NodeNLSF(3, 3, BANDS, mode="additive", response=response, sharing=sharing))
    assert numbers(parsed(additive), "added to the start's gain") == [1, 1, 1]


def test_the_full_form_has_no_factors():
    tree = parsed(NodeNLSF(2, 2, BANDS, response="full"))
    assert len(list(tree.iter("figure"))) == 1, "the bands"


def test_looking_changes_nothing():
    layer = NodeNLSF(3, 2, BANDS, dropout=0.5).train()
    state = torch.random.get_rng_state()
    assert layer._repr_html_() == layer._repr_html_()
    assert layer.response.training
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_graph_filter_shows_what_it_reads():
    layer = GraphNLSF(3, 2, BANDS, complement=False)
    with torch.no_grad():
        layer.network.weights[0].zero_()
        layer.network.weights[0][:, 3:6] = 2.0  # the three channels of the second band
    assert numbers(parsed(layer), "first weights") == [0, 2, 0]


def test_attention_shows_its_weights():
    layer = LaplacianAttention(
        NodeNLSF(3, 2, IndexBands(2), normalization=None), NodeNLSF(3, 2, BANDS)
    )
    assert facts(parsed(layer))["weights of the branches"] == "50.0 % and 50.0 %"
    with torch.no_grad():
        layer.scores.copy_(torch.tensor([3.0, 1.0]).log())
    tree = parsed(layer)
    assert facts(tree)["weights of the branches"] == "75.0 % and 25.0 %"
    assert [s.text for s in tree.iter("strong")] == ["LaplacianAttention", "NodeNLSF", "NodeNLSF"]


def test_spectral_scores_are_known_after_a_call():
    layer = LaplacianAttention(
        PoolingNLSF(3, 2, bands=BANDS), PoolingNLSF(3, 2, bands=BANDS), score="spectral"
    ).double()
    assert "not known" in facts(parsed(layer))["weights of the branches"]
    graph = torus(3, 4)
    spectrum = spectrum_of(graph)
    layer(signal(5, 12, 3), spectrum=(spectrum, spectrum))
    weights = facts(parsed(layer))["weights of the branches"]
    assert weights == "50.0 % and 50.0 % (mean over 5 graphs of the last call)"
