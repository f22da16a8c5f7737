"""Noise on a grid costs little; a grid whose images are scrambled is noticed."""

from dataclasses import replace

import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.grids import GridsSettings, load_grid, run

QUICK = GridsSettings(seeds=1, epochs=6, drop=5.0)


def scrambled(name, noise, root):
    """On the noisy grid the pixels of every image are in an order of their own."""
    dataset = load_grid(name, noise, root)
    if not noise:
        return dataset
    order = torch.rand(dataset.signals.shape, generator=torch.Generator().manual_seed(0)).argsort(1)
    return replace(dataset, signals=dataset.signals.gather(1, order))


def test_the_claim_holds():
    finding = run(QUICK)
    assert finding.holds, finding.conclusion
    assert finding.data["accuracy"].shape == (2, 1)
    assert finding.data["accuracy"].min() > 60, "more than chance, or the claim says nothing"


def test_a_grid_that_images_do_not_fit_is_noticed():
    finding = run(QUICK, scrambled)
    assert not finding.holds, finding.conclusion


def test_noise_is_on_the_edges_alone():
    clean, noisy = (load_grid("digits-grid", noise, None) for noise in (0.0, 0.1))
    assert torch.equal(clean.signals, noisy.signals)
    assert torch.equal(clean.graphs[0].edge_index, noisy.graphs[0].edge_index)
    weight = noisy.graphs[0].edge_weight
    assert 0.05 < float(weight.std()) < 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"noise": ()}, "at least 1"),
        ({"noise": (-0.1,)}, "noise"),
    ],
)
def test_bad_settings_are_named(change, message):
    with pytest.raises(ConfigError, match=message):
        GridsSettings(**change)
