import math

import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import Start

LAM = torch.tensor([0.0, 0.1, 0.5, 0.9, 2.0, 7.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("all-pass", lambda lam: 1.0),
        ("heat", lambda lam: math.exp(-3 * lam)),
        ("ppr", lambda lam: 1 / (1 + 3 * lam)),
        ("high-pass", lambda lam: 3 * lam / (1 + 3 * lam)),
        ("walk", lambda lam: min(abs(1 - lam), 1) ** 3),
        ("random", lambda lam: 0.0),
    ],
)
def test_the_formulas(name, formula):
    expected = torch.tensor([formula(lam) for lam in LAM.tolist()], dtype=torch.float64)
    torch.testing.assert_close(Start(name, t=3.0, floor=0.0).gains(LAM), expected)
    assert Start(name).gains(LAM.reshape(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("name", ["heat", "ppr", "high-pass", "walk", "all-pass"])
def test_no_gain_is_below_the_floor_and_others_stay(name):
    free, held = (Start(name, 3.0, floor).gains(LAM) for floor in (0.0, 0.2))
    assert held.min() >= 0.2
    assert torch.equal(held, torch.where(free < 0.2, 0.2, free))
    assert (free < 0.2).any() or name in ("all-pass",)


def test_a_random_start_has_no_floor():
    assert not Start("random", floor=0.5).gains(LAM).any()


def test_gains_are_remembered_for_as_long_as_the_frequencies_stay():
    start, lam = Start("ppr", 3.0, 0.0), LAM.clone()
    with torch.inference_mode():
        start.gains(lam)
    first = start.gains(lam)
    assert not first.is_inference()
    assert start.gains(lam) is first
    assert not torch.equal(Start("heat", 3.0, 0.0).gains(lam), first)
    assert start.gains(lam.float()).dtype == torch.float32
    lam.mul_(2)
    torch.testing.assert_close(start.gains(lam), 1 / (1 + 6 * LAM))


def test_gains_under_the_transforms_of_torch_func():
    start, many = Start("ppr", 3.0, 0.0), torch.stack([LAM, 2 * LAM])
    torch.testing.assert_close(torch.func.vmap(start.gains)(many), start.gains(many))
    slope = torch.func.grad(lambda t: (t * start.gains(LAM)).sum())(LAM)
    torch.testing.assert_close(slope, start.gains(LAM))
    live = LAM.clone().requires_grad_()
    (slope,) = torch.autograd.grad(start.gains(live).sum(), live)
    torch.testing.assert_close(slope, -3 / (1 + 3 * LAM) ** 2)


def test_a_name_or_a_start_will_do():
    assert Start.of("ppr") == Start("ppr")
    assert Start.of(Start("heat", 2.0)) == Start("heat", 2.0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "low-pass"}, "all-pass, heat, ppr, high-pass, walk, random, not 'low-pass'"),
        ({"t": 0.0}, "positive, not 0.0"),
        ({"t": math.nan}, "positive, not nan"),
        ({"floor": -0.1}, "between 0 and 1, not -0.1"),
        ({"floor": 1.5}, "between 0 and 1, not 1.5"),
    ],
)
def test_other_starts_are_refused(options, says):
    with pytest.raises(ModelError, match=says):
        Start(**options)
