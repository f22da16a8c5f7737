import math

import pytest
import torch

from nlsf.spectral.bands.polynomial import band_series, jackson_damping, step_series

F64 = torch.float64


def values(series, t):
    """The series (m, K + 1) at points of [-1, 1]: (m, points)."""
    k = torch.arange(series.shape[1], dtype=F64)
    return series @ torch.cos(k[:, None] * t.arccos())


@pytest.mark.parametrize("order", [1, 2, 9, 64])
def test_the_kernel_is_not_negative(order):
    damping = jackson_damping(order)
    assert damping[0] == pytest.approx(1.0)
    assert damping[1] == pytest.approx(math.cos(math.pi / (order + 2)))
    angle = torch.linspace(0, math.pi, 1001, dtype=F64)
    k = torch.arange(1, order + 1, dtype=F64)
    kernel = 0.5 + (damping[1:, None] * torch.cos(k[:, None] * angle)).sum(0)
    assert kernel.min() > -1e-12


def test_a_step_falls_from_one_to_zero_within_a_few_widths_of_its_edge():
    order, edge = 200, 0.3
    t = torch.linspace(-1, 1, 801, dtype=F64)
    (step,) = values(step_series(torch.tensor([edge], dtype=F64), order), t)
    away = (t.arccos() - math.acos(edge)).abs() > 6 * math.pi / order
    torch.testing.assert_close(step[away], (t <= edge).to(F64)[away], atol=2e-3, rtol=0)
    assert ((step >= 0) & (step <= 1)).all()


def test_steps_beyond_the_axis_are_constant():
    series = step_series(torch.tensor([-2.0, -1.0, 1.0, 5.0], dtype=F64), 6)
    assert series[:, 0].tolist() == [0, 0, 1, 1]
    assert (series[:, 1:] == 0).all()


@pytest.mark.parametrize("bandwidth", [0.0, 0.2, 2.0, 7.0])
@pytest.mark.parametrize(
    "limits",
    [
        [(0.0, 0.5), (0.5, 2.0)],
        [(0.0, 0.3), (0.9, 1.1), (2.0, math.inf)],
        [(0.5, 0.5), (0.5, 1.0)],
        [(0.0, math.inf)],
    ],
)
def test_bands_and_what_they_leave_sum_to_one(bandwidth, limits):
    series = band_series(torch.tensor(limits, dtype=F64), bandwidth, 15)
    assert series.shape == (len(limits) + 1, 16)
    total = torch.zeros(16, dtype=F64)
    total[0] = 1
    torch.testing.assert_close(series.sum(0), total, atol=1e-14, rtol=0)
    height = values(series, torch.linspace(-1, 1, 301, dtype=F64))
    assert height.min() > -1e-12
    assert height.max() < 1 + 1e-12


def test_empty_bands_are_exactly_zero():
    limits = torch.tensor([(0.0, 1.0), (1.0, 1.0), (1.0, 3.0), (3.0, 9.0)], dtype=F64)
    series = band_series(limits, 2.0, 8)
    assert (series[[1, 3, 4]] == 0).all()
    assert (series[[0, 2]] != 0).any(1).all()
