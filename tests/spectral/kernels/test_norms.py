import math

import pytest
import torch

from nlsf.spectral.kernels.dense import column_energy, energy, lp_norm, power, relative


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 1.0])
def test_powers_at_zero(exponent):
    base = torch.tensor([0.0, 4.0, math.nan], dtype=torch.float64, requires_grad=True)
    live = power(base, exponent)
    value = live.detach()
    assert value[0] == (1.0 if exponent == 0 else 0.0)
    assert value[1] == pytest.approx(4.0**exponent)
    assert exponent == 0 or value[2].isnan()
    if 0 < exponent < 1:
        (gradient,) = torch.autograd.grad(live[:2].sum(), base)
        assert gradient[0] == 0
        assert gradient[1] == pytest.approx(exponent * 4.0 ** (exponent - 1))


def test_energy_is_real():
    x = torch.tensor([3 + 4j])
    assert energy(x).item() == pytest.approx(25)
    assert not energy(x).is_complex()
    assert energy(torch.tensor([-3.0])).item() == 9


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_column_energies_are_squared_norms(dtype):
    x = torch.randn(2, 6, 3, dtype=dtype, generator=torch.Generator().manual_seed(0))
    expected = torch.linalg.vector_norm(x, dim=-2, keepdim=True).square()
    torch.testing.assert_close(column_energy(x), expected)
    assert torch.autograd.gradcheck(column_energy, (x.requires_grad_(),))
    assert torch.equal(column_energy(x[:, :0]), torch.zeros(2, 1, 3, dtype=torch.float64))


def test_relative_norms_have_unit_length_and_zero_stays_zero():
    norms = torch.tensor([[3.0, 0.0], [4.0, 0.0]], requires_grad=True)
    found = relative(norms)
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.0], [0.8, 0.0]]))
    (gradient,) = torch.autograd.grad(found.sum(), norms)
    assert torch.isfinite(gradient).all()
    exact = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.1
    assert torch.autograd.gradcheck(relative, (exact.requires_grad_(),))
    assert relative(torch.tensor([[math.nan], [1.0]])).isnan().all()


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 7.0, math.inf])
def test_lp_norms(p):
    x = torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(lp_norm(x, p), torch.linalg.vector_norm(x, p, dim=-2))
    assert lp_norm(x[:, :0], p).shape == (2, 3)
