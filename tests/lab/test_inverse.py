"""Singular values of synthesis agree with the formula; a synthesis with a fault does not."""

import math

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.lab.inverse import InverseSettings, diagonal_synthesis, run

QUICK = {"num_nodes": 25, "signals": 1}
FEW = {**QUICK, "eps": (1e-1, 1e-8)}


@pytest.mark.parametrize("seed", range(2))
def test_the_claim_holds(seed):
    finding = run(InverseSettings(seed=seed, **FEW))
    assert finding.holds
    assert finding.data["error"] < 1e-10


def test_the_isometry_is_as_near_as_e():
    finding = run(InverseSettings(**QUICK, exponents=(1.0,), eps=(1e-2, 1e-4, 1e-6)))
    distance = finding.data["isometry"][1.0]
    slope = np.polyfit(np.log([1e-2, 1e-4, 1e-6]), np.log(distance), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.1)


def test_the_condition_number_falls_with_the_exponent():
    # Without e, sigma = c^(1 - a): the condition number is that of a = 0 to the power 1 - a.
    condition = run(InverseSettings(**QUICK, eps=(1e-10,))).data["condition"]
    assert math.sqrt(condition[0.0]) == pytest.approx(condition[0.5], rel=1e-6)
    assert condition[1.0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "broken",
    [
        lambda r, x, P, a, e: torch.relu(diagonal_synthesis(r, x, P, a, e)),
        lambda r, x, P, a, e: diagonal_synthesis(r, torch.relu(x), P, a, e),
        lambda r, x, P, a, e: diagonal_synthesis(r, x, P, a / 2, e),
        lambda r, x, P, a, e: diagonal_synthesis(r.roll(1, 0) + r, x, P, a, e),
    ],
    ids=["activation after", "activation before", "exponent", "bands mixed"],
)
def test_a_fault_is_noticed(broken):
    assert not run(InverseSettings(**FEW), broken).holds


def test_analysis_is_the_adjoint_only_where_coefficients_are_not_negative():
    adjoint = run(InverseSettings(**FEW)).data["adjoint"]
    assert adjoint["r >= 0"] < 1e-9
    assert min(adjoint["r of both signs"], adjoint["random"]) > 0.1


@pytest.mark.parametrize("change", [{"exponents": (2.0,)}, {"eps": (0.0,)}, {"signals": 0}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        InverseSettings(**change)
