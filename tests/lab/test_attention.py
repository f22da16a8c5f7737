"""Alpha moves away from L as points become uneven; with exchanged operators it does not."""

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.attention import AttentionSettings, best_alpha, run

QUICK = {"uneven": (0.0, 0.8), "graphs": 20, "largest": 100, "repeats": 1}


def test_the_claim_holds():
    finding = run(AttentionSettings(**QUICK, seed=3))
    assert finding.holds, finding.conclusion
    learned, closed = finding.data["alpha"], finding.data["best_alpha"]
    assert np.abs(learned - closed).max() < 0.02, "the scores find the minimum"


def test_exchanged_operators_are_noticed():
    # The eigenvalues of L grow with N, so that none but 0 falls into a band.
    few = {**QUICK, "graphs": 8, "steps": 60}
    finding = run(AttentionSettings(**few), ("sym", None))
    assert not finding.holds
    assert finding.data["second"].min() > 0.7


def test_alpha_in_closed_form():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 50, 3, generator=generator)
    assert best_alpha(a, b, 0.3 * a + 0.7 * b) == pytest.approx(0.3, abs=1e-6)
    assert best_alpha(a, b, 2 * a - b) == 1.0


@pytest.mark.parametrize(
    "change", [{"uneven": (0.0, 1.5)}, {"uneven": (0.5, 0.2)}, {"graphs": 1}, {"largest": 10}]
)
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        AttentionSettings(**change)
