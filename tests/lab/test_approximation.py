"""Wider networks come closer, and only to functions of the coefficients."""

import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.approximation import ApproximationSettings, _graph, _signals, run, signed

QUICK = {"widths": (2, 512), "graphs": 16, "signals": 200}


def test_the_claim_holds():
    finding = run(ApproximationSettings(**QUICK, seed=7))
    assert finding.holds
    assert finding.data["silent_band"] < 1e-9, "a band without signal stays without"


def test_a_target_beyond_the_coefficients_is_noticed():
    finding = run(ApproximationSettings(**QUICK), signed)
    assert not finding.holds
    assert finding.data["errors"]["graph"][-1] > 0.5


def test_a_linear_network_is_noticed():
    finding = run(ApproximationSettings(**QUICK), activation=torch.nn.Identity())
    assert not finding.holds
    assert finding.data["errors"]["graph"][-1] > 0.5, "wider does not help a linear map"


def test_signals_have_the_coefficients_that_were_drawn():
    settings = ApproximationSettings(**QUICK)
    P = _graph(settings, 3)
    c = P(_signals(P, settings, 3)).norms()
    assert float(c.min()) > 0.2 - 1e-9
    assert float(c.max()) < 1.5 + 1e-9
    assert torch.isfinite(c).all()


@pytest.mark.parametrize("change", [{"widths": (3,)}, {"graphs": 1}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        ApproximationSettings(**change)
